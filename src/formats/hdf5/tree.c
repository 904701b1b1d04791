/* SPDX-License-Identifier: MIT */
/* Builds the tree of groups from names, and decides which names cannot be in it. */
#include "formats/hdf5/tree.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PART 60000u

bool tnf_h5_is_below(tnf_str path, tnf_str folder)
{
    return folder.n == 0 || (path.n > folder.n && path.p[folder.n] == '/' &&
                             memcmp(path.p, folder.p, folder.n) == 0);
}

/* ------------------------------------------------------------------ entries */

static int by_path(const void *a, const void *b)
{
    const h5_entry *x = a, *y = b;
    int c = tnf_h5_compare_paths(x->path, y->path);
    return c ? c : (x->kind > y->kind) - (x->kind < y->kind);
}

static const struct {
    const char *key;
    h5_kind kind;
} maps[] = { { H5_GROUPS, H5_GROUP }, { H5_LINKS, H5_LINKED }, { H5_NULL, H5_EMPTY } };

static bool is_map(const tnf_member *m, size_t i)
{
    return tnf_str_is(m->key, maps[i].key) && m->value.kind == TNF_MAP;
}

static size_t count_entries(const tnf_catalog *c)
{
    size_t n = c->n;
    for (size_t i = 0; i < c->attrs.n; i++)
        for (size_t k = 0; k < 3; k++)
            n += is_map(&c->attrs.members[i], k) ? c->attrs.members[i].value.n : 0;
    return n;
}

tnf_status tnf_h5_entries(h5_entry **out, size_t *n, const tnf_catalog *c, tnf_arena *arena,
                          bool (*skip)(const void *ctx, size_t i), const void *ctx, tnf_error *e)
{
    size_t many = 0;
    h5_entry *all = tnf_arena_array(arena, count_entries(c) + 1, sizeof *all);
    if (!all)
        return tnf_arena_fail(arena, "paths", e);
    for (size_t i = 0; i < c->n; i++)
        if (!skip || !skip(ctx, i))
            all[many++] = (h5_entry) { c->objects[i].name, H5_TENSOR, i, &c->objects[i], NULL };
    for (size_t i = 0; i < c->attrs.n; i++)
        for (size_t k = 0; k < 3; k++) {
            const tnf_member *m = &c->attrs.members[i];
            for (size_t j = 0; is_map(m, k) && j < m->value.n; j++) {
                const tnf_member *own = &m->value.as.members[j];
                all[many++] = (h5_entry) { own->key, maps[k].kind, i, NULL, &own->value };
            }
        }
    if (many > 1)
        qsort(all, many, sizeof *all, by_path);
    *out = all;
    *n = many;
    return TNF_OK;
}

/* --------------------------------------------------------------------- tree */

static tnf_status add_node(h5_tree *t, tnf_arena *arena, h5_entry entry, size_t parent,
                           tnf_error *e)
{
    h5_node *nodes = tnf_arena_grow(arena, t->nodes, t->n, &t->capacity, sizeof *nodes, 64);
    if (!nodes)
        return tnf_arena_fail(arena, "groups", e);
    t->nodes = nodes;
    size_t at = entry.path.n;
    while (at > 0 && entry.path.p[at - 1] != '/')
        at--;
    h5_node *x = &t->nodes[t->n];
    *x = (h5_node) { .entry = entry, .first = H5_NONE, .last = H5_NONE, .next = H5_NONE };
    x->same = H5_NONE;
    x->name = (tnf_str) { entry.path.p + at, entry.path.n - at };
    if (parent != H5_NONE) {
        h5_node *p = &t->nodes[parent];
        if (p->first == H5_NONE)
            p->first = t->n;
        else
            t->nodes[p->last].next = t->n;
        p->last = t->n;
    }
    t->n++;
    return TNF_OK;
}

typedef struct stack {
    size_t *items;
    size_t n, capacity;
} stack;

static tnf_status push_node(stack *s, tnf_arena *arena, size_t node, tnf_error *e)
{
    size_t *items = tnf_arena_grow(arena, s->items, s->n, &s->capacity, sizeof *items, 16);
    if (!items)
        return tnf_arena_fail(arena, "groups", e);
    s->items = items;
    s->items[s->n++] = node;
    return TNF_OK;
}

/* Adds an entry and the groups that lead to it. */
static tnf_status place_entry(h5_tree *t, stack *s, tnf_arena *arena, const h5_entry *x,
                              tnf_error *e)
{
    while (s->n > 1 && !tnf_h5_is_below(x->path, t->nodes[s->items[s->n - 1]].entry.path))
        s->n--;
    size_t at = t->nodes[s->items[s->n - 1]].entry.path.n;
    for (at += at > 0; at < x->path.n; at++) {
        if (x->path.p[at] != '/')
            continue;
        h5_entry group = { .path = { x->path.p, at }, .kind = H5_GROUP };
        TNF_TRY(add_node(t, arena, group, s->items[s->n - 1], e));
        TNF_TRY(push_node(s, arena, t->n - 1, e));
    }
    TNF_TRY(add_node(t, arena, *x, s->items[s->n - 1], e));
    return x->kind == H5_GROUP ? push_node(s, arena, t->n - 1, e) : TNF_OK;
}

