/* SPDX-License-Identifier: MIT */
/* Points as lines of JSON: exact numbers of every type, and lines that are not points. */
#include "points_files.h"

#include <locale.h>

static tnf_points *space_of(const char *type, uint64_t n)
{
    static uint64_t dims[1];
    tnf_error e;
    tnf_points *p;
    tnf_points_options o = vs_options(true);
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_named(type), .dims = dims, .rank = 1
    };
    dims[0] = n;
    assert_ok(tnf_points_create(&p, vs_path(), &space, &o, &e));
    return p;
}

static tnf_status parse_line(tnf_points *p, const char *line, tnf_point *out, tnf_error *e)
{
    return tnf_points_parse(out, p, line, strlen(line), e);
}

static void check_number(const char *type, const char *number, const void *bytes, size_t n)
{
    tnf_error e;
    tnf_point point;
    char line[2000];
    tnf_points *p = space_of(type, 1);
    snprintf(line, sizeof line, "{\"values\":[%s]}", number);
    if (bytes) {
        assert_ok(parse_line(p, line, &point, &e));
        assert_int_equal(point.vector_n, n);
        assert_memory_equal(point.vector, bytes, n);
    } else {
        assert_int_equal(parse_line(p, line, &point, &e), TNF_EINVAL);
    }
    tnf_points_close(p);
}

static void reads_floats(void **state)
{
    (void)state;
    (void)setlocale(LC_ALL, "de_DE.UTF-8"); /* here the decimal point is a comma */
    check_number("f32", "1.5", "\0\0\xc0\x3f", 4);
    check_number("f32", "-0", "\0\0\0\x80", 4);
    check_number("f32", "3.4028235e38", "\xff\xff\x7f\x7f", 4);
    check_number("f32", "1e-45", "\1\0\0\0", 4);
    check_number("f32", "\"NaN\"", "\0\0\xc0\x7f", 4);
    check_number("f32", "\"-Infinity\"", "\0\0\x80\xff", 4);
    /* rounded once: through a double it would be 0x3f800000 */
    check_number("f32", "1.00000005960464477540", "\1\0\x80\x3f", 4);
    check_number("f32", "1e39", NULL, 0);
    check_number("f32", "\"nan\"", NULL, 0);
    check_number("f32", "true", NULL, 0);
    check_number("f32", "null", NULL, 0);
    check_number("f32", "[1]", NULL, 0);
    /* Python's struct.pack("<e", …) */
    check_number("f16", "1.5", "\x00\x3e", 2);
    check_number("f16", "0", "\0\0", 2);
    check_number("f16", "-0", "\0\x80", 2);
    check_number("f16", "65519.99", "\xff\x7b", 2);
    check_number("f16", "2049", "\x00\x68", 2); /* ties to even */
    check_number("f16", "2051", "\x02\x68", 2);
    check_number("f16", "0.1", "\x66\x2e", 2);
    check_number("f16", "6.1e-5", "\xff\x03", 2);
    check_number("f16", "5.960464477539063e-08", "\1\0", 2);
    check_number("f16", "2.9802322387695312e-08", "\0\0", 2);
    check_number("f16", "2.99e-08", "\1\0", 2);
    check_number("f16", "\"NaN\"", "\x00\x7e", 2);
    check_number("f16", "\"-Infinity\"", "\x00\xfc", 2);
    check_number("f16", "65520", NULL, 0);
    check_number("f64", "0.1", "\x9a\x99\x99\x99\x99\x99\xb9\x3f", 8);
    check_number("f64", "12.5e-1", "\0\0\0\0\0\0\xf4\x3f", 8);
    check_number("f64", "-12.5E+2", "\0\0\0\0\0\x88\x93\xc0", 8);
    check_number("f64", "5e-324", "\1\0\0\0\0\0\0\0", 8);
    check_number("f64", "1e309", NULL, 0);
    check_number("f64", "1e-99999999999999999", "\0\0\0\0\0\0\0\0", 8);
    check_number("f64", "\"Infinity\"", "\0\0\0\0\0\0\xf0\x7f", 8);
    (void)setlocale(LC_ALL, "C");
}

