/* SPDX-License-Identifier: MIT */
/* zTensor 0.1 through the public API: written bytes, options, kept content. tests/formats/ztensor0
 * has the content of each fixture, and each refusal with its offset. */
#include "gptrs_files.h"

#include <tenfold/tenfold.h>

#define FORMAT "ztensor0"

static const uint64_t two_two[] = { 2, 2 };

static tnf_builder *builder_of(const char *name, tnf_dtype dtype, const void *data)
{
    tnf_builder *b;
    assert_int_equal(tnf_builder_new(&b, NULL, NULL), TNF_OK);
    assert_int_equal(tnf_builder_add(b, name, tnf_type_of(dtype), 2, two_two, data, NULL), TNF_OK);
    return b;
}

static bytes must_save(const tnf_builder *b, const char *const *options)
{
    bytes out = { 0 };
    tnf_error e;
    if (save_builder(&out, b, FORMAT, options, &e) != TNF_OK)
        fail_msg("%s", e.message);
    return out;
}

/* The file is the magic number, zeros, the data at 64, the index, its length. */
static void assert_file(const bytes *got, const void *data, size_t n, const char *index, size_t m)
{
    bytes want = { 0 };
    static const uint8_t zeros[56];
    add_text(&want, "ZTEN0001");
    add_bytes(&want, zeros, sizeof zeros);
    add_bytes(&want, data, n);
    add_bytes(&want, index, m);
    add_number(&want, m, 8);
    assert_same_bytes(got, &want, "file");
    free(want.p);
}

/* The released writer's bytes for a tensor with three custom fields; from the fact sheet. */
static void bytes_of_the_released_writer(void **state)
{
    (void)state;
    static const char index[] = "\x81\xbf\x64name\x61"
                                "a\x66offset\x18\x40\x64size\x10\x65"
                                "dtype\x67"
                                "float32\x66layout\x65"
                                "dense\x65shape\x82\x02\x02\x68"
                                "encoding\x63raw\x6f"
                                "data_endianness\x66little\x68"
                                "checksum\x71"
                                "crc32c:0x42709AEA\x61"
                                "f\xf9\x3e\x00\x64note\x62hi\x62zz\x19\x01\x2c\xff";
    static const uint8_t zeros[16];
    static const tnf_member custom[] = {
        { { "f", 1 }, { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = 1.5 } },
        { { "note", 4 }, { .kind = TNF_STRING, .n = 2, .as.s = "hi" } },
        { { "zz", 2 }, { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = 300 } },
    };
    tnf_value map = { .kind = TNF_MAP, .n = 3, .as.members = custom };
    tnf_builder *b = builder_of("a", TNF_F32, zeros);
    assert_int_equal(tnf_builder_set(b, "a", "ztensor.custom", &map, NULL), TNF_OK);
    bytes got = must_save(b, (const char *[]) { "checksum", "crc32c", NULL });
    assert_file(&got, zeros, sizeof zeros, index, sizeof index - 1);
    free(got.p);
    tnf_builder_free(b);
}

static void dialect_of_the_document(void **state)
{
    (void)state;
    static const char index[] = "\x81\xa7\x64name\x61"
                                "a\x66offset\x18\x40\x64size\x10\x65"
                                "dtype\x65int32\x65shape\x82\x02\x02\x68"
                                "encoding\x63raw\x6f"
                                "data_endianness\x63"
                                "big";
    static const uint8_t data[16] = { 1, 2, 3, 4, 5 }, swapped[16] = { 4, 3, 2, 1, 0, 0, 0, 5 };
    static const char *const options[] = {
        "layout", "no", "maps", "definite", "endian", "big", NULL
    };
    tnf_builder *b = builder_of("a", TNF_I32, data);
    bytes got = must_save(b, options);
    assert_file(&got, swapped, sizeof swapped, index, sizeof index - 1);
    tnf_file *f = must_open(&got);
    uint8_t read[16];
    assert_string_equal(tnf_file_info(f)->version, "0.1-draft");
    assert_int_equal(tnf_read(read, sizeof read, tnf_find(f, "a"), NULL), TNF_OK);
    assert_memory_equal(read, data, sizeof data);
    tnf_close(f);
    free(got.p);
    tnf_builder_free(b);
}

