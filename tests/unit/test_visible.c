/* SPDX-License-Identifier: MIT */
/* Characters that must be escaped, by their names in the standard, and that messages escape
 * them. */
#include "../support/unit.h"
#include "base/error.h"

/* Unicode 15: Cc, Zl, Zp, Bidi_Control and Default_Ignorable_Code_Point without the variation
 * selectors FE00..FE0F, and U+FFF9..FFFB, FFFE, FFFF. */
static const struct {
    uint32_t first, last;
} wanted[] = {
    { 0x00, 0x1f },       { 0x7f, 0x9f },       { 0xad, 0xad },       { 0x34f, 0x34f },
    { 0x61c, 0x61c },     { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
    { 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x3164, 0x3164 },
    { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },   { 0xfffe, 0xffff },
    { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

static void the_table(void **state)
{
    (void)state;
    size_t at = 0, n = sizeof wanted / sizeof *wanted;
    for (uint32_t c = 0; c <= 0x110000; c++) {
        while (at < n && c > wanted[at].last)
            at++;
        assert_int_equal(tnf_must_escape(c), at < n && c >= wanted[at].first);
    }
    assert_false(tnf_must_escape(UINT32_MAX));
}

static void check_quoted(const char *name, const char *text)
{
    char out[72], whole[72];
    tnf_error e;
    snprintf(whole, sizeof whole, "'%s'", text);
    assert_string_equal(tnf_quote(out, sizeof out, name, strlen(name)), whole);
    assert_string_equal(tnf_visible(out, sizeof out, name), text);
    (void)tnf_fail(&e, TNF_EFORMAT, 0, "no");
    tnf_error_prefix(&e, name);
    snprintf(whole, sizeof whole, "%s: no", text);
    assert_string_equal(e.message, whole);
}

static void messages_escape(void **state)
{
    (void)state;
    check_quoted("plain \xc3\xa9 \xe2\x9d\xa4\xef\xb8\x8f",
                 "plain \xc3\xa9 \xe2\x9d\xa4\xef\xb8\x8f");
    check_quoted("\x1b[31m\n\x7f", "\\x1b[31m\\n\\x7f");
    check_quoted("\xc2\x85", "\\u0085");
    check_quoted("\xd8\x9c", "\\u061c");
    check_quoted("\xe2\x80\x8f\xe2\x80\xae", "\\u200f\\u202e");
    check_quoted("\xef\xbb\xbf", "\\ufeff");
    check_quoted("\xf3\xa0\x81\x81", "\\U000e0041");
    check_quoted("\xff\xe2\x80", "\\xff\\xe2\\x80");
}

/* Cut between characters, never within an escape. */
static void cut_between_characters(void **state)
{
    (void)state;
    char out[16];
    assert_string_equal(tnf_quote(out, sizeof out, "abc\xf3\xa0\x81\x81", 7), "'abc\xe2\x80\xa6'");
    assert_string_equal(tnf_visible(out, 8, "ab\xe2\x80\xae"), "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table),
        cmocka_unit_test(messages_escape),
        cmocka_unit_test(cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
