/* SPDX-License-Identifier: MIT */
/* The JSON reader compared with RFC 8259: what it accepts, what it refuses, and at which byte. */
#include "json_fixture.h"

/* ----------------------------------------------------------------- syntax */

static void takes_valid_texts(void **state)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1",
        "10",
        "1.5",
        "1e5",
        "1E+5",
        "1.25e-10",
        "123456789012345678901234567890",
        "\"\"",
        "\"a\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
        "\"\\u0000\"",
        "[]",
        "[ ]",
        "[1]",
        "[1,2,[3,[4]],{}]",
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"a\" : { \"b\" : [ true , false , null ] } , \"c\" : \"d\" }",
        " \t\r\n[ \t\r\n] \t\r\n",
        "[[[[[[[[]]]]]]]]",
        "{\"a\":[{\"a\":[{\"a\":[{\"a\":[]}]}]}]}",
        "{\"\":0}",
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tnf_value v;
        char *text = begin_text(f, texts[i]);
        if (!tnf_json_skip(&f->r, NULL) || tnf_json_end(&f->r) != TNF_OK)
            fail_msg("%s: %s", texts[i], f->e.message);
        free(text);
        text = begin_text(f, texts[i]);
        if (!tnf_json_value(&f->r, &v) || tnf_json_end(&f->r) != TNF_OK)
            fail_msg("%s: %s", texts[i], f->e.message);
        free(text);
    }
}

struct wrong {
    const char *text;
    uint64_t at;
    tnf_status status;
};

static const struct wrong wrongs[] = {
    { "", 0, TNF_ETRUNCATED },
    { "  ", 2, TNF_ETRUNCATED },
    { "[", 1, TNF_ETRUNCATED },
    { "{", 1, TNF_ETRUNCATED },
    { "[1", 2, TNF_ETRUNCATED },
    { "[1,", 3, TNF_ETRUNCATED },
    { "{\"a\"", 4, TNF_ETRUNCATED },
    { "{\"a\":", 5, TNF_ETRUNCATED },
    { "{\"a\":1", 6, TNF_ETRUNCATED },
    { "{\"a\":1,", 7, TNF_ETRUNCATED },
    { "\"", 1, TNF_ETRUNCATED },
    { "\"abcdefghijkl", 13, TNF_ETRUNCATED },
    { "\"abc\\", 5, TNF_ETRUNCATED },
    { "\"abc\\\"", 6, TNF_ETRUNCATED },
    { "tru", 3, TNF_ETRUNCATED },
    { "-", 1, TNF_ETRUNCATED },
    { "1.", 2, TNF_ETRUNCATED },
    { "1e", 2, TNF_ETRUNCATED },
    { "1e+", 3, TNF_ETRUNCATED },
    { "]", 0, TNF_EFORMAT },
    { "}", 0, TNF_EFORMAT },
    { "[1,]", 3, TNF_EFORMAT },
    { "[,1]", 1, TNF_EFORMAT },
    { "[1 2]", 3, TNF_EFORMAT },
    { "[1,,2]", 3, TNF_EFORMAT },
    { "[1}", 2, TNF_EFORMAT },
    { "{\"a\":1]", 6, TNF_EFORMAT },
    { "{\"a\":1,}", 7, TNF_EFORMAT },
    { "{,}", 1, TNF_EFORMAT },
    { "{\"a\"}", 4, TNF_EFORMAT },
    { "{\"a\" 1}", 5, TNF_EFORMAT },
    { "{\"a\":}", 5, TNF_EFORMAT },
    { "{\"a\"::1}", 5, TNF_EFORMAT },
    { "{a:1}", 1, TNF_EFORMAT },
    { "{'a':1}", 1, TNF_EFORMAT },
    { "{1:1}", 1, TNF_EFORMAT },
    { "01", 0, TNF_EFORMAT },
    { "-01", 1, TNF_EFORMAT },
    { "[00]", 1, TNF_EFORMAT },
    { "+1", 0, TNF_EFORMAT },
    { ".5", 0, TNF_EFORMAT },
    { "1.e5", 2, TNF_EFORMAT },
    { "1e5.5", 3, TNF_EFORMAT },
    { "0x10", 1, TNF_EFORMAT },
    { "-a", 1, TNF_EFORMAT },
    { "--1", 1, TNF_EFORMAT },
    { "NaN", 0, TNF_EFORMAT },
    { "Infinity", 0, TNF_EFORMAT },
    { "-Infinity", 1, TNF_EFORMAT },
    { "nul1", 3, TNF_EFORMAT },
    { "True", 0, TNF_EFORMAT },
    { "nullx", 4, TNF_EFORMAT },
    { "1 2", 2, TNF_EFORMAT },
    { "{}{}", 2, TNF_EFORMAT },
    { "[] ]", 3, TNF_EFORMAT },
    { "// c\n1", 0, TNF_EFORMAT },
    { "[1/**/]", 2, TNF_EFORMAT },
    { "\xef\xbb\xbf{}", 0, TNF_EFORMAT },
    { "\f1", 0, TNF_EFORMAT },
    { "\xc2\xa0"
      "1",
      0, TNF_EFORMAT },
    /* strings */
    { "\"a\nb\"", 2, TNF_EFORMAT },
    { "\"a\tb\"", 2, TNF_EFORMAT },
    { "\"abcdefghijklmnop\x01\"", 17, TNF_EFORMAT },
    { "\"\x1f\"", 1, TNF_EFORMAT },
    { "\"abc\\x41\"", 4, TNF_EFORMAT },
    { "\"\\a\"", 1, TNF_EFORMAT },
    { "\"\\'\"", 1, TNF_EFORMAT },
    { "\"\\U0041\"", 1, TNF_EFORMAT },
    { "\"\\u12\"", 1, TNF_EFORMAT },
    { "\"\\u12g4\"", 1, TNF_EFORMAT },
    { "\"\\u\"", 1, TNF_EFORMAT },
    { "\"\\ud800\"", 1, TNF_EFORMAT },
    { "\"x\\udc00\"", 2, TNF_EFORMAT },
    { "\"\\ud800\\u0041\"", 1, TNF_EFORMAT },
    { "\"\\ud800\\ud800\"", 1, TNF_EFORMAT },
    { "\"\\udc00\\ud800\"", 1, TNF_EFORMAT },
    { "\"\\ud83d\\n\"", 1, TNF_EFORMAT },
    { "\"\\ud83d\\udE0\"", 1, TNF_EFORMAT },
    { "\"a\xff\"", 2, TNF_EFORMAT },
    { "\"ab\xc0\xaf\"", 3, TNF_EFORMAT },
    { "\"\xed\xa0\x80\"", 1, TNF_EFORMAT },
    { "\"\xe2\x82\"", 1, TNF_EFORMAT },
    { "\"\xf4\x90\x80\x80\"", 1, TNF_EFORMAT },
    { "\"\\\xc3\xa9\"", 1, TNF_EFORMAT },
    { "{\"k\xff\":1}", 3, TNF_EFORMAT },
    { "{\"k\\q\":1}", 3, TNF_EFORMAT },
    /* one deeper than DEPTH */
    { "[[[[[[[[[]]]]]]]]]", 8, TNF_ELIMIT },
    { "{\"a\":[{\"a\":[{\"a\":[{\"a\":[{}]}]}]}]}", 24, TNF_ELIMIT },
};

