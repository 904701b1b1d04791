/* SPDX-License-Identifier: MIT */
/* Printing f32: against the fewest digits that exact arithmetic finds (decimal_vectors.h), and read
 * again over ranges of all bits. */
#include "../support/unit.h"
#include "base/decimal.h"

#include "decimal_vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void check_text(uint32_t bits, const char *plain, const char *python)
{
    char text[TNF_F32_TEXT + 1];
    text[tnf_f32_text(text, float_of(bits))] = 0;
    assert_string_equal(text, plain);
    text[tnf_f32_repr(text, float_of(bits))] = 0;
    assert_string_equal(text, python);
}

static void every_exponent(void **state)
{
    (void)state;
    (void)read_cases;
    for (size_t i = 0; i < sizeof print_cases / sizeof *print_cases; i++)
        check_text(print_cases[i].bits, print_cases[i].plain, print_cases[i].python);
}

static void special_numbers(void **state)
{
    (void)state;
    check_text(0, "0", "0.0");
    check_text(0x80000000, "-0", "-0.0");
    check_text(0x7f800000, "inf", "inf");
    check_text(0xff800000, "-inf", "-inf");
    check_text(0x7fc00000, "NaN", "nan");
    check_text(0xffc00000, "-NaN", "-nan");
    check_text(0x7f800001, "NaN(0x000001)", "nan(0x000001)");
    check_text(0xffc00001, "-NaN(0x400001)", "-nan(0x400001)");
    check_text(0xbf800000, "-1", "-1.0");
}

static void check_range(uint32_t from, uint32_t count)
{
    for (uint32_t bits = from; bits < from + count; bits++) {
        char text[3][TNF_F32_TEXT];
        size_t n[3] = { tnf_f32_text(text[0], float_of(bits)),
                        tnf_f32_repr(text[1], float_of(bits)), tnf_f32_c(text[2], float_of(bits)) };
        for (int i = 0; i < 3; i++) {
            float f;
            uint32_t again;
            assert_true(n[i] <= TNF_F32_TEXT);
            assert_ptr_equal(tnf_f32_scan(text[i], text[i] + n[i], &f), text[i] + n[i]);
            memcpy(&again, &f, sizeof again);
            if (again != bits)
                fail_msg("%.*s is %08x, not %08x", (int)n[i], text[i], again, bits);
        }
    }
}

/* The %.5g of C gives the same text. */
static void as_c_prints(void **state)
{
    (void)state;
    char want[32], got[TNF_F32_TEXT + 1];
    uint32_t bits = 12345;
    for (int i = 0; i < 200000; i++) {
        bits = bits * 1664525u + 1013904223u;
        /* a third of them have the size of usual vectors */
        float x = i % 3 ? float_of(bits) : (float)(int32_t)bits / 4e9F;
        if (isnan(x) ||
            (x != 0 && fabsf(x) < 1e-37F)) /* five digits may be too many for a subnormal number */
            continue;
        snprintf(want, sizeof want, "%.5g", (double)x);
        got[tnf_f32_c(got, strtof(want, NULL))] = 0;
        assert_string_equal(got, want);
    }
    static const struct {
        float value;
        const char *text;
    } known[] = { { 1, "1" },
                  { -8.9778e-05F, "-8.9778e-05" },
                  { 0.0001F, "0.0001" },
                  { 99999, "99999" },
                  { 100000, "1e+05" },
                  { 0, "0" },
                  { -0.0F, "-0" },
                  { INFINITY, "inf" },
                  { NAN, "nan" },
                  { 1.25e-30F, "1.25e-30" } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        got[tnf_f32_c(got, known[i].value)] = 0;
        assert_string_equal(got, known[i].text);
    }
}

static void all_come_back(void **state)
{
    (void)state;
    for (uint32_t high = 0; high < 0x1000; high += 8)
        check_range(high << 20, 40);
    check_range(0x3dcc0000, 20000);
    check_range(1, 2000);
    check_range(0x7f7ff000, 0x2000); /* the largest, infinity, NaNs */
    check_range(0xffffff00, 0xff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_exponent),
        cmocka_unit_test(special_numbers),
        cmocka_unit_test(as_c_prints),
        cmocka_unit_test(all_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
