/* SPDX-License-Identifier: MIT */
/* Trees with dotted keys: see meta.h. Each level of a path takes at least one character of the
 * command line, which bounds the recursion along a path. */
#include "meta.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ memory */

struct meta_chunk {
    struct meta_chunk *next;
    max_align_t bytes[];
};

void *meta_take(meta_editor *m, size_t n)
{
    struct meta_chunk *c = calloc(1, sizeof *c + n + 1);
    if (!c) {
        m->no_memory = true;
        return NULL;
    }
    c->next = m->chunks;
    m->chunks = c;
    return c->bytes;
}

void meta_end(meta_editor *m)
{
    while (m->chunks) {
        struct meta_chunk *c = m->chunks;
        m->chunks = c->next;
        free(c);
    }
}

void meta_message(meta_editor *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(m->why, sizeof m->why, format, args);
    va_end(args);
}

static bool no_such(meta_editor *m, tnf_str path)
{
    return meta_fail(m, "no attribute '%.*s'", (int)path.n, path.p);
}

/* ------------------------------------------------------------------- paths */

bool meta_begins(tnf_str path, tnf_str key, tnf_str *rest)
{
    *rest = (tnf_str) { 0 };
    if (path.n < key.n || (key.n > 0 && memcmp(path.p, key.p, key.n) != 0))
        return false;
    if (path.n == key.n)
        return true;
    if (path.p[key.n] != '.' && path.p[key.n] != '[')
        return false;
    size_t skip = path.p[key.n] == '.'; /* a bracket belongs to the rest */
    *rest = (tnf_str) { path.p + key.n + skip, path.n - key.n - skip };
    return true;
}

bool meta_index(tnf_str path, size_t *out, tnf_str *rest)
{
    bool bracket = path.n > 0 && path.p[0] == '[';
    size_t first = bracket, n = first;
    *out = 0;
    for (; n < path.n && n < 15 && path.p[n] >= '0' && path.p[n] <= '9'; n++)
        *out = *out * 10 + (size_t)(path.p[n] - '0');
    if (n == first || (bracket && (n == path.n || path.p[n++] != ']')))
        return false;
    return meta_begins(path, (tnf_str) { path.p, n }, rest);
}

static bool has_inside(const tnf_value *v)
{
    return v->kind == TNF_MAP || v->kind == TNF_ARRAY || v->kind == TNF_JSON;
}

/* The position in v of the child that the path leads through. */
static bool find_child(const tnf_value *v, tnf_str path, size_t *at, tnf_str *rest)
{
    bool found = false;
    size_t longest = 0;
    if (v->kind == TNF_ARRAY)
        return meta_index(path, at, rest) && *at < v->n;
    for (size_t i = 0; v->kind == TNF_MAP && i < v->n; i++) {
        const tnf_member *m = &v->as.members[i];
        tnf_str behind;
        if (!meta_begins(path, m->key, &behind) || (behind.p && !has_inside(&m->value)) ||
            (found && m->key.n <= longest))
            continue;
        found = true;
        longest = m->key.n;
        *at = i;
        *rest = behind;
    }
    return found;
}

static const tnf_value *nth_child(const tnf_value *v, size_t i)
{
    return v->kind == TNF_MAP ? &v->as.members[i].value : &v->as.items[i];
}

static tnf_value json_text_value(tnf_str text)
{
    return (tnf_value) { .kind = TNF_JSON, .n = text.n, .as.s = text.p };
}

bool meta_get(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path)
{
    const tnf_str whole = path;
    for (;;) {
        size_t at;
        tnf_str rest, found;
        if (tree->kind == TNF_JSON) {
            if (!meta_json_get(m, &found, (tnf_str) { tree->as.s, tree->n }, path))
                return no_such(m, whole);
            *out = json_text_value(found);
            return true;
        }
        if (!find_child(tree, path, &at, &rest))
            return no_such(m, whole);
        tree = nth_child(tree, at);
        if (!rest.p) {
            *out = *tree;
            return true;
        }
        path = rest;
    }
}

/* ------------------------------------------------------------------ changes */

/* A copy of v's own members or items, with room for one more. */
static void *copy_of(meta_editor *m, const tnf_value *v)
{
    size_t size = v->kind == TNF_MAP ? sizeof(tnf_member) : sizeof(tnf_value);
    void *copy = meta_take(m, (v->n + 1) * size);
    if (copy && v->n > 0)
        memcpy(copy, v->kind == TNF_MAP ? (const void *)v->as.members : v->as.items, v->n * size);
    return copy;
}

/* A copy of v with another value at a position. */
static bool with_value(meta_editor *m, tnf_value *out, const tnf_value *v, size_t at,
                       const tnf_value *value)
{
    void *copy = copy_of(m, v);
    if (!copy)
        return false;
    *out = *v;
    if (v->kind == TNF_MAP) {
        ((tnf_member *)copy)[at].value = *value;
        out->as.members = copy;
    } else {
        ((tnf_value *)copy)[at] = *value;
        out->as.items = copy;
    }
    return true;
}

static bool with_new(meta_editor *m, tnf_value *out, const tnf_value *v, tnf_str key,
                     const tnf_value *value)
{
    tnf_member *copy = copy_of(m, v);
    char *text = copy ? meta_take(m, key.n) : NULL;
    if (!text)
        return false;
    memcpy(text, key.p, key.n);
    copy[v->n] = (tnf_member) { { text, key.n }, *value };
    *out = (tnf_value) { .kind = TNF_MAP, .n = v->n + 1, .as.members = copy };
    return true;
}

