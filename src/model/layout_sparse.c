/* SPDX-License-Identifier: MIT */
/* Sparse layouts, with the parts and rules of zTensor 2's zt.sparse_csr/1 and zt.sparse_coo/1.
 *
 *   sparse_csr/1   shape [R, C]                     . 7 .      values   7 8 9
 *     values   the nnz elements, row by row         8 . 9      indices  1 0 2
 *     indices  u32 or u64: the column of each       . . .      indptr   0 1 3 3
 *     indptr   the same type, R + 1 of them: the beginning of each row
 *
 *   sparse_coo/1   any shape of at least one dimension
 *     values   the nnz elements, in any order, no duplicate cells
 *     coords   u32 or u64: all first coordinates, then all second ones, …
 *
 * The number of elements follows from the indices, whose type has whole bytes, and not from the
 * values, which may be packed.
 */
#include "model/layout_rules.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "model/dtype.h"

#include <inttypes.h>
#include <stdlib.h>

static tnf_status must_be_index(const tnf_object *object, const tnf_part *part, tnf_error *e)
{
    if (part->type == tnf_type_of(TNF_U32) || part->type == tnf_type_of(TNF_U64))
        return TNF_OK;
    return tnf_layout_fail(object, e, "the part '%s' is %s, but must be u32 or u64", part->role,
                           TNF_TYPE_TEXT(part->type));
}

static uint64_t count_of(const tnf_part *part)
{
    return part->nbytes / tnf_dtype_size(part->type->storage);
}

/* -------------------------------------------------------------------- csr */

static tnf_status check_csr(const tnf_object *object, tnf_error *e)
{
    const tnf_part *indices = tnf_object_part(object, "indices");
    const tnf_part *indptr = tnf_object_part(object, "indptr");
    uint64_t pointers;
    if (object->rank != 2)
        return tnf_layout_fail(object, e, "a sparse_csr/1 tensor must have 2 dimensions, not %u",
                               object->rank);
    TNF_TRY(must_be_index(object, indices, e));
    TNF_TRY(tnf_part_must_be(object, indptr, indices->type, e));
    if (!tnf_ckd_add(&pointers, object->shape[0], 1))
        return tnf_layout_fail(object, e, "there are too many rows");
    TNF_TRY(tnf_part_must_hold(object, indptr, pointers, e));
    TNF_TRY(tnf_part_must_hold(object, indices, count_of(indices), e));
    return tnf_part_must_hold(object, tnf_object_part(object, "values"), count_of(indices), e);
}

/* Checks the columns of one row: in ascending order, no duplicates, inside the matrix. */
static tnf_status check_row(const tnf_object *object, uint64_t row, uint64_t count,
                            tnf_part_ints *indices, tnf_error *e)
{
    uint64_t columns = object->shape[1], column, before = 0;
    for (uint64_t i = 0; i < count; i++, before = column) {
        TNF_TRY(tnf_part_ints_next(indices, &column, e));
        if (column >= columns)
            return tnf_layout_fail_at(object, indices->part, indices->last_at, e,
                                      "row %" PRIu64 " has column %" PRIu64
                                      ", but there are only %" PRIu64 " columns",
                                      row, column, columns);
        if (i > 0 && column <= before)
            return tnf_layout_fail_at(object, indices->part, indices->last_at, e,
                                      "row %" PRIu64 " has column %" PRIu64
                                      " after column %" PRIu64,
                                      row, column, before);
    }
    return TNF_OK;
}

static tnf_status check_csr_data(const tnf_object *object, tnf_part_reader read, tnf_error *e)
{
    TNF_TRY(tnf_layout_check(object, e));
    const tnf_part *indptr = tnf_object_part(object, "indptr");
    uint64_t nnz = count_of(tnf_object_part(object, "indices")), begin, end;
    tnf_part_ints pointers, indices;
    tnf_part_ints_begin(&pointers, indptr, read);
    tnf_part_ints_begin(&indices, tnf_object_part(object, "indices"), read);
    TNF_TRY(tnf_part_ints_next(&pointers, &begin, e));
    if (begin != 0)
        return tnf_layout_fail_at(object, indptr, 0, e,
                                  "the first row begins at %" PRIu64 ", not 0", begin);
    for (uint64_t row = 0; row < object->shape[0]; row++, begin = end) {
        TNF_TRY(tnf_part_ints_next(&pointers, &end, e));
        if (end < begin || end > nnz)
            return tnf_layout_fail_at(object, indptr, pointers.last_at, e,
                                      "row %" PRIu64 " goes from %" PRIu64 " to %" PRIu64
                                      " of %" PRIu64 " elements",
                                      row, begin, end, nnz);
        TNF_TRY(check_row(object, row, end - begin, &indices, e));
    }
    if (begin != nnz)
        return tnf_layout_fail_at(object, indptr, pointers.last_at, e,
                                  "the rows have %" PRIu64 " elements, but there are %" PRIu64,
                                  begin, nnz);
    return tnf_part_check_elements(object, tnf_object_part(object, "values"), nnz, read, e);
}

const tnf_layout tnf_layout_sparse_csr = {
    .id = "sparse_csr/1",
    .parts = (const tnf_layout_part[]) { { .role = "values" },
                                         { .role = "indices" },
                                         { .role = "indptr" },
                                         { NULL, false } },
    .check = check_csr,
    .check_data = check_csr_data,
};

/* -------------------------------------------------------------------- coo */

