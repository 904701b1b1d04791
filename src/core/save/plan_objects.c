/* SPDX-License-Identifier: MIT */
/* Planning of tensors: which of them the format takes, and which notes they need. adapt.c has made
 * all changes that lose nothing; a tensor that still does not fit is dropped. */
#include "core/save/plan.h"
#include "model/layout_rules.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------- attributes */

bool tnf_plan_places(const struct planning *l, const tnf_member *m)
{
    const tnf_can *can = &l->format->can;
    return tnf_str_listed(m->key, can->object_attrs) &&
           !(can->no_place && can->no_place(m, l->save->values));
}

static void stash_object_attr(struct planning *l, const tnf_object *o, const tnf_member *m,
                              bool *opened)
{
    if (!*opened) {
        tnf_plan_comma(&l->tensors);
        tnf_json_put_string(&l->tensors, o->name.p, o->name.n);
        tnf_buf_puts(&l->tensors, ":{");
        *opened = true;
    } else {
        tnf_buf_u8(&l->tensors, ',');
    }
    tnf_json_put_string(&l->tensors, m->key.p, m->key.n);
    tnf_buf_u8(&l->tensors, ':');
    tnf_json_put_typed(&l->tensors, &m->value);
}

/* `native`: attributes with a native place go there; else all of them are stashed. */
static void plan_object_attrs(struct planning *l, const tnf_object *o, bool native)
{
    const tnf_can *can = &l->format->can;
    bool opened = false;
    for (size_t i = 0; o->attrs && i < o->attrs->n; i++) {
        const tnf_member *m = &o->attrs->as.members[i];
        if (tnf_registry_derives(m) || (native && tnf_plan_places(l, m)))
            continue;
        if (native && can->attrs == TNF_HOLDS_TYPED && tnf_plan_holds(can, m, o)) {
            if (can->sorted_maps && !tnf_plan_in_order(&m->value))
                stash_object_attr(l, o, m, &opened);
            continue;
        }
        if (!l->stashes && tnf_registry_spells(m))
            continue;
        const char *why = !l->stashes ? l->no_place
                          : !tnf_utf8_valid(NULL, o->name.p, o->name.n)
                              ? "it cannot be kept, since the name of its tensor is not UTF-8"
                          : !tnf_plan_utf8(m) ? TNF_PLAN_NOT_UTF8
                                              : NULL;
        if (why) {
            tnf_plan_tell(l, TNF_DROPPED, "attribute", m->key, why);
            continue;
        }
        stash_object_attr(l, o, m, &opened);
        tnf_plan_tell(l, TNF_STASHED, "attribute", m->key, "kept in " TNF_STASH_KEY);
    }
    if (opened)
        tnf_buf_u8(&l->tensors, '}');
    tnf_note_order_of(l, o);
}

static bool attr_is_held(const tnf_can *can, const tnf_member *m, const tnf_object *of)
{
    return tnf_str_listed(m->key, can->object_attrs) ||
           (tnf_plan_holds(can, m, of) && !tnf_registry_derives(m));
}

/* A format with a typed tree gets only the attributes that it can hold. The others are stashed, or
 * computed again when the file is read. */
static tnf_status keep_held_attrs(struct planning *l, tnf_object *o, tnf_error *e)
{
    size_t n = o->attrs ? o->attrs->n : 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        kept += attr_is_held(&l->format->can, &o->attrs->as.members[i], o);
    if (kept == n)
        return TNF_OK;
    tnf_member *members = tnf_arena_array(&l->save->arena, kept, sizeof *members);
    tnf_value *map = tnf_arena_alloc(&l->save->arena, sizeof *map);
    if (!members || !map)
        return tnf_arena_fail(&l->save->arena, "attributes", e);
    *map = (tnf_value) { .kind = TNF_MAP, .n = kept, .as.members = members };
    for (size_t i = 0; i < n; i++)
        if (attr_is_held(&l->format->can, &o->attrs->as.members[i], o))
            *members++ = o->attrs->as.members[i];
    o->attrs = map;
    return TNF_OK;
}

/* ------------------------------------------------------------------ judge */

