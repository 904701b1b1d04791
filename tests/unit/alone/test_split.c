/* SPDX-License-Identifier: MIT */
/* One model in several files: which tensor goes into which file (by the rules of huggingface_hub,
 * computed by hand), the exact bytes of the index, tied tensors, the reasons for not splitting, and
 * that a failure leaves no files. */
#include "../../support/files.h"
#include "../../support/memory.h"
#include "../diff_files.h"
#include "core/core.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <tenfold/shards.h>

static const uint8_t zeros[64];

/* Replaces the rename() of the C library; therefore this is a program of its own. */
static unsigned renames_left = UINT_MAX;

int rename(const char *from, const char *to)
{
    if (renames_left == 0) {
        renames_left = UINT_MAX; /* only once */
        errno = EIO;
        return -1;
    }
    renames_left -= renames_left != UINT_MAX;
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

struct files {
    size_t n;
    char names[8][64];
    size_t tensors[8];
    uint64_t bytes[8];
    bool index[8];
};

static void hear_file(void *ctx, const tnf_split_file *f)
{
    struct files *all = ctx;
    assert_true(all->n < 8);
    snprintf(all->names[all->n], sizeof all->names[0], "%s", f->name);
    all->tensors[all->n] = f->tensors;
    all->bytes[all->n] = f->bytes;
    all->index[all->n++] = f->index;
}

static const char *fresh_directory(void)
{
    static char path[300];
    static unsigned number;
    snprintf(path, sizeof path, "%s/split-%u", files_temp(), number++);
    return path;
}

static tnf_split_options how_to(const char *format, uint64_t max, struct files *files,
                                const tnf_save_options *save)
{
    tnf_split_options how = { .size = sizeof how, .format = format, .max_bytes = max };
    how.file = files ? hear_file : NULL;
    how.ctx = files;
    how.save = save;
    return how;
}

static struct made make_sizes(const uint64_t *n, size_t count)
{
    struct made m = begin_file();
    for (size_t i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%zu", i);
        add_tensor(&m, name, "u8", n[i], zeros);
    }
    return m;
}

/* 4 + 4 fill the first file. 20 is too large and gets the next number at once, while 3 waits for
 * 5. */
static void fills_greedily(void **state)
{
    (void)state;
    static const uint64_t n[] = { 4, 4, 3, 20, 5, 9 };
    struct made m = make_sizes(n, 6);
    struct files f = { 0 };
    tnf_error e;
    tnf_save_options dry = { .size = sizeof dry, .dry_run = true };
    tnf_split_options how = how_to("safetensors", 8, &f, &dry);
    const char *dir = fresh_directory();
    assert_ok(tnf_split(m.b, dir, &how, &e));
    static const size_t tensors[] = { 2, 1, 1, 2, 6 };
    static const uint64_t bytes[] = { 8, 20, 9, 8, 45 };
    /* huggingface_hub: [t0 t1] closes at t2; t3 alone; t5 alone; [t2 t4] last */
    assert_int_equal(f.n, 5);
    assert_memory_equal(f.tensors, tensors, sizeof tensors);
    assert_memory_equal(f.bytes, bytes, sizeof bytes);
    assert_string_equal(f.names[0], "model-00001-of-00004.safetensors");
    assert_string_equal(f.names[4], "model.safetensors.index.json");
    assert_true(f.index[4] && !f.index[3]);
    struct stat st;
    assert_int_not_equal(stat(dir, &st), 0); /* nothing was written */
    discard_file(&m);
}

static void check_text(const char *dir, const char *name, const char *expected)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    struct bytes b = bytes_of_file(path);
    assert_non_null(b.p);
    assert_int_equal(b.n, strlen(expected));
    assert_memory_equal(b.p, expected, b.n);
    free(b.p);
}

static void open_again(const char *dir, const char *name, struct made *m)
{
    char path[400];
    tnf_error e;
    tnf_file *file;
    uint8_t x[32], y[32];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_ok(tnf_open(&file, path, NULL, &e));
    if (!m->file)
        finish_file(m, "ztensor2");
    assert_ok(tnf_content_hash(x, file, NULL, &e));
    assert_ok(tnf_content_hash(y, m->file, NULL, &e));
    assert_memory_equal(x, y, 32);
    assert_int_equal(tnf_file_info(file)->nwarnings, 0);
    tnf_close(file);
}

