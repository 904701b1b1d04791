/* SPDX-License-Identifier: MIT */
/* Reads zTensor 1.0, 1.1 and 1.2. Little-endian:
 *
 *   "ZTEN1000"
 *   blobs           each at a multiple of 64, with zeros between them
 *   manifest        CBOR: one map
 *   u64             bytes of the manifest
 *   "ZTEN1000"      since 1.1
 *
 *   1.0   { version, generator, attributes, tensors: { name: {
 *             dtype, shape, format, components: { role: {
 *               offset, length, (encoding), (digest) } } } } }
 *   1.1   { version, (attributes), objects: { name: {
 *             shape, format, (attributes), components: { role: {
 *               dtype, offset, length, (encoding), (digest) } } } } }
 *   1.2   the same, with (type) and (uncompressed_length) in the component
 *
 * Tensors are listed in the order of their bytes, in which they were written; the map is sorted by
 * name. The last eight bytes distinguish 1.0 from the others: as a length the magic number would be
 * 3.5e18.
 */
#include "formats/ztensor_old/ztensor1.h"

#include <stdlib.h>
#include <string.h>

#define MEASURE_RATIO 1024u               /* highest plausible ratio of zstd */
#define MEASURE_MOST  ((uint64_t)1 << 30) /* bytes that opening may decode for a part */

const zt1_name tnf_zt1_layouts[] = { { "sparse_csr", "sparse_csr/1" },
                                     { "sparse_coo", "sparse_coo/1" },
                                     { NULL, NULL } };
const zt1_name tnf_zt1_types[] = { { "complex64", "c64" },
                                   { "complex128", "c128" },
                                   { NULL, NULL } };

/* Version 1.0 has the type names of 0.1. */
static const zt1_name dtypes_1_0[] = {
    { "float64", "f64" }, { "float32", "f32" }, { "float16", "f16" }, { "bfloat16", "bf16" },
    { "int64", "i64" },   { "int32", "i32" },   { "int16", "i16" },   { "int8", "i8" },
    { "uint64", "u64" },  { "uint32", "u32" },  { "uint16", "u16" },  { "uint8", "u8" },
    { "bool", "bool" },   { NULL, NULL }
};

typedef struct component {
    uint64_t at;
    tnf_str role;
    zt_word dtype, type, encoding, digest;
    uint64_t offset, length, decoded;
    bool has_offset, has_length, has_decoded;
} component;

typedef struct object {
    uint64_t at;
    tnf_str name;
    zt_word dtype, format;
    tnf_value attrs;
    const uint64_t *shape;
    component *components;
    uint32_t rank;
    bool has_shape, has_components;
    size_t n;       /* number of components */
    uint64_t begin; /* offset of the first one in the file */
    bool empty;     /* no component has bytes */
    size_t number;  /* position in the map */
} object;

typedef struct parser {
    tnf_reader *r;
    tnf_cbor c;
    uint64_t index_start;
    bool v1_0;
    bool has_objects;
    tnf_str version;
    uint64_t *dims; /* of the tensor being read, like its components */
    size_t capacity;
    component *components;
    size_t components_capacity;
    object *objects;
    size_t n, objects_capacity;
} parser;

static const char *renamed_here(const zt1_name *names, tnf_str s)
{
    for (; names->file; names++)
        if (tnf_str_is(s, names->file))
            return names->here;
    return NULL;
}

/* ---------------------------------------------------------------- parsing */

/* Skips an unknown key, or one that is not text, like released readers. */
static bool skip_key(parser *p, tnf_str key, const char *where)
{
    tnf_warn(p->r, tnf_cbor_where(&p->c), "the unknown field %s of %s is ignored",
             key.p ? TNF_QUOTED(key) : "without a name", where);
    return tnf_cbor_skip(&p->c, NULL);
}

