/* SPDX-License-Identifier: MIT */
/* Dense matrices. 32-bit floats are used in place. Other types are converted to floats (or to
 * doubles, if floats would round) one block at a time. */
#include "ext/emb/rows.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"
#include <tenfold/virtual.h>

#include <string.h>

#define DECODED 256u /* elements at a time */

void tnf_lent_free(tnf_lent *l, const tnf_allocator *alloc)
{
    tnf_free(alloc, l->owned, l->size);
    *l = (tnf_lent) { 0 };
}

static tnf_status take_memory(tnf_lent *out, uint64_t n, const tnf_allocator *alloc,
                              uint64_t *memory, tnf_error *e)
{
    if (n > *memory || !tnf_to_size(&out->size, n + 1))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the vectors need %llu bytes of memory, but only %llu are left; raise the "
                        "limit 'memory' if you trust the file",
                        (unsigned long long)n, (unsigned long long)*memory);
    *memory -= n;
    out->p = out->owned = tnf_alloc(alloc, out->size);
    if (!out->owned)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %llu bytes of vectors",
                        (unsigned long long)n);
    return TNF_OK;
}

tnf_status tnf_lent_read(tnf_lent *out, const tnf_part *part, const tnf_allocator *alloc,
                         uint64_t *memory, tnf_error *e)
{
    uint8_t none;
    *out = (tnf_lent) { 0 };
    TNF_TRY(tnf_read_part(&none, 0, part, 0, e)); /* fails before memory is allocated */
    TNF_TRY(take_memory(out, part->nbytes, alloc, memory, e));
    return tnf_read_part(out->owned, (size_t)part->nbytes, part, 0, e);
}

/* Maps a part. The result TNF_EUNSUPPORTED is no failure: the part is then read, so it leaves *e
 * unchanged. */
static tnf_status try_map(const void **out, const tnf_part *part, tnf_error *e)
{
    tnf_error why;
    tnf_status status = tnf_map(out, part, &why);
    if (status != TNF_OK && status != TNF_EUNSUPPORTED && e)
        *e = why;
    return status;
}

tnf_status tnf_lend(tnf_lent *out, const tnf_part *part, const tnf_allocator *alloc,
                    uint64_t *memory, tnf_error *e)
{
    *out = (tnf_lent) { 0 };
    tnf_status status = try_map(&out->p, part, e);
    return status == TNF_EUNSUPPORTED ? tnf_lent_read(out, part, alloc, memory, e) : status;
}

/* A matrix in F order is transposed while it is read. */
static tnf_status read_transposed(tnf_rows *r, const tnf_object *object, uint64_t *memory,
                                  tnf_error *e)
{
    tnf_slice slices[64];
    if (object->rank > 64)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has %u dimensions, but a matrix in F order can have at most 64",
                        TNF_QUOTED(object->name), object->rank);
    for (uint32_t i = 0; i < object->rank; i++)
        slices[i] = (tnf_slice) { .step = 1, .count = object->shape[i] };
    uint64_t n = tnf_slice_bytes(object, slices);
    TNF_TRY(take_memory(&r->data, n, &r->alloc, memory, e));
    return tnf_read_slice(r->data.owned, (size_t)n, object, slices, e);
}

static tnf_rows_kind kind_of(const tnf_type *type)
{
    if (type == tnf_type_of(TNF_F32))
        return TNF_BIG_ENDIAN_HOST ? TNF_ROWS_LOOSE : TNF_ROWS_F32;
    if (type == tnf_type_of(TNF_F16))
        return TNF_ROWS_F16;
    if (type == tnf_type_of(TNF_BF16))
        return TNF_ROWS_BF16;
    return type->bits > 16 ? TNF_ROWS_WIDE : TNF_ROWS_SMALL;
}

static bool are_floats(const tnf_rows *r)
{
    return r->kind == TNF_ROWS_F32 || r->kind == TNF_ROWS_LOOSE;
}

/* Unaligned floats are copied when they are needed, which is better than reading all of them. */
static bool lend_loose(tnf_rows *r, const tnf_part *data)
{
    tnf_part bytes = *data;
    bytes.type = tnf_type_of(TNF_U8);
    if (!are_floats(r) || tnf_map(&r->data.p, &bytes, NULL) != TNF_OK)
        return false;
    r->kind = TNF_ROWS_LOOSE;
    return true;
}

