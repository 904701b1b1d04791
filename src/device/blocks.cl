/* SPDX-License-Identifier: MIT */
/* GGUF's blocks of one level as numbers, as src/kernels/blocks_simple.h has them. numbers.cl says
 * how kernels are called. */
#ifndef KERNELS_AS_C
#include "numbers.cl"
#endif

/* d:2  qs:16 */
static inline float q4_0_at(bytes_in p, uint k)
{
    return (float)((int)four_bits_at(p + 2, k) - 8) * half_at(p);
}

/* d:2  qs:32 */
static inline float q8_0_at(bytes_in p, uint k)
{
    return (float)(signed char)p[2 + k] * half_at(p);
}

BLOCKS(tnf_q4_0, 32, 18, q4_0_at)
BLOCKS(tnf_q8_0, 32, 34, q8_0_at)
