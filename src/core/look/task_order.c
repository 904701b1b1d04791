/* SPDX-License-Identifier: MIT */
/* The order in which several threads process tensors: the largest first, so that no thread is left
 * with a large one at the end. */
#include "core/core.h"

#include <stdlib.h>

struct sized {
    uint64_t bytes;
    size_t i;
};

static int larger_first(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

tnf_status tnf_task_order(const size_t **out, const tnf_catalog *c, tnf_arena *arena, tnf_error *e)
{
    struct sized *sizes = tnf_arena_array(arena, c->n, sizeof *sizes);
    size_t *order = tnf_arena_array(arena, c->n, sizeof *order);
    if (!sizes || !order)
        return tnf_arena_fail(arena, "the order of work", e);
    for (size_t i = 0; i < c->n; i++) {
        sizes[i] = (struct sized) { 0, i };
        for (uint16_t k = 0; k < c->objects[i].nparts; k++)
            sizes[i].bytes += c->objects[i].parts[k].nbytes;
    }
    qsort(sizes, c->n, sizeof *sizes, larger_first);
    for (size_t i = 0; i < c->n; i++)
        order[i] = sizes[i].i;
    *out = order;
    return TNF_OK;
}