static struct made odd_model(void)
{
    struct made m = begin_file();
    add_tensor(&m, "b", "u8", 3, zeros);
    add_tensor(&m, "a\xc3\xa9\xf0\x9f\x98\x80\n\"\\\x01", "f32", 1, zeros);
    add_tensor(&m, "c", "u8", 0, zeros);
    set_attribute(&m, NULL, "safetensors.metadata", "{\"format\":\"pt\"}");
    set_attribute(&m, NULL, "x.list", "[1,{\"k\":null}]");
    set_attribute(&m, "b", "x.note", "7");
    return m;
}

static void index_to_the_byte(void **state)
{
    (void)state;
    struct made m = odd_model();
    tnf_error e;
    const char *dir = fresh_directory();
    tnf_split_options how = how_to("safetensors", 3, NULL, NULL);
    assert_ok(tnf_split(m.b, dir, &how, &e));
    /* json.dumps(…, indent=2, sort_keys=True) + "\n" */
    check_text(dir, "model.safetensors.index.json",
               "{\n  \"metadata\": {\n    \"total_size\": 7\n  },\n  \"weight_map\": {\n"
               "    \"a\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\u0001\": "
               "\"model-00001-of-00002.safetensors\",\n"
               "    \"b\": \"model-00002-of-00002.safetensors\",\n"
               "    \"c\": \"model-00002-of-00002.safetensors\"\n  }\n}\n");
    open_again(dir, "model.safetensors.index.json", &m);
    open_again(dir, ".", &m);
    assert_int_equal(files_count(dir, ""), 3);
    discard_file(&m);
}

static void ztensor_shards(void **state)
{
    (void)state;
    static const tnf_option options[][1] = { { { "encoding", "zstd" } },
                                             { { "digest", "sha256" } },
                                             { { "small", "yes" } } };
    tnf_error e;
    for (size_t i = 0; i <= 3; i++) {
        struct made m = odd_model();
        const char *dir = fresh_directory();
        tnf_save_options save = { .size = sizeof save, .no_sync = true };
        save.options = i ? options[i - 1] : NULL;
        save.noptions = i ? 1 : 0;
        tnf_split_options how = how_to("ztensor", 3, NULL, &save);
        how.stem = "some";
        assert_ok(tnf_split(m.b, dir, &how, &e));
        open_again(dir, "some.zt", &m);
        open_again(dir, ".", &m);
        char path[400];
        tnf_file *file;
        tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
        snprintf(path, sizeof path, "%s/some.zt", dir);
        assert_ok(tnf_open(&file, path, NULL, &e));
        assert_ok(tnf_verify(&r, file, NULL, &e));
        assert_int_equal(r.problems, 0);
        tnf_close(file);
        discard_file(&m);
    }
    struct made m = odd_model();
    tnf_option yes = { "canonical", "yes" };
    tnf_save_options save = { .size = sizeof save, .options = &yes, .noptions = 1 };
    tnf_split_options how = how_to("ztensor2", 3, NULL, &save);
    const char *dir = fresh_directory();
    assert_fails(tnf_split(m.b, dir, &how, &e), TNF_EINVAL);
    struct stat st;
    assert_int_not_equal(stat(dir, &st), 0);
    discard_file(&m);
}

static void one_is_enough(void **state)
{
    (void)state;
    static const char *const formats[] = { "safetensors", "ztensor2", "gptrs-archive" };
    static const char *const names[] = { "model.safetensors", "model.zt", "model.gten" };
    static const float f[4] = { 1, 2, 3, 4 };
    for (size_t i = 0; i < 3; i++) {
        struct made m = begin_file();
        struct files all = { 0 };
        tnf_error e;
        add_tensor(&m, "w", "f32", 4, f);
        tnf_split_options how = how_to(formats[i], 0, &all, NULL);
        const char *dir = fresh_directory();
        assert_ok(tnf_split(m.b, dir, &how, &e));
        assert_int_equal(all.n, 1);
        if (i < 2)
            assert_string_equal(all.names[0], names[i]);
        open_again(dir, all.names[0], &m);
        discard_file(&m);
    }
}

