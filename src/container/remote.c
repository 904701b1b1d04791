/* SPDX-License-Identifier: MIT */
/* Directories of other machines as containers: each listed file is a member.
 *
 *   list ──> members, sorted by the bytes of their names
 *   read ──> the file is opened, and kept open if there is room
 *
 * A file is opened when it is first read. At most MOST_OPEN files are kept open, since each has a
 * cache of its own; others are opened again for each read.
 */
#include "base/buf.h"
#include "base/error.h"
#include "container/path.h"
#include "container/state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPEN 64u

/* A file that was placed. */
typedef struct remote_file {
    const struct remote_state *folder;
    size_t i;
    tnf_source *source;
} remote_file;

typedef struct remote_state {
    tnf_container_state all;
    tnf_remote_directory from;
    size_t n;
    remote_file **placed; /* one for each member; NULL: not placed yet */
    pthread_mutex_t lock; /* guards the members below */
    tnf_source **kept;    /* one for each member; NULL: not open */
    size_t nkept;
} remote_state;

/* ----------------------------------------------------------------- listing */

static tnf_status add_file(void *ctx, const char *name, uint64_t size, tnf_error *e)
{
    return tnf_members_add(ctx, (tnf_str) { name, strlen(name) }, size, e);
}

/* ----------------------------------------------------------------- reading */

static tnf_status open_file(const remote_state *f, tnf_source **out, size_t i, tnf_error *e)
{
    const tnf_container_member *m = &f->all.members[i];
    *out = NULL;
    TNF_TRY(tnf_path_check(m->name, e)); /* the name comes from another machine */
    TNF_TRY(f->from.open(f->from.ctx, out, m->name, e));
    if ((*out)->size == m->size)
        return TNF_OK;
    tnf_source_close(*out);
    *out = NULL;
    return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET, "the file %s was changed since it was listed",
                    TNF_QUOTED(m->name));
}

/* Keeps a source open; false: there is no room, or another thread was faster. */
static bool keep_open(remote_state *f, size_t i, tnf_source *source)
{
    pthread_mutex_lock(&f->lock);
    bool keep = !f->kept[i] && f->nkept < MOST_OPEN;
    if (keep) {
        f->kept[i] = source;
        f->nkept++;
    }
    pthread_mutex_unlock(&f->lock);
    return keep;
}

static tnf_status fetch_file(const tnf_container_state *s, size_t i, uint64_t offset, void *dst,
                             size_t n, tnf_error *e)
{
    remote_state *f = (remote_state *)(uintptr_t)s;
    pthread_mutex_lock(&f->lock);
    tnf_source *source = f->kept[i];
    pthread_mutex_unlock(&f->lock);
    if (source)
        return tnf_source_read(source, offset, dst, n, e);
    tnf_status status = open_file(f, &source, i, e);
    if (status != TNF_OK) {
        tnf_error_prefix(e, TNF_VISIBLE(s->members[i].name.p));
        return status;
    }
    bool kept = keep_open(f, i, source);
    status = tnf_source_read(source, offset, dst, n, e);
    if (!kept)
        tnf_source_close(source);
    return status;
}

/* ----------------------------------------------------------------- placing */

static tnf_status read_placed(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const remote_file *p = ctx;
    return fetch_file(&p->folder->all, p->i, offset, dst, n, e);
}

static const tnf_source_ops placed_ops = { .version = TNF_SOURCE_OPS_VERSION,
                                           .read_at = read_placed };

static tnf_status place_file(tnf_member_place *out, const tnf_container_state *s, size_t i,
                             tnf_error *e)
{
    remote_state *f = (remote_state *)(uintptr_t)s;
    uint64_t size = s->members[i].size;
    if (!f->placed[i]) {
        remote_file *p = tnf_arena_alloc(s->arena, sizeof *p);
        if (!p)
            return tnf_arena_fail(s->arena, "a file", e);
        *p = (remote_file) { .folder = f, .i = i };
        TNF_TRY(tnf_source_new(&p->source, &placed_ops, p, size, &s->arena->alloc, e));
        p->source->network = true;
        p->source->map_why = "it is read over the network";
        f->placed[i] = p;
    }
    *out = (tnf_member_place) { .source = f->placed[i]->source,
                                .stored = size,
                                .codec = TNF_CODEC_RAW };
    return TNF_OK;
}

static void close_remote(tnf_container_state *s)
{
    remote_state *f = (remote_state *)(void *)s;
    for (size_t i = 0; i < f->n; i++) {
        if (f->placed[i])
            tnf_source_close(f->placed[i]->source);
        tnf_source_close(f->kept[i]);
    }
    pthread_mutex_destroy(&f->lock);
}

/* ----------------------------------------------------------------- opening */

static tnf_status begin_remote(tnf_container *out, const tnf_remote_directory *from,
                               const tnf_members *l, tnf_error *e)
{
    tnf_arena *arena = l->how->arena;
    size_t n;
    remote_state *f = tnf_arena_alloc(arena, sizeof *f);
    tnf_container_member *members = tnf_members_sorted(l, &n);
    remote_file **placed = tnf_arena_array(arena, n, sizeof(remote_file *));
    tnf_source **kept = tnf_arena_array(arena, n, sizeof(tnf_source *));
    if (!f || !members || !placed || !kept)
        return tnf_arena_fail(arena, "a directory", e);
    *f = (remote_state) {
        .all = { .arena = arena, .place = place_file, .fetch = fetch_file, .close = close_remote },
        .from = *from,
        .n = n,
        .placed = placed,
        .kept = kept
    };
    pthread_mutex_init(&f->lock, NULL);
    return tnf_container_begin(out, members, n, &f->all, e);
}

tnf_status tnf_container_remote(tnf_container *out, const tnf_remote_directory *from,
                                const tnf_container_how *how, tnf_error *e)
{
    tnf_members l = { .how = how };
    *out = (tnf_container) { 0 };
    tnf_buf_init(&l.list, &how->arena->alloc, how->arena->limit);
    tnf_status status = from->list(from->ctx, add_file, &l, e);
    if (status == TNF_OK)
        status = begin_remote(out, from, &l, e);
    tnf_buf_free(&l.list);
    return status;
}
