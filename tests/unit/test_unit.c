/* SPDX-License-Identifier: MIT */
/* Rows of length 1: by hand, and multiplied with their lengths again. */
#include "../support/unit.h"
#include "base/unit.h"

#include <math.h>
#include <string.h>

static void by_hand(void **state)
{
    float row[] = { 3, 0, -4 }, zeros[] = { 0, -0.0F, 0 };
    (void)state;
    assert_true(tnf_unit_row(row, 3) == 5);
    assert_true(row[0] == 3 / 5.F && row[1] == 0 && row[2] == -4 / 5.F);
    assert_true(tnf_unit_row(zeros, 3) == 0);
    assert_true(zeros[0] == 0 && signbit(zeros[1]));
    assert_true(tnf_unit_row(row, 0) == 0);
}

/* Rows whose squares are too large or too small for a float. */
static void far_sizes(void **state)
{
    (void)state;
    float large[] = { 3e30F, 4e30F }, small[] = { 3e-30F, 4e-30F };
    assert_true(fabsf(tnf_unit_row(large, 2) / 5e30F - 1) < 1e-6F);
    assert_true(fabsf(tnf_unit_row(small, 2) / 5e-30F - 1) < 1e-6F);
    assert_true(fabsf(large[0] - .6F) < 1e-6F && fabsf(small[1] - .8F) < 1e-6F);
}

/* A row whose length is not a finite float is not changed, so that it can be restored. */
static void no_length(void **state)
{
    (void)state;
    const float rows[][2] = { { INFINITY, 1 }, { NAN, 1 }, { 3e38F, 3e38F } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float row[2];
        memcpy(row, rows[i], sizeof row);
        assert_true(tnf_unit_row(row, 2) == 1);
        assert_memory_equal(row, rows[i], sizeof row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(far_sizes),
        cmocka_unit_test(no_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
