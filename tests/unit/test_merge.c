/* SPDX-License-Identifier: MIT */
/* Many files in one builder: equal attributes once, different ones by each rule, names, memory that
 * runs out, and which files a handle reads. */
#include "../support/files.h"
#include "../support/little.h"
#include "../support/memory.h"
#include "core/core.h"
#include "core/save/save.h"
#include "diff_files.h"
#include <tenfold/shards.h>

static const float ones[] = { 1, 1, 1, 1 }, twos[] = { 2, 2, 2, 2 };

static char *to_free[4];
static size_t nto_free;

struct pairs {
    struct made a, b;
    const tnf_file *files[2];
};

/* Both have "w", with different values. */
static struct pairs two_files(const char *format)
{
    struct pairs p = { begin_file(), begin_file(), { 0 } };
    add_tensor(&p.a, "w", "f32", 4, ones);
    add_tensor(&p.a, "a", "f32", 2, ones);
    add_tensor(&p.b, "w", "f32", 4, twos);
    add_tensor(&p.b, "b", "f32", 2, ones);
    set_attribute(&p.a, NULL, "x.same", "[1,2]");
    set_attribute(&p.b, NULL, "x.same", "[1,2]");
    set_attribute(&p.a, NULL, "safetensors.metadata", "{\"format\":\"pt\",\"a\":\"1\"}");
    set_attribute(&p.b, NULL, "safetensors.metadata", "{\"b\":\"2\",\"format\":\"pt\"}");
    finish_file(&p.a, format);
    finish_file(&p.b, format);
    p.files[0] = p.a.file;
    p.files[1] = p.b.file;
    return p;
}

static void end_pairs(struct pairs *p)
{
    discard_file(&p->a);
    discard_file(&p->b);
}

static tnf_status merge_pairs(struct made *m, const struct pairs *p, tnf_merge_options how,
                              tnf_error *e)
{
    static const char *const names[] = { "a.st", "b.st" };
    *m = begin_file();
    how.size = sizeof how;
    tnf_status status = tnf_builder_merge(m->b, p->files, names, 2, &how, e);
    if (status == TNF_OK)
        finish_file(m, "ztensor2");
    return status;
}

static float first_of(const struct made *m, const char *name)
{
    tnf_error e;
    float x = 0;
    const tnf_object *o = tnf_find(m->file, name);
    assert_non_null(o);
    assert_ok(tnf_read_part(&x, sizeof x, o->parts, 0, &e));
    from_little(&x, sizeof x, 1);
    return x;
}

static void rules_on_tensors(void **state)
{
    (void)state;
    struct pairs p = two_files("safetensors");
    struct made m;
    tnf_error e;
    assert_fails(merge_pairs(&m, &p, (tnf_merge_options) { 0 }, &e), TNF_EEXISTS);
    assert_says("'w' is in a.st and in b.st");
    discard_file(&m);
    assert_fails(merge_pairs(&m, &p, (tnf_merge_options) { .tensors = TNF_CLASH_SAME }, &e),
                 TNF_EEXISTS);
    assert_says("differ");
    discard_file(&m);

    assert_ok(merge_pairs(&m, &p, (tnf_merge_options) { .tensors = TNF_CLASH_FIRST }, &e));
    assert_int_equal(tnf_file_info(m.file)->objects, 3);
    assert_true(first_of(&m, "w") == 1);
    discard_file(&m);
    assert_ok(merge_pairs(&m, &p, (tnf_merge_options) { .tensors = TNF_CLASH_LAST }, &e));
    assert_int_equal(tnf_file_info(m.file)->objects, 3);
    assert_true(first_of(&m, "w") == 2);
    discard_file(&m);
    assert_ok(merge_pairs(&m, &p, (tnf_merge_options) { .tensors = TNF_CLASH_RENAME }, &e));
    assert_int_equal(tnf_file_info(m.file)->objects, 4);
    assert_true(first_of(&m, "w") == 1 && first_of(&m, "w.2") == 2);
    discard_file(&m);

    p.files[1] = p.a.file;
    assert_ok(merge_pairs(&m, &p, (tnf_merge_options) { .tensors = TNF_CLASH_SAME }, &e));
    assert_int_equal(tnf_file_info(m.file)->objects, 2);
    discard_file(&m);
    end_pairs(&p);
}

