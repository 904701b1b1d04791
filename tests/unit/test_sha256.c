/* SPDX-License-Identifier: MIT */
/* SHA-256 in every way that this machine has, and SHA-1: the examples of FIPS 180-2 (appendix B)
 * and of the NIST's test vectors, then all lengths, cuts and alignments, against Python's hashlib.
 */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tnf_sha256_fn *ways[3]; /* NULL: not available on this machine */

static int find_ways(void **state)
{
    (void)state;
    ways[0] = tnf_sha256_by_cpu();
    ways[1] = tnf_sha256_by_avx2();
    ways[2] = tnf_sha256_portable;
    return 0;
}

static void begin_redirects(tnf_sha256 *s, size_t way)
{
    tnf_sha256_begin(s);
    s->add = ways[way];
}

static void expect_hex(const uint8_t hash[32], const char *hex)
{
    char text[65];
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    assert_string_equal(text, hex);
}

static void expect_256(const void *bytes, size_t n, size_t times, const char *hex)
{
    for (size_t way = 0; way < 3; way++) {
        tnf_sha256 s;
        uint8_t hash[32];
        if (!ways[way])
            continue;
        begin_redirects(&s, way);
        for (size_t i = 0; i < times; i++)
            tnf_sha256_update(&s, bytes, n);
        tnf_sha256_end(&s, hash);
        expect_hex(hash, hex);
    }
}

static void test_fips(void **state)
{
    (void)state;
    expect_256("abc", 3, 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 1,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect_256("a", 1, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    expect_256("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_256("\xbd", 1, 1, "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
    expect_256("\xc9\x8c\x8e\x55", 4, 1,
               "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504");
}

static void expect_1(const char *text, size_t times, const char *hex)
{
    tnf_sha256 s;
    uint8_t hash[20];
    char found[41];
    tnf_sha1_begin(&s);
    for (size_t i = 0; i < times; i++)
        tnf_sha256_update(&s, text, strlen(text));
    tnf_sha1_end(&s, hash);
    for (int i = 0; i < 20; i++)
        snprintf(found + 2 * i, 3, "%02x", hash[i]);
    assert_string_equal(found, hex);
}

/* FIPS 180-2, appendix A, and the empty message. */
static void test_sha1(void **state)
{
    (void)state;
    expect_1("abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect_1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
             "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    expect_1("a", 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    expect_1("", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

static void digest_cut(uint8_t out[32], size_t way, const uint8_t *bytes, size_t n, size_t cut)
{
    tnf_sha256 s;
    begin_redirects(&s, way);
    tnf_sha256_update(&s, bytes, cut);
    tnf_sha256_update(&s, bytes + cut, n - cut);
    tnf_sha256_end(&s, out);
}

/* The digest of the digests of 0 to 300 bytes, each cut in two at every place. By hashlib:
 *   all = bytes((i * 7 + 3) % 256 for i in range(300))
 *   sha256(b"".join(sha256(all[:n]).digest_cut() for n in range(301))) */
static void test_cuts(void **state)
{
    uint8_t bytes[300], one[32], other[32];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + 3);
    for (size_t way = 0; way < 3; way++) {
        tnf_sha256 all;
        if (!ways[way])
            continue;
        begin_redirects(&all, way);
        for (size_t n = 0; n <= sizeof bytes; n++) {
            digest_cut(one, way, bytes, n, 0);
            tnf_sha256_update(&all, one, 32);
            for (size_t cut = 1; cut <= n; cut++) {
                digest_cut(other, way, bytes, n, cut);
                assert_memory_equal(one, other, 32);
            }
        }
        tnf_sha256_end(&all, one);
        expect_hex(one, "7d917fbd2cf49ddff9ad0a8706bba32d204e92e71d2e369c5a03d6af29278c9f");
    }
}

/* Many blocks at once, at any address and of any number. The digest of 200 digests, by hashlib:
 *   data = bytes(i * 0x9e3779b97f4a7c15 >> 40 & 255 for i in range(20000)); x = 1; all = b""
 *   for i in range(200):
 *       x = x * 1103515245 + 12345 & 0xffffffff
 *       all += sha256(data[(x >> 8) % 64:][:(x >> 16) % 16384]).digest_cut() */
static void test_long(void **state)
{
    static uint8_t data[20000];
    uint8_t out[32];
    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * UINT64_C(0x9e3779b97f4a7c15) >> 40);
    for (size_t way = 0; way < 3; way++) {
        tnf_sha256 all;
        uint32_t x = 1;
        if (!ways[way])
            continue;
        begin_redirects(&all, way);
        for (int i = 0; i < 200; i++) {
            x = x * 1103515245u + 12345u;
            size_t n = (x >> 16) % 16384;
            digest_cut(out, way, data + (x >> 8) % 64, n, n / 3);
            tnf_sha256_update(&all, out, 32);
        }
        tnf_sha256_end(&all, out);
        expect_hex(out, "ec5e281139788002adf5acee7d49b92a78185d835e52736d39fbb89f70e7767c");
    }
}

/* From any state, and for any number of blocks, also none: the same as block by block. */
static void test_ways_agree(void **state)
{
    uint8_t bytes[9 * 64 + 1];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i * 13 + i);
    for (size_t way = 0; way < 3; way++)
        for (size_t n = 0; ways[way] && n <= 9; n++) {
            uint32_t one[8] = { 1, 2, 3, 0xffffffff, 5, 6, 0x80000000, 8 }, other[8];
            memcpy(other, one, sizeof one);
            for (size_t i = 0; i < n; i++)
                tnf_sha256_portable(one, bytes + 1 + 64 * i, 1);
            ways[way](other, bytes + 1, n);
            assert_memory_equal(one, other, sizeof one);
        }
}

static void test_choice(void **state)
{
    tnf_sha256 s;
    (void)state;
    tnf_sha256_begin(&s);
    assert_true(s.add == (ways[0] ? ways[0] : ways[1] ? ways[1] : ways[2]));
    tnf_sha256_begin_small(&s);
    assert_true(s.add == tnf_sha256_portable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fips),       cmocka_unit_test(test_sha1),
        cmocka_unit_test(test_cuts),       cmocka_unit_test(test_long),
        cmocka_unit_test(test_ways_agree), cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, find_ways, NULL);
}
