/* SPDX-License-Identifier: MIT */
/* The k best of many items. */
#ifndef TNF_EXT_EMB_TOPK_H
#define TNF_EXT_EMB_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tnf_scored {
    double score;
    uint64_t row;
} tnf_scored;

/* Decides which of two rows with the same score comes first; negative: a. */
typedef struct tnf_ties {
    int (*compare)(const void *ctx, uint64_t a, uint64_t b);
    const void *ctx;
} tnf_ties;

/* A heap of at most k items, with the worst one at its root. */
typedef struct tnf_top {
    tnf_scored *items;
    size_t n, k;
} tnf_top;

/* Is a score certainly not among the best? Returns false if it is uncertain. */
static inline bool tnf_top_below(const tnf_top *t, double score)
{
    return t->n == t->k && score < t->items[0].score;
}
void tnf_top_add(tnf_top *t, const tnf_ties *ties, tnf_scored item);
/* Adds the items of another heap. */
void tnf_top_merge(tnf_top *t, const tnf_ties *ties, const tnf_top *other);
/* Sorts the items, best first. Afterwards they are no longer a heap. */
void tnf_top_sort(tnf_top *t, const tnf_ties *ties);

#endif