/* Formats without an index: numbered files, each with all attributes. */
static void without_an_index(void **state)
{
    (void)state;
    struct made m = begin_file();
    struct files all = { 0 };
    tnf_error e;
    static const float f[4] = { 1, 2, 3, 4 };
    add_tensor(&m, "w", "f32", 4, f);
    add_tensor(&m, "v", "f32", 4, f);
    tnf_split_options how = how_to("ztensor1", 16, &all, NULL);
    const char *dir = fresh_directory();
    assert_ok(tnf_split(m.b, dir, &how, &e));
    assert_int_equal(all.n, 2);
    assert_int_equal(files_count(dir, "-of-00002."), 2);
    assert_int_equal(files_count(dir, ""), 2);
    discard_file(&m);
}

/* Files are filled by the sizes that tensors will have: floats in the requested type, others
 * unchanged. */
static void sizes_in_another_type(void **state)
{
    (void)state;
    static const float f[4] = { 1, 2, 3, 4 };
    static const uint64_t bytes[] = { 16, 12, 28 };
    struct made m = begin_file();
    struct files all = { 0 };
    tnf_error e;
    add_tensor(&m, "a", "f32", 4, f);
    add_tensor(&m, "b", "f32", 4, f);
    add_tensor(&m, "c", "u8", 4, f);
    add_tensor(&m, "d", "f16", 4, f);
    tnf_save_options save = { .size = sizeof save, .dtype = "bf16", .allow_loss = true };
    tnf_split_options how = how_to("safetensors", 16, &all, &save);
    const char *dir = fresh_directory();
    assert_ok(tnf_split(m.b, dir, &how, &e));
    assert_int_equal(all.n, 3); /* [a b] [c d] and the index; in f32 they were [a] [b] [c d] */
    assert_memory_equal(all.bytes, bytes, sizeof bytes);
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, all.names[0]);
    tnf_file *file;
    assert_ok(tnf_open(&file, path, NULL, &e));
    assert_int_equal(tnf_file_info(file)->objects, 2);
    assert_int_equal(tnf_find(file, "b")->parts->nbytes, 8);
    tnf_close(file);
    discard_file(&m);
}

/* Extras that belong to no tensor are in the first file, once. */
static void extras_in_the_first(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file;
    tnf_builder *b;
    struct files all = { 0 };
    assert_ok(
        tnf_open(&file, TNF_TESTS_DIR "/formats/gptrs-archive/valid/trailing_data.gten", NULL, &e));
    const tnf_info *info = tnf_file_info(file);
    assert_int_equal(info->nextras, 1);
    static const float f[4] = { 1, 2, 3, 4 };
    uint64_t four = 4;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_file(b, file, &e));
    assert_ok(tnf_builder_add(b, "another", tnf_type_named("f32"), 1, &four, f, &e));
    tnf_split_options how = how_to("gptrs-archive", 16, &all, NULL);
    const char *dir = fresh_directory();
    assert_ok(tnf_split(b, dir, &how, &e));
    assert_true(all.n >= 2);
    for (size_t i = 0; i < all.n; i++) {
        char path[400], x[64], y[64];
        tnf_file *part;
        snprintf(path, sizeof path, "%s/%s", dir, all.names[i]);
        assert_ok(tnf_open(&part, path, NULL, &e));
        const tnf_info *its = tnf_file_info(part);
        assert_int_equal(its->nextras, i == 0 ? 1 : 0);
        if (i == 0) {
            size_t n = (size_t)info->extras[0].bytes.nbytes;
            assert_true(n > 0 && n <= sizeof x);
            assert_int_equal(its->extras[0].bytes.nbytes, n);
            assert_ok(tnf_read_part(x, n, &info->extras[0].bytes, 0, &e));
            assert_ok(tnf_read_part(y, n, &its->extras[0].bytes, 0, &e));
            assert_memory_equal(x, y, n);
        }
        tnf_close(part);
    }
    tnf_builder_free(b);
    tnf_close(file);
}

/* Two tensors share one blob in the file. */
static void tied_stay_together(void **state)
{
    (void)state;
    struct made m = begin_file(), again = begin_file();
    struct files all = { 0 };
    tnf_error e;
    uint8_t data[3][64];
    for (unsigned i = 0; i < 3; i++)
        memset(data[i], (int)i + 1, 64);
    add_tensor(&m, "a", "u8", 64, data[0]);
    add_tensor(&m, "b", "u8", 64, data[1]);
    add_tensor(&m, "c", "u8", 64, data[2]);
    add_tensor(&m, "z", "u8", 64, data[0]);
    finish_file(&m, "ztensor2");
    assert_ok(tnf_builder_add_file(again.b, m.file, &e));
    tnf_split_options how = how_to("ztensor2", 128, &all, NULL);
    const char *dir = fresh_directory();
    assert_ok(tnf_split(again.b, dir, &how, &e));
    assert_int_equal(all.n, 3);
    assert_int_equal(all.tensors[0], 2); /* the tensors a and z */
    open_again(dir, "model.zt", &m);
    discard_file(&again);
    discard_file(&m);
}

