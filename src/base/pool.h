/* SPDX-License-Identifier: MIT */
/* Starts threads, and runs numbered tasks on a few of them that live as long as the call. */
#ifndef TNF_BASE_POOL_H
#define TNF_BASE_POOL_H

#include <tenfold/types.h>

#include <pthread.h>

/* Starts a thread that blocks signals, which are for the program's own threads. Signals that a
 * thread raises by its own instructions, such as SIGBUS, stay as they are. False if the system
 * cannot start one. */
bool tnf_thread_start(pthread_t *id, void *(*run)(void *ctx), void *ctx);

/* The number of threads to use. 0 means TENFOLD_THREADS of the environment, else one per core. */
unsigned tnf_pool_threads(unsigned wanted);

/* Calls task(ctx, i) for every i below n, started in ascending order, on `threads` threads, of
 * which the caller's is one. After the first failure no further task starts, and that failure is
 * returned. If the system cannot start all threads, fewer are used. */
tnf_status tnf_pool_run(unsigned threads, size_t n,
                        tnf_status (*task)(void *ctx, size_t i, tnf_error *e), void *ctx,
                        tnf_error *e);

#endif
