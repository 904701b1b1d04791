/* SPDX-License-Identifier: MIT */
/* The loops of tally.h, written once in vectors of 64 bytes and compiled for each instruction set:
 * a file defines LOOPS, the name of its table, and includes this. If compilers do not find the
 * right instruction, a file has its own LEAST() and similar macros, as tally_avx512.c does.
 *
 * Halves become doubles in place, four in a lane of 64 bits:
 *
 *   bf16    s eeeeeeee mmmmmmm           at the top of the lane
 *   double  s 000eeeeeeee mmmmmmm 0…     moved down by 3, or 6 for f16: the number times 2^-896
 *
 * Sums go to lanes, which are then folded in halves, in the same way on every machine.
 */
#include "base/bytes.h"
#include "base/prefetch.h"
#include "kernels/tally.h"

#include <limits.h>
#include <string.h>

typedef int8_t bytes __attribute__((vector_size(64)));
typedef uint8_t ubytes __attribute__((vector_size(64)));
typedef int16_t shorts __attribute__((vector_size(64)));
typedef uint16_t ushorts __attribute__((vector_size(64)));
typedef int32_t ints __attribute__((vector_size(64)));
typedef uint32_t uints __attribute__((vector_size(64)));
typedef int64_t longs __attribute__((vector_size(64)));
typedef uint64_t ulongs __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));
typedef float half_floats __attribute__((vector_size(32)));
typedef double doubles __attribute__((vector_size(64)));
typedef uint16_t half_shorts __attribute__((vector_size(32)));

#define LANES            16u
#define PICK(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))

#ifndef LEAST
/* `kind` is i8, u8 … u64: the type of the lanes. */
#define LEAST(kind, to, x)            ((to) = PICK((__typeof__(to))((x) < (to)), x, to))
#define GREATEST(kind, to, x)         ((to) = PICK((__typeof__(to))((x) > (to)), x, to))
#define WIDEN(x)                      __builtin_convertvector(x, doubles)
#define COUNT_LESS(kind, to, x, than) ((to) -= (__typeof__(to))((x) < (than)))
#endif

static double fold_lanes(const doubles *a, const doubles *b)
{
    double s[8];
    for (unsigned k = 0; k < 8; k++)
        s[k] = (*a)[k] + (*b)[k];
    for (unsigned n = 4; n > 0; n /= 2)
        for (unsigned k = 0; k < n; k++)
            s[k] += s[k + n];
    return s[0];
}

