/* SPDX-License-Identifier: MIT */
/* Joins the results of leaves in an order that depends only on the number of leaves.
 *
 *   leaves   0   1   2   3   4   5   6
 *            └─┬─┘   └─┬─┘   └─┬─┘   │      neighbours are joined if both are full and
 *              └───┬───┘       └──┬──┘      aligned; the remaining ones from the right
 *                  └──────┬───────┘
 *
 * Sums of floats depend on their order. A worker with the leaves [a, b) joins the subtrees that are
 * complete within them and passes on the rest. So every division of the work gives the same bits.
 */
#ifndef TNF_BASE_PAIRING_H
#define TNF_BASE_PAIRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TNF_PAIRING_LEVELS 48u                      /* 2^48 leaves: more than a file can have */
#define TNF_PAIRING_NODES  (2 * TNF_PAIRING_LEVELS) /* maximum for a run of leaves */

/* 2^level leaves, beginning with `first`. */
typedef struct tnf_pairing_node {
    uint64_t first;
    unsigned level;
} tnf_pairing_node;

typedef struct tnf_pairing {
    size_t size;                             /* of a result */
    void (*join)(void *t, const void *more); /* adds `more`, the result of the next leaves, to t */
    uint8_t *results;                        /* room for TNF_PAIRING_NODES results */
    tnf_pairing_node nodes[TNF_PAIRING_NODES];
    size_t n;
} tnf_pairing;

/* Adds the result of the next node; false if the node does not follow the last one. */
bool tnf_pairing_add(tnf_pairing *f, tnf_pairing_node node, const void *result);
/* Joins all results into one and empties the list. False if there are none. */
bool tnf_pairing_end(tnf_pairing *f, void *out);
/* The position after the last leaf. */
uint64_t tnf_pairing_upto(const tnf_pairing *f);

#endif
