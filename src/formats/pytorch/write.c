/* SPDX-License-Identifier: MIT */
/* The writer. It streams a zip archive as torch.save() writes it; every record begins at a multiple
 * of 64.
 *
 *   data.pkl .format_version .storage_alignment byteorder data/0 … version .data/serialization_id
 *
 * The pickle is that of pytorch.tree, or a dict of all tensors. A storage is written once. Tensors
 * that were views of it and still are share it; other tensors get separate storages.
 */
#include "formats/pytorch/write.h"
#include "formats/pytorch/emit.h"

#include "base/bytes.h"
#include "wire/json.h"
#include "wire/zip.h"

#include <stdio.h>
#include <string.h>

#define MAX_PICKLE ((uint64_t)1 << 30)
#define MAX_REORDERED                                                                              \
    ((uint64_t)16 << 20) /* reordering takes memory: larger ones are written row by row            \
                          */

static tnf_status no_memory(const pt_out *o)
{
    return tnf_arena_fail(o->a, "a pickle", o->e);
}

/* ------------------------------------------------------------------- flat */

static tnf_status flat_tree(pt_out *o, tnf_pickle_node **root)
{
    const tnf_catalog *c = o->w->catalog;
    const uint32_t *order;
    TNF_TRY(tnf_sorted(o->w, &order, NULL, o->e)); /* independent of the source format */
    tnf_pickle_node **items = tnf_arena_array(o->a, 2 * (uint64_t)c->n, sizeof(tnf_pickle_node *));
    if (!items)
        return no_memory(o);
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *t = tnf_nth(o->w, order, i);
        items[2 * i] = tnf_pt_new_text(o->a, t->name.p, t->name.n);
        items[2 * i + 1] = tnf_pt_object_node(o, t);
        if (!items[2 * i] || !items[2 * i + 1])
            return no_memory(o);
    }
    tnf_pickle_node *dict = tnf_pt_new_list(o->a, TNF_PICKLE_DICT, items, 2 * c->n);
    if (!dict)
        return no_memory(o);
    *root = dict;
    if (!o->w->options[PT_WRITE_CLASS].u)
        return TNF_OK;
    *root = tnf_pt_new_call(o->a, o->ordered, o->empty);
    if (!*root)
        return no_memory(o);
    (*root)->as.call->dict = dict;
    return TNF_OK;
}

/* ------------------------------------------------------------------- tree */

typedef struct tied {
    tnf_str key; /* must be first, for tnf_named */
    const tnf_part *base;
} tied;

static tnf_str key_of(const tnf_pickle_node *storage)
{
    const tnf_pickle_node *key = storage->as.items[0]->as.items[2];
    return (tnf_str) { key->as.s, key->n };
}

/* Records the storage whose bytes a tensor covers. */
static tnf_status add_base(pt_out *o, tnf_named *bases, const pt_named *x, const pt_tensor *t)
{
    const tnf_pickle_node *storage = tnf_pt_storage_of(x->node);
    uint32_t known;
    if (!x->object || !storage || t->nparts != 1 || !tnf_pt_is_same(t, x->object) ||
        !tnf_pt_is_base(t) || x->object->order == TNF_ORDER_F)
        return TNF_OK;
    tied row = { key_of(storage), &x->object->parts[0] };
    return tnf_named_add(bases, &row, &known, o->e);
}

/* Keeps the common nodes of both storage ids, so they are shared as before. */
static void keep_words(const tnf_pickle_node *fresh, const tnf_pickle_node *old)
{
    tnf_str a = fresh->as.items[1]->as.global->name, b = old->as.items[1]->as.global->name;
    if (a.n != b.n || memcmp(a.p, b.p, a.n) != 0)
        return;
    fresh->as.items[0] = old->as.items[0];
    fresh->as.items[1] = old->as.items[1];
    fresh->as.items[3] = old->as.items[3];
}

/* Replaces the complete call. */
static tnf_status replace_node(pt_out *o, const pt_named *x)
{
    tnf_pickle_node *fresh = tnf_pt_object_node(o, x->object);
    if (!fresh)
        return no_memory(o);
    *x->node = *fresh;
    x->node->number = PT_PLACED;
    return TNF_OK;
}

/* Keeps the strides of a tensor; its storage is written in their order. */
static tnf_status keep_order(pt_out *o, const tnf_pickle_node *storage, const pt_dense *d)
{
    uint32_t i = tnf_named_find(&o->parts_by_key, key_of(storage));
    pt_dense *copy = tnf_arena_alloc(o->a, sizeof *copy);
    if (!copy)
        return no_memory(o);
    *copy = *d;
    ((pt_emitted *)tnf_named_at(&o->parts_by_key, i))->reordered = copy;
    o->reordered = true;
    return TNF_OK;
}

