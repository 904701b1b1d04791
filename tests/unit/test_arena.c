/* SPDX-License-Identifier: MIT */
/* The arena: aligned, zeroed memory up to a limit, which is freed at once. */
#include "../support/check.h"
#include "../support/memory.h"
#include "../support/unit.h"
#include "base/arena.h"

struct world {
    struct memory_log log;
    tnf_allocator alloc;
    tnf_arena arena;
};

static void begin_world(struct world *w, uint64_t limit)
{
    *w = (struct world) { 0 };
    w->alloc = memory_allocator(&w->log);
    tnf_arena_init(&w->arena, &w->alloc, limit);
}

static void end_world(struct world *w)
{
    tnf_arena_free(&w->arena);
    assert_int_equal(w->log.live, 0);
    assert_int_equal(w->log.blocks, 0);
    assert_int_equal(w->log.wrong_sizes, 0);
}

/* Many pieces of all sizes: each keeps its bytes, so none overlaps another. */
static void pieces_stay_apart(void **state)
{
    (void)state;
    enum { N = 2000 };
    static uint8_t *at[N];
    static size_t size[N];
    struct world w;
    begin_world(&w, UINT64_MAX);
    uint64_t rng = 1;
    for (size_t i = 0; i < N; i++) {
        uint64_t r = next_random(&rng);
        size[i] = (size_t)(r >> 8) % (r % 50 == 0 ? 400000 : 200);
        bool text = r & 64;
        at[i] = text ? (uint8_t *)tnf_arena_str(&w.arena, "", 0)
                     : tnf_arena_alloc(&w.arena, size[i]);
        assert_non_null(at[i]);
        if (text) {
            size[i] = 1;
            assert_int_equal(*at[i], 0);
        } else {
            assert_int_equal((uintptr_t)at[i] % (size[i] >= 16 ? 16 : 8), 0);
        }
        for (size_t k = 0; k < size[i]; k++)
            assert_true(at[i][k] == 0);
        if (size[i])
            memset(at[i], (int)(i % 251 + 1), size[i]);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < size[i]; k++)
            assert_true(at[i][k] == i % 251 + 1);
    assert_int_equal(w.log.live, w.arena.total);
    end_world(&w);
}

static void strings_end_in_nul(void **state)
{
    (void)state;
    struct world w;
    begin_world(&w, UINT64_MAX);
    char *a = tnf_arena_str(&w.arena, "ab\0cd", 5), *b = tnf_arena_str(&w.arena, NULL, 0);
    assert_memory_equal(a, "ab\0cd", 6);
    assert_string_equal(b, "");
    end_world(&w);
}

static void the_limit_holds(void **state)
{
    (void)state;
    tnf_error e;
    struct world w;
    begin_world(&w, 10000);
    size_t got = 0;
    while (tnf_arena_alloc(&w.arena, 100))
        got++;
    assert_true(got >= 40 && got <= 100);
    assert_true(w.log.peak <= 10000);
    assert_fails(tnf_arena_fail(&w.arena, "names", &e), TNF_ELIMIT);
    assert_says("names");
    assert_null(tnf_arena_alloc(&w.arena, 20000));
    assert_fails(tnf_arena_fail(&w.arena, "x", &e), TNF_ELIMIT);
    end_world(&w);
}

static void absurd_sizes_are_refused(void **state)
{
    (void)state;
    tnf_error e;
    struct world w;
    begin_world(&w, UINT64_MAX);
    static const uint64_t counts[] = { UINT64_MAX, UINT64_MAX / 8, UINT64_MAX / 8 + 1,
                                       (uint64_t)1 << 61, (uint64_t)INT64_MAX };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_null(tnf_arena_array(&w.arena, counts[i], 8));
        assert_fails(tnf_arena_fail(&w.arena, "x", &e), TNF_ELIMIT);
    }
    assert_null(tnf_arena_alloc(&w.arena, SIZE_MAX));
    assert_null(tnf_arena_str(&w.arena, "", SIZE_MAX));
    assert_non_null(tnf_arena_array(&w.arena, 0, 8));
    assert_non_null(tnf_arena_array(&w.arena, 8, 0));
    assert_true(w.log.largest < 10000);
    end_world(&w);
}

static void refusal_of_the_allocator(void **state)
{
    (void)state;
    tnf_error e;
    struct world w;
    begin_world(&w, UINT64_MAX);
    w.log.fail_at = 2;
    assert_non_null(tnf_arena_alloc(&w.arena, 10));
    assert_null(tnf_arena_alloc(&w.arena, 100000));
    assert_fails(tnf_arena_fail(&w.arena, "shapes", &e), TNF_ENOMEM);
    assert_says("shapes");
    w.log.fail_at = 0;
    assert_non_null(tnf_arena_alloc(&w.arena, 100000)); /* it can still be used */
    end_world(&w);
}

/* The memory that is allocated is proportional to the requested memory. */
static void little_is_wasted(void **state)
{
    (void)state;
    struct world w;
    begin_world(&w, UINT64_MAX);
    uint64_t asked = 0, rng = 2;
    for (int i = 0; i < 20000; i++) {
        size_t n = (size_t)(next_random(&rng) % 600);
        asked += n;
        assert_non_null(tnf_arena_alloc(&w.arena, n));
    }
    assert_true(w.log.peak < asked + asked / 4 + (2u << 20));
    end_world(&w);
}

static void reset_forgets_all(void **state)
{
    (void)state;
    struct memory_log log = { 0 };
    tnf_allocator a = memory_allocator(&log);
    tnf_arena arena;
    tnf_arena_init(&arena, &a, 1 << 20);
    tnf_arena_reset(&arena); /* nothing to reset */
    for (int i = 0; i < 1000; i++) {
        uint8_t *p = tnf_arena_alloc(&arena, 100);
        assert_non_null(p);
        assert_int_equal(p[0], 0); /* zeroed, also if it was used before */
        memset(p, 0xff, 100);
        tnf_arena_reset(&arena);
    }
    assert_true(log.calls == 1);
    assert_non_null(tnf_arena_alloc(&arena, 600000)); /* a block of its own, which is freed */
    tnf_arena_reset(&arena);
    assert_non_null(tnf_arena_alloc(&arena, 600000));
    tnf_arena_free(&arena);
    assert_int_equal(log.blocks, 0);
    assert_int_equal(log.wrong_sizes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reset_forgets_all),        cmocka_unit_test(pieces_stay_apart),
        cmocka_unit_test(strings_end_in_nul),       cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(absurd_sizes_are_refused), cmocka_unit_test(refusal_of_the_allocator),
        cmocka_unit_test(little_is_wasted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
