/* SPDX-License-Identifier: MIT */
/* Quantized layouts. quant_group/1 and mx/1 have the parts, rules and attribute names of zTensor
 * 2's zt.quant_group/1 and zt.mx/1. Their parameters are the tensor's attributes of exactly these
 * names:
 *
 *   quant_group/1    bits, group_size, axis                       numbers
 *     data           packing     { word, order, per_word }       "u32", "lsb_first", 8
 *     scales         scale_form                                   "f16_factors"
 *     (zeros)        zero_point  { form, value | packing }        "tensor", "plain"
 *
 *     value = (code - zero of its group) * scale of its group; a group is group_size codes in a
 *     row along the axis
 *
 *   mx/1             block_size, (axis: the last), scale_form     "e8m0_exponent"
 *     data           f4_e2m1, f6_e2m3, f6_e3m2, f8_e4m3fn, f8_e5m2 or i8
 *     scales         f8_e8m0, one per block
 *
 *     value = element * scale of its block; an i8 means itself / 64, as in MXINT8
 *
 *   pq/1             shape [n, d]; a row is cut into m pieces, each replaced by the number of one
 *     codes          u8 [n, m]             of k centroids
 *     codebooks      f32 [m, k, d/m]
 *     (projection)   f32 [d, d]            the reconstruction is multiplied by it
 *     (norms)        f32 [n]               and then by its row's norm
 */
#include "model/layout_rules.h"

#include "base/ckd.h"
#include "model/dtype.h"
#include "model/quant.h"
#include "model/value.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------- attributes */

static tnf_status get_uint(const tnf_object *object, const tnf_value *map, const char *key,
                           uint64_t *out, tnf_error *e)
{
    const tnf_value *v = tnf_value_get(map, key);
    if (!v)
        return tnf_layout_fail(object, e, "the attribute '%s' is missing", key);
    if (!tnf_value_whole(out, v))
        return tnf_layout_fail(object, e, "the attribute '%s' is not a whole number", key);
    return TNF_OK;
}

/* Gets a string that must be one of `words`; *out is its index. */
static tnf_status get_word(const tnf_object *object, const tnf_value *map, const char *key,
                           const char *const *words, unsigned *out, tnf_error *e)
{
    const tnf_value *v = tnf_value_get(map, key);
    if (!v || v->kind != TNF_STRING)
        return tnf_layout_fail(object, e, "the attribute '%s' is %s", key,
                               v ? "not a string" : "missing");
    for (*out = 0; words[*out]; ++*out)
        if (strlen(words[*out]) == v->n && memcmp(words[*out], v->as.s, v->n) == 0)
            return TNF_OK;
    return tnf_layout_fail(object, e, "the attribute '%s' is %s", key,
                           TNF_QUOTED(((tnf_str) { v->as.s, v->n })));
}

static tnf_status get_map(const tnf_object *object, const char *key, const tnf_value **out,
                          tnf_error *e)
{
    *out = tnf_value_get(object->attrs, key);
    if (!*out || (*out)->kind != TNF_MAP)
        return tnf_layout_fail(object, e, "the attribute '%s' is %s", key,
                               *out ? "not a map" : "missing");
    return TNF_OK;
}

/* Checks that an axis exists, and that groups of `size` tile it (0: no groups). */
static tnf_status check_axis(const tnf_object *object, uint64_t axis, uint64_t size, tnf_error *e)
{
    if (axis >= object->rank)
        return tnf_layout_fail(object, e, "there is no axis %" PRIu64 ", only %u dimensions", axis,
                               object->rank);
    if (size != 0 && object->shape[axis] % size != 0)
        return tnf_layout_fail(object, e,
                               "groups of %" PRIu64 " do not tile the %" PRIu64
                               " elements of axis %" PRIu64,
                               size, object->shape[axis], axis);
    return TNF_OK;
}

/* ------------------------------------------------------------ quant_group */

static tnf_status get_packing(const tnf_object *object, tnf_quant *q, tnf_error *e)
{
    static const char *const words[] = { "u8", "u16", "u32", "u64", NULL };
    static const char *const orders[] = { "lsb_first", "msb_first", NULL };
    const tnf_value *packing;
    unsigned order;
    TNF_TRY(get_map(object, "packing", &packing, e));
    TNF_TRY(get_word(object, packing, "word", words, &q->word, e));
    TNF_TRY(get_word(object, packing, "order", orders, &order, e));
    TNF_TRY(get_uint(object, packing, "per_word", &q->per_word, e));
    q->msb_first = order == 1;
    unsigned word_bits = 8u << q->word;
    if (q->bits < 2 || q->bits > 8 || word_bits % q->bits != 0)
        return tnf_layout_fail(object, e,
                               "codes of %" PRIu64 " bits in words of %u are not allowed", q->bits,
                               word_bits);
    if (q->per_word != word_bits / q->bits)
        return tnf_layout_fail(object, e,
                               "%" PRIu64 " codes of %" PRIu64 " bits do not fill a word of %u",
                               q->per_word, q->bits, word_bits);
    return TNF_OK;
}

