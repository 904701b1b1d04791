/* SPDX-License-Identifier: MIT */
/* Hexadecimal digits, printed and read. */
#include "../support/unit.h"
#include "base/hex.h"

static void test_digits(void **state)
{
    static const char upper[] = "0123456789ABCDEF", lower[] = "0123456789abcdef";
    (void)state;
    for (int c = 0; c < 256; c++) {
        const char *at = c ? strchr(upper, c) : NULL, *small = c ? strchr(lower, c) : NULL;
        int value = at ? (int)(at - upper) : small ? (int)(small - lower) : -1;
        assert_int_equal(tnf_hex_digit((char)c), value);
    }
}

static void test_bytes(void **state)
{
    static const uint8_t bytes[] = { 0x00, 0x9f, 0xa0, 0xff };
    char text[9];
    uint8_t back[4];
    (void)state;
    *tnf_hex_put(text, bytes, sizeof bytes) = 0;
    assert_string_equal(text, "009fa0ff");
    assert_true(tnf_hex_take(back, text, sizeof back));
    assert_memory_equal(back, bytes, sizeof bytes);
    assert_true(tnf_hex_take(back, "9FA", 1)); /* the bytes after them do not matter */
    assert_int_equal(back[0], 0x9f);
    assert_true(tnf_hex_take(back, "", 0));
    assert_false(tnf_hex_take(back, "0g", 1));
    assert_false(tnf_hex_take(back, "g0", 1));
}

static void test_percent(void **state)
{
    char text[4] = "";
    (void)state;
    tnf_hex_percent(text, '/');
    assert_string_equal(text, "%2F");
    tnf_hex_percent(text, (char)0xfe);
    assert_string_equal(text, "%FE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
