/* SPDX-License-Identifier: MIT */
/* Writes the tree as flax.serialization does: shortest heads, floats of 64 bits, arrays as ext 1,
 * arrays of more than 2^30 bytes in pieces.
 *
 *   tensors, in their order  ─┐
 *                             ├─ flax.order ─>  tree  ─>  heads between data
 *   flax.leaves, in theirs   ─┘
 */
#include "formats/flax/flax.h"

#include <stdio.h>
#include <string.h>

const tnf_option_info tnf_fx_write_options[] = {
    { "stash", TNF_OPTION_BOOL, NULL, "no",
      "keep values without a place in the tree as an array tenfold.stash in it" },
    { 0 },
};

/* ------------------------------------------------------------------- build */

static const tnf_value *path_attr(const tnf_object *o)
{
    const tnf_value *path = tnf_value_get(o->attrs, FX_PATH);
    return tnf_fx_is_path(path) ? path : NULL;
}

static tnf_status add_tensor(fx_tree *t, const tnf_object *o, tnf_error *e)
{
    const tnf_value *path;
    fx_node *node;
    TNF_TRY(tnf_fx_path(&path, o->name, path_attr(o), t->arena, e));
    TNF_TRY(tnf_fx_grow(t, path, &node, e));
    if (node)
        node->tensor = o;
    return TNF_OK;
}

static tnf_status add_value(fx_tree *t, const tnf_member *m, const tnf_value *paths, tnf_error *e)
{
    const tnf_value *path, *known = tnf_value_get_n(paths, m->key.p, m->key.n);
    fx_node *node;
    TNF_TRY(tnf_fx_path(&path, m->key, tnf_fx_is_path(known) ? known : NULL, t->arena, e));
    TNF_TRY(tnf_fx_grow(t, path, &node, e));
    if (node)
        node->leaf = &m->value;
    return TNF_OK;
}

static const tnf_value *leaves_of(const tnf_catalog *c)
{
    const tnf_value *v = tnf_catalog_attr(c, FX_LEAVES);
    return v && v->kind == TNF_MAP ? v : NULL;
}

/* How many tensors come before the i-th leaf; all of them if this is unknown. */
static uint64_t tensors_before(const tnf_catalog *c, const tnf_value *leaves, size_t i)
{
    const tnf_value *order = tnf_catalog_attr(c, FX_ORDER);
    bool told = order && order->kind == TNF_ARRAY && order->n == leaves->n &&
                order->as.items[i].kind == TNF_UINT;
    return told ? order->as.items[i].as.u : UINT64_MAX;
}

static void mark_list(fx_tree *t, const tnf_value *path)
{
    fx_node *n = &t->root;
    for (size_t i = 0; n && i < path->n; i++) {
        fx_node *child = n->first;
        while (child && !tnf_value_equal(&child->key, &path->as.items[i]))
            child = child->next;
        n = child;
    }
    uint64_t at = 0;
    char number[24];
    for (const fx_node *c = n ? n->first : NULL; c; c = c->next, at++) {
        int length = snprintf(number, sizeof number, "%llu", (unsigned long long)at);
        if (c->key.kind != TNF_STRING || c->key.n != (size_t)length ||
            memcmp(c->key.as.s, number, c->key.n) != 0)
            return;
    }
    if (n && n->n > 0)
        n->list = true;
}

static tnf_status build_tree(fx_tree *t, const tnf_catalog *c, tnf_error *e)
{
    const tnf_value *leaves = leaves_of(c), *paths = tnf_catalog_attr(c, FX_PATHS);
    const tnf_value *lists = tnf_catalog_attr(c, FX_LISTS);
    size_t next = 0;
    for (size_t i = 0; i <= c->n; i++) {
        while (leaves && next < leaves->n && (i == c->n || tensors_before(c, leaves, next) <= i))
            TNF_TRY(add_value(t, &leaves->as.members[next++], paths, e));
        if (i < c->n)
            TNF_TRY(add_tensor(t, &c->objects[i], e));
    }
    for (size_t i = 0; lists && lists->kind == TNF_ARRAY && i < lists->n; i++)
        if (tnf_fx_is_path(&lists->as.items[i]))
            mark_list(t, &lists->as.items[i]);
    return TNF_OK;
}

/* -------------------------------------------------------------------- fits */

static void judge_attrs(tnf_fit *fit, fx_tree *t, tnf_error *e)
{
    const tnf_attrs *attrs = &fit->catalog->attrs;
    const tnf_value *paths = tnf_catalog_attr(fit->catalog, FX_PATHS);
    for (size_t i = 0; i < attrs->n; i++) {
        const tnf_member *m = &attrs->members[i];
        const char *why = NULL;
        if (!tnf_str_is(m->key, FX_LEAVES))
            continue;
        if (m->value.kind != TNF_MAP)
            why = "it is not a map of values";
        for (size_t k = 0; !why && k < m->value.n; k++) {
            if (!tnf_fx_is_leaf(&m->value.as.members[k].value))
                why = "the tree has no place for one of its values";
            else if (add_value(t, &m->value.as.members[k], paths, e) != TNF_OK || t->why)
                why = "one of its paths is a tensor's, or the beginning of one";
        }
        if (why && fit->attrs[i].fate < TNF_DROPPED)
            fit->attrs[i] = (tnf_verdict) { TNF_DROPPED, why };
    }
}

