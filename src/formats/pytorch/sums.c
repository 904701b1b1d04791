/* SPDX-License-Identifier: MIT */
/* CRCs of records that are no tensor's as a whole: storages that several tensors share or that are
 * larger than what is seen of them, code, records that nothing uses. Opening does not read those,
 * verify does. 0 stands for a CRC that nobody computed. */
#include "formats/pytorch/ptzip.h"

#include "base/digest.h"

#include <string.h>

#define BLOCK ((size_t)64 << 10)

/* Kept at the end of opening: the records whose bytes nothing else compares with their CRC. */
tnf_status tnf_pt_keep_sums(pt_zip *z, tnf_error *e)
{
    pt_file *f = z->f;
    const char *folder = f->folder;
    size_t n = tnf_named_count(&z->records);
    f->sums = tnf_arena_array(f->r->arena, n, sizeof *f->sums);
    if (!f->sums)
        return tnf_arena_fail(f->r->arena, "checksums", e);
    f->folder = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const pt_record *r = tnf_named_at(&z->records, i);
        const pt_storage *s = tnf_pt_find_storage(f, r->name);
        if (!r->located || r->compared || !r->member->crc || (s && s->summed))
            continue;
        f->sums[f->nsums++] = (pt_sum) { .name = r->name,
                                         .offset = r->offset,
                                         .stored = r->member->stored,
                                         .size = r->member->size,
                                         .crc = r->member->crc,
                                         .deflated = r->member->method == TNF_ZIP_DEFLATED };
    }
    f->folder = folder;
    return TNF_OK;
}

typedef struct in_source {
    const tnf_source *source;
    uint64_t offset;
} in_source;

static tnf_status read_there(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const in_source *x = ctx;
    return tnf_source_read(x->source, x->offset + offset, dst, n, e);
}

static tnf_status sum_record(uint8_t crc[4], const tnf_reader *r, const pt_sum *s, uint8_t *block,
                             tnf_error *e)
{
    in_source there = { r->source, s->offset };
    tnf_encoded encoded = { read_there, &there, s->stored, s->size };
    tnf_decoder *decoder = NULL;
    tnf_digester d;
    tnf_status status = TNF_OK;
    if (s->deflated)
        TNF_TRY(tnf_decoder_open(&decoder, TNF_CODEC_DEFLATE, &encoded, NULL, e));
    (void)tnf_digest_begin(&d, "crc32");
    for (uint64_t done = 0; done < s->size && status == TNF_OK;) {
        size_t n = s->size - done < BLOCK ? (size_t)(s->size - done) : BLOCK;
        status = decoder ? tnf_decoder_read(decoder, done, block, n, e)
                         : read_there(&there, done, block, n, e);
        if (status == TNF_OK)
            tnf_digest_update(&d, block, n);
        done += n;
    }
    tnf_digest_end(&d, crc);
    if (decoder)
        tnf_decoder_close(decoder);
    return status;
}

tnf_status tnf_pt_check_sums(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e)
{
    const pt_file *f = r->state;
    uint8_t *block = f->nsums ? tnf_arena_raw(arena, BLOCK) : NULL, found[4];
    tnf_error told;
    if (f->nsums && !block)
        return tnf_arena_fail(arena, "a record", e);
    for (size_t i = 0; i < f->nsums; i++) {
        const pt_sum *s = &f->sums[i];
        tnf_status status = sum_record(found, r, s, block, &told);
        if (status != TNF_OK && status != TNF_EFORMAT && status != TNF_EDIGEST) {
            if (e)
                *e = told;
            return status;
        }
        uint32_t crc = (uint32_t)found[0] << 24 | (uint32_t)found[1] << 16 |
                       (uint32_t)found[2] << 8 | found[3];
        if (status == TNF_OK && crc == s->crc)
            continue;
        if (status == TNF_OK)
            (void)tnf_fail(&told, TNF_EDIGEST, s->offset, "the record %s does not match its CRC",
                           TNF_QUOTED(s->name));
        tell(ctx, &told, (tnf_str) { NULL, 0 });
    }
    return TNF_OK;
}
