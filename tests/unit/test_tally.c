/* SPDX-License-Identifier: MIT */
/* Tallies, compared with counting one by one in long double, for every instruction set of this
 * machine. */
#include "../support/unit.h"
#include "base/bytes.h"
#include "base/half.h"
#include "kernels/tally.h"
#include "kernels/tally_small.h"

#include <float.h>
#include <math.h>

#define N 10007u

static uint64_t state_of_chance = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
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

static struct slow count_slowly(const double *x, size_t n, double tiny)
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

static void check_tally(const tnf_tally *t, const double *x, size_t n, double tiny)
{
    struct slow s = count_slowly(x, n, tiny);
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

/* Weights, with rare numbers among them; of every length up to a few vectors. */
static double some_weight(unsigned kind)
{
    double weight = ((double)(next_random() >> 11) * 0x1p-53 - 0.5) * 4;
    if (kind == 0 || next_random() % 37 != 0)
        return weight;
    static const double rare[] = { 0, -0.0, NAN, INFINITY, -INFINITY, 1e-40, -3e-44, 1e30 };
    return rare[next_random() % (sizeof rare / sizeof *rare)];
}

static void tallies_floats(void **state)
{
    (void)state;
    static float x[N];
    static double d[N];
    for (unsigned kind = 0; kind < 2; kind++)
        for (size_t n = 0; n <= N; n = n < 70 ? n + 1 : n * 3 + 1) {
            for (size_t i = 0; i < n; i++)
                d[i] = x[i] = (float)some_weight(kind);
            tnf_tally t = { 0 };
            tnf_tally_floats(&t, TNF_TALLY_F32, x, n, true);
            check_tally(&t, d, n, 0x1p-126);
        }
}

static void tallies_doubles(void **state)
{
    (void)state;
    static double d[N];
    for (unsigned kind = 0; kind < 2; kind++)
        for (size_t n = 0; n <= N; n = n < 70 ? n + 1 : n * 3 + 1) {
            for (size_t i = 0; i < n; i++)
                d[i] = some_weight(kind);
            if (n > 5)
                d[5] = 0x1p-1070;
            tnf_tally t = { 0 };
            tnf_tally_floats(&t, TNF_TALLY_F64, d, n, true);
            check_tally(&t, d, n, DBL_MIN);
        }
}

/* Numbers far from zero: with sums over all at once, mean and squares would cancel. */
static void far_from_zero(void **state)
{
    (void)state;
    static double d[4096];
    for (size_t i = 0; i < 4096; i++)
        d[i] = 1e9 + (double)(i % 3);
    tnf_tally t = { 0 };
    tnf_tally_floats(&t, TNF_TALLY_F64, d, 4096, true);
    struct slow s = count_slowly(d, 4096, DBL_MIN);
    assert_true(fabs(t.squares / (double)s.squares - 1) < 1e-9);
}

static void merges_tallies(void **state)
{
    (void)state;
    static double d[N];
    tnf_tally whole = { 0 };
    for (size_t i = 0; i < N; i++)
        d[i] = some_weight(1);
    for (size_t at = 0; at < N; at += 1000) {
        tnf_tally piece = { 0 };
        tnf_tally_floats(&piece, TNF_TALLY_F64, d + at, N - at < 1000 ? N - at : 1000, true);
        tnf_tally_merge(&whole, &piece);
    }
    check_tally(&whole, d, N, DBL_MIN);
    tnf_tally none = { 0 };
    tnf_tally_merge(&none, &whole);
    assert_memory_equal(&none, &whole, sizeof whole);
}

static void tallies_repeated(void **state)
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
    check_tally(&t, d, n, 0x1p-14);
    tnf_tally_weighted(&t, values, times, 0, 0);
    check_tally(&t, d, n, 0x1p-14);
}

/* A function of i386 returns its float in a register that makes signalling NaNs quiet. */
#ifdef __i386__
#define RETURNS_QUIET true
#else
#define RETURNS_QUIET false
#endif

/* All halves, by every set of loops, compared with base/half.c. */
static void widens_halves(void **state)
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
            if (RETURNS_QUIET && want != want)
                continue;
            if (memcmp(&want, &out[i], 4) != 0)
                fail_msg("%s: half %04zx is %g, not %g", loops->name, i, (double)out[i],
                         (double)want);
        }
        loops->widen_bf16(out, (const uint8_t *)h, 65536);
        for (size_t i = 0; i < 65536; i++) {
            float want = tnf_bf16_to_f32((uint16_t)i);
            if (!RETURNS_QUIET || want == want)
                assert_memory_equal(&want, &out[i], 4);
        }
    }
}

