/* SPDX-License-Identifier: MIT */
/* Coordinates that are strings or JSON: their bytes, as docs/formats/vs.md describes them; and
 * spaces of types and ranks that need room. */
#include "points_files.h"

static tnf_error e;

static tnf_points *named_space(const char *path, const char *name, const uint64_t *dims,
                               uint32_t rank, tnf_points_pack pack)
{
    tnf_points *p;
    tnf_points_options o = vs_options(true);
    tnf_space space = TNF_SPACE_INIT;
    space.resolution = name;
    space.dims = dims;
    space.rank = rank;
    o.pack = pack;
    assert_ok(tnf_points_create(&p, path, &space, &o, &e));
    return p;
}

static const uint64_t two[] = { 2 };

static tnf_status take_shown(void *ctx, const tnf_point *point, tnf_error *error)
{
    const tnf_value *list;
    tnf_str text;
    tnf_status status = tnf_points_values(&list, ctx, point, error);
    if (status != TNF_OK)
        return status;
    assert_true(list->kind == TNF_ARRAY && list->n == 2);
    assert_true(tnf_value_as_text(&text, tnf_value_item(list, 0)));
    assert_true(text.n == 3 && memcmp(text.p, "\xc3\xa4x", 3) == 0);
    assert_true(tnf_value_as_text(&text, tnf_value_item(list, 1)) && text.n == 0);
    return TNF_OK;
}

/* In every stored form, by both ways of adding. */
static void strings(void **state)
{
    (void)state;
    static const char line[] = "{\"values\":[\"\\u00e4x\",\"\"]}";
    const tnf_value items[] = { tnf_value_string("\xc3\xa4x"), tnf_value_string("") };
    const tnf_value list = tnf_value_array(items, 2);
    for (int pack = TNF_POINTS_AUTO; pack <= TNF_POINTS_SNAPPY; pack++) {
        const char *path = vs_path();
        tnf_points *p = named_space(path, "string", two, 1, (tnf_points_pack)pack);
        tnf_point points[2] = { TNF_POINT_INIT, TNF_POINT_INIT };
        points[0].values = &list;
        assert_ok(tnf_points_parse(&points[1], p, line, sizeof line - 1, &e));
        assert_ok(tnf_points_append(NULL, p, points, 2, &e));
        assert_ok(tnf_points_each(p, take_shown, p, &e));
        assert_null(tnf_points_space(p)->type);
        assert_string_equal(tnf_points_space(p)->resolution, "string");
        tnf_points_report r = TNF_POINTS_REPORT_INIT;
        assert_ok(tnf_points_verify(&r, p, NULL, NULL, &e));
        assert_true(r.points == 2 && r.problems == 0);
        tnf_points_close(p);
        struct bytes b = bytes_of_file(path);
        static const char want[] = "VS\0\0^\7\0\0\0\1\2\x64\0\0\1\x80" /* 100 is STRING */
                                   "P\x0c\0\0\0\0\0\0\5\0\0\0\3\xc3\xa4x\0"
                                   "P\x0c\0\0\0\0\0\0\5\0\0\0\3\xc3\xa4x\0$";
        if (pack <= TNF_POINTS_RAW) {
            assert_int_equal(b.n, sizeof want - 1);
            assert_memory_equal(b.p, want, b.n);
        }
        free(b.p);
    }
}

/* {"a":[1]}, null: MessagePack 81 a1 61 91 01, and c0. */
static void json_values(void **state)
{
    (void)state;
    static const char line[] = "{\"values\":[{\"a\":[1]},null],\"app\":5}";
    const char *path = vs_path();
    tnf_points *p = named_space(path, "json", two, 1, TNF_POINTS_AUTO);
    tnf_point point;
    const tnf_value *list, *app;
    tnf_point_id id;
    assert_ok(tnf_points_parse(&point, p, line, sizeof line - 1, &e));
    assert_int_equal(point.vector_n, 8);
    assert_memory_equal(point.vector, "\5\x81\xa1\x61\x91\1\1\xc0", 8);
    assert_ok(tnf_points_append(&id, p, &point, 1, &e));
    assert_ok(tnf_points_read(&point, p, id, &e));
    assert_ok(tnf_points_values(&list, p, &point, &e));
    assert_ok(tnf_points_value(&app, p, &point, &e)); /* both are valid at once */
    assert_int_equal(app->as.u, 5);
    assert_int_equal(tnf_value_get(&list->as.items[0], "a")->n, 1);
    assert_int_equal(list->as.items[1].kind, TNF_NULL);
    /* a length of 0 is null, too, as for application data */
    point = (tnf_point) { .vector = "\0\1\7", .vector_n = 3 };
    assert_ok(tnf_points_append(&id, p, &point, 1, &e));
    assert_ok(tnf_points_read(&point, p, id, &e));
    assert_ok(tnf_points_values(&list, p, &point, &e));
    assert_true(list->as.items[0].kind == TNF_NULL && list->as.items[1].as.u == 7);
    tnf_points_close(p);
}

