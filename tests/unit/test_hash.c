/* SPDX-License-Identifier: MIT */
/* The hash table from names to positions. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "base/hash.h"

struct names {
    const char (*list)[24];
};

static tnf_str name_at(const void *ctx, uint32_t position)
{
    const struct names *n = ctx;
    return (tnf_str) { n->list[position], strlen(n->list[position]) };
}

static void many_names(void **state)
{
    (void)state;
    enum { N = 20000 };
    char(*list)[24] = calloc(N, sizeof *list);
    struct names names = { (const char(*)[24])list };
    struct memory_log log = { 0 };
    tnf_allocator a = memory_allocator(&log);
    tnf_hash h;
    tnf_hash_init(&h, &a, name_at, &names);
    assert_true(tnf_hash_find(&h, "x", 1) == TNF_HASH_NONE); /* while the table is empty */
    for (uint32_t i = 0; i < N; i++) {
        uint32_t previous = 0;
        snprintf(list[i], sizeof list[i], "%.*sblock.%u", (int)(i % 9), "/////////", i);
        assert_true(tnf_hash_add(&h, i, false, &previous));
        assert_true(previous == TNF_HASH_NONE);
    }
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(tnf_hash_find(&h, list[i], strlen(list[i])), i);
    assert_true(tnf_hash_find(&h, "block", 5) == TNF_HASH_NONE);
    assert_true(tnf_hash_find(&h, "block.1", 6) == TNF_HASH_NONE);
    assert_true(tnf_hash_find(&h, NULL, 0) == TNF_HASH_NONE);
    tnf_hash_free(&h);
    assert_int_equal(log.blocks, 0);
    assert_int_equal(log.wrong_sizes, 0);
    free(list);
}

static void twice_the_same(void **state)
{
    (void)state;
    static const char list[][24] = { "a", "b", "a", "" };
    struct names names = { list };
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_hash h;
    uint32_t previous;
    tnf_hash_init(&h, &a, name_at, &names);
    assert_true(tnf_hash_add(&h, 0, false, &previous) && previous == TNF_HASH_NONE);
    assert_true(tnf_hash_add(&h, 1, false, &previous) && previous == TNF_HASH_NONE);
    assert_true(tnf_hash_add(&h, 2, false, &previous) && previous == 0);
    assert_int_equal(tnf_hash_find(&h, "a", 1), 0);
    assert_true(tnf_hash_add(&h, 2, true, &previous) && previous == 0);
    assert_int_equal(tnf_hash_find(&h, "a", 1), 2);
    assert_true(tnf_hash_add(&h, 3, false, &previous) && previous == TNF_HASH_NONE);
    assert_int_equal(tnf_hash_find(&h, "", 0), 3);
    assert_int_equal(h.used, 3);
    tnf_hash_free(&h);
}

static void seeds_differ(void **state)
{
    (void)state;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_hash g, h;
    tnf_hash_init(&g, &a, name_at, NULL);
    tnf_hash_init(&h, &a, name_at, NULL);
    assert_memory_not_equal(g.seed, h.seed, sizeof g.seed);
}

static void no_memory(void **state)
{
    (void)state;
    char list[40][24];
    struct names names = { (const char(*)[24])list };
    struct memory_log log = { 0 };
    tnf_allocator a = memory_allocator(&log);
    tnf_hash h;
    uint32_t previous, held = 0;
    tnf_hash_init(&h, &a, name_at, &names);
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(list[i], sizeof list[i], "n%u", i);
        log.fail_at = i < 20 ? 0 : 1;
        if (!tnf_hash_add(&h, i, false, &previous))
            break;
        held++;
    }
    assert_true(held >= 16 && held < 40);
    for (uint32_t i = 0; i < held; i++) /* earlier names stay */
        assert_int_equal(tnf_hash_find(&h, list[i], strlen(list[i])), i);
    tnf_hash_free(&h);
    assert_int_equal(log.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_names),
        cmocka_unit_test(twice_the_same),
        cmocka_unit_test(seeds_differ),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