/* Weights as halves, and random bits; at an odd address. */
static void short_floats(void **state)
{
    (void)state;
    static uint8_t h[2 * N + 1];
    static double d[N];
    for (unsigned kind = 0; kind < 3; kind++)
        for (size_t n = 0; n <= N; n = n < 70 ? n + 1 : n * 3 + 1)
            for (unsigned brain = 0; brain < 2; brain++) {
                for (size_t i = 0; i < n; i++) {
                    uint16_t bits = (uint16_t)(next_random() >> 30);
                    if (kind == 0) /* normal numbers, near 1 */
                        bits = (uint16_t)((bits & 0x83ff) | (brain ? 0x3f00 : 0x3800));
                    if (kind == 1 && next_random() % 50) /* a few that are not finite */
                        bits &= 0xbfff;
                    memcpy(h + 1 + 2 * i, &bits, 2);
                    d[i] = (double)(brain ? tnf_bf16_to_f32(bits) : tnf_f16_to_f32(bits));
                }
                tnf_tally t = { 0 }, plain = { 0 };
                enum tnf_float type = brain ? TNF_TALLY_BF16 : TNF_TALLY_F16;
                tnf_tally_floats(&t, type, h + 1, n, true);
                check_tally(&t, d, n, brain ? 0x1p-126 : 0x1p-14);
                tnf_tally_floats(&plain, type, h + 1, n, false);
                plain.squares = t.squares;
                assert_memory_equal(&t, &plain, sizeof t);
            }
}

/* Sums of f16 are exact, also for numbers that any rounding would change. */
static void exact_halves(void **state)
{
    (void)state;
    static const uint16_t some_halves[] = { 0x7bff, 0x0001, 0x8003, 0x3c01, 0xfbff, 0x0001 };
    uint16_t h[4096];
    int64_t units = 0; /* of 2^-24 */
    for (size_t i = 0; i < 4096; i++) {
        h[i] = some_halves[next_random() % 6];
        units += (int64_t)((double)tnf_f16_to_f32(h[i]) * 0x1p24);
    }
    const tnf_tally_loops *loops;
    for (size_t k = 0; (loops = tnf_tally_loops_at(k)); k++) {
        tnf_span_float span;
        loops->floats[TNF_TALLY_F16](&span, (const uint8_t *)h, 4096);
        assert_true(span.sum == (double)units * 0x1p-24);
    }
}

/* The smallest and the largest numbers, equal numbers, and random ones. */
static void tallies_integers(void **state)
{
    (void)state;
    static uint8_t x[8 * N + 1];
    static double d[N];
    for (unsigned width = 1; width <= 8; width *= 2)
        for (unsigned kind = 0; kind < 8; kind++)
            for (size_t n = 0; n <= N; n = n < 140 ? n + 1 : n * 3 + 1) {
                bool is_signed = kind % 2;
                for (size_t i = 0; i < n; i++) {
                    uint64_t bits = next_random() >> (kind / 2 == 0 ? 0 : 60);
                    uint64_t least = (uint64_t)1 << (8 * width - 1);
                    if (kind / 2 == 2)
                        bits = is_signed ? least : least - 1 + least;
                    if (kind / 2 == 3)
                        bits = next_random() % 3 ? 0 : is_signed ? least - 1 : 7;
                    uint8_t *to = x + 1 + i * width, raw[8];
                    tnf_put_le64(raw, bits);
                    memcpy(to, raw, width);
                    tnf_swap_le(to, 1, width);
                    int64_t number = width == 1   ? (int8_t)bits
                                     : width == 2 ? (int16_t)bits
                                     : width == 4 ? (int32_t)bits
                                                  : (int64_t)bits;
                    d[i] = is_signed ? (double)number : (double)(bits & (least - 1 + least));
                }
                tnf_tally t = { 0 };
                tnf_tally_ints(&t, x + 1, n, width, is_signed);
                t.squares = (double)count_slowly(d, n, 0).squares;
                check_tally(&t, d, n, 0);
            }
}

