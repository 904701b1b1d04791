/* SPDX-License-Identifier: MIT */
/* Values made of the caller's memory, and reading values: exactly, or not at all. */
#include "../support/unit.h"
#include <tenfold/value.h>

static void made_of_literals(void **state)
{
    (void)state;
    tnf_value items[] = { tnf_value_int(-2), tnf_value_text("a\0b", 3) };
    tnf_member members[] = { tnf_member_of("list", tnf_value_array(items, 2)),
                             tnf_member_of("rate", tnf_value_float(0.5)),
                             tnf_member_of("raw", tnf_value_bytes("\xff", 1)),
                             tnf_member_of("doc", tnf_value_json("{}", 2)) };
    tnf_value map = tnf_value_map(members, 4);
    const tnf_value *list = tnf_value_get(&map, "list");
    int64_t i = 0;
    double f = 0;
    tnf_str s = { NULL, 0 };
    assert_true(tnf_value_as_int(&i, tnf_value_item(list, 0)) && i == -2);
    assert_true(tnf_value_as_text(&s, tnf_value_item(list, 1)) && s.n == 3 && s.p[2] == 'b');
    assert_null(tnf_value_item(list, 2));
    assert_null(tnf_value_item(&map, 0));
    assert_true(tnf_value_as_float(&f, tnf_value_get(&map, "rate")) && f == 0.5);
    assert_int_equal(tnf_value_get(&map, "raw")->kind, TNF_BYTES);
    assert_int_equal(tnf_value_get(&map, "doc")->kind, TNF_JSON);
    assert_false(tnf_value_as_text(&s, tnf_value_get(&map, "doc")));
}

static tnf_value value_u64(uint64_t u)
{
    return tnf_value_uint(u);
}

static void exact_or_not_at_all(void **state)
{
    (void)state;
    const double two_63 = 9223372036854775808.0;
    int64_t i = 7;
    uint64_t u = 7;
    double f = 7;
    tnf_value v = value_u64(UINT64_MAX);
    assert_false(tnf_value_as_int(&i, &v));
    assert_false(tnf_value_as_float(&f, &v));
    assert_true(tnf_value_as_uint(&u, &v) && u == UINT64_MAX);
    v = tnf_value_int(INT64_MIN);
    assert_true(tnf_value_as_float(&f, &v) && f == -two_63);
    assert_false(tnf_value_as_uint(&u, &v));
    v = tnf_value_int(INT64_MAX);
    assert_false(tnf_value_as_float(&f, &v));
    v = tnf_value_float(two_63);
    assert_false(tnf_value_as_int(&i, &v));
    assert_true(tnf_value_as_uint(&u, &v) && u == (uint64_t)1 << 63);
    v = tnf_value_float(2 * two_63);
    assert_false(tnf_value_as_uint(&u, &v));
    v = tnf_value_float(-two_63);
    assert_true(tnf_value_as_int(&i, &v) && i == INT64_MIN);
    v = tnf_value_float(1.5);
    i = 7;
    assert_false(tnf_value_as_int(&i, &v));
    assert_int_equal(i, 7);
    v = (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F32, .as.f32 = 3 };
    assert_true(tnf_value_as_int(&i, &v) && i == 3);
}

static void no_value_of_another_kind(void **state)
{
    (void)state;
    bool b = false;
    int64_t i;
    uint64_t u;
    double f;
    tnf_str s;
    tnf_value yes = tnf_value_bool(true);
    assert_true(tnf_value_as_bool(&b, &yes) && b);
    assert_false(tnf_value_as_int(&i, &yes));
    assert_false(tnf_value_as_float(&f, &yes));
    assert_false(tnf_value_as_bool(&b, NULL) || tnf_value_as_int(&i, NULL));
    assert_false(tnf_value_as_uint(&u, NULL) || tnf_value_as_float(&f, NULL));
    assert_false(tnf_value_as_text(&s, NULL));
    assert_null(tnf_value_item(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_of_literals),
        cmocka_unit_test(exact_or_not_at_all),
        cmocka_unit_test(no_value_of_another_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
