/* SPDX-License-Identifier: MIT */
/* Virtual tensors from pieces: joined tensors, and pieces at any place in a whole.
 *
 *   ┌────┬────┬──┐      A piece is read row by row, in stored order. The whole has its rows in the
 *   │ 0  │ 1  │2 │      same order, so the rows in a window of the whole are consecutive: one read
 *   ├────┼────┼──┤      of the piece gets them, and each goes to its place.
 *   │ 3  │ 4  │5 │
 *   └────┴────┴──┘
 */
#include "base/rising.h"
#include "core/read/virtual.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW ((uint64_t)1 << 20) /* bytes of the whole that are made at a time */

struct box {
    const tnf_part *part;
    const uint64_t *shape, *start;
    uint32_t outer;       /* dimensions that count rows; a row is all other dimensions */
    uint64_t rows, row;   /* number of rows, and elements per row */
    uint64_t inner;       /* elements of the whole after its dimension `outer` */
    uint64_t first, last; /* elements of the whole, in order, that bound it */
    uint64_t reaches;     /* the largest `last` up to here */
};

struct grid {
    struct box *boxes; /* sorted by `first`; none is empty */
    size_t n;
    size_t width; /* bytes of an element */
    bool tiles;   /* every element is in exactly one box */
    uint8_t fill[16];
};

/* The element of the whole at which row r of a box begins. */
static uint64_t place_of(const struct tnf_virtual *v, const struct box *b, uint64_t r)
{
    const uint64_t *shape = v->object.shape;
    uint64_t at = v->object.rank ? b->start[b->outer] * b->inner : 0;
    uint64_t stride = v->object.rank ? shape[b->outer] * b->inner : 1;
    for (uint32_t d = b->outer; d-- > 0;) {
        at += (b->start[d] + r % b->shape[d]) * stride;
        r /= b->shape[d];
        stride *= shape[d];
    }
    return at;
}

