/* SPDX-License-Identifier: MIT */
/* Tests beyond the fixtures of safetensors: the scores of its probe, what its writer refuses, and
 * headers that are too large for a repository. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const tnf_format tnf_format_safetensors, tnf_format_safetensors_index;

/* ---------------------------------------------------------------- probing */

static int probe_score(const tnf_format *f, const void *bytes, size_t n, uint64_t size,
                       const char *ext)
{
    const uint8_t *p = bytes;
    size_t head = n < TNF_PROBE_HEAD ? n : TNF_PROBE_HEAD;
    size_t tail = n < TNF_PROBE_TAIL ? n : TNF_PROBE_TAIL;
    tnf_probe probe = {
        .head = p, .tail = p + n - tail, .nhead = head, .ntail = tail, .size = size, .ext = ext
    };
    return f->probe(&probe);
}

static int score_of_length(uint64_t length, const char *text, uint64_t size, const char *ext)
{
    uint8_t bytes[64];
    size_t n = strlen(text);
    tnf_put_le64(bytes, length);
    memcpy(bytes + 8, text, n);
    return probe_score(&tnf_format_safetensors, bytes, 8 + n, size, ext);
}

static void probe_knows_headers(void **state)
{
    (void)state;
    assert_int_equal(score_of_length(2, "{}", 10, ""), TNF_PROBE_STRUCTURE);
    assert_int_equal(score_of_length(8, "{\"a\":1} ", 16, ""), TNF_PROBE_STRUCTURE);
    assert_int_equal(score_of_length(8, "{ \n\t\"a\" ", 16, ""), TNF_PROBE_STRUCTURE);
    /* Cut short: the header is longer than the file. */
    assert_int_equal(score_of_length(5000, "{\"a\":", 13, ""), TNF_PROBE_PLAUSIBLE);
    assert_int_equal(score_of_length(100000000, "{\"a\":", 13, ""), TNF_PROBE_PLAUSIBLE);
    assert_int_equal(score_of_length(5000, "", 8, "safetensors"), TNF_PROBE_EXTENSION);
    assert_int_equal(score_of_length(5000, "", 8, "bin"), TNF_PROBE_NO);
    /* An impossible length: recognised by the name only. */
    assert_int_equal(score_of_length(100000001, "{\"a\":", 13, ""), TNF_PROBE_NO);
    assert_int_equal(score_of_length(UINT64_MAX, "{\"a\":", 13, "safetensors"),
                     TNF_PROBE_EXTENSION);
    assert_int_equal(score_of_length(0, "{\"a\":", 13, "safetensors"), TNF_PROBE_EXTENSION);
    assert_int_equal(score_of_length(1, "{\"a\":", 13, ""), TNF_PROBE_NO);
    /* No header. */
    assert_int_equal(score_of_length(8, "[1,2,3] ", 16, "safetensors"), TNF_PROBE_NO);
    assert_int_equal(score_of_length(8, "{a:1}   ", 16, "safetensors"), TNF_PROBE_NO);
    assert_int_equal(score_of_length(8, "{\"a\1\2\3\4 ", 16, ""), TNF_PROBE_NO);
    assert_int_equal(score_of_length(8, " {\"a\":1}", 16, ""), TNF_PROBE_NO);
    assert_true(score_of_length(8, " {\"a\":1}", 16, "safetensors") > TNF_PROBE_NO);
    assert_int_equal(probe_score(&tnf_format_safetensors, "1234567", 7, 7, "safetensors"),
                     TNF_PROBE_NO);
    assert_int_equal(probe_score(&tnf_format_safetensors, "", 0, 0, "safetensors"), TNF_PROBE_NO);
}

static void probe_claims_no_noise(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        uint8_t bytes[64];
        for (size_t k = 0; k < sizeof bytes; k += 8) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            tnf_put_le64(bytes + k, x);
        }
        size_t n = (size_t)(x % (sizeof bytes + 1));
        assert_int_equal(probe_score(&tnf_format_safetensors, bytes, n, n, ""), TNF_PROBE_NO);
        assert_int_equal(probe_score(&tnf_format_safetensors_index, bytes, n, n, "json"),
                         TNF_PROBE_NO);
    }
}

