/* SPDX-License-Identifier: MIT */
/* Handles: opening files, and entering and leaving every call. */
#include "ext/points/points.h"

#include "base/sized.h"
#include "io/lock.h"
#include "io/temp.h"
#include "wire/msgpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES       100 /* how often in a row a file may be replaced while it is opened */
#define TREE_MOST   ((uint64_t)4 << 30)
#define ASK_EVERY   4096u /* blocks between checks for cancellation */
#define REREAD_MOST 4096u /* a meta block before this offset is compared on every call */

/* ------------------------------------------------------------------- chain */

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    return tnf_disk_read(((const tnf_points *)ctx)->fd, offset, dst, n, e);
}

void tnf_points_rewind(tnf_points *p, uint64_t from)
{
    p->chain.n = 0;
    p->chain.base = 0;
    p->chain.at = 0;
    p->chain.next = from;
    p->chain.until = p->chain.size;
}

tnf_status tnf_points_go_on(const tnf_points *p, tnf_error *e)
{
    if (!p->options.go_on || p->options.go_on(p->options.go_on_ctx))
        return TNF_OK;
    return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "cancelled by the caller");
}

tnf_status tnf_points_next(tnf_points *p, tnf_error *e)
{
    if (++p->steps % ASK_EVERY == 0)
        TNF_TRY(tnf_points_go_on(p, e));
    return tnf_vs_chain_next(&p->chain, e);
}

/* -------------------------------------------------------------------- meta */

void tnf_points_forget(tnf_points *p)
{
    tnf_arena_free(&p->arena);
    tnf_arena_init(&p->arena, &p->alloc, TREE_MOST);
    p->known = p->has_meta = false;
    p->space = (tnf_space) { .rank = 0 };
}

static tnf_status describe_file(tnf_points *p, tnf_error *e)
{
    const tnf_vs_meta *m = &p->meta;
    tnf_msgpack r;
    p->space = (tnf_space) { .size = sizeof(tnf_space),
                             .type = m->type,
                             .resolution = m->type_name,
                             .dims = m->dims,
                             .rank = m->rank,
                             .scalar = m->rank == 0,
                             .pack = m->pack,
                             .paging = m->paging,
                             .elements = m->elements,
                             .vector_bytes = m->vector_bytes };
    if (m->attributes.n == 0)
        return TNF_OK;
    tnf_msgpack_init(&r, m->attributes.p, m->attributes.n, m->attributes_at, &p->arena,
                     TNF_VS_DEPTH, e);
    r.no_widths = true;
    if (!tnf_msgpack_value(&r, &p->attributes))
        return r.status;
    p->space.attributes = &p->attributes;
    return TNF_OK;
}

/* Takes the current block of the chain as the meta block. */
static tnf_status take_meta(tnf_points *p, tnf_error *e)
{
    tnf_vs_chain *c = &p->chain;
    const uint8_t *bytes = NULL;
    if (c->length > TNF_POINTS_META_MOST)
        return tnf_fail(e, TNF_ELIMIT, c->at, "the meta block is too large: %u bytes", c->length);
    TNF_TRY(tnf_vs_chain_meta(c, &p->meta, &p->arena, e));
    p->meta_at = c->at;
    p->meta_n = TNF_VS_HEAD + (size_t)c->length;
    TNF_TRY(tnf_vs_chain_bytes(c, c->at, p->meta_n, &bytes, e));
    p->meta_bytes = (const uint8_t *)tnf_arena_str(&p->arena, bytes, p->meta_n);
    if (!p->meta_bytes)
        return tnf_arena_fail(&p->arena, "the meta block", e);
    TNF_TRY(describe_file(p, e));
    p->has_meta = true;
    return TNF_OK;
}

tnf_status tnf_points_check_meta(const tnf_buf *block, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(block, "the meta block", e));
    if (block->n - TNF_VS_HEAD <= TNF_POINTS_META_MOST)
        return TNF_OK;
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                    "the meta block would have %zu bytes, which is too large", block->n);
}

tnf_status tnf_points_load_meta(tnf_points *p, tnf_error *e)
{
    tnf_vs_chain *c = &p->chain;
    tnf_points_forget(p);
    tnf_points_rewind(p, TNF_VS_HEADER);
    TNF_TRY(tnf_vs_chain_header(c, e));
    for (;;) {
        TNF_TRY(tnf_vs_chain_next(c, e));
        if (c->type == TNF_VS_POINT)
            return tnf_fail(e, TNF_EFORMAT, c->at, "there is a point before the meta block");
        if (c->type == TNF_VS_META || c->type == TNF_VS_END)
            break;
    }
    if (c->type == TNF_VS_META)
        TNF_TRY(take_meta(p, e));
    p->known = true;
    return TNF_OK;
}

