/* SPDX-License-Identifier: MIT */
/* Many parts at once: the same bytes as one by one, for all positions. */
#include "../support/check.h"
#include "../support/fake.h"
#include "../support/files.h"

#define SIZE ((size_t)40 << 20)

static uint8_t *content;
static char path[300];

static int set_up(void **state)
{
    (void)state;
    uint64_t rng = 8;
    content = malloc(SIZE);
    for (size_t i = 0; i + 8 <= SIZE; i += 8) {
        uint64_t r = next_random(&rng);
        memcpy(content + i, &r, 8);
    }
    snprintf(path, sizeof path, "%s/file", files_temp());
    bytes_to_file(path, content, SIZE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(content);
    return 0;
}

static tnf_part part_at(const struct tnf_origin *origin, uint64_t offset, uint64_t n)
{
    return (tnf_part) { .role = "data",
                        .type = tnf_type_of(TNF_U8),
                        .origin = origin,
                        .offset = offset,
                        .stored = n,
                        .nbytes = n };
}

struct counted {
    uint64_t last, total, stop_at;
    unsigned calls;
    bool backwards;
};

static bool count_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct counted *c = ctx;
    c->backwards = c->backwards || done < c->last;
    c->last = done;
    c->total = total;
    c->calls++;
    return !c->stop_at || done < c->stop_at;
}

/* Two files, parts of all sizes, some of them overlapping, on one to four threads. */
static void any_parts(void **state)
{
    (void)state;
    enum { N = 120 };
    tnf_error e;
    tnf_source *file, *memory;
    assert_ok(tnf_source_file(&file, path, TNF_ACCESS_AUTO, &e));
    assert_ok(tnf_source_memory(&memory, content, SIZE, &e));
    struct tnf_origin origins[] = { { .source = file }, { .source = memory } };
    uint64_t rng = 9;
    for (unsigned threads = 1; threads <= 4; threads++) {
        tnf_part parts[N];
        tnf_request requests[N];
        uint64_t total = 0;
        for (size_t i = 0; i < N; i++) {
            uint64_t r = next_random(&rng), n = r % 60 == 0 ? (20 << 20) + r % 1000 : r % 50000;
            parts[i] = part_at(&origins[r >> 40 & 1], (r >> 16) % (SIZE - n), n);
            if (r % 11 == 0)
                parts[i].flags = TNF_PART_BIG_ENDIAN; /* u8: nothing to swap, so other code runs */
            requests[i] = (tnf_request) { &parts[i], malloc(n + 1) };
            total += n;
        }
        struct counted c = { 0 };
        tnf_read_options o = {
            .size = sizeof o, .threads = threads, .progress = count_progress, .ctx = &c
        };
        assert_ok(tnf_read_many(requests, N, &o, &e));
        for (size_t i = 0; i < N; i++) {
            assert_memory_equal(requests[i].dst, content + parts[i].offset, parts[i].nbytes);
            free(requests[i].dst);
        }
        assert_int_equal(c.last, total);
        assert_int_equal(c.total, total);
        assert_false(c.backwards);
    }
    tnf_source_close(file);
    tnf_source_close(memory);
}

/* Neighbours in the file that are neighbours in memory, too. */
static void one_after_the_other(void **state)
{
    (void)state;
    enum { N = 3000, EACH = 7001 };
    tnf_error e;
    tnf_source *file;
    tnf_part *parts = malloc(N * sizeof *parts);
    tnf_request *requests = malloc(N * sizeof *requests);
    uint8_t *out = malloc((size_t)N * EACH);
    assert_ok(tnf_source_file(&file, path, TNF_ACCESS_AUTO, &e));
    struct tnf_origin origin = { .source = file };
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct counted c = { 0 };
        tnf_read_options o = {
            .size = sizeof o, .threads = threads, .progress = count_progress, .ctx = &c
        };
        memset(out, 0, (size_t)N * EACH);
        for (size_t i = 0; i < N; i++) {
            size_t k = threads == 2 ? N - 1 - i : i; /* requested backwards */
            parts[i] = part_at(&origin, 13 + (uint64_t)k * EACH, EACH);
            requests[i] = (tnf_request) { &parts[i], out + k * EACH };
        }
        assert_ok(tnf_read_many(requests, N, &o, &e));
        assert_memory_equal(out, content + 13, (size_t)N * EACH);
        assert_int_equal(c.last, (uint64_t)N * EACH);
    }
    tnf_source_close(file);
    free(parts);
    free(requests);
    free(out);
}

static void nothing_to_do(void **state)
{
    (void)state;
    tnf_error e;
    assert_ok(tnf_read_many(NULL, 0, NULL, &e));
    tnf_part empty = part_at(NULL, 0, 0);
    empty.payload = TNF_MEMORY;
    tnf_request r = { &empty, NULL };
    assert_ok(tnf_read_many(&r, 1, NULL, &e));
}

static void cancels_reading(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *file;
    uint8_t *out = malloc(SIZE);
    assert_ok(tnf_source_file(&file, path, TNF_ACCESS_AUTO, &e));
    struct tnf_origin origin = { .source = file };
    tnf_part p = part_at(&origin, 0, SIZE);
    tnf_request r = { &p, out };
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct counted c = { .stop_at = 1 };
        tnf_read_options o = {
            .size = sizeof o, .threads = threads, .progress = count_progress, .ctx = &c
        };
        assert_fails(tnf_read_many(&r, 1, &o, &e), TNF_ECANCELLED);
        assert_true(c.calls <= threads);
    }
    tnf_source_close(file);
    free(out);
}

static void failures_are_told(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *file;
    static uint8_t out[3][100];
    assert_ok(tnf_source_file(&file, path, TNF_ACCESS_AUTO, &e));
    struct tnf_origin origin = { .source = file, .label = "part-7" };
    tnf_part parts[] = { part_at(&origin, 0, 100), part_at(&origin, SIZE - 99, 100),
                         part_at(&origin, 200, 100) };
    tnf_request r[] = { { &parts[0], out[0] }, { &parts[1], out[1] }, { &parts[2], out[2] } };
    assert_fails(tnf_read_many(r, 3, NULL, &e), TNF_ETRUNCATED);
    assert_says("part-7: ");
    parts[1].flags = TNF_PART_UNREADABLE;
    assert_fails(tnf_read_many(r, 3, NULL, &e), TNF_EUNSUPPORTED);
    tnf_source_close(file);
}

static void refuses_no_part(void **state)
{
    char byte;
    tnf_error e;
    tnf_request request = { .dst = &byte };
    (void)state;
    assert_fails(tnf_read_many(&request, 1, NULL, &e), TNF_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_parts),         cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(nothing_to_do),     cmocka_unit_test(cancels_reading),
        cmocka_unit_test(failures_are_told), cmocka_unit_test(refuses_no_part),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
