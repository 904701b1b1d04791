/* SPDX-License-Identifier: MIT */
/* Directories as containers: each regular file in the tree is a member.
 *
 *   directory/         members, sorted by the bytes of their names
 *     a.bin            "a.bin"
 *     sub/b.bin        "sub/b.bin"
 *     link -> a.bin    "link": listed, and opened if the rule for paths allows it
 *     pipe             "pipe": listed, so that a reader that needs it gets the reason why it fails
 *
 * Listing opens only directories, and never through a link. A member is opened when it is placed,
 * by the rule for paths. At most MOST_OPEN files are kept open; others are opened again for each
 * read.
 */
#include "base/buf.h"
#include "base/error.h"
#include "container/path.h"
#include "container/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEPTH 64u
#define MOST_OPEN 128u

/* A member that was placed. */
typedef struct opened {
    const struct folder_state *folder;
    tnf_str name;
    tnf_source *source;
    tnf_stamp stamp;
    int fd; /* -1: not kept open */
} opened;

typedef struct folder_state {
    tnf_container_state all;
    const char *path, *model;
    opened **opened; /* one for each member; NULL: not placed yet */
    size_t n, kept;
} folder_state;

/* ----------------------------------------------------------------- listing */

typedef struct listing {
    const char *path, *model;
    tnf_members members;
    tnf_buf name; /* of the current entry */
} listing;

/* For messages: the path of the current entry below the directory, or that of the directory. */
static tnf_str current_path(const listing *l)
{
    return l->name.n ? (tnf_str) { (const char *)l->name.p, l->name.n }
                     : (tnf_str) { l->path, strlen(l->path) };
}

/* The size of the file that a link leads to by the rule for paths; if the rule forbids it, reading
 * it reports why. */
static uint64_t linked_size(const listing *l, tnf_str name)
{
    struct stat st = { 0 };
    int fd;
    if (tnf_path_open(&fd, l->path, name, l->model, NULL) != TNF_OK)
        return 0;
    if (fstat(fd, &st) != 0)
        st.st_size = 0;
    close(fd);
    return (uint64_t)st.st_size;
}

static tnf_status add_file(listing *l, const struct stat *st, tnf_error *e)
{
    tnf_str name = { (const char *)l->name.p, l->name.n };
    uint64_t size = 0;
    if (S_ISREG(st->st_mode))
        size = (uint64_t)st->st_size;
    else if (S_ISLNK(st->st_mode))
        size = linked_size(l, name);
    return tnf_members_add(&l->members, name, size, e);
}

static tnf_status list_folder(listing *l, int fd, unsigned depth, tnf_error *e);

static tnf_status list_entry(listing *l, int fd, const char *name, unsigned depth, tnf_error *e)
{
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) /* it may have disappeared meanwhile */
        return errno == ENOENT ? TNF_OK
                               : tnf_fail_sys(e, errno, "cannot get the status of %s",
                                              TNF_QUOTED(current_path(l)));
    if (!S_ISDIR(st.st_mode))
        return add_file(l, &st, e);
    int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0)
        return tnf_fail_sys(e, errno, "cannot open the directory %s", TNF_QUOTED(current_path(l)));
    tnf_buf_put(&l->name, "/", 1);
    return list_folder(l, below, depth + 1, e);
}

/* Closes fd. */
static tnf_status list_folder(listing *l, int fd, unsigned depth, tnf_error *e)
{
    DIR *dir = depth < MAX_DEPTH ? fdopendir(fd) : NULL;
    if (!dir) {
        int why = errno;
        close(fd);
        return depth < MAX_DEPTH ? tnf_fail_sys(e, why, "cannot open the directory %s",
                                                TNF_QUOTED(current_path(l)))
                                 : tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                                            "the directory %s is more than %u levels deep",
                                            TNF_QUOTED(current_path(l)), MAX_DEPTH);
    }
    const struct dirent *entry;
    size_t before = l->name.n;
    tnf_status status = TNF_OK;
    for (errno = 0; status == TNF_OK && (entry = readdir(dir)); errno = 0) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        tnf_buf_put(&l->name, entry->d_name, strlen(entry->d_name));
        status = tnf_buf_status(&l->name, "the path", e);
        if (status == TNF_OK)
            status = list_entry(l, dirfd(dir), entry->d_name, depth, e);
        l->name.n = before;
    }
    if (status == TNF_OK && errno)
        status = tnf_fail_sys(e, errno, "cannot read the directory %s",
                              TNF_QUOTED(current_path(l)));
    closedir(dir);
    return status;
}

/* ----------------------------------------------------------------- placing */

static tnf_status has_changed(tnf_str name, tnf_error *e)
{
    return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET, "the file %s was changed since it was listed",
                    TNF_QUOTED(name));
}

/* Reads a member that is not kept open: it must be unchanged. */
static tnf_status reopen_and_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const opened *o = ctx;
    struct stat st;
    size_t got = 0;
    int fd;
    TNF_TRY(tnf_path_open(&fd, o->folder->path, o->name, o->folder->model, e));
    tnf_stamp now = { 0 };
    if (fstat(fd, &st) == 0)
        now = tnf_stamp_of(&st);
    tnf_status status = tnf_same_stamp(&now, &o->stamp)
                            ? tnf_fs_read_at(fd, dst, n, offset, &got, e)
                            : has_changed(o->name, e);
    close(fd);
    return status == TNF_OK && got < n ? has_changed(o->name, e) : status;
}

