/* SPDX-License-Identifier: MIT */
/* Reading and writing shared by zTensor 0.1 and 1.x.
 *
 *   "ZTEN…"  padding  blob  padding  blob  …  index (CBOR)  trailer
 *   0                 64 * k         64 * m   index_start
 */
#include "formats/ztensor_old/old.h"

#include <string.h>

bool tnf_zt_read_word(tnf_cbor *c, zt_word *out, bool numbers)
{
    *out = (zt_word) { 0 };
    if (tnf_cbor_null(c))
        return true;
    if (numbers && tnf_cbor_peek(c) == TNF_CBOR_UINT) {
        out->by_number = true;
        out->text.p = "";
        return tnf_cbor_u64(c, &out->number);
    }
    return tnf_cbor_text(c, &out->text);
}

bool tnf_zt_read_shape(tnf_cbor *c, uint64_t **dims, size_t *capacity, uint32_t *rank,
                       tnf_arena *scratch)
{
    tnf_cbor_scope scope;
    *rank = 0;
    tnf_cbor_enter_array(c, &scope);
    while (tnf_cbor_item(c, &scope)) {
        if (*rank > UINT32_MAX / 8)
            return tnf_cbor_fail(c, TNF_CBOR_FINE, TNF_ELIMIT, TNF_NO_OFFSET,
                                 "a shape has more than %lu dimensions", (unsigned long)*rank);
        uint64_t *grown = tnf_arena_grow(scratch, *dims, *rank, capacity, sizeof *grown, 16);
        if (!grown) {
            c->status = tnf_arena_fail(scratch, "a shape", c->e);
            return false;
        }
        *dims = grown;
        if (!tnf_cbor_u64(c, &(*dims)[*rank]))
            return false;
        ++*rank;
    }
    return c->status == TNF_OK;
}

bool tnf_zt_read_value(tnf_cbor *c, tnf_value *out, tnf_arena *arena)
{
    tnf_arena *scratch = c->arena;
    c->arena = arena;
    bool ok = tnf_cbor_value(c, out);
    c->arena = scratch;
    return ok;
}

tnf_status tnf_zt_open_index(tnf_reader *r, tnf_cbor *c, uint64_t end, uint64_t n, tnf_error *e)
{
    tnf_cur cur;
    if (n > end - ZT_HEAD)
        return tnf_fail(e, TNF_EFORMAT, end,
                        "the index has a length of %llu bytes, but there are only %llu before its "
                        "length field (cut short?)",
                        (unsigned long long)n, (unsigned long long)(end - ZT_HEAD));
    TNF_TRY(tnf_read_range(r, "index", end - n, n, UINT64_MAX, &cur, e));
    tnf_cbor_init(c, cur.p, (size_t)n, end - n, r->scratch, r->limits.depth, TNF_CBOR_LENIENT, e);
    r->data_start = ZT_HEAD;
    r->data_end = end - n;
    return TNF_OK;
}

tnf_status tnf_zt_read_digest(tnf_reader *r, const tnf_digest **out, tnf_str name, tnf_str text,
                              bool big_x, uint64_t at, tnf_error *e)
{
    tnf_zt_digest_kind kind;
    if (!text.p)
        return TNF_OK;
    if (memchr(text.p, 0, text.n)) /* no writer makes this, and it could not be kept */
        return tnf_stricter(r, e, TNF_EFORMAT, at, "the checksum %s of %s contains a NUL: left out",
                            TNF_QUOTED(text), TNF_QUOTED(name));
    TNF_TRY(tnf_zt_digest_read(out, &kind, text, big_x, r->arena, e));
    if (kind == TNF_ZT_DIGEST_BROKEN)
        return tnf_stricter(r, e, TNF_EFORMAT, at,
                            "the checksum %s of %s is not a number of 32 bits", TNF_QUOTED(text),
                            TNF_QUOTED(name));
    if (kind == TNF_ZT_DIGEST_UNKNOWN)
        tnf_warn(r, at, "the checksum %s of %s cannot be checked", TNF_QUOTED(text),
                 TNF_QUOTED(name));
    return TNF_OK;
}

tnf_status tnf_zt_check_place(tnf_reader *r, tnf_str name, uint64_t offset, uint64_t n,
                              uint64_t index_start, uint64_t at, tnf_error *e)
{
    uint64_t end;
    if (offset % ZT_ALIGN != 0)
        TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, at,
                             "%s begins at byte %llu, which is not a multiple of 64",
                             TNF_QUOTED(name), (unsigned long long)offset));
    /* The core checks ends beyond the file, and recognises truncated files. */
    if (tnf_ckd_add(&end, offset, n) && end > index_start && end <= r->source->size)
        return tnf_stricter(
            r, e, TNF_EFORMAT, at, "%s ends at byte %llu, inside the index, which begins at %llu",
            TNF_QUOTED(name), (unsigned long long)end, (unsigned long long)index_start);
    return TNF_OK;
}

tnf_status tnf_zt_add(tnf_reader *r, tnf_object *o, tnf_part *parts, uint64_t at, tnf_error *e)
{
    tnf_error odd = { .offset = TNF_NO_OFFSET };
    bool readable = true;
    for (uint16_t i = 0; i < o->nparts; i++)
        readable = readable && !(parts[i].flags & TNF_PART_UNREADABLE);
    o->parts = parts;
    tnf_status status = readable && r->lenient ? tnf_layout_check(o, &odd) : TNF_OK;
    if (status != TNF_OK) {
        TNF_TRY(tnf_stricter(r, e, status, at, "%s", odd.message));
        for (uint16_t i = 0; i < o->nparts; i++)
            parts[i].flags |= TNF_PART_UNREADABLE;
    }
    return tnf_add_object(r, o, at, e);
}

