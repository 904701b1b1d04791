/* SPDX-License-Identifier: MIT */
/* Printing f32: against the fewest digits that exact arithmetic finds (decimal_vectors.h), and read
 * again over ranges of all bits. */
#include "../support/unit.h"
#include "base/decimal.h"

#include "decimal_vectors.h"

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void check(uint32_t bits, const char *plain, const char *python)
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
        check(print_cases[i].bits, print_cases[i].plain, print_cases[i].python);
}

static void special(void **state)
{
    (void)state;
    check(0, "0", "0.0");
    check(0x80000000, "-0", "-0.0");
    check(0x7f800000, "inf", "inf");
    check(0xff800000, "-inf", "-inf");
    check(0x7fc00000, "NaN", "nan");
    check(0xffc00000, "-NaN", "-nan");
    check(0x7f800001, "NaN(0x000001)", "nan(0x000001)");
    check(0xffc00001, "-NaN(0x400001)", "-nan(0x400001)");
    check(0xbf800000, "-1", "-1.0");
}

static void check_range(uint32_t from, uint32_t count)
{
    for (uint32_t bits = from; bits < from + count; bits++) {
        char text[2][TNF_F32_TEXT];
        size_t n[2] = { tnf_f32_text(text[0], float_of(bits)),
                        tnf_f32_repr(text[1], float_of(bits)) };
        for (int i = 0; i < 2; i++) {
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
        cmocka_unit_test(special),
        cmocka_unit_test(all_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
