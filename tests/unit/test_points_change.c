/* SPDX-License-Identifier: MIT */
/* Appending, deleting, compacting, attributes: the bytes of the file afterwards are those of the
 * description. */
#include "io/lock.h"
#include "points_files.h"
#include <unistd.h>

static struct bytes file_of(const char *path)
{
    struct bytes b = bytes_of_file(path);
    MUST(b.p != NULL);
    return b;
}

/* The example of the description: rank 3, u8, values 1 to 6. */
static void bytes_of_description(void **state)
{
    (void)state;
    static const char want[] = "VS\0\0\x5e\x09\0\0\0\x03\x01\x02\x03\x01\0\0\x01\x80"
                               "\x50\x0d\0\0\0\0\0\0\x06\0\0\0\x01\x02\x03\x04\x05\x06$";
    static const uint64_t dims[] = { 1, 2, 3 };
    tnf_error e;
    tnf_points *p;
    const char *path = vs_path();
    tnf_points_options o = vs_options(true);
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_of(TNF_U8), .dims = dims, .rank = 3
    };
    tnf_point point = { .vector = "\1\2\3\4\5\6", .vector_n = 6 };
    tnf_point_id id;
    assert_ok(tnf_points_create(&p, path, &space, &o, &e));
    assert_ok(tnf_points_append(&id, p, &point, 1, &e));
    assert_int_equal(id.offset, 18);
    struct bytes b = file_of(path);
    assert_int_equal(b.n, sizeof want - 1);
    assert_memory_equal(b.p, want, b.n);
    free(b.p);
    tnf_points_close(p);
}

/* Point by point, the bytes are the same; with application data, as a batch of one. */
static void adds_points(void **state)
{
    (void)state;
    tnf_error e;
    char path[300], other[300];
    snprintf(path, sizeof path, "%s", vs_path());
    snprintf(other, sizeof other, "%s", vs_path());
    tnf_points *p = vs_create(path), *q = vs_create(other);
    const float v[2][DIM] = { { 1, 2, 3 }, { 4, 5, 6 } };
    const tnf_value app = tnf_value_string("north");
    const tnf_point batch[] = { { .vector = v[0], .vector_n = 12 },
                                { .value = &app, .vector = v[1], .vector_n = 12 } };
    tnf_point_id id, ids[2];
    assert_ok(tnf_points_append(ids, p, batch, 1, &e));
    assert_ok(tnf_points_append(ids + 1, p, batch + 1, 1, &e));
    assert_ok(tnf_points_add(&id, q, NULL, v[0], sizeof v[0], &e));
    assert_memory_equal(&id, &ids[0], sizeof id);
    assert_ok(tnf_points_add(NULL, q, &app, v[1], sizeof v[1], &e));
    assert_fails(tnf_points_add(&id, q, NULL, v[0], 11, &e), TNF_EINVAL);
    struct bytes want = file_of(path), got = file_of(other);
    assert_int_equal(want.n, got.n);
    assert_memory_equal(want.p, got.p, got.n);
    free(want.p);
    free(got.p);
    tnf_points_close(p);
    tnf_points_close(q);
}

