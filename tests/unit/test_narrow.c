/* SPDX-License-Identifier: MIT */
/* Smaller floats: every value of each type is converted back to itself; every midpoint between two
 * neighbours is rounded to the even one, and its neighbours to the nearer one; f32 is rounded like
 * the machine does it; limits follow the definition of each type. */
#include "../support/unit.h"
#include "base/half.h"
#include "kernels/narrow.h"

#include <math.h>

typedef float widen(uint32_t bits);

static float from_f16(uint32_t b)
{
    return tnf_f16_to_f32((uint16_t)b);
}

static float from_bf16(uint32_t b)
{
    return tnf_bf16_to_f32((uint16_t)b);
}

static float from_e4m3fn(uint32_t b)
{
    return tnf_f8_e4m3fn_to_f32((uint8_t)b);
}

static float from_e5m2(uint32_t b)
{
    return tnf_f8_e5m2_to_f32((uint8_t)b);
}

static float from_e4m3fnuz(uint32_t b)
{
    return tnf_f8_e4m3fnuz_to_f32((uint8_t)b);
}

static float from_e5m2fnuz(uint32_t b)
{
    return tnf_f8_e5m2fnuz_to_f32((uint8_t)b);
}

static const struct {
    const char *id;
    widen *widen;
    unsigned bits;
} types[] = {
    { "f16", from_f16, 16 },
    { "bf16", from_bf16, 16 },
    { "f8_e4m3fn", from_e4m3fn, 8 },
    { "f8_e5m2", from_e5m2, 8 },
    { "f8_e4m3fnuz", from_e4m3fnuz, 8 },
    { "f8_e5m2fnuz", from_e5m2fnuz, 8 },
};

#define TYPES (sizeof types / sizeof types[0])

static void every_value_comes_back(void **state)
{
    (void)state;
    for (size_t t = 0; t < TYPES; t++) {
        const tnf_narrow *to = tnf_narrow_of(types[t].id);
        for (uint32_t b = 0; b < (uint32_t)1 << types[t].bits; b++) {
            double x = (double)types[t].widen(b);
            uint32_t back = tnf_narrow_bits(to, x);
            if (isnan(x))
                assert_true(isnan(types[t].widen(back)));
            else if (back != b)
                fail_msg("%s: %x came back as %x", types[t].id, b, back);
        }
    }
}

static void midpoints_go_to_even(void **state)
{
    (void)state;
    for (size_t t = 0; t < TYPES; t++) {
        const tnf_narrow *to = tnf_narrow_of(types[t].id);
        for (uint32_t b = 0; b < to->largest; b++) {
            double low = (double)types[t].widen(b), high = (double)types[t].widen(b + 1);
            double middle = (low + high) / 2;
            uint32_t even = b % 2 ? b + 1 : b;
            assert_int_equal(tnf_narrow_bits(to, middle), even);
            assert_int_equal(tnf_narrow_bits(to, nextafter(middle, low)), b);
            assert_int_equal(tnf_narrow_bits(to, nextafter(middle, high)), b + 1);
        }
    }
}

/* The machine also rounds to nearest, ties to even. */
static void as_the_machine(void **state)
{
    (void)state;
    const tnf_narrow *f32 = tnf_narrow_of("f32");
    uint64_t seed = 1;
    for (int i = 0; i < 2000000; i++) {
        double x;
        float y;
        uint32_t bits;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t b = seed ^ seed >> 29;
        if (i % 2) /* near the range of float, otherwise nearly all of them overflow */
            b = (b & 0x800fffffffffffffu) | (uint64_t)(1023 - 160 + i / 2 % 300) << 52;
        memcpy(&x, &b, sizeof x);
        y = (float)x;
        memcpy(&bits, &y, sizeof bits);
        if (tnf_narrow_bits(f32, x) != bits)
            fail_msg("%a: %08x, the machine has %08x", x, tnf_narrow_bits(f32, x), bits);
    }
}

static void ends_of_each_type(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        uint32_t huge, infinite, minus_zero, quiet;
    } want[] = {
        { "f32", 0x7f800000, 0x7f800000, 0x80000000, 0x7fc00000 },
        { "f16", 0x7c00, 0x7c00, 0x8000, 0x7e00 },
        { "bf16", 0x7f80, 0x7f80, 0x8000, 0x7fc0 },
        { "f8_e4m3fn", 0x7e, 0x7e, 0x80, 0x7f },
        { "f8_e5m2", 0x7c, 0x7c, 0x80, 0x7e },
        { "f8_e4m3fnuz", 0x7f, 0x7f, 0, 0x80 },
        { "f8_e5m2fnuz", 0x7f, 0x7f, 0, 0x80 },
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const tnf_narrow *to = tnf_narrow_of(want[i].id);
        assert_int_equal(tnf_narrow_bits(to, 1e300), want[i].huge);
        assert_int_equal(tnf_narrow_bits(to, (double)INFINITY), want[i].infinite);
        assert_int_equal(tnf_narrow_bits(to, -0.0), want[i].minus_zero);
        assert_int_equal(tnf_narrow_bits(to, 1e-300), 0);
        assert_int_equal(
            tnf_narrow_bits(to, (double)NAN) & ~to->nan & ~((uint32_t)1 << (8 * to->bytes - 1)), 0);
        assert_int_equal(tnf_narrow_bits(to, fabs((double)NAN)) & want[i].quiet, want[i].quiet);
    }
    assert_null(tnf_narrow_of("f64"));
    assert_null(tnf_narrow_of("i8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_comes_back),
        cmocka_unit_test(midpoints_go_to_even),
        cmocka_unit_test(as_the_machine),
        cmocka_unit_test(ends_of_each_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
