/* SPDX-License-Identifier: MIT */
/* Reads and hashes the leaves of a part.
 *
 * A part that can be read at any position is divided into runs of leaves, each of which is a task.
 * Any other part is a stream: one task decodes or transposes it from front to end and hashes its
 * leaves. When other threads have no more tasks, it passes whole leaves to them:
 *
 *   tasks     stream │ run │ run │ … │ help │ help    taken in this order
 *   stream   decode 0 │ decode 1 │ decode 2 │ …      helpers:  hash 0 │ hash 1 │ …
 *
 * Helpers begin only after every stream has begun, so no helper waits for a stream that no thread
 * processes.
 */
#include "core/look/hashing.h"
#include "core/read/stream.h"
#include <tenfold/virtual.h>

#include <string.h>

#define BLOCK ((size_t)1 << 20) /* read and hashed at once; divides the size of a leaf */
#define HELD  2u                /* waiting leaves per helper */

static tnf_status begin_leaf(tnf_digester *d, tnf_error *e)
{
    return tnf_content_begin(d, "tenfold leaf 2\n", e);
}

static void end_leaf(struct hashing *h, size_t item, uint64_t leaf, tnf_digester *d)
{
    tnf_digest_end(d, h->items[item].leaves + (leaf - h->items[item].base) * TNF_HASH_BYTES);
}

/* ---------------------------------------------------------------- streams */

/* The state of a stream. */
struct stream {
    struct hashing *h;
    size_t item;
    uint64_t leaf; /* the current leaf, numbered in the tensor */
    size_t n;      /* bytes of it so far */
    bool hands_over;
    struct held *held; /* the leaf for a helper; NULL: it is hashed here */
    tnf_digester d;
};

/* NULL if no helper is waiting, or memory is short: then this thread hashes the leaf. */
static struct held *new_held(struct hashing *h)
{
    pthread_mutex_lock(&h->lock);
    bool wanted = h->nheld < HELD * h->helpers;
    struct held *held = wanted ? h->spare : NULL;
    if (held)
        h->spare = held->next;
    pthread_mutex_unlock(&h->lock);
    return held || !wanted ? held : tnf_alloc(&h->alloc, sizeof *held);
}

static void keep_spare(struct hashing *h, struct held *held)
{
    pthread_mutex_lock(&h->lock);
    held->next = h->spare;
    h->spare = held;
    pthread_mutex_unlock(&h->lock);
}

