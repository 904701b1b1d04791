/* SPDX-License-Identifier: MIT */
/* zstd over libzstd: consecutive frames, decoded from the start. Sizes come from the container. So
 * a frame without a content size is accepted, and a decompression bomb is stopped at the
 * container's size. */
#include "codec/blosc.h"
#include "codec/codec_ops.h"

#include <zstd.h>

#define MAX_WINDOW_LOG 27 /* 128 MiB, which is also zstd's own limit */

struct decode {
    tnf_feed feed;
    ZSTD_DCtx *ctx;
    size_t hint; /* 0: between frames */
};

static tnf_status decode_open(tnf_decoder *d, tnf_error *e)
{
    struct decode *s = tnf_alloc0(&d->alloc, sizeof *s);
    d->state = s;
    if (!s || !(s->ctx = ZSTD_createDCtx()))
        return tnf_no_memory("zstd", e);
    (void)ZSTD_DCtx_setParameter(s->ctx, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
    return tnf_feed_open(&s->feed, d, 0, d->from.stored, e);
}

static void decode_close(tnf_decoder *d)
{
    struct decode *s = d->state;
    if (!s)
        return;
    ZSTD_freeDCtx(s->ctx);
    tnf_feed_close(&s->feed, d);
    tnf_free(&d->alloc, s, sizeof *s);
}

/* One step; *made is the number of decoded bytes. */
static tnf_status decode_step(tnf_decoder *d, void *dst, size_t n, size_t *made, tnf_error *e)
{
    struct decode *s = d->state;
    TNF_TRY(tnf_feed_more(&s->feed, d, e));
    ZSTD_inBuffer in = { s->feed.block, s->feed.n, s->feed.used };
    ZSTD_outBuffer out = { dst, n, 0 };
    size_t hint = ZSTD_decompressStream(s->ctx, &out, &in);
    if (ZSTD_isError(hint))
        return tnf_fail(e, TNF_EFORMAT, tnf_feed_where(&s->feed), "zstd: %s",
                        ZSTD_getErrorName(hint));
    bool stuck = in.pos == s->feed.used && out.pos == 0;
    s->feed.used = in.pos;
    s->hint = hint;
    *made = out.pos;
    if (stuck && tnf_feed_ended(&s->feed))
        return tnf_fail(e, TNF_ETRUNCATED, d->from.stored,
                        "the zstd data end before their %llu bytes are decoded",
                        (unsigned long long)d->from.decoded);
    return TNF_OK;
}

static tnf_status decode_zstd(tnf_decoder *d, void *dst, size_t n, tnf_error *e)
{
    return tnf_decode_steps(d, decode_step, dst, n, e);
}

static tnf_status decode_some(tnf_decoder *d, void *dst, size_t n, size_t *made, tnf_error *e)
{
    const struct decode *s = d->state;
    *made = 0;
    while (*made == 0 && (s->hint != 0 || !tnf_feed_ended(&s->feed)))
        TNF_TRY(decode_step(d, dst, n, made, e));
    return TNF_OK;
}

static tnf_status decode_end(tnf_decoder *d, tnf_error *e)
{
    const struct decode *s = d->state;
    return tnf_decode_rest(d, &s->feed, decode_some, e);
}

/* --------------------------------------------------------------- encoding */

struct encode {
    ZSTD_CCtx *ctx;
    uint8_t *block;
    size_t size;
};

static tnf_status encode_open(tnf_encoder *x, tnf_error *e)
{
    struct encode *s = tnf_alloc0(&x->alloc, sizeof *s);
    x->state = s;
    if (s) {
        s->size = ZSTD_CStreamOutSize();
        s->ctx = ZSTD_createCCtx();
        s->block = tnf_alloc(&x->alloc, s->size);
    }
    if (!s || !s->ctx || !s->block)
        return tnf_no_memory("zstd", e);
    size_t bad = ZSTD_CCtx_setParameter(s->ctx, ZSTD_c_compressionLevel, x->level);
    if (ZSTD_isError(bad))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "zstd level %d: %s", x->level,
                        ZSTD_getErrorName(bad));
    return TNF_OK;
}

static void encode_close(tnf_encoder *x)
{
    struct encode *s = x->state;
    if (!s)
        return;
    ZSTD_freeCCtx(s->ctx);
    tnf_free(&x->alloc, s->block, s->size);
    tnf_free(&x->alloc, s, sizeof *s);
}

static tnf_status push_bytes(tnf_encoder *x, ZSTD_inBuffer *in, ZSTD_EndDirective how, tnf_error *e)
{
    struct encode *s = x->state;
    for (size_t left = 1; left || in->pos < in->size;) {
        ZSTD_outBuffer out = { s->block, s->size, 0 };
        left = ZSTD_compressStream2(s->ctx, &out, in, how);
        if (ZSTD_isError(left))
            return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "zstd: %s", ZSTD_getErrorName(left));
        if (out.pos)
            TNF_TRY(x->to.write(x->to.ctx, s->block, out.pos, e));
        if (how == ZSTD_e_continue && in->pos == in->size)
            break;
    }
    return TNF_OK;
}

static tnf_status encode_zstd(tnf_encoder *x, const void *bytes, size_t n, tnf_error *e)
{
    return push_bytes(x, &(ZSTD_inBuffer) { bytes, n, 0 }, ZSTD_e_continue, e);
}

static tnf_status encode_end(tnf_encoder *x, tnf_error *e)
{
    return push_bytes(x, &(ZSTD_inBuffer) { "", 0, 0 }, ZSTD_e_end, e);
}

const tnf_codec_ops tnf_codec_zstd = {
    .id = "zstd",
    .decode_open = decode_open,
    .decode = decode_zstd,
    .decode_end = decode_end,
    .decode_close = decode_close,
    .decode_some = decode_some,
    .encode_open = encode_open,
    .encode = encode_zstd,
    .encode_end = encode_end,
    .encode_close = encode_close,
};

/* ----------------------------------------------------------------- blocks */

tnf_status tnf_zstd_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    size_t made = ZSTD_decompress(dst, n, stored, stored_n);
    if (ZSTD_isError(made))
        return tnf_fail(e, TNF_EFORMAT, 0, "zstd: %s", ZSTD_getErrorName(made));
    return made == n
               ? TNF_OK
               : tnf_fail(e, TNF_EFORMAT, stored_n, "zstd gives %zu bytes instead of %zu", made, n);
}

tnf_status tnf_zstd_encode(tnf_buf *b, const void *bytes, size_t n, int level, tnf_error *e)
{
    uint8_t few[1024];
    size_t room = ZSTD_compressBound(n);
    void *block = room <= sizeof few ? few : tnf_alloc(&b->alloc, room);
    if (!block)
        return tnf_no_memory("compressing", e);
    size_t made = ZSTD_compress(block, room, bytes, n, level);
    if (!ZSTD_isError(made))
        tnf_buf_put(b, block, made);
    if (block != few)
        tnf_free(&b->alloc, block, room);
    if (ZSTD_isError(made))
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "zstd: %s", ZSTD_getErrorName(made));
    return tnf_buf_status(b, "compressed bytes", e);
}
