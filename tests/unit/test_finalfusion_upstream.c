/* SPDX-License-Identifier: MIT */
/* Files of finalfusion's own tools, if they are available, and the numbers that must be in them. */
#include "../support/little.h"
#include "gptrs_files.h"

#include <math.h>

#define FORMAT   "finalfusion"
#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint8_t *part_bytes(const tnf_object *o, const char *role)
{
    tnf_error e = { 0 };
    assert_non_null(o);
    const tnf_part *p = tnf_object_part(o, role);
    assert_non_null(p);
    uint8_t *out = malloc(p->nbytes ? p->nbytes : 1);
    assert_non_null(out);
    if (tnf_read_part(out, p->nbytes, p, 0, &e) != TNF_OK)
        fail_msg("%s", e.message);
    return out;
}

static tnf_file *open_upstream(const char *name, bytes *file)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fixtures/finalfusion/%s", TNF_SHARED_DIR, name);
    *file = load_path(path);
    if (!file->p)
        skip();
    return must_open(file);
}

static void assert_floats(const tnf_object *o, const char *role, size_t from, const float *want,
                          size_t n, float tolerance)
{
    float *got = (float *)(void *)part_bytes(o, role);
    from_little(got, 4, from + n);
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[from + i] - want[i]) <= tolerance))
            fail_msg("%s %zu is %g instead of %g", role, from + i, got[from + i], want[i]);
    free(got);
}

static void test_upstream_embeddings(void **state)
{
    (void)state;
    static const float raw[] = { 3, 1, 0, 0, 0, 0, 2, 2, 4, 3 };
    static const float norms[] = { 6.557438373565674f, 8.83176040649414f,   6.164413928985596f,
                                   9.165151596069336f, 7.4833149909973145f, 7.211102485656738f,
                                   7.4833149909973145f };
    float unit[10];
    bytes file;
    tnf_file *f = open_upstream("py/embeddings.fifu", &file);
    for (int i = 0; i < 10; i++)
        unit[i] = raw[i] / norms[0];
    assert_floats(tnf_find(f, "norms"), "data", 0, norms, 7, 0);
    assert_floats(tnf_find(f, "embeddings"), "data", 0, unit, 10, 1e-6f);
    assert_int_equal(tnf_find(f, "embeddings")->parts[0].offset, 124); /* one byte of padding */
    assert_int_equal(tnf_find(f, "norms")->parts[0].offset, 432);      /* four bytes */
    tnf_close(f);
    free(file.p);
}

static void test_upstream_buckets(void **state)
{
    (void)state;
    static const float norms[] = { .111857f, .243729f };
    static const float one[] = { .2434929f, .5275825f, .1132917f, -.7992398f, .1036758f };
    bytes file;
    tnf_file *f = open_upstream("py/ff_buckets.fifu", &file);
    const tnf_object *o = tnf_find(f, "embeddings");
    assert_int_equal(o->shape[0], 1026);
    assert_int_equal(o->parts[0].offset, 468);
    assert_floats(tnf_find(f, "norms"), "data", 0, norms, 2, 1e-6f);
    assert_floats(o, "data", 0, one, 5, 1e-7f);
    assert_int_equal(tnf_value_get(tnf_file_info(f)->attrs, "finalfusion.metadata")->n, 353);
    tnf_close(f);
    free(file.p);
}

static void test_upstream_similarity(void **state)
{
    (void)state;
    static const char *const names[] = { "py/similarity.fifu", "rt/similarity.fifu" };
    for (size_t i = 0; i < COUNT(names); i++) {
        bytes file;
        tnf_file *f = open_upstream(names[i], &file);
        uint8_t *words = part_bytes(tnf_find(f, "vocab"), "bytes");
        assert_int_equal(tnf_find(f, "vocab")->shape[0], 41);
        assert_memory_equal(words, "Berlin", 6);
        assert_int_equal(tnf_find(f, "embeddings")->parts[0].offset, 576);
        bytes got = save_file(f, FORMAT, NULL);
        assert_same_bytes(&got, &file, names[i]);
        free(got.p);
        free(words);
        tnf_close(f);
        free(file.p);
    }
}

/* A bare chunk, reconstructed: row r of its source is 100r, 100r + 1 … */
static void test_upstream_quantized(void **state)
{
    (void)state;
    static const float norms[] = { 573.018f, 1522.613f, 2511.643f, 3506.900f };
    static const float row_50[] = { 5001.8225f, 5002.7860f, 5003.7491f };
    static const float row_99[] = { 10002.083f, 10003.192f, 10004.298f };
    bytes file;
    tnf_file *f = open_upstream("rt/quantized_storage.bin", &file);
    const tnf_object *o = tnf_find(f, "embeddings");
    assert_floats(o, "norms", 0, norms, 4, 1e-3f);
    uint8_t *codes = part_bytes(o, "codes");
    float *books = (float *)(void *)part_bytes(o, "codebooks"), out[100][100];
    float *lengths = (float *)(void *)part_bytes(o, "norms");
    from_little(books, 4, 16 * 100);
    from_little(lengths, 4, 100);
    for (size_t r = 0; r < 100; r++)
        for (size_t c = 0; c < 100; c++)
            out[r][c] = books[(c / 10 * 16 + codes[10 * r + c / 10]) * 10 + c % 10] * lengths[r];
    for (int i = 0; i < 5; i++)
        assert_true(fabsf(out[0][i] - (float)i) <= 1e-6f);
    for (int i = 0; i < 3; i++) {
        assert_true(fabsf(out[50][i] - row_50[i]) <= 2e-3f);
        assert_true(fabsf(out[99][97 + i] - row_99[i]) <= 2e-3f);
    }
    free(codes);
    free(books);
    free(lengths);
    tnf_close(f);
    free(file.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upstream_embeddings),
        cmocka_unit_test(test_upstream_buckets),
        cmocka_unit_test(test_upstream_similarity),
        cmocka_unit_test(test_upstream_quantized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
