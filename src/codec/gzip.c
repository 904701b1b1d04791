/* SPDX-License-Identifier: MIT */
/* gzip (RFC 1952) and raw deflate (RFC 1951) over zlib, decoded from the start. Sizes come from the
 * container, so a decompression bomb is stopped one byte after its declared size.
 *
 *   gzip      1f 8b 08 flags mtime[4] xfl os  deflated bytes  crc32[4] size[4]
 *             then possibly the next member
 *   deflate   deflated bytes only: a member of a zip archive
 *
 * The encoder writes one member without a name, with mtime 0 and os 255 (unknown): the same bytes
 * give the same file on every machine with the same zlib.
 */
#include "codec/blocks.h"
#include "codec/codec_ops.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#define WINDOW_GZIP (15 + 16) /* the largest window, with gzip's header and trailer */
#define WINDOW_RAW  (-15)     /* the largest window, without header and trailer */
#define WINDOW_ZLIB 15        /* the largest window, with zlib's header and checksum */
#define OUT_BLOCK   (64u << 10)
#define MEMORY      8 /* zlib's default */

/* ---------------------------------------------------------------- inflating */

/* Reports damaged data with the message of inflate(). */
static tnf_status damaged_data(const char *id, const z_stream *z, int said, uint64_t at,
                               tnf_error *e)
{
    if (said == Z_MEM_ERROR)
        return tnf_no_memory(id, e);
    if (said != Z_NEED_DICT && !z->msg)
        return tnf_fail(e, TNF_EFORMAT, at, "corrupt %s: not %s data", id, id);
    return tnf_fail(e, TNF_EFORMAT, at, "corrupt %s: %s", id,
                    z->msg ? z->msg : "it needs a dictionary");
}

static uInt at_most(size_t n)
{
    return n < UINT_MAX ? (uInt)n : UINT_MAX;
}

/* zlib takes its read-only input without const. */
static Bytef *without_const(const void *p)
{
    return (Bytef *)(uintptr_t)p;
}

/* ----------------------------------------------------------------- streams */

static int window_of(const tnf_codec_ops *ops)
{
    return ops == &tnf_codec_deflate ? WINDOW_RAW : WINDOW_GZIP;
}

struct decode {
    tnf_feed feed;
    z_stream z;
    bool open;    /* z must be ended */
    bool between; /* a member has ended, and the next has not begun */
};

static tnf_status decode_open(tnf_decoder *d, tnf_error *e)
{
    struct decode *s = tnf_alloc0(&d->alloc, sizeof *s);
    d->state = s;
    if (!s || inflateInit2(&s->z, window_of(d->ops)) != Z_OK)
        return tnf_no_memory(d->ops->id, e);
    s->open = true;
    return tnf_feed_open(&s->feed, d, 0, d->from.stored, e);
}

static void decode_close(tnf_decoder *d)
{
    struct decode *s = d->state;
    if (!s)
        return;
    if (s->open)
        inflateEnd(&s->z);
    tnf_feed_close(&s->feed, d);
    tnf_free(&d->alloc, s, sizeof *s);
}

/* One step; *made is the number of decoded bytes. */
static tnf_status decode_step(tnf_decoder *d, void *dst, size_t n, size_t *made, tnf_error *e)
{
    struct decode *s = d->state;
    TNF_TRY(tnf_feed_more(&s->feed, d, e));
    if (s->between && !tnf_feed_ended(&s->feed) && d->ops == &tnf_codec_deflate)
        return tnf_fail(e, TNF_EFORMAT, tnf_feed_where(&s->feed),
                        "the deflate data end %llu bytes too early",
                        (unsigned long long)(d->from.stored - tnf_feed_where(&s->feed)));
    if (tnf_feed_ended(&s->feed) && (s->between || d->from.stored == 0))
        return tnf_fail(e, TNF_ETRUNCATED, d->from.stored,
                        "the %s data end before their %llu bytes are decoded", d->ops->id,
                        (unsigned long long)d->from.decoded);
    if (s->between && inflateReset(&s->z) != Z_OK)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "%s: the next member cannot be started",
                        d->ops->id);
    s->between = false;
    s->z.next_in = s->feed.block + s->feed.used;
    s->z.avail_in = (uInt)(s->feed.n - s->feed.used);
    s->z.next_out = dst;
    s->z.avail_out = at_most(n);
    uInt room = s->z.avail_out;
    int said = inflate(&s->z, Z_NO_FLUSH);
    *made = room - s->z.avail_out;
    s->feed.used = s->feed.n - s->z.avail_in;
    s->between = said == Z_STREAM_END;
    if (said == Z_OK || said == Z_STREAM_END)
        return TNF_OK;
    if (said == Z_BUF_ERROR && tnf_feed_ended(&s->feed))
        return tnf_fail(e, TNF_ETRUNCATED, d->from.stored, "the %s data end too early", d->ops->id);
    return said == Z_BUF_ERROR ? TNF_OK
                               : damaged_data(d->ops->id, &s->z, said, tnf_feed_where(&s->feed), e);
}

