/* SPDX-License-Identifier: MIT */
/* Deleting by application data: what equals what, as JSON compares. */
#include "points_files.h"

static tnf_error e;

static void add_app(tnf_points *p, const char *app, size_t n)
{
    static const float v[DIM];
    tnf_point point = { .app = { app, n }, .vector = v, .vector_n = sizeof v };
    assert_ok(tnf_points_append(NULL, p, &point, 1, &e));
}

static tnf_status delete_json(tnf_points *p, const char *json, uint64_t *n)
{
    tnf_value v = tnf_value_json(json, strlen(json));
    return tnf_points_delete_app(n, p, &v, 0, &e);
}

/* MessagePack by hand, and JSON that is equal, or not. */
static void compares_as_json(void **state)
{
    (void)state;
#define APP(text) text, sizeof text - 1
    static const struct {
        const char *app;
        size_t n;
        const char *json;
        bool equal;
    } all[] = {
        { APP("\x07"), "7", true },
        { APP("\x07"), "7.0", true },
        { APP("\x07"), "70e-1", true },
        { APP("\xcd\x00\x07"), "7", true },
        { APP("\xd3\0\0\0\0\0\0\0\7"), "7", true },
        { APP("\xca\x40\xe0\0\0"), "7", true },
        { APP("\x07"), "\"7\"", false },
        { APP("\x07"), "8", false },
        { APP("\xff"), "-1", true },
        { APP("\xff"), "255", false },
        { APP("\x00"), "-0.0", true },
        { APP("\x01"), "true", false },
        { APP("\xc3"), "true", true },
        { APP("\xc2"), "true", false },
        { APP("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"), "0.1", true },
        { APP("\xca\x3d\xcc\xcc\xcd"), "0.1", true }, /* an f32, which listings show as 0.1 */
        { APP("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"), "0.10000000000000002", false },
        { APP("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615", true },
        { APP("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551616", false },
        { APP("\xcf\x80\0\0\0\0\0\0\0"), "9.223372036854775808e18", true },
        { APP("\xd3\x80\0\0\0\0\0\0\0"), "-9223372036854775808", true },
        { APP("\xd3\x80\0\0\0\0\0\0\0"), "9223372036854775808", false },
        { APP("\xa1x"), "\"x\"", true },
        { APP("\xd9\x01x"), "\"\\u0078\"", true },
        { APP("\xc4\x01x"), "\"x\"", false }, /* bytes */
        { APP("\xa0"), "null", false },
        { APP("\xc0"), "null", true },
        { APP("\x92\1\2"), "[1,2]", true },
        { APP("\x92\1\2"), "[2,1]", false },
        { APP("\x92\1\2"), "[1]", false },
        { APP("\x92\1\2"), "[[1,2]]", false },
        { APP("\x82\xa1"
              "a\1\xa1"
              "b\2"),
          "{\"b\":2,\"a\":1.0}", true },
        { APP("\x82\xa1"
              "a\1\xa1"
              "b\2"),
          "{\"a\":1}", false },
        { APP("\x81\xa1"
              "a\1"),
          "{\"a\":1,\"b\":2}", false },
        { APP("\x81\xa1"
              "a\1"),
          "[\"a\",1]", false },
        { APP("\x81\xa1"
              "a\x91\x80"),
          "{\"a\":[{}]}", true },
        { APP("\x81\xa1"
              "a\x91\x80"),
          "{\"a\":[[]]}", false },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        uint64_t n = 99;
        tnf_points *p = vs_create(vs_path());
        add_app(p, all[i].app, all[i].n);
        if (delete_json(p, all[i].json, &n) != (all[i].equal ? TNF_OK : TNF_ENOTFOUND))
            fail_msg("%zu: %s: %s", i, all[i].json, e.message);
        assert_int_equal(n, all[i].equal);
        tnf_points_close(p);
    }
}

static void deletes_all_matches(void **state)
{
    (void)state;
    uint64_t n;
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    for (unsigned i = 0; i < 30; i++)
        vs_add(p, i % 3);
    assert_ok(delete_json(p, "1", &n));
    assert_int_equal(n, 10);
    vs_expect(p, "0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2");
    assert_fails(delete_json(p, "1", &n), TNF_ENOTFOUND);
    assert_int_equal(n, 0);
    const tnf_value zero = tnf_value_uint(0);
    assert_ok(tnf_points_delete_app(NULL, p, &zero, TNF_POINTS_SHRED, &e));
    vs_expect(p, "2 2 2 2 2 2 2 2 2 2");
    assert_fails(delete_json(p, "2 2", &n), TNF_EFORMAT);
    assert_fails(tnf_points_delete_app(&n, p, &zero, TNF_POINTS_UNCHECKED, &e), TNF_EINVAL);
    add_app(p, "", 0);
    assert_ok(tnf_points_delete_app(&n, p, NULL, 0, &e)); /* without application data */
    assert_int_equal(n, 1);
    tnf_points_close(p);
    p = vs_open(path, false);
    assert_fails(delete_json(p, "2", &n), TNF_EINVAL);
    assert_says("read-only");
    tnf_points_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_as_json),
        cmocka_unit_test(deletes_all_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
