/* SPDX-License-Identifier: MIT */
/* JSON as trees: plain, and with the exact types of tnf_json_put_typed().
 *
 * Members and elements are gathered on one growing stack. When their container closes, they move to
 * the arena at their exact size. Recursion is limited by the reader's depth limit.
 */
#include "base/error.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/str.h"
#include "model/dtype.h"
#include "wire/json.h"
#include <tenfold/value.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct builder {
    tnf_json *j;
    tnf_buf stack; /* of tnf_member; elements of arrays have an empty key */
    bool typed;
} builder;

static bool read_value(builder *b, tnf_value *out);

static bool no_memory(tnf_json *j, const char *what)
{
    if (j->status == TNF_OK)
        j->status = tnf_arena_fail(j->arena, what, j->e);
    return false;
}

/* --------------------------------------------------------------- numbers */

#define DIGITS 800 /* more than the 767 that can affect the rounding of a double */

/* A decimal number as digits and a power of ten. */
typedef struct decimal {
    char digits[DIGITS + 1]; /* the last one is 1 if nonzero digits were dropped */
    size_t n;
    int64_t exponent;
    bool negative;
} decimal;

static void add_digit(decimal *d, char digit, bool after_point)
{
    if (d->n == 0 && digit == '0') {
        d->exponent -= after_point;
    } else if (d->n < DIGITS) {
        d->digits[d->n++] = digit;
        d->exponent -= after_point;
    } else {
        if (digit != '0')
            d->digits[DIGITS] = '1';
        d->exponent += !after_point;
    }
}

static void parse_decimal(decimal *d, tnf_str text)
{
    size_t i = text.p[0] == '-';
    bool after_point = false;
    *d = (decimal) { .negative = i == 1 };
    for (; i < text.n && (text.p[i] | 0x20) != 'e'; i++) {
        if (text.p[i] == '.')
            after_point = true;
        else
            add_digit(d, text.p[i], after_point);
    }
    if (++i >= text.n)
        return;
    bool minus = text.p[i] == '-';
    int64_t exponent = 0;
    for (i += minus || text.p[i] == '+'; i < text.n; i++)
        if (exponent < INT64_C(1) << 40)
            exponent = exponent * 10 + (text.p[i] - '0');
    d->exponent += minus ? -exponent : exponent;
}

/* strtod() expects the decimal point of the locale, so it gets a text without one. */
static double to_double(tnf_str text)
{
    decimal d;
    char plain[DIGITS + 32];
    parse_decimal(&d, text);
    if (d.n == 0)
        return d.negative ? -0.0 : 0.0;
    bool sticky = d.n == DIGITS && d.digits[DIGITS];
    int64_t exponent = d.exponent - sticky;
    if (exponent > 99999 || exponent < -99999)
        exponent = exponent > 0 ? 99999 : -99999;
    snprintf(plain, sizeof plain, "%s%.*se%d", d.negative ? "-" : "", (int)(d.n + sticky), d.digits,
             (int)exponent);
    return strtod(plain, NULL);
}

/* The integer in a text, if it fits 64 bits; -0 does not count as an integer, because its sign
 * would be lost. */
static bool to_integer(tnf_str text, tnf_value *out)
{
    bool negative = text.p[0] == '-';
    uint64_t u = 0;
    for (size_t i = negative; i < text.n; i++) {
        uint64_t digit = (uint64_t)text.p[i] - '0';
        if (digit > 9 || u > (UINT64_MAX - digit) / 10)
            return false;
        u = u * 10 + digit;
    }
    if (negative && (u == 0 || u > (uint64_t)INT64_MAX + 1))
        return false;
    if (negative || u <= INT64_MAX)
        *out = (tnf_value) { .kind = TNF_INT,
                             .dtype = TNF_I64,
                             .as.i = negative ? -(int64_t)(u - 1) - 1 : (int64_t)u };
    else
        *out = (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = u };
    return true;
}

static bool read_number(tnf_json *j, tnf_value *out)
{
    tnf_str text;
    uint64_t at = tnf_json_where(j);
    if (!tnf_json_skip(j, &text))
        return false;
    if (to_integer(text, out))
        return true;
    *out = (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = to_double(text) };
    return isfinite(out->as.f64) ||
           tnf_json_fail(j, TNF_ELIMIT, at, "the JSON text has a number too large for a double");
}

/* ------------------------------------------------------------ containers */

/* Copies the text to the arena, which must contain all text of the tree, even if it had no
 * escapes. */
