/* SPDX-License-Identifier: MIT */
/* Undoes filters in reverse order: deflate, shuffle, fletcher32, LZF, and three registered ones,
 * zstd (one frame), Blosc (one buffer) and LZ4:
 *
 *   bytes of all u64 BE   of a block u32 BE   blocks: stored u32 BE, LZ4 or plain
 */
#include "codec/blocks.h"
#include "codec/blosc.h"
#include "formats/hdf5/h5.h"

#include <string.h>

enum {
    DEFLATE = 1,
    SHUFFLE = 2,
    FLETCHER32 = 3,
    LZF = 32000,
    BLOSC = 32001,
    LZ4 = 32004,
    ZSTD = 32015
};

bool tnf_h5_filter_packs(unsigned id)
{
    return id == DEFLATE || id == LZF || id == BLOSC || id == LZ4 || id == ZSTD;
}

bool tnf_h5_filter_known(unsigned id)
{
    return id == SHUFFLE || id == FLETCHER32 || tnf_h5_filter_packs(id);
}

const char *tnf_h5_filter_name(unsigned id)
{
    static const struct {
        unsigned id;
        const char *name;
    } names[] = { { 4, "szip" },    { 5, "nbit" },      { 6, "scaleoffset" },
                  { 305, "lzo" },   { 307, "bzip2" },   { 32008, "bitshuffle" },
                  { 32013, "zfp" }, { 32026, "blosc2" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].id == id)
            return names[i].name;
    return NULL;
}

/* ------------------------------------------------------------------ single */

static uint32_t fletcher_sum(const uint8_t *p, size_t n)
{
    uint32_t a = 0, b = 0;
    for (size_t words = n / 2; words > 0;) {
        size_t some = words < 360 ? words : 360;
        words -= some;
        for (; some > 0; some--, p += 2) {
            a += (uint32_t)p[0] << 8 | p[1];
            b += a;
        }
        a = (a & 0xFFFFu) + (a >> 16);
        b = (b & 0xFFFFu) + (b >> 16);
    }
    if (n % 2) {
        a += (uint32_t)p[0] << 8;
        b += a;
        a = (a & 0xFFFFu) + (a >> 16);
        b = (b & 0xFFFFu) + (b >> 16);
    }
    a = (a & 0xFFFFu) + (a >> 16);
    b = (b & 0xFFFFu) + (b >> 16);
    return b << 16 | a;
}

/* Does the checksum match? Old libraries wrote the bytes of each half in reverse order. */
static bool sum_fits(uint32_t found, uint32_t stored)
{
    uint32_t swapped = (found & 0xFF00FFu) << 8 | (found >> 8 & 0xFF00FFu);
    return found == stored || swapped == stored;
}

/* Bytes i of all elements are contiguous; an incomplete element at the end is unchanged. */
static void unshuffle_bytes(uint8_t *to, const uint8_t *from, size_t n, size_t width)
{
    size_t many = n / width;
    if (width == 4) {
        const uint8_t *a = from, *b = a + many, *c = b + many, *d = c + many;
        for (size_t i = 0; i < many; i++) {
            to[4 * i] = a[i];
            to[4 * i + 1] = b[i];
            to[4 * i + 2] = c[i];
            to[4 * i + 3] = d[i];
        }
    } else {
        for (size_t k = 0; k < width; k++)
            for (size_t i = 0; i < many; i++)
                to[i * width + k] = from[k * many + i];
    }
    memcpy(to + many * width, from + many * width, n - many * width);
}

static bool decode_lzf(const uint8_t *p, size_t n, uint8_t *to, size_t room)
{
    size_t at = 0, made = 0;
    while (at < n) {
        size_t c = p[at++];
        if (c < 32) {
            size_t some = c + 1;
            if (some > n - at || some > room - made)
                return false;
            memcpy(to + made, p + at, some);
            at += some;
            made += some;
            continue;
        }
        size_t length = c >> 5;
        if (length == 7) {
            if (at == n)
                return false;
            length += p[at++];
        }
        length += 2;
        if (at == n)
            return false;
        size_t back = ((c & 31u) << 8 | p[at++]) + 1;
        if (back > made || length > room - made)
            return false;
        for (size_t i = 0; i < length; i++, made++)
            to[made] = to[made - back];
    }
    return made == room;
}

