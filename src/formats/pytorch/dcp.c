/* SPDX-License-Identifier: MIT */
/* A directory of torch.distributed.checkpoint, opened by its .metadata:
 *
 *   .metadata          a pickle: the tensors, their chunks, and the places of the chunks
 *   __0_0.distcp …     concatenated zip archives of torch.save(), one tensor each
 *
 *   Metadata {state_dict_metadata: {name: TensorStorageMetadata {properties, size,
 *                                          chunks: [ChunkStorageMetadata {offsets, sizes}]}},
 *             storage_data: {MetadataIndex {fqn, index, offset}: _StorageInfo {relative_path,
 *                                          offset, length}}}
 *
 * A tensor of one chunk is read in place. The bytes of several chunks are assembled on reading.
 */
#include "formats/pytorch/ptzip.h"

#include <stdio.h>
#include <string.h>

#define MAX_METADATA ((uint64_t)1 << 30)
#define MAX_PICKLE   ((uint64_t)64 << 20)
#define MAX_CHUNKS   4096u /* limit per tensor, since each chunk is compared with each */
#define NEAR         100u  /* a pickle names the class of its object within this many bytes */

/* An archive inside a file. */
typedef struct range {
    tnf_part whole; /* the complete file */
    uint64_t offset;
} range;

/* One block of a tensor, in a file. */
typedef struct chunk {
    const uint64_t *offsets, *sizes;
    tnf_part part;           /* all its bytes, in row-major order */
    const pt_gather *gather; /* set if its bytes are not contiguous: */
    const struct range *archive;
} chunk;

typedef struct mosaic {
    const uint64_t *shape;
    uint32_t rank, width;
    const chunk *chunks;
    size_t n;
} mosaic;

typedef struct place {
    tnf_str name; /* first, for tnf_named: fqn, then the offsets */
    const tnf_pickle_node *info;
} place;

typedef struct dcp {
    tnf_reader *r;
    pt_file *f;
    tnf_named places, paths;
    const mosaic **mosaics;
    size_t n, capacity;
    tnf_attrs values;
    tnf_error *e;
} dcp;

static tnf_status bad_metadata(const dcp *d, const char *what)
{
    return tnf_fail(d->e, TNF_EFORMAT, TNF_NO_OFFSET, ".metadata is invalid: %s", what);
}

/* --------------------------------------------------------------- metadata */

/* Finds an attribute in the state of an object. */
static const tnf_pickle_node *find_attr(const tnf_pickle_node *object, const char *name)
{
    if (!object || object->kind != TNF_PICKLE_CALL || !object->as.call->state)
        return NULL;
    return tnf_pickle_get(object->as.call->state, name);
}

static const uint64_t *read_dims(dcp *d, const tnf_pickle_node *node, uint32_t *rank)
{
    node = node ? tnf_pt_unwrap(node) : NULL;
    if (!node || (node->kind != TNF_PICKLE_TUPLE && node->kind != TNF_PICKLE_LIST) ||
        node->n > PT_RANK)
        return NULL;
    uint64_t *dims = tnf_arena_array(d->r->arena, node->n + 1, sizeof *dims);
    for (size_t i = 0; dims && i < node->n; i++) {
        if (node->as.items[i]->kind != TNF_PICKLE_INT || node->as.items[i]->as.i < 0)
            return NULL;
        dims[i] = (uint64_t)node->as.items[i]->as.i;
    }
    *rank = (uint32_t)node->n;
    return dims;
}

/* A key of the table of places: the name and the offsets, or the index if there are no offsets. */
static tnf_str place_key(dcp *d, const tnf_pickle_node *fqn, const tnf_pickle_node *offsets,
                         int64_t index)
{
    char text[PT_RANK * 21 + 8];
    size_t n = 0;
    offsets = offsets ? tnf_pt_unwrap(offsets) : NULL;
    bool has = offsets && (offsets->kind == TNF_PICKLE_TUPLE || offsets->kind == TNF_PICKLE_LIST) &&
               offsets->n <= PT_RANK;
    text[n++] = 0;
    if (!has)
        n += (size_t)snprintf(text + n, sizeof text - n, "#%lld", (long long)index);
    for (size_t i = 0; has && i < offsets->n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",%lld",
                              (long long)offsets->as.items[i]->as.i);
    char *all = tnf_arena_raw(d->r->scratch, fqn->n + n + 1);
    if (!all)
        return (tnf_str) { NULL, 0 };
    memcpy(all, fqn->as.s, fqn->n);
    memcpy(all + fqn->n, text, n);
    return (tnf_str) { all, fqn->n + n };
}

