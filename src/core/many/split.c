/* SPDX-License-Identifier: MIT */
/* One model in several files.
 *
 *   tensors   a  b  c  d  e            in order, each file filled until the next does not fit
 *   files    [a  b][c][d  e]           model-00001-of-00003.zt …
 *   index                              model.zt: which tensor is where
 *
 * split_plan.c assigns tensors to files. Writing:
 *
 *   a new directory         is filled under another name, synced, renamed
 *   an existing directory   all files are written, and on the disk, before one gets its name; then
 *                             the old index is renamed      sync
 *                             old files are renamed         sync
 *                             the new files in place        sync
 *                             the new index in place        sync, and the old files are removed
 *
 * So an index never names a file that does not exist. If anything fails, everything is undone. */
#include "core/many/split.h"
#include "core/save/through.h"

#include "base/sized.h"
#include "io/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENT 60000u /* milliseconds */

static tnf_status check_absent(const struct splitting *s, const struct split_shard *shard,
                               tnf_error *e)
{
    struct stat st;
    if (s->save.replace || lstat(shard->path, &st) != 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "%s already exists", shard->name);
}

static tnf_status check_all_absent(const struct splitting *s, tnf_error *e)
{
    for (size_t i = 0; i < s->n; i++)
        TNF_TRY(check_absent(s, &s->shards[i], e));
    return s->index ? check_absent(s, &s->root, e) : TNF_OK;
}

static void tell_files(const struct splitting *s)
{
    if (!s->options.file)
        return;
    for (size_t i = 0; i < s->n; i++)
        s->options.file(s->options.ctx, &(tnf_split_file) { s->shards[i].name, s->shards[i].tensors,
                                                            s->shards[i].bytes, false });
    if (s->index)
        s->options.file(s->options.ctx,
                        &(tnf_split_file) { s->root.name, s->b->catalog.n, s->total, true });
}

/* ------------------------------------------------------------------ content */

/* With an index, the first file has all attributes; the others have only text maps, which readers
 * of single files look for. Without an index, each file is a model of its own, unless the format
 * marks each file as a part of the set. */
static tnf_status add_attributes(const struct splitting *s, tnf_builder *to, size_t i, tnf_error *e)
{
    const tnf_catalog *c = &s->b->catalog;
    bool set = s->format->shard_attrs && s->n > 1;
    for (size_t k = 0; k < c->attrs.n; k++) {
        const tnf_member *m = &c->attrs.members[k];
        if (i == 0 || (!s->index && !set) || (!set && tnf_is_text_map(m)))
            TNF_TRY(tnf_attrs_set(&to->catalog.attrs, m->key.p, m->key.n, m->value, e));
    }
    if (set)
        TNF_TRY(s->format->shard_attrs(&to->catalog.attrs, c, i, s->n, e));
    for (size_t k = 0; i == 0 && k < c->nextras; k++)
        TNF_TRY(tnf_builder_add_extra(to, &c->extras[k], e));
    return TNF_OK;
}

static tnf_status add_tensors(const struct splitting *s, tnf_builder *to, size_t i, tnf_error *e)
{
    const tnf_catalog *c = &s->b->catalog;
    const uint32_t *mine = s->order + s->shards[i].first;
    for (size_t k = 0; k < s->shards[i].tensors; k++) {
        const tnf_object *o = &c->objects[mine[k]];
        bool found = tnf_catalog_find(c, o->name.p, o->name.n) == o;
        unsigned policy = found ? TNF_NAMES_LATER_FOUND : TNF_NAMES_FIRST_FOUND;
        TNF_TRY(tnf_catalog_add(&to->catalog, o, policy | TNF_BORROWED, e));
    }
    return TNF_OK;
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    const struct splitting *s = ctx;
    uint64_t all = s->done + done;
    (void)total;
    return s->save.progress(s->save.ctx, all < s->total ? all : s->total, s->total);
}

/* Passes on only late items, since the plan was reported already. */
static void on_late(void *ctx, const tnf_plan_item *item)
{
    const struct splitting *s = ctx;
    if (item->late)
        s->save.plan(s->save.ctx, item);
}

/* Saves everything to the sink, which is put in place later. If there are shards, saves their
 * index. */
