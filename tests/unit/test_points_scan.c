/* SPDX-License-Identifier: MIT */
/* Reading points: the fixtures in both ways, damage that verify finds, results of salvage, files
 * cut at every byte and with every bit flipped. */
#include "../support/little.h"
#include "points_files.h"

#include <tenfold/tenfold.h>

struct rows {
    tnf_points *p;
    size_t n;
    tnf_buf vectors, apps, lengths;
};

static tnf_status gather_point(void *ctx, const tnf_point *point, tnf_error *e)
{
    struct rows *r = ctx;
    const tnf_value *v;
    r->n++;
    tnf_buf_put(&r->vectors, point->vector, point->vector_n);
    tnf_buf_put(&r->apps, point->app.p, point->app.n);
    tnf_buf_u64(&r->lengths, r->apps.n);
    return tnf_points_value(&v, r->p, point, e);
}

static void rows_init(struct rows *r, tnf_points *p)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    *r = (struct rows) { .p = p };
    tnf_buf_init(&r->vectors, &a, UINT64_MAX);
    tnf_buf_init(&r->apps, &a, UINT64_MAX);
    tnf_buf_init(&r->lengths, &a, UINT64_MAX);
    tnf_buf_u64(&r->lengths, 0);
}

static void rows_free(struct rows *r)
{
    tnf_buf_free(&r->vectors);
    tnf_buf_free(&r->apps);
    tnf_buf_free(&r->lengths);
}

static void expect_part(const tnf_object *o, const char *role, const tnf_buf *want)
{
    tnf_error e;
    const tnf_part *part = tnf_object_part(o, role);
    uint8_t *bytes = malloc((size_t)part->nbytes + 1);
    assert_int_equal(part->nbytes, want->n);
    assert_ok(tnf_read_part(bytes, (size_t)part->nbytes, part, 0, &e));
    if (want->n)
        assert_memory_equal(bytes, want->p, want->n);
    free(bytes);
}

/* The points have the same content as the tensors. */
static void same_as_model(const char *path)
{
    tnf_error e;
    tnf_file *file;
    struct rows r;
    tnf_points *p = vs_open(path, false);
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    rows_init(&r, p);
    assert_ok(tnf_open(&file, path, NULL, &e));
    assert_ok(tnf_points_each(p, gather_point, &r, &e));
    const tnf_object *points = tnf_find(file, "points"), *app = tnf_find(file, "appdata");
    const tnf_space *s = tnf_points_space(p);
    if (points) {
        assert_int_equal(points->shape[0], r.n);
        assert_ptr_equal(points->parts[0].type, s->type);
        if (s->type->bits > 1) /* a row of bits begins with a byte; not in a tensor */
            expect_part(points, "data", &r.vectors);
        expect_part(app, "bytes", &r.apps);
        expect_part(app, "offsets", &r.lengths);
    }
    assert_ok(tnf_points_verify(&report, p, NULL, NULL, &e));
    const tnf_value *attrs = tnf_file_info(file)->attrs;
    assert_int_equal(report.points, tnf_value_get(attrs, "vs.points")->as.u);
    assert_int_equal(report.blanks, tnf_value_get(attrs, "vs.blanks")->as.u);
    assert_int_equal(report.points, r.n);
    rows_free(&r);
    tnf_close(file);
    tnf_points_close(p);
}

static void fixtures_both_ways(void **state)
{
    (void)state;
    fixtures_find(TNF_TESTS_DIR "/formats/vs", "/valid/");
    assert_true(fixtures.n > 50);
    for (size_t i = 0; i < fixtures.n; i++)
        same_as_model(fixtures.list[i].path);
}

static tnf_status count_point(void *ctx, const tnf_point *point, tnf_error *e)
{
    (void)e;
    uint8_t sum = 0;
    (*(size_t *)ctx)++;
    for (size_t i = 0; i < point->vector_n; i++) /* reads every byte */
        sum ^= ((const uint8_t *)point->vector)[i];
    static volatile uint8_t eaten;
    eaten = sum;
    return eaten == sum ? TNF_OK : TNF_EBUG;
}

