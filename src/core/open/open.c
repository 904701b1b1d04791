/* SPDX-License-Identifier: MIT */
/* Opening: find the format, let it index the file, check the result, restore what was stashed.
 * After that the handle never changes. */
#include "core/core.h"

#include "base/sized.h"
#include "core/save/save.h"
#include "io/lock.h"
#include "io/undo.h"
#include "remote/list.h"

#include <string.h>
#include <sys/stat.h>

#define PATIENT 10000u /* milliseconds: a change in place does not take long */

static tnf_status complete_options(tnf_open_options *o, const tnf_open_options *given, tnf_error *e)
{
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_open_options, o, given, e));
    TNF_TRY(tnf_check_choice(o->access, TNF_ACCESS_PREAD, "access", e));
    tnf_url_options remote; /* is used for URLs only, but checked for every path */
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_url_options, &remote, o->remote, e));
    TNF_TRY(tnf_need_array(o->options, o->noptions, "options", e));
    TNF_TRY(tnf_check_reserved(o->limits.reserved, sizeof o->limits.reserved, e));
    o->lenient = o->lenient || o->salvage;
    o->allocator = tnf_allocator_or_default(&o->allocator);
    tnf_limits *l = &o->limits;
    l->header_bytes = l->header_bytes ? l->header_bytes : TNF_DEFAULT_HEADER_BYTES;
    l->memory = l->memory ? l->memory : TNF_DEFAULT_MEMORY;
    l->objects = l->objects ? l->objects : TNF_DEFAULT_OBJECTS;
    l->depth = l->depth ? l->depth : TNF_DEFAULT_DEPTH;
    l->name_bytes = l->name_bytes ? l->name_bytes : TNF_DEFAULT_NAME_BYTES;
    return TNF_OK;
}

/* Makes an empty handle. The catalog's name table points into it, so it must never move. */
static tnf_status new_file(tnf_file **out, const tnf_open_options *o, tnf_error *e)
{
    tnf_file *f = tnf_alloc0(&o->allocator, sizeof *f);
    if (!f)
        return tnf_no_memory("a handle", e);
    f->alloc = o->allocator;
    f->claim.fd = -1;
    f->options = *o;
    tnf_arena_init(&f->arena, &f->alloc, o->limits.memory);
    tnf_catalog_init(&f->catalog, &f->arena);
    f->text.arena = &f->arena;
    f->last_loss = &f->losses;
    f->last_missing = &f->missing;
    f->extension = "";
    *out = f;
    return TNF_OK;
}

void tnf_close(tnf_file *f)
{
    if (!f)
        return;
    tnf_close_siblings(f);
    if (f->format && f->format->close && f->reader.state)
        f->format->close(&f->reader);
    if (f->folder)
        tnf_container_close(f->folder);
    tnf_catalog_free(&f->catalog);
    tnf_hash_free(&f->piece_names);
    tnf_arena_free(&f->arena);
    tnf_source_close(f->source);
    tnf_claim_drop(&f->claim);
    tnf_allocator alloc = f->alloc;
    tnf_free(&alloc, f, sizeof *f);
}

static tnf_status choose_format(tnf_file *f, tnf_error *e)
{
    const char *wanted = f->options.format;
    if (!wanted)
        return tnf_probe_source(&f->format, f->source, f->extension, e);
    f->format = wanted == tnf_format_bytes.name ? &tnf_format_bytes : tnf_registry_find(wanted);
    if (!f->format)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "unknown format '%s'", wanted);
    if (!(f->format->caps & TNF_CAN_READ))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "the format '%s' can only be written",
                        wanted);
    return TNF_OK;
}

static uint64_t total_size(const tnf_file *f)
{
    uint64_t size = f->source->size;
    for (const struct sibling *s = f->siblings; s; s = s->next)
        size += s->file ? s->file->info.size : 0; /* NULL: missing, in a lenient open */
    return size;
}

