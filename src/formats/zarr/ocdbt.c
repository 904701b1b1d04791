/* SPDX-License-Identifier: MIT */
/* OCDBT, the key-value store of tensorstore: a B+tree in files of a directory or an archive.
 *
 *   frame      u32 BE magic   u64 length of all   varint version 0   varint compression (1: zstd)
 *              body           u32 CRC-32C of all before
 *   manifest   uuid 16   kind   max inline   max node   u8 arity   compression [i32 level]
 *              files   versions   version nodes
 *   versions   n   generation   u8 height   file   offset   length   keys   bytes   bytes elsewhere
 *              u64 time   (each ×n)
 *   v. nodes   n   generation   file   offset   length   generations   u64 time   u8 height
 *              (each ×n)
 *   node       u8 height   files   n   prefix ×(n-1)   suffix ×n   [inner: common ×n]   key bytes
 *              leaf:   value length ×n   kind ×n   file ×k   offset ×k   inline values
 *              inner:  file   offset   length   keys   bytes   bytes elsewhere   (each ×n)
 *   files      n   prefix ×(n-1)   suffix ×n   base ×n   their bytes
 *
 * Numbers are varints. A key is the inherited prefix plus its own bytes; a child inherits this key
 * up to its common prefix. */
#include "formats/zarr/ocdbt.h"

#include "base/crc32c.h"
#include "codec/blosc.h"

#include <string.h>

#define MANIFEST   0x0CDB3A2Au
#define NODE       0x0CDB20DEu
#define MAX_HEIGHT 64u
#define MAX_BODY   ((uint64_t)256 << 20)
#define MAX_PATH   65535u
#define MOST_TIMES 4u /* most keys per byte of the store; real ones take more bytes */

/* The place of a value. */
typedef struct value_place {
    const uint8_t *inside; /* NULL: in a file */
    size_t file;           /* index in the store */
    uint64_t offset;
} value_place;

typedef struct file_table {
    tnf_str *paths; /* relative to the directory */
    uint64_t *base; /* length that children of its nodes inherit */
    uint64_t n;
} file_table;

typedef struct database {
    tnf_reader *r;
    const zr_store *files;
    zr_key *keys;
    value_place *places;
    size_t n, capacity, place_capacity;
    uint64_t most, visits; /* number of keys; nodes that may still be read */
    tnf_error *e;
} database;

/* ------------------------------------------------------------------ frames */

static tnf_status wrong_file(const database *d, tnf_str file, const char *what)
{
    return tnf_fail(d->e, TNF_EFORMAT, TNF_NO_OFFSET, "%s: %s", TNF_QUOTED(file), what);
}

/* Reads n numbers, for which there must be enough bytes. */
static uint64_t *read_numbers(database *d, tnf_cur *c, uint64_t n)
{
    if (n > tnf_left(c)) {
        c->bad = true;
        n = 0;
    }
    uint64_t *out = tnf_arena_array(d->r->scratch, n + 1, sizeof *out);
    for (uint64_t i = 0; out && i < n; i++)
        out[i] = tnf_varint(c);
    return out;
}

static tnf_status read_body(tnf_cur *out, database *d, const uint8_t *p, size_t n, uint32_t magic,
                            tnf_str file)
{
    if (n < 18 || tnf_be32(p) != magic)
        return wrong_file(d, file, "a node of the database has another magic number");
    if (tnf_le64(p + 4) != n)
        return wrong_file(d, file, "a node of the database has another length than its field says");
    if (tnf_crc32c(0, p, n - 4) != tnf_le32(p + n - 4))
        return wrong_file(d, file, "a node of the database does not match its crc32c");
    tnf_cur c = tnf_cur_over(p + 12, n - 16, 0);
    uint64_t version = tnf_varint(&c), packed = tnf_varint(&c), size;
    if (c.bad || version != 0 || packed > 1)
        return wrong_file(d, file, "a node of the database has an unknown version");
    if (!packed) {
        *out = c;
        return TNF_OK;
    }
    TNF_TRY(tnf_zr_measure_zstd(&size, c.p, tnf_left(&c), MAX_BODY, d->e));
    uint8_t *body = tnf_arena_raw(d->r->scratch, size + 1);
    if (!body)
        return tnf_arena_fail(d->r->scratch, "a node", d->e);
    TNF_TRY(tnf_zstd_decode(c.p, tnf_left(&c), body, (size_t)size, d->e));
    *out = tnf_cur_over(body, (size_t)size, 0);
    return TNF_OK;
}

