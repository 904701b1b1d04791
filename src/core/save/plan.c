/* SPDX-License-Identifier: MIT */
/* Fitting a catalog to what a format can hold, item by item: native, stashed, transformed, dropped.
 *
 * Attributes without a place of their own go to the format's text map, if it has one: strings under
 * their own key, the others in one entry, the stash, as JSON with exact types:
 *
 *   tenfold.stash = {"attrs":{…},"kinds":{"gptrs.config":"json"},"tensors":{"w":{…}},
 *                    "objects":[…],"order":[…],"orders":{…},"foreign":[…],"sequence":[…]}
 *
 * A format without any metadata may hold the stash as a tensor of that name. restore.c restores
 * everything when the file is opened.
 */
#include "core/save/plan.h"
#include "wire/cbor.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

#define STASH_MAX ((uint64_t)64 << 20)
#define METADATA  ".metadata"

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

void tnf_plan_note(const struct planning *l, tnf_fate fate, const char *kind, tnf_str name,
                   const char *reason)
{
    const tnf_save_options *o = &l->save->options;
    if (o->plan)
        o->plan(o->ctx,
                &(tnf_plan_item) { .fate = fate, .kind = kind, .name = name, .reason = reason });
}

void tnf_plan_remark(const struct planning *l, tnf_str tensor, const char *reason)
{
    const tnf_save_options *o = &l->save->options;
    if (o->plan)
        o->plan(o->ctx, &(tnf_plan_item) {
                            .kind = "tensor", .name = tensor, .reason = reason, .note = true });
}

void tnf_plan_unasked(const struct planning *l, const char *kind, tnf_str name, const char *reason)
{
    const tnf_save_options *o = &l->save->options;
    if (o->plan)
        o->plan(o->ctx, &(tnf_plan_item) { .fate = TNF_TRANSFORMED,
                                           .kind = kind,
                                           .name = name,
                                           .reason = reason,
                                           .unasked = true });
}

void tnf_plan_tell(struct planning *l, tnf_fate fate, const char *kind, tnf_str name,
                   const char *reason)
{
    const tnf_save_options *o = &l->save->options;
    tnf_plan_note(l, fate, kind, name, reason);
    if (fate < TNF_TRANSFORMED || may_lose(o, kind))
        return;
    if (l->refused++ == 0)
        snprintf(l->first, sizeof l->first, "%s %s: %s", kind, TNF_QUOTED(name), reason);
}

/* ------------------------------------------------------------------ stash */

void tnf_plan_name(tnf_buf *b, tnf_str name)
{
    const tnf_value v = tnf_value_utf8(name);
    tnf_json_put_typed(b, &v);
}

void tnf_plan_comma(tnf_buf *b)
{
    if (b->n)
        tnf_buf_u8(b, ',');
}

static void stash_member(tnf_buf *b, const tnf_member *m)
{
    tnf_plan_comma(b);
    tnf_json_put_string(b, m->key.p, m->key.n);
    tnf_buf_u8(b, ':');
    tnf_json_put_typed(b, &m->value);
}

/* If two entries have the same key, the first one is kept. */
static tnf_status push_text(struct planning *l, tnf_str key, const char *p, size_t n, tnf_error *e)
{
    tnf_attrs *text = &l->save->text;
    TNF_TRY(tnf_attrs_push(text, key.p, tnf_value_str(TNF_STRING, p, n), e));
    text->members[text->n - 1].key.n = key.n;
    uint32_t previous;
    if (!tnf_hash_add(&l->keys, (uint32_t)text->n - 1, false, &previous))
        return tnf_no_memory("metadata", e);
    if (previous != TNF_HASH_NONE) {
        text->n--;
        if (!tnf_value_equal(&text->members[previous].value, &text->members[text->n].value))
            tnf_plan_tell(l, TNF_DROPPED, "attribute", key, "another entry has the same key");
    }
    return TNF_OK;
}

/* A NaN other than the one that every tree can hold (zTensor 2 has no other). */
static bool is_odd_nan(double f)
{
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    return f != f && bits != UINT64_C(0x7ff8000000000000);
}

