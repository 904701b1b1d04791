/* SPDX-License-Identifier: MIT */
/* Blocks of one level: a scale, perhaps a minimum, and the codes.
 *
 *   q4_0    d:2  qs:16           codes of 4 bits: the low halves of all bytes, then the high ones
 *   q4_1    d:2  m:2  qs:16
 *   q5_0    d:2  qh:4  qs:16     the fifth bits of all codes are bits of qh
 *   q5_1    d:2  m:2  qh:4  qs:16
 *   q8_0    d:2  qs:32
 *   q8_1    d:2  s:2  qs:32      s, a sum, is not needed
 *   q1_0    d:2  qs:16           bits: d or -d
 *   q2_0    d:2  qs:16           2 bits each, one after the other
 *   tq2_0   qs:64  d:2           2 bits each, of 32 bytes the lowest first
 *   tq1_0   qs:48  qh:4  d:2     five digits of base 3 in a byte, in qh four
 *   mxfp4   e:1  qs:16           e is an exponent; codes as q4_0 has them
 *   nvfp4   d:4  qs:32           four groups of 16, each with a float of 8 bits
 *   iq4_nl  d:2  qs:16           codes are places in a table
 *
 * d, m, s are f16. Included by blocks_loops.h.
 */
#ifndef TNF_KERNELS_BLOCKS_SIMPLE_H
#define TNF_KERNELS_BLOCKS_SIMPLE_H

#include "kernels/blocks_codes.h"

static inline bool q4_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    const uint8_t *restrict qs = p + 2;
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)((qs[j] & 15) - 8);
        y[j + 16] = d * (float)((qs[j] >> 4) - 8);
    }
    return odd_half(p);
}

static inline bool q4_1(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p), m = half_at(p + 2);
    const uint8_t *restrict qs = p + 4;
    for (int j = 0; j < 16; j++) {
        float low = d * (float)(qs[j] & 15), high = d * (float)(qs[j] >> 4);
        y[j] = low + m;
        y[j + 16] = high + m;
    }
    return odd_half(p) || odd_half(p + 2);
}

static inline bool q5_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    uint32_t qh = tnf_le32(p + 2);
    const uint8_t *restrict qs = p + 6;
    for (int j = 0; j < 16; j++) {
        int low = (qs[j] & 15) | (int)(qh >> j & 1) << 4;
        int high = qs[j] >> 4 | (int)(qh >> (j + 16) & 1) << 4;
        y[j] = d * (float)(low - 16);
        y[j + 16] = d * (float)(high - 16);
    }
    return odd_half(p);
}

static inline bool q5_1(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p), m = half_at(p + 2);
    uint32_t qh = tnf_le32(p + 4);
    const uint8_t *restrict qs = p + 8;
    for (int j = 0; j < 16; j++) {
        float low = d * (float)((qs[j] & 15) | (int)(qh >> j & 1) << 4);
        float high = d * (float)(qs[j] >> 4 | (int)(qh >> (j + 16) & 1) << 4);
        y[j] = low + m;
        y[j + 16] = high + m;
    }
    return odd_half(p) || odd_half(p + 2);
}

static inline bool q8_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    const int8_t *restrict qs = (const int8_t *)(p + 2);
    for (int j = 0; j < 32; j++)
        y[j] = (float)qs[j] * d;
    return odd_half(p);
}

static inline bool q8_1(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    const int8_t *restrict qs = (const int8_t *)(p + 4);
    for (int j = 0; j < 32; j++)
        y[j] = (float)qs[j] * d;
    return odd_half(p);
}

static inline bool q1_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    for (int j = 0; j < 128; j++)
        y[j] = p[2 + j / 8] >> j % 8 & 1 ? d : -d;
    return odd_half(p);
}

static inline bool q2_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    for (int j = 0; j < 64; j++)
        y[j] = (float)((p[2 + j / 4] >> 2 * (j % 4) & 3) - 1) * d;
    return odd_half(p);
}

static inline bool tq2_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p + 64);
    for (int g = 0; g < 8; g++)
        for (int m = 0; m < 32; m++)
            y[32 * g + m] = (float)((p[32 * (g / 4) + m] >> 2 * (g % 4) & 3) - 1) * d;
    return odd_half(p + 64);
}

/* Digit n of n_bytes bytes, the first the highest: times 3^n modulo 256, the digit is then the part
 * above the point of three times a byte / 256. */
static inline void base_3(float *restrict y, const uint8_t *restrict p, int n_bytes, unsigned power,
                          float d)
{
    for (int m = 0; m < n_bytes; m++) {
        unsigned rest = p[m] * power & 255;
        y[m] = (float)((int)(rest * 3 >> 8) - 1) * d;
    }
}

static inline bool tq1_0(float *restrict y, const uint8_t *restrict p)
{
    static const uint8_t powers[5] = { 1, 3, 9, 27, 81 };
    float d = half_at(p + 52);
    for (int n = 0; n < 5; n++)
        base_3(y + 32 * n, p, 32, powers[n], d);
    for (int n = 0; n < 5; n++)
        base_3(y + 160 + 16 * n, p + 32, 16, powers[n], d);
    for (int n = 0; n < 4; n++)
        base_3(y + 240 + 4 * n, p + 48, 4, powers[n], d);
    return odd_half(p + 52);
}

static inline bool mxfp4(float *restrict y, const uint8_t *restrict p)
{
    float d = power_scale(p[0]);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)fp4_code(p[1 + j] & 15);
        y[j + 16] = d * (float)fp4_code(p[1 + j] >> 4);
    }
    return false;
}

static inline bool nvfp4(float *restrict y, const uint8_t *restrict p)
{
    for (int s = 0; s < 4; s++) {
        float d = ue4m3_scale(p[s]);
        for (int j = 0; j < 8; j++) {
            y[16 * s + j] = d * (float)fp4_code(p[4 + 8 * s + j] & 15);
            y[16 * s + 8 + j] = d * (float)fp4_code(p[4 + 8 * s + j] >> 4);
        }
    }
    return false;
}

static inline bool iq4_nl(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)not_linear[p[2 + j] & 15];
        y[j + 16] = d * (float)not_linear[p[2 + j] >> 4];
    }
    return odd_half(p);
}

#endif