static void refuses_wrong_texts_where_they_are_wrong(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const struct wrong *w = &wrongs[i];
        tnf_value v;
        for (int pass = 0; pass < 3; pass++) {
            char *text = begin_text(f, w->text);
            bool ok = pass == 0   ? tnf_json_skip(&f->r, NULL)
                      : pass == 1 ? tnf_json_value(&f->r, &v)
                                  : tnf_json_typed(&f->r, &v);
            if (ok && tnf_json_end(&f->r) == TNF_OK)
                fail_msg("accepted: %s", w->text);
            if (f->e.status != w->status || f->e.offset != BASE + w->at)
                fail_msg("%s: status %d at %llu: %s", w->text, f->e.status,
                         (unsigned long long)(f->e.offset - BASE), f->e.message);
            free(text);
        }
    }
}

static void a_nul_is_no_space_and_no_end(void **state)
{
    fixture *f = *state;
    char *text = begin_n(f, "1\0", 2);
    assert_true(tnf_json_skip(&f->r, NULL));
    assert_int_equal(tnf_json_end(&f->r), TNF_EFORMAT);
    assert_error(f, TNF_EFORMAT, 1);
    free(text);
    text = begin_n(f, "\"a\0b\"", 5);
    assert_false(tnf_json_skip(&f->r, NULL));
    assert_error(f, TNF_EFORMAT, 2);
    free(text);
    text = begin_n(f, "\"\\\0\"", 4);
    assert_false(tnf_json_skip(&f->r, NULL));
    assert_error(f, TNF_EFORMAT, 1);
    free(text);
}

/* Any prefix of a text is refused, by every reader, without reading past the end. */
static void every_cut_is_refused(void **state)
{
    static const char whole[] = "{\"a\\u00e9\\ud83d\\ude00\":[1.5e3,-2,{\"$f32\":\"7fc00000\"},"
                                "true,null,\"xyz\\n\"],\"b\":{\"c\":[false]}}";
    fixture *f = *state;
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        tnf_value v;
        char *text = begin_n(f, whole, n);
        assert_false(tnf_json_skip(&f->r, NULL));
        free(text);
        text = begin_n(f, whole, n);
        assert_false(tnf_json_value(&f->r, &v));
        free(text);
        text = begin_n(f, whole, n);
        assert_false(tnf_json_typed(&f->r, &v));
        free(text);
    }
}

