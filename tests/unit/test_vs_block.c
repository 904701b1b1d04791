/* SPDX-License-Identifier: MIT */
/* The syntax of VS: varints, compared with the vectors of the description (the second column has
 * those of the author's own tests for the other order), meta blocks, points. */
#include "../support/unit.h"
#include "formats/vs/block.h"

static const struct {
    uint64_t value;
    const char *lsb, *msb;
    size_t n;
} unsigned_vectors[] = {
    { 0ull, "\x00", "\x00", 1 },
    { 1ull, "\x01", "\x01", 1 },
    { 127ull, "\x7f", "\x7f", 1 },
    { 128ull, "\x80\x01", "\x81\x00", 2 },
    { 255ull, "\xff\x01", "\x81\x7f", 2 },
    { 256ull, "\x80\x02", "\x82\x00", 2 },
    { 300ull, "\xac\x02", "\x82\x2c", 2 },
    { 16383ull, "\xff\x7f", "\xff\x7f", 2 },
    { 16384ull, "\x80\x80\x01", "\x81\x80\x00", 3 },
    { 65535ull, "\xff\xff\x03", "\x83\xff\x7f", 3 },
    { 65536ull, "\x80\x80\x04", "\x84\x80\x00", 3 },
    { 2097151ull, "\xff\xff\x7f", "\xff\xff\x7f", 3 },
    { 2097152ull, "\x80\x80\x80\x01", "\x81\x80\x80\x00", 4 },
    { 268435455ull, "\xff\xff\xff\x7f", "\xff\xff\xff\x7f", 4 },
    { 268435456ull, "\x80\x80\x80\x80\x01", "\x81\x80\x80\x80\x00", 5 },
    { 2147483647ull, "\xff\xff\xff\xff\x07", "\x87\xff\xff\xff\x7f", 5 },
    { 2147483648ull, "\x80\x80\x80\x80\x08", "\x88\x80\x80\x80\x00", 5 },
    { 4294967295ull, "\xff\xff\xff\xff\x0f", "\x8f\xff\xff\xff\x7f", 5 },
    { 9223372036854775807ull, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
      "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9 },
    { 9223372036854775808ull, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
      "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10 },
    { 18446744073709551615ull, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
      "\x81\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10 },
};

static const struct {
    int64_t value;
    uint64_t zigzag;
} signed_vectors[] = {
    { 0, 0ull },
    { -1, 1ull },
    { 1, 2ull },
    { -2, 3ull },
    { 2, 4ull },
    { 63, 126ull },
    { -64, 127ull },
    { 64, 128ull },
    { -65, 129ull },
    { 127, 254ull },
    { -128, 255ull },
    { 32767, 65534ull },
    { -32768, 65535ull },
    { 2147483647, 4294967294ull },
    { -2147483648, 4294967295ull },
    { 9223372036854775807, 18446744073709551614ull },
    { INT64_MIN, 18446744073709551615ull },
};

static void varints_come_back(void **state)
{
    (void)state;
    tnf_error e;
    for (size_t i = 0; i < sizeof unsigned_vectors / sizeof *unsigned_vectors; i++)
        for (int msb = 0; msb < 2; msb++) {
            uint8_t out[10];
            uint64_t back = 0;
            const char *want = msb ? unsigned_vectors[i].msb : unsigned_vectors[i].lsb;
            size_t n = tnf_vs_put_varint(out, unsigned_vectors[i].value, msb);
            assert_int_equal(n, unsigned_vectors[i].n);
            assert_memory_equal(out, want, n);
            tnf_cur c = tnf_cur_over(want, n, 0);
            assert_ok(tnf_vs_varint(&c, 64, msb, "it", &back, &e));
            assert_true(back == unsigned_vectors[i].value && tnf_left(&c) == 0);
        }
}

static void zigzags_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof signed_vectors / sizeof *signed_vectors; i++) {
        assert_true(tnf_vs_zigzag(signed_vectors[i].value) == signed_vectors[i].zigzag);
        assert_true(tnf_vs_unzigzag(signed_vectors[i].zigzag) == signed_vectors[i].value);
    }
    assert_true(tnf_vs_zigzag(INT64_MIN) == UINT64_MAX);
    assert_true(tnf_vs_unzigzag(UINT64_MAX) == INT64_MIN);
}

static tnf_status parse_varint(const char *bytes, size_t n, unsigned bits, bool msb, uint64_t *out,
                               tnf_error *e)
{
    tnf_cur c = tnf_cur_over(bytes, n, 100);
    return tnf_vs_varint(&c, bits, msb, "it", out, e);
}

static void varint_limits(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t v = 0;
    /* the largest of each width, and one more */
    assert_ok(parse_varint("\xff\xff\x03", 3, 16, false, &v, &e));
    assert_true(v == 0xffff);
    assert_fails(parse_varint("\x80\x80\x04", 3, 16, false, &v, &e), TNF_EFORMAT);
    assert_int_equal(e.offset, 100);
    assert_fails(parse_varint("\x84\x80\x00", 3, 16, true, &v, &e), TNF_EFORMAT);
    assert_ok(parse_varint("\xff\xff\xff\xff\x0f", 5, 32, false, &v, &e));
    assert_true(v == UINT32_MAX);
    assert_fails(parse_varint("\x80\x80\x80\x80\x10", 5, 32, false, &v, &e), TNF_EFORMAT);
    assert_fails(parse_varint("\x90\x80\x80\x80\x00", 5, 32, true, &v, &e), TNF_EFORMAT);
    assert_fails(parse_varint("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 10, 64, false, &v, &e),
                 TNF_EFORMAT);
    assert_fails(parse_varint("\x82\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, 64, true, &v, &e),
                 TNF_EFORMAT);
    /* too many bytes, padded within the limit, too few */
    assert_fails(parse_varint("\x80\x80\x80\x00", 4, 16, false, &v, &e), TNF_EFORMAT);
    assert_says("varint too long");
    assert_fails(parse_varint("\x81\x80\x80\x80\x80\x00", 6, 32, false, &v, &e), TNF_EFORMAT);
    assert_ok(parse_varint("\x81\x80\x80\x80\x00", 5, 32, false, &v, &e));
    assert_true(v == 1);
    assert_ok(parse_varint("\x80\x80\x01", 3, 32, true, &v, &e));
    assert_true(v == 1);
    assert_fails(parse_varint("\x80", 1, 32, false, &v, &e), TNF_ETRUNCATED);
    assert_fails(parse_varint("", 0, 32, false, &v, &e), TNF_ETRUNCATED);
}

/* The example of the description: rank 3 u8 [1,2,3], attributes {}. */
static void meta_of_the_description(void **state)
{
    (void)state;
    static const char block[] = "\x5e\x09\x00\x00\x00\x03\x01\x02\x03\x01\x00\x00\x01\x80";
    tnf_error e;
    tnf_arena arena;
    tnf_vs_meta m;
    tnf_buf b;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &a, UINT64_MAX);
    tnf_buf_init(&b, &a, UINT64_MAX);
    tnf_cur c = tnf_cur_over(block + 5, sizeof block - 6, 9);
    assert_ok(tnf_vs_meta_parse(&m, &c, false, &arena, &e));
    assert_int_equal(m.rank, 3);
    assert_true(m.dims[0] == 1 && m.dims[1] == 2 && m.dims[2] == 3);
    assert_string_equal(m.type->id, "u8");
    assert_true(m.elements == 6 && m.vector_bytes == 6 && m.attributes.n == 1 && m.extra_n == 0);
    tnf_vs_put_meta(&b, &m, false);
    assert_int_equal(b.n, sizeof block - 1);
    assert_memory_equal(b.p, block, b.n);
    tnf_buf_free(&b);
    tnf_arena_free(&arena);
}

static void codes_of_resolutions(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        int code;
    } want[] = { { "bit", 0 },  { "u8", 1 },   { "i8", -1 },  { "u16", 2 },
                 { "i16", -2 }, { "u32", 3 },  { "i32", -3 }, { "u64", 4 },
                 { "i64", -4 }, { "f32", 11 }, { "f64", 12 } };
    int8_t code;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_true(tnf_vs_resolution(tnf_type_named(want[i].type), &code));
        assert_int_equal(code, want[i].code);
    }
    assert_true(tnf_vs_resolution(tnf_type_named("f16"), &code)); /* of a later revision */
    assert_int_equal(code, 10);
    assert_false(tnf_vs_resolution(tnf_type_named("bool"), &code));
}

