/* SPDX-License-Identifier: MIT */
/* Quantized matrices.
 *
 *   quantized (4)  u32 projection?  u32 norms?  u32 M  u32 D  u32 K  u64 rows  u32 type of codes
 *                  u32 type of the rest │ padding │ [f32 D × D] │ f32 M × K × D/M │ [f32 rows]
 *                  │ u8 rows × M
 *
 * The document contradicts itself about the sizes: it has no room for more than one centroid, and
 * it exchanges the two types. So matrices are read as the tools write them. Early R2V files have no
 * norms, nor the flag for them.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

struct quantized {
    bool projection, norms;
    uint32_t flags[2], pieces, columns, centroids, types[2];
    uint64_t rows;
    uint64_t projection_bytes, codebook_bytes, norm_bytes, code_bytes, bytes;
    uint32_t fields; /* length of the fixed fields */
};

/* Computes the sizes of the blocks; false if they exceed 2^64. */
static bool measure_blocks(struct quantized *q)
{
    uint64_t d = q->columns, square, centroids;
    if (!tnf_ckd_mul(&square, d * 4, q->projection ? d : 0) ||
        !tnf_ckd_mul(&centroids, d * 4, q->centroids) ||
        !tnf_ckd_mul(&q->norm_bytes, q->rows, q->norms ? 4 : 0) ||
        !tnf_ckd_mul(&q->code_bytes, q->rows, q->pieces))
        return false;
    q->projection_bytes = square;
    q->codebook_bytes = centroids;
    return tnf_ckd_add(&q->bytes, square, centroids) &&
           tnf_ckd_add(&q->bytes, q->bytes, q->norm_bytes) &&
           tnf_ckd_add(&q->bytes, q->bytes, q->code_bytes);
}

static bool known_types(const struct quantized *q)
{
    return (q->types[0] == FF_TYPE_U8 && q->types[1] == FF_TYPE_F32) ||
           (q->types[0] == FF_TYPE_F32 && q->types[1] == FF_TYPE_U8);
}

static void parse_quantized(struct quantized *q, tnf_cur cur, bool norms)
{
    *q = (struct quantized) { .fields = norms ? 36 : 32 };
    q->flags[0] = tnf_u32(&cur);
    q->flags[1] = norms ? tnf_u32(&cur) : 0;
    q->projection = q->flags[0] != 0;
    q->norms = q->flags[1] != 0;
    q->pieces = tnf_u32(&cur);
    q->columns = tnf_u32(&cur);
    q->centroids = tnf_u32(&cur);
    q->rows = tnf_u64(&cur);
    q->types[0] = tnf_u32(&cur);
    q->types[1] = tnf_u32(&cur);
}

static tnf_status check_quantized(ff_reading *f, const ff_frame *c, const struct quantized *q,
                                  tnf_error *e)
{
    uint64_t after_flags = c->body + q->fields - 28;
    if (q->flags[0] > 1 || q->flags[1] > 1)
        tnf_warn(f->r, c->body, "the quantized matrix has the flags %u and %u, not 0 or 1",
                 q->flags[0], q->flags[1]);
    if (!known_types(q))
        return tnf_fail(e,
                        tnf_ff_type_of(q->types[0]) && tnf_ff_type_of(q->types[1])
                            ? TNF_EUNSUPPORTED
                            : TNF_EFORMAT,
                        c->body + q->fields - 8,
                        "the quantized matrix has the types %u and %u, not u8 codes and f32",
                        q->types[0], q->types[1]);
    if (q->types[0] == FF_TYPE_F32)
        tnf_warn(f->r, c->body + q->fields - 8,
                 "the types of the quantized matrix are swapped, as before the first release");
    if (q->pieces == 0 || q->columns == 0 || q->columns % q->pieces != 0)
        return tnf_fail(e, TNF_EFORMAT, after_flags,
                        "rows of %u elements cannot be cut into %u pieces", q->columns, q->pieces);
    if (q->centroids == 0 || q->centroids > 256)
        return tnf_fail(e, TNF_EFORMAT, after_flags + 8,
                        "there are %u centroids; the number must be 1 to 256", q->centroids);
    return TNF_OK;
}

static tnf_status add_quantized(ff_reading *f, const struct quantized *q, uint64_t data,
                                uint64_t at, tnf_error *e)
{
    const tnf_type *f32 = tnf_type_of(TNF_F32);
    uint64_t shape[] = { q->rows, q->columns };
    uint64_t codebooks = data + q->projection_bytes, norms = codebooks + q->codebook_bytes;
    tnf_part parts[4];
    uint16_t n = 0;
    parts[n++] = tnf_ff_part_at("codes", tnf_type_of(TNF_U8), norms + q->norm_bytes, q->code_bytes);
    parts[n++] = tnf_ff_part_at("codebooks", f32, codebooks, q->codebook_bytes);
    if (q->projection)
        parts[n++] = tnf_ff_part_at("projection", f32, data, q->projection_bytes);
    if (q->norms)
        parts[n++] = tnf_ff_part_at("norms", f32, norms, q->norm_bytes);
    tnf_object o = { .name = { FF_EMBEDDINGS, strlen(FF_EMBEDDINGS) },
                     .layout = tnf_layout_named("pq/1", 4),
                     .shape = shape,
                     .rank = 2,
                     .parts = parts,
                     .nparts = n };
    const tnf_member pieces = { { FF_PIECES, strlen(FF_PIECES) }, tnf_value_uint(q->pieces) };
    /* In a matrix with rows, the size of the codes determines the number of pieces. */
    TNF_TRY(tnf_ff_matrix_attrs(f, q->rows ? NULL : &pieces, &o.attrs, e));
    return tnf_ff_add(f, &o, at, e);
}

tnf_status tnf_ff_read_quantized(ff_reading *f, ff_frame *c, tnf_error *e)
{
    struct quantized q;
    tnf_cur cur;
    uint64_t at = 0;
    TNF_TRY(tnf_ff_read_fields(f, c, 36, "quantized matrix", &cur, e));
    parse_quantized(&q, cur, true);
    if (f->dialect == FF_R2V && !known_types(&q))
        parse_quantized(&q, cur, false);
    TNF_TRY(check_quantized(f, c, &q, e));
    if (!measure_blocks(&q))
        return tnf_ff_too_large(c, "quantized matrix", e);
    ff_space s = tnf_ff_space_of(c, q.fields, q.bytes, 4, "quantized matrix");
    TNF_TRY(tnf_ff_place(f, c, &s, &at, e));
    TNF_TRY(tnf_ff_check_rows(f, q.rows, c->body + q.fields - 16, e));
    return add_quantized(f, &q, at, c->at, e);
}

tnf_status tnf_ff_is_quantized(ff_reading *f, const ff_frame *c, bool *out, tnf_error *e)
{
    struct quantized q;
    tnf_cur cur;
    uint64_t padding;
    *out = false;
    if (c->length < 36)
        return TNF_OK;
    TNF_TRY(tnf_ff_read_fields(f, c, 36, "matrix", &cur, e));
    parse_quantized(&q, cur, true);
    if (q.flags[0] > 1 || q.flags[1] > 1 || !measure_blocks(&q))
        return TNF_OK;
    ff_space s = tnf_ff_space_of(c, 36, q.bytes, 4, "matrix");
    *out = tnf_ff_find_padding(f, &s, &padding);
    return TNF_OK;
}
