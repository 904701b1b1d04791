/* SPDX-License-Identifier: MIT */
/* gzip and snappy over complete blocks in memory: for formats with thousands of small blocks, where
 * a stream for each would cost more than the decoding. */
#ifndef TNF_CODEC_BLOCKS_H
#define TNF_CODEC_BLOCKS_H

#include "base/buf.h"
#include "base/error.h"

/* Decodes all stored bytes to exactly n bytes. TNF_EFORMAT, with an offset into the stored bytes,
 * if there are more or fewer, or if anything follows. Several gzip members count as one. */
tnf_status tnf_gzip_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
tnf_status tnf_snappy_decode(const void *stored, size_t stored_n, void *dst, size_t n,
                             tnf_error *e);
/* The same for zlib's own framing (RFC 1950). */
tnf_status tnf_zlib_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
/* The decoded size that a snappy block claims; refused if no block of that length can have it. */
tnf_status tnf_snappy_size(const void *stored, size_t stored_n, uint64_t *n, tnf_error *e);

/* Append to b: one gzip member without time and name, so that equal input gives equal output; one
 * raw snappy block. */
tnf_status tnf_gzip_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e);
tnf_status tnf_snappy_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e);

/* A compressed block, and its position in the file, which error offsets use. */
typedef struct tnf_block {
    const void *p;
    size_t n;
    uint64_t at;
} tnf_block;

typedef tnf_status tnf_block_decode(const void *stored, size_t stored_n, void *dst, size_t n,
                                    tnf_error *e);

/* Replaces the content of b by exactly the n decoded bytes of a block. */
tnf_status tnf_block_unpack(tnf_buf *b, tnf_block_decode *decode, const tnf_block *block, size_t n,
                            tnf_error *e);
/* The same for a snappy block, which contains its decoded size: TNF_ELIMIT above max. */
tnf_status tnf_snappy_unpack(tnf_buf *b, const tnf_block *block, uint64_t max, tnf_error *e);

#endif