/* Drops tensors whose paths exclude each other. */
tnf_status tnf_fx_fits(tnf_fit *fit, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    fx_tree t = { .arena = fit->scratch };
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        if (fit->objects[i].fate == TNF_DROPPED || tnf_is_filler(o))
            continue;
        TNF_TRY(add_tensor(&t, o, e));
        if (t.why)
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED, t.why };
    }
    judge_attrs(fit, &t, e);
    return TNF_OK;
}

/* ------------------------------------------------------------------- heads */

static void put_be(tnf_buf *b, uint64_t v, unsigned n)
{
    while (n-- > 0)
        tnf_buf_u8(b, (uint8_t)(v >> 8 * n));
}

/* The head of an ext. Five fixed lengths have their own heads. */
static void put_ext(tnf_buf *b, uint8_t type, uint64_t n)
{
    unsigned fixed = 0;
    while (fixed < 5 && n != (uint64_t)1 << fixed)
        fixed++;
    if (fixed < 5) {
        tnf_buf_u8(b, (uint8_t)(0xD4 + fixed));
    } else {
        unsigned width = n < 256 ? 1 : n < 65536 ? 2 : 4;
        tnf_buf_u8(b, (uint8_t)(width == 1 ? 0xC7 : width == 2 ? 0xC8 : 0xC9));
        put_be(b, n, width);
    }
    tnf_buf_u8(b, type);
}

/* Writes an array without its data. */
static void put_array(tnf_buf *b, uint8_t kind, const fx_type *type, const uint64_t *shape,
                      uint32_t rank, uint64_t bytes, const tnf_allocator *alloc)
{
    tnf_buf inner;
    tnf_buf_init(&inner, alloc, (uint64_t)1 << 20);
    tnf_msgpack_put_array(&inner, 3);
    tnf_msgpack_put_array(&inner, rank);
    for (uint32_t i = 0; i < rank; i++)
        tnf_msgpack_put_uint(&inner, shape[i]);
    tnf_msgpack_put_str(&inner, type->name, strlen(type->name));
    tnf_msgpack_put_bin_head(&inner, bytes);
    put_ext(b, kind, inner.n + bytes);
    tnf_buf_put(b, inner.p, inner.n);
    if (inner.status != TNF_OK)
        b->status = inner.status;
    tnf_buf_free(&inner);
}

static void put_key(tnf_buf *b, const tnf_value *key)
{
    if (key->kind == TNF_UINT)
        tnf_msgpack_put_uint(b, key->as.u);
    else if (key->kind == TNF_INT)
        tnf_msgpack_put_int(b, key->as.i);
    else
        tnf_msgpack_put_str(b, key->as.s, key->n);
}

static void put_leaf(tnf_buf *b, const tnf_value *v)
{
    const tnf_value *complex = v->kind == TNF_MAP ? tnf_value_get(v, "$complex") : NULL;
    if (!complex) { /* tnf_msgpack_put_value() handles "$str" */
        (void)tnf_msgpack_put_value(b, v, FX_DEPTH, NULL);
        return;
    }
    put_ext(b, FX_COMPLEX, 19);
    tnf_msgpack_put_array(b, 2);
    for (size_t i = 0; i < 2; i++)
        tnf_msgpack_put_f64(b, complex->as.items[i].as.f64);
}

/* -------------------------------------------------------------------- data */

struct writing {
    tnf_writer *w;
    tnf_buf b; /* heads not written yet */
};

static tnf_status flush_tree(struct writing *x, tnf_error *e)
{
    return tnf_put_buf(x->w, &x->b, "the tree", e);
}

/* Streams the elements of an array: unpacks those of less than a byte and cuts pieces. */
struct pieces {
    struct writing *x;
    const fx_type *type;
    const tnf_type *from;
    uint64_t element, elements, each; /* each: elements of a piece */
    uint64_t left;                    /* bytes that the current piece still needs */
    uint64_t piece;
    uint32_t bits, nbits; /* bits of the current, incomplete element */
    bool chunked;
};

static tnf_status begin_piece(struct pieces *p, tnf_error *e)
{
    struct writing *x = p->x;
    char number[24];
    uint64_t done = p->piece * p->each,
             n = p->elements - done < p->each ? p->elements - done : p->each;
    int length = snprintf(number, sizeof number, "%llu", (unsigned long long)p->piece++);
    tnf_msgpack_put_str(&x->b, number, (size_t)length);
    put_array(&x->b, FX_NDARRAY, p->type, &n, 1, n * p->type->width, &x->w->scratch->alloc);
    p->left = n * p->type->width;
    return flush_tree(x, e);
}

