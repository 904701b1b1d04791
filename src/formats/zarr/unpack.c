/* SPDX-License-Identifier: MIT */
/* Decodes a chunk from its stored bytes. Its size is known beforehand, and no more is ever decoded.
 * Only for shards and strings do the bytes themselves determine the size. */
#include "formats/zarr/zr.h"

#include "base/crc32c.h"
#include "codec/blocks.h"
#include "codec/blosc.h"

#include <string.h>

#define MOST_TEXT ((uint64_t)256 << 20)

void tnf_zr_free(zr_bytes *b)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (b->size)
        tnf_free(&a, b->p, b->size);
    *b = (zr_bytes) { 0 };
}

tnf_status tnf_zr_alloc(zr_bytes *b, uint64_t n, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    *b = (zr_bytes) { .n = (size_t)n, .size = (size_t)n + (n == 0) };
    b->p = tnf_alloc(&a, b->size);
    if (b->p)
        return TNF_OK;
    *b = (zr_bytes) { 0 };
    return tnf_no_memory("a chunk", e);
}

uint64_t tnf_zr_most_stored(const zr_level *level)
{
    zr_kind kind = level->codecs[0].kind;
    if (kind == ZR_VLEN)
        return MOST_TEXT;
    return 2 * level->bytes + (kind == ZR_SHARD ? 2 * level->codecs[0].shard->index->bytes : 0) +
           65536;
}

/* ---------------------------------------------------------- bytes to bytes */

/* The decoded size that packed bytes themselves declare. */
static tnf_status measure_packed(uint64_t *out, zr_kind kind, const zr_bytes *b, uint64_t most,
                                 tnf_error *e)
{
    size_t skip = kind == ZR_ZLIB && b->n > 6 ? 2 : 0;
    tnf_str bytes = { (const char *)b->p + skip, b->n - 3 * skip };
    tnf_encoded from = { tnf_memory_fetch, &bytes, bytes.n, 0 };
    *out = 0;
    if (kind == ZR_BLOSC || kind == ZR_LZ4) {
        size_t at = kind == ZR_BLOSC ? 4 : 0;
        *out = b->n >= at + 4 ? tnf_le32(b->p + at) : 0;
        return *out <= most ? TNF_OK
                            : tnf_fail(e, TNF_ELIMIT, at, "a chunk decodes to too many bytes");
    }
    tnf_codec codec = kind == ZR_ZSTD   ? TNF_CODEC_ZSTD
                      : kind == ZR_GZIP ? TNF_CODEC_GZIP
                                        : TNF_CODEC_DEFLATE;
    return tnf_codec_measure(out, codec, &from, most, NULL, e);
}

tnf_status tnf_zr_measure_zstd(uint64_t *out, const uint8_t *p, size_t n, uint64_t most,
                               tnf_error *e)
{
    zr_bytes b = { (uint8_t *)(uintptr_t)p, n, 0 };
    return measure_packed(out, ZR_ZSTD, &b, most, e);
}

static tnf_status run_packer(zr_kind kind, const zr_bytes *from, uint8_t *to, size_t n,
                             tnf_error *e)
{
    switch (kind) {
    case ZR_ZSTD:
        return tnf_zstd_decode(from->p, from->n, to, n, e);
    case ZR_GZIP:
        return tnf_gzip_decode(from->p, from->n, to, n, e);
    case ZR_ZLIB:
        return tnf_zlib_decode(from->p, from->n, to, n, e);
    case ZR_BLOSC:
        return tnf_blosc_decode(from->p, from->n, to, n, e);
    default:
        if (from->n < 4 || tnf_le32(from->p) != n)
            return tnf_fail(e, TNF_EFORMAT, 0, "a chunk does not have %zu bytes", n);
        return tnf_lz4_decode(from->p + 4, from->n - 4, to, n, e);
    }
}

static tnf_status check_crc(zr_bytes *b, tnf_error *e)
{
    if (b->n < 4)
        return tnf_fail(e, TNF_EFORMAT, b->n, "a chunk ends before its checksum");
    size_t n = b->n - 4;
    if (tnf_crc32c(0, b->p, n) != tnf_le32(b->p + n))
        return tnf_fail(e, TNF_EDIGEST, n, "a chunk does not match its crc32c");
    return TNF_OK;
}

/* Are all codecs before the k-th, except the array's own, checksums? Then its size is known. */
static bool only_sums(const zr_level *l, size_t k)
{
    for (size_t i = 1; i < k; i++)
        if (l->codecs[i].kind != ZR_CRC32C)
            return false;
    return true;
}

/* Undoes one codec: `now` becomes its input. */
static tnf_status step_back(zr_bytes *now, const zr_level *l, size_t k, uint8_t *to, uint64_t plain,
                            tnf_error *e)
{
    zr_kind kind = l->codecs[k].kind;
    zr_bytes next;
    uint64_t n = plain + 4 * (k - 1);
    bool known = to && only_sums(l, k);
    if (kind == ZR_CRC32C) {
        TNF_TRY(check_crc(now, e));
        now->n -= 4;
        return TNF_OK;
    }
    if (!known)
        TNF_TRY(measure_packed(&n, kind, now, to ? 2 * plain + 65536 : ZR_MAX_CHUNK, e));
    if (known && k == 1)
        next = (zr_bytes) { to, (size_t)n, 0 };
    else
        TNF_TRY(tnf_zr_alloc(&next, n, e));
    tnf_status status = run_packer(kind, now, next.p, (size_t)n, e);
    if (status != TNF_OK) {
        tnf_zr_free(&next);
        return status;
    }
    tnf_zr_free(now);
    *now = next;
    return TNF_OK;
}

