/* SPDX-License-Identifier: MIT */
/* Decodes elements whose scales are another part of the same tensor: mx/1 and quant_group/1.
 * numbers.cl describes how kernels are called, and src/model/layout_quant.c describes the parts. */
#ifndef KERNELS_AS_C
#include "numbers.cl"
#endif

/* The index of an element's scale. Scales are in rows of `across`, one for each block of rows and
 * columns of a matrix with rows of `cols` elements. No tensor here has 2^32 elements. */
static inline uint part_place(uint i, ulong cols, ulong rows_cols, ulong across)
{
    uint row = i / (uint)cols, column = i % (uint)cols;
    return row / (uint)(rows_cols >> 32) * (uint)across + column / (uint)rows_cols;
}

/* A unit has `elements` elements in `bytes` bytes; `p` is its beginning, `k` the index of an
 * element in it, and `s` the index of its scale. `first` is the index of the first unit in the
 * tensor. */
#define IN_PARTS(name, elements, bytes, make)                                                      \
    KERNEL(name, ulong first, ulong scales, ulong cols, ulong rows_cols, ulong across)             \
    {                                                                                              \
        for (ulong i = FIRST; i < n * (elements); i += STEP) {                                     \
            bytes_in p = (bytes_in)src + i / (elements) * (bytes);                                 \
            uint s = part_place((uint)(first * (elements) + i), cols, rows_cols, across);          \
            uint k = (uint)(i % (elements));                                                       \
            (void)k;                                                                               \
            put(dst, i, to, make);                                                                 \
        }                                                                                          \
    }

/* mx/1: scales are exponents of one byte; 255 is NaN. The product of two NaNs depends on the
 * machine, so then the host computes. */
static inline uint mx_scaled(uint x, ulong scales, uint s)
{
    uint e = ((bytes_in)scales)[s];
    return e == 255 ? 0x7fc00000u : scaled(x, as_number(e ? e << 23 : 0x00400000u));
}

/* Codes of six bits, four in three bytes. */
static inline uint six_bits_at(bytes_in p, uint k)
{
    return (two_bytes(p) | (uint)p[2] << 16) >> (6 * k) & 63;
}

#define MX(name, elements, bytes, get) IN_PARTS(name, elements, bytes, mx_scaled(get, scales, s))

MX(tnf_mx_e2m1, 2, 1, widen(p[0] >> (4 * k) & 15, 2, 1, 0))
MX(tnf_mx_e2m3, 4, 3, widen(six_bits_at(p, k), 2, 3, 0))
MX(tnf_mx_e3m2, 4, 3, widen(six_bits_at(p, k), 3, 2, 0))
MX(tnf_mx_e4m3, 1, 1, widen_e4m3(p[0]))
MX(tnf_mx_e5m2, 1, 1, widen(p[0], 5, 2, 1))
MX(tnf_mx_i8, 1, 1, as_bits((float)(signed char)p[0] * 0.015625f))

/* quant_group/1: `scales` has pairs of f32, the scale and the zero of each group. */
static inline uint code_number(uint code, ulong scales, uint s)
{
    __global const float *group = (__global const float *)scales + 2 * (ulong)s;
    float above = (float)code - group[1];
    return as_bits(above * group[0]);
}

/* The first code is in the lowest bits of a byte. */
#define CODES(name, bits)                                                                          \
    IN_PARTS(name, 8 / (bits), 1,                                                                  \
             code_number((uint)p[0] >> ((bits)*k) & ((1u << (bits)) - 1), scales, s))

CODES(tnf_codes_2, 2)
CODES(tnf_codes_4, 4)
CODES(tnf_codes_8, 8)
