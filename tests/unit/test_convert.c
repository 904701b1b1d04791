/* SPDX-License-Identifier: MIT */
/* tnf_convert(): selecting, renaming, refusing and reporting, in every mode. one_way.c checks that
 * all ways give the same file. */
#include "../support/files.h"
#include "diff_files.h"
#include <tenfold/convert.h>

static const float ones[] = { 1, 1, 1, 1 }, twos[] = { 2, 2, 2, 2 }, threes[] = { 3, 3, 3, 3 };

/* a.bias, a.weight, b.weight, with an attribute. */
static struct made make_model(void)
{
    struct made m = begin_file();
    add_tensor(&m, "a.bias", "f32", 2, ones);
    add_tensor(&m, "a.weight", "f32", 4, ones);
    add_tensor(&m, "b.weight", "f32", 4, twos);
    set_attribute(&m, NULL, "x.note", "\"kept\"");
    finish_file(&m, "ztensor2");
    return m;
}

static char *written; /* by the last conversion; the open file uses this memory */

/* Converts to memory, and opens what was written. */
static tnf_status convert_model(tnf_file **out, tnf_report **report, const struct made *m,
                                tnf_convert_options how, const char *format, tnf_error *e)
{
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_sink *sink;
    const tnf_file *file = m->file;
    assert_int_equal(tnf_sink_memory(&sink, e), TNF_OK);
    save.format = format;
    how.size = sizeof how;
    how.save = &save;
    how.sink = sink;
    *out = NULL;
    tnf_status status = tnf_convert(report, &file, 1, NULL, &how, e);
    if (status == TNF_OK) {
        tnf_source *source;
        tnf_str bytes = tnf_sink_bytes(sink);
        free(written);
        written = malloc(bytes.n + 1);
        memcpy(written, bytes.p, bytes.n);
        assert_int_equal(tnf_source_memory(&source, written, bytes.n, e), TNF_OK);
        assert_int_equal(tnf_open_source(out, source, NULL, e), TNF_OK);
    }
    tnf_sink_close(sink);
    return status;
}

static void selects_and_excludes(void **state)
{
    static const char *const weights[] = { "*.weight" }, *const b[] = { "b.*" };
    static const char *const nothing[] = { "nothing" };
    struct made m = make_model();
    tnf_error e;
    tnf_file *out;
    tnf_report *r;
    (void)state;
    tnf_convert_options how = { .select = weights, .nselect = 1, .exclude = b, .nexclude = 1 };
    assert_ok(convert_model(&out, &r, &m, how, "safetensors", &e));
    assert_int_equal(tnf_file_info(out)->objects, 1);
    assert_non_null(tnf_find(out, "a.weight"));
    assert_non_null(tnf_value_get(tnf_file_info(out)->attrs, "x.note"));
    assert_int_equal(r->tensors, 1);
    assert_int_equal(r->renamed, 0);
    assert_string_equal(r->format, "safetensors");
    assert_int_equal(r->step, TNF_STEP_SAVE);
    tnf_report_free(r);
    tnf_close(out);
    how.select = nothing;
    assert_fails(convert_model(&out, &r, &m, how, "safetensors", &e), TNF_ENOTFOUND);
    assert_int_equal(r->tensors, 0);
    assert_int_equal(r->step, TNF_STEP_SELECT);
    tnf_report_free(r);
    discard_file(&m);
}

/* A model in fp8: weights are multiplied with the scales of their blocks. */
static void multiplies_by_scales(void **state)
{
    static const uint8_t codes[] = { 0x38, 0x40, 0xb8, 0x30 }; /* 1, 2, -1, 0.5 */
    static const float scales[] = { 10, 100 }, products[] = { 10, 20, -100, 50 };
    struct made m = begin_file();
    tnf_error e;
    tnf_file *out;
    tnf_report *r;
    float found[4];
    (void)state;
    add_tensor(&m, "w", "f8_e4m3fn", 4, codes);
    add_tensor(&m, "w_scale_inv", "f32", 2, scales);
    add_tensor(&m, "alone_scale_inv", "f32", 2, scales); /* it belongs to no tensor */
    add_tensor(&m, "norm", "f32", 4, ones);
    set_attribute(&m, NULL, "x.note", "\"kept\"");
    finish_file(&m, "ztensor2");
    tnf_convert_options how = { .scales = "_scale_inv" };
    assert_ok(convert_model(&out, &r, &m, how, "safetensors", &e));
    assert_int_equal(tnf_file_info(out)->objects, 3);
    assert_null(tnf_find(out, "w_scale_inv"));
    assert_non_null(tnf_find(out, "alone_scale_inv"));
    assert_non_null(tnf_value_get(tnf_file_info(out)->attrs, "x.note"));
    assert_ok(tnf_read(found, sizeof found, tnf_find(out, "w"), &e));
    assert_memory_equal(found, little_bytes(tnf_type_named("f32"), products, sizeof products),
                        sizeof found);
    assert_int_equal(r->counts[TNF_TRANSFORMED], 2);
    size_t told = 0;
    for (size_t i = 0; i < r->nitems; i++)
        told += strcmp(tnf_report_item(r, i)->reason, tnf_report_item(r, i)->name.n == 1
                                                          ? "multiplied by its scales, as requested"
                                                          : "multiplied into 'w', as requested") ==
                0;
    assert_int_equal(told, 2);
    tnf_report_free(r);
    tnf_close(out);
    how.scales = "_scale";
    assert_fails(convert_model(&out, &r, &m, how, "safetensors", &e), TNF_ENOTFOUND);
    tnf_report_free(r);
    how.scales = "";
    assert_fails(convert_model(&out, &r, &m, how, "safetensors", &e), TNF_EINVAL);
    tnf_report_free(r);
    discard_file(&m);
}

