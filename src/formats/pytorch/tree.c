/* SPDX-License-Identifier: MIT */
/* pytorch.tree: the object tree as a pickle in a normal form, so that it can be written again:
 * protocol 2, a separate storage for every tensor, nothing dangerous. A plain dict of plain tensors
 * needs no tree, since the writer writes this without one. If the file has other storages and
 * strides, pytorch.views has the same tree with those. It is not content, but the writer uses it.
 */
#include "formats/pytorch/emit.h"

#include <string.h>

/* Limit of a pickle written again in protocol 2. Some opcodes become longer, but only repeated long
 * integers grow beyond this. */
#define MAX_TREE   ((uint64_t)64 << 20)
#define LEAST_TREE ((uint64_t)1 << 20)
#define TREE_RATIO 16u

static tnf_pickle_node whole_mark; /* its address marks a storage that was seen */

static bool is_empty_hooks(const tnf_pickle_node *node)
{
    return tnf_pickle_is_call(node, "collections", "OrderedDict") && !tnf_pickle_arg(node, 0) &&
           !node->as.call->dict->n && !node->as.call->state;
}

/* Are the strides exactly those of row-major order? */
static bool has_strides(const pt_dense *d)
{
    uint64_t step = 1;
    for (uint32_t i = d->rank; i-- > 0;) {
        if (d->stride[i] != step)
            return false;
        step *= d->shape[i] ? d->shape[i] : 1;
    }
    return true;
}

/* Does the tensor have a separate storage, in the form that the writer produces by default? */
static bool is_whole(const pt_dense *d)
{
    uint64_t elements = 1;
    if (d->conj || d->neg || d->offset || d->start || !d->storage || d->storage->key_node)
        return false;
    d->storage->key_node = &whole_mark;
    for (uint32_t i = 0; i < d->rank; i++)
        elements *= d->shape[i];
    return has_strides(d) && d->limit == d->storage->size && elements * d->type->width == d->limit;
}

/* Is it a quantized tensor, or one of several parts, in the form that is written without a tree?
 * Then the layout and the attributes describe it completely. */
static bool is_plain_layout(pt_file *f, const tnf_pickle_node *node, pt_tensor *t)
{
    if (!f->own_id.p ||
        (!tnf_pickle_is_call(node, "torch._utils", "_rebuild_sparse_tensor") &&
         !tnf_pickle_is_call(node, "torch._utils", "_rebuild_qtensor") &&
         !tnf_pickle_is_call(node, "torch._utils", "_rebuild_nested_tensor")) ||
        tnf_pt_resolve(t, f, node, NULL) != TNF_OK)
        return false;
    for (uint32_t i = 0; i < t->nparts; i++)
        if (!is_whole(&t->parts[i]) || strcmp(t->parts[i].location, "cpu") != 0)
            return false;
    return true;
}

/* Can the tensor be written without a tree? *whole is cleared if its strides must be kept. */
static bool is_plain_tensor(pt_file *f, const tnf_pickle_node *node, pt_tensor *t, bool *whole)
{
    bool v3 = tnf_pickle_is_call(node, "torch._utils", "_rebuild_tensor_v3");
    if (is_plain_layout(f, node, t))
        return true;
    if ((!v3 && !tnf_pickle_is_call(node, "torch._utils", "_rebuild_tensor_v2")) ||
        node->as.call->args->n < (v3 ? 7u : 6u) || !is_empty_hooks(tnf_pickle_arg(node, 5)) ||
        tnf_pt_resolve(t, f, node, NULL) != TNF_OK)
        return false;
    const pt_dense *d = &t->parts[0];
    if (t->kind || t->requires_grad || d->type->kept || strcmp(d->location, "cpu") != 0)
        return false;
    *whole = is_whole(d) && *whole;
    return true;
}

static bool is_plain_dict(pt_file *f, const tnf_pickle_node *root, bool *whole)
{
    pt_tensor *t = root->kind == TNF_PICKLE_DICT ? tnf_pt_spare(f, 0) : NULL;
    *whole = true;
    if (!t)
        return false;
    for (size_t i = 0; i < root->n; i += 2)
        if (root->as.items[i]->kind != TNF_PICKLE_TEXT ||
            !is_plain_tensor(f, root->as.items[i + 1], t, whole))
            return false;
    return true;
}

