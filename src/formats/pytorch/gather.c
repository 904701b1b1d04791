/* SPDX-License-Identifier: MIT */
/* Places the bytes of a view, and gathers them if they are not contiguous.
 *
 *   storage   a b c d e f …          shape [3,2], strides [1,3]:   a d b e c f
 *
 * Elements are counted in row-major order. A run of contiguous elements is read at once.
 */
#include "formats/pytorch/pt.h"

#include "base/bytes.h"

#include <string.h>

#define BLOCK ((size_t)64 << 10)

/* ---------------------------------------------------------------- parts */

/* Are the elements contiguous in row-major order? */
static bool in_rows(const pt_dense *d)
{
    uint64_t step = 1;
    for (uint32_t i = d->rank; i-- > 0; step *= d->shape[i])
        if (d->shape[i] != 1 && d->stride[i] != step)
            return false;
    return true;
}

static bool in_columns(const pt_dense *d)
{
    uint64_t step = 1;
    for (uint32_t i = 0; i < d->rank; step *= d->shape[i++])
        if (d->shape[i] != 1 && d->stride[i] != step)
            return false;
    return true;
}

/* Drops dimensions of one element and joins contiguous ones. */
static uint32_t join_dims(uint64_t *shape, uint64_t *stride, const pt_dense *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->rank; i++) {
        if (d->shape[i] == 1)
            continue;
        if (n && stride[n - 1] == d->stride[i] * d->shape[i]) {
            shape[n - 1] *= d->shape[i];
            stride[n - 1] = d->stride[i];
            continue;
        }
        shape[n] = d->shape[i];
        stride[n++] = d->stride[i];
    }
    return n;
}

static tnf_status add_gather(uint64_t *key, pt_file *f, const pt_dense *d, tnf_error *e)
{
    tnf_arena *a = f->r->arena;
    const tnf_type *type = tnf_type_named(d->type->id);
    uint64_t shape[PT_RANK], stride[PT_RANK];
    pt_gather g = { .storage = d->storage, .width = d->type->width };
    pt_gather *more = tnf_arena_grow(a, f->gathers, f->ngathers, &f->gathers_capacity, sizeof *more,
                                     8);
    if (!more)
        return tnf_arena_fail(a, "a tensor", e);
    f->gathers = more;
    g.rank = join_dims(shape, stride, d);
    uint64_t *kept = tnf_arena_array(a, 2 * (uint64_t)g.rank + 1, sizeof *kept);
    if (!kept)
        return tnf_arena_fail(a, "a tensor", e);
    for (uint32_t i = 0; i < g.rank; i++) {
        kept[i] = shape[i];
        kept[g.rank + i] = stride[i] * g.width;
    }
    g.shape = kept;
    g.stride = kept + g.rank;
    g.start = d->start + d->offset * g.width;
    g.number = (uint8_t)tnf_dtype_size(type->storage);
    g.swap = d->storage->big ? g.number : 1;
    bool complex = type->number == TNF_NUMBER_COMPLEX || d->type->axis == 2;
    g.sign = (uint8_t)((d->neg ? 3 : 0) ^ (d->conj && complex ? 2 : 0));
    *key = f->ngathers;
    f->gathers[f->ngathers++] = g;
    return TNF_OK;
}

/* Does the part cover the complete storage? Then the storage's checksum is also the part's. */
static bool is_whole(const pt_dense *d, uint64_t nbytes)
{
    return d->start == 0 && d->offset == 0 && nbytes == d->storage->size;
}

static void set_place(tnf_part *out, const pt_dense *d, uint64_t nbytes)
{
    const pt_storage *s = d->storage;
    out->payload = s->deflated ? TNF_ENCODED : TNF_AT;
    out->offset = s->offset + (s->deflated ? 0 : d->start + d->offset * d->type->width);
    out->stored = s->deflated ? s->stored : nbytes;
    out->codec = s->deflated ? TNF_CODEC_DEFLATE : TNF_CODEC_RAW;
    if (s->big)
        out->flags |= TNF_PART_BIG_ENDIAN;
    if (is_whole(d, nbytes)) {
        out->digest = s->digest;
        d->storage->summed = true;
    }
}

