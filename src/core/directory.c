/* SPDX-License-Identifier: MIT */
/* A directory stands for the model in it: its index of shards, or else its only tensor file. And
 * what lies in it that should not. */
#include "core/core.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_SUFFIX   ".index.json"
#define FAVOURED_INDEX "model.safetensors.index.json"

struct found {
    char *name; /* in the arena */
    size_t count;
};

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static bool readable(const char *name)
{
    char ext[16];
    tnf_extension(ext, name);
    for (size_t i = 0; *ext && tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        if (f->caps & TNF_CAN_READ && !f->stands_for_shards && tnf_list_has(f->extensions, ext))
            return true;
    }
    return false;
}

static tnf_status note(struct found *f, const char *name, tnf_arena *arena, tnf_error *e)
{
    f->count++;
    if (f->name && strcmp(name, FAVOURED_INDEX) != 0)
        return TNF_OK;
    if (strcmp(name, FAVOURED_INDEX) == 0)
        f->count = 1;
    f->name = tnf_arena_str(arena, name, strlen(name));
    return f->name ? TNF_OK : tnf_arena_fail(arena, "a file's name", e);
}

/* "model-00001-of-00002.zt": one of several. */
static bool is_shard(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char like[] = "-ddddd-of-ddddd";
    size_t n = sizeof like - 1;
    if (!dot || (size_t)(dot - name) <= n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = dot[(ptrdiff_t)i - (ptrdiff_t)n];
        if (like[i] == 'd' ? c < '0' || c > '9' : c != like[i])
            return false;
    }
    return true;
}

/* A file beside shards is the one that stands for them. */
static tnf_status look_through(DIR *dir, struct found *index, struct found *file,
                               struct found *shard, tnf_arena *arena, tnf_error *e)
{
    bool favoured = false;
    for (const struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] == '.')
            continue;
        if (has_suffix(d->d_name, INDEX_SUFFIX)) {
            if (!favoured)
                TNF_TRY(note(index, d->d_name, arena, e));
            favoured = favoured || strcmp(d->d_name, FAVOURED_INDEX) == 0;
        } else if (readable(d->d_name)) {
            TNF_TRY(note(is_shard(d->d_name) ? shard : file, d->d_name, arena, e));
        }
    }
    return TNF_OK;
}

tnf_status tnf_directory_model(char **out, const char *path, tnf_arena *arena, tnf_error *e)
{
    DIR *dir = opendir(path);
    if (!dir)
        return tnf_fail_sys(e, errno, "cannot look into the directory");
    struct found index = { 0 }, file = { 0 }, shard = { 0 };
    tnf_status status = look_through(dir, &index, &file, &shard, arena, e);
    closedir(dir);
    TNF_TRY(status);
    const struct found *f = index.count ? &index : file.count ? &file : &shard;
    if (f->count == 0)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                        "the directory holds no index (*" INDEX_SUFFIX ") and no tensor file");
    if (f->count > 1)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the directory holds %zu %s: name one",
                        f->count, index.count ? "indexes" : "tensor files and no index");
    size_t n = strlen(path), m = strlen(f->name);
    *out = tnf_arena_alloc(arena, n + m + 2);
    if (!*out)
        return tnf_arena_fail(arena, "a path", e);
    memcpy(*out, path, n);
    (*out)[n] = '/';
    memcpy(*out + n + 1, f->name, m);
    return TNF_OK;
}

/* ---------------------------------------------------------------- surplus */

static bool is_shard_of(const tnf_file *file, const char *name)
{
    for (const struct sibling *s = file->siblings; s; s = s->next)
        if (strcmp(s->name, name) == 0)
            return true;
    return false;
}

/* "model.safetensors" beside "model.safetensors.index.json". */
static bool is_whole(const tnf_file *file, const char *name)
{
    size_t n = strlen(name);
    return file->stem && strncmp(file->stem, name, n) == 0 && strcmp(file->stem + n, ".index") == 0;
}

static void tell_surplus(const tnf_file *file, const char *name, tnf_tell tell, void *ctx)
{
    tnf_error odd = { .offset = TNF_NO_OFFSET };
    tnf_str shown = { name, strlen(name) };
    (void)tnf_fail(&odd, TNF_EFORMAT, TNF_NO_OFFSET,
                   "%s lies beside the shards, but the index does not name it: programs that %s",
                   TNF_QUOTED(shown),
                   is_whole(file, name) ? "look for one file would load it instead"
                                        : "take every file would load it, too");
    tell(ctx, &odd, (tnf_str) { NULL, 0 });
}

struct name {
    struct name *next;
    const char *text;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What of a directory is named like a part of the model and is none. */
static tnf_status find_surplus(const char ***out, size_t *n, DIR *dir, const tnf_file *file,
                               tnf_arena *arena, tnf_error *e)
{
    struct name *found = NULL;
    for (const struct dirent *d; (d = readdir(dir)) != NULL;) {
        const char *name = d->d_name;
        if (!readable(name) || !(is_shard(name) || is_whole(file, name)) || is_shard_of(file, name))
            continue;
        struct name *more = tnf_arena_alloc(arena, sizeof *more);
        if (!more || !(more->text = tnf_arena_str(arena, name, strlen(name))))
            return tnf_arena_fail(arena, "a file's name", e);
        more->next = found;
        found = more;
        ++*n;
    }
    if (!(*out = tnf_arena_array(arena, *n + 1, sizeof **out)))
        return tnf_arena_fail(arena, "names of files", e);
    for (size_t i = 0; found; found = found->next)
        (*out)[i++] = found->text;
    qsort((void *)(uintptr_t)*out, *n, sizeof **out, by_name);
    return TNF_OK;
}

tnf_status tnf_directory_surplus(const tnf_file *file, tnf_arena *arena, tnf_tell tell, void *ctx,
                                 tnf_error *e)
{
    const char **names = NULL;
    size_t n = 0;
    if (!file->directory || !file->format->stands_for_shards)
        return TNF_OK;
    DIR *dir = opendir(*file->directory ? file->directory : ".");
    if (!dir)
        return tnf_fail_sys(e, errno, "cannot look into the directory");
    tnf_status status = find_surplus(&names, &n, dir, file, arena, e);
    closedir(dir);
    for (size_t i = 0; status == TNF_OK && i < n; i++)
        tell_surplus(file, names[i], tell, ctx);
    return status;
}
