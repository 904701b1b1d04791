/* SPDX-License-Identifier: MIT */
/* Orbax, the checkpoints of JAX: a directory, or a zip archive of one, with an array of Zarr for
 * each leaf of a tree.
 *
 *   manifest.ocdbt, d/…      the arrays, in an OCDBT database; ocdbt.process_N/ has pieces of it
 *   NAME/.zarray …           or as directories
 *   _METADATA                JSON: the tree, with the keys that lead to each leaf
 *   _strings.json            leaves that are text
 *
 * The name of a leaf is its keys, joined by dots. */
#include "formats/zarr/ocdbt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METADATA "orbax.metadata"
#define STRINGS  "orbax.strings"

typedef struct leaf {
    tnf_str name;
    size_t key;
    bool v3;
} leaf;

typedef struct opening {
    tnf_reader *r;
    zr_store *files, *s; /* the directory or archive, and the store of the arrays */
    tnf_attrs paths;     /* by name */
    leaf *leaves;
    size_t n, capacity;
    tnf_error *e;
} opening;

static bool is_mark(const char *p, size_t n)
{
    static const char *const marks[] = { "manifest.ocdbt", "_METADATA", "_CHECKPOINT_METADATA" };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (n == strlen(marks[i]) && memcmp(p, marks[i], n) == 0)
            return true;
    return false;
}

static int probe_orbax(const tnf_probe *p)
{
    if (p->nhead >= 4 && memcmp(p->head, "PK\3\4", 4) == 0) /* it may also have documents of Zarr */
        return tnf_zr_archive_has(p, is_mark) ? TNF_PROBE_STRUCTURE + 6 : TNF_PROBE_NO;
    if (p->nhead >= 4 && memcmp(p->head, "\x0C\xDB\x3A\x2A", 4) == 0)
        return TNF_PROBE_MAGIC;
    if (p->nhead && p->head[0] == '{' && tnf_head_holds(p, "\"tree_metadata\""))
        return TNF_PROBE_STRUCTURE;
    return p->nhead && p->head[0] == '{' && tnf_head_holds(p, "\"item_handlers\"")
               ? TNF_PROBE_STRUCTURE
               : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- metadata */

static tnf_status read_file(tnf_str *out, opening *o, const char *name)
{
    size_t key = tnf_zr_find_in(o->files, (tnf_str) { "", 0 }, name);
    *out = (tnf_str) { NULL, 0 };
    if (key == SIZE_MAX)
        return TNF_OK;
    const zr_key *k = &o->files->keys[key];
    if (k->size > ZR_MAX_DOCUMENT)
        return tnf_fail(o->e, TNF_ELIMIT, TNF_NO_OFFSET, "%s is too long", name);
    char *text = tnf_arena_raw(o->r->arena, k->size + 1);
    if (!text)
        return tnf_arena_fail(o->r->arena, "a document", o->e);
    TNF_TRY(o->files->read(o->files, k->index, 0, text, (size_t)k->size, o->e));
    *out = (tnf_str) { text, (size_t)k->size };
    return TNF_OK;
}

/* Adds the keys of a leaf: they are its path, and joined its name. */
static tnf_status add_path(opening *o, const tnf_value *keys)
{
    tnf_buf name;
    tnf_value *items = tnf_arena_array(o->r->arena, keys->n + 1, sizeof *items);
    if (!items)
        return tnf_arena_fail(o->r->arena, "a path", o->e);
    tnf_buf_init(&name, &o->r->scratch->alloc, ZR_MAX_DOCUMENT);
    for (size_t i = 0; i < keys->n; i++) {
        const tnf_value *key = tnf_value_get(&keys->as.items[i], "key");
        char digits[24];
        tnf_str text = { digits, 0 };
        if (key && key->kind == TNF_STRING)
            text = (tnf_str) { key->as.s, key->n };
        else if (key && key->kind == TNF_INT)
            text.n = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)key->as.i);
        tnf_buf_puts(&name, i ? "." : "");
        tnf_buf_put(&name, text.p, text.n);
        char *kept = tnf_arena_str(o->r->arena, text.p, text.n);
        items[i] = tnf_value_str(TNF_STRING, kept, kept ? text.n : 0);
        if (!kept)
            name.status = TNF_ENOMEM;
    }
    tnf_value path = { .kind = TNF_ARRAY, .n = keys->n, .as.items = items };
    tnf_status status = tnf_buf_status(&name, "a name", o->e);
    if (status == TNF_OK)
        status = tnf_attrs_set(&o->paths, (const char *)name.p, name.n, path, o->e);
    tnf_buf_free(&name);
    return status;
}