/* The quote, escape, control or high byte is found at every place in a word of eight bytes. */
static void strings_of_every_length(void **state)
{
    static const char specials[] = { '"', '\\', '\x1f', '\0', '\x80', '\xff', '\x7f', ' ', '!' };
    fixture *f = *state;
    for (size_t n = 0; n < 40; n++) {
        for (size_t s = 0; s < sizeof specials; s++) {
            char text[64] = "\"";
            for (size_t i = 0; i < n; i++)
                text[1 + i] = (char)('!' + 2 + i); /* '#' on: no quote, no backslash below 0x5c */
            text[1 + n] = specials[s];
            text[2 + n] = '"';
            tnf_str out;
            char *copy = begin_n(f, text, n + 3);
            bool plain = specials[s] == '\x7f' || specials[s] == ' ' || specials[s] == '!';
            bool ok = tnf_json_string(&f->r, &out);
            assert_int_equal(ok, plain || specials[s] == '"');
            if (ok) {
                assert_int_equal(out.n, n + plain);
                assert_memory_equal(out.p, text + 1, out.n);
                assert_int_equal(tnf_json_where(&f->r), BASE + n + 2 + plain);
            } else if (specials[s] == '\\') {
                assert_error(f, TNF_ETRUNCATED, n + 3);
            } else {
                assert_error(f, TNF_EFORMAT, n + 1);
            }
            free(copy);
        }
    }
}

/* ---------------------------------------------------------------- pulling */

static void pulls_keys_values_and_positions(void **state)
{
    fixture *f = *state;
    char *text = begin_text(f, " {\"one\": 1, \"t\\u0077o\":[20, 30],\"three\":\"x\",\"four\":true,"
                               "\"five\":{\"skip\":[1,{\"a\":\"]}\"}]}}  ");
    tnf_str s;
    uint64_t u;
    bool yes;
    assert_true(tnf_json_enter(&f->r, '{'));
    assert_true(tnf_json_key(&f->r, &s));
    assert_int_equal(s.n, 3);
    assert_memory_equal(s.p, "one", 3);
    assert_ptr_equal(s.p, text + 3); /* borrowed, not copied */
    assert_int_equal(tnf_json_peek(&f->r), '0');
    assert_int_equal(tnf_json_where(&f->r), BASE + 9);
    assert_true(tnf_json_u64(&f->r, &u));
    assert_int_equal(u, 1);
    assert_true(tnf_json_key(&f->r, &s));
    assert_int_equal(s.n, 3);
    assert_string_equal(s.p, "two"); /* unescaped strings end in a NUL */
    assert_true(tnf_json_enter(&f->r, '['));
    assert_true(tnf_json_item(&f->r));
    assert_true(tnf_json_u64(&f->r, &u));
    assert_int_equal(u, 20);
    assert_true(tnf_json_item(&f->r));
    assert_true(tnf_json_u64(&f->r, &u));
    assert_int_equal(u, 30);
    assert_false(tnf_json_item(&f->r));
    assert_true(tnf_json_key(&f->r, &s));
    assert_int_equal(tnf_json_peek(&f->r), '"');
    assert_true(tnf_json_string(&f->r, &s));
    assert_int_equal(s.n, 1);
    assert_true(tnf_json_key(&f->r, &s));
    assert_true(tnf_json_bool(&f->r, &yes));
    assert_true(yes);
    assert_true(tnf_json_key(&f->r, &s));
    assert_true(tnf_json_skip(&f->r, &s));
    assert_int_equal(s.n, strlen("{\"skip\":[1,{\"a\":\"]}\"}]}"));
    assert_memory_equal(s.p, "{\"skip\"", 7);
    assert_false(tnf_json_key(&f->r, &s));
    assert_int_equal(f->r.depth, 0);
    assert_int_equal(tnf_json_end(&f->r), TNF_OK);
    assert_int_equal(tnf_json_peek(&f->r), 0);
    free(text);
}

