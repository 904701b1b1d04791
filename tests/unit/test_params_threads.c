/* SPDX-License-Identifier: MIT */
/* A parameter source under many threads, with reads and allocations that fail. */
#include "params_files.h"

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* A source that counts, can fail, and can wait until two are inside. */
struct slow {
    bytes b;
    atomic_int reads, failures, inside, most_inside;
    bool meet;
    atomic_bool shut; /* all reads wait while this is true */
};

static void sleep_briefly(void)
{
    nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static tnf_status slow_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct slow *s = ctx;
    memcpy(dst, s->b.p + offset, n);
    if (n != 40) /* the index */
        return TNF_OK;
    atomic_fetch_add(&s->reads, 1);
    int inside = atomic_fetch_add(&s->inside, 1) + 1;
    for (int i = 0; s->meet && i < 60000 && atomic_load(&s->most_inside) < 2; i++) {
        inside = atomic_load(&s->inside);
        int most = atomic_load(&s->most_inside);
        while (inside > most && !atomic_compare_exchange_weak(&s->most_inside, &most, inside))
            ;
        sleep_briefly();
    }
    if (!s->meet)
        sleep_briefly();
    while (atomic_load(&s->shut))
        sleep_briefly();
    atomic_fetch_sub(&s->inside, 1);
    if (atomic_fetch_sub(&s->failures, 1) > 0)
        return tnf_fail(e, TNF_EIO, offset, "on purpose");
    return TNF_OK;
}

static tnf_file *open_slow(struct slow *s)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = slow_read };
    tnf_source *source;
    tnf_file *file;
    tnf_error e = { 0 };
    s->b = compose_archive(sizes, sizeof sizes / sizeof sizes[0]);
    assert_int_equal(tnf_source_custom(&source, &ops, s, s->b.n, &e), TNF_OK);
    if (tnf_open_source(&file, source, NULL, &e) != TNF_OK)
        fail_msg("%s", e.message);
    atomic_store(&s->reads, 0);
    return file;
}

struct job {
    tnf_params *params;
    const char *name;
    tnf_status status;
    int rounds;
};

static void *load_once(void *arg)
{
    struct job *job = arg;
    const tnf_param *p;
    tnf_error e;
    job->status = tnf_params_load(&p, job->params, job->name, &e);
    if (job->status == TNF_OK)
        tnf_params_release(job->params, p);
    return NULL;
}

static void run_two(struct job *a, struct job *b)
{
    pthread_t one, two;
    assert_int_equal(pthread_create(&one, NULL, load_once, a), 0);
    assert_int_equal(pthread_create(&two, NULL, load_once, b), 0);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
}

/* Reads of different parameters run at the same time in the source: no lock is held during a
 * read. */
static void test_different_ones_in_parallel(void **state)
{
    (void)state;
    struct slow s = { .meet = true };
    tnf_file *file = open_slow(&s);
    tnf_params *params;
    tnf_error e;
    assert_int_equal(tnf_params_new(&params, file, NULL, &e), TNF_OK);
    struct job a = { params, "a", TNF_OK, 1 }, b = { params, "b", TNF_OK, 1 };
    run_two(&a, &b);
    assert_int_equal(a.status, TNF_OK);
    assert_int_equal(b.status, TNF_OK);
    assert_int_equal(atomic_load(&s.most_inside), 2);
    tnf_params_free(params);
    tnf_close(file);
    free(s.b.p);
}

/* Many threads load the same parameter at the same time, and it is kept: one reads, the others
 * wait. */
