/* SPDX-License-Identifier: MIT */
/* Fitting a catalog to what a format can hold, item by item: native, stashed, transformed, dropped.
 *
 * What has no place of its own goes to the format's text map, if it has one: strings under their
 * own key, the rest in one entry, the stash, as JSON with exact types:
 *
 *   tenfold.stash = {"attrs":{…},"kinds":{"gptrs.config":"json"},"tensors":{"w":{…}}}
 *
 * raise.c takes it all back when the file is opened.
 */
#include "core/save.h"
#include "wire/cbor.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

#define STASH_MAX ((uint64_t)64 << 20)
#define METADATA  ".metadata"

struct lowering {
    struct tnf_save *save;
    const tnf_format *format;
    tnf_buf attrs, kinds, tensors; /* the members of the stash, separated by commas */
    tnf_hash keys;                 /* of save->text */
    tnf_fit fit;
    uint64_t refused;
    char first[160]; /* the first thing that would be lost */
};

/* ------------------------------------------------------------------- plan */

static bool may_lose(const tnf_save_options *o, const char *kind)
{
    if (!o->allow_loss || !o->loss)
        return o->allow_loss;
    size_t n = strlen(kind);
    for (const char *p = o->loss; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, kind, n) == 0 && (p[n] == 0 || p[n] == ','))
            return true;
    }
    return false;
}

static void tell(struct lowering *l, tnf_fate fate, const char *kind, tnf_str name,
                 const char *reason)
{
    const tnf_save_options *o = &l->save->options;
    if (o->plan)
        o->plan(o->ctx, &(tnf_plan_item) { fate, kind, name, reason });
    if (fate < TNF_TRANSFORMED || may_lose(o, kind))
        return;
    if (l->refused++ == 0)
        snprintf(l->first, sizeof l->first, "%s %s: %s", kind, TNF_QUOTED(name), reason);
}

/* ------------------------------------------------------------------ stash */

static void comma(tnf_buf *b)
{
    if (b->n)
        tnf_buf_u8(b, ',');
}

static void stash_member(tnf_buf *b, const tnf_member *m)
{
    comma(b);
    tnf_json_put_string(b, m->key.p, m->key.n);
    tnf_buf_u8(b, ':');
    tnf_json_put_typed(b, &m->value);
}

static tnf_str text_key(const void *ctx, uint32_t position)
{
    return ((const tnf_attrs *)ctx)->members[position].key;
}

/* The first of two entries under one key stays. */
static tnf_status push_text(struct lowering *l, tnf_str key, const char *p, size_t n, tnf_error *e)
{
    tnf_attrs *text = &l->save->text;
    TNF_TRY(tnf_attrs_push(text, key.p, tnf_value_str(TNF_STRING, p, n), e));
    text->members[text->n - 1].key.n = key.n;
    uint32_t previous;
    if (!tnf_hash_add(&l->keys, (uint32_t)text->n - 1, false, &previous))
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for metadata");
    if (previous != TNF_HASH_NONE) {
        text->n--;
        if (!tnf_value_equal(&text->members[previous].value, &text->members[text->n].value))
            tell(l, TNF_DROPPED, "attribute", key, "another entry has the same key");
    }
    return TNF_OK;
}

/* Can a typed tree say it exactly? */
static bool is_plain(const tnf_value *v)
{
    switch (v->kind) {
    case TNF_INT: /* others come back unsigned */
        return v->dtype == TNF_I64 && v->as.i < 0;
    case TNF_UINT:
        return v->dtype == TNF_U64;
    case TNF_FLOAT:
        return v->dtype == TNF_F64;
    case TNF_ARRAY:
        for (size_t i = 0; i < v->n; i++)
            if (!is_plain(&v->as.items[i]))
                return false;
        return true;
    case TNF_MAP:
        for (size_t i = 0; i < v->n; i++)
            if (!is_plain(&v->as.members[i].value))
                return false;
        return true;
    default:
        return v->kind != TNF_JSON;
    }
}

