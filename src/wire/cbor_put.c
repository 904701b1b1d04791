/* SPDX-License-Identifier: MIT */
/* The CBOR writer: shortest forms; trees in deterministic or in given order. */
#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "wire/cbor_head.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- pieces */

static void put_head(tnf_buf *b, unsigned major, uint64_t v)
{
    unsigned first = major << 5;
    if (v < 24)
        tnf_buf_u8(b, (uint8_t)(first | (unsigned)v));
    else if (v <= UINT8_MAX)
        tnf_buf_wide(b, first | 24, v, 1);
    else if (v <= UINT16_MAX)
        tnf_buf_wide(b, first | 25, v, 2);
    else if (v <= UINT32_MAX)
        tnf_buf_wide(b, first | 26, v, 4);
    else
        tnf_buf_wide(b, first | 27, v, 8);
}

void tnf_cbor_put_uint(tnf_buf *b, uint64_t v)
{
    put_head(b, CBOR_UINT, v);
}

void tnf_cbor_put_int(tnf_buf *b, int64_t v)
{
    if (v < 0)
        put_head(b, CBOR_NEGATIVE, (uint64_t)(-1 - v));
    else
        put_head(b, CBOR_UINT, (uint64_t)v);
}

void tnf_cbor_put_text(tnf_buf *b, const char *p, size_t n)
{
    put_head(b, CBOR_TEXT, n);
    tnf_buf_put(b, p, n);
}

void tnf_cbor_put_string(tnf_buf *b, const char *s)
{
    tnf_cbor_put_text(b, s, strlen(s));
}

void tnf_cbor_put_bytes(tnf_buf *b, const void *p, size_t n)
{
    put_head(b, CBOR_BYTES, n);
    tnf_buf_put(b, p, n);
}

void tnf_cbor_put_array(tnf_buf *b, uint64_t n)
{
    put_head(b, CBOR_ARRAY, n);
}

void tnf_cbor_put_map(tnf_buf *b, uint64_t n)
{
    put_head(b, CBOR_MAP, n);
}

void tnf_cbor_put_bool(tnf_buf *b, bool v)
{
    tnf_buf_u8(b, v ? 0xf5 : 0xf4);
}

void tnf_cbor_put_null(tnf_buf *b)
{
    tnf_buf_u8(b, 0xf6);
}

void tnf_cbor_put_open_map(tnf_buf *b)
{
    tnf_buf_u8(b, CBOR_MAP << 5 | CBOR_OPEN_INFO);
}

void tnf_cbor_put_break(tnf_buf *b)
{
    tnf_buf_u8(b, CBOR_BREAK);
}

/* ----------------------------------------------------------------- floats */

static void put_float_bits(tnf_buf *b, uint64_t bits)
{
    uint64_t shortest;
    unsigned width = tnf_cbor_shortest_float(bits, &shortest);
    tnf_buf_wide(b, width == 2 ? 0xf9 : width == 4 ? 0xfa : 0xfb, shortest, width);
}

void tnf_cbor_put_f64(tnf_buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_float_bits(b, tnf_cbor_is_nan(bits) ? tnf_cbor_widen(CBOR_NAN, 5, 10) : bits);
}

/* --------------------------------------------------------------- wrappers */

/* Are these bytes exactly one item? Skipping takes no memory, so the answer is always certain. */
static bool is_item(const tnf_value *raw, tnf_cbor_profile profile, unsigned max_depth)
{
    tnf_cbor r;
    tnf_cbor_init(&r, raw->as.s, raw->n, 0, NULL, max_depth, profile, NULL);
    return tnf_cbor_skip(&r, NULL) && tnf_cbor_end(&r) == TNF_OK;
}

/* The bytes of {"$cbor": bytes}, if v is such a map and the bytes are valid in this profile. */
static const tnf_value *verbatim_of(const tnf_value *v, tnf_cbor_profile profile)
{
    const tnf_value *raw = tnf_tree_wrapped(v, "$cbor");
    return raw && raw->kind == TNF_BYTES && is_item(raw, profile, TNF_TREE_DEEPEST) ? raw : NULL;
}

bool tnf_cbor_is_wrapper(const tnf_value *v, tnf_cbor_profile profile)
{
    for (const tnf_value *inner; (inner = tnf_tree_wrapped(v, "$map"));)
        v = inner;
    return verbatim_of(v, profile) != NULL;
}

/* ------------------------------------------------------------------ trees */

typedef struct writer {
    tnf_buf *b;
    tnf_cbor_profile profile;
    unsigned max_depth;
    tnf_error *e;
} writer;

static tnf_status put_tree(const writer *w, const tnf_value *v, unsigned depth);

static tnf_status put_text(const writer *w, const char *p, size_t n)
{
    if (!tnf_utf8_valid(NULL, p, n))
        return tnf_fail(w->e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the text %s is not UTF-8 and cannot be written as CBOR",
                        TNF_QUOTED(((tnf_str) { p, n })));
    tnf_cbor_put_text(w->b, p, n);
    return TNF_OK;
}

