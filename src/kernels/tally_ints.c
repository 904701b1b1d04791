/* SPDX-License-Identifier: MIT */
/* Tallies of integers, and of types that are counted in the same way. Sums of spans are exact and
 * rounded once. */
#include "base/half.h"
#include "kernels/tally.h"

static double value_of(uint64_t biased, unsigned width, bool is_signed)
{
    if (!is_signed)
        return (double)biased;
    return width == 8 ? (double)(int64_t)(biased ^ (uint64_t)1 << 63)
                      : (double)((int64_t)biased - ((int64_t)1 << (8 * width - 1)));
}

/* A span is short: n * 2^31, and sums of that many halves, fit easily in an int64_t. */
static double sum_of(const tnf_span_int *s, size_t n, unsigned width, bool is_signed)
{
    if (width == 8) {
        int64_t upper = (int64_t)s->odd - (is_signed ? (int64_t)n << 31 : 0);
        return (double)upper * 0x1p32 + (double)s->even;
    }
    int64_t sum = (int64_t)(s->even + s->odd);
    return (double)(sum - (is_signed ? (int64_t)n << (8 * width - 1) : 0));
}

/* ---------------------------------------------------------------- 16 bytes */

/* Sums of the four words of 32 bits of each number. */
typedef struct wide_span {
    tnf_u128 low, high;
    uint64_t zero, words[4];
} wide_span;

static tnf_u128 wide_at(const uint8_t *p)
{
    uint64_t half[2];
    memcpy(half, p, sizeof half);
    return (tnf_u128) { half[TNF_BIG_ENDIAN_HOST], half[!TNF_BIG_ENDIAN_HOST] };
}

static void span_wide(wide_span *s, const uint8_t *x, size_t n, bool is_signed)
{
    const uint64_t sign = is_signed ? (uint64_t)1 << 63 : 0;
    *s = (wide_span) { .low = { UINT64_MAX, UINT64_MAX } };
    for (size_t i = 0; i < n; i++) {
        tnf_u128 v = wide_at(x + 16 * i);
        s->zero += !v.low && !v.high;
        v.high ^= sign;
        s->low = tnf_u128_less(v, s->low) ? v : s->low;
        s->high = tnf_u128_less(s->high, v) ? v : s->high;
        s->words[0] += v.low & UINT32_MAX;
        s->words[1] += v.low >> 32;
        s->words[2] += v.high & UINT32_MAX;
        s->words[3] += v.high >> 32;
    }
}

/* The sum, rounded once. It has at most 138 bits: `top` holds those from 2^128 on. */
static double wide_sum(const wide_span *s, size_t n, bool is_signed)
{
    uint64_t second = s->words[1] + (s->words[0] >> 32), third = s->words[2] + (second >> 32);
    uint64_t fourth = s->words[3] + (third >> 32), top = fourth >> 32;
    tnf_u128 v = { (s->words[0] & UINT32_MAX) | second << 32, (third & UINT32_MAX) | fourth << 32 };
    tnf_u128 bias = { 0, is_signed ? (uint64_t)n << 63 : 0 }; /* n * 2^127, without its own top */
    bool borrow = tnf_u128_less(v, bias), negative;
    v = tnf_u128_minus(v, bias);
    top -= (is_signed ? (uint64_t)n >> 1 : 0) + borrow;
    negative = top >> 63;
    if (negative) {
        v = tnf_u128_minus((tnf_u128) { 0, 0 }, v);
        top = ~top + (!v.low && !v.high);
    }
    tnf_u128 upper = { v.low >> 16 | v.high << 48 | ((v.low & UINT16_MAX) != 0),
                       v.high >> 16 | top << 48 };
    double sum = top ? tnf_u128_to_f64(upper) * 65536 : tnf_u128_to_f64(v);
    return negative ? -sum : sum;
}

static double wide_value(tnf_u128 biased, bool is_signed)
{
    if (!is_signed)
        return tnf_u128_to_f64(biased);
    return tnf_i128_to_f64((tnf_u128) { biased.low, biased.high ^ (uint64_t)1 << 63 });
}