/* Do its maps stand in the order that a format with sorted maps gives them back in? If not, they
 * are kept natively and, for the order, in the stash as well. */
static bool in_order(const tnf_value *v)
{
    for (size_t i = 0; v->kind == TNF_ARRAY && i < v->n; i++)
        if (!in_order(&v->as.items[i]))
            return false;
    for (size_t i = 0; v->kind == TNF_MAP && i < v->n; i++) {
        const tnf_member *m = &v->as.members[i];
        if ((i > 0 && tnf_cbor_compare(m[-1].key, m->key) > 0) || !in_order(&m->value))
            return false;
    }
    return true;
}

static tnf_status keep_attr(struct lowering *l, const tnf_member *m, tnf_kind kind, tnf_error *e)
{
    tnf_value v = m->value;
    v.kind = (uint8_t)kind;
    return tnf_attrs_set(&l->save->lowered.attrs, m->key.p, m->key.n, v, e);
}

static void note_kind(struct lowering *l, const tnf_member *m)
{
    comma(&l->kinds);
    tnf_json_put_string(&l->kinds, m->key.p, m->key.n);
    tnf_buf_puts(&l->kinds, m->value.kind == TNF_JSON ? ":\"json\"" : ":\"string\"");
}

static tnf_status put_part_of_stash(tnf_buf *all, const char *name, tnf_buf *part, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(part, "stash", e));
    if (part->n == 0)
        return TNF_OK;
    tnf_buf_printf(all, "%s\"%s\":{", all->n > 1 ? "," : "", name);
    tnf_buf_put(all, part->p, part->n);
    tnf_buf_u8(all, '}');
    return TNF_OK;
}

static tnf_status finish_stash(struct lowering *l, tnf_error *e)
{
    tnf_buf all;
    tnf_buf_init(&all, &l->save->arena.alloc, STASH_MAX);
    tnf_buf_u8(&all, '{');
    tnf_status status = put_part_of_stash(&all, "attrs", &l->attrs, e);
    if (status == TNF_OK)
        status = put_part_of_stash(&all, "kinds", &l->kinds, e);
    if (status == TNF_OK)
        status = put_part_of_stash(&all, "tensors", &l->tensors, e);
    bool empty = all.n == 1;
    tnf_buf_u8(&all, '}');
    if (status == TNF_OK)
        status = tnf_buf_status(&all, "stash", e);
    if (status == TNF_OK && !empty) {
        const char *text = tnf_arena_str(&l->save->arena, all.p, all.n);
        tnf_str key = { TNF_STASH_KEY, sizeof TNF_STASH_KEY - 1 };
        tnf_member m = { key, tnf_value_str(TNF_STRING, text, all.n) };
        if (!text)
            status = tnf_arena_fail(&l->save->arena, "the stash", e);
        else if (l->format->can.attrs == TNF_HOLDS_TYPED)
            status = keep_attr(l, &m, TNF_STRING, e);
        else
            status = push_text(l, key, text, all.n, e);
    }
    tnf_buf_free(&all);
    return status;
}

/* -------------------------------------------------------- file attributes */

static bool is_text(const tnf_value *v)
{
    return (v->kind == TNF_STRING || v->kind == TNF_JSON) && tnf_utf8_valid(v->as.s, v->n, NULL);
}

/* "<family>.metadata", a map of strings: some format's whole text map. */
static bool is_text_map(const tnf_member *m)
{
    size_t n = sizeof METADATA - 1;
    if (m->value.kind != TNF_MAP || m->key.n < n ||
        memcmp(m->key.p + m->key.n - n, METADATA, n) != 0)
        return false;
    for (size_t i = 0; i < m->value.n; i++)
        if (m->value.as.members[i].value.kind != TNF_STRING ||
            !is_text(&m->value.as.members[i].value))
            return false;
    return true;
}

static bool list_has(const char *list, tnf_str key)
{
    char text[128];
    if (!list || key.n >= sizeof text)
        return false;
    memcpy(text, key.p, key.n);
    text[key.n] = 0;
    return tnf_list_has(list, text);
}

