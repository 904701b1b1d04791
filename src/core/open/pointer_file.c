/* SPDX-License-Identifier: MIT */
#include "core/open/pointer_file.h"

#include "container/path.h"
#include "core/core.h"
#include "remote/list.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_TEXT (1u << 20) /* the chosen file is named at the beginning */
#define NAMED    6u         /* directories that a message names */

const tnf_format *tnf_choice_format(const char *name)
{
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        if (f->choice && strcmp(f->choice, name) == 0)
            return f;
    }
    return NULL;
}

bool tnf_choice_covers(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        size_t m = f->choice && f->suffix ? strlen(f->suffix) : 0;
        if (m && n > m && strcmp(name + n - m, f->suffix) == 0)
            return true;
    }
    return false;
}

/* The chosen path in the directory. If it is absolute, only its last component is used, since
 * directories may be moved. *out is NULL if the text is something else. */
static tnf_status read_choice(char **out, const tnf_format *f, tnf_str text, tnf_arena *arena,
                              tnf_error *e)
{
    tnf_str name = { NULL, 0 };
    size_t m = strlen(f->suffix);
    char *room = tnf_arena_alloc(arena, text.n + 1);
    *out = NULL;
    if (!room)
        return tnf_arena_fail(arena, "a path", e);
    if (!f->chosen(text, room, &name))
        return TNF_OK;
    for (size_t i = name.n; name.p[0] == '/' && i-- > 0;)
        if (name.p[i] == '/') {
            name.p += i + 1;
            name.n -= i + 1;
        }
    TNF_TRY(tnf_path_check(name, e));
    *out = tnf_arena_alloc(arena, name.n + m + 1);
    if (!*out)
        return tnf_arena_fail(arena, "a path", e);
    memcpy(*out, name.p, name.n);
    memcpy(*out + name.n, f->suffix, m);
    return TNF_OK;
}

static tnf_status name_missing(const tnf_format *f, const char *name, tnf_error *e)
{
    return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                    "the file %s names %s, which does not exist: choose a checkpoint by its path",
                    f->choice, TNF_QUOTED(((tnf_str) { name, strlen(name) })));
}

static tnf_status read_source(char **name, const tnf_format *f, const tnf_source *source,
                              tnf_arena *arena, tnf_error *e)
{
    size_t n = source->size < MAX_TEXT ? (size_t)source->size : MAX_TEXT;
    char *bytes = tnf_arena_alloc(arena, n + 1);
    if (!bytes)
        return tnf_arena_fail(arena, "a path", e);
    TNF_TRY(tnf_source_read(source, 0, bytes, n, e));
    return read_choice(name, f, (tnf_str) { bytes, n }, arena, e);
}

tnf_status tnf_choice_local(char **name, const tnf_format *f, const char *path, tnf_arena *arena,
                            tnf_error *e)
{
    tnf_source *source = NULL;
    tnf_error none = { .offset = TNF_NO_OFFSET };
    size_t n = strlen(path) + strlen(f->choice) + 2;
    char *mark = tnf_arena_alloc(arena, n); /* in a hub's cache it is a link, as all files are */
    int fd;
    *name = NULL;
    if (!mark)
        return tnf_arena_fail(arena, "a path", e);
    snprintf(mark, n, "%s/%s", path, f->choice);
    if (tnf_path_open(&fd, path, (tnf_str) { f->choice, strlen(f->choice) }, mark, &none) != TNF_OK)
        return TNF_OK; /* it is a directory of that name */
    tnf_status status = tnf_source_fd(&source, fd, TNF_ACCESS_PREAD, e);
    if (status == TNF_OK)
        status = read_source(name, f, source, arena, e);
    tnf_source_close(source);
    close(fd);
    if (status != TNF_OK || !*name)
        return status;
    status = tnf_path_open(&fd, path, (tnf_str) { *name, strlen(*name) }, mark, e);
    if (status == TNF_ENOTFOUND)
        return name_missing(f, *name, e);
    TNF_TRY(status);
    close(fd);
    return TNF_OK;
}

