/* SPDX-License-Identifier: MIT */
/* The model in a directory: its index of shards, or else its only tensor file. */
#include "core/open/directory.h"

#include "core/open/pointer_file.h"
#include "remote/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct found {
    char *name; /* in the arena */
    size_t count;
};

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

/* The default name that writers give to an index: preferred to all others. */
static bool is_usual_index(const char *name)
{
    const char stem[] = "model";
    if (strncmp(name, stem, sizeof stem - 1) != 0)
        return false;
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        if (f->stands_for_shards && f->index_name &&
            strcmp(name + sizeof stem - 1, f->index_name) == 0)
            return true;
    }
    return false;
}

/* Is it the name of an index of this format ("model.EXT.index.json"), or of a variant of the model
 * ("model.EXT.index.fp16.json")? */
static bool is_index_of(const tnf_format *f, const char *name, bool *variant)
{
    const char *suffix = f->index_suffix, *ext = suffix ? strrchr(suffix, '.') : NULL;
    *variant = false;
    if (!ext || has_suffix(name, suffix))
        return ext != NULL;
    size_t n = strlen(name), end = strlen(ext), index = (size_t)(ext - suffix);
    if (!has_suffix(name, ext))
        return false;
    const char *dot = name + n - end;
    while (dot > name && *--dot != '.')
        ;
    size_t head = (size_t)(dot - name);
    *variant = head + 1 < n - end && head > index && memcmp(dot - index, suffix, index) == 0;
    return *variant;
}

const tnf_format *tnf_index_format(const char *name, bool *variant)
{
    for (size_t i = 0; tnf_registry_at(i); i++)
        if (is_index_of(tnf_registry_at(i), name, variant))
            return tnf_registry_at(i);
    return NULL;
}

/* The usual end of the names of indexes; NULL: this build has no format with an index. */
static const char *usual_suffix(void)
{
    const tnf_format *f;
    for (size_t i = 0; (f = tnf_registry_at(i)) != NULL; i++)
        if (f->index_suffix)
            return f->index_suffix;
    return NULL;
}

bool tnf_is_tensor_file(const char *name)
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

static tnf_status note_index(struct found *f, const char *name, tnf_arena *arena, tnf_error *e)
{
    bool usual = is_usual_index(name);
    f->count = usual ? 1 : f->count + 1;
    if (f->name && !usual)
        return TNF_OK;
    f->name = tnf_arena_str(arena, name, strlen(name));
    return f->name ? TNF_OK : tnf_arena_fail(arena, "a file's name", e);
}

bool tnf_is_shard_name(const char *name)
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

/* The first shard (its number is 1) of a format that opens a set by its first file. */
static bool is_first(const char *name)
{
    char ext[16];
    const char *dot = strrchr(name, '.');
    tnf_extension(ext, name);
    if (!tnf_is_shard_name(name) || strncmp(dot - (sizeof "00001-of-ddddd" - 1), "00001", 5) != 0)
        return false;
    for (size_t i = 0; tnf_registry_at(i); i++)
        if (tnf_registry_at(i)->opens_sets && tnf_list_has(tnf_registry_at(i)->extensions, ext))
            return true;
    return false;
}

/* The kinds of files, in order of preference. A file next to shards is the one that represents
 * them. */
enum { INDEX, VARIANT, WHOLE, SHARD, KINDS };

/* The content of a directory, classified. */
struct looking {
    struct found found[KINDS];
    tnf_arena *arena;
    bool favoured;
    const tnf_format *choice; /* the format whose text file chooses a file; NULL: none */
    size_t others;            /* files that the text file cannot choose */
};

static tnf_status classify_name(void *ctx, const char *name, tnf_error *e)
{
    struct looking *l = ctx;
    if (name[0] == '.')
        return TNF_OK;
    l->choice = l->choice ? l->choice : tnf_choice_format(name);
    bool variant;
    if (tnf_index_format(name, &variant)) {
        if (variant)
            return note_index(&l->found[VARIANT], name, l->arena, e);
        tnf_status status = l->favoured ? TNF_OK : note_index(&l->found[INDEX], name, l->arena, e);
        l->favoured = l->favoured || is_usual_index(name);
        return status;
    }
    bool part = tnf_is_shard_name(name) && !is_first(name);
    l->others += tnf_is_tensor_file(name) && !tnf_choice_covers(name);
    return tnf_is_tensor_file(name) ? note_index(&l->found[part ? SHARD : WHOLE], name, l->arena, e)
                                    : TNF_OK;
}

static tnf_status classify_all(DIR *dir, struct looking *l, tnf_error *e)
{
    for (const struct dirent *d; (d = readdir(dir)) != NULL;)
        TNF_TRY(classify_name(l, d->d_name, e));
    return TNF_OK;
}

