/* SPDX-License-Identifier: MIT */
/* Derived forms and the cache under eight threads: no form is made twice while it is in memory, the
 * budget holds at each step, and every form that was made is dropped once. */
#include "params_files.h"

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 8, NAMES = 6, KINDS = 3, REQUESTS = 12500, BUDGET = 150 };

static const char *const names[NAMES] = { "a", "b", "c", "d", "f", "tiny" };
static const char *const kinds[KINDS] = { "k0", "k1", "k2" };

/* One form: what its functions have seen. */
struct seen {
    atomic_int making, made, dropped;
};

static struct world {
    tnf_params *params;
    tnf_derive how[KINDS];
    struct seen seen[NAMES][KINDS];
    atomic_int failures; /* every 50th make fails */
    atomic_int makes, failed, bad, ready;
    uint64_t budget;
    bool slow;
} w;

static void note_fault(const char *what)
{
    if (atomic_fetch_add(&w.bad, 1) == 0)
        print_message("%s\n", what);
}

static size_t name_number(const char *name)
{
    for (size_t i = 0; i < NAMES; i++)
        if (names[i][0] == name[0])
            return i;
    note_fault("a parameter with an unknown name");
    return 0;
}

struct data {
    struct seen *seen;
    char letter, kind;
};

/* The size in the budget: some forms are small and pinned, some too large to be kept. */
static size_t form_size(size_t kind, size_t nbytes)
{
    return kind == 0 ? 4 : kind == 1 ? nbytes / 2 : 2 * nbytes;
}

static void sleep_briefly(void)
{
    nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static tnf_status make_form(void *ctx, void **data, size_t *nbytes, const tnf_param *param,
                            tnf_error *e)
{
    const size_t kind = (size_t)(*(const tnf_derive *)ctx).kind[1] - '0';
    struct seen *seen = &w.seen[name_number(param->object->name.p)][kind];
    tnf_status status = TNF_OK;
    if (atomic_fetch_add(&seen->making, 1) != 0)
        note_fault("two threads make a form at once");
    if (w.slow)
        sleep_briefly();
    if (atomic_fetch_add(&w.makes, 1) % 50 == 49 || atomic_fetch_sub(&w.failures, 1) > 0) {
        atomic_fetch_add(&w.failed, 1);
        status = tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "on purpose");
    } else {
        struct data *d = malloc(sizeof *d);
        *d = (struct data) { seen, *(const char *)param->data, (char)('0' + kind) };
        *data = d;
        *nbytes = form_size(kind, param->nbytes);
        atomic_fetch_add(&seen->made, 1);
    }
    atomic_fetch_sub(&seen->making, 1);
    return status;
}

static void drop_form(void *ctx, void *data, size_t nbytes)
{
    struct data *d = data;
    (void)ctx, (void)nbytes;
    if (atomic_fetch_add(&d->seen->dropped, 1) >= atomic_load(&d->seen->made))
        note_fault("a form is dropped that was not made");
    free(d);
}

static void begin_world(struct fixture *x, tnf_params_options o)
{
    memset(&w, 0, sizeof w);
    begin_params(x, o);
    w.params = x->params;
    w.budget = o.budget;
    for (size_t k = 0; k < KINDS; k++)
        w.how[k] = (tnf_derive) { sizeof w.how[k], kinds[k], make_form, drop_form, &w.how[k] };
}

/* Frees the source, and returns the number of forms that were made. */
static int end_world(struct fixture *x)
{
    int made = 0;
    assert_int_equal(stats_of(x->params).in_use, 0);
    assert_int_equal(stats_of(x->params).derived_in_use, 0);
    const uint64_t counted = stats_of(x->params).made;
    end_params(x);
    for (size_t i = 0; i < NAMES * KINDS; i++) {
        struct seen *s = &w.seen[i / KINDS][i % KINDS];
        assert_int_equal(atomic_load(&s->made), atomic_load(&s->dropped));
        made += atomic_load(&s->made);
    }
    assert_int_equal(made, counted);
    assert_int_equal(made + atomic_load(&w.failed), atomic_load(&w.makes));
    assert_int_equal(atomic_load(&w.bad), 0);
    return made;
}