static void no_tensors(void **state)
{
    (void)state;
    tnf_builder *b;
    assert_int_equal(tnf_builder_new(&b, NULL, NULL), TNF_OK);
    bytes got = must_save(b, NULL);
    assert_int_equal(got.n, 17);
    assert_memory_equal(got.p, "ZTEN0001\x80\1\0\0\0\0\0\0\0", 17);
    free(got.p);
    tnf_value v = tnf_value_string("here");
    assert_int_equal(tnf_builder_set(b, NULL, "made", &v, NULL), TNF_OK);
    got = must_save(b, NULL);
    tnf_file *f = must_open(&got);
    assert_int_equal(tnf_file_info(f)->objects, 0);
    assert_string_equal(tnf_value_get(tnf_file_info(f)->attrs, "made")->as.s, "here");
    tnf_close(f);
    free(got.p);
    tnf_builder_free(b);
}

/* Files of the real writers stay the same, compressed ones, too. */
static void real_files(void **state)
{
    (void)state;
    static const char *const names[] = { "real_0.1.4_library.zt", "real_0.1.4_package.zt" };
    for (size_t i = 0; i < 2; i++) {
        bytes file = load_fixture(FORMAT, "valid", names[i]);
        tnf_file *f = must_open(&file);
        bytes got = save_file(f, FORMAT, NULL);
        assert_same_bytes(&got, &file, names[i]);
        free(got.p);
        tnf_close(f);
        free(file.p);
    }
}

static void a_name_twice(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "real_0.1.4_library.zt"), none;
    tnf_file *f = must_open(&file);
    tnf_builder *b;
    tnf_error e;
    uint8_t byte;
    assert_ptr_equal(tnf_find(f, "a"), tnf_at(f, 0));
    assert_string_equal(tnf_at(f, 4)->name.p, "a");
    assert_int_equal(tnf_read(&byte, 1, tnf_at(f, 4), NULL), TNF_OK);
    assert_int_equal(byte, 2);
    /* Other formats have no place for the second tensor. */
    assert_int_equal(tnf_builder_new(&b, NULL, NULL), TNF_OK);
    assert_int_equal(tnf_builder_add_file(b, f, NULL), TNF_OK);
    assert_int_equal(save_builder(&none, b, "safetensors", NULL, &e), TNF_ELOSSY);
    assert_non_null(strstr(e.message, "same name"));
    /* A builder does not accept the same name from a second file. */
    assert_int_equal(tnf_builder_add_file(b, f, &e), TNF_EEXISTS);
    tnf_builder_free(b);
    tnf_close(f);
    free(file.p);
}

/* With every option, the file has the same values and a right digest. */
static void options_keep_values(void **state)
{
    (void)state;
    static const char *const sets[][7] = {
        { "encoding", "zstd", "checksum", "sha256", NULL },
        { "encoding", "zstd", "level", "19", "checksum", "crc32c", NULL },
        { "encoding", "raw", "endian", "big", "checksum", "sha256", NULL },
        { "encoding", "raw", "endian", "little", "checksum", "crc32c", NULL },
        { "maps", "definite", "checksum", "none", NULL },
    };
    bytes file = load_fixture(FORMAT, "valid", "types_big.zt");
    tnf_file *f = must_open(&file);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        bytes got = save_file(f, FORMAT, sets[i]);
        tnf_file *g = must_open(&got);
        tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
        assert_int_equal(tnf_verify(&result, g, NULL, NULL), TNF_OK);
        assert_int_equal(result.problems, 0);
        assert_int_equal(result.undigested, i == 4 ? result.checked : 0);
        for (size_t k = 0; tnf_at(f, k); k++) {
            uint8_t x[48], y[48];
            size_t n = (size_t)tnf_at(f, k)->parts->nbytes;
            assert_int_equal(tnf_read(x, n, tnf_at(f, k), NULL), TNF_OK);
            assert_int_equal(tnf_read(y, n, tnf_at(g, k), NULL), TNF_OK);
            assert_memory_equal(x, y, n);
            assert_int_equal(tnf_at(g, k)->parts->payload, i < 2 ? TNF_ENCODED : TNF_AT);
            assert_int_equal(tnf_at(g, k)->parts->offset % 64, 0);
        }
        tnf_close(g);
        free(got.p);
    }
    tnf_close(f);
    free(file.p);
}

