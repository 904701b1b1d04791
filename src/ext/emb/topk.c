/* SPDX-License-Identifier: MIT */
/* Keeps the k best items in a total order: by score, NaN last, then by a rule for ties. Since the
 * order is total, the result does not depend on the order of insertion. So threads may keep their
 * own items and merge them afterwards. */
#include "ext/emb/topk.h"

#include <math.h>

static bool is_better(const tnf_ties *ties, const tnf_scored *a, const tnf_scored *b)
{
    bool a_nan = isnan(a->score), b_nan = isnan(b->score);
    if (a_nan != b_nan)
        return b_nan;
    if (!a_nan && a->score != b->score)
        return a->score > b->score;
    int order = ties->compare ? ties->compare(ties->ctx, a->row, b->row) : 0;
    return order != 0 ? order < 0 : a->row < b->row;
}

static void swap_scored(tnf_scored *a, tnf_scored *b)
{
    tnf_scored t = *a;
    *a = *b;
    *b = t;
}

/* Restores the heap if items[at] is better than the items below it. */
static void sift_down(tnf_scored *items, size_t n, size_t at, const tnf_ties *ties)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n)
            return;
        if (child + 1 < n && is_better(ties, &items[child], &items[child + 1]))
            child++;
        if (!is_better(ties, &items[at], &items[child]))
            return;
        swap_scored(&items[at], &items[child]);
        at = child;
    }
}

void tnf_top_add(tnf_top *t, const tnf_ties *ties, tnf_scored item)
{
    if (t->n < t->k) {
        size_t at = t->n++;
        t->items[at] = item;
        while (at > 0 && is_better(ties, &t->items[(at - 1) / 2], &t->items[at])) {
            swap_scored(&t->items[(at - 1) / 2], &t->items[at]);
            at = (at - 1) / 2;
        }
    } else if (t->k > 0 && is_better(ties, &item, &t->items[0])) {
        t->items[0] = item;
        sift_down(t->items, t->n, 0, ties);
    }
}

void tnf_top_merge(tnf_top *t, const tnf_ties *ties, const tnf_top *other)
{
    for (size_t i = 0; i < other->n; i++)
        tnf_top_add(t, ties, other->items[i]);
}

void tnf_top_sort(tnf_top *t, const tnf_ties *ties)
{
    for (size_t n = t->n; n > 1; n--) {
        swap_scored(&t->items[0], &t->items[n - 1]);
        sift_down(t->items, n - 1, 0, ties);
    }
}
