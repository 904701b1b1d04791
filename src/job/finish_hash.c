/* SPDX-License-Identifier: MIT */
/* Computes the hashes of tensors and files from the leaves in the receipts.
 *
 *   items      a0 │ a1 b │ c d0 │ d1           in the order of the parts
 *   tensors    a, b, c, d                      in the order in which they begin there
 *
 * In this order a receipt is read once, or twice if a tensor continues in the next part. The
 * receipts are not kept in memory: those of 100 TB would be too large for some machines.
 */
#include "base/hex.h"
#include "job/finishing.h"
#include "job/rows.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NO_PART UINT64_MAX

/* The items of a tensor, by part of the tensor and leaf. */
struct group {
    size_t index, first, n; /* among the sorted items */
    size_t begins;          /* its first item in the plan */
};

struct hashing {
    struct finishing *f;
    size_t in;
    const struct job_item **items; /* of the input, by tensor */
    size_t n;
    uint64_t loaded;  /* the part whose leaves are loaded */
    tnf_arena leaves; /* memory of its leaves */
    const uint8_t *bytes;
    uint64_t *before; /* leaves before each item, within its part */
};

/* --------------------------------------------------------------------- leaves */

/* Loads the leaves of a receipt as bytes. */
static tnf_status load_leaves(struct hashing *h, uint64_t part, tnf_error *e)
{
    struct finishing *f = h->f;
    struct job_receipt r = f->receipts[part];
    size_t expected = r.leaves.n;
    if (h->loaded == part)
        return TNF_OK;
    h->loaded = NO_PART;
    tnf_arena_free(&h->leaves);
    tnf_scratch_begin(&h->leaves);
    if (!r.leaves.p) {
        TNF_TRY(tnf_receipt_read(f->job, f->base, part, e));
        TNF_TRY(tnf_receipt_parse(&r, f->job, (const char *)f->job->answer.p, f->job->answer.n,
                                  &h->leaves, e));
    }
    uint8_t *bytes = tnf_arena_alloc(&h->leaves, expected / 2 + 1);
    if (!bytes)
        return tnf_arena_fail(&h->leaves, "hashes", e);
    if (r.part != part || r.leaves.n != expected || !tnf_hex_take(bytes, r.leaves.p, expected / 2))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "receipt %" PRIu64 " is damaged; run that part again", part);
    h->bytes = bytes;
    h->loaded = part;
    return TNF_OK;
}

static void count_before(struct hashing *h)
{
    const tnf_job *job = h->f->job;
    for (size_t i = 1; i < job->nitems; i++)
        if (job->items[i].part == job->items[i - 1].part)
            h->before[i] = h->before[i - 1] + job->items[i - 1].n;
}

/* ---------------------------------------------------------------------- groups */

static int by_tensor(const void *a, const void *b)
{
    const struct job_item *x = *(const struct job_item *const *)a,
                          *y = *(const struct job_item *const *)b;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    if (x->k != y->k)
        return x->k < y->k ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_begin(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return x->begins < y->begins ? -1 : x->begins > y->begins;
}

static size_t number_of(const struct hashing *h, size_t i)
{
    return (size_t)(h->items[i] - h->f->job->items);
}

/* Makes one group for each tensor that has items. */
static size_t make_groups(struct hashing *h, struct group *groups)
{
    const tnf_job *job = h->f->job;
    size_t count = 0;
    for (size_t i = 0; i < job->nitems; i++)
        if (job->items[i].in == h->in)
            h->items[h->n++] = &job->items[i];
    if (h->n)
        qsort((void *)h->items, h->n, sizeof *h->items, by_tensor);
    for (size_t i = 0; i < h->n; i++) {
        struct group *g = count ? &groups[count - 1] : NULL;
        if (!g || g->index != h->items[i]->index) {
            g = &groups[count++];
            *g = (struct group) { h->items[i]->index, i, 0, SIZE_MAX };
        }
        g->n++;
        g->begins = number_of(h, i) < g->begins ? number_of(h, i) : g->begins;
    }
    if (count)
        qsort(groups, count, sizeof *groups, by_begin);
    return count;
}

static tnf_status fail_misfit(tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                    "the plan does not match its inputs; make a new plan");
}

/* Does the group have every leaf of the tensor once, in order? */
static bool is_complete(const struct hashing *h, const struct group *g, const tnf_object *o)
{
    size_t i = g->first;
    for (uint16_t k = 0; o && k < o->nparts; k++) {
        uint64_t upto = 0;
        for (; i < g->first + g->n && h->items[i]->k == k; i++) {
            if (h->items[i]->first != upto ||
                h->items[i]->n > tnf_count_leaves(&o->parts[k]) - upto)
                return false;
            upto += h->items[i]->n;
        }
        if (upto != tnf_count_leaves(&o->parts[k]))
            return false;
    }
    return o && i == g->first + g->n;
}

