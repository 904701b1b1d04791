/* SPDX-License-Identifier: MIT */
/* Reads elements of an array from its chunks.
 *
 *   ┌────┬────┬──┐   A box of the array (with steps) touches chunks;
 *   │  ▓▓│▓▓▓▓│▓ │   each is read, decoded, and its part of the box goes
 *   ├────┼────┼──┤   to its place, on several threads.
 *   │  ▓▓│▓▓▓▓│▓ │
 *   └────┴────┴──┘
 *
 * Chunks at the edges are stored completely. A missing chunk has the fill value.
 */
#include "base/pool.h"
#include "formats/zarr/zr.h"

#include <string.h>

#define WORTH_THREAD ((uint64_t)1 << 20)

/* The walk of a dimension of the box through the chunks. */
typedef struct axis {
    uint64_t start, count, chunk, n; /* n: number of chunks that are touched */
    int64_t step;
} axis;

typedef struct box_task {
    const zr_array *a;
    struct zr_cache *cache;
    axis axes[ZR_MAX_RANK];
    uint64_t to[ZR_MAX_RANK]; /* strides in dst, in elements */
    uint8_t *dst;
} box_task;

/* The intersection of a chunk with a dimension of the box. */
typedef struct piece {
    uint64_t chunk, first, count; /* first: index in the box */
    uint64_t within;              /* position of the first element in the chunk */
} piece;

static uint64_t magnitude_of(int64_t step)
{
    return step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
}

static uint64_t element_at(const axis *x, uint64_t k)
{
    return x->start + k * (uint64_t)x->step; /* a negative step wraps correctly */
}

/* Is every element in a different chunk? */
static bool is_sparse(const axis *x)
{
    return magnitude_of(x->step) > x->chunk;
}

static void count_touched(axis *x)
{
    uint64_t a = element_at(x, 0) / x->chunk, b = element_at(x, x->count - 1) / x->chunk;
    x->n = is_sparse(x) ? x->count : (a < b ? b - a : a - b) + 1;
}

static piece piece_at(const axis *x, uint64_t k)
{
    piece p = { .first = k, .count = 1 };
    if (is_sparse(x)) {
        p.chunk = element_at(x, k) / x->chunk;
        p.within = element_at(x, k) % x->chunk;
        return p;
    }
    uint64_t step = magnitude_of(x->step), from = x->start / x->chunk;
    p.chunk = x->step < 0 ? from - k : from + k;
    uint64_t low = p.chunk * x->chunk, high = low + x->chunk - 1; /* of the chunk, inclusive */
    if (x->step < 0) {
        p.first = x->start <= high ? 0 : (x->start - high + step - 1) / step;
        p.count = (x->start - low) / step + 1;
    } else {
        p.first = x->start >= low ? 0 : (low - x->start + step - 1) / step;
        p.count = (high - x->start) / step + 1;
    }
    p.count = (p.count < x->count ? p.count : x->count) - p.first;
    p.within = element_at(x, p.first) - low;
    return p;
}

/* ---------------------------------------------------------------- copying */

/* Copies a box of elements between two places with different strides. */
typedef struct copying {
    uint32_t rank;
    size_t width;
    uint64_t count[ZR_MAX_RANK];
    int64_t from[ZR_MAX_RANK];
    uint64_t to[ZR_MAX_RANK];
} copying;

/* Drops dimensions of one element and joins those that are contiguous on both sides. */
static void simplify_dimensions(copying *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->rank; i++) {
        if (c->count[i] == 1)
            continue;
        bool joined = n > 0 && c->from[n - 1] == c->from[i] * (int64_t)c->count[i] &&
                      c->to[n - 1] == c->to[i] * c->count[i];
        uint32_t k = joined ? n - 1 : n++;
        c->count[k] = joined ? c->count[k] * c->count[i] : c->count[i];
        c->from[k] = c->from[i];
        c->to[k] = c->to[i];
    }
    c->rank = n;
}

#define COPY_RUN(type)                                                                             \
    do {                                                                                           \
        for (uint64_t k = 0; k < n; k++, src += by, dst += stride)                                 \
            memcpy(dst, src, sizeof(type));                                                        \
    } while (0)

