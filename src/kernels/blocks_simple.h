/* SPDX-License-Identifier: MIT */
/* Blocks with one level of scales: a scale, possibly a minimum, and the codes.
 *
 *   q4_0    d:2  qs:16           codes of 4 bits: the low halves of all bytes, then the high ones
 *   q4_1    d:2  m:2  qs:16
 *   q5_0    d:2  qh:4  qs:16     the fifth bits of all codes are bits of qh
 *   q5_1    d:2  m:2  qh:4  qs:16
 *   q8_0    d:2  qs:32
 *   q8_1    d:2  s:2  qs:32      s, a sum, is not needed
 *   q1_0    d:2  qs:16           bits: d or -d
 *   q2_0    d:2  qs:16           2 bits each, in order
 *   tq2_0   qs:64  d:2           2 bits each, the lowest bits of 32 bytes first
 *   tq1_0   qs:48  qh:4  d:2     five base-3 digits per byte, in qh four
 *   mxfp4   e:1  qs:16           e is an exponent; codes as in q4_0
 *   nvfp4   d:4  qs:32           four groups of 16, each with a float of 8 bits
 *   iq4_nl  d:2  qs:16           codes are indices in a table
 *
 * d, m and s are f16. Included by blocks_loops.h.
 */
#ifndef TNF_KERNELS_BLOCKS_SIMPLE_H
#define TNF_KERNELS_BLOCKS_SIMPLE_H

#include "kernels/blocks_codes.h"

static inline bool get_q4_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    codes q = codes_at(p + 2);
    scaled_16(y, (q & 15) - 8, d);
    scaled_16(y + 16, (q >> 4) - 8, d);
    return odd_half(p);
}

static inline bool get_q4_1(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p), m = half_at(p + 2);
    codes q = codes_at(p + 4);
    scaled_from_16(y, q & 15, d, m);
    scaled_from_16(y + 16, q >> 4, d, m);
    return odd_half(p) || odd_half(p + 2);
}

static inline bool get_q5_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    codes q = codes_at(p + 6);
    scaled_16(y, ((q & 15) | spread_bits(tnf_le16(p + 2), 16)) - 16, d);
    scaled_16(y + 16, (q >> 4 | spread_bits(tnf_le16(p + 4), 16)) - 16, d);
    return odd_half(p);
}

static inline bool get_q5_1(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p), m = half_at(p + 2);
    codes q = codes_at(p + 8);
    scaled_from_16(y, (q & 15) | spread_bits(tnf_le16(p + 4), 16), d, m);
    scaled_from_16(y + 16, q >> 4 | spread_bits(tnf_le16(p + 6), 16), d, m);
    return odd_half(p) || odd_half(p + 2);
}

static inline void bytes_32(float *restrict y, const uint8_t *restrict p, float d)
{
    scaled_16(y, codes_at(p), d);
    scaled_16(y + 16, codes_at(p + 16), d);
}

static inline bool get_q8_0(float *restrict y, const uint8_t *restrict p)
{
    bytes_32(y, p + 2, half_at(p));
    return odd_half(p);
}

static inline bool get_q8_1(float *restrict y, const uint8_t *restrict p)
{
    bytes_32(y, p + 4, half_at(p));
    return odd_half(p);
}

static inline bool get_q1_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p); /* times 1 or -1, which only changes the sign */
    BLOCKS_UNROLL
    for (int g = 0; g < 8; g++)
        scaled_16(y + 16 * g, spread_bits(tnf_le16(p + 2 + 2 * g), 2) - 1, d);
    return odd_half(p);
}

/* Lane j of each four is 3, the others are 0. */
static inline codes three_of(int j)
{
    codes c = { 0 };
    for (int k = j; k < 16; k += 4)
        c[k] = 3;
    return c;
}

static inline bool get_q2_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    BLOCKS_UNROLL
    for (int g = 0; g < 4; g++) { /* each byte four times, with two other bits each time */
        const uint8_t *q = p + 2 + 4 * g;
        const words four = { q[0], q[1], q[2], q[3] };
        codes c = (codes)(four * 0x01010101);
        c = (c & three_of(0)) | (c >> 2 & three_of(1)) | (c >> 4 & three_of(2)) |
            (c >> 6 & three_of(3));
        scaled_16(y + 16 * g, c - 1, d);
    }
    return odd_half(p);
}

static inline bool get_tq2_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p + 64);
    BLOCKS_UNROLL
    for (int g = 0; g < 16; g++) {
        codes q = codes_at(p + 32 * (g / 8) + 16 * (g % 2)) >> (uint8_t)(2 * (g % 8 / 2));
        scaled_16(y + 16 * g, (q & 3) - 1, d);
    }
    return odd_half(p + 64);
}

/* The next base-3 digit of 16 bytes: each byte is tripled, and the digit is the part above 255. It
 * counts the thresholds (86 and 171, thirds of 256) that the byte reaches. */
static inline codes next_digit(codes *rest)
{
    codes over = (codes)(*rest >= 86) + (codes)(*rest >= 171); /* -1 each */
    *rest = *rest + *rest + *rest;
    return -over;
}

static inline bool get_tq1_0(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p + 52);
    codes first = codes_at(p), second = codes_at(p + 16), third = codes_at(p + 32);
    for (int n = 0; n < 5; n++) {
        scaled_16(y + 32 * n, next_digit(&first) - 1, d);
        scaled_16(y + 32 * n + 16, next_digit(&second) - 1, d);
        scaled_16(y + 160 + 16 * n, next_digit(&third) - 1, d);
    }
    codes last = { 0 }; /* four bytes, times 1, 3, 9, 27 */
    for (int m = 0; m < 4; m++) {
        last[m] = p[48 + m];
        last[4 + m] = (uint8_t)(p[48 + m] * 3);
        last[8 + m] = (uint8_t)(p[48 + m] * 9);
        last[12 + m] = (uint8_t)(p[48 + m] * 27);
    }
    scaled_16(y + 240, next_digit(&last) - 1, d);
    return odd_half(p + 52);
}

static inline bool get_mxfp4(float *restrict y, const uint8_t *restrict p)
{
    float d = power_scale(p[0]);
    codes q = codes_at(p + 1);
    scaled_16(y, looked_up(q & 15, fp4_doubled), d);
    scaled_16(y + 16, looked_up(q >> 4, fp4_doubled), d);
    return false;
}

static inline bool get_nvfp4(float *restrict y, const uint8_t *restrict p)
{
    BLOCKS_UNROLL
    for (int s = 0; s < 4; s++) {
        uint64_t eight;
        memcpy(&eight, p + 4 + 8 * s, sizeof eight);
        const longs q = { eight, eight >> 4 };
        scaled_16(y + 16 * s, looked_up((codes)q & 15, fp4_doubled), ue4m3_scale(p[s]));
    }
    return false;
}

static inline bool get_iq4_nl(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    codes q = codes_at(p + 2);
    scaled_16(y, looked_up(q & 15, not_linear), d);
    scaled_16(y + 16, looked_up(q >> 4, not_linear), d);
    return odd_half(p);
}

#endif
