/* SPDX-License-Identifier: MIT */
/* What checkpoints and archives of gpt.rs share: the magic if the format is named, and what is said
 * of tensors that gpt.rs does not load. */
#include "../support/little.h"
#include "gptrs_files.h"

static tnf_status open_as(const char *format, const bytes *b, bool lenient, tnf_error *e)
{
    tnf_file *file;
    tnf_source *source;
    tnf_open_options o = { .size = sizeof o, .format = format, .lenient = lenient };
    memset(e, 0, sizeof *e);
    assert_int_equal(tnf_source_memory(&source, b->p, b->n, e), TNF_OK);
    tnf_status status = tnf_open_source(&file, source, &o, e);
    tnf_close(file);
    return status;
}

/* gpt.rs checks the magic of every file ("invalid checkpoint magic header"). */
static void test_magic_of_named_format(void **state)
{
    (void)state;
    static const struct {
        const char *format, *file, *other, *magic;
    } cases[] = { { "gptrs-checkpoint", "good_reference.bin", "gptrs-archive", "GPTRSCHK" },
                  { "gptrs-checkpoint", "v1_gpt_small.bin", "gptrs-archive", "GPTRSCHK" },
                  { "gptrs-archive", "ten_v2_mixed.gten", "gptrs-checkpoint", "GPTRSTEN" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes b = load_fixture(cases[i].format, "valid", cases[i].file);
        tnf_error e;
        assert_non_null(b.p);
        assert_int_equal(open_as(cases[i].format, &b, false, &e), TNF_OK);
        for (int lenient = 0; lenient < 2; lenient++) {
            assert_int_equal(open_as(cases[i].other, &b, lenient, &e), TNF_EFORMAT);
            for (size_t k = 0; k < 8; k++) {
                b.p[k] ^= 0x20;
                assert_int_equal(open_as(cases[i].format, &b, lenient, &e), TNF_EFORMAT);
                assert_int_equal(e.offset, 0);
                assert_non_null(strstr(e.message, cases[i].magic));
                b.p[k] ^= 0x20;
            }
        }
        for (b.n = 0; b.n < 16; b.n++)
            assert_int_equal(open_as(cases[i].format, &b, false, &e), TNF_ETRUNCATED);
        free(b.p);
    }
}

struct said {
    int notes, items;
    char reason[200], name[20];
    tnf_fate fate;
};

static void hear_item(void *ctx, const tnf_plan_item *item)
{
    struct said *s = ctx;
    s->items++;
    if (!item->note && item->fate != TNF_DROPPED)
        return;
    s->notes += item->note;
    s->fate = item->fate;
    snprintf(s->reason, sizeof s->reason, "%s", item->reason);
    snprintf(s->name, sizeof s->name, "%.*s", (int)item->name.n, item->name.p);
}

/* Plans tensors of these types, named by their positions. */
static struct said plan_types(const char *format, const char *const *types, const char *dtype)
{
    static const uint64_t shape[] = { 2 }, zeros[2];
    static const char *const names[] = { "n0", "n1", "n2", "n3" };
    struct said said = { 0 };
    tnf_builder *b;
    tnf_sink *sink;
    tnf_error e = { 0 };
    tnf_save_options o = { .size = sizeof o,
                           .format = format,
                           .allow_loss = true,
                           .plan = hear_item,
                           .ctx = &said,
                           .dtype = dtype };
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    for (size_t i = 0; types[i]; i++)
        assert_int_equal(
            tnf_builder_add(b, names[i], tnf_type_named(types[i]), 1, shape, zeros, &e), TNF_OK);
    assert_int_equal(tnf_sink_memory(&sink, &e), TNF_OK);
    assert_int_equal(tnf_save_sink(b, sink, &o, &e), TNF_OK);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return said;
}

/* One note for all tensors that gpt.rs refuses to load ("f16 / bf16 are rejected today"). */
static void test_notes(void **state)
{
    (void)state;
    static const char *const formats[] = { "gptrs-checkpoint", "gptrs-archive" };
    for (size_t i = 0; i < 2; i++) {
        struct said s = plan_types(formats[i], (const char *[]) { "f32", "i32", NULL }, NULL);
        assert_true(s.items == 2 && s.notes == 0);
        s = plan_types(formats[i], (const char *[]) { "f32", "bf16", NULL }, NULL);
        assert_true(s.items == 3 && s.notes == 1 && s.fate == TNF_NATIVE);
        assert_string_equal(s.name, "n1");
        assert_string_equal(s.reason, "gpt.rs itself loads only f32 and i32, but this is bf16: "
                                      "--dtype f32 casts it");
        s = plan_types(formats[i], (const char *[]) { "f16", "bf16", "i32", "f16", NULL }, NULL);
        assert_int_equal(s.notes, 1);
        assert_string_equal(s.name, "n0");
        assert_non_null(strstr(s.reason, "this is f16, and 2 other tensors are f16 or bf16"));
        s = plan_types(formats[i], (const char *[]) { "f16", "bf16", NULL }, "f32");
        assert_int_equal(s.notes, 0);
        s = plan_types(formats[i], (const char *[]) { "f32", "i32", NULL }, "f16");
        assert_true(s.notes == 1 && s.items == 3);
    }
}

/* The refusal of a type says how to write it, if casting helps. */
static void test_advice(void **state)
{
    (void)state;
    struct said s = plan_types("gptrs-checkpoint", (const char *[]) { "f64", NULL }, NULL);
    assert_int_equal(s.fate, TNF_DROPPED);
    assert_non_null(strstr(s.reason, "--dtype f32 casts it"));
    s = plan_types("gptrs-archive", (const char *[]) { "f8_e4m3fn", NULL }, NULL);
    assert_non_null(strstr(s.reason, "--dtype f32 casts it"));
    s = plan_types("gptrs-archive", (const char *[]) { "f64", NULL }, "f32");
    assert_int_equal(s.fate, TNF_NATIVE);
    s = plan_types("gptrs-archive", (const char *[]) { "i64", NULL }, NULL);
    assert_string_equal(s.reason, "the format has no type i64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_magic_of_named_format),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
