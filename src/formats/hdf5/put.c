/* SPDX-License-Identifier: MIT */
/* Serialises types, attributes and strings for the writer. */
#include "formats/hdf5/put.h"

#include <string.h>

#define COLLECTION ((uint64_t)64 << 10) /* size after which a new collection begins */
#define LEAST      4096u                /* libhdf5 refuses smaller collections */
#define OBJECTS    60000u

/* ------------------------------------------------------------------- heaps */

static uint64_t object_size(uint64_t n)
{
    return 16 + (n + 7) / 8 * 8;
}

uint64_t tnf_h5_collection(uint64_t used)
{
    if (used >= LEAST)
        return used;
    return LEAST - used < 16 ? used + 16 : LEAST;
}

bool tnf_h5_next_spot(h5_spot *s, uint64_t n, uint64_t *ended)
{
    uint64_t size = object_size(n);
    bool fresh = s->index == 0 || s->index == OBJECTS || s->used + size > COLLECTION;
    *ended = 0;
    if (fresh) {
        *ended = s->index ? tnf_h5_collection(s->used) : 0;
        s->start += *ended;
        s->used = 16;
        s->index = 0;
    }
    s->used += size;
    s->index++;
    return fresh;
}

void tnf_h5_put_reference(tnf_buf *b, uint64_t n, const h5_spot *s)
{
    tnf_buf_u32(b, (uint32_t)n);
    tnf_buf_u64(b, n ? s->start : 0);
    tnf_buf_u32(b, n ? s->index : 0);
}

void tnf_h5_put_string(tnf_buf *b, const char *p, uint64_t n, uint32_t index)
{
    static const uint8_t zeros[8];
    tnf_h5_put_u16(b, index);
    tnf_h5_put_u16(b, 0);
    tnf_buf_u32(b, 0);
    tnf_buf_u64(b, n);
    tnf_buf_put(b, p, (size_t)n);
    tnf_buf_put(b, zeros, (size_t)(object_size(n) - 16 - n));
}

void tnf_h5_put_head(tnf_buf *b, uint64_t size)
{
    tnf_buf_put(b, "GCOL\1\0\0\0", 8);
    tnf_buf_u64(b, size);
}

/* The free rest is an object, whose size includes its head. */
void tnf_h5_put_end(tnf_buf *b, uint64_t used)
{
    uint64_t left = tnf_h5_collection(used) - used;
    if (left == 0)
        return;
    tnf_buf_u64(b, 0);
    tnf_buf_u64(b, left);
    for (left -= 16; left > 0; left--)
        tnf_buf_u8(b, 0);
}

/* ------------------------------------------------------------------- types */

void tnf_h5_put_u16(tnf_buf *b, unsigned v)
{
    tnf_buf_u8(b, (uint8_t)v);
    tnf_buf_u8(b, (uint8_t)(v >> 8));
}

static void put_type_head(tnf_buf *b, unsigned head, unsigned bits, uint64_t size)
{
    tnf_buf_u8(b, (uint8_t)head);
    tnf_h5_put_u16(b, bits);
    tnf_buf_u8(b, 0);
    tnf_buf_u32(b, (uint32_t)size);
}

static void put_integer(tnf_buf *b, const tnf_type *t, bool is_signed)
{
    put_type_head(b, 0x10, is_signed ? 8 : 0, t->bits / 8);
    tnf_h5_put_u16(b, 0);
    tnf_h5_put_u16(b, t->bits);
}

static void put_float(tnf_buf *b, const char *id)
{
    static const struct {
        const char *id;
        uint8_t size, at, exponent, mantissa;
        uint32_t bias;
    } kinds[] = { { "f32", 4, 23, 8, 23, 127 },  { "f64", 8, 52, 11, 52, 1023 },
                  { "f16", 2, 10, 5, 10, 15 },   { "bf16", 2, 7, 8, 7, 127 },
                  { "f8_e5m2", 1, 2, 5, 2, 15 }, { "f8_e4m3fn", 1, 3, 4, 3, 7 } };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].id, id) != 0)
            continue;
        put_type_head(b, 0x11, 0x20u | (8u * kinds[i].size - 1u) << 8, kinds[i].size);
        tnf_h5_put_u16(b, 0);
        tnf_h5_put_u16(b, 8u * kinds[i].size);
        tnf_buf_u8(b, kinds[i].at);
        tnf_buf_u8(b, kinds[i].exponent);
        tnf_buf_u8(b, 0);
        tnf_buf_u8(b, kinds[i].mantissa);
        tnf_buf_u32(b, kinds[i].bias);
    }
}