/* An unknown checksum is kept only if the bytes do not change. */
static void unknown_checksums(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "checksums_other.zt");
    tnf_file *f = must_open(&file);
    for (int big = 0; big < 2; big++) {
        bytes got = save_file(f, FORMAT, (const char *[]) { "endian", big ? "big" : "keep", NULL });
        tnf_file *g = must_open(&got);
        const tnf_digest *d = tnf_find(g, "md5")->parts->digest;
        assert_int_equal(d != NULL, !big);
        if (d)
            assert_string_equal(d->text.p, "md5:00");
        tnf_close(g);
        free(got.p);
    }
    tnf_close(f);
    free(file.p);
}

/* A wrong checksum is kept, not corrected. */
static void wrong_checksums_stay_wrong(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "reject", "case_16_cs_bad.zt");
    tnf_file *f = must_open(&file);
    bytes got = save_file(f, FORMAT, NULL);
    tnf_file *g = must_open(&got);
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    assert_int_equal(tnf_verify(&result, g, NULL, NULL), TNF_OK);
    assert_int_equal(result.problems, 1);
    tnf_close(g);
    free(got.p);
    tnf_close(f);
    free(file.p);
}

/* 0.1 stores attributes of tensors and of the file as custom fields. */
static void attributes_stay(void **state)
{
    (void)state;
    static const uint8_t data[4] = { 1, 2, 3, 4 };
    static const tnf_member taken[] = { { { "name", 4 }, { .kind = TNF_BOOL, .as.b = true } } };
    tnf_value map = { .kind = TNF_MAP, .n = 1, .as.members = taken };
    tnf_value json = { .kind = TNF_JSON, .n = 7, .as.s = "{\"a\":1}" };
    tnf_value number = tnf_value_uint(7);
    tnf_builder *b = builder_of("t", TNF_U8, data);
    assert_int_equal(tnf_builder_set(b, "t", "ztensor.custom", &map, NULL), TNF_OK);
    assert_int_equal(tnf_builder_set(b, "t", "seven", &number, NULL), TNF_OK);
    assert_int_equal(tnf_builder_set(b, NULL, "config", &json, NULL), TNF_OK);
    for (int definite = 0; definite < 2; definite++) {
        bytes got = must_save(
            b, (const char *[]) { "maps", definite ? "definite" : "indefinite", NULL });
        tnf_file *f = must_open(&got);
        const tnf_value *attrs = tnf_find(f, "t")->attrs;
        assert_true(tnf_value_get(tnf_value_get(attrs, "ztensor.custom"), "name")->as.b);
        assert_int_equal(tnf_value_get(attrs, "seven")->as.u, 7);
        assert_int_equal(tnf_value_get(tnf_file_info(f)->attrs, "config")->kind, TNF_JSON);
        tnf_close(f);
        free(got.p);
    }
    tnf_builder_free(b);
}

/* The problems of verifying, one line each: offset, tensor, message. */
static void take_problem(void *ctx, const tnf_problem *problem)
{
    char line[200];
    snprintf(line, sizeof line, "%llu %.*s %s\n", (unsigned long long)problem->offset,
             (int)problem->tensor.n, problem->tensor.p, problem->message);
    add_text(ctx, line);
}

/* The document: a blob is the data of a single tensor. */
static void blobs_that_overlap(void **state)
{
    (void)state;
    static const struct {
        const char *name, *problems;
    } files[] = {
        { "case_45.zt", "64 u 't' and 'u' share bytes from 64 on\n" },
        { "overlap.zt", "128 b 'a' and 'b' share bytes from 128 on\n"
                        "192 c 'a' and 'c' share bytes from 192 on\n"
                        "256 d 'a' and 'd' share bytes from 256 on\n" },
        { "case_47.zt", "" },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        bytes file = load_fixture(FORMAT, "valid", files[i].name), got = { 0 };
        tnf_file *f = must_open(&file);
        const tnf_verify_options o = { .size = sizeof o, .problem = take_problem, .ctx = &got };
        tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
        assert_int_equal(tnf_verify(&result, f, &o, NULL), TNF_OK);
        add_bytes(&got, "", 1);
        assert_string_equal((const char *)got.p, files[i].problems);
        tnf_close(f);
        free(got.p);
        free(file.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_the_released_writer),
        cmocka_unit_test(dialect_of_the_document),
        cmocka_unit_test(no_tensors),
        cmocka_unit_test(real_files),
        cmocka_unit_test(a_name_twice),
        cmocka_unit_test(options_keep_values),
        cmocka_unit_test(unknown_checksums),
        cmocka_unit_test(wrong_checksums_stay_wrong),
        cmocka_unit_test(attributes_stay),
        cmocka_unit_test(blobs_that_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
