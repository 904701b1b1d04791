/* SPDX-License-Identifier: MIT */
/* Reading parts of all kinds; views, and the reasons why there is none. */
#include "../support/encoded.h"
#include "../support/fake.h"

static uint8_t bytes[64] __attribute__((aligned(64)));

static tnf_status decode_series(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                                tnf_error *e)
{
    (void)r;
    if (key == 13)
        return tnf_fail(e, TNF_EFORMAT, key, "bad block");
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = (uint8_t)(key + offset + i);
    return TNF_OK;
}

static tnf_status fetch_series(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)e;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = (uint8_t)(*(int *)ctx + (int)offset + (int)i);
    return TNF_OK;
}

static void begin_fake(struct fake *f)
{
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(100 + i);
    fake_begin(f, bytes, sizeof bytes, 0, false);
    f->format.decode = decode_series;
}

static tnf_part part_at(struct fake *f, const char *type, uint64_t offset, uint64_t n)
{
    return (tnf_part) { .role = "data",
                        .type = tnf_type_named(type),
                        .origin = &f->file->origin,
                        .offset = offset,
                        .stored = n,
                        .nbytes = n };
}

static void reads_plain_parts(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    uint8_t out[16];
    begin_fake(&f);
    tnf_part p = part_at(&f, "u8", 10, 16);
    assert_ok(tnf_read_part(out, 16, &p, 0, &e));
    assert_memory_equal(out, bytes + 10, 16);
    assert_ok(tnf_read_part(out, 1, &p, 15, &e));
    assert_int_equal(out[0], 125);
    assert_ok(tnf_read_part(out, 0, &p, 16, &e));
    assert_ok(tnf_read_part(NULL, 0, &p, 0, &e));
    static const struct {
        uint64_t offset;
        size_t n;
    } wrong[] = { { 16, 1 }, { 0, 17 }, { 17, 0 }, { UINT64_MAX, 2 }, { 2, SIZE_MAX } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(tnf_read_part(out, wrong[i].n, &p, wrong[i].offset, &e), TNF_EINVAL);
    fake_end(&f);
}

/* Any piece of a big-endian part is the same as in the swapped whole. */
static void big_endian(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        size_t width;
    } types[] = { { "u8", 1 },  { "i16", 2 },  { "f32", 4 }, { "u64", 8 },
                  { "c64", 4 }, { "c128", 8 }, { "bool", 1 } };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        tnf_error e;
        struct fake f;
        uint8_t want[32], out[34];
        begin_fake(&f);
        tnf_part p = part_at(&f, types[t].type, 7, 32);
        p.flags = TNF_PART_BIG_ENDIAN;
        for (size_t i = 0; i < 32; i++)
            want[i] = bytes[7 + i / types[t].width * types[t].width + types[t].width - 1 -
                            i % types[t].width];
        for (size_t at = 0; at <= 32; at++)
            for (size_t n = 0; at + n <= 32; n++) {
                memset(out, 0xee, sizeof out);
                assert_ok(tnf_read_part(out + 1, n, &p, at, &e));
                assert_memory_equal(out + 1, want + at, n);
                assert_int_equal(out[0], 0xee);
                assert_int_equal(out[n + 1], 0xee);
            }
        fake_end(&f);
    }
}

static void reads_decoded_parts(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    uint8_t out[5];
    begin_fake(&f);
    tnf_part p = part_at(&f, "u8", 40, 20);
    p.payload = TNF_OPAQUE;
    assert_ok(tnf_read_part(out, 5, &p, 3, &e));
    assert_int_equal(out[4], 47);
    p.offset = 13;
    assert_fails(tnf_read_part(out, 5, &p, 0, &e), TNF_EFORMAT);
    f.file->origin.label = "shard-2";
    assert_fails(tnf_read_part(out, 5, &p, 0, &e), TNF_EFORMAT);
    assert_string_equal(e.message, "shard-2: bad block");
    p.payload = TNF_ENCODED;
    assert_fails(tnf_read_part(out, 5, &p, 0, &e), TNF_EUNSUPPORTED);
    fake_end(&f);
}

/* Any piece of an encoded part, in either byte order, is the same as in the whole. */
static void encoded_pieces(void **state)
{
    (void)state;
    static const tnf_codec codecs[] = { TNF_CODEC_ZSTD, TNF_CODEC_ZSTD_SEEKABLE };
    for (int k = 0; k < 4; k++) {
        tnf_error e;
        struct fake f;
        uint8_t plain[40], want[40], out[42];
        for (size_t i = 0; i < sizeof plain; i++) {
            plain[i] = (uint8_t)(i * i);
            want[i] = plain[i];
        }
        struct encoded x = encoded_bytes(codecs[k % 2], plain, sizeof plain);
        fake_begin(&f, x.p, x.n, 0, false);
        tnf_part p = part_at(&f, "f32", 0, x.n);
        p.nbytes = sizeof plain;
        p.payload = TNF_ENCODED;
        p.codec = (uint8_t)codecs[k % 2];
        if (k >= 2) {
            p.flags = TNF_PART_BIG_ENDIAN;
            for (size_t i = 0; i < sizeof plain; i++)
                want[i] = plain[i / 4 * 4 + 3 - i % 4];
        }
        for (size_t at = 0; at <= sizeof plain; at++)
            for (size_t n = 0; at + n <= sizeof plain; n++) {
                memset(out, 0xee, sizeof out);
                assert_ok(tnf_read_part(out + 1, n, &p, at, &e));
                if (memcmp(out + 1, want + at, n) != 0)
                    fail_msg("%s%s: bytes %zu to %zu", tnf_codec_name(p.codec),
                             k >= 2 ? " big-endian" : "", at, at + n);
                assert_int_equal(out[0], 0xee);
                assert_int_equal(out[n + 1], 0xee);
            }
        fake_end(&f);
        free(x.p);
    }
}

