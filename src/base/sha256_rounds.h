/* SPDX-License-Identifier: MIT */
/* One round of SHA-256 (FIPS 180-4, sections 4.1.2 and 6.2.2), for implementations with scalar
 * numbers.
 *
 *   a b c d e f g h        a round computes two of them;
 *     \ \ \ + \ \ \ \      the others move by one place
 *   a b c d e f g h
 *
 * The places are members of a struct that is passed from call to call. If eight or sixteen rounds
 * are unrolled, each member is a register and nothing moves.
 */
#ifndef TNF_BASE_SHA256_ROUNDS_H
#define TNF_BASE_SHA256_ROUNDS_H

#include "base/sha256.h"

#define TNF_SHA256_INLINE static inline __attribute__((always_inline))

/* Unrolls loops with a small constant count. */
#if defined(__clang__)
#define TNF_SHA256_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TNF_SHA256_UNROLL _Pragma("GCC unroll 16")
#endif

typedef struct tnf_sha256_letters {
    uint32_t a, b, c, d, e, f, g, h;
} tnf_sha256_letters;

/* Fractions of the cube roots of the first 64 primes. */
extern const uint32_t tnf_sha256_rounds[64];

TNF_SHA256_INLINE uint32_t tnf_rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* `word` is the word of the schedule plus the constant of the round. Choice and majority are those
 * of the standard in fewer steps: a ^ b of one round is b ^ c of the next. */
TNF_SHA256_INLINE tnf_sha256_letters tnf_sha256_round(tnf_sha256_letters s, uint32_t word)
{
    uint32_t choice = s.g ^ (s.e & (s.f ^ s.g));
    uint32_t majority = s.b ^ ((s.a ^ s.b) & (s.b ^ s.c));
    uint32_t first = s.h + word + choice +
                     (tnf_rotate_right(s.e, 6) ^ tnf_rotate_right(s.e, 11) ^
                      tnf_rotate_right(s.e, 25));
    uint32_t second = majority + (tnf_rotate_right(s.a, 2) ^ tnf_rotate_right(s.a, 13) ^
                                  tnf_rotate_right(s.a, 22));
    return (tnf_sha256_letters) { first + second, s.a, s.b, s.c, s.d + first, s.e, s.f, s.g };
}

TNF_SHA256_INLINE tnf_sha256_letters tnf_sha256_letters_of(const uint32_t *hash)
{
    return (tnf_sha256_letters) { hash[0], hash[1], hash[2], hash[3],
                                  hash[4], hash[5], hash[6], hash[7] };
}

TNF_SHA256_INLINE void tnf_sha256_add_letters(uint32_t *hash, tnf_sha256_letters s)
{
    hash[0] += s.a;
    hash[1] += s.b;
    hash[2] += s.c;
    hash[3] += s.d;
    hash[4] += s.e;
    hash[5] += s.f;
    hash[6] += s.g;
    hash[7] += s.h;
}

#endif
