/* SPDX-License-Identifier: MIT */
/* The bump arena. Each block is half as large as all blocks before it, up to a megabyte, so at most
 * a third of the memory is idle. Larger requests get a block of their own. */
#include "base/arena.h"

#include "base/ckd.h"
#include "base/error.h"

#include <string.h>

#ifndef FIRST_BLOCK /* tests make each request a block of its own */
#define FIRST_BLOCK 1024u
#define MAX_BLOCK   (1u << 20)
#endif
#define ALIGN 16u

struct tnf_arena_block {
    struct tnf_arena_block *next;
    size_t size, used; /* of data */
    _Alignas(ALIGN) unsigned char data[];
};

void tnf_arena_init(tnf_arena *arena, const tnf_allocator *alloc, uint64_t limit)
{
    *arena = (tnf_arena) { .alloc = *alloc, .limit = limit };
}

void tnf_arena_free(tnf_arena *arena)
{
    for (struct tnf_arena_block *b = arena->head, *next; b; b = next) {
        next = b->next;
        tnf_free(&arena->alloc, b, sizeof *b + b->size);
    }
    arena->head = NULL;
    arena->total = 0;
}

void tnf_arena_reset(tnf_arena *arena)
{
    struct tnf_arena_block *kept = arena->head;
    if (!kept)
        return;
    arena->head = kept->next;
    tnf_arena_free(arena);
    kept->next = NULL;
    kept->used = 0;
    arena->head = kept;
    arena->total = (uint64_t)sizeof *kept + kept->size;
}

static struct tnf_arena_block *new_block(tnf_arena *arena, size_t size)
{
    uint64_t whole = (uint64_t)sizeof(struct tnf_arena_block) + size;
    arena->over_limit = whole > arena->limit - arena->total;
    if (arena->over_limit)
        return NULL;
    struct tnf_arena_block *b = tnf_alloc(&arena->alloc, (size_t)whole);
    if (!b)
        return NULL;
    *b = (struct tnf_arena_block) { .size = size };
    arena->total += whole;
    return b;
}

/* A request that is too large for the common blocks gets a block after the head, which stays in
 * use. */
static void *alloc_alone(tnf_arena *arena, size_t n)
{
    struct tnf_arena_block *b = new_block(arena, n);
    if (!b)
        return NULL;
    b->used = n;
    struct tnf_arena_block **at = arena->head ? &arena->head->next : &arena->head;
    b->next = *at;
    *at = b;
    return b->data;
}

static size_t next_size(const tnf_arena *arena, size_t n)
{
    uint64_t half = arena->total / 2 & ~(uint64_t)(ALIGN - 1);
    size_t size = half < FIRST_BLOCK ? FIRST_BLOCK : half > MAX_BLOCK ? MAX_BLOCK : (size_t)half;
    return size < n ? n : size;
}

static void *take_bytes(tnf_arena *arena, size_t n, size_t align)
{
    if (n > SIZE_MAX / 2 - ALIGN) {
        arena->over_limit = true;
        return NULL;
    }
    struct tnf_arena_block *b = arena->head;
    size_t at = b ? (b->used + align - 1) & ~(align - 1) : 0;
    if (!b || at > b->size || n > b->size - at) {
        if (n > MAX_BLOCK / 4)
            return alloc_alone(arena, n);
        b = new_block(arena, next_size(arena, n));
        if (!b)
            return NULL;
        b->next = arena->head;
        arena->head = b;
        at = 0;
    }
    b->used = at + n;
    return b->data + at;
}

void *tnf_arena_alloc(tnf_arena *arena, size_t n)
{
    void *p = take_bytes(arena, n, n >= ALIGN ? ALIGN : 8);
    return p ? memset(p, 0, n) : NULL;
}

void *tnf_arena_array(tnf_arena *arena, uint64_t count, size_t size)
{
    uint64_t bytes;
    size_t n;
    if (!tnf_ckd_mul(&bytes, count, size) || !tnf_to_size(&n, bytes)) {
        arena->over_limit = true;
        return NULL;
    }
    return tnf_arena_alloc(arena, n);
}

void *tnf_arena_raw(tnf_arena *arena, uint64_t n)
{
    size_t size;
    if (!tnf_to_size(&size, n)) {
        arena->over_limit = true;
        return NULL;
    }
    return take_bytes(arena, size, ALIGN);
}

char *tnf_arena_str(tnf_arena *arena, const void *p, size_t n)
{
    char *s = n == SIZE_MAX ? NULL : take_bytes(arena, n + 1, 1);
    if (!s)
        return NULL;
    if (n)
        memcpy(s, p, n);
    s[n] = 0;
    return s;
}

void *tnf_arena_grow(tnf_arena *arena, void *items, size_t n, size_t *capacity, size_t size,
                     size_t first)
{
    size_t more = *capacity ? 2 * *capacity : first;
    if (n < *capacity)
        return items;
    void *grown = tnf_arena_array(arena, more, size);
    if (!grown)
        return NULL;
    if (n)
        memcpy(grown, items, n * size);
    *capacity = more;
    return grown;
}

tnf_status tnf_arena_fail(const tnf_arena *arena, const char *what, tnf_error *e)
{
    if (arena->over_limit)
        return tnf_fail(
            e, TNF_ELIMIT, TNF_NO_OFFSET,
            "no room for %s within the limit of %llu bytes: raise the limit 'memory' if you "
            "trust the file",
            what, (unsigned long long)arena->limit);
    return tnf_no_memory(what, e);
}
