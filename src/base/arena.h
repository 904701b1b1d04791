/* SPDX-License-Identifier: MIT */
/* A bump arena with a limit: everything of one handle, released at once.
 *
 *   head ─> [block: ████████░░░░] ─> [block: ████████████] ─> NULL
 */
#ifndef TNF_BASE_ARENA_H
#define TNF_BASE_ARENA_H

#include "base/alloc.h"

typedef struct tnf_arena {
    tnf_allocator alloc;
    struct tnf_arena_block *head;
    uint64_t total, limit; /* bytes taken from the allocator, and their maximum */
    bool over_limit;       /* the last NULL came from the limit, not from the allocator */
} tnf_arena;

void tnf_arena_init(tnf_arena *arena, const tnf_allocator *alloc, uint64_t limit);
void tnf_arena_free(tnf_arena *arena);
/* Frees the content, but keeps a block for the next use. */
void tnf_arena_reset(tnf_arena *arena);

/* Zeroed memory aligned for any type (or to 1 for _str). NULL: no memory, or over the limit. */
void *tnf_arena_alloc(tnf_arena *arena, size_t n);
void *tnf_arena_array(tnf_arena *arena, uint64_t count, size_t size);
/* The same, but not zeroed: for bytes that the caller overwrites immediately. */
void *tnf_arena_raw(tnf_arena *arena, uint64_t n);
/* A copy that ends in a NUL. */
char *tnf_arena_str(tnf_arena *arena, const void *p, size_t n);

/* Makes room for one more item in an array of the arena that has n items. Returns the array, which
 * may have moved. `first` is its initial capacity. NULL: no memory; the array is unchanged. */
void *tnf_arena_grow(tnf_arena *arena, void *items, size_t n, size_t *capacity, size_t size,
                     size_t first);

/* Sets the error for a NULL from the functions above: TNF_ELIMIT or TNF_ENOMEM. */
tnf_status tnf_arena_fail(const tnf_arena *arena, const char *what, tnf_error *e);

#endif
