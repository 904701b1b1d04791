/* SPDX-License-Identifier: MIT */
/* Finds the chunks of a dataset: the B-tree of version 1 and the indexes of layout 4.
 *
 *   TREE 01 level n u16 left u64 right u64, key child … key
 *   key     bytes u32, mask u32, offset u64 on each axis, and one more u64
 *   index   1 one chunk · 2 implicit: all contiguous · 3, 4 arrays (arrays.c) · 5 B-tree of
 *           version 2, records 10: address, place of the chunk u64 each · 11: address, size, mask,
 *           place
 */
#include "formats/hdf5/h5.h"

#include <stdlib.h>
#include <string.h>

#define FILTERED 2u

/* ------------------------------------------------------------------ adding */

/* Adds a chunk by its place in the grid. One outside the grid remains from a larger shape and is
 * ignored. */
tnf_status tnf_h5_add_chunk(h5_data *d, h5_file *h, const uint64_t *place, h5_chunk chunk,
                            tnf_error *e)
{
    chunk.number = 0;
    for (uint32_t i = 0; i < d->rank; i++) {
        if (place[i] >= d->grid[i])
            return TNF_OK;
        chunk.number = chunk.number * d->grid[i] + place[i];
    }
    if (!tnf_ckd_add(&chunk.at, chunk.at, h->base) || chunk.at > h->end ||
        chunk.stored > h->end - chunk.at)
        return tnf_fail(e, TNF_EFORMAT, h->base, "a chunk of %llu bytes is outside the file",
                        (unsigned long long)chunk.stored);
    h5_chunk *items = tnf_arena_grow(h->r->arena, d->chunks, d->nchunks, &d->capacity,
                                     sizeof *items, 1);
    if (!items)
        return tnf_arena_fail(h->r->arena, "chunks", e);
    d->chunks = items;
    d->chunks[d->nchunks++] = chunk;
    d->stored += chunk.stored;
    return TNF_OK;
}

/* Adds a chunk by its number in the grid of the largest shape, with axis `front` first. */
tnf_status tnf_h5_add_numbered(h5_data *d, h5_file *h, uint64_t number, uint32_t front,
                               h5_chunk chunk, tnf_error *e)
{
    uint64_t place[H5_RANK];
    for (uint32_t k = d->rank; k-- > 0;) {
        uint32_t axis = k == 0 ? front : k <= front ? k - 1 : k;
        uint64_t n = d->most[axis];
        if (k == 0) {
            place[axis] = number;
            break;
        }
        place[axis] = n ? number % n : 0;
        number = n ? number / n : number;
    }
    return tnf_h5_add_chunk(d, h, place, chunk, e);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = ((const h5_chunk *)a)->number, y = ((const h5_chunk *)b)->number;
    return x < y ? -1 : x > y;
}

static tnf_status sort_chunks(h5_data *d, h5_file *h, uint64_t at, tnf_error *e)
{
    bool sorted = true;
    for (size_t i = 1; i < d->nchunks && sorted; i++)
        sorted = d->chunks[i - 1].number < d->chunks[i].number;
    if (sorted)
        return TNF_OK;
    qsort(d->chunks, d->nchunks, sizeof *d->chunks, by_number);
    for (size_t i = 1; i < d->nchunks; i++)
        if (d->chunks[i - 1].number == d->chunks[i].number)
            return tnf_fail(e, TNF_EFORMAT, h->base + at, "a chunk occurs twice");
    return TNF_OK;
}

/* ---------------------------------------------------------------- B-tree 1 */

static tnf_status take_entry(h5_data *d, h5_file *h, tnf_cur *c, uint64_t size, uint32_t mask,
                             const uint64_t *offset, tnf_error *e)
{
    uint64_t place[H5_RANK];
    h5_chunk chunk = { .at = tnf_u64(c), .stored = size, .mask = mask };
    if (c->bad)
        return tnf_h5_bad(c, "a B-tree of chunks is truncated", e);
    for (uint32_t i = 0; i < d->rank; i++) {
        place[i] = offset[i] / d->chunk[i];
        if (offset[i] % d->chunk[i] || offset[d->rank]) {
            tnf_warn(h->r, tnf_where(c), "a chunk is not aligned to the grid: it is ignored");
            return TNF_OK;
        }
    }
    return tnf_h5_add_chunk(d, h, place, chunk, e);
}

static tnf_status walk_tree(h5_data *d, h5_file *h, uint64_t address, unsigned level, tnf_error *e)
{
    tnf_cur c;
    uint64_t key = 8 + 8 * ((uint64_t)d->rank + 1), n, offset[H5_RANK + 1];
    TNF_TRY(tnf_h5_tree_node(h, address, 1, &level, &n, "a B-tree of chunks", e));
    TNF_TRY(tnf_h5_get(h, address + 24, n * (key + 8), "TREE", &c, e));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t size = tnf_u32(&c);
        uint32_t mask = tnf_u32(&c);
        for (uint32_t k = 0; k <= d->rank; k++)
            offset[k] = tnf_u64(&c);
        if (level == 0)
            TNF_TRY(take_entry(d, h, &c, size, mask, offset, e));
        else
            TNF_TRY(walk_tree(d, h, tnf_u64(&c), level - 1, e));
    }
    return TNF_OK;
}

