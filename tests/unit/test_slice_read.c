/* SPDX-License-Identifier: MIT */
/* Reading slices: refused ones, and how much of the file is read. tests/slices.c compares the
 * elements with a plain reference. */
#include "../support/encoded.h"
#include "../support/unit.h"
#include "core/core.h"

struct log {
    uint64_t calls, bytes;
};

static tnf_status log_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct log *log = ctx;
    (void)e;
    __atomic_fetch_add(&log->calls, 1, __ATOMIC_RELAXED); /* several threads may read */
    __atomic_fetch_add(&log->bytes, n, __ATOMIC_RELAXED);
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = (uint8_t)((offset + i) * 7);
    return TNF_OK;
}

static struct log read_log;
static tnf_source *source;
static struct tnf_origin origin;

static int set_up(void **state)
{
    static const tnf_source_ops ops = { .version = 1, .read_at = log_read };
    (void)state;
    origin.source = source;
    if (tnf_source_custom(&source, &ops, &read_log, (uint64_t)1 << 40, NULL) != TNF_OK)
        return -1;
    origin.source = source;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tnf_source_close(source);
    return 0;
}

/* Takes a slice of a tensor that begins at byte 0 of the file; returns the numbers of bytes and
 * calls. */
static struct log take_as(const char *type, uint32_t rank, const uint64_t *shape, tnf_order order,
                          const char *text)
{
    tnf_error e;
    tnf_slice s[8];
    uint64_t n = tnf_type_named(type)->bits / 8;
    for (uint32_t d = 0; d < rank; d++)
        n *= shape[d];
    tnf_part part = {
        .role = "data", .type = tnf_type_named(type), .origin = &origin, .stored = n, .nbytes = n
    };
    tnf_object o = { .name = { "t", 1 },
                     .shape = shape,
                     .rank = rank,
                     .parts = &part,
                     .nparts = 1,
                     .layout = &tnf_layout_dense,
                     .order = (uint8_t)order };
    assert_ok(tnf_slice_parse(s, text, shape, rank, &e));
    size_t size = (size_t)tnf_slice_bytes(&o, s);
    uint8_t *out = malloc(size);
    read_log = (struct log) { 0 };
    assert_ok(tnf_read_slice(out, size, &o, s, &e));
    free(out);
    return read_log;
}

static struct log take_bytes(uint32_t rank, const uint64_t *shape, tnf_order order,
                             const char *text)
{
    return take_as("u8", rank, shape, order, text);
}

#define SHAPE(...)                                                                                 \
    sizeof((uint64_t[]) { __VA_ARGS__ }) / 8, (uint64_t[])                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void what_is_whole_is_read_whole(void **state)
{
    (void)state;
    struct log l = take_bytes(SHAPE(1000, 1000), TNF_ORDER_C, ":");
    assert_int_equal(l.bytes, 1000000);
    assert_int_equal(l.calls, 1);
    l = take_bytes(SHAPE(1000, 1000), TNF_ORDER_C,
                   "100:300"); /* rows one after the other: one run */
    assert_int_equal(l.bytes, 200000);
    assert_int_equal(l.calls, 1);
    l = take_bytes(SHAPE(100000, 100000), TNF_ORDER_C, "70000");
    assert_int_equal(l.bytes, 100000);
}

static void single_elements_cost_little(void **state)
{
    (void)state;
    struct log l = take_bytes(SHAPE(1 << 20, 1 << 18), TNF_ORDER_C, "5,7");
    assert_true(l.bytes <= 4096 && l.calls == 1);
    l = take_bytes(SHAPE(1 << 20, 1 << 18), TNF_ORDER_C, "0:10,7"); /* ten elements, far apart */
    assert_true(l.bytes <= 10 * 4096 && l.calls <= 10);
    l = take_bytes(SHAPE(1 << 20, 1 << 18), TNF_ORDER_F, "0:10,7");
    assert_true(l.bytes <= 4096);
}

/* Groups of a few close rows: the bytes between the groups are not read. */
static void far_pieces_are_not_bridged(void **state)
{
    (void)state;
    struct log l = take_bytes(SHAPE(1000, 1000, 1000), TNF_ORDER_C, "::100,0:2,::2");
    assert_true(l.bytes <= 10 * 64 * 1024); /* ten places, two rows each */
}

/* Backwards costs as much as forwards: a tensor is read about once. */
static void backwards_reads_once(void **state)
{
    (void)state;
    static const char *const texts[] = { "::-1,::-1", "::-1,::2", "::2,::-1", "::-1", ":,::-3" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct log l = take_bytes(SHAPE(2000, 2000), TNF_ORDER_C, texts[i]);
        if (l.bytes > 2 * 4000000)
            fail_msg("%s reads %llu bytes of 4000000", texts[i], (unsigned long long)l.bytes);
        assert_true(l.calls <= 2000);
    }
}

static void column_major_is_read_about_once(void **state)
{
    (void)state;
    static const char *const texts[] = { ":,:", "::2,:", ":,::-1", "::-1,::2" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct log l = take_bytes(SHAPE(3000, 2000), TNF_ORDER_F, texts[i]);
        if (l.bytes > 2 * 6000000)
            fail_msg("%s reads %llu bytes of 6000000", texts[i], (unsigned long long)l.bytes);
    }
    struct log l = take_as("c128", SHAPE(20, 256 << 10), TNF_ORDER_F, ":,:"); /* wide: 80 MiB */
    if (l.bytes > (uint64_t)2 * 80 << 20)
        fail_msg("80 MiB cost %llu bytes", (unsigned long long)l.bytes);
}

struct stored {
    struct log log;
    struct encoded x;
};