static tnf_status open_dense(tnf_rows *r, const tnf_object *object, uint64_t *memory, tnf_error *e)
{
    const tnf_part *data = tnf_object_part(object, "data");
    if (!data || data->flags & TNF_PART_UNREADABLE || data->type->number == TNF_NUMBER_OPAQUE ||
        data->type->number == TNF_NUMBER_COMPLEX || data->type->bits == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "the elements of %s are not numbers",
                        TNF_QUOTED(object->name));
    r->type = data->type;
    r->kind = kind_of(data->type);
    if (object->order == TNF_ORDER_F && object->rank > 1)
        return read_transposed(r, object, memory, e);
    tnf_status status = try_map(&r->data.p, data, e);
    if (status == TNF_EUNSUPPORTED && lend_loose(r, data))
        status = TNF_OK;
    if (status == TNF_EUNSUPPORTED)
        return tnf_lent_read(&r->data, data, &r->alloc, memory, e);
    r->data_at = data;
    return status;
}

/* Takes the shape [n, d], or [n, dims…] as n rows. */
static tnf_status take_shape(tnf_rows *r, const tnf_object *object, tnf_error *e)
{
    uint64_t d = 1, bytes;
    if (object->rank == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s is a single number, not a matrix",
                        TNF_QUOTED(object->name));
    r->n = object->shape[0];
    for (uint32_t i = 1; i < object->rank; i++)
        if (!tnf_ckd_mul(&d, d, object->shape[i]))
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a row has more than 2^64 elements");
    /* A matrix without rows may claim any row length. Memory for several rows is needed at once. */
    if (d == 0 || !tnf_ckd_mul(&bytes, d, 1024 * sizeof(double)) || bytes > SIZE_MAX / 2 ||
        (r->n == 0 && d > (1u << 24)))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "rows of %llu elements are not supported", (unsigned long long)d);
    r->d = (size_t)d;
    return TNF_OK;
}

/* Reads the numbers of other quantized matrices into memory, once. */
static tnf_status open_values(tnf_rows *r, const tnf_object *object, uint64_t *memory, tnf_error *e)
{
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    tnf_virtual *values;
    TNF_TRY(tnf_virtual_new(&values, &object, 1, &how, e));
    tnf_status status = open_dense(r, tnf_virtual_object(values), memory, e);
    tnf_virtual_free(values);
    return status;
}

tnf_status tnf_rows_open(tnf_rows *r, const tnf_object *object, const tnf_kernels *kernels,
                         const tnf_allocator *alloc, uint64_t *memory, tnf_error *e)
{
    const char *layout = tnf_layout_id(object->layout);
    *r = (tnf_rows) { .kernels = kernels, .alloc = *alloc };
    TNF_TRY(take_shape(r, object, e));
    if (strcmp(layout, "dense") == 0)
        return open_dense(r, object, memory, e);
    if (strcmp(layout, "pq/1") == 0)
        return tnf_pq_open(r, object, memory, e);
    if (tnf_layout_has_values(object->layout))
        return open_values(r, object, memory, e);
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "%s has the layout %s, which is not supported", TNF_QUOTED(object->name),
                    layout);
}

void tnf_rows_free(tnf_rows *r)
{
    tnf_lent *all[] = { &r->data, &r->codes, &r->codebooks, &r->projection, &r->norms };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tnf_lent_free(all[i], &r->alloc);
}

/* ------------------------------------------------------------------- values */

void tnf_rows_wide(const tnf_rows *r, uint64_t first, size_t count, double *room)
{
    tnf_type_decode(room, r->type, r->data.p, (size_t)first * r->d, count * r->d);
}

static void decode_floats(const tnf_type *type, const void *p, size_t from, size_t n, float *room)
{
    double some[DECODED];
    for (size_t i = 0; i < n; i += DECODED) {
        size_t now = n - i < DECODED ? n - i : DECODED;
        tnf_type_decode(some, type, p, from + i, now);
        for (size_t k = 0; k < now; k++)
            room[i + k] = (float)some[k];
    }
}

const float *tnf_rows_block(const tnf_rows *r, uint64_t first, size_t count, float *room)
{
    size_t from = (size_t)first * r->d;
    switch (r->kind) {
    case TNF_ROWS_F32:
        return (const float *)r->data.p + from;
    case TNF_ROWS_LOOSE:
        memcpy(room, (const uint8_t *)r->data.p + 4 * from, 4 * count * r->d);
        tnf_swap_le(room, count * r->d, 4);
        return room;
    case TNF_ROWS_F16:
        r->kernels->from_f16((const uint8_t *)r->data.p + 2 * from, count * r->d, room);
        return room;
    case TNF_ROWS_BF16:
        r->kernels->from_bf16((const uint8_t *)r->data.p + 2 * from, count * r->d, room);
        return room;
    default:
        decode_floats(r->type, r->data.p, from, count * r->d, room);
        return room;
    }
}

