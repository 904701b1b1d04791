/* SPDX-License-Identifier: MIT */
/* Floats to blocks, for the types whose codes follow from the numbers by a formula; for all others
 * ggml searches for the codes. The fields of blocks are in blocks_simple.h.
 *
 * d is the step between codes; 1/d is computed before d is rounded to f16. If 1/d is beyond the
 * floats, d becomes 0 in f16, so all codes mean the same; the code of 0 is used. Numbers that are
 * not finite are limited to the range of the codes, so that no cast is undefined; their blocks are
 * meaningless. Included by blocks_loops.h.
 */
#ifndef TNF_KERNELS_BLOCKS_PUT_H
#define TNF_KERNELS_BLOCKS_PUT_H

#include "kernels/blocks_codes.h"

/* 1/d, or 0 if it does not exist. */
static inline float inverse_of(float d)
{
    float id = 1.0f / d;
    return d == 0 || isinf(id) ? 0.0f : id;
}

static inline floats floats_at(const float *x)
{
    floats v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* The largest magnitude of n floats; the bits of floats without sign are in the order of the
 * floats. */
static inline float largest_magnitude(const float *restrict x, int n)
{
    ints most = { 0 };
    int32_t best = 0;
    for (int i = 0; i < n; i += BLOCKS_LANES) {
        ints bits = (ints)floats_at(x + i) & 0x7fffffff;
        most = BLOCKS_PICK(bits > most, bits, most);
    }
    for (int j = 0; j < BLOCKS_LANES; j++)
        best = most[j] > best ? most[j] : best;
    return float_of((uint32_t)best);
}

static inline bool any_of(ints mask)
{
    uint64_t m[sizeof mask / 8], all = 0;
    memcpy(m, &mask, sizeof m);
    for (size_t k = 0; k < sizeof mask / 8; k++)
        all |= m[k];
    return all != 0;
}

/* The element of largest magnitude of 32, with its sign; of equal ones the first. */
static inline float farthest_element(const float *restrict x)
{
    uint32_t most = bits_of(largest_magnitude(x, 32)), sign = (uint32_t)1 << 31;
    ints plus = { 0 }, minus = { 0 };
    for (int i = 0; i < 32; i += BLOCKS_LANES) {
        ints bits = (ints)floats_at(x + i);
        plus |= bits == (int32_t)most;
        minus |= bits == (int32_t)(most | sign);
    }
    if (!any_of(minus))
        return float_of(most);
    for (int j = 0; j < 32 && any_of(plus); j++)
        if ((bits_of(x[j]) & ~sign) == most)
            return x[j];
    return float_of(most | sign);
}

/* v without its fraction, at most `most` (even for a NaN). v is not below 0. */
static inline int cut_off(float v, float most)
{
    return (int)(v < most ? v : most);
}

/* The same for all lanes, after multiplying by id and adding `more`. */
static inline ints cut_off_all(const float *restrict x, float id, float more, float most)
{
    floats v = floats_at(x) * id;
    v = v + more;
    ints below = v < most;
    v = (floats)BLOCKS_PICK(below, (ints)v, (ints)((floats) { 0 } + most));
    return __builtin_convertvector(v, ints);
}

/* All lanes times id, rounded to the nearest, halves away from 0; limited to -most … most. */
static inline ints round_away(const float *restrict x, float id, float most)
{
    floats v = floats_at(x) * id, limit = (floats) { 0 } + most;
    v = (floats)BLOCKS_PICK(v < limit, (ints)v, (ints)limit);
    v = (floats)BLOCKS_PICK(v > -limit, (ints)v, (ints)-limit);
    ints whole = __builtin_convertvector(v, ints);
    floats rest = v - __builtin_convertvector(whole, floats);
    return whole - (rest >= 0.5f) + (rest <= -0.5f); /* true is -1 */
}

static inline void put_q4_0(uint8_t *restrict out, const float *restrict x)
{
    float d = farthest_element(x) / -8.0f, id = inverse_of(d);
    put_half(out, d);
    for (int j = 0; j < 16; j += BLOCKS_LANES) {
        ints low = cut_off_all(x + j, id, 8.5f, 15), high = cut_off_all(x + j + 16, id, 8.5f, 15);
        ints both = low | high << 4;
        put_bytes(out + 2 + j, both);
    }
}

/* Stores 32 codes of five bits: four bits in 16 bytes, the fifth in a word of bits before them. */
static inline void put_fifths(uint8_t *restrict out, const uint8_t *restrict q)
{
    uint32_t high = 0;
    for (int j = 0; j < 32; j++)
        high |= (uint32_t)(q[j] >> 4) << j;
    tnf_put_le32(out, high);
    for (int j = 0; j < 16; j++)
        out[4 + j] = (uint8_t)((q[j] & 15) | q[j + 16] << 4);
}

static inline void put_q5_0(uint8_t *restrict out, const float *restrict x)
{
    uint8_t q[32];
    float d = farthest_element(x) / -16.0f, id = inverse_of(d);
    put_half(out, d);
    for (int j = 0; j < 32; j += BLOCKS_LANES) {
        ints v = cut_off_all(x + j, id, 16.5f, 31);
        put_bytes(q + j, v);
    }
    put_fifths(out + 2, q);
}

/* The least of 32 elements; *step is the distance to the greatest, divided by `steps`. */
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

static inline ints from_least(const float *restrict x, float least, float id, float most)
{
    floats v = floats_at(x) - least;
    v = v * id;
    v = v + 0.5f;
    v = (floats)BLOCKS_PICK(v > 0.0f, (ints)v, (ints) { 0 });
    v = (floats)BLOCKS_PICK(v < most, (ints)v, (ints)((floats) { 0 } + most));
    return __builtin_convertvector(v, ints);
}

static inline void put_q4_1(uint8_t *restrict out, const float *restrict x)
{
    float d, least = least_and_step(x, 15.0f, &d), id = inverse_of(d);
    put_half(out, d);
    put_half(out + 2, least);
    for (int j = 0; j < 16; j += BLOCKS_LANES) {
        ints both = from_least(x + j, least, id, 15) | from_least(x + j + 16, least, id, 15) << 4;
        put_bytes(out + 4 + j, both);
    }
}

static inline void put_q5_1(uint8_t *restrict out, const float *restrict x)
{
    uint8_t q[32];
    float d, least = least_and_step(x, 31.0f, &d), id = inverse_of(d);
    put_half(out, d);
    put_half(out + 2, least);
    for (int j = 0; j < 32; j += BLOCKS_LANES) {
        ints v = from_least(x + j, least, id, 31);
        put_bytes(q + j, v);
    }
    put_fifths(out + 4, q);
}

static inline void put_q8_0(uint8_t *restrict out, const float *restrict x)
{
    float d = largest_magnitude(x, 32) / 127.0f, id = inverse_of(d);
    put_half(out, d);
    for (int j = 0; j < 32; j += BLOCKS_LANES) {
        ints q = round_away(x + j, id, 127);
        put_bytes(out + 2 + j, q);
    }
}

/* The base-3 digits of n elements: 0, 1, 2. */
static inline void put_digits(uint8_t *restrict t, const float *restrict x, int n, float id)
{
    for (int j = 0; j < n; j += BLOCKS_LANES) {
        ints q = round_away(x + j, id, 1) + 1;
        put_bytes(t + j, q);
    }
}

static inline void put_tq2_0(uint8_t *restrict out, const float *restrict x)
{
    uint8_t t[256];
    float d = largest_magnitude(x, 256);
    put_digits(t, x, 256, inverse_of(d));
    for (int h = 0; h < 2; h++)
        for (int m = 0; m < 32; m++) {
            const uint8_t *of = t + 128 * h + m;
            out[32 * h + m] = (uint8_t)(of[0] | of[32] << 2 | of[64] << 4 | of[96] << 6);
        }
    put_half(out + 64, d);
}

/* Writes n_bytes bytes, each of `count` digits with base 3. The digits of a byte are n_bytes
 * elements apart, the highest first. */
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
    float d = largest_magnitude(x, 256);
    put_digits(t, x, 256, inverse_of(d));
    put_base_3(out, t, 32, 5);
    put_base_3(out + 32, t + 160, 16, 5);
    put_base_3(out + 48, t + 240, 4, 4);
    put_half(out + 52, d);
}

