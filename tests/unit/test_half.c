/* SPDX-License-Identifier: MIT */
/* Every bit pattern of every small float, compared with numpy and ml_dtypes (half_vectors.h). */
#include "base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "half_vectors.h"

#define QUIET 0x7fc00000u

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* As in the vectors: all NaNs are one. */
static uint32_t canonical_bits(float f)
{
    return isnan(f) ? QUIET : bits_of(f);
}

static void check_small(float (*convert)(uint8_t), const uint32_t *expect, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (canonical_bits(convert((uint8_t)i)) != expect[i])
            fail_msg("0x%02x gives %08x, not %08x", i, bits_of(convert((uint8_t)i)), expect[i]);
}

static uint64_t hash_wide(float (*convert)(uint16_t))
{
    uint64_t h = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < 65536; i++) {
        uint32_t bits = canonical_bits(convert((uint16_t)i));
        for (int k = 0; k < 4; k++)
            h = (h ^ (bits >> 8 * k & 0xff)) * 0x100000001b3u;
    }
    return h;
}

static void every_small_value(void **state)
{
    (void)state;
    check_small(tnf_f8_e4m3fn_to_f32, expect_f8_e4m3fn, 256);
    check_small(tnf_f8_e5m2_to_f32, expect_f8_e5m2, 256);
    check_small(tnf_f8_e4m3fnuz_to_f32, expect_f8_e4m3fnuz, 256);
    check_small(tnf_f8_e5m2fnuz_to_f32, expect_f8_e5m2fnuz, 256);
    check_small(tnf_f8_e8m0_to_f32, expect_f8_e8m0, 256);
    check_small(tnf_f6_e2m3_to_f32, expect_f6_e2m3, 64);
    check_small(tnf_f6_e3m2_to_f32, expect_f6_e3m2, 64);
    check_small(tnf_f4_e2m1_to_f32, expect_f4_e2m1, 16);
}

static void every_wide_value(void **state)
{
    (void)state;
    assert_int_equal(hash_wide(tnf_f16_to_f32), expect_f16_fnv);
    assert_int_equal(hash_wide(tnf_bf16_to_f32), expect_bf16_fnv);
}

/* Values of binary16 from IEEE 754, to locate a fault if the hash differs. */
static void landmarks_of_halves(void **state)
{
    (void)state;
    assert_int_equal(bits_of(tnf_f16_to_f32(0x0001)), bits_of(0x1p-24f));
    assert_int_equal(bits_of(tnf_f16_to_f32(0x03ff)), bits_of(0x1.ff8p-15f));
    assert_int_equal(bits_of(tnf_f16_to_f32(0x0400)), bits_of(0x1p-14f));
    assert_int_equal(bits_of(tnf_f16_to_f32(0x3c00)), bits_of(1.0f));
    assert_int_equal(bits_of(tnf_f16_to_f32(0x7bff)), bits_of(65504.0f));
    assert_int_equal(bits_of(tnf_f16_to_f32(0x8000)), 0x80000000u);
    assert_int_equal(bits_of(tnf_f16_to_f32(0xfc00)), 0xff800000u);
    assert_int_equal(bits_of(tnf_bf16_to_f32(0x8000)), 0x80000000u);
    assert_int_equal(bits_of(tnf_bf16_to_f32(0x0001)), 0x00010000u);
    assert_int_equal(bits_of(tnf_bf16_to_f32(0x7f80)), 0x7f800000u);
}

/* A function of i386 returns its float in a register that makes signalling NaNs quiet. */
#ifdef __i386__
#define QUIETED(bits, quiet_bit) (((bits) & (quiet_bit)) == 0)
#else
#define QUIETED(bits, quiet_bit) 0
#endif

/* Sign and payload of a NaN are kept if the target type can hold them. */
static void nan_payloads(void **state)
{
    (void)state;
    for (uint32_t m = 1; m < 0x400; m++) {
        if (QUIETED(m, 0x200u))
            continue;
        assert_int_equal(bits_of(tnf_f16_to_f32((uint16_t)(0x7c00 | m))), 0x7f800000u | m << 13);
        assert_int_equal(bits_of(tnf_f16_to_f32((uint16_t)(0xfc00 | m))), 0xff800000u | m << 13);
    }
    for (uint32_t m = QUIETED(1, 0x40u) ? 0x40 : 1; m < 0x80; m++)
        assert_int_equal(bits_of(tnf_bf16_to_f32((uint16_t)(0xff80 | m))), 0xff800000u | m << 16);
    assert_true(signbit(tnf_f8_e4m3fn_to_f32(0xff)));
    assert_false(signbit(tnf_f8_e4m3fn_to_f32(0x7f)));
}

/* Bits above a narrow element belong to the next element. */
static void high_bits_are_ignored(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        uint8_t b = (uint8_t)i;
        assert_int_equal(bits_of(tnf_f6_e2m3_to_f32(b)), expect_f6_e2m3[i & 0x3f]);
        assert_int_equal(bits_of(tnf_f6_e3m2_to_f32(b)), expect_f6_e3m2[i & 0x3f]);
        assert_int_equal(bits_of(tnf_f4_e2m1_to_f32(b)), expect_f4_e2m1[i & 0x0f]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_value),     cmocka_unit_test(every_wide_value),
        cmocka_unit_test(landmarks_of_halves),   cmocka_unit_test(nan_payloads),
        cmocka_unit_test(high_bits_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