static tnf_status decode_gzip(tnf_decoder *d, void *dst, size_t n, tnf_error *e)
{
    return tnf_decode_steps(d, decode_step, dst, n, e);
}

static tnf_status decode_some(tnf_decoder *d, void *dst, size_t n, size_t *made, tnf_error *e)
{
    const struct decode *s = d->state;
    *made = 0;
    while (*made == 0 && (!s->between || !tnf_feed_ended(&s->feed)))
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
    z_stream z;
    gz_header header;
    bool open;
    uint8_t *block;
};

static int begin_deflate(z_stream *z, gz_header *header, int window, int level)
{
    *header = (gz_header) { .os = 255 };
    int said = deflateInit2(z, level, Z_DEFLATED, window, MEMORY, Z_DEFAULT_STRATEGY);
    return said == Z_OK && window == WINDOW_GZIP ? deflateSetHeader(z, header) : said;
}

static tnf_status encode_open(tnf_encoder *x, tnf_error *e)
{
    struct encode *s = tnf_alloc0(&x->alloc, sizeof *s);
    x->state = s;
    if (s)
        s->block = tnf_alloc(&x->alloc, OUT_BLOCK);
    if (!s || !s->block)
        return tnf_no_memory(x->ops->id, e);
    if (x->level < 0 || x->level > 9)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the level of %s must be 1 to 9, not %d",
                        x->ops->id, x->level);
    int level = x->level ? x->level : Z_DEFAULT_COMPRESSION;
    if (begin_deflate(&s->z, &s->header, window_of(x->ops), level) != Z_OK)
        return tnf_no_memory(x->ops->id, e);
    s->open = true;
    return TNF_OK;
}

static void encode_close(tnf_encoder *x)
{
    struct encode *s = x->state;
    if (!s)
        return;
    if (s->open)
        deflateEnd(&s->z);
    tnf_free(&x->alloc, s->block, OUT_BLOCK);
    tnf_free(&x->alloc, s, sizeof *s);
}

static tnf_status push_bytes(tnf_encoder *x, const void *bytes, size_t n, int flush, tnf_error *e)
{
    struct encode *s = x->state;
    int said;
    s->z.next_in = without_const(bytes);
    s->z.avail_in = (uInt)n;
    do {
        s->z.next_out = s->block;
        s->z.avail_out = OUT_BLOCK;
        said = deflate(&s->z, flush);
        if (said != Z_OK && said != Z_STREAM_END && said != Z_BUF_ERROR)
            return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "%s: deflate failed with the code %d",
                            x->ops->id, said);
        size_t made = OUT_BLOCK - s->z.avail_out;
        if (made)
            TNF_TRY(x->to.write(x->to.ctx, s->block, made, e));
    } while (flush == Z_FINISH ? said != Z_STREAM_END : s->z.avail_in > 0 || s->z.avail_out == 0);
    return TNF_OK;
}

static tnf_status encode_gzip(tnf_encoder *x, const void *bytes, size_t n, tnf_error *e)
{
    for (size_t done = 0, here; done < n; done += here) {
        here = at_most(n - done);
        TNF_TRY(push_bytes(x, (const uint8_t *)bytes + done, here, Z_NO_FLUSH, e));
    }
    return TNF_OK;
}

static tnf_status encode_end(tnf_encoder *x, tnf_error *e)
{
    return push_bytes(x, "", 0, Z_FINISH, e);
}

const tnf_codec_ops tnf_codec_gzip = {
    .id = "gzip",
    .decode_open = decode_open,
    .decode = decode_gzip,
    .decode_end = decode_end,
    .decode_some = decode_some,
    .decode_close = decode_close,
    .encode_open = encode_open,
    .encode = encode_gzip,
    .encode_end = encode_end,
    .encode_close = encode_close,
};

