/* SPDX-License-Identifier: MIT */
/* snappy: one raw block, no frames.
 *
 *   varint: decoded size               then, until that size is reached:
 *   nnnnnn00 [1 to 4 bytes of n] …     a literal of n+1 bytes; n of 60 to 63: n is in 1 to 4 bytes
 *   ooonnn01 oooooooo                  a copy of n+4 bytes from o bytes back
 *   nnnnnn10 o o                       a copy of n+1 bytes
 *   nnnnnn11 o o o o                   likewise; numbers are little-endian
 *
 * A block is decoded and encoded as a whole. Its size is read first and must be the size that the
 * container gives, so memory is never allocated because of the block's claim alone.
 */
#include "codec/blocks.h"
#include "codec/codec_ops.h"

#include <string.h>

#define MOST_OF_BYTE 22u /* maximal bytes per stored byte: a copy of 64 bytes takes three */

/* Reads the decoded size; *head is its length in bytes, 0 if it is invalid. */
static uint64_t read_size(const uint8_t *p, size_t n, size_t *head)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n && i < 5; i++) {
        value |= (uint64_t)(p[i] & 0x7F) << (7 * i);
        if (p[i] < 0x80) {
            *head = value > UINT32_MAX ? 0 : i + 1;
            return value;
        }
    }
    *head = 0;
    return 0;
}

tnf_status tnf_snappy_size(const void *stored, size_t stored_n, uint64_t *n, tnf_error *e)
{
    size_t head;
    uint64_t said = read_size(stored, stored_n, &head);
    if (head == 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "corrupt snappy: it does not begin with a size");
    if (said / MOST_OF_BYTE > stored_n)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "corrupt snappy: %llu bytes cannot be decoded from a block of %zu",
                        (unsigned long long)said, stored_n);
    *n = said;
    return TNF_OK;
}

static tnf_status need_size(const void *stored, size_t stored_n, uint64_t n, tnf_error *e)
{
    uint64_t said;
    TNF_TRY(tnf_snappy_size(stored, stored_n, &said, e));
    if (said != n)
        return tnf_fail(e, TNF_EFORMAT, 0, "the snappy data decode to %llu bytes instead of %llu",
                        (unsigned long long)said, (unsigned long long)n);
    return TNF_OK;
}

/* ------------------------------------------------------------------ decoding */

/* One literal or copy: its length, and the distance of a copy (0: a literal follows). */
typedef struct element {
    uint64_t n;
    uint64_t back;
} element;

static uint64_t little_endian(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

/* Reads the tag of an element, at most `left` bytes. Returns its length; 0 if the block ends inside
 * it, or if the distance of a copy is 0. */
static size_t read_element(const uint8_t *p, size_t left, element *out)
{
    static const uint8_t more[] = { 0, 1, 2, 4 }; /* bytes of an offset */
    unsigned tag = *p, kind = tag & 3, n = tag >> 2;
    size_t follow = kind ? more[kind] : n < 60 ? 0 : n - 59;
    if (left < 1 + follow)
        return 0;
    uint64_t number = little_endian(p + 1, follow);
    *out = (element) { .n = n + 1 };
    if (kind == 0 && follow)
        out->n = number + 1;
    else if (kind == 1)
        *out = (element) { (n & 7) + 4, number | (uint64_t)(tag >> 5) << 8 };
    else if (kind)
        out->back = number;
    return kind && out->back == 0 ? 0 : 1 + follow;
}

/* A copy may overlap its own output: existing bytes are then repeated, twice as many each time. */
static void copy_back(uint8_t *dst, size_t back, size_t n)
{
    while (n > back) {
        memcpy(dst, dst - back, back);
        dst += back;
        n -= back;
        back *= 2;
    }
    memcpy(dst, dst - back, n);
}

tnf_status tnf_snappy_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    TNF_TRY(need_size(stored, stored_n, n, e));
    const uint8_t *p = stored;
    uint8_t *out = dst;
    size_t at = 0, made = 0;
    read_size(p, stored_n, &at);
    while (at < stored_n) {
        element x;
        size_t tag = read_element(p + at, stored_n - at, &x);
        bool literal = tag && x.back == 0;
        if (!tag || x.n > n - made || x.back > made || (literal && x.n > stored_n - at - tag))
            return tnf_fail(e, TNF_EFORMAT, at, "corrupt snappy data");
        at += tag;
        if (literal) {
            memcpy(out + made, p + at, (size_t)x.n);
            at += (size_t)x.n;
        } else {
            copy_back(out + made, (size_t)x.back, (size_t)x.n);
        }
        made += (size_t)x.n;
    }
    if (made != n)
        return tnf_fail(e, TNF_EFORMAT, stored_n,
                        "corrupt snappy data: they end after %zu of %zu bytes", made, n);
    return TNF_OK;
}

