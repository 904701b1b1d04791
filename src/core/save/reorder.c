/* SPDX-License-Identifier: MIT */
/* A tensor in the other order, row by row instead of column by column or the reverse, made while it
 * is saved and never held as a whole.
 *
 *   stored   a d  b e  c f      [2,3], columns first
 *   wanted   a b c  d e f       rows first: the block of its first rows, then the next …
 *
 * A tensor whose rows come first is one of the reversed shape whose columns do, so one way serves
 * both. Blocks are slices of the source: `inner` elements of the dimensions after `dim` belong to
 * each of the `chunk` indices of a block.
 */
#include "core/save/save.h"

#include <string.h>

#define BLOCK ((uint64_t)16 << 20)

struct reordered {
    struct tnf_origin origin;
    tnf_object seen;   /* the source as columns first */
    tnf_slice *slices; /* one a dimension */
    uint32_t dim;      /* that blocks count */
    uint64_t unit;     /* bytes of one index of it */
    uint64_t chunk;    /* indices of a block */
    uint8_t *block;    /* bytes [at, at + n) of the result, in room for `size` */
    uint64_t at, n;
    size_t size;
    tnf_allocator alloc;
    struct reordered *next;
};

/* The block that holds byte `offset` of the result. */
static tnf_status load_block(struct reordered *r, uint64_t offset, tnf_error *e)
{
    const uint64_t *shape = r->seen.shape;
    uint64_t all = shape[r->dim] * r->unit, before = offset / all;
    uint64_t first = offset % all / (r->chunk * r->unit) * r->chunk;
    uint64_t count = shape[r->dim] - first < r->chunk ? shape[r->dim] - first : r->chunk;
    if (!r->block && !(r->block = tnf_alloc(&r->alloc, r->size)))
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for another order");
    r->at = before * all + first * r->unit;
    r->n = 0; /* until it is there */
    r->slices[r->dim] = (tnf_slice) { (int64_t)first, 1, count, false };
    for (uint32_t d = r->dim; d-- > 0; before /= shape[d])
        r->slices[d] = (tnf_slice) { (int64_t)(before % shape[d]), 1, 1, false };
    TNF_TRY(tnf_read_slice(&r->seen, r->slices, r->block, (size_t)(count * r->unit), e));
    r->n = count * r->unit;
    return TNF_OK;
}

static void forget(struct reordered *r)
{
    tnf_free(&r->alloc, r->block, r->size);
    r->block = NULL;
    r->n = 0;
}

static tnf_status fetch_reordered(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct reordered *r = ctx;
    for (uint8_t *to = dst; n > 0;) {
        if (offset < r->at || offset - r->at >= r->n)
            TNF_TRY(load_block(r, offset, e));
        uint64_t skip = offset - r->at, here = r->n - skip < n ? r->n - skip : n;
        memcpy(to, r->block + skip, (size_t)here);
        to += here;
        offset += here;
        n -= (size_t)here;
    }
    if (offset == r->seen.parts->nbytes)
        forget(r);
    return TNF_OK;
}

/* As many dimensions from the last on as fit a block, and of the next as many indices as do. */
static void plan_blocks(struct reordered *r)
{
    const tnf_object *o = &r->seen;
    r->unit = o->parts->type->bits / 8;
    r->dim = o->rank - 1;
    while (r->dim > 0 && o->shape[r->dim] * r->unit <= BLOCK)
        r->unit *= o->shape[r->dim--];
    r->chunk = BLOCK / r->unit < o->shape[r->dim] ? BLOCK / r->unit : o->shape[r->dim];
    r->size = (size_t)(r->chunk * r->unit);
    for (uint32_t d = r->dim + 1; d < o->rank; d++)
        r->slices[d] = (tnf_slice) { 0, 1, o->shape[d], false };
}

static tnf_status see_as_columns(struct reordered *r, const tnf_object *o, tnf_arena *a,
                                 tnf_error *e)
{
    r->seen = *o;
    r->slices = tnf_arena_array(a, o->rank, sizeof *r->slices);
    uint64_t *shape = tnf_arena_array(a, o->rank, sizeof *shape);
    if (!r->slices || !shape)
        return tnf_arena_fail(a, "another order", e);
    for (uint32_t d = 0; d < o->rank; d++)
        shape[d] = o->shape[o->order == TNF_ORDER_F ? d : o->rank - 1 - d];
    r->seen.shape = shape;
    r->seen.order = TNF_ORDER_F;
    return TNF_OK;
}

tnf_status tnf_reorder(tnf_part *out, const tnf_object *o, struct tnf_save *save, tnf_error *e)
{
    tnf_arena *a = &save->arena;
    struct reordered *r = tnf_arena_alloc(a, sizeof *r);
    if (!r)
        return tnf_arena_fail(a, "another order", e);
    *r = (struct reordered) { .alloc = a->alloc, .next = save->reordered };
    r->origin.fetch = fetch_reordered;
    r->origin.ctx = r;
    TNF_TRY(see_as_columns(r, o, a, e));
    plan_blocks(r);
    save->reordered = r;
    *out = (tnf_part) { .role = o->parts->role,
                        .type = o->parts->type,
                        .origin = &r->origin,
                        .stored = o->parts->nbytes,
                        .nbytes = o->parts->nbytes,
                        .payload = TNF_MEMORY };
    return TNF_OK;
}

void tnf_reorder_end(struct tnf_save *save)
{
    for (struct reordered *r = save->reordered; r; r = r->next)
        forget(r);
}
