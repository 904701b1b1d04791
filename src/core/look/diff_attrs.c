/* SPDX-License-Identifier: MIT */
/* Compares attributes as the content hash does: without attributes that readers compute, with the
 * text maps of all formats under one name, and with the keys of maps in any order. Maps are
 * compared entry by entry, so that only the entry that differs is reported. */
#include "core/look/diff.h"
#include "wire/cbor.h"

#include <string.h>

struct walk {
    struct diff *d;
    const tnf_object *a_of, *b_of;
    uint64_t *found;
};

/* A sorted copy of the compared attributes. */
static tnf_status comparable_map(tnf_value *out, const tnf_value *map, tnf_arena *a, tnf_error *e)
{
    size_t n;
    tnf_member *members;
    TNF_TRY(tnf_content_attrs(&members, &n, map, a, e));
    tnf_value all = { .kind = TNF_MAP, .n = n };
    all.as.members = members;
    TNF_TRY(tnf_value_copy(out, &all, a, UINT32_MAX, e));
    tnf_sort_maps(out);
    return TNF_OK;
}

/* Makes "before.key"; `before` may be empty. */
static tnf_status join_key(tnf_str *out, tnf_str before, tnf_str key, tnf_arena *a, tnf_error *e)
{
    size_t n = before.n + (before.n ? 1 : 0) + key.n;
    char *text = tnf_arena_alloc(a, n + 1);
    if (!text)
        return tnf_arena_fail(a, "the name of an attribute", e);
    if (before.n) {
        memcpy(text, before.p, before.n);
        text[before.n] = '.';
    }
    if (key.n)
        memcpy(text + n - key.n, key.p, key.n);
    *out = (tnf_str) { text, n };
    return TNF_OK;
}

static tnf_status compare_maps(struct walk *w, tnf_str path, const tnf_value *a, const tnf_value *b,
                               tnf_error *e);

/* Either may be NULL. The depth of trees was limited when they were read. */
static tnf_status compare_values(struct walk *w, tnf_str path, tnf_str key, const tnf_value *a,
                                 const tnf_value *b, tnf_error *e)
{
    if (a && b && tnf_value_equal(a, b))
        return TNF_OK;
    TNF_TRY(join_key(&path, path, key, w->d->arena, e));
    if (a && b && a->kind == TNF_MAP && b->kind == TNF_MAP)
        return compare_maps(w, path, a, b, e);
    ++*w->found;
    tnf_diff_tell(w->d, &(tnf_difference) { .kind = TNF_DIFF_ATTRIBUTE,
                                            .a = w->a_of,
                                            .b = w->b_of,
                                            .key = path,
                                            .a_value = a,
                                            .b_value = b });
    return TNF_OK;
}

static tnf_status compare_maps(struct walk *w, tnf_str path, const tnf_value *a, const tnf_value *b,
                               tnf_error *e)
{
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        const tnf_member *x = i < a->n ? &a->as.members[i] : NULL;
        const tnf_member *y = k < b->n ? &b->as.members[k] : NULL;
        int order = x && y ? tnf_cbor_compare(x->key, y->key) : x ? -1 : 1;
        const tnf_member *p = order <= 0 ? x : NULL, *q = order >= 0 ? y : NULL;
        TNF_TRY(compare_values(w, path,
                               p   ? p->key
                               : q ? q->key
                                   : path,
                               p ? &p->value : NULL, q ? &q->value : NULL, e));
        i += order <= 0;
        k += order >= 0;
    }
    return TNF_OK;
}

tnf_status tnf_diff_attrs(struct diff *d, const tnf_object *a_of, const tnf_object *b_of,
                          const tnf_value *a, const tnf_value *b, uint64_t *found, tnf_error *e)
{
    struct walk w = { d, a_of, b_of, found };
    tnf_value x, y;
    *found = 0;
    if ((!a || a->n == 0) && (!b || b->n == 0))
        return TNF_OK;
    TNF_TRY(comparable_map(&x, a, d->arena, e));
    TNF_TRY(comparable_map(&y, b, d->arena, e));
    return compare_maps(&w, (tnf_str) { "", 0 }, &x, &y, e);
}
