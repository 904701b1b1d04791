/* SPDX-License-Identifier: MIT */
/* Code of the command that no file of a current format reaches, or that needs more cases than a
 * golden test has: patterns, suggestions, escapes, numbers, blocks, strings. The command is not a
 * library, so its sources are included unchanged, with blocks of a few bytes. */
#define BLOCK_BYTES ((size_t)48)
#include "../../cli/array.c"
#include "../../cli/cat_strings.c"
#include "../../cli/cat_text.c"
#include "../../cli/element.c"
#include "../../cli/glob.c"
#include "../../cli/out.c"
#include "../../cli/report.c"
#include "../../cli/suggest.c"
#include "../../cli/table.c" // NOLINT(bugprone-suspicious-include)
#include "../../cli/text.c"
#include "../../cli/value.c"

#include "../support/little.h"
#include "model/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Records the output to a stream as text. */
const command *find_command(const char *name) /* of the table of commands, which is not here */
{
    (void)name;
    return NULL;
}

typedef struct recorder {
    FILE *to;
    char *text;
    size_t n;
} recorder;

static void begin_record(recorder *r)
{
    r->to = open_memstream(&r->text, &r->n);
    assert_non_null(r->to);
}

static void assert_recorded(recorder *r, const char *expected)
{
    fclose(r->to);
    assert_string_equal(r->text, expected);
    free(r->text);
}

static tnf_str str_of(const char *s)
{
    return (tnf_str) { s, strlen(s) };
}

/* --------------------------------------------------------------- patterns */

