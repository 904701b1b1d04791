/* SPDX-License-Identifier: MIT */
/* Statistics of the numbers of a tensor of any type, block by block. */
#ifndef TNF_CORE_LOOK_VALUES_H
#define TNF_CORE_LOOK_VALUES_H

#include "kernels/bins.h"
#include "kernels/tally.h"
#include <tenfold/stat.h>

typedef struct tnf_values {
    tnf_tally tally;
    tnf_bins *bins; /* NULL: no histogram */
    bool spread;    /* compute the standard deviation */
} tnf_values;

/* Does Tenfold interpret this type as numbers? */
bool tnf_values_known(const tnf_type *type);
/* Adds the first n elements of `bytes`. */
void tnf_values_take(tnf_values *v, const tnf_type *type, const void *bytes, size_t n);
void tnf_values_merge(tnf_values *v, const tnf_values *more);
tnf_value_counts tnf_values_counts(const tnf_values *v, const tnf_type *type);

/* stat.c: tnf_stat_file(); if `plain`, without histograms and deviations, at the speed of
 * memory. */
tnf_status tnf_values_file(const tnf_file *file, const tnf_stat_options *options, bool plain,
                           tnf_error *e);

#endif
