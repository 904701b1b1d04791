/* SPDX-License-Identifier: MIT */
/* Threads that live for one call. Each takes the next number until none is left. Starting a thread
 * costs tens of microseconds and the tasks are megabytes, so keeping threads would save nothing. */
#include "base/pool.h"

#include "base/error.h"
#include "base/ieee.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_THREADS 256u

struct run {
    atomic_size_t next;
    atomic_bool failed;
    size_t n;
    tnf_status (*task)(void *ctx, size_t i, tnf_error *e);
    void *ctx;
    pthread_mutex_t lock; /* guards the two below */
    tnf_status status;
    tnf_error error;
};

/* The cores that this process may use, which may be fewer than the machine has. */
static unsigned count_cores(void)
{
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) > 0)
        return (unsigned)CPU_COUNT(&mine);
    long cores = sysconf(_SC_NPROCESSORS_ONLN); /* there are more cores than a set can hold */
    return cores > 0 ? (unsigned)cores : 1;
}

/* The maximum in the environment; 0: none. */
static unsigned allowed_threads(void)
{
    const char *text = getenv("TENFOLD_THREADS");
    unsigned n = 0;
    for (; text && *text >= '0' && *text <= '9'; text++)
        n = n < MAX_THREADS ? n * 10 + (unsigned)(*text - '0') : n;
    return text && *text == 0 ? n : 0;
}

unsigned tnf_pool_threads(unsigned wanted)
{
    if (wanted == 0)
        wanted = allowed_threads();
    if (wanted == 0)
        wanted = count_cores();
    return wanted > MAX_THREADS ? MAX_THREADS : wanted;
}

static void *run_tasks(void *arg)
{
    struct run *run = arg;
    const uint32_t mode = tnf_enter_ieee();
    while (!atomic_load_explicit(&run->failed, memory_order_relaxed)) {
        size_t i = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (i >= run->n)
            break;
        tnf_error error = { .offset = TNF_NO_OFFSET };
        tnf_status status = run->task(run->ctx, i, &error);
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
    tnf_leave_ieee(mode);
    return NULL;
}

bool tnf_thread_start(pthread_t *id, void *(*run)(void *ctx), void *ctx)
{
    static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    bool started = pthread_create(id, NULL, run, ctx) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

tnf_status tnf_pool_run(unsigned threads, size_t n,
                        tnf_status (*task)(void *ctx, size_t i, tnf_error *e), void *ctx,
                        tnf_error *e)
{
    struct run run = { .n = n, .task = task, .ctx = ctx, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t ids[MAX_THREADS];
    unsigned started = 0;
    threads = tnf_pool_threads(threads);
    while (started + 1 < threads && started + 1 < n) {
        if (!tnf_thread_start(&ids[started], run_tasks, &run))
            break;
        started++;
    }
    run_tasks(&run);
    for (unsigned i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    pthread_mutex_destroy(&run.lock);
    if (run.status != TNF_OK && e)
        *e = run.error;
    return run.status;
}
