/* SPDX-License-Identifier: MIT */
/**
 * @file stat.h
 * The values of tensors in figures: kinds of numbers, range, mean, deviation, a histogram.
 *
 *     static void tell(void *ctx, const tnf_stat *s)
 *     {
 *         printf("%s: %g to %g\n", s->object->name.p, s->counts->min, s->counts->max);
 *     }
 *
 *     tnf_stat_options how = { .size = sizeof how, .tensor = tell };
 *     tnf_stat_file(file, &how, &error);
 */
#ifndef TENFOLD_STAT_H
#define TENFOLD_STAT_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tnf_stat {
    const tnf_object *object;
    bool numbers; /**< false: no dense tensor of a known type; only `object` means anything */
    const tnf_value_counts *counts; /**< NULL where there are no numbers */
    /** How many of the finite values lie in each of nbins parts of [counts->min, counts->max], all
     *  of one width. An edge is exact to a thousandth of the largest magnitude. */
    const uint64_t *bins;
    size_t nbins;
} tnf_stat;

/** Begin with TNF_STAT_INIT; NULL means all defaults. */
typedef struct tnf_stat_options {
    size_t size; /**< sizeof(tnf_stat_options) */
    /** Which tensors to read; NULL: all. */
    bool (*wanted)(void *ctx, const tnf_object *object);
    /** Told of each wanted tensor, in the order of the file and on the caller's thread. */
    void (*tensor)(void *ctx, const tnf_stat *stat);
    /** Told of a tensor that cannot be read for a fault of the file, which then goes on; NULL: that
     *  ends it. */
    void (*problem)(void *ctx, const tnf_object *object, const tnf_error *problem);
    tnf_progress_fn progress;
    void *ctx;
    unsigned threads; /**< 0: one a core, at most 8 */
    unsigned bins;    /**< of the histograms, at most 1024; 0: 32 */
} tnf_stat_options;

#define TNF_STAT_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_stat_options), NULL, NULL, NULL, NULL, NULL, 0, 0                               \
    }

/** Reads every wanted tensor once, in parallel, with memory that does not grow with the file. The
 *  figures are the same whatever the number of threads. */
TNF_API TNF_CHECKED tnf_status tnf_stat_file(const tnf_file *file, const tnf_stat_options *options,
                                             tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
