/* SPDX-License-Identifier: MIT */
/* The table of codecs, and code that all codecs share. */
#include "codec/codec.h"

#include "codec/codec_ops.h"

#include <string.h>

#define SKIP_BLOCK (64u << 10)

static const tnf_codec_ops raw = { .id = "raw" };

static const tnf_codec_ops *const codecs[TNF_CODEC_COUNT] = {
    [TNF_CODEC_RAW] = &raw,
    [TNF_CODEC_ZSTD] = &tnf_codec_zstd,
    [TNF_CODEC_ZSTD_SEEKABLE] = &tnf_codec_zstd_seekable,
    [TNF_CODEC_GZIP] = &tnf_codec_gzip,
    [TNF_CODEC_SNAPPY] = &tnf_codec_snappy,
    [TNF_CODEC_DEFLATE] = &tnf_codec_deflate,
};

const char *tnf_codec_id(unsigned codec)
{
    return codec < TNF_CODEC_COUNT ? codecs[codec]->id : "?";
}

static tnf_status not_built(unsigned codec, tnf_error *e)
{
    const char *built_by = codec < TNF_CODEC_COUNT ? codecs[codec]->built_by : NULL;
    if (built_by)
        return tnf_no_codec(codecs[codec]->id, built_by, e);
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "the codec %s is not part of this build of the library", tnf_codec_id(codec));
}

tnf_status tnf_no_codec(const char *id, const char *built_by, tnf_error *e)
{
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "%s is not part of this build of the library: build it with -D%s=ON", id,
                    built_by);
}

/* --------------------------------------------------------------- decoding */

tnf_status tnf_decoder_open(tnf_decoder **out, tnf_codec codec, const tnf_encoded *from,
                            const tnf_allocator *alloc, tnf_error *e)
{
    *out = NULL;
    if ((unsigned)codec >= TNF_CODEC_COUNT || !codecs[codec]->decode_open)
        return not_built(codec, e);
    tnf_allocator a = tnf_allocator_or_default(alloc);
    tnf_decoder *d = tnf_alloc0(&a, sizeof *d);
    if (!d)
        return tnf_no_memory("decoding", e);
    d->ops = codecs[codec];
    d->from = *from;
    d->alloc = a;
    tnf_status status = d->ops->decode_open(d, e);
    if (status != TNF_OK) {
        tnf_decoder_close(d);
        return status;
    }
    *out = d;
    return TNF_OK;
}

void tnf_decoder_close(tnf_decoder *d)
{
    if (!d)
        return;
    d->ops->decode_close(d);
    tnf_allocator a = d->alloc;
    tnf_free(&a, d, sizeof *d);
}

/* Starts again from the beginning: the only way back for a codec without a table. */
static tnf_status rewind_decoder(tnf_decoder *d, tnf_error *e)
{
    d->ops->decode_close(d);
    d->state = NULL;
    d->position = 0;
    return d->ops->decode_open(d, e);
}

static tnf_status skip_to(tnf_decoder *d, uint64_t offset, tnf_error *e)
{
    if (d->ops->decode_seek)
        TNF_TRY(d->ops->decode_seek(d, offset, e));
    else if (offset < d->position)
        TNF_TRY(rewind_decoder(d, e));
    if (offset == d->position)
        return TNF_OK;
    uint8_t *nowhere = tnf_alloc(&d->alloc, SKIP_BLOCK);
    if (!nowhere)
        return tnf_no_memory("decoding", e);
    tnf_status status = TNF_OK;
    while (d->position < offset && status == TNF_OK) {
        uint64_t left = offset - d->position;
        size_t n = left < SKIP_BLOCK ? (size_t)left : SKIP_BLOCK;
        status = d->ops->decode(d, nowhere, n, e);
        d->position += n;
    }
    tnf_free(&d->alloc, nowhere, SKIP_BLOCK);
    return status;
}

tnf_status tnf_decoder_read(tnf_decoder *d, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    if (n == 0)
        return TNF_OK;
    TNF_TRY(skip_to(d, offset, e));
    TNF_TRY(d->ops->decode(d, dst, n, e));
    d->position += n;
    return TNF_OK;
}

tnf_status tnf_decoder_end(tnf_decoder *d, tnf_error *e)
{
    return d->ops->decode_end(d, e);
}

