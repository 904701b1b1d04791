/* SPDX-License-Identifier: MIT */
/* Zarr 2 and 3: a directory or a zip archive of JSON documents and chunks.
 *
 *   version 2    .zgroup .zattrs              the root
 *                a/.zarray a/.zattrs          an array, its chunks a/0.0 a/0.1 …
 *   version 3    zarr.json                    the root, with its attributes
 *                a/zarr.json                  an array, its chunks a/c/0/0 a/c/0/1 …
 *
 *   chunk        elements in row-major order, encoded by the codecs of the document; chunks at
 *                the edges are complete. A missing chunk has the fill value.
 *
 * Documents describe the content; .zmetadata is only a copy of all of them. */
#include "formats/zarr/zr.h"

#include "container/path.h"
#include "formats/zarr/write.h"

#include <stdlib.h>
#include <string.h>

#define ATTRS  "zarr.attrs"
#define GROUPS "zarr.groups"
#define DATA   "data"

/* ------------------------------------------------------------------- probe */

static int probe_zarr(const tnf_probe *p)
{
    bool zip = p->nhead >= 4 && memcmp(p->head, "PK\3\4", 4) == 0;
    bool named = strcmp(p->ext, "zarr.zip") == 0;
    if (zip)
        return tnf_zr_archive_has(p, tnf_zr_is_document) ? TNF_PROBE_STRUCTURE + 5
               : named                                   ? TNF_PROBE_PLAUSIBLE + 5
                                                         : 0;
    bool document = strcmp(p->ext, "zarray") == 0 || strcmp(p->ext, "zgroup") == 0 ||
                    strcmp(p->ext, "zmetadata") == 0;
    size_t at = 0;
    while (at < p->nhead && strchr(" \t\r\n", p->head[at]))
        at++;
    bool json = at < p->nhead && p->head[at] == '{';
    if (json &&
        (tnf_head_holds(p, "\"zarr_format\"") || tnf_head_holds(p, "\"zarr_consolidated_format\"")))
        return TNF_PROBE_STRUCTURE;
    return document ? TNF_PROBE_PLAUSIBLE : TNF_PROBE_NO;
}

/* ------------------------------------------------------------------- nodes */

typedef struct node {
    tnf_str path;
    size_t key; /* key of its document */
    bool array; /* version 2: known by the document's name; version 3: known after reading it */
    zr_doc doc;
} node;

typedef struct walk {
    tnf_reader *r;
    const zr_store *s;
    bool v3;
    node *nodes;
    size_t n, capacity;
    tnf_attrs groups;
    bool implied;       /* groups without attributes are only the directories of names */
    size_t stray_files; /* files that belong to no array */
    tnf_str first_stray;
    tnf_error *e;
} walk;

static int by_path(const void *a, const void *b)
{
    return tnf_str_compare(((const node *)a)->path, ((const node *)b)->path);
}

static tnf_status add_node(walk *w, size_t key, const char *document, bool array)
{
    tnf_str name = w->s->keys[key].name;
    size_t n = name.n - strlen(document);
    node *nodes = tnf_arena_grow(w->r->scratch, w->nodes, w->n, &w->capacity, sizeof *nodes, 16);
    if (!nodes)
        return tnf_arena_fail(w->r->scratch, "a store", w->e);
    w->nodes = nodes;
    w->nodes[w->n++] = (node) { .path = { name.p, n ? n - 1 : 0 }, .key = key, .array = array };
    return TNF_OK;
}

static bool is_array(const walk *w, tnf_str path)
{
    node key = { .path = path };
    const node *x = bsearch(&key, w->nodes, w->n, sizeof key, by_path);
    return x && x->array;
}

/* Counts files other than documents outside the directories of arrays, where chunks are. */
static void count_stray_files(walk *w)
{
    for (size_t i = 0; i < w->s->n && w->n; i++) {
        tnf_str name = w->s->keys[i].name;
        bool known = tnf_zr_is_document(name.p, name.n) || is_array(w, (tnf_str) { name.p, 0 });
        for (size_t n = name.n; n-- > 0 && !known;)
            known = name.p[n] == '/' && is_array(w, (tnf_str) { name.p, n });
        if (!known && w->stray_files++ == 0)
            w->first_stray = name;
    }
}

