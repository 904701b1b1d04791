/* SPDX-License-Identifier: MIT */
/* Casts for AVX2. */
#include "kernels/cast.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif

/* NaNs become quiet and keep the upper bits of their payload, as everywhere. */
#define CAST_OWN_HALVES
static size_t halves_to_f32(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i));
        _mm256_storeu_ps((float *)(void *)(out + 4 * i), _mm256_cvtph_ps(h));
    }
    return i;
}

static size_t halves_of_f32(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 f = _mm256_loadu_ps((const float *)(const void *)(in + 4 * i));
        _mm_storeu_si128((__m128i *)(void *)(out + 2 * i), _mm256_cvtps_ph(f, 0));
    }
    return i;
}

#include "kernels/cast_halves.h"

#define LOOPS      tnf_casts_avx2
#define LOOPS_NAME "avx2"
#include "kernels/cast_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
