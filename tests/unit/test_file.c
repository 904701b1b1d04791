/* SPDX-License-Identifier: MIT */
/* Files as sources: pread, merged reads, mapping, pipes. */
#include "../support/descriptors.h"
#include "../support/files.h"
#include "../support/memory.h"
#include "../support/unit.h"
#include "io/source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#define SIZE 500000u

static char path[300];
static uint8_t *content;

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/file", files_temp());
    content = malloc(SIZE);
    uint64_t rng = 3;
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)next_random(&rng);
    bytes_to_file(path, content, SIZE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(content);
    return 0;
}

static void reads_pieces(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    uint8_t out[1000];
    assert_ok(tnf_source_file(&s, path, TNF_ACCESS_AUTO, &e));
    assert_int_equal(s->size, SIZE);
    assert_true(s->fd >= 0);
    for (uint64_t at = 0; at < SIZE - sizeof out; at += 4999) {
        assert_ok(tnf_source_read(s, at, out, sizeof out, &e));
        assert_memory_equal(out, content + at, sizeof out);
    }
    assert_fails(tnf_source_read(s, SIZE - 1, out, 2, &e), TNF_ETRUNCATED);
    tnf_source_close(s);
}

/* Ranges near and far, touching, overlapping, empty, larger than one call can read: all give the
 * same bytes. */
static void merged_reads(void **state)
{
    (void)state;
    enum { N = 900 };
    static tnf_range ranges[N];
    static uint8_t out[N][300];
    tnf_error e;
    tnf_source *s;
    uint64_t rng = 4;
    assert_ok(tnf_source_file(&s, path, TNF_ACCESS_PREAD, &e));
    for (int round = 0; round < 40; round++) {
        size_t n = 1 + next_random(&rng) % (N - 1);
        uint64_t at = next_random(&rng) % 1000;
        for (size_t i = 0; i < n; i++) {
            uint64_t r = next_random(&rng);
            ranges[i] = (tnf_range) { at, (size_t)(r >> 32) % 300, out[i] };
            if (r % 5 == 0)
                at += (r >> 8) % 60; /* they may overlap */
            else if (r % 5 < 3)
                at += ranges[i].n; /* touches */
            else
                at += ranges[i].n + (r >> 8) % (r % 97 == 0 ? 100000 : 300);
            if (at > SIZE - 300)
                at = SIZE - 300;
        }
        memset(out, 0xa5, sizeof out);
        assert_ok(tnf_source_read_many(s, ranges, n, &e));
        for (size_t i = 0; i < n; i++) {
            assert_memory_equal(out[i], content + ranges[i].offset, ranges[i].n);
            assert_true(out[i][299] == 0xa5); /* and not one byte more */
        }
    }
    tnf_source_close(s);
}

static void maps_views(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    assert_ok(tnf_source_file(&s, path, TNF_ACCESS_MMAP, &e));
    assert_null(s->map_why);
    const uint8_t *p = tnf_source_map(s, 4097, 100), *q = tnf_source_map(s, 0, SIZE);
    assert_non_null(p);
    assert_ptr_equal(p, q + 4097); /* there is only one mapping */
    assert_memory_equal(q, content, SIZE);
    tnf_source_advise(s, 100, 9000, TNF_WILL_NEED);
    tnf_source_advise(s, 100, 9000, TNF_WONT_NEED);
    tnf_source_advise(s, SIZE - 1, 1, TNF_WONT_NEED);
    assert_memory_equal(q, content, SIZE);
    tnf_source_close(s);
    assert_ok(tnf_source_file(&s, path, TNF_ACCESS_PREAD, &e));
    assert_non_null(s->map_why);
    assert_null(tnf_source_map(s, 0, 1));
    tnf_source_advise(s, 0, 10, TNF_WILL_NEED);
    tnf_source_close(s);
}

static pthread_barrier_t start;

static void *map_once(void *arg)
{
    pthread_barrier_wait(&start);
    return (void *)(uintptr_t)tnf_source_map(arg, 0, SIZE);
}

/* All threads get the same view, even if they all request it at the same time. */
static void views_from_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    tnf_error e;
    tnf_source *s;
    pthread_t ids[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int round = 0; round < 400; round++) {
        void *first = NULL, *p;
        assert_ok(tnf_source_file(&s, path, TNF_ACCESS_MMAP, &e));
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&ids[i], NULL, map_once, s), 0);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(ids[i], &p);
            first = i ? first : p;
            assert_non_null(p);
            assert_ptr_equal(p, first);
        }
        tnf_source_close(s);
    }
    pthread_barrier_destroy(&start);
}

static void what_is_no_file(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    char other[320];
    assert_fails(tnf_source_file(&s, "/nonexistent/x", TNF_ACCESS_AUTO, &e), TNF_ENOTFOUND);
    assert_int_equal(e.sys, ENOENT);
    assert_null(s);
    assert_fails(tnf_source_file(&s, files_temp(), TNF_ACCESS_AUTO, &e), TNF_EINVAL);
    assert_says("directory");
    snprintf(other, sizeof other, "%s/fifo", files_temp());
    assert_int_equal(mkfifo(other, 0600), 0);
    assert_fails(tnf_source_file(&s, other, TNF_ACCESS_AUTO, &e), TNF_EINVAL); /* it returns */
    assert_fails(tnf_source_file(&s, "/dev/null", TNF_ACCESS_AUTO, &e), TNF_EINVAL);
    assert_fails(tnf_source_fd(&s, -1, TNF_ACCESS_AUTO, &e), TNF_EIO);
    int dir = open(files_temp(), O_RDONLY);
    assert_fails(tnf_source_fd(&s, dir, TNF_ACCESS_AUTO, &e), TNF_EINVAL);
    close(dir);
    snprintf(other, sizeof other, "%s/empty", files_temp());
    bytes_to_file(other, "", 0);
    assert_ok(tnf_source_file(&s, other, TNF_ACCESS_AUTO, &e));
    assert_int_equal(s->size, 0);
    assert_null(tnf_source_map(s, 0, 0));
    tnf_source_close(s);
}

