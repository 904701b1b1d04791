/* SPDX-License-Identifier: MIT */
/* Tallies of floats of at most eight bits that have a sign: f8_*, f6_*, f4_*.
 *
 * Each number is a multiple of the smallest of its type, so sums are exact in any order. If the CPU
 * can look up 64 bytes at once, nothing is counted one by one:
 *
 *   f8     s eee eeee … mm    twice the number is  low[lower 4 bits] * high[upper 4 bits]
 *   f6 f4  all in one         digits[element], rank[element], kind[element]
 */
#ifndef TNF_KERNELS_TALLY_SMALL_H
#define TNF_KERNELS_TALLY_SMALL_H

#include "kernels/tally.h"

typedef struct tnf_small_type {
    const char *id;
    unsigned bits;
    float (*value)(uint8_t bits);
    double tiny; /* smaller magnitudes are subnormal */
} tnf_small_type;

/* NULL: not one of these types. */
const tnf_small_type *tnf_small_named(const char *id);
/* Adds n elements, packed as in model/dtype.c. `counts`, if not NULL, becomes the frequency of each
 * element, indexed by its bits; squares are computed only then. */
void tnf_tally_small(tnf_tally *t, const tnf_small_type *type, const void *x, size_t n,
                     uint64_t counts[256]);

/* ------------------------------------------------------ for tally_small*.c only */

#define TNF_SMALL_GROUPS 4u

typedef struct tnf_small_tables {
    unsigned bits;
    double unit;
    double value[256];  /* of each element */
    uint8_t kind[256];  /* 1: zero, 16: subnormal */
    int64_t units[256]; /* the multiple of the unit; 0 if it is not finite */
    /* For eight bits. The upper four bits give 1, 4, 16, 64 or 1, 16, with the sign, times
     * 256^group. The lower four bits give the factor for that; if the exponent is 0, the factor is
     * twice those bits. */
    uint8_t exponent; /* its bits */
    uint8_t special;  /* magnitudes from here on are not finite numbers; 128: all are finite */
    bool one_nan;     /* the element that would be -0 is the only NaN */
    unsigned groups;
    uint8_t low[16];
    int8_t high[TNF_SMALL_GROUPS][16];
    /* For fewer bits, at each index that ends in them. A number is digits[0] + 16 * digits[1]. */
    int8_t digits[2][64];
    uint8_t rank[64], by_rank[64]; /* rank in the order of the numbers, and its inverse */
} tnf_small_tables;

typedef struct tnf_small_sums {
    uint64_t zero, subnormal;
    int64_t units;
    double min, max;
    bool special; /* some numbers are not finite: the other members are invalid */
} tnf_small_sums;

/* Processes as many of n elements as fill whole vectors; returns their number. */
typedef size_t tnf_small_loop_fn(tnf_small_sums *out, const tnf_small_tables *tables,
                                 const uint8_t *x, size_t n);
/* NULL: this machine has no such instructions. */
tnf_small_loop_fn *tnf_small_loop_here(void);

#endif
