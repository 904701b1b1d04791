/* SPDX-License-Identifier: MIT */
/* zTensor 2: the writer's options, equal parts, shards by digest. Files themselves are checked by
 * tests/formats/ztensor2, identity with the reference by tests/peers. */
#include "../support/unit.h"

#include "base/bytes.h"
#include "base/digest.h"
#include <tenfold/build.h>
#include <tenfold/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t one[] = { 1 }, four[] = { 4 };
static tnf_error error;

static tnf_builder *new_builder(void)
{
    tnf_builder *b;
    assert_int_equal(tnf_builder_new(&b, NULL, &error), TNF_OK);
    return b;
}

static void add_tensor(tnf_builder *b, const char *name, tnf_dtype dtype, const uint64_t *shape,
                       const void *data)
{
    assert_int_equal(tnf_builder_add(b, name, tnf_type_of(dtype), 1, shape, data, &error), TNF_OK);
}

/* Saves to memory with one option (NULL: none); NULL if that fails. */
static tnf_sink *save_to_memory(const tnf_builder *b, const char *key, const char *value,
                                tnf_status *status)
{
    tnf_sink *sink;
    tnf_option option = { key, value };
    tnf_save_options o = {
        .size = sizeof o, .format = "ztensor2", .options = &option, .noptions = key ? 1 : 0
    };
    assert_int_equal(tnf_sink_memory(&sink, &error), TNF_OK);
    *status = tnf_save_sink(b, sink, &o, &error);
    if (*status == TNF_OK)
        return sink;
    tnf_sink_close(sink);
    return NULL;
}

static void hash_is(const tnf_builder *b, const char *hex)
{
    tnf_status status;
    tnf_sink *sink = save_to_memory(b, NULL, NULL, &status);
    assert_int_equal(status, TNF_OK);
    tnf_str bytes = tnf_sink_bytes(sink);
    uint8_t hash[32];
    char text[65];
    tnf_digester d;
    assert_true(tnf_digest_begin(&d, "sha256"));
    tnf_digest_update(&d, bytes.p, bytes.n);
    tnf_digest_end(&d, hash);
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    assert_string_equal(text, hex);
    tnf_sink_close(sink);
}

/* The SHA-256 of the file that the reference (2.1.1) writes for the same content. */
static void as_the_reference(void **state)
{
    (void)state;
    tnf_builder *b = new_builder();
    hash_is(b, "17a4b8e64c4aa605243dd8f78e0ba3ab6ee6c24f76eb64222b436420c32796a9");
    add_tensor(b, "b", TNF_U8, one, "\2");
    add_tensor(b, "aa", TNF_U8, one, "\1");
    hash_is(b, "576b824eee51717f9eedec91c07cdda5e363388904e3f0d1e54b33940caae008");
    tnf_builder_free(b);
    b = new_builder();
    add_tensor(b, "a", TNF_F32, one, "\0\0\0\0");
    add_tensor(b, "b", TNF_U8, four, "\0\0\0\0");
    hash_is(b, "582bacb86c3e61695a8230ae205e75a093755be48cc4c00b8870aede8ed8a886");
    tnf_builder_free(b);
    b = new_builder();
    add_tensor(b, "a", TNF_U8, four, "\1\2\3\4");
    add_tensor(b, "b", TNF_F32, (const uint64_t[]) { 0 }, "");
    hash_is(b, "86705fa8d9f39a242aa59b5d626d9f380bd634ec34353bca2c5d5d93c297951e");
    tnf_builder_free(b);
    b = new_builder();
    add_tensor(b, "a", TNF_F32, (const uint64_t[]) { 0 }, "");
    hash_is(b, "ba4ba655f80b0fdf73c40a8b1ac95c0f931a4cad9e36a05c6f00418fda58bd25");
    tnf_builder_free(b);
    b = new_builder();
    add_tensor(b, "a", TNF_U8, one, "\1");
    hash_is(b, "d3b2cb3a85136d20502b256e609905ecddf6d5846529200f377e796509f5247f");
    tnf_builder_free(b);
}

static tnf_status fetch_pattern(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    uint64_t *next = ctx; /* it is only read in order */
    (void)e;
    assert_int_equal(offset, *next);
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = (uint8_t)((offset + i) / 1000);
    *next += n;
    return TNF_OK;
}

#define BIG 300000u

static uint8_t *make_pattern(void)
{
    uint8_t *p = malloc(BIG);
    assert_non_null(p);
    for (size_t i = 0; i < BIG; i++)
        p[i] = (uint8_t)(i / 1000);
    return p;
}

static uint64_t offset_of(const tnf_file *f, const char *name)
{
    const tnf_object *o = tnf_find(f, name);
    assert_non_null(o);
    return o->parts[0].offset;
}

