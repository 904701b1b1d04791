/* SPDX-License-Identifier: MIT */
/* Matrices.
 *
 *   dense      i64 rows  i64 columns  f32 rows × columns
 *   quantized  u8 norms?  i64 rows  i64 columns  i32 n  u8 codes[n]   n = rows × pieces
 *              quantizer: i32 columns  i32 pieces  i32 length  i32 length of the last piece
 *                         f32 256 × columns              [piece][centroid][element]
 *              with norms: u8 codes[rows]  quantizer 1 1 1 1, f32 256
 *
 * A quantized matrix whose pieces all have the same length becomes a pq/1 tensor in place. Its
 * norms, if any, are looked up on demand; their codes and their table are separate tensors. If the
 * last piece is shorter, the whole matrix is kept as bytes.
 */
#include "formats/fasttext/ft.h"

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------------- dense */

static tnf_status check_shape(ft_reading *f, const char *name, uint64_t rows, uint64_t columns,
                              uint64_t at, tnf_error *e)
{
    uint64_t parts = f->is_pruned ? f->pruned : (uint64_t)f->args[FT_BUCKET];
    if (strcmp(name, FT_EMBEDDINGS) != 0)
        return TNF_OK;
    if (columns != (uint64_t)f->args[FT_DIM])
        return tnf_fail(e, TNF_EFORMAT, at + 8,
                        "the matrix has %s, but the vectors of the model have %s",
                        TNF_COUNTED(columns, "column", "columns"),
                        TNF_COUNTED((uint64_t)f->args[FT_DIM], "dimension", "dimensions"));
    if (rows == f->words + parts)
        return TNF_OK;
    return tnf_stricter(
        f->r, e, TNF_EFORMAT, at,
        "the matrix has %s; it must have one for each word (%llu) and for each bucket (%llu)",
        TNF_COUNTED(rows, "row", "rows"), (unsigned long long)f->words, (unsigned long long)parts);
}

tnf_status tnf_ft_read_dense(ft_reading *f, const char *name, tnf_error *e)
{
    tnf_cur c;
    uint64_t at = f->at, shape[2], bytes = 0;
    bool output = strcmp(name, FT_OUTPUT) == 0;
    TNF_TRY(tnf_read_range(f->r, name, at, 16, 16, &c, e));
    shape[0] = tnf_u64(&c);
    shape[1] = tnf_u64(&c);
    f->at += 16;
    if (!tnf_ckd_mul(&bytes, shape[0], shape[1]) || !tnf_ckd_mul(&bytes, bytes, 4) ||
        shape[0] > INT64_MAX || shape[1] > INT64_MAX || bytes > INT64_MAX - f->at)
        return tnf_fail(e, TNF_EFORMAT, shape[0] > INT64_MAX || shape[1] <= INT64_MAX ? at : at + 8,
                        "a matrix of %llu × %llu numbers is too large",
                        (unsigned long long)shape[0], (unsigned long long)shape[1]);
    TNF_TRY(check_shape(f, name, shape[0], shape[1], at, e));
    if (shape[0] == 0 && shape[1] == (output ? (uint64_t)f->args[FT_DIM] : 0))
        return TNF_OK; /* an empty matrix stands for a missing one */
    tnf_dense d = { .name = { name, strlen(name) },
                    .type = tnf_type_of(TNF_F32),
                    .shape = shape,
                    .rank = 2,
                    .offset = f->at,
                    .length = bytes,
                    .at = at };
    f->at += bytes;
    f->input_bytes = output ? f->input_bytes : bytes;
    return tnf_add_dense(f->r, &d, e);
}

/* ------------------------------------------------------------------- quantized */

static tnf_status bad_matrix(uint64_t at, const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, at, "a quantized matrix has %s", what);
}

