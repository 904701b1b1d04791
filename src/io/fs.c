/* SPDX-License-Identifier: MIT */
#include "io/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif
#include <unistd.h>

#define WRITEBACK (32u << 20) /* start writing this much to the disk at a time */

bool tnf_fs_directory_of(char out[PATH_MAX], const char *path)
{
    const char *slash = strrchr(path, '/');
    int n = slash ? snprintf(out, PATH_MAX, "%.*s", (int)(slash - path + 1), path)
                  : snprintf(out, PATH_MAX, ".");
    return n >= 0 && n < PATH_MAX;
}

int tnf_fs_open(const char *path, int flags, mode_t mode)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

tnf_status tnf_fs_write_at(int fd, const void *bytes, size_t n, uint64_t at, tnf_error *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, (const uint8_t *)bytes + done, n - done, (off_t)(at + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return tnf_fail_sys(e, errno, "cannot write at byte %llu",
                                (unsigned long long)(at + done));
        done += (size_t)put;
    }
    return TNF_OK;
}

tnf_status tnf_fs_read_at(int fd, void *dst, size_t n, uint64_t at, size_t *got, tnf_error *e)
{
    for (*got = 0; *got < n;) {
        ssize_t here = pread(fd, (uint8_t *)dst + *got, n - *got, (off_t)(at + *got));
        if (here < 0 && errno == EINTR)
            continue;
        if (here < 0)
            return tnf_fail_sys(e, errno, "cannot read at byte %llu",
                                (unsigned long long)(at + *got));
        if (here == 0)
            break;
        *got += (size_t)here;
    }
    return TNF_OK;
}

tnf_status tnf_fs_read_all(int fd, void *dst, size_t n, uint64_t at, tnf_error *e)
{
    size_t got;
    TNF_TRY(tnf_fs_read_at(fd, dst, n, at, &got, e));
    return got == n ? TNF_OK : tnf_fail(e, TNF_ECHANGED, at + got, "the file has become shorter");
}

tnf_status tnf_fs_sync(int fd, tnf_error *e)
{
    int failed;
    do
        failed = fsync(fd);
    while (failed != 0 && errno == EINTR);
    return failed ? tnf_fail_sys(e, errno, "cannot sync the file") : TNF_OK;
}

void tnf_fs_write_back(int fd, uint64_t written, uint64_t *handed)
{
#ifdef __linux__
    if (written - *handed < WRITEBACK)
        return;
    (void)sync_file_range(fd, (off_t)*handed, (off_t)(written - *handed), SYNC_FILE_RANGE_WRITE);
    *handed = written;
#else
    (void)fd, (void)written, (void)handed;
#endif
}

tnf_status tnf_fs_cut(int fd, uint64_t size, tnf_error *e)
{
    int failed;
    do
        failed = ftruncate(fd, (off_t)size);
    while (failed != 0 && errno == EINTR);
    return failed ? tnf_fail_sys(e, errno, "cannot truncate the file") : TNF_OK;
}

tnf_status tnf_fs_make_directory(const char *path, tnf_error *e)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST
               ? TNF_OK
               : tnf_fail_sys(e, errno, "cannot create %s", TNF_VISIBLE(path));
}

tnf_status tnf_fs_make_directories(char *path, size_t skip, tnf_error *e)
{
    for (char *slash = path + skip; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        bool failed = mkdir(path, 0777) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return tnf_fail_sys(e, errno, "cannot create a directory");
    }
    return TNF_OK;
}

tnf_status tnf_sync_directory_of(const char *path, tnf_error *e)
{
    char dir[PATH_MAX];
    if (!tnf_fs_directory_of(dir, path))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path is too long");
    int fd = tnf_fs_open(dir, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 && errno == EACCES)
        return TNF_OK; /* it is writable but not readable, so only the system can sync it */
    if (fd < 0)
        return tnf_fail_sys(e, errno, "cannot sync the directory");
    int failed;
    do
        failed = fsync(fd) != 0 ? errno : 0;
    while (failed == EINTR);
    close(fd);
    return failed == 0 || failed == EINVAL || failed == EROFS
               ? TNF_OK
               : tnf_fail_sys(e, failed, "cannot sync the directory");
}

tnf_status tnf_fail_unsynced(tnf_error *e, const tnf_error *why)
{
    int sys = why->sys;
    tnf_fail(e, TNF_EUNSYNCED, TNF_NO_OFFSET, "it is done, but a power cut may undo it: %.150s",
             why->message);
    if (e)
        e->sys = sys;
    return TNF_EUNSYNCED;
}

tnf_status tnf_sync_placed(const char *path, tnf_error *e)
{
    tnf_error why;
    return tnf_sync_directory_of(path, &why) == TNF_OK ? TNF_OK : tnf_fail_unsynced(e, &why);
}

static bool has_acl(int fd)
{
#ifdef __linux__
    return fd >= 0 && fgetxattr(fd, "system.posix_acl_access", NULL, 0) > 0;
#else
    (void)fd;
    return false;
#endif
}

void tnf_keep_rights(int fd, int old_fd, const struct stat *old)
{
    struct stat now;
    mode_t mode = old->st_mode & 0777;
    if (fstat(fd, &now) != 0)
        return;
    bool group = now.st_gid == old->st_gid;
    if (!group || now.st_uid != old->st_uid)
        group = fchown(fd, old->st_uid, old->st_gid) == 0 || group ||
                fchown(fd, (uid_t)-1, old->st_gid) == 0;
    if (!group || has_acl(old_fd))
        mode &= 0707u | ((mode & 07u) << 3);
    (void)fchmod(fd, mode);
}

tnf_stamp tnf_stamp_of(const struct stat *st)
{
    tnf_stamp s = { .dev = st->st_dev, .ino = st->st_ino, .size = (uint64_t)st->st_size };
#ifdef __APPLE__
    s.modified = st->st_mtimespec;
    s.changed = st->st_ctimespec;
#else
    s.modified = st->st_mtim;
    s.changed = st->st_ctim;
#endif
    return s;
}

bool tnf_same_file(const tnf_stamp *a, const tnf_stamp *b)
{
    return a->ino != 0 && a->dev == b->dev && a->ino == b->ino;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool tnf_same_stamp(const tnf_stamp *a, const tnf_stamp *b)
{
    return tnf_same_file(a, b) && a->size == b->size && same_time(a->modified, b->modified) &&
           same_time(a->changed, b->changed);
}
