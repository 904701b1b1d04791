/* SPDX-License-Identifier: MIT */
/* Runs numbered jobs on a few threads that live as long as the call. */
#ifndef TNF_BASE_POOL_H
#define TNF_BASE_POOL_H

#include <tenfold/types.h>

/* 0 means what TENFOLD_THREADS says in the environment, else one a core. */
unsigned tnf_pool_threads(unsigned wanted);

/* job(ctx, i) for every i below n, in ascending order of starting, on `threads` threads (the
 * caller's is one of them). After the first failure no further job starts; that failure is
 * returned. If the system gives fewer threads, fewer do the work. */
tnf_status tnf_pool_run(unsigned threads, size_t n,
                        tnf_status (*job)(void *ctx, size_t i, tnf_error *e), void *ctx,
                        tnf_error *e);

#endif
