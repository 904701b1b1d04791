/* SPDX-License-Identifier: MIT */
/* Floats to blocks, for the types whose codes follow from the numbers by a formula; ggml searches
 * for the codes of all others. The blocks are drawn in blocks_simple.h.
 *
 * d is what a step of the codes stands for, 1/d is taken before d is rounded to f16. Where 1/d is
 * beyond the floats, d becomes 0 in f16, and any code stands for the same: it is that of 0. Numbers
 * that are not finite are kept within the codes, so that no cast is undefined; their block means
 * nothing. Included by blocks_loops.h.
 */
#ifndef TNF_KERNELS_BLOCKS_PUT_H
#define TNF_KERNELS_BLOCKS_PUT_H

#include "kernels/blocks_codes.h"

/* 1/d, or 0 if there is none. */
static inline float inverse(float d)
{
    float id = 1.0f / d;
    return d == 0 || isinf(id) ? 0.0f : id;
}

/* The largest magnitude of n; bits of floats without a sign are in the order of the floats. */
static inline float magnitude(const float *restrict x, int n)
{
    uint32_t most = 0;
    for (int j = 0; j < n; j++) {
        uint32_t bits = bits_of(x[j]) & 0x7fffffff;
        most = bits > most ? bits : most;
    }
    return float_of(most);
}

/* The element of largest magnitude of 32, of equals the first, with its sign. */
static inline float farthest(const float *restrict x)
{
    uint32_t most = bits_of(magnitude(x, 32)), first = 64;
    for (uint32_t j = 0; j < 32; j++) {
        uint32_t bits = bits_of(x[j]);
        uint32_t here = (bits & 0x7fffffff) == most ? 2 * j + (bits >> 31) : 64;
        first = here < first ? here : first;
    }
    return float_of(most | (first & 1) << 31);
}

/* v without its fraction, at most `most` (which no number is, too). v is not below 0. */
static inline int cut_off(float v, float most)
{
    return (int)(v < most ? v : most);
}