/* Four numbers; the centroids follow. */
static tnf_status parse_quantizer(ft_quant *q, bool of_norms, const uint8_t *p, uint64_t at,
                                  tnf_error *e)
{
    uint64_t columns = tnf_le32(p), pieces = tnf_le32(p + 4), each = tnf_le32(p + 8);
    uint64_t last = tnf_le32(p + 12), want = of_norms ? 1 : q->columns;
    if (columns != want || pieces == 0 || each == 0 || last == 0 || last > each ||
        (pieces - 1) * each + last != columns)
        return bad_matrix(at, "pieces that do not add up to a row", e);
    if (of_norms)
        return TNF_OK;
    q->pieces = pieces;
    q->even = last == each;
    return TNF_OK;
}

tnf_status tnf_ft_quant_parse(ft_quant *q, ft_get get, const void *ctx, uint64_t at, tnf_error *e)
{
    uint8_t head[FT_QUANT_HEAD], pq[FT_PQ_HEAD];
    TNF_TRY(get(ctx, 0, head, sizeof head, e));
    *q = (ft_quant) { .norms = head[0] != 0 };
    q->rows = tnf_le64(head + 1);
    q->columns = tnf_le64(head + 9);
    uint64_t codes = tnf_le32(head + 17), total;
    if (head[0] > 1)
        return bad_matrix(at, "a flag for norms that is neither 0 nor 1", e);
    if (codes > INT32_MAX || q->columns > INT32_MAX || q->rows > INT32_MAX)
        return bad_matrix(codes > INT32_MAX ? at + 17 : at, "sizes above 2^31 - 1", e);
    q->codes = FT_QUANT_HEAD;
    TNF_TRY(get(ctx, q->codes + codes, pq, sizeof pq, e));
    TNF_TRY(parse_quantizer(q, false, pq, at + q->codes + codes, e));
    if (!tnf_ckd_mul(&total, q->rows, q->pieces) || total != codes)
        return bad_matrix(at + 17, "a number of codes that is not its rows times pieces", e);
    q->centroids = q->codes + codes + FT_PQ_HEAD; /* all below 2^42: no overflow */
    q->bytes = q->centroids + q->columns * FT_CENTROIDS * 4;
    if (!q->norms)
        return TNF_OK;
    q->norm_codes = q->bytes;
    TNF_TRY(get(ctx, q->norm_codes + q->rows, pq, sizeof pq, e));
    TNF_TRY(parse_quantizer(q, true, pq, at + q->norm_codes + q->rows, e));
    q->norm_book = q->norm_codes + q->rows + FT_PQ_HEAD;
    q->bytes = q->norm_book + (uint64_t)FT_CENTROIDS * 4;
    return TNF_OK;
}

static tnf_status get_from_file(const void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const ft_reading *f = ctx;
    uint64_t size = f->r->source->size, at = f->at + offset;
    if (at > size || n > size - at)
        return tnf_fail(e, TNF_ETRUNCATED, size,
                        "the file ends inside a quantized matrix: %s missing (cut short?)",
                        TNF_BYTES_ARE(at + n - size));
    return tnf_source_read(f->r->source, at, dst, n, e);
}

static tnf_part part_at(const char *role, tnf_dtype dtype, uint64_t offset, uint64_t n)
{
    return (tnf_part) { .role = role,
                        .type = tnf_type_of(dtype),
                        .payload = TNF_AT,
                        .offset = offset,
                        .stored = n,
                        .nbytes = n };
}

/* Adds a vector that accompanies the matrix, "<name><suffix>". */
static tnf_status add_companion(ft_reading *f, const char *name, const char *suffix,
                                tnf_dtype dtype, uint64_t n, uint64_t offset, tnf_error *e)
{
    char text[40];
    int length = snprintf(text, sizeof text, "%s%s", name, suffix);
    tnf_dense d = { .name = { text, (size_t)length },
                    .type = tnf_type_of(dtype),
                    .shape = &n,
                    .rank = 1,
                    .offset = offset,
                    .length = dtype == TNF_F32 ? 4 * n : n,
                    .at = f->at };
    return tnf_add_dense(f->r, &d, e);
}

