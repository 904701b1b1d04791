/* SPDX-License-Identifier: MIT */
/* primitiv files through other formats and back have the same bytes; so do files of other formats
 * through primitiv. Content that a format cannot hold is refused before anything is written. */
#include "../support/unit.h"
#include "primitiv_files.h"

#include <dirent.h>

static tnf_status save_as(bytes *out, const tnf_file *f, const char *format, tnf_error *e)
{
    tnf_builder *b;
    assert_int_equal(tnf_builder_new(&b, NULL, e), TNF_OK);
    assert_int_equal(tnf_builder_add_file(b, f, e), TNF_OK);
    tnf_status status = save_builder(out, b, format, NULL, e);
    tnf_builder_free(b);
    return status;
}

/* Converts to the format and back; false if the format cannot hold the file. */
static bool same_by_way_of(const char *format, const tnf_file *f, const bytes *want,
                           const char *name)
{
    bytes there, back;
    tnf_error e;
    tnf_status status = save_as(&there, f, format, &e);
    if (status == TNF_ELOSSY)
        return false;
    if (status != TNF_OK)
        fail_msg("%s to %s: %s", name, format, e.message);
    tnf_file *g = must_open(&there);
    assert_string_equal(tnf_file_info(g)->format, format);
    if (save_as(&back, g, "primitiv", &e) != TNF_OK)
        fail_msg("%s from %s: %s", name, format, e.message);
    assert_same_bytes(&back, want, name);
    tnf_close(g);
    free(back.p);
    free(there.p);
    return true;
}

/* Every file that opens; `want` is what primitiv writes of it. */
static void every_fixture(const char *format, int *through, int *refused)
{
    DIR *dir = opendir(TNF_TESTS_DIR "/formats/primitiv/valid");
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        bytes file = load_fixture("primitiv", "valid", d->d_name), want;
        tnf_file *f;
        tnf_error e;
        if (d->d_name[0] == '.' || open_bytes(&f, &file, false, &e) != TNF_OK) {
            free(file.p);
            continue;
        }
        assert_ok(save_as(&want, f, "primitiv", &e));
        bool went = same_by_way_of(format, f, &want, d->d_name);
        *through += went;
        *refused += !went;
        tnf_close(f);
        free(want.p);
        free(file.p);
    }
    closedir(dir);
}

/* Refused: a statistic whose name is not UTF-8 (1), bytes after the object (1), and names that the
 * format itself does not allow. */
static void test_safetensors(void **state)
{
    (void)state;
    int through = 0, refused = 0;
    every_fixture("safetensors", &through, &refused);
    assert_true(through >= 70);
    assert_int_equal(refused, 2);
}

static void test_ztensor(void **state)
{
    (void)state;
    static const char *const versions[] = { "ztensor2", "ztensor1", "ztensor0" };
    static const int closed[] = { 3, 1, 1 }; /* zTensor 2: no empty, no very long name, no NUL */
    for (int i = 0; i < 3; i++) {
        int through = 0, refused = 0;
        every_fixture(versions[i], &through, &refused);
        assert_true(through >= 70);
        assert_int_equal(refused, closed[i]);
    }
}

static void test_gptrs(void **state)
{
    (void)state;
    int through = 0, refused = 0;
    every_fixture("gptrs-checkpoint", &through, &refused);
    assert_true(through >= 70);
    assert_int_equal(refused, 2);
    through = refused = 0;
    every_fixture("gptrs-archive", &through, &refused); /* no metadata: only plain models */
    assert_true(through >= 4 && refused > 50);
}

/* Other content that the format keeps: paths, keys, batches and configs can be read from the file
 * in between. */
