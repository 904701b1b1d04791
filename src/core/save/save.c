/* SPDX-License-Identifier: MIT */
/* Saving: plan, write, commit. */
#include "core/save/save.h"
#include "container/folder_sink.h"
#include "core/read/virtual.h"
#include "core/save/through.h"
#include "remote/list.h"

#include "base/sized.h"
#include "core/read/stream.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SHARDS 64u

/* ------------------------------------------------------------------- save */

tnf_status tnf_save_format(const tnf_format **out, const tnf_builder *b, const char *path,
                           const tnf_save_options *options, tnf_error *e)
{
    const char *name = options->format;
    if (!name && !path)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the format is missing: set `format` of tnf_save_options");
    if (!name)
        return tnf_choose_format(out, b, path, options, e);
    *out = tnf_registry_find(name);
    if (!*out)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "unknown format '%s'", name);
    if (!(tnf_registry_caps(*out) & TNF_CAN_WRITE))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s can only be read", name);
    return TNF_OK;
}

tnf_status tnf_save_take(tnf_save_options *out, const tnf_save_options *given, tnf_error *e)
{
    tnf_url_options remote;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_save_options, out, given, e));
    return TNF_TAKE_OPTIONS(tnf_url_options, &remote, out->remote, e);
}

static tnf_status start_save(struct tnf_save *s, const tnf_builder *b,
                             const tnf_save_options *options, const char *path, tnf_error *e)
{
    *s = (struct tnf_save) { 0 };
    tnf_arena_init(&s->arena, &b->alloc, UINT64_MAX);
    if (path)
        tnf_extension(s->extension, path);
    TNF_TRY(tnf_save_take(&s->options, options, e));
    return tnf_save_format(&s->format, b, path, &s->options, e);
}

static void finish_save(struct tnf_save *s)
{
    tnf_plan_end(s);
    tnf_arena_free(&s->arena);
}

tnf_status tnf_save_parse(struct tnf_save *s, tnf_error *e)
{
    const tnf_save_options *o = &s->options;
    const tnf_file *like = o->like && o->like->format == s->format ? o->like : NULL;
    TNF_TRY(tnf_options_parse(&s->values, s->format->write_options, "writer", o->options,
                              o->noptions, &s->arena, e));
    if (like && s->format->follow)
        s->format->follow(&like->reader, (tnf_option_value *)(uintptr_t)s->values);
    return TNF_OK;
}

static tnf_status plan_save(struct tnf_save *s, const tnf_builder *b,
                            const tnf_option_value **values, tnf_error *e)
{
    tnf_status status = tnf_save_parse(s, e);
    *values = s->values;
    if (status == TNF_OK)
        status = tnf_plan(s, &b->catalog, e);
    if (status == TNF_OK)
        status = tnf_check_output(&s->planned, &s->arena, e);
    if (status != TNF_OK)
        tnf_error_prefix(e, s->format->name);
    return status;
}

tnf_writer tnf_save_writer(struct tnf_save *s, tnf_sink *sink, tnf_arena *scratch)
{
    return (tnf_writer) {
        .catalog = &s->planned,
        .scratch = scratch,
        .options = s->values,
        .sink = sink,
        .text = s->text.members,
        .ntext = s->text.n,
        .shards = s->shards,
        .nshards = s->nshards,
        .extension = s->extension,
        .name = s->path ? tnf_path_end(s->path) : NULL,
        .folder = s->folder,
        .save = s,
    };
}

static tnf_status run_writer(struct tnf_save *s, const tnf_option_value *values, tnf_sink *sink,
                             tnf_error *e)
{
    tnf_arena scratch;
    tnf_arena_init(&scratch, &s->arena.alloc, UINT64_MAX);
    const tnf_file *like = s->options.like;
    tnf_writer w = tnf_save_writer(s, sink, &scratch);
    w.options = values;
    w.like = like && like->format == s->format ? &like->reader : NULL;
    tnf_status status; /* by TNF_CALL, since a format may try what fails */
    if (s->index)
        TNF_CALL(status, e, s->index->write_index, &w);
    else
        TNF_CALL(status, e, s->format->write, &w);
    tnf_arena_free(&scratch);
    if (status != TNF_OK)
        tnf_error_prefix(e, s->format->name);
    return status;
}

