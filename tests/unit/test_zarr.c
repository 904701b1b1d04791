/* SPDX-License-Identifier: MIT */
/* Zarr beyond its fixtures: written directories, the bytes that a slice reads, names that cannot be
 * stored, and that no file outside the directory is read. */
#include "../support/files.h"
#include "../support/unit.h"
#include "base/crc32.h"
#include "base/str.h"
#include "container/container.h"
#include "container/zip_sink.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <tenfold/build.h>
#include <tenfold/tenfold.h>
#include <tenfold/value.h>
#include <unistd.h>

#define ROWS 256u
#define COLS 64u

static uint32_t numbers[ROWS * COLS];
static const char *folder;

static int set_up(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ROWS * COLS; i++)
        numbers[i] = i * 2654435761u;
    folder = files_temp();
    return 0;
}

static tnf_builder *build_arrays(const char *const *names, size_t n)
{
    static const uint64_t shape[] = { ROWS, COLS };
    tnf_builder *b;
    tnf_error e;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    for (size_t i = 0; i < n; i++)
        assert_ok(tnf_builder_add(b, names[i], tnf_type_named("u32"), 2, shape, numbers, &e));
    return b;
}

static void check_whole(const tnf_file *f, const char *name)
{
    static uint32_t found[ROWS * COLS];
    tnf_error e;
    const tnf_object *o = tnf_find(f, name);
    assert_non_null(o);
    assert_ok(tnf_read(found, sizeof found, o, &e));
    assert_memory_equal(found, numbers, sizeof numbers);
}

/* Directories of both versions, in chunks and shards; replaced only on request. */
static void folders_are_written(void **state)
{
    static const char *const names[] = { "a", "g/b", "g/h/c" };
    static const tnf_option options[][2] = {
        { { "version", "3" }, { "chunks", "4096" } },
        { { "version", "2" }, { "codec", "gzip" } },
        { { "codec", "none" }, { "chunks", "1" } },
        { { "shard", "3" }, { "chunks", "8K" } },
    };
    char path[160];
    tnf_error e;
    tnf_builder *b = build_arrays(names, 3);
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        tnf_save_options how = TNF_SAVE_INIT;
        tnf_file *f;
        struct stat st;
        how.options = options[i];
        how.noptions = 2;
        how.no_sync = true;
        snprintf(path, sizeof path, "%s/%zu.zarr", folder, i);
        assert_ok(tnf_save(b, path, &how, &e));
        assert_int_equal(stat(path, &st), 0);
        assert_true(S_ISDIR(st.st_mode));
        assert_fails(tnf_save(b, path, &how, &e), TNF_EEXISTS);
        how.replace = true;
        assert_ok(tnf_save(b, path, &how, &e));
        assert_ok(tnf_open(&f, path, NULL, &e));
        assert_string_equal(tnf_file_info(f)->format, "zarr");
        assert_int_equal(tnf_file_info(f)->objects, 3);
        for (size_t k = 0; k < 3; k++)
            check_whole(f, names[k]);
        tnf_close(f);
    }
    tnf_builder_free(b);
}

/* A source in memory that counts the bytes that are read. */
struct counted {
    tnf_str bytes;
    atomic_uint_fast64_t read;
};

static tnf_status count_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct counted *c = ctx;
    (void)e;
    memcpy(dst, c->bytes.p + offset, n);
    atomic_fetch_add(&c->read, n);
    return TNF_OK;
}

static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = count_read };

