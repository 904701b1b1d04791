/* SPDX-License-Identifier: MIT */
/* A program may treat subnormal numbers as 0 (-ffast-math, -Ofast, torch). The
 * library computes by IEEE 754 all the same, also where it joins the results of several pieces. */
#include "support/flush.h"
#include "support/little.h"
#include "support/unit.h"
#include <tenfold/build.h>
#include <tenfold/diff.h>
#include <tenfold/stat.h>
#include <tenfold/virtual.h>

#define MANY ((size_t)3 << 19) /* doubles: three leaves of 4 MiB */

static struct {
    double *a, *b;
    float *weights;
    tnf_builder *builders[2];
    tnf_file *files[2];
} x;

static tnf_file *file_of(tnf_builder **b, const double *data)
{
    static const uint64_t shape[] = { MANY }, square[] = { 256, 256 }, scales[] = { 2, 2 };
    static const float by[] = { 1e-38F, 3e-39F, 1.1F, 7e-40F };
    tnf_error e;
    tnf_file *file;
    assert_ok(tnf_builder_new(b, NULL, &e));
    assert_ok(
        tnf_builder_add(*b, "d", tnf_type_of(TNF_F64), 1, shape, to_little(data, 8, MANY), &e));
    assert_ok(tnf_builder_add(*b, "w", tnf_type_of(TNF_F32), 2, square,
                              to_little(x.weights, 4, 65536), &e));
    assert_ok(tnf_builder_add(*b, "s", tnf_type_of(TNF_F32), 2, scales, to_little(by, 4, 4), &e));
    assert_ok(tnf_open_builder(&file, *b, NULL, &e));
    return file;
}

static int set_up(void **state)
{
    (void)state;
    x.a = malloc(MANY * sizeof *x.a);
    x.b = malloc(MANY * sizeof *x.b);
    x.weights = malloc(65536 * sizeof *x.weights);
    for (size_t i = 0; i < MANY; i++) {
        x.a[i] = 1e-310 * (double)(i % 1001);
        x.b[i] = i % 5 ? x.a[i] : 3e-312 * (double)(i % 77);
    }
    for (size_t i = 0; i < 65536; i++)
        x.weights[i] = .3F + (float)i / 65536;
    x.files[0] = file_of(&x.builders[0], x.a);
    x.files[1] = file_of(&x.builders[1], x.b);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        tnf_close(x.files[i]);
        tnf_builder_free(x.builders[i]);
    }
    free(x.a);
    free(x.b);
    free(x.weights);
    return 0;
}

static void keep_counts(void *ctx, const tnf_stat *s)
{
    if (s->object->name.p[0] == 'd')
        *(tnf_value_counts *)ctx = *s->counts;
}

static void stat_joins(void **state)
{
    (void)state;
    tnf_error e;
    tnf_value_counts plain, odd;
    tnf_stat_options how = TNF_STAT_INIT;
    how.tensor = keep_counts;
    how.ctx = &plain;
    assert_ok(tnf_stat_file(x.files[0], &how, &e));
    how.ctx = &odd;
    uint32_t mode = flush_begin();
    tnf_status status = tnf_stat_file(x.files[0], &how, &e);
    assert_true(flush_end(mode));
    assert_int_equal(status, TNF_OK);
    assert_true(plain.mean > 0 && plain.max > 0);
    assert_memory_equal(&odd, &plain, sizeof plain);
}

static void keep_values(void *ctx, const tnf_difference *d)
{
    if (d->values)
        *(tnf_value_difference *)ctx = *d->values;
}

static void diff_joins(void **state)
{
    (void)state;
    tnf_error e;
    tnf_value_difference plain, odd;
    tnf_diff_result result = TNF_DIFF_RESULT_INIT;
    tnf_diff_options how = TNF_DIFF_INIT;
    how.difference = keep_values;
    how.ctx = &plain;
    assert_ok(tnf_diff(&result, x.files[0], x.files[1], &how, &e));
    how.ctx = &odd;
    uint32_t mode = flush_begin();
    tnf_status status = tnf_diff(&result, x.files[0], x.files[1], &how, &e);
    assert_true(flush_end(mode));
    assert_int_equal(status, TNF_OK);
    assert_true(plain.max_abs > 0 && plain.mean_abs > 0 && plain.different > 0);
    assert_memory_equal(&odd, &plain, sizeof plain);
}

static void virtual_products(void **state)
{
    (void)state;
    tnf_error e;
    tnf_virtual *v;
    static float plain[65536], odd[65536];
    const tnf_object *sources[] = { tnf_find(x.files[0], "w"), tnf_find(x.files[0], "s") };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_SCALED;
    assert_ok(tnf_virtual_new(&v, sources, 2, &how, &e));
    assert_ok(tnf_read(plain, sizeof plain, tnf_virtual_object(v), &e));
    tnf_virtual_free(v);
    uint32_t mode = flush_begin();
    tnf_status made = tnf_virtual_new(&v, sources, 2, &how, &e);
    tnf_status got = made ? made : tnf_read(odd, sizeof odd, tnf_virtual_object(v), &e);
    assert_true(flush_end(mode));
    assert_int_equal(made, TNF_OK);
    assert_int_equal(got, TNF_OK);
    tnf_virtual_free(v);
    assert_true(plain[0] > 0 && plain[255] > 0 && plain[65535] > 0);
    assert_memory_equal(odd, plain, sizeof plain);
}

int main(void)
{
#define WITH_FILES(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FILES(stat_joins),
        WITH_FILES(diff_joins),
        WITH_FILES(virtual_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