/* If scales do not divide the tensor, the error names the tensor. */
static void scales_that_do_not_fit(void **state)
{
    static const float scales[] = { 1, 2, 3 };
    struct made m = begin_file();
    tnf_error e;
    tnf_file *out;
    tnf_report *r;
    (void)state;
    add_tensor(&m, "w", "f32", 4, ones);
    add_tensor(&m, "w_scale", "f32", 3, scales);
    finish_file(&m, "ztensor2");
    tnf_convert_options how = { .scales = "_scale" };
    assert_fails(convert_model(&out, &r, &m, how, "safetensors", &e), TNF_EINVAL);
    assert_non_null(strstr(e.message, "'w'"));
    tnf_report_free(r);
    discard_file(&m);
}

static tnf_status rename_bias(void *ctx, tnf_str *out, tnf_str name, tnf_error *e)
{
    const char *to = ctx;
    (void)e;
    if (to && strncmp(name.p, "a.bias", name.n) == 0)
        *out = (tnf_str) { to, strlen(to) };
    return to ? TNF_OK : TNF_EIO; /* and there is no message */
}

static tnf_status rename_to_null(void *ctx, tnf_str *out, tnf_str name, tnf_error *e)
{
    (void)ctx, (void)e;
    *out = (tnf_str) { NULL, name.n };
    return TNF_OK;
}

static void renames_tensors(void **state)
{
    struct made m = make_model();
    tnf_error e;
    tnf_file *out;
    tnf_report *r;
    (void)state;
    char c[] = "c", taken[] = "a.weight";
    tnf_convert_options how = { .rename = rename_bias, .rename_ctx = c };
    assert_ok(convert_model(&out, &r, &m, how, "safetensors", &e));
    assert_non_null(tnf_find(out, "c"));
    assert_null(tnf_find(out, "a.bias"));
    assert_int_equal(r->renamed, 1);
    tnf_report_free(r);
    tnf_close(out);
    how.rename_ctx = taken;
    assert_fails(convert_model(&out, &r, &m, how, "safetensors", &e), TNF_EEXISTS);
    assert_says("'a.weight'");
    tnf_report_free(r);
    how.rename_ctx = NULL;
    assert_fails(convert_model(&out, &r, &m, how, "safetensors", &e), TNF_EIO);
    tnf_report_free(r);
    how.rename = rename_to_null;
    assert_fails(convert_model(&out, &r, &m, how, "safetensors", &e), TNF_EINVAL);
    assert_says("'rename' is NULL");
    tnf_report_free(r);
    discard_file(&m);
}

static void count_late(void *ctx, const tnf_plan_item *item)
{
    *(int *)ctx += item->late;
}

/* Only the values show that a block type cannot hold them: this is reported once, at the end, in
 * every way. */
