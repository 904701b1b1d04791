/* SPDX-License-Identifier: MIT */
/* A process is killed while it saves over an existing file, at many different moments: the file is
 * the complete old one or the complete new one. If the system has files without a name (O_TMPFILE),
 * nothing else is left. If it has none (this is simulated here), at most one temporary file is
 * left, and the next writer removes it. */
#include "../support/big.h"
#include "../support/moments.h"
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MOMENTS 110
#define TENSORS 6u
#define BYTES   ((uint64_t)300 << 10)

/* Replaces the open() of the C library. */
static bool no_nameless_files;

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (no_nameless_files && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static char dir[300], target[340];
static struct bytes versions[2]; /* the only two contents that the file may have */

static unsigned version_there(void)
{
    struct bytes b = bytes_of_file(target);
    unsigned found = 2;
    for (unsigned v = 0; v < 2; v++)
        if (b.n == versions[v].n && memcmp(b.p, versions[v].p, b.n) == 0)
            found = v;
    CHECK(found < 2, "the file has %zu bytes, and is neither the old nor the new one", b.n);
    free(b.p);
    return found;
}

/* Starts a child process that only saves. */
static pid_t start_saving(unsigned version)
{
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0)
        _exit(big_save(target, version, TENSORS, BYTES, true, NULL) == TNF_OK ? 0 : 1);
    return child;
}

static double time_of_saving(void)
{
    double longest = 0;
    for (int i = 0; i < 3; i++) {
        int status;
        double from = seconds_now();
        MUST(waitpid(start_saving(0), &status, 0) > 0 && status == 0);
        longest = seconds_now() - from > longest ? seconds_now() - from : longest;
    }
    return longest;
}

/* Other files may only be one temporary file, which the next writer removes. */
static size_t count_litter(void)
{
    size_t all = files_count(dir, ""), temporary = files_count(dir, "out.tmp-");
    CHECK(all == temporary + 1, "%zu files that nobody asked for", all - temporary - 1);
    CHECK(temporary <= 1, "%zu temporary files are left", temporary);
    return temporary;
}

static void round_of(const char *name, bool nameless)
{
    unsigned olds = 0, news = 0, there = 0;
    size_t left = 0;
    no_nameless_files = !nameless;
    MUST(big_save(target, there, TENSORS, BYTES, false, NULL) == TNF_OK);
    double longest = time_of_saving();
    for (int i = 0; i < MOMENTS || (news == 0 && i < MOMENTS + MORE_MOMENTS); i++) {
        double delay = moment_at(i, MOMENTS, longest);
        int status;
        check_doing("%s files, killed after %.2f ms of %.2f", name, delay * 1e3, longest * 1e3);
        pid_t child = start_saving(!there);
        wait_for(delay);
        kill(child, SIGKILL);
        MUST(waitpid(child, &status, 0) == child);
        unsigned found = version_there();
        olds += found == there;
        news += found == !there;
        there = found < 2 ? found : 0;
        left += count_litter();
    }
    printf("%s files: %u times the old file, %u times the new one, %zu times a temporary file\n",
           name, olds, news, left);
    CHECK(olds > 0 && news > 0, "it was never %s", olds > 0 ? "done" : "interrupted");
    /* A file without a name has a temporary one between link and rename; a kill may hit that
     * moment. */
    CHECK(!nameless || left <= MOMENTS / 10, "%zu temporary files are left", left);
    MUST(big_save(target, there, TENSORS, BYTES, true, NULL) == TNF_OK);
    CHECK(count_litter() == 0, "the next writer does not remove it");
}

int main(void)
{
    snprintf(dir, sizeof dir, "%s/kill", files_temp());
    snprintf(target, sizeof target, "%s/out", dir);
    MUST(mkdir(dir, 0700) == 0);
    for (unsigned v = 0; v < 2; v++) {
        MUST(big_save(target, v, TENSORS, BYTES, false, NULL) == TNF_OK);
        versions[v] = bytes_of_file(target);
    }
    int fd = open(dir, O_TMPFILE | O_WRONLY, 0600);
    bool has_nameless = fd >= 0;
    if (has_nameless)
        close(fd);
    if (has_nameless)
        round_of("nameless", true);
    else
        printf("no nameless files on this file system\n");
    round_of("named", false);
    free(versions[0].p);
    free(versions[1].p);
    return check_end("kill");
}
