/* SPDX-License-Identifier: MIT */
/* Long work, and callbacks into Python.
 *
 *   caller's thread   start ── wait 0.1 s ── signals? progress? ── wait … ── join ── result
 *   own thread              └── the C call ──────────────────────────────────┘
 *
 * The library reports its progress on any of its threads; Python checks signals on its main thread
 * only. So the work stores the numbers and the caller's thread reads them. Thus Ctrl-C works in
 * every call, with any threads of the library. */
#include "_tenfold.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { WORTH_THREAD = 8 << 20, TENTH = 100000000 };

typedef struct inside {
    work_fn run;
    void *ctx;
    tnf_status status;
    tnf_error *error;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done;
    atomic_bool stop;
    atomic_uint_fast64_t read, total;
} inside;

bool work_progress(void *ctx, uint64_t done, uint64_t total)
{
    work *w = ctx;
    inside *in = w->inside;
    if (!in)
        return true;
    atomic_store_explicit(&in->read, done, memory_order_relaxed);
    atomic_store_explicit(&in->total, total, memory_order_relaxed);
    return !atomic_load_explicit(&in->stop, memory_order_relaxed);
}

static void *work_thread(void *ctx)
{
    inside *in = ctx;
    tnf_status status = in->run(in->ctx, in->error);
    pthread_mutex_lock(&in->lock);
    in->status = status;
    in->done = true;
    pthread_cond_signal(&in->ended);
    pthread_mutex_unlock(&in->lock);
    return NULL;
}

static bool wait_tenth(inside *in)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TENTH;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&in->lock);
    if (!in->done)
        pthread_cond_timedwait(&in->ended, &in->lock, &until);
    bool done = in->done;
    pthread_mutex_unlock(&in->lock);
    return done;
}

/* Ends the work and its waits for servers; later calls are no-ops. */
static void stop_work(const work *w, inside *in)
{
    if (!atomic_exchange(&in->stop, true))
        net_stop(w, 1);
}

/* Called with the GIL. -1 with an exception that must stop the work. A callback that returns False
 * stops the work without an exception. */
static int check_work(const work *w, inside *in)
{
    if (PyErr_CheckSignals() < 0)
        return -1;
    if (!w->progress || w->progress == Py_None)
        return 0;
    unsigned long long total = atomic_load(&in->total), read = atomic_load(&in->read);
    if (total == 0)
        return 0;
    PyObject *answer = PyObject_CallFunction(w->progress, "KK", read, total);
    if (answer == Py_False)
        stop_work(w, in);
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}

static int run_here(inside *in, tnf_status *status)
{
    PyThreadState *save = PyEval_SaveThread();
    *status = in->run(in->ctx, in->error);
    PyEval_RestoreThread(save);
    return PyErr_Occurred() ? -1 : 0;
}

static int run_watched(work *w, inside *in, tnf_status *status)
{
    pthread_t thread;
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    bool done = false;
    if (pthread_create(&thread, NULL, work_thread, in) != 0)
        return run_here(in, status);
    while (!done) {
        PyThreadState *save = PyEval_SaveThread();
        done = wait_tenth(in);
        PyEval_RestoreThread(save);
        if (type || check_work(w, in) == 0)
            continue;
        PyErr_Fetch(&type, &value, &trace);
        stop_work(w, in);
    }
    pthread_join(thread, NULL);
    if (atomic_load(&in->stop))
        net_stop(w, -1);
    *status = in->status;
    if (type) {
        PyErr_Clear();
        PyErr_Restore(type, value, trace);
    }
    return PyErr_Occurred() ? -1 : 0;
}

int work_run(work_fn run, void *ctx, work *w, tnf_status *status, tnf_error *error)
{
    inside in = { .run = run, .ctx = ctx, .error = error };
    atomic_init(&in.stop, false);
    atomic_init(&in.read, 0);
    atomic_init(&in.total, 0);
    bool reports = w->progress && w->progress != Py_None;
    if (!reports && w->bytes < WORTH_THREAD && !net_used(w))
        return run_here(&in, status);
    pthread_mutex_init(&in.lock, NULL);
    pthread_cond_init(&in.ended, NULL);
    w->inside = &in;
    int bad = run_watched(w, &in, status);
    w->inside = NULL;
    pthread_cond_destroy(&in.ended);
    pthread_mutex_destroy(&in.lock);
    return bad;
}

/* ---------------------------------------------------------------------- GIL */

/* PyGILState supports only the main interpreter, so others get a thread state of their own. */
void gil_enter(gil *g, PyInterpreterState *interp)
{
    g->interp = interp;
    g->made = NULL;
    if (PyInterpreterState_GetID(interp) == 0) {
        g->state = PyGILState_Ensure();
    } else {
        g->made = PyThreadState_New(interp);
        PyEval_RestoreThread(g->made);
    }
}

void gil_leave(gil *g)
{
    if (g->made) {
        PyThreadState_Clear(g->made);
        PyEval_SaveThread();
        PyThreadState_Delete(g->made);
    } else {
        PyGILState_Release(g->state);
    }
}
