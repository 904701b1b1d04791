/* SPDX-License-Identifier: MIT */
/* fastText models: words that are not UTF-8, norms in pieces, and the parts of a quantized model
 * that cannot be written if one is missing. */
#include "../support/little.h"
#include "../support/unit.h"
#include <tenfold/build.h>
#include <tenfold/emb.h>
#include <tenfold/shards.h>
#include <tenfold/tenfold.h>

#define VALID TNF_TESTS_DIR "/formats/fasttext/valid/"

static tnf_error e;

static tnf_file *open_with(const char *path, const char *key, const char *value)
{
    tnf_file *file;
    tnf_option option = { key, value };
    tnf_open_options o = { .size = sizeof o, .options = &option, .noptions = key ? 1 : 0 };
    assert_ok(tnf_open(&file, path, &o, &e));
    return file;
}

static void assert_words(const tnf_file *file, const char *bytes, const uint64_t *ends, size_t n)
{
    uint64_t offsets[8] = { 0 };
    char text[64];
    const tnf_object *o = tnf_find(file, "vocab");
    assert_non_null(o);
    assert_int_equal(o->shape[0], n);
    assert_ok(tnf_read_part(offsets, 8 * (n + 1), tnf_object_part(o, "offsets"), 0, &e));
    from_little(offsets, 8, n + 1);
    assert_memory_equal(offsets + 1, ends, 8 * n);
    assert_ok(tnf_read_part(text, (size_t)ends[n - 1], tnf_object_part(o, "bytes"), 0, &e));
    assert_memory_equal(text, bytes, (size_t)ends[n - 1]);
}

/* b"zee\xc3n" and b"\xff\xfe"; on request as Python's decode(errors="replace") gives them. */
static void words_that_are_no_text(void **state)
{
    (void)state;
    static const uint64_t plain[] = { 5, 7 }, mended[] = { 7, 13 };
    tnf_file *file = open_with(VALID "not_utf8.bin", NULL, NULL);
    assert_words(file, "zee\xc3n\xff\xfe", plain, 2);
    assert_non_null(strstr(tnf_file_info(file)->warnings[0].message, "lossy=yes"));
    tnf_close(file);
    file = open_with(VALID "not_utf8.bin", "lossy", "yes");
    assert_words(file, "zee\xef\xbf\xbdn\xef\xbf\xbd\xef\xbf\xbd", mended, 2);
    assert_int_equal(tnf_file_info(file)->nwarnings, 1); /* one warning */
    assert_non_null(strstr(tnf_file_info(file)->warnings[0].message, "U+FFFD"));
    tnf_close(file);
}

/* make.py: row i has code 11 i and the codebook's value i is 1 + i / 4. */
static void norms_in_pieces(void **state)
{
    (void)state;
    tnf_file *file = open_with(VALID "quantized_norms.ftz", NULL, NULL);
    const tnf_part *norms = tnf_object_part(tnf_find(file, "embeddings"), "norms");
    assert_non_null(norms);
    float expected[9];
    assert_int_equal(norms->nbytes, sizeof expected);
    for (size_t i = 0; i < 9; i++)
        expected[i] = 1 + (float)(i * 11 % 256) * 0.25f;
    from_little(expected, 4, 9);
    for (size_t from = 0; from < sizeof expected; from++)
        for (size_t n = 0; n <= sizeof expected - from; n++) {
            uint8_t some[sizeof expected] = { 0 };
            assert_ok(tnf_read_part(some, n, norms, from, &e));
            assert_memory_equal(some, (const uint8_t *)expected + from, n);
        }
    tnf_close(file);
}

/* ----------------------------------------------------------------- fitting */

struct plan {
    char text[4096];
};

static void note_dropped(void *ctx, const tnf_plan_item *item)
{
    struct plan *p = ctx;
    size_t n = strlen(p->text);
    if (item->fate == TNF_DROPPED)
        snprintf(p->text + n, sizeof p->text - n, "%s: %s\n", item->name.p, item->reason);
}

static bool not_it(void *ctx, tnf_str name)
{
    return strcmp(name.p, ctx) != 0;
}

static tnf_builder *build_without(const tnf_file *file, const char *name)
{
    tnf_builder *b;
    tnf_merge_options how = { .size = sizeof how,
                              .select = not_it,
                              .ctx = (void *)(uintptr_t)name };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_merge(b, &file, NULL, 1, &how, &e));
    return b;
}

/* The reasons for dropped items, one line for each. */
static struct plan plan_dropped(tnf_builder *b)
{
    static struct plan plan;
    tnf_save_options o = { .size = sizeof o,
                           .format = "fasttext",
                           .dry_run = true,
                           .allow_loss = true,
                           .plan = note_dropped,
                           .ctx = &plan };
    tnf_sink *sink;
    plan.text[0] = 0;
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &o, &e));
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return plan;
}

static void assert_lost(const struct plan *p, const char *name, const char *why)
{
    char line[300];
    snprintf(line, sizeof line, "%s: %s", name, why);
    if (!strstr(p->text, line))
        fail_msg("'%s' is not in: %s", line, p->text);
}