/* Points a view to a separate storage, in row-major order unless it covers its storage in another
 * order. */
static tnf_status place_view(pt_out *o, const tnf_object *object, const tnf_part *part,
                             tnf_pickle_node *node, const pt_dense *d)
{
    tnf_pickle_node *args = tnf_pt_view_args(node), *storage = tnf_pt_storage_of(node);
    tnf_pickle_node *items[4];
    pt_view *v = &o->view;
    *v = (pt_view) { .type = d->type, .rank = d->rank, .columns = object->order == TNF_ORDER_F };
    memcpy(v->shape, d->shape, d->rank * sizeof *v->shape);
    tnf_pt_view_items(o, object, part, v, items);
    for (size_t k = 0; k < 4; k++)
        if (!items[k])
            return no_memory(o);
    keep_words(items[0]->as.items[0], storage->as.items[0]);
    if (args && object->order == TNF_ORDER_C && part->nbytes == d->limit &&
        part->nbytes <= MAX_REORDERED && tnf_pt_is_reordered(d)) {
        items[3] = args->as.items[3];
        TNF_TRY(keep_order(o, items[0], d));
    }
    if (!args) {
        *node = *items[0];
        return TNF_OK;
    }
    for (size_t k = 0; k < 4; k++)
        args->as.items[k] = items[k];
    args->number = PT_PLACED;
    if (d->conj || d->neg) /* already applied to the bytes */
        args->n--;
    return TNF_OK;
}

/* Can every part be placed separately? No part may also belong to another tensor. */
static bool parts_separable(const pt_tensor *t)
{
    for (uint32_t i = 0; i < t->nparts; i++) {
        tnf_pickle_node *args = tnf_pt_view_args(t->parts[i].node);
        if (!args || args->number == PT_PLACED)
            return false;
    }
    return true;
}

static tnf_status place_parts(pt_out *o, const pt_named *x, const pt_tensor *t)
{
    if (!parts_separable(t))
        return replace_node(o, x);
    for (uint32_t i = 0; i < t->nparts; i++)
        TNF_TRY(place_view(o, x->object, tnf_object_part(x->object, t->roles[i]), t->parts[i].node,
                           &t->parts[i]));
    return TNF_OK;
}

/* Points the tensor to separate storages, or does not change it if the base has its bytes. */
static tnf_status place_tensor(pt_out *o, const tnf_named *bases, const pt_named *x,
                               const pt_tensor *t)
{
    const tnf_object *object = x->object;
    tnf_pickle_node *storage = tnf_pt_storage_of(x->node);
    if (!object || (t->kind && strcmp(t->kind, "storage") != 0))
        return TNF_OK; /* the bytes of numpy arrays are in the tree; meta tensors have none */
    if (!tnf_pt_is_same(t, object))
        return replace_node(o, x);
    if (t->nparts > 1 || !storage)
        return place_parts(o, x, t);
    uint32_t i = tnf_named_find(bases, key_of(storage));
    const tied *base = i == TNF_HASH_NONE ? NULL : tnf_named_at(bases, i);
    uint32_t known;
    bool shares = base && tnf_pt_is_view_of(&object->parts[0], base->base);
    if (base && !shares && object->order == TNF_ORDER_C)
        TNF_TRY(tnf_pt_compare_views(&shares, &object->parts[0], base->base, &t->parts[0], o->e));
    if (shares) {
        pt_emitted row = { .key = base->key, .part = base->base };
        return tnf_named_add(&o->parts_by_key, &row, &known, o->e);
    }
    const tnf_pickle_node *args = tnf_pt_view_args(x->node);
    if (args && args->number == PT_PLACED)
        return replace_node(o, x);
    return place_view(o, object, &object->parts[0], x->node, &t->parts[0]);
}

