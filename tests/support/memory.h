/* SPDX-License-Identifier: MIT */
/* An allocator that counts, fails on demand, and detects a wrong size when memory is freed.
 *
 *   [size ░░][ memory of the caller … ]
 */
#ifndef TNF_SUPPORT_MEMORY_H
#define TNF_SUPPORT_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/tenfold.h>

#define MEMORY_HEAD 16u

struct memory_log {
    uint64_t calls;   /* calls that request memory */
    uint64_t fail_at; /* from this call on allocation fails; 0: never */
    bool fail_once;   /* only that call fails */
    uint64_t live, peak, blocks;
    uint64_t largest;     /* largest single request */
    uint64_t wrong_sizes; /* blocks freed with a wrong size */
    uint64_t failed;
};

static inline void *memory_reallocate(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct memory_log *log = ctx;
    uint8_t *base = p ? (uint8_t *)p - MEMORY_HEAD : NULL;
    size_t had = 0;
    if (base) {
        memcpy(&had, base, sizeof had);
        log->wrong_sizes += had != old_size;
    }
    if (new_size == 0) {
        log->live -= had;
        log->blocks -= base != NULL;
        free(base);
        return NULL;
    }
    log->calls++;
    log->largest = new_size > log->largest ? new_size : log->largest;
    if (log->fail_at &&
        (log->fail_once ? log->calls == log->fail_at : log->calls >= log->fail_at)) {
        log->failed++;
        return NULL;
    }
    uint8_t *fresh = malloc(new_size + MEMORY_HEAD); /* always moves: stale pointers show */
    if (!fresh)
        return NULL;
    memcpy(fresh, &new_size, sizeof new_size);
    if (base)
        memcpy(fresh + MEMORY_HEAD, p, had < new_size ? had : new_size);
    free(base);
    log->blocks += base == NULL;
    log->live += new_size;
    log->live -= had;
    log->peak = log->live > log->peak ? log->live : log->peak;
    return fresh + MEMORY_HEAD;
}

static inline tnf_allocator memory_allocator(struct memory_log *log)
{
    return (tnf_allocator) { memory_reallocate, log };
}

#endif
