/* SPDX-License-Identifier: MIT */
/* The handle's allocator: calls of the caller's function, and malloc without one.
 */
#include "../support/memory.h"
#include "../support/unit.h"
#include "base/alloc.h"

static void malloc_is_the_default(void **state)
{
    (void)state;
    tnf_allocator none = { 0 };
    tnf_allocator a = tnf_allocator_or_default(NULL), b = tnf_allocator_or_default(&none);
    assert_non_null(a.reallocate);
    assert_true(a.reallocate == b.reallocate);
    uint8_t *p = tnf_alloc(&a, 10);
    assert_non_null(p);
    memset(p, 7, 10);
    p = tnf_realloc(&a, p, 10, 5000);
    assert_non_null(p);
    assert_int_equal(p[9], 7);
    tnf_free(&a, p, 5000);
    tnf_free(&a, NULL, 0);
}

static void sizes_are_told(void **state)
{
    (void)state;
    struct memory_log log = { 0 };
    tnf_allocator given = memory_allocator(&log);
    tnf_allocator a = tnf_allocator_or_default(&given);
    void *p = tnf_alloc(&a, 0); /* even 0 bytes have an address */
    assert_non_null(p);
    tnf_free(&a, p, 1);
    uint8_t *zeros = tnf_alloc0(&a, 33);
    for (size_t i = 0; i < 33; i++)
        assert_int_equal(zeros[i], 0);
    zeros = tnf_realloc(&a, zeros, 33, 3);
    assert_non_null(zeros);
    assert_int_equal(log.live, 3);
    tnf_free(&a, zeros, 3);
    assert_int_equal(log.live, 0);
    assert_int_equal(log.blocks, 0);
    assert_int_equal(log.wrong_sizes, 0);
}

static void arrays_grow(void **state)
{
    (void)state;
    struct memory_log log = { 0 };
    tnf_allocator a = memory_allocator(&log);
    uint32_t *items = NULL;
    size_t room = 0;
    for (uint32_t i = 0; i < 100; i++) {
        items = tnf_grow(&a, items, i, &room, sizeof *items, 3);
        assert_non_null(items);
        assert_true(room > i);
        items[i] = i;
    }
    assert_int_equal(room, 192); /* 3, doubled */
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(items[i], i);
    assert_ptr_equal(tnf_grow(&a, items, room - 1, &room, sizeof *items, 3), items);
    assert_null(tnf_grow(&a, items, room, &room, SIZE_MAX / room, 3)); /* too many bytes */
    log.fail_at = log.calls + 1;
    assert_null(tnf_grow(&a, items, room, &room, sizeof *items, 3));
    assert_int_equal(room, 192);
    tnf_free(&a, items, room * sizeof *items);
    assert_int_equal(log.blocks, 0);
    assert_int_equal(log.wrong_sizes, 0);
}

static void refusal_is_null(void **state)
{
    (void)state;
    struct memory_log log = { .fail_at = 1 };
    tnf_allocator a = memory_allocator(&log);
    assert_null(tnf_alloc(&a, 1));
    assert_null(tnf_alloc0(&a, 1));
    assert_null(tnf_realloc(&a, NULL, 0, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malloc_is_the_default),
        cmocka_unit_test(sizes_are_told),
        cmocka_unit_test(arrays_grow),
        cmocka_unit_test(refusal_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
