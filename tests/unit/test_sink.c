/* SPDX-License-Identifier: MIT */
/* Properties of all sinks: small writes are gathered, order is kept, commit happens once,
 * everything else is aborted. */
#include "../support/check.h"
#include "../support/memory.h"
#include "../support/unit.h"
#include "base/error.h"
#include "io/sink.h"

#include <sys/stat.h>
#include <unistd.h>

struct log {
    uint8_t *p;
    size_t n, largest;
    unsigned writes, commits, aborts;
    unsigned fail_write; /* the write with this number fails; 0: none */
    bool fail_commit;
};

static tnf_status log_write(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct log *log = ctx;
    if (++log->writes == log->fail_write)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "no");
    log->p = realloc(log->p, log->n + n + 1);
    memcpy(log->p + log->n, bytes, n);
    log->n += n;
    log->largest = n > log->largest ? n : log->largest;
    return TNF_OK;
}

static tnf_status log_commit(void *ctx, tnf_error *e)
{
    struct log *log = ctx;
    log->commits++;
    return log->fail_commit ? tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "no") : TNF_OK;
}

static void log_abort(void *ctx)
{
    ((struct log *)ctx)->aborts++;
}

static const tnf_sink_ops ops = {
    .version = 1, .write = log_write, .commit = log_commit, .abort = log_abort
};

/* Pieces of every size arrive unchanged. */
static void bytes_in_order(void **state)
{
    (void)state;
    tnf_error e;
    struct log log = { 0 };
    tnf_sink *s;
    uint64_t rng = 5, total = 0;
    static uint8_t piece[300000], all[3000000];
    assert_ok(tnf_sink_custom(&s, &ops, &log, &e));
    for (int i = 0; i < 400; i++) {
        uint64_t r = next_random(&rng);
        size_t n = (size_t)(r >> 16) % (r % 40 == 0 ? sizeof piece : 600);
        if (total + n > sizeof all)
            break;
        for (size_t k = 0; k < n; k++)
            piece[k] = (uint8_t)(r >> 8 * (k % 8));
        memcpy(all + total, piece, n);
        total += n;
        assert_ok(tnf_sink_write(s, piece, n, &e));
        assert_int_equal(s->written, total);
    }
    assert_true(log.writes < 60); /* small writes were gathered */
    assert_ok(tnf_sink_commit(s, &e));
    assert_int_equal(log.commits, 1);
    assert_int_equal(log.n, total);
    assert_memory_equal(log.p, all, total);
    assert_fails(tnf_sink_commit(s, &e), TNF_EINVAL);
    assert_fails(tnf_sink_write(s, "x", 1, &e), TNF_EINVAL);
    tnf_source *from;
    assert_ok(tnf_source_memory(&from, "abc", 3, &e));
    assert_fails(tnf_sink_copy(s, from, 0, 3, &e), TNF_EINVAL);
    tnf_source_close(from);
    tnf_sink_close(s);
    assert_int_equal(log.aborts, 0);
    assert_int_equal(log.commits, 1);
    free(log.p);
}

static void close_without_commit_aborts(void **state)
{
    (void)state;
    tnf_error e;
    struct log log = { 0 };
    tnf_sink *s;
    assert_ok(tnf_sink_custom(&s, &ops, &log, &e));
    assert_ok(tnf_sink_write(s, "x", 1, &e));
    tnf_sink_close(s);
    assert_int_equal(log.aborts, 1);
    assert_int_equal(log.commits, 0);
    free(log.p);
    tnf_sink_close(NULL);
}

static void failures_are_told(void **state)
{
    (void)state;
    tnf_error e;
    static uint8_t big[100000];
    struct log log = { .fail_write = 1 };
    tnf_sink *s;
    assert_ok(tnf_sink_custom(&s, &ops, &log, &e));
    assert_fails(tnf_sink_write(s, big, sizeof big, &e), TNF_ENET);
    tnf_sink_close(s);
    assert_int_equal(log.aborts, 1);

    log = (struct log) { .fail_write = 1 };
    assert_ok(tnf_sink_custom(&s, &ops, &log, &e));
    assert_ok(tnf_sink_write(s, "x", 1, &e));
    assert_fails(tnf_sink_commit(s, &e), TNF_ENET); /* the gathered bytes could not be written */
    tnf_sink_close(s);
    assert_int_equal(log.commits, 0);
    assert_int_equal(log.aborts, 1);

    log = (struct log) { .fail_commit = true };
    assert_ok(tnf_sink_custom(&s, &ops, &log, &e));
    assert_fails(tnf_sink_commit(s, &e), TNF_EIO);
    assert_fails(tnf_sink_commit(s, &e), TNF_EIO);
    assert_int_equal(log.commits, 1);
    tnf_sink_close(s);
    assert_int_equal(log.aborts, 1);
    free(log.p);
}

