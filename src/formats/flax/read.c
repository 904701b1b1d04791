/* SPDX-License-Identifier: MIT */
/* The tree of a file, walked once from front to back. Only the places of data are recorded. */
#include "formats/flax/walk.h"

#include <stdio.h>
#include <string.h>

static tnf_status push_row(struct fx_row *row, tnf_arena *arena, tnf_value v, tnf_error *e)
{
    tnf_value *items = tnf_arena_grow(arena, row->items, row->n, &row->capacity, sizeof *items, 8);
    if (!items)
        return tnf_arena_fail(arena, "the tree", e);
    row->items = items;
    row->items[row->n++] = v;
    return TNF_OK;
}

static tnf_value row_value(const struct fx_row *row)
{
    return (tnf_value) { .kind = TNF_ARRAY, .n = row->n, .as.items = row->items };
}

/* ------------------------------------------------------------------- paths */

/* Are there keys that splitting the name at slashes would not restore? */
bool tnf_fx_needs_path(const struct fx_walk *x)
{
    bool needed = x->depth == 0;
    for (unsigned i = 0; i < x->depth; i++)
        needed = needed || x->keys[i].kind != TNF_STRING ||
                 (x->keys[i].n && memchr(x->keys[i].as.s, '/', x->keys[i].n));
    return needed;
}

tnf_status tnf_fx_keep_path(tnf_value *out, const struct fx_walk *x, tnf_error *e)
{
    tnf_value *items = tnf_arena_array(x->r->arena, x->depth + 1, sizeof *items);
    if (!items)
        return tnf_arena_fail(x->r->arena, "a path", e);
    for (unsigned i = 0; i < x->depth; i++) {
        items[i] = x->keys[i];
        if (items[i].kind == TNF_STRING)
            items[i].as.s = tnf_arena_str(x->r->arena, items[i].as.s, items[i].n);
        if (items[i].kind == TNF_STRING && !items[i].as.s)
            return tnf_arena_fail(x->r->arena, "a path", e);
    }
    *out = (tnf_value) { .kind = TNF_ARRAY, .n = x->depth, .as.items = items };
    return TNF_OK;
}

static void put_key(tnf_buf *b, const tnf_value *key, bool escape)
{
    if (key->kind == TNF_UINT)
        tnf_buf_printf(b, "%llu", (unsigned long long)key->as.u);
    else if (key->kind == TNF_INT)
        tnf_buf_printf(b, "%lld", (long long)key->as.i);
    for (size_t i = 0; key->kind == TNF_STRING && i < key->n; i++) {
        if (escape && key->as.s[i] == '/')
            tnf_buf_u8(b, '\\');
        tnf_buf_u8(b, (uint8_t)key->as.s[i]);
    }
}

/* The keys joined by slashes, in the arena. */
tnf_status tnf_fx_join(tnf_str *out, const struct fx_walk *x, bool escape, tnf_error *e)
{
    tnf_buf b;
    tnf_buf_init(&b, &x->r->arena->alloc, x->r->limits.header_bytes);
    for (unsigned i = 0; i < x->depth; i++) {
        if (i)
            tnf_buf_u8(&b, '/');
        put_key(&b, &x->keys[i], escape);
    }
    if (x->depth == 0)
        tnf_buf_puts(&b, FX_LONE);
    tnf_status status = tnf_buf_status(&b, "a name", e);
    if (status == TNF_OK) {
        *out = (tnf_str) { tnf_arena_str(x->r->arena, b.p ? (const char *)b.p : "", b.n), b.n };
        status = out->p ? TNF_OK : tnf_arena_fail(x->r->arena, "a name", e);
    }
    tnf_buf_free(&b);
    return status;
}

/* ------------------------------------------------------------------ leaves */

