/* SPDX-License-Identifier: MIT */
/* The VS format through the model: pieces of decoded tensors, options of the writer, the places of
 * extras, content that cannot be written, files that change while they are open. */
#include "../support/files.h"
#include "../support/little.h"
#include "../support/memory.h"
#include "../support/unit.h"
#include "base/bytes.h"

#include <fcntl.h>
#include <tenfold/build.h>
#include <tenfold/points.h>

static tnf_file *open_fixture(const char *name)
{
    char path[400];
    tnf_error e;
    tnf_file *file;
    snprintf(path, sizeof path, "%s/formats/vs/valid/%s.vsdb", TNF_TESTS_DIR, name);
    assert_ok(tnf_open(&file, path, NULL, &e));
    return file;
}

/* Saves to memory with one option ("" for none); the caller frees the bytes. */
static tnf_status save_to_memory(const tnf_builder *b, const char *key, const char *value,
                                 struct bytes *out, tnf_error *e)
{
    tnf_sink *sink = NULL;
    tnf_option option = { key, value };
    tnf_save_options o = { .size = sizeof o, .format = "vs" };
    o.options = &option;
    o.noptions = *key ? 1 : 0;
    assert_int_equal(tnf_sink_memory(&sink, e), TNF_OK);
    tnf_status status = tnf_save_sink(b, sink, &o, e);
    tnf_str s = tnf_sink_bytes(sink);
    *out = (struct bytes) { calloc(1, s.n + 1), s.n };
    if (s.n)
        memcpy(out->p, s.p, s.n);
    tnf_sink_close(sink);
    return status;
}

static struct bytes save_file(const tnf_file *file, const char *key, const char *value)
{
    tnf_error e;
    tnf_builder *b;
    struct bytes out = { NULL, 0 };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_file(b, file, &e));
    assert_ok(save_to_memory(b, key, value, &out, &e));
    tnf_builder_free(b);
    return out;
}

/* Any piece of any part has the same bytes as in the whole. */
static void reads_any_piece(void **state)
{
    (void)state;
    static const char *const names[] = { "compressed",   "bits_13",   "snappy_copies",
                                         "app_late",     "app_kinds", "bits_2x8",
                                         "gzip_members", "rank_3",    "texts_string",
                                         "texts_packed", "texts_json" };
    tnf_error e;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tnf_file *file = open_fixture(names[i]);
        for (size_t k = 0; k < 4; k++) {
            const tnf_object *o = tnf_at(file, k > 1);
            const tnf_part *part = &o->parts[k % 2 && o->nparts > 1];
            size_t n = (size_t)part->nbytes, step = n > 300 ? 97 : 1;
            uint8_t *whole = malloc(n + 1), *piece = malloc(n + 1);
            assert_ok(tnf_read_part(whole, n, part, 0, &e));
            for (size_t from = 0; from < n; from += step)
                for (size_t size = 1; size <= n - from; size += size < 20 ? 1 : step * 3) {
                    assert_ok(tnf_read_part(piece, size, part, from, &e));
                    assert_memory_equal(piece, whole + from, size);
                }
            free(whole);
            free(piece);
        }
        tnf_close(file);
    }
}

/* Vectors larger than one read, and one larger than the buffer. */
static void large_vectors(void **state)
{
    (void)state;
    enum { N = 5, DIM = 100000 };
    tnf_error e;
    tnf_builder *b;
    tnf_file *file;
    tnf_source *source;
    struct bytes out = { NULL, 0 };
    static float v[N][DIM], back[DIM];
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < DIM; k++)
            v[i][k] = (float)(i * 7 + k % 1000);
    static const char *const how[] = { "none", "gzip", "snappy" };
    for (size_t h = 0; h < 3; h++) {
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(
            tnf_builder_add(b, "points", tnf_type_of(TNF_F32), 2, (uint64_t[]) { N, DIM }, v, &e));
        assert_ok(save_to_memory(b, "compress", how[h], &out, &e));
        tnf_builder_free(b);
        assert_ok(tnf_source_memory(&source, out.p, out.n, &e));
        assert_ok(tnf_open_source(&file, source, NULL, &e));
        const tnf_part *part = tnf_find(file, "points")->parts;
        for (size_t i = 0; i < N; i++) {
            assert_ok(tnf_read_part(back, sizeof back - 4, part, i * sizeof back + 4, &e));
            assert_memory_equal((const uint8_t *)back, (const uint8_t *)v[i] + 4, sizeof back - 4);
        }
        tnf_close(file);
        free(out.p);
    }
}

