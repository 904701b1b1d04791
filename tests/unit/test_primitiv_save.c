/* SPDX-License-Identifier: MIT */
/* The caller's memory is saved and loaded by one call each; the bytes are those of primitiv. */
#include "../support/files.h"
#include "../support/unit.h"
#include <tenfold/primitiv.h>

static const uint32_t two_by_two[] = { 2, 2 };
static const tnf_primitiv_shape square = { two_by_two, 2, 1 };
static const tnf_str p[] = { TNF_STR("p") };
static const tnf_str sm_p[] = { TNF_STR("sm"), TNF_STR("p") };

static struct bytes bytes_of_primitiv(const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/formats/primitiv/valid/%s.primitiv", TNF_TESTS_DIR, name);
    struct bytes b = bytes_of_file(path);
    assert_non_null(b.p);
    return b;
}

static void saves_and_loads(void **state)
{
    (void)state;
    static const tnf_str a = TNF_STR("a"), bb = TNF_STR("b");
    static const float want[4][4] = {
        { 1, 2, 3, 4 }, { 10, 20, 30, 40 }, { 5, 6, 7, 8 }, { 50, 60, 70, 80 }
    };
    float there[4][4], back[4][4] = { { 0 } };
    char path[300];
    tnf_error e;
    const struct bytes f = bytes_of_primitiv("model_upstream_with_stats");
    tnf_save_options how = TNF_SAVE_INIT;
    snprintf(path, sizeof path, "%s/saved.model", files_temp());
    for (int i = 0; i < 4; i++)
        memcpy(there[i], want[i], sizeof there[i]);
    tnf_primitiv_binding all[] = {
        { p, 1, NULL, square, there[0], false },
        { p, 1, &a, square, there[1], false },
        { sm_p, 2, NULL, square, there[2], false },
        { sm_p, 2, &bb, square, there[3], false },
    };
    assert_ok(tnf_primitiv_save(path, all, 4, NULL, &e));
    struct bytes got = bytes_of_file(path);
    assert_int_equal(got.n, f.n);
    assert_memory_equal(got.p, f.p, got.n);
    free(got.p);
    assert_fails(tnf_primitiv_save(path, all, 4, NULL, &e), TNF_EEXISTS);
    how.replace = true;
    assert_ok(tnf_primitiv_save(path, all, 4, &how, &e));
    all[3].path = p; /* the same one twice */
    all[3].n = 1;
    all[3].statistic = &a;
    assert_fails(tnf_primitiv_save(path, all, 4, &how, &e), TNF_EEXISTS);
    all[3] = (tnf_primitiv_binding) { sm_p, 2, &bb, square, NULL, false };
    for (int i = 0; i < 4; i++)
        all[i].data = back[i];
    assert_ok(tnf_primitiv_load(all, 4, path, NULL, &e));
    assert_true(all[0].loaded && all[3].loaded);
    assert_memory_equal(back, there, sizeof there);
    assert_fails(tnf_primitiv_load(all, 1, path, NULL, &e), TNF_ENOTFOUND); /* the file has more */
    assert_fails(tnf_primitiv_load(all, 4, "/nowhere", NULL, &e), TNF_ENOTFOUND);
    free(f.p);
}

static void saves_optimizers(void **state)
{
    (void)state;
    static const tnf_primitiv_config uints[] = { { TNF_STR("Optimizer.epoch"), 5, 0 } };
    static const tnf_primitiv_config floats[] = {
        { TNF_STR("Adam.beta2"), 0, 3 },
        { TNF_STR("Adam.beta1"), 0, 2 },
        { TNF_STR("Optimizer.clip_threshold"), 0, 8 },
        { TNF_STR("Adam.eps"), 0, 4 },
        { TNF_STR("Adam.alpha"), 0, 1 },
        { TNF_STR("Optimizer.l2_strength"), 0, 7 },
        { TNF_STR("Optimizer.lr_scale"), 0, 6 },
    };
    static const tnf_primitiv_config unnamed = { { NULL, 0 }, 1, 0 };
    char path[300];
    tnf_error e;
    const struct bytes f = bytes_of_primitiv("optimizer_Adam_upstream");
    snprintf(path, sizeof path, "%s/saved.optimizer", files_temp());
    assert_ok(tnf_primitiv_save_optimizer(path, uints, 1, floats, 7, NULL, &e));
    struct bytes got = bytes_of_file(path);
    assert_int_equal(got.n, f.n);
    assert_memory_equal(got.p, f.p, got.n);
    free(got.p);
    assert_fails(tnf_primitiv_save_optimizer(path, &unnamed, 1, NULL, 0, NULL, &e), TNF_EINVAL);
    free(f.p);
}

/* Configs with any keys, saved and loaded: all that are asked for, or none. */
static void saves_and_loads_configs(void **state)
{
    (void)state;
    static const tnf_primitiv_config uints[] = { { TNF_STR("n"), 7, 0 },
                                                 { TNF_STR("n\0m"), 8, 0 } };
    static const tnf_primitiv_config floats[] = { { TNF_STR("x"), 0, 0.5f },
                                                  { TNF_STR("x\0"), 0, 1e-40f } };
    tnf_primitiv_config u[] = { { TNF_STR("n\0m"), 0, 0 }, { TNF_STR("n"), 0, 0 } };
    tnf_primitiv_config f[] = { { TNF_STR("x\0"), 0, 0 } }, other[] = { { TNF_STR("n"), 0, 3 } };
    tnf_primitiv_config null = { { NULL, 0 }, 0, 0 };
    char path[300];
    tnf_error e;
    snprintf(path, sizeof path, "%s/any.optimizer", files_temp());
    assert_ok(tnf_primitiv_save_optimizer(path, uints, 2, floats, 2, NULL, &e));
    assert_fails(tnf_primitiv_load_optimizer(u, 2, other, 1, path, &e), TNF_ENOTFOUND);
    assert_says("no float config 'n'");
    assert_true(u[0].u == 0 && u[1].u == 0 && other[0].f == 3);
    assert_fails(tnf_primitiv_load_optimizer(&null, 1, NULL, 0, path, &e), TNF_EINVAL);
    assert_fails(tnf_primitiv_load_optimizer(u, 2, NULL, 1, path, &e), TNF_EINVAL);
    assert_ok(tnf_primitiv_load_optimizer(u, 2, f, 1, path, &e));
    assert_true(u[0].u == 8 && u[1].u == 7 && f[0].f == 1e-40f);
    assert_ok(tnf_primitiv_load_optimizer(NULL, 0, f, 1, path, &e));
    assert_fails(tnf_primitiv_load_optimizer(u, 2, f, 1, "/nowhere/at/all", &e), TNF_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saves_and_loads),
        cmocka_unit_test(saves_and_loads_configs),
        cmocka_unit_test(saves_optimizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
