/* SPDX-License-Identifier: MIT */
/* Headers of answers. The date is the example of RFC 9110, section 5.6.7. */
#include "../support/unit.h"
#include "remote/answer.h"

static bool parse_range(const char *text, uint64_t want[3])
{
    return tnf_parse_content_range(text, strlen(text), &want[0], &want[1], &want[2]);
}

static void test_range(void **state)
{
    uint64_t r[3];
    (void)state;
    assert_true(parse_range("bytes 0-9/100", r) && r[0] == 0 && r[1] == 9 && r[2] == 100);
    assert_true(parse_range("Bytes 5-5/*", r) && r[0] == 5 && r[1] == 5 && r[2] == TNF_NOT_TOLD);
    assert_true(parse_range("bytes */77", r) && r[0] == TNF_NOT_TOLD && r[2] == 77);
    assert_true(parse_range("bytes 0-18446744073709551612/18446744073709551614", r));
    static const char *const bad[] = { "",
                                       "bytes",
                                       "bytes 0-9",
                                       "bytes 9-0/100",
                                       "bytes 0-100/100",
                                       "bytes -9/100",
                                       "bytes 0-/100",
                                       "items 0-9/100",
                                       "bytes */*",
                                       "bytes 0-9/100x",
                                       "bytes 0-9/18446744073709551616",
                                       "bytes 0x1-9/100",
                                       "bytes 0-9/" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse_range(bad[i], r))
            fail_msg("'%s' is no range", bad[i]);
}

static void test_date(void **state)
{
    int64_t t = 0;
    const char good[] = "Sun, 06 Nov 1994 08:49:37 GMT";
    (void)state;
    assert_true(tnf_parse_http_date(good, sizeof good - 1, &t));
    assert_int_equal(t, 784111777);
    assert_false(tnf_parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", 30, &t));
    assert_false(tnf_parse_http_date("Sun, 06 Xxx 1994 08:49:37 GMT", 29, &t));
    assert_false(tnf_parse_http_date("Sun, 06 Nov 1994 25:49:37 GMT", 29, &t));
    assert_int_equal(tnf_parse_stamp("19941106T084937Z"), 784111777);
    assert_int_equal(tnf_parse_stamp("1994-11-06T08:49:37Z"), 784111777);
    assert_int_equal(tnf_parse_stamp("1994-11-06T08:49"), 0);
    assert_int_equal(tnf_parse_stamp("1994-13-06T08:49:00"), 0);
    assert_int_equal(tnf_parse_stamp(""), 0);
    assert_int_equal(tnf_calendar_seconds(1970, 1, 1, 0, 0, 0), 0);
    assert_int_equal(tnf_calendar_seconds(2000, 3, 1, 0, 0, 0), 951868800);
    assert_int_equal(tnf_calendar_seconds(2024, 2, 29, 12, 0, 0), 1709208000);
}

static void feed_line(tnf_answer *a, const char *line)
{
    tnf_answer_line(a, line, strlen(line));
}

static void test_lines(void **state)
{
    static tnf_answer a;
    (void)state;
    tnf_answer_begin(&a);
    feed_line(&a, "HTTP/1.1 100 Continue\r\n");
    feed_line(&a, "ETag: \"old\"\r\n");
    feed_line(&a, "HTTP/1.1 206 Partial Content\r\n");
    assert_string_equal(a.etag, "");
    feed_line(&a, "eTaG:  \"abc\" \r\n");
    feed_line(&a, "Content-Length: 10\r\n");
    feed_line(&a, "Content-Range: bytes 0-9/100\r\n");
    feed_line(&a, "Content-Encoding: identity\r\n");
    feed_line(&a, "no colon\r\n");
    feed_line(&a, "\r\n");
    assert_int_equal(a.status, 206);
    assert_string_equal(tnf_answer_strong(&a), "\"abc\"");
    assert_true(a.length == 10 && a.ranges && a.total == 100 && !a.encoded);
    feed_line(&a, "ETag: W/\"weak\"\r\n");
    assert_string_equal(tnf_answer_strong(&a), "");
    feed_line(&a, "Content-Encoding: gzip\r\n");
    assert_true(a.encoded);
    feed_line(&a, "Content-Length: -1\r\n");
    assert_true(a.length == TNF_NOT_TOLD);
    feed_line(&a, "Content-Range: bytes 0-9/x\r\n");
    assert_false(a.ranges);
    feed_line(&a, "Retry-After: 120\r\n");
    assert_true(a.retry_after == 120);
    feed_line(&a, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    feed_line(&a, "Retry-After: Sun, 06 Nov 1994 08:50:37 GMT\r\n");
    assert_true(a.retry_after == 60);
    feed_line(&a, "Retry-After: Sun, 06 Nov 1994 08:00:00 GMT\r\n");
    assert_true(a.retry_after == 0);
    feed_line(&a, "Retry-After: soon\r\n");
    assert_true(a.retry_after == TNF_NOT_TOLD);
    char line[400];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = 0;
    memcpy(line, "ETag: ", 6);
    feed_line(&a, line);
    assert_string_equal(a.etag, ""); /* a part of it would be another tag */
}

static void test_excerpt(void **state)
{
    char out[16];
    (void)state;
    assert_string_equal(tnf_excerpt(out, sizeof out, "\x1b[31m a\r\n\t b\xff", 13), "[31m a b");
    assert_string_equal(tnf_excerpt(out, sizeof out, "0123456789abcdefgh", 18), "0123456789abcde");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_date),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_excerpt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
