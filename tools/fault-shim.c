/* SPDX-License-Identifier: MIT */
/* A library between a program and the system (LD_PRELOAD). It makes calls fail, and logs them. For
 * tools/fault-every and tools/power-cut on 64-bit Linux.
 *
 *   TENFOLD_FAULT=KIND:N:HOW[:good]   the N-th call of a kind, from 1; :good: all later ones, too
 *
 *     KIND   open read write copy sync truncate room rename link unlink mkdir close lock mode stat
 *            map, or any: all calls that change a file; syncdir: sync, but only of directories
 *     HOW    the number of an error; "short": half is done; "kill": killed before the call;
 *            "torn": killed in the middle of a write, between two pages
 *
 *   TENFOLD_FAULT_LOG=FILE            a line for each call: ["hit "] kind path
 *   TENFOLD_FAULT_RECORD=FILE         changes of files, with their bytes: struct op
 *
 * The shim makes system calls directly, so that the C library does not call itself. It does not see
 * calls that stdio makes inside the C library.
 */
#define _GNU_SOURCE
#include "fault-record.h"
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>

#define PAGE 4096
#define HIGH 800 /* descriptors of the shim, above those of the program */

/* clang-format off */
enum kind { OPEN, READ, WRITE, COPY, SYNC, CUT, MAKE_ROOM, RENAME, LINK, UNLINK, MKDIR, CLOSE, LOCK, MODE, STAT,
            MAP, SYNC_NAMES, KINDS, ANY };
static const char *const kinds[] = { "open", "read", "write", "copy", "sync", "truncate", "room", "rename",
                                     "link", "unlink", "mkdir", "close", "lock", "mode", "stat",
                                     "map", "syncdir", "", "any" };
/* clang-format on */

enum how { FAIL, SHORT, KILL, TORN };

static struct {
    int kind, err;
    enum how how;
    unsigned long at, seen;
    bool for_good;
    int log; /* a descriptor, or -1 */
    pthread_mutex_t lock;
} fault = { .kind = -1, .log = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

/* -------------------------------------------------------------------- start */

static int open_for_us(const char *variable)
{
    const char *path = getenv(variable);
    if (!path)
        return -1;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH);
    syscall(SYS_close, fd);
    return high;
}

