/* SPDX-License-Identifier: MIT */
/* The joint progress of the threads of one call, for the caller's progress function. */
#ifndef TNF_CORE_LOOK_PROGRESS_H
#define TNF_CORE_LOOK_PROGRESS_H

#include <pthread.h>
#include <tenfold/tenfold.h>

typedef struct tnf_progress {
    tnf_progress_fn tell; /* NULL: no reports */
    void *ctx;
    uint64_t done, total; /* bytes */
} tnf_progress;

/* Adds n bytes and reports to the caller, one thread at a time. TNF_ECANCELLED if the caller stops.
 * The lock may guard other data as well; the calling thread must not hold it. */
tnf_status tnf_progress_add(tnf_progress *p, pthread_mutex_t *lock, uint64_t n, tnf_error *e);

#endif