/* Unknown blocks, extra bytes, reserved bits: saving as VS gives the same file. */
static void unknown_stays_verbatim(void **state)
{
    (void)state;
    static const char *const names[] = { "unknown",       "meta_extra",        "point_extra",
                                         "reserved_bits", "no_attributes",     "attributes",
                                         "type_zero",     "resolution_string", "resolution_json",
                                         "app_odd",       "app_kinds",         "bits_13",
                                         "rank_0",        "snappy_nothing",    "two_byte_lengths",
                                         "texts_string",  "texts_empty",       "texts_2x2" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[400];
        tnf_file *file = open_fixture(names[i]);
        struct bytes out = save_file(file, "", "");
        snprintf(path, sizeof path, "%s/formats/vs/valid/%s.vsdb", TNF_TESTS_DIR, names[i]);
        struct bytes want = bytes_of_file(path);
        if (!want.p || out.n != want.n || memcmp(out.p, want.p, want.n) != 0)
            fail_msg("%s comes out otherwise", names[i]);
        free(want.p);
        free(out.p);
        tnf_close(file);
    }
}

static tnf_builder *build_points(uint64_t rows, const float *v)
{
    tnf_error e;
    tnf_builder *b;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "points", tnf_type_of(TNF_F32), 2, (uint64_t[]) { rows, 2 },
                              to_little(v, 4, 2 * rows), &e));
    return b;
}

/* Strings by hand: offsets and bytes. */
static void add_strings(tnf_builder *b, tnf_object o, const uint64_t *offsets, const char *bytes,
                        size_t n)
{
    uint64_t rows = o.shape[0];
    tnf_error e;
    tnf_part parts[2] = { { .role = "offsets",
                            .type = tnf_type_of(TNF_U64),
                            .nbytes = (rows + 1) * 8,
                            .memory = to_little(offsets, 8, rows + 1),
                            .payload = TNF_MEMORY },
                          { .role = "bytes",
                            .type = tnf_type_of(TNF_U8),
                            .nbytes = n,
                            .memory = bytes,
                            .payload = TNF_MEMORY } };
    o.layout = tnf_layout_by_id("strings/1");
    o.parts = parts;
    o.rank = 1;
    o.nparts = 2;
    assert_ok(tnf_builder_add_object(b, &o, NULL, &e));
}

static void add_appdata(tnf_builder *b, uint64_t rows, const uint64_t *offsets, const char *bytes,
                        size_t n)
{
    add_strings(b, (tnf_object) { .name = { "appdata", 7 }, .shape = &rows }, offsets, bytes, n);
}

