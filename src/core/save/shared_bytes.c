/* SPDX-License-Identifier: MIT */
/* Finds tensors that share their bytes (tied weights), so that the plan can report it. A format
 * whose writer stores equal parts once keeps the sharing; in all others each tensor gets a copy. */
#include "core/save/plan.h"

#include <stdlib.h>

struct place {
    const struct tnf_origin *origin;
    uint64_t offset, length;
    uint32_t object;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->origin != y->origin)
        return (uintptr_t)x->origin < (uintptr_t)y->origin ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static bool same_place(const struct place *a, const struct place *b)
{
    return a->origin == b->origin && a->offset == b->offset && a->length == b->length;
}

static size_t list_places(struct place *places, const tnf_catalog *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const tnf_part *p = c->objects[i].nparts == 1 ? c->objects[i].parts : NULL;
        if (p && (p->payload == TNF_AT || p->payload == TNF_ENCODED) && p->stored > 0)
            places[n++] = (struct place) { p->origin, p->offset, p->stored, (uint32_t)i };
    }
    return n;
}

tnf_status tnf_find_shared(const uint32_t **out, const tnf_catalog *c, tnf_arena *arena,
                           tnf_error *e)
{
    *out = NULL;
    if (c->n < 2)
        return TNF_OK;
    tnf_allocator alloc = arena->alloc;
    struct place *places = tnf_alloc(&alloc, c->n * sizeof *places);
    if (!places)
        return tnf_no_memory("the plan", e);
    size_t n = list_places(places, c);
    uint32_t *first = NULL;
    qsort(places, n, sizeof *places, by_place);
    tnf_status status = TNF_OK;
    for (size_t i = 1, head = 0; i < n && status == TNF_OK; i++) {
        if (!same_place(&places[i], &places[head])) {
            head = i;
            continue;
        }
        if (!first && !(first = tnf_arena_array(arena, c->n, sizeof *first)))
            status = tnf_arena_fail(arena, "the plan", e);
        else
            first[places[i].object] = places[head].object + 1;
    }
    tnf_free(&alloc, places, c->n * sizeof *places);
    *out = first;
    return status;
}
