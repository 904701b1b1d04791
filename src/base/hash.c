/* SPDX-License-Identifier: MIT */
/* Names to positions: open addressing over (hash, position) pairs, at most half full.
 *
 *   slots: [hash|pos] [    ] [hash|pos] [hash|pos] [    ] …     pos == NONE: free
 *
 * The hash is SipHash-1-3 with a random key for each table. Names come from files; without a key, a
 * file could make every lookup linear.
 */
#include "base/hash.h"

#include "base/bytes.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct tnf_hash_slot {
    uint32_t hash, position;
};

static uint64_t rotate_left(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
}

uint64_t tnf_hash_bytes(const uint64_t seed[2], const void *bytes, size_t n)
{
    const char *name = bytes;
    uint64_t v[4] = { seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                      seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u };
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t m = tnf_le64(name + i);
        v[3] ^= m;
        sip_round(v);
        v[0] ^= m;
    }
    uint64_t last = (uint64_t)n << 56;
    for (size_t j = 0; i + j < n; j++)
        last |= (uint64_t)(unsigned char)name[i + j] << 8 * j;
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int r = 0; r < 3; r++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint32_t hash_of(const tnf_hash *h, const char *name, size_t n)
{
    uint64_t x = tnf_hash_bytes(h->seed, name, n);
    return (uint32_t)(x ^ x >> 32);
}

void tnf_hash_seed(uint64_t seed[2])
{
    if (getentropy(seed, 2 * sizeof *seed) == 0)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    seed[0] = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)seed;
    seed[1] = (uint64_t)now.tv_sec ^ (uint64_t)(uintptr_t)&now << 16;
}

void tnf_hash_init(tnf_hash *h, const tnf_allocator *alloc,
                   tnf_str (*key)(const void *ctx, uint32_t position), const void *ctx)
{
    *h = (tnf_hash) { .alloc = *alloc, .key = key, .ctx = ctx };
    tnf_hash_seed(h->seed);
}

void tnf_hash_free(tnf_hash *h)
{
    tnf_free(&h->alloc, h->slots, h->capacity * sizeof *h->slots);
    h->slots = NULL;
    h->capacity = h->used = 0;
}

/* The slot that holds the name, or the free one for it. */
static struct tnf_hash_slot *slot_for(const tnf_hash *h, uint32_t hash, const char *name, size_t n)
{
    size_t mask = h->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct tnf_hash_slot *s = &h->slots[i];
        if (s->position == TNF_HASH_NONE)
            return s;
        if (s->hash != hash)
            continue;
        tnf_str other = h->key(h->ctx, s->position);
        if (other.n == n && (n == 0 || memcmp(other.p, name, n) == 0))
            return s;
    }
}

uint32_t tnf_hash_find(const tnf_hash *h, const char *name, size_t n)
{
    return h->capacity ? slot_for(h, hash_of(h, name, n), name, n)->position : TNF_HASH_NONE;
}

static bool grow_to(tnf_hash *h, size_t capacity)
{
    struct tnf_hash_slot *slots = tnf_alloc(&h->alloc, capacity * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0xff, capacity * sizeof *slots);
    for (size_t i = 0; i < h->capacity; i++) {
        if (h->slots[i].position == TNF_HASH_NONE)
            continue;
        size_t at = h->slots[i].hash & (capacity - 1);
        while (slots[at].position != TNF_HASH_NONE)
            at = (at + 1) & (capacity - 1);
        slots[at] = h->slots[i];
    }
    tnf_free(&h->alloc, h->slots, h->capacity * sizeof *slots);
    h->slots = slots;
    h->capacity = capacity;
    return true;
}

bool tnf_hash_reserve(tnf_hash *h, size_t n)
{
    size_t capacity = h->capacity ? h->capacity : 16;
    while (capacity / 2 < n && capacity <= SIZE_MAX / 2 / sizeof *h->slots)
        capacity *= 2;
    return capacity == h->capacity || grow_to(h, capacity);
}

bool tnf_hash_add(tnf_hash *h, uint32_t position, bool replace, uint32_t *previous)
{
    if (h->used >= h->capacity / 2 && !grow_to(h, h->capacity ? h->capacity * 2 : 16))
        return false;
    tnf_str name = h->key(h->ctx, position);
    uint32_t hash = hash_of(h, name.p, name.n);
    struct tnf_hash_slot *s = slot_for(h, hash, name.p, name.n);
    *previous = s->position;
    if (s->position != TNF_HASH_NONE && !replace)
        return true;
    h->used += s->position == TNF_HASH_NONE;
    *s = (struct tnf_hash_slot) { hash, position };
    return true;
}
