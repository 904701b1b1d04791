/* SPDX-License-Identifier: MIT */
/* Derived forms of parameters: made once, kept within the budget, dropped once. One thread. */
#include "params_files.h"

#include "base/error.h"

/* Counts what it makes. A form has `size` bytes, the first one that of the parameter plus `plus`.
 */
struct maker {
    size_t size;
    char plus;
    int calls, drops, failures;
};

static tnf_status make_form(void *ctx, void **data, size_t *nbytes, const tnf_param *param,
                            tnf_error *e)
{
    struct maker *m = ctx;
    m->calls++;
    if (m->failures > 0 && m->failures--)
        return tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "on purpose");
    char *form = malloc(m->size + 1);
    assert_non_null(form);
    form[0] = (char)(*(const char *)param->data + m->plus);
    *data = form;
    *nbytes = m->size;
    return TNF_OK;
}

static void drop_form(void *ctx, void *data, size_t nbytes)
{
    struct maker *m = ctx;
    assert_int_equal(nbytes, m->size);
    m->drops++;
    free(data);
}

static tnf_derive how_of(struct maker *m, const char *kind)
{
    return (tnf_derive) { sizeof(tnf_derive), kind, make_form, drop_form, m };
}

static const tnf_derived *derive_form(struct fixture *x, const char *name, const char *kind,
                                      struct maker *m)
{
    const tnf_derive how = how_of(m, kind);
    const tnf_derived *form;
    tnf_error e = { 0 };
    if (tnf_params_derive(&form, x->params, name, &how, &e) != TNF_OK)
        fail_msg("%s", e.message);
    assert_int_equal(*(const char *)form->data, name[0] + m->plus);
    assert_int_equal(form->nbytes, m->size);
    assert_string_equal(form->kind, kind);
    return form;
}

static void derive_and_release(struct fixture *x, const char *name, const char *kind,
                               struct maker *m)
{
    tnf_params_release_derived(x->params, derive_form(x, name, kind, m));
}

static void load_and_release(struct fixture *x, const char *name)
{
    const tnf_param *p;
    tnf_error e = { 0 };
    assert_int_equal(tnf_params_load(&p, x->params, name, &e), TNF_OK);
    tnf_params_release(x->params, p);
}

static void test_made_once(void **state)
{
    (void)state;
    struct fixture x;
    struct maker m = { .size = 20, .plus = 1 }, other = { .size = 4, .plus = 2 };
    begin_params(&x, (tnf_params_options) { .budget = UINT64_MAX });
    const tnf_derived *one = derive_form(&x, "a", "packed", &m),
                      *two = derive_form(&x, "a", "packed", &m);
    assert_ptr_equal(one, two);
    derive_and_release(&x, "a", "transposed", &other);
    derive_and_release(&x, "b", "packed", &m);
    tnf_params_stats t = stats_of(x.params);
    assert_true(t.made == 3 && t.derived_hits == 1 && t.derived == 3 && t.derived_bytes == 44);
    assert_int_equal(t.derived_in_use, 1);
    assert_int_equal(t.cached, 2);
    assert_int_equal(t.cached_bytes, 80 + 44);
    assert_int_equal(t.misses, 2);
    assert_int_equal(t.in_use, 0);
    tnf_params_release_derived(x.params, one);
    tnf_params_release_derived(x.params, two);
    assert_int_equal(stats_of(x.params).derived_in_use, 0);
    derive_and_release(&x, "a", "packed", &m);
    assert_int_equal(m.calls, 2);
    assert_int_equal(other.calls, 1);
    assert_int_equal(m.drops, 0);
    end_params(&x);
    assert_int_equal(m.drops, 2);
    assert_int_equal(other.drops, 1);
}

