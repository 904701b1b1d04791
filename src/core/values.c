/* SPDX-License-Identifier: MIT */
/* Three ways, by the width of the type: floats and doubles as they are or widened, in pieces that
 * stay in the first cache; bytes by how often each comes; all others through doubles. */
#include "core/values.h"

#include "model/dtype.h"

#include <math.h>
#include <string.h>

#define PIECE 2048u

/* The smallest normal number of a type: what is below is subnormal. 0: it has no such thing. */
static const struct {
    const char *id;
    double tiny;
} tinies[] = {
    { "f64", 0x1p-1022 },    { "c128", 0x1p-1022 },      { "f32", 0x1p-126 },
    { "c64", 0x1p-126 },     { "bf16", 0x1p-126 },       { "f16", 0x1p-14 },
    { "f8_e4m3fn", 0x1p-6 }, { "f8_e5m2", 0x1p-14 },     { "f8_e4m3fnuz", 0x1p-7 },
    { "f6_e2m3", 1 },        { "f8_e5m2fnuz", 0x1p-15 }, { "f6_e3m2", 0x1p-2 },
    { "f4_e2m1", 1 },
};

static double tiny_of(const tnf_type *type)
{
    for (size_t i = 0; i < sizeof tinies / sizeof *tinies; i++)
        if (strcmp(tinies[i].id, type->id) == 0)
            return tinies[i].tiny;
    return 0;
}

bool tnf_values_known(const tnf_type *type)
{
    return type->bits > 0 && tnf_type_decode(type, "", 0, 0, NULL);
}

static void take_f32(tnf_values *v, const float *x, size_t n, float tiny)
{
    tnf_tally here = { 0 };
    tnf_tally_f32(&here, x, n, tiny, v->spread);
    if (v->bins && here.elements > here.nan + here.inf) {
        tnf_bins_cover(v->bins, here.min, here.max);
        tnf_bins_add_f32(v->bins, x, n);
    }
    tnf_tally_merge(&v->tally, &here);
}

static void take_f64(tnf_values *v, const double *x, size_t n, double tiny)
{
    tnf_tally here = { 0 };
    tnf_tally_f64(&here, x, n, tiny, v->spread);
    if (v->bins && here.elements > here.nan + here.inf) {
        tnf_bins_cover(v->bins, here.min, here.max);
        tnf_bins_add_f64(v->bins, x, n);
    }
    tnf_tally_merge(&v->tally, &here);
}

enum { COPY, WIDEN_F16, WIDEN_BF16 };

/* Floats, or what becomes floats. */
static void take_floats(tnf_values *v, int how, const uint8_t *p, size_t n, float tiny)
{
    float x[PIECE];
    if (how == COPY && !v->bins) { /* nobody else wants them aligned */
        tnf_tally_f32(&v->tally, p, n, tiny, v->spread);
        return;
    }
    if (how == WIDEN_BF16 && !v->bins && !v->spread) {
        tnf_tally_bf16(&v->tally, p, n);
        return;
    }
    for (size_t at = 0; at < n; at += PIECE) {
        size_t here = n - at < PIECE ? n - at : PIECE;
        if (how == COPY)
            memcpy(x, p + at * sizeof *x, here * sizeof *x);
        else if (how == WIDEN_F16)
            tnf_widen_f16(x, p + at * 2, here);
        else
            tnf_widen_bf16(x, p + at * 2, here);
        take_f32(v, x, here, tiny);
    }
}

static void take_doubles(tnf_values *v, const tnf_type *type, const uint8_t *p, size_t n)
{
    double x[PIECE], tiny = tiny_of(type);
    size_t per = type->number == TNF_NUMBER_COMPLEX ? 2 : 1;
    if (type->storage == TNF_F64 && !v->bins) {
        tnf_tally_f64(&v->tally, p, n * per, tiny, v->spread);
        return;
    }
    for (size_t at = 0; at < n; at += PIECE / 2) {
        size_t here = n - at < PIECE / 2 ? n - at : PIECE / 2;
        (void)tnf_type_decode(type, p, at, here, x);
        take_f64(v, x, here * per, tiny);
    }
}

/* Types of eight bits or a part of that: what each byte holds is the same wherever it stands. */
static void take_bytes(tnf_values *v, const tnf_type *type, const uint8_t *p, size_t n)
{
    uint64_t counts[256] = { 0 }, times[256 * 8];
    size_t per = 8 / type->bits, whole = n / per;
    double x[256 * 8];
    tnf_count_bytes(counts, p, whole);
    for (unsigned b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        (void)tnf_type_decode(type, &byte, 0, per, x + b * per);
        for (size_t i = 0; i < per; i++)
            times[b * per + i] = counts[b];
    }
    tnf_tally_weighted(&v->tally, x, times, 256 * per, tiny_of(type));
    for (size_t i = 0; v->bins && i < 256 * per; i++)
        tnf_bins_repeat(v->bins, x[i], times[i]);
    if (n > whole * per)
        take_doubles(v, type, p + whole, n - whole * per);
}

void tnf_values_take(tnf_values *v, const tnf_type *type, const void *bytes, size_t n)
{
    if (!tnf_values_known(type) || n == 0)
        return;
    bool is_complex = type->number == TNF_NUMBER_COMPLEX;
    if (type->storage == TNF_F32)
        take_floats(v, COPY, bytes, is_complex ? 2 * n : n, 0x1p-126f);
    else if (type->storage == TNF_F16)
        take_floats(v, WIDEN_F16, bytes, n, 0x1p-14f);
    else if (type->storage == TNF_BF16)
        take_floats(v, WIDEN_BF16, bytes, n, 0x1p-126f);
    else if (8 % type->bits == 0)
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

tnf_value_counts tnf_values_counts(const tnf_values *v)
{
    const tnf_tally *t = &v->tally;
    uint64_t n = t->elements - t->nan - t->inf;
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
    };
}
