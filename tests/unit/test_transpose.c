/* SPDX-License-Identifier: MIT */
/* Every width, and many sizes near that of a tile, compared with the definition, element by
 * element; no byte beside the matrix changes. */
#include "kernels/transpose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_transposed(size_t rows, size_t cols, size_t width, size_t more)
{
    size_t from = cols + more, to = rows + more;
    uint8_t *src = malloc(rows * from * width + 1), *dst = malloc(cols * to * width + 1);
    assert_non_null(src);
    assert_non_null(dst);
    for (size_t i = 0; i < rows * from * width; i++)
        src[i] = (uint8_t)(i * 131 + i / 251);
    memset(dst, 0xAA, cols * to * width);
    assert_true(tnf_transpose(dst, to, src, from, rows, cols, width));
    for (size_t c = 0; c < cols; c++) {
        for (size_t r = 0; r < rows; r++)
            assert_memory_equal(dst + (c * to + r) * width, src + (r * from + c) * width, width);
        for (size_t i = rows * width; i < to * width; i++)
            assert_int_equal(dst[c * to * width + i], 0xAA);
    }
    free(src);
    free(dst);
}

static void all_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = { 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 130 };
    enum { n = sizeof sizes / sizeof sizes[0] };
    for (size_t width = 1; width <= 16; width *= 2)
        for (size_t r = 0; r < n; r++)
            for (size_t c = 0; c < n; c++)
                check_transposed(sizes[r], sizes[c], width, (r + c) % 3);
}

/* A megabyte is written past the cache, in complete lines, or in panels if rows do not begin with a
 * line. */
static void large_matrices(void **state)
{
    (void)state;
    for (size_t width = 1; width <= 16; width *= 2)
        for (size_t more = 0; more < 2; more++)
            check_transposed(1024, 1027 / width + 1, width, more);
}

static void other_widths(void **state)
{
    (void)state;
    uint8_t src[12] = { 0 }, dst[12] = { 1 };
    assert_false(tnf_transpose(dst, 2, src, 2, 2, 2, 3));
    assert_int_equal(dst[0], 1);
    assert_false(tnf_transpose(dst, 2, src, 2, 2, 2, 0));
    assert_true(tnf_transpose(dst, 2, src, 2, 0, 0, 4));
    assert_int_equal(dst[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sizes),
        cmocka_unit_test(large_matrices),
        cmocka_unit_test(other_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