/* The first row of a box that ends after element `at` of the whole. */
static uint64_t row_behind(const struct tnf_virtual *v, const struct box *b, uint64_t at)
{
    uint64_t low = 0, high = b->rows;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (place_of(v, b, middle) + b->row <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A single row: only its wanted part is read, directly to its place. */
static tnf_status take_row(struct tnf_cursor *c, const struct box *b, uint64_t r, uint64_t first,
                           uint64_t end, uint8_t *dst, tnf_error *e)
{
    const struct grid *g = c->v->plan;
    uint64_t at = place_of(c->v, b, r), skip = at < first ? first - at : 0;
    uint64_t left = b->row - skip, here = end - (at + skip) < left ? end - (at + skip) : left;
    return tnf_input_read_to(c, &c->inputs[0], b->part, (r * b->row + skip) * g->width,
                             dst + (size_t)(at + skip - first) * g->width, (size_t)here * g->width,
                             e);
}

/* Whole rows [from, to), which are all in the window that begins at `first`. */
static tnf_status take_rows(struct tnf_cursor *c, const struct box *b, uint64_t from, uint64_t to,
                            uint64_t first, uint8_t *dst, tnf_error *e)
{
    const struct grid *g = c->v->plan;
    size_t row = (size_t)b->row * g->width;
    const uint8_t *rows;
    TNF_TRY(
        tnf_input_read(c, &c->inputs[0], b->part, from * row, (size_t)(to - from) * row, &rows, e));
    for (uint64_t r = from; r < to; r++, rows += row)
        memcpy(dst + (size_t)(place_of(c->v, b, r) - first) * g->width, rows, row);
    return TNF_OK;
}

/* Copies the elements [first, end) that are in a box to their places. */
static tnf_status take_box(struct tnf_cursor *c, const struct box *b, uint64_t first, uint64_t end,
                           uint8_t *dst, tnf_error *e)
{
    uint64_t from = row_behind(c->v, b, first), to;
    for (; from < b->rows && place_of(c->v, b, from) < end; from = to) {
        to = from;
        if (place_of(c->v, b, from) >= first)
            while (to < b->rows && place_of(c->v, b, to) + b->row <= end)
                to++;
        if (to > from + 1) {
            TNF_TRY(take_rows(c, b, from, to, first, dst, e));
            continue;
        }
        to = from + 1;
        TNF_TRY(take_row(c, b, from, first, end, dst, e));
    }
    return TNF_OK;
}

static size_t first_reaching(const struct grid *g, uint64_t at)
{
    return g->n ? tnf_rising_first(&g->boxes->reaches, sizeof *g->boxes, g->n, at) : 0;
}

static tnf_status make_grid(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                            tnf_error *e)
{
    const struct grid *g = c->v->plan;
    if (!g->tiles)
        for (size_t i = 0; i < n; i++)
            memcpy(dst + i * g->width, g->fill, g->width);
    for (size_t i = first_reaching(g, first); i < g->n && g->boxes[i].first < first + n; i++)
        if (g->boxes[i].last >= first)
            TNF_TRY(take_box(c, &g->boxes[i], first, first + n, dst, e));
    return TNF_OK;
}

/* ----------------------------------------------------------------- making */

static int compare_boxes(const void *a, const void *b)
{
    const struct box *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static tnf_status check_piece(const struct tnf_virtual *v, size_t i, const uint64_t *start,
                              tnf_error *e)
{
    const tnf_object *o = &v->sources[i];
    TNF_TRY(tnf_virtual_dense(v, i, e));
    if (o->parts->type != v->sources[0].parts->type || o->rank != v->object.rank)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the pieces do not have one type and one number of dimensions");
    if (o->order == TNF_ORDER_F && o->rank > 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "a piece is stored column by column: change its order to row by row first");
    for (uint32_t d = 0; d < o->rank; d++)
        if (start[d] > v->object.shape[d] || o->shape[d] > v->object.shape[d] - start[d])
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "piece %zu reaches beyond dimension %u of the whole", i, d);
    return TNF_OK;
}

static tnf_status add_box(struct tnf_virtual *v, struct grid *g, size_t i, const uint64_t *start,
                          uint64_t *covered, tnf_error *e)
{
    const tnf_object *o = &v->sources[i];
    TNF_TRY(check_piece(v, i, start, e));
    uint64_t elements = tnf_elements(o);
    if (elements == 0)
        return TNF_OK;
    struct box *b = &g->boxes[g->n++];
    *b = (struct box) { .part = o->parts, .shape = o->shape, .start = start };
    b->outer = o->rank ? o->rank - 1 : 0;
    b->row = o->rank ? o->shape[b->outer] : 1;
    b->inner = 1;
    while (b->outer > 0 && o->shape[b->outer] == v->object.shape[b->outer]) {
        b->inner *= o->shape[b->outer--];
        b->row *= o->shape[b->outer];
    }
    b->rows = elements / b->row;
    b->first = place_of(v, b, 0);
    b->last = place_of(v, b, b->rows - 1) + b->row - 1;
    *covered += elements; /* if it wraps, the pieces overlap, and it is not the size of the whole */
    return TNF_OK;
}

/* Boxes cover as many elements as the whole has: is it certain that none overlap? It is if they
 * divide each dimension at the same places. */
static bool is_regular(const struct tnf_virtual *v, const struct grid *g)
{
    for (uint32_t d = 0; d < v->object.rank; d++) {
        uint64_t step = 0;
        for (size_t i = 0; i < g->n; i++)
            step = g->boxes[i].start[d] == 0 ? g->boxes[i].shape[d] : step;
        for (size_t i = 0; i < g->n; i++) {
            const struct box *b = &g->boxes[i];
            uint64_t left = v->object.shape[d] - b->start[d];
            if (step == 0 || b->start[d] % step || b->shape[d] != (left < step ? left : step))
                return false;
        }
    }
    for (size_t i = 1; i < g->n; i++)
        if (g->boxes[i].first == g->boxes[i - 1].first)
            return false;
    return true;
}

static tnf_status place_boxes(struct tnf_virtual *v, const uint64_t *starts, const void *fill,
                              tnf_error *e)
{
    struct grid *g = tnf_virtual_plan(v, 1, sizeof *g, e);
    uint64_t covered = 0, bits = v->part.type->bits;
    if (!g || !(g->boxes = tnf_virtual_plan(v, v->n, sizeof *g->boxes, e)))
        return TNF_ENOMEM;
    if (bits % 8 || bits / 8 > sizeof g->fill)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "elements of %llu bits cannot be joined", (unsigned long long)bits);
    g->width = (size_t)bits / 8;
    for (size_t i = 0; i < v->n; i++)
        TNF_TRY(add_box(v, g, i, starts + i * v->object.rank, &covered, e));
    qsort(g->boxes, g->n, sizeof *g->boxes, compare_boxes);
    for (size_t i = 0; i < g->n; i++) {
        struct box *b = &g->boxes[i];
        b->reaches = i > 0 && g->boxes[i - 1].reaches > b->last ? g->boxes[i - 1].reaches : b->last;
    }
    if (!fill && covered != v->elements)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the pieces have %llu elements, but the whole has %llu",
                        (unsigned long long)covered, (unsigned long long)v->elements);
    if (fill)
        memcpy(g->fill, fill, g->width);
    g->tiles = covered == v->elements && is_regular(v, g);
    v->plan = g;
    v->make = make_grid;
    v->window = WINDOW / g->width;
    return TNF_OK;
}

