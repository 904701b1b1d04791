/* SPDX-License-Identifier: MIT */
#include "base/int128.h"

#include <inttypes.h>
#include <stdio.h>

tnf_u128 tnf_u128_of_f64(double whole)
{
    uint64_t bits = tnf_f64_bits(whole),
             digits = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    int shift = (int)(bits >> 52 & 0x7ff) - 1023 - 52;
    if (shift <= 0)
        return (tnf_u128) { (uint64_t)whole, 0 };
    if (shift >= 64)
        return (tnf_u128) { 0, digits << (shift - 64) };
    return (tnf_u128) { digits << shift, digits >> (64 - shift) };
}

/* Divides by 10^9 in place, in steps of 32 bits; returns the rest. */
static uint32_t cut_digits(tnf_u128 *v)
{
    const uint32_t by = 1000000000;
    const uint32_t parts[4] = { (uint32_t)(v->high >> 32), (uint32_t)v->high,
                                (uint32_t)(v->low >> 32), (uint32_t)v->low };
    uint64_t quotient[4], rest = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t here = rest << 32 | parts[i];
        quotient[i] = here / by;
        rest = here % by;
    }
    *v = (tnf_u128) { quotient[2] << 32 | quotient[3], quotient[0] << 32 | quotient[1] };
    return (uint32_t)rest;
}

size_t tnf_u128_text(char out[TNF_U128_TEXT], tnf_u128 v)
{
    uint32_t nines[3]; /* each division removes 29 of the upper 64 bits */
    size_t n = 0;
    while (v.high)
        nines[n++] = cut_digits(&v);
    size_t length = (size_t)snprintf(out, TNF_U128_TEXT, "%" PRIu64, v.low);
    while (n > 0)
        length += (size_t)snprintf(out + length, TNF_U128_TEXT - length, "%09" PRIu32, nines[--n]);
    return length;
}
