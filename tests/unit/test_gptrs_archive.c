/* SPDX-License-Identifier: MIT */
/* gpt.rs archives through the public API: written bytes, options, content that does not fit.
 * tests/formats/gptrs-archive has the content of each fixture, and each refusal with its offset. */
#include "gptrs_files.h"

#define FORMAT "gptrs-archive"

static void test_bytes_as_upstream_writes_them(void **state)
{
    (void)state;
    assert_bytes_of_upstream(FORMAT, 18);
}

static void test_align(void **state)
{
    (void)state;
    static const char *const names[] = { "edge.gten", "unicode.gten", "ten_v2_empty.gten" };
    for (size_t i = 0; i < 3; i++) {
        char want_name[80];
        snprintf(want_name, sizeof want_name, "align64_%s", names[i]);
        bytes file = load_fixture(FORMAT, "valid", names[i]);
        bytes want = load_fixture(FORMAT, "written", want_name);
        assert_non_null(want.p);
        tnf_file *f = must_open(&file);
        bytes got = save_file(f, FORMAT, (const char *[]) { "align", "64", NULL });
        assert_same_bytes(&got, &want, want_name);
        tnf_file *g = must_open(&got);
        bytes back = save_file(g, FORMAT, NULL);
        assert_same_bytes(&back, &file, names[i]);
        tnf_close(g);
        tnf_close(f);
        free(back.p);
        free(got.p);
        free(want.p);
        free(file.p);
    }
}

static void test_order_of_file(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "unsorted.gten");
    tnf_file *f = must_open(&file);
    bytes got = save_file(f, FORMAT, (const char *[]) { "order", "file", NULL });
    assert_same_bytes(&got, &file, "order=file");
    tnf_close(f);
    free(got.p);
    free(file.p);
}

/* Converting between the two formats of the family loses nothing that both can hold; an archive
 * cannot hold a config. */
static void test_between_the_two(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "ten_v2_mixed.gten"), none;
    tnf_file *f = must_open(&file);
    bytes checkpoint = save_file(f, "gptrs-checkpoint", NULL);
    tnf_file *g = must_open(&checkpoint);
    assert_null(tnf_value_get(tnf_file_info(g)->attrs, "gptrs.config")); /* the archive had none */
    bytes back = save_file(g, FORMAT, NULL);
    assert_same_bytes(&back, &file, "archive to checkpoint and back");
    tnf_close(g);
    tnf_close(f);
    free(back.p);
    free(checkpoint.p);
    free(file.p);

    file = load_fixture("gptrs-checkpoint", "valid", "chk_v2_gpt_small.bin");
    tnf_builder *b;
    tnf_error e;
    f = must_open(&file);
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_builder_add_file(b, f, &e), TNF_OK);
    assert_int_equal(save_builder(&none, b, FORMAT, NULL, &e), TNF_ELOSSY);
    assert_non_null(strstr(e.message, "gptrs.config"));
    tnf_builder_free(b);
    tnf_close(f);
    free(file.p);
}

static void test_odd_grad_is_kept(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "grad_7.gten");
    tnf_file *f = must_open(&file);
    const tnf_value *v = tnf_value_get(tnf_at(f, 0)->attrs, "gptrs.requires_grad");
    assert_true(v && v->kind == TNF_UINT && v->dtype == TNF_U8 && v->as.u == 7);
    tnf_close(f);
    free(file.p);
}

static void test_every_cut_and_flip(void **state)
{
    (void)state;
    static const char *const names[] = { "ten_v2_mixed.gten", "v1_mixed.gten",
                                         "ten_v2_bincode_transitional.gten" };
    for (size_t i = 0; i < 3; i++) {
        bytes file = load_fixture(FORMAT, "valid", names[i]);
        assert_non_null(file.p);
        for (size_t n = 0; n < file.n; n++) {
            bytes cut = { 0 };
            tnf_file *f = NULL;
            tnf_error e = { 0 };
            add_bytes(&cut, file.p, n);
            assert_int_not_equal(open_bytes(&f, &cut, false, &e), TNF_OK);
            free(cut.p);
        }
        for (size_t bit = 0; bit < 8 * file.n; bit++) {
            tnf_file *f = NULL;
            tnf_error e = { 0 };
            file.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (open_bytes(&f, &file, bit % 2, &e) == TNF_OK)
                assert_non_null(tnf_file_info(f)->format);
            tnf_close(f);
            file.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(file.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_as_upstream_writes_them),
        cmocka_unit_test(test_align),
        cmocka_unit_test(test_order_of_file),
        cmocka_unit_test(test_between_the_two),
        cmocka_unit_test(test_odd_grad_is_kept),
        cmocka_unit_test(test_every_cut_and_flip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
