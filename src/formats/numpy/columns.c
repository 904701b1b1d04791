/* SPDX-License-Identifier: MIT */
#include "formats/numpy/columns.h"

#include <string.h>

#define BLOCK ((uint64_t)4 << 20)

/* ---------------------------------------------------------------- reading */

/* The position in the file of element i, which is counted row by row. */
static uint64_t place_of(const np_columns *c, uint64_t i)
{
    uint64_t place = 0, step = 1;
    for (uint32_t d = 0; d < c->rank; d++)
        step *= c->shape[d];
    for (uint32_t d = c->rank; d-- > 0; i /= c->shape[d]) {
        step /= c->shape[d];
        place += i % c->shape[d] * step;
    }
    return place;
}

/* Reads bytes [skip, skip + n) of an element. Numbers whose bytes are reversed are read
 * completely. */
static tnf_status read_some(const tnf_source *source, const np_columns *c, uint64_t element,
                            uint64_t skip, uint8_t *dst, size_t n, tnf_error *e)
{
    uint64_t at = c->start + place_of(c, element) * c->width;
    if (c->swap == 1 || (skip % c->swap == 0 && n % c->swap == 0)) {
        TNF_TRY(tnf_source_read(source, at + skip, dst, n, e));
        tnf_reverse(dst, n, c->swap);
        return TNF_OK;
    }
    uint8_t whole[8];
    for (size_t done = 0; done < n;) {
        uint64_t first = (skip + done) / c->swap * c->swap;
        size_t from = (size_t)(skip + done - first), some = c->swap - from;
        some = some < n - done ? some : n - done;
        TNF_TRY(tnf_source_read(source, at + first, whole, c->swap, e));
        tnf_reverse(whole, c->swap, c->swap);
        memcpy(dst + done, whole + from, some);
        done += some;
    }
    return TNF_OK;
}

tnf_status tnf_np_gather(const tnf_source *source, const np_columns *c, uint64_t offset, void *dst,
                         size_t n, tnf_error *e)
{
    for (uint8_t *to = dst; n > 0;) {
        uint64_t skip = offset % c->width, some = c->width - skip;
        some = some < n ? some : n;
        TNF_TRY(read_some(source, c, offset / c->width, skip, to, (size_t)some, e));
        to += some;
        offset += some;
        n -= (size_t)some;
    }
    return TNF_OK;
}

/* ---------------------------------------------------------------- writing */

/* Moves to the next column: increments the indices after the first, the second one fastest. False:
 * no more columns. */
static bool next_column(tnf_slice *slices, const tnf_object *o, uint32_t rank)
{
    for (uint32_t d = 1; d < rank; d++) {
        if ((uint64_t)++slices[d].start < o->shape[d])
            return true;
        slices[d].start = 0;
    }
    return false;
}

/* The columns being written, and their destination. */
struct scattering {
    const tnf_object *o;
    tnf_slice *slices;
    uint8_t *block;
    uint64_t width;
    size_t swap;
    tnf_take_fn take;
    void *ctx;
};

static tnf_status put_column(const struct scattering *s, tnf_error *e)
{
    const tnf_object *o = s->o;
    tnf_slice *slices = s->slices;
    uint64_t width = s->width;
    uint64_t many = width < BLOCK ? BLOCK / width : 1;
    for (uint64_t done = 0; done < o->shape[0]; done += slices[0].count) {
        uint64_t left = o->shape[0] - done;
        slices[0] = (tnf_slice) { (int64_t)done, 1, left < many ? left : many, false };
        size_t n = (size_t)(slices[0].count * width);
        TNF_TRY(tnf_read_slice(s->block, n, o, slices, e));
        tnf_reverse(s->block, n, s->swap);
        TNF_TRY(s->take(s->ctx, s->block, n, e));
    }
    return TNF_OK;
}

tnf_status tnf_np_scatter(tnf_writer *w, const tnf_object *o, uint32_t rank, bool big,
                          tnf_take_fn take, void *ctx, tnf_error *e)
{
    uint64_t width = o->parts[0].type->bits / 8;
    if (o->parts[0].nbytes == 0) /* for example texts of length 0 */
        return TNF_OK;
    tnf_slice *slices = tnf_arena_array(w->scratch, o->rank, sizeof *slices);
    for (uint32_t d = rank; d < o->rank; d++)
        width *= o->shape[d];
    uint8_t *block = slices ? tnf_arena_raw(w->scratch, width < BLOCK ? BLOCK : width) : NULL;
    if (!block)
        return tnf_arena_fail(w->scratch, "another order", e);
    for (uint32_t d = 0; d < o->rank; d++)
        slices[d] = (tnf_slice) { 0, 1, d < rank ? 1 : o->shape[d], false };
    struct scattering s = { o, slices, block, width, 1, take, ctx };
    if (big)
        s.swap = tnf_dtype_size(o->parts[0].type->storage);
    do
        TNF_TRY(put_column(&s, e));
    while (next_column(slices, o, rank));
    return TNF_OK;
}
