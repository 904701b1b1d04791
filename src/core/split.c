/* SPDX-License-Identifier: MIT */
/* One model in several files.
 *
 *   tensors   a  b  c  d  e            in order, each file filled until the next does not fit
 *   files    [a  b][c][d  e]           model-00001-of-00003.zt …
 *   index                              model.zt: which tensor is where
 *
 * A new directory is filled under another name and then renamed. In one that is there all files are
 * written, and on the disk, before the first appears under its name; the index comes last, so that
 * it never names a file that is not there, and what is replaced is put aside until then, to be put
 * back if anything fails. Nothing is waited for between the first name and the last. */
#include "core/lower.h"
#include <tenfold/shards.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_OPEN 256u /* files that are written but not in place: each has a descriptor */

struct shard {
    const char *name, *path;
    tnf_str label;
    size_t first, tensors; /* in `order` */
    uint64_t bytes;
    tnf_sink *sink; /* written, not in place */
    bool placed;
    char *aside; /* where the file that was there is; NULL: there was none */
};

struct splitting {
    const tnf_builder *b;
    tnf_split_options options;
    tnf_save_options save;
    const tnf_format *format;
    const tnf_format *own_index; /* who writes an index of such files; NULL: nobody */
    const tnf_format *index;     /* the same, if there is to be one */
    const char *directory, *stem;
    tnf_arena arena;
    uint32_t *shard_of; /* of each tensor */
    uint32_t *order;    /* all tensors, those of the first shard first */
    struct shard *shards;
    size_t n;
    struct shard root; /* the index */
    const char *final; /* the directory that is asked for, while it has another name */
    uint64_t done, total;
};

/* -------------------------------------------------------------- who where */

/* How large the tensor will be. */
static uint64_t size_of(const struct splitting *s, const tnf_object *o)
{
    uint64_t sum = 0;
    const tnf_type *to = s->save.dtype ? tnf_type_named(s->save.dtype) : NULL;
    if (to && o->layout == &tnf_layout_dense && o->nparts == 1 &&
        o->parts->type->number == TNF_NUMBER_FLOAT && o->parts->type->bits >= 8 &&
        tnf_type_bytes(&sum, to, tnf_elements(o)))
        return sum;
    sum = 0;
    for (uint16_t i = 0; i < o->nparts; i++)
        if (!tnf_ckd_add(&sum, sum, o->parts[i].nbytes))
            return UINT64_MAX;
    return sum;
}

/* As Hugging Face does it: a tensor beyond the limit gets a file at once, while the one that is
 * being filled stays open and is numbered when it is full. */
static tnf_status fill(struct splitting *s, const uint32_t *shared, const uint64_t *bytes,
                       tnf_error *e)
{
    size_t n = s->b->catalog.n, groups = 0, open = SIZE_MAX;
    uint64_t max = s->options.max_bytes ? s->options.max_bytes : UINT64_MAX, filled = 0;
    uint32_t *number = tnf_arena_array(&s->arena, n + 1, sizeof *number); /* of each group */
    if (!number)
        return tnf_arena_fail(&s->arena, "splitting", e);
    for (size_t i = 0; i < n; i++) {
        if (shared && shared[i]) {
            s->shard_of[i] = s->shard_of[shared[i] - 1];
            continue;
        }
        if (bytes[i] > max) {
            number[groups] = (uint32_t)s->n++;
            s->shard_of[i] = (uint32_t)groups++;
            continue;
        }
        if (open == SIZE_MAX || bytes[i] > max - filled) {
            if (open != SIZE_MAX)
                number[open] = (uint32_t)s->n++;
            open = groups++;
            filled = 0;
        }
        s->shard_of[i] = (uint32_t)open;
        filled += bytes[i];
    }
    if (open != SIZE_MAX || s->n == 0)
        number[open == SIZE_MAX ? 0 : open] = (uint32_t)s->n++;
    for (size_t i = 0; i < n; i++)
        s->shard_of[i] = number[s->shard_of[i]];
    return TNF_OK;
}

/* By counting: the tensors of a shard keep their order. */
static tnf_status sort(struct splitting *s, tnf_error *e)
{
    size_t n = s->b->catalog.n, first = 0;
    size_t *next = tnf_arena_array(&s->arena, s->n, sizeof *next);
    s->order = tnf_arena_array(&s->arena, n, sizeof *s->order);
    if (!next || !s->order)
        return tnf_arena_fail(&s->arena, "splitting", e);
    for (size_t i = 0; i < s->n; i++) {
        s->shards[i].first = next[i] = first;
        first += s->shards[i].tensors;
    }
    for (size_t i = 0; i < n; i++)
        s->order[next[s->shard_of[i]]++] = (uint32_t)i;
    return TNF_OK;
}

