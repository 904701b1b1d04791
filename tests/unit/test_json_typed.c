/* SPDX-License-Identifier: MIT */
/* JSON as trees and back: correct rounding of numbers, duplicate keys, types kept bit for bit. */
#include "json_fixture.h"

#include "model/value.h"
#include <locale.h>
#include <math.h>

struct wrong {
    const char *text;
    uint64_t at;
    tnf_status status;
};

/* ------------------------------------------------------------------ trees */

static void builds_trees(void **state)
{
    fixture *f = *state;
    tnf_value v;
    char *text = begin_text(f, "{\"i\":-5,\"u\":18446744073709551615,\"d\":0.1,\"s\":\"a\\nb\","
                               "\"z\":-0,\"big\":1e22,\"n\":null,\"t\":true,\"a\":[1,[2],{}],"
                               "\"min\":-9223372036854775808,\"max\":9223372036854775807,"
                               "\"over\":-9223372036854775809}");
    assert_true(tnf_json_value(&f->r, &v));
    memset(text, 'X', strlen("{\"i\"")); /* the tree does not use the text */
    assert_int_equal(v.kind, TNF_MAP);
    assert_int_equal(v.n, 12);
    const tnf_value *m = tnf_value_get(&v, "i");
    assert_int_equal(m->kind, TNF_INT);
    assert_int_equal(m->dtype, TNF_I64);
    assert_true(m->as.i == -5);
    m = tnf_value_get(&v, "u");
    assert_int_equal(m->kind, TNF_UINT);
    assert_int_equal(m->dtype, TNF_U64);
    assert_true(m->as.u == UINT64_MAX);
    m = tnf_value_get(&v, "d");
    assert_int_equal(m->kind, TNF_FLOAT);
    assert_int_equal(m->dtype, TNF_F64);
    assert_true(m->as.f64 == 0.1);
    m = tnf_value_get(&v, "s");
    assert_int_equal(m->kind, TNF_STRING);
    assert_int_equal(m->n, 3);
    assert_string_equal(m->as.s, "a\nb");
    m = tnf_value_get(&v, "z");
    assert_int_equal(m->kind, TNF_FLOAT);
    assert_true(m->as.f64 == 0 && signbit(m->as.f64));
    assert_true(tnf_value_get(&v, "big")->as.f64 == 1e22);
    assert_int_equal(tnf_value_get(&v, "n")->kind, TNF_NULL);
    assert_true(tnf_value_get(&v, "t")->as.b);
    m = tnf_value_get(&v, "a");
    assert_int_equal(m->kind, TNF_ARRAY);
    assert_int_equal(m->n, 3);
    assert_true(m->as.items[0].as.i == 1);
    assert_true(m->as.items[1].as.items[0].as.i == 2);
    assert_int_equal(m->as.items[2].kind, TNF_MAP);
    assert_true(tnf_value_get(&v, "min")->as.i == INT64_MIN);
    assert_true(tnf_value_get(&v, "max")->as.i == INT64_MAX);
    assert_int_equal(tnf_value_get(&v, "over")->kind, TNF_FLOAT);
    assert_true(tnf_value_get(&v, "over")->as.f64 == -9223372036854775808.0);
    free(text);
}

static double number_of(fixture *f, const char *text)
{
    tnf_value v;
    char *copy = begin_text(f, text);
    assert_true(tnf_json_value(&f->r, &v));
    assert_int_equal(v.kind, TNF_FLOAT);
    free(copy);
    return v.as.f64;
}