/* Why the format cannot hold the tensor at all, or NULL. */
static const char *why_not(struct planning *l, const tnf_object *o)
{
    const tnf_can *can = &l->format->can;
    if (!tnf_list_has(can->layouts, o->layout->id))
        return "the format has no such layout";
    for (uint16_t i = 0; i < o->nparts; i++) {
        if (!o->layout->block_bytes && !tnf_list_has(can->types, o->parts[i].type->id))
            return tnf_no_type(l->save, o->parts[i].type, "");
        if (o->parts[i].flags & TNF_PART_UNREADABLE && !(can->bare && can->bare(o)))
            return "its bytes cannot be read";
    }
    if (o->order == TNF_ORDER_F && !can->order_f && o->rank > 1)
        return "the format stores tensors only row by row";
    if (o->rank > TNF_DEFAULT_RANK && can->max_rank != TNF_ANY_RANK)
        return "it has more than 64 dimensions, which readers of the format refuse";
    if (tnf_str_listed(o->name, can->reserved))
        return "the format has another use for that name";
    if (can->ascii_names && !tnf_ascii(o->name.p, o->name.n))
        return "the format requires ASCII names";
    if (can->utf8_names && !tnf_utf8_valid(NULL, o->name.p, o->name.n))
        return "the format requires UTF-8 names";
    return NULL;
}

/* Is it hidden by a tensor of the same name? Only the one that a lookup finds is kept, or that one
 * and later ones if the format has a place for them. */
static bool is_hidden(const struct planning *l, const tnf_catalog *from, const tnf_object *o)
{
    const tnf_object *found = tnf_catalog_find(from, o->name.p, o->name.n);
    bool may = l->format->rules & TNF_RULE_NAMES_MAY_REPEAT;
    return found != o && !(may && found < o);
}

/* The fate of a tensor by itself. */
static tnf_verdict judge_tensor(struct planning *l, const tnf_catalog *from, const tnf_object *o)
{
    const tnf_can *can = &l->format->can;
    const char *why = is_hidden(l, from, o) ? "another tensor has the same name" : why_not(l, o);
    tnf_fate fate = why ? TNF_DROPPED : TNF_NATIVE;
    if (!why && can->takes)
        fate = can->takes(o, &why);
    return (tnf_verdict) { fate, fate == TNF_NATIVE ? "" : why };
}

/* Refuses big-endian blocks, whose fields cannot be converted: in any other file they would have
 * another meaning. */
static tnf_status check_blocks(const tnf_catalog *from, tnf_error *e)
{
    for (size_t i = 0; i < from->n; i++) {
        const tnf_object *o = &from->objects[i];
        if (o->layout->block_bytes && o->nparts && o->parts->flags & TNF_PART_BIG_ENDIAN)
            return tnf_fail(
                e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                "the blocks of %s are big-endian, a form of %s that no program supports",
                TNF_QUOTED(o->name), o->layout->id);
    }
    return TNF_OK;
}

/* The fates of all tensors, also considering the rest. */
tnf_status tnf_plan_judge(struct planning *l, tnf_error *e)
{
    tnf_arena *a = &l->save->arena;
    const tnf_catalog *from = l->fit.catalog;
    l->fit.options = l->save->values;
    l->fit.scratch = a;
    l->fit.extension = l->save->extension;
    l->fit.objects = tnf_arena_array(a, from->n, sizeof *l->fit.objects);
    l->fit.attrs = tnf_arena_array(a, from->attrs.n, sizeof *l->fit.attrs);
    if (!l->fit.objects || !l->fit.attrs)
        return tnf_arena_fail(a, "the plan", e);
    for (size_t i = 0; i < from->n; i++)
        l->fit.objects[i] = judge_tensor(l, from, &from->objects[i]);
    TNF_TRY(check_blocks(from, e));
    tnf_status status = TNF_OK;
    if (l->format->can.fits)
        TNF_CALL(status, e, l->format->can.fits, &l->fit);
    return status;
}

/* ------------------------------------------------------------------- keep */

static void put_text(tnf_buf *b, const char *key, const char *text)
{
    tnf_buf_printf(b, "\"%s\":", key);
    tnf_json_put_string(b, text, strlen(text));
}

