/* SPDX-License-Identifier: MIT */
/* ONNX models in two files, and models that get other weights. */
#include "../support/files.h"
#include "../support/little.h"
#include "../support/unit.h"

#include <dirent.h>
#include <sys/stat.h>
#include <tenfold/build.h>
#include <tenfold/convert.h>
#include <tenfold/tenfold.h>
#include <unistd.h>

#define N 300u /* floats: more than a kilobyte */

static float numbers[N], others[N];
static const char *folder;

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        numbers[i] = (float)i / 7;
        others[i] = -(float)i;
    }
    folder = files_temp();
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[2][400];
    static unsigned turn;
    snprintf(path[turn ^= 1], sizeof path[0], "%s/%s", folder, name);
    return path[turn];
}

static void add_floats(tnf_builder *b, const char *name, const float *values, uint64_t n)
{
    tnf_error e;
    const void *bytes = to_little(values, 4, (size_t)n);
    assert_ok(tnf_builder_add(b, name, tnf_type_of(TNF_F32), 1, &n, bytes, &e));
}

/* A model of initializers: "w" is large, "s" small, "none" empty. */
static tnf_builder *build_model(void)
{
    tnf_builder *b;
    tnf_error e;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    add_floats(b, "w", numbers, N);
    add_floats(b, "s", numbers, 3);
    add_floats(b, "none", numbers, 0);
    add_floats(b, "x", numbers, N);
    return b;
}

static tnf_status save_model(const tnf_builder *b, const char *path, const char *external,
                             const char *location, const char *align, bool replace, tnf_error *e)
{
    const tnf_option options[] = {
        { "bare", "yes" }, { "external", external }, { "location", location }, { "align", align }
    };
    tnf_save_options how = TNF_SAVE_INIT;
    how.options = options;
    how.noptions = 4;
    how.no_sync = true;
    how.replace = replace;
    return tnf_save(b, path, &how, e);
}

static void check_tensor(const tnf_file *f, const char *name, const float *want, uint64_t n)
{
    float found[N];
    tnf_error e;
    const tnf_object *o = tnf_find(f, name);
    assert_non_null(o);
    assert_int_equal(o->shape[0], n);
    assert_ok(tnf_read(found, (size_t)n * 4, o, &e));
    from_little(found, 4, (size_t)n);
    assert_memory_equal(found, want, (size_t)n * 4);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return (uint64_t)st.st_size;
}

static void check_model(const char *path)
{
    tnf_error e;
    tnf_file *f;
    assert_ok(tnf_open(&f, path, NULL, &e));
    assert_string_equal(tnf_file_info(f)->format, "onnx");
    check_tensor(f, "w", numbers, N);
    check_tensor(f, "s", numbers, 3);
    check_tensor(f, "none", numbers, 0);
    check_tensor(f, "x", numbers, N);
    tnf_close(f);
}

static void data_go_into_a_second_file(void **state)
{
    static const struct {
        const char *location, *align, *data;
        uint64_t bytes;
    } ways[] = {
        { "", "4096", "0.onnx.data", 8192 + N * 4 },
        { "weights.pb", "0", "weights.pb", 2 * N * 4 + 12 },
        { "w", "16", "w", 1200 + 16 + N * 4 },
    };
    tnf_error e;
    tnf_builder *b = build_model();
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u.onnx", i);
        assert_ok(
            save_model(b, path_of(name), "always", ways[i].location, ways[i].align, false, &e));
        assert_int_equal(size_of(path_of(ways[i].data)), ways[i].bytes);
        assert_true(size_of(path_of(name)) < 600);
        check_model(path_of(name));
        /* Neither file is replaced without a request. */
        assert_fails(save_model(b, path_of(name), "always", ways[i].location, "1", false, &e),
                     TNF_EEXISTS);
        assert_int_equal(unlink(path_of(name)), 0);
        assert_fails(save_model(b, path_of(name), "always", ways[i].location, "1", false, &e),
                     TNF_EEXISTS);
        assert_int_equal(access(path_of(name), F_OK), -1);
        assert_ok(save_model(b, path_of(name), "always", ways[i].location, "1", true, &e));
        assert_int_equal(size_of(path_of(ways[i].data)), 2 * N * 4 + 12);
        check_model(path_of(name));
    }
    /* A small model is one file. */
    assert_ok(save_model(b, path_of("one.onnx"), "auto", "", "4096", false, &e));
    assert_int_equal(access(path_of("one.onnx.data"), F_OK), -1);
    check_model(path_of("one.onnx"));
    tnf_builder_free(b);
}

