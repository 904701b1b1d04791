/* SPDX-License-Identifier: MIT */
/* Compacts a file: copies all live blocks, unchanged and in order, to a new file that replaces it.
 *
 *   path            locked by this process; another process that waits for the lock then finds that
 *                   the name belongs to another file, and opens that file
 *   new file        written without a name, synced, locked, renamed to path; the directory synced
 *
 * Only the holder of the exclusive lock makes the new file. Changing attributes works in the same
 * way, with another meta block.
 */
#include "ext/points/points.h"
#include "io/fs.h"
#include "io/lock.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 20)

struct compact {
    tnf_points *p;
    const uint8_t *meta; /* another meta block, or NULL */
    size_t meta_n;
    bool drop_unknown, placed;
    tnf_fresh fresh;
    uint64_t to;       /* bytes of the new file */
    uint64_t run, end; /* adjacent live blocks that are not copied yet */
    uint8_t *block;
};

/* ----------------------------------------------------------------- copying */

static tnf_status copy_run(struct compact *k, tnf_error *e)
{
    for (uint64_t at = k->run; at < k->end;) {
        TNF_TRY(tnf_points_go_on(k->p, e));
        size_t n = k->end - at < BLOCK ? (size_t)(k->end - at) : BLOCK;
        TNF_TRY(tnf_disk_read(k->p->fd, at, k->block, n, e));
        TNF_TRY(tnf_disk_write(k->p, k->fresh.fd, k->to, k->block, n, e));
        k->to += n;
        at += n;
    }
    k->run = k->end;
    return TNF_OK;
}

static bool is_live(const struct compact *k, const tnf_vs_chain *c)
{
    bool known = c->type == TNF_VS_POINT || c->type == TNF_VS_META;
    return c->type != TNF_VS_BLANK && (known || !k->drop_unknown);
}

static tnf_status copy_block(struct compact *k, tnf_error *e)
{
    const tnf_vs_chain *c = &k->p->chain;
    bool meta = c->type == TNF_VS_META;
    if (meta && c->at != k->p->meta_at)
        return tnf_fail(e, TNF_EFORMAT, c->at, "there is a second meta block");
    if (k->end != c->at || (meta && k->meta)) {
        TNF_TRY(copy_run(k, e));
        k->run = k->end = c->at;
    }
    if (!meta || !k->meta) {
        k->end = c->next;
        return TNF_OK;
    }
    TNF_TRY(tnf_disk_write(k->p, k->fresh.fd, k->to, k->meta, k->meta_n, e));
    k->to += k->meta_n;
    k->run = k->end = c->next;
    return TNF_OK;
}

static tnf_status copy_all(struct compact *k, tnf_error *e)
{
    static const uint8_t end = TNF_VS_END;
    tnf_vs_chain *c = &k->p->chain;
    k->run = 0;
    k->end = TNF_VS_HEADER;
    tnf_points_rewind(k->p, TNF_VS_HEADER);
    for (;;) {
        TNF_TRY(tnf_points_next(k->p, e));
        if (c->type == TNF_VS_END)
            break;
        if (is_live(k, c))
            TNF_TRY(copy_block(k, e));
    }
    TNF_TRY(copy_run(k, e));
    TNF_TRY(tnf_disk_write(k->p, k->fresh.fd, k->to, &end, 1, e));
    k->to++;
    return tnf_disk_sync(k->p, k->fresh.fd, e);
}

/* ---------------------------------------------------------------- replacing */