static tnf_status fetch_broken(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)ctx, (void)offset;
    memset(dst, 0, n);
    return *(bool *)ctx ? tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "a bad day") : TNF_OK;
}

/* More files than are kept open at the same time. */
static void very_many(void **state)
{
    (void)state;
    struct made m = begin_file();
    tnf_error e;
    bool bad = true;
    uint64_t one = 1;
    struct stat st;
    for (unsigned i = 0; i < 300; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%03u", i);
        add_tensor(&m, name, "u8", 1, zeros);
    }
    tnf_save_options fast = { .size = sizeof fast, .no_sync = true };
    tnf_split_options how = how_to("safetensors", 1, NULL, &fast);
    const char *dir = fresh_directory();
    assert_ok(tnf_split(m.b, dir, &how, &e));
    assert_int_equal(files_count(dir, ""), 301);
    open_again(dir, ".", &m);
    assert_ok(
        tnf_builder_add_stream(m.b, "z", tnf_type_of(TNF_U8), 1, &one, fetch_broken, &bad, &e));
    dir = fresh_directory();
    assert_fails(tnf_split(m.b, dir, &how, &e), TNF_EIO);
    assert_int_not_equal(stat(dir, &st), 0);
    discard_file(&m);
}

static void what_stands_in_the_way(void **state)
{
    (void)state;
    static const uint64_t n[] = { 4, 4, 4 };
    struct made m = make_sizes(n, 3);
    tnf_error e;
    char path[400];
    const char *dir = fresh_directory();
    tnf_save_options force = { .size = sizeof force, .replace = true, .no_sync = true };
    tnf_split_options how = how_to("safetensors", 4, NULL, NULL);
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(path, sizeof path, "%s/model-00002-of-00003.safetensors", dir);
    bytes_to_file(path, "old", 3);
    assert_fails(tnf_split(m.b, dir, &how, &e), TNF_EEXISTS);
    assert_says("model-00002-of-00003.safetensors");
    check_text(dir, "model-00002-of-00003.safetensors", "old");
    assert_int_equal(files_count(dir, ""), 1);
    how.save = &force;
    assert_ok(tnf_split(m.b, dir, &how, &e));
    open_again(dir, ".", &m);
    assert_ok(tnf_split(m.b, dir, &how, &e)); /* again, over the same files */
    open_again(dir, ".", &m);

    /* the index cannot be written, so the shards are removed, too */
    dir = fresh_directory();
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(tnf_split(m.b, dir, &how, &e) != TNF_OK);
    assert_int_equal(files_count(dir, ""), 1);

    how.save = NULL;
    bytes_to_file(fresh_directory(), "x", 1);
    snprintf(path, sizeof path, "%s", files_temp());
    how.stem = "a/b";
    assert_fails(tnf_split(m.b, path, &how, &e), TNF_EINVAL);
    how.stem = NULL;
    how.format = "nothing";
    assert_fails(tnf_split(m.b, path, &how, &e), TNF_ENOTFOUND);
    how.format = NULL;
    assert_fails(tnf_split(m.b, path, &how, &e), TNF_EINVAL);
    assert_fails(tnf_split(m.b, path, NULL, &e), TNF_EINVAL);
    how.format = "safetensors-index";
    assert_fails(tnf_split(m.b, path, &how, &e), TNF_EUNSUPPORTED);
    discard_file(&m);
}

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    assert_true(done <= total);
    return false;
}