static void check_budget(void)
{
    const tnf_params_stats t = stats_of(w.params);
    if (t.cached_bytes > w.budget || t.derived_bytes > t.cached_bytes ||
        t.pinned_bytes > t.cached_bytes)
        note_fault("the budget does not hold");
}

/* Uses a form, and checks that its data are there. Failures on purpose are no fault. */
static void use_form(size_t name, size_t kind, bool by_key)
{
    const tnf_derived *form, *again = NULL;
    tnf_error e;
    tnf_status status = tnf_params_derive(&form, w.params, names[name], &w.how[kind], &e);
    if (status != TNF_OK) {
        if (status != TNF_EIO || strcmp(e.message, "on purpose") != 0)
            note_fault("a request failed");
        return;
    }
    check_budget();
    const struct data *d = form->data;
    if (d->letter != names[name][0] || d->kind != (char)('0' + kind))
        note_fault("the form of another parameter or kind");
    if (by_key &&
        (tnf_params_find_derived(&again, w.params, form->key, kinds[kind], &e) != TNF_OK ||
         again != form))
        note_fault("a form in use is not found by its key");
    tnf_params_release_derived(w.params, again);
    tnf_params_release_derived(w.params, form);
}

static void use_param(size_t name)
{
    const tnf_param *p;
    tnf_error e;
    if (tnf_params_load(&p, w.params, names[name], &e) != TNF_OK)
        note_fault("a load failed");
    else if (*(const char *)p->data != names[name][0])
        note_fault("another parameter");
    tnf_params_release(w.params, p);
}

static void *use_at_random(void *arg)
{
    unsigned seed = *(const unsigned *)arg;
    for (int i = 0; i < REQUESTS; i++) {
        seed = seed * 1103515245 + 12345;
        const size_t name = seed / 65536 % NAMES, kind = seed / 8192 % KINDS;
        if (i % 5 == 4)
            use_param(name);
        else
            use_form(name, kind, i % 7 == 0);
        check_budget();
        if (i % 1000 == 999)
            tnf_params_trim(w.params);
    }
    return NULL;
}

static void run_threads(void *(*work)(void *))
{
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &seeds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* 100,000 requests; forms and parameters push each other out of a cache that is too small. */
static void test_small_budget(void **state)
{
    (void)state;
    struct fixture x;
    begin_world(&x, (tnf_params_options) { .budget = BUDGET, .small_bytes = 8 });
    run_threads(use_at_random);
    const tnf_params_stats t = stats_of(x.params);
    assert_true(t.evictions > 100);
    assert_true(t.derived_hits > 100);
    const int made = end_world(&x);
    assert_true(made > NAMES * KINDS);
}

static void *use_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < REQUESTS; i++)
        use_form((size_t)i % NAMES, (size_t)i / NAMES % KINDS, i % 7 == 0);
    return NULL;
}

/* As long as nothing is evicted, each form is made once. */
static void test_made_once(void **state)
{
    (void)state;
    struct fixture x;
    begin_world(&x, (tnf_params_options) { .budget = UINT64_MAX });
    run_threads(use_all);
    const tnf_params_stats t = stats_of(x.params);
    assert_true(t.made == NAMES * KINDS && t.misses == NAMES && t.evictions == 0);
    assert_int_equal(t.made + t.derived_hits,
                     THREADS * (REQUESTS + (REQUESTS + 6) / 7)); /* every 7th is found again */
    assert_int_equal(end_world(&x), NAMES * KINDS);
}

/* All threads request a form at once, which takes a while. */
static void *use_one(void *arg)
{
    (void)arg;
    atomic_fetch_add(&w.ready, 1);
    while (atomic_load(&w.ready) < THREADS)
        sleep_briefly();
    use_form(0, 1, false);
    return NULL;
}

/* Failed makes: each is reported to one thread, and another one tries again. */
static void test_failures(void **state)
{
    (void)state;
    struct fixture x;
    begin_world(&x, (tnf_params_options) { .budget = 1000 });
    w.slow = true;
    atomic_store(&w.failures, 3);
    run_threads(use_one);
    assert_int_equal(atomic_load(&w.makes), 4);
    assert_int_equal(stats_of(x.params).made, 1);
    assert_int_equal(stats_of(x.params).derived_hits, THREADS - 4);
    assert_int_equal(end_world(&x), 1);
}

/* ---------------------------------------------------------------- resolver */