/* Makes DIRECTORY/name, or the URL of it. */
static tnf_status join_path(char **out, tnf_arena *arena, const char *path, const char *name,
                            tnf_error *e)
{
    size_t n = strlen(path), m = strlen(name);
    bool remote = tnf_is_remote(path);
    *out = remote ? tnf_remote_join(arena, path, name) : tnf_arena_alloc(arena, n + m + 2);
    if (!*out)
        return tnf_arena_fail(arena, "a path", e);
    if (remote)
        return TNF_OK;
    memcpy(*out, path, n);
    (*out)[n] = '/';
    memcpy(*out + n + 1, name, m);
    return TNF_OK;
}

static tnf_status choose_model(char **out, const struct looking *l, const char *path, tnf_error *e)
{
    const struct found *f = l->found;
    while (f < &l->found[SHARD] && f->count == 0)
        f++;
    const char *suffix = usual_suffix();
    if (f->count == 0)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                        suffix ? "the directory contains no index (*%s) and no tensor file"
                               : "the directory contains no tensor file",
                        suffix);
    if (f->count > 1)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the directory contains %zu %s: open one of them", f->count,
                        f < &l->found[WHOLE] ? "indexes" : "tensor files and no index");
    return join_path(out, l->arena, path, f->name, e);
}

/* The path of a regular file of that name; NULL if there is none. */
static char *regular_file(const char *path, size_t n, const char *end, tnf_arena *arena)
{
    struct stat st;
    size_t m = strlen(end);
    char *name = tnf_arena_alloc(arena, n + m + 1);
    if (!name)
        return NULL;
    memcpy(name, path, n);
    memcpy(name + n, end, m);
    return stat(name, &st) == 0 && S_ISREG(st.st_mode) ? name : NULL;
}

/* Does a text file choose the file to open, and are all files of its format? */
static bool has_choice(const struct looking *l)
{
    return l->choice && l->others + l->found[INDEX].count + l->found[VARIANT].count == 0;
}

/* Looks for a file at the place inside a directory that a format uses. */
static bool find_place(char **out, const char *path, tnf_arena *arena)
{
    char end[64];
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const char *inside = tnf_registry_at(i)->inside;
        if (!inside)
            continue;
        snprintf(end, sizeof end, "/%s", inside);
        *out = regular_file(path, strlen(path), end, arena);
        if (*out)
            return true;
    }
    return false;
}

/* The length of a path without that suffix, in which # stands for any digit; 0 if it does not end
 * so. */
static size_t stem_before(const char *path, size_t n, const char *suffix)
{
    size_t m = strlen(suffix);
    if (n <= m)
        return 0;
    for (size_t i = 0; i < m; i++) {
        char c = path[n - m + i];
        if (suffix[i] == '#' ? c < '0' || c > '9' : c != suffix[i])
            return 0;
    }
    return n - m;
}

const char *tnf_file_to_open(const char *path, tnf_arena *arena)
{
    struct stat st;
    size_t n = strlen(path);
    bool there = n == 0 || stat(path, &st) == 0;
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        size_t stem = f->suffix && f->data_suffix ? stem_before(path, n, f->data_suffix) : 0;
        const char *found = NULL;
        if (stem > 0)
            found = regular_file(path, stem, f->suffix, arena);
        else if (f->suffix && !there)
            found = regular_file(path, n, f->suffix, arena);
        if (found)
            return found;
    }
    return path;
}

tnf_status tnf_directory_model(char **out, const char *path, tnf_arena *arena, tnf_error *e)
{
    if (tnf_folder_mark(out, path, arena))
        return TNF_OK;
    DIR *dir = opendir(path);
    if (!dir)
        return tnf_fail_sys(e, errno, "cannot read the directory");
    struct looking l = { .arena = arena };
    tnf_status status = classify_all(dir, &l, e);
    closedir(dir);
    TNF_TRY(status);
    bool none = true;
    for (size_t i = 0; i < KINDS; i++)
        none = none && l.found[i].count == 0;
    char *chosen = NULL;
    if (has_choice(&l))
        TNF_TRY(tnf_choice_local(&chosen, l.choice, path, arena, e));
    if (chosen)
        return join_path(out, arena, path, chosen, e);
    if (none && find_place(out, path, arena))
        return TNF_OK;
    if (none)
        TNF_TRY(tnf_name_folders(path, arena, e));
    if (none)
        TNF_TRY(tnf_unknown_folder(path, e));
    return choose_model(out, &l, path, e);
}