bool tnf_plan_plain(const tnf_value *v)
{
    switch (v->kind) {
    case TNF_INT: /* other integers come back unsigned */
        return v->dtype == TNF_I64 && v->as.i < 0;
    case TNF_UINT:
        return v->dtype == TNF_U64;
    case TNF_FLOAT:
        return v->dtype == TNF_F64 && !is_odd_nan(v->as.f64);
    case TNF_ARRAY:
        if (tnf_value_told_empty(v))
            return false;
        for (size_t i = 0; i < v->n; i++)
            if (!tnf_plan_plain(&v->as.items[i]))
                return false;
        return true;
    case TNF_MAP:
        for (size_t i = 0; i < v->n; i++)
            if (!tnf_plan_plain(&v->as.members[i].value))
                return false;
        return true;
    default:
        return v->kind != TNF_JSON;
    }
}

/* Can a file with this value be opened without a raised limit? That does not matter for a value
 * that already needed one. */
static bool is_shallow(const tnf_value *v, unsigned levels)
{
    return levels == 0 || tnf_value_within(v, TNF_DEFAULT_DEPTH - levels) ||
           !tnf_value_within(v, TNF_DEFAULT_DEPTH);
}

static bool has_utf8_keys(const tnf_value *v)
{
    if (v->kind == TNF_JSON)
        return tnf_utf8_valid(NULL, v->as.s, v->n);
    for (size_t i = 0; v->kind == TNF_ARRAY && i < v->n; i++)
        if (!has_utf8_keys(&v->as.items[i]))
            return false;
    for (size_t i = 0; v->kind == TNF_MAP && i < v->n; i++) {
        const tnf_member *m = &v->as.members[i];
        if (!tnf_utf8_valid(NULL, m->key.p, m->key.n) || !has_utf8_keys(&m->value))
            return false;
    }
    return true;
}

bool tnf_plan_utf8(const tnf_member *m)
{
    return tnf_utf8_valid(NULL, m->key.p, m->key.n) && has_utf8_keys(&m->value);
}

bool tnf_plan_holds(const tnf_can *can, const tnf_member *m, const tnf_object *of)
{
    /* Attributes of the file can be long: plan_attr() looks for such keys in them only once. */
    return (!of || tnf_plan_utf8(m)) &&
           is_shallow(&m->value, of ? can->object_attr_levels : can->attr_levels) &&
           (can->holds_attr ? can->holds_attr(m, of) : tnf_plan_plain(&m->value));
}

bool tnf_plan_in_order(const tnf_value *v)
{
    for (size_t i = 0; v->kind == TNF_ARRAY && i < v->n; i++)
        if (!tnf_plan_in_order(&v->as.items[i]))
            return false;
    for (size_t i = 0; v->kind == TNF_MAP && i < v->n; i++) {
        const tnf_member *m = &v->as.members[i];
        if ((i > 0 && tnf_cbor_compare(m[-1].key, m->key) > 0) || !tnf_plan_in_order(&m->value))
            return false;
    }
    return true;
}

static tnf_status keep_attr(struct planning *l, const tnf_member *m, tnf_kind kind, tnf_error *e)
{
    tnf_value v = m->value;
    v.kind = (uint8_t)kind;
    return tnf_attrs_set(&l->save->planned.attrs, m->key.p, m->key.n, v, e);
}

static void note_kind(struct planning *l, const tnf_member *m)
{
    tnf_plan_comma(&l->kinds);
    tnf_json_put_string(&l->kinds, m->key.p, m->key.n);
    tnf_buf_puts(&l->kinds, m->value.kind == TNF_JSON ? ":\"json\"" : ":\"string\"");
}

