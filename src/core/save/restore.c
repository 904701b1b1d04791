/* SPDX-License-Identifier: MIT */
/* The reverse of plan.c. Entries of a text map that plan.c wrote become attributes again; the
 * others are the family's own metadata. */
#include "core/core.h"
#include "wire/cbor.h"
#include "wire/json.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STASH_IGNORED "the entry " TNF_STASH_KEY " is ignored: %s"
#define STASH_LEVELS  3u /* {"tensors":{"w":{"key":value}}} */

static bool is_stash(const tnf_member *m)
{
    return tnf_str_is(m->key, TNF_STASH_KEY);
}

static bool map_or_none(const tnf_value *v)
{
    return !v || v->kind == TNF_MAP;
}

static bool stash_like(const tnf_value *v)
{
    const tnf_value *tensors = tnf_value_get(v, "tensors");
    if (v->kind != TNF_MAP || !map_or_none(tnf_value_get(v, "attrs")) ||
        !map_or_none(tnf_value_get(v, "kinds")) || !map_or_none(tensors))
        return false;
    for (size_t i = 0; tensors && i < tensors->n; i++)
        if (tensors->as.members[i].value.kind != TNF_MAP)
            return false;
    return true;
}

/* A value in the stash may be as deep as any other: the maps around it do not count. Those around
 * an attribute of the file are fewer, so restore_attr() looks at these again. */
static unsigned stash_depth(const tnf_file *f)
{
    unsigned most = f->options.limits.depth;
    return most < UINT_MAX - STASH_LEVELS ? most + STASH_LEVELS : most;
}

/* Parses a stash to a tree; *out stays NULL if the text is damaged. */
static tnf_status parse_stash(tnf_file *f, tnf_str text, tnf_value *tree, const tnf_value **out,
                              tnf_error *e)
{
    tnf_json j;
    tnf_error error = { .offset = TNF_NO_OFFSET };
    tnf_json_init(&j, text.p, text.n, 0, &f->arena, stash_depth(f), &error);
    if (tnf_json_typed(&j, tree) && tnf_json_end(&j) == TNF_OK && stash_like(tree))
        *out = tree;
    else if (j.status == TNF_ENOMEM)
        return tnf_arena_fail(&f->arena, "the entry " TNF_STASH_KEY, e);
    else
        tnf_warn(&f->reader, TNF_NO_OFFSET, STASH_IGNORED,
                 j.status != TNF_OK ? error.message : "Tenfold did not write it");
    return TNF_OK;
}

/* The first stash that can be parsed, or NULL. */
static tnf_status read_stash(tnf_file *f, const tnf_attrs *from, tnf_value *tree,
                             const tnf_value **out, tnf_error *e)
{
    *out = NULL;
    for (size_t i = 0; i < from->n && !*out; i++) {
        const tnf_member *m = &from->members[i];
        if (is_stash(m) && m->value.kind == TNF_STRING)
            TNF_TRY(parse_stash(f, (tnf_str) { m->value.as.s, m->value.n }, tree, out, e));
    }
    return TNF_OK;
}

static tnf_str member_key(const void *ctx, uint32_t position)
{
    return ((const tnf_value *)ctx)->as.members[position].key;
}

tnf_status tnf_index_members(tnf_hash *h, tnf_file *f, const tnf_value *map, tnf_error *e)
{
    uint32_t previous;
    tnf_hash_init(h, &f->alloc, member_key, map);
    for (size_t i = 0; map && i < map->n; i++)
        if (!tnf_hash_add(h, (uint32_t)i, false, &previous))
            return tnf_no_memory("metadata", e);
    return TNF_OK;
}

static bool is_json(tnf_file *f, const tnf_value *v)
{
    tnf_json j;
    tnf_json_init(&j, v->as.s, v->n, 0, &f->arena, f->options.limits.depth, NULL);
    return tnf_json_skip(&j, NULL) && tnf_json_end(&j) == TNF_OK;
}