static void reads_integers(void **state)
{
    (void)state;
    check_number("u8", "255", "\xff", 1);
    check_number("u8", "256", NULL, 0);
    check_number("u8", "-1", NULL, 0);
    check_number("u8", "1.0", NULL, 0);
    check_number("u8", "1e1", NULL, 0);
    check_number("u8", "\"1\"", NULL, 0);
    check_number("i8", "-128", "\x80", 1);
    check_number("i8", "-129", NULL, 0);
    check_number("i8", "128", NULL, 0);
    check_number("i16", "-2", "\xfe\xff", 2);
    check_number("u16", "65535", "\xff\xff", 2);
    check_number("i32", "-2147483648", "\0\0\0\x80", 4);
    check_number("u32", "4294967296", NULL, 0);
    check_number("u64", "18446744073709551615", "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    check_number("u64", "18446744073709551616", NULL, 0);
    check_number("i64", "-9223372036854775808", "\0\0\0\0\0\0\0\x80", 8);
    check_number("i64", "9223372036854775807", "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
    check_number("i64", "9223372036854775808", NULL, 0);
    check_number("i64", "-9223372036854775809", NULL, 0);
}

static void reads_bits(void **state)
{
    (void)state;
    tnf_error e;
    tnf_point point;
    tnf_points *p = space_of("bit", 10); /* the example of the description */
    assert_ok(parse_line(p, "{\"values\":[1,0,1,1,0,false,true,0,1,1]}", &point, &e));
    assert_int_equal(point.vector_n, 2);
    assert_memory_equal(point.vector, "\x4d\x03", 2);
    assert_fails(parse_line(p, "{\"values\":[1,0,1,1,0,0,1,0,1,2]}", &point, &e), TNF_EINVAL);
    tnf_points_close(p);
}

static void reads_lines(void **state)
{
    (void)state;
    tnf_error e;
    tnf_point point;
    tnf_points *p = space_of("f32", 2);
    assert_ok(parse_line(p, " {\"offset\":17,\"app\":{\"id\":1},\"values\":[1,2]} ", &point, &e));
    assert_int_equal(point.app.n, 5);
    assert_memory_equal(point.app.p, "\x81\xa2id\x01", 5);
    assert_ok(parse_line(p, "{\"values\":[1,2],\"app\":null}", &point, &e));
    assert_int_equal(point.app.n, 0);
    assert_ok(
        parse_line(p, "{\"values\":[1,2],\"app\":[-1,300,0.5,\"\\u00e4\",true]}", &point, &e));
    assert_memory_equal(point.app.p, "\x95\xff\xcd\x01\x2c\xcb\x3f\xe0\0\0\0\0\0\0\xa2\xc3\xa4\xc3",
                        point.app.n);
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"values\":[1]}",
        "{\"values\":[1,2,3]}",
        "{\"values\":[1,2],\"values\":[1,2]}",
        "{\"values\":[1,2],\"app\":1,\"app\":1}",
        "{\"values\":[1,2],\"extra\":1}",
        "{\"values\":[1,2]} x",
        "{\"values\":[1,2",
        "{\"values\":7}",
        "{\"values\":[1,2],\"app\":{\"a\":1,\"a\":2}}",
        "{\"values\":[1,x]}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tnf_status status = parse_line(p, wrong[i], &point, &e);
        if (status == TNF_OK || !e.message[0] || e.status != status)
            fail_msg("%s: %s", wrong[i], tnf_status_name(status));
    }
    char deep[400] = "{\"values\":[1,2],\"app\":";
    size_t n = strlen(deep);
    memset(deep + n, '[', 70);
    memset(deep + n + 70, ']', 70);
    deep[n + 140] = '}';
    assert_int_not_equal(parse_line(p, deep, &point, &e), TNF_OK);
    tnf_points_close(p);
}

/* The memory of a batch of lines remains until it is appended. */
static void keeps_batches(void **state)
{
    (void)state;
    enum { N = 500 };
    tnf_error e;
    static tnf_point points[N];
    tnf_points *p = space_of("f32", 3);
    for (unsigned i = 0; i < N; i++) {
        char line[100];
        snprintf(line, sizeof line, "{\"app\":%u,\"values\":[%u,%u.5,-%u]}", i, i, i, i);
        assert_ok(parse_line(p, line, &points[i], &e));
    }
    assert_ok(tnf_points_append(NULL, p, points, 40, &e));
    struct vs_seen s = vs_list(p);
    assert_int_equal(s.n, 40);
    tnf_points_close(p);
}

static void values_of_points(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_value *v;
    tnf_points *p = space_of("u8", 1);
    tnf_point point = { .app = { "\x82\xa1k\x92\x01\xc0\xa1x\xc4\x01z", 11 } };
    assert_ok(tnf_points_value(&v, p, &point, &e));
    assert_true(v->kind == TNF_MAP && v->n == 2);
    assert_int_equal(tnf_value_get(v, "k")->kind, TNF_ARRAY);
    assert_int_equal(tnf_value_get(v, "x")->kind, TNF_BYTES);
    point.app = (tnf_str) { "\xc0\xc0", 2 };
    assert_int_not_equal(tnf_points_value(&v, p, &point, &e), TNF_OK);
    point.app.n = 0;
    assert_ok(tnf_points_value(&v, p, &point, &e));
    assert_null(v);
    tnf_points_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_floats),  cmocka_unit_test(reads_integers),
        cmocka_unit_test(reads_bits),    cmocka_unit_test(reads_lines),
        cmocka_unit_test(keeps_batches), cmocka_unit_test(values_of_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