/* `brackets` are "{}" or "[]". */
static tnf_status put_part_of_stash(tnf_buf *all, const char *name, const char *brackets,
                                    tnf_buf *part, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(part, "the stash", e));
    if (part->n == 0)
        return TNF_OK;
    tnf_buf_printf(all, "%s\"%s\":%c", all->n > 1 ? "," : "", name, brackets[0]);
    tnf_buf_put(all, part->p, part->n);
    tnf_buf_u8(all, (uint8_t)brackets[1]);
    return TNF_OK;
}

static tnf_status print_stash(tnf_buf *all, struct planning *l, tnf_error *e)
{
    tnf_buf_u8(all, '{');
    TNF_TRY(put_part_of_stash(all, "attrs", "{}", &l->attrs, e));
    TNF_TRY(put_part_of_stash(all, "kinds", "{}", &l->kinds, e));
    TNF_TRY(put_part_of_stash(all, "tensors", "{}", &l->tensors, e));
    TNF_TRY(put_part_of_stash(all, "objects", "[]", &l->objects, e));
    TNF_TRY(put_part_of_stash(all, "order", "[]", &l->order, e));
    TNF_TRY(put_part_of_stash(all, "orders", "{}", &l->orders, e));
    TNF_TRY(put_part_of_stash(all, "foreign", "[]", &l->foreign, e));
    TNF_TRY(put_part_of_stash(all, "sequence", "[]", &l->sequence, e));
    tnf_buf_u8(all, '}');
    return tnf_buf_status(all, "the stash", e);
}

/* Blanks at its end make its bytes a whole number of elements. plan_all() left room for one more
 * tensor. */
static tnf_status add_stash_tensor(struct planning *l, tnf_str key, const char *text, size_t n,
                                   tnf_error *e)
{
    tnf_arena *a = &l->save->arena;
    tnf_catalog *c = &l->save->planned;
    const tnf_type *type = tnf_type_named(l->format->can.stash_type);
    size_t width = type->bits / 8;
    tnf_part *part = tnf_arena_alloc(a, sizeof *part);
    uint64_t *shape = tnf_arena_alloc(a, sizeof *shape);
    if (!part || !shape)
        return tnf_arena_fail(a, "the stash", e);
    *shape = n / width;
    *part = (tnf_part) { .role = "data",
                         .type = type,
                         .memory = text,
                         .stored = n,
                         .nbytes = n,
                         .payload = TNF_MEMORY };
    c->objects[c->n++] = (tnf_object) { .name = key,
                                        .shape = shape,
                                        .layout = &tnf_layout_dense,
                                        .parts = part,
                                        .rank = 1,
                                        .nparts = 1 };
    l->save->total += n;
    return TNF_OK;
}

static tnf_status keep_stash(struct planning *l, tnf_buf *all, tnf_error *e)
{
    tnf_str key = { TNF_STASH_KEY, sizeof TNF_STASH_KEY - 1 };
    TNF_TRY(tnf_buf_status(all, "the stash", e));
    size_t width = l->as_tensor ? tnf_type_named(l->format->can.stash_type)->bits / 8 : 1;
    for (size_t n = all->n; n % width != 0; n++)
        tnf_buf_u8(all, ' ');
    TNF_TRY(tnf_buf_status(all, "the stash", e));
    const char *text = tnf_arena_str(&l->save->arena, all->p, all->n);
    if (!text)
        return tnf_arena_fail(&l->save->arena, "the stash", e);
    if (l->as_tensor)
        return add_stash_tensor(l, key, text, all->n, e);
    if (l->format->can.attrs == TNF_HOLDS_TEXT)
        return push_text(l, key, text, all->n, e);
    tnf_member m = { key, tnf_value_str(TNF_STRING, text, all->n) };
    return keep_attr(l, &m, TNF_STRING, e);
}

static tnf_status finish_stash(struct planning *l, tnf_error *e)
{
    tnf_buf all;
    tnf_buf_init(&all, &l->save->arena.alloc, STASH_MAX);
    tnf_status status = print_stash(&all, l, e);
    if (status == TNF_OK && all.n > sizeof "{}" - 1)
        status = keep_stash(l, &all, e);
    tnf_buf_free(&all);
    return status;
}

