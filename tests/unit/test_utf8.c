/* SPDX-License-Identifier: MIT */
/* UTF-8: the place at which a text stops being valid, as in CPython, for strings of all lengths. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The place at which CPython's bytes.decode() fails; -1: it does not fail. */
static const struct {
    const char *bytes;
    size_t n;
    int bad_at;
} cases[] = {
    { "", 0, -1 },
    { "abc", 3, -1 },
    { "\xc3\xa9", 2, -1 },
    { "\xc0\x80", 2, 0 },
    { "\xc1\xbf", 2, 0 },
    { "a\x80", 2, 1 },
    { "\xe2\x82", 2, 0 },
    { "\xe2\x82\xac", 3, -1 },
    { "\xe0\x9f\xbf", 3, 0 },
    { "\xe0\xa0\x80", 3, -1 },
    { "\xed\x9f\xbf", 3, -1 },
    { "\xed\xa0\x80", 3, 0 },
    { "\xed\xbf\xbf", 3, 0 },
    { "\xee\x80\x80", 3, -1 },
    { "\xf0\x8f\xbf\xbf", 4, 0 },
    { "\xf0\x90\x80\x80", 4, -1 },
    { "\xf4\x8f\xbf\xbf", 4, -1 },
    { "\xf4\x90\x80\x80", 4, 0 },
    { "\xf5\x80\x80\x80", 4, 0 },
    { "\xff", 1, 0 },
    { "\xfe", 1, 0 },
    { "ab\xe2\x41\x42", 5, 2 },
    { "\xf0\x9f\x98", 3, 0 },
    { "\xf0\x9f\x98\x80x", 5, -1 },
    { "\xc3\xa9\xc3", 3, 2 },
    { "\0\0\0", 3, -1 },
    { "\xef\xbb\xbfx", 4, -1 },
    { "0123456701234567012345670123456701234567\xff\x61\x62", 43, 40 },
    { "0123456789abcdef0123456789abcde\xc3\xa9", 33, -1 },
    { "0123456789abcdef0123456789abcde\xc3", 32, 31 },
    { "\xf8\x88\x80\x80\x80", 5, 0 },
    { "\xc3\xa9\xc3\xa9\x61\x62\x63\x64\x65\x66gh\xe9", 13, 12 },
};

static void stops_where_python_stops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bad_at = 99;
        bool ok = tnf_utf8_valid(&bad_at, cases[i].bytes, cases[i].n);
        assert_int_equal(ok, cases[i].bad_at < 0);
        assert_int_equal(bad_at, ok ? 99 : cases[i].bad_at);
        assert_int_equal(tnf_utf8_valid(NULL, cases[i].bytes, cases[i].n), ok);
    }
}

static uint32_t count_valid(size_t n)
{
    uint32_t valid = 0;
    for (uint32_t i = 0; i < 1u << 8 * n; i++) {
        const char bytes[3] = { (char)i, (char)(i >> 8), (char)(i >> 16) };
        valid += tnf_utf8_valid(NULL, bytes, n);
    }
    return valid;
}

/* All strings of up to three bytes. Unicode has 128 scalar values of one byte, 1920 of two, and
 * 61440 of three (65536 - 2048 - 2048 surrogates). */
static void short_strings_are_counted(void **state)
{
    (void)state;
    assert_int_equal(count_valid(1), 128);
    assert_int_equal(count_valid(2), 128 * 128 + 1920);
    assert_int_equal(count_valid(3), 128 * 128 * 128 + 2 * 128 * 1920 + 61440);
}

/* Four bytes: F0 has 48 legal second bytes, F1 to F3 have 64 each, F4 has 16. */
static void four_byte_forms_are_counted(void **state)
{
    (void)state;
    static const char tails[4] = { '\x7f', '\x80', '\xbf', '\xc0' };
    uint32_t valid = 0;
    for (unsigned lead = 0xf0; lead <= 0xff; lead++)
        for (unsigned second = 0; second < 256; second++)
            for (unsigned t = 0; t < 16; t++) {
                const char bytes[4] = { (char)lead, (char)second, tails[t & 3], tails[t >> 2] };
                valid += tnf_utf8_valid(NULL, bytes, 4);
            }
    assert_int_equal(valid, (48 + 3 * 64 + 16) * 2 * 2);
}

/* One wrong byte at every place of a long string. The memory ends with the string, so that reading
 * further is detected. */
static void every_position_is_looked_at(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 100; n++) {
        char *text = malloc(n);
        assert_non_null(text);
        memset(text, 'a', n);
        assert_true(tnf_utf8_valid(NULL, text, n));
        assert_true(tnf_ascii(text, n));
        for (size_t i = 0; i < n; i++) {
            size_t bad_at = 0;
            text[i] = '\x80';
            assert_false(tnf_utf8_valid(&bad_at, text, n));
            assert_int_equal(bad_at, i);
            assert_false(tnf_ascii(text, n));
            text[i] = 'a';
        }
        text[n - 1] = '\xf0'; /* the first byte of a sequence whose rest is missing */
        assert_false(tnf_utf8_valid(NULL, text, n));
        free(text);
    }
    assert_true(tnf_utf8_valid(NULL, NULL, 0));
    assert_true(tnf_ascii(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_where_python_stops),
        cmocka_unit_test(short_strings_are_counted),
        cmocka_unit_test(four_byte_forms_are_counted),
        cmocka_unit_test(every_position_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