static tnf_status add_places(dcp *d, const tnf_pickle_node *storage_data)
{
    if (!storage_data || storage_data->kind != TNF_PICKLE_DICT)
        return bad_metadata(d, "it has no storage_data");
    for (size_t i = 0; i < storage_data->n; i += 2) {
        const tnf_pickle_node *key = storage_data->as.items[i];
        const tnf_pickle_node *fqn = find_attr(key, "fqn"), *index = find_attr(key, "index");
        uint32_t known;
        if (!fqn || fqn->kind != TNF_PICKLE_TEXT)
            return bad_metadata(d, "a place has no name");
        place p = { .info = storage_data->as.items[i + 1] };
        p.name = place_key(d, fqn, find_attr(key, "offset"),
                           index && index->kind == TNF_PICKLE_INT ? index->as.i : 0);
        if (!p.name.p)
            return tnf_arena_fail(d->r->scratch, "a place", d->e);
        TNF_TRY(tnf_named_add(&d->places, &p, &known, d->e));
    }
    return TNF_OK;
}

static const tnf_pickle_node *find_place(dcp *d, const tnf_pickle_node *fqn,
                                         const tnf_pickle_node *offsets, int64_t index)
{
    tnf_str key = place_key(d, fqn, offsets, index);
    uint32_t i = key.p ? tnf_named_find(&d->places, key) : TNF_HASH_NONE;
    if (i == TNF_HASH_NONE) {
        key = place_key(d, fqn, NULL, index);
        i = key.p ? tnf_named_find(&d->places, key) : TNF_HASH_NONE;
    }
    return i == TNF_HASH_NONE ? NULL : ((const place *)tnf_named_at(&d->places, i))->info;
}

/* planner_data: maps a name to its keys in the saved tree. */
static tnf_status add_paths(dcp *d, const tnf_pickle_node *planner)
{
    uint32_t known;
    for (size_t i = 0; planner && planner->kind == TNF_PICKLE_DICT && i < planner->n; i += 2) {
        const tnf_pickle_node *fqn = planner->as.items[i];
        place p = { .name = { fqn->as.s, fqn->n }, .info = planner->as.items[i + 1] };
        if (fqn->kind == TNF_PICKLE_TEXT)
            TNF_TRY(tnf_named_add(&d->paths, &p, &known, d->e));
    }
    return TNF_OK;
}

