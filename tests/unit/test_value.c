/* SPDX-License-Identifier: MIT */
/* Attribute trees: finding, setting, copying, comparing. */
#include "../support/little.h"
#include "../support/memory.h"
#include "../support/unit.h"
#include "model/value.h"

struct world {
    struct memory_log log;
    tnf_allocator alloc;
    tnf_arena arena;
    tnf_attrs attrs;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    w->alloc = memory_allocator(&w->log);
    tnf_arena_init(&w->arena, &w->alloc, UINT64_MAX);
    w->attrs.arena = &w->arena;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    tnf_arena_free(&w->arena);
    int leaked = w->log.blocks != 0;
    free(w);
    return leaked;
}

/* Many keys are replaced, found and removed; some are added without the table. */
static void many_keys(void **state)
{
    enum { MANY = 100000 };
    struct world *w = *state;
    tnf_attrs *m = &w->attrs;
    tnf_member *found;
    tnf_error e;
    char key[16];
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < MANY; i++) {
            int n = snprintf(key, sizeof key, "k%u", i);
            assert_ok(tnf_attrs_set(m, key, (size_t)n, tnf_value_uint(i + round), &e));
        }
    assert_int_equal(m->n, MANY);
    tnf_attrs_remove(m, (tnf_str)TNF_STR("k5"));
    assert_ok(tnf_attrs_push(m, "pushed", tnf_value_uint(7), &e));
    assert_ok(tnf_attrs_find(m, "k5", 2, &found, &e));
    assert_null(found);
    assert_ok(tnf_attrs_find(m, "pushed", 6, &found, &e));
    assert_ptr_equal(found, &m->members[MANY - 1]);
    for (unsigned i = 6; i < MANY; i += 1000) {
        int n = snprintf(key, sizeof key, "k%u", i);
        assert_ok(tnf_attrs_find(m, key, (size_t)n, &found, &e));
        assert_ptr_equal(found, &m->members[i - 1]);
        assert_int_equal(found->value.as.u, i + 1);
    }
}

static void set_get_remove(void **state)
{
    struct world *w = *state;
    tnf_error e;
    for (unsigned i = 0; i < 50; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%u", i); /* the key is copied, so reusing the buffer works */
        assert_ok(tnf_attrs_set(&w->attrs, key, strlen(key), tnf_value_uint(i), &e));
    }
    assert_ok(tnf_attrs_set(&w->attrs, "k7xx", 2, tnf_value_uint(777), &e));
    assert_ok(tnf_attrs_set(&w->attrs, "a\0b", 3, tnf_value_bool(true), &e));
    assert_ok(tnf_attrs_set(&w->attrs, NULL, 0, tnf_value_string("nameless"), &e));
    tnf_value map = tnf_attrs_value(&w->attrs);
    assert_int_equal(map.kind, TNF_MAP);
    assert_int_equal(map.n, 52);
    assert_int_equal(tnf_value_get(&map, "k7")->as.u, 777);
    assert_int_equal(map.as.members[7].value.as.u, 777); /* replaced at its place */
    assert_int_equal(map.as.members[7].key.p[2], 0);
    assert_true(tnf_value_get_n(&map, "a\0b", 3)->as.b);
    assert_null(tnf_value_get(&map, "a"));
    assert_string_equal(tnf_value_get(&map, "")->as.s, "nameless");
    tnf_attrs_remove(&w->attrs, (tnf_str)TNF_STR("k0"));
    tnf_attrs_remove(&w->attrs, (tnf_str)TNF_STR("k49"));
    tnf_attrs_remove(&w->attrs, (tnf_str)TNF_STR("nothing"));
    map = tnf_attrs_value(&w->attrs);
    assert_int_equal(map.n, 50);
    assert_null(tnf_value_get(&map, "k0"));
    assert_memory_equal(map.as.members[0].key.p, "k1", 3);
    assert_int_equal(tnf_value_get(&map, "k48")->as.u, 48);
}

static void get_of_what_is_no_map(void **state)
{
    (void)state;
    tnf_value number = tnf_value_uint(3);
    assert_null(tnf_value_get(NULL, "x"));
    assert_null(tnf_value_get(&number, "x"));
}

static void push_takes_literals(void **state)
{
    struct world *w = *state;
    tnf_error e;
    static const char key[] = "literal";
    assert_ok(tnf_attrs_push(&w->attrs, key, tnf_value_uint(1), &e));
    assert_ptr_equal(w->attrs.members[0].key.p, key);
    assert_int_equal(w->attrs.members[0].key.n, 7);
}

