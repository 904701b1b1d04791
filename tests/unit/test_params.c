/* SPDX-License-Identifier: MIT */
/* The parameters that a source keeps and releases, against decisions computed by hand. */
#include "params_files.h"

static const tnf_param *load_param(struct fixture *x, const char *name)
{
    const tnf_param *p;
    tnf_error e = { 0 };
    if (tnf_params_load(&p, x->params, name, &e) != TNF_OK)
        fail_msg("%s: %s", name, e.message);
    for (size_t i = 0; i < p->nbytes; i++)
        assert_int_equal(((const uint8_t *)p->data)[i], name[0]);
    assert_int_equal((uintptr_t)p->data % 64, 0);
    return p;
}

/* Loads and releases each parameter; capitals must be in memory already. */
static void follow_script(struct fixture *x, const char *script)
{
    for (; *script; script++) {
        bool hit = *script >= 'A' && *script <= 'Z';
        char name[8] = { (char)(*script | 0x20) };
        if (name[0] == 't')
            snprintf(name, sizeof name, "tiny");
        tnf_params_stats before = stats_of(x->params);
        tnf_params_release(x->params, load_param(x, name));
        tnf_params_stats after = stats_of(x->params);
        if ((after.hits > before.hits) != hit)
            fail_msg("%s was%s in memory", name, hit ? " not" : "");
        assert_int_equal(after.hits + after.misses, before.hits + before.misses + 1);
        assert_int_equal(after.in_use, 0);
    }
}

static void expect_stats(struct fixture *x, uint64_t cached_bytes, uint64_t pinned_bytes,
                         uint64_t evictions)
{
    tnf_params_stats s = stats_of(x->params);
    assert_int_equal(s.cached_bytes, cached_bytes);
    assert_int_equal(s.pinned_bytes, pinned_bytes);
    assert_int_equal(s.evictions, evictions);
}

/* -------------------------------------------------------------------- rules */

static void test_no_rule_no_cache(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { 0 });
    follow_script(&x, "aabbdf");
    expect_stats(&x, 0, 0, 0);
    assert_true(stats_of(x.params).budget == UINT64_MAX);
    assert_int_equal(stats_of(x.params).loaded_bytes, 4 * 40 + 80 + 120);
    end_params(&x);
}

/* 100 bytes: a and b fit (80); c removes the one that was not used for the longest time. */
static void test_eviction_order(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { .budget = 100 });
    follow_script(&x, "abA"); /* now b was not used for the longest time */
    expect_stats(&x, 80, 0, 0);
    follow_script(&x, "c"); /* b is removed */
    expect_stats(&x, 80, 0, 1);
    follow_script(&x, "AC");
    follow_script(&x, "b"); /* a is removed, since it was used before c */
    expect_stats(&x, 80, 0, 2);
    follow_script(&x, "CB");
    follow_script(&x, "d"); /* 80 bytes: c and b are removed */
    expect_stats(&x, 80, 0, 4);
    follow_script(&x,
                  "f"); /* 120 bytes exceed the budget: it is not kept, and nothing is removed */
    expect_stats(&x, 80, 0, 4);
    follow_script(&x, "Dt");
    expect_stats(&x, 88, 0, 4);
    follow_script(&x, "TDa"); /* 128: tiny is removed first (120), then d */
    expect_stats(&x, 40, 0, 6);
    end_params(&x);
}

static void test_small_are_pinned_and_stay(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { .budget = 90, .small_bytes = 8 });
    follow_script(&x, "tab"); /* 8 + 40 + 40 */
    expect_stats(&x, 88, 8, 0);
    follow_script(&x, "d"); /* 8 + 80 fit, so a and b are removed, never tiny */
    expect_stats(&x, 88, 8, 2);
    follow_script(&x, "TDa");
    expect_stats(&x, 48, 8, 3);
    follow_script(&x, "T");
    end_params(&x);
}

static void test_pinned_leave_no_room(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { .budget = 85, .small_bytes = 8 });
    follow_script(&x, "td");
    expect_stats(&x, 8, 8, 0);
    follow_script(&x, "aA"); /* 48 of 85 */
    follow_script(&x, "dA"); /* d still does not fit, and a is not removed without need */
    expect_stats(&x, 48, 8, 0);
    end_params(&x);
}

