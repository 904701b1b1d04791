/* SPDX-License-Identifier: MIT */
#include "container/folder_sink.h"

#include "base/error.h"
#include "container/path.h"
#include "io/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRIES   100u
#define HANDLES 16 /* the maximum for nftw() at once */

static size_t temp_room(const tnf_folder_sink *f)
{
    return f->ntarget + TNF_TEMP_MORE;
}

tnf_status tnf_folder_sink_begin(tnf_folder_sink *f, const char *target, unsigned flags,
                                 const tnf_allocator *alloc, tnf_error *e)
{
    struct stat st;
    *f = (tnf_folder_sink) { .fd = -1, .alloc = tnf_allocator_or_default(alloc) };
    f->sync = !(flags & TNF_SINK_NO_SYNC);
    f->replace = flags & TNF_SINK_REPLACE;
    f->ntarget = strlen(target);
    while (f->ntarget > 1 && target[f->ntarget - 1] == '/') /* "d/" means "d" */
        f->ntarget--;
    f->target = tnf_alloc0(&f->alloc, f->ntarget + 1);
    f->temp = tnf_alloc0(&f->alloc, temp_room(f));
    if (!f->target || !f->temp)
        return tnf_no_memory("a path", e);
    memcpy(f->target, target, f->ntarget);
    bool there = lstat(f->target, &st) == 0;
    if (there && !(f->replace && S_ISDIR(st.st_mode)))
        return tnf_fail_sys(e, f->replace ? ENOTDIR : EEXIST, "cannot create the directory");
    for (unsigned i = 0; i < TRIES; i++) {
        (void)tnf_temp_name(f->temp, temp_room(f), f->target, i);
        if (mkdir(f->temp, 0777) == 0)
            return TNF_OK;
        if (errno != EEXIST)
            break;
    }
    f->temp[0] = 0;
    return tnf_fail_sys(e, errno, "cannot create a temporary directory next to the target");
}

/* ----------------------------------------------------------------- members */

/* Makes the path TEMP/NAME, and creates all directories in it. */
static tnf_status make_path(char path[PATH_MAX], const tnf_folder_sink *f, tnf_str name,
                            tnf_error *e)
{
    int n = snprintf(path, PATH_MAX, "%s/%.*s", f->temp, (int)name.n, name.p);
    if (n < 0 || n >= PATH_MAX)
        return tnf_fail_sys(e, ENAMETOOLONG, "cannot write");
    return tnf_fs_make_directories(path, strlen(f->temp) + 1, e);
}

tnf_status tnf_folder_sink_member(tnf_folder_sink *f, tnf_str name, tnf_sink **out, tnf_error *e)
{
    char path[PATH_MAX];
    *out = NULL;
    if (f->member)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "another member is still being written");
    TNF_TRY(tnf_path_check(name, e));
    TNF_TRY(make_path(path, f, name, e));
    f->fd = tnf_fs_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (f->fd < 0)
        return tnf_fail_sys(e, errno, "cannot create the file %s", TNF_QUOTED(name));
    tnf_status status = tnf_sink_fd(&f->member, f->fd, e);
    if (status != TNF_OK) {
        close(f->fd);
        f->fd = -1;
    }
    *out = f->member;
    return status;
}

static void drop_member(tnf_folder_sink *f)
{
    tnf_sink_close(f->member);
    f->member = NULL;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

tnf_status tnf_folder_sink_member_end(tnf_folder_sink *f, tnf_error *e)
{
    tnf_status status = tnf_sink_commit(f->member, e);
    if (status == TNF_OK && f->sync)
        status = tnf_fs_sync(f->fd, e);
    drop_member(f);
    return status;
}

/* --------------------------------------------------------------------- end */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)where;
    (kind == FTW_DP || kind == FTW_D ? rmdir : unlink)(path);
    return 0;
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, HANDLES, FTW_DEPTH | FTW_PHYS);
}

static int sync_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)where;
    if (kind != FTW_D)
        return 0;
    int fd = tnf_fs_open(path, O_RDONLY | O_DIRECTORY, 0);
    int failed = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return failed;
}

/* Never replaces a directory that appeared meanwhile: rename() would replace an empty one. */
static int rename_new(const char *from, const char *to)
{
#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
#endif
    struct stat st;
    if (lstat(to, &st) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

/* Exchanges the old directory and the new one, atomically if the system can. Otherwise there is a
 * moment without a directory; the old one is put back if the new one cannot take its place. */
static int exchange_folders(char *temp, size_t room, const char *target)
{
#ifdef RENAME_EXCHANGE
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, target, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
#endif
    char aside[PATH_MAX];
    int n = tnf_temp_name(aside, sizeof aside, target, TRIES);
    if (n < 0 || (size_t)n >= sizeof aside || (size_t)n >= room)
        return -1;
    if (rename(target, aside) != 0)
        return -1;
    if (rename(temp, target) != 0) {
        int why = errno;
        (void)rename(aside, target);
        errno = why;
        return -1;
    }
    memcpy(temp, aside, (size_t)n + 1);
    return 0;
}

tnf_status tnf_folder_sink_end(tnf_folder_sink *f, tnf_error *e)
{
    struct stat st;
    int failed = f->sync ? nftw(f->temp, sync_one, HANDLES, FTW_PHYS) : 0;
    if (failed)
        return tnf_fail_sys(e, failed > 0 ? failed : errno, "cannot write the new directory");
    bool old = f->replace && lstat(f->target, &st) == 0;
    if (old && !S_ISDIR(st.st_mode))
        return tnf_fail_sys(e, ENOTDIR, "cannot give the new directory its name");
    failed = old ? exchange_folders(f->temp, temp_room(f), f->target)
                 : rename_new(f->temp, f->target);
    if (failed)
        return tnf_fail_sys(e, errno, "cannot give the new directory its name");
    if (old)
        remove_tree(f->temp);
    f->temp[0] = 0;
    return f->sync ? tnf_sync_placed(f->target, e) : TNF_OK;
}

void tnf_folder_sink_free(tnf_folder_sink *f)
{
    drop_member(f);
    if (f->temp && f->temp[0])
        remove_tree(f->temp);
    if (f->temp)
        tnf_free(&f->alloc, f->temp, temp_room(f));
    if (f->target)
        tnf_free(&f->alloc, f->target, f->ntarget + 1);
    f->temp = f->target = NULL;
}
