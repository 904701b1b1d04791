/* SPDX-License-Identifier: MIT */
/* Dense matrices and norms.
 *
 *   dense (2)      u64 rows  u32 columns  u32 type │ padding │ rows × columns
 *   norms (6)      u64 n  u32 type │ padding │ n
 *
 * In the document dense and quantized matrices both have the id 1, and dense ones may have any
 * type. The tools support only f32.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

struct dense {
    uint64_t rows, bytes;
    uint32_t columns, type;
};

/* False: the size overflows, or the type is unknown. */
static bool parse_dense(struct dense *d, tnf_cur *cur)
{
    uint64_t elements = 0;
    d->rows = tnf_u64(cur);
    d->columns = tnf_u32(cur);
    d->type = tnf_u32(cur);
    const tnf_type *type = tnf_ff_type_of(d->type);
    return type && tnf_ckd_mul(&elements, d->rows, d->columns) &&
           tnf_type_bytes(&d->bytes, type, elements);
}

static tnf_status check_type(ff_reading *f, uint32_t type, uint64_t at, const char *what,
                             tnf_error *e)
{
    if (!tnf_ff_type_of(type))
        return tnf_fail(e, TNF_EFORMAT, at, "the type of the %s, %u, is unknown", what, type);
    if (type == FF_TYPE_F32 || f->dialect == FF_SEED)
        return TNF_OK;
    return tnf_stricter(f->r, e, TNF_EUNSUPPORTED, at,
                        "the type of the %s is %s, but finalfusion's tools read only f32", what,
                        tnf_ff_type_of(type)->id);
}

static tnf_status add_matrix(ff_reading *f, const char *name, const struct dense *d, uint32_t rank,
                             uint64_t data, uint64_t at, tnf_error *e)
{
    uint64_t shape[] = { d->rows, d->columns };
    tnf_part part = tnf_ff_part_at("data", tnf_ff_type_of(d->type), data, d->bytes);
    tnf_object o = { .name = { name, strlen(name) },
                     .layout = &tnf_layout_dense,
                     .shape = shape,
                     .rank = rank,
                     .parts = &part,
                     .nparts = 1 };
    if (rank == 2)
        TNF_TRY(tnf_ff_matrix_attrs(f, NULL, &o.attrs, e));
    return tnf_ff_add(f, &o, at, e);
}

static tnf_status read_dense(ff_reading *f, ff_frame *c, tnf_error *e)
{
    struct dense d = { 0 };
    tnf_cur cur;
    uint64_t at = 0;
    TNF_TRY(tnf_ff_read_fields(f, c, 16, "matrix", &cur, e));
    bool small = parse_dense(&d, &cur);
    TNF_TRY(check_type(f, d.type, c->body + 12, "matrix", e));
    if (!small)
        return tnf_ff_too_large(c, "matrix", e);
    uint64_t align = f->dialect == FF_SEED ? tnf_ff_type_of(d.type)->bits / 8 : 4;
    ff_space s = tnf_ff_space_of(c, 16, d.bytes, align, "matrix");
    TNF_TRY(tnf_ff_place(f, c, &s, &at, e));
    TNF_TRY(tnf_ff_check_rows(f, d.rows, c->body, e));
    return add_matrix(f, FF_EMBEDDINGS, &d, 2, at, c->at, e);
}

tnf_status tnf_ff_read_norms(ff_reading *f, ff_frame *c, tnf_error *e)
{
    struct dense d = { .columns = 1 };
    tnf_cur cur;
    uint64_t at = 0;
    TNF_TRY(tnf_ff_read_fields(f, c, 12, "norms", &cur, e));
    d.rows = tnf_u64(&cur);
    d.type = tnf_u32(&cur);
    if (d.type != FF_TYPE_F32)
        return tnf_fail(e, tnf_ff_type_of(d.type) ? TNF_EUNSUPPORTED : TNF_EFORMAT, c->body + 8,
                        "the type of the norms is %u; it must be that of f32", d.type);
    if (!tnf_ckd_mul(&d.bytes, d.rows, 4))
        return tnf_ff_too_large(c, "norms", e);
    ff_space s = tnf_ff_space_of(c, 12, d.bytes, 4, "norms");
    TNF_TRY(tnf_ff_place(f, c, &s, &at, e));
    if (f->words_known && d.rows != f->words)
        TNF_TRY(tnf_stricter(f->r, e, TNF_EFORMAT, c->body, "there are %llu norms for %llu words",
                             (unsigned long long)d.rows, (unsigned long long)f->words));
    return add_matrix(f, FF_NORMS_NAME, &d, 1, at, c->at, e);
}

/* ------------------------------------------------------------ which is it? */

/* The document uses one id for both kinds of matrices: which of them does the length fit? */
static tnf_status is_dense(ff_reading *f, const ff_frame *c, bool *out, tnf_error *e)
{
    struct dense d = { 0 };
    tnf_cur cur;
    uint64_t padding;
    bool quantized;
    TNF_TRY(tnf_ff_read_fields(f, c, 16, "matrix", &cur, e));
    *out = true;
    if (parse_dense(&d, &cur)) {
        ff_space s = tnf_ff_space_of(c, 16, d.bytes, tnf_ff_type_of(d.type)->bits / 8, "matrix");
        if (tnf_ff_find_padding(f, &s, &padding))
            return TNF_OK;
    }
    TNF_TRY(tnf_ff_is_quantized(f, c, &quantized, e));
    *out = !quantized;
    if (quantized)
        return TNF_OK;
    return tnf_fail(
        e, TNF_EFORMAT, c->at + 4,
        "the matrix has a length of %llu bytes, which fits neither a dense nor a quantized matrix",
        (unsigned long long)c->length);
}

tnf_status tnf_ff_read_storage(ff_reading *f, ff_frame *c, tnf_error *e)
{
    bool dense = c->id == FF_DENSE;
    if (c->id == FF_SEED_STORAGE)
        TNF_TRY(is_dense(f, c, &dense, e));
    return dense ? read_dense(f, c, e) : tnf_ff_read_quantized(f, c, e);
}
