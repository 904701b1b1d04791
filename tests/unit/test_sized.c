/* SPDX-License-Identifier: MIT */
/* Options of callers of any version. */
#include "../support/unit.h"
#include "base/sized.h"

#include <stddef.h>
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

static void copies(void **state)
{
    (void)state;
    tnf_error e;
    struct ours o, given = { sizeof given, 1, 2 };
    struct newer later = { sizeof later, 3, 4, 0 };
    assert_ok(tnf_options_copy(&o, sizeof o, NULL, &e));
    assert_true(o.size == sizeof o && o.a == 0 && o.b == 0);
    assert_ok(tnf_options_copy(&o, sizeof o, &given, &e));
    assert_true(o.size == sizeof o && o.a == 1 && o.b == 2);
    given.size = offsetof(struct ours, b);
    assert_ok(tnf_options_copy(&o, sizeof o, &given, &e));
    assert_true(o.size == sizeof o && o.a == 1 && o.b == 0);
    given.size = offsetof(struct ours, a);
    assert_ok(tnf_options_copy(&o, sizeof o, &given, &e));
    assert_true(o.size == sizeof o && o.a == 0 && o.b == 0);
    assert_ok(tnf_options_copy(&o, sizeof o, &later, &e));
    assert_true(o.size == sizeof o && o.a == 3 && o.b == 4);
}

static void refuses(void **state)
{
    (void)state;
    tnf_error e;
    struct ours o, given = { 0, 1, 2 };
    struct newer later = { sizeof later, 3, 4, 0 };
    ((unsigned char *)&later)[17] = 2;
    assert_fails(tnf_options_copy(&o, sizeof o, &given, &e), TNF_EINVAL);
    given.size = sizeof(size_t) - 1;
    assert_fails(tnf_options_copy(&o, sizeof o, &given, &e), TNF_EINVAL);
    given.size = (size_t)-1;
    assert_fails(tnf_options_copy(&o, sizeof o, &given, &e), TNF_EINVAL);
    assert_fails(tnf_options_copy(&o, sizeof o, &later, &e), TNF_EINVAL);
    assert_non_null(strstr(e.message, "byte 17 of 24; 16 are known"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
