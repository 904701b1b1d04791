/* SPDX-License-Identifier: MIT */
/* Files that appear completely or not at all: names, modes, links, devices, copies by the
 * kernel. */
#include "../support/files.h"
#include "../support/memory.h"
#include "../support/unit.h"
#include "io/sink.h"

#include <fcntl.h>

static char dir[300], target[320];

static int set_up(void **state)
{
    static int n;
    (void)state;
    snprintf(dir, sizeof dir, "%s/%d", files_temp(), n++);
    snprintf(target, sizeof target, "%s/out", dir);
    return mkdir(dir, 0700);
}

static void assert_holds(const char *path, const char *text)
{
    struct bytes b = bytes_of_file(path);
    assert_non_null(b.p);
    assert_int_equal(b.n, strlen(text));
    assert_memory_equal(b.p, text, b.n);
    free(b.p);
}

static tnf_status save_text(const char *path, const char *text, unsigned flags, tnf_error *e)
{
    tnf_sink *s;
    tnf_status status = tnf_sink_file(&s, path, flags, e);
    if (status != TNF_OK)
        return status;
    status = tnf_sink_write(s, text, strlen(text), e);
    if (status == TNF_OK)
        status = tnf_sink_commit(s, e);
    tnf_sink_close(s);
    return status;
}

static void appears_at_commit(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *s;
    assert_ok(tnf_sink_file(&s, target, 0, &e));
    assert_ok(tnf_sink_write(s, "new", 3, &e));
    assert_int_equal(access(target, F_OK), -1);
    assert_ok(tnf_sink_commit(s, &e));
    assert_holds(target, "new");
    tnf_sink_close(s);
    assert_holds(target, "new");
    assert_int_equal(files_count(dir, ""), 1);
}

static void an_existing_file_is_safe(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *s;
    bytes_to_file(target, "old", 3);
    assert_fails(save_text(target, "new", 0, &e), TNF_EEXISTS);
    assert_int_equal(e.sys, EEXIST);
    assert_holds(target, "old");
    assert_ok(save_text(target, "new", TNF_SINK_REPLACE, &e));
    assert_holds(target, "new");
    assert_ok(save_text(target, "newer", TNF_SINK_REPLACE | TNF_SINK_NO_SYNC, &e));
    assert_holds(target, "newer");
    assert_ok(tnf_sink_file(&s, target, TNF_SINK_REPLACE, &e));
    assert_ok(tnf_sink_write(s, "lost", 4, &e));
    tnf_sink_close(s); /* aborted */
    assert_holds(target, "newer");
    assert_int_equal(files_count(dir, ""), 1);
}

/* Another process creates the file between our check and our commit. */
static void a_race_is_lost_politely(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *s;
    assert_ok(tnf_sink_file(&s, target, 0, &e));
    assert_ok(tnf_sink_write(s, "ours", 4, &e));
    bytes_to_file(target, "theirs", 6);
    assert_fails(tnf_sink_commit(s, &e), TNF_EEXISTS);
    tnf_sink_close(s);
    assert_holds(target, "theirs");
    assert_int_equal(files_count(dir, ""), 1);
}

static void modes_are_kept(void **state)
{
    (void)state;
    tnf_error e;
    struct stat st;
    mode_t before = umask(027);
    assert_ok(save_text(target, "x", 0, &e));
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640); /* the mode of any new file */
    assert_int_equal(chmod(target, 0604), 0);
    assert_ok(save_text(target, "y", TNF_SINK_REPLACE, &e));
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0604); /* the mode of the old file */
    umask(before);
}

