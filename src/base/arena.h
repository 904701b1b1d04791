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
    uint64_t total, limit; /* bytes taken from the allocator; how many may be */
    bool over_limit;       /* the last NULL was the limit's doing, not the allocator's */
} tnf_arena;

void tnf_arena_init(tnf_arena *arena, const tnf_allocator *alloc, uint64_t limit);
void tnf_arena_free(tnf_arena *arena);
/* Forgets all that was taken, but keeps a block for what comes next. */
void tnf_arena_reset(tnf_arena *arena);

/* Zeroed memory aligned for any type (or to 1 for _str). NULL: no memory, or over the limit. */
void *tnf_arena_alloc(tnf_arena *arena, size_t n);
void *tnf_arena_array(tnf_arena *arena, uint64_t count, size_t size);
/* The same, but not zeroed: for bytes that are written over at once. */
void *tnf_arena_raw(tnf_arena *arena, uint64_t n);
/* A copy that ends in a NUL. */
char *tnf_arena_str(tnf_arena *arena, const void *p, size_t n);

/* An array of the arena with n items in it: where it is once there is room for one more, which may
 * be elsewhere. `first` is the room that it begins with. NULL: no memory, and it is as it was. */
void *tnf_arena_grow(tnf_arena *arena, void *items, size_t n, size_t *capacity, size_t size,
                     size_t first);

/* The error for a NULL from above: TNF_ELIMIT or TNF_ENOMEM. */
tnf_status tnf_arena_fail(const tnf_arena *arena, const char *what, tnf_error *e);

#endif