static void appends_batches(void **state)
{
    (void)state;
    enum { N = 3000 };
    tnf_error e;
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    static tnf_point batch[N];
    static float v[N][DIM];
    static tnf_point_id ids[N];
    static char text[1000];
    memset(text, 'x', sizeof text);
    tnf_value app = { .kind = TNF_STRING, .n = sizeof text, .as.s = text };
    for (size_t i = 0; i < N; i++) {
        v[i][0] = (float)i;
        batch[i] = (tnf_point) { .value = i % 2 ? &app : NULL, .vector = v[i], .vector_n = 12 };
    }
    assert_ok(tnf_points_append(ids, p, batch, N, &e)); /* more than is written at once */
    assert_ok(tnf_points_append(NULL, p, batch, 0, &e));
    for (size_t i = 0; i < N; i += 7) {
        tnf_point point;
        assert_ok(tnf_points_read(&point, p, ids[i], &e));
        assert_true(point.id.offset == ids[i].offset && point.id.hash == ids[i].hash && point.vector_n == 12);
        assert_memory_equal(point.vector, v[i], 12);
        assert_int_equal(point.app.n, i % 2 ? sizeof text + 3 : 0);
    }
    /* a point that does not fit: no point of the batch is added */
    struct bytes before = file_of(path);
    batch[N - 1].vector_n = 11;
    assert_fails(tnf_points_append(ids, p, batch, N, &e), TNF_EINVAL);
    batch[N - 1].vector_n = 12;
    batch[N - 1].app = (tnf_str) { "\xc1", 1 };
    batch[N - 1].value = NULL;
    assert_fails(tnf_points_append(ids, p, batch, N, &e), TNF_EINVAL);
    struct bytes after = file_of(path);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.p, after.p, before.n);
    free(before.p);
    free(after.p);
    tnf_points_close(p);
}

/* Other bytes after '$' are overwritten; a missing '$' is added first. */
static void mends_tails(void **state)
{
    (void)state;
    static const char junk[] = "junk that is longer than a point, and then some more of it";
    struct bytes want[2];
    for (int k = 0; k < 4; k++) {
        const char *path = vs_path();
        tnf_points *p = vs_create(path);
        vs_add(p, 1);
        struct bytes b = file_of(path);
        b.p = realloc(b.p, b.n + sizeof junk);
        memcpy(b.p + b.n, junk, sizeof junk);
        /* unchanged, with a few other bytes, with many, without its end */
        bytes_to_file(path, b.p, k == 3 ? b.n - 1 : b.n + (k == 1 ? 3 : k == 2 ? sizeof junk : 0));
        vs_add(p, 2); /* the same inode: fopen("wb") truncated it */
        vs_expect(p, "1 2");
        if (k == 0)
            want[0] = file_of(path);
        want[1] = file_of(path);
        assert_int_equal(want[0].n, want[1].n);
        assert_memory_equal(want[0].p, want[1].p, want[0].n);
        free(k ? want[1].p : NULL);
        if (k == 0)
            free(want[1].p);
        free(b.p);
        tnf_points_close(p);
    }
    free(want[0].p);
}

/* Another program moved blocks inside the file, which is forbidden: points are still appended at
 * the end. */
static void moved_by_others(void **state)
{
    (void)state;
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    uint64_t first = vs_add(p, 1).offset, second = vs_add(p, 2).offset;
    vs_add(p, 3);
    struct bytes b = file_of(path);
    memmove(b.p + first, b.p + second, b.n - second); /* the first is gone, the rest moved */
    bytes_to_file(path, b.p, b.n - (second - first));
    vs_add(p, 4);
    vs_expect(p, "2 3 4");
    free(b.p);
    tnf_points_close(p);
}