/* A resolver for several threads: it drops a form when nobody uses it, if it is told to. */
static struct table {
    pthread_mutex_t mutex;
    struct entry {
        tnf_id key;
        char kind[4];
        void *data;
        size_t nbytes;
        int users;
        bool there;
    } entries[64];
    int sets, gets, releases;
    bool forgets;
} table = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static bool get_entry(void *ctx, tnf_derived *form)
{
    bool found = false;
    (void)ctx;
    pthread_mutex_lock(&table.mutex);
    for (int i = 0; i < 64 && !found; i++) {
        struct entry *y = &table.entries[i];
        if (!y->there || memcmp(y->key.bytes, form->key.bytes, 16) != 0 ||
            strcmp(y->kind, form->kind) != 0)
            continue;
        found = true;
        y->users++;
        table.gets++;
        form->data = y->data;
        form->nbytes = y->nbytes;
    }
    pthread_mutex_unlock(&table.mutex);
    return found;
}

static tnf_status set_entry(void *ctx, const tnf_derived *form, tnf_drop_form_fn drop,
                            void *drop_ctx, tnf_error *e)
{
    tnf_status status = TNF_EIO;
    (void)ctx, (void)drop, (void)drop_ctx;
    pthread_mutex_lock(&table.mutex);
    for (int i = 0; i < 64 && status != TNF_OK; i++) {
        struct entry *y = &table.entries[i];
        if (y->there)
            continue;
        *y = (struct entry) { form->key, "", form->data, form->nbytes, 1, true };
        snprintf(y->kind, sizeof y->kind, "%s", form->kind);
        table.sets++;
        status = TNF_OK;
    }
    pthread_mutex_unlock(&table.mutex);
    return status == TNF_OK ? TNF_OK : tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "no entry is free");
}

static void drop_unused(void)
{
    for (int i = 0; i < 64; i++) {
        struct entry *y = &table.entries[i];
        if (!y->there || y->users > 0)
            continue;
        y->there = false;
        drop_form(NULL, y->data, y->nbytes);
    }
}

static void release_entry(void *ctx, const tnf_derived *form)
{
    (void)ctx;
    pthread_mutex_lock(&table.mutex);
    table.releases++;
    for (int i = 0; i < 64; i++)
        if (table.entries[i].there && table.entries[i].data == form->data)
            table.entries[i].users--;
    if (table.forgets)
        drop_unused();
    pthread_mutex_unlock(&table.mutex);
}

static void test_resolver(void **state)
{
    (void)state;
    static const tnf_resolver_ops ops = { TNF_RESOLVER_OPS_VERSION, get_entry, set_entry,
                                          release_entry };
    for (int i = 0; i < 2; i++) {
        struct fixture x;
        begin_world(&x, (tnf_params_options) { .budget = BUDGET, .resolver = &ops });
        table.sets = table.gets = table.releases = 0;
        table.forgets = i == 1;
        run_threads(use_all);
        assert_int_equal(stats_of(x.params).derived, 0);
        assert_int_equal(table.sets, stats_of(x.params).made);
        assert_int_equal(table.sets + table.gets, table.releases);
        if (i == 0)
            assert_int_equal(table.sets, NAMES * KINDS);
        drop_unused();
        end_world(&x);
    }
}

/* -------------------------------------------------------------- namespaces */

static uint64_t taken[THREADS][1000];

static void *take_namespaces(void *arg)
{
    uint64_t *own = taken[*(const unsigned *)arg];
    for (size_t i = 0; i < 1000; i++) {
        const tnf_id id = tnf_namespace_next();
        for (size_t k = 8; k-- > 0;)
            own[i] = own[i] << 8 | id.bytes[k];
    }
    return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Every caller gets another number, and no number is left out. */
static void test_namespaces(void **state)
{
    (void)state;
    uint64_t *all = &taken[0][0];
    run_threads(take_namespaces);
    qsort(all, THREADS * 1000, sizeof *all, compare_numbers);
    for (size_t i = 1; i < THREADS * 1000; i++)
        assert_int_equal(all[i], all[i - 1] + 1);
    assert_true(all[0] >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_namespaces), cmocka_unit_test(test_small_budget),
        cmocka_unit_test(test_made_once),  cmocka_unit_test(test_failures),
        cmocka_unit_test(test_resolver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
