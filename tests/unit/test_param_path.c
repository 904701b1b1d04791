/* SPDX-License-Identifier: MIT */
/* Paths of parameters, by the rules with which gpt.rs visits a model. */
#include "../support/unit.h"

#include <tenfold/params.h>

#define CHECK(literal) tnf_param_path_check(literal, sizeof(literal) - 1, &e)

static void test_check(void **state)
{
    tnf_error e;
    (void)state;
    assert_ok(CHECK("lm_head"));
    assert_ok(CHECK("tok_embeddings.weight"));
    assert_ok(CHECK("blocks.0.attention.w_qkv"));
    assert_ok(CHECK("a b.\x01\0.~")); /* any ASCII */
    assert_fails(CHECK(""), TNF_EINVAL);
    assert_says("is empty");
    assert_fails(CHECK("."), TNF_EINVAL);
    assert_says("is empty (at byte 0)");
    assert_fails(CHECK(".a"), TNF_EINVAL);
    assert_says("is empty (at byte 0)");
    assert_fails(CHECK("a."), TNF_EINVAL);
    assert_says("is empty (at byte 2)");
    assert_fails(CHECK("a..b"), TNF_EINVAL);
    assert_says("a segment of the path 'a..b' is empty (at byte 2)");
    assert_fails(CHECK("a.b\xc3\xa9.c"), TNF_EINVAL);
    assert_says("is not ASCII (at byte 2)");
    assert_fails(tnf_param_path_check(NULL, 1, &e), TNF_EINVAL);
    assert_fails(tnf_param_path_check(NULL, 0, &e), TNF_EINVAL);
}

static void test_join(void **state)
{
    static const tnf_str parts[] = { TNF_STR("blocks"), TNF_STR("0"), TNF_STR("ln_1"),
                                     TNF_STR("gamma") };
    static const char joined[] = "blocks.0.ln_1.gamma";
    char out[32];
    size_t length;
    tnf_error e;
    (void)state;
    assert_ok(tnf_param_path_join(NULL, 0, &length, parts, 4, &e));
    assert_int_equal(length, sizeof joined - 1);
    memset(out, '?', sizeof out);
    assert_ok(tnf_param_path_join(out, sizeof joined, &length, parts, 4, &e)); /* exactly fits */
    assert_string_equal(out, joined);
    assert_int_equal(out[sizeof joined], '?');
    assert_int_equal(length, sizeof joined - 1);
    assert_ok(tnf_param_path_check(out, length, &e));
    assert_fails(tnf_param_path_join(out, sizeof joined - 1, &length, parts, 4, &e), TNF_EINVAL);
    assert_says("the path has 19 bytes and a NUL, but there is room for 19 bytes");
    assert_int_equal(length, sizeof joined - 1);
    assert_string_equal(out, "");
    assert_ok(tnf_param_path_join(out, sizeof out, &length, parts + 3, 1, &e));
    assert_string_equal(out, "gamma");
}

static void test_wrong_segments(void **state)
{
    static const struct {
        tnf_str segment;
        const char *says;
    } cases[] = { { TNF_STR(""), "segment 1 of a path, '', is empty" },
                  { { NULL, 0 }, "is empty" },
                  { TNF_STR("b.c"), "segment 1 of a path, 'b.c', has a dot" },
                  { TNF_STR("\xc3\xa9"), "is not ASCII" },
                  { { NULL, 3 }, "segments" } };
    char out[32];
    size_t length;
    tnf_error e;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tnf_str parts[] = { TNF_STR("a"), cases[i].segment };
        memset(out, 1, sizeof out);
        assert_fails(tnf_param_path_join(out, sizeof out, &length, parts, 2, &e), TNF_EINVAL);
        assert_says(cases[i].says);
        assert_string_equal(out, "");
    }
    const tnf_str one[] = { TNF_STR("a") };
    assert_fails(tnf_param_path_join(out, sizeof out, &length, one, 0, &e), TNF_EINVAL);
    assert_says("no segment");
    assert_fails(tnf_param_path_join(NULL, 5, &length, one, 1, &e), TNF_EINVAL);
    assert_fails(tnf_param_path_join(out, 5, &length, NULL, 1, &e), TNF_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_wrong_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
