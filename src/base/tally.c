/* SPDX-License-Identifier: MIT */
/* Tallies put together from spans. What is not finite is rare: a span that has any is sorted out
 * first and then taken like any other. */
#include "base/tally.h"

#include <math.h>
#include <string.h>

#define SPAN 2048u

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

void tnf_tally_merge(tnf_tally *t, const tnf_tally *more)
{
    uint64_t a = finite_of(t), b = finite_of(more);
    if (b > 0 && a == 0) {
        t->min = more->min;
        t->max = more->max;
        t->mean = more->mean;
        t->squares = more->squares;
    } else if (b > 0) {
        double apart = more->mean - t->mean, n = (double)a + (double)b;
        t->min = more->min < t->min ? more->min : t->min;
        t->max = more->max > t->max ? more->max : t->max;
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

/* ---------------------------------------------------------------- numbers */

/* One function for floats and one for doubles: the finite numbers of a span that has others, in
 * `kept`, and a span into a tally. */
#define TALLY(kind, number, integer, infinite)                                                     \
    static size_t keep_finite_##kind(tnf_tally *t, number kept[SPAN], const uint8_t *x, size_t n)  \
    {                                                                                              \
        size_t k = 0;                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            integer size;                                                                          \
            memcpy(&size, x + i * sizeof size, sizeof size);                                       \
            memcpy(&kept[k], x + i * sizeof size, sizeof size);                                    \
            size &= ~((integer)1 << (8 * sizeof size - 1));                                        \
            t->nan += size > (infinite);                                                           \
            t->inf += size == (infinite);                                                          \
            k += size < (infinite);                                                                \
        }                                                                                          \
        return k;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static void count_small_##kind(tnf_tally *t, const uint8_t *x, size_t n, integer tiny)         \
    {                                                                                              \
        uint32_t zero = 0, small = 0;                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            integer size;                                                                          \
            memcpy(&size, x + i * sizeof size, sizeof size);                                       \
            size &= ~((integer)1 << (8 * sizeof size - 1));                                        \
            zero += size == 0;                                                                     \
            small += size < tiny;                                                                  \
        }                                                                                          \
        t->zero += zero;                                                                           \
        t->subnormal += small > zero ? small - zero : 0;                                           \
    }                                                                                              \
                                                                                                   \
    static double from_order_##kind(integer order)                                                 \
    {                                                                                              \
        integer sign = (integer)1 << (8 * sizeof order - 1);                                       \
        integer bits = order & sign ? order ^ ~sign : order;                                       \
        number value;                                                                              \
        memcpy(&value, &bits, sizeof value);                                                       \
        return (double)value + 0.0;                                                                \
    }                                                                                              \
                                                                                                   \
    static void take_span_##kind(tnf_tally *t, const tnf_tally_loops *loops, const uint8_t *x,     \
                                 size_t n, integer tiny, bool spread)                              \
    {                                                                                              \
        tnf_tally here = { .elements = n };                                                        \
        tnf_span_##kind span;                                                                      \
        number kept[SPAN];                                                                         \
        loops->span_##kind(&span, x, n);                                                           \
        if ((integer)span.far >= (infinite)) {                                                     \
            n = keep_finite_##kind(&here, kept, x, n);                                             \
            x = (const uint8_t *)kept;                                                             \
            loops->span_##kind(&span, x, n);                                                       \
        }                                                                                          \
        if (n > 0) {                                                                               \
            here.mean = span.sum / (double)n;                                                      \
            here.min = from_order_##kind((integer)span.low);                                       \
            here.max = from_order_##kind((integer)span.high);                                      \
            here.squares = spread ? loops->squares_##kind(x, n, here.mean) : 0;                    \
        }                                                                                          \
        if (n > 0 && ((integer)span.near < tiny || span.near == 0))                                \
            count_small_##kind(&here, x, n, tiny);                                                 \
        tnf_tally_merge(t, &here);                                                                 \
    }                                                                                              \
                                                                                                   \
    void tnf_tally_##kind(tnf_tally *t, const void *x, size_t n, number tiny, bool spread)         \
    {                                                                                              \
        const tnf_tally_loops *loops = tnf_tally_loops_at(0);                                      \
        integer tiny_bits;                                                                         \
        memcpy(&tiny_bits, &tiny, sizeof tiny_bits);                                               \
        for (size_t at = 0; at < n; at += SPAN) {                                                  \
            size_t here = n - at < SPAN ? n - at : SPAN;                                           \
            take_span_##kind(t, loops, (const uint8_t *)x + at * sizeof tiny, here, tiny_bits,     \
                             spread);                                                              \
        }                                                                                          \
    }

TALLY(f32, float, uint32_t, 0x7f800000u)
TALLY(f64, double, uint64_t, 0x7ff0000000000000u)

void tnf_tally_bf16(tnf_tally *t, const void *halves, size_t n)
{
    const tnf_tally_loops *loops = tnf_tally_loops_at(0);
    const uint32_t tiny = 0x00800000u;
    for (size_t at = 0; at < n; at += SPAN) {
        size_t here = n - at < SPAN ? n - at : SPAN;
        const uint8_t *x = (const uint8_t *)halves + 2 * at;
        tnf_span_f32 span;
        float wide[SPAN];
        loops->span_bf16(&span, x, here);
        if ((uint32_t)span.far >= 0x7f800000u || (uint32_t)span.near < tiny) {
            loops->widen_bf16(wide, x, here);
            take_span_f32(t, loops, (const uint8_t *)wide, here, tiny, false);
            continue;
        }
        tnf_tally one = { .elements = here, .mean = span.sum / (double)here };
        one.min = from_order_f32((uint32_t)span.low);
        one.max = from_order_f32((uint32_t)span.high);
        tnf_tally_merge(t, &one);
    }
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

/* Four tables, so that equal neighbours do not wait for one another. */
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