/* By key and kind, as gpt.rs' resolver finds them. The key is that of the published vectors. */
static void test_found_by_key(void **state)
{
    (void)state;
    static const tnf_id key = { { 0x7e, 0x83, 0x16, 0x2c, 0xdf, 0x60, 0x94, 0x41, 0xfb, 0xe4, 0xd4,
                                  0x47, 0x66, 0x3a, 0x42, 0xad } };
    const tnf_id space = tnf_namespace_id(0, 1), unknown = { { 1 } };
    struct fixture x;
    struct maker m = { .size = 20 };
    const tnf_derive how = how_of(&m, "packed");
    const tnf_derived *form, *found;
    tnf_error e = { 0 };
    tnf_id id;
    begin_params(&x, (tnf_params_options) { .budget = 1000, .name_space = &space });
    assert_int_equal(tnf_params_find_derived(&found, x.params, key, "packed", &e), TNF_ENOTFOUND);
    assert_null(found);
    assert_non_null(strstr(e.message, "'packed' of 'a'"));
    assert_int_equal(stats_of(x.params).misses, 0);
    assert_int_equal(tnf_param_id(&id, "a", 1, &e), TNF_OK);
    assert_int_equal(tnf_params_derive_id(&form, x.params, id, &how, &e), TNF_OK);
    assert_memory_equal(form->key.bytes, key.bytes, 16);
    assert_memory_equal(form->base_id.bytes, id.bytes, 16);
    assert_int_equal(tnf_params_find_derived(&found, x.params, key, "packed", &e), TNF_OK);
    assert_ptr_equal(found, form);
    tnf_params_release_derived(x.params, found);
    tnf_params_release_derived(x.params, form);
    assert_int_equal(tnf_params_find_derived(&found, x.params, key, "flat", &e), TNF_ENOTFOUND);
    assert_int_equal(tnf_params_find_derived(&found, x.params, unknown, "packed", &e),
                     TNF_ENOTFOUND);
    assert_non_null(strstr(e.message, "key 01000000"));
    assert_int_equal(tnf_params_derive(&form, x.params, "none", &how, &e), TNF_ENOTFOUND);
    assert_int_equal(tnf_params_derive_id(&form, x.params, unknown, &how, &e), TNF_ENOTFOUND);
    assert_null(form);
    assert_int_equal(tnf_params_derive_n(&form, x.params, "ab", 1, &how, &e), TNF_OK);
    tnf_params_release_derived(x.params, form);
    assert_int_equal(m.calls, 1);
    end_params(&x);
}

/* Of parameters and forms, the least recently used is evicted first. */
static void test_evicted_in_order(void **state)
{
    (void)state;
    struct fixture x;
    struct maker m = { .size = 40 };
    begin_params(&x, (tnf_params_options) { .budget = 130 });
    derive_and_release(&x, "a", "p", &m); /* a, a:p */
    load_and_release(&x, "b");            /* a, a:p, b: 120 */
    load_and_release(&x, "c");            /* a:p, b, c: 120 */
    tnf_params_stats t = stats_of(x.params);
    assert_true(t.evictions == 1 && t.cached == 2 && t.derived == 1 && t.cached_bytes == 120);
    derive_and_release(&x, "a", "p", &m); /* b, c, a:p */
    assert_int_equal(m.calls, 1);
    load_and_release(&x, "d"); /* a:p, d: 120 */
    t = stats_of(x.params);
    assert_true(t.evictions == 3 && t.cached == 1 && t.derived == 1 && t.cached_bytes == 120);
    load_and_release(&x, "c"); /* d, c: the form had not been used since */
    t = stats_of(x.params);
    assert_true(t.derived == 0 && t.derived_bytes == 0 && t.cached_bytes == 120);
    assert_int_equal(m.drops, 1);
    derive_and_release(&x, "a", "p", &m);
    assert_int_equal(m.calls, 2);
    end_params(&x);
    assert_int_equal(m.drops, 2);
}

