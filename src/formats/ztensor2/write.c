/* SPDX-License-Identifier: MIT */
/* The writer. It writes blobs in the byte order of names, then the manifest in CBOR's order, which
 * has shorter names first. By default this is the canonical form, with the same bytes as the
 * reference writes:
 *
 *   magic │ 0… │ a │ 0… │ b │ 0… │ manifest │ footer       multiples of 65536, equal parts once
 */
#include "base/hex.h"
#include "base/nfc.h"
#include "formats/ztensor2/zt2.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGN, ENCODING, LEVEL, DIGEST, CANONICAL, SMALL };
enum { AUTO, YES, NO };

const tnf_option_info tnf_zt2_write_options[] = {
    { "align", TNF_OPTION_UINT, NULL, "64K",
      "blobs begin at multiples of this; only 64K is canonical" },
    { "encoding", TNF_OPTION_CHOICE, "raw|zstd", "raw",
      "zstd compresses each part, in frames that can be read one by one; not canonical" },
    { "level", TNF_OPTION_UINT, NULL, "0", "level of zstd, 1 to 22; 0: zstd's own default" },
    { "digest", TNF_OPTION_CHOICE, "xxh3|sha256", "xxh3",
      "digest of each part; sha256 is not canonical" },
    { "canonical", TNF_OPTION_CHOICE, "auto|yes|no", "auto",
      "yes: refuse everything that is not canonical; no: keep the order of the tensors" },
    { "small", TNF_OPTION_BOOL, NULL, "no",
      "parts below 64K begin at multiples of 4K, which suits many small tensors; not canonical" },
    { 0 },
};

typedef struct writing {
    tnf_writer *w;
    zt2_blobs blobs;
    const zt2_blob **placed; /* blob of each part, object by object as in the catalog */
    uint64_t *first;         /* index in `placed` of each object's first part */
    const tnf_part **order;  /* room for the parts of one object */
    const zt2_shard *shards; /* write_index: the table of shards */
    bool follows;            /* blobs are copied unchanged from the file to imitate */
    tnf_buf manifest;
} writing;

/* ---------------------------------------------------------------- options */

static tnf_status read_options(writing *x, tnf_error *e)
{
    const tnf_option_value *o = x->w->options;
    uint64_t align = o[ALIGN].u, canonical = o[CANONICAL].u;
    if (x->w->base && o[ALIGN].s == tnf_zt2_write_options[ALIGN].fallback)
        align = tnf_zt2_align_of(x->w);
    else if (x->follows && tnf_follows(x->w, ALIGN))
        align = tnf_alignment(x->w, ZT2_ALIGN);
    if (align < ZT2_FLOOR || (align & (align - 1)) != 0 || align > (uint64_t)1 << 40)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "align=%s: it must be a power of two, at least 4096", o[ALIGN].s);
    if (o[LEVEL].u > 22)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "level=%s: it must be 0 to 22", o[LEVEL].s);
    bool plain = align == ZT2_ALIGN && !o[ENCODING].u && !o[DIGEST].u && !o[SMALL].u;
    if (canonical == YES && !plain)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "canonical=yes does not allow another alignment, encoding or digest");
    if (canonical == YES && x->w->base && !x->w->in_place)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "canonical=yes is only for files that are written at once");
    x->blobs.align = align;
    x->blobs.small_below = o[SMALL].u ? ZT2_SMALL : 0;
    x->blobs.how = (tnf_put_how) {
        .codec = o[ENCODING].u ? TNF_CODEC_ZSTD_SEEKABLE : TNF_CODEC_RAW,
        .level = (int)o[LEVEL].u,
        .digest = o[DIGEST].u ? "sha256" : "xxh3-64",
    };
    return TNF_OK;
}

static tnf_status check_name(const writing *x, tnf_str name, const char *what, tnf_error *e)
{
    if (!zt2_name_ok(name))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%s cannot be the name of %s: 1 to %u bytes without a NUL",
                        TNF_QUOTED(name), what, ZT2_MAX_NAME);
    if (x->w->options[CANONICAL].u == YES && !tnf_nfc(name.p, name.n))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s is not in Unicode's normal form C, which canonical=yes requires",
                        TNF_QUOTED(name));
    return TNF_OK;
}

/* ------------------------------------------------------------------ blobs */

