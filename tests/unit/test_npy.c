/* SPDX-License-Identifier: MIT */
/* Tests beyond the fixtures of .npy: the scores of its probe, options, what its writer refuses or
 * changes, and literals. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "formats/numpy/header.h"

extern const tnf_format tnf_format_npy;

/* ---------------------------------------------------------------- probing */

static int probe_score(const char *bytes, size_t n, const char *ext)
{
    tnf_probe p = { .nhead = n, .ntail = n, .size = n, .ext = ext };
    p.head = p.tail = (const uint8_t *)bytes;
    return tnf_format_npy.probe(&p);
}

static void probe_wants_the_magic(void **state)
{
    (void)state;
    assert_int_equal(probe_score("\x93NUMPY\1\0", 8, ""), TNF_PROBE_MAGIC);
    assert_int_equal(probe_score("\x93NUMPY", 6, "bin"), TNF_PROBE_MAGIC);
    assert_int_equal(probe_score("\x93NUMP", 5, ""), TNF_PROBE_NO);
    assert_int_equal(probe_score("\x93NUMP", 5, "npy"), TNF_PROBE_EXTENSION);
    assert_int_equal(probe_score("\x93numpy\1\0", 8, ""), TNF_PROBE_NO);
    assert_int_equal(probe_score("", 0, "npy"), TNF_PROBE_NO);
}

/* ---------------------------------------------------------------- literals */

/* The literal, printed like Python's repr(). */
static void assert_repr(const char *text, const char *expected)
{
    tnf_arena arena;
    tnf_error e = { 0 };
    np_node *node;
    tnf_buf b;
    np_source source = { (const uint8_t *)text, strlen(text), 0, false, false };
    struct memory_log log = { 0 };
    tnf_allocator a = memory_allocator(&log);
    tnf_arena_init(&arena, &a, 1 << 20);
    tnf_buf_init(&b, &a, 1 << 16);
    assert_ok(tnf_np_parse(&node, &source, &arena, &e));
    tnf_np_print(&b, node);
    assert_int_equal(b.n, strlen(expected));
    assert_memory_equal(b.p, expected, b.n);
    tnf_buf_free(&b);
    tnf_arena_free(&arena);
}

/* The output of Python 3.12. */
static void literals_are_printed_as_python_does(void **state)
{
    (void)state;
    assert_repr("('a',)", "('a',)");
    assert_repr("( ( 1 ) , [ ] , () , )", "(1, [], ())");
    assert_repr("[True,False,-3,+4,-0]", "[True, False, -3, 4, 0]");
    assert_repr("\"it's\"", "\"it's\"");
    assert_repr("'it\\'s \"it\"'", "'it\\'s \"it\"'");
    assert_repr("'\"'", "'\"'");
    assert_repr("'\\t\\x0a\\r\\x00\\x7f\\\\'", "'\\t\\n\\r\\x00\\x7f\\\\'");
    assert_repr("'\\xe9\\xa0\\xad'", "'\xc3\xa9\\xa0\\xad'");
    assert_repr("'\\u65e5\\u3000\\u202e\\ue000'", "'\xe6\x97\xa5\\u3000\\u202e\\ue000'");
    assert_repr("'\\U0001f600\\U000e0001'", "'\xf0\x9f\x98\x80\\U000e0001'");
    assert_repr("'a' r'\\b' \"\"\"c\n\"\"\"", "'a\\\\bc\\n'");
    assert_repr("'\\d\\60\\0601'", "'\\\\d0\x30\x31'");
}

/* ---------------------------------------------------------------- writing */

struct made {
    tnf_sink *sink;
    tnf_str bytes;
};

static tnf_status save_to_memory(tnf_builder *b, struct made *out, bool allow, const char *key,
                                 const char *value, tnf_error *e)
{
    tnf_option option = { key, value };
    tnf_save_options o = { .size = sizeof o, .format = "npy", .allow_loss = allow };
    o.options = &option;
    o.noptions = key ? 1 : 0;
    assert_int_equal(tnf_sink_memory(&out->sink, NULL), TNF_OK);
    tnf_status status = tnf_save_sink(b, out->sink, &o, e);
    out->bytes = tnf_sink_bytes(out->sink);
    return status;
}