/* --------------------------------------------------------------- file table */

static tnf_status join_paths(database *d, file_table *t, tnf_cur *c, tnf_str inherited,
                             const uint64_t *prefix, const uint64_t *suffix, tnf_str file)
{
    for (uint64_t i = 0; i < t->n; i++) {
        uint64_t keep = i ? prefix[i - 1] : 0, before = i ? t->paths[i - 1].n - inherited.n : 0;
        const char *bytes = tnf_bytes(c, suffix[i]);
        if (c->bad || keep > before || keep + suffix[i] + inherited.n > MAX_PATH ||
            t->base[i] > keep + suffix[i])
            return wrong_file(d, file, "its table of files is damaged");
        size_t n = inherited.n + (size_t)(keep + suffix[i]);
        char *path = tnf_arena_raw(d->r->scratch, n + 1);
        if (!path)
            return tnf_arena_fail(d->r->scratch, "a path", d->e);
        memcpy(path, inherited.p, inherited.n);
        if (keep)
            memcpy(path + inherited.n, t->paths[i - 1].p + inherited.n, (size_t)keep);
        memcpy(path + inherited.n + keep, bytes, (size_t)suffix[i]);
        t->paths[i] = (tnf_str) { path, n };
    }
    return TNF_OK;
}

static tnf_status read_files(file_table *t, database *d, tnf_cur *c, tnf_str inherited,
                             tnf_str file)
{
    t->n = tnf_varint(c);
    if (c->bad || t->n > tnf_left(c))
        return wrong_file(d, file, "its table of files is damaged");
    uint64_t *prefix = read_numbers(d, c, t->n ? t->n - 1 : 0);
    uint64_t *suffix = read_numbers(d, c, t->n);
    t->base = read_numbers(d, c, t->n);
    t->paths = tnf_arena_array(d->r->scratch, t->n + 1, sizeof *t->paths);
    if (!prefix || !suffix || !t->base || !t->paths)
        return tnf_arena_fail(d->r->scratch, "files", d->e);
    if (c->bad)
        return wrong_file(d, file, "its table of files is damaged");
    return join_paths(d, t, c, inherited, prefix, suffix, file);
}

/* Finds the file of a range; *out is its index in the store. */
static tnf_status find_file(size_t *out, const database *d, tnf_str path, uint64_t offset,
                            uint64_t n)
{
    size_t key = tnf_zr_find(d->files, path);
    if (key == SIZE_MAX)
        return tnf_fail(d->e, TNF_EFORMAT, TNF_NO_OFFSET, "the file %s of the database is missing",
                        TNF_QUOTED(path));
    uint64_t size = d->files->keys[key].size;
    if (offset > size || n > size - offset)
        return tnf_fail(d->e, TNF_ETRUNCATED, size,
                        "%s ends before data that the database places in it", TNF_QUOTED(path));
    *out = d->files->keys[key].index;
    return TNF_OK;
}

/* ------------------------------------------------------------------- nodes */

/* A node to be read, and its inherited prefix. */
typedef struct node_ref {
    tnf_str file, inherited, prefix;
    uint64_t offset, n;
    unsigned height;
} node_ref;

static tnf_status read_node(database *d, const node_ref *ref);

