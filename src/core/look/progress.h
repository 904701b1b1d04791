/* SPDX-License-Identifier: MIT */
/* How far the threads of one call have come together, for the caller's progress function. */
#ifndef TNF_CORE_LOOK_PROGRESS_H
#define TNF_CORE_LOOK_PROGRESS_H

#include <pthread.h>
#include <tenfold/tenfold.h>

typedef struct tnf_progress {
    tnf_progress_fn tell; /* NULL: the caller does not want to be told */
    void *ctx;
    uint64_t done, total; /* bytes */
} tnf_progress;

/* Adds n bytes and tells the caller, one thread at a time. TNF_ECANCELLED if the caller wants to
 * stop. The lock may guard other things as well; the calling thread does not hold it. */
tnf_status tnf_progress_add(tnf_progress *p, pthread_mutex_t *lock, uint64_t n, tnf_error *e);

#endif
