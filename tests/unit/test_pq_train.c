/* SPDX-License-Identifier: MIT */
/* k-means on pieces of rows: codes for given centroids, rounds computed by hand, centroids without
 * rows. */
#include "emb_files.h"
#include "ext/emb/pq_train.h"

#define MAX_D 6u

struct training {
    tnf_rows rows;
    tnf_arena arena;
    tnf_allocator alloc;
    tnf_trainer t;
};

static void begin_training(struct training *x, const float *values, uint64_t n, size_t d, size_t m,
                           size_t k)
{
    tnf_error e;
    *x = (struct training) { .rows = { .kind = TNF_ROWS_F32, .n = n, .d = d } };
    x->rows.data.p = values; /* TNF_ROWS_F32: as the machine has them */
    x->alloc = tnf_allocator_or_default(NULL);
    tnf_arena_init(&x->arena, &x->alloc, 1 << 28);
    x->t = (tnf_trainer) { .arena = &x->arena, .alloc = &x->alloc, .m = m, .k = k };
    x->t.rounds = x->t.attempts = 1;
    assert_ok(tnf_row_feed_init(&x->t.feed, &x->rows, &tnf_kmeans_portable, 1, &x->arena, &e));
    assert_ok(tnf_trainer_room(&x->t, &e));
}

static void set_centroids(tnf_trainer *t, const float *all)
{
    for (size_t m = 0; m < t->m; m++) {
        memcpy(t->centroids + m * t->padded * t->width, all + m * t->k * t->width,
               t->k * t->width * sizeof *all);
        tnf_kmeans_prepare(t, m);
    }
}

/* Codes and their values, from reductive's tests. */
static const float codebook[] = { 1, 0, 0, 0, 1, 0, /* second piece */ 1, -1, 0, 0, 1, 0 };
static const float six[4][6] = { { 0, 2, 0, -.5F, 0, 0 },
                                 { 1, -.2F, 0, .5F, .5F, 0 },
                                 { -.2F, .2F, 0, 0, -2, 0 },
                                 { 1, .2F, 0, 0, -2, 0 } };
static const uint8_t six_codes[4][2] = { { 1, 1 }, { 0, 1 }, { 1, 0 }, { 0, 0 } };
static const float six_again[4][6] = {
    { 0, 1, 0, 0, 1, 0 }, { 1, 0, 0, 0, 1, 0 }, { 0, 1, 0, 1, -1, 0 }, { 1, 0, 0, 1, -1, 0 }
};

static tnf_status check_codes(void *ctx, size_t group, tnf_row_block *b, tnf_error *e)
{
    (void)group;
    (void)e;
    for (size_t piece = 0; piece < 2; piece++) {
        tnf_trainer_encode(ctx, piece, b);
        for (size_t r = 0; r < 4; r++)
            assert_int_equal(b->codes[r], six_codes[r][piece]);
    }
    return TNF_OK;
}

static void encodes_rows(void **state)
{
    struct training x;
    tnf_error e;
    (void)state;
    begin_training(&x, six[0], 4, 6, 2, 2);
    set_centroids(&x.t, codebook);
    assert_ok(tnf_row_feed_run(&x.t.feed, 1, check_codes, &x.t, &e));
    tnf_arena_free(&x.arena);
}

/* The same codebook in a file gives these reconstructions. */
static void decodes_codes(void **state)
{
    struct made m = { .rows = 4, .dims = 6, .codes = six_codes[0], .m = 2, .k = 2 };
    float row[6];
    tnf_error e;
    (void)state;
    m.codebooks = codebook;
    struct opened x = open_made(&m, NULL);
    for (uint64_t r = 0; r < 4; r++) {
        assert_ok(tnf_emb_row(row, x.emb, r, &e));
        near_all(row, six_again[r], 6, 0);
    }
    close_opened(&x);
}

/* 0, 1 | 10, 11, 12, from the centroids 1 and 4 (whose rows are 0, 1 and those above 2.5), by hand.
 * The third centroid is the nearest of no row and does not change. */
static void rounds_by_hand(void **state)
{
    static const float values[] = { 0, 1, 10, 11, 12 };
    struct training x;
    tnf_error e;
    (void)state;
    begin_training(&x, values, 5, 1, 1, 4);
    set_centroids(&x.t, (float[]) { 1, 4, -100, 4 });
    assert_ok(tnf_kmeans_round(&x.t, &e));
    near_all(x.t.centroids, (float[]) { .5F, 11, -100, 4 }, 4, 0);
    assert_ok(tnf_kmeans_round(&x.t, &e)); /* sums began at 0 again */
    near_all(x.t.centroids, (float[]) { .5F, 11, -100, 4 }, 4, 0);
    tnf_arena_free(&x.arena);
}

/* The initial centroids are different rows; if there are fewer rows, all of them. Another attempt
 * uses other rows. */
static void starts_with_rows(void **state)
{
    static float values[300];
    struct training x;
    float first[16];
    (void)state;
    for (size_t i = 0; i < 300; i++)
        values[i] = (float)i;
    begin_training(&x, values, 16, 1, 1, 16);
    tnf_kmeans_start(&x.t, 0);
    float sum = 0, squares = 0;
    for (size_t c = 0; c < 16; c++) {
        sum += x.t.centroids[c];
        squares += x.t.centroids[c] * x.t.centroids[c];
    }
    assert_near(sum, 120, 0);
    assert_near(squares, 1240, 0);
    tnf_arena_free(&x.arena);
    begin_training(&x, values, 300, 1, 1, 16);
    tnf_kmeans_start(&x.t, 0);
    memcpy(first, x.t.centroids, sizeof first);
    tnf_kmeans_start(&x.t, 1);
    assert_memory_not_equal(first, x.t.centroids, sizeof first);
    tnf_kmeans_start(&x.t, 0);
    assert_memory_equal(first, x.t.centroids, sizeof first);
    x.t.seed = 1;
    tnf_kmeans_start(&x.t, 0);
    assert_memory_not_equal(first, x.t.centroids, sizeof first);
    tnf_arena_free(&x.arena);
}

/* Many rows, in several groups and blocks: the sums are those of all rows. */
static void sums_over_groups(void **state)
{
    enum { N = 9000, D = 2 };
    static float values[N * D];
    struct training x;
    tnf_error e;
    (void)state;
    for (size_t i = 0; i < (size_t)N * D; i++)
        values[i] = (float)(i * 7919 % 10007);
    begin_training(&x, values, N, D, 1, 2);
    assert_true(x.t.groups > 1);
    set_centroids(&x.t, (float[]) { -1e4F, 0, 5000, 5000 });
    assert_ok(tnf_kmeans_round(&x.t, &e));
    double mean[D] = { 0 };
    for (size_t i = 0; i < (size_t)N * D; i++)
        mean[i % D] += values[i] / N;
    near_all(x.t.centroids, (float[]) { -1e4F, 0, (float)mean[0], (float)mean[1] }, 4, 1e-2);
    tnf_arena_free(&x.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_rows),     cmocka_unit_test(decodes_codes),
        cmocka_unit_test(rounds_by_hand),   cmocka_unit_test(starts_with_rows),
        cmocka_unit_test(sums_over_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