static bool keep_text(tnf_json *j, tnf_str *s)
{
    const char *first = (const char *)j->start, *last = (const char *)j->end;
    if (s->p >= first && s->p <= last) {
        s->p = tnf_arena_str(j->arena, s->p, s->n);
        if (!s->p)
            return no_memory(j, "a string");
    }
    return true;
}

static bool text_value(tnf_json *j, tnf_kind kind, tnf_value *out)
{
    tnf_str s;
    if (!tnf_json_string(j, &s) || !keep_text(j, &s))
        return false;
    *out = (tnf_value) { .kind = (uint8_t)kind, .n = s.n, .as.s = s.p };
    return true;
}

static bool push_member(builder *b, const tnf_member *m)
{
    tnf_buf_put(&b->stack, m, sizeof *m);
    if (b->stack.status != TNF_OK && b->j->status == TNF_OK)
        b->j->status = tnf_buf_status(&b->stack, "the JSON tree", b->j->e);
    return b->j->status == TNF_OK;
}

static tnf_member *member_at(const builder *b, size_t mark, size_t i)
{
    return (tnf_member *)(void *)(b->stack.p + mark) + i;
}

static bool read_array(builder *b, tnf_value *out)
{
    size_t mark = b->stack.n;
    if (!tnf_json_enter(b->j, '['))
        return false;
    while (tnf_json_item(b->j)) {
        tnf_member m = { 0 };
        if (!read_value(b, &m.value) || !push_member(b, &m))
            return false;
    }
    if (b->j->status != TNF_OK)
        return false;
    size_t n = (b->stack.n - mark) / sizeof(tnf_member);
    tnf_value *items = tnf_arena_array(b->j->arena, n, sizeof *items);
    if (!items)
        return no_memory(b->j, "an array");
    for (size_t i = 0; i < n; i++)
        items[i] = member_at(b, mark, i)->value;
    b->stack.n = mark;
    *out = (tnf_value) { .kind = TNF_ARRAY, .n = n, .as.items = items };
    return true;
}

/* The keys of one object during reading: a linear list if there are few, a hash table if many. */
typedef struct keys {
    const builder *b;
    size_t mark, n;
    tnf_hash hash;
} keys;

#define FEW 16u

static tnf_str key_at(const void *ctx, uint32_t position)
{
    const keys *k = ctx;
    return member_at(k->b, k->mark, position)->key;
}

static bool is_new_among_few(const keys *k)
{
    tnf_str key = key_at(k, (uint32_t)k->n);
    for (size_t i = 0; i < k->n; i++) {
        tnf_str other = key_at(k, (uint32_t)i);
        if (other.n == key.n && memcmp(other.p, key.p, key.n) == 0)
            return false;
    }
    return true;
}

/* Adds the key on top of the stack, which is at position `at` of the file. */
static bool add_key(keys *k, tnf_json *j, uint64_t at)
{
    uint32_t previous = TNF_HASH_NONE;
    bool room = k->n < TNF_HASH_NONE - 1;
    if (k->n < FEW) {
        if (!is_new_among_few(k))
            previous = 0;
    } else {
        if (k->n == FEW)
            tnf_hash_init(&k->hash, &j->arena->alloc, key_at, k);
        for (uint32_t i = k->n == FEW ? 0 : (uint32_t)k->n; room && i <= k->n; i++)
            room = tnf_hash_add(&k->hash, i, false, &previous);
    }
    if (!room)
        return tnf_json_fail(j, TNF_ENOMEM, TNF_NO_OFFSET,
                             "out of memory for the keys of an object");
    if (previous != TNF_HASH_NONE)
        return tnf_json_fail(j, TNF_EFORMAT, at, "the JSON text has the key %s twice in one object",
                             TNF_QUOTED(key_at(k, (uint32_t)k->n)));
    k->n++;
    return true;
}

static bool read_member(builder *b, keys *k, tnf_str key, uint64_t at)
{
    tnf_value v;
    if (!keep_text(b->j, &key) || !push_member(b, &(tnf_member) { .key = key }) ||
        !add_key(k, b->j, at) || !read_value(b, &v))
        return false;
    member_at(b, k->mark, k->n - 1)->value = v;
    return true;
}

static bool read_members(builder *b, keys *k)
{
    tnf_str key;
    for (uint64_t at; at = tnf_json_next_key_at(b->j), tnf_json_key(b->j, &key);)
        if (!read_member(b, k, key, at))
            return false;
    return b->j->status == TNF_OK;
}

