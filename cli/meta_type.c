/* SPDX-License-Identifier: MIT */
/* Converts typed text to a value: JSON if it is valid JSON, else text. The type is that of the old
 * value or of its neighbours, if there are any. */
#include "meta.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/value.h>

static const char *type_name(const tnf_value *v)
{
    static const char *const names[] = { "null",     "true or false", "",      "",
                                         "",         "a text",        "bytes", "a JSON document",
                                         "an array", "a map" };
    bool number = v->kind == TNF_INT || v->kind == TNF_UINT || v->kind == TNF_FLOAT;
    return number ? tnf_type_of((tnf_dtype)v->dtype)->id : names[v->kind];
}

static bool tell_misfit(meta_editor *m, const tnf_value *like)
{
    bool number = like->kind == TNF_INT || like->kind == TNF_UINT || like->kind == TNF_FLOAT;
    return meta_fail(m, "the value does not fit; expected %s%s", number ? "type " : "",
                     type_name(like));
}

static bool is_scalar(const tnf_value *v)
{
    return v->kind != TNF_MAP && v->kind != TNF_ARRAY && v->kind != TNF_JSON && v->kind != TNF_NULL;
}

static bool same_kind(const tnf_value *a, const tnf_value *b)
{
    bool number = a->kind == TNF_INT || a->kind == TNF_UINT || a->kind == TNF_FLOAT;
    return a->kind == b->kind && (!number || a->dtype == b->dtype);
}

const tnf_value *meta_like_members(const tnf_value *map)
{
    const tnf_value *first = NULL;
    for (size_t i = 0; i < map->n; i++) {
        const tnf_value *one = map->kind == TNF_MAP ? &map->as.members[i].value : &map->as.items[i];
        if (!is_scalar(one) || (first && !same_kind(first, one)))
            return NULL;
        first = one;
    }
    return first;
}

/* ------------------------------------------------------------------- bytes */

/* The base64 text of {"$bytes":"base64"}, the form that --json prints; or NULL. */
static const tnf_value *bytes_form(const tnf_value *v)
{
    const tnf_value *text = v->kind == TNF_MAP && v->n == 1 ? tnf_value_get(v, "$bytes") : NULL;
    return text && text->kind == TNF_STRING ? text : NULL;
}

static bool take_bytes(meta_editor *m, tnf_value *out, const tnf_value *text)
{
    size_t made = 0;
    char *bytes = meta_take(m, base64_room(text->n));
    if (!bytes)
        return false;
    if (!base64_take(bytes, &made, text->as.s, text->n))
        return meta_fail(m, "\"$bytes\" is not base64");
    *out = (tnf_value) { .kind = TNF_BYTES, .n = made, .as.s = bytes };
    return true;
}

/* ----------------------------------------------------------------- numbers */

static bool fit_integer(meta_editor *m, tnf_value *out, const tnf_value *like, const tnf_value *v)
{
    unsigned bits = tnf_type_of((tnf_dtype)like->dtype)->bits;
    bool fits = v->kind == TNF_INT || v->kind == TNF_UINT;
    bool negative = v->kind == TNF_INT && v->as.i < 0;
    if (negative && like->kind == TNF_UINT &&
        bits == 64) { /* many formats have no unsigned type, so the old value was just positive */
        *out = *v;
        return true;
    }
    if (like->kind == TNF_UINT)
        fits = fits && !negative && (bits == 64 || v->as.u >> bits == 0);
    else if (negative)
        fits = fits && v->as.i >= -(INT64_C(1) << (bits - 2)) * 2;
    else
        fits = fits && v->as.u >> (bits - 1) == 0;
    if (!fits)
        return tell_misfit(m, like);
    *out = (tnf_value) { .kind = like->kind, .dtype = like->dtype, .as.u = v->as.u };
    return true;
}