static bool read_component_field(parser *p, component *k, tnf_str key)
{
    tnf_cbor *c = &p->c;
    if (tnf_str_is(key, "dtype") && !p->v1_0)
        return tnf_zt_read_word(c, &k->dtype, false);
    if (tnf_str_is(key, "type") && !p->v1_0)
        return tnf_zt_read_word(c, &k->type, false);
    if (tnf_str_is(key, "encoding"))
        return tnf_zt_read_word(c, &k->encoding, false);
    if (tnf_str_is(key, "digest"))
        return tnf_zt_read_word(c, &k->digest, false);
    if (tnf_str_is(key, "offset"))
        return k->has_offset = true, tnf_cbor_u64(c, &k->offset);
    if (tnf_str_is(key, "length"))
        return k->has_length = true, tnf_cbor_u64(c, &k->length);
    if (tnf_str_is(key, "uncompressed_length") && !p->v1_0)
        return tnf_cbor_null(c) || (k->has_decoded = true, tnf_cbor_u64(c, &k->decoded));
    return skip_key(p, key, "a component");
}

static bool read_component(parser *p, component *k, const object *o)
{
    tnf_cbor_scope map;
    tnf_cbor_enter_map(&p->c, &map);
    for (tnf_str key; tnf_cbor_key(&p->c, &map, &key);)
        if (!(key.p ? read_component_field(p, k, key) : skip_key(p, key, "a component")))
            return false;
    if (p->c.status != TNF_OK)
        return false;
    const char *missing = !k->has_offset                 ? "offset"
                          : !k->has_length               ? "length"
                          : !p->v1_0 && !k->dtype.text.p ? "dtype"
                                                         : NULL;
    if (missing)
        return tnf_cbor_fail(&p->c, TNF_CBOR_SCHEMA, TNF_EFORMAT, k->at,
                             "the component %s of %s has no %s", TNF_QUOTED(k->role),
                             TNF_QUOTED(o->name), missing);
    return true;
}

/* Makes room for one more than n. NULL: out of memory. */
static void *grow_array(parser *p, void *array, size_t n, size_t *capacity, size_t size)
{
    void *grown = tnf_arena_grow(p->r->scratch, array, n, capacity, size, 4);
    if (!grown)
        p->c.status = tnf_arena_fail(p->r->scratch, "the manifest", p->c.e);
    return grown;
}

static component *next_component(parser *p, object *o)
{
    component *grown = grow_array(p, p->components, o->n, &p->components_capacity, sizeof *grown);
    if (!grown)
        return NULL;
    p->components = grown;
    component *k = &p->components[o->n++];
    *k = (component) { 0 };
    return k;
}

static bool read_components(parser *p, object *o)
{
    tnf_cbor_scope map;
    o->has_components = true;
    tnf_cbor_enter_map(&p->c, &map);
    for (tnf_str key; tnf_cbor_key(&p->c, &map, &key);) {
        uint64_t at = tnf_cbor_where(&p->c);
        if (!key.p || memchr(key.p, 0, key.n) || o->n == UINT16_MAX)
            return tnf_cbor_fail(&p->c, TNF_CBOR_SCHEMA, key.p ? TNF_ELIMIT : TNF_EFORMAT, at,
                                 "%s has a component without a proper name, or too many",
                                 TNF_QUOTED(o->name));
        component *k = next_component(p, o);
        if (!k)
            return false;
        k->at = at;
        k->role = key;
        if (!read_component(p, k, o))
            return false;
    }
    return p->c.status == TNF_OK;
}

/* Reads a map, or null for none. */
static bool read_attrs(parser *p, tnf_value *out)
{
    uint64_t at = tnf_cbor_where(&p->c);
    if (tnf_cbor_null(&p->c))
        return true;
    if (!tnf_zt_read_value(&p->c, out, p->r->arena))
        return false;
    return out->kind == TNF_MAP ||
           tnf_cbor_fail(&p->c, TNF_CBOR_SCHEMA, TNF_EFORMAT, at, "attributes are not a map");
}

