/* SPDX-License-Identifier: MIT */
/* Comparing files: each kind of difference alone, orders, names that repeat or change, memory that
 * runs out, reading that fails. Expected sums were computed by hand. */
#include "../support/files.h"
#include "../support/little.h"
#include "../support/memory.h"
#include "core/core.h"
#include "diff_files.h"
#include <math.h>

/* ------------------------------------------------------------------- kinds */

static const float ones[] = { 1, 1, 1, 1, 1, 1 };

static void fill_model(struct made *m)
{
    add_tensor(m, "b", "f32", 3, ones);
    add_tensor(m, "a", "f32", 6, ones);
    set_attribute(m, NULL, "x.settings", "{\"k\":1,\"deep\":{\"l\":2,\"m\":3}}");
    set_attribute(m, "a", "x.note", "\"first\"");
}

static void the_same(void **state)
{
    (void)state;
    static const char *const formats[] = { "safetensors", "ztensor0", "ztensor1", "ztensor2" };
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            struct made a = begin_file(), b = begin_file();
            struct told t;
            fill_model(&a);
            fill_model(&b);
            finish_file(&a, formats[i]);
            finish_file(&b, formats[k]);
            tnf_diff_result r = compare_files(&t, &a, &b, (tnf_diff_options) { 0 });
            assert_true(r.same);
            assert_int_equal(t.n, 0);
            assert_int_equal(r.tensors, 2);
            assert_int_equal(r.close + r.different + r.only_a + r.only_b, 0);
            discard_file(&a);
            discard_file(&b);
        }
}

static void each_kind(void **state)
{
    (void)state;
    static const float others[] = { 1, 1, 1.5F, 1, 0.5F, 1 };
    struct made a = begin_file(), b = begin_file();
    struct told t;
    fill_model(&a);
    add_tensor(&a, "gone", "u8", 2, ones);
    add_tensor(&a, "shape", "f32", 4, ones);
    add_tensor(&a, "type", "f32", 2, ones);
    add_tensor(&b, "new", "u8", 2, ones);
    add_tensor(&b, "a", "f32", 6, others);
    add_tensor(&b, "b", "f32", 3, ones);
    add_tensor(&b, "shape", "f32", 5, ones);
    add_tensor(&b, "type", "i32", 2, ones);
    set_attribute(&b, "a", "x.note", "\"other\"");
    set_attribute(&b, NULL, "x.settings", "{\"deep\":{\"m\":4,\"l\":2,\"n\":5},\"k\":1}");
    finish_file(&a, "ztensor2");
    finish_file(&b, "safetensors");
    tnf_diff_result r = compare_files(&t, &a, &b, (tnf_diff_options) { 0 });
    static const struct {
        tnf_difference_kind kind;
        const char *name, *key;
    } expected[] = {
        { TNF_DIFF_VALUES, "a", "data" },
        { TNF_DIFF_ATTRIBUTE, "a", "x.note" },
        { TNF_DIFF_ONLY_A, "gone", "" },
        { TNF_DIFF_SHAPE, "shape", "" },
        { TNF_DIFF_DTYPE, "type", "data" },
        { TNF_DIFF_ONLY_B, "new", "" },
        { TNF_DIFF_ATTRIBUTE, "", "x.settings.deep.m" },
        { TNF_DIFF_ATTRIBUTE, "", "x.settings.deep.n" },
    };
    assert_int_equal(t.n, 8);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(t.kinds[i], expected[i].kind);
        assert_string_equal(t.names[i], expected[i].name);
        assert_string_equal(t.keys[i], expected[i].key);
    }
    assert_false(t.a[7]);
    assert_true(t.b[7]);
    assert_false(r.same);
    assert_int_equal(r.tensors, 4);
    assert_int_equal(r.different, 3);
    assert_int_equal(r.only_a, 1);
    assert_int_equal(r.only_b, 1);
    assert_int_equal(r.attributes, 2);
    const tnf_value_difference *v = &t.values[0];
    assert_int_equal(v->elements, 6);
    assert_int_equal(v->different, 2);
    assert_int_equal(v->first, 2);
    assert_memory_equal(v->a, to_little(&ones[2], 4, 1), 4);
    assert_memory_equal(v->b, to_little(&others[2], 4, 1), 4);
    assert_true(v->numbers);
    /* by hand: differences 0.5 twice; |a|^2 = 6, |b|^2 = 4 + 2.25 + 0.25, a.b = 6 */
    assert_float_equal(v->max_abs, 0.5, 0);
    assert_float_equal(v->max_rel, 1.0, 0);
    assert_float_equal(v->mean_abs, 1.0 / 6, 1e-15);
    assert_float_equal(v->nmse, 0.5 / 6, 1e-15);
    assert_float_equal(v->cosine, 6 / sqrt(6 * 6.5), 1e-15);

    r = compare_files(&t, &a, &b, (tnf_diff_options) { .ignore = TNF_DIFF_IGNORE_ATTRS });
    assert_int_equal(t.n, 5);
    r = compare_files(
        &t, &a, &b, (tnf_diff_options) { .ignore = TNF_DIFF_IGNORE_ATTRS | TNF_DIFF_IGNORE_KIND });
    assert_int_equal(t.n, 2);
    assert_int_equal(r.different, 0);
    r = compare_files(
        &t, &a, &b,
        (tnf_diff_options) { .ignore = TNF_DIFF_IGNORE_ATTRS | TNF_DIFF_IGNORE_VALUES });
    assert_int_equal(t.n, 4);
    discard_file(&a);
    discard_file(&b);
}

