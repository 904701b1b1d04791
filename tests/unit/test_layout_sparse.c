/* SPDX-License-Identifier: MIT */
/* Sparse layouts: sizes of the parts, and rules for indices and coordinates. */
#include "model/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "layout_objects.h"

/* -------------------------------------------------------------------- csr */

/* The matrix of zTensor's conformance file csr-data-valid: 2 x 3, columns 0 2 | 1. */
static float values[3] = { 1, 2, 3 };
static uint32_t indices[3], indptr[3];

static void fill_csr(tnf_part parts[3], tnf_object *o)
{
    memcpy(indices, (const uint32_t[]) { 0, 2, 1 }, sizeof indices);
    memcpy(indptr, (const uint32_t[]) { 0, 2, 3 }, sizeof indptr);
    parts[0] = (tnf_part)PART("values", "f32", values);
    parts[1] = (tnf_part)PART("indices", "u32", indices);
    parts[2] = (tnf_part)PART("indptr", "u32", indptr);
    static const uint64_t shape[2] = { 2, 3 };
    *o = tensor_of("sparse_csr/1", shape, 2, parts, 3);
}

static void csr_structure(void **state)
{
    (void)state;
    tnf_part parts[3];
    tnf_object o;
    fill_csr(parts, &o);
    data_is(&o, NULL, 0);
    o.nparts = 2;
    check_is(&o, "a sparse_csr/1 tensor needs a part 'indptr'");
    o.nparts = 3;
    o.rank = 1;
    check_is(&o, "2 dimensions, not 1");
    o.rank = 2;
    o.order = TNF_ORDER_F;
    check_is(&o, "column by column");
    o.order = TNF_ORDER_C;
    parts[1].type = tnf_type_of(TNF_I32);
    check_is(&o, "the part 'indices' is i32, but must be u32 or u64");
    parts[1].type = tnf_type_of(TNF_U32);
    parts[2].type = tnf_type_of(TNF_U64);
    check_is(&o, "the part 'indptr' is u64, but must be u32");
    parts[2].type = tnf_type_of(TNF_U32);
    parts[2].nbytes = 8;
    check_is(&o, "the part 'indptr' has 8 bytes, but 3 elements of u32 take 12");
    parts[2].nbytes = 12;
    parts[1].nbytes = 11;
    check_is(&o, "the part 'indices' has 11 bytes");
    parts[1].nbytes = 8;
    check_is(&o, "the part 'values' has 12 bytes, but 2 elements of f32 take 8");
    parts[0].type = tnf_type_named("f4_e2m1");
    parts[0].nbytes = 1;
    check_is(&o, NULL);
    fill_csr(parts, &o);
    o.shape = (const uint64_t[]) { UINT64_MAX, 3 };
    check_is(&o, "too many rows");
    o.shape = (const uint64_t[]) { UINT64_MAX - 1, 3 };
    check_is(&o, "beyond 2^64 bytes");
}

static void csr_rows(void **state)
{
    (void)state;
    tnf_part parts[3];
    tnf_object o;
    fill_csr(parts, &o);
    indptr[0] = 1; /* csr-indptr-not-zero-based */
    data_is(&o, "the first row begins at 1, not 0", 1000);
    fill_csr(parts, &o);
    indptr[1] = 4;
    data_is(&o, "row 0 goes from 0 to 4 of 3 elements", 1004);
    indptr[1] = 3;
    indptr[2] = 2;
    indices[1] = 1;
    indices[2] = 2;
    data_is(&o, "row 1 goes from 3 to 2 of 3 elements", 1008);
    fill_csr(parts, &o);
    indptr[2] = 2;
    data_is(&o, "the rows have 2 elements, but there are 3", 1008);
}

static void csr_columns(void **state)
{
    (void)state;
    tnf_part parts[3];
    tnf_object o;
    fill_csr(parts, &o);
    indices[1] = 3; /* csr-index-out-of-cols */
    data_is(&o, "row 0 has column 3, but there are only 3 columns", 1004);
    fill_csr(parts, &o);
    indices[0] = 2; /* csr-row-not-increasing */
    indices[1] = 0;
    data_is(&o, "row 0 has column 0 after column 2", 1004);
    indices[1] = 2;
    data_is(&o, "row 0 has column 2 after column 2", 1004);
    fill_csr(parts, &o);
    parts[0] = (tnf_part)PART_OF("values", "bool", "\0\1\2", 3);
    data_is(&o, "element 2 of 'values' is 2, which is not a bool", 1002);
    assert_int_equal(o.layout->check_data(&o, read_nothing, NULL), TNF_EIO);
}

static void csr_of_nothing(void **state)
{
    (void)state;
    static const uint64_t zero[1];
    tnf_part parts[] = { PART_OF("values", "f32", NULL, 0), PART_OF("indices", "u64", NULL, 0),
                         PART("indptr", "u64", zero) };
    tnf_object o = tensor_of("sparse_csr/1", SHAPE(0, 5), parts, 3);
    data_is(&o, NULL, 0);
}

/* Several blocks, u64: row r has columns r % 3, r % 3 + 3, … */
static void csr_of_many_blocks(void **state)
{
    (void)state;
    enum { ROWS = 3000, EACH = 4 };
    static uint64_t column[ROWS * EACH], start[ROWS + 1];
    static uint8_t value[ROWS * EACH];
    for (unsigned r = 0; r < ROWS; r++) {
        start[r + 1] = (r + 1) * EACH;
        for (unsigned i = 0; i < EACH; i++)
            column[r * EACH + i] = r % 3 + 3 * i;
    }
    tnf_part parts[] = { PART("values", "i8", value), PART("indices", "u64", column),
                         PART("indptr", "u64", start) };
    tnf_object o = tensor_of("sparse_csr/1", SHAPE(ROWS, 12), parts, 3);
    data_is(&o, NULL, 0);
    column[ROWS * EACH - 1] = 12;
    data_is(&o, "row 2999 has column 12, but there are only 12 columns",
            1000 + 8 * (ROWS * EACH - 1));
}