/* Bytes after a failed write would be at the wrong place, so nothing more is accepted. */
static void failures_stay(void **state)
{
    (void)state;
    tnf_error e;
    static uint8_t big[100000];
    struct log log = { .fail_write = 2 };
    tnf_sink *s;
    assert_ok(tnf_sink_custom(&s, &ops, &log, &e));
    assert_ok(tnf_sink_write(s, big, sizeof big, &e));
    assert_fails(tnf_sink_write(s, big, sizeof big, &e), TNF_ENET);
    assert_fails(tnf_sink_write(s, big, 1, &e), TNF_EIO);
    assert_says("an earlier write to the sink failed");
    assert_fails(tnf_sink_zeros(s, 1, &e), TNF_EIO);
    assert_fails(tnf_sink_commit(s, &e), TNF_EIO);
    assert_int_equal(log.writes, 2);
    tnf_sink_close(s);
    assert_int_equal(log.commits, 0);
    assert_int_equal(log.aborts, 1);
    free(log.p);
}

static void least_ops(void **state)
{
    (void)state;
    tnf_error e;
    struct log log = { 0 };
    tnf_sink *s;
    tnf_sink_ops few = { .version = 1, .write = log_write };
    assert_ok(tnf_sink_custom(&s, &few, &log, &e));
    assert_ok(tnf_sink_write(s, "abc", 3, &e));
    assert_ok(tnf_sink_commit(s, &e));
    assert_int_equal(log.n, 3);
    assert_null(tnf_sink_bytes(s).p); /* not a memory sink */
    tnf_sink_close(s);
    assert_ok(tnf_sink_custom(&s, &few, &log, &e));
    tnf_sink_close(s);
    free(log.p);
    few.write = NULL;
    assert_fails(tnf_sink_custom(&s, &few, &log, &e), TNF_EINVAL);
    few = ops;
    few.version = 2;
    assert_fails(tnf_sink_custom(&s, &few, &log, &e), TNF_EINVAL);
    few.version = 0;
    assert_fails(tnf_sink_custom(&s, &few, &log, &e), TNF_EINVAL);
    assert_fails(tnf_sink_custom(&s, NULL, &log, &e), TNF_EINVAL);
    assert_null(s);
}

static void writes_to_memory(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *s;
    static uint8_t big[200000];
    assert_ok(tnf_sink_memory(&s, &e));
    assert_int_equal(tnf_sink_bytes(s).n, 0);
    assert_ok(tnf_sink_write(s, "ab", 2, &e));
    memset(big, 'z', sizeof big);
    assert_ok(tnf_sink_write(s, big, sizeof big, &e));
    assert_ok(tnf_sink_write(s, "cd", 2, &e));
    assert_ok(tnf_sink_commit(s, &e));
    tnf_str all = tnf_sink_bytes(s);
    assert_int_equal(all.n, 200004);
    assert_memory_equal(all.p, "abz", 3);
    assert_memory_equal(all.p + 200001, "zcd", 3);
    tnf_sink_close(s);
}

/* Changes bytes that are already written, that are in the buffer, and across the border. */
static void patch_all(tnf_sink *s, uint8_t *expect)
{
    tnf_error e;
    static const struct {
        uint64_t at;
        size_t n;
    } changes[] = { { 0, 0 },      { 0, 4 },        { 1, 1 },       { 49999, 3 },
                    { 99990, 20 }, { 100000, 100 }, { 100090, 10 }, { 100100, 0 },
                    { 0, 100100 }, { 65530, 12 },   { 99999, 101 } };
    static uint8_t bytes[100100];
    for (size_t i = 0; i < 100100; i++)
        expect[i] = (uint8_t)(i * 7);
    assert_ok(tnf_sink_write(s, expect, 100000, &e));
    for (size_t i = 100000; i < 100100; i++) /* these are gathered */
        assert_ok(tnf_sink_write(s, expect + i, 1, &e));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memset(bytes, (int)(0xa0 + i), changes[i].n);
        assert_ok(tnf_sink_patch(s, changes[i].at, bytes, changes[i].n, &e));
        memcpy(expect + changes[i].at, bytes, changes[i].n);
    }
    assert_int_equal(s->written, 100100); /* later bytes still go to the end */
    assert_ok(tnf_sink_write(s, "end", 3, &e));
    memcpy(expect + 100100, "end", 3);
    assert_fails(tnf_sink_patch(s, 100104, "x", 0, &e), TNF_EBUG);
    assert_fails(tnf_sink_patch(s, 100102, "xy", 2, &e), TNF_EBUG);
    assert_fails(tnf_sink_patch(s, UINT64_MAX, "x", 1, &e), TNF_EBUG);
    assert_ok(tnf_sink_commit(s, &e));
    assert_fails(tnf_sink_patch(s, 0, "x", 1, &e), TNF_EBUG);
}