static bool asks_for_stash(const struct planning *l)
{
    const tnf_option_info *o = l->format->write_options;
    for (size_t i = 0; o && o[i].name; i++)
        if (strcmp(o[i].name, "stash") == 0)
            return l->save->values[i].u != 0;
    return false;
}

/* Does the format have a place for the stash, at least as a tensor whose name is still free? */
static void look_for_place(struct planning *l, const tnf_catalog *from)
{
    const tnf_can *can = &l->format->can;
    l->as_tensor = can->attrs == TNF_HOLDS_NONE && can->stash_type && asks_for_stash(l) &&
                   !tnf_catalog_find(from, TNF_STASH_KEY, sizeof TNF_STASH_KEY - 1);
    l->stashes = can->attrs != TNF_HOLDS_NONE || l->as_tensor;
    l->no_place = can->stash_type ? "the format has a place for metadata only with -o stash=yes"
                                  : "the format has no place for metadata";
}

/* -------------------------------------------------------- file attributes */

static bool is_text(const tnf_value *v)
{
    return (v->kind == TNF_STRING || v->kind == TNF_JSON) && tnf_utf8_valid(NULL, v->as.s, v->n);
}

bool tnf_plan_text_map(const tnf_member *m)
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

static tnf_status plan_text_map(struct planning *l, const tnf_member *m, tnf_error *e)
{
    for (size_t i = 0; i < m->value.n; i++) {
        const tnf_member *pair = &m->value.as.members[i];
        TNF_TRY(push_text(l, pair->key, pair->value.as.s, pair->value.n, e));
    }
    tnf_plan_tell(l, TNF_NATIVE, "attribute", m->key, "");
    return TNF_OK;
}

static tnf_status plan_to_stash(struct planning *l, const tnf_member *m)
{
    stash_member(&l->attrs, m);
    tnf_plan_tell(l, TNF_STASHED, "attribute", m->key, "kept in " TNF_STASH_KEY);
    return TNF_OK;
}

static tnf_status plan_to_text(struct planning *l, const tnf_member *m, tnf_error *e)
{
    if (!is_text(&m->value))
        return plan_to_stash(l, m);
    /* Without a note of its kind it would come back as the format's own metadata, unless its key
     * says which format it belongs to. */
    if (m->value.kind == TNF_JSON || !tnf_registry_owns(m->key.p, m->key.n))
        note_kind(l, m);
    tnf_plan_tell(l, TNF_STASHED, "attribute", m->key, "kept as text");
    return push_text(l, m->key, m->value.as.s, m->value.n, e);
}

/* Collects the keys of the format's own attributes, without its prefix. */
static tnf_status find_own_keys(struct planning *l, tnf_error *e)
{
    const tnf_attrs *from = &l->fit.catalog->attrs;
    const char *prefix = l->format->can.own_prefix;
    size_t n = prefix ? strlen(prefix) : 0;
    l->own.arena = &l->save->arena;
    for (size_t i = 0; prefix && i < from->n; i++) {
        tnf_str key = from->members[i].key;
        if (key.n > n && memcmp(key.p, prefix, n) == 0)
            TNF_TRY(tnf_attrs_set(&l->own, key.p + n, key.n - n, tnf_value_bool(true), e));
    }
    return TNF_OK;
}

/* A key without the prefix belongs to another format. That is noted, unless the format has an
 * attribute of its own with that key: then this one has no place. */
static tnf_status note_foreign(bool *fits, struct planning *l, const tnf_member *m, tnf_error *e)
{
    const char *prefix = l->format->can.own_prefix;
    size_t n = prefix ? strlen(prefix) : 0;
    tnf_member *same = NULL;
    *fits = true;
    if (!prefix || (m->key.n > n && memcmp(m->key.p, prefix, n) == 0))
        return TNF_OK;
    TNF_TRY(tnf_attrs_find(&l->own, m->key.p, m->key.n, &same, e));
    *fits = !same;
    if (*fits) {
        tnf_plan_comma(&l->foreign);
        tnf_json_put_string(&l->foreign, m->key.p, m->key.n);
    }
    return TNF_OK;
}