/* The codes of all lanes: each is the nearest number of the table; of equally near ones the
 * first. */
static inline ints nearest_fp4(const float *restrict x, float d)
{
    const ints no_sign = (ints) { 0 } + 0x7fffffff;
    floats v = floats_at(x),
           best = (floats)((ints)v & no_sign); /* the distance to 0, the first number */
    ints code = { 0 };
    BLOCKS_UNROLL
    for (int k = 1; k < 16; k++) {
        floats off = d * (float)fp4_doubled[k] - v;
        off = (floats)((ints)off & no_sign);
        ints nearer = off < best;
        code = BLOCKS_PICK(nearer, (ints) { 0 } + k, code);
        best = (floats)BLOCKS_PICK(nearer, (ints)off, (ints)best);
    }
    return code;
}

/* Writes two rows of n elements, in the low and the high halves of n bytes. */
static inline void put_fp4(uint8_t *restrict out, const float *restrict x, int n, float d)
{
    for (int j = 0; j < n; j += BLOCKS_LANES) {
        ints both = nearest_fp4(x + j, d) | nearest_fp4(x + j + n, d) << 4;
        put_bytes(out + j, both);
    }
}

/* The exponent of the largest magnitude, minus that of the largest code (4). ggml rounds the
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
    out[0] = power_of(largest_magnitude(x, 32));
    put_fp4(out + 1, x, 16, power_scale(out[0]));
}

/* An 8-bit float without sign, eeee mmm: halves are rounded up, 448 at most. */
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
        out[s] = put_ue4m3(largest_magnitude(x + 16 * s, 16) / 6.0f);
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
    float d = largest_magnitude(x, 64);
    put_digits(t, x, 64, inverse_of(d));
    put_half(out, d);
    for (int m = 0; m < 16; m++)
        out[2 + m] = (uint8_t)(t[4 * m] | t[4 * m + 1] << 2 | t[4 * m + 2] << 4 |
                               t[4 * m + 3] << 6);
}

#endif
