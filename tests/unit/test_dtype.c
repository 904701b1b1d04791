/* SPDX-License-Identifier: MIT */
/* The table of element types: names, sizes, and decoding of each type. */
#include "../support/flush.h"
#include "model/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "half_vectors.h"

/* The order in which the command lists them. */
static const struct {
    const char *id;
    tnf_dtype storage;
    tnf_number number;
    uint32_t bits;
} all[] = {
    { "f64", TNF_F64, TNF_NUMBER_FLOAT, 64 },
    { "f32", TNF_F32, TNF_NUMBER_FLOAT, 32 },
    { "f16", TNF_F16, TNF_NUMBER_FLOAT, 16 },
    { "bf16", TNF_BF16, TNF_NUMBER_FLOAT, 16 },
    { "i64", TNF_I64, TNF_NUMBER_INT, 64 },
    { "i32", TNF_I32, TNF_NUMBER_INT, 32 },
    { "i16", TNF_I16, TNF_NUMBER_INT, 16 },
    { "i8", TNF_I8, TNF_NUMBER_INT, 8 },
    { "u64", TNF_U64, TNF_NUMBER_UINT, 64 },
    { "u32", TNF_U32, TNF_NUMBER_UINT, 32 },
    { "u16", TNF_U16, TNF_NUMBER_UINT, 16 },
    { "u8", TNF_U8, TNF_NUMBER_UINT, 8 },
    { "bool", TNF_U8, TNF_NUMBER_BOOL, 8 },
    { "bit", TNF_U8, TNF_NUMBER_UINT, 1 },
    { "f8_e4m3fn", TNF_U8, TNF_NUMBER_FLOAT, 8 },
    { "f8_e5m2", TNF_U8, TNF_NUMBER_FLOAT, 8 },
    { "f8_e4m3fnuz", TNF_U8, TNF_NUMBER_FLOAT, 8 },
    { "f8_e5m2fnuz", TNF_U8, TNF_NUMBER_FLOAT, 8 },
    { "f8_e8m0", TNF_U8, TNF_NUMBER_FLOAT, 8 },
    { "f6_e2m3", TNF_U8, TNF_NUMBER_FLOAT, 6 },
    { "f6_e3m2", TNF_U8, TNF_NUMBER_FLOAT, 6 },
    { "f4_e2m1", TNF_U8, TNF_NUMBER_FLOAT, 4 },
    { "i4", TNF_U8, TNF_NUMBER_INT, 4 },
    { "u4", TNF_U8, TNF_NUMBER_UINT, 4 },
    { "i2", TNF_U8, TNF_NUMBER_INT, 2 },
    { "u2", TNF_U8, TNF_NUMBER_UINT, 2 },
    { "i128", TNF_U64, TNF_NUMBER_INT, 128 },
    { "u128", TNF_U64, TNF_NUMBER_UINT, 128 },
    { "c64", TNF_F32, TNF_NUMBER_COMPLEX, 64 },
    { "c128", TNF_F64, TNF_NUMBER_COMPLEX, 128 },
};
enum { ALL = sizeof all / sizeof all[0] };

static void the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        const tnf_type *type = tnf_type_named(all[i].id);
        assert_non_null(type);
        assert_string_equal(type->id, all[i].id);
        assert_int_equal(type->storage, all[i].storage);
        assert_int_equal(type->number, all[i].number);
        assert_int_equal(type->bits, all[i].bits);
        assert_ptr_equal(tnf_type_at(i), type);
        assert_ptr_equal(tnf_type_find(all[i].id, strlen(all[i].id)), type);
        if (i < TNF_DTYPE_COUNT)
            assert_ptr_equal(tnf_type_of((tnf_dtype)i), type);
    }
    assert_null(tnf_type_at(ALL));
    assert_null(tnf_type_at(SIZE_MAX));
}

