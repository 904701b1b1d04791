/* SPDX-License-Identifier: MIT */
/* Tallies from spans. Numbers that are not finite are rare: a span that contains any is first
 * reduced to its finite numbers, and then processed like any other. */
#include "kernels/tally.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

const tnf_tally_loops *tnf_tally_loops_at(size_t i)
{
    const tnf_tally_loops *found[3];
    size_t n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        found[n++] = &tnf_tally_avx512;
    if (__builtin_cpu_supports("avx2"))
        found[n++] = &tnf_tally_avx2;
#endif
    found[n++] = &tnf_tally_portable;
    return i < n ? found[i] : NULL;
}

static uint64_t finite_of(const tnf_tally *t)
{
    return t->elements - t->nan - t->inf;
}

void tnf_tally_widen(tnf_tally *t, const tnf_tally *more)
{
    t->low = tnf_u128_less(more->low, t->low) ? more->low : t->low;
    t->high = tnf_u128_less(t->high, more->high) ? more->high : t->high;
}

void tnf_tally_merge(tnf_tally *t, const tnf_tally *more)
{
    uint64_t a = finite_of(t), b = finite_of(more);
    if (b > 0 && a == 0) {
        t->min = more->min;
        t->max = more->max;
        t->mean = more->mean;
        t->squares = more->squares;
        t->low = more->low;
        t->high = more->high;
    } else if (b > 0) {
        double apart = more->mean - t->mean, n = (double)a + (double)b;
        t->min = more->min < t->min ? more->min : t->min;
        t->max = more->max > t->max ? more->max : t->max;
        tnf_tally_widen(t, more);
        t->mean += apart * ((double)b / n);
        t->squares += more->squares + apart * apart * ((double)a / n) * (double)b;
    }
    t->elements += more->elements;
    t->nan += more->nan;
    t->inf += more->inf;
    t->zero += more->zero;
    t->subnormal += more->subnormal;
}

static void take_kind(tnf_tally *t, double x, uint64_t times, double tiny)
{
    bool first = finite_of(t) == 0;
    t->elements += times;
    t->nan += isnan(x) ? times : 0;
    t->inf += isinf(x) ? times : 0;
    t->zero += x == 0 ? times : 0;
    t->subnormal += x != 0 && fabs(x) < tiny ? times : 0;
    if (!isfinite(x))
        return;
    t->min = first || x < t->min ? x + 0.0 : t->min; /* -0 is 0 */
    t->max = first || x > t->max ? x + 0.0 : t->max;
    t->mean += x * (double)times; /* the sum, for now */
}

void tnf_tally_weighted(tnf_tally *t, const double *x, const uint64_t *times, size_t n, double tiny)
{
    tnf_tally here = { 0 };
    for (size_t i = 0; i < n; i++)
        if (times[i] > 0)
            take_kind(&here, x[i], times[i], tiny);
    here.mean = finite_of(&here) ? here.mean / (double)finite_of(&here) : 0;
    for (size_t i = 0; i < n; i++)
        if (times[i] > 0 && isfinite(x[i]))
            here.squares += (x[i] - here.mean) * (x[i] - here.mean) * (double)times[i];
    tnf_tally_merge(t, &here);
}

/* ----------------------------------------------------------------- floats */

static const struct {
    unsigned width, mantissa; /* in bytes, in bits */
} shapes[TNF_TALLY_FLOATS] = {
    [TNF_TALLY_F64] = { 8, 52 },
    [TNF_TALLY_F32] = { 4, 23 },
    [TNF_TALLY_F16] = { 2, 10 },
    [TNF_TALLY_BF16] = { 2, 7 },
};

static uint64_t sign_of(enum tnf_float kind)
{
    return (uint64_t)1 << (8 * shapes[kind].width - 1);
}

static uint64_t infinite_of(enum tnf_float kind)
{
    return sign_of(kind) - ((uint64_t)1 << shapes[kind].mantissa);
}

static double number_of(enum tnf_float kind, uint64_t bits)
{
    uint32_t half = (uint32_t)bits;
    double d;
    float f;
    switch (kind) {
    case TNF_TALLY_F64:
        memcpy(&d, &bits, sizeof d);
        return d + 0.0; /* -0 is 0 */
    case TNF_TALLY_F16:
        return (double)tnf_f16_to_f32((uint16_t)bits) + 0.0;
    case TNF_TALLY_BF16:
        half <<= 16;
        break;
    default:
        break;
    }
    memcpy(&f, &half, sizeof f);
    return (double)f + 0.0;
}

/* Copies the finite numbers of a span that also has others. */
#define KEEP_FINITE(bits)                                                                          \
    static size_t keep_finite_##bits(tnf_tally *t, uint8_t *kept, const uint8_t *x, size_t n,      \
                                     uint64_t infinite)                                            \
    {                                                                                              \
        size_t k = 0;                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint##bits##_t size;                                                                   \
            memcpy(&size, x + i * sizeof size, sizeof size);                                       \
            memcpy(kept + k * sizeof size, &size, sizeof size);                                    \
            size &= INT##bits##_MAX;                                                               \
            t->nan += size > infinite;                                                             \
            t->inf += size == infinite;                                                            \
            k += size < infinite;                                                                  \
        }                                                                                          \
        return k;                                                                                  \
    }