static void tallies_switches(void **state)
{
    (void)state;
    static uint8_t x[N];
    static double d[8 * N];
    for (unsigned kind = 0; kind < 3; kind++)
        for (size_t n = 1; n < N; n = n * 2 + 1) {
            tnf_tally bools = { 0 }, bits = { 0 };
            for (size_t i = 0; i < n; i++) {
                x[i] = (uint8_t)(kind == 0 ? 0 : kind == 1 ? 255 : next_random() % 3);
                d[i] = x[i] != 0;
            }
            tnf_tally_bools(&bools, x, n);
            bools.squares = (double)count_slowly(d, n, 0).squares;
            check_tally(&bools, d, n, 0);
            for (size_t i = 0; i < 8 * n; i++)
                d[i] = x[i / 8] >> i % 8 & 1;
            tnf_tally_bits(&bits, x, 8 * n - 3);
            bits.squares = (double)count_slowly(d, 8 * n - 3, 0).squares;
            check_tally(&bits, d, 8 * n - 3, 0);
        }
}

static void tallies_powers(void **state)
{
    (void)state;
    static uint8_t x[N];
    static double d[N];
    for (unsigned kind = 0; kind < 3; kind++)
        for (size_t n = 0; n < N; n = n * 2 + 1) {
            for (size_t i = 0; i < n; i++) {
                x[i] = (uint8_t)(kind == 0 ? 120 + next_random() % 9 : next_random());
                x[i] = kind < 2 && x[i] == 255 ? 0 : x[i];
                d[i] = x[i] == 255 ? NAN : ldexp(1, x[i] - 127);
            }
            tnf_tally t = { 0 };
            tnf_tally_powers(&t, x, n);
            t.squares = (double)count_slowly(d, n, 0).squares;
            check_tally(&t, d, n, 0);
        }
}

/* Small floats: element by element from the stream of bits. */
static unsigned element_at(const uint8_t *x, size_t i, unsigned bits)
{
    unsigned e = 0;
    for (unsigned k = 0; k < bits; k++)
        e |= (unsigned)(x[(i * bits + k) / 8] >> (i * bits + k) % 8 & 1) << k;
    return e;
}

static void small_floats(void **state)
{
    (void)state;
    static const char *const ids[] = { "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz",
                                       "f6_e2m3",   "f6_e3m2", "f4_e2m1" };
    static uint8_t x[60000];
    static double d[60000];
    assert_null(tnf_small_named("f8_e8m0"));
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++)
        for (unsigned kind = 0; kind < 4; kind++)
            for (size_t n = 1; n <= 60000; n = n < 300 ? n + 1 : n * 3 + 1) {
                const tnf_small_type *type = tnf_small_named(ids[k]);
                uint64_t counts[256] = { 0 }, want[256] = { 0 };
                for (size_t i = 0; i < n; i++) /* random; no special ones; few; one sign */
                    x[i] = (uint8_t)(kind == 0   ? next_random()
                                     : kind == 1 ? (next_random() & 0x3f) + 0x91
                                     : kind == 2 ? (next_random() & 0x83) | 1
                                                 : (next_random() & 0x1f) | 0xa0);
                for (size_t i = 0; i < n; i++) {
                    unsigned e = element_at(x, i, type->bits);
                    d[i] = (double)type->value((uint8_t)e);
                    want[e]++;
                }
                tnf_tally t = { 0 }, counted = { 0 };
                tnf_tally_small(&counted, type, x, n, counts);
                check_tally(&counted, d, n, type->tiny);
                assert_memory_equal(counts, want, sizeof want);
                tnf_tally_small(&t, type, x, n, NULL);
                counted.squares = 0; /* otherwise the same bits, by table or counted */
                assert_memory_equal(&t, &counted, sizeof t);
            }
}

