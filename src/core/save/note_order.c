/* SPDX-License-Identifier: MIT */
/* Notes the order of attributes in the stash. A format may sort attributes, and stashed ones come
 * back after the others. So the keys are noted in their original order, unless they come back in
 * that order anyway. Also notes the order of tensors, if a format sorts them and another format
 * needs the order to write the same bytes again. restore_order.c reads the notes; it is a separate
 * file, so that a program that only reads links no planning code.
 *
 *   "order":["format","author"]            attributes of the file
 *   "orders":{"w":["scale","bits"]}        attributes of a tensor
 *   "sequence":["w","b#data"]              tensors, by their names in the file
 */
#include "core/save/plan.h"
#include "wire/cbor.h"
#include "wire/json.h"

/* Does the format sort the first after the second? */
static bool comes_later(const tnf_can *can, tnf_str a, tnf_str b)
{
    if (can->attrs != TNF_HOLDS_TYPED || !(can->sorted_maps || can->sorted_attrs))
        return false;
    return (can->sorted_maps ? tnf_cbor_compare(a, b) : tnf_str_compare(a, b)) > 0;
}

/* Attributes come back class by class: those with a native place in the format, text, the content
 * of the stash, and the text map as a whole. */
static int class_of(const struct planning *l, const char *listed, const tnf_member *m,
                    const tnf_object *of)
{
    const tnf_can *can = &l->format->can;
    bool text = can->attrs == TNF_HOLDS_TEXT && listed == can->file_attrs;
    if (text && m->value.kind == TNF_MAP && tnf_plan_text_map(m))
        return 3;
    if (of ? tnf_plan_places(l, m) : tnf_str_listed(m->key, listed))
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
        tnf_str key = members[i].key;
        if (tnf_registry_derives(&members[i]) || !tnf_utf8_valid(NULL, key.p, key.n))
            continue;
        if (put++)
            tnf_buf_u8(b, ',');
        tnf_json_put_string(b, key.p, key.n);
    }
}

void tnf_note_order(struct planning *l, const tnf_attrs *attrs)
{
    if (l->stashes && !comes_back(l, l->format->can.file_attrs, attrs->members, attrs->n, NULL))
        put_keys(&l->order, attrs->members, attrs->n);
}

void tnf_note_order_of(struct planning *l, const tnf_object *o)
{
    if (!l->stashes || !o->attrs || !tnf_utf8_valid(NULL, o->name.p, o->name.n) ||
        comes_back(l, l->format->can.object_attrs, o->attrs->as.members, o->attrs->n, o))
        return;
    tnf_plan_comma(&l->orders);
    tnf_json_put_string(&l->orders, o->name.p, o->name.n);
    tnf_buf_puts(&l->orders, ":[");
    put_keys(&l->orders, o->attrs->as.members, o->attrs->n);
    tnf_buf_u8(&l->orders, ']');
}

/* Does it come from a file in which the order of tensors is content? */
static bool is_ordered(const tnf_object *o)
{
    const struct tnf_origin *from = o->nparts ? o->parts->origin : NULL;
    return from && from->reader && from->reader->ordered;
}

/* When a changed tensor is restored, its place is that of its first piece. */
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