/* Makes pytorch.path if splitting the name at dots does not give it; otherwise *out is NULL. */
static tnf_status find_path(const tnf_value **out, dcp *d, const tnf_pickle_node *fqn)
{
    uint32_t at = tnf_named_find(&d->paths, (tnf_str) { fqn->as.s, fqn->n });
    const tnf_pickle_node *path = at == TNF_HASH_NONE
                                      ? NULL
                                      : ((const place *)tnf_named_at(&d->paths, at))->info;
    bool needed = false;
    *out = NULL;
    if (!path || (path->kind != TNF_PICKLE_TUPLE && path->kind != TNF_PICKLE_LIST))
        return TNF_OK;
    for (size_t i = 0; i < path->n; i++) {
        const tnf_pickle_node *x = path->as.items[i];
        if (x->kind != TNF_PICKLE_TEXT && x->kind != TNF_PICKLE_INT)
            return TNF_OK; /* such a key has no known name */
        needed = needed || x->kind == TNF_PICKLE_INT || !x->n || memchr(x->as.s, '.', x->n);
    }
    tnf_attrs attrs = { .arena = d->r->arena };
    tnf_value *map = needed ? tnf_arena_alloc(d->r->arena, sizeof *map) : NULL, v;
    if (!needed)
        return TNF_OK;
    if (!map)
        return tnf_arena_fail(d->r->arena, "a path", d->e);
    TNF_TRY(tnf_pt_value(&v, d->f, path, d->e));
    TNF_TRY(tnf_attrs_push(&attrs, "pytorch.path", v, d->e));
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

/* ----------------------------------------------------------- inner archives */

static tnf_status fetch_range(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const range *x = ctx;
    return tnf_read_part(dst, n, &x->whole, x->offset + offset, e);
}

static tnf_status open_range(dcp *d, range *x, uint64_t *length, const tnf_pickle_node *info)
{
    const tnf_pickle_node *path = find_attr(info, "relative_path"),
                          *offset = find_attr(info, "offset");
    const tnf_pickle_node *n = find_attr(info, "length");
    const tnf_pickle_node *transforms = find_attr(info, "transform_descriptors");
    const struct tnf_origin *origin;
    uint64_t size;
    if (!path || path->kind != TNF_PICKLE_TEXT || !offset || offset->kind != TNF_PICKLE_INT ||
        offset->as.i < 0 || !n || n->kind != TNF_PICKLE_INT || n->as.i < 0)
        return bad_metadata(d, "a place has no file, offset or length");
    if (transforms && transforms->kind != TNF_PICKLE_NONE && transforms->n)
        return tnf_fail(d->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "a chunk is transformed (compressed), which is not supported");
    tnf_str name = { path->as.s, path->n };
    if (memchr(name.p, '/', name.n) || memchr(name.p, '\\', name.n))
        return bad_metadata(d, "it names a file in another directory");
    TNF_TRY(tnf_open_data(d->r, &origin, &size, name, d->e));
    x->whole = (tnf_part) {
        .role = "data", .type = tnf_type_of(TNF_U8), .origin = origin, .payload = TNF_AT
    };
    x->whole.stored = x->whole.nbytes = size;
    x->offset = (uint64_t)offset->as.i;
    *length = (uint64_t)n->as.i;
    if (x->offset > size || *length > size - x->offset)
        return tnf_fail(d->e, TNF_ETRUNCATED, TNF_NO_OFFSET,
                        "%s ends before a chunk that .metadata places in it", TNF_QUOTED(name));
    return TNF_OK;
}

static tnf_status refuse_odd(void *ctx, tnf_status status, uint64_t at, const char *text,
                             tnf_error *e)
{
    (void)ctx;
    return tnf_fail(e, status, at, "%s", text);
}

static tnf_status read_inner(dcp *d, range *x, uint64_t length, tnf_pickle *p, pt_file *f)
{
    pt_zip *z = tnf_arena_alloc(d->r->scratch, sizeof *z);
    if (!z)
        return tnf_arena_fail(d->r->scratch, "an archive", d->e);
    z->f = f;
    z->from = (tnf_zip_from) { .fetch = fetch_range,
                               .ctx = x,
                               .size = length,
                               .arena = d->r->arena,
                               .max_directory = MAX_PICKLE,
                               .max_members = 1 << 20,
                               .odd = refuse_odd };
    f->container = z;
    return tnf_pt_inner_zip(z, p, d->e);
}

/* ----------------------------------------------------------------- chunks */

/* Reads the only tensor of an archive as a part in its file. alone: there is no other chunk. */
static tnf_status read_chunk(dcp *d, chunk *c, const tnf_pickle_node *info, uint32_t rank,
                             const pt_type *type, bool alone)
{
    range *x = tnf_arena_alloc(d->r->arena, sizeof *x);
    pt_file *f = d->f;
    pt_tensor *t = tnf_arena_alloc(d->r->scratch, sizeof *t);
    tnf_pickle p;
    uint64_t length;
    tnf_order order;
    if (!x || !t)
        return tnf_arena_fail(d->r->scratch, "a chunk", d->e);
    if (!info)
        return bad_metadata(d, "a chunk has no place");
    TNF_TRY(open_range(d, x, &length, info));
    tnf_named_init(&f->storages, sizeof(tnf_str) + sizeof(void *), &d->r->scratch->alloc,
                   d->r->limits.memory);
    tnf_status status = read_inner(d, x, length, &p, f);
    if (status == TNF_OK)
        status = tnf_pt_resolve(t, f, p.root, d->e);
    if (status == TNF_OK && (t->nparts != 1 || t->rank != rank || t->parts[0].type != type ||
                             memcmp(t->shape, c->sizes, rank * sizeof *t->shape) != 0))
        status = bad_metadata(d, "a chunk has another type or size than its file");
    if (status == TNF_OK)
        status = tnf_pt_add_part(&c->part, &order, f, &t->parts[0], false, d->e);
    tnf_named_free(&f->storages);
    f->container = d;
    TNF_TRY(status);
    if (c->part.payload == TNF_ENCODED)
        return tnf_fail(d->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "a chunk is deflated, which is not supported");
    const pt_storage *s = t->parts[0].storage;
    /* Then verify() compares the part with its digest. */
    bool summed = alone && c->part.payload == TNF_AT && c->part.digest;
    if (s && s->has_crc && s->size && !summed)
        TNF_TRY(tnf_pt_keep_inner_sum(f, s, fetch_range, x, x->offset, d->e));
    if (c->part.payload == TNF_OPAQUE) {
        pt_gather *g = tnf_arena_alloc(d->r->arena, sizeof *g);
        if (!g)
            return tnf_arena_fail(d->r->arena, "a chunk", d->e);
        *g = f->gathers[c->part.offset];
        c->gather = g;
        c->archive = x;
        return TNF_OK;
    }
    c->part.offset += c->part.payload == TNF_AT ? x->offset : 0;
    c->part.origin = x->whole.origin;
    if (!summed)
        c->part.digest = NULL;
    return TNF_OK;
}

static uint64_t volume_of(const uint64_t *sizes, uint32_t rank)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (!tnf_ckd_mul(&n, n, sizes[i]))
            return UINT64_MAX;
    return n;
}

