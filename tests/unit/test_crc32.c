/* SPDX-License-Identifier: MIT */
/* All implementations of CRC-32, compared with the check value of "123456789", values of Python's
 * zlib, the definition bit by bit, and zlib itself. */
#include "base/crc32.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <zlib.h>

enum { BIG = 20001 };

static uint8_t big[BIG + 16];

static int fill_big(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < BIG; i++)
        big[i] = (uint8_t)(i * i * 7 + i * 13 + (i >> 8));
    return 0;
}

/* By the definition, with the polynomial. */
static uint32_t by_bits(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    for (; n > 0; p++, n--) {
        crc ^= *p;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void check_crc(uint32_t from, const void *bytes, size_t n, uint32_t expect)
{
    assert_int_equal(tnf_crc32(from, bytes, n), expect);
    assert_int_equal(tnf_crc32_portable(from, bytes, n), expect);
}

static void known_answers(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        uint32_t sum;
    } expect[] = { { 15, 0x2f996e18 },   { 16, 0x819ee5d3 },   { 63, 0x713716a3 },
                   { 64, 0xb618705b },   { 65, 0x58d13e11 },   { 127, 0x8127994c },
                   { 128, 0x1d395d8d },  { 6143, 0x1dae1748 }, { 6144, 0xc0a8a8ca },
                   { 20001, 0xe6d5cfeb } };
    check_crc(0, "", 0, 0);
    check_crc(0, "a", 1, 0xe8b7be43);
    check_crc(0, "abc", 3, 0x352441c2);
    check_crc(0, "123456789", 9, 0xcbf43926);
    check_crc(0, "The quick brown fox jumps over the lazy dog", 43, 0x414fa339);
    for (size_t i = 0; i < sizeof expect / sizeof *expect; i++)
        check_crc(0, big, expect[i].n, expect[i].sum);
}

/* Lengths near multiples of 16 and 64 bytes, at any address, from any sum. */
static void every_length(void **state)
{
    (void)state;
    for (size_t from = 0; from < 17; from++)
        for (size_t n = 0; n < 300; n++)
            check_crc((uint32_t)(n * 0x9e3779b9u), big + from, n,
                      by_bits((uint32_t)(n * 0x9e3779b9u), big + from, n));
    for (size_t n = 6000; n < 6300; n++)
        check_crc(0, big + n % 16, n, by_bits(0, big + n % 16, n));
}

static void piece_by_piece(void **state)
{
    (void)state;
    static const size_t steps[] = { 1, 15, 16, 17, 63, 64, 65, 100, 4096, 6144, 7000 };
    uint32_t whole = by_bits(0, big, BIG);
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        uint32_t sum = 0;
        for (size_t at = 0; at < BIG; at += steps[s])
            sum = tnf_crc32(sum, big + at, BIG - at < steps[s] ? BIG - at : steps[s]);
        assert_int_equal(sum, whole);
    }
}

static void together_and_apart(void **state)
{
    (void)state;
    uint32_t whole = by_bits(0, big, BIG);
    for (size_t cut = 0; cut <= BIG; cut += 1 + cut / 2) {
        uint32_t front = tnf_crc32(0, big, cut), back = tnf_crc32(0, big + cut, BIG - cut);
        assert_int_equal(tnf_crc32_join(front, back, BIG - cut), whole);
        assert_int_equal(tnf_crc32_behind(whole, front, BIG - cut), back);
    }
}

static void as_zlib(void **state)
{
    (void)state;
    size_t n = (size_t)3 << 20;
    uint8_t *bytes = malloc(n);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t from = 0; from < 3; from++)
        check_crc(7, bytes + from, n - 5 * from, (uint32_t)crc32_z(7, bytes + from, n - 5 * from));
    free(bytes);
}

/* For more bytes than the test can compute. */
static void joined_as_zlib(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 0,
                                      1,
                                      0x7fffffff,
                                      (uint64_t)1 << 31,
                                      UINT32_MAX,
                                      (uint64_t)1 << 32,
                                      ((uint64_t)1 << 33) + 5,
                                      0x123456789abcdef };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        z_off_t n = (z_off_t)sizes[i];
        if (n < 0 || (uint64_t)n != sizes[i])
            continue; /* off_t has 32 bits */
        uint32_t whole = (uint32_t)crc32_combine(0x12345678, 0x9abcdef0, n);
        assert_int_equal(tnf_crc32_join(0x12345678, 0x9abcdef0, sizes[i]), whole);
        assert_int_equal(tnf_crc32_behind(whole, 0x12345678, sizes[i]), 0x9abcdef0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),  cmocka_unit_test(every_length),
        cmocka_unit_test(piece_by_piece), cmocka_unit_test(together_and_apart),
        cmocka_unit_test(as_zlib),        cmocka_unit_test(joined_as_zlib),
    };
    return cmocka_run_group_tests(tests, fill_big, NULL);
}
