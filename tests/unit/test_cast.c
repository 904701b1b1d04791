/* SPDX-License-Identifier: MIT */
/* Floats saved as doubles are the same numbers; other types do not change; other targets are
 * refused.
 */
#include "../support/little.h"
#include "diff_files.h"
#include <math.h>

#define N 100003u /* larger than a buffer, and not a round number */

static float numbers[N];

static void to_doubles(void **state)
{
    (void)state;
    static const uint16_t halves[] = { 0x3c00, 0x0001, 0x7bff, 0xfc00 };
    static const double expected[] = { 1, 0x1p-24, 65504, -INFINITY };
    tnf_error e;
    struct made m = begin_file();
    tnf_sink *sink;
    tnf_source *source;
    tnf_save_options o = { .size = sizeof o, .format = "safetensors", .dtype = "f64" };
    for (size_t i = 0; i < N; i++)
        numbers[i] = ldexpf((float)(int)(i % 4001) - 2000, (int)(i % 200) - 100);
    add_tensor(&m, "w", "f32", N, numbers);
    add_tensor(&m, "h", "f16", 4, halves);
    add_tensor(&m, "i", "i32", 4, numbers);
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(m.b, sink, &o, &e));
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&m.file, source, NULL, &e));
    const tnf_part *w = tnf_find(m.file, "w")->parts, *h = tnf_find(m.file, "h")->parts;
    double *x = malloc(N * sizeof *x), y[4];
    assert_non_null(x);
    assert_string_equal(w->type->id, "f64");
    assert_string_equal(h->type->id, "f64");
    assert_string_equal(tnf_find(m.file, "i")->parts->type->id, "i32");
    assert_ok(tnf_read_part(x, N * sizeof *x, w, 0, &e));
    from_little(x, 8, N);
    for (size_t i = 0; i < N; i++)
        assert_true(x[i] == (double)numbers[i]);
    assert_ok(tnf_read_part(y, sizeof y, h, 0, &e));
    from_little(y, 8, 4);
    assert_memory_equal(y, expected, sizeof y);
    free(x);
    tnf_sink_close(sink);
    discard_file(&m);
}

static void refuses_other_targets(void **state)
{
    (void)state;
    static const char *const targets[] = { "i32", "c64", "f4_e2m1", "floats", "" };
    tnf_error e;
    struct made m = begin_file();
    add_tensor(&m, "w", "f32", 1, numbers);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        tnf_save_options o = { .size = sizeof o, .format = "safetensors", .dtype = targets[i] };
        tnf_sink *sink;
        assert_ok(tnf_sink_memory(&sink, &e));
        assert_fails(tnf_save_sink(m.b, sink, &o, &e), TNF_EINVAL);
        assert_says("floats cannot be cast to");
        tnf_sink_close(sink);
    }
    discard_file(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(to_doubles),
                                        cmocka_unit_test(refuses_other_targets) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