static int by_role(const void *a, const void *b)
{
    return strcmp((*(const tnf_part *const *)a)->role, (*(const tnf_part *const *)b)->role);
}

static int by_role_in_cbor(const void *a, const void *b)
{
    const char *x = (*(const tnf_part *const *)a)->role, *y = (*(const tnf_part *const *)b)->role;
    return tnf_cbor_compare((tnf_str) { x, strlen(x) }, (tnf_str) { y, strlen(y) });
}

static int by_name_in_cbor(const tnf_object *a, const tnf_object *b)
{
    return tnf_cbor_compare(a->name, b->name);
}

/* Sorts the parts of an object into x->order. */
static void order_parts(writing *x, const tnf_object *o, int (*compare)(const void *, const void *))
{
    for (uint16_t i = 0; i < o->nparts; i++)
        x->order[i] = &o->parts[i];
    if (o->nparts > 1)
        qsort(x->order, o->nparts, sizeof *x->order, compare);
}

static const zt2_blob **place_of(writing *x, const tnf_object *o, const tnf_part *p)
{
    return &x->placed[x->first[o - x->w->catalog->objects] + (size_t)(p - o->parts)];
}

static tnf_status write_object_blobs(writing *x, const tnf_object *o, tnf_error *e)
{
    TNF_TRY(check_name(x, o->name, "a tensor", e));
    order_parts(x, o, by_role);
    for (uint16_t i = 0; i < o->nparts; i++) {
        const tnf_part *p = x->order[i];
        tnf_str role = { p->role, strlen(p->role) };
        TNF_TRY(check_name(x, role, "a part", e));
        if (!*place_of(x, o, p))
            TNF_TRY(tnf_zt2_blobs_put(&x->blobs, p, place_of(x, o, p), e));
    }
    return TNF_OK;
}

/* Records parts that are in shards; they are not written. */
static tnf_status place_in_shard(writing *x, const tnf_object *o, tnf_error *e)
{
    const tnf_object *there = NULL;
    size_t i = 0;
    for (; i < x->w->nshards && !there; i++) {
        there = tnf_find_piece(x->w->shards[i].file, o->name.p, o->name.n);
        if (!there)
            there = tnf_find_n(x->w->shards[i].file, o->name.p, o->name.n);
    }
    for (uint16_t k = 0; k < o->nparts; k++) {
        const tnf_part *p = there ? tnf_object_part(there, o->parts[k].role) : NULL;
        zt2_blob *blob = tnf_arena_alloc(x->w->scratch, sizeof *blob);
        if (!blob)
            return tnf_arena_fail(x->w->scratch, "the manifest", e);
        if (!p || !p->digest || p->digest->n > sizeof blob->digest)
            return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "%s has another name in its shard: write a single file",
                            TNF_QUOTED(o->name));
        *blob = (zt2_blob) { .offset = p->offset, .stored = p->stored, .nbytes = p->nbytes };
        blob->shard = x->w->shards[i - 1].label;
        blob->encoded = p->payload == TNF_ENCODED;
        memcpy(blob->digest, p->digest->bytes, p->digest->n);
        *place_of(x, o, &o->parts[k]) = blob;
    }
    return TNF_OK;
}

/* In place, everything up to the manifest remains. */
static tnf_status begin_blobs(writing *x, tnf_error *e)
{
    if (x->w->base)
        TNF_TRY(tnf_zt2_place_old(&x->blobs, x->placed, e));
    if (x->w->in_place)
        return tnf_put_same(x->w, ((const zt2_state *)x->w->like->state)->footer.offset, e);
    if (x->w->base)
        return TNF_OK;
    TNF_TRY(tnf_put(x->w, ZT2_MAGIC, ZT2_MAGIC_N, e));
    return x->follows ? tnf_zt2_copy_old(&x->blobs, x->placed, e) : TNF_OK;
}

static tnf_status write_blobs(writing *x, tnf_error *e)
{
    const tnf_catalog *c = x->w->catalog;
    const uint32_t *order = NULL;
    if (x->w->options[CANONICAL].u != NO)
        TNF_TRY(tnf_sorted(x->w, &order, NULL, e));
    TNF_TRY(begin_blobs(x, e));
    for (size_t i = 0; i < c->n; i++)
        TNF_TRY(x->shards ? place_in_shard(x, tnf_nth(x->w, order, i), e)
                          : write_object_blobs(x, tnf_nth(x->w, order, i), e));
    if (x->w->options[CANONICAL].u == YES && x->blobs.unsure)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "two tensors that can be read only once may be equal, which canonical=yes "
                        "cannot check");
    return tnf_zt2_blobs_align(&x->blobs, e);
}

