/* SPDX-License-Identifier: MIT */
/* The rules between the entries of a manifest, in the order in which the specification checks them:
 * objects by the bytes of their names, in each its shape, its parts by theirs, then the rules of
 * its layout. If all objects are valid, overlapping blobs are checked.
 *
 *   file │ magic │ blob … blob │ manifest │ footer │      blobs: identical or disjoint
 *                  └ 4096·k              region end
 */
#include "formats/ztensor2/zt2.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The name at `key`: a text of at most 1024 bytes with the shortest head. */
static tnf_str name_at(const uint8_t *key)
{
    size_t n = *key & 0x1f;
    if (n < 24)
        return (tnf_str) { (const char *)key + 1, n };
    if (n == 24)
        return (tnf_str) { (const char *)key + 2, key[1] };
    return (tnf_str) { (const char *)key + 3, (size_t)key[1] << 8 | key[2] };
}

static int by_name(const void *a, const void *b)
{
    return tnf_str_compare(name_at(*(const uint8_t *const *)a),
                           name_at(*(const uint8_t *const *)b));
}

static int by_role(const void *a, const void *b)
{
    return tnf_str_compare((*(const zt2_part *const *)a)->role,
                           (*(const zt2_part *const *)b)->role);
}

/* ------------------------------------------------------------------ parts */

/* Shards are in the manifest with the shorter names first. */
static uint32_t find_shard(const zt2 *z, tnf_str name)
{
    size_t low = 0, high = z->nshards;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = tnf_cbor_compare(z->shards[mid].name, name);
        if (c == 0)
            return (uint32_t)mid + 1;
        low = c < 0 ? mid + 1 : low;
        high = c < 0 ? high : mid;
    }
    return 0;
}

static tnf_status check_place(zt2 *z, const zt2_object *o, zt2_part *p, tnf_error *e)
{
    uint64_t end, region = z->footer.at;
    if (p->offset % ZT2_FLOOR != 0 || p->offset < ZT2_FLOOR)
        return tnf_fail_rule(e, "BlobAlignment", TNF_EFORMAT, p->at,
                             "%s begins at %" PRIu64 ", not a multiple of %u above zero",
                             TNF_QUOTED(o->name), p->offset, ZT2_FLOOR);
    if (p->shard.p) {
        p->group = find_shard(z, p->shard);
        if (p->group == 0)
            return tnf_fail_rule(e, "ShardRef", TNF_EFORMAT, p->at,
                                 "%s is in the shard %s, which is not in the table",
                                 TNF_QUOTED(o->name), TNF_QUOTED(p->shard));
        region = z->shards[p->group - 1].size - ZT2_FOOTER;
    }
    if (!tnf_ckd_add(&end, p->offset, p->length) || end > region)
        return tnf_fail_rule(e, "BlobBounds", TNF_EFORMAT, p->at,
                             "%s has %" PRIu64 " bytes at %" PRIu64 ", but blobs end at %" PRIu64,
                             TNF_QUOTED(o->name), p->length, p->offset, region);
    return TNF_OK;
}

static tnf_status make_part(zt2 *z, const zt2_object *o, zt2_part *p, tnf_part *out, tnf_error *e)
{
    tnf_arena *a = z->r->arena;
    bool pinned;
    TNF_TRY(check_place(z, o, p, e));
    const char *role = tnf_str_is(p->role, "data") ? "data"
                                                   : tnf_arena_str(a, p->role.p, p->role.n);
    const tnf_type *type = tnf_zt2_type(a, p->type, p->dtype, &pinned);
    const tnf_digest *digest = p->digest.p ? tnf_zt2_digest(a, p->digest) : NULL;
    if (!role || !type || (p->digest.p && !digest))
        return tnf_arena_fail(a, "a part", e);
    if (!pinned)
        return tnf_fail_rule(e, "Schema", TNF_EFORMAT, p->at,
                             "%s has the type %s, which does not allow the dtype %s",
                             TNF_QUOTED(o->name), TNF_QUOTED(p->type), tnf_type_of(p->dtype)->id);
    *out = (tnf_part) {
        .role = role,
        .type = type,
        .offset = p->offset,
        .stored = p->length,
        .nbytes = p->decoded,
        .digest = digest,
        .payload = p->encoding.p ? TNF_ENCODED : TNF_AT,
        .codec = TNF_CODEC_ZSTD_SEEKABLE,
    };
    if (!p->encoding.p)
        out->codec = TNF_CODEC_RAW;
    return TNF_OK;
}

/* ---------------------------------------------------------------- layouts */

