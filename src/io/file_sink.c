/* SPDX-License-Identifier: MIT */
/* Files that appear complete or not at all.
 *
 *   open     an unnamed file in the target's directory (O_TMPFILE), or target.tmp-XXXXXXXX if the
 *            system does not have these: after a kill the old file is still there, mostly alone
 *   write    append; writeback starts early, so that the fsync at the end is short
 *   commit   fsync, claim the target, rename over it, fsync of the directory
 *   abort    close and unlink
 *
 * A target that is a device or a pipe is written directly, since it cannot be renamed.
 */
#include "base/sized.h"
#include "io/claim.h"
#include "io/fs.h"
#include "io/sink.h"
#include "io/undo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <unistd.h>

#define TMPFS 0x01021994 /* of statfs(2); the kernel's headers may be missing */
/* For a longer write, Linux looks for larger pages, which can cost more than it saves. A write that
 * does not begin at a multiple of its length gets small pages, which costs a quarter. */
#define STEP  ((size_t)256 << 10)

struct file {
    int fd;
    bool own_fd, direct; /* direct: no temporary file */
    bool sync, replace, nameless, committed;
    bool no_link;             /* TNF_SINK_NO_LINK */
    uint64_t written, handed; /* bytes; bytes whose writeback was started */
    char *target, *temp;      /* temp is unused while the file is unnamed */
    const char *as;           /* the caller's: the name to use instead of the target's; or NULL */
    const tnf_claim *claim;   /* the caller's, on the target; or NULL */
    tnf_allocator alloc;
};

static tnf_status file_write(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct file *f = ctx;
    for (size_t done = 0; bytes && done < n;) {
        size_t step = STEP - (size_t)((f->written + done) % STEP);
        step = n - done < step ? n - done : step;
        ssize_t put = write(f->fd, (const uint8_t *)bytes + done, step);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return tnf_fail_sys(e, errno, "cannot write");
        done += (size_t)put;
    }
    f->written += n;
    if (f->sync)
        tnf_fs_write_back(f->fd, f->written, &f->handed);
    return TNF_OK;
}

static size_t temp_room(const struct file *f)
{
    return strlen(f->target) + TNF_TEMP_MORE;
}

/* Gives the file a new name: link(), unlike rename(), fails if the target exists meanwhile. */
static tnf_status put_new(struct file *f, const char *name, tnf_error *e)
{
    bool linked = f->nameless ? tnf_name_nameless(f->fd, name) : link(f->temp, name) == 0;
    if (linked && !f->nameless)
        unlink(f->temp);
    if (!linked && (f->nameless || errno == EEXIST || rename(f->temp, name) != 0))
        return tnf_fail_sys(e, errno, "cannot give the new file its name");
    return TNF_OK;
}

static tnf_status put_over(struct file *f, tnf_error *e)
{
    if (f->nameless) { /* so that it can be renamed over the target */
        TNF_TRY(tnf_temp_link(f->fd, f->temp, temp_room(f), f->target, e));
        f->nameless = false;
    }
    if (rename(f->temp, f->target) != 0)
        return tnf_fail_sys(e, errno, "cannot give the new file its name");
    return TNF_OK;
}

/* Replaces the target under a claim. If the caller has read the target, it must be unchanged. */
static tnf_status put_claimed(struct file *f, const tnf_claim *claim, tnf_error *e)
{
    struct stat old;
    bool replaces = stat(f->target, &old) == 0;
    if (f->claim && !tnf_claim_unchanged(f->claim, f->target))
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                        "the file was changed or replaced while it was being rewritten");
    TNF_TRY(put_over(f, e));
    if (replaces && claim->fd >= 0) /* the undo file of an interrupted change is useless now */
        tnf_undo_discard(f->target, old.st_uid);
    return TNF_OK;
}

static tnf_status put_in_place(struct file *f, tnf_error *e)
{
    tnf_claim own = { .fd = -1 };
    if (!f->replace || f->as)
        return put_new(f, f->as ? f->as : f->target, e);
    if (f->claim)
        return put_claimed(f, f->claim, e);
    TNF_TRY(tnf_claim_take(&own, f->target, NULL, e));
    tnf_status status = put_claimed(f, &own, e);
    tnf_claim_drop(&own);
    return status;
}

static tnf_status file_commit(void *ctx, tnf_error *e)
{
    struct file *f = ctx;
    if (f->direct)
        return TNF_OK;
    if (f->sync)
        TNF_TRY(tnf_fs_sync(f->fd, e));
    TNF_TRY(put_in_place(f, e));
    f->committed = true;
    tnf_temp_settle(f->fd);
    return f->sync ? tnf_sync_placed(f->as ? f->as : f->target, e) : TNF_OK;
}

static void file_abort(void *ctx)
{
    struct file *f = ctx;
    if (!f->direct && !f->nameless && !f->committed)
        unlink(f->temp);
}

static tnf_status file_patch(void *ctx, uint64_t at, const void *bytes, size_t n, tnf_error *e)
{
    return tnf_fs_write_at(((struct file *)ctx)->fd, bytes, n, at, e);
}

static void file_release(void *ctx)
{
    struct file *f = ctx;
    if (f->own_fd && f->fd >= 0)
        close(f->fd);
    tnf_allocator a = f->alloc;
    if (f->target) {
        size_t n = strlen(f->target);
        tnf_free(&a, f->temp, temp_room(f));
        tnf_free(&a, f->target, n + 1);
    }
    tnf_free(&a, f, sizeof *f);
}

static tnf_status open_temp(struct file *f, mode_t mode, tnf_error *e)
{
    f->fd = tnf_open_nameless(f->target, O_RDWR, mode); /* a mapping needs read access */
    f->nameless = f->fd >= 0;
    return f->nameless ? TNF_OK
                       : tnf_temp_create(&f->fd, f->temp, temp_room(f), f->target, mode, e);
}