static void fill_info(tnf_file *f)
{
    tnf_catalog_shrink(&f->catalog);
    uint64_t payload = 0;
    for (size_t i = 0; i < f->catalog.n; i++)
        for (size_t p = 0; p < f->catalog.objects[i].nparts; p++)
            if (!tnf_ckd_add(&payload, payload, f->catalog.objects[i].parts[p].nbytes))
                payload = UINT64_MAX;
    f->attrs = tnf_attrs_value(&f->catalog.attrs);
    const struct sibling *shards = f->format->stands_for_shards && !f->format->shown_as_index
                                       ? f->siblings
                                       : NULL;
    while (shards && !shards->file)
        shards = shards->next;
    f->info = (tnf_info) {
        .format = shards ? shards->file->format->name : f->format->name,
        .version = f->reader.version ? f->reader.version : "",
        .size = total_size(f),
        .payload = payload,
        .objects = f->catalog.n,
        .attrs = &f->attrs,
        .extras = f->catalog.extras,
        .nextras = f->catalog.nextras,
        .warnings = f->warnings,
        .nwarnings = f->nwarnings,
        .shards = tnf_sibling_count(f),
        .memory = f->options.limits.memory,
        .first_missing = f->missing ? f->missing->name.value.as.s : NULL,
        .unnamed = f->reader.unnamed,
    };
    f->info.shards += f->format->opens_sets &&
                      f->info.shards > 0; /* the first file is a shard, too */
    for (const struct missing_file *m = f->missing; m; m = m->next)
        f->info.missing++;
}

/* After a failure, removes tensors that need the format, which might not be ready. */
static void drop_unready(tnf_file *f)
{
    for (size_t i = 0; i < f->catalog.n; i++)
        for (uint16_t k = 0; k < f->catalog.objects[i].nparts; k++)
            if (f->catalog.objects[i].parts[k].payload == TNF_OPAQUE)
                tnf_part_mutable(&f->catalog.objects[i].parts[k])->flags |= TNF_PART_UNREADABLE;
}

static tnf_status index_or_salvage(tnf_file *f, tnf_error *e)
{
    /* A format may try what fails, and then succeed in another way. */
    tnf_error error = { .offset = TNF_NO_OFFSET };
    tnf_status status = f->format->index(&f->reader, &error);
    if (status != TNF_OK && f->catalog.n > 0 && tnf_lose(&f->reader, status, &error)) {
        drop_unready(f);
        status = TNF_OK;
    }
    if (status == TNF_OK && f->loss_unnoted)
        return tnf_arena_fail(&f->arena, "a loss", e);
    if (status != TNF_OK && e)
        *e = error;
    return status;
}

static tnf_status run_index(tnf_file *f, tnf_error *e)
{
    tnf_arena scratch;
    if (!f->options.limits.rank)
        f->options.limits.rank = f->format->can.max_rank == TNF_ANY_RANK ? TNF_ANY_RANK
                                                                         : TNF_DEFAULT_RANK;
    tnf_arena_init(&scratch, &f->alloc, f->options.limits.memory);
    f->reader = (tnf_reader) {
        .arena = &f->arena,
        .scratch = &scratch,
        .source = f->source,
        .catalog = &f->catalog,
        .limits = f->options.limits,
        .lenient = f->options.lenient,
        .salvage = f->options.salvage,
        .incomplete = f->options.incomplete && !f->options.salvage,
        .stem = f->stem,
        .folder = f->directory,
        .extension = f->extension,
        .sibling = f->depth > 0,
        .file = f,
    };
    f->origin.source = f->source;
    f->origin.format = f->format;
    f->origin.reader = &f->reader;
    tnf_status status = tnf_options_parse(&f->reader.options, f->format->read_options, "reader",
                                          f->options.options, f->options.noptions, &f->arena, e);
    if (status == TNF_OK)
        status = index_or_salvage(f, e);
    if (status == TNF_OK)
        status = tnf_check_ranges(f, e);
    if (status == TNF_OK)
        status = tnf_restore(f, e);
    tnf_arena_free(&scratch);
    f->reader.scratch = NULL;
    return status;
}