/* A rule for which the reference has no code: an error, or a warning in lenient mode. */
static tnf_status fail_stricter(zt2 *z, const char *rule, tnf_status status, uint64_t at,
                                const char *message, tnf_error *e)
{
    status = tnf_stricter(z->r, e, status, at, "%s: %s", rule, message);
    if (status != TNF_OK)
        tnf_error_rule(e, rule);
    return status;
}

/* Rules that the reference also enforces. For the others it has no code, or incomplete code. */
static tnf_status check_dense(zt2 *z, const zt2_object *from, tnf_object *o, tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    uint64_t elements, bytes;
    if (o->nparts != 1 || strcmp(o->parts[0].role, "data") != 0)
        return tnf_fail_rule(e, "LayoutRule", TNF_EFORMAT, from->at,
                             "%s is dense but has parts other than 'data'", TNF_QUOTED(o->name));
    if (tnf_layout_check(o, &why) == TNF_OK)
        return TNF_OK;
    bool fits = tnf_shape_elements(&elements, o->shape, o->rank) &&
                tnf_type_bytes(&bytes, o->parts[0].type, elements);
    if (fits)
        return tnf_fail_rule(e, "DenseSize", TNF_EFORMAT, from->at, "%s", why.message);
    TNF_TRY(fail_stricter(z, "DenseSize", TNF_EFORMAT, from->at, why.message, e));
    ((tnf_part *)(uintptr_t)o->parts)->flags |= TNF_PART_UNREADABLE;
    return TNF_OK;
}

static tnf_status check_layout(zt2 *z, const zt2_object *from, tnf_object *o, tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    if (o->layout == &tnf_layout_dense)
        return check_dense(z, from, o, e);
    bool csr = tnf_str_is(from->layout, "zt.sparse_csr/1");
    if (csr && o->rank == 2 && o->shape[0] == UINT64_MAX)
        return tnf_fail_rule(e, "Shape", TNF_EFORMAT, from->at, "%s has too many rows",
                             TNF_QUOTED(o->name));
    tnf_status status = tnf_zt2_is_gguf(from->layout) ? tnf_zt2_check_gguf(o, from->layout, &why)
                                                      : tnf_layout_check(o, &why);
    if (status == TNF_OK)
        return TNF_OK;
    if (csr)
        return tnf_fail_rule(e, "LayoutRule", status, from->at, "%s", why.message);
    TNF_TRY(fail_stricter(z, "LayoutRule", status, from->at, why.message, e));
    o->layout = tnf_zt2_layout_unruled(z->r->arena, from->layout);
    return o->layout ? TNF_OK : tnf_arena_fail(z->r->arena, "a layout", e);
}

/* ---------------------------------------------------------------- objects */

static tnf_status make_parts(zt2 *z, const zt2_object *from, tnf_object *o, tnf_error *e)
{
    zt2_part *few[4], **order = few;
    if (from->nparts > sizeof few / sizeof *few)
        order = tnf_arena_array(z->to, from->nparts, sizeof *order);
    tnf_part *parts = tnf_arena_array(z->to, from->nparts, sizeof *parts);
    if (!order || !parts)
        return tnf_arena_fail(z->to, "parts", e);
    for (size_t i = 0; i < from->nparts; i++)
        order[i] = &from->parts[i];
    qsort(order, from->nparts, sizeof(zt2_part *), by_role);
    for (size_t i = 0; i < from->nparts; i++)
        TNF_TRY(make_part(z, from, order[i], &parts[i], e));
    o->parts = parts;
    o->nparts = (uint16_t)from->nparts;
    return TNF_OK;
}

static tnf_status make_object(zt2 *z, const zt2_object *from, tnf_object *o, tnf_error *e)
{
    uint64_t elements;
    if (from->rank > ZT2_MAX_RANK)
        return tnf_fail_rule(e, "Shape", TNF_EFORMAT, from->at, "%s has %" PRIu64 " dimensions",
                             TNF_QUOTED(from->name), from->rank);
    if (!tnf_shape_elements(&elements, from->shape, (uint32_t)from->rank))
        return tnf_fail_rule(e, "Shape", TNF_EFORMAT, from->at, "%s has more than 2^64 elements",
                             TNF_QUOTED(from->name));
    *o = (tnf_object) {
        .name = from->name,
        .shape = from->shape,
        .layout = tnf_zt2_layout(z->r->arena, from->layout),
        .attrs = from->attrs,
        .rank = (uint32_t)from->rank,
    };
    if (!o->layout)
        return tnf_arena_fail(z->r->arena, "a layout", e);
    TNF_TRY(make_parts(z, from, o, e));
    return check_layout(z, from, o, e);
}

