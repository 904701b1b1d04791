/* SPDX-License-Identifier: MIT */
/* Checks whether a file has the canonical form, the unique form of its content. It checks the bytes
 * themselves, not only the manifest. The rules of the specification:
 *
 *   1  one manifest, no unused bytes                        4  raw parts, each with its xxh3
 *   2  blobs at successive multiples of 65536               5  names in normal form C
 *   3  in order of (object, part), equal ones once,         6  no shards
 *      then the manifest, then the footer
 *
 * and their consequences: zeros between blobs, only bytes that a writer would write. The first
 * difference of each kind is reported.
 */
#include "base/nfc.h"
#include "formats/ztensor2/zt2.h"

#include <inttypes.h>
#include <stdlib.h>

#define RULE    "Canonical"
#define NOTHING UINT32_MAX
#define BLOCK   65536u

/* A part in the order of the canonical form. */
typedef struct place {
    const zt2_object *object;
    const zt2_part *part;
    uint32_t next; /* next in its chain, if it is the first with its bytes */
} place;

typedef struct checker {
    zt2 z;
    tnf_arena *arena;
    tnf_tell tell;
    void *ctx;
    const struct tnf_origin *origin;
    place *places;
    size_t n, mask;
    uint32_t *chains; /* chains of places by digest and length */
    uint8_t *block;
    bool skip_placement; /* some part is encoded or in a shard, so placement is not checked */
} checker;

#define report_difference(l, at, ...)                                                              \
    do {                                                                                           \
        tnf_error difference;                                                                      \
        (void)tnf_fail_rule(&difference, RULE, TNF_EFORMAT, at, __VA_ARGS__);                      \
        (l)->tell((l)->ctx, &difference, (tnf_str) { NULL, 0 });                                   \
    } while (0)

/* --------------------------------------------------------------- manifest */

static bool is_nfc(tnf_str s)
{
    return tnf_nfc(s.p, s.n);
}

static const tnf_str *find_unnormalised(const tnf_member *members, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_nfc(members[i].key))
            return &members[i].key;
    return NULL;
}

static void check_names(checker *l)
{
    const tnf_attrs *root = &l->z.r->catalog->attrs;
    const tnf_str *odd = find_unnormalised(root->members, root->n);
    uint64_t at = l->z.footer.offset;
    for (size_t i = 0; i < l->z.n && !odd; i++) {
        const zt2_object *o = &l->z.objects[i];
        at = o->at;
        odd = is_nfc(o->name) ? NULL : &o->name;
        for (size_t k = 0; k < o->nparts && !odd; k++)
            odd = is_nfc(o->parts[k].role) ? NULL : &o->parts[k].role;
        if (!odd && o->attrs)
            odd = find_unnormalised(o->attrs->as.members, o->attrs->n);
    }
    if (odd)
        report_difference(l, at, "the name %s is not in Unicode's normal form C", TNF_QUOTED(*odd));
}

static bool digest_is_xxh3(tnf_str s)
{
    return s.p && s.n == 5 + 16 && memcmp(s.p, "xxh3:", 5) == 0;
}

static void check_parts(checker *l)
{
    const zt2_object *encoded = NULL, *undigested = NULL, *empty = NULL;
    for (size_t i = 0; i < l->z.n; i++) {
        const zt2_object *o = &l->z.objects[i];
        empty = !empty && o->raw_attrs.p && !o->attrs ? o : empty;
        for (size_t k = 0; k < o->nparts; k++) {
            const zt2_part *p = &o->parts[k];
            encoded = !encoded && p->encoding.p ? o : encoded;
            undigested = !undigested && !digest_is_xxh3(p->digest) ? o : undigested;
            l->skip_placement = l->skip_placement || p->encoding.p || p->shard.p;
        }
    }
    if (encoded)
        report_difference(l, encoded->at, "%s is encoded, not raw", TNF_QUOTED(encoded->name));
    if (undigested)
        report_difference(l, undigested->at, "%s has a part without an xxh3 of 16 digits",
                          TNF_QUOTED(undigested->name));
    if (empty)
        report_difference(l, empty->at, "%s has an empty map of attributes instead of none",
                          TNF_QUOTED(empty->name));
}

static void check_manifest(checker *l)
{
    if (l->z.shards_at)
        report_difference(l, l->z.shards_at, "there is a table of shards");
    if (l->z.foreign_at)
        report_difference(l, l->z.foreign_at, "the manifest has an unknown key");
    check_parts(l);
    check_names(l);
}

/* -------------------------------------------------------------- placement */

static int by_names(const void *a, const void *b)
{
    const place *x = a, *y = b;
    int c = tnf_str_compare(x->object->name, y->object->name);
    return c ? c : tnf_str_compare(x->part->role, y->part->role);
}

static tnf_status list_places(checker *l, tnf_error *e)
{
    uint64_t count = 0;
    size_t buckets = 16;
    for (size_t i = 0; i < l->z.n; i++)
        count += l->z.objects[i].nparts;
    while (buckets < count)
        buckets *= 2;
    l->mask = buckets - 1;
    l->places = tnf_arena_array(l->arena, count, sizeof *l->places);
    l->chains = tnf_arena_array(l->arena, buckets, sizeof *l->chains);
    l->block = tnf_arena_raw(l->arena, BLOCK);
    if (!l->places || !l->chains || !l->block)
        return tnf_arena_fail(l->arena, "the canonical form", e);
    memset(l->chains, 0xff, buckets * sizeof *l->chains);
    for (size_t i = 0; i < l->z.n; i++)
        for (size_t k = 0; k < l->z.objects[i].nparts; k++)
            l->places[l->n++] = (place) { &l->z.objects[i], &l->z.objects[i].parts[k], NOTHING };
    qsort(l->places, l->n, sizeof *l->places, by_names);
    return TNF_OK;
}