static bool number_of(const tnf_value *v, double *out)
{
    static const struct {
        const char *name;
        double value;
    } odd[] = { { "NaN", NAN }, { "Infinity", INFINITY }, { "-Infinity", -INFINITY } };
    *out = v->kind == TNF_FLOAT ? v->as.f64
           : v->kind == TNF_INT ? (double)v->as.i
                                : (double)v->as.u;
    for (size_t i = 0; v->kind == TNF_STRING && i < 3; i++)
        if (strlen(odd[i].name) == v->n && !memcmp(odd[i].name, v->as.s, v->n)) {
            *out = odd[i].value;
            return true;
        }
    return v->kind == TNF_FLOAT || v->kind == TNF_INT || v->kind == TNF_UINT;
}

/* `text`, if given, is the typed number. Parsing it directly as f32 rounds once, not twice. */
static bool fit_float(meta_editor *m, tnf_value *out, const tnf_value *like, const tnf_value *v,
                      const char *text)
{
    double number;
    *out = (tnf_value) { .kind = TNF_FLOAT, .dtype = like->dtype };
    if (!number_of(v, &number))
        return tell_misfit(m, like);
    if (like->dtype != TNF_F32) {
        out->as.f64 = number;
        return true;
    }
    out->as.f32 = text && v->kind != TNF_STRING ? strtof(text, NULL) : (float)number;
    return !isinf(out->as.f32) || isinf(number) ? true : tell_misfit(m, like);
}

/* ------------------------------------------------------------------- trees */

static bool fit_value(meta_editor *m, tnf_value *out, const tnf_value *like, const tnf_value *v,
                      const char *text);

const tnf_value *meta_like_items(const tnf_value *array, tnf_value *room)
{
    tnf_kind kind;
    tnf_dtype dtype;
    if (array->n == 1 && array->as.items[0].kind == TNF_ARRAY)
        return &array->as.items[0];
    if (!tnf_value_items(&kind, &dtype, array) || kind == TNF_ARRAY)
        return meta_like_members(array);
    *room = (tnf_value) { .kind = (uint8_t)kind, .dtype = (uint8_t)dtype };
    return room;
}

static bool fit_items(meta_editor *m, tnf_value *out, const tnf_value *like, const tnf_value *v)
{
    tnf_value *items = meta_take(m, v->n * sizeof *items), room;
    if (!items)
        return false;
    const tnf_value *one = like ? meta_like_items(like, &room) : NULL;
    for (size_t i = 0; i < v->n; i++)
        if (!fit_value(m, &items[i], one, &v->as.items[i], NULL))
            return false;
    *out = (tnf_value) { .kind = TNF_ARRAY, .n = v->n, .as.items = items };
    out->dtype = like ? like->dtype : 0; /* the item type, if the file declares it */
    return true;
}

/* -------------------------------------------------- numbers of new attributes */

static bool type_holds(tnf_dtype dtype, const tnf_value *v)
{
    bool negative = v->kind == TNF_INT && v->as.i < 0;
    switch (dtype) {
    case TNF_U32:
        return v->kind != TNF_FLOAT && !negative && v->as.u <= UINT32_MAX;
    case TNF_I32:
        return v->kind != TNF_FLOAT &&
               (negative ? v->as.i >= INT32_MIN : v->as.u <= (uint64_t)INT32_MAX);
    case TNF_U64:
        return v->kind != TNF_FLOAT && !negative;
    case TNF_I64:
        return v->kind != TNF_FLOAT && (negative || v->as.u <= (uint64_t)INT64_MAX);
    default:
        return true;
    }
}

static bool is_number(const tnf_value *v)
{
    return v->kind == TNF_INT || v->kind == TNF_UINT || v->kind == TNF_FLOAT;
}

/* The first of u32, i32, u64, i64, f32 that holds all values. Programs that need exact types mostly
 * expect this one. */
static tnf_value narrowest_type(const tnf_value *v, size_t n)
{
    static const tnf_dtype types[] = { TNF_U32, TNF_I32, TNF_U64, TNF_I64, TNF_F32 };
    size_t t = 0;
    for (size_t i = 0; i < n; i++)
        while (!type_holds(types[t], &v[i])) {
            t++;
            i = 0;
        }
    tnf_kind kind = types[t] == TNF_F32 ? TNF_FLOAT : t % 2 ? TNF_INT : TNF_UINT;
    return (tnf_value) { .kind = (uint8_t)kind, .dtype = (uint8_t)types[t] };
}

