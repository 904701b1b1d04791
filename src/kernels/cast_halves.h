/* SPDX-License-Identifier: MIT */
/* Conversion between f16 and bf16, for processors that convert halves (AVX2, F16C). A file includes
 * this if it may use these instructions. AVX-512 gains nothing: memory is the limit.
 *
 *   f16    s eeeee mmmmmmmmmm            bias 15
 *   bf16   s eeeeeeee mmmmmmm            bias 127: three bits are rounded away, 112 is added
 *
 * Sixteen normal numbers are converted as integers of 16 bits. If one of them is not normal, all
 * sixteen are converted through f32, in which all f16 are normal. */
#ifndef TNF_KERNELS_CAST_HALVES_H
#define TNF_KERNELS_CAST_HALVES_H

#define CAST_OWN_BF16

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* Eight f16 as bf16 in the lower half of each 32 bits. The instruction makes NaNs quiet. */
static inline __m256i bf16_by_f32(__m128i halves)
{
    __m256 f = _mm256_cvtph_ps(halves);
    __m256i bits = _mm256_castps_si256(f);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i more = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(f, f, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_andnot_si256(is_nan, more)), 16);
}

static size_t halves_to_bf16(uint8_t *out, const uint8_t *in, size_t n)
{
    const __m256i but_sign = _mm256_set1_epi16(0x7fff), largest = _mm256_set1_epi16(0x7bff);
    const __m256i smallest = _mm256_set1_epi16(0x0400), bias = _mm256_set1_epi16(112 << 7);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)(in + 2 * i)), all;
        __m256i a = _mm256_and_si256(h, but_sign);
        __m256i not_normal = _mm256_or_si256(_mm256_cmpgt_epi16(a, largest),
                                             _mm256_cmpgt_epi16(smallest, a));
        if (_mm256_testz_si256(not_normal, not_normal)) {
            __m256i odd = _mm256_and_si256(_mm256_srli_epi16(a, 3), _mm256_set1_epi16(1));
            __m256i more = _mm256_add_epi16(odd, _mm256_set1_epi16(3));
            __m256i code = _mm256_srli_epi16(_mm256_add_epi16(a, more), 3);
            all = _mm256_or_si256(_mm256_add_epi16(code, bias), _mm256_andnot_si256(but_sign, h));
        } else {
            __m256i low = bf16_by_f32(_mm256_castsi256_si128(h));
            __m256i high = bf16_by_f32(_mm256_extracti128_si256(h, 1));
            all = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
        }
        _mm256_storeu_si256((__m256i *)(void *)(out + 2 * i), all);
    }
    return i;
}

static size_t halves_of_bf16(uint8_t *out, const uint8_t *in, size_t n)
{
    const __m256i zero = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(in + 2 * i));
        /* elements 0 to 3 and 8 to 11, and the others */
        __m256 f = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, v));
        __m256 g = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, v));
        __m128i low = _mm256_cvtps_ph(f, 0), high = _mm256_cvtps_ph(g, 0);
        _mm_storeu_si128((__m128i *)(void *)(out + 2 * i), _mm_unpacklo_epi64(low, high));
        _mm_storeu_si128((__m128i *)(void *)(out + 2 * i + 16), _mm_unpackhi_epi64(low, high));
    }
    return i;
}

#endif
