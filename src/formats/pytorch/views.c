/* SPDX-License-Identifier: MIT */
/* Checks whether a tensor to be written is still the view of a storage that its tree describes. */
#include "formats/pytorch/write.h"

#include <string.h>

#define COMPARED ((uint64_t)64 << 20)

/* Do the types match? Indices are signed in torch and unsigned in Tenfold. */
static bool same_type(const pt_type *type, const tnf_type *ours)
{
    return strcmp(type->id, ours->id) == 0 ||
           (strcmp(type->id, "i64") == 0 && ours == tnf_type_of(TNF_U64)) ||
           (strcmp(type->id, "i32") == 0 && ours == tnf_type_of(TNF_U32));
}

/* Parts have no shape. The shape in the tree fits if it has as many elements. */
static bool parts_same(const pt_tensor *t, const tnf_object *o)
{
    if (strcmp(t->layout, o->layout->id) != 0 || t->nparts != o->nparts || t->rank != o->rank ||
        memcmp(t->shape, o->shape, t->rank * sizeof *t->shape) != 0)
        return false;
    for (uint32_t i = 0; i < t->nparts; i++) {
        const tnf_part *part = tnf_object_part(o, t->roles[i]);
        const pt_dense *d = &t->parts[i];
        uint64_t bytes;
        if (!part || !same_type(d->type, part->type) ||
            !tnf_shape_elements(&bytes, d->shape, d->rank) ||
            !tnf_ckd_mul(&bytes, bytes, d->type->width) || bytes != part->nbytes)
            return false;
    }
    return true;
}

/* Is it the tensor that the node describes? */
bool tnf_pt_is_same(const pt_tensor *t, const tnf_object *o)
{
    const pt_dense *d = &t->parts[0];
    if (t->nparts > 1)
        return parts_same(t, o);
    if (strcmp(o->layout->id, "dense") != 0 || (t->kind && strcmp(t->kind, "storage") != 0) ||
        d->type->packed || o->nparts != 1 || strcmp(d->type->id, o->parts[0].type->id) != 0)
        return false;
    uint32_t rank = t->rank + (d->type->axis ? 1 : 0);
    if (rank != o->rank)
        return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (o->shape[i] != t->shape[i] * (d->type->doubled && i + 1 == t->rank ? 2 : 1))
            return false;
    return true;
}

/* The tuple (storage, offset, size, stride, …) inside its wrappers; NULL: not found. */
tnf_pickle_node *tnf_pt_view_args(tnf_pickle_node *node)
{
    for (int i = 0; node && i < 8 && node->kind == TNF_PICKLE_CALL; i++) {
        tnf_pickle_node *args = node->as.call->args;
        if (args->kind != TNF_PICKLE_TUPLE || args->n < 3)
            return NULL;
        if (tnf_pt_is_storage(args->as.items[0]))
            return args;
        if (args->as.items[2]->kind == TNF_PICKLE_TUPLE && args->as.items[2]->n > 3 &&
            tnf_pt_is_storage(args->as.items[2]->as.items[0]))
            return args->as.items[2]; /* _rebuild_from_type_v2(function, type, args, state) */
        node = args->as.items[0];
    }
    return NULL;
}

/* The node of the storage of a view; NULL: not found. */
tnf_pickle_node *tnf_pt_storage_of(tnf_pickle_node *node)
{
    tnf_pickle_node *args = tnf_pt_view_args(node);
    return node->kind == TNF_PICKLE_PERSISTENT ? node : args ? args->as.items[0] : NULL;
}

/* Does the tensor cover its storage, in row-major order? */
bool tnf_pt_is_base(const pt_tensor *t)
{
    const pt_dense *d = &t->parts[0];
    uint64_t step = 1;
    for (uint32_t i = d->rank; i-- > 0; step *= d->shape[i])
        if (d->shape[i] != 1 && d->stride[i] != step)
            return false;
    return d->offset == 0 && d->start == 0 && !d->conj && !d->neg &&
           step * d->type->width == d->limit;
}

