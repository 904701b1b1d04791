/* SPDX-License-Identifier: MIT */
/* Files that a file names, such as the shards of a model.
 *
 *   name       ─ normalised ─>  key ─ table ─┐
 *   "./s", "s"                  "s"          ├─>  sibling ─>  its handle
 *   "link to s"  ─ stat ─>  device, inode ───┘
 *
 * A file is opened once and counts once, however many names it has: an index may use a thousand
 * aliases of a large shard. All handles together share the memory limit of the file that names
 * them.
 */
#include "container/path.h"
#include "core/core.h"
#include "remote/list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_DEPTH 4u

/* A name of a sibling: its directory, a NUL, and the name in its normal form. */
struct known_name {
    tnf_str key;
    struct sibling *sibling;
};

/* The identity of a file, independent of its names. */
struct identity {
    uint64_t device, inode;
};

struct known_file {
    struct identity is;
    struct sibling *sibling;
};

struct sibling_tables {
    struct sibling **last;
    struct sibling *latest; /* the last one requested, whether it exists or not */
    size_t count;
    uint64_t memory; /* of all handles */
    tnf_buf names;   /* known_name */
    tnf_buf files;   /* known_file */
    tnf_hash by_name, by_file;
};

static tnf_str name_key(const void *ctx, uint32_t i)
{
    const struct sibling_tables *t = ctx;
    return ((const struct known_name *)(const void *)t->names.p)[i].key;
}

static tnf_str file_key(const void *ctx, uint32_t i)
{
    const struct sibling_tables *t = ctx;
    const struct known_file *file = (const struct known_file *)(const void *)t->files.p + i;
    return (tnf_str) { (const char *)&file->is, sizeof file->is };
}

static struct sibling_tables *tables_of(tnf_file *f)
{
    struct sibling_tables *t = f->sibling_tables;
    if (t)
        return t;
    t = tnf_arena_alloc(&f->arena, sizeof *t);
    if (!t)
        return NULL;
    t->last = &f->siblings;
    tnf_buf_init(&t->names, &f->alloc, f->options.limits.memory);
    tnf_buf_init(&t->files, &f->alloc, f->options.limits.memory);
    tnf_hash_init(&t->by_name, &f->alloc, name_key, t);
    tnf_hash_init(&t->by_file, &f->alloc, file_key, t);
    return f->sibling_tables = t;
}

size_t tnf_sibling_count(const tnf_file *f)
{
    return f->sibling_tables ? f->sibling_tables->count : 0;
}

void tnf_close_siblings(tnf_file *f)
{
    struct sibling_tables *t = f->sibling_tables;
    for (struct sibling *s = f->siblings; s; s = s->next)
        tnf_close(s->file);
    if (!t)
        return;
    tnf_hash_free(&t->by_name);
    tnf_hash_free(&t->by_file);
    tnf_buf_free(&t->names);
    tnf_buf_free(&t->files);
}

/* ------------------------------------------------------------------ names */

/* Removes "./" and "//": writes to `out`, which has room for the whole name. The part after the
 * last slash stays, since a slash at the end means a directory. */
static size_t normal_name(char *out, tnf_str name)
{
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        bool starts = n == 0 || out[n - 1] == '/', more = i + 1 < name.n;
        if (starts && more && name.p[i] == '.' && name.p[i + 1] == '/')
            i++;
        else if (!starts || name.p[i] != '/')
            out[n++] = name.p[i];
    }
    return n;
}

/* Makes the key in the arena; the caller may drop it. */
static tnf_status make_key(tnf_str *out, tnf_arena *arena, const char *directory, tnf_str name,
                           tnf_error *e)
{
    size_t n = strlen(directory);
    while (n > 1 && directory[n - 1] == '/') /* "d/" means "d" */
        n--;
    char *key = tnf_arena_raw(arena, n + name.n + 1);
    if (!key)
        return tnf_arena_fail(arena, "a file's name", e);
    memcpy(key, directory, n);
    key[n] = 0;
    *out = (tnf_str) { key, n + 1 + normal_name(key + n + 1, name) };
    return TNF_OK;
}