static void tells_what_the_values_told(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2, 32 };
    float x[64] = { 0 };
    tnf_error e;
    tnf_report *r;
    tnf_sink *sink;
    int late = 0;
    char dir[] = "/tmp/tenfold-late-XXXXXX", path[64];
    tnf_save_options save = { .size = sizeof save, .format = "gguf", .dtype = "q8_0" };
    struct made m = begin_file();
    x[40] = 1e7F;
    add_matrix(&m, "w", "f32", TNF_ORDER_C, shape, sizeof x, x);
    finish_file(&m, "safetensors");
    const tnf_file *file = m.file;
    tnf_convert_options how = TNF_CONVERT_INIT;
    how.save = &save;
    save.plan = count_late;
    save.ctx = &late;
    assert_ok(tnf_sink_memory(&sink, &e));
    how.sink = sink;
    assert_ok(tnf_convert(&r, &file, 1, NULL, &how, &e));
    assert_int_equal(late, 1);
    assert_int_equal(r->counts[TNF_TRANSFORMED], 1);
    assert_int_equal(r->nitems, 2);
    assert_true(tnf_report_item(r, 1)->late);
    assert_non_null(strstr(tnf_report_item(r, 1)->reason, "element 32"));
    tnf_report_free(r);
    tnf_sink_close(sink);
    assert_non_null(mkdtemp(dir));
    how.sink = NULL;
    how.mode = TNF_CONVERT_SPLIT;
    assert_ok(tnf_convert(&r, &file, 1, dir, &how, &e));
    assert_int_equal(late, 2);
    tnf_report_free(r);
    snprintf(path, sizeof path, "%s/model.gguf", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    discard_file(&m);
}

/* A value that a newer header may have must not be taken for another one. */
static void refuses_unknown_rules(void **state)
{
    struct made m = make_model();
    const tnf_file *file = m.file;
    tnf_error e;
    tnf_report *r;
    tnf_sink *sink;
    tnf_save_options save = TNF_SAVE_INIT;
    (void)state;
    assert_ok(tnf_sink_memory(&sink, &e));
    save.format = "safetensors";
    for (int i = 0; i < 4; i++) {
        tnf_convert_options how = TNF_CONVERT_INIT;
        how.save = &save;
        how.sink = sink;
        save.dry_run = true; /* so that no other rule refuses it */
        if (i == 0)
            how.mode = (tnf_convert_mode)(TNF_CONVERT_SPLIT + 1);
        else if (i == 1)
            how.tensors = (tnf_clash)(TNF_CLASH_RENAME + 1);
        else if (i == 2)
            how.attrs = (tnf_clash)-1;
        else
            how.step = (tnf_emb_step)(TNF_EMB_QUANTIZE + 1);
        assert_fails(tnf_convert(&r, &file, 1, NULL, &how, &e), TNF_EINVAL);
        assert_non_null(strstr(e.message, "does not know"));
        tnf_report_free(r);
    }
    tnf_sink_close(sink);
    discard_file(&m);
}

/* A gpt.rs archive can hold the f32 tensor only, and no attribute. */
static void refuses_and_reports(void **state)
{
    struct made m = make_model();
    tnf_error e;
    tnf_file *out;
    tnf_report *r;
    (void)state;
    tnf_convert_options how = TNF_CONVERT_INIT;
    assert_fails(convert_model(&out, &r, &m, how, "gptrs-archive", &e), TNF_ELOSSY);
    assert_int_equal(r->counts[TNF_NATIVE], 3);
    assert_int_equal(r->counts[TNF_DROPPED], 1);
    assert_int_equal(r->nitems, 1);
    assert_string_equal(tnf_report_item(r, 0)->kind, "attribute");
    assert_string_equal(tnf_report_item(r, 0)->name.p, "x.note");
    assert_int_equal(tnf_report_item(r, 0)->fate, TNF_DROPPED);
    assert_true(*tnf_report_item(r, 0)->reason != 0);
    tnf_report_free(r);
    how.all_items = true;
    assert_fails(convert_model(&out, &r, &m, how, "gptrs-archive", &e), TNF_ELOSSY);
    assert_int_equal(r->nitems, 4);
    tnf_report_free(r);
    how.tensors_only = true; /* requested, so nothing is lost */
    assert_ok(convert_model(&out, &r, &m, how, "gptrs-archive", &e));
    tnf_report_free(r);
    tnf_close(out);
    assert_fails(convert_model(&out, &r, &m, how, "no-such", &e), TNF_ENOTFOUND);
    assert_int_equal(r->step, TNF_STEP_TARGET);
    assert_null(r->format);
    tnf_report_free(r);
    discard_file(&m);
}

static void sets_attributes(void **state)
{
    struct made m = make_model();
    tnf_error e;
    tnf_file *out;
    tnf_report *r;
    tnf_member set = { { "x.note and what follows it", 6 }, { 0 } }; /* the key is only six bytes */
    (void)state;
    set.value.kind = TNF_STRING;
    set.value.as.s = "other";
    set.value.n = 5;
    tnf_convert_options how = { .set = &set, .nset = 1 };
    assert_ok(convert_model(&out, &r, &m, how, "ztensor2", &e));
    const tnf_value *v = tnf_value_get(tnf_file_info(out)->attrs, "x.note");
    assert_non_null(v);
    assert_string_equal(v->as.s, "other");
    assert_null(tnf_value_get(tnf_file_info(out)->attrs, set.key.p));
    tnf_report_free(r);
    tnf_close(out);
    discard_file(&m);
}

