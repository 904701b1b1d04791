/* SPDX-License-Identifier: MIT */
/* Converts halves and singles to doubles and back, bit by bit: values are exact, NaNs keep all
 * bits.
 *
 *   half    s eeeee    ffffffffff
 *   single  s eeeeeeee fffffffffffffffffffffff
 *   double  s eeeeeeeeeee ffffffffffffffffffffffffffffffffffffffffffffffffffff
 *
 * Conversions by the processor would do for numbers, but they change some NaNs.
 */
#include "wire/cbor_head.h"

uint64_t tnf_cbor_widen(uint64_t bits, unsigned exponent_bits, unsigned fraction_bits)
{
    uint64_t top = ((uint64_t)1 << exponent_bits) - 1, exponent = bits >> fraction_bits & top;
    uint64_t sign = bits >> (exponent_bits + fraction_bits) << 63;
    uint64_t fraction = (bits & (((uint64_t)1 << fraction_bits) - 1)) << (52 - fraction_bits);
    uint64_t bias = 1023 - top / 2;
    if (exponent == top)
        return sign | (uint64_t)0x7ff << 52 | fraction;
    if (exponent == 0 && fraction == 0)
        return sign;
    if (exponent == 0) { /* a subnormal becomes a normal double */
        for (exponent = 1; !(fraction >> 52); fraction <<= 1)
            bias--;
        fraction &= ((uint64_t)1 << 52) - 1;
    }
    return sign | (exponent + bias) << 52 | fraction;
}

/* Converts the bits of a double to those of a smaller float of exactly the same value, if there is
 * one. */
static bool narrow_float(uint64_t bits, int exponent_bits, int fraction_bits, uint64_t *out)
{
    const int bias = (1 << (exponent_bits - 1)) - 1, lowest = 1 - bias;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023, drop = 52 - fraction_bits;
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1), top = 0;
    if (exponent == 1024) { /* infinity, NaN */
        top = ((uint64_t)1 << exponent_bits) - 1;
    } else if (exponent ==
               -1023) { /* zero; a subnormal double is too small for any smaller float */
        if (fraction)
            return false;
    } else if (exponent > bias || exponent < lowest - fraction_bits) {
        return false;
    } else if (exponent >= lowest) {
        top = (uint64_t)(exponent + bias);
    } else { /* a subnormal in the smaller type */
        fraction |= (uint64_t)1 << 52;
        drop += lowest - exponent;
    }
    if (fraction & (((uint64_t)1 << drop) - 1))
        return false;
    *out = bits >> 63 << (exponent_bits + fraction_bits) | top << fraction_bits | fraction >> drop;
    return true;
}

unsigned tnf_cbor_shortest_float(uint64_t bits, uint64_t *shortest)
{
    if (narrow_float(bits, 5, 10, shortest))
        return 2;
    if (narrow_float(bits, 8, 23, shortest))
        return 4;
    *shortest = bits;
    return 8;
}
