/* SPDX-License-Identifier: MIT */
#include "io/temp.h"

#include "base/crc32.h"
#include "io/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 100u

/* ------------------------------------------------------------------- names */

int tnf_open_nameless(const char *target, int access, mode_t mode)
{
#ifdef O_TMPFILE
    char dir[PATH_MAX];
    if (!tnf_fs_directory_of(dir, target))
        return -1;
    int fd = open(dir, O_TMPFILE | access | O_CLOEXEC, mode);
    char proc[64];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    struct stat st;
    if (fd >= 0 && stat(proc, &st) != 0) { /* without /proc it cannot be named later */
        close(fd);
        fd = -1;
    }
    return fd;
#else
    (void)target, (void)access, (void)mode;
    return -1;
#endif
}

bool tnf_name_nameless(int fd, const char *name)
{
    char proc[64];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

/* The number in the name that all writers of a target with the same user use. */
static uint32_t steady_number(const char *target)
{
    const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    uint32_t user = (uint32_t)geteuid();
    return tnf_crc32(tnf_crc32(0, name, strlen(name)), &user, sizeof user);
}

static int put_name(char *out, size_t room, const char *target, uint32_t number)
{
    return snprintf(out, room, "%s.tmp-%08x", target, number);
}

int tnf_temp_name(char *out, size_t room, const char *target, unsigned attempt)
{
    uint32_t random = 0;
    if (getentropy(&random, sizeof random) != 0)
        random = (uint32_t)getpid() * 2654435761u + attempt;
    return put_name(out, room, target, random == steady_number(target) ? ~random : random);
}

/* The first attempt is the name that others look for. */
static bool name_attempt(char *out, size_t room, const char *target, unsigned attempt)
{
    int n = attempt == 0 ? put_name(out, room, target, steady_number(target))
                         : tnf_temp_name(out, room, target, attempt);
    return n >= 0 && (size_t)n < room;
}

/* ------------------------------------------------------------------- sweep */

static bool same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* May this be what a killed writer left? */
static bool is_stray(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
}

static bool try_flock(int fd)
{
    int done;
    do
        done = flock(fd, LOCK_EX | LOCK_NB);
    while (done != 0 && errno == EINTR);
    return done == 0;
}

/* Does the name still belong to the open file, which is locked? */
static bool still_named(int fd, const char *name)
{
    struct stat ours, named;
    return fstat(fd, &ours) == 0 && lstat(name, &named) == 0 && same_inode(&ours, &named);
}

void tnf_temp_sweep(const char *target)
{
    char name[PATH_MAX];
    struct stat st;
    if (!name_attempt(name, sizeof name, target, 0) || lstat(name, &st) != 0 || !is_stray(&st))
        return;
    int err = errno, fd = tnf_fs_open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        fd = tnf_fs_open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (fd >= 0 && try_flock(fd) && still_named(fd, name) && fstat(fd, &st) == 0 && is_stray(&st))
        unlink(name);
    if (fd >= 0)
        close(fd);
    errno = err;
}

void tnf_temp_settle(int fd)
{
    (void)flock(fd, LOCK_UN);
}

/* ------------------------------------------------------------------ making */

static tnf_status name_too_long(char *out, tnf_error *e)
{
    out[0] = 0;
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path is too long");
}

tnf_status tnf_temp_link(int fd, char *out, size_t room, const char *target, tnf_error *e)
{
    (void)try_flock(fd); /* if there are no such locks, nothing is ever removed */
    tnf_temp_sweep(target);
    for (unsigned i = 0; i < TRIES; i++) {
        if (!name_attempt(out, room, target, i))
            return name_too_long(out, e);
        if (tnf_name_nameless(fd, out))
            return TNF_OK;
        if (errno != EEXIST)
            break;
    }
    int err = errno;
    out[0] = 0;
    tnf_temp_settle(fd);
    return tnf_fail_sys(e, err, "cannot give the new file its name");
}

/* Between creating and locking, another writer may take the file for a stray, and remove it. If
 * this cannot be found out, the file stays in use. */
static bool hold_created(int fd, const char *name)
{
    struct stat ours, named;
    if (!try_flock(fd) && errno == EWOULDBLOCK)
        return false;
    if (lstat(name, &named) != 0)
        return errno != ENOENT;
    return fstat(fd, &ours) != 0 || same_inode(&ours, &named);
}

tnf_status tnf_temp_create(int *fd, char *out, size_t room, const char *target, mode_t mode,
                           tnf_error *e)
{
    tnf_temp_sweep(target);
    for (unsigned i = 0; i < TRIES; i++) {
        if (!name_attempt(out, room, target, i))
            return name_too_long(out, e);
        *fd = tnf_fs_open(out, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        if (*fd >= 0 && hold_created(*fd, out))
            return TNF_OK;
        if (*fd < 0 && errno != EEXIST)
            break;
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
    }
    int err = errno;
    out[0] = 0;
    return tnf_fail_sys(e, err, "cannot create a temporary file next to the target");
}
