/* SPDX-License-Identifier: MIT */
/* A file that grows: in pieces of every size, the last bytes only with the commit, and as it was
 * after all else. */
#include "../support/files.h"
#include "../support/unit.h"
#include "io/sink.h"
#include <sys/file.h>

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

/* What the back-end gets, without the buffer before it. */
static void put(tnf_sink *s, const uint8_t *p, size_t n)
{
    assert_ok(s->ops.write(s->ctx, p, n, &e));
}

static void pieces(void **state)
{
    (void)state;
    uint8_t all[3 + 1000];
    memcpy(all, "old", 3);
    for (size_t i = 3; i < sizeof all; i++)
        all[i] = (uint8_t)(i * 37 + i / 256);
    for (size_t piece = 1; piece <= 200; piece++) {
        tnf_sink *s;
        const char *path = file_of("old");
        assert_ok(tnf_sink_append(&s, path, 3, TNF_SINK_NO_SYNC, NULL, &e));
        for (size_t at = 3; at < sizeof all; at += piece) {
            size_t n = sizeof all - at < piece ? sizeof all - at : piece;
            put(s, all + at, n);
            struct bytes b = bytes_of_file(path); /* all but the last 64, or those that there are */
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
    assert_ok(tnf_sink_append(&s, path, 3, 0, NULL, &e));
    put(s, zeros, sizeof zeros);
    tnf_sink_close(s);
    assert_holds(path, "old", 3);
}

static void refused(void **state)
{
    (void)state;
    tnf_sink *s;
    char fifo[300];
    const char *path = file_of("longer");
    assert_fails(tnf_sink_append(&s, path, 3, 0, NULL, &e), TNF_EIO);
    assert_says("from 3 to 6 bytes");
    assert_null(s);
    int other = open(path, O_RDONLY);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
    assert_fails(tnf_sink_append(&s, path, 6, 0, NULL, &e), TNF_EIO);
    assert_says("another program");
    close(other);
    assert_ok(tnf_sink_append(&s, path, 6, 0, NULL, &e));
    tnf_sink_close(s);
    assert_holds(path, "longer", 6);
    snprintf(fifo, sizeof fifo, "%s/fifo", files_temp());
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int end = open(fifo, O_RDONLY | O_NONBLOCK); /* or one would wait for a reader */
    assert_fails(tnf_sink_append(&s, fifo, 0, 0, NULL, &e), TNF_EUNSUPPORTED);
    assert_says("no plain file");
    close(end);
    assert_fails(tnf_sink_append(&s, "/no/such/file", 0, 0, NULL, &e), TNF_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),
        cmocka_unit_test(closed_without_commit),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