/* Are header and meta block unchanged since they were read? */
static bool is_unchanged(const tnf_points *p)
{
    uint8_t now[REREAD_MOST];
    uint64_t end = p->meta_at + p->meta_n;
    if (!p->known || !p->has_meta || end > sizeof now ||
        tnf_disk_read(p->fd, 0, now, (size_t)end, NULL) != TNF_OK)
        return false;
    return memcmp(now, "VS\0", TNF_VS_HEADER) == 0 &&
           memcmp(now + p->meta_at, p->meta_bytes, p->meta_n) == 0;
}

/* ------------------------------------------------------------- in and out */

static tnf_status open_path(tnf_points *p, tnf_error *e)
{
    int flags = (p->options.write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK;
    struct stat st;
    do
        p->fd = open(p->path, flags);
    while (p->fd < 0 && errno == EINTR);
    if (p->fd < 0 || fstat(p->fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot open");
    if (!S_ISREG(st.st_mode))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "it is not a regular file");
    p->moved = p->ino != 0; /* another file was opened before */
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    p->tail = TNF_VS_HEADER;
    p->last = 0;
    p->seen = (tnf_point_id) { 0 };
    tnf_points_forget(p);
    return TNF_OK;
}

static tnf_status take_lock(const tnf_points *p, bool exclusive, tnf_error *e)
{
    const tnf_points_options *o = &p->options;
    uint32_t milliseconds = o->lock == TNF_POINTS_WAIT      ? TNF_LOCK_FOREVER
                            : o->lock == TNF_POINTS_TIMEOUT ? o->timeout_ms
                                                            : 0;
    return o->lock == TNF_POINTS_NO_LOCK
               ? TNF_OK
               : tnf_lock_ask(p->fd, exclusive, milliseconds, o->go_on, o->go_on_ctx, e);
}

static void drop_lock(const tnf_points *p)
{
    if (p->options.lock != TNF_POINTS_NO_LOCK)
        tnf_lock_drop(p->fd);
}

tnf_status tnf_points_lock_current(tnf_points *p, bool exclusive, uint64_t *size, tnf_error *e)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat named, ours;
        if (p->fd < 0)
            TNF_TRY(open_path(p, e));
        TNF_TRY(take_lock(p, exclusive, e));
        if (stat(p->path, &named) != 0 || fstat(p->fd, &ours) != 0) {
            int err = errno;
            drop_lock(p);
            return tnf_fail_sys(e, err, "the file is gone");
        }
        *size = (uint64_t)ours.st_size;
        if (named.st_dev == ours.st_dev && named.st_ino == ours.st_ino)
            return TNF_OK;
        close(p->fd); /* another program compacted it; this also releases the lock */
        p->fd = -1;
    }
    return tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "the file is being replaced repeatedly");
}

tnf_status tnf_points_enter(tnf_points *p, bool exclusive, tnf_error *e)
{
    uint64_t size = 0;
    if (p->busy)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the handle is in use");
    if (exclusive && !p->options.write)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the file was opened read-only");
    TNF_TRY(tnf_points_lock_current(p, exclusive, &size, e));
    p->chain.size = size;
    tnf_points_rewind(p, TNF_VS_HEADER);
    tnf_status status = tnf_vs_note_read(&p->chain, UINT64_MAX, e);
    if (status == TNF_OK && !is_unchanged(p))
        status = tnf_points_load_meta(p, e);
    if (status == TNF_OK && exclusive)
        tnf_temp_sweep(p->path);                          /* of a compaction that was killed */
    if (status == TNF_OK && exclusive && p->chain.note.n) /* a crash left an incomplete deletion */
        status = tnf_points_finish(p, e);
    if (status != TNF_OK) {
        drop_lock(p);
        return status;
    }
    p->busy = true;
    return TNF_OK;
}

void tnf_points_leave(tnf_points *p)
{
    drop_lock(p);
    p->busy = false;
}

/* The position from which to search the end: the last known end, if the block before still leads
 * there. No correct program moves blocks within a file, but this is checked before writing. */
static uint64_t known_boundary(const tnf_points *p)
{
    uint8_t head[TNF_VS_HEAD];
    if (p->last == 0 || p->tail > p->chain.size ||
        tnf_disk_read(p->fd, p->last, head, sizeof head, NULL) != TNF_OK || head[0] == TNF_VS_END ||
        p->last + TNF_VS_HEAD + tnf_le32(head + 1) != p->tail)
        return TNF_VS_HEADER;
    return p->tail;
}

