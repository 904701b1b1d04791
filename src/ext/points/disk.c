/* SPDX-License-Identifier: MIT */
/* The few operations on a file. */
#include "ext/points/points.h"
#include "io/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void tell_observer(tnf_points *p, tnf_disk_act act, uint64_t offset, const void *bytes,
                          size_t n)
{
    if (p->log)
        p->log(p->log_ctx, act, offset, bytes, n);
}

tnf_status tnf_disk_write(tnf_points *p, int fd, uint64_t offset, const void *bytes, size_t n,
                          tnf_error *e)
{
    tell_observer(p, TNF_DISK_WRITE, offset, bytes, n);
    return tnf_fs_write_at(fd, bytes, n, offset, e);
}

tnf_status tnf_disk_sync(tnf_points *p, int fd, tnf_error *e)
{
    if (p->options.sync == TNF_POINTS_NO_SYNC)
        return TNF_OK;
    tell_observer(p, TNF_DISK_SYNC, 0, NULL, 0);
    int failed;
    do
#if defined(__APPLE__)
        failed = fcntl(fd, F_FULLFSYNC) == -1 && fsync(fd) != 0;
#elif defined(__linux__)
        failed = fdatasync(fd) != 0; /* also syncs the length, if it matters */
#else
        failed = fsync(fd) != 0;
#endif
    while (failed && errno == EINTR);
    return failed ? tnf_fail_sys(e, errno, "cannot sync the file") : TNF_OK;
}

tnf_status tnf_disk_cut(tnf_points *p, int fd, uint64_t size, tnf_error *e)
{
    tell_observer(p, TNF_DISK_TRUNCATE, size, NULL, 0);
    return tnf_fs_cut(fd, size, e);
}

tnf_status tnf_disk_read(int fd, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    size_t got;
    TNF_TRY(tnf_fs_read_at(fd, dst, n, offset, &got, e));
    return got == n ? TNF_OK
                    : tnf_fail(e, TNF_ETRUNCATED, offset + got,
                               "the file was truncated at byte %llu while it was read",
                               (unsigned long long)(offset + got));
}

tnf_status tnf_disk_sync_done(tnf_points *p, int fd, tnf_error *e)
{
    tnf_error why;
    return tnf_disk_sync(p, fd, &why) == TNF_OK ? TNF_OK : tnf_fail_unsynced(e, &why);
}

tnf_status tnf_disk_sync_placed(const tnf_points *p, const char *path, tnf_error *e)
{
    return p->options.sync == TNF_POINTS_NO_SYNC ? TNF_OK : tnf_sync_placed(path, e);
}