tnf_status tnf_decoder_some(tnf_decoder *d, void *dst, size_t n, size_t *made, tnf_error *e)
{
    if (!d->ops->decode_some)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s can be decoded only if the decoded length is known", d->ops->id);
    TNF_TRY(d->ops->decode_some(d, dst, n, made, e));
    d->position += *made;
    return TNF_OK;
}

static tnf_status measure_stream(tnf_decoder *d, uint64_t *out, uint64_t most, uint8_t *nowhere,
                                 tnf_error *e)
{
    size_t made = 1;
    for (*out = 0; made > 0; *out += made) {
        TNF_TRY(d->ops->decode_some(d, nowhere, SKIP_BLOCK, &made, e));
        if (made > most - *out)
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                            "the data decode to more than %llu bytes, although only %llu bytes "
                            "are stored",
                            (unsigned long long)most, (unsigned long long)d->from.stored);
    }
    return TNF_OK;
}

tnf_status tnf_codec_measure(uint64_t *out, tnf_codec codec, const tnf_encoded *from, uint64_t most,
                             const tnf_allocator *alloc, tnf_error *e)
{
    tnf_decoder *d;
    TNF_TRY(tnf_decoder_open(&d, codec, from, alloc, e));
    tnf_status status = TNF_OK;
    uint8_t *nowhere = d->ops->decode_some ? tnf_alloc(&d->alloc, SKIP_BLOCK) : NULL;
    if (nowhere)
        status = measure_stream(d, out, most, nowhere, e);
    else
        status = d->ops->decode_some
                     ? tnf_no_memory("decoding", e)
                     : tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                                "the decoded length of %s data cannot be determined", d->ops->id);
    tnf_free(&d->alloc, nowhere, SKIP_BLOCK);
    tnf_decoder_close(d);
    return status;
}

/* --------------------------------------------------------------- encoding */

tnf_status tnf_encoder_open(tnf_encoder **out, tnf_codec codec, int level, const tnf_encode_to *to,
                            const tnf_allocator *alloc, tnf_error *e)
{
    *out = NULL;
    if ((unsigned)codec >= TNF_CODEC_COUNT || !codecs[codec]->encode_open)
        return not_built(codec, e);
    tnf_allocator a = tnf_allocator_or_default(alloc);
    tnf_encoder *x = tnf_alloc0(&a, sizeof *x);
    if (!x)
        return tnf_no_memory("encoding", e);
    x->ops = codecs[codec];
    x->to = *to;
    x->alloc = a;
    x->level = level;
    tnf_status status = x->ops->encode_open(x, e);
    if (status != TNF_OK) {
        tnf_encoder_close(x);
        return status;
    }
    *out = x;
    return TNF_OK;
}

tnf_status tnf_encoder_write(tnf_encoder *x, const void *bytes, size_t n, tnf_error *e)
{
    return n ? x->ops->encode(x, bytes, n, e) : TNF_OK;
}

tnf_status tnf_encoder_end(tnf_encoder *x, tnf_error *e)
{
    return x->ops->encode_end(x, e);
}

void tnf_encoder_close(tnf_encoder *x)
{
    if (!x)
        return;
    x->ops->encode_close(x);
    tnf_allocator a = x->alloc;
    tnf_free(&a, x, sizeof *x);
}

/* ------------------------------------------------------------------- feed */

tnf_status tnf_feed_open(tnf_feed *f, const tnf_decoder *d, uint64_t at, uint64_t end, tnf_error *e)
{
    *f = (tnf_feed) { .at = at, .end = end };
    f->block = tnf_alloc(&d->alloc, TNF_FEED_BLOCK);
    return f->block ? TNF_OK : tnf_no_memory("decoding", e);
}

tnf_status tnf_feed_more(tnf_feed *f, const tnf_decoder *d, tnf_error *e)
{
    if (f->used < f->n || f->at == f->end)
        return TNF_OK;
    size_t n = f->end - f->at < TNF_FEED_BLOCK ? (size_t)(f->end - f->at) : TNF_FEED_BLOCK;
    TNF_TRY(d->from.read(d->from.ctx, f->at, f->block, n, e));
    f->at += n;
    f->n = n;
    f->used = 0;
    return TNF_OK;
}

void tnf_feed_close(tnf_feed *f, const tnf_decoder *d)
{
    tnf_free(&d->alloc, f->block, TNF_FEED_BLOCK);
    f->block = NULL;
}

uint64_t tnf_feed_where(const tnf_feed *f)
{
    return f->at - (f->n - f->used);
}
