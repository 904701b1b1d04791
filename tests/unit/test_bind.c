/* SPDX-License-Identifier: MIT */
/* Tensors by name: their checks; values that are mapped or read. */
#include "../support/files.h"
#include "../support/unit.h"
#include <tenfold/bind.h>
#include <tenfold/build.h>

static const float w[6] = { 1, 2, 3, 4, 5, 6 };
static const int32_t k[2] = { 7, 8 };
static tnf_file *file;
static tnf_sink *sink;

/* safetensors: w f32 [2,3], k i32 [2]. */
static int set_up(void **state)
{
    (void)state;
    tnf_error e;
    tnf_builder *b;
    tnf_source *source;
    tnf_save_options how = TNF_SAVE_INIT;
    how.format = "safetensors";
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 2, (uint64_t[]) { 2, 3 }, w, &e));
    assert_ok(tnf_builder_add(b, "k", tnf_type_of(TNF_I32), 1, (uint64_t[]) { 2 }, k, &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &how, &e));
    tnf_builder_free(b);
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tnf_close(file);
    tnf_sink_close(sink);
    return 0;
}

static void shapes_as_text(void **state)
{
    (void)state;
    char text[8];
    assert_int_equal(tnf_shape_text(text, sizeof text, tnf_find(file, "w")), 5);
    assert_string_equal(text, "[2,3]");
    assert_int_equal(tnf_shape_text(text, 4, tnf_find(file, "w")), 5);
    assert_string_equal(text, "[2,");
    assert_int_equal(tnf_shape_text(NULL, 0, tnf_find(file, "w")), 5);
    tnf_shape_text(text, sizeof text, NULL);
    assert_string_equal(text, "[?]");
    char wide[32]; /* a file may contain the number that means any size */
    tnf_shape_text(wide, sizeof wide,
                   &(tnf_object) { .shape = (uint64_t[]) { TNF_ANY }, .rank = 1 });
    assert_string_equal(wide, "[18446744073709551615]");
}

static void expects_types_and_shapes(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_object *o = tnf_find(file, "w");
    const tnf_type *f32 = tnf_type_of(TNF_F32);
    assert_ok(tnf_expect(o, NULL, TNF_ANY_RANK, NULL, &e));
    assert_ok(tnf_expect(o, f32, 2, NULL, &e));
    assert_ok(tnf_expect(o, f32, 2, (uint64_t[]) { TNF_ANY, 3 }, &e));
    assert_ok(tnf_expect(o, f32, 2, (uint64_t[]) { 2, 0 }, &e));
    assert_fails(tnf_expect(o, f32, 2, (uint64_t[]) { TNF_ANY, 4 }, &e), TNF_EINVAL);
    assert_string_equal(e.message, "'w' has the shape [2,3], but must have [?,4]");
    assert_fails(tnf_expect(o, f32, 1, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_expect(o, tnf_type_of(TNF_F16), 2, NULL, &e), TNF_EINVAL);
    assert_string_equal(e.message, "'w' has the type f32, but must have f16");
    assert_fails(tnf_expect(NULL, f32, 2, NULL, &e), TNF_ENOTFOUND);
}

static void binds_by_name(void **state)
{
    (void)state;
    tnf_error e;
    float dst[6] = { 0 };
    int32_t numbers[2];
    tnf_binding all[] = { TNF_BINDING_INIT, TNF_BINDING_INIT };
    all[0].name = "w";
    all[0].rank = 2;
    all[0].dst = dst;
    all[0].n = sizeof dst;
    all[1].name = "k";
    all[1].type = tnf_type_of(TNF_I32);
    all[1].dst = numbers;
    all[1].n = sizeof numbers;
    assert_ok(tnf_bind(file, all, 2, NULL, NULL, &e));
    assert_memory_equal(all[0].view, w, sizeof w);
    assert_memory_equal(all[1].view, k, sizeof k);
    assert_ptr_equal(all[1].object, tnf_find(file, "k"));
    assert_ok(tnf_bind(file, NULL, 0, NULL, NULL, &e));
}

static void count_failure(void *ctx, const tnf_binding *b, const tnf_error *why)
{
    (void)b;
    assert_true(why->message[0] != 0);
    ++*(int *)ctx;
}

static void all_at_once(void **state)
{
    (void)state;
    tnf_error e;
    int told = 0;
    tnf_binding all[] = { TNF_BINDING_INIT, TNF_BINDING_INIT, TNF_BINDING_INIT };
    all[0].name = "none";
    all[1].name = "w";
    all[1].rank = 3;
    all[2].name = "k";
    assert_fails(tnf_bind(file, all, 3, count_failure, &told, &e), TNF_ENOTFOUND);
    assert_string_equal(e.message, "there is no tensor 'none' (and 1 more)");
    assert_int_equal(told, 2);
}

/* The same tensors in a file that may not be mapped. */
static tnf_file *save_and_open(const char *format, bool columns)
{
    tnf_error e;
    tnf_file *f;
    tnf_builder *b;
    char path[300];
    tnf_save_options how = TNF_SAVE_INIT;
    tnf_open_options open = TNF_OPEN_INIT;
    snprintf(path, sizeof path, "%s/bind.%s", files_temp(), format);
    how.format = format;
    how.replace = true;
    how.order = columns ? "F" : NULL;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 2, (uint64_t[]) { 2, 3 }, w, &e));
    assert_ok(tnf_save(b, path, &how, &e));
    tnf_builder_free(b);
    open.access = TNF_ACCESS_PREAD;
    assert_ok(tnf_open(&f, path, &open, &e));
    return f;
}

