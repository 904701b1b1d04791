/* SPDX-License-Identifier: MIT */
/* Files of torch before 1.6: one stream.
 *
 *   pickle 0x1950A86A20F9469CFC6C | pickle 1001 | pickle {"little_endian": …}
 *   pickle of the object | pickle of a list of keys, sorted as text
 *   for each key: i64 count of elements | the elements, always little-endian
 *
 * The width of the elements is in the object's pickle, at the first mention of a storage.
 */
#include "formats/pytorch/pt.h"

#include "base/bytes.h"

#include <string.h>

#define WINDOW   ((uint64_t)64 << 10)
#define PROTOCOL 1001

static const uint8_t magic[10] = { 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19 };

/* In small files one window has all pickles and is read once. */
static tnf_status read_window(pt_file *f, uint64_t at, uint64_t n, tnf_cur *out, tnf_error *e)
{
    uint64_t skip = at - f->window_at;
    if (!f->window.p || at < f->window_at || skip > f->window.n || n > f->window.n - skip) {
        TNF_TRY(tnf_read_range(f->r, "pickle", at, n, UINT64_MAX, out, e));
        f->window = (tnf_str) { (const char *)out->p, (size_t)n };
        f->window_at = at;
        return TNF_OK;
    }
    *out = tnf_cur_over((const uint8_t *)f->window.p + skip, (size_t)n, at);
    return TNF_OK;
}

tnf_status tnf_pt_next_pickle(pt_file *f, tnf_pickle *out, uint64_t *at, uint64_t end,
                              const char *name, tnf_error *e)
{
    tnf_cur c;
    for (uint64_t window = WINDOW;; window *= 4) {
        uint64_t left = *at < end ? end - *at : 0;
        uint64_t n = left < window ? left : window;
        TNF_TRY(read_window(f, *at, n, &c, e));
        tnf_status status = tnf_pickle_read(out, c.p, tnf_left(&c), *at, f->r->scratch, e);
        if (status == TNF_ETRUNCATED && n < left)
            continue;
        f->base = *at;
        if (status != TNF_OK)
            return tnf_pt_bad_pickle(f, out, name, status, e);
        *at += out->used;
        return tnf_pt_audit(f, out, name, f->base, e);
    }
}

/* Adds storages by their first mention; `header` is the width of an element. */
static tnf_status add_mentions(pt_file *f, const tnf_pickle *p, tnf_error *e)
{
    for (size_t i = 0; i < p->persistent.n; i++) {
        const tnf_pickle_node *node = p->persistent.nodes[i];
        pt_mention m;
        if (!tnf_pt_is_storage(node))
            continue;
        TNF_TRY(tnf_pt_mention(&m, node, f->r->arena, e));
        pt_storage s = { .key = m.key, .header = m.type->width };
        TNF_TRY(tnf_pt_add_storage(f, &s, e));
    }
    return TNF_OK;
}

/* ("module", class, file, source text) is replaced by the class. The text becomes an attribute. */
static tnf_status take_sources(pt_file *f, const tnf_pickle *p, tnf_error *e)
{
    tnf_attrs sources = { .arena = f->r->arena };
    for (size_t i = 0; i < p->persistent.n; i++) {
        tnf_pickle_node *node = p->persistent.nodes[i];
        const tnf_pickle_node *id = node->as.items[0];
        if (id->kind != TNF_PICKLE_TUPLE || id->n < 4 ||
            !tnf_pickle_is_text(id->as.items[0], "module") ||
            id->as.items[1]->kind != TNF_PICKLE_GLOBAL)
            continue;
        const char *name = tnf_pt_global_name(id->as.items[1], f->r->arena);
        tnf_value text;
        if (!name)
            return tnf_arena_fail(f->r->arena, "a class", e);
        TNF_TRY(tnf_pt_value(&text, f, id->as.items[3], e));
        TNF_TRY(tnf_attrs_set(&sources, name, strlen(name), text, e));
        *node = *id->as.items[1];
    }
    if (!sources.n)
        return TNF_OK;
    tnf_warn(f->r, TNF_NO_OFFSET, "the file contains the source text of %zu class%s", sources.n,
             sources.n == 1 ? "" : "es");
    return tnf_set_attr(f->r, "pytorch.source", tnf_attrs_value(&sources), e);
}

static tnf_status place_storage(pt_file *f, const tnf_pickle_node *key, uint64_t *at, tnf_error *e)
{
    uint8_t count[8];
    uint64_t bytes, elements;
    if (key->kind != TNF_PICKLE_TEXT)
        return tnf_fail(e, TNF_EFORMAT, *at, "the key of a storage is not text");
    tnf_str name = { key->as.s, key->n };
    pt_storage *s = tnf_pt_find_storage(f, name);
    if (!s)
        return tnf_fail(e, TNF_EFORMAT, *at,
                        "no tensor names the storage %s, so its size is not known",
                        TNF_QUOTED(name));
    if (s->located)
        return tnf_fail(e, TNF_EFORMAT, *at, "the storage %s occurs twice", TNF_QUOTED(name));
    TNF_TRY(tnf_source_read(f->r->source, *at, count, sizeof count, e));
    elements = tnf_le64(count);
    if (elements > INT64_MAX || !tnf_ckd_mul(&bytes, elements, s->header))
        return tnf_fail(e, TNF_EFORMAT, *at, "the storage %s has an impossible size",
                        TNF_QUOTED(name));
    s->offset = *at + sizeof count;
    s->size = s->stored = bytes;
    s->located = true;
    if (!tnf_ckd_add(at, s->offset, bytes))
        return tnf_fail(e, TNF_EFORMAT, s->offset, "the storage %s ends beyond 2^64",
                        TNF_QUOTED(name));
    return TNF_OK;
}

