/* SPDX-License-Identifier: MIT */
/* Files that are compressed as a whole: users store vectors as .vec.gz and send models as .zst.
 *
 *   1f 8b 08 …      gzip   ─┐
 *                            ├─ decoded once, front to back ─> an unnamed file ─> its format
 *   28 b5 2f fd …   zstd   ─┘
 *
 * Tensors are read at any position, which such a stream does not allow, so it is decoded completely
 * first. The size is limited as for compressed tensors, which stops decompression bombs.
 */
#include "core/core.h"

#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 20)

static bool starts_packed(const tnf_source *s, tnf_codec *codec)
{
    static const struct {
        uint8_t magic[4], n;
        tnf_codec codec;
    } known[] = { { { 0x1f, 0x8b, 0x08 }, 3, TNF_CODEC_GZIP },
                  { { 0x28, 0xb5, 0x2f, 0xfd }, 4, TNF_CODEC_ZSTD } };
    uint8_t head[4];
    if (s->size < sizeof head || tnf_source_read(s, 0, head, sizeof head, NULL) != TNF_OK)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!memcmp(head, known[i].magic, known[i].n)) {
            *codec = known[i].codec;
            return true;
        }
    return false;
}

static tnf_status read_packed(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    return tnf_source_read(ctx, offset, dst, n, e);
}

static tnf_status spool_decoded(int spool, tnf_decoder *d, uint64_t most, uint8_t *block,
                                tnf_error *e)
{
    uint64_t sum = 0;
    for (;;) {
        size_t made;
        TNF_TRY(tnf_decoder_some(d, block, BLOCK, &made, e));
        if (made == 0)
            return TNF_OK;
        if (made > most - sum)
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                            "this compressed file decodes to more than %llu bytes: raise the limit "
                            "'decoded_bytes' if you trust it",
                            (unsigned long long)most);
        TNF_TRY(tnf_spool_write(spool, block, made, e));
        sum += made;
    }
}

static tnf_status decode_source(int spool, tnf_source *from, tnf_codec codec,
                                const tnf_open_options *o, tnf_error *e)
{
    tnf_encoded packed = { .read = read_packed, .ctx = from, .stored = from->size };
    tnf_decoder *d;
    TNF_TRY(tnf_decoder_open(&d, codec, &packed, &o->allocator, e));
    uint8_t *block = tnf_alloc(&o->allocator, BLOCK);
    tnf_status status = block ? spool_decoded(spool, d,
                                              tnf_decoded_most(o->limits.decoded_bytes, from->size),
                                              block, e)
                              : tnf_no_memory("decoding", e);
    tnf_free(&o->allocator, block, BLOCK);
    tnf_decoder_close(d);
    return status;
}

tnf_status tnf_unpack_source(tnf_source **source, const tnf_open_options *o, bool *unpacked,
                             tnf_error *e)
{
    tnf_codec codec;
    *unpacked = false;
    if (!o->unpack || o->to_change || !starts_packed(*source, &codec))
        return TNF_OK;
    int spool;
    TNF_TRY(tnf_spool_open(&spool, e));
    tnf_status status = decode_source(spool, *source, codec, o, e);
    tnf_source *plain = NULL;
    if (status != TNF_OK)
        close(spool);
    else
        status = tnf_spool_source(&plain, spool, o->access, &o->allocator, e);
    if (status != TNF_OK)
        return status;
    tnf_source_close(*source);
    *source = plain;
    *unpacked = true;
    return TNF_OK;
}
