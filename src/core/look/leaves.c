/* SPDX-License-Identifier: MIT */
/* The hashes of tensors, computed by all threads even if there are few tensors.
 *
 *   part     4 MiB │ 4 MiB │ 4 MiB │ rest    its bytes: decoded, row by row
 *   leaves   hash  │ hash  │ hash  │ hash    tasks, for any thread
 *   root     hash of the leaves              by the thread that completes the last leaf
 *
 * leaf_read.c reads the bytes of a part.
 */
#include "base/bytes.h"
#include "base/ckd.h"
#include "base/pool.h"
#include "base/rising.h"
#include "core/look/hashing.h"

#include <inttypes.h>
#include <string.h>

/* ----------------------------------------------------------------- digest */

tnf_status tnf_content_begin(tnf_digester *d, const char *title, tnf_error *e)
{
    if (!tnf_digest_begin(d, "sha256"))
        return tnf_no_memory("hashing", e);
    tnf_digest_update(d, title, strlen(title));
    return TNF_OK;
}

void tnf_content_number(tnf_digester *d, uint64_t v)
{
    uint8_t bytes[8];
    tnf_put_le64(bytes, v);
    tnf_digest_update(d, bytes, sizeof bytes);
}

void tnf_content_text(tnf_digester *d, const void *p, size_t n)
{
    tnf_content_number(d, n);
    tnf_digest_update(d, p, n);
}

/* --------------------------------------------------------------- planning */

uint64_t tnf_leaves_before(const tnf_object *o, uint16_t k)
{
    uint64_t n = 0;
    for (uint16_t i = 0; i < k; i++)
        n += tnf_count_leaves(&o->parts[i]);
    return n;
}

static bool is_stream(const tnf_object *o, const tnf_part *part)
{
    return !tnf_part_cuts(part) || tnf_is_by_columns(o);
}

/* An empty part has one, too: the task checks whether the part can be read. */
static uint64_t part_tasks(const tnf_object *o, const tnf_part *part)
{
    uint64_t leaves = tnf_count_leaves(part), run = tnf_run_length(part);
    return is_stream(o, part) || leaves == 0 ? 1 : (leaves + run - 1) / run;
}

/* Is the whole tensor one task? */
static bool is_small(const tnf_object *o)
{
    uint64_t sum = 0;
    for (uint16_t k = 0; k < o->nparts; k++) {
        if (o->parts[k].nbytes > TNF_LEAF_BYTES - sum)
            return false;
        sum += o->parts[k].nbytes;
    }
    return true;
}

static uint64_t object_tasks(struct hashing *h, const tnf_object *o)
{
    uint64_t n = 0;
    if (is_small(o))
        return 1;
    for (uint16_t k = 0; k < o->nparts; k++) {
        n += part_tasks(o, &o->parts[k]);
        h->streams += is_stream(o, &o->parts[k]);
    }
    return n;
}

static tnf_status plan_tasks(struct hashing *h, tnf_arena *a, tnf_error *e)
{
    const tnf_catalog *c = &h->file->catalog;
    const size_t *order;
    TNF_TRY(tnf_task_order(&order, c, a, e));
    h->n = c->n;
    h->items = tnf_arena_array(a, c->n, sizeof *h->items);
    if (!h->items)
        return tnf_arena_fail(a, "hashes", e);
    for (size_t i = 0; i < c->n; i++) {
        uint64_t tasks = object_tasks(h, &c->objects[order[i]]);
        h->items[i] = (struct item) { .object = order[i], .first_task = h->tasks, .left = tasks };
        h->tasks += tasks;
    }
    if (h->tasks > SIZE_MAX / 2)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the tensors have too many bytes to hash");
    return TNF_OK;
}

/* ---------------------------------------------------------------- tensors */

/* The part whose role is the next one, in byte order, after `last` (NULL: the first). */
static const tnf_part *next_part(const tnf_object *o, const char *last)
{
    const tnf_part *next = NULL;
    const char *first = NULL; /* the role of that part */
    for (uint16_t i = 0; i < o->nparts; i++) {
        const char *role = o->parts[i].role;
        if (role && (!last || strcmp(role, last) > 0) && (!first || strcmp(role, first) < 0)) {
            next = &o->parts[i];
            first = role;
        }
    }
    return next;
}

static const uint8_t *leaves_of(const uint8_t *leaves, const tnf_object *o, const tnf_part *part)
{
    return leaves + tnf_leaves_before(o, (uint16_t)(part - o->parts)) * TNF_HASH_BYTES;
}

