/* SPDX-License-Identifier: MIT */
/* Properties of all sources: bounds, and which calls reach a back-end. */
#include "../support/unit.h"
#include "base/error.h"
#include "io/source.h"

/* A back-end that records its calls. */
struct log {
    unsigned reads, maps, many, advised, closed;
    uint64_t offset, n;
    tnf_advice advice;
};

static tnf_status log_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct log *log = ctx;
    (void)e;
    log->reads++;
    log->offset = offset;
    log->n = n;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = (uint8_t)(offset + i);
    return TNF_OK;
}

static const void *log_map(void *ctx, uint64_t offset, uint64_t n)
{
    static const uint8_t bytes[100];
    (void)n;
    ((struct log *)ctx)->maps++;
    return bytes + offset;
}

static tnf_status log_many(void *ctx, const tnf_range *ranges, size_t n, tnf_error *e)
{
    struct log *log = ctx;
    log->many++;
    for (size_t i = 0; i < n; i++)
        TNF_TRY(log_read(ctx, ranges[i].offset, ranges[i].dst, ranges[i].n, e));
    return TNF_OK;
}

static void log_advise(void *ctx, uint64_t offset, uint64_t n, tnf_advice advice)
{
    struct log *log = ctx;
    log->advised++;
    log->offset = offset;
    log->n = n;
    log->advice = advice;
}

static void log_close(void *ctx)
{
    ((struct log *)ctx)->closed++;
}

static const tnf_source_ops full = { .version = 1,
                                     .read_at = log_read,
                                     .map = log_map,
                                     .read_many = log_many,
                                     .advise = log_advise,
                                     .close = log_close };
static const tnf_source_ops least = { .version = 1, .read_at = log_read };

static void reads_within_bounds(void **state)
{
    (void)state;
    tnf_error e;
    struct log log = { 0 };
    tnf_source *s;
    uint8_t out[100];
    assert_ok(tnf_source_custom(&s, &full, &log, 100, &e));
    assert_ok(tnf_source_read(s, 0, out, 100, &e));
    assert_ok(tnf_source_read(s, 99, out, 1, &e));
    assert_int_equal(out[0], 99);
    assert_int_equal(log.reads, 2);
    assert_ok(tnf_source_read(s, 100, out, 0, &e)); /* an empty read at the end makes no call */
    static const struct {
        uint64_t offset;
        size_t n;
    } beyond[] = { { 100, 1 },
                   { 0, 101 },
                   { 99, 2 },
                   { 101, 0 },
                   { UINT64_MAX, 1 },
                   { 1, SIZE_MAX },
                   { UINT64_MAX, SIZE_MAX } };
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        assert_fails(tnf_source_read(s, beyond[i].offset, out, beyond[i].n, &e), TNF_ETRUNCATED);
        assert_int_equal(e.offset, 100);
        tnf_range range = { beyond[i].offset, beyond[i].n, out };
        assert_fails(tnf_source_read_many(s, &range, 1, &e), TNF_ETRUNCATED);
        assert_null(tnf_source_map(s, beyond[i].offset, beyond[i].n));
    }
    assert_int_equal(log.reads, 2); /* no other call reached the back-end */
    assert_int_equal(log.many + log.maps, 0);
    assert_non_null(tnf_source_map(s, 10, 90));
    tnf_source_close(s);
    assert_int_equal(log.closed, 1);
    tnf_source_close(NULL);
}

static void many_ranges(void **state)
{
    (void)state;
    tnf_error e;
    uint8_t a[3], b[4];
    const tnf_range ranges[] = { { 5, 3, a }, { 20, 0, NULL }, { 50, 4, b } };
    for (int k = 0; k < 2; k++) {
        struct log log = { 0 };
        tnf_source *s;
        assert_ok(tnf_source_custom(&s, k ? &full : &least, &log, 100, &e));
        memset(a, 0, sizeof a);
        assert_ok(tnf_source_read_many(s, ranges, 3, &e));
        assert_memory_equal(a, "\5\6\7", 3);
        assert_int_equal(b[3], 53);
        assert_int_equal(log.many, k);
        if (!k)
            assert_int_equal(log.reads, 2); /* an empty read makes no call */
        tnf_source_close(s);
    }
}

