/* SPDX-License-Identifier: MIT */
/* Amounts of decompressed bytes, and of bytes written for tensors that share them: limits are
 * checked beforehand. */
#include "../support/unit.h"
#include <tenfold/build.h>

#define N 1000000u

/* A ztensor file of zeros, compressed or not. */
static tnf_sink *save_zeros(bool compressed)
{
    tnf_error e;
    tnf_builder *b;
    tnf_sink *sink;
    uint64_t shape = N;
    uint8_t *bytes = calloc(1, N);
    tnf_option zstd = { "encoding", "zstd" };
    tnf_save_options o = { .size = sizeof o, .format = "ztensor2" };
    o.options = &zstd;
    o.noptions = compressed;
    assert_non_null(bytes);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "z", tnf_type_of(TNF_U8), 1, &shape, bytes, &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &o, &e));
    tnf_builder_free(b);
    free(bytes);
    return sink;
}

static tnf_status open_with(tnf_file **out, const tnf_sink *sink, tnf_limits limits,
                            tnf_error *error)
{
    tnf_error e;
    tnf_source *source;
    tnf_str bytes = tnf_sink_bytes(sink);
    tnf_open_options o = { .size = sizeof o, .limits = limits };
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    return tnf_open_source(out, source, &o, error);
}

static void limits_decoded_bytes(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    tnf_sink *small = save_zeros(true), *plain = save_zeros(false);
    assert_true(tnf_sink_bytes(small).n < N / 4);
    assert_ok(open_with(&f, small, (tnf_limits) { .decoded_bytes = N }, &e));
    tnf_close(f);
    assert_ok(open_with(&f, small, (tnf_limits) { 0 }, &e));
    tnf_close(f);
    assert_fails(open_with(&f, small, (tnf_limits) { .decoded_bytes = N - 1 }, &e), TNF_ELIMIT);
    assert_says(
        "become 1000000 when decoded; at most 999999 are allowed: raise the limit 'decoded_bytes'");
    assert_ok(
        open_with(&f, plain, (tnf_limits) { .decoded_bytes = 1 }, &e)); /* nothing to decode */
    tnf_close(f);
    tnf_sink_close(small);
    tnf_sink_close(plain);
}

/* The same bytes under many names. */
static tnf_status save_times(const tnf_file *f, unsigned times, const char *format,
                             tnf_error *error)
{
    tnf_error e;
    tnf_builder *b;
    tnf_sink *sink;
    tnf_save_options o = { .size = sizeof o, .format = format };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    for (unsigned i = 0; i < times; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        assert_ok(tnf_builder_add_object(b, tnf_at(f, 0), name, &e));
    }
    assert_ok(tnf_sink_memory(&sink, &e));
    tnf_status status = tnf_save_sink(b, sink, &o, error);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return status;
}

static void limits_written_bytes(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    tnf_sink *plain = save_zeros(false);
    assert_ok(open_with(&f, plain, (tnf_limits) { .output_bytes = 3 * N }, &e));
    assert_ok(save_times(f, 3, "safetensors", &e));
    assert_fails(save_times(f, 4, "safetensors", &e), TNF_ELIMIT);
    assert_says("become 4000000 when they are written; at most 3000000 are allowed: raise the "
                "limit 'output_bytes'");
    tnf_close(f);
    /* by default 1024 times the file, and at least 2 GiB */
    assert_ok(open_with(&f, plain, (tnf_limits) { 0 }, &e));
    assert_ok(save_times(f, 20, "safetensors", &e));
    tnf_builder *b;
    tnf_save_options o = { .size = sizeof o, .format = "safetensors", .dry_run = true };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    for (unsigned i = 0; i < 2200; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        assert_ok(tnf_builder_add_object(b, tnf_at(f, 0), name, &e));
    }
    tnf_sink *sink;
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_fails(tnf_save_sink(b, sink, &o, &e), TNF_ELIMIT); /* 2,200,000,000 bytes */
    tnf_sink_close(sink);
    tnf_builder_free(b);
    tnf_close(f);
    tnf_sink_close(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_decoded_bytes),
        cmocka_unit_test(limits_written_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