static tnf_status get_zero_point(const tnf_object *object, tnf_quant *q, tnf_error *e)
{
    static const char *const forms[] = { "none", "implied", "tensor", NULL };
    static const char *const packings[] = { "same_as_data", "plain", NULL };
    const tnf_value *zero_point, *value;
    TNF_TRY(get_map(object, "zero_point", &zero_point, e));
    TNF_TRY(get_word(object, zero_point, "form", forms, &q->zero_form, e));
    if ((q->zero_form == TNF_ZERO_TENSOR) != (tnf_object_part(object, "zeros") != NULL))
        return tnf_layout_fail(object, e, "the part 'zeros' is %s, but zero points are '%s'",
                               q->zero_form == TNF_ZERO_TENSOR ? "missing" : "there",
                               forms[q->zero_form]);
    if (q->zero_form == TNF_ZERO_TENSOR)
        return get_word(object, zero_point, "packing", packings, &q->zero_packing, e);
    value = tnf_value_get(zero_point, "value");
    if (q->zero_form == TNF_ZERO_IMPLIED &&
        (!value || (value->kind != TNF_INT && value->kind != TNF_UINT)))
        return tnf_layout_fail(object, e, "the attribute 'value' is %s",
                               value ? "not a whole number" : "missing");
    if (q->zero_form == TNF_ZERO_IMPLIED && value->kind == TNF_UINT && value->as.u > INT64_MAX)
        return tnf_layout_fail(object, e, "the attribute 'value' is too large");
    if (q->zero_form == TNF_ZERO_IMPLIED)
        q->zero = value->kind == TNF_UINT ? (int64_t)value->as.u : value->as.i;
    return TNF_OK;
}

static tnf_status get_quant(const tnf_object *object, tnf_quant *q, tnf_error *e)
{
    static const char *const forms[] = { "f32_factors", "f16_factors", "e8m0_exponent", NULL };
    TNF_TRY(get_uint(object, object->attrs, "bits", &q->bits, e));
    TNF_TRY(get_uint(object, object->attrs, "group_size", &q->group_size, e));
    TNF_TRY(get_uint(object, object->attrs, "axis", &q->axis, e));
    TNF_TRY(get_word(object, object->attrs, "scale_form", forms, &q->scale_form, e));
    TNF_TRY(get_packing(object, q, e));
    return get_zero_point(object, q, e);
}

/* Fails unless the codes are packed in words of the part's type, and all words are full. */
static tnf_status check_codes(const tnf_object *object, const tnf_quant *q, const tnf_part *part,
                              uint64_t codes, tnf_error *e)
{
    const tnf_type *type = part->type;
    if (type != tnf_type_of(type->storage) || type->bits != 8u << q->word ||
        (type->number != TNF_NUMBER_UINT && type->number != TNF_NUMBER_INT))
        return tnf_layout_fail(object, e, "the part '%s' is %s, but codes are in words of %u bits",
                               part->role, TNF_TYPE_TEXT(type), 8u << q->word);
    if (codes % q->per_word != 0)
        return tnf_layout_fail(object, e, "%" PRIu64 " codes do not fill words of %" PRIu64, codes,
                               q->per_word);
    return tnf_part_must_hold(object, part, codes / q->per_word, e);
}

/* The form says how to interpret a scale, not how it is stored: factors may be of any float
 * type. */
static tnf_status check_scale_type(const tnf_object *object, const tnf_quant *q,
                                   const tnf_part *scales, tnf_error *e)
{
    if (q->scale_form == TNF_SCALE_E8M0)
        return tnf_part_must_be(object, scales, tnf_type_named("f8_e8m0"), e);
    if (scales->type->number != TNF_NUMBER_FLOAT)
        return tnf_layout_fail(object, e, "the part 'scales' is %s, which is not a float",
                               TNF_TYPE_TEXT(scales->type));
    return TNF_OK;
}

/* The number of groups. Without groups (group_size 0) the specification says "one scale per row of
 * the axis", but its formula gives one per element: both numbers of scales are accepted. */