static tnf_file *open_sink(tnf_sink *sink)
{
    tnf_source *source;
    tnf_file *file;
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_int_equal(tnf_source_memory(&source, bytes.p, bytes.n, &error), TNF_OK);
    assert_int_equal(tnf_open_source(&file, source, NULL, &error), TNF_OK);
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    assert_int_equal(tnf_verify(&result, file, NULL, &error), TNF_OK);
    assert_int_equal(result.problems, 0);
    return file;
}

/* Large parts that are equal, that are equal only at the beginning, and that differ. */
static void equal_parts_share(void **state)
{
    (void)state;
    const uint64_t shape[] = { BIG }, few[] = { 100 };
    uint8_t *a = make_pattern(), *b = make_pattern(), *c = make_pattern();
    uint64_t at = 0, at2 = 0;
    tnf_status status;
    c[BIG - 1] = 99;
    tnf_builder *m = new_builder();
    add_tensor(m, "a", TNF_U8, shape, a);
    add_tensor(m, "b", TNF_U8, shape, b);
    add_tensor(m, "c", TNF_U8, shape, c);
    add_tensor(m, "d", TNF_U8, few, a);
    assert_int_equal(
        tnf_builder_add_stream(m, "e", tnf_type_of(TNF_U8), 1, few, fetch_pattern, &at, &error),
        TNF_OK);
    assert_int_equal(
        tnf_builder_add_stream(m, "f", tnf_type_of(TNF_U8), 1, few, fetch_pattern, &at2, &error),
        TNF_OK);
    tnf_sink *sink = save_to_memory(m, "canonical", "yes", &status);
    assert_int_equal(status, TNF_OK);
    tnf_file *f = open_sink(sink);
    assert_int_equal(offset_of(f, "a"), 65536);
    assert_int_equal(offset_of(f, "b"), 65536);
    assert_int_equal(offset_of(f, "c"), 65536 * 6);
    assert_int_equal(offset_of(f, "d"), offset_of(f, "e"));
    assert_int_equal(offset_of(f, "e"), offset_of(f, "f"));
    tnf_close(f);
    tnf_sink_close(sink);
    tnf_builder_free(m);
    free(a);
    free(b);
    free(c);
}

/* A large part that can only be read once is written at once. */
static void large_streams(void **state)
{
    (void)state;
    const uint64_t shape[] = { BIG };
    uint8_t *a = make_pattern();
    uint64_t at = 0;
    tnf_status status;
    tnf_builder *m = new_builder();
    assert_int_equal(
        tnf_builder_add_stream(m, "a", tnf_type_of(TNF_U8), 1, shape, fetch_pattern, &at, &error),
        TNF_OK);
    add_tensor(m, "b", TNF_U8, shape, a);
    tnf_sink *sink = save_to_memory(m, NULL, NULL, &status);
    assert_int_equal(status, TNF_OK);
    tnf_file *f = open_sink(sink);
    assert_int_equal(offset_of(f, "a"), 65536);
    tnf_close(f);
    tnf_sink_close(sink);
    tnf_builder_free(m);
    free(a);
}

static void options_of_the_writer(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *message; /* NULL: it succeeds */
    } cases[] = {
        { "align", "4096", NULL },           { "align", "1M", NULL },
        { "align", "2048", "power of two" }, { "align", "12288", "power of two" },
        { "align", "0", "power of two" },    { "encoding", "zstd", NULL },
        { "digest", "sha256", NULL },        { "small", "yes", NULL },
        { "canonical", "no", NULL },         { "level", "23", "0 to 22" },
    };
    tnf_builder *b = new_builder();
    add_tensor(b, "a", TNF_U8, four, "\1\2\3\4");
    add_tensor(b, "b", TNF_U8, four, "\1\2\3\5");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_status status;
        tnf_sink *sink = save_to_memory(b, cases[i].key, cases[i].value, &status);
        if (cases[i].message) {
            assert_int_equal(status, TNF_EINVAL);
            assert_non_null(strstr(error.message, cases[i].message));
            continue;
        }
        assert_int_equal(status, TNF_OK);
        tnf_file *f = open_sink(sink);
        if (strcmp(cases[i].key, "small") == 0)
            assert_int_equal(offset_of(f, "b"), 8192);
        tnf_close(f);
        tnf_sink_close(sink);
    }
    tnf_builder_free(b);
}