/* Makes complete keys, each from the inherited prefix and the previous key. */
static tnf_status read_keys(tnf_str *keys, database *d, tnf_cur *c, const node_ref *ref, uint64_t n,
                            const uint64_t *prefix, const uint64_t *suffix)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t keep = i ? prefix[i - 1] : 0, before = i ? keys[i - 1].n - ref->prefix.n : 0;
        const char *bytes = tnf_bytes(c, suffix[i]);
        if (c->bad || keep > before || keep + suffix[i] + ref->prefix.n > MAX_PATH)
            return wrong_file(d, ref->file, "a key of the database is damaged");
        size_t size = ref->prefix.n + (size_t)(keep + suffix[i]);
        char *key = tnf_arena_raw(d->r->arena, size + 1);
        if (!key)
            return tnf_arena_fail(d->r->arena, "keys", d->e);
        memcpy(key, ref->prefix.p, ref->prefix.n);
        if (keep)
            memcpy(key + ref->prefix.n, keys[i - 1].p + ref->prefix.n, (size_t)keep);
        memcpy(key + ref->prefix.n + keep, bytes, (size_t)suffix[i]);
        keys[i] = (tnf_str) { key, size };
    }
    return TNF_OK;
}

/* Adds a key. Keys of a tree are in ascending order, so none occurs twice. */
static tnf_status add_key(database *d, tnf_str name, uint64_t size, value_place at, tnf_str file)
{
    if (d->n && tnf_str_compare(d->keys[d->n - 1].name, name) >= 0)
        return wrong_file(d, file, "the keys of the database are not in order");
    zr_key *keys = tnf_arena_grow(d->r->arena, d->keys, d->n, &d->capacity, sizeof *keys, 64);
    value_place *places = keys ? tnf_arena_grow(d->r->arena, d->places, d->n, &d->place_capacity,
                                                sizeof *places, 64)
                               : NULL;
    if (!places)
        return tnf_arena_fail(d->r->arena, "keys", d->e);
    d->keys = keys;
    d->places = places;
    d->keys[d->n] = (zr_key) { name, size, d->n };
    d->places[d->n++] = at;
    return TNF_OK;
}

static tnf_status read_leaf(database *d, tnf_cur *c, const node_ref *ref, const file_table *files,
                            const tnf_str *keys, uint64_t n)
{
    uint64_t *length = read_numbers(d, c, n), *kind = read_numbers(d, c, n), outside = 0;
    for (uint64_t i = 0; kind && i < n && !c->bad; i++) {
        c->bad = kind[i] > 1;
        outside += kind[i];
    }
    uint64_t *file = read_numbers(d, c, c->bad ? 0 : outside);
    uint64_t *offset = read_numbers(d, c, c->bad ? 0 : outside), k = 0;
    if (!length || !kind || !file || !offset)
        return tnf_arena_fail(d->r->scratch, "a node", d->e);
    if (c->bad || n > d->most - d->n)
        return wrong_file(d, ref->file, "a leaf of the database is damaged");
    for (uint64_t i = 0; i < n; i++) {
        value_place at = { 0 };
        if (kind[i]) {
            if (file[k] >= files->n)
                return wrong_file(d, ref->file, "a value is in a file that does not exist");
            TNF_TRY(find_file(&at.file, d, files->paths[file[k]], offset[k], length[i]));
            at.offset = offset[k++];
        } else {
            const uint8_t *inside = tnf_bytes(c, length[i]);
            if (c->bad)
                return wrong_file(d, ref->file, "a value of the database ends too early");
            at.inside = (const uint8_t *)tnf_arena_str(d->r->arena, inside, (size_t)length[i]);
            if (!at.inside)
                return tnf_arena_fail(d->r->arena, "values", d->e);
        }
        TNF_TRY(add_key(d, keys[i], length[i], at, ref->file));
    }
    return tnf_left(c) ? wrong_file(d, ref->file, "a node of the database is too long") : TNF_OK;
}

