/* SPDX-License-Identifier: MIT */
/* Saving: functions that formats call, options, progress, cancelling, and what remains after a
 * failure. */
#include "../support/files.h"
#include "../support/memory.h"
#include "../support/unit.h"
#include "core/save/save.h"

static tnf_builder *b;
static uint8_t data[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static char dir[300], target[340];

static int set_up(void **state)
{
    static int n;
    (void)state;
    uint64_t shape[] = { 2 };
    snprintf(dir, sizeof dir, "%s/%d", files_temp(), n++);
    snprintf(target, sizeof target, "%s/out.gten", dir);
    if (mkdir(dir, 0700) != 0 || tnf_builder_new(&b, NULL, NULL) != TNF_OK)
        return -1;
    return tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 1, shape, data, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    tnf_builder_free(b);
    return 0;
}

static void which_format(void **state)
{
    (void)state;
    tnf_error e;
    char path[400];
    tnf_save_options o = { .size = sizeof o };
    assert_ok(tnf_save(b, target, NULL, &e)); /* by extension */
    snprintf(path, sizeof path, "%s/x.bin", dir);
    o.format = "gptrs-archive"; /* the name of the format counts more */
    assert_ok(tnf_save(b, path, &o, &e));
    struct bytes one = bytes_of_file(target), two = bytes_of_file(path);
    assert_int_equal(one.n, two.n);
    assert_memory_equal(one.p, two.p, one.n);
    free(one.p);
    free(two.p);
    snprintf(path, sizeof path, "%s/x", dir);
    assert_fails(tnf_save(b, path, NULL, &e), TNF_EINVAL);
    snprintf(path, sizeof path, "%s/x.nosuch", dir);
    assert_fails(tnf_save(b, path, NULL, &e), TNF_EINVAL);
    o.format = "nosuch";
    assert_fails(tnf_save(b, path, &o, &e), TNF_ENOTFOUND);
    tnf_sink *sink;
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_fails(tnf_save_sink(b, sink, NULL, &e), TNF_EINVAL);
    tnf_sink_close(sink);
    assert_int_equal(files_count(dir, ""), 2);
}

/* Formats that can only be read report this. */
static void only_read(void **state)
{
    (void)state;
    tnf_error e;
    tnf_format_info info = TNF_FORMAT_INFO_INIT;
    for (size_t i = 0; tnf_format_at(&info, i); i++) {
        if (info.caps & TNF_CAN_WRITE)
            continue;
        tnf_save_options o = { .size = sizeof o, .format = info.name };
        assert_fails(tnf_save(b, target, &o, &e), TNF_EUNSUPPORTED);
        assert_says(info.name);
    }
    assert_int_equal(files_count(dir, ""), 0);
}

static void existing_files(void **state)
{
    (void)state;
    tnf_error e;
    tnf_save_options o = { .size = sizeof o };
    bytes_to_file(target, "old", 3);
    assert_fails(tnf_save(b, target, &o, &e), TNF_EEXISTS);
    o.dry_run = true;
    assert_ok(tnf_save(b, target, &o, &e));
    struct bytes now = bytes_of_file(target);
    assert_int_equal(now.n, 3);
    free(now.p);
    o.dry_run = false;
    o.replace = true;
    o.no_sync = true;
    assert_ok(tnf_save(b, target, &o, &e));
    assert_ok(tnf_save(b, target, &o, &e));
    assert_int_equal(files_count(dir, ""), 1);
}

static void options_of_the_format(void **state)
{
    (void)state;
    tnf_error e;
    tnf_option bad = { "nosuch", "1" }, good = { "align", "64" }, wrong = { "align", "x" };
    tnf_save_options o = { .size = sizeof o, .noptions = 1, .options = &bad };
    assert_fails(tnf_save(b, target, &o, &e), TNF_EINVAL);
    assert_says("gptrs-archive: ");
    o.options = &wrong;
    assert_fails(tnf_save(b, target, &o, &e), TNF_EINVAL);
    assert_int_equal(files_count(dir, ""), 0);
    o.options = &good;
    assert_ok(tnf_save(b, target, &o, &e));
}

struct seen {
    uint64_t last, total, stop;
    unsigned calls;
    bool wrong;
};

static bool watch_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct seen *s = ctx;
    s->wrong = s->wrong || done < s->last || done > total || (s->calls && total != s->total);
    s->last = done;
    s->total = total;
    s->calls++;
    return !s->stop || done < s->stop;
}

static tnf_status fetch_zeros(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    uint64_t *next = ctx;
    if (offset != *next)
        return tnf_fail(e, TNF_EBUG, offset, "not in ascending order");
    *next += n;
    memset(dst, 0, n);
    return TNF_OK;
}