static void wrong_calls(void **state)
{
    struct made m = make_model();
    const tnf_file *file = m.file;
    tnf_error e;
    tnf_report *r;
    (void)state;
    tnf_convert_options how = TNF_CONVERT_INIT;
    assert_fails(tnf_convert(&r, &file, 1, NULL, &how, &e), TNF_EINVAL); /* no target */
    assert_null(r);
    how.size = 0;
    assert_fails(tnf_convert(&r, &file, 1, "x.zt", &how, &e), TNF_EINVAL);
    how.size = sizeof how;
    how.fold = "sideways";
    assert_fails(tnf_convert(&r, &file, 1, "x.zt", &how, &e), TNF_EINVAL);
    assert_says("sideways");
    tnf_report_free(r);
    how.fold = NULL;
    how.normalize = how.unnormalize = true;
    assert_fails(tnf_convert(&r, &file, 1, "x.zt", &how, &e), TNF_EINVAL);
    tnf_report_free(r);
    how.unnormalize = false;
    how.step = TNF_EMB_EXPLICIT;
    assert_fails(tnf_convert(&r, &file, 1, "x.zt", &how, &e), TNF_EINVAL);
    tnf_report_free(r);
    how.normalize = false; /* it has no embeddings */
    assert_fails(tnf_convert(&r, &file, 1, "x.zt", &how, &e), TNF_ENOTFOUND);
    assert_int_equal(r->step, TNF_STEP_EMBEDDINGS);
    tnf_report_free(r);
    discard_file(&m);
}

/* ------------------------------------------------------------------- paths */

static void note_file(void *ctx, const tnf_split_file *f)
{
    *(size_t *)ctx += !f->index;
}

static void writes_in_every_mode(void **state)
{
    struct made m = make_model(), more = begin_file();
    const tnf_file *file = m.file;
    char path[600], folder[600];
    tnf_error e;
    tnf_report *r;
    tnf_file *out;
    size_t told = 0;
    (void)state;
    add_tensor(&more, "c", "f32", 4, threes);
    finish_file(&more, "safetensors");
    snprintf(path, sizeof path, "%s/new.zt", files_temp());
    snprintf(folder, sizeof folder, "%s/shards", files_temp());
    assert_ok(tnf_convert(&r, &file, 1, path, NULL, &e));
    assert_string_equal(r->format, "ztensor2");
    tnf_report_free(r);
    assert_fails(tnf_convert(&r, &file, 1, path, NULL, &e), TNF_EEXISTS);
    tnf_report_free(r);

    tnf_convert_options how = TNF_CONVERT_INIT;
    const tnf_file *another = more.file;
    how.mode = TNF_CONVERT_APPEND;
    assert_ok(tnf_convert(&r, &another, 1, path, &how, &e));
    assert_string_equal(r->format, "ztensor2");
    tnf_report_free(r);
    assert_fails(tnf_convert(&r, &another, 1, path, &how, &e), TNF_EEXISTS);
    assert_int_equal(r->step, TNF_STEP_SAVE);
    tnf_report_free(r);
    assert_ok(tnf_open(&out, path, NULL, &e));
    assert_int_equal(tnf_file_info(out)->objects, 4);

    tnf_split_options split = TNF_SPLIT_INIT;
    tnf_save_options save = TNF_SAVE_INIT;
    const tnf_file *whole = out;
    split.max_bytes = 20;
    split.file = note_file;
    split.ctx = &told;
    how.mode = TNF_CONVERT_SPLIT;
    how.split = &split;
    how.save = &save;
    save.dry_run = true;
    assert_ok(tnf_convert(&r, &whole, 1, folder, &how, &e));
    assert_int_equal(told, 4);
    assert_int_equal(access(folder, F_OK), -1);
    tnf_report_free(r);
    save.dry_run = false;
    told = 0;
    assert_ok(tnf_convert(&r, &whole, 1, folder, &how, &e));
    assert_int_equal(told, 4);
    assert_int_equal(files_count(folder, "model"), 5); /* and the index, too */
    tnf_report_free(r);
    tnf_close(out);
    discard_file(&m);
    discard_file(&more);
}

