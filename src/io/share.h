/* SPDX-License-Identifier: MIT */
/* A shared lock (io/lock.h) that all threads of a handle hold together while they read.
 *
 *   thread 1   enter ▓▓▓▓▓▓▓▓ leave
 *   thread 2         enter ▓▓▓▓▓▓▓▓▓ leave
 *   the lock   take  ████████████████ drop
 *
 * Threads that enter one after the other without a pause would keep writers out for ever. So after
 * some entries, the next ones wait until all have left; then a waiting writer gets its turn.
 */
#ifndef TNF_IO_SHARE_H
#define TNF_IO_SHARE_H

#include "base/error.h"

#include <pthread.h>

typedef struct tnf_share {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned inside, entered; /* threads; entries since the lock was taken */
    bool taking;              /* a thread is waiting for the lock */
    unsigned failures;
    tnf_error failure; /* the last one */
} tnf_share;

void tnf_share_init(tnf_share *s);
void tnf_share_free(tnf_share *s);
/* Waits up to that many milliseconds for writers, and succeeds if there are no locks. `claimed`: a
 * claim of this process protects the file (io/claim.h), so no writer can have the lock, and those
 * that wait for it must not be waited for. */
tnf_status tnf_share_enter(tnf_share *s, int fd, bool claimed, uint32_t milliseconds, tnf_error *e);
void tnf_share_leave(tnf_share *s, int fd);

#endif
