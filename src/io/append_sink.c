/* SPDX-License-Identifier: MIT */
/* A file that grows at its end, or stays unchanged.
 *
 *   before   │ old bytes │
 *   write    │ old bytes │ new bytes …          all but the last few
 *   commit   │ old bytes │ new bytes … │ last │ fsync, then the last ones, then fsync
 *   abort    │ old bytes │
 *
 * Readers of such formats begin at the end of the file. They find the new last bytes only when
 * everything that these refer to is on the disk. Some readers search backwards for an end record
 * that may be anywhere after the old bytes. For them, the file always ends with the old end
 * record:
 *
 *   begin    │ old bytes │                      hole │ end │     one write, fsync
 *   write    │ old bytes │ new bytes …          hole │ end │     or the end moved further back
 *   commit   │ old bytes │ new bytes … │ last │ hole │ end │     fsync
 *            │ old bytes │ new bytes … │ last │                  truncate, fsync
 *   abort    │ old bytes │                                       truncate, if it ends with the end
 *
 * So the file is intact at every moment, even if the program or the machine stops: no byte is
 * written over an end before the next end is on the disk. The claim on the file prevents two
 * programs from appending at once.
 */
#include "base/error.h"
#include "io/claim.h"
#include "io/fs.h"
#include "io/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LAST  64u        /* bytes that are written last; no footer has more */
#define AHEAD (8u << 20) /* room after the written bytes, before the old end */
#define PAGE  4096u      /* a write within a page is complete or does not happen */

struct growing {
    int fd;
    tnf_claim own; /* used if the caller has no claim */
    bool sync;
    uint64_t size, written, handed; /* before; now; up to here writeback was started */
    uint8_t last[LAST];
    size_t held; /* bytes in it */
    uint8_t end[LAST];
    size_t nend;     /* bytes in it; 0: no end is kept */
    uint64_t kept;   /* where the file ends, including the end; 0: not written yet */
    uint64_t from;   /* the first new byte */
    uint64_t intact; /* the size to return to, at which the file ends with `end`; 0: none */
    tnf_allocator alloc;
};

static tnf_status sync_file(const struct growing *g, tnf_error *e)
{
    return g->sync ? tnf_fs_sync(g->fd, e) : TNF_OK;
}

/* Moves the end to `at`, a multiple of PAGE; on failure it stays where it is. */
static bool move_end(struct growing *g, uint64_t at)
{
    ssize_t got;
    do
        got = pwrite(g->fd, g->end, g->nend, (off_t)(at - g->nend));
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)g->nend) {
        g->kept = at;
        return true;
    }
    if (got >= 0)
        errno = ENOSPC;
    return false;
}

/* Makes room for n bytes before the end. */
static tnf_status make_room(struct growing *g, uint64_t n, tnf_error *e)
{
    uint64_t need, at;
    if (!g->nend || (g->kept && g->written + n + g->nend <= g->kept))
        return TNF_OK;
    need = g->written + n + g->nend;
    if (need < g->size) /* the end must be at the end of the file */
        need = g->size;
    uint64_t ahead = g->written - g->from > AHEAD ? g->written - g->from : AHEAD; /* few syncs */
    at = (need + ahead + PAGE - 1) / PAGE * PAGE;
    if (at > INT64_MAX)
        return tnf_fail_sys(e, EFBIG, "cannot write");
    if (!move_end(g, at) && !move_end(g, (need + PAGE - 1) / PAGE * PAGE))
        return tnf_fail_sys(e, errno, "cannot write");
    return sync_file(g, e);
}

static tnf_status put_bytes(struct growing *g, const uint8_t *bytes, size_t n, tnf_error *e)
{
    TNF_TRY(make_room(g, n, e));
    for (size_t done = 0; done < n;) {
        ssize_t got = pwrite(g->fd, bytes + done, n - done, (off_t)g->written);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tnf_fail_sys(e, errno, "cannot write");
        done += (size_t)got;
        g->written += (uint64_t)got;
    }
    if (g->sync)
        tnf_fs_write_back(g->fd, g->written, &g->handed);
    return TNF_OK;
}

/* Writes everything but the last LAST bytes of the held and the new ones. */
static tnf_status growing_write(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct growing *g = ctx;
    const uint8_t *p = bytes;
    if (n >= LAST) {
        TNF_TRY(put_bytes(g, g->last, g->held, e));
        TNF_TRY(put_bytes(g, p, n - LAST, e));
        memcpy(g->last, p + n - LAST, LAST);
        g->held = LAST;
        return TNF_OK;
    }
    size_t over = g->held + n > LAST ? g->held + n - LAST : 0;
    TNF_TRY(put_bytes(g, g->last, over, e));
    memmove(g->last, g->last + over, g->held - over);
    memcpy(g->last + g->held - over, p, n);
    g->held += n - over;
    return TNF_OK;
}

