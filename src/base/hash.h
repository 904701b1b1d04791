/* SPDX-License-Identifier: MIT */
/* A table from names to positions. It holds (hash, position) pairs only; the names stay where they
 * are and are fetched through `key`. Keyed with a random seed, so a hostile file cannot make every
 * name collide. */
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

/* Room for n names, where that is known beforehand. False: no memory. */
bool tnf_hash_reserve(tnf_hash *h, size_t n);

uint32_t tnf_hash_find(const tnf_hash *h, const char *name, size_t n);

/* The hash itself, for tables of another kind: a random key, and SipHash-1-3 under it. */
void tnf_hash_seed(uint64_t seed[2]);
uint64_t tnf_hash_bytes(const uint64_t seed[2], const void *bytes, size_t n);

/* Adds `position` under its name. If the name is there already, *previous is its position and
 * nothing changes (pass replace to make the new one win); else TNF_HASH_NONE. False: no memory. */
bool tnf_hash_add(tnf_hash *h, uint32_t position, bool replace, uint32_t *previous);

#endif