/* Sorts objects by name; often they are already in order. */
static void sort_objects(zt2 *z)
{
    for (size_t i = 1; i < z->n; i++)
        if (by_name(&z->keys[i - 1], &z->keys[i]) > 0) {
            qsort(z->keys, z->n, sizeof *z->keys, by_name);
            return;
        }
}

/* ---------------------------------------------------------------- overlap */

#define THE_MANIFEST UINT32_MAX

typedef struct range {
    uint64_t offset, length;
    uint32_t group;  /* group of files: this one first, then shards by name */
    uint32_t object; /* its index among the keys, or THE_MANIFEST */
} range;

/* All blobs, in separate memory, since they are many and needed briefly. */
typedef struct blobs {
    tnf_arena arena;
    range *list;
    size_t n;
    uint32_t *rank; /* rank of each shard */
} blobs;

static int by_place(const void *a, const void *b)
{
    const range *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->length < y->length ? -1 : x->length > y->length;
}

static int by_shard(const void *a, const void *b)
{
    return tnf_str_compare((*(const zt2_shard *const *)a)->name,
                           (*(const zt2_shard *const *)b)->name);
}

/* Computes the rank of each shard by name. */
static tnf_status rank_shards(zt2 *z, uint32_t **out, tnf_error *e)
{
    const zt2_shard **order = tnf_arena_array(z->r->scratch, z->nshards, sizeof *order);
    uint32_t *rank = tnf_arena_array(z->r->scratch, z->nshards, sizeof *rank);
    if (!order || !rank)
        return tnf_arena_fail(z->r->scratch, "sorting", e);
    for (size_t i = 0; i < z->nshards; i++)
        order[i] = &z->shards[i];
    qsort(order, z->nshards, sizeof *order, by_shard);
    for (size_t i = 0; i < z->nshards; i++)
        rank[order[i] - z->shards] = (uint32_t)i + 1;
    *out = rank;
    return TNF_OK;
}

static tnf_status blobs_begin(blobs *b, zt2 *z, tnf_error *e)
{
    tnf_arena_init(&b->arena, &z->r->scratch->alloc, z->r->limits.memory);
    TNF_TRY(rank_shards(z, &b->rank, e));
    b->list = tnf_arena_array(&b->arena, (uint64_t)z->nparts + 1, sizeof *b->list);
    if (!b->list)
        return tnf_arena_fail(&b->arena, "checking", e);
    return TNF_OK;
}

static void blobs_add(blobs *b, const zt2_object *o, uint32_t object)
{
    for (size_t k = 0; k < o->nparts; k++) {
        const zt2_part *p = &o->parts[k];
        uint32_t group = p->group ? b->rank[p->group - 1] : 0;
        if (p->length)
            b->list[b->n++] = (range) { p->offset, p->length, group, object };
    }
}

/* Finds the owner of a range, and its position in the manifest. */
static tnf_status find_owner(zt2 *z, const blobs *b, const range *r, char name[72], uint64_t *at,
                             tnf_error *e)
{
    zt2_object o;
    *at = z->footer.offset;
    snprintf(name, 72, "the manifest");
    if (r->object == THE_MANIFEST)
        return TNF_OK;
    TNF_TRY(tnf_zt2_object_at(z, z->keys[r->object], NULL, &o, e));
    tnf_quote(name, 72, o.name.p, o.name.n);
    for (size_t k = 0; k < o.nparts; k++) {
        const zt2_part *p = &o.parts[k];
        uint32_t shard = p->shard.p ? find_shard(z, p->shard) : 0;
        uint32_t group = shard ? b->rank[shard - 1] : 0;
        if (p->offset == r->offset && p->length == r->length && group == r->group)
            *at = p->at;
    }
    return TNF_OK;
}

static tnf_status report_overlap(zt2 *z, const blobs *all, const range *a, const range *b,
                                 tnf_error *e)
{
    char one[72], two[72];
    uint64_t first, second;
    TNF_TRY(find_owner(z, all, a, one, &first, e));
    TNF_TRY(find_owner(z, all, b, two, &second, e));
    return tnf_fail_rule(e, "BlobOverlap", TNF_EFORMAT, b->object != THE_MANIFEST ? second : first,
                         "%s and %s share bytes from %" PRIu64 " on", one, two, b->offset);
}