/* To the nearest, halves away from 0; within -most … most. */
static inline int round_away(float v, float most)
{
    v = v < most ? v : most;
    v = v > -most ? v : -most;
    int whole = (int)v;
    float rest = v - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

static inline void put_q4_0(uint8_t *restrict out, const float *restrict x)
{
    float d = farthest(x) / -8.0f, id = inverse(d);
    put_half(out, d);
    for (int j = 0; j < 16; j++) {
        float low = x[j] * id, high = x[j + 16] * id;
        int a = cut_off(low + 8.5f, 15), b = cut_off(high + 8.5f, 15);
        out[2 + j] = (uint8_t)(a | b << 4);
    }
}

static inline void put_q5_0(uint8_t *restrict out, const float *restrict x)
{
    float d = farthest(x) / -16.0f, id = inverse(d);
    uint32_t qh = 0;
    put_half(out, d);
    for (int j = 0; j < 16; j++) {
        float low = x[j] * id, high = x[j + 16] * id;
        unsigned a = (unsigned)cut_off(low + 16.5f, 31), b = (unsigned)cut_off(high + 16.5f, 31);
        out[6 + j] = (uint8_t)((a & 15) | (b & 15) << 4);
        qh |= (a >> 4) << j | (b >> 4) << (j + 16);
    }
    tnf_put_le32(out + 2, qh);
}

/* The least of 32 and, divided into `steps`, what is from there to the greatest. */
static inline float least_and_step(const float *restrict x, float steps, float *step)
{
    float least = x[0], greatest = x[0];
    for (int j = 1; j < 32; j++) {
        least = x[j] < least ? x[j] : least;
        greatest = x[j] > greatest ? x[j] : greatest;
    }
    float range = greatest - least;
    *step = range / steps;
    return least;
}

static inline int from_least(float x, float least, float id, float most)
{
    float v = x - least;
    v = v * id;
    v = v + 0.5f;
    return cut_off(v > 0 ? v : 0, most);
}

static inline void put_q4_1(uint8_t *restrict out, const float *restrict x)
{
    float d, least = least_and_step(x, 15.0f, &d), id = inverse(d);
    put_half(out, d);
    put_half(out + 2, least);
    for (int j = 0; j < 16; j++)
        out[4 + j] = (uint8_t)(from_least(x[j], least, id, 15) |
                               from_least(x[j + 16], least, id, 15) << 4);
}

static inline void put_q5_1(uint8_t *restrict out, const float *restrict x)
{
    float d, least = least_and_step(x, 31.0f, &d), id = inverse(d);
    uint32_t qh = 0;
    put_half(out, d);
    put_half(out + 2, least);
    for (int j = 0; j < 16; j++) {
        unsigned a = (unsigned)from_least(x[j], least, id, 31);
        unsigned b = (unsigned)from_least(x[j + 16], least, id, 31);
        out[8 + j] = (uint8_t)((a & 15) | (b & 15) << 4);
        qh |= (a >> 4) << j | (b >> 4) << (j + 16);
    }
    tnf_put_le32(out + 4, qh);
}

static inline void put_q8_0(uint8_t *restrict out, const float *restrict x)
{
    float d = magnitude(x, 32) / 127.0f, id = inverse(d);
    put_half(out, d);
    for (int j = 0; j < 32; j++)
        out[2 + j] = (uint8_t)round_away(x[j] * id, 127);
}

/* Digits of base 3, of n elements: 0, 1, 2. */
static inline void digits(uint8_t *restrict t, const float *restrict x, int n, float id)
{
    for (int j = 0; j < n; j++)
        t[j] = (uint8_t)(round_away(x[j] * id, 1) + 1);
}

static inline void put_tq2_0(uint8_t *restrict out, const float *restrict x)
{
    uint8_t t[256];
    float d = magnitude(x, 256);
    digits(t, x, 256, inverse(d));
    for (int h = 0; h < 2; h++)
        for (int m = 0; m < 32; m++) {
            const uint8_t *of = t + 128 * h + m;
            out[32 * h + m] = (uint8_t)(of[0] | of[32] << 2 | of[64] << 4 | of[96] << 6);
        }
    put_half(out + 64, d);
}

/* n_bytes bytes of up to five digits, `stride` elements apart, the first the highest. */
static inline void put_base_3(uint8_t *restrict out, const uint8_t *restrict t, int n_bytes,
                              int count)
{
    static const unsigned powers[5] = { 81, 27, 9, 3, 1 };
    for (int m = 0; m < n_bytes; m++) {
        unsigned v = 0;
        for (int n = 0; n < count; n++)
            v += powers[n] * t[n * n_bytes + m];
        out[m] = (uint8_t)((v * 256 + 242) / 243);
    }
}

static inline void put_tq1_0(uint8_t *restrict out, const float *restrict x)
{
    uint8_t t[256];
    float d = magnitude(x, 256);
    digits(t, x, 256, inverse(d));
    put_base_3(out, t, 32, 5);
    put_base_3(out + 32, t + 160, 16, 5);
    put_base_3(out + 48, t + 240, 4, 4);
    put_half(out + 52, d);
}

/* Codes of two rows of n elements, in the low and high halves of n bytes: the number nearest to the
 * element, of equals the first of the table. */
static inline uint8_t nearest_fp4(float x, float d)
{
    float best = fabsf(x); /* the distance from 0, which is the first */
    int code = 0;
    for (int k = 1; k < 16; k++) {
        float at = d * (float)fp4_doubled[k], off = fabsf(at - x);
        code = off < best ? k : code;
        best = off < best ? off : best;
    }
    return (uint8_t)code;
}

static inline void put_fp4(uint8_t *restrict out, const float *restrict x, int n, float d)
{
    for (int j = 0; j < n; j++)
        out[j] = (uint8_t)(nearest_fp4(x[j], d) | nearest_fp4(x[j + n], d) << 4);
}

/* The exponent of the largest magnitude, less that of the largest code (4). ggml rounds the
 * logarithm to a float, so a number just below a power of two may count as that power. */
static inline uint8_t power_of(float most)
{
    if (!(most > 0) || isinf(most))
        return 0;
    float power = (float)log2((double)most);
    int e = (int)floorf(power) - 2 + 127;
    return (uint8_t)(e > 0 ? e : 0);
}

static inline void put_mxfp4(uint8_t *restrict out, const float *restrict x)
{
    out[0] = power_of(magnitude(x, 32));
    put_fp4(out + 1, x, 16, power_scale(out[0]));
}

/* A float without its sign in a byte, eeee mmm: halves upwards, 448 at most. */
static inline uint8_t put_ue4m3(float x)
{
    uint32_t bits = bits_of(x);
    int e = (int)(bits >> 23 & 255) - 127 + 7;
    if (!(x > 0))
        return 0;
    if (e < 1) {
        float units = x * 512.0f;
        return (uint8_t)cut_off(units + 0.5f, 7);
    }
    uint32_t rounded = e < 15 ? (uint32_t)e << 3 | (bits >> 20 & 7) : 0x7f;
    rounded += bits >> 19 & 1;
    return (uint8_t)(rounded < 15 << 3 ? rounded : 0x7e);
}

static inline void put_nvfp4(uint8_t *restrict out, const float *restrict x)
{
    for (int s = 0; s < 4; s++) {
        out[s] = put_ue4m3(magnitude(x + 16 * s, 16) / 6.0f);
        put_fp4(out + 4 + 8 * s, x + 16 * s, 8, ue4m3_scale(out[s]));
    }
}

static inline void put_q1_0(uint8_t *restrict out, const float *restrict x)
{
    float sum = 0;
    for (int j = 0; j < 128; j++)
        sum += fabsf(x[j]);
    put_half(out, sum / 128.0f);
    for (int m = 0; m < 16; m++) {
        unsigned bits = 0;
        for (int k = 0; k < 8; k++)
            bits |= (unsigned)(x[8 * m + k] >= 0) << k;
        out[2 + m] = (uint8_t)bits;
    }
}

static inline void put_q2_0(uint8_t *restrict out, const float *restrict x)
{
    uint8_t t[64];
    float d = magnitude(x, 64);
    digits(t, x, 64, inverse(d));
    put_half(out, d);
    for (int m = 0; m < 16; m++)
        out[2 + m] = (uint8_t)(t[4 * m] | t[4 * m + 1] << 2 | t[4 * m + 2] << 4 |
                               t[4 * m + 3] << 6);
}

#endif