/* Both of its own files are replaced; then the model becomes one file again. */
static void a_model_replaces_itself(void **state)
{
    tnf_error e;
    tnf_file *f;
    tnf_builder *b = build_model();
    (void)state;
    assert_ok(save_model(b, path_of("self.onnx"), "always", "", "64", false, &e));
    tnf_builder_free(b);
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(tnf_open(&f, path_of("self.onnx"), NULL, &e));
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(tnf_builder_add_file(b, f, &e));
        assert_ok(save_model(b, path_of("self.onnx"), i ? "never" : "always", "", "1", true, &e));
        tnf_builder_free(b);
        tnf_close(f);
        if (i)
            assert_int_equal(unlink(path_of("self.onnx.data")), 0);
        check_model(path_of("self.onnx"));
    }
}

static tnf_status no_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)ctx, (void)offset, (void)dst, (void)n;
    snprintf(e->message, sizeof e->message, "asked for");
    return TNF_ECANCELLED;
}

static unsigned files_in_folder(const char *prefix)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *x = readdir(d); x; x = readdir(d))
        n += strncmp(x->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return n;
}

/* A model and its data replace others: both files keep their names and permissions, and nothing
 * else is left. */
static void both_files_are_replaced(void **state)
{
    struct stat st;
    tnf_error e;
    tnf_builder *b = build_model(), *other;
    (void)state;
    assert_ok(tnf_builder_new(&other, NULL, &e));
    add_floats(other, "w", others, N);
    assert_ok(save_model(other, path_of("both.onnx"), "always", "", "64", false, &e));
    assert_int_equal(chmod(path_of("both.onnx.data"), 0600), 0);
    assert_ok(save_model(b, path_of("both.onnx"), "always", "", "64", true, &e));
    check_model(path_of("both.onnx"));
    assert_int_equal(files_in_folder("both.onnx"), 2);
    assert_int_equal(stat(path_of("both.onnx.data"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_nlink, 1);
    /* The same, and synced. */
    const tnf_option options[] = { { "bare", "yes" }, { "external", "always" } };
    tnf_save_options how = TNF_SAVE_INIT;
    how.options = options;
    how.noptions = 2;
    how.replace = true;
    assert_ok(tnf_save(b, path_of("both.onnx"), &how, &e));
    check_model(path_of("both.onnx"));
    assert_int_equal(files_in_folder("both.onnx"), 2);
    /* After a failure, the old files remain. */
    const uint64_t shape[] = { N };
    assert_ok(
        tnf_builder_add_stream(other, "x", tnf_type_of(TNF_F32), 1, shape, no_bytes, NULL, &e));
    assert_fails(save_model(other, path_of("both.onnx"), "always", "", "64", true, &e),
                 TNF_ECANCELLED);
    check_model(path_of("both.onnx"));
    assert_int_equal(files_in_folder("both.onnx"), 2);
    tnf_builder_free(other);
    tnf_builder_free(b);
}

static void put_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A model of one initializer, f32 [2], in the file "zeros", with room for its SHA-1. */
static const char summed[] = "\x08\x0A\x3A\x54\x2A\x52\x08\x02\x10\x01\x42\x01"
                             "w\x6A\x11\x0A\x08"
                             "location\x12\x05zeros\x6A\x34\x0A\x08"
                             "checksum\x12\x28"
                             "0000000000000000000000000000000000000000\x70\x01\x42\x02\x10\x15";

static size_t count_problems(const char *name)
{
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_error e;
    tnf_file *f;
    assert_ok(tnf_open(&f, path_of(name), NULL, &e));
    check_tensor(f, "w", (const float[]) { 0, 0 }, 2); /* reading does not check it */
    assert_ok(tnf_verify(&result, f, NULL, &e));
    tnf_close(f);
    return (size_t)result.problems;
}

static void verify_compares_the_checksum(void **state)
{
    static const char right[] = "05fe405753166f125559e7c9ac558654f107c7e9"; /* from sha1sum */
    char model[sizeof summed];
    (void)state;
    memcpy(model, summed, sizeof summed);
    put_file("zeros", "\0\0\0\0\0\0\0", 8);
    put_file("wrong.onnx", model, sizeof model - 1);
    assert_int_equal(count_problems("wrong.onnx"), 1);
    char *sum = strstr(model + 40, "0000");
    assert_non_null(sum);
    memcpy(sum, right, 40);
    put_file("right.onnx", model, sizeof model - 1);
    assert_int_equal(count_problems("right.onnx"), 0);
    sum[2] = 'F'; /* upper case */
    put_file("right.onnx", model, sizeof model - 1);
    assert_int_equal(count_problems("right.onnx"), 0);
    sum[39] = ' ';
    put_file("wrong.onnx", model, sizeof model - 1);
    assert_int_equal(count_problems("wrong.onnx"), 1);
}

static size_t warnings_of(const tnf_file *f, const char *text)
{
    const tnf_info *info = tnf_file_info(f);
    size_t n = 0;
    for (size_t i = 0; i < info->nwarnings; i++)
        n += strstr(info->warnings[i].message, text) != NULL;
    return n;
}

/* onnx refuses data files with hard links; stores that keep equal files only once make such
 * links. */
static void other_names_of_the_data_are_told(void **state)
{
    tnf_error e;
    tnf_file *f;
    tnf_builder *b = build_model();
    (void)state;
    assert_ok(save_model(b, path_of("named.onnx"), "always", "named.data", "1", true, &e));
    assert_ok(tnf_open(&f, path_of("named.onnx"), NULL, &e));
    assert_int_equal(warnings_of(f, "hard links"), 0);
    tnf_close(f);
    assert_int_equal(link(path_of("named.data"), path_of("other-name")), 0);
    assert_ok(tnf_open(&f, path_of("named.onnx"), NULL, &e));
    assert_int_equal(warnings_of(f, "hard links"), 1); /* one warning for all tensors */
    tnf_close(f);
    tnf_builder_free(b);
}

static void the_second_file_stays_in_the_folder(void **state)
{
    static const char *const bad[] = { "../out", "/tmp/out", "sub/out", ".",   "..",      "C:out",
                                       "a\\b",   "bad.onnx", "link",    "dir", "dangling" };
    tnf_error e;
    tnf_sink *sink;
    tnf_save_options how = TNF_SAVE_INIT;
    const tnf_option options[] = { { "bare", "yes" }, { "external", "always" } };
    tnf_builder *b = build_model();
    FILE *victim = fopen(path_of("victim"), "w");
    (void)state;
    assert_non_null(victim);
    fclose(victim);
    assert_int_equal(symlink("victim", path_of("link")), 0);
    assert_int_equal(symlink("nowhere", path_of("dangling")), 0);
    assert_int_equal(mkdir(path_of("dir"), 0700), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(save_model(b, path_of("bad.onnx"), "always", bad[i], "1", true, &e),
                     TNF_EINVAL);
        assert_int_equal(access(path_of("bad.onnx"), F_OK), -1);
    }
    assert_int_equal(size_of(path_of("victim")), 0);
    assert_int_equal(access(path_of("nowhere"), F_OK), -1);
    char longest[300];
    memset(longest, 'a', sizeof longest - 1);
    longest[299] = 0;
    assert_fails(save_model(b, path_of("bad.onnx"), "always", longest, "1", true, &e), TNF_EINVAL);
    assert_fails(save_model(b, path_of("bad.onnx"), "always", "", "2G", true, &e), TNF_EINVAL);
    how.format = "onnx";
    how.options = options;
    how.noptions = 2;
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_fails(tnf_save_sink(b, sink, &how, &e), TNF_EUNSUPPORTED);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

/* Saving finds that a model is too large for one file before it reads any byte. */
static void a_large_model_needs_two_files(void **state)
{
    const uint64_t shape[] = { (uint64_t)1 << 29 };
    tnf_error e;
    tnf_builder *b;
    (void)state;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_stream(b, "w", tnf_type_of(TNF_F32), 1, shape, no_bytes, NULL, &e));
    assert_fails(save_model(b, path_of("large.onnx"), "never", "", "1", false, &e), TNF_ELIMIT);
    assert_says("external=always");
    assert_fails(save_model(b, path_of("large.onnx"), "auto", "", "1", false, &e), TNF_ECANCELLED);
    assert_int_equal(access(path_of("large.onnx.data"), F_OK), -1);
    assert_int_equal(access(path_of("large.onnx"), F_OK), -1);
    tnf_builder_free(b);
}

/* A model with raw data of 2^31 zeros, between `front` and the bytes after them. */
#define ZEROS ((uint64_t)1 << 31)
static const uint8_t front[] = {
    0x08, 10, /* ir_version */
    0x3A, 0x9A, 0x80, 0x80,
    0x80, 0x08,      /* graph */
    0x12, 1,    'g', /* its name */
    0x2A, 0x91, 0x80, 0x80,
    0x80, 0x08, /* initializer */
    0x08, 0x80, 0x80, 0x80,
    0x80, 0x02, 0x10, 1, /* 2^29 of f32 */
    0x42, 1,    'w',  /* name */ 0x4A,
    0x80, 0x80, 0x80, 0x80,
    0x08 /* raw_data */
};
static const uint8_t back[] = { 0x42, 2, 0x10, 21 }; /* opset_import */

static tnf_status read_virtual(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    uint64_t *read = ctx;
    uint8_t *p = dst;
    (void)e;
    *read += n;
    for (size_t i = 0; i < n; i++) {
        uint64_t where = offset + i;
        p[i] = where < sizeof front           ? front[where]
               : where < sizeof front + ZEROS ? 0
                                              : back[where - sizeof front - ZEROS];
    }
    return TNF_OK;
}

/* Listing reads the descriptions of the tensors, not their data. */
static void listing_reads_no_weights(void **state)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION,
                                        .read_at = read_virtual };
    uint64_t read = 0;
    tnf_open_options how = TNF_OPEN_INIT;
    tnf_error e;
    tnf_source *s;
    tnf_file *f;
    (void)state;
    how.format = "onnx";
    assert_ok(tnf_source_custom(&s, &ops, &read, sizeof front + ZEROS + sizeof back, &e));
    assert_ok(tnf_open_source(&f, s, &how, &e));
    assert_int_equal(tnf_find(f, "w")->parts->nbytes, ZEROS);
    assert_int_equal(tnf_find(f, "w")->parts->offset, sizeof front);
    assert_true(read < 300000);
    tnf_close(f);
}

