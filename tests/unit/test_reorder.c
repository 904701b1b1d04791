/* SPDX-License-Identifier: MIT */
/* Column-major matrices that are saved row by row: with rows that are larger than a block, and with
 * many rows, which several threads transpose in units of 4 MiB. */
#include "diff_files.h"

#define COLUMNS ((uint64_t)17 << 20)

static uint8_t value_at(uint64_t row, uint64_t column)
{
    return (uint8_t)(row * 101 + column * 7 + (column >> 8) * 3 + (column >> 16));
}

static void expect_reordered(uint64_t rows, uint64_t columns)
{
    const uint64_t shape[] = { rows, columns }, n = rows * columns;
    tnf_error e;
    struct made m = begin_file();
    uint8_t *stored = malloc(n), *read = malloc(n);
    assert_true(stored && read);
    for (uint64_t i = 0; i < columns; i++)
        for (uint64_t r = 0; r < rows; r++)
            stored[rows * i + r] = value_at(r, i);
    add_matrix(&m, "w", "u8", TNF_ORDER_F, shape, n, stored);
    finish_file(&m, "safetensors"); /* this format is always row-major */
    const tnf_object *o = tnf_find(m.file, "w");
    assert_int_equal(o->order, TNF_ORDER_C);
    assert_ok(tnf_read_part(read, n, o->parts, 0, &e));
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t i = 0; i < columns; i++)
            if (read[r * columns + i] != value_at(r, i))
                fail_msg("row %u, column %llu", (unsigned)r, (unsigned long long)i);
    free(stored);
    free(read);
    discard_file(&m);
}

static void long_rows(void **state)
{
    (void)state;
    expect_reordered(2, COLUMNS);
}

static void many_rows(void **state)
{
    static const char *const threads[] = { "1", "2", "5" };
    (void)state;
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        setenv("TENFOLD_THREADS", threads[i], 1);
        expect_reordered(3001, 4001); /* 1,048 rows are a unit */
        expect_reordered(150, 90001); /* 256 rows would be 23 MB: units of 16 MiB */
        expect_reordered(2097, 2000); /* a little less than one unit */
    }
    unsetenv("TENFOLD_THREADS");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(long_rows), cmocka_unit_test(many_rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