static tnf_status put_some(struct pieces *p, const uint8_t *bytes, size_t n, tnf_error *e)
{
    while (n > 0) {
        if (p->chunked && p->left == 0)
            TNF_TRY(begin_piece(p, e));
        size_t some = p->chunked && p->left < n ? (size_t)p->left : n;
        TNF_TRY(tnf_put(p->x->w, bytes, some, e));
        p->left -= p->chunked ? some : 0;
        bytes += some;
        n -= some;
    }
    return TNF_OK;
}

static tnf_status take_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct pieces *p = ctx;
    uint8_t block[4096];
    size_t used = 0;
    if (p->from->bits >= 8)
        return put_some(p, bytes, n, e);
    for (size_t i = 0; i < n; i++) {
        p->bits |= (uint32_t)((const uint8_t *)bytes)[i] << p->nbits;
        p->nbits += 8;
        for (; p->nbits >= p->from->bits && p->element < p->elements; p->element++) {
            block[used++] = (uint8_t)(p->bits & ((1u << p->from->bits) - 1));
            p->bits >>= p->from->bits;
            p->nbits -= p->from->bits;
            if (used == sizeof block) {
                TNF_TRY(put_some(p, block, used, e));
                used = 0;
            }
        }
    }
    return put_some(p, block, used, e);
}

static tnf_status put_tensor(struct writing *x, const tnf_object *o, tnf_error *e)
{
    const tnf_value *kind = tnf_value_get(o->attrs, FX_KIND);
    const fx_type *type = tnf_fx_type_of(o->parts->type);
    struct pieces p = { .x = x, .type = type, .from = o->parts->type };
    const tnf_allocator *alloc = &x->w->scratch->alloc;
    bool scalar = o->rank == 0 && tnf_value_is(kind, FX_SCALAR);
    if (!type || !tnf_shape_elements(&p.elements, o->shape, o->rank))
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "a tensor that does not fit");
    uint64_t bytes = p.elements * type->width;
    p.chunked = bytes > FX_CHUNK;
    if (!p.chunked) {
        put_array(&x->b, scalar ? FX_NPSCALAR : FX_NDARRAY, type, o->shape, o->rank, bytes, alloc);
        TNF_TRY(flush_tree(x, e));
        return p.from->bits < 8 ? tnf_scan(o->parts, take_bytes, &p, e)
                                : tnf_put_data(x->w, o->parts, e);
    }
    p.each = FX_CHUNK / type->width;
    tnf_msgpack_put_map(&x->b, 3);
    tnf_msgpack_put_str(&x->b, FX_MARK, sizeof FX_MARK - 1);
    tnf_msgpack_put_bool(&x->b, true);
    tnf_msgpack_put_str(&x->b, "shape", 5);
    tnf_msgpack_put_map(&x->b, o->rank);
    for (uint32_t i = 0; i < o->rank; i++) {
        char number[16];
        int length = snprintf(number, sizeof number, "%u", i);
        tnf_msgpack_put_str(&x->b, number, (size_t)length);
        tnf_msgpack_put_uint(&x->b, o->shape[i]);
    }
    tnf_msgpack_put_str(&x->b, "chunks", 6);
    tnf_msgpack_put_map(&x->b, (p.elements + p.each - 1) / p.each);
    return tnf_scan(o->parts, take_bytes, &p, e);
}

/* -------------------------------------------------------------------- tree */

static tnf_status put_item(struct writing *x, const fx_node *n, tnf_error *e)
{
    if (n->tensor)
        return put_tensor(x, n->tensor, e);
    if (n->leaf)
        put_leaf(&x->b, n->leaf);
    else if (n->list)
        tnf_msgpack_put_array(&x->b, n->n);
    else
        tnf_msgpack_put_map(&x->b, n->n);
    return x->b.n >= (1u << 16) ? flush_tree(x, e) : TNF_OK;
}

static tnf_status put_tree(struct writing *x, const fx_node *root, tnf_error *e)
{
    const fx_node *stack[FX_DEPTH + 2], *parents[FX_DEPTH + 2];
    unsigned depth = 0;
    TNF_TRY(put_item(x, root, e));
    stack[0] = root->first;
    parents[0] = root;
    while (true) {
        const fx_node *n = stack[depth];
        if (!n) {
            if (depth-- == 0)
                return TNF_OK;
            continue;
        }
        stack[depth] = n->next;
        if (!parents[depth]->list)
            put_key(&x->b, &n->key);
        TNF_TRY(put_item(x, n, e));
        if (n->first) {
            stack[++depth] = n->first;
            parents[depth] = n;
        }
    }
}

tnf_status tnf_fx_write(tnf_writer *w, tnf_error *e)
{
    fx_tree t = { .arena = w->scratch };
    struct writing x = { .w = w };
    TNF_TRY(build_tree(&t, w->catalog, e));
    tnf_buf_init(&x.b, &w->scratch->alloc, UINT32_MAX);
    tnf_status status = put_tree(&x, &t.root, e);
    if (status == TNF_OK)
        status = flush_tree(&x, e);
    tnf_buf_free(&x.b);
    return status;
}