static tnf_status stored_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct stored *s = ctx;
    (void)e;
    s->log.calls++;
    s->log.bytes += n;
    memcpy(dst, s->x.p + offset, n);
    return TNF_OK;
}

/* An encoded tensor is decoded about once for a slice, not once for each of its rows. */
static void encoded_decodes_once(void **state)
{
    (void)state;
    static const char *const texts[] = { ":,::2", ":,:70000", "::3,10:", "5,:", ":,7" };
    static const tnf_source_ops ops = { .version = 1, .read_at = stored_read };
    enum { ROWS = 12, COLUMNS = 100000 };
    uint64_t shape[] = { ROWS, COLUMNS }, rng = 5;
    uint8_t *plain = malloc(ROWS * COLUMNS);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        plain[i] = (uint8_t)((rng = rng * 6364136223846793005u + 1) >> 40);
    struct stored s = { .x = encoded_bytes(TNF_CODEC_ZSTD, plain, ROWS * COLUMNS) };
    tnf_error e;
    tnf_source *from;
    assert_ok(tnf_source_custom(&from, &ops, &s, s.x.n, &e));
    struct tnf_origin here = { .source = from };
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .origin = &here,
                      .stored = s.x.n,
                      .nbytes = ROWS * COLUMNS,
                      .payload = TNF_ENCODED,
                      .codec = TNF_CODEC_ZSTD };
    tnf_object o = { .name = { "t", 1 },
                     .shape = shape,
                     .rank = 2,
                     .parts = &part,
                     .nparts = 1,
                     .layout = &tnf_layout_dense };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        tnf_slice sl[2];
        assert_ok(tnf_slice_parse(sl, texts[k], shape, 2, &e));
        size_t n = (size_t)tnf_slice_bytes(&o, sl);
        uint8_t *out = malloc(n);
        s.log = (struct log) { 0 };
        assert_ok(tnf_read_slice(out, n, &o, sl, &e));
        for (size_t i = 0; i < n; i++) {
            uint64_t row = (uint64_t)sl[0].start + i / sl[1].count * (uint64_t)sl[0].step;
            uint64_t column = (uint64_t)sl[1].start + i % sl[1].count * (uint64_t)sl[1].step;
            assert_true(out[i] == plain[row * COLUMNS + column]);
        }
        if (s.log.bytes > 2 * s.x.n + (1 << 20))
            fail_msg("[%s] reads %llu of %zu stored bytes", texts[k],
                     (unsigned long long)s.log.bytes, s.x.n);
        free(out);
    }
    tnf_source_close(from);
    free(s.x.p);
    free(plain);
}

static void refuses_bad_slices(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t shape[] = { 4, 5 };
    uint8_t out[20];
    tnf_part part = {
        .role = "data", .type = tnf_type_of(TNF_U8), .origin = &origin, .stored = 20, .nbytes = 20
    };
    tnf_object o = { .name = { "t", 1 },
                     .shape = shape,
                     .rank = 2,
                     .parts = &part,
                     .nparts = 1,
                     .layout = &tnf_layout_dense };
    static const tnf_slice wrong[] = {
        { 0, 1, 5, false },         { 4, 1, 1, false },         { -1, 1, 1, false },
        { 0, 4, 2, false },         { 0, -1, 2, false },        { 0, 0, 2, false },
        { 3, INT64_MAX, 2, false }, { 3, INT64_MIN, 2, false }, { INT64_MAX, 1, 1, false },
        { 1, 1, 4, false },         { 1, -1, 3, false },        { INT64_MIN, 1, 1, false },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tnf_slice s[] = { wrong[i], { 0, 1, 1, false } };
        assert_fails(tnf_read_slice(out, (size_t)wrong[i].count, &o, s, &e), TNF_EINVAL);
    }
    static const tnf_slice odd[] = { /* for a single element, steps do not matter */
                                     { 3, 0, 1, false },
                                     { 3, INT64_MIN, 1, false },
                                     { 3, INT64_MAX, 1, true }
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        tnf_slice s[] = { odd[i], { 1, 1, 2, false } };
        assert_ok(tnf_read_slice(out, 2, &o, s, &e));
        assert_int_equal(out[1], (uint8_t)(17 * 7));
    }
    tnf_slice all[] = { { 0, 1, 4, false }, { 0, 1, 5, false } };
    assert_fails(tnf_read_slice(out, 19, &o, all, &e), TNF_EINVAL);
    part.flags = TNF_PART_UNREADABLE;
    assert_fails(tnf_read_slice(out, 20, &o, all, &e), TNF_EUNSUPPORTED);
    part.flags = 0;
    static const tnf_type opaque = { "theirs", TNF_U8, TNF_NUMBER_OPAQUE, 0 };
    part.type = &opaque; /* its width is unknown */
    assert_int_not_equal(tnf_read_slice(out, 20, &o, all, &e), TNF_OK);
    part.type = tnf_type_of(TNF_U8);
    o.layout = tnf_layout_named("strings/1", 9);
    assert_fails(tnf_read_slice(out, 20, &o, all, &e), TNF_EUNSUPPORTED);
    assert_says("strings/1");
    tnf_slice none[] = { { 0, 1, 0, false }, { 0, 1, 5, false } };
    assert_ok(tnf_read_slice(NULL, 0, &o, none, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_whole_is_read_whole),
        cmocka_unit_test(single_elements_cost_little),
        cmocka_unit_test(far_pieces_are_not_bridged),
        cmocka_unit_test(backwards_reads_once),
        cmocka_unit_test(column_major_is_read_about_once),
        cmocka_unit_test(encoded_decodes_once),
        cmocka_unit_test(refuses_bad_slices),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
