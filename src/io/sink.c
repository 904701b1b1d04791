/* SPDX-License-Identifier: MIT */
/* Sinks: the common part of all targets. Small writes are gathered in a buffer, large ones pass
 * through, and bytes that are only copied from file to file never leave the kernel. */
#include "io/sink.h"

#include "base/buf.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER     (64u << 10)
#define COPY_BLOCK (1u << 20)  /* through memory */
#define COPY_CHUNK (16u << 20) /* inside the kernel: small enough to react to a signal soon */
#define WINDOW     (2u << 20)  /* over the source; small enough to stay in the CPU's cache */
#define PAGE       4096u       /* of the page cache, at least */
#define HOLE       (2 * PAGE)  /* the shortest hole that is made */
#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif

tnf_status tnf_sink_new(tnf_sink **out, const tnf_sink_ops *ops, void *ctx,
                        const tnf_allocator *alloc, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(alloc);
    tnf_sink *s = tnf_alloc(&a, sizeof *s);
    uint8_t *buffer = tnf_alloc(&a, BUFFER);
    if (!s || !buffer) {
        tnf_free(&a, s, sizeof *s);
        tnf_free(&a, buffer, BUFFER);
        return tnf_no_memory("a sink", e);
    }
    *s = (tnf_sink) { .ops = *ops, .ctx = ctx, .alloc = a, .fd = -1, .buffer = buffer };
    *out = s;
    return TNF_OK;
}

tnf_status tnf_sink_custom(tnf_sink **out, const tnf_sink_ops *ops, void *ctx, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(ops, "ops", e));
    if (ops->version == 0 || ops->version > TNF_SINK_OPS_VERSION || !ops->write)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the ops of a sink need the version %u and the function write",
                        TNF_SINK_OPS_VERSION);
    return tnf_sink_new(out, ops, ctx, NULL, e);
}

/* Every failure that loses bytes is kept: the bytes after them must not be committed. */
static tnf_status note_failure(tnf_sink *s, tnf_status status)
{
    s->failed = s->failed || status != TNF_OK;
    return status;
}

static tnf_status put_bytes(tnf_sink *s, const void *bytes, size_t n, tnf_error *e)
{
    tnf_status status;
    TNF_CALL(status, e, s->ops.write, s->ctx, bytes, n);
    return note_failure(s, status);
}

/* Fails if the sink may no longer take or commit bytes. */
static tnf_status check_usable(const tnf_sink *s, tnf_error *e)
{
    if (s->done)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the sink was committed already");
    if (s->failed)
        return tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "an earlier write to the sink failed");
    return TNF_OK;
}

tnf_status tnf_sink_flush(tnf_sink *s, tnf_error *e)
{
    size_t n = s->buffered;
    s->buffered = 0;
    return n ? put_bytes(s, s->buffer, n, e) : TNF_OK;
}

tnf_status tnf_sink_grew(tnf_sink *s, uint64_t n, tnf_error *e)
{
    return put_bytes(s, NULL, (size_t)n, e);
}

/* Writes n zeros as a hole; only for targets that may have holes. */
static tnf_status leave_hole(tnf_sink *s, uint64_t n, tnf_error *e)
{
    TNF_TRY(check_usable(s, e));
    TNF_TRY(tnf_sink_flush(s, e));
    if (lseek(s->fd, (off_t)n, SEEK_CUR) < 0)
        return note_failure(s, tnf_fail_sys(e, errno, "cannot write"));
    s->written += n;
    s->hole_end = s->written;
    s->hole = true;
    return put_bytes(s, NULL, (size_t)n, e); /* reports the growth to the back-end */
}

tnf_status tnf_sink_zeros(tnf_sink *s, uint64_t n, tnf_error *e)
{
    static const uint8_t zeros[512];
    bool worth = s->hole_worth == TNF_HOLES_ALWAYS ||
                 (s->hole_worth && n / s->hole_worth > s->written - s->hole_end);
    if (worth && n >= HOLE && n <= INT64_MAX)
        return leave_hole(s, n, e);
    for (size_t part; n > 0; n -= part) {
        part = n < sizeof zeros ? (size_t)n : sizeof zeros;
        TNF_TRY(tnf_sink_write(s, zeros, part, e));
    }
    return TNF_OK;
}

