/* SPDX-License-Identifier: MIT */
/* Reads the document of an array and makes its tensor.
 *
 *   version 2   {"zarr_format": 2, "shape", "chunks", "dtype", "compressor", "fill_value", "order",
 *                "filters", "dimension_separator"}
 *   version 3   {"zarr_format": 3, "node_type": "array", "shape", "data_type", "chunk_grid",
 *                "chunk_key_encoding", "fill_value", "codecs", "attributes", "dimension_names"}
 */
#include "formats/zarr/zr.h"

#include <stdio.h>
#include <string.h>

#define ATTRS  "zarr.attrs"
#define CHUNKS "zarr.chunks"
#define NAMES  "zarr.dimension_names"
#define FILL   "zarr.fill_value"
#define CODECS "zarr.codecs"
#define DTYPE  "zarr.dtype"

static tnf_status read_numbers(uint64_t **out, uint32_t *rank, tnf_reader *r, const zr_doc *d,
                               tnf_str text, const char *what, tnf_error *e)
{
    tnf_json j;
    uint64_t dims[ZR_MAX_RANK];
    uint32_t n = 0;
    if (!text.p)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "%s has no %s", TNF_VISIBLE(d->name), what);
    tnf_json_init(&j, text.p, text.n, 0, r->scratch, 4, e);
    if (tnf_json_enter(&j, '['))
        while (tnf_json_item(&j)) {
            if (n == ZR_MAX_RANK)
                return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "%s has more than %u dimensions",
                                TNF_VISIBLE(d->name), ZR_MAX_RANK);
            if (!tnf_json_u64(&j, &dims[n++]))
                break;
        }
    tnf_status status = tnf_json_end(&j);
    if (status != TNF_OK) {
        tnf_error_prefix(e, what);
        tnf_error_prefix(e, TNF_VISIBLE(d->name));
        return status;
    }
    *out = tnf_arena_array(r->arena, (uint64_t)n + 1, sizeof **out);
    if (!*out)
        return tnf_arena_fail(r->arena, "an array", e);
    memcpy(*out, dims, n * sizeof *dims);
    *rank = n;
    return TNF_OK;
}

/* Reads the shape of stored chunks and checks it against the array's. */
static tnf_status set_chunks(zr_array *a, tnf_reader *r, const zr_doc *d, tnf_str text,
                             tnf_error *e)
{
    uint32_t rank;
    uint64_t *chunk;
    TNF_TRY(read_numbers(&chunk, &rank, r, d, text, "shape of chunks", e));
    if (rank != a->rank)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "%s: the rank of its chunks is %u, but that of the array is %u",
                        TNF_VISIBLE(d->name), rank, a->rank);
    for (uint32_t i = 0; i < rank; i++)
        if (chunk[i] == 0)
            return tnf_zr_wrong(d, e, "has chunks without elements");
    a->level.chunk = chunk;
    return TNF_OK;
}

static tnf_status set_shape(zr_array *a, tnf_reader *r, const zr_doc *d, tnf_error *e)
{
    uint64_t *shape, n;
    TNF_TRY(read_numbers(&shape, &a->rank, r, d, tnf_zr_get(d, "shape"), "shape", e));
    a->shape = shape;
    if (!tnf_shape_elements(&n, shape, a->rank) || n > (uint64_t)INT64_MAX)
        return tnf_zr_wrong(d, e, "has a shape whose product exceeds 2^63");
    return TNF_OK;
}

/* Chooses the chunks to read: those of the array, or those in its shards. */
static tnf_status set_grid(zr_array *a, tnf_reader *r, const zr_doc *d, tnf_error *e)
{
    uint64_t *count = tnf_arena_array(r->arena, (uint64_t)a->rank + 1, sizeof *count);
    if (!count)
        return tnf_arena_fail(r->arena, "an array", e);
    a->read = &a->level;
    bool rows = true;
    uint64_t step = 1;
    for (uint32_t i = a->rank; i-- > 0; step *= a->level.chunk[i])
        rows = rows && a->level.stride[i] == step;
    if (a->level.ncodecs == 1 && a->level.codecs[0].kind == ZR_SHARD && rows)
        a->read = a->level.codecs[0].shard;
    if (a->read->bytes > ZR_MAX_CHUNK) /* a shard of any size is read chunk by chunk */
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "%s: a chunk has more than %llu bytes, which is not supported",
                        TNF_VISIBLE(d->name), (unsigned long long)ZR_MAX_CHUNK);
    for (uint32_t i = 0; i < a->rank; i++)
        count[i] = a->shape[i] / a->read->chunk[i] + (a->shape[i] % a->read->chunk[i] != 0);
    a->count = count;
    return TNF_OK;
}

