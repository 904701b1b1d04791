/* SPDX-License-Identifier: MIT */
/* Blocks of 256 elements of two levels: groups have small scales, which a scale of the block is
 * multiplied with.
 *
 *   q2_k    sc:16  qs:64  d:2  dmin:2              groups of 16: scale and minimum, 4 bits each
 *   q3_k    hm:32  qs:64  sc:12  d:2               groups of 16: scales of 6 bits
 *   q4_k    d:2  dmin:2  sc:12  qs:128             groups of 32: scale and minimum, 6 bits each
 *   q5_k    d:2  dmin:2  sc:12  qh:32  qs:128      likewise
 *   q6_k    ql:128  qh:64  sc:16  d:2              groups of 16: scales are i8
 *   q8_k    d:4  qs:256  bsums:32                  one level after all; the sums are not needed
 *   iq4_xs  d:2  sh:2  sl:4  qs:128                groups of 32: scales of 6 bits, codes of iq4_nl
 *
 * d, dmin are f16; d of q8_k is f32. Codes of 2 bits: of each 32 bytes the lowest first, then the
 * next. Codes of 4: of each 32 bytes (q6_k: 64) all low halves, then all high ones. Codes of 5, 6,
 * 3 have their upper bits in qh and hm. Included by blocks_loops.h.
 */
#ifndef TNF_KERNELS_BLOCKS_K_H
#define TNF_KERNELS_BLOCKS_K_H

#include "kernels/blocks_codes.h"

/* Group g of 16 elements of q2_k and q3_k: where its bytes are, and how far its bits are shifted.
 */
#define TWO_BITS(qs, g) ((qs) + 32 * ((g) / 8) + 16 * ((g) % 2))
#define TWO_SHIFT(g)    (2 * ((g) % 8 / 2))

static inline bool q2_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p + 80), dmin = half_at(p + 82);
    for (int g = 0; g < 16; g++) {
        const uint8_t *restrict q = TWO_BITS(p + 16, g);
        float scale = d * (float)(p[g] & 15), least = dmin * (float)(p[g] >> 4);
        for (int m = 0; m < 16; m++) {
            float x = scale * (float)(q[m] >> TWO_SHIFT(g) & 3);
            y[16 * g + m] = x - least;
        }
    }
    return odd_half(p + 80) || odd_half(p + 82);
}

/* Six bits: four in a half of sc[0..7], two in sc[8..11]. */
static inline int q3_k_scale(const uint8_t *sc, int g)
{
    int low = g < 8 ? sc[g] & 15 : sc[g - 8] >> 4;
    return (low | (sc[8 + g % 4] >> 2 * (g / 4) & 3) << 4) - 32;
}

static inline bool q3_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p + 108);
    for (int g = 0; g < 16; g++) {
        const uint8_t *restrict q = TWO_BITS(p + 32, g), *restrict high = p + 16 * (g % 2);
        float scale = d * (float)q3_k_scale(p + 96, g);
        for (int m = 0; m < 16; m++) {
            int x = (q[m] >> TWO_SHIFT(g) & 3) | (high[m] >> g / 2 & 1) << 2;
            y[16 * g + m] = scale * (float)(x - 4);
        }
    }
    return odd_half(p + 108);
}

/* Scale and minimum of group g of q4_k and q5_k. */
static inline void six_bits(const uint8_t *sc, int g, int *scale, int *least)
{
    if (g < 4) {
        *scale = sc[g] & 63;
        *least = sc[g + 4] & 63;
    } else {
        *scale = (sc[g + 4] & 15) | sc[g - 4] >> 6 << 4;
        *least = sc[g + 4] >> 4 | sc[g] >> 6 << 4;
    }
}

static inline bool q4_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p), dmin = half_at(p + 2);
    for (int g = 0; g < 8; g++) {
        const uint8_t *restrict q = p + 16 + 32 * (g / 2);
        int s, m;
        six_bits(p + 4, g, &s, &m);
        float scale = d * (float)s, least = dmin * (float)m;
        for (int j = 0; j < 32; j++) {
            float x = scale * (float)(q[j] >> 4 * (g % 2) & 15);
            y[32 * g + j] = x - least;
        }
    }
    return odd_half(p) || odd_half(p + 2);
}

static inline bool q5_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p), dmin = half_at(p + 2);
    const uint8_t *restrict high = p + 16;
    for (int g = 0; g < 8; g++) {
        const uint8_t *restrict q = p + 48 + 32 * (g / 2);
        int s, m;
        six_bits(p + 4, g, &s, &m);
        float scale = d * (float)s, least = dmin * (float)m;
        for (int j = 0; j < 32; j++) {
            float x = scale * (float)((q[j] >> 4 * (g % 2) & 15) | (high[j] >> g & 1) << 4);
            y[32 * g + j] = x - least;
        }
    }
    return odd_half(p) || odd_half(p + 2);
}

static inline bool q6_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p + 208);
    for (int g = 0; g < 16; g++) {
        int half = g / 8, k = g % 8 / 2, from = 16 * (g % 2);
        const uint8_t *restrict low = p + 64 * half + 32 * (k % 2) + from;
        const uint8_t *restrict high = p + 128 + 32 * half + from;
        float scale = d * (float)(int8_t)p[192 + g];
        for (int m = 0; m < 16; m++) {
            int x = (low[m] >> 4 * (k / 2) & 15) | (high[m] >> 2 * k & 3) << 4;
            y[16 * g + m] = scale * (float)(x - 32);
        }
    }
    return odd_half(p + 208);
}

static inline bool q8_k(float *restrict y, const uint8_t *restrict p)
{
    uint32_t bits = tnf_le32(p);
    float d = float_of(bits);
    const int8_t *restrict qs = (const int8_t *)(p + 4);
    for (int j = 0; j < 256; j++)
        y[j] = d * (float)qs[j];
    return (bits & 0x7f800000) == 0x7f800000;
}

static inline bool iq4_xs(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    unsigned sh = tnf_le16(p + 2);
    for (int g = 0; g < 8; g++) {
        const uint8_t *restrict q = p + 8 + 16 * g;
        int s = (p[4 + g / 2] >> 4 * (g % 2) & 15) | (int)(sh >> 2 * g & 3) << 4;
        float scale = d * (float)(s - 32);
        for (int j = 0; j < 16; j++) {
            y[32 * g + j] = scale * (float)not_linear[q[j] & 15];
            y[32 * g + 16 + j] = scale * (float)not_linear[q[j] >> 4];
        }
    }
    return odd_half(p);
}

#endif