static void from_anywhere(void **state)
{
    (void)state;
    tnf_error e;
    struct bytes out = { NULL, 0 };
    static const float v[] = { 1, 2, 3, 4 };
    static const uint64_t offsets[] = { 0, 1, 1 };
    tnf_builder *b = build_points(2, v);
    add_appdata(b, 2, offsets, "\x07", 1);
    assert_ok(save_to_memory(b, "", "", &out, &e));
    static const char want[] = "VS\0\0\x5e\x07\0\0\0\1\2\x0b\0\0\1\x80"
                               "P\x10\0\0\0\0\1\7\0\x08\0\0\0\0\0\x80\x3f\0\0\0\x40"
                               "P\x0f\0\0\0\0\0\0\x08\0\0\0\0\0\x40\x40\0\0\x80\x40$";
    assert_int_equal(out.n, sizeof want - 1);
    assert_memory_equal(out.p, want, out.n);
    free(out.p);
    /* the attribute counts if there is no option */
    tnf_value one = { .kind = TNF_UINT, .dtype = TNF_U8, .as.u = 1 };
    assert_ok(tnf_builder_set(b, NULL, "vs.pack", &one, &e));
    assert_ok(save_to_memory(b, "", "", &out, &e));
    assert_int_equal(out.p[12], 1);     /* in the meta block */
    assert_int_equal(out.p[16 + 8], 2); /* and of the first vector */
    free(out.p);
    tnf_builder_free(b);
}

static void refuses_bad_rows(void **state)
{
    (void)state;
    tnf_error e;
    struct bytes out = { NULL, 0 };
    static const float v[] = { 1, 2, 3, 4 };
    static const uint64_t up[] = { 0, 1, 2 }, down[] = { 0, 2, 1 }, three[] = { 0, 0, 0, 0 };
    tnf_builder *b = build_points(2, v);
    add_appdata(b, 2, up, "\x07\xc1", 2); /* c1 is never used in MessagePack */
    assert_fails(save_to_memory(b, "", "", &out, &e), TNF_EINVAL);
    assert_says("row 1 of appdata");
    free(out.p);
    tnf_builder_free(b);
    b = build_points(2, v);
    add_appdata(b, 2, down, "\x07", 1);
    assert_fails(save_to_memory(b, "", "", &out, &e), TNF_EFORMAT);
    free(out.p);
    tnf_builder_free(b);
    b = build_points(2, v);
    add_appdata(b, 3, three, "", 0);
    assert_fails(save_to_memory(b, "", "", &out, &e), TNF_ELOSSY);
    free(out.p);
    tnf_builder_free(b);
    static const struct {
        const char *name, *type;
        uint32_t rank;
        uint64_t shape[2];
    } wrong[] = {
        { "w", "f32", 2, { 2, 2 } },       { "points", "f32", 0, { 0 } },
        { "points", "bf16", 2, { 2, 2 } }, { "points", "f32", 2, { 2, 0 } },
        { "points", "f16", 2, { 2, 2 } },  { "points", "u8", 2, { 0, (uint64_t)1 << 32 } },
        { "appdata", "f32", 1, { 4 } }
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(tnf_builder_add(b, wrong[i].name, tnf_type_named(wrong[i].type), wrong[i].rank,
                                  wrong[i].shape, v, &e));
        assert_fails(save_to_memory(b, "", "", &out, &e), TNF_ELOSSY);
        free(out.p);
        tnf_builder_free(b);
    }
}

