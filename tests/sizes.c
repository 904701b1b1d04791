/* SPDX-License-Identifier: MIT */
/* Structs for results, whose memory is the caller's. A caller of an older version gives a smaller
 * size, and the bytes after it do not change. A caller of a newer version gives a larger size, and
 * the members that this library does not know become 0. Impossible sizes are refused, and so
 * are reserved bytes that are not 0. */
#include "support/unit.h"

#include "support/callbacks.h"
#include "support/files.h"
#include "support/little.h"
#include <tenfold/bind.h>
#include <tenfold/convert.h>
#include <tenfold/device.h>
#include <tenfold/diff.h>
#include <tenfold/emb.h>
#include <tenfold/params.h>
#include <tenfold/points.h>
#include <tenfold/remote.h>
#include <tenfold/repair.h>

enum { ROWS = 8, DIMS = 4, ROOM = 1024, FILL = 0xAA };

static struct {
    tnf_sink *sink;
    tnf_file *file;
    tnf_emb *emb;
    tnf_params *params;
    char points[4096];
} x;

static void add_words(tnf_builder *b)
{
    static const uint64_t shape[] = { 2 }, offsets[] = { 0, 1, 3 };
    tnf_error e;
    const tnf_part parts[] = {
        { .role = "offsets",
          .type = tnf_type_of(TNF_U64),
          .nbytes = sizeof offsets,
          .memory = to_little(offsets, 8, 3),
          .payload = TNF_MEMORY },
        { .role = "bytes",
          .type = tnf_type_of(TNF_U8),
          .nbytes = 3,
          .memory = "abc",
          .payload = TNF_MEMORY },
    };
    tnf_object words = { .name = TNF_STR("words"),
                         .shape = shape,
                         .rank = 1,
                         .layout = tnf_layout_by_id("strings/1"),
                         .parts = parts,
                         .nparts = 2 };
    assert_ok(tnf_builder_add_object(b, &words, NULL, &e));
}

static int set_up(void **state)
{
    (void)state;
    static float matrix[ROWS * DIMS];
    static const uint64_t shape[] = { ROWS, DIMS };
    tnf_error e;
    tnf_builder *b;
    tnf_source *source;
    tnf_save_options how = TNF_SAVE_INIT;
    for (size_t i = 0; i < ROWS * DIMS; i++)
        matrix[i] = (float)((i * 7 + i / DIMS) % 5) + 1;
    how.format = "ztensor2";
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "embeddings", tnf_type_of(TNF_F32), 2, shape,
                              to_little(matrix, 4, ROWS * DIMS), &e));
    add_words(b);
    assert_ok(tnf_sink_memory(&x.sink, &e));
    assert_ok(tnf_save_sink(b, x.sink, &how, &e));
    tnf_builder_free(b);
    tnf_str bytes = tnf_sink_bytes(x.sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&x.file, source, NULL, &e));
    assert_ok(tnf_emb_open(&x.emb, x.file, NULL, &e));
    assert_ok(tnf_params_new(&x.params, x.file, NULL, &e));
    tnf_points *p;
    uint64_t dims[] = { 2 };
    tnf_space space = TNF_SPACE_INIT;
    space.type = tnf_type_of(TNF_F32);
    space.dims = dims;
    space.rank = 1;
    snprintf(x.points, sizeof x.points, "%s/sizes.vsdb", files_temp());
    assert_ok(tnf_points_create(&p, x.points, &space, NULL, &e));
    tnf_points_close(p);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tnf_params_free(x.params);
    tnf_emb_close(x.emb);
    tnf_close(x.file);
    tnf_sink_close(x.sink);
    return 0;
}

/* ----------------------------------------------------------------- results */

static tnf_status by_verify(void *out, tnf_error *e)
{
    return tnf_verify(out, x.file, NULL, e);
}

static tnf_status by_diff(void *out, tnf_error *e)
{
    return tnf_diff(out, x.file, x.file, NULL, e);
}

