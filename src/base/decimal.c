/* SPDX-License-Identifier: MIT */
/* Decimal to the nearest f32.
 *
 *   digits ──> w * 10^e ──> a double within 2 units of its last place ──> f32
 *                                      └─ too near the middle between two f32: exact arithmetic
 *
 * A double has 29 bits more than an f32, so the double decides all but one number in some ten
 * million; rounding twice is harmless if the first result is not near a middle. The other numbers,
 * including subnormal ones, are compared with the middle as integers of up to 1024 bits. At most
 * 130 digits can matter, since the middle between two f32 has no more; the digits after them only
 * count as "more than nothing".
 */
#include "base/decimal.h"

#include "base/bytes.h"

#include <float.h>
#include <stdbool.h>

#define MAX_DIGITS 130
#define MAX_POWER  70
#define FIRST_INF  0x7f800000u

static const double powers[MAX_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14,
    1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29,
    1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44,
    1e45, 1e46, 1e47, 1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54, 1e55, 1e56, 1e57, 1e58, 1e59,
    1e60, 1e61, 1e62, 1e63, 1e64, 1e65, 1e66, 1e67, 1e68, 1e69, 1e70,
};

/* ------------------------------------------------------------------ exactly */

#define LIMBS 34 /* enough for 130 digits, 5^176 and the shifts between them, with some reserve */

struct big {
    uint32_t limb[LIMBS];
    int n;
};