static void patterns_match(void **state)
{
    static const struct {
        const char *glob, *name;
        bool matches;
    } cases[] = {
        { "", "", true },
        { "", "a", false },
        { "*", "", true },
        { "*", "a.b/c", true },
        { "a*c", "abbbc", true },
        { "a*c", "abbbcd", false },
        { "*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false },
        { "blocks.*.weight", "blocks.0.attn.weight", true },
        { "?", "\xc3\xa9", true }, /* one character, two bytes */
        { "??", "\xc3\xa9", false },
        { "?", "\xff", true },
        { "[a-c]x", "bx", true },
        { "[a-c]x", "dx", false },
        { "[!a-c]x", "dx", true },
        { "[^a-c]x", "ax", false },
        { "[]]", "]", true },
        { "[a-]", "-", true },
        { "[", "[", true },
        { "a[0]", "a0", true },
        { "a\\[0\\]", "a[0]", true },
        { "\\*", "*", true },
        { "\\*", "x", false },
        { "[\xc3\xa0-\xc3\xaf]", "\xc3\xa9", true },
        { "**", "x", true },
        { "x**", "x", true },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (tnf_glob_match(cases[i].glob, str_of(cases[i].name)) != cases[i].matches)
            fail_msg("'%s' and '%s'", cases[i].glob, cases[i].name);
    assert_true(tnf_glob_match("a*c", (tnf_str) { "a\0c", 3 }));
}

static void suggests_names(void **state)
{
    static const char *const names[] = { "info", "ls", "cat", "convert", "verify", "formats" };
    static const struct {
        const char *wanted, *nearest;
    } cases[] = { { "covnert", "convert" },
                  { "cta", "cat" },
                  { "format", "formats" },
                  { "verfy", "verify" },
                  { "ifno", "info" },
                  { "frobnicate", NULL },
                  { "l", "ls" },
                  { "", NULL } };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        suggestion s;
        suggest_begin(&s, cases[i].wanted, strlen(cases[i].wanted));
        for (size_t k = 0; k < COUNT(names); k++)
            suggest_offer(&s, names[k], strlen(names[k]));
        if (cases[i].nearest)
            assert_string_equal(s.near[0].p, cases[i].nearest);
        else
            assert_int_equal(s.n, 0);
    }
    assert_int_equal(edit_distance("abcd", 4, "abdc", 4, 3), 1);
    assert_int_equal(edit_distance("kitten", 6, "sitting", 7, 5), 3);
    assert_int_equal(edit_distance("aaaa", 4, "bbbb", 4, 2), 3); /* beyond the limit */
}

/* ------------------------------------------------------------------- text */

static void escapes_text(void **state)
{
    static const struct {
        const char *bytes;
        const char *text;
        size_t columns;
    } cases[] = {
        { "plain", "plain", 5 },
        { "\x1b[31m", "\\x1b[31m", 8 },
        { "a\nb\tc\r", "a\\nb\\tc\\r", 9 },
        { "\xff\xfe", "\\xff\\xfe", 8 },
        { "\x7f", "\\x7f", 4 },
        { "\xc2\x85", "\\u0085", 6 },              /* a C1 control */
        { "\xe2\x80\xae", "\\u202e", 6 },          /* right-to-left override */
        { "\xed\xa0\x80", "\\xed\\xa0\\x80", 12 }, /* a surrogate is not valid UTF-8 */
        { "\xc0\xaf", "\\xc0\\xaf", 8 },           /* nor is an overlong slash */
        { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", 16 },
        { "back\\slash", "back\\\\slash", 11 },
        { "\xe6\x9d\xb1", "\xe6\x9d\xb1", 2 }, /* wide */
        { "e\xcc\x81", "e\xcc\x81", 1 },       /* combining */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        recorder r;
        begin_record(&r);
        size_t columns = put_name(r.to, str_of(cases[i].bytes));
        assert_int_equal(columns, cases[i].columns);
        assert_int_equal(put_safe(NULL, cases[i].bytes, strlen(cases[i].bytes), true), columns);
        assert_recorded(&r, cases[i].text);
        char *back = strdup(cases[i].text);
        assert_int_equal(unescape_text(back), strlen(cases[i].bytes));
        assert_string_equal(back, cases[i].bytes);
        free(back);
    }
    recorder r;
    begin_record(&r);
    put_safe(r.to, "a\0b", 3, false);
    assert_recorded(&r, "a\\x00b");
}

static void prints_numbers(void **state)
{
    static const struct {
        float f;
        const char *text;
    } singles[] = { { 0.1f, "0.1" },
                    { -0.0f, "-0.0" },
                    { 1, "1.0" },
                    { 16777216, "16777216.0" },
                    { 1e10f, "1e+10" },
                    { 3.4028235e38f, "3.4028235e+38" },
                    { 1e-45f, "1.4013e-45" },
                    { INFINITY, "inf" },
                    { -INFINITY, "-inf" },
                    { -NAN, "nan" } };
    char text[NUMBER_TEXT];
    (void)state;
    for (size_t i = 0; i < COUNT(singles); i++) {
        number_f32(text, singles[i].f);
        assert_string_equal(text, singles[i].text);
    }
    number_f64(text, 0.1);
    assert_string_equal(text, "0.1");
    number_f64(text, 1.0 / 3);
    assert_string_equal(text, "0.3333333333333333");
    number_f64(text, 5e-324);
    assert_true(strtod(text, NULL) == 5e-324);
    for (uint32_t i = 0, bits = 1; i < 20000; i++, bits = bits * 1664525u + 1013904223u) {
        float f;
        memcpy(&f, &bits, sizeof f);
        number_f32(text, f);
        assert_true(isnan(f) || strtof(text, NULL) == f);
    }
}

static void prints_sizes(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = { { 0, "0 B" },
                  { 1023, "1023 B" },
                  { 1024, "1.0 KiB" },
                  { 1536, "1.5 KiB" },
                  { 1048575, "1.0 MiB" },
                  { 1u << 30, "1.0 GiB" },
                  { UINT64_MAX, "16.0 EiB" } };
    char text[SIZE_TEXT];
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_text(text, cases[i].bytes);
        assert_string_equal(text, cases[i].text);
    }
    recorder r;
    begin_record(&r);
    put_grouped(r.to, 0);
    putc(' ', r.to);
    put_grouped(r.to, 999);
    putc(' ', r.to);
    put_grouped(r.to, 1000);
    putc(' ', r.to);
    put_grouped(r.to, UINT64_MAX);
    assert_recorded(&r, "0 999 1,000 18,446,744,073,709,551,615");
}

/* ------------------------------------------------------------------- JSON */

static void values_as_json(void **state)
{
    static const char document[] = "{ \"a b\" : [ 1 , 2.50 ,\t\"x \\\" y\" ] , \"c\":{}}  ";
    static const tnf_value items[] = {
        { .kind = TNF_NULL },
        { .kind = TNF_BOOL, .as.b = true },
        { .kind = TNF_INT, .dtype = TNF_I64, .as.i = INT64_MIN },
        { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = UINT64_MAX },
        { .kind = TNF_FLOAT, .dtype = TNF_F32, .as.f32 = 0.1f },
        { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = NAN },
        { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = -INFINITY },
        { .kind = TNF_STRING, .n = 6, .as.s = "q\"\\\n\x01\x7f" },
        { .kind = TNF_STRING, .n = 2, .as.s = "\xff\xfe" },
        { .kind = TNF_BYTES, .n = 4, .as.s = "\0\1\2\3" },
        { .kind = TNF_BYTES, .n = 5, .as.s = "\0\1\2\3\4" },
        { .kind = TNF_JSON, .n = sizeof document - 1, .as.s = document },
        { .kind = TNF_MAP },
        { .kind = TNF_ARRAY },
    };
    const tnf_member members[] = {
        { { "all", 3 }, { .kind = TNF_ARRAY, .n = COUNT(items), .as.items = items } },
        { { "\xff", 1 }, { .kind = TNF_UINT, .as.u = 1 } },
    };
    const tnf_value map = { .kind = TNF_MAP, .n = 2, .as.members = members };
    (void)state;
    recorder r;
    begin_record(&r);
    json j = { r.to, false };
    json_value(&j, &map);
    assert_recorded(&r, "{\"all\":[null,true,-9223372036854775808,18446744073709551615,0.1,\"NaN\","
                        "\"-Infinity\",\"q\\\"\\\\\\n\\u0001\\u007f\",{\"$bytes\":\"//4=\"},"
                        "{\"$bytes\":\"AAECAw==\"},{\"$bytes\":\"AAECAwQ=\"},"
                        "{\"a b\":[1,2.50,\"x \\\" y\"],\"c\":{}},{},[]],\"$bytes:/w==\":1}");
    begin_record(&r);
    j = (json) { r.to, false };
    json_value(&j, NULL);
    assert_recorded(&r, "{}");
}

static void values_for_people(void **state)
{
    static const tnf_member inner[] = {
        { { "one", 3 }, { .kind = TNF_UINT, .as.u = 1 } },
        { { "text", 4 }, { .kind = TNF_STRING, .n = 10, .as.s = "two\nlines\n" } },
    };
    const tnf_member members[] = {
        { { "map", 3 }, { .kind = TNF_MAP, .n = 2, .as.members = inner } },
        { { "json", 4 }, { .kind = TNF_JSON, .n = 18, .as.s = "{\"a\":[1,{}],\"b\":2}" } },
        { { "raw", 3 }, { .kind = TNF_BYTES, .n = 3, .as.s = "abc" } },
        { { "esc\x1b", 4 }, { .kind = TNF_STRING, .n = 2, .as.s = "\x1b[" } },
    };
    const tnf_value map = { .kind = TNF_MAP, .n = COUNT(members), .as.members = members };
    (void)state;
    recorder r;
    begin_record(&r);
    put_attrs(r.to, &map, 2, false);
    assert_recorded(&r, "  map:\n    one: 1\n    text:\n      two\n      lines\n"
                        "  json: {\n    \"a\": [\n      1,\n      {}\n    ],\n    \"b\": 2\n  }\n"
                        "  raw: (3 bytes)\n  esc\\x1b: \\x1b[\n");
}

/* ----------------------------------------------------------------- tensors */

static tnf_part part_of_memory(const char *role, const char *type, const void *bytes, size_t n)
{
    return (tnf_part) { .role = role,
                        .type = tnf_type_named(type),
                        .memory = little_bytes(tnf_type_named(type), bytes, n),
                        .nbytes = n,
                        .stored = n,
                        .payload = TNF_MEMORY };
}

static tnf_object object_of(const char *layout, const uint64_t *shape, uint32_t rank,
                            const tnf_part *parts, uint16_t nparts)
{
    return (tnf_object) { .name = str_of("w"),
                          .shape = shape,
                          .layout = tnf_layout_named(layout, strlen(layout)),
                          .parts = parts,
                          .rank = rank,
                          .nparts = nparts };
}

/* Every element of a view, read in blocks, as text. */
static void blocks_are(const view *v, const char *expected)
{
    recorder r;
    begin_record(&r);
    blocks b;
    tnf_error e;
    element_run run;
    assert_int_equal(blocks_begin(&b, v, &e), TNF_OK);
    for (;;) {
        assert_int_equal(blocks_next(&b, &e), TNF_OK);
        if (b.elements == 0)
            break;
        assert_true(b.n <= BLOCK_BYTES);
        elements_begin(&run, v->type, b.bytes, b.elements);
        for (size_t i = 0; i < b.elements; i++) {
            char text[ELEMENT_TEXT];
            element_text(&run, i, text);
            fprintf(r.to, "%s ", text);
        }
    }
    blocks_end(&b);
    assert_recorded(&r, expected);
}

static void blocks_cover_a_view(void **state)
{
    int32_t numbers_[3 * 4 * 5];
    const uint64_t shape[] = { 3, 4, 5 };
    (void)state;
    for (int i = 0; i < 60; i++)
        numbers_[i] = i;
    tnf_part part = part_of_memory("data", "i32", numbers_, sizeof numbers_);
    tnf_object o = object_of("dense", shape, 3, &part, 1);
    static const struct {
        const char *slice, *expected;
    } cases[] = {
        { "0", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 " },
        { ":,1,::2", "5 7 9 25 27 29 45 47 49 " },
        { "::-1,-1,0", "55 35 15 " },
        { "1,1,1", "26 " },
        { "5:", "" },
        { ":,:,1", "1 6 11 16 21 26 31 36 41 46 51 56 " },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        view v;
        tnf_error e;
        assert_int_equal(view_object(&v, &o, &e), TNF_OK);
        assert_int_equal(v.elements, 60);
        assert_int_equal(view_slice(&v, cases[i].slice, &e), TNF_OK);
        blocks_are(&v, cases[i].expected);
        view_free(&v);
    }
    o.order = TNF_ORDER_F;
    view v;
    tnf_error e;
    assert_int_equal(view_object(&v, &o, &e), TNF_OK);
    assert_int_equal(view_slice(&v, "0", &e), TNF_OK);
    blocks_are(&v, "0 12 24 36 48 3 15 27 39 51 6 18 30 42 54 9 21 33 45 57 ");
    view_free(&v);
}

static void text_of(const view *v, bool all, const char *expected)
{
    recorder r;
    begin_record(&r);
    tnf_error e;
    assert_int_equal(put_array(r.to, v, all, &e), TNF_OK);
    assert_recorded(&r, expected);
}

static void arrays_for_people(void **state)
{
    uint8_t bytes[2 * 2 * 400];
    const uint64_t shape[] = { 2, 2, 400 };
    (void)state;
    memset(bytes, 7, sizeof bytes);
    tnf_part part = part_of_memory("data", "u8", bytes, sizeof bytes);
    tnf_object o = object_of("dense", shape, 3, &part, 1);
    view v;
    tnf_error e;
    assert_int_equal(view_object(&v, &o, &e), TNF_OK);
    text_of(&v, false,
            "[[[7 7 7 ... 7 7 7]\n  [7 7 7 ... 7 7 7]]\n\n"
            " [[7 7 7 ... 7 7 7]\n  [7 7 7 ... 7 7 7]]]\n");
    assert_int_equal(view_slice(&v, "0:0", &e), TNF_OK);
    text_of(&v, true, "[]\n");
    view_free(&v);

    /* The edges of all dimensions would be too much to show. */
    uint64_t many[12];
    for (size_t i = 0; i < 12; i++)
        many[i] = 3;
    o = object_of("dense", many, 12, &part, 1);
    assert_int_equal(view_object(&v, &o, &e), TNF_OK);
    recorder r;
    begin_record(&r);
    assert_int_equal(put_array(r.to, &v, false, &e), TNF_EINVAL);
    assert_recorded(&r, "\n");
    view_free(&v);
}

/* ------------------------------------------------------- strings and parts */

static void strings_of(const tnf_object *o, const char *slice, const char *expected)
{
    view v;
    tnf_error e;
    recorder r;
    begin_record(&r);
    json j = { r.to, false };
    assert_int_equal(view_object(&v, o, &e), TNF_OK);
    if (slice)
        assert_int_equal(view_slice(&v, slice, &e), TNF_OK);
    json_open(&j, '[');
    tnf_status status = json_strings(&j, &v, &e);
    json_close(&j, ']');
    view_free(&v);
    if (expected) {
        assert_int_equal(status, TNF_OK);
        assert_recorded(&r, expected);
    } else {
        assert_int_equal(status, TNF_EFORMAT);
        fclose(r.to);
        free(r.text);
    }
}

static void strings_are_strings(void **state)
{
    /* Together longer than a block; one of them is longer by itself. */
    static const char text[] = "onetwo\xff"
                               "a string that is longer than one whole block of bytes is"
                               "last";
    uint64_t offsets[] = { 0, 3, 3, 6, 7, 63, 67 };
    const uint64_t shape[] = { 6 };
    tnf_part parts[] = { part_of_memory("offsets", "u64", offsets, sizeof offsets),
                         part_of_memory("bytes", "u8", text, sizeof text - 1) };
    tnf_object o = object_of("strings/1", shape, 1, parts, 2);
    (void)state;
    assert_true(is_strings(&o));
    strings_of(&o, NULL,
               "[\"one\",\"\",\"two\",{\"$bytes\":\"/w==\"},"
               "\"a string that is longer than one whole block of bytes is\",\"last\"]");
    strings_of(&o, "::-2", "[\"last\",{\"$bytes\":\"/w==\"},\"\"]");
    strings_of(&o, "2", "[\"two\"]");
    recorder r;
    begin_record(&r);
    view v;
    tnf_error e;
    assert_int_equal(view_object(&v, &o, &e), TNF_OK);
    assert_int_equal(view_slice(&v, "2:4", &e), TNF_OK);
    assert_int_equal(put_strings(r.to, &v, false, &e), TNF_OK);
    assert_recorded(&r, "two\n\\xff\n");
    view_free(&v);
    offsets[2] = 99;
    parts[0].memory = to_little(offsets, 8, 7);
    strings_of(&o, NULL, NULL);
    offsets[2] = 2;
    parts[0].memory = to_little(offsets, 8, 7);
    strings_of(&o, NULL, NULL);
}

static void parts_are_rows(void **state)
{
    static const uint8_t codes[] = { 0x21, 0x43, 0x65 };
    static const float book[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    const uint64_t shape[] = { 3, 4 };
    const tnf_part parts[] = { part_of_memory("codes", "f4_e2m1", codes, sizeof codes),
                               part_of_memory("codebooks", "f32", book, sizeof book) };
    tnf_object o = object_of("pq/1", shape, 2, parts, 2);
    view v;
    tnf_error e;
    (void)state;
    assert_int_equal(view_part(&v, &o, &parts[0], &e), TNF_OK);
    assert_int_equal(v.elements, 6);
    blocks_are(&v, "0.5 1.0 1.5 2.0 3.0 4.0 ");
    assert_int_equal(view_slice(&v, "::-2", &e), TNF_OK);
    blocks_are(&v, "4.0 2.0 1.0 ");
    view_free(&v);
    assert_int_equal(view_part(&v, &o, &parts[1], &e), TNF_OK);
    blocks_are(&v, "1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 ");
    assert_int_equal(view_slice(&v, "3:8:4", &e), TNF_OK);
    blocks_are(&v, "4.0 8.0 ");
    view_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match),    cmocka_unit_test(suggests_names),
        cmocka_unit_test(escapes_text),      cmocka_unit_test(prints_numbers),
        cmocka_unit_test(prints_sizes),      cmocka_unit_test(values_as_json),
        cmocka_unit_test(values_for_people), cmocka_unit_test(blocks_cover_a_view),
        cmocka_unit_test(arrays_for_people), cmocka_unit_test(strings_are_strings),
        cmocka_unit_test(parts_are_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