/* Resolves tensors one by one, twice: keeping them all would take kilobytes for each. */
static tnf_status place_tree(pt_out *o, const pt_named *list, size_t n)
{
    tnf_named bases;
    tnf_reader r = { .arena = o->a, .scratch = o->a };
    pt_file f = { .r = &r, .blind = true };
    pt_tensor *t = tnf_arena_alloc(o->a, sizeof *t);
    if (!t)
        return no_memory(o);
    tnf_named_init(&bases, sizeof(tied), &o->a->alloc, MAX_PICKLE);
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < n && status == TNF_OK; i++) {
        list[i].node->number = 0;
        status = tnf_pt_resolve(t, &f, list[i].node, o->e);
        if (status == TNF_OK)
            status = add_base(o, &bases, &list[i], t);
    }
    for (size_t i = 0; i < n && status == TNF_OK; i++) {
        if (list[i].node->number == PT_PLACED) /* a tensor under two names */
            continue;
        list[i].node->number = PT_PLACED;
        status = tnf_pt_resolve(t, &f, list[i].node, o->e);
        if (status == TNF_OK)
            status = place_tensor(o, &bases, &list[i], t);
    }
    tnf_named_free(&bases);
    return status;
}

/* An index of names, since the catalog to be written has none. */
typedef struct named_object {
    tnf_str name; /* must be first, for tnf_named */
    const tnf_object *object;
} named_object;

static tnf_status name_objects(tnf_named *names, const tnf_catalog *c, tnf_error *e)
{
    uint32_t known;
    for (size_t i = 0; i < c->n; i++) {
        named_object row = { c->objects[i].name, &c->objects[i] };
        TNF_TRY(tnf_named_add(names, &row, &known, e));
    }
    return TNF_OK;
}

/* Opens the tree of the source if its tensors are exactly those to be written; else sets *why. */
tnf_status tnf_pt_open_tree(tnf_pickle *p, pt_named **list, size_t *n, const tnf_catalog *c,
                            const char *key, tnf_arena *a, const char **why, tnf_error *e)
{
    const tnf_value *v = tnf_catalog_attr(c, key);
    size_t found = 0;
    *why = NULL;
    *n = 0;
    if (!v || v->kind != TNF_BYTES)
        return TNF_OK;
    *why = "the tree cannot be read";
    tnf_status status = tnf_pickle_read(p, v->as.s, v->n, 0, a, NULL);
    if (status == TNF_OK)
        status = tnf_pt_names(list, n, p->root, v->n, a, NULL);
    if (status == TNF_ENOMEM)
        return tnf_fail(e, status, TNF_NO_OFFSET, "out of memory for the tree");
    if (status != TNF_OK)
        return TNF_OK;
    for (size_t i = 0; i < p->calls.n; i++)
        if (tnf_pickle_call_dangerous(p->calls.nodes[i]))
            return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "pytorch.tree contains a dangerous call, which is never written");
    *why = "its tensors are not those to be written";
    tnf_named names;
    tnf_named_init(&names, sizeof(named_object), &a->alloc, MAX_PICKLE);
    status = name_objects(&names, c, e);
    for (size_t i = 0; i < *n && status == TNF_OK; i++) {
        uint32_t at = tnf_named_find(&names, (*list)[i].name);
        (*list)[i].object = at == TNF_HASH_NONE
                                ? NULL
                                : ((const named_object *)tnf_named_at(&names, at))->object;
        found += (*list)[i].object != NULL;
    }
    tnf_named_free(&names);
    if (status == TNF_OK && found == *n && found == c->n)
        *why = NULL;
    return status;
}

/* -------------------------------------------------------------- container */

static tnf_status flush_bytes(pt_out *o)
{
    return tnf_put_buf(o->w, &o->bytes, "the file", o->e);
}

static tnf_zip_put *new_member(pt_out *o, const char *name, uint64_t size)
{
    size_t n = o->root.n + 1 + strlen(name);
    char *full = tnf_arena_raw(o->a, n + 1);
    tnf_zip_put *more = tnf_arena_grow(o->a, o->members, o->n, &o->capacity, sizeof *more, 64);
    if (!more)
        return NULL;
    o->members = more;
    if (!full)
        return NULL;
    snprintf(full, n + 1, "%.*s/%s", (int)o->root.n, o->root.p, name);
    tnf_zip_put *m = &o->members[o->n++];
    *m = (tnf_zip_put) { .name = { full, n },
                         .header = o->w->sink->written,
                         .stored = size,
                         .size = size,
                         .align = o->align };
    return m;
}

/* Updates the hash that torch computes over all CRCs. */
static void end_member(pt_out *o, tnf_zip_put *m)
{
    if (m->size) /* empty members have no descriptor */
        o->hash ^= m->crc + UINT64_C(0x9E3779B9) + (o->hash << 6) + (o->hash >> 2);
    tnf_zip_put_behind(&o->bytes, TNF_ZIP_TORCH, m);
}

