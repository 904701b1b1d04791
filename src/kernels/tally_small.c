/* SPDX-License-Identifier: MIT */
#include "kernels/tally_small.h"

#include "base/bytes.h"
#include "base/half.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#define PIECE ((size_t)3 << 13) /* elements: whole bytes of any type; sums stay below 2^53 */

static const tnf_small_type types[] = {
    { "f8_e4m3fn", 8, tnf_f8_e4m3fn_to_f32, 0x1p-6 },
    { "f8_e5m2", 8, tnf_f8_e5m2_to_f32, 0x1p-14 },
    { "f8_e4m3fnuz", 8, tnf_f8_e4m3fnuz_to_f32, 0x1p-7 },
    { "f8_e5m2fnuz", 8, tnf_f8_e5m2fnuz_to_f32, 0x1p-15 },
    { "f6_e2m3", 6, tnf_f6_e2m3_to_f32, 1 },
    { "f6_e3m2", 6, tnf_f6_e3m2_to_f32, 0x1p-2 },
    { "f4_e2m1", 4, tnf_f4_e2m1_to_f32, 1 },
};

enum { TYPES = sizeof types / sizeof *types };

static tnf_small_tables tables[TYPES];
static pthread_once_t made = PTHREAD_ONCE_INIT;

const tnf_small_type *tnf_small_named(const char *id)
{
    for (size_t i = 0; i < TYPES; i++)
        if (strcmp(types[i].id, id) == 0)
            return &types[i];
    return NULL;
}

/* ----------------------------------------------------------------- tables */

/* Twice a number of eight bits: with an exponent of four bits and m of three, and of five bits and
 * two
 *
 *   s eee e mmm    (8 + mmm) << e  times  4^eee        s eee ee mm    (4 + mm) << ee  times 16^eee
 */
static void make_factors(tnf_small_tables *t, unsigned mantissa)
{
    unsigned in_group = mantissa == 3 ? 4 : 2, step = mantissa == 3 ? 2 : 4;
    t->exponent = (uint8_t)(0x7fu >> mantissa << mantissa);
    t->groups = 8 / in_group;
    for (unsigned i = 0; i < 16; i++) {
        unsigned part = (1u << mantissa) | (i & ((1u << mantissa) - 1)), eee = i & 7;
        int power = 1 << step * (eee % in_group);
        t->low[i] = (uint8_t)(part << (i >> mantissa));
        t->high[eee / in_group][i] = (int8_t)(i < 8 ? power : -power);
    }
}

static void make_digits(tnf_small_tables *t)
{
    unsigned n = 1u << t->bits;
    for (unsigned i = 0; i < 64; i++) {
        unsigned e = i % n, rank = 0;
        for (unsigned k = 0; k < n; k++)
            rank += t->value[k] < t->value[e];
        t->rank[i] = (uint8_t)rank;
        t->by_rank[rank] = (uint8_t)e;
        t->digits[1][i] = (int8_t)(t->units[e] / 16);
        t->digits[0][i] = (int8_t)(t->units[e] % 16);
    }
}

static void make_table(tnf_small_tables *t, const tnf_small_type *type)
{
    t->bits = type->bits;
    t->unit = (double)type->value(1);
    t->special = 128;
    for (unsigned e = 0; e < 1u << type->bits; e++) {
        double value = (double)type->value((uint8_t)e);
        t->value[e] = value;
        if (isfinite(value)) {
            t->units[e] = (int64_t)(value / t->unit);
            t->kind[e] = (uint8_t)(value == 0 ? 1 : fabs(value) < type->tiny ? 16 : 0);
        } else if (e < t->special) {
            t->special = (uint8_t)e;
        }
    }
    t->one_nan = type->bits == 8 && isnan(t->value[128]);
    if (type->bits == 8)
        make_factors(t, strstr(type->id, "e4m3") ? 3 : 2);
    else
        make_digits(t);
}

static void make_tables(void)
{
    for (size_t i = 0; i < TYPES; i++)
        make_table(&tables[i], &types[i]);
}

/* ----------------------------------------------------------------- counting */

/* Eight elements of six bits each to bytes. */
static uint64_t spread_six(const uint8_t *x)
{
    uint64_t v = (uint64_t)x[0] | (uint64_t)x[1] << 8 | (uint64_t)x[2] << 16 |
                 (uint64_t)x[3] << 24 | (uint64_t)x[4] << 32 | (uint64_t)x[5] << 40;
    v = (v & 0xffffff) | (v & 0xffffff000000) << 8;
    v = (v & 0x00000fff00000fff) | (v & 0x00fff00000fff000) << 4;
    return (v & 0x003f003f003f003f) | (v & 0x0fc00fc00fc00fc0) << 2;
}

