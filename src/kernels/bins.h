/* SPDX-License-Identifier: MIT */
/* A histogram made in one pass, without knowing the range in advance.
 *
 *   width 2^k   [ first*2^k | (first+1)*2^k | … ]   at most TNF_BINS of them
 *
 * If a number is outside, neighbouring bins are merged (2^k doubles) until all numbers fit. The
 * final width depends only on the smallest and the largest number, so the result does not depend on
 * the order of the numbers or of merges.
 */
#ifndef TNF_KERNELS_BINS_H
#define TNF_KERNELS_BINS_H

#include "kernels/tally.h"

#define TNF_BINS 2048u /* equal to TNF_TALLY_NOWHERE */

typedef struct tnf_bins {
    int k;
    bool used;
    double min, max;     /* the covered range */
    int64_t first, last; /* the bins of min and max */
    uint64_t counts[TNF_BINS +
                    1]; /* from `first` on; the extra one counts numbers that are not finite */
} tnf_bins;

/* Makes room for all numbers from min to max, both finite. */
void tnf_bins_cover(tnf_bins *b, double min, double max);
/* Adds numbers inside the covered range; numbers that are not finite are not counted. */
void tnf_bins_add(tnf_bins *b, enum tnf_float kind, const void *x, size_t n);
void tnf_bins_repeat(tnf_bins *b, double x, uint64_t times);
void tnf_bins_merge(tnf_bins *b, const tnf_bins *more);

/* The histogram as n bins of equal width from min to max, the smallest and the largest number. */
void tnf_bins_show(const tnf_bins *b, double min, double max, uint64_t *out, size_t n);

#endif
