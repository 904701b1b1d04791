/* SPDX-License-Identifier: MIT */
/* gzip and snappy over whole blocks in memory: for formats with thousands of small ones, where a
 * stream for each would cost more than the work itself. */
#ifndef TNF_CODEC_BLOCKS_H
#define TNF_CODEC_BLOCKS_H

#include "base/buf.h"
#include "base/error.h"

/* Exactly n bytes out of all the stored ones: TNF_EFORMAT, with an offset into them, if there are
 * more or less, or if anything follows. Several gzip members count as one. */
tnf_status tnf_gzip_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
tnf_status tnf_snappy_decode(const void *stored, size_t stored_n, void *dst, size_t n,
                             tnf_error *e);
/* The same for zlib's own frame (RFC 1950). */
tnf_status tnf_zlib_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
/* How many bytes a snappy block says it gives; refused if no block of that length could. */
tnf_status tnf_snappy_size(const void *stored, size_t stored_n, uint64_t *n, tnf_error *e);

/* Appends to b: one gzip member without time and name, so that equal bytes become equal bytes; one
 * raw snappy block. */
tnf_status tnf_gzip_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e);
tnf_status tnf_snappy_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e);

/* A packed block, and where it is in its file: errors are there. */
typedef struct tnf_block {
    const void *p;
    size_t n;
    uint64_t at;
} tnf_block;

typedef tnf_status tnf_block_decode(const void *stored, size_t stored_n, void *dst, size_t n,
                                    tnf_error *e);

/* Makes b exactly the n bytes that a block gives; what was there is gone. */
tnf_status tnf_block_unpack(tnf_buf *b, tnf_block_decode *decode, const tnf_block *block, size_t n,
                            tnf_error *e);
/* The same for a snappy block, which says itself how many: TNF_ELIMIT above max. */
tnf_status tnf_snappy_unpack(tnf_buf *b, const tnf_block *block, uint64_t max, tnf_error *e);

#endif
