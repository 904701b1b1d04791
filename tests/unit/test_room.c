/* SPDX-License-Identifier: MIT */
/* Large tensors that several threads write into a file in memory: the same bytes as from one
 * thread, the same errors, the same digests. A full file system is an error, and raises no
 * signal. */
#include "../support/files.h"
#include "../support/unit.h"
#include "base/bytes.h"
#include "io/sink.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <tenfold/build.h>

#define MEMORY "/dev/shm"
#define ROWS   6001u
#define DIMS   1000u /* 24 MB as f32, 12 MB as bf16: enough for writing by several threads */

static char dir[64], target[96];

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, MEMORY "/tenfold-room-XXXXXX");
    if (!mkdtemp(dir))
        dir[0] = 0;
    snprintf(target, sizeof target, "%s/out", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    setenv("TENFOLD_THREADS", "2", 1);
    unlink(target);
    return dir[0] ? rmdir(dir) : 0;
}

/* Skips the test unless this file system is in memory. */
static void need_room(void)
{
    tnf_error e;
    tnf_sink *s;
    if (!dir[0])
        skip();
    assert_ok(tnf_sink_file(&s, target, 0, &e));
    bool there = s->in_memory;
    tnf_sink_close(s);
    if (!there)
        skip();
}

static float *make_rows(void)
{
    float *rows = malloc(sizeof *rows * ROWS * DIMS);
    uint64_t rng = 11;
    for (size_t i = 0; i < (size_t)ROWS * DIMS; i++)
        rows[i] = (float)(int32_t)next_random(&rng) / 65536.0f;
    return rows;
}

struct counted {
    uint64_t done, stop_at;
};

static bool count_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct counted *c = ctx;
    (void)total;
    assert_true(done >= c->done);
    c->done = done;
    return done < c->stop_at;
}

/* Saves with this number of threads, with or without a cast. */
static tnf_status save_rows(const float *rows, const char *threads, const char *format,
                            const char *dtype, struct counted *c, tnf_error *error)
{
    tnf_builder *b;
    tnf_error e;
    const uint64_t shape[2] = { ROWS, DIMS };
    tnf_save_options o = TNF_SAVE_INIT;
    o.format = format;
    o.replace = true;
    o.progress = count_progress;
    o.ctx = c;
    o.dtype = dtype;
    setenv("TENFOLD_THREADS", threads, 1);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "a", tnf_type_of(TNF_F32), 1, shape + 1, rows, &e));
    assert_ok(tnf_builder_add(b, "rows", tnf_type_of(TNF_F32), 2, shape, rows, &e));
    assert_ok(tnf_builder_add(b, "z", tnf_type_of(TNF_F32), 1, shape + 1, rows, &e));
    tnf_status status = tnf_save(b, target, &o, error);
    tnf_builder_free(b);
    return status;
}

/* In memory with one thread, and in a file with several: zTensor 2 has digests, too. */
static void the_same_bytes(void **state)
{
    (void)state;
    static const char *const formats[] = { "safetensors", "ztensor2", "npz" };
    static const char *const dtypes[] = { NULL, "bf16", "f64" };
    need_room();
    float *rows = make_rows();
    for (unsigned i = 0; i < 9; i++) {
        tnf_error e;
        struct counted one = { .stop_at = UINT64_MAX }, many = one;
        assert_ok(save_rows(rows, "1", formats[i / 3], dtypes[i % 3], &one, &e));
        struct bytes want = bytes_of_file(target);
        assert_ok(save_rows(rows, "8", formats[i / 3], dtypes[i % 3], &many, &e));
        struct bytes got = bytes_of_file(target);
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.p, want.p, want.n);
        assert_int_equal(many.done, one.done);
        free(want.p);
        free(got.p);
    }
    free(rows);
}

/* If the caller stops the work, the old file stays, and the memory of the new one is freed. */
static void stopping_keeps_the_old(void **state)
{
    (void)state;
    need_room();
    tnf_error e;
    float *rows = make_rows();
    bytes_to_file(target, "old", 3);
    struct counted c = { .stop_at = 5 << 20 };
    assert_fails(save_rows(rows, "8", "safetensors", "bf16", &c, &e), TNF_ECANCELLED);
    c = (struct counted) { .stop_at = 5 << 20 };
    assert_fails(save_rows(rows, "8", "safetensors", NULL, &c, &e), TNF_ECANCELLED);
    struct bytes b = bytes_of_file(target);
    assert_int_equal(b.n, 3);
    free(b.p);
    assert_int_equal(files_count(dir, ""), 1);
    free(rows);
}

/* The error of a failed read is returned, whichever thread found it, and the sink cannot be used
 * any more. */
static void a_source_that_is_cut(void **state)
{
    (void)state;
    need_room();
    enum { N = 32 << 20 };
    char path[] = "/tmp/tenfold-room-in-XXXXXX";
    static const char header[] =
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[8388608],\"data_offsets\":[0,33554432]}}";
    tnf_error e;
    tnf_file *file;
    const size_t all = 8 + sizeof header - 1 + N;
    uint8_t *in = malloc(all);
    memset(in, 1, all);
    tnf_put_le64(in, sizeof header - 1);
    memcpy(in + 8, header, sizeof header - 1);
    close(mkstemp(path));
    bytes_to_file(path, in, all);
    for (unsigned cast = 0; cast < 2; cast++) {
        tnf_builder *b;
        tnf_save_options o = TNF_SAVE_INIT;
        o.dtype = cast ? "bf16" : NULL;
        o.format = "safetensors";
        setenv("TENFOLD_THREADS", "8", 1);
        bytes_to_file(path, in, all);
        assert_ok(tnf_open(&file, path, NULL, &e));
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(tnf_builder_add_file(b, file, &e));
        assert_int_equal(truncate(path, N / 2), 0);
        assert_fails(tnf_save(b, target, &o, &e), TNF_ETRUNCATED);
        assert_int_equal(e.offset, N / 2);
        assert_int_equal(files_count(dir, ""), 0);
        tnf_builder_free(b);
        tnf_close(file);
    }
    unlink(path);
    free(in);
}

/* Runs in a child process, because a process cannot leave its own mounts again. Returns 0 on
 * success. */
static int fill_small(const float *rows)
{
    tnf_error e = { 0 };
    struct counted c = { .stop_at = UINT64_MAX };
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", dir, "tmpfs", 0, "size=9m") != 0)
        return 77;
    tnf_status status = save_rows(rows, "8", "safetensors", "bf16", &c, &e);
    if (status != TNF_EIO || e.sys != ENOSPC || access(target, F_OK) == 0)
        return 1;
    c.done = 0;
    status = save_rows(rows, "8", "safetensors", NULL, &c, &e);
    return status != TNF_EIO || e.sys != ENOSPC;
}

static void a_full_file_system(void **state)
{
    (void)state;
    need_room();
    if (getenv("TENFOLD_EMULATED"))
        skip(); /* qemu kills a forked child that starts threads */
    float *rows = make_rows();
    pid_t child = fork();
    if (child == 0)
        _exit(fill_small(rows));
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    free(rows);
    assert_true(WIFEXITED(how)); /* not a signal */
    if (WEXITSTATUS(how) == 77)
        skip(); /* mounting needs permission */
    assert_int_equal(WEXITSTATUS(how), 0);
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_DIR(the_same_bytes),
        IN_DIR(stopping_keeps_the_old),
        IN_DIR(a_source_that_is_cut),
        IN_DIR(a_full_file_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