static bool map_from_stack(builder *b, size_t mark, tnf_value *out)
{
    size_t n = (b->stack.n - mark) / sizeof(tnf_member);
    tnf_member *all = tnf_arena_array(b->j->arena, n, sizeof *all);
    if (!all)
        return no_memory(b->j, "a map");
    if (n)
        memcpy(all, b->stack.p + mark, n * sizeof *all);
    b->stack.n = mark;
    *out = (tnf_value) { .kind = TNF_MAP, .n = n, .as.members = all };
    return true;
}

static bool read_map(builder *b, tnf_value *out)
{
    keys k = { .b = b, .mark = b->stack.n };
    if (!tnf_json_enter(b->j, '{'))
        return false;
    bool ok = read_members(b, &k) && map_from_stack(b, k.mark, out);
    tnf_hash_free(&k.hash);
    return ok;
}

/* -------------------------------------------------------------- wrappers */

/* {"$bytes":"00ff"}: two digits per byte. */
static bool hex_bytes(tnf_json *j, uint8_t *out, tnf_str hex, uint64_t at)
{
    for (size_t i = 0; i < hex.n; i++) {
        int digit = tnf_hex_digit(hex.p[i]);
        if (digit < 0 || (hex.p[i] >= 'A' && hex.p[i] <= 'F'))
            return tnf_json_fail(j, TNF_EFORMAT, at, "a typed value has a bad hexadecimal digit");
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | digit);
    }
    return true;
}

static bool bytes_value(tnf_json *j, tnf_kind kind, tnf_value *out)
{
    tnf_str hex;
    (void)tnf_json_peek(j);
    uint64_t at = tnf_json_where(j);
    if (!tnf_json_string(j, &hex))
        return false;
    if (hex.n % 2)
        return tnf_json_fail(j, TNF_EFORMAT, at,
                             "a typed value has an odd number of hexadecimal digits");
    uint8_t *bytes = tnf_arena_alloc(j->arena, hex.n / 2 + 1);
    if (!bytes)
        return no_memory(j, "bytes");
    *out = (tnf_value) { .kind = (uint8_t)kind, .n = hex.n / 2, .as.s = (const char *)bytes };
    return hex_bytes(j, bytes, hex, at);
}

/* {"$f32":"7fc00000"}: the bits, most significant first. */
static bool float_value(tnf_json *j, tnf_dtype dtype, tnf_value *out)
{
    size_t size = dtype == TNF_F32 ? 4 : 8;
    uint8_t raw[8] = { 0 };
    tnf_str hex;
    (void)tnf_json_peek(j);
    uint64_t at = tnf_json_where(j), bits = 0;
    if (!tnf_json_string(j, &hex))
        return false;
    if (hex.n != 2 * size)
        return tnf_json_fail(j, TNF_EFORMAT, at, "a typed number does not have %zu digits",
                             2 * size);
    if (!hex_bytes(j, raw, hex, at))
        return false;
    for (size_t i = 0; i < size; i++)
        bits = bits << 8 | raw[i];
    *out = (tnf_value) { .kind = TNF_FLOAT, .dtype = (uint8_t)dtype };
    uint32_t bits32 = (uint32_t)bits;
    if (dtype == TNF_F32)
        memcpy(&out->as.f32, &bits32, sizeof bits32);
    else
        memcpy(&out->as.f64, &bits, sizeof bits);
    return true;
}

/* {"$u8":3} */
static bool integer_value(tnf_json *j, tnf_dtype dtype, tnf_value *out)
{
    tnf_value v;
    bool is_signed = dtype >= TNF_I64 && dtype <= TNF_I8;
    unsigned bits = 8 * (unsigned)tnf_dtype_size(dtype) - is_signed;
    (void)tnf_json_peek(j);
    uint64_t at = tnf_json_where(j);
    if (tnf_json_peek(j) != '0')
        return tnf_json_fail(j, TNF_EFORMAT, at, "a typed value has no number where one should be");
    if (!read_number(j, &v))
        return false;
    bool negative = v.kind == TNF_INT && v.as.i < 0;
    uint64_t magnitude = negative ? ~v.as.u : v.as.u; /* -128 needs as many bits as 127 */
    if (v.kind == TNF_FLOAT || (negative && !is_signed) || (bits < 64 && magnitude >> bits))
        return tnf_json_fail(j, TNF_EFORMAT, at, "a typed number does not fit its type");
    v.kind = is_signed ? TNF_INT : TNF_UINT;
    v.dtype = (uint8_t)dtype;
    *out = v;
    return true;
}

