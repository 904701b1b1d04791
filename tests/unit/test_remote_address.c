/* SPDX-License-Identifier: MIT */
/* Texts that are URLs, and how they are shown: without credentials, even if the URL is invalid. */
#include "../support/unit.h"
#include <tenfold/remote.h>

static void test_schemes(void **state)
{
    (void)state;
    static const char *const yes[] = { "http://a", "HTTPS://a",  "s3://b/k", "gs://b/k",
                                       "az://c/b", "abfs://c/b", "hf://o/n" };
    static const char *const no[] = { "", "http", "http:/a", "file://a", "./http://a", "model.zt" };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(tnf_is_url(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(tnf_is_url(no[i]));
    assert_false(tnf_is_url(NULL));
}

static void expect_shown(const char *url, const char *want)
{
    char text[400];
    size_t n = tnf_show_url(text, sizeof text, url);
    assert_string_equal(text, want);
    assert_int_equal(n, strlen(want));
}

static void test_as_is(void **state)
{
    static const char *const same[] = {
        "https://h/a/b.zt",
        "http://[::1]:81/m.zt",
        "https://h:8443/@a/b@c",
        "http://h:/p",
        "s3://bucket/key@2",
        "hf://org/name@refs%2Fpr%2F1/model.safetensors",
        "http://h",
        "abfss://container@account.dfs.core.windows.net/p",
        "https://",
        "://",
        "",
    };
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        expect_shown(same[i], same[i]);
}

/* Files may have such names. */
static void test_paths(void **state)
{
    static const char *const paths[] = { "a?b#c", "user:pw@host/p?q", "./http://u:p@h/?q",
                                         "C:\\m@x?.zt", "/a/b://c?d" };
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        expect_shown(paths[i], paths[i]);
}

static void test_query(void **state)
{
    (void)state;
    expect_shown("https://h/p?X-Amz-Signature=SECRET&X-Amz-Expires=60", "https://h/p");
    expect_shown("https://h/p#SECRET", "https://h/p");
    expect_shown("https://h/p#a?SECRET", "https://h/p");
    expect_shown("https://h?SECRET@x", "https://h");
    expect_shown("https://h:1?SECRET@x/y", "https://h:1");
    expect_shown("https://[fe80::1]?SECRET", "https://[fe80::1]");
    expect_shown("s3://b/k?versionId=1", "s3://b/k");
    expect_shown("az://c/b?sv=2024&sig=SECRET", "az://c/b");
    expect_shown("mine://place?SECRET", "mine://place");
}

static void test_password(void **state)
{
    (void)state;
    expect_shown("http://me:SECRET@h/p", "http://h/p");
    expect_shown("HTTPS://me:SECRET@h:443/p?q", "HTTPS://h:443/p");
    expect_shown("http://SECRET@h/p", "http://h/p");
    expect_shown("http://:SECRET@h", "http://h");
    expect_shown("http://a@b:SECRET@h/@x", "http://h/@x");
    expect_shown("http://me:SECRET@[::1]:81/p", "http://[::1]:81/p");
    expect_shown("http://[me]:SECRET@h/p", "http://h/p");
    expect_shown("s3://KEY:SECRET@bucket/key", "s3://bucket/key");
    expect_shown("ftp://me:SECRET@h/p?SECRET", "ftp://h/p");
    expect_shown("http://me:SEC\nR\033ET@h/\tp\177", "http://h/\tp\177");
    expect_shown("http://@h", "http://h");
    expect_shown("http://me:SECRET@", "http://");
}

/* Even if a character is not percent-encoded as it should be, no password is visible. */
static void test_raw_password(void **state)
{
    (void)state;
    expect_shown("http://me:SEC?RET@h/p?q", "http://h/p");
    expect_shown("http://me:SEC#RET@h/p#q", "http://h/p");
    expect_shown("http://me:SEC/RET@h/p", "http://h/p");
    expect_shown("http://me:1SEC/RET@[::1]:2/p", "http://[::1]:2/p");
    expect_shown("http://h:port/p", "http://h:port/p");
}

static void test_room(void **state)
{
    char text[8] = "xxxxxxx", *longest = test_malloc(100001);
    (void)state;
    assert_int_equal(tnf_show_url(NULL, 0, "http://u:p@h/q?s"), strlen("http://h/q"));
    assert_int_equal(tnf_show_url(text, 1, "http://u:p@h/q?s"), strlen("http://h/q"));
    assert_string_equal(text, "");
    assert_int_equal(text[1], 'x');
    assert_int_equal(tnf_show_url(text, sizeof text, "http://u:p@h/q?s"), strlen("http://h/q"));
    assert_string_equal(text, "http://");
    assert_int_equal(tnf_show_url(text, sizeof text, NULL), 0);
    assert_string_equal(text, "");
    memset(longest, 'a', 100000);
    longest[100000] = 0;
    memcpy(longest, "http://u:", 9);
    longest[50000] = '@';
    longest[90000] = '?';
    assert_int_equal(tnf_show_url(text, sizeof text, longest), 7 + 39999);
    test_free(longest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemes),  cmocka_unit_test(test_as_is),
        cmocka_unit_test(test_paths),    cmocka_unit_test(test_query),
        cmocka_unit_test(test_password), cmocka_unit_test(test_raw_password),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