static tnf_status add_leaf(struct fx_walk *x, uint64_t at, tnf_value value, tnf_error *e)
{
    tnf_str name;
    tnf_member *known = NULL;
    tnf_value path;
    TNF_TRY(tnf_fx_join(&name, x, false, e));
    TNF_TRY(tnf_attrs_find(&x->leaves, name.p, name.n, &known, e));
    if (known) {
        tnf_warn(x->r, at, "two values have the name %s, which is their keys joined by slashes",
                 TNF_QUOTED(name));
        TNF_TRY(tnf_fx_join(&name, x, true, e));
        TNF_TRY(tnf_attrs_find(&x->leaves, name.p, name.n, &known, e));
    }
    if (known)
        return tnf_fail(e, TNF_EFORMAT, at, "the value %s occurs twice", TNF_QUOTED(name));
    TNF_TRY(tnf_attrs_set(&x->leaves, name.p, name.n, value, e));
    if (tnf_fx_needs_path(x)) {
        TNF_TRY(tnf_fx_keep_path(&path, x, e));
        TNF_TRY(tnf_attrs_set(&x->paths, name.p, name.n, path, e));
    }
    return push_row(&x->order, x->r->arena, tnf_value_uint(x->tensors), e);
}

/* {name: value} as a value. */
static tnf_status wrap_value(tnf_value *out, struct fx_walk *x, const char *name, tnf_value value,
                             tnf_error *e)
{
    tnf_attrs one = { .arena = x->r->arena };
    TNF_TRY(tnf_attrs_push(&one, name, value, e));
    *out = tnf_attrs_value(&one);
    return TNF_OK;
}

/* Reads text, bytes, and exts that are not arrays. */
static tnf_status read_content(struct fx_walk *x, const fx_head *h, tnf_value *out, tnf_error *e)
{
    const uint8_t *p;
    TNF_TRY(tnf_fx_bytes(&x->in, h->n, &p, e));
    const char *copy = tnf_arena_str(x->r->arena, p, (size_t)h->n);
    if (!copy)
        return tnf_arena_fail(x->r->arena, "a value", e);
    if (h->kind == TNF_MSGPACK_STR && tnf_utf8_valid(NULL, copy, (size_t)h->n)) {
        *out = tnf_value_str(TNF_STRING, copy, (size_t)h->n);
        return TNF_OK;
    }
    tnf_value bytes = tnf_value_str(TNF_BYTES, copy, (size_t)h->n);
    if (h->kind == TNF_MSGPACK_STR)
        return wrap_value(out, x, "$str", bytes, e);
    if (h->kind == TNF_MSGPACK_BIN) {
        *out = bytes;
        return TNF_OK;
    }
    if (h->ext == FX_COMPLEX && h->n == 19 && p[0] == 0x92 && p[1] == 0xCB && p[10] == 0xCB) {
        fx_head re, im;
        struct fx_row two = { NULL, 0, 0 };
        tnf_fx_parse((const uint8_t *)copy + 1, &re);
        tnf_fx_parse((const uint8_t *)copy + 10, &im);
        TNF_TRY(push_row(&two, x->r->arena, re.value, e));
        TNF_TRY(push_row(&two, x->r->arena, im.value, e));
        return wrap_value(out, x, "$complex", row_value(&two), e);
    }
    TNF_TRY(tnf_stricter(x->r, e, TNF_EUNSUPPORTED, h->at,
                         "a value is an ext of the unknown kind %d", h->ext));
    struct fx_row two = { NULL, 0, 0 };
    TNF_TRY(push_row(&two, x->r->arena, tnf_value_integer(h->ext), e));
    TNF_TRY(push_row(&two, x->r->arena, bytes, e));
    return wrap_value(out, x, "$ext", row_value(&two), e);
}

/* -------------------------------------------------------------------- walk */