static void test_evicted_in_use(void **state)
{
    (void)state;
    struct fixture x;
    struct maker m = { .size = 40 };
    begin_params(&x, (tnf_params_options) { .budget = 130 });
    const tnf_derived *form = derive_form(&x, "a", "p", &m);
    load_and_release(&x, "f");
    assert_int_equal(stats_of(x.params).derived, 0);
    assert_int_equal(stats_of(x.params).derived_in_use, 1);
    assert_int_equal(m.drops, 0);
    assert_int_equal(*(const char *)form->data, 'a');
    assert_ptr_equal(derive_form(&x, "a", "p", &m), form); /* cached again */
    assert_int_equal(stats_of(x.params).derived, 1);
    tnf_params_trim(x.params);
    assert_int_equal(stats_of(x.params).derived, 1);
    load_and_release(&x, "f");
    tnf_params_release_derived(x.params, form);
    assert_int_equal(m.drops, 0);
    tnf_params_release_derived(x.params, form);
    assert_int_equal(m.drops, 1);
    assert_int_equal(m.calls, 1);
    end_params(&x);
    assert_int_equal(m.drops, 1);
}

/* A form beyond the budget is used, but not kept; without a budget none is kept. */
static void test_not_kept(void **state)
{
    (void)state;
    static const uint64_t budgets[] = { 0, 30 };
    for (size_t i = 0; i < 2; i++) {
        struct fixture x;
        struct maker m = { .size = 31 };
        begin_params(&x, (tnf_params_options) { .budget = budgets[i] });
        derive_and_release(&x, "a", "p", &m);
        derive_and_release(&x, "a", "p", &m);
        assert_int_equal(m.calls, 2);
        assert_int_equal(m.drops, 2);
        assert_int_equal(stats_of(x.params).cached_bytes, 0);
        end_params(&x);
        assert_int_equal(m.drops, 2);
    }
}

/* A budget of 0, which gpt.rs' configs can have: nothing is kept. */
static void test_budget_zero(void **state)
{
    (void)state;
    struct fixture x;
    struct maker m = { .size = 4 };
    begin_params(
        &x, (tnf_params_options) {
                .budget = 500, .small_bytes = 100, .prefetch_prefix = "a", .budget_zero = true });
    tnf_params_stats t = stats_of(x.params);
    assert_true(t.budget == 0 && t.cached == 0 && t.misses == 0);
    derive_and_release(&x, "tiny", "p", &m);
    assert_int_equal(stats_of(x.params).cached_bytes, 0);
    assert_int_equal(m.drops, 1);
    end_params(&x);
}

/* Small forms, and those of prefetched parameters, are never evicted. */
static void test_pinned(void **state)
{
    (void)state;
    struct fixture x;
    struct maker small = { .size = 8 }, large = { .size = 20 }, huge = { .size = 100 };
    begin_params(&x,
                 (tnf_params_options) { .budget = 130, .small_bytes = 8, .prefetch_prefix = "a" });
    derive_and_release(&x, "a", "large", &large);
    derive_and_release(&x, "b", "small", &small);
    tnf_params_stats t = stats_of(x.params);
    assert_int_equal(t.pinned_bytes, 40 + 20 + 8);
    assert_int_equal(t.cached_bytes, 40 + 20 + 8 + 40);
    load_and_release(&x, "c");                  /* evicts b */
    derive_and_release(&x, "a", "huge", &huge); /* does not fit beside the pinned ones */
    assert_int_equal(huge.drops, 1);
    load_and_release(&x, "f");
    derive_and_release(&x, "a", "large", &large);
    derive_and_release(&x, "b", "small", &small);
    assert_int_equal(large.calls + small.calls, 2);
    tnf_params_trim(x.params); /* pinned or not */
    t = stats_of(x.params);
    assert_true(t.cached_bytes == 0 && t.pinned_bytes == 0 && t.derived == 0 && t.cached == 0);
    assert_int_equal(large.drops + small.drops, 2);
    end_params(&x);
}