static void deletes_points(void **state)
{
    (void)state;
    tnf_error e;
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    tnf_point_id at[5];
    for (unsigned i = 0; i < 5; i++)
        at[i] = vs_add(p, i);
    struct bytes before = file_of(path);
    const tnf_point_id nowhere[][2] = {
        { at[1], { at[3].offset + 1, at[3].hash } }, { at[1], { 4, 0 } },
        { at[1], { before.n - 1, 0 } },              { at[1], { UINT64_MAX, 0 } },
        { at[1], { at[3].offset, at[2].hash } },     { { at[1].offset, at[1].hash ^ 1 }, at[1] }
    };
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        assert_fails(tnf_points_delete(p, nowhere[i], 2, 0, &e), TNF_ENOTFOUND);
        if (i < 4)
            assert_int_equal(tnf_points_delete(p, nowhere[i], 2, TNF_POINTS_UNCHECKED, &e),
                             i == 1 ? TNF_EINVAL : TNF_ENOTFOUND);
    }
    vs_expect(p, "0 1 2 3 4");
    assert_ok(tnf_points_delete(p, (tnf_point_id[]) { at[3], at[1], at[3] }, 3, 0, &e));
    assert_fails(tnf_points_delete(p, &at[1], 1, 0, &e), TNF_ENOTFOUND);
    assert_says("was deleted");
    assert_fails(tnf_points_delete(p, at, 2, 0, &e), TNF_ENOTFOUND); /* none of them */
    assert_ok(tnf_points_delete(p, &at[1], 1, TNF_POINTS_UNCHECKED, &e)); /* twice is harmless */
    vs_expect(p, "0 2 4");
    struct bytes after = file_of(path);
    assert_int_equal(before.n, after.n);
    for (size_t i = 0; i < before.n; i++) /* one byte each */
        assert_int_equal(after.p[i], i == at[1].offset || i == at[3].offset ? '0' : before.p[i]);
    free(after.p);
    tnf_point point;
    assert_fails(tnf_points_read(&point, p, at[1], &e), TNF_ENOTFOUND);
    assert_says("deleted");
    assert_ok(tnf_points_delete(p, &at[0], 1, TNF_POINTS_SHRED, &e));
    after = file_of(path);
    assert_int_equal(after.p[at[0].offset], '0');
    assert_memory_equal(after.p + at[0].offset + 1, before.p + at[0].offset + 1, 4); /* the same length */
    for (size_t i = at[0].offset + 5; i < at[1].offset; i++)
        assert_int_equal(after.p[i], 0);
    vs_expect(p, "2 4");
    free(before.p);
    free(after.p);
    tnf_points_close(p);
}

struct moves {
    size_t n;
    uint64_t from[16], to[16];
};

static void note_move(void *ctx, uint64_t from, uint64_t to)
{
    struct moves *m = ctx;
    assert_true(m->n < 16);
    m->from[m->n] = from;
    m->to[m->n++] = to;
}

static void compacts_files(void **state)
{
    (void)state;
    tnf_error e;
    tnf_point point;
    struct moves m = { 0 };
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    tnf_point_id at[6];
    for (unsigned i = 0; i < 6; i++)
        at[i] = vs_add(p, i);
    struct bytes whole = file_of(path);
    assert_ok(tnf_points_compact(p, 0, note_move, &m, &e)); /* nothing to do: no point moves */
    assert_true(m.n == 6 && m.from[5] == at[5].offset && m.to[5] == at[5].offset);
    assert_ok(tnf_points_delete(p, (tnf_point_id[]) { at[0], at[2], at[3] }, 3, 0, &e));
    m.n = 0;
    assert_ok(tnf_points_compact(p, 0, note_move, &m, &e));
    vs_expect(p, "1 4 5");
    assert_int_equal(m.n, 3);
    struct vs_seen seen = vs_list(p);
    for (size_t i = 0; i < 3; i++) {
        static const size_t kept[] = { 1, 4, 5 };
        assert_true(m.from[i] == at[kept[i]].offset && m.to[i] == seen.ids[i].offset);
        const tnf_point_id moved = { m.to[i], at[kept[i]].hash }; /* the hash stays */
        assert_ok(tnf_points_read(&point, p, moved, &e));
    }
    /* byte for byte: header, meta, the three blocks, the end */
    struct bytes b = file_of(path);
    size_t first = at[0].offset, block = at[1].offset - first;
    assert_int_equal(b.n, first + 3 * block + 1);
    assert_memory_equal(b.p, whole.p, first);
    assert_memory_equal(b.p + first, whole.p + at[1].offset, block);
    assert_memory_equal(b.p + first + block, whole.p + at[4].offset, 2 * block + 1);
    assert_int_equal(files_count(files_temp(), ".tmp-"), 0);
    vs_add(p, 9);
    vs_expect(p, "1 4 5 9");
    free(b.p);
    free(whole.p);
    tnf_points_close(p);
}

