/* SPDX-License-Identifier: MIT */
/* Names of element types: numpy's in version 2 ("<f4", "|b1", "<M8[ns]"), words in version 3
 * ("float32"), ml_dtypes' in both ("bfloat16"). Also makes the bytes of fill values.
 *
 * Types of less than a byte take one byte per element in a chunk. */
#include "formats/zarr/zr.h"

#include "base/base64.h"
#include "base/hex.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENT ((uint64_t)1 << 20)

typedef struct word {
    const char *name, *type;
} word;

static const word words[] = {
    { "bool", "bool" },
    { "int8", "i8" },
    { "int16", "i16" },
    { "int32", "i32" },
    { "int64", "i64" },
    { "uint8", "u8" },
    { "uint16", "u16" },
    { "uint32", "u32" },
    { "uint64", "u64" },
    { "float16", "f16" },
    { "float32", "f32" },
    { "float64", "f64" },
    { "complex64", "c64" },
    { "complex128", "c128" },
    { "bfloat16", "bf16" },
    { "float8_e4m3fn", "f8_e4m3fn" },
    { "float8_e5m2", "f8_e5m2" },
    { "float8_e4m3fnuz", "f8_e4m3fnuz" },
    { "float8_e5m2fnuz", "f8_e5m2fnuz" },
    { "float8_e8m0fnu", "f8_e8m0" },
    { "float4_e2m1fn", "f4_e2m1" },
    { "int4", "i4" },
    { "uint4", "u4" },
    { "int2", "i2" },
    { "uint2", "u2" },
};

static void set_type(zr_type *t, const char *id)
{
    t->type = tnf_type_named(id);
    t->packed = t->type->bits < 8 ? t->type->bits : 0;
    t->width = t->packed ? 1 : t->type->bits / 8;
    t->swap = (uint8_t)(id[0] == 'c' ? t->width / 2 : t->width);
}

static bool find_word(zr_type *t, tnf_str name)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tnf_str_is(name, words[i].name)) {
            set_type(t, words[i].type);
            return true;
        }
    return false;
}

/* Elements that are bytes become an axis of u8. */
static void set_axis(zr_type *t, uint64_t bytes)
{
    set_type(t, "u8");
    t->width = (size_t)bytes;
    t->swap = 1;
    t->axis = bytes;
}

static tnf_status own_name(zr_type *t, tnf_reader *r, tnf_str name, tnf_error *e)
{
    t->own = tnf_arena_str(r->arena, name.p, name.n);
    t->width = 1;
    return t->own ? TNF_OK : tnf_arena_fail(r->arena, "a type", e);
}

/* ---------------------------------------------------------------- version 2 */

/* The number that begins at a position: 0 if there is none, above MAX_ELEMENT if it is larger. */
static uint64_t number_at(tnf_str s, size_t at)
{
    const char *p = s.p + (at < s.n ? at : s.n);
    uint64_t n = tnf_take_digits(&p, s.p + s.n);
    return n <= MAX_ELEMENT ? n : MAX_ELEMENT + 1;
}

/* Kinds whose elements are texts or raw bytes, and their units in bytes. */
typedef struct text_kind {
    char kind;
    uint8_t unit;
    zr_text text;
} text_kind;

static const text_kind *find_text_kind(char kind)
{
    static const text_kind kinds[] = {
        { 'S', 1, ZR_TEXT_BYTES },
        { 'U', 4, ZR_TEXT_UCS4 },
        { 'V', 1, ZR_NO_TEXT },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return &kinds[i];
    return NULL;
}

static void set_text(zr_type *t, const text_kind *k, uint64_t units)
{
    set_axis(t, k->unit * units);
    t->text = k->text;
    t->say = k->kind == 'V';
    t->swap = k->unit;
}

/* "f" and 4 bytes is f32. False: Tenfold has no such type. */
static bool set_number(zr_type *t, char kind, uint64_t bytes)
{
    static const struct {
        char kind;
        uint8_t least, most; /* bytes */
    } kinds[] = { { 'b', 1, 1 }, { 'i', 1, 8 }, { 'u', 1, 8 }, { 'f', 2, 8 }, { 'c', 8, 16 } };
    char id[8] = "bool";
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && kinds[i].kind != kind)
        i++;
    if (i == sizeof kinds / sizeof *kinds || bytes < kinds[i].least || bytes > kinds[i].most ||
        (bytes & (bytes - 1)) != 0)
        return false;
    if (kind != 'b')
        snprintf(id, sizeof id, "%c%u", kind, (unsigned)(8 * bytes));
    if (!tnf_type_named(id))
        return false;
    set_type(t, id);
    return true;
}

