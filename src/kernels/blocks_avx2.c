/* SPDX-License-Identifier: MIT */
/* The block types for AVX2. */
#include "kernels/blocks.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define BLOCKS_OWN_LANES
#define BLOCKS_LANES 8
#include "kernels/blocks_lanes.h"

static inline void scaled_from_16(float *restrict y, codes q, float d, float m)
{
    __m256 by = _mm256_set1_ps(d), plus = _mm256_set1_ps(m);
    __m256 a = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32((__m128i)q));
    __m256 b = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128((__m128i)q, 8)));
    _mm256_storeu_ps(y, _mm256_add_ps(_mm256_mul_ps(a, by), plus));
    _mm256_storeu_ps(y + 8, _mm256_add_ps(_mm256_mul_ps(b, by), plus));
}

static inline void scaled_16(float *restrict y, codes q, float d)
{
    __m256 by = _mm256_set1_ps(d);
    __m256 a = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32((__m128i)q));
    __m256 b = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128((__m128i)q, 8)));
    _mm256_storeu_ps(y, _mm256_mul_ps(a, by));
    _mm256_storeu_ps(y + 8, _mm256_mul_ps(b, by));
}

static inline void scaled_8(float *restrict y, shorts q, float d)
{
    __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32((__m128i)q));
    _mm256_storeu_ps(y, _mm256_mul_ps(x, _mm256_set1_ps(d)));
}

static inline codes looked_up(codes q, const int8_t table[16])
{
    return (codes)_mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)table),
                                   (__m128i)q);
}

static inline void put_bytes(uint8_t *restrict out, ints v)
{
    const __m256i low = _mm256_set1_epi32(255);
    __m256i all = _mm256_and_si256((__m256i)v, low);
    __m128i half = _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    _mm_storel_epi64((__m128i *)(void *)out, _mm_packus_epi16(half, half));
}

#define LOOPS      tnf_blocks_avx2
#define LOOPS_NAME "avx2"
#include "kernels/blocks_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
