/* SPDX-License-Identifier: MIT */
/* MessagePack heads, read in place from a file of any size; and types by their names.
 *
 *   first byte      more bytes of the head
 *   00–7f e0–ff     –            numbers            c0 c2 c3   –            nil, false, true
 *   80–8f 90–9f     –            map, array         a0–bf      –            str
 *   c4 c5 c6        1 2 4        bin                c7 c8 c9   2 3 5        ext: length, type
 *   ca cb           4 8          floats             cc–cf      1 2 4 8      unsigned
 *   d0–d3           1 2 4 8      signed             d4–d8      1            ext of 1 2 4 8 16: type
 *   d9 da db        1 2 4        str                dc dd de df 2 4 2 4     array, map
 */
#include "formats/flax/flax.h"

#include <string.h>

#define WINDOW ((size_t)64 << 10)

/* ------------------------------------------------------------------- types */

static const fx_type types[] = {
    { "float32", "f32", 4, false },
    { "bfloat16", "bf16", 2, false },
    { "float16", "f16", 2, false },
    { "float64", "f64", 8, false },
    { "int32", "i32", 4, false },
    { "int64", "i64", 8, false },
    { "int16", "i16", 2, false },
    { "int8", "i8", 1, false },
    { "uint64", "u64", 8, false },
    { "uint32", "u32", 4, false },
    { "uint16", "u16", 2, false },
    { "uint8", "u8", 1, false },
    { "bool", "bool", 1, false },
    { "complex64", "c64", 8, false },
    { "complex128", "c128", 16, false },
    { "float8_e4m3fn", "f8_e4m3fn", 1, false },
    { "float8_e5m2", "f8_e5m2", 1, false },
    { "float8_e4m3fnuz", "f8_e4m3fnuz", 1, false },
    { "float8_e5m2fnuz", "f8_e5m2fnuz", 1, false },
    { "float8_e8m0fnu", "f8_e8m0", 1, false },
    { "float4_e2m1fn", "f4_e2m1", 1, false },
    { "float6_e2m3fn", "f6_e2m3", 1, false },
    { "float6_e3m2fn", "f6_e3m2", 1, false },
    { "int4", "i4", 1, false },
    { "uint4", "u4", 1, false },
    { "int2", "i2", 1, false },
    { "uint2", "u2", 1, false },
    { "float8_e4m3b11fnuz", NULL, 1, false },
    { "float8_e3m4", NULL, 1, false },
    { "float8_e4m3", NULL, 1, false },
    { "V2", "bf16", 2, true }, /* written by old versions of jax */
    { "void16", "bf16", 2, true },
};
#define NTYPES (sizeof types / sizeof *types)

const fx_type *tnf_fx_type(tnf_str name)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (strlen(types[i].name) == name.n && memcmp(types[i].name, name.p, name.n) == 0)
            return &types[i];
    return NULL;
}

const fx_type *tnf_fx_type_of(const tnf_type *type)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (types[i].type && !types[i].read_only && strcmp(types[i].type, type->id) == 0)
            return &types[i];
    return NULL;
}

/* ------------------------------------------------------------------- heads */

unsigned tnf_fx_shape(uint8_t b, tnf_msgpack_kind *kind)
{
    static const struct {
        uint8_t kind, more;
    } heads[32] = {
        { TNF_MSGPACK_NIL, 0 },  { TNF_MSGPACK_END, 0 },   { TNF_MSGPACK_BOOL, 0 },
        { TNF_MSGPACK_BOOL, 0 }, { TNF_MSGPACK_BIN, 1 },   { TNF_MSGPACK_BIN, 2 },
        { TNF_MSGPACK_BIN, 4 },  { TNF_MSGPACK_EXT, 2 },   { TNF_MSGPACK_EXT, 3 },
        { TNF_MSGPACK_EXT, 5 },  { TNF_MSGPACK_FLOAT, 4 }, { TNF_MSGPACK_FLOAT, 8 },
        { TNF_MSGPACK_UINT, 1 }, { TNF_MSGPACK_UINT, 2 },  { TNF_MSGPACK_UINT, 4 },
        { TNF_MSGPACK_UINT, 8 }, { TNF_MSGPACK_INT, 1 },   { TNF_MSGPACK_INT, 2 },
        { TNF_MSGPACK_INT, 4 },  { TNF_MSGPACK_INT, 8 },   { TNF_MSGPACK_EXT, 1 },
        { TNF_MSGPACK_EXT, 1 },  { TNF_MSGPACK_EXT, 1 },   { TNF_MSGPACK_EXT, 1 },
        { TNF_MSGPACK_EXT, 1 },  { TNF_MSGPACK_STR, 1 },   { TNF_MSGPACK_STR, 2 },
        { TNF_MSGPACK_STR, 4 },  { TNF_MSGPACK_ARRAY, 2 }, { TNF_MSGPACK_ARRAY, 4 },
        { TNF_MSGPACK_MAP, 2 },  { TNF_MSGPACK_MAP, 4 },
    };
    if (b >= 0xC0 && b < 0xE0) {
        *kind = (tnf_msgpack_kind)heads[b - 0xC0].kind;
        return *kind == TNF_MSGPACK_END ? 0 : 1u + heads[b - 0xC0].more;
    }
    *kind = b < 0x80   ? TNF_MSGPACK_UINT
            : b < 0x90 ? TNF_MSGPACK_MAP
            : b < 0xA0 ? TNF_MSGPACK_ARRAY
            : b < 0xC0 ? TNF_MSGPACK_STR
                       : TNF_MSGPACK_INT;
    return 1;
}

