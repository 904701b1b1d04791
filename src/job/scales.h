/* SPDX-License-Identifier: MIT */
/* Tensors that are multiplied by their scales. */
#ifndef TNF_JOB_SCALES_H
#define TNF_JOB_SCALES_H

#include "job/into.h"

#include <tenfold/virtual.h>

/* Zero-initialise; it must stay until after saving. */
typedef struct tnf_scales_step {
    tnf_file *view;    /* what was selected */
    tnf_builder *made; /* that, with the products */
    tnf_virtual **products;
    size_t nproducts, room;
} tnf_scales_step;

/* Every tensor of floats that has scales, which are named as it and `suffix`, becomes the product;
 * the scales are left out, and told. TNF_ENOTFOUND if no tensor has any. */
tnf_status tnf_scales_make(tnf_scales_step *step, const tnf_builder *selected, const char *suffix,
                           tnf_into_tell tell, void *ctx, tnf_error *e);
void tnf_scales_free(tnf_scales_step *step);

#endif