static tnf_status put_part(tnf_digester *tensor, const tnf_part *part, const uint8_t *leaves,
                           tnf_error *e)
{
    tnf_digester d;
    uint8_t root[TNF_HASH_BYTES];
    TNF_TRY(tnf_content_begin(&d, "tenfold part 2\n", e));
    tnf_content_number(&d, part->nbytes);
    tnf_digest_update(&d, leaves, (size_t)(tnf_count_leaves(part) * TNF_HASH_BYTES));
    tnf_digest_end(&d, root);
    tnf_content_text(tensor, part->role, strlen(part->role));
    tnf_content_text(tensor, part->type->id, strlen(part->type->id));
    tnf_content_number(tensor, part->nbytes);
    tnf_digest_update(tensor, root, sizeof root);
    return TNF_OK;
}

tnf_status tnf_content_of_leaves(uint8_t out[TNF_HASH_BYTES], const tnf_object *o,
                                 const uint8_t *leaves, tnf_error *e)
{
    tnf_digester d;
    tnf_status status = tnf_content_begin(&d, "tenfold tensor 2\n", e);
    if (status != TNF_OK)
        return status;
    tnf_content_text(&d, o->layout->id, strlen(o->layout->id));
    tnf_content_number(&d, o->rank);
    for (uint32_t k = 0; k < o->rank; k++)
        tnf_content_number(&d, o->shape[k]);
    tnf_content_number(&d, o->nparts);
    for (const tnf_part *p = next_part(o, NULL); p && status == TNF_OK; p = next_part(o, p->role))
        status = put_part(&d, p, leaves_of(leaves, o, p), e);
    tnf_digest_end(&d, status == TNF_OK ? out : NULL);
    return status;
}

static tnf_status finish_tensor(struct hashing *h, size_t i, tnf_error *e)
{
    const struct item *item = &h->items[i];
    return tnf_content_of_leaves(h->out[item->object], tnf_hashed_object(h, i), item->leaves, e);
}

static void drop_leaves(const struct hashing *h, struct item *item)
{
    uint64_t n = tnf_leaves_before(&h->file->catalog.objects[item->object],
                                   h->file->catalog.objects[item->object].nparts);
    tnf_free(&h->alloc, item->leaves, (size_t)(n * TNF_HASH_BYTES));
    item->leaves = NULL;
}

/* The first thread that needs memory for the leaves allocates it. The number of leaves is only a
 * claim of the file. */
static tnf_status open_item(struct hashing *h, size_t i, tnf_error *e)
{
    const tnf_object *o = tnf_hashed_object(h, i);
    uint64_t n = tnf_leaves_before(o, o->nparts), size, limit = h->file->info.memory;
    if (!tnf_ckd_mul(&size, n, TNF_HASH_BYTES) || size > limit || size > SIZE_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "no room for the %" PRIu64 " hashes of %s within the limit of %" PRIu64
                        " bytes: raise the limit 'memory' if you trust the file",
                        n, TNF_QUOTED(o->name), limit);
    pthread_mutex_lock(&h->lock);
    if (n > 0 && !h->items[i].leaves)
        h->items[i].leaves = tnf_alloc(&h->alloc, (size_t)size);
    bool ready = n == 0 || h->items[i].leaves;
    pthread_mutex_unlock(&h->lock);
    return ready ? TNF_OK : tnf_no_memory("hashes", e);
}

/* A task, or a held leaf, is done. */
tnf_status tnf_content_done(struct hashing *h, size_t i, tnf_error *e)
{
    pthread_mutex_lock(&h->lock);
    bool last = --h->items[i].left == 0;
    pthread_mutex_unlock(&h->lock);
    tnf_status status = last ? finish_tensor(h, i, e) : TNF_OK;
    if (last && !h->options->leaf)
        drop_leaves(h, &h->items[i]);
    return status;
}

/* ------------------------------------------------------------------- tasks */

/* The tensor that a task belongs to. */
static size_t find_item(const struct hashing *h, uint64_t task)
{
    return tnf_rising_find(&h->items->first_task, sizeof *h->items, h->n, task);
}

static tnf_status hash_small(struct hashing *h, size_t item, tnf_error *e)
{
    for (uint16_t k = 0; k < tnf_hashed_object(h, item)->nparts; k++)
        TNF_TRY(tnf_content_stream(h, item, k, true, e));
    return TNF_OK;
}

static tnf_status hash_piece(struct hashing *h, size_t item, uint64_t task, tnf_error *e)
{
    const tnf_object *o = tnf_hashed_object(h, item);
    uint16_t k = 0;
    for (uint64_t n; task >= (n = part_tasks(o, &o->parts[k])); k++)
        task -= n;
    bool stream = is_stream(o, &o->parts[k]);
    tnf_status status = open_item(h, item, e);
    if (status == TNF_OK)
        status = stream ? tnf_content_stream(h, item, k, false, e)
                        : tnf_content_run(h, item, k, task, e);
    if (stream) /* also after a failure, so that no helper waits for it */
        tnf_content_stream_done(h);
    return status;
}