static tnf_status check_coo(const tnf_object *object, tnf_error *e)
{
    const tnf_part *coords = tnf_object_part(object, "coords");
    uint64_t cells;
    if (object->rank == 0)
        return tnf_layout_fail(object, e, "a sparse_coo/1 tensor must have at least one dimension");
    TNF_TRY(must_be_index(object, coords, e));
    TNF_TRY(tnf_layout_elements(&cells, object, e)); /* each cell must have a number */
    TNF_TRY(tnf_part_must_hold(object, coords, count_of(coords), e));
    if (count_of(coords) % object->rank != 0)
        return tnf_layout_fail(object, e,
                               "%" PRIu64 " coordinates cannot be divided evenly by %u dimensions",
                               count_of(coords), object->rank);
    return tnf_part_must_hold(object, tnf_object_part(object, "values"),
                              count_of(coords) / object->rank, e);
}

enum {
    BLOCK = 2048,     /* elements examined together */
    WINDOW = 1 << 21, /* cell numbers kept for finding duplicates: 16 MiB */
};

typedef struct coo {
    const tnf_object *object;
    const tnf_part *coords;
    tnf_part_reader read;
    uint64_t nnz;
} coo;

/* Reads the cell numbers (in C order) of n elements from `first` on. */
static tnf_status read_cells(const coo *c, uint64_t first, size_t n, uint64_t *cells, tnf_error *e)
{
    uint8_t block[BLOCK * sizeof(uint64_t)];
    size_t width = tnf_dtype_size(c->coords->type->storage);
    memset(cells, 0, n * sizeof *cells);
    for (uint32_t d = 0; d < c->object->rank; d++) {
        uint64_t at = (d * c->nnz + first) * width, length = c->object->shape[d];
        TNF_TRY(c->read(block, n * width, c->coords, at, e));
        for (size_t i = 0; i < n; i++) {
            const uint8_t *p = block + i * width;
            uint64_t x = width == 4 ? tnf_le32(p) : tnf_le64(p);
            if (x >= length)
                return tnf_layout_fail_at(c->object, c->coords, at + i * width, e,
                                          "element %" PRIu64 " has coordinate %" PRIu64
                                          ", but the size is %" PRIu64 " in dimension %u",
                                          first + i, x, length, d);
            cells[i] = cells[i] * length + x;
        }
    }
    return TNF_OK;
}

static size_t block_at(const coo *c, uint64_t first)
{
    return c->nnz - first < BLOCK ? (size_t)(c->nnz - first) : BLOCK;
}

static tnf_status fail_double(const coo *c, uint64_t cell, tnf_error *e)
{
    return tnf_layout_fail(c->object, e, "two elements are in the same cell, number %" PRIu64,
                           cell);
}

static int compare_cells(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static tnf_status sort_window(const coo *c, uint64_t *window, size_t n, tnf_error *e)
{
    qsort(window, n, sizeof *window, compare_cells);
    for (size_t i = 1; i < n; i++)
        if (window[i] == window[i - 1])
            return fail_double(c, window[i], e);
    return TNF_OK;
}

/* One pass over all elements: looks for duplicates among the lowest cells from *from on, as many as
 * the window holds. *more: there are others, from the new *from on. */
static tnf_status find_doubles(const coo *c, uint64_t *window, size_t capacity, uint64_t *from,
                               bool *more, tnf_error *e)
{
    uint64_t cells[BLOCK], below = 0;
    size_t n = 0, held = 0;
    *more = false;
    for (uint64_t first = 0; first < c->nnz; first += n) {
        n = block_at(c, first);
        TNF_TRY(read_cells(c, first, n, cells, e));
        for (size_t i = 0; i < n; i++) {
            if (held == capacity) { /* keep the lower half */
                TNF_TRY(sort_window(c, window, held, e));
                held = capacity / 2;
                below = window[held];
                *more = true;
            }
            if (cells[i] >= *from && (!*more || cells[i] < below))
                window[held++] = cells[i];
        }
    }
    *from = below;
    return sort_window(c, window, held, e);
}

/* For elements that are not in order. Memory is bounded, so more elements than the window holds
 * take more passes; each pass completes at least half a window. */
static tnf_status check_unordered(const coo *c, tnf_error *e)
{
    size_t capacity = c->nnz < WINDOW ? (size_t)c->nnz : WINDOW;
    uint64_t *window = malloc(capacity * sizeof *window), from = 0;
    if (!window)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET,
                        "out of memory for finding duplicate cells in %s",
                        TNF_QUOTED(c->object->name));
    tnf_status status = TNF_OK;
    for (bool more = true; more && status == TNF_OK;)
        status = find_doubles(c, window, capacity, &from, &more, e);
    free(window);
    return status;
}

static tnf_status check_coo_data(const tnf_object *object, tnf_part_reader read, tnf_error *e)
{
    TNF_TRY(tnf_layout_check(object, e));
    const tnf_part *coords = tnf_object_part(object, "coords");
    coo c = { object, coords, read, count_of(coords) / object->rank };
    uint64_t cells[BLOCK], before = 0;
    bool ordered = true;
    size_t n = 0;
    for (uint64_t first = 0; first < c.nnz; first += n) {
        n = block_at(&c, first);
        TNF_TRY(read_cells(&c, first, n, cells, e));
        for (size_t i = 0; i < n; i++) {
            bool follows = first + i > 0;
            if (follows && cells[i] == before)
                return fail_double(&c, before, e);
            ordered = ordered && !(follows && cells[i] < before);
            before = cells[i];
        }
    }
    if (!ordered)
        TNF_TRY(check_unordered(&c, e));
    return tnf_part_check_elements(object, tnf_object_part(object, "values"), c.nnz, read, e);
}

const tnf_layout tnf_layout_sparse_coo = {
    .id = "sparse_coo/1",
    .parts = (const tnf_layout_part[]) { { .role = "values" },
                                         { .role = "coords" },
                                         { NULL, false } },
    .check = check_coo,
    .check_data = check_coo_data,
};