tnf_status tnf_zr_unpack(zr_bytes *out, const zr_level *level, uint8_t *to, uint64_t plain,
                         zr_bytes stored, tnf_error *e)
{
    tnf_status status = TNF_OK;
    *out = stored;
    for (size_t k = level->ncodecs; k-- > 1 && status == TNF_OK;)
        status = step_back(out, level, k, to, plain, e);
    if (status == TNF_OK && to && out->n != plain)
        status = tnf_fail(e, TNF_EFORMAT, out->n < plain ? out->n : plain,
                          "a chunk has %zu bytes instead of %llu", out->n,
                          (unsigned long long)plain);
    if (status == TNF_OK && to && out->p != to)
        memcpy(to, out->p, (size_t)plain);
    if (status != TNF_OK)
        tnf_zr_free(out);
    return status;
}

/* ----------------------------------------------------------------- shards */

/* Copies a chunk of a shard to its place. */
static void place_inner(const zr_level *outer, const zr_level *inner, const uint64_t *at,
                        const uint8_t *from, uint8_t *to)
{
    uint64_t index[ZR_MAX_RANK] = { 0 };
    size_t w = outer->width;
    for (uint64_t k = 0; k < inner->elements; k++) {
        uint64_t a = 0, b = 0;
        for (uint32_t i = 0; i < outer->rank; i++) {
            a += index[i] * inner->stride[i];
            b += (at[i] * inner->chunk[i] + index[i]) * outer->stride[i];
        }
        memcpy(to + b * w, from + a * w, w);
        for (uint32_t i = outer->rank; i-- > 0 && ++index[i] == inner->chunk[i];)
            index[i] = 0;
    }
}

static void fill_all(uint8_t *to, uint64_t elements, const uint8_t *element, size_t width)
{
    for (uint64_t i = 0; i < elements; i++)
        memcpy(to + i * width, element, width);
}

static tnf_status decode_inner(const zr_array *a, const zr_level *outer, const zr_level *inner,
                               const zr_bytes *shard, const uint8_t *index, uint8_t *room,
                               uint8_t *out, tnf_error *e)
{
    uint64_t at[ZR_MAX_RANK] = { 0 };
    for (uint64_t k = 0; k < inner->index->elements / 2; k++) {
        uint64_t offset = tnf_le64(index + 16 * k), n = tnf_le64(index + 16 * k + 8);
        if (offset == UINT64_MAX && n == UINT64_MAX) {
            fill_all(room, inner->elements, a->fill_element, outer->width);
        } else {
            if (offset > shard->n || n > shard->n - offset)
                return tnf_fail(e, TNF_EFORMAT, offset, "a chunk is outside its shard");
            TNF_TRY(tnf_zr_decode_chunk(a, inner, shard->p + offset, (size_t)n, room, e));
        }
        place_inner(outer, inner, at, room, out);
        for (uint32_t i = outer->rank; i-- > 0 && ++at[i] == outer->chunk[i] / inner->chunk[i];)
            at[i] = 0;
    }
    return TNF_OK;
}

/* Decodes a complete shard, for shards inside shards and compressed ones. */
static tnf_status decode_shard(const zr_array *a, const zr_level *outer, const zr_bytes *shard,
                               uint8_t *out, tnf_error *e)
{
    const zr_level *inner = outer->codecs[0].shard;
    uint64_t n = inner->index->bytes + 4 * (inner->index->ncodecs - 1);
    if (shard->n < n)
        return tnf_fail(e, TNF_EFORMAT, shard->n, "a shard is shorter than its index");
    zr_bytes room, index;
    TNF_TRY(tnf_zr_alloc(&room, inner->bytes, e));
    tnf_status status = tnf_zr_alloc(&index, inner->index->bytes, e);
    if (status == TNF_OK)
        status = tnf_zr_decode_chunk(a, inner->index,
                                     shard->p + (inner->index_first ? 0 : shard->n - n), (size_t)n,
                                     index.p, e);
    if (status == TNF_OK)
        status = decode_inner(a, outer, inner, shard, index.p, room.p, out, e);
    tnf_zr_free(&index);
    tnf_zr_free(&room);
    return status;
}

/* ----------------------------------------------------------------- chunks */

tnf_status tnf_zr_decode_chunk(const zr_array *a, const zr_level *level, const uint8_t *stored,
                               size_t stored_n, uint8_t *out, tnf_error *e)
{
    zr_bytes from = { (uint8_t *)(uintptr_t)stored, stored_n, 0 }, plain;
    bool shard = level->codecs[0].kind == ZR_SHARD;
    TNF_TRY(tnf_zr_unpack(&plain, level, shard ? NULL : out, level->bytes, from, e));
    tnf_status status = TNF_OK;
    if (shard)
        status = decode_shard(a, level, &plain, out, e);
    else if (level->codecs[0].big)
        tnf_reverse(out, level->bytes, level->swap);
    tnf_zr_free(&plain);
    return status;
}