static tnf_status read_inner(database *d, tnf_cur *c, const node_ref *ref, const file_table *files,
                             const tnf_str *keys, const uint64_t *common, uint64_t n)
{
    const uint64_t *column[6];
    for (size_t i = 0; i < 6; i++)
        if (!(column[i] = read_numbers(d, c, n)))
            return tnf_arena_fail(d->r->scratch, "a node", d->e);
    if (c->bad || tnf_left(c))
        return wrong_file(d, ref->file, "a node of the database is damaged");
    for (uint64_t i = 0; i < n; i++) {
        if (column[0][i] >= files->n || common[i] > keys[i].n - ref->prefix.n)
            return wrong_file(d, ref->file, "a node of the database has an invalid reference");
        tnf_str path = files->paths[column[0][i]];
        node_ref child = { .file = path,
                           .inherited = { path.p, ref->inherited.n + files->base[column[0][i]] },
                           .prefix = { keys[i].p, ref->prefix.n + (size_t)common[i] },
                           .offset = column[1][i],
                           .n = column[2][i],
                           .height = ref->height - 1 };
        TNF_TRY(read_node(d, &child));
    }
    return TNF_OK;
}

static tnf_status parse_node(database *d, const node_ref *ref, tnf_cur *c)
{
    file_table files;
    unsigned height = tnf_u8(c);
    if (height != ref->height)
        return wrong_file(d, ref->file,
                          "a node of the database has another height than its parent says");
    TNF_TRY(read_files(&files, d, c, ref->inherited, ref->file));
    uint64_t n = tnf_varint(c);
    if (c->bad || n == 0 || n > tnf_left(c))
        return wrong_file(d, ref->file, "a node of the database is damaged");
    uint64_t *prefix = read_numbers(d, c, n - 1), *suffix = read_numbers(d, c, n);
    uint64_t *common = height ? read_numbers(d, c, n) : suffix;
    tnf_str *keys = tnf_arena_array(d->r->scratch, n, sizeof *keys);
    if (!prefix || !suffix || !common || !keys)
        return tnf_arena_fail(d->r->scratch, "a node", d->e);
    TNF_TRY(read_keys(keys, d, c, ref, n, prefix, suffix));
    return height ? read_inner(d, c, ref, &files, keys, common, n)
                  : read_leaf(d, c, ref, &files, keys, n);
}

static tnf_status read_node(database *d, const node_ref *ref)
{
    size_t file;
    tnf_cur c;
    if (d->visits-- == 0)
        return wrong_file(d, ref->file, "the database has more nodes than keys");
    TNF_TRY(find_file(&file, d, ref->file, ref->offset, ref->n));
    if (ref->n > MAX_BODY)
        return wrong_file(d, ref->file, "a node of the database is too long");
    uint8_t *bytes = tnf_arena_raw(d->r->scratch, ref->n + 1);
    if (!bytes)
        return tnf_arena_fail(d->r->scratch, "a node", d->e);
    TNF_TRY(d->files->read(d->files, file, ref->offset, bytes, (size_t)ref->n, d->e));
    TNF_TRY(read_body(&c, d, bytes, (size_t)ref->n, NODE, ref->file));
    return parse_node(d, ref, &c);
}

/* ---------------------------------------------------------------- manifest */

/* Skips the settings of the database, which a reader does not need. */
static tnf_status skip_settings(database *d, tnf_cur *c, tnf_str name)
{
    tnf_bytes(c, 16);
    uint64_t kind = tnf_varint(c);
    tnf_varint(c); /* the longest value in a node */
    tnf_varint(c); /* the largest node */
    tnf_u8(c);     /* arity */
    if (tnf_varint(c) == 1)
        tnf_u32(c); /* level of zstd */
    if (c->bad || kind > 1)
        return wrong_file(d, name, "the manifest is damaged");
    return kind == 0 ? TNF_OK
                     : tnf_fail(d->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                                "the database has numbered manifests, which are not supported");
}

/* Skips the places of older versions. */
static tnf_status skip_older(database *d, tnf_cur *c)
{
    uint64_t n = tnf_varint(c);
    for (int i = 0; i < 5; i++)
        if (!read_numbers(d, c, n))
            return tnf_arena_fail(d->r->scratch, "the manifest", d->e);
    c->bad = c->bad || n > tnf_left(c) / 9;
    tnf_bytes(c, c->bad ? 0 : 9 * n);
    return TNF_OK;
}