static tnf_status lower_text_map(struct lowering *l, const tnf_member *m, tnf_error *e)
{
    for (size_t i = 0; i < m->value.n; i++) {
        const tnf_member *pair = &m->value.as.members[i];
        TNF_TRY(push_text(l, pair->key, pair->value.as.s, pair->value.n, e));
    }
    tell(l, TNF_NATIVE, "attribute", m->key, "");
    return TNF_OK;
}

static tnf_status lower_to_text(struct lowering *l, const tnf_member *m, tnf_error *e)
{
    if (!is_text(&m->value)) {
        stash_member(&l->attrs, m);
        tell(l, TNF_STASHED, "attribute", m->key, "kept in " TNF_STASH_KEY);
        return TNF_OK;
    }
    /* Without a word on its kind it would come back as the format's own metadata, unless its key
     * tells whose it is. */
    if (m->value.kind == TNF_JSON || !tnf_registry_owns(m->key.p, m->key.n))
        note_kind(l, m);
    tell(l, TNF_STASHED, "attribute", m->key, "kept as text");
    return push_text(l, m->key, m->value.as.s, m->value.n, e);
}

static tnf_status lower_typed(struct lowering *l, const tnf_member *m, tnf_error *e)
{
    if (is_plain(&m->value)) {
        if (l->format->can.sorted_maps && !in_order(&m->value))
            stash_member(&l->attrs, m);
        tell(l, TNF_NATIVE, "attribute", m->key, "");
        return keep_attr(l, m, m->value.kind, e);
    }
    if (m->value.kind == TNF_JSON) {
        note_kind(l, m);
        tell(l, TNF_STASHED, "attribute", m->key, "kept as text");
        return keep_attr(l, m, TNF_STRING, e);
    }
    stash_member(&l->attrs, m);
    tell(l, TNF_STASHED, "attribute", m->key, "kept in " TNF_STASH_KEY);
    return TNF_OK;
}

static tnf_status lower_attr(struct lowering *l, const tnf_member *m, tnf_verdict found,
                             tnf_error *e)
{
    const tnf_can *can = &l->format->can;
    if (found.fate == TNF_DROPPED) {
        tell(l, TNF_DROPPED, "attribute", m->key, found.why);
        return TNF_OK;
    }
    if (list_has(can->file_attrs, m->key)) {
        if (can->attrs == TNF_HOLDS_TEXT && is_text_map(m))
            return lower_text_map(l, m, e);
        tell(l, found.fate, "attribute", m->key, found.why ? found.why : "");
        return keep_attr(l, m, m->value.kind, e);
    }
    if (tnf_registry_derives(m))
        return TNF_OK;
    if (can->attrs == TNF_HOLDS_TYPED)
        return lower_typed(l, m, e);
    if (can->attrs == TNF_HOLDS_TEXT)
        return is_text_map(m) ? lower_text_map(l, m, e) : lower_to_text(l, m, e);
    tell(l, TNF_DROPPED, "attribute", m->key, "the format has no place for metadata");
    return TNF_OK;
}

/* ---------------------------------------------------------------- objects */