/* A copy of an array with a new item at its end. */
static bool with_item(meta_editor *m, tnf_value *out, const tnf_value *v, const char *text)
{
    tnf_value *copy = copy_of(m, v), room;
    if (!copy || !meta_convert(m, &copy[v->n], meta_like_items(v, &room), text))
        return false;
    *out = (tnf_value) { .kind = TNF_ARRAY, .dtype = v->dtype, .n = v->n + 1, .as.items = copy };
    return true;
}

static bool without_value(meta_editor *m, tnf_value *out, const tnf_value *v, size_t at)
{
    void *copy = copy_of(m, v);
    size_t size = v->kind == TNF_MAP ? sizeof(tnf_member) : sizeof(tnf_value);
    if (!copy)
        return false;
    memmove((char *)copy + at * size, (char *)copy + (at + 1) * size, (v->n - at - 1) * size);
    *out = *v;
    out->n--;
    if (v->kind == TNF_MAP)
        out->as.members = copy;
    else
        out->as.items = copy;
    return true;
}

/* A new key gets the type of its neighbours, except at the root, where keys have nothing in
 * common. */
static bool set_in(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path,
                   const char *text, bool root)
{
    size_t at;
    tnf_str rest;
    tnf_value value;
    if (tree->kind == TNF_JSON) {
        tnf_str changed;
        if (!meta_json_set(m, &changed, (tnf_str) { tree->as.s, tree->n }, path, text))
            return false;
        *out = json_text_value(changed);
        return true;
    }
    bool known = find_child(tree, path, &at, &rest);
    if (known && rest.p && root) { /* "a.b" is a new key if "a" is a plain value */
        tnf_kind kind = (tnf_kind)nth_child(tree, at)->kind;
        known = kind == TNF_MAP || kind == TNF_ARRAY || kind == TNF_JSON;
    }
    if (known) {
        const tnf_value *old = nth_child(tree, at);
        return (rest.p ? set_in(m, &value, old, rest, text, false)
                       : meta_convert(m, &value, old, text)) &&
               with_value(m, out, tree, at, &value);
    }
    if (tree->kind == TNF_ARRAY && meta_index(path, &at, &rest) && at == tree->n && !rest.p)
        return with_item(m, out, tree, text);
    if (tree->kind != TNF_MAP)
        return no_such(m, path);
    return meta_convert(m, &value, root ? NULL : meta_like_members(tree), text) &&
           with_new(m, out, tree, path, &value);
}

bool meta_set(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path, const char *text)
{
    return set_in(m, out, tree, path, text, true);
}

bool meta_put(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path,
              const tnf_value *value)
{
    size_t at;
    tnf_str rest;
    tnf_value inner;
    if (tree->kind == TNF_JSON || !find_child(tree, path, &at, &rest))
        return no_such(m, path);
    if (!rest.p)
        return with_value(m, out, tree, at, value);
    return meta_put(m, &inner, nth_child(tree, at), rest, value) &&
           with_value(m, out, tree, at, &inner);
}

bool meta_remove(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str path)
{
    size_t at;
    tnf_str rest;
    tnf_value value;
    if (tree->kind == TNF_JSON) {
        tnf_str changed;
        if (!meta_json_remove(m, &changed, (tnf_str) { tree->as.s, tree->n }, path))
            return false;
        *out = json_text_value(changed);
        return true;
    }
    if (!find_child(tree, path, &at, &rest))
        return no_such(m, path);
    if (!rest.p)
        return without_value(m, out, tree, at);
    return meta_remove(m, &value, nth_child(tree, at), rest) &&
           with_value(m, out, tree, at, &value);
}

/* ---------------------------------------------------------------- equality */

/* Compares bits, since there are many NaNs and two zeros. */
static bool same_number(const tnf_value *a, const tnf_value *b)
{
    uint64_t x = 0, y = 0;
    size_t n = a->dtype == TNF_F32 ? sizeof a->as.f32 : sizeof a->as.f64;
    memcpy(&x, &a->as, n);
    memcpy(&y, &b->as, n);
    return x == y;
}

/* Many formats do not store whether an integer is signed: it is u64 if possible, else i64. */
static bool same_integer(const tnf_value *a, const tnf_value *b)
{
    bool ints = (a->kind == TNF_INT || a->kind == TNF_UINT) &&
                (b->kind == TNF_INT || b->kind == TNF_UINT);
    return ints && a->kind != b->kind && tnf_type_of((tnf_dtype)a->dtype)->bits == 64 &&
           tnf_type_of((tnf_dtype)b->dtype)->bits == 64 && a->as.u == b->as.u &&
           a->as.u <= INT64_MAX;
}

/* The recursion is bounded, since readers limit the depth of trees. */
bool meta_equal(const tnf_value *a, const tnf_value *b)
{
    if (same_integer(a, b))
        return true;
    if (a->kind != b->kind || a->n != b->n || a->dtype != b->dtype)
        return false;
    switch (a->kind) {
    case TNF_STRING:
    case TNF_BYTES:
    case TNF_JSON:
        return a->as.s == b->as.s || memcmp(a->as.s, b->as.s, a->n) == 0;
    case TNF_ARRAY:
        for (size_t i = 0; i < a->n && a->as.items != b->as.items; i++)
            if (!meta_equal(&a->as.items[i], &b->as.items[i]))
                return false;
        return true;
    case TNF_MAP:
        for (size_t i = 0; i < a->n && a->as.members != b->as.members; i++) {
            const tnf_member *x = &a->as.members[i], *y = &b->as.members[i];
            if (x->key.n != y->key.n || memcmp(x->key.p, y->key.p, x->key.n) != 0 ||
                !meta_equal(&x->value, &y->value))
                return false;
        }
        return true;
    case TNF_FLOAT:
        return same_number(a, b);
    case TNF_BOOL:
        return a->as.b == b->as.b;
    case TNF_NULL:
        return true;
    default:
        return a->as.u == b->as.u;
    }
}