/* 16 chunks of 4 KiB: a column reads all of them, two rows read one; of a shard, also its index. */
static void slices_read_their_chunks(void **state)
{
    static const char *const names[] = { "a" };
    static const tnf_option options[] = { { "chunks", "4096" },
                                          { "codec", "none" },
                                          { "shard", "16" } };
    tnf_error e;
    tnf_builder *b = build_arrays(names, 1);
    (void)state;
    for (size_t shards = 0; shards < 2; shards++) {
        tnf_save_options how = TNF_SAVE_INIT;
        struct counted source = { 0 };
        tnf_source *s;
        tnf_file *f;
        tnf_sink *sink;
        uint32_t found[2 * COLS];
        const tnf_slice rows[] = { { 17, 1, 2, false }, { 0, 1, COLS, false } };
        const tnf_slice few[] = { { 250, -100, 3, false }, { 3, 7, 2, false } };
        how.format = "zarr";
        how.options = options;
        how.noptions = 2 + shards;
        assert_ok(tnf_sink_memory(&sink, &e));
        assert_ok(tnf_save_sink(b, sink, &how, &e));
        source.bytes = tnf_sink_bytes(sink);
        assert_ok(tnf_source_custom(&s, &ops, &source, source.bytes.n, &e));
        assert_ok(tnf_open_source(&f, s, NULL, &e));
        const tnf_object *o = tnf_find(f, "a");
        uint64_t before = source.read;
        assert_ok(tnf_read_slice(found, sizeof found, o, rows, &e));
        assert_memory_equal(found, numbers + (size_t)17 * COLS, sizeof found);
        uint64_t took = source.read - before, index = shards ? 16 * 16 + 4 : 0;
        assert_true(took >= 4096 + index && took < 4096 + index + 400); /* the headers of members */
        before = source.read;
        assert_ok(tnf_read_slice(found, 24, o, few, &e));
        for (size_t i = 0; i < 3; i++)
            for (size_t k = 0; k < 2; k++)
                assert_int_equal(found[2 * i + k], numbers[(250 - 100 * i) * COLS + 3 + 7 * k]);
        assert_true(source.read - before < 3 * (4096 + 400)); /* three of 16 chunks */
        tnf_close(f);
        tnf_sink_close(sink);
    }
    tnf_builder_free(b);
}

/* A shard has no more chunks than the axis, whatever the option says: what is written can be read.
 */
static void shards_end_with_the_axis(void **state)
{
    static const char *const names[] = { "a" };
    static const tnf_option options[] = { { "chunks", "4096" }, { "shard", "1048576" } };
    tnf_save_options how = TNF_SAVE_INIT;
    tnf_error e;
    tnf_sink *sink;
    tnf_source *s;
    tnf_file *f;
    tnf_builder *b = build_arrays(names, 1);
    (void)state;
    how.format = "zarr";
    how.options = options;
    how.noptions = 2;
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &how, &e));
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_ok(tnf_source_memory(&s, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&f, s, NULL, &e));
    const tnf_value *found = tnf_value_get(tnf_find(f, "a")->attrs, "zarr.chunks");
    assert_non_null(found);
    assert_memory_equal(found->as.s, "[256, 64]", 9);
    check_whole(f, "a");
    tnf_close(f);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

static tnf_status put_deflated(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    return tnf_sink_write(ctx, bytes, n, e);
}

/* Writes the archive again with deflated members; `wrong`: the CRC of shards is wrong. */
static void deflate_archive(tnf_sink *out, tnf_str bytes, bool wrong)
{
    static uint8_t member[2 * sizeof numbers];
    tnf_arena arena;
    tnf_error e;
    tnf_source *s;
    tnf_container c;
    tnf_zip_sink z;
    const tnf_allocator alloc = tnf_allocator_or_default(NULL);
    const tnf_encode_to to = { put_deflated, out };
    tnf_arena_init(&arena, &alloc, 1u << 20);
    const tnf_container_how how = { .arena = &arena, .max_directory = 1u << 20, .max_members = 99 };
    assert_ok(tnf_source_memory(&s, bytes.p, bytes.n, &e));
    assert_ok(tnf_container_zip(&c, s, &how, &e));
    tnf_zip_sink_begin(&z, out, TNF_ZIP_PYTHON, &alloc);
    for (size_t i = 0; i < c.n; i++) {
        const tnf_container_member *m = &c.members[i];
        const tnf_zip_put put = { .name = m->name, .deflated = true };
        bool shard = tnf_str_ends(m->name, "/0/0");
        tnf_member_place place;
        tnf_encoder *x;
        assert_in_range(m->size, 1, sizeof member);
        assert_ok(tnf_container_place(&place, &c, i, &e));
        assert_ok(tnf_container_read(&place, m, 0, member, (size_t)m->size, &e));
        assert_ok(tnf_zip_sink_member(&z, &put, &e));
        assert_ok(tnf_encoder_open(&x, TNF_CODEC_DEFLATE, 0, &to, NULL, &e));
        assert_ok(tnf_encoder_write(x, member, (size_t)m->size, &e));
        assert_ok(tnf_encoder_end(x, &e));
        tnf_encoder_close(x);
        uint32_t crc = tnf_crc32(0, member, (size_t)m->size) ^ (wrong && shard);
        assert_ok(tnf_zip_sink_member_end(&z, m->size, crc, &e));
    }
    assert_ok(tnf_zip_sink_end(&z, (tnf_str) { "", 0 }, &e));
    tnf_zip_sink_free(&z);
    assert_ok(tnf_sink_commit(out, &e));
    tnf_container_close(&c);
    tnf_source_close(s);
    tnf_arena_free(&arena);
}

