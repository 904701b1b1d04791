/* SPDX-License-Identifier: MIT */
/* A file that grows: in pieces of every size; the last bytes are only written by the commit;
 * without a commit, the file does not change. */
#include "../support/files.h"
#include "../support/unit.h"
#include "io/sink.h"

#include <fcntl.h>

static tnf_error e;

static const char *file_of(const char *text)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/growing", files_temp());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static void assert_holds(const char *path, const void *bytes, size_t n)
{
    struct bytes b = bytes_of_file(path);
    assert_int_equal(b.n, n);
    assert_memory_equal(b.p, bytes, n);
    free(b.p);
}

/* The sink without its buffer. */
static void put_unbuffered(tnf_sink *s, const uint8_t *p, size_t n)
{
    assert_ok(s->ops.write(s->ctx, p, n, &e));
}

static void pieces_of_every_size(void **state)
{
    (void)state;
    uint8_t all[3 + 1000];
    memcpy(all, "old", 3);
    for (size_t i = 3; i < sizeof all; i++)
        all[i] = (uint8_t)(i * 37 + i / 256);
    for (size_t piece = 1; piece <= 200; piece++) {
        tnf_sink *s;
        const char *path = file_of("old");
        assert_ok(tnf_sink_append(&s, path, NULL, 3, TNF_SINK_NO_SYNC, NULL, &e));
        for (size_t at = 3; at < sizeof all; at += piece) {
            size_t n = sizeof all - at < piece ? sizeof all - at : piece;
            put_unbuffered(s, all + at, n);
            struct bytes b = bytes_of_file(path); /* without the last 64, or the old ones */
            size_t now = at + n - 3 > 64 ? at + n - 64 : 3;
            assert_int_equal(b.n, now);
            assert_memory_equal(b.p, all, now);
            free(b.p);
        }
        assert_ok(tnf_sink_commit(s, &e));
        tnf_sink_close(s);
        assert_holds(path, all, sizeof all);
    }
}

static void closed_without_commit(void **state)
{
    (void)state;
    tnf_sink *s;
    static const uint8_t zeros[1000];
    const char *path = file_of("old");
    assert_ok(tnf_sink_append(&s, path, NULL, 3, 0, NULL, &e));
    put_unbuffered(s, zeros, sizeof zeros);
    tnf_sink_close(s);
    assert_holds(path, "old", 3);
}

static void refuses_other_files(void **state)
{
    (void)state;
    tnf_sink *s;
    char fifo[300];
    const char *path = file_of("longer");
    assert_fails(tnf_sink_append(&s, path, NULL, 3, 0, NULL, &e), TNF_ECHANGED);
    assert_says("from 3 to 6 bytes");
    assert_null(s);
    assert_ok(tnf_sink_append(&s, path, NULL, 6, 0, NULL, &e));
    tnf_sink_close(s);
    assert_holds(path, "longer", 6);
    snprintf(fifo, sizeof fifo, "%s/fifo", files_temp());
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int end = open(fifo, O_RDONLY | O_NONBLOCK); /* otherwise opening waits for a reader */
    assert_fails(tnf_sink_append(&s, fifo, NULL, 0, 0, NULL, &e), TNF_EUNSUPPORTED);
    assert_says("not a regular file");
    close(end);
    assert_fails(tnf_sink_append(&s, "/no/such/file", NULL, 0, 0, NULL, &e), TNF_ENOTFOUND);
}

/* An append that was killed leaves the old end after the bytes that it wrote. The next append
 * truncates the file to the end of the model, also if it fails after that end was overwritten. */
static void aborted_after_a_killed_one(void **state)
{
    (void)state;
    tnf_sink *s;
    enum { LONG = 9 << 20 };
    uint8_t *left = calloc(1, LONG), *more = calloc(1, 2 * LONG);
    memcpy(left, "modelEND", 8);
    memcpy(left + LONG - 3, "END", 3);
    memset(more, 'x', 2 * LONG);
    char path[300];
    snprintf(path, sizeof path, "%s/killed", files_temp());
    bytes_to_file(path, left, LONG);
    assert_ok(tnf_sink_append(&s, path, NULL, LONG, 0, NULL, &e));
    assert_ok(tnf_sink_keep_end(s, "END", 3, 8, &e));
    put_unbuffered(s, more, 2 * LONG);
    tnf_sink_close(s);
    assert_holds(path, "modelEND", 8);
    free(left);
    free(more);
}

/* If there is no end at the place where the new bytes begin, the file keeps the end at its end. */
static void aborted_without_an_old_end(void **state)
{
    (void)state;
    tnf_sink *s;
    const char *path = file_of("modelENDjunk");
    assert_ok(tnf_sink_append(&s, path, NULL, 12, 0, NULL, &e));
    assert_ok(tnf_sink_keep_end(s, "END", 3, 12, &e));
    put_unbuffered(s, (const uint8_t *)"new", 3);
    tnf_sink_close(s);
    struct bytes b = bytes_of_file(path);
    assert_memory_equal(b.p, "modelENDjunk", 12);
    assert_memory_equal(b.p + b.n - 3, "END", 3);
    free(b.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_every_size),       cmocka_unit_test(closed_without_commit),
        cmocka_unit_test(refuses_other_files),        cmocka_unit_test(aborted_after_a_killed_one),
        cmocka_unit_test(aborted_without_an_old_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
