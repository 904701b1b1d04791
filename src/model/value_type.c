/* SPDX-License-Identifier: MIT */
/* The exact types of values as text, and the type marks of arrays.
 *
 *   mark of an array   0         unknown
 *                      1 + d     numbers, d is their tnf_dtype
 *                      64 + k    anything else, k is its tnf_kind
 */
#include "model/dtype.h"
#include "model/value.h"

#include <tenfold/value.h>

#include <stdio.h>
#include <string.h>

#define KINDS 64u

static bool is_number(tnf_kind kind)
{
    return kind == TNF_INT || kind == TNF_UINT || kind == TNF_FLOAT;
}

static tnf_kind kind_of(tnf_dtype dtype)
{
    return dtype <= TNF_BF16 ? TNF_FLOAT : dtype <= TNF_I8 ? TNF_INT : TNF_UINT;
}

tnf_value tnf_value_mark_items(tnf_value array, tnf_kind kind, tnf_dtype dtype)
{
    if (array.kind == TNF_ARRAY)
        array.dtype = (uint8_t)(is_number(kind) ? 1u + dtype : KINDS + kind);
    return array;
}

bool tnf_value_mark_ok(unsigned mark)
{
    return mark < KINDS ? mark <= TNF_DTYPE_COUNT : mark - KINDS <= TNF_MAP;
}

bool tnf_value_items(tnf_kind *kind, tnf_dtype *dtype, const tnf_value *array)
{
    if (!array || array->kind != TNF_ARRAY || array->dtype == 0)
        return false;
    *dtype = array->dtype < KINDS ? (tnf_dtype)(array->dtype - 1u) : TNF_F64;
    *kind = array->dtype < KINDS ? kind_of(*dtype) : (tnf_kind)(array->dtype - KINDS);
    return true;
}

/* array<array<leaf>> has the depth 2. An array whose items differ, or whose items are unknown, is a
 * leaf. */
struct type {
    unsigned depth;
    tnf_kind leaf;
    tnf_dtype dtype; /* of a number, else 0 */
};

static bool same_type(struct type a, struct type b)
{
    return a.depth == b.depth && a.leaf == b.leaf && a.dtype == b.dtype;
}

static bool is_text(struct type t)
{
    return t.depth == 0 && (t.leaf == TNF_STRING || t.leaf == TNF_BYTES);
}

static bool is_array(struct type t)
{
    return t.depth > 0 || t.leaf == TNF_ARRAY;
}

static struct type type_of(const tnf_value *v);

/* The common type of all items; `array` if they are arrays of several types. */
static bool type_of_items(struct type *out, const tnf_value *v)
{
    *out = type_of(&v->as.items[0]);
    for (size_t i = 1; i < v->n; i++) {
        struct type next = type_of(&v->as.items[i]);
        if (same_type(*out, next))
            continue;
        if (is_text(*out) && is_text(next)) /* texts, some of which are not UTF-8 */
            out->leaf = TNF_STRING;
        else if (is_array(*out) && is_array(next))
            *out = (struct type) { .leaf = TNF_ARRAY };
        else
            return false;
    }
    return true;
}

static struct type type_of(const tnf_value *v)
{
    struct type t = { .leaf = (tnf_kind)v->kind };
    tnf_kind kind;
    tnf_dtype dtype;
    if (is_number(t.leaf))
        t.dtype = (tnf_dtype)v->dtype;
    if (v->kind != TNF_ARRAY || (v->n && !v->as.items))
        return t;
    bool told = tnf_value_items(&kind, &dtype, v);
    if (told && (v->n == 0 || kind != TNF_ARRAY))
        return (struct type) { 1, kind, is_number(kind) ? dtype : 0 };
    struct type items;
    if (v->n == 0 || !type_of_items(&items, v))
        return t;
    items.depth++;
    return items;
}

static const char *leaf_name(struct type t)
{
    static const char *const names[] = { "null",   "bool",  "i64",  "u64",   "f64",
                                         "string", "bytes", "json", "array", "map" };
    if (is_number(t.leaf) && t.dtype < TNF_DTYPE_COUNT)
        return tnf_type_of(t.dtype)->id;
    return t.leaf <= TNF_MAP ? names[t.leaf] : "unknown";
}

static size_t append_text(char *out, size_t room, size_t n, const char *text)
{
    if (n < room)
        snprintf(out + n, room - n, "%s", text);
    return n + strlen(text);
}

size_t tnf_value_type(char *out, size_t room, const tnf_value *value)
{
    static const tnf_value null = { .kind = TNF_NULL };
    struct type t = type_of(value ? value : &null);
    size_t n = 0;
    if (room)
        out[0] = 0;
    for (unsigned i = 0; i < t.depth; i++)
        n = append_text(out, room, n, "array<");
    n = append_text(out, room, n, leaf_name(t));
    for (unsigned i = 0; i < t.depth; i++)
        n = append_text(out, room, n, ">");
    return n;
}