tnf_status tnf_points_find_tail(tnf_points *p, tnf_error *e)
{
    static const uint8_t end = TNF_VS_END;
    tnf_vs_chain *c = &p->chain;
    tnf_points_rewind(p, known_boundary(p));
    do
        TNF_TRY(tnf_points_next(p, e));
    while (c->type != TNF_VS_END);
    p->tail = c->at;
    p->last = c->previous ? c->previous : p->last;
    if (c->terminal)
        return TNF_OK;
    TNF_TRY(tnf_disk_write(p, p->fd, p->tail, &end, 1, e));
    c->size = p->tail + 1;
    return tnf_disk_sync(p, p->fd, e);
}

tnf_status tnf_points_check_moved(const tnf_points *p, tnf_error *e)
{
    if (!p->moved)
        return TNF_OK;
    return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                    "the file was compacted, so its points have other offsets now: read from 0");
}

/* ----------------------------------------------------------------- handles */

static tnf_status copy_path(tnf_points *p, const char *path, tnf_error *e)
{
    char real[PATH_MAX]; /* compacting replaces the file, not a link to it */
    if (realpath(path, real))
        path = real;
    p->path_size = strlen(path) + 1;
    p->path = tnf_alloc(&p->alloc, p->path_size);
    if (!p->path)
        return tnf_no_memory("a path", e);
    memcpy(p->path, path, p->path_size);
    return TNF_OK;
}

static tnf_status check_options(const tnf_points_options *o, tnf_error *e)
{
    TNF_TRY(tnf_check_choice((unsigned)o->lock, TNF_POINTS_NO_LOCK, "lock", e));
    TNF_TRY(tnf_check_choice((unsigned)o->sync, TNF_POINTS_NO_SYNC, "sync", e));
    return tnf_check_choice((unsigned)o->pack, TNF_POINTS_SNAPPY, "pack", e);
}

tnf_status tnf_points_check_flags(unsigned flags, unsigned known, tnf_error *e)
{
    if ((flags & ~known) == 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                    "'flags' is %u, but this function only takes 0 or %u", flags, known);
}

tnf_status tnf_points_make(tnf_points **out, const char *path, const tnf_points_options *options,
                           tnf_error *e)
{
    tnf_points_options o;
    *out = NULL;
    TNF_TRY(tnf_need(path, "path", e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_points_options, &o, options, e));
    TNF_TRY(check_options(&o, e));
    tnf_allocator a = tnf_allocator_or_default(&o.allocator);
    tnf_points *p = tnf_alloc0(&a, sizeof *p);
    if (!p)
        return tnf_no_memory("a handle", e);
    p->alloc = a;
    p->tail = TNF_VS_HEADER;
    p->fd = -1;
    p->options = o;
    tnf_arena_init(&p->arena, &a, TREE_MOST);
    tnf_arena_init(&p->tree, &a, TREE_MOST);
    tnf_arena_init(&p->words, &a, TREE_MOST);
    tnf_arena_init(&p->batch, &a, UINT64_MAX);
    tnf_vs_chain_init(&p->chain, fetch_bytes, p, 0, TNF_VS_HEADER, &a);
    p->chain.msb = p->options.varint_msb;
    for (int i = 0; i < 2; i++)
        tnf_buf_init(&p->spare[i], &a, UINT32_MAX);
    tnf_status status = copy_path(p, path, e);
    if (status != TNF_OK) {
        tnf_points_close(p);
        return status;
    }
    *out = p;
    return TNF_OK;
}

tnf_status tnf_points_open(tnf_points **out, const char *path, const tnf_points_options *options,
                           tnf_error *e)
{
    tnf_points *p;
    TNF_TRY(tnf_points_make(out, path, options, e));
    p = *out;
    tnf_status status = tnf_points_enter(p, false, e);
    if (status == TNF_OK) {
        tnf_points_leave(p);
        return TNF_OK;
    }
    tnf_points_close(p);
    *out = NULL;
    return status;
}

void tnf_points_close(tnf_points *p)
{
    if (!p)
        return;
    if (p->fd >= 0)
        close(p->fd);
    tnf_vs_chain_free(&p->chain);
    for (int i = 0; i < 2; i++)
        tnf_buf_free(&p->spare[i]);
    tnf_arena_free(&p->arena);
    tnf_arena_free(&p->tree);
    tnf_arena_free(&p->words);
    tnf_arena_free(&p->batch);
    tnf_allocator a = p->alloc;
    tnf_free(&a, p->path, p->path_size);
    tnf_free(&a, p, sizeof *p);
}

const tnf_space *tnf_points_space(const tnf_points *p)
{
    return p && p->has_meta ? &p->space : NULL;
}
