/* SPDX-License-Identifier: MIT */
/* Loading by path: like primitiv's load, but completely or not at all. The three rules (unknown
 * paths are refused, missing ones are ignored, the order is free) were observed in the library. */
#include "../support/little.h"
#include "../support/memory.h"
#include "../support/unit.h"
#include "primitiv_files.h"

#include <math.h>

static const tnf_str p[] = { TNF_STR("p") }, sm_p[] = { TNF_STR("sm"), TNF_STR("p") };
static const tnf_str a = TNF_STR("a"), b = TNF_STR("b");
static const uint32_t dims[] = { 2, 2, 1 };
#define SQUARE                                                                                     \
    {                                                                                              \
        dims, 3, 0                                                                                 \
    }

static void assert_untouched(const float *data)
{
    for (int i = 0; i < 4; i++)
        assert_true(data[i] == -1);
}

struct heard {
    size_t missing, extra;
    char last[32];
};

static void on_missing(void *ctx, const tnf_primitiv_binding *binding)
{
    struct heard *h = ctx;
    h->missing++;
    tnf_primitiv_join(h->last, sizeof h->last, binding->path, binding->n);
}

static void on_extra(void *ctx, const tnf_object *object)
{
    struct heard *h = ctx;
    h->extra++;
    snprintf(h->last, sizeof h->last, "%s", object->name.p);
}

static void test_all_of_a_model(void **state)
{
    (void)state;
    fixture f = open_primitiv("model_upstream_with_stats");
    float data[4][4];
    tnf_primitiv_binding all[] = { { sm_p, 2, &b, SQUARE, data[3], false },
                                   { p, 1, NULL, SQUARE, data[0], false },
                                   { p, 1, &a, SQUARE, data[1], false },
                                   { sm_p, 2, NULL, SQUARE, data[2], false } };
    static const float want[4][4] = {
        { 1, 2, 3, 4 }, { 10, 20, 30, 40 }, { 5, 6, 7, 8 }, { 50, 60, 70, 80 }
    };
    struct heard h = { 0 };
    tnf_primitiv_bind_options o = { .size = sizeof o, .need_all = true };
    tnf_error e;
    o.missing = on_missing;
    o.extra = on_extra;
    o.ctx = &h;
    assert_ok(tnf_primitiv_bind(f.file, all, 4, &o, &e));
    assert_memory_equal(data, want, sizeof want);
    assert_true(all[0].loaded && all[3].loaded);
    assert_true(h.missing == 0 && h.extra == 0);

    /* Unexpected statistics are not an error; unexpected parameters are. */
    assert_ok(tnf_primitiv_bind(f.file, (tnf_primitiv_binding[]) { all[1], all[3] }, 2, &o, &e));
    assert_int_equal(h.extra, 2);
    memset(data, 0, sizeof data);
    for (int i = 0; i < 16; i++)
        data[i / 4][i % 4] = -1;
    assert_fails(tnf_primitiv_bind(f.file, &all[1], 2, NULL, &e), TNF_ENOTFOUND);
    assert_says("1 parameter without a binding: 'sm.p'");
    assert_fails(tnf_primitiv_bind(f.file, NULL, 0, NULL, &e), TNF_ENOTFOUND);
    assert_says("2 parameters without a binding; the first is ");
    assert_untouched(data[0]);
    assert_untouched(data[1]);
    o.allow_extra = true;
    assert_ok(tnf_primitiv_bind(f.file, &all[1], 2, &o, &e));
    assert_memory_equal(data[1], want[1], sizeof want[1]);
    close_primitiv(&f);
}

static void test_missing_ones_stay_as_they_are(void **state)
{
    (void)state;
    static const tnf_str x[] = { TNF_STR("x") };
    fixture f = open_primitiv("model_upstream_same");
    float data[4][4] = { { 0 }, { 0 }, { -1, -1, -1, -1 }, { -1, -1, -1, -1 } };
    tnf_primitiv_binding all[] = { { p, 1, NULL, SQUARE, data[0], false },
                                   { sm_p, 2, NULL, SQUARE, data[1], false },
                                   { x, 1, NULL, SQUARE, data[2], true },
                                   { p, 1, &a, SQUARE, data[3], true } };
    struct heard h = { 0 };
    tnf_primitiv_bind_options o = { .size = sizeof o, .missing = on_missing };
    tnf_error e;
    o.ctx = &h;
    assert_ok(tnf_primitiv_bind(f.file, all, 4, &o, &e));
    assert_true(all[0].loaded && all[1].loaded && !all[2].loaded && !all[3].loaded);
    assert_true(data[0][0] == 1 && data[1][3] == 8);
    assert_untouched(data[2]);
    assert_untouched(data[3]);
    assert_int_equal(h.missing, 2);
    data[0][0] = -1;
    o.need_all = true;
    assert_fails(tnf_primitiv_bind(f.file, all, 4, &o, &e), TNF_ENOTFOUND);
    assert_says("the file lacks 2 tensors that bindings need; the first is 'x'");
    assert_fails(tnf_primitiv_bind(f.file, all, 3, &o, &e), TNF_ENOTFOUND);
    assert_says("the file lacks 1 tensor that a binding needs: 'x'");
    assert_true(data[0][0] == -1);
    close_primitiv(&f);
}

