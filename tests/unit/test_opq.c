/* SPDX-License-Identifier: MIT */
/* Rotations: covariances, eigenvectors and how they are distributed, nearest rotations. */
#include "../support/memory.h"
#include "emb_files.h"
#include "ext/emb/pq_train.h"

static void expect_shares(const double *values, const size_t *expected)
{
    size_t order[6];
    tnf_error e;
    tnf_arena arena;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &a, 1 << 20);
    assert_ok(tnf_opq_share(values, 6, 3, order, &arena, &e));
    assert_memory_equal(order, expected, sizeof order);
    tnf_arena_free(&arena);
}

/* The first two of reductive's tests. */
static void shares_of_eigenvalues(void **state)
{
    (void)state;
    expect_shares((double[]) { .2, .6, .4, .1, .3, .5 }, (size_t[]) { 1, 3, 5, 0, 2, 4 });
    expect_shares((double[]) { 11174, 23450, 30835, 1557, 32425, 5154 },
                  (size_t[]) { 4, 3, 2, 5, 1, 0 });
    /* Eigenvalues that are 0, or negative because of rounding, are the smallest. */
    expect_shares((double[]) { -1e-17, 0, 1e-20, 1, 2, 3 }, (size_t[]) { 5, 0, 4, 1, 3, 2 });
    expect_shares((double[]) { 0, 0, 0, 0, 0, 0 }, (size_t[]) { 5, 4, 3, 2, 1, 0 });
}

/* Rows of reductive's tests: (0,2), (1,1), (2,0). And rows far away from 0: a covariance from
 * products of complete rows would lose all digits there. */
static void covariance_of_rows(void **state)
{
    static const float near_zero[] = { 0, 2, 1, 1, 2, 0 };
    static const float far_away[] = { 10000, 10002, 10001, 10001, 10002, 10000 };
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_error e;
    (void)state;
    for (int far = 0; far < 2; far++) {
        tnf_rows rows = { .kind = TNF_ROWS_F32, .n = 3, .d = 2 };
        tnf_arena arena;
        tnf_trainer t = { .arena = &arena, .alloc = &a, .m = 1, .k = 2 };
        rows.data.p = far ? far_away : near_zero;
        tnf_arena_init(&arena, &a, 1 << 28);
        assert_ok(tnf_row_feed_init(&t.feed, &rows, &tnf_kmeans_portable, 1, &arena, &e));
        assert_ok(tnf_opq_room(&t, &e));
        assert_ok(tnf_opq_covariance(&t, &e));
        assert_near(t.matrices[0], 1, 1e-6);
        assert_near(t.matrices[1], -1, 1e-6);
        assert_near(t.matrices[2], -1, 1e-6);
        assert_near(t.matrices[3], 1, 1e-6);
        tnf_arena_free(&arena);
    }
}

/* Rows longer than a block has rows, in more than one group. */
static void long_rows(void **state)
{
    enum { N = 1100, D = 70 * 16 };
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_rows rows = { .kind = TNF_ROWS_F32, .n = N, .d = D };
    tnf_arena arena;
    tnf_trainer t = { .arena = &arena, .alloc = &a, .m = 1, .k = 2 };
    float *values = malloc(sizeof(float) * N * D);
    double means[D] = { 0 };
    tnf_error e;
    (void)state;
    for (size_t i = 0; i < (size_t)N * D; i++) {
        values[i] = (float)(i * 7919 % 1009) / 1009;
        means[i % D] += values[i] / N;
    }
    rows.data.p = values;
    tnf_arena_init(&arena, &a, 1 << 28);
    assert_ok(tnf_row_feed_init(&t.feed, &rows, tnf_kmeans_named(tnf_kernels_at(0)->name), 2,
                                &arena, &e));
    assert_true(t.feed.block < D);
    assert_ok(tnf_opq_room(&t, &e));
    assert_true(t.matrix_groups > 1);
    assert_ok(tnf_opq_covariance(&t, &e));
    for (size_t i = 0; i < D; i += 97)
        for (size_t j = 0; j < D; j += 101) {
            double sum = 0;
            for (size_t r = 0; r < N; r++)
                sum += (values[r * D + i] - means[i]) * (values[r * D + j] - means[j]);
            assert_near(t.matrices[i * D + j], sum / (N - 1), 1e-6);
        }
    tnf_arena_free(&arena);
    free(values);
}

static void finds_eigenvectors(void **state)
{
    /* The eigenvectors: (1,1)/sqrt 2 for 1 and (1,-1)/sqrt 2 for 3. */
    double matrix[] = { 2, -1, -1, 2 }, values[2], h = sqrt(.5);
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_error e;
    (void)state;
    if (tnf_opq_ready(NULL) != TNF_OK) {
        assert_fails(tnf_eigen(matrix, 2, values, &a, &e), TNF_EUNSUPPORTED);
        return;
    }
    assert_ok(tnf_eigen(matrix, 2, values, &a, &e));
    assert_near(values[0], 1, 1e-12);
    assert_near(values[1], 3, 1e-12);
    assert_near(matrix[0], h, 1e-12);
    assert_near(matrix[1], h, 1e-12);
    assert_near(fabs(matrix[2]), h, 1e-12);
    assert_near(matrix[2] + matrix[3], 0, 1e-12);
    double diagonal[] = { -5, 0, 0, 0, 1, 0, 0, 0, -7 }, three[3];
    assert_ok(tnf_eigen(diagonal, 3, three, &a, &e));
    static const double expected[] = { 0, 0, 1, 1, 0, 0, 0, 1, 0 };
    for (size_t i = 0; i < 9; i++)
        assert_near(diagonal[i], expected[i], 1e-12);
}

/* If a matrix is a rotation times a stretching, its nearest rotation is that rotation. */
static void finds_nearest_rotation(void **state)
{
    enum { D = 3 };
    static const double turn[D * D] = { 0, -1, 0, .6, 0, .8, .8, 0, -.6 };
    static const double stretch[D * D] = { 3, 1, 0, 1, 2, .5, 0, .5, 1 }; /* positive definite */
    double matrix[D * D] = { 0 }, out[D * D];
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_error e;
    (void)state;
    for (size_t i = 0; i < D; i++)
        for (size_t j = 0; j < D; j++)
            for (size_t k = 0; k < D; k++)
                matrix[i * D + k] += turn[i * D + j] * stretch[j * D + k];
    if (tnf_opq_ready(NULL) != TNF_OK) {
        assert_fails(tnf_nearest_rotation(matrix, D, out, &a, &e), TNF_EUNSUPPORTED);
        return;
    }
    assert_ok(tnf_nearest_rotation(matrix, D, out, &a, &e));
    for (size_t i = 0; i < D * D; i++)
        assert_near(out[i], turn[i], 1e-12);
}

static void no_memory(void **state)
{
    double matrix[] = { 2, -1, -1, 2 }, out[4];
    tnf_error e;
    (void)state;
    if (tnf_opq_ready(NULL) != TNF_OK)
        skip();
    struct memory_log log = { .fail_at = 1 };
    tnf_allocator a = memory_allocator(&log);
    assert_fails(tnf_eigen(matrix, 2, out, &a, &e), TNF_ENOMEM);
    assert_fails(tnf_nearest_rotation(matrix, 2, out, &a, &e), TNF_ENOMEM);
    assert_int_equal(log.blocks, 0);
    assert_fails(tnf_eigen(matrix, 16385, out, &a, &e), TNF_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_eigenvalues),
        cmocka_unit_test(covariance_of_rows),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(finds_eigenvectors),
        cmocka_unit_test(finds_nearest_rotation),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