static void test_threshold_alone(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { .small_bytes = 40 });
    follow_script(&x, "aAbBddtTAB");
    expect_stats(&x, 88, 88, 0);
    end_params(&x);
}

static void test_budget_is_the_smallest(void **state)
{
    (void)state;
    static const struct {
        uint64_t budget, cap;
        double percent;
        uint64_t want;
    } cases[] = { { 100, 0, 0, 100 },   { 100, 60, 0, 60 },   { 0, 60, 0, 60 },
                  { 0, 0, 0.5, 164 },   { 0, 0, 0.01, 3 },    { 150, 0, 0.5, 150 },
                  { 200, 0, 0.5, 164 }, { 200, 90, 0.5, 90 }, { 0, 0, 1.0, 328 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture x;
        begin_params(&x, (tnf_params_options) { .budget = cases[i].budget,
                                                .budget_cap = cases[i].cap,
                                                .budget_percent = cases[i].percent });
        assert_int_equal(stats_of(x.params).budget, cases[i].want);
        end_params(&x);
    }
}

/* A percentage of almost nothing is a budget, too. */
static void test_budget_of_nothing(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { .budget_percent = 0.001 });
    assert_int_equal(stats_of(x.params).budget, 0);
    follow_script(&x, "aat");
    expect_stats(&x, 0, 0, 0);
    end_params(&x);
}

static void test_bad_options(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { 0 });
    const double wrong[] = { -0.1, 1.1, 0.0 / 0.0 };
    for (size_t i = 0; i < 3; i++) {
        tnf_params *p;
        tnf_error e;
        tnf_params_options o = { .size = sizeof o, .budget_percent = wrong[i] };
        assert_int_equal(tnf_params_new(&p, x.file, &o, &e), TNF_EINVAL);
        assert_null(p);
    }
    end_params(&x);
}

/* ----------------------------------------------------------------- prefetch */

static const struct param layers[] = { { "blocks.0.w", 40 },  { "blocks.1.w", 40 },
                                       { "blocks.10.w", 40 }, { "blocks.2.w", 40 },
                                       { "blocks.x.w", 40 },  { "blocks.1", 40 },
                                       { "head", 40 } };

static tnf_params_stats stats_after_new(tnf_params_options o, const char *const *hits)
{
    tnf_error e = { 0 };
    bytes b = compose_archive(layers, sizeof layers / sizeof layers[0]);
    tnf_file *file = must_open(&b);
    tnf_params *p;
    o.size = sizeof o;
    if (tnf_params_new(&p, file, &o, &e) != TNF_OK)
        fail_msg("%s", e.message);
    tnf_params_stats s = stats_of(p);
    for (; *hits; hits++) {
        const tnf_param *got;
        assert_int_equal(tnf_params_load(&got, p, *hits, &e), TNF_OK);
        tnf_params_release(p, got);
    }
    assert_int_equal(stats_of(p).misses, s.misses);
    tnf_params_free(p);
    tnf_close(file);
    free(b.p);
    return s;
}

static void test_prefetch_layers(void **state)
{
    (void)state;
    tnf_params_stats s = stats_after_new((tnf_params_options) { .prefetch_layers = 2 },
                                         (const char *[]) { "blocks.0.w", "blocks.1.w", NULL });
    assert_int_equal(s.cached, 2);
    assert_int_equal(s.pinned_bytes, 80);
    s = stats_after_new((tnf_params_options) { .prefetch_layers = 11 },
                        (const char *[]) { "blocks.10.w", "blocks.2.w", NULL });
    assert_int_equal(s.cached, 4);
    s = stats_after_new((tnf_params_options) { .prefetch_layers = 2, .prefetch_prefix = "he" },
                        (const char *[]) { "head", "blocks.1.w", NULL });
    assert_int_equal(s.cached, 3);
}

/* In the order of the index, as far as the budget allows; parameters that do not fit are not
 * read. */
