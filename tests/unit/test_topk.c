/* SPDX-License-Identifier: MIT */
/* The k best, compared with sorting everything. */
#include "../support/check.h"
#include "../support/unit.h"
#include "ext/emb/topk.h"

#include <math.h>

#define N 500u

/* Ties are ordered by the last digit, which is different from the order of the rows. */
static int by_digit(const void *ctx, uint64_t a, uint64_t b)
{
    (void)ctx;
    return (int)(a % 10) - (int)(b % 10);
}

static const tnf_ties ties = { by_digit, NULL };

static int in_full(const void *x, const void *y)
{
    const tnf_scored *a = x, *b = y;
    if (isnan(a->score) != isnan(b->score))
        return isnan(a->score) ? 1 : -1;
    if (!isnan(a->score) && a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->row % 10 != b->row % 10)
        return a->row % 10 < b->row % 10 ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

static void fill_scores(tnf_scored *all, uint64_t seed)
{
    for (size_t i = 0; i < N; i++) {
        uint64_t r = next_random(&seed) % 40; /* many ties */
        all[i] = (tnf_scored) { r == 0   ? NAN
                                : r == 1 ? -INFINITY
                                : r == 2 ? INFINITY
                                         : (double)r,
                                i };
    }
}

static void assert_same(const tnf_top *t, const tnf_scored *sorted, size_t n)
{
    assert_int_equal(t->n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(t->items[i].row, sorted[i].row);
}

static void best_of_all(void **state)
{
    static const size_t ks[] = { 1, 2, 10, 97, N, N + 50 };
    tnf_scored all[N], sorted[N], items[N + 50];
    (void)state;
    for (uint64_t seed = 1; seed < 40; seed++) {
        fill_scores(all, seed);
        memcpy(sorted, all, sizeof all);
        qsort(sorted, N, sizeof *sorted, in_full);
        for (size_t c = 0; c < sizeof ks / sizeof *ks; c++) {
            tnf_top t = { items, 0, ks[c] };
            for (size_t i = 0; i < N; i++)
                if (!tnf_top_below(&t, all[i].score))
                    tnf_top_add(&t, &ties, all[i]);
            tnf_top_sort(&t, &ties);
            assert_same(&t, sorted, ks[c] < N ? ks[c] : N);
        }
    }
}

/* For any division of the work, and in any order. */
static void merges_parts(void **state)
{
    enum { K = 20, PARTS = 4 };
    tnf_scored all[N], sorted[N], items[PARTS][K];
    (void)state;
    for (uint64_t seed = 1; seed < 40; seed++) {
        uint64_t dice = seed;
        fill_scores(all, seed);
        memcpy(sorted, all, sizeof all);
        qsort(sorted, N, sizeof *sorted, in_full);
        tnf_top parts[PARTS];
        for (size_t p = 0; p < PARTS; p++)
            parts[p] = (tnf_top) { items[p], 0, K };
        for (size_t i = 0; i < N; i++)
            tnf_top_add(&parts[next_random(&dice) % PARTS], &ties, all[N - 1 - i]);
        for (size_t p = 1; p < PARTS; p++)
            tnf_top_merge(&parts[0], &ties, &parts[p]);
        tnf_top_sort(&parts[0], &ties);
        assert_same(&parts[0], sorted, K);
    }
}

static void none_wanted(void **state)
{
    tnf_top t = { NULL, 0, 0 };
    const tnf_ties no_ties = { NULL, NULL };
    tnf_scored two[2];
    (void)state;
    tnf_top_add(&t, &ties, (tnf_scored) { 1, 1 });
    tnf_top_sort(&t, &ties);
    assert_int_equal(t.n, 0);
    t = (tnf_top) { two, 0, 2 };
    for (uint64_t i = 9; i > 0; i--)
        tnf_top_add(&t, &no_ties, (tnf_scored) { 5, i });
    tnf_top_sort(&t, &no_ties);
    assert_true(two[0].row == 1 && two[1].row == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_of_all),
        cmocka_unit_test(merges_parts),
        cmocka_unit_test(none_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