static tnf_status open_fresh(struct compact *k, tnf_error *e)
{
    struct stat st;
    if (fstat(k->p->fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    TNF_TRY(tnf_fresh_open(&k->fresh, k->p->path, 0600, e));
    tnf_keep_rights(k->fresh.fd, k->p->fd, &st);
    return TNF_OK;
}

/* Replaces the file by the new one. */
static tnf_status replace_file(struct compact *k, tnf_error *e)
{
    tnf_points *p = k->p;
    struct stat st;
    if (p->options.lock != TNF_POINTS_NO_LOCK)
        TNF_TRY(tnf_lock_take(k->fresh.fd, true, 0, e));
    if (fstat(k->fresh.fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the new file");
    TNF_TRY(tnf_points_go_on(p, e));
    TNF_TRY(tnf_fresh_place(&k->fresh, true, e));
    k->placed = true;
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    return tnf_disk_sync_placed(p, p->path, e);
}

/* Reports the old and new offset of each point. Both files have the same live blocks. */
static tnf_status tell_moves(struct compact *k, tnf_points_moved_fn moved, void *ctx, tnf_error *e)
{
    tnf_vs_chain *c = &k->p->chain;
    uint64_t to = TNF_VS_HEADER;
    tnf_points_rewind(k->p, TNF_VS_HEADER);
    for (;;) {
        TNF_TRY(tnf_vs_chain_next(c, e));
        if (c->type == TNF_VS_END)
            return TNF_OK;
        if (!is_live(k, c))
            continue;
        if (c->type == TNF_VS_POINT)
            moved(ctx, c->at, to);
        to += c->type == TNF_VS_META && k->meta ? k->meta_n : TNF_VS_HEAD + (uint64_t)c->length;
    }
}

static tnf_status rewrite_file(struct compact *k, tnf_points_moved_fn moved, void *ctx,
                               tnf_error *e)
{
    tnf_points *p = k->p;
    TNF_TRY(open_fresh(k, e));
    TNF_TRY(copy_all(k, e));
    tnf_status done = replace_file(k, e);
    if (done != TNF_OK && done != TNF_EUNSYNCED)
        return done;
    tnf_status status = moved ? tell_moves(k, moved, ctx, done == TNF_OK ? e : NULL) : TNF_OK;
    int old = p->fd;
    p->fd = k->fresh.fd;
    k->fresh.fd = -1;
    close(old); /* also releases its lock; waiting processes then check the name again */
    p->chain.size = k->to;
    p->tail = TNF_VS_HEADER;
    p->last = 0;
    p->seen = (tnf_point_id) { 0 };
    p->moved = !moved && (p->moved || p->used);
    tnf_points_forget(p);
    return done != TNF_OK ? done : status;
}

static tnf_status run_compact(struct compact *k, tnf_points_moved_fn moved, void *ctx, tnf_error *e)
{
    tnf_points *p = k->p;
    k->fresh.fd = -1;
    k->block = tnf_alloc(&p->alloc, BLOCK);
    if (!k->block)
        return tnf_no_memory("copying", e);
    tnf_status status = rewrite_file(k, moved, ctx, e);
    if (k->fresh.fd >= 0 && k->placed) { /* the new file has the name, so the next call opens it */
        close(p->fd);
        p->fd = -1;
    }
    tnf_fresh_drop(&k->fresh);
    tnf_free(&p->alloc, k->block, BLOCK);
    return status;
}

/* Checks whether compacting would remove anything. If not, every point is reported as unmoved. */
static tnf_status nothing_to_do(struct compact *k, bool *out, tnf_error *e)
{
    tnf_vs_chain *c = &k->p->chain;
    *out = true;
    tnf_points_rewind(k->p, TNF_VS_HEADER);
    for (;;) {
        TNF_TRY(tnf_points_next(k->p, e));
        if (c->type == TNF_VS_END)
            break;
        *out = *out && is_live(k, c);
    }
    *out = *out && c->terminal && c->at + 1 == c->size;
    return TNF_OK;
}

static tnf_status compact_points(tnf_points *p, unsigned flags, tnf_points_moved_fn moved,
                                 void *ctx, tnf_error *e)
{
    struct compact k = { .p = p, .fresh.fd = -1, .drop_unknown = flags & TNF_POINTS_DROP_UNKNOWN };
    bool nothing = false;
    if (moved) /* the old offsets are those that the caller has */
        TNF_TRY(tnf_points_check_moved(p, e));
    TNF_TRY(nothing_to_do(&k, &nothing, e));
    if (nothing)
        return moved ? tell_moves(&k, moved, ctx, e) : TNF_OK;
    return run_compact(&k, moved, ctx, e);
}

static void leave_open(tnf_points *p)
{
    if (p->fd >= 0)
        tnf_points_leave(p);
    p->busy = false;
}

tnf_status tnf_points_compact(tnf_points *p, unsigned flags, tnf_points_moved_fn moved, void *ctx,
                              tnf_error *e)
{
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_points_check_flags(flags, TNF_POINTS_DROP_UNKNOWN, e));
    TNF_TRY(tnf_points_enter(p, true, e));
    tnf_status status = compact_points(p, flags, moved, ctx, e);
    leave_open(p);
    return status;
}

/* -------------------------------------------------------------- attributes */

/* Counts the bytes that differ, and finds the first and last one. */
static size_t differing_bytes(const uint8_t *a, const uint8_t *b, size_t n, size_t *first,
                              size_t *last)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i]) {
            *first = count ? *first : i;
            *last = i;
            count++;
        }
    return count;
}

static tnf_status set_meta(tnf_points *p, const tnf_buf *meta, unsigned flags, tnf_error *e)
{
    size_t first = 0, last = 0, n = 0;
    bool same_length = meta->n == p->meta_n;
    if (same_length)
        n = differing_bytes(meta->p, p->meta_bytes, meta->n, &first, &last);
    if (same_length && n == 0)
        return TNF_OK;
    if (same_length && (n == 1 || flags & TNF_POINTS_IN_PLACE)) { /* a single byte is atomic */
        TNF_TRY(tnf_disk_write(p, p->fd, p->meta_at + first, meta->p + first, last - first + 1, e));
        return tnf_disk_sync_done(p, p->fd, e);
    }
    struct compact k = { .p = p, .fresh.fd = -1, .meta = meta->p, .meta_n = meta->n };
    return run_compact(&k, NULL, NULL, e);
}

static tnf_status set_packed(tnf_points *p, const tnf_buf *packed, unsigned flags, tnf_error *e)
{
    tnf_buf block;
    tnf_vs_meta m = p->meta;
    if (!p->has_meta)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the file describes no vector space");
    m.attributes = (tnf_str) { (const char *)packed->p, packed->n };
    tnf_buf_init(&block, &p->alloc, UINT64_MAX);
    tnf_vs_put_meta(&block, &m, p->options.varint_msb);
    tnf_status status = tnf_points_check_meta(&block, e);
    if (status == TNF_OK)
        status = set_meta(p, &block, flags, e);
    tnf_buf_free(&block);
    return status;
}

tnf_status tnf_points_set_attributes(tnf_points *p, const tnf_value *attributes, unsigned flags,
                                     tnf_error *e)
{
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_points_check_flags(flags, TNF_POINTS_IN_PLACE, e));
    tnf_buf packed; /* made first, since the attributes may belong to the handle */
    tnf_buf_init(&packed, &p->alloc, UINT32_MAX);
    tnf_status status = attributes ? tnf_points_pack_value(p, &packed, attributes, e) : TNF_OK;
    if (status == TNF_OK)
        status = tnf_points_enter(p, true, e);
    if (status == TNF_OK) {
        status = set_packed(p, &packed, flags, e);
        leave_open(p);
    }
    tnf_buf_free(&packed);
    if (status == TNF_OK && tnf_points_enter(p, false, NULL) == TNF_OK) /* reads the attributes */
        tnf_points_leave(p);
    return status;
}