void tnf_h5_put_type(tnf_buf *b, const tnf_type *t)
{
    const char *part = t->bits == 64 ? "f32" : "f64";
    if (t->number == TNF_NUMBER_BOOL) {
        put_type_head(b, 0x18, 2, 1);
        put_integer(b, tnf_type_of(TNF_I8), true);
        tnf_buf_put(b, "FALSE\0\0\0TRUE\0\0\0\0\0\1", 18);
    } else if (t->number == TNF_NUMBER_COMPLEX) {
        put_type_head(b, 0x36, 2, t->bits / 8);
        tnf_buf_put(b, "r\0\0", 3);
        put_float(b, part);
        tnf_buf_put(b, "i\0", 2);
        tnf_buf_u8(b, (uint8_t)(t->bits / 16));
        put_float(b, part);
    } else if (t->number == TNF_NUMBER_FLOAT) {
        put_float(b, t->id);
    } else {
        put_integer(b, t, t->number == TNF_NUMBER_INT);
    }
}

void tnf_h5_put_text_type(tnf_buf *b)
{
    put_type_head(b, 0x19, 0x101, 16);
    put_integer(b, tnf_type_of(TNF_U8), false);
}

void tnf_h5_put_opaque(tnf_buf *b, uint64_t n)
{
    put_type_head(b, 0x15, 0, n);
}

bool tnf_h5_is_enum(const tnf_type *t, const tnf_value *names)
{
    uint64_t bytes = 32;
    if (!names || names->kind != TNF_MAP || names->n == 0 || names->n > 65535 ||
        (t->number != TNF_NUMBER_INT && t->number != TNF_NUMBER_UINT) || t->bits < 8 ||
        t->bits > 64)
        return false;
    for (size_t i = 0; i < names->n; i++) {
        const tnf_member *m = &names->as.members[i];
        uint64_t v = m->value.as.u, sign = (uint64_t)1 << (t->bits - 1);
        bool number = m->value.kind == TNF_INT || m->value.kind == TNF_UINT;
        uint64_t most = t->number == TNF_NUMBER_INT ? sign - 1 : sign - 1 + sign;
        bool fits = number && (v <= most || (t->number == TNF_NUMBER_INT &&
                                             m->value.kind == TNF_INT && ~v <= sign - 1));
        if (!fits || m->key.n == 0 || memchr(m->key.p, 0, m->key.n))
            return false;
        bytes += m->key.n + 1 + t->bits / 8;
    }
    return bytes < H5_BODY;
}

void tnf_h5_put_enum(tnf_buf *b, const tnf_type *t, const tnf_value *names)
{
    put_type_head(b, 0x38, (unsigned)names->n, t->bits / 8);
    put_integer(b, t, t->number == TNF_NUMBER_INT);
    for (size_t i = 0; i < names->n; i++) {
        tnf_buf_put(b, names->as.members[i].key.p, names->as.members[i].key.n);
        tnf_buf_u8(b, 0);
    }
    for (size_t i = 0; i < names->n; i++) {
        uint8_t number[8];
        tnf_put_le64(number, names->as.members[i].value.as.u);
        tnf_buf_put(b, number, t->bits / 8);
    }
}

void tnf_h5_put_space(tnf_buf *b, unsigned kind, const uint64_t *dims, uint32_t rank)
{
    tnf_buf_u8(b, 2);
    tnf_buf_u8(b, (uint8_t)rank);
    tnf_buf_u8(b, 0);
    tnf_buf_u8(b, (uint8_t)kind);
    for (uint32_t i = 0; i < rank; i++)
        tnf_buf_u64(b, dims[i]);
}

/* -------------------------------------------------------------- attributes */

/* The shape of an attribute: leaves of one kind in a rectangular array. */
typedef struct shape {
    uint64_t dims[H5_RANK];
    uint32_t rank;
    const tnf_value *leaf; /* the first; NULL: there are none */
    uint64_t leaves;
    bool wide; /* integers of several kinds, stored as i64 */
    const char *why;
} shape;

