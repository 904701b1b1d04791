/* SPDX-License-Identifier: MIT */
/* Casts for AVX-512. */
#include "kernels/cast.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,f16c"))),   \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,f16c")
#endif

/* NaNs become quiet and keep the upper bits of their payload, as everywhere. The instructions for
 * bf16 are not used: they treat subnormal numbers as 0. */
#define CAST_OWN_HALVES
static size_t halves_to_f32(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)(in + 2 * i));
        _mm512_storeu_ps(out + 4 * i, _mm512_cvtph_ps(h));
    }
    return i;
}

static size_t halves_of_f32(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512 f = _mm512_loadu_ps(in + 4 * i);
        _mm256_storeu_si256((__m256i *)(void *)(out + 2 * i), _mm512_cvtps_ph(f, 0));
    }
    return i;
}

#include "kernels/cast_halves.h"

#define LOOPS      tnf_casts_avx512
#define LOOPS_NAME "avx512"
#include "kernels/cast_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
