/* SPDX-License-Identifier: MIT */
/* The entry of a codec in the table; private to codec/. */
#ifndef TNF_CODEC_CODEC_OPS_H
#define TNF_CODEC_CODEC_OPS_H

#include "base/error.h"
#include "codec/codec.h"

struct tnf_decoder {
    const struct tnf_codec_ops *ops;
    tnf_encoded from;
    tnf_allocator alloc;
    uint64_t position; /* of the next decoded byte */
    void *state;
};

struct tnf_encoder {
    const struct tnf_codec_ops *ops;
    tnf_encode_to to;
    tnf_allocator alloc;
    int level;
    void *state;
};

typedef struct tnf_codec_ops {
    const char *id;
    const char *built_by; /* for a codec that is not built in: the switch that enables it */
    /* decode_open and encode_open may be NULL: not built, or not possible. */
    tnf_status (*decode_open)(tnf_decoder *d, tnf_error *e);
    /* Moves to `offset` if that is faster than decoding from the current position; may be NULL. */
    tnf_status (*decode_seek)(tnf_decoder *d, uint64_t offset, tnf_error *e);
    tnf_status (*decode)(tnf_decoder *d, void *dst, size_t n, tnf_error *e);
    tnf_status (*decode_end)(tnf_decoder *d, tnf_error *e);
    void (*decode_close)(tnf_decoder *d);
    /* Decodes some of the next n bytes; none at the end. May be NULL. */
    tnf_status (*decode_some)(tnf_decoder *d, void *dst, size_t n, size_t *made, tnf_error *e);
    tnf_status (*encode_open)(tnf_encoder *x, tnf_error *e);
    tnf_status (*encode)(tnf_encoder *x, const void *bytes, size_t n, tnf_error *e);
    tnf_status (*encode_end)(tnf_encoder *x, tnf_error *e);
    void (*encode_close)(tnf_encoder *x);
} tnf_codec_ops;

extern const tnf_codec_ops tnf_codec_zstd, tnf_codec_zstd_seekable, tnf_codec_gzip,
    tnf_codec_snappy, tnf_codec_deflate;

/* The error for a codec that is not built in. */
tnf_status tnf_no_codec(const char *id, const char *built_by, tnf_error *e);

/* The input of codecs: one block of stored bytes at a time. */
typedef struct tnf_feed {
    uint8_t *block;
    size_t n, used;   /* bytes in the block, and how many are consumed */
    uint64_t at, end; /* the next stored byte to fetch; the end of the stored bytes */
} tnf_feed;

#define TNF_FEED_BLOCK (128u << 10)

tnf_status tnf_feed_open(tnf_feed *f, const tnf_decoder *d, uint64_t at, uint64_t end,
                         tnf_error *e);
/* Fetches more input if the block is consumed; n == used afterwards means the end. */
tnf_status tnf_feed_more(tnf_feed *f, const tnf_decoder *d, tnf_error *e);
void tnf_feed_close(tnf_feed *f, const tnf_decoder *d);
/* Stored offset of the next byte to be consumed. */
uint64_t tnf_feed_where(const tnf_feed *f);
/* Is all input consumed? */
static inline bool tnf_feed_ended(const tnf_feed *f)
{
    return f->used == f->n && f->at == f->end;
}

/* Decodes n bytes with a function that makes some of them per call. */
static inline tnf_status tnf_decode_steps(tnf_decoder *d,
                                          tnf_status (*step)(tnf_decoder *d, void *dst, size_t n,
                                                             size_t *made, tnf_error *e),
                                          void *dst, size_t n, tnf_error *e)
{
    for (size_t done = 0, made; done < n; done += made)
        TNF_TRY(step(d, (uint8_t *)dst + done, n - done, &made, e));
    return TNF_OK;
}

/* Implements `decode_end` with a decode_some: fails if more bytes come out. */
static inline tnf_status tnf_decode_rest(tnf_decoder *d, const tnf_feed *f,
                                         tnf_status (*some)(tnf_decoder *d, void *dst, size_t n,
                                                            size_t *made, tnf_error *e),
                                         tnf_error *e)
{
    uint8_t more[1];
    size_t made;
    TNF_TRY(some(d, more, sizeof more, &made, e));
    if (made)
        return tnf_fail(e, TNF_EFORMAT, tnf_feed_where(f),
                        "the %s data decode to more than the expected %llu bytes", d->ops->id,
                        (unsigned long long)d->from.decoded);
    return TNF_OK;
}

#endif