/* The four extremes of the bits of a span, whose vectors are called v* in the loops below. */
#define EXTREMES(kind, ukind, integer, vector, uvector, MIN, MAX, UMAX)                            \
    typedef struct extremes_##kind {                                                               \
        vector least, greatest;                                                                    \
        uvector first, last;                                                                       \
    } extremes_##kind;                                                                             \
                                                                                                   \
    static inline void meet_##kind(extremes_##kind *e, const vector *v)                            \
    {                                                                                              \
        uvector u = (uvector)*v;                                                                   \
        LEAST(kind, e->least, *v);                                                                 \
        GREATEST(kind, e->greatest, *v);                                                           \
        LEAST(ukind, e->first, u);                                                                 \
        GREATEST(ukind, e->last, u);                                                               \
    }                                                                                              \
                                                                                                   \
    static inline extremes_##kind none_##kind(void)                                                \
    {                                                                                              \
        return (extremes_##kind) { (vector) { 0 } + (MAX), (vector) { 0 } + (MIN),                 \
                                   (uvector) { 0 } + (UMAX), (uvector) { 0 } };                    \
    }                                                                                              \
                                                                                                   \
    static inline void tell_##kind(tnf_span_float *out, const extremes_##kind *e,                  \
                                   const uint8_t *x, size_t from, size_t n)                        \
    {                                                                                              \
        integer least = (MAX), greatest = (MIN);                                                   \
        u##integer first = (UMAX), last = 0;                                                       \
        for (size_t k = 0; k < 64 / sizeof least; k++) {                                           \
            least = e->least[k] < least ? e->least[k] : least;                                     \
            greatest = e->greatest[k] > greatest ? e->greatest[k] : greatest;                      \
            first = e->first[k] < first ? e->first[k] : first;                                     \
            last = e->last[k] > last ? e->last[k] : last;                                          \
        }                                                                                          \
        for (size_t i = from; i < n; i++) {                                                        \
            integer one;                                                                           \
            memcpy(&one, x + i * sizeof one, sizeof one);                                          \
            least = one < least ? one : least;                                                     \
            greatest = one > greatest ? one : greatest;                                            \
            first = (u##integer)one < first ? (u##integer)one : first;                             \
            last = (u##integer)one > last ? (u##integer)one : last;                                \
        }                                                                                          \
        *out = (tnf_span_float) { least, greatest, first, last, 0 };                               \
    }

EXTREMES(i16, u16, int16_t, shorts, ushorts, INT16_MIN, INT16_MAX, UINT16_MAX)
EXTREMES(i32, u32, int32_t, ints, uints, INT32_MIN, INT32_MAX, UINT32_MAX)
EXTREMES(i64, u64, int64_t, longs, ulongs, INT64_MIN, INT64_MAX, UINT64_MAX)

/* ----------------------------------------------------------------- floats */

static void span_f32(tnf_span_float *out, const uint8_t *x, size_t n)
{
    extremes_i32 e = none_i32();
    doubles a = { 0 }, b = { 0 };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        ints bits;
        half_floats first, second;
        TNF_PREFETCH_OF(x, i * 4);
        memcpy(&bits, x + i * 4, sizeof bits);
        memcpy(&first, x + i * 4, sizeof first);
        memcpy(&second, x + i * 4 + sizeof first, sizeof second);
        meet_i32(&e, &bits);
        a += WIDEN(first);
        b += WIDEN(second);
    }
    tell_i32(out, &e, x, i, n);
    out->sum = fold_lanes(&a, &b);
    for (; i < n; i++) {
        float one;
        memcpy(&one, x + i * 4, sizeof one);
        out->sum += (double)one;
    }
}

static void span_f64(tnf_span_float *out, const uint8_t *x, size_t n)
{
    extremes_i64 e = none_i64();
    doubles a = { 0 };
    const doubles none = { 0 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        longs bits;
        doubles numbers;
        TNF_PREFETCH_OF(x, i * 8);
        memcpy(&bits, x + i * 8, sizeof bits);
        memcpy(&numbers, x + i * 8, sizeof numbers);
        meet_i64(&e, &bits);
        a += numbers;
    }
    tell_i64(out, &e, x, i, n);
    out->sum = fold_lanes(&a, &none);
    for (; i < n; i++) {
        double one;
        memcpy(&one, x + i * 8, sizeof one);
        out->sum += one;
    }
}

/* Converts halves at the top of lanes of 32 bits to doubles: the upper and the lower one of each
 * two lanes. It uses shifts of 32 bits, since AVX2 has no arithmetic one of 64. */
static inline void add_halves(doubles *upper, doubles *lower, const uints *lanes, int down,
                              int64_t keep)
{
    ints moved = (ints)*lanes >> down;
    longs first = ((longs)moved) & keep, second = (longs)((ulongs)moved << 32) & keep;
    doubles x, y;
    memcpy(&x, &first, sizeof x);
    memcpy(&y, &second, sizeof y);
    *upper += x;
    *lower += y;
}

static inline double one_half(const uint8_t *half, int down)
{
    uint16_t h;
    double out;
    memcpy(&h, half, sizeof h);
    uint64_t sign = (uint64_t)(h >> 15) << 63, size = (uint64_t)(h & 0x7fffu) << (48 - down);
    size |= sign;
    memcpy(&out, &size, sizeof out);
    return out;
}

static inline void span_half(tnf_span_float *out, const uint8_t *x, size_t n, int down,
                             int64_t keep, double scale)
{
    extremes_i16 e = none_i16();
    doubles a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        uints lanes, below;
        shorts halves;
        TNF_PREFETCH_OF(x, i * 2);
        memcpy(&lanes, x + i * 2, sizeof lanes);
        memcpy(&halves, x + i * 2, sizeof halves);
        below = lanes << 16;
        meet_i16(&e, &halves);
        add_halves(&a, &b, &lanes, down, keep);
        add_halves(&c, &d, &below, down, keep);
    }
    tell_i16(out, &e, x, i, n);
    a += c;
    b += d;
    out->sum = fold_lanes(&a, &b);
    for (; i < n; i++)
        out->sum += one_half(x + i * 2, down);
    out->sum *= scale;
}

