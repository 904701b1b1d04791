/* SPDX-License-Identifier: MIT */
/* Converts small floats to float, exactly: every value of every type here is a float value.
 *
 *   f16        s eeeee mmmmmmmmmm        bias 15    all-ones exponent: Inf, NaN
 *   bf16       s eeeeeeee mmmmmmm        bias 127   the upper half of a float
 *   e4m3fn     s eeee mmm                bias 7     no Inf; only s.1111.111 is NaN
 *   e5m2       s eeeee mm                bias 15    as f16, cut short
 *   e4m3fnuz   s eeee mmm                bias 8     no Inf; the pattern of -0 is the one NaN
 *   e5m2fnuz   s eeeee mm                bias 16    likewise
 *   e8m0       eeeeeeee                  bias 127   no sign, no zero; 0xff is NaN
 *   e2m3       s ee mmm                  bias 1     neither Inf nor NaN
 *   e3m2       s eee mm                  bias 3     likewise
 *   e2m1       s ee m                    bias 1     likewise
 *
 * Floats are assembled from bits. The only multiplication, for subnormals, has normal operands and
 * an exact result, so it is right in any rounding or flush-to-zero mode.
 */
#include "base/half.h"

#include <string.h>

#define SIGN_BIT 0x80000000u
#define INFINITE 0x7f800000u
#define QUIET    0x7fc00000u

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* A type with a sign, `exponent` bits, `mantissa` bits, and no special values except zero and
 * subnormals. Bits above the sign are ignored. */
static float finite_float(uint32_t bits, unsigned exponent, unsigned mantissa, unsigned bias)
{
    uint32_t sign = (bits >> (exponent + mantissa) & 1) << 31;
    uint32_t e = bits >> mantissa & ((1u << exponent) - 1);
    uint32_t m = bits & ((1u << mantissa) - 1);
    if (e != 0)
        return from_bits(sign | (e + 127 - bias) << 23 | m << (23 - mantissa));
    float unit = from_bits(sign | (1 + 127 - bias - mantissa) << 23);
    return (float)m * unit; /* zero times a negative unit is -0, which is right */
}

float tnf_f16_to_f32(uint16_t bits)
{
    if ((bits & 0x7c00u) == 0x7c00u)
        return from_bits((uint32_t)(bits & 0x8000u) << 16 | INFINITE |
                         (uint32_t)(bits & 0x3ffu) << 13);
    return finite_float(bits, 5, 10, 15);
}

float tnf_bf16_to_f32(uint16_t bits)
{
    return from_bits((uint32_t)bits << 16);
}

float tnf_f8_e4m3fn_to_f32(uint8_t bits)
{
    if ((bits & 0x7f) == 0x7f)
        return from_bits((bits & 0x80 ? SIGN_BIT : 0) | QUIET);
    return finite_float(bits, 4, 3, 7);
}

float tnf_f8_e5m2_to_f32(uint8_t bits)
{
    return tnf_f16_to_f32((uint16_t)(bits << 8));
}

float tnf_f8_e4m3fnuz_to_f32(uint8_t bits)
{
    return bits == 0x80 ? from_bits(QUIET) : finite_float(bits, 4, 3, 8);
}

float tnf_f8_e5m2fnuz_to_f32(uint8_t bits)
{
    return bits == 0x80 ? from_bits(QUIET) : finite_float(bits, 5, 2, 16);
}

float tnf_f8_e8m0_to_f32(uint8_t bits)
{
    if (bits == 0xff)
        return from_bits(QUIET);
    return from_bits(bits == 0 ? 0x00400000u : (uint32_t)bits << 23); /* 2^-127 is subnormal */
}

float tnf_f6_e2m3_to_f32(uint8_t bits)
{
    return finite_float(bits, 2, 3, 1);
}

float tnf_f6_e3m2_to_f32(uint8_t bits)
{
    return finite_float(bits, 3, 2, 3);
}

float tnf_f4_e2m1_to_f32(uint8_t bits)
{
    return finite_float(bits, 2, 1, 1);
}
