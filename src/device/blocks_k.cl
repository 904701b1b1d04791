/* SPDX-License-Identifier: MIT */
/* GGUF's blocks of two levels as numbers, as src/kernels/blocks_k.h has them. numbers.cl says how
 * kernels are called. */
#ifndef KERNELS_AS_C
#include "numbers.cl"
#endif

/* Code q of group g of q4_k, which begins d:2  dmin:2  sc:12 */
static inline float above_least(bytes_in p, uint g, uint q)
{
    bytes_in sc = p + 4;
    uint s, m;
    if (g < 4) {
        s = sc[g] & 63;
        m = sc[g + 4] & 63;
    } else {
        s = (sc[g + 4] & 15) | (uint)sc[g - 4] >> 6 << 4;
        m = (uint)sc[g + 4] >> 4 | (uint)sc[g] >> 6 << 4;
    }
    float scale = half_at(p) * (float)s, least = half_at(p + 2) * (float)m;
    float product = (float)q * scale;
    return product - least;
}

/* d:2  dmin:2  sc:12  qs:128 */
static inline float q4_k_at(bytes_in p, uint k)
{
    uint g = k / 32;
    return above_least(p, g, p[16 + g / 2 * 32 + k % 32] >> (g % 2 * 4) & 15);
}

/* ql:128  qh:64  sc:16  d:2 */
static inline float q6_k_at(bytes_in p, uint k)
{
    uint half_block = k / 128, part = k % 128 / 32, at = k % 32;
    uint low = p[64 * half_block + 32 * (part % 2) + at] >> (part / 2 * 4) & 15;
    uint high = p[128 + 32 * half_block + at] >> (2 * part) & 3;
    float scale = half_at(p + 208) * (float)(signed char)p[192 + k / 16];
    return (float)((int)(low | high << 4) - 32) * scale;
}

BLOCKS(tnf_q4_k, 256, 144, q4_k_at)
BLOCKS(tnf_q6_k, 256, 210, q6_k_at)