static void refuse_old(tnf_points *p, tnf_point_id old)
{
    tnf_error e;
    tnf_point point;
    assert_fails(tnf_points_read(&point, p, old, &e), TNF_ENOTFOUND);
    assert_says("compacted");
    assert_fails(tnf_points_after(p, old, vs_take, NULL, &e), TNF_ENOTFOUND);
    assert_fails(tnf_points_delete(p, &old, 1, 0, &e), TNF_ENOTFOUND);
    const tnf_point_id both[] = { old, vs_list(p).ids[0] };
    assert_fails(tnf_points_delete(p, both, 2, 0, &e), TNF_ENOTFOUND);
}

/* After a compaction by any process, an old id is never taken for the point that is there now, and
 * new ids work. */
static void recognises_stale_ids(void **state)
{
    (void)state;
    tnf_error e;
    tnf_point point;
    const char *path = vs_path();
    tnf_points *p = vs_create(path), *q = vs_open(path, true);
    tnf_point_id at[6];
    for (unsigned i = 0; i < 6; i++)
        at[i] = vs_add(p, i);
    assert_ok(tnf_points_delete(p, at, 1, 0, &e));
    assert_ok(tnf_points_compact(p, 0, NULL, NULL, &e));
    vs_expect(q, "1 2 3 4 5");
    for (unsigned i = 0; i < 6; i++) {
        refuse_old(p, at[i]); /* the offsets of 0 … 4 are of 1 … 5 now */
        refuse_old(q, at[i]);
    }
    vs_expect(q, "1 2 3 4 5");
    assert_ok(tnf_points_read(&point, p, vs_list(q).ids[4], &e));
    tnf_value text = tnf_value_string("attributes move all points");
    struct vs_seen seen = vs_list(p);
    assert_ok(tnf_points_set_attributes(p, &text, 0, &e));
    refuse_old(p, seen.ids[3]);
    seen = vs_list(p);
    vs_add(p, 9); /* appending and deleting others keep ids valid */
    assert_ok(tnf_points_delete(q, seen.ids, 1, 0, &e));
    assert_ok(tnf_points_delete(p, seen.ids + 1, 1, TNF_POINTS_SHRED, &e));
    assert_ok(tnf_points_read(&point, q, seen.ids[2], &e));
    assert_ok(tnf_points_delete(q, &seen.ids[2], 1, 0, &e));
    vs_expect(p, "4 5 9");
    tnf_points_close(p);
    tnf_points_close(q);
}

/* A compaction keeps the ids of points that it does not move. */
static void keeps_ids_of_unmoved_points(void **state)
{
    (void)state;
    tnf_error e;
    tnf_point point;
    const char *path = vs_path();
    tnf_points *p = vs_create(path), *q = vs_open(path, true);
    tnf_point_id first = vs_add(p, 1), second = vs_add(p, 2);
    vs_add(p, 3);
    vs_expect(q, "1 2 3");
    assert_ok(tnf_points_delete(p, &second, 1, 0, &e));
    assert_ok(tnf_points_compact(p, 0, NULL, NULL, &e));
    assert_ok(tnf_points_read(&point, q, first, &e));
    refuse_old(q, second);
    assert_ok(tnf_points_delete(q, &first, 1, 0, &e));
    vs_expect(q, "3");
    tnf_points_close(p);
    tnf_points_close(q);
}

/* Without the check, a handle refuses all offsets from before a compaction. */
static void unchecked_offsets(void **state)
{
    (void)state;
    tnf_error e;
    const char *path = vs_path();
    tnf_points *p = vs_create(path), *q = vs_open(path, true);
    tnf_point_id first = vs_add(p, 1), wrong = { vs_add(p, 2).offset, 0 };
    vs_add(p, 3);
    vs_expect(q, "1 2 3");
    assert_fails(tnf_points_delete(p, &wrong, 1, 0, &e), TNF_ENOTFOUND);
    assert_ok(tnf_points_delete(p, &wrong, 1, TNF_POINTS_UNCHECKED, &e));
    vs_expect(p, "1 3");
    assert_ok(tnf_points_compact(p, 0, NULL, NULL, &e));
    assert_fails(tnf_points_delete(q, &first, 1, TNF_POINTS_UNCHECKED, &e), TNF_ENOTFOUND);
    assert_says("compacted");
    vs_expect(q, "1 3");
    assert_ok(tnf_points_delete(q, &first, 1, TNF_POINTS_UNCHECKED, &e));
    vs_expect(q, "3");
    tnf_points_close(p);
    tnf_points_close(q);
}