static tnf_status plan_typed(struct planning *l, const tnf_member *m, const char *why, tnf_error *e)
{
    tnf_member text = *m;
    text.value.kind = m->value.kind == TNF_JSON ? TNF_STRING : text.value.kind;
    bool fits = !l->format->can.own_prefix || tnf_plan_holds(&l->format->can, &text, NULL);
    if (fits)
        TNF_TRY(note_foreign(&fits, l, m, e));
    if (!fits)
        return plan_to_stash(l, m);
    if (tnf_plan_holds(&l->format->can, m, NULL)) {
        if (l->format->can.sorted_maps && !tnf_plan_in_order(&m->value))
            stash_member(&l->attrs, m);
        tnf_plan_tell(l, TNF_NATIVE, "attribute", m->key, why);
        return keep_attr(l, m, m->value.kind, e);
    }
    if (m->value.kind == TNF_JSON) {
        note_kind(l, m);
        tnf_plan_tell(l, TNF_STASHED, "attribute", m->key, "kept as text");
        return keep_attr(l, m, TNF_STRING, e);
    }
    return plan_to_stash(l, m);
}

static tnf_status plan_attr(struct planning *l, const tnf_member *m, tnf_verdict found,
                            tnf_error *e)
{
    const tnf_can *can = &l->format->can;
    if (found.fate == TNF_DROPPED) {
        tnf_plan_tell(l, TNF_DROPPED, "attribute", m->key, found.why);
        return TNF_OK;
    }
    bool text = can->attrs == TNF_HOLDS_TEXT, place = tnf_str_listed(m->key, can->file_attrs);
    if (!place && tnf_registry_derives(m))
        return TNF_OK;
    if (l->stashes && (text || !place) && !tnf_plan_utf8(m)) {
        tnf_plan_tell(l, TNF_DROPPED, "attribute", m->key, TNF_PLAN_NOT_UTF8);
        return TNF_OK;
    }
    if (text && tnf_plan_text_map(m))
        return plan_text_map(l, m, e);
    if (place) {
        tnf_plan_tell(l, found.fate, "attribute", m->key, found.why ? found.why : "");
        return keep_attr(l, m, m->value.kind, e);
    }
    if (can->attrs == TNF_HOLDS_TYPED)
        return plan_typed(l, m, found.why ? found.why : "", e);
    if (text)
        return plan_to_text(l, m, e);
    if (l->as_tensor)
        return plan_to_stash(l, m);
    if (!tnf_registry_spells(m))
        tnf_plan_tell(l, TNF_DROPPED, "attribute", m->key, l->no_place);
    return TNF_OK;
}

/* ----------------------------------------------------------------- extras */

/* Does the key begin with the word and a dot? */
static bool begins_with(tnf_str key, const char *word)
{
    size_t n = strlen(word);
    return key.n > n && memcmp(key.p, word, n) == 0 && key.p[n] == '.';
}

/* Extras are bytes of one family of formats, and only that family can write them back. */
static tnf_status plan_extra(struct planning *l, const tnf_extra *x, tnf_error *e)
{
    const char *prefix = l->format->can.extra_prefix;
    bool own = begins_with(x->key, prefix ? prefix : l->format->family);
    if (!own || (!l->format->can.extras && !l->save->options.like)) {
        tnf_plan_tell(l, TNF_DROPPED, "extra", x->key, "the format has no place for it");
        return TNF_OK;
    }
    tnf_plan_tell(l, TNF_NATIVE, "extra", x->key, "");
    return tnf_catalog_add_extra(&l->save->planned, x, e);
}

/* -------------------------------------------------------------------- all */

static tnf_status check_order(const struct tnf_save *s, tnf_error *e)
{
    const char *wish = s->options.order;
    const tnf_can *can = &s->format->can;
    if (!wish)
        return TNF_OK;
    if (strcmp(wish, "C") != 0 && strcmp(wish, "F") != 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the order must be C or F, not '%s'", wish);
    if (*wish == 'F' ? !can->order_f : can->only_f)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "the format keeps tensors %s only",
                        *wish == 'F' ? "row by row (C)" : "column by column (F)");
    return TNF_OK;
}