/* Do the chunks tile the tensor: inside it, without overlaps, completely? */
static bool tiles_tensor(const mosaic *m)
{
    uint64_t sum = 0, all = volume_of(m->shape, m->rank);
    for (size_t i = 0; i < m->n; i++) {
        const chunk *a = &m->chunks[i];
        for (uint32_t k = 0; k < m->rank; k++)
            if (a->sizes[k] > m->shape[k] || a->offsets[k] > m->shape[k] - a->sizes[k])
                return false;
        if (!tnf_ckd_add(&sum, sum, volume_of(a->sizes, m->rank)))
            return false;
        for (size_t j = 0; j < i; j++) {
            const chunk *b = &m->chunks[j];
            bool disjoint = m->rank == 0;
            for (uint32_t k = 0; k < m->rank; k++)
                disjoint = disjoint || a->offsets[k] + a->sizes[k] <= b->offsets[k] ||
                           b->offsets[k] + b->sizes[k] <= a->offsets[k];
            if (!disjoint)
                return false;
        }
    }
    return sum == all;
}

static const pt_type *dtype_of(const tnf_pickle_node *meta)
{
    const tnf_pickle_node *properties = find_attr(meta, "properties");
    const tnf_pickle_node *state = properties && properties->kind == TNF_PICKLE_CALL
                                       ? properties->as.call->state
                                       : NULL;
    const tnf_pickle_node *dtype = NULL;
    if (state && state->kind == TNF_PICKLE_TUPLE && state->n)
        dtype = state->as.items[0];
    else if (state && state->kind == TNF_PICKLE_DICT)
        dtype = tnf_pickle_get(state, "dtype");
    return dtype && dtype->kind == TNF_PICKLE_GLOBAL ? tnf_pt_type_named(dtype->as.global->name)
                                                     : NULL;
}

static tnf_status keep_mosaic(dcp *d, const mosaic *m, uint64_t *key)
{
    const mosaic **more = tnf_arena_grow(d->r->arena, (void *)d->mosaics, d->n, &d->capacity,
                                         sizeof(mosaic *), 16);
    if (!more)
        return tnf_arena_fail(d->r->arena, "a tensor", d->e);
    d->mosaics = more;
    *key = d->n;
    d->mosaics[d->n++] = m;
    return TNF_OK;
}

