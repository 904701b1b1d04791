/* SPDX-License-Identifier: MIT */
/* SHA-256 and SHA-1 of our own: the examples of FIPS 180-2 (appendix B) and of the NIST's test
 * vectors, then every way of cutting, against libcrypto's where that is built in. */
#include "base/digest.h"
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_256(const void *bytes, size_t n, size_t times, const char *hex)
{
    tnf_sha256 s;
    uint8_t hash[32];
    char text[65];
    tnf_sha256_begin(&s);
    for (size_t i = 0; i < times; i++)
        tnf_sha256_update(&s, bytes, n);
    tnf_sha256_end(&s, hash);
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    assert_string_equal(text, hex);
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

static void test_cuts(void **state)
{
    uint8_t bytes[260], one[32], other[32];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + 3);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        tnf_digester d;
        assert_true(tnf_digest_begin(&d, "sha256"));
        tnf_digest_update(&d, bytes, n);
        tnf_digest_end(&d, one);
        for (size_t cut = 0; cut <= n; cut++) {
            tnf_sha256 s;
            tnf_sha256_begin(&s);
            tnf_sha256_update(&s, bytes, cut);
            tnf_sha256_update(&s, bytes + cut, n - cut);
            tnf_sha256_end(&s, other);
            assert_memory_equal(one, other, 32);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fips),
        cmocka_unit_test(test_sha1),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
