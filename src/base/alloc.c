/* SPDX-License-Identifier: MIT */
/* Memory from the handle's allocator; malloc is only the default. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static void *system_reallocate(void *ctx, void *p, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, new_size);
}

tnf_allocator tnf_allocator_or_default(const tnf_allocator *a)
{
    return a && a->reallocate ? *a : (tnf_allocator) { system_reallocate, NULL };
}

void *tnf_alloc(const tnf_allocator *a, size_t n)
{
    return a->reallocate(a->ctx, NULL, 0, n ? n : 1);
}

void *tnf_alloc0(const tnf_allocator *a, size_t n)
{
    void *p = tnf_alloc(a, n);
    if (p)
        memset(p, 0, n);
    return p;
}

void *tnf_realloc(const tnf_allocator *a, void *p, size_t old_size, size_t new_size)
{
    return a->reallocate(a->ctx, p, old_size, new_size ? new_size : 1);
}

void *tnf_grow(const tnf_allocator *a, void *items, size_t n, size_t *room, size_t size,
               size_t first)
{
    size_t more = *room ? 2 * *room : first;
    if (n < *room)
        return items;
    void *larger = more <= SIZE_MAX / size ? tnf_realloc(a, items, *room * size, more * size)
                                           : NULL;
    if (larger)
        *room = more;
    return larger;
}

void tnf_free(const tnf_allocator *a, void *p, size_t size)
{
    if (p)
        a->reallocate(a->ctx, p, size, 0);
}
