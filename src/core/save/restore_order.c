/* SPDX-License-Identifier: MIT */
/* Puts attributes and tensors in the order that the stash notes (see note_order.c). */
#include "core/core.h"

#include <string.h>

/* Sorts the members in the order of the keys; members that are not listed come last. */
static tnf_status reorder_members(tnf_file *f, tnf_member *members, size_t n, const tnf_value *keys,
                                  tnf_error *e)
{
    const tnf_value map = { .kind = TNF_MAP, .n = n, .as.members = members };
    tnf_member *sorted = tnf_alloc(&f->alloc, (n + 1) * sizeof *sorted);
    tnf_hash h;
    size_t done = 0;
    if (!sorted)
        return tnf_no_memory("attributes", e);
    tnf_status status = tnf_index_members(&h, f, &map, e);
    for (size_t i = 0; i < keys->n && status == TNF_OK; i++) {
        const tnf_value *k = &keys->as.items[i];
        uint32_t at = k->kind == TNF_STRING ? tnf_hash_find(&h, k->as.s, k->n) : TNF_HASH_NONE;
        if (at == TNF_HASH_NONE || !members[at].key.p)
            continue; /* removed since, or listed twice */
        sorted[done++] = members[at];
        members[at].key = (tnf_str) { NULL, 0 };
    }
    for (size_t i = 0; i < n && status == TNF_OK; i++)
        if (members[i].key.p)
            sorted[done++] = members[i];
    if (status == TNF_OK)
        memcpy(members, sorted, n * sizeof *members);
    tnf_hash_free(&h);
    tnf_free(&f->alloc, sorted, (n + 1) * sizeof *sorted);
    return status;
}

static tnf_status restore_one(tnf_file *f, tnf_object *o, const tnf_value *keys, tnf_error *e)
{
    tnf_value *map = tnf_arena_alloc(&f->arena, sizeof *map);
    tnf_member *members = tnf_arena_array(&f->arena, o->attrs->n, sizeof *members);
    if (!map || !members)
        return tnf_arena_fail(&f->arena, "attributes", e);
    *map = *o->attrs;
    memcpy(members, map->as.members, map->n * sizeof *members);
    map->as.members = members;
    o->attrs = map;
    return reorder_members(f, members, map->n, keys, e);
}

/* Sorts the tensors in the order of their names in the file; tensors that are not listed come last.
 * Must be called before any tensor is restored. */
tnf_status tnf_restore_sequence(tnf_file *f, const tnf_value *stash, tnf_error *e)
{
    const tnf_value *names = tnf_value_get(stash, "sequence");
    tnf_catalog *c = &f->catalog;
    size_t done = 0;
    if (!names || names->kind != TNF_ARRAY || c->n < 2)
        return TNF_OK;
    tnf_object *sorted = tnf_alloc(&f->alloc, c->n * sizeof *sorted);
    if (!sorted)
        return tnf_no_memory("tensors", e);
    for (size_t i = 0; i < names->n; i++) {
        const tnf_value *k = &names->as.items[i];
        bool name = k->kind == TNF_STRING || k->kind == TNF_BYTES;
        uint32_t at = name ? tnf_hash_find(&c->names, k->as.s, k->n) : TNF_HASH_NONE;
        if (at == TNF_HASH_NONE || !c->objects[at].layout)
            continue; /* removed since, or listed twice */
        sorted[done++] = c->objects[at];
        c->objects[at].layout = NULL;
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->objects[i].layout)
            sorted[done++] = c->objects[i];
    memcpy(c->objects, sorted, c->n * sizeof *sorted);
    tnf_free(&f->alloc, sorted, c->n * sizeof *sorted);
    f->reader.ordered = true;
    return tnf_catalog_reindex(c, !(f->format->rules & TNF_RULE_NAMES_MAY_REPEAT), e);
}

tnf_status tnf_restore_order(tnf_file *f, const tnf_value *stash, tnf_error *e)
{
    const tnf_value *order = tnf_value_get(stash, "order");
    const tnf_value *orders = tnf_value_get(stash, "orders");
    tnf_attrs *attrs = &f->catalog.attrs;
    if (order && order->kind == TNF_ARRAY && attrs->n > 1) {
        TNF_TRY(reorder_members(f, attrs->members, attrs->n, order, e));
        tnf_attrs_moved(attrs);
    }
    for (size_t i = 0; orders && orders->kind == TNF_MAP && i < orders->n; i++) {
        const tnf_member *m = &orders->as.members[i];
        uint32_t at = tnf_hash_find(&f->catalog.names, m->key.p, m->key.n);
        if (at != TNF_HASH_NONE && m->value.kind == TNF_ARRAY && f->catalog.objects[at].attrs &&
            f->catalog.objects[at].attrs->n > 1)
            TNF_TRY(restore_one(f, &f->catalog.objects[at], &m->value, e));
    }
    return TNF_OK;
}
