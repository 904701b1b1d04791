/* SPDX-License-Identifier: MIT */
/* Every kernel for training that this machine can run: all give the same bits, which agree with a
 * plain loop in double precision. */
#include "../support/check.h"
#include "../support/unit.h"
#include "kernels/dot.h"
#include "kernels/kmeans.h"

#include <math.h>

#define MAX_WIDTH 11u
#define MAX_K     256u
#define ROWS      128u /* two tiles */

static float centroids[MAX_K * MAX_WIDTH], half[MAX_K], turned[MAX_K * MAX_WIDTH];
static float columns[ROWS * MAX_WIDTH];

static float random_float(uint64_t *state)
{
    return (float)((double)(next_random(state) >> 11) / 9007199254740992.0 * 2 - 1);
}

/* A codebook of these centroids. */
static tnf_book make_book(size_t width, size_t k)
{
    tnf_book b = { width, k, (k + 15) / 16 * 16, centroids, half, turned };
    for (size_t c = 0; c < b.padded; c++) {
        double square = 0;
        for (size_t i = 0; i < width; i++) {
            if (c >= k)
                centroids[c * width + i] = 0;
            square += (double)centroids[c * width + i] * centroids[c * width + i];
            turned[i * b.padded + c] = centroids[c * width + i];
        }
        half[c] = c < k ? (float)(square / 2) : INFINITY;
    }
    return b;
}

static void nearest_all(const tnf_book *b, const tnf_kmeans_kernels *k, uint8_t *codes)
{
    for (size_t r = 0; r < ROWS; r += TNF_TILE)
        k->nearest(b, columns + r, ROWS, codes + r);
}

static double squared_distance(const tnf_book *b, size_t row, size_t c)
{
    double sum = 0;
    for (size_t i = 0; i < b->width; i++) {
        double off = (double)columns[i * ROWS + row] - b->centroids[c * b->width + i];
        sum += off * off;
    }
    return sum;
}

static void check_nearest(const tnf_book *b)
{
    uint8_t expected[ROWS], codes[ROWS];
    const tnf_kernels *k;
    nearest_all(b, &tnf_kmeans_portable, expected);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < b->k; c++)
            if (!(squared_distance(b, r, expected[r]) <= squared_distance(b, r, c) + 1e-5))
                fail_msg("row %zu: %u is not nearer than %zu", r, expected[r], c);
    for (size_t i = 0; (k = tnf_kernels_at(i)); i++) {
        nearest_all(b, tnf_kmeans_named(k->name), codes);
        assert_memory_equal(codes, expected, sizeof codes);
    }
}

static void nearest_centroids(void **state)
{
    static const size_t sizes[] = { 2, 4, 8, 16, 32, 128, 256 };
    uint64_t seed = 7;
    (void)state;
    for (size_t width = 1; width <= MAX_WIDTH; width++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (size_t i = 0; i < sizes[s] * width; i++)
                centroids[i] = random_float(&seed);
            for (size_t i = 0; i < ROWS * width; i++)
                columns[i] = random_float(&seed);
            tnf_book b = make_book(width, sizes[s]);
            check_nearest(&b);
        }
}

/* Of centroids that are equal, or equally far away, the first is taken. */
static void ties_go_to_the_first(void **state)
{
    uint8_t codes[ROWS];
    const tnf_kernels *k;
    (void)state;
    for (size_t c = 0; c < MAX_K; c++) /* 0, 1 … 7, each eight times, then the same again */
        centroids[c] = (float)(c / 8 % 8);
    for (size_t r = 0; r < ROWS; r++)
        columns[r] = (float)(r % 16) / 2; /* every second is between two centroids */
    tnf_book b = make_book(1, MAX_K);
    for (size_t i = 0; (k = tnf_kernels_at(i)); i++) {
        nearest_all(&b, tnf_kmeans_named(k->name), codes);
        for (size_t r = 0; r < ROWS; r++)
            assert_int_equal(codes[r], r % 16 / 2 * 8);
    }
    memset(columns, 0, sizeof columns);
    memset(centroids, 0, sizeof centroids);
    b = make_book(2, 2);
    check_nearest(&b);
}

/* These are tests of reductive, which finalfusion uses for quantizing. */
static void as_reductive_does(void **state)
{
    static const float given[] = { .5F, 0, 0, 0, -1, 0, 0, 0, 1, 0, 1, 1 };
    static const float rows[7][3] = { { 0, .5F, 0 }, { 0, 0, 2 },     { 1, 0, 0 }, { 0, 0, 1 },
                                      { 0, -2, 0 },  { 0, .7F, .7F }, { 0, 0, 0 } };
    static const uint8_t expected[] = { 0, 2, 0, 2, 1, 3, 0 };
    uint8_t codes[ROWS];
    const tnf_kernels *k;
    (void)state;
    memcpy(centroids, given, sizeof given);
    tnf_book b = make_book(3, 4);
    memset(columns, 0, sizeof columns);
    for (size_t r = 0; r < 7; r++)
        for (size_t i = 0; i < 3; i++)
            columns[i * ROWS + r] = rows[r][i];
    for (size_t i = 0; (k = tnf_kernels_at(i)); i++) {
        nearest_all(&b, tnf_kmeans_named(k->name), codes);
        assert_memory_equal(codes, expected, sizeof expected);
    }
}

static void matrix_products(void **state)
{
    enum { MAX = 40, PITCH = 144 };
    static float x[MAX * MAX], y[MAX * PITCH], expected[MAX * PITCH], got[MAX * PITCH];
    uint64_t seed = 3;
    const tnf_kernels *k;
    (void)state;
    for (size_t i = 0; i < MAX * MAX; i++)
        x[i] = random_float(&seed);
    for (size_t i = 0; i < MAX * PITCH; i++)
        y[i] = random_float(&seed);
    for (size_t rows = 1; rows < MAX; rows += 6)
        for (size_t depth = 0; depth < MAX; depth += 13)
            for (size_t cols = 16; cols <= PITCH; cols += 32) {
                tnf_product p = { x, y, expected, rows, depth, cols, MAX, PITCH, PITCH };
                memset(expected, 0x55, sizeof expected);
                tnf_kmeans_portable.product(&p);
                for (size_t r = 0; r < rows; r++)
                    for (size_t c = 0; c < cols; c++) {
                        double sum = 0;
                        for (size_t a = 0; a < depth; a++)
                            sum += (double)x[r * MAX + a] * y[a * PITCH + c];
                        assert_true(fabs(sum - expected[r * PITCH + c]) < 1e-5);
                    }
                p.out = got;
                for (size_t i = 0; (k = tnf_kernels_at(i)); i++) {
                    memset(got, 0x55, sizeof got);
                    tnf_kmeans_named(k->name)->product(&p);
                    assert_memory_equal(got, expected, sizeof got);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_centroids),
        cmocka_unit_test(ties_go_to_the_first),
        cmocka_unit_test(as_reductive_does),
        cmocka_unit_test(matrix_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
