/* SPDX-License-Identifier: MIT */
/* What kinds of numbers there are among many, their range, mean and spread.
 *
 * Numbers are taken in spans that fit the CPU's first cache: one pass gives the range and the sum
 * of each, a second the squares around its own mean, so that nothing cancels; spans are then put
 * together. The result depends on how the numbers are cut into spans, which is the same on every
 * machine, and not on instruction sets or threads.
 */
#ifndef TNF_BASE_TALLY_H
#define TNF_BASE_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tnf_tally {
    uint64_t elements, nan, inf, zero, subnormal;
    double min, max; /* of the finite ones, as are the two below; 0 if there are none */
    double mean;
    double squares; /* the sum of squared differences from the mean */
} tnf_tally;

/* n more numbers, at any alignment. What is not 0 and below `tiny` is subnormal. `spread` false
 * leaves out the squares. */
void tnf_tally_f32(tnf_tally *t, const void *x, size_t n, float tiny, bool spread);
void tnf_tally_f64(tnf_tally *t, const void *x, size_t n, double tiny, bool spread);
/* The same as tnf_tally_f32() of what tnf_widen_bf16() makes of them, without the squares. */
void tnf_tally_bf16(tnf_tally *t, const void *halves, size_t n);
/* Each of n numbers so many times. */
void tnf_tally_weighted(tnf_tally *t, const double *x, const uint64_t *times, size_t n,
                        double tiny);
void tnf_tally_merge(tnf_tally *t, const tnf_tally *more);

/* Halves to floats; dst is aligned. */
void tnf_widen_f16(float *dst, const void *halves, size_t n);
void tnf_widen_bf16(float *dst, const void *halves, size_t n);
/* How often each byte comes, added to counts. */
void tnf_count_bytes(uint64_t counts[256], const uint8_t *p, size_t n);

/* ------------------------------------------------------- for tally_*.c only */

/* The range of a span of floats, as integers in the order of the numbers, and of their magnitudes;
 * and their sum. */
typedef struct tnf_span_f32 {
    int32_t low, high, near, far;
    double sum;
} tnf_span_f32;

typedef struct tnf_span_f64 {
    int64_t low, high, near, far;
    double sum;
} tnf_span_f64;

typedef struct tnf_tally_loops {
    const char *name;
    void (*span_f32)(tnf_span_f32 *out, const uint8_t *x, size_t n);
    void (*span_bf16)(tnf_span_f32 *out, const uint8_t *halves, size_t n);
    void (*span_f64)(tnf_span_f64 *out, const uint8_t *x, size_t n);
    double (*squares_f32)(const uint8_t *x, size_t n, double mean);
    double (*squares_f64)(const uint8_t *x, size_t n, double mean);
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
