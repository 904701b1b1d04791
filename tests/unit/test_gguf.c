/* SPDX-License-Identifier: MIT */
/* Tests beyond the fixtures of GGUF: options of its writer, edits in place, names of types and
 * layouts. */
#include "../support/unit.h"
#include "model/layout.h"
#include <tenfold/build.h>
#include <tenfold/tenfold.h>
#include <tenfold/value.h>

#include <unistd.h>

static tnf_value value_u32(uint32_t v)
{
    return (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U32, .as.u = v };
}

/* ------------------------------------------------------------------ types */

static void check_type(tnf_value v, const char *expected)
{
    char type[64];
    assert_int_equal(tnf_value_type(type, sizeof type, &v), strlen(expected));
    assert_string_equal(type, expected);
}

static void types_of_values(void **state)
{
    (void)state;
    tnf_value ints[] = { value_u32(1), value_u32(2) },
              mixed[] = { value_u32(1), tnf_value_bool(true) };
    tnf_value texts[] = { tnf_value_string("a"), tnf_value_bytes("\xff", 1) };
    check_type(value_u32(1), "u32");
    check_type(tnf_value_float(1), "f64");
    check_type(tnf_value_string(""), "string");
    check_type((tnf_value) { .kind = TNF_NULL }, "null");
    check_type(tnf_value_map(NULL, 0), "map");
    check_type(tnf_value_array(ints, 2), "array<u32>");
    check_type(tnf_value_array(mixed, 2), "array");
    check_type(tnf_value_array(NULL, 0), "array");
    check_type(tnf_value_array(texts, 2), "array<string>");
    check_type(tnf_value_array(texts + 1, 1), "array<bytes>");
    tnf_value strings = tnf_value_mark_items(tnf_value_array(NULL, 0), TNF_STRING, TNF_F64);
    tnf_value bytes = tnf_value_mark_items(tnf_value_array(NULL, 0), TNF_UINT, TNF_U8);
    check_type(strings, "array<string>");
    check_type(bytes, "array<u8>");
    tnf_value same[] = { tnf_value_array(ints, 2), tnf_value_array(ints, 1) };
    tnf_value other[] = { tnf_value_array(ints, 2), strings };
    check_type(tnf_value_array(same, 2), "array<array<u32>>");
    check_type(tnf_value_array(other, 2), "array<array>");
    char small[6];
    const tnf_value v = tnf_value_array(ints, 2);
    assert_int_equal(tnf_value_type(small, sizeof small, &v), 10);
    assert_string_equal(small, "array");
    tnf_kind kind;
    tnf_dtype dtype;
    assert_false(tnf_value_items(&kind, &dtype, &v));
    assert_true(tnf_value_items(&kind, &dtype, &bytes) && kind == TNF_UINT && dtype == TNF_U8);
}

static void layouts_of_blocks(void **state)
{
    (void)state;
    uint32_t elements = 0, bytes = 0;
    const tnf_layout *q4_k = tnf_layout_by_id("gguf.q4_k/1");
    assert_non_null(q4_k);
    assert_string_equal(tnf_layout_name(q4_k), "Q4_K");
    assert_string_equal(tnf_layout_name(&tnf_layout_dense), "dense");
    assert_true(tnf_layout_blocks(&elements, &bytes, q4_k) && elements == 256 && bytes == 144);
    assert_false(tnf_layout_blocks(&elements, &bytes, &tnf_layout_dense));
    tnf_error e;
    static const uint8_t data[288];
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .memory = data,
                      .stored = 288,
                      .nbytes = 288,
                      .payload = TNF_MEMORY };
    uint64_t shape[2] = { 2, 256 };
    tnf_object o = { .name = TNF_STR("w"), .shape = shape, .layout = q4_k, .parts = &part };
    o.rank = 2;
    o.nparts = 1;
    assert_ok(tnf_layout_check(&o, &e));
    shape[0] = 4;
    shape[1] = 128;
    assert_fails(tnf_layout_check(&o, &e), TNF_EFORMAT);
    assert_says("whole blocks");
    shape[1] = 256;
    assert_fails(tnf_layout_check(&o, &e), TNF_EFORMAT);
    assert_says("not 288");
    o.rank = 0;
    assert_fails(tnf_layout_check(&o, &e), TNF_EFORMAT);
}

/* ---------------------------------------------------------------- writing */

static tnf_builder *build_model(void)
{
    static const float data[6] = { 1, 2, 3, 4, 5, 6 };
    static const uint64_t shape[2] = { 2, 3 };
    tnf_error e;
    tnf_builder *b;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    const tnf_value name = tnf_value_string("llama"), n = value_u32(7);
    assert_ok(tnf_builder_set(b, NULL, "gguf.general.architecture", &name, &e));
    assert_ok(tnf_builder_set(b, NULL, "gguf.llama.block_count", &n, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 2, shape, data, &e));
    return b;
}

static void path_of(char out[64])
{
    snprintf(out, 64, "/tmp/test_gguf_XXXXXX");
    close(mkstemp(out));
}