/* Everything after the source is open. On failure the caller closes the handle. */
static tnf_status open_rest(tnf_file *f, tnf_error *e)
{
    TNF_TRY(choose_format(f, e));
    tnf_status status = run_index(f, e);
    if (status != TNF_OK) {
        tnf_error_prefix(e, f->format->name);
        return status;
    }
    fill_info(f);
    if (f->depth == 0) /* warnings of shards count for the whole model */
        TNF_TRY(tnf_check_decoded(f, e));
    /* The caller's strings and functions are only valid during the call. */
    f->options.format = NULL;
    f->options.options = NULL;
    f->options.noptions = 0;
    f->options.warn = NULL;
    f->options.trace = NULL;
    f->options.remote = NULL;
    return TNF_OK;
}

/* Remembers the directory, for siblings, and the extension, for probes. */
static tnf_status remember_path(tnf_file *f, const char *path, tnf_error *e)
{
    char ext[16];
    tnf_extension(ext, path);
    const char *name = tnf_path_end(path), *dot = strrchr(name, '.');
    f->path = tnf_arena_str(&f->arena, path, strlen(path));
    f->extension = tnf_arena_str(&f->arena, ext, strlen(ext));
    f->directory = tnf_arena_str(&f->arena, path, (size_t)(name - path));
    f->stem = tnf_arena_str(&f->arena, name,
                            dot && dot > name ? (size_t)(dot - name) : strlen(name));
    return f->path && f->extension && f->directory && f->stem
               ? TNF_OK
               : tnf_arena_fail(&f->arena, "a path", e);
}

/* Probes see the name without the extension of the compression: "x.vec" for "x.vec.gz". */
static tnf_status drop_packing_extension(tnf_file *f, tnf_error *e)
{
    char *inner = f->path ? tnf_arena_str(&f->arena, f->path, strlen(f->path)) : NULL;
    char *dot = inner ? strrchr(inner, '.') : NULL;
    if (!f->path || !dot || strchr(dot, '/'))
        return TNF_OK;
    *dot = '\0';
    return remember_path(f, inner, e);
}

/* Fails if a change of the file was interrupted: it would have old and new bytes. */
static tnf_status check_undo(const tnf_file *f, const char *path, tnf_error *e)
{
    tnf_undo_state state;
    TNF_TRY(tnf_undo_look(&state, path, f->source->fd, e));
    if (state != TNF_UNDO_MIXED)
        return TNF_OK;
    return tnf_fail(
        e, TNF_EFORMAT, TNF_NO_OFFSET,
        "a change of its metadata was interrupted: run 'tenfold repair' to restore the old "
        "metadata");
}

/* While an index is read, a lock keeps other programs from changing the file in place. On a network
 * file system, reading does not wait for a lock; there the undo file shows that a change has
 * begun. */
static tnf_status index_undisturbed(tnf_file *f, const char *path, tnf_error *e)
{
    int fd = f->source->fd;
    bool locked = !f->source->network;
    if (locked)
        TNF_TRY(tnf_lock_change(fd, false, PATIENT, e));
    tnf_status status = check_undo(f, path, e);
    if (status == TNF_OK)
        status = open_rest(f, e);
    if (status == TNF_OK && !locked)
        status = check_undo(f, path, e);
    if (locked)
        tnf_unlock_change(fd);
    return status;
}

static tnf_status claim_path(tnf_file *f, const char *path, tnf_error *e)
{
#ifdef TENFOLD_READ_ONLY
    (void)f, (void)path, (void)e; /* a build that cannot write needs no claim */
    return TNF_OK;
#else
    return f->options.to_change && f->depth == 0 ? tnf_claim_take(&f->claim, path, NULL, e)
                                                 : TNF_OK;
#endif
}

tnf_status tnf_open_source_at(tnf_file **out, tnf_source *source, const char *path,
                              const tnf_open_options *options, tnf_error *e)
{
    *out = NULL;
    tnf_open_options o;
    tnf_file *f;
    tnf_status status = complete_options(&o, options, e);
    if (status == TNF_OK)
        status = new_file(&f, &o, e);
    if (status != TNF_OK) {
        tnf_source_close(source);
        return status;
    }
    f->source = source;
    bool unpacked;
    status = path ? remember_path(f, path, e) : TNF_OK;
    if (status == TNF_OK)
        status = tnf_unpack_source(&f->source, &f->options, &unpacked, e);
    if (status == TNF_OK)
        status = open_rest(f, e);
    if (status != TNF_OK) {
        tnf_close(f);
        return status;
    }
    *out = f;
    return TNF_OK;
}