static void copy_run(uint8_t *dst, size_t stride, const uint8_t *src, ptrdiff_t by, uint64_t n,
                     size_t width)
{
    if (by == (ptrdiff_t)width && stride == width)
        memcpy(dst, src, (size_t)n * width);
    else if (width == 4)
        COPY_RUN(uint32_t);
    else if (width == 8)
        COPY_RUN(uint64_t);
    else if (width == 2)
        COPY_RUN(uint16_t);
    else
        for (uint64_t k = 0; k < n; k++, src += by, dst += stride)
            memcpy(dst, src, width);
}

static void copy_box(copying *c, const uint8_t *src, uint8_t *dst)
{
    uint64_t index[ZR_MAX_RANK] = { 0 };
    size_t w = c->width;
    simplify_dimensions(c);
    if (c->rank == 0) {
        memcpy(dst, src, w);
        return;
    }
    uint32_t last = c->rank - 1;
    for (;;) {
        copy_run(dst, (size_t)c->to[last] * w, src, (ptrdiff_t)c->from[last] * (ptrdiff_t)w,
                 c->count[last], w);
        uint32_t d = last;
        while (d > 0) {
            d--;
            src += (ptrdiff_t)c->from[d] * (ptrdiff_t)w;
            dst += (size_t)c->to[d] * w;
            if (++index[d] < c->count[d])
                break;
            src -= (ptrdiff_t)c->from[d] * (ptrdiff_t)c->count[d] * (ptrdiff_t)w;
            dst -= (size_t)c->to[d] * (size_t)c->count[d] * w;
            index[d] = 0;
            if (d == 0)
                return;
        }
        if (last == 0)
            return;
    }
}

/* ------------------------------------------------------------------ boxes */

static tnf_status read_piece(void *ctx, size_t number, tnf_error *e)
{
    const box_task *j = ctx;
    const zr_array *a = j->a;
    const zr_level *l = a->read;
    uint64_t at[ZR_MAX_RANK] = { 0 }, place = 0, left = number, elements = 1;
    copying c = { .rank = a->rank, .width = l->width };
    int64_t skip = 0;
    for (uint32_t d = a->rank; d-- > 0;) {
        piece p = piece_at(&j->axes[d], left % j->axes[d].n);
        left /= j->axes[d].n;
        at[d] = p.chunk;
        place += p.first * j->to[d];
        skip += (int64_t)(p.within * l->stride[d]);
        c.count[d] = p.count;
        c.from[d] = p.count > 1 ? j->axes[d].step * (int64_t)l->stride[d] : 0;
        c.to[d] = j->to[d];
        elements *= p.count;
    }
    zr_chunk chunk;
    TNF_TRY(tnf_zr_get_chunk(&chunk, a, j->cache, at, elements < l->elements, e));
    if (!chunk.bytes) { /* one element is repeated */
        for (uint32_t d = 0; d < a->rank; d++)
            c.from[d] = 0;
        skip = 0;
    }
    copy_box(&c, (chunk.bytes ? chunk.bytes : a->fill_element) + skip * (int64_t)l->width,
             j->dst + place * l->width);
    tnf_zr_put_chunk(&chunk);
    return TNF_OK;
}

static tnf_status read_box(const zr_array *a, struct zr_cache *cache, const tnf_slice *slices,
                           uint8_t *dst, tnf_error *e)
{
    box_task j = { .a = a, .cache = cache, .dst = dst };
    uint64_t pieces = 1, elements = 1;
    for (uint32_t d = a->rank; d-- > 0;) {
        j.axes[d] = (axis) { .start = (uint64_t)slices[d].start,
                             .count = slices[d].count,
                             .step = slices[d].count > 1 ? slices[d].step : 1,
                             .chunk = a->read->chunk[d] };
        count_touched(&j.axes[d]);
        j.to[d] = elements;
        elements *= slices[d].count;
        pieces *= j.axes[d].n;
    }
    unsigned threads = elements * a->read->width < WORTH_THREAD ? 1 : 0;
    return tnf_pool_run(threads, (size_t)pieces, read_piece, &j, e);
}

/* ------------------------------------------------------------ byte ranges */

/* Reads elements [first, first + n) as boxes: the rest of a row, complete rows, the begin of one;
 * then the same for the next outer dimension. */