static struct sibling *by_name(const struct sibling_tables *t, tnf_str key)
{
    uint32_t at = tnf_hash_find(&t->by_name, key.p, key.n);
    return at == TNF_HASH_NONE ? NULL
                               : ((const struct known_name *)(const void *)t->names.p)[at].sibling;
}

bool tnf_sibling_named(const tnf_file *f, const char *name)
{
    tnf_arena arena;
    tnf_str key;
    if (!f->sibling_tables || !f->directory)
        return false;
    tnf_arena_init(&arena, &f->alloc, UINT64_MAX);
    tnf_status status = make_key(&key, &arena, f->directory, (tnf_str) { name, strlen(name) },
                                 NULL);
    bool named = status == TNF_OK && by_name(f->sibling_tables, key);
    tnf_arena_free(&arena);
    return named;
}

/* ------------------------------------------------------------------ files */

static struct sibling *by_file(const struct sibling_tables *t, const struct identity *is)
{
    uint32_t at = tnf_hash_find(&t->by_file, (const char *)is, sizeof *is);
    return at == TNF_HASH_NONE ? NULL
                               : ((const struct known_file *)(const void *)t->files.p)[at].sibling;
}

bool tnf_sibling_is(const tnf_file *f, uint64_t device, uint64_t inode)
{
    struct identity is = { device, inode };
    if (f->sibling_tables && by_file(f->sibling_tables, &is))
        return true;
    for (const struct sibling *s = f->siblings; s; s = s->next)
        if (s->file && s->file->siblings && tnf_sibling_is(s->file, device, inode))
            return true;
    return false;
}

static tnf_status add_name(struct sibling_tables *t, tnf_str key, struct sibling *s, tnf_error *e)
{
    struct known_name known = { key, s };
    uint32_t previous;
    tnf_buf_put(&t->names, &known, sizeof known);
    TNF_TRY(tnf_buf_status(&t->names, "the names of files", e));
    bool ok = tnf_hash_add(&t->by_name, (uint32_t)(t->names.n / sizeof known) - 1, true, &previous);
    return ok ? TNF_OK : tnf_no_memory("names of files", e);
}

static tnf_status add_file(struct sibling_tables *t, struct identity is, struct sibling *s,
                           tnf_error *e)
{
    uint32_t previous;
    struct known_file known = { is, s };
    tnf_buf_put(&t->files, &known, sizeof known);
    TNF_TRY(tnf_buf_status(&t->files, "the files", e));
    bool ok = tnf_hash_add(&t->by_file, (uint32_t)(t->files.n / sizeof known) - 1, true, &previous);
    return ok ? TNF_OK : tnf_no_memory("names of files", e);
}

/* Most siblings are in one directory, whose name is stored once. */
static const char *keep_directory(tnf_file *f, const char *directory)
{
    const struct sibling *first = f->siblings;
    if (f->directory && strcmp(f->directory, directory) == 0)
        return f->directory;
    if (first && strcmp(first->directory, directory) == 0)
        return first->directory;
    return tnf_arena_str(&f->arena, directory, strlen(directory));
}

/* Adds to the list before the file is open, so that it is always closed. */
static tnf_status add_sibling(struct sibling **out, tnf_file *f, const char *directory,
                              tnf_str name, tnf_error *e)
{
    struct sibling_tables *t = f->sibling_tables;
    struct sibling *s = tnf_arena_alloc(&f->arena, sizeof *s);
    if (s) {
        s->directory = keep_directory(f, directory);
        s->name = tnf_arena_str(&f->arena, name.p, name.n);
    }
    if (!s || !s->name || !s->directory)
        return tnf_arena_fail(&f->arena, "a file's name", e);
    *t->last = s;
    t->last = &s->next;
    t->count++;
    *out = s;
    return TNF_OK;
}

/* ---------------------------------------------------------------- missing */

static const char missing_key[] = "tenfold.missing";

