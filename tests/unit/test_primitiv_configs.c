/* SPDX-License-Identifier: MIT */
/* Configs of optimizers by key, and the class behind them: defaults as the library sets them. */
#include "../support/flush.h"
#include "../support/unit.h"
#include "primitiv_files.h"

static void is_class(const char *name, const char *want)
{
    fixture f = open_primitiv(name);
    tnf_str got = { 0 };
    assert_int_equal(tnf_primitiv_optimizer(&got, f.file), want != NULL);
    if (want) {
        assert_int_equal(got.n, strlen(want));
        assert_memory_equal(got.p, want, got.n);
    }
    close_primitiv(&f);
}

static void test_class(void **state)
{
    (void)state;
    is_class("optimizer_SGD_default", "SGD");
    is_class("optimizer_MomentumSGD_default", "MomentumSGD");
    is_class("optimizer_AdaGrad_default", "AdaGrad");
    is_class("optimizer_RMSProp_default", "RMSProp");
    is_class("optimizer_AdaDelta_default", "AdaDelta");
    is_class("optimizer_Adam_default", "Adam");
    is_class("train_MomentumSGD_optimizer", "MomentumSGD");
    is_class("optimizer_map16", "Custom"); /* a class of a user */
    is_class("probe_o_empty", NULL);
    is_class("parameter_2x2", NULL);
}

static void test_several_classes(void **state)
{
    (void)state;
    static const tnf_primitiv_config mixed[] = { { TNF_STR("Adam.eps"), 0, 1 },
                                                 { TNF_STR("SGD.eta"), 0, 1 } };
    static const tnf_primitiv_config base[] = { { TNF_STR("Optimizer.lr_scale"), 0, 1 },
                                                { TNF_STR("plain"), 0, 1 } };
    tnf_error e;
    for (int i = 0; i < 2; i++) {
        tnf_builder *b;
        bytes got;
        tnf_str name;
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(tnf_primitiv_set_optimizer(b, NULL, 0, i ? base : mixed, 2, &e));
        assert_ok(save_builder(&got, b, "primitiv", NULL, &e));
        tnf_file *f = must_open(&got);
        assert_false(tnf_primitiv_optimizer(&name, f));
        tnf_close(f);
        free(got.p);
        tnf_builder_free(b);
    }
}

static void test_by_key(void **state)
{
    (void)state;
    fixture f = open_primitiv("optimizer_Adam_upstream");
    uint32_t u = 0;
    float x = 0;
    assert_true(tnf_primitiv_uint(&u, f.file, "Optimizer.epoch") && u == 5);
    assert_true(tnf_primitiv_float(&x, f.file, "Adam.beta2") && x == 3.0f);
    assert_true(tnf_primitiv_float(&x, f.file, "Optimizer.clip_threshold") && x == 8.0f);
    assert_false(tnf_primitiv_float(&x, f.file, "Optimizer.epoch"));
    assert_false(tnf_primitiv_uint(&u, f.file, "Adam.beta2"));
    assert_false(tnf_primitiv_float(&x, f.file, "SGD.eta"));
    close_primitiv(&f);

    f = open_primitiv("optimizer_bad_utf8"); /* pairs, not a map */
    assert_true(tnf_primitiv_uint(&u, f.file, "\xff") && u == 1);
    assert_true(tnf_primitiv_uint(&u, f.file, "e") && u == 2);
    close_primitiv(&f);

    f = open_primitiv("model_empty");
    assert_false(tnf_primitiv_uint(&u, f.file, "Optimizer.epoch"));
    close_primitiv(&f);
}

/* A double is rounded to a subnormal float, even if the program treats such numbers as 0. */
static void test_small_double(void **state)
{
    (void)state;
    tnf_error e;
    tnf_builder *b;
    tnf_file *file;
    float x = 0;
    tnf_member m = tnf_member_of("x", tnf_value_float(1e-40));
    const tnf_value map = { .kind = TNF_MAP, .n = 1, .as.members = &m };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_set(b, NULL, "primitiv.float_configs", &map, &e));
    assert_ok(tnf_open_builder(&file, b, NULL, &e));
    const uint32_t mode = flush_begin();
    bool found = tnf_primitiv_float(&x, file, "x");
    assert_true(flush_end(mode));
    assert_true(found && x == 1e-40f);
    tnf_close(file);
    tnf_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_class),
        cmocka_unit_test(test_several_classes),
        cmocka_unit_test(test_by_key),
        cmocka_unit_test(test_small_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
