/* SPDX-License-Identifier: MIT */
/* Blosc 1, as numcodecs and other programs write it.
 *
 *   u8 version  u8 of its codec  u8 flags  u8 typesize  u32 nbytes  u32 blocksize  u32 cbytes
 *   u32 start of each block, unless the bytes are only copied
 *   block: u32 n, n bytes of one stream; or of `typesize` streams, one after the other
 *
 *   flags: 1 bytes shuffled  2 copied  4 bits shuffled  16 a block is one stream
 *          bits 5 to 7: 0 blosclz  1 lz4  2 snappy  3 zlib  4 zstd
 *
 * Shuffling groups the k-th bytes (or bits) of all elements of a block.
 */
#include "codec/blosc.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "codec/blocks.h"

#include <string.h>

#define HEADER     16u
#define MAX_SPLITS 16u
#define MIN_SPLIT  128u
#define MAX_BLOCK  ((size_t)1 << 31)

enum { SHUFFLED = 1, COPIED = 2, BITS_SHUFFLED = 4, ONE_STREAM = 16 };

/* -------------------------------------------------------------------- lz4 */

static tnf_status bad_stream(const char *what, size_t at, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, at, "the %s data are damaged", what);
}

/* Reads the rest of a length that has the value `full`: it continues in bytes of 255. */
static bool read_length(const uint8_t *p, size_t n, size_t *at, size_t full, size_t *length)
{
    if (*length != full)
        return true;
    for (uint8_t more = 255; more == 255;) {
        if (*at >= n || *length > MAX_BLOCK)
            return false;
        more = p[(*at)++];
        *length += more;
    }
    return true;
}