/* ---------------------------------------------------------------- version 2 */

static tnf_status read_v2(zr_array *a, zr_type *t, tnf_reader *r, const zr_doc *d, tnf_error *e)
{
    tnf_str separator = tnf_zr_get(d, "dimension_separator");
    if (!tnf_str_is(tnf_zr_get(d, "zarr_format"), "2"))
        return tnf_zr_wrong(d, e, "does not have zarr_format 2");
    TNF_TRY(set_shape(a, r, d, e));
    TNF_TRY(set_chunks(a, r, d, tnf_zr_get(d, "chunks"), e));
    TNF_TRY(tnf_zr_type_v2(t, r, d, e));
    a->separator = '.';
    if (tnf_str_is(separator, "\"/\""))
        a->separator = '/';
    else if (separator.p && !tnf_str_is(separator, "\".\"") && !tnf_str_is(separator, "null"))
        return tnf_zr_wrong(d, e, "has a dimension_separator that is neither . nor /");
    if (t->object) {
        t->type = tnf_type_of(TNF_U8);
        t->width = 1;
        t->text = ZR_TEXT_VLEN;
    }
    TNF_TRY(tnf_zr_codecs_v2(a, r, d, t, e));
    return tnf_zr_fill(a, r, d, t, e);
}

/* ---------------------------------------------------------------- version 3 */

/* An unknown member must be marked as ignorable. */
static tnf_status check_members(const zr_doc *d, tnf_reader *r, tnf_error *e)
{
    static const char known[] =
        "zarr_format node_type shape data_type chunk_grid chunk_key_encoding fill_value codecs "
        "attributes dimension_names storage_transformers consolidated_metadata";
    for (size_t i = 0; i < d->n; i++) {
        tnf_str key = d->members[i].key;
        tnf_value v;
        if (tnf_str_listed(key, known))
            continue;
        TNF_TRY(tnf_zr_tree(&v, r, d, d->members[i].text, e));
        const tnf_value *must = v.kind == TNF_MAP ? tnf_value_get(&v, "must_understand") : NULL;
        if (!must || must->kind != TNF_BOOL || must->as.b)
            return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "%s has an unknown member %s that readers must understand",
                            TNF_VISIBLE(d->name), TNF_QUOTED(key));
    }
    tnf_str transformers = tnf_zr_get(d, "storage_transformers");
    tnf_value v = { 0 };
    if (transformers.p)
        TNF_TRY(tnf_zr_tree(&v, r, d, transformers, e));
    return transformers.p && v.n ? tnf_zr_wrong(d, e, "has storage_transformers, which are unknown")
                                 : TNF_OK;
}

static tnf_status read_keys(zr_array *a, tnf_reader *r, const zr_doc *d, tnf_error *e)
{
    tnf_str text = tnf_zr_get(d, "chunk_key_encoding");
    zr_doc encoding = { 0 }, config = { 0 };
    tnf_str name = { "\"default\"", 9 }, separator;
    if (text.p && text.p[0] == '{') {
        TNF_TRY(tnf_zr_parse_doc(&encoding, r, text, d->name, e));
        name = tnf_zr_get(&encoding, "name");
        tnf_str inner = tnf_zr_get(&encoding, "configuration");
        if (inner.p)
            TNF_TRY(tnf_zr_parse_doc(&config, r, inner, d->name, e));
    } else if (text.p) {
        name = text;
    }
    a->prefixed = tnf_str_is(name, "\"default\"");
    if (!a->prefixed && !tnf_str_is(name, "\"v2\""))
        return tnf_zr_wrong(d, e, "has an unknown chunk_key_encoding");
    a->separator = a->prefixed ? '/' : '.';
    separator = tnf_zr_get(&config, "separator");
    if (tnf_str_is(separator, "\"/\"") || tnf_str_is(separator, "\".\""))
        a->separator = separator.p[1];
    else if (separator.p)
        return tnf_zr_wrong(d, e, "has a separator that is neither . nor /");
    return TNF_OK;
}