/* Rows are read from the last to the first, so a decoder would begin again for each chunk. */
static void check_backwards(struct counted *source, const tnf_open_options *how,
                            tnf_status expected)
{
    tnf_error e;
    tnf_source *s;
    tnf_file *f;
    assert_ok(tnf_source_custom(&s, &ops, source, source->bytes.n, &e));
    assert_ok(tnf_open_source(&f, s, how, &e));
    const tnf_object *o = tnf_find(f, "a");
    for (uint32_t i = ROWS; i-- > 0;) {
        uint32_t found[COLS];
        const tnf_slice row[] = { { i, 1, 1, false }, { 0, 1, COLS, false } };
        tnf_status status = tnf_read_slice(found, sizeof found, o, row, &e);
        assert_int_equal(status, expected);
        if (status != TNF_OK)
            break;
        assert_memory_equal(found, numbers + (size_t)i * COLS, sizeof found);
    }
    tnf_close(f);
}

static void deflated_shards_are_decoded_once(void **state)
{
    static const char *const names[] = { "a" };
    static const tnf_option options[] = { { "chunks", "4096" },
                                          { "codec", "none" },
                                          { "shard", "16" } };
    tnf_save_options how = TNF_SAVE_INIT;
    tnf_open_options few = TNF_OPEN_INIT;
    tnf_error e;
    tnf_sink *plain, *sinks[2];
    struct counted sources[2] = { 0 };
    tnf_builder *b = build_arrays(names, 1);
    (void)state;
    how.format = "zarr";
    how.options = options;
    how.noptions = 3;
    assert_ok(tnf_sink_memory(&plain, &e));
    assert_ok(tnf_save_sink(b, plain, &how, &e));
    for (unsigned wrong = 0; wrong < 2; wrong++) {
        assert_ok(tnf_sink_memory(&sinks[wrong], &e));
        deflate_archive(sinks[wrong], tnf_sink_bytes(plain), wrong);
        sources[wrong].bytes = tnf_sink_bytes(sinks[wrong]);
    }
    check_backwards(&sources[0], NULL, TNF_OK);
    /* Once to find the end of the archive, once for the shard, and headers. */
    assert_in_range(sources[0].read, sources[0].bytes.n, 3 * sources[0].bytes.n);
    few.limits.decoded_bytes = sizeof numbers;
    check_backwards(&sources[0], &few, TNF_ELIMIT);
    check_backwards(&sources[1], NULL, TNF_EDIGEST);
    tnf_sink_close(plain);
    tnf_sink_close(sinks[0]);
    tnf_sink_close(sinks[1]);
    tnf_builder_free(b);
}

static void some_names_have_no_place(void **state)
{
    static const char *const bad[] = { "",   ".",   "..",          "a/../b",  "/a",  "a//b",
                                       "a/", "__x", "a/zarr.json", ".zarray", "a\\b" };
    static const char *const both[] = { "a", "a/b" };
    tnf_save_options how = TNF_SAVE_INIT;
    tnf_error e;
    (void)state;
    how.format = "zarr";
    how.dry_run = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tnf_builder *b = build_arrays(&bad[i], 1);
        assert_fails(tnf_save_sink(b, NULL, &how, &e), TNF_ELOSSY);
        tnf_builder_free(b);
    }
    tnf_builder *b = build_arrays(both, 2);
    assert_fails(tnf_save_sink(b, NULL, &how, &e), TNF_ELOSSY);
    assert_says("directory of another");
    tnf_builder_free(b);
}

