/* SPDX-License-Identifier: MIT */
/* Converts the codecs of a document to one form for both versions:
 *
 *   [transpose …] bytes | sharding_indexed | vlen-utf8 [zstd | gzip | … | crc32c …]
 *
 * Transposing is not a separate step: it determines the distances between neighbours. */
#include "formats/zarr/zr.h"

#include <stdio.h>
#include <string.h>

#define MAX_CODECS 16u

/* The state of parsing a list of codecs. */
typedef struct parsing {
    tnf_reader *r;
    zr_array *a;
    const zr_doc *d;
    const zr_type *t;
    unsigned depth;
    tnf_error *e;
} parsing;

static const struct {
    const char *name;
    zr_kind kind;
} packers[] = { { "zstd", ZR_ZSTD },   { "gzip", ZR_GZIP }, { "zlib", ZR_ZLIB },
                { "blosc", ZR_BLOSC }, { "lz4", ZR_LZ4 },   { "crc32c", ZR_CRC32C } };

static bool find_packer(zr_kind *out, tnf_str name)
{
    static const char foreign[] = "numcodecs.";
    size_t n = sizeof foreign - 1;
    if (name.n > n && memcmp(name.p, foreign, n) == 0)
        name = (tnf_str) { name.p + n, name.n - n };
    for (size_t i = 0; i < sizeof packers / sizeof *packers; i++)
        if (tnf_str_is(name, packers[i].name)) {
            *out = packers[i].kind;
            return true;
        }
    return false;
}

/* The array is listed; reading it fails with this reason. */
static tnf_status unknown_codec(const parsing *p, tnf_str name)
{
    char text[160];
    snprintf(text, sizeof text, "the codec %s is not supported", TNF_QUOTED(name));
    if (!p->a->why)
        p->a->why = tnf_arena_str(p->r->arena, text, strlen(text));
    return p->a->why ? TNF_OK : tnf_arena_fail(p->r->arena, "a codec", p->e);
}

static tnf_status wrong_codec(const parsing *p, const char *what)
{
    (void)tnf_zr_wrong(p->d, p->e, what);
    return TNF_EFORMAT;
}

/* Sets the sizes of a chunk and row-major strides. */
static tnf_status begin_level(zr_level *l, const parsing *p, const uint64_t *chunk, uint32_t rank,
                              size_t width, uint64_t *stride)
{
    *l = (zr_level) { .rank = rank, .width = width, .chunk = chunk, .stride = stride };
    l->swap = p->t->swap;
    if (!tnf_shape_elements(&l->elements, chunk, rank) ||
        !tnf_ckd_mul(&l->bytes, l->elements, width))
        return tnf_fail(p->e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "%s: a chunk has more than 2^64 bytes, which is not supported",
                        TNF_VISIBLE(p->d->name));
    uint64_t step = 1;
    for (uint32_t i = rank; i-- > 0;) {
        stride[i] = step;
        step *= chunk[i];
    }
    return TNF_OK;
}

/* `order`: stored axis i is axis order[i] before. Several transpositions are combined into one. */
static void lay_out(zr_level *l, const uint32_t *order, uint64_t *stride)
{
    uint64_t step = 1;
    for (uint32_t i = l->rank; i-- > 0;) {
        stride[order[i]] = step;
        step *= l->chunk[order[i]];
    }
}

static tnf_status read_transpose(const parsing *p, uint32_t *order, uint32_t rank,
                                 const tnf_value *config)
{
    const tnf_value *v = config ? tnf_value_get(config, "order") : NULL;
    uint32_t before[ZR_MAX_RANK];
    uint64_t seen = 0;
    if (!v || v->kind != TNF_ARRAY || v->n != rank)
        return wrong_codec(p, "transposes by an order with another number of axes");
    memcpy(before, order, rank * sizeof *order);
    for (uint32_t i = 0; i < rank; i++) {
        const tnf_value *x = &v->as.items[i];
        if (x->kind != TNF_INT || x->as.u >= rank || seen >> x->as.u & 1)
            return wrong_codec(p, "transposes by an order that is not a permutation of its axes");
        seen |= (uint64_t)1 << x->as.u;
        order[i] = before[x->as.u];
    }
    return TNF_OK;
}