/* Parses numpy's form: byte order, kind, bytes. */
static tnf_status parse_typestr(zr_type *t, tnf_reader *r, const zr_doc *d, tnf_str s, tnf_error *e)
{
    if (s.n < 2 || !strchr("<>|=", s.p[0]))
        return own_name(t, r, s, e);
    char kind = s.p[1];
    uint64_t n = number_at(s, 2);
    const text_kind *text = find_text_kind(kind);
    t->big = s.p[0] == '>';
    if (kind == 'O') {
        t->object = true;
        return TNF_OK;
    }
    if (kind == 'M' || kind == 'm') {
        set_type(t, "i64");
        t->say = true;
        return n == 8 ? TNF_OK : tnf_zr_wrong(d, e, "has dates that do not have 8 bytes");
    }
    if (n == 0 || n > MAX_ELEMENT / (text ? text->unit : 1))
        return tnf_zr_wrong(d, e, "has elements with no bytes, or too many");
    if (text)
        set_text(t, text, n);
    else if (!set_number(t, kind, n))
        return own_name(t, r, s, e);
    return TNF_OK;
}

/* [["a", "<f4"], ["b", "<i2", [2]]]: its size in bytes. */
static bool structure_bytes(uint64_t *bytes, const tnf_value *v, unsigned depth)
{
    if (v->kind != TNF_ARRAY || depth > 8)
        return false;
    for (size_t i = 0; i < v->n; i++) {
        const tnf_value *f = &v->as.items[i];
        uint64_t n = 0, many = 1;
        if (f->kind != TNF_ARRAY || f->n < 2 || f->n > 3)
            return false;
        const tnf_value *type = &f->as.items[1];
        if (type->kind == TNF_STRING && type->n >= 3)
            n = number_at((tnf_str) { type->as.s, type->n }, 2) * (type->as.s[1] == 'U' ? 4 : 1);
        else if (type->kind == TNF_ARRAY && !structure_bytes(&n, type, depth + 1))
            return false;
        const tnf_value *dims = f->n > 2 ? &f->as.items[2] : NULL;
        for (size_t k = 0; dims && dims->kind == TNF_ARRAY && k < dims->n; k++)
            if (dims->as.items[k].kind != TNF_INT ||
                !tnf_ckd_mul(&many, many, dims->as.items[k].as.u))
                return false;
        if (n == 0 || !tnf_ckd_mul(&n, n, many) || !tnf_ckd_add(bytes, *bytes, n) ||
            *bytes > MAX_ELEMENT)
            return false;
    }
    return *bytes > 0;
}

tnf_status tnf_zr_type_v2(zr_type *out, tnf_reader *r, const zr_doc *d, tnf_error *e)
{
    tnf_str text = tnf_zr_get(d, "dtype");
    tnf_value v;
    uint64_t bytes = 0;
    *out = (zr_type) { 0 };
    if (!text.p)
        return tnf_zr_wrong(d, e, "has no dtype");
    TNF_TRY(tnf_zr_tree(&v, r, d, text, e));
    if (v.kind == TNF_ARRAY) {
        if (!structure_bytes(&bytes, &v, 0))
            return tnf_zr_wrong(d, e, "has a dtype of unknown size");
        set_axis(out, bytes);
        out->say = true;
        return TNF_OK;
    }
    if (v.kind != TNF_STRING)
        return tnf_zr_wrong(d, e, "has a dtype that is not text");
    tnf_str name = { v.as.s, v.n };
    return find_word(out, name) ? TNF_OK : parse_typestr(out, r, d, name, e);
}