static void count_sixes(uint64_t counts[256], const uint8_t *x, size_t n)
{
    uint8_t wide[2048], last[6] = { 0 };
    for (size_t at = 0; at < n; at += sizeof wide) {
        size_t here = n - at < sizeof wide ? n - at : sizeof wide;
        for (size_t i = 0; i < here; i += 8) {
            const uint8_t *p = x + (at + i) / 8 * 6;
            if (here - i < 8) {
                memcpy(last, p, ((here - i) * 6 + 7) / 8);
                p = last;
            }
            tnf_put_le64(wide + i, spread_six(p)); /* in order, since the last eight may be fewer */
        }
        tnf_count_bytes(counts, wide, here);
    }
}

static void count_fours(uint64_t counts[256], const uint8_t *x, size_t n)
{
    uint64_t pairs[256] = { 0 };
    tnf_count_bytes(pairs, x, n / 2);
    for (unsigned b = 0; b < 256; b++) {
        counts[b & 15] += pairs[b];
        counts[b >> 4] += pairs[b];
    }
    if (n % 2)
        counts[x[n / 2] & 15]++;
}

static void count_elements(uint64_t counts[256], unsigned bits, const uint8_t *x, size_t n)
{
    if (bits == 8)
        tnf_count_bytes(counts, x, n);
    else if (bits == 6)
        count_sixes(counts, x, n);
    else
        count_fours(counts, x, n);
}

/* ------------------------------------------------------------------ sums */

/* Adds the numbers that occur `counts` times to sums; returns how many are finite. */
static uint64_t add_counts(tnf_small_sums *sums, const tnf_small_tables *s,
                           const uint64_t counts[256])
{
    uint64_t finite = 0;
    for (unsigned e = 0; e < 1u << s->bits; e++) {
        if (counts[e] == 0)
            continue;
        if (!isfinite(s->value[e])) {
            sums->special = true;
            continue;
        }
        finite += counts[e];
        sums->zero += s->kind[e] == 1 ? counts[e] : 0;
        sums->subnormal += s->kind[e] == 16 ? counts[e] : 0;
        sums->units += s->units[e] * (int64_t)counts[e];
        sums->min = s->value[e] < sums->min ? s->value[e] : sums->min;
        sums->max = s->value[e] > sums->max ? s->value[e] : sums->max;
    }
    return finite;
}

static const tnf_small_sums no_sums = { .min = INFINITY, .max = -INFINITY };

static tnf_tally tally_of(const tnf_small_sums *sums, const tnf_small_tables *s, uint64_t finite)
{
    tnf_tally t = { .elements = finite, .zero = sums->zero, .subnormal = sums->subnormal };
    if (finite > 0) {
        t.min = sums->min + 0.0; /* -0 is 0 */
        t.max = sums->max + 0.0;
        t.mean = (double)sums->units * s->unit / (double)finite;
    }
    return t;
}

static void take_counts(tnf_tally *t, const tnf_small_tables *s, const uint64_t counts[256],
                        bool spread)
{
    tnf_small_sums sums = no_sums;
    uint64_t finite = add_counts(&sums, s, counts);
    tnf_tally here = tally_of(&sums, s, finite);
    for (unsigned e = 0; e < 1u << s->bits; e++) {
        double apart = s->value[e] - here.mean;
        here.nan += isnan(s->value[e]) ? counts[e] : 0;
        here.inf += isinf(s->value[e]) ? counts[e] : 0;
        if (spread && counts[e] > 0 && isfinite(apart))
            here.squares += apart * apart * (double)counts[e];
    }
    here.elements += here.nan + here.inf;
    tnf_tally_merge(t, &here);
}

/* False: some of them are not finite. */
static bool take_sums(tnf_tally *t, const tnf_small_tables *s, tnf_small_loop_fn *loop,
                      const uint8_t *x, size_t n)
{
    tnf_small_sums sums = no_sums;
    size_t done = loop(&sums, s, x, n);
    uint64_t counts[256] = { 0 };
    if (n > done) {
        count_elements(counts, s->bits, x + done / 8 * s->bits, n - done);
        (void)add_counts(&sums, s, counts);
    }
    if (sums.special)
        return false;
    tnf_tally here = tally_of(&sums, s, n);
    tnf_tally_merge(t, &here);
    return true;
}

void tnf_tally_small(tnf_tally *t, const tnf_small_type *type, const void *x, size_t n,
                     uint64_t counts[256])
{
    const tnf_small_tables *s = &tables[type - types];
    tnf_small_loop_fn *loop = counts ? NULL : tnf_small_loop_here();
    (void)pthread_once(&made, make_tables);
    for (size_t at = 0; at < n; at += PIECE) {
        const uint8_t *p = (const uint8_t *)x + at / 8 * type->bits;
        size_t here = n - at < PIECE ? n - at : PIECE;
        uint64_t found[256] = { 0 };
        if (loop && take_sums(t, s, loop, p, here))
            continue;
        count_elements(found, type->bits, p, here);
        take_counts(t, s, found, counts != NULL);
        for (unsigned e = 0; counts && e < 256; e++)
            counts[e] += found[e];
    }
}
