/* SPDX-License-Identifier: MIT */
/* Attributes that are JSON in the file: "vs.attributes". They take values of any type, and forget
 * the widths of integers. */
#include "meta.h"
#include <string.h>

bool meta_in_json(const char *names, tnf_str key, tnf_str *name, tnf_str *rest)
{
    for (const char *p = names; p && *p; p += name->n, p += *p == ' ') {
        *name = (tnf_str) { p, strcspn(p, " ") };
        if (meta_begins(key, *name, rest))
            return true;
    }
    return false;
}

/* The recursion is bounded, since readers limit the depth of trees. */
bool meta_as_json(meta_editor *m, tnf_value *out, const tnf_value *v)
{
    bool map = v->kind == TNF_MAP;
    *out = *v;
    if (v->kind == TNF_INT || v->kind == TNF_UINT) {
        out->kind = v->kind == TNF_INT && v->as.i < 0 ? TNF_INT : TNF_UINT;
        out->dtype = out->kind == TNF_INT ? TNF_I64 : TNF_U64;
    }
    if (!map && v->kind != TNF_ARRAY)
        return true;
    tnf_member *members = map ? meta_take(m, v->n * sizeof *members) : NULL;
    tnf_value *items = map ? NULL : meta_take(m, v->n * sizeof *items);
    for (size_t i = 0; (members || items) && i < v->n; i++) {
        if (map)
            members[i].key = v->as.members[i].key;
        if (!meta_as_json(m, map ? &members[i].value : &items[i],
                          map ? &v->as.members[i].value : &v->as.items[i]))
            return false;
    }
    out->dtype = 0;
    if (map)
        out->as.members = members;
    else
        out->as.items = items;
    return members || items;
}
