/* SPDX-License-Identifier: MIT */
/* Strings without a copy: from the parts, from the format's own bytes, and the reason if there are
 * none. */
#include "../support/fake.h"
#include "../support/little.h"

static const char text[] = "onethree";
static const uint64_t offsets[] = { 0, 3, 3, 8 };

static tnf_part memory_part(const char *role, const char *type, const void *p, uint64_t n)
{
    p = little_bytes(tnf_type_named(type), p, n);
    return (tnf_part) {
        .role = role, .type = tnf_type_named(type), .memory = p, .nbytes = n, .payload = TNF_MEMORY
    };
}

static tnf_object strings_of(const tnf_part *parts, const uint64_t *count)
{
    return (tnf_object) { .name = { "words", 5 },
                          .layout = tnf_layout_by_id("strings/1"),
                          .shape = count,
                          .rank = 1,
                          .parts = parts,
                          .nparts = 2 };
}

static void maps_strings(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t count = 3;
    tnf_part parts[] = { memory_part("offsets", "u64", offsets, sizeof offsets),
                         memory_part("bytes", "u8", text, 8) };
    tnf_object o = strings_of(parts, &count);
    tnf_strings s = TNF_STRINGS_INIT;
    assert_ok(tnf_strings_map(&s, &o, &e));
    assert_int_equal(s.count, 3);
    assert_int_equal(s.bytes, 8);
    assert_int_equal(s.prefix, 0);
    assert_int_equal(s.suffix, 0);
    assert_null(s.marks);
    assert_memory_equal(s.offsets, to_little(offsets, 8, 4), sizeof offsets);
    assert_ptr_equal(s.offsets, parts[0].memory);
    assert_ptr_equal(s.base, text);
}

static void maps_no_strings(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t count = 0;
    tnf_part parts[] = { memory_part("offsets", "u64", offsets, 8),
                         memory_part("bytes", "u8", NULL, 0) };
    tnf_object o = strings_of(parts, &count);
    tnf_strings s = TNF_STRINGS_INIT;
    assert_ok(tnf_strings_map(&s, &o, &e));
    assert_int_equal(s.count, 0);
    assert_int_equal(s.bytes, 0);
    assert_non_null(s.base);
}

/* Wrong offsets in a file never cause a read beyond the bytes. */
static void wrong_offsets(void **state)
{
    (void)state;
    static const uint64_t wrong[][4] = {
        { 1, 3, 3, 8 }, { 0, 4, 3, 8 }, { 0, 3, 3, 7 },
        { 0, 3, 3, 9 }, { 0, 9, 3, 8 }, { 0, 3, UINT64_MAX, 8 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tnf_error e;
        uint64_t count = 3;
        tnf_part parts[] = { memory_part("offsets", "u64", wrong[i], sizeof wrong[i]),
                             memory_part("bytes", "u8", text, 8) };
        tnf_object o = strings_of(parts, &count);
        tnf_strings s = TNF_STRINGS_INIT;
        assert_fails(tnf_strings_map(&s, &o, &e), TNF_EFORMAT);
        assert_says("do not ascend");
        assert_null(s.base);
    }
}

static void not_strings(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t count = 3;
    tnf_strings s = TNF_STRINGS_INIT;
    tnf_part parts[] = { memory_part("offsets", "u64", offsets, sizeof offsets),
                         memory_part("bytes", "u8", text, 8) };
    tnf_object o = strings_of(parts, &count);
    o.layout = tnf_layout_by_id("dense");
    assert_fails(tnf_strings_map(&s, &o, &e), TNF_EINVAL);
    o = strings_of(parts, &count);
    o.nparts = 1;
    assert_fails(tnf_strings_map(&s, &o, &e), TNF_EFORMAT);
    count = 4;
    o = strings_of(parts, &count);
    assert_fails(tnf_strings_map(&s, &o, &e), TNF_EFORMAT);
}

static tnf_status lend_strings(tnf_reader *r, uint64_t key, tnf_strings *out, tnf_error *e)
{
    if (key != 7)
        return tnf_cannot_map("not that one", e);
    *out = (tnf_strings) { .base = tnf_source_map(r->source, key, 3), .count = 1, .prefix = 4 };
    return TNF_OK;
}

static tnf_status decode_zeros(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                               tnf_error *e)
{
    (void)r, (void)key, (void)offset, (void)e;
    memset(dst, 0, n);
    return TNF_OK;
}

static void by_the_format(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    uint64_t count = 3;
    tnf_strings s = TNF_STRINGS_INIT;
    fake_begin(&f, "0123456789", 10, 0, false);
    tnf_part parts[] = { memory_part("offsets", "u64", offsets, sizeof offsets),
                         memory_part("bytes", "u8", NULL, 8) };
    parts[1].payload = TNF_OPAQUE;
    parts[1].origin = &f.file->origin;
    parts[1].offset = 7;
    tnf_object o = strings_of(parts, &count);
    assert_fails(tnf_strings_map(&s, &o, &e), TNF_EINVAL); /* nothing can read the part */
    f.format.decode = decode_zeros;
    assert_fails(tnf_strings_map(&s, &o, &e), TNF_EUNSUPPORTED); /* no such function */
    assert_says("encoded in the file");
    f.format.strings = lend_strings;
    assert_ok(tnf_strings_map(&s, &o, &e));
    assert_memory_equal(s.base, "789", 3);
    assert_int_equal(s.prefix, 4);
    parts[1].offset = 6;
    assert_fails(tnf_strings_map(&s, &o, &e), TNF_EUNSUPPORTED);
    assert_says("the bytes cannot be mapped, only read: not that one");
    fake_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_strings),  cmocka_unit_test(maps_no_strings),
        cmocka_unit_test(wrong_offsets), cmocka_unit_test(not_strings),
        cmocka_unit_test(by_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