static tnf_status add_pq(ft_reading *f, const char *name, const ft_quant *q, tnf_error *e)
{
    uint64_t shape[] = { q->rows, q->columns }, key = strcmp(name, FT_OUTPUT) == 0;
    tnf_part parts[3] = {
        part_at("codes", TNF_U8, f->at + q->codes, q->rows * q->pieces),
        part_at("codebooks", TNF_F32, f->at + q->centroids, q->columns * FT_CENTROIDS * 4),
        { .role = "norms",
          .type = tnf_type_of(TNF_F32),
          .payload = TNF_OPAQUE,
          .offset = key,
          .nbytes = 4 * q->rows },
    };
    tnf_object o = { .name = { name, strlen(name) },
                     .layout = tnf_layout_named("pq/1", 4),
                     .shape = shape,
                     .rank = 2,
                     .parts = parts,
                     .nparts = q->norms ? 3 : 2 };
    TNF_TRY(tnf_add_object(f->r, &o, f->at, e));
    if (!q->norms)
        return TNF_OK;
    f->norms[key] = (ft_norms) { f->at + q->norm_codes, f->at + q->norm_book };
    TNF_TRY(add_companion(f, name, FT_NORM_CODES, TNF_U8, q->rows, f->at + q->norm_codes, e));
    return add_companion(f, name, FT_NORM_BOOK, TNF_F32, FT_CENTROIDS, f->at + q->norm_book, e);
}

tnf_status tnf_ft_read_quantized(ft_reading *f, const char *name, tnf_error *e)
{
    ft_quant q;
    TNF_TRY(tnf_ft_quant_parse(&q, get_from_file, f, f->at, e));
    uint64_t size = f->r->source->size;
    if (q.bytes > size - f->at)
        return tnf_fail(e, TNF_ETRUNCATED, size,
                        "the file ends inside a quantized matrix: %s missing (cut short?)",
                        TNF_BYTES_ARE(q.bytes - (size - f->at)));
    TNF_TRY(check_shape(f, name, q.rows, q.columns, f->at, e));
    if (q.even && q.rows > 0 && q.columns > 0) {
        TNF_TRY(add_pq(f, name, &q, e));
    } else {
        tnf_warn(
            f->r, f->at,
            "the matrix is kept as bytes: its rows have %llu elements in %llu pieces, and it is "
            "empty, or the last piece is shorter",
            (unsigned long long)q.columns, (unsigned long long)q.pieces);
        TNF_TRY(add_companion(f, name, FT_QUANTIZED, TNF_U8, q.bytes, f->at, e));
    }
    f->at += q.bytes;
    return TNF_OK;
}

/* ----------------------------------------------------------------------- norms */

static tnf_status decode_norms(const tnf_reader *r, const ft_norms *norms, uint64_t row,
                               uint8_t *dst, size_t n, tnf_error *e)
{
    uint8_t book[FT_CENTROIDS * 4], codes[4096];
    TNF_TRY(tnf_source_read(r->source, norms->book, book, sizeof book, e));
    for (size_t done = 0; done < n;) {
        size_t some = n - done < sizeof codes ? n - done : sizeof codes;
        TNF_TRY(tnf_source_read(r->source, norms->codes + row + done, codes, some, e));
        for (size_t i = 0; i < some; i++)
            memcpy(dst + 4 * (done + i), book + 4 * (size_t)codes[i], 4);
        done += some;
    }
    return TNF_OK;
}

/* Norms that are only partly requested are decoded into `spare` first. */
tnf_status tnf_ft_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    const ft_norms *norms = &((const ft_norms *)r->state)[key];
    uint8_t *to = dst, spare[4];
    while (n > 0) {
        size_t skip = (size_t)(offset % 4), whole = n / 4;
        if (skip == 0 && whole > 0) {
            TNF_TRY(decode_norms(r, norms, offset / 4, to, whole, e));
            to += 4 * whole;
            offset += 4 * whole;
            n -= 4 * whole;
            continue;
        }
        size_t some = n < 4 - skip ? n : 4 - skip;
        TNF_TRY(decode_norms(r, norms, offset / 4, spare, 1, e));
        memcpy(to, spare + skip, some);
        to += some;
        offset += some;
        n -= some;
    }
    return TNF_OK;
}