static tnf_status assign(struct splitting *s, tnf_error *e)
{
    const tnf_catalog *c = &s->b->catalog;
    const uint32_t *shared;
    uint64_t *bytes = tnf_arena_array(&s->arena, c->n, sizeof *bytes); /* of those tied together */
    s->shard_of = tnf_arena_array(&s->arena, c->n, sizeof *s->shard_of);
    if (!bytes || !s->shard_of)
        return tnf_arena_fail(&s->arena, "splitting", e);
    TNF_TRY(tnf_find_shared(&shared, c, &s->arena, e));
    for (size_t i = 0; i < c->n; i++) {
        uint64_t *sum = &bytes[shared && shared[i] ? shared[i] - 1 : i];
        if (!tnf_ckd_add(sum, *sum, size_of(s, &c->objects[i])))
            *sum = UINT64_MAX;
    }
    TNF_TRY(fill(s, shared, bytes, e));
    if (!(s->shards = tnf_arena_array(&s->arena, s->n, sizeof *s->shards)))
        return tnf_arena_fail(&s->arena, "splitting", e);
    for (size_t i = 0; i < c->n; i++) {
        struct shard *shard = &s->shards[s->shard_of[i]];
        shard->tensors++;
        shard->bytes += size_of(s, &c->objects[i]);
        s->total += size_of(s, &c->objects[i]);
    }
    return sort(s, e);
}

/* ------------------------------------------------------------------- names */

static tnf_status name_file(struct splitting *s, struct shard *shard, const char *end, tnf_error *e)
{
    size_t stem = strlen(s->stem), n = stem + shard->label.n + strlen(end) + 3;
    size_t path = strlen(s->directory) + n + 2;
    char *name = tnf_arena_alloc(&s->arena, n), *all = tnf_arena_alloc(&s->arena, path);
    if (!name || !all)
        return tnf_arena_fail(&s->arena, "a name", e);
    snprintf(name, n, "%s%s%.*s%s", s->stem, shard->label.n ? "-" : "", (int)shard->label.n,
             shard->label.n ? shard->label.p : "", end);
    snprintf(all, path, "%s/%s", s->directory, name);
    shard->name = name;
    shard->path = all;
    return TNF_OK;
}

/* ".zt": the first of its extensions. */
static const char *extension(const struct splitting *s, char out[32])
{
    size_t n = s->format->extensions ? strcspn(s->format->extensions, " ") : 0;
    snprintf(out, 32, "%s%.*s", n ? "." : "", (int)n, n ? s->format->extensions : "");
    return out;
}

static tnf_status name_all(struct splitting *s, tnf_error *e)
{
    char end[32];
    extension(s, end);
    for (size_t i = 0; i < s->n; i++) {
        if (s->n > 1) {
            char *label = tnf_arena_alloc(&s->arena, 32);
            if (!label)
                return tnf_arena_fail(&s->arena, "a name", e);
            s->shards[i].label.n = (size_t)snprintf(label, 32, "%05zu-of-%05zu", i + 1, s->n);
            s->shards[i].label.p = label;
        }
        TNF_TRY(name_file(s, &s->shards[i], end, e));
    }
    return s->own_index ? name_file(s, &s->root, s->own_index->index_name, e) : TNF_OK;
}