/* Makes room for another level. Few trees are deep, so the room is small at first. */
static tnf_status add_level(struct fx_walk *x, tnf_error *e)
{
    if (x->depth < x->room)
        return TNF_OK;
    unsigned room = x->room ? 2 * x->room : 4;
    struct fx_frame *frames = tnf_arena_array(x->r->scratch, room, sizeof *frames);
    if (!frames)
        return tnf_arena_fail(x->r->scratch, "the tree", e);
    tnf_value *keys = tnf_arena_array(x->r->scratch, room, sizeof *keys);
    if (!keys)
        return tnf_arena_fail(x->r->scratch, "the tree", e);
    if (x->depth) {
        memcpy(frames, x->frames, x->depth * sizeof *frames);
        memcpy(keys, x->keys, x->depth * sizeof *keys);
    }
    x->frames = frames;
    x->keys = keys;
    x->room = room;
    return TNF_OK;
}

static tnf_status enter_map(struct fx_walk *x, const fx_head *h, tnf_error *e)
{
    bool map = h->kind == TNF_MSGPACK_MAP, chunked = false;
    tnf_value path, empty = { .kind = (uint8_t)(map ? TNF_MAP : TNF_ARRAY) };
    if (map)
        TNF_TRY(tnf_fx_is_chunked(x, h, &chunked, e));
    if (chunked)
        return tnf_fx_chunked(x, h, e);
    if (h->n == 0)
        return x->depth == 0 && map ? TNF_OK : add_leaf(x, h->at, empty, e);
    if (!map) {
        TNF_TRY(tnf_fx_keep_path(&path, x, e));
        TNF_TRY(push_row(&x->lists, x->r->arena, path, e));
    }
    if (x->depth == FX_DEPTH)
        return tnf_fail(e, TNF_ELIMIT, h->at, "the tree is more than %u levels deep", FX_DEPTH);
    TNF_TRY(add_level(x, e));
    x->frames[x->depth++] = (struct fx_frame) { .map = map,
                                                .left = h->n,
                                                .keys = { .arena = x->r->scratch } };
    return TNF_OK;
}

static tnf_status take_item(struct fx_walk *x, tnf_error *e)
{
    fx_head h;
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    bool container = h.kind == TNF_MSGPACK_MAP || h.kind == TNF_MSGPACK_ARRAY;
    bool array = h.kind == TNF_MSGPACK_EXT && (h.ext == FX_NDARRAY || h.ext == FX_NPSCALAR);
    if (x->depth == 0 && h.kind != TNF_MSGPACK_MAP && !array)
        return tnf_fail(e, TNF_EFORMAT, h.at, "the file is neither a tree nor an array");
    if (container)
        return enter_map(x, &h, e);
    if (array) {
        struct fx_array a;
        TNF_TRY(tnf_fx_array(x, &h, &a, e));
        if (h.ext == FX_NPSCALAR && a.rank > 0)
            return tnf_fail(e, TNF_EFORMAT, h.at, "a scalar has %u dimensions", a.rank);
        return tnf_fx_add(x, &a, (fx_data) { &a.data, 1, 0, 0 }, h.ext == FX_NPSCALAR, false, e);
    }
    tnf_value value = h.value;
    if (h.kind == TNF_MSGPACK_STR || h.kind == TNF_MSGPACK_BIN || h.kind == TNF_MSGPACK_EXT)
        TNF_TRY(read_content(x, &h, &value, e));
    return add_leaf(x, h.at, value, e);
}

