/* SPDX-License-Identifier: MIT */
/* Parses points from lines of JSON, and converts application data between MessagePack, trees and
 * documents.
 *
 *   {"app":{"id":1},"values":[1,2.5,"NaN"]}     "offset" and "id" are allowed and ignored
 */
#include "base/decimal.h"
#include "ext/points/points.h"
#include "model/value.h"
#include "wire/json.h"
#include "wire/msgpack.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MOST 1100u /* characters; no double has so many digits */
#define TREE_MOST   ((uint64_t)4 << 30)

/* -------------------------------------------------------- application data */

void tnf_points_clear(tnf_points *p, tnf_arena *arena)
{
    tnf_arena_free(arena);
    tnf_arena_init(arena, &p->alloc, TREE_MOST);
}

tnf_status tnf_points_value(const tnf_value **out, tnf_points *p, const tnf_point *point,
                            tnf_error *e)
{
    tnf_msgpack r;
    *out = NULL;
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_need(point, "point", e));
    TNF_TRY(tnf_need_str(point->app, "app", e));
    tnf_points_clear(p, &p->tree);
    if (point->app.n == 0)
        return TNF_OK;
    tnf_value *v = tnf_arena_alloc(&p->tree, sizeof *v);
    if (!v)
        return tnf_arena_fail(&p->tree, "application data", e);
    tnf_msgpack_init(&r, point->app.p, point->app.n, 0, &p->tree, TNF_VS_DEPTH, e);
    if (!tnf_msgpack_value(&r, v))
        return r.status;
    tnf_status status = tnf_msgpack_end(&r);
    *out = status == TNF_OK ? v : NULL;
    return status;
}

static tnf_status pack_document(tnf_points *p, tnf_buf *b, const tnf_value *v, tnf_error *e)
{
    tnf_json j;
    tnf_value tree;
    tnf_arena scratch;
    tnf_arena_init(&scratch, &p->alloc, TREE_MOST);
    tnf_json_init(&j, v->as.s, v->n, 0, &scratch, TNF_VS_DEPTH, e);
    tnf_status status = tnf_json_value(&j, &tree) ? tnf_json_end(&j) : j.status;
    if (status == TNF_OK)
        status = tnf_msgpack_put_value(b, &tree, TNF_VS_DEPTH, e);
    tnf_arena_free(&scratch);
    return status;
}

tnf_status tnf_points_pack_value(tnf_points *p, tnf_buf *b, const tnf_value *v, tnf_error *e)
{
    if (v->kind == TNF_JSON) {
        TNF_TRY(tnf_need_array(v->as.s, v->n, "value", e));
        return pack_document(p, b, v, e);
    }
    size_t from = b->n;
    TNF_TRY(tnf_msgpack_put_value(b, v, 3 * TNF_VS_DEPTH, e));
    /* A tree may be too deep to be read again. */
    return tnf_vs_check_app(b->p + from, b->n - from, 0, e);
}

/* ----------------------------------------------------------------- numbers */

#define F16_BEYOND 65520.0 /* numbers from here on round to infinity */

/* The nearest f16; of two equally near ones, the even one. */
static uint16_t half_of(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    double size = fabs(v);
    int exponent;
    if (isnan(v))
        return 0x7e00;
    if (size >= F16_BEYOND)
        return sign | 0x7c00;
    if (size == 0)
        return sign;
    (void)frexp(size, &exponent);
    int unit = exponent - 11 > -24 ? exponent - 11 : -24; /* the power of two of the last bit */
    double units = ldexp(size, -unit), whole = floor(units), rest = units - whole;
    unsigned n = (unsigned)whole;
    n += rest > 0.5 || (rest == 0.5 && n % 2 == 1);
    return (uint16_t)(sign | (((unsigned)(unit + 24) << 10) + n));
}

static bool put_float(uint8_t *to, const tnf_type *type, double wide, float narrow)
{
    uint64_t bits = 0;
    uint32_t half;
    memcpy(&bits, &wide, sizeof wide);
    memcpy(&half, &narrow, sizeof narrow);
    if (type->bits == 64)
        tnf_put_le64(to, bits);
    else if (type->bits == 16)
        tnf_put_le16(to, half_of(wide));
    else
        tnf_put_le32(to, half);
    return true;
}

static bool float_word(tnf_str s, uint8_t *to, const tnf_type *type)
{
    if (tnf_str_is(s, "NaN"))
        return put_float(to, type, (double)NAN, NAN);
    if (tnf_str_is(s, "Infinity"))
        return put_float(to, type, (double)INFINITY, INFINITY);
    return tnf_str_is(s, "-Infinity") && put_float(to, type, -(double)INFINITY, -INFINITY);
}

