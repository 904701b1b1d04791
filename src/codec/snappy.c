/* SPDX-License-Identifier: MIT */
/* snappy over libsnappy's C functions: one raw block, no frames.
 *
 *   varint size of what comes out, then literals and copies
 *
 * A block is decoded and encoded as a whole, for the library knows no other way. The size is read
 * first and must be what the container says, so nothing is reserved on the block's word alone.
 */
#include "codec/blocks.h"
#include "codec/codec_ops.h"

#include <snappy-c.h>
#include <string.h>

#define MOST_OF_BYTE 22u /* a copy of 64 bytes takes three */

tnf_status tnf_snappy_size(const void *stored, size_t stored_n, uint64_t *n, tnf_error *e)
{
    size_t said;
    if (snappy_uncompressed_length(stored, stored_n, &said) != SNAPPY_OK)
        return tnf_fail(e, TNF_EFORMAT, 0, "corrupt snappy: it does not begin with a size");
    if (said / MOST_OF_BYTE > stored_n)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "corrupt snappy: %zu bytes cannot come out of a block of %zu", said,
                        stored_n);
    *n = said;
    return TNF_OK;
}

static tnf_status need_size(const void *stored, size_t stored_n, uint64_t n, tnf_error *e)
{
    uint64_t said;
    TNF_TRY(tnf_snappy_size(stored, stored_n, &said, e));
    if (said != n)
        return tnf_fail(e, TNF_EFORMAT, 0, "the snappy data hold %llu bytes and should hold %llu",
                        (unsigned long long)said, (unsigned long long)n);
    return TNF_OK;
}

tnf_status tnf_snappy_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    TNF_TRY(need_size(stored, stored_n, n, e));
    size_t made = n;
    char none;
    if (snappy_uncompress(stored, stored_n, n ? dst : &none, &made) != SNAPPY_OK || made != n)
        return tnf_fail(e, TNF_EFORMAT, 0, "corrupt snappy data");
    return TNF_OK;
}

tnf_status tnf_snappy_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e)
{
    if (n > UINT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "a snappy block holds less than 4 GiB, not %zu bytes", n);
    size_t most = snappy_max_compressed_length(n), made = most;
    void *block = tnf_alloc(&b->alloc, most);
    if (!block)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for snappy");
    bool done = snappy_compress(n ? bytes : "", n, block, &made) == SNAPPY_OK;
    if (done)
        tnf_buf_put(b, block, made);
    tnf_free(&b->alloc, block, most);
    return done ? tnf_buf_status(b, "snappy data", e)
                : tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "snappy cannot compress this");
}

/* ----------------------------------------------------------------- streams */

struct decode {
    uint8_t *plain;
    size_t n;
};

/* All of the stored bytes, which must be a block of the right size, decoded. */
static tnf_status decode_stored(tnf_decoder *d, struct decode *s, uint8_t *stored, tnf_error *e)
{
    size_t n = (size_t)d->from.stored;
    TNF_TRY(d->from.read(d->from.ctx, 0, stored, n, e));
    TNF_TRY(need_size(stored, n, d->from.decoded, e));
    s->plain = tnf_alloc(&d->alloc, (size_t)d->from.decoded + 1);
    if (!s->plain)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for snappy");
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
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a snappy block holds less than 4 GiB");
    uint8_t *stored = s ? tnf_alloc(&d->alloc, (size_t)d->from.stored) : NULL;
    if (!stored)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for snappy");
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

static tnf_status decode(tnf_decoder *d, void *dst, size_t n, tnf_error *e)
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
    (void)d, (void)e; /* the block was whole when it was opened */
    return TNF_OK;
}

static tnf_status encode_open(tnf_encoder *x, tnf_error *e)
{
    tnf_buf *plain = tnf_alloc0(&x->alloc, sizeof *plain);
    x->state = plain;
    if (!plain)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for snappy");
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

static tnf_status encode(tnf_encoder *x, const void *bytes, size_t n, tnf_error *e)
{
    tnf_buf_put(x->state, bytes, n);
    return tnf_buf_status(x->state, "snappy block", e);
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
    .decode = decode,
    .decode_end = decode_end,
    .decode_close = decode_close,
    .encode_open = encode_open,
    .encode = encode,
    .encode_end = encode_end,
    .encode_close = encode_close,
};