/* Unknown blocks, bytes after the end, reserved bits: kept verbatim and in order, or left out on
 * request. */
static void compacts_the_unknown(void **state)
{
    (void)state;
    tnf_error e;
    const char *path = vs_path();
    static const char file[] = "VS\0\0"
                               "A\2\0\0\0hi"
                               "0\1\0\0\0?"
                               "\x5e\x09\0\0\0\x01\x01\x01\xf8\7\x01\x80\xaa\xbb"
                               "P\x09\0\0\0\x58\0\xa0\1\0\0\0z\xcc"
                               "B\0\0\0\0"
                               "0\0\0\0\0"
                               "P\x08\0\0\0\0\0\0\1\0\0\0y$more";
    static const char want[] = "VS\0\0"
                               "A\2\0\0\0hi"
                               "\x5e\x09\0\0\0\x01\x01\x01\xf8\7\x01\x80\xaa\xbb"
                               "P\x09\0\0\0\x58\0\xa0\1\0\0\0z\xcc"
                               "B\0\0\0\0"
                               "P\x08\0\0\0\0\0\0\1\0\0\0y$";
    /* lengths by hand: option, app length, vector option, length, byte, extra */
    bytes_to_file(path, file, sizeof file - 1);
    tnf_points *p = vs_open(path, true);
    assert_ok(tnf_points_compact(p, 0, NULL, NULL, &e));
    struct bytes b = file_of(path);
    assert_int_equal(b.n, sizeof want - 1);
    assert_memory_equal(b.p, want, b.n);
    free(b.p);
    assert_ok(tnf_points_compact(p, TNF_POINTS_DROP_UNKNOWN, NULL, NULL, &e));
    tnf_points_report r = TNF_POINTS_REPORT_INIT;
    assert_ok(tnf_points_verify(&r, p, NULL, NULL, &e));
    assert_true(r.points == 2 && r.unknown == 0 && r.problems == 0 && r.terminal);
    tnf_points_close(p);
}

/* Other files in the directory do not matter, and damage does not become worse. */
static void compact_starts_anew(void **state)
{
    (void)state;
    tnf_error e;
    char left[400];
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    tnf_point_id first = vs_add(p, 1);
    vs_add(p, 2);
    assert_ok(tnf_points_delete(p, &first, 1, 0, &e));
    snprintf(left, sizeof left, "%s/.%s.compact", files_temp(), strrchr(path, '/') + 1);
    bytes_to_file(left, "mine", 4); /* a file of another program remains */
    assert_ok(tnf_points_compact(p, 0, NULL, NULL, &e));
    assert_int_equal(access(left, F_OK), 0);
    vs_expect(p, "2");
    struct bytes b = file_of(path);
    b.p[first.offset + 1] = 0xff; /* a length beyond the file */
    bytes_to_file(path, b.p, b.n);
    assert_fails(tnf_points_compact(p, 0, NULL, NULL, &e), TNF_ETRUNCATED);
    struct bytes after = file_of(path);
    assert_int_equal(b.n, after.n);
    assert_memory_equal(b.p, after.p, b.n);
    assert_int_equal(unlink(left), 0);
    free(b.p);
    free(after.p);
    tnf_points_close(p);
}

static const char *attributes_of(tnf_points *p)
{
    const tnf_value *v = tnf_points_space(p)->attributes;
    return v ? v->as.s : NULL;
}