static void patches_bytes(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *s;
    struct log log = { 0 };
    static uint8_t expect[100103], found[100104];
    assert_ok(tnf_sink_memory(&s, &e));
    patch_all(s, expect);
    assert_int_equal(tnf_sink_bytes(s).n, sizeof expect);
    assert_memory_equal(tnf_sink_bytes(s).p, expect, sizeof expect);
    tnf_sink_close(s);
    char path[] = "/tmp/tenfold-patch-XXXXXX";
    assert_non_null(mkdtemp(path));
    char name[64];
    snprintf(name, sizeof name, "%s/f", path);
    assert_ok(tnf_sink_file(&s, name, TNF_SINK_NO_SYNC, &e));
    patch_all(s, expect);
    tnf_sink_close(s);
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    assert_int_equal(fread(found, 1, sizeof found, f), sizeof expect);
    fclose(f);
    assert_memory_equal(found, expect, sizeof expect);
    unlink(name);
    rmdir(path);
    assert_ok(tnf_sink_custom(&s, &ops, &log, &e)); /* a user's sink has it */
    assert_ok(tnf_sink_write(s, "ab", 2, &e));
    assert_null(s->patch);
    assert_fails(tnf_sink_patch(s, 0, "x", 1, &e), TNF_EBUG);
    tnf_sink_close(s);
    free(log.p);
}

/* Copies and writes of all sizes, alternating, keep their order. */
static void small_copies(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *s;
    tnf_source *from;
    static uint8_t bytes[70000];
    uint64_t rng = 11;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)next_random(&rng);
    assert_ok(tnf_source_memory(&from, bytes, sizeof bytes, &e));
    assert_ok(tnf_sink_memory(&s, &e));
    uint8_t *want = malloc(8000000);
    size_t total = 0;
    for (int i = 0; i < 300; i++) {
        uint64_t r = next_random(&rng);
        size_t n = (size_t)(r >> 8) % (r % 5 ? 40000 : sizeof bytes), at = sizeof bytes - n;
        if (total + n > 8000000)
            break;
        memcpy(want + total, bytes + at, n);
        total += n;
        if (r & 64)
            assert_ok(tnf_sink_copy(s, from, at, n, &e));
        else
            assert_ok(tnf_sink_write(s, bytes + at, n, &e));
        assert_int_equal(s->written, total);
    }
    assert_ok(tnf_sink_commit(s, &e));
    assert_int_equal(tnf_sink_bytes(s).n, total);
    assert_memory_equal(tnf_sink_bytes(s).p, want, total);
    free(want);
    tnf_sink_close(s);
    tnf_source_close(from);
}

static tnf_status bad_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)ctx, (void)dst, (void)n;
    return tnf_fail(e, TNF_ENET, offset, "gone");
}

/* Copies from a source, small and large, through memory. */
static void copies_sources(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *s;
    tnf_source *from;
    size_t n = 3500000;
    uint8_t *bytes = malloc(n);
    uint64_t rng = 6;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(next_random(&rng) >> 20);
    assert_ok(tnf_source_memory(&from, bytes, n, &e));
    assert_ok(tnf_sink_memory(&s, &e));
    assert_ok(tnf_sink_copy(s, from, 0, 0, &e));
    assert_ok(tnf_sink_copy(s, from, 7, 10, &e));
    assert_ok(tnf_sink_copy(s, from, 1, n - 1, &e));
    assert_fails(tnf_sink_copy(s, from, 1, n, &e), TNF_ETRUNCATED);
    assert_ok(tnf_sink_commit(s, &e));
    tnf_str all = tnf_sink_bytes(s);
    assert_true(all.n >= n + 9); /* the failed copy may have written a part */
    assert_memory_equal(all.p, bytes + 7, 10);
    assert_memory_equal(all.p + 10, bytes + 1, n - 1);
    tnf_sink_close(s);
    tnf_source_close(from);
    free(bytes);
    tnf_source_ops bad = { .version = 1, .read_at = bad_read };
    assert_ok(tnf_source_custom(&from, &bad, NULL, 1000, &e));
    assert_ok(tnf_sink_memory(&s, &e));
    assert_fails(tnf_sink_copy(s, from, 0, 1000, &e), TNF_ENET);
    tnf_sink_close(s);
    tnf_source_close(from);
}