static void unknown_names(void **state)
{
    (void)state;
    assert_null(tnf_type_named("f33"));
    assert_null(tnf_type_named(""));
    assert_null(tnf_type_named("F32"));
    assert_null(tnf_type_named("f32 "));
    assert_null(tnf_type_find("f32x", 2));
    assert_non_null(tnf_type_find("f32x", 3));
    assert_null(tnf_type_find("f32\0", 4));
    assert_null(tnf_type_of(TNF_DTYPE_COUNT));
    assert_null(tnf_type_of((tnf_dtype)-1));
}

static void storage_widths(void **state)
{
    (void)state;
    static const size_t widths[] = { 8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1 };
    for (int i = 0; i < TNF_DTYPE_COUNT; i++)
        assert_int_equal(tnf_dtype_size((tnf_dtype)i), widths[i]);
    assert_int_equal(tnf_dtype_size(TNF_DTYPE_COUNT), 0);
    assert_int_equal(tnf_type_align(tnf_type_named("c128")), 8);
    assert_int_equal(tnf_type_align(tnf_type_named("c64")), 4);
    assert_int_equal(tnf_type_align(tnf_type_named("f4_e2m1")), 1);
    assert_int_equal(tnf_type_align(tnf_type_named("bf16")), 2);
    assert_int_equal(tnf_type_align(tnf_type_named("i128")), 8);
}

/* Numbers of the other byte order: complex ones are reversed half by half. */
static void reversed_widths(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        size_t swap;
    } wide[] = { { "i128", 16 }, { "u128", 16 }, { "c128", 8 }, { "c64", 4 },
                 { "u64", 8 },   { "bf16", 2 },  { "bool", 1 }, { "f4_e2m1", 1 } };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        tnf_part part = { .type = tnf_type_named(wide[i].id) };
        assert_int_equal(tnf_type_swap(part.type), wide[i].swap);
        assert_int_equal(tnf_part_swap(&part), wide[i].swap);
    }
    tnf_part pairs = { .type = tnf_type_of(TNF_U64), .flags = TNF_PART_PAIRS };
    assert_int_equal(tnf_part_swap(&pairs), 16);
}

static void check_bytes(const char *id, uint64_t n, uint64_t expect)
{
    uint64_t bytes = 77;
    assert_true(tnf_type_bytes(&bytes, tnf_type_named(id), n));
    assert_int_equal(bytes, expect);
}

static void sizes_in_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ALL; i++)
        for (uint64_t n = 0; n < 70; n++)
            check_bytes(all[i].id, n, (n * all[i].bits + 7) / 8);
    check_bytes("u8", UINT64_MAX, UINT64_MAX);
    check_bytes("bit", UINT64_MAX, (uint64_t)1 << 61);
    check_bytes("f4_e2m1", UINT64_MAX, (uint64_t)1 << 63);
    check_bytes("f6_e2m3", UINT64_MAX, 0xc000000000000000u);
    check_bytes("c128", ((uint64_t)1 << 60) - 1, UINT64_MAX - 15);
}

static void sizes_that_do_not_fit(void **state)
{
    (void)state;
    uint64_t bytes = 77;
    static const tnf_type foreign = { "x.int3", TNF_U8, TNF_NUMBER_OPAQUE, 0 };
    assert_false(tnf_type_bytes(&bytes, tnf_type_of(TNF_F32), (uint64_t)1 << 62));
    assert_false(tnf_type_bytes(&bytes, tnf_type_of(TNF_F64), UINT64_MAX));
    assert_false(tnf_type_bytes(&bytes, tnf_type_of(TNF_U16), (uint64_t)1 << 63));
    assert_false(tnf_type_bytes(&bytes, tnf_type_named("c128"), (uint64_t)1 << 60));
    assert_false(tnf_type_bytes(&bytes, &foreign, 1));
    assert_false(tnf_type_bytes(&bytes, &foreign, 0));
    assert_int_equal(bytes, 77);
}