/* Notes what restore_tensors.c needs to undo a change: the old tensor, and the new names of its
 * parts.
 *
 *   {"name":"v","layout":"strings/1","shape":[3],"parts":[{"role":"offsets","type":"u64",
 *    "as":"v#offsets"},…]}
 */
static void note_begin(tnf_buf *b, const tnf_object *was)
{
    tnf_plan_comma(b);
    tnf_buf_puts(b, "{\"name\":");
    tnf_plan_name(b, was->name);
    tnf_buf_u8(b, ',');
    put_text(b, "layout", was->layout->id);
    tnf_buf_puts(b, ",\"shape\":[");
    for (uint32_t d = 0; d < was->rank; d++)
        tnf_buf_printf(b, "%s%llu", d ? "," : "", (unsigned long long)was->shape[d]);
    tnf_buf_puts(b, "],\"parts\":[");
}

static void note_change(struct planning *l, const tnf_object *was, const tnf_object *now)
{
    tnf_buf *b = &l->objects;
    note_begin(b, was);
    for (uint16_t i = 0; i < was->nparts; i++) {
        const tnf_part *part = &was->parts[i];
        tnf_buf_puts(b, i ? ",{" : "{");
        put_text(b, "role", part->role);
        tnf_buf_u8(b, ',');
        put_text(b, "type", part->type->id);
        if (part->type->number == TNF_NUMBER_OPAQUE)
            tnf_buf_printf(b, ",\"bits\":%u", part->type->bits);
        if (part->type->number == TNF_NUMBER_OPAQUE &&
            part->type->storage != now[i].parts->type->storage)
            tnf_buf_printf(b, ",\"storage\":\"%s\"", tnf_type_of(part->type->storage)->id);
        tnf_buf_puts(b, ",\"as\":");
        tnf_plan_name(b, now[i].name);
        tnf_buf_u8(b, '}');
    }
    tnf_buf_puts(b, "]}");
}

static tnf_status keep_object(struct planning *l, const tnf_object *o, tnf_error *e)
{
    tnf_catalog *c = &l->save->planned;
    c->objects[c->n++] = *o;
    for (uint16_t i = 0; i < o->nparts; i++)
        l->save->total += o->parts[i].nbytes;
    return l->format->can.attrs == TNF_HOLDS_TYPED ? keep_held_attrs(l, &c->objects[c->n - 1], e)
                                                   : TNF_OK;
}

/* The message for a tensor that shares its bytes with another; "" if it does not. */
static const char *sharing_text(const struct planning *l, const tnf_object *o)
{
    const tnf_catalog *c = l->fit.catalog;
    uint32_t first = l->shared ? l->shared[o - c->objects] : 0;
    if (first == 0)
        return "";
    char text[200];
    snprintf(text, sizeof text, "%s the bytes of %.100s",
             l->format->can.shares ? "shares" : "gets a copy of",
             TNF_QUOTED(c->objects[first - 1].name));
    const char *why = tnf_arena_str(&l->save->arena, text, strlen(text));
    return why ? why : "";
}

/* For strings that the format pads to one length. The note that they were strings lets the tensor
 * come back unchanged. */
static tnf_status plan_padded(struct planning *l, const tnf_object *o, tnf_error *e)
{
    if (l->stashes) {
        tnf_buf *b = &l->objects;
        note_begin(b, o);
        tnf_buf_puts(b, "{\"role\":\"" TNF_ROLE_PADDED "\",\"as\":");
        tnf_plan_name(b, o->name);
        tnf_buf_puts(b, "}]}");
    }
    tnf_plan_tell(l, l->stashes ? TNF_STASHED : TNF_TRANSFORMED, "tensor", o->name,
                  "its strings are padded to one length");
    TNF_TRY(keep_object(l, o, e));
    plan_object_attrs(l, o, false);
    return TNF_OK;
}

