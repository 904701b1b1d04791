/* SPDX-License-Identifier: MIT */
/* The growable buffer: it grows, stops at its maximum, and then accepts nothing more. */
#include "../support/little.h"
#include "../support/memory.h"
#include "../support/unit.h"
#include "base/buf.h"

static void everything_in_order(void **state)
{
    (void)state;
    struct memory_log log = { 0 };
    tnf_allocator a = memory_allocator(&log);
    tnf_buf b;
    tnf_error e;
    tnf_buf_init(&b, &a, UINT64_MAX);
    tnf_buf_put(&b, NULL, 0);
    tnf_buf_puts(&b, "ab");
    tnf_buf_u8(&b, 0xff);
    tnf_buf_u32(&b, 0x04030201);
    tnf_buf_u64(&b, 0x0807060504030201);
    tnf_buf_printf(&b, "%d-%s", 42, "x");
    assert_int_equal(b.n, 19);
    assert_memory_equal(b.p,
                        "ab\xff\1\2\3\4\1\2\3\4\5\6\7\x08"
                        "42-x",
                        19);
    assert_ok(tnf_buf_status(&b, "x", &e));
    tnf_buf_free(&b);
    assert_null(b.p);
    assert_int_equal(log.blocks, 0);
    assert_int_equal(log.wrong_sizes, 0);
}

static void grows_far(void **state)
{
    (void)state;
    struct memory_log log = { 0 };
    tnf_allocator a = memory_allocator(&log);
    tnf_buf b;
    tnf_buf_init(&b, &a, UINT64_MAX);
    for (uint32_t i = 0; i < 100000; i++)
        tnf_buf_u32(&b, i);
    assert_int_equal(b.n, 400000);
    for (uint32_t i = 0; i < 100000; i += 997)
        assert_memory_equal(b.p + 4 * (size_t)i, to_little(&i, 4, 1), 4);
    assert_true(log.calls < 30);
    char big[3000];
    memset(big, 'z', sizeof big - 1);
    big[sizeof big - 1] = 0;
    tnf_buf_printf(&b, "<%s>", big); /* longer than any fixed buffer in the code */
    assert_int_equal(b.n, 400000 + 3001);
    assert_memory_equal(b.p + 400000, "<zz", 3);
    assert_memory_equal(b.p + b.n - 2, "z>", 2);
    tnf_buf_free(&b);
    assert_int_equal(log.blocks, 0);
}

/* For any sequence of bytes, the buffer never exceeds the maximum. */
static void the_maximum_holds(void **state)
{
    (void)state;
    tnf_error e;
    for (size_t step = 1; step <= 400; step += step < 20 ? 1 : 37)
        for (uint64_t max = 0; max <= 1200; max += 61) {
            struct memory_log log = { 0 };
            tnf_allocator a = memory_allocator(&log);
            tnf_buf b;
            uint8_t bytes[400] = { 0 };
            tnf_buf_init(&b, &a, max);
            for (int i = 0; i < 2000 && b.status == TNF_OK; i++)
                tnf_buf_put(&b, bytes, step);
            assert_true(b.n <= max);
            assert_true(b.n + step > max);
            size_t before = b.n;
            tnf_buf_u8(&b, 1); /* it accepts nothing more, even if this byte would fit */
            tnf_buf_printf(&b, "x");
            assert_int_equal(b.n, before);
            assert_fails(tnf_buf_status(&b, "stash", &e), TNF_ELIMIT);
            assert_says("stash");
            tnf_buf_free(&b);
            assert_int_equal(log.blocks, 0);
        }
}

static void no_memory(void **state)
{
    (void)state;
    tnf_error e;
    struct memory_log log = { .fail_at = 2 };
    tnf_allocator a = memory_allocator(&log);
    tnf_buf b;
    tnf_buf_init(&b, &a, UINT64_MAX);
    for (int i = 0; i < 1000; i++)
        tnf_buf_u64(&b, 1);
    assert_int_equal(b.n % 8, 0);
    assert_int_equal(log.failed, 1); /* requested once, then never again */
    assert_fails(tnf_buf_status(&b, "index", &e), TNF_ENOMEM);
    tnf_buf_free(&b);
    assert_int_equal(log.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_in_order),
        cmocka_unit_test(grows_far),
        cmocka_unit_test(the_maximum_holds),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