static void what_does_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *resolution, *bytes;
        size_t n;
    } wrong[] = {
        { "string", "", 0 },        { "string", "\0", 1 },    { "string", "\1a\2b", 4 },
        { "string", "\1a\1bc", 5 }, { "string", "\1\xff\0", 3 }, { "string", "\x80\x80\x80\x80\x10\0", 6 },
        { "json", "\1\x81\0", 3 },  { "json", "\2\1\1\0", 4 },
    };
    static const char *const lines[] = { "{\"values\":[\"a\"]}", "{\"values\":[\"a\",\"b\",\"c\"]}",
                                         "{\"values\":[\"a\",1]}", "{\"values\":[\"a\",null]}",
                                         "{\"values\":\"ab\"}", "{\"app\":1}" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tnf_points *p = named_space(vs_path(), wrong[i].resolution, two, 1, TNF_POINTS_RAW);
        tnf_point point = { .vector = wrong[i].bytes, .vector_n = wrong[i].n };
        const tnf_value *list;
        assert_fails(tnf_points_append(NULL, p, &point, 1, &e), TNF_EINVAL);
        assert_int_not_equal(tnf_points_values(&list, p, &point, &e), TNF_OK);
        assert_null(list);
        tnf_points_close(p);
    }
    tnf_points *p = named_space(vs_path(), "string", two, 1, TNF_POINTS_RAW);
    tnf_point point;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_not_equal(tnf_points_parse(&point, p, lines[i], strlen(lines[i]), &e), TNF_OK);
    const tnf_value number = tnf_value_int(1), one = tnf_value_array(&number, 1);
    point = (tnf_point) { .values = &number };
    assert_fails(tnf_points_append(NULL, p, &point, 1, &e), TNF_EINVAL);
    point.values = &one;
    assert_fails(tnf_points_append(NULL, p, &point, 1, &e), TNF_EINVAL);
    vs_expect(p, "");
    tnf_points_close(p);
    p = vs_create(vs_path()); /* numbers */
    assert_fails(tnf_points_append(NULL, p, &point, 1, &e), TNF_EINVAL);
    assert_says("numbers");
    tnf_points_close(p);
    tnf_space space = vs_space();
    tnf_points_options o = vs_options(true);
    space.type = NULL;
    static const char *const names[] = { NULL, "f80", "STRING", "" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        space.resolution = names[i];
        assert_fails(tnf_points_create(&p, vs_path(), &space, &o, &e), TNF_EINVAL);
        assert_says("is not a resolution of VS");
    }
}

/* Files of other programs, whose coordinates have another form, open; verify tells. */
static void of_another_form(void **state)
{
    (void)state;
    static const char file[] = "VS\0\0^\7\0\0\0\1\2\x64\0\0\1\x80P\x0a\0\0\0\0\0\0\3\0\0\0any$";
    const char *path = vs_path();
    bytes_to_file(path, file, sizeof file - 1);
    tnf_points *p = vs_open(path, true);
    tnf_points_report r = TNF_POINTS_REPORT_INIT;
    assert_ok(tnf_points_verify(&r, p, NULL, NULL, &e));
    assert_true(r.points == 1 && r.problems == 1);
    assert_int_equal(tnf_points_each(p, take_shown, p, &e), TNF_EFORMAT);
    tnf_points_close(p);
}

/* A few compressed bytes cannot make the library reserve much memory. */
static void bombs(void **state)
{
    (void)state;
    static const char head[] = "VS\0\0^\7\0\0\0\1\2\x64\0\0\1\x80P\x0d\0\0\0\0\0\2\6\0\0\0";
    uint8_t file[64];
    const char *path = vs_path();
    memcpy(file, head, sizeof head - 1);
    memcpy(file + sizeof head - 1, "\xff\xff\xff\xff\x0f\0$", 7); /* snappy of 4 GiB */
    bytes_to_file(path, file, sizeof head + 6);
    tnf_points *p = vs_open(path, false);
    assert_int_not_equal(tnf_points_each(p, take_shown, p, &e), TNF_OK);
    tnf_points_close(p);
}

/* Rank 300, and 5000 dimensions whose lengths take two bytes. */
static void any_rank(void **state)
{
    (void)state;
    static uint64_t dims[5000];
    static const uint32_t ranks[] = { 64, 65, 300, 5000 };
    for (size_t i = 0; i < 5000; i++)
        dims[i] = 1;
    dims[0] = 3;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const char *path = vs_path();
        tnf_points *p;
        tnf_space space = vs_space();
        tnf_points_options o = vs_options(true);
        space.dims = dims;
        space.rank = ranks[i];
        assert_ok(tnf_points_create(&p, path, &space, &o, &e));
        vs_add(p, 5);
        tnf_points_close(p);
        p = vs_open(path, true);
        assert_true(tnf_points_space(p)->rank == ranks[i] && tnf_points_space(p)->dims[0] == 3);
        vs_add(p, 6);
        vs_expect(p, "5 6");
        tnf_points_close(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),         cmocka_unit_test(json_values),
        cmocka_unit_test(what_does_not_fit), cmocka_unit_test(of_another_form),
        cmocka_unit_test(bombs),           cmocka_unit_test(any_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