static tnf_status read_tree(opening *o)
{
    tnf_str text, tree;
    zr_doc d, leaves;
    tnf_value v;
    TNF_TRY(read_file(&text, o, "_METADATA"));
    if (!text.p)
        return TNF_OK;
    TNF_TRY(tnf_zr_parse_doc(&d, o->r, text, "_METADATA", o->e));
    TNF_TRY(tnf_set_attr(o->r, METADATA, tnf_value_str(TNF_JSON, text.p, text.n), o->e));
    tree = tnf_zr_get(&d, "tree_metadata");
    if (!tree.p || tree.p[0] != '{')
        return TNF_OK;
    TNF_TRY(tnf_zr_parse_doc(&leaves, o->r, tree, "_METADATA", o->e));
    for (size_t i = 0; i < leaves.n; i++) {
        TNF_TRY(tnf_zr_tree(&v, o->r, &leaves, leaves.members[i].text, o->e));
        const tnf_value *keys = v.kind == TNF_MAP ? tnf_value_get(&v, "key_metadata") : NULL;
        if (keys && keys->kind == TNF_ARRAY)
            TNF_TRY(add_path(o, keys));
    }
    return TNF_OK;
}

static tnf_status read_strings(opening *o)
{
    tnf_str text;
    zr_doc checked;
    TNF_TRY(read_file(&text, o, "_strings.json"));
    if (!text.p)
        return TNF_OK;
    TNF_TRY(tnf_zr_parse_doc(&checked, o->r, text, "_strings.json", o->e));
    return tnf_set_attr(o->r, STRINGS, tnf_value_str(TNF_JSON, text.p, text.n), o->e);
}

/* ------------------------------------------------------------------ leaves */

static int by_name(const void *a, const void *b)
{
    return tnf_str_compare(((const leaf *)a)->name, ((const leaf *)b)->name);
}

static bool has_end(tnf_str key, const char *end, tnf_str *name)
{
    size_t n = strlen(end);
    if (key.n <= n || memcmp(key.p + key.n - n, end, n) != 0)
        return false;
    *name = (tnf_str) { key.p, key.n - n };
    return true;
}

static tnf_status find_leaves(opening *o)
{
    for (size_t i = 0; i < o->s->n; i++) {
        leaf x = { .key = i };
        tnf_str key = o->s->keys[i].name;
        if (!has_end(key, "/.zarray", &x.name) && !(x.v3 = has_end(key, "/zarr.json", &x.name)))
            continue;
        leaf *leaves = tnf_arena_grow(o->r->scratch, o->leaves, o->n, &o->capacity, sizeof *leaves,
                                      64);
        if (!leaves)
            return tnf_arena_fail(o->r->scratch, "arrays", o->e);
        o->leaves = leaves;
        o->leaves[o->n++] = x;
    }
    if (o->n)
        qsort(o->leaves, o->n, sizeof *o->leaves, by_name);
    return TNF_OK;
}

static tnf_status add_leaf(opening *o, const leaf *x)
{
    zr_doc d;
    tnf_member *path, more;
    const tnf_str none = { NULL, 0 };
    TNF_TRY(tnf_zr_read_doc(&d, o->r, o->s, x->key, o->e));
    if (x->v3 && !tnf_str_is(tnf_zr_get(&d, "node_type"), "\"array\""))
        return TNF_OK;
    TNF_TRY(tnf_attrs_find(&o->paths, x->name.p, x->name.n, &path, o->e));
    if (path)
        more = (tnf_member) { { "orbax.path", 10 }, path->value };
    return tnf_zr_add_array(o->r, o->s, x->name, x->name, &d, x->v3, none, path ? &more : NULL,
                            o->e);
}