static tnf_status add_tensor(dcp *d, const tnf_pickle_node *fqn, const tnf_pickle_node *meta)
{
    const tnf_pickle_node *list = find_attr(meta, "chunks");
    mosaic *m = tnf_arena_alloc(d->r->arena, sizeof *m);
    const pt_type *type = dtype_of(meta);
    if (!m)
        return tnf_arena_fail(d->r->arena, "a tensor", d->e);
    m->shape = read_dims(d, find_attr(meta, "size"), &m->rank);
    if (!type || type->doubled || type->axis || type->packed || !m->shape || !list ||
        list->kind != TNF_PICKLE_LIST)
        return bad_metadata(d, "a tensor has no known type, size or chunks");
    if (list->n > MAX_CHUNKS)
        return tnf_fail(d->e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "a tensor has %zu chunks; at most %u are supported", list->n, MAX_CHUNKS);
    chunk *chunks = tnf_arena_array(d->r->arena, list->n, sizeof *chunks);
    if (!chunks)
        return tnf_arena_fail(d->r->arena, "chunks", d->e);
    m->chunks = chunks;
    m->n = list->n;
    m->width = type->width;
    for (size_t i = 0; i < list->n; i++) {
        const tnf_pickle_node *x = list->as.items[i], *offsets = find_attr(x, "offsets");
        uint32_t a, b;
        chunks[i].offsets = read_dims(d, offsets, &a);
        chunks[i].sizes = read_dims(d, find_attr(x, "sizes"), &b);
        if (!chunks[i].offsets || !chunks[i].sizes || a != m->rank || b != m->rank)
            return bad_metadata(d, "a chunk has no place in its tensor");
        TNF_TRY(read_chunk(d, &chunks[i], find_place(d, fqn, offsets, (int64_t)i), m->rank, type,
                           list->n == 1));
    }
    uint64_t elements = volume_of(m->shape, m->rank), bytes;
    if (!tiles_tensor(m) || !tnf_ckd_mul(&bytes, elements, type->width))
        return bad_metadata(d, "the chunks of a tensor do not tile it");
    tnf_part part = { .role = "data",
                      .type = tnf_type_named(type->id),
                      .stored = bytes,
                      .nbytes = bytes,
                      .payload = TNF_OPAQUE };
    if (m->n == 1 && !chunks[0].gather) {
        part = chunks[0].part;
        part.role = "data";
    } else {
        TNF_TRY(keep_mosaic(d, m, &part.offset));
    }
    const tnf_value *attrs;
    TNF_TRY(find_path(&attrs, d, fqn));
    tnf_object o = { .name = { fqn->as.s, fqn->n },
                     .attrs = attrs,
                     .shape = m->shape,
                     .layout = &tnf_layout_dense,
                     .parts = &part,
                     .rank = m->rank,
                     .nparts = 1 };
    return tnf_add_object(d->r, &o, 0, d->e);
}

/* ----------------------------------------------------------------- values */

static tnf_status add_value(dcp *d, const tnf_pickle_node *fqn)
{
    range *x = tnf_arena_alloc(d->r->scratch, sizeof *x);
    pt_file *f = d->f;
    tnf_pickle p;
    uint64_t length;
    tnf_value v;
    const tnf_pickle_node *info = find_place(d, fqn, NULL, 0);
    const char *name = tnf_arena_str(d->r->arena, fqn->as.s, fqn->n);
    if (!x || !name)
        return tnf_arena_fail(d->r->scratch, "a value", d->e);
    if (!info)
        return TNF_OK; /* listed, but missing: torch ignores this, too */
    TNF_TRY(open_range(d, x, &length, info));
    tnf_named_init(&f->storages, sizeof(tnf_str) + sizeof(void *), &d->r->scratch->alloc,
                   d->r->limits.memory);
    tnf_status status = read_inner(d, x, length, &p, f);
    tnf_named_free(&f->storages);
    f->container = d;
    TNF_TRY(status);
    TNF_TRY(tnf_pt_value(&v, d->f, p.root, d->e));
    return tnf_attrs_set(&d->values, name, fqn->n, v, d->e);
}

/* -------------------------------------------------------------- directory */

static tnf_status add_all(dcp *d, const tnf_pickle_node *root)
{
    const tnf_pickle_node *metas = find_attr(root, "state_dict_metadata");
    if (!metas || metas->kind != TNF_PICKLE_DICT)
        return tnf_fail(d->e, TNF_EFORMAT, 0,
                        "this is a pickle, but not the metadata of a checkpoint");
    TNF_TRY(add_places(d, find_attr(root, "storage_data")));
    TNF_TRY(add_paths(d, find_attr(root, "planner_data")));
    d->values.arena = d->r->arena;
    for (size_t i = 0; i < metas->n; i += 2) {
        const tnf_pickle_node *fqn = metas->as.items[i], *meta = metas->as.items[i + 1];
        if (fqn->kind != TNF_PICKLE_TEXT)
            return bad_metadata(d, "a tensor has no name");
        tnf_status status = find_attr(meta, "chunks") ? add_tensor(d, fqn, meta)
                                                      : add_value(d, fqn);
        if (status != TNF_OK && !tnf_lose(d->r, status, d->e))
            return status;
    }
    if (d->values.n)
        return tnf_set_attr(d->r, "pytorch.values", tnf_attrs_value(&d->values), d->e);
    return TNF_OK;
}

static tnf_status index_folder(dcp *d)
{
    tnf_cur c;
    tnf_pickle p;
    TNF_TRY(tnf_read_range(d->r, "metadata", 0, d->r->source->size, MAX_METADATA, &c, d->e));
    TNF_TRY(tnf_pt_pickle(d->f, &p, &c, ".metadata", d->e));
    TNF_TRY(add_all(d, p.root));
    return tnf_pt_audit_done(d->f, d->e);
}