static tnf_status read_list(const parsing *p, zr_level *l, uint64_t *stride, const tnf_value *list);

static tnf_status read_dims(const parsing *p, uint64_t **out, const tnf_value *v, uint32_t rank)
{
    uint64_t *dims = tnf_arena_array(p->r->arena, 2 * (uint64_t)rank + 1, sizeof *dims);
    if (!dims)
        return tnf_arena_fail(p->r->arena, "an array", p->e);
    if (!v || v->kind != TNF_ARRAY || v->n != rank)
        return wrong_codec(p, "has a chunk_shape with another number of axes");
    for (uint32_t i = 0; i < rank; i++) {
        if (v->as.items[i].kind != TNF_INT || v->as.items[i].as.i < 1)
            return wrong_codec(p, "has a chunk_shape that is not positive");
        dims[i] = v->as.items[i].as.u;
    }
    *out = dims;
    return TNF_OK;
}

/* Reads the codecs of a shard's index, which has n pairs of numbers of known size. */
static tnf_status read_index(const parsing *p, zr_level *inner, uint64_t n, const tnf_value *config)
{
    const tnf_value *list = tnf_value_get(config, "index_codecs");
    const tnf_value *place = tnf_value_get(config, "index_location");
    zr_level *index = tnf_arena_alloc(p->r->arena, sizeof *index);
    uint64_t *dims = tnf_arena_array(p->r->arena, 2, sizeof *dims);
    if (!index || !dims)
        return tnf_arena_fail(p->r->arena, "a shard", p->e);
    if (n > ZR_MAX_CHUNK / 16)
        return tnf_fail(p->e, TNF_ELIMIT, TNF_NO_OFFSET, "%s: a shard has too many chunks",
                        TNF_VISIBLE(p->d->name));
    dims[0] = 2 * n;
    zr_type number = { .type = tnf_type_of(TNF_U64), .width = 8, .swap = 8 };
    parsing inside = *p;
    inside.t = &number;
    TNF_TRY(begin_level(index, &inside, dims, 1, 8, dims + 1));
    TNF_TRY(read_list(&inside, index, dims + 1, list));
    for (size_t i = 0; i < index->ncodecs; i++)
        if (index->codecs[i].kind != ZR_BYTES && index->codecs[i].kind != ZR_CRC32C)
            return wrong_codec(p, "compresses the index of its shards, so its size is unknown");
    inner->index = index;
    if (tnf_value_is(place, "start"))
        inner->index_first = true;
    else if (place && !tnf_value_is(place, "end"))
        return wrong_codec(p, "has an index_location that is neither start nor end");
    return TNF_OK;
}

static tnf_status read_shard(const parsing *p, zr_codec *c, const zr_level *outer,
                             const tnf_value *config)
{
    zr_level *inner = tnf_arena_alloc(p->r->arena, sizeof *inner);
    uint64_t *dims = NULL, n = 1;
    parsing inside = *p;
    if (!inner)
        return tnf_arena_fail(p->r->arena, "a shard", p->e);
    if (!config || ++inside.depth > ZR_MAX_DEPTH)
        return wrong_codec(p, "has shards in shards too deeply, or without a configuration");
    TNF_TRY(read_dims(p, &dims, tnf_value_get(config, "chunk_shape"), outer->rank));
    for (uint32_t i = 0; i < outer->rank; i++) {
        if (outer->chunk[i] % dims[i])
            return wrong_codec(p, "has shards that are not a multiple of their chunks");
        n *= outer->chunk[i] / dims[i];
    }
    TNF_TRY(begin_level(inner, p, dims, outer->rank, outer->width, dims + outer->rank));
    TNF_TRY(read_list(&inside, inner, dims + outer->rank, tnf_value_get(config, "codecs")));
    TNF_TRY(read_index(p, inner, n, config));
    c->kind = ZR_SHARD;
    c->shard = inner;
    return TNF_OK;
}