/* -------------------------------------------------------------------- coo */

static void coo_structure(void **state)
{
    (void)state;
    static const uint32_t coords[6] = { 1, 0, 1, 2, 0, 0 };
    tnf_part parts[] = { PART("values", "f32", values), PART("coords", "u32", coords) };
    tnf_object o = tensor_of("sparse_coo/1", SHAPE(2, 3), parts, 2);
    data_is(&o, NULL, 0); /* (1,2) (0,0) (1,0): not sorted */
    o.order = TNF_ORDER_F;
    check_is(&o, "column by column");
    o.order = TNF_ORDER_C;
    o.nparts = 1;
    check_is(&o, "needs a part 'coords'");
    o.nparts = 2;
    o.rank = 0;
    check_is(&o, "at least one dimension");
    o.rank = 2;
    parts[1].type = tnf_type_of(TNF_I64);
    check_is(&o, "the part 'coords' is i64, but must be u32 or u64");
    parts[1].type = tnf_type_of(TNF_U32);
    parts[1].nbytes = 20;
    check_is(&o, "5 coordinates cannot be divided evenly by 2 dimensions");
    parts[1].nbytes = 22;
    check_is(&o, "the part 'coords' has 22 bytes");
    parts[1].nbytes = 16;
    check_is(&o, "the part 'values' has 12 bytes, but 2 elements");
    o = tensor_of("sparse_coo/1", SHAPE((uint64_t)1 << 63, 3), parts, 2);
    check_is(&o, "more than 2^64 elements");
}

static void coo_cells(void **state)
{
    (void)state;
    uint64_t coords[6] = { 0, 0, 1, 0, 2, 1 };
    tnf_part parts[] = { PART("values", "f32", values), PART("coords", "u64", coords) };
    tnf_object o = tensor_of("sparse_coo/1", SHAPE(2, 3), parts, 2);
    data_is(&o, NULL, 0); /* in order */
    coords[2] = 2;
    data_is(&o, "element 2 has coordinate 2, but the size is 2 in dimension 0", 1016);
    coords[2] = 1;
    coords[4] = 3;
    data_is(&o, "element 1 has coordinate 3, but the size is 3 in dimension 1", 1032);
    coords[4] = 0;
    data_is(&o, "two elements are in the same cell, number 0", TNF_NO_OFFSET); /* neighbours */
    memcpy(coords, (const uint64_t[]) { 1, 0, 1, 2, 0, 2 }, sizeof coords);
    data_is(&o, "two elements are in the same cell, number 5", TNF_NO_OFFSET); /* far apart */
    parts[0] = (tnf_part)PART_OF("values", "bool", "\0\1\3", 3);
    coords[5] = 1;
    data_is(&o, "element 2 of 'values' is 3", 1002);
    assert_int_equal(o.layout->check_data(&o, read_nothing, NULL), TNF_EIO);
    parts[0].nbytes = parts[1].nbytes = 0;
    data_is(&o, NULL, 0);
    o = tensor_of("sparse_coo/1", SHAPE(0, 3), parts, 2);
    data_is(&o, NULL, 0);
}

static void coo_in_an_empty_shape(void **state)
{
    (void)state;
    static const uint64_t coords[3] = { UINT64_MAX - 1, 7, 0 };
    tnf_part parts[] = { PART_OF("values", "f32", values, 4), PART("coords", "u64", coords) };
    tnf_object o = tensor_of("sparse_coo/1", SHAPE(UINT64_MAX, 8, 0), parts, 2);
    data_is(&o, "coordinate 0, but the size is 0 in dimension 2", 1016);
}

/* More unsorted elements than the checker holds at once. An odd factor modulo 2^32 gives every
 * number once. */
static void coo_of_many_windows(void **state)
{
    (void)state;
    const size_t nnz = (size_t)5 << 19;
    uint32_t *coords = malloc(nnz * sizeof *coords);
    assert_non_null(coords);
    tnf_part parts[] = { PART_OF("values", "bit", coords, nnz / 8),
                         PART_OF("coords", "u32", coords, nnz * sizeof *coords) };
    tnf_object o = tensor_of("sparse_coo/1", SHAPE((uint64_t)1 << 32), parts, 2);
    for (size_t i = 0; i < nnz; i++)
        coords[i] = (uint32_t)i * 2654435761u;
    data_is(&o, NULL, 0);
    uint32_t spared = coords[nnz - 1];
    coords[nnz - 1] = coords[nnz / 2];
    data_is(&o, "two elements are in the same cell", TNF_NO_OFFSET);
    coords[nnz - 1] = spared;
    coords[3] = UINT32_MAX; /* the highest cell, so found last */
    coords[nnz - 5] = UINT32_MAX;
    data_is(&o, "same cell, number 4294967295", TNF_NO_OFFSET);
    for (size_t i = 0; i < nnz; i++)
        coords[i] = (uint32_t)(nnz - i);
    data_is(&o, NULL, 0);
    coords[0] = 1;
    data_is(&o, "same cell, number 1", TNF_NO_OFFSET);
    free(coords);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csr_structure),       cmocka_unit_test(csr_rows),
        cmocka_unit_test(csr_columns),         cmocka_unit_test(csr_of_nothing),
        cmocka_unit_test(csr_of_many_blocks),  cmocka_unit_test(coo_structure),
        cmocka_unit_test(coo_cells),           cmocka_unit_test(coo_in_an_empty_shape),
        cmocka_unit_test(coo_of_many_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
