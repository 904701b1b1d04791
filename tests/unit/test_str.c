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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_values),      cmocka_unit_test(test_listed),
        cmocka_unit_test(test_nul_in_name), cmocka_unit_test(test_position),
        cmocka_unit_test(test_uint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