static void norms_without_codes(void **state)
{
    (void)state;
    static const char *const missing[] = { "embeddings.norm_codes", "embeddings.norm_codebook" };
    tnf_file *file = open_with(VALID "quantized_norms.ftz", NULL, NULL);
    struct plan p = plan_dropped(build_without(file, ""));
    assert_string_equal(p.text, "");
    for (size_t i = 0; i < 2; i++) {
        p = plan_dropped(build_without(file, missing[i]));
        assert_lost(&p, "embeddings", "fastText quantizes norms, too");
        assert_lost(&p, missing[!i], "fastText quantizes norms, too");
    }
    p = plan_dropped(build_without(file, "embeddings"));
    assert_lost(&p, "embeddings.norm_codes", "they belong to a quantized matrix with norms");
    assert_lost(&p, "embeddings.norm_codebook", "it belongs to a quantized matrix with norms");
    tnf_close(file);
}

/* The norms do not belong to the codes of this matrix. */
static void norms_of_another(void **state)
{
    (void)state;
    static const uint8_t zeros[9];
    uint64_t nine = 9;
    tnf_file *file = open_with(VALID "quantized_norms.ftz", NULL, NULL);
    tnf_builder *b = build_without(file, "embeddings.norm_codes");
    assert_ok(
        tnf_builder_add(b, "embeddings.norm_codes", tnf_type_of(TNF_U8), 1, &nine, zeros, &e));
    struct plan p = plan_dropped(b);
    assert_lost(&p, "embeddings", "fastText quantizes norms, too");
    tnf_close(file);
}

/* The bytes of a matrix that cannot be a tensor, next to a tensor; and bytes that are not a
 * matrix. */
static void matrix_twice(void **state)
{
    (void)state;
    static const float numbers[9 * 5];
    static const uint64_t shape[] = { 9, 5 };
    tnf_file *file = open_with(VALID "quantized_uneven.ftz", NULL, NULL);
    struct plan p = plan_dropped(build_without(file, ""));
    assert_string_equal(p.text, "");
    tnf_builder *b = build_without(file, "");
    assert_ok(tnf_builder_add(b, "embeddings", tnf_type_of(TNF_F32), 2, shape, numbers, &e));
    p = plan_dropped(b);
    assert_lost(&p, "embeddings.quantized", "the same matrix also exists as a tensor");
    b = build_without(file, "embeddings.quantized");
    assert_ok(
        tnf_builder_add(b, "embeddings.quantized", tnf_type_of(TNF_U8), 1, shape, numbers, &e));
    p = plan_dropped(b);
    assert_lost(&p, "embeddings.quantized", "its bytes are not a quantized matrix");
    tnf_close(file);
}

/* fastText only quantizes the output if the input is quantized. */
static void output_alone(void **state)
{
    (void)state;
    static const float numbers[9 * 4];
    static const uint64_t shape[] = { 9, 4 };
    tnf_file *file = open_with(VALID "quantized_output.ftz", NULL, NULL);
    tnf_builder *b = build_without(file, "embeddings");
    assert_ok(tnf_builder_add(b, "embeddings", tnf_type_of(TNF_F32), 2, shape, numbers, &e));
    struct plan p = plan_dropped(b);
    static const char *const lost[] = { "output", "output.norm_codes", "output.norm_codebook" };
    for (size_t i = 0; i < 3; i++)
        assert_lost(&p, lost[i], "the output can be quantized only if the input is");
    tnf_close(file);
}

/* ----------------------------------------------------------------- lookup */

/* The model as zTensor 2, with another list of buckets. */
static tnf_status look_up(const tnf_file *file, const tnf_type *type, uint64_t columns,
                          const int32_t *pairs, uint64_t n)
{
    tnf_builder *b = build_without(file, "pruneidx");
    tnf_save_options o = { .size = sizeof o, .format = "ztensor2" };
    tnf_sink *sink;
    tnf_source *source;
    tnf_file *other;
    tnf_emb *emb;
    uint64_t shape[] = { n, columns };
    assert_ok(tnf_builder_add(b, "pruneidx", type, 2, shape, to_little(pairs, 4, n * columns), &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &o, &e));
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&other, source, NULL, &e));
    tnf_status status = tnf_emb_open(&emb, other, NULL, &e);
    if (status == TNF_OK)
        tnf_emb_close(emb);
    tnf_close(other);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return status;
}

/* A fastText file is checked on opening; data from other formats are checked on use. */
static void pruned_wrongly(void **state)
{
    (void)state;
    static const int32_t pairs[] = { 4, 1, 0, 0, 1, 2, 2, 3, 3, 4, 4, 5 };
    static const int32_t beyond[] = { 4, 2, 0, 0 };
    const tnf_type *i32 = tnf_type_of(TNF_I32);
    tnf_file *file = open_with(VALID "pruned.ftz", NULL, NULL);
    assert_ok(look_up(file, i32, 2, pairs, 2));
    assert_fails(look_up(file, i32, 2, beyond, 2), TNF_EFORMAT);
    assert_says("row 2 of 2");
    assert_fails(look_up(file, i32, 1, pairs, 4), TNF_EFORMAT);
    assert_says("not a list of pairs");
    assert_fails(look_up(file, tnf_type_of(TNF_U32), 2, pairs, 2), TNF_EFORMAT);
    assert_fails(look_up(file, i32, 2, pairs, 6), TNF_ELIMIT); /* there are five */
    tnf_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_that_are_no_text), cmocka_unit_test(norms_in_pieces),
        cmocka_unit_test(norms_without_codes),    cmocka_unit_test(norms_of_another),
        cmocka_unit_test(matrix_twice),           cmocka_unit_test(output_alone),
        cmocka_unit_test(pruned_wrongly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
