/* SPDX-License-Identifier: MIT */
/* The tree that the names of tensors describe. Keys are the pieces between slashes, or those of the
 * attribute `flax.path`. */
#include "wire/tree.h"
#include "formats/flax/flax.h"

#include <stdio.h>
#include <string.h>

bool tnf_fx_is_path(const tnf_value *v)
{
    if (!v || v->kind != TNF_ARRAY || v->n > FX_DEPTH)
        return false;
    for (size_t i = 0; i < v->n; i++) {
        const tnf_value *k = &v->as.items[i];
        bool text = k->kind == TNF_STRING && tnf_utf8_valid(NULL, k->as.s, k->n);
        if (!text && k->kind != TNF_UINT && k->kind != TNF_INT)
            return false;
    }
    return true;
}

static bool is_pair(const tnf_value *v, tnf_kind first, tnf_kind second)
{
    return v && v->kind == TNF_ARRAY && v->n == 2 && v->as.items[0].kind == first &&
           v->as.items[1].kind == second;
}

bool tnf_fx_is_leaf(const tnf_value *v)
{
    const tnf_value *complex = tnf_tree_wrapped(v, "$complex"), *str = tnf_tree_wrapped(v, "$str");
    switch ((tnf_kind)v->kind) {
    case TNF_NULL:
    case TNF_BOOL:
    case TNF_INT:
    case TNF_UINT:
    case TNF_STRING:
    case TNF_BYTES:
        return true;
    case TNF_FLOAT:
        return v->dtype == TNF_F64 || v->dtype == TNF_F32;
    case TNF_ARRAY:
        return v->n == 0;
    case TNF_MAP:
        /* "$ext" comes only from lenient reading. Written again, no reader would accept it. */
        return v->n == 0 || is_pair(complex, TNF_FLOAT, TNF_FLOAT) ||
               (str && str->kind == TNF_BYTES);
    default:
        return false;
    }
}

tnf_status tnf_fx_path(const tnf_value **out, tnf_str name, const tnf_value *attr, tnf_arena *arena,
                       tnf_error *e)
{
    size_t n = 1;
    *out = attr;
    if (attr)
        return TNF_OK;
    for (size_t i = 0; i < name.n; i++)
        n += name.p[i] == '/';
    tnf_value *path = tnf_arena_alloc(arena, sizeof *path);
    tnf_value *items = tnf_arena_array(arena, n, sizeof *items);
    if (!path || !items)
        return tnf_arena_fail(arena, "a path", e);
    const char *from = name.p, *end = name.p + name.n;
    for (size_t i = 0; i < n; i++) {
        const char *slash = from < end ? memchr(from, '/', (size_t)(end - from)) : NULL;
        const char *to = slash ? slash : end;
        items[i] = tnf_value_str(TNF_STRING, from, (size_t)(to - from));
        from = slash ? slash + 1 : end;
    }
    *path = (tnf_value) { .kind = TNF_ARRAY, .n = n, .as.items = items };
    *out = path;
    return TNF_OK;
}

/* The child with this key, which is created if it does not exist. */
static tnf_status step_down(fx_tree *t, fx_node *node, const tnf_value *key, fx_node **out,
                            tnf_error *e)
{
    char number[32];
    tnf_str name = { key->as.s, key->n };
    tnf_member *known = NULL;
    if (key->kind != TNF_STRING) { /* 1 and "1" look the same in a name */
        long long n = key->kind == TNF_INT ? (long long)key->as.i : 0;
        int length = key->kind == TNF_INT
                         ? snprintf(number, sizeof number, "%lld", n)
                         : snprintf(number, sizeof number, "%llu", (unsigned long long)key->as.u);
        name = (tnf_str) { number, (size_t)length };
    }
    node->keys.arena = t->arena;
    TNF_TRY(tnf_attrs_find(&node->keys, name.p, name.n, &known, e));
    if (known) {
        *out = (fx_node *)(uintptr_t)known->value.as.s;
        return TNF_OK;
    }
    fx_node *child = tnf_arena_alloc(t->arena, sizeof *child);
    if (!child)
        return tnf_arena_fail(t->arena, "the tree", e);
    child->key = *key;
    tnf_value link = { .kind = TNF_BYTES, .as.s = (const char *)child };
    TNF_TRY(tnf_attrs_set(&node->keys, name.p, name.n, link, e));
    if (node->last)
        node->last->next = child;
    else
        node->first = child;
    node->last = child;
    node->n++;
    *out = child;
    return TNF_OK;
}

static bool is_taken(const fx_node *n)
{
    return n->tensor || n->leaf;
}

tnf_status tnf_fx_grow(fx_tree *t, const tnf_value *path, fx_node **out, tnf_error *e)
{
    fx_node *node = &t->root;
    *out = NULL;
    t->why = NULL;
    if (path->n > FX_DEPTH)
        t->why = "the tree would be more than 128 levels deep";
    /* Check first, so that no nodes remain of a path that does not fit. */
    for (size_t i = 0; i < path->n && !t->why; i++) {
        if (is_taken(node))
            t->why = "the path of another tensor is the beginning of its path";
        else
            TNF_TRY(step_down(t, node, &path->as.items[i], &node, e));
    }
    if (!t->why && is_taken(node))
        t->why = "another tensor has the same path";
    else if (!t->why && node->n > 0)
        t->why = "its name is the beginning of another tensor's path";
    if (!t->why)
        *out = node;
    return TNF_OK;
}