static void lists_of_names(void **state)
{
    (void)state;
    assert_true(tnf_list_has(NULL, "f32"));
    assert_true(tnf_list_has("f32", "f32"));
    assert_true(tnf_list_has("f64 f32 bool", "f32"));
    assert_true(tnf_list_has(" f64  bool ", "bool"));
    assert_false(tnf_list_has("f64 bf16", "f16"));
    assert_false(tnf_list_has("f64 bf16", "bf1"));
    assert_false(tnf_list_has("f64 bf16", "bf161"));
    assert_false(tnf_list_has("", "f16"));
    assert_false(tnf_list_has(" a  b ", ""));
}

/* Decodes from memory that ends with the last byte and begins at an odd address. */
static void decode_at_odd_place(const char *id, const void *packed, size_t nbytes, size_t first,
                                size_t n, double *out)
{
    uint8_t *copy = malloc(nbytes + 1);
    assert_non_null(copy);
    memcpy(copy + 1, packed, nbytes);
    assert_true(tnf_type_decode(out, tnf_type_named(id), copy + 1, first, n));
    free(copy);
}

static void check_decode(const char *id, const char *packed, size_t nbytes, size_t n,
                         const double *expect)
{
    double out[8];
    decode_at_odd_place(id, packed, nbytes, 0, n, out);
    for (size_t i = 0; i < n; i++)
        assert_true(out[i] == expect[i]);
    for (size_t i = 0; i < n; i++) { /* element by element */
        decode_at_odd_place(id, packed, nbytes, i, 1, out);
        assert_true(out[0] == expect[i]);
    }
}

/* Bytes from Python's struct.pack("<..."). */
static void whole_byte_types(void **state)
{
    (void)state;
    check_decode("f64", "\x9a\x99\x99\x99\x99\x99\xb9\x3f\0\0\0\0\0\0\0\xc0", 16, 2,
                 (double[]) { 0.1, -2 });
    check_decode("f32", "\0\0\xc0\x3f\xcd\xcc\xcc\x3d", 8, 2, (double[]) { 1.5, 0.1f });
    check_decode("f16", "\0\x3e\xff\x7b", 4, 2, (double[]) { 1.5, 65504 });
    check_decode("bf16", "\xc0\x3f\x80\xbf", 4, 2, (double[]) { 1.5, -1 });
    check_decode("i64", "\xfe\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\x80", 16, 2,
                 (double[]) { -2, -0x1p63 });
    check_decode("i32", "\xfe\xff\xff\xff\xff\xff\xff\x7f", 8, 2, (double[]) { -2, 2147483647 });
    check_decode("i16", "\xfe\xff\x00\x80", 4, 2, (double[]) { -2, -32768 });
    check_decode("i8", "\xfe\x7f", 2, 2, (double[]) { -2, 127 });
    check_decode("u64", "\x01\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\x80", 16, 2,
                 (double[]) { 0x1p53, 0x1p63 }); /* 2^53 + 1 is not a double */
    check_decode("u32", "\xfe\xff\xff\xff", 4, 1, (double[]) { 4294967294.0 });
    check_decode("u16", "\xfe\xff", 2, 1, (double[]) { 65534 });
    check_decode("u8", "\xfe\x00", 2, 2, (double[]) { 254, 0 });
    check_decode("bool", "\x00\x01\x02", 3, 3, (double[]) { 0, 1, 1 });
}

static void complex_gives_two(void **state)
{
    (void)state;
    static const char c64[] = "\0\0\x80\x3f\0\0\0\x40\0\0\x40\xc0\0\0\0\x3f";
    static const char c128[] = "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0";
    double out[4];
    decode_at_odd_place("c64", c64, 16, 0, 2, out);
    assert_true(out[0] == 1 && out[1] == 2 && out[2] == -3 && out[3] == 0.5);
    decode_at_odd_place("c64", c64, 16, 1, 1, out);
    assert_true(out[0] == -3 && out[1] == 0.5);
    decode_at_odd_place("c128", c128, 16, 0, 1, out);
    assert_true(out[0] == 1 && out[1] == -2);
}

