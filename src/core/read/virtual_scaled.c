/* SPDX-License-Identifier: MIT */
/* A virtual tensor from two others: small floats, and the scales of their blocks; the result is
 * f32.
 *
 *   weight [256,384] f8_e4m3fn, scales [2,3] f32: element (i, j) times scale (i / 128, j / 128)
 *
 * The scales are few, so they are read once.
 */
#include "core/read/virtual.h"

#include <string.h>

#define PIECE 512u /* elements at a time */

struct scaled {
    const float *scales;
    uint64_t *block;  /* the size of a block in each dimension */
    uint64_t *stride; /* scales between neighbouring blocks of a dimension */
};

/* The index of the scale at column 0 of a row, which is an index of all dimensions but the last. */
static uint64_t row_scale(const struct tnf_virtual *v, uint64_t row)
{
    const struct scaled *s = v->plan;
    uint64_t at = 0;
    for (uint32_t d = v->object.rank - 1; d-- > 0;) {
        at += row % v->object.shape[d] / s->block[d] * s->stride[d];
        row /= v->object.shape[d];
    }
    return at;
}

/* Elements [column, column + n) of one row. */
static void scale_row(const struct tnf_virtual *v, const uint8_t *bytes, size_t skip, uint64_t row,
                      uint64_t column, size_t n, uint8_t *dst)
{
    const struct scaled *s = v->plan;
    uint32_t last = v->object.rank - 1;
    const float *scales = s->scales + row_scale(v, row);
    double x[PIECE];
    for (size_t at = 0; at < n; at += PIECE) {
        size_t here = n - at < PIECE ? n - at : PIECE;
        (void)tnf_type_decode(x, v->sources[0].parts->type, bytes, skip + at, here);
        for (size_t i = 0; i < here; i++) {
            float y = (float)x[i] * scales[(column + at + i) / s->block[last] * s->stride[last]];
            uint32_t bits;
            memcpy(&bits, &y, sizeof bits);
            tnf_put_le32(dst + 4 * (at + i), bits);
        }
    }
}

static tnf_status make_scaled(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                              tnf_error *e)
{
    const struct tnf_virtual *v = c->v;
    uint64_t length = v->object.shape[v->object.rank - 1];
    const uint8_t *bytes;
    size_t skip;
    TNF_TRY(tnf_input_elements(c, &c->inputs[0], v->sources[0].parts, first, n, &bytes, &skip, e));
    for (size_t at = 0; at < n;) {
        uint64_t column = (first + at) % length, left = length - column;
        size_t here = n - at < left ? n - at : (size_t)left;
        scale_row(v, bytes, skip + at, (first + at) / length, column, here, dst + 4 * at);
        at += here;
    }
    return TNF_OK;
}

/* ----------------------------------------------------------------- making */

/* The number of scales along dimension d. Shapes are compared from the first dimension on; a single
 * scale applies to everything. */
static uint64_t scales_along(const struct tnf_virtual *v, uint32_t d)
{
    const tnf_object *scales = &v->sources[1];
    return tnf_elements(scales) == 1 || d >= scales->rank ? 1 : scales->shape[d];
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static tnf_status plan_block(const struct tnf_virtual *v, uint32_t d, const uint64_t *given,
                             uint64_t *out, tnf_error *e)
{
    uint64_t length = v->sources[0].shape[d], count = scales_along(v, d);
    *out = given                                      ? given[d]
           : count == 1                               ? length
           : count && divide_up(length, 128) == count ? 128
           : count && length % count == 0             ? length / count
                                                      : 0;
    if (*out == 0 || divide_up(length, *out) != count)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%llu scales do not fit dimension %u of %llu elements; give the size of a "
                        "block",
                        (unsigned long long)count, d, (unsigned long long)length);
    return TNF_OK;
}

static tnf_status read_scales(struct tnf_virtual *v, struct scaled *s, tnf_error *e)
{
    const tnf_object *o = &v->sources[1];
    uint64_t n = tnf_elements(o);
    float *scales = tnf_virtual_plan(v, n, sizeof *scales, e);
    uint8_t *bytes = tnf_arena_raw(&v->arena, o->parts->nbytes + 1);
    if (!scales || !bytes)
        return tnf_arena_fail(&v->arena, "scales", e);
    TNF_TRY(tnf_read(bytes, (size_t)o->parts->nbytes, o, e));
    for (uint64_t i = 0; i < n; i++) {
        double x;
        (void)tnf_type_decode(&x, o->parts->type, bytes, (size_t)i, 1);
        scales[i] = (float)x;
    }
    s->scales = scales;
    return TNF_OK;
}

tnf_status tnf_virtual_scaled(struct tnf_virtual *v, const uint64_t *block, tnf_error *e)
{
    const tnf_object *o = &v->sources[0], *by = &v->sources[1];
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    TNF_TRY(tnf_virtual_dense(v, 1, e));
    bool floats = o->parts->type->number == TNF_NUMBER_FLOAT &&
                  by->parts->type->number == TNF_NUMBER_FLOAT;
    bool rows = (o->order == TNF_ORDER_C || o->rank < 2) &&
                (by->order == TNF_ORDER_C || by->rank < 2);
    if (!floats || !rows || o->rank == 0 || tnf_elements(o) == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s and its scales must be floats, stored row by row and not empty",
                        TNF_QUOTED(o->name));
    struct scaled *s = tnf_virtual_plan(v, 1, sizeof *s, e);
    if (!s || !(s->block = tnf_virtual_plan(v, o->rank, sizeof *s->block, e)) ||
        !(s->stride = tnf_virtual_plan(v, o->rank, sizeof *s->stride, e)))
        return TNF_ENOMEM;
    uint64_t stride = 1;
    for (uint32_t d = o->rank; d-- > 0;) {
        TNF_TRY(plan_block(v, d, block, &s->block[d], e));
        s->stride[d] = stride;
        stride *= scales_along(v, d);
    }
    if (stride != tnf_elements(by))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has more dimensions than %s",
                        TNF_QUOTED(by->name), TNF_QUOTED(o->name));
    TNF_TRY(read_scales(v, s, e));
    TNF_TRY(tnf_virtual_becomes(v, tnf_type_of(TNF_F32), o->shape, o->rank, e));
    v->object.order = TNF_ORDER_C;
    v->plan = s;
    v->make = make_scaled;
    v->scaled = true;
    return TNF_OK;
}