static void save_as(tnf_builder *b, const char *path, const tnf_option *options, size_t n)
{
    tnf_error e;
    tnf_save_options how = { .size = sizeof how, .format = "gguf", .replace = true };
    how.options = options;
    how.noptions = n;
    assert_ok(tnf_save(b, path, &how, &e));
}

static void check_values(const tnf_file *f)
{
    static const float expected[6] = { 1, 2, 3, 4, 5, 6 };
    float got[6];
    tnf_error e;
    const tnf_object *w = tnf_find(f, "w");
    assert_non_null(w);
    assert_ok(tnf_read(got, sizeof got, w, &e));
    assert_memory_equal(got, expected, sizeof got);
}

static void options_of_the_writer(void **state)
{
    (void)state;
    char path[64];
    tnf_error e;
    tnf_file *f;
    path_of(path);
    tnf_builder *b = build_model();
    static const tnf_option all[] = {
        { "alignment", "1024" }, { "version", "2" }, { "endian", "big" }, { "reserve", "100" }
    };
    save_as(b, path, all, 4);
    assert_ok(tnf_open(&f, path, NULL, &e));
    const tnf_info *info = tnf_file_info(f);
    assert_string_equal(info->version, "2");
    uint64_t alignment;
    assert_true(
        tnf_value_as_uint(&alignment, tnf_value_get(info->attrs, "gguf.general.alignment")));
    assert_int_equal(alignment, 1024);
    assert_int_equal(tnf_find(f, "w")->parts->offset % 1024, 0);
    assert_int_equal(info->size % 1024, 0);
    assert_string_equal(tnf_value_get(info->attrs, "gguf_file.endian")->as.s, "big");
    assert_null(tnf_value_get(info->attrs, "gguf.tenfold.reserve"));
    check_values(f);
    tnf_close(f);
    tnf_save_options how = { .size = sizeof how, .format = "gguf", .replace = true };
    static const tnf_option bad = { "alignment", "48" };
    how.options = &bad;
    how.noptions = 1;
    assert_fails(tnf_save(b, path, &how, &e), TNF_EINVAL);
    assert_says("power of two");
    tnf_builder_free(b);
    unlink(path);
}

static void check_kept(const tnf_file *f, const char *key, const char *type)
{
    char text[64];
    const tnf_value *v = tnf_value_get(tnf_file_info(f)->attrs, key);
    assert_non_null(v);
    tnf_value_type(text, sizeof text, v);
    assert_string_equal(text, type);
}

/* Keys without the prefix gguf., with the types of CBOR: they are kept, or get the types that
 * llama.cpp expects. */
static void usual_types(void **state)
{
    (void)state;
    static const char *const keys[] = { "llama.block_count",     "llama.rope",
                                        "llama.offset",          "llama.pi",
                                        "llama.large",           "tokenizer.ggml.token_type",
                                        "tokenizer.ggml.scores", "other.count" };
    static const char *const same[] = { "u64", "f64",        "i64",        "f64",
                                        "u64", "array<u64>", "array<f64>", "u64" };
    static const char *const usual[] = { "u32", "f32",        "i32",        "f64",
                                         "u64", "array<i32>", "array<f32>", "u64" };
    const tnf_value tokens[] = { tnf_value_uint(1), tnf_value_uint(6) };
    const tnf_value scores[] = { tnf_value_float(-1.5), tnf_value_float(2) };
    const tnf_value values[] = { tnf_value_uint(32),         tnf_value_float(0.5),
                                 tnf_value_int(-3),          tnf_value_float(3.14159265358979),
                                 tnf_value_uint(1ULL << 40), tnf_value_array(tokens, 2),
                                 tnf_value_array(scores, 2), tnf_value_uint(5) };
    char path[64];
    tnf_error e;
    tnf_file *f;
    tnf_builder *b;
    const tnf_value name = tnf_value_string("llama");
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_set(b, NULL, "general.architecture", &name, &e));
    for (size_t i = 0; i < 8; i++)
        assert_ok(tnf_builder_set(b, NULL, keys[i], &values[i], &e));
    path_of(path);
    for (int asked = 0; asked < 2; asked++) {
        static const tnf_option option = { "types", "usual" };
        save_as(b, path, &option, (size_t)asked);
        assert_ok(tnf_open(&f, path, NULL, &e));
        for (size_t i = 0; i < 8; i++)
            check_kept(f, keys[i], asked ? usual[i] : same[i]);
        const tnf_value *eps = tnf_value_get(tnf_file_info(f)->attrs, "llama.rope");
        assert_true((asked ? (double)eps->as.f32 : eps->as.f64) == 0.5);
        assert_int_equal(tnf_value_get(tnf_file_info(f)->attrs, "llama.offset")->as.i, -3);
        tnf_close(f);
    }
    tnf_builder_free(b);
    unlink(path);
}

/* Blocks of q8_0 in a big-endian file, in either byte order: the wrong order causes a warning.
 */
