/* SPDX-License-Identifier: MIT */
/* Small floats, 64 at once, by table lookups: AVX-512 with VBMI and VNNI. */
#include "base/prefetch.h"
#include "kernels/tally_small.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vnni,popcnt")))
#define INLINE inline __attribute__((always_inline))

TARGET static int64_t sum_of(__m512i lanes)
{
    __m512i wide = _mm512_add_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(lanes)),
                                    _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(lanes, 1)));
    return _mm512_reduce_add_epi64(wide);
}

/* Folds the halves of a vector, and the halves of the result, down to one byte. */
#define FOLD(name, op)                                                                             \
    TARGET static uint8_t name(__m512i v)                                                          \
    {                                                                                              \
        __m256i half = _mm256_##op(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));    \
        __m128i x = _mm_##op(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));     \
        x = _mm_##op(x, _mm_srli_si128(x, 8));                                                     \
        x = _mm_##op(x, _mm_srli_si128(x, 4));                                                     \
        x = _mm_##op(x, _mm_srli_si128(x, 2));                                                     \
        x = _mm_##op(x, _mm_srli_si128(x, 1));                                                     \
        return (uint8_t)_mm_extract_epi8(x, 0);                                                    \
    }

FOLD(least_signed, min_epi8)
FOLD(greatest_signed, max_epi8)
FOLD(least, min_epu8)
FOLD(greatest, max_epu8)

/* ------------------------------------------------------------- eight bits */

/* The bits of the elements, as in tnf_span_float. */
typedef struct range {
    __m512i least, greatest, first, last;
} range;

TARGET static void tell_range(tnf_small_sums *out, const tnf_small_tables *t, const range *r)
{
    int8_t low = (int8_t)least_signed(r->least), high = (int8_t)greatest_signed(r->greatest);
    uint8_t first = least(r->first), last = greatest(r->last);
    out->special = (t->one_nan && low == INT8_MIN) || high >= (int)t->special ||
                   last >= 128 + (int)t->special;
    out->min = t->value[low < 0 ? last : first];
    out->max = t->value[(uint8_t)(high >= 0 ? high : low)];
}

TARGET static INLINE size_t take_eights(tnf_small_sums *out, const tnf_small_tables *t,
                                        const uint8_t *x, size_t n, unsigned groups)
{
    const __m512i nibble = _mm512_set1_epi8(15), size = _mm512_set1_epi8(127);
    const __m512i exponent = _mm512_set1_epi8((char)t->exponent);
    const __m512i low = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)t->low));
    __m512i high[TNF_SMALL_GROUPS], sums[TNF_SMALL_GROUPS];
    range r = { _mm512_set1_epi8(127), _mm512_set1_epi8(-128), _mm512_set1_epi8(-1),
                _mm512_setzero_si512() };
    size_t at = 0;
    uint64_t small = 0, zero = 0;
    for (unsigned k = 0; k < groups; k++) {
        high[k] = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)t->high[k]));
        sums[k] = _mm512_setzero_si512();
    }
    for (; at + 64 <= n; at += 64) {
        __m512i v = _mm512_loadu_si512(x + at);
        TNF_PREFETCH_OF(x, at);
        __m512i lower = _mm512_and_si512(v, nibble);
        __m512i upper = _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble);
        __mmask64 tiny = _mm512_testn_epi8_mask(v, exponent);
        __m512i part = _mm512_shuffle_epi8(low, lower);
        part = _mm512_mask_add_epi8(part, tiny, lower, lower);
        r.least = _mm512_min_epi8(r.least, v);
        r.greatest = _mm512_max_epi8(r.greatest, v);
        r.first = _mm512_min_epu8(r.first, v);
        r.last = _mm512_max_epu8(r.last, v);
        small += (uint64_t)_mm_popcnt_u64(tiny);
        zero += (uint64_t)_mm_popcnt_u64(_mm512_testn_epi8_mask(v, size));
        for (unsigned k = 0; k < groups; k++)
            sums[k] = _mm512_dpbusd_epi32(sums[k], part, _mm512_shuffle_epi8(high[k], upper));
    }
    out->zero = zero;
    out->subnormal = small - zero;
    for (unsigned k = 0; k < groups; k++)
        out->units += sum_of(sums[k]) * ((int64_t)1 << 8 * k);
    out->units /= 2; /* each was counted twice */
    if (at > 0)
        tell_range(out, t, &r);
    return at;
}

TARGET static size_t eights_2(tnf_small_sums *out, const tnf_small_tables *t, const uint8_t *x,
                              size_t n)
{
    return take_eights(out, t, x, n, 2);
}

TARGET static size_t eights_4(tnf_small_sums *out, const tnf_small_tables *t, const uint8_t *x,
                              size_t n)
{
    return take_eights(out, t, x, n, 4);
}

/* -------------------------------------------------------------- fewer bits */

typedef struct state {
    __m512i digits[2], rank, kind; /* tables */
    __m512i low, high, sums[2];
    __m512i kinds;             /* of at most 15 elements per lane: zeros below, subnormals above */
    __m512i zeros, subnormals; /* eight sums each */
} state;