/* The caller gets the error of a failed make, nothing is left, and the next request tries again. */
static void test_failing_make(void **state)
{
    (void)state;
    struct fixture x;
    struct maker m = { .size = 20, .failures = 1 };
    tnf_derive how = how_of(&m, "p");
    const tnf_derived *form;
    tnf_error e = { 0 };
    begin_params(&x, (tnf_params_options) { .budget = 1000 });
    assert_int_equal(tnf_params_derive(&form, x.params, "a", &how, &e), TNF_EIO);
    assert_string_equal(e.message, "on purpose");
    assert_null(form);
    tnf_params_stats t = stats_of(x.params);
    assert_true(t.made == 0 && t.derived == 0 && t.derived_in_use == 0 && t.in_use == 0);
    derive_and_release(&x, "a", "p", &m);
    assert_int_equal(m.calls, 2);
    how.kind = NULL;
    assert_int_equal(tnf_params_derive(&form, x.params, "a", &how, &e), TNF_EINVAL);
    how = how_of(&m, "p");
    how.make = NULL;
    assert_int_equal(tnf_params_derive(&form, x.params, "a", &how, &e), TNF_EINVAL);
    how = how_of(&m, "without drop");
    how.drop = NULL;
    assert_int_equal(tnf_params_derive(&form, x.params, "a", &how, &e), TNF_OK);
    void *data = form->data;
    tnf_params_release_derived(x.params, form);
    end_params(&x);
    free(data); /* it is the caller's */
    assert_int_equal(m.drops, 1);
}

/* A make that uses the source: another form of the parameter, another parameter, and itself. */
struct nested {
    struct fixture *x;
    struct maker *inner;
};

static tnf_status make_nested(void *ctx, void **data, size_t *nbytes, const tnf_param *param,
                              tnf_error *e)
{
    struct nested *n = ctx;
    const tnf_derive own = { sizeof own, "nested", make_nested, NULL, ctx };
    const tnf_derived *form;
    (void)param;
    derive_and_release(n->x, "a", "inner", n->inner);
    derive_and_release(n->x, "b", "inner", n->inner);
    load_and_release(n->x, "c");
    assert_int_equal(tnf_params_derive(&form, n->x->params, "a", &own, e), TNF_EINVAL);
    assert_non_null(strstr(e->message, "the function that makes it"));
    assert_int_equal(tnf_params_find_derived(&form, n->x->params, param->key, "nested", e),
                     TNF_EINVAL);
    *data = n;
    *nbytes = 16;
    return TNF_OK;
}

static void test_nested(void **state)
{
    (void)state;
    struct fixture x;
    struct maker inner = { .size = 12 };
    struct nested n = { &x, &inner };
    const tnf_derive how = { sizeof how, "nested", make_nested, NULL, &n };
    const tnf_derived *form;
    tnf_error e = { 0 };
    begin_params(&x, (tnf_params_options) { .budget = 1000 });
    assert_int_equal(tnf_params_derive(&form, x.params, "a", &how, &e), TNF_OK);
    assert_ptr_equal(form->data, &n);
    tnf_params_release_derived(x.params, form);
    assert_int_equal(stats_of(x.params).made, 3);
    end_params(&x);
    assert_int_equal(inner.drops, 2);
}

/* ---------------------------------------------------------------- resolver */

/* A resolver that keeps everything, and counts the users of each form. */
struct table {
    struct entry {
        tnf_id key;
        char kind[16];
        void *data;
        size_t nbytes;
        tnf_drop_form_fn drop;
        void *ctx;
        int users;
    } entries[16];
    int n, gets, sets, releases;
    bool full;
};

static bool get_entry(void *ctx, tnf_derived *form)
{
    struct table *t = ctx;
    t->gets++;
    for (int i = 0; i < t->n; i++) {
        struct entry *y = &t->entries[i];
        if (memcmp(y->key.bytes, form->key.bytes, 16) != 0 || strcmp(y->kind, form->kind) != 0)
            continue;
        y->users++;
        form->data = y->data;
        form->nbytes = y->nbytes;
        return true;
    }
    return false;
}