static void attributes_that_agree(void **state)
{
    (void)state;
    struct pairs p = two_files("safetensors");
    struct made m;
    tnf_error e;
    assert_ok(merge_pairs(&m, &p, (tnf_merge_options) { .tensors = TNF_CLASH_FIRST }, &e));
    const tnf_value *attrs = tnf_file_info(m.file)->attrs;
    const tnf_value *text = tnf_value_get(attrs, "safetensors.metadata");
    assert_non_null(text);
    assert_int_equal(text->n, 3);
    assert_string_equal(tnf_value_get(text, "a")->as.s, "1");
    assert_string_equal(tnf_value_get(text, "b")->as.s, "2");
    assert_string_equal(tnf_value_get(text, "format")->as.s, "pt");
    assert_int_equal(tnf_value_get(attrs, "x.same")->n, 2);
    discard_file(&m);
    end_pairs(&p);
}

static void attributes_that_clash(void **state)
{
    (void)state;
    tnf_error e;
    for (int text = 0; text < 2; text++) {
        struct pairs p = { begin_file(), begin_file(), { 0 } };
        struct made m;
        const char *key = text ? "safetensors.metadata" : "x.count";
        set_attribute(&p.a, NULL, key, text ? "{\"n\":\"1\"}" : "1");
        set_attribute(&p.b, NULL, key, text ? "{\"n\":\"2\"}" : "2");
        finish_file(&p.a, "ztensor2");
        finish_file(&p.b, "ztensor2");
        p.files[0] = p.a.file;
        p.files[1] = p.b.file;
        assert_fails(merge_pairs(&m, &p, (tnf_merge_options) { 0 }, &e), TNF_EEXISTS);
        assert_says(text ? "'n' is in a.st and in b.st" : "'x.count' is in a.st and in b.st");
        discard_file(&m);
        for (int last = 0; last < 2; last++) {
            tnf_clash rule = last ? TNF_CLASH_LAST : TNF_CLASH_FIRST;
            assert_ok(merge_pairs(&m, &p, (tnf_merge_options) { .attrs = rule }, &e));
            const tnf_value *v = tnf_value_get(tnf_file_info(m.file)->attrs, key);
            if (text)
                assert_string_equal(tnf_value_get(v, "n")->as.s, last ? "2" : "1");
            else
                assert_int_equal(v->as.u, last ? 2 : 1);
            discard_file(&m);
        }
        end_pairs(&p);
    }
    struct made m = begin_file();
    tnf_merge_options wrong = { .size = sizeof wrong, .attrs = TNF_CLASH_RENAME };
    assert_fails(tnf_builder_merge(m.b, NULL, NULL, 0, &wrong, &e), TNF_EINVAL);
    discard_file(&m);
}