/* A directory with several items or steps: lists the checkpoints in it for the error. Databases of
 * processes belong to the main one next to them. */
static tnf_status name_choices(const opening *o)
{
    size_t found = 0;
    tnf_str first = { NULL, 0 }, last = first, name;
    for (size_t i = 0; i < o->files->n; i++) {
        tnf_str key = o->files->keys[i].name;
        if ((!has_end(key, "/_METADATA", &name) && !has_end(key, "/manifest.ocdbt", &name)) ||
            memmem(name.p, name.n, "ocdbt.process_", 14) ||
            (found && name.n == last.n && memcmp(name.p, last.p, name.n) == 0))
            continue;
        first = found++ ? first : name;
        last = name;
    }
    if (found == 1)
        return tnf_fail(o->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the checkpoint in this directory is %s: open that one", TNF_QUOTED(first));
    if (found)
        return tnf_fail(o->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the directory holds %zu checkpoints, from %s to %s: open one of them",
                        found, TNF_QUOTED(first), TNF_QUOTED(last));
    return TNF_OK;
}

/* A directory with a temporary name belongs to an unfinished or aborted save. */
static void warn_unfinished(tnf_reader *r)
{
    static const char mark[] = ".orbax-checkpoint-tmp-";
    if ((r->folder && strstr(r->folder, mark)) || (r->stem && strstr(r->stem, mark)))
        tnf_warn(r, TNF_NO_OFFSET,
                 "the directory has the name of an unfinished save: arrays may be missing");
}

static tnf_status index_orbax(tnf_reader *r, tnf_error *e)
{
    opening o = { .r = r, .e = e };
    zr_state *state = tnf_arena_alloc(r->arena, sizeof *state);
    if (!state)
        return tnf_arena_fail(r->arena, "a checkpoint", e);
    TNF_TRY(tnf_zr_open_store(&o.files, r, e));
    state->cache = tnf_zr_cache_new();
    if (!state->cache)
        return tnf_no_memory("chunks", e);
    state->store = o.files;
    r->state = state;
    o.paths.arena = r->scratch;
    size_t manifest = tnf_zr_find(o.files, (tnf_str) { "manifest.ocdbt", 14 });
    o.s = o.files;
    if (manifest != SIZE_MAX)
        TNF_TRY(tnf_ocdbt_open(&o.s, r, o.files, manifest, e));
    TNF_TRY(read_tree(&o));
    TNF_TRY(read_strings(&o));
    TNF_TRY(find_leaves(&o));
    bool described = tnf_zr_find(o.files, (tnf_str) { "_METADATA", 9 }) != SIZE_MAX;
    if (manifest == SIZE_MAX && !described)
        TNF_TRY(name_choices(&o));
    if (manifest == SIZE_MAX && !described && o.n == 0)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the directory has no arrays, and neither manifest.ocdbt nor _METADATA");
    warn_unfinished(r);
    for (size_t i = 0; i < o.n; i++)
        TNF_TRY(add_leaf(&o, &o.leaves[i]));
    return TNF_OK;
}

const tnf_format tnf_format_orbax = {
    .name = "orbax",
    .title = "Orbax checkpoint (directory or zip, OCDBT or Zarr)",
    .extensions = "ocdbt",
    .family = "orbax",
    .caps = TNF_CAN_READ,
    .folder_marks = "manifest.ocdbt _METADATA _CHECKPOINT_METADATA",
    .probe = probe_orbax,
    .index = index_orbax,
    .decode = tnf_zr_decode,
    .slice = tnf_zr_slice,
    .close = tnf_zr_close,
    .verify = tnf_zr_verify,
};