/* ------------------------------------------------------------------ orders */

static void rows_and_columns(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2, 3 };
    static const float rows[] = { 1, 2, 3, 4, 5, 6 }, columns[] = { 1, 4, 2, 5, 3, 6 };
    static const float changed[] = { 1, 4, 2, 5, 9, 6 };
    struct told t;
    struct made a = begin_file(), b = begin_file(), c = begin_file();
    add_matrix(&a, "w", "f32", TNF_ORDER_C, shape, 24, rows);
    add_matrix(&b, "w", "f32", TNF_ORDER_F, shape, 24, columns);
    add_matrix(&c, "w", "f32", TNF_ORDER_F, shape, 24, changed);
    finish_file(&a, "safetensors");
    finish_file(&b, "primitiv");
    finish_file(&c, "primitiv");
    tnf_diff_options how = { .ignore = TNF_DIFF_IGNORE_ATTRS };
    assert_int_equal(tnf_at(b.file, 0)->order, TNF_ORDER_F);
    const struct made *const firsts[] = { &a, &b };
    for (size_t i = 0; i < 2; i++) {
        tnf_diff_result r = compare_files(&t, firsts[i], firsts[!i], how);
        assert_true(r.same);
        assert_int_equal(t.n, 1);
        assert_int_equal(t.kinds[0], TNF_DIFF_ORDER);
        r = compare_files(&t, firsts[i], &c, how);
        assert_false(r.same);
        assert_int_equal(t.kinds[t.n - 1], TNF_DIFF_VALUES);
        assert_int_equal(t.values[t.n - 1].first, 2); /* row 0, column 2 */
        assert_int_equal(t.values[t.n - 1].different, 1);
    }
    discard_file(&a);
    discard_file(&b);
    discard_file(&c);
}

/* --------------------------------------------------------- without numbers */

static tnf_file *open_changed(struct bytes b, size_t at)
{
    tnf_error e;
    tnf_source *source;
    tnf_file *file;
    b.p[at] ^= 0x40;
    assert_ok(tnf_source_memory(&source, b.p, b.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    return file;
}

/* One number of 16 bytes has changed by 2^46. */
static void numbers_of_16_bytes(void **state)
{
    (void)state;
    const char *path = TNF_TESTS_DIR "/formats/finalfusion/valid/seed_i128.fifu";
    struct told t;
    struct bytes two = bytes_of_file(path);
    struct made a = { 0 }, b = { 0 };
    tnf_error e;
    assert_ok(tnf_open(&a.file, path, NULL, &e));
    const tnf_part *part = tnf_find(a.file, "embeddings")->parts;
    assert_string_equal(part->type->id, "i128");
    assert_int_equal(part->nbytes, 192);
    b.file = open_changed(two, (size_t)part->offset + 37);
    tnf_diff_result r = compare_files(&t, &a, &b, (tnf_diff_options) { 0 });
    assert_false(r.same);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.kinds[0], TNF_DIFF_VALUES);
    assert_true(t.values[0].numbers);
    assert_int_equal(t.values[0].elements, 12);
    assert_int_equal(t.values[0].different, 1);
    assert_int_equal(t.values[0].first, 2);
    assert_true(t.values[0].max_abs == 0x1p46);
    tnf_close(a.file);
    tnf_close(b.file);
    free(two.p);
}

/* ------------------------------------------------------------------- names */

static tnf_status without_prefix(void *ctx, tnf_str *out, tnf_str name, tnf_error *e)
{
    (void)ctx, (void)e;
    *out = name.n > 2 ? (tnf_str) { name.p + 2, name.n - 2 } : name;
    return TNF_OK;
}

static tnf_status no_name(void *ctx, tnf_str *out, tnf_str name, tnf_error *e)
{
    (void)ctx, (void)out, (void)name;
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "no such name");
}