static void big_mul_add(struct big *b, uint32_t factor, uint32_t more)
{
    uint64_t carry = more;
    for (int i = 0; i < b->n; i++) {
        carry += (uint64_t)b->limb[i] * factor;
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        b->limb[b->n++] = (uint32_t)carry;
}

static void big_mul_pow5(struct big *b, int e)
{
    for (; e >= 13; e -= 13)
        big_mul_add(b, 1220703125, 0); /* 5^13 */
    for (; e > 0; e--)
        big_mul_add(b, 5, 0);
}

static void big_shift(struct big *b, int bits)
{
    int whole = bits / 32;
    big_mul_add(b, 1u << bits % 32, 0);
    if (whole == 0 || b->n == 0)
        return;
    for (int i = b->n - 1; i >= 0; i--)
        b->limb[i + whole] = b->limb[i];
    memset(b->limb, 0, (size_t)whole * sizeof *b->limb);
    b->n += whole;
}

static int big_compare(const struct big *a, const struct big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* digits * 10^exponent, as it is written. */
struct decimal {
    uint8_t digits[MAX_DIGITS + 1];
    int n;
    int64_t exponent;
};

/* Compares it with the middle between the float of these bits and the next float. */
static int against_middle(const struct decimal *d, uint32_t bits)
{
    uint32_t exponent = bits >> 23, m = bits & 0x7fffff;
    struct big value = { .n = 0 }, middle = { .n = 0 };
    if (exponent)
        m |= 0x800000;
    int q = (int)(exponent ? exponent : 1) - 150 - 1;
    for (int i = 0; i < d->n; i++)
        big_mul_add(&value, 10, d->digits[i]);
    big_mul_add(&middle, 1, 2 * m + 1);
    int power = (int)d->exponent, shift = power - q; /* it is small: see exact_float() */
    big_mul_pow5(power > 0 ? &value : &middle, power > 0 ? power : -power);
    big_shift(shift > 0 ? &value : &middle, shift > 0 ? shift : -shift);
    return big_compare(&value, &middle);
}

/* Steps from a guess to the right float; a few steps at most. */
static uint32_t nearest_float(const struct decimal *d, uint32_t bits)
{
    while (bits < FIRST_INF) {
        int c = against_middle(d, bits);
        if (c < 0 || (c == 0 && (bits & 1) == 0))
            break;
        bits++;
    }
    while (bits > 0) {
        int c = against_middle(d, bits - 1);
        if (c > 0 || (c == 0 && (bits & 1) == 0))
            break;
        bits--;
    }
    return bits;
}

static void gather_digits(struct decimal *d, const char *p, const char *end)
{
    bool point = false, more = false;
    for (; p < end && ((*p >= '0' && *p <= '9') || *p == '.'); p++) {
        if (*p == '.') {
            point = true;
        } else if (d->n < MAX_DIGITS) {
            d->digits[d->n] = (uint8_t)(*p - '0');
            d->n += d->n > 0 || *p != '0';
            d->exponent -= point;
        } else {
            more = more || *p != '0';
            d->exponent += !point;
        }
    }
    if (more) {
        d->digits[d->n++] = 1;
        d->exponent--;
    }
}

/* The float of the digits from p on, times 10^exponent. */
static uint32_t exact_float(const char *p, const char *end, int exponent)
{
    struct decimal d = { .exponent = exponent };
    uint64_t w = 0;
    gather_digits(&d, p, end);
    int used = d.n < 19 ? d.n : 19;
    for (int i = 0; i < used; i++)
        w = w * 10 + d.digits[i];
    if (d.n == 0 || d.exponent + d.n < -46)
        return 0;
    if (d.exponent + d.n > 40)
        return FIRST_INF;
    int e = (int)d.exponent + d.n - used; /* it is near w * 10^e */
    double near = e < 0 ? (double)w / powers[-e] : (double)w * powers[e];
    float guess = near > (double)FLT_MAX ? FLT_MAX : (float)near;
    uint32_t bits;
    memcpy(&bits, &guess, sizeof bits);
    return nearest_float(&d, bits);
}

/* ------------------------------------------------------------------ quickly */

/* The number of leading digits among the eight characters in x, lowest first, and their value. */
static unsigned digits_of(uint64_t x, uint32_t *value)
{
    uint64_t t = x ^ 0x3030303030303030u;
    uint64_t others = ((t + 0x7676767676767676u) | t) & 0x8080808080808080u;
    unsigned n = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
    if (n == 0) {
        *value = 0;
        return 0;
    }
    t <<= (8 - n) * 8; /* zeros in front */
    t = t * 10 + (t >> 8);
    *value = (uint32_t)(((t & 0x000000ff000000ffu) * 0x000f424000000064u +
                         (t >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u) >>
                        32);
    return n;
}

static const uint32_t small_powers[] = { 1,      10,      100,      1000,     10000,
                                         100000, 1000000, 10000000, 100000000 };

/* Reads digits into *w, which wraps if there are more than 19. Returns the number of digits. */
static size_t read_digits(const char **at, const char *end, uint64_t *w)
{
    const char *p = *at;
    uint32_t value;
    while (end - p >= 8) {
        unsigned n = digits_of(tnf_le64(p), &value);
        *w = *w * small_powers[n] + value;
        p += n;
        if (n < 8)
            goto done;
    }
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        *w = *w * 10 + (uint64_t)(*p - '0');
done:;
    size_t count = (size_t)(p - *at);
    *at = p;
    return count;
}

/* Reads "e-5" if it is there, and moves *at to its end. */
static int read_exponent(const char **at, const char *end)
{
    const char *p = *at;
    if (p == end || (*p | 0x20) != 'e')
        return 0;
    p++;
    bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    if (p == end || *p < '0' || *p > '9')
        return 0;
    int e = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        e = e < 100000000 ? e * 10 + (*p - '0') : e;
    *at = p;
    return negative ? -e : e;
}

/* Reads "(0x400001)" after "nan": the fraction bits, which must not all be zero. */
static const char *read_payload(const char *p, const char *end, uint32_t *bits)
{
    uint32_t payload = 0;
    const char *from = p;
    if (end - p < 5 || p[0] != '(' || p[1] != '0' || (p[2] | 0x20) != 'x')
        return from;
    for (p += 3; p < end && payload <= 0x7ffff; p++) {
        int c = *p | 0x20;
        if (c >= '0' && c <= '9')
            payload = payload << 4 | (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            payload = payload << 4 | (uint32_t)(c - 'a' + 10);
        else
            break;
    }
    if (p == end || *p != ')' || payload == 0 || payload > 0x7fffff)
        return from;
    *bits = FIRST_INF | payload;
    return p + 1;
}

static const char *read_word(const char *p, const char *end, float *out, uint32_t sign)
{
    static const struct {
        const char *text;
        size_t n;
        uint32_t bits;
    } words[] = { { "infinity", 8, FIRST_INF }, { "inf", 3, FIRST_INF }, { "nan", 3, 0x7fc00000 } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t k = 0;
        while (k < words[i].n && (size_t)(end - p) > k && (p[k] | 0x20) == words[i].text[k])
            k++;
        if (k == words[i].n) {
            uint32_t bits = words[i].bits;
            p = bits > FIRST_INF ? read_payload(p + k, end, &bits) : p + k;
            bits |= sign;
            memcpy(out, &bits, sizeof bits);
            return p;
        }
    }
    return NULL;
}

const char *tnf_f32_scan(const char *p, const char *end, float *out)
{
    uint32_t sign = p < end && *p == '-' ? 0x80000000u : 0, bits;
    p += p < end && (*p == '-' || *p == '+');
    const char *from = p;
    uint64_t w = 0;
    size_t count = read_digits(&p, end, &w), after = 0;
    if (p < end && *p == '.') {
        p++;
        after = read_digits(&p, end, &w);
        count += after;
    }
    if (count == 0)
        return read_word(from, end, out, sign);
    const char *digits_end = p;
    int e = read_exponent(&p, end);
    bool quick = count <= 19 && e > -1000 && e < 1000;
    int power = quick ? e - (int)after : 0;
    if (quick && w == 0) {
        memcpy(out, &sign, sizeof sign);
        return p;
    }
    if (quick && power >= -MAX_POWER && power <= MAX_POWER) {
        double near = power < 0 ? (double)w / powers[-power] : (double)w * powers[power];
        uint64_t wide;
        memcpy(&wide, &near, sizeof wide);
        /* 0x10000000 in the bits that an f32 does not have is a middle. */
        if (near >= (double)FLT_MIN && near <= (double)FLT_MAX &&
            (wide & 0x1fffffff) - 0x0ffffff0 > 0x20) {
            float f = (float)near;
            *out = sign ? -f : f;
            return p;
        }
    }
    bits = exact_float(from, digits_end, e) | sign;
    memcpy(out, &bits, sizeof bits);
    return p;
}
