/* SPDX-License-Identifier: MIT */
/* SHA-256 and SHA-1 (FIPS 180-4, sections 4.1, 5.1.1, 6.1.3 and 6.2.2) in portable C, and the
 * choice of the fastest implementation on this machine. All take the same blocks with the same
 * padding:
 *
 *   message  80  00 …  length in bits, big-endian[8]     blocks of 64 bytes, one after the other
 */
#include "base/sha256.h"

#include "base/sha256_rounds.h"

#include <stdatomic.h>
#include <string.h>

/* Every reader contains this code, to check undo files. If the program should be small, the rounds
 * are a loop, which takes 50 % more time. */
#ifdef __OPTIMIZE_SIZE__
#define UNROLLED
#else
#define UNROLLED TNF_SHA256_UNROLL
#endif

/* Fractions of the square roots of the first eight primes. */
static const uint32_t initial[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* Fractions of the cube roots of the first 64. */
const uint32_t tnf_sha256_rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The schedule of a block: word t needs the sixteen words before it, so a ring of sixteen is
 * enough. */
TNF_SHA256_INLINE uint32_t next_word(uint32_t w[16], unsigned t)
{
    uint32_t a = w[(t + 1) & 15], b = w[(t + 14) & 15];
    uint32_t s0 = tnf_rotate_right(a, 7) ^ tnf_rotate_right(a, 18) ^ a >> 3;
    uint32_t s1 = tnf_rotate_right(b, 17) ^ tnf_rotate_right(b, 19) ^ b >> 10;
    return w[t] += s0 + w[(t + 9) & 15] + s1;
}

void tnf_sha256_portable(uint32_t *hash, const uint8_t *blocks, size_t n)
{
    for (; n > 0; n--, blocks += 64) {
        uint32_t w[16];
        tnf_sha256_letters s = tnf_sha256_letters_of(hash);
        for (unsigned from = 0; from < 64; from += 16)
            UNROLLED for (unsigned t = 0; t < 16; t++)
            {
                uint32_t word = from == 0 ? (w[t] = big_endian(blocks + (size_t)4 * t))
                                          : next_word(w, t);
                s = tnf_sha256_round(s, word + tnf_sha256_rounds[from + t]);
            }
        tnf_sha256_add_letters(hash, s);
    }
}

/* As next_word(), rotated by one more bit. */
static uint32_t next_word_1(uint32_t w[16], unsigned t)
{
    w[t & 15] = tnf_rotate_right(w[(t + 13) & 15] ^ w[(t + 8) & 15] ^ w[(t + 2) & 15] ^ w[t & 15],
                                 31);
    return w[t & 15];
}

static void add_block_1(uint32_t *hash, const uint8_t *block)
{
    static const uint32_t constants[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
    uint32_t w[16], a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4];
    for (unsigned t = 0; t < 80; t++) {
        uint32_t word = t < 16 ? (w[t] = big_endian(block + 4 * t)) : next_word_1(w, t);
        uint32_t f = t < 20        ? (b & c) | (~b & d)
                     : t / 20 == 2 ? (b & c) | (b & d) | (c & d)
                                   : b ^ c ^ d;
        uint32_t next = tnf_rotate_right(a, 27) + f + e + constants[t / 20] + word;
        e = d;
        d = c;
        c = tnf_rotate_right(b, 2);
        b = a;
        a = next;
    }
    hash[0] += a;
    hash[1] += b;
    hash[2] += c;
    hash[3] += d;
    hash[4] += e;
}

static void add_1(uint32_t *hash, const uint8_t *blocks, size_t n)
{
    for (; n > 0; n--, blocks += 64)
        add_block_1(hash, blocks);
}

void tnf_sha256_begin_small(tnf_sha256 *s)
{
    memcpy(s->hash, initial, sizeof initial);
    s->total = 0;
    s->add = tnf_sha256_portable;
}

/* Chosen once, since CPUID takes microseconds in a virtual machine. */
static tnf_sha256_fn *best_way(void)
{
    static _Atomic(tnf_sha256_fn *) chosen;
    tnf_sha256_fn *best = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (best)
        return best;
    best = tnf_sha256_by_cpu();
    if (!best)
        best = tnf_sha256_by_avx2();
    if (!best)
        best = tnf_sha256_portable;
    atomic_store_explicit(&chosen, best, memory_order_relaxed);
    return best;
}

void tnf_sha256_begin(tnf_sha256 *s)
{
    tnf_sha256_begin_small(s);
    s->add = best_way();
}

void tnf_sha1_begin(tnf_sha256 *s)
{
    static const uint32_t first[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
    memcpy(s->hash, first, sizeof first);
    s->total = 0;
    s->add = add_1;
}

void tnf_sha256_update(tnf_sha256 *s, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = s->total % 64;
    s->total += n;
    if (held + n < 64) {
        if (n)
            memcpy(s->block + held, p, n);
        return;
    }
    if (held) {
        memcpy(s->block + held, p, 64 - held);
        s->add(s->hash, s->block, 1);
        p += 64 - held;
        n -= 64 - held;
    }
    s->add(s->hash, p, n / 64);
    if (n % 64)
        memcpy(s->block, p + (n - n % 64), n % 64);
}

static void end_digest(tnf_sha256 *s, uint8_t *out, unsigned bytes)
{
    uint64_t bits = s->total * 8;
    uint8_t tail[72] = { 0x80 };
    size_t n = 1 + (119 - s->total % 64) % 64;
    for (int i = 0; i < 8; i++)
        tail[n + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    tnf_sha256_update(s, tail, n + 8);
    for (unsigned i = 0; i < bytes; i++)
        out[i] = (uint8_t)(s->hash[i / 4] >> (24 - 8 * (i % 4)));
}

void tnf_sha256_end(tnf_sha256 *s, uint8_t out[32])
{
    end_digest(s, out, 32);
}

void tnf_sha256_small(uint8_t out[32], const void *bytes, size_t n)
{
    tnf_sha256 s;
    tnf_sha256_begin_small(&s);
    tnf_sha256_update(&s, bytes, n);
    tnf_sha256_end(&s, out);
}

void tnf_sha1_end(tnf_sha256 *s, uint8_t out[20])
{
    end_digest(s, out, 20);
}