tnf_status tnf_pt_add_part(tnf_part *out, tnf_order *order, pt_file *f, const pt_dense *d,
                           bool may_be_f, tnf_error *e)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < d->rank; i++)
        elements *= d->shape[i];
    uint64_t nbytes = elements * d->type->width;
    *out = (tnf_part) { .role = "data",
                        .type = tnf_type_named(d->type->id),
                        .nbytes = nbytes,
                        .stored = nbytes,
                        .payload = TNF_OPAQUE };
    *order = TNF_ORDER_C;
    if (d->storage)
        d->storage->listed = true;
    if (d->type->packed) {
        out->flags |= TNF_PART_UNREADABLE;
        return tnf_unreadable_origin(f->r, &out->origin, "its elements share bytes", e);
    }
    if (!d->storage) {
        out->flags |= nbytes ? TNF_PART_UNREADABLE : 0;
        out->stored = 0;
        if (nbytes)
            return tnf_unreadable_origin(f->r, &out->origin, "it has a shape, but no bytes", e);
        if (!nbytes) {
            out->payload = TNF_MEMORY;
            out->memory = "";
        }
        return TNF_OK;
    }
    if (tnf_pt_is_empty(d)) {
        out->payload = TNF_MEMORY;
        out->memory = "";
        return TNF_OK;
    }
    pt_storage *s = d->storage;
    bool rows = in_rows(d), columns = !rows && may_be_f && in_columns(d);
    uint64_t begin = d->start + d->offset * d->type->width, last = 0;
    for (uint32_t i = 0; i < d->rank; i++)
        last += (d->shape[i] - 1) * d->stride[i]; /* inside the storage: see check_view() */
    TNF_TRY(tnf_pt_note_span(f, s, begin, begin + (last + 1) * d->type->width, e));
    bool lies = !s->memory && !d->conj && !d->neg && (rows || columns) &&
                (!s->deflated || is_whole(d, nbytes));
    if (!lies)
        return add_gather(&out->offset, f, d, e);
    *order = columns ? TNF_ORDER_F : TNF_ORDER_C;
    set_place(out, d, nbytes);
    return TNF_OK;
}

/* --------------------------------------------------------------- decoding */

/* Reads the bytes of a storage. A deflated one is first decoded into memory. */
typedef struct bytes_from {
    tnf_fetch_fn fetch; /* reads the file or record that contains the storage */
    void *ctx;
    const pt_storage *s;
    const pt_gather *g; /* what is gathered from it */
    uint8_t *decoded;
} bytes_from;

static tnf_status read_bytes(const bytes_from *b, uint64_t offset, void *dst, size_t n,
                             tnf_error *e)
{
    const uint8_t *memory = b->decoded ? b->decoded : b->s->memory;
    if (memory) {
        memcpy(dst, memory + offset, n);
        return TNF_OK;
    }
    return b->fetch(b->ctx, b->s->offset + offset, dst, n, e);
}

static tnf_status read_stored(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const bytes_from *b = ctx;
    return b->fetch(b->ctx, b->s->offset + offset, dst, n, e);
}

static tnf_status inflate_all(bytes_from *b, const tnf_allocator *alloc, tnf_error *e)
{
    tnf_encoded from = { read_stored, b, b->s->stored, b->s->size };
    tnf_decoder *decoder;
    size_t n;
    uint8_t *room = tnf_to_size(&n, b->s->size) ? tnf_alloc(alloc, n ? n : 1) : NULL;
    if (!room)
        return tnf_no_memory("a compressed storage", e);
    tnf_status status = tnf_decoder_open(&decoder, TNF_CODEC_DEFLATE, &from, alloc, e);
    if (status == TNF_OK) {
        status = tnf_decoder_read(decoder, 0, room, n, e);
        tnf_decoder_close(decoder);
    }
    if (status == TNF_OK)
        b->decoded = room;
    else
        tnf_free(alloc, room, n ? n : 1);
    return status;
}

static uint64_t place_of(const pt_gather *g, uint64_t element)
{
    uint64_t place = g->start;
    for (uint32_t i = g->rank; i-- > 0; element /= g->shape[i])
        place += element % g->shape[i] * g->stride[i];
    return place;
}