static void check_refused(const fixture *f, const tnf_primitiv_binding *second, const char *why)
{
    float data[4] = { -1, -1, -1, -1 };
    tnf_primitiv_binding both[] = { { p, 1, NULL, SQUARE, data, false }, *second };
    tnf_error e;
    assert_fails(tnf_primitiv_bind(f->file, both, 2, NULL, &e), TNF_EINVAL);
    assert_says(why);
    assert_untouched(data);
    assert_false(both[0].loaded);
}

static void test_what_does_not_fit(void **state)
{
    (void)state;
    static const uint32_t other[] = { 2, 3 }, zero[] = { 0 };
    fixture f = open_primitiv("model_upstream_same");
    float data[8];
    tnf_primitiv_binding second = { sm_p, 2, NULL, { other, 2, 1 }, data, false };
    check_refused(&f, &second, "'sm.p' has the shape [2,2], not [2,3]");
    second.shape = (tnf_primitiv_shape) { dims, 1, 2 };
    check_refused(&f, &second, "not [2,2]"); /* a batch is not a dimension */
    second.shape = (tnf_primitiv_shape) { zero, 1, 1 };
    check_refused(&f, &second, "dimension 0 of a shape is 0");
    second.shape = (tnf_primitiv_shape)SQUARE;
    second.data = NULL;
    check_refused(&f, &second, "has no memory");
    second = (tnf_primitiv_binding) { p, 1, NULL, SQUARE, data, false };
    check_refused(&f, &second, "two bindings of the tensor 'p'");
    close_primitiv(&f);
}

static void test_nameless_and_batched(void **state)
{
    (void)state;
    static const tnf_str value[] = { TNF_STR("value") }, batched = TNF_STR("batched");
    fixture f = open_primitiv("parameter_stats_many");
    float data[4], many[6];
    tnf_primitiv_binding all[] = { { NULL, 0, NULL, SQUARE, data, false },
                                   { NULL, 0, &batched, { dims, 1, 3 }, many, false } };
    tnf_error e;
    assert_ok(tnf_primitiv_bind(f.file, all, 2, NULL, &e));
    assert_true(all[0].loaded && all[1].loaded && many[5] == 6);
    all[0].path = value;
    all[0].n = 1;
    assert_fails(tnf_primitiv_bind(f.file, all, 1, NULL, &e), TNF_ENOTFOUND);
    close_primitiv(&f);
}

/* A file of another format, row-major: loaded parameters are still column-major. */
static void test_row_major(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2, 3, 2 };
    static const uint32_t same[] = { 2, 3, 2 }, flat[] = { 3, 4 };
    float rows[12], cube[12], matrix[12];
    for (int i = 0; i < 12; i++)
        rows[i] = (float)i;
    tnf_builder *build;
    tnf_error e;
    bytes got;
    assert_ok(tnf_builder_new(&build, NULL, &e));
    assert_ok(
        tnf_builder_add(build, "a.c", tnf_type_of(TNF_F32), 3, shape, to_little(rows, 4, 12), &e));
    assert_ok(tnf_builder_add(build, "m", tnf_type_of(TNF_F32), 2, (uint64_t[]) { 3, 4 },
                              to_little(rows, 4, 12), &e));
    assert_ok(tnf_builder_add(build, "i", tnf_type_of(TNF_I32), 1, (uint64_t[]) { 4 }, rows, &e));
    assert_ok(save_builder(&got, build, "safetensors", NULL, &e));
    tnf_builder_free(build);
    tnf_file *f = must_open(&got);
    static const tnf_str c[] = { TNF_STR("a"), TNF_STR("c") }, m[] = { TNF_STR("m") };
    static const tnf_str i32[] = { TNF_STR("i") };
    tnf_primitiv_binding all[] = { { c, 2, NULL, { same, 3, 1 }, cube, false },
                                   { m, 1, NULL, { flat, 2, 1 }, matrix, false },
                                   { i32, 1, NULL, { &flat[1], 1, 1 }, rows, false } };
    tnf_primitiv_bind_options o = { .size = sizeof o, .allow_extra = true };
    assert_ok(tnf_primitiv_bind(f, all, 2, &o, &e));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            for (int l = 0; l < 2; l++)
                assert_true(cube[i + 2 * (k + 3 * l)] == rows[(i * 3 + k) * 2 + l]);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            assert_true(matrix[i + 3 * k] == rows[i * 4 + k]);
    assert_fails(tnf_primitiv_bind(f, all, 3, &o, &e), TNF_EINVAL);
    assert_says("not a tensor of 32-bit floats");
    tnf_close(f);
    free(got.p);
}