tnf_status tnf_miss(tnf_reader *r, const struct missing_file **out, tnf_str name, uint64_t at,
                    tnf_error *e)
{
    tnf_file *f = r->file;
    struct missing_file *m = tnf_arena_alloc(&f->arena, sizeof *m);
    const struct sibling *known = f->sibling_tables ? f->sibling_tables->latest : NULL;
    bool same = known && strlen(known->name) == name.n && !memcmp(known->name, name.p, name.n);
    const char *kept = same ? known->name : tnf_arena_str(&f->arena, name.p, name.n);
    if (!m || !kept)
        return tnf_arena_fail(&f->arena, "a file's name", e);
    m->at = at;
    m->name = (tnf_member) { { missing_key, sizeof missing_key - 1 },
                             tnf_value_str(TNF_STRING, kept, name.n) };
    m->mark = (tnf_value) { .kind = TNF_MAP, .n = 1, .as.members = &m->name };
    *f->last_missing = m;
    f->last_missing = &m->next;
    tnf_warn(r, at, "the file %s is missing", TNF_QUOTED(name));
    *out = m;
    return TNF_OK;
}

tnf_status tnf_missing_origin(tnf_reader *r, const struct tnf_origin **out,
                              const struct missing_file *where, tnf_error *e)
{
    struct tnf_origin *o = tnf_arena_alloc(r->arena, sizeof *o);
    if (!o)
        return tnf_arena_fail(r->arena, "a file's name", e);
    *o = r->file->origin;
    o->label = where->name.value.as.s;
    o->missing = true;
    *out = o;
    return TNF_OK;
}

tnf_status tnf_add_missing(tnf_reader *r, tnf_str name, const struct missing_file *where,
                           uint64_t at, tnf_error *e)
{
    tnf_object o = { .name = name, .layout = &tnf_layout_missing, .attrs = &where->mark };
    return tnf_add_object(r, &o, at, e);
}

const char *tnf_missing_file(const tnf_object *o)
{
    if (o && o->layout == &tnf_layout_missing)
        return o->attrs->as.members->value.as.s;
    for (uint16_t k = 0; o && o->parts && k < o->nparts; k++)
        if (o->parts[k].origin && o->parts[k].origin->missing)
            return o->parts[k].origin->label;
    return NULL;
}

tnf_status tnf_need_whole(const tnf_file *file, tnf_error *e)
{
    if (!file->missing)
        return TNF_OK;
    const tnf_value *name = &file->missing->name.value;
    return tnf_fail(e, TNF_ENOTFOUND, file->missing->at, "the file %s of the model is missing",
                    TNF_QUOTED(((tnf_str) { name->as.s, name->n })));
}

/* ---------------------------------------------------------------- opening */

static tnf_status make_path(char **out, tnf_arena *arena, const char *directory, tnf_str name,
                            tnf_error *e)
{
    size_t n = strlen(directory);
    bool slash = n > 0 && directory[n - 1] != '/';
    char *path = tnf_arena_raw(arena, n + slash + name.n + 1);
    if (!path)
        return tnf_arena_fail(arena, "a path", e);
    memcpy(path, directory, n);
    path[n] = '/';
    memcpy(path + n + slash, name.p, name.n);
    path[n + slash + name.n] = 0;
    *out = path;
    return TNF_OK;
}

/* Finds the file that the rule for paths leads to, before it is opened. */
static tnf_status look_up_identity(struct identity *is, const tnf_file *f, const char *directory,
                                   tnf_str name, tnf_error *e)
{
    struct stat st;
    int fd;
    if (f->source->remote) { /* only the name of a remote file is known */
        TNF_TRY(tnf_path_check(name, e));
        *is = (struct identity) { UINT64_MAX, tnf_sibling_count(f) };
        return TNF_OK;
    }
    TNF_TRY(tnf_path_open(&fd, directory, name, f->path, e));
    int failed = fstat(fd, &st);
    close(fd);
    if (failed)
        return tnf_fail_sys(e, errno, "cannot open");
    *is = (struct identity) { (uint64_t)st.st_dev, (uint64_t)st.st_ino };
    return TNF_OK;
}

/* For a name that is requested for the first time: a new file, or a known one with another name.
 * `is` is NULL if its identity is unknown. */
