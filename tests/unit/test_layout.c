/* SPDX-License-Identifier: MIT */
/* The table, roles, dense and strings/1. */
#include "model/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "layout_objects.h"

static void the_table(void **state)
{
    (void)state;
    static const char *const ids[] = { "dense",         "strings/1", "sparse_csr/1", "sparse_coo/1",
                                       "quant_group/1", "mx/1",      "pq/1" };
    for (size_t i = 0; i < COUNT(ids); i++) {
        assert_string_equal(tnf_layout_id(tnf_layout_at(i)), ids[i]);
        assert_ptr_equal(tnf_layout_named(ids[i], strlen(ids[i])), tnf_layout_at(i));
    }
    for (size_t i = COUNT(ids); i < COUNT(ids) + 27; i++) { /* those of blocks */
        const tnf_layout *layout = tnf_layout_at(i);
        assert_ptr_equal(tnf_layout_named(layout->id, strlen(layout->id)), layout);
        assert_true(layout->block_elements % 32 == 0 && layout->block_bytes > 0);
    }
    assert_null(tnf_layout_at(COUNT(ids) + 27));
    assert_ptr_equal(tnf_layout_at(0), &tnf_layout_dense);
    assert_null(tnf_layout_named("dense/1", 7));
    assert_null(tnf_layout_named("dense", 4));
    assert_null(tnf_layout_named("", 0));
    assert_null(tnf_layout_named("dense\0", 6));
}

static void unknown_layouts_are_kept(void **state)
{
    (void)state;
    tnf_arena arena;
    tnf_allocator plain = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &plain, 1 << 20);
    const tnf_layout *layout = tnf_layout_unknown(&arena, "x.custom/1 and more", 10);
    assert_non_null(layout);
    assert_string_equal(tnf_layout_id(layout), "x.custom/1");
    tnf_part parts[] = { PART("anything", "u8", "abc"), PART("anything", "f32", "abc") };
    tnf_object o = tensor_of("dense", SHAPE(7), parts, 2);
    o.layout = layout;
    check_is(&o, NULL);
    assert_null(layout->check_data);
    tnf_arena_free(&arena);

    tnf_arena_init(&arena, &plain, 1);
    assert_null(tnf_layout_unknown(&arena, "x.custom/1", 10));
    tnf_arena_free(&arena);
}

static void check_elements(const uint64_t *shape, size_t rank, bool fits, uint64_t want)
{
    uint64_t n = 77;
    assert_int_equal(tnf_shape_elements(&n, shape, (uint32_t)rank), fits);
    assert_int_equal(n, fits ? want : 77);
}

static void products_of_shapes(void **state)
{
    (void)state;
    const uint64_t big = (uint64_t)1 << 32;
    check_elements(NULL, 0, true, 1);
    check_elements(SHAPE(7), true, 7);
    check_elements(SHAPE(2, 3, 5), true, 30);
    check_elements(SHAPE(0), true, 0);
    check_elements(SHAPE(UINT64_MAX), true, UINT64_MAX);
    check_elements(SHAPE(UINT64_MAX, 1, 1), true, UINT64_MAX);
    check_elements(SHAPE(big, big - 1), true, big * (big - 1));
    check_elements(SHAPE(big, big), false, 0);
    check_elements(SHAPE(UINT64_MAX, 2), false, 0);
    check_elements(SHAPE(big, big, 0), true, 0);
    check_elements(SHAPE(0, big, big), true, 0);
    check_elements(SHAPE(big, 0, big, big), true, 0);
    check_elements(SHAPE(big, big, 1), false, 0);
}

static void roles_of_parts(void **state)
{
    (void)state;
    static const uint8_t six[6];
    tnf_part parts[] = { PART("data", "u8", six), PART("data", "u8", six) };
    tnf_object o = tensor_of("dense", SHAPE(2, 3), parts, 1);
    check_is(&o, NULL);
    assert_ptr_equal(tnf_object_part(&o, "data"), &parts[0]);
    assert_null(tnf_object_part(&o, "dat"));
    o.nparts = 2;
    check_is(&o, "the part 'data' occurs 2 times");
    parts[1].role = "sca\nles";
    check_is(&o, "a dense tensor has no part 'sca\\nles'");
    o.nparts = 0;
    check_is(&o, "a dense tensor needs a part 'data'");
    assert_null(tnf_object_part(&o, "data"));
}