/* Files are written in pieces that begin at multiples of the buffer's size, or the kernel gives
 * them small pages. Returns how many of n bytes fill the buffer; the rest is then passed
 * through. */
static size_t to_boundary(const tnf_sink *s, uint64_t n)
{
    size_t head = s->fd >= 0 && n >= BUFFER ? (size_t)((BUFFER - s->written % BUFFER) % BUFFER) : 0;
    return head <= BUFFER - s->buffered ? head : 0;
}

/* The caller checks that they fit. */
static void gather_bytes(tnf_sink *s, const uint8_t *bytes, size_t n)
{
    if (n)
        memcpy(s->buffer + s->buffered, bytes, n);
    s->buffered += n;
    s->written += n;
}

tnf_status tnf_sink_write(tnf_sink *s, const void *bytes, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_need(s, "sink", e));
    TNF_TRY(tnf_need_array(bytes, n, "bytes", e));
    TNF_TRY(check_usable(s, e));
    const uint8_t *p = bytes;
    size_t head = to_boundary(s, n);
    if (head) {
        gather_bytes(s, p, head);
        p += head;
        n -= head;
    }
    if (n > BUFFER - s->buffered)
        TNF_TRY(tnf_sink_flush(s, e));
    size_t whole = n < BUFFER ? 0 : s->fd >= 0 ? n - (s->written + n) % BUFFER : n;
    if (whole) {
        s->written += whole;
        TNF_TRY(put_bytes(s, p, whole, e));
        p += whole;
        n -= whole;
    }
    gather_bytes(s, p, n);
    return TNF_OK;
}

tnf_status tnf_sink_patch(tnf_sink *s, uint64_t at, const void *bytes, size_t n, tnf_error *e)
{
    uint64_t gone = s->written - s->buffered; /* the other bytes are still in the buffer */
    if (!s->patch || s->done || s->failed || at > s->written || n > s->written - at)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "the sink cannot go back to byte %llu",
                        (unsigned long long)at);
    size_t first = at >= gone ? 0 : gone - at < n ? (size_t)(gone - at) : n;
    if (first)
        TNF_TRY(note_failure(s, s->patch(s->ctx, at, bytes, first, e)));
    if (first < n)
        memcpy(s->buffer + (at + first - gone), (const uint8_t *)bytes + first, n - first);
    return TNF_OK;
}

/* Copies inside the kernel as far as possible. *left becomes the number of remaining bytes. TNF_OK
 * with *left > 0 means that this kernel cannot do it, or not between these two files. */