static bool read_object_field(parser *p, object *o, tnf_str key)
{
    tnf_cbor *c = &p->c;
    if (tnf_str_is(key, "shape")) {
        o->has_shape = true;
        return tnf_zt_read_shape(c, &p->dims, &p->capacity, &o->rank, p->r->scratch);
    }
    if (tnf_str_is(key, "format"))
        return tnf_zt_read_word(c, &o->format, false);
    if (tnf_str_is(key, "dtype") && p->v1_0)
        return tnf_zt_read_word(c, &o->dtype, false);
    if (tnf_str_is(key, "attributes") && !p->v1_0)
        return read_attrs(p, &o->attrs);
    if (tnf_str_is(key, "components"))
        return read_components(p, o);
    return skip_key(p, key, "a tensor");
}

static bool read_object(parser *p, object *o)
{
    tnf_cbor_scope map;
    tnf_cbor_enter_map(&p->c, &map);
    for (tnf_str key; tnf_cbor_key(&p->c, &map, &key);)
        if (!(key.p ? read_object_field(p, o, key) : skip_key(p, key, "a tensor")))
            return false;
    if (p->c.status != TNF_OK)
        return false;
    const char *missing = !o->has_shape                 ? "shape"
                          : !o->format.text.p           ? "format"
                          : !o->has_components          ? "components"
                          : p->v1_0 && !o->dtype.text.p ? "dtype"
                                                        : NULL;
    if (missing)
        return tnf_cbor_fail(&p->c, TNF_CBOR_SCHEMA, TNF_EFORMAT, o->at, "%s has no %s",
                             TNF_QUOTED(o->name), missing);
    return true;
}

/* ------------------------------------------------------------------ parts */

static void not_known(parser *p, const object *o, const component *k, tnf_part *part,
                      const char *what, tnf_str word)
{
    tnf_warn(p->r, k->at, "%s cannot be read: the %s of its component %s, %s, is not supported",
             TNF_QUOTED(o->name), what, TNF_QUOTED(k->role), TNF_QUOTED(word));
    part->flags |= TNF_PART_UNREADABLE;
}

/* In 1.0 the tensor has the type, and indices are u64. */
static const tnf_type *find_dtype(const parser *p, const object *o, const component *k)
{
    if (!p->v1_0) {
        const tnf_type *type = tnf_type_find(k->dtype.text.p, k->dtype.text.n);
        return type && tnf_list_has(ZT1_DTYPES, type->id) ? type : NULL;
    }
    if (tnf_str_is(k->role, "indices") || tnf_str_is(k->role, "indptr") ||
        tnf_str_is(k->role, "coords"))
        return tnf_type_of(TNF_U64);
    const char *id = renamed_here(dtypes_1_0, o->dtype.text);
    return id ? tnf_type_named(id) : NULL;
}

/* Finds the logical type over a storage type. An unknown one is kept by its name. */
static tnf_status find_logical(parser *p, const object *o, const component *k, tnf_part *part,
                               tnf_error *e)
{
    tnf_str id = k->type.text;
    const char *here = renamed_here(tnf_zt1_types, id);
    const tnf_type *type = here ? tnf_type_named(here) : tnf_type_find(id.p, id.n);
    if (!type)
        type = tnf_zt_unknown_type(p->r->arena, id, part->type->storage);
    if (!type)
        return tnf_arena_fail(p->r->arena, "a type", e);
    if (type->storage != part->type->storage)
        return tnf_stricter(p->r, e, TNF_EFORMAT, k->at,
                            "the component %s of %s has the type %s, which is not stored as %s",
                            TNF_QUOTED(k->role), TNF_QUOTED(o->name), TNF_QUOTED(id),
                            part->type->id);
    part->type = type;
    return TNF_OK;
}

static tnf_status find_type(parser *p, const object *o, const component *k, tnf_part *part,
                            tnf_error *e)
{
    tnf_str word = p->v1_0 ? o->dtype.text : k->dtype.text;
    part->type = find_dtype(p, o, k);
    if (part->type)
        return k->type.text.p ? find_logical(p, o, k, part, e) : TNF_OK;
    not_known(p, o, k, part, "dtype", word);
    part->type = tnf_zt_unknown_type(p->r->arena, word, TNF_U8);
    return part->type ? TNF_OK : tnf_arena_fail(p->r->arena, "a type", e);
}

