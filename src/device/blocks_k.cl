/* SPDX-License-Identifier: MIT */
/* Decodes GGUF blocks of two levels, like src/kernels/blocks_k.h. numbers.cl describes how kernels
 * are called. */
#ifndef KERNELS_AS_C
#include "numbers.cl"
#endif

/* A 2-bit code from 64 bytes: of each 32 bytes, the lowest bits come first. */
static inline uint two_bits_at(bytes_in p, uint k)
{
    return p[k / 128 * 32 + k % 32] >> (k % 128 / 32 * 2) & 3;
}

/* sc:16  qs:64  d:2  dmin:2 */
static inline float q2_k_at(bytes_in p, uint k)
{
    uint sc = p[k / 16];
    float scale = half_at(p + 80) * (float)(sc & 15), least = half_at(p + 82) * (float)(sc >> 4);
    float product = (float)two_bits_at(p + 16, k) * scale;
    return product - least;
}

/* hm:32  qs:64  sc:12  d:2 */
static inline float q3_k_at(bytes_in p, uint k)
{
    uint g = k / 16, low = p[96 + g % 8] >> (g / 8 * 4) & 15;
    uint s = low | ((uint)p[104 + g % 4] >> (g / 4 * 2) & 3) << 4;
    uint q = two_bits_at(p + 32, k) | ((uint)p[k % 32] >> k / 32 & 1) << 2;
    float scale = half_at(p + 108) * (float)((int)s - 32);
    return (float)((int)q - 4) * scale;
}

/* The value of code q in group g of q4_k and q5_k, which begin with d:2  dmin:2  sc:12 */
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

/* d:2  dmin:2  sc:12  qh:32  qs:128 */
static inline float q5_k_at(bytes_in p, uint k)
{
    uint g = k / 32, low = p[48 + g / 2 * 32 + k % 32] >> (g % 2 * 4) & 15;
    return above_least(p, g, low | ((uint)p[16 + k % 32] >> g & 1) << 4);
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

/* d:2  sh:2  sl:4  qs:128 */
static inline float iq4_xs_at(bytes_in p, uint k)
{
    uint g = k / 32, low = p[4 + g / 2] >> (g % 2 * 4) & 15;
    uint s = low | (two_bytes(p + 2) >> (2 * g) & 3) << 4;
    float scale = half_at(p) * (float)((int)s - 32);
    return not_linear(four_bits_at(p + 8 + 16 * g, k % 32)) * scale;
}

BLOCKS(tnf_q2_k, 256, 84, q2_k_at)
BLOCKS(tnf_q3_k, 256, 110, q3_k_at)
BLOCKS(tnf_q4_k, 256, 144, q4_k_at)
BLOCKS(tnf_q5_k, 256, 176, q5_k_at)
BLOCKS(tnf_q6_k, 256, 210, q6_k_at)
BLOCKS(tnf_iq4_xs, 256, 136, iq4_xs_at)
