/* SPDX-License-Identifier: MIT */
/* Column-major arrays of texts or structures. Their elements have a dimension of bytes, which is
 * last in both orders. So such an array has neither order, and is returned row by row. */
#ifndef TNF_FORMATS_NUMPY_COLUMNS_H
#define TNF_FORMATS_NUMPY_COLUMNS_H

#include "formats/numpy/header.h"

/* For `decode`; in the arena. */
typedef struct np_columns {
    const uint64_t *shape;
    uint32_t rank;
    uint64_t width, start; /* of an element; of the data in the file */
    size_t swap;           /* width of numbers whose bytes are reversed; 1: none */
    const void *member;    /* the member of an archive if it is deflated; else NULL */
} np_columns;

tnf_status tnf_np_gather(const tnf_source *source, const np_columns *c, uint64_t offset, void *dst,
                         size_t n, tnf_error *e);
/* Writes the elements of a tensor column by column. Its first `rank` dimensions are the array's.
 */
tnf_status tnf_np_scatter(tnf_writer *w, const tnf_object *o, uint32_t rank, bool big,
                          tnf_take_fn take, void *ctx, tnf_error *e);

#endif
