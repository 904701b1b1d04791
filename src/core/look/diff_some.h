/* SPDX-License-Identifier: MIT */
/* Some leaves of two tensors compared, where others compare the rest; and what comes of all. */
#ifndef TNF_CORE_LOOK_DIFF_SOME_H
#define TNF_CORE_LOOK_DIFF_SOME_H

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
    /* Told of each range: its sums (tnf_diff_sums), and whether any byte differs. */
    void (*piece)(void *ctx, const tnf_object *a, const tnf_pairing *sums, bool unlike);
    /* Instead: asked for what was found of a tensor. False: nothing is known of it. */
    bool (*found)(void *ctx, const tnf_object *a, tnf_diff_sums *sums, bool *unlike);
} tnf_diff_part;

/* A pairing of tnf_diff_sums. */
tnf_pairing tnf_diff_pairing(tnf_diff_sums room[TNF_PAIRING_NODES]);
/* At how many leaves two tensors can be cut to be compared; 0: they cannot. */
uint64_t tnf_diff_cuts(const tnf_object *a, const tnf_object *b);
/* As tnf_diff(), which this is if `some` is NULL. With `piece`: the ranges and nothing else. */
tnf_status tnf_diff_some(tnf_diff_result *out, const tnf_file *a, const tnf_file *b,
                         const tnf_diff_options *options, const tnf_diff_part *some, tnf_error *e);

#endif
