/* SPDX-License-Identifier: MIT */
/* A histogram made in one pass, without knowing the range beforehand.
 *
 *   width 2^k   [ first*2^k | (first+1)*2^k | … ]   at most TNF_BINS of them
 *
 * When a number falls outside, neighbours are put together (2^k doubles) until all fit. The width
 * in the end follows from the smallest and the largest number alone, so the result does not depend
 * on the order in which numbers come or parts are merged.
 */
#ifndef TNF_KERNELS_BINS_H
#define TNF_KERNELS_BINS_H

#include "kernels/tally.h"

#define TNF_BINS 2048u /* TNF_TALLY_NOWHERE */

typedef struct tnf_bins {
    int k;
    bool used;
    double min, max;               /* what was covered */
    int64_t first, last;           /* the bins of those */
    uint64_t counts[TNF_BINS + 1]; /* from `first` on; the one more takes what is not finite */
} tnf_bins;

/* Makes room for all numbers from min to max, both finite. */
void tnf_bins_cover(tnf_bins *b, double min, double max);
/* Numbers within what is covered; those that are not finite do not count. */
void tnf_bins_add(tnf_bins *b, enum tnf_float kind, const void *x, size_t n);
void tnf_bins_repeat(tnf_bins *b, double x, uint64_t times);
void tnf_bins_merge(tnf_bins *b, const tnf_bins *more);

/* The same as n bins of one width from min to max, which are the smallest and largest number. */
void tnf_bins_show(const tnf_bins *b, double min, double max, uint64_t *out, size_t n);

#endif