static bool is_big(const tnf_value *config)
{
    const tnf_value *v = config ? tnf_value_get(config, "endian") : NULL;
    return tnf_value_is(v, "big");
}

/* Is it the codec that makes bytes from an array? */
static bool is_serializer(tnf_str name)
{
    return tnf_str_is(name, "bytes") || tnf_str_is(name, "endian") ||
           tnf_str_is(name, "sharding_indexed") || tnf_str_is(name, "vlen-utf8");
}

static tnf_status read_serializer(const parsing *p, zr_codec *c, const zr_level *l, tnf_str name,
                                  const tnf_value *config)
{
    if (tnf_str_is(name, "sharding_indexed"))
        return read_shard(p, c, l, config);
    bool vlen = tnf_str_is(name, "vlen-utf8");
    if (vlen != (p->t->text == ZR_TEXT_VLEN))
        return wrong_codec(p, "uses the codec for strings with numbers, or another codec with "
                              "strings");
    *c = (zr_codec) { .kind = vlen ? ZR_VLEN : ZR_BYTES, .big = is_big(config) };
    return TNF_OK;
}

static tnf_status name_of(const parsing *p, tnf_str *name, const tnf_value **config,
                          const tnf_value *v)
{
    const tnf_value *n = v->kind == TNF_MAP ? tnf_value_get(v, "name") : v;
    if (!n || n->kind != TNF_STRING)
        return wrong_codec(p, "has a codec without a name");
    *name = (tnf_str) { n->as.s, n->n };
    *config = v->kind == TNF_MAP ? tnf_value_get(v, "configuration") : NULL;
    return TNF_OK;
}

static tnf_status read_list(const parsing *p, zr_level *l, uint64_t *stride, const tnf_value *list)
{
    zr_codec *codecs = tnf_arena_array(p->r->arena, MAX_CODECS, sizeof *codecs);
    uint32_t order[ZR_MAX_RANK];
    if (!codecs)
        return tnf_arena_fail(p->r->arena, "codecs", p->e);
    if (!list || list->kind != TNF_ARRAY || list->n == 0 || list->n > MAX_CODECS)
        return wrong_codec(p, "has no codecs, or too many");
    for (uint32_t i = 0; i < l->rank; i++)
        order[i] = i;
    l->codecs = codecs;
    for (size_t i = 0; i < list->n; i++) {
        const tnf_value *config;
        zr_codec *c = &codecs[l->ncodecs];
        tnf_str name;
        TNF_TRY(name_of(p, &name, &config, &list->as.items[i]));
        if (is_serializer(name) && l->ncodecs == 0) {
            TNF_TRY(read_serializer(p, c, l, name, config));
            l->ncodecs++;
        } else if (l->ncodecs == 0 && tnf_str_is(name, "transpose")) {
            TNF_TRY(read_transpose(p, order, l->rank, config));
        } else if (l->ncodecs > 0 && find_packer(&c->kind, name)) {
            l->ncodecs++;
        } else if (is_serializer(name) || find_packer(&c->kind, name)) {
            return wrong_codec(p, "has its codecs in an invalid order");
        } else {
            TNF_TRY(unknown_codec(p, name));
        }
    }
    lay_out(l, order, stride);
    return l->ncodecs || p->a->why ? TNF_OK : wrong_codec(p, "has no codec that makes bytes");
}