static void hand_over(struct stream *s)
{
    struct hashing *h = s->h;
    struct held *held = s->held;
    held->next = NULL;
    held->item = s->item;
    held->leaf = s->leaf;
    held->n = s->n;
    pthread_mutex_lock(&h->lock);
    h->items[s->item].left++;
    *h->last = held;
    h->last = &held->next;
    h->nheld++;
    pthread_cond_signal(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

static tnf_status start_leaf(struct stream *s, tnf_error *e)
{
    s->held = s->hands_over ? new_held(s->h) : NULL;
    return s->held ? TNF_OK : begin_leaf(&s->d, e);
}

static void stop_leaf(struct stream *s)
{
    if (s->held)
        hand_over(s);
    else
        end_leaf(s->h, s->item, s->leaf, &s->d);
    s->held = NULL;
    s->leaf++;
    s->n = 0;
}

static tnf_status take_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct stream *s = ctx;
    const uint8_t *from = bytes;
    for (size_t left = n, here; left > 0; left -= here, from += here) {
        if (s->n == 0)
            TNF_TRY(start_leaf(s, e));
        here = TNF_LEAF_BYTES - s->n < left ? TNF_LEAF_BYTES - s->n : left;
        if (s->held)
            memcpy(s->held->bytes + s->n, from, here);
        else
            tnf_digest_update(&s->d, from, here);
        s->n += here;
        if (s->n == TNF_LEAF_BYTES)
            stop_leaf(s);
    }
    return tnf_progress_add(&s->h->progress, &s->h->lock, n, e);
}

static tnf_status scan_part(struct stream *s, const tnf_part *part, tnf_error *e)
{
    tnf_status status = tnf_scan(part, take_bytes, s, e);
    if (s->n == 0)
        return status;
    if (status == TNF_OK) {
        stop_leaf(s);
    } else if (s->held) {
        keep_spare(s->h, s->held);
    } else {
        tnf_digest_end(&s->d, NULL);
    }
    return status;
}

/* Scans a dense tensor that is stored column by column. */
static tnf_status scan_by_columns(struct stream *s, const tnf_object *o, tnf_error *e)
{
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    tnf_virtual *rows = NULL;
    uint64_t bits = o->parts->type->bits;
    if (bits == 0 || bits % 8)
        return tnf_fail(
            e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
            "%s has packed elements, stored column by column, which cannot be hashed row by row",
            TNF_QUOTED(o->name));
    how.kind = TNF_VIRTUAL_ORDER;
    tnf_status status = tnf_virtual_new(&rows, &o, 1, &how, e);
    if (status == TNF_OK)
        status = scan_part(s, tnf_virtual_object(rows)->parts, e);
    tnf_virtual_free(rows);
    return status;
}

tnf_status tnf_content_stream(struct hashing *h, size_t item, uint16_t k, bool alone, tnf_error *e)
{
    const tnf_object *o = tnf_hashed_object(h, item);
    struct stream s = {
        .h = h, .item = item, .leaf = tnf_leaves_before(o, k), .hands_over = !alone
    };
    return tnf_is_by_columns(o) ? scan_by_columns(&s, o, e) : scan_part(&s, &o->parts[k], e);
}

void tnf_content_stream_done(struct hashing *h)
{
    pthread_mutex_lock(&h->lock);
    h->streams--;
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

/* The next leaf for a helper; NULL: there will be none. */
static struct held *next_held(struct hashing *h)
{
    pthread_mutex_lock(&h->lock);
    while (!h->first && h->streams > 0)
        pthread_cond_wait(&h->moved, &h->lock);
    struct held *held = h->first;
    if (held) {
        h->first = held->next;
        h->last = h->first ? h->last : &h->first;
        h->nheld--;
    }
    pthread_mutex_unlock(&h->lock);
    return held;
}

static tnf_status hash_held(struct hashing *h, struct held *held, tnf_error *e)
{
    tnf_digester d;
    size_t item = held->item;
    tnf_status status = begin_leaf(&d, e);
    if (status == TNF_OK) {
        tnf_digest_update(&d, held->bytes, held->n);
        end_leaf(h, item, held->leaf, &d);
    }
    keep_spare(h, held);
    return status == TNF_OK ? tnf_content_done(h, item, e) : status;
}

/* Counts one helper more, or one less. */
static void count_helper(struct hashing *h, bool comes)
{
    pthread_mutex_lock(&h->lock);
    h->helpers = comes ? h->helpers + 1 : h->helpers - 1;
    pthread_mutex_unlock(&h->lock);
}

tnf_status tnf_content_help(struct hashing *h, tnf_error *e)
{
    struct held *held;
    tnf_status status = TNF_OK;
    count_helper(h, true);
    while (status == TNF_OK && (held = next_held(h)) != NULL)
        status = hash_held(h, held, e);
    count_helper(h, false);
    return status;
}

/* ------------------------------------------------------------------- runs */

/* A run of leaves, and how to read them. */
struct run {
    struct hashing *h;
    size_t item;
    const tnf_part *part;
    const uint8_t *memory; /* the part's bytes; NULL: read by the stream, block by block */
    tnf_stream stream;
    uint8_t *block;
};

static tnf_status hash_leaf(struct run *r, uint64_t leaf, tnf_digester *d, tnf_error *e)
{
    uint64_t at = leaf * TNF_LEAF_BYTES, left = r->part->nbytes - at;
    uint64_t end = at + (left < TNF_LEAF_BYTES ? left : TNF_LEAF_BYTES);
    for (size_t n; at < end; at += n) {
        n = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
        if (!r->memory)
            TNF_TRY(tnf_stream_read(&r->stream, at, r->block, n, e));
        tnf_digest_update(d, r->memory ? r->memory + at : r->block, n);
        TNF_TRY(tnf_progress_add(&r->h->progress, &r->h->lock, n, e));
    }
    return TNF_OK;
}

static tnf_status hash_leaves(struct run *r, uint64_t first, uint64_t end, tnf_error *e)
{
    const tnf_object *o = tnf_hashed_object(r->h, r->item);
    uint64_t before = tnf_leaves_before(o, (uint16_t)(r->part - o->parts));
    for (uint64_t leaf = first; leaf < end; leaf++) {
        tnf_digester d;
        TNF_TRY(begin_leaf(&d, e));
        tnf_status status = hash_leaf(r, leaf, &d, e);
        if (status != TNF_OK) {
            tnf_digest_end(&d, NULL);
            return status;
        }
        end_leaf(r->h, r->item, before + leaf, &d);
    }
    return end == tnf_count_leaves(r->part) ? tnf_stream_end(&r->stream, e) : TNF_OK;
}

/* For a part that can be read at any position. */
tnf_status tnf_content_leaves(struct hashing *h, size_t item, uint16_t k, uint64_t first,
                              uint64_t end, tnf_error *e)
{
    struct run r = { .h = h, .item = item, .part = &tnf_hashed_object(h, item)->parts[k] };
    tnf_status status = tnf_stream_open(&r.stream, r.part, e);
    if (status == TNF_OK && !(r.memory = tnf_part_in_memory(r.part)) &&
        !(r.block = tnf_alloc(&h->alloc, BLOCK)))
        status = tnf_no_memory("reading", e);
    if (status == TNF_OK)
        status = hash_leaves(&r, first, end, e);
    tnf_free(&h->alloc, r.block, BLOCK);
    tnf_stream_close(&r.stream);
    return status;
}

tnf_status tnf_content_run(struct hashing *h, size_t item, uint16_t k, uint64_t task, tnf_error *e)
{
    const tnf_part *part = &tnf_hashed_object(h, item)->parts[k];
    uint64_t first = task * tnf_run_length(part), end = first + tnf_run_length(part);
    end = end < tnf_count_leaves(part) ? end : tnf_count_leaves(part);
    return tnf_content_leaves(h, item, k, first, end, e);
}
