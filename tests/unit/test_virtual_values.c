/* SPDX-License-Identifier: MIT */
/* The numbers that quantized tensors represent, compared with the formulas of their layouts. */
#include "virtual_objects.h"

/* ----------------------------------------------------------------- values */

static void groups_become_numbers(void **state)
{
    (void)state;
    /* 4 bits, eight in a u32, groups of 4 along the last of [2,8] */
    static const uint8_t codes[] = { 0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe };
    uint8_t scales[16], zeros[4] = { 1, 2, 3, 4 };
    static const float s[] = { 0.5F, 2, -1, 0.25F };
    float expected[16];
    for (size_t i = 0; i < 4; i++) {
        uint32_t bits;
        memcpy(&bits, &s[i], 4);
        tnf_put_le32(scales + 4 * i, bits);
    }
    for (size_t i = 0; i < 16; i++)
        expected[i] = ((float)i - (float)zeros[i / 4]) * s[i / 4];
    tnf_part parts[] = {
        { .role = "data",
          .type = tnf_type_named("u32"),
          .memory = codes,
          .nbytes = 8,
          .stored = 8,
          .payload = TNF_MEMORY },
        { .role = "scales",
          .type = tnf_type_named("f32"),
          .memory = scales,
          .nbytes = 16,
          .stored = 16,
          .payload = TNF_MEMORY },
        { .role = "zeros",
          .type = tnf_type_named("u8"),
          .memory = zeros,
          .nbytes = 4,
          .stored = 4,
          .payload = TNF_MEMORY },
    };
    tnf_object o = tensor_of("quant_group/1", SHAPE(2, 8), parts, 3);
    tnf_value packing = ATTRS(TEXT("word", "u32"), TEXT("order", "lsb_first"), UINT("per_word", 8));
    tnf_value zero = ATTRS(TEXT("form", "tensor"), TEXT("packing", "plain"));
    tnf_value attrs = ATTRS(UINT("bits", 4), UINT("group_size", 4), UINT("axis", 1),
                            TEXT("scale_form", "f32_factors"), INSIDE("packing", packing),
                            INSIDE("zero_point", zero), UINT("mine", 7));
    o.attrs = &attrs;
    tnf_virtual *v = make_virtual(&o, NULL);
    floats_are(tnf_virtual_object(v), expected, 16);
    assert_int_equal(tnf_virtual_object(v)->attrs->n, 1); /* not of the layout */
    assert_string_equal(tnf_virtual_object(v)->attrs->as.members[0].key.p, "mine");
    tnf_virtual_free(v);
}

/* The most significant bits first, an implied zero, groups along the first axis. */
static void crossing_groups_become_numbers(void **state)
{
    (void)state;
    tnf_value msb = ATTRS(TEXT("word", "u8"), TEXT("order", "msb_first"), UINT("per_word", 2));
    tnf_value implied = ATTRS(TEXT("form", "implied"), UINT("value", 8));
    tnf_value across = ATTRS(UINT("bits", 4), UINT("group_size", 2), UINT("axis", 0),
                             TEXT("scale_form", "f32_factors"), INSIDE("packing", msb),
                             INSIDE("zero_point", implied));
    static const uint8_t bytes[] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef };
    uint8_t eight[32];
    float by_column[8], turned[16];
    for (size_t i = 0; i < 8; i++) {
        by_column[i] = (float)i + 0.5F;
        uint32_t bits;
        memcpy(&bits, &by_column[i], 4);
        tnf_put_le32(eight + 4 * i, bits);
    }
    for (size_t i = 0; i < 16; i++)
        turned[i] = ((float)i - 8) * by_column[i % 8];
    tnf_part others[] = {
        { .role = "data",
          .type = tnf_type_named("u8"),
          .memory = bytes,
          .nbytes = 8,
          .stored = 8,
          .payload = TNF_MEMORY },
        { .role = "scales",
          .type = tnf_type_named("f32"),
          .memory = eight,
          .nbytes = 32,
          .stored = 32,
          .payload = TNF_MEMORY },
    };
    tnf_object o = tensor_of("quant_group/1", SHAPE(2, 8), others, 2);
    o.attrs = &across;
    tnf_virtual *v = make_virtual(&o, NULL);
    floats_are(tnf_virtual_object(v), turned, 16);
    assert_null(tnf_virtual_object(v)->attrs);
    tnf_virtual_free(v);
}

