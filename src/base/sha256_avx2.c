/* SPDX-License-Identifier: MIT */
/* SHA-256 for x86-64 processors that have AVX2 but no SHA instructions. Rounds depend on each
 * other, so a block cannot be divided into lanes; its schedule can. Two blocks are scheduled at
 * once while the rounds of the first are computed. The schedule is complete when the rounds of the
 * second begin:
 *
 *   vectors   │ schedule of 1 and 2 │                 │     four words of each in a register
 *   scalars   │ rounds of 1         │ rounds of 2     │     (BMI2 rotates without a copy)
 *
 * With the CPU detection this is eleven kilobytes, so small programs leave it out.
 */
#include "base/sha256_rounds.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__OPTIMIZE_SIZE__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))
#define INLINE TARGET static inline __attribute__((always_inline))

/* Words are big-endian: the bytes of each are reversed. */
INLINE __m256i load_words(const uint8_t *p)
{
    const __m256i reversed = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
    __m128i one = _mm_loadu_si128((const __m128i *)(const void *)p),
            two = _mm_loadu_si128((const __m128i *)(const void *)(p + 64));
    return _mm256_shuffle_epi8(_mm256_set_m128i(two, one), reversed);
}

INLINE __m256i rotate_each(__m256i x, int n)
{
    return _mm256_or_si256(_mm256_srli_epi32(x, n), _mm256_slli_epi32(x, 32 - n));
}

/* σ1 of the words 0 and 1 of `pairs`. Each word is in `pairs` twice, so that a shift of 64 bits
 * rotates it. The results are the even words. */
INLINE __m256i late_sigma(__m256i pairs)
{
    return _mm256_xor_si256(
        _mm256_xor_si256(_mm256_srli_epi64(pairs, 17), _mm256_srli_epi64(pairs, 19)),
        _mm256_srli_epi32(pairs, 10));
}

/* The four words after the sixteen of a, b, c, d. The last two need σ1 of the first two. */
INLINE __m256i next_words(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i to_low = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 8, 9, 10, 11, -1, -1, -1, -1, -1, -1, -1, -1));
    const __m256i to_high = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 2, 3, 8, 9, 10, 11));
    __m256i x = _mm256_alignr_epi8(b, a, 4);
    __m256i early = _mm256_xor_si256(_mm256_xor_si256(rotate_each(x, 7), rotate_each(x, 18)),
                                     _mm256_srli_epi32(x, 3));
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(a, _mm256_alignr_epi8(d, c, 4)), early);
    __m256i late = late_sigma(_mm256_shuffle_epi32(d, 0xfa));
    sum = _mm256_add_epi32(sum, _mm256_shuffle_epi8(late, to_low));
    late = late_sigma(_mm256_shuffle_epi32(sum, 0x50));
    return _mm256_add_epi32(sum, _mm256_shuffle_epi8(late, to_high));
}

/* Stores the words that the rounds from t on add. */
INLINE void store_words(uint32_t *words, unsigned t, __m256i x)
{
    __m128i k = _mm_loadu_si128((const __m128i *)(const void *)(tnf_sha256_rounds + t));
    _mm256_store_si256((__m256i *)(void *)(words + (size_t)2 * t),
                       _mm256_add_epi32(x, _mm256_broadcastsi128_si256(k)));
}

/* Four rounds from t on, of one of the two blocks. */
INLINE tnf_sha256_letters four_rounds(tnf_sha256_letters s, const uint32_t *words, unsigned t)
{
    const uint32_t *w = words + (size_t)2 * t;
    return tnf_sha256_round(
        tnf_sha256_round(tnf_sha256_round(tnf_sha256_round(s, w[0]), w[1]), w[2]), w[3]);
}

TARGET static void add_two(uint32_t *hash, const uint8_t *p, uint32_t *words)
{
    __m256i m[4];
    tnf_sha256_letters s = tnf_sha256_letters_of(hash);
    TNF_SHA256_UNROLL for (unsigned i = 0; i < 4; i++)
    {
        m[i] = load_words(p + (size_t)16 * i);
        store_words(words, 4 * i, m[i]);
    }
    for (unsigned t = 0; t < 48; t += 16)
        TNF_SHA256_UNROLL for (unsigned i = 0; i < 4; i++)
        {
            m[i] = next_words(m[i], m[(i + 1) % 4], m[(i + 2) % 4], m[(i + 3) % 4]);
            store_words(words, t + 16 + 4 * i, m[i]);
            s = four_rounds(s, words, t + 4 * i);
        }
    TNF_SHA256_UNROLL for (unsigned t = 48; t < 64; t += 4) s = four_rounds(s, words, t);
    tnf_sha256_add_letters(hash, s);
}

TARGET static void add_second(uint32_t *hash, const uint32_t *words)
{
    tnf_sha256_letters s = tnf_sha256_letters_of(hash);
    for (unsigned t = 0; t < 64; t += 16)
        TNF_SHA256_UNROLL for (unsigned i = 0; i < 16; i += 4) s = four_rounds(s, words, t + i);
    tnf_sha256_add_letters(hash, s);
}

TARGET static void add_by_avx2(uint32_t *hash, const uint8_t *blocks, size_t n)
{
    _Alignas(32) uint32_t words[2 * 64]; /* 0-3 of the first block, 0-3 of the second, 4-7 … */
    for (; n >= 2; n -= 2, blocks += 2 * 64) {
        add_two(hash, blocks, words);
        add_second(hash, words + 4);
    }
    tnf_sha256_portable(hash, blocks, n);
}

tnf_sha256_fn *tnf_sha256_by_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                   __builtin_cpu_supports("bmi2")
               ? add_by_avx2
               : NULL;
}
#else
tnf_sha256_fn *tnf_sha256_by_avx2(void)
{
    return NULL;
}
#endif