/* Examines the existing file of that name, and opens accordingly. */
static tnf_status open_target(struct file *f, tnf_error *e)
{
    struct stat st;
    if (fstatat(AT_FDCWD, f->target, &st, f->no_link ? AT_SYMLINK_NOFOLLOW : 0) != 0)
        return errno == ENOENT ? open_temp(f, 0666, e) : tnf_fail_sys(e, errno, "cannot write");
    if (f->no_link && !S_ISREG(st.st_mode))
        return tnf_fail(
            e, TNF_EINVAL, TNF_NO_OFFSET,
            "the name of the second file is taken by a link, or by something that is not a "
            "regular file");
    if (S_ISDIR(st.st_mode))
        return tnf_fail_sys(e, EISDIR, "cannot write");
    if (!S_ISREG(st.st_mode)) {
        f->direct = true;
        f->sync = false;
        f->fd = open(f->target, O_WRONLY | O_CLOEXEC);
        return f->fd < 0 ? tnf_fail_sys(e, errno, "cannot write") : TNF_OK;
    }
    if (!f->replace)
        return tnf_fail_sys(e, EEXIST, "cannot write");
    TNF_TRY(open_temp(f, 0600, e));
    int old = tnf_fs_open(f->target,
                          O_RDONLY | O_NONBLOCK | O_NOCTTY | (f->no_link ? O_NOFOLLOW : 0), 0);
    tnf_keep_rights(f->fd, old, &st); /* the new file gets the permissions of the old one */
    if (old >= 0)
        close(old);
    return TNF_OK;
}

static const tnf_sink_ops file_ops = {
    .version = TNF_SINK_OPS_VERSION,
    .write = file_write,
    .commit = file_commit,
    .abort = file_abort,
};

/* When are holes worthwhile? They save writing zeros, but scatter the writes of a disk that must be
 * waited for. So they only pay for few bytes among many zeros. In memory they cost nothing. */
static unsigned hole_worth(const struct file *f, bool memory)
{
    if (!f->own_fd || f->direct)
        return TNF_HOLES_NEVER;
    return f->sync && !memory ? 8 : TNF_HOLES_ALWAYS;
}

static bool is_memory(const struct file *f)
{
#ifdef __linux__
    struct statfs fs;
    return f->own_fd && !f->direct && fstatfs(f->fd, &fs) == 0 && fs.f_type == TMPFS;
#else
    (void)f;
    return false;
#endif
}

static tnf_status make_sink(tnf_sink **out, struct file *f, tnf_error *e)
{
    TNF_TRY(tnf_sink_new(out, &file_ops, f, &f->alloc, e));
    (*out)->fd = f->fd;
    (*out)->release = file_release;
    (*out)->in_memory = is_memory(f);
    (*out)->hole_worth = hole_worth(f, (*out)->in_memory);
    if (f->own_fd && !f->direct) /* a new file that is written from its first byte on */
        (*out)->patch = file_patch;
    return TNF_OK;
}

tnf_status tnf_sink_open(tnf_sink **out, const char *path, unsigned flags,
                         const tnf_allocator *alloc, tnf_error *e)
{
    *out = NULL;
    tnf_allocator a = tnf_allocator_or_default(alloc);
    char real[PATH_MAX]; /* if the path is a symbolic link, its target is replaced */
    if (!(flags & TNF_SINK_NO_LINK) && realpath(path, real))
        path = real;
    size_t n = strlen(path);
    struct file *f = tnf_alloc0(&a, sizeof *f);
    if (!f)
        return tnf_no_memory("a file", e);
    *f = (struct file) { .fd = -1, .own_fd = true, .alloc = a };
    f->sync = !(flags & TNF_SINK_NO_SYNC);
    f->replace = flags & TNF_SINK_REPLACE;
    f->no_link = flags & TNF_SINK_NO_LINK;
    f->target = tnf_alloc(&a, n + 1);
    f->temp = f->target ? tnf_alloc(&a, n + TNF_TEMP_MORE) : NULL;
    tnf_status status = TNF_OK;
    if (!f->temp) {
        status = tnf_no_memory("a path", e);
        tnf_free(&a, f->target, n + 1);
        f->target = NULL;
    } else {
        memcpy(f->target, path, n + 1);
        status = open_target(f, e);
    }
    if (status == TNF_OK)
        status = make_sink(out, f, e);
    if (status != TNF_OK) {
        if (f->fd >= 0)
            file_abort(f);
        file_release(f);
    }
    return status;
}

void tnf_sink_claimed(tnf_sink *s, const tnf_claim *claim)
{
    if (s->ops.write == file_write)
        ((struct file *)s->ctx)->claim = claim;
}

void tnf_sink_named(tnf_sink *s, const char *path)
{
    ((struct file *)s->ctx)->as = path;
}

tnf_status tnf_sink_file(tnf_sink **out, const char *path, unsigned flags, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(path, "path", e));
    TNF_TRY(tnf_check_flags(flags, TNF_SINK_REPLACE | TNF_SINK_NO_SYNC, "flags", e));
    return tnf_sink_open(out, path, flags, NULL, e);
}

tnf_status tnf_sink_fd(tnf_sink **out, int fd, tnf_error *e)
{
    *out = NULL;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    struct file *f = tnf_alloc(&a, sizeof *f);
    if (!f)
        return tnf_no_memory("a descriptor", e);
    *f = (struct file) { .fd = fd, .direct = true, .alloc = a };
    tnf_status status = make_sink(out, f, e);
    if (status != TNF_OK)
        file_release(f);
    return status;
}