static void blocks_become_numbers(void **state)
{
    (void)state;
    /* f4_e2m1: 0 .5 1 1.5 2 3 4 6 and the same below zero */
    static const uint8_t codes[] = { 0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe };
    static const uint8_t scales[] = { 127, 129, 126, 120 };
    static const float numbers[] = { 0, .5F, 1, 1.5F, 2, 3, 4, 6 };
    static const float factors[] = { 1, 4, .5F, 1 / 128.0F };
    float expected[16];
    for (size_t i = 0; i < 16; i++)
        expected[i] = (i < 8 ? 1 : -1) * numbers[i % 8] * factors[i / 4];
    tnf_part parts[] = {
        { .role = "data",
          .type = tnf_type_named("f4_e2m1"),
          .memory = codes,
          .nbytes = 8,
          .stored = 8,
          .payload = TNF_MEMORY },
        { .role = "scales",
          .type = tnf_type_named("f8_e8m0"),
          .memory = scales,
          .nbytes = 4,
          .stored = 4,
          .payload = TNF_MEMORY },
    };
    tnf_object o = tensor_of("mx/1", SHAPE(2, 8), parts, 2);
    tnf_value attrs = ATTRS(UINT("block_size", 4), TEXT("scale_form", "e8m0_exponent"));
    o.attrs = &attrs;
    tnf_virtual *v = make_virtual(&o, NULL);
    floats_are(tnf_virtual_object(v), expected, 16);
    tnf_virtual_free(v);
    /* MXINT8: sixty-fourths */
    static const int8_t ints[] = { 64, -128, 1, 0, 3, -64, 127, 32 };
    static const uint8_t two[] = { 127, 128 };
    static const float small[] = { 1, -2, 1 / 64.0F, 0, 6 / 64.0F, -2, 254 / 64.0F, 1 };
    parts[0] = (tnf_part) { .role = "data",
                            .type = tnf_type_named("i8"),
                            .memory = ints,
                            .nbytes = 8,
                            .stored = 8,
                            .payload = TNF_MEMORY };
    parts[1] = (tnf_part) { .role = "scales",
                            .type = tnf_type_named("f8_e8m0"),
                            .memory = two,
                            .nbytes = 2,
                            .stored = 2,
                            .payload = TNF_MEMORY };
    o = tensor_of("mx/1", SHAPE(8), parts, 2);
    o.attrs = &attrs;
    v = make_virtual(&o, NULL);
    floats_are(tnf_virtual_object(v), small, 8);
    tnf_virtual_free(v);
}

static void put_floats(uint8_t *dst, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], 4);
        tnf_put_le32(dst + 4 * i, bits);
    }
}