static tnf_status restore_pair(tnf_file *f, const tnf_member *m, const tnf_value *kind,
                               tnf_attrs *own, tnf_error *e)
{
    tnf_value v = m->value;
    if (!kind && !tnf_registry_owns(m->key.p, m->key.n)) {
        /* The format's own key. There may be many; each is new, so no search is needed. */
        TNF_TRY(tnf_attrs_push(own, m->key.p, v, e));
        own->members[own->n - 1].key.n = m->key.n;
        return TNF_OK;
    }
    if (tnf_value_is(kind, "json") && is_json(f, &v)) /* else it was edited, and stays text */
        v.kind = TNF_JSON;
    return tnf_attrs_set(&f->catalog.attrs, m->key.p, m->key.n, v, e);
}

static tnf_status restore_text(tnf_file *f, const tnf_value *kinds, tnf_attrs *own, bool keep_stash,
                               tnf_error *e)
{
    tnf_hash h;
    tnf_status status = tnf_index_members(&h, f, kinds, e);
    for (size_t i = 0; i < f->text.n && status == TNF_OK; i++) {
        const tnf_member *m = &f->text.members[i];
        uint32_t at = tnf_hash_find(&h, m->key.p, m->key.n);
        if (!is_stash(m) || keep_stash)
            status = restore_pair(f, m, at == TNF_HASH_NONE ? NULL : &kinds->as.members[at].value,
                                  own, e);
    }
    tnf_hash_free(&h);
    return status;
}

static int by_cbor_key(const void *a, const void *b)
{
    return tnf_cbor_compare(((const tnf_member *)a)->key, ((const tnf_member *)b)->key);
}

/* The tree was built here, and is no deeper than the limit for reading it. */
void tnf_sort_maps(tnf_value *v)
{
    for (size_t i = 0; v->kind == TNF_ARRAY && i < v->n; i++)
        tnf_sort_maps((tnf_value *)(uintptr_t)&v->as.items[i]);
    for (size_t i = 0; v->kind == TNF_MAP && i < v->n; i++)
        tnf_sort_maps((tnf_value *)(uintptr_t)&v->as.members[i].value);
    if (v->kind == TNF_MAP && v->n > 1)
        qsort((tnf_member *)(uintptr_t)v->as.members, v->n, sizeof(tnf_member), by_cbor_key);
}

/* Does the stash decide the value of a key? If the file has the key as well, it may have been
 * edited, so the stash decides only the order of maps that the format sorts. */
static tnf_status stash_decides(bool *out, tnf_file *f, const tnf_value *native,
                                const tnf_value *stashed, tnf_error *e)
{
    tnf_value sorted;
    *out = true;
    if (!native || !f->format->can.sorted_maps)
        return TNF_OK;
    TNF_TRY(tnf_value_copy(&sorted, stashed, &f->arena, f->options.limits.depth, e));
    tnf_sort_maps(&sorted);
    *out = tnf_value_equal(&sorted, native);
    return TNF_OK;
}

/* The keys of the stash are all different, so a key that is not in the file is new. */
static tnf_status restore_attr(tnf_file *f, const tnf_hash *known, const tnf_member *m,
                               tnf_error *e)
{
    tnf_attrs *attrs = &f->catalog.attrs;
    uint32_t at = tnf_hash_find(known, m->key.p, m->key.n);
    if (!tnf_value_within(&m->value, f->options.limits.depth)) {
        tnf_warn(&f->reader, TNF_NO_OFFSET, STASH_IGNORED, "an attribute is nested too deeply");
        return TNF_OK;
    }
    if (at == TNF_HASH_NONE) {
        TNF_TRY(tnf_attrs_push(attrs, m->key.p, m->value, e));
        attrs->members[attrs->n - 1].key.n = m->key.n;
        return TNF_OK;
    }
    bool say;
    TNF_TRY(stash_decides(&say, f, &attrs->members[at].value, &m->value, e));
    if (say)
        attrs->members[at].value = m->value;
    return TNF_OK;
}

