/* SPDX-License-Identifier: MIT */
/* CRCs of records that are not the digest of a tensor: storages that several tensors share or that
 * have slack, code, unused records. Opening does not read these records, but verify() does. A CRC
 * of 0 means that none was computed. */
#include "formats/pytorch/ptzip.h"

#include "base/digest.h"

#include <string.h>

#define BLOCK ((size_t)64 << 10)

static pt_sum sum_of(const pt_record *r)
{
    return (pt_sum) { .name = r->name,
                      .offset = r->offset,
                      .stored = r->member->stored,
                      .size = r->member->size,
                      .crc = r->member->crc,
                      .deflated = r->member->method == TNF_ZIP_DEFLATED };
}

static tnf_status add_sum(pt_file *f, const pt_sum *sum, tnf_error *e)
{
    pt_sum *more = tnf_arena_grow(f->r->arena, f->sums, f->nsums, &f->sums_room, sizeof *more, 8);
    if (!more)
        return tnf_arena_fail(f->r->arena, "checksums", e);
    f->sums = more;
    f->sums[f->nsums++] = *sum;
    return TNF_OK;
}

tnf_status tnf_pt_keep_inner_sum(pt_file *f, const pt_storage *s, tnf_fetch_fn fetch, void *ctx,
                                 uint64_t base, tnf_error *e)
{
    pt_sum sum = { .name = s->key,
                   .offset = s->offset,
                   .stored = s->stored,
                   .size = s->size,
                   .deflated = s->deflated,
                   .fetch = fetch,
                   .ctx = ctx,
                   .base = base };
    for (int i = 0; i < 4; i++)
        sum.crc = sum.crc << 8 | s->crc[i];
    return add_sum(f, &sum, e);
}

/* Called at the end of opening: records all CRCs that nothing else compares. */
tnf_status tnf_pt_keep_sums(pt_zip *z, tnf_error *e)
{
    pt_file *f = z->f;
    const char *folder = f->folder;
    size_t n = tnf_named_count(&z->records);
    tnf_status status = TNF_OK;
    f->folder = NULL;
    for (uint32_t i = 0; i < n && status == TNF_OK; i++) {
        const pt_record *r = tnf_named_at(&z->records, i);
        const pt_storage *s = tnf_pt_find_storage(f, r->name);
        if (!r->located || r->compared || !r->member->crc || (s && s->summed))
            continue;
        pt_sum sum = sum_of(r);
        status = add_sum(f, &sum, e);
    }
    f->folder = folder;
    return status;
}

/* -------------------------------------------------------------- comparing */

typedef struct in_source {
    tnf_fetch_fn fetch;
    void *ctx;
    uint64_t offset;
    bool failed; /* reading failed; the error has the offset */
} in_source;

static tnf_status read_there(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    in_source *x = ctx;
    tnf_status status = x->fetch(x->ctx, x->offset + offset, dst, n, e);
    x->failed = status != TNF_OK;
    return status;
}

static tnf_status sum_record(uint8_t crc[4], in_source *there, const pt_sum *s, uint8_t *block,
                             tnf_error *e)
{
    tnf_encoded encoded = { read_there, there, s->stored, s->size };
    tnf_decoder *decoder = NULL;
    tnf_digester d;
    tnf_status status = TNF_OK;
    if (s->deflated)
        TNF_TRY(tnf_decoder_open(&decoder, TNF_CODEC_DEFLATE, &encoded, NULL, e));
    (void)tnf_digest_begin(&d, "crc32");
    for (uint64_t done = 0; done < s->size && status == TNF_OK;) {
        size_t n = s->size - done < BLOCK ? (size_t)(s->size - done) : BLOCK;
        status = decoder ? tnf_decoder_read(decoder, done, block, n, e)
                         : read_there(there, done, block, n, e);
        if (status == TNF_OK)
            tnf_digest_update(&d, block, n);
        done += n;
    }
    if (decoder && status == TNF_OK)
        status = tnf_decoder_end(decoder, e);
    tnf_digest_end(&d, crc);
    tnf_decoder_close(decoder);
    return status;
}

bool tnf_pt_is_damage(tnf_status status)
{
    return status == TNF_EFORMAT || status == TNF_ETRUNCATED || status == TNF_EDIGEST ||
           status == TNF_EUNSUPPORTED;
}

/* Reports a fault of a record with its name and its file offset. */
static tnf_status compare_record(const tnf_source *source, const pt_sum *s, uint8_t *block,
                                 tnf_error *e)
{
    void *file = (void *)(uintptr_t)source;
    in_source there = { s->fetch ? s->fetch : tnf_source_fetch, s->fetch ? s->ctx : file, s->offset,
                        false };
    uint64_t at = s->base + s->offset;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    uint8_t found[4];
    tnf_status status = sum_record(found, &there, s, block, &why);
    if (status == TNF_OK) {
        return tnf_be32(found) == s->crc
                   ? TNF_OK
                   : tnf_fail(e, TNF_EDIGEST, at, "the record %s does not match its CRC",
                              TNF_QUOTED(s->name));
    }
    if (!tnf_pt_is_damage(status)) {
        if (e)
            *e = why;
        return status;
    }
    if (why.offset == TNF_NO_OFFSET)
        why.offset = at;
    else if (!there.failed)
        why.offset += at; /* decoders count from the start of the data */
    return tnf_fail(e, status, why.offset, "the record %s is damaged: %.140s", TNF_QUOTED(s->name),
                    why.message);
}

tnf_status tnf_pt_check_sums(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e)
{
    const pt_file *f = r->state;
    uint8_t *block = f->nsums ? tnf_arena_raw(arena, BLOCK) : NULL;
    tnf_error told;
    if (f->nsums && !block)
        return tnf_arena_fail(arena, "a record", e);
    for (size_t i = 0; i < f->nsums; i++) {
        tnf_status status = compare_record(r->source, &f->sums[i], block, &told);
        if (status == TNF_OK)
            continue;
        if (!tnf_pt_is_damage(status)) {
            if (e)
                *e = told;
            return status;
        }
        tell(ctx, &told, (tnf_str) { NULL, 0 });
    }
    return TNF_OK;
}

tnf_status tnf_pt_salvage_record(pt_zip *z, pt_record *r, bool *lost, tnf_error *e)
{
    tnf_reader *reader = z->f->r;
    pt_sum sum = sum_of(r);
    tnf_error why;
    *lost = false;
    if (!reader->salvage || !sum.crc || r->compared)
        return TNF_OK;
    if (!z->block)
        z->block = tnf_arena_raw(reader->scratch, BLOCK);
    if (!z->block)
        return tnf_arena_fail(reader->scratch, "a record", e);
    tnf_status status = compare_record(reader->source, &sum, z->block, &why);
    *lost = tnf_pt_is_damage(status) && tnf_lose(reader, status, &why);
    r->compared = status == TNF_OK || *lost;
    if (!r->compared && e)
        *e = why;
    return r->compared ? TNF_OK : status;
}
