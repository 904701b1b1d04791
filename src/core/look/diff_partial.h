/* SPDX-License-Identifier: MIT */
/* Compares some leaves of two tensors, while other workers compare the rest; and combines the
 * results. */
#ifndef TNF_CORE_LOOK_DIFF_PARTIAL_H
#define TNF_CORE_LOOK_DIFF_PARTIAL_H

#include "base/pairing.h"
#include <tenfold/diff.h>

/* Sums over some elements. */
typedef struct tnf_diff_sums {
    uint64_t elements, different, unequal, nonfinite, first, finite;
    uint8_t a[16], b[16];
    double max_abs, max_rel, sum_abs, sum_squares, sum_a, sum_b, sum_ab;
} tnf_diff_sums;

typedef struct tnf_diff_range {
    size_t a, b;       /* the tensors */
    uint64_t first, n; /* leaves of both */
} tnf_diff_range;

/* Ranges to compare here (`piece`), or results of ranges compared elsewhere (`found`). */
typedef struct tnf_diff_part {
    const tnf_diff_range *ranges;
    size_t n;
    /* Called for each range: its sums (tnf_diff_sums), and whether any byte differs. */
    void (*piece)(void *ctx, const tnf_object *a, const tnf_pairing *sums, bool unlike);
    /* Used instead: gets the results for a tensor. False: there are none. */
    bool (*found)(void *ctx, const tnf_object *a, tnf_diff_sums *sums, bool *unlike);
} tnf_diff_part;

/* A pairing of tnf_diff_sums. */
tnf_pairing tnf_diff_pairing(tnf_diff_sums room[TNF_PAIRING_NODES]);
/* The number of leaves into which the comparison of two tensors can be divided; 0: it cannot. */
uint64_t tnf_diff_cuts(const tnf_object *a, const tnf_object *b);
/* Equals tnf_diff() if `some` is NULL. With `piece`: compares only the ranges. */
tnf_status tnf_diff_some(tnf_diff_result *out, const tnf_file *a, const tnf_file *b,
                         const tnf_diff_options *options, const tnf_diff_part *some, tnf_error *e);

#endif
