/* SPDX-License-Identifier: MIT */
/* gzip and snappy over whole blocks in memory: for formats with thousands of small ones, where a
 * stream for each would cost more than the work itself. */
#ifndef TNF_CODEC_BLOCKS_H
#define TNF_CODEC_BLOCKS_H

#include "base/buf.h"

/* Exactly n bytes out of all the stored ones: TNF_EFORMAT, with an offset into them, if there are
 * more or less, or if anything follows. Several gzip members count as one. */
tnf_status tnf_gzip_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
tnf_status tnf_snappy_decode(const void *stored, size_t stored_n, void *dst, size_t n,
                             tnf_error *e);
/* How many bytes a snappy block says it gives; refused if no block of that length could. */
tnf_status tnf_snappy_size(const void *stored, size_t stored_n, uint64_t *n, tnf_error *e);

/* Appends to b: one gzip member without time and name, so that equal bytes become equal bytes; one
 * raw snappy block. */
tnf_status tnf_gzip_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e);
tnf_status tnf_snappy_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e);

#endif