static void changes_attributes(void **state)
{
    (void)state;
    tnf_error e;
    struct stat st[4];
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    vs_add(p, 1);
    tnf_value v = tnf_value_string("abcd");
    stat(path, &st[0]);
    assert_ok(tnf_points_set_attributes(p, &v, 0, &e)); /* longer: a new file */
    assert_string_equal(attributes_of(p), "abcd");
    stat(path, &st[1]);
    assert_true(st[0].st_ino != st[1].st_ino);
    v = tnf_value_string("abXd");
    assert_ok(tnf_points_set_attributes(p, &v, 0, &e)); /* one byte: in place */
    assert_string_equal(attributes_of(p), "abXd");
    v = tnf_value_string("1234");
    assert_ok(tnf_points_set_attributes(p, &v, TNF_POINTS_IN_PLACE, &e)); /* this is allowed */
    assert_string_equal(attributes_of(p), "1234");
    stat(path, &st[2]);
    assert_true(st[1].st_ino == st[2].st_ino);
    v = tnf_value_string("wxyz");
    assert_ok(tnf_points_set_attributes(p, &v, 0, &e)); /* several bytes: a new file */
    stat(path, &st[3]);
    assert_true(st[2].st_ino != st[3].st_ino);
    assert_ok(tnf_points_set_attributes(p, tnf_points_space(p)->attributes, 0, &e)); /* unchanged */
    assert_string_equal(attributes_of(p), "wxyz");
    assert_ok(tnf_points_set_attributes(p, NULL, 0, &e));
    assert_null(attributes_of(p));
    v = (tnf_value) { .kind = TNF_JSON, .n = 7, .as.s = "[1,{}]x" };
    assert_int_not_equal(tnf_points_set_attributes(p, &v, 0, &e), TNF_OK);
    v.n = 6;
    assert_ok(tnf_points_set_attributes(p, &v, 0, &e));
    assert_int_equal(tnf_points_space(p)->attributes->n, 2);
    vs_expect(p, "1");
    tnf_points_close(p);
}

/* Compressed points have the same values after compacting. */
static void packs_points(void **state)
{
    (void)state;
    tnf_error e;
    for (int pack = TNF_POINTS_AUTO; pack <= TNF_POINTS_SNAPPY; pack++)
        for (int space_pack = 0; space_pack < 2; space_pack++) {
            tnf_points *p;
            tnf_points_options o = vs_options(true);
            tnf_space space = vs_space();
            const char *path = vs_path();
            space.pack = (uint8_t)space_pack;
            o.pack = (tnf_points_pack)pack;
            o.pack_app = pack == TNF_POINTS_GZIP;
            assert_ok(tnf_points_create(&p, path, &space, &o, &e));
            uint64_t at = vs_add(p, 7).offset;
            vs_add(p, 8);
            vs_expect(p, "7 8");
            struct bytes b = file_of(path);
            /* the option is after: block head, option, length, application data (one byte, or three
             * if packed) */
            unsigned option = b.p[at + 5 + 2 + (o.pack_app ? 3 : 1)];
            unsigned want = pack == TNF_POINTS_GZIP                 ? 1
                            : pack == TNF_POINTS_SNAPPY             ? 2
                            : pack == TNF_POINTS_AUTO && space_pack ? 2
                                                                    : 0;
            assert_int_equal(option, want);
            assert_int_equal(b.p[at + 5], o.pack_app ? 1 : 0);
            free(b.p);
            tnf_points_close(p);
        }
}

static void spare_bits(void **state)
{
    (void)state;
    static const uint64_t dims[] = { 11 };
    tnf_error e;
    tnf_points *p;
    tnf_point point = { .vector = "\xff\xff", .vector_n = 2 };
    tnf_points_options o = vs_options(true);
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_named("bit"), .dims = dims, .rank = 1
    };
    tnf_point_id at;
    assert_ok(tnf_points_create(&p, vs_path(), &space, &o, &e));
    assert_ok(tnf_points_append(&at, p, &point, 1, &e));
    assert_ok(tnf_points_read(&point, p, at, &e));
    assert_memory_equal(point.vector, "\xff\x07", 2);
    tnf_points_close(p);
}

static bool yes_so_often(void *ctx)
{
    unsigned *left = ctx;
    return *left && (*left)--;
}

/* Each change is stopped at its first, second … question whether to go on: the file has not
 * changed, and nothing is next to it. In the end it is not stopped any more. */
