/* SPDX-License-Identifier: MIT */
/* Decides what can be written: names of 1 to 1024 bytes without a NUL, text in UTF-8, trees within
 * the limit of depth. A tensor with another name is dropped completely, an attribute alone. */
#include "formats/ztensor2/zt2.h"

static bool is_utf8(tnf_str s)
{
    return tnf_utf8_valid(NULL, s.p, s.n);
}

/* Is the value nested at most `left` deep? Wrappers do not count (wire/cbor.h). */
static bool value_ok(const tnf_value *v, unsigned left)
{
    for (const tnf_value *inner; (inner = tnf_tree_wrapped(v, "$map"));)
        v = inner;
    switch (v->kind) {
    case TNF_STRING:
    case TNF_JSON:
        return tnf_utf8_valid(NULL, v->as.s, v->n);
    case TNF_ARRAY:
        for (size_t i = 0; i < v->n; i++)
            if (left == 0 || !value_ok(&v->as.items[i], left - 1))
                return false;
        return true;
    case TNF_MAP:
        for (size_t i = 0; i < v->n; i++)
            if (left == 0 || !is_utf8(v->as.members[i].key) ||
                !value_ok(&v->as.members[i].value, left - 1))
                return false;
        return true;
    default:
        return true;
    }
}

bool tnf_zt2_attr_ok(const tnf_member *attr, unsigned depth)
{
    return zt2_name_ok(attr->key) && is_utf8(attr->key) &&
           value_ok(&attr->value, ZT2_MAX_DEPTH - depth);
}

tnf_fate tnf_zt2_takes(const tnf_object *o, const char **reason)
{
    *reason = !zt2_name_ok(o->name)    ? "names must have 1 to 1024 bytes without a NUL"
              : o->rank > ZT2_MAX_RANK ? "tensors can have at most 64 dimensions"
              : o->nparts == 0         ? "tensors must have at least one part"
                                       : NULL;
    for (uint16_t i = 0; i < o->nparts && !*reason; i++)
        if (!zt2_name_ok((tnf_str) { o->parts[i].role, strlen(o->parts[i].role) }))
            *reason = "parts must have names of 1 to 1024 bytes";
    if (*reason)
        return TNF_DROPPED;
    for (size_t i = 0; o->attrs && i < o->attrs->n && !*reason; i++)
        if (!tnf_zt2_attr_ok(&o->attrs->as.members[i], ZT2_OBJECT_ATTRS))
            *reason = "an attribute is left out: its name does not have 1 to 1024 bytes, or one of "
                      "its texts is not UTF-8, or it is nested too deep";
    return *reason ? TNF_TRANSFORMED : TNF_NATIVE;
}

tnf_status tnf_zt2_fits(tnf_fit *fit, tnf_error *e)
{
    (void)e;
    const tnf_attrs *attrs = &fit->catalog->attrs;
    for (size_t i = 0; i < attrs->n; i++)
        if (!tnf_zt2_attr_ok(&attrs->members[i], ZT2_FILE_ATTRS))
            fit->attrs[i] = (tnf_verdict) {
                TNF_DROPPED, "attributes must have names of 1 to 1024 bytes and UTF-8 values, and "
                             "at most 32 levels of maps and arrays, with the file's own"
            };
    return TNF_OK;
}
