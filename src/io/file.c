/* SPDX-License-Identifier: MIT */
/* Files: pread for copies, mmap for views.
 *
 * Copied bytes never come through the mapping: if another program truncates the file, pread() ends
 * early, which is an error here; a mapping would raise SIGBUS. The mapping is made once, for the
 * first view, by any thread.
 */
#include "base/ckd.h"
#include "base/sized.h"
#include "io/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

#define SPOOL_BLOCK (1u << 20)
#define MERGE_GAP   (64u << 10) /* reading through a gap this small is faster than another call */
#define MERGE_IOV   256u
#define BLOCK       512u              /* the unit of st_blocks on every file system */
#define MAX_READ    ((size_t)1 << 30) /* Linux moves at most 2 GiB per call */

struct file {
    int fd;
    bool own_fd;
    uint64_t size;
    _Atomic(void *) mapping;
    tnf_allocator alloc;
};

static tnf_status too_short(const struct file *f, uint64_t at, tnf_error *e)
{
    return tnf_fail(e, TNF_ETRUNCATED, at,
                    "the file ended at byte %llu while it was read; it had %llu bytes when opened",
                    (unsigned long long)at, (unsigned long long)f->size);
}

static tnf_status file_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const struct file *f = ctx;
    for (size_t done = 0; done < n;) {
        size_t want = n - done < MAX_READ ? n - done : MAX_READ;
        ssize_t got = pread(f->fd, (uint8_t *)dst + done, want, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tnf_fail_sys(e, errno, "cannot read at byte %llu",
                                (unsigned long long)(offset + done));
        if (got == 0)
            return too_short(f, offset + done, e);
        done += (size_t)got;
    }
    return TNF_OK;
}

/* Returns how many of the ranges one preadv() can take; gaps between them are read into a spare
 * buffer. Fills iov, and sets *niov to the number of its entries. */
static size_t gather_ranges(const tnf_range *ranges, size_t n, struct iovec *iov, int *niov,
                            void *spare)
{
    size_t taken = 0, total = 0;
    uint64_t end = ranges[0].offset;
    for (*niov = 0; taken < n && *niov + 2 <= (int)MERGE_IOV; taken++) {
        const tnf_range *r = &ranges[taken];
        if (r->offset < end || r->offset - end > MERGE_GAP || r->n > MAX_READ - total)
            break;
        size_t gap = (size_t)(r->offset - end);
        if (gap)
            iov[(*niov)++] = (struct iovec) { spare, gap };
        if (r->n)
            iov[(*niov)++] = (struct iovec) { r->dst, r->n };
        total += gap + r->n;
        end = r->offset + r->n;
    }
    return taken;
}

/* Reads the gathered entries; after a short read, continues where it stopped. */
static tnf_status read_gathered(const struct file *f, uint64_t offset, struct iovec *iov, int niov,
                                tnf_error *e)
{
    while (niov > 0) {
        ssize_t got = preadv(f->fd, iov, niov, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tnf_fail_sys(e, errno, "cannot read at byte %llu", (unsigned long long)offset);
        if (got == 0)
            return too_short(f, offset, e);
        offset += (uint64_t)got;
        while (niov > 0 && (size_t)got >= iov->iov_len) {
            got -= (ssize_t)iov->iov_len;
            iov++;
            niov--;
        }
        if (niov > 0) {
            iov->iov_base = (uint8_t *)iov->iov_base + got;
            iov->iov_len -= (size_t)got;
        }
    }
    return TNF_OK;
}

static tnf_status file_read_many(void *ctx, const tnf_range *ranges, size_t n, tnf_error *e)
{
    struct file *f = ctx;
    if (n == 1)
        return ranges->n ? file_read(ctx, ranges->offset, ranges->dst, ranges->n, e) : TNF_OK;
    void *spare = tnf_alloc(&f->alloc, MERGE_GAP);
    if (!spare)
        return tnf_no_memory("reading", e);
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < n && status == TNF_OK;) {
        struct iovec iov[MERGE_IOV];
        int niov;
        size_t taken = gather_ranges(ranges + i, n - i, iov, &niov, spare);
        if (taken > 1)
            status = read_gathered(f, ranges[i].offset, iov, niov, e);
        else if (ranges[i].n)
            status = file_read(ctx, ranges[i].offset, ranges[i].dst, ranges[i].n, e);
        i += taken ? taken : 1;
    }
    tnf_free(&f->alloc, spare, MERGE_GAP);
    return status;
}