/* A truncated file still has the storages before its end. */
static tnf_status place_storages(pt_file *f, const tnf_pickle_node *keys, uint64_t at, tnf_error *e)
{
    if (keys->kind != TNF_PICKLE_LIST)
        return tnf_fail(e, TNF_EFORMAT, at, "the keys of the storages are not a list");
    for (size_t i = 0; i < keys->n; i++) {
        tnf_status status = place_storage(f, keys->as.items[i], &at, e);
        if (status == TNF_ETRUNCATED && tnf_lose(f->r, status, e))
            return TNF_OK;
        TNF_TRY(status);
    }
    if (at < f->r->source->size) {
        tnf_warn(f->r, at, "%s the last storage, which torch ignores",
                 TNF_BYTES_FOLLOW(f->r->source->size - at));
        TNF_TRY(tnf_pt_scan_source(f, at, f->r->source->size, "the bytes after the storages", e));
        return tnf_add_extra(f->r, "pytorch.trailing", at, f->r->source->size - at, e);
    }
    return TNF_OK;
}

static tnf_status need_located(pt_file *f, pt_storage *s, tnf_error *e)
{
    (void)f;
    return s->located ? TNF_OK
                      : tnf_fail(e, TNF_ETRUNCATED, TNF_NO_OFFSET,
                                 "the storage %s is not in the file", TNF_QUOTED(s->key));
}

static bool is_magic(const tnf_pickle_node *node)
{
    return node->kind == TNF_PICKLE_BIG && node->n == sizeof magic &&
           memcmp(node->as.s, magic, sizeof magic) == 0;
}

/* Refuses a pickle that is not torch's. */
static tnf_status refuse_pickle(pt_file *f, const tnf_pickle *p, tnf_error *e)
{
    char names[120];
    tnf_pt_name_calls(names, sizeof names, p, f->r->scratch);
    return tnf_fail(e, TNF_EUNSUPPORTED, 0,
                    "this is a Python pickle, but not one of PyTorch; it is never run%s%s",
                    names[0] ? "; it names " : "", names);
}

/* Turns the view of a storage into an offset, as in later files. */
static tnf_status fold_views(pt_file *f, const tnf_pickle *p, tnf_error *e)
{
    for (size_t i = 0; i < p->calls.n; i++) {
        const tnf_pickle_node *args = p->calls.nodes[i]->as.call->args;
        pt_mention m;
        if (args->kind != TNF_PICKLE_TUPLE || args->n < 4 ||
            !tnf_pt_is_storage(args->as.items[0]) || args->as.items[1]->kind != TNF_PICKLE_INT)
            continue;
        TNF_TRY(tnf_pt_mention(&m, args->as.items[0], f->r->scratch, e));
        tnf_pickle_node *offset = m.start ? tnf_arena_alloc(f->r->scratch, sizeof *offset) : NULL;
        if (!m.start)
            continue;
        if (!offset)
            return tnf_arena_fail(f->r->scratch, "a tensor", e);
        *offset = *args->as.items[1];
        if (offset->as.i < 0 || m.start > (uint64_t)(INT64_MAX - offset->as.i))
            return tnf_fail(e, TNF_EFORMAT, f->base + offset->at,
                            "the view of a storage in the pickle is invalid");
        offset->as.i += (int64_t)m.start;
        args->as.items[1] = offset;
    }
    return TNF_OK;
}

tnf_status tnf_pt_index_legacy(pt_file *f, tnf_error *e)
{
    uint64_t at = 0, end = f->r->source->size;
    tnf_pickle first, second, info, object, keys;
    TNF_TRY(tnf_pt_next_pickle(f, &first, &at, end, "the first pickle", e));
    if (!is_magic(first.root))
        return refuse_pickle(f, &first, e);
    f->kind = f->r->version = "legacy";
    TNF_TRY(tnf_pt_next_pickle(f, &second, &at, end, "the version's pickle", e));
    if (second.root->kind != TNF_PICKLE_INT || second.root->as.i != PROTOCOL)
        return tnf_fail(e, TNF_EUNSUPPORTED, first.used,
                        "the version of the file is unknown; only 1001 is supported");
    TNF_TRY(tnf_pt_next_pickle(f, &info, &at, end, "the system's pickle", e));
    TNF_TRY(tnf_pt_next_pickle(f, &object, &at, end, "the object's pickle", e));
    uint64_t base = f->base;
    TNF_TRY(tnf_pt_next_pickle(f, &keys, &at, end, "the pickle of keys", e));
    f->base = base;
    f->locate = need_located;
    TNF_TRY(add_mentions(f, &object, e));
    TNF_TRY(take_sources(f, &object, e));
    TNF_TRY(place_storages(f, keys.root, at, e));
    TNF_TRY(tnf_set_attr(f->r, "pytorch.protocol", tnf_value_uint(object.protocol), e));
    TNF_TRY(tnf_pt_walk(f, object.root, NULL, object.used, e));
    TNF_TRY(tnf_pt_list_others(f, &object, e));
    TNF_TRY(fold_views(f, &object, e));
    for (size_t i = 0; i < object.persistent.n; i++)
        if (tnf_pt_is_storage(object.persistent.nodes[i]) &&
            object.persistent.nodes[i]->as.items[0]->n > 5)
            object.persistent.nodes[i]->as.items[0]->n = 5;
    return tnf_pt_keep_tree(f, &object, e);
}