static tnf_status check_overlap(zt2 *z, blobs *all, tnf_error *e)
{
    range *r = all->list;
    bool sorted = true;
    /* Last, since it is after the blobs: a sorted list needs no sorting, which takes memory. */
    r[all->n++] = (range) { z->footer.offset, z->footer.length, 0, THE_MANIFEST };
    for (size_t i = 1; i < all->n && sorted; i++)
        sorted = by_place(&r[i - 1], &r[i]) <= 0;
    if (!sorted)
        qsort(r, all->n, sizeof *r, by_place);
    for (size_t i = 1; i < all->n; i++) {
        const range *a = &r[i - 1], *b = &r[i];
        bool same = a->offset == b->offset && a->length == b->length;
        if (a->group == b->group && !same && a->offset + a->length > b->offset)
            return report_overlap(z, all, a, b, e);
    }
    return TNF_OK;
}

/* -------------------------------------------------------------------- all */

static const zt2_part *part_of(const zt2_object *o, const char *role)
{
    for (size_t i = 0; i < o->nparts; i++)
        if (tnf_str_is(o->parts[i].role, role))
            return &o->parts[i];
    return NULL;
}

static void warn_unknown(zt2 *z, const zt2_object *from, tnf_object *o)
{
    for (uint16_t k = 0; k < o->nparts; k++) {
        tnf_part *part = (tnf_part *)(uintptr_t)&o->parts[k];
        const zt2_part *p = from->nparts == 1 ? from->parts : part_of(from, part->role);
        if (!p->encoding.p || tnf_str_is(p->encoding, ZT2_SEEKABLE))
            continue;
        tnf_warn(z->r, p->at, "the encoding %s of %s is not supported: listed, but not readable",
                 TNF_QUOTED(p->encoding), TNF_QUOTED(from->name));
        part->flags |= TNF_PART_UNREADABLE;
    }
}

static tnf_status add_all(zt2 *z, blobs *b, tnf_error *e)
{
    TNF_TRY(blobs_begin(b, z, e));
    TNF_TRY(tnf_catalog_reserve(z->r->catalog, z->n, e));
    for (size_t i = 0; i < z->n; i++) {
        zt2_object from;
        tnf_object o;
        TNF_TRY(tnf_zt2_object_at(z, z->keys[i], z->r->arena, &from, e));
        TNF_TRY(make_object(z, &from, &o, e));
        blobs_add(b, &from, (uint32_t)i);
        warn_unknown(z, &from, &o);
        TNF_TRY(tnf_add_object(z->r, &o, from.at, e));
    }
    return check_overlap(z, b, e);
}

tnf_status tnf_zt2_check(zt2 *z, tnf_error *e)
{
    blobs b = { 0 };
    for (size_t i = 0; i < z->nshards; i++)
        if (z->shards[i].size < ZT2_SMALLEST)
            return tnf_fail_rule(e, "Schema", TNF_EFORMAT, z->shards[i].at,
                                 "the shard %s has a size of %" PRIu64 " bytes, which is too small",
                                 TNF_QUOTED(z->shards[i].name), z->shards[i].size);
    sort_objects(z);
    tnf_status status = add_all(z, &b, e);
    tnf_arena_free(&b.arena);
    if (status != TNF_OK) { /* all or none: an invalid tensor may make others invalid */
        z->r->catalog->n = 0;
        (void)tnf_catalog_reindex(z->r->catalog, false, NULL);
    }
    return status;
}

tnf_status tnf_zt2_place_parts(zt2 *z, tnf_error *e)
{
    TNF_TRY(tnf_zt2_resolve(z, e));
    for (size_t i = 0; z->nshards > 0 && i < z->n; i++) {
        const tnf_object *o = &z->r->catalog->objects[i];
        zt2_object from;
        TNF_TRY(tnf_zt2_object_at(z, z->keys[i], NULL, &from, e));
        for (uint16_t k = 0; k < o->nparts; k++) {
            tnf_part *part = (tnf_part *)(uintptr_t)&o->parts[k];
            const zt2_part *p = from.nparts == 1 ? from.parts : part_of(&from, part->role);
            const zt2_shard *shard = p->shard.p ? &z->shards[find_shard(z, p->shard) - 1] : NULL;
            if (shard && shard->origin) {
                part->origin = shard->origin;
            } else if (shard) { /* the shard is not open, so none of its bytes may be read */
                part->payload = TNF_OPAQUE;
                part->origin = shard->missing ? shard->missing : part->origin;
                part->flags |= TNF_PART_UNREADABLE;
            }
        }
    }
    return TNF_OK;
}