static void what_a_caller_forgot(void **state)
{
    (void)state;
    static const uint8_t six[6];
    tnf_part part = PART("data", "u8", six);
    tnf_object o = tensor_of("dense", SHAPE(6), &part, 1);
    tnf_error e;
    part.role = NULL;
    assert_int_equal(tnf_layout_check(&o, &e), TNF_EINVAL);
    part.role = "data";
    part.type = NULL;
    assert_int_equal(tnf_layout_check(&o, &e), TNF_EINVAL);
    part.type = tnf_type_of(TNF_U8);
    o.layout = NULL;
    assert_int_equal(tnf_layout_check(&o, &e), TNF_EINVAL);
}

static void dense_sizes(void **state)
{
    (void)state;
    tnf_part part = PART_OF("data", "f32", NULL, 24);
    tnf_object o = tensor_of("dense", SHAPE(2, 3), &part, 1);
    check_is(&o, NULL);
    o.order = TNF_ORDER_F;
    check_is(&o, NULL);
    part.nbytes = 23;
    check_is(&o, "the part 'data' has 23 bytes, but 6 elements of f32 take 24");
    part.type = tnf_type_named("f4_e2m1");
    part.nbytes = 3;
    check_is(&o, NULL);
    part.type = tnf_type_named("c128");
    part.nbytes = 96;
    check_is(&o, NULL);
    o.rank = 0;
    part.nbytes = 16;
    check_is(&o, NULL);
    o = tensor_of("dense", SHAPE((uint64_t)1 << 32, (uint64_t)1 << 32), &part, 1);
    check_is(&o, "more than 2^64 elements");
    o = tensor_of("dense", SHAPE((uint64_t)1 << 62), &part, 1);
    check_is(&o, "beyond 2^64 bytes");
    part.nbytes = 0;
    o = tensor_of("dense", SHAPE((uint64_t)1 << 32, (uint64_t)1 << 32, 0), &part, 1);
    check_is(&o, NULL);
}

/* A type of another program has no known size. */
static void dense_of_a_foreign_type(void **state)
{
    (void)state;
    static const tnf_type foreign = { "x.int3", TNF_U8, TNF_NUMBER_OPAQUE, 0 };
    static const uint8_t bytes[5] = { 255, 255, 255, 255, 255 };
    tnf_part part = PART("data", "u8", bytes);
    tnf_object o = tensor_of("dense", SHAPE(13), &part, 1);
    part.type = &foreign;
    data_is(&o, NULL, 0);
}

static void bools_are_checked(void **state)
{
    (void)state;
    static uint8_t bytes[40000];
    tnf_part part = PART("data", "bool", bytes);
    tnf_object o = tensor_of("dense", SHAPE(40000), &part, 1);
    bytes[39998] = 1;
    data_is(&o, NULL, 0);
    bytes[39999] = 2;
    data_is(&o, "element 39999 of 'data' is 2, which is not a bool", 1000 + 39999);
    part.payload = TNF_ENCODED;
    data_is(&o, "element 39999", TNF_NO_OFFSET);
    part.type = tnf_type_named("u8");
    data_is(&o, NULL, 0);
    part.type = tnf_type_named("bool");
    assert_int_equal(o.layout->check_data(&o, read_nothing, NULL), TNF_EIO);
    part.nbytes = 39999; /* if the file is opened leniently, even the size may be wrong */
    assert_int_equal(o.layout->check_data(&o, read_memory, NULL), TNF_EFORMAT);
}

static void spare_bits(void **state)
{
    (void)state;
    static uint8_t bytes[3] = { 0xff, 0xff, 0x0f };
    tnf_part part = PART("data", "f4_e2m1", bytes);
    tnf_object o = tensor_of("dense", SHAPE(5), &part, 1);
    data_is(&o, NULL, 0);
    bytes[2] = 0x1f;
    data_is(&o, "bits are set after the last element of 'data'", 1002);
    o.shape = (const uint64_t[]) { 6 };
    data_is(&o, NULL, 0);
    part.type = tnf_type_named("f6_e2m3");
    o.shape = (const uint64_t[]) { 3 };
    bytes[2] = 0x03;
    data_is(&o, NULL, 0);
    bytes[2] = 0x04;
    data_is(&o, "bits are set", 1002);
    part.type = tnf_type_named("bit");
    o.shape = (const uint64_t[]) { 17 };
    data_is(&o, NULL, 0);
}

/* --------------------------------------------------------------- strings */

