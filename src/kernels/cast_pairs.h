/* SPDX-License-Identifier: MIT */
/* Every pair of source and target, from the loops in cast_loops.h, which includes this. */
#ifndef TNF_KERNELS_CAST_PAIRS_H
#define TNF_KERNELS_CAST_PAIRS_H

#include "base/ieee.h"

/* Called through a pointer, so that no computation is moved out of the section in IEEE mode. */
static __attribute__((noinline)) void cast_in_one_step(tnf_cast_fn *only, uint8_t *out,
                                                       const uint8_t *in, size_t n)
{
    uint32_t mode = tnf_enter_ieee();
    only(out, in, n);
    tnf_leave_ieee(mode);
}

/* `bits` are those of an element before, between and after the two steps. */
static __attribute__((noinline)) void cast_in_two_steps(tnf_cast_fn *first, tnf_cast_fn *second,
                                                        const unsigned bits[3], uint8_t *out,
                                                        const uint8_t *in, size_t n)
{
    uint8_t between[PIECE * 8] __attribute__((aligned(64)));
    uint32_t mode = tnf_enter_ieee();
    while (n > 0) {
        size_t here = n < PIECE ? n : PIECE;
        first(between, in, here);
        second(out, between, here);
        in += here * bits[0] / 8;
        out += here * bits[2] / 8;
        n -= here;
    }
    tnf_leave_ieee(mode);
}

/* Types of one byte have 256 values: for many elements, each value is cast once and then looked
 * up. */
static __attribute__((noinline)) void by_table(tnf_cast_fn *first, tnf_cast_fn *second,
                                               const unsigned bits[3], uint8_t *out,
                                               const uint8_t *in, size_t n)
{
    uint8_t every[256], table[256 * 8] __attribute__((aligned(64)));
    for (unsigned v = 0; v < 256; v++)
        every[v] = (uint8_t)v;
    cast_in_two_steps(first, second, bits, table, every, 256);
    if (bits[2] == 8)
        for (size_t i = 0; i < n; i++)
            out[i] = table[in[i]];
    else if (bits[2] == 16)
        for (size_t i = 0; i < n; i++)
            memcpy(out + 2 * i, table + 2 * (size_t)in[i], 2);
    else
        for (size_t i = 0; i < n; i++)
            memcpy(out + 8 * i, table + 8 * (size_t)in[i], 8);
}

#define ONE(from, to, loop)                                                                        \
    static void from##_to_##to(uint8_t *out, const uint8_t *in, size_t n)                          \
    {                                                                                              \
        cast_in_one_step(loop, out, in, n);                                                        \
    }
#define TWO(from, to, first, second, from_bits, middle_bits, to_bits)                              \
    static void from##_to_##to(uint8_t *out, const uint8_t *in, size_t n)                          \
    {                                                                                              \
        static const unsigned bits[3] = { from_bits, middle_bits, to_bits };                       \
        if ((from_bits) == 8 && n >= 4 * 256)                                                      \
            by_table(first, second, bits, out, in, n);                                             \
        else                                                                                       \
            cast_in_two_steps(first, second, bits, out, in, n);                                    \
    }
/* A type to itself. */
#define SAME(type, bytes)                                                                          \
    static void type##_to_##type(uint8_t *out, const uint8_t *in, size_t n)                        \
    {                                                                                              \
        if (n > 0)                                                                                 \
            memcpy(out, in, n *(bytes));                                                           \
    }

/* Each small type is first converted to f32, each large one to f64. */
#define SMALL(S, bits, T, to_bits) TWO(S, T, f32_of_##S, T##_of_f32, bits, 32, to_bits)
#define LARGE(S, bits, T, to_bits) TWO(S, T, cut_of_##S, T##_of_f64, bits, 64, to_bits)

#define TO_F16(HOW, S, bits)       HOW(S, bits, f16, 16)
#define TO_BF16(HOW, S, bits)      HOW(S, bits, bf16, 16)
#define TO_E4M3FN(HOW, S, bits)    HOW(S, bits, f8_e4m3fn, 8)
#define TO_E5M2(HOW, S, bits)      HOW(S, bits, f8_e5m2, 8)
#define TO_E4M3FNUZ(HOW, S, bits)  HOW(S, bits, f8_e4m3fnuz, 8)
#define TO_E5M2FNUZ(HOW, S, bits)  HOW(S, bits, f8_e5m2fnuz, 8)
#define TO_F8(HOW, S, bits)                                                                        \
    TO_E4M3FN(HOW, S, bits)                                                                        \
    TO_E5M2(HOW, S, bits)                                                                          \
    TO_E4M3FNUZ(HOW, S, bits)                                                                      \
    TO_E5M2FNUZ(HOW, S, bits)

