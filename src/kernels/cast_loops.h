/* SPDX-License-Identifier: MIT */
/* Casts, written once and compiled for each instruction set: a file defines LOOPS, the name of its
 * table, and LOOPS_NAME, and includes this. Loops have no branches, so that compilers vectorise
 * them.
 *
 *   small types, up to 16 bits     → f32, exactly     → any
 *   i32 u32 i64 u64 i128 u128      → f64, see below   → any
 *   f32, f64                       → any
 *
 * Two steps are done in pieces that stay in the first-level cache. A float becomes a smaller one as
 * in narrow.c, but with integers of its own width:
 *
 *   normal       the bits, moved to the other bias, plus half of the part that is cut off: exponent
 *                and mantissa are one number, so a carry has the right effect
 *   subnormal    a power of two is added whose last bit is the smallest number of the type, and
 *                subtracted again as bits: the addition rounds
 *
 * A larger integer that f64 cannot hold is cut to 53 bits, and the last bit is set if any bit was
 * cut off. So it is rounded only once, by the next step: the cut never creates a tie.
 */
#include "base/int128.h"
#include "kernels/cast.h"

#include <stdbool.h>
#include <string.h>

#define PIECE 1024u /* elements; a multiple of the elements that share a byte */

/* ---------------------------------------------------- loading and storing */

/* Compilers understand tnf_le16() and similar functions too late for vectorisation. */
#define LOADER(bits)                                                                               \
    static inline uint##bits##_t get_##bits(const uint8_t *p)                                      \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        memcpy(&v, p, sizeof v);                                                                   \
        return TNF_BIG_ENDIAN_HOST ? __builtin_bswap##bits(v) : v;                                 \
    }                                                                                              \
    static inline void put_##bits(uint8_t *p, uint##bits##_t v)                                    \
    {                                                                                              \
        if (TNF_BIG_ENDIAN_HOST)                                                                   \
            v = __builtin_bswap##bits(v);                                                          \
        memcpy(p, &v, sizeof v);                                                                   \
    }
LOADER(16)
LOADER(32)
LOADER(64)

static inline uint8_t get_8(const uint8_t *p)
{
    return *p;
}

static inline void put_8(uint8_t *p, uint8_t v)
{
    *p = v;
}

/* Converts all elements of `from` bits to elements of `to` bits: `expression` of the bits v. */
#define LOOP(name, from, to, expression)                                                           \
    static void name(uint8_t *restrict out, const uint8_t *restrict in, size_t n)                  \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint##from##_t v = get_##from(in + i * ((from) / 8));                                  \
            put_##to(out + i * ((to) / 8), (uint##to##_t)(expression));                            \
        }                                                                                          \
    }

/* -------------------------------------------------------- small ones to f32 */

/* A float with a sign, an exponent and `mantissa` bits, `bits` in total, as f32. `odd` is added to
 * an exponent of all ones; it is 0 if that exponent is an ordinary one. */
static inline uint32_t widened_float(uint32_t v, unsigned bits, unsigned mantissa, unsigned bias,
                                     uint32_t odd)
{
    uint32_t sign = v >> (bits - 1) << 31, a = (v & ((1u << (bits - 1)) - 1)) << (23 - mantissa);
    uint32_t top = ((1u << (bits - 1 - mantissa)) - 1) << 23;
    uint32_t normal = a + ((127 - bias) << 23);
    uint32_t smallest = (128 - bias) << 23; /* the smallest normal number of the type */
    uint32_t sub = tnf_f32_bits(tnf_f32_of(smallest | a) - tnf_f32_of(smallest));
    uint32_t rest = a & 0x7fffff ? 0x400000u : 0; /* a NaN is made quiet */
    uint32_t all = odd && a >= top ? (normal + odd) | rest : normal;
    return sign | (a < 0x800000 ? sub : all);
}

static inline uint32_t from_f16(uint32_t v)
{
    return widened_float(v, 16, 10, 15, 112u << 23);
}