static tnf_status growing_commit(void *ctx, tnf_error *e)
{
    struct growing *g = ctx;
    tnf_error why;
    if (!g->nend)
        TNF_TRY(sync_file(g, e));
    TNF_TRY(put_bytes(g, g->last, g->held, e));
    if (g->nend) {
        TNF_TRY(sync_file(g, e));
        TNF_TRY(tnf_fs_cut(g->fd, g->written, e));
    }
    return sync_file(g, &why) == TNF_OK ? TNF_OK : tnf_fail_unsynced(e, &why);
}

/* If the file did not end with the old end before the new bytes, the end after them stays: the
 * file is intact with it. */
static void growing_abort(void *ctx)
{
    struct growing *g = ctx;
    uint64_t size = g->nend ? g->intact : g->size;
    if ((size || !g->nend) && tnf_fs_cut(g->fd, size, NULL) == TNF_OK)
        (void)sync_file(g, NULL);
}

static void growing_release(void *ctx)
{
    struct growing *g = ctx;
    tnf_claim_drop(&g->own);
    tnf_allocator a = g->alloc;
    tnf_free(&a, g, sizeof *g);
}

/* Fails with the reason why a path could not be claimed for writing. */
static tnf_status not_claimed(const char *path, tnf_error *e)
{
    struct stat st;
    int fd = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? tnf_fs_open(path, O_RDWR, 0) : -1;
    int err = errno;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode)))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "cannot append: it is not a regular file");
    return tnf_fail_sys(e, err, "cannot append");
}

static tnf_status open_end(struct growing *g, const char *path, const tnf_claim *claim,
                           tnf_error *e)
{
    struct stat st;
    if (!claim) {
        TNF_TRY(tnf_claim_take(&g->own, path, NULL, e));
        claim = &g->own;
    }
    if (claim->fd < 0 || !claim->writable)
        return not_claimed(path, e);
    g->fd = claim->fd;
    if (fstat(g->fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot append");
    if ((uint64_t)st.st_size != g->size)
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                        "cannot append: the file has changed meanwhile, from %llu to %llu bytes",
                        (unsigned long long)g->size, (unsigned long long)st.st_size);
    return TNF_OK;
}

static const tnf_sink_ops growing_ops = {
    .version = TNF_SINK_OPS_VERSION,
    .write = growing_write,
    .commit = growing_commit,
    .abort = growing_abort,
};

tnf_status tnf_sink_append(tnf_sink **out, const char *path, const struct tnf_claim *claim,
                           uint64_t size, unsigned flags, const tnf_allocator *alloc, tnf_error *e)
{
    *out = NULL;
    tnf_allocator a = tnf_allocator_or_default(alloc);
    struct growing *g = tnf_alloc0(&a, sizeof *g);
    if (!g)
        return tnf_no_memory("a file", e);
    *g = (struct growing) {
        .fd = -1, .own.fd = -1, .size = size, .written = size, .handed = size, .alloc = a
    };
    g->sync = !(flags & TNF_SINK_NO_SYNC);
    tnf_status status = open_end(g, path, claim, e);
    if (status == TNF_OK)
        status = tnf_sink_new(out, &growing_ops, g, &a, e);
    if (status != TNF_OK) {
        growing_release(g);
        return status;
    }
    (*out)->written = size;
    (*out)->release = growing_release;
    return TNF_OK;
}

/* Would the file end with `end` if it were truncated to that size? */
static bool ends_with_end(const struct growing *g, uint64_t size)
{
    uint8_t there[LAST];
    size_t got = 0;
    return size >= g->nend &&
           tnf_fs_read_at(g->fd, there, g->nend, size - g->nend, &got, NULL) == TNF_OK &&
           got == g->nend && memcmp(there, g->end, got) == 0;
}

tnf_status tnf_sink_keep_end(tnf_sink *s, const void *end, size_t n, uint64_t from, tnf_error *e)
{
    struct growing *g = s->ctx;
    if (s->ops.write != growing_write || s->written != g->size || n == 0 || n > LAST ||
        from > g->size)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the last %zu bytes of the file cannot be kept while it grows", n);
    memcpy(g->end, end, n);
    g->nend = n;
    g->kept = ends_with_end(g, g->size) ? g->size : 0;
    g->intact = ends_with_end(g, from) ? from : 0;
    g->from = g->written = g->handed = s->written = from;
    return make_room(g, 0, e);
}