static tnf_status write_to(struct tnf_save *s, const tnf_option_value *values, tnf_sink *sink,
                           tnf_error *e)
{
    tnf_sink *last = NULL;
    tnf_status status = run_writer(s, values, sink, e);
    if (status == TNF_OK)
        status = tnf_second_file_last(s, &last, e);
    if (status == TNF_OK && last)
        status = run_writer(s, values, last, e);
    if (status == TNF_OK)
        status = s->folder ? tnf_folder_sink_end(s->folder, e) : tnf_commit_both(s, sink, e);
    tnf_second_file_close(s);
    return status;
}

static bool is_folder(const struct tnf_save *s)
{
    return s->format->folder_extensions && tnf_list_has(s->format->folder_extensions, s->extension);
}

/* `path`: the final name of the bytes, or NULL. */
static tnf_status save_to_sink(const tnf_builder *b, const char *path, tnf_sink *sink,
                               const tnf_save_options *options, const struct tnf_save *more,
                               tnf_error *e)
{
    struct tnf_save s;
    const tnf_option_value *values = NULL;
    tnf_status status = start_save(&s, b, options, path, e);
    s.index = more->index;
    s.shards = more->shards;
    s.nshards = more->nshards;
    if (status == TNF_OK && path && is_folder(&s))
        status = tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                          "a directory cannot be written in parts: write a zip file instead, if "
                          "the format has one, or use 'tenfold convert' on one machine");
    if (status == TNF_OK)
        status = plan_save(&s, b, &values, e);
    if (status == TNF_OK && !s.options.dry_run)
        status = tnf_need(sink, "sink", e);
    if (status == TNF_OK && !s.options.dry_run)
        status = write_to(&s, values, sink, e);
    finish_save(&s);
    return status;
}

tnf_status tnf_save_sink(const tnf_builder *b, tnf_sink *sink, const tnf_save_options *options,
                         tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    return save_to_sink(b, NULL, sink, options, &(struct tnf_save) { 0 }, e);
}

tnf_status tnf_save_index(const tnf_builder *b, tnf_sink *sink, const tnf_save_options *options,
                          const tnf_format *index, const tnf_shard *shards, size_t n, tnf_error *e)
{
    const struct tnf_save more = { .index = index, .shards = shards, .nshards = n };
    return save_to_sink(b, NULL, sink, options, &more, e);
}

/* The file that exists at the path to be written. */
struct target {
    tnf_stamp stamp;
    char real[PATH_MAX];
};

/* Was this open file read from there, even if another file is there now? */
static bool was_read_from(const tnf_file *f, const struct target *t)
{
    char real[PATH_MAX];
    return f && (tnf_same_file(&f->source->stamp, &t->stamp) ||
                 (f->path && realpath(f->path, real) && strcmp(real, t->real) == 0));
}

/* The same for a part: a virtual one is read from its sources. */
static const tnf_file *part_read_from(const tnf_part *part, const struct target *t)
{
    const struct tnf_origin *o = part->origin;
    if (o && o->reader && was_read_from(o->reader->file, t))
        return o->reader->file;
    for (size_t i = 0; o && o->made && i < o->made->n; i++)
        for (uint16_t k = 0; k < o->made->sources[i].nparts; k++) {
            const tnf_file *file = part_read_from(&o->made->sources[i].parts[k], t);
            if (file)
                return file;
        }
    return NULL;
}

/* The open file that was read from this path; NULL: none. */
static const tnf_file *file_read_from(const struct tnf_save *s, const tnf_builder *b,
                                      const struct target *t)
{
    const tnf_catalog *c = &b->catalog;
    const struct tnf_origin *seen[SHARDS] = { NULL }; /* tensors of a shard are mostly adjacent */
    if (was_read_from(s->options.like, t))
        return s->options.like;
    for (const struct added_file *f = b->files; f; f = f->next)
        if (was_read_from(f->file, t))
            return f->file;
    for (size_t i = 0; i < c->n; i++)
        for (uint16_t k = 0; k < c->objects[i].nparts; k++) {
            const struct tnf_origin *o = c->objects[i].parts[k].origin;
            const struct tnf_origin **slot = &seen[((uintptr_t)o / sizeof *o) % SHARDS];
            if (o == *slot || !o)
                continue;
            const tnf_file *file = part_read_from(&c->objects[i].parts[k], t);
            if (file)
                return file;
            *slot = o;
        }
    return NULL;
}

static bool still_wanted(void *ctx)
{
    const struct tnf_save *s = ctx;
    return !s->options.progress || s->options.progress(s->options.ctx, 0, s->total);
}