static void whole_numbers_only(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        uint64_t value;
    } cases[] = {
        { "0", true, 0 },
        { " 7,", true, 7 },
        { "9007199254740993", true, 9007199254740993u },
        { "18446744073709551615", true, UINT64_MAX },
        { "18446744073709551616", false, 0 },
        { "99999999999999999999999", false, 0 },
        { "-1", false, 0 },
        { "-0", false, 0 },
        { "1.0", false, 0 },
        { "1e3", false, 0 },
        { "1E3", false, 0 },
        { "\"1\"", false, 0 },
        { "01", false, 0 },
        { "00", false, 0 },
        { "null", false, 0 },
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t u = 0;
        char *text = begin_text(f, cases[i].text);
        assert_int_equal(tnf_json_u64(&f->r, &u), cases[i].ok);
        if (cases[i].ok)
            assert_true(u == cases[i].value);
        else
            assert_error(f, TNF_EFORMAT, 0);
        free(text);
    }
}

static void the_first_error_stays(void **state)
{
    fixture *f = *state;
    char *text = begin_text(f, "[1,x,\"y\"]");
    uint64_t u;
    tnf_str s;
    bool b;
    tnf_value v;
    assert_true(tnf_json_enter(&f->r, '['));
    assert_true(tnf_json_item(&f->r));
    assert_true(tnf_json_u64(&f->r, &u));
    assert_true(tnf_json_item(&f->r));
    assert_false(tnf_json_u64(&f->r, &u));
    assert_error(f, TNF_EFORMAT, 3);
    assert_false(tnf_json_item(&f->r));
    assert_false(tnf_json_key(&f->r, &s));
    assert_false(tnf_json_string(&f->r, &s));
    assert_false(tnf_json_bool(&f->r, &b));
    assert_false(tnf_json_skip(&f->r, NULL));
    assert_false(tnf_json_value(&f->r, &v));
    assert_false(tnf_json_enter(&f->r, '['));
    assert_int_equal(tnf_json_peek(&f->r), 0);
    assert_false(tnf_json_fail(&f->r, TNF_ELIMIT, 1, "later"));
    assert_int_equal(tnf_json_end(&f->r), TNF_EFORMAT);
    assert_error(f, TNF_EFORMAT, 3);
    free(text);
}

static void callers_can_fail_it(void **state)
{
    fixture *f = *state;
    char *text = begin_text(f, "  12");
    (void)tnf_json_peek(&f->r);
    assert_false(tnf_json_fail(&f->r, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "no %s here", "such"));
    assert_error(f, TNF_EUNSUPPORTED, 2);
    assert_string_equal(f->e.message, "no such here");
    free(text);
    text = begin_text(f, "  12");
    assert_false(tnf_json_fail(&f->r, TNF_ELIMIT, 77, "x"));
    assert_int_equal(f->e.offset, 77);
    free(text);
    tnf_json_init(&f->r, "x", 1, 0, &f->arena, DEPTH, NULL); /* the message is not wanted */
    assert_false(tnf_json_skip(&f->r, NULL));
    assert_int_equal(f->r.status, TNF_EFORMAT);
}

static void wrong_kinds_are_named_at_their_place(void **state)
{
    fixture *f = *state;
    tnf_str s;
    bool b;
    char *text = begin_text(f, " 12");
    assert_false(tnf_json_enter(&f->r, '{'));
    assert_error(f, TNF_EFORMAT, 1);
    free(text);
    text = begin_text(f, " 12");
    assert_false(tnf_json_string(&f->r, &s));
    assert_error(f, TNF_EFORMAT, 1);
    free(text);
    text = begin_text(f, " 12");
    assert_false(tnf_json_bool(&f->r, &b));
    assert_error(f, TNF_EFORMAT, 1);
    free(text);
}

static void skipping_needs_no_stack(void **state)
{
    fixture *f = *state;
    const size_t n = 1u << 20;
    char *text = malloc(2 * n);
    memset(text, '[', n);
    memset(text + n, ']', n);
    for (unsigned depth = 1; depth < 100000; depth = depth * 7 + 1) {
        tnf_json_init(&f->r, text, 2 * n, 0, &f->arena, depth, &f->e);
        assert_false(tnf_json_skip(&f->r, NULL));
        assert_int_equal(f->r.status, TNF_ELIMIT);
        assert_true(f->e.offset <= depth);
        tnf_value v;
        tnf_json_init(&f->r, text, 2 * n, 0, &f->arena, depth, &f->e);
        assert_false(tnf_json_value(&f->r, &v));
        assert_int_equal(f->r.status, TNF_ELIMIT);
    }
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(takes_valid_texts),
        TEST(refuses_wrong_texts_where_they_are_wrong),
        TEST(a_nul_is_no_space_and_no_end),
        TEST(every_cut_is_refused),
        TEST(strings_of_every_length),
        TEST(pulls_keys_values_and_positions),
        TEST(whole_numbers_only),
        TEST(the_first_error_stays),
        TEST(callers_can_fail_it),
        TEST(wrong_kinds_are_named_at_their_place),
        TEST(skipping_needs_no_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
