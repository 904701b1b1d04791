/* SPDX-License-Identifier: MIT */
/* Floats of three widths, against the compiler's own conversions, the vectors of the zTensor fact
 * sheet (section 3.4) and base/half.h. */
#include "../support/unit.h"

#include "base/half.h"
#include "wire/cbor_head.h"
#include <math.h>

static uint64_t bits_of(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static void all_halves_widen_and_come_back(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        uint64_t bits = tnf_cbor_widen(half, 5, 10), back;
        float f = tnf_f16_to_f32((uint16_t)half);
        if (isnan(f))
            assert_true(tnf_cbor_is_nan(bits));
        else
            assert_true(bits == bits_of((double)f));
        assert_int_equal(tnf_cbor_shortest_float(bits, &back), 2);
        assert_int_equal(back, half);
    }
}

/* Every single whose upper half has any value, with a few lower halves. */
static void singles_widen_and_come_back(void **state)
{
    static const uint32_t low[] = { 0, 1, 0x1fff, 0x2000, 0x6000, 0x8000, 0xe000, 0xffff };
    (void)state;
    for (uint32_t i = 0; i < 65536 * 8; i++) {
        uint32_t single = i / 8 << 16 | low[i % 8];
        uint64_t bits = tnf_cbor_widen(single, 8, 23), back;
        float f;
        memcpy(&f, &single, sizeof f);
        if (isnan(f))
            assert_true(tnf_cbor_is_nan(bits));
        else
            assert_true(bits == bits_of((double)f));
        unsigned width = tnf_cbor_shortest_float(bits, &back);
        if (width == 4)
            assert_int_equal(back, single);
        else
            assert_true(width == 2 && tnf_cbor_widen(back, 5, 10) == bits);
    }
}

static void shortest_as_the_sheet_says(void **state)
{
    static const struct {
        double value;
        unsigned width;
        uint64_t bits;
    } cases[] = {
        { 0.0, 2, 0 },
        { -0.0, 2, 0x8000 },
        { INFINITY, 2, 0x7c00 },
        { -INFINITY, 2, 0xfc00 },
        { 1.5, 2, 0x3e00 },
        { 5.960464477539063e-08, 2, 0x0001 },
        { 65504.0, 2, 0x7bff },
        { 65505.0, 4, 0x477fe100 },
        { 0.1, 8, 0x3fb999999999999a },
        { (double)0.1f, 4, 0x3dcccccd },
        { 0x1p-14, 2, 0x0400 },
        { 0x1p-25, 4, 0x33000000 },
        { 0x1.8p-24, 4, 0x33c00000 },
        { 0x3p-24, 2, 0x0003 },
        { 0x1p-149, 4, 0x00000001 },
        { 0x1p-150, 8, 0x3690000000000000 },
        { 0x1.8p-149, 8, 0x36a8000000000000 },
        { 0x1p16, 4, 0x47800000 },
        { 0x1p127, 4, 0x7f000000 },
        { 0x1p128, 8, 0x47f0000000000000 },
        { 0x1p-1074, 8, 1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bits;
        assert_int_equal(tnf_cbor_shortest_float(bits_of(cases[i].value), &bits), cases[i].width);
        assert_true(bits == cases[i].bits);
    }
}

static void nans_keep_their_bits(void **state)
{
    static const struct {
        uint64_t nan;
        unsigned width;
        uint64_t bits;
    } cases[] = {
        { 0x7ff8000000000000, 2, 0x7e00 },
        { 0xfff8000000000000, 2, 0xfe00 },
        { 0x7ff0040000000000, 2, 0x7c01 },
        { 0x7ff0000020000000, 4, 0x7f800001 },
        { 0x7ff8000020000000, 4, 0x7fc00001 },
        { 0x7ff0000000000001, 8, 0x7ff0000000000001 },
        { 0x7fffffffffffffff, 8, 0x7fffffffffffffff },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bits;
        assert_true(tnf_cbor_is_nan(cases[i].nan));
        assert_int_equal(tnf_cbor_shortest_float(cases[i].nan, &bits), cases[i].width);
        assert_true(bits == cases[i].bits);
    }
    assert_false(tnf_cbor_is_nan(bits_of(INFINITY)));
    assert_false(tnf_cbor_is_nan(bits_of(-INFINITY)));
    assert_false(tnf_cbor_is_nan(bits_of(-1.0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_halves_widen_and_come_back),
        cmocka_unit_test(singles_widen_and_come_back),
        cmocka_unit_test(shortest_as_the_sheet_says),
        cmocka_unit_test(nans_keep_their_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
