/* SPDX-License-Identifier: MIT */
#include "container/path.h"

#include "base/error.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_NAME  4000u
#define MAX_DEPTH 64u
#define MAX_LINKS 16u

/* Directories are only opened to look names up in them: they need not be readable. */
#ifdef O_PATH
#define FOLDER (O_PATH | O_DIRECTORY)
#else
#define FOLDER (O_RDONLY | O_DIRECTORY)
#endif

/* ------------------------------------------------------------------- names */

/* On some systems "C:" means another place, even in the middle of a path. */
static bool has_drive(tnf_str path)
{
    for (size_t i = 0; i + 1 < path.n; i++) {
        char letter = tnf_lower_case(path.p[i]);
        if (path.p[i + 1] == ':' && letter >= 'a' && letter <= 'z' &&
            (i == 0 || path.p[i - 1] == '/'))
            return true;
    }
    return false;
}

tnf_status tnf_path_check(tnf_str name, tnf_error *e)
{
    return name.n <= MAX_NAME && tnf_path_is_inside(name) && !has_drive(name)
               ? TNF_OK
               : tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                          "the file name %s is invalid, or points outside the model's directory",
                          TNF_QUOTED(name));
}

/* For "../../blobs/HASH" with exactly `up` steps up: the hash; else NULL. */
static const char *hub_blob(const char *target, unsigned up)
{
    static const char blobs[] = "blobs/";
    for (; up > 0; up--, target += 3)
        if (strncmp(target, "../", 3) != 0)
            return NULL;
    if (strncmp(target, blobs, sizeof blobs - 1) != 0)
        return NULL;
    target += sizeof blobs - 1;
    size_t n = strspn(target, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_");
    return n > 0 && target[n] == 0 ? target : NULL;
}

/* Is the file that names others a link into the blobs of a hub's cache? */
static bool in_hub(const char *model)
{
    char target[PATH_MAX];
    ssize_t n = model ? readlink(model, target, sizeof target - 1) : -1;
    if (n <= 0)
        return false;
    target[n] = 0;
    for (unsigned up = 2; up <= MAX_DEPTH; up++)
        if (hub_blob(target, up))
            return true;
    return false;
}

/* ----------------------------------------------------------------- walking */

typedef struct walk {
    int folders[MAX_DEPTH]; /* open directories, from the first one down to the current one */
    unsigned depth;         /* number of directories below the first */
    char left[2 * PATH_MAX];
    unsigned links;
    const char *model;
    const char *first; /* path of the first directory */
} walk;

static tnf_status lead_out(tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                    "a link leads out of the model's directory, so it is not followed");
}

static tnf_status open_failed(tnf_error *e)
{
    return tnf_fail_sys(e, errno, "cannot open");
}

/* Opens a regular file in this directory; other kinds of files are not touched. */
static tnf_status open_last(int *fd, int folder, const char *name, tnf_error *e)
{
    struct stat st;
    *fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0)
        return open_failed(e);
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
        return TNF_OK;
    close(*fd);
    *fd = -1;
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "is not a regular file");
}

static tnf_status open_blob(int *fd, const walk *w, const char *hash, tnf_error *e)
{
    int blobs = openat(w->folders[0], "../../blobs", FOLDER | O_NOFOLLOW | O_CLOEXEC);
    if (blobs < 0)
        return open_failed(e);
    tnf_status status = open_last(fd, blobs, hash, e);
    close(blobs);
    return status;
}

/* If an absolute target is below the first directory, returns the rest of its path, and the walk
 * begins again there; else NULL. */
static const char *below_root(walk *w, const char *target)
{
    char root[PATH_MAX];
    size_t n = realpath(w->first, root) ? strlen(root) : 0;
    if (n == 0 || strncmp(target, root, n) != 0 || target[n] != '/')
        return NULL;
    while (w->depth > 0)
        close(w->folders[w->depth--]);
    return target + n + 1;
}