/* Are the tensors in the order in which they are written without a tree? */
static bool is_sorted(const tnf_catalog *c)
{
    for (size_t i = 1; i < c->n; i++)
        if (tnf_str_compare(c->objects[i - 1].name, c->objects[i].name) > 0)
            return false;
    return true;
}

/* Writes several pickles of the same tree, one after the other. */
typedef struct writing {
    pt_file *f;
    uint64_t most; /* most bytes */
    uint32_t memo; /* memo numbers used by the previous pickles */
    bool other;    /* the previous pickle replaced nodes */
} writing;

static tnf_status emit_tree(writing *w, tnf_pickle_node *root, bool plain, tnf_str *out,
                            tnf_error *e)
{
    pt_file *f = w->f;
    tnf_buf b;
    pt_emitter m;
    tnf_arena a; /* separate: it can be large */
    tnf_arena_init(&a, &f->r->scratch->alloc, f->r->limits.memory);
    tnf_buf_init(&b, &f->r->scratch->alloc, w->most);
    tnf_pt_emit_init(&m, &b, &a, e);
    m.plain = plain;
    m.first = w->memo;
    tnf_status status = tnf_pt_emit(&m, root);
    w->memo += m.memo;
    w->other = m.other;
    tnf_pt_emit_free(&m);
    tnf_arena_free(&a); /* freed before the tree is copied */
    out->n = b.n;
    out->p = status == TNF_OK ? tnf_arena_str(f->r->arena, b.p, b.n) : NULL;
    tnf_buf_free(&b);
    return status != TNF_OK || out->p ? status : tnf_arena_fail(f->r->arena, "the tree", e);
}

tnf_status tnf_pt_keep_tree(pt_file *f, tnf_pickle *p, tnf_error *e)
{
    tnf_error said = { .message = "" };
    tnf_str raw, plain = { NULL, 0 };
    bool whole, dict = is_plain_dict(f, p->root, &whole);
    if (dict && whole && (f->own_id.p || is_sorted(f->r->catalog)))
        return TNF_OK;
    uint64_t most = LEAST_TREE + TREE_RATIO * (uint64_t)p->used;
    writing w = { .f = f, .most = most < MAX_TREE ? most : MAX_TREE };
    tnf_pickle again = *p;
    tnf_status status = emit_tree(&w, p->root, false, &raw, &said);
    if (status == TNF_OK && !dict &&
        w.other) { /* the tree must not depend on the source's protocol */
        status = tnf_pickle_read(&again, raw.p, raw.n, 0, f->r->scratch, &said);
        w.memo = 0;
    }
    if (status == TNF_OK && !dict)
        status = emit_tree(&w, again.root, true, &plain, &said);
    if (status == TNF_ENOMEM)
        return tnf_fail(e, status, TNF_NO_OFFSET, "%s", said.message);
    if (status != TNF_OK) {
        tnf_warn(f->r, TNF_NO_OFFSET, "the structure around the tensors is not kept: %.150s",
                 said.message);
        return TNF_OK;
    }
    if (!dict)
        TNF_TRY(tnf_set_attr(f->r, "pytorch.tree", tnf_value_str(TNF_BYTES, plain.p, plain.n), e));
    /* without a tree a new id is computed; with a tree the old id must be kept */
    if (!dict && f->own_id.p && tnf_utf8_valid(NULL, f->own_id.p, f->own_id.n))
        TNF_TRY(tnf_set_attr(f->r, "pytorch.serialization_id",
                             tnf_value_str(TNF_STRING, f->own_id.p, f->own_id.n), e));
    if (!dict && raw.n == plain.n && memcmp(raw.p, plain.p, raw.n) == 0)
        return TNF_OK;
    return tnf_set_attr(f->r, "pytorch.views", tnf_value_str(TNF_BYTES, raw.p, raw.n), e);
}