/* ------------------------------------------------------------------ encoding */

enum { PIECE = 1 << 16, TABLE_BITS = 14, SHORTEST = 4, LONGEST = 64, NEAR = 1 << 11 };

static void put_literal(tnf_buf *b, const uint8_t *p, size_t n)
{
    if (n == 0)
        return;
    uint8_t tag[3] = { 0, (uint8_t)(n - 1), (uint8_t)((n - 1) >> 8) }; /* a piece has 64 KiB */
    size_t follow = n <= 60 ? 0 : n <= 256 ? 1 : 2;
    tag[0] = (uint8_t)((follow ? 59 + follow : n - 1) << 2);
    tnf_buf_put(b, tag, 1 + follow);
    tnf_buf_put(b, p, n);
}

static void put_copy(tnf_buf *b, size_t back, size_t n)
{
    while (n > 0) {
        /* The rest is never shorter than four, the minimum of the short form. */
        size_t some = n <= LONGEST ? n : n < LONGEST + SHORTEST ? LONGEST - SHORTEST : LONGEST;
        if (some < 12 && back < NEAR) {
            uint8_t tag[2] = { (uint8_t)(1 | (some - 4) << 2 | (back >> 8) << 5), (uint8_t)back };
            tnf_buf_put(b, tag, sizeof tag);
        } else {
            uint8_t tag[3] = { (uint8_t)(2 | (some - 1) << 2), (uint8_t)back,
                               (uint8_t)(back >> 8) };
            tnf_buf_put(b, tag, sizeof tag);
        }
        n -= some;
    }
}

static uint32_t hash_four(const uint8_t *p)
{
    uint32_t four = (uint32_t)little_endian(p, 4);
    return four * 0x9E3779B1u >> (32 - TABLE_BITS);
}

/* A piece has at most 64 KiB, so positions fit in 16 bits and copies stay inside it. If no match is
 * found for a long time, the search skips more and more positions. */
static void encode_piece(tnf_buf *b, const uint8_t *p, size_t n, uint16_t *table)
{
    size_t at = 1, told = 0, missed = 32;
    memset(table, 0, sizeof *table << TABLE_BITS);
    while (n >= SHORTEST && at <= n - SHORTEST) {
        uint16_t *slot = &table[hash_four(p + at)];
        size_t before = *slot, same = 0;
        *slot = (uint16_t)at;
        while (at + same < n && p[before + same] == p[at + same])
            same++;
        if (same < SHORTEST) {
            at += missed++ / 32;
            continue;
        }
        put_literal(b, p + told, at - told);
        put_copy(b, at - before, same);
        told = at += same;
        missed = 32;
    }
    put_literal(b, p + told, n - told);
}

tnf_status tnf_snappy_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e)
{
    if (n > UINT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "a snappy block can hold less than 4 GiB, not %zu bytes", n);
    size_t size = sizeof(uint16_t) << TABLE_BITS;
    uint16_t *table = tnf_alloc(&b->alloc, size);
    if (!table)
        return tnf_no_memory("snappy", e);
    size_t rest = n;
    for (; rest >= 0x80; rest >>= 7)
        tnf_buf_put(b, &(uint8_t) { (uint8_t)(rest | 0x80) }, 1);
    tnf_buf_put(b, &(uint8_t) { (uint8_t)rest }, 1);
    for (size_t at = 0; at < n; at += PIECE)
        encode_piece(b, (const uint8_t *)bytes + at, n - at < PIECE ? n - at : PIECE, table);
    tnf_free(&b->alloc, table, size);
    return tnf_buf_status(b, "snappy data", e);
}

/* ----------------------------------------------------------------- streams */

