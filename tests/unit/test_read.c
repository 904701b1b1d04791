/* SPDX-License-Identifier: MIT */
/* Reading parts, whatever they are made of; views, and why there is none. */
#include "../support/fake.h"

static uint8_t bytes[64] __attribute__((aligned(64)));

static tnf_status decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    (void)r;
    if (key == 13)
        return tnf_fail(e, TNF_EFORMAT, key, "bad block");
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = (uint8_t)(key + offset + i);
    return TNF_OK;
}

static tnf_status fetch(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)e;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = (uint8_t)(*(int *)ctx + (int)offset + (int)i);
    return TNF_OK;
}

static void begin(struct fake *f)
{
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(100 + i);
    fake_begin(f, bytes, sizeof bytes, 0, false);
    f->format.decode = decode;
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

static void plain(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    uint8_t out[16];
    begin(&f);
    tnf_part p = part_at(&f, "u8", 10, 16);
    assert_ok(tnf_read_part(&p, 0, out, 16, &e));
    assert_memory_equal(out, bytes + 10, 16);
    assert_ok(tnf_read_part(&p, 15, out, 1, &e));
    assert_int_equal(out[0], 125);
    assert_ok(tnf_read_part(&p, 16, out, 0, &e));
    assert_ok(tnf_read_part(&p, 0, NULL, 0, &e));
    static const struct {
        uint64_t offset;
        size_t n;
    } wrong[] = { { 16, 1 }, { 0, 17 }, { 17, 0 }, { UINT64_MAX, 2 }, { 2, SIZE_MAX } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(tnf_read_part(&p, wrong[i].offset, out, wrong[i].n, &e), TNF_EINVAL);
    fake_end(&f);
}

/* Any piece of a big-endian part is what the same piece of the swapped whole is. */
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
        begin(&f);
        tnf_part p = part_at(&f, types[t].type, 7, 32);
        p.flags = TNF_PART_BIG_ENDIAN;
        for (size_t i = 0; i < 32; i++)
            want[i] = bytes[7 + i / types[t].width * types[t].width + types[t].width - 1 -
                            i % types[t].width];
        for (size_t at = 0; at <= 32; at++)
            for (size_t n = 0; at + n <= 32; n++) {
                memset(out, 0xee, sizeof out);
                assert_ok(tnf_read_part(&p, at, out + 1, n, &e));
                assert_memory_equal(out + 1, want + at, n);
                assert_int_equal(out[0], 0xee);
                assert_int_equal(out[n + 1], 0xee);
            }
        fake_end(&f);
    }
}

static void decoded(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    uint8_t out[5];
    begin(&f);
    tnf_part p = part_at(&f, "u8", 40, 20);
    p.payload = TNF_OPAQUE;
    assert_ok(tnf_read_part(&p, 3, out, 5, &e));
    assert_int_equal(out[4], 47);
    p.offset = 13;
    assert_fails(tnf_read_part(&p, 0, out, 5, &e), TNF_EFORMAT);
    f.file->origin.label = "shard-2";
    assert_fails(tnf_read_part(&p, 0, out, 5, &e), TNF_EFORMAT);
    assert_string_equal(e.message, "shard-2: bad block");
    p.payload = TNF_ENCODED;
    assert_fails(tnf_read_part(&p, 0, out, 5, &e), TNF_EUNSUPPORTED);
    fake_end(&f);
}

static void memory_and_functions(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    uint8_t out[5];
    int base = 30;
    struct tnf_origin origin = { .fetch = fetch, .ctx = &base };
    begin(&f);
    tnf_part p = part_at(&f, "u8", 0, 20);
    p.payload = TNF_MEMORY;
    p.memory = bytes + 20;
    p.origin = NULL;
    assert_ok(tnf_read_part(&p, 2, out, 5, &e));
    assert_memory_equal(out, bytes + 22, 5);
    p.memory = NULL;
    p.origin = &origin;
    assert_ok(tnf_read_part(&p, 2, out, 5, &e));
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
    begin(&f);
    uint64_t shape[] = { 2, 3 };
    tnf_part p[2] = { part_at(&f, "f32", 4, 24), part_at(&f, "f32", 4, 24) };
    tnf_object o = { .name = { "w", 1 },
                     .shape = shape,
                     .rank = 2,
                     .parts = p,
                     .nparts = 1,
                     .layout = &tnf_layout_dense };
    assert_ok(tnf_read(&o, out, 24, &e));
    assert_memory_equal(out, bytes + 4, 24);
    assert_fails(tnf_read(&o, out, 23, &e), TNF_EINVAL);
    assert_says("24");
    o.nparts = 2;
    assert_fails(tnf_read(&o, out, 24, &e), TNF_EINVAL);
    assert_says("2 parts");
    assert_int_equal(tnf_elements(&o), 6);
    o.rank = 0;
    assert_int_equal(tnf_elements(&o), 1);
    fake_end(&f);
}

static void views(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    const void *view;
    begin(&f);
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
    p.nbytes = p.stored = 0; /* nothing can always be looked at */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),         cmocka_unit_test(big_endian),
        cmocka_unit_test(decoded),       cmocka_unit_test(memory_and_functions),
        cmocka_unit_test(whole_tensors), cmocka_unit_test(views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
