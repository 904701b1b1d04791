/* SPDX-License-Identifier: MIT */
/* Storage that fails: a source whose k-th read fails, for every k (under a sanitizer, for one of
 * two); a sink whose k-th write fails; full disks; pipes during many signals. The status is that of
 * the fault, and no output is ever incomplete. (In tests/alone/system.c each system call fails,
 * including fsync, which no real file system does on request.) */
#include "support/big.h"
#include "support/descriptors.h"
#include "support/open.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#define TENSORS 4u
#define BYTES   ((uint64_t)400000)

/* ------------------------------------------------------------ custom sources */

struct bad_source {
    const struct bytes *file;
    unsigned calls, fail_at, closed;
    tnf_status status;
};

static tnf_status bad_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    struct bad_source *s = ctx;
    if (++s->calls == s->fail_at) {
        if (error)
            *error = (tnf_error) { .status = s->status, .offset = offset, .message = "a bad day" };
        return s->status;
    }
    MUST(offset <= s->file->n && n <= s->file->n - offset && n > 0);
    memcpy(dst, s->file->p + offset, n);
    return TNF_OK;
}

static void bad_close(void *ctx)
{
    ((struct bad_source *)ctx)->closed++;
}

static const tnf_source_ops bad_ops = { .version = TNF_SOURCE_OPS_VERSION,
                                        .read_at = bad_read,
                                        .close = bad_close };

/* Reads every part of a tensor, alone and in a batch. */
static tnf_status read_both_ways(const tnf_object *t, tnf_error *error)
{
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < t->nparts && status == TNF_OK; i++) {
        const tnf_part *p = &t->parts[i];
        if (p->flags & TNF_PART_UNREADABLE || p->nbytes > (uint64_t)64 << 20)
            continue;
        uint8_t *bytes = malloc((size_t)p->nbytes + 1);
        MUST(bytes != NULL);
        status = tnf_read_part(bytes, (size_t)p->nbytes, p, 0, error);
        tnf_request r = { p, bytes };
        if (status == TNF_OK)
            status = tnf_read_many(&r, 1, NULL, error);
        free(bytes);
    }
    return status;
}

/* Opens, reads, verifies, saves; returns the first failure. */
static tnf_status use_source(struct bad_source *bad, tnf_error *error)
{
    tnf_source *source;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    MUST(tnf_source_custom(&source, &bad_ops, bad, bad->file->n, NULL) == TNF_OK);
    tnf_status status = tnf_open_source(&file, source, &o, error);
    if (status != TNF_OK)
        return status;
    for (size_t i = 0; tnf_at(file, i) && status == TNF_OK; i++)
        status = read_both_ways(tnf_at(file, i), error);
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    if (status == TNF_OK)
        status = tnf_verify(&result, file, NULL, error);
    if (status == TNF_OK)
        tnf_sink_close(save_bytes(file, BIG_FORMAT, true, &status, error));
    tnf_close(file);
    return status;
}

static void sources_that_fail(void)
{
    static const tnf_status statuses[] = { TNF_EIO, TNF_ENET, TNF_ETRUNCATED };
    for (size_t i = 0; i < fixtures.n; i++) {
        const struct fixture *f = &fixtures.list[i];
        tnf_error error;
        struct bad_source good = { .file = &f->file };
        check_doing("%s", f->label);
        tnf_status whole = f->format ? use_source(&good, &error) : TNF_EUNSUPPORTED;
        if (!f->format || whole == TNF_EEXISTS) /* two tensors with one name cannot be saved */
            continue;
        CHECK(whole == TNF_OK || whole == TNF_ELOSSY, "%s", error.message);
        for (unsigned k = 1 + (unsigned)i % check_share(2); k <= good.calls; k += check_share(2)) {
            struct bad_source bad = { .file = &f->file, .fail_at = k };
            bad.status = statuses[k % 3];
            check_doing("%s, read %u of %u fails with %s", f->label, k, good.calls,
                        tnf_status_name(bad.status));
            tnf_status status = use_source(&bad, &error);
            /* verify reports a file that was cut as a problem, and continues */
            CHECK(status == bad.status || (status == whole && bad.status == TNF_ETRUNCATED), "%s",
                  tnf_status_name(status));
            if (status == bad.status)
                CHECK(strstr(error.message, "a bad day") != NULL, "the reason is lost: %s",
                      error.message);
            CHECK(bad.closed == 1, "closed %u times", bad.closed);
        }
    }
}

/* -------------------------------------------------------------- custom sinks */

struct bad_sink {
    unsigned writes, fail_at, commits, aborts;
    bool fail_commit, after;
};

static tnf_status sink_write(void *ctx, const void *bytes, size_t n, tnf_error *error)
{
    struct bad_sink *s = ctx;
    eat_bytes(bytes, n);
    s->after = s->after || s->commits || s->aborts;
    if (++s->writes != s->fail_at)
        return TNF_OK;
    *error = (tnf_error) { .status = TNF_ENET, .offset = TNF_NO_OFFSET, .message = "unplugged" };
    return TNF_ENET;
}