tnf_status tnf_open_source(tnf_file **out, tnf_source *source, const tnf_open_options *options,
                           tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(source, "source", e));
    return tnf_open_source_at(out, source, NULL, options, e);
}

/* Separates the options of the network from those of the format. All are only valid while
 * opening. */
static tnf_status split_options(tnf_file *f, tnf_url_options *how, tnf_error *e)
{
    size_t n = f->options.noptions;
    tnf_option *own = tnf_arena_array(&f->arena, n + 1, sizeof *own);
    if (!own)
        return tnf_arena_fail(&f->arena, "options", e);
    if (n)
        memcpy(own, f->options.options, n * sizeof *own);
    TNF_TRY(tnf_remote_how(how, f->options.remote, own, &n, e));
    f->options.options = own;
    f->options.noptions = n;
    return TNF_OK;
}

static tnf_status open_url(tnf_file *f, const char *url, const tnf_source *near, tnf_str name,
                           tnf_error *e)
{
    tnf_url_options how;
    char *shown;
    if (f->options.to_change)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "a file that is read over the network cannot be changed in place");
    if (!near) {
        TNF_TRY(split_options(f, &how, e));
        if (tnf_remote_folder(url)) {
            char *inside = NULL;
            TNF_TRY(tnf_remote_model(&inside, url, &how, &f->arena, e));
            url = inside;
        }
    }
    if (!(shown = tnf_remote_shown(&f->arena, url)))
        return tnf_arena_fail(&f->arena, "a path", e);
    TNF_TRY(remember_path(f, shown, e));
    TNF_TRY(near ? tnf_remote_sibling(&f->source, near, name, e)
                 : tnf_remote_open(&f->source, url, &how, &f->alloc, e));
    return open_rest(f, e);
}

static tnf_status open_own(tnf_file *f, const char *url, tnf_error *e)
{
    if (f->options.to_change)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "a file of a custom URL scheme cannot be changed in place");
    TNF_TRY(remember_path(f, url, e));
    TNF_TRY(tnf_scheme_source(&f->source, url, e));
    return open_rest(f, e);
}

static tnf_status open_into(tnf_file *f, const char *path, tnf_error *e)
{
    struct stat st;
    if (tnf_scheme_has(path))
        return open_own(f, path, e);
    if (tnf_is_remote(path))
        return open_url(f, path, NULL, (tnf_str) { NULL, 0 }, e);
    if (f->depth == 0)
        path = tnf_file_to_open(path, &f->arena);
    if (f->depth == 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        char *inside = NULL;
        TNF_TRY(tnf_directory_model(&inside, path, &f->arena, e));
        path = inside;
    }
    TNF_TRY(remember_path(f, path, e));
    TNF_TRY(claim_path(f, path, e));
    TNF_TRY(tnf_source_open(&f->source, path, f->options.access, &f->alloc, e));
    if (f->claim.fd >= 0 && !tnf_same_file(&f->claim.stamp, &f->source->stamp))
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                        "another program has replaced the file meanwhile: open it again");
    bool unpacked;
    TNF_TRY(tnf_unpack_source(&f->source, &f->options, &unpacked, e));
    if (!unpacked)
        return index_undisturbed(f, path, e);
    TNF_TRY(drop_packing_extension(f, e));
    return open_rest(f, e); /* no other program can change an unnamed file */
}

tnf_status tnf_open_beside(tnf_file **out, const tnf_source *near, const char *path, tnf_str name,
                           const tnf_open_options *options, unsigned depth, tnf_error *e)
{
    *out = NULL;
    tnf_open_options o;
    tnf_file *f;
    TNF_TRY(complete_options(&o, options, e));
    TNF_TRY(new_file(&f, &o, e));
    f->depth = depth;
    bool by_url = near && near->remote && !tnf_scheme_has(path);
    tnf_status status = by_url ? open_url(f, path, near, name, e) : open_into(f, path, e);
    if (status != TNF_OK) {
        tnf_close(f);
        return status;
    }
    *out = f;
    return TNF_OK;
}