tnf_status tnf_choice_remote(char **name, const tnf_format *f, const char *url,
                             const tnf_url_options *how, tnf_arena *arena, tnf_error *e)
{
    tnf_source *source = NULL;
    const char *path = tnf_remote_join(arena, url, f->choice);
    *name = NULL;
    if (!path)
        return tnf_arena_fail(arena, "a path", e);
    TNF_TRY(tnf_remote_open(&source, path, how, NULL, e));
    tnf_status status = read_source(name, f, source, arena, e);
    tnf_source_close(source);
    if (status != TNF_OK || !*name)
        return status;
    if (!(path = tnf_remote_join(arena, url, *name)))
        return tnf_arena_fail(arena, "a path", e);
    status = tnf_remote_open(&source, path, how, NULL, e);
    if (status == TNF_OK)
        tnf_source_close(source);
    return status == TNF_ENOTFOUND ? name_missing(f, *name, e) : status;
}

/* -------------------------------------------------------------- directories */

bool tnf_folder_mark(char **out, const char *path, tnf_arena *arena)
{
    struct stat st;
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const char *mark = tnf_registry_at(i)->folder_marks;
        for (size_t n; mark && *mark; mark += n + (mark[n] == ' ')) {
            n = strcspn(mark, " ");
            size_t room = strlen(path) + n + 2;
            *out = tnf_arena_alloc(arena, room);
            if (!*out)
                return false;
            snprintf(*out, room, "%s/%.*s", path, (int)n, mark);
            if (stat(*out, &st) == 0 && S_ISREG(st.st_mode))
                return true;
        }
    }
    return false;
}

typedef struct folder {
    char *name;
} folder;

typedef struct folders {
    folder *items;
    size_t n, capacity;
} folders;

/* Compares numbers by their value: 9 comes before 10. */
static int by_step(const void *a, const void *b)
{
    const char *x = ((const folder *)a)->name, *y = ((const folder *)b)->name;
    size_t n = strlen(x), m = strlen(y);
    bool numbers = strspn(x, "0123456789") == n && strspn(y, "0123456789") == m;
    return numbers && n != m ? (n > m) - (n < m) : strcmp(x, y);
}

static tnf_status find_folders(folders *found, DIR *dir, const char *path, tnf_arena *arena,
                               tnf_error *e)
{
    for (const struct dirent *d; (d = readdir(dir)) != NULL;) {
        size_t n = strlen(path) + strlen(d->d_name) + 2;
        char *mark, *inner = tnf_arena_alloc(arena, n);
        folder *items = tnf_arena_grow(arena, found->items, found->n, &found->capacity,
                                       sizeof *items, 16);
        if (!inner || !items)
            return tnf_arena_fail(arena, "directories", e);
        found->items = items;
        snprintf(inner, n, "%s/%s", path, d->d_name);
        if (d->d_name[0] != '.' && tnf_folder_mark(&mark, inner, arena))
            found->items[found->n++].name = inner + strlen(path) + 1;
    }
    return TNF_OK;
}

tnf_status tnf_name_folders(const char *path, tnf_arena *arena, tnf_error *e)
{
    folders found = { 0 };
    char names[256] = "";
    DIR *dir = opendir(path);
    if (!dir)
        return TNF_OK; /* the search for files will report this */
    tnf_status status = find_folders(&found, dir, path, arena, e);
    closedir(dir);
    if (status != TNF_OK || found.n == 0)
        return status;
    qsort(found.items, found.n, sizeof *found.items, by_step);
    for (size_t i = 0, at = 0; i < found.n && at < sizeof names; i++) {
        bool skipped = found.n > NAMED && i == NAMED - 1;
        i = skipped ? found.n - 1 : i; /* the newest is always shown */
        const char *name = found.items[i].name;
        int n = snprintf(names + at, sizeof names - at, "%s%s%s", i ? ", " : "",
                         skipped ? "... " : "", TNF_VISIBLE(name));
        at += n > 0 ? (size_t)n : 0;
    }
    return tnf_fail(
        e, TNF_EINVAL, TNF_NO_OFFSET,
        "the directory contains %zu director%s with a checkpoint (%s): open one of them", found.n,
        found.n == 1 ? "y" : "ies", names);
}