/* Finds the decoded size. Only 1.2 stores it, but often the shape implies it. */
static bool decoded_length(uint64_t *out, const object *o, const component *k,
                           const tnf_layout *layout, const tnf_part *part)
{
    uint64_t n;
    if (k->has_decoded)
        return *out = k->decoded, true;
    if (layout == &tnf_layout_dense)
        return tnf_shape_elements(&n, o->shape, o->rank) && tnf_type_bytes(out, part->type, n);
    if (strcmp(layout->id, "sparse_csr/1") != 0 || !tnf_str_is(k->role, "indptr") || o->rank != 2)
        return false;
    return tnf_ckd_add(&n, o->shape[0], 1) && tnf_type_bytes(out, part->type, n);
}

typedef struct stored {
    const tnf_source *source;
    uint64_t offset;
} stored;

static tnf_status read_stored(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const stored *s = ctx;
    return tnf_source_read(s->source, s->offset + offset, dst, n, e);
}

/* Decodes a part once to measure its size, which is not stored. Suspiciously large parts are not
 * decoded. */
static tnf_status measure_part(parser *p, const object *o, const component *k, tnf_part *part,
                               tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    uint64_t most = MEASURE_MOST;
    stored bytes = { p->r->source, part->offset };
    const tnf_encoded from = { read_stored, &bytes, part->stored, UINT64_MAX };
    if (part->stored < MEASURE_MOST / MEASURE_RATIO)
        most = part->stored * MEASURE_RATIO;
    /* The decoder's memory is temporary and does not belong to the handle. */
    tnf_status status = tnf_codec_measure(&part->nbytes, TNF_CODEC_ZSTD, &from, most, NULL, &why);
    if (!tnf_is_file_fault(status)) {
        if (status != TNF_OK && e)
            *e = why;
        return status;
    }
    part->nbytes = part->stored;
    part->flags |= TNF_PART_UNREADABLE;
    tnf_warn(p->r, k->at,
             "%s cannot be read: the decoded size of its component %s is not stored and cannot be "
             "measured: %s",
             TNF_QUOTED(o->name), TNF_QUOTED(k->role), why.message);
    return TNF_OK;
}

static tnf_status make_part(parser *p, const object *o, const component *k,
                            const tnf_layout *layout, tnf_part *part, tnf_error *e)
{
    tnf_str raw = { "raw", 3 }, encoding = k->encoding.text.p ? k->encoding.text : raw;
    *part = (tnf_part) { .offset = k->offset, .stored = k->length, .nbytes = k->length };
    part->role = tnf_arena_str(p->r->arena, k->role.p, k->role.n);
    if (!part->role)
        return tnf_arena_fail(p->r->arena, "a component", e);
    TNF_TRY(find_type(p, o, k, part, e));
    if (tnf_str_is(encoding, "zstd")) {
        part->payload = TNF_ENCODED;
        part->codec = TNF_CODEC_ZSTD;
        if (!decoded_length(&part->nbytes, o, k, layout, part))
            TNF_TRY(measure_part(p, o, k, part, e));
    } else if (!tnf_str_is(encoding, "raw")) {
        not_known(p, o, k, part, "encoding", encoding);
    } else if (k->has_decoded && k->decoded != k->length) {
        TNF_TRY(tnf_stricter(
            p->r, e, TNF_EFORMAT, k->at,
            "the component %s of %s is raw and has %llu bytes, but an uncompressed_length of %llu",
            TNF_QUOTED(k->role), TNF_QUOTED(o->name), (unsigned long long)k->length,
            (unsigned long long)k->decoded));
    }
    TNF_TRY(tnf_zt_check_place(p->r, o->name, k->offset, k->length, p->index_start, k->at, e));
    return tnf_zt_read_digest(p->r, &part->digest, o->name, k->digest.text, true, k->at, e);
}