static void names_in_nfc(void **state)
{
    (void)state;
    tnf_status status;
    tnf_builder *b = new_builder();
    add_tensor(b, "e\xcc\x81", TNF_U8, one, "\1"); /* normal form C composes these */
    tnf_sink *sink = save_to_memory(b, NULL, NULL, &status);
    assert_int_equal(status, TNF_OK);
    tnf_sink_close(sink);
    save_to_memory(b, "canonical", "yes", &status);
    assert_int_equal(status, TNF_EUNSUPPORTED);
    tnf_builder_free(b);
    b = new_builder();
    add_tensor(b, "", TNF_U8, one, "\1");
    assert_null(save_to_memory(b, NULL, NULL, &status));
    assert_true(status != TNF_OK);
    tnf_builder_free(b);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[20000];
    FILE *f = fopen(from, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    f = fopen(to, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* Counts the items with each fate. */
static void on_plan(void *ctx, const tnf_plan_item *item)
{
    unsigned *fates = ctx;
    fates[item->fate]++;
}

/* Attributes with names that the format does not allow are left out if losses are allowed. */
static void odd_attributes(void **state)
{
    (void)state;
    tnf_builder *b = new_builder();
    tnf_value v = tnf_value_uint(1);
    add_tensor(b, "t", TNF_U8, four, "abcd");
    assert_int_equal(tnf_builder_set(b, NULL, "fine", &v, &error), TNF_OK);
    assert_int_equal(tnf_builder_set(b, NULL, "", &v, &error), TNF_OK);
    assert_int_equal(tnf_builder_set(b, NULL, "text\xff", &v, &error), TNF_OK);
    assert_int_equal(tnf_builder_set(b, "t", "", &v, &error), TNF_OK);
    for (int more = 0; more < 2; more++) {
        unsigned fates[4] = { 0 };
        tnf_sink *sink;
        tnf_file *file;
        tnf_source *source;
        tnf_save_options o = { .size = sizeof o, .format = "ztensor2", .plan = on_plan };
        o.ctx = fates;
        assert_int_equal(tnf_sink_memory(&sink, &error), TNF_OK);
        assert_int_equal(tnf_save_sink(b, sink, &o, &error), TNF_ELOSSY);
        assert_int_equal(fates[TNF_DROPPED], 2);
        assert_int_equal(fates[TNF_TRANSFORMED], 1);
        o.allow_loss = true;
        assert_int_equal(tnf_save_sink(b, sink, &o, &error), TNF_OK);
        tnf_str bytes = tnf_sink_bytes(sink);
        assert_int_equal(tnf_source_memory(&source, bytes.p, bytes.n, &error), TNF_OK);
        assert_int_equal(tnf_open_source(&file, source, NULL, &error), TNF_OK);
        const tnf_object *t = tnf_find(file, "t");
        assert_int_equal(tnf_value_get(tnf_file_info(file)->attrs, "fine")->as.u, 1);
        assert_null(tnf_value_get(tnf_file_info(file)->attrs, ""));
        assert_null(tnf_value_get(tnf_file_info(file)->attrs, "text"));
        assert_int_equal(t->attrs ? t->attrs->n : 0, more);
        tnf_close(file);
        tnf_sink_close(sink);
        assert_int_equal(tnf_builder_set(b, "t", "more", &v, &error), TNF_OK);
    }
    tnf_builder_free(b);
}

static void shards_in_a_store(void **state)
{
    (void)state;
    char dir[] = "/tmp/tenfold-ztensor2-XXXXXX", path[512], model[512];
    const char *from = TNF_TESTS_DIR "/formats/ztensor2/valid/overlay";
    tnf_file *f;
    assert_non_null(mkdtemp(dir));
    snprintf(model, sizeof model, "%s/other.zt", dir);
    snprintf(path, sizeof path, "%s/model.zt", from);
    copy_file(path, model);
    assert_int_equal(tnf_open(&f, model, NULL, &error), TNF_ENOTFOUND);
    tnf_option none[] = { { "shards", "none" } },
               found[] = { { "shards", "store" }, { "store", dir } };
    tnf_open_options o = { .size = sizeof o, .options = none, .noptions = 1 };
    assert_int_equal(tnf_open(&f, model, &o, &error), TNF_OK);
    const tnf_value *told = tnf_value_get(tnf_file_info(f)->attrs, "ztensor.shards");
    const tnf_value *digest = tnf_value_get(tnf_value_get(told, "base"), "digest");
    uint8_t byte;
    assert_int_equal(tnf_read_part(&byte, 1, tnf_find(f, "b")->parts, 0, &error), TNF_EUNSUPPORTED);
    snprintf(path, sizeof path, "%s/blobs", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/blobs/xxh3", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/blobs/xxh3/%s", dir, digest->as.s + 5);
    tnf_close(f);
    char shard[512];
    snprintf(shard, sizeof shard, "%s/model-base.zt", from);
    copy_file(shard, path);
    o.options = found;
    o.noptions = 2;
    assert_int_equal(tnf_open(&f, model, &o, &error), TNF_OK);
    assert_int_equal(tnf_read_part(&byte, 1, tnf_find(f, "b")->parts, 0, &error), TNF_OK);
    assert_int_equal(byte, 0xab);
    tnf_close(f);
    unlink(path);
    unlink(model);
    snprintf(path, sizeof path, "%s/blobs/xxh3", dir);
    rmdir(path);
    snprintf(path, sizeof path, "%s/blobs", dir);
    rmdir(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_reference),  cmocka_unit_test(equal_parts_share),
        cmocka_unit_test(large_streams),     cmocka_unit_test(options_of_the_writer),
        cmocka_unit_test(names_in_nfc),      cmocka_unit_test(odd_attributes),
        cmocka_unit_test(shards_in_a_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
