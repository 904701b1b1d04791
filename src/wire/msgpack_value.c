/* SPDX-License-Identifier: MIT */
/* MessagePack as trees. Items that a tree cannot express are wrapped in a map of one key.
 *
 * Recursion is limited by the reader's depth limit. A map is read only once, whatever its keys are:
 * a second try would double the cost at each level.
 */
#include "base/utf8.h"
#include "model/value.h"
#include "wire/msgpack_wrapper.h"

#include <string.h>

static bool read_value(tnf_msgpack *r, tnf_tree *t, tnf_value *out);

/* Takes over the status of the tree. */
static bool tree_ok(tnf_msgpack *r, tnf_status status)
{
    if (r->status == TNF_OK)
        r->status = status;
    return r->status == TNF_OK;
}

static bool push_value(tnf_msgpack *r, tnf_tree *t, const tnf_value *v)
{
    return tree_ok(r, tnf_tree_push(t, v, r->e));
}

/* --------------------------------------------------------------- wrappers */

const tnf_value *tnf_msgpack_ext_of(const tnf_value *v)
{
    const tnf_value *ext = tnf_tree_wrapped(v, "$ext");
    if (!ext || ext->kind != TNF_ARRAY || ext->n != 2 || ext->as.items[1].kind != TNF_BYTES)
        return NULL;
    const tnf_value *type = &ext->as.items[0];
    bool fits = type->kind == TNF_INT    ? type->as.i >= INT8_MIN && type->as.i <= INT8_MAX
                : type->kind == TNF_UINT ? type->as.u <= INT8_MAX
                                         : false;
    return fits ? ext : NULL;
}

const tnf_value *tnf_msgpack_str_of(const tnf_value *v)
{
    const tnf_value *bytes = tnf_tree_wrapped(v, "$str");
    return bytes && bytes->kind == TNF_BYTES ? bytes : NULL;
}

const tnf_value *tnf_msgpack_pairs_of(const tnf_value *v)
{
    const tnf_value *pairs = tnf_tree_wrapped(v, "$pairs");
    if (!pairs || pairs->kind != TNF_ARRAY)
        return NULL;
    for (size_t i = 0; i < pairs->n; i++)
        if (pairs->as.items[i].kind != TNF_ARRAY || pairs->as.items[i].n != 2)
            return NULL;
    return pairs;
}

bool tnf_msgpack_is_wrapper(const tnf_value *v)
{
    for (const tnf_value *inner; (inner = tnf_tree_wrapped(v, "$map"));)
        v = inner;
    return tnf_msgpack_ext_of(v) || tnf_msgpack_str_of(v) || tnf_msgpack_pairs_of(v);
}

/* ---------------------------------------------------------------- scalars */

static bool read_number(tnf_msgpack *r, tnf_value *out)
{
    tnf_msgpack_head h;
    if (!tnf_msgpack_next_head(r, &h))
        return false;
    uint32_t low = (uint32_t)h.argument;
    out->dtype = h.dtype;
    if (h.kind == TNF_MSGPACK_FLOAT) {
        out->kind = TNF_FLOAT;
        if (h.dtype == TNF_F32)
            memcpy(&out->as.f32, &low, sizeof low);
        else
            memcpy(&out->as.f64, &h.argument, sizeof h.argument);
    } else {
        out->kind = h.kind == TNF_MSGPACK_INT ? TNF_INT : TNF_UINT;
        out->as.u = h.argument;
        if (r->no_widths) {
            out->kind = out->kind == TNF_INT && out->as.i < 0 ? TNF_INT : TNF_UINT;
            out->dtype = out->kind == TNF_INT ? TNF_I64 : TNF_U64;
        }
    }
    return true;
}

static bool read_bytes(tnf_msgpack *r, tnf_tree *t, tnf_value *out)
{
    tnf_str s;
    return tnf_msgpack_bin(r, &s) && tree_ok(r, tnf_tree_text(t, TNF_BYTES, s, out, r->e));
}

static bool read_str(tnf_msgpack *r, tnf_tree *t, tnf_value *out)
{
    tnf_str s;
    tnf_value v;
    if (!tnf_msgpack_str(r, &s))
        return false;
    if (tnf_utf8_valid(NULL, s.p, s.n))
        return tree_ok(r, tnf_tree_text(t, TNF_STRING, s, out, r->e));
    return tree_ok(r, tnf_tree_text(t, TNF_BYTES, s, &v, r->e)) &&
           tree_ok(r, tnf_tree_wrap(t, "$str", &v, out, r->e));
}

