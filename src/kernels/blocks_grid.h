/* SPDX-License-Identifier: MIT */
/* Blocks of 256 elements whose codes are indices in a grid of eight elements (iq3: four) each.
 *
 *   iq2_xxs  d:2  8 x (a:4 b:4)                    a: four indices; b: signs 4 x 7 bits, scale 4
 *   iq2_xs   d:2  qs:64  sc:8                      32 x u16: index 9 bits, signs 7
 *   iq2_s    d:2  qs:32  signs:32  qh:8  sc:8      indices of 8 + 2 bits
 *   iq3_xxs  d:2  qs:64  b:32                      b as in iq2_xxs, eight of them
 *   iq3_s    d:2  qs:64  qh:8  signs:32  sc:4      indices of 8 + 1 bits
 *   iq1_s    d:2  qs:32  qh:16                     8 x u16: 4 x 3 bits of indices, scale 3, shift 1
 *   iq1_m    qs:32  qh:16  sc:8                    d in the upper 4 bits of four u16
 *
 * An eighth sign makes the number of signs even, so only seven bits are stored. ggml multiplies by
 * the sign at the end. Here the code gets the sign, which gives the same result, including the sign
 * of 0. All products are exact. Included by blocks_loops.h.
 */
#ifndef TNF_KERNELS_BLOCKS_GRID_H
#define TNF_KERNELS_BLOCKS_GRID_H

#include "kernels/blocks_tables.h"

static inline unsigned even_signs(uint32_t seven)
{
    unsigned s = seven & 127;
    unsigned odd = s ^ s >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return s | (odd & 1) << 7;
}

/* Applies signs to eight numbers: bit j of `signs` is moved to the top of lane j. */
static inline shorts with_signs(shorts v, unsigned signs)
{
    const shorts up = { 1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11, 1 << 10, 1 << 9, 1 << 8 };
    shorts minus = -((shorts)(up * (uint16_t)signs) >> 15);
    return (v ^ minus) - minus;
}

/* The eight pairs of bits of an entry. */
static inline shorts pairs_of(unsigned entry)
{
    const shorts up = { 1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4, 1 << 2, 1 };
    return (shorts)(up * (uint16_t)entry) >> 14;
}

/* The eight groups of four bits of two entries. */
static inline shorts fours_of(unsigned first, unsigned second)
{
    const shorts up = { 1 << 12, 1 << 8, 1 << 4, 1, 1 << 12, 1 << 8, 1 << 4, 1 };
    uint16_t a = (uint16_t)first, b = (uint16_t)second;
    const shorts both = { a, a, a, a, b, b, b, b };
    return (shorts)(both * up) >> 12;
}

/* Numbers of the iq2 grids: 8, 25, 43. */
static inline void octet_2(float *restrict y, unsigned entry, unsigned signs, float d)
{
    shorts v = pairs_of(entry);
    scaled_8(y, with_signs(v * 17 + (v >> 1) + 8, signs), d);
}

static inline bool get_iq2_xxs(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    BLOCKS_UNROLL
    for (int g = 0; g < 8; g++) {
        const uint8_t *a = p + 2 + 8 * g;
        uint32_t b = tnf_le32(a + 4);
        float scale = d * (0.5f + (float)(b >> 28));
        for (int l = 0; l < 4; l++)
            octet_2(y + 32 * g + 8 * l, grid_iq2_xxs[a[l]], even_signs(b >> 7 * l), scale * 0.25f);
    }
    return odd_half(p);
}

/* The scale of octet o of iq2_xs and iq2_s. */
static inline float scale_2(float d, const uint8_t *sc, int o)
{
    float scale = d * (0.5f + (float)(sc[o / 4] >> 4 * (o % 4 / 2) & 15));
    return scale * 0.25f;
}

static inline bool get_iq2_xs(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    for (int o = 0; o < 32; o++) {
        unsigned q = tnf_le16(p + 2 + 2 * o);
        octet_2(y + 8 * o, grid_iq2_xs[q & 511], even_signs(q >> 9), scale_2(d, p + 66, o));
    }
    return odd_half(p);
}

static inline bool get_iq2_s(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    for (int o = 0; o < 32; o++) {
        unsigned at = p[2 + o] | (unsigned)(p[66 + o / 4] >> 2 * (o % 4) & 3) << 8;
        octet_2(y + 8 * o, grid_iq2_s[at], p[34 + o], scale_2(d, p + 74, o));
    }
    return odd_half(p);
}

static inline bool get_iq3_xxs(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    for (int o = 0; o < 32; o++) {
        const uint8_t *q = p + 2 + 2 * o;
        uint32_t b = tnf_le32(p + 66 + 4 * (o / 4));
        unsigned signs = even_signs(b >> 7 * (o % 4));
        float scale = d * (0.5f + (float)(b >> 28));
        shorts v = fours_of(grid_iq3_xxs[q[0]], grid_iq3_xxs[q[1]]); /* 4, 12 … 52, 62 */
        scaled_8(y + 8 * o, with_signs(v * 8 + ((v + 1) >> 3) * 2 + 4, signs), scale * 0.5f);
    }
    return odd_half(p);
}

static inline bool get_iq3_s(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    for (int o = 0; o < 32; o++) {
        const uint8_t *q = p + 2 + 2 * o;
        unsigned high = p[66 + o / 4] >> 2 * (o % 4);
        float scale = d * (float)(1 + 2 * (p[106 + o / 8] >> 4 * (o % 8 / 4) & 15));
        shorts v = fours_of(grid_iq3_s[q[0] | (high & 1) << 8],
                            grid_iq3_s[q[1] | (high >> 1 & 1) << 8]); /* 1, 3 … 15 */
        scaled_8(y + 8 * o, with_signs(v * 2 + 1, p[74 + o]), scale);
    }
    return odd_half(p);
}

/* Numbers of the iq1 grid: -1, 0, 1, all shifted by an eighth; here multiplied by eight. */
static inline void octet_1(float *restrict y, unsigned entry, bool down, float d)
{
    scaled_8(y, pairs_of(entry) * 8 - (uint16_t)(down ? 9 : 7), d * 0.125f);
}

static inline bool get_iq1_s(float *restrict y, const uint8_t *restrict p)
{
    float d = half_at(p);
    for (int o = 0; o < 32; o++) {
        unsigned h = tnf_le16(p + 34 + 2 * (o / 4));
        unsigned at = p[2 + o] | (h >> 3 * (o % 4) & 7) << 8;
        octet_1(y + 8 * o, grid_iq1_s[at], h >> 15, d * (float)(2 * (h >> 12 & 7) + 1));
    }
    return odd_half(p);
}

static inline bool get_iq1_m(float *restrict y, const uint8_t *restrict p)
{
    uint8_t half[2] = { (uint8_t)(p[49] >> 4 | (p[51] & 0xf0)),
                        (uint8_t)(p[53] >> 4 | (p[55] & 0xf0)) };
    float d = half_at(half);
    for (int o = 0; o < 32; o++) {
        unsigned x = p[32 + o / 2] >> 4 * (o % 2) & 15;
        unsigned s = tnf_le16(p + 48 + 2 * (o / 8)) >> 3 * (o / 2 % 4) & 7;
        octet_1(y + 8 * o, grid_iq1_s[p[o] | (x & 7) << 8], x >> 3, d * (float)(2 * s + 1));
    }
    return odd_half(half);
}

#endif