/* {"$array":"u32"}: an empty array with a type. */
static bool told_array(tnf_json *j, tnf_value *out)
{
    static const struct {
        const char *name;
        tnf_kind kind;
    } kinds[] = { { "bool", TNF_BOOL },
                  { "string", TNF_STRING },
                  { "bytes", TNF_BYTES },
                  { "array", TNF_ARRAY },
                  { "map", TNF_MAP } };
    tnf_str type;
    (void)tnf_json_peek(j);
    uint64_t at = tnf_json_where(j);
    if (!tnf_json_string(j, &type))
        return false;
    *out = (tnf_value) { .kind = TNF_ARRAY };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tnf_str_is(type, kinds[i].name))
            *out = tnf_value_mark_items(*out, kinds[i].kind, TNF_F64);
    for (tnf_dtype d = 0; d < TNF_DTYPE_COUNT; d++)
        if (tnf_str_is(type, tnf_type_of(d)->id))
            *out = tnf_value_mark_items(*out, TNF_UINT, d);
    return out->dtype != 0 ||
           tnf_json_fail(j, TNF_EFORMAT, at, "a typed array has the unknown type %s",
                         TNF_QUOTED(type));
}

static bool read_wrapped(builder *b, tnf_str key, uint64_t at, tnf_value *out)
{
    tnf_str name = { key.p + 1, key.n - 1 };
    if (tnf_str_is(name, "map"))
        return read_map(b, out);
    if (tnf_str_is(name, "bytes"))
        return bytes_value(b->j, TNF_BYTES, out);
    if (tnf_str_is(name, "string"))
        return bytes_value(b->j, TNF_STRING, out);
    if (tnf_str_is(name, "array"))
        return told_array(b->j, out);
    if (tnf_str_is(name, "json"))
        return text_value(b->j, TNF_JSON, out);
    for (tnf_dtype d = 0; d < TNF_DTYPE_COUNT; d++)
        if (tnf_str_is(name, tnf_type_of(d)->id))
            return d <= TNF_BF16 ? float_value(b->j, d, out) : integer_value(b->j, d, out);
    return tnf_json_fail(b->j, TNF_EFORMAT, at, "a typed value has the unknown type %s",
                         TNF_QUOTED(key));
}

/* Is the object at j->p a wrapper, that is, does its first key begin with '$'? */
static bool is_wrapper(const tnf_json *j)
{
    const uint8_t *p = j->p + 1;
    while (p < j->end && *p <= ' ')
        p++;
    return j->end - p >= 2 && p[0] == '"' && p[1] == '$';
}

/* A wrapper is notation and not structure, so it does not count as a level of the depth limit:
 * every tree that can be printed can be read. */
static bool read_wrapper(builder *b, tnf_value *out)
{
    tnf_json *j = b->j;
    tnf_str key, more;
    j->max_depth++;
    if (!tnf_json_enter(j, '{'))
        return false;
    uint64_t at = tnf_json_next_key_at(j);
    if (!tnf_json_key(j, &key) || !read_wrapped(b, key, at, out))
        return false;
    at = tnf_json_next_key_at(j);
    if (tnf_json_key(j, &more))
        return tnf_json_fail(j, TNF_EFORMAT, at, "a typed value has a second key");
    j->max_depth--;
    return j->status == TNF_OK;
}

static bool read_value(builder *b, tnf_value *out)
{
    tnf_json *j = b->j;
    *out = (tnf_value) { 0 };
    switch (tnf_json_peek(j)) {
    case '{':
        return b->typed && is_wrapper(j) ? read_wrapper(b, out) : read_map(b, out);
    case '[':
        return read_array(b, out);
    case '"':
        return text_value(j, TNF_STRING, out);
    case '0':
        return read_number(j, out);
    case 't':
    case 'f':
        out->kind = TNF_BOOL;
        return tnf_json_bool(j, &out->as.b);
    default:
        return tnf_json_skip(j, NULL); /* null, or an error */
    }
}

static bool read_tree(tnf_json *j, tnf_value *out, bool typed)
{
    builder b = { .j = j, .typed = typed };
    tnf_buf_init(&b.stack, &j->arena->alloc, j->arena->limit);
    bool ok = j->status == TNF_OK && read_value(&b, out);
    tnf_buf_free(&b.stack);
    return ok;
}

bool tnf_json_value(tnf_json *j, tnf_value *out)
{
    return read_tree(j, out, false);
}

bool tnf_json_typed(tnf_json *j, tnf_value *out)
{
    return read_tree(j, out, true);
}
