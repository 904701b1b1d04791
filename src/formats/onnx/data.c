/* SPDX-License-Identifier: MIT */
/* Bytes that only this format can produce: numbers that are varints or separate fields, strings,
 * coordinates of sparse tensors. */
#include "formats/onnx/onnx.h"

#include "base/bytes.h"
#include "base/rising.h"
#include <string.h>

tnf_status tnf_ox_push(tnf_reader *r, ox_data data, uint64_t *key, tnf_error *e)
{
    ox_state *s = r->state;
    ox_data *items = tnf_arena_grow(r->arena, s->items, s->n, &s->capacity, sizeof *items, 8);
    if (!items)
        return tnf_arena_fail(r->arena, "tensors", e);
    s->items = items;
    *key = s->n;
    s->items[s->n++] = data;
    return TNF_OK;
}

/* The run that contains a value. */
static size_t find_run(const ox_data *d, uint64_t value)
{
    return tnf_rising_find(&d->runs->first, sizeof *d->runs, d->n, value);
}

/* Reads the bytes [offset, offset + n) of the concatenated runs. */
static tnf_status read_runs(const tnf_reader *r, const ox_data *d, uint64_t offset, uint8_t *dst,
                            size_t n, tnf_error *e)
{
    uint64_t width = d->bits / 8;
    for (size_t i = find_run(d, offset / width); n > 0; i++) {
        const ox_run *run = &d->runs[i];
        uint64_t skip = offset - run->first * width;
        size_t some = run->n - skip < n ? (size_t)(run->n - skip) : n;
        TNF_TRY(tnf_source_read(r->source, run->at + skip, dst, some, e));
        offset += some;
        dst += some;
        n -= some;
    }
    return TNF_OK;
}

/* Puts the bits of a value at their place among the requested bits. */
static void place_bits(uint64_t v, unsigned bits, uint64_t at, uint64_t from, uint64_t to,
                       uint8_t *dst)
{
    if (bits % 8 == 0) {
        for (unsigned k = 0; k < bits; k += 8)
            if (at + k >= from && at + k < to)
                dst[(at + k - from) / 8] = (uint8_t)(v >> k);
        return;
    }
    for (unsigned k = 0; k < bits; k++)
        if (at + k >= from && at + k < to && v >> k & 1)
            dst[(at + k - from) / 8] |= (uint8_t)(1u << (at + k - from) % 8);
}

static tnf_status read_varints(const tnf_reader *r, const ox_data *d, uint64_t offset, uint8_t *dst,
                               size_t n, tnf_error *e)
{
    uint64_t from = 8 * offset, to = from + 8 * (uint64_t)n, value = from / d->bits;
    uint8_t block[10240]; /* all values of a run; none has more than 10 bytes */
    memset(dst, 0, n);
    for (size_t i = find_run(d, value); i < d->n && d->runs[i].first * d->bits < to; i++) {
        const ox_run *run = &d->runs[i];
        TNF_TRY(tnf_source_read(r->source, run->at, block, (size_t)run->n, e));
        size_t at = 0;
        for (uint64_t k = 0; k < run->count; k++) {
            uint64_t v = 0;
            unsigned shift = 0;
            for (bool more = true; more && at < run->n && shift < 70; at++, shift += 7) {
                v |= shift < 64 ? (uint64_t)(block[at] & 0x7F) << shift : 0;
                more = block[at] >= 0x80;
            }
            place_bits(v, d->bits, (run->first + k) * d->bits, from, to, dst);
        }
    }
    return TNF_OK;
}

static tnf_status read_strings(const tnf_reader *r, const ox_data *d, uint64_t offset, uint8_t *dst,
                               size_t n, tnf_error *e)
{
    for (size_t i = tnf_rising_find(d->ends, sizeof *d->ends, d->n, offset); n > 0 && i < d->n;
         i++) {
        uint64_t skip = offset - d->ends[i], left = d->runs[i].n - skip;
        size_t some = left < n ? (size_t)left : n;
        TNF_TRY(tnf_source_read(r->source, d->runs[i].at + skip, dst, some, e));
        offset += some;
        dst += some;
        n -= some;
    }
    return TNF_OK;
}

/* Coordinate `axis` of the k-th value. */
static uint64_t coordinate_of(const ox_data *d, uint64_t axis, uint64_t k)
{
    if (!d->linear)
        return (uint64_t)d->indices[k * d->rank + axis];
    uint64_t index = (uint64_t)d->indices[k];
    for (uint32_t i = d->rank; i-- > axis + 1;)
        index /= d->shape[i];
    return index % d->shape[axis];
}

/* Computes coordinates one by one. */
static void make_coordinates(const ox_data *d, uint64_t offset, uint8_t *dst, size_t n)
{
    for (size_t done = 0; done < n;) {
        uint8_t number[8];
        uint64_t i = (offset + done) / 8;
        size_t skip = (size_t)((offset + done) % 8), some = 8 - skip;
        some = some < n - done ? some : n - done;
        tnf_put_le64(number, coordinate_of(d, i / d->count, i % d->count));
        memcpy(dst + done, number + skip, some);
        done += some;
    }
}

tnf_status tnf_ox_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    const ox_state *s = r->state;
    const ox_data *d = &s->items[key];
    switch (d->form) {
    case OX_RUNS:
        return read_runs(r, d, offset, dst, n, e);
    case OX_VARINTS:
        return read_varints(r, d, offset, dst, n, e);
    case OX_BYTES:
        return read_strings(r, d, offset, dst, n, e);
    case OX_OFFSETS:
        tnf_copy_le(dst, d->ends, sizeof *d->ends, (size_t)offset, n);
        return TNF_OK;
    default:
        make_coordinates(d, offset, dst, n);
        return TNF_OK;
    }
}
