/* SPDX-License-Identifier: MIT */
/* The tools of readers for building trees: the set of a map's keys, the stack, the wrappers. */
#include "wire_bytes.h"

#include "wire/tree.h"

typedef struct fixture {
    struct memory_log log;
    tnf_allocator alloc;
    tnf_arena arena;
    tnf_tree t;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->alloc = memory_allocator(&f->log);
    tnf_arena_init(&f->arena, &f->alloc, 64u << 20);
    tnf_tree_init(&f->t, &f->arena);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tnf_tree_free(&f->t);
    tnf_arena_free(&f->arena);
    assert_int_equal(f->log.blocks, 0);
    assert_int_equal(f->log.wrong_sizes, 0);
    free(f);
    return 0;
}

static void keys_are_found_however_many(void **state)
{
    enum { N = 50000 };
    fixture *f = *state;
    static char names[N][8];
    tnf_keys k;
    tnf_error e;
    bool twice;
    tnf_keys_init(&k, &f->arena);
    for (uint32_t i = 0; i < N; i++) {
        tnf_str key = { names[i], (size_t)snprintf(names[i], sizeof names[i], "%u", i) };
        assert_ok(tnf_keys_add(&k, key, &twice, &e));
        assert_false(twice);
        if (i == TNF_KEYS_FEW - 1)
            assert_int_equal(f->log.calls, 0);
        uint32_t other = i / 2;
        key = (tnf_str) { names[other], strlen(names[other]) };
        assert_ok(tnf_keys_add(&k, key, &twice, &e));
        assert_true(twice);
    }
    assert_int_equal(k.n, N);
    assert_ok(tnf_keys_add(&k, (tnf_str) { "", 0 }, &twice, &e));
    assert_false(twice);
    assert_ok(tnf_keys_add(&k, (tnf_str) { NULL, 0 }, &twice, &e));
    assert_true(twice);
}

static void keys_tell_of_lack_of_memory(void **state)
{
    fixture *f = *state;
    tnf_keys k;
    tnf_error e;
    bool twice;
    char name[2] = "a";
    char names[100][4];
    f->log.fail_at = 1;
    tnf_keys_init(&k, &f->arena);
    for (; name[0] < 'a' + (char)TNF_KEYS_FEW; name[0]++) {
        char *copy = names[name[0] - 'a'];
        copy[0] = name[0];
        assert_ok(tnf_keys_add(&k, (tnf_str) { copy, 1 }, &twice, &e));
    }
    assert_fails(tnf_keys_add(&k, (tnf_str) { "z", 1 }, &twice, &e), TNF_ENOMEM);
    f->log.fail_at = 0;
    f->arena.limit = 100;
    assert_fails(tnf_keys_add(&k, (tnf_str) { "z", 1 }, &twice, &e), TNF_ELIMIT);
    f->arena.limit = 64u << 20;
    assert_ok(tnf_keys_add(&k, (tnf_str) { "z", 1 }, &twice, &e));
    assert_false(twice);
    assert_ok(tnf_keys_add(&k, (tnf_str) { "z", 1 }, &twice, &e));
    assert_true(twice);
    assert_ok(tnf_keys_add(&k, (tnf_str) { "a", 1 }, &twice, &e));
    assert_true(twice);
}

static void push_text(fixture *f, const char *s)
{
    tnf_error e;
    tnf_value v;
    assert_ok(tnf_tree_text(&f->t, TNF_STRING, (tnf_str) { s, strlen(s) }, &v, &e));
    assert_ptr_not_equal(v.as.s, s);
    assert_int_equal(v.as.s[v.n], 0);
    assert_ok(tnf_tree_push(&f->t, &v, &e));
}

static void containers_take_what_was_pushed_since(void **state)
{
    fixture *f = *state;
    tnf_error e;
    tnf_value v;
    size_t outer = tnf_tree_mark(&f->t);
    push_text(f, "a");
    size_t inner = tnf_tree_mark(&f->t);
    push_text(f, "b");
    push_text(f, "c");
    assert_ok(tnf_tree_map(&f->t, inner, &v, &e));
    assert_typed(&v, "{\"b\":\"c\"}");
    assert_ok(tnf_tree_push(&f->t, &v, &e));
    assert_ok(tnf_tree_pairs(&f->t, outer, &v, &e));
    assert_typed(&v, "[[\"a\",{\"b\":\"c\"}]]");
    assert_int_equal(tnf_tree_mark(&f->t), outer);
    push_text(f, "x");
    tnf_tree_drop(&f->t, outer);
    assert_ok(tnf_tree_array(&f->t, outer, &v, &e));
    assert_typed(&v, "[]");
    assert_ok(tnf_tree_map(&f->t, outer, &v, &e));
    assert_typed(&v, "{}");
    assert_ok(tnf_tree_pairs(&f->t, outer, &v, &e));
    assert_typed(&v, "[]");
}

static void wrappers_have_one_key(void **state)
{
    fixture *f = *state;
    tnf_error e;
    tnf_value v, inner = tnf_value_uint(7);
    assert_ok(tnf_tree_wrap(&f->t, "key", &inner, &v, &e));
    assert_typed(&v, "{\"key\":{\"$u64\":7}}");
    assert_int_equal(tnf_tree_wrapped(&v, "key")->as.u, 7);
    assert_null(tnf_tree_wrapped(&v, "ke"));
    assert_null(tnf_tree_wrapped(&inner, "key"));
    v = from_typed(&f->arena, "{\"key\":1,\"b\":2}");
    assert_null(tnf_tree_wrapped(&v, "key"));
    v = from_typed(&f->arena, "{}");
    assert_null(tnf_tree_wrapped(&v, "key"));
}

static void limits_are_told(void **state)
{
    fixture *f = *state;
    tnf_error e;
    tnf_value v = tnf_value_uint(1);
    assert_ok(tnf_tree_push(&f->t, &v, &e));
    assert_ok(tnf_tree_push(&f->t, &v, &e));
    f->arena.limit = 8;
    assert_fails(tnf_tree_array(&f->t, 0, &v, &e), TNF_ELIMIT);
    assert_fails(tnf_tree_map(&f->t, 0, &v, &e), TNF_ELIMIT);
    assert_fails(tnf_tree_pairs(&f->t, 0, &v, &e), TNF_ELIMIT);
    assert_fails(tnf_tree_wrap(&f->t, "k", &v, &v, &e), TNF_ELIMIT);
    assert_fails(tnf_tree_text(&f->t, TNF_BYTES, (tnf_str) { "a", 1 }, &v, &e), TNF_ELIMIT);
    f->log.fail_at = 1;
    f->log.calls = 0;
    for (unsigned i = 0; i < 100; i++)
        if (tnf_tree_push(&f->t, &v, &e) != TNF_OK)
            break;
    assert_fails(tnf_tree_push(&f->t, &v, &e), TNF_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_are_found_however_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keys_tell_of_lack_of_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(containers_take_what_was_pushed_since, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrappers_have_one_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(limits_are_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
