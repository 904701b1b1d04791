/* SPDX-License-Identifier: MIT */
/* Serialises keys and values in either byte order, with the lengths of either version. */
#include "formats/gguf/gguf.h"
#include <tenfold/value.h>

static void put_number(gguf_out *o, uint64_t v, size_t width)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < width; i++)
        bytes[o->big ? width - 1 - i : i] = (uint8_t)(v >> 8 * i);
    tnf_buf_put(&o->b, bytes, width);
}

void tnf_gguf_put_u32(gguf_out *o, uint32_t v)
{
    put_number(o, v, 4);
}

void tnf_gguf_put_u64(gguf_out *o, uint64_t v)
{
    put_number(o, v, 8);
}

void tnf_gguf_put_length(gguf_out *o, uint64_t v)
{
    if (o->v1 && v > UINT32_MAX)
        o->b.status = o->b.status == TNF_OK ? TNF_ELIMIT : o->b.status;
    put_number(o, v, o->v1 ? 4 : 8);
}

void tnf_gguf_put_text(gguf_out *o, const char *p, size_t n)
{
    tnf_gguf_put_length(o, n);
    tnf_buf_put(&o->b, p, n);
}

/* The type of an array's items: that of the first item, or the declared one. */
static unsigned items_type(const tnf_value *v)
{
    tnf_kind kind;
    tnf_dtype dtype;
    if (v->n > 0)
        return tnf_gguf_value_type(&v->as.items[0]);
    if (!tnf_value_items(&kind, &dtype, v))
        return GGUF_TYPES;
    const tnf_value like = { .kind = (uint8_t)kind, .dtype = (uint8_t)dtype };
    return tnf_gguf_value_type(&like);
}

static uint64_t bits_of(const tnf_value *v)
{
    uint64_t bits = v->as.u;
    uint32_t half;
    if (v->kind == TNF_BOOL)
        return v->as.b;
    if (v->kind == TNF_FLOAT && v->dtype == TNF_F32) {
        memcpy(&half, &v->as.f32, sizeof half);
        return half;
    }
    if (v->kind == TNF_FLOAT)
        memcpy(&bits, &v->as.f64, sizeof bits);
    return bits;
}

static void put_value(gguf_out *o, const tnf_value *v, unsigned type)
{
    if (type == GGUF_STRING) {
        tnf_gguf_put_text(o, v->as.s, v->n);
    } else if (type == GGUF_ARRAY) {
        unsigned items = items_type(v);
        tnf_gguf_put_u32(o, items);
        tnf_gguf_put_length(o, v->n);
        for (size_t i = 0; i < v->n; i++)
            put_value(o, &v->as.items[i], items);
    } else {
        put_number(o, bits_of(v), tnf_gguf_value_size(type));
    }
}

void tnf_gguf_put_key(gguf_out *o, tnf_str key, const tnf_value *v)
{
    unsigned type = tnf_gguf_value_type(v);
    tnf_gguf_put_text(o, key.p, key.n);
    tnf_gguf_put_u32(o, type);
    put_value(o, v, type);
}

/* ------------------------------------------------------------ usual types */

/* The narrowest of the number types that llama.cpp requests; other values keep their type. */
static unsigned usual_number(const tnf_value *v)
{
    if (v->kind == TNF_UINT)
        return v->as.u <= UINT32_MAX ? GGUF_U32 : GGUF_U64;
    if (v->kind == TNF_INT)
        return v->as.i >= INT32_MIN && v->as.i <= INT32_MAX ? GGUF_I32 : GGUF_I64;
    if (v->kind == TNF_FLOAT && v->dtype == TNF_F64)
        return v->as.f64 != v->as.f64 || (double)(float)v->as.f64 == v->as.f64 ? GGUF_F32
                                                                               : GGUF_F64;
    return tnf_gguf_value_type(v);
}

/* The widest type that an item of an array of numbers needs; GGUF_TYPES: not an array of
 * numbers. */
static unsigned usual_items(const tnf_value *v, bool tokens)
{
    unsigned widest = v->n ? usual_number(&v->as.items[0]) : GGUF_TYPES;
    bool number = v->n && v->as.items[0].kind != TNF_BOOL && tnf_gguf_value_size(widest) > 0;
    bool small = tokens;
    for (size_t i = 0; number && i < v->n; i++) {
        unsigned this = usual_number(&v->as.items[i]);
        if (tnf_gguf_value_size(this) > tnf_gguf_value_size(widest))
            widest = this;
        small = small && this == GGUF_U32 && v->as.items[i].as.u <= INT32_MAX;
    }
    return !number ? GGUF_TYPES : small ? GGUF_I32 : widest;
}

static void put_usual_number(gguf_out *o, const tnf_value *v, unsigned type)
{
    uint64_t bits = bits_of(v);
    uint32_t half;
    if (type == GGUF_F32 && v->dtype == TNF_F64) {
        float narrow = (float)v->as.f64;
        memcpy(&half, &narrow, sizeof half);
        bits = half;
    }
    put_number(o, bits, tnf_gguf_value_size(type));
}

void tnf_gguf_put_usual(gguf_out *o, tnf_str key, const tnf_value *v)
{
    /* i32, although no item is negative */
    bool types = tnf_str_is(key, "tokenizer.ggml.token_type");
    bool array = v->kind == TNF_ARRAY;
    unsigned type = array ? usual_items(v, types) : usual_number(v);
    if (type == GGUF_TYPES || tnf_gguf_value_size(type) == 0) {
        tnf_gguf_put_key(o, key, v);
        return;
    }
    tnf_gguf_put_text(o, key.p, key.n);
    if (array)
        tnf_gguf_put_u32(o, GGUF_ARRAY);
    tnf_gguf_put_u32(o, type);
    if (array)
        tnf_gguf_put_length(o, v->n);
    for (size_t i = 0; i < (array ? v->n : 1u); i++)
        put_usual_number(o, array ? &v->as.items[i] : v, type);
}

/* Reading returns valid UTF-8 as a string and other bytes as bytes, so only these can be
 * written. */
static bool is_text(const tnf_value *v)
{
    return (v->kind == TNF_STRING) == tnf_utf8_valid(NULL, v->as.s, v->n);
}

bool tnf_gguf_holds(const tnf_value *v, unsigned depth)
{
    unsigned type = tnf_gguf_value_type(v);
    if (type == GGUF_TYPES)
        return false;
    if (type == GGUF_STRING)
        return is_text(v);
    if (type != GGUF_ARRAY)
        return true;
    unsigned items = items_type(v);
    bool holds = depth < GGUF_MAX_DEPTH && items != GGUF_TYPES;
    for (size_t i = 0; i < v->n && holds; i++)
        holds = tnf_gguf_value_type(&v->as.items[i]) == items &&
                tnf_gguf_holds(&v->as.items[i], depth + 1);
    return holds;
}