static void numbers_of_every_width(void **state)
{
    (void)state;
    static const uint8_t low[8] = { 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    static const uint8_t high[8] = { 1, 0, 0, 0, 0, 0, 0, 0x80 };
    static const tnf_dtype ints[] = { TNF_I8, TNF_I16, TNF_I32, TNF_I64 };
    for (size_t i = 0; i < 4; i++) {
        tnf_value v = tnf_value_number(ints[i], low);
        assert_int_equal(v.kind, TNF_INT);
        assert_int_equal(v.dtype, ints[i]);
        assert_true(v.as.i == -2);
    }
    assert_true(tnf_value_number(TNF_I64, high).as.i == INT64_MIN + 1);
    assert_true(tnf_value_number(TNF_I32, high).as.i == 1);
    assert_true(tnf_value_number(TNF_U8, low).as.u == 0xfe);
    assert_true(tnf_value_number(TNF_U16, low).as.u == 0xfffe);
    assert_true(tnf_value_number(TNF_U32, low).as.u == 0xfffffffe);
    assert_true(tnf_value_number(TNF_U64, low).as.u == UINT64_MAX - 1);
    assert_int_equal(tnf_value_number(TNF_U64, low).kind, TNF_UINT);
    static const uint8_t f32[4] = { 0, 0, 0x20, 0x40 };             /* 2.5 */
    static const uint8_t nan[4] = { 1, 0, 0xa0, 0x7f };             /* signalling, payload 1 */
    static const uint8_t f64[8] = { 0, 0, 0, 0, 0, 0, 0x04, 0xc0 }; /* -2.5 */
    assert_true(tnf_value_number(TNF_F32, f32).as.f32 == 2.5f);
    assert_true(tnf_value_number(TNF_F64, f64).as.f64 == -2.5);
    tnf_value v = tnf_value_number(TNF_F32, nan);
    assert_int_equal(v.kind, TNF_FLOAT);
    assert_memory_equal(&v.as.f32, to_little(nan, 4, 1), 4); /* its bits are kept */
}

/* A tree with every kind of value. */
static tnf_value sample_tree(void)
{
    static const tnf_value items[] = { { .kind = TNF_NULL },
                                       { .kind = TNF_BOOL, .as.b = true },
                                       { .kind = TNF_INT, .dtype = TNF_I8, .as.i = -5 },
                                       { .kind = TNF_FLOAT, .dtype = TNF_F32, .as.f32 = 0.5f },
                                       { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = 0.1 },
                                       { .kind = TNF_BYTES, .n = 3, .as.s = "\0\1\2" },
                                       { .kind = TNF_JSON, .n = 4, .as.s = "[ 1]" },
                                       { .kind = TNF_STRING, .n = 0, .as.s = "" } };
    static const tnf_member members[] = { { { "list", 4 },
                                            { .kind = TNF_ARRAY, .n = 8, .as.items = items } },
                                          { { "none", 4 }, { .kind = TNF_ARRAY } },
                                          { { "empty", 5 }, { .kind = TNF_MAP } } };
    return (tnf_value) { .kind = TNF_MAP, .n = 3, .as.members = members };
}

static void copies_are_deep_and_equal(void **state)
{
    struct world *w = *state;
    tnf_error e;
    tnf_value from = sample_tree(), to;
    assert_ok(tnf_value_copy(&to, &from, &w->arena, 2, &e)); /* numbers are no level */
    assert_true(tnf_value_equal(&from, &to));
    assert_ptr_not_equal(from.as.members, to.as.members);
    const tnf_value *list = tnf_value_get(&to, "list");
    assert_ptr_not_equal(list->as.items, from.as.members[0].value.as.items);
    assert_memory_equal(list->as.items[5].as.s, "\0\1\2", 4); /* with its NUL */
    assert_fails(tnf_value_copy(&to, &from, &w->arena, 1, &e), TNF_ELIMIT);
    assert_fails(tnf_value_copy(&to, &from, &w->arena, 0, &e), TNF_ELIMIT);
    assert_true(tnf_value_within(&from, 2) && !tnf_value_within(&from, 1));
    assert_true(tnf_value_within(&from.as.members[0].value.as.items[5], 0));
}

static void compares_trees(void **state)
{
    (void)state;
    tnf_value a = sample_tree(), b = sample_tree();
    assert_true(tnf_value_equal(&a, &b));
    b.n = 2;
    assert_false(tnf_value_equal(&a, &b));
    static const struct {
        tnf_value a, b;
    } unequal[] = {
        { { .kind = TNF_NULL }, { .kind = TNF_BOOL } },
        { { .kind = TNF_BOOL, .as.b = true }, { .kind = TNF_BOOL } },
        { { .kind = TNF_INT, .dtype = TNF_I8, .as.i = 1 },
          { .kind = TNF_INT, .dtype = TNF_I16, .as.i = 1 } },
        { { .kind = TNF_INT, .dtype = TNF_I8, .as.i = 1 },
          { .kind = TNF_UINT, .dtype = TNF_U8, .as.u = 1 } },
        { { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = 1 },
          { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = (uint64_t)1 << 40 } },
        { { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = 0.0 },
          { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = -0.0 } },
        { { .kind = TNF_STRING, .n = 1, .as.s = "a" }, { .kind = TNF_BYTES, .n = 1, .as.s = "a" } },
        { { .kind = TNF_STRING, .n = 1, .as.s = "a" },
          { .kind = TNF_STRING, .n = 1, .as.s = "b" } },
        { { .kind = TNF_ARRAY, .n = 0 }, { .kind = TNF_MAP, .n = 0 } },
    };
    for (size_t i = 0; i < sizeof unequal / sizeof *unequal; i++) {
        assert_false(tnf_value_equal(&unequal[i].a, &unequal[i].b));
        assert_true(tnf_value_equal(&unequal[i].a, &unequal[i].a));
        assert_true(tnf_value_equal(&unequal[i].b, &unequal[i].b));
    }
    static const uint8_t bits[4] = { 1, 0, 0xc0, 0x7f };
    tnf_value nan = tnf_value_number(TNF_F32, bits), same = nan;
    assert_true(tnf_value_equal(&nan, &same)); /* by bits: a NaN equals itself */
}

static void no_memory(void **state)
{
    struct world *w = *state;
    tnf_error e;
    tnf_value from = sample_tree(), to;
    w->log.fail_at = 1;
    assert_fails(tnf_value_copy(&to, &from, &w->arena, 8, &e), TNF_ENOMEM);
    assert_fails(tnf_attrs_set(&w->attrs, "k", 1, from, &e), TNF_ENOMEM);
    assert_fails(tnf_attrs_push(&w->attrs, "k", from, &e), TNF_ENOMEM);
    assert_int_equal(w->attrs.n, 0);
    w->arena.limit = 100;
    w->log.fail_at = 0;
    assert_fails(tnf_attrs_set(&w->attrs, "k", 1, from, &e), TNF_ELIMIT);
}

static void texts_and_whole_numbers(void **state)
{
    (void)state;
    uint64_t n = 5;
    tnf_value text = tnf_value_utf8((tnf_str) { "\xc3\xa4", 2 }), bytes;
    assert_int_equal(text.kind, TNF_STRING);
    assert_int_equal(text.n, 2);
    bytes = tnf_value_utf8((tnf_str) { "\xc3", 1 });
    assert_int_equal(bytes.kind, TNF_BYTES);
    const tnf_value up = tnf_value_integer(7), down = tnf_value_integer(-7),
                    own = { .kind = TNF_INT, .dtype = TNF_I8, .as.i = 9 },
                    real = { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = 3 };
    assert_int_equal(up.kind, TNF_UINT);
    assert_int_equal(down.kind, TNF_INT);
    assert_true(down.as.i == -7);
    assert_false(tnf_value_whole(&n, &down));
    assert_false(tnf_value_whole(&n, &real));
    assert_false(tnf_value_whole(&n, &text));
    assert_false(tnf_value_whole(&n, NULL));
    assert_int_equal(n, 5);
    assert_true(tnf_value_whole(&n, &up) && n == 7);
    assert_true(tnf_value_whole(&n, &own) && n == 9);
}

int main(void)
{
#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(set_get_remove),
        WITH_WORLD(many_keys),
        cmocka_unit_test(get_of_what_is_no_map),
        WITH_WORLD(push_takes_literals),
        cmocka_unit_test(numbers_of_every_width),
        cmocka_unit_test(texts_and_whole_numbers),
        WITH_WORLD(copies_are_deep_and_equal),
        cmocka_unit_test(compares_trees),
        WITH_WORLD(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