static void progress_and_cancelling(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t shape[] = { 5 << 20 }, next = 0; /* 20 MiB */
    assert_ok(
        tnf_builder_add_stream(b, "big", tnf_type_of(TNF_F32), 1, shape, fetch_zeros, &next, &e));
    struct seen s = { 0 };
    tnf_save_options o = {
        .size = sizeof o, .progress = watch_progress, .ctx = &s, .replace = true
    };
    o.no_sync = true;
    assert_ok(tnf_save(b, target, &o, &e));
    assert_int_equal(next, 20 << 20);
    assert_int_equal(s.last, (20 << 20) + 8);
    assert_int_equal(s.total, s.last);
    assert_false(s.wrong);
    assert_true(s.calls >= 3);
    struct bytes before = bytes_of_file(target);
    s = (struct seen) { .stop = 5 << 20 };
    next = 0;
    assert_fails(tnf_save(b, target, &o, &e), TNF_ECANCELLED);
    assert_true(next < 20 << 20);
    struct bytes after = bytes_of_file(target);
    assert_int_equal(before.n, after.n);
    assert_int_equal(files_count(dir, ""), 1);
    free(before.p);
    free(after.p);
}

/* The k-th number of a stream that cannot be read backwards. */
static tnf_status fetch_onward(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    uint64_t *next = ctx;
    if (offset != *next)
        return tnf_fail(e, TNF_EBUG, offset, "the stream was at %llu", (unsigned long long)*next);
    for (size_t i = 0; i < n; i += 4) {
        float number = (float)((offset + i) / 4 % 1000);
        uint32_t bits;
        memcpy(&bits, &number, 4);
        tnf_put_le32((uint8_t *)dst + i, bits);
    }
    *next += n;
    return TNF_OK;
}

/* Reads a tensor of streams row by row, and compares it. */
static void compare_stream(const tnf_object *object)
{
    tnf_error e;
    tnf_slice all[2] = { { 0, 1, object->shape[0], false }, { 0, 1, object->shape[1], false } };
    size_t many = (size_t)(object->shape[0] * object->shape[1]);
    size_t n = (size_t)tnf_slice_bytes(object, all);
    uint8_t *bytes = malloc(n);
    double *numbers = malloc(many * sizeof *numbers);
    assert_true(bytes && numbers);
    assert_ok(tnf_read_slice(bytes, n, object, all, &e));
    assert_true(tnf_type_decode(numbers, object->parts->type, bytes, 0, many));
    size_t wrong = 0;
    for (size_t k = 0; k < many; k++)
        wrong += numbers[k] != (double)(k % 1000);
    assert_int_equal(wrong, 0);
    free(bytes);
    free(numbers);
}

/* Saves two equal streams, and compares what was saved; false if the format refuses them. */
static bool saves_streams(const uint64_t shape[2], const tnf_save_options *o)
{
    tnf_error e;
    tnf_builder *two;
    tnf_sink *sink;
    tnf_file *file;
    tnf_source *source;
    uint64_t at[2] = { 0, 0 };
    assert_ok(tnf_builder_new(&two, NULL, &e));
    for (unsigned i = 0; i < 2; i++)
        assert_ok(tnf_builder_add_stream(two, i ? "b" : "a", tnf_type_of(TNF_F32), 2, shape,
                                         fetch_onward, &at[i], &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    tnf_status status = tnf_save_sink(two, sink, o, &e);
    tnf_builder_free(two);
    tnf_str saved = tnf_sink_bytes(sink);
    if (status == TNF_OK) {
        tnf_open_options how = { .size = sizeof how, .format = o->format };
        assert_ok(tnf_source_memory(&source, saved.p, saved.n, &e));
        assert_ok(tnf_open_source(&file, source, &how, &e));
        const tnf_object *object;
        for (size_t i = 0; (object = tnf_at(file, i)) != NULL; i++)
            compare_stream(object);
        tnf_close(file);
    } else { /* the format has no such tensors or types */
        assert_true(status == TNF_EUNSUPPORTED || status == TNF_EINVAL || status == TNF_ELOSSY);
    }
    tnf_sink_close(sink);
    return status == TNF_OK;
}

/* Functions that make bytes are called once for each byte, in order, also if the bytes are cast. */
static void streams_go_onward(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 100, 1000 };
    static const char *const types[] = { NULL, "f16", "f64" };
    tnf_format_info info = TNF_FORMAT_INFO_INIT;
    size_t saved[3] = { 0 };
    for (size_t i = 0; tnf_format_at(&info, i); i++)
        for (size_t k = 0; info.caps & TNF_CAN_WRITE && k < 3; k++) {
            tnf_save_options o = { .size = sizeof o, .format = info.name, .dtype = types[k] };
            saved[k] += saves_streams(shape, &o);
        }
    assert_true(saved[0] >= 10 && saved[1] >= 8 && saved[2] >= 6);
}

/* More is transposed than fits in one window of the memory for it (16 MiB). */
static void long_streams_are_transposed(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2100, 2100 };
    tnf_save_options o = { .size = sizeof o, .format = "primitiv" };
    assert_true(saves_streams(shape, &o));
    o.format = "npz";
    o.order = "F";
    assert_true(saves_streams(shape, &o));
    o.dtype = "f16";
    assert_true(saves_streams(shape, &o));
}