static tnf_status by_salvage(void *out, tnf_error *e)
{
    tnf_builder *b;
    assert_int_equal(tnf_builder_new(&b, NULL, e), TNF_OK);
    tnf_status status = tnf_salvage(out, b, x.file, NULL, e);
    tnf_builder_free(b);
    return status;
}

static tnf_status by_strings(void *out, tnf_error *e)
{
    return tnf_strings_map(out, tnf_find(x.file, "words"), e);
}

static tnf_status of_bool(bool done, tnf_error *e)
{
    return done ? TNF_OK : tnf_error_set(e, TNF_EINVAL, TNF_NO_OFFSET, "false");
}

static tnf_status by_format_at(void *out, tnf_error *e)
{
    return of_bool(tnf_format_at(out, 0), e);
}

static tnf_status by_format_named(void *out, tnf_error *e)
{
    return of_bool(tnf_format_named(out, "safetensors"), e);
}

static tnf_status by_format_for_path(void *out, tnf_error *e)
{
    return tnf_format_for_path(out, "a.safetensors", e);
}

static tnf_status by_quantize(void *out, tnf_error *e)
{
    tnf_builder *b;
    tnf_quantize_options how = TNF_QUANTIZE_INIT;
    how.bits = 1;
    how.subquantizers = 2;
    assert_int_equal(tnf_builder_new(&b, NULL, e), TNF_OK);
    tnf_status status = tnf_emb_quantize(out, b, x.emb, &how, e);
    tnf_builder_free(b);
    return status;
}

static tnf_status by_statistics(void *out, tnf_error *e)
{
    return tnf_params_statistics(out, x.params, e);
}

static tnf_status by_points_verify(void *out, tnf_error *e)
{
    tnf_points *p;
    assert_int_equal(tnf_points_open(&p, x.points, NULL, e), TNF_OK);
    tnf_status status = tnf_points_verify(out, p, NULL, NULL, e);
    tnf_points_close(p);
    return status;
}

static tnf_status by_points_salvage(void *out, tnf_error *e)
{
    return tnf_points_salvage(out, x.points, NULL, take_point, NULL, e);
}

static tnf_status by_format_for_builder(void *out, tnf_error *e)
{
    tnf_builder *b;
    assert_int_equal(tnf_builder_new(&b, NULL, e), TNF_OK);
    tnf_status status = tnf_format_for_builder(out, b, "a.safetensors", NULL, e);
    tnf_builder_free(b);
    return status;
}

static tnf_status by_verify_path(void *out, tnf_error *e)
{
    return tnf_verify_path(out, NULL, x.points, NULL, NULL, e);
}

static tnf_status by_verify_source(void *out, tnf_error *e)
{
    tnf_source *source;
    tnf_str bytes = tnf_sink_bytes(x.sink);
    assert_int_equal(tnf_source_memory(&source, bytes.p, bytes.n, e), TNF_OK);
    return tnf_verify_source(out, NULL, source, NULL, NULL, e);
}

static tnf_status by_device(void *out, tnf_error *e)
{
    tnf_device *device;
    assert_int_equal(tnf_device_open(&device, "host", NULL, e), TNF_OK);
    tnf_status status = tnf_device_look(out, device, e);
    tnf_device_close(device);
    return status;
}

static tnf_status by_load(void *out, tnf_error *e)
{
    tnf_load *load;
    tnf_device *device;
    tnf_device_request request = TNF_DEVICE_REQUEST_INIT;
    request.object = tnf_find(x.file, "embeddings");
    assert_int_equal(tnf_device_open(&device, "host", NULL, e), TNF_OK);
    assert_int_equal(tnf_device_load(&load, device, &request, 1, NULL, e), TNF_OK);
    tnf_status status = tnf_load_tell(out, load, e);
    tnf_load_free(load);
    tnf_device_close(device);
    return status;
}

