/* SPDX-License-Identifier: MIT */
/* URLs in pieces: accepted, refused, encoded, followed and shown ones; private addresses. Relative
 * references: the examples of RFC 3986, section 5.4, that apply to http. */
#include "../support/unit.h"
#include "remote/url.h"

static void expect_text(const char *url, const char *want)
{
    tnf_error e;
    tnf_url u;
    char text[TNF_URL_TEXT];
    assert_ok(tnf_url_parse(&u, url, &e));
    tnf_url_text(text, &u);
    assert_string_equal(text, want);
}

static void test_parse(void **state)
{
    tnf_error e;
    tnf_url u;
    (void)state;
    expect_text("http://Example.ORG", "http://example.org/");
    expect_text("HTTPS://h:443/a%20b?x=1&y=#frag", "https://h/a%20b?x=1&y=");
    expect_text("http://h:8080/p?q#f?g", "http://h:8080/p?q");
    expect_text("http://[::1]:81/", "http://[::1]:81/");
    expect_text("http://h:80/a#b", "http://h/a");
    assert_fails(tnf_url_parse(&u, "http://u:p@h/", &e), TNF_EINVAL);
    assert_says("would be shown");
    assert_fails(tnf_url_parse(&u, "http://u@h/", &e), TNF_EINVAL);
    static const char *const bad[] = { "http://",        "http:///p",     "http://h:99999/",
                                       "http://h:0/",    "http://a b/",   "http://h/a b",
                                       "http://h/\r\nX", "ftp://h/",      "file:///etc/passwd",
                                       "http://h\\x/",   "http://h%41/",  "http://[zz]/",
                                       "http://h/\x7f",  "http://h?a\tb", "h/p" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(tnf_url_parse(&u, bad[i], &e), TNF_EINVAL);
    char *longest = test_malloc(20000);
    memset(longest, 'a', 19999);
    longest[19999] = 0;
    memcpy(longest, "http://h/", 9);
    assert_fails(tnf_url_parse(&u, longest, &e), TNF_ELIMIT);
    memcpy(longest, "http://haa", 10);
    assert_fails(tnf_url_parse(&u, longest, &e), TNF_EINVAL);
    test_free(longest);
}

static void test_follow(void **state)
{
    static const char *const cases[][2] = {
        { "g", "http://a/b/c/g" },
        { "./g", "http://a/b/c/g" },
        { "g/", "http://a/b/c/g/" },
        { "/g", "http://a/g" },
        { "//g", "http://g/" },
        { "?y", "http://a/b/c/d;p?y" },
        { "g?y", "http://a/b/c/g?y" },
        { "g#s", "http://a/b/c/g" },
        { "g?y#s", "http://a/b/c/g?y" },
        { ";x", "http://a/b/c/;x" },
        { ".", "http://a/b/c/" },
        { "./", "http://a/b/c/" },
        { "..", "http://a/b/" },
        { "../", "http://a/b/" },
        { "../g", "http://a/b/g" },
        { "../..", "http://a/" },
        { "../../g", "http://a/g" },
        { "../../../g", "http://a/g" },
        { "../../../../g", "http://a/g" },
        { "/./g", "http://a/g" },
        { "/../g", "http://a/g" },
        { "g.", "http://a/b/c/g." },
        { "..g", "http://a/b/c/..g" },
        { "./../g", "http://a/b/g" },
        { "g/./h", "http://a/b/c/g/h" },
        { "g/../h", "http://a/b/c/h" },
        { "https://x/y", "https://x/y" },
    };
    tnf_error e;
    tnf_url from, to;
    char text[TNF_URL_TEXT];
    (void)state;
    assert_ok(tnf_url_parse(&from, "http://a/b/c/d;p?q", &e));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(tnf_url_follow(&to, &from, cases[i][0], &e));
        tnf_url_text(text, &to);
        if (strcmp(text, cases[i][1]) != 0)
            fail_msg("%s: %s, not %s", cases[i][0], text, cases[i][1]);
    }
    assert_fails(tnf_url_follow(&to, &from, "g:h", &e), TNF_ENET);
    assert_fails(tnf_url_follow(&to, &from, "file:///etc/passwd", &e), TNF_EINVAL);
    assert_fails(tnf_url_follow(&to, &from, "//u@h/", &e), TNF_EINVAL);
}

static void test_encoding(void **state)
{
    tnf_error e;
    tnf_url u;
    char value[32];
    (void)state;
    assert_ok(tnf_url_parse(&u, "https://h/", &e));
    assert_ok(tnf_url_add_path(&u, "a b/=+%~\xc3\xbc", 10, &e));
    assert_string_equal(u.path, "/a%20b/%3D%2B%25~%C3%BC");
    assert_ok(tnf_url_add_query(&u, "prefix", "dir/ü&", &e));
    assert_ok(tnf_url_add_query(&u, "uploads", "", &e));
    assert_string_equal(u.query, "prefix=dir%2F%C3%BC%26&uploads=");
    assert_true(tnf_url_query_value(&u, "prefix", value, sizeof value));
    assert_string_equal(value, "dir%2F%C3%BC%26");
    assert_false(tnf_url_query_value(&u, "pre", value, sizeof value));
    assert_fails(tnf_url_add_path(&u, "a\0b", 3, &e), TNF_EINVAL);
    for (int i = 0; i < 200; i++)
        if (tnf_url_add_path(&u, "0123456789 0123456789", 21, &e) != TNF_OK)
            return;
    fail_msg("a path without end");
}

static void test_decoding(void **state)
{
    static const char *const cases[][2] = { { "/a%20b/%3d%3D", "/a b/==" },
                                            { "100%", "100%" },
                                            { "%4", "%4" },
                                            { "%zz%41", "%zzA" },
                                            { "0123456789%41", "0123456" } };
    char text[8];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_url_decode(text, sizeof text, cases[i][0]);
        assert_string_equal(text, cases[i][1]);
    }
}

static void test_shown(void **state)
{
    tnf_error e;
    tnf_url u;
    (void)state;
    assert_ok(tnf_url_parse(&u, "https://h:8443/p/q?X-Amz-Signature=SECRET", &e));
    assert_string_equal(TNF_URL_SHOWN(&u), "h:8443/p/q");
}

static void test_private(void **state)
{
    static const char *const yes[] = {
        "127.0.0.1",       "127.9.9.9",       "10.0.0.1",        "172.16.0.1",
        "172.31.9.9",      "192.168.1.1",     "169.254.169.254", "0.0.0.0",
        "100.64.0.1",      "224.0.0.1",       "255.255.255.255", "::1",
        "[::1]",           "fe80::1",         "fd00::1",         "::",
        "::ffff:10.0.0.1", "64:ff9b::7f00:1", "ff02::1"
    };
    static const char *const no[] = { "8.8.8.8",     "172.32.0.1",  "172.15.0.1", "11.0.0.1",
                                      "100.128.0.1", "2001:db8::1", "localhost",  "" };
    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!tnf_host_private(yes[i]))
            fail_msg("%s is private", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (tnf_host_private(no[i]))
            fail_msg("%s is not private", no[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),    cmocka_unit_test(test_follow),
        cmocka_unit_test(test_encoding), cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_shown),    cmocka_unit_test(test_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