static tnf_status decode_lz4(const uint8_t *p, size_t n, uint8_t *to, size_t room, tnf_error *e)
{
    size_t at = 12, made = 0, block = n >= 12 ? tnf_be32(p + 8) : 0;
    if (n < 12 || tnf_be64(p) != room || (block == 0 && room))
        return tnf_fail(e, TNF_EFORMAT, 0, "a chunk of LZ4 has a wrong size");
    while (made < room) {
        size_t want = block < room - made ? block : room - made;
        size_t stored = n - at >= 4 ? tnf_be32(p + at) : 0;
        if (n - at < 4 || stored > n - at - 4)
            return tnf_fail(e, TNF_EFORMAT, at, "a block of LZ4 is truncated");
        at += 4;
        if (stored == want)
            memcpy(to + made, p + at, want);
        else
            TNF_TRY(tnf_lz4_decode(p + at, stored, to + made, want, e));
        at += stored;
        made += want;
    }
    return TNF_OK;
}

static tnf_status unpack_bytes(unsigned id, const uint8_t *from, size_t n, uint8_t *to, size_t want,
                               tnf_error *e)
{
    switch (id) {
    case DEFLATE:
        return tnf_zlib_decode(from, n, to, want, e);
    case BLOSC:
        return tnf_blosc_decode(from, n, to, want, e);
    case ZSTD:
        return tnf_zstd_decode(from, n, to, want, e);
    case LZ4:
        return decode_lz4(from, n, to, want, e);
    default:
        return decode_lzf(from, n, to, want) ? TNF_OK
                                             : tnf_fail(e, TNF_EFORMAT, 0, "corrupt LZF data");
    }
}

/* --------------------------------------------------------------------- all */

/* The number of bytes before filter i, if no filter before it compresses. */
static size_t size_before(const h5_data *d, const h5_chunk *chunk, uint32_t i)
{
    size_t n = (size_t)d->chunk_bytes;
    for (uint32_t k = 0; k < i; k++)
        n += d->filters[k].id == FLETCHER32 && !(chunk->mask >> k & 1u) ? 4 : 0;
    return n;
}

static tnf_status wrong_size(const h5_chunk *chunk, size_t n, uint64_t want, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, chunk->at, "a chunk decodes to %zu bytes instead of %llu", n,
                    (unsigned long long)want);
}

/* Undoes one filter. `from` has *n bytes, `to` has room for a chunk and its checksums. *moved: the
 * result is in `to`. */
static tnf_status undo_filter(const h5_data *d, const h5_chunk *chunk, uint32_t i, uint8_t *from,
                              size_t *n, uint8_t *to, bool *moved, tnf_error *e)
{
    const h5_filter *f = &d->filters[i];
    size_t want = size_before(d, chunk, i);
    *moved = f->id != FLETCHER32;
    if (f->id == FLETCHER32) {
        if (*n < 4)
            return wrong_size(chunk, *n, 4, e);
        *n -= 4;
        if (!sum_fits(fletcher_sum(from, *n), tnf_le32(from + *n)))
            return tnf_fail(e, TNF_EDIGEST, chunk->at, "a chunk does not match its fletcher32");
        return TNF_OK;
    }
    if (f->id == SHUFFLE) {
        if (*n > d->chunk_bytes + 4 * (uint64_t)H5_FILTERS)
            return wrong_size(chunk, *n, d->chunk_bytes, e);
        unshuffle_bytes(to, from, *n, f->width);
        return TNF_OK;
    }
    tnf_status status = unpack_bytes(f->id, from, *n, to, want, e);
    if (status != TNF_OK && e && e->offset != TNF_NO_OFFSET)
        e->offset += chunk->at;
    *n = want;
    return status;
}

tnf_status tnf_h5_unfilter(const h5_data *d, const h5_chunk *chunk, bool plain, uint8_t *stored,
                           uint8_t *dst, tnf_error *e)
{
    uint8_t *from = stored, *to = dst;
    size_t n = (size_t)chunk->stored;
    for (uint32_t i = plain ? 0 : d->nfilters; i-- > 0;) {
        bool moved = false;
        if (i < 32 && chunk->mask >> i & 1u)
            continue;
        TNF_TRY(undo_filter(d, chunk, i, from, &n, to, &moved, e));
        if (moved) {
            uint8_t *other = from;
            from = to;
            to = other;
        }
    }
    if (n != d->chunk_bytes)
        return wrong_size(chunk, n, d->chunk_bytes, e);
    if (from != dst)
        memcpy(dst, from, n);
    return TNF_OK;
}
