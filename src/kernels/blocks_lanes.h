/* SPDX-License-Identifier: MIT */
/* Vectors of codes and their conversion to floats; vectors of floats and their conversion to codes.
 * A file for one instruction set may have its own versions of the functions below, and then defines
 * BLOCKS_OWN_LANES. Included by blocks_loops.h.
 */
#ifndef TNF_KERNELS_BLOCKS_LANES_H
#define TNF_KERNELS_BLOCKS_LANES_H

#include <stdint.h>
#include <string.h>
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef uint8_t codes __attribute__((vector_size(16)));
typedef uint16_t shorts __attribute__((vector_size(16)));
typedef uint32_t words __attribute__((vector_size(16)));
typedef uint64_t longs __attribute__((vector_size(16)));

/* The number of floats that are encoded at once: 4 or 8, depending on the instruction set. */
#ifndef BLOCKS_LANES
#define BLOCKS_LANES 4
#endif
typedef float floats __attribute__((vector_size(4 * BLOCKS_LANES)));
typedef int32_t ints __attribute__((vector_size(4 * BLOCKS_LANES)));

/* Lanes of `a` where the mask is all ones, else of `b`. */
#define BLOCKS_PICK(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))

/* Unrolls loops over groups: shifts by a constant are much faster. */
#if defined(__clang__)
#define BLOCKS_UNROLL _Pragma("clang loop unroll(full)")
#else
#define BLOCKS_UNROLL _Pragma("GCC unroll 16")
#endif

static inline codes codes_at(const void *p)
{
    codes c;
    memcpy(&c, p, sizeof c);
    return c;
}

/* Bit j of `bits` in lane j, as 0 or `value`. */
static inline codes spread_bits(unsigned bits, uint8_t value)
{
    const codes one = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    const longs copies = { (bits & 255) * (uint64_t)0x0101010101010101,
                           (bits >> 8 & 255) * (uint64_t)0x0101010101010101 };
    return (codes)(((codes)copies & one) == one) & value;
}

#ifndef BLOCKS_OWN_LANES
/* y = d * q + m, for 16 signed codes. */
static inline void scaled_from_16(float *restrict y, codes q, float d, float m)
{
    int8_t lanes[16];
    memcpy(lanes, &q, sizeof lanes);
    for (int j = 0; j < 16; j++) {
        float x = d * (float)lanes[j];
        y[j] = x + m;
    }
}

static inline void scaled_16(float *restrict y, codes q, float d)
{
    int8_t lanes[16];
    memcpy(lanes, &q, sizeof lanes);
    for (int j = 0; j < 16; j++)
        y[j] = d * (float)lanes[j];
}

/* The same for eight codes of 16 bits. */
static inline void scaled_8(float *restrict y, shorts q, float d)
{
    int16_t lanes[8];
    memcpy(lanes, &q, sizeof lanes);
    for (int j = 0; j < 8; j++)
        y[j] = d * (float)lanes[j];
}

/* Looks up codes below 16 in a table. */
static inline codes looked_up(codes q, const int8_t table[16])
{
#if defined(__aarch64__)
    return (codes)vqtbl1q_s8(vld1q_s8(table), (uint8x16_t)q);
#endif
    for (int j = 0; j < 16; j++)
        q[j] = (uint8_t)table[q[j]];
    return q;
}

/* The low bytes of all lanes. */
static inline void put_bytes(uint8_t *restrict out, ints v)
{
    for (int j = 0; j < BLOCKS_LANES; j++)
        out[j] = (uint8_t)v[j];
}
#endif

#endif