/* The texts of STRING and JSON spaces, written from strings and read as them. */
static void texts_are_strings(void **state)
{
    (void)state;
    tnf_error e;
    tnf_builder *b;
    struct bytes out = { NULL, 0 };
    static const uint64_t rows = 2, up[] = { 0, 2, 2 }, down[] = { 0, 2, 1 };
    static const tnf_member json = { { "tenfold.messagepack", 19 },
                                     { .kind = TNF_BOOL, .as.b = true } };
    static const tnf_value attrs = { .kind = TNF_MAP, .n = 1, .as.members = &json };
    tnf_object o = { .name = { "points", 6 }, .shape = &rows };
    /* rank 0: one text a point, which is its length and its bytes */
    static const char want[] = "VS\0\0\x5e\6\0\0\0\0\x64\0\0\1\x80"
                               "P\x0a\0\0\0\0\0\0\3\0\0\0\2\xcc\x07"
                               "P\x08\0\0\0\0\0\0\1\0\0\0\0$";
    for (int is_json = 0; is_json < 2; is_json++) {
        o.attrs = is_json ? &attrs : NULL;
        assert_ok(tnf_builder_new(&b, NULL, &e));
        add_strings(b, o, up, "\xcc\x07", 2);
        assert_ok(save_to_memory(b, "", "", &out, &e));
        assert_int_equal(out.n, sizeof want - 1);
        assert_int_equal(out.p[10], 100 + is_json);
        out.p[10] = 100;
        assert_memory_equal(out.p, want, out.n);
        free(out.p);
        tnf_builder_free(b);
    }
    assert_ok(tnf_builder_new(&b, NULL, &e));
    add_strings(b, o, up, "\xc1\x07", 2); /* two bytes, but no MessagePack */
    assert_fails(save_to_memory(b, "", "", &out, &e), TNF_EINVAL);
    assert_says("row 0 of points");
    free(out.p);
    tnf_builder_free(b);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    add_strings(b, o, down, "\x07\x07", 2);
    assert_fails(save_to_memory(b, "", "", &out, &e), TNF_EFORMAT);
    free(out.p);
    tnf_builder_free(b);

    tnf_file *file = open_fixture("texts_json");
    const tnf_object *points = tnf_find(file, "points");
    uint8_t offsets[4 * 8], text[22];
    assert_int_equal(points->rank, 2);
    assert_ok(tnf_read_part(offsets, sizeof offsets, &points->parts[0], 0, &e));
    assert_int_equal(tnf_le64(offsets + 8), 17);
    assert_int_equal(tnf_le64(offsets + 16), 17);
    assert_int_equal(tnf_le64(offsets + 24), 22);
    assert_ok(tnf_read_part(text, sizeof text, &points->parts[1], 0, &e));
    assert_memory_equal(text,
                        "\x81\xa1"
                        "a\x95\1\xff\xcb\x40\x04\0\0\0\0\0\0\xc0\xc3\xca\x3f\0\0\0",
                        22);
    tnf_close(file);
    file = open_fixture("resolution_string"); /* other vectors: no tensors, with a reason */
    assert_int_equal(tnf_file_info(file)->objects, 0);
    assert_non_null(strstr(tnf_file_info(file)->warnings[0].message, "is not 2 texts"));
    tnf_close(file);
}

static void note_first(void *first, uint64_t from, uint64_t to)
{
    tnf_point_id *id = first;
    if (from == id->offset)
        id->offset = to;
}

/* Reads n rows of `points`, from `first` on. */
static tnf_status read_rows(void *dst, const tnf_file *file, size_t first, size_t n, tnf_error *e)
{
    const tnf_part *part = tnf_find(file, "points")->parts;
    return tnf_read_part(dst, n * sizeof(float[4]), part, first * sizeof(float[4]), e);
}

/* An open file keeps its content, even if other processes append or compact. A deleted point can no
 * longer be read, since the format does not define its bytes, nor can a shredded one. */
