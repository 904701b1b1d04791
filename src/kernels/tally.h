/* SPDX-License-Identifier: MIT */
/* Counts of kinds of numbers, their range, mean and spread.
 *
 * Numbers are processed in spans that fit in the CPU's first-level cache. One pass computes the
 * range and the sum of a span, a second one the squared differences from its own mean, so that
 * nothing cancels. Spans are then merged. Sums of integers, of f16 and of smaller floats are exact;
 * all others go to lanes in a fixed order. The result depends on the division into spans, which is
 * the same on every machine, but not on instruction sets or threads.
 *
 * Numbers have the byte order of the machine: the caller converts a file's bytes first
 * (base/bytes.h).
 */
#ifndef TNF_KERNELS_TALLY_H
#define TNF_KERNELS_TALLY_H

#include "base/int128.h"

#define TNF_TALLY_SPAN    8192u /* bytes of a span of floats or integers */
#define TNF_TALLY_NOWHERE 2048  /* the position in a histogram for numbers that are not finite */

typedef struct tnf_tally {
    uint64_t elements, nan, inf, zero, subnormal;
    double min, max; /* of the finite numbers, like the two below; 0 if there are none */
    double mean;
    double squares; /* the sum of squared differences from the mean */
    /* The range of integers, which doubles might not express, in the form of tnf_span_int. */
    tnf_u128 low, high;
} tnf_tally;

void tnf_tally_merge(tnf_tally *t, const tnf_tally *more);
/* Makes the range of integers include that of `more`. */
void tnf_tally_widen(tnf_tally *t, const tnf_tally *more);
/* Adds each of n numbers `times` times. A number that is not 0 and below `tiny` is subnormal. */
void tnf_tally_weighted(tnf_tally *t, const double *x, const uint64_t *times, size_t n,
                        double tiny);

enum tnf_float { TNF_TALLY_F64, TNF_TALLY_F32, TNF_TALLY_F16, TNF_TALLY_BF16, TNF_TALLY_FLOATS };

/* Adds n numbers, at any alignment. If `spread` is false, squares are not computed. */
void tnf_tally_floats(tnf_tally *t, enum tnf_float kind, const void *x, size_t n, bool spread);
/* Adds integers of 1, 2, 4, 8 or 16 bytes each; without squares. */
void tnf_tally_ints(tnf_tally *t, const void *x, size_t n, unsigned width, bool is_signed);
/* Adds bools, without squares: bytes, which are 1 unless they are 0; or bits. */
void tnf_tally_bools(tnf_tally *t, const void *x, size_t n);
void tnf_tally_bits(tnf_tally *t, const void *x, size_t n);
/* Adds f8_e8m0, which are powers of two; without squares. */
void tnf_tally_powers(tnf_tally *t, const void *x, size_t n);

/* Halves to floats; dst is aligned. */
void tnf_widen_f16(float *dst, const void *halves, size_t n);
void tnf_widen_bf16(float *dst, const void *halves, size_t n);
/* Adds the frequency of each byte to counts. */
void tnf_count_bytes(uint64_t counts[256], const uint8_t *p, size_t n);

/* ------------------------------------------------------- for tally_*.c only */

/* The bits of floats as integers of their width: the minimum and the maximum, compared as signed
 * and as unsigned integers. Together these give the range of numbers and of magnitudes:
 *
 *   bits      0 +0 … +largest   0x80… -0 … -largest
 *   signed    the maximum is the largest positive number, the minimum the negative nearest to 0
 *   unsigned  the minimum is the positive nearest to 0, the maximum the most negative
 */
typedef struct tnf_span_float {
    int64_t least, greatest;
    uint64_t first, last;
    double sum;
} tnf_span_float;

/* Integers as unsigned ones. Their sum is even + odd, for eight bytes even + odd * 2^32. */
typedef struct tnf_span_int {
    uint64_t low, high, zero, even, odd;
} tnf_span_int;

typedef void tnf_float_loop(tnf_span_float *out, const uint8_t *x, size_t n);
typedef uint64_t tnf_small_loop(const uint8_t *x, size_t n, uint64_t tiny);
typedef void tnf_int_loop(tnf_span_int *out, const uint8_t *x, size_t n, bool is_signed);

typedef struct tnf_tally_loops {
    const char *name;
    tnf_float_loop *floats[TNF_TALLY_FLOATS];
    /* Counts numbers whose bits, without the sign, are below `tiny`. */
    tnf_small_loop *small[TNF_TALLY_FLOATS];
    /* For 1, 2, 4 and 8 bytes. The sign bit of signed integers is inverted, so that they begin at
     * 0. */
    tnf_int_loop *ints[4];
    tnf_float_loop *powers; /* `sum` leaves out 2^-127 */
    uint64_t (*ones)(const uint8_t *x, size_t n);
    double (*squares_f32)(const uint8_t *x, size_t n, double mean);
    double (*squares_f64)(const uint8_t *x, size_t n, double mean);
    /* The integer part of each number times `scale`, minus `first`; TNF_TALLY_NOWHERE if the number
     * is not finite. All results are below 2^31. */
    void (*places_f32)(int64_t *out, const uint8_t *x, size_t n, double scale, int64_t first);
    void (*places_f64)(int64_t *out, const uint8_t *x, size_t n, double scale, int64_t first);
    void (*widen_f16)(float *dst, const uint8_t *halves, size_t n);
    void (*widen_bf16)(float *dst, const uint8_t *halves, size_t n);
} tnf_tally_loops;

/* The i-th that this machine can run, the fastest first; NULL past the last. */
const tnf_tally_loops *tnf_tally_loops_at(size_t i);

extern const tnf_tally_loops tnf_tally_portable;
#if defined(__x86_64__)
extern const tnf_tally_loops tnf_tally_avx2, tnf_tally_avx512;
#endif

#endif