static tnf_status save_held(const struct splitting *s, const tnf_builder *b, tnf_sink *sink,
                            const tnf_shard *shards, tnf_error *e)
{
    tnf_save_options how = s->save;
    tnf_status (*commit)(void *ctx, tnf_error *error) = sink->ops.commit;
    how.plan = how.plan ? on_late : NULL;
    how.progress = how.progress && !shards ? on_progress : NULL;
    how.ctx = (void *)(uintptr_t)s;
    sink->ops.commit = NULL;
    tnf_status status = shards ? tnf_save_index(b, sink, &how, s->index, shards, s->n, e)
                               : tnf_save_sink(b, sink, &how, e);
    sink->ops.commit = commit;
    sink->done = false;
    return status;
}

static tnf_status open_sink(const struct splitting *s, struct split_shard *shard, tnf_error *e)
{
    bool later = s->n <= MOST_OPEN; /* sync_held() */
    unsigned flags = (s->save.replace ? TNF_SINK_REPLACE : 0u) |
                     (s->save.no_sync || later ? TNF_SINK_NO_SYNC : 0u);
    return tnf_sink_open(&shard->sink, shard->path, flags, &s->b->alloc, e);
}

static tnf_status sync_held(const struct splitting *s, const struct split_shard *shard,
                            tnf_error *e)
{
    if (s->save.no_sync || s->n > MOST_OPEN || shard->sink->fd < 0)
        return TNF_OK;
    return tnf_fs_sync(shard->sink->fd, e);
}

/* Renames an old file, since a new file will get its name. If another program changes the old file
 * after this, its change is replaced, too, like an earlier change. */
static tnf_status put_aside(struct splitting *s, struct split_shard *shard, tnf_error *e)
{
    size_t n = strlen(shard->path) + TNF_TEMP_MORE;
    tnf_claim claim;
    char *aside = tnf_arena_alloc(&s->arena, n);
    if (!aside)
        return tnf_arena_fail(&s->arena, "a name", e);
    (void)tnf_temp_name(aside, n, shard->path, 0);
    TNF_TRY(tnf_claim_take(&claim, shard->path, NULL, e));
    tnf_status status = TNF_OK;
    if (rename(shard->path, aside) == 0)
        shard->aside = aside;
    else if (errno != ENOENT)
        status = tnf_fail_sys(e, errno, "cannot rename the old %s", shard->name);
    tnf_claim_drop(&claim);
    return status;
}

/* Makes names durable before the next step. */
static tnf_status sync_step(const struct splitting *s, tnf_error *e)
{
    return s->save.no_sync ? TNF_OK : tnf_sync_directory_of(s->shards[0].path, e);
}

/* Begins with the index, so that an index on the disk never names missing files. An old index is
 * renamed even if no new one is written, since it belongs to other files. */
static tnf_status put_all_aside(struct splitting *s, tnf_error *e)
{
    bool any = false, is_root = s->own_index && strcmp(s->root.path, s->shards->path) == 0;
    if (!s->save.replace || s->final || s->cleared)
        return TNF_OK;
    s->cleared = true;
    if (s->own_index && !is_root)
        TNF_TRY(put_aside(s, &s->root, e));
    if (s->root.aside)
        TNF_TRY(sync_step(s, e));
    for (size_t i = 0; i < s->n; i++) {
        TNF_TRY(put_aside(s, &s->shards[i], e));
        any = any || s->shards[i].aside;
    }
    return any ? sync_step(s, e) : TNF_OK;
}

static tnf_status place_shard(struct splitting *s, struct split_shard *shard, tnf_error *e)
{
    tnf_error why; /* needed even if the caller passed no error */
    tnf_status status = tnf_sink_commit(shard->sink, &why);
    if (status == TNF_EUNSYNCED) { /* reported when everything is in place */
        s->unsynced = true;
        s->why = why;
        status = TNF_OK;
    }
    shard->placed = shard->sink->done;
    tnf_sink_close(shard->sink);
    shard->sink = NULL;
    if (status != TNF_OK && e)
        *e = why;
    return status;
}

/* Adds the content of one of the files. */
static tnf_status fill_shard(const struct splitting *s, tnf_builder *b, size_t i, tnf_error *e)
{
    TNF_TRY(add_attributes(s, b, i, e));
    return add_tensors(s, b, i, e);
}

