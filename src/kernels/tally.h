/* SPDX-License-Identifier: MIT */
/* What kinds of numbers there are among many, their range, mean and spread.
 *
 * Numbers are taken in spans that fit the CPU's first cache: one pass gives the range and the sum
 * of each, a second the squares around its own mean, so that nothing cancels; spans are then put
 * together. Sums of integers, of f16 and of smaller floats are exact, all others go to lanes in a
 * fixed order. The result depends on how the numbers are cut into spans, which is the same on every
 * machine, and not on instruction sets or threads.
 *
 * Numbers have the byte order of the machine: the caller converts a file's bytes first
 * (base/bytes.h).
 */
#ifndef TNF_KERNELS_TALLY_H
#define TNF_KERNELS_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TNF_TALLY_SPAN    8192u /* bytes of a span of floats or integers */
#define TNF_TALLY_NOWHERE 2048  /* the place in a histogram of what is not finite */

typedef struct tnf_tally {
    uint64_t elements, nan, inf, zero, subnormal;
    double min, max; /* of the finite ones, as are the two below; 0 if there are none */
    double mean;
    double squares; /* the sum of squared differences from the mean */
    /* The range of integers, which doubles may not hold: as tnf_span_int has them. */
    uint64_t low, high;
} tnf_tally;

void tnf_tally_merge(tnf_tally *t, const tnf_tally *more);
/* Each of n numbers so many times. What is not 0 and below `tiny` is subnormal. */
void tnf_tally_weighted(tnf_tally *t, const double *x, const uint64_t *times, size_t n,
                        double tiny);

enum tnf_float { TNF_TALLY_F64, TNF_TALLY_F32, TNF_TALLY_F16, TNF_TALLY_BF16, TNF_TALLY_FLOATS };

/* n more numbers, at any alignment. `spread` false leaves out the squares. */
void tnf_tally_floats(tnf_tally *t, enum tnf_float kind, const void *x, size_t n, bool spread);
/* Of 1, 2, 4 or 8 bytes each; without the squares. */
void tnf_tally_ints(tnf_tally *t, const void *x, size_t n, unsigned width, bool is_signed);
/* 0 and 1: bytes, of which all but 0 are 1, or bits. Without the squares. */
void tnf_tally_bools(tnf_tally *t, const void *x, size_t n);
void tnf_tally_bits(tnf_tally *t, const void *x, size_t n);
/* f8_e8m0: powers of two. Without the squares. */
void tnf_tally_powers(tnf_tally *t, const void *x, size_t n);

/* Halves to floats; dst is aligned. */
void tnf_widen_f16(float *dst, const void *halves, size_t n);
void tnf_widen_bf16(float *dst, const void *halves, size_t n);
/* How often each byte comes, added to counts. */
void tnf_count_bytes(uint64_t counts[256], const uint8_t *p, size_t n);

/* ------------------------------------------------------- for tally_*.c only */

/* The bits of floats as integers of their width: the least and the greatest when they are taken as
 * signed and as unsigned. Together these tell the range of numbers and of magnitudes:
 *
 *   bits      0 +0 … +largest   0x80… -0 … -largest
 *   signed    the greatest is the largest positive number, the least the negative next to 0
 *   unsigned  the least is the positive next to 0, the greatest the most negative
 */
typedef struct tnf_span_float {
    int64_t least, greatest;
    uint64_t first, last;
    double sum;
} tnf_span_float;

/* Integers as unsigned ones. Their sum is even + odd, of eight bytes even + odd * 2^32. */
typedef struct tnf_span_int {
    uint64_t low, high, zero, even, odd;
} tnf_span_int;

typedef void tnf_float_loop(tnf_span_float *out, const uint8_t *x, size_t n);
typedef uint64_t tnf_small_loop(const uint8_t *x, size_t n, uint64_t tiny);
typedef void tnf_int_loop(tnf_span_int *out, const uint8_t *x, size_t n, bool is_signed);

typedef struct tnf_tally_loops {
    const char *name;
    tnf_float_loop *floats[TNF_TALLY_FLOATS];
    /* How many have bits below `tiny`, besides the sign. */
    tnf_small_loop *small[TNF_TALLY_FLOATS];
    /* Of 1, 2, 4 and 8 bytes. Signed ones are taken with their sign turned, as if from 0 on. */
    tnf_int_loop *ints[4];
    tnf_float_loop *powers; /* `sum` leaves out 2^-127 */
    uint64_t (*ones)(const uint8_t *x, size_t n);
    double (*squares_f32)(const uint8_t *x, size_t n, double mean);
    double (*squares_f64)(const uint8_t *x, size_t n, double mean);
    /* The whole part of each number times `scale`, less `first`; TNF_TALLY_NOWHERE if it is not
     * finite. Below 2^31 all of them. */
    void (*places_f32)(int64_t *out, const uint8_t *x, size_t n, double scale, int64_t first);
    void (*places_f64)(int64_t *out, const uint8_t *x, size_t n, double scale, int64_t first);
    void (*widen_f16)(float *dst, const uint8_t *halves, size_t n);
    void (*widen_bf16)(float *dst, const uint8_t *halves, size_t n);
} tnf_tally_loops;

/* The i-th that this machine can run, the best first; NULL past the last. */
const tnf_tally_loops *tnf_tally_loops_at(size_t i);

extern const tnf_tally_loops tnf_tally_portable;
#if defined(__x86_64__)
extern const tnf_tally_loops tnf_tally_avx2, tnf_tally_avx512;
#endif

#endif