static void strings_shape_and_types(void **state)
{
    (void)state;
    static const uint64_t offsets[4] = { 0, 3, 3, 8 };
    tnf_part parts[] = { PART("offsets", "u64", offsets), PART_OF("bytes", "u8", "onethree", 8) };
    tnf_object o = tensor_of("strings/1", SHAPE(3), parts, 2);
    data_is(&o, NULL, 0);
    o.shape = (const uint64_t[]) { 2 };
    check_is(&o, "the part 'offsets' has 32 bytes, but 3 elements of u64 take 24");
    o = tensor_of("strings/1", SHAPE(1, 3), parts, 2);
    data_is(&o, NULL, 0);
    o.order = TNF_ORDER_F;
    check_is(&o, "a strings/1 tensor cannot be stored column by column (order F)");
    o.order = TNF_ORDER_C;
    o.nparts = 1;
    check_is(&o, "a strings/1 tensor needs a part 'bytes'");
    o.nparts = 2;
    parts[0].type = tnf_type_of(TNF_I64);
    check_is(&o, "the part 'offsets' is i64, but must be u64");
    parts[0].type = tnf_type_of(TNF_U64);
    parts[1].type = tnf_type_of(TNF_I8);
    check_is(&o, "the part 'bytes' is i8, but must be u8");
    parts[1].type = tnf_type_of(TNF_U8);
    o = tensor_of("strings/1", SHAPE(UINT64_MAX), parts, 2);
    check_is(&o, "too many strings");
    o = tensor_of("strings/1", SHAPE(UINT64_MAX / 8), parts, 2);
    check_is(&o, "beyond 2^64 bytes");
}

static void string_offsets(void **state)
{
    (void)state;
    uint64_t offsets[4] = { 0, 3, 3, 8 };
    tnf_part parts[] = { PART("offsets", "u64", offsets), PART_OF("bytes", "u8", "onethree", 8) };
    tnf_object o = tensor_of("strings/1", SHAPE(3), parts, 2);
    offsets[0] = 1;
    data_is(&o, "the first string begins at 1, not 0", 1000);
    offsets[0] = 0;
    offsets[2] = 2;
    data_is(&o, "offset 2 is 2, below the 3 before it", 1016);
    offsets[2] = 9;
    data_is(&o, "offset 3 is 8, below the 9 before it", 1024);
    offsets[2] = 3;
    offsets[3] = 7;
    data_is(&o, "the strings end at 7, but there are 8 bytes", 1024);
    offsets[3] = 9;
    data_is(&o, "the strings end at 9", 1024);
    offsets[3] = UINT64_MAX;
    data_is(&o, "the strings end at 18446744073709551615", 1024);
    assert_int_equal(o.layout->check_data(&o, read_nothing, NULL), TNF_EIO);
}

static void no_strings_at_all(void **state)
{
    (void)state;
    uint64_t offsets[1] = { 0 };
    tnf_part parts[] = { PART_OF("bytes", "u8", NULL, 0), PART("offsets", "u64", offsets) };
    tnf_object o = tensor_of("strings/1", SHAPE(0), parts, 2);
    data_is(&o, NULL, 0);
    offsets[0] = 1;
    data_is(&o, "begins at 1", 1000);
    parts[1].nbytes = 0;
    check_is(&o, "has 0 bytes, but 1 elements");
}

/* More than a block of offsets. */
static void many_strings(void **state)
{
    (void)state;
    static uint64_t offsets[5001];
    static uint8_t bytes[10000];
    for (unsigned i = 0; i <= 5000; i++)
        offsets[i] = 2 * i;
    tnf_part parts[] = { PART("offsets", "u64", offsets), PART("bytes", "u8", bytes) };
    tnf_object o = tensor_of("strings/1", SHAPE(5000), parts, 2);
    data_is(&o, NULL, 0);
    offsets[2048] = 0; /* the first of the second block */
    data_is(&o, "offset 2048 is 0, below the 4094", 1000 + 8 * 2048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table),
        cmocka_unit_test(unknown_layouts_are_kept),
        cmocka_unit_test(products_of_shapes),
        cmocka_unit_test(roles_of_parts),
        cmocka_unit_test(what_a_caller_forgot),
        cmocka_unit_test(dense_sizes),
        cmocka_unit_test(dense_of_a_foreign_type),
        cmocka_unit_test(bools_are_checked),
        cmocka_unit_test(spare_bits),
        cmocka_unit_test(strings_shape_and_types),
        cmocka_unit_test(string_offsets),
        cmocka_unit_test(no_strings_at_all),
        cmocka_unit_test(many_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
