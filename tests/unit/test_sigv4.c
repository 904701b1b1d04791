/* SPDX-License-Identifier: MIT */
/* HMAC by RFC 4231; signatures by the examples that Amazon publishes for S3 ("Authenticating
 * Requests: Using the Authorization Header"). */
#include "../support/unit.h"
#include "base/hex.h"
#include "remote/sigv4.h"

static void expect_hmac(const char *key, const char *text, const char *want)
{
    uint8_t out[32];
    char hex[65];
    tnf_hmac_sha256(out, key, strlen(key), text, strlen(text));
    *tnf_hex_put(hex, out, 32) = 0;
    assert_string_equal(hex, want);
}

static void test_hmac(void **state)
{
    char key[132];
    (void)state;
    memset(key, 0x0b, 20);
    key[20] = 0;
    expect_hmac(key, "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect_hmac("Jefe", "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, 131);
    key[131] = 0;
    expect_hmac(key, "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void expect_signature(const char *url, bool range, const char *want)
{
    tnf_error e;
    tnf_url u;
    char line[1024];
    const char *headers[4] = { "host:examplebucket.s3.amazonaws.com", "range:bytes=0-9",
                               "x-amz-content-sha256:" TNF_EMPTY_SHA256,
                               "x-amz-date:20130524T000000Z" };
    if (!range) {
        headers[1] = headers[2];
        headers[2] = headers[3];
    }
    assert_ok(tnf_url_parse(&u, url, &e));
    tnf_signing s = { .method = "GET",
                      .url = &u,
                      .id = "AKIAIOSFODNN7EXAMPLE",
                      .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                      .region = "us-east-1",
                      .service = "s3",
                      .payload = TNF_EMPTY_SHA256,
                      .now = 1369353600,
                      .headers = headers,
                      .nheaders = range ? 4 : 3 };
    assert_ok(tnf_sigv4(line, sizeof line, &s, &e));
    const char *found = strstr(line, "Signature=");
    assert_non_null(found);
    assert_string_equal(found + 10, want);
    assert_non_null(strstr(line, "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"));
    assert_fails(tnf_sigv4(line, 100, &s, &e), TNF_EINVAL);
}

static void test_examples(void **state)
{
    (void)state;
    expect_signature("https://examplebucket.s3.amazonaws.com/test.txt", true,
                     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    expect_signature("https://examplebucket.s3.amazonaws.com/?lifecycle", false,
                     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    expect_signature("https://examplebucket.s3.amazonaws.com/?prefix=J&max-keys=2", false,
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hmac),
        cmocka_unit_test(test_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