/* --------------------------------------------------------------- manifest */

static int by_cbor_key(const void *a, const void *b)
{
    return tnf_cbor_compare((*(const tnf_member *const *)a)->key,
                            (*(const tnf_member *const *)b)->key);
}

/* Writes a map of attributes whose values are `depth` containers deep, without the key `but`. If
 * losses are allowed, values that could not be read back are left out, too. */
static tnf_status put_attributes(writing *x, const tnf_member *members, size_t n, const char *but,
                                 unsigned depth, tnf_error *e)
{
    const tnf_member **order = tnf_arena_array(x->w->scratch, n, sizeof *order);
    size_t kept = 0;
    if (!order)
        return tnf_arena_fail(x->w->scratch, "attributes", e);
    for (size_t i = 0; i < n; i++)
        if ((!but || !tnf_str_is(members[i].key, but)) && tnf_zt2_attr_ok(&members[i], depth))
            order[kept++] = &members[i];
    qsort(order, kept, sizeof *order, by_cbor_key);
    tnf_cbor_put_string(&x->manifest, "attributes");
    tnf_cbor_put_map(&x->manifest, kept);
    for (size_t i = 0; i < kept; i++) {
        TNF_TRY(check_name(x, order[i]->key, "an attribute", e));
        tnf_cbor_put_text(&x->manifest, order[i]->key.p, order[i]->key.n);
        TNF_TRY(tnf_cbor_put_value(&x->manifest, &order[i]->value, TNF_CBOR_STRICT,
                                   ZT2_MAX_DEPTH - depth, e));
    }
    return TNF_OK;
}

/* An old part keeps its digest, or remains without one. */
static void put_digest(writing *x, const zt2_blob *blob, const tnf_part *p)
{
    if (blob->old == p) {
        if (p->digest) {
            tnf_cbor_put_string(&x->manifest, "digest");
            tnf_cbor_put_text(&x->manifest, p->digest->text.p, p->digest->text.n);
        }
        return;
    }
    bool sha = x->w->options[DIGEST].u != 0;
    char text[sizeof "sha256:" + 2 * TNF_DIGEST_MAX];
    size_t n = (size_t)snprintf(text, sizeof text, sha ? "sha256:" : "xxh3:");
    n = (size_t)(tnf_hex_put(text + n, blob->digest, sha ? 32 : 8) - text);
    tnf_cbor_put_string(&x->manifest, "digest");
    tnf_cbor_put_text(&x->manifest, text, n);
}

static void put_part(writing *x, const tnf_object *o, const tnf_part *p)
{
    tnf_buf *b = &x->manifest;
    const zt2_blob *blob = *place_of(x, o, p);
    const char *type = tnf_zt2_type_name(p->type);
    bool digest = blob->old != p || p->digest;
    tnf_cbor_put_string(b, p->role);
    tnf_cbor_put_map(b, 2u + (type ? 1u : 0u) + (blob->shard.p ? 1u : 0u) + (digest ? 1u : 0u) +
                            (blob->encoded ? 2u : 0u));
    tnf_cbor_put_string(b, "blob");
    tnf_cbor_put_array(b, 2);
    tnf_cbor_put_uint(b, blob->offset);
    tnf_cbor_put_uint(b, blob->stored);
    if (type) {
        tnf_cbor_put_string(b, "type");
        tnf_cbor_put_string(b, type);
    }
    tnf_cbor_put_string(b, "dtype");
    tnf_cbor_put_string(b, tnf_type_of(p->type->storage)->id);
    if (blob->shard.p) {
        tnf_cbor_put_string(b, "shard");
        tnf_cbor_put_text(b, blob->shard.p, blob->shard.n);
    }
    put_digest(x, blob, p);
    if (blob->encoded) {
        tnf_cbor_put_string(b, "encoding");
        tnf_cbor_put_string(b, ZT2_SEEKABLE);
        tnf_cbor_put_string(b, "decoded_length");
        tnf_cbor_put_uint(b, blob->nbytes);
    }
}

