/* SPDX-License-Identifier: MIT */
/* The few things that are done to a file. */
#include "points/points.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void tell(tnf_points *p, tnf_disk_act act, uint64_t offset, const void *bytes, size_t n)
{
    if (p->log)
        p->log(p->log_ctx, act, offset, bytes, n);
}

tnf_status tnf_disk_write(tnf_points *p, int fd, uint64_t offset, const void *bytes, size_t n,
                          tnf_error *e)
{
    tell(p, TNF_DISK_WRITE, offset, bytes, n);
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, (const uint8_t *)bytes + done, n - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return tnf_fail_sys(e, errno, "cannot write at byte %llu",
                                (unsigned long long)(offset + done));
        done += (size_t)put;
    }
    return TNF_OK;
}

tnf_status tnf_disk_sync(tnf_points *p, int fd, tnf_error *e)
{
    if (p->options.sync == TNF_POINTS_NO_SYNC)
        return TNF_OK;
    tell(p, TNF_DISK_SYNC, 0, NULL, 0);
#if defined(__APPLE__)
    int failed = fcntl(fd, F_FULLFSYNC) == -1 && fsync(fd) != 0;
#elif defined(__linux__)
    int failed = fdatasync(fd) != 0; /* the length counts as data where it matters */
#else
    int failed = fsync(fd) != 0;
#endif
    return failed ? tnf_fail_sys(e, errno, "cannot sync the file") : TNF_OK;
}

tnf_status tnf_disk_cut(tnf_points *p, int fd, uint64_t size, tnf_error *e)
{
    tell(p, TNF_DISK_TRUNCATE, size, NULL, 0);
    int failed;
    do
        failed = ftruncate(fd, (off_t)size);
    while (failed != 0 && errno == EINTR);
    return failed ? tnf_fail_sys(e, errno, "cannot shorten the file") : TNF_OK;
}

tnf_status tnf_disk_read(int fd, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (uint8_t *)dst + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tnf_fail_sys(e, errno, "cannot read at byte %llu",
                                (unsigned long long)(offset + done));
        if (got == 0)
            return tnf_fail(e, TNF_ETRUNCATED, offset + done,
                            "the file ended at byte %llu while it was read",
                            (unsigned long long)(offset + done));
        done += (size_t)got;
    }
    return TNF_OK;
}

tnf_status tnf_disk_sync_directory(const tnf_points *p, const char *path, tnf_error *e)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (p->options.sync == TNF_POINTS_NO_SYNC)
        return TNF_OK;
    int n = slash ? snprintf(dir, sizeof dir, "%.*s", (int)(slash - path + 1), path)
                  : snprintf(dir, sizeof dir, ".");
    if (n < 0 || (size_t)n >= sizeof dir)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path is too long");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return TNF_OK; /* one that can be written but not read: nothing to do */
    int failed = fsync(fd) != 0 && errno != EINVAL && errno != EROFS ? errno : 0;
    close(fd);
    return failed ? tnf_fail_sys(e, failed, "cannot sync the directory") : TNF_OK;
}