static void read_into_memory(void **state)
{
    (void)state;
    tnf_error e;
    for (int columns = 0; columns < 2; columns++) {
        float dst[6] = { 0 };
        tnf_binding one = TNF_BINDING_INIT;
        tnf_file *f = save_and_open(columns ? "primitiv" : "safetensors", columns);
        one.name = "w";
        assert_fails(tnf_bind(f, &one, 1, NULL, NULL, &e), TNF_EUNSUPPORTED);
        one.dst = dst;
        one.n = sizeof dst - 1;
        assert_fails(tnf_bind(f, &one, 1, NULL, NULL, &e), TNF_EINVAL);
        assert_string_equal(e.message, "'w' has 24 bytes, but there is room for only 23");
        one.n = sizeof dst;
        assert_ok(tnf_bind(f, &one, 1, NULL, NULL, &e));
        assert_ptr_equal(one.view, dst);
        assert_memory_equal(dst, w, sizeof w); /* row by row, for any order in the file */
        tnf_close(f);
    }
}

/* A name that contains a NUL has a length. */
static void names_with_nul(void **state)
{
    (void)state;
    tnf_error e;
    tnf_builder *b;
    tnf_file *made;
    const tnf_object *wide = tnf_find(file, "w");
    tnf_object named = *wide;
    tnf_binding t = TNF_BINDING_INIT;
    float values[6];
    named.name = (tnf_str)TNF_STR("w\0x");
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_object(b, &named, NULL, &e));
    assert_ok(tnf_open_builder(&made, b, NULL, &e));
    t.name = "w\0x";
    t.dst = values;
    t.n = sizeof values;
    assert_fails(tnf_bind(made, &t, 1, NULL, NULL, &e), TNF_ENOTFOUND);
    t.name_bytes = 3;
    assert_ok(tnf_bind(made, &t, 1, NULL, NULL, &e));
    assert_memory_equal(t.view, w, sizeof w);
    t.name_bytes = 2;
    assert_fails(tnf_bind(made, &t, 1, NULL, NULL, &e), TNF_ENOTFOUND);
    assert_says("'w\\x00'");
    tnf_close(made);
    tnf_builder_free(b);
}

static void refuses_no_name(void **state)
{
    tnf_error e;
    tnf_binding binding = TNF_BINDING_INIT;
    (void)state;
    assert_fails(tnf_bind(NULL, &binding, 1, NULL, NULL, &e), TNF_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_as_text),   cmocka_unit_test(expects_types_and_shapes),
        cmocka_unit_test(binds_by_name),    cmocka_unit_test(all_at_once),
        cmocka_unit_test(read_into_memory), cmocka_unit_test(refuses_no_name),
        cmocka_unit_test(names_with_nul),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