/* Reads the key of the next item of the innermost map, or its number in an array. */
static tnf_status take_key(struct fx_walk *x, struct fx_frame *f, tnf_error *e)
{
    tnf_value *key = &x->keys[x->depth - 1];
    tnf_member *known = NULL;
    fx_head h;
    const uint8_t *p;
    char text[24];
    if (!f->map) {
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long)f->done);
        const char *copy = tnf_arena_str(x->r->scratch, text, (size_t)n);
        *key = tnf_value_str(TNF_STRING, copy, (size_t)n);
        return copy ? TNF_OK : tnf_arena_fail(x->r->scratch, "a key", e);
    }
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    *key = h.value;
    if (h.kind == TNF_MSGPACK_STR) {
        size_t wrong;
        TNF_TRY(tnf_fx_bytes(&x->in, h.n, &p, e));
        if (!tnf_utf8_valid(&wrong, (const char *)p, (size_t)h.n))
            return tnf_fail(e, TNF_EFORMAT, x->in.pos - h.n + wrong, "a key is not UTF-8");
        const char *copy = tnf_arena_str(x->r->scratch, p, (size_t)h.n);
        if (!copy)
            return tnf_arena_fail(x->r->scratch, "a key", e);
        *key = tnf_value_str(TNF_STRING, copy, (size_t)h.n);
    } else if (h.kind != TNF_MSGPACK_UINT && h.kind != TNF_MSGPACK_INT) {
        return tnf_fail(e, TNF_EFORMAT, h.at, "a key is neither text nor a number");
    }
    tnf_buf b;
    tnf_buf_init(&b, &x->r->scratch->alloc, x->r->limits.header_bytes);
    put_key(&b, key, false);
    tnf_status status = tnf_buf_status(&b, "a key", e);
    const char *name = b.p ? (const char *)b.p : "";
    if (status == TNF_OK)
        status = tnf_attrs_find(&f->keys, name, b.n, &known, e);
    if (status == TNF_OK && known)
        status = tnf_fail(e, TNF_EFORMAT, h.at, "the key %s occurs twice in one map",
                          TNF_QUOTED(((tnf_str) { name, b.n })));
    if (status == TNF_OK)
        status = tnf_attrs_set(&f->keys, name, b.n, (tnf_value) { .kind = TNF_NULL }, e);
    tnf_buf_free(&b);
    return status;
}

static tnf_status walk_tree(struct fx_walk *x, tnf_error *e)
{
    TNF_TRY(take_item(x, e));
    while (x->depth > 0) {
        struct fx_frame *f = &x->frames[x->depth - 1];
        if (f->left == 0) {
            x->depth--;
            continue;
        }
        TNF_TRY(take_key(x, f, e));
        f->left--;
        f->done++;
        TNF_TRY(take_item(x, e));
    }
    if (x->in.pos < x->in.size)
        return tnf_stricter(x->r, e, TNF_EFORMAT, x->in.pos, "%s the tree",
                            TNF_BYTES_FOLLOW(x->in.size - x->in.pos));
    return TNF_OK;
}

/* Does a tensor follow a leaf? Then the order of leaves and tensors must be kept. */
static bool is_mixed(const struct fx_walk *x)
{
    return x->order.n > 0 && x->order.items[0].as.u < x->tensors;
}

tnf_status tnf_fx_index(tnf_reader *r, tnf_error *e)
{
    struct fx_walk *x = tnf_arena_alloc(r->scratch, sizeof *x);
    if (!x)
        return tnf_arena_fail(r->scratch, "the tree", e);
    fx_state *state = tnf_arena_alloc(r->arena, sizeof *state);
    if (!state)
        return tnf_arena_fail(r->arena, "the tree", e);
    x->r = r;
    x->leaves.arena = x->paths.arena = r->arena;
    r->state = x->state = state;
    r->ordered = true; /* writing keeps the order of the keys */
    TNF_TRY(tnf_fx_in(&x->in, r, e));
    TNF_TRY(walk_tree(x, e));
    if (x->leaves.n)
        TNF_TRY(tnf_set_attr(r, FX_LEAVES, tnf_attrs_value(&x->leaves), e));
    if (x->paths.n)
        TNF_TRY(tnf_set_attr(r, FX_PATHS, tnf_attrs_value(&x->paths), e));
    if (x->lists.n)
        TNF_TRY(tnf_set_attr(r, FX_LISTS, row_value(&x->lists), e));
    return is_mixed(x) ? tnf_set_attr(r, FX_ORDER, row_value(&x->order), e) : TNF_OK;
}