static const struct {
    const char *name;
    tnf_status (*fill)(void *out, tnf_error *e);
    size_t size;
} results[] = {
    { "verify", by_verify, sizeof(tnf_verify_result) },
    { "diff", by_diff, sizeof(tnf_diff_result) },
    { "salvage", by_salvage, sizeof(tnf_salvage_result) },
    { "strings", by_strings, sizeof(tnf_strings) },
    { "format at", by_format_at, sizeof(tnf_format_info) },
    { "format named", by_format_named, sizeof(tnf_format_info) },
    { "format for path", by_format_for_path, sizeof(tnf_format_info) },
    { "format for builder", by_format_for_builder, sizeof(tnf_format_info) },
    { "verify path", by_verify_path, sizeof(tnf_verify_result) },
    { "verify source", by_verify_source, sizeof(tnf_verify_result) },
    { "device", by_device, sizeof(tnf_device_info) },
    { "load", by_load, sizeof(tnf_load_report) },
    { "quantize", by_quantize, sizeof(tnf_quantized) },
    { "statistics", by_statistics, sizeof(tnf_params_stats) },
    { "points verify", by_points_verify, sizeof(tnf_points_report) },
    { "points salvage", by_points_salvage, sizeof(tnf_points_report) },
};

static size_t count_of(const uint8_t *bytes, size_t from, size_t to, uint8_t what)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        n += bytes[i] == what;
    return n;
}

/* Fills the memory of a result, and sets its size to this number. */
static void offer_room(uint64_t room[ROOM / 8], size_t size)
{
    memset(room, FILL, ROOM);
    memcpy(room, &size, sizeof size);
}

static size_t size_in(const uint64_t *room)
{
    size_t size;
    memcpy(&size, room, sizeof size);
    return size;
}

static void takes_what_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        tnf_error e;
        uint64_t room[ROOM / 8], newer[ROOM / 8];
        const size_t size = results[i].size, longer = size + 64;
        print_message("%s\n", results[i].name);
        offer_room(room, size);
        assert_ok(results[i].fill(room, &e));
        assert_int_equal(size_in(room), size);
        assert_int_equal(count_of((uint8_t *)room, size, ROOM, FILL), ROOM - size);
        assert_true(count_of((uint8_t *)room, sizeof size, size, FILL) < size - sizeof size);
        offer_room(newer, longer);
        assert_ok(results[i].fill(newer, &e));
        assert_int_equal(size_in(newer), longer);
        assert_memory_equal((uint8_t *)newer + sizeof size, (uint8_t *)room + sizeof size,
                            size - sizeof size);
        assert_int_equal(count_of((uint8_t *)newer, size, longer, 0), 64);
        assert_int_equal(count_of((uint8_t *)newer, longer, ROOM, FILL), ROOM - longer);
    }
}

static void refuses_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        const size_t sizes[] = { 0, sizeof(size_t), results[i].size - 8, (size_t)-1 };
        print_message("%s\n", results[i].name);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            tnf_error e;
            uint64_t room[ROOM / 8];
            offer_room(room, sizes[k]);
            assert_fails(results[i].fill(room, &e), TNF_EINVAL);
            assert_int_equal(count_of((uint8_t *)room, sizeof(size_t), ROOM, FILL),
                             ROOM - sizeof(size_t));
        }
    }
}

/* ---------------------------------------------------------------- reserves */