static tnf_status set_entry(void *ctx, const tnf_derived *form, tnf_drop_form_fn drop,
                            void *drop_ctx, tnf_error *e)
{
    struct table *t = ctx;
    t->sets++;
    if (t->full)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "the table is full");
    struct entry *y = &t->entries[t->n++];
    *y = (struct entry) { form->key, "", form->data, form->nbytes, drop, drop_ctx, 1 };
    snprintf(y->kind, sizeof y->kind, "%s", form->kind);
    return TNF_OK;
}

static void release_entry(void *ctx, const tnf_derived *form)
{
    struct table *t = ctx;
    t->releases++;
    for (int i = 0; i < t->n; i++)
        if (t->entries[i].data == form->data)
            t->entries[i].users--;
}

static const tnf_resolver_ops table_ops = { TNF_RESOLVER_OPS_VERSION, get_entry, set_entry,
                                            release_entry };

static void clear_table(struct table *t)
{
    for (int i = 0; i < t->n; i++) {
        assert_int_equal(t->entries[i].users, 0);
        t->entries[i].drop(t->entries[i].ctx, t->entries[i].data, t->entries[i].nbytes);
    }
    t->n = 0;
}

/* The forms are the resolver's: no budget, trimming or freeing of a source drops them. Sources of
 * one namespace share them, sources of different ones do not. */
static void test_resolver(void **state)
{
    (void)state;
    struct table t = { .n = 0 };
    struct fixture x, y, z;
    struct maker m = { .size = 500 };
    const tnf_id space = tnf_namespace_id(7, 0);
    tnf_params_options o = {
        .budget = 100, .name_space = &space, .resolver = &table_ops, .resolver_ctx = &t
    };
    begin_params(&x, o);
    const tnf_derived *one = derive_form(&x, "a", "p", &m), *two = derive_form(&x, "a", "p", &m);
    assert_ptr_equal(one, two);
    assert_true(t.gets == 1 && t.sets == 1 && t.releases == 0);
    tnf_params_release_derived(x.params, one);
    assert_int_equal(t.releases, 0);
    tnf_params_release_derived(x.params, two);
    assert_true(t.releases == 1 && t.entries[0].users == 0);
    tnf_params_trim(x.params);
    derive_and_release(&x, "a", "p", &m); /* found by get */
    assert_true(t.gets == 2 && t.sets == 1 && t.releases == 2);
    tnf_params_stats s = stats_of(x.params);
    assert_true(s.made == 1 && s.derived_hits == 2 && s.derived == 0 && s.cached_bytes == 0);
    assert_int_equal(s.derived_in_use, 0);
    begin_params(&y, o);
    derive_and_release(&y, "a", "p", &m);
    assert_int_equal(m.calls, 1);
    assert_int_equal(stats_of(y.params).misses, 0); /* the parameter is not needed */
    o.name_space = NULL;
    begin_params(&z, o);
    derive_and_release(&z, "a", "p", &m);
    assert_int_equal(m.calls, 2);
    const tnf_derived *found;
    tnf_error e = { 0 };
    assert_int_equal(tnf_params_find_derived(&found, y.params, t.entries[0].key, "p", &e), TNF_OK);
    assert_ptr_equal(found->data, t.entries[0].data);
    end_params(&x);
    end_params(&y); /* gives back the form that is still in use */
    end_params(&z);
    assert_int_equal(m.drops, 0);
    clear_table(&t);
    assert_int_equal(m.drops, 2);
}

