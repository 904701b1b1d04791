/* SPDX-License-Identifier: MIT */
/* Chooses the tally for a type. For a histogram or the deviation, types of one byte are counted by
 * byte, and integers are converted to doubles. */
#include "core/look/values.h"

#include "base/bytes.h"
#include "kernels/tally_small.h"
#include "model/dtype.h"

#include <math.h>
#include <string.h>

#define PIECE (TNF_TALLY_SPAN / sizeof(double))

bool tnf_values_known(const tnf_type *type)
{
    return type->bits > 0 && tnf_type_decode(NULL, type, "", 0, 0);
}

/* ----------------------------------------------------------------- floats */

/* Only a histogram needs the numbers one by one. */
static void take_floats(tnf_values *v, enum tnf_float kind, const uint8_t *p, size_t n)
{
    size_t width = kind == TNF_TALLY_F64 ? 8 : kind == TNF_TALLY_F32 ? 4 : 2;
    size_t span = TNF_TALLY_SPAN / width;
    if (!v->bins) {
        tnf_tally_floats(&v->tally, kind, p, n, v->spread);
        return;
    }
    for (size_t at = 0; at < n; at += span, p += TNF_TALLY_SPAN) {
        size_t here = n - at < span ? n - at : span;
        tnf_tally found = { 0 };
        tnf_tally_floats(&found, kind, p, here, v->spread);
        if (found.elements > found.nan + found.inf) {
            tnf_bins_cover(v->bins, found.min, found.max);
            tnf_bins_add(v->bins, kind, p, here);
        }
        tnf_tally_merge(&v->tally, &found);
    }
}

/* The next span of n numbers from a file, in the machine's byte order: in place, or in `room`. */
static const uint8_t *next_span(const uint8_t *p, size_t n, size_t width, size_t *here,
                                uint8_t room[TNF_TALLY_SPAN])
{
    *here = n;
    if (!TNF_BIG_ENDIAN_HOST || width < 2)
        return p;
    *here = n < TNF_TALLY_SPAN / width ? n : TNF_TALLY_SPAN / width;
    memcpy(room, p, *here * width);
    tnf_swap_le(room, *here, width);
    return room;
}

static void take_stored(tnf_values *v, enum tnf_float kind, const uint8_t *p, size_t n)
{
    size_t width = kind == TNF_TALLY_F64 ? 8 : kind == TNF_TALLY_F32 ? 4 : 2, here;
    uint8_t room[TNF_TALLY_SPAN];
    for (size_t at = 0; at < n; at += here) {
        const uint8_t *span = next_span(p + at * width, n - at, width, &here, room);
        take_floats(v, kind, span, here);
    }
}

/* ------------------------------------------------------ integers and bytes */

static void tally_ints(tnf_tally *t, const tnf_type *type, const uint8_t *p, size_t n)
{
    size_t width = type->bits / 8, here;
    uint8_t room[TNF_TALLY_SPAN];
    for (size_t at = 0; at < n; at += here) {
        const uint8_t *span = next_span(p + at * width, n - at, width, &here, room);
        tnf_tally_ints(t, span, here, (unsigned)width, type->number == TNF_NUMBER_INT);
    }
}

/* Tallies numbers, without the squares. */
static void tally_numbers(tnf_tally *t, const tnf_type *type, const uint8_t *p, size_t n)
{
    if (type->bits == 1)
        tnf_tally_bits(t, p, n);
    else if (type->number == TNF_NUMBER_BOOL)
        tnf_tally_bools(t, p, n);
    else if (type->number == TNF_NUMBER_FLOAT)
        tnf_tally_powers(t, p, n);
    else
        tally_ints(t, type, p, n);
}

/* Counts bytes: the meaning of a byte does not depend on its position. */
static void take_bytes(tnf_values *v, const tnf_type *type, const uint8_t *p, size_t n)
{
    uint64_t counts[256] = { 0 }, times[256 * 8];
    size_t per = 8 / type->bits, whole = n / per;
    double x[256 * 8];
    tnf_count_bytes(counts, p, whole);
    for (unsigned b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        (void)tnf_type_decode(x + b * per, type, &byte, 0, per);
        for (size_t i = 0; i < per; i++)
            times[b * per + i] = counts[b];
    }
    tnf_tally_weighted(&v->tally, x, times, 256 * per, 0);
    for (size_t i = 0; v->bins && i < 256 * per; i++)
        tnf_bins_repeat(v->bins, x[i], times[i]);
    if (n == whole * per)
        return;
    (void)tnf_type_decode(x, type, p + whole, 0, n - whole * per);
    take_floats(v, TNF_TALLY_F64, (const uint8_t *)x, n - whole * per);
}