static void check_pattern(const char *id, const uint32_t *expect, unsigned count)
{
    uint8_t bytes[256] = { 0 };
    double out[256];
    for (unsigned i = 0; i < count; i++)
        bytes[i] = (uint8_t)i;
    decode_at_odd_place(id, bytes, count, 0, count, out);
    for (unsigned i = 0; i < count; i++) {
        float f;
        memcpy(&f, &expect[i], sizeof f);
        assert_true(isnan(f) ? isnan(out[i]) : out[i] == f && !signbit(out[i]) == !signbit(f));
    }
}

static void eight_bit_floats(void **state)
{
    (void)state;
    check_pattern("f8_e4m3fn", expect_f8_e4m3fn, 256);
    check_pattern("f8_e5m2", expect_f8_e5m2, 256);
    check_pattern("f8_e4m3fnuz", expect_f8_e4m3fnuz, 256);
    check_pattern("f8_e5m2fnuz", expect_f8_e5m2fnuz, 256);
    check_pattern("f8_e8m0", expect_f8_e8m0, 256);
}

/* The ten bits 1011001011 are the bytes 4d 03 in the VS sheet; f4 takes the low nibble first in the
 * zTensor sheet; f6 does the same. */
static void packed_types(void **state)
{
    (void)state;
    double out[10];
    decode_at_odd_place("bit", "\x4d\x03", 2, 0, 10, out);
    for (int i = 0; i < 10; i++)
        assert_true(out[i] == "1011001011"[i] - '0');
    decode_at_odd_place("bit", "\x4d", 1, 6, 2, out);
    assert_true(out[0] == 1 && out[1] == 0);
    check_decode("f4_e2m1", "\x21\x0f", 2, 3, (double[]) { 0.5, 1, -6 });
    /* 001101 101001 000110 110010, valued by ml_dtypes */
    check_decode("f6_e2m3", "\x4d\x6a\xc8", 3, 4, (double[]) { 1.625, -1.125, 0.75, -2.5 });
    check_decode("f6_e3m2", "\x4d\x6a\xc8", 3, 4, (double[]) { 1.25, -0.625, 0.375, -3 });
}

/* A part of the elements gives the same as all, and reads only its own bytes. */
static void windows_of_packed_types(void **state)
{
    (void)state;
    static const char *const ids[] = { "bit", "f4_e2m1", "f6_e2m3", "f6_e3m2" };
    uint8_t bytes[30];
    double whole[40], part[40];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + 7);
    for (size_t t = 0; t < sizeof ids / sizeof ids[0]; t++) {
        const tnf_type *type = tnf_type_named(ids[t]);
        assert_true(tnf_type_decode(whole, type, bytes, 0, 40));
        for (size_t first = 0; first < 40; first++)
            for (size_t n = 0; first + n <= 40; n++) {
                uint64_t need;
                assert_true(tnf_type_bytes(&need, type, first + n));
                decode_at_odd_place(ids[t], bytes, need, first, n, part);
                assert_memory_equal(part, whole + first, n * sizeof part[0]);
            }
    }
}

static void bytes_before_the_window_are_not_touched(void **state)
{
    (void)state;
    double out;
    uint8_t *last = malloc(1);
    assert_non_null(last);
    *last = 0x80;
    /* Only the byte of the element exists; the ones before it must not be read. */
    for (size_t k = 1; k < 4; k++) {
        const uint8_t *start = (const uint8_t *)((uintptr_t)last - k);
        assert_true(tnf_type_decode(&out, tnf_type_named("bit"), start, 8 * k + 7, 1));
        assert_true(out == 1);
        assert_true(tnf_type_decode(&out, tnf_type_named("f4_e2m1"), start, 2 * k + 1, 1));
        assert_true(out == 0 && signbit(out));
    }
    free(last);
}