static uint64_t most_keys(const zr_store *files)
{
    uint64_t all = 0;
    for (size_t i = 0; i < files->n; i++)
        if (!tnf_ckd_add(&all, all, files->keys[i].size))
            return UINT32_MAX;
    return all < UINT32_MAX / MOST_TIMES ? all * MOST_TIMES : UINT32_MAX;
}

static tnf_status read_root(database *d, tnf_cur *c, tnf_str name)
{
    file_table files;
    uint64_t *column[7];
    TNF_TRY(skip_settings(d, c, name));
    TNF_TRY(read_files(&files, d, c, (tnf_str) { "", 0 }, name));
    uint64_t n = tnf_varint(c);
    column[0] = read_numbers(d, c, n);
    const uint8_t *heights = tnf_bytes(c, n);
    for (int i = 1; i < 7; i++)
        column[i] = read_numbers(d, c, n);
    for (int i = 0; i < 7; i++)
        if (!column[i])
            return tnf_arena_fail(d->r->scratch, "the manifest", d->e);
    c->bad = c->bad || n > tnf_left(c) / 8;
    tnf_bytes(c, c->bad ? 0 : 8 * n); /* times */
    TNF_TRY(skip_older(d, c));
    if (c->bad || tnf_left(c))
        return wrong_file(d, name, "the manifest is damaged");
    if (n == 0 || column[4][n - 1] == 0)
        return TNF_OK;
    uint64_t file = column[1][n - 1];
    unsigned height = heights[n - 1];
    d->most = column[4][n - 1];
    if (file >= files.n || height > MAX_HEIGHT || d->most > most_keys(d->files))
        return wrong_file(d, name, "the manifest has an invalid reference");
    d->visits = (d->most + 1) * (height + 1u);
    tnf_str path = files.paths[file];
    node_ref root = { .file = path,
                      .inherited = { path.p, (size_t)files.base[file] },
                      .prefix = { "", 0 },
                      .offset = column[2][n - 1],
                      .n = column[3][n - 1],
                      .height = height };
    return read_node(d, &root);
}

/* Reads the value of a key, from any thread. */
typedef struct ocdbt {
    const zr_store *files;
    const value_place *places;
} ocdbt;

static tnf_status read_value(const zr_store *s, size_t i, uint64_t offset, void *dst, size_t n,
                             tnf_error *e)
{
    const ocdbt *o = s->ctx;
    const value_place *p = &o->places[i];
    if (n == 0)
        return TNF_OK;
    if (!p->inside)
        return o->files->read(o->files, p->file, p->offset + offset, dst, n, e);
    memcpy(dst, p->inside + offset, n);
    return TNF_OK;
}

tnf_status tnf_ocdbt_open(zr_store **out, tnf_reader *r, const zr_store *files, size_t manifest,
                          tnf_error *e)
{
    database d = { .r = r, .files = files, .e = e };
    const zr_key *m = &files->keys[manifest];
    zr_store *s = tnf_arena_alloc(r->arena, sizeof *s);
    ocdbt *o = tnf_arena_alloc(r->arena, sizeof *o);
    tnf_cur c;
    if (files->packed) /* each node would be decompressed from the start of its file */
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "a database in a compressed archive is not supported: unpack it");
    if (m->size > MAX_BODY)
        return wrong_file(&d, m->name, "the manifest is too long");
    uint8_t *bytes = tnf_arena_raw(r->scratch, m->size + 1);
    if (!s || !o || !bytes)
        return tnf_arena_fail(r->scratch, "the manifest", e);
    TNF_TRY(files->read(files, m->index, 0, bytes, (size_t)m->size, e));
    TNF_TRY(read_body(&c, &d, bytes, (size_t)m->size, MANIFEST, m->name));
    TNF_TRY(read_root(&d, &c, m->name));
    *o = (ocdbt) { files, d.places };
    *s = (zr_store) { .keys = d.keys, .n = d.n, .read = read_value, .ctx = o };
    *out = s;
    return TNF_OK;
}