static tnf_status plan_all(struct planning *l, const tnf_catalog *from, tnf_error *e)
{
    const tnf_catalog *cast, *unit;
    TNF_TRY(check_order(l->save, e));
    TNF_TRY(tnf_cast_tensors(l->save, from, &cast, e));
    TNF_TRY(tnf_unit_rows(l->save, cast, &unit, e));
    TNF_TRY(tnf_adapt_tensors(l->save, unit, &l->fit.catalog, e));
    look_for_place(l, l->fit.catalog);
    TNF_TRY(tnf_plan_judge(l, e));
    if (l->save->options.plan)
        TNF_TRY(tnf_find_shared(&l->shared, l->fit.catalog, &l->save->arena, e));
    tnf_catalog *to = &l->save->planned;
    to->objects = tnf_arena_array(to->arena, l->fit.catalog->n + 1, sizeof *to->objects);
    if (!to->objects)
        return tnf_arena_fail(to->arena, "the list of tensors", e);
    TNF_TRY(find_own_keys(l, e));
    for (size_t i = 0; i < from->attrs.n; i++)
        TNF_TRY(plan_attr(l, &from->attrs.members[i], l->fit.attrs[i], e));
    tnf_note_order(l, &from->attrs);
    TNF_TRY(tnf_plan_objects(l, e));
    tnf_note_sequence(l);
    for (size_t i = 0; i < from->nextras; i++)
        TNF_TRY(plan_extra(l, &from->extras[i], e));
    TNF_TRY(finish_stash(l, e));
    if (l->refused)
        return tnf_fail(e, TNF_ELOSSY, TNF_NO_OFFSET, "%llu item%s would be lost or changed (%s)",
                        (unsigned long long)l->refused, l->refused > 1 ? "s" : "", l->first);
    if (to->n == 0 && l->format->can.not_empty)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s", l->format->can.not_empty);
    return TNF_OK;
}

void tnf_plan_end(struct tnf_save *save)
{
    tnf_unit_rows_end(save);
    tnf_cast_end(save);
    if (save->changes)
        tnf_catalog_free(&save->fitted);
    tnf_free(&save->arena.alloc, save->planned.extras,
             save->planned.extras_capacity * sizeof *save->planned.extras);
}

tnf_status tnf_plan(struct tnf_save *save, const tnf_catalog *from, tnf_error *e)
{
    struct planning l = { .save = save, .format = save->format };
    tnf_arena *a = &save->arena;
    save->text.arena = a;
    save->planned.arena = save->planned.attrs.arena = a;
    tnf_hash_init(&l.keys, &a->alloc, tnf_attrs_key_at, &save->text);
    tnf_buf_init(&l.attrs, &a->alloc, STASH_MAX);
    tnf_buf_init(&l.kinds, &a->alloc, STASH_MAX);
    tnf_buf_init(&l.tensors, &a->alloc, STASH_MAX);
    tnf_buf_init(&l.objects, &a->alloc, STASH_MAX);
    tnf_buf_init(&l.order, &a->alloc, STASH_MAX);
    tnf_buf_init(&l.orders, &a->alloc, STASH_MAX);
    tnf_buf_init(&l.foreign, &a->alloc, STASH_MAX);
    tnf_buf_init(&l.sequence, &a->alloc, STASH_MAX);
    tnf_status status = plan_all(&l, from, e);
    tnf_buf_free(&l.attrs);
    tnf_buf_free(&l.kinds);
    tnf_buf_free(&l.tensors);
    tnf_buf_free(&l.objects);
    tnf_buf_free(&l.order);
    tnf_buf_free(&l.orders);
    tnf_buf_free(&l.foreign);
    tnf_buf_free(&l.sequence);
    tnf_hash_free(&l.keys);
    return status;
}
