/* SPDX-License-Identifier: MIT */
/* The options of a source from runtime.weight_streaming of a config. The expected budgets are those
 * of gpt.rs: entries of 30, 20 and 10 bytes, and the smallest of the limits that are set. */
#include "params_files.h"

#include <tenfold/value.h>

#define STREAMING(settings)                                                                        \
    "{\"kind\":\"gpt\",\"config\":{},\"runtime\":{\"weight_streaming\":{" settings "}}}"

/* A file of any format, with this config. */
static tnf_file *file_with(tnf_builder **b, const char *config)
{
    static const uint64_t shapes[] = { 30, 20, 10 };
    static const char *const names[] = { "blocks.0.w", "blocks.1.w", "head" };
    static const uint8_t zeros[30];
    tnf_file *file;
    tnf_error e = { 0 };
    assert_int_equal(tnf_builder_new(b, NULL, &e), TNF_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            tnf_builder_add(*b, names[i], tnf_type_of(TNF_U8), 1, &shapes[i], zeros, &e), TNF_OK);
    if (config) {
        const tnf_value json = tnf_value_json(config, strlen(config));
        assert_int_equal(tnf_builder_set(*b, NULL, "gptrs.config", &json, &e), TNF_OK);
    }
    assert_int_equal(tnf_open_builder(&file, *b, NULL, &e), TNF_OK);
    return file;
}

static tnf_status read_config(tnf_params_options *o, const char *config, tnf_error *e)
{
    tnf_builder *b;
    tnf_file *file = file_with(&b, config);
    memset(e, 0, sizeof *e);
    tnf_status status = tnf_params_options_from_config(o, file, e);
    tnf_close(file);
    tnf_builder_free(b);
    return status;
}

static tnf_params_options options_of(const char *config)
{
    tnf_params_options o = TNF_PARAMS_INIT;
    tnf_error e;
    if (read_config(&o, config, &e) != TNF_OK)
        fail_msg("%s: %s", config, e.message);
    return o;
}

/* The statistics of a source that was made with a config. */
static tnf_params_stats source_with(const char *config)
{
    tnf_params_options o = options_of(config);
    tnf_builder *b;
    tnf_params *params;
    tnf_error e;
    tnf_file *file = file_with(&b, config);
    assert_int_equal(tnf_params_new(&params, file, &o, &e), TNF_OK);
    const tnf_params_stats s = stats_of(params);
    tnf_params_free(params);
    tnf_close(file);
    tnf_builder_free(b);
    return s;
}

static void test_members(void **state)
{
    (void)state;
    const tnf_params_options o = options_of(
        STREAMING("\"enabled\":true,\"device_budget_bytes\":2147483648,\"device_weights_percent\":"
                  "0.1,\"cache_budget_cap_bytes\":18446744073709551615,\"prefetch_layers\":"
                  "4294967296,\"small_param_persist_threshold\":65536"));
    assert_int_equal(o.budget, 2147483648u);
    assert_true(o.budget_percent == (double)0.1f); /* as f32 */
    assert_int_equal(o.budget_cap, UINT64_MAX);
    assert_int_equal(o.prefetch_layers, 4294967296u);
    assert_int_equal(o.small_bytes, 65536);
    assert_false(o.budget_zero);
}

static void test_budgets(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        uint64_t budget;
    } cases[] = {
        { STREAMING("\"enabled\":true,\"device_weights_percent\":0.5"), 30 },
        { STREAMING("\"enabled\":true,\"device_budget_bytes\":40,\"device_weights_percent\":0.8"),
          40 },
        { STREAMING("\"enabled\":true,\"device_budget_bytes\":40,\"device_weights_percent\":0.5"),
          30 },
        { STREAMING("\"enabled\":true,\"device_budget_bytes\":40,\"cache_budget_cap_bytes\":7"),
          7 },
        { STREAMING("\"enabled\":true,\"cache_budget_cap_bytes\":7"), 7 },
        { STREAMING("\"enabled\":true,\"device_weights_percent\":1"), 60 },
        { STREAMING("\"enabled\":true,\"device_weights_percent\":1.00000001"), 60 }, /* as f32 */
        { STREAMING("\"enabled\":true,\"device_weights_percent\":1e-30"), 0 },
        { STREAMING("\"enabled\":true,\"device_weights_percent\":0"), 0 },
        { STREAMING("\"enabled\":true,\"device_weights_percent\":-0.0"), 0 },
        { STREAMING("\"enabled\":true,\"device_budget_bytes\":0"), 0 },
        { STREAMING("\"enabled\":true,\"device_budget_bytes\":9,\"cache_budget_cap_bytes\":0"), 0 },
        { STREAMING("\"enabled\":true"), UINT64_MAX },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].config);
        assert_int_equal(source_with(cases[i].config).budget, cases[i].budget);
    }
}

