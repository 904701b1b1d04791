/* SPDX-License-Identifier: MIT */
/* Tallies against counting one by one in long double, for every instruction set of this machine. */
#include "../support/unit.h"
#include "base/half.h"
#include "base/tally.h"

#include <float.h>
#include <math.h>

#define N 10007u

static uint64_t state_of_chance = 0x9e3779b97f4a7c15u;

static uint64_t chance(void)
{
    state_of_chance ^= state_of_chance << 13;
    state_of_chance ^= state_of_chance >> 7;
    state_of_chance ^= state_of_chance << 17;
    return state_of_chance;
}

struct slow {
    uint64_t nan, inf, zero, subnormal, finite;
    long double sum, squares;
    double min, max;
};

static struct slow count(const double *x, size_t n, double tiny)
{
    struct slow s = { .min = INFINITY, .max = -INFINITY };
    for (size_t i = 0; i < n; i++) {
        s.nan += isnan(x[i]) != 0;
        s.inf += isinf(x[i]) != 0;
        s.zero += x[i] == 0;
        s.subnormal += x[i] != 0 && fabs(x[i]) < tiny;
        if (!isfinite(x[i]))
            continue;
        s.finite++;
        s.sum += (long double)x[i];
        s.min = x[i] < s.min ? x[i] : s.min;
        s.max = x[i] > s.max ? x[i] : s.max;
    }
    long double mean = s.finite ? s.sum / (long double)s.finite : 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            s.squares += ((long double)x[i] - mean) * ((long double)x[i] - mean);
    return s;
}

static void close_to(double got, long double want, long double scale)
{
    if (fabsl((long double)got - want) > 1e-12L * scale)
        fail_msg("%.17g is not %.17Lg", got, want);
}

static void compare(const tnf_tally *t, const double *x, size_t n, double tiny)
{
    struct slow s = count(x, n, tiny);
    assert_int_equal(t->elements, n);
    assert_int_equal(t->nan, s.nan);
    assert_int_equal(t->inf, s.inf);
    assert_int_equal(t->zero, s.zero);
    assert_int_equal(t->subnormal, s.subnormal);
    if (s.finite == 0)
        return;
    assert_true(t->min == s.min);
    assert_true(t->max == s.max);
    long double far = fmaxl(fabsl((long double)s.min), fabsl((long double)s.max));
    close_to(t->mean, s.sum / (long double)s.finite, far);
    close_to(t->squares, s.squares, s.squares + far * far);
}

/* Weights, and among them what is rare; of every length up to a few vectors. */
static double some(unsigned kind)
{
    double weight = ((double)(chance() >> 11) * 0x1p-53 - 0.5) * 4;
    if (kind == 0 || chance() % 37 != 0)
        return weight;
    static const double rare[] = { 0, -0.0, NAN, INFINITY, -INFINITY, 1e-40, -3e-44, 1e30 };
    return rare[chance() % (sizeof rare / sizeof *rare)];
}

static void floats(void **state)
{
    (void)state;
    static float x[N];
    static double d[N];
    for (unsigned kind = 0; kind < 2; kind++)
        for (size_t n = 0; n <= N; n = n < 70 ? n + 1 : n * 3 + 1) {
            for (size_t i = 0; i < n; i++)
                d[i] = x[i] = (float)some(kind);
            tnf_tally t = { 0 };
            tnf_tally_f32(&t, x, n, 0x1p-126f, true);
            compare(&t, d, n, 0x1p-126);
        }
}

static void doubles(void **state)
{
    (void)state;
    static double d[N];
    for (unsigned kind = 0; kind < 2; kind++)
        for (size_t n = 0; n <= N; n = n < 70 ? n + 1 : n * 3 + 1) {
            for (size_t i = 0; i < n; i++)
                d[i] = some(kind);
            if (n > 5)
                d[5] = 0x1p-1070;
            tnf_tally t = { 0 };
            tnf_tally_f64(&t, d, n, DBL_MIN, true);
            compare(&t, d, n, DBL_MIN);
        }
}

/* Where mean and squares taken over all at once would cancel. */
static void far_from_zero(void **state)
{
    (void)state;
    static double d[4096];
    for (size_t i = 0; i < 4096; i++)
        d[i] = 1e9 + (double)(i % 3);
    tnf_tally t = { 0 };
    tnf_tally_f64(&t, d, 4096, DBL_MIN, true);
    struct slow s = count(d, 4096, DBL_MIN);
    assert_true(fabs(t.squares / (double)s.squares - 1) < 1e-9);
}

static void merged(void **state)
{
    (void)state;
    static double d[N];
    tnf_tally whole = { 0 };
    for (size_t i = 0; i < N; i++)
        d[i] = some(1);
    for (size_t at = 0; at < N; at += 1000) {
        tnf_tally piece = { 0 };
        tnf_tally_f64(&piece, d + at, N - at < 1000 ? N - at : 1000, DBL_MIN, true);
        tnf_tally_merge(&whole, &piece);
    }
    compare(&whole, d, N, DBL_MIN);
    tnf_tally none = { 0 };
    tnf_tally_merge(&none, &whole);
    assert_memory_equal(&none, &whole, sizeof whole);
}