static inline uint32_t from_bf16(uint32_t v)
{
    uint32_t bits = v << 16;
    return (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : bits;
}

static inline uint32_t from_e4m3fn(uint32_t v)
{
    return (v & 0x7f) == 0x7f ? (v & 0x80) << 24 | 0x7fc00000 : widened_float(v, 8, 3, 7, 0);
}

static inline uint32_t from_fnuz(uint32_t v, unsigned mantissa, unsigned bias)
{
    return v == 0x80 ? 0x7fc00000 : widened_float(v, 8, mantissa, bias, 0);
}

static inline uint32_t from_e8m0(uint32_t v)
{
    uint32_t bits = v == 255 ? 0x7fc00000 : v << 23;
    return v == 0 ? 0x00400000 : bits;
}

LOOP(f32_of_f16_bits, 16, 32, from_f16(v))
LOOP(f32_of_bf16, 16, 32, from_bf16(v))
LOOP(f32_of_f8_e4m3fn, 8, 32, from_e4m3fn(v))
LOOP(f32_of_f8_e5m2, 8, 32, from_f16((uint32_t)v << 8))
LOOP(f32_of_f8_e4m3fnuz, 8, 32, from_fnuz(v, 3, 8))
LOOP(f32_of_f8_e5m2fnuz, 8, 32, from_fnuz(v, 2, 16))
LOOP(f32_of_f8_e8m0, 8, 32, from_e8m0(v))
LOOP(f32_of_i8, 8, 32, tnf_f32_bits((float)(int8_t)v))
LOOP(f32_of_u8, 8, 32, tnf_f32_bits((float)v))
LOOP(f32_of_i16, 16, 32, tnf_f32_bits((float)(int16_t)v))
LOOP(f32_of_u16, 16, 32, tnf_f32_bits((float)v))
LOOP(f32_of_flag, 8, 32, v ? 0x3f800000u : 0)

/* Packed elements, the first in the lowest bits of a byte; the last byte may be partly used. */
static inline void f32_of_packed(uint8_t *restrict out, const uint8_t *restrict in, size_t n,
                                 unsigned bits, bool is_signed)
{
    unsigned each = 8 / bits;
    int half = is_signed ? 1 << (bits - 1) : 0;
    for (size_t i = 0; i < n; i++) {
        int v = in[i / each] >> bits * (i % each) & ((1 << bits) - 1);
        put_32(out + 4 * i, tnf_f32_bits((float)((v ^ half) - half)));
    }
}

#define PACKED(name, bits, is_signed)                                                              \
    static void f32_of_##name(uint8_t *restrict out, const uint8_t *restrict in, size_t n)         \
    {                                                                                              \
        f32_of_packed(out, in, n, bits, is_signed);                                                \
    }
PACKED(i4, 4, true)
PACKED(u4, 4, false)
PACKED(i2, 2, true)
PACKED(u2, 2, false)

/* ------------------------------------------------------ large ones to f64 */

/* |v| as a double, or as a number of 53 bits whose last bit says that other bits were cut off. */
static inline double cut_to_f64(uint64_t v)
{
    uint64_t cut = v >> 11 | ((v & 2047) != 0);
    bool large = v >> 53 != 0;
    double d = (double)(int64_t)(large ? cut : v);
    return large ? d * 2048.0 : d;
}

static inline double cut_signed(int64_t v)
{
    double d = cut_to_f64(v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
    return v < 0 ? -d : d;
}

LOOP(f64_of_i32, 32, 64, tnf_f64_bits((double)(int32_t)v))
LOOP(f64_of_u32, 32, 64, tnf_f64_bits((double)v))
LOOP(f64_of_i64, 64, 64, tnf_f64_bits((double)(int64_t)v))
LOOP(f64_of_u64, 64, 64, tnf_f64_bits((double)v))
LOOP(cut_of_i64, 64, 64, tnf_f64_bits(cut_signed((int64_t)v)))
LOOP(cut_of_u64, 64, 64, tnf_f64_bits(cut_to_f64(v)))

/* |v| in the same way, of 128 bits. */
static inline double cut_wide(tnf_u128 v)
{
    unsigned cut;
    if (v.high == 0)
        return cut_to_f64(v.low);
    uint64_t top = tnf_u128_top(v, &cut);
    return cut_to_f64(top) * tnf_two_to(cut);
}

static inline double cut_wide_signed(tnf_u128 v)
{
    double d = cut_wide(tnf_i128_size(v));
    return v.high >> 63 ? -d : d;
}

#define WIDE_LOOP(name, expression)                                                                \
    static void name(uint8_t *restrict out, const uint8_t *restrict in, size_t n)                  \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            tnf_u128 v = { get_64(in + 16 * i), get_64(in + 16 * i + 8) };                         \
            put_64(out + 8 * i, tnf_f64_bits(expression));                                         \
        }                                                                                          \
    }
