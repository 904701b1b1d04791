/* SPDX-License-Identifier: MIT */
/* VS files on a full disk: appending and compacting fail with a clear error, and the file does not
 * change. Uses a small real disk if mounting is possible, else a limit on the size of files. */
#include "support/descriptors.h"
#include "support/files.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tenfold/points.h>

#define DIM   1000u
#define BATCH 20u

static const uint64_t dims[] = { DIM };

static tnf_points *create_file(const char *path)
{
    tnf_points *p;
    tnf_points_options o = { .size = sizeof o, .write = true };
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_of(TNF_F32), .dims = dims, .rank = 1
    };
    MUST(tnf_points_create(&p, path, &space, &o, NULL) == TNF_OK);
    return p;
}

static tnf_status add_batch(tnf_points *p, tnf_point_id *ids, tnf_error *e)
{
    static float v[DIM];
    tnf_point batch[BATCH];
    for (size_t i = 0; i < BATCH; i++)
        batch[i] = (tnf_point) { .vector = v, .vector_n = sizeof v };
    return tnf_points_append(ids, p, batch, BATCH, e);
}

static uint64_t count_points(tnf_points *p)
{
    tnf_points_report r = { .size = sizeof r, .problems = 1 };
    tnf_error e;
    CHECK(tnf_points_verify(&r, p, NULL, NULL, &e) == TNF_OK && r.problems == 0, "%llu problems",
          (unsigned long long)r.problems);
    return r.points;
}

static void check_full(tnf_status status, const tnf_error *e)
{
    check_error(status, e);
    CHECK(status == TNF_EIO && (e->sys == ENOSPC || e->sys == EFBIG), "%s: %s",
          tnf_status_name(status), e->message);
}

/* Fills the disk until nothing more can be written. */
static void fill_and_overflow(const char *dir)
{
    char path[340], ballast[340];
    tnf_error e;
    tnf_point_id ids[BATCH];
    tnf_status status = TNF_OK;
    snprintf(path, sizeof path, "%s/space.vsdb", dir);
    snprintf(ballast, sizeof ballast, "%s/ballast", dir);
    check_doing("filling the disk");
    struct bytes zeros = { calloc(1, 300000), 300000 };
    bytes_to_file(ballast, zeros.p, zeros.n);
    free(zeros.p);
    tnf_points *p = create_file(path);
    uint64_t n = 0;
    for (; status == TNF_OK; n += BATCH)
        status = add_batch(p, n == 0 ? ids : NULL, &e);
    n -= BATCH;
    check_full(status, &e);
    CHECK(n > 0 && count_points(p) == n, "%llu points of %llu", (unsigned long long)count_points(p),
          (unsigned long long)n);
    struct bytes before = bytes_of_file(path);
    for (int i = 0; i < 3; i++)
        check_full(add_batch(p, NULL, &e), &e);
    struct bytes after = bytes_of_file(path);
    MUST(before.p && after.p);
    CHECK(before.n == after.n && memcmp(before.p, after.p, before.n) == 0, "the file changed");
    free(before.p);
    free(after.p);

    check_doing("deleting needs no room, compacting does");
    CHECK(tnf_points_delete(p, ids, 1, 0, &e) == TNF_OK, "%s", e.message);
    n--;
    before = bytes_of_file(path);
    check_full(tnf_points_compact(p, 0, NULL, NULL, &e), &e);
    after = bytes_of_file(path);
    CHECK(before.n == after.n && memcmp(before.p, after.p, before.n) == 0, "the file changed");
    CHECK(files_count(dir, ".tmp-") == 0, "half a file is left beside it");
    CHECK(count_points(p) == n, "a point is gone");
    free(before.p);
    free(after.p);

    check_doing("with room again");
    unlink(ballast);
    CHECK(add_batch(p, NULL, &e) == TNF_OK, "%s", e.message);
    CHECK(count_points(p) == n + BATCH, "the new points are not there");
    tnf_points_close(p);
    unlink(path);
}

static void a_small_disk(void)
{
    char dir[300];
    snprintf(dir, sizeof dir, "%s/disk", files_temp());
    MUST(mkdir(dir, 0700) == 0);
    fflush(stdout);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_PRIVATE | MS_REC, "") != 0 ||
            mount("tmpfs", dir, "tmpfs", 0, "size=1m") != 0)
            _exit(77);
        fill_and_overflow(dir);
        umount(dir);
        _exit(check_state.failed ? 1 : 0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        printf("no right to mount a small disk here: skipped\n");
    else
        CHECK(status == 0, "the child with a full disk: status %x", (unsigned)status);
}

/* Files may have this many bytes at most, for many numbers of bytes. */
static void files_may_not_grow(void)
{
    char path[340];
    tnf_error e;
    tnf_point_id ids[BATCH];
    snprintf(path, sizeof path, "%s/limited.vsdb", files_temp());
    tnf_points *p = create_file(path);
    MUST(add_batch(p, ids, &e) == TNF_OK);
    MUST(tnf_points_delete(p, ids, 1, 0, &e) == TNF_OK);
    struct bytes before = bytes_of_file(path);
    struct rlimit old, limit;
    MUST(getrlimit(RLIMIT_FSIZE, &old) == 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t most = 0; most < 2 * before.n - 1; most += most < 40 ? 1 : 3001) {
        check_doing("files of %llu bytes at most", (unsigned long long)most);
        limit = old;
        limit.rlim_cur = most;
        MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        tnf_status added = add_batch(p, NULL, &e);
        tnf_error why = e;
        tnf_status compacted = most + 4100 < before.n ? tnf_points_compact(p, 0, NULL, NULL, &e)
                                                      : TNF_EIO;
        MUST(setrlimit(RLIMIT_FSIZE, &old) == 0);
        if (most < 2 * before.n - 200)
            check_full(added, &why);
        if (most + 4100 < before.n)
            check_full(compacted, &e);
        CHECK(added == TNF_OK || count_points(p) == BATCH - 1, "points came or went");
        struct bytes after = bytes_of_file(path);
        CHECK(added == TNF_OK || (after.n == before.n && memcmp(after.p, before.p, before.n) == 0),
              "the file changed");
        free(after.p);
        if (added == TNF_OK)
            break;
    }
    signal(SIGXFSZ, SIG_DFL);
    free(before.p);
    tnf_points_close(p);
}

int main(void)
{
    unsigned before = descriptors_open();
    a_small_disk();
    files_may_not_grow();
    CHECK(descriptors_open() == before, "descriptors are left open");
    return check_end("points_disk");
}
