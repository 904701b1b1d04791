/* SPDX-License-Identifier: MIT */
/* Multiplies tensors by their scales. */
#ifndef TNF_JOB_SCALES_H
#define TNF_JOB_SCALES_H

#include "job/into.h"

#include <tenfold/virtual.h>

/* The caller zero-initialises it and keeps it until after saving. */
typedef struct tnf_scales_step {
    tnf_file *view;    /* the selected tensors */
    tnf_builder *made; /* the same with the products */
    tnf_virtual **products;
    size_t nproducts, room;
} tnf_scales_step;

/* Replaces every tensor of floats that has scales by the product. The name of the scales is that of
 * the tensor with `suffix` added. The scales are left out and reported. Fails with TNF_ENOTFOUND if
 * no tensor has scales. */
tnf_status tnf_scales_make(tnf_scales_step *step, const tnf_builder *selected, const char *suffix,
                           tnf_into_tell tell, void *ctx, tnf_error *e);
void tnf_scales_free(tnf_scales_step *step);

#endif
