/* SPDX-License-Identifier: MIT */
/* An f32 by the fewest digits: Schubfach (Raffaello Giulietti, "The Schubfach way to render
 * doubles", 2020), with the numbers that 32 bits need.
 *
 * A float stands for all reals that round to it. For a k that makes the multiples of 10^k a little
 * closer than that interval is wide, the interval contains few of them: at most two candidates need
 * to be examined, and a tenth as many at 10^(k+1).
 */
#include "base/decimal.h"

#include "base/pow10.h"

#include <stdbool.h>
#include <string.h>

#define HIDDEN    0x800000u /* the bit before the stored ones */
#define BIAS      150       /* value = significand * 2^(exponent - BIAS) */
#define FIRST_INF 0x7f800000u
#define USUAL_NAN 0x7fc00000u

struct decimal {
    uint32_t digits;
    int exponent;
};

/* floor(x / 2^n), also for negative x. */
static int floor_shift(int x, int n)
{
    return x >= 0 ? x >> n : -((-x + (1 << n) - 1) >> n);
}

static int floor_log2_pow10(int e)
{
    return floor_shift(e * 1741647, 19);
}

/* g * x / 2^64; the last bit is also set if there is a remainder. */
static uint32_t round_to_odd(uint64_t g, uint32_t x)
{
    uint64_t low = (g & UINT32_MAX) * x;
    uint64_t high = (g >> 32) * x + (low >> 32);
    return (uint32_t)(high >> 32) | ((uint32_t)high > 1);
}

static struct decimal shortest_decimal(uint32_t significand, int exponent)
{
    bool closer = significand == 0 && exponent > 1; /* the lower neighbour is half as far away */
    uint32_t c = exponent ? significand | HIDDEN : significand;
    int q = (exponent ? exponent : 1) - BIAS;
    if (exponent && q <= 0 && q > -24 && (c & ((1u << -q) - 1)) == 0)
        return (struct decimal) { c >> -q, 0 };
    uint32_t odd = c & 1; /* the ends of the interval round to an even significand */
    int k = floor_shift(q * 1262611 - (closer ? 524031 : 0), 22);
    int h = q + floor_log2_pow10(-k) + 1;
    uint64_t g = tnf_pow10[-k - TNF_POW10_FIRST];
    uint32_t lower = round_to_odd(g, (4 * c - 2 + closer) << h) + odd;
    uint32_t value = round_to_odd(g, (4 * c) << h);
    uint32_t upper = round_to_odd(g, (4 * c + 2) << h) - odd;
    uint32_t s = value / 4;
    if (s >= 10) {
        uint32_t tens = s / 10;
        bool below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
        if (below != above)
            return (struct decimal) { tens + above, k + 1 };
    }
    bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    if (below != above)
        return (struct decimal) { s + above, k };
    uint32_t middle = 4 * s + 2;
    return (struct decimal) { s + (value > middle || (value == middle && (s & 1))), k };
}

/* Writes the digits of x, at most ten, at the end of `out`. Returns the first digit. */
static const char *put_digits(char out[10], uint32_t x)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313"
                                "23334353637383940414243444546474849505152535455565758596061626364"
                                "65666768697071727374757677787980818283848586878889909192939495969"
                                "79899";
    char *p = out + 10;
    for (; x >= 100; x /= 100)
        memcpy(p -= 2, &pairs[x % 100 * 2], 2);
    if (x >= 10)
        return memcpy(p - 2, &pairs[x * 2], 2);
    *--p = (char)('0' + x);
    return p;
}

static char *put_number(char *p, struct decimal d)
{
    char text[10];
    for (; d.exponent < 0 && d.digits % 10 == 0; d.exponent++)
        d.digits /= 10;
    const char *digits = put_digits(text, d.digits);
    size_t n = (size_t)(text + 10 - digits), after = d.exponent < 0 ? (size_t)-d.exponent : 0;
    if (after >= n) { /* 0.00123 */
        memset(p, '0', after - n + 2);
        p[1] = '.';
        p += after - n + 2;
        memcpy(p, digits, n);
        return p + n;
    }
    memcpy(p, digits, n - after);
    p += n - after;
    if (after) {
        *p++ = '.';
        memcpy(p, digits + n - after, after);
        return p + after;
    }
    memset(p, '0', (size_t)d.exponent);
    return p + d.exponent;
}

static char *put_payload(char *p, uint32_t fraction)
{
    memcpy(p, "(0x", 3);
    p += 3;
    for (int shift = 20; shift >= 0; shift -= 4)
        *p++ = "0123456789abcdef"[fraction >> shift & 15];
    *p++ = ')';
    return p;
}

/* Writes the sign, and numbers that have no digits. */
static char *put_special(char *p, uint32_t *bits, const char *nan)
{
    if (*bits >> 31)
        *p++ = '-';
    *bits &= 0x7fffffff;
    if (*bits >= FIRST_INF) {
        memcpy(p, *bits > FIRST_INF ? nan : "inf", 3);
        p += 3;
        if (*bits > FIRST_INF && *bits != USUAL_NAN)
            p = put_payload(p, *bits & (HIDDEN - 1));
    }
    return p;
}

static struct decimal decimal_of(uint32_t bits)
{
    return bits ? shortest_decimal(bits & (HIDDEN - 1), (int)(bits >> 23))
                : (struct decimal) { 0, 0 };
}

size_t tnf_f32_text(char out[TNF_F32_TEXT], float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    char *p = put_special(out, &bits, "NaN");
    if (bits < FIRST_INF)
        p = put_number(p, decimal_of(bits));
    return (size_t)(p - out);
}

/* 1.25e-07 */
static char *put_scientific(char *p, struct decimal d)
{
    char text[10];
    for (; d.digits % 10 == 0; d.exponent++)
        d.digits /= 10;
    const char *digits = put_digits(text, d.digits);
    size_t n = (size_t)(text + 10 - digits);
    unsigned power = (unsigned)(d.exponent + (int)n - 1);
    *p++ = digits[0];
    if (n > 1) {
        *p++ = '.';
        memcpy(p, digits + 1, n - 1);
        p += n - 1;
    }
    *p++ = 'e';
    *p++ = (int)power < 0 ? '-' : '+';
    power = (int)power < 0 ? 0u - power : power;
    *p++ = (char)('0' + power / 10);
    *p++ = (char)('0' + power % 10);
    return p;
}

/* The power of ten of the first digit. */
static int power_of(struct decimal d)
{
    char text[10];
    return d.exponent + (int)(text + 10 - put_digits(text, d.digits)) - 1;
}

size_t tnf_f32_c(char out[TNF_F32_TEXT], float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    char *p = put_special(out, &bits, "nan");
    if (bits >= FIRST_INF)
        return (size_t)(p - out);
    struct decimal d = decimal_of(bits);
    bool plain = bits == 0 || (power_of(d) >= -4 && power_of(d) < 5);
    return (size_t)((plain ? put_number(p, d) : put_scientific(p, d)) - out);
}

size_t tnf_f32_repr(char out[TNF_F32_TEXT], float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    char *p = put_special(out, &bits, "nan"), *from = p;
    if (bits >= FIRST_INF)
        return (size_t)(p - out);
    double size = value < 0 ? -(double)value : (double)value;
    if (size != 0 && (size < 1e-4 || size >= 1e6)) /* numpy's bounds */
        return (size_t)(put_scientific(p, decimal_of(bits)) - out);
    p = put_number(p, decimal_of(bits));
    if (!memchr(from, '.', (size_t)(p - from))) {
        memcpy(p, ".0", 2);
        p += 2;
    }
    return (size_t)(p - out);
}