tnf_status tnf_virtual_grid(struct tnf_virtual *v, const tnf_virtual_how *how, tnf_error *e)
{
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    if ((how->rank > 0 && (!how->shape || !how->starts)) || how->rank != v->sources[0].rank)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "a grid needs its shape and the place of each piece");
    TNF_TRY(tnf_virtual_becomes(v, v->sources[0].parts->type, how->shape, how->rank, e));
    v->object.order = TNF_ORDER_C;
    uint64_t *starts = tnf_virtual_plan(v, (uint64_t)v->n * how->rank, sizeof *starts, e);
    if (!starts)
        return TNF_ENOMEM;
    if (how->rank > 0)
        memcpy(starts, how->starts, v->n * how->rank * sizeof *starts);
    return place_boxes(v, starts, how->fill, e);
}

/* Checks that all sizes but that of the axis are equal. */
static tnf_status check_joined(const struct tnf_virtual *v, size_t i, uint32_t axis, tnf_error *e)
{
    const tnf_object *a = &v->sources[0], *b = &v->sources[i];
    bool fits = a->rank == b->rank;
    for (uint32_t d = 0; fits && d < a->rank; d++)
        fits = d == axis || a->shape[d] == b->shape[d];
    return fits ? TNF_OK
                : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                           "%s cannot be joined to %s: they differ in another dimension than %u",
                           TNF_QUOTED(b->name), TNF_QUOTED(a->name), axis);
}

tnf_status tnf_virtual_join(struct tnf_virtual *v, uint32_t axis, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    if (axis >= o->rank)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "there is no dimension %u: the tensor has %u dimensions", axis, o->rank);
    uint64_t *shape = tnf_virtual_plan(v, o->rank, sizeof *shape, e);
    uint64_t *starts = tnf_virtual_plan(v, (uint64_t)v->n * o->rank, sizeof *starts, e);
    if (!shape || !starts)
        return TNF_ENOMEM;
    memcpy(shape, o->shape, o->rank * sizeof *shape);
    shape[axis] = 0;
    for (size_t i = 0; i < v->n; i++) {
        TNF_TRY(check_joined(v, i, axis, e));
        starts[i * o->rank + axis] = shape[axis];
        if (!tnf_ckd_add(&shape[axis], shape[axis], v->sources[i].shape[axis]))
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the joined tensor has too many rows");
    }
    TNF_TRY(tnf_virtual_becomes(v, o->parts->type, shape, o->rank, e));
    v->object.order = TNF_ORDER_C;
    return place_boxes(v, starts, NULL, e);
}