static tnf_status read_v3(zr_array *a, zr_type *t, tnf_reader *r, const zr_doc *d, tnf_error *e)
{
    zr_doc grid, config;
    TNF_TRY(check_members(d, r, e));
    TNF_TRY(set_shape(a, r, d, e));
    tnf_str text = tnf_zr_get(d, "chunk_grid");
    if (!text.p || text.p[0] != '{')
        return tnf_zr_wrong(d, e, "has no chunk_grid");
    TNF_TRY(tnf_zr_parse_doc(&grid, r, text, d->name, e));
    if (!tnf_str_is(tnf_zr_get(&grid, "name"), "\"regular\""))
        return tnf_zr_wrong(d, e, "has a chunk_grid that is not regular");
    text = tnf_zr_get(&grid, "configuration");
    if (!text.p || text.p[0] != '{')
        return tnf_zr_wrong(d, e, "has a chunk_grid without a configuration");
    TNF_TRY(tnf_zr_parse_doc(&config, r, text, d->name, e));
    TNF_TRY(set_chunks(a, r, d, tnf_zr_get(&config, "chunk_shape"), e));
    TNF_TRY(tnf_zr_type_v3(t, r, d, e));
    TNF_TRY(read_keys(a, r, d, e));
    TNF_TRY(tnf_zr_codecs_v3(a, r, d, t, e));
    return tnf_zr_fill(a, r, d, t, e);
}

/* -------------------------------------------------------------- attributes */

static tnf_status push_json(tnf_attrs *m, tnf_reader *r, const char *key, tnf_str text,
                            tnf_error *e)
{
    if (!text.p)
        return TNF_OK;
    tnf_value v = tnf_zr_json(r, text);
    return v.as.s ? tnf_attrs_push(m, key, v, e) : tnf_arena_fail(r->arena, "attributes", e);
}

/* {"compressor": …, "filters": …} */
static tnf_status v2_codecs(tnf_str *out, tnf_reader *r, const zr_doc *d, tnf_error *e)
{
    tnf_str packer = tnf_zr_get(d, "compressor"), filters = tnf_zr_get(d, "filters");
    tnf_buf b;
    tnf_buf_init(&b, &r->scratch->alloc, ZR_MAX_DOCUMENT);
    tnf_buf_puts(&b, "{\"compressor\": ");
    tnf_buf_put(&b, packer.p ? packer.p : "null", packer.p ? packer.n : 4);
    tnf_buf_puts(&b, ", \"filters\": ");
    tnf_buf_put(&b, filters.p ? filters.p : "null", filters.p ? filters.n : 4);
    tnf_buf_puts(&b, "}");
    tnf_status status = tnf_buf_status(&b, "the codecs", e);
    out->p = status == TNF_OK ? tnf_arena_str(r->arena, b.p, b.n) : NULL;
    out->n = b.n;
    tnf_buf_free(&b);
    TNF_TRY(status);
    return out->p ? TNF_OK : tnf_arena_fail(r->arena, "codecs", e);
}

static bool is_empty(tnf_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!strchr("{} \t\r\n", text.p[i]))
            return false;
    return true;
}

static bool all_null(tnf_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '"')
            return false;
    return true;
}