static tnf_status put_object(writing *x, const tnf_object *o, tnf_error *e)
{
    tnf_buf *b = &x->manifest;
    char layout[64];
    bool attrs = false;
    for (size_t i = 0; o->attrs && i < o->attrs->n && !attrs; i++)
        attrs = tnf_zt2_attr_ok(&o->attrs->as.members[i], ZT2_OBJECT_ATTRS);
    tnf_cbor_put_text(b, o->name.p, o->name.n);
    tnf_cbor_put_map(b, attrs ? 4 : 3);
    tnf_cbor_put_string(b, "parts");
    tnf_cbor_put_map(b, o->nparts);
    order_parts(x, o, by_role_in_cbor);
    for (uint16_t i = 0; i < o->nparts; i++)
        put_part(x, o, x->order[i]);
    tnf_cbor_put_string(b, "shape");
    tnf_cbor_put_array(b, o->rank);
    for (uint32_t i = 0; i < o->rank; i++)
        tnf_cbor_put_uint(b, o->shape[i]);
    tnf_cbor_put_string(b, "layout");
    tnf_cbor_put_string(b, tnf_zt2_layout_name(layout, sizeof layout, o->layout));
    return attrs ? put_attributes(x, o->attrs->as.members, o->attrs->n, NULL, ZT2_OBJECT_ATTRS, e)
                 : TNF_OK;
}

static void put_shards(tnf_buf *b, const zt2_shard *shards, size_t n)
{
    tnf_cbor_put_string(b, "shards");
    tnf_cbor_put_map(b, n);
    for (size_t i = 0; i < n; i++) {
        const zt2_shard *s = &shards[i];
        tnf_cbor_put_text(b, s->name.p, s->name.n);
        tnf_cbor_put_map(b, 2);
        tnf_cbor_put_string(b, "size");
        tnf_cbor_put_uint(b, s->size);
        tnf_cbor_put_string(b, "digest");
        tnf_cbor_put_text(b, s->digest.p, s->digest.n);
    }
}

static tnf_status put_manifest(writing *x, tnf_error *e)
{
    const zt2_state *base = x->w->base ? x->w->base->state : NULL;
    const zt2_shard *list = base ? base->shards : x->shards;
    size_t nshards = base ? base->nshards : x->w->nshards;
    bool shards = nshards > 0;
    const tnf_catalog *c = x->w->catalog;
    const uint32_t *order;
    tnf_value all = tnf_attrs_value(&c->attrs);
    bool attrs = c->attrs.n > 0; /* perhaps only ZT2_EMPTY_ATTRS, which means an empty map */
    TNF_TRY(tnf_sorted(x->w, &order, by_name_in_cbor, e));
    tnf_cbor_put_map(&x->manifest, 1u + (attrs ? 1u : 0u) + (shards ? 1u : 0u));
    if (shards)
        put_shards(&x->manifest, list, nshards);
    tnf_cbor_put_string(&x->manifest, "objects");
    tnf_cbor_put_map(&x->manifest, c->n);
    for (size_t i = 0; i < c->n; i++)
        TNF_TRY(put_object(x, tnf_nth(x->w, order, i), e));
    if (attrs)
        TNF_TRY(put_attributes(x, all.as.members, all.n, ZT2_EMPTY_ATTRS, ZT2_FILE_ATTRS, e));
    return tnf_buf_status(&x->manifest, "the manifest", e);
}

static tnf_status write_end(writing *x, tnf_error *e)
{
    tnf_digester d;
    uint8_t hash[TNF_DIGEST_MAX];
    uint64_t at = x->w->sink->written;
    TNF_TRY(put_manifest(x, e));
    if (!tnf_digest_begin(&d, "xxh3-64"))
        return tnf_no_memory("a digest", e);
    tnf_digest_update(&d, x->manifest.p, x->manifest.n);
    tnf_digest_end(&d, hash);
    TNF_TRY(tnf_put(x->w, x->manifest.p, x->manifest.n, e));
    TNF_TRY(tnf_put_u64(x->w, at, e));
    TNF_TRY(tnf_put_u64(x->w, x->manifest.n, e));
    TNF_TRY(tnf_put_u64(x->w, tnf_be64(hash), e));
    TNF_TRY(tnf_put_u32(x->w, ZT2_VERSION, e));
    TNF_TRY(tnf_put_u32(x->w, 0, e));
    return tnf_put(x->w, ZT2_MAGIC, ZT2_MAGIC_N, e);
}

