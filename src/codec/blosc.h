/* SPDX-License-Identifier: MIT */
/* Complete blocks of Blosc 1 and of LZ4, decoded in memory. */
#ifndef TNF_CODEC_BLOSC_H
#define TNF_CODEC_BLOSC_H

#include "base/buf.h"
#include "base/error.h"

/* Decodes the stored bytes to exactly n bytes: TNF_EFORMAT, with an offset into the stored bytes,
 * if there are more or fewer. The header of a Blosc buffer gives its length; bytes after it are
 * ignored. */
tnf_status tnf_blosc_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
tnf_status tnf_lz4_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
/* One or more zstd frames. */
tnf_status tnf_zstd_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e);
/* Appends one zstd frame, which contains its decoded size. */
tnf_status tnf_zstd_encode(tnf_buf *b, const void *bytes, size_t n, int level, tnf_error *e);

#endif