static tnf_status sink_commit(void *ctx, tnf_error *error)
{
    struct bad_sink *s = ctx;
    s->commits++;
    if (!s->fail_commit)
        return TNF_OK;
    *error = (tnf_error) { .status = TNF_EIO, .offset = TNF_NO_OFFSET, .message = "not today" };
    return TNF_EIO;
}

static void sink_abort(void *ctx)
{
    ((struct bad_sink *)ctx)->aborts++;
}

static const tnf_sink_ops sink_ops = {
    .version = TNF_SINK_OPS_VERSION, .write = sink_write, .commit = sink_commit, .abort = sink_abort
};

static tnf_status save_into(struct bad_sink *bad, tnf_error *error)
{
    unsigned version = 0;
    tnf_sink *sink;
    tnf_builder *b = big_builder(&version, TENSORS, BYTES);
    tnf_save_options o = { .size = sizeof o, .format = BIG_FORMAT };
    MUST(tnf_sink_custom(&sink, &sink_ops, bad, NULL) == TNF_OK);
    tnf_status status = tnf_save_sink(b, sink, &o, error);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return status;
}

static void sinks_that_fail(void)
{
    tnf_error error;
    struct bad_sink good = { 0 };
    check_doing("a good sink");
    CHECK(save_into(&good, &error) == TNF_OK, "%s", error.message);
    CHECK(good.commits == 1 && good.aborts == 0, "%u commits, %u aborts", good.commits,
          good.aborts);
    for (unsigned k = 1; k <= good.writes; k++) {
        struct bad_sink bad = { .fail_at = k };
        check_doing("write %u of %u fails", k, good.writes);
        CHECK(save_into(&bad, &error) == TNF_ENET, "%s", tnf_status_name(error.status));
        CHECK(strstr(error.message, "unplugged") != NULL, "the reason is lost: %s", error.message);
        CHECK(bad.commits == 0 && bad.aborts == 1, "%u commits, %u aborts", bad.commits,
              bad.aborts);
        CHECK(!bad.after && bad.writes == k, "it is written to after the failure");
    }
    struct bad_sink bad = { .fail_commit = true };
    check_doing("commit fails");
    CHECK(save_into(&bad, &error) == TNF_EIO, "%s", tnf_status_name(error.status));
    CHECK(bad.commits == 1 && bad.aborts == 1, "%u commits, %u aborts", bad.commits, bad.aborts);
}

/* ---------------------------------------------------------------- full disks */

/* Saves over `path`, which has version 0, on a disk with less free space than necessary. */
static void check_no_room(const char *dir, const char *path)
{
    tnf_error error;
    struct bytes before = bytes_of_file(path);
    tnf_status status = big_save(path, 1, TENSORS, BYTES, true, &error);
    check_error(status, &error);
    CHECK(status == TNF_EIO && (error.sys == EFBIG || error.sys == ENOSPC), "%s: %s",
          tnf_status_name(status), error.message);
    struct bytes after = bytes_of_file(path);
    CHECK(before.n == after.n && memcmp(before.p, after.p, before.n) == 0, "the old file changed");
    CHECK(files_count(dir, "") == 1, "something is left beside it");
    free(before.p);
    free(after.p);
}

static void files_may_not_grow(void)
{
    char dir[300], path[340];
    snprintf(dir, sizeof dir, "%s/small", files_temp());
    snprintf(path, sizeof path, "%s/file", dir);
    MUST(mkdir(dir, 0700) == 0);
    MUST(big_save(path, 0, TENSORS, BYTES, false, NULL) == TNF_OK);
    struct rlimit before, limit;
    MUST(getrlimit(RLIMIT_FSIZE, &before) == 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t most = 0; most < TENSORS * BYTES; most += most < 200 ? 37 : 130001) {
        limit = before;
        limit.rlim_cur = most;
        check_doing("files of %llu bytes at most", (unsigned long long)most);
        MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        check_no_room(dir, path);
        MUST(setrlimit(RLIMIT_FSIZE, &before) == 0);
    }
    signal(SIGXFSZ, SIG_DFL);
}

/* A real full disk, in a child process with mounts of its own, if that is allowed. */
static void a_small_disk(void)
{
    char dir[300], path[340];
    snprintf(dir, sizeof dir, "%s/disk", files_temp());
    snprintf(path, sizeof path, "%s/file", dir);
    MUST(mkdir(dir, 0700) == 0);
    fflush(stdout);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        check_doing("a full disk");
        if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_PRIVATE | MS_REC, "") != 0 ||
            mount("tmpfs", dir, "tmpfs", 0, "size=2m") != 0)
            _exit(77);
        MUST(big_save(path, 0, TENSORS, BYTES, false, NULL) == TNF_OK);
        check_no_room(dir, path);
        umount(dir);
        _exit(check_state.failed ? 1 : 0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        printf("no right to mount a small disk here: skipped\n");
    else
        CHECK(status == 0, "the child with a full disk: status %x", status);
}