static tnf_status check_absent(const struct splitting *s, const struct shard *shard, tnf_error *e)
{
    struct stat st;
    if (s->save.replace || lstat(shard->path, &st) != 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "%s exists already", shard->name);
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

/* With an index, the first file has all attributes, the others only text maps, which readers of
 * single files look for; without one, each file stands for itself. */
static tnf_status add_attributes(const struct splitting *s, tnf_builder *to, size_t i, tnf_error *e)
{
    const tnf_catalog *c = &s->b->catalog;
    for (size_t k = 0; k < c->attrs.n; k++) {
        const tnf_member *m = &c->attrs.members[k];
        if (i == 0 || !s->index || tnf_is_text_map(m))
            TNF_TRY(tnf_attrs_set(&to->catalog.attrs, m->key.p, m->key.n, m->value, e));
    }
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
        unsigned again = found ? TNF_NAMES_LATER_FOUND : TNF_NAMES_FIRST_FOUND;
        TNF_TRY(tnf_catalog_add(&to->catalog, o, again | TNF_BORROWED, e));
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

/* Everything is written and flushed, but the sink is put in place later. As the index of shards, if
 * there are any. */
static tnf_status save_held(const struct splitting *s, const tnf_builder *b, tnf_sink *sink,
                            const tnf_shard *shards, tnf_error *e)
{
    tnf_save_options how = s->save;
    tnf_status (*commit)(void *ctx, tnf_error *error) = sink->ops.commit;
    how.plan = NULL; /* told already */
    how.progress = how.progress && !shards ? on_progress : NULL;
    how.ctx = (void *)(uintptr_t)s;
    sink->ops.commit = NULL;
    tnf_status status = shards ? tnf_save_index(b, sink, &how, s->index, shards, s->n, e)
                               : tnf_save_sink(b, sink, &how, e);
    sink->ops.commit = commit;
    sink->done = false;
    return status;
}

static tnf_status open_sink(const struct splitting *s, struct shard *shard, tnf_error *e)
{
    bool later = s->n <= MOST_OPEN; /* sync_held() */
    unsigned flags = (s->save.replace ? TNF_SINK_REPLACE : 0u) |
                     (s->save.no_sync || later ? TNF_SINK_NO_SYNC : 0u);
    return tnf_sink_open(&shard->sink, shard->path, flags, &s->b->alloc, e);
}

static tnf_status sync_held(const struct splitting *s, const struct shard *shard, tnf_error *e)
{
    if (s->save.no_sync || s->n > MOST_OPEN || shard->sink->fd < 0 || fsync(shard->sink->fd) == 0)
        return TNF_OK;
    return tnf_fail_sys(e, errno, "cannot sync the file");
}

/* What has a name that a new file will have gets another; without it the old model is not there, so
 * the index goes first. */
static tnf_status put_aside(struct splitting *s, struct shard *shard, tnf_error *e)
{
    size_t n = strlen(shard->path) + TNF_TEMP_MORE;
    if (!s->save.replace || shard->aside || s->final)
        return TNF_OK;
    char *aside = tnf_arena_alloc(&s->arena, n);
    if (!aside)
        return tnf_arena_fail(&s->arena, "a name", e);
    (void)tnf_temp_name(aside, n, shard->path, 0);
    if (rename(shard->path, aside) == 0)
        shard->aside = aside;
    else if (errno != ENOENT)
        return tnf_fail_sys(e, errno, "cannot put the old %s aside", shard->name);
    return TNF_OK;
}

static tnf_status place(struct splitting *s, struct shard *shard, tnf_error *e)
{
    TNF_TRY(put_aside(s, shard, e));
    tnf_status status = tnf_sink_commit(shard->sink, e);
    shard->placed = shard->sink->done;
    tnf_sink_close(shard->sink);
    shard->sink = NULL;
    return status;
}

static tnf_status write_shard(struct splitting *s, size_t i, tnf_error *e)
{
    struct shard *shard = &s->shards[i];
    tnf_builder *b;
    TNF_TRY(tnf_builder_new(&b, &s->b->alloc, e));
    tnf_status status = add_attributes(s, b, i, e);
    if (status == TNF_OK)
        status = add_tensors(s, b, i, e);
    if (status == TNF_OK)
        status = open_sink(s, shard, e);
    if (status == TNF_OK)
        status = save_held(s, b, shard->sink, NULL, e);
    if (status == TNF_OK)
        status = sync_held(s, shard, e);
    tnf_builder_free(b);
    s->done += shard->bytes;
    if (status == TNF_OK && s->n > MOST_OPEN)
        status = place(s, shard, e);
    if (status != TNF_OK)
        tnf_error_prefix(e, shard->name);
    return status;
}

/* ------------------------------------------------------------------- index */

/* Those that are not in place are opened by their descriptors. */
static tnf_status open_shards(const struct splitting *s, tnf_shard *out, tnf_error *e)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct shard *shard = &s->shards[i];
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

/* One that is not there is made under another name. */
static tnf_status make_directory(struct splitting *s, tnf_error *e)
{
    struct stat st;
    size_t n = strlen(s->directory);
    if (stat(s->directory, &st) == 0)
        return S_ISDIR(st.st_mode) ? TNF_OK
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
        return tnf_fail_sys(e, errno, "cannot make the directory");
    s->directory = now;
    s->final = final;
    return name_all(s, e);
}

static tnf_status place_directory(struct splitting *s, tnf_error *e)
{
    if (!s->save.no_sync)
        TNF_TRY(tnf_sync_directory_of(s->shards[0].path, e));
    if (!s->final)
        return TNF_OK;
    if (rename(s->directory, s->final) != 0)
        return tnf_fail_sys(e, errno, "cannot put the directory in place");
    s->directory = s->final;
    s->final = NULL;
    return s->save.no_sync ? TNF_OK : tnf_sync_directory_of(s->directory, e);
}

static tnf_status place_all(struct splitting *s, tnf_error *e)
{
    bool is_root = s->own_index && strcmp(s->root.path, s->shards->path) == 0;
    if (s->own_index && !is_root) /* an old one stands for others, even if none is needed now */
        TNF_TRY(put_aside(s, &s->root, e));
    for (size_t i = 0; i < s->n; i++)
        if (!s->shards[i].placed)
            TNF_TRY(place(s, &s->shards[i], e));
    return TNF_OK;
}

static tnf_status write_all(struct splitting *s, tnf_error *e)
{
    bool held = s->n <= MOST_OPEN && access("/proc/self/fd", F_OK) == 0;
    TNF_TRY(make_directory(s, e));
    if (s->index && s->n > MOST_OPEN)
        TNF_TRY(put_aside(s, &s->root, e));
    for (size_t i = 0; i < s->n; i++)
        TNF_TRY(write_shard(s, i, e));
    if (s->index && held)
        TNF_TRY(write_index(s, e));
    TNF_TRY(place_all(s, e));
    if (s->index && !held)
        TNF_TRY(write_index(s, e));
    if (s->index)
        TNF_TRY(place(s, &s->root, e));
    return place_directory(s, e);
}

static void clean_one(struct shard *shard, bool failed)
{
    tnf_sink_close(shard->sink);
    if (failed && shard->placed)
        unlink(shard->path);
    if (failed && shard->aside)
        (void)!rename(shard->aside, shard->path);
    else if (shard->aside)
        unlink(shard->aside);
}

/* After a failure nothing is left of it, and what was there is there. */
static void clean(struct splitting *s, bool failed)
{
    for (size_t i = 0; i < s->n; i++)
        clean_one(&s->shards[i], failed);
    clean_one(&s->root, failed);
    if (s->final)
        rmdir(s->directory);
}

/* A family may have its index in a format of its own. */
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

static tnf_status split(struct splitting *s, tnf_error *e)
{
    tnf_save_options plan = s->save;
    plan.dry_run = true;
    TNF_TRY(assign(s, e));
    s->own_index = index_of(s->format);
    s->index = s->n > 1 ? s->own_index : NULL;
    TNF_TRY(name_all(s, e));
    TNF_TRY(tnf_save(s->b, s->stem, &plan, e));
    tell_files(s);
    TNF_TRY(check_all_absent(s, e));
    if (s->save.dry_run)
        return TNF_OK;
    tnf_status status = write_all(s, e);
    clean(s, status != TNF_OK);
    return status;
}

static tnf_status start(struct splitting *s, const tnf_split_options *options, tnf_error *e)
{
    if (options)
        memcpy(&s->options, options,
               options->size && options->size < sizeof s->options ? options->size
                                                                  : sizeof s->options);
    const tnf_save_options *save = s->options.save;
    if (save)
        memcpy(&s->save, save,
               save->size && save->size < sizeof s->save ? save->size : sizeof s->save);
    s->stem = s->options.stem ? s->options.stem : "model";
    if (!s->options.format)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "say which format");
    if (!*s->stem || strchr(s->stem, '/'))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "'%s' cannot begin the name of a file",
                        s->stem);
    s->format = tnf_registry_find(s->options.format);
    if (!s->format)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no format '%s'",
                        s->options.format);
    s->save.format = s->format->name;
    s->save.size = sizeof s->save;
    return TNF_OK;
}

tnf_status tnf_split(const tnf_builder *b, const char *directory, const tnf_split_options *options,
                     tnf_error *e)
{
    struct splitting s = { .b = b, .directory = directory };
    TNF_TRY(start(&s, options, e));
    tnf_arena_init(&s.arena, &b->alloc, UINT64_MAX);
    tnf_status status = split(&s, e);
    tnf_arena_free(&s.arena);
    return status;
}