/* The other order of varints is read only on request. */
static void most_significant_first(void **state)
{
    (void)state;
    tnf_error e;
    tnf_points *p;
    size_t n = 0;
    const char *path = TNF_TESTS_DIR "/formats/vs/reject/dim300_msb_first.vsdb";
    tnf_points_options o = vs_options(false);
    assert_ok(tnf_points_open(&p, path, &o, &e)); /* both orders are valid: a dimension of 5634 */
    assert_fails(tnf_points_each(p, count_point, &n, &e), TNF_EFORMAT);
    tnf_points_close(p);
    o.varint_msb = true;
    assert_ok(tnf_points_open(&p, path, &o, &e));
    assert_int_equal(tnf_points_space(p)->dims[0], 300);
    assert_ok(tnf_points_each(p, count_point, &n, &e));
    assert_int_equal(n, 1);
    tnf_points_close(p);
    tnf_option option = { "varint", "msb" };
    tnf_open_options open = { .size = sizeof open, .options = &option, .noptions = 1 };
    tnf_file *file;
    assert_ok(tnf_open(&file, path, &open, &e));
    assert_int_equal(tnf_find(file, "points")->shape[1], 300);
    tnf_close(file);
}

static tnf_status stop_at_two(void *ctx, const tnf_point *point, tnf_error *e)
{
    (void)point, (void)e;
    return ++*(int *)ctx == 2 ? TNF_ECANCELLED : TNF_OK;
}

static tnf_status use_handle(void *ctx, const tnf_point *point, tnf_error *e)
{
    tnf_point other;
    return tnf_points_read(&other, ctx, point->id, e);
}

static void walks_points(void **state)
{
    (void)state;
    tnf_error e;
    int calls = 0;
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    for (unsigned i = 0; i < 5; i++)
        vs_add(p, i);
    assert_int_equal(tnf_points_each(p, stop_at_two, &calls, &e), TNF_ECANCELLED);
    struct vs_seen all = vs_list(p), rest = { .p = p };
    assert_ok(tnf_points_after(p, all.ids[2], vs_take, &rest, &e));
    assert_true(rest.n == 2 && rest.numbers[0] == 3 && rest.ids[1].offset == all.ids[4].offset);
    assert_fails(tnf_points_each(p, use_handle, p, &e), TNF_EINVAL);
    tnf_point point;
    static const uint64_t nowhere[] = { 0, 3, 4, 17, 1000000, UINT64_MAX };
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++)
        assert_fails(tnf_points_read(&point, p, (tnf_point_id) { nowhere[i], all.ids[0].hash }, &e), TNF_ENOTFOUND);
    assert_ok(tnf_points_read(&point, p, all.ids[2], &e));
    tnf_points_close(p);
}

struct tail {
    size_t n;
    tnf_point_id last;
    unsigned numbers[16];
};

static tnf_status follow_point(void *ctx, const tnf_point *point, tnf_error *e)
{
    struct tail *t = ctx;
    float first;
    (void)e;
    assert_int_equal((uintptr_t)point->vector % sizeof(float), 0);
    memcpy(&first, point->vector, sizeof first);
    from_little(&first, sizeof first, 1);
    t->numbers[t->n++] = (unsigned)first;
    t->last = point->id;
    return TNF_OK;
}

/* Two handles on one file: one appends, the other lists the new points. */
static void tells_what_is_new(void **state)
{
    (void)state;
    tnf_error e;
    struct tail t = { 0 };
    const char *path = vs_path();
    tnf_points *w = vs_create(path), *r = vs_open(path, false);
    vs_add(w, 1);
    vs_add(w, 2);
    assert_ok(tnf_points_after(r, (tnf_point_id) { 0 }, follow_point, &t, &e));
    assert_true(t.n == 2 && t.numbers[0] == 1 && t.numbers[1] == 2);
    assert_ok(tnf_points_after(r, t.last, follow_point, &t, &e));
    assert_int_equal(t.n, 2);
    vs_add(w, 3);
    assert_ok(tnf_points_after(r, t.last, follow_point, &t, &e));
    assert_true(t.n == 3 && t.numbers[2] == 3);
    /* the last point seen is deleted, and so is one that was never seen */
    tnf_point_id gone = t.last, first, unseen;
    vs_add(w, 4);
    assert_ok(tnf_points_after(r, t.last, follow_point, &t, &e));
    unseen = t.last;
    assert_ok(tnf_points_delete(w, &unseen, 1, 0, &e));
    assert_ok(tnf_points_delete(w, &gone, 1, 0, &e));
    vs_add(w, 5);
    assert_ok(tnf_points_after(r, unseen, follow_point, &t, &e));
    assert_true(t.n == 5 && t.numbers[4] == 5);
    assert_ok(tnf_points_after(r, gone, follow_point, &t, &e));
    assert_true(t.n == 6 && t.numbers[5] == 5);
    /* a handle that has listed nothing, and numbers that are not offsets */
    tnf_points *fresh = vs_open(path, false);
    struct vs_seen all = vs_list(w);
    first = all.ids[0];
    t = (struct tail) { 0 };
    assert_ok(tnf_points_after(fresh, first, follow_point, &t, &e));
    assert_true(t.n == 2 && t.numbers[0] == 2 && t.numbers[1] == 5);
    const uint64_t last = t.last.offset;
    const uint64_t wrong[] = { 3, 4, first.offset + 1, last, last + 1, last + 1000, UINT64_MAX };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(tnf_points_after(fresh, (tnf_point_id) { wrong[i], first.hash }, follow_point, &t, &e), TNF_ENOTFOUND);
    assert_int_equal(t.n, 2);
    /* after compacting, the offsets are different */
    assert_ok(tnf_points_compact(w, 0, NULL, NULL, &e));
    assert_fails(tnf_points_after(fresh, t.last, follow_point, &t, &e), TNF_ENOTFOUND);
    assert_says("compacted");
    t = (struct tail) { 0 };
    assert_ok(tnf_points_after(fresh, (tnf_point_id) { 0 }, follow_point, &t, &e));
    assert_int_equal(t.n, 3);
    tnf_points_close(fresh);
    tnf_points_close(r);
    tnf_points_close(w);
}

