/* SPDX-License-Identifier: MIT */
/* Keys and their values, which become attributes:
 *
 *   key     text
 *   type    u32
 *   value   a number, a bool (one byte), a text, or
 *   array   u32 type of the items · u64 count (version 1: u32) · the items
 *
 * general.architecture = "llama" becomes gguf.general.architecture. Two keys are Tenfold's own: the
 * stash, which the core restores, and the room for later edits, which does not become an attribute.
 */
#include "formats/gguf/gguf.h"

#include "base/hex.h"
#include <tenfold/value.h>

#include <stdio.h>

#define LONGEST_KEY 65535u
#define SLICE       ((uint64_t)64 << 10) /* bytes of numbers that are read at once */

static tnf_status read_value(gguf_in *in, unsigned type, unsigned depth, tnf_value *out,
                             tnf_error *e);

/* ---------------------------------------------------------------- numbers */

/* Takes one number at in->p. A bool other than 0 and 1 is allowed in lenient mode. */
static tnf_status take_number(gguf_in *in, unsigned type, size_t size, tnf_value *out, tnf_error *e)
{
    uint8_t bytes[8];
    if (type == GGUF_BOOL) {
        uint8_t b = *in->p;
        if (b > 1)
            TNF_TRY(tnf_stricter(in->r, e, TNF_EFORMAT, in->at, "a bool is %u, not 0 or 1", b));
        *out = tnf_value_bool(b != 0);
    } else if (in->big) {
        for (size_t i = 0; i < size && i < sizeof bytes; i++)
            bytes[i] = in->p[size - 1 - i];
        *out = tnf_value_number(tnf_gguf_dtype(type), bytes);
    } else {
        *out = tnf_value_number(tnf_gguf_dtype(type), in->p);
    }
    in->p += size;
    in->at += size;
    return TNF_OK;
}

static tnf_status read_number(gguf_in *in, unsigned type, tnf_value *out, tnf_error *e)
{
    size_t size = tnf_gguf_value_size(type);
    TNF_TRY(tnf_gguf_need(in, size, e));
    return take_number(in, type, size, out, e);
}

static tnf_status read_numbers(gguf_in *in, unsigned type, uint64_t n, tnf_value *items,
                               tnf_error *e)
{
    size_t size = tnf_gguf_value_size(type);
    for (uint64_t i = 0; i < n;) {
        uint64_t some = n - i < SLICE / size ? n - i : SLICE / size;
        TNF_TRY(tnf_gguf_need(in, some * size, e));
        for (; some > 0; some--, i++)
            TNF_TRY(take_number(in, type, size, &items[i], e));
    }
    return TNF_OK;
}

/* ----------------------------------------------------------------- arrays */

static tnf_status read_text(gguf_in *in, tnf_value *out, tnf_error *e)
{
    tnf_str s;
    TNF_TRY(tnf_gguf_text(in, &s, e));
    *out = tnf_value_utf8(s);
    return TNF_OK;
}

static tnf_value mark_items(tnf_value array, unsigned type)
{
    if (type == GGUF_BOOL || type == GGUF_STRING || type == GGUF_ARRAY)
        return tnf_value_mark_items(array,
                                    type == GGUF_BOOL     ? TNF_BOOL
                                    : type == GGUF_STRING ? TNF_STRING
                                                          : TNF_ARRAY,
                                    TNF_F64);
    return tnf_value_mark_items(array, TNF_UINT, tnf_gguf_dtype(type));
}

/* The least size of an item in bytes. */
static uint64_t least_bytes(const gguf_in *in, unsigned type)
{
    uint64_t length = in->v1 ? 4 : 8;
    return type == GGUF_STRING  ? length
           : type == GGUF_ARRAY ? 4 + length
                                : tnf_gguf_value_size(type);
}

static tnf_status check_type(const gguf_in *in, uint32_t type, uint64_t at, tnf_error *e)
{
    (void)in;
    return type < GGUF_TYPES
               ? TNF_OK
               : tnf_fail(e, TNF_EFORMAT, at, "the array has items of the unknown type %u", type);
}