static void span_bf16(tnf_span_float *out, const uint8_t *x, size_t n)
{
    span_half(out, x, n, 3, (int64_t)0x8fffe00000000000u, 0x1p896);
}

static void span_f16(tnf_span_float *out, const uint8_t *x, size_t n)
{
    span_half(out, x, n, 6, (int64_t)0x81fffc0000000000u, 0x1p1008);
}

/* Exponents of eight bits, without mantissa: eight in a lane. */
static void span_powers(tnf_span_float *out, const uint8_t *x, size_t n)
{
    const uint64_t keep = (uint64_t)0xff << 52;
    ubytes first = (ubytes) { 0 } + UINT8_MAX, last = { 0 };
    doubles sums[4] = { { 0 } };
    size_t i = 0;
    *out = (tnf_span_float) { .first = UINT8_MAX };
    for (; i + 64 <= n; i += 64) {
        ulongs lanes, one;
        TNF_PREFETCH_OF(x, i);
        memcpy(&lanes, x + i, sizeof lanes);
        for (int k = 0; TNF_BIG_ENDIAN_HOST && k < 8; k++) /* the same order of sums everywhere */
            lanes[k] = __builtin_bswap64(lanes[k]);
        LEAST(u8, first, (ubytes)lanes);
        GREATEST(u8, last, (ubytes)lanes);
        for (int k = 0; k < 8; k++) {
            doubles power;
            one = (k < 7 ? lanes << (k < 7 ? 52 - 8 * k : 0) : lanes >> 4) & keep;
            memcpy(&power, &one, sizeof power);
            sums[k % 4] += power;
        }
    }
    for (size_t k = 0; k < 64; k++) {
        out->first = first[k] < out->first ? first[k] : out->first;
        out->last = last[k] > out->last ? last[k] : out->last;
    }
    sums[0] += sums[2];
    sums[1] += sums[3];
    out->sum = fold_lanes(&sums[0], &sums[1]);
    for (; i < n; i++) {
        uint64_t bits = (uint64_t)x[i] << 52;
        double power;
        memcpy(&power, &bits, sizeof power);
        out->first = x[i] < out->first ? x[i] : out->first;
        out->last = x[i] > out->last ? x[i] : out->last;
        out->sum += power;
    }
    out->sum *= 0x1p896;
}

