/* SPDX-License-Identifier: MIT */
/* The loops of tally.h, written once in vectors of 64 bytes and compiled for each instruction set:
 * a file defines LOOPS, the name of its table, and includes this.
 *
 *   a float as an integer     0x80000000 -0 … 0xff800000 -Inf | 0 … 0x7f800000 Inf … NaN
 *   in order (signed)         bits of negative numbers but the sign turned round
 *
 * Sums go to sixteen lanes, which are then halved, on every machine alike.
 */
#include "base/tally.h"

#include <limits.h>
#include <string.h>

typedef int32_t ints __attribute__((vector_size(64)));
typedef int64_t longs __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));
typedef float half_floats __attribute__((vector_size(32)));
typedef double doubles __attribute__((vector_size(64)));
typedef int16_t shorts __attribute__((vector_size(64)));
typedef uint16_t quarter_shorts __attribute__((vector_size(16)));
typedef uint32_t half_uints __attribute__((vector_size(32)));
typedef uint16_t half_shorts __attribute__((vector_size(32)));
typedef uint32_t uints __attribute__((vector_size(64)));

#define LANES            16u
#define PICK(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))
#define LOWER(to, x)     ((to) = PICK((x) < (to), x, to))
#define HIGHER(to, x)    ((to) = PICK((x) > (to), x, to))

/* One number into a span: what is left of it after whole vectors. */
#define SPAN_ONE(integer, number, magnitude)                                                       \
    do {                                                                                           \
        integer bits, order, size;                                                                 \
        number value;                                                                              \
        memcpy(&bits, x + i * sizeof bits, sizeof bits);                                           \
        memcpy(&value, x + i * sizeof value, sizeof value);                                        \
        size = bits & (magnitude);                                                                 \
        order = bits < 0 ? bits ^ (magnitude) : bits;                                              \
        out->low = order < out->low ? order : out->low;                                            \
        out->high = order > out->high ? order : out->high;                                         \
        out->near = size < out->near ? size : out->near;                                           \
        out->far = size > out->far ? size : out->far;                                              \
        out->sum += (double)value;                                                                 \
    } while (0)

/* The lanes of the vectors of a span into one. */
#define SPAN_FOLD()                                                                                \
    for (size_t k = 0; k < sizeof low / sizeof low[0]; k++) {                                      \
        out->low = low[k] < out->low ? low[k] : out->low;                                          \
        out->high = high[k] > out->high ? high[k] : out->high;                                     \
        out->near = near[k] < out->near ? near[k] : out->near;                                     \
        out->far = far[k] > out->far ? far[k] : out->far;                                          \
    }

static double fold(const doubles *a, const doubles *b)
{
    double s[8];
    for (unsigned k = 0; k < 8; k++)
        s[k] = (*a)[k] + (*b)[k];
    for (unsigned n = 4; n > 0; n /= 2)
        for (unsigned k = 0; k < n; k++)
            s[k] += s[k + n];
    return s[0];
}

static void span_f32(tnf_span_f32 *out, const uint8_t *x, size_t n)
{
    const int32_t magnitude = INT32_MAX;
    ints low = (ints) { 0 } + INT32_MAX, high = (ints) { 0 } + INT32_MIN, near = low;
    ints far = (ints) { 0 };
    doubles a = { 0 }, b = { 0 };
    size_t i = 0;
    *out = (tnf_span_f32) { INT32_MAX, INT32_MIN, INT32_MAX, 0, 0 };
    for (; i + LANES <= n; i += LANES) {
        ints bits;
        half_floats first, second;
        memcpy(&bits, x + i * 4, sizeof bits);
        memcpy(&first, x + i * 4, sizeof first);
        memcpy(&second, x + i * 4 + sizeof first, sizeof second);
        ints size = bits & magnitude, order = bits ^ ((bits >> 31) & magnitude);
        LOWER(low, order);
        HIGHER(high, order);
        LOWER(near, size);
        HIGHER(far, size);
        a += __builtin_convertvector(first, doubles);
        b += __builtin_convertvector(second, doubles);
    }
    SPAN_FOLD()
    out->sum = fold(&a, &b);
    for (; i < n; i++)
        SPAN_ONE(int32_t, float, magnitude);
}

/* As span_f32() of the floats whose upper halves they are: ranges of the halves, sums of the
 * floats, to the same lanes. */
