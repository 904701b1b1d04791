/* SPDX-License-Identifier: MIT */
/* Blocks of 256 elements with two levels of scales: each group has a small scale, which is
 * multiplied by the scale of the block.
 *
 *   q2_k    sc:16  qs:64  d:2  dmin:2              groups of 16: scale and minimum, 4 bits each
 *   q3_k    hm:32  qs:64  sc:12  d:2               groups of 16: scales of 6 bits
 *   q4_k    d:2  dmin:2  sc:12  qs:128             groups of 32: scale and minimum, 6 bits each
 *   q5_k    d:2  dmin:2  sc:12  qh:32  qs:128      likewise
 *   q6_k    ql:128  qh:64  sc:16  d:2              groups of 16: scales are i8
 *   q8_k    d:4  qs:256  bsums:32                  only one level; the sums are not needed
 *   iq4_xs  d:2  sh:2  sl:4  qs:128                groups of 32: scales of 6 bits, codes of iq4_nl
 *
 * d and dmin are f16; d of q8_k is f32. Codes of 2 bits: the lowest bits of each 32 bytes first,
 * then the next ones. Codes of 4 bits: the low halves of each 32 bytes (q6_k: 64), then the high
 * ones. Codes of 3, 5 and 6 bits have their upper bits in qh and hm. Included by blocks_loops.h.
 */
#ifndef TNF_KERNELS_BLOCKS_K_H
#define TNF_KERNELS_BLOCKS_K_H

#include "kernels/blocks_codes.h"

/* The 16 codes of 2 bits of group g of a block, which has 64 bytes of codes. */
static inline codes quarters_of(const uint8_t *p, int g)
{
    return codes_at(p + 32 * (g / 8) + 16 * (g % 2)) >> (uint8_t)(2 * (g % 8 / 2)) & 3;
}

static inline bool get_q2_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p + 80), dmin = half_at(p + 82);
    BLOCKS_UNROLL
    for (int g = 0; g < 16; g++) {
        float least = dmin * (float)(p[g] >> 4);
        scaled_from_16(y + 16 * g, quarters_of(p + 16, g), d * (float)(p[g] & 15), -least);
    }
    return odd_half(p + 80) || odd_half(p + 82);
}

/* Reads six bits: four are in a half of sc[0..7], two in sc[8..11]. */
static inline int q3_k_scale(const uint8_t *sc, int g)
{
    int low = g < 8 ? sc[g] & 15 : sc[g - 8] >> 4;
    return (low | (sc[8 + g % 4] >> 2 * (g / 4) & 3) << 4) - 32;
}

static inline bool get_q3_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p + 108);
    BLOCKS_UNROLL
    for (int g = 0; g < 16; g++) {
        codes high = codes_at(p + 16 * (g % 2)) >> (uint8_t)(g / 2) & 1;
        codes q = (quarters_of(p + 32, g) | high << 2) - 4;
        scaled_16(y + 16 * g, q, d * (float)q3_k_scale(p + 96, g));
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

static inline bool get_q4_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p), dmin = half_at(p + 2);
    BLOCKS_UNROLL
    for (int g = 0; g < 8; g++) {
        const uint8_t *q = p + 16 + 32 * (g / 2);
        uint8_t shift = (uint8_t)(4 * (g % 2));
        int s, m;
        six_bits(p + 4, g, &s, &m);
        float scale = d * (float)s, least = dmin * (float)m;
        for (int k = 0; k < 2; k++)
            scaled_from_16(y + 32 * g + 16 * k, codes_at(q + 16 * k) >> shift & 15, scale, -least);
    }
    return odd_half(p) || odd_half(p + 2);
}

static inline bool get_q5_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p), dmin = half_at(p + 2);
    BLOCKS_UNROLL
    for (int g = 0; g < 8; g++) {
        const uint8_t *q = p + 48 + 32 * (g / 2);
        uint8_t shift = (uint8_t)(4 * (g % 2));
        int s, m;
        six_bits(p + 4, g, &s, &m);
        float scale = d * (float)s, least = dmin * (float)m;
        for (int k = 0; k < 2; k++) {
            codes high = codes_at(p + 16 + 16 * k) >> (uint8_t)g & 1;
            codes low = codes_at(q + 16 * k) >> shift & 15;
            scaled_from_16(y + 32 * g + 16 * k, low | high << 4, scale, -least);
        }
    }
    return odd_half(p) || odd_half(p + 2);
}

static inline bool get_q6_k(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p + 208);
    BLOCKS_UNROLL
    for (int g = 0; g < 16; g++) {
        int half = g / 8, k = g % 8 / 2, from = 16 * (g % 2);
        codes low = codes_at(p + 64 * half + 32 * (k % 2) + from) >> (uint8_t)(4 * (k / 2)) & 15;
        codes high = codes_at(p + 128 + 32 * half + from) >> (uint8_t)(2 * k) & 3;
        scaled_16(y + 16 * g, (low | high << 4) - 32, d * (float)(int8_t)p[192 + g]);
    }
    return odd_half(p + 208);
}

static inline bool get_q8_k(float *restrict y, const uint8_t *restrict p)
{
    uint32_t bits = tnf_le32(p);
    BLOCKS_UNROLL
    for (int g = 0; g < 16; g++)
        scaled_16(y + 16 * g, codes_at(p + 4 + 16 * g), tnf_f32_of(bits));
    return (bits & 0x7f800000) == 0x7f800000;
}

static inline bool get_iq4_xs(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    unsigned sh = tnf_le16(p + 2);
    BLOCKS_UNROLL
    for (int g = 0; g < 8; g++) {
        codes q = codes_at(p + 8 + 16 * g);
        int s = (p[4 + g / 2] >> 4 * (g % 2) & 15) | (int)(sh >> 2 * g & 3) << 4;
        float scale = d * (float)(s - 32);
        scaled_16(y + 32 * g, looked_up(q & 15, not_linear), scale);
        scaled_16(y + 32 * g + 16, looked_up(q >> 4, not_linear), scale);
    }
    return odd_half(p);
}

#endif