static bool float_number(tnf_str text, uint8_t *to, const tnf_type *type)
{
    char plain[NUMBER_MOST + TNF_NUMBER_MORE];
    if (text.n > NUMBER_MOST || !tnf_number_plain(plain, text.p, text.n))
        return false;
    double wide = strtod(plain, NULL);
    float narrow = strtof(plain, NULL);
    bool beyond = type->bits == 16 ? fabs(wide) >= F16_BEYOND
                                   : isinf(type->bits == 64 ? wide : (double)narrow);
    return !beyond && put_float(to, type, wide, narrow);
}

/* Parses digits with an optional sign. */
static bool whole_number(tnf_str text, uint8_t *to, const tnf_type *type)
{
    char plain[32];
    char *end;
    bool negative = text.n > 0 && text.p[0] == '-', is_signed = type->number == TNF_NUMBER_INT;
    if (text.n == 0 || text.n >= sizeof plain)
        return false;
    memcpy(plain, text.p, text.n);
    plain[text.n] = 0;
    errno = 0;
    uint64_t u = strtoull(plain + negative, &end, 10);
    uint64_t most = is_signed ? ((uint64_t)1 << (type->bits - 1)) - (negative ? 0 : 1)
                              : UINT64_MAX >> (64 - type->bits);
    if (errno || *end || u > most || (negative && !is_signed && u != 0))
        return false;
    u = negative ? 0 - u : u;
    for (uint32_t i = 0; i < type->bits / 8; i++)
        to[i] = (uint8_t)(u >> 8 * i);
    return true;
}

static bool put_bit(tnf_str text, uint8_t *vector, uint64_t i)
{
    bool one = tnf_str_is(text, "1") || tnf_str_is(text, "true");
    if (!one && !tnf_str_is(text, "0") && !tnf_str_is(text, "false"))
        return false;
    vector[i / 8] |= (uint8_t)(one << i % 8);
    return true;
}

/* Parses the i-th number of a vector. */
static bool put_number(tnf_json *j, const tnf_type *type, uint8_t *vector, uint64_t i)
{
    tnf_str text = { NULL, 0 };
    uint64_t at = tnf_json_where(j);
    uint8_t *to = vector + i * (type->bits / 8);
    bool word = tnf_json_peek(j) == '"', fits = false;
    if (!(word ? tnf_json_string(j, &text) : tnf_json_skip(j, &text)))
        return false;
    if (type->bits == 1)
        fits = !word && put_bit(text, vector, i);
    else if (type->number == TNF_NUMBER_FLOAT)
        fits = word ? float_word(text, to, type)
                    : text.n && strchr("-0123456789", text.p[0]) && float_number(text, to, type);
    else
        fits = !word && whole_number(text, to, type);
    return fits || tnf_json_fail(j, TNF_EINVAL, at, "coordinate %llu, %s, is not a valid %s",
                                 (unsigned long long)i, TNF_QUOTED(text), type->id);
}

/* ------------------------------------------------------------------- lines */

static bool wrong_count(const tnf_points *p, tnf_json *j, uint64_t at, uint64_t n, bool more)
{
    unsigned long long wanted = p->meta.elements;
    return more ? tnf_json_fail(j, TNF_EINVAL, at,
                                "the point has more coordinates than the %llu of the space", wanted)
                : tnf_json_fail(j, TNF_EINVAL, at,
                                "the point has only %llu of the %llu coordinates of the space",
                                (unsigned long long)n, wanted);
}

static bool take_numbers(tnf_points *p, tnf_json *j, tnf_point *out)
{
    uint64_t n = 0, at = tnf_json_where(j);
    uint8_t *vector = tnf_arena_alloc(&p->batch, (size_t)p->meta.vector_bytes);
    if (!vector) {
        j->status = tnf_arena_fail(&p->batch, "a vector", j->e);
        return false;
    }
    if (!tnf_json_enter(j, '['))
        return false;
    for (; tnf_json_item(j); n++) {
        if (n == p->meta.elements)
            return wrong_count(p, j, at, n, true);
        if (!put_number(j, p->meta.type, vector, n))
            return false;
    }
    out->vector = vector;
    out->vector_n = (size_t)p->meta.vector_bytes;
    return j->status == TNF_OK && (n == p->meta.elements || wrong_count(p, j, at, n, false));
}

