/* SPDX-License-Identifier: MIT */
/* Tasks on threads: each runs once, all of them run, and the first failure is returned. */
#include "../support/flush.h"
#include "../support/unit.h"
#include "base/error.h"
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define TASKS 500

struct work {
    atomic_uint done[TASKS];
    size_t fail_at;
    atomic_uint started;
};

static tnf_status run_task(void *ctx, size_t i, tnf_error *e)
{
    struct work *w = ctx;
    atomic_fetch_add(&w->started, 1);
    if (i == w->fail_at)
        return tnf_fail(e, TNF_EDIGEST, i, "task %zu", i);
    atomic_fetch_add(&w->done[i], 1);
    return TNF_OK;
}

static void each_once(void **state)
{
    (void)state;
    tnf_error e;
    for (unsigned threads = 0; threads <= 9; threads++) {
        struct work w = { .fail_at = SIZE_MAX };
        assert_ok(tnf_pool_run(threads, TASKS, run_task, &w, &e));
        for (size_t i = 0; i < TASKS; i++)
            assert_int_equal(w.done[i], 1);
    }
    struct work none = { .fail_at = SIZE_MAX };
    assert_ok(tnf_pool_run(4, 0, run_task, &none, &e));
    assert_int_equal(none.started, 0);
    assert_ok(tnf_pool_run(1000, 3, run_task, &none, &e));
    assert_int_equal(none.started, 3);
}

static void the_first_failure_stops(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 8; threads++) {
        tnf_error e;
        struct work w = { .fail_at = 20 };
        assert_fails(tnf_pool_run(threads, TASKS, run_task, &w, &e), TNF_EDIGEST);
        assert_int_equal(e.offset, 20);
        assert_string_equal(e.message, "task 20");
        if (threads == 1)
            assert_int_equal(w.started, 21);
        assert_int_equal(tnf_pool_run(threads, TASKS, run_task, &w, NULL), TNF_EDIGEST);
    }
}

static tnf_status all_fail(void *ctx, size_t i, tnf_error *e)
{
    (void)ctx;
    return tnf_fail(e, TNF_EIO, i, "number %zu", i);
}

static void status_and_error_belong_together(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        tnf_error e;
        assert_fails(tnf_pool_run(4, 100, all_fail, NULL, &e), TNF_EIO);
        char text[32];
        snprintf(text, sizeof text, "number %u", (unsigned)e.offset);
        assert_string_equal(e.message, text);
    }
}

static void *note_mask(void *ctx)
{
    pthread_sigmask(SIG_SETMASK, NULL, ctx);
    return NULL;
}

/* Signals to the process only reach the program's own threads. A fault of a thread still reaches
 * the program's handler. */
static void threads_block_signals(void **state)
{
    (void)state;
    static const int blocked[] = { SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD, SIGPROF };
    static const int open[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    sigset_t before, inside, after;
    pthread_t id;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigemptyset(&inside);
    assert_true(tnf_thread_start(&id, note_mask, &inside));
    pthread_join(id, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++) {
        assert_true(sigismember(&inside, blocked[i]));
        assert_int_equal(sigismember(&after, blocked[i]), sigismember(&before, blocked[i]));
    }
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        assert_false(sigismember(&inside, open[i]));
}

static void counts_threads(void **state)
{
    (void)state;
    assert_int_equal(tnf_pool_threads(3), 3);
    assert_in_range(tnf_pool_threads(0), 1, 8);
    assert_in_range(tnf_pool_threads(UINT32_MAX), 1, 256);
}

/* Threads that work on something slow run at the same time. */
static pthread_barrier_t both;

static tnf_status meet_at_barrier(void *ctx, size_t i, tnf_error *e)
{
    (void)ctx, (void)i, (void)e;
    pthread_barrier_wait(&both);
    return TNF_OK;
}

static void two_at_once(void **state)
{
    (void)state;
    tnf_error e;
    pthread_barrier_init(&both, NULL, 2);
    assert_ok(tnf_pool_run(2, 2, meet_at_barrier, NULL, &e)); /* with one thread this would hang */
    pthread_barrier_destroy(&both);
}

/* The environment limits the number of threads unless the program gives a number. */
static void as_many_as_allowed(void **state)
{
    (void)state;
    setenv("TENFOLD_THREADS", "3", 1);
    assert_int_equal(tnf_pool_threads(0), 3);
    assert_int_equal(tnf_pool_threads(7), 7);
    setenv("TENFOLD_THREADS", "99999", 1);
    assert_int_equal(tnf_pool_threads(0), 256);
    unsetenv("TENFOLD_THREADS");
    unsigned cores = tnf_pool_threads(0);
    assert_in_range(cores, 1, 256);
    setenv("TENFOLD_THREADS", "many", 1); /* has no effect */
    assert_int_equal(tnf_pool_threads(0), cores);
    unsetenv("TENFOLD_THREADS");
}

static tnf_status halve_number(void *ctx, size_t i, tnf_error *e)
{
    float *numbers = ctx;
    (void)e;
    numbers[i] = numbers[i] / 2;
    return TNF_OK;
}

/* For any mode of the program, subnormal numbers are not 0. */
static void tasks_compute_by_ieee(void **state)
{
    (void)state;
    tnf_error e;
    for (unsigned threads = 1; threads <= 2; threads++) {
        float numbers[8];
        for (size_t i = 0; i < 8; i++)
            numbers[i] = 0x1p-130f;
        uint32_t mode = flush_begin();
        tnf_status status = tnf_pool_run(threads, 8, halve_number, numbers, &e);
        assert_true(flush_end(mode));
        assert_int_equal(status, TNF_OK);
        for (size_t i = 0; i < 8; i++)
            assert_true(numbers[i] == 0x1p-131f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_allowed),
        cmocka_unit_test(each_once),
        cmocka_unit_test(the_first_failure_stops),
        cmocka_unit_test(status_and_error_belong_together),
        cmocka_unit_test(threads_block_signals),
        cmocka_unit_test(counts_threads),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(tasks_compute_by_ieee),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
