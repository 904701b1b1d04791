/* SPDX-License-Identifier: MIT */
/* A file that is written before it has a name, so that a crash leaves nothing under any. Where the
 * system has no such files, and for the moment of taking another's name, it is called .NAME.compact
 * if only one can be made at a time, and NAME.tmp-XXXXXXXX if anybody may. */
#include "io/sink.h"
#include "points/points.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tnf_status name_temp(tnf_fresh *f, tnf_error *e)
{
    const char *slash = strrchr(f->path, '/');
    int dir = slash ? (int)(slash - f->path + 1) : 0, n;
    if (f->alone)
        n = snprintf(f->temp, sizeof f->temp, "%.*s.%s.compact", dir, f->path, f->path + dir);
    else
        n = tnf_temp_name(f->temp, sizeof f->temp, f->path, 0);
    if (n < 0 || (size_t)n >= sizeof f->temp) {
        f->temp[0] = 0;
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path is too long");
    }
    return TNF_OK;
}

tnf_status tnf_fresh_open(tnf_fresh *f, const char *path, bool alone, mode_t mode, tnf_error *e)
{
    f->path = path;
    f->alone = alone;
    f->temp[0] = 0;
    f->fd = tnf_open_nameless(path, O_RDWR, mode);
    if (f->fd >= 0)
        return TNF_OK;
    TNF_TRY(name_temp(f, e));
    for (int i = 0; i < 2 && f->fd < 0; i++) {
        f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (f->fd < 0 && errno == EEXIST && alone && i == 0)
            unlink(f->temp);
    }
    if (f->fd >= 0)
        return TNF_OK;
    f->temp[0] = 0;
    return tnf_fail_sys(e, errno, "cannot write beside the file");
}

static tnf_status place_new(tnf_fresh *f, tnf_error *e)
{
    bool done = f->temp[0] ? link(f->temp, f->path) == 0 : tnf_name_nameless(f->fd, f->path);
    if (!done && f->temp[0] && errno != EEXIST && access(f->path, F_OK) != 0)
        return tnf_fresh_place(f, true, e); /* no links here: nearly as good */
    if (!done)
        return tnf_fail_sys(e, errno, "cannot put the new file in place");
    if (f->temp[0])
        unlink(f->temp);
    f->temp[0] = 0;
    return TNF_OK;
}

tnf_status tnf_fresh_place(tnf_fresh *f, bool replace, tnf_error *e)
{
    if (!replace)
        return place_new(f, e);
    if (!f->temp[0]) {
        TNF_TRY(name_temp(f, e));
        bool done = tnf_name_nameless(f->fd, f->temp);
        if (!done && errno == EEXIST && f->alone && unlink(f->temp) == 0)
            done = tnf_name_nameless(f->fd, f->temp);
        if (!done) {
            f->temp[0] = 0;
            return tnf_fail_sys(e, errno, "cannot put the new file in place");
        }
    }
    if (rename(f->temp, f->path) != 0)
        return tnf_fail_sys(e, errno, "cannot put the new file in place");
    f->temp[0] = 0;
    return TNF_OK;
}

void tnf_fresh_drop(tnf_fresh *f)
{
    if (f->fd >= 0 && f->temp[0])
        unlink(f->temp);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    f->temp[0] = 0;
}
