/* SPDX-License-Identifier: MIT */
#include "kernels/bins.h"

#include <math.h>
#include <string.h>

#define FINEST 30 /* the largest magnitude is at most 2^30 times the width of a bin */
#define MIN_K  (-1000)

static int64_t bin_of(double x, int k)
{
    return (int64_t)floor(ldexp(x, -k));
}

/* The exponent of the width that the smallest and the largest number need; at least k. */
static int width_for(double min, double max, int k)
{
    int e = 0;
    double magnitude = fmax(fabs(min), fabs(max));
    if (magnitude > 0)
        (void)frexp(magnitude, &e);
    k = magnitude > 0 && e - FINEST > k ? e - FINEST : k;
    while (bin_of(max, k) - bin_of(min, k) >= (int64_t)TNF_BINS)
        k++;
    return k;
}

static int64_t half_of(int64_t i)
{
    return i >= 0 ? i / 2 : -((1 - i) / 2);
}

static void coarsen_bins(tnf_bins *b)
{
    int64_t first = half_of(b->first), last = half_of(b->last);
    for (int64_t i = b->first; i <= b->last; i++) {
        uint64_t n = b->counts[i - b->first];
        b->counts[i - b->first] = 0;
        b->counts[half_of(i) - first] += n;
    }
    b->first = first;
    b->last = last;
    b->k++;
}

/* Adds empty bins before and after the existing ones. */
static void spread_out(tnf_bins *b)
{
    int64_t first = bin_of(b->min, b->k);
    size_t before = (size_t)(b->first - first), n = (size_t)(b->last - b->first + 1);
    if (before > 0) {
        memmove(b->counts + before, b->counts, n * sizeof *b->counts);
        memset(b->counts, 0, (before < n ? before : n) * sizeof *b->counts);
    }
    b->first = first;
    b->last = bin_of(b->max, b->k);
}

void tnf_bins_cover(tnf_bins *b, double min, double max)
{
    if (b->used && min >= b->min && max <= b->max)
        return;
    if (!b->used) {
        b->used = true;
        b->min = min;
        b->max = max;
        b->k = width_for(min, max, MIN_K);
        b->first = bin_of(min, b->k);
        b->last = bin_of(max, b->k);
        return;
    }
    b->min = fmin(b->min, min);
    b->max = fmax(b->max, max);
    for (int k = width_for(b->min, b->max, b->k); b->k < k;)
        coarsen_bins(b);
    spread_out(b);
}

#define PIECE 256u

/* First computes the positions, in a loop that is vectorised; then counts. */
static void add_doubles(tnf_bins *b, const tnf_tally_loops *loops, const uint8_t *x, size_t n,
                        bool floats)
{
    double scale = ldexp(1, -b->k);
    int64_t where[PIECE];
    for (size_t at = 0; at < n; at += PIECE) {
        size_t here = n - at < PIECE ? n - at : PIECE;
        if (floats)
            loops->places_f32(where, x + at * sizeof(float), here, scale, b->first);
        else
            loops->places_f64(where, x + at * sizeof(double), here, scale, b->first);
        for (size_t i = 0; i < here; i++)
            b->counts[where[i]]++;
    }
}

void tnf_bins_add(tnf_bins *b, enum tnf_float kind, const void *x, size_t n)
{
    const tnf_tally_loops *loops = tnf_tally_loops_at(0);
    float wide[PIECE];
    if (kind == TNF_TALLY_F64 || kind == TNF_TALLY_F32) {
        add_doubles(b, loops, x, n, kind == TNF_TALLY_F32);
        return;
    }
    for (size_t at = 0; at < n; at += PIECE) {
        size_t here = n - at < PIECE ? n - at : PIECE;
        const uint8_t *halves = (const uint8_t *)x + 2 * at;
        if (kind == TNF_TALLY_F16)
            loops->widen_f16(wide, halves, here);
        else
            loops->widen_bf16(wide, halves, here);
        add_doubles(b, loops, (const uint8_t *)wide, here, true);
    }
}

void tnf_bins_repeat(tnf_bins *b, double x, uint64_t times)
{
    if (times == 0 || !isfinite(x))
        return;
    tnf_bins_cover(b, x, x);
    b->counts[bin_of(x, b->k) - b->first] += times;
}

void tnf_bins_merge(tnf_bins *b, const tnf_bins *more)
{
    if (!more->used)
        return;
    if (!b->used) {
        *b = *more;
        return;
    }
    while (b->k < more->k)
        coarsen_bins(b);
    tnf_bins_cover(b, more->min, more->max);
    for (int64_t i = more->first; i <= more->last; i++) {
        int64_t place = i;
        for (int k = more->k; k < b->k; k++)
            place = half_of(place);
        b->counts[place - b->first] += more->counts[i - more->first];
    }
}

void tnf_bins_show(const tnf_bins *b, double min, double max, uint64_t *out, size_t n)
{
    memset(out, 0, n * sizeof *out);
    if (!b->used || n == 0)
        return;
    for (int64_t i = b->first; i <= b->last; i++) {
        double middle = ldexp((double)i + 0.5, b->k), at = 0;
        if (max > min)
            at = (middle / 2 - min / 2) / (max / 2 - min / 2) * (double)n;
        at = at > 0 ? at : 0;
        size_t place = at < (double)n ? (size_t)at : n - 1;
        out[place] += b->counts[i - b->first];
    }
}
