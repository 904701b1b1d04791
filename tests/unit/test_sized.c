/* SPDX-License-Identifier: MIT */
/* Options and results of callers of any version. */
#include "../support/unit.h"
#include "base/sized.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct ours {
    size_t size;
    int a, b;
};

struct newer {
    size_t size;
    int a, b;
    long c;
};

static void copies_options(void **state)
{
    (void)state;
    tnf_error e;
    const size_t first = TNF_UP_TO(struct ours, a);
    struct ours o, given = { sizeof given, 1, 2 };
    struct newer later = { sizeof later, 3, 4, 0 };
    assert_ok(tnf_options_copy(&o, sizeof o, first, NULL, &e));
    assert_true(o.size == sizeof o && o.a == 0 && o.b == 0);
    assert_ok(tnf_options_copy(&o, sizeof o, first, &given, &e));
    assert_true(o.size == sizeof o && o.a == 1 && o.b == 2);
    given.size = offsetof(struct ours, b);
    assert_ok(tnf_options_copy(&o, sizeof o, first, &given, &e));
    assert_true(o.size == sizeof o && o.a == 1 && o.b == 0);
    assert_ok(tnf_options_copy(&o, sizeof o, first, &later, &e));
    assert_true(o.size == sizeof o && o.a == 3 && o.b == 4);
}

static void refuses_sizes(void **state)
{
    (void)state;
    tnf_error e;
    const size_t first = TNF_UP_TO(struct ours, a);
    struct ours o, given = { 0, 1, 2 };
    struct newer later = { sizeof later, 3, 4, 0 };
    const size_t beyond = sizeof o + 1;
    char where[64];
    ((unsigned char *)&later)[beyond] = 2;
    assert_fails(tnf_options_copy(&o, sizeof o, first, &given, &e), TNF_EINVAL);
    given.size = sizeof(size_t) - 1;
    assert_fails(tnf_options_copy(&o, sizeof o, first, &given, &e), TNF_EINVAL);
    given.size = sizeof(size_t);
    assert_fails(tnf_options_copy(&o, sizeof o, first, &given, &e), TNF_EINVAL);
    assert_says("it has at least");
    given.size = first - 1;
    assert_fails(tnf_options_copy(&o, sizeof o, first, &given, &e), TNF_EINVAL);
    given.size = (size_t)-1;
    assert_fails(tnf_options_copy(&o, sizeof o, first, &given, &e), TNF_EINVAL);
    assert_fails(tnf_options_copy(&o, sizeof o, first, &later, &e), TNF_EINVAL);
    snprintf(where, sizeof where, "byte %zu of %zu; it knows %zu bytes", beyond, sizeof later,
             sizeof o);
    assert_non_null(strstr(e.message, where));
}

/* A result fills exactly as many bytes as the caller's struct has. */
static void fills_results(void **state)
{
    (void)state;
    tnf_error e;
    const size_t first = TNF_UP_TO(struct ours, a);
    struct ours own = { sizeof own, 5, 6 }, got;
    struct newer later;
    assert_int_equal(first, offsetof(struct ours, b));
    got = (struct ours) { sizeof got, 1, 2 };
    assert_ok(tnf_result_begin(&got, first, &e));
    assert_true(got.size == sizeof got && got.a == 0 && got.b == 0);
    tnf_result_fill(&got, &own, sizeof own);
    assert_true(got.size == sizeof got && got.a == 5 && got.b == 6);
    got = (struct ours) { first, 1, 2 };
    assert_ok(tnf_result_begin(&got, first, &e));
    tnf_result_fill(&got, &own, sizeof own);
    assert_true(got.size == first && got.a == 5 && got.b == 2);
    memset(&later, 0xff, sizeof later);
    later.size = sizeof later;
    assert_ok(tnf_result_begin(&later, first, &e));
    tnf_result_fill(&later, &own, sizeof own);
    assert_true(later.size == sizeof later && later.a == 5 && later.b == 6 && later.c == 0);
}

static void fills_none(void **state)
{
    (void)state;
    tnf_error e;
    const size_t first = TNF_UP_TO(struct ours, a);
    const size_t sizes[] = { 0, sizeof(size_t) - 1, sizeof(size_t), first - 1, (size_t)-1 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct ours got = { sizes[i], 1, 2 };
        assert_fails(tnf_result_begin(&got, first, &e), TNF_EINVAL);
        assert_true(got.a == 1 && got.b == 2);
    }
}

static void reserves_are_zero(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t words[3] = { 0, 0, 1 };
    assert_ok(tnf_check_reserved(words, 2 * sizeof *words, &e));
    assert_fails(tnf_check_reserved(words, sizeof words, &e), TNF_EINVAL);
    assert_says("reserved");
}

static void known_values(void **state)
{
    (void)state;
    tnf_error e;
    assert_ok(tnf_check_choice(0, 2, "mode", &e));
    assert_ok(tnf_check_choice(2, 2, "mode", &e));
    assert_fails(tnf_check_choice(3, 2, "mode", &e), TNF_EINVAL);
    assert_says("'mode' has the value 3,");
    assert_fails(tnf_check_choice(UINT_MAX, 2, "mode", &e), TNF_EINVAL);
    assert_ok(tnf_check_flags(5, 7, "flags", &e));
    assert_fails(tnf_check_flags(13, 7, "flags", &e), TNF_EINVAL);
    assert_says("'flags' has the value 8,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_options),    cmocka_unit_test(refuses_sizes),
        cmocka_unit_test(fills_results),     cmocka_unit_test(fills_none),
        cmocka_unit_test(reserves_are_zero), cmocka_unit_test(known_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