static tnf_builder *builder_with(const char *name, const char *type, uint64_t n)
{
    static const uint8_t data[64] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    tnf_builder *b;
    tnf_error e;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, name, tnf_type_named(type), 1, &n, data, &e));
    return b;
}

static void assert_header(tnf_builder *b, bool allow, const char *key, const char *value,
                          const char *expected)
{
    struct made m;
    tnf_error e;
    assert_ok(save_to_memory(b, &m, allow, key, value, &e));
    assert_true(m.bytes.n >= 128);
    assert_memory_equal(m.bytes.p, "\x93NUMPY\1\0\x76\0", 10);
    assert_memory_equal(m.bytes.p + 10, expected, strlen(expected));
    assert_int_equal(m.bytes.p[127], '\n');
    tnf_sink_close(m.sink);
    tnf_builder_free(b);
}

static void assert_refused(tnf_builder *b, bool allow, tnf_status status, const char *words)
{
    struct made m;
    tnf_error e = { 0 };
    assert_int_equal(save_to_memory(b, &m, allow, NULL, NULL, &e), status);
    assert_says(words);
    tnf_sink_close(m.sink);
    tnf_builder_free(b);
}

static void types_are_written_as_numpy_has_them(void **state)
{
    (void)state;
    static const char *const types[][2] = {
        { "f32", "<f4" }, { "bool", "|b1" }, { "u8", "|u1" }, { "bf16", "<V2" }, { "c128", "<c16" },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char expected[80];
        snprintf(expected, sizeof expected,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }  ", types[i][1]);
        assert_header(builder_with("arr_0", types[i][0], 2), false, NULL, NULL, expected);
    }
}

static void small_floats_are_bytes_or_as_ml_dtypes_has_them(void **state)
{
    (void)state;
    assert_refused(builder_with("arr_0", "f8_e5m2", 2), false, TNF_ELOSSY, "no such type");
    assert_header(builder_with("arr_0", "f8_e5m2", 2), true, NULL, NULL, "{'descr': '|V1', ");
    assert_header(builder_with("arr_0", "f8_e5m2", 2), false, "f8", "ml_dtypes",
                  "{'descr': '<f1', ");
    assert_header(builder_with("arr_0", "f8_e4m3fn", 2), true, "f8", "ml_dtypes",
                  "{'descr': '<V1', ");
}

static void one_array_named_arr_0(void **state)
{
    (void)state;
    static const uint8_t data[4];
    uint64_t n = 1;
    tnf_error e;
    tnf_builder *b = builder_with("arr_0", "f32", 2);
    assert_ok(tnf_builder_add(b, "v", tnf_type_of(TNF_F32), 1, &n, data, &e));
    assert_refused(b, false, TNF_ELOSSY, ".npz");
    b = builder_with("arr_0", "f32", 2);
    assert_ok(tnf_builder_add(b, "v", tnf_type_of(TNF_F32), 1, &n, data, &e));
    assert_header(b, true, NULL, NULL, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }");
    assert_refused(builder_with("w", "f32", 2), false, TNF_ELOSSY, "stores no name");
    assert_header(builder_with("w", "f32", 2), true, NULL, NULL, "{'descr': '<f4'");
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_refused(b, true, TNF_EUNSUPPORTED, "exactly one array, and there is none");
    uint64_t vast[] = { (uint64_t)1 << 63, 0 };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "arr_0", tnf_type_of(TNF_U8), 2, vast, data, &e));
    assert_refused(b, true, TNF_EUNSUPPORTED, "there is none");
}

