/* SPDX-License-Identifier: MIT */
/* CBOR as trees. Items that a tree cannot express are kept as their encoded bytes.
 *
 * Recursion is limited by the reader's depth limit.
 */
#include "base/bytes.h"
#include "wire/cbor_head.h"

#include <string.h>

static bool read_value(tnf_cbor *r, tnf_tree *t, tnf_value *out);

/* Takes over the status of the tree. */
static bool tree_ok(tnf_cbor *r, tnf_status status)
{
    if (r->status == TNF_OK)
        r->status = status;
    return r->status == TNF_OK;
}

/* {"$cbor": bytes} */
static bool read_verbatim(tnf_cbor *r, tnf_tree *t, tnf_value *out)
{
    tnf_str raw;
    tnf_value bytes;
    return tnf_cbor_skip(r, &raw) && tree_ok(r, tnf_tree_text(t, TNF_BYTES, raw, &bytes, r->e)) &&
           tree_ok(r, tnf_tree_wrap(t, "$cbor", &bytes, out, r->e));
}

/* Must the next item, whose kind was peeked, be kept as bytes? */
static bool needs_verbatim(const tnf_cbor *r)
{
    return *r->p >> 5 == CBOR_TAG || *r->p == CBOR_UNDEFINED ||
           (*r->p == (CBOR_NEGATIVE << 5 | 27) && tnf_be64(r->p + 1) > INT64_MAX);
}

static bool read_integer(tnf_cbor *r, tnf_value *out)
{
    tnf_cbor_head h;
    if (!tnf_cbor_next_head(r, &h))
        return false;
    if (h.major == CBOR_NEGATIVE) /* a larger one was kept as bytes */
        *out = (tnf_value) { .kind = TNF_INT, .dtype = TNF_I64, .as.i = -1 - (int64_t)h.argument };
    else
        *out = (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = h.argument };
    return true;
}

static bool read_text(tnf_cbor *r, tnf_tree *t, tnf_kind kind, tnf_value *out)
{
    tnf_str s;
    return (kind == TNF_BYTES ? tnf_cbor_bytes : tnf_cbor_text)(r, &s) &&
           tree_ok(r, tnf_tree_text(t, kind, s, out, r->e));
}

static bool push_value(tnf_cbor *r, tnf_tree *t, const tnf_value *v)
{
    return tree_ok(r, tnf_tree_push(t, v, r->e));
}

static bool read_array(tnf_cbor *r, tnf_tree *t, tnf_value *out)
{
    tnf_cbor_scope scope;
    size_t mark = tnf_tree_mark(t);
    tnf_value v;
    tnf_cbor_enter_array(r, &scope);
    while (tnf_cbor_item(r, &scope))
        if (!read_value(r, t, &v) || !push_value(r, t, &v))
            return false;
    return r->status == TNF_OK && tree_ok(r, tnf_tree_array(t, mark, out, r->e));
}

/* Reads members up to the end, or up to a key that is not text: then *plain is false. */
static bool read_members(tnf_cbor *r, tnf_tree *t, bool *plain)
{
    tnf_cbor_scope scope;
    tnf_value name, v;
    tnf_cbor_enter_map(r, &scope);
    for (tnf_str key; tnf_cbor_key(r, &scope, &key);) {
        *plain = key.p != NULL;
        if (!*plain)
            return true;
        if (!tree_ok(r, tnf_tree_text(t, TNF_STRING, key, &name, r->e)) ||
            !push_value(r, t, &name) || !read_value(r, t, &v) || !push_value(r, t, &v))
            return false;
    }
    return r->status == TNF_OK;
}

static bool read_map(tnf_cbor *r, tnf_tree *t, tnf_value *out)
{
    size_t mark = tnf_tree_mark(t);
    unsigned depth = r->depth;
    const uint8_t *start = r->p;
    bool plain = true;
    tnf_value v;
    if (!read_members(r, t, &plain))
        return false;
    if (!plain) {
        tnf_tree_drop(t, mark);
        r->depth = depth;
        r->p = start;
        return read_verbatim(r, t, out);
    }
    if (!tree_ok(r, tnf_tree_map(t, mark, &v, r->e)))
        return false;
    *out = v;
    return !tnf_cbor_is_wrapper(&v, r->profile) ||
           tree_ok(r, tnf_tree_wrap(t, "$map", &v, out, r->e));
}

static bool read_value(tnf_cbor *r, tnf_tree *t, tnf_value *out)
{
    tnf_cbor_kind kind = tnf_cbor_peek(r);
    *out = (tnf_value) { 0 };
    if (kind != TNF_CBOR_END && needs_verbatim(r))
        return read_verbatim(r, t, out);
    switch (kind) {
    case TNF_CBOR_UINT:
    case TNF_CBOR_NEGATIVE:
        return read_integer(r, out);
    case TNF_CBOR_BYTES:
        return read_text(r, t, TNF_BYTES, out);
    case TNF_CBOR_TEXT:
        return read_text(r, t, TNF_STRING, out);
    case TNF_CBOR_ARRAY:
        return read_array(r, t, out);
    case TNF_CBOR_MAP:
        return read_map(r, t, out);
    case TNF_CBOR_FLOAT:
        out->kind = TNF_FLOAT;
        out->dtype = TNF_F64;
        return tnf_cbor_f64(r, &out->as.f64);
    case TNF_CBOR_BOOL:
        out->kind = TNF_BOOL;
        return tnf_cbor_bool(r, &out->as.b);
    default:
        return tnf_cbor_skip(r, NULL); /* null, or an error */
    }
}

bool tnf_cbor_value(tnf_cbor *r, tnf_value *out)
{
    tnf_tree t;
    tnf_tree_init(&t, r->arena);
    bool done = r->status == TNF_OK && read_value(r, &t, out);
    tnf_tree_free(&t);
    return done;
}
