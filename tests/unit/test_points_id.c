/* SPDX-License-Identifier: MIT */
/* Ids of points: their text, the bytes that their hash covers, and reading from an id on. */
#include "../support/memory.h"
#include "points_files.h"

static tnf_error e;

static void texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        tnf_point_id id;
    } good[] = { { "16:0a1b2c3d", { 16, 0x0a1b2c3d } },
                 { "0:00000000", { 0, 0 } },
                 { "18446744073709551614:ffffffff", { UINT64_MAX - 1, UINT32_MAX } } };
    static const char *const wrong[] = {
        "",           "16",          "16:",         ":0a1b2c3d",   "16:0a1b2c3",
        "16:0a1b2c3dd", "16:0a1b2c3g", "16 0a1b2c3d", "-1:0a1b2c3d", " 16:0a1b2c3d",
        "16:0a1b2c3d ", "0x10:0a1b2c3d", "16::0a1b2c3d", "18446744073709551616:00000000",
    };
    char text[TNF_POINT_ID_TEXT];
    tnf_point_id id;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(tnf_point_id_text(text, good[i].id), strlen(good[i].text));
        assert_string_equal(text, good[i].text);
        assert_ok(tnf_point_id_parse(&id, text, strlen(text), &e));
        assert_true(id.offset == good[i].id.offset && id.hash == good[i].id.hash);
    }
    assert_ok(tnf_point_id_parse(&id, "16:0A1B2C3D", 11, &e));
    assert_int_equal(id.hash, 0x0a1b2c3d);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_fails(tnf_point_id_parse(&id, wrong[i], strlen(wrong[i]), &e), TNF_EINVAL);
        assert_says("OFFSET:HASH");
    }
    assert_fails(tnf_point_id_parse(&id, NULL, 3, &e), TNF_EINVAL);
}