tnf_status tnf_zr_codecs_v3(zr_array *a, tnf_reader *r, const zr_doc *d, const zr_type *t,
                            tnf_error *e)
{
    tnf_str text = tnf_zr_get(d, "codecs");
    parsing p = { r, a, d, t, 0, e };
    tnf_value list;
    uint64_t *stride = tnf_arena_array(r->arena, (uint64_t)a->rank + 1, sizeof *stride);
    if (!stride)
        return tnf_arena_fail(r->arena, "an array", e);
    if (!text.p)
        return tnf_zr_wrong(d, e, "has no codecs");
    TNF_TRY(tnf_zr_tree(&list, r, d, text, e));
    TNF_TRY(begin_level(&a->level, &p, a->level.chunk, a->rank, t->width, stride));
    return read_list(&p, &a->level, stride, &list);
}

/* ---------------------------------------------------------------- version 2 */

static tnf_str id_of(const tnf_value *v)
{
    const tnf_value *id = v->kind == TNF_MAP ? tnf_value_get(v, "id") : NULL;
    return id && id->kind == TNF_STRING ? (tnf_str) { id->as.s, id->n } : (tnf_str) { "", 0 };
}

static tnf_status add_packer(const parsing *p, zr_codec *codecs, const tnf_value *v)
{
    tnf_str id = id_of(v);
    zr_level *l = &p->a->level;
    if (tnf_str_is(id, "pickle") || tnf_str_is(id, "json2") || tnf_str_is(id, "msgpack2"))
        return wrong_codec(p, "stores Python objects, which are never created");
    if (!find_packer(&codecs[l->ncodecs].kind, id))
        return unknown_codec(p, id);
    l->ncodecs++;
    return TNF_OK;
}

static tnf_status add_filters(const parsing *p, zr_codec *codecs)
{
    tnf_str text = tnf_zr_get(p->d, "filters");
    tnf_value v;
    if (!text.p || tnf_str_is(text, "null"))
        return p->t->object ? wrong_codec(p, "has Python objects, which are never created")
                            : TNF_OK;
    TNF_TRY(tnf_zr_tree(&v, p->r, p->d, text, p->e));
    if (v.kind != TNF_ARRAY || v.n > MAX_CODECS - 2)
        return wrong_codec(p, "has filters that are not a list, or too many");
    bool vlen = v.n == 1 && tnf_str_is(id_of(&v.as.items[0]), "vlen-utf8");
    if (p->t->object && !vlen)
        return wrong_codec(p, "has Python objects, which are never created");
    for (size_t i = vlen; i < v.n; i++)
        TNF_TRY(add_packer(p, codecs, &v.as.items[i]));
    return TNF_OK;
}

tnf_status tnf_zr_codecs_v2(zr_array *a, tnf_reader *r, const zr_doc *d, const zr_type *t,
                            tnf_error *e)
{
    parsing p = { r, a, d, t, 0, e };
    tnf_str order = tnf_zr_get(d, "order"), packer = tnf_zr_get(d, "compressor");
    uint64_t *stride = tnf_arena_array(r->arena, (uint64_t)a->rank + 1, sizeof *stride);
    zr_codec *codecs = tnf_arena_array(r->arena, MAX_CODECS, sizeof *codecs);
    uint32_t reversed[ZR_MAX_RANK];
    tnf_value v;
    if (!stride || !codecs)
        return tnf_arena_fail(r->arena, "an array", e);
    TNF_TRY(begin_level(&a->level, &p, a->level.chunk, a->rank, t->width, stride));
    a->level.codecs = codecs;
    codecs[a->level.ncodecs++] = (zr_codec) { .kind = t->object ? ZR_VLEN : ZR_BYTES,
                                              .big = t->big };
    for (uint32_t i = 0; i < a->rank; i++)
        reversed[i] = a->rank - 1 - i;
    if (tnf_str_is(order, "\"F\""))
        lay_out(&a->level, reversed, stride);
    else if (order.p && !tnf_str_is(order, "\"C\""))
        return wrong_codec(&p, "has an order that is neither C nor F");
    TNF_TRY(add_filters(&p, codecs));
    if (!packer.p || tnf_str_is(packer, "null"))
        return TNF_OK;
    TNF_TRY(tnf_zr_tree(&v, r, d, packer, e));
    return add_packer(&p, codecs, &v);
}