static tnf_status add_if_document(walk *w, size_t key)
{
    tnf_str name = w->s->keys[key].name;
    if (w->v3 && tnf_zr_is_named(name.p, name.n, "zarr.json"))
        return add_node(w, key, "zarr.json", false);
    if (!w->v3 && tnf_zr_is_named(name.p, name.n, ".zarray"))
        return add_node(w, key, ".zarray", true);
    if (!w->v3 && tnf_zr_is_named(name.p, name.n, ".zgroup"))
        return add_node(w, key, ".zgroup", false);
    return TNF_OK;
}

static tnf_status read_nodes(walk *w)
{
    for (size_t i = 0; i < w->s->n; i++)
        TNF_TRY(add_if_document(w, i));
    if (w->n)
        qsort(w->nodes, w->n, sizeof *w->nodes, by_path);
    for (size_t i = 0; i < w->n; i++) {
        node *x = &w->nodes[i];
        if (x->path.n)
            TNF_TRY(tnf_path_check(x->path, w->e));
        TNF_TRY(tnf_zr_read_doc(&x->doc, w->r, w->s, x->key, w->e));
        tnf_str type = tnf_zr_get(&x->doc, "node_type");
        if (w->v3)
            x->array = tnf_str_is(type, "\"array\"");
        if (w->v3 && !x->array && !tnf_str_is(type, "\"group\""))
            return tnf_zr_wrong(&x->doc, w->e, "is neither a group nor an array");
        if (!tnf_str_is(tnf_zr_get(&x->doc, "zarr_format"), w->v3 ? "3" : "2"))
            return tnf_fail(w->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "%s has another zarr_format than its name says",
                            TNF_VISIBLE(x->doc.name));
    }
    return TNF_OK;
}

/* Reads the text of .zattrs next to a document of version 2. */
static tnf_status read_attrs(tnf_str *out, walk *w, const node *x)
{
    *out = (tnf_str) { NULL, 0 };
    if (w->v3) {
        *out = tnf_zr_get(&x->doc, "attributes");
        return TNF_OK;
    }
    size_t key = tnf_zr_find_in(w->s, x->path, ".zattrs");
    if (key == SIZE_MAX)
        return TNF_OK;
    zr_doc checked;
    tnf_str text;
    TNF_TRY(tnf_zr_read_doc(&checked, w->r, w->s, key, w->e));
    TNF_TRY(tnf_zr_read_text(&text, w->r, w->s, key, w->e));
    while (text.n > 0 && strchr(" \t\r\n", text.p[text.n - 1]))
        text.n--;
    while (text.n > 0 && strchr(" \t\r\n", *text.p)) {
        text.p++;
        text.n--;
    }
    *out = text;
    return TNF_OK;
}

/* ------------------------------------------------------------------ groups */

/* Splits Tenfold's own text off the attributes and restores it. */
static tnf_status split_attrs(tnf_str *out, walk *w, tnf_str attrs, const char *name)
{
    zr_doc d, own;
    tnf_buf b;
    *out = (tnf_str) { NULL, 0 };
    if (!attrs.p || tnf_str_is(attrs, "null"))
        return TNF_OK;
    TNF_TRY(tnf_zr_parse_doc(&d, w->r, attrs, name, w->e));
    tnf_str text = tnf_zr_get(&d, ZR_OWN);
    w->implied = tnf_str_is(tnf_zr_get(&d, ZR_IMPLIED), "true");
    if (!w->implied && (!text.p || text.p[0] != '{')) {
        *out = d.n ? attrs : *out;
        return TNF_OK;
    }
    TNF_TRY(tnf_zr_parse_doc(&own, w->r, text.p ? text : (tnf_str) { "{}", 2 }, name, w->e));
    for (size_t i = 0; i < own.n; i++) {
        tnf_value v;
        TNF_TRY(tnf_zr_tree(&v, w->r, &own, own.members[i].text, w->e));
        if (v.kind == TNF_STRING)
            TNF_TRY(tnf_set_text(w->r, own.members[i].key, (tnf_str) { v.as.s, v.n }, w->e));
    }
    tnf_buf_init(&b, &w->r->scratch->alloc, ZR_MAX_DOCUMENT);
    size_t kept = 0;
    for (size_t i = 0; i < d.n; i++) {
        if (tnf_str_is(d.members[i].key, ZR_OWN) || tnf_str_is(d.members[i].key, ZR_IMPLIED))
            continue;
        tnf_buf_puts(&b, kept++ ? ", " : "{");
        tnf_json_put_string(&b, d.members[i].key.p, d.members[i].key.n);
        tnf_buf_puts(&b, ": ");
        tnf_buf_put(&b, d.members[i].text.p, d.members[i].text.n);
    }
    tnf_buf_puts(&b, kept ? "}" : "");
    tnf_status status = tnf_buf_status(&b, "the attributes", w->e);
    if (status == TNF_OK && kept) {
        *out = (tnf_str) { tnf_arena_str(w->r->arena, b.p, b.n), b.n };
        status = out->p ? TNF_OK : tnf_arena_fail(w->r->arena, "attributes", w->e);
    }
    tnf_buf_free(&b);
    return status;
}

