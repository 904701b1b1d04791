/* SPDX-License-Identifier: MIT */
/* A file that is written before it has a name, so that a crash leaves nothing. If the system has no
 * files without names, and for the moment of replacing another file, its name is
 * NAME.tmp-XXXXXXXX. */
#include "ext/points/points.h"
#include "io/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRIES 100u

static tnf_status name_temp(tnf_fresh *f, unsigned attempt, tnf_error *e)
{
    int n = tnf_temp_name(f->temp, sizeof f->temp, f->path, attempt);
    if (n >= 0 && (size_t)n < sizeof f->temp)
        return TNF_OK;
    f->temp[0] = 0;
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path is too long");
}

tnf_status tnf_fresh_open(tnf_fresh *f, const char *path, mode_t mode, tnf_error *e)
{
    f->path = path;
    f->temp[0] = 0;
    f->fd = tnf_open_nameless(path, O_RDWR, mode);
    for (unsigned i = 0; i < TRIES && f->fd < 0; i++) {
        TNF_TRY(name_temp(f, i, e));
        f->fd = tnf_fs_open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        if (f->fd < 0 && errno != EEXIST)
            break;
    }
    if (f->fd >= 0)
        return TNF_OK;
    f->temp[0] = 0;
    return tnf_fail_sys(e, errno, "cannot write to the directory of the file");
}

static tnf_status place_new(tnf_fresh *f, tnf_error *e)
{
    bool done = f->temp[0] ? link(f->temp, f->path) == 0 : tnf_name_nameless(f->fd, f->path);
    if (!done && f->temp[0] && errno != EEXIST && access(f->path, F_OK) != 0)
        return tnf_fresh_place(f, true, e); /* no hard links here; a rename is nearly as good */
    if (!done)
        return tnf_fail_sys(e, errno, "cannot give the new file its name");
    if (f->temp[0])
        unlink(f->temp);
    f->temp[0] = 0;
    return TNF_OK;
}

tnf_status tnf_fresh_place(tnf_fresh *f, bool replace, tnf_error *e)
{
    if (!replace)
        return place_new(f, e);
    for (unsigned i = 0; !f->temp[0] && i < TRIES; i++) {
        TNF_TRY(name_temp(f, i, e));
        if (tnf_name_nameless(f->fd, f->temp))
            break;
        f->temp[0] = 0;
        if (errno != EEXIST)
            break;
    }
    if (!f->temp[0])
        return tnf_fail_sys(e, errno, "cannot give the new file its name");
    if (rename(f->temp, f->path) != 0)
        return tnf_fail_sys(e, errno, "cannot give the new file its name");
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
