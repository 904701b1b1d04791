/* SPDX-License-Identifier: MIT */
/* The config of a gpt.rs checkpoint: its bytes are kept, checked, and written. */
#include "../support/arena.h"
#include "gptrs_files.h"

#include "base/error.h"
#include "formats/gptrs/config.h"

#define GPT                                                                                        \
    "{\"vocab_size\":32,\"context_length\":16,\"embed_dim\":8,\"num_layers\":1,\"num_heads\":2,"   \
    "\"mlp_ratio\":2,\"dropout\":0.0}"

static tnf_gptrs_config parse_config(const char *text)
{
    tnf_gptrs_config c;
    tnf_error e;
    if (tnf_gptrs_config_parse(&c, text, strlen(text), 16, &arena, 64, &e) != TNF_OK)
        fail_msg("%s: %s", text, e.message);
    return c;
}

static void assert_str(tnf_str s, const char *want)
{
    assert_int_equal(s.n, strlen(want));
    assert_memory_equal(s.p, want, s.n);
}

static void test_tagged(void **state)
{
    (void)state;
    tnf_gptrs_config c = parse_config(
        "{\"kind\":\"g\\u0070t\", \"config\":{\"a\":[1, 2]},\"runtime\":null}");
    assert_str(c.kind, "gpt");
    assert_str(c.config, "{\"a\":[1, 2]}");
    assert_str(c.runtime, "null");
    assert_false(c.untagged);
    assert_int_equal(c.nfindings, 0);
    assert_null(c.metadata.p);
}

static void test_untagged(void **state)
{
    (void)state;
    tnf_gptrs_config c = parse_config(GPT);
    assert_true(c.untagged);
    assert_str(c.kind, "gpt");
    assert_str(c.config, GPT);
    assert_int_equal(c.nfindings, 0);
    c = parse_config("{\"vocab_size\":32}");
    assert_false(c.untagged);
    assert_null(c.kind.p);
    assert_int_equal(c.nfindings, 1);
    assert_int_equal(c.findings[0].offset, 16);
    assert_non_null(strstr(c.findings[0].message, "context_length is missing"));
}

static void test_padding_is_not_content(void **state)
{
    (void)state;
    assert_str(parse_config("{\"kind\":\"x\"}    ").text, "{\"kind\":\"x\"}");
    assert_str(parse_config(" {\"kind\":\"x\"}\n").text, " {\"kind\":\"x\"}\n");
}

/* More findings than the list can hold do no harm. */
static void test_many_findings(void **state)
{
    (void)state;
    char text[400] = "{\"kind\":\"x\",\"runtime\":{\"functional_overrides\":{";
    for (int i = 0; i < 20; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s\"k%d\":%d", i ? "," : "", i, i);
    }
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "}}}");
    assert_int_equal(parse_config(text).nfindings, 8);
}

static void test_not_json(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t offset;
    } cases[] = { { "", 16 },
                  { "   ", 16 },
                  { "{", 17 },
                  { "{\"kind\"", 23 },
                  { "{\"kind\":}", 24 },
                  { "{\"a\":1}x", 23 },
                  { "nul", 19 },
                  { "{\"runtime\":{\"a\":[1,]}}", 35 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tnf_gptrs_config c;
        tnf_error e = { 0 };
        const char *t = cases[i].text;
        assert_int_equal(tnf_gptrs_config_parse(&c, t, strlen(t), 16, &arena, 64, &e), TNF_EFORMAT);
        assert_int_equal(e.status, TNF_EFORMAT);
        assert_int_equal(e.offset, cases[i].offset);
        assert_int_equal(tnf_gptrs_config_parse(&c, t, strlen(t), 16, &arena, 64, NULL),
                         TNF_EFORMAT);
    }
}

/* ---------------------------------------------------------------- writing */

static char *put_config(tnf_gptrs_recipe recipe)
{
    static char text[2000];
    tnf_buf b;
    tnf_error e = { 0 };
    recipe.kind = recipe.kind ? recipe.kind : "";
    recipe.config = recipe.config ? recipe.config : "";
    tnf_buf_init(&b, &arena.alloc, sizeof text - 1);
    tnf_status status = tnf_gptrs_config_put(&b, &recipe, &arena, &e);
    snprintf(text, sizeof text, "%.*s", (int)b.n, b.p ? (const char *)b.p : "");
    tnf_buf_free(&b);
    if (status != TNF_OK)
        snprintf(text, sizeof text, "%s", tnf_status_name(status));
    return text;
}

#define STR(s)                                                                                     \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

static void test_verbatim_or_placeholder(void **state)
{
    (void)state;
    assert_string_equal(put_config((tnf_gptrs_recipe) { .source = STR(" { \"kind\" : \"x\" }\n") }),
                        " { \"kind\" : \"x\" }\n");
    char *text = put_config((tnf_gptrs_recipe) { 0 });
    assert_string_equal(text, "{\"kind\":\"unknown\",\"config\":{}}");
    assert_true(parse_config(text).placeholder);
    assert_string_equal(put_config((tnf_gptrs_recipe) { .source = STR("oops") }), "TNF_EINVAL");
}