/* A number, or an array of numbers, of unknown type. */
static bool fit_narrow(meta_editor *m, tnf_value *out, const tnf_value *v, const char *text)
{
    const tnf_value like = v->kind == TNF_ARRAY ? narrowest_type(v->as.items, v->n)
                                                : narrowest_type(v, 1);
    if (v->kind != TNF_ARRAY)
        return fit_value(m, out, &like, v, text);
    const tnf_value array = tnf_value_mark_items(*v, (tnf_kind)like.kind, (tnf_dtype)like.dtype);
    return fit_items(m, out, &array, v);
}

static bool all_numbers(const tnf_value *v)
{
    if (v->kind != TNF_ARRAY)
        return is_number(v);
    for (size_t i = 0; i < v->n; i++)
        if (!is_number(&v->as.items[i]))
            return false;
    return v->n > 0;
}

static const tnf_value *find_member(const tnf_value *map, tnf_str key)
{
    for (size_t i = 0; i < map->n; i++)
        if (map->as.members[i].key.n == key.n && !memcmp(map->as.members[i].key.p, key.p, key.n))
            return &map->as.members[i].value;
    return meta_like_members(map);
}

static bool fit_members(meta_editor *m, tnf_value *out, const tnf_value *like, const tnf_value *v)
{
    tnf_member *members = meta_take(m, v->n * sizeof *members);
    if (!members)
        return false;
    for (size_t i = 0; i < v->n; i++) {
        const tnf_member *from = &v->as.members[i];
        members[i].key = from->key;
        if (!fit_value(m, &members[i].value, like ? find_member(like, from->key) : NULL,
                       &from->value, NULL))
            return false;
    }
    *out = (tnf_value) { .kind = TNF_MAP, .n = v->n, .as.members = members };
    return true;
}

/* The JSON type; whole numbers are u64, or i64 if they are negative. */
static bool natural_value(meta_editor *m, tnf_value *out, const tnf_value *v, const char *text)
{
    const tnf_value *bytes = bytes_form(v);
    if (bytes)
        return take_bytes(m, out, bytes);
    if (m->narrow && all_numbers(v))
        return fit_narrow(m, out, v, text);
    if (v->kind == TNF_ARRAY)
        return fit_items(m, out, NULL, v);
    if (v->kind == TNF_MAP)
        return fit_members(m, out, NULL, v);
    *out = *v;
    if (v->kind == TNF_INT && v->as.i >= 0)
        *out = (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = v->as.u };
    return true;
}

/* Converts v to the type of `like`. The recursion is bounded by the depth of the parsed text. */
static bool fit_value(meta_editor *m, tnf_value *out, const tnf_value *like, const tnf_value *v,
                      const char *text)
{
    switch (like ? (tnf_kind)like->kind : TNF_NULL) {
    case TNF_NULL:
        return natural_value(m, out, v, text);
    case TNF_INT:
    case TNF_UINT:
        return fit_integer(m, out, like, v);
    case TNF_FLOAT:
        return fit_float(m, out, like, v, text);
    case TNF_BYTES:
        return bytes_form(v) ? take_bytes(m, out, bytes_form(v)) : tell_misfit(m, like);
    case TNF_ARRAY:
        return v->kind == TNF_ARRAY ? fit_items(m, out, like, v) : tell_misfit(m, like);
    case TNF_MAP:
        return v->kind == TNF_MAP ? fit_members(m, out, like, v) : tell_misfit(m, like);
    default:
        *out = *v;
        return v->kind == like->kind ? true : tell_misfit(m, like);
    }
}