struct decode {
    uint8_t *plain;
    size_t n;
};

/* Decodes all stored bytes, which must be one block of the right size. */
static tnf_status decode_stored(tnf_decoder *d, struct decode *s, uint8_t *stored, tnf_error *e)
{
    size_t n = (size_t)d->from.stored;
    TNF_TRY(d->from.read(d->from.ctx, 0, stored, n, e));
    TNF_TRY(need_size(stored, n, d->from.decoded, e));
    s->plain = tnf_alloc(&d->alloc, (size_t)d->from.decoded + 1);
    if (!s->plain)
        return tnf_no_memory("snappy", e);
    s->n = (size_t)d->from.decoded;
    return tnf_snappy_decode(stored, n, s->plain, s->n, e);
}

static tnf_status decode_open(tnf_decoder *d, tnf_error *e)
{
    struct decode *s = tnf_alloc0(&d->alloc, sizeof *s);
    d->state = s;
    if (d->from.stored == 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "corrupt snappy: it is empty");
    if (d->from.stored > SIZE_MAX || d->from.decoded > UINT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a snappy block can hold less than 4 GiB");
    uint8_t *stored = s ? tnf_alloc(&d->alloc, (size_t)d->from.stored) : NULL;
    if (!stored)
        return tnf_no_memory("snappy", e);
    tnf_status status = decode_stored(d, s, stored, e);
    tnf_free(&d->alloc, stored, (size_t)d->from.stored);
    return status;
}

static void decode_close(tnf_decoder *d)
{
    struct decode *s = d->state;
    if (!s)
        return;
    if (s->plain)
        tnf_free(&d->alloc, s->plain, s->n + 1);
    tnf_free(&d->alloc, s, sizeof *s);
}

static tnf_status decode_seek(tnf_decoder *d, uint64_t offset, tnf_error *e)
{
    (void)e;
    d->position = offset;
    return TNF_OK;
}

static tnf_status decode_snappy(tnf_decoder *d, void *dst, size_t n, tnf_error *e)
{
    const struct decode *s = d->state;
    if (d->position > s->n || n > s->n - d->position)
        return tnf_fail(e, TNF_ETRUNCATED, d->from.stored,
                        "the snappy data end before their %llu bytes are decoded",
                        (unsigned long long)d->from.decoded);
    memcpy(dst, s->plain + d->position, n);
    return TNF_OK;
}

static tnf_status decode_end(tnf_decoder *d, tnf_error *e)
{
    (void)d, (void)e; /* the block was checked completely when it was opened */
    return TNF_OK;
}

static tnf_status encode_open(tnf_encoder *x, tnf_error *e)
{
    tnf_buf *plain = tnf_alloc0(&x->alloc, sizeof *plain);
    x->state = plain;
    if (!plain)
        return tnf_no_memory("snappy", e);
    tnf_buf_init(plain, &x->alloc, UINT32_MAX);
    return TNF_OK;
}

static void encode_close(tnf_encoder *x)
{
    if (!x->state)
        return;
    tnf_buf_free(x->state);
    tnf_free(&x->alloc, x->state, sizeof(tnf_buf));
}

static tnf_status encode_snappy(tnf_encoder *x, const void *bytes, size_t n, tnf_error *e)
{
    tnf_buf_put(x->state, bytes, n);
    return tnf_buf_status(x->state, "the snappy block", e);
}

static tnf_status encode_end(tnf_encoder *x, tnf_error *e)
{
    const tnf_buf *plain = x->state;
    tnf_buf block;
    tnf_buf_init(&block, &x->alloc, UINT64_MAX);
    tnf_status status = tnf_snappy_encode(&block, plain->p, plain->n, e);
    if (status == TNF_OK)
        status = x->to.write(x->to.ctx, block.p, block.n, e);
    tnf_buf_free(&block);
    return status;
}

const tnf_codec_ops tnf_codec_snappy = {
    .id = "snappy",
    .decode_open = decode_open,
    .decode_seek = decode_seek,
    .decode = decode_snappy,
    .decode_end = decode_end,
    .decode_close = decode_close,
    .encode_open = encode_open,
    .encode = encode_snappy,
    .encode_end = encode_end,
    .encode_close = encode_close,
};
