/* SPDX-License-Identifier: MIT */
/* Known answers: RFC 3720 B.4 (crc32c), FIPS 180-4 (sha256 of "" "abc" and the 56 letters), the
 * CRC catalogue's check value of "123456789"; the others from zlib, python-xxhash, PyPI crc32c
 * and hashlib, which agree with those. */
#include "base/digest.h"

#include "base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BIG = 100003 };

static uint8_t zeros[32], ones[32], up[32], down[32], big[BIG];

static const struct {
    const void *bytes;
    size_t n;
    const char *crc32c, *crc32, *xxh3_64, *xxh3_128, *sha256;
} known[] = {
    { "", 0, "00000000", "00000000", "2d06800538d394c2", "99aa06d3014798d86001c324468d497f",
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", 3, "364b3fb7", "352441c2", "78af5f94892f3950", "06b05ab6733a618578af5f94892f3950",
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "123456789", 9, "e3069283", "cbf43926", "72dcb18b67a17dff",
      "33119477ede5dcd5e9716427681d5860",
      "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, "071325f5", "171a3f5f",
      "5bbcbbabcdcc3d3f", "3d62d22a5169b016c0d894fd4828a1a7",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { zeros, 32, "8a9136aa", "190a55ad", "a057271c9071c99d", "9a026d96b3c0f0fca057271c9071c99d",
      "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925" },
    { ones, 32, "62a8ab43", "ff6cab0b", "36f6a79eeaf603f2", "44256c49b35b96fffe0382022a0ed8a9",
      "af9613760f72635fbdb44a5a0a63c39f12af30f950a6ee5c971be188e89c4051" },
    { up, 32, "46dd794e", "91267e8a", "3523581fe96e4c05", "25e7c9b3424ceed2457d9566b6fcd697",
      "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd" },
    { down, 32, "113fdb5c", "9ab0ef72", "cad5e73b6046112a", "54ddfc6cfd301e0ebee4e01938be54e2",
      "69c55c9002eb8c7a4e75d0b49629c4cf83d12cfb56670a8cd6e2db1491a996c4" },
    { big, BIG, "caa08a5c", "bce3a8c1", "acf33ba3cf61e369", "b02e921ecad88f0facf33ba3cf61e369",
      "635e9a7d2f64ce04a46b1503cbe287b8721795f215f4b8cf24b256908acaab1a" },
};

static int fill_inputs(void **state)
{
    (void)state;
    memset(ones, 0xff, sizeof ones);
    for (unsigned i = 0; i < 32; i++) {
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    for (unsigned i = 0; i < BIG; i++)
        big[i] = (uint8_t)(i % 251);
    return 0;
}

/* In pieces of `step` bytes, as when a file is read. */
static void check_digest(const char *algorithm, const void *bytes, size_t n, size_t step,
                         const char *hex)
{
    tnf_digester d;
    uint8_t out[TNF_DIGEST_MAX];
    char text[2 * TNF_DIGEST_MAX + 1] = "";
    assert_true(tnf_digest_begin(&d, algorithm));
    for (size_t i = 0; i < n; i += step)
        tnf_digest_update(&d, (const uint8_t *)bytes + i, n - i < step ? n - i : step);
    tnf_digest_update(&d, NULL, 0);
    tnf_digest_end(&d, out);
    for (size_t i = 0; i < tnf_digest_size(algorithm); i++)
        snprintf(text + 2 * i, 3, "%02x", out[i]);
    assert_string_equal(text, hex);
}

static void known_answers(void **state)
{
    (void)state;
    static const size_t steps[] = { 1, 7, 64, 4096, BIG };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
            check_digest("crc32c", known[i].bytes, known[i].n, steps[s], known[i].crc32c);
            check_digest("crc32", known[i].bytes, known[i].n, steps[s], known[i].crc32);
            check_digest("xxh3-64", known[i].bytes, known[i].n, steps[s], known[i].xxh3_64);
            check_digest("xxh3-128", known[i].bytes, known[i].n, steps[s], known[i].xxh3_128);
            check_digest("sha256", known[i].bytes, known[i].n, steps[s], known[i].sha256);
        }
}

static void all_ways_of_crc32c(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t expect = (uint32_t)strtoul(known[i].crc32c, NULL, 16);
        assert_int_equal(tnf_crc32c(0, known[i].bytes, known[i].n), expect);
        assert_int_equal(tnf_crc32c_portable(0, known[i].bytes, known[i].n), expect);
        assert_int_equal(tnf_crc32c_small(0, known[i].bytes, known[i].n), expect);
    }
    /* Every start and length near multiples of eight bytes. */
    for (size_t from = 0; from < 9; from++)
        for (size_t n = 0; n < 40; n++)
            assert_int_equal(tnf_crc32c(n, big + from, n), tnf_crc32c_portable(n, big + from, n));
}

/* Near the lengths at which three sums are computed at once; expected values bit by bit from the
 * polynomial. */
static void long_crc32c(void **state)
{
    (void)state;
    static uint8_t bytes[20001];
    static const struct {
        size_t n;
        uint32_t sum;
    } expect[] = { { 6143, 0xf8934c3c },
                   { 6144, 0xcd100210 },
                   { 6145, 0xd8691b9c },
                   { 12288, 0xbbe2dcc2 },
                   { 20000, 0x422d0aef } };
    for (size_t from = 0; from < 2; from++) {
        for (uint32_t i = 0; i < 20000; i++)
            bytes[from + i] = (uint8_t)(i * i * 7 + i * 13 + (i >> 8));
        for (size_t i = 0; i < sizeof expect / sizeof *expect; i++) {
            assert_int_equal(tnf_crc32c(0, bytes + from, expect[i].n), expect[i].sum);
            assert_int_equal(tnf_crc32c_portable(0, bytes + from, expect[i].n), expect[i].sum);
            assert_int_equal(tnf_crc32c_small(0, bytes + from, expect[i].n), expect[i].sum);
            uint32_t half = tnf_crc32c(0, bytes + from, 6001);
            assert_int_equal(tnf_crc32c(half, bytes + from + 6001, expect[i].n - 6001),
                             expect[i].sum);
        }
    }
}

static void sizes_and_strangers(void **state)
{
    (void)state;
    tnf_digester d;
    assert_int_equal(tnf_digest_size("crc32c"), 4);
    assert_int_equal(tnf_digest_size("crc32"), 4);
    assert_int_equal(tnf_digest_size("xxh3-64"), 8);
    assert_int_equal(tnf_digest_size("xxh3-128"), 16);
    assert_int_equal(tnf_digest_size("sha256"), 32);
    assert_int_equal(tnf_digest_size("sha25"), 0);
    assert_int_equal(tnf_digest_size(""), 0);
    assert_false(tnf_digest_begin(&d, "md5"));
    tnf_digest_end(&d, NULL); /* harmless after a failed begin */
}

/* Released without asking for the result: the leak checker must find nothing. */
static void given_up(void **state)
{
    (void)state;
    static const char *const names[] = { "crc32c", "crc32", "xxh3-64", "xxh3-128", "sha256" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tnf_digester d;
        assert_true(tnf_digest_begin(&d, names[i]));
        tnf_digest_update(&d, up, sizeof up);
        tnf_digest_end(&d, NULL);
        tnf_digest_end(&d, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers), cmocka_unit_test(all_ways_of_crc32c),
        cmocka_unit_test(long_crc32c),   cmocka_unit_test(sizes_and_strangers),
        cmocka_unit_test(given_up),
    };
    return cmocka_run_group_tests(tests, fill_inputs, NULL);
}