static void reserves_are_zero(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file;
    tnf_builder *b;
    tnf_open_options how = TNF_OPEN_INIT;
    tnf_binding wanted = TNF_BINDING_INIT;
    how.limits.reserved[3] = 1;
    assert_fails(tnf_open(&file, "/dev/null", &how, &e), TNF_EINVAL);
    assert_says("reserved");
    wanted.name = "embeddings";
    wanted.reserved[0] = 1;
    assert_fails(tnf_bind(x.file, &wanted, 1, NULL, NULL, &e), TNF_EINVAL);
    assert_says("reserved");
    assert_ok(tnf_builder_new(&b, NULL, &e));
    tnf_object o = *tnf_find(x.file, "embeddings");
    tnf_part part = *o.parts;
    o.parts = &part;
    part.reserved[4] = 1;
    assert_fails(tnf_builder_add_object(b, &o, NULL, &e), TNF_EINVAL);
    part.reserved[4] = 0;
    o.reserved = 1;
    assert_fails(tnf_builder_add_object(b, &o, NULL, &e), TNF_EINVAL);
    o.reserved = 0;
    assert_ok(tnf_builder_add_object(b, &o, NULL, &e));
    tnf_extra extra = { .key = TNF_STR("x"), .bytes = part };
    extra.bytes.reserved[0] = 1;
    assert_fails(tnf_builder_add_extra(b, &extra, &e), TNF_EINVAL);
    assert_says("reserved");
    tnf_builder_free(b);
    tnf_points *p;
    tnf_points_options write = TNF_POINTS_INIT;
    const float v[2] = { 1, 2 };
    tnf_point point = { .vector = v, .vector_n = sizeof v, .reserved = { 0, 1 } };
    write.write = true;
    assert_ok(tnf_points_open(&p, x.points, &write, &e));
    assert_fails(tnf_points_append(NULL, p, &point, 1, &e), TNF_EINVAL);
    point.reserved[1] = 0;
    assert_ok(tnf_points_append(NULL, p, &point, 1, &e));
    tnf_points_close(p);
    tnf_device *device;
    tnf_load *load;
    tnf_device_request request = TNF_DEVICE_REQUEST_INIT;
    request.object = tnf_find(x.file, "embeddings");
    request.reserved[2] = 1;
    assert_ok(tnf_device_open(&device, "host", NULL, &e));
    assert_fails(tnf_device_load(&load, device, &request, 1, NULL, &e), TNF_EINVAL);
    assert_says("reserved");
    tnf_device_close(device);
}

/* A space is read and not filled, by the same rules as options. */
static void spaces_need_a_size(void **state)
{
    (void)state;
    tnf_error e;
    tnf_points *p;
    tnf_space space = { .type = tnf_type_of(TNF_F32), .scalar = true };
    char path[4200];
    snprintf(path, sizeof path, "%s.space", x.points);
    assert_fails(tnf_points_create(&p, path, &space, NULL, &e), TNF_EINVAL);
    space.size = sizeof space;
    assert_ok(tnf_points_create(&p, path, &space, NULL, &e));
    assert_int_equal(tnf_points_space(p)->size, sizeof space);
    tnf_points_close(p);
}

/* Options are checked even if they have no effect in this call. */
static void unused_ones_are_checked(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file;
    tnf_report *report;
    tnf_builder *b;
    const tnf_file *files[] = { x.file };
    char path[4200];
    tnf_url_options url = { 0 };
    tnf_emb_options emb = { 0 };
    tnf_quantize_options quantize = { 0 };
    tnf_open_options open = TNF_OPEN_INIT;
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_convert_options how = TNF_CONVERT_INIT;
    open.remote = save.remote = &url;
    save.format = "safetensors";
    assert_fails(tnf_open(&file, x.points, &open, &e), TNF_EINVAL);
    assert_says("a struct was passed");
    snprintf(path, sizeof path, "%s.unused", x.points);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_fails(tnf_save(b, path, &save, &e), TNF_EINVAL);
    assert_says("a struct was passed");
    tnf_builder_free(b);
    how.emb = &emb;
    assert_fails(tnf_convert(&report, files, 1, path, &how, &e), TNF_EINVAL);
    assert_says("a struct was passed");
    assert_null(report);
    how.emb = NULL;
    how.quantize = &quantize;
    assert_fails(tnf_convert(&report, files, 1, path, &how, &e), TNF_EINVAL);
    assert_says("a struct was passed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_fits),         cmocka_unit_test(refuses_sizes),
        cmocka_unit_test(reserves_are_zero),       cmocka_unit_test(spaces_need_a_size),
        cmocka_unit_test(unused_ones_are_checked),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
