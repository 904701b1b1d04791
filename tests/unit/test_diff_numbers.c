/* SPDX-License-Identifier: MIT */
/* Comparing values: as bits or numbers, tolerances by numpy's rule, numbers that doubles cannot
 * hold, other types. Expected results were computed by hand or with numpy. */
#include "base/bytes.h"
#include "diff_files.h"
#include <math.h>

/* -------------------------------------------------------------- tolerances */

static void exact_or_numeric(void **state)
{
    (void)state;
    struct told t;
    static const uint32_t a[] = { 0, 0x7fc00000, 0x7f800000, 0x3f800000 };
    static const uint32_t b[] = { 0x80000000, 0x7fc00001, 0x7f800000, 0x3f800000 };
    tnf_diff_options numeric = { .numeric = true };
    tnf_diff_result r = compare_data(&t, "f32", a, "f32", b, 4, (tnf_diff_options) { 0 });
    assert_false(r.same);
    assert_int_equal(t.values[0].different, 2);
    assert_int_equal(t.values[0].nonfinite, 1);
    r = compare_data(&t, "f32", a, "f32", b, 4, numeric);
    assert_true(r.same);
    assert_int_equal(r.close, 1);
    numeric.nan_differs = true;
    r = compare_data(&t, "f32", a, "f32", b, 4, numeric);
    assert_int_equal(t.values[0].different, 1);
    assert_int_equal(t.values[0].first, 1);
    r = compare_data(&t, "f32", a, "f32", a, 4, (tnf_diff_options) { .nan_differs = true });
    assert_int_equal(t.values[0].different, 1);
    r = compare_data(&t, "f32", &a[2], "f32", &a[2], 2, (tnf_diff_options) { .nan_differs = true });
    assert_true(r.same);
    assert_int_equal(r.close, 0);
}

/* numpy.isclose(a, b, rtol=0.01, atol=0.001): the tolerance is relative to b. */
static void by_numpys_rule(void **state)
{
    (void)state;
    struct told t;
    tnf_diff_options how = { .numeric = true, .rtol = 0.01, .atol = 0.001 };
    const double inf = HUGE_VAL;
    const double a[] = { 100, 101.0, 0.001, 0.0011, inf, inf, 5, -inf };
    const double b[] = { 101, 100.0, 0, 0, inf, 5, inf, inf };
    tnf_diff_result r = compare_data(&t, "f64", a, "f64", b, 8, how);
    assert_false(r.same);
    /* 100/101: 1 <= 1.011; 101/100: 1 <= 1.001; 0.001 <= 0.001; 0.0011 > 0.001; inf is only inf */
    assert_int_equal(t.values[0].different, 4);
    assert_int_equal(t.values[0].first, 3);
    assert_int_equal(t.values[0].nonfinite, 3);
    how.rtol = 0;
    r = compare_data(&t, "f64", a, "f64", b, 8, how);
    assert_int_equal(t.values[0].different, 6);
}

static void complex_numbers(void **state)
{
    (void)state;
    struct told t;
    static const float a[] = { 3, 4, 1, 0 }, b[] = { 0, 0, 1, 0 };
    tnf_diff_result r = compare_data(&t, "c64", a, "c64", b, 2, (tnf_diff_options) { 0 });
    assert_int_equal(r.different, 1);
    assert_int_equal(t.values[0].elements, 2);
    assert_int_equal(t.values[0].different, 1);
    assert_float_equal(t.values[0].max_abs, 5, 0);
    r = compare_data(&t, "c64", a, "c64", b, 2, (tnf_diff_options) { .numeric = true, .atol = 5 });
    assert_true(r.same);
    r = compare_data(&t, "c64", a, "c64", b, 2,
                     (tnf_diff_options) { .numeric = true, .atol = 4.99 });
    assert_false(r.same);
}

static void wide_integers(void **state)
{
    (void)state;
    struct told t;
    static const int64_t a[] = { INT64_MAX, INT64_MIN, -1 }, b[] = { INT64_MAX - 1, INT64_MIN, 1 };
    static const uint64_t u[] = { (uint64_t)INT64_MAX, UINT64_MAX, UINT64_MAX };
    static const double f[] = { 9223372036854775808.0, -9223372036854775808.0, -1 };
    tnf_diff_options how = { .numeric = true, .ignore = TNF_DIFF_IGNORE_DTYPE };
    compare_data(&t, "i64", a, "i64", b, 3, how);
    assert_int_equal(t.values[0].different, 2);
    assert_float_equal(t.values[0].max_abs, 2, 0);
    compare_data(&t, "i64", a, "u64", u, 3, how);
    assert_int_equal(t.values[0].different, 2);
    assert_int_equal(t.values[0].first, 1);
    compare_data(&t, "i64", a, "f64", f, 3, how);
    assert_int_equal(t.values[0].different, 1);
    assert_int_equal(t.values[0].first, 0);
    assert_float_equal(t.values[0].max_abs, 1, 0);
}

