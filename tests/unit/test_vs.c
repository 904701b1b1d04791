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
    static const char *const names[] = { "compressed", "bits_13",  "snappy_copies", "app_late",
                                         "app_kinds",  "bits_2x8", "gzip_members",  "rank_3" };
    tnf_error e;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tnf_file *file = open_fixture(names[i]);
        for (size_t k = 0; k < 3; k++) {
            const tnf_object *o = tnf_at(file, k > 0);
            const tnf_part *part = &o->parts[k == 2];
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
                                         "rank_0",        "snappy_nothing",    "two_byte_lengths" };
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

/* appdata by hand: offsets and bytes. */
static void add_appdata(tnf_builder *b, uint64_t rows, const uint64_t *offsets, const char *bytes,
                        size_t n)
{
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
    tnf_object o = { .name = { "appdata", 7 },
                     .shape = &rows,
                     .layout = tnf_layout_by_id("strings/1"),
                     .parts = parts,
                     .rank = 1,
                     .nparts = 2 };
    assert_ok(tnf_builder_add_object(b, &o, NULL, &e));
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

static void note_first(void *first, uint64_t from, uint64_t to)
{
    tnf_point_id *id = first;
    if (from == id->offset)
        id->offset = to;
}

/* An open file keeps its content, even if other processes change it. */
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
    const tnf_object *points = tnf_find(file, "points");
    assert_ok(tnf_points_append(NULL, p, batch, 10, &e));
    assert_ok(tnf_points_delete(p, &ids[3], 1, 0, &e));
    assert_ok(tnf_read(back, sizeof back, points, &e));
    assert_memory_equal((const uint8_t *)back, (const uint8_t *)v, sizeof v);
    assert_ok(tnf_points_compact(p, 0, note_first, &ids[0], &e));
    memset(back, 0, sizeof back);
    assert_ok(tnf_read(back, sizeof back, points, &e)); /* the open handle still has the old file */
    assert_memory_equal((const uint8_t *)back, (const uint8_t *)v, sizeof v);
    tnf_close(file);
    assert_ok(tnf_open(&file, path, NULL, &e));
    assert_int_equal(tnf_find(file, "points")->shape[0], N + 9);
    assert_ok(tnf_points_delete(p, &ids[0], 1, TNF_POINTS_SHRED, &e));
    points = tnf_find(file, "points"); /* wiped points cannot be read */
    float all[N + 9][4];
    assert_int_equal(tnf_read(all, sizeof all, points, &e), TNF_EFORMAT);
    tnf_close(file);
    tnf_points_close(p);
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
        cmocka_unit_test(changed_while_open),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
