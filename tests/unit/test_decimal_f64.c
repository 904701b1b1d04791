/* SPDX-License-Identifier: MIT */
/* Doubles as text: what printf() writes in any locale, and numbers without their points. */
#include "../support/unit.h"
#include "base/decimal.h"

#include <math.h>

static void check_point(const char *written, const char *expected)
{
    char text[64];
    snprintf(text, sizeof text, "%s", written);
    tnf_number_point(text);
    assert_string_equal(text, expected);
}

static void any_point_becomes_a_point(void **state)
{
    (void)state;
    check_point("0.5", "0.5");
    check_point("0,5", "0.5");
    check_point("-12,25e-07", "-12.25e-07");
    check_point("1\xd9\xab"
                "5e+10",
                "1.5e+10"); /* U+066B, as in Pashto */
    check_point("-3e+300", "-3e+300");
    check_point("17", "17");
    check_point("inf", "inf");
    check_point("-nan", "-nan");
    check_point("", "");
}

static void doubles_come_back(void **state)
{
    static const double numbers[] = { 0.1,  -0.0,    1e300, 4.9406564584124654e-324,
                                      -1.5, 1234567, 1e16,  1.7976931348623157e308 };
    char text[TNF_F64_TEXT];
    double back;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_true(tnf_f64_text(text, numbers[i]) == text);
        assert_true(tnf_f64_parse(&back, text, strlen(text)));
        assert_memory_equal(&back, &numbers[i], sizeof back);
    }
    assert_string_equal(tnf_f64_text(text, 0.1), "0.10000000000000001");
    assert_true(tnf_f64_parse(&back, tnf_f64_text(text, -(double)INFINITY), 4));
    assert_true(back == -(double)INFINITY);
    assert_true(tnf_f64_parse(&back, "nan", 3) && isnan(back));
}

static void check_plain(const char *text, const char *expected)
{
    char plain[64 + TNF_NUMBER_MORE];
    bool done = tnf_number_plain(plain, text, strlen(text));
    assert_int_equal(done, expected != NULL);
    if (expected)
        assert_string_equal(plain, expected);
}

static void points_move_to_the_exponent(void **state)
{
    (void)state;
    check_plain("-12.5e3", "-125e2");
    check_plain("1", "1e0");
    check_plain("+.25", "+25e-2");
    check_plain("7.", "7e0");
    check_plain("1E-3", "1e-3");
    check_plain("0.001e+2", "0001e-1");
    check_plain("1e99999999999999999999", "1e9999999");
    check_plain("", NULL);
    check_plain("-", NULL);
    check_plain(".", NULL);
    check_plain("1,5", NULL);
    check_plain("1.2.3", NULL);
    check_plain("1e", NULL);
    check_plain("1e+", NULL);
    check_plain("1e2.5", NULL);
    check_plain(" 1", NULL);
    check_plain("1 ", NULL);
    check_plain("inf", NULL);
    check_plain("0x10", NULL);
}

static void other_texts_are_refused(void **state)
{
    static const char *const texts[] = { "", "inf ", "infinity", "1,5", "abc", "-", "NaN", "1e" };
    char many[TNF_F64_TEXT + 2];
    double out;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(tnf_f64_parse(&out, texts[i], strlen(texts[i])));
    memset(many, '1', sizeof many);
    assert_true(tnf_f64_parse(&out, many, TNF_F64_TEXT));
    assert_false(tnf_f64_parse(&out, many, TNF_F64_TEXT + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_point_becomes_a_point),
        cmocka_unit_test(doubles_come_back),
        cmocka_unit_test(points_move_to_the_exponent),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
