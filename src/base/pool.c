/* SPDX-License-Identifier: MIT */
/* Threads for the length of one call: each takes the next number until none is left. Starting a
 * thread costs tens of microseconds, the jobs are megabytes: nothing is gained by keeping them. */
#include "base/pool.h"

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define MAX_THREADS     64u
#define DEFAULT_THREADS 16u

struct run {
    atomic_size_t next;
    atomic_bool failed;
    size_t n;
    tnf_status (*job)(void *ctx, size_t i, tnf_error *e);
    void *ctx;
    pthread_mutex_t lock; /* guards the two below */
    tnf_status status;
    tnf_error error;
};

unsigned tnf_pool_threads(unsigned wanted)
{
    if (wanted == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        wanted = cores < 1 ? 1 : cores > (long)DEFAULT_THREADS ? DEFAULT_THREADS : (unsigned)cores;
    }
    return wanted > MAX_THREADS ? MAX_THREADS : wanted;
}

static void *work(void *arg)
{
    struct run *run = arg;
    while (!atomic_load_explicit(&run->failed, memory_order_relaxed)) {
        size_t i = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (i >= run->n)
            break;
        tnf_error error = { .offset = TNF_NO_OFFSET };
        tnf_status status = run->job(run->ctx, i, &error);
        if (status == TNF_OK)
            continue;
        pthread_mutex_lock(&run->lock);
        if (run->status == TNF_OK) {
            run->status = status;
            run->error = error;
        }
        pthread_mutex_unlock(&run->lock);
        atomic_store(&run->failed, true);
    }
    return NULL;
}

tnf_status tnf_pool_run(unsigned threads, size_t n,
                        tnf_status (*job)(void *ctx, size_t i, tnf_error *e), void *ctx,
                        tnf_error *e)
{
    struct run run = { .n = n, .job = job, .ctx = ctx, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t ids[MAX_THREADS];
    unsigned started = 0;
    threads = tnf_pool_threads(threads);
    while (started + 1 < threads && started + 1 < n) {
        if (pthread_create(&ids[started], NULL, work, &run) != 0)
            break;
        started++;
    }
    work(&run);
    for (unsigned i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    pthread_mutex_destroy(&run.lock);
    if (run.status != TNF_OK && e)
        *e = run.error;
    return run.status;
}