static tnf_status write_shard(struct splitting *s, size_t i, tnf_error *e)
{
    struct split_shard *shard = &s->shards[i];
    tnf_builder *b;
    TNF_TRY(tnf_builder_new(&b, &s->b->alloc, e));
    tnf_status status = fill_shard(s, b, i, e);
    if (status == TNF_OK)
        status = open_sink(s, shard, e);
    if (status == TNF_OK)
        status = save_held(s, b, shard->sink, NULL, e);
    if (status == TNF_OK)
        status = sync_held(s, shard, e);
    tnf_builder_free(b);
    s->done += shard->bytes;
    if (status == TNF_OK && s->n > MOST_OPEN)
        status = place_shard(s, shard, e);
    if (status != TNF_OK)
        tnf_error_prefix(e, shard->name);
    return status;
}

/* ------------------------------------------------------------------- index */

/* Files that are not in place yet are opened through their descriptors. */
static tnf_status open_shards(const struct splitting *s, tnf_shard *out, tnf_error *e)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct split_shard *shard = &s->shards[i];
        char held[64];
        tnf_open_options how = { .size = sizeof how,
                                 .format = s->format->name,
                                 .allocator = s->b->alloc };
        snprintf(held, sizeof held, "/proc/self/fd/%d", shard->sink ? shard->sink->fd : -1);
        out[i].name = shard->name;
        out[i].label = shard->label;
        TNF_TRY(tnf_open(&out[i].file, shard->placed ? shard->path : held, &how, e));
    }
    return TNF_OK;
}

static tnf_status write_index(struct splitting *s, tnf_error *e)
{
    tnf_shard *shards = tnf_arena_array(&s->arena, s->n, sizeof *shards);
    if (!shards)
        return tnf_arena_fail(&s->arena, "the index", e);
    tnf_status status = open_shards(s, shards, e);
    if (status == TNF_OK)
        status = open_sink(s, &s->root, e);
    if (status == TNF_OK)
        status = save_held(s, s->b, s->root.sink, shards, e);
    if (status == TNF_OK)
        status = sync_held(s, &s->root, e);
    for (size_t i = 0; i < s->n; i++)
        tnf_close(shards[i].file);
    return status;
}

/* ------------------------------------------------------------------- whole */

static tnf_status hold_directory(struct splitting *s, tnf_error *e)
{
    s->held = tnf_fs_open(s->directory, O_RDONLY | O_DIRECTORY, 0);
    if (s->held < 0)
        return TNF_OK; /* an unreadable directory cannot be locked */
    tnf_status status = tnf_lock_whole(s->held, PATIENT, NULL, NULL, e);
    return status == TNF_EUNSUPPORTED ? TNF_OK : status;
}

/* A directory that does not exist is made under another name. */
static tnf_status make_directory(struct splitting *s, tnf_error *e)
{
    struct stat st;
    size_t n = strlen(s->directory);
    if (stat(s->directory, &st) == 0)
        return S_ISDIR(st.st_mode) ? hold_directory(s, e)
                                   : tnf_fail_sys(e, ENOTDIR, "cannot write to the directory");
    while (n > 1 && s->directory[n - 1] == '/')
        n--;
    char *final = tnf_arena_alloc(&s->arena, n + 1),
         *now = tnf_arena_alloc(&s->arena, n + TNF_TEMP_MORE);
    if (!final || !now)
        return tnf_arena_fail(&s->arena, "a name", e);
    snprintf(final, n + 1, "%s", s->directory);
    (void)tnf_temp_name(now, n + TNF_TEMP_MORE, final, 0);
    if (mkdir(now, 0777) != 0)
        return tnf_fail_sys(e, errno, "cannot create the directory");
    s->directory = now;
    s->final = final;
    return tnf_split_name(s, e);
}

/* Syncs the names when everything is in place. */
static tnf_status sync_names(struct splitting *s, const char *path, tnf_error *e)
{
    if (s->save.no_sync)
        return TNF_OK;
    TNF_TRY(tnf_sync_placed(path, e));
    if (s->unsynced && e)
        *e = s->why;
    return s->unsynced ? TNF_EUNSYNCED : TNF_OK;
}