static void stops_anywhere(void **state)
{
    (void)state;
    enum { APPEND, DELETE, COMPACT, CREATE, CHANGES };
    char path[300], made[320];
    tnf_error e;
    for (unsigned what = 0; what < CHANGES; what++) {
        snprintf(path, sizeof path, "%s/stopped%u.vsdb", files_temp(), what);
        snprintf(made, sizeof made, "%s.made", path);
        tnf_points *p = vs_create(path);
        tnf_point_id at[3];
        for (unsigned i = 0; i < 3; i++)
            at[i] = vs_add(p, i);
        assert_ok(tnf_points_delete(p, &at[0], 1, 0, &e));
        tnf_points_close(p);
        struct bytes before = file_of(path);
        tnf_status status = TNF_ECANCELLED;
        unsigned times = 0;
        for (; status == TNF_ECANCELLED; times++) {
            unsigned left = times;
            float v[DIM] = { 0 };
            tnf_point point = { .vector = v, .vector_n = sizeof v };
            tnf_points_options o = vs_options(true);
            tnf_space space = vs_space();
            tnf_points *other = NULL;
            o.go_on = yes_so_often;
            o.go_on_ctx = &left;
            assert_ok(tnf_points_open(&p, path, &o, &e));
            status = what == APPEND    ? tnf_points_append(NULL, p, &point, 1, &e)
                     : what == DELETE  ? tnf_points_delete(p, &at[1], 2, 0, &e)
                     : what == COMPACT ? tnf_points_compact(p, 0, NULL, NULL, &e)
                                       : tnf_points_create(&other, made, &space, &o, &e);
            tnf_points_close(p);
            tnf_points_close(other);
            struct bytes after = file_of(path);
            bool same = after.n == before.n && memcmp(after.p, before.p, before.n) == 0;
            assert_int_equal(same, status == TNF_ECANCELLED || what == CREATE);
            assert_int_equal(access(made, F_OK) == 0, what == CREATE && status == TNF_OK);
            assert_int_equal(files_count(files_temp(), ".tmp-"), 0);
            assert_int_equal(files_count(files_temp(), ".tmp-"), 0);
            free(after.p);
        }
        assert_int_equal(status, TNF_OK);
        assert_true(times > 1);
        free(before.p);
    }
}

/* Waiting for another process can be stopped, too. */
static void stopped_while_waiting(void **state)
{
    (void)state;
    tnf_error e;
    unsigned left = 3;
    const char *path = vs_path();
    tnf_points *p = vs_create(path), *q;
    tnf_point_id at = vs_add(p, 1);
    tnf_points_options o = vs_options(true);
    o.go_on = yes_so_often;
    o.go_on_ctx = &left;
    assert_ok(tnf_points_open(&q, path, &o, &e));
    assert_ok(tnf_lock_take(p->fd, true, 0, &e));
    assert_fails(tnf_points_delete(q, &at, 1, 0, &e), TNF_ECANCELLED);
    assert_says("waiting");
    assert_int_equal(left, 0);
    tnf_lock_drop(p->fd);
    vs_expect(p, "1");
    tnf_points_close(q);
    tnf_points_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_description),
        cmocka_unit_test(appends_batches),
        cmocka_unit_test(adds_points),
        cmocka_unit_test(mends_tails),
        cmocka_unit_test(moved_by_others),
        cmocka_unit_test(deletes_points),
        cmocka_unit_test(compacts_files),
        cmocka_unit_test(recognises_stale_ids),
        cmocka_unit_test(keeps_ids_of_unmoved_points),
        cmocka_unit_test(unchecked_offsets),
        cmocka_unit_test(compacts_the_unknown),
        cmocka_unit_test(compact_starts_anew),
        cmocka_unit_test(changes_attributes),
        cmocka_unit_test(packs_points),
        cmocka_unit_test(spare_bits),
        cmocka_unit_test(stops_anywhere),
        cmocka_unit_test(stopped_while_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
