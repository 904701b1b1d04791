/* SPDX-License-Identifier: MIT */
/* Reads the input once more, and compares it with the output of the parts. If a bit flipped while a
 * part read the input, its receipt has the wrong bit, too, so no other check finds it.
 *
 * The leaves of an output are hashes of its bytes in the file, the leaves of an input are hashes of
 * its tensors' bytes. If tensors are copied unchanged, both are the same.
 */
#include "base/pool.h"
#include "job/finishing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct comparing {
    struct finishing *f;
    const uint8_t *all;     /* leaves of all items */
    const uint64_t *before; /* leaves before each item */
};

/* The part of a tensor to which an item belongs. */
struct origin {
    const tnf_file *file;
    size_t index;
    uint16_t k;
    const tnf_part *part;
};

static bool find_origin(struct origin *out, const tnf_job *job, const struct job_item *it)
{
    for (size_t i = 0; i < job->o.ninputs; i++) {
        const tnf_file *file = job->inputs[i].file;
        const tnf_object *o = tnf_find_n(file, it->tensor.p, it->tensor.n);
        for (uint16_t k = 0; o && k < o->nparts; k++)
            if (strcmp(o->parts[k].role, it->role) == 0) {
                *out = (struct origin) { file, (size_t)(o - tnf_at(file, 0)), k, &o->parts[k] };
                return true;
            }
    }
    return false;
}

static tnf_status leaf_differs(const struct job_item *it, uint64_t leaf, tnf_error *e)
{
    return tnf_fail(e, TNF_EDIGEST, TNF_NO_OFFSET,
                    "part %" PRIu64 ", leaf %" PRIu64
                    " of %s: the output differs from the input, or the format stores it in another "
                    "form",
                    it->part, leaf, TNF_QUOTED(it->tensor));
}

static tnf_status compare_leaves(const struct comparing *c, size_t number,
                                 const struct origin *from, uint64_t first, uint64_t n,
                                 tnf_error *e)
{
    static const tnf_progress silent = { 0 };
    const struct job_item *it = &c->f->job->items[number];
    uint8_t *found = n < SIZE_MAX / TNF_HASH_BYTES ? malloc((size_t)n * TNF_HASH_BYTES) : NULL;
    if (!found)
        return tnf_no_memory("hashes", e);
    tnf_status status = tnf_content_some(found, from->file, from->index, from->k, first, n, &silent,
                                         e);
    for (uint64_t i = 0; i < n && status == TNF_OK; i++)
        if (memcmp(found + i * TNF_HASH_BYTES,
                   c->all + (c->before[number] + first - it->first + i) * TNF_HASH_BYTES,
                   TNF_HASH_BYTES) != 0)
            status = leaf_differs(it, first + i, e);
    free(found);
    return status;
}

/* Does the last item of the tensor end where the tensor ends, and every other one before? */
static bool ends_rightly(const tnf_job *job, size_t number, const tnf_part *part)
{
    const struct job_item *it = &job->items[number];
    bool last = number + 1 == job->nitems || it[1].first == 0;
    uint64_t end = it->offset + it->bytes;
    return last ? end == part->nbytes : end < part->nbytes;
}

static tnf_status compare_item(void *ctx, size_t number, tnf_error *e)
{
    const struct comparing *c = ctx;
    tnf_job *job = c->f->job;
    const struct job_item *it = &job->items[number];
    struct origin from;
    if (!find_origin(&from, job, it))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s is not a tensor of an input, so it cannot be compared",
                        TNF_QUOTED(it->tensor));
    if (!ends_rightly(job, number, from.part))
        return leaf_differs(it, it->first, e);
    bool cuts = tnf_content_cuts(tnf_at(from.file, from.index), from.k);
    uint64_t step = cuts ? 1 : it->n;
    for (uint64_t i = 0; i < it->n; i += step) {
        TNF_TRY(compare_leaves(c, number, &from, it->first + i, step, e));
        TNF_TRY(tnf_progress_add(&c->f->progress, &c->f->lock, 0, e));
    }
    return TNF_OK;
}

tnf_status tnf_finish_input(struct finishing *f, tnf_error *e)
{
    tnf_job *job = f->job;
    struct comparing c = { .f = f };
    uint8_t *all;
    uint64_t *before;
    if (!f->how.check_input)
        return TNF_OK;
    if (job->o.dtype || strcmp(job->mode, "whole") == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "this plan does not copy tensors unchanged, so they cannot be compared "
                        "with the input leaf by leaf");
    TNF_TRY(tnf_job_open(job, true, &f->how, e));
    TNF_TRY(tnf_finish_leaves(f, &all, &before, e));
    c.all = all;
    c.before = before;
    return tnf_pool_run(tnf_pool_threads(f->how.threads), job->nitems, compare_item, &c, e);
}
