/* SPDX-License-Identifier: MIT */
/* What must hold between the entries of a manifest, in the order that the specification checks it
 * in: objects by the bytes of their names, in each its shape, its parts by theirs, then the rules
 * of its layout; and when all are fine by themselves, blobs that overlap.
 *
 *   file │ magic │ blob … blob │ manifest │ footer │      blobs: identical or apart
 *                  └ 4096·k              region end
 */
#include "formats/ztensor2/zt2.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
    return zt2_compare((*(const zt2_object *const *)a)->name,
                       (*(const zt2_object *const *)b)->name);
}

static int by_role(const void *a, const void *b)
{
    return zt2_compare((*(const zt2_part *const *)a)->role, (*(const zt2_part *const *)b)->role);
}

/* ------------------------------------------------------------------ parts */

/* Shards stand in the manifest with the shorter names first. */
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
                             "%s begins at %" PRIu64 ", no multiple of %u above zero",
                             TNF_QUOTED(o->name), p->offset, ZT2_FLOOR);
    if (p->shard.p) {
        p->group = find_shard(z, p->shard);
        if (p->group == 0)
            return tnf_fail_rule(e, "ShardRef", TNF_EFORMAT, p->at,
                                 "%s lies in the shard %s, which is not in the table",
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
    const char *role = zt2_is(p->role, "data") ? "data" : tnf_arena_str(a, p->role.p, p->role.n);
    const tnf_type *type = zt2_type(a, p->type, p->dtype, &pinned);
    const tnf_digest *digest = p->digest.p ? zt2_digest(a, p->digest) : NULL;
    if (!role || !type || (p->digest.p && !digest))
        return tnf_arena_fail(a, "a part", e);
    if (!pinned)
        return tnf_fail_rule(e, "Schema", TNF_EFORMAT, p->at,
                             "%s has the type %s over the dtype %s", TNF_QUOTED(o->name),
                             TNF_QUOTED(p->type), tnf_type_of(p->dtype)->id);
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

/* A rule that the reference has no code for: an error, or a warning to the lenient. */
static tnf_status stricter(zt2 *z, const char *rule, tnf_status status, uint64_t at,
                           const char *message, tnf_error *e)
{
    status = tnf_stricter(z->r, e, status, at, "%s: %s", rule, message);
    if (status != TNF_OK)
        tnf_error_rule(e, rule);
    return status;
}

/* Rules that the reference keeps, too; the others it has no code for, or the code has a hole. */
static tnf_status check_dense(zt2 *z, const zt2_object *from, tnf_object *o, tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    uint64_t elements, bytes;
    if (o->nparts != 1 || strcmp(o->parts[0].role, "data") != 0)
        return tnf_fail_rule(e, "LayoutRule", TNF_EFORMAT, from->at,
                             "%s is dense and has other parts than 'data'", TNF_QUOTED(o->name));
    if (tnf_layout_check(o, &why) == TNF_OK)
        return TNF_OK;
    bool fits = tnf_shape_elements(&elements, o->shape, o->rank) &&
                tnf_type_bytes(&bytes, o->parts[0].type, elements);
    if (fits)
        return tnf_fail_rule(e, "DenseSize", TNF_EFORMAT, from->at, "%s", why.message);
    TNF_TRY(stricter(z, "DenseSize", TNF_EFORMAT, from->at, why.message, e));
    ((tnf_part *)(uintptr_t)o->parts)->flags |= TNF_PART_UNREADABLE;
    return TNF_OK;
}

static tnf_status check_layout(zt2 *z, const zt2_object *from, tnf_object *o, tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    if (o->layout == &tnf_layout_dense)
        return check_dense(z, from, o, e);
    bool csr = zt2_is(from->layout, "zt.sparse_csr/1");
    if (csr && o->rank == 2 && o->shape[0] == UINT64_MAX)
        return tnf_fail_rule(e, "Shape", TNF_EFORMAT, from->at, "%s has too many rows",
                             TNF_QUOTED(o->name));
    tnf_status status = zt2_is_gguf(from->layout) ? zt2_check_gguf(o, from->layout, &why)
                                                  : tnf_layout_check(o, &why);
    if (status == TNF_OK)
        return TNF_OK;
    if (csr)
        return tnf_fail_rule(e, "LayoutRule", status, from->at, "%s", why.message);
    TNF_TRY(stricter(z, "LayoutRule", status, from->at, why.message, e));
    o->layout = zt2_layout_unruled(z->r->arena, from->layout);
    return o->layout ? TNF_OK : tnf_arena_fail(z->r->arena, "a layout", e);
}

/* ---------------------------------------------------------------- objects */

static tnf_status make_parts(zt2 *z, const zt2_object *from, tnf_object *o, tnf_error *e)
{
    zt2_part *few[4], **order = few;
    if (from->nparts > sizeof few / sizeof *few)
        order = tnf_arena_array(z->r->scratch, from->nparts, sizeof *order);
    tnf_part *parts = tnf_arena_array(z->r->scratch, from->nparts, sizeof *parts);
    if (!order || !parts)
        return tnf_arena_fail(z->r->scratch, "parts", e);
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
        .layout = zt2_layout(z->r->arena, from->layout),
        .attrs = from->attrs,
        .rank = (uint32_t)from->rank,
    };
    if (!o->layout)
        return tnf_arena_fail(z->r->arena, "a layout", e);
    TNF_TRY(make_parts(z, from, o, e));
    return check_layout(z, from, o, e);
}

/* Sorts the manifest's objects by name, once it is done with. */
static tnf_status sort_objects(zt2 *z, zt2_object ***out, tnf_error *e)
{
    zt2_object **order = tnf_arena_array(z->r->scratch, z->n, sizeof *order);
    if (!order)
        return tnf_arena_fail(z->r->scratch, "sorting", e);
    for (size_t i = 0; i < z->n; i++)
        order[i] = &z->objects[i];
    qsort(order, z->n, sizeof *order, by_name);
    *out = order;
    return TNF_OK;
}

/* ---------------------------------------------------------------- overlap */

typedef struct range {
    uint64_t offset, length, at;
    uint32_t group; /* of files: this one first, then shards by name */
    const zt2_object *object;
} range;

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
    return zt2_compare((*(const zt2_shard *const *)a)->name, (*(const zt2_shard *const *)b)->name);
}