/* The same bits on every machine. */
static void loops_agree(void **state)
{
    (void)state;
    static uint8_t x[TNF_TALLY_SPAN + 1], y[TNF_TALLY_SPAN + 1];
    static int64_t there[1024], here[1024];
    static const unsigned widths[TNF_TALLY_FLOATS] = { 8, 4, 2, 2 };
    const tnf_tally_loops *first = tnf_tally_loops_at(0), *loops;
    for (size_t i = 0; i < sizeof x; i++) {
        x[i] = (uint8_t)(next_random() >> 20);
        y[i] = (uint8_t)(i % 2 ? x[i] : x[i] & 0xbf); /* finite numbers from y + 1 on */
    }
    for (size_t n = 1; n <= TNF_TALLY_SPAN; n = n < 300 ? n + 1 : n * 2 + 1)
        for (size_t k = 1; (loops = tnf_tally_loops_at(k)); k++) {
            for (unsigned kind = 0; kind < TNF_TALLY_FLOATS; kind++) {
                size_t count = n < TNF_TALLY_SPAN / widths[kind] ? n
                                                                 : TNF_TALLY_SPAN / widths[kind];
                tnf_span_float a, b;
                first->floats[kind](&a, y + 1, count);
                loops->floats[kind](&b, y + 1, count);
                assert_memory_equal(&a, &b, sizeof a);
                assert_int_equal(first->small[kind](x, count, 0x1234),
                                 loops->small[kind](x, count, 0x1234));
            }
            for (unsigned w = 0; w < 8; w++) {
                tnf_span_int a, b;
                size_t count = n < TNF_TALLY_SPAN >> w / 2 ? n : TNF_TALLY_SPAN >> w / 2;
                first->ints[w / 2](&a, x + 1, count, w % 2);
                loops->ints[w / 2](&b, x + 1, count, w % 2);
                assert_memory_equal(&a, &b, sizeof a);
            }
            tnf_span_float p, q;
            first->powers(&p, x, n);
            loops->powers(&q, x, n);
            assert_memory_equal(&p, &q, sizeof p);
            assert_int_equal(first->ones(x, n), loops->ones(x, n));
            size_t few = n < 1024 ? n : 1024;
            double f = first->squares_f32(y + 1, few, 0.1), g = loops->squares_f32(y + 1, few, 0.1);
            assert_memory_equal(&f, &g, sizeof f);
            f = first->squares_f64(y + 1, few, 0.1);
            g = loops->squares_f64(y + 1, few, 0.1);
            assert_memory_equal(&f, &g, sizeof f);
            first->places_f32(there, y + 1, few, 0x1p-120, -70);
            loops->places_f32(here, y + 1, few, 0x1p-120, -70);
            assert_memory_equal(there, here, few * sizeof *here);
        }
}

/* Compared with floor(). */
static void places_of_numbers(void **state)
{
    (void)state;
    double d[19];
    float f[19];
    const tnf_tally_loops *loops;
    for (size_t k = 0; (loops = tnf_tally_loops_at(k)); k++)
        for (size_t n = 0; n < 19; n++) {
            int64_t got[19], narrow[19];
            for (size_t i = 0; i < n; i++)
                d[i] = f[i] = i % 5 == 4   ? -INFINITY
                              : i % 7 == 6 ? NAN
                              : i % 3      ? (float)(next_random() % 4001) - 2000
                                           : ((float)(next_random() % 4001) - 2000) / 17;
            loops->places_f64(got, (const uint8_t *)d, n, 0.25, -3);
            loops->places_f32(narrow, (const uint8_t *)f, n, 0.25, -3);
            for (size_t i = 0; i < n; i++) {
                int64_t want = isfinite(d[i]) ? (int64_t)floor(d[i] / 4) + 3 : TNF_TALLY_NOWHERE;
                assert_int_equal(got[i], want);
                assert_int_equal(narrow[i], want);
            }
        }
}

static void counts_bytes(void **state)
{
    (void)state;
    uint8_t p[1000];
    uint64_t got[256] = { 0 }, want[256] = { 0 };
    for (size_t i = 0; i < sizeof p; i++)
        p[i] = (uint8_t)(next_random() % 200);
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
        cmocka_unit_test(tallies_floats),   cmocka_unit_test(tallies_doubles),
        cmocka_unit_test(far_from_zero),    cmocka_unit_test(merges_tallies),
        cmocka_unit_test(tallies_repeated), cmocka_unit_test(widens_halves),
        cmocka_unit_test(short_floats),     cmocka_unit_test(exact_halves),
        cmocka_unit_test(tallies_integers), cmocka_unit_test(tallies_switches),
        cmocka_unit_test(tallies_powers),   cmocka_unit_test(small_floats),
        cmocka_unit_test(loops_agree),      cmocka_unit_test(places_of_numbers),
        cmocka_unit_test(counts_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