/* A span has at most 2^13 bytes, so lanes of counts do not overflow. */
#define SMALL(bits, vector)                                                                        \
    static uint64_t small_##bits(const uint8_t *x, size_t n, uint64_t tiny)                        \
    {                                                                                              \
        const uint##bits##_t magnitude = INT##bits##_MAX;                                          \
        const vector least = (vector) { 0 } + (uint##bits##_t)tiny;                                \
        const size_t width = sizeof magnitude;                                                     \
        vector counts = { 0 };                                                                     \
        uint64_t small = 0;                                                                        \
        size_t i = 0;                                                                              \
        for (; i + 64 / width <= n; i += 64 / width) {                                             \
            vector v;                                                                              \
            memcpy(&v, x + i * width, sizeof v);                                                   \
            v &= magnitude;                                                                        \
            COUNT_LESS(u##bits, counts, v, least);                                                 \
        }                                                                                          \
        for (size_t k = 0; k < 64 / width; k++)                                                    \
            small += counts[k];                                                                    \
        for (; i < n; i++) {                                                                       \
            uint##bits##_t one;                                                                    \
            memcpy(&one, x + i * width, sizeof one);                                               \
            small += (one & magnitude) < tiny;                                                     \
        }                                                                                          \
        return small;                                                                              \
    }

SMALL(16, ushorts)
SMALL(32, uints)
SMALL(64, ulongs)

/* --------------------------------------------------------------- integers */

/* Sums in lanes of twice the width: the numbers at even positions and those at odd ones. Numbers of
 * 64 bits have no wider lane; their lower and upper halves are summed. */
#define INTEGERS(bits, vector, wide, half, lower)                                                  \
    static void span_##bits(tnf_span_int *out, const uint8_t *x, size_t n, bool is_signed)         \
    {                                                                                              \
        const uint##bits##_t sign_bit = is_signed ? (uint##bits##_t)((uint64_t)1 << ((bits)-1))    \
                                                  : 0;                                             \
        const size_t width = sizeof sign_bit;                                                      \
        vector low = (vector) { 0 } + UINT##bits##_MAX, high = { 0 }, zeros = { 0 };               \
        wide even = { 0 }, odd = { 0 };                                                            \
        size_t i = 0;                                                                              \
        *out = (tnf_span_int) { .low = UINT##bits##_MAX };                                         \
        for (; i + 64 / width <= n; i += 64 / width) {                                             \
            vector v;                                                                              \
            const size_t at = i * width;                                                           \
            TNF_PREFETCH_OF(x, at);                                                                \
            memcpy(&v, x + at, sizeof v);                                                          \
            zeros -= (vector)(v == 0);                                                             \
            v ^= sign_bit;                                                                         \
            LEAST(u##bits, low, v);                                                                \
            GREATEST(u##bits, high, v);                                                            \
            even += (wide)v & (lower);                                                             \
            odd += (wide)v >> (half);                                                              \
        }                                                                                          \
        for (size_t k = 0; k < 64 / width; k++) {                                                  \
            out->low = low[k] < out->low ? low[k] : out->low;                                      \
            out->high = high[k] > out->high ? high[k] : out->high;                                 \
            out->zero += zeros[k];                                                                 \
        }                                                                                          \
        for (size_t k = 0; k < sizeof even / sizeof even[0]; k++) {                                \
            out->even += even[k];                                                                  \
            out->odd += odd[k];                                                                    \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            uint##bits##_t one;                                                                    \
            memcpy(&one, x + i * width, sizeof one);                                               \
            out->zero += one == 0;                                                                 \
            one ^= sign_bit;                                                                       \
            out->low = one < out->low ? one : out->low;                                            \
            out->high = one > out->high ? one : out->high;                                         \
            out->even += (bits) < 64 ? one : one & UINT32_MAX;                                     \
            out->odd += (bits) < 64 ? 0 : (uint64_t)one >> 32;                                     \
        }                                                                                          \
    }

INTEGERS(8, ubytes, ushorts, 8, UINT8_MAX)
INTEGERS(16, ushorts, uints, 16, UINT16_MAX)
INTEGERS(32, uints, ulongs, 32, UINT32_MAX)
INTEGERS(64, ulongs, ulongs, 32, UINT32_MAX)

static uint64_t count_ones(const uint8_t *x, size_t n)
{
    uint64_t sum = 0;
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t eight[8];
        TNF_PREFETCH_OF(x, i);
        memcpy(eight, x + i, sizeof eight);
        for (unsigned k = 0; k < 8; k++)
            sum += (uint64_t)__builtin_popcountll(eight[k]);
    }
    for (; i < n; i++)
        sum += (uint64_t)__builtin_popcount(x[i]);
    return sum;
}

/* ---------------------------------------------------------------- squares */

static double squares_f32(const uint8_t *x, size_t n, double mean)
{
    doubles a = { 0 }, b = { 0 };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        half_floats first, second;
        memcpy(&first, x + i * 4, sizeof first);
        memcpy(&second, x + i * 4 + sizeof first, sizeof second);
        doubles p = WIDEN(first) - mean;
        doubles q = WIDEN(second) - mean;
        p = p * p; /* separate statements, so that nothing is fused on any machine */
        q = q * q;
        a += p;
        b += q;
    }
    double sum = fold_lanes(&a, &b);
    for (; i < n; i++) {
        float one;
        memcpy(&one, x + i * 4, sizeof one);
        double d = (double)one - mean;
        d = d * d;
        sum += d;
    }
    return sum;
}

static double squares_f64(const uint8_t *x, size_t n, double mean)
{
    doubles a = { 0 };
    const doubles none = { 0 };
    size_t i = 0;
    for (; i + LANES / 2 <= n; i += LANES / 2) {
        doubles p;
        memcpy(&p, x + i * 8, sizeof p);
        p = p - mean;
        p = p * p;
        a += p;
    }
    double sum = fold_lanes(&a, &none);
    for (; i < n; i++) {
        double d;
        memcpy(&d, x + i * 8, sizeof d);
        d = d - mean;
        d = d * d;
        sum += d;
    }
    return sum;
}

/* ----------------------------------------------------------------- places */

/* 1.5 * 2^52 leaves no room for a fraction: adding it rounds to the nearest integer, which is then
 * in the lower bits. */
static inline void place_numbers(int64_t *out, const doubles *numbers, double scale, int64_t first,
                                 size_t n)
{
    const double rounder = 0x1.8p52;
    const int64_t zero = 0x4338000000000000;
    doubles y = *numbers * scale, sum = y + rounder, rounded = sum - rounder;
    longs finite = (longs)(y * 0 == 0), places = (longs)sum;
    places += (longs)(rounded > y); /* true is -1 */
    places -= zero + first;
    places = PICK(finite, places, (longs) { 0 } + TNF_TALLY_NOWHERE);
    memcpy(out, &places, n * sizeof *out);
}

static void places_f64(int64_t *out, const uint8_t *x, size_t n, double scale, int64_t first)
{
    doubles y = { 0 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&y, x + i * sizeof scale, sizeof y);
        place_numbers(out + i, &y, scale, first, 8);
    }
    memcpy(&y, x + i * sizeof scale, (n - i) * sizeof scale);
    place_numbers(out + i, &y, scale, first, n - i);
}

static void places_f32(int64_t *out, const uint8_t *x, size_t n, double scale, int64_t first)
{
    half_floats y = { 0 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&y, x + i * sizeof(float), sizeof y);
        doubles wide = WIDEN(y);
        place_numbers(out + i, &wide, scale, first, 8);
    }
    memcpy(&y, x + i * sizeof(float), (n - i) * sizeof(float));
    doubles wide = WIDEN(y);
    place_numbers(out + i, &wide, scale, first, n - i);
}

/* --------------------------------------------------------------- widening */

/* Both kinds of halves without a multiplication: 2^-14 is added to subnormals and then subtracted
 * again, exactly. */
static void widen_f16_one(float *dst, const uint8_t *half)
{
    uint16_t h;
    memcpy(&h, half, sizeof h);
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, size = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t exponent = size & 0x0f800000u;
    uint32_t normal = size + (exponent == 0x0f800000u ? 224u << 23 : 112u << 23);
    uint32_t raised = size + (113u << 23), small;
    float f;
    memcpy(&f, &raised, sizeof f);
    f -= 0x1p-14f;
    memcpy(&small, &f, sizeof f);
    uint32_t bits = (exponent == 0 ? small : normal) | sign;
    memcpy(dst, &bits, sizeof bits);
}

static void widen_f16(float *dst, const uint8_t *halves, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        half_shorts h;
        memcpy(&h, halves + 2 * i, sizeof h);
        uints all = __builtin_convertvector(h, uints);
        uints sign = (all & 0x8000u) << 16, size = (all & 0x7fffu) << 13;
        uints exponent = size & 0x0f800000u, small;
        uints normal = size + (112u << 23) + ((uints)(exponent == 0x0f800000u) & (112u << 23));
        uints raised = size + (113u << 23);
        floats f;
        memcpy(&f, &raised, sizeof f);
        f -= 0x1p-14f;
        memcpy(&small, &f, sizeof f);
        uints bits = PICK((uints)(exponent == 0), small, normal) | sign;
        memcpy(dst + i, &bits, sizeof bits);
    }
    for (; i < n; i++)
        widen_f16_one(dst + i, halves + 2 * i);
}