static tnf_status hash_group(struct hashing *h, const struct group *g, const tnf_object *o,
                             uint8_t out[TNF_HASH_BYTES], tnf_error *e)
{
    tnf_arena room;
    if (!is_complete(h, g, o))
        return fail_misfit(e);
    tnf_scratch_begin(&room);
    uint8_t *leaves = tnf_arena_array(&room, tnf_leaves_before(o, o->nparts) + 1, TNF_HASH_BYTES);
    uint8_t *to = leaves;
    tnf_status status = leaves ? TNF_OK : tnf_arena_fail(&room, "hashes", e);
    for (size_t i = g->first; i < g->first + g->n && status == TNF_OK; i++) {
        const struct job_item *it = h->items[i];
        status = it->n ? load_leaves(h, it->part, e) : TNF_OK;
        if (status != TNF_OK || it->n == 0)
            continue;
        memcpy(to, h->bytes + h->before[number_of(h, i)] * TNF_HASH_BYTES,
               (size_t)it->n * TNF_HASH_BYTES);
        to += it->n * TNF_HASH_BYTES;
    }
    if (status == TNF_OK)
        status = tnf_content_of_leaves(out, o, leaves, e);
    tnf_arena_free(&room);
    return status;
}

static tnf_status hash_tensors(struct hashing *h, uint8_t (*out)[TNF_HASH_BYTES], tnf_error *e)
{
    const tnf_file *file = h->f->job->inputs[h->in].file;
    tnf_arena *arena = &h->f->arena;
    size_t objects = tnf_file_info(file)->objects, done = 0;
    struct group *groups = tnf_arena_array(arena, h->f->job->nitems + 1, sizeof *groups);
    h->items = tnf_arena_array(arena, h->f->job->nitems + 1, sizeof *h->items);
    if (!groups || !h->items)
        return tnf_arena_fail(arena, "hashes", e);
    size_t n = make_groups(h, groups);
    for (size_t i = 0; i < n; i++) {
        if (groups[i].index >= objects)
            return fail_misfit(e);
        TNF_TRY(hash_group(h, &groups[i], tnf_at(file, groups[i].index), out[groups[i].index], e));
        TNF_TRY(tnf_progress_add(&h->f->progress, &h->f->lock, TNF_HASH_BYTES, e));
    }
    for (size_t i = 0; i < objects; i++) { /* tensors without bytes */
        if (tnf_at(file, i)->nparts == 0)
            TNF_TRY(tnf_content_of_leaves(out[i], tnf_at(file, i), NULL, e));
        done += tnf_at(file, i)->nparts > 0;
    }
    return done == n ? TNF_OK : fail_misfit(e);
}

/* ----------------------------------------------------------------------- texts */

void tnf_finish_put_hash(tnf_buf *b, const uint8_t hash[TNF_HASH_BYTES])
{
    tnf_buf_puts(b, "\"sha256:");
    tnf_buf_hex(b, hash, TNF_HASH_BYTES);
    tnf_buf_puts(b, "\"");
}

static tnf_status hash_input(struct hashing *h, tnf_buf *b, tnf_error *e)
{
    const tnf_file *file = h->f->job->inputs[h->in].file;
    const char *path = h->f->job->inputs[h->in].shown;
    size_t n = tnf_file_info(file)->objects;
    uint8_t hash[TNF_HASH_BYTES];
    uint8_t(*tensors)[TNF_HASH_BYTES] = tnf_arena_array(&h->f->arena, n + 1, sizeof *tensors);
    if (!tensors)
        return tnf_arena_fail(&h->f->arena, "hashes", e);
    TNF_TRY(hash_tensors(h, tensors, e));
    TNF_TRY(tnf_content_of_tensors(hash, file, (const uint8_t(*)[TNF_HASH_BYTES])tensors, e));
    tnf_buf_puts(b, h->in ? ",\n{\"file\":" : "\n{\"file\":");
    tnf_row_text(b, (tnf_str) { path, strlen(path) });
    tnf_buf_puts(b, ",\"hash\":");
    tnf_finish_put_hash(b, hash);
    tnf_buf_printf(b, ",\"hash_version\":%d,\"tensors\":[", TNF_HASH_VERSION);
    for (size_t i = 0; i < n; i++) {
        tnf_buf_puts(b, i ? ",\n{" : "\n{");
        tnf_row_name(b, "name", tnf_at(file, i)->name);
        tnf_buf_puts(b, ",\"hash\":");
        tnf_finish_put_hash(b, tensors[i]);
        tnf_buf_puts(b, "}");
    }
    tnf_buf_puts(b, "]}");
    return tnf_buf_status(b, "the hashes", e);
}

tnf_status tnf_finish_hash(struct finishing *f, tnf_buf *b, tnf_error *e)
{
    struct hashing h = { .f = f, .loaded = NO_PART };
    h.before = tnf_arena_array(&f->arena, f->job->nitems + 1, sizeof *h.before);
    if (!h.before)
        return tnf_arena_fail(&f->arena, "hashes", e);
    count_before(&h);
    TNF_TRY(tnf_job_open(f->job, true, &f->how, e));
    tnf_scratch_begin(&h.leaves);
    tnf_buf_puts(b, ",\"files\":[");
    tnf_status status = TNF_OK;
    for (; h.in < f->job->o.ninputs && status == TNF_OK; h.in++) {
        h.n = 0;
        status = hash_input(&h, b, e);
    }
    tnf_arena_free(&h.leaves);
    tnf_buf_puts(b, "]");
    return status;
}
