/* SPDX-License-Identifier: MIT */
/* The pulling protobuf reader. The bytes are those of protobuf's own documentation of its
 * encoding. */
#include "wire/protobuf.h"

#include "../support/unit.h"

#include <string.h>

struct bytes_in {
    const uint8_t *p;
    size_t n;
};

static tnf_status fetch_bytes(void *ctx, uint64_t at, void *dst, size_t n, tnf_error *e)
{
    const struct bytes_in *b = ctx;
    (void)e;
    assert_true(at <= b->n && n <= b->n - at);
    memcpy(dst, b->p + at, n);
    return TNF_OK;
}

static tnf_protobuf_in in;
static uint8_t window[TNF_PROTOBUF_WINDOW];
static struct bytes_in from;

static tnf_protobuf message_over(const void *p, size_t n)
{
    from = (struct bytes_in) { p, n };
    tnf_protobuf_init(&in, fetch_bytes, &from, n, window, sizeof window);
    return tnf_protobuf_all(&in);
}

#define OVER(text) message_over(text, sizeof(text) - 1)

static void reads_all_types(void **state)
{
    tnf_protobuf m = OVER("\x08\x96\x01"                         /* 1: 150 */
                          "\x12\x07testing"                      /* 2: "testing" */
                          "\x1D\x01\x02\x03\x04"                 /* 3: fixed32 */
                          "\x21\x01\x02\x03\x04\x05\x06\x07\x08" /* 4: fixed64 */
                          "\x32\x06\x03\x8E\x02\x9E\xA7\x05");   /* 6: packed 3, 270, 86942 */
    tnf_protobuf_field f;
    tnf_error e;
    uint64_t v;
    (void)state;
    assert_int_equal(tnf_protobuf_next(&m, &f, &e), TNF_OK);
    assert_int_equal(f.number, 1);
    assert_int_equal(f.value, 150);
    assert_int_equal(tnf_protobuf_next(&m, &f, &e), TNF_OK);
    assert_true(f.number == 2 && f.type == TNF_PROTOBUF_LENGTH && f.offset == 5 && f.n == 7);
    assert_true(f.at == 3 && f.length_at == 4);
    assert_int_equal(tnf_protobuf_next(&m, &f, &e), TNF_OK);
    assert_true(f.number == 3 && f.value == 0x04030201);
    assert_int_equal(tnf_protobuf_next(&m, &f, &e), TNF_OK);
    assert_true(f.number == 4 && f.value == 0x0807060504030201);
    assert_int_equal(tnf_protobuf_next(&m, &f, &e), TNF_OK);
    static const uint64_t want[] = { 3, 270, 86942 };
    tnf_protobuf packed = tnf_protobuf_inside(&m, &f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tnf_protobuf_varint(&packed, &v, &e), TNF_OK);
        assert_true(v == want[i]);
    }
    assert_false(tnf_protobuf_more(&packed));
    assert_false(tnf_protobuf_more(&m));
}

static void check_refused(const void *p, size_t n, tnf_status status, uint64_t offset)
{
    tnf_protobuf m = message_over(p, n);
    tnf_protobuf_field f;
    tnf_error e = { .offset = 0 };
    tnf_status found = TNF_OK;
    while (found == TNF_OK && tnf_protobuf_more(&m))
        found = tnf_protobuf_next(&m, &f, &e);
    assert_int_equal(found, status);
    assert_true(e.offset == offset);
}

#define REFUSES(text, status, offset) check_refused(text, sizeof(text) - 1, status, offset)

static void refuses_what_is_none(void **state)
{
    (void)state;
    REFUSES("\x08", TNF_ETRUNCATED, 1);
    REFUSES("\x08\x96", TNF_ETRUNCATED, 2);
    REFUSES("\x12\x07test", TNF_ETRUNCATED, 6);
    REFUSES("\x1D\x01\x02\x03", TNF_ETRUNCATED, 4);
    REFUSES("\x21\x01\x02\x03\x04\x05\x06\x07", TNF_ETRUNCATED, 8);
    REFUSES("\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", TNF_ETRUNCATED, 11);
    REFUSES("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02", TNF_EFORMAT, 1);
    REFUSES("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", TNF_EFORMAT, 1);
    REFUSES("\x00\x01", TNF_EFORMAT, 0);                     /* number 0 */
    REFUSES("\x0B", TNF_EFORMAT, 0);                         /* a group begins */
    REFUSES("\x0C", TNF_EFORMAT, 0);                         /* and ends */
    REFUSES("\x0E", TNF_EFORMAT, 0);                         /* no such type */
    REFUSES("\x88\x80\x80\x80\x80\x01\x01", TNF_EFORMAT, 0); /* number beyond 2^29 */
}

static void inner_lengths_are_bounded(void **state)
{
    tnf_protobuf m = OVER("\x0A\x02\x12\x05xxxxx");
    tnf_protobuf_field f;
    tnf_error e;
    (void)state;
    assert_int_equal(tnf_protobuf_next(&m, &f, &e), TNF_OK);
    tnf_protobuf inner = tnf_protobuf_inside(&m, &f);
    assert_int_equal(tnf_protobuf_next(&inner, &f, &e), TNF_EFORMAT);
    assert_int_equal(e.offset, 4);
}

static void texts_are_copied(void **state)
{
    static uint8_t large[3 * TNF_PROTOBUF_WINDOW];
    tnf_arena arena;
    tnf_protobuf_field f;
    tnf_error e;
    tnf_str s;
    (void)state;
    memset(large, 'x', sizeof large);
    size_t content = 2 * TNF_PROTOBUF_WINDOW + 5;
    large[0] = 0x0A;
    size_t n = 1 + tnf_protobuf_put(large + 1, content);
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &alloc, UINT64_MAX);
    tnf_protobuf m = message_over(large, n + content);
    assert_int_equal(tnf_protobuf_next(&m, &f, &e), TNF_OK);
    assert_int_equal(tnf_protobuf_text(&m, &f, content, &arena, &s, &e), TNF_OK);
    assert_true(s.n == content && s.p[content] == 0 && memcmp(s.p, large + n, content) == 0);
    assert_int_equal(tnf_protobuf_text(&m, &f, content - 1, &arena, &s, &e), TNF_ELIMIT);
    tnf_arena_free(&arena);
}

static void varints_are_written(void **state)
{
    static const uint64_t values[] = { 0, 1, 127, 128, 300, UINT32_MAX, UINT64_MAX };
    static const size_t lengths[] = { 1, 1, 1, 2, 2, 5, 10 };
    uint8_t bytes[10];
    uint64_t v;
    tnf_error e;
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(tnf_protobuf_put(bytes, values[i]), lengths[i]);
        tnf_protobuf m = message_over(bytes, lengths[i]);
        assert_int_equal(tnf_protobuf_varint(&m, &v, &e), TNF_OK);
        assert_true(v == values[i] && !tnf_protobuf_more(&m));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_types),           cmocka_unit_test(refuses_what_is_none),
        cmocka_unit_test(inner_lengths_are_bounded), cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(varints_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