static bool only_w(void *ctx, tnf_str name)
{
    (void)ctx;
    return name.n == 1 && *name.p == 'w';
}

static void other_names(void **state)
{
    (void)state;
    struct made a = begin_file(), b = begin_file();
    struct told t;
    tnf_error e;
    tnf_diff_result r = TNF_DIFF_RESULT_INIT;
    add_tensor(&a, "m.w", "f32", 2, ones);
    add_tensor(&a, "m.v", "f32", 2, ones);
    add_tensor(&b, "v", "f32", 2, ones);
    add_tensor(&b, "w", "f32", 2, ones);
    add_tensor(&b, "x", "f32", 2, ones);
    finish_file(&a, "safetensors");
    finish_file(&b, "safetensors");
    r = compare_files(&t, &a, &b, (tnf_diff_options) { 0 });
    assert_int_equal(r.only_a, 2);
    assert_int_equal(r.only_b, 3);
    r = compare_files(&t, &a, &b, (tnf_diff_options) { .rename = without_prefix });
    assert_int_equal(r.tensors, 2);
    assert_int_equal(r.only_b, 1);
    r = compare_files(&t, &a, &b,
                      (tnf_diff_options) { .rename = without_prefix, .select = only_w });
    assert_true(r.same);
    assert_int_equal(r.tensors, 1);
    tnf_diff_options failing = { .size = sizeof failing, .rename = no_name };
    assert_fails(tnf_diff(&r, a.file, b.file, &failing, &e), TNF_EINVAL);
    assert_ok(tnf_diff(&r, b.file, b.file, NULL, &e));
    assert_true(r.same);
    discard_file(&a);
    discard_file(&b);
}

/* -------------------------------------------------- large and unusual files */

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    ++*(unsigned *)ctx;
    assert_true(done <= total);
    return false;
}

/* Many blocks, any number of threads, encoded or not: the same sums to the bit. */
static void many_blocks(void **state)
{
    (void)state;
    const uint64_t n = (uint64_t)3 << 20;
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    assert_true(x && y);
    for (uint64_t i = 0; i < n; i++) {
        x[i] = (float)(i % 1000) / 7.0F;
        y[i] = i % 100003 == 5 ? x[i] + 0.25F : x[i];
    }
    tnf_option zstd = { "encoding", "zstd" };
    struct made a = begin_file(), b = begin_file(), c = begin_file();
    struct told one, many, encoded;
    add_tensor(&a, "w", "f32", n, x);
    add_tensor(&b, "w", "f32", n, y);
    add_tensor(&c, "w", "f32", n, y);
    finish_file(&a, "safetensors");
    finish_file(&b, "safetensors");
    finish_with(&c, "ztensor2", &zstd, NULL);
    compare_files(&one, &a, &b, (tnf_diff_options) { .threads = 1 });
    compare_files(&many, &a, &b, (tnf_diff_options) { .threads = 4 });
    compare_files(&encoded, &a, &c, (tnf_diff_options) { .threads = 2 });
    assert_int_equal(one.values[0].different, 32);
    assert_int_equal(one.values[0].first, 5);
    assert_float_equal(one.values[0].max_abs, 0.25, 1e-5);
    assert_memory_equal(&one.values[0].max_abs, &many.values[0].max_abs, 5 * sizeof(double));
    assert_memory_equal(&one.values[0].max_abs, &encoded.values[0].max_abs, 5 * sizeof(double));
    assert_true(compare_files(&many, &b, &c, (tnf_diff_options) { .threads = 4 }).same);
    assert_false(
        compare_files(&many, &a, &c, (tnf_diff_options) { .threads = 4, .brief = true }).same);

    tnf_error e;
    tnf_diff_result r = TNF_DIFF_RESULT_INIT;
    unsigned calls = 0;
    tnf_diff_options stopped = { .size = sizeof stopped, .threads = 1 };
    stopped.progress = stop_at_once;
    stopped.ctx = &calls;
    assert_fails(tnf_diff(&r, a.file, b.file, &stopped, &e), TNF_ECANCELLED);
    assert_int_equal(calls, 1);
    assert_null(r.failed);
    discard_file(&a);
    discard_file(&b);
    discard_file(&c);
    free(x);
    free(y);
}

