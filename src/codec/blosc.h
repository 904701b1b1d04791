/* SPDX-License-Identifier: MIT */
/* Whole blocks of Blosc 1 and of LZ4, decoded in memory. */
#ifndef TNF_CODEC_BLOSC_H
#define TNF_CODEC_BLOSC_H

#include "base/buf.h"
#include "base/error.h"

/* Exactly n bytes out of the stored ones: TNF_EFORMAT, with an offset into them, if there are more
 * or less. What follows a Blosc buffer, whose header says how long it is, is not looked at. */
tnf_status tnf_blosc_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
tnf_status tnf_lz4_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
/* One or more zstd frames. */
tnf_status tnf_zstd_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
/* Appends one zstd frame, which says how much it gives. */
tnf_status tnf_zstd_encode(tnf_buf *b, const void *bytes, size_t n, int level, tnf_error *e);

#endif