/* Appends the next string, or any value, to b. */
static bool put_word(tnf_points *p, tnf_json *j, tnf_buf *b)
{
    tnf_str text = { NULL, 0 };
    tnf_kind kind = p->meta.resolution == TNF_VS_STRING ? TNF_STRING : TNF_JSON;
    if (!(kind == TNF_STRING ? tnf_json_string(j, &text) : tnf_json_skip(j, &text)))
        return false;
    const tnf_value word = { .kind = kind, .n = text.n, .as.s = text.p };
    j->status = tnf_points_put_word(p, b, &word, j->e);
    return j->status == TNF_OK;
}

static bool put_words(tnf_points *p, tnf_json *j, tnf_buf *b)
{
    uint64_t n = 0, at = tnf_json_where(j);
    if (!tnf_json_enter(j, '['))
        return false;
    for (; tnf_json_item(j); n++) {
        if (n == p->meta.elements)
            return wrong_count(p, j, at, n, true);
        if (!put_word(p, j, b))
            return false;
    }
    return j->status == TNF_OK && (n == p->meta.elements || wrong_count(p, j, at, n, false));
}

static bool take_values(tnf_points *p, tnf_json *j, tnf_point *out)
{
    if (p->meta.type)
        return take_numbers(p, j, out);
    tnf_buf b;
    tnf_buf_init(&b, &p->alloc, UINT32_MAX);
    if (put_words(p, j, &b)) {
        out->vector_n = b.n;
        out->vector = tnf_arena_str(&p->batch, b.p, b.n);
        if (!out->vector)
            j->status = tnf_arena_fail(&p->batch, "a vector", j->e);
    }
    tnf_buf_free(&b);
    return j->status == TNF_OK;
}

/* null means that a point has no application data. */
static bool take_app(tnf_points *p, tnf_json *j, tnf_point *out)
{
    tnf_str text = { NULL, 0 };
    tnf_buf b;
    if (!tnf_json_skip(j, &text))
        return false;
    if (tnf_str_is(text, "null"))
        return true;
    tnf_buf_init(&b, &p->alloc, UINT32_MAX);
    tnf_value v = { .kind = TNF_JSON, .n = text.n, .as.s = text.p };
    j->status = tnf_points_pack_value(p, &b, &v, j->e);
    const char *copy = j->status == TNF_OK ? tnf_arena_str(&p->batch, b.p, b.n) : "";
    if (!copy)
        j->status = tnf_arena_fail(&p->batch, "application data", j->e);
    out->app = (tnf_str) { copy, b.n };
    tnf_buf_free(&b);
    return j->status == TNF_OK;
}

/* Takes the value of a key. *app: the key "app" has occurred. */
static bool take_member(tnf_points *p, tnf_json *j, tnf_str key, tnf_point *out, bool *app)
{
    uint64_t at = tnf_json_where(j);
    if (tnf_str_is(key, "offset") || tnf_str_is(key, "id")) /* ignored: the point gets new ones */
        return tnf_json_skip(j, NULL);
    if (!tnf_str_is(key, "values") && !tnf_str_is(key, "app"))
        return tnf_json_fail(j, TNF_EINVAL, at, "unknown key %s; use \"app\" and \"values\"",
                             TNF_QUOTED(key));
    if (tnf_str_is(key, "values") ? out->vector != NULL : *app)
        return tnf_json_fail(j, TNF_EINVAL, at, "the key %s occurs twice", TNF_QUOTED(key));
    if (tnf_str_is(key, "values"))
        return take_values(p, j, out);
    *app = true;
    return take_app(p, j, out);
}

static bool take_point(tnf_points *p, tnf_json *j, tnf_point *out)
{
    tnf_str key;
    bool app = false;
    if (!tnf_json_enter(j, '{'))
        return false;
    while (tnf_json_key(j, &key))
        if (!take_member(p, j, key, out, &app))
            return false;
    if (j->status == TNF_OK && !out->vector)
        return tnf_json_fail(j, TNF_EINVAL, 0, "the point has no \"values\"");
    return j->status == TNF_OK;
}

tnf_status tnf_points_parse(tnf_point *out, tnf_points *p, const char *text, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_need_array(text, n, "text", e));
    tnf_json j;
    *out = (tnf_point) { .app = { "", 0 } };
    if (!p->has_meta || (!p->meta.type && !tnf_points_worded(&p->meta)))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the coordinates of the file have no type that can be added");
    tnf_json_init(&j, text, n, 0, &p->batch, TNF_VS_DEPTH + 2, e);
    if (!take_point(p, &j, out))
        return j.status;
    return tnf_json_end(&j);
}