static void a_file_that_shrinks(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    uint8_t out[3][200];
    char other[320];
    snprintf(other, sizeof other, "%s/shrinks", files_temp());
    bytes_to_file(other, content, 10000);
    assert_ok(tnf_source_file(&s, other, TNF_ACCESS_AUTO, &e));
    assert_int_equal(truncate(other, 5000), 0);
    assert_ok(tnf_source_read(s, 4800, out, 200, &e));
    assert_fails(tnf_source_read(s, 4900, out, 200, &e), TNF_ETRUNCATED);
    assert_int_equal(e.offset, 5000);
    tnf_range ranges[] = { { 4700, 100, out[0] }, { 4800, 200, out[1] }, { 5100, 100, out[2] } };
    assert_fails(tnf_source_read_many(s, ranges, 3, &e), TNF_ETRUNCATED);
    assert_int_equal(e.offset, 5000);
    tnf_source_close(s);
}

static void descriptors_stay_the_callers(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    uint8_t out[10];
    int fd = open(path, O_RDONLY);
    assert_int_equal(lseek(fd, 77, SEEK_SET), 77);
    assert_ok(tnf_source_fd(&s, fd, TNF_ACCESS_AUTO, &e));
    assert_ok(tnf_source_read(s, 0, out, 10, &e));
    assert_memory_equal(out, content, 10);
    tnf_source_close(s);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 77); /* still open, at the same position */
    close(fd);
}

static void *feed_pipe(void *arg)
{
    int fd = *(int *)arg;
    for (size_t at = 0; at < SIZE;) {
        ssize_t put = write(fd, content + at, SIZE - at < 7001 ? SIZE - at : 7001);
        if (put < 0)
            break;
        at += (size_t)put;
    }
    close(fd);
    return NULL;
}

static void pipes_are_spooled(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    int ends[2];
    pthread_t id;
    uint8_t *out = malloc(SIZE);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pthread_create(&id, NULL, feed_pipe, &ends[1]), 0);
    assert_ok(tnf_source_fd(&s, ends[0], TNF_ACCESS_AUTO, &e));
    pthread_join(id, NULL);
    assert_int_equal(s->size, SIZE);
    assert_ok(tnf_source_read(s, 0, out, SIZE, &e));
    assert_memory_equal(out, content, SIZE);
    tnf_source_close(s);
    close(ends[0]);
    free(out);
}

static void pipes_that_cannot_be_read(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    int ends[2];
    unsigned before = descriptors_open();
    assert_int_equal(pipe(ends), 0);
    assert_fails(tnf_source_fd(&s, ends[1], TNF_ACCESS_AUTO, &e), TNF_EIO); /* the wrong end */
    assert_null(s);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(descriptors_open(), before);
}

static void pipes_need_a_place(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    int ends[2];
    char *before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    char *long_path = malloc(6000);
    memset(long_path, 'x', 5999);
    long_path[5999] = 0;
    assert_int_equal(pipe(ends), 0);
    close(ends[1]);
    setenv("TMPDIR", "/nonexistent", 1);
    assert_fails(tnf_source_fd(&s, ends[0], TNF_ACCESS_AUTO, &e), TNF_EIO);
    assert_int_equal(e.sys, ENOENT);
    assert_true(tnf_source_fd(&s, ends[0], TNF_ACCESS_AUTO, NULL) != TNF_OK);
    setenv("TMPDIR", long_path, 1);
    assert_fails(tnf_source_fd(&s, ends[0], TNF_ACCESS_AUTO, &e), TNF_EINVAL);
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    assert_ok(tnf_source_fd(&s, ends[0], TNF_ACCESS_AUTO, &e)); /* an empty pipe is an empty file */
    assert_int_equal(s->size, 0);
    tnf_source_close(s);
    close(ends[0]);
    free(before);
    free(long_path);
}

static void memory_is_the_handles(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *s;
    for (uint64_t n = 1;; n++) {
        struct memory_log log = { .fail_at = n };
        tnf_allocator a = memory_allocator(&log);
        tnf_status status = tnf_source_open(&s, path, TNF_ACCESS_AUTO, &a, &e);
        if (status == TNF_OK)
            tnf_source_close(s);
        else
            assert_int_equal(status, TNF_ENOMEM);
        assert_int_equal(log.blocks, 0);
        assert_int_equal(log.wrong_sizes, 0);
        if (status == TNF_OK)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_pieces),
        cmocka_unit_test(merged_reads),
        cmocka_unit_test(maps_views),
        cmocka_unit_test(views_from_many_threads),
        cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(a_file_that_shrinks),
        cmocka_unit_test(descriptors_stay_the_callers),
        cmocka_unit_test(pipes_are_spooled),
        cmocka_unit_test(pipes_that_cannot_be_read),
        cmocka_unit_test(pipes_need_a_place),
        cmocka_unit_test(memory_is_the_handles),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