static uint64_t count_groups(const tnf_object *object, const tnf_quant *q, uint64_t codes)
{
    uint64_t along = object->shape[q->axis], bytes;
    const tnf_part *scales = tnf_object_part(object, "scales");
    if (q->group_size != 0)
        return codes / q->group_size;
    return tnf_type_bytes(&bytes, scales->type, along) && bytes == scales->nbytes ? along : codes;
}

static tnf_status check_groups(const tnf_object *object, tnf_quant *q, tnf_error *e)
{
    const tnf_part *scales = tnf_object_part(object, "scales");
    const tnf_part *zeros = tnf_object_part(object, "zeros");
    uint64_t codes;
    TNF_TRY(tnf_layout_elements(&codes, object, e));
    TNF_TRY(get_quant(object, q, e));
    TNF_TRY(check_axis(object, q->axis, q->group_size, e));
    TNF_TRY(check_codes(object, q, tnf_object_part(object, "data"), codes, e));
    TNF_TRY(check_scale_type(object, q, scales, e));
    uint64_t groups = count_groups(object, q, codes);
    q->scale_a_row = q->group_size == 0 && groups == object->shape[q->axis];
    TNF_TRY(tnf_part_must_hold(object, scales, groups, e));
    if (q->zero_form != TNF_ZERO_TENSOR)
        return TNF_OK;
    return q->zero_packing == TNF_ZEROS_PLAIN ? tnf_part_must_hold(object, zeros, groups, e)
                                              : check_codes(object, q, zeros, groups, e);
}

static tnf_status check_quant_group(const tnf_object *object, tnf_error *e)
{
    tnf_quant q = { 0 };
    return check_groups(object, &q, e);
}

tnf_status tnf_quant_of(tnf_quant *out, const tnf_object *object, tnf_error *e)
{
    *out = (tnf_quant) { 0 };
    TNF_TRY(tnf_layout_check(object, e)); /* now all parts are there */
    return check_groups(object, out, e);
}

const tnf_layout tnf_layout_quant_group = {
    .id = "quant_group/1",
    .parts = (const tnf_layout_part[]) { { .role = "data" },
                                         { .role = "scales" },
                                         { .role = "zeros", .optional = true },
                                         { NULL, false } },
    .attrs = "bits group_size axis packing scale_form zero_point",
    .check = check_quant_group, /* every bit pattern is a code, so the data has no rules */
};

/* --------------------------------------------------------------------- mx */

static tnf_status check_blocks(const tnf_object *object, tnf_mx *m, tnf_error *e)
{
    static const char *const forms[] = { "e8m0_exponent", NULL };
    const tnf_part *data = tnf_object_part(object, "data");
    const tnf_part *scales = tnf_object_part(object, "scales");
    uint64_t elements;
    unsigned form;
    m->axis = object->rank ? object->rank - 1 : 0;
    TNF_TRY(tnf_layout_elements(&elements, object, e));
    TNF_TRY(get_word(object, object->attrs, "scale_form", forms, &form, e));
    TNF_TRY(get_uint(object, object->attrs, "block_size", &m->block_size, e));
    if (tnf_value_get(object->attrs, "axis"))
        TNF_TRY(get_uint(object, object->attrs, "axis", &m->axis, e));
    if (m->block_size < 2)
        return tnf_layout_fail(object, e, "a block must have at least 2 elements, not %" PRIu64,
                               m->block_size);
    TNF_TRY(check_axis(object, m->axis, m->block_size, e));
    if (!tnf_list_has("f4_e2m1 f6_e2m3 f6_e3m2 f8_e4m3fn f8_e5m2 i8", data->type->id))
        return tnf_layout_fail(object, e, "the part 'data' is %s, which mx/1 does not allow",
                               TNF_TYPE_TEXT(data->type));
    TNF_TRY(tnf_part_must_be(object, scales, tnf_type_named("f8_e8m0"), e));
    TNF_TRY(tnf_part_must_hold(object, data, elements, e));
    return tnf_part_must_hold(object, scales, elements / m->block_size, e);
}

static tnf_status check_mx(const tnf_object *object, tnf_error *e)
{
    tnf_mx m = { 0 };
    return check_blocks(object, &m, e);
}

tnf_status tnf_mx_of(tnf_mx *out, const tnf_object *object, tnf_error *e)
{
    *out = (tnf_mx) { 0 };
    TNF_TRY(tnf_layout_check(object, e));
    return check_blocks(object, out, e);
}

const tnf_layout tnf_layout_mx = {
    .id = "mx/1",
    .parts = (const tnf_layout_part[]) { { .role = "data" },
                                         { .role = "scales" },
                                         { NULL, false } },
    .attrs = "block_size axis scale_form",
    .check = check_mx,
    .check_data = tnf_layout_check_numbers,
};