WIDE_LOOP(f64_of_i128, tnf_i128_to_f64(v))
WIDE_LOOP(f64_of_u128, tnf_u128_to_f64(v))
WIDE_LOOP(cut_of_i128, cut_wide_signed(v))
WIDE_LOOP(cut_of_u128, cut_wide(v))
#define cut_of_i32 f64_of_i32
#define cut_of_u32 f64_of_u32

/* --------------------------------------------------------- to smaller floats */

/* The parameters of smaller floats, as in narrow.h. */
#define F16        10, 15, 0x7bffu, 0x7e00u, true, true, 16
#define BF16       7, 127, 0x7f7fu, 0x7fc0u, true, true, 16
#define E4M3FN     3, 7, 0x7eu, 0x7fu, false, true, 8
#define E5M2       2, 15, 0x7bu, 0x7eu, true, true, 8
#define E4M3FNUZ   3, 8, 0x7fu, 0x80u, false, false, 8
#define E5M2FNUZ   2, 16, 0x7fu, 0x80u, false, false, 8

static inline uint32_t from_f32(uint32_t v, unsigned mantissa, unsigned bias, uint32_t largest,
                                uint32_t nan, bool has_infinity, bool has_minus_zero, unsigned bits)
{
    uint32_t a = v & 0x7fffffff, sign = v >> 31 << (bits - 1);
    unsigned cut = 23 - mantissa;
    uint32_t smallest = (128 - bias) << 23; /* the smallest normal number of the type */
    uint32_t normal = a - ((127 - bias) << 23) + ((1u << (cut - 1)) - 1) + (a >> cut & 1);
    uint32_t unit = (127 + 1 - bias + 23 - mantissa) << 23;
    uint32_t sub = tnf_f32_bits(tnf_f32_of(a) + tnf_f32_of(unit)) - unit;
    uint32_t code = a < smallest ? sub : normal >> cut;
    code = code > largest ? largest + has_infinity : code;
    if (!has_minus_zero)
        sign = code ? sign : 0;
    uint32_t odd = has_infinity ? nan | (a >> cut & ((1u << mantissa) - 1)) : nan;
    uint32_t odd_sign = has_minus_zero ? sign : 0;
    return a > 0x7f800000 ? odd | odd_sign : code | sign;
}

static inline uint32_t bf16_from_f32(uint32_t v)
{
    uint32_t rounded = (v + 0x7fff + (v >> 16 & 1)) >> 16;
    return (v & 0x7fffffff) > 0x7f800000 ? v >> 16 | 0x40 : rounded;
}

static inline uint64_t from_f64(uint64_t v, unsigned mantissa, unsigned bias, uint64_t largest,
                                uint64_t nan, bool has_infinity, bool has_minus_zero, unsigned bits)
{
    int64_t a = (int64_t)(v & 0x7fffffffffffffff), nothing = (int64_t)0x7ff << 52;
    uint64_t sign = v >> 63 << (bits - 1);
    unsigned cut = 52 - mantissa;
    int64_t smallest = (int64_t)(1024 - bias) << 52, largest_ = (int64_t)largest;
    int64_t half = ((int64_t)1 << (cut - 1)) - 1, least = (int64_t)(1023 - bias) << 52;
    int64_t unit = (int64_t)(1023 + 1 - bias + 52 - mantissa) << 52;
    int64_t normal = (int64_t)((uint64_t)(a - least + half + (a >> cut & 1)) >> cut);
    int64_t sub = (int64_t)tnf_f64_bits(tnf_f64_of((uint64_t)a) + tnf_f64_of((uint64_t)unit));
    int64_t code = a < smallest ? sub - unit : normal;
    code = code > largest_ ? largest_ + has_infinity : code;
    if (!has_minus_zero)
        sign &= (uint64_t)(-code >> 63); /* all ones unless code is 0 */
    uint64_t odd = nan;
    if (has_infinity)
        odd |= (uint64_t)a >> cut & (((uint64_t)1 << mantissa) - 1);
    uint64_t odd_sign = has_minus_zero ? sign : 0;
    return a > nothing ? odd | odd_sign : (uint64_t)code | sign;
}