/* Difficult cases of decimal to binary conversion; the right column is C's own, by hexadecimal. */
static void numbers_are_rounded_right(void **state)
{
    fixture *f = *state;
    assert_true(number_of(f, "0.1") == 0x1.999999999999ap-4);
    assert_true(number_of(f, "2.2250738585072011e-308") == 0x0.fffffffffffffp-1022);
    assert_true(number_of(f, "4.9406564584124654e-324") == 0x1p-1074);
    assert_true(number_of(f, "1.7976931348623157e308") == 0x1.fffffffffffffp1023);
    assert_true(number_of(f, "9007199254740993.0") == 0x1p53);
    assert_true(number_of(f, "9007199254740993.0000000000000000000000001") == 0x1.0000000000001p53);
    assert_true(number_of(f, "1e-400") == 0);
    assert_true(number_of(f, "0.000e999999999999999999999") == 0);
    assert_true(number_of(f, "123.456e-2") == 1.23456);
    char text[2200];
    /* 2^53 + 1 is exactly half way; a 1 after a thousand zeros decides. */
    snprintf(text, sizeof text, "9007199254740993.%01000d1", 0);
    assert_true(number_of(f, text) == 0x1.0000000000001p53);
    snprintf(text, sizeof text, "9007199254740993%01000d.0e-1000", 0);
    assert_true(number_of(f, text) == 0x1p53);
    snprintf(text, sizeof text, "0.%01000d1e1001", 0);
    assert_true(number_of(f, text) == 1.0);
}

static void numbers_do_not_follow_the_locale(void **state)
{
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_NUMERIC, names[i]))
            break;
    double d = number_of(f, "1.5");
    setlocale(LC_NUMERIC, "C");
    assert_true(d == 1.5);
}

static void numbers_beyond_double_are_refused(void **state)
{
    fixture *f = *state;
    tnf_value v;
    char *text = begin_text(f, "[1e400]");
    assert_false(tnf_json_value(&f->r, &v));
    assert_error(f, TNF_ELIMIT, 1);
    free(text);
}

static void duplicate_keys_are_refused(void **state)
{
    fixture *f = *state;
    tnf_value v;
    char *text = begin_text(f, "{\"a\":1,\"b\":{\"a\":2}, \"a\":3}");
    assert_false(tnf_json_value(&f->r, &v));
    assert_error(f, TNF_EFORMAT, 20);
    assert_non_null(strstr(f->e.message, "'a'"));
    free(text);
    text = begin_text(f, "{\"a\":1,\"\\u0061\":3}");
    assert_false(tnf_json_value(&f->r, &v));
    assert_error(f, TNF_EFORMAT, 7);
    free(text);
    text = begin_text(f, "{\"\":1,\"\":3}");
    assert_false(tnf_json_value(&f->r, &v));
    assert_error(f, TNF_EFORMAT, 6);
    free(text);
}

/* Many keys are found through a table, so a hundred thousand take little time. */
static void duplicates_among_many_are_found(void **state)
{
    fixture *f = *state;
    enum { N = 100000 };
    for (int twice = -1; twice <= 40; twice += twice < 0 ? 1 : 13) {
        tnf_buf b;
        tnf_value v;
        size_t at = 0;
        tnf_buf_init(&b, &f->alloc, 64u << 20);
        tnf_buf_puts(&b, "{");
        for (int i = 0; i < N; i++) {
            at = b.n;
            tnf_buf_printf(&b, "\"k%d\":%d,", i == N - 1 && twice >= 0 ? twice : i, i);
        }
        b.p[b.n - 1] = '}';
        tnf_json_init(&f->r, b.p, b.n, BASE, &f->arena, DEPTH, &f->e);
        assert_int_equal(tnf_json_value(&f->r, &v), twice < 0);
        if (twice < 0)
            assert_int_equal(v.n, N);
        else
            assert_error(f, TNF_EFORMAT, at);
        tnf_buf_free(&b);
    }
}

/* --------------------------------------------------------------- printing */

static void assert_prints(fixture *f, const char *s, size_t n, const char *expected)
{
    tnf_buf b;
    tnf_buf_init(&b, &f->alloc, 4096);
    tnf_json_put_string(&b, s, n);
    assert_int_equal(b.status, TNF_OK);
    assert_int_equal(b.n, strlen(expected));
    assert_memory_equal(b.p, expected, b.n);
    tnf_buf_free(&b);
}