static tnf_status put_part(pt_out *o, const char *name, const tnf_part *part)
{
    tnf_zip_put *m = new_member(o, name, part->nbytes);
    tnf_put_how how = { .codec = TNF_CODEC_RAW, .digest = o->crc ? "crc32" : NULL };
    tnf_put_done done = { 0 };
    if (!m)
        return no_memory(o);
    tnf_zip_put_local(&o->bytes, TNF_ZIP_TORCH, m);
    TNF_TRY(flush_bytes(o));
    TNF_TRY(tnf_put_part(o->w, part, &how, &done, o->e));
    m->crc = o->crc ? tnf_be32(done.digest) : 0;
    end_member(o, m);
    return flush_bytes(o);
}

static tnf_status put_record(pt_out *o, const char *name, const void *bytes, size_t n)
{
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .stored = n,
                      .nbytes = n,
                      .memory = bytes,
                      .payload = TNF_MEMORY };
    return put_part(o, name, &part);
}

static tnf_status put_reordered(pt_out *o, const char *name, const pt_emitted *from)
{
    size_t n = (size_t)from->part->nbytes;
    uint8_t *bytes = tnf_alloc(&o->a->alloc, n);
    if (!bytes)
        return no_memory(o);
    tnf_status status = tnf_pt_reorder(bytes, from->part, from->reordered, o->e);
    if (status == TNF_OK)
        status = put_record(o, name, bytes, n);
    tnf_free(&o->a->alloc, bytes, n);
    return status;
}

static tnf_status put_storages(pt_out *o)
{
    char name[32];
    for (uint32_t i = 0; i < tnf_named_count(&o->m.storages); i++) {
        const pt_emitted *s = tnf_named_at(&o->m.storages, i);
        uint32_t at = tnf_named_find(&o->parts_by_key, s->key);
        if (at == TNF_HASH_NONE)
            return tnf_fail(o->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "the tree has a storage whose bytes are missing");
        snprintf(name, sizeof name, "data/%u", i);
        const pt_emitted *from = tnf_named_at(&o->parts_by_key, at);
        TNF_TRY(from->reordered ? put_reordered(o, name, from) : put_part(o, name, from->part));
    }
    return TNF_OK;
}

/* torch's ids have 40 digits. Any other value is not kept. */
static bool is_id(const tnf_value *v)
{
    bool digits = v && v->kind == TNF_STRING && v->n == 40;
    for (size_t i = 0; digits && i < v->n; i++)
        digits = v->as.s[i] >= '0' && v->as.s[i] <= '9';
    return digits;
}

static tnf_status put_id(pt_out *o)
{
    char id[41];
    const tnf_value *v = tnf_catalog_attr(o->w->catalog, "pytorch.serialization_id");
    snprintf(id, sizeof id, "%.20s%020llu",
             is_id(v)     ? v->as.s
             : o->by_tree ? "00000000000000000001"
                          : "00000000000000000000", /* as the reader recognises them */
             (unsigned long long)o->hash);
    return put_record(o, ".data/serialization_id", id, 40);
}

static tnf_status put_end(pt_out *o)
{
    uint64_t directory = o->w->sink->written;
    for (size_t i = 0; i < o->n; i++)
        tnf_zip_put_central(&o->bytes, TNF_ZIP_TORCH, &o->members[i]);
    tnf_zip_put_end(&o->bytes, TNF_ZIP_TORCH, o->n, directory, o->bytes.n, (tnf_str) { "", 0 });
    return flush_bytes(o);
}

/* Writes metadata of other formats, which the core stores here. */
static tnf_status put_metadata(pt_out *o)
{
    tnf_buf b;
    if (!o->w->ntext)
        return TNF_OK;
    tnf_buf_init(&b, &o->a->alloc, MAX_PICKLE);
    for (size_t i = 0; i < o->w->ntext; i++) {
        const tnf_member *m = &o->w->text[i];
        tnf_buf_u8(&b, i ? ',' : '{');
        tnf_json_put_string(&b, m->key.p, m->key.n);
        tnf_buf_u8(&b, ':');
        tnf_json_put_string(&b, m->value.as.s, m->value.n);
    }
    tnf_buf_u8(&b, '}');
    tnf_status status = tnf_buf_status(&b, "the metadata", o->e);
    if (status == TNF_OK)
        status = put_record(o, PT_METADATA, b.p, b.n);
    tnf_buf_free(&b);
    return status;
}

