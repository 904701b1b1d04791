/* SPDX-License-Identifier: MIT */
/* A file that is written before it has a name, so that a crash leaves nothing. If the system has no
 * files without names, and for the moment of replacing another file, it has a temporary name
 * (io/temp.h), and if the process is killed then, the next writer removes it. */
#include "ext/points/points.h"
#include "io/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

tnf_status tnf_fresh_open(tnf_fresh *f, const char *path, mode_t mode, tnf_error *e)
{
    f->path = path;
    f->temp[0] = 0;
    f->fd = tnf_open_nameless(path, O_RDWR, mode);
    return f->fd >= 0 ? TNF_OK
                      : tnf_temp_create(&f->fd, f->temp, sizeof f->temp, path, mode, e);
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
    tnf_temp_settle(f->fd);
    f->temp[0] = 0;
    return TNF_OK;
}

tnf_status tnf_fresh_place(tnf_fresh *f, bool replace, tnf_error *e)
{
    if (!replace)
        return place_new(f, e);
    if (!f->temp[0])
        TNF_TRY(tnf_temp_link(f->fd, f->temp, sizeof f->temp, f->path, e));
    if (rename(f->temp, f->path) != 0)
        return tnf_fail_sys(e, errno, "cannot give the new file its name");
    tnf_temp_settle(f->fd);
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
