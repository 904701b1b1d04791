/* SPDX-License-Identifier: MIT */
/* The meaning of the codes and small scales of some block types. Included by blocks_*.h. */
#ifndef TNF_KERNELS_BLOCKS_CODES_H
#define TNF_KERNELS_BLOCKS_CODES_H

/* iq4_nl, iq4_xs */
static const int8_t not_linear[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113 };

/* Twice the value of a float of four bits, s ee m; the code of -0 is 0. */
static const int8_t fp4_doubled[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

/* 2^(e - 128): half of the value of mxfp4's exponent, since the codes are doubled. */
static inline float power_scale(uint8_t e)
{
    return tnf_f32_of(e < 2 ? (uint32_t)0x00200000 << e : (uint32_t)(e - 1) << 23);
}

/* Half of an 8-bit float, eeee mmm, bias 7, without a sign. Bit 7 is ignored, except that it
 * distinguishes 0xff from 0x7f, which means 0. */
static inline float ue4m3_scale(uint8_t x)
{
    int e = x >> 3 & 15, m = x & 7;
    if (x == 0 || x == 0x7f)
        return 0;
    if (e == 0)
        return (float)m * 0x1p-10f;
    return (float)(8 + m) * tnf_f32_of((uint32_t)(127 + e - 7 - 4) << 23);
}

#endif