static int index_score(const char *text, const char *ext)
{
    return probe_score(&tnf_format_safetensors_index, text, strlen(text), strlen(text), ext);
}

static void probe_knows_indexes(void **state)
{
    (void)state;
    assert_int_equal(index_score("{\"weight_map\":{}}", "json"), TNF_PROBE_STRUCTURE);
    assert_int_equal(
        index_score(" {\n\"metadata\": {\"total_size\": 1},\n  \"weight_map\" : {", "json"),
        TNF_PROBE_STRUCTURE);
    assert_int_equal(index_score("{\"weight_map\":{}}", ""), TNF_PROBE_PLAUSIBLE);
    assert_int_equal(index_score("{\"weight_map\":[]}", "json"), TNF_PROBE_NO);
    assert_int_equal(index_score("{\"weight_map\"", "json"), TNF_PROBE_NO);
    assert_int_equal(index_score("{\"error\":\"not found\"}", "json"), TNF_PROBE_NO);
    assert_int_equal(index_score("[{\"weight_map\":{}}]", "json"), TNF_PROBE_NO);
    assert_int_equal(index_score("{\"metadata\":{}}", "json"), TNF_PROBE_NO);
    assert_int_equal(index_score("", "json"), TNF_PROBE_NO);
    assert_int_equal(index_score("   ", "json"), TNF_PROBE_NO);
    char *long_one = malloc(6000);
    memset(long_one, ' ', 6000);
    memcpy(long_one, "{\"metadata\":{", 13);
    assert_int_equal(probe_score(&tnf_format_safetensors_index, long_one, 6000, 6000, "json"),
                     TNF_PROBE_EXTENSION);
    free(long_one);
}

/* ---------------------------------------------------------------- writing */

/* Saves to memory; the caller frees the bytes. */
static tnf_status save_to_memory(const tnf_builder *b, const tnf_option *options, size_t n,
                                 uint8_t **bytes, size_t *size, tnf_error *e)
{
    tnf_sink *sink;
    tnf_save_options o = TNF_SAVE_INIT;
    o.format = "safetensors";
    o.options = options;
    o.noptions = n;
    *bytes = NULL;
    assert_int_equal(tnf_sink_memory(&sink, e), TNF_OK);
    tnf_status status = tnf_save_sink(b, sink, &o, e);
    if (status == TNF_OK) {
        tnf_str all = tnf_sink_bytes(sink);
        *bytes = malloc(all.n);
        memcpy(*bytes, all.p, all.n);
        *size = all.n;
    }
    tnf_sink_close(sink);
    return status;
}

static tnf_builder *builder_with(const char *name, const char *type, uint64_t elements,
                                 const void *data)
{
    tnf_builder *b;
    tnf_error e;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_builder_add(b, name, tnf_type_named(type), 1, &elements, data, &e),
                     TNF_OK);
    return b;
}

static void writes_what_the_package_writes(void **state)
{
    (void)state;
    static const float w[2] = { 1, 2 };
    static const char expected[] = "{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"F32\","
                                   "\"shape\":[2],\"data_offsets\":[0,8]}} ";
    tnf_builder *b = builder_with("w", "f32", 2, w);
    tnf_error e;
    tnf_member pair = { { "format", 6 }, tnf_value_string("pt") };
    tnf_value metadata = { .kind = TNF_MAP, .n = 1, .as.members = &pair };
    assert_int_equal(tnf_builder_set(b, NULL, "safetensors.metadata", &metadata, &e), TNF_OK);
    uint8_t *bytes;
    size_t n;
    assert_int_equal(save_to_memory(b, NULL, 0, &bytes, &n, &e), TNF_OK);
    size_t text = (sizeof expected - 1 + 7) / 8 * 8;
    assert_int_equal(tnf_le64(bytes), text);
    assert_int_equal(n, 8 + text + sizeof w);
    assert_memory_equal(bytes + 8, expected, sizeof expected - 1);
    assert_memory_equal(bytes + 8 + text, w, sizeof w);
    free(bytes);
    tnf_builder_free(b);
}