/* Attributes of another file, or of a tensor that has changed since. */
static void a_descr_must_describe_the_tensor(void **state)
{
    (void)state;
    static const struct {
        const char *descr, *type, *written;
    } cases[] = {
        { "<M8[ns]", "i64", "'<M8[ns]', 'fortran_order': False, 'shape': (4,)" },
        { ">i8", "i64", "'>i8', 'fortran_order': False, 'shape': (4,)" },
        { "|S4", "u8", "'|S4', 'fortran_order': False, 'shape': ()" },
        { "[('a', '<f4')]", "u8", "[('a', '<f4')], 'fortran_order': False, 'shape': ()" },
        { "|S3", "u8", NULL },
        { "<M8[ns]", "i32", NULL },
        { "|O", "u8", NULL },
        { "nonsense", "u8", NULL },
        { "[(", "u8", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[120];
        tnf_error e;
        tnf_builder *b = builder_with("arr_0", cases[i].type, 4);
        tnf_value v = tnf_value_string(cases[i].descr);
        assert_ok(tnf_builder_set(b, "arr_0", "numpy.descr", &v, &e));
        if (!cases[i].written) {
            assert_refused(b, false, TNF_ELOSSY, "does not match the tensor");
            continue;
        }
        snprintf(expected, sizeof expected, "{'descr': %s", cases[i].written);
        assert_header(b, false, NULL, NULL, expected);
    }
}

/* An old header that contradicts the tensor is not used. */
static void an_old_header_must_say_the_same(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': exec('1')}",
        "",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        tnf_error e;
        tnf_builder *b = builder_with("arr_0", "f32", 4);
        tnf_value v = tnf_value_string(headers[i]);
        assert_ok(tnf_builder_set(b, "arr_0", "numpy.header", &v, &e));
        assert_header(b, false, NULL, NULL,
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }");
    }
}

/* ---------------------------------------------------------------- options */

static void assert_opens_as(const char *descr, const char *key, const char *value, const char *type,
                            uint32_t rank)
{
    char bytes[200];
    tnf_source *source;
    tnf_file *file;
    tnf_error e;
    tnf_option option = { key, value };
    tnf_open_options o = TNF_OPEN_INIT;
    int n = snprintf(bytes + 10, 150, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}",
                     descr);
    memcpy(bytes, "\x93NUMPY\1\0", 8);
    bytes[8] = (char)n;
    bytes[9] = 0;
    memset(bytes + 10 + n, 0, 4);
    o.options = &option;
    o.noptions = key ? 1 : 0;
    size_t size = 10 + (size_t)n + (strchr(descr, '2') ? 4 : 2);
    assert_ok(tnf_source_memory(&source, bytes, size, &e));
    assert_ok(tnf_open_source(&file, source, &o, &e));
    const tnf_object *a = tnf_find(file, "arr_0");
    assert_string_equal(a->parts[0].type->id, type);
    assert_int_equal(a->rank, rank);
    assert_int_equal(tnf_value_get(a->attrs, "numpy.descr") != NULL, rank == 2);
    tnf_close(file);
}

static void options_name_types(void **state)
{
    (void)state;
    assert_opens_as("|V2", NULL, NULL, "u8", 2);
    assert_opens_as("|V2", "v2", "bf16", "bf16", 1);
    assert_opens_as("<V2", "v1", "i8", "bf16", 1);
    assert_opens_as("<V1", NULL, NULL, "u8", 2);
    assert_opens_as("<V1", "v1", "f8_e4m3fn", "f8_e4m3fn", 1);
    assert_opens_as("|V1", "v1", "bool", "bool", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_wants_the_magic),
        cmocka_unit_test(literals_are_printed_as_python_does),
        cmocka_unit_test(types_are_written_as_numpy_has_them),
        cmocka_unit_test(small_floats_are_bytes_or_as_ml_dtypes_has_them),
        cmocka_unit_test(one_array_named_arr_0),
        cmocka_unit_test(a_descr_must_describe_the_tensor),
        cmocka_unit_test(an_old_header_must_say_the_same),
        cmocka_unit_test(options_name_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