/* Where each shard comes in order of its name. */
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

static tnf_status collect(zt2 *z, range **out, size_t *n, tnf_error *e)
{
    uint64_t count = 1;
    uint32_t *rank;
    TNF_TRY(rank_shards(z, &rank, e));
    for (size_t i = 0; i < z->n; i++)
        count += z->objects[i].nparts;
    range *r = tnf_arena_array(z->r->scratch, count, sizeof *r);
    if (!r)
        return tnf_arena_fail(z->r->scratch, "checking", e);
    r[0] = (range) { z->footer.offset, z->footer.length, z->footer.offset, 0, NULL };
    *n = 1;
    for (size_t i = 0; i < z->n; i++)
        for (size_t k = 0; k < z->objects[i].nparts; k++) {
            const zt2_part *p = &z->objects[i].parts[k];
            uint32_t group = p->group ? rank[p->group - 1] : 0;
            if (p->length)
                r[(*n)++] = (range) { p->offset, p->length, p->at, group, &z->objects[i] };
        }
    *out = r;
    return TNF_OK;
}

static const char *owner(char *out, size_t size, const range *r)
{
    return r->object ? tnf_quote(out, size, r->object->name.p, r->object->name.n) : "the manifest";
}

static tnf_status check_overlap(zt2 *z, tnf_error *e)
{
    range *r;
    size_t n;
    TNF_TRY(collect(z, &r, &n, e));
    qsort(r, n, sizeof *r, by_place);
    for (size_t i = 1; i < n; i++) {
        const range *a = &r[i - 1], *b = &r[i];
        bool same = a->offset == b->offset && a->length == b->length;
        if (a->group != b->group || same || a->offset + a->length <= b->offset)
            continue;
        char one[72], two[72];
        return tnf_fail_rule(e, "BlobOverlap", TNF_EFORMAT, b->object ? b->at : a->at,
                             "%s and %s share bytes from %" PRIu64 " on", owner(one, sizeof one, a),
                             owner(two, sizeof two, b), b->offset);
    }
    return TNF_OK;
}

/* -------------------------------------------------------------------- all */

tnf_status zt2_check(zt2 *z, tnf_object **out, tnf_error *e)
{
    zt2_object **order;
    for (size_t i = 0; i < z->nshards; i++)
        if (z->shards[i].size < ZT2_SMALLEST)
            return tnf_fail_rule(e, "Schema", TNF_EFORMAT, z->shards[i].at,
                                 "the shard %s is said to have %" PRIu64 " bytes, fewer than any",
                                 TNF_QUOTED(z->shards[i].name), z->shards[i].size);
    TNF_TRY(sort_objects(z, &order, e));
    *out = tnf_arena_array(z->r->scratch, z->n, sizeof **out);
    if (!*out)
        return tnf_arena_fail(z->r->scratch, "the list of tensors", e);
    for (size_t i = 0; i < z->n; i++)
        TNF_TRY(make_object(z, order[i], &(*out)[i], e));
    return check_overlap(z, e);
}

/* Parts that cannot be read here, and where the others are. */
static void place_part(zt2 *z, const zt2_object *from, const zt2_part *p, tnf_part *out)
{
    bool known = !p->encoding.p || zt2_is(p->encoding, ZT2_SEEKABLE);
    if (!known) {
        tnf_warn(z->r, p->at, "the encoding %s of %s is not known: listed, not readable",
                 TNF_QUOTED(p->encoding), TNF_QUOTED(from->name));
        out->flags |= TNF_PART_UNREADABLE;
    }
    if (p->group == 0)
        return;
    out->origin = z->shards[p->group - 1].origin;
    if (!out->origin) { /* in no file of ours, so no range of it may be looked at */
        out->payload = TNF_OPAQUE;
        out->flags |= TNF_PART_UNREADABLE;
    }
}

static const zt2_part *part_of(const zt2_object *o, const char *role)
{
    for (size_t i = 0; i < o->nparts; i++)
        if (zt2_is(o->parts[i].role, role))
            return &o->parts[i];
    return NULL;
}

tnf_status zt2_add(zt2 *z, tnf_object *objects, tnf_error *e)
{
    zt2_object **order;
    TNF_TRY(sort_objects(z, &order, e));
    for (size_t i = 0; i < z->n; i++) {
        tnf_object *o = &objects[i];
        for (uint16_t k = 0; k < o->nparts; k++) {
            tnf_part *part = (tnf_part *)(uintptr_t)&o->parts[k];
            const zt2_part *p = order[i]->nparts == 1 ? order[i]->parts
                                                      : part_of(order[i], part->role);
            place_part(z, order[i], p, part);
        }
        TNF_TRY(tnf_add_object(z->r, o, order[i]->at, e));
    }
    return TNF_OK;
}
