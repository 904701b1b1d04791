/* SPDX-License-Identifier: MIT */
/* The MessagePack writer: exact widths for formats that require them, else the shortest form. */
#include "base/error.h"
#include "wire/msgpack_wrapper.h"

#include <string.h>

/* ----------------------------------------------------------------- pieces */

void tnf_msgpack_put_nil(tnf_buf *b)
{
    tnf_buf_u8(b, 0xc0);
}

void tnf_msgpack_put_bool(tnf_buf *b, bool v)
{
    tnf_buf_u8(b, v ? 0xc3 : 0xc2);
}

void tnf_msgpack_put_uint(tnf_buf *b, uint64_t v)
{
    if (v < 0x80)
        tnf_buf_u8(b, (uint8_t)v);
    else if (v <= UINT8_MAX)
        tnf_buf_wide(b, 0xcc, v, 1);
    else if (v <= UINT16_MAX)
        tnf_buf_wide(b, 0xcd, v, 2);
    else if (v <= UINT32_MAX)
        tnf_buf_wide(b, 0xce, v, 4);
    else
        tnf_buf_wide(b, 0xcf, v, 8);
}

void tnf_msgpack_put_int(tnf_buf *b, int64_t v)
{
    uint64_t bits = (uint64_t)v;
    if (v >= 0)
        tnf_msgpack_put_uint(b, bits);
    else if (v >= -32)
        tnf_buf_u8(b, (uint8_t)bits);
    else if (v >= INT8_MIN)
        tnf_buf_wide(b, 0xd0, bits, 1);
    else if (v >= INT16_MIN)
        tnf_buf_wide(b, 0xd1, bits, 2);
    else if (v >= INT32_MIN)
        tnf_buf_wide(b, 0xd2, bits, 4);
    else
        tnf_buf_wide(b, 0xd3, bits, 8);
}

void tnf_msgpack_put_exact(tnf_buf *b, tnf_dtype dtype, uint64_t bits)
{
    static const struct {
        uint8_t marker, width;
    } forms[TNF_DTYPE_COUNT] = {
        [TNF_F64] = { 0xcb, 8 }, [TNF_F32] = { 0xca, 4 }, [TNF_I64] = { 0xd3, 8 },
        [TNF_I32] = { 0xd2, 4 }, [TNF_I16] = { 0xd1, 2 }, [TNF_I8] = { 0xd0, 1 },
        [TNF_U64] = { 0xcf, 8 }, [TNF_U32] = { 0xce, 4 }, [TNF_U16] = { 0xcd, 2 },
        [TNF_U8] = { 0xcc, 1 },
    };
    if (dtype < TNF_DTYPE_COUNT && forms[dtype].width)
        tnf_buf_wide(b, forms[dtype].marker, bits, forms[dtype].width);
    else if (b->status == TNF_OK) /* f16 and bf16 have no marker */
        b->status = TNF_EINVAL;
}

void tnf_msgpack_put_u32(tnf_buf *b, uint32_t v)
{
    tnf_buf_wide(b, 0xce, v, 4);
}

void tnf_msgpack_put_f32(tnf_buf *b, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    tnf_buf_wide(b, 0xca, bits, 4);
}

void tnf_msgpack_put_f64(tnf_buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    tnf_buf_wide(b, 0xcb, bits, 8);
}

/* Writes a length: of 32 bits with the marker `wide`, of 16 bits with the marker before it, of 8
 * bits, if there is one, with the marker before that. */
static void put_length(tnf_buf *b, unsigned wide, bool has_8, uint64_t n)
{
    if (n <= UINT8_MAX && has_8)
        tnf_buf_wide(b, wide - 2, n, 1);
    else if (n <= UINT16_MAX)
        tnf_buf_wide(b, wide - 1, n, 2);
    else if (n <= UINT32_MAX)
        tnf_buf_wide(b, wide, n, 4);
    else if (b->status == TNF_OK)
        b->status = TNF_ELIMIT;
}

void tnf_msgpack_put_str(tnf_buf *b, const char *p, size_t n)
{
    if (n < 32)
        tnf_buf_u8(b, (uint8_t)(0xa0 | n));
    else
        put_length(b, 0xdb, true, n);
    tnf_buf_put(b, p, n);
}

void tnf_msgpack_put_bin_head(tnf_buf *b, uint64_t n)
{
    put_length(b, 0xc6, true, n);
}

void tnf_msgpack_put_bin(tnf_buf *b, const void *p, size_t n)
{
    tnf_msgpack_put_bin_head(b, n);
    tnf_buf_put(b, p, n);
}

void tnf_msgpack_put_ext(tnf_buf *b, int8_t type, const void *p, size_t n)
{
    switch (n) {
    case 1:
        tnf_buf_u8(b, 0xd4);
        break;
    case 2:
        tnf_buf_u8(b, 0xd5);
        break;
    case 4:
        tnf_buf_u8(b, 0xd6);
        break;
    case 8:
        tnf_buf_u8(b, 0xd7);
        break;
    case 16:
        tnf_buf_u8(b, 0xd8);
        break;
    default:
        put_length(b, 0xc9, true, n);
        break;
    }
    tnf_buf_u8(b, (uint8_t)type);
    tnf_buf_put(b, p, n);
}