static const void *file_map(void *ctx, uint64_t offset, uint64_t n)
{
    struct file *f = ctx;
    size_t size;
    if (n == 0 || !tnf_to_size(&size, f->size))
        return NULL;
    uint8_t *base = atomic_load(&f->mapping);
    if (!base) {
        void *fresh = mmap(NULL, size, PROT_READ, MAP_SHARED, f->fd, 0);
        if (fresh == MAP_FAILED)
            return NULL;
        void *expected = NULL;
        if (atomic_compare_exchange_strong(&f->mapping, &expected, fresh)) {
            base = fresh;
        } else {
            munmap(fresh, size);
            base = expected;
        }
    }
    return base + offset;
}

static void file_advise(void *ctx, uint64_t offset, uint64_t n, tnf_advice advice)
{
    struct file *f = ctx;
#ifdef POSIX_FADV_WILLNEED
    posix_fadvise(f->fd, (off_t)offset, (off_t)n,
                  advice == TNF_WILL_NEED ? POSIX_FADV_WILLNEED : POSIX_FADV_DONTNEED);
#endif
    uint8_t *base = atomic_load(&f->mapping);
    if (!base)
        return;
    /* madvise needs whole pages: all touched pages for a prefetch, only inner ones for a
     * release. */
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    bool want = advice == TNF_WILL_NEED;
    uint64_t from = (want ? offset : offset + page - 1) / page * page;
    uint64_t to = want ? offset + n : (offset + n) / page * page;
    if (from < to)
        (void)madvise(base + from, (size_t)(to - from), want ? MADV_WILLNEED : MADV_DONTNEED);
}

static void file_close(void *ctx)
{
    struct file *f = ctx;
    void *base = atomic_load(&f->mapping);
    if (base)
        munmap(base, (size_t)f->size);
    if (f->own_fd)
        close(f->fd);
    tnf_allocator alloc = f->alloc;
    tnf_free(&alloc, f, sizeof *f);
}

/* Page faults over a network are extremely slow, and a server may truncate the file. */
static bool on_network(int fd)
{
#ifdef __linux__
    static const uint32_t magics[] = {
        0x6969,     0x517b,     0xff534d42, 0xfe534d42, 0x65735546, 0x0bd00bd0, 0x00c36400,
        0x01021997, 0x5346414f, 0x47504653, 0x73757245, 0x19830326, 0x20030528, 0x7461636f,
    }; /* NFS SMB CIFS SMB2 FUSE Lustre Ceph 9P AFS GPFS Coda BeeGFS OrangeFS OCFS2 */
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if ((uint32_t)fs.f_type == magics[i])
            return true;
#else
    (void)fd;
#endif
    return false;
}

static const tnf_source_ops file_ops = {
    .version = TNF_SOURCE_OPS_VERSION,
    .read_at = file_read,
    .map = file_map,
    .read_many = file_read_many,
    .advise = file_advise,
    .close = file_close,
};

void tnf_source_measure(const tnf_source *s)
{
    struct stat st;
    if (s->ops.read_at != file_read || s->fd < 0 || fstat(s->fd, &st) != 0)
        return;
    struct file *f = s->ctx;
    tnf_source *mine = (tnf_source *)(uintptr_t)s;
    if (atomic_load(&f->mapping) || (uint64_t)st.st_size <= f->size)
        return;
    f->size = mine->size = (uint64_t)st.st_size;
    mine->stamp = tnf_stamp_of(&st);
}

/* Is the file still that long? A truncated file has no hole there: reading it reports the fault. */
static bool file_reaches(int fd, uint64_t end)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (uint64_t)st.st_size >= end;
}

uint64_t tnf_source_run(const tnf_source *s, uint64_t offset, uint64_t n, bool *hole)
{
    *hole = false;
#ifdef SEEK_DATA
    if (!s->sparse || n == 0)
        return n;
    off_t data = lseek(s->fd, (off_t)offset, SEEK_DATA);
    bool none = data < 0 && errno == ENXIO;
    uint64_t next = none ? offset + n : (uint64_t)data;
    if ((data < 0 && !none) || next == offset) {
        off_t end = data < 0 ? -1 : lseek(s->fd, data, SEEK_HOLE);
        return end > data && (uint64_t)end - offset < n ? (uint64_t)end - offset : n;
    }
    uint64_t run = next - offset < n ? next - offset : n;
    *hole = file_reaches(s->fd, offset + run);
    return run;
#else
    (void)s, (void)offset;
    return n;
#endif
}

