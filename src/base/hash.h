/* SPDX-License-Identifier: MIT */
/* A table from names to positions. It holds (hash, position) pairs only; `key` returns the name of
 * a position. The hash has a random seed, so a hostile file cannot make all names collide. */
#ifndef TNF_BASE_HASH_H
#define TNF_BASE_HASH_H

#include "base/alloc.h"

#define TNF_HASH_NONE UINT32_MAX

typedef struct tnf_hash {
    tnf_allocator alloc;
    struct tnf_hash_slot *slots;
    size_t capacity, used;
    uint64_t seed[2];
    tnf_str (*key)(const void *ctx, uint32_t position);
    const void *ctx;
} tnf_hash;

void tnf_hash_init(tnf_hash *h, const tnf_allocator *alloc,
                   tnf_str (*key)(const void *ctx, uint32_t position), const void *ctx);
void tnf_hash_free(tnf_hash *h);

/* Makes room for n names, if n is known in advance. False: no memory. */
bool tnf_hash_reserve(tnf_hash *h, size_t n);

uint32_t tnf_hash_find(const tnf_hash *h, const char *name, size_t n);

/* The hash itself, for tables of another kind: a random key, and SipHash-1-3 with it. */
void tnf_hash_seed(uint64_t seed[2]);
uint64_t tnf_hash_bytes(const uint64_t seed[2], const void *bytes, size_t n);

/* Adds `position` under its name. *previous becomes TNF_HASH_NONE, or the existing position of that
 * name; the existing one is then kept, unless `replace` is set. False: no memory. */
bool tnf_hash_add(tnf_hash *h, uint32_t position, bool replace, uint32_t *previous);

#endif