const tnf_codec_ops tnf_codec_deflate = {
    .id = "deflate",
    .decode_open = decode_open,
    .decode = decode_gzip,
    .decode_end = decode_end,
    .decode_close = decode_close,
    .encode_open = encode_open,
    .encode = encode_gzip,
    .encode_end = encode_end,
    .encode_close = encode_close,
};

/* ------------------------------------------------------------ whole blocks */

static tnf_status fetch_block(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)e;
    memcpy(dst, (const uint8_t *)ctx + offset, n);
    return TNF_OK;
}

/* A stream, for input that is larger than the feed's block. */
static tnf_status decode_stream(const void *stored, size_t stored_n, void *dst, size_t n,
                                tnf_error *e)
{
    tnf_encoded from = { fetch_block, without_const(stored), stored_n, n };
    tnf_decoder *d;
    TNF_TRY(tnf_decoder_open(&d, TNF_CODEC_GZIP, &from, NULL, e));
    tnf_status status = tnf_decoder_read(d, 0, dst, n, e);
    if (status == TNF_OK)
        status = tnf_decoder_end(d, e);
    tnf_decoder_close(d);
    return status;
}

/* The common case: one member, all of it in memory, in one call. */
static bool decode_at_once(const void *stored, size_t stored_n, void *dst, size_t n)
{
    z_stream z = { 0 };
    if (stored_n > UINT_MAX || n > UINT_MAX || inflateInit2(&z, WINDOW_GZIP) != Z_OK)
        return false;
    uint8_t none;
    z.next_in = without_const(stored);
    z.avail_in = (uInt)stored_n;
    z.next_out = n ? dst : &none;
    z.avail_out = (uInt)n;
    bool done = inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_in == 0 && z.avail_out == 0;
    inflateEnd(&z);
    return done;
}

tnf_status tnf_gzip_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    if (decode_at_once(stored, stored_n, dst, n))
        return TNF_OK;
    return decode_stream(stored, stored_n, dst, n,
                         e); /* several members, or to find the error message */
}

/* Decodes everything in one call, and reports remaining or missing bytes. */
tnf_status tnf_zlib_decode(const void *stored, size_t stored_n, void *dst, size_t n, tnf_error *e)
{
    z_stream z = { 0 };
    uint8_t none;
    if (stored_n > UINT_MAX || n > UINT_MAX)
        return tnf_fail(e, TNF_ELIMIT, 0, "a zlib block has more than 4 GiB");
    if (inflateInit2(&z, WINDOW_ZLIB) != Z_OK)
        return tnf_no_memory("zlib", e);
    z.next_in = without_const(stored);
    z.avail_in = (uInt)stored_n;
    z.next_out = n ? dst : &none;
    z.avail_out = (uInt)n;
    int said = inflate(&z, Z_FINISH);
    uint64_t at = stored_n - z.avail_in, made = n - z.avail_out;
    tnf_status status = TNF_OK;
    if (said == Z_STREAM_END && made == n && z.avail_in == 0)
        status = TNF_OK;
    else if (said == Z_STREAM_END)
        status = tnf_fail(e, TNF_EFORMAT, at,
                          "the zlib data decode to %llu bytes instead of %llu, or more data follow",
                          (unsigned long long)made, (unsigned long long)n);
    else if (said == Z_OK || (said == Z_BUF_ERROR && z.avail_in > 0))
        status = tnf_fail(e, TNF_EFORMAT, at,
                          "the zlib data decode to more than the expected %llu bytes",
                          (unsigned long long)n);
    else if (said == Z_BUF_ERROR)
        status = tnf_fail(e, TNF_ETRUNCATED, at, "the zlib data end too early");
    else
        status = damaged_data("zlib", &z, said, at, e);
    inflateEnd(&z);
    return status;
}

static tnf_status put_block(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    tnf_buf_put(ctx, bytes, n);
    return tnf_buf_status(ctx, "gzip data", e);
}

tnf_status tnf_gzip_encode(tnf_buf *b, const void *bytes, size_t n, tnf_error *e)
{
    tnf_encode_to to = { put_block, b };
    tnf_encoder *x;
    TNF_TRY(tnf_encoder_open(&x, TNF_CODEC_GZIP, 0, &to, &b->alloc, e));
    tnf_status status = tnf_encoder_write(x, bytes, n, e);
    if (status == TNF_OK)
        status = tnf_encoder_end(x, e);
    tnf_encoder_close(x);
    return status;
}