/* Do the bytes of this tensor come from the same place as those of its base? */
bool tnf_pt_is_view_of(const tnf_part *part, const tnf_part *base)
{
    if (part == base || part->nbytes == 0)
        return true;
    if (part->origin != base->origin)
        return false;
    if (part->payload == TNF_OPAQUE) /* this reader gathers both from the same storages */
        return base->payload == TNF_AT;
    return part->payload == TNF_AT && base->payload == TNF_AT && part->offset >= base->offset &&
           part->offset + part->nbytes <= base->offset + base->nbytes;
}

/* Moves to the next element, row by row; *at is its offset by the strides. */
static void next_element(const pt_dense *d, uint64_t *index, uint64_t *at)
{
    for (uint32_t k = d->rank; k-- > 0;) {
        *at += d->stride[k];
        if (++index[k] < d->shape[k])
            return;
        *at -= d->stride[k] * index[k];
        index[k] = 0;
    }
}

/* For other files only the bytes can be compared, if they are not too many. */
tnf_status tnf_pt_compare_views(bool *same, const tnf_part *part, const tnf_part *base,
                                const pt_dense *d, tnf_error *e)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    uint64_t index[PT_RANK] = { 0 }, at = d->offset, n = part->nbytes / d->type->width;
    *same = false;
    if (d->conj || d->neg || part->nbytes > COMPARED || base->nbytes > COMPARED)
        return TNF_OK;
    uint8_t *a = tnf_alloc(&alloc, (size_t)part->nbytes),
            *b = tnf_alloc(&alloc, (size_t)base->nbytes);
    tnf_status status = a && b ? tnf_read_part(a, (size_t)part->nbytes, part, 0, e)
                               : tnf_no_memory("a view", e);
    if (status == TNF_OK)
        status = tnf_read_part(b, (size_t)base->nbytes, base, 0, e);
    *same = status == TNF_OK;
    for (uint64_t i = 0; i < n && *same; i++) {
        *same = memcmp(a + i * d->type->width, b + at * d->type->width, d->type->width) == 0;
        next_element(d, index, &at);
    }
    tnf_free(&alloc, a, (size_t)part->nbytes);
    tnf_free(&alloc, b, (size_t)base->nbytes);
    return status;
}

/* ------------------------------------------------------------ another order */

/* The dimension of more than one element with this stride; the rank: none. */
static uint32_t dimension_of(const pt_dense *d, uint64_t step)
{
    uint32_t k = 0;
    while (k < d->rank && (d->shape[k] < 2 || d->stride[k] != step))
        k++;
    return k;
}

bool tnf_pt_is_reordered(const pt_dense *d)
{
    uint64_t step = 1;
    bool rows = true;
    if (d->offset || d->start || d->conj || d->neg || !d->limit)
        return false;
    for (uint32_t k, last = d->rank; (k = dimension_of(d, step)) < d->rank; last = k) {
        rows = rows && k < last;
        if (!tnf_ckd_mul(&step, step, d->shape[k]))
            return false;
    }
    uint64_t elements;
    return !rows && tnf_shape_elements(&elements, d->shape, d->rank) && step == elements &&
           d->limit / d->type->width == elements && d->limit % d->type->width == 0;
}

tnf_status tnf_pt_reorder(uint8_t *out, const tnf_part *part, const pt_dense *d, tnf_error *e)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    size_t width = d->type->width, n = (size_t)part->nbytes;
    uint64_t index[PT_RANK] = { 0 }, at = 0;
    uint8_t *rows = tnf_alloc(&alloc, n);
    tnf_status status = rows ? tnf_read_part(rows, n, part, 0, e) : tnf_no_memory("a tensor", e);
    for (size_t i = 0; i < n && status == TNF_OK; i += width) {
        memcpy(out + at * width, rows + i, width);
        next_element(d, index, &at);
    }
    tnf_free(&alloc, rows, n);
    return status;
}
