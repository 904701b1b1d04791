/* SPDX-License-Identifier: MIT */
/* Statistics of some leaves of tensors, while other workers process the rest; and of all leaves. */
#ifndef TNF_CORE_LOOK_STAT_PARTIAL_H
#define TNF_CORE_LOOK_STAT_PARTIAL_H

#include "base/pairing.h"
#include "kernels/bins.h"
#include <tenfold/stat.h>

#define TNF_ALL_LEAVES UINT64_MAX

typedef struct tnf_stat_range {
    size_t object;
    uint64_t first, n; /* leaves; 0, TNF_ALL_LEAVES: all leaves */
} tnf_stat_range;

/* For qsort() and bsearch(): by object. */
static inline int tnf_stat_range_compare(const void *a, const void *b)
{
    const tnf_stat_range *x = a, *y = b;
    return x->object < y->object ? -1 : x->object > y->object;
}

typedef struct tnf_stat_part {
    const tnf_stat_range *ranges; /* sorted by object, at most one for each */
    size_t n;
    /* Called for a tensor of which the range is only a part: the sums of its leaves (tnf_tally),
     * and their histogram. */
    void (*piece)(void *ctx, const tnf_object *object, const tnf_pairing *sums,
                  const tnf_bins *bins);
} tnf_stat_part;

/* A pairing of tnf_tally. */
tnf_pairing tnf_stat_sums(tnf_tally room[TNF_PAIRING_NODES]);

/* The number of leaves into which a tensor can be divided; 0: it cannot. */
tnf_status tnf_stat_cuts(uint64_t *leaves, const tnf_object *object, tnf_error *e);
/* Like tnf_stat_file(), for the ranges only; `wanted` is not called. */
tnf_status tnf_stat_some(const tnf_file *file, const tnf_stat_options *options,
                         const tnf_stat_part *some, tnf_error *e);
/* Reports a tensor to options->tensor; all its sums must be complete. */
tnf_status tnf_stat_tell(const tnf_file *file, size_t object, tnf_pairing *sums,
                         const tnf_bins *bins, const tnf_stat_options *options, tnf_error *e);

#endif