static void widen_bf16(float *dst, const uint8_t *halves, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        half_shorts h;
        memcpy(&h, halves + 2 * i, sizeof h);
        uints bits = __builtin_convertvector(h, uints) << 16;
        memcpy(dst + i, &bits, sizeof bits);
    }
    for (; i < n; i++) {
        uint16_t h;
        memcpy(&h, halves + 2 * i, sizeof h);
        uint32_t bits = (uint32_t)h << 16;
        memcpy(dst + i, &bits, sizeof bits);
    }
}

const tnf_tally_loops LOOPS = {
    .name = LOOPS_NAME,
    .floats = { [TNF_TALLY_F64] = span_f64,
                [TNF_TALLY_F32] = span_f32,
                [TNF_TALLY_F16] = span_f16,
                [TNF_TALLY_BF16] = span_bf16 },
    .small = { [TNF_TALLY_F64] = small_64,
               [TNF_TALLY_F32] = small_32,
               [TNF_TALLY_F16] = small_16,
               [TNF_TALLY_BF16] = small_16 },
    .ints = { span_8, span_16, span_32, span_64 },
    .powers = span_powers,
    .ones = count_ones,
    .squares_f32 = squares_f32,
    .squares_f64 = squares_f64,
    .places_f32 = places_f32,
    .places_f64 = places_f64,
    .widen_f16 = widen_f16,
    .widen_bf16 = widen_bf16,
};
