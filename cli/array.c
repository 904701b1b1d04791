/* SPDX-License-Identifier: MIT */
/* Views and blocks. A block is a run along one dimension: it covers the later dimensions completely
 * and has one position in each earlier one:
 *
 *     position …   [i] [j] | [k … k+run) | [all] [all]
 *                            axis
 */
#include "array.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cat_message(tnf_error *error, tnf_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    error->status = status;
    error->sys = 0;
    error->offset = TNF_NO_OFFSET;
}

static tnf_status no_memory(tnf_error *error)
{
    return cat_fail(error, TNF_ENOMEM, "out of memory");
}

static void measure_view(view *v)
{
    v->rank = 0;
    v->elements = 1;
    for (uint32_t i = 0; i < v->object.rank; i++) {
        v->elements = v->slices[i].count ? v->elements * v->slices[i].count : 0;
        if (!v->slices[i].drop)
            v->shape[v->rank++] = v->slices[i].count;
        if (v->elements == 0)
            break;
    }
    for (uint32_t i = 0, at = 0; v->elements == 0 && i < v->object.rank; i++) {
        if (!v->slices[i].drop)
            v->shape[at++] = v->slices[i].count;
        v->rank = at;
    }
}

static tnf_status take_whole(view *v, tnf_error *error)
{
    size_t n = v->object.rank + (size_t)1;
    v->slices = calloc(n, sizeof *v->slices);
    v->shape = calloc(n, sizeof *v->shape);
    if (!v->slices || !v->shape)
        return no_memory(error);
    for (uint32_t i = 0; i < v->object.rank; i++)
        v->slices[i] = (tnf_slice) { 0, 1, v->object.shape[i], false };
    measure_view(v);
    return TNF_OK;
}

tnf_status view_object(view *v, const tnf_object *object, tnf_error *error)
{
    *v = (view) { .object = *object, .type = object_type(object) };
    return take_whole(v, error);
}

tnf_status view_part(view *v, const tnf_object *object, const tnf_part *part, tnf_error *error)
{
    if (is_dense(object))
        return view_object(v, object, error);
    if (part->type->bits == 0)
        return cat_fail(error, TNF_EUNSUPPORTED,
                        "elements of the unknown type '%s' cannot be shown", part->type->id);
    *v = (view) { .object = *object, .type = part->type, .part = *part };
    v->flat = part->nbytes / part->type->bits * 8 +
              part->nbytes % part->type->bits * 8 / part->type->bits;
    v->part.role = "data";
    v->object.layout = tnf_layout_by_id("dense"); /* the library reads a single part as dense */
    v->object.parts = &v->part;
    v->object.nparts = 1;
    v->object.shape = &v->flat;
    v->object.rank = 1;
    v->object.order = TNF_ORDER_C;
    return take_whole(v, error);
}

tnf_status view_slice(view *v, const char *text, tnf_error *error)
{
    tnf_status status = tnf_slice_parse(v->slices, text, v->object.shape, v->object.rank, error);
    if (status == TNF_OK)
        measure_view(v);
    return status;
}

void view_free(view *v)
{
    free(v->slices);
    free(v->shape);
    v->slices = NULL;
    v->shape = NULL;
}

/* ----------------------------------------------------------------- blocks */

tnf_status blocks_begin(blocks *b, const view *v, tnf_error *error)
{
    uint32_t rank = v->object.rank;
    *b = (blocks) { .view = v, .run = 1, .done = v->elements == 0 };
    uint64_t room = BLOCK_BYTES / (v->type->bits > 8 ? v->type->bits / 8 : 1), inner = 1;
    b->axis = rank;
    while (!b->done && b->axis > 0 && inner <= room) {
        uint64_t count = v->slices[b->axis - 1].count;
        b->axis--;
        b->run = room / inner < count ? room / inner : count;
        if (b->run < count)
            break;
        inner *= count;
    }
    b->now = calloc(rank + (size_t)1, sizeof *b->now);
    b->position = calloc(rank + (size_t)1, sizeof *b->position);
    b->bytes = malloc(BLOCK_BYTES + 16);
    return b->now && b->position && b->bytes ? TNF_OK : no_memory(error);
}

static tnf_slice part_of(tnf_slice whole, uint64_t from, uint64_t count)
{
    return (tnf_slice) { whole.start + (int64_t)from * whole.step, whole.step, count, false };
}

/* Advances to the next run, or to the next position of the earlier dimensions. */
static void advance_run(blocks *b)
{
    const tnf_slice *s = b->view->slices;
    uint32_t i = b->axis;
    if (i < b->view->object.rank) {
        b->position[i] += b->now[i].count;
        if (b->position[i] < s[i].count)
            return;
        b->position[i] = 0;
    }
    while (i-- > 0) {
        if (++b->position[i] < s[i].count)
            return;
        b->position[i] = 0;
    }
    b->done = true;
}

tnf_status blocks_next(blocks *b, tnf_error *error)
{
    const view *v = b->view;
    b->elements = 0;
    if (b->done)
        return TNF_OK;
    uint64_t elements = 1;
    for (uint32_t i = 0; i < v->object.rank; i++) {
        uint64_t left = v->slices[i].count - b->position[i];
        uint64_t count = i < b->axis ? 1 : i == b->axis ? (left < b->run ? left : b->run) : left;
        b->now[i] = part_of(v->slices[i], b->position[i], count);
        elements *= count;
    }
    b->n = (size_t)tnf_slice_bytes(&v->object, b->now);
    b->elements = (size_t)elements;
    if (b->n > BLOCK_BYTES)
        return cat_fail(error, TNF_EBUG, "a block of %zu bytes", b->n);
    tnf_status status = tnf_read_slice(b->bytes, b->n, &v->object, b->now, error);
    advance_run(b);
    return status;
}

void blocks_end(blocks *b)
{
    free(b->now);
    free(b->position);
    free(b->bytes);
}

tnf_status view_row(const view *v, const uint64_t *position, uint64_t count, void *dst, size_t n,
                    tnf_error *error)
{
    tnf_slice *row = calloc(v->object.rank + (size_t)1, sizeof *row);
    uint32_t at = 0;
    if (!row)
        return no_memory(error);
    for (uint32_t i = 0; i < v->object.rank; i++) {
        bool gone = v->slices[i].drop;
        row[i] = part_of(v->slices[i], gone ? 0 : position[at],
                         at + 1 == v->rank && !gone ? count : 1);
        at += !gone;
    }
    size_t bytes = (size_t)tnf_slice_bytes(&v->object, row);
    tnf_status status = bytes <= n ? tnf_read_slice(dst, bytes, &v->object, row, error)
                                   : cat_fail(error, TNF_EBUG, "a row of %zu bytes", bytes);
    free(row);
    return status;
}