static tnf_status over_fd(tnf_source **out, int fd, bool own, const struct stat *st,
                          tnf_access access, const tnf_allocator *alloc, tnf_error *e)
{
    uint64_t size = (uint64_t)st->st_size;
    tnf_allocator a = tnf_allocator_or_default(alloc);
    struct file *f = tnf_alloc0(&a, sizeof *f);
    if (!f)
        return tnf_no_memory("a file", e);
    f->fd = fd;
    f->own_fd = own;
    f->size = size;
    f->alloc = a;
    tnf_status status = tnf_source_new(out, &file_ops, f, size, &a, e);
    if (status != TNF_OK) {
        tnf_free(&a, f, sizeof *f);
        return status;
    }
    (*out)->fd = fd;
    (*out)->stamp = tnf_stamp_of(st);
    (*out)->network = on_network(fd);
    /* Searching for holes moves the file position, which must not change in the caller's
     * descriptor. */
    (*out)->sparse = own && (uint64_t)st->st_blocks * BLOCK < size;
    if (access == TNF_ACCESS_PREAD)
        (*out)->map_why = "the file was opened for pread";
    else if (access == TNF_ACCESS_AUTO && (*out)->network)
        (*out)->map_why = "the file is on a network file system";
    return TNF_OK;
}

static tnf_status look_at_regular(int fd, struct stat *st, tnf_error *e)
{
    if (fstat(fd, st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    if (S_ISDIR(st->st_mode))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "is a directory");
    if (!S_ISREG(st->st_mode))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "is not a regular file");
    return TNF_OK;
}

tnf_status tnf_source_open(tnf_source **out, const char *path, tnf_access access,
                           const tnf_allocator *alloc, tnf_error *e)
{
    *out = NULL;
    struct stat st;
    /* O_NONBLOCK: opening a FIFO must not block; the flag has no effect on a regular file */
    int fd = tnf_fs_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return tnf_fail_sys(e, errno, "cannot open");
    tnf_status status = look_at_regular(fd, &st, e);
    if (status == TNF_OK)
        status = over_fd(out, fd, true, &st, access, alloc, e);
    if (status != TNF_OK)
        close(fd);
    return status;
}

tnf_status tnf_source_file(tnf_source **out, const char *path, tnf_access access, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(path, "path", e));
    TNF_TRY(tnf_check_choice(access, TNF_ACCESS_PREAD, "access", e));
    return tnf_source_open(out, path, access, NULL, e);
}

/* ------------------------------------------------------------------ pipes */

tnf_status tnf_spool_write(int fd, const void *bytes, size_t n, tnf_error *e)
{
    const uint8_t *p = bytes;
    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return tnf_fail_sys(e, errno, "cannot write a temporary file");
        p += put;
        n -= (size_t)put;
    }
    return TNF_OK;
}

static tnf_status spool_into(int fd, int from, tnf_error *e)
{
    uint8_t *block = malloc(SPOOL_BLOCK);
    if (!block)
        return tnf_no_memory("reading a pipe", e);
    tnf_status status = TNF_OK;
    while (status == TNF_OK) {
        ssize_t got = read(from, block, SPOOL_BLOCK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            break;
        if (got < 0) {
            status = tnf_fail_sys(e, errno, "cannot read the pipe");
            break;
        }
        status = tnf_spool_write(fd, block, (size_t)got, e);
    }
    free(block);
    return status;
}

tnf_status tnf_spool_open(int *out, tnf_error *e)
{
    const char *dir = getenv("TMPDIR");
    char path[4096];
    *out = -1;
    int n = snprintf(path, sizeof path, "%s/tenfold-XXXXXX", dir && *dir ? dir : "/tmp");
    if (n < 0 || (size_t)n >= sizeof path)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "TMPDIR is too long");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        tnf_fail_sys(e, errno, "cannot make a temporary file");
        if (e) /* a missing directory does not mean that the file to read is missing */
            e->status = TNF_EIO;
        return TNF_EIO;
    }
    unlink(path);
    *out = fd;
    return TNF_OK;
}

tnf_status tnf_spool_source(tnf_source **out, int spool, tnf_access access,
                            const tnf_allocator *alloc, tnf_error *e)
{
    struct stat st;
    tnf_status status = TNF_OK;
    *out = NULL;
    if (fstat(spool, &st) != 0)
        status = tnf_fail_sys(e, errno, "cannot get the status of a temporary file");
    if (status == TNF_OK)
        status = over_fd(out, spool, true, &st, access, alloc, e);
    if (status != TNF_OK)
        close(spool);
    return status;
}

tnf_status tnf_source_fd(tnf_source **out, int fd, tnf_access access, tnf_error *e)
{
    *out = NULL;
    struct stat st;
    TNF_TRY(tnf_check_choice(access, TNF_ACCESS_PREAD, "access", e));
    if (fstat(fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the descriptor");
    if (S_ISREG(st.st_mode))
        return over_fd(out, fd, false, &st, access, NULL, e);
    if (S_ISDIR(st.st_mode))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "is a directory");
    int spool;
    TNF_TRY(tnf_spool_open(&spool, e));
    tnf_status status = spool_into(spool, fd, e);
    if (status == TNF_OK)
        return tnf_spool_source(out, spool, access, NULL, e);
    close(spool);
    return status;
}
