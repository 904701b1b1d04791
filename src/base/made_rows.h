/* SPDX-License-Identifier: MIT */
/* Rows of a matrix of floats that is computed while it is saved, one block of rows at a time. */
#ifndef TNF_BASE_MADE_ROWS_H
#define TNF_BASE_MADE_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <tenfold/types.h>

typedef struct tnf_made_rows {
    float *rows;
    uint64_t first; /* the first row in the block */
    size_t n;
    float *norms;    /* lengths of rows, stored when their block is made; or NULL */
    uint64_t normed; /* number of rows whose lengths are known */
} tnf_made_rows;

/* Fills the block with rows, beginning with `first`; at least one. */
typedef tnf_status (*tnf_make_rows)(void *ctx, uint64_t first, tnf_error *e);
/* Must be called for each block that was made completely, if there are norms. */
static inline void tnf_made_rows_done(tnf_made_rows *block)
{
    if (block->first == block->normed)
        block->normed += block->n;
}

/* For a tnf_fetch_fn: copies any bytes of the matrix, and computes blocks when they are needed. */
tnf_status tnf_made_rows_fetch(const tnf_made_rows *block, size_t dims, tnf_make_rows make,
                               void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* The same for bytes of the norms. */
tnf_status tnf_made_norms_fetch(const tnf_made_rows *block, tnf_make_rows make, void *ctx,
                                uint64_t offset, void *dst, size_t n, tnf_error *e);

#endif