static void assert_save_fails(tnf_builder *b, const tnf_option *options, size_t n,
                              tnf_status status, const char *message)
{
    tnf_error e = { 0 };
    uint8_t *bytes;
    size_t size;
    assert_int_equal(save_to_memory(b, options, n, &bytes, &size, &e), status);
    assert_int_equal(e.status, status);
    assert_non_null(strstr(e.message, message));
    tnf_builder_free(b);
}

static void writer_refuses_what_the_format_forbids(void **state)
{
    (void)state;
    static const uint8_t data[16];
    assert_save_fails(builder_with("w", "f4_e2m1", 3, data), NULL, 0, TNF_ELOSSY, "'w'");
    assert_save_fails(builder_with("w", "f6_e2m3", 2, data), NULL, 0, TNF_ELOSSY, "'w'");
    assert_save_fails(builder_with("w", "u8", 1, data), &(tnf_option) { "align", "12" }, 1,
                      TNF_EINVAL, "power of two");
    assert_save_fails(builder_with("w", "u8", 1, data), &(tnf_option) { "align", "131072" }, 1,
                      TNF_EINVAL, "65536");
    assert_save_fails(builder_with("w", "u8", 1, data), &(tnf_option) { "reserve", "100000000" }, 1,
                      TNF_ELIMIT, "100,000,000");
    assert_save_fails(builder_with("w", "u8", 1, data),
                      &(tnf_option) { "reserve", "18446744073709551615" }, 1, TNF_ELIMIT,
                      "100,000,000");
}

/* --------------------------------------------------------- large headers */

static tnf_status open_padded(size_t header, bool lenient, uint64_t limit, size_t *warnings,
                              tnf_error *e)
{
    static const char text[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    uint8_t *bytes = malloc(8 + header + 1);
    tnf_put_le64(bytes, header);
    memcpy(bytes + 8, text, sizeof text - 1);
    memset(bytes + 8 + sizeof text - 1, ' ', header - (sizeof text - 1));
    bytes[8 + header] = 42;
    tnf_source *source;
    tnf_file *file;
    tnf_open_options o = TNF_OPEN_INIT;
    o.lenient = lenient;
    o.format = "safetensors";
    o.limits.header_bytes = limit;
    assert_int_equal(tnf_source_memory(&source, bytes, 8 + header + 1, e), TNF_OK);
    tnf_status status = tnf_open_source(&file, source, &o, e);
    if (status == TNF_OK)
        *warnings = tnf_file_info(file)->nwarnings;
    tnf_close(file);
    free(bytes);
    return status;
}

static void the_header_may_have_100_million_bytes(void **state)
{
    (void)state;
    tnf_error e = { 0 };
    size_t warnings = 99;
    assert_int_equal(open_padded(100000000, false, 0, &warnings, &e), TNF_OK);
    assert_int_equal(warnings, 0);
    assert_int_equal(open_padded(100000001, false, 0, &warnings, &e), TNF_ELIMIT);
    assert_int_equal(e.offset, 0);
    assert_non_null(strstr(e.message, "100,000,000"));
    assert_int_equal(open_padded(100000001, true, 0, &warnings, &e), TNF_OK);
    assert_int_equal(warnings, 1);
    assert_int_equal(open_padded(100000001, true, 100000000, &warnings, &e), TNF_ELIMIT);
    assert_int_equal(open_padded(2000, false, 1000, &warnings, &e), TNF_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_knows_headers),
        cmocka_unit_test(probe_claims_no_noise),
        cmocka_unit_test(probe_knows_indexes),
        cmocka_unit_test(writes_what_the_package_writes),
        cmocka_unit_test(writer_refuses_what_the_format_forbids),
        cmocka_unit_test(the_header_may_have_100_million_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
