/* SPDX-License-Identifier: MIT */
/* A conversion of which a worker writes some bytes. */
#ifndef TNF_JOB_THROUGH_H
#define TNF_JOB_THROUGH_H

#include <tenfold/convert.h>

/* The file that is wanted of those that would be written. */
typedef struct tnf_through {
    tnf_sink *sink;            /* where its bytes go */
    size_t number;             /* TNF_CONVERT_SPLIT: which it is; the index is the last */
    const char *const *shards; /* the index: where the others lie */
    size_t n;                  /* number of those */
} tnf_through;

/* convert.c: as tnf_convert(), but one file goes to a sink instead of its place. */
tnf_status tnf_convert_through(tnf_report **report, const tnf_file *const *files, size_t n,
                               const char *path, const tnf_convert_options *options,
                               const tnf_through *through, tnf_error *e);

#endif
