/* SPDX-License-Identifier: MIT */
/* Texts with a length, compared with literals and with lists of words. */
#include "../support/unit.h"
#include "base/str.h"

#define STR(literal) ((tnf_str) { literal, sizeof literal - 1 })

static void test_ends(void **state)
{
    (void)state;
    assert_true(tnf_str_is(STR("abc"), "abc"));
    assert_false(tnf_str_is(STR("abc\0"), "abc"));
    assert_true(tnf_str_is((tnf_str) { NULL, 0 }, ""));
    assert_true(tnf_str_begins(STR("abc"), "ab"));
    assert_false(tnf_str_begins(STR("a"), "ab"));
    assert_true(tnf_str_ends(STR("abc"), "bc"));
    assert_false(tnf_str_ends(STR("c"), "bc"));
}

static void test_paths(void **state)
{
    (void)state;
    assert_string_equal(tnf_path_end("a/b.c"), "b.c");
    assert_string_equal(tnf_path_end("/b"), "b");
    assert_string_equal(tnf_path_end("b"), "b");
    assert_string_equal(tnf_path_end("a/"), "");
}

static void test_values(void **state)
{
    const tnf_value v = { .kind = TNF_STRING, .n = 3, .as.s = "abc" };
    const tnf_value bytes = { .kind = TNF_BYTES, .n = 3, .as.s = "abc" };
    (void)state;
    assert_true(tnf_value_is(&v, "abc"));
    assert_false(tnf_value_is(&v, "ab"));
    assert_false(tnf_value_is(&bytes, "abc"));
    assert_false(tnf_value_is(NULL, ""));
}

static void test_listed(void **state)
{
    static const char *const lists[] = { "one", "one two", "two one", "on one", "ones one two" };
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        assert_true(tnf_str_listed(STR("one"), lists[i]));
    assert_false(tnf_str_listed(STR("one"), ""));
    assert_false(tnf_str_listed(STR("one"), "on ones onetwo"));
    assert_false(tnf_str_listed(STR("on"), "one"));
    assert_false(tnf_str_listed((tnf_str) { NULL, 0 }, "one two"));
    assert_false(tnf_str_listed(STR("one two"), "one two"));
}

/* A name in a file may contain a NUL: no byte after the list is read. */
static void test_nul_in_name(void **state)
{
    char *list = malloc(4);
    (void)state;
    assert_non_null(list);
    memcpy(list, "one", 4);
    assert_false(tnf_str_listed(STR("one\0and more than the list has"), list));
    assert_false(tnf_str_listed(STR("\0"), list));
    assert_false(tnf_str_listed(STR("\0"), list + 3));
    free(list);
}

static void test_position(void **state)
{
    (void)state;
    assert_int_equal(tnf_str_position("one|two|three", "one"), 0);
    assert_int_equal(tnf_str_position("one|two|three", "three"), 2);
    assert_int_equal(tnf_str_position("one|two|three", "on"), -1);
    assert_int_equal(tnf_str_position("one|two|three", "twoo"), -1);
    assert_int_equal(tnf_str_position("one|two|three", "one|two"), -1);
    assert_int_equal(tnf_str_position("one", ""), -1);
    assert_int_equal(tnf_str_position("one||two", ""), 1);
}

static void test_uint(void **state)
{
    (void)state;
    uint64_t n;
    assert_true(tnf_str_uint(&n, STR("0")) && n == 0);
    assert_true(tnf_str_uint(&n, STR("007")) && n == 7);
    assert_true(tnf_str_uint(&n, STR("18446744073709551615")) && n == UINT64_MAX);
    assert_false(tnf_str_uint(&n, STR("18446744073709551616")));
    assert_false(tnf_str_uint(&n, STR("20000000000000000000")));
    assert_false(tnf_str_uint(&n, STR("")));
    assert_false(tnf_str_uint(&n, STR("-1")));
    assert_false(tnf_str_uint(&n, STR("1 ")));
    assert_false(tnf_str_uint(&n, STR("1\0")));
    assert_false(tnf_str_uint(&n, STR("\xb1"))); /* not below '0' */
}

/* Digits are read up to the first other byte; a number that is too large becomes the largest. */
static void test_digits(void **state)
{
    static const struct {
        const char *text;
        uint64_t number;
        size_t taken;
    } all[] = {
        { "0", 0, 1 },
        { "0042x7", 42, 4 },
        { "x7", 0, 0 },
        { "", 0, 0 },
        { "18446744073709551614,", UINT64_MAX - 1, 20 },
        { "18446744073709551615,", UINT64_MAX, 20 },
        { "18446744073709551616,", UINT64_MAX, 20 },
        { "99999999999999999999999999 ", UINT64_MAX, 26 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *p = all[i].text;
        assert_true(tnf_take_digits(&p, p + strlen(p)) == all[i].number);
        assert_int_equal(p - all[i].text, all[i].taken);
    }
    const char *text = "123", *p = text;
    assert_int_equal(tnf_take_digits(&p, text + 2), 12);
}

static void test_inside(void **state)
{
    static const char *const inside[] = { "a", "a/b.c", "...", "a/..b", ".hidden", "C:x" };
    static const char *const outside[] = {
        "",    "/",   "/a",   "a/",   "a//b",   ".",    "..",
        "./a", "a/.", "a/..", "../a", "a/../b", "a\\b", "..\\a"
    };
    (void)state;
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        assert_true(tnf_path_is_inside((tnf_str) { inside[i], strlen(inside[i]) }));
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_false(tnf_path_is_inside((tnf_str) { outside[i], strlen(outside[i]) }));
    assert_false(tnf_path_is_inside(STR("a\0b")));
    assert_false(tnf_path_is_inside((tnf_str) { NULL, 0 }));
}

static void test_chars(void **state)
{
    const tnf_value text = { .kind = TNF_STRING, .as.s = "ab", .n = 2 },
                    bytes = { .kind = TNF_BYTES, .as.s = "\xff", .n = 1 },
                    empty = { .kind = TNF_STRING }, number = { .kind = TNF_UINT, .as.u = 7 };
    (void)state;
    assert_true(tnf_str_is(tnf_value_chars(&text), "ab"));
    assert_true(tnf_str_is(tnf_value_chars(&bytes), "\xff"));
    assert_non_null(tnf_value_chars(&empty).p);
    assert_null(tnf_value_chars(&number).p);
    assert_null(tnf_value_chars(NULL).p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_values),      cmocka_unit_test(test_listed),
        cmocka_unit_test(test_nul_in_name), cmocka_unit_test(test_position),
        cmocka_unit_test(test_uint),        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_inside),      cmocka_unit_test(test_chars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
