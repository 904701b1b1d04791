/* SPDX-License-Identifier: MIT */
/* Memory from the handle's allocator. */
#ifndef TNF_BASE_ALLOC_H
#define TNF_BASE_ALLOC_H

#include <tenfold/types.h>

/* The given allocator, or malloc if it is zero or NULL. */
tnf_allocator tnf_allocator_or_default(const tnf_allocator *a);

void *tnf_alloc(const tnf_allocator *a, size_t n);  /* uninitialised */
void *tnf_alloc0(const tnf_allocator *a, size_t n); /* zeroed */
void *tnf_realloc(const tnf_allocator *a, void *p, size_t old_size, size_t new_size);
/* Makes room for one more item in an array that has n items. Returns the array, which may have
 * moved. `first` is its initial capacity. NULL: no memory; the array is unchanged. */
void *tnf_grow(const tnf_allocator *a, void *items, size_t n, size_t *room, size_t size,
               size_t first);
void tnf_free(const tnf_allocator *a, void *p, size_t size); /* p may be NULL */

#endif
