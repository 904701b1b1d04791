/* SPDX-License-Identifier: MIT */
/* pytorch.tree: the object tree as a pickle in a form of its own, so that it can be written again:
 * protocol 2, storages counted from 0 in the order of use, nothing dangerous in it. A plain dict of
 * plain tensors needs none: that is what is written without one. */
#include "formats/pytorch/emit.h"

#include <string.h>

#define MAX_TREE ((uint64_t)64 << 20)

static bool is_empty_hooks(const tnf_pickle_node *node)
{
    return tnf_pickle_is_call(node, "collections", "OrderedDict") && !tnf_pickle_arg(node, 0) &&
           !node->as.call->dict.n && !node->as.call->state;
}

/* Exactly those of rows first, or of columns first? */
static bool has_strides(const pt_dense *d, bool columns)
{
    uint64_t step = 1;
    for (uint32_t k = 0; k < d->rank; k++) {
        uint32_t i = columns ? k : d->rank - 1 - k;
        if (d->stride[i] != step)
            return false;
        step *= d->shape[i] ? d->shape[i] : 1;
    }
    return true;
}

/* A tensor as it is written without a tree: all of a storage of its own, on the CPU. */
static bool is_plain_tensor(pt_file *f, const tnf_pickle_node *node, tnf_arena *arena)
{
    pt_tensor *t = tnf_arena_alloc(arena, sizeof *t);
    bool v3 = tnf_pickle_is_call(node, "torch._utils", "_rebuild_tensor_v3");
    if (!t || (!v3 && !tnf_pickle_is_call(node, "torch._utils", "_rebuild_tensor_v2")) ||
        node->as.call->args->n != (v3 ? 7u : 6u) || !is_empty_hooks(tnf_pickle_arg(node, 5)) ||
        tnf_pt_resolve(t, f, node, NULL) != TNF_OK)
        return false;
    const pt_dense *d = &t->parts[0];
    if (t->kind || t->requires_grad || d->conj || d->neg || d->offset || d->start || !d->storage ||
        strcmp(d->location, "cpu") != 0 || d->storage->key_node)
        return false;
    d->storage->key_node = tnf_pickle_arg(node, 0);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < d->rank; i++)
        elements *= d->shape[i];
    return (has_strides(d, false) || has_strides(d, true)) && d->limit == d->storage->size &&
           elements * d->type->width == d->limit;
}

static bool is_plain_dict(pt_file *f, const tnf_pickle_node *root, tnf_arena *arena)
{
    if (root->kind != TNF_PICKLE_DICT)
        return false;
    for (size_t i = 0; i < root->n; i += 2)
        if (root->as.items[i]->kind != TNF_PICKLE_TEXT ||
            !is_plain_tensor(f, root->as.items[i + 1], arena))
            return false;
    return true;
}

tnf_status tnf_pt_keep_tree(pt_file *f, tnf_pickle *p, tnf_error *e)
{
    tnf_buf b;
    pt_emitter m;
    tnf_error said = { .message = "" };
    tnf_arena *a = f->r->arena;
    if (is_plain_dict(f, p->root, f->r->scratch))
        return TNF_OK;
    tnf_buf_init(&b, &f->r->scratch->alloc, MAX_TREE);
    tnf_pt_emit_init(&m, &b, f->r->scratch, &said);
    tnf_status status = tnf_pt_emit(&m, p->root);
    tnf_pt_emit_free(&m);
    const char *copy = status == TNF_OK ? tnf_arena_str(a, b.p, b.n) : NULL;
    size_t n = b.n;
    tnf_buf_free(&b);
    if (status == TNF_OK && !copy)
        return tnf_arena_fail(a, "the tree", e);
    if (status == TNF_ENOMEM)
        return tnf_fail(e, status, TNF_NO_OFFSET, "%s", said.message);
    if (status != TNF_OK) {
        tnf_warn(f->r, TNF_NO_OFFSET, "the structure around the tensors is not kept: %.150s",
                 said.message);
        return TNF_OK;
    }
    return tnf_set_attr(f->r, "pytorch.tree", tnf_value_str(TNF_BYTES, copy, n), e);
}