static void stash_object_attr(struct lowering *l, const tnf_object *o, const tnf_member *m,
                              bool *opened)
{
    if (!*opened) {
        comma(&l->tensors);
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

static void lower_object_attrs(struct lowering *l, const tnf_object *o)
{
    const tnf_can *can = &l->format->can;
    bool opened = false;
    for (size_t i = 0; o->attrs && i < o->attrs->n; i++) {
        const tnf_member *m = &o->attrs->as.members[i];
        if (list_has(can->object_attrs, m->key) || tnf_registry_derives(m))
            continue;
        if (can->attrs == TNF_HOLDS_TYPED && is_plain(&m->value)) {
            if (can->sorted_maps && !in_order(&m->value))
                stash_object_attr(l, o, m, &opened);
            continue;
        }
        if (can->attrs == TNF_HOLDS_NONE) {
            tell(l, TNF_DROPPED, "attribute", m->key, "the format has no place for metadata");
            continue;
        }
        stash_object_attr(l, o, m, &opened);
        tell(l, TNF_STASHED, "attribute", m->key, "kept in " TNF_STASH_KEY);
    }
    if (opened)
        tnf_buf_u8(&l->tensors, '}');
}

static bool held(const tnf_can *can, const tnf_member *m)
{
    return list_has(can->object_attrs, m->key) || (is_plain(&m->value) && !tnf_registry_derives(m));
}

/* A format with a typed tree gets what it can hold and no more: the rest is stashed, or computed
 * again when the file is read. */
static tnf_status keep_held_attrs(struct lowering *l, tnf_object *o, tnf_error *e)
{
    size_t n = o->attrs ? o->attrs->n : 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        kept += held(&l->format->can, &o->attrs->as.members[i]);
    if (kept == n)
        return TNF_OK;
    tnf_member *members = tnf_arena_array(&l->save->arena, kept, sizeof *members);
    tnf_value *map = tnf_arena_alloc(&l->save->arena, sizeof *map);
    if (!members || !map)
        return tnf_arena_fail(&l->save->arena, "attributes", e);
    *map = (tnf_value) { .kind = TNF_MAP, .n = kept, .as.members = members };
    for (size_t i = 0; i < n; i++)
        if (held(&l->format->can, &o->attrs->as.members[i]))
            *members++ = o->attrs->as.members[i];
    o->attrs = map;
    return TNF_OK;
}

/* Why the format cannot hold the tensor at all, or NULL. */
static const char *why_not(const tnf_can *can, const tnf_object *o)
{
    if (!tnf_list_has(can->layouts, o->layout->id))
        return "the format has no such layout";
    for (uint16_t i = 0; i < o->nparts; i++) {
        if (!tnf_list_has(can->types, o->parts[i].type->id))
            return "the format has no such type";
        if (o->parts[i].flags & TNF_PART_UNREADABLE)
            return "its bytes cannot be read";
    }
    if (o->order == TNF_ORDER_F && !can->order_f && o->rank > 1)
        return "the format is row-major only";
    if (can->ascii_names && !tnf_ascii(o->name.p, o->name.n))
        return "the format wants ASCII names";
    if (can->utf8_names && !tnf_utf8_valid(o->name.p, o->name.n, NULL))
        return "the format wants UTF-8 names";
    return NULL;
}

/* Of several tensors with one name, only the one that is found is kept, or it and those after it
 * where the format has a place for them. */
static bool is_hidden(const struct lowering *l, const tnf_catalog *from, const tnf_object *o)
{
    const tnf_object *found = tnf_catalog_find(from, o->name.p, o->name.n);
    bool may = l->format->rules & TNF_RULE_NAMES_MAY_REPEAT;
    return found != o && !(may && found < o);
}

/* What becomes of a tensor by itself. */
static tnf_verdict judge(const struct lowering *l, const tnf_catalog *from, const tnf_object *o)
{
    const tnf_can *can = &l->format->can;
    const char *why = is_hidden(l, from, o) ? "another tensor has the same name" : why_not(can, o);
    tnf_fate fate = why ? TNF_DROPPED : TNF_NATIVE;
    if (!why && can->takes)
        fate = can->takes(o, &why);
    return (tnf_verdict) { fate, fate == TNF_NATIVE ? "" : why };
}

/* And in view of the rest. */
static tnf_status judge_all(struct lowering *l, const tnf_catalog *from, tnf_error *e)
{
    tnf_arena *a = &l->save->arena;
    l->fit = (tnf_fit) { .catalog = from, .options = l->save->values, .scratch = a };
    l->fit.objects = tnf_arena_array(a, from->n, sizeof *l->fit.objects);
    l->fit.attrs = tnf_arena_array(a, from->attrs.n, sizeof *l->fit.attrs);
    if (!l->fit.objects || !l->fit.attrs)
        return tnf_arena_fail(a, "the plan", e);
    for (size_t i = 0; i < from->n; i++)
        l->fit.objects[i] = judge(l, from, &from->objects[i]);
    return l->format->can.fits ? l->format->can.fits(&l->fit, e) : TNF_OK;
}

static tnf_status lower_object(struct lowering *l, const tnf_object *o, tnf_verdict found,
                               tnf_error *e)
{
    static const uint64_t one[] = { 1 };
    const tnf_can *can = &l->format->can;
    if (found.fate == TNF_DROPPED) {
        tell(l, TNF_DROPPED, "tensor", o->name, found.why);
        return TNF_OK;
    }
    tnf_catalog *c = &l->save->lowered;
    c->objects[c->n] = *o;
    if (o->rank == 0 && !can->zero_rank) {
        c->objects[c->n].rank = 1;
        c->objects[c->n].shape = one;
        tell(l, TNF_TRANSFORMED, "tensor", o->name, "a scalar becomes a tensor of shape [1]");
    } else {
        tell(l, found.fate, "tensor", o->name, found.why);
    }
    c->n++;
    for (uint16_t i = 0; i < o->nparts; i++)
        l->save->total += o->parts[i].nbytes;
    lower_object_attrs(l, o);
    return can->attrs == TNF_HOLDS_TYPED ? keep_held_attrs(l, &c->objects[c->n - 1], e) : TNF_OK;
}

/* Extras are somebody's bytes in somebody's place: only their own family can put them back. */
static tnf_status lower_extra(struct lowering *l, const tnf_extra *x, tnf_error *e)
{
    size_t n = strlen(l->format->family);
    bool own = x->key.n > n && memcmp(x->key.p, l->format->family, n) == 0 && x->key.p[n] == '.';
    if (!own || !l->format->can.extras) {
        tell(l, TNF_DROPPED, "extra", x->key, "the format has no place for it");
        return TNF_OK;
    }
    tell(l, TNF_NATIVE, "extra", x->key, "");
    return tnf_catalog_add_extra(&l->save->lowered, x, e);
}

/* -------------------------------------------------------------------- all */

static tnf_status lower_all(struct lowering *l, const tnf_catalog *from, tnf_error *e)
{
    TNF_TRY(judge_all(l, from, e));
    for (size_t i = 0; i < from->attrs.n; i++)
        TNF_TRY(lower_attr(l, &from->attrs.members[i], l->fit.attrs[i], e));
    for (size_t i = 0; i < from->n; i++)
        TNF_TRY(lower_object(l, &from->objects[i], l->fit.objects[i], e));
    for (size_t i = 0; i < from->nextras; i++)
        TNF_TRY(lower_extra(l, &from->extras[i], e));
    TNF_TRY(finish_stash(l, e));
    if (l->refused)
        return tnf_fail(e, TNF_ELOSSY, TNF_NO_OFFSET,
                        "%llu thing%s would be lost or changed (%s); allow it or choose another "
                        "format",
                        (unsigned long long)l->refused, l->refused > 1 ? "s" : "", l->first);
    return TNF_OK;
}

tnf_status tnf_lower(struct tnf_save *save, const tnf_catalog *from, tnf_error *e)
{
    struct lowering l = { .save = save, .format = save->format };
    tnf_arena *a = &save->arena;
    save->text.arena = a;
    save->lowered.arena = save->lowered.attrs.arena = a;
    save->lowered.objects = tnf_arena_array(a, from->n, sizeof *save->lowered.objects);
    if (!save->lowered.objects)
        return tnf_arena_fail(a, "the list of tensors", e);
    tnf_hash_init(&l.keys, &a->alloc, text_key, &save->text);
    tnf_buf_init(&l.attrs, &a->alloc, STASH_MAX);
    tnf_buf_init(&l.kinds, &a->alloc, STASH_MAX);
    tnf_buf_init(&l.tensors, &a->alloc, STASH_MAX);
    tnf_status status = lower_all(&l, from, e);
    tnf_buf_free(&l.attrs);
    tnf_buf_free(&l.kinds);
    tnf_buf_free(&l.tensors);
    tnf_hash_free(&l.keys);
    return status;
}