static void prints_strings(void **state)
{
    fixture *f = *state;
    assert_prints(f, "", 0, "\"\"");
    assert_prints(f, "plain/text\x7f", 11, "\"plain/text\x7f\"");
    assert_prints(f, "q\"b\\", 4, "\"q\\\"b\\\\\"");
    assert_prints(f, "\b\t\n\f\r", 5, "\"\\b\\t\\n\\f\\r\"");
    assert_prints(f, "\0\x01\x0b\x1f", 4, "\"\\u0000\\u0001\\u000b\\u001f\"");
    assert_prints(f, "\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"");
}

/* v -> text -> v: the text is the expected one and the values are the same, bit for bit. */
static void assert_there_and_back(fixture *f, const tnf_value *v, const char *expected)
{
    tnf_buf b, again;
    tnf_value back;
    tnf_buf_init(&b, &f->alloc, 1u << 20);
    tnf_buf_init(&again, &f->alloc, 1u << 20);
    tnf_json_put_typed(&b, v);
    assert_int_equal(b.status, TNF_OK);
    if (b.n != strlen(expected) || memcmp(b.p, expected, b.n) != 0)
        fail_msg("%.*s instead of %s", (int)b.n, (const char *)b.p, expected);
    tnf_json_init(&f->r, b.p, b.n, 0, &f->arena, DEPTH, &f->e);
    if (!tnf_json_typed(&f->r, &back) || tnf_json_end(&f->r) != TNF_OK)
        fail_msg("%s: %s", expected, f->e.message);
    assert_int_equal(back.kind, v->kind);
    assert_int_equal(back.n, v->n);
    if (v->kind >= TNF_INT && v->kind <= TNF_FLOAT)
        assert_int_equal(back.dtype, v->dtype);
    tnf_json_put_typed(&again, &back);
    assert_int_equal(again.n, b.n);
    assert_memory_equal(again.p, b.p, b.n);
    tnf_buf_free(&b);
    tnf_buf_free(&again);
}

static void typed_numbers_come_back(void **state)
{
    fixture *f = *state;
    assert_there_and_back(f, &(tnf_value) { .kind = TNF_INT, .dtype = TNF_I64, .as.i = -7 }, "-7");
    assert_there_and_back(f, &(tnf_value) { .kind = TNF_INT, .dtype = TNF_I64, .as.i = INT64_MIN },
                          "-9223372036854775808");
    assert_there_and_back(f, &(tnf_value) { .kind = TNF_INT, .dtype = TNF_I8, .as.i = -128 },
                          "{\"$i8\":-128}");
    assert_there_and_back(f, &(tnf_value) { .kind = TNF_INT, .dtype = TNF_I16, .as.i = 32767 },
                          "{\"$i16\":32767}");
    assert_there_and_back(f, &(tnf_value) { .kind = TNF_INT, .dtype = TNF_I32, .as.i = -1 },
                          "{\"$i32\":-1}");
    assert_there_and_back(f, &(tnf_value) { .kind = TNF_UINT, .dtype = TNF_U8, .as.u = 3 },
                          "{\"$u8\":3}");
    assert_there_and_back(f,
                          &(tnf_value) { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = UINT64_MAX },
                          "{\"$u64\":18446744073709551615}");
    tnf_value v = { .kind = TNF_FLOAT, .dtype = TNF_F32 };
    uint32_t bits = 0x7fc00001u; /* a NaN with a payload */
    memcpy(&v.as.f32, &bits, sizeof bits);
    assert_there_and_back(f, &v, "{\"$f32\":\"7fc00001\"}");
    v = (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = -0.0 };
    assert_there_and_back(f, &v, "{\"$f64\":\"8000000000000000\"}");
    v.as.f64 = INFINITY;
    assert_there_and_back(f, &v, "{\"$f64\":\"7ff0000000000000\"}");
    v = (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F16, .as.f64 = 1.5 };
    assert_there_and_back(f, &v, "{\"$f16\":\"3ff8000000000000\"}");
}

static void typed_texts_and_trees_come_back(void **state)
{
    fixture *f = *state;
    tnf_value s = tnf_value_string("a\"\n");
    tnf_value null = { 0 }, yes = tnf_value_bool(true);
    assert_there_and_back(f, &null, "null");
    assert_there_and_back(f, &yes, "true");
    assert_there_and_back(f, &s, "\"a\\\"\\n\"");
    tnf_value bytes = tnf_value_str(TNF_BYTES, "\0\xff\x0f", 3);
    assert_there_and_back(f, &bytes, "{\"$bytes\":\"00ff0f\"}");
    tnf_value none = tnf_value_str(TNF_BYTES, "", 0);
    assert_there_and_back(f, &none, "{\"$bytes\":\"\"}");
    tnf_value json = tnf_value_str(TNF_JSON, "{ \"a\" : 1 }", 11);
    assert_there_and_back(f, &json, "{\"$json\":\"{ \\\"a\\\" : 1 }\"}");
    tnf_value not_text = tnf_value_str(TNF_STRING, "\xff", 1);
    assert_there_and_back(f, &not_text, "{\"$string\":\"ff\"}");
    tnf_value items[] = { s, bytes, tnf_value_uint(1) };
    tnf_value array = { .kind = TNF_ARRAY, .n = 3, .as.items = items };
    assert_there_and_back(f, &array, "[\"a\\\"\\n\",{\"$bytes\":\"00ff0f\"},{\"$u64\":1}]");
    tnf_member plain[] = { { { "k", 1 }, yes }, { { "$x", 2 }, array } };
    tnf_value map = { .kind = TNF_MAP, .n = 2, .as.members = plain };
    assert_there_and_back(
        f, &map, "{\"k\":true,\"$x\":[\"a\\\"\\n\",{\"$bytes\":\"00ff0f\"},{\"$u64\":1}]}");
    tnf_member dollar[] = { { { "$u8", 3 }, tnf_value_bool(false) }, { { "m", 1 }, map } };
    dollar[1].value.n = 1;
    tnf_value wrapped = { .kind = TNF_MAP, .n = 2, .as.members = dollar };
    assert_there_and_back(f, &wrapped, "{\"$map\":{\"$u8\":false,\"m\":{\"k\":true}}}");
    tnf_value empty_map = { .kind = TNF_MAP }, empty_array = { .kind = TNF_ARRAY };
    assert_there_and_back(f, &empty_map, "{}");
    assert_there_and_back(f, &empty_array, "[]");
}

/* Wrappers are part of the spelling and do not count for the depth limit. */
static void wrappers_do_not_deepen(void **state)
{
    fixture *f = *state;
    tnf_value v = tnf_value_uint(1);
    char expected[256] = "{\"$u64\":1}";
    tnf_value levels[DEPTH];
    tnf_member members[DEPTH];
    for (unsigned i = 0; i < DEPTH; i++) {
        char outer[sizeof expected];
        members[i] = (tnf_member) { { "$m", 2 }, i ? levels[i - 1] : v };
        levels[i] = (tnf_value) { .kind = TNF_MAP, .n = 1, .as.members = &members[i] };
        snprintf(outer, sizeof outer, "{\"$map\":{\"$m\":%.200s}}", expected);
        memcpy(expected, outer, sizeof expected);
    }
    assert_there_and_back(f, &levels[DEPTH - 1], expected);
}

static void wrong_wrappers_are_refused(void **state)
{
    static const struct wrong cases[] = {
        { "{\"$u9\":1}", 1, TNF_EFORMAT },
        { "{\"$\":1}", 1, TNF_EFORMAT },
        { "{\"$u8\":256}", 7, TNF_EFORMAT },
        { "{\"$u8\":-1}", 7, TNF_EFORMAT },
        { "{\"$i8\":128}", 7, TNF_EFORMAT },
        { "{\"$i8\":-129}", 7, TNF_EFORMAT },
        { "{\"$i64\":1.5}", 8, TNF_EFORMAT },
        { "{\"$u8\":\"1\"}", 7, TNF_EFORMAT },
        { "{\"$u8\":1,\"a\":2}", 9, TNF_EFORMAT },
        { "{\"$f32\":\"7fc000\"}", 8, TNF_EFORMAT },
        { "{\"$f32\":\"7fc0000g\"}", 8, TNF_EFORMAT },
        { "{\"$f32\":1.5}", 8, TNF_EFORMAT },
        { "{\"$bytes\":\"0\"}", 10, TNF_EFORMAT },
        { "{\"$bytes\":\"0G\"}", 10, TNF_EFORMAT },
        { "{\"$map\":[]}", 8, TNF_EFORMAT },
        { "{\"$map\":{\"a\":1,\"a\":2}}", 15, TNF_EFORMAT },
        { "{\"$i64\":9223372036854775808}", 8, TNF_EFORMAT },
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_value v;
        char *text = begin_text(f, cases[i].text);
        if (tnf_json_typed(&f->r, &v))
            fail_msg("accepted: %s", cases[i].text);
        if (f->e.status != cases[i].status || f->e.offset != BASE + cases[i].at)
            fail_msg("%s: status %d at %llu: %s", cases[i].text, f->e.status,
                     (unsigned long long)(f->e.offset - BASE), f->e.message);
        free(text);
    }
}

static void a_tree_too_deep_is_not_printed(void **state)
{
    fixture *f = *state;
    enum { LEVELS = 5000 };
    tnf_value *v = calloc(LEVELS, sizeof *v);
    tnf_buf b;
    for (int i = 0; i < LEVELS; i++)
        v[i] = (tnf_value) { .kind = TNF_ARRAY, .n = i > 0, .as.items = i ? &v[i - 1] : NULL };
    tnf_buf_init(&b, &f->alloc, 1u << 20);
    tnf_json_put_typed(&b, &v[LEVELS - 1]);
    assert_int_equal(b.status, TNF_ELIMIT);
    tnf_buf_free(&b);
    free(v);
}

/* ----------------------------------------------------- failing allocations */

struct failing {
    size_t left;
};

static void *fail_after(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct failing *f = ctx;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return f->left-- == 0 ? (f->left = 0, NULL) : realloc(p, new_size);
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    tnf_buf text;
    tnf_allocator normal = tnf_allocator_or_default(NULL);
    tnf_buf_init(&text, &normal, 1u << 20);
    tnf_buf_puts(&text, "{\"list\":[1,2,3],\"esc\\n\":\"\\u0041\"");
    for (int i = 0; i < 300; i++)
        tnf_buf_printf(&text, ",\"key number %d\":{\"$bytes\":\"%08x\"}", i, (unsigned)i);
    tnf_buf_puts(&text, "}");
    for (size_t n = 0;; n++) {
        struct failing failing = { n };
        tnf_allocator alloc = { fail_after, &failing };
        tnf_arena arena;
        tnf_json j;
        tnf_error e;
        tnf_value v;
        tnf_arena_init(&arena, &alloc, 64u << 20);
        tnf_json_init(&j, text.p, text.n, 0, &arena, DEPTH, &e);
        bool ok = tnf_json_typed(&j, &v);
        tnf_arena_free(&arena);
        if (ok) {
            assert_true(n > 5);
            break;
        }
        assert_int_equal(j.status, TNF_ENOMEM);
        assert_int_equal(e.status, TNF_ENOMEM);
    }
    tnf_buf_free(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(builds_trees),
        TEST(numbers_are_rounded_right),
        TEST(numbers_do_not_follow_the_locale),
        TEST(numbers_beyond_double_are_refused),
        TEST(duplicate_keys_are_refused),
        TEST(duplicates_among_many_are_found),
        TEST(prints_strings),
        TEST(typed_numbers_come_back),
        TEST(typed_texts_and_trees_come_back),
        TEST(wrappers_do_not_deepen),
        TEST(wrong_wrappers_are_refused),
        TEST(a_tree_too_deep_is_not_printed),
        TEST(every_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
