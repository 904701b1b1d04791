/* SPDX-License-Identifier: MIT */
/* The loops of tally.h for AVX-512. */
#include "kernels/tally.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))),        \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#endif

/* GCC's code for comparisons and conversions of such vectors is half as fast. */
#define LEAST(kind, to, x)    ((to) = (__typeof__(to))MIN_##kind((__m512i)(to), (__m512i)(x)))
#define GREATEST(kind, to, x) ((to) = (__typeof__(to))MAX_##kind((__m512i)(to), (__m512i)(x)))
#define WIDEN(x)              ((doubles)_mm512_cvtps_pd((__m256)(x)))
#define COUNT_LESS(kind, to, x, than)                                                              \
    ((to) = (__typeof__(to))LESS_##kind((__m512i)(to), (__m512i)(x), (__m512i)(than)))
#define LESS_u16(to, x, than)                                                                      \
    _mm512_mask_sub_epi16(to, _mm512_cmplt_epu16_mask(x, than), to, _mm512_set1_epi16(-1))
#define LESS_u32(to, x, than)                                                                      \
    _mm512_mask_sub_epi32(to, _mm512_cmplt_epu32_mask(x, than), to, _mm512_set1_epi32(-1))
#define LESS_u64(to, x, than)                                                                      \
    _mm512_mask_sub_epi64(to, _mm512_cmplt_epu64_mask(x, than), to, _mm512_set1_epi64(-1))
#define MIN_u8     _mm512_min_epu8
#define MAX_u8     _mm512_max_epu8
#define MIN_i16    _mm512_min_epi16
#define MAX_i16    _mm512_max_epi16
#define MIN_u16    _mm512_min_epu16
#define MAX_u16    _mm512_max_epu16
#define MIN_i32    _mm512_min_epi32
#define MAX_i32    _mm512_max_epi32
#define MIN_u32    _mm512_min_epu32
#define MAX_u32    _mm512_max_epu32
#define MIN_i64    _mm512_min_epi64
#define MAX_i64    _mm512_max_epi64
#define MIN_u64    _mm512_min_epu64
#define MAX_u64    _mm512_max_epu64
#define LOOPS      tnf_tally_avx512
#define LOOPS_NAME "avx512"
#include "kernels/tally_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