static tnf_status make_attrs(const tnf_value **out, tnf_reader *r, const zr_doc *d,
                             const zr_type *t, bool v3, tnf_str attrs, const tnf_member *more,
                             tnf_error *e)
{
    tnf_attrs m = { .arena = r->arena };
    tnf_value *map = tnf_arena_alloc(r->arena, sizeof *map);
    zr_doc grid, config = { 0 };
    tnf_str names = tnf_zr_get(d, "dimension_names"), codecs = tnf_zr_get(d, "codecs");
    tnf_str chunks = tnf_zr_get(d, "chunks");
    if (!map)
        return tnf_arena_fail(r->arena, "attributes", e);
    if (v3) {
        attrs = tnf_zr_get(d, "attributes");
        TNF_TRY(tnf_zr_parse_doc(&grid, r, tnf_zr_get(d, "chunk_grid"), d->name, e));
        TNF_TRY(tnf_zr_parse_doc(&config, r, tnf_zr_get(&grid, "configuration"), d->name, e));
        chunks = tnf_zr_get(&config, "chunk_shape");
    } else {
        TNF_TRY(v2_codecs(&codecs, r, d, e));
    }
    if (attrs.p && !is_empty(attrs) && !tnf_str_is(attrs, "null"))
        TNF_TRY(push_json(&m, r, ATTRS, attrs, e));
    TNF_TRY(push_json(&m, r, CHUNKS, chunks, e));
    if (v3 && names.p && !all_null(names))
        TNF_TRY(push_json(&m, r, NAMES, names, e));
    TNF_TRY(push_json(&m, r, FILL, tnf_zr_get(d, "fill_value"), e));
    TNF_TRY(push_json(&m, r, CODECS, codecs, e));
    if (t->say)
        TNF_TRY(push_json(&m, r, DTYPE, tnf_zr_get(d, v3 ? "data_type" : "dtype"), e));
    if (more)
        TNF_TRY(tnf_attrs_push(&m, more->key.p, more->value, e));
    *map = tnf_attrs_value(&m);
    *out = map;
    return TNF_OK;
}

/* ------------------------------------------------------------------ tensor */

/* Lists the array under its own type; reading it fails with the reason. */
static tnf_status list_only(tnf_part *part, tnf_reader *r, const zr_type *t, const char *why,
                            tnf_error *e)
{
    char text[160];
    if (!t->type) {
        tnf_type *own = tnf_arena_alloc(r->arena, sizeof *own);
        if (!own)
            return tnf_arena_fail(r->arena, "a type", e);
        *own = (tnf_type) { t->own, TNF_U8, TNF_NUMBER_OPAQUE, 0 };
        snprintf(text, sizeof text, "elements of the type %s are not supported",
                 TNF_VISIBLE(t->own));
        part->type = own;
        part->nbytes = part->stored = 0;
        why = why ? why : text;
    }
    part->flags |= TNF_PART_UNREADABLE;
    part->payload = TNF_OPAQUE;
    return tnf_unreadable_origin(r, &part->origin, why, e);
}

static tnf_status keep_array(zr_array *a, tnf_reader *r, tnf_error *e)
{
    zr_state *s = r->state;
    zr_array **arrays = tnf_arena_grow(r->arena, s->arrays, s->n, &s->capacity, sizeof *arrays, 16);
    if (!arrays)
        return tnf_arena_fail(r->arena, "arrays", e);
    s->arrays = arrays;
    a->number = s->n;
    s->arrays[s->n++] = a;
    return TNF_OK;
}

/* Lists strings with a damaged chunk; reading them fails with the reason. */
static tnf_status list_damaged(const tnf_object *o, tnf_reader *r, zr_array *a, tnf_status status,
                               const tnf_error *why, tnf_error *e)
{
    static const zr_type text = { .own = "string" };
    tnf_part part = { .role = "data" };
    if (status != TNF_EFORMAT && status != TNF_EDIGEST && status != TNF_ETRUNCATED) {
        if (e)
            *e = *why;
        return status;
    }
    tnf_error *kept = tnf_arena_alloc(r->arena, sizeof *kept);
    if (!kept)
        return tnf_arena_fail(r->arena, "an array", e);
    *kept = *why;
    a->damage = kept;
    tnf_warn(r, TNF_NO_OFFSET, "%s", why->message);
    TNF_TRY(list_only(&part, r, &text, why->message, e));
    return tnf_add_parts(r, o, &tnf_layout_dense, &part, 1, 0, e);
}

static tnf_status add_strings(const tnf_object *o, tnf_reader *r, zr_array *a, tnf_error *e)
{
    tnf_part parts[2];
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_zr_strings(parts, r, a, &why);
    if (status != TNF_OK)
        return list_damaged(o, r, a, status, &why, e);
    return tnf_add_parts(r, o, tnf_layout_named("strings/1", 9), parts, 2, 0, e);
}

