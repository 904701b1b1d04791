/* SPDX-License-Identifier: MIT */
/* Histograms: every number is counted, in any order, and the edges of the bins are right. */
#include "../support/unit.h"
#include "kernels/bins.h"

#include <math.h>

#define N 5000u

static double numbers[N];

static void fill_numbers(double scale, double shift)
{
    uint64_t s = 88172645463325252u;
    for (size_t i = 0; i < N; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        numbers[i] = ((double)(s >> 11) * 0x1p-53 - 0.5) * scale + shift;
    }
}

static void find_range(const double *x, size_t n, double *min, double *max)
{
    *min = *max = x[0];
    for (size_t i = 1; i < n; i++) {
        *min = x[i] < *min ? x[i] : *min;
        *max = x[i] > *max ? x[i] : *max;
    }
}

static void add_numbers(tnf_bins *b, const double *x, size_t n)
{
    double min, max;
    find_range(x, n, &min, &max);
    tnf_bins_cover(b, min, max);
    tnf_bins_add(b, TNF_TALLY_F64, x, n);
}

static uint64_t sum_counts(const uint64_t *counts, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

static void assert_same(const tnf_bins *a, const tnf_bins *b)
{
    assert_int_equal(a->k, b->k);
    assert_int_equal(a->first, b->first);
    assert_int_equal(a->last, b->last);
    assert_memory_equal(a->counts, b->counts, sizeof a->counts);
}

/* All at once, one by one, backwards, or in pieces that are merged: the result is the same. */
static void any_order(void **state)
{
    (void)state;
    static const struct {
        double scale, shift;
    } kinds[] = { { 1, 0 }, { 1e-3, 5 }, { 1e300, 0 }, { 1e-290, -1e-291 }, { 4, -100 } };
    static tnf_bins a, b, c, d;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        fill_numbers(kinds[k].scale, kinds[k].shift);
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        memset(&c, 0, sizeof c);
        add_numbers(&a, numbers, N);
        for (size_t i = 0; i < N; i++)
            tnf_bins_repeat(&b, numbers[N - 1 - i], 1);
        for (size_t at = 0; at < N; at += 700) {
            memset(&d, 0, sizeof d);
            add_numbers(&d, numbers + at, N - at < 700 ? N - at : 700);
            tnf_bins_merge(&c, &d);
        }
        assert_int_equal(sum_counts(a.counts, TNF_BINS), N);
        assert_same(&a, &b);
        assert_same(&a, &c);
        assert_true(a.last - a.first >= (int64_t)TNF_BINS / 2 - 1); /* finer bins would not fit */
    }
}

/* The numbers of each piece are a hundred times larger than those of the one before. When two
 * histograms are merged, the finer one becomes as coarse as the other, in either order. */
static void other_scales(void **state)
{
    (void)state;
    enum { PIECES = 10, EACH = N / PIECES };
    static tnf_bins all, up, down, one;
    fill_numbers(1, 0.25);
    for (size_t i = 0; i < N; i++)
        numbers[i] *= pow(100, (double)(i / EACH));
    add_numbers(&all, numbers, N);
    for (size_t i = 0; i < PIECES; i++) {
        memset(&one, 0, sizeof one);
        add_numbers(&one, numbers + i * EACH, EACH);
        tnf_bins_merge(&up, &one);
        memset(&one, 0, sizeof one);
        add_numbers(&one, numbers + (PIECES - 1 - i) * EACH, EACH);
        tnf_bins_merge(&down, &one);
    }
    assert_same(&all, &up);
    assert_same(&all, &down);
    assert_int_equal(sum_counts(up.counts, TNF_BINS), N);
}

/* Numbers in the middle of a shown bin are counted in that bin. */
static void shown_where_they_belong(void **state)
{
    (void)state;
    static tnf_bins b;
    uint64_t out[10];
    memset(&b, 0, sizeof b);
    for (unsigned i = 0; i < 10; i++)
        tnf_bins_repeat(&b, i + 0.5, i + 1);
    tnf_bins_repeat(&b, 0, 100);
    tnf_bins_repeat(&b, 10, 1000);
    tnf_bins_show(&b, 0, 10, out, 10);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(out[i], i + 1 + (i == 0 ? 100 : 0) + (i == 9 ? 1000 : 0));
}

static void odd_numbers(void **state)
{
    (void)state;
    static tnf_bins b, none;
    uint64_t out[4];
    memset(&b, 0, sizeof b);
    tnf_bins_show(&none, 0, 0, out, 4);
    assert_int_equal(sum_counts(out, 4), 0);
    tnf_bins_repeat(&b, NAN, 3);
    assert_false(b.used);
    tnf_bins_repeat(&b, 7, 3);
    tnf_bins_merge(&b, &none);
    tnf_bins_show(&b, 7, 7, out, 4);
    assert_int_equal(out[0], 3);
    assert_int_equal(sum_counts(out, 4), 3);
    const float x[] = { 7, NAN, INFINITY, -INFINITY, 7 };
    tnf_bins_add(&b, TNF_TALLY_F32, x, 5);
    assert_int_equal(sum_counts(b.counts, TNF_BINS), 5);
    tnf_bins_repeat(&b, -1.7e308, 1);
    tnf_bins_repeat(&b, 1.7e308, 1);
    tnf_bins_show(&b, -1.7e308, 1.7e308, out, 4);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[3], 1);
    assert_int_equal(sum_counts(out, 4), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order),
        cmocka_unit_test(other_scales),
        cmocka_unit_test(shown_where_they_belong),
        cmocka_unit_test(odd_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
