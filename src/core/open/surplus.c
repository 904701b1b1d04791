/* SPDX-License-Identifier: MIT */
/* Files in the directory of a model that do not belong to it, but that programs may take for a part
 * of it. */
#include "core/open/directory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is it the file of the whole model: "model.safetensors" next to "model.safetensors.index.json",
 * "model.fp16.safetensors" next to "model.safetensors.index.fp16.json"? */
static bool is_whole(const tnf_file *file, const char *name)
{
    const char *stem = file->stem ? file->stem : "", *dot = strrchr(name, '.');
    const char *suffix = file->format->index_suffix;
    size_t n = strlen(name), m = strlen(stem), end = dot ? strlen(dot) : 0;
    size_t index = suffix ? (size_t)(strrchr(suffix, '.') - suffix) : 0; /* of ".index" */
    if (index == 0 || m != n + index)
        return false;
    if (memcmp(stem, name, n) == 0 && memcmp(stem + n, suffix, index) == 0)
        return true;
    const char *variant = strrchr(stem, '.');
    size_t v = variant ? strlen(variant) : 0;
    if (!dot || !variant || n <= v + end || memcmp(variant - index, suffix, index) != 0)
        return false;
    size_t base = n - v - end; /* NAME[.VARIANT].EXT and NAME.EXT.index[.VARIANT] */
    return memcmp(stem, name, base) == 0 && memcmp(stem + base, dot, end) == 0 &&
           memcmp(name + base, variant, v) == 0;
}

/* The extensions of the shards, sorted: a loader that globs them picks up such files, too. */
struct extensions {
    char (*items)[16];
    size_t n;
};

static int by_extension(const void *a, const void *b)
{
    return strcmp(a, b);
}

static tnf_status find_extensions(struct extensions *x, const tnf_file *file, tnf_arena *arena,
                                  tnf_error *e)
{
    x->items = tnf_arena_array(arena, tnf_sibling_count(file) + 1, sizeof *x->items);
    if (!x->items)
        return tnf_arena_fail(arena, "names of files", e);
    for (const struct sibling *s = file->siblings; s; s = s->next)
        tnf_extension(x->items[x->n++], s->name);
    qsort(x->items, x->n, sizeof *x->items, by_extension);
    return TNF_OK;
}

static bool is_like_shards(const struct extensions *x, const char *name)
{
    char ext[16];
    tnf_extension(ext, name);
    return x->n == 0 || bsearch(ext, x->items, x->n, sizeof *x->items, by_extension);
}

/* A file next to the shards that is not a shard. */
struct extra {
    tnf_str name;
    bool named; /* by another index */
};

struct extras {
    struct extra *items;
    size_t n, room;
};

static int by_name(const void *a, const void *b)
{
    return tnf_str_compare(((const struct extra *)a)->name, ((const struct extra *)b)->name);
}

static tnf_status add_extra(struct extras *x, const char *name, tnf_arena *arena, tnf_error *e)
{
    struct extra *more = tnf_arena_grow(arena, x->items, x->n, &x->room, sizeof *more, 16);
    if (!more)
        return tnf_arena_fail(arena, "names of files", e);
    x->items = more;
    size_t n = strlen(name);
    x->items[x->n].name = (tnf_str) { tnf_arena_str(arena, name, n), n };
    return x->items[x->n++].name.p ? TNF_OK : tnf_arena_fail(arena, "a file's name", e);
}

/* Finds in a directory files that do not belong to this model, and indexes. */
static tnf_status find_extras(struct extras *files, struct extras *indexes, DIR *dir,
                              const tnf_file *file, tnf_arena *arena, tnf_error *e)
{
    struct extensions like = { 0 };
    TNF_TRY(find_extensions(&like, file, arena, e));
    for (const struct dirent *d; (d = readdir(dir)) != NULL;) {
        const char *name = d->d_name;
        if (name[0] == '.')
            continue;
        bool variant;
        if (tnf_index_format(name, &variant))
            TNF_TRY(add_extra(indexes, name, arena, e));
        else if (tnf_is_tensor_file(name) && is_like_shards(&like, name) &&
                 !tnf_sibling_named(file, name))
            TNF_TRY(add_extra(files, name, arena, e));
    }
    if (files->n)
        qsort(files->items, files->n, sizeof *files->items, by_name);
    return TNF_OK;
}