static const tnf_source_ops reopen_ops = { .version = TNF_SOURCE_OPS_VERSION,
                                           .read_at = reopen_and_read };

/* Closes fd, or keeps it. */
static tnf_status make_source(folder_state *f, opened *o, int fd, tnf_error *e)
{
    const tnf_allocator *alloc = &f->all.arena->alloc;
    tnf_status status;
    if (f->kept < MOST_OPEN) {
        status = tnf_source_fd(&o->source, fd, TNF_ACCESS_AUTO, e);
    } else {
        status = tnf_source_new(&o->source, &reopen_ops, o, o->stamp.size, alloc, e);
        if (status == TNF_OK)
            o->source->map_why = "the directory has too many files to keep all of them open";
    }
    if (status == TNF_OK && f->kept < MOST_OPEN) {
        o->fd = fd;
        f->kept++;
        return TNF_OK;
    }
    close(fd);
    return status;
}

static tnf_status open_member(folder_state *f, size_t i, tnf_error *e)
{
    const tnf_container_member *m = &f->all.members[i];
    struct stat st;
    int fd;
    opened *o = tnf_arena_alloc(f->all.arena, sizeof *o);
    if (!o)
        return tnf_arena_fail(f->all.arena, "a file", e);
    TNF_TRY(tnf_path_open(&fd, f->path, m->name, f->model, e));
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != m->size) {
        close(fd);
        return has_changed(m->name, e);
    }
    *o = (opened) { .folder = f, .name = m->name, .stamp = tnf_stamp_of(&st), .fd = -1 };
    TNF_TRY(make_source(f, o, fd, e));
    f->opened[i] = o;
    return TNF_OK;
}

static tnf_status place_file(tnf_member_place *out, const tnf_container_state *s, size_t i,
                             tnf_error *e)
{
    folder_state *f = (folder_state *)(uintptr_t)s;
    if (!f->opened[i]) {
        tnf_status status = open_member(f, i, e);
        if (status != TNF_OK) {
            const char *name = f->all.members[i].name.p;
            tnf_error_prefix(e, TNF_VISIBLE(name));
            return status;
        }
    }
    *out = (tnf_member_place) { .source = f->opened[i]->source,
                                .stored = f->all.members[i].size,
                                .codec = TNF_CODEC_RAW };
    return TNF_OK;
}

static tnf_status fetch_file(const tnf_container_state *s, size_t i, uint64_t offset, void *dst,
                             size_t n, tnf_error *e)
{
    const folder_state *f = (const folder_state *)(const void *)s;
    const tnf_container_member *m = &s->members[i];
    struct stat st;
    size_t got = 0;
    int fd;
    TNF_TRY(tnf_path_open(&fd, f->path, m->name, f->model, e));
    tnf_status status = fstat(fd, &st) == 0 && (uint64_t)st.st_size == m->size
                            ? tnf_fs_read_at(fd, dst, n, offset, &got, e)
                            : has_changed(m->name, e);
    close(fd);
    return status == TNF_OK && got < n ? has_changed(m->name, e) : status;
}

static void close_folder(tnf_container_state *s)
{
    folder_state *f = (folder_state *)(void *)s;
    for (size_t i = 0; i < f->n; i++) {
        if (!f->opened[i])
            continue;
        tnf_source_close(f->opened[i]->source);
        if (f->opened[i]->fd >= 0)
            close(f->opened[i]->fd);
    }
}

static tnf_status begin_folder(tnf_container *out, listing *l, tnf_error *e)
{
    tnf_arena *arena = l->members.how->arena;
    size_t n = 0;
    folder_state *f = tnf_arena_alloc(arena, sizeof *f);
    tnf_container_member *members = f ? tnf_members_sorted(&l->members, &n) : NULL;
    opened **all = members ? tnf_arena_array(arena, n, sizeof(opened *)) : NULL;
    const char *path = all ? tnf_arena_str(arena, l->path, strlen(l->path)) : NULL;
    const char *model = path && l->model ? tnf_arena_str(arena, l->model, strlen(l->model)) : NULL;
    if (!path || (l->model && !model))
        return tnf_arena_fail(arena, "a directory", e);
    *f = (folder_state) {
        .all = { .arena = arena, .place = place_file, .fetch = fetch_file, .close = close_folder },
        .path = path,
        .model = model,
        .opened = all,
        .n = n
    };
    return tnf_container_begin(out, members, n, &f->all, e);
}

tnf_status tnf_container_folder(tnf_container *out, const char *path, const char *model,
                                const tnf_container_how *how, tnf_error *e)
{
    *out = (tnf_container) { 0 };
    listing l = { .members.how = how, .path = path[0] ? path : ".", .model = model };
    int fd = tnf_fs_open(l.path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return tnf_fail_sys(e, errno, "cannot open the directory");
    tnf_buf_init(&l.members.list, &how->arena->alloc, how->arena->limit);
    tnf_buf_init(&l.name, &how->arena->alloc, (uint64_t)MAX_DEPTH * 256);
    tnf_status status = list_folder(&l, fd, 0, e);
    if (status == TNF_OK)
        status = begin_folder(out, &l, e);
    tnf_buf_free(&l.members.list);
    tnf_buf_free(&l.name);
    return status;
}