static tnf_status fail_late(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)ctx;
    memset(dst, 0, n);
    return offset ? tnf_fail(e, TNF_ENET, offset, "the line is dead") : TNF_OK;
}

static void a_source_that_fails(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t shape[] = { 1 << 20 };
    assert_ok(
        tnf_builder_add_stream(b, "big", tnf_type_of(TNF_F32), 1, shape, fail_late, NULL, &e));
    assert_fails(tnf_save(b, target, NULL, &e), TNF_ENET);
    assert_string_equal(e.message, "gptrs-archive: the line is dead");
    assert_int_equal(files_count(dir, ""), 0);
}

/* ------------------------------------------- functions that formats call */

static void writing_helpers(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *sink;
    struct tnf_save save = { .total = 100 };
    tnf_arena scratch;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(&scratch, &a, UINT64_MAX);
    assert_ok(tnf_sink_memory(&sink, &e));
    tnf_writer w = { .sink = sink, .scratch = &scratch, .save = &save };
    assert_ok(tnf_put(&w, "ab", 2, &e));
    assert_ok(tnf_put_u8(&w, 0xff, &e));
    assert_ok(tnf_put_u32(&w, 0x04030201, &e));
    assert_ok(tnf_put_u64(&w, 0x0807060504030201, &e));
    assert_ok(tnf_put_fill(&w, '.', 1000, &e));
    assert_ok(tnf_put_fill(&w, '!', 0, &e));
    assert_ok(tnf_put_data(&w, &b->catalog.objects[0].parts[0], &e));
    assert_int_equal(sink->written, 15 + 1000 + 8);
    assert_ok(tnf_sink_commit(sink, &e));
    tnf_str out = tnf_sink_bytes(sink);
    assert_int_equal(out.n, 1023);
    assert_memory_equal(out.p, "ab\xff\1\2\3\4\1\2\3\4\5\6\7\x08...", 18);
    assert_memory_equal(out.p + 1014, ".\1\2\3\4\5\6\7\x08", 9);
    tnf_sink_close(sink);
    tnf_arena_free(&scratch);
}

static int by_size(const tnf_object *x, const tnf_object *y)
{
    return x->parts->nbytes < y->parts->nbytes ? -1 : x->parts->nbytes > y->parts->nbytes;
}

static void sorts_names(void **state)
{
    (void)state;
    tnf_error e;
    static const char *const names[] = { "b", "a", "ab", "", "B", "\xc3\xa9", "a\x01", "zz", "z" };
    static const char *const sorted[] = { "", "B", "a", "a\x01", "ab", "b", "z", "zz", "\xc3\xa9" };
    enum { N = sizeof names / sizeof *names };
    tnf_builder *many;
    tnf_arena scratch;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    const uint32_t *order;
    tnf_arena_init(&scratch, &a, UINT64_MAX);
    assert_ok(tnf_builder_new(&many, NULL, &e));
    tnf_writer w = { .catalog = &many->catalog, .scratch = &scratch };
    assert_ok(tnf_sorted(&w, &order, NULL, &e)); /* none */
    for (size_t i = 0; i < N; i++)
        assert_ok(tnf_builder_add(many, names[i], tnf_type_of(i % 2 ? TNF_U8 : TNF_U16), 0, NULL,
                                  data, &e));
    assert_ok(tnf_sorted(&w, &order, NULL, &e));
    for (size_t i = 0; i < N; i++)
        assert_string_equal(many->catalog.objects[order[i]].name.p, sorted[i]);
    assert_ok(tnf_sorted(&w, &order, by_size, &e));
    static const uint32_t stable[N] = { 1, 3, 5, 7, 0, 2, 4, 6, 8 }; /* equal ones keep order */
    assert_memory_equal(order, stable, sizeof stable);
    tnf_builder_free(many);
    tnf_arena_free(&scratch);
}

int main(void)
{
#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FILE(which_format),
        WITH_FILE(only_read),
        WITH_FILE(existing_files),
        WITH_FILE(options_of_the_format),
        WITH_FILE(progress_and_cancelling),
        WITH_FILE(streams_go_onward),
        WITH_FILE(long_streams_are_transposed),
        WITH_FILE(a_source_that_fails),
        WITH_FILE(writing_helpers),
        WITH_FILE(sorts_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
