/* SPDX-License-Identifier: MIT */
/* kmeans.h for AVX-512. */
#include "kernels/kmeans.h"

#if defined(__x86_64__)
#include "kernels/dot.h"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))),        \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#endif
#include <immintrin.h>

#define LANES                  16u
#define VECTORS                4u
#define PRODUCT_ROWS           6u
#define PRODUCT_VECTORS        4u
#define load(p)                _mm512_loadu_ps(p)
#define store(p, v)            _mm512_storeu_ps(p, v)
#define splat(x)               _mm512_set1_ps(x)
#define no_marks()             _mm512_setzero_si512()
#define store_marks(p, v)      _mm512_storeu_si512(p, v)

#define plus_product(s, a, b)  _mm512_fmadd_ps(a, b, s)
#define minus_product(s, a, b) _mm512_fnmadd_ps(a, b, s)
#define lesser(a, b)           _mm512_min_ps(a, b)

typedef __m512 vec;
typedef __m512i marks;

static inline void keep_least(vec *least, marks *at, vec a, int32_t group)
{
    __mmask16 less = _mm512_cmp_ps_mask(a, *least, _CMP_LT_OQ);
    *least = _mm512_min_ps(a, *least);
    *at = _mm512_mask_set1_epi32(*at, less, group);
}

static inline int first_equal(vec a, vec b)
{
    unsigned equal = _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
    return equal ? __builtin_ctz(equal) : -1;
}

#include "kernels/kmeans_lanes.h"

const tnf_kmeans_kernels tnf_kmeans_avx512 = { "avx512", nearest_centres, multiply_rows };

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int tnf_no_kmeans_avx512;
#endif