/* A file without tensors, and with bytes after its end, which are an extra. */
static tnf_file *open_trailing(const char *bytes)
{
    struct made m = begin_file();
    tnf_error e;
    tnf_source *source;
    tnf_file *file;
    finish_file(&m, "gptrs-archive");
    tnf_str made = tnf_sink_bytes(m.sink);
    char *all = malloc(made.n + strlen(bytes));
    assert_non_null(all);
    memcpy(all, made.p, made.n);
    memcpy(all + made.n, bytes, strlen(bytes));
    assert_ok(tnf_source_memory(&source, all, made.n + strlen(bytes), &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    assert_int_equal(tnf_file_info(file)->nextras, 1);
    discard_file(&m);
    to_free[nto_free++] = all;
    return file;
}

/* Checks the bytes at the end of the merged file. */
static void assert_trailing(const tnf_file *const *files, size_t n, tnf_clash rule,
                            const char *bytes)
{
    struct made m = begin_file();
    tnf_error e;
    char found[16] = "";
    tnf_merge_options how = { .size = sizeof how, .attrs = rule };
    assert_ok(tnf_builder_merge(m.b, files, NULL, n, &how, &e));
    finish_file(&m, "gptrs-archive");
    const tnf_info *info = tnf_file_info(m.file);
    assert_int_equal(info->nextras, 1);
    assert_string_equal(info->extras[0].key.p, "gptrs.trailing");
    assert_int_equal(info->extras[0].bytes.nbytes, strlen(bytes));
    assert_ok(tnf_read_part(found, strlen(bytes), &info->extras[0].bytes, 0, &e));
    assert_string_equal(found, bytes);
    discard_file(&m);
}

static void merges_extras(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *files[] = { open_trailing("one"), open_trailing("one"), open_trailing("three") };
    const tnf_file *const *given = (const tnf_file *const *)files;
    assert_trailing(given, 2, TNF_CLASH_REFUSE, "one"); /* the same in both files: once */
    assert_trailing(given, 3, TNF_CLASH_FIRST, "one");
    assert_trailing(given, 3, TNF_CLASH_LAST, "three");
    struct made m = begin_file();
    assert_fails(tnf_builder_merge(m.b, given, NULL, 3, NULL, &e), TNF_EEXISTS);
    assert_says("the extra 'gptrs.trailing' is in several files");
    discard_file(&m);
    for (size_t i = 0; i < 3; i++)
        tnf_close(files[i]);
    while (nto_free)
        free(to_free[--nto_free]);
}

/* Both tensors stay, and the name finds the same one as before. */
static void merge_doubles(const char *path)
{
    tnf_error e;
    tnf_file *file;
    tnf_open_options lenient = { .size = sizeof lenient, .lenient = true };
    struct made m = begin_file();
    assert_ok(tnf_open(&file, path, &lenient, &e));
    const tnf_file *given[] = { file };
    size_t n = tnf_file_info(file)->objects, hidden = 0;
    assert_ok(tnf_builder_merge(m.b, given, NULL, 1, NULL, &e));
    const tnf_catalog *c = &m.b->catalog;
    assert_int_equal(c->n, n);
    for (size_t i = 0; i < n; i++) {
        const tnf_object *o = tnf_at(file, i);
        bool found = tnf_find_n(file, o->name.p, o->name.n) == o;
        assert_string_equal(c->objects[i].name.p, o->name.p);
        assert_ptr_equal(c->objects[i].parts, o->parts);
        assert_int_equal(tnf_catalog_find(c, o->name.p, o->name.n) == &c->objects[i], found);
        hidden += !found;
    }
    assert_int_equal(hidden, 1);
    discard_file(&m);
    tnf_close(file);
}

/* If a name may only occur once, a lenient reader finds the last tensor; that of zTensor 0.1 finds
 * the first. */
static void a_name_twice(void **state)
{
    (void)state;
    merge_doubles(TNF_TESTS_DIR "/formats/gptrs-archive/valid/duplicate.gten");
    merge_doubles(TNF_TESTS_DIR "/formats/ztensor0/valid/real_0.1.4_library.zt");
}

/* What the builder had before comes from no file. */
static void what_is_there(void **state)
{
    (void)state;
    struct pairs p = two_files("ztensor2");
    struct made m = begin_file();
    tnf_error e;
    set_attribute(&m, NULL, "x.same", "[3]");
    assert_fails(tnf_builder_merge(m.b, p.files, NULL, 1, NULL, &e), TNF_EEXISTS);
    assert_says("'x.same' is in the builder and in file 1");
    discard_file(&m);
    end_pairs(&p);
}

static tnf_status all_x(void *ctx, tnf_str *out, tnf_str name, tnf_error *e)
{
    (void)ctx, (void)name, (void)e;
    *out = (tnf_str) { "x", 1 };
    return TNF_OK;
}

static bool not_w(void *ctx, tnf_str name)
{
    (void)ctx;
    return *name.p != 'w';
}

static void selects_and_renames(void **state)
{
    (void)state;
    struct pairs p = two_files("safetensors");
    struct made m;
    tnf_error e;
    assert_ok(merge_pairs(&m, &p, (tnf_merge_options) { .select = not_w }, &e));
    assert_int_equal(tnf_file_info(m.file)->objects, 2);
    discard_file(&m);
    assert_fails(merge_pairs(&m, &p, (tnf_merge_options) { .rename = all_x }, &e), TNF_EEXISTS);
    assert_says("more than one tensor of a.st has the name 'x'");
    discard_file(&m);
    tnf_merge_options how = { .rename = all_x, .tensors = TNF_CLASH_RENAME };
    assert_ok(merge_pairs(&m, &p, how, &e));
    assert_non_null(tnf_find(m.file, "x"));
    assert_non_null(tnf_find(m.file, "x.4"));
    discard_file(&m);
    m = begin_file();
    assert_fails(tnf_builder_merge(m.b, p.files, NULL, 2, NULL, &e), TNF_EEXISTS);
    assert_says("file 1 and in file 2");
    discard_file(&m);
    m = begin_file();
    add_tensor(&m, "w", "f32", 4, ones);
    assert_fails(tnf_builder_merge(m.b, p.files, NULL, 1, NULL, &e), TNF_EEXISTS);
    assert_says("the builder and in file 1");
    discard_file(&m);
    end_pairs(&p);
}

static void memory_runs_out(void **state)
{
    (void)state;
    struct pairs p = two_files("ztensor2");
    struct memory_log log = { 0 };
    tnf_allocator alloc = memory_allocator(&log);
    tnf_error e;
    bool done = false;
    tnf_merge_options how = { .size = sizeof how, .tensors = TNF_CLASH_RENAME };
    for (uint64_t i = 1; !done; i++) {
        tnf_builder *b;
        log.fail_at = 0;
        assert_ok(tnf_builder_new(&b, &alloc, &e));
        log.fail_at = log.calls + i;
        tnf_status status = tnf_builder_merge(b, p.files, NULL, 2, &how, &e);
        done = log.failed == 0 || status == TNF_OK;
        assert_true(status == TNF_OK || status == TNF_ENOMEM);
        log.failed = 0;
        tnf_builder_free(b);
        assert_int_equal(log.blocks, 0);
    }
    assert_int_equal(log.wrong_sizes, 0);
    end_pairs(&p);
}

static void files_that_are_read(void **state)
{
    (void)state;
    char path[300], other[300], hard[300];
    tnf_error e;
    tnf_file *file;
    struct made m = begin_file();
    add_tensor(&m, "w", "f32", 4, ones);
    snprintf(path, sizeof path, "%s/a.zt", files_temp());
    snprintf(other, sizeof other, "%s/b.zt", files_temp());
    snprintf(hard, sizeof hard, "%s/link.zt", files_temp());
    assert_ok(tnf_save(m.b, path, NULL, &e));
    assert_ok(tnf_save(m.b, other, NULL, &e));
    assert_int_equal(link(path, hard), 0);
    assert_ok(tnf_open(&file, path, NULL, &e));
    assert_true(tnf_file_reads(file, path));
    assert_true(tnf_file_reads(file, hard));
    assert_false(tnf_file_reads(file, other));
    assert_false(tnf_file_reads(file, "/no/such/file"));
    tnf_close(file);
    finish_file(&m, "safetensors");
    assert_false(tnf_file_reads(m.file, path));
    discard_file(&m);
    assert_ok(tnf_open(&file, TNF_TESTS_DIR "/formats/safetensors/valid/shards", NULL, &e));
    assert_true(tnf_file_info(file)->objects > 0);
    char shard[400];
    snprintf(shard, sizeof shard, "%s/formats/safetensors/valid/shards/%s", TNF_TESTS_DIR,
             "model-00001-of-00002.safetensors");
    assert_true(tnf_file_reads(file, shard));
    tnf_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_on_tensors),      cmocka_unit_test(attributes_that_agree),
        cmocka_unit_test(attributes_that_clash), cmocka_unit_test(selects_and_renames),
        cmocka_unit_test(merges_extras),         cmocka_unit_test(a_name_twice),
        cmocka_unit_test(what_is_there),         cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(files_that_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
