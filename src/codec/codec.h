/* SPDX-License-Identifier: MIT */
/* Codecs convert between compressed and plain bytes, as streams with bounded memory. There is one
 * table. A codec that was not built in is listed, too, so that using it gives a clear error.
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
    TNF_CODEC_ZSTD_SEEKABLE, /* zstd frames with a table at the end: any frame can be decoded alone
                              */
    TNF_CODEC_GZIP,
    TNF_CODEC_SNAPPY,  /* one raw snappy block */
    TNF_CODEC_DEFLATE, /* raw deflate, as in zip archives */
    TNF_CODEC_COUNT
} tnf_codec;

/* "raw", "zstd", "zstd-seekable" …; "?" for an unknown number. */
const char *tnf_codec_id(unsigned codec);

/* The encoded bytes, readable at any position: `stored` bytes, which decode to `decoded` bytes. */
typedef struct tnf_encoded {
    tnf_status (*read)(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e);
    void *ctx;
    uint64_t stored, decoded;
} tnf_encoded;

typedef struct tnf_decoder tnf_decoder;

/* Opens a decoder at the beginning. Faults of the data are TNF_EFORMAT with an offset into the
 * stored bytes, or TNF_ETRUNCATED. */
tnf_status tnf_decoder_open(tnf_decoder **out, tnf_codec codec, const tnf_encoded *from,
                            const tnf_allocator *alloc, tnf_error *e);
/* Decodes exactly n bytes from `offset` on. Going forward is cheap; going back starts again from
 * the beginning (or at the right frame). Fails if there are fewer bytes. */
tnf_status tnf_decoder_read(tnf_decoder *d, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* For streams of unknown length: decodes some of the next n bytes at the current position; none at
 * the end. TNF_EUNSUPPORTED if the codec cannot do this. */
tnf_status tnf_decoder_some(tnf_decoder *d, void *dst, size_t n, size_t *made, tnf_error *e);
/* Checks, after the last decoded byte, that no decoded or stored bytes follow. */
tnf_status tnf_decoder_end(tnf_decoder *d, tnf_error *e);
void tnf_decoder_close(tnf_decoder *d);

/* Finds the decoded size for containers that do not give it, by decoding everything once;
 * from->decoded is ignored. TNF_ELIMIT beyond `most`. */
tnf_status tnf_codec_measure(uint64_t *out, tnf_codec codec, const tnf_encoded *from, uint64_t most,
                             const tnf_allocator *alloc, tnf_error *e);

typedef struct tnf_encoder tnf_encoder;

typedef struct tnf_encode_to {
    tnf_status (*write)(void *ctx, const void *bytes, size_t n, tnf_error *e);
    void *ctx;
} tnf_encode_to;

/* level 0 is the codec's default. */
tnf_status tnf_encoder_open(tnf_encoder **out, tnf_codec codec, int level, const tnf_encode_to *to,
                            const tnf_allocator *alloc, tnf_error *e);
tnf_status tnf_encoder_write(tnf_encoder *x, const void *bytes, size_t n, tnf_error *e);
/* Writes the rest and the end of the stream. The encoder must then be closed. */
tnf_status tnf_encoder_end(tnf_encoder *x, tnf_error *e);
void tnf_encoder_close(tnf_encoder *x);

#endif