static tnf_status find_or_add(struct sibling **out, tnf_file *f, const char *directory,
                              tnf_str name, tnf_str key, const struct identity *is, tnf_error *e)
{
    struct sibling_tables *t = f->sibling_tables;
    char *kept = tnf_arena_str(&f->arena, key.p, key.n);
    if (!kept)
        return tnf_arena_fail(&f->arena, "a file's name", e);
    *out = is ? by_file(t, is) : NULL;
    if (!*out) {
        TNF_TRY(add_sibling(out, f, directory, name, e));
        if (is)
            TNF_TRY(add_file(t, *is, *out, e));
    }
    return add_name(t, (tnf_str) { kept, key.n }, *out, e);
}

/* Opens a sibling with the options of this file, which passes on its warnings with its name. */
static tnf_status open_file(struct sibling *s, tnf_reader *r, const char *path,
                            const struct identity *is, const char *format, tnf_error *e)
{
    tnf_file *f = r->file;
    struct sibling_tables *t = f->sibling_tables;
    uint64_t taken = t->memory + f->arena.total;
    tnf_open_options o = f->options;
    if (taken >= o.limits.memory)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "no room for another file within the limit of %llu bytes of memory",
                        (unsigned long long)o.limits.memory);
    o.limits.memory -= taken;
    o.format = format;
    o.options = NULL;
    o.noptions = 0;
    o.warn = NULL;
    tnf_str name = { s->name, strlen(s->name) };
    TNF_TRY(tnf_open_beside(&s->file, f->source, path, name, &o, f->depth + 1, e));
    const tnf_stamp *stamp = &s->file->source->stamp;
    if (stamp->ino && ((uint64_t)stamp->ino != is->inode || (uint64_t)stamp->dev != is->device)) {
        tnf_close(s->file); /* not the file that the rule led to */
        s->file = NULL;
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                        "another program has replaced the file meanwhile: open it again");
    }
    t->memory += s->file->arena.total;
    s->file->origin.label = s->name;
    for (size_t i = 0; i < s->file->nwarnings; i++)
        tnf_warn(r, s->file->warnings[i].offset, "%s: %s", TNF_VISIBLE(s->name),
                 s->file->warnings[i].message);
    return TNF_OK;
}

/* The earlier refusal of a file as this format, possibly by another name; or NULL. */
static const struct refusal *known_refusal(const struct sibling *s, const char *format)
{
    for (const struct refusal *x = s->refusals; x; x = x->next)
        if (x->format == format || (x->format && format && strcmp(x->format, format) == 0))
            return x;
    return NULL;
}

static tnf_status open_or_refuse(struct sibling *s, tnf_reader *r, const char *path,
                                 const struct identity *is, const char *format, tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    const struct refusal *known = known_refusal(s, format);
    if (!known) {
        tnf_status status = open_file(s, r, path, is, format, &why);
        if (status == TNF_OK)
            return TNF_OK;
        struct refusal *fresh = tnf_arena_alloc(&r->file->arena, sizeof *fresh);
        if (fresh && tnf_is_file_fault(status)) {
            *fresh = (struct refusal) { s->refusals, format, why };
            s->refusals = fresh;
        }
    }
    if (e)
        *e = known ? known->error : why;
    return known ? known->error.status : why.status;
}

/* `scratch` is for this name only, since there may be a million names. */
static tnf_status open_named(tnf_reader *r, const tnf_file **out, const char *directory,
                             tnf_str name, const char *format, tnf_arena *scratch, tnf_error *e)
{
    tnf_file *f = r->file;
    struct identity is;
    tnf_str key;
    char *path;
    tnf_status status = TNF_OK;
    TNF_TRY(make_key(&key, scratch, directory, name, e));
    tnf_str normal = { key.p + strlen(key.p) + 1, key.n - strlen(key.p) - 1 };
    /* A name may begin with "./", but must not lead out of the directory. */
    TNF_TRY(tnf_path_check(name.n && name.p[0] == '/' ? name : normal, e));
    TNF_TRY(make_path(&path, scratch, directory, normal, e));
    struct sibling *s = by_name(f->sibling_tables, key);
    if (!s || !s->file) {
        tnf_error why = { .offset = TNF_NO_OFFSET };
        status = look_up_identity(&is, f, directory, normal, &why);
        if (!s)
            TNF_TRY(find_or_add(&s, f, directory, name, key, status == TNF_OK ? &is : NULL, e));
        if (status != TNF_OK && e)
            *e = why;
    }
    f->sibling_tables->latest = s;
    if (status == TNF_OK && !s->file)
        status = open_or_refuse(s, r, path, &is, format, e);
    if (status != TNF_OK)
        tnf_error_prefix(e, s->name);
    else
        *out = s->file;
    return status;
}