static void put_float(const writer *w, const tnf_value *v)
{
    uint64_t bits;
    uint32_t single;
    if (v->dtype == TNF_F32) {
        memcpy(&single, &v->as.f32, sizeof single);
        bits = tnf_cbor_widen(single, 8, 23);
    } else {
        memcpy(&bits, &v->as.f64, sizeof bits);
    }
    if (w->profile == TNF_CBOR_STRICT && tnf_cbor_is_nan(bits))
        bits = tnf_cbor_widen(CBOR_NAN, 5, 10);
    put_float_bits(w->b, bits);
}

int tnf_cbor_compare(tnf_str a, tnf_str b)
{
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    return a.n ? memcmp(a.p, b.p, a.n) : 0;
}

static int compare_members(const void *a, const void *b)
{
    const tnf_member *const *x = a, *const *y = b;
    return tnf_cbor_compare((*x)->key, (*y)->key);
}

static tnf_status put_members(const writer *w, const tnf_member *const *members, size_t n,
                              unsigned depth)
{
    for (size_t i = 0; i < n; i++) {
        tnf_str key = members[i]->key;
        if (i && tnf_cbor_compare(members[i - 1]->key, key) == 0)
            return tnf_fail(w->e, TNF_EINVAL, TNF_NO_OFFSET, "the key %s occurs twice in one map",
                            TNF_QUOTED(key));
        TNF_TRY(put_text(w, key.p, key.n));
        TNF_TRY(put_tree(w, &members[i]->value, depth + 1));
    }
    return TNF_OK;
}

/* Writes a map in deterministic order. */
static tnf_status put_sorted(const writer *w, const tnf_value *v, unsigned depth)
{
    size_t size = v->n * sizeof(tnf_member *);
    const tnf_member **members = tnf_alloc(&w->b->alloc, size);
    if (!members)
        return tnf_no_memory("the keys of a map", w->e);
    for (size_t i = 0; i < v->n; i++)
        members[i] = &v->as.members[i];
    qsort(members, v->n, sizeof *members, compare_members);
    tnf_status status = put_members(w, members, v->n, depth);
    tnf_free(&w->b->alloc, members, size);
    return status;
}

static tnf_status put_map(const writer *w, const tnf_value *v, unsigned depth)
{
    tnf_cbor_put_map(w->b, v->n);
    if (v->n == 0)
        return TNF_OK;
    if (w->profile == TNF_CBOR_STRICT)
        return put_sorted(w, v, depth);
    for (size_t i = 0; i < v->n; i++) {
        TNF_TRY(put_text(w, v->as.members[i].key.p, v->as.members[i].key.n));
        TNF_TRY(put_tree(w, &v->as.members[i].value, depth + 1));
    }
    return TNF_OK;
}

static tnf_status too_deep(const writer *w)
{
    return tnf_fail(w->e, TNF_ELIMIT, TNF_NO_OFFSET,
                    "a value is nested deeper than the %u levels CBOR may have here", w->max_depth);
}

/* Writes a map, or the item that it wraps. */
static tnf_status put_map_or_wrapped(const writer *w, const tnf_value *v, unsigned depth)
{
    const tnf_value *raw = verbatim_of(v, w->profile);
    if (raw && !is_item(raw, w->profile, w->max_depth - depth))
        return too_deep(w);
    if (raw) {
        tnf_buf_put(w->b, raw->as.s, raw->n);
        return TNF_OK;
    }
    bool escaped = tnf_cbor_is_wrapper(v, w->profile);
    return put_map(w, escaped ? &v->as.members[0].value : v, depth);
}

static tnf_status put_array(const writer *w, const tnf_value *v, unsigned depth)
{
    tnf_cbor_put_array(w->b, v->n);
    for (size_t i = 0; i < v->n; i++)
        TNF_TRY(put_tree(w, &v->as.items[i], depth + 1));
    return TNF_OK;
}

static tnf_status put_tree(const writer *w, const tnf_value *v, unsigned depth)
{
    if (depth > w->max_depth)
        return too_deep(w);
    switch ((tnf_kind)v->kind) {
    case TNF_NULL:
        tnf_cbor_put_null(w->b);
        return TNF_OK;
    case TNF_BOOL:
        tnf_cbor_put_bool(w->b, v->as.b);
        return TNF_OK;
    case TNF_INT:
        tnf_cbor_put_int(w->b, v->as.i);
        return TNF_OK;
    case TNF_UINT:
        tnf_cbor_put_uint(w->b, v->as.u);
        return TNF_OK;
    case TNF_FLOAT:
        put_float(w, v);
        return TNF_OK;
    case TNF_STRING:
    case TNF_JSON:
        return put_text(w, v->as.s, v->n);
    case TNF_BYTES:
        tnf_cbor_put_bytes(w->b, v->as.s, v->n);
        return TNF_OK;
    case TNF_ARRAY:
        return put_array(w, v, depth);
    case TNF_MAP:
        return put_map_or_wrapped(w, v, depth);
    }
    return tnf_fail(w->e, TNF_EINVAL, TNF_NO_OFFSET, "a value is of the unknown kind %u", v->kind);
}

tnf_status tnf_cbor_put_value(tnf_buf *b, const tnf_value *v, tnf_cbor_profile profile,
                              unsigned max_depth, tnf_error *e)
{
    const writer w = { b, profile, max_depth < TNF_TREE_DEEPEST ? max_depth : TNF_TREE_DEEPEST, e };
    TNF_TRY(put_tree(&w, v, 0));
    return tnf_buf_status(b, "the CBOR", e);
}