static void what_is_optional(void **state)
{
    (void)state;
    tnf_error e;
    struct log log = { 0 };
    tnf_source *s;
    assert_ok(tnf_source_custom(&s, &least, &log, 100, &e));
    assert_null(tnf_source_map(s, 0, 10));
    assert_non_null(s->map_why);
    tnf_source_advise(s, 0, 10, TNF_WILL_NEED);
    tnf_source_close(s);
    assert_int_equal(log.closed, 0);
}

static void advice_is_clipped(void **state)
{
    (void)state;
    tnf_error e;
    struct log log = { 0 };
    tnf_source *s;
    assert_ok(tnf_source_custom(&s, &full, &log, 100, &e));
    tnf_source_advise(s, 90, UINT64_MAX, TNF_WONT_NEED);
    assert_int_equal(log.offset, 90);
    assert_int_equal(log.n, 10);
    assert_int_equal(log.advice, TNF_WONT_NEED);
    tnf_source_advise(s, 100, 1, TNF_WILL_NEED);
    tnf_source_advise(s, 5, 0, TNF_WILL_NEED);
    assert_int_equal(log.advised, 1);
    tnf_source_close(s);
}

static void bad_ops_are_refused(void **state)
{
    (void)state;
    tnf_error e;
    struct log log = { 0 };
    tnf_source *s = (tnf_source *)&log;
    tnf_source_ops ops = full;
    ops.version = 0;
    assert_fails(tnf_source_custom(&s, &ops, &log, 1, &e), TNF_EINVAL);
    assert_null(s);
    ops.version = TNF_SOURCE_OPS_VERSION + 1;
    assert_fails(tnf_source_custom(&s, &ops, &log, 1, &e), TNF_EINVAL);
    ops = full;
    ops.read_at = NULL;
    assert_fails(tnf_source_custom(&s, &ops, &log, 1, &e), TNF_EINVAL);
    assert_fails(tnf_source_custom(&s, NULL, &log, 1, &e), TNF_EINVAL);
    assert_int_equal(log.closed, 0); /* ctx still belongs to the caller */
}

static void reads_memory(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    static const char text[] = "some bytes";
    char out[5];
    assert_ok(tnf_source_memory(&s, text, 10, &e));
    assert_ok(tnf_source_read(s, 5, out, 5, &e));
    assert_memory_equal(out, "bytes", 5);
    assert_ptr_equal(tnf_source_map(s, 5, 5), text + 5);
    assert_null(tnf_source_map(s, 5, 6));
    assert_int_equal(s->fd, -1);
    tnf_source_close(s);
    assert_ok(tnf_source_memory(&s, NULL, 0, &e));
    assert_ok(tnf_source_read(s, 0, NULL, 0, &e));
    assert_fails(tnf_source_read(s, 0, out, 1, &e), TNF_ETRUNCATED);
    tnf_source_close(s);
}

static void fetches_memory(void **state)
{
    (void)state;
    tnf_error e;
    tnf_str text = { "abcdef", 6 }, none = { NULL, 0 };
    char got[4] = { 0 };
    assert_ok(tnf_memory_fetch(&text, 3, got, 3, &e));
    assert_memory_equal(got, "def", 4);
    assert_ok(tnf_memory_fetch(&text, 6, got, 0, &e));
    assert_ok(tnf_memory_fetch(&none, 0, got, 0, &e));
    assert_fails(tnf_memory_fetch(&text, 4, got, 3, &e), TNF_ETRUNCATED);
    assert_fails(tnf_memory_fetch(&text, 7, got, 0, &e), TNF_ETRUNCATED);
    assert_fails(tnf_memory_fetch(&text, UINT64_MAX, got, 2, &e), TNF_ETRUNCATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_within_bounds), cmocka_unit_test(many_ranges),
        cmocka_unit_test(what_is_optional),    cmocka_unit_test(advice_is_clipped),
        cmocka_unit_test(bad_ops_are_refused), cmocka_unit_test(reads_memory),
        cmocka_unit_test(fetches_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