static tnf_status copy_in_kernel(tnf_sink *s, const tnf_source *from, uint64_t *offset,
                                 uint64_t *left, tnf_error *e)
{
#ifdef __linux__
    while (*left > 0 && from->fd >= 0 && s->fd >= 0) {
        off_t at = (off_t)*offset;
        size_t want = *left < COPY_CHUNK ? (size_t)*left : COPY_CHUNK;
        ssize_t got = copy_file_range(from->fd, &at, s->fd, NULL, want, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
            return note_failure(s, tnf_fail_sys(e, errno, "cannot write"));
        if (got <= 0)
            break; /* not between these two, or a truncated source, which read will report */
        *offset += (uint64_t)got;
        *left -= (uint64_t)got;
        s->written += (uint64_t)got;
        TNF_TRY(put_bytes(s, NULL, (size_t)got, e)); /* reports the growth to the back-end */
    }
#else
    (void)s, (void)from, (void)offset, (void)left, (void)e;
#endif
    return TNF_OK;
}

/* The write could not read its window, or the window contained the end of the file: the source was
 * truncated, or its disk fails. Reading shows which. */
static tnf_status window_failed(tnf_sink *s, const tnf_source *from, uint64_t offset, size_t n,
                                tnf_error *e)
{
    for (size_t part; n > 0; offset += part, n -= part) {
        part = n < BUFFER ? n : BUFFER;
        TNF_TRY(tnf_source_read(from, offset, s->buffer, part, e));
    }
    return tnf_fail_sys(e, EFAULT, "cannot read");
}

/* Writes from windows over the source. This is faster than copying in the kernel if the pages of
 * the two files are not aligned, and a fallback if the kernel cannot copy. Only the kernel touches
 * a window, so a truncated source is an error (EFAULT) and not a signal. Within a page, bytes past
 * the end would read as zeros, so the size is checked afterwards. */
static tnf_status copy_mapped(tnf_sink *s, const tnf_source *from, uint64_t *offset, uint64_t *left,
                              tnf_error *e)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    while (*left >= BUFFER && *offset <= from->size && *left <= from->size - *offset) {
        size_t skip = (size_t)(*offset % page);
        size_t n = *left < WINDOW - skip ? (size_t)*left : WINDOW - skip;
        n -= (size_t)((s->written + n) % BUFFER); /* the rest is written with the next bytes */
        if (n == 0)
            return TNF_OK;
        uint8_t *window = mmap(NULL, skip + n, PROT_READ, MAP_SHARED | MAP_POPULATE, from->fd,
                               (off_t)(*offset - skip));
        if (window == MAP_FAILED)
            return TNF_OK;
        tnf_error error = { .offset = TNF_NO_OFFSET };
        tnf_status status = put_bytes(s, window + skip, n, &error);
        munmap(window, skip + n);
        struct stat st;
        bool cut = fstat(from->fd, &st) != 0 || (uint64_t)st.st_size < *offset + n;
        if (cut || (status != TNF_OK && error.sys == EFAULT))
            return window_failed(s, from, *offset, n, e);
        if (status != TNF_OK && e)
            *e = error;
        TNF_TRY(status);
        *offset += n;
        *left -= n;
        s->written += n;
    }
    return TNF_OK;
}

/* Gathers small pieces in the buffer, like small writes. */
static tnf_status copy_small(tnf_sink *s, const tnf_source *from, uint64_t offset, size_t n,
                             tnf_error *e)
{
    if (n > BUFFER - s->buffered)
        TNF_TRY(tnf_sink_flush(s, e));
    TNF_TRY(tnf_source_read(from, offset, s->buffer + s->buffered, n, e));
    s->buffered += n;
    s->written += n;
    return TNF_OK;
}

static tnf_status copy_data(tnf_sink *s, const tnf_source *from, uint64_t offset, uint64_t n,
                            tnf_error *e)
{
    if (n < BUFFER)
        return copy_small(s, from, offset, (size_t)n, e);
    if (s->fd >= 0 && from->fd >= 0) {
        size_t head = to_boundary(s, n);
        TNF_TRY(head ? copy_small(s, from, offset, head, e) : TNF_OK);
        offset += head;
        n -= head;
        TNF_TRY(tnf_sink_flush(s, e));
        if ((offset - s->written) % PAGE == 0 || from->map_why)
            TNF_TRY(copy_in_kernel(s, from, &offset, &n, e));
        if (!from->map_why)
            TNF_TRY(copy_mapped(s, from, &offset, &n, e));
    }
    if (n < BUFFER)
        return copy_small(s, from, offset, (size_t)n, e);
    size_t size = n < COPY_BLOCK ? (size_t)n : COPY_BLOCK;
    uint8_t *block = tnf_alloc(&s->alloc, size);
    if (!block)
        return tnf_no_memory("copying", e);
    tnf_status status = TNF_OK;
    while (n > 0 && status == TNF_OK) {
        size_t part = n < size ? (size_t)n : size;
        status = tnf_source_read(from, offset, block, part, e);
        if (status == TNF_OK)
            status = tnf_sink_write(s, block, part, e);
        offset += part;
        n -= part;
    }
    tnf_free(&s->alloc, block, size);
    return status;
}