/* Distances by Python's integers. */
static void integers_of_16_bytes(void **state)
{
    (void)state;
    struct told t;
    uint8_t a[64], b[64], first[16];
    static const uint64_t x[] = { 0, (uint64_t)1 << 63, UINT64_MAX, INT64_MAX, 7, 0, 1, 0 };
    static const uint64_t y[] = { 1, (uint64_t)1 << 63, UINT64_MAX, INT64_MAX, 7, 0, 0, 1 };
    static const double f[] = { -0x1p127, 0x1p127, 7, 0x1p64 };
    tnf_diff_options how = { .numeric = true, .ignore = TNF_DIFF_IGNORE_DTYPE };
    for (size_t i = 0; i < 8; i++) {
        tnf_put_le64(a + 8 * i, x[i]);
        tnf_put_le64(b + 8 * i, y[i]);
    }
    memcpy(first, b, sizeof first);
    from_little(a, 16, 4);
    from_little(b, 16, 4);
    /* -2^127 and -2^127 + 1; 1 and 2^64 */
    tnf_diff_result r = compare_data(&t, "i128", a, "i128", b, 4, (tnf_diff_options) { 0 });
    assert_false(r.same);
    assert_true(t.values[0].numbers);
    assert_int_equal(t.values[0].different, 2);
    assert_int_equal(t.values[0].first, 0);
    assert_memory_equal(t.values[0].b, first, 16);
    assert_true(t.values[0].max_abs == 0x1p64);
    compare_data(&t, "i128", a, "i128", b, 1, how);
    assert_true(t.values[0].max_abs == 1);
    how.atol = 1;
    r = compare_data(&t, "i128", a, "i128", b, 3, how);
    assert_true(r.same);
    /* as unsigned ones, the first is 2^127: -2^127 is 2^128 apart */
    how.atol = 0;
    compare_data(&t, "i128", a, "u128", a, 1, how);
    assert_true(t.values[0].max_abs == 0x1p128);
    compare_data(&t, "i128", b, "f64", f, 4, how);
    assert_int_equal(t.values[0].different, 2); /* by 1 each */
    assert_true(t.values[0].max_abs == 1);
    compare_data(&t, "u128", a + 32, "u64", &x[4], 1, how); /* 7 */
    assert_int_equal(t.n, 0);
}

static void other_types(void **state)
{
    (void)state;
    struct told t;
    static const float f[] = { 1, 2, 3, 100000 };
    static const uint16_t half[] = { 0x3c00, 0x4000, 0x4200, 0x7c00 };
    static const uint8_t whole[] = { 1, 2, 3, 4 };
    tnf_diff_options how = { .ignore = TNF_DIFF_IGNORE_DTYPE };
    tnf_diff_result r = compare_data(&t, "f32", f, "f16", half, 3, how);
    assert_true(r.same);
    assert_int_equal(r.close, 0);
    r = compare_data(&t, "f32", f, "f16", half, 4, how);
    assert_int_equal(t.values[0].different, 1);
    assert_int_equal(t.values[0].nonfinite, 1);
    r = compare_data(&t, "f32", f, "u8", whole, 3, how);
    assert_true(r.same);
    r = compare_data(&t, "f32", f, "f16", half, 3, (tnf_diff_options) { 0 });
    assert_int_equal(t.kinds[0], TNF_DIFF_DTYPE);
    assert_int_equal(t.n, 1);
}

static void packed_elements(void **state)
{
    (void)state;
    struct told t;
    static const uint8_t a[] = { 0x21, 0x43, 0x05 }, b[] = { 0x21, 0x4b, 0x05 };
    compare_data(&t, "f4_e2m1", a, "f4_e2m1", b, 5, (tnf_diff_options) { 0 });
    assert_int_equal(t.values[0].elements, 5);
    assert_int_equal(t.values[0].different, 1);
    assert_int_equal(t.values[0].first, 2);
    assert_int_equal(t.values[0].a[0], 0x3);
    assert_int_equal(t.values[0].b[0], 0xb);
    assert_float_equal(t.values[0].max_abs, 3.0, 0); /* 1.5 and -1.5 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_or_numeric),     cmocka_unit_test(by_numpys_rule),
        cmocka_unit_test(complex_numbers),      cmocka_unit_test(wide_integers),
        cmocka_unit_test(integers_of_16_bytes), cmocka_unit_test(other_types),
        cmocka_unit_test(packed_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