/* ---------------------------------------------------------------- version 3 */

static const tnf_value *config_of(const tnf_value *v, const char *key)
{
    const tnf_value *c = tnf_value_get(v, "configuration");
    return c ? tnf_value_get(c, key) : NULL;
}

static bool is_count(const tnf_value *v, uint64_t *out)
{
    if (!v || (v->kind != TNF_INT && v->kind != TNF_UINT) || v->as.u > MAX_ELEMENT || v->as.u == 0)
        return false;
    *out = v->as.u;
    return true;
}

/* The size of the fields of a structure; 0: unknown. */
static uint64_t fields_bytes(const tnf_value *fields, tnf_reader *r, unsigned depth);

static uint64_t field_bytes(const tnf_value *type, tnf_reader *r, unsigned depth)
{
    zr_type t = { 0 };
    uint64_t n;
    if (type->kind == TNF_STRING)
        return find_word(&t, (tnf_str) { type->as.s, type->n }) ? t.width : 0;
    if (is_count(config_of(type, "length_bytes"), &n))
        return n;
    const tnf_value *name = tnf_value_get(type, "name"), *fields = config_of(type, "fields");
    if (fields)
        return fields_bytes(fields, r, depth + 1);
    return tnf_str_begins(tnf_value_chars(name), "numpy.") ? 8 : 0;
}

static uint64_t fields_bytes(const tnf_value *fields, tnf_reader *r, unsigned depth)
{
    uint64_t sum = 0;
    if (depth > 8 || fields->kind != TNF_ARRAY)
        return 0;
    for (size_t i = 0; i < fields->n; i++) {
        const tnf_value *f = &fields->as.items[i];
        if (f->kind != TNF_ARRAY || f->n != 2)
            return 0;
        uint64_t n = field_bytes(&f->as.items[1], r, depth);
        if (n == 0 || sum + n > MAX_ELEMENT)
            return 0;
        sum += n;
    }
    return sum;
}

static tnf_status type_object(zr_type *t, tnf_reader *r, const zr_doc *d, const tnf_value *v,
                              tnf_error *e)
{
    const tnf_value *name = tnf_value_get(v, "name"), *fields = config_of(v, "fields");
    uint64_t n = 0;
    if (!name || name->kind != TNF_STRING)
        return tnf_zr_wrong(d, e, "has a data_type without a name");
    tnf_str s = { name->as.s, name->n };
    bool sized = is_count(config_of(v, "length_bytes"), &n);
    if (tnf_str_is(s, "numpy.datetime64") || tnf_str_is(s, "numpy.timedelta64")) {
        set_type(t, "i64");
        t->say = true;
    } else if (sized &&
               (tnf_str_is(s, "fixed_length_utf32") || tnf_str_is(s, "null_terminated_bytes"))) {
        set_axis(t, n);
        t->text = s.p[0] == 'f' ? ZR_TEXT_UCS4 : ZR_TEXT_BYTES;
        t->swap = s.p[0] == 'f' ? 4 : 1;
        if (s.p[0] == 'f' && n % 4)
            return tnf_zr_wrong(d, e, "has texts whose bytes are not a multiple of 4");
    } else if (sized && tnf_str_is(s, "raw_bytes")) {
        set_axis(t, n);
        t->say = true;
    } else if ((tnf_str_is(s, "structured") || tnf_str_is(s, "struct")) && fields &&
               (n = fields_bytes(fields, r, 0)) > 0) {
        set_axis(t, n);
        t->say = true;
    } else if (!find_word(t, s)) {
        return own_name(t, r, s, e);
    }
    return TNF_OK;
}