static void keeps_what_it_reads(void **state)
{
    struct made m = make_model();
    const tnf_file *file = m.file;
    char path[600];
    tnf_error e;
    tnf_report *r;
    tnf_file *out;
    (void)state;
    snprintf(path, sizeof path, "%s/own.zt", files_temp());
    assert_ok(tnf_convert(&r, &file, 1, path, NULL, &e));
    tnf_report_free(r);
    assert_ok(tnf_open(&out, path, NULL, &e));
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_convert_options how = TNF_CONVERT_INIT;
    const tnf_file *both[] = { out, file };
    save.replace = true;
    how.save = &save;
    how.tensors = TNF_CLASH_FIRST;
    assert_fails(tnf_convert(&r, both, 2, path, &how, &e), TNF_EINVAL);
    assert_says("would be lost");
    tnf_report_free(r);
    how.keep_files = true;
    assert_fails(tnf_convert(&r, both, 1, path, &how, &e), TNF_EINVAL);
    tnf_report_free(r);
    how.keep_files = false; /* a single file may be overwritten by itself */
    assert_ok(tnf_convert(&r, both, 1, path, &how, &e));
    tnf_report_free(r);
    tnf_close(out);
    discard_file(&m);
}

/* A file is opened by its path, converted and closed. */
static void from_path_to_path(void **state)
{
    struct made m = begin_file();
    tnf_convert_options how = TNF_CONVERT_INIT;
    tnf_open_options open = TNF_OPEN_INIT;
    const char *wanted[] = { "v" };
    char from[600], to[600];
    tnf_error e;
    tnf_report *r;
    tnf_file *made;
    (void)state;
    add_tensor(&m, "w", "f32", 4, ones);
    add_tensor(&m, "v", "f32", 4, ones);
    finish_file(&m, "safetensors");
    snprintf(from, sizeof from, "%s/from.safetensors", files_temp());
    snprintf(to, sizeof to, "%s/to.zt", files_temp());
    assert_ok(tnf_convert(&r, (const tnf_file *const[]) { m.file }, 1, from, NULL, &e));
    tnf_report_free(r);
    how.select = wanted;
    how.nselect = 1;
    assert_ok(tnf_convert_path(&r, from, NULL, to, &how, &e));
    assert_int_equal(r->tensors, 1);
    tnf_report_free(r);
    assert_ok(tnf_open(&made, to, NULL, &e));
    assert_non_null(tnf_find(made, "v"));
    assert_null(tnf_find(made, "w"));
    tnf_close(made);
    assert_fails(tnf_convert_path(&r, from, NULL, to, &how, &e), TNF_EEXISTS);
    assert_non_null(r);
    tnf_report_free(r);
    open.format = "npy";
    assert_int_not_equal(tnf_convert_path(&r, from, &open, to, &how, &e), TNF_OK);
    assert_null(r);
    assert_fails(tnf_convert_path(&r, "/nowhere", NULL, to, &how, &e), TNF_ENOTFOUND);
    assert_null(r);
    discard_file(&m);
}

/* PyTorch, word2vec, fastText and gpt.rs use '.bin': a format is chosen only if no other one can
 * hold everything. */
static void extensions_that_are_shared(void **state)
{
    struct made m = begin_file(), odd = begin_file();
    const tnf_file *file;
    char path[600];
    tnf_error e;
    tnf_report *r;
    (void)state;
    add_tensor(&m, "w", "f32", 4, ones);
    finish_file(&m, "safetensors");
    add_tensor(&odd, "w", "u8", 4, ones);
    finish_file(&odd, "safetensors");
    snprintf(path, sizeof path, "%s/shared.bin", files_temp());
    file = m.file;
    assert_fails(tnf_convert(&r, &file, 1, path, NULL, &e), TNF_EINVAL);
    assert_says("gptrs-checkpoint, fasttext, word2vec or pytorch");
    tnf_report_free(r);
    file = odd.file;
    assert_ok(tnf_convert(&r, &file, 1, path, NULL, &e));
    assert_string_equal(r->format, "pytorch");
    tnf_report_free(r);
    discard_file(&m);
    discard_file(&odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selects_and_excludes),
        cmocka_unit_test(multiplies_by_scales),
        cmocka_unit_test(scales_that_do_not_fit),
        cmocka_unit_test(renames_tensors),
        cmocka_unit_test(tells_what_the_values_told),
        cmocka_unit_test(refuses_unknown_rules),
        cmocka_unit_test(refuses_and_reports),
        cmocka_unit_test(sets_attributes),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(writes_in_every_mode),
        cmocka_unit_test(keeps_what_it_reads),
        cmocka_unit_test(extensions_that_are_shared),
        cmocka_unit_test(from_path_to_path),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(written);
    files_dir_remove();
    return failed;
}