static int by_offset(const void *a, const void *b)
{
    const component *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (!x->length != !y->length)
        return x->length ? 1 : -1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Sorts parts as the layout lists them, others by the place of their bytes: the map has them by
 * name. */
static void order_parts(const tnf_layout *layout, component *k, size_t n)
{
    size_t done = 0;
    if (n > 1)
        qsort(k, n, sizeof *k, by_offset);
    for (const tnf_layout_part *want = layout->parts; want && want->role; want++)
        for (size_t i = done; i < n; i++)
            if (tnf_str_is(k[i].role, want->role)) {
                component found = k[i];
                memmove(&k[done + 1], &k[done], (i - done) * sizeof *k);
                k[done++] = found;
                break;
            }
}

static tnf_status find_layout(parser *p, const object *o, const tnf_layout **out, tnf_error *e)
{
    tnf_str id = o->format.text;
    const char *here = renamed_here(tnf_zt1_layouts, id);
    *out = here ? tnf_layout_by_id(here) : tnf_layout_named(id.p, id.n);
    if (!*out)
        *out = tnf_layout_unknown(p->r->arena, id.p, id.n);
    return *out ? TNF_OK : tnf_arena_fail(p->r->arena, "a layout", e);
}

static tnf_status add_object(parser *p, const object *from, tnf_error *e)
{
    tnf_object o = { .name = from->name, .shape = from->shape, .rank = from->rank };
    tnf_part *parts = tnf_arena_array(p->r->scratch, from->n, sizeof *parts);
    if (!parts)
        return tnf_arena_fail(p->r->scratch, "components", e);
    o.nparts = (uint16_t)from->n;
    TNF_TRY(find_layout(p, from, &o.layout, e));
    order_parts(o.layout, from->components, from->n);
    for (size_t i = 0; i < from->n; i++)
        TNF_TRY(make_part(p, from, &from->components[i], o.layout, &parts[i], e));
    if (from->attrs.n) {
        tnf_value *map = tnf_arena_alloc(p->r->arena, sizeof *map);
        if (!map)
            return tnf_arena_fail(p->r->arena, "attributes", e);
        *map = from->attrs;
        o.attrs = map;
    }
    return tnf_zt_add(p->r, &o, parts, from->at, e);
}

/* ------------------------------------------------------------------- root */

/* Keeps a tensor that was read. */
static bool keep_object(parser *p, object *o)
{
    uint64_t *shape = tnf_arena_array(p->r->scratch, o->rank, sizeof *shape);
    component *components = tnf_arena_array(p->r->scratch, o->n, sizeof *components);
    object *grown = grow_array(p, p->objects, p->n, &p->objects_capacity, sizeof *grown);
    if (!shape || !components || !grown) {
        p->c.status = tnf_arena_fail(p->r->scratch, "the manifest", p->c.e);
        return false;
    }
    if (o->rank)
        memcpy(shape, p->dims, o->rank * sizeof *shape);
    if (o->n)
        memcpy(components, p->components, o->n * sizeof *components);
    o->shape = shape;
    o->components = components;
    o->begin = UINT64_MAX;
    o->empty = true;
    for (size_t i = 0; i < o->n; i++) {
        o->begin = components[i].offset < o->begin ? components[i].offset : o->begin;
        o->empty = o->empty && components[i].length == 0;
    }
    o->number = p->n;
    p->objects = grown;
    p->objects[p->n++] = *o;
    return true;
}

static bool read_objects(parser *p)
{
    tnf_cbor_scope map;
    p->has_objects = true;
    tnf_cbor_enter_map(&p->c, &map);
    for (tnf_str key; tnf_cbor_key(&p->c, &map, &key);) {
        object o = { .at = tnf_cbor_where(&p->c), .name = key };
        if (!key.p)
            return tnf_cbor_fail(&p->c, TNF_CBOR_SCHEMA, TNF_EFORMAT, o.at,
                                 "a tensor has a name that is not text");
        if (!read_object(p, &o) || !keep_object(p, &o))
            return false;
    }
    return p->c.status == TNF_OK;
}

/* Tensors without bytes were written before others at the same place. */
static int by_place(const void *a, const void *b)
{
    const object *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->empty != y->empty)
        return x->empty ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static tnf_status add_objects(parser *p, tnf_error *e)
{
    if (p->n)
        qsort(p->objects, p->n, sizeof *p->objects, by_place);
    for (size_t i = 0; i < p->n; i++)
        TNF_TRY(add_object(p, &p->objects[i], e));
    return TNF_OK;
}

static bool set_attr(parser *p, tnf_str key, tnf_value v)
{
    tnf_attrs *attrs = &p->r->catalog->attrs;
    p->c.status = tnf_attrs_push(attrs, key.p, v, p->c.e);
    if (p->c.status == TNF_OK)
        attrs->members[attrs->n - 1].key.n = key.n;
    return p->c.status == TNF_OK;
}

static bool read_file_attrs(parser *p)
{
    tnf_value v = { 0 };
    if (!read_attrs(p, &v))
        return false;
    for (size_t i = 0; i < v.n; i++)
        if (!set_attr(p, v.as.members[i].key, v.as.members[i].value))
            return false;
    return true;
}

static bool read_generator(parser *p)
{
    static const tnf_str key = { "ztensor.generator", sizeof "ztensor.generator" - 1 };
    tnf_str text;
    if (!tnf_cbor_text(&p->c, &text))
        return false;
    const char *copy = tnf_arena_str(p->r->arena, text.p, text.n);
    if (!copy)
        p->c.status = tnf_arena_fail(p->r->arena, "an attribute", p->c.e);
    return copy && set_attr(p, key, tnf_value_str(TNF_STRING, copy, text.n));
}

static bool read_root_field(parser *p, tnf_str key)
{
    if (tnf_str_is(key, "version"))
        return tnf_cbor_text(&p->c, &p->version);
    if (tnf_str_is(key, "generator") && p->v1_0)
        return read_generator(p);
    if (tnf_str_is(key, "attributes"))
        return read_file_attrs(p);
    if (tnf_str_is(key, p->v1_0 ? "tensors" : "objects"))
        return read_objects(p);
    return skip_key(p, key, "the manifest");
}

static tnf_status read_root(parser *p, tnf_error *e)
{
    tnf_cbor_scope map;
    uint64_t at = tnf_cbor_where(&p->c);
    tnf_cbor_enter_map(&p->c, &map);
    for (tnf_str key; tnf_cbor_key(&p->c, &map, &key);)
        if (!(key.p ? read_root_field(p, key) : skip_key(p, key, "the manifest")))
            return p->c.status;
    TNF_TRY(tnf_cbor_end(&p->c));
    if (!p->has_objects)
        return tnf_fail(e, TNF_EFORMAT, at, "the manifest has no %s",
                        p->v1_0 ? "tensors" : "objects");
    if (!p->version.p)
        TNF_TRY(tnf_stricter(p->r, e, TNF_EFORMAT, at, "the manifest has no version"));
    p->r->version = p->version.p ? tnf_arena_str(p->r->arena, p->version.p, p->version.n)
                    : p->v1_0    ? "1.0"
                                 : "1.1";
    return p->r->version ? add_objects(p, e) : tnf_arena_fail(p->r->arena, "the version", e);
}

tnf_status tnf_zt1_index(tnf_reader *r, tnf_error *e)
{
    tnf_cur head, tail;
    uint64_t size = r->source->size;
    parser p = { .r = r };
    TNF_TRY(tnf_read_range(r, "magic number", 0, ZT_HEAD, ZT_HEAD, &head, e));
    if (memcmp(head.p, ZT1_MAGIC, ZT_HEAD) != 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "the file does not begin with " ZT1_MAGIC);
    TNF_TRY(tnf_read_range(r, "footer", size < 16 ? ZT_HEAD : size - 8, 8, 8, &tail, e));
    p.v1_0 = size < 24 || memcmp(tail.p, ZT1_MAGIC, 8) != 0;
    uint64_t end = size - (p.v1_0 ? 8 : 16);
    if (!p.v1_0)
        TNF_TRY(tnf_read_range(r, "length of the manifest", end, 8, 8, &tail, e));
    uint64_t n = tnf_u64(&tail);
    TNF_TRY(tnf_zt_open_index(r, &p.c, end, n, e));
    p.index_start = end - n;
    return read_root(&p, e);
}