static tnf_status place_directory(struct splitting *s, tnf_error *e)
{
    if (!s->final)
        return sync_names(s, s->shards[0].path, e);
    if (!s->save.no_sync)
        TNF_TRY(tnf_sync_directory_of(s->shards[0].path, e));
    if (rename(s->directory, s->final) != 0)
        return tnf_fail_sys(e, errno, "cannot give the new directory its name");
    s->directory = s->final;
    s->final = NULL;
    return sync_names(s, s->directory, e);
}

static tnf_status place_all(struct splitting *s, tnf_error *e)
{
    TNF_TRY(put_all_aside(s, e));
    for (size_t i = 0; i < s->n; i++)
        if (!s->shards[i].placed)
            TNF_TRY(place_shard(s, &s->shards[i], e));
    return s->index ? sync_step(s, e) : TNF_OK;
}

static tnf_status write_all(struct splitting *s, tnf_error *e)
{
    bool held = s->n <= MOST_OPEN && access("/proc/self/fd", F_OK) == 0;
    TNF_TRY(make_directory(s, e));
    if (s->n > MOST_OPEN)
        TNF_TRY(put_all_aside(s, e));
    for (size_t i = 0; i < s->n; i++)
        TNF_TRY(write_shard(s, i, e));
    if (s->index && held)
        TNF_TRY(write_index(s, e));
    TNF_TRY(place_all(s, e));
    if (s->index && !held)
        TNF_TRY(write_index(s, e));
    if (s->index)
        TNF_TRY(place_shard(s, &s->root, e));
    return place_directory(s, e);
}

static void tell_stray(const struct splitting *s, tnf_stray what, const char *path,
                       const struct split_shard *of)
{
    if (s->options.stray)
        s->options.stray(s->options.ctx, what, path, of ? of->path : NULL);
}

static void remove_file(const struct splitting *s, const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT && unlink(path) != 0)
        tell_stray(s, TNF_STRAY_JUNK, path, NULL);
}

/* False if an old file could not get its name back. */
static bool undo_one(const struct splitting *s, const struct split_shard *shard)
{
    if (!shard->aside && shard->placed)
        remove_file(s, shard->path);
    if (!shard->aside || rename(shard->aside, shard->path) == 0 ||
        rename(shard->aside, shard->path) == 0)
        return true;
    tell_stray(s, TNF_STRAY_NOT_BACK, shard->aside, shard);
    return false;
}

static void name_lost(const struct split_shard *lost, tnf_error *e)
{
    const tnf_error why = *e;
    tnf_fail(e, why.status, TNF_NO_OFFSET,
             "%.90s; the old %.40s could not be restored and is now %.80s", why.message, lost->name,
             tnf_path_end(lost->aside));
}

/* After a failure, removes all new files and restores the old ones, the index last. If that fails,
 * the error says where they are. */
static void undo_all(const struct splitting *s, tnf_error *e)
{
    const struct split_shard *lost = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (!undo_one(s, &s->shards[i]) && !lost)
            lost = &s->shards[i];
    if (s->root.aside && !s->final)
        (void)sync_step(s, NULL);
    if (!undo_one(s, &s->root) && !lost)
        lost = &s->root;
    if (s->final && rmdir(s->directory) != 0 && rmdir(s->directory) != 0)
        tell_stray(s, TNF_STRAY_JUNK, s->directory, NULL);
    if (lost && e)
        name_lost(lost, e);
}

/* Removes replaced files, unless a power cut could still undo their replacement. */
static void forget_old(const struct splitting *s, const struct split_shard *shard, bool synced)
{
    if (shard->aside && synced)
        remove_file(s, shard->aside);
    else if (shard->aside)
        tell_stray(s, TNF_STRAY_KEPT, shard->aside, shard);
}

static void clean_up(struct splitting *s, tnf_status status, tnf_error *e)
{
    for (size_t i = 0; i < s->n; i++)
        tnf_sink_close(s->shards[i].sink);
    tnf_sink_close(s->root.sink);
    if (status != TNF_OK && status != TNF_EUNSYNCED) {
        undo_all(s, e);
    } else {
        forget_old(s, &s->root, status == TNF_OK);
        for (size_t i = 0; i < s->n; i++)
            forget_old(s, &s->shards[i], status == TNF_OK);
    }
    if (s->held >= 0)
        close(s->held);
}