static void no_memory(void **state)
{
    (void)state;
    tnf_error e;
    struct log log = { 0 };
    tnf_source *from;
    static uint8_t bytes[100000]; /* too many for the buffer of the sink */
    assert_ok(tnf_source_memory(&from, bytes, sizeof bytes, &e));
    for (uint64_t n = 1; n <= 3; n++) {
        struct memory_log m = { .fail_at = n };
        tnf_allocator a = memory_allocator(&m);
        tnf_sink *s;
        tnf_status status = tnf_sink_new(&s, &ops, &log, &a, &e);
        if (status == TNF_OK) {
            assert_fails(tnf_sink_copy(s, from, 0, sizeof bytes, &e), TNF_ENOMEM);
            tnf_sink_close(s);
        } else {
            assert_int_equal(status, TNF_ENOMEM);
        }
        assert_int_equal(m.blocks, 0);
        assert_int_equal(m.wrong_sizes, 0);
    }
    tnf_source_close(from);
    free(log.p);
}

/* Zeros are read as zeros, whether they are written or are a hole; also at the end of a file. */
static void zeros_are_zeros(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags <= TNF_SINK_NO_SYNC; flags += TNF_SINK_NO_SYNC)
        for (int memory = 0; memory < 2; memory++) {
            tnf_error e;
            tnf_sink *s;
            char path[] = "/tmp/tenfold-zeros-XXXXXX";
            uint8_t *bytes = calloc(1, 210003);
            assert_int_equal(close(mkstemp(path)), 0);
            assert_ok(memory ? tnf_sink_memory(&s, &e)
                             : tnf_sink_open(&s, path, flags | TNF_SINK_REPLACE, NULL, &e));
            assert_ok(tnf_sink_write(s, "a", 1, &e));
            assert_ok(tnf_sink_zeros(s, 1, &e));
            assert_ok(tnf_sink_zeros(s, 100000, &e));
            assert_ok(tnf_sink_write(s, "b", 1, &e));
            assert_ok(tnf_sink_zeros(s, 110000, &e));
            assert_int_equal(s->written, 210003);
            assert_ok(tnf_sink_commit(s, &e));
            if (memory) {
                assert_int_equal(tnf_sink_bytes(s).n, 210003);
                memcpy(bytes, tnf_sink_bytes(s).p, 210003);
            } else {
                FILE *f = fopen(path, "rb");
                assert_int_equal(fread(bytes, 1, 210003, f), 210003);
                assert_int_equal(fgetc(f), EOF);
                fclose(f);
            }
            for (size_t i = 0; i < 210003; i++)
                assert_int_equal(bytes[i], i == 0 ? 'a' : i == 100002 ? 'b' : 0);
            tnf_sink_close(s);
            unlink(path);
            free(bytes);
        }
}

/* Space on the disk after a sync: for a few bytes among zeros, and for as many bytes as zeros. */
static void holes_take_no_room(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    static uint8_t data[N];
    memset(data, 'x', sizeof data);
    for (int few = 0; few < 2; few++) {
        tnf_error e;
        tnf_sink *s;
        struct stat st;
        char path[] = "/tmp/tenfold-holes-XXXXXX";
        int fd = mkstemp(path);
        bool has_holes = ftruncate(fd, N) == 0 && fstat(fd, &st) == 0 && st.st_blocks < 100;
        assert_int_equal(close(fd), 0);
        assert_ok(tnf_sink_open(&s, path, TNF_SINK_REPLACE, NULL, &e));
        for (int i = 0; i < 8; i++) {
            assert_ok(tnf_sink_write(s, data, few ? 10 : N, &e));
            assert_ok(tnf_sink_zeros(s, N, &e));
        }
        assert_ok(tnf_sink_commit(s, &e));
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 8 * (N + (few ? 10 : N)));
        if (few && has_holes)
            assert_true(st.st_blocks < 8 * N / 512);
        tnf_sink_close(s);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_in_order),    cmocka_unit_test(close_without_commit_aborts),
        cmocka_unit_test(failures_are_told), cmocka_unit_test(failures_stay),
        cmocka_unit_test(least_ops),         cmocka_unit_test(writes_to_memory),
        cmocka_unit_test(patches_bytes),     cmocka_unit_test(copies_sources),
        cmocka_unit_test(small_copies),      cmocka_unit_test(no_memory),
        cmocka_unit_test(zeros_are_zeros),   cmocka_unit_test(holes_take_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