/* Copies n bytes from `back` bytes before; the ranges may overlap. */
static void copy_match(uint8_t *to, size_t back, size_t n)
{
    if (back >= n) {
        memcpy(to, to - back, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = *(to - back + i);
}

tnf_status tnf_lz4_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    const uint8_t *p = stored;
    uint8_t *out = dst;
    size_t at = 0, made = 0;
    while (at < stored_n) {
        size_t token = p[at++], literals = token >> 4, match = token & 15;
        if (!read_length(p, stored_n, &at, 15, &literals) || literals > stored_n - at ||
            literals > n - made)
            return bad_stream("lz4", at, e);
        memcpy(out + made, p + at, literals);
        at += literals;
        made += literals;
        if (at == stored_n)
            break;
        if (stored_n - at < 2)
            return bad_stream("lz4", at, e);
        size_t back = tnf_le16(p + at);
        at += 2;
        if (!read_length(p, stored_n, &at, 15, &match) || back == 0 || back > made ||
            match + 4 > n - made)
            return bad_stream("lz4", at, e);
        copy_match(out + made, back, match + 4);
        made += match + 4;
    }
    return made == n ? TNF_OK : bad_stream("lz4", at, e);
}

/* ---------------------------------------------------------------- blosclz */

/* Reads a match: its length and distance. False: the bytes end inside it. */
static bool read_match(const uint8_t *p, size_t n, size_t *at, unsigned control, size_t *length,
                       size_t *back)
{
    *length = (control >> 5) - 1;
    *back = (size_t)(control & 31) << 8;
    if (!read_length(p, n, at, 6, length) || *at >= n)
        return false;
    uint8_t low = p[(*at)++];
    *length += 3;
    bool long_distance = low == 255 && *back == 31u << 8;
    *back += low;
    if (long_distance) {
        if (n - *at < 2)
            return false;
        *back = tnf_be16(p + *at) + (size_t)8191;
        *at += 2;
    }
    *back += 1;
    return true;
}

static tnf_status blosclz_decode(const void *stored, size_t stored_n, void *dst, size_t n,
                                 tnf_error *e)
{
    const uint8_t *p = stored;
    uint8_t *out = dst;
    size_t at = 0, made = 0, length, back;
    for (bool first = true; at < stored_n; first = false) {
        unsigned control = first ? p[at++] & 31u : p[at++];
        if (control < 32) {
            length = control + 1;
            if (length > stored_n - at || length > n - made)
                return bad_stream("blosclz", at, e);
            memcpy(out + made, p + at, length);
            at += length;
        } else {
            if (!read_match(p, stored_n, &at, control, &length, &back) || back > made ||
                length > n - made)
                return bad_stream("blosclz", at, e);
            copy_match(out + made, back, length);
        }
        made += length;
    }
    return made == n ? TNF_OK : bad_stream("blosclz", at, e);
}

/* ------------------------------------------------------------------ blosc */

typedef tnf_status stream_decode(const void *stored, size_t stored_n, void *dst, size_t n,
                                 tnf_error *e);

typedef struct buffer {
    const uint8_t *p;
    size_t n, nbytes, block, blocks, typesize;
    unsigned flags;
    stream_decode *decode;
} buffer;

static void unshuffle_bytes(uint8_t *dst, const uint8_t *src, size_t n, size_t typesize)
{
    size_t elements = n / typesize;
    for (size_t k = 0; k < typesize; k++)
        for (size_t i = 0; i < elements; i++)
            dst[i * typesize + k] = src[k * elements + i];
    memcpy(dst + elements * typesize, src + elements * typesize, n % typesize);
}

/* Only blocks whose number of elements is a multiple of eight were shuffled. */
static void unshuffle_bits(uint8_t *dst, const uint8_t *src, size_t n, size_t typesize)
{
    size_t elements = n / typesize, row = elements / 8;
    if (elements % 8) {
        memcpy(dst, src, n);
        return;
    }
    memset(dst, 0, elements * typesize);
    for (size_t k = 0; k < typesize; k++)
        for (unsigned bit = 0; bit < 8; bit++) {
            const uint8_t *from = src + (k * 8 + bit) * row;
            for (size_t i = 0; i < elements; i++)
                dst[i * typesize + k] |= (uint8_t)((from[i / 8] >> i % 8 & 1u) << bit);
        }
    memcpy(dst + elements * typesize, src + elements * typesize, n - elements * typesize);
}

/* Decodes the streams of block i to `out`. */
static tnf_status decode_streams(const buffer *b, size_t i, uint8_t *out, size_t n, tnf_error *e)
{
    size_t at = tnf_le32(b->p + HEADER + 4 * i);
    bool whole = n == b->block;
    bool split = whole && !(b->flags & ONE_STREAM) && b->typesize <= MAX_SPLITS &&
                 n / b->typesize >= MIN_SPLIT;
    size_t streams = split ? b->typesize : 1, each = n / streams;
    for (size_t k = 0; k < streams; k++) {
        if (at > b->n || b->n - at < 4)
            return bad_stream("Blosc", at, e);
        size_t stored = tnf_le32(b->p + at);
        at += 4;
        if (stored > b->n - at)
            return bad_stream("Blosc", at, e);
        if (stored == each)
            memcpy(out + k * each, b->p + at, each);
        else
            TNF_TRY(b->decode(b->p + at, stored, out + k * each, each, e));
        at += stored;
    }
    return streams * each == n ? TNF_OK : bad_stream("Blosc", at, e);
}

static tnf_status decode_blocks(const buffer *b, uint8_t *dst, tnf_error *e)
{
    bool shuffled = b->flags & SHUFFLED && b->typesize > 1, bits = b->flags & BITS_SHUFFLED;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    uint8_t *room = shuffled || bits ? tnf_alloc(&a, b->block) : NULL;
    tnf_status status = TNF_OK;
    if ((shuffled || bits) && !room)
        return tnf_no_memory("decoding", e);
    for (size_t i = 0; i < b->blocks && status == TNF_OK; i++) {
        size_t left = b->nbytes - i * b->block, n = left < b->block ? left : b->block;
        uint8_t *to = dst + i * b->block;
        status = decode_streams(b, i, room ? room : to, n, e);
        if (status != TNF_OK || !room)
            continue;
        if (shuffled)
            unshuffle_bytes(to, room, n, b->typesize);
        else
            unshuffle_bits(to, room, n, b->typesize);
    }
    tnf_free(&a, room, b->block);
    return status;
}

tnf_status tnf_blosc_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    static stream_decode *const decoders[] = { blosclz_decode, tnf_lz4_decode, tnf_snappy_decode,
                                               tnf_zlib_decode, tnf_zstd_decode };
    buffer b = { .p = stored };
    if (stored_n < HEADER)
        return tnf_fail(e, TNF_EFORMAT, stored_n, "a Blosc buffer ends within its header");
    b.flags = b.p[2];
    b.typesize = b.p[3];
    b.nbytes = tnf_le32(b.p + 4);
    b.block = tnf_le32(b.p + 8);
    b.n = tnf_le32(b.p + 12);
    if (b.p[0] > 2 || b.flags & 8)
        return tnf_fail(e, TNF_EUNSUPPORTED, 0, "unknown version %u of Blosc", b.p[0]);
    if (b.n < HEADER || b.n > stored_n)
        return tnf_fail(e, TNF_EFORMAT, 12, "a Blosc buffer claims %zu bytes, but has %zu", b.n,
                        stored_n);
    if (b.nbytes != n)
        return tnf_fail(e, TNF_EFORMAT, 4, "a Blosc buffer holds %zu bytes instead of %zu",
                        b.nbytes, n);
    if (n == 0)
        return TNF_OK;
    if (b.flags & COPIED) {
        if (b.n - HEADER < n)
            return tnf_fail(e, TNF_EFORMAT, b.n, "a Blosc buffer ends too early");
        memcpy(dst, b.p + HEADER, n);
        return TNF_OK;
    }
    b.typesize += b.typesize == 0;
    unsigned codec = b.flags >> 5;
    if (codec >= sizeof decoders / sizeof *decoders)
        return tnf_fail(e, TNF_EUNSUPPORTED, 2, "unknown codec %u of Blosc", codec);
    b.decode = decoders[codec];
    b.blocks = b.block ? n / b.block + (n % b.block != 0) : 0;
    if (b.block == 0 || b.block > MAX_BLOCK || b.blocks > (b.n - HEADER) / 4)
        return tnf_fail(e, TNF_EFORMAT, 8, "a Blosc buffer claims blocks of %zu bytes", b.block);
    b.block = b.block < n ? b.block : n;
    return decode_blocks(&b, dst, e);
}
