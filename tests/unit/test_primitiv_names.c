/* SPDX-License-Identifier: MIT */
/* Paths as names, and tensors by path. The table of paths and names is that of
 * docs/formats/primitiv.md. */
#include "../support/unit.h"
#include "primitiv_files.h"

#define PATH(...)                                                                                  \
    (const tnf_str[]) { __VA_ARGS__ }, sizeof((const tnf_str[]) { __VA_ARGS__ }) / sizeof(tnf_str)

static const struct {
    tnf_str path[3];
    size_t n;
    tnf_str name;
} pairs[] = {
    { { TNF_STR("encoder"), TNF_STR("w") }, 2, TNF_STR("encoder.w") },
    { { TNF_STR("a.b") }, 1, TNF_STR("a\\.b") },
    { { TNF_STR("a\\"), TNF_STR("b") }, 2, TNF_STR("a\\\\.b") },
    { { TNF_STR("a\\b") }, 1, TNF_STR("a\\b") },
    { { TNF_STR("") }, 1, TNF_STR("") },
    { { TNF_STR(""), TNF_STR("") }, 2, TNF_STR(".") },
    { { TNF_STR("a\\.b") }, 1, TNF_STR("a\\\\\\.b") },
    { { TNF_STR("\\\\"), TNF_STR("."), TNF_STR("x") }, 3, TNF_STR("\\\\\\\\.\\..x") },
    { { TNF_STR("nul\0in"), TNF_STR("\xff") }, 2, TNF_STR("nul\0in.\xff") },
};

static void test_join_and_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char name[32], memory[32];
        tnf_str path[3];
        size_t n = tnf_primitiv_join(name, sizeof name, pairs[i].path, pairs[i].n);
        assert_int_equal(n, pairs[i].name.n);
        assert_memory_equal(name, pairs[i].name.p, n + 1);
        assert_int_equal(tnf_primitiv_split(path, 3, memory, pairs[i].name), pairs[i].n);
        for (size_t k = 0; k < pairs[i].n; k++) {
            assert_int_equal(path[k].n, pairs[i].path[k].n);
            assert_memory_equal(path[k].p, pairs[i].path[k].p, path[k].n + 1);
        }
    }
    char name[8];
    assert_int_equal(tnf_primitiv_join(name, sizeof name, NULL, 0), 5);
    assert_string_equal(name, "value");
}

static void test_little_room(void **state)
{
    (void)state;
    static const tnf_str path[] = { TNF_STR("encoder"), TNF_STR("w") };
    char name[4] = "xyz";
    assert_int_equal(tnf_primitiv_join(NULL, 0, path, 2), 9);
    assert_int_equal(tnf_primitiv_join(name, sizeof name, path, 2), 9);
    assert_string_equal(name, "enc");
    tnf_str first;
    char memory[10];
    assert_int_equal(tnf_primitiv_split(&first, 1, memory, (tnf_str)TNF_STR("encoder.w")), 2);
    assert_string_equal(first.p, "encoder");
}

static void assert_found(const fixture *f, const tnf_str *path, size_t n, const char *statistic,
                         const char *name)
{
    const tnf_object *o = NULL;
    tnf_error e;
    tnf_str key = { statistic, statistic ? strlen(statistic) : 0 };
    assert_ok(tnf_primitiv_find(&o, f->file, path, n, statistic ? &key : NULL, &e));
    assert_string_equal(o->name.p, name);
}

static void assert_missing(const fixture *f, const tnf_str *path, size_t n, const char *statistic)
{
    const tnf_object *o = NULL;
    tnf_error e;
    tnf_str key = { statistic, statistic ? strlen(statistic) : 0 };
    assert_fails(tnf_primitiv_find(&o, f->file, path, n, statistic ? &key : NULL, &e),
                 TNF_ENOTFOUND);
}

static void test_find(void **state)
{
    (void)state;
    fixture f = open_primitiv("model_upstream_with_stats");
    assert_found(&f, PATH(TNF_STR("p")), NULL, "p");
    assert_found(&f, PATH(TNF_STR("sm"), TNF_STR("p")), NULL, "sm.p");
    assert_found(&f, PATH(TNF_STR("sm"), TNF_STR("p")), "b", "sm.p@b");
    assert_missing(&f, PATH(TNF_STR("sm.p")), NULL);
    assert_missing(&f, PATH(TNF_STR("sm"), TNF_STR("p")), "a");
    assert_missing(&f, PATH(TNF_STR("p@a")), NULL); /* this is a statistic */
    assert_missing(&f, PATH(TNF_STR("sm")), NULL);
    assert_missing(&f, NULL, 0, NULL);
    close_primitiv(&f);

    f = open_primitiv("parameter_stats_many");
    assert_found(&f, NULL, 0, NULL, "value");
    assert_found(&f, NULL, 0, "batched", "value@batched");
    assert_found(&f, NULL, 0, "", "value@");
    assert_missing(&f, PATH(TNF_STR("value")), NULL);
    assert_missing(&f, NULL, 0, "nope");
    close_primitiv(&f);

    f = open_primitiv("model_stat_name_taken");
    assert_found(&f, PATH(TNF_STR("w")), "m", "w@m@1");
    assert_found(&f, PATH(TNF_STR("w")), "n", "w@n");
    assert_found(&f, PATH(TNF_STR("w@m")), NULL, "w@m");
    close_primitiv(&f);

    f = open_primitiv("model_nested_order");
    assert_found(&f, PATH(TNF_STR("")), NULL, "");
    assert_found(&f, PATH(TNF_STR("a.b")), NULL, "a\\.b");
    assert_missing(&f, PATH(TNF_STR("a"), TNF_STR("b")), NULL);
    close_primitiv(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join_and_split),
        cmocka_unit_test(test_little_room),
        cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