static void span_bf16(tnf_span_f32 *out, const uint8_t *x, size_t n)
{
    const int16_t magnitude = INT16_MAX;
    shorts low = (shorts) { 0 } + INT16_MAX, high = (shorts) { 0 } + INT16_MIN, near = low;
    shorts far = (shorts) { 0 };
    doubles a = { 0 }, b = { 0 };
    size_t i = 0;
    int16_t l = INT16_MAX, h = INT16_MIN, s = INT16_MAX, f = 0;
    double rest = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        shorts bits;
        quarter_shorts piece[4];
        memcpy(&bits, x + i * 2, sizeof bits);
        memcpy(piece, x + i * 2, sizeof piece);
        shorts size = bits & magnitude, order = bits ^ ((bits >> 15) & magnitude);
        LOWER(low, order);
        HIGHER(high, order);
        LOWER(near, size);
        HIGHER(far, size);
        for (unsigned k = 0; k < 4; k++) {
            half_uints wide = __builtin_convertvector(piece[k], half_uints) << 16;
            half_floats numbers;
            memcpy(&numbers, &wide, sizeof numbers);
            if (k % 2 == 0)
                a += __builtin_convertvector(numbers, doubles);
            else
                b += __builtin_convertvector(numbers, doubles);
        }
    }
    for (size_t k = 0; k < 2 * LANES; k++) {
        l = low[k] < l ? low[k] : l;
        h = high[k] > h ? high[k] : h;
        s = near[k] < s ? near[k] : s;
        f = far[k] > f ? far[k] : f;
    }
    for (; i < n; i++) {
        int16_t bits;
        float number;
        memcpy(&bits, x + i * 2, sizeof bits);
        uint32_t wide = (uint32_t)(uint16_t)bits << 16;
        memcpy(&number, &wide, sizeof number);
        int16_t size = (int16_t)(bits & magnitude);
        int16_t order = (int16_t)(bits < 0 ? bits ^ magnitude : bits);
        l = order < l ? order : l;
        h = order > h ? order : h;
        s = size < s ? size : s;
        f = size > f ? size : f;
        rest += (double)number;
    }
    *out = (tnf_span_f32) { l < 0 ? l * 65536 + 65535 : l * 65536,
                            h < 0 ? h * 65536 + 65535 : h * 65536, s * 65536, f * 65536,
                            fold(&a, &b) + rest };
}

static void span_f64(tnf_span_f64 *out, const uint8_t *x, size_t n)
{
    const int64_t magnitude = INT64_MAX;
    longs low = (longs) { 0 } + INT64_MAX, high = (longs) { 0 } + INT64_MIN, near = low;
    longs far = (longs) { 0 };
    doubles a = { 0 };
    const doubles none = { 0 };
    size_t i = 0;
    *out = (tnf_span_f64) { INT64_MAX, INT64_MIN, INT64_MAX, 0, 0 };
    for (; i + LANES / 2 <= n; i += LANES / 2) {
        longs bits;
        doubles numbers;
        memcpy(&bits, x + i * 8, sizeof bits);
        memcpy(&numbers, x + i * 8, sizeof numbers);
        longs size = bits & magnitude, order = bits ^ ((bits >> 63) & magnitude);
        LOWER(low, order);
        HIGHER(high, order);
        LOWER(near, size);
        HIGHER(far, size);
        a += numbers;
    }
    SPAN_FOLD()
    out->sum = fold(&a, &none);
    for (; i < n; i++)
        SPAN_ONE(int64_t, double, magnitude);
}

static double squares_f32(const uint8_t *x, size_t n, double mean)
{
    doubles a = { 0 }, b = { 0 };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        half_floats first, second;
        memcpy(&first, x + i * 4, sizeof first);
        memcpy(&second, x + i * 4 + sizeof first, sizeof second);
        doubles p = __builtin_convertvector(first, doubles) - mean;
        doubles q = __builtin_convertvector(second, doubles) - mean;
        p = p * p; /* statements of their own: nothing is fused, anywhere */
        q = q * q;
        a += p;
        b += q;
    }
    double sum = fold(&a, &b);
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
    double sum = fold(&a, &none);
    for (; i < n; i++) {
        double d;
        memcpy(&d, x + i * 8, sizeof d);
        d = d - mean;
        d = d * d;
        sum += d;
    }
    return sum;
}

/* Both kinds of halves without a multiplication: subnormals are put on 2^-14, which is then taken
 * away again, exactly. */
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
    .span_f32 = span_f32,
    .span_bf16 = span_bf16,
    .span_f64 = span_f64,
    .squares_f32 = squares_f32,
    .squares_f64 = squares_f64,
    .widen_f16 = widen_f16,
    .widen_bf16 = widen_bf16,
};