tnf_status tnf_h5_tree(h5_tree *out, const tnf_catalog *c, tnf_arena *arena, tnf_error *e)
{
    h5_entry *entries = NULL, root = { .path = { "", 0 }, .kind = H5_GROUP };
    size_t n = 0;
    stack s = { 0 };
    *out = (h5_tree) { 0 };
    TNF_TRY(tnf_h5_entries(&entries, &n, c, arena, NULL, NULL, e));
    TNF_TRY(add_node(out, arena, root, H5_NONE, e));
    TNF_TRY(push_node(&s, arena, 0, e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(place_entry(out, &s, arena, &entries[i], e));
    return TNF_OK;
}

/* --------------------------------------------------------------------- fits */

static const char *path_why(tnf_str path)
{
    size_t start = 0;
    if (path.n && memchr(path.p, 0, path.n))
        return "its name contains a NUL, which HDF5 cannot store";
    for (size_t i = 0; i <= path.n; i++) {
        if (i < path.n && path.p[i] != '/')
            continue;
        if (i == start)
            return "its name has an empty component between slashes, which HDF5 cannot hold";
        if (i - start == 1 && path.p[start] == '.')
            return "a component of its name is a dot, which means the group itself in HDF5";
        if (i - start > MAX_PART)
            return "a component of its name is longer than 60,000 bytes";
        start = i + 1;
    }
    return NULL;
}

tnf_fate tnf_h5_takes(const tnf_object *o, const char **reason)
{
    const tnf_value *names = tnf_value_get(o->attrs, H5_ENUM);
    *reason = path_why(o->name);
    if (!*reason && o->rank > H5_RANK)
        *reason = "HDF5 allows at most 32 dimensions";
    if (!*reason)
        *reason = tnf_h5_attrs_why(tnf_value_get(o->attrs, H5_ATTRS));
    if (!*reason && names && (o->nparts != 1 || !tnf_h5_is_enum(o->parts[0].type, names)))
        *reason = "its hdf5.enum does not match its type";
    return *reason ? TNF_DROPPED : TNF_NATIVE;
}

static bool is_dropped(const void *ctx, size_t i)
{
    const tnf_fit *fit = ctx;
    return fit->objects[i].fate == TNF_DROPPED || tnf_is_filler(&fit->catalog->objects[i]);
}

static bool is_text(const tnf_value *v)
{
    return v && (v->kind == TNF_STRING || v->kind == TNF_BYTES) && v->n < MAX_PART;
}

static bool null_fits(const tnf_value *v)
{
    char id[32];
    if (v->kind != TNF_STRING || v->n >= sizeof id)
        return false;
    memcpy(id, v->as.s, v->n);
    id[v->n] = 0;
    return strcmp(id, "string") == 0 || (tnf_type_named(id) && strstr(H5_WRITES, id));
}

/* The reason why an entry of an attribute cannot be written, or NULL. */
static const char *entry_why(const h5_entry *x)
{
    if (path_why(x->path))
        return "one of its paths is invalid";
    if (x->kind == H5_GROUP)
        return tnf_h5_attrs_why(x->value);
    if (x->kind == H5_EMPTY)
        return null_fits(x->value) ? NULL : "one of its types cannot be written";
    if (x->value->kind != TNF_MAP)
        return is_text(x->value) ? NULL : "one of its links is invalid";
    bool both = is_text(tnf_value_get(x->value, "file")) &&
                is_text(tnf_value_get(x->value, "path"));
    return both ? NULL : "one of its links is invalid";
}

static void drop_entry(tnf_fit *fit, const h5_entry *x, const char *why)
{
    tnf_verdict *v = x->kind == H5_TENSOR ? &fit->objects[x->owner] : &fit->attrs[x->owner];
    if (v->fate < TNF_DROPPED)
        *v = (tnf_verdict) { TNF_DROPPED, why };
}

static void judge_root(tnf_fit *fit)
{
    const tnf_attrs *attrs = &fit->catalog->attrs;
    for (size_t i = 0; i < attrs->n; i++) {
        const tnf_member *m = &attrs->members[i];
        bool own = m->key.n > 5 && memcmp(m->key.p, "hdf5.", 5) == 0;
        const char *why = NULL;
        if (own && tnf_str_is(m->key, H5_ATTRS))
            why = tnf_h5_attrs_why(&m->value);
        else if (own && m->value.kind != TNF_MAP)
            why = "it is not a map";
        if (why && fit->attrs[i].fate < TNF_DROPPED)
            fit->attrs[i] = (tnf_verdict) { TNF_DROPPED, why };
    }
}

/* Drops tensors whose names are also groups, and entries of attributes whose paths are taken. */
tnf_status tnf_h5_fits(tnf_fit *fit, tnf_error *e)
{
    h5_entry *all = NULL, *leaf = NULL;
    size_t n = 0;
    judge_root(fit);
    TNF_TRY(tnf_h5_entries(&all, &n, fit->catalog, fit->scratch, is_dropped, fit, e));
    for (size_t i = 0; i < n; i++) {
        h5_entry *x = &all[i];
        const char *why = x->kind == H5_TENSOR ? NULL : entry_why(x);
        if (why) {
            drop_entry(fit, x, why);
            continue;
        }
        bool same = i > 0 && tnf_h5_compare_paths(x->path, all[i - 1].path) == 0;
        if (same)
            drop_entry(fit, all[i - 1].kind == H5_TENSOR ? x : &all[i - 1],
                       "one of its paths is a tensor's, or occurs twice");
        if (leaf && !same && tnf_h5_is_below(x->path, leaf->path)) {
            if (x->kind == H5_TENSOR)
                drop_entry(fit, leaf, "its name is also a group with other tensors");
            else
                drop_entry(fit, x, "one of its paths is below a tensor");
        } else if (x->kind != H5_GROUP && !same) {
            leaf = x;
        }
    }
    return TNF_OK;
}
