/* SPDX-License-Identifier: MIT */
/* The piece that contains a position, compared with a plain loop. */
#include "../support/unit.h"
#include "base/rising.h"

struct piece {
    uint32_t other;
    uint64_t begin;
};

static size_t find_slowly(const struct piece *pieces, size_t n, uint64_t x)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (pieces[i].begin <= x)
            found = i;
    return found;
}

static void test_pieces(void **state)
{
    /* an empty piece begins where the next one does: the last of them is found */
    static const struct piece pieces[] = { { 9, 0 }, { 9, 0 },  { 9, 3 },  { 9, 4 },
                                           { 9, 4 }, { 9, 17 }, { 9, 17 }, { 9, UINT64_MAX } };
    static const uint64_t places[] = { 0, 1, 2, 3, 4, 5, 16, 17, 18, UINT64_MAX - 1, UINT64_MAX };
    (void)state;
    for (size_t n = 1; n <= sizeof pieces / sizeof *pieces; n++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            assert_int_equal(tnf_rising_find(&pieces->begin, sizeof *pieces, n, places[i]),
                             find_slowly(pieces, n, places[i]));
}

/* The first number that is not smaller, compared with a plain loop; with repeated numbers. */
static void test_first(void **state)
{
    static const uint64_t numbers[] = { 0, 0, 3, 4, 4, 4, 17, UINT64_MAX };
    static const uint64_t places[] = { 0, 1, 3, 4, 5, 17, 18, UINT64_MAX };
    (void)state;
    for (size_t n = 0; n <= sizeof numbers / sizeof *numbers; n++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            size_t first = 0;
            while (first < n && numbers[first] < places[i])
                first++;
            assert_int_equal(tnf_rising_first(numbers, sizeof *numbers, n, places[i]), first);
        }
}

static void test_order(void **state)
{
    static const uint64_t low = 1, high = (uint64_t)1 << 63;
    (void)state;
    assert_int_equal(tnf_u64_compare(&low, &high), -1);
    assert_int_equal(tnf_u64_compare(&high, &low), 1);
    assert_int_equal(tnf_u64_compare(&high, &high), 0);
}

static void test_edges(void **state)
{
    static const uint64_t one[] = { 5 };
    (void)state;
    assert_int_equal(tnf_rising_find(one, sizeof *one, 0, 7), 0);
    assert_int_equal(tnf_rising_find(one, sizeof *one, 1, 4), 0); /* all numbers are larger */
    assert_int_equal(tnf_rising_find(one, sizeof *one, 1, 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pieces), cmocka_unit_test(test_first),
                                        cmocka_unit_test(test_order),
                                        cmocka_unit_test(test_edges) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
