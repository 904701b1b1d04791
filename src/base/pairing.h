/* SPDX-License-Identifier: MIT */
/* Results of the leaves of a whole, put together in an order that follows from their number alone.
 *
 *   leaves   0   1   2   3   4   5   6
 *            └─┬─┘   └─┬─┘   └─┬─┘   │      neighbours are joined where both are full and
 *              └───┬───┘       └──┬──┘      aligned; what is left at the end from the right
 *                  └──────┬───────┘
 *
 * Sums of floats depend on their order. Whoever has the leaves [a, b) joins what is complete within
 * them and passes on the rest, so that every cut gives the same bits as none.
 */
#ifndef TNF_BASE_PAIRING_H
#define TNF_BASE_PAIRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TNF_PAIRING_LEVELS 48u                      /* 2^48 leaves are more than a file can have */
#define TNF_PAIRING_NODES  (2 * TNF_PAIRING_LEVELS) /* of a run, at most */

/* The leaves from `first` on, 2^level of them. */
typedef struct tnf_pairing_node {
    uint64_t first;
    unsigned level;
} tnf_pairing_node;

typedef struct tnf_pairing {
    size_t size;                             /* of a result */
    void (*join)(void *t, const void *more); /* `more` is of what follows */
    uint8_t *results;                        /* room for TNF_PAIRING_NODES of them */
    tnf_pairing_node nodes[TNF_PAIRING_NODES];
    size_t n;
} tnf_pairing;

/* The result of a node that follows what is there; false: it does not. */
bool tnf_pairing_add(tnf_pairing *f, tnf_pairing_node node, const void *result);
/* The result of all, which become none. False if there is nothing. */
bool tnf_pairing_end(tnf_pairing *f, void *out);
/* Behind the last leaf. */
uint64_t tnf_pairing_upto(const tnf_pairing *f);

#endif