tnf_status tnf_open_noting(tnf_file **out, const char *path, const tnf_open_options *options,
                           tnf_note_fn note, void *ctx, tnf_error *e)
{
    *out = NULL;
    tnf_open_options o;
    tnf_file *f;
    TNF_TRY(complete_options(&o, options, e));
    TNF_TRY(new_file(&f, &o, e));
    tnf_status status = open_into(f, path, e);
    if (status == TNF_OK) {
        *out = f;
        return TNF_OK;
    }
    if (note && f->format && f->format->notes && f->reader.state)
        f->format->notes(&f->reader, note, ctx);
    tnf_close(f);
    return status;
}

tnf_status tnf_open(tnf_file **out, const char *path, const tnf_open_options *options, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(path, "path", e));
    return tnf_open_beside(out, NULL, path, (tnf_str) { NULL, 0 }, options, 0, e);
}

bool tnf_file_traffic(tnf_traffic *out, const tnf_file *file)
{
    tnf_traffic own = { .size = sizeof own };
    if (!file || !file->source || !tnf_remote_traffic(&own, file->source) ||
        tnf_result_begin(out, TNF_FIRST(tnf_traffic), NULL) != TNF_OK)
        return false;
    tnf_result_fill(out, &own, sizeof own);
    return true;
}

/* ---------------------------------------------------------------- builder */

/* The format of a builder's content, which no file has. */
static const tnf_format built = {
    .name = "builder", .title = "a builder", .extensions = "", .family = "builder"
};

static tnf_status add_built(tnf_file *f, const tnf_builder *b, tnf_error *e)
{
    const tnf_catalog *c = &b->catalog;
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        bool found = tnf_catalog_find(c, o->name.p, o->name.n) == o;
        unsigned policy = found ? TNF_NAMES_LATER_FOUND : TNF_NAMES_FIRST_FOUND;
        TNF_TRY(tnf_catalog_add(&f->catalog, o, policy | TNF_BORROWED, e));
    }
    for (size_t i = 0; i < c->attrs.n; i++) {
        const tnf_member *m = &c->attrs.members[i];
        TNF_TRY(tnf_attrs_push(&f->catalog.attrs, m->key.p, m->value, e));
        f->catalog.attrs.members[i].key.n = m->key.n;
    }
    for (size_t i = 0; i < c->nextras; i++)
        TNF_TRY(tnf_catalog_add_extra(&f->catalog, &c->extras[i], e));
    return TNF_OK;
}

tnf_status tnf_open_builder(tnf_file **out, const tnf_builder *builder,
                            const tnf_open_options *options, tnf_error *e)
{
    tnf_open_options o;
    tnf_file *f;
    *out = NULL;
    TNF_TRY(tnf_need(builder, "builder", e));
    TNF_TRY(complete_options(&o, options, e));
    TNF_TRY(new_file(&f, &o, e));
    f->format = &built;
    tnf_status status = add_built(f, builder, e);
    if (status == TNF_OK)
        status = tnf_source_memory(&f->source, NULL, 0, e); /* all bytes are elsewhere */
    if (status != TNF_OK) {
        tnf_close(f);
        return status;
    }
    fill_info(f);
    f->info.size = f->info.payload;
    *out = f;
    return TNF_OK;
}

/* ------------------------------------------------------------------- look */

const tnf_info *tnf_file_info(const tnf_file *file)
{
    return file ? &file->info : NULL;
}

const tnf_object *tnf_at(const tnf_file *file, size_t i)
{
    return file && i < file->catalog.n ? &file->catalog.objects[i] : NULL;
}

const tnf_object *tnf_find_n(const tnf_file *file, const char *name, size_t n)
{
    return file && name ? tnf_catalog_find(&file->catalog, name, n) : NULL;
}

const tnf_object *tnf_find(const tnf_file *file, const char *name)
{
    return name ? tnf_find_n(file, name, strlen(name)) : NULL;
}

uint64_t tnf_elements(const tnf_object *object)
{
    uint64_t n = 0;
    if (!object || object->layout == &tnf_layout_missing || (object->rank && !object->shape))
        return 0;
    return tnf_shape_elements(&n, object->shape, object->rank) ? n : UINT64_MAX;
}