static void a_full_descriptor(void)
{
    tnf_error error;
    tnf_sink *sink;
    unsigned version = 0;
    int fd = open("/dev/full", O_WRONLY);
    check_doing("/dev/full");
    MUST(fd >= 0);
    tnf_builder *b = big_builder(&version, 1, 400);
    tnf_save_options o = { .size = sizeof o, .format = BIG_FORMAT };
    MUST(tnf_sink_fd(&sink, fd, NULL) == TNF_OK);
    tnf_status status = tnf_save_sink(b, sink, &o, &error);
    CHECK(status == TNF_EIO && error.sys == ENOSPC, "%s", tnf_status_name(status));
    tnf_sink_close(sink);
    tnf_builder_free(b);
    close(fd);
}

/* ------------------------------------------------------------ signals, pipes */

static volatile sig_atomic_t signals;

static void on_alarm(int number)
{
    (void)number;
    signals = signals + 1;
}

static void set_storm(bool on)
{
    struct sigaction action = { .sa_handler = on ? on_alarm : SIG_IGN }; /* no SA_RESTART */
    struct itimerval timer = { .it_interval = { 0, on ? 500 : 0 },
                               .it_value = { 0, on ? 500 : 0 } };
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    MUST(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/* Copies all bytes from one descriptor to another, slowly, in a child process. */
static pid_t carry_bytes(int from, int to, int close_in_child)
{
    pid_t child = fork();
    MUST(child >= 0);
    if (child > 0)
        return child;
    uint8_t block[9000];
    close(close_in_child);
    for (unsigned i = 0;; i++) {
        ssize_t n = read(from, block, sizeof block);
        if (n <= 0)
            break;
        for (ssize_t at = 0; at < n;) {
            ssize_t put = write(to, block + at, (size_t)(n - at));
            if (put <= 0)
                _exit(1);
            at += put;
        }
        if (i % 8 == 0)
            usleep(200);
    }
    _exit(0);
}

static void signals_while_piping(void)
{
    char path[340];
    int ends[2], status;
    tnf_error error;
    tnf_sink *sink;
    unsigned version = 0;
    struct bytes out;
    snprintf(path, sizeof path, "%s/carried", files_temp());
    check_doing("saving to a pipe under a storm of signals");
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0 && pipe(ends) == 0);
    pid_t child = carry_bytes(ends[0], fd, ends[1]);
    close(ends[0]);
    tnf_builder *b = big_builder(&version, TENSORS, BYTES);
    tnf_save_options o = { .size = sizeof o, .format = BIG_FORMAT };
    MUST(tnf_sink_fd(&sink, ends[1], NULL) == TNF_OK);
    set_storm(true);
    tnf_status saved = tnf_save_sink(b, sink, &o, &error);
    set_storm(false);
    CHECK(saved == TNF_OK, "%s", error.message);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    close(ends[1]);
    MUST(waitpid(child, &status, 0) == child && status == 0);

    check_doing("reading a pipe under a storm of signals");
    MUST(lseek(fd, 0, SEEK_SET) == 0 && pipe(ends) == 0);
    child = carry_bytes(fd, ends[1], ends[0]);
    close(ends[1]);
    tnf_source *source = NULL;
    tnf_file *file;
    set_storm(true);
    tnf_status read_status = tnf_source_fd(&source, ends[0], TNF_ACCESS_AUTO, &error);
    set_storm(false);
    MUST(waitpid(child, &status, 0) == child);
    if (CHECK(read_status == TNF_OK, "%s", error.message) &&
        CHECK(tnf_open_source(&file, source, NULL, &error) == TNF_OK, "%s", error.message)) {
        out.p = malloc(BYTES);
        MUST(out.p != NULL);
        for (size_t i = 0; tnf_at(file, i); i++)
            CHECK(tnf_read(out.p, BYTES, tnf_at(file, i), &error) == TNF_OK &&
                      big_is(out.p, BYTES, 0),
                  "tensor %zu came through wrong", i);
        free(out.p);
        tnf_close(file);
    }
    close(ends[0]);
    close(fd);
    printf("%d signals came\n", (int)signals);
    CHECK(signals > 5, "that was no storm");
}

int main(void)
{
    unsigned before = descriptors_open();
    fixtures_valid();
    sources_that_fail();
    sinks_that_fail();
    files_may_not_grow();
    a_small_disk();
    a_full_descriptor();
    signals_while_piping();
    check_doing("at the end");
    CHECK(descriptors_open() == before, "%u descriptors are open, %u were", descriptors_open(),
          before);
    return check_end("faults");
}
