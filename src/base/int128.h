/* SPDX-License-Identifier: MIT */
/* Integers of 128 bits as two halves: not every compiler has such a type, and those that have it
 * have it only for some machines. A signed one is its two's complement. */
#ifndef TNF_BASE_INT128_H
#define TNF_BASE_INT128_H

#include "base/bytes.h"

#include <stdbool.h>

typedef struct tnf_u128 {
    uint64_t low, high;
} tnf_u128;

#define TNF_U128_TEXT 40 /* bytes of the longest text, with its NUL */

static inline tnf_u128 tnf_le128(const void *at)
{
    const uint8_t *p = at;
    return (tnf_u128) { tnf_le64(p), tnf_le64(p + 8) };
}

static inline void tnf_put_le128(void *at, tnf_u128 v)
{
    uint8_t *p = at;
    tnf_put_le64(p, v.low);
    tnf_put_le64(p + 8, v.high);
}

static inline bool tnf_u128_less(tnf_u128 a, tnf_u128 b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

/* An integer of 64 bits, with its sign. */
static inline tnf_u128 tnf_u128_of_64(uint64_t low, bool is_signed)
{
    return (tnf_u128) { low, is_signed && low >> 63 ? UINT64_MAX : 0 };
}

/* Sums and differences are modulo 2^128. */
static inline tnf_u128 tnf_u128_sum(tnf_u128 a, tnf_u128 b)
{
    uint64_t low = a.low + b.low;
    return (tnf_u128) { low, a.high + b.high + (low < a.low) };
}

static inline tnf_u128 tnf_u128_minus(tnf_u128 a, tnf_u128 b)
{
    return (tnf_u128) { a.low - b.low, a.high - b.high - (a.low < b.low) };
}

/* The magnitude of a signed integer. */
static inline tnf_u128 tnf_i128_size(tnf_u128 v)
{
    return v.high >> 63 ? tnf_u128_minus((tnf_u128) { 0, 0 }, v) : v;
}

/* The upper 64 bits from the first that is set; the last bit is set, too, if any bit was cut off:
 * so rounding them once more gives what rounding all bits gives. v.high is not 0. */
static inline uint64_t tnf_u128_top(tnf_u128 v, unsigned *cut)
{
    unsigned n = (unsigned)__builtin_clzll(v.high);
    *cut = 64 - n;
    return v.high << n | (n ? v.low >> (64 - n) : 0) | ((v.low << n) != 0);
}

/* 2^n for 0 <= n <= 128. */
static inline double tnf_two_to(unsigned n)
{
    return tnf_f64_of((uint64_t)(1023 + n) << 52);
}

/* The nearest double; a tie goes to the even one. In IEEE mode (base/ieee.h). */
static inline double tnf_u128_to_f64(tnf_u128 v)
{
    unsigned cut;
    if (v.high == 0)
        return (double)v.low;
    uint64_t top = tnf_u128_top(v, &cut);
    return (double)top * tnf_two_to(cut);
}

static inline double tnf_i128_to_f64(tnf_u128 v)
{
    double size = tnf_u128_to_f64(tnf_i128_size(v));
    return v.high >> 63 ? -size : size;
}

/* A double without a fraction, of at least 0 and below 2^128. */
tnf_u128 tnf_u128_of_f64(double whole);
/* Writes the decimal digits and a NUL; returns the number of digits. */
size_t tnf_u128_text(char out[TNF_U128_TEXT], tnf_u128 v);

#endif