static void test_same_one_is_read_once(void **state)
{
    (void)state;
    struct slow s = { 0 };
    tnf_file *file = open_slow(&s);
    tnf_params *params;
    tnf_params_options o = { .size = sizeof o, .budget = 40 };
    tnf_error e;
    assert_int_equal(tnf_params_new(&params, file, &o, &e), TNF_OK);
    pthread_t threads[8];
    struct job jobs[8];
    for (int i = 0; i < 8; i++) {
        jobs[i] = (struct job) { params, "a", TNF_EBUG, 1 };
        assert_int_equal(pthread_create(&threads[i], NULL, load_once, &jobs[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].status, TNF_OK);
    }
    assert_int_equal(atomic_load(&s.reads), 1);
    tnf_params_stats t = stats_of(params);
    assert_int_equal(t.misses, 1);
    assert_int_equal(t.hits, 7);
    tnf_params_free(params);
    tnf_close(file);
    free(s.b.p);
}

/* A read fails: its caller gets the error, nothing is left, and the next caller tries again. */
static void test_failed_read(void **state)
{
    (void)state;
    struct slow s = { 0 };
    tnf_file *file = open_slow(&s);
    tnf_params *params;
    tnf_params_options o = { .size = sizeof o, .budget = 1000 };
    tnf_error e = { 0 };
    const tnf_param *p;
    assert_int_equal(tnf_params_new(&params, file, &o, &e), TNF_OK);
    atomic_store(&s.failures, 1);
    assert_int_equal(tnf_params_load(&p, params, "a", &e), TNF_EIO);
    assert_null(p);
    tnf_params_stats t = stats_of(params);
    assert_int_equal(t.cached, 0);
    assert_int_equal(t.in_use, 0);
    atomic_store(&s.failures, 1); /* two loads at once: one fails, the other reads for itself */
    struct job a = { params, "b", TNF_OK, 1 }, b = a;
    run_two(&a, &b);
    assert_true((a.status == TNF_EIO) != (b.status == TNF_EIO));
    tnf_params_free(params);
    o.prefetch_prefix = "c";
    atomic_store(&s.failures, 1);
    assert_int_equal(tnf_params_new(&params, file, &o, &e), TNF_EIO);
    assert_null(params);
    tnf_close(file);
    free(s.b.p);
}

static void *load_at_random(void *arg)
{
    static const tnf_str names[] = { TNF_STR("a"), TNF_STR("b"), TNF_STR("c"),
                                     TNF_STR("d"), TNF_STR("f"), TNF_STR("tiny") };
    struct job *job = arg;
    unsigned seed = (unsigned)job->rounds;
    for (int i = 0; i < 400 && job->status == TNF_OK; i++) {
        const tnf_param *p, *q;
        tnf_error e;
        seed = seed * 1103515245 + 12345;
        const char *name = names[seed / 65536 % 6].p, *other = names[seed / 4096 % 6].p;
        job->status = tnf_params_load(&p, job->params, name, &e);
        if (job->status != TNF_OK)
            break;
        if (((const char *)p->data)[p->nbytes - 1] != name[0])
            job->status = TNF_EBUG;
        if (tnf_params_load(&q, job->params, other, &e) == TNF_OK) {
            if (((const char *)q->data)[0] != other[0])
                job->status = TNF_EBUG;
            tnf_params_release(job->params, q);
        }
        if (i % 50 == 0)
            tnf_params_trim(job->params);
        if (i % 7 == 0 && tnf_params_ahead(job->params, names + seed / 65536 % 5, 2, &e) != TNF_OK)
            job->status = TNF_EBUG;
        if (i % 70 == 0 && tnf_params_prefetch(job->params, "ti", &e) != TNF_OK)
            job->status = TNF_EBUG;
        tnf_params_release(job->params, p);
        if (stats_of(job->params).cached_bytes > 130)
            job->status = TNF_EBUG;
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { .budget = 130 });
    pthread_t threads[6];
    struct job jobs[6];
    for (int i = 0; i < 6; i++) {
        jobs[i] = (struct job) { x.params, NULL, TNF_OK, i };
        assert_int_equal(pthread_create(&threads[i], NULL, load_at_random, &jobs[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].status, TNF_OK);
    }
    assert_int_equal(stats_of(x.params).in_use, 0);
    tnf_params_trim(x.params);
    assert_int_equal(stats_of(x.params).cached_bytes, 0);
    end_params(&x);
}

/* ------------------------------------------------------------------- ahead */

#define PATIENCE 60000 /* sleeps; after this many the event will never come */

static void wait_for_ahead(const tnf_params *params, uint64_t n)
{
    for (int i = 0; i < PATIENCE && stats_of(params).ahead != n; i++)
        sleep_briefly();
    assert_int_equal(stats_of(params).ahead, n);
}

static void wait_for_reads(struct slow *s, int n)
{
    for (int i = 0; i < PATIENCE && atomic_load(&s->reads) < n; i++)
        sleep_briefly();
    assert_int_equal(atomic_load(&s->reads), n);
}

static void load_and_check(tnf_params *params, const char *name)
{
    const tnf_param *p;
    tnf_error e;
    assert_int_equal(tnf_params_load(&p, params, name, &e), TNF_OK);
    for (size_t i = 0; i < p->nbytes; i++)
        assert_int_equal(((const char *)p->data)[i], name[0]);
    tnf_params_release(params, p);
}

static const tnf_str abcd[] = { TNF_STR("a"), TNF_STR("b"), TNF_STR("c"), TNF_STR("d") };

/* Without a budget, only parameters that were read ahead are kept, until their first load. */
static void test_ahead(void **state)
{
    (void)state;
    struct slow s = { 0 };
    tnf_file *file = open_slow(&s);
    tnf_params *params;
    tnf_error e = { 0 };
    const tnf_str wrong[] = { TNF_STR("a"), TNF_STR("no such") };
    assert_int_equal(tnf_params_new(&params, file, NULL, &e), TNF_OK);
    assert_int_equal(tnf_params_ahead(params, wrong, 2, &e), TNF_ENOTFOUND);
    assert_non_null(strstr(e.message, "no such"));
    assert_int_equal(tnf_params_ahead(params, wrong, 0, &e), TNF_OK); /* none */
    assert_int_equal(tnf_params_ahead(params, abcd, 3, &e), TNF_OK);
    assert_int_equal(tnf_params_ahead(params, abcd, 3, &e), TNF_OK); /* requested twice */
    wait_for_ahead(params, 3);
    assert_int_equal(stats_of(params).ahead_bytes, 120);
    load_and_check(params, "b");
    load_and_check(params, "a");
    load_and_check(params, "c");
    tnf_params_stats t = stats_of(params);
    assert_true(t.hits == 3 && t.misses == 0 && t.ahead == 0 && t.ahead_bytes == 0);
    assert_int_equal(atomic_load(&s.reads), 3);
    load_and_check(params, "a"); /* not kept any longer */
    assert_int_equal(atomic_load(&s.reads), 4);
    tnf_params_free(params);
    tnf_close(file);
    free(s.b.p);
}

/* Without names: all parameters, in the order of the file, each read once. */
static void test_ahead_of_all(void **state)
{
    (void)state;
    struct slow s = { 0 };
    tnf_file *file = open_slow(&s);
    tnf_params *params;
    tnf_error e = { 0 };
    const size_t n = tnf_file_info(file)->objects;
    assert_int_equal(tnf_params_new(&params, file, NULL, &e), TNF_OK);
    assert_int_equal(tnf_params_ahead(params, NULL, 0, &e), TNF_OK);
    wait_for_ahead(params, n);
    assert_int_equal(stats_of(params).ahead_bytes, 328);
    assert_int_equal(atomic_load(&s.reads), 3); /* those of 40 bytes are counted */
    for (size_t i = 0; i < n; i++)
        load_and_check(params, tnf_at(file, i)->name.p);
    assert_int_equal(atomic_load(&s.reads), 3);
    assert_int_equal(stats_of(params).hits, n);
    tnf_params_free(params);
    tnf_close(file);
    free(s.b.p);
}

/* If two tensors have the same name, the one that cannot be loaded is not read ahead. */
static void test_ahead_of_duplicates(void **state)
{
    (void)state;
    bytes b = load_fixture("gptrs-checkpoint", "reject", "duplicate.bin");
    tnf_file *file;
    tnf_params *params;
    const tnf_param *p;
    tnf_error e = { 0 };
    assert_int_equal(open_bytes(&file, &b, true, &e), TNF_OK);
    assert_int_equal(tnf_params_new(&params, file, NULL, &e), TNF_OK);
    assert_int_equal(tnf_params_ahead(params, NULL, 0, &e), TNF_OK);
    wait_for_ahead(params, 1);
    assert_int_equal(tnf_params_load(&p, params, "w", &e), TNF_OK);
    assert_ptr_equal(p->object, tnf_at(file, 1));
    tnf_params_release(params, p);
    assert_int_equal(stats_of(params).ahead, 0);
    assert_int_equal(stats_of(params).misses, 0);
    tnf_params_free(params);
    tnf_close(file);
    free(b.p);
}

/* A load waits for a read in progress; a read that has not begun is done by the loading thread. */
static void test_ahead_is_waited_for(void **state)
{
    (void)state;
    struct slow s = { 0 };
    tnf_file *file = open_slow(&s);
    tnf_params *params;
    tnf_error e = { 0 };
    pthread_t one, two;
    assert_int_equal(tnf_params_new(&params, file, NULL, &e), TNF_OK);
    atomic_store(&s.shut, true);
    assert_int_equal(tnf_params_ahead(params, abcd, 2, &e), TNF_OK);
    wait_for_reads(&s, 1);
    struct job a = { params, "a", TNF_EBUG, 1 }, b = { params, "b", TNF_EBUG, 1 };
    assert_int_equal(pthread_create(&one, NULL, load_once, &a), 0);
    assert_int_equal(pthread_create(&two, NULL, load_once, &b), 0);
    wait_for_reads(&s, 2); /* of b, by the loading thread: the reader is busy with a */
    atomic_store(&s.shut, false);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert_true(a.status == TNF_OK && b.status == TNF_OK);
    tnf_params_stats t = stats_of(params);
    assert_true(t.hits == 1 && t.misses == 1 && t.ahead == 0);
    tnf_params_free(params);
    assert_int_equal(atomic_load(&s.reads), 2);
    tnf_close(file);
    free(s.b.p);
}

/* Reading ahead stops at the budget, and goes on after a load. */
static void test_ahead_within_budget(void **state)
{
    (void)state;
    struct slow s = { 0 };
    tnf_file *file = open_slow(&s);
    tnf_params *params;
    tnf_params_options o = { .size = sizeof o, .budget = 100 };
    tnf_error e = { 0 };
    assert_int_equal(tnf_params_new(&params, file, &o, &e), TNF_OK);
    assert_int_equal(tnf_params_ahead(params, abcd, 4, &e), TNF_OK);
    wait_for_ahead(params, 2);
    for (int i = 0; i < 20; i++) {
        sleep_briefly();
        assert_int_equal(stats_of(params).ahead, 2);
    }
    load_and_check(params, "a");
    wait_for_reads(&s, 3);
    wait_for_ahead(params, 2);
    load_and_check(params, "b");
    load_and_check(params, "c");
    load_and_check(params, "d");
    assert_int_equal(atomic_load(&s.reads), 3);
    assert_true(stats_of(params).cached_bytes <= 100);
    tnf_params_free(params);
    o.budget = 30; /* too small for any parameter: nothing is read ahead, and loads read */
    assert_int_equal(tnf_params_new(&params, file, &o, &e), TNF_OK);
    assert_int_equal(tnf_params_ahead(params, abcd, 4, &e), TNF_OK);
    load_and_check(params, "a");
    tnf_params_free(params);
    assert_int_equal(atomic_load(&s.reads), 4);
    tnf_close(file);
    free(s.b.p);
}

/* Trimming cancels reading ahead, also a read in progress; so does freeing. */
static void test_ahead_called_off(void **state)
{
    (void)state;
    struct slow s = { 0 };
    tnf_file *file = open_slow(&s);
    tnf_params *params;
    tnf_error e = { 0 };
    assert_int_equal(tnf_params_new(&params, file, NULL, &e), TNF_OK);
    atomic_store(&s.shut, true);
    assert_int_equal(tnf_params_ahead(params, abcd, 4, &e), TNF_OK);
    wait_for_reads(&s, 1);
    tnf_params_trim(params);
    atomic_store(&s.shut, false);
    for (int i = 0; i < PATIENCE && stats_of(params).loaded_bytes != 40; i++)
        sleep_briefly();
    load_and_check(params, "d"); /* the reader has skipped it, or will */
    tnf_params_stats t = stats_of(params);
    assert_true(t.ahead == 0 && t.ahead_bytes == 0 && t.misses == 1);
    assert_int_equal(tnf_params_ahead(params, abcd, 1, &e), TNF_OK);
    wait_for_ahead(params, 1);
    tnf_params_trim(params);
    assert_int_equal(stats_of(params).ahead, 0);
    assert_int_equal(tnf_params_ahead(params, abcd, 4, &e), TNF_OK);
    tnf_params_free(params); /* during a read */
    assert_true(atomic_load(&s.reads) <= 7);
    tnf_close(file);
    free(s.b.p);
}

/* A failed read ahead is reported to the loading thread, or not at all if its own read succeeds. */
static void test_ahead_fails(void **state)
{
    (void)state;
    struct slow s = { 0 };
    tnf_file *file = open_slow(&s);
    tnf_params *params;
    const tnf_param *p;
    tnf_error e = { 0 };
    const tnf_str ba[] = { TNF_STR("b"), TNF_STR("a") };
    assert_int_equal(tnf_params_new(&params, file, NULL, &e), TNF_OK);
    atomic_store(&s.failures, 1);
    assert_int_equal(tnf_params_ahead(params, ba, 2, &e), TNF_OK);
    wait_for_ahead(params, 1); /* a; b was tried before */
    load_and_check(params, "b");
    assert_int_equal(stats_of(params).misses, 1);
    load_and_check(params, "a");
    atomic_store(&s.failures, 2);
    assert_int_equal(tnf_params_ahead(params, ba, 1, &e), TNF_OK);
    wait_for_reads(&s, 4);
    assert_int_equal(tnf_params_load(&p, params, "b", &e), TNF_EIO);
    tnf_params_free(params);
    tnf_close(file);
    free(s.b.p);
}

/* ------------------------------------------------------------------- memory */

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { 0 });
    int n = 0;
    for (bool done = false; !done; n++) {
        struct memory_log f = { .fail_at = (uint64_t)n + 1, .fail_once = true };
        tnf_params_options o = { .size = sizeof o,
                                 .budget = 100,
                                 .prefetch_prefix = "a",
                                 .allocator = memory_allocator(&f) };
        tnf_params *params;
        const tnf_param *p = NULL;
        tnf_error e = { 0 };
        tnf_status s = tnf_params_new(&params, x.file, &o, &e);
        if (s == TNF_OK) {
            s = tnf_params_load(&p, params, "b", &e);
            done = s == TNF_OK;
        }
        assert_true(s == TNF_OK || s == TNF_ENOMEM);
        tnf_params_free(params);
        assert_int_equal(f.live + f.wrong_sizes, 0);
    }
    assert_true(n > 4);
    end_params(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_different_ones_in_parallel),
        cmocka_unit_test(test_same_one_is_read_once),
        cmocka_unit_test(test_failed_read),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_ahead_of_all),
        cmocka_unit_test(test_ahead_of_duplicates),
        cmocka_unit_test(test_ahead_is_waited_for),
        cmocka_unit_test(test_ahead_within_budget),
        cmocka_unit_test(test_ahead_called_off),
        cmocka_unit_test(test_ahead_fails),
        cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
