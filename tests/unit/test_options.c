/* SPDX-License-Identifier: MIT */
/* Options of formats: text to typed values. */
#include "../support/arena.h"
#include "../support/unit.h"
#include "core/core.h"

static const tnf_option_info table[] = {
    { "flag", TNF_OPTION_BOOL, NULL, "no", "" },
    { "size", TNF_OPTION_UINT, NULL, "64", "" },
    { "mode", TNF_OPTION_CHOICE, "fast|slow|fastest", "slow", "" },
    { "text", TNF_OPTION_TEXT, NULL, "", "" },
    { 0 },
};

static tnf_status parse_option(const tnf_option_value **v, const char *key, const char *value,
                               tnf_error *e)
{
    return tnf_options_parse(v, table, "reader", &(tnf_option) { key, value }, 1, &arena, e);
}

static void defaults_are_given(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_option_value *v;
    assert_ok(tnf_options_parse(&v, table, "reader", NULL, 0, &arena, &e));
    assert_int_equal(v[0].u, 0);
    assert_int_equal(v[1].u, 64);
    assert_int_equal(v[2].u, 1);
    assert_string_equal(v[3].s, "");
    assert_ok(
        tnf_options_parse(&v, NULL, "reader", NULL, 0, &arena, &e)); /* a format without options */
}

static void good_values(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        size_t at;
        uint64_t u;
    } cases[] = {
        { "flag", "yes", 0, 1 },
        { "flag", "off", 0, 0 },
        { "flag", "true", 0, 1 },
        { "flag", "0", 0, 0 },
        { "size", "0", 1, 0 },
        { "size", "18446744073709551615", 1, UINT64_MAX },
        { "size", "3K", 1, 3072 },
        { "size", "2M", 1, 2 << 20 },
        { "size", "17179869183G", 1, UINT64_MAX - ((1u << 30) - 1) },
        { "mode", "fast", 2, 0 },
        { "mode", "fastest", 2, 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_error e;
        const tnf_option_value *v;
        assert_ok(parse_option(&v, cases[i].key, cases[i].value, &e));
        assert_true(v[cases[i].at].u == cases[i].u);
        assert_string_equal(v[cases[i].at].s, cases[i].value);
    }
    tnf_error e;
    const tnf_option_value *v;
    const tnf_option twice[] = { { "size", "1" }, { "text", "a b" }, { "size", "2" } };
    assert_ok(tnf_options_parse(&v, table, "reader", twice, 3, &arena, &e));
    assert_int_equal(v[1].u, 2); /* the last one counts */
    assert_string_equal(v[3].s, "a b");
}

static void bad_values(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "flag", "maybe" }, { "flag", "" },      { "flag", "YES" },
        { "size", "-1" },    { "size", "" },      { "size", "18446744073709551616" },
        { "size", "1.5" },   { "size", "1KB" },   { "size", "17179869184G" },
        { "size", " 1" },    { "size", "0x10" },  { "mode", "" },
        { "mode", "fas" },   { "mode", "fast|" }, { "mode", "fast|slow" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_error e;
        const tnf_option_value *v;
        assert_fails(parse_option(&v, cases[i][0], cases[i][1], &e), TNF_EINVAL);
        assert_says(cases[i][0]);
    }
}

static void unknown_options(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_option_value *v;
    assert_fails(parse_option(&v, "flags", "yes", &e), TNF_EINVAL);
    assert_says("'flags'");
    assert_says("flag, size, mode, text");
    tnf_option given = { "x", "y" };
    assert_fails(tnf_options_parse(&v, NULL, "reader", &given, 1, &arena, &e), TNF_EINVAL);
}

static void no_memory(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_option_value *v;
    tnf_arena none;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(&none, &a, 10);
    assert_fails(tnf_options_parse(&v, table, "reader", NULL, 0, &none, &e), TNF_ELIMIT);
    tnf_arena_free(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_given), cmocka_unit_test(good_values),
        cmocka_unit_test(bad_values),         cmocka_unit_test(unknown_options),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