static tnf_status read_array(gguf_in *in, unsigned depth, tnf_value *out, tnf_error *e)
{
    uint32_t type;
    uint64_t n, at = in->at;
    if (depth >= GGUF_MAX_DEPTH)
        return tnf_fail(e, TNF_ELIMIT, at, "arrays are nested more than %u deep", GGUF_MAX_DEPTH);
    TNF_TRY(tnf_gguf_u32(in, &type, e));
    TNF_TRY(check_type(in, type, at, e));
    at = in->at;
    TNF_TRY(tnf_gguf_length(in, &n, e));
    TNF_TRY(tnf_gguf_count(in, n, least_bytes(in, type), "items of an array", at, e));
    tnf_value *items = tnf_arena_raw(in->r->arena, n * sizeof *items);
    if (!items)
        return tnf_arena_fail(in->r->arena, "an array", e);
    *out = mark_items((tnf_value) { .kind = TNF_ARRAY, .n = (size_t)n, .as.items = items }, type);
    if (tnf_gguf_value_size(type))
        return read_numbers(in, type, n, items, e);
    for (uint64_t i = 0; i < n; i++)
        TNF_TRY(type == GGUF_STRING ? read_text(in, &items[i], e)
                                    : read_array(in, depth + 1, &items[i], e));
    return TNF_OK;
}

static tnf_status read_value(gguf_in *in, unsigned type, unsigned depth, tnf_value *out,
                             tnf_error *e)
{
    if (type == GGUF_STRING)
        return read_text(in, out, e);
    return type == GGUF_ARRAY ? read_array(in, depth, out, e) : read_number(in, type, out, e);
}

/* ------------------------------------------------------------------- keys */

/* gguf.KEY. In lenient mode bytes that are not UTF-8 become %XX. */
static tnf_status attribute_name(tnf_str *out, tnf_reader *r, tnf_str key, tnf_error *e)
{
    bool text = tnf_utf8_valid(NULL, key.p, key.n);
    char *name = tnf_arena_raw(r->arena, GGUF_PREFIX_N + (text ? 1 : 3) * (uint64_t)key.n + 1);
    if (!name)
        return tnf_arena_fail(r->arena, "a key", e);
    size_t n = GGUF_PREFIX_N;
    memcpy(name, GGUF_PREFIX, n);
    for (size_t i = 0; i < key.n && !text; i++) {
        uint8_t c = (uint8_t)key.p[i];
        if (c < 0x80) {
            name[n++] = (char)c;
        } else {
            tnf_hex_percent(name + n, (char)c);
            n += 3;
        }
    }
    if (text) {
        memcpy(name + n, key.p, key.n);
        n += key.n;
    }
    name[n] = 0;
    *out = (tnf_str) { name, n };
    return TNF_OK;
}

static tnf_status check_key(tnf_reader *r, gguf_file *g, tnf_str key, uint64_t at, tnf_error *e)
{
    if (key.n == 0)
        return tnf_fail(e, TNF_EFORMAT, at, "a key is empty");
    if (key.n > LONGEST_KEY)
        TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, at,
                             "a key has %zu bytes; the format allows at most %u", key.n,
                             LONGEST_KEY));
    if (!tnf_utf8_valid(NULL, key.p, key.n)) {
        TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, at, "the key %s is not UTF-8", TNF_QUOTED(key)));
        g->key_not_utf8 = true;
    }
    if (memchr(key.p, 0, key.n))
        tnf_warn(r, at, "the key %s contains a NUL", TNF_QUOTED(key));
    bool plain = true;
    for (size_t i = 0; i < key.n && plain; i++) {
        char c = key.p[i];
        plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    }
    if (!plain && !g->strange_key)
        tnf_warn(r, at, "the key %s has characters other than a-z, 0-9, _ and dots",
                 TNF_QUOTED(key));
    g->strange_key = g->strange_key || !plain;
    return TNF_OK;
}

static tnf_status check_alignment(gguf_in *in, gguf_file *g, const tnf_value *v, uint64_t at,
                                  tnf_error *e)
{
    uint64_t u = v->kind == TNF_UINT && v->dtype == TNF_U32 ? v->as.u : 0;
    if (v->kind != TNF_UINT || v->dtype != TNF_U32)
        return tnf_fail(e, TNF_EFORMAT, at, GGUF_ALIGNMENT " is not a u32");
    if (u == 0 || (u & (u - 1)) != 0)
        return tnf_fail(e, TNF_EFORMAT, at, GGUF_ALIGNMENT " is %llu, not a power of two",
                        (unsigned long long)u);
    if (u < 8 || u > 65536)
        tnf_warn(
            in->r, at,
            GGUF_ALIGNMENT
            " is %llu; the format requires a multiple of 8, and values above 65536 are unusual",
            (unsigned long long)u);
    g->alignment = (uint32_t)u;
    return TNF_OK;
}

