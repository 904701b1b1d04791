/* SPDX-License-Identifier: MIT */
/**
 * @file stat.h
 * Statistics of the values of tensors: counts, range, mean, deviation, a histogram.
 *
 *     static void print(void *ctx, const tnf_stat *s)
 *     {
 *         printf("%s: %g to %g\n", s->object->name.p, s->counts->min, s->counts->max);
 *     }
 *
 *     tnf_stat_options how = TNF_STAT_INIT;
 *     how.tensor = print;
 *     tnf_stat_file(file, &how, &error);
 */
#ifndef TENFOLD_STAT_H
#define TENFOLD_STAT_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The statistics of one tensor. */
typedef struct tnf_stat {
    const tnf_object *object;       /**< the tensor */
    bool numbers;                   /**< false: it holds no numbers; only `object` is set */
    const tnf_value_counts *counts; /**< counts, range, mean, deviation; NULL: no numbers */
    /** The histogram: [counts->min, counts->max] is cut into nbins intervals of equal width, and
     *  bins[i] is the number of finite values in interval i. An edge is exact to a thousandth of
     *  the largest magnitude. */
    const uint64_t *bins;
    size_t nbins;         /**< number of intervals */
    const tnf_type *type; /**< type of the numbers: f32 if quantized; NULL: no numbers */
} tnf_stat;

/** Called on the caller's thread with a tensor that cannot be read, and the reason. */
typedef void (*tnf_stat_problem_fn)(void *ctx, const tnf_object *object, const tnf_error *problem);

/** Called with the statistics of a tensor on the caller's thread. They are valid during the call.
 */
typedef void (*tnf_stat_fn)(void *ctx, const tnf_stat *stat);

/** Returns true if the tensor is wanted. Called on the caller's thread. */
typedef bool (*tnf_stat_wanted_fn)(void *ctx, const tnf_object *object);

/** What to compute. Begin with TNF_STAT_INIT; NULL means all defaults. */
typedef struct tnf_stat_options {
    size_t size; /**< sizeof(tnf_stat_options) */
    /** Returns true for tensors to read; NULL: all. */
    tnf_stat_wanted_fn wanted;
    /** Called for each wanted tensor, in file order and on the caller's thread. */
    tnf_stat_fn tensor;
    /** Called if a fault of the file makes a tensor unreadable; the other tensors are still read.
     *  NULL: such a fault ends the call. */
    tnf_stat_problem_fn problem;
    tnf_progress_fn progress; /**< called while reading; NULL: never */
    void *ctx;                /**< passed to all functions */
    unsigned threads;         /**< 0: one per core, or TENFOLD_THREADS */
    unsigned bins;            /**< intervals of the histograms, at most 1024; 0: 32 */
} tnf_stat_options;

/** All defaults. */
#define TNF_STAT_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_stat_options), NULL, NULL, NULL, NULL, NULL, 0, 0                               \
    }

/** Reads every wanted tensor once, in parallel. Memory does not grow with the file. The statistics
 *  are the same for any number of threads. */
TNF_API TNF_CHECKED tnf_status tnf_stat_file(const tnf_file *file, const tnf_stat_options *options,
                                             tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
