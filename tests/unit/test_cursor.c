/* SPDX-License-Identifier: MIT */
/* The bounded reader and byte orders. The bytes end where their memory ends, so a sanitizer sees
 * every read beyond them. */
#include "../support/unit.h"
#include "base/cursor.h"

static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xfe, 0xff, 12, 13, 14, 15 };

static void numbers_in_order(void **state)
{
    (void)state;
    tnf_cur c = tnf_cur_over(bytes, sizeof bytes, 100);
    assert_int_equal(tnf_where(&c), 100);
    assert_int_equal(tnf_u8(&c), 1);
    assert_int_equal(tnf_u16(&c), 0x0302);
    assert_int_equal(tnf_u32(&c), 0x07060504);
    assert_int_equal(tnf_where(&c), 107);
    assert_int_equal(tnf_left(&c), 8);
    assert_true(tnf_u64(&c) == 0x0f0e0d0cfffe0908u);
    assert_int_equal(tnf_left(&c), 0);
    assert_false(c.bad);
    assert_non_null(tnf_bytes(&c, 0)); /* 0 bytes can always be read */
    assert_false(c.bad);
    assert_int_equal(tnf_u8(&c), 0);
    assert_true(c.bad);
}

/* For every length and every requested number of bytes. */
static void never_past_the_end(void **state)
{
    (void)state;
    for (size_t n = 0; n <= sizeof bytes; n++)
        for (size_t want = 0; want <= sizeof bytes + 2; want++) {
            uint8_t *exact = malloc(n ? n : 1);
            memcpy(exact, bytes, n);
            tnf_cur c = tnf_cur_over(exact, n, 0);
            const void *p = tnf_bytes(&c, want);
            assert_int_equal(p != NULL, want <= n);
            assert_int_equal(c.bad, want > n);
            assert_int_equal(tnf_left(&c), want <= n ? n - want : n);
            free(exact);
        }
}

static void bad_stays_bad(void **state)
{
    (void)state;
    tnf_cur c = tnf_cur_over(bytes, 7, 50);
    assert_true(tnf_u64(&c) == 0);
    assert_true(c.bad);
    assert_int_equal(tnf_where(&c), 50); /* the place of the failure */
    assert_int_equal(tnf_u8(&c), 0);     /* although it would fit */
    assert_int_equal(tnf_u16(&c), 0);
    assert_int_equal(tnf_u32(&c), 0);
    assert_null(tnf_bytes(&c, 0));
    assert_int_equal(tnf_where(&c), 50);
}

static void absurd_lengths(void **state)
{
    (void)state;
    static const uint64_t wants[] = { UINT64_MAX, UINT64_MAX - 6, (uint64_t)1 << 32,
                                      (uint64_t)INT64_MAX, 16 };
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        tnf_cur c = tnf_cur_over(bytes, sizeof bytes, 0);
        assert_null(tnf_bytes(&c, wants[i]));
        assert_true(c.bad);
    }
    tnf_cur none = tnf_cur_over(NULL, 0, 9);
    assert_int_equal(tnf_left(&none), 0);
    assert_int_equal(tnf_u8(&none), 0);
    assert_true(none.bad);
}

static void byte_orders(void **state)
{
    (void)state;
    uint8_t out[9] = { 0 };
    assert_int_equal(tnf_le16(bytes + 9), 0xfffe);
    assert_int_equal(tnf_be16(bytes + 9), 0xfeff);
    assert_true(tnf_le32(bytes + 8) == 0x0cfffe09u);
    assert_true(tnf_be32(bytes + 8) == 0x09feff0cu);
    assert_true(tnf_le64(bytes + 1) == 0x0908070605040302u);
    assert_true(tnf_be64(bytes + 1) == 0x0203040506070809u);
    tnf_put_le16(out + 1, 0x0201); /* at an odd address on purpose */
    assert_memory_equal(out, "\0\1\2\0", 4);
    tnf_put_le32(out + 1, 0xf4030201);
    assert_memory_equal(out, "\0\1\2\3\xf4\0", 6);
    tnf_put_le64(out + 1, 0xf807060504030201);
    assert_memory_equal(out, "\0\1\2\3\4\5\6\7\xf8", 9);
}

static void takes_varints(void **state)
{
    (void)state;
    static const uint8_t most[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x80 };
    static const uint8_t small[] = { 0, 0x7f, 0x80, 1, 0xac, 2 };
    tnf_cur c = tnf_cur_over(small, sizeof small, 0);
    assert_int_equal(tnf_varint(&c), 0);
    assert_int_equal(tnf_varint(&c), 127);
    assert_int_equal(tnf_varint(&c), 128);
    assert_int_equal(tnf_varint(&c), 300);
    assert_false(c.bad);
    c = tnf_cur_over(most, sizeof most, 0);
    assert_true(tnf_varint(&c) == UINT64_MAX);
    assert_false(c.bad);
    assert_int_equal(tnf_varint(&c), 0); /* the bytes end within the number */
    assert_true(c.bad);
    static const uint8_t endless[] = {
        0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0
    };
    c = tnf_cur_over(endless, sizeof endless, 0);
    assert_int_equal(tnf_varint(&c), 0);
    assert_true(c.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_order), cmocka_unit_test(never_past_the_end),
        cmocka_unit_test(bad_stays_bad),    cmocka_unit_test(absurd_lengths),
        cmocka_unit_test(byte_orders),      cmocka_unit_test(takes_varints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
