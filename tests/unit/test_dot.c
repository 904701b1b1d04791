/* SPDX-License-Identifier: MIT */
/* Every kernel that this machine can run, compared with sums in double precision and with each
 * other. */
#include "../support/check.h"
#include "../support/unit.h"
#include "base/bytes.h"
#include "base/half.h"
#include "kernels/dot.h"

#include <math.h>

#define MAX_D    100u
#define MAX_ROWS 11u
#define MAX_Q    14u

static _Alignas(64) float queries[MAX_Q * TNF_PADDED(MAX_D)];
static float unaligned[MAX_ROWS * MAX_D + 1], *const rows = unaligned + 1;

static float random_float(uint64_t *state)
{
    return (float)((double)(next_random(state) >> 11) / 9007199254740992.0 * 2 - 1);
}

static void fill_rows(size_t d, uint64_t seed)
{
    memset(queries, 0, sizeof queries);
    for (size_t i = 0; i < MAX_ROWS * d; i++)
        rows[i] = random_float(&seed);
    for (size_t q = 0; q < MAX_Q; q++)
        for (size_t i = 0; i < d; i++)
            queries[q * TNF_PADDED(d) + i] = random_float(&seed);
}

static double dot_exactly(const float *a, const float *b, size_t d)
{
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static double distance_exactly(const float *a, const float *b, size_t d)
{
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sum;
}

/* The results of all functions for one shape; guard values are around them. */
struct results {
    float dot[MAX_Q * 16], distance[MAX_Q * 16], squares[16], fused[16], fused_squares[16];
};

static void ask_kernels(const tnf_kernels *k, size_t d, size_t nr, size_t nq, struct results *out)
{
    for (size_t i = 0; i < sizeof *out / sizeof(float); i++)
        ((float *)out)[i] = 12345;
    k->dot(rows, nr, d, queries, nq, out->dot, 16);
    k->distance(rows, nr, d, queries, nq, out->distance, 16);
    k->squares(rows, nr, d, out->squares);
    k->dot_squares(rows, nr, d, queries, out->fused, out->fused_squares);
}

static void check_results(const char *name, const struct results *x, size_t d, size_t nr, size_t nq)
{
    double bound = 2e-7 * (double)d;
    for (size_t q = 0; q < MAX_Q; q++)
        for (size_t r = 0; r < 16; r++) {
            const float *a = rows + r * d, *b = queries + q * TNF_PADDED(d);
            size_t at = q * 16 + r;
            if (q >= nq || r >= nr) {
                assert_true(x->dot[at] == 12345 && x->distance[at] == 12345);
                continue;
            }
            if (fabs(x->dot[at] - dot_exactly(a, b, d)) > bound ||
                fabs(x->distance[at] - distance_exactly(a, b, d)) > 4 * bound)
                fail_msg("%s: d %zu, row %zu of %zu, query %zu of %zu", name, d, r, nr, q, nq);
        }
    for (size_t r = 0; r < nr; r++) {
        assert_true(fabs(x->squares[r] - dot_exactly(rows + r * d, rows + r * d, d)) <= bound);
        assert_memory_equal(&x->squares[r], &x->fused_squares[r], sizeof(float));
        assert_memory_equal(&x->dot[r], &x->fused[r], sizeof(float));
    }
    assert_true(nr == 16 || (x->squares[nr] == 12345 && x->fused[nr] == 12345));
}

/* The result of a pair does not depend on others: a query gives the same bits alone and among
 * others. */
static void check_alone(const tnf_kernels *k, const struct results *x, size_t d, size_t nr,
                        size_t nq)
{
    float one;
    for (size_t q = 0; q < nq; q++)
        for (size_t r = 0; r < nr; r++) {
            k->dot(rows + r * d, 1, d, queries + q * TNF_PADDED(d), 1, &one, 1);
            assert_memory_equal(&one, &x->dot[q * 16 + r], sizeof one);
            k->distance(rows + r * d, 1, d, queries + q * TNF_PADDED(d), 1, &one, 1);
            assert_memory_equal(&one, &x->distance[q * 16 + r], sizeof one);
        }
}

static void pairs_of_rows(void **state)
{
    static const size_t counts[][2] = { { 1, 1 }, { 3, 2 },   { 4, 1 }, { 4, 6 },
                                        { 9, 7 }, { 11, 14 }, { 8, 5 }, { 6, 13 } };
    (void)state;
    for (size_t d = 1; d <= MAX_D; d++) {
        fill_rows(d, d);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            struct results best, x;
            const tnf_kernels *k;
            for (size_t i = 0; (k = tnf_kernels_at(i)); i++) {
                ask_kernels(k, d, counts[c][0], counts[c][1], &x);
                check_results(k->name, &x, d, counts[c][0], counts[c][1]);
                check_alone(k, &x, d, counts[c][0], counts[c][1]);
                if (i == 0)
                    best = x;
                else if (k != &tnf_kernels_portable) /* those that fuse agree exactly */
                    assert_memory_equal(&best, &x, sizeof x);
            }
        }
    }
}

