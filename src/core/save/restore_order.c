/* SPDX-License-Identifier: MIT */
/* The order of attributes. A format may sort them, and what is stashed comes back behind the rest;
 * so their keys are noted in the order they had, unless they come back in it anyway. And the order
 * of tensors, if a format sorts them and another needs it to write the same bytes again.
 *
 *   "order":["format","author"]            of the file's
 *   "orders":{"w":["scale","bits"]}        of a tensor's
 *   "sequence":["w","b#data"]              tensors, as the file calls them
 */
#include "core/save/plan.h"
#include "wire/cbor.h"
#include "wire/json.h"

#include <string.h>

/* --------------------------------------------------------------- noting it */

/* Does the format put the first behind the second? */
static bool comes_later(const tnf_can *can, tnf_str a, tnf_str b)
{
    if (can->attrs != TNF_HOLDS_TYPED || !(can->sorted_maps || can->sorted_attrs))
        return false;
    return (can->sorted_maps ? tnf_cbor_compare(a, b) : tnf_str_compare(a, b)) > 0;
}

/* Attributes come back class by class: those with a place of their own in the format, text, what
 * is in the stash, and the text map as a whole. */
static int class_of(const struct planning *l, const char *listed, const tnf_member *m,
                    const tnf_object *of)
{
    const tnf_can *can = &l->format->can;
    bool text = can->attrs == TNF_HOLDS_TEXT && listed == can->file_attrs;
    if (text && m->value.kind == TNF_MAP && tnf_plan_text_map(m))
        return 3;
    if (of ? tnf_plan_places(l, m) : tnf_plan_listed(listed, m->key))
        return 0;
    if (text && (m->value.kind == TNF_STRING || m->value.kind == TNF_JSON))
        return 1;
    return can->attrs == TNF_HOLDS_TYPED && tnf_plan_holds(can, m, of) ? 0 : 2;
}

/* Are they in the order in which they will come back? */
static bool comes_back(const struct planning *l, const char *listed, const tnf_member *members,
                       size_t n, const tnf_object *of)
{
    const tnf_can *can = &l->format->can;
    const tnf_member *before = NULL;
    int class = 0;
    for (size_t i = 0; i < n; i++) {
        const tnf_member *m = &members[i];
        if (tnf_registry_derives(m))
            continue;
        int this = class_of(l, listed, m, of);
        if (this < class || (this == 0 && before && comes_later(can, before->key, m->key)))
            return false;
        class = this;
        before = m;
    }
    return true;
}

static void put_keys(tnf_buf *b, const tnf_member *members, size_t n)
{
    for (size_t i = 0, put = 0; i < n; i++) {
        if (tnf_registry_derives(&members[i]))
            continue;
        if (put++)
            tnf_buf_u8(b, ',');
        tnf_json_put_string(b, members[i].key.p, members[i].key.n);
    }
}

void tnf_note_order(struct planning *l, const tnf_attrs *attrs)
{
    if (l->stashes && !comes_back(l, l->format->can.file_attrs, attrs->members, attrs->n, NULL))
        put_keys(&l->order, attrs->members, attrs->n);
}

void tnf_note_order_of(struct planning *l, const tnf_object *o)
{
    if (!l->stashes || !o->attrs || !tnf_utf8_valid(o->name.p, o->name.n, NULL) ||
        comes_back(l, l->format->can.object_attrs, o->attrs->as.members, o->attrs->n, o))
        return;
    tnf_plan_comma(&l->orders);
    tnf_json_put_string(&l->orders, o->name.p, o->name.n);
    tnf_buf_puts(&l->orders, ":[");
    put_keys(&l->orders, o->attrs->as.members, o->attrs->n);
    tnf_buf_u8(&l->orders, ']');
}

/* Is it one of a file in which the order is content? */
static bool is_ordered(const tnf_object *o)
{
    const struct tnf_origin *from = o->nparts ? o->parts->origin : NULL;
    return from && from->reader && from->reader->ordered;
}

/* What a tensor became is, when it is whole again, where its first piece is. */
static size_t pieces_at(const struct planning *l, size_t i)
{
    return l->save->changes ? l->save->changes[i].pieces : 1u;
}

void tnf_note_sequence(struct planning *l)
{
    const tnf_catalog *c = l->fit.catalog;
    const tnf_object *last = NULL;
    bool ordered = false, moves = false;
    if (!l->stashes || !l->format->can.sorts)
        return;
    for (size_t i = 0; i < c->n; i += pieces_at(l, i)) {
        const tnf_object *o = &c->objects[i];
        if (o->nparts == 0 || l->fit.objects[i].fate == TNF_DROPPED)
            continue;
        ordered = ordered || is_ordered(o);
        moves = moves || (last && l->format->can.sorts(last, o) > 0);
        last = o;
    }
    for (size_t i = 0; i < c->n && ordered && moves; i += pieces_at(l, i)) {
        if (l->fit.objects[i].fate == TNF_DROPPED)
            continue;
        tnf_plan_comma(&l->sequence);
        tnf_plan_name(&l->sequence, c->objects[i].name);
    }
}

/* ------------------------------------------------------------ restoring it */

/* The members in the order of the keys, and those that are not listed behind them. */
static tnf_status reorder(tnf_file *f, tnf_member *members, size_t n, const tnf_value *keys,
                          tnf_error *e)
{
    const tnf_value map = { .kind = TNF_MAP, .n = n, .as.members = members };
    tnf_member *sorted = tnf_alloc(&f->alloc, (n + 1) * sizeof *sorted);
    tnf_hash h;
    size_t done = 0;
    if (!sorted)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for attributes");
    tnf_status status = tnf_index_members(&h, f, &map, e);
    for (size_t i = 0; i < keys->n && status == TNF_OK; i++) {
        const tnf_value *k = &keys->as.items[i];
        uint32_t at = k->kind == TNF_STRING ? tnf_hash_find(&h, k->as.s, k->n) : TNF_HASH_NONE;
        if (at == TNF_HASH_NONE || !members[at].key.p)
            continue; /* gone since, or listed twice */
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
    return reorder(f, members, map->n, keys, e);
}

/* The tensors in the order of their names, as the file has them, and those that are not listed
 * behind them. Before anything becomes what it was. */
tnf_status tnf_restore_sequence(tnf_file *f, const tnf_value *stash, tnf_error *e)
{
    const tnf_value *names = tnf_value_get(stash, "sequence");
    tnf_catalog *c = &f->catalog;
    size_t done = 0;
    if (!names || names->kind != TNF_ARRAY || c->n < 2)
        return TNF_OK;
    tnf_object *sorted = tnf_alloc(&f->alloc, c->n * sizeof *sorted);
    if (!sorted)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for tensors");
    for (size_t i = 0; i < names->n; i++) {
        const tnf_value *k = &names->as.items[i];
        bool name = k->kind == TNF_STRING || k->kind == TNF_BYTES;
        uint32_t at = name ? tnf_hash_find(&c->names, k->as.s, k->n) : TNF_HASH_NONE;
        if (at == TNF_HASH_NONE || !c->objects[at].layout)
            continue; /* gone since, or listed twice */
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
        TNF_TRY(reorder(f, attrs->members, attrs->n, order, e));
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
