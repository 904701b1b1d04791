/* SPDX-License-Identifier: MIT */
/* Tensors are changed for formats that cannot hold them as they are, and restored: through real
 * formats, with expected values that the test computes itself. restore_tensors.c is tested here,
 * too. */
#include "../support/unit.h"
#include "core/save/save.h"

struct plan {
    char text[2000];
};

static void note_item(void *ctx, const tnf_plan_item *item)
{
    static const char *const fates[] = { "native", "stashed", "transformed", "dropped" };
    struct plan *p = ctx;
    size_t n = strlen(p->text);
    snprintf(p->text + n, sizeof p->text - n, "%s %s %.*s; ", fates[item->fate], item->kind,
             (int)item->name.n, item->name.p);
}

/* Saves the builder in the format and opens the result. */
static tnf_file *save_and_open(tnf_builder *b, const char *format, struct plan *plan,
                               tnf_sink **sink)
{
    tnf_error e = { 0 };
    tnf_file *file;
    tnf_source *source;
    tnf_save_options o = { .size = sizeof o, .format = format, .plan = note_item, .ctx = plan };
    plan->text[0] = 0;
    assert_ok(tnf_sink_memory(sink, &e));
    assert_ok(tnf_save_sink(b, *sink, &o, &e));
    tnf_str bytes = tnf_sink_bytes(*sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    return file;
}

/* n strings, which are pieces of "onethree". */
static void add_strings(tnf_builder *b, tnf_str name, const uint64_t *offsets, uint64_t n)
{
    tnf_error e;
    tnf_part parts[] = {
        { .role = "offsets",
          .type = tnf_type_of(TNF_U64),
          .memory = offsets,
          .payload = TNF_MEMORY },
        { .role = "bytes",
          .type = tnf_type_of(TNF_U8),
          .memory = "onethree",
          .payload = TNF_MEMORY },
    };
    parts[0].stored = parts[0].nbytes = (n + 1) * sizeof *offsets;
    parts[1].stored = parts[1].nbytes = 8;
    tnf_object o = { .name = name,
                     .shape = &n,
                     .rank = 1,
                     .parts = parts,
                     .nparts = 2,
                     .layout = tnf_layout_by_id("strings/1") };
    assert_ok(tnf_builder_add_object(b, &o, NULL, &e));
}

static void strings_in_safetensors(void **state)
{
    (void)state;
    static const uint64_t offsets[] = { 0, 3, 3, 8 };
    tnf_builder *b;
    tnf_error e;
    tnf_sink *sink;
    struct plan plan;
    tnf_value mark = tnf_value_string("words");
    assert_ok(tnf_builder_new(&b, NULL, &e));
    add_strings(b, (tnf_str) { "v", 1 }, offsets, 3);
    assert_ok(tnf_builder_set(b, "v", "role", &mark, &e));
    tnf_file *file = save_and_open(b, "safetensors", &plan, &sink);
    assert_non_null(strstr(plan.text, "stashed tensor v; "));
    assert_int_equal(tnf_file_info(file)->objects, 1);
    assert_int_equal(tnf_file_info(file)->nwarnings, 0);
    const tnf_object *v = tnf_find(file, "v");
    assert_non_null(v);
    assert_string_equal(tnf_layout_id(v->layout), "strings/1");
    assert_int_equal(v->rank, 1);
    assert_int_equal(v->shape[0], 3);
    assert_string_equal(tnf_value_get(v->attrs, "role")->as.s, "words");
    char text[9] = "";
    assert_ok(tnf_read_part(text, 8, tnf_object_part(v, "bytes"), 0, &e));
    assert_string_equal(text, "onethree");
    tnf_close(file);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

static bool has_text(tnf_str bytes, const char *text)
{
    return memmem(bytes.p, bytes.n, text, strlen(text)) != NULL;
}

/* Another reader sees plain tensors under descriptive names. */
static void parts_as_others_see_them(void **state)
{
    (void)state;
    static const uint64_t offsets[] = { 0, 8 };
    tnf_builder *b;
    tnf_error e;
    tnf_sink *sink;
    struct plan plan;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    add_strings(b, (tnf_str) { "v", 1 }, offsets, 1);
    tnf_close(save_and_open(b, "safetensors", &plan, &sink));
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_true(has_text(bytes, "\"v#bytes\":{\"dtype\":\"U8\",\"shape\":[8]"));
    assert_true(has_text(bytes, "\"v#offsets\":{\"dtype\":\"U64\",\"shape\":[2]"));
    tnf_sink_close(sink);
    /* A name that exists already: no tensor is replaced; the new one is refused. */
    uint64_t one[] = { 1 };
    assert_ok(tnf_builder_add(b, "v#bytes", tnf_type_of(TNF_U8), 1, one, "x", &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    tnf_save_options so = { .size = sizeof so, .format = "safetensors" };
    assert_fails(tnf_save_sink(b, sink, &so, &e), TNF_ELOSSY);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

/* zTensor 0.1 does not support small floats: they are stored as integers. */
static void types_that_are_unknown(void **state)
{
    (void)state;
    tnf_builder *b;
    tnf_error e;
    tnf_sink *sink;
    struct plan plan;
    uint64_t shape[] = { 2, 4 }, odd[] = { 3, 1 };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_named("f8_e4m3fn"), 2, shape, "onethree", &e));
    assert_ok(tnf_builder_add(b, "x", tnf_type_named("f4_e2m1"), 2, odd, "ab", &e));
    assert_ok(tnf_builder_add(b, "z", tnf_type_named("c64"), 1, shape, "0123456789abcdef", &e));
    tnf_file *file = save_and_open(b, "ztensor0", &plan, &sink);
    assert_string_equal(plan.text, "stashed tensor w; stashed tensor x; stashed tensor z; ");
    assert_int_equal(tnf_file_info(file)->nwarnings, 0);
    const tnf_object *w = tnf_find(file, "w"), *x = tnf_find(file, "x"), *z = tnf_find(file, "z");
    assert_string_equal(w->parts->type->id, "f8_e4m3fn");
    assert_int_equal(w->rank, 2);
    assert_int_equal(w->shape[1], 4);
    assert_string_equal(x->parts->type->id, "f4_e2m1");
    assert_int_equal(x->shape[0], 3);
    assert_string_equal(z->parts->type->id, "c64");
    assert_int_equal(z->rank, 1);
    assert_int_equal(z->shape[0], 2);
    char text[17] = "";
    assert_ok(tnf_read(text, 16, z, &e));
    assert_string_equal(text, "0123456789abcdef");
    tnf_close(file);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

/* 0, 1, 2 … in rows of the given shape. The same in columns is computed index by index. */
static void fill_columns(float *columns, const uint64_t *shape, uint32_t rank)
{
    uint64_t n = 1, index[8];
    for (uint32_t d = 0; d < rank; d++)
        n *= shape[d];
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i, at = 0, stride = 1;
        for (uint32_t d = rank; d-- > 0; rest /= shape[d])
            index[d] = rest % shape[d];
        for (uint32_t d = 0; d < rank; d++) {
            at += index[d] * stride;
            stride *= shape[d];
        }
        columns[at] = (float)i;
    }
}

static void orders_come_back(void **state)
{
    (void)state;
    static const struct {
        uint32_t rank;
        uint64_t shape[5];
    } cases[] = {
        { 2, { 2, 3 } },          { 2, { 1, 7 } },          { 3, { 3, 4, 5 } },
        { 5, { 2, 1, 3, 2, 4 } }, { 2, { 2100, 2050 } },    { 2, { 3, 1500000 } },
        { 2, { 1500000, 3 } },    { 3, { 2, 1300, 1701 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_builder *b;
        tnf_error e;
        tnf_sink *sink, *sink2;
        struct plan plan;
        size_t n = 1;
        for (uint32_t d = 0; d < cases[i].rank; d++)
            n *= (size_t)cases[i].shape[d];
        float *rows = malloc(n * 4), *columns = malloc(n * 4), *back = malloc(n * 4);
        assert_true(rows && columns && back);
        for (size_t k = 0; k < n; k++)
            rows[k] = (float)k;
        fill_columns(columns, cases[i].shape, cases[i].rank);
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(
            tnf_builder_add(b, "w", tnf_type_of(TNF_F32), cases[i].rank, cases[i].shape, rows, &e));
        tnf_file *file = save_and_open(b, "primitiv", &plan, &sink);
        assert_non_null(strstr(plan.text, "native tensor w; "));
        const tnf_object *w = tnf_find(file, "w");
        assert_int_equal(w->order, TNF_ORDER_F);
        assert_ok(tnf_read(back, n * 4, w, &e));
        assert_memory_equal(back, columns, n * 4);
        tnf_builder *again;
        assert_ok(tnf_builder_new(&again, NULL, &e));
        assert_ok(tnf_builder_add_object(again, w, NULL, &e));
        tnf_file *file2 = save_and_open(again, "safetensors", &plan, &sink2);
        const tnf_object *w2 = tnf_find(file2, "w");
        assert_int_equal(w2->order, TNF_ORDER_C);
        assert_ok(tnf_read(back, n * 4, w2, &e));
        assert_memory_equal(back, rows, n * 4);
        tnf_close(file2);
        tnf_sink_close(sink2);
        tnf_builder_free(again);
        tnf_close(file);
        tnf_sink_close(sink);
        tnf_builder_free(b);
        free(rows);
        free(columns);
        free(back);
    }
}

/* Notes that do not match the tensors. The file is written by hand. */
static void stale_notes(void **state)
{
    (void)state;
    static const char *const notes[] = {
        "{}",
        "7",
        "{\"name\":\"v\",\"layout\":\"strings/1\",\"shape\":[1],\"parts\":[]}",
        "{\"name\":\"v\",\"layout\":\"dense\",\"shape\":[9],\"parts\":[{\"role\":\"data\","
        "\"type\":\"u8\",\"as\":\"a\"}]}",
        "{\"name\":\"v\",\"layout\":\"dense\",\"shape\":[8],\"parts\":[{\"role\":\"data\","
        "\"type\":\"f32\",\"as\":\"a\"}]}",
        "{\"name\":\"v\",\"layout\":\"dense\",\"shape\":[8],\"parts\":[{\"role\":\"data\","
        "\"type\":\"bool\",\"as\":\"nobody\"}]}",
        "{\"name\":\"b\",\"layout\":\"dense\",\"shape\":[8],\"parts\":[{\"role\":\"data\","
        "\"type\":\"bool\",\"as\":\"a\"}]}", /* another tensor has this name */
        "{\"name\":\"v\",\"layout\":\"strings/1\",\"shape\":[1],\"parts\":[{\"role\":\"offsets\","
        "\"type\":\"u8\",\"as\":\"a\"},{\"role\":\"bytes\",\"type\":\"u8\",\"as\":\"a\"}]}",
        "{\"name\":\"v\",\"layout\":\"dense\",\"shape\":[18446744073709551615,2],\"parts\":"
        "[{\"role\":\"data\",\"type\":\"u8\",\"as\":\"a\"}]}",
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        char stash[600];
        tnf_builder *b;
        tnf_error e;
        tnf_sink *sink;
        struct plan plan;
        uint64_t eight[] = { 8 };
        snprintf(stash, sizeof stash, "{\"objects\":[%s]}", notes[i]);
        tnf_value v = tnf_value_string(stash);
        const tnf_member pair = { { TNF_STASH_KEY, sizeof TNF_STASH_KEY - 1 }, v };
        tnf_value map = { .kind = TNF_MAP, .n = 1, .as.members = &pair };
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(tnf_builder_add(b, "a", tnf_type_of(TNF_U8), 1, eight, "onethree", &e));
        assert_ok(tnf_builder_add(b, "b", tnf_type_of(TNF_U8), 1, eight, "onethree", &e));
        assert_ok(tnf_builder_set(b, NULL, "safetensors.metadata", &map, &e));
        tnf_file *file = save_and_open(b, "safetensors", &plan, &sink);
        assert_int_equal(tnf_file_info(file)->objects, 2);
        assert_int_equal(tnf_file_info(file)->nwarnings, 1);
        assert_non_null(strstr(tnf_file_info(file)->warnings[0].message, "ignored"));
        assert_non_null(tnf_find(file, "a"));
        assert_non_null(tnf_find(file, "b"));
        tnf_close(file);
        tnf_sink_close(sink);
        tnf_builder_free(b);
    }
}

/* b\xff cannot be a name in formats whose names are text: the tensor gets another name, which is
 * restored. */
static void names_that_are_no_text(void **state)
{
    (void)state;
    static const uint64_t two[] = { 2 };
    tnf_builder *b;
    tnf_error e;
    tnf_sink *sink;
    struct plan plan;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "b\xff\xc3\xa9", tnf_type_of(TNF_U8), 1, two, "xy", &e));
    tnf_file *file = save_and_open(b, "safetensors", &plan, &sink);
    assert_string_equal(plan.text, "stashed tensor b\xff\xc3\xa9; ");
    assert_true(has_text(tnf_sink_bytes(sink), "\"b%FF\xc3\xa9\":{"));
    assert_int_equal(tnf_file_info(file)->nwarnings, 0);
    assert_int_equal(tnf_file_info(file)->objects, 1);
    assert_non_null(tnf_find(file, "b\xff\xc3\xa9"));
    tnf_close(file);
    tnf_sink_close(sink);
    /* If the other name exists already, the tensor is refused. */
    assert_ok(tnf_builder_add(b, "b%FF\xc3\xa9", tnf_type_of(TNF_U8), 1, two, "zz", &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    tnf_save_options so = { .size = sizeof so, .format = "safetensors" };
    assert_fails(tnf_save_sink(b, sink, &so, &e), TNF_ELOSSY);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

/* Saving as safetensors would lose something. */
static void expect_refused(const tnf_builder *b)
{
    tnf_error e;
    tnf_sink *sink;
    tnf_save_options so = { .size = sizeof so, .format = "safetensors" };
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_fails(tnf_save_sink(b, sink, &so, &e), TNF_ELOSSY);
    tnf_sink_close(sink);
}

/* A name that would become longer than 65,536 bytes is refused: the file would not open again. */
static void names_that_would_be_too_long(void **state)
{
    (void)state;
    static const uint64_t two[] = { 2 }, offsets[] = { 0, 8 };
    static char name[65536];
    tnf_error e;
    for (unsigned more = 0; more < 2; more++) {
        tnf_builder *b[2];
        struct plan plan;
        for (size_t i = 0; i < 2; i++)
            assert_ok(tnf_builder_new(&b[i], NULL, &e));
        memset(name, 'x', sizeof name);
        add_strings(b[0], (tnf_str) { name, sizeof name - strlen("#offsets") + more }, offsets, 1);
        memcpy(name + sizeof name - 3 + more, "\xff", 2); /* %FF has three bytes */
        assert_ok(tnf_builder_add(b[1], name, tnf_type_of(TNF_U8), 1, two, "xy", &e));
        for (size_t i = 0; i < 2; i++) {
            tnf_sink *sink;
            if (more) {
                expect_refused(b[i]);
            } else {
                tnf_close(save_and_open(b[i], "safetensors", &plan, &sink));
                tnf_sink_close(sink);
            }
            tnf_builder_free(b[i]);
        }
    }
}

/* A format without metadata stores them in a tensor, on request. */
static void stash_as_a_tensor(void **state)
{
    (void)state;
    tnf_builder *b;
    tnf_error e;
    tnf_sink *sink;
    tnf_source *source;
    tnf_file *file;
    struct plan plan = { "" };
    tnf_value seven = { .kind = TNF_UINT, .dtype = TNF_U16, .as.u = 7 };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 0, NULL, "abcd", &e));
    assert_ok(tnf_builder_set(b, NULL, "n", &seven, &e));
    assert_ok(tnf_builder_set(b, "w", "n", &seven, &e));
    tnf_option yes = { "stash", "yes" };
    tnf_save_options so = { .size = sizeof so, .format = "gptrs-archive" };
    so.plan = note_item;
    so.ctx = &plan;
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_fails(tnf_save_sink(b, sink, &so, &e), TNF_ELOSSY);
    assert_non_null(strstr(e.message, "stash=yes"));
    plan.text[0] = 0;
    so.options = &yes;
    so.noptions = 1;
    assert_ok(tnf_save_sink(b, sink, &so, &e));
    assert_string_equal(plan.text, "stashed attribute n; stashed tensor w; stashed attribute n; ");
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    assert_int_equal(tnf_file_info(file)->objects, 1);
    assert_int_equal(tnf_find(file, "w")->rank, 0);
    assert_int_equal(tnf_value_get(tnf_find(file, "w")->attrs, "n")->as.u, 7);
    const tnf_value *n = tnf_value_get(tnf_file_info(file)->attrs, "n");
    assert_true(n && n->kind == TNF_UINT && n->dtype == TNF_U16 && n->as.u == 7);
    tnf_close(file);
    /* A damaged stash is an ordinary tensor, with a warning. */
    char *text = memmem(bytes.p, bytes.n, "{\"attrs\"", 8);
    assert_non_null(text);
    *text = '[';
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    assert_int_equal(tnf_file_info(file)->objects, 2);
    assert_int_equal(tnf_file_info(file)->nwarnings, 1);
    tnf_close(file);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

/* Tied tensors: which of them share bytes, and how they are written. */
static char said[200];

static void note_b(void *ctx, const tnf_plan_item *item)
{
    (void)ctx;
    if (item->name.n == 1 && *item->name.p == 'b')
        snprintf(said, sizeof said, "%s", item->reason);
}

static const char *reason_of_b(tnf_file *tied, const char *format)
{
    tnf_builder *b;
    tnf_error e;
    tnf_sink *sink;
    tnf_save_options so = { .size = sizeof so, .format = format, .plan = note_b };
    so.dry_run = true;
    said[0] = 0;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_file(b, tied, &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &so, &e));
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return said;
}

static void tied_tensors(void **state)
{
    (void)state;
    static const uint64_t two[] = { 2 };
    tnf_builder *b;
    tnf_error e;
    tnf_sink *sink;
    struct plan plan;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "a", tnf_type_of(TNF_U8), 1, two, "xy", &e));
    assert_ok(tnf_builder_add(b, "b", tnf_type_of(TNF_U8), 1, two, "xy", &e));
    tnf_file *file = save_and_open(b, "ztensor2", &plan, &sink);
    assert_string_equal(reason_of_b(file, "ztensor2"), "shares the bytes of 'a'");
    assert_string_equal(reason_of_b(file, "safetensors"), "gets a copy of the bytes of 'a'");
    tnf_close(file);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

static void order_that_is_asked_for(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2, 2 };
    static const float values[] = { 1, 2, 3, 4 };
    tnf_builder *b;
    tnf_error e;
    tnf_sink *sink;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "a", tnf_type_of(TNF_F32), 2, shape, values, &e));
    tnf_save_options so = { .size = sizeof so, .format = "safetensors", .order = "F" };
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_fails(tnf_save_sink(b, sink, &so, &e), TNF_EUNSUPPORTED);
    so.order = "c";
    assert_fails(tnf_save_sink(b, sink, &so, &e), TNF_EINVAL);
    so.order = "C";
    assert_ok(tnf_save_sink(b, sink, &so, &e));
    tnf_sink_close(sink);
    so.format = "primitiv";
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_fails(tnf_save_sink(b, sink, &so, &e), TNF_EUNSUPPORTED);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_in_safetensors),
        cmocka_unit_test(parts_as_others_see_them),
        cmocka_unit_test(types_that_are_unknown),
        cmocka_unit_test(orders_come_back),
        cmocka_unit_test(stale_notes),
        cmocka_unit_test(names_that_are_no_text),
        cmocka_unit_test(names_that_would_be_too_long),
        cmocka_unit_test(stash_as_a_tensor),
        cmocka_unit_test(tied_tensors),
        cmocka_unit_test(order_that_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