static void test_layers(void **state)
{
    (void)state;
    assert_int_equal(source_with(STREAMING("\"enabled\":true,\"prefetch_layers\":0")).cached, 0);
    assert_int_equal(source_with(STREAMING("\"enabled\":true,\"prefetch_layers\":1")).cached, 1);
    assert_int_equal(
        source_with(STREAMING("\"enabled\":true,\"prefetch_layers\":18446744073709551615")).cached,
        2);
    assert_int_equal(source_with(STREAMING("\"enabled\":true,\"prefetch_layers\":2,"
                                           "\"device_budget_bytes\":0"))
                         .cached,
                     0);
}

/* The number of a layer is one that Rust's parse::<usize>() reads. */
static void test_numbers_of_layers(void **state)
{
    (void)state;
    static const struct param list[] = {
        { "blocks.+1.w", 4 }, { "blocks.01.w", 4 },
        { "blocks.1x.w", 4 }, { "blocks.1", 4 },
        { "blocks..w", 4 },   { "blocks.+.w", 4 },
        { "blocks.-1.w", 4 }, { "blocks.++1.w", 4 },
        { "xblocks.1.w", 4 }, { "blocks.18446744073709551616.w", 4 }
    };
    bytes b = compose_archive(list, sizeof list / sizeof *list);
    tnf_file *file = must_open(&b);
    for (int i = 0; i < 2; i++) {
        tnf_params_options o = { .size = sizeof o, .prefetch_layers = i ? UINT64_MAX : 2 };
        tnf_params *params;
        tnf_error e;
        assert_int_equal(tnf_params_new(&params, file, &o, &e), TNF_OK);
        assert_int_equal(stats_of(params).cached, 2);
        tnf_params_free(params);
    }
    tnf_close(file);
    free(b.p);
}