tnf_status tnf_zr_type_v3(zr_type *out, tnf_reader *r, const zr_doc *d, tnf_error *e)
{
    tnf_str text = tnf_zr_get(d, "data_type");
    tnf_value v;
    *out = (zr_type) { 0 };
    if (!text.p)
        return tnf_zr_wrong(d, e, "has no data_type");
    TNF_TRY(tnf_zr_tree(&v, r, d, text, e));
    if (v.kind == TNF_MAP)
        return type_object(out, r, d, &v, e);
    if (v.kind != TNF_STRING)
        return tnf_zr_wrong(d, e, "has a data_type that is not a name");
    tnf_str name = { v.as.s, v.n };
    if (tnf_str_is(name, "string")) {
        set_axis(out, 1);
        out->text = ZR_TEXT_VLEN;
        return TNF_OK;
    }
    if (name.n > 1 && name.p[0] == 'r' && number_at(name, 1) >= 8 && number_at(name, 1) % 8 == 0) {
        set_axis(out, number_at(name, 1) / 8);
        return TNF_OK;
    }
    return find_word(out, name) ? TNF_OK : own_name(out, r, name, e);
}

/* ------------------------------------------------------------- fill values */

/* The code of 8 or 16 bits with the nearest value. */
static unsigned nearest_code(const tnf_type *type, double x)
{
    unsigned best = 0;
    double least = (double)INFINITY;
    for (unsigned code = 0; code < 1u << type->bits; code++) {
        uint8_t bytes[2] = { (uint8_t)code, (uint8_t)(code >> 8) };
        double value[1] = { 0 };
        (void)tnf_type_decode(value, type, bytes, 0, 1);
        if (isnan(x) ? isnan(value[0]) != 0 : value[0] == x)
            return code;
        double distance = fabs(value[0] - x);
        if (distance < least) {
            least = distance;
            best = code;
        }
    }
    return best;
}

static void put_float(uint8_t *to, const tnf_type *type, double x)
{
    uint64_t bits;
    float f = (float)x;
    uint32_t single;
    memcpy(&bits, &x, 8);
    memcpy(&single, &f, 4);
    const char *id = type->id;
    if (strcmp(id, "f64") == 0 || strcmp(id, "c128") == 0) {
        tnf_put_le64(to, bits);
    } else if (strcmp(id, "f32") == 0 || strcmp(id, "c64") == 0) {
        tnf_put_le32(to, single);
    } else {
        unsigned code = nearest_code(type, x);
        to[0] = (uint8_t)code;
        if (type->bits == 16)
            to[1] = (uint8_t)(code >> 8);
    }
}

static bool special_float(double *out, const tnf_value *v)
{
    tnf_str s = { v->as.s, v->n };
    if (v->kind != TNF_STRING)
        return false;
    if (tnf_str_is(s, "NaN"))
        *out = (double)NAN;
    else if (tnf_str_is(s, "Infinity"))
        *out = (double)INFINITY;
    else if (tnf_str_is(s, "-Infinity"))
        *out = -(double)INFINITY;
    else
        return false;
    return true;
}

/* "0x7fc00001": the bits themselves. */
static bool hex_bits(uint8_t *to, size_t width, const tnf_value *v)
{
    if (v->kind != TNF_STRING || v->n != 2 + 2 * width || memcmp(v->as.s, "0x", 2) != 0 ||
        !tnf_hex_take(to, v->as.s + 2, width))
        return false;
    tnf_reverse(to, width, width);
    return true;
}