static tnf_status do_task(void *ctx, size_t task, tnf_error *e)
{
    struct hashing *h = ctx;
    if (task >= h->tasks)
        return tnf_content_help(h, e);
    size_t item = find_item(h, task);
    if (is_small(tnf_hashed_object(h, item))) {
        TNF_TRY(open_item(h, item, e));
        TNF_TRY(hash_small(h, item, e));
    } else {
        TNF_TRY(hash_piece(h, item, task - h->items[item].first_task, e));
    }
    return tnf_content_done(h, item, e);
}

/* -------------------------------------------------------------- reporting */

static void tell_leaves(const struct hashing *h, const struct item *item, const tnf_object *o)
{
    for (const tnf_part *p = next_part(o, NULL); p; p = next_part(o, p->role)) {
        const uint8_t *hash = leaves_of(item->leaves, o, p);
        for (uint64_t at = 0; at < p->nbytes; at += TNF_LEAF_BYTES, hash += TNF_HASH_BYTES) {
            uint64_t left = p->nbytes - at;
            h->options->leaf(h->options->ctx,
                             &(tnf_leaf) { .object = o,
                                           .part = p,
                                           .offset = at,
                                           .nbytes = left < TNF_LEAF_BYTES ? left : TNF_LEAF_BYTES,
                                           .hash = hash });
        }
    }
}

static tnf_status tell_hashes(const struct hashing *h, tnf_arena *a, tnf_error *e)
{
    const tnf_catalog *c = &h->file->catalog;
    const struct item **by_place = tnf_arena_array(a, h->n, sizeof *by_place);
    if (!by_place)
        return tnf_arena_fail(a, "hashes", e);
    for (size_t i = 0; i < h->n; i++)
        by_place[h->items[i].object] = &h->items[i];
    for (size_t i = 0; i < h->n; i++) {
        if (h->options->leaf)
            tell_leaves(h, by_place[i], &c->objects[i]);
        if (h->options->tensor)
            h->options->tensor(h->options->ctx, &c->objects[i], h->out[i]);
    }
    return TNF_OK;
}

static void free_held(const struct hashing *h, struct held *held)
{
    while (held) {
        struct held *next = held->next;
        tnf_free(&h->alloc, held, sizeof *held);
        held = next;
    }
}

/* ------------------------------------------------------------- some leaves */

bool tnf_content_cuts(const tnf_object *o, uint16_t k)
{
    return !is_stream(o, &o->parts[k]);
}

tnf_status tnf_content_some(uint8_t *out, const tnf_file *file, size_t object, uint16_t k,
                            uint64_t first, uint64_t n, const tnf_progress *progress, tnf_error *e)
{
    const tnf_object *o = &file->catalog.objects[object];
    struct item item = { .object = object, .leaves = out };
    struct hashing h = { .file = file,
                         .items = &item,
                         .n = 1,
                         .progress = *progress,
                         .alloc = tnf_allocator_or_default(NULL),
                         .lock = PTHREAD_MUTEX_INITIALIZER };
    bool cuts = tnf_content_cuts(o, k);
    item.base = tnf_leaves_before(o, k) + first;
    if (!cuts && (first != 0 || n != tnf_count_leaves(&o->parts[k])))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s cannot be divided into leaves",
                        TNF_QUOTED(o->name));
    tnf_status status = cuts ? tnf_content_leaves(&h, 0, k, first, first + n, e)
                             : tnf_content_stream(&h, 0, k, true, e);
    pthread_mutex_destroy(&h.lock);
    return status;
}

tnf_status tnf_content_tensors(uint8_t (*out)[TNF_HASH_BYTES], const tnf_file *file,
                               const tnf_hash_options *options, tnf_arena *arena, tnf_error *e)
{
    struct hashing h = {
        .file = file,
        .options = options,
        .out = out,
        .progress = { .tell = options->progress, .ctx = options->ctx, .total = file->info.payload },
        .alloc = tnf_allocator_or_default(NULL), /* the handle's is not thread-safe */
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .moved = PTHREAD_COND_INITIALIZER
    };
    unsigned threads = tnf_pool_threads(options->threads);
    h.last = &h.first;
    tnf_status status = plan_tasks(&h, arena, e);
    size_t helpers = h.streams > 0 ? threads - 1 : 0;
    if (status == TNF_OK)
        status = tnf_pool_run(threads, (size_t)h.tasks + helpers, do_task, &h, e);
    if (status == TNF_OK && (options->leaf || options->tensor))
        status = tell_hashes(&h, arena, e);
    for (size_t i = 0; i < h.n && h.items; i++)
        drop_leaves(&h, &h.items[i]);
    free_held(&h, h.first);
    free_held(&h, h.spare);
    pthread_cond_destroy(&h.moved);
    pthread_mutex_destroy(&h.lock);
    return status;
}
