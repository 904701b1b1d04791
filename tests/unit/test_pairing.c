/* SPDX-License-Identifier: MIT */
/* Results are joined in the same order for every division of the leaves. */
#include "../support/unit.h"
#include "base/pairing.h"

#include <stdio.h>
#include <string.h>

struct text {
    char p[200];
};

static void join_texts(void *t, const void *more)
{
    struct text both;
    (void)snprintf(both.p, sizeof both.p, "(%.90s %.90s)", ((struct text *)t)->p,
                   ((const struct text *)more)->p);
    memcpy(t, &both, sizeof both);
}

static struct text rooms[2][TNF_PAIRING_NODES];

static tnf_pairing begin_pairing(unsigned room)
{
    return (tnf_pairing) { .size = sizeof(struct text),
                           .join = join_texts,
                           .results = (uint8_t *)rooms[room] };
}

/* Adds the leaves [from, to) to a fold of their own, and joins it with the other. */
static void add_run(tnf_pairing *all, uint64_t from, uint64_t to)
{
    tnf_pairing run = begin_pairing(1);
    for (uint64_t i = from; i < to; i++) {
        struct text leaf = { "" };
        (void)snprintf(leaf.p, sizeof leaf.p, "%u", (unsigned)i);
        assert_true(tnf_pairing_add(&run, (tnf_pairing_node) { i, 0 }, &leaf));
    }
    for (size_t i = 0; i < run.n; i++)
        assert_true(tnf_pairing_add(all, run.nodes[i], &rooms[1][i]));
}

static void test_order(void **state)
{
    /* By hand: the largest power of two below n, and the rest in the same way. */
    static const char *const expected[] = { NULL,
                                            "0",
                                            "(0 1)",
                                            "((0 1) 2)",
                                            "((0 1) (2 3))",
                                            "(((0 1) (2 3)) 4)",
                                            "(((0 1) (2 3)) (4 5))",
                                            "(((0 1) (2 3)) ((4 5) 6))",
                                            "(((0 1) (2 3)) ((4 5) (6 7)))" };
    (void)state;
    for (uint64_t n = 1; n <= 8; n++)
        for (uint64_t a = 0; a <= n; a++)
            for (uint64_t b = a; b <= n; b++) {
                struct text found;
                tnf_pairing all = begin_pairing(0);
                add_run(&all, 0, a);
                add_run(&all, a, b);
                add_run(&all, b, n);
                assert_int_equal(tnf_pairing_upto(&all), n);
                assert_true(tnf_pairing_end(&all, &found));
                assert_string_equal(found.p, expected[n]);
            }
}

static void test_refused(void **state)
{
    struct text leaf = { "x" }, out;
    tnf_pairing f = begin_pairing(0);
    (void)state;
    assert_false(tnf_pairing_end(&f, &out));
    assert_false(tnf_pairing_add(&f, (tnf_pairing_node) { 1, 1 }, &leaf));
    assert_false(tnf_pairing_add(&f, (tnf_pairing_node) { 0, TNF_PAIRING_LEVELS }, &leaf));
    assert_false(tnf_pairing_add(&f, (tnf_pairing_node) { UINT64_MAX, 0 }, &leaf));
    assert_true(tnf_pairing_add(&f, (tnf_pairing_node) { 0, 0 }, &leaf));
    assert_false(tnf_pairing_add(&f, (tnf_pairing_node) { 0, 0 }, &leaf)); /* a leaf twice */
    assert_false(tnf_pairing_add(&f, (tnf_pairing_node) { 2, 0 }, &leaf)); /* a gap */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_order),
                                        cmocka_unit_test(test_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