/* -------------------------------------------------------------------- all */

static tnf_status prepare_blobs(writing *x, tnf_error *e)
{
    const tnf_catalog *c = x->w->catalog;
    tnf_arena *a = x->w->scratch;
    uint64_t parts = 0, most = 0;
    x->first = tnf_arena_array(a, c->n, sizeof *x->first);
    if (!x->first)
        return tnf_arena_fail(a, "the list of tensors", e);
    for (size_t i = 0; i < c->n; i++) {
        x->first[i] = parts;
        parts += c->objects[i].nparts;
        most = c->objects[i].nparts > most ? c->objects[i].nparts : most;
    }
    x->placed = tnf_arena_array(a, parts, sizeof *x->placed);
    x->order = tnf_arena_array(a, most, sizeof *x->order);
    if (!x->placed || !x->order)
        return tnf_arena_fail(a, "the list of parts", e);
    return tnf_zt2_blobs_init(&x->blobs, x->w, parts, e);
}

/* Does the file to imitate have all blobs, and do the options allow copying them? */
static bool follows_file(const tnf_writer *w)
{
    return w->like && w->like->state && tnf_has_places(w) && tnf_follows(w, ENCODING) &&
           tnf_follows(w, LEVEL) && tnf_follows(w, DIGEST) && tnf_follows(w, SMALL) &&
           w->options[CANONICAL].u == AUTO;
}

static tnf_status write_file(writing *x, tnf_error *e)
{
    TNF_TRY(read_options(x, e));
    TNF_TRY(prepare_blobs(x, e));
    TNF_TRY(write_blobs(x, e));
    tnf_buf_init(&x->manifest, &x->w->scratch->alloc, ZT2_MAX_MANIFEST);
    tnf_status status = write_end(x, e);
    tnf_buf_free(&x->manifest);
    return status;
}

tnf_status tnf_zt2_write(tnf_writer *w, tnf_error *e)
{
    writing x = { .w = w, .follows = follows_file(w) };
    if (w->in_place) {
        TNF_TRY(tnf_need_places(w, e));
        w->base = w->like;
    }
    const zt2_state *state = w->like ? w->like->state : NULL;
    if (state && state->foreign_at)
        return tnf_fail(e, TNF_ELOSSY, state->foreign_at,
                        "the manifest has unknown keys, which would be lost");
    return write_file(&x, e);
}

/* ------------------------------------------------------------------- shards */

/* Computes the entry of a complete file: size and digest. */
static tnf_status describe_shard(zt2_shard *out, const tnf_writer *w, const tnf_shard *shard,
                                 tnf_error *e)
{
    bool sha = w->options[DIGEST].u != 0;
    uint8_t digest[TNF_DIGEST_MAX] = { 0 };
    size_t size = sizeof "sha256:" + 2 * sizeof digest;
    char *text = tnf_arena_alloc(w->scratch, size);
    tnf_part whole = { .role = "data", .type = tnf_type_of(TNF_U8) };
    if (!text)
        return tnf_arena_fail(w->scratch, "the manifest", e);
    whole.origin = tnf_file_origin(shard->file, &whole.nbytes);
    whole.stored = whole.nbytes;
    TNF_TRY(tnf_part_digest(&whole, sha ? "sha256" : "xxh3-64", digest, e));
    size_t n = (size_t)snprintf(text, size, sha ? "sha256:" : "xxh3:");
    n = (size_t)(tnf_hex_put(text + n, digest, sha ? 32 : 8) - text);
    *out = (zt2_shard) { .name = shard->label, .digest = { text, n }, .size = whole.nbytes };
    return TNF_OK;
}

/* All labels have the same length, so their order is also that of CBOR. */
tnf_status tnf_zt2_write_index(tnf_writer *w, tnf_error *e)
{
    writing x = { .w = w };
    zt2_shard *shards = tnf_arena_array(w->scratch, w->nshards, sizeof *shards);
    if (!shards)
        return tnf_arena_fail(w->scratch, "the manifest", e);
    if (w->options[CANONICAL].u == YES)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "canonical=yes is only for a single file");
    for (size_t i = 0; i < w->nshards; i++)
        TNF_TRY(describe_shard(&shards[i], w, &w->shards[i], e));
    x.shards = shards;
    return write_file(&x, e);
}