static bool is_integer(const tnf_value *v)
{
    return v->kind == TNF_INT || v->kind == TNF_UINT;
}

static void judge_leaf(shape *s, const tnf_value *v)
{
    bool unsupported = v->kind == TNF_NULL || v->kind == TNF_MAP;
    s->leaves++;
    if (unsupported)
        s->why = "HDF5 has no attributes with maps, or with nulls inside arrays";
    if (!s->leaf) {
        s->leaf = v;
        return;
    }
    const tnf_value *a = s->leaf;
    bool same = a->kind == v->kind &&
                (a->dtype == v->dtype || !(is_integer(a) || a->kind == TNF_FLOAT)) &&
                (a->kind != TNF_BYTES || a->n == v->n);
    if (same)
        return;
    s->wide = is_integer(a) && is_integer(v);
    if (!s->wide || (a->kind == TNF_UINT && a->as.u > INT64_MAX) ||
        (v->kind == TNF_UINT && v->as.u > INT64_MAX))
        s->why = "the items of an array have different kinds";
}

static void judge_value(shape *s, const tnf_value *v, uint32_t depth)
{
    if (v->kind != TNF_ARRAY) {
        if (depth != s->rank)
            s->why = "an array is not rectangular";
        else
            judge_leaf(s, v);
        return;
    }
    if (depth == s->rank && !s->leaf && s->leaves == 0 && depth < H5_RANK)
        s->dims[s->rank++] = v->n;
    if (depth >= s->rank || s->dims[depth] != v->n) {
        s->why = "an array is not rectangular, or has too many dimensions";
        return;
    }
    for (size_t i = 0; i < v->n && !s->why; i++)
        judge_value(s, &v->as.items[i], depth + 1);
}

static shape shape_of(const tnf_value *v)
{
    shape s = { 0 };
    if (v->kind != TNF_NULL)
        judge_value(&s, v, 0);
    return s;
}

static uint64_t leaf_bytes(const shape *s, const tnf_value *v)
{
    const tnf_value *a = s->leaf;
    if (!a)
        return 0;
    switch (a->kind) {
    case TNF_STRING:
    case TNF_JSON:
        return 16;
    case TNF_BYTES:
        return a->n;
    case TNF_BOOL:
        return 1;
    default:
        (void)v;
        return s->wide ? 8 : tnf_dtype_size((tnf_dtype)a->dtype);
    }
}

const char *tnf_h5_attr_why(tnf_str key, const tnf_value *v)
{
    shape s = shape_of(v);
    if (s.why)
        return s.why;
    if (key.n == 0 || key.n > 60000 || memchr(key.p, 0, key.n))
        return "the name of an attribute is empty, too long, or contains a NUL";
    if (s.leaf && s.leaf->kind == TNF_BYTES && s.leaf->n == 0)
        return "HDF5 has no byte strings of length 0";
    if (s.leaf && s.leaf->kind == TNF_FLOAT && s.leaf->dtype != TNF_F32 && s.leaf->dtype != TNF_F64)
        return "an attribute has a type that HDF5 cannot store";
    if (s.leaves > H5_BODY || s.leaves * leaf_bytes(&s, v) + key.n + 600 > H5_BODY)
        return "an attribute is larger than the 64 KiB that HDF5 allows";
    return NULL;
}

const char *tnf_h5_attrs_why(const tnf_value *map)
{
    const char *why = NULL;
    if (!map)
        return NULL;
    if (map->kind != TNF_MAP)
        return "the value is not a map of attributes";
    for (size_t i = 0; i < map->n && !why; i++)
        why = tnf_h5_attr_why(map->as.members[i].key, &map->as.members[i].value);
    return why;
}

static void put_leaf_type(tnf_buf *b, const shape *s, const tnf_value *v)
{
    const tnf_value *a = s->leaf;
    if (!a)
        tnf_h5_put_type(b, tnf_type_of(v->kind == TNF_ARRAY && v->dtype < TNF_DTYPE_COUNT
                                           ? (tnf_dtype)v->dtype
                                           : TNF_F32));
    else if (a->kind == TNF_STRING || a->kind == TNF_JSON)
        tnf_h5_put_text_type(b);
    else if (a->kind == TNF_BYTES)
        tnf_h5_put_opaque(b, a->n);
    else if (a->kind == TNF_BOOL)
        tnf_h5_put_type(b, tnf_type_named("bool"));
    else
        tnf_h5_put_type(b, tnf_type_of(s->wide ? TNF_I64 : (tnf_dtype)a->dtype));
}