/* Is there a file at DIRECTORY/name? */
static tnf_status is_at_url(bool *there, struct looking *l, const char *url, const char *name,
                            const tnf_url_options *how, tnf_error *e)
{
    char *path;
    tnf_source *source;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    *there = false;
    TNF_TRY(join_path(&path, l->arena, url, name, e));
    tnf_status status = tnf_remote_open(&source, path, how, NULL, &why);
    tnf_source_close(source);
    *there = status == TNF_OK;
    if (status != TNF_OK && status != TNF_ENOTFOUND && e)
        *e = why;
    return status == TNF_ENOTFOUND ? TNF_OK : status;
}

static tnf_status try_name(struct looking *l, const char *url, const char *name,
                           const tnf_url_options *how, tnf_error *e)
{
    bool there;
    TNF_TRY(is_at_url(&there, l, url, name, how, e));
    return there ? classify_name(l, name, e) : TNF_OK;
}

/* Looks for the conventional names of formats that stand for shards, and of their shards. */
static tnf_status try_usual_names(struct looking *l, const char *url, const tnf_url_options *how,
                                  tnf_error *e)
{
    char name[64];
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        if (!f->stands_for_shards || !f->index_name)
            continue;
        snprintf(name, sizeof name, "model%s", f->index_name);
        TNF_TRY(try_name(l, url, name, how, e));
        size_t n = strlen(name), end = f->index_suffix ? strlen(f->index_suffix) : n;
        if (l->found[INDEX].count || n <= end)
            continue;
        name[n - end] = 0; /* model.EXT next to model.EXT.index.json */
        TNF_TRY(try_name(l, url, name, how, e));
    }
    return TNF_OK;
}

/* The listing of a remote directory; in addition to models, it looks for the files that mark a
 * format. */
struct remote_looking {
    struct looking all;
    size_t rank;      /* rank of the mark that was found; SIZE_MAX: none */
    const char *mark; /* of the format */
    size_t n;
    const char *inside; /* path of a format's file in the directory; NULL: none */
};

static void look_for_mark(struct remote_looking *f, const char *name)
{
    size_t rank = 0, length = strlen(name);
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *format = tnf_registry_at(i);
        const char *mark = format->folder_marks;
        for (size_t n; mark && *mark; mark += n + (mark[n] == ' '), rank++) {
            n = strcspn(mark, " ");
            if (rank >= f->rank || n != length || memcmp(mark, name, n) != 0)
                continue;
            f->rank = rank;
            f->mark = mark;
            f->n = n;
        }
        if (format->inside && !f->inside && strcmp(format->inside, name) == 0)
            f->inside = format->inside;
    }
}

static tnf_status take_remote_name(void *ctx, const char *name, tnf_error *e)
{
    struct remote_looking *f = ctx;
    look_for_mark(f, name);
    return classify_name(&f->all, name, e);
}

/* Looks for the places that formats use in a directory; those not in the listing are requested. */
static tnf_status try_places(struct remote_looking *f, const char *url, bool listed,
                             const tnf_url_options *how, tnf_error *e)
{
    for (size_t i = 0; tnf_registry_at(i) && !f->inside; i++) {
        const char *inside = tnf_registry_at(i)->inside;
        bool there;
        if (!inside || (listed && !strchr(inside, '/')))
            continue;
        TNF_TRY(is_at_url(&there, &f->all, url, inside, how, e));
        f->inside = there ? inside : NULL;
    }
    return TNF_OK;
}

tnf_status tnf_remote_model(char **out, const char *url, const tnf_url_options *how,
                            tnf_arena *arena, tnf_error *e)
{
    struct remote_looking f = { .all = { .arena = arena }, .rank = SIZE_MAX };
    const struct found *found = f.all.found;
    bool listed = false;
    TNF_TRY(tnf_remote_names(url, how, &listed, take_remote_name, &f, e));
    if (f.rank != SIZE_MAX) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)f.n, f.mark);
        return join_path(out, arena, url, name, e);
    }
    if (!listed)
        TNF_TRY(try_usual_names(&f.all, url, how, e));
    char *chosen = NULL;
    if (has_choice(&f.all))
        TNF_TRY(tnf_choice_remote(&chosen, f.all.choice, url, how, arena, e));
    if (chosen)
        return join_path(out, arena, url, chosen, e);
    if (found[INDEX].count + found[VARIANT].count + found[WHOLE].count + found[SHARD].count == 0) {
        TNF_TRY(try_places(&f, url, listed, how, e));
        if (f.inside)
            return join_path(out, arena, url, f.inside, e);
        if (!listed)
            return tnf_fail(
                e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                "there is no model with a usual name here, and http cannot list directories: "
                "give the URL of the file");
    }
    return choose_model(out, &f.all, url, e);
}
