/* SPDX-License-Identifier: MIT */
/* The best of many. */
#ifndef TNF_EXT_EMB_TOPK_H
#define TNF_EXT_EMB_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tnf_scored {
    double score;
    uint64_t row;
} tnf_scored;

/* Which of two rows with the same score comes first? Below 0: a. */
typedef struct tnf_ties {
    int (*compare)(const void *ctx, uint64_t a, uint64_t b);
    const void *ctx;
} tnf_ties;

/* A heap with the worst of those kept at its root; of room for k. */
typedef struct tnf_top {
    tnf_scored *items;
    size_t n, k;
} tnf_top;

/* Would a score surely not be among the best? False also when in doubt. */
static inline bool tnf_top_below(const tnf_top *t, double score)
{
    return t->n == t->k && score < t->items[0].score;
}
void tnf_top_add(tnf_top *t, const tnf_ties *ties, tnf_scored item);
/* Takes those of another in. */
void tnf_top_merge(tnf_top *t, const tnf_ties *ties, const tnf_top *other);
/* Sorts the best first; afterwards it is not a heap any more. */
void tnf_top_sort(tnf_top *t, const tnf_ties *ties);

#endif