static bool fill_number(uint8_t *to, const tnf_type *type, size_t width, const tnf_value *v)
{
    double x = 0;
    bool whole = v->kind == TNF_INT || v->kind == TNF_UINT, real = v->kind == TNF_FLOAT;
    if (v->kind == TNF_BOOL) {
        to[0] = v->as.b;
        return true;
    }
    if (hex_bits(to, width, v))
        return true;
    if (special_float(&x, v)) {
        bool real_type = strchr("fc", type->id[0]) || strcmp(type->id, "bf16") == 0;
        if (real_type)
            put_float(to, type, x);
        return real_type;
    }
    if (!whole && !real)
        return false;
    x = real ? v->as.f64 : v->kind == TNF_INT ? (double)v->as.i : (double)v->as.u;
    if ((type->id[0] == 'f' || type->id[0] == 'c' || strcmp(type->id, "bf16") == 0)) {
        put_float(to, type, x);
        return true;
    }
    if (real && (x != floor(x) || fabs(x) >= 9007199254740992.0))
        return false;
    uint64_t n = real ? (uint64_t)(int64_t)x : v->as.u;
    for (size_t i = 0; i < width && i < 8; i++)
        to[i] = (uint8_t)(n >> 8 * i);
    return true;
}

/* Bytes: an array of numbers, or base64. */
static bool fill_bytes(uint8_t *to, size_t width, const tnf_value *v)
{
    if (v->kind == TNF_ARRAY) {
        for (size_t i = 0; i < v->n && i < width; i++)
            to[i] = (uint8_t)v->as.items[i].as.u;
        return v->n <= width;
    }
    if (v->kind != TNF_STRING)
        return v->kind == TNF_INT && v->as.u == 0;
    uint32_t bits = 0;
    size_t have = 0, made = 0;
    for (size_t i = 0; i < v->n && v->as.s[i] != '='; i++) {
        int digit = tnf_base64_digit(v->as.s[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have >= 8 && made < width) {
            have -= 8;
            to[made++] = (uint8_t)(bits >> have);
        }
    }
    return true;
}

static bool fill_complex(uint8_t *to, const zr_type *t, const tnf_value *v)
{
    size_t half = t->width / 2;
    if (v->kind != TNF_ARRAY || v->n != 2)
        return fill_number(to, t->type, half, v);
    return fill_number(to, t->type, half, &v->as.items[0]) &&
           fill_number(to + half, t->type, half, &v->as.items[1]);
}

tnf_status tnf_zr_fill(zr_array *a, tnf_reader *r, const zr_doc *d, const zr_type *t, tnf_error *e)
{
    tnf_str text = tnf_zr_get(d, "fill_value");
    uint8_t *bytes = t->width <= sizeof a->fill ? a->fill : tnf_arena_alloc(r->arena, t->width);
    tnf_value v;
    if (!bytes)
        return tnf_arena_fail(r->arena, "a fill value", e);
    a->fill_element = bytes;
    if (!text.p || tnf_str_is(text, "null") || !t->type)
        return TNF_OK;
    TNF_TRY(tnf_zr_tree(&v, r, d, text, e));
    if (t->text == ZR_TEXT_UCS4 || t->text == ZR_TEXT_VLEN) {
        if (v.kind != TNF_STRING)
            return TNF_OK; /* 0 means an empty text */
        a->fill_text = (tnf_str) { tnf_arena_str(r->arena, v.as.s, v.n), v.n };
        return a->fill_text.p ? TNF_OK : tnf_arena_fail(r->arena, "a fill value", e);
    }
    bool ok = t->text || t->axis      ? fill_bytes(bytes, t->width, &v)
              : t->type->id[0] == 'c' ? fill_complex(bytes, t, &v)
                                      : fill_number(bytes, t->type, t->width, &v);
    return ok ? TNF_OK : tnf_zr_wrong(d, e, "has a fill_value that does not fit its type");
}

void tnf_zr_type_name(char *out, size_t room, const tnf_type *type, bool v3)
{
    const char *id = type->id;
    unsigned bytes = type->bits / 8;
    if (!v3 && strcmp(id, "bool") == 0)
        snprintf(out, room, "|b1");
    else if (!v3 &&
             (id[0] == 'i' || id[0] == 'u' || id[0] == 'c' || (id[0] == 'f' && !strchr(id, '_'))) &&
             bytes)
        snprintf(out, room, "%c%c%u", bytes > 1 ? '<' : '|', id[0], bytes);
    else
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strcmp(words[i].type, id) == 0)
                snprintf(out, room, "%s", words[i].name);
}