#define WIDENED(S, bits)                                                                           \
    ONE(S, f32, f32_of_##S)                                                                        \
    TWO(S, f64, f32_of_##S, f64_of_f32, bits, 32, 64)
#define NO_FLOAT(S, bits)                                                                          \
    WIDENED(S, bits)                                                                               \
    TO_F16(SMALL, S, bits)                                                                         \
    TO_BF16(SMALL, S, bits)                                                                        \
    TO_F8(SMALL, S, bits)
#define LARGE_INTEGER(S, bits)                                                                     \
    ONE(S, f64, f64_of_##S)                                                                        \
    TWO(S, f32, cut_of_##S, f32_of_f64, bits, 64, 32)                                              \
    TO_F16(LARGE, S, bits)                                                                         \
    TO_BF16(LARGE, S, bits)                                                                        \
    TO_F8(LARGE, S, bits)
#define AT_ONCE(S, bits, T, to_bits) ONE(S, T, T##_of_##S)

SAME(f64, 8)
AT_ONCE(f64, 64, f32, 32)
TO_F16(AT_ONCE, f64, 64)
TO_BF16(AT_ONCE, f64, 64)
TO_F8(AT_ONCE, f64, 64)
SAME(f32, 4)
AT_ONCE(f32, 32, f64, 64)
TO_F16(AT_ONCE, f32, 32)
TO_BF16(AT_ONCE, f32, 32)
TO_F8(AT_ONCE, f32, 32)
SAME(f16, 2)
WIDENED(f16, 16)
TO_BF16(AT_ONCE, f16, 16)
TO_F8(SMALL, f16, 16)
SAME(bf16, 2)
WIDENED(bf16, 16)
TO_F16(AT_ONCE, bf16, 16)
TO_F8(SMALL, bf16, 16)
SAME(f8_e4m3fn, 1)
WIDENED(f8_e4m3fn, 8)
TO_F16(SMALL, f8_e4m3fn, 8)
TO_BF16(SMALL, f8_e4m3fn, 8)
TO_E5M2(SMALL, f8_e4m3fn, 8)
TO_E4M3FNUZ(SMALL, f8_e4m3fn, 8)
TO_E5M2FNUZ(SMALL, f8_e4m3fn, 8)
SAME(f8_e5m2, 1)
WIDENED(f8_e5m2, 8)
TO_F16(SMALL, f8_e5m2, 8)
TO_BF16(SMALL, f8_e5m2, 8)
TO_E4M3FN(SMALL, f8_e5m2, 8)
TO_E4M3FNUZ(SMALL, f8_e5m2, 8)
TO_E5M2FNUZ(SMALL, f8_e5m2, 8)
SAME(f8_e4m3fnuz, 1)
WIDENED(f8_e4m3fnuz, 8)
TO_F16(SMALL, f8_e4m3fnuz, 8)
TO_BF16(SMALL, f8_e4m3fnuz, 8)
TO_E4M3FN(SMALL, f8_e4m3fnuz, 8)
TO_E5M2(SMALL, f8_e4m3fnuz, 8)
TO_E5M2FNUZ(SMALL, f8_e4m3fnuz, 8)
SAME(f8_e5m2fnuz, 1)
WIDENED(f8_e5m2fnuz, 8)
TO_F16(SMALL, f8_e5m2fnuz, 8)
TO_BF16(SMALL, f8_e5m2fnuz, 8)
TO_E4M3FN(SMALL, f8_e5m2fnuz, 8)
TO_E5M2(SMALL, f8_e5m2fnuz, 8)
TO_E4M3FNUZ(SMALL, f8_e5m2fnuz, 8)
NO_FLOAT(f8_e8m0, 8)
NO_FLOAT(i8, 8)
NO_FLOAT(u8, 8)
NO_FLOAT(i16, 16)
NO_FLOAT(u16, 16)
NO_FLOAT(flag, 8)
NO_FLOAT(i4, 4)
NO_FLOAT(u4, 4)
NO_FLOAT(i2, 2)
NO_FLOAT(u2, 2)
LARGE_INTEGER(i32, 32)
LARGE_INTEGER(u32, 32)
LARGE_INTEGER(i64, 64)
LARGE_INTEGER(u64, 64)
LARGE_INTEGER(i128, 128)
LARGE_INTEGER(u128, 128)

#define ROW(S)                                                                                     \
    {                                                                                              \
        S##_to_f64, S##_to_f32, S##_to_f16, S##_to_bf16, S##_to_f8_e4m3fn, S##_to_f8_e5m2,         \
            S##_to_f8_e4m3fnuz, S##_to_f8_e5m2fnuz                                                 \
    }

/* In the order of cast.c. */
const tnf_cast_set LOOPS = {
    LOOPS_NAME,
    { ROW(f64),         ROW(f32),         ROW(f16),     ROW(bf16), ROW(f8_e4m3fn), ROW(f8_e5m2),
      ROW(f8_e4m3fnuz), ROW(f8_e5m2fnuz), ROW(f8_e8m0), ROW(i8),   ROW(u8),        ROW(i16),
      ROW(u16),         ROW(flag),        ROW(i4),      ROW(u4),   ROW(i2),        ROW(u2),
      ROW(i32),         ROW(u32),         ROW(i64),     ROW(u64),  ROW(i128),      ROW(u128) }
};

#endif