TARGET static void begin_state(state *s, const tnf_small_tables *t)
{
    s->digits[0] = _mm512_loadu_si512(t->digits[0]);
    s->digits[1] = _mm512_loadu_si512(t->digits[1]);
    s->rank = _mm512_loadu_si512(t->rank);
    s->kind = t->bits == 6 ? _mm512_loadu_si512(t->kind)
                           : _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)t->kind));
    s->low = _mm512_set1_epi8(-1);
    s->high = s->sums[0] = s->sums[1] = _mm512_setzero_si512();
    s->kinds = s->zeros = s->subnormals = _mm512_setzero_si512();
}

/* 64 elements, each in the lower bits of a byte. */
TARGET static INLINE void take_lanes(state *s, __m512i v, bool both)
{
    const __m512i one = _mm512_set1_epi8(1);
    __m512i rank = _mm512_permutexvar_epi8(v, s->rank);
    s->low = _mm512_min_epu8(s->low, rank);
    s->high = _mm512_max_epu8(s->high, rank);
    s->kinds = _mm512_add_epi8(s->kinds, _mm512_permutexvar_epi8(v, s->kind));
    s->sums[0] = _mm512_dpbusd_epi32(s->sums[0], one, _mm512_permutexvar_epi8(v, s->digits[0]));
    if (both)
        s->sums[1] = _mm512_dpbusd_epi32(s->sums[1], one, _mm512_permutexvar_epi8(v, s->digits[1]));
}

TARGET static INLINE void count_kinds(state *s)
{
    const __m512i none = _mm512_setzero_si512(), low = _mm512_set1_epi8(15);
    __m512i above = _mm512_and_si512(_mm512_srli_epi16(s->kinds, 4), low);
    s->zeros = _mm512_add_epi64(s->zeros, _mm512_sad_epu8(_mm512_and_si512(s->kinds, low), none));
    s->subnormals = _mm512_add_epi64(s->subnormals, _mm512_sad_epu8(above, none));
    s->kinds = none;
}

TARGET static void end_state(tnf_small_sums *out, const tnf_small_tables *t, const state *s)
{
    out->zero = (uint64_t)_mm512_reduce_add_epi64(s->zeros);
    out->subnormal = (uint64_t)_mm512_reduce_add_epi64(s->subnormals);
    out->units = sum_of(s->sums[0]) + 16 * sum_of(s->sums[1]);
    out->min = t->value[t->by_rank[least(s->low)]];
    out->max = t->value[t->by_rank[greatest(s->high)]];
}

/*   6 bytes  [11 000000] [2222 1111] …   to lanes of 8, then 8 bits from every sixth on */
TARGET static size_t take_sixes(tnf_small_sums *out, const tnf_small_tables *t, const uint8_t *x,
                                size_t n)
{
    const __m512i places = _mm512_set_epi64(
        (long long)0xffff2f2e2d2c2b2au, (long long)0xffff292827262524u,
        (long long)0xffff232221201f1eu, (long long)0xffff1d1c1b1a1918u,
        (long long)0xffff171615141312u, (long long)0xffff11100f0e0d0cu,
        (long long)0xffff0b0a09080706u, (long long)0xffff050403020100u);
    const __m512i from = _mm512_set1_epi64(0x2a241e18120c0600);
    state s;
    begin_state(&s, t);
    size_t at = 0;
    while (n - at >= 64) {
        size_t end_of_seven = n - at < 448 ? at + (n - at) / 64 * 64 : at + 448;
        for (; at < end_of_seven; at += 64, x += 48) {
            __m512i v = _mm512_maskz_loadu_epi8(0xffffffffffff, x);
            __builtin_prefetch(x + TNF_PREFETCH, 0, 2);
            v = _mm512_multishift_epi64_epi8(from, _mm512_permutexvar_epi8(places, v));
            take_lanes(&s, v, true);
        }
        count_kinds(&s);
    }
    if (at > 0)
        end_state(out, t, &s);
    return at;
}

TARGET static size_t take_fours(tnf_small_sums *out, const tnf_small_tables *t, const uint8_t *x,
                                size_t n)
{
    state s;
    begin_state(&s, t);
    size_t at = 0;
    while (n - at >= 128) {
        size_t end_of_seven = n - at < 896 ? at + (n - at) / 128 * 128 : at + 896;
        for (; at < end_of_seven; at += 128) {
            __m512i v = _mm512_loadu_si512(x + at / 2);
            TNF_PREFETCH_OF(x, at / 2);
            take_lanes(&s, v, false);
            take_lanes(&s, _mm512_srli_epi16(v, 4), false);
        }
        count_kinds(&s);
    }
    if (at > 0)
        end_state(out, t, &s);
    return at;
}

static size_t by_lookup(tnf_small_sums *out, const tnf_small_tables *t, const uint8_t *x, size_t n)
{
    if (t->bits == 8)
        return t->groups == 2 ? eights_2(out, t, x, n) : eights_4(out, t, x, n);
    return t->bits == 6 ? take_sixes(out, t, x, n) : take_fours(out, t, x, n);
}

tnf_small_loop_fn *tnf_small_loop_here(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
               ? by_lookup
               : NULL;
}

#else
tnf_small_loop_fn *tnf_small_loop_here(void)
{
    return NULL;
}
#endif
