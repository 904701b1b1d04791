/* SPDX-License-Identifier: MIT */
/* kmeans.h for AVX2 with FMA. */
#include "kernels/kmeans.h"

#if defined(__x86_64__)
#include "kernels/dot.h"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#include <immintrin.h>

#define LANES                  8u
#define VECTORS                4u
#define PRODUCT_ROWS           6u
#define PRODUCT_VECTORS        2u
#define load(p)                _mm256_loadu_ps(p)
#define store(p, v)            _mm256_storeu_ps(p, v)
#define splat(x)               _mm256_set1_ps(x)
#define no_marks()             _mm256_setzero_si256()
#define store_marks(p, v)      _mm256_storeu_si256((__m256i *)(p), v)

#define plus_product(s, a, b)  _mm256_fmadd_ps(a, b, s)
#define minus_product(s, a, b) _mm256_fnmadd_ps(a, b, s)
#define lesser(a, b)           _mm256_min_ps(a, b)

typedef __m256 vec;
typedef __m256i marks;

static inline void keep_least(vec *least, marks *at, vec a, int32_t group)
{
    __m256i less = _mm256_castps_si256(_mm256_cmp_ps(a, *least, _CMP_LT_OQ));
    *least = _mm256_min_ps(a, *least);
    *at = _mm256_blendv_epi8(*at, _mm256_set1_epi32(group), less);
}

static inline int first_equal(vec a, vec b)
{
    unsigned equal = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
    return equal ? __builtin_ctz(equal) : -1;
}

#include "kernels/kmeans_lanes.h"

const tnf_kmeans_kernels tnf_kmeans_avx2 = { "avx2", nearest_centres, multiply_rows };

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int tnf_no_kmeans_avx2;
#endif
