/* SPDX-License-Identifier: MIT */
/* Reading decimals: compared with exact arithmetic (decimal_vectors.h), and texts that are not
 * numbers. */
#include "../support/unit.h"
#include "base/decimal.h"

#include "decimal_vectors.h"

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Reads a copy that ends with the text, so that a sanitizer detects reading further. */
static const char *scan_exact(const char *text, float *out, size_t *used)
{
    size_t n = strlen(text);
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    const char *end = tnf_f32_scan(copy, copy + n, out);
    *used = end ? (size_t)(end - copy) : 0;
    free(copy);
    return end ? text + *used : NULL;
}

static void hard_cases(void **state)
{
    (void)state;
    (void)print_cases;
    for (size_t i = 0; i < sizeof read_cases / sizeof *read_cases; i++) {
        float f = 42;
        size_t used;
        assert_non_null(scan_exact(read_cases[i].text, &f, &used));
        assert_int_equal(used, strlen(read_cases[i].text));
        if (bits_of(f) != read_cases[i].bits)
            fail_msg("%s gives %08x, not %08x", read_cases[i].text, bits_of(f), read_cases[i].bits);
    }
}

static void words_for_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t bits;
    } cases[] = {
        { "inf", 0x7f800000 },      { "-Infinity", 0xff800000 },
        { "+INF", 0x7f800000 },     { "nan", 0x7fc00000 },
        { "-NaN", 0xffc00000 },     { "nan(0x400001)", 0x7fc00001 },
        { "NaN(0x1)", 0x7f800001 }, { "-nan(0x7FFFFF)", 0xffffffff },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float f;
        size_t used;
        assert_non_null(scan_exact(cases[i].text, &f, &used));
        assert_int_equal(used, strlen(cases[i].text));
        assert_int_equal(bits_of(f), cases[i].bits);
    }
}

/* The place where the number ends; the caller handles the rest. */
static void what_is_no_number(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int used; /* -1: none */
    } cases[] = {
        { "", -1 },
        { "-", -1 },
        { "+", -1 },
        { ".", -1 },
        { "-.", -1 },
        { "e5", -1 },
        { "x", -1 },
        { "--1", -1 },
        { "+-1", -1 },
        { "in", -1 },
        { " 1", -1 },
        { ",5", -1 },
        { "1e", 1 },
        { "1e+", 1 },
        { "1.2.3", 3 },
        { "0x1p3", 1 },
        { "1_0", 1 },
        { "0,5", 1 },
        { "1 2", 1 },
        { "12345678 ", 8 },
        { "nanx", 3 },
        { "infinit", 3 },
        { "nan(0x0)", 3 },
        { "nan(1)", 3 },
        { "nan(0x800000)", 3 },
        { "nan(0x1", 3 },
        { "nan(", 3 },
        { "1\n", 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float f;
        size_t used;
        const char *end = scan_exact(cases[i].text, &f, &used);
        if ((end ? (int)used : -1) != cases[i].used)
            fail_msg("'%s' is used up to %d", cases[i].text, end ? (int)used : -1);
    }
}

/* More digits than any counter holds. */
static void long_ones(void **state)
{
    (void)state;
    enum { N = 100000 };
    char *text = malloc(N + 10);
    float f;
    assert_non_null(text);
    memset(text, '0', N);
    text[1] = '.';
    memcpy(text + N, "1e99998", 7); /* 0.000…1 with its exponent */
    assert_ptr_equal(tnf_f32_scan(text, text + N + 7, &f), text + N + 7);
    assert_int_equal(bits_of(f), 0x3dcccccd);
    memset(text, '9', N);
    text[1] = '.';
    assert_ptr_equal(tnf_f32_scan(text, text + N, &f), text + N);
    assert_true(f == 10);
    memcpy(text, "16777217.0", 10);
    memset(text + 10, '0', N - 11);
    text[N - 1] = '1'; /* the last digit decides */
    assert_ptr_equal(tnf_f32_scan(text, text + N, &f), text + N);
    assert_true(f == 16777218);
    memcpy(text, "1e999999999999999999999", 23);
    assert_ptr_equal(tnf_f32_scan(text, text + 23, &f), text + 23);
    assert_int_equal(bits_of(f), 0x7f800000);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hard_cases),
        cmocka_unit_test(words_for_numbers),
        cmocka_unit_test(what_is_no_number),
        cmocka_unit_test(long_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