/* Skips the room for later edits, which does not become an attribute. */
static tnf_status pass_reserve(gguf_in *in, gguf_file *g, tnf_error *e)
{
    uint32_t type;
    uint64_t n, at = in->at;
    TNF_TRY(tnf_gguf_u32(in, &type, e));
    if (type != GGUF_U8)
        return tnf_fail(e, TNF_EFORMAT, at, GGUF_RESERVE " is not an array of u8");
    at = in->at;
    TNF_TRY(tnf_gguf_length(in, &n, e));
    TNF_TRY(tnf_gguf_count(in, n, 1, "items of an array", at, e));
    g->reserve = true;
    g->reserve_size = n;
    for (uint64_t some; n > 0; n -= some) {
        some = n < SLICE ? n : SLICE;
        TNF_TRY(tnf_gguf_need(in, some, e));
        in->p += some;
        in->at += some;
    }
    return TNF_OK;
}

/* If a key occurs twice, the first one counts, and both are listed. */
static tnf_status add_attribute(gguf_in *in, gguf_file *g, tnf_str key, tnf_value v, uint64_t at,
                                tnf_error *e)
{
    tnf_attrs *attrs = &in->r->catalog->attrs;
    tnf_member *known;
    tnf_str name = { TNF_STASH_KEY, sizeof TNF_STASH_KEY - 1 };
    if (!tnf_str_is(key, TNF_STASH_KEY))
        TNF_TRY(attribute_name(&name, in->r, key, e));
    TNF_TRY(tnf_attrs_find(attrs, name.p, name.n, &known, e));
    if (known) {
        TNF_TRY(
            tnf_stricter(in->r, e, TNF_EFORMAT, at, "the key %s occurs twice", TNF_QUOTED(key)));
        g->key_twice = true;
    }
    TNF_TRY(tnf_attrs_push(attrs, name.p, v, e));
    attrs->members[attrs->n - 1].key.n = name.n;
    return TNF_OK;
}

static bool has_arrays(const tnf_value *v)
{
    tnf_kind kind;
    tnf_dtype dtype;
    return tnf_value_items(&kind, &dtype, v) && kind == TNF_ARRAY;
}

static tnf_status read_key(gguf_in *in, gguf_file *g, tnf_error *e)
{
    tnf_str key;
    uint32_t type;
    uint64_t at = in->at;
    tnf_value v;
    TNF_TRY(tnf_gguf_text(in, &key, e));
    uint64_t type_at = in->at;
    TNF_TRY(tnf_gguf_u32(in, &type, e));
    TNF_TRY(check_key(in->r, g, key, at, e));
    if (type >= GGUF_TYPES)
        return tnf_fail(e, TNF_EFORMAT, type_at, "the key %s has a value of the unknown type %u",
                        TNF_QUOTED(key), type);
    if (type == GGUF_ARRAY && tnf_str_is(key, GGUF_RESERVE) && !g->reserve)
        return pass_reserve(in, g, e);
    TNF_TRY(read_value(in, type, 0, &v, e));
    if (tnf_str_is(key, GGUF_ALIGNMENT))
        TNF_TRY(check_alignment(in, g, &v, type_at, e));
    g->nested = g->nested || has_arrays(&v);
    g->key_twice = g->key_twice || (g->reserve && tnf_str_is(key, GGUF_RESERVE));
    return add_attribute(in, g, key, v, at, e);
}

tnf_status tnf_gguf_keys(gguf_in *in, gguf_file *g, uint64_t n, tnf_error *e)
{
    in->what = "the keys";
    g->alignment = GGUF_DEFAULT_ALIGNMENT;
    for (uint64_t i = 0; i < n; i++)
        TNF_TRY(read_key(in, g, e));
    return TNF_OK;
}

const tnf_value *tnf_gguf_attr(const tnf_attrs *attrs, const char *key)
{
    for (size_t i = 0; i < attrs->n; i++) {
        tnf_str k = attrs->members[i].key;
        if (k.n > GGUF_PREFIX_N && memcmp(k.p, GGUF_PREFIX, GGUF_PREFIX_N) == 0 &&
            tnf_str_is((tnf_str) { k.p + GGUF_PREFIX_N, k.n - GGUF_PREFIX_N }, key))
            return &attrs->members[i].value;
    }
    return NULL;
}