/* --------------------------------------------------------------------- pq */

enum { MAX_CENTROIDS = 256 }; /* a code is a byte */

/* The number of centroids of a codebook: m codebooks of k x d/m floats are k x d floats. */
static tnf_status count_centroids(const tnf_object *object, uint64_t *out, tnf_error *e)
{
    const tnf_part *codebooks = tnf_object_part(object, "codebooks");
    uint64_t row;
    if (object->shape[1] == 0 || !tnf_ckd_mul(&row, object->shape[1], sizeof(float)))
        return tnf_layout_fail(object, e, "rows of %" PRIu64 " elements are not allowed",
                               object->shape[1]);
    *out = codebooks->nbytes / row;
    if (codebooks->nbytes % row != 0 || *out == 0 || *out > MAX_CENTROIDS)
        return tnf_layout_fail(
            object, e, "the part 'codebooks' has %" PRIu64 " bytes, not 1 to 256 times %" PRIu64,
            codebooks->nbytes, row);
    return TNF_OK;
}

/* Checks m, which follows from the number of codes; without rows it may be anything. */
static tnf_status check_pieces(const tnf_object *object, tnf_error *e)
{
    const tnf_part *codes = tnf_object_part(object, "codes");
    uint64_t rows = object->shape[0], length = object->shape[1];
    uint64_t pieces = rows ? codes->nbytes / rows : 0;
    if (rows == 0 ? codes->nbytes != 0 : codes->nbytes % rows != 0 || pieces == 0)
        return tnf_layout_fail(object, e,
                               "%" PRIu64 " codes cannot be divided evenly by %" PRIu64 " rows",
                               codes->nbytes, rows);
    if (rows != 0 && length % pieces != 0)
        return tnf_layout_fail(object, e,
                               "rows of %" PRIu64 " elements cannot be cut into %" PRIu64 " pieces",
                               length, pieces);
    return TNF_OK;
}

static tnf_status check_pq(const tnf_object *object, tnf_error *e)
{
    const tnf_part *projection = tnf_object_part(object, "projection");
    const tnf_part *norms = tnf_object_part(object, "norms");
    uint64_t centroids, square;
    if (object->rank != 2)
        return tnf_layout_fail(object, e, "a pq/1 tensor must have 2 dimensions, not %u",
                               object->rank);
    for (uint16_t i = 0; i < object->nparts; i++) {
        bool codes = strcmp(object->parts[i].role, "codes") == 0;
        TNF_TRY(
            tnf_part_must_be(object, &object->parts[i], tnf_type_of(codes ? TNF_U8 : TNF_F32), e));
    }
    TNF_TRY(count_centroids(object, &centroids, e));
    TNF_TRY(check_pieces(object, e));
    if (projection) {
        if (!tnf_ckd_mul(&square, object->shape[1], object->shape[1]))
            return tnf_layout_fail(object, e, "the part 'projection' is beyond 2^64 elements");
        TNF_TRY(tnf_part_must_hold(object, projection, square, e));
    }
    return norms ? tnf_part_must_hold(object, norms, object->shape[0], e) : TNF_OK;
}

static tnf_status check_pq_data(const tnf_object *object, tnf_part_reader read, tnf_error *e)
{
    TNF_TRY(tnf_layout_check(object, e));
    const tnf_part *codes = tnf_object_part(object, "codes");
    uint8_t block[16384];
    uint64_t centroids;
    TNF_TRY(count_centroids(object, &centroids, e));
    if (centroids == MAX_CENTROIDS)
        return TNF_OK;
    for (uint64_t at = 0; at < codes->nbytes;) {
        uint64_t left = codes->nbytes - at;
        size_t n = left < sizeof block ? (size_t)left : sizeof block;
        TNF_TRY(read(block, n, codes, at, e));
        for (size_t i = 0; i < n; i++)
            if (block[i] >= centroids)
                return tnf_layout_fail_at(object, codes, at + i, e,
                                          "code %" PRIu64 " is %u, but there are only %" PRIu64
                                          " centroids",
                                          at + i, block[i], centroids);
        at += n;
    }
    return TNF_OK;
}

const tnf_layout tnf_layout_pq = {
    .id = "pq/1",
    .parts = (const tnf_layout_part[]) { { .role = "codes" },
                                         { .role = "codebooks" },
                                         { .role = "projection", .optional = true },
                                         { .role = "norms", .optional = true },
                                         { NULL, false } },
    .check = check_pq,
    .check_data = check_pq_data,
};
