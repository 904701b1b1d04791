/* SPDX-License-Identifier: MIT */
/* Finds the tensor of a part that a format writes. */
#include "core/save/save.h"

#include <stdlib.h>

static int by_parts(const void *a, const void *b)
{
    const tnf_object *const *x = a, *const *y = b;
    uintptr_t p = (uintptr_t)(*x)->parts, q = (uintptr_t)(*y)->parts;
    return p < q ? -1 : p > q;
}

/* The tensors of the catalog, sorted by the addresses of their parts. */
static tnf_status sort_by_parts(tnf_writer *w, tnf_error *e)
{
    const tnf_catalog *c = w->catalog;
    const tnf_object **sorted = tnf_arena_array(w->scratch, c->n + 1, sizeof *sorted);
    if (!sorted)
        return tnf_arena_fail(w->scratch, "names", e);
    for (size_t i = 0; i < c->n; i++)
        sorted[i] = &c->objects[i];
    qsort(sorted, c->n, sizeof(*sorted), by_parts);
    w->by_parts = sorted;
    return TNF_OK;
}

/* The tensor that a part belongs to; NULL: it is a copy, or an extra's. */
static const tnf_object *object_of(const tnf_writer *w, const tnf_part *part)
{
    size_t low = 0, high = w->catalog->n;
    uintptr_t p = (uintptr_t)part;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)w->by_parts[middle]->parts <= p)
            low = middle;
        else
            high = middle;
    }
    const tnf_object *o = high > 0 ? w->by_parts[low] : NULL;
    uintptr_t first = o ? (uintptr_t)o->parts : 0;
    return o && p >= first && p < first + o->nparts * sizeof *part ? o : NULL;
}

tnf_status tnf_part_owner(const tnf_object **out, tnf_writer *w, const tnf_part *part, tnf_error *e)
{
    if (!w->by_parts)
        TNF_TRY(sort_by_parts(w, e));
    *out = object_of(w, part);
    return TNF_OK;
}