static void nothing_is_left(void **state)
{
    (void)state;
    static const uint64_t n[] = { 4, 4 };
    struct made m = make_sizes(n, 2);
    tnf_error e;
    struct stat st;
    bool bad = true;
    uint64_t four = 4;
    assert_ok(
        tnf_builder_add_stream(m.b, "z", tnf_type_of(TNF_U8), 1, &four, fetch_broken, &bad, &e));
    const char *dir = fresh_directory();
    tnf_split_options how = how_to("safetensors", 4, NULL, NULL);
    assert_fails(tnf_split(m.b, dir, &how, &e), TNF_EIO);
    assert_says("model-00003-of-00003");
    assert_int_not_equal(stat(dir, &st), 0);
    bad = false;
    tnf_save_options stopped = { .size = sizeof stopped, .progress = stop_at_once };
    how.save = &stopped;
    assert_fails(tnf_split(m.b, dir, &how, &e), TNF_ECANCELLED);
    assert_int_not_equal(stat(dir, &st), 0);
    how.save = NULL;
    assert_ok(tnf_split(m.b, dir, &how, &e));
    discard_file(&m);
}

static void memory_runs_out(void **state)
{
    (void)state;
    static const char *const formats[] = { "safetensors", "ztensor2" };
    struct memory_log log = { 0 };
    tnf_allocator alloc = memory_allocator(&log);
    struct made m = odd_model();
    tnf_error e;
    tnf_save_options fast = { .size = sizeof fast, .no_sync = true };
    finish_file(&m, "ztensor2");
    for (size_t k = 0; k < 2; k++) {
        bool done = false;
        tnf_split_options how = how_to(formats[k], 3, NULL, &fast);
        for (uint64_t i = 1; !done; i++) {
            tnf_builder *b;
            const char *dir = fresh_directory();
            log.fail_at = 0;
            assert_ok(tnf_builder_new(&b, &alloc, &e));
            assert_ok(tnf_builder_add_file(b, m.file, &e));
            log.fail_at = log.calls + i;
            tnf_status status = tnf_split(b, dir, &how, &e);
            struct stat st;
            done = status == TNF_OK;
            assert_true(done || status == TNF_ENOMEM);
            assert_int_equal(stat(dir, &st) == 0, done);
            tnf_builder_free(b);
            assert_int_equal(log.blocks, 0);
        }
    }
    assert_int_equal(log.wrong_sizes, 0);
    discard_file(&m);
}

static struct bytes all_of(const char *dir)
{
    static const char *const names[] = { "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors",
                                         "model.safetensors.index.json" };
    struct bytes all = { .p = NULL };
    char path[400];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        struct bytes b = bytes_of_file(path);
        assert_non_null(b.p);
        all.p = realloc(all.p, all.n + b.n);
        memcpy(all.p + all.n, b.p, b.n);
        all.n += b.n;
        free(b.p);
    }
    return all;
}

/* Files are replaced, and each rename fails once: the old files are restored. */
static void the_old_ones_come_back(void **state)
{
    (void)state;
    static const uint64_t n[] = { 8, 8 }, more[] = { 16, 16 };
    struct made old = make_sizes(n, 2), new = make_sizes(more, 2);
    tnf_error e;
    tnf_save_options save = { .size = sizeof save, .replace = true };
    const char *dir = fresh_directory();
    tnf_split_options how = how_to("safetensors", 8, NULL, &save);
    assert_ok(tnf_split(old.b, dir, &how, &e));
    struct bytes before = all_of(dir);
    how.max_bytes = 16;
    unsigned failed = 0;
    for (tnf_status status = TNF_EIO; status != TNF_OK; failed += status != TNF_OK) {
        renames_left = failed;
        status = tnf_split(new.b, dir, &how, &e);
        struct bytes after = all_of(dir);
        bool same = after.n == before.n && memcmp(after.p, before.p, after.n) == 0;
        assert_int_equal(same, status != TNF_OK);
        assert_int_equal(files_count(dir, ""), 3);
        assert_true(status == TNF_OK || status == TNF_EIO);
        free(after.p);
    }
    renames_left = UINT_MAX;
    assert_int_equal(failed, 6); /* two renames for each of three files */
    free(before.p);
    discard_file(&old);
    discard_file(&new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_greedily),         cmocka_unit_test(index_to_the_byte),
        cmocka_unit_test(ztensor_shards),         cmocka_unit_test(one_is_enough),
        cmocka_unit_test(without_an_index),       cmocka_unit_test(sizes_in_another_type),
        cmocka_unit_test(extras_in_the_first),    cmocka_unit_test(tied_stay_together),
        cmocka_unit_test(nothing_is_left),        cmocka_unit_test(what_stands_in_the_way),
        cmocka_unit_test(memory_runs_out),        cmocka_unit_test(very_many),
        cmocka_unit_test(the_old_ones_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