static void test_prefetch_within_budget(void **state)
{
    (void)state;
    tnf_params_stats s = stats_after_new(
        (tnf_params_options) { .prefetch_layers = 3, .budget = 90 },
        (const char *[]) { "blocks.0.w", "blocks.1.w", NULL });
    assert_int_equal(s.cached, 2);
    assert_int_equal(s.pinned_bytes, 80);
    assert_int_equal(s.loaded_bytes, 80);
}

static void test_prefetch_later_pins_what_is_there(void **state)
{
    (void)state;
    struct fixture x;
    tnf_error e;
    begin_params(&x, (tnf_params_options) { .budget = 100 });
    follow_script(&x, "ab");
    expect_stats(&x, 80, 0, 0);
    assert_int_equal(tnf_params_prefetch(x.params, "a", &e), TNF_OK);
    expect_stats(&x, 80, 40, 0);
    follow_script(&x, "c"); /* a is the oldest, but pinned: b is removed */
    expect_stats(&x, 80, 40, 1);
    follow_script(&x, "AC");
    assert_int_equal(tnf_params_prefetch(x.params, "d", &e), TNF_OK); /* not enough space with a */
    expect_stats(&x, 80, 40, 1);
    assert_int_equal(tnf_params_prefetch(x.params, "nothing", &e), TNF_OK);
    tnf_params_trim(x.params); /* also removes pinned parameters */
    expect_stats(&x, 0, 0, 1);
    follow_script(&x, "aA"); /* once prefetched, it stays pinned */
    expect_stats(&x, 40, 40, 1);
    end_params(&x);
}

/* ------------------------------------------------------------------- in use */

static void test_in_use_survives_eviction(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { .budget = 40 });
    const tnf_param *a = load_param(&x, "a"), *again;
    assert_int_equal(stats_of(x.params).in_use, 1);
    const tnf_param *b = load_param(&x, "b"); /* a is not kept any longer */
    expect_stats(&x, 40, 0, 1);
    assert_int_equal(stats_of(x.params).in_use, 2);
    assert_int_equal(((const uint8_t *)a->data)[39], 'a');
    again = load_param(&x,
                       "a"); /* it is still in memory, so nothing is read, and it is kept again */
    assert_ptr_equal(a, again);
    assert_int_equal(stats_of(x.params).misses, 2);
    expect_stats(&x, 40, 0, 2);
    tnf_params_trim(x.params); /* it is in use, so it stays */
    expect_stats(&x, 40, 0, 2);
    tnf_params_release(x.params, a);
    tnf_params_release(x.params, b);
    assert_int_equal(stats_of(x.params).in_use, 1);
    tnf_params_release(x.params, again);
    tnf_params_release(x.params, NULL);
    assert_int_equal(stats_of(x.params).in_use, 0);
    follow_script(&x, "Ab");
    end_params(&x);
}

static void test_freed_while_in_use(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { .budget = 40 });
    load_param(&x, "a");
    load_param(&x, "b");
    end_params(&x); /* nothing leaks */
}

static void test_by_id_and_key(void **state)
{
    (void)state;
    struct fixture x;
    tnf_id id, none = { { 1 } };
    tnf_error e;
    const tnf_param *p;
    const tnf_id space = tnf_namespace_id(0, 1);
    begin_params(&x, (tnf_params_options) { .name_space = &space });
    assert_memory_equal(tnf_params_namespace(x.params).bytes, space.bytes, 16);
    assert_int_equal(tnf_param_id(&id, "a", 1, &e), TNF_OK);
    assert_int_equal(tnf_params_load_id(&p, x.params, id, &e), TNF_OK);
    assert_ptr_equal(p->object, tnf_find(x.file, "a"));
    assert_int_equal(p->nbytes, 40);
    assert_memory_equal(p->base_id.bytes, id.bytes, 16);
    static const uint8_t key[16] = { 0x7e, 0x83, 0x16, 0x2c, 0xdf, 0x60, 0x94, 0x41,
                                     0xfb, 0xe4, 0xd4, 0x47, 0x66, 0x3a, 0x42, 0xad };
    assert_memory_equal(p->key.bytes, key, 16);
    tnf_params_release(x.params, p);
    assert_int_equal(tnf_params_load_id(&p, x.params, none, &e), TNF_ENOTFOUND);
    assert_null(p);
    assert_int_equal(tnf_params_load(&p, x.params, "z", &e), TNF_ENOTFOUND);
    assert_non_null(strstr(e.message, "z"));
    end_params(&x);
}

