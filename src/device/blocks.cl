/* SPDX-License-Identifier: MIT */
/* Decodes GGUF blocks of one level, like src/kernels/blocks_simple.h. numbers.cl describes how
 * kernels are called. */
#ifndef KERNELS_AS_C
#include "numbers.cl"
#endif

/* d:2  qs:16 */
static inline float q4_0_at(bytes_in p, uint k)
{
    return (float)((int)four_bits_at(p + 2, k) - 8) * half_at(p);
}

/* d:2  m:2  qs:16 */
static inline float q4_1_at(bytes_in p, uint k)
{
    float product = (float)four_bits_at(p + 4, k) * half_at(p);
    return product + half_at(p + 2);
}

/* A code of 5 bits: qh:4  qs:16 */
static inline uint five_bits_at(bytes_in p, uint k)
{
    return four_bits_at(p + 4, k) | ((uint)p[k / 8] >> k % 8 & 1) << 4;
}

/* d:2  qh:4  qs:16 */
static inline float q5_0_at(bytes_in p, uint k)
{
    return (float)((int)five_bits_at(p + 2, k) - 16) * half_at(p);
}

/* d:2  m:2  qh:4  qs:16 */
static inline float q5_1_at(bytes_in p, uint k)
{
    float product = (float)five_bits_at(p + 4, k) * half_at(p);
    return product + half_at(p + 2);
}

/* d:2  qs:32 */
static inline float q8_0_at(bytes_in p, uint k)
{
    return (float)(signed char)p[2 + k] * half_at(p);
}

/* d:2  qs:16 */
static inline float iq4_nl_at(bytes_in p, uint k)
{
    return not_linear(four_bits_at(p + 2, k)) * half_at(p);
}

/* Twice the value of a 4-bit float, s ee m: 0 1 2 3 4 6 8 12. The code of -0 gives 0. */
static inline float doubled(uint q)
{
    int x = (int)(0xc8643210u >> (q % 8 * 4) & 15);
    return (float)(q & 8 ? -x : x);
}

/* e:1  qs:16. Since codes are doubled, the scale is halved: 2^(e - 128). */
static inline float mxfp4_at(bytes_in p, uint k)
{
    uint e = p[0];
    uint scale = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    return doubled(four_bits_at(p + 1, k)) * as_number(scale);
}

/* Half of an 8-bit float, eeee mmm, bias 7. Bit 7 only distinguishes 0xff from 0x7f, which is 0. */
static inline float small_scale(uint x)
{
    uint e = x >> 3 & 15, m = x & 7;
    if (x == 0x7f)
        return 0;
    return e ? (float)(8 + m) * as_number((e + 116) << 23) : (float)m * as_number(117u << 23);
}

/* d:4  qs:32, four groups of 16 */
static inline float nvfp4_at(bytes_in p, uint k)
{
    uint g = k / 16;
    return doubled(p[4 + 8 * g + k % 8] >> (k % 16 / 8 * 4) & 15) * small_scale(p[g]);
}

BLOCKS(tnf_q4_0, 32, 18, q4_0_at)
BLOCKS(tnf_q4_1, 32, 20, q4_1_at)
BLOCKS(tnf_q5_0, 32, 22, q5_0_at)
BLOCKS(tnf_q5_1, 32, 24, q5_1_at)
BLOCKS(tnf_q8_0, 32, 34, q8_0_at)
BLOCKS(tnf_iq4_nl, 32, 18, iq4_nl_at)
BLOCKS(tnf_mxfp4, 32, 17, mxfp4_at)
BLOCKS(tnf_nvfp4, 64, 36, nvfp4_at)
