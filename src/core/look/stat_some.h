/* SPDX-License-Identifier: MIT */
/* Figures of some leaves of tensors, where others look at the rest; and of all of them. */
#ifndef TNF_CORE_LOOK_STAT_SOME_H
#define TNF_CORE_LOOK_STAT_SOME_H

#include "base/pairing.h"
#include "kernels/bins.h"
#include <tenfold/stat.h>

#define TNF_ALL_LEAVES UINT64_MAX

typedef struct tnf_stat_range {
    size_t object;
    uint64_t first, n; /* leaves; 0, TNF_ALL_LEAVES: all of it, however many */
} tnf_stat_range;

typedef struct tnf_stat_part {
    const tnf_stat_range *ranges; /* by object, one of each at most */
    size_t n;
    /* Told of a tensor that the range is not all of: the sums of its leaves (tnf_tally), and their
     * histogram. */
    void (*piece)(void *ctx, const tnf_object *object, const tnf_pairing *sums,
                  const tnf_bins *bins);
} tnf_stat_part;

/* A fold of tnf_tally. */
tnf_pairing tnf_stat_sums(tnf_tally room[TNF_PAIRING_NODES]);

/* At how many leaves a tensor can be cut; 0: it cannot. */
tnf_status tnf_stat_cuts(uint64_t *leaves, const tnf_object *object, tnf_error *e);
/* As tnf_stat_file(), of the ranges only; `wanted` is not asked. */
tnf_status tnf_stat_some(const tnf_file *file, const tnf_stat_options *options,
                         const tnf_stat_part *some, tnf_error *e);
/* Tells of a tensor by options->tensor, of which all sums are there. */
tnf_status tnf_stat_tell(const tnf_file *file, size_t object, tnf_pairing *sums,
                         const tnf_bins *bins, const tnf_stat_options *options, tnf_error *e);

#endif