bool meta_convert(meta_editor *m, tnf_value *out, const tnf_value *like, const char *text)
{
    tnf_value v;
    tnf_error error;
    size_t n = strlen(text);
    const tnf_value plain = { .kind = TNF_STRING, .n = n, .as.s = text };
    if (m->as_text && tnf_utf8_valid(NULL, text, n)) {
        *out = plain;
        return true;
    }
    like = m->as ? m->as : m->any_type ? NULL : like;
    bool is_json = tnf_builder_parse(&v, m->builder, text, n, &error) == TNF_OK;
    if (!tnf_utf8_valid(NULL, text, n))
        return meta_fail(m, "the value is not UTF-8");
    if (like && like->kind == TNF_STRING) {
        *out = is_json && v.kind == TNF_STRING ? v : plain; /* a text even if it is other JSON */
        return true;
    }
    if (like && like->kind == TNF_JSON) {
        *out = plain;
        out->kind = TNF_JSON;
        return is_json ? true : tell_misfit(m, like);
    }
    if (is_json)
        return fit_value(m, out, like, &v, text);
    *out = plain;
    return !like || like->kind == TNF_NULL ? true : fit_value(m, out, like, &plain, NULL);
}

/* ------------------------------------------------------------------- types */

bool meta_type_named(meta_editor *m, tnf_value *out, const char *name, size_t n)
{
    static const struct {
        const char *name;
        tnf_kind kind;
    } kinds[] = { { "bool", TNF_BOOL }, { "string", TNF_STRING }, { "bytes", TNF_BYTES } };
    const char *array = "array<";
    if (n > strlen(array) && !strncmp(name, array, strlen(array)) && name[n - 1] == '>') {
        tnf_value *item = meta_take(m, sizeof *item);
        if (!item || !meta_type_named(m, item, name + strlen(array), n - strlen(array) - 1))
            return false;
        *out = (tnf_value) { .kind = TNF_ARRAY, .n = item->kind == TNF_ARRAY, .as.items = item };
        *out = tnf_value_mark_items(*out, (tnf_kind)item->kind, (tnf_dtype)item->dtype);
        return true;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == n && !memcmp(kinds[i].name, name, n)) {
            *out = (tnf_value) { .kind = (uint8_t)kinds[i].kind };
            return true;
        }
    for (tnf_dtype d = TNF_F64; d <= TNF_U8; d++) {
        const char *id = tnf_type_of(d)->id;
        if (strlen(id) == n && !memcmp(id, name, n) && d != TNF_F16 && d != TNF_BF16) {
            tnf_kind kind = d <= TNF_F32 ? TNF_FLOAT : d <= TNF_I8 ? TNF_INT : TNF_UINT;
            *out = (tnf_value) { .kind = (uint8_t)kind, .dtype = (uint8_t)d };
            return true;
        }
    }
    return meta_fail(m,
                     "'%.*s' is not a type; use u8 ... u64, i8 ... i64, f32, f64, bool, string, "
                     "bytes, array<u32> ...",
                     (int)n, name);
}

/* The number with its JSON type: an f32 becomes the same f64. */
static bool plain_number(meta_editor *m, tnf_value *out, const tnf_value *v)
{
    *out = *v;
    if (v->kind == TNF_FLOAT && v->dtype == TNF_F32) {
        out->as.f64 = (double)v->as.f32;
        out->dtype = TNF_F64;
    }
    if (v->kind != TNF_ARRAY)
        return true;
    tnf_value *items = meta_take(m, v->n * sizeof *items);
    for (size_t i = 0; items && i < v->n; i++)
        if (!plain_number(m, &items[i], &v->as.items[i]))
            return false;
    out->as.items = items;
    return items != NULL;
}

bool meta_retype(meta_editor *m, tnf_value *out, const tnf_value *v, const char *type)
{
    tnf_value like, plain;
    if (!meta_type_named(m, &like, type, strlen(type)) || !plain_number(m, &plain, v))
        return false;
    bool whole = plain.kind == TNF_FLOAT && plain.as.f64 == floor(plain.as.f64) &&
                 fabs(plain.as.f64) < 9e15 && like.kind != TNF_FLOAT;
    if (whole)
        plain = (tnf_value) { .kind = TNF_INT, .dtype = TNF_I64, .as.i = (int64_t)plain.as.f64 };
    return fit_value(m, out, &like, &plain, NULL);
}