static void scales_of_the_other_order(void **state)
{
    (void)state;
    enum { BLOCKS = 32 };
    for (int little = 0; little < 2; little++)
        for (int option = 0; option < 2; option++) {
            uint8_t file[96 + 34 * BLOCKS] = "GGUF";
            static const uint8_t head[] = { 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,   0,
                                            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'w', 0,
                                            0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0,   8 };
            memcpy(file + 4, head, sizeof head);
            for (unsigned i = 0; i < BLOCKS; i++) {
                const uint8_t scale[2] = { 0x18 + i % 8, (uint8_t)(0x5b + 37 * i) }; /* 0.003 … */
                file[64 + 34 * i] = scale[little];
                file[65 + 34 * i] = scale[!little];
            }
            const tnf_option blocks = { "blocks", option ? "little" : "big" };
            tnf_open_options how = { .size = sizeof how, .options = &blocks, .noptions = 1 };
            tnf_source *source;
            tnf_file *f;
            tnf_error e;
            assert_ok(tnf_source_memory(&source, file, 64 + 34 * BLOCKS, &e));
            assert_ok(tnf_open_source(&f, source, &how, &e));
            const tnf_info *info = tnf_file_info(f);
            bool told = false;
            for (size_t i = 0; i < info->nwarnings; i++)
                told = told ||
                       strstr(info->warnings[i].message, little ? "blocks=little" : "blocks=big");
            assert_int_equal(told, little != option);
            tnf_close(f);
        }
}

/* ---------------------------------------------------------------- editing */

/* Sets a key and saves in place; returns the status. */
static tnf_status set_in_place(const char *path, const char *key, tnf_value v, tnf_error *e)
{
    tnf_file *f;
    tnf_builder *b;
    tnf_open_options to_change = { .size = sizeof to_change, .to_change = true };
    assert_int_equal(tnf_open(&f, path, &to_change, e), TNF_OK);
    assert_int_equal(tnf_builder_new(&b, NULL, e), TNF_OK);
    assert_int_equal(tnf_builder_add_file(b, f, e), TNF_OK);
    assert_int_equal(tnf_builder_set(b, NULL, key, &v, e), TNF_OK);
    tnf_save_options how = { .size = sizeof how, .like = f };
    tnf_status status = tnf_save_in_place(b, path, &how, e);
    tnf_builder_free(b);
    tnf_close(f);
    return status;
}

static void edits_in_place(void **state)
{
    (void)state;
    static const tnf_option reserve = { "reserve", "400" };
    char path[64], text[600];
    tnf_error e;
    tnf_file *f;
    path_of(path);
    tnf_builder *b = build_model();
    save_as(b, path, &reserve, 1);
    memset(text, 'x', sizeof text);
    /* a number of the same size; a text that grows into the free space, shrinks, grows again */
    assert_ok(set_in_place(path, "gguf.llama.block_count", value_u32(8), &e));
    for (size_t n = 1; n <= 300; n += 37)
        assert_ok(set_in_place(path, "gguf.general.name", tnf_value_text(text, n), &e));
    assert_ok(set_in_place(path, "gguf.general.name", tnf_value_text(text, 2), &e));
    assert_ok(set_in_place(path, "gguf.general.name", tnf_value_text(text, 350), &e));
    assert_fails(set_in_place(path, "gguf.general.name", tnf_value_text(text, 600), &e),
                 TNF_EUNSUPPORTED);
    assert_says("no room");
    assert_ok(tnf_open(&f, path, NULL, &e));
    assert_int_equal(tnf_value_get(tnf_file_info(f)->attrs, "gguf.general.name")->n, 350);
    assert_int_equal(tnf_value_get(tnf_file_info(f)->attrs, "gguf.llama.block_count")->as.u, 8);
    assert_int_equal(tnf_file_info(f)->nwarnings, 0);
    check_values(f);
    tnf_close(f);
    /* Another alignment moves the tensors. */
    assert_fails(set_in_place(path, "gguf.general.alignment", value_u32(4096), &e),
                 TNF_EUNSUPPORTED);
    tnf_builder_free(b);
    unlink(path);
}

static void edits_without_room(void **state)
{
    (void)state;
    char path[64];
    tnf_error e;
    path_of(path);
    tnf_builder *b = build_model();
    save_as(b, path, NULL, 0);
    assert_ok(set_in_place(path, "gguf.llama.block_count", value_u32(9), &e));
    assert_fails(
        set_in_place(path, "gguf.llama.a_key_of_some_length_that_does_not_fit", value_u32(9), &e),
        TNF_EUNSUPPORTED);
    tnf_builder_free(b);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_values),           cmocka_unit_test(layouts_of_blocks),
        cmocka_unit_test(options_of_the_writer),     cmocka_unit_test(usual_types),
        cmocka_unit_test(scales_of_the_other_order), cmocka_unit_test(edits_in_place),
        cmocka_unit_test(edits_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