static void codes_become_rows(void **state)
{
    (void)state;
    /* 3 rows of 4 in 2 pieces, 2 centroids each; the projection swaps the first two */
    static const uint8_t codes[] = { 0, 1, 1, 0, 1, 1 };
    static const float books[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, norms[] = { 1, 2, .5F };
    static const float turn[] = { 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 };
    static const float expected[] = { 2, 1, 7, 8, 8, 6, 10, 12, 2, 1.5F, 3.5F, 4 };
    uint8_t b[32], n[12], t[64];
    put_floats(b, books, 8);
    put_floats(n, norms, 3);
    put_floats(t, turn, 16);
    tnf_part parts[] = {
        { .role = "codes",
          .type = tnf_type_named("u8"),
          .memory = codes,
          .nbytes = 6,
          .stored = 6,
          .payload = TNF_MEMORY },
        { .role = "codebooks",
          .type = tnf_type_named("f32"),
          .memory = b,
          .nbytes = 32,
          .stored = 32,
          .payload = TNF_MEMORY },
        { .role = "projection",
          .type = tnf_type_named("f32"),
          .memory = t,
          .nbytes = 64,
          .stored = 64,
          .payload = TNF_MEMORY },
        { .role = "norms",
          .type = tnf_type_named("f32"),
          .memory = n,
          .nbytes = 12,
          .stored = 12,
          .payload = TNF_MEMORY },
    };
    tnf_object o = tensor_of("pq/1", SHAPE(3, 4), parts, 4);
    tnf_virtual *v = make_virtual(&o, NULL);
    floats_are(tnf_virtual_object(v), expected, 12);
    tnf_virtual_free(v);
    static const uint8_t wrong[] = { 0, 1, 1, 2, 1, 1 };
    parts[0].memory = wrong;
    v = make_virtual(&o, NULL);
    float row[4];
    assert_ok(tnf_read_part(row, 16, tnf_virtual_object(v)->parts, 0, &e));
    assert_fails(tnf_read_part(row, 16, tnf_virtual_object(v)->parts, 16, &e), TNF_EFORMAT);
    assert_says("row 1 has the code 2");
    tnf_virtual_free(v);
}

static void scales_multiply(void **state)
{
    (void)state;
    /* f8_e4m3fn: 0x38 is 1, 0x40 is 2 */
    uint8_t weights[130 * 3], bytes[16];
    static const float scales[] = { .5F, 3 };
    float expected[130 * 3];
    for (size_t i = 0; i < 390; i++) {
        weights[i] = i % 2 ? 0x38 : 0x40;
        expected[i] = (i % 2 ? 1 : 2) * scales[i / 3 / 128];
    }
    put_floats(bytes, scales, 2);
    tnf_part parts[2];
    tnf_object objects[2] = {
        dense_object(&parts[0], "f8_e4m3fn", weights, 390, SHAPE(130, 3), TNF_ORDER_C),
        dense_object(&parts[1], "f32", bytes, 8, SHAPE(2, 1), TNF_ORDER_C),
    };
    const tnf_object *sources[] = { &objects[0], &objects[1] };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    tnf_virtual *v;
    how.kind = TNF_VIRTUAL_SCALED;
    assert_ok(tnf_virtual_new(&v, sources, 2, &how, &e));
    floats_are(tnf_virtual_object(v), expected, 390);
    tnf_virtual_free(v);
    static const uint64_t block[] = { 65, 3 };
    how.block = block;
    for (size_t i = 0; i < 390; i++)
        expected[i] = (i % 2 ? 1 : 2) * scales[i / 3 / 65];
    assert_ok(tnf_virtual_new(&v, sources, 2, &how, &e));
    floats_are(tnf_virtual_object(v), expected, 390);
    tnf_virtual_free(v);
    static const uint64_t wrong[] = { 64, 3 };
    how.block = wrong;
    assert_fails(tnf_virtual_new(&v, sources, 2, &how, &e), TNF_EINVAL);
    objects[1].rank = 0; /* a single scale for all */
    parts[1].nbytes = 4;
    how.block = NULL;
    assert_ok(tnf_virtual_new(&v, sources, 2, &how, &e));
    for (size_t i = 0; i < 390; i++)
        expected[i] = (i % 2 ? 1 : 2) * scales[0];
    floats_are(tnf_virtual_object(v), expected, 390);
    tnf_virtual_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_become_numbers), cmocka_unit_test(crossing_groups_become_numbers),
        cmocka_unit_test(blocks_become_numbers), cmocka_unit_test(codes_become_rows),
        cmocka_unit_test(scales_multiply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