static uint64_t number_of(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static tnf_value signed_value(const uint8_t *p, size_t n)
{
    uint64_t v = number_of(p, n), sign = (uint64_t)1 << (8 * n - 1);
    return tnf_value_integer((int64_t)((v ^ sign) - sign));
}

static tnf_value float_value(const uint8_t *p, size_t n)
{
    uint8_t reversed[8];
    for (size_t i = 0; i < n; i++)
        reversed[i] = p[n - 1 - i];
    return tnf_value_number(n == 4 ? TNF_F32 : TNF_F64, reversed);
}

void tnf_fx_parse(const uint8_t *p, fx_head *h)
{
    unsigned more = tnf_fx_shape(*p, &h->kind) - 1;
    h->value = (tnf_value) { .kind = TNF_NULL };
    h->n = 0;
    switch (h->kind) {
    case TNF_MSGPACK_BOOL:
        h->value = tnf_value_bool(*p == 0xC3);
        break;
    case TNF_MSGPACK_UINT:
        h->value = tnf_value_uint(more ? number_of(p + 1, more) : *p);
        break;
    case TNF_MSGPACK_INT:
        h->value = more ? signed_value(p + 1, more) : signed_value(p, 1);
        break;
    case TNF_MSGPACK_FLOAT:
        h->value = float_value(p + 1, more);
        break;
    case TNF_MSGPACK_EXT:
        h->n = more == 1 ? (uint64_t)1 << (*p - 0xD4) : number_of(p + 1, more - 1);
        h->ext = (int8_t)p[more];
        break;
    default:
        h->n = more ? number_of(p + 1, more) : h->kind == TNF_MSGPACK_STR ? *p & 31u : *p & 15u;
    }
    if (h->kind == TNF_MSGPACK_NIL)
        h->n = 0;
}

tnf_status tnf_fx_in(fx_in *in, tnf_reader *r, tnf_error *e)
{
    *in = (fx_in) { .r = r, .size = r->source->size };
    in->window = tnf_arena_raw(r->scratch, in->size < WINDOW ? in->size : WINDOW);
    return in->window ? TNF_OK : tnf_arena_fail(r->scratch, "the tree", e);
}

/* Makes the window hold n bytes at the position. The file must have them. */
static tnf_status fill_window(fx_in *in, size_t n, tnf_error *e)
{
    if (in->pos >= in->start && in->pos + n <= in->start + in->n)
        return TNF_OK;
    uint64_t left = in->size - in->pos;
    in->n = left < WINDOW ? (size_t)left : WINDOW;
    in->start = in->pos;
    return tnf_source_read(in->r->source, in->pos, in->window, in->n, e);
}

static tnf_status too_short(const fx_in *in, uint64_t need, tnf_error *e)
{
    return tnf_fail(e, TNF_ETRUNCATED, in->size,
                    "the file ends inside the tree: %s missing (cut short?)",
                    TNF_BYTES_ARE(need - (in->size - in->pos)));
}

tnf_status tnf_fx_bytes(fx_in *in, uint64_t n, const uint8_t **out, tnf_error *e)
{
    if (n > in->size - in->pos)
        return too_short(in, n, e);
    if (n > in->r->limits.header_bytes - in->taken)
        return tnf_fail(e, TNF_ELIMIT, in->pos,
                        "the tree has more than the %llu bytes allowed: raise the limit "
                        "'header_bytes' if you trust the file",
                        (unsigned long long)in->r->limits.header_bytes);
    in->taken += n;
    if (n > WINDOW) {
        tnf_cur c;
        TNF_TRY(tnf_read_range(in->r, "text", in->pos, n, in->r->limits.header_bytes, &c, e));
        *out = c.p;
    } else {
        TNF_TRY(fill_window(in, (size_t)n, e));
        *out = in->window + (in->pos - in->start);
    }
    in->pos += n;
    return TNF_OK;
}

tnf_status tnf_fx_head(fx_in *in, fx_head *h, tnf_error *e)
{
    const uint8_t *p;
    h->at = in->pos;
    if (in->pos == in->size)
        return too_short(in, 1, e);
    TNF_TRY(fill_window(in, 1, e));
    unsigned n = tnf_fx_shape(in->window[in->pos - in->start], &h->kind);
    if (n == 0)
        return tnf_fail(e, TNF_EFORMAT, in->pos,
                        "an item begins with the byte 0xc1, which MessagePack does not use");
    TNF_TRY(tnf_fx_bytes(in, n, &p, e));
    tnf_fx_parse(p, h);
    uint64_t left = in->size - in->pos, need = h->n;
    if (h->kind == TNF_MSGPACK_MAP)
        need *= 2; /* each item takes at least one byte */
    if (need > left)
        return too_short(in, need, e);
    return TNF_OK;
}
