/* SPDX-License-Identifier: MIT */
/* Functions shared by the kernels, which convert numbers on a GPU. tools/make-ptx compiles the
 * other *.cl files, which include this one, to *_ptx.h. It needs clang, but no part of CUDA. The
 * tests compile them as C, too (KERNELS_AS_C).
 *
 * Each kernel takes `n` units at `src` (elements, or blocks of them) and writes their numbers to
 * `dst` as `to`: 0 f32, 1 f16, 2 bf16. Sources may be unaligned, so they are read byte by byte;
 * results are aligned to their size. The kernels use only bit operations, and single f32 operations
 * that are rounded once, as on the CPU. So their results are identical to the bit.
 */
#ifndef KERNELS_AS_C
typedef __global const uchar *bytes_in;
typedef __global uchar *bytes_out;
#define KERNEL(name, ...) __kernel void name(ulong src, ulong dst, ulong n, ulong to, __VA_ARGS__)
#define FIRST                                                                                      \
    ((ulong)__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +                       \
     __nvvm_read_ptx_sreg_tid_x())
#define STEP ((ulong)__nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x())

static inline float as_number(uint bits)
{
    return __builtin_bit_cast(float, bits);
}

static inline uint as_bits(float x)
{
    return __builtin_bit_cast(uint, x);
}
#endif

static inline uint two_bytes(bytes_in p)
{
    return p[0] | (uint)p[1] << 8;
}

/* ------------------------------------------------------------------ to f32 */

/* Widens a small float of `e` bits of exponent and `m` bits of mantissa. A NaN becomes quiet. */
static inline uint widen(uint x, uint e, uint m, uint has_infinity)
{
    uint sign = x >> (e + m) << 31, exponent = x >> m & ((1u << e) - 1);
    uint mantissa = x & ((1u << m) - 1), bias = (1u << (e - 1)) - 1;
    if (has_infinity && exponent == (1u << e) - 1)
        return sign | 0x7f800000u | (mantissa ? 0x400000u | mantissa << (23 - m) : 0);
    if (exponent)
        return sign | (exponent + 127 - bias) << 23 | mantissa << (23 - m);
    /* a multiple of the smallest number, which is a normal f32 */
    return sign | as_bits((float)mantissa * as_number((128 - bias - m) << 23));
}

static inline uint widen_e4m3(uint x)
{
    return (x & 0x7f) == 0x7f ? x >> 7 << 31 | 0x7fc00000u : widen(x, 4, 3, 0);
}

static inline uint widen_bf16(uint x)
{
    return x << 16 | ((x & 0x7fff) > 0x7f80 ? 0x400000u : 0);
}

/* ---------------------------------------------------------------- from f32 */

static inline uint round_bf16(uint x)
{
    if ((x & 0x7fffffffu) > 0x7f800000u)
        return x >> 16 | 0x40;
    return (x + 0x7fff + (x >> 16 & 1)) >> 16;
}

static inline uint round_f16(uint x)
{
    uint sign = x >> 16 & 0x8000, a = x & 0x7fffffffu;
    if (a > 0x7f800000u)
        return sign | 0x7e00 | (a >> 13 & 0x3ff);
    if (a >= 0x477ff000u) /* rounds to more than the largest number */
        return sign | 0x7c00;
    if (a >= 0x38800000u)
        return sign | (a - 0x38000000u + 0xfff + (a >> 13 & 1)) >> 13;
    return sign | (as_bits(as_number(a) + 0.5f) - 0x3f000000u); /* the sum keeps the right bits */
}

static inline void put(ulong dst, ulong i, ulong to, uint x)
{
    if (to == 0)
        ((__global uint *)dst)[i] = x;
    else
        ((__global ushort *)dst)[i] = (ushort)(to == 1 ? round_f16(x) : round_bf16(x));
}

/* A NaN keeps its bits, also on machines that know only one NaN. */
static inline uint scaled(uint x, float scale)
{
    return (x & 0x7fffffffu) > 0x7f800000u ? x : as_bits(as_number(x) * scale);
}

/* ------------------------------------------------------------------ blocks */

/* For blocks: every NaN gets the same bits. */
static inline void put_number(ulong dst, ulong i, ulong to, float x)
{
    put(dst, i, to, x == x ? as_bits(x) : 0x7fc00000u);
}

static inline float half_at(bytes_in p)
{
    return as_number(widen(two_bytes(p), 5, 10, 1));
}

/* Each thread makes one element at a time; `p` is its block and `k` its index in it. */
#define BLOCKS(name, elements, bytes, make)                                                        \
    KERNEL(name, ulong first, ulong scales, ulong cols, ulong rows_cols, ulong across)             \
    {                                                                                              \
        (void)first, (void)scales, (void)cols, (void)rows_cols, (void)across;                      \
        for (ulong i = FIRST; i < n * (elements); i += STEP) {                                     \
            bytes_in p = (bytes_in)src + i / (elements) * (bytes);                                 \
            put_number(dst, i, to, make(p, (uint)(i % (elements))));                               \
        }                                                                                          \
    }

/* A 4-bit code: the low halves of 16 bytes come first. */
static inline uint four_bits_at(bytes_in p, uint k)
{
    return p[k % 16] >> (k / 16 * 4) & 15;
}

/* -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113, a byte each */
static inline float not_linear(uint q)
{
    ulong eight = q < 8 ? 0xf6eaddcfbfad9881 : 0x7159453526190d01;
    return (float)(signed char)(eight >> (q % 8 * 8) & 255);
}