/* The CRC-32 of RFC 1952, bit by bit. */
static uint32_t crc_of(const uint8_t *bytes, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* The point of docs/formats/vs.md; Python's zlib.crc32() of its 18 bytes is 0xdca1e6e7. */
static void known_hash(void **state)
{
    (void)state;
    static const uint64_t dims[] = { 1, 2, 3 };
    tnf_points *p;
    tnf_points_options o = vs_options(true);
    tnf_space space = TNF_SPACE_INIT;
    tnf_point point = { .vector = "\1\2\3\4\5\6", .vector_n = 6 };
    tnf_point_id id;
    space.type = tnf_type_of(TNF_U8);
    space.dims = dims;
    space.rank = 3;
    assert_ok(tnf_points_create(&p, vs_path(), &space, &o, &e));
    assert_ok(tnf_points_append(&id, p, &point, 1, &e));
    assert_true(id.offset == 18 && id.hash == 0xdca1e6e7);
    tnf_points_close(p);
}

/* The ids that appending returns are those of listings, whatever the stored form. */
static void hashes_of_stored_bytes(void **state)
{
    (void)state;
    for (int pack = TNF_POINTS_RAW; pack <= TNF_POINTS_SNAPPY; pack++) {
        const char *path = vs_path();
        tnf_points_close(vs_create(path));
        tnf_points *p;
        tnf_point_id ids[20];
        tnf_points_options o = vs_options(true);
        o.pack = (tnf_points_pack)pack;
        o.pack_app = pack == TNF_POINTS_GZIP;
        assert_ok(tnf_points_open(&p, path, &o, &e));
        for (unsigned i = 0; i < 20; i++)
            ids[i] = vs_add(p, i);
        struct vs_seen seen = vs_list(p);
        struct bytes b = bytes_of_file(path);
        for (unsigned i = 0; i < 20; i++) {
            const uint8_t *block = b.p + ids[i].offset;
            size_t n = 5u + (size_t)(block[1] | block[2] << 8 | block[3] << 16);
            assert_memory_equal(&ids[i].offset, &seen.ids[i].offset, sizeof ids[i].offset);
            assert_true(ids[i].hash == crc_of(block, n) && seen.ids[i].hash == ids[i].hash);
        }
        free(b.p);
        tnf_points_close(p);
    }
}

struct page {
    size_t n, most;
    tnf_point_id ids[32];
};

static tnf_status take_page(void *ctx, const tnf_point *point, tnf_error *error)
{
    struct page *page = ctx;
    (void)error;
    if (page->n == page->most)
        return TNF_ECANCELLED;
    page->ids[page->n++] = point->id;
    return TNF_OK;
}

/* Pages of every size give all points, from handles of their own. A point that was deleted between
 * two pages does not matter. */
static void pages(void **state)
{
    (void)state;
    enum { N = 30 };
    const char *path = vs_path();
    tnf_points *w = vs_create(path);
    tnf_point_id ids[N];
    for (unsigned i = 0; i < N; i++)
        ids[i] = vs_add(w, i);
    for (size_t most = 1; most <= N + 1; most++) {
        tnf_point_id after = { 0 };
        size_t got = 0;
        for (tnf_status status = TNF_ECANCELLED; status == TNF_ECANCELLED;) {
            struct page page = { .most = most };
            tnf_points *p = vs_open(path, false);
            status = tnf_points_after(p, after, take_page, &page, &e);
            for (size_t i = 0; i < page.n; i++)
                assert_int_equal(page.ids[i].offset, ids[got++].offset);
            after = page.ids[page.n - 1];
            tnf_points_close(p);
        }
        assert_int_equal(got, N);
    }
    struct page page = { .most = 2 };
    assert_ok(tnf_points_delete(w, &ids[9], 1, 0, &e));
    tnf_points *p = vs_open(path, false);
    assert_int_equal(tnf_points_after(p, ids[9], take_page, &page, &e), TNF_ECANCELLED);
    assert_int_equal(page.ids[0].offset, ids[10].offset);
    /* a shredded one cannot be recognised, and nothing is taken for it */
    assert_ok(tnf_points_delete(w, &ids[20], 1, TNF_POINTS_SHRED, &e));
    page.n = 0;
    assert_fails(tnf_points_after(p, ids[20], take_page, &page, &e), TNF_ENOTFOUND);
    assert_int_equal(page.n, 0);
    tnf_points_close(p);
    tnf_points_close(w);
}

/* Memory for a page does not depend on the size of the file. */
static void a_page_takes_little_memory(void **state)
{
    (void)state;
    enum { N = 20000 };
    const char *path = vs_path();
    tnf_points *w = vs_create(path), *p;
    static float v[DIM];
    static tnf_point batch[N];
    static tnf_point_id ids[N];
    for (size_t i = 0; i < N; i++)
        batch[i] = (tnf_point) { .vector = v, .vector_n = sizeof v };
    assert_ok(tnf_points_append(ids, w, batch, N, &e));
    tnf_points_close(w);
    struct memory_log log = { 0 };
    tnf_points_options o = vs_options(false);
    o.allocator = memory_allocator(&log);
    assert_ok(tnf_points_open(&p, path, &o, &e));
    struct page page = { .most = 10 };
    assert_int_equal(tnf_points_after(p, ids[N - 20], take_page, &page, &e), TNF_ECANCELLED);
    assert_int_equal(page.ids[9].offset, ids[N - 10].offset);
    assert_true(log.peak < (uint64_t)400 << 10);
    tnf_points_close(p);
}

/* Two equal points have different ids, since they are at different places. If one takes the place of
 * the other, nothing distinguishes it from that one. */
static void equal_points(void **state)
{
    (void)state;
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    tnf_point_id first = vs_add(p, 1), second = vs_add(p, 1);
    assert_true(first.hash == second.hash && first.offset != second.offset);
    assert_ok(tnf_points_delete(p, &first, 1, 0, &e));
    vs_expect(p, "1");
    assert_fails(tnf_points_delete(p, &first, 1, 0, &e), TNF_ENOTFOUND);
    vs_expect(p, "1");
    assert_ok(tnf_points_compact(p, 0, NULL, NULL, &e));
    assert_fails(tnf_points_delete(p, &second, 1, 0, &e), TNF_ENOTFOUND);
    struct vs_seen seen = vs_list(p);
    assert_true(seen.ids[0].offset == first.offset && seen.ids[0].hash == first.hash);
    tnf_points_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(known_hash),
        cmocka_unit_test(hashes_of_stored_bytes),
        cmocka_unit_test(pages),
        cmocka_unit_test(a_page_takes_little_memory),
        cmocka_unit_test(equal_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
