/* SPDX-License-Identifier: MIT */
/* Shards of zTensor 2 that are found by their digest, among files with any names. */
#include "../support/files.h"
#include "../support/unit.h"

#define FROM TNF_TESTS_DIR "/formats/ztensor2/valid/overlay/"

static tnf_error e;
static char model[300], store[300];

static void put_file(const char *directory, const char *name, struct bytes b)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    bytes_to_file(path, b.p, b.n);
}

/* A directory with the model, and an empty one next to it. */
static int set_up(void **state)
{
    (void)state;
    struct bytes b = bytes_of_file(FROM "model.zt");
    snprintf(model, sizeof model, "%s/only.zt", files_temp());
    snprintf(store, sizeof store, "%s/store", files_temp());
    bytes_to_file(model, b.p, b.n);
    free(b.p);
    return mkdir(store, 0700);
}

static tnf_status open_model(tnf_file **file, const char *how, const char *where, bool lenient)
{
    const tnf_option options[] = { { "shards", how }, { "store", where } };
    tnf_open_options o = { .size = sizeof o, .lenient = lenient, .options = options };
    o.noptions = where ? 2 : 1;
    return tnf_open(file, model, &o, &e);
}

static void by_size_and_digest(void **state)
{
    (void)state;
    tnf_file *file;
    struct bytes right = bytes_of_file(FROM "model-base.zt");
    assert_fails(open_model(&file, "scan", NULL, false), TNF_EINVAL);
    assert_fails(open_model(&file, "store", NULL, false), TNF_EINVAL);
    assert_fails(open_model(&file, "scan", "/nowhere/at/all", false), TNF_ENOTFOUND);
    assert_fails(open_model(&file, "scan", store, false), TNF_ENOTFOUND);
    assert_says("'base'");
    /* wrong candidates: another size, another content, another extension, a directory */
    put_file(store, "short.zt", (struct bytes) { right.p, right.n - 1 });
    right.p[4096] ^= 1;
    put_file(store, "other.zt", right);
    put_file(store, "a.zt", right);
    right.p[4096] ^= 1;
    put_file(store, "right.bin", right);
    char directory[700];
    snprintf(directory, sizeof directory, "%s/dir.zt", store);
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_fails(open_model(&file, "scan", store, false), TNF_ENOTFOUND);
    assert_ok(open_model(&file, "scan", store, true)); /* it can at least be listed */
    assert_int_equal(tnf_file_info(file)->nwarnings, 1);
    tnf_close(file);
    put_file(store, "m.zt", right);
    assert_ok(open_model(&file, "scan", store, false));
    uint8_t bytes[8];
    assert_ok(tnf_read(bytes, 8, tnf_find(file, "b"), &e));
    assert_memory_equal(bytes, "\xab\xab\xab\xab\xab\xab\xab\xab", 8);
    struct bytes m = bytes_of_file(model);
    assert_int_equal(tnf_file_info(file)->size, m.n + right.n); /* the wrong ones do not count */
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    assert_ok(tnf_verify(&r, file, NULL, &e));
    assert_int_equal(r.problems, 0);
    tnf_close(file);
    free(m.p);
    free(right.p);
}

static const char *rule;

static void on_problem(void *ctx, const tnf_problem *p)
{
    (void)ctx;
    rule = p->rule;
    assert_int_equal(p->code, TNF_EDIGEST);
    assert_null(p->object);
}

/* Opening only compares the size; verifying checks the content. */
static void every_byte_counts(void **state)
{
    (void)state;
    tnf_file *file;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    char path[700];
    struct bytes shard = bytes_of_file(FROM "model-base.zt");
    tnf_verify_options o = { .size = sizeof o, .problem = on_problem };
    shard.p[5000] ^= 1; /* between blobs */
    snprintf(path, sizeof path, "%s/only-base.zt", files_temp());
    bytes_to_file(path, shard.p, shard.n);
    assert_ok(open_model(&file, "beside", NULL, false));
    assert_ok(tnf_verify(&r, file, &o, &e));
    assert_int_equal(r.problems, 1);
    assert_string_equal(rule, "ShardIdentity");
    tnf_close(file);
    free(shard.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_size_and_digest),
        cmocka_unit_test(every_byte_counts),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