static void links_are_followed(void **state)
{
    (void)state;
    tnf_error e;
    char link_path[340];
    struct stat st;
    snprintf(link_path, sizeof link_path, "%s/link", dir);
    bytes_to_file(target, "old", 3);
    assert_int_equal(symlink("out", link_path), 0);
    assert_ok(save_text(link_path, "new", TNF_SINK_REPLACE, &e));
    assert_holds(target, "new");
    assert_int_equal(lstat(link_path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(files_count(dir, ""), 2);
}

static void a_name_without_a_directory(void **state)
{
    (void)state;
    tnf_error e;
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(dir), 0);
    assert_ok(save_text("plain", "x", 0, &e));
    assert_ok(save_text("plain", "y", TNF_SINK_REPLACE, &e));
    assert_holds("plain", "y");
    assert_int_equal(chdir(here), 0);
}

static void what_cannot_be_written(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *s = (tnf_sink *)&e;
    char path[400];
    assert_fails(tnf_sink_file(&s, dir, TNF_SINK_REPLACE, &e), TNF_EIO);
    assert_int_equal(e.sys, EISDIR);
    assert_null(s);
    snprintf(path, sizeof path, "%s/no/such/place", dir);
    assert_fails(tnf_sink_file(&s, path, 0, &e), TNF_ENOTFOUND);
    bytes_to_file(target, "x", 1);
    snprintf(path, sizeof path, "%s/out/below", dir);
    assert_fails(tnf_sink_file(&s, path, 0, &e), TNF_ENOTFOUND);
    assert_true(save_text("", "x", 0, &e) != TNF_OK);
    if (geteuid() != 0) { /* root may write anywhere */
        assert_int_equal(chmod(dir, 0500), 0);
        snprintf(path, sizeof path, "%s/other", dir);
        assert_fails(tnf_sink_file(&s, path, 0, &e), TNF_EIO);
        assert_int_equal(chmod(dir, 0700), 0);
    }
    assert_int_equal(files_count(dir, ""), 1);
}

static void devices_are_written_to(void **state)
{
    (void)state;
    tnf_error e;
    assert_ok(save_text("/dev/null", "x", 0, &e));
    assert_fails(save_text("/dev/full", "x", TNF_SINK_REPLACE, &e), TNF_EIO);
    assert_int_equal(e.sys, ENOSPC);
}

static void writes_to_descriptors(void **state)
{
    (void)state;
    tnf_error e;
    tnf_sink *s;
    int fd = open(target, O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(fd, "before ", 7), 7);
    assert_ok(tnf_sink_fd(&s, fd, &e));
    assert_ok(tnf_sink_write(s, "after", 5, &e));
    assert_ok(tnf_sink_commit(s, &e));
    tnf_sink_close(s);
    assert_holds(target, "before after");
    assert_int_equal(close(fd), 0); /* the file is still ours */
    assert_ok(tnf_sink_fd(&s, -1, &e));
    assert_ok(tnf_sink_write(s, "x", 1, &e));
    assert_fails(tnf_sink_commit(s, &e), TNF_EIO);
    tnf_sink_close(s);
}

/* Large copies from file to file, with buffered bytes before and after: the order is right. */
static void copies_inside_the_kernel(void **state)
{
    (void)state;
    tnf_error e;
    tnf_source *from;
    tnf_sink *s;
    enum { N = 3000000 };
    char path[340];
    uint8_t *bytes = malloc(N);
    uint64_t rng = 7;
    for (size_t i = 0; i < N; i++)
        bytes[i] = (uint8_t)(next_random(&rng) >> 9);
    snprintf(path, sizeof path, "%s/in", dir);
    bytes_to_file(path, bytes, N);
    assert_ok(tnf_source_file(&from, path, TNF_ACCESS_AUTO, &e));
    assert_ok(tnf_sink_file(&s, target, 0, &e));
    assert_ok(tnf_sink_write(s, "<", 1, &e));
    assert_ok(tnf_sink_copy(s, from, 3, N - 3, &e));
    assert_ok(tnf_sink_write(s, "|", 1, &e));
    assert_ok(tnf_sink_copy(s, from, 0, 100, &e));
    assert_int_equal(s->written, 1 + N - 3 + 1 + 100);
    assert_ok(tnf_sink_commit(s, &e));
    tnf_sink_close(s);
    struct bytes out = bytes_of_file(target);
    assert_int_equal(out.n, 1 + N - 3 + 1 + 100);
    assert_int_equal(out.p[0], '<');
    assert_memory_equal(out.p + 1, bytes + 3, N - 3);
    assert_int_equal(out.p[N - 2], '|');
    assert_memory_equal(out.p + N - 1, bytes, 100);
    free(out.p);
    /* the source is cut while it is copied */
    assert_int_equal(truncate(path, N / 2), 0);
    assert_ok(tnf_sink_file(&s, target, TNF_SINK_REPLACE, &e));
    assert_fails(tnf_sink_copy(s, from, 0, N, &e), TNF_ETRUNCATED);
    tnf_sink_close(s);
    /* also by one byte, and if its pages do not match those of the target */
    bytes_to_file(path, bytes, N);
    assert_int_equal(truncate(path, N - 1), 0);
    assert_ok(tnf_sink_file(&s, target, TNF_SINK_REPLACE, &e));
    assert_ok(tnf_sink_write(s, "<", 1, &e));
    assert_fails(tnf_sink_copy(s, from, 0, N, &e), TNF_ETRUNCATED);
    assert_int_equal(e.offset, N - 1);
    tnf_sink_close(s);
    out = bytes_of_file(target);
    assert_int_equal(out.n, 1 + N - 3 + 1 + 100); /* the old file */
    free(out.p);
    tnf_source_close(from);
    free(bytes);
}

/* A file of `n` bytes in which only [at, at + data) uses space on the disk. */
static void make_sparse(const char *path, const uint8_t *bytes, size_t data, off_t at, off_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(pwrite(fd, bytes, data, at), data);
    assert_int_equal(ftruncate(fd, n), 0);
    assert_int_equal(close(fd), 0);
}

/* Holes stay holes, also if pages do not match, before and after data. If a hole is cut off, its
 * missing bytes are an error. */
static void holes_stay(void **state)
{
    (void)state;
    enum { DATA = 300000, AT = 5 << 20, N = 40 << 20 };
    tnf_error e;
    tnf_source *from;
    tnf_sink *s;
    char path[340];
    struct stat st;
    static uint8_t bytes[DATA];
    memset(bytes, 'x', sizeof bytes);
    snprintf(path, sizeof path, "%s/in", dir);
    make_sparse(path, bytes, DATA, AT, N);
    assert_int_equal(stat(path, &st), 0);
    if (st.st_blocks * 512 > N / 2)
        skip(); /* this file system does not support holes */
    for (unsigned flags = 0; flags <= TNF_SINK_NO_SYNC; flags += TNF_SINK_NO_SYNC)
        for (unsigned first = 0; first < 2; first++) {
            assert_ok(tnf_source_file(&from, path, TNF_ACCESS_AUTO, &e));
            assert_ok(tnf_sink_file(&s, target, flags | TNF_SINK_REPLACE, &e));
            assert_ok(tnf_sink_write(s, "<", first, &e));
            assert_ok(tnf_sink_copy(s, from, 0, N, &e));
            assert_int_equal(s->written, first + N);
            assert_ok(tnf_sink_commit(s, &e));
            tnf_sink_close(s);
            tnf_source_close(from);
            struct bytes out = bytes_of_file(target);
            assert_int_equal(out.n, first + N);
            assert_int_equal(out.p[0], first ? '<' : 0);
            for (size_t i = first; i < out.n; i++)
                if (out.p[i] != (i - first >= AT && i - first < AT + DATA ? 'x' : 0))
                    fail_msg("byte %zu is %d", i, out.p[i]);
            free(out.p);
            assert_int_equal(stat(target, &st), 0);
            assert_true(st.st_blocks * 512 < 2 * DATA);
        }
    assert_ok(tnf_source_file(&from, path, TNF_ACCESS_AUTO, &e));
    assert_int_equal(truncate(path, N - 1), 0);
    assert_ok(tnf_sink_file(&s, target, TNF_SINK_REPLACE, &e));
    assert_fails(tnf_sink_copy(s, from, 0, N, &e), TNF_ETRUNCATED);
    assert_int_equal(e.offset, N - 1);
    tnf_sink_close(s);
    tnf_source_close(from);
    /* the position of the caller's descriptor does not change, and holes are written */
    int fd = open(path, O_RDONLY);
    assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
    assert_ok(tnf_source_fd(&from, fd, TNF_ACCESS_AUTO, &e));
    assert_ok(tnf_sink_file(&s, target, TNF_SINK_REPLACE, &e));
    assert_ok(tnf_sink_copy(s, from, 0, N - 1, &e));
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 7);
    tnf_sink_close(s);
    tnf_source_close(from);
    close(fd);
}

static void no_memory(void **state)
{
    (void)state;
    tnf_error e;
    for (uint64_t n = 1;; n++) {
        struct memory_log log = { .fail_at = n };
        tnf_allocator a = memory_allocator(&log);
        tnf_sink *s;
        tnf_status status = tnf_sink_open(&s, target, 0, &a, &e);
        if (status == TNF_OK)
            tnf_sink_close(s);
        else
            assert_int_equal(status, TNF_ENOMEM);
        assert_int_equal(log.blocks, 0);
        assert_int_equal(log.wrong_sizes, 0);
        assert_int_equal(files_count(dir, ""), 0);
        if (status == TNF_OK)
            break;
    }
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup(f, set_up)
    const struct CMUnitTest tests[] = {
        IN_DIR(appears_at_commit),
        IN_DIR(an_existing_file_is_safe),
        IN_DIR(a_race_is_lost_politely),
        IN_DIR(modes_are_kept),
        IN_DIR(links_are_followed),
        IN_DIR(a_name_without_a_directory),
        IN_DIR(what_cannot_be_written),
        IN_DIR(devices_are_written_to),
        IN_DIR(writes_to_descriptors),
        IN_DIR(copies_inside_the_kernel),
        IN_DIR(holes_stay),
        IN_DIR(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
