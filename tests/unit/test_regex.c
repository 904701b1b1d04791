/* SPDX-License-Identifier: MIT */
/* Expressions of --rename: their matches and groups, as in Python's re; and that all of them are
 * fast. */
#include "../../cli/regex.c"
#include "../../cli/regex_parse.c"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

static void test_matches(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        int spans[6]; /* of groups 0, 1, 2; -1: none */
    } all[] = {
        { "a", "ba", { 1, 2, -1, -1, -1, -1 } },
        { "x", "ba", { -1, -1, -1, -1, -1, -1 } },
        { "layers\\.(\\d+)\\.(\\w+)", "m.layers.12.mlp.w", { 2, 15, 9, 11, 12, 15 } },
        { "^model\\.", "model.x", { 0, 6, -1, -1, -1, -1 } },
        { "^model\\.", "a.model.x", { -1, -1, -1, -1, -1, -1 } },
        { "(a|ab)(c|bcd)?", "abcd", { 0, 4, 0, 1, 1, 4 } },
        { "\\bw\\b", "ww.w", { 3, 4, -1, -1, -1, -1 } },
        { "[^.]+$", "a.b.weight", { 4, 10, -1, -1, -1, -1 } },
        { "a{2,3}", "aaaa", { 0, 3, -1, -1, -1, -1 } },
        { "a{2,3}?", "aaaa", { 0, 2, -1, -1, -1, -1 } },
        { "a{2}$", "aaa", { 1, 3, -1, -1, -1, -1 } },
        { "(?:ab)+", "xababy", { 1, 5, -1, -1, -1, -1 } },
        { "<(.+?)>", "<a><b>", { 0, 3, 1, 2, -1, -1 } },
        { "<(.+)>", "<a><b>", { 0, 6, 1, 5, -1, -1 } },
        { "[[:digit:]]+", "ab12", { 2, 4, -1, -1, -1, -1 } },
        { "[]a]+", "x]a", { 1, 3, -1, -1, -1, -1 } },
        { "[\\d_]+", "a_1b", { 1, 3, -1, -1, -1, -1 } },
        { "\\D+", "12ab", { 2, 4, -1, -1, -1, -1 } },
        { "a{", "xa{", { 1, 3, -1, -1, -1, -1 } },
        { "\xc3\xbc.", "x\xc3\xbc\xe6\x9d\xb1", { 1, 6, -1, -1, -1, -1 } },
        { "(a)|(b)", "b", { 0, 1, -1, -1, 0, 1 } },
        { "", "ab", { 0, 0, -1, -1, -1, -1 } },
        { "x*", "ab", { 0, 0, -1, -1, -1, -1 } },
        { "\\S+\\s\\S+", "a b", { 0, 3, -1, -1, -1, -1 } },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char why[128];
        regex_group g[REGEX_GROUPS] = { { 0 } };
        regex *r = regex_new(all[i].pattern, false, why);
        assert_non_null(r);
        bool found = regex_find(r, all[i].text, strlen(all[i].text), 0, g);
        assert_int_equal(found, all[i].spans[0] >= 0);
        for (size_t k = 0; found && k < 3; k++) {
            assert_int_equal((int)(ptrdiff_t)g[k].from, all[i].spans[2 * k]);
            assert_int_equal((int)(ptrdiff_t)g[k].to, all[i].spans[2 * k + 1]);
        }
        regex_free(r);
    }
}

static void test_any_case(void **state)
{
    (void)state;
    char why[128];
    regex_group g[REGEX_GROUPS];
    regex *r = regex_new("w[a-c]X", true, why);
    assert_true(regex_find(r, "WBx", 3, 0, g));
    assert_false(regex_find(r, "WDx", 3, 0, g));
    regex_free(r);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const all[] = {
        "(",   ")",     "[",      "[a",      "*a",    "a\\",     "\\1",
        "\\q", "[z-a]", "a{3,2}", "a{2000}", "(?=a)", "[[:x:]]", "((a{900}){900})"
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char why[128];
        assert_null(regex_new(all[i], false, why));
        assert_true(*why);
    }
    char deep[400], why[128];
    memset(deep, '(', 200);
    deep[200] = '\0';
    assert_null(regex_new(deep, false, why));
}

/* Expressions that take years with other engines. */
static void test_is_linear(void **state)
{
    (void)state;
    static char text[20001];
    char why[128];
    regex_group g[REGEX_GROUPS];
    memset(text, 'a', sizeof text - 1);
    static const char *const all[] = { "(a*)*b", "(a|a)*b", "(a+)+$x", "(.*)(.*)(.*)b",
                                       "(a?){50}a{50}b" };
    clock_t began = clock();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        regex *r = regex_new(all[i], false, why);
        assert_non_null(r);
        assert_false(regex_find(r, text, sizeof text - 1, 0, g));
        regex_free(r);
    }
    assert_true((double)(clock() - began) / CLOCKS_PER_SEC < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_any_case),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