/* 300 tensors of 9 MiB each, 2.8 GB: the bytes before the weights of each, and zeros. */
#define MANY   300u
#define EACH   ((uint64_t)9 << 20)
#define RECORD (sizeof each + EACH)
static const uint8_t whole[] = { 0x08, 10, 0x3A, 0xF8, 0xBC, 0x80, 0xC6, 0x0A };
static const uint8_t each[] = {
    0x2A, 0x95, 0x80, 0xC0, 0x04,                               /* initializer */
    0x08, 0x80, 0x80, 0x90, 0x01,                               /* 9 * 2^18 */
    0x10, 1,    0x42, 7,    'w',  'e', 'i', '0', '0', '0', '0', /* f32, its name */
    0x4A, 0x80, 0x80, 0xC0, 0x04,                               /* raw_data */
};

struct many_read {
    uint64_t bytes, reads;
};

static tnf_status read_many_virtual(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct many_read *read = ctx;
    uint8_t *p = dst;
    (void)e;
    read->bytes += n;
    read->reads++;
    for (size_t i = 0; i < n; i++) {
        uint64_t where = offset + i;
        if (where < sizeof whole || where >= sizeof whole + MANY * RECORD) {
            p[i] = where < sizeof whole ? whole[where] : back[where - sizeof whole - MANY * RECORD];
            continue;
        }
        uint64_t k = (where - sizeof whole) / RECORD, at = (where - sizeof whole) % RECORD;
        char digits[8];
        snprintf(digits, sizeof digits, "%04u", (unsigned)k);
        p[i] = at >= sizeof each ? 0 : at >= 17 && at < 21 ? (uint8_t)digits[at - 17] : each[at];
    }
    return TNF_OK;
}