tnf_status tnf_h5_chunk_tree(h5_data *d, h5_file *h, uint64_t address, tnf_error *e)
{
    TNF_TRY(walk_tree(d, h, address, UINT_MAX, e));
    return sort_chunks(d, h, address, e);
}

/* ------------------------------------------------------------- the indexes */

static tnf_status take_record(void *ctx, h5_file *h, tnf_cur *record, tnf_error *e)
{
    h5_data *d = ctx;
    uint64_t place[H5_RANK], fixed = 8 + 8 * (uint64_t)d->rank;
    size_t n = tnf_left(record);
    h5_chunk chunk = { .at = tnf_u64(record), .stored = d->chunk_bytes };
    if (n != fixed) {
        if (n < fixed + 5 || n > fixed + 12)
            return tnf_h5_bad(record, "a record of chunks has an invalid length", e);
        chunk.stored = tnf_h5_uint(record, (unsigned)(n - fixed - 4));
        chunk.mask = tnf_u32(record);
    }
    for (uint32_t i = 0; i < d->rank; i++)
        place[i] = tnf_u64(record);
    return tnf_h5_add_chunk(d, h, place, chunk, e);
}

static tnf_status add_single(h5_data *d, h5_file *h, tnf_cur *c, unsigned flags, tnf_error *e)
{
    uint64_t place[H5_RANK] = { 0 };
    h5_chunk chunk = { .stored = d->chunk_bytes };
    if (flags & FILTERED) {
        chunk.stored = tnf_u64(c);
        chunk.mask = tnf_u32(c);
    }
    chunk.at = tnf_u64(c);
    if (c->bad)
        return tnf_h5_bad(c, "a layout is truncated", e);
    return chunk.at == H5_NOWHERE ? TNF_OK : tnf_h5_add_chunk(d, h, place, chunk, e);
}

static tnf_status add_implicit(h5_data *d, h5_file *h, tnf_cur *c, tnf_error *e)
{
    uint64_t at = tnf_u64(c), n = 1, bytes;
    if (c->bad)
        return tnf_h5_bad(c, "a layout is truncated", e);
    if (at == H5_NOWHERE)
        return TNF_OK;
    for (uint32_t i = 0; i < d->rank; i++)
        if (!tnf_ckd_mul(&n, n, d->most[i]))
            return tnf_h5_bad(c, "a dataset has more than 2^64 chunks", e);
    if (!tnf_ckd_mul(&bytes, n, d->chunk_bytes) || at > h->end - h->base ||
        bytes > h->end - h->base - at)
        return tnf_h5_bad(c, "the chunks of a dataset are outside the file", e);
    for (uint64_t i = 0; i < n; i++) {
        h5_chunk chunk = { .at = at + i * d->chunk_bytes, .stored = d->chunk_bytes };
        TNF_TRY(tnf_h5_add_numbered(d, h, i, 0, chunk, e));
    }
    return TNF_OK;
}

static uint32_t unlimited_axis(const h5_space *s)
{
    for (uint32_t i = 0; i < s->rank; i++)
        if (s->max[i] == H5_NOWHERE)
            return i;
    return 0;
}

tnf_status tnf_h5_chunk_index(h5_data *d, h5_file *h, tnf_cur *c, unsigned flags, const h5_space *s,
                              tnf_error *e)
{
    static const uint8_t parameters[] = { 0, 0, 0, 1, 5, 6 };
    uint64_t where = c->base, address;
    unsigned kind = tnf_u8(c);
    if (kind == 0 || kind > 5)
        return tnf_fail(e, TNF_EUNSUPPORTED, where,
                        "an index of chunks has the unsupported kind %u", kind);
    if (kind == 1)
        return add_single(d, h, c, flags, e);
    if (kind == 2)
        return add_implicit(d, h, c, e);
    (void)tnf_bytes(c, parameters[kind]);
    address = tnf_u64(c);
    if (c->bad)
        return tnf_h5_bad(c, "a layout is truncated", e);
    if (address == H5_NOWHERE)
        return TNF_OK;
    if (kind == 5)
        TNF_TRY(tnf_h5_records(h, address, UINT32_MAX, take_record, d, e));
    else
        TNF_TRY(kind == 3 ? tnf_h5_fixed_array(d, h, address, e)
                          : tnf_h5_extensible_array(d, h, address, unlimited_axis(s), e));
    return sort_chunks(d, h, address, e);
}