static tnf_status put_all(pt_out *o)
{
    char align[16];
    int n = snprintf(align, sizeof align, "%u", o->align);
    TNF_TRY(put_record(o, "data.pkl", o->pickle.p, o->pickle.n));
    TNF_TRY(put_record(o, ".format_version", "1", 1));
    TNF_TRY(put_record(o, ".storage_alignment", align, (size_t)n));
    TNF_TRY(put_record(o, "byteorder", "little", 6));
    TNF_TRY(put_storages(o));
    TNF_TRY(put_metadata(o));
    TNF_TRY(put_record(o, "version", "3\n", 2));
    TNF_TRY(put_id(o));
    return put_end(o);
}

/* ---------------------------------------------------------------- complete */

static bool is_sorted(const pt_named *list, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (tnf_str_compare(list[i - 1].name, list[i].name) > 0)
            return false;
    return true;
}

static tnf_status make_pickle(pt_out *o)
{
    tnf_pickle p = { 0 };
    pt_named *list = NULL;
    size_t n = 0;
    const char *why;
    tnf_pickle_node *root = NULL;
    TNF_TRY(tnf_pt_begin_nodes(o));
    const tnf_catalog *c = o->w->catalog;
    const char *key = "pytorch.views";
    TNF_TRY(tnf_pt_open_tree(&p, &list, &n, c, key, o->a, &why, o->e));
    if (!tnf_catalog_attr(c, key) || why) {
        key = "pytorch.tree";
        TNF_TRY(tnf_pt_open_tree(&p, &list, &n, c, key, o->a, &why, o->e));
    }
    if (tnf_catalog_attr(c, key) && !why) {
        root = p.root;
        o->by_tree = true;
        TNF_TRY(place_tree(o, list, n));
        /* a plain dict without shared storages is written in the default form */
        if (!tnf_catalog_attr(c, "pytorch.tree") && tnf_named_count(&o->parts_by_key) == n &&
            is_sorted(list, n) && !o->reordered) {
            o->by_tree = false;
            TNF_TRY(flat_tree(o, &root));
        }
    } else {
        TNF_TRY(flat_tree(o, &root));
    }
    o->m.strict = true;
    return tnf_pt_emit(&o->m, root);
}

static tnf_status read_options(pt_out *o)
{
    const tnf_option_value *v = o->w->options;
    const tnf_value *was = tnf_catalog_attr(o->w->catalog, "pytorch.root");
    o->root = (tnf_str) { v[PT_WRITE_ROOT].s, strlen(v[PT_WRITE_ROOT].s) };
    if (!o->root.n && was && was->kind == TNF_STRING && was->n && !memchr(was->as.s, '/', was->n))
        o->root = (tnf_str) { was->as.s, was->n };
    if (!o->root.n)
        o->root = (tnf_str)TNF_STR("archive");
    if (memchr(o->root.p, '/', o->root.n) || o->root.n > 1000)
        return tnf_fail(o->e, TNF_EINVAL, TNF_NO_OFFSET,
                        "root must be the name of a single directory");
    uint64_t align = v[PT_WRITE_ALIGN].u;
    if (align == 0 || align > 65536 / 2 || (align & (align - 1)))
        return tnf_fail(o->e, TNF_EINVAL, TNF_NO_OFFSET,
                        "align must be a power of two, at most 32768");
    o->align = (uint32_t)align;
    o->crc = v[PT_WRITE_CRC].u != 0;
    return TNF_OK;
}

tnf_status tnf_pt_write(tnf_writer *w, tnf_error *e)
{
    pt_out *o = tnf_arena_alloc(w->scratch, sizeof *o);
    if (!o)
        return tnf_arena_fail(w->scratch, "the file", e);
    o->w = w;
    o->a = w->scratch;
    o->e = e;
    tnf_buf_init(&o->pickle, &o->a->alloc, MAX_PICKLE);
    tnf_buf_init(&o->bytes, &o->a->alloc, MAX_PICKLE);
    tnf_pt_emit_init(&o->m, &o->pickle, o->a, e);
    tnf_named_init(&o->parts_by_key, sizeof(pt_emitted), &o->a->alloc, MAX_PICKLE);
    tnf_status status = read_options(o);
    if (status == TNF_OK)
        status = make_pickle(o);
    if (status == TNF_OK)
        status = put_all(o);
    tnf_named_free(&o->parts_by_key);
    tnf_pt_emit_free(&o->m);
    tnf_buf_free(&o->bytes);
    tnf_buf_free(&o->pickle);
    return status;
}
