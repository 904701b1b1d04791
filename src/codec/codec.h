/* SPDX-License-Identifier: MIT */
/* Codecs: compressed bytes to plain ones and back, as streams of bounded memory. One table; a codec
 * that was not built in is listed all the same, so that "not built" is one clean answer.
 *
 *   stored bytes ──read──> tnf_decoder ──> decoded bytes, from any offset on
 *   plain bytes ──> tnf_encoder ──write──> stored bytes
 */
#ifndef TNF_CODEC_CODEC_H
#define TNF_CODEC_CODEC_H

#include "base/alloc.h"
#include <tenfold/types.h>

typedef enum tnf_codec {
    TNF_CODEC_RAW,
    TNF_CODEC_ZSTD,          /* one or more zstd frames, decoded from the start */
    TNF_CODEC_ZSTD_SEEKABLE, /* zstd frames and a table of them at the end: any frame at once */
    TNF_CODEC_GZIP,
    TNF_CODEC_SNAPPY,  /* one raw snappy block */
    TNF_CODEC_DEFLATE, /* raw deflate, as in zip archives */
    TNF_CODEC_COUNT
} tnf_codec;

/* "raw", "zstd", "zstd-seekable" …; "?" for a number that is none. */
const char *tnf_codec_id(unsigned codec);

/* The encoded bytes: read at any place, `stored` of them, `decoded` when decoded. */
typedef struct tnf_encoded {
    tnf_status (*read)(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e);
    void *ctx;
    uint64_t stored, decoded;
} tnf_encoded;

typedef struct tnf_decoder tnf_decoder;

/* A decoder at its beginning. Errors of the data are TNF_EFORMAT with an offset into the stored
 * bytes, or TNF_ETRUNCATED. */
tnf_status tnf_decoder_open(tnf_decoder **out, tnf_codec codec, const tnf_encoded *from,
                            const tnf_allocator *alloc, tnf_error *e);
/* Exactly n decoded bytes from `offset` on: going forward is cheap, going back starts anew (or at
 * the right frame). Fails if there are not that many. */
tnf_status tnf_decoder_read(tnf_decoder *d, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* After the last decoded byte: nothing may follow, decoded or stored. */
tnf_status tnf_decoder_end(tnf_decoder *d, tnf_error *e);
void tnf_decoder_close(tnf_decoder *d);

/* How many bytes there are when decoded, for containers that do not say it (from->decoded is of no
 * meaning): all of it is decoded, once. TNF_ELIMIT beyond `most`. */
tnf_status tnf_codec_measure(uint64_t *out, tnf_codec codec, const tnf_encoded *from, uint64_t most,
                             const tnf_allocator *alloc, tnf_error *e);

typedef struct tnf_encoder tnf_encoder;

typedef struct tnf_encode_to {
    tnf_status (*write)(void *ctx, const void *bytes, size_t n, tnf_error *e);
    void *ctx;
} tnf_encode_to;

/* level 0 is the codec's own default. */
tnf_status tnf_encoder_open(tnf_encoder **out, tnf_codec codec, int level, const tnf_encode_to *to,
                            const tnf_allocator *alloc, tnf_error *e);
tnf_status tnf_encoder_write(tnf_encoder *x, const void *bytes, size_t n, tnf_error *e);
/* Writes what is left and the end of the stream. Close it then. */
tnf_status tnf_encoder_end(tnf_encoder *x, tnf_error *e);
void tnf_encoder_close(tnf_encoder *x);

#endif