static tnf_status add_group(walk *w, const node *x)
{
    tnf_str attrs;
    TNF_TRY(read_attrs(&attrs, w, x));
    if (x->path.n == 0) {
        TNF_TRY(split_attrs(&attrs, w, attrs, x->doc.name));
        if (!attrs.p)
            return TNF_OK;
        tnf_value v = tnf_zr_json(w->r, attrs);
        return v.as.s ? tnf_set_attr(w->r, ATTRS, v, w->e)
                      : tnf_arena_fail(w->r->arena, "attributes", w->e);
    }
    if (!attrs.p || tnf_str_is(attrs, "null"))
        attrs = (tnf_str) { "{}", 2 };
    if (w->implied && tnf_str_is(attrs, "{}"))
        return TNF_OK;
    tnf_value v = tnf_zr_json(w->r, attrs);
    return v.as.s ? tnf_attrs_set(&w->groups, x->path.p, x->path.n, v, w->e)
                  : tnf_arena_fail(w->r->arena, "attributes", w->e);
}

static tnf_status add_array(walk *w, const node *x)
{
    tnf_str attrs, name = { DATA, sizeof DATA - 1 };
    TNF_TRY(read_attrs(&attrs, w, x));
    if (x->path.n)
        name = x->path;
    return tnf_zr_add_array(w->r, w->s, name, x->path, &x->doc, w->v3, attrs, NULL, w->e);
}

/* ------------------------------------------------------------ consolidated */

/* Checks the keys of the consolidated copy: they must not leave the store and should exist. */
static tnf_status check_copy(walk *w, tnf_str text, const char *name)
{
    zr_doc copy;
    size_t missing = 0;
    tnf_str first = { NULL, 0 };
    if (!text.p || text.p[0] != '{')
        return TNF_OK;
    TNF_TRY(tnf_zr_parse_doc(&copy, w->r, text, name, w->e));
    for (size_t i = 0; i < copy.n; i++) {
        tnf_str key = copy.members[i].key;
        tnf_status status = key.n ? tnf_path_check(key, w->e) : TNF_OK;
        if (status != TNF_OK) {
            tnf_error_prefix(w->e, TNF_VISIBLE(name));
            return tnf_fail(w->e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "%s names %s, which is outside the store", TNF_VISIBLE(name),
                            TNF_QUOTED(key));
        }
        size_t there = w->v3 ? tnf_zr_find_in(w->s, key, "zarr.json") : tnf_zr_find(w->s, key);
        if (there == SIZE_MAX && missing++ == 0)
            first = key;
    }
    if (missing)
        tnf_warn(w->r, TNF_NO_OFFSET,
                 "%s names documents that do not exist, such as %s (number: %zu)",
                 TNF_VISIBLE(name), TNF_QUOTED(first), missing);
    return TNF_OK;
}

static tnf_status check_consolidated(walk *w)
{
    zr_doc d;
    size_t key = tnf_zr_find(w->s, (tnf_str) { ".zmetadata", 10 });
    if (!w->v3 && key != SIZE_MAX) {
        TNF_TRY(tnf_zr_read_doc(&d, w->r, w->s, key, w->e));
        return check_copy(w, tnf_zr_get(&d, "metadata"), d.name);
    }
    if (!w->v3 || !w->n || w->nodes[0].path.n)
        return TNF_OK;
    tnf_str text = tnf_zr_get(&w->nodes[0].doc, "consolidated_metadata");
    if (!text.p || text.p[0] != '{')
        return TNF_OK;
    TNF_TRY(tnf_zr_parse_doc(&d, w->r, text, w->nodes[0].doc.name, w->e));
    return check_copy(w, tnf_zr_get(&d, "metadata"), d.name);
}