/* A handle that continues from its last place reads only what is new: it does not notice damage to
 * an old block, while one that follows all blocks does. */
static void tailing_reads_the_new(void **state)
{
    (void)state;
    tnf_error e;
    struct tail t = { 0 };
    const char *path = vs_path();
    tnf_points *w = vs_create(path), *r = vs_open(path, false);
    vs_add(w, 1);
    vs_add(w, 2);
    assert_ok(tnf_points_after(r, (tnf_point_id) { 0 }, follow_point, &t, &e));
    vs_add(w, 3);
    struct vs_seen all = vs_list(w);
    FILE *f = fopen(path, "r+b");
    assert_int_equal(fseek(f, (long)all.ids[0].offset + 1, SEEK_SET), 0);
    assert_int_equal(fwrite("\xff\xff\xff\x7f", 1, 4, f), 4);
    fclose(f);
    assert_ok(tnf_points_after(r, t.last, follow_point, &t, &e));
    assert_true(t.n == 3 && t.numbers[2] == 3);
    assert_ok(tnf_points_after(r, all.ids[1], follow_point, &t, &e)); /* so does every id */
    assert_int_equal(tnf_points_each(r, follow_point, &t, &e), TNF_ETRUNCATED);
    tnf_points_close(r);
    tnf_points_close(w);
}

static tnf_status check_aligned(void *ctx, const tnf_point *point, tnf_error *e)
{
    (void)e;
    assert_int_equal((uintptr_t)point->vector % *(size_t *)ctx, 0);
    return TNF_OK;
}

/* Application data of all lengths, so vectors are at all alignments. */
static void vectors_are_aligned(void **state)
{
    (void)state;
    static const char *const types[] = { "f64", "f32", "u16", "u8", "i64" };
    const size_t widths[] = { 8, 4, 2, 1, 8 };
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        tnf_error e;
        tnf_points *p;
        uint64_t dims[] = { 3 };
        tnf_point_id ids[20];
        uint8_t data[24];
        const char *path = vs_path();
        tnf_points_options o = vs_options(true);
        tnf_space space = { .size = sizeof space, .type = tnf_type_named(types[k]), .dims = dims };
        space.rank = 1;
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = (uint8_t)(i + 1);
        assert_ok(tnf_points_create(&p, path, &space, &o, &e));
        for (size_t i = 0; i < 20; i++) {
            char app[21] = { (char)(0xa0 | i) }; /* a string of i bytes */
            tnf_point point = { .app = { app, i + 1 }, .vector = data, .vector_n = 3 * widths[k] };
            assert_ok(tnf_points_append(&ids[i], p, &point, 1, &e));
        }
        size_t width = widths[k];
        assert_ok(tnf_points_each(p, check_aligned, &width, &e));
        for (size_t i = 0; i < 20; i++) {
            tnf_point got;
            assert_ok(tnf_points_read(&got, p, ids[i], &e));
            assert_int_equal((uintptr_t)got.vector % width, 0);
            assert_int_equal(got.vector_n, 3 * width);
            assert_memory_equal(got.vector, data, 3 * width);
        }
        tnf_points_close(p);
    }
}

struct problems {
    unsigned n;
    tnf_error last;
};

static void note_problem(void *ctx, const tnf_error *problem)
{
    struct problems *s = ctx;
    s->n++;
    s->last = *problem;
}

/* Files that do not open as a model: verify or open reports the fault, salvage returns the points
 * before it. */