static void test_options(void **state)
{
    (void)state;
    static const struct {
        tnf_gptrs_recipe recipe;
        const char *want;
    } cases[] = {
        { { .kind = "gpt" }, "{\"kind\":\"gpt\",\"config\":{}}" },
        { { .config = "[1, 2]" }, "{\"kind\":\"unknown\",\"config\":[1, 2]}" },
        { { .kind = "a\"b", .config = "{\"x\":1}" }, "{\"kind\":\"a\\\"b\",\"config\":{\"x\":1}}" },
        /* An old bare config is wrapped. */
        { { .source = STR(GPT), .kind = "gpt" }, "{\"kind\":\"gpt\",\"config\":" GPT "}" },
        { { .source = STR(GPT), .config = "{}" }, "{\"kind\":\"gpt\",\"config\":{}}" },
        /* In a tagged config, the rest stays. */
        { { .source = STR("{\"config\":[ ],\"kind\":\"a\",\"runtime\":{}}"), .kind = "b" },
          "{\"kind\":\"b\",\"config\":[ ],\"runtime\":{}}" },
        { { .source = STR("{\"kind\":\"a\"}"), .kind = "b" }, "{\"kind\":\"b\",\"config\":null}" },
        { { .source = STR("{\"kind\":\"a\",\"config\":1}"), .config = "2" },
          "{\"kind\":\"a\",\"config\":2}" },
        { { .source = STR("[1]"), .kind = "b" }, "{\"kind\":\"b\",\"config\":[1]}" },
        { { .config = "{" }, "TNF_EINVAL" },
        { { .config = "{} {}" }, "TNF_EINVAL" },
        { { .kind = "\xff" }, "TNF_EINVAL" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(put_config(cases[i].recipe), cases[i].want);
}

/* In any document, inserted texts are found again and can be removed without a trace. */
static void test_metadata_round_trip(void **state)
{
    (void)state;
    static const tnf_member pairs[] = {
        { STR("author"), { .kind = TNF_STRING, .n = 5, .as.s = "J\xc3\xb6rg" } },
        { STR("q\"\n"), { .kind = TNF_STRING, .n = 3, .as.s = "a\0b" } },
    };
    static const tnf_str sources[] = {
        STR("{}"),
        STR("{ }"),
        STR(" \n{\t} \n"),
        STR("{\"kind\":\"gpt\",\"config\":{}}"),
        STR("{\"kind\":\"gpt\" , \"config\":{} \n } \n"),
        STR("{\"kind\":\"}\",\"a\":\"{\"}"),
        STR(GPT),
        STR("{\"tenfold.metadata\":{\"a\":\"b\"},\"kind\":\"x\"}"), /* not last: not ours */
    };
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        char *text = put_config(
            (tnf_gptrs_recipe) { .source = sources[i], .text = pairs, .ntext = 2 });
        tnf_gptrs_config c = parse_config(text);
        assert_str(c.text, sources[i].p);
        assert_str(c.metadata, "{\"author\":\"J\xc3\xb6rg\",\"q\\\"\\n\":\"a\\u0000b\"}");
        assert_memory_equal(text + c.metadata_at - 16, c.metadata.p, c.metadata.n);
    }
    assert_string_equal(
        put_config((tnf_gptrs_recipe) { .source = STR("[]"), .text = pairs, .ntext = 1 }),
        "TNF_EINVAL");
}

/* Another program's member with that name is not changed. */
static void test_foreign_metadata(void **state)
{
    (void)state;
    static const char *const texts[] = { "{\"kind\":\"x\",\"tenfold.metadata\":1}",
                                         "{\"kind\":\"x\",\"tenfold.metadata\":{\"a\":1}}",
                                         "{\"tenfold.metadata\":{},\"kind\":\"x\"}" };
    for (size_t i = 0; i < 3; i++) {
        tnf_gptrs_config c = parse_config(texts[i]);
        assert_null(c.metadata.p);
        assert_str(c.text, texts[i]);
    }
    /* It is found even in reformatted text. */
    tnf_gptrs_config c = parse_config(
        "{ \"kind\": \"x\" ,\n  \"tenfold.metadata\" : { \"a\": \"b\" }\n}");
    assert_str(c.metadata, "{ \"a\": \"b\" }");
    assert_str(c.text, "{ \"kind\": \"x\" \n}");
}

static void test_no_memory_for_it(void **state)
{
    (void)state;
    tnf_buf b;
    tnf_error e;
    tnf_gptrs_recipe recipe = { .source = STR(GPT), .kind = "", .config = "" };
    tnf_buf_init(&b, &arena.alloc, 20);
    assert_int_equal(tnf_gptrs_config_put(&b, &recipe, &arena, &e), TNF_ELIMIT);
    const tnf_member pair = { STR("a"), { .kind = TNF_STRING, .n = 0, .as.s = "" } };
    recipe.text = &pair;
    recipe.ntext = 1;
    assert_int_equal(tnf_gptrs_config_put(&b, &recipe, &arena, &e), TNF_ELIMIT);
    tnf_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tagged),
        cmocka_unit_test(test_untagged),
        cmocka_unit_test(test_padding_is_not_content),
        cmocka_unit_test(test_many_findings),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_verbatim_or_placeholder),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_metadata_round_trip),
        cmocka_unit_test(test_foreign_metadata),
        cmocka_unit_test(test_no_memory_for_it),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
