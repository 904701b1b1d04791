/* SPDX-License-Identifier: MIT */
/* Trees under construction: their stack, and the keys of a map.
 *
 *   stack: … │ key value key value      <- the members of the map being read
 *            └ mark
 */
#include "wire/tree.h"

#include "model/value.h"

#include <string.h>

/* ------------------------------------------------------------------- keys */

/* The hash table is in the arena, too, so that a reader may stop anywhere without freeing anything.
 * The table doubles when it grows, so abandoned tables are never larger than the current one. */
static void *from_arena(void *ctx, void *p, size_t old_size, size_t new_size)
{
    void *fresh = new_size ? tnf_arena_alloc(ctx, new_size) : NULL;
    if (fresh && p)
        memcpy(fresh, p, old_size < new_size ? old_size : new_size);
    return fresh;
}

static tnf_str key_at(const void *ctx, uint32_t position)
{
    return ((const tnf_keys *)ctx)->many[position];
}

void tnf_keys_init(tnf_keys *k, tnf_arena *arena)
{
    k->arena = arena;
    k->many = NULL;
    k->n = k->capacity = 0;
}

static bool among_few(const tnf_keys *k, tnf_str key)
{
    for (uint32_t i = 0; i < k->n; i++)
        if (k->few[i].n == key.n && (key.n == 0 || memcmp(k->few[i].p, key.p, key.n) == 0))
            return true;
    return false;
}

/* Makes room for one more key in `many`. */
static bool make_room(tnf_keys *k)
{
    if (k->n < k->capacity)
        return true;
    if (k->capacity > UINT32_MAX / 4) {
        k->arena->over_limit = true;
        return false;
    }
    uint32_t capacity = k->capacity ? k->capacity * 2 : 4 * TNF_KEYS_FEW;
    tnf_str *all = tnf_arena_array(k->arena, capacity, sizeof *all);
    if (!all)
        return false;
    memcpy(all, k->many ? k->many : k->few, k->n * sizeof *all);
    k->many = all;
    k->capacity = capacity;
    return true;
}

/* Adds key number n to the table; the first time, also the keys before it. */
static bool add_to_many(tnf_keys *k, tnf_str key, bool *twice)
{
    uint32_t previous = TNF_HASH_NONE, first = k->n;
    if (!make_room(k))
        return false;
    if (k->n == TNF_KEYS_FEW) {
        tnf_hash_init(&k->hash, &(tnf_allocator) { from_arena, k->arena }, key_at, k);
        first = 0;
    }
    k->many[k->n] = key;
    for (uint32_t i = first; i <= k->n; i++)
        if (!tnf_hash_add(&k->hash, i, false, &previous))
            return false;
    *twice = previous != TNF_HASH_NONE;
    return true;
}

tnf_status tnf_keys_add(tnf_keys *k, tnf_str key, bool *twice, tnf_error *e)
{
    if (k->n < TNF_KEYS_FEW) {
        *twice = among_few(k, key);
        k->few[k->n] = key;
    } else if (!add_to_many(k, key, twice)) {
        return tnf_arena_fail(k->arena, "the keys of a map", e);
    }
    if (!*twice)
        k->n++;
    return TNF_OK;
}

/* ------------------------------------------------------------------ stack */

void tnf_tree_init(tnf_tree *t, tnf_arena *arena)
{
    t->arena = arena;
    tnf_buf_init(&t->stack, &arena->alloc, arena->limit);
}

void tnf_tree_free(tnf_tree *t)
{
    tnf_buf_free(&t->stack);
}

size_t tnf_tree_mark(const tnf_tree *t)
{
    return t->stack.n;
}

void tnf_tree_drop(tnf_tree *t, size_t mark)
{
    t->stack.n = mark;
}

tnf_status tnf_tree_push(tnf_tree *t, const tnf_value *v, tnf_error *e)
{
    tnf_buf_put(&t->stack, v, sizeof *v);
    return tnf_buf_status(&t->stack, "the tree under construction", e);
}

static size_t count_since(const tnf_tree *t, size_t mark)
{
    return (t->stack.n - mark) / sizeof(tnf_value);
}

static const tnf_value *values_since(const tnf_tree *t, size_t mark)
{
    return (const tnf_value *)(const void *)(t->stack.p + mark);
}

tnf_status tnf_tree_array(tnf_tree *t, size_t mark, tnf_value *out, tnf_error *e)
{
    size_t n = count_since(t, mark);
    tnf_value *items = tnf_arena_array(t->arena, n, sizeof *items);
    if (!items)
        return tnf_arena_fail(t->arena, "an array", e);
    if (n)
        memcpy(items, values_since(t, mark), n * sizeof *items);
    t->stack.n = mark;
    *out = (tnf_value) { .kind = TNF_ARRAY, .n = n, .as.items = items };
    return TNF_OK;
}

tnf_status tnf_tree_map(tnf_tree *t, size_t mark, tnf_value *out, tnf_error *e)
{
    size_t n = count_since(t, mark) / 2;
    tnf_member *members = tnf_arena_array(t->arena, n, sizeof *members);
    if (!members)
        return tnf_arena_fail(t->arena, "a map", e);
    for (size_t i = 0; i < n; i++) {
        const tnf_value *pair = values_since(t, mark) + 2 * i;
        members[i] = (tnf_member) { { pair[0].as.s, pair[0].n }, pair[1] };
    }
    t->stack.n = mark;
    *out = (tnf_value) { .kind = TNF_MAP, .n = n, .as.members = members };
    return TNF_OK;
}

tnf_status tnf_tree_pairs(tnf_tree *t, size_t mark, tnf_value *out, tnf_error *e)
{
    tnf_value flat;
    tnf_status status = tnf_tree_array(t, mark, &flat, e);
    if (status != TNF_OK)
        return status;
    size_t n = flat.n / 2;
    tnf_value *pairs = tnf_arena_array(t->arena, n, sizeof *pairs);
    if (!pairs)
        return tnf_arena_fail(t->arena, "a map", e);
    for (size_t i = 0; i < n; i++)
        pairs[i] = (tnf_value) { .kind = TNF_ARRAY, .n = 2, .as.items = flat.as.items + 2 * i };
    *out = (tnf_value) { .kind = TNF_ARRAY, .n = n, .as.items = pairs };
    return TNF_OK;
}

/* --------------------------------------------------------------- wrappers */

tnf_status tnf_tree_text(tnf_tree *t, tnf_kind kind, tnf_str text, tnf_value *out, tnf_error *e)
{
    const char *copy = tnf_arena_str(t->arena, text.p, text.n);
    if (!copy)
        return tnf_arena_fail(t->arena, "a string", e);
    *out = tnf_value_str(kind, copy, text.n);
    return TNF_OK;
}

tnf_status tnf_tree_wrap(tnf_tree *t, const char *key, const tnf_value *inner, tnf_value *out,
                         tnf_error *e)
{
    tnf_member *member = tnf_arena_alloc(t->arena, sizeof *member);
    if (!member)
        return tnf_arena_fail(t->arena, "a map", e);
    *member = (tnf_member) { { key, strlen(key) }, *inner };
    *out = (tnf_value) { .kind = TNF_MAP, .n = 1, .as.members = member };
    return TNF_OK;
}

const tnf_value *tnf_tree_wrapped(const tnf_value *v, const char *key)
{
    return v->kind == TNF_MAP && v->n == 1 ? tnf_value_get(v, key) : NULL;
}
