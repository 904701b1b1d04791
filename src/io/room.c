/* SPDX-License-Identifier: MIT */
/* Room in a new file that several threads fill at once, through a mapping.
 *
 *   write()     one thread at a time: the kernel holds the file's lock while it copies
 *   a mapping   each thread allocates, clears and fills its own pages
 *
 * If files are in memory (tmpfs), four or more threads are faster than one that writes; on a disk
 * they are not. Touching a page for which the file system has no space raises SIGBUS. So pages are
 * allocated before they are touched, and missing space is an ordinary error.
 */
#include "base/error.h"
#include "base/pool.h"
#include "io/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORTH_THREADS 4u                  /* fewer are slower than write() */
#define WORTH_ROOM    ((uint64_t)8 << 20) /* below this starting threads costs more */
#if defined __linux__ && !defined MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

tnf_status tnf_sink_room(tnf_room *out, tnf_sink *s, uint64_t n, tnf_error *e)
{
    *out = (tnf_room) { .fd = s->fd, .at = s->written, .n = n };
#ifdef __linux__
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!s->in_memory || s->done || s->failed || n < WORTH_ROOM || n > INT64_MAX / 2 ||
        tnf_pool_threads(0) < WORTH_THREADS)
        return TNF_OK;
    TNF_TRY(tnf_sink_flush(s, e));
    if (ftruncate(s->fd, (off_t)(s->written + n)) != 0)
        return TNF_OK; /* the write will fail with the reason */
    out->skip = (size_t)(s->written % page);
    uint8_t *map = mmap(NULL, out->skip + n, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd,
                        (off_t)(s->written - out->skip));
    if (map != MAP_FAILED)
        out->p = map + out->skip;
    else if (ftruncate(s->fd, (off_t)s->written) != 0)
        return tnf_fail_sys(e, errno, "cannot write");
#else
    (void)e;
#endif
    return TNF_OK;
}

/* The pages that contain the bytes [from, from + n) of the room. */
static uint8_t *pages_of(const tnf_room *r, uint64_t from, size_t n, size_t *size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *map = r->p - r->skip;
    size_t first = (size_t)(r->skip + from) / page * page;
    *size = (size_t)(r->skip + from) + n - first;
    return map + first;
}

tnf_status tnf_room_ready(const tnf_room *r, uint64_t from, size_t n, tnf_error *e)
{
#ifdef __linux__
    size_t size;
    uint8_t *pages = pages_of(r, from, n, &size);
    if (madvise(pages, size, MADV_POPULATE_WRITE) == 0)
        return TNF_OK;
    int failed; /* an older kernel, or no space: the fallback reports the reason */
    while ((failed = fallocate(r->fd, 0, (off_t)(r->at + from), (off_t)n)) != 0 && errno == EINTR)
        continue;
    return failed ? tnf_fail_sys(e, errno, "cannot write") : TNF_OK;
#else
    (void)r, (void)from, (void)n, (void)e;
    return TNF_OK;
#endif
}

void tnf_room_leave(const tnf_room *r, uint64_t from, size_t n)
{
    size_t size;
    uint8_t *pages = pages_of(r, from, n, &size);
    (void)madvise(pages, size, MADV_DONTNEED); /* they stay in the file */
}

tnf_status tnf_room_end(tnf_sink *s, tnf_room *r, bool filled, tnf_error *e)
{
    munmap(r->p - r->skip, r->skip + (size_t)r->n);
    if (!filled)
        return ftruncate(s->fd, (off_t)s->written) == 0 ? TNF_OK
                                                        : tnf_fail_sys(e, errno, "cannot write");
    if (lseek(s->fd, (off_t)(s->written + r->n), SEEK_SET) < 0) {
        s->failed = true;
        return tnf_fail_sys(e, errno, "cannot write");
    }
    s->written += r->n;
    return tnf_sink_grew(s, r->n, e);
}