static void rejected_fixtures(void **state)
{
    (void)state;
    tnf_error e;
    size_t from = fixtures.n;
    fixtures_find(TNF_TESTS_DIR "/formats/vs", "/reject/");
    assert_true(fixtures.n > from + 50);
    for (size_t i = from; i < fixtures.n; i++) {
        struct problems told = { 0 };
        tnf_points *p;
        tnf_points_report r = TNF_POINTS_REPORT_INIT;
        size_t n = 0;
        tnf_points_options o = vs_options(false);
        tnf_status status = tnf_points_open(&p, fixtures.list[i].path, &o, &e);
        if (status == TNF_OK) {
            assert_ok(tnf_points_verify(&r, p, note_problem, &told, &e));
            if (!told.n)
                fail_msg("%s has no problem", fixtures.list[i].label);
            assert_int_equal(told.n, r.problems);
            tnf_points_close(p);
        }
        assert_ok(tnf_points_salvage(&r, fixtures.list[i].path, &o, count_point, &n, &e));
        assert_true(r.problems == 1 && r.points == n && r.stopped_at <= r.file_bytes);
    }
}

static void salvages_cut_files(void **state)
{
    (void)state;
    tnf_error e;
    tnf_points_report r = TNF_POINTS_REPORT_INIT;
    const char *path = vs_path();
    tnf_points_options o = vs_options(false);
    tnf_points *p = vs_create(path);
    for (unsigned i = 0; i < 6; i++)
        vs_add(p, i);
    struct vs_seen all = vs_list(p);
    tnf_points_close(p);
    struct bytes b = bytes_of_file(path);
    for (size_t n = 0; n <= b.n; n++) { /* cut at every byte */
        size_t want = 0, got = 0;
        bytes_to_file(path, b.p, n);
        for (size_t k = 0; k < 6; k++)
            want += (k < 5 ? all.ids[k + 1].offset : b.n - 1) <= n;
        assert_ok(tnf_points_salvage(&r, path, &o, count_point, &got, &e));
        bool boundary = n == 4 || n == all.ids[0].offset || n >= b.n - 1;
        for (size_t k = 0; k < 6; k++)
            boundary = boundary || n == all.ids[k].offset;
        assert_int_equal(got, want);
        assert_true(r.points == want && (r.problems == 0) == boundary);
    }
    /* zeros, as a file system leaves them after a crash */
    memset(b.p + all.ids[3].offset, 0, b.n - all.ids[3].offset);
    bytes_to_file(path, b.p, b.n);
    size_t got = 0;
    assert_ok(tnf_points_salvage(&r, path, &o, count_point, &got, &e));
    assert_true(got == 3 && r.problems == 1 && r.stopped_at == all.ids[3].offset);
    int calls = 0;
    assert_int_equal(tnf_points_salvage(&r, path, &o, stop_at_two, &calls, &e), TNF_ECANCELLED);
    free(b.p);
}

/* Every bit of a small file is flipped: there is an answer, never a crash, and files that can be
 * listed can be verified. */
static void survives_flips(void **state)
{
    (void)state;
    tnf_error e;
    const char *path = vs_path();
    struct bytes b = bytes_of_file(TNF_TESTS_DIR "/formats/vs/valid/snappy.vsdb");
    assert_true(b.n > 50);
    for (size_t bit = 0; bit < b.n * 8; bit++) {
        tnf_points *p;
        tnf_points_report r = TNF_POINTS_REPORT_INIT;
        size_t n = 0;
        tnf_points_options o = vs_options(true);
        b.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bytes_to_file(path, b.p, b.n);
        b.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_ok(tnf_points_salvage(&r, path, &o, count_point, &n, &e));
        if (tnf_points_open(&p, path, &o, &e) != TNF_OK)
            continue;
        tnf_status each = tnf_points_each(p, count_point, &n, &e);
        assert_ok(tnf_points_verify(&r, p, NULL, NULL, &e));
        assert_true(each == TNF_OK || r.problems > 0);
        tnf_status compact = tnf_points_compact(p, 0, NULL, NULL, &e);
        if (compact == TNF_OK && each == TNF_OK) {
            size_t again = 0;
            assert_ok(tnf_points_each(p, count_point, &again, &e));
        }
        tnf_points_close(p);
    }
    free(b.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixtures_both_ways),    cmocka_unit_test(most_significant_first),
        cmocka_unit_test(walks_points),          cmocka_unit_test(tells_what_is_new),
        cmocka_unit_test(tailing_reads_the_new), cmocka_unit_test(vectors_are_aligned),
        cmocka_unit_test(rejected_fixtures),     cmocka_unit_test(salvages_cut_files),
        cmocka_unit_test(survives_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