static void mark_named(void *ctx, tnf_str name)
{
    const struct extras *x = ctx;
    struct extra key = { name, false };
    struct extra *known = bsearch(&key, x->items, x->n, sizeof key, by_name);
    if (known)
        known->named = true;
}

/* Reads the text of another index in the directory; NULL if it cannot be read. */
static tnf_status read_index(tnf_str *out, const tnf_file *file, const char *name, tnf_arena *arena,
                             tnf_error *e)
{
    size_t n = strlen(file->directory), size = n + strlen(name) + 2;
    bool slash = n > 0 && file->directory[n - 1] != '/';
    char *path = tnf_arena_alloc(arena, size), *text = NULL;
    tnf_source *source;
    if (!path)
        return tnf_arena_fail(arena, "a path", e);
    snprintf(path, size, "%s%s%s", file->directory, slash ? "/" : "", name);
    tnf_status status = tnf_source_open(&source, path, TNF_ACCESS_PREAD, &file->alloc, e);
    if (status != TNF_OK)
        return status == TNF_ENOMEM ? status : TNF_OK;
    size = source->size <= file->options.limits.header_bytes ? (size_t)source->size : 0;
    text = tnf_arena_alloc(arena, size + 1);
    if (!text)
        status = tnf_arena_fail(arena, "an index", e);
    else if (tnf_source_read(source, 0, text, size, NULL) == TNF_OK)
        *out = (tnf_str) { text, size };
    tnf_source_close(source);
    return status;
}

/* Files that another index names belong to the model of that index. */
static tnf_status mark_indexed_files(struct extras *x, const tnf_file *file, const char *name,
                                     tnf_arena *arena, tnf_error *e)
{
    bool variant;
    tnf_str text = { NULL, 0 };
    const tnf_format *f = tnf_index_format(name, &variant);
    if (!f || !f->index_names)
        return TNF_OK;
    TNF_TRY(read_index(&text, file, name, arena, e));
    return text.p ? f->index_names(text, file->options.limits.depth, arena, mark_named, x, e)
                  : TNF_OK;
}

/* A file named like a part of the model is a problem; any other file may be intended. */
static void tell_extra(const tnf_file *file, tnf_str name, tnf_tell tell, tnf_tell warn, void *ctx)
{
    tnf_error odd = { .offset = TNF_NO_OFFSET };
    bool whole = is_whole(file, name.p);
    (void)tnf_fail(&odd, TNF_EFORMAT, TNF_NO_OFFSET,
                   "%s is next to the shards, but the index does not name it: programs that %s",
                   TNF_QUOTED(name),
                   whole ? "look for one file would load it instead"
                         : "take every file would load it, too");
    (whole || tnf_is_shard_name(name.p) ? tell : warn)(ctx, &odd, (tnf_str) { NULL, 0 });
}

tnf_status tnf_directory_surplus(const tnf_file *file, tnf_arena *arena, tnf_tell tell,
                                 tnf_tell warn, void *ctx, tnf_error *e)
{
    struct extras files = { 0 }, indexes = { 0 };
    if (!file->directory || !file->format->stands_for_shards || file->source->remote)
        return TNF_OK;
    DIR *dir = opendir(*file->directory ? file->directory : ".");
    if (!dir)
        return tnf_fail_sys(e, errno, "cannot read the directory");
    tnf_status status = find_extras(&files, &indexes, dir, file, arena, e);
    closedir(dir);
    TNF_TRY(status);
    for (size_t i = 0; i < indexes.n && files.n; i++)
        TNF_TRY(mark_indexed_files(&files, file, indexes.items[i].name.p, arena, e));
    for (size_t i = 0; i < files.n; i++)
        if (!files.items[i].named)
            tell_extra(file, files.items[i].name, tell, warn, ctx);
    return TNF_OK;
}