static void repeated(void **state)
{
    (void)state;
    static const double values[] = { 2, -7, 0, NAN, 0x1p-20, INFINITY };
    double d[60];
    tnf_tally t = { 0 };
    static const uint64_t times[] = { 10, 20, 7, 3, 0, 20 };
    size_t n = 0;
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < times[i]; k++)
            d[n++] = values[i];
    tnf_tally_weighted(&t, values, times, 6, 0x1p-14);
    compare(&t, d, n, 0x1p-14);
    tnf_tally_weighted(&t, values, times, 0, 0);
    compare(&t, d, n, 0x1p-14);
}

/* Every half there is, by every set of loops, against base/half.c. */
static void halves(void **state)
{
    (void)state;
    static uint16_t h[65536];
    static float out[65536];
    const tnf_tally_loops *loops;
    for (size_t i = 0; i < 65536; i++)
        h[i] = (uint16_t)i;
    for (size_t k = 0; (loops = tnf_tally_loops_at(k)); k++) {
        loops->widen_f16(out, (const uint8_t *)h, 65536);
        for (size_t i = 0; i < 65536; i++) {
            float want = tnf_f16_to_f32((uint16_t)i);
            if (memcmp(&want, &out[i], 4) != 0)
                fail_msg("%s: half %04zx is %g, not %g", loops->name, i, (double)out[i],
                         (double)want);
        }
        loops->widen_bf16(out, (const uint8_t *)h, 65536);
        for (size_t i = 0; i < 65536; i++) {
            float want = tnf_bf16_to_f32((uint16_t)i);
            assert_memory_equal(&want, &out[i], 4);
        }
    }
}

/* Halves as they are, against the floats that they are: to the bit, for every set of loops. */
static void brain_floats(void **state)
{
    (void)state;
    static uint16_t h[N];
    static float x[N];
    for (unsigned kind = 0; kind < 2; kind++)
        for (size_t n = 0; n <= N; n = n < 70 ? n + 1 : n * 3 + 1) {
            const tnf_tally_loops *loops;
            for (size_t i = 0; i < n; i++) {
                float f = (float)some(kind);
                uint32_t bits;
                memcpy(&bits, &f, sizeof bits);
                h[i] = (uint16_t)(bits >> 16);
                x[i] = tnf_bf16_to_f32(h[i]);
            }
            tnf_tally a = { 0 }, b = { 0 };
            tnf_tally_f32(&a, x, n, 0x1p-126f, false);
            tnf_tally_bf16(&b, h, n);
            assert_int_equal(a.nan + a.inf, b.nan + b.inf);
            assert_int_equal(a.zero, b.zero);
            assert_int_equal(a.subnormal, b.subnormal);
            assert_true(a.min == b.min && a.max == b.max);
            assert_true(fabs(a.mean - b.mean) <= 1e-12 * (fabs(a.max) + fabs(a.min)));
            for (size_t k = 0; n && n <= 2048 && (loops = tnf_tally_loops_at(k)); k++) {
                tnf_span_f32 wide, narrow;
                loops->span_f32(&wide, (const uint8_t *)x, n);
                loops->span_bf16(&narrow, (const uint8_t *)h, n);
                assert_int_equal(wide.low, narrow.low);
                assert_int_equal(wide.high, narrow.high);
                assert_int_equal(wide.near, narrow.near);
                assert_int_equal(wide.far, narrow.far);
            }
        }
}

/* The same bits on every machine. */
static void loops_agree(void **state)
{
    (void)state;
    static float x[2048];
    static double d[2048];
    const tnf_tally_loops *first = tnf_tally_loops_at(0), *loops;
    for (size_t i = 0; i < 2048; i++)
        d[i] = x[i] = (float)some(0);
    for (size_t n = 1; n <= 2048; n = n * 2 + 1)
        for (size_t k = 1; (loops = tnf_tally_loops_at(k)); k++) {
            tnf_span_f32 a, b;
            tnf_span_f64 c, f;
            first->span_f32(&a, (const uint8_t *)x, n);
            loops->span_f32(&b, (const uint8_t *)x, n);
            assert_memory_equal(&a, &b, sizeof a);
            first->span_f64(&c, (const uint8_t *)d, n);
            loops->span_f64(&f, (const uint8_t *)d, n);
            assert_memory_equal(&c, &f, sizeof c);
            assert_true(first->squares_f32((const uint8_t *)x, n, 0.1) ==
                        loops->squares_f32((const uint8_t *)x, n, 0.1));
            assert_true(first->squares_f64((const uint8_t *)d, n, 0.1) ==
                        loops->squares_f64((const uint8_t *)d, n, 0.1));
        }
}

static void bytes(void **state)
{
    (void)state;
    uint8_t p[1000];
    uint64_t got[256] = { 0 }, want[256] = { 0 };
    for (size_t i = 0; i < sizeof p; i++)
        p[i] = (uint8_t)(chance() % 200);
    for (size_t n = 0; n <= sizeof p; n += 37) {
        tnf_count_bytes(got, p, n);
        for (size_t i = 0; i < n; i++)
            want[p[i]]++;
        assert_memory_equal(got, want, sizeof got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats),        cmocka_unit_test(doubles),
        cmocka_unit_test(far_from_zero), cmocka_unit_test(merged),
        cmocka_unit_test(repeated),      cmocka_unit_test(halves),
        cmocka_unit_test(brain_floats),  cmocka_unit_test(loops_agree),
        cmocka_unit_test(bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