/* Parameters of a file with two tensors of one name: the last one counts, as in gpt.rs. */
static void test_duplicate_names(void **state)
{
    (void)state;
    bytes b = load_fixture("gptrs-checkpoint", "reject", "duplicate.bin");
    tnf_file *file;
    tnf_params *params;
    tnf_error e;
    const tnf_param *p;
    tnf_params_options o = { .size = sizeof o, .prefetch_prefix = "" };
    assert_int_equal(open_bytes(&file, &b, true, &e), TNF_OK);
    assert_int_equal(tnf_params_new(&params, file, &o, &e), TNF_OK);
    assert_int_equal(stats_of(params).cached, 1);
    assert_int_equal(stats_of(params).in_use, 0);
    assert_int_equal(tnf_params_load(&p, params, "w", &e), TNF_OK);
    assert_ptr_equal(p->object, tnf_at(file, 1));
    tnf_params_release(params, p);
    tnf_params_free(params);
    tnf_close(file);
    free(b.p);
}

/* Names with a NUL are found by their lengths, one at a time and ahead. */
static void test_names_with_nul(void **state)
{
    (void)state;
    static const tnf_str names[] = { TNF_STR("a"), TNF_STR("a\0b"), TNF_STR("a\0\xff") };
    static const uint8_t data[] = { 1, 2, 3 };
    const tnf_str wrong = TNF_STR("a\0c");
    tnf_builder *b;
    tnf_file *file;
    tnf_params *params;
    const tnf_param *p;
    tnf_error e;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    for (size_t i = 0; i < 3; i++) {
        tnf_part part = { .role = "data",
                          .type = tnf_type_of(TNF_U8),
                          .payload = TNF_MEMORY,
                          .memory = data + i,
                          .stored = 1,
                          .nbytes = 1 };
        tnf_object o = {
            .name = names[i], .layout = tnf_layout_by_id("dense"), .parts = &part, .nparts = 1
        };
        assert_int_equal(tnf_builder_add_object(b, &o, NULL, &e), TNF_OK);
    }
    assert_int_equal(tnf_open_builder(&file, b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_params_new(&params, file, NULL, &e), TNF_OK);
    assert_int_equal(tnf_params_ahead(params, &wrong, 1, &e), TNF_ENOTFOUND);
    assert_int_equal(tnf_params_ahead(params, names + 1, 2, &e), TNF_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tnf_params_load_n(&p, params, names[i].p, names[i].n, &e), TNF_OK);
        assert_int_equal(*(const uint8_t *)p->data, i + 1);
        tnf_params_release(params, p);
    }
    assert_int_equal(tnf_params_load_n(&p, params, wrong.p, wrong.n, &e), TNF_ENOTFOUND);
    assert_null(p);
    assert_non_null(strstr(e.message, "'a\\x00c'"));
    tnf_params_free(params);
    tnf_close(file);
    tnf_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_rule_no_cache),
        cmocka_unit_test(test_eviction_order),
        cmocka_unit_test(test_small_are_pinned_and_stay),
        cmocka_unit_test(test_pinned_leave_no_room),
        cmocka_unit_test(test_threshold_alone),
        cmocka_unit_test(test_budget_is_the_smallest),
        cmocka_unit_test(test_budget_of_nothing),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_prefetch_layers),
        cmocka_unit_test(test_prefetch_within_budget),
        cmocka_unit_test(test_prefetch_later_pins_what_is_there),
        cmocka_unit_test(test_in_use_survives_eviction),
        cmocka_unit_test(test_freed_while_in_use),
        cmocka_unit_test(test_by_id_and_key),
        cmocka_unit_test(test_duplicate_names),
        cmocka_unit_test(test_names_with_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