/* Zarr 3 can store the names of dimensions; Zarr 2 cannot, so they are an attribute. */
static void dimension_names_are_kept(void **state)
{
    static const char *const names[] = { "a" };
    static const char text[] = "[\"row\", null]";
    (void)state;
    for (unsigned v2 = 0; v2 < 2; v2++) {
        const tnf_option version = { "version", v2 ? "2" : "3" };
        tnf_save_options how = TNF_SAVE_INIT;
        tnf_error e;
        tnf_sink *sink;
        tnf_source *s;
        tnf_file *f;
        tnf_builder *b = build_arrays(names, 1);
        const tnf_value json = tnf_value_json(text, sizeof text - 1);
        assert_ok(tnf_builder_set(b, "a", "zarr.dimension_names", &json, &e));
        how.format = "zarr";
        how.options = &version;
        how.noptions = 1;
        assert_ok(tnf_sink_memory(&sink, &e));
        assert_ok(tnf_save_sink(b, sink, &how, &e));
        tnf_str bytes = tnf_sink_bytes(sink);
        assert_ok(tnf_source_memory(&s, bytes.p, bytes.n, &e));
        assert_ok(tnf_open_source(&f, s, NULL, &e));
        assert_string_equal(tnf_file_info(f)->version, v2 ? "2" : "3");
        const tnf_value *found = tnf_value_get(tnf_find(f, "a")->attrs, "zarr.dimension_names");
        assert_non_null(found);
        assert_int_equal(found->kind, TNF_JSON);
        assert_int_equal(found->n, sizeof text - 1);
        assert_memory_equal(found->as.s, text, sizeof text - 1);
        check_whole(f, "a");
        tnf_close(f);
        tnf_sink_close(sink);
        tnf_builder_free(b);
    }
}

/* A chunk that is a link to another place is not read; a link within the store is followed. */
static void links_stay_inside(void **state)
{
    static const char *const names[] = { "a" };
    static const tnf_option options[] = { { "chunks", "4096" }, { "codec", "none" } };
    tnf_save_options how = TNF_SAVE_INIT;
    static uint32_t found[ROWS * COLS];
    char path[160], chunk[200], other[200];
    tnf_error e;
    tnf_file *f;
    (void)state;
    how.options = options;
    how.noptions = 2;
    how.no_sync = true;
    snprintf(path, sizeof path, "%s/links.zarr", folder);
    snprintf(chunk, sizeof chunk, "%s/a/c/3/0", path);
    snprintf(other, sizeof other, "%s/outside", folder);
    tnf_builder *b = build_arrays(names, 1);
    assert_ok(tnf_save(b, path, &how, &e));
    assert_int_equal(rename(chunk, other), 0);
    assert_int_equal(symlink("../../../../outside", chunk), 0);
    assert_ok(tnf_open(&f, path, NULL, &e));
    assert_int_not_equal(tnf_read(found, sizeof found, tnf_find(f, "a"), &e), TNF_OK);
    tnf_close(f);
    assert_int_equal(remove(chunk), 0);
    snprintf(path + strlen(path), 20, "/a/c/kept");
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(symlink("../kept", chunk), 0);
    path[strlen(path) - 9] = 0;
    assert_ok(tnf_open(&f, path, NULL, &e));
    check_whole(f, "a");
    tnf_close(f);
    tnf_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_written),
        cmocka_unit_test(slices_read_their_chunks),
        cmocka_unit_test(some_names_have_no_place),
        cmocka_unit_test(dimension_names_are_kept),
        cmocka_unit_test(links_stay_inside),
        cmocka_unit_test(shards_end_with_the_axis),
        cmocka_unit_test(deflated_shards_are_decoded_once),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
