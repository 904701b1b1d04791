/* SPDX-License-Identifier: MIT */
/* Records changes of files with their bytes, for tools/power-cut. It makes system calls directly,
 * since the shim is between a program and the C library. */
#ifndef TOOLS_FAULT_RECORD_H
#define TOOLS_FAULT_RECORD_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROOM 4200 /* for a path */

static int record_to = -1; /* a descriptor */
static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *path_of(int fd, char out[ROOM])
{
    char proc[40];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, proc, out, ROOM - 1);
    out[n > 0 ? n : 0] = 0;
    return out;
}

/* The absolute path that is recorded for a path relative to the directory descriptor `at`. */
static const char *whole_path(int at, const char *path, char out[2 * ROOM])
{
    char base[ROOM];
    if (path[0] == '/') {
        snprintf(out, ROOM, "%s", path);
        return out;
    }
    if (at == AT_FDCWD) {
        long n = syscall(SYS_getcwd, base, sizeof base);
        base[n > 0 ? n : 0] = 0;
    } else {
        path_of(at, base);
    }
    snprintf(out, (size_t)2 * ROOM, "%s/%s", base, path);
    return out;
}

/* A record. The path, the other path and the bytes follow it. */
struct op {
    char act[8]; /* create truncate write sync rename link unlink mkdir rmdir, cut to 7 letters */
    uint64_t ino, at, path_n, to_n, n;
};

static void record_op(const char *act, uint64_t ino, uint64_t at, const char *path, const char *to,
                      const void *bytes, size_t n)
{
    struct op op = { .ino = ino, .at = at, .path_n = strlen(path), .to_n = strlen(to), .n = n };
    snprintf(op.act, sizeof op.act, "%s", act);
    struct iovec all[] = { { &op, sizeof op },
                           { (void *)(uintptr_t)path, op.path_n },
                           { (void *)(uintptr_t)to, op.to_n },
                           { (void *)(uintptr_t)bytes, n } };
    int error = errno;
    pthread_mutex_lock(&record_lock);
    if (syscall(SYS_writev, record_to, all, 4) != (long)(sizeof op + op.path_n + op.to_n + n))
        abort();
    pthread_mutex_unlock(&record_lock);
    errno = error;
}

static uint64_t inode_at(int at, const char *path, int flags, mode_t *mode)
{
    struct stat st = { .st_mode = 0 };
    int error = errno;
    (void)!syscall(SYS_newfstatat, at, path, &st, flags);
    errno = error;
    *mode = st.st_mode;
    return st.st_ino;
}

static void record_fd(const char *act, int fd, uint64_t at, const void *bytes, size_t n)
{
    mode_t mode;
    uint64_t ino = inode_at(fd, "", AT_EMPTY_PATH, &mode);
    if (record_to >= 0 && (S_ISREG(mode) || S_ISDIR(mode)))
        record_op(act, ino, at, "", "", bytes, n);
}

static void record_paths(const char *act, int at, const char *path, int to_at, const char *to)
{
    char a[2 * ROOM], b[2 * ROOM] = "";
    mode_t mode;
    if (record_to < 0)
        return;
    whole_path(at, path, a);
    uint64_t ino = inode_at(AT_FDCWD, a, AT_SYMLINK_NOFOLLOW, &mode);
    if (to) {
        whole_path(to_at, to, b);
        ino = inode_at(AT_FDCWD, b, AT_SYMLINK_NOFOLLOW, &mode);
    }
    record_op(act, ino, 0, a, b, NULL, 0);
}

/* Records copied bytes, which the shim has not seen, by reading them from the file. */
static void record_copied(int fd, uint64_t at, size_t n)
{
    uint8_t block[4096];
    for (size_t done = 0; record_to >= 0 && done < n;) {
        size_t step = n - done < sizeof block ? n - done : sizeof block;
        char proc[40];
        snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
        int own = (int)syscall(SYS_openat, AT_FDCWD, proc, O_RDONLY);
        long got = syscall(SYS_pread64, own, block, step, at + done);
        syscall(SYS_close, own);
        if (got <= 0)
            abort();
        record_fd("write", fd, at + done, block, (size_t)got);
        done += (size_t)got;
    }
}

#endif