static void changed_while_open(void **state)
{
    (void)state;
    enum { N = 50 };
    tnf_error e;
    char path[300];
    tnf_points *p;
    tnf_file *file;
    static const uint64_t dims[] = { 4 };
    tnf_point_id ids[N];
    float v[N][4], back[N][4];
    tnf_point batch[N];
    tnf_points_options o = { .size = sizeof o, .write = true, .sync = TNF_POINTS_NO_SYNC };
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_of(TNF_F32), .dims = dims, .rank = 1
    };
    snprintf(path, sizeof path, "%s/changes.vsdb", files_temp());
    assert_ok(tnf_points_create(&p, path, &space, &o, &e));
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < 4; k++)
            v[i][k] = (float)(i * 4 + k);
        batch[i] = (tnf_point) { .vector = v[i], .vector_n = sizeof v[i] };
    }
    assert_ok(tnf_points_append(ids, p, batch, N, &e));
    assert_ok(tnf_open(&file, path, NULL, &e));
    assert_ok(tnf_points_append(NULL, p, batch, 10, &e));
    assert_ok(read_rows(back, file, 0, N, &e));
    assert_memory_equal((const uint8_t *)back, (const uint8_t *)v, sizeof v);
    assert_ok(tnf_points_delete(p, &ids[3], 1, 0, &e));
    assert_fails(read_rows(back, file, 0, N, &e), TNF_ECHANGED);
    assert_says("point 3 was deleted");
    assert_int_equal(e.offset, ids[3].offset);
    assert_ok(tnf_points_compact(p, 0, note_first, &ids[0], &e));
    memset(back, 0, sizeof back);
    assert_ok(read_rows(back[4], file, 4, N - 4, &e)); /* the handle still has the old file */
    assert_memory_equal((const uint8_t *)back[4], (const uint8_t *)v[4],
                        sizeof v - sizeof v[0] * 4);
    tnf_close(file);
    assert_ok(tnf_open(&file, path, NULL, &e));
    assert_int_equal(tnf_find(file, "points")->shape[0], N + 9);
    assert_ok(tnf_points_delete(p, &ids[0], 1, TNF_POINTS_SHRED, &e));
    assert_fails(read_rows(back, file, 0, 1, &e), TNF_ECHANGED);
    assert_says("point 0 was deleted");
    assert_ok(read_rows(back, file, 1, 1, &e));
    tnf_close(file);
    tnf_points_close(p);
}

/* A space of 300 dimensions opens with the default limits, and has slices; a limit of the caller
 * applies. Point r has the numbers from 24 * r on, of shape [2, 1 …, 3, 1 …, 2]. */
static void any_rank(void **state)
{
    (void)state;
    enum { RANK = 301 };
    tnf_error e;
    char path[400];
    tnf_file *file = open_fixture("rank_300");
    const tnf_object *points = tnf_find(file, "points");
    assert_int_equal(points->rank, RANK);
    tnf_slice slices[RANK];
    for (uint32_t d = 0; d < RANK; d++)
        slices[d] = (tnf_slice) { 0, 1, points->shape[d], false };
    slices[0] = (tnf_slice) { 1, 1, 1, false };
    slices[152] = (tnf_slice) { 2, -1, 2, false };
    uint16_t got[8];
    static const uint16_t expected[8] = { 28, 29, 26, 27, 34, 35, 32, 33 };
    assert_ok(tnf_read_slice(got, sizeof got, points, slices, &e));
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(tnf_le16(&got[i]), expected[i]);
    slices[7].start = 1; /* beyond a dimension of 1 */
    assert_fails(tnf_read_slice(got, sizeof got, points, slices, &e), TNF_EINVAL);
    tnf_close(file);
    tnf_open_options o = { .size = sizeof o };
    o.limits.rank = RANK - 1;
    snprintf(path, sizeof path, "%s/formats/vs/valid/rank_300.vsdb", TNF_TESTS_DIR);
    assert_fails(tnf_open(&file, path, &o, &e), TNF_ELIMIT);
}

/* Limits also apply to application data. */
static void limits_hold(void **state)
{
    (void)state;
    tnf_error e;
    char path[400];
    tnf_file *file;
    struct memory_log log = { 0 };
    tnf_open_options o = { .size = sizeof o, .allocator = memory_allocator(&log) };
    o.limits.header_bytes = 200;
    snprintf(path, sizeof path, "%s/formats/vs/valid/two_byte_lengths.vsdb", TNF_TESTS_DIR);
    assert_fails(tnf_open(&file, path, &o, &e), TNF_ELIMIT);
    assert_int_equal(log.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_any_piece),
        cmocka_unit_test(large_vectors),
        cmocka_unit_test(unknown_stays_verbatim),
        cmocka_unit_test(from_anywhere),
        cmocka_unit_test(refuses_bad_rows),
        cmocka_unit_test(texts_are_strings),
        cmocka_unit_test(changed_while_open),
        cmocka_unit_test(any_rank),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