/* The claim on a file that is read, and replaced at the end. */
struct own_source {
    tnf_claim claim;
    const tnf_claim *use; /* `claim`, or that of the open file; NULL: nothing is claimed */
    tnf_file *file;       /* which `claim` is on, or NULL */
};

/* Called before a file that is open for reading is replaced: fails if the file has changed since it
 * was opened, and locks other programs out until it is replaced. */
static tnf_status claim_own_source(struct own_source *own, struct tnf_save *s, const tnf_builder *b,
                                   const char *path, tnf_error *e)
{
    struct stat st;
    struct target target;
    const tnf_waiting waiting = { still_wanted, s };
    if (!s->options.replace || stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        !realpath(path, target.real))
        return TNF_OK;
    target.stamp = tnf_stamp_of(&st);
    const tnf_file *file = file_read_from(s, b, &target);
    if (!file)
        return TNF_OK;
    own->use = &file->claim;
    if (file->claim.fd < 0) {
        TNF_TRY(tnf_claim_take(&own->claim, path, &waiting, e));
        own->use = own->claim.fd >= 0 ? &own->claim : NULL;
        own->file = (tnf_file *)(uintptr_t)file;
        own->file->replaced = own->use != NULL;
    }
    if (own->use && !tnf_same_stamp(&own->use->stamp, &file->source->stamp))
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                        "the file was changed or replaced since it was read");
    return TNF_OK;
}

static tnf_status write_path(struct tnf_save *s, const tnf_option_value *values, const char *path,
                             const tnf_claim *claim, tnf_error *e)
{
    unsigned flags = (s->options.replace ? TNF_SINK_REPLACE : 0u) |
                     (s->options.no_sync ? TNF_SINK_NO_SYNC : 0u);
    tnf_sink *sink;
    if (tnf_scheme_has(path))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "files of a custom URL scheme cannot be written: save to a sink");
    if (tnf_is_remote(path)) {
        TNF_TRY(tnf_sink_url(&sink, path, flags, s->options.remote, e));
    } else {
        TNF_TRY(tnf_sink_open(&sink, path, flags, &s->arena.alloc, e));
        tnf_sink_claimed(sink, claim);
        s->path = path;
    }
    tnf_status status = write_to(s, values, sink, e);
    tnf_sink_close(sink);
    return status;
}

/* The directory is made next to its destination, and moved there when it is complete. */
static tnf_status write_folder(struct tnf_save *s, const tnf_option_value *values, const char *path,
                               tnf_error *e)
{
    unsigned flags = (s->options.replace ? TNF_SINK_REPLACE : 0u) |
                     (s->options.no_sync ? TNF_SINK_NO_SYNC : 0u);
    tnf_folder_sink folder;
    tnf_status status = tnf_folder_sink_begin(&folder, path, flags, &s->arena.alloc, e);
    s->folder = &folder;
    if (status == TNF_OK)
        status = write_to(s, values, NULL, e);
    s->folder = NULL;
    tnf_folder_sink_free(&folder);
    return status;
}

static tnf_status save_to_path(struct tnf_save *s, const tnf_builder *b,
                               const tnf_option_value *values, const char *path, tnf_error *e)
{
    struct own_source own = { .claim.fd = -1 };
    if (is_folder(s) && !tnf_is_remote(path))
        return write_folder(s, values, path, e);
    tnf_status status = claim_own_source(&own, s, b, path, e);
    if (status == TNF_OK)
        status = write_path(s, values, path, own.use, e);
    if (own.file)
        own.file->replaced = false;
    tnf_claim_drop(&own.claim);
    return status;
}

tnf_status tnf_save(const tnf_builder *b, const char *path, const tnf_save_options *options,
                    tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(path, "path", e));
    struct tnf_save s;
    const tnf_option_value *values = NULL;
    tnf_status status = start_save(&s, b, options, path, e);
    if (status == TNF_OK)
        status = plan_save(&s, b, &values, e);
    if (status == TNF_OK && !s.options.dry_run)
        status = save_to_path(&s, b, values, path, e);
    finish_save(&s);
    return status;
}

tnf_status tnf_save_through(const tnf_builder *b, const char *path, tnf_sink *sink,
                            const tnf_save_options *options, tnf_error *e)
{
    return save_to_sink(b, path, sink, options, &(struct tnf_save) { 0 }, e);
}