static void test_in_between(void **state)
{
    (void)state;
    static const tnf_str sm_p[] = { TNF_STR("sm"), TNF_STR("p") };
    static const tnf_str key = TNF_STR("b"), batched = TNF_STR("batched");
    static const uint32_t dims[] = { 2, 2 };
    static const char *const ways[] = { "safetensors", "ztensor2", "gptrs-checkpoint" };
    for (int i = 0; i < 3; i++) {
        fixture f = open_primitiv("model_upstream_with_stats");
        bytes there;
        tnf_error e;
        float data[4];
        uint32_t u;
        tnf_primitiv_binding b = { sm_p, 2, &key, { dims, 2, 1 }, data, false };
        tnf_primitiv_bind_options o = { .size = sizeof o, .allow_extra = true };
        const tnf_object *object;
        assert_ok(save_as(&there, f.file, ways[i], &e));
        tnf_file *g = must_open(&there);
        assert_ok(tnf_primitiv_bind(g, &b, 1, &o, &e));
        assert_true(b.loaded && data[0] == 50 && data[1] == 60 && data[2] == 70 && data[3] == 80);
        tnf_close(g);
        free(there.p);
        close_primitiv(&f);

        f = open_primitiv("parameter_stats_many");
        assert_ok(save_as(&there, f.file, ways[i], &e));
        g = must_open(&there);
        assert_ok(tnf_primitiv_find(&object, g, NULL, 0, &batched, &e));
        const tnf_value *batch = tnf_value_get(object->attrs, "primitiv.batch");
        assert_true(batch && batch->kind == TNF_UINT && batch->as.u == 3);
        tnf_close(g);
        free(there.p);
        close_primitiv(&f);

        f = open_primitiv("optimizer_Adam_upstream");
        assert_ok(save_as(&there, f.file, ways[i], &e));
        g = must_open(&there);
        assert_true(tnf_primitiv_uint(&u, g, "Optimizer.epoch") && u == 5);
        tnf_close(g);
        free(there.p);
        close_primitiv(&f);
    }
}

/* In the other direction: row-major matrices come back row-major, byte for byte. */
static void test_others_by_way_of_primitiv(void **state)
{
    (void)state;
    static const char *const ways[] = { "safetensors", "ztensor2", "gptrs-checkpoint",
                                        "gptrs-archive" };
    float values[24];
    for (int i = 0; i < 24; i++)
        values[i] = (float)i;
    for (int i = 0; i < 4; i++) {
        tnf_builder *b;
        tnf_error e;
        bytes first, there, back;
        const tnf_type *f32 = tnf_type_of(TNF_F32);
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(tnf_builder_add(b, "a.w", f32, 2, (uint64_t[]) { 4, 6 }, values, &e));
        assert_ok(tnf_builder_add(b, "a.x", f32, 3, (uint64_t[]) { 2, 3, 4 }, values, &e));
        assert_ok(tnf_builder_add(b, "b", f32, 1, (uint64_t[]) { 24 }, values, &e));
        assert_ok(save_builder(&first, b, ways[i], NULL, &e));
        tnf_builder_free(b);
        tnf_file *f = must_open(&first);
        tnf_status status = save_as(&there, f, "primitiv", &e);
        if (status != TNF_OK)
            fail_msg("from %s: %s", ways[i], e.message);
        tnf_close(f);
        f = must_open(&there);
        const tnf_object *w = tnf_find(f, "a.w");
        float turned[24];
        assert_true(w && w->order == TNF_ORDER_F && w->shape[0] == 4 && w->shape[1] == 6);
        assert_ok(tnf_read(turned, sizeof turned, w, &e));
        for (int k = 0; k < 24; k++)
            assert_true(turned[k / 6 + 4 * (k % 6)] == (float)k);
        assert_ok(save_as(&back, f, ways[i], &e));
        assert_same_bytes(&back, &first, ways[i]);
        tnf_close(f);
        free(first.p);
        free(there.p);
        free(back.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_ztensor),
        cmocka_unit_test(test_gptrs),
        cmocka_unit_test(test_in_between),
        cmocka_unit_test(test_others_by_way_of_primitiv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