/* Without streaming everything is read once and kept; other options stay as they are. */
static void test_off(void **state)
{
    (void)state;
    static const char *const configs[] = {
        NULL,
        "{\"kind\":\"gpt\",\"config\":{}}",
        "{\"kind\":\"gpt\",\"runtime\":null}",
        "{\"kind\":\"gpt\",\"runtime\":{}}",
        "{\"kind\":\"gpt\",\"runtime\":{\"functional_overrides\":{\"a\":\"\"}}}",
        STREAMING(""),
        STREAMING("\"enabled\":false"),
        STREAMING("\"enabled\":false,\"prefetch_layers\":null"),
        /* a bare GPT config, whose runtime is none */
        "{\"vocab_size\":3,\"runtime\":{\"weight_streaming\":{\"enabled\":true}}}",
        "{\"kind\":3,\"runtime\":7}",
        "[]",
    };
    const tnf_id space = tnf_namespace_id(1, 2);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        tnf_params_options o = { .size = sizeof o,
                                 .name_space = &space,
                                 .budget = 1,
                                 .budget_cap = 1,
                                 .budget_percent = 0.5,
                                 .small_bytes = 1,
                                 .prefetch_layers = 1,
                                 .prefetch_prefix = "x",
                                 .budget_zero = true };
        tnf_error e;
        print_message("%s\n", configs[i] ? configs[i] : "none");
        assert_int_equal(read_config(&o, configs[i], &e), TNF_OK);
        assert_true(o.budget == UINT64_MAX && o.budget_cap == 0 && o.budget_percent == 0);
        assert_true(o.small_bytes == 0 && o.prefetch_layers == 0 && !o.budget_zero);
        assert_ptr_equal(o.name_space, &space);
        assert_string_equal(o.prefetch_prefix, "x");
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        tnf_status status;
        const char *says;
    } cases[] = {
        { STREAMING("\"enabled\":1"), TNF_EFORMAT, "runtime.weight_streaming.enabled is not true" },
        { STREAMING("\"enabled\":true,\"enabled\":true"), TNF_EFORMAT, "the key 'enabled' twice" },
        { STREAMING("\"enabled\":null"), TNF_EFORMAT, "enabled is not true or false" },
        { STREAMING("\"enabled\":true,\"device_budget_bytes\":-1"), TNF_EFORMAT,
          "device_budget_bytes is not a whole number" },
        { STREAMING("\"enabled\":true,\"cache_budget_cap_bytes\":1.0"), TNF_EFORMAT,
          "cache_budget_cap_bytes is not a whole number" },
        { STREAMING("\"enabled\":true,\"prefetch_layers\":\"2\""), TNF_EFORMAT,
          "prefetch_layers is not a whole number" },
        { STREAMING("\"enabled\":true,\"small_param_persist_threshold\":18446744073709551616"),
          TNF_EFORMAT, "small_param_persist_threshold is not a whole number" },
        { STREAMING("\"enabled\":true,\"device_weights_percent\":1.5"), TNF_EFORMAT,
          "device_weights_percent is not a number from 0 to 1" },
        { STREAMING("\"enabled\":true,\"device_weights_percent\":-0.1"), TNF_EFORMAT,
          "device_weights_percent" },
        { STREAMING("\"enabled\":true,\"device_weights_percent\":true"), TNF_EFORMAT,
          "device_weights_percent" },
        { STREAMING("\"enabled\":true,\"host_budget_bytes\":5"), TNF_EUNSUPPORTED,
          "the unknown setting 'host_budget_bytes'" },
        { STREAMING("\"prefetch_layers\":1"), TNF_EFORMAT,
          "sets prefetch_layers, but runtime.weight_streaming.enabled is not true" },
        { STREAMING("\"enabled\":false,\"device_budget_bytes\":0"), TNF_EFORMAT,
          "sets device_budget_bytes" },
        { "{\"kind\":\"gpt\",\"runtime\":{\"weight_streaming\":null}}", TNF_EFORMAT,
          "weight_streaming is not an object" },
        { "{\"kind\":\"gpt\",\"runtime\":{\"weight_streaming\":[true]}}", TNF_EFORMAT,
          "weight_streaming is not an object" },
        { "{\"kind\":\"gpt\",\"runtime\":3}", TNF_EFORMAT, "runtime is neither" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_params_options o = { .size = sizeof o, .budget = 77 };
        tnf_error e;
        print_message("%s\n", cases[i].config);
        assert_int_equal(read_config(&o, cases[i].config, &e), cases[i].status);
        assert_non_null(strstr(e.message, cases[i].says));
        assert_int_equal(o.budget, 77); /* unchanged */
    }
}

/* A checkpoint of the fixtures. */
static void test_checkpoint(void **state)
{
    (void)state;
    bytes b = load_fixture("gptrs-checkpoint", "valid", "runtime_streaming.bin");
    tnf_file *file = must_open(&b);
    tnf_params_options o = TNF_PARAMS_INIT;
    tnf_params *params;
    tnf_error e = { 0 };
    assert_int_equal(tnf_params_options_from_config(&o, file, &e), TNF_OK);
    assert_int_equal(o.budget, 2147483648u);
    assert_true(o.budget_percent == 0.5);
    assert_int_equal(o.prefetch_layers, 2);
    assert_int_equal(tnf_params_new(&params, file, &o, &e), TNF_OK);
    assert_int_equal(stats_of(params).budget, tnf_file_info(file)->payload / 2);
    tnf_params_free(params);
    tnf_close(file);
    free(b.p);
}

/* ------------------------------------------------------------------ memory */

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    static const char config[] = STREAMING("\"enabled\":true,\"device_budget_bytes\":5");
    tnf_status status = TNF_ENOMEM;
    int n = 0;
    for (; status == TNF_ENOMEM; n++) {
        struct memory_log f = { .fail_at = (uint64_t)n + 1, .fail_once = true };
        tnf_params_options o = { .size = sizeof o, .allocator = memory_allocator(&f) };
        tnf_error e;
        status = read_config(&o, config, &e);
        assert_int_equal(f.live + f.wrong_sizes, 0);
        assert_int_equal(o.budget, status == TNF_OK ? 5 : 0);
    }
    assert_int_equal(status, TNF_OK);
    assert_true(n > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),    cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_layers),     cmocka_unit_test(test_numbers_of_layers),
        cmocka_unit_test(test_off),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_checkpoint), cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
