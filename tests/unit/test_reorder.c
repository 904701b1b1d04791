/* SPDX-License-Identifier: MIT */
/* Rows of columns where a single row is larger than a block, so that blocks count inside of it. */
#include "diff_files.h"

#define COLUMNS ((uint64_t)17 << 20)

static uint8_t value_at(uint64_t row, uint64_t column)
{
    return (uint8_t)(row * 101 + column * 7 + (column >> 8) * 3 + (column >> 16));
}

static void long_rows(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2, COLUMNS };
    tnf_error e;
    struct made m = begin_file();
    uint8_t *columns = malloc(2 * COLUMNS), *rows = malloc(2 * COLUMNS);
    assert_true(columns && rows);
    for (uint64_t i = 0; i < COLUMNS; i++)
        for (uint64_t r = 0; r < 2; r++)
            columns[2 * i + r] = value_at(r, i);
    add_matrix(&m, "w", "u8", TNF_ORDER_F, shape, 2 * COLUMNS, columns);
    finish_file(&m, "safetensors"); /* which has rows alone */
    const tnf_object *o = tnf_find(m.file, "w");
    assert_int_equal(o->order, TNF_ORDER_C);
    assert_ok(tnf_read_part(rows, 2 * COLUMNS, o->parts, 0, &e));
    for (uint64_t r = 0; r < 2; r++)
        for (uint64_t i = 0; i < COLUMNS; i++)
            if (rows[r * COLUMNS + i] != value_at(r, i))
                fail_msg("row %u, column %llu", (unsigned)r, (unsigned long long)i);
    free(columns);
    free(rows);
    discard_file(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(long_rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