static uint32_t *chain_of(const checker *l, const zt2_part *p)
{
    uint64_t hash = p->length * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < p->digest.n; i++)
        hash = (hash ^ (uint8_t)p->digest.p[i]) * 0x100000001B3u;
    return &l->chains[(hash ^ hash >> 32) & l->mask];
}

static tnf_status same_bytes(const checker *l, bool *out, const zt2_part *a, const zt2_part *b,
                             tnf_error *e)
{
    tnf_part one = { .role = "data",
                     .type = tnf_type_of(TNF_U8),
                     .origin = l->origin,
                     .offset = a->offset,
                     .stored = a->length,
                     .nbytes = a->length };
    tnf_part two = one;
    two.offset = b->offset;
    *out = a->offset == b->offset;
    return *out ? TNF_OK : tnf_parts_equal(out, &one, &two, e);
}

/* The earlier part with the same bytes, or NULL. */
static tnf_status find_equal(const checker *l, const zt2_part **out, const zt2_part *p,
                             tnf_error *e)
{
    *out = NULL;
    for (uint32_t i = *chain_of(l, p); i != NOTHING; i = l->places[i].next) {
        const zt2_part *known = l->places[i].part;
        bool same = known->length == p->length && tnf_str_compare(known->digest, p->digest) == 0;
        if (same)
            TNF_TRY(same_bytes(l, &same, known, p, e));
        if (same) {
            *out = known;
            break;
        }
    }
    return TNF_OK;
}

static tnf_status check_padding(checker *l, uint64_t from, uint64_t to, bool *zeros, tnf_error *e)
{
    while (from < to && *zeros) {
        size_t n = to - from < BLOCK ? (size_t)(to - from) : BLOCK, i = 0;
        TNF_TRY(tnf_source_read(l->z.r->source, from, l->block, n, e));
        while (i < n && l->block[i] == 0)
            i++;
        *zeros = i == n;
        if (!*zeros)
            report_difference(l, from + i, "the bytes between blobs are not zero");
        from += n;
    }
    return TNF_OK;
}

/* Follows the writer: at is its position, *next the place of the next blob. */
static void advance_past(uint64_t at, uint64_t *next)
{
    if (!tnf_ckd_align(next, at, ZT2_ALIGN))
        *next = UINT64_MAX;
}

static tnf_status check_blobs(checker *l, tnf_error *e)
{
    uint64_t at = ZT2_MAGIC_N, next;
    bool zeros = true;
    for (size_t i = 0; i < l->n; i++) {
        const place *here = &l->places[i];
        const zt2_part *p = here->part, *known;
        TNF_TRY(find_equal(l, &known, p, e));
        advance_past(at, &next);
        if (p->offset != (known ? known->offset : next)) {
            report_difference(l, p->at, "%s begins at %" PRIu64 ", not at %" PRIu64 "%s",
                              TNF_QUOTED(here->object->name), p->offset,
                              known ? known->offset : next,
                              known ? ", the place of a part with the same bytes" : "");
            return TNF_OK;
        }
        if (known)
            continue;
        uint32_t *chain = chain_of(l, p);
        l->places[i].next = *chain;
        *chain = (uint32_t)i;
        TNF_TRY(check_padding(l, at, next, &zeros, e));
        at = next + p->length;
    }
    advance_past(at, &next);
    if (l->z.footer.offset != next) {
        report_difference(l, l->z.footer.at, "the manifest begins at %" PRIu64 ", not at %" PRIu64,
                          l->z.footer.offset, next);
        return TNF_OK;
    }
    return check_padding(l, at, next, &zeros, e);
}

static tnf_status check_file(checker *l, tnf_error *e)
{
    const zt2_footer *f = &l->z.footer;
    TNF_TRY(tnf_zt2_read(&l->z, e));
    if (f->length == 0) {
        report_difference(l, f->at, "a data shard alone is not a model");
        return TNF_OK;
    }
    TNF_TRY(tnf_zt2_load(&l->z, e));
    check_manifest(l);
    if (f->reserved != 0)
        report_difference(l, f->at + 28, "the reserved bytes are not zero");
    if (f->at + ZT2_FOOTER != l->z.r->source->size)
        report_difference(l, f->at + ZT2_FOOTER, "there are bytes after the footer");
    if (f->offset + f->length != f->at)
        report_difference(l, f->offset + f->length, "the footer does not follow the manifest");
    TNF_TRY(list_places(l, e));
    return l->skip_placement ? TNF_OK : check_blobs(l, e);
}

/* Reads the manifest again: opening kept only the model, not its encoding. */
tnf_status tnf_zt2_canonical(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e)
{
    tnf_catalog catalog;
    tnf_reader again = *r;
    uint64_t size;
    tnf_catalog_init(&catalog, arena);
    again.arena = again.scratch = arena;
    again.catalog = &catalog;
    checker l = { .z = { .r = &again }, .arena = arena, .tell = tell, .ctx = ctx };
    l.origin = tnf_file_origin(r->file, &size);
    tnf_status status = check_file(&l, e);
    tnf_zt2_free(&l.z);
    tnf_catalog_free(&catalog);
    return status;
}