tnf_status tnf_sink_copy(tnf_sink *s, const tnf_source *from, uint64_t offset, uint64_t n,
                         tnf_error *e)
{
    TNF_TRY(check_usable(s, e));
    if (s->skip) {
        bool taken = false;
        TNF_TRY(tnf_sink_flush(s, e));
        TNF_TRY(s->skip(s->ctx, from, offset, n, &taken, e));
        s->written += taken ? n : 0;
        if (taken)
            return TNF_OK;
    }
    bool holes = from->sparse && s->hole_worth != TNF_HOLES_NEVER && offset <= from->size &&
                 n <= from->size - offset;
    for (uint64_t run; holes && n > 0; offset += run, n -= run) {
        bool hole;
        run = tnf_source_run(from, offset, n, &hole);
        TNF_TRY(hole && run >= HOLE ? leave_hole(s, run, e) : copy_data(s, from, offset, run, e));
    }
    return n ? copy_data(s, from, offset, n, e) : TNF_OK;
}

tnf_status tnf_sink_commit(tnf_sink *s, tnf_error *e)
{
    TNF_TRY(tnf_need(s, "sink", e));
    TNF_TRY(check_usable(s, e));
    TNF_TRY(tnf_sink_flush(s, e));
    if (s->hole && ftruncate(s->fd, (off_t)s->written) != 0)
        return note_failure(s, tnf_fail_sys(e, errno, "cannot write"));
    tnf_status status = TNF_OK;
    if (s->ops.commit)
        TNF_CALL(status, e, s->ops.commit, s->ctx);
    s->done = status == TNF_OK || status == TNF_EUNSYNCED;
    return s->done ? status : note_failure(s, status);
}

void tnf_sink_close(tnf_sink *s)
{
    if (!s)
        return;
    if (!s->done && s->ops.abort)
        s->ops.abort(s->ctx);
    if (s->release)
        s->release(s->ctx);
    tnf_allocator a = s->alloc;
    tnf_free(&a, s->buffer, BUFFER);
    tnf_free(&a, s, sizeof *s);
}

/* ----------------------------------------------------------------- memory */

struct memory {
    tnf_buf bytes;
};

static tnf_status memory_write(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct memory *m = ctx;
    tnf_buf_put(&m->bytes, bytes, n);
    return tnf_buf_status(&m->bytes, "the memory sink", e);
}

static tnf_status memory_patch(void *ctx, uint64_t at, const void *bytes, size_t n, tnf_error *e)
{
    struct memory *m = ctx;
    (void)e;
    memcpy(m->bytes.p + at, bytes, n);
    return TNF_OK;
}

static void memory_release(void *ctx)
{
    struct memory *m = ctx;
    tnf_allocator a = m->bytes.alloc;
    tnf_buf_free(&m->bytes);
    tnf_free(&a, m, sizeof *m);
}

static const tnf_sink_ops memory_ops = { .version = TNF_SINK_OPS_VERSION, .write = memory_write };

tnf_status tnf_sink_memory(tnf_sink **out, tnf_error *e)
{
    *out = NULL;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    struct memory *m = tnf_alloc(&a, sizeof *m);
    if (!m)
        return tnf_no_memory("a sink", e);
    tnf_buf_init(&m->bytes, &a, UINT64_MAX);
    tnf_status status = tnf_sink_new(out, &memory_ops, m, &a, e);
    if (status != TNF_OK) {
        memory_release(m);
        return status;
    }
    (*out)->release = memory_release;
    (*out)->patch = memory_patch;
    return TNF_OK;
}

tnf_str tnf_sink_bytes(const tnf_sink *s)
{
    if (!s || s->ops.write != memory_write)
        return (tnf_str) { NULL, 0 };
    const struct memory *m = s->ctx;
    return (tnf_str) { (const char *)m->bytes.p, m->bytes.n };
}