/* ten bits, application data {}: 1011001011, as in the description */
static void point_of_the_description(void **state)
{
    (void)state;
    static const char block[] = "\x50\x0a\x00\x00\x00\x00\x01\x80\x00\x02\x00\x00\x00\x4d\x03";
    tnf_error e;
    tnf_buf b;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_buf_init(&b, &a, UINT64_MAX);
    assert_ok(tnf_vs_put_point(&b, 0, (tnf_str) { "\x80", 1 }, 0, 2, 0, false, &e));
    assert_int_equal(b.n, sizeof block - 3);
    assert_memory_equal(b.p, block, b.n);
    tnf_vs_point p = { .at = 16, .length = 10 };
    uint64_t head = 0;
    assert_ok(tnf_vs_point_begin(&p, (const uint8_t *)block + 5, false, &head, &e));
    assert_true(p.app_at == 23 && p.app_n == 1 && head == 24);
    assert_ok(tnf_vs_point_vector(&p, (const uint8_t *)block + 8, head, &e));
    assert_true(p.vector_at == 29 && p.vector_n == 2 && p.extra_n == 0);
    assert_fails(tnf_vs_put_point(&b, 0, (tnf_str) { "", 0 }, 0, UINT32_MAX - 6, 0, false, &e),
                 TNF_ELIMIT);
    assert_fails(tnf_vs_put_point(&b, 0, (tnf_str) { "", 0 }, 0, 5, UINT64_MAX, false, &e),
                 TNF_ELIMIT);
    b.n = 0;
    assert_ok(tnf_vs_put_point(&b, 0, (tnf_str) { "", 0 }, 0, UINT32_MAX - 7, 0, false, &e));
    assert_memory_equal(b.p + 1, "\xff\xff\xff\xff", 4);
    tnf_buf_free(&b);
}

static void checks_app_data(void **state)
{
    (void)state;
    tnf_error e;
    assert_ok(tnf_vs_check_app("\x80", 1, 0, &e));
    assert_ok(tnf_vs_check_app("\xda\x00\x01x", 4, 0, &e)); /* longer than necessary */
    assert_fails(tnf_vs_check_app("\xc0\xc0", 2, 50, &e), TNF_EFORMAT);
    assert_int_equal(e.offset, 51);
    assert_fails(tnf_vs_check_app("\x92\x01", 2, 50, &e), TNF_EFORMAT);
    assert_fails(tnf_vs_check_app("", 0, 50, &e), TNF_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_come_back),    cmocka_unit_test(zigzags_both_ways),
        cmocka_unit_test(varint_limits),        cmocka_unit_test(meta_of_the_description),
        cmocka_unit_test(codes_of_resolutions), cmocka_unit_test(point_of_the_description),
        cmocka_unit_test(checks_app_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
