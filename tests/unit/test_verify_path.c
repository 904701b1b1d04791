/* SPDX-License-Identifier: MIT */
/* Verifying a path that may not open: the problem is reported, the handle is returned if there is
 * one, and the call fails if the error is not in the file. */
#include "../support/unit.h"
/* after cmocka's */
#include "../support/files.h"

#define HEADER "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}"

struct told {
    unsigned n;
    tnf_status code[8];
    char message[8][240];
};

static void hear_problem(void *ctx, const tnf_problem *p)
{
    struct told *t = ctx;
    assert_true(t->n < 8);
    t->code[t->n] = p->code;
    snprintf(t->message[t->n++], 240, "%s", p->message);
}

/* A safetensors file of one tensor, without its last bytes. */
static size_t make_whole(uint8_t out[128], size_t without)
{
    size_t n = sizeof HEADER - 1;
    memset(out, 0, 128);
    out[0] = (uint8_t)n;
    memcpy(out + 8, HEADER, n);
    return 8 + n + 2 - without;
}

static const char *path_of(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", files_temp(), name);
    return path;
}

static void put_file(const char *name, size_t without)
{
    uint8_t bytes[128];
    size_t n = make_whole(bytes, without);
    bytes_to_file(path_of(name), bytes, n);
}

static tnf_verify_options telling_options(struct told *t)
{
    *t = (struct told) { 0 };
    return (tnf_verify_options) { .size = sizeof(tnf_verify_options),
                                  .problem = hear_problem,
                                  .ctx = t };
}

static void sound_files(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options o = telling_options(&t);
    put_file("good.safetensors", 0);
    assert_ok(tnf_verify_path(&r, &file, path_of("good.safetensors"), NULL, &o, &e));
    assert_int_equal(r.opening, TNF_OK);
    assert_int_equal(r.checked, 1);
    assert_int_equal(r.problems, 0);
    assert_non_null(tnf_find(file, "a"));
    tnf_close(file);
    assert_ok(tnf_verify_path(&r, NULL, path_of("good.safetensors"), NULL, NULL, &e));
}

static void cut_files(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options o = telling_options(&t);
    put_file("cut.safetensors", 1);
    assert_ok(tnf_verify_path(&r, &file, path_of("cut.safetensors"), NULL, &o, &e));
    assert_int_equal(r.opening, TNF_ETRUNCATED);
    assert_int_equal(r.problems, 1);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.code[0], TNF_ETRUNCATED);
    assert_non_null(strstr(t.message[0], "1 byte is missing"));
    assert_null(file);
}

/* One shard is truncated, one is missing: both are reported, and the third is verified. */
static void cut_and_missing_shards(void **state)
{
    (void)state;
    static const char index[] =
        "{\"weight_map\":{\"x\":\"gone.safetensors\",\"y\":\"cut.safetensors\","
        "\"a\":\"good.safetensors\"}}";
    tnf_error e;
    tnf_file *file;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options o = telling_options(&t);
    put_file("good.safetensors", 0);
    put_file("cut.safetensors", 2);
    bytes_to_file(path_of("i.json"), index, sizeof index - 1);
    assert_ok(tnf_verify_path(&r, &file, path_of("i.json"), NULL, &o, &e));
    assert_int_equal(r.opening, TNF_ENOTFOUND);
    assert_true(t.n >= 2 && r.problems == t.n);
    assert_int_equal(t.code[0], TNF_ENOTFOUND);
    assert_non_null(strstr(t.message[0], "gone.safetensors"));
    assert_non_null(file);
    assert_int_equal(r.checked, 1);
    assert_non_null(tnf_find(file, "a"));
    tnf_close(file);
    assert_ok(tnf_verify_path(&r, NULL, path_of("i.json"), NULL, &o, &e));
}

static void not_the_files_fault(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file = (tnf_file *)&e;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options o = telling_options(&t), wrong = { 0 };
    assert_fails(tnf_verify_path(&r, &file, path_of("nothing"), NULL, &o, &e), TNF_ENOTFOUND);
    assert_int_equal(r.opening, TNF_ENOTFOUND);
    assert_null(file);
    assert_int_equal(t.n, 0);
    put_file("good.safetensors", 0);
    assert_fails(tnf_verify_path(&r, &file, path_of("good.safetensors"), NULL, &wrong, &e),
                 TNF_EINVAL);
    o.canonical = true;
    assert_fails(tnf_verify_path(&r, &file, path_of("good.safetensors"), NULL, &o, &e),
                 TNF_EUNSUPPORTED);
    assert_int_equal(r.opening, TNF_OK);
    assert_non_null(file);
    tnf_close(file);
}

static void verifies_sources(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file;
    tnf_source *source;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options o = telling_options(&t), wrong = { 0 };
    uint8_t bytes[128];
    size_t n = make_whole(bytes, 0);
    assert_ok(tnf_source_memory(&source, bytes, n, &e));
    assert_ok(tnf_verify_source(&r, &file, source, NULL, &o, &e));
    assert_int_equal(r.checked, 1);
    tnf_close(file);
    assert_ok(tnf_source_memory(&source, bytes, n - 2, &e));
    assert_ok(tnf_verify_source(&r, &file, source, NULL, &o, &e));
    assert_int_equal(r.opening, TNF_ETRUNCATED);
    assert_int_equal(t.n, 1);
    assert_null(file);
    assert_ok(tnf_source_memory(&source, bytes, n, &e));
    assert_fails(tnf_verify_source(&r, NULL, source, NULL, &wrong, &e), TNF_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_files),
        cmocka_unit_test(cut_files),
        cmocka_unit_test(cut_and_missing_shards),
        cmocka_unit_test(not_the_files_fault),
        cmocka_unit_test(verifies_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