/* The library's results for unusual files, loaded into a model with p and sm/p; but if loading
 * fails here, nothing is changed. NAN: not changed. */
static void test_answers_of_the_library(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float p, sm_p;
        const char *why;
    } answers[] = {
        { "probe_m_ok", 1, 2, NULL },
        { "probe_m_reversed", 1, 2, NULL },
        { "probe_m_missing", 1, NAN, NULL },
        { "probe_m_trailing", 1, NAN, NULL },
        { "probe_m_dup", 9, NAN, NULL },
        { "probe_m_unknown_first", NAN, NAN, "'x'" },
        { "probe_m_unknown_last", NAN, NAN, "'x'" },
        { "probe_m_key_dotted", NAN, NAN, "sm" },
        { "probe_m_key_submodel", NAN, NAN, "'sm'" },
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        fixture f = open_primitiv(answers[i].name);
        float data[] = { NAN, NAN };
        tnf_primitiv_binding both[] = { { p, 1, NULL, { NULL, 0, 1 }, &data[0], false },
                                        { sm_p, 2, NULL, { NULL, 0, 1 }, &data[1], false } };
        tnf_error e = { 0 };
        tnf_status status = tnf_primitiv_bind(f.file, both, 2, NULL, &e);
        assert_int_equal(status, answers[i].why ? TNF_ENOTFOUND : TNF_OK);
        assert_true(!answers[i].why || strstr(e.message, answers[i].why));
        assert_true(isnan(answers[i].p) ? isnan(data[0]) : data[0] == answers[i].p);
        assert_true(isnan(answers[i].sm_p) ? isnan(data[1]) : data[1] == answers[i].sm_p);
        close_primitiv(&f);
    }
}

/* Reading fails in the middle: nothing is changed. */
struct broken {
    bytes *bytes;
    uint64_t from;
};

static tnf_status read_broken(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const struct broken *s = ctx;
    (void)e;
    if (offset + n > s->from)
        return TNF_EIO;
    memcpy(dst, s->bytes->p + offset, n);
    return TNF_OK;
}

static void test_bytes_that_cannot_be_read(void **state)
{
    (void)state;
    fixture f = open_primitiv("model_upstream_same");
    struct broken s = { &f.bytes, UINT64_MAX };
    tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = read_broken };
    tnf_source *source;
    tnf_file *file;
    tnf_error e = { 0 };
    float data[2][4] = { { -1, -1, -1, -1 }, { -1, -1, -1, -1 } };
    tnf_primitiv_binding all[] = { { p, 1, NULL, SQUARE, data[0], false },
                                   { sm_p, 2, NULL, SQUARE, data[1], false } };
    assert_ok(tnf_source_custom(&source, &ops, &s, f.bytes.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    s.from = f.bytes.n - 10; /* within the last parameter's data */
    assert_int_equal(tnf_primitiv_bind(file, all, 2, NULL, &e), TNF_EIO);
    assert_untouched(data[0]);
    assert_untouched(data[1]);
    s.from = UINT64_MAX;
    assert_ok(tnf_primitiv_bind(file, all, 2, NULL, &e));
    assert_true(data[1][3] == 8);
    tnf_close(file);
    close_primitiv(&f);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    fixture f = open_primitiv("model_upstream_same");
    for (uint64_t n = 1;; n++) {
        struct memory_log log = { .fail_at = n };
        float data[2][4] = { { -1, -1, -1, -1 }, { -1, -1, -1, -1 } };
        tnf_primitiv_binding all[] = { { p, 1, NULL, SQUARE, data[0], false },
                                       { sm_p, 2, NULL, SQUARE, data[1], false } };
        tnf_primitiv_bind_options o = { .size = sizeof o, .allocator = memory_allocator(&log) };
        tnf_error e;
        tnf_status status = tnf_primitiv_bind(f.file, all, 2, &o, &e);
        assert_true(log.live == 0 && log.wrong_sizes == 0);
        if (status == TNF_OK) {
            assert_true(n > 4 && log.failed == 0);
            break;
        }
        assert_int_equal(status, TNF_ENOMEM);
        assert_untouched(data[0]);
        assert_untouched(data[1]);
    }
    close_primitiv(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_a_model),
        cmocka_unit_test(test_missing_ones_stay_as_they_are),
        cmocka_unit_test(test_what_does_not_fit),
        cmocka_unit_test(test_nameless_and_batched),
        cmocka_unit_test(test_row_major),
        cmocka_unit_test(test_answers_of_the_library),
        cmocka_unit_test(test_bytes_that_cannot_be_read),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