static bool read_ext(tnf_msgpack *r, tnf_tree *t, tnf_value *out)
{
    int8_t type;
    tnf_str s;
    size_t mark = tnf_tree_mark(t);
    if (!tnf_msgpack_ext(r, &type, &s))
        return false;
    tnf_value number_of_type = { .kind = TNF_INT, .dtype = TNF_I8, .as.i = type }, v;
    return tree_ok(r, tnf_tree_text(t, TNF_BYTES, s, &v, r->e)) &&
           push_value(r, t, &number_of_type) && push_value(r, t, &v) &&
           tree_ok(r, tnf_tree_array(t, mark, &v, r->e)) &&
           tree_ok(r, tnf_tree_wrap(t, "$ext", &v, out, r->e));
}

/* ------------------------------------------------------------- containers */

static bool read_array(tnf_msgpack *r, tnf_tree *t, tnf_value *out)
{
    tnf_msgpack_scope scope;
    size_t mark = tnf_tree_mark(t);
    tnf_value v;
    tnf_msgpack_enter_array(r, &scope);
    while (tnf_msgpack_item(r, &scope))
        if (!read_value(r, t, &v) || !push_value(r, t, &v))
            return false;
    return r->status == TNF_OK && tree_ok(r, tnf_tree_array(t, mark, out, r->e));
}

/* Reads keys and values alternately. *plain stays true while all keys are text and different. */
static bool read_members(tnf_msgpack *r, tnf_tree *t, bool *plain)
{
    tnf_msgpack_scope scope;
    tnf_keys keys;
    tnf_value v;
    tnf_keys_init(&keys, r->arena);
    tnf_msgpack_enter_map(r, &scope);
    while (tnf_msgpack_item(r, &scope)) {
        bool twice = false;
        if (!read_value(r, t, &v) || !push_value(r, t, &v))
            return false;
        *plain = *plain && v.kind == TNF_STRING;
        if (*plain && !tree_ok(r, tnf_keys_add(&keys, (tnf_str) { v.as.s, v.n }, &twice, r->e)))
            return false;
        *plain = *plain && !twice;
        if (!read_value(r, t, &v) || !push_value(r, t, &v))
            return false;
    }
    return r->status == TNF_OK;
}

static bool read_map(tnf_msgpack *r, tnf_tree *t, tnf_value *out)
{
    size_t mark = tnf_tree_mark(t);
    bool plain = true;
    tnf_value v;
    if (!read_members(r, t, &plain))
        return false;
    if (!plain)
        return tree_ok(r, tnf_tree_pairs(t, mark, &v, r->e)) &&
               tree_ok(r, tnf_tree_wrap(t, "$pairs", &v, out, r->e));
    if (!tree_ok(r, tnf_tree_map(t, mark, &v, r->e)))
        return false;
    *out = v;
    return !tnf_msgpack_is_wrapper(&v) || tree_ok(r, tnf_tree_wrap(t, "$map", &v, out, r->e));
}

static bool read_value(tnf_msgpack *r, tnf_tree *t, tnf_value *out)
{
    *out = (tnf_value) { 0 };
    switch (tnf_msgpack_peek(r)) {
    case TNF_MSGPACK_UINT:
    case TNF_MSGPACK_INT:
    case TNF_MSGPACK_FLOAT:
        return read_number(r, out);
    case TNF_MSGPACK_BOOL:
        out->kind = TNF_BOOL;
        return tnf_msgpack_bool(r, &out->as.b);
    case TNF_MSGPACK_STR:
        return read_str(r, t, out);
    case TNF_MSGPACK_BIN:
        return read_bytes(r, t, out);
    case TNF_MSGPACK_EXT:
        return read_ext(r, t, out);
    case TNF_MSGPACK_ARRAY:
        return read_array(r, t, out);
    case TNF_MSGPACK_MAP:
        return read_map(r, t, out);
    default:
        return tnf_msgpack_skip(r, NULL); /* nil, or an error */
    }
}

bool tnf_msgpack_value(tnf_msgpack *r, tnf_value *out)
{
    tnf_tree t;
    tnf_tree_init(&t, r->arena);
    bool done = r->status == TNF_OK && read_value(r, &t, out);
    tnf_tree_free(&t);
    return done;
}