static void read_fault(const char *text)
{
    char kind[16], how[16], more[8] = "";
    if (sscanf(text, "%15[^:]:%lu:%15[^:]:%7s", kind, &fault.at, how, more) < 3)
        abort();
    for (int k = 0; k <= ANY; k++)
        if (strcmp(kinds[k], kind) == 0)
            fault.kind = k;
    fault.for_good = more[0] != 0;
    fault.how = !strcmp(how, "short")  ? SHORT
                : !strcmp(how, "kill") ? KILL
                : !strcmp(how, "torn") ? TORN
                                       : FAIL;
    fault.err = fault.how == FAIL ? (int)strtol(how, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin_record(void)
{
    const char *text = getenv("TENFOLD_FAULT");
    fault.log = open_for_us("TENFOLD_FAULT_LOG");
    record_to = open_for_us("TENFOLD_FAULT_RECORD");
    if (text)
        read_fault(text);
}

/* ------------------------------------------------------------------- calls */

static bool is_change(enum kind k)
{
    return k == WRITE || (k >= COPY && k <= MKDIR) || k == MODE;
}

static void die_now(void)
{
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

/* Must this call fail? Several threads may make calls, so a lock protects the count. */
static bool is_hit(enum kind k, const char *path)
{
    char line[ROOM + 40];
    bool now = false;
    pthread_mutex_lock(&fault.lock);
    if (fault.kind == (int)k || (fault.kind == ANY && is_change(k))) {
        fault.seen++;
        now = fault.seen == fault.at || (fault.seen > fault.at && fault.for_good);
    }
    int n = snprintf(line, sizeof line, "%s%s %s\n", now ? "hit " : "", kinds[k], path);
    if (fault.log >= 0)
        (void)!syscall(SYS_write, fault.log, line, n);
    pthread_mutex_unlock(&fault.lock);
    if (now && fault.how == KILL)
        die_now();
    return now;
}

static bool must_fail(enum kind k, const char *path)
{
    if (!is_hit(k, path) || fault.how != FAIL)
        return false;
    errno = fault.err;
    return true;
}

static bool fails_fd(enum kind k, int fd)
{
    char path[ROOM];
    return must_fail(k, path_of(fd, path));
}

/* --------------------------------------------------------- opening, closing */

static int open_it(int at, const char *path, int flags, mode_t mode)
{
    char to[2 * ROOM], marked[2 * ROOM + 16];
    mode_t was;
    whole_path(at, path, to);
    /* a directory is opened for syncing it, or to create a nameless file in it */
    bool nameless = (flags & O_TMPFILE) == O_TMPFILE, dir = !nameless && flags & O_DIRECTORY;
    snprintf(marked, sizeof marked, "%s%s", to,
             nameless ? " (nameless)"
             : dir    ? " (directory)"
                      : "");
    if (must_fail(OPEN, marked))
        return -1;
    bool there = inode_at(AT_FDCWD, to, 0, &was) != 0;
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    if (fd < 0 || record_to < 0)
        return fd;
    if (nameless || (flags & O_CREAT && !there))
        record_op("create", inode_at(fd, "", AT_EMPTY_PATH, &was), 0, nameless ? "" : to, "", NULL,
                  0);
    else if (flags & O_TRUNC)
        record_fd("truncate", fd, 0, NULL, 0);
    return fd;
}

#define MODE_OF(flags)                                                                             \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode = va_arg(args, mode_t);                                                               \
        va_end(args);                                                                              \
    }

int open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_it(AT_FDCWD, path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_it(at, path, flags, mode);
}

int open64(const char *, int, ...) __attribute__((alias("open")));
int openat64(int, const char *, int, ...) __attribute__((alias("openat")));

/* Replaced, since the original opens the file inside the C library. */
int mkostemp(char *name, int flags)
{
    static unsigned count;
    for (int i = 0; i < 100; i++) {
        unsigned x = ((unsigned)getpid() * 31 + count++) % 1000000u;
        snprintf(name + strlen(name) - 6, 7, "%06u", x);
        int fd = open_it(AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

int mkstemp(char *name)
{
    return mkostemp(name, 0);
}

int mkostemp64(char *, int) __attribute__((alias("mkostemp")));
int mkstemp64(char *) __attribute__((alias("mkstemp")));

/* A descriptor is closed even if close() fails. */
int close(int fd)
{
    bool bad = fails_fd(CLOSE, fd);
    int error = errno, done = fd >= HIGH ? 0 : (int)syscall(SYS_close, fd);
    if (bad)
        errno = error;
    return bad ? -1 : done;
}

/* ---------------------------------------------------------- reading, writing */

static off_t place_in(int fd)
{
    int error = errno;
    off_t at = syscall(SYS_lseek, fd, 0, SEEK_CUR);
    errno = error;
    return at < 0 ? 0 : at;
}

/* The number of bytes, out of n, to process; -1: the call fails. */
static ssize_t share_of(enum kind k, int fd, size_t n, off_t at)
{
    char path[ROOM];
    if (!is_hit(k, path_of(fd, path)))
        return (ssize_t)n;
    if (fault.how == FAIL) {
        errno = fault.err;
        return -1;
    }
    size_t half = n > 1 ? n / 2 : n;
    if (fault.how == TORN) { /* up to a page's end, or all of it */
        half += PAGE - ((size_t)at + half) % PAGE;
        half = half < n ? half : n;
    }
    return (ssize_t)half;
}

ssize_t read(int fd, void *p, size_t n)
{
    ssize_t part = share_of(READ, fd, n, 0);
    return part < 0 ? part : syscall(SYS_read, fd, p, part);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    ssize_t part = share_of(READ, fd, n, at);
    return part < 0 ? part : syscall(SYS_pread64, fd, p, part, at);
}

ssize_t preadv(int fd, const struct iovec *v, int n, off_t at)
{
    ssize_t part = share_of(READ, fd, (size_t)n, at);
    return part < 0 ? part : syscall(SYS_preadv, fd, v, part, at, 0);
}

static ssize_t record_written(int fd, const void *p, ssize_t done, uint64_t at)
{
    if (done > 0)
        record_fd("write", fd, at, p, (size_t)done);
    if (fault.how == TORN && fault.seen >= fault.at && fault.kind >= 0)
        die_now();
    return done;
}

ssize_t write(int fd, const void *p, size_t n)
{
    ssize_t part = share_of(WRITE, fd, n, place_in(fd));
    if (part < 0)
        return part;
    ssize_t done = syscall(SYS_write, fd, p, part);
    off_t end = place_in(fd);
    return record_written(fd, p, done, done > 0 && end >= done ? (uint64_t)(end - done) : 0);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    ssize_t part = share_of(WRITE, fd, n, at);
    return part < 0 ? part
                    : record_written(fd, p, syscall(SYS_pwrite64, fd, p, part, at), (uint64_t)at);
}

/* A single write of all pieces, since it is one write on the disk. */
ssize_t writev(int fd, const struct iovec *v, int n)
{
    size_t sum = 0, at = 0;
    for (int i = 0; i < n; i++)
        sum += v[i].iov_len;
    uint8_t *all = malloc(sum + 1);
    if (!all)
        abort();
    for (int i = 0; i < n; at += v[i++].iov_len)
        memcpy(all + at, v[i].iov_base, v[i].iov_len);
    ssize_t done = write(fd, all, sum);
    free(all);
    return done;
}

ssize_t pread64(int, void *, size_t, off_t) __attribute__((alias("pread")));
ssize_t preadv64(int, const struct iovec *, int, off_t) __attribute__((alias("preadv")));
ssize_t pwrite64(int, const void *, size_t, off_t) __attribute__((alias("pwrite")));

ssize_t __read_chk(int fd, void *p, size_t n, size_t room);
ssize_t __read_chk(int fd, void *p, size_t n, size_t room)
{
    return n <= room ? read(fd, p, n) : (abort(), -1);
}

ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room);
ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room)
{
    return n <= room ? pread(fd, p, n, at) : (abort(), -1);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t n,
                        unsigned flags)
{
    ssize_t part = share_of(COPY, to, n, 0);
    if (part < 0)
        return part;
    ssize_t done = syscall(SYS_copy_file_range, from, from_at, to, to_at, part, flags);
    off_t end = to_at ? *to_at : syscall(SYS_lseek, to, 0, SEEK_CUR);
    if (done > 0)
        record_copied(to, (uint64_t)(end - done), (size_t)done);
    return done;
}

ssize_t sendfile(int to, int from, off_t *at, size_t n)
{
    ssize_t part = share_of(COPY, to, n, 0);
    if (part < 0)
        return part;
    ssize_t done = syscall(SYS_sendfile, to, from, at, part);
    if (done > 0)
        record_copied(to, (uint64_t)(syscall(SYS_lseek, to, 0, SEEK_CUR) - done), (size_t)done);
    return done;
}

/* ----------------------------------------------------------- syncing, cutting */

static bool is_directory(int fd)
{
    struct stat st;
    return syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH) == 0 && S_ISDIR(st.st_mode);
}

/* Not synced, only recorded: tools/power-cut does not cut the power. */
int fsync(int fd)
{
    bool names = fault.kind == SYNC_NAMES && is_directory(fd);
    if (fails_fd(names ? SYNC_NAMES : SYNC, fd))
        return -1;
    record_fd("sync", fd, 0, NULL, 0);
    return 0;
}

int fdatasync(int fd)
{
    return fsync(fd);
}

int ftruncate(int fd, off_t size)
{
    int done = fails_fd(CUT, fd) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
    if (done == 0)
        record_fd("truncate", fd, (uint64_t)size, NULL, 0);
    return done;
}

int ftruncate64(int, off_t) __attribute__((alias("ftruncate")));

/* Inserted or removed blocks are not supported by tools/power-cut. */
int fallocate(int fd, int mode, off_t at, off_t n)
{
    if (record_to >= 0 && mode != 0)
        abort();
    return fails_fd(MAKE_ROOM, fd) ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, n);
}

int fallocate64(int, int, off_t, off_t) __attribute__((alias("fallocate")));

/* --------------------------------------------------------------------- names */

int renameat2(int at, const char *path, int to_at, const char *to, unsigned flags)
{
    char a[2 * ROOM];
    int done = must_fail(RENAME, whole_path(at, path, a))
                   ? -1
                   : (int)syscall(SYS_renameat2, at, path, to_at, to, flags);
    if (done == 0)
        record_paths(flags & RENAME_EXCHANGE ? "swap" : "rename", at, path, to_at, to);
    return done;
}

int renameat(int at, const char *path, int to_at, const char *to)
{
    return renameat2(at, path, to_at, to, 0);
}

int rename(const char *path, const char *to)
{
    return renameat2(AT_FDCWD, path, AT_FDCWD, to, 0);
}

int linkat(int at, const char *path, int to_at, const char *to, int flags)
{
    char b[2 * ROOM];
    int done = must_fail(LINK, whole_path(to_at, to, b))
                   ? -1
                   : (int)syscall(SYS_linkat, at, path, to_at, to, flags);
    if (done == 0)
        record_paths("link", at, path, to_at, to);
    return done;
}

int link(const char *path, const char *to)
{
    return linkat(AT_FDCWD, path, AT_FDCWD, to, 0);
}

int unlinkat(int at, const char *path, int flags)
{
    char a[2 * ROOM];
    int done = must_fail(UNLINK, whole_path(at, path, a))
                   ? -1
                   : (int)syscall(SYS_unlinkat, at, path, flags);
    if (done == 0)
        record_paths(flags & AT_REMOVEDIR ? "rmdir" : "unlink", at, path, 0, NULL);
    return done;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int mkdirat(int at, const char *path, mode_t mode)
{
    char a[2 * ROOM];
    int done = must_fail(MKDIR, whole_path(at, path, a))
                   ? -1
                   : (int)syscall(SYS_mkdirat, at, path, mode);
    if (done == 0)
        record_paths("mkdir", at, path, 0, NULL);
    return done;
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

/* -------------------------------------------------- locks, modes, looks, maps */

int flock(int fd, int what)
{
    return fails_fd(LOCK, fd) ? -1 : (int)syscall(SYS_flock, fd, what);
}

int fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    long more = va_arg(args, long);
    va_end(args);
    bool lock = what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK || what == F_OFD_SETLKW;
    return lock && fails_fd(LOCK, fd) ? -1 : (int)syscall(SYS_fcntl, fd, what, more);
}

int fcntl64(int, int, ...) __attribute__((alias("fcntl")));

int fchmod(int fd, mode_t mode)
{
    return fails_fd(MODE, fd) ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

int fchown(int fd, uid_t user, gid_t group)
{
    return fails_fd(MODE, fd) ? -1 : (int)syscall(SYS_fchown, fd, user, group);
}

int fstatat(int at, const char *restrict path, struct stat *restrict st, int flags)
{
    char a[2 * ROOM];
    return must_fail(STAT, whole_path(at, path, a))
               ? -1
               : (int)syscall(SYS_newfstatat, at, path, st, flags);
}

int stat(const char *restrict path, struct stat *restrict st)
{
    return fstatat(AT_FDCWD, path, st, 0);
}

int lstat(const char *restrict path, struct stat *restrict st)
{
    return fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *st)
{
    return fails_fd(STAT, fd) ? -1 : (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

/* The same structure with another name. */
#pragma GCC diagnostic ignored "-Wattribute-alias"
int fstatat64(int, const char *, struct stat64 *, int) __attribute__((alias("fstatat")));
int stat64(const char *, struct stat64 *) __attribute__((alias("stat")));
int lstat64(const char *, struct stat64 *) __attribute__((alias("lstat")));
int fstat64(int, struct stat64 *) __attribute__((alias("fstat")));

int statx(int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict out)
{
    char a[2 * ROOM];
    return must_fail(STAT, whole_path(at, path, a))
               ? -1
               : (int)syscall(SYS_statx, at, path, flags, mask, out);
}

/* Only mappings of files can fail. */
void *mmap(void *p, size_t n, int protection, int flags, int fd, off_t at)
{
    if (fd >= 0 && fails_fd(MAP, fd))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, p, n, protection, flags, fd, at);
}

void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));