void tnf_msgpack_put_array(tnf_buf *b, uint64_t n)
{
    if (n < 16)
        tnf_buf_u8(b, (uint8_t)(0x90 | n));
    else
        put_length(b, 0xdd, false, n);
}

void tnf_msgpack_put_map(tnf_buf *b, uint64_t n)
{
    if (n < 16)
        tnf_buf_u8(b, (uint8_t)(0x80 | n));
    else
        put_length(b, 0xdf, false, n);
}

/* ------------------------------------------------------------------ trees */

typedef struct writer {
    tnf_buf *b;
    unsigned max_depth;
    tnf_error *e;
} writer;

static tnf_status put_tree(const writer *w, const tnf_value *v, unsigned depth);

static tnf_status put_items(const writer *w, const tnf_value *items, size_t n, unsigned depth)
{
    for (size_t i = 0; i < n; i++)
        TNF_TRY(put_tree(w, &items[i], depth + 1));
    return TNF_OK;
}

static tnf_status put_map(const writer *w, const tnf_value *v, unsigned depth)
{
    tnf_msgpack_put_map(w->b, v->n);
    for (size_t i = 0; i < v->n; i++) {
        const tnf_member *m = &v->as.members[i];
        TNF_TRY(tnf_need_str(m->key, "key", w->e));
        tnf_msgpack_put_str(w->b, m->key.p, m->key.n);
        TNF_TRY(put_tree(w, &m->value, depth + 1));
    }
    return TNF_OK;
}

/* Writes a map, or the item that it wraps. */
static tnf_status put_map_or_wrapped(const writer *w, const tnf_value *v, unsigned depth)
{
    const tnf_value *in = tnf_msgpack_ext_of(v);
    if (in) {
        const tnf_value *bytes = &in->as.items[1];
        tnf_msgpack_put_ext(w->b, (int8_t)in->as.items[0].as.i, bytes->as.s, bytes->n);
        return TNF_OK;
    }
    if ((in = tnf_msgpack_str_of(v))) {
        tnf_msgpack_put_str(w->b, in->as.s, in->n);
        return TNF_OK;
    }
    if ((in = tnf_msgpack_pairs_of(v))) {
        tnf_msgpack_put_map(w->b, in->n);
        for (size_t i = 0; i < in->n; i++)
            TNF_TRY(put_items(w, in->as.items[i].as.items, 2, depth));
        return TNF_OK;
    }
    return put_map(w, tnf_msgpack_is_wrapper(v) ? &v->as.members[0].value : v, depth);
}

static tnf_status put_tree(const writer *w, const tnf_value *v, unsigned depth)
{
    tnf_buf *b = w->b;
    if (depth > w->max_depth)
        return tnf_fail(w->e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "a value is nested deeper than the %u levels MessagePack may have here",
                        w->max_depth);
    if (v->kind >= TNF_STRING) /* texts, arrays, maps */
        TNF_TRY(tnf_need_array(v->as.s, v->n, "value", w->e));
    switch ((tnf_kind)v->kind) {
    case TNF_NULL:
        tnf_msgpack_put_nil(b);
        return TNF_OK;
    case TNF_BOOL:
        tnf_msgpack_put_bool(b, v->as.b);
        return TNF_OK;
    case TNF_INT:
        tnf_msgpack_put_int(b, v->as.i);
        return TNF_OK;
    case TNF_UINT:
        tnf_msgpack_put_uint(b, v->as.u);
        return TNF_OK;
    case TNF_FLOAT:
        if (v->dtype == TNF_F32)
            tnf_msgpack_put_f32(b, v->as.f32);
        else
            tnf_msgpack_put_f64(b, v->as.f64);
        return TNF_OK;
    case TNF_STRING:
    case TNF_JSON:
        tnf_msgpack_put_str(b, v->as.s, v->n);
        return TNF_OK;
    case TNF_BYTES:
        tnf_msgpack_put_bin(b, v->as.s, v->n);
        return TNF_OK;
    case TNF_ARRAY:
        tnf_msgpack_put_array(b, v->n);
        return put_items(w, v->as.items, v->n, depth);
    case TNF_MAP:
        return put_map_or_wrapped(w, v, depth);
    }
    return tnf_fail(w->e, TNF_EINVAL, TNF_NO_OFFSET, "a value is of the unknown kind %u", v->kind);
}

tnf_status tnf_msgpack_put_value(tnf_buf *b, const tnf_value *v, unsigned max_depth, tnf_error *e)
{
    const writer w = { b, max_depth < TNF_TREE_DEEPEST ? max_depth : TNF_TREE_DEEPEST, e };
    TNF_TRY(put_tree(&w, v, 0));
    return tnf_buf_status(b, "the MessagePack", e);
}