static void test_failing_resolver(void **state)
{
    (void)state;
    struct table t = { .full = true };
    struct fixture x;
    struct maker m = { .size = 5 };
    const tnf_derive how = how_of(&m, "p");
    const tnf_derived *form;
    tnf_error e = { 0 };
    begin_params(&x, (tnf_params_options) { .resolver = &table_ops, .resolver_ctx = &t });
    assert_int_equal(tnf_params_derive(&form, x.params, "a", &how, &e), TNF_ENOMEM);
    assert_string_equal(e.message, "the table is full");
    assert_true(m.calls == 1 && m.drops == 1 && t.releases == 0);
    assert_int_equal(tnf_params_find_derived(
                         &form, x.params,
                         tnf_param_key(tnf_params_namespace(x.params), tnf_namespace_id(0, 5)), "p",
                         &e),
                     TNF_ENOTFOUND);
    t.full = false;
    derive_and_release(&x, "a", "p", &m);
    end_params(&x);
    clear_table(&t);
    assert_int_equal(m.drops, 2);
}

static void test_wrong_options(void **state)
{
    (void)state;
    struct fixture x;
    tnf_params *params;
    tnf_error e = { 0 };
    begin_params(&x, (tnf_params_options) { .budget = 1 });
    for (int i = 0; i < 5; i++) {
        tnf_resolver_ops ops = table_ops;
        tnf_params_options o = { .size = sizeof o, .resolver = &ops };
        ops.version = i == 0 ? 0 : i == 1 ? TNF_RESOLVER_OPS_VERSION + 1 : ops.version;
        ops.get = i == 2 ? NULL : ops.get;
        ops.set = i == 3 ? NULL : ops.set;
        ops.release = i == 4 ? NULL : ops.release;
        assert_int_equal(tnf_params_new(&params, x.file, &o, &e), TNF_EINVAL);
        assert_non_null(strstr(e.message, "resolver"));
        assert_null(params);
    }
    tnf_params_options o = { .size = sizeof o, .reserved = { [6] = 1 } };
    assert_int_equal(tnf_params_new(&params, x.file, &o, &e), TNF_EINVAL);
    end_params(&x);
}

/* ------------------------------------------------------------------ memory */

static tnf_status use_forms(tnf_params *params, struct maker *m, tnf_error *e)
{
    static const char *const names[] = { "a", "b", "d", "a" };
    const tnf_derive how = how_of(m, "packed");
    for (size_t i = 0; i < 4; i++) {
        const tnf_derived *form, *found;
        TNF_TRY(tnf_params_derive(&form, params, names[i], &how, e));
        tnf_status status = tnf_params_find_derived(&found, params, form->key, "packed", e);
        assert_true(status != TNF_OK || found == form);
        tnf_params_release_derived(params, found);
        tnf_params_release_derived(params, form);
        TNF_TRY(status);
    }
    return TNF_OK;
}

/* Each allocation fails once: nothing leaks, no form is lost or dropped twice. */
static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    struct fixture x;
    begin_params(&x, (tnf_params_options) { 0 });
    int n = 0;
    for (bool done = false; !done; n++) {
        struct memory_log f = { .fail_at = (uint64_t)n + 1, .fail_once = true };
        struct maker m = { .size = 20 };
        tnf_params_options o = { .size = sizeof o,
                                 .budget = 100,
                                 .allocator = memory_allocator(&f) };
        tnf_params *params;
        tnf_error e = { 0 };
        tnf_status s = tnf_params_new(&params, x.file, &o, &e);
        if (s == TNF_OK) {
            s = use_forms(params, &m, &e);
            done = s == TNF_OK;
            f.fail_at = 0; /* the source still works */
            assert_int_equal(use_forms(params, &m, &e), TNF_OK);
            assert_int_equal(stats_of(params).derived_in_use, 0);
        }
        assert_true(s == TNF_OK || s == TNF_ENOMEM);
        tnf_params_free(params);
        assert_int_equal(f.live + f.wrong_sizes, 0);
        assert_int_equal(m.calls, m.drops);
    }
    assert_true(n > 8);
    end_params(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_once),
        cmocka_unit_test(test_found_by_key),
        cmocka_unit_test(test_evicted_in_order),
        cmocka_unit_test(test_evicted_in_use),
        cmocka_unit_test(test_not_kept),
        cmocka_unit_test(test_budget_zero),
        cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_failing_make),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_resolver),
        cmocka_unit_test(test_failing_resolver),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
