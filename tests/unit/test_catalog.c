/* SPDX-License-Identifier: MIT */
/* The catalog: objects in order, found by name, copied whole. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "model/catalog.h"
#include "model/layout.h"

struct world {
    struct memory_log log;
    tnf_allocator alloc;
    tnf_arena arena;
    tnf_catalog catalog;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    w->alloc = memory_allocator(&w->log);
    tnf_arena_init(&w->arena, &w->alloc, UINT64_MAX);
    tnf_catalog_init(&w->catalog, &w->arena);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    tnf_catalog_free(&w->catalog);
    tnf_catalog_free(&w->catalog); /* calling it twice is harmless */
    tnf_arena_free(&w->arena);
    int bad = w->log.blocks != 0 || w->log.wrong_sizes != 0;
    free(w);
    return bad;
}

static tnf_status add_object(tnf_catalog *c, const char *name, unsigned policy, tnf_error *e)
{
    uint64_t shape[] = { 2, 3 };
    tnf_part part = { .role = "data", .nbytes = 24 };
    tnf_object o = { .name = { name, strlen(name) },
                     .shape = shape,
                     .parts = &part,
                     .layout = &tnf_layout_dense,
                     .rank = 2,
                     .nparts = 1 };
    tnf_status status = tnf_catalog_add(c, &o, policy, e);
    memset(shape, 0xff, sizeof shape); /* all was copied */
    memset(&part, 0xff, sizeof part);
    return status;
}

static void order_and_names(void **state)
{
    struct world *w = *state;
    tnf_error e;
    char name[16];
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "t%u", i * 7919 % 3000);
        assert_ok(add_object(&w->catalog, name, TNF_NAMES_ONCE, &e));
    }
    assert_int_equal(w->catalog.n, 3000);
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "t%u", i * 7919 % 3000);
        const tnf_object *o = &w->catalog.objects[i];
        assert_string_equal(o->name.p, name);
        assert_int_equal(o->shape[1], 3);
        assert_int_equal(o->parts->nbytes, 24);
        assert_ptr_equal(tnf_catalog_find(&w->catalog, name, strlen(name)), o);
    }
    assert_null(tnf_catalog_find(&w->catalog, "t3000", 5));
    tnf_catalog_shrink(&w->catalog);
    assert_int_equal(w->catalog.capacity, 3000);
    assert_string_equal(tnf_catalog_find(&w->catalog, "t7", 2)->name.p, "t7");
    tnf_catalog_shrink(&w->catalog);
}

static void names_twice(void **state)
{
    struct world *w = *state;
    tnf_error e;
    assert_ok(add_object(&w->catalog, "a", TNF_NAMES_ONCE, &e));
    assert_fails(add_object(&w->catalog, "a", TNF_NAMES_ONCE, &e), TNF_EEXISTS);
    assert_says("'a'");
    assert_int_equal(w->catalog.n, 1);
    assert_ptr_equal(tnf_catalog_find(&w->catalog, "a", 1), &w->catalog.objects[0]);
    assert_ok(add_object(&w->catalog, "a", TNF_NAMES_LATER_FOUND,
                         &e)); /* both listed, the later one found */
    assert_int_equal(w->catalog.n, 2);
    assert_ptr_equal(tnf_catalog_find(&w->catalog, "a", 1), &w->catalog.objects[1]);
    assert_ok(add_object(&w->catalog, "b", TNF_NAMES_LATER_FOUND, &e));
    assert_int_equal(w->catalog.n, 3);
    assert_ok(add_object(&w->catalog, "b", TNF_NAMES_FIRST_FOUND, &e));
    assert_ok(add_object(&w->catalog, "c", TNF_NAMES_FIRST_FOUND, &e));
    assert_int_equal(w->catalog.n, 5);
    assert_ptr_equal(tnf_catalog_find(&w->catalog, "b", 1), &w->catalog.objects[2]);
    assert_ptr_equal(tnf_catalog_find(&w->catalog, "c", 1), &w->catalog.objects[4]);
}

static void odd_objects(void **state)
{
    struct world *w = *state;
    tnf_error e;
    tnf_object nothing = { .name = { "", 0 }, .layout = &tnf_layout_dense };
    assert_ok(tnf_catalog_add(&w->catalog, &nothing, TNF_NAMES_ONCE, &e));
    tnf_object nul = { .name = { "a\0b", 3 }, .layout = &tnf_layout_dense };
    assert_ok(tnf_catalog_add(&w->catalog, &nul, TNF_NAMES_ONCE, &e));
    assert_non_null(tnf_catalog_find(&w->catalog, "", 0));
    assert_non_null(tnf_catalog_find(&w->catalog, "a\0b", 3));
    assert_null(tnf_catalog_find(&w->catalog, "a", 1));
}

static void keeps_extras(void **state)
{
    struct world *w = *state;
    tnf_error e;
    for (unsigned i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof key, "x.%u", i);
        tnf_extra extra = { .key = { key, strlen(key) }, .bytes.offset = i };
        assert_ok(tnf_catalog_add_extra(&w->catalog, &extra, &e));
    }
    assert_int_equal(w->catalog.nextras, 100);
    assert_string_equal(w->catalog.extras[99].key.p, "x.99");
    assert_int_equal(w->catalog.extras[99].bytes.offset, 99);
}

static void limit_and_memory(void **state)
{
    struct world *w = *state;
    tnf_error e;
    char name[16];
    w->arena.limit = 20000;
    tnf_status status = TNF_OK;
    for (unsigned i = 0; i < 10000 && status == TNF_OK; i++) {
        snprintf(name, sizeof name, "t%u", i);
        status = add_object(&w->catalog, name, TNF_NAMES_ONCE, &e);
    }
    assert_int_equal(status, TNF_ELIMIT);
    assert_true(w->catalog.n > 20);
    assert_true(w->log.peak < 40000);
    w->arena.limit = UINT64_MAX;
    w->log.fail_at = 1;
    status = TNF_OK;
    for (unsigned i = 0; i < 10000 && status == TNF_OK; i++) {
        snprintf(name, sizeof name, "u%u", i);
        status = add_object(&w->catalog, name, TNF_NAMES_ONCE, &e);
    }
    assert_int_equal(status, TNF_ENOMEM);
    w->log.fail_at = 0;
    assert_ok(add_object(&w->catalog, "after", TNF_NAMES_ONCE, &e));
    assert_non_null(tnf_catalog_find(&w->catalog, "after", 5));
}

int main(void)
{
#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(order_and_names), WITH_WORLD(names_twice),      WITH_WORLD(odd_objects),
        WITH_WORLD(keeps_extras),    WITH_WORLD(limit_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