/* Errors have the offset in the file, for every reader that detects them. */
static void encoded_errors(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    uint8_t plain[3000], out[3000];
    uint64_t rng = 77;
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (uint8_t)((rng = rng * 6364136223846793005u + 1) >> 40); /* not compressible */
    struct encoded x = encoded_bytes(TNF_CODEC_ZSTD, plain, sizeof plain);
    assert_true(x.n > sizeof plain);
    uint8_t *file = calloc(1, 64 + x.n);
    memcpy(file + 64, x.p, x.n);
    fake_begin(&f, file, 64 + x.n / 2, 0, false); /* cut in the middle */
    tnf_part p = part_at(&f, "u8", 64, x.n);
    p.nbytes = sizeof plain;
    p.payload = TNF_ENCODED;
    p.codec = TNF_CODEC_ZSTD;
    assert_fails(tnf_read_part(out, sizeof out, &p, 0, &e), TNF_ETRUNCATED);
    assert_int_equal(e.offset, 64 + x.n / 2);
    fake_end(&f);
    memset(file + 64, 0, 4); /* not zstd */
    fake_begin(&f, file, 64 + x.n, 0, false);
    p.origin = &f.file->origin;
    assert_fails(tnf_read_part(out, sizeof out, &p, 0, &e), TNF_EFORMAT);
    assert_in_range(e.offset, 64, 64 + x.n);
    p.nbytes = sizeof plain - 1; /* fewer than the decoded bytes */
    memcpy(file + 64, x.p, 4);
    assert_int_not_equal(tnf_read_part(out, sizeof plain - 1, &p, 0, &e), TNF_OK);
    p.nbytes = sizeof plain + 1; /* more */
    uint8_t *more = malloc(sizeof plain + 1);
    assert_int_not_equal(tnf_read_part(more, sizeof plain + 1, &p, 0, &e), TNF_OK);
    free(more);
    fake_end(&f);
    free(file);
    free(x.p);
}

struct scanned {
    uint8_t *p;
    size_t n, stop_at;
};

static tnf_status collect_bytes(void *ctx, const void *p, size_t n, tnf_error *e)
{
    struct scanned *s = ctx;
    if (s->stop_at && s->n >= s->stop_at)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "enough");
    s->p = realloc(s->p, s->n + n + 1);
    memcpy(s->p + s->n, p, n);
    s->n += n;
    return TNF_OK;
}

static void scans_every_payload(void **state)
{
    (void)state;
    tnf_error e;
    size_t n = 3000004;
    uint8_t *plain = malloc(n);
    for (size_t i = 0; i < n; i++)
        plain[i] = (uint8_t)(i >> 8 ^ i);
    struct encoded x = encoded_bytes(TNF_CODEC_ZSTD, plain, n);
    for (int k = 0; k < 5; k++) { /* raw, big-endian, encoded, memory, nothing */
        struct fake f;
        struct scanned s = { 0 };
        fake_begin(&f, k == 2 ? x.p : plain, k == 2 ? x.n : n, 0, false);
        tnf_part p = part_at(&f, "f32", 0, k == 2 ? x.n : n);
        p.nbytes = k == 4 ? 0 : n;
        p.flags = k == 1 ? TNF_PART_BIG_ENDIAN : 0;
        p.payload = k == 2 ? TNF_ENCODED : k == 3 ? TNF_MEMORY : TNF_AT;
        p.codec = TNF_CODEC_ZSTD;
        p.memory = plain;
        assert_ok(tnf_scan(&p, collect_bytes, &s, &e));
        assert_int_equal(s.n, p.nbytes);
        for (size_t i = 0; i < s.n; i++)
            assert_true(s.p[i] == plain[k == 1 ? i / 4 * 4 + 3 - i % 4 : i]);
        free(s.p);
        s = (struct scanned) { .stop_at = 1 };
        if (k < 4)
            assert_fails(tnf_scan(&p, collect_bytes, &s, &e), TNF_ENET);
        assert_true(s.n < n);
        free(s.p);
        p.flags = TNF_PART_UNREADABLE;
        assert_fails(tnf_scan(&p, collect_bytes, &s, &e), TNF_EUNSUPPORTED);
        fake_end(&f);
    }
    free(plain);
    free(x.p);
}

