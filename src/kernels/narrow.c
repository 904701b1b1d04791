/* SPDX-License-Identifier: MIT */
/* Rounding a double to a smaller float: to the nearest, ties to even.
 *
 *   double   s eeeeeeeeeee mmmmmmmmm…m
 *                          ├ kept ┤├ rounded away ┤
 *
 * The remaining bits are shifted into place as one number, exponent and mantissa together. So a
 * mantissa that rounds up to the next power of two carries into the exponent by itself. Below the
 * smallest normal number fewer bits remain, and the same rule applies.
 */
#include "kernels/narrow.h"

#include <stddef.h>
#include <string.h>

#define DOUBLE_MANTISSA 52

static const tnf_narrow known[] = {
    { "f32", 4, 23, 127, 0x7f7fffff, 0x7fc00000, true, true },
    { "f16", 2, 10, 15, 0x7bff, 0x7e00, true, true },
    { "bf16", 2, 7, 127, 0x7f7f, 0x7fc0, true, true },
    { "f8_e4m3fn", 1, 3, 7, 0x7e, 0x7f, false, true },
    { "f8_e5m2", 1, 2, 15, 0x7b, 0x7e, true, true },
    { "f8_e4m3fnuz", 1, 3, 8, 0x7f, 0x80, false, false },
    { "f8_e5m2fnuz", 1, 2, 16, 0x7f, 0x80, false, false },
};

const tnf_narrow *tnf_narrow_of(const char *id)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].id, id) == 0)
            return &known[i];
    return NULL;
}

static uint32_t with_sign(const tnf_narrow *to, bool negative, uint32_t bits)
{
    if (!negative || (bits == 0 && !to->has_minus_zero))
        return bits;
    return bits | (uint32_t)1 << (8 * to->bytes - 1);
}

static uint32_t nan_bits(const tnf_narrow *to, bool negative, uint64_t mantissa)
{
    if (!to->has_infinity)
        return to->has_minus_zero ? with_sign(to, negative, to->nan) : to->nan;
    return with_sign(to, negative,
                     to->nan | (uint32_t)(mantissa >> (DOUBLE_MANTISSA - to->mantissa)));
}

/* m without its last `shift` bits, rounded. */
static uint64_t round_off(uint64_t m, unsigned shift)
{
    if (shift > DOUBLE_MANTISSA + 1)
        return 0; /* less than half of the smallest number */
    uint64_t kept = m >> shift, half = (uint64_t)1 << (shift - 1);
    uint64_t rest = m & ((half << 1) - 1);
    return kept + (rest > half || (rest == half && kept & 1));
}

uint32_t tnf_narrow_bits(const tnf_narrow *to, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bool negative = bits >> 63;
    uint64_t mantissa = bits & (((uint64_t)1 << DOUBLE_MANTISSA) - 1);
    int exponent = (int)(bits >> DOUBLE_MANTISSA & 0x7ff) - 1023;
    if (exponent == 1024 && mantissa)
        return nan_bits(to, negative, mantissa);
    if (exponent < -1000) /* zero, or far below the smallest number of every target type */
        return with_sign(to, negative, 0);
    mantissa |= (uint64_t)1 << DOUBLE_MANTISSA;
    int smallest = 1 - to->bias;
    unsigned shift = (unsigned)(DOUBLE_MANTISSA - to->mantissa);
    uint64_t code;
    if (exponent < smallest)
        code = round_off(mantissa, shift + (unsigned)(smallest - exponent));
    else
        code = ((uint64_t)(exponent - smallest) << to->mantissa) + round_off(mantissa, shift);
    if (code > to->largest)
        code = to->largest + to->has_infinity;
    return with_sign(to, negative, (uint32_t)code);
}