/* Continues with the target of the link `name`. *fd is set if that is a blob of a hub's cache. */
static tnf_status follow_link(int *fd, walk *w, const char *name, tnf_error *e)
{
    char target[PATH_MAX], rest[2 * PATH_MAX];
    ssize_t n = readlinkat(w->folders[w->depth], name, target, sizeof target - 1);
    if (n < 0)
        return open_failed(e);
    target[n] = 0;
    const char *hash = w->left[0] ? NULL : hub_blob(target, w->depth + 2);
    if (hash && in_hub(w->model))
        return open_blob(fd, w, hash, e);
    if (++w->links > MAX_LINKS)
        return tnf_fail_sys(e, ELOOP, "cannot open");
    const char *next = target;
    if (target[0] == '/' && !(next = below_root(w, target)))
        return lead_out(e);
    int room = snprintf(rest, sizeof rest, "%s%s%s", next, w->left[0] ? "/" : "", w->left);
    if (room < 0 || (size_t)room >= sizeof rest)
        return tnf_fail_sys(e, ENAMETOOLONG, "cannot open");
    memcpy(w->left, rest, (size_t)room + 1);
    return TNF_OK;
}

/* Removes the first component of the remaining path. */
static void next_part(char part[NAME_MAX + 1], walk *w, bool *fits)
{
    size_t n = strcspn(w->left, "/"), skip = strspn(w->left + n, "/");
    *fits = n <= NAME_MAX;
    snprintf(part, NAME_MAX + 1, "%.*s", (int)(n <= NAME_MAX ? n : NAME_MAX), w->left);
    memmove(w->left, w->left + n + skip, strlen(w->left + n + skip) + 1);
}

static tnf_status go_down(walk *w, const char *part, tnf_error *e)
{
    if (w->depth + 1 >= MAX_DEPTH)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a path has more than %u components",
                        MAX_DEPTH);
    int fd = openat(w->folders[w->depth], part, FOLDER | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return open_failed(e);
    w->folders[++w->depth] = fd;
    return TNF_OK;
}

static tnf_status step_into(int *fd, walk *w, tnf_error *e)
{
    char part[NAME_MAX + 1];
    struct stat st;
    bool fits;
    next_part(part, w, &fits);
    if (!fits)
        return tnf_fail_sys(e, ENAMETOOLONG, "cannot open");
    if (part[0] == 0 || strcmp(part, ".") == 0) /* possible in the target of a link */
        return TNF_OK;
    if (strcmp(part, "..") == 0) {
        if (w->depth == 0)
            return lead_out(e);
        close(w->folders[w->depth--]);
        return TNF_OK;
    }
    if (fstatat(w->folders[w->depth], part, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return open_failed(e);
    if (S_ISLNK(st.st_mode))
        return follow_link(fd, w, part, e);
    if (S_ISDIR(st.st_mode))
        return w->left[0] ? go_down(w, part, e)
                          : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "is a directory");
    if (w->left[0])
        return tnf_fail_sys(e, ENOTDIR, "cannot open");
    return S_ISREG(st.st_mode) ? open_last(fd, w->folders[w->depth], part, e)
                               : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "is not a regular file");
}

tnf_status tnf_path_open(int *fd, const char *folder, tnf_str name, const char *model, tnf_error *e)
{
    walk w = { .model = model, .first = folder[0] ? folder : "." };
    tnf_status status = TNF_OK;
    *fd = -1;
    TNF_TRY(tnf_path_check(name, e));
    memcpy(w.left, name.p, name.n);
    w.left[name.n] = 0;
    w.folders[0] = tnf_fs_open(w.first, FOLDER, 0);
    if (w.folders[0] < 0)
        return open_failed(e);
    while (*fd < 0 && status == TNF_OK)
        status = w.left[0] ? step_into(fd, &w, e)
                           : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "is a directory");
    for (unsigned i = 0; i <= w.depth; i++)
        close(w.folders[i]);
    return status;
}