/* Converts integers to doubles; tallies them again for their exact range, which doubles might not
 * hold. */
static void take_doubles(tnf_values *v, const tnf_type *type, const uint8_t *p, size_t n)
{
    double x[PIECE];
    const tnf_tally before = v->tally;
    bool first = before.elements == 0;
    tnf_tally exact = { 0 };
    tally_numbers(&exact, type, p, n);
    for (size_t at = 0; at < n; at += PIECE) {
        size_t here = n - at < PIECE ? n - at : PIECE;
        (void)tnf_type_decode(x, type, p, at, here);
        take_floats(v, TNF_TALLY_F64, (const uint8_t *)x, here);
    }
    v->tally.low = first ? exact.low : before.low;
    v->tally.high = first ? exact.high : before.high;
    tnf_tally_widen(&v->tally, &exact);
}

static void take_small(tnf_values *v, const tnf_small_type *type, const uint8_t *p, size_t n)
{
    uint64_t counts[256] = { 0 };
    bool each = v->bins || v->spread;
    tnf_tally_small(&v->tally, type, p, n, each ? counts : NULL);
    for (unsigned e = 0; v->bins && e < 1u << type->bits; e++)
        tnf_bins_repeat(v->bins, (double)type->value((uint8_t)e), counts[e]);
}

void tnf_values_take(tnf_values *v, const tnf_type *type, const void *bytes, size_t n)
{
    static const enum tnf_float kinds[TNF_DTYPE_COUNT] = { [TNF_F64] = TNF_TALLY_F64,
                                                           [TNF_F32] = TNF_TALLY_F32,
                                                           [TNF_F16] = TNF_TALLY_F16,
                                                           [TNF_BF16] = TNF_TALLY_BF16 };
    if (!tnf_values_known(type) || n == 0)
        return;
    const tnf_small_type *small = tnf_small_named(type->id);
    if (type->storage == TNF_F64 || kinds[type->storage] != TNF_TALLY_F64)
        take_stored(v, kinds[type->storage], bytes, type->number == TNF_NUMBER_COMPLEX ? 2 * n : n);
    else if (small)
        take_small(v, small, bytes, n);
    else if (type->bits == 4 || type->bits == 2) /* integers */
        take_bytes(v, type, bytes, n);
    else if (!v->bins && !v->spread)
        tally_numbers(&v->tally, type, bytes, n);
    else if (type->bits <= 8)
        take_bytes(v, type, bytes, n);
    else
        take_doubles(v, type, bytes, n);
}

void tnf_values_merge(tnf_values *v, const tnf_values *more)
{
    tnf_tally_merge(&v->tally, &more->tally);
    if (v->bins && more->bins)
        tnf_bins_merge(v->bins, more->bins);
}

/* The exact integer. A double holds every integer of fewer than 64 bits exactly. */
static tnf_u128 integer_of(const tnf_type *type, double x, tnf_u128 biased)
{
    const uint64_t sign = type->number == TNF_NUMBER_INT ? (uint64_t)1 << 63 : 0;
    if (type->number == TNF_NUMBER_FLOAT || type->number == TNF_NUMBER_COMPLEX)
        return (tnf_u128) { 0, 0 };
    if (type->bits == 128)
        return (tnf_u128) { biased.low, biased.high ^ sign };
    uint64_t low = type->bits < 64 ? (uint64_t)(int64_t)x : biased.low ^ sign;
    return (tnf_u128) { low, low & sign ? UINT64_MAX : 0 };
}

tnf_value_counts tnf_values_counts(const tnf_values *v, const tnf_type *type)
{
    const tnf_tally *t = &v->tally;
    uint64_t n = t->elements - t->nan - t->inf;
    tnf_u128 least = { 0, 0 }, greatest = { 0, 0 };
    if (n > 0) {
        least = integer_of(type, t->min, t->low);
        greatest = integer_of(type, t->max, t->high);
    }
    return (tnf_value_counts) {
        .elements = t->elements,
        .nan = t->nan,
        .inf = t->inf,
        .zero = t->zero,
        .min = t->min,
        .max = t->max,
        .subnormal = t->subnormal,
        .mean = t->mean,
        .deviation = v->spread && n > 0 ? sqrt(t->squares / (double)n) : 0,
        .min_integer = least.low,
        .max_integer = greatest.low,
        .min_upper = least.high,
        .max_upper = greatest.high,
    };
}