static tnf_status check_row(const tnf_rows *r, uint64_t row, tnf_error *e)
{
    if (row < r->n)
        return TNF_OK;
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                    "row %llu does not exist: the number of rows is %llu", (unsigned long long)row,
                    (unsigned long long)r->n);
}

/* Reads the elements of one row from the file. For types of less than a byte, the first element is
 * `skip` elements after the beginning of the bytes read. */
static tnf_status read_elements(const tnf_rows *r, uint64_t row, uint8_t **out, size_t *size,
                                size_t *skip, tnf_error *e)
{
    uint64_t bits = r->type->bits, from = row * r->d, to = from + r->d, begin = from - from % 8;
    uint64_t first = begin / 8 * bits, end = to / 8 * bits + (to % 8 * bits + 7) / 8;
    if (end > r->data_at->nbytes || first > end)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "row %llu is outside the matrix",
                        (unsigned long long)row);
    *skip = (size_t)(from - begin);
    *size = (size_t)(end - first) + 1;
    *out = tnf_alloc(&r->alloc, *size);
    if (!*out)
        return tnf_no_memory("a row", e);
    tnf_status status = tnf_read_part(*out, *size - 1, r->data_at, first, e);
    if (status != TNF_OK)
        tnf_free(&r->alloc, *out, *size);
    return status;
}

static tnf_status read_dense(const tnf_rows *r, uint64_t row, float *dst, tnf_error *e)
{
    uint8_t *bytes;
    size_t size, skip;
    if (are_floats(r)) {
        TNF_TRY(tnf_read_part(dst, r->d * 4, r->data_at, row * r->d * 4, e));
        tnf_swap_le(dst, r->d, 4);
        return TNF_OK;
    }
    TNF_TRY(read_elements(r, row, &bytes, &size, &skip, e));
    if (r->kind == TNF_ROWS_F16)
        r->kernels->from_f16(bytes + 2 * skip, r->d, dst);
    else if (r->kind == TNF_ROWS_BF16)
        r->kernels->from_bf16(bytes + 2 * skip, r->d, dst);
    else
        decode_floats(r->type, bytes, skip, r->d, dst);
    tnf_free(&r->alloc, bytes, size);
    return TNF_OK;
}

tnf_status tnf_rows_get_wide(const tnf_rows *r, uint64_t row, double *dst, tnf_error *e)
{
    uint8_t *bytes;
    size_t size, skip;
    TNF_TRY(check_row(r, row, e));
    if (!r->reads || !r->data_at) {
        tnf_rows_wide(r, row, 1, dst);
        return TNF_OK;
    }
    TNF_TRY(read_elements(r, row, &bytes, &size, &skip, e));
    tnf_type_decode(dst, r->type, bytes, skip, r->d);
    tnf_free(&r->alloc, bytes, size);
    return TNF_OK;
}

/* Reads the codes and the norm of one row, and adds the row to dst. `codes` has room for them. */
static tnf_status add_read_codes(const tnf_rows *r, uint64_t row, uint8_t *codes, float *dst,
                                 tnf_error *e)
{
    float norm = r->norms.p && !r->norms_at ? ((const float *)r->norms.p)[row] : 1;
    if (r->norms_at)
        TNF_TRY(tnf_read_part(&norm, sizeof norm, r->norms_at, row * sizeof norm, e));
    TNF_TRY(tnf_read_part(codes, r->m, r->codes_at, row * r->m, e));
    return tnf_pq_add_codes(r, row, codes, norm, dst, e);
}

/* Reads an unaligned float. */
static inline float float_at(const uint8_t *p, size_t i)
{
    float x;
    memcpy(&x, p + 4 * i, sizeof x);
    return x;
}

static void add_row(float *restrict dst, const uint8_t *restrict p, size_t d)
{
    for (size_t i = 0; i < d; i++)
        dst[i] += float_at(p, i);
}

/* Adds four rows at once, in the same order of additions as one after the other. */
static void add_four(float *restrict dst, const uint8_t *const *rows, size_t d)
{
    const uint8_t *restrict a = rows[0], *restrict b = rows[1];
    const uint8_t *restrict c = rows[2], *restrict f = rows[3];
    for (size_t i = 0; i < d; i++)
        dst[i] = (((dst[i] + float_at(a, i)) + float_at(b, i)) + float_at(c, i)) + float_at(f, i);
}

