/* SPDX-License-Identifier: MIT */
/* Codecs that were switched off. They are known by name and report which switch enables them. */
#include "codec/blocks.h"
#include "codec/blosc.h"
#include "codec/codec_ops.h"

#ifndef TENFOLD_ZSTD
const tnf_codec_ops tnf_codec_zstd = { .id = "zstd", .built_by = "TENFOLD_ZSTD" };
const tnf_codec_ops tnf_codec_zstd_seekable = { .id = "zstd-seekable", .built_by = "TENFOLD_ZSTD" };

tnf_status tnf_zstd_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    (void)stored, (void)stored_n, (void)dst, (void)n;
    return tnf_no_codec("zstd", "TENFOLD_ZSTD", e);
}

tnf_status tnf_zstd_encode(tnf_buf *b, const void *bytes, size_t n, int level, tnf_error *e)
{
    (void)b, (void)bytes, (void)n, (void)level;
    return tnf_no_codec("zstd", "TENFOLD_ZSTD", e);
}
#endif

#ifndef TENFOLD_ZLIB
const tnf_codec_ops tnf_codec_gzip = { .id = "gzip", .built_by = "TENFOLD_ZLIB" };
const tnf_codec_ops tnf_codec_deflate = { .id = "deflate", .built_by = "TENFOLD_ZLIB" };

tnf_status tnf_gzip_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    (void)stored, (void)stored_n, (void)dst, (void)n;
    return tnf_no_codec("gzip", "TENFOLD_ZLIB", e);
}

tnf_status tnf_zlib_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    (void)stored, (void)stored_n, (void)dst, (void)n;
    return tnf_no_codec("zlib", "TENFOLD_ZLIB", e);
}

tnf_status tnf_gzip_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e)
{
    (void)b, (void)bytes, (void)n;
    return tnf_no_codec("gzip", "TENFOLD_ZLIB", e);
}
#endif

#ifndef TENFOLD_SNAPPY
const tnf_codec_ops tnf_codec_snappy = { .id = "snappy", .built_by = "TENFOLD_SNAPPY" };

tnf_status tnf_snappy_size(const void *stored, size_t stored_n, uint64_t *n, tnf_error *e)
{
    (void)stored, (void)stored_n, (void)n;
    return tnf_no_codec("snappy", "TENFOLD_SNAPPY", e);
}

tnf_status tnf_snappy_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    (void)stored, (void)stored_n, (void)dst, (void)n;
    return tnf_no_codec("snappy", "TENFOLD_SNAPPY", e);
}

tnf_status tnf_snappy_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e)
{
    (void)b, (void)bytes, (void)n;
    return tnf_no_codec("snappy", "TENFOLD_SNAPPY", e);
}
#endif