/* ------------------------------------------------------------------- index */

static tnf_status add_nodes(walk *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (!w->nodes[i].array)
            TNF_TRY(add_group(w, &w->nodes[i]));
    if (w->groups.n)
        TNF_TRY(tnf_set_attr(w->r, GROUPS, tnf_attrs_value(&w->groups), w->e));
    for (size_t i = 0; i < w->n; i++) {
        if (!w->nodes[i].array)
            continue;
        tnf_error why = { .offset = TNF_NO_OFFSET };
        walk one = *w;
        one.e = &why;
        tnf_status status = add_array(&one, &w->nodes[i]);
        if (status == TNF_OK ||
            tnf_lose_tensor(w->r, w->nodes[i].path, why.offset, false, why.message))
            continue;
        if (w->e)
            *w->e = why;
        return status;
    }
    return TNF_OK;
}

static tnf_status index_zarr(tnf_reader *r, tnf_error *e)
{
    zr_store *s;
    walk w = { .r = r, .e = e };
    zr_state *state = tnf_arena_alloc(r->arena, sizeof *state);
    if (!state)
        return tnf_arena_fail(r->arena, "a store", e);
    TNF_TRY(tnf_zr_open_store(&s, r, e));
    state->cache = tnf_zr_cache_new();
    if (!state->cache)
        return tnf_no_memory("chunks", e);
    state->store = s;
    r->state = state;
    w.s = s;
    w.groups.arena = r->arena;
    const tnf_str root = { "", 0 };
    bool v2 = tnf_zr_find_in(s, root, ".zgroup") != SIZE_MAX ||
              tnf_zr_find_in(s, root, ".zarray") != SIZE_MAX ||
              tnf_zr_find_in(s, root, ".zmetadata") != SIZE_MAX;
    w.v3 = tnf_zr_find_in(s, root, "zarr.json") != SIZE_MAX;
    if (!v2 && !w.v3)
        return tnf_fail(
            e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
            "this is not a Zarr store: there is neither zarr.json nor .zgroup nor .zarray");
    if (v2 && w.v3)
        tnf_warn(r, TNF_NO_OFFSET, "there are documents of both Zarr 2 and Zarr 3: Zarr 3 is read");
    r->version = w.v3 ? "3" : "2";
    TNF_TRY(read_nodes(&w));
    TNF_TRY(check_consolidated(&w));
    TNF_TRY(add_nodes(&w));
    count_stray_files(&w);
    if (w.stray_files)
        tnf_warn(r, TNF_NO_OFFSET,
                 "some files belong to no array and are not kept, such as %s (number: %zu)",
                 TNF_QUOTED(w.first_stray), w.stray_files);
    return TNF_OK;
}

const tnf_format tnf_format_zarr = {
    .name = "zarr",
    .title = "Zarr 2 and 3 (directory, .zarr.zip)",
    .extensions = "zarr zarr.zip",
    .family = "zarr",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { .types = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128 bf16 f8_e4m3fn "
                      "f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz f8_e8m0 f4_e2m1 i4 u4 i2 u2",
             .layouts = "dense",
             .zero_rank = true,
             .max_rank = ZR_MAX_RANK,
             .utf8_names = true,
             .attrs = TNF_HOLDS_TEXT,
             .sorts = tnf_compare_names,
             .file_attrs = ATTRS " " GROUPS,
             .object_attrs = "zarr.attrs zarr.dimension_names",
             .no_place = tnf_zr_no_place,
             .derived = "zarr.chunks zarr.codecs zarr.fill_value",
             .takes = tnf_zr_takes,
             .fits = tnf_zr_fits },
    .write_options = tnf_zr_write_options,
    .folder_marks = "zarr.json .zgroup .zarray",
    .folder_extensions = "zarr",
    .probe = probe_zarr,
    .index = index_zarr,
    .decode = tnf_zr_decode,
    .slice = tnf_zr_slice,
    .close = tnf_zr_close,
    .verify = tnf_zr_verify,
    .write = TNF_WRITES(tnf_zr_write),
};