/* Sums of table entries have one order everywhere, so all kernels agree to the bit. */
static void code_sums(void **state)
{
    enum { ROWS = 300, MOST = 70 };
    static uint8_t codes[ROWS * MOST];
    static float tables[MOST * TNF_CODES], best[ROWS + 1], got[ROWS + 1];
    uint64_t seed = 7;
    (void)state;
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)next_random(&seed);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        tables[i] = random_float(&seed);
    for (size_t m = 1; m <= MOST; m++) {
        const tnf_kernels *k;
        size_t n = 1 + m * 37 % ROWS;
        for (size_t i = 0; (k = tnf_kernels_at(i)); i++) {
            got[n] = 12345;
            k->code_sums(codes, n, m, tables, got);
            assert_true(got[n] == 12345);
            if (i == 0)
                memcpy(best, got, sizeof best);
            assert_memory_equal(best, got, n * sizeof *got);
        }
        for (size_t r = 0; r < n; r++) {
            double sum = 0;
            for (size_t j = 0; j < m; j++)
                sum += tables[j * TNF_CODES + codes[r * m + j]];
            assert_true(fabs(sum - best[r]) < 1e-5);
        }
    }
}

/* Tables of bytes: plain sums of whole numbers. */
static void byte_sums(void **state)
{
    enum { ROWS = 200, MOST = 150 };
    static uint8_t codes[ROWS * MOST], tables[MOST * TNF_CODES];
    static uint16_t got[ROWS + 1];
    uint64_t seed = 11;
    (void)state;
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)next_random(&seed);
    for (size_t i = 0; i < sizeof tables; i++)
        tables[i] = (uint8_t)next_random(&seed);
    const tnf_kernels *k;
    for (size_t i = 0; (k = tnf_kernels_at(i)); i++)
        for (size_t m = 1; k->byte_sums && m <= MOST; m += m < 40 ? 1 : 10) {
            size_t n = 1 + m * 37 % ROWS;
            got[n] = 12345;
            k->byte_sums(codes, n, m, tables, got);
            assert_int_equal(got[n], 12345);
            for (size_t r = 0; r < n; r++) {
                unsigned sum = 0;
                for (size_t j = 0; j < m; j++)
                    sum += tables[j * TNF_CODES + codes[r * m + j]];
                assert_int_equal(got[r], sum);
            }
        }
}

static void widens_halves(void **state)
{
    static uint16_t all[65536];
    static float got[65537];
    const tnf_kernels *k;
    (void)state;
    for (size_t i = 0; i < 65536; i++)
        tnf_put_le16(&all[i], (uint16_t)i); /* in the order of files */
    for (size_t i = 0; (k = tnf_kernels_at(i)); i++)
        for (size_t n = 65536; n > 65500; n--) {
            got[n] = 12345;
            k->from_f16(all, n, got);
            for (size_t j = 0; j < n; j++)
                assert_true(got[j] == tnf_f16_to_f32((uint16_t)j) ||
                            isnan(tnf_f16_to_f32((uint16_t)j)));
            assert_true(got[n] == 12345);
            k->from_bf16(all, n, got);
            for (size_t j = 0; j < n; j++)
                assert_true(got[j] == tnf_bf16_to_f32((uint16_t)j) ||
                            isnan(tnf_bf16_to_f32((uint16_t)j)));
            assert_true(got[n] == 12345);
        }
}

static void kernels_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(tnf_kernels_named(NULL), tnf_kernels_at(0));
    assert_ptr_equal(tnf_kernels_named("portable"), &tnf_kernels_portable);
    assert_null(tnf_kernels_named("abacus"));
    assert_null(tnf_kernels_at(9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_rows),   cmocka_unit_test(code_sums),
        cmocka_unit_test(byte_sums),       cmocka_unit_test(widens_halves),
        cmocka_unit_test(kernels_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