KEEP_FINITE(16)
KEEP_FINITE(32)
KEEP_FINITE(64)

static size_t keep_finite(tnf_tally *t, enum tnf_float kind, uint8_t *kept, const uint8_t *x,
                          size_t n)
{
    uint64_t infinite = infinite_of(kind);
    return shapes[kind].width == 2   ? keep_finite_16(t, kept, x, n, infinite)
           : shapes[kind].width == 4 ? keep_finite_32(t, kept, x, n, infinite)
                                     : keep_finite_64(t, kept, x, n, infinite);
}

static double squares_of(const tnf_tally_loops *loops, enum tnf_float kind, const uint8_t *x,
                         size_t n, double mean)
{
    float wide[TNF_TALLY_SPAN / 2];
    if (kind == TNF_TALLY_F64)
        return loops->squares_f64(x, n, mean);
    if (kind == TNF_TALLY_F32)
        return loops->squares_f32(x, n, mean);
    if (kind == TNF_TALLY_F16)
        loops->widen_f16(wide, x, n);
    else
        loops->widen_bf16(wide, x, n);
    return loops->squares_f32((const uint8_t *)wide, n, mean);
}

/* The smallest and the largest magnitude, from the bits of a span. */
static uint64_t nearest_to_zero(const tnf_span_float *span, uint64_t sign)
{
    uint64_t positive = span->greatest >= 0 ? span->first : UINT64_MAX;
    uint64_t negative = span->least < 0 ? (uint64_t)span->least & (sign - 1) : UINT64_MAX;
    return positive < negative ? positive : negative;
}

static uint64_t farthest_from_zero(const tnf_span_float *span, uint64_t sign)
{
    uint64_t positive = span->greatest >= 0 ? (uint64_t)span->greatest : 0;
    uint64_t negative = span->least < 0 ? span->last & (sign - 1) : 0;
    return positive > negative ? positive : negative;
}

static void take_span(tnf_tally *t, const tnf_tally_loops *loops, enum tnf_float kind,
                      const uint8_t *x, size_t n, bool spread)
{
    tnf_tally here = { .elements = n };
    tnf_span_float span;
    uint64_t sign = sign_of(kind), tiny = (uint64_t)1 << shapes[kind].mantissa;
    uint8_t kept[TNF_TALLY_SPAN];
    loops->floats[kind](&span, x, n);
    if (farthest_from_zero(&span, sign) >= infinite_of(kind)) {
        n = keep_finite(&here, kind, kept, x, n);
        x = kept;
        loops->floats[kind](&span, x, n);
    }
    if (n > 0) {
        uint64_t low = span.least < 0 ? span.last : span.first;
        here.mean = span.sum / (double)n;
        here.min = number_of(kind, low);
        here.max = number_of(kind, (uint64_t)(span.greatest >= 0 ? span.greatest : span.least));
        here.squares = spread ? squares_of(loops, kind, x, n, here.mean) : 0;
    }
    if (n > 0 && nearest_to_zero(&span, sign) < tiny) {
        here.zero = nearest_to_zero(&span, sign) == 0 ? loops->small[kind](x, n, 1) : 0;
        here.subnormal = loops->small[kind](x, n, tiny) - here.zero;
    }
    tnf_tally_merge(t, &here);
}

void tnf_tally_floats(tnf_tally *t, enum tnf_float kind, const void *x, size_t n, bool spread)
{
    const tnf_tally_loops *loops = tnf_tally_loops_at(0);
    const size_t width = shapes[kind].width, span = TNF_TALLY_SPAN / width;
    for (size_t at = 0; at < n; at += span)
        take_span(t, loops, kind, (const uint8_t *)x + at * width, n - at < span ? n - at : span,
                  spread);
}

/* ------------------------------------------------------------------ bytes */

void tnf_widen_f16(float *dst, const void *halves, size_t n)
{
    tnf_tally_loops_at(0)->widen_f16(dst, halves, n);
}

void tnf_widen_bf16(float *dst, const void *halves, size_t n)
{
    tnf_tally_loops_at(0)->widen_bf16(dst, halves, n);
}

/* Four tables, so that equal neighbours do not depend on each other. */
void tnf_count_bytes(uint64_t counts[256], const uint8_t *p, size_t n)
{
    uint32_t tables[4][256];
    for (size_t at = 0; at < n;) {
        size_t end = n - at < UINT32_MAX ? n : at + UINT32_MAX;
        memset(tables, 0, sizeof tables);
        for (; at + 8 <= end; at += 8) {
            uint64_t eight;
            memcpy(&eight, p + at, sizeof eight);
            for (unsigned k = 0; k < 8; k++)
                tables[k % 4][eight >> (8 * k) & 255]++;
        }
        for (; at < end && (end - at < 8); at++)
            tables[0][p[at]]++;
        for (unsigned k = 0; k < 256; k++)
            counts[k] += (uint64_t)tables[0][k] + tables[1][k] + tables[2][k] + tables[3][k];
    }
}