/* Prefetches the beginning of a later row, since rows are scattered in memory. */
static void prefetch_row(const tnf_rows *r, uint64_t row)
{
    const char *p = r->kind == TNF_ROWS_PQ ? (const char *)r->codes.p + (size_t)row * r->m
                    : are_floats(r)        ? (const char *)r->data.p + (size_t)row * r->d * 4
                                           : NULL;
    size_t n = r->kind == TNF_ROWS_PQ ? r->m : r->d * 4;
    for (size_t i = 0; p && i < n && i < 1024; i += 64)
        __builtin_prefetch(p + i);
}

/* Sums rows. Later rows are prefetched meanwhile, since rows are scattered in memory. */
static void sum_floats(const tnf_rows *r, const uint64_t *rows, size_t n, float *dst)
{
    const uint8_t *base = r->data.p, *four[4];
    size_t size = r->d * sizeof(float), i = 0;
    memset(dst, 0, size);
    for (; n - i >= 4; i += 4) {
        for (size_t k = 0; k < 4; k++) {
            if (i + 4 + k < n)
                prefetch_row(r, rows[i + 4 + k]);
            four[k] = base + (size_t)rows[i + k] * size;
        }
        add_four(dst, four, r->d);
    }
    for (; i < n; i++)
        add_row(dst, base + (size_t)rows[i] * size, r->d);
}

/* Adds up dense rows. Rows of other types than f32 are converted in `room`, d floats. */
static tnf_status sum_dense(const tnf_rows *r, const uint64_t *rows, size_t n, float *dst,
                            tnf_error *e)
{
    size_t size = r->d * sizeof(float);
    bool reads = r->reads && r->data_at;
    bool as_they_are = r->kind == TNF_ROWS_F32 || !TNF_BIG_ENDIAN_HOST;
    if (are_floats(r) && as_they_are && !reads) {
        sum_floats(r, rows, n, dst);
        return TNF_OK;
    }
    float *room = tnf_alloc(&r->alloc, size);
    if (!room)
        return tnf_no_memory("a row", e);
    memset(dst, 0, size);
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < n && status == TNF_OK; i++) {
        const float *row = room;
        if (reads)
            status = read_dense(r, rows[i], room, e);
        else
            row = tnf_rows_block(r, rows[i], 1, room);
        add_row(dst, (const uint8_t *)row, r->d);
    }
    tnf_free(&r->alloc, room, size);
    return status;
}

/* Adds up the centroids of all rows and rotates the sum once, instead of each row. */
static tnf_status sum_pq(const tnf_rows *r, const uint64_t *rows, size_t n, float *dst,
                         tnf_error *e)
{
    size_t floats = TNF_PADDED(r->d) * sizeof(float) + 64, size = floats + r->m;
    bool reads = r->reads && r->codes_at;
    uint8_t *memory = tnf_alloc0(&r->alloc, size);
    if (!memory)
        return tnf_no_memory("a row", e);
    float *sum = (float *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    tnf_status status = TNF_OK;
    for (size_t i = 0; status == TNF_OK && i < n; i++) {
        if (i + 4 < n && !reads)
            prefetch_row(r, rows[i + 4]);
        status = reads ? add_read_codes(r, rows[i], memory + floats, sum, e)
                       : tnf_pq_add(r, rows[i], sum, e);
    }
    if (status == TNF_OK)
        tnf_pq_rotate(r, sum, dst);
    tnf_free(&r->alloc, memory, size);
    return status;
}

tnf_status tnf_rows_sum(const tnf_rows *r, const uint64_t *rows, size_t n, float *dst, tnf_error *e)
{
    for (size_t i = 0; i < n; i++)
        TNF_TRY(check_row(r, rows[i], e));
    for (size_t i = 0; i < n && i < 4 && !r->reads; i++)
        prefetch_row(r, rows[i]);
    return r->kind == TNF_ROWS_PQ ? sum_pq(r, rows, n, dst, e) : sum_dense(r, rows, n, dst, e);
}

tnf_status tnf_rows_get(const tnf_rows *r, uint64_t row, float *dst, tnf_error *e)
{
    TNF_TRY(check_row(r, row, e));
    if (r->kind == TNF_ROWS_PQ)
        return sum_pq(r, &row, 1, dst, e);
    if (r->reads && r->data_at)
        return read_dense(r, row, dst, e);
    const float *p = tnf_rows_block(r, row, 1, dst);
    if (p != dst)
        memcpy(dst, p, r->d * sizeof *dst);
    return TNF_OK;
}