static tnf_status restore_attrs(tnf_file *f, const tnf_value *attrs, tnf_error *e)
{
    const tnf_value before = tnf_attrs_value(&f->catalog.attrs);
    tnf_hash known;
    tnf_status status = tnf_index_members(&known, f, attrs ? &before : NULL, e);
    for (size_t i = 0; attrs && i < attrs->n && status == TNF_OK; i++)
        status = restore_attr(f, &known, &attrs->as.members[i], e);
    tnf_hash_free(&known);
    return status;
}

static tnf_status merge_attrs(tnf_file *f, tnf_object *o, const tnf_value *more, tnf_error *e)
{
    if (!o->attrs) {
        o->attrs = more;
        return TNF_OK;
    }
    tnf_attrs all = { .arena = &f->arena };
    const tnf_value *from[2] = { o->attrs, more };
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < from[k]->n; i++) {
            const tnf_member *m = &from[k]->as.members[i];
            tnf_member *native = NULL; /* keys of the stash are all different */
            bool say;
            if (k)
                TNF_TRY(tnf_attrs_find(&all, m->key.p, m->key.n, &native, e));
            TNF_TRY(stash_decides(&say, f, native ? &native->value : NULL, &m->value, e));
            if (say)
                TNF_TRY(tnf_attrs_set(&all, m->key.p, m->key.n, m->value, e));
        }
    tnf_value *map = tnf_arena_alloc(&f->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(&f->arena, "attributes", e);
    *map = tnf_attrs_value(&all);
    o->attrs = map;
    return TNF_OK;
}

static tnf_status restore_tensors(tnf_file *f, const tnf_value *tensors, tnf_error *e)
{
    for (size_t i = 0; tensors && i < tensors->n; i++) {
        const tnf_member *m = &tensors->as.members[i];
        uint32_t at = tnf_hash_find(&f->catalog.names, m->key.p, m->key.n);
        if (at == TNF_HASH_NONE)
            tnf_warn(&f->reader, TNF_NO_OFFSET,
                     "the note in " TNF_STASH_KEY " about %s is ignored: there is no such tensor",
                     TNF_QUOTED(m->key));
        else
            TNF_TRY(merge_attrs(f, &f->catalog.objects[at], &m->value, e));
    }
    return TNF_OK;
}

static tnf_status restore_content(tnf_file *f, const tnf_value *stash, tnf_error *e)
{
    TNF_TRY(restore_attrs(f, tnf_value_get(stash, "attrs"), e));
    TNF_TRY(tnf_restore_sequence(f, stash, e));
    TNF_TRY(tnf_restore_tensors(f, stash, e));
    return restore_tensors(f, tnf_value_get(stash, "tensors"), e);
}

static void remove_object(tnf_catalog *c, size_t at)
{
    c->n--;
    memmove(&c->objects[at], &c->objects[at + 1], (c->n - at) * sizeof *c->objects);
}

/* A format without metadata may hold the stash as a tensor, which is read immediately. */
static tnf_status restore_tensor(tnf_file *f, tnf_error *e)
{
    tnf_catalog *c = &f->catalog;
    uint32_t at = tnf_hash_find(&c->names, TNF_STASH_KEY, sizeof TNF_STASH_KEY - 1);
    const tnf_part *p = at == TNF_HASH_NONE ? NULL : c->objects[at].parts;
    if (!p || p->type != tnf_type_named(f->format->can.stash_type) || c->objects[at].rank != 1 ||
        p->nbytes == 0 || p->nbytes > f->options.limits.header_bytes)
        return TNF_OK;
    tnf_value tree;
    char *text = tnf_arena_alloc(&f->arena, (size_t)p->nbytes);
    if (!text)
        return tnf_arena_fail(&f->arena, "the stash", e);
    TNF_TRY(tnf_read_part(text, (size_t)p->nbytes, p, 0, e));
    const tnf_value *stash = NULL;
    TNF_TRY(parse_stash(f, (tnf_str) { text, (size_t)p->nbytes }, &tree, &stash, e));
    if (!stash)
        return TNF_OK;
    remove_object(c, at);
    TNF_TRY(tnf_catalog_reindex(c, !(f->format->rules & TNF_RULE_NAMES_MAY_REPEAT), e));
    TNF_TRY(restore_content(f, stash, e));
    return tnf_restore_order(f, stash, e);
}

