/* SPDX-License-Identifier: MIT */
/* A conversion of which a worker writes only some bytes. */
#ifndef TNF_JOB_CONVERT_THROUGH_H
#define TNF_JOB_CONVERT_THROUGH_H

#include <tenfold/convert.h>

/* The output that the worker writes. */
typedef struct tnf_through {
    tnf_sink *sink;            /* takes its bytes */
    size_t number;             /* TNF_CONVERT_SPLIT: its number; the index is the last */
    const char *const *shards; /* for the index: the paths of the other files */
    size_t n;                  /* number of shards */
} tnf_through;

/* convert.c: like tnf_convert(), but one file is written to a sink instead of its path. */
tnf_status tnf_convert_through(tnf_report **report, const tnf_file *const *files, size_t n,
                               const char *path, const tnf_convert_options *options,
                               const tnf_through *through, tnf_error *e);

#endif
