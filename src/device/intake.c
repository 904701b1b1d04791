/* SPDX-License-Identifier: MIT */
/* Reads blocks of a source. If most of a file is in the page cache, it is read through the cache.
 * Otherwise direct reads go from the disk to the pinned slot:
 *
 *   file   ────┬────┬────┬────┬────┬──        pages
 *   wanted        ███████████████             at any offset, of any length
 *   read       ▒▒▒▒███████████████▒▒▒▒        complete pages, up to the last complete one
 */
#include "device/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define SAMPLES 64u

#if defined(__linux__) && defined(O_DIRECT)

/* Is the page at `at` in the cache? -1: unknown. */
static int page_read(int fd, uint64_t at)
{
#ifdef RWF_NOWAIT /* musl does not have it */
    uint8_t byte;
    struct iovec one = { &byte, 1 };
    ssize_t got = preadv2(fd, &one, 1, (off_t)at, RWF_NOWAIT);
    if (got >= 0 || errno == EAGAIN)
        return got >= 0;
#else
    (void)fd;
    (void)at;
#endif
    return -1;
}

/* The number of pages, `step` apart from `low` on, that are in memory according to a mapping; all
 * if that is unknown. This is used for tmpfs. */
static unsigned count_mapped(int fd, uint64_t low, uint64_t step)
{
    uint64_t from = low / TNF_PAGE * TNF_PAGE, n = low - from + step * (SAMPLES - 1) + 1;
    unsigned there = 0;
    uint8_t *p = n <= SIZE_MAX ? mmap(NULL, (size_t)n, PROT_READ, MAP_SHARED, fd, (off_t)from)
                               : MAP_FAILED;
    if (p == MAP_FAILED)
        return SAMPLES;
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint8_t in_core = 1;
        uint64_t at = (low - from + step * i) / TNF_PAGE * TNF_PAGE;
        there += mincore(p + at, 1, &in_core) != 0 || (in_core & 1);
    }
    munmap(p, (size_t)n);
    return there;
}

/* Samples pages of the wanted range: are at least half of them in the cache? */
static bool mostly_cached(const tnf_intake *in)
{
    unsigned there = 0;
    uint64_t step = (in->high - in->low) / SAMPLES;
    for (unsigned i = 0; i < SAMPLES; i++) {
        int cached = page_read(in->source->fd, in->low + step * i);
        if (cached < 0)
            return count_mapped(in->source->fd, in->low, step) * 2 >= SAMPLES;
        there += (unsigned)cached;
    }
    return there * 2 >= SAMPLES;
}

/* Opens a second descriptor of the same file; -1 if the file system cannot. */
static int open_again(int fd, int more)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC | more);
}

static int open_direct(int fd)
{
    return open_again(fd, O_DIRECT);
}

#else

static bool mostly_cached(const tnf_intake *in)
{
    (void)in;
    return true;
}

static int open_again(int fd, int more)
{
    (void)fd;
    (void)more;
    return -1;
}

static int open_direct(int fd)
{
    return open_again(fd, 0);
}

#endif

void tnf_intake_open(tnf_intake *in, tnf_device_read_mode mode)
{
    in->direct = -1;
    in->cached = true;
    if (in->source->fd < 0) {
        in->cached = !in->source->remote;
        return;
    }
    if (mode == TNF_DEVICE_READ_AUTO)
        in->cached = mostly_cached(in);
    if (mode == TNF_DEVICE_READ_DIRECT || !in->cached)
        in->direct = open_direct(in->source->fd);
    if (in->direct >= 0)
        in->cached = false;
    else if (!in->cached)
        tnf_source_advise(in->source, in->low, in->high - in->low, TNF_WILL_NEED);
}

void tnf_intake_close(tnf_intake *in)
{
    if (in->direct >= 0)
        close(in->direct);
    in->direct = -1;
}

int tnf_intake_again(const tnf_intake *in)
{
    return in->source->fd >= 0 ? open_again(in->source->fd, 0) : -1;
}

void tnf_intake_give(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Reads complete pages; *done is the number of bytes read. A file system may fail a direct read
 * later on, so the caller reads missing bytes through the cache. */
static void read_pages(int fd, uint64_t at, size_t n, uint8_t *dst, size_t *done)
{
    for (*done = 0; *done < n;) {
        ssize_t got = pread(fd, dst + *done, n - *done, (off_t)(at + *done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        *done += (size_t)got;
        if ((size_t)got % TNF_PAGE)
            break;
    }
}

tnf_status tnf_intake_read(const tnf_intake *in, uint64_t at, size_t n, uint8_t *slot,
                           const uint8_t **out, tnf_error *e)
{
    uint8_t *dst = slot;
    size_t done = 0;
    if (in->direct >= 0) {
        uint64_t from = at / TNF_PAGE * TNF_PAGE, until = at + n, size = in->source->size;
        until = (until + TNF_PAGE - 1) / TNF_PAGE * TNF_PAGE;
        if (until > size)
            until = size / TNF_PAGE * TNF_PAGE;
        dst = slot + (at - from);
        if (until > from)
            read_pages(in->direct, from, (size_t)(until - from), slot, &done);
        done = done > at - from ? done - (size_t)(at - from) : 0;
        done = done < n ? done : n;
    }
    *out = dst;
    if (done == n)
        return TNF_OK;
    tnf_status status = tnf_source_read(in->source, at + done, dst + done, n - done, e);
    if (status != TNF_OK && in->label)
        tnf_error_prefix(e, in->label);
    return status;
}