static void memory_and_functions(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    uint8_t out[5];
    int base = 30;
    struct tnf_origin origin = { .fetch = fetch_series, .ctx = &base };
    begin_fake(&f);
    tnf_part p = part_at(&f, "u8", 0, 20);
    p.payload = TNF_MEMORY;
    p.memory = bytes + 20;
    p.origin = NULL;
    assert_ok(tnf_read_part(out, 5, &p, 2, &e));
    assert_memory_equal(out, bytes + 22, 5);
    p.memory = NULL;
    p.origin = &origin;
    assert_ok(tnf_read_part(out, 5, &p, 2, &e));
    assert_int_equal(out[0], 32);
    const void *view;
    assert_fails(tnf_map(&view, &p, &e), TNF_EUNSUPPORTED);
    assert_says("function");
    fake_end(&f);
}

static void whole_tensors(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    uint8_t out[24];
    begin_fake(&f);
    uint64_t shape[] = { 2, 3 };
    tnf_part p[2] = { part_at(&f, "f32", 4, 24), part_at(&f, "f32", 4, 24) };
    tnf_object o = { .name = { "w", 1 },
                     .shape = shape,
                     .rank = 2,
                     .parts = p,
                     .nparts = 1,
                     .layout = &tnf_layout_dense };
    assert_ok(tnf_read(out, 24, &o, &e));
    assert_memory_equal(out, bytes + 4, 24);
    assert_fails(tnf_read(out, 23, &o, &e), TNF_EINVAL);
    assert_says("24");
    o.nparts = 2;
    assert_fails(tnf_read(out, 24, &o, &e), TNF_EINVAL);
    assert_says("2 parts");
    assert_int_equal(tnf_elements(&o), 6);
    o.rank = 0;
    assert_int_equal(tnf_elements(&o), 1);
    fake_end(&f);
}

static void maps_views(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    const void *view;
    begin_fake(&f);
    tnf_part p = part_at(&f, "f32", 8, 24);
    assert_ok(tnf_map(&view, &p, &e));
    assert_ptr_equal(view, bytes + 8);
    p.offset = 9;
    assert_fails(tnf_map(&view, &p, &e), TNF_EUNSUPPORTED);
    assert_null(view);
    assert_int_equal(e.offset, 9);
    assert_says("multiple of 4");
    p.offset = 8;
    p.flags = TNF_PART_BIG_ENDIAN;
    assert_fails(tnf_map(&view, &p, &e), TNF_EUNSUPPORTED);
    assert_says("big-endian");
    p.flags = TNF_PART_UNREADABLE;
    assert_fails(tnf_map(&view, &p, &e), TNF_EUNSUPPORTED);
    p.flags = 0;
    p.payload = TNF_OPAQUE;
    assert_fails(tnf_map(&view, &p, &e), TNF_EUNSUPPORTED);
    assert_says("encoded");
    p.payload = TNF_AT;
    f.file->source->map_why = "of a reason";
    assert_fails(tnf_map(&view, &p, &e), TNF_EUNSUPPORTED);
    assert_says("of a reason");
    p.nbytes = p.stored = 0; /* an empty part always has a view */
    assert_ok(tnf_map(&view, &p, &e));
    assert_non_null(view);
    p = part_at(&f, "u8", 0, 20);
    p.payload = TNF_MEMORY;
    p.memory = bytes + 3;
    p.origin = NULL;
    assert_ok(tnf_map(&view, &p, &e));
    assert_ptr_equal(view, bytes + 3);
    tnf_prefetch(&p);
    tnf_evict(&p);
    fake_end(&f);
}

/* The NULL that tnf_find() returns for a missing name may be passed on. */
static void nothing_there(void **state)
{
    (void)state;
    tnf_error e;
    const void *view;
    char byte;
    tnf_slice slice = { 0, 1, 1, false };
    tnf_strings strings = TNF_STRINGS_INIT;
    assert_fails(tnf_read(&byte, 1, NULL, &e), TNF_EINVAL);
    assert_says("there is no such tensor");
    assert_fails(tnf_read_part(&byte, 1, NULL, 0, &e), TNF_EINVAL);
    assert_fails(tnf_read_slice(&byte, 1, NULL, &slice, &e), TNF_EINVAL);
    assert_fails(tnf_scan(NULL, NULL, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_map(&view, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_strings_map(&strings, NULL, &e), TNF_EINVAL);
    assert_null(tnf_object_part(NULL, "data"));
    assert_true(tnf_elements(NULL) == 0);
    tnf_prefetch(NULL);
    tnf_evict(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_there),       cmocka_unit_test(reads_plain_parts),
        cmocka_unit_test(big_endian),          cmocka_unit_test(reads_decoded_parts),
        cmocka_unit_test(encoded_pieces),      cmocka_unit_test(encoded_errors),
        cmocka_unit_test(scans_every_payload), cmocka_unit_test(memory_and_functions),
        cmocka_unit_test(whole_tensors),       cmocka_unit_test(maps_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