static void tally_wide(tnf_tally *t, const uint8_t *x, size_t n, bool is_signed)
{
    const size_t span = TNF_TALLY_SPAN / 16;
    for (size_t at = 0; at < n; at += span) {
        wide_span s;
        size_t here = n - at < span ? n - at : span;
        span_wide(&s, x + 16 * at, here, is_signed);
        tnf_tally one = { .elements = here, .zero = s.zero, .low = s.low, .high = s.high };
        one.min = wide_value(s.low, is_signed);
        one.max = wide_value(s.high, is_signed);
        one.mean = wide_sum(&s, here, is_signed) / (double)here;
        tnf_tally_merge(t, &one);
    }
}

/* --------------------------------------------------------------------- all */

void tnf_tally_ints(tnf_tally *t, const void *x, size_t n, unsigned width, bool is_signed)
{
    if (width == 16) {
        tally_wide(t, x, n, is_signed);
        return;
    }
    tnf_int_loop *loop = tnf_tally_loops_at(0)->ints[width == 1   ? 0
                                                     : width == 2 ? 1
                                                     : width == 4 ? 2
                                                                  : 3];
    const size_t span = TNF_TALLY_SPAN / width;
    for (size_t at = 0; at < n; at += span) {
        tnf_span_int s;
        size_t here = n - at < span ? n - at : span;
        loop(&s, (const uint8_t *)x + at * width, here, is_signed);
        tnf_tally one = { .elements = here, .zero = s.zero };
        one.min = value_of(s.low, width, is_signed);
        one.max = value_of(s.high, width, is_signed);
        one.low.low = s.low;
        one.high.low = s.high;
        one.mean = sum_of(&s, here, width, is_signed) / (double)here;
        tnf_tally_merge(t, &one);
    }
}

static void take_bools(tnf_tally *t, uint64_t n, uint64_t zero)
{
    tnf_tally one = { .elements = n, .zero = zero };
    one.min = zero > 0 ? 0 : 1;
    one.max = zero < n ? 1 : 0;
    one.mean = (double)(n - zero) / (double)n;
    if (n > 0)
        tnf_tally_merge(t, &one);
}

void tnf_tally_bools(tnf_tally *t, const void *x, size_t n)
{
    tnf_int_loop *loop = tnf_tally_loops_at(0)->ints[0];
    uint64_t zero = 0;
    for (size_t at = 0; at < n; at += TNF_TALLY_SPAN) {
        tnf_span_int s;
        loop(&s, (const uint8_t *)x + at, n - at < TNF_TALLY_SPAN ? n - at : TNF_TALLY_SPAN, false);
        zero += s.zero;
    }
    take_bools(t, n, zero);
}

void tnf_tally_bits(tnf_tally *t, const void *x, size_t n)
{
    const uint8_t *p = x;
    uint64_t ones = tnf_tally_loops_at(0)->ones(p, n / 8);
    if (n % 8)
        ones += (uint64_t)__builtin_popcount(p[n / 8] & ((1u << n % 8) - 1));
    take_bools(t, n, n - ones);
}

/* Spans with a NaN are counted byte by byte. */
static void take_each_power(tnf_tally *t, const uint8_t *x, size_t n)
{
    uint64_t counts[256] = { 0 };
    double powers[256];
    tnf_count_bytes(counts, x, n);
    for (unsigned b = 0; b < 256; b++)
        powers[b] = (double)tnf_f8_e8m0_to_f32((uint8_t)b);
    tnf_tally_weighted(t, powers, counts, 256, 0);
}

void tnf_tally_powers(tnf_tally *t, const void *x, size_t n)
{
    const tnf_tally_loops *loops = tnf_tally_loops_at(0);
    for (size_t at = 0; at < n; at += TNF_TALLY_SPAN) {
        const uint8_t *p = (const uint8_t *)x + at;
        size_t here = n - at < TNF_TALLY_SPAN ? n - at : TNF_TALLY_SPAN;
        tnf_span_float s;
        tnf_span_int least = { 0 };
        loops->powers(&s, p, here);
        if (s.last == 255) {
            take_each_power(t, p, here);
            continue;
        }
        if (s.first == 0)
            loops->ints[0](&least, p, here, false);
        tnf_tally one = { .elements = here };
        one.min = (double)tnf_f8_e8m0_to_f32((uint8_t)s.first);
        one.max = (double)tnf_f8_e8m0_to_f32((uint8_t)s.last);
        one.mean = (s.sum + (double)least.zero * 0x1p-127) / (double)here;
        tnf_tally_merge(t, &one);
    }
}