static tnf_status add_string(tnf_buf *b, h5_strings *strings, h5_spot *spot, tnf_str s,
                             tnf_arena *arena, tnf_error *e)
{
    uint64_t ended;
    if (s.n) {
        tnf_str *items = tnf_arena_grow(arena, strings->items, strings->n, &strings->capacity,
                                        sizeof *items, 16);
        if (!items)
            return tnf_arena_fail(arena, "strings", e);
        strings->items = items;
        strings->items[strings->n++] = s;
        (void)tnf_h5_next_spot(spot, s.n, &ended);
    }
    tnf_h5_put_reference(b, s.n, spot);
    return TNF_OK;
}

static tnf_status put_leaves(tnf_buf *b, const shape *s, const tnf_value *v, h5_strings *strings,
                             h5_spot *spot, tnf_arena *arena, tnf_error *e)
{
    uint8_t number[8];
    uint32_t bits;
    uint64_t wide;
    switch (v->kind) {
    case TNF_ARRAY:
        for (size_t i = 0; i < v->n; i++)
            TNF_TRY(put_leaves(b, s, &v->as.items[i], strings, spot, arena, e));
        return TNF_OK;
    case TNF_STRING:
    case TNF_JSON:
        return add_string(b, strings, spot, (tnf_str) { v->as.s, v->n }, arena, e);
    case TNF_BYTES:
        tnf_buf_put(b, v->as.s, v->n);
        return TNF_OK;
    case TNF_BOOL:
        tnf_buf_u8(b, v->as.b);
        return TNF_OK;
    case TNF_FLOAT:
        if (v->dtype == TNF_F32) {
            memcpy(&bits, &v->as.f32, 4);
            tnf_buf_u32(b, bits);
            return TNF_OK;
        }
        memcpy(&wide, &v->as.f64, 8);
        tnf_buf_u64(b, wide);
        return TNF_OK;
    default:
        tnf_put_le64(number, v->as.u);
        tnf_buf_put(b, number, (size_t)leaf_bytes(s, v));
        return TNF_OK;
    }
}

static void set_u16(tnf_buf *b, size_t at, size_t v)
{
    if (b->status == TNF_OK && at + 2 <= b->n) {
        b->p[at] = (uint8_t)v;
        b->p[at + 1] = (uint8_t)(v >> 8);
    }
}

tnf_status tnf_h5_put_attr(tnf_buf *b, tnf_str key, const tnf_value *v, h5_strings *strings,
                           h5_spot *spot, tnf_error *e)
{
    shape s = shape_of(v);
    size_t head = b->n;
    tnf_buf_u8(b, 3);
    tnf_buf_u8(b, 0);
    tnf_h5_put_u16(b, (unsigned)key.n + 1);
    tnf_buf_u32(b, 0); /* lengths of type and space, filled in below */
    tnf_buf_u8(b, 1);
    tnf_buf_put(b, key.p, key.n);
    tnf_buf_u8(b, 0);
    size_t type = b->n;
    put_leaf_type(b, &s, v);
    size_t space = b->n;
    unsigned kind = v->kind == TNF_NULL ? 2 : s.rank ? 1 : 0;
    tnf_h5_put_space(b, kind, s.dims, s.rank);
    set_u16(b, head + 4, space - type);
    set_u16(b, head + 6, b->n - space);
    return put_leaves(b, &s, v, strings, spot, strings->arena, e);
}

/* ------------------------------------------------------------------- order */

int tnf_h5_compare_paths(tnf_str a, tnf_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    for (size_t i = 0; i < n; i++) {
        int x = a.p[i] == '/' ? 0 : (uint8_t)a.p[i] + 1,
            y = b.p[i] == '/' ? 0 : (uint8_t)b.p[i] + 1;
        if (x != y)
            return x < y ? -1 : 1;
    }
    return a.n < b.n ? -1 : a.n > b.n;
}

int tnf_h5_compare(const tnf_object *a, const tnf_object *b)
{
    return tnf_h5_compare_paths(a->name, b->name);
}