static tnf_status read_elements(const zr_array *a, struct zr_cache *cache, uint64_t first,
                                uint64_t n, uint8_t *dst, tnf_error *e)
{
    while (n > 0) {
        tnf_slice box[ZR_MAX_RANK];
        uint64_t index[ZR_MAX_RANK], left = first, size = 1, take = 1;
        uint32_t d = a->rank;
        for (uint32_t i = a->rank; i-- > 0; left /= a->shape[i])
            index[i] = left % a->shape[i];
        /* Find the outermost dimension of which one step fits and whose inner ones begin at 0. */
        while (d > 0 && size <= n && (d == a->rank || index[d] == 0)) {
            d--;
            uint64_t most = n / size, rest = a->shape[d] - index[d];
            take = (most < rest ? most : rest) * size;
            size *= a->shape[d];
            if (index[d] != 0 || size > n)
                break;
        }
        for (uint32_t i = 0; i < a->rank; i++)
            box[i] = (tnf_slice) { .start = i <= d ? (int64_t)index[i] : 0,
                                   .step = 1,
                                   .count = i < d ? 1 : a->shape[i] };
        if (a->rank)
            box[d].count = take / (size / a->shape[d]);
        TNF_TRY(read_box(a, cache, box, dst, e));
        first += take;
        n -= take;
        dst += take * a->read->width;
    }
    return TNF_OK;
}

/* Packs elements of less than a byte, which take a byte each in chunks. */
static tnf_status read_packed(const zr_array *a, struct zr_cache *cache, uint64_t offset,
                              uint8_t *dst, size_t n, tnf_error *e)
{
    unsigned per = 8 / a->packed;
    uint64_t elements = 0, first = offset * per, many = (uint64_t)n * per;
    (void)tnf_shape_elements(&elements, a->shape, a->rank); /* cannot fail: checked on opening */
    many = elements - first < many ? elements - first : many;
    zr_bytes room;
    TNF_TRY(tnf_zr_alloc(&room, many, e));
    tnf_status status = read_elements(a, cache, first, many, room.p, e);
    memset(dst, 0, n);
    for (uint64_t i = 0; i < many && status == TNF_OK; i++)
        dst[i / per] |= (uint8_t)((room.p[i] & ((1u << a->packed) - 1)) << i % per * a->packed);
    tnf_zr_free(&room);
    return status;
}

static tnf_status read_bytes(const zr_array *a, struct zr_cache *cache, uint64_t offset,
                             uint8_t *dst, size_t n, tnf_error *e)
{
    size_t w = a->read->width, skip = (size_t)(offset % w);
    uint64_t element = offset / w;
    zr_bytes one;
    if (skip || n < w) { /* an incomplete element */
        size_t some = w - skip < n ? w - skip : n;
        TNF_TRY(tnf_zr_alloc(&one, w, e));
        tnf_status status = read_elements(a, cache, element, 1, one.p, e);
        if (status == TNF_OK)
            memcpy(dst, one.p + skip, some);
        tnf_zr_free(&one);
        TNF_TRY(status);
        return n > some ? read_bytes(a, cache, offset + some, dst + some, n - some, e) : TNF_OK;
    }
    TNF_TRY(read_elements(a, cache, element, n / w, dst, e));
    size_t whole = n / w * w;
    return n > whole ? read_bytes(a, cache, offset + whole, dst + whole, n - whole, e) : TNF_OK;
}

tnf_status tnf_zr_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    const zr_state *s = r->state;
    const zr_array *a = s->arrays[key];
    if (a->packed)
        return read_packed(a, s->cache, offset, dst, n, e);
    return read_bytes(a, s->cache, offset, dst, n, e);
}

/* For elements that are bytes: the last axis is inside an element. */
static tnf_status slice_inside(const zr_array *a, struct zr_cache *cache, const tnf_slice *slices,
                               uint8_t *dst, size_t n, tnf_error *e)
{
    const tnf_slice *inner = &slices[a->rank];
    size_t w = a->read->width, elements = n / (size_t)inner->count;
    zr_bytes whole;
    TNF_TRY(tnf_zr_alloc(&whole, (uint64_t)elements * w, e));
    tnf_status status = read_box(a, cache, slices, whole.p, e);
    for (size_t i = 0; i < elements && status == TNF_OK; i++)
        for (uint64_t k = 0; k < inner->count; k++)
            *dst++ = whole.p[i * w + (size_t)(inner->start + (int64_t)k * inner->step)];
    tnf_zr_free(&whole);
    return status;
}

tnf_status tnf_zr_slice(tnf_reader *r, uint64_t key, const tnf_slice *slices, void *dst, size_t n,
                        tnf_error *e)
{
    const zr_state *s = r->state;
    const zr_array *a = s->arrays[key];
    return a->axis ? slice_inside(a, s->cache, slices, dst, n, e)
                   : read_box(a, s->cache, slices, dst, e);
}
