/* SPDX-License-Identifier: MIT */
/* zTensor 1.x through the public API: written bytes, options, kept content. tests/formats/ztensor1
 * has the content of each fixture, and each refusal with its offset. */
#include "gptrs_files.h"

#include <tenfold/tenfold.h>

#define FORMAT "ztensor1"

static void assert_again(const char *name, bool same)
{
    bytes file = load_fixture(FORMAT, "valid", name);
    tnf_file *f = must_open(&file);
    bytes got = save_file(f, FORMAT, NULL);
    if (same)
        assert_same_bytes(&got, &file, name);
    else
        assert_true(got.n != file.n);
    tnf_file *g = must_open(&got);
    assert_string_equal(tnf_file_info(g)->version, "1.2.0");
    assert_int_equal(tnf_file_info(g)->objects, tnf_file_info(f)->objects);
    tnf_close(g);
    free(got.p);
    tnf_close(f);
    free(file.p);
}

/* Files of the package 1.2.3, and files made like them, stay the same. */
static void bytes_of_the_library(void **state)
{
    (void)state;
    assert_again("real_1.2.3_package.zt", true);
    assert_again("types.zt", true);
    assert_again("logical.zt", true);
    assert_again("layouts.zt", true);
    assert_again("attributes.zt", true);
    assert_again("real_1.1.1_package.zt", false);
    assert_again("real_1.0.1_package.zt", false);
}

static void no_tensors(void **state)
{
    (void)state;
    static const char want[] = "ZTEN1000\xa2\x67version\x65"
                               "1.2.0\x67objects\xa0\x18\0\0\0\0\0\0\0ZTEN1000";
    tnf_builder *b;
    bytes got;
    assert_int_equal(tnf_builder_new(&b, NULL, NULL), TNF_OK);
    assert_int_equal(save_builder(&got, b, FORMAT, NULL, NULL), TNF_OK);
    assert_int_equal(got.n, sizeof want - 1);
    assert_memory_equal(got.p, want, got.n);
    free(got.p);
    tnf_builder_free(b);
}

static void options_keep_values(void **state)
{
    (void)state;
    static const char *const sets[][7] = {
        { "encoding", "zstd", "level", "7", "checksum", "sha256", NULL },
        { "encoding", "raw", "checksum", "crc32c", NULL },
        { "encoding", "raw", "checksum", "none", NULL },
    };
    bytes file = load_fixture(FORMAT, "valid", "real_1.2.3_package.zt");
    tnf_file *f = must_open(&file);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        bytes got = save_file(f, FORMAT, sets[i]);
        tnf_file *g = must_open(&got);
        tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
        assert_int_equal(tnf_verify(&result, g, NULL, NULL), TNF_OK);
        assert_int_equal(result.problems, 0);
        assert_int_equal(result.undigested, i == 2 ? result.checked : 0);
        for (size_t k = 0; tnf_at(g, k); k++)
            for (uint16_t p = 0; p < tnf_at(g, k)->nparts; p++)
                assert_int_equal(tnf_at(g, k)->parts[p].payload, i == 0 ? TNF_ENCODED : TNF_AT);
        tnf_close(g);
        free(got.p);
    }
    tnf_close(f);
    free(file.p);
}

/* Parts are in the order of the layout, for any order of the map, and indices of 32 bits have our
 * own layout. */
static void parts_of_sparse(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "layouts.zt");
    tnf_file *f = must_open(&file);
    const tnf_object *csr = tnf_find(f, "csr"), *narrow = tnf_find(f, "csr32");
    static const char *const roles[] = { "values", "indices", "indptr" };
    for (int i = 0; i < 3; i++) {
        assert_string_equal(csr->parts[i].role, roles[i]);
        assert_string_equal(narrow->parts[i].role, roles[i]);
    }
    assert_string_equal(narrow->parts[1].type->id, "u32");
    assert_string_equal(tnf_layout_id(narrow->layout), "sparse_csr/1");
    assert_string_equal(tnf_object_part(tnf_find(f, "other"), "a")->type->id, "u8");
    tnf_close(f);
    free(file.p);
}

/* From 0.1 to 1.x and back: custom fields, checksums and frames are the same, byte for byte. The
 * byte order is not kept, because 1.x cannot store it. */
static void from_0_1_and_back(void **state)
{
    (void)state;
    static const char *const names[] = { "zstd.zt", "checksums_other.zt", "custom_plain.zt",
                                         "types_raw.zt" };
    for (size_t i = 0; i < 4; i++) {
        bytes file = load_fixture("ztensor0", "valid", names[i]);
        tnf_file *f = must_open(&file);
        bytes old = save_file(f, "ztensor0", NULL), one = save_file(f, FORMAT, NULL);
        tnf_file *g = must_open(&one);
        bytes back = save_file(g, "ztensor0", NULL);
        assert_same_bytes(&back, &old, names[i]);
        free(back.p);
        tnf_close(g);
        free(one.p);
        free(old.p);
        tnf_close(f);
        free(file.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_the_library), cmocka_unit_test(no_tensors),
        cmocka_unit_test(options_keep_values),  cmocka_unit_test(parts_of_sparse),
        cmocka_unit_test(from_0_1_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
