/* SPDX-License-Identifier: MIT */
/* Digests that servers send: the check values of their catalogues for "123456789", MD5 of RFC 1321,
 * and which headers describe the whole object. */
#include "../support/unit.h"
#include "remote/answer.h"

static void assert_sum(tnf_sum_kind kind, const char *text, const char *hex)
{
    tnf_summing s;
    tnf_sum is, want;
    char quoted[80];
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        assert_true(tnf_summing_begin(&s, kind));
        tnf_summing_update(&s, text, cut);
        tnf_summing_update(&s, text + cut, strlen(text) - cut);
        tnf_summing_end(&s, &is);
        snprintf(quoted, sizeof quoted, "\"%s\"", hex);
        assert_true(tnf_sum_quoted(&want, kind, quoted));
        assert_memory_equal(is.bytes, want.bytes, tnf_sum_size(kind));
    }
}

static void test_values(void **state)
{
    (void)state;
    assert_sum(TNF_SUM_CRC32, "123456789", "cbf43926");
    assert_sum(TNF_SUM_CRC32C, "123456789", "e3069283");
    assert_sum(TNF_SUM_CRC64, "123456789", "ae8b14860a799888");
    assert_sum(TNF_SUM_MD5, "", "d41d8cd98f00b204e9800998ecf8427e");
    assert_sum(TNF_SUM_MD5, "abc", "900150983cd24fb0d6963f7d28e17f72");
    assert_sum(TNF_SUM_MD5, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
               "d174ab98d277d9f5a5611c2c9f419d9f");
    assert_sum(TNF_SUM_MD5,
               "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
               "57edf4a22be3c955ac49da2e2107b67a");
    assert_sum(TNF_SUM_SHA256, "abc",
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static tnf_sum_kind told_kind(int status, const char *name, const char *value)
{
    tnf_sum sum = { 0 };
    tnf_sum_header(&sum, (tnf_str) { name, strlen(name) }, (tnf_str) { value, strlen(value) },
                   status);
    return sum.kind;
}

#define MD5_TEXT "kAFQmDzST7DWlj99KOF/cg==" /* of "abc" */
#define SHA_TEXT "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="

static void test_headers(void **state)
{
    tnf_sum sum = { 0 }, want;
    tnf_str name = { "x-goog-hash", 11 }, value = { "crc32c=4waSgw==,md5=" MD5_TEXT, 44 };
    (void)state;
    tnf_sum_header(&sum, name, value, 206);
    assert_true(tnf_sum_quoted(&want, TNF_SUM_MD5, "900150983cd24fb0d6963f7d28e17f72"));
    assert_true(sum.kind == TNF_SUM_MD5 && memcmp(sum.bytes, want.bytes, 16) == 0);
    tnf_sum_header(&sum, name, (tnf_str) { "crc32c=4waSgw==", 15 },
                   206); /* weaker, so the earlier one is kept */
    assert_int_equal(sum.kind, TNF_SUM_MD5);
    assert_int_equal(told_kind(206, "X-MS-Blob-Content-MD5", MD5_TEXT), TNF_SUM_MD5);
    assert_int_equal(told_kind(200, "Content-MD5", MD5_TEXT), TNF_SUM_MD5);
    assert_int_equal(told_kind(206, "Content-MD5", MD5_TEXT), TNF_SUM_NONE); /* of the part */
    assert_int_equal(told_kind(206, "Repr-Digest", "sha-256=:" SHA_TEXT ":"), TNF_SUM_SHA256);
    assert_int_equal(told_kind(206, "Digest", "MD5=" MD5_TEXT ", SHA-256=" SHA_TEXT),
                     TNF_SUM_SHA256);
    assert_int_equal(told_kind(200, "x-amz-checksum-crc64nvme", "rosUhgp5mIg="), TNF_SUM_CRC64);
    assert_int_equal(told_kind(200, "x-amz-checksum-sha256", SHA_TEXT), TNF_SUM_SHA256);
    assert_int_equal(told_kind(200, "x-amz-checksum-sha256", SHA_TEXT "-3"),
                     TNF_SUM_NONE); /* of parts */
    assert_int_equal(told_kind(206, "x-amz-checksum-sha256", SHA_TEXT), TNF_SUM_NONE);
    assert_int_equal(told_kind(200, "x-amz-checksum-type", "FULL_OBJECT"), TNF_SUM_NONE);
    assert_int_equal(told_kind(200, "Content-MD5", "kAFQmDzST7DWlj99KOF/cgAA"), TNF_SUM_NONE);
    assert_int_equal(told_kind(200, "Content-MD5", "kAFQmDzST7DWlj99KOF/c?=="), TNF_SUM_NONE);
    assert_false(tnf_sum_quoted(&want, TNF_SUM_MD5, "\"900150983cd24fb0d6963f7d28e17f72-3\""));
    assert_false(tnf_sum_quoted(&want, TNF_SUM_MD5, "\"900150983cd24fb0d6963f7d28e17f7x\""));
}

/* The address of the next page in an answer; NULL: there is none. */
static const char *next_of(const char *value)
{
    static tnf_answer a;
    char line[400];
    snprintf(line, sizeof line, "Link: %s\r\n", value);
    tnf_answer_begin(&a);
    tnf_answer_line(&a, line, strlen(line));
    return a.more ? a.next : NULL;
}

static void test_links(void **state)
{
    (void)state;
    assert_string_equal(next_of("<https://h/a?c=1>; rel=\"next\""), "https://h/a?c=1");
    assert_string_equal(next_of("</p,q>;rel=first, </a?b=1,2>; title=\"x, y\"; rel=next"),
                        "/a?b=1,2");
    assert_string_equal(next_of("<x>; rel=\"prev\", <y>; REL=\"Next\""), "y");
    assert_null(next_of("<https://h/a>; rel=\"last\""));
    assert_null(next_of("<https://h/next>; rel=nextish"));
    assert_null(next_of("https://h/a; rel=next"));
    assert_null(next_of(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_values),
                                        cmocka_unit_test(test_headers),
                                        cmocka_unit_test(test_links) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