/* For any number of tensors, only a few hundred bytes are read for each. */
static void listing_many_reads_little_of_each(void **state)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION,
                                        .read_at = read_many_virtual };
    struct many_read read = { 0 };
    tnf_open_options how = TNF_OPEN_INIT;
    uint64_t size = sizeof whole + MANY * RECORD + sizeof back;
    tnf_error e;
    tnf_source *s;
    tnf_file *f;
    (void)state;
    how.format = "onnx";
    assert_ok(tnf_source_custom(&s, &ops, &read, size, &e));
    assert_ok(tnf_open_source(&f, s, &how, &e));
    assert_int_equal(tnf_find(f, "wei0299")->parts->nbytes, EACH);
    assert_null(tnf_at(f, MANY));
    assert_true(read.bytes < MANY * 1500);
    assert_true(read.reads < MANY * 5);
    tnf_close(f);
}

/* ------------------------------------------------------------------ weights */

static tnf_status fill_model(tnf_report **report, const tnf_builder *weights, const tnf_file *model,
                             const char *path, bool keep, bool loss, const char *dtype,
                             tnf_error *why)
{
    const tnf_option options[] = { { "bare", "yes" } };
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_convert_options how = TNF_CONVERT_INIT;
    tnf_file *view;
    tnf_error e;
    assert_ok(tnf_open_builder(&view, weights, NULL, &e));
    const tnf_file *const files[] = { view };
    save.options = options;
    save.noptions = 1;
    save.no_sync = true;
    save.replace = true;
    save.allow_loss = loss;
    save.loss = "attribute,tensor";
    save.dtype = dtype;
    how.save = &save;
    how.into = model;
    how.keep_rest = keep;
    tnf_status status = tnf_convert(report, files, 1, path, &how, why);
    tnf_close(view);
    return status;
}