/* Places an array that is a single plain chunk in row-major order, so it can be mapped in place. */
static tnf_status place_lone(tnf_part *part, tnf_reader *r, const zr_array *a, tnf_error *e)
{
    const zr_level *l = &a->level;
    bool lone = a->read == l && l->ncodecs == 1 && l->codecs[0].kind == ZR_BYTES && !a->packed &&
                a->store->place && (l->width == 1 || !l->codecs[0].big || l->swap == l->width);
    uint64_t step = 1, first[ZR_MAX_RANK] = { 0 };
    for (uint32_t i = a->rank; i-- > 0; step *= l->chunk[i])
        lone = lone && l->chunk[i] == a->shape[i] && l->stride[i] == step;
    size_t key = lone ? tnf_zr_find_chunk(a, first) : SIZE_MAX;
    if (key == SIZE_MAX || a->store->keys[key].size != part->nbytes || part->nbytes == 0)
        return TNF_OK;
    tnf_part there = *part;
    bool placed = false;
    tnf_error why;
    tnf_status status = a->store->place(a->store, r, &there, a->store->keys[key].index, &placed,
                                        &why);
    if (status != TNF_OK && status != TNF_EFORMAT && status != TNF_ETRUNCATED) {
        if (e)
            *e = why;
        return status;
    }
    if (status == TNF_OK && placed) { /* otherwise reading reports the reason */
        *part = there;
        part->flags |= l->codecs[0].big && l->swap > 1 ? TNF_PART_BIG_ENDIAN : 0;
    }
    return TNF_OK;
}

static tnf_status add_tensor(tnf_reader *r, zr_array *a, const zr_type *t, const tnf_value *attrs,
                             tnf_error *e)
{
    uint64_t shape[ZR_MAX_RANK + 1], n = 0;
    tnf_part part = { .role = "data", .type = t->type, .payload = TNF_OPAQUE, .offset = a->number };
    tnf_object o = { .name = a->name, .shape = shape, .rank = a->rank, .attrs = attrs };
    memcpy(shape, a->shape, a->rank * sizeof *shape);
    if (t->axis && !t->text) {
        shape[o.rank++] = t->axis;
        a->axis = true;
    }
    if (t->text && !a->why)
        return add_strings(&o, r, a, e);
    if (t->type &&
        (!tnf_shape_elements(&n, shape, o.rank) || !tnf_type_bytes(&part.nbytes, t->type, n)))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "%s has more than 2^64 bytes",
                        TNF_QUOTED(a->name));
    part.stored = part.nbytes;
    if (a->why || !t->type)
        TNF_TRY(list_only(&part, r, t, a->why, e));
    else
        TNF_TRY(place_lone(&part, r, a, e));
    return tnf_add_parts(r, &o, &tnf_layout_dense, &part, 1, 0, e);
}

tnf_status tnf_zr_add_array(tnf_reader *r, const zr_store *s, tnf_str name, tnf_str prefix,
                            const zr_doc *d, bool v3, tnf_str attrs, const tnf_member *more,
                            tnf_error *e)
{
    zr_array *a = tnf_arena_alloc(r->arena, sizeof *a);
    const tnf_value *own;
    zr_type t = { 0 };
    if (!a)
        return tnf_arena_fail(r->arena, "an array", e);
    *a = (zr_array) { .store = s, .name = name, .prefix = prefix };
    TNF_TRY(v3 ? read_v3(a, &t, r, d, e) : read_v2(a, &t, r, d, e));
    a->type = t.type;
    a->packed = t.packed;
    a->text = t.text;
    if (!a->why)
        TNF_TRY(set_grid(a, r, d, e));
    TNF_TRY(keep_array(a, r, e));
    TNF_TRY(make_attrs(&own, r, d, &t, v3, attrs, more, e));
    return add_tensor(r, a, &t, own, e);
}

tnf_status tnf_zr_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e)
{
    const zr_state *s = r->state;
    (void)arena;
    (void)e;
    for (size_t i = 0; i < s->n; i++)
        if (s->arrays[i]->damage)
            tell(ctx, s->arrays[i]->damage, s->arrays[i]->name);
    return TNF_OK;
}