const tnf_type *tnf_zt_unknown_type(tnf_arena *arena, tnf_str id, tnf_dtype storage)
{
    tnf_type *type = tnf_arena_alloc(arena, sizeof *type);
    const char *copy = type ? tnf_arena_str(arena, id.p, id.n) : NULL;
    if (!copy)
        return NULL;
    *type = (tnf_type) { .id = copy, .storage = storage, .number = TNF_NUMBER_OPAQUE };
    return type;
}

/* ---------------------------------------------------------------- writing */

/* Are the stored bytes those of the source? */
static bool bytes_stay(const tnf_part *p, const zt_how *how, const zt_blob *b)
{
    bool big = p->flags & TNF_PART_BIG_ENDIAN;
    if (b->zstd)
        return how->encoding == ZT_ENCODING_KEEP && p->payload == TNF_ENCODED &&
               p->codec == TNF_CODEC_ZSTD && !big;
    return p->payload == TNF_AT && big == b->big_endian;
}

/* An unknown text is kept, unless it is invalid in this format. */
static tnf_status check_foreign(tnf_writer *w, const zt_how *how, zt_blob *b, tnf_error *e)
{
    tnf_zt_digest_kind kind;
    const tnf_digest *again;
    tnf_str text = { b->digest, strlen(b->digest) };
    TNF_TRY(tnf_zt_digest_read(&again, &kind, text, how->big_x, w->scratch, e));
    if (kind == TNF_ZT_DIGEST_BROKEN)
        b->digest = NULL;
    return TNF_OK;
}

/* Returns the algorithm to compute, or NULL; a text that can be kept is set in the blob. */
static const char *choose_digest(const tnf_writer *w, const tnf_part *p, const zt_how *how,
                                 bool same, zt_blob *b)
{
    const tnf_digest *d = p->digest;
    if (how->digest == ZT_DIGEST_CRC32C || how->digest == ZT_DIGEST_SHA256)
        return how->digest == ZT_DIGEST_CRC32C ? "crc32c" : "sha256";
    if (how->digest == ZT_DIGEST_NONE || !d)
        return NULL;
    bool sha256 = d->algorithm && strcmp(d->algorithm, "sha256") == 0;
    bool ours = sha256 || (d->algorithm && strcmp(d->algorithm, "crc32c") == 0);
    if (same && d->of_stored && ours && d->n == (sha256 ? 32u : 4u)) {
        tnf_zt_digest_text(b->text, d->algorithm, d->bytes);
        b->digest = w->like && d->text.p ? d->text.p : b->text;
        return NULL;
    }
    if (!d->algorithm) {
        b->digest = same && d->of_stored ? d->text.p : NULL;
        return NULL;
    }
    return sha256 ? "sha256" : "crc32c";
}

tnf_status tnf_zt_put_blob(tnf_writer *w, const tnf_part *part, const zt_how *how, zt_blob *out,
                           tnf_error *e)
{
    bool wide = tnf_dtype_size(part->type->storage) > 1;
    bool was_big = part->flags & TNF_PART_BIG_ENDIAN && part->payload == TNF_AT;
    *out = (zt_blob) { 0 };
    out->zstd = how->encoding == ZT_ENCODING_ZSTD ||
                (how->encoding == ZT_ENCODING_KEEP && part->payload == TNF_ENCODED);
    out->big_endian = wide && !out->zstd &&
                      (how->endian == ZT_ENDIAN_BIG || (how->endian == ZT_ENDIAN_KEEP && was_big));
    bool same = bytes_stay(part, how, out);
    tnf_put_how put = { .digest = choose_digest(w, part, how, same, out), .of_stored = true };
    tnf_put_done done;
    tnf_part from = *part;
    if (same) { /* copied without decoding or swapping */
        from.payload = TNF_AT;
        from.flags = 0;
        from.nbytes = from.stored;
        from.type = tnf_type_of(TNF_U8);
    } else {
        put.codec = out->zstd ? TNF_CODEC_ZSTD : TNF_CODEC_RAW;
        put.level = how->level > 100 ? 100 : (int)how->level;
        put.big_endian = out->big_endian;
    }
    if (out->digest && out->digest != out->text)
        TNF_TRY(check_foreign(w, how, out, e));
    if (w->in_place) {
        out->offset = part->offset;
        out->stored = part->stored;
        return same && !put.digest ? TNF_OK
                                   : tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                                              "its tensors would have to be rewritten");
    }
    TNF_TRY(tnf_put_align(w, ZT_ALIGN, e));
    TNF_TRY(tnf_put_part(w, &from, &put, &done, e));
    out->offset = done.offset;
    out->stored = done.stored;
    if (put.digest) {
        tnf_zt_digest_text(out->text, put.digest, done.digest);
        out->digest = out->text;
    }
    return TNF_OK;
}

tnf_status tnf_zt_order(tnf_writer *w, const uint32_t **out, tnf_error *e)
{
    *out = NULL;
    if (w->in_place)
        TNF_TRY(tnf_need_places(w, e));
    return tnf_has_places(w) ? tnf_sorted(w, out, tnf_compare_places, e) : TNF_OK;
}

tnf_status tnf_zt_put_rest(tnf_writer *w, tnf_error *e)
{
    return w->in_place ? tnf_put_same(w, w->like->data_end, e) : TNF_OK;
}

void tnf_zt_put_shape(tnf_buf *b, const tnf_object *o)
{
    tnf_cbor_put_string(b, "shape");
    tnf_cbor_put_array(b, o->rank);
    for (uint32_t i = 0; i < o->rank; i++)
        tnf_cbor_put_uint(b, o->shape[i]);
}