/* On another machine, only files next to this one are requested, and no others. */
static tnf_status check_near(const tnf_file *f, const char *directory, tnf_error *e)
{
    if (!f->source->remote || (f->directory && strcmp(directory, f->directory) == 0))
        return TNF_OK;
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "a file that is read over the network may refer only to files in its own "
                    "directory");
}

void tnf_expect_siblings(tnf_reader *r, const tnf_str *names, size_t n)
{
    tnf_str *sound = r->source->remote ? tnf_arena_array(r->scratch, n, sizeof *sound) : NULL;
    size_t count = 0;
    for (size_t i = 0; sound && i < n; i++)
        if (tnf_path_check(names[i], NULL) == TNF_OK)
            sound[count++] = names[i];
    if (sound)
        tnf_remote_expect(r->source, sound, count);
}

tnf_status tnf_open_stored(tnf_reader *r, const tnf_file **out, const char *directory, tnf_str name,
                           const char *format, tnf_error *e)
{
    tnf_file *f = r->file;
    tnf_arena scratch;
    TNF_TRY(check_near(f, directory, e));
    if (f->depth >= MAX_FILE_DEPTH)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the chain of files that refer to other files is too long");
    if (!tables_of(f))
        return tnf_arena_fail(&f->arena, "names of files", e);
    tnf_arena_init(&scratch, &f->alloc, f->options.limits.memory);
    tnf_status status = open_named(r, out, directory, name, format, &scratch, e);
    tnf_arena_free(&scratch);
    return status;
}

tnf_status tnf_open_sibling(tnf_reader *r, const tnf_file **out, tnf_str name, const char *format,
                            tnf_error *e)
{
    if (!r->file->directory)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s is a separate file: open the model by its path", TNF_QUOTED(name));
    return tnf_open_stored(r, out, r->file->directory, name, format, e);
}

/* ---------------------------------------------- the content of such files */

const struct tnf_origin *tnf_file_origin(const tnf_file *file, uint64_t *size)
{
    *size = file->source->size;
    return &file->origin;
}

const tnf_object *tnf_find_piece(const tnf_file *file, const char *name, size_t n)
{
    uint32_t at = file->pieces ? tnf_hash_find(&file->piece_names, name, n) : TNF_HASH_NONE;
    if (at == TNF_HASH_NONE)
        return NULL;
    return tnf_find_n(file, file->pieces[at].now.p, file->pieces[at].now.n);
}

bool tnf_piece_at(const tnf_file *file, size_t i, tnf_str *name)
{
    if (i >= file->npieces)
        return false;
    *name = file->pieces[i].raw;
    return true;
}

/* --------------------------------------------------------------- raw bytes */

static int probe_none(const tnf_probe *p)
{
    (void)p;
    return TNF_PROBE_NO;
}

static tnf_status index_none(tnf_reader *r, tnf_error *e)
{
    (void)r;
    (void)e;
    return TNF_OK;
}

const tnf_format tnf_format_bytes = {
    .name = "bytes",
    .title = "Bytes",
    .extensions = "",
    .family = "bytes",
    .caps = TNF_CAN_READ,
    .probe = probe_none,
    .index = index_none,
};

tnf_status tnf_open_data(tnf_reader *r, const struct tnf_origin **out, uint64_t *size, tnf_str name,
                         tnf_error *e)
{
    const tnf_file *file;
    TNF_TRY(tnf_open_sibling(r, &file, name, tnf_format_bytes.name, e));
    if (tnf_same_file(&file->source->stamp, &r->source->stamp))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the file refers to itself as %s",
                        TNF_QUOTED(name));
    *out = tnf_file_origin(file, size);
    return TNF_OK;
}

bool tnf_data_has_links(const struct tnf_origin *origin)
{
    struct stat st;
    int fd = origin && origin->source ? origin->source->fd : -1;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink > 1;
}