static void weights_are_replaced(void **state)
{
    const uint64_t wrong[] = { 4 };
    const tnf_value note = { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = 7 };
    tnf_error e;
    tnf_report *report;
    tnf_file *model, *made;
    tnf_builder *b = build_model(), *weights;
    (void)state;
    assert_ok(save_model(b, path_of("model.onnx"), "never", "", "1", false, &e));
    tnf_builder_free(b);
    assert_ok(tnf_open(&model, path_of("model.onnx"), NULL, &e));
    assert_ok(tnf_builder_new(&weights, NULL, &e));
    add_floats(weights, "w", others, N);
    assert_ok(tnf_builder_set(weights, "w", "of.weights", &note, &e));
    assert_ok(tnf_builder_set(weights, NULL, "of.file", &note, &e));

    /* Missing tensors are reported, and refused or kept. */
    assert_fails(fill_model(&report, weights, model, path_of("new.onnx"), false, false, NULL, &e),
                 TNF_ELOSSY);
    assert_says(
        "3 tensors do not fit the model: tensor 's': the model needs this tensor, but no input has "
        "it");
    assert_int_equal(report->counts[TNF_DROPPED], 3);
    tnf_report_free(report);
    assert_ok(fill_model(&report, weights, model, path_of("new.onnx"), true, false, NULL, &e));
    assert_int_equal(report->nitems, 3);
    assert_true(tnf_report_item(report, 0)->unasked);
    tnf_report_free(report);
    assert_ok(tnf_open(&made, path_of("new.onnx"), NULL, &e));
    check_tensor(made, "w", others, N);
    check_tensor(made, "x", numbers, N);
    assert_int_equal(size_of(path_of("new.onnx")), size_of(path_of("model.onnx")));
    tnf_close(made);

    /* Tensors that the model does not have are dropped only if this is allowed. */
    add_floats(weights, "foreign", others, 2);
    assert_fails(fill_model(&report, weights, model, path_of("new.onnx"), true, false, NULL, &e),
                 TNF_ELOSSY);
    assert_says("the model has no such tensor");
    tnf_report_free(report);
    assert_ok(fill_model(&report, weights, model, path_of("new.onnx"), true, true, NULL, &e));
    tnf_report_free(report);

    /* A different shape, a different type. */
    assert_ok(tnf_builder_add(weights, "s", tnf_type_of(TNF_F32), 1, wrong, others, &e));
    assert_fails(fill_model(&report, weights, model, path_of("new.onnx"), true, true, NULL, &e),
                 TNF_ELOSSY);
    assert_says("it is f32 [4] in the files and f32 [3] in the model");
    tnf_report_free(report);
    tnf_builder_free(weights);
    const uint64_t three[] = { 3 };
    const double doubles[] = { 1, 2, 3 };
    const float floats[] = { 1, 2, 3 };
    assert_ok(tnf_builder_new(&weights, NULL, &e));
    assert_ok(tnf_builder_add(weights, "s", tnf_type_of(TNF_F64), 1, three,
                              to_little(doubles, 8, 3), &e));
    assert_fails(fill_model(&report, weights, model, path_of("new.onnx"), true, false, NULL, &e),
                 TNF_ELOSSY);
    assert_says("it is f64 [3] in the files and f32 [3] in the model");
    tnf_report_free(report);
    assert_ok(fill_model(&report, weights, model, path_of("new.onnx"), true, true, "f32", &e));
    tnf_report_free(report);
    assert_ok(tnf_open(&made, path_of("new.onnx"), NULL, &e));
    check_tensor(made, "s", floats, 3);
    tnf_close(made);
    tnf_builder_free(weights);
    tnf_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_go_into_a_second_file),
        cmocka_unit_test(a_model_replaces_itself),
        cmocka_unit_test(both_files_are_replaced),
        cmocka_unit_test(verify_compares_the_checksum),
        cmocka_unit_test(the_second_file_stays_in_the_folder),
        cmocka_unit_test(other_names_of_the_data_are_told),
        cmocka_unit_test(a_large_model_needs_two_files),
        cmocka_unit_test(listing_reads_no_weights),
        cmocka_unit_test(listing_many_reads_little_of_each),
        cmocka_unit_test(weights_are_replaced),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