/* Plans a tensor that is written unchanged, or in another order; both lose nothing. */
static tnf_status plan_object(struct planning *l, const tnf_object *o, tnf_verdict found,
                              const char *why, tnf_error *e)
{
    const char *unit = tnf_why_unit(l->save, o), *cast = tnf_cast_reason(o);
    const char *stays = tnf_uncast_reason(l->save, o);
    if (found.fate == TNF_NATIVE && l->format->can.pads_strings &&
        strcmp(o->layout->id, "strings/1") == 0)
        return plan_padded(l, o, e);
    if (found.fate == TNF_NATIVE && unit)
        tnf_plan_unasked(l, "tensor", o->name, unit);
    else if (found.fate == TNF_NATIVE && cast)
        tnf_plan_note(l, TNF_TRANSFORMED, "tensor", o->name, cast);
    else
        tnf_plan_tell(l, found.fate, "tensor", o->name,
                      found.fate != TNF_NATIVE ? found.why
                      : *why                   ? why
                      : *stays                 ? stays
                                               : sharing_text(l, o));
    if (found.fate == TNF_DROPPED)
        return TNF_OK;
    TNF_TRY(keep_object(l, o, e));
    plan_object_attrs(l, o, true);
    return TNF_OK;
}

/* Why the tensor that a changed one became is refused: its type was the beginning. */
static const char *changed_why(struct planning *l, const tnf_adaptation *change,
                               const tnf_object *o, const tnf_verdict *found)
{
    char more[250];
    if (found->fate != TNF_DROPPED || !(change->what & TNF_ADAPT_TYPE) ||
        change->what & TNF_ADAPT_PARTS)
        return found->why;
    snprintf(more, sizeof more, ", and does not take it as %s: %s", o->parts->type->id, found->why);
    return tnf_no_type(l->save, change->of->parts->type, more);
}

static bool all_kept(const tnf_verdict *found, uint16_t n)
{
    while (n > 0 && found[n - 1].fate != TNF_DROPPED)
        n--;
    return n == 0;
}

/* Plans a changed tensor, which may have become several: the change is noted so that it can be
 * undone, or reported as a change. */
static tnf_status plan_changed(struct planning *l, const tnf_adaptation *change,
                               const tnf_object *o, const tnf_verdict *found, tnf_error *e)
{
    const tnf_object *was = change->of;
    bool whole = all_kept(found, change->pieces);
    bool noted = whole && l->stashes;
    if (noted)
        note_change(l, was, o);
    if (whole)
        tnf_plan_tell(l, noted ? TNF_STASHED : TNF_TRANSFORMED, "tensor", was->name,
                      tnf_adapt_reason(l->save, change, o));
    for (uint16_t i = 0; i < change->pieces; i++) {
        if (!whole || found[i].fate != TNF_NATIVE)
            tnf_plan_tell(l, found[i].fate == TNF_DROPPED ? TNF_DROPPED : TNF_TRANSFORMED, "tensor",
                          o[i].name,
                          found[i].fate == TNF_NATIVE ? "not all of its parts can be kept"
                                                      : changed_why(l, change, &o[i], &found[i]));
        if (found[i].fate != TNF_DROPPED)
            TNF_TRY(keep_object(l, &o[i], e));
    }
    plan_object_attrs(l, was, !(change->what & TNF_ADAPT_PARTS));
    return TNF_OK;
}

tnf_status tnf_plan_objects(struct planning *l, tnf_error *e)
{
    const tnf_catalog *from = l->fit.catalog;
    const tnf_adaptation *changes = l->save->changes;
    for (size_t i = 0; i < from->n; i += changes ? changes[i].pieces : 1u) {
        const tnf_object *o = &from->objects[i];
        const tnf_verdict *found = &l->fit.objects[i];
        if (tnf_is_filler(changes ? changes[i].of : o))
            continue;
        if (changes && changes[i].what & ~(unsigned)TNF_ADAPT_ORDER)
            TNF_TRY(plan_changed(l, &changes[i], o, found, e));
        else
            TNF_TRY(plan_object(l, o, *found,
                                changes ? tnf_adapt_reason(l->save, &changes[i], o) : "", e));
    }
    for (size_t i = 0; i < from->n; i++)
        if (l->fit.objects[i].fate == TNF_NATIVE && *l->fit.objects[i].why)
            tnf_plan_remark(l, from->objects[i].name, l->fit.objects[i].why);
    return TNF_OK;
}
