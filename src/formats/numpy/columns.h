/* SPDX-License-Identifier: MIT */
/* Arrays of more than numbers (texts, structures) whose columns come first. With the dimension of
 * their bytes behind the others they are in neither order, so they are given out rows first. */
#ifndef TNF_FORMATS_NUMPY_COLUMNS_H
#define TNF_FORMATS_NUMPY_COLUMNS_H

#include "formats/numpy/header.h"

/* For `decode`; in the arena. */
typedef struct np_columns {
    const uint64_t *shape;
    uint32_t rank;
    uint64_t width, start; /* of an element; of the data in the file */
    size_t turn;           /* bytes to turn round together; 1: none */
    const void *member;    /* of an archive, if it is deflated; else NULL */
} np_columns;

tnf_status tnf_np_gather(const tnf_source *source, const np_columns *c, uint64_t offset, void *dst,
                         size_t n, tnf_error *e);
/* Passes on the elements of a tensor, whose first `rank` dimensions are the array's, columns first.
 */
tnf_status tnf_np_scatter(tnf_writer *w, const tnf_object *o, uint32_t rank, bool big,
                          tnf_take_fn take, void *ctx, tnf_error *e);

#endif