static void opaque_types(void **state)
{
    (void)state;
    static const tnf_type foreign = { "x.int3", TNF_U8, TNF_NUMBER_OPAQUE, 0 };
    double out = 5;
    assert_false(tnf_type_decode(&out, &foreign, "abc", 0, 1));
    assert_true(out == 5);
    assert_true(tnf_type_decode(NULL, tnf_type_of(TNF_F32), NULL, 0, 0));
}

/* Names that numpy, torch and safetensors print, and that people type. */
static void other_spellings(void **state)
{
    (void)state;
    static const char *const same[][2] = {
        { "float64", "f64" },
        { "double", "f64" },
        { "float32", "f32" },
        { "float", "f32" },
        { "torch.float32", "f32" },
        { "F32", "f32" },
        { "Half", "f16" },
        { "float16", "f16" },
        { "bfloat16", "bf16" },
        { "torch.bfloat16", "bf16" },
        { "BF16", "bf16" },
        { "long", "i64" },
        { "int", "i32" },
        { "torch.short", "i16" },
        { "int8", "i8" },
        { "uint64", "u64" },
        { "int128", "i128" },
        { "UINT128", "u128" },
        { "byte", "u8" },
        { "bool_", "bool" },
        { "F8_E4M3", "f8_e4m3fn" },
        { "torch.float8_e4m3fn", "f8_e4m3fn" },
        { "F8_E5M2", "f8_e5m2" },
        { "float8_e5m2fnuz", "f8_e5m2fnuz" },
        { "F8_E8M0", "f8_e8m0" },
        { "float8_e8m0fnu", "f8_e8m0" },
        { "complex64", "c64" },
        { "cdouble", "c128" },
        { "float4_e2m1fn", "f4_e2m1" },
    };
    static const char *const none[] = {
        "",       " ", "float8_e4m3", "torch.", "torch.torch.f32", "f32 ", "double fp64", "flo",
        "floats", "f", "torch",       "int7",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_ptr_equal(tnf_type_spelled(all[i].id), tnf_type_named(all[i].id));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (!tnf_type_spelled(same[i][0]) ||
            tnf_type_spelled(same[i][0]) != tnf_type_named(same[i][1]))
            fail_msg("%s is not %s", same[i][0], same[i][1]);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (tnf_type_spelled(none[i]))
            fail_msg("'%s' is %s", none[i], tnf_type_spelled(none[i])->id);
}

/* A program that was compiled with -ffast-math treats them as 0, but the library does not. */
static void subnormal_numbers(void **state)
{
    static const uint8_t f32[] = { 1, 0, 0, 0, 0, 0, 0x40, 0 }, bf16[] = { 0x40, 0 };
    double out[3];
    (void)state;
    uint32_t mode = flush_begin();
    bool done = tnf_type_decode(out, tnf_type_of(TNF_F32), f32, 0, 2) &&
                tnf_type_decode(out + 2, tnf_type_of(TNF_BF16), bf16, 0, 1);
    assert_true(flush_end(mode));
    assert_true(done);
    assert_true(out[0] == 0x1p-149);
    assert_true(out[1] == 0x1p-127);
    assert_true(out[2] == 0x1p-127);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table),
        cmocka_unit_test(unknown_names),
        cmocka_unit_test(storage_widths),
        cmocka_unit_test(reversed_widths),
        cmocka_unit_test(sizes_in_bytes),
        cmocka_unit_test(sizes_that_do_not_fit),
        cmocka_unit_test(lists_of_names),
        cmocka_unit_test(whole_byte_types),
        cmocka_unit_test(complex_gives_two),
        cmocka_unit_test(eight_bit_floats),
        cmocka_unit_test(packed_types),
        cmocka_unit_test(windows_of_packed_types),
        cmocka_unit_test(bytes_before_the_window_are_not_touched),
        cmocka_unit_test(opaque_types),
        cmocka_unit_test(other_spellings),
        cmocka_unit_test(subnormal_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