/* Keys that are not the format's own, although its reader treats every key as one. */
static tnf_status restore_foreign(tnf_file *f, const tnf_value *keys, tnf_error *e)
{
    const char *prefix = f->format->can.own_prefix;
    if (!prefix || !keys || keys->kind != TNF_ARRAY)
        return TNF_OK;
    size_t n = strlen(prefix);
    tnf_hash known;
    const tnf_value all = tnf_attrs_value(&f->catalog.attrs);
    tnf_status status = tnf_index_members(&known, f, &all, e);
    for (size_t i = 0; i < keys->n && status == TNF_OK; i++) {
        const tnf_value *k = &keys->as.items[i];
        if (k->kind != TNF_STRING)
            continue;
        char *key = tnf_arena_alloc(&f->arena, n + k->n + 1);
        if (!key) {
            status = tnf_arena_fail(&f->arena, "attributes", e);
            break;
        }
        memcpy(key, prefix, n);
        memcpy(key + n, k->as.s, k->n);
        uint32_t at = tnf_hash_find(&known, key, n + k->n);
        bool twice = tnf_hash_find(&known, key + n, k->n) != TNF_HASH_NONE;
        if (at != TNF_HASH_NONE && !twice && f->catalog.attrs.members[at].key.n == n + k->n)
            f->catalog.attrs.members[at].key = (tnf_str) { key + n, k->n };
    }
    tnf_hash_free(&known);
    tnf_attrs_moved(&f->catalog.attrs);
    return status;
}

/* A format with a typed tree holds most attributes unchanged. */
static tnf_status restore_typed(tnf_file *f, tnf_error *e)
{
    tnf_value tree;
    const tnf_value *stash;
    TNF_TRY(read_stash(f, &f->catalog.attrs, &tree, &stash, e));
    const tnf_value *kinds = tnf_value_get(stash, "kinds");
    if (!stash)
        return TNF_OK;
    TNF_TRY(restore_foreign(f, tnf_value_get(stash, "foreign"), e));
    tnf_hash h;
    tnf_status status = tnf_index_members(&h, f, kinds, e);
    for (size_t i = 0; i < f->catalog.attrs.n && status == TNF_OK; i++) {
        tnf_member *m = &f->catalog.attrs.members[i];
        uint32_t at = tnf_hash_find(&h, m->key.p, m->key.n);
        if (at != TNF_HASH_NONE && m->value.kind == TNF_STRING &&
            tnf_value_is(&kinds->as.members[at].value, "json") && is_json(f, &m->value))
            m->value.kind = TNF_JSON;
    }
    tnf_hash_free(&h);
    TNF_TRY(status);
    tnf_attrs_remove(&f->catalog.attrs, (tnf_str)TNF_STR(TNF_STASH_KEY));
    TNF_TRY(restore_content(f, stash, e));
    return tnf_restore_order(f, stash, e);
}

tnf_status tnf_restore(tnf_file *f, tnf_error *e)
{
    if (f->format->can.stash_type)
        return restore_tensor(f, e);
    if (f->text.n == 0)
        return restore_typed(f, e);
    tnf_value tree;
    const tnf_value *stash;
    TNF_TRY(read_stash(f, &f->text, &tree, &stash, e));
    tnf_attrs own = { .arena = &f->arena };
    TNF_TRY(restore_text(f, tnf_value_get(stash, "kinds"), &own, !stash, e));
    TNF_TRY(restore_content(f, stash, e));
    char key[80];
    int n = snprintf(key, sizeof key, "%s.metadata", f->format->family);
    if (own.n > 0)
        TNF_TRY(tnf_attrs_set(&f->catalog.attrs, key, (size_t)n, tnf_attrs_value(&own), e));
    return tnf_restore_order(f, stash, e);
}