/* The number of elements at equal distances from this one on: the rest of the last dimension. */
static uint64_t run_of(const pt_gather *g, uint64_t element)
{
    return g->rank ? g->shape[g->rank - 1] - element % g->shape[g->rank - 1] : 1;
}

/* Reads a run of elements that are `stride` bytes apart. */
static tnf_status read_run(const bytes_from *b, const pt_gather *g, uint64_t at, uint8_t *dst,
                           uint64_t n, tnf_error *e)
{
    uint64_t stride = g->rank ? g->stride[g->rank - 1] : g->width;
    uint8_t block[4096];
    if (stride == g->width)
        return read_bytes(b, at, dst, (size_t)(n * g->width), e);
    if (stride == 0) {
        TNF_TRY(read_bytes(b, at, dst, g->width, e));
        for (uint64_t i = 1; i < n; i++)
            memcpy(dst + i * g->width, dst, g->width);
        return TNF_OK;
    }
    uint64_t many = stride < sizeof block / 2 ? (sizeof block - g->width) / stride + 1 : 1;
    for (uint64_t done = 0; done < n; done += many) {
        many = many < n - done ? many : n - done;
        TNF_TRY(
            read_bytes(b, at + done * stride, block, (size_t)((many - 1) * stride + g->width), e));
        for (uint64_t i = 0; i < many; i++)
            memcpy(dst + (done + i) * g->width, block + i * stride, g->width);
    }
    return TNF_OK;
}

/* Reverses the bytes of numbers and changes their signs, in place. */
static void finish_numbers(const pt_gather *g, uint8_t *p, size_t n)
{
    size_t step = g->number ? g->number : 1;
    tnf_reverse(p, n, g->swap);
    for (size_t i = 0; i + step <= n && g->sign; i += step) {
        bool odd = g->width > g->number && i / step % 2;
        if (g->sign & (odd ? 2 : 1))
            p[i + g->number - 1] ^= 0x80;
    }
}

static tnf_status gather_elements(const void *ctx, uint64_t first, uint64_t n, uint8_t *dst,
                                  tnf_error *e)
{
    const bytes_from *b = ctx;
    const pt_gather *g = b->g;
    for (uint64_t done = 0; done < n;) {
        uint64_t run = run_of(g, first + done);
        run = run < n - done ? run : n - done;
        TNF_TRY(read_run(b, g, place_of(g, first + done), dst + done * g->width, run, e));
        done += run;
    }
    finish_numbers(g, dst, (size_t)(n * g->width));
    return TNF_OK;
}

tnf_status tnf_pt_elements(pt_elements_fn make, const void *ctx, size_t width, uint64_t offset,
                           void *dst, size_t n, tnf_error *e)
{
    uint8_t whole[16], *to = dst;
    while (n > 0) {
        size_t skip = (size_t)(offset % width), some;
        if (skip || n < width) {
            some = width - skip < n ? width - skip : n;
            TNF_TRY(make(ctx, offset / width, 1, whole, e));
            memcpy(to, whole + skip, some);
        } else {
            some = n / width * width;
            TNF_TRY(make(ctx, offset / width, some / width, to, e));
        }
        to += some;
        offset += some;
        n -= some;
    }
    return TNF_OK;
}

tnf_status tnf_pt_gather_from(const pt_gather *g, tnf_fetch_fn fetch, void *ctx, uint64_t offset,
                              void *dst, size_t n, tnf_error *e)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    bytes_from b = { fetch, ctx, g->storage, g, NULL };
    if (g->storage->deflated)
        TNF_TRY(inflate_all(&b, &alloc, e));
    tnf_status status = tnf_pt_elements(gather_elements, &b, g->width, offset, dst, n, e);
    if (b.decoded)
        tnf_free(&alloc, b.decoded, b.s->size ? (size_t)b.s->size : 1);
    return status;
}

tnf_status tnf_pt_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    const pt_file *f = r->state;
    return tnf_pt_gather_from(&f->gathers[key], tnf_source_fetch, (void *)(uintptr_t)r->source,
                              offset, dst, n, e);
}