static tnf_status index_dcp(tnf_reader *r, tnf_error *e)
{
    dcp *d = tnf_arena_alloc(r->arena, sizeof *d);
    pt_file *f = tnf_arena_alloc(r->arena, sizeof *f);
    if (!d || !f)
        return tnf_arena_fail(r->arena, "the directory", e);
    d->r = r;
    d->e = e;
    d->f = f;
    f->left = PT_VALUES;
    f->r = r;
    f->container = d;
    r->state = f;
    r->version = "";
    tnf_named_init(&d->places, sizeof(place), &r->scratch->alloc, r->limits.memory);
    tnf_named_init(&d->paths, sizeof(place), &r->scratch->alloc, r->limits.memory);
    tnf_named_init(&f->call_list, sizeof(pt_call), &r->scratch->alloc, r->limits.memory);
    tnf_status status = index_folder(d);
    f->failed = status != TNF_OK;
    if (f->failed)
        (void)tnf_pt_audit_done(f, NULL); /* its calls are reported in any case */
    tnf_named_free(&f->call_list);
    tnf_named_free(&d->places);
    tnf_named_free(&d->paths);
    return status;
}

static tnf_status read_bytes(const chunk *c, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    return c->gather ? tnf_pt_gather_from(c->gather, fetch_range, (void *)(uintptr_t)c->archive,
                                          offset, dst, n, e)
                     : tnf_read_part(dst, n, &c->part, offset, e);
}

/* Copies a run of elements along the last dimension, as far as the chunk has it. */
static tnf_status copy_run(const mosaic *m, const chunk *c, const uint64_t *at, uint64_t n,
                           uint8_t *dst, tnf_error *e)
{
    uint64_t from = 0, last = m->rank - 1;
    for (uint32_t k = 0; k < last; k++) {
        if (at[k] < c->offsets[k] || at[k] - c->offsets[k] >= c->sizes[k])
            return TNF_OK;
        from = (from + at[k] - c->offsets[k]) * c->sizes[k + 1];
    }
    uint64_t begin = at[last] > c->offsets[last] ? at[last] : c->offsets[last];
    uint64_t end = at[last] + n, chunk_end = c->offsets[last] + c->sizes[last];
    end = end < chunk_end ? end : chunk_end;
    if (begin >= end)
        return TNF_OK;
    from += begin - c->offsets[last];
    return read_bytes(c, from * m->width, dst + (begin - at[last]) * m->width,
                      (size_t)((end - begin) * m->width), e);
}

/* Assembles complete elements, row by row. */
static tnf_status put_together(const void *ctx, uint64_t first, uint64_t n, uint8_t *dst,
                               tnf_error *e)
{
    const mosaic *m = ctx;
    uint64_t at[PT_RANK] = { 0 }, row = m->shape[m->rank - 1];
    for (uint64_t done = 0; done < n;) {
        uint64_t left = first + done, run;
        for (uint32_t k = m->rank; k-- > 0; left /= m->shape[k])
            at[k] = left % m->shape[k];
        run = row - at[m->rank - 1];
        run = run < n - done ? run : n - done;
        for (size_t i = 0; i < m->n; i++)
            TNF_TRY(copy_run(m, &m->chunks[i], at, run, dst + done * m->width, e));
        done += run;
    }
    return TNF_OK;
}

static tnf_status decode_dcp(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                             tnf_error *e)
{
    const dcp *d = ((const pt_file *)r->state)->container;
    const mosaic *m = d->mosaics[key];
    return m->n == 1 ? read_bytes(&m->chunks[0], offset, dst, n, e)
                     : tnf_pt_elements(put_together, m, m->width, offset, dst, n, e);
}

/* Is the file a pickle that names the class? */
static int probe_dcp(const tnf_probe *p)
{
    static const char module[] = "torch.distributed.checkpoint.metadata";
    size_t n = p->nhead < NEAR ? p->nhead : NEAR;
    return n >= 4 && p->head[0] == 0x80 && memmem(p->head, n, module, sizeof module - 1)
               ? TNF_PROBE_MAGIC
               : TNF_PROBE_NO;
}

const tnf_format tnf_format_pytorch_dcp = {
    .name = "pytorch-dcp",
    .title = "directory of torch.distributed.checkpoint",
    .extensions = "metadata",
    .family = "pytorch",
    .caps = TNF_CAN_READ,
    .inside = ".metadata",
    .probe = probe_dcp,
    .index = index_dcp,
    .decode = decode_dcp,
    .verify = tnf_pt_verify,
    .notes = tnf_pt_notes,
};