/* In some families the index has a format of its own. */
static const tnf_format *index_of(const tnf_format *format)
{
    if (format->write_index)
        return format;
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        if (f->stands_for_shards && f->write_index && strcmp(f->family, format->family) == 0)
            return f;
    }
    return NULL;
}

static tnf_status plan_files(struct splitting *s, tnf_error *e)
{
    TNF_TRY(tnf_split_assign(s, e));
    s->own_index = index_of(s->format);
    s->index = s->n > 1 ? s->own_index : NULL;
    return tnf_split_name(s, e);
}

static tnf_status split_model(struct splitting *s, tnf_error *e)
{
    tnf_save_options plan = s->save;
    plan.dry_run = true;
    TNF_TRY(plan_files(s, e));
    TNF_TRY(tnf_save(s->b, s->stem, &plan, e));
    tell_files(s);
    TNF_TRY(check_all_absent(s, e));
    if (s->save.dry_run)
        return TNF_OK;
    tnf_status status = write_all(s, e);
    clean_up(s, status, e);
    return status;
}

static tnf_status start_split(struct splitting *s, const tnf_split_options *options, tnf_error *e)
{
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_split_options, &s->options, options, e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_save_options, &s->save, s->options.save, e));
    s->stem = s->options.stem ? s->options.stem : "model";
    if (!s->options.format)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the format is missing: set `format` of tnf_split_options");
    if (!*s->stem || strchr(s->stem, '/'))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "'%s' cannot begin the name of a file",
                        s->stem);
    s->format = tnf_registry_find(s->options.format);
    if (!s->format)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "unknown format '%s'", s->options.format);
    s->save.format = s->format->name;
    return TNF_OK;
}

tnf_status tnf_split(const tnf_builder *b, const char *directory, const tnf_split_options *options,
                     tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(directory, "directory", e));
    struct splitting s = { .b = b, .directory = directory, .held = -1 };
    TNF_TRY(start_split(&s, options, e));
    tnf_arena_init(&s.arena, &b->alloc, UINT64_MAX);
    tnf_status status = split_model(&s, e);
    tnf_arena_free(&s.arena);
    return status;
}

/* ------------------------------------------------------ writing one of the files */

static tnf_status through_shard(const struct splitting *s, size_t i, tnf_sink *sink, tnf_error *e)
{
    tnf_builder *b;
    TNF_TRY(tnf_builder_new(&b, &s->b->alloc, e));
    tnf_status status = fill_shard(s, b, i, e);
    if (status == TNF_OK)
        status = tnf_save_sink(b, sink, &s->save, e);
    tnf_builder_free(b);
    return status;
}

static tnf_status through_index(struct splitting *s, tnf_sink *sink, const char *const *paths,
                                tnf_error *e)
{
    tnf_shard *shards = tnf_arena_array(&s->arena, s->n, sizeof *shards);
    tnf_status status = shards ? TNF_OK : tnf_arena_fail(&s->arena, "the index", e);
    for (size_t i = 0; i < s->n && status == TNF_OK; i++) {
        tnf_open_options how = { .size = sizeof how, .format = s->format->name };
        shards[i].name = s->shards[i].name;
        shards[i].label = s->shards[i].label;
        status = tnf_open(&shards[i].file, paths[i], &how, e);
    }
    if (status == TNF_OK)
        status = tnf_save_index(s->b, sink, &s->save, s->index, shards, s->n, e);
    for (size_t i = 0; shards && i < s->n; i++)
        tnf_close(shards[i].file);
    return status;
}

tnf_status tnf_split_through(const tnf_builder *b, const char *directory, size_t number,
                             tnf_sink *sink, const char *const *shards, size_t n,
                             const tnf_split_options *options, tnf_error *e)
{
    struct splitting s = { .b = b, .directory = directory, .held = -1 };
    TNF_TRY(start_split(&s, options, e));
    tnf_arena_init(&s.arena, &b->alloc, UINT64_MAX);
    s.save.plan = NULL; /* reported when the split was planned */
    tnf_status status = plan_files(&s, e);
    if (status == TNF_OK && number < s.n)
        status = through_shard(&s, number, sink, e);
    else if (status == TNF_OK && s.index && number == s.n && n == s.n)
        status = through_index(&s, sink, shards, e);
    else if (status == TNF_OK)
        status = tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "there is no such file");
    tnf_arena_free(&s.arena);
    return status;
}
