/* SPDX-License-Identifier: MIT */
/* Checked arithmetic: exact if the result fits; otherwise it returns false and changes nothing. */
#include "../support/unit.h"
#include "base/ckd.h"

#define MAX UINT64_MAX

static void adds_checked(void **state)
{
    (void)state;
    uint64_t out = 77;
    assert_true(tnf_ckd_add(&out, 2, 3) && out == 5);
    assert_true(tnf_ckd_add(&out, MAX, 0) && out == MAX);
    assert_true(tnf_ckd_add(&out, 0, MAX) && out == MAX);
    assert_true(tnf_ckd_add(&out, MAX - 1, 1) && out == MAX);
    out = 77;
    assert_false(tnf_ckd_add(&out, MAX, 1));
    assert_false(tnf_ckd_add(&out, 1, MAX));
    assert_false(tnf_ckd_add(&out, MAX, MAX));
    assert_true(out == 77);
}

static void multiplies_checked(void **state)
{
    (void)state;
    uint64_t out = 77;
    assert_true(tnf_ckd_mul(&out, 6, 7) && out == 42);
    assert_true(tnf_ckd_mul(&out, MAX, 0) && out == 0);
    assert_true(tnf_ckd_mul(&out, 0, MAX) && out == 0);
    assert_true(tnf_ckd_mul(&out, MAX, 1) && out == MAX);
    assert_true(tnf_ckd_mul(&out, 0xffffffff, 0x100000001) && out == MAX);
    assert_true(tnf_ckd_mul(&out, (uint64_t)1 << 32, ((uint64_t)1 << 32) - 1));
    out = 77;
    assert_false(tnf_ckd_mul(&out, (uint64_t)1 << 32, (uint64_t)1 << 32));
    assert_false(tnf_ckd_mul(&out, MAX, 2));
    assert_false(tnf_ckd_mul(&out, 2, MAX));
    assert_false(tnf_ckd_mul(&out, MAX / 8 + 1, 8));
    assert_true(out == 77);
}

static void aligns_checked(void **state)
{
    (void)state;
    uint64_t out = 77;
    assert_true(tnf_ckd_align(&out, 0, 64) && out == 0);
    assert_true(tnf_ckd_align(&out, 1, 64) && out == 64);
    assert_true(tnf_ckd_align(&out, 64, 64) && out == 64);
    assert_true(tnf_ckd_align(&out, 65, 1) && out == 65);
    assert_true(tnf_ckd_align(&out, MAX, 1) && out == MAX);
    assert_true(tnf_ckd_align(&out, MAX - 63, 64) && out == MAX - 63);
    out = 77;
    assert_false(tnf_ckd_align(&out, MAX - 62, 64));
    assert_false(tnf_ckd_align(&out, MAX, 2));
    assert_true(out == 77);
}

static void to_size(void **state)
{
    (void)state;
    size_t out = 77;
    assert_true(tnf_to_size(&out, 5) && out == 5);
    assert_true(tnf_to_size(&out, SIZE_MAX) && out == SIZE_MAX);
#if SIZE_MAX < UINT64_MAX
    assert_false(tnf_to_size(&out, (uint64_t)SIZE_MAX + 1));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(adds_checked),
                                        cmocka_unit_test(multiplies_checked),
                                        cmocka_unit_test(aligns_checked),
                                        cmocka_unit_test(to_size) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