/* A macro that stands for several arguments is only expanded when it is passed on once more. */
#define NARROW_32(v, ...) from_f32(v, __VA_ARGS__)
#define NARROW_64(v, ...) from_f64(v, __VA_ARGS__)

LOOP(f16_of_f32_bits, 32, 16, NARROW_32(v, F16))
LOOP(bf16_of_f32, 32, 16, bf16_from_f32(v))
LOOP(bf16_of_f16_bits, 16, 16, bf16_from_f32(from_f16(v)))
LOOP(f16_of_bf16_bits, 16, 16, NARROW_32(from_bf16(v), F16))
LOOP(f8_e4m3fn_of_f32, 32, 8, NARROW_32(v, E4M3FN))
LOOP(f8_e5m2_of_f32, 32, 8, NARROW_32(v, E5M2))
LOOP(f8_e4m3fnuz_of_f32, 32, 8, NARROW_32(v, E4M3FNUZ))
LOOP(f8_e5m2fnuz_of_f32, 32, 8, NARROW_32(v, E5M2FNUZ))
LOOP(f64_of_f32, 32, 64, tnf_f64_bits((double)tnf_f32_of(v)))
LOOP(f32_of_f64, 64, 32, tnf_f32_bits((float)tnf_f64_of(v)))
LOOP(f16_of_f64, 64, 16, NARROW_64(v, F16))
LOOP(bf16_of_f64, 64, 16, NARROW_64(v, BF16))
LOOP(f8_e4m3fn_of_f64, 64, 8, NARROW_64(v, E4M3FN))
LOOP(f8_e5m2_of_f64, 64, 8, NARROW_64(v, E5M2))
LOOP(f8_e4m3fnuz_of_f64, 64, 8, NARROW_64(v, E4M3FNUZ))
LOOP(f8_e5m2fnuz_of_f64, 64, 8, NARROW_64(v, E5M2FNUZ))

/* Halves, which some processors convert. The loops above do the remaining elements. */
#ifndef CAST_OWN_HALVES
static size_t halves_to_f32(uint8_t *out, const uint8_t *in, size_t n)
{
    (void)out, (void)in, (void)n;
    return 0;
}

static size_t halves_of_f32(uint8_t *out, const uint8_t *in, size_t n)
{
    (void)out, (void)in, (void)n;
    return 0;
}
#endif
#ifndef CAST_OWN_BF16
static size_t halves_to_bf16(uint8_t *out, const uint8_t *in, size_t n)
{
    (void)out, (void)in, (void)n;
    return 0;
}
#define halves_of_bf16 halves_to_bf16
#endif

static void f32_of_f16(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t done = halves_to_f32(out, in, n);
    f32_of_f16_bits(out + 4 * done, in + 2 * done, n - done);
}

static void f16_of_f32(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t done = halves_of_f32(out, in, n);
    f16_of_f32_bits(out + 2 * done, in + 4 * done, n - done);
}

static void bf16_of_f16(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t done = halves_to_bf16(out, in, n);
    bf16_of_f16_bits(out + 2 * done, in + 2 * done, n - done);
}

static void f16_of_bf16(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t done = halves_of_bf16(out, in, n);
    f16_of_bf16_bits(out + 2 * done, in + 2 * done, n - done);
}

#include "kernels/cast_pairs.h"