/* A digest is only used instead of the bytes on request; then a wrong digest is used, too. */
static void trusts_digests_on_request(void **state)
{
    (void)state;
    struct told t;
    struct made a = begin_file(), b = begin_file();
    add_tensor(&a, "w", "f32", 6, ones);
    add_tensor(&b, "w", "f32", 6, ones);
    finish_file(&a, "ztensor2");
    finish_file(&b, "ztensor2");
    ((uint8_t *)(uintptr_t)tnf_sink_bytes(b.sink).p)[tnf_at(b.file, 0)->parts->offset] ^= 1;
    assert_false(compare_files(&t, &a, &b, (tnf_diff_options) { 0 }).same);
    assert_true(compare_files(&t, &a, &b, (tnf_diff_options) { .trust_digests = true }).same);
    discard_file(&a);
    discard_file(&b);
}

static tnf_status cannot_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const struct {
        const char *p;
        size_t n;
        uint64_t good;
    } *f = ctx;
    if (offset >= f->good)
        return tnf_fail(e, TNF_EIO, offset, "a bad day");
    memcpy(dst, f->p + offset, n);
    return TNF_OK;
}

static void which_file_failed(void **state)
{
    (void)state;
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = cannot_read };
    struct made a = begin_file();
    tnf_error e;
    tnf_file *bad;
    tnf_source *source;
    tnf_diff_result r = TNF_DIFF_RESULT_INIT;
    add_tensor(&a, "w", "f32", 6, ones);
    finish_file(&a, "safetensors");
    tnf_str bytes = tnf_sink_bytes(a.sink);
    struct {
        const char *p;
        size_t n;
        uint64_t good;
    } f = { bytes.p, bytes.n, tnf_at(a.file, 0)->parts->offset };
    assert_ok(tnf_source_custom(&source, &ops, &f, bytes.n, &e));
    assert_ok(tnf_open_source(&bad, source, NULL, &e));
    assert_fails(tnf_diff(&r, a.file, bad, NULL, &e), TNF_EIO);
    assert_ptr_equal(r.failed, bad);
    assert_fails(tnf_diff(&r, bad, a.file, NULL, &e), TNF_EIO);
    assert_ptr_equal(r.failed, bad);
    tnf_close(bad);
    discard_file(&a);
}

static void memory_runs_out(void **state)
{
    (void)state;
    struct memory_log log = { 0 };
    tnf_allocator alloc = memory_allocator(&log);
    struct made a = begin_file(), b = begin_file();
    tnf_error e;
    tnf_diff_result r = TNF_DIFF_RESULT_INIT;
    fill_model(&a);
    fill_model(&b);
    set_attribute(&b, NULL, "x.settings", "{\"k\":2}");
    finish_with(&a, "ztensor2", NULL, &alloc);
    finish_file(&b, "ztensor2");
    uint64_t before = log.calls, blocks = log.blocks;
    assert_ok(tnf_diff(&r, a.file, b.file, NULL, &e));
    uint64_t needed = log.calls - before;
    assert_true(needed > 0);
    for (uint64_t i = 1; i <= needed; i++) {
        log.fail_at = log.calls + i;
        assert_fails(tnf_diff(&r, a.file, b.file, NULL, &e), TNF_ENOMEM);
        assert_int_equal(log.blocks, blocks);
    }
    log.fail_at = 0;
    assert_int_equal(log.wrong_sizes, 0);
    discard_file(&a);
    discard_file(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same),
        cmocka_unit_test(each_kind),
        cmocka_unit_test(rows_and_columns),
        cmocka_unit_test(numbers_of_16_bytes),
        cmocka_unit_test(other_names),
        cmocka_unit_test(many_blocks),
        cmocka_unit_test(trusts_digests_on_request),
        cmocka_unit_test(which_file_failed),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
