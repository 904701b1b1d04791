/* SPDX-License-Identifier: MIT */
/* zstd in frames with a table of them at the end, so that any range can be decoded separately.
 *
 *   frame … frame │ 5E 2A 4D 18 │ u32 n │ entries │ u32 frames │ u8 descriptor │ B1 EA 92 8F
 *                    a skippable frame    entry = u32 stored, u32 decoded (, u32 checksum)
 *
 * All frames but the last decode to the same size, none to more than 16 MiB. One decoded frame is
 * in memory at a time.
 */
#include "base/bytes.h"
#include "base/pool.h"
#include "codec/codec_ops.h"

#include <pthread.h>
#include <zstd.h>

#define FOOTER     9u /* frames, descriptor, magic */
#define HEADER     8u /* skippable magic, length */
#define HEAD_MAGIC 0x184D2A5Eu
#define FOOT_MAGIC 0x8F92EAB1u
#define MAX_FRAME  (16u << 20)
#define CHUNK      (1u << 20) /* decoded bytes of a frame that the encoder writes */
#define LEVEL      3

struct decode {
    uint64_t frames, table; /* count; stored offset of the first entry */
    size_t entry;           /* bytes of an entry */
    uint64_t frame_decoded; /* decoded bytes of every frame but the last */
    uint64_t index;         /* the frame in `plain`; UINT64_MAX: none */
    uint64_t *starts;       /* stored offset of each frame, and the end */
    uint8_t *plain, *stored;
    size_t plain_n, plain_size, stored_size;
    ZSTD_DCtx *ctx;
};

static tnf_status bad_table(tnf_decoder *d, uint64_t at, const char *what, tnf_error *e)
{
    (void)d;
    return tnf_fail(e, TNF_EFORMAT, at, "zstd-seekable: %s", what);
}

/* Reads the end of the table. Memory is only allocated after its claims were checked. */
static tnf_status read_footer(tnf_decoder *d, struct decode *s, tnf_error *e)
{
    uint8_t foot[FOOTER], head[HEADER];
    uint64_t stored = d->from.stored, size;
    if (stored < HEADER + FOOTER)
        return bad_table(d, stored, "too short for a table of frames", e);
    TNF_TRY(d->from.read(d->from.ctx, stored - FOOTER, foot, FOOTER, e));
    if (tnf_le32(foot + 5) != FOOT_MAGIC)
        return bad_table(d, stored - 4, "no table of frames at the end", e);
    if (foot[4] & 0x7f)
        return bad_table(d, stored - 5, "a table of an unknown kind", e);
    s->frames = tnf_le32(foot);
    s->entry = foot[4] & 0x80 ? 12 : 8;
    size = s->frames * s->entry + FOOTER;
    if (size > stored - HEADER)
        return bad_table(d, stored - FOOTER, "the table is larger than the data", e);
    TNF_TRY(d->from.read(d->from.ctx, stored - size - HEADER, head, HEADER, e));
    if (tnf_le32(head) != HEAD_MAGIC || tnf_le32(head + 4) != size)
        return bad_table(d, stored - size - HEADER,
                         "the table does not begin at the expected place", e);
    s->table = stored - size;
    return TNF_OK;
}

static tnf_status check_entry(tnf_decoder *d, struct decode *s, uint64_t i, uint32_t decoded,
                              uint64_t *total, tnf_error *e)
{
    uint64_t at = s->table + i * s->entry + 4;
    if (decoded > MAX_FRAME)
        return bad_table(d, at, "a frame of more than 16 MiB", e);
    if (i == 0)
        s->frame_decoded = decoded;
    bool last = i + 1 == s->frames;
    if (last ? decoded > s->frame_decoded : decoded != s->frame_decoded)
        return bad_table(d, at, "frames of unequal size", e);
    *total += decoded;
    return TNF_OK;
}

static tnf_status read_table(tnf_decoder *d, struct decode *s, tnf_error *e)
{
    uint8_t block[512 * 12]; /* entries at a time */
    uint64_t total = 0, at = 0, per = sizeof block / s->entry;
    s->starts = tnf_alloc(&d->alloc, (size_t)(s->frames + 1) * sizeof *s->starts);
    if (!s->starts)
        return tnf_no_memory("zstd", e);
    for (uint64_t i = 0; i < s->frames; i++) {
        if (i % per == 0) {
            uint64_t n = s->frames - i < per ? s->frames - i : per;
            TNF_TRY(d->from.read(d->from.ctx, s->table + i * s->entry, block,
                                 (size_t)(n * s->entry), e));
        }
        const uint8_t *entry = block + i % per * s->entry;
        TNF_TRY(check_entry(d, s, i, tnf_le32(entry + 4), &total, e));
        s->starts[i] = at;
        at += tnf_le32(entry);
    }
    s->starts[s->frames] = at;
    if (at != s->table - HEADER)
        return bad_table(d, s->table, "the frames do not fill the data before the table", e);
    if (total != d->from.decoded)
        return bad_table(d, s->table, "the frames decode to another size than declared", e);
    return TNF_OK;
}

static tnf_status decode_open(tnf_decoder *d, tnf_error *e)
{
    struct decode *s = tnf_alloc0(&d->alloc, sizeof *s);
    d->state = s;
    if (!s)
        return tnf_no_memory("zstd", e);
    s->index = UINT64_MAX;
    TNF_TRY(read_footer(d, s, e));
    TNF_TRY(read_table(d, s, e));
    s->ctx = ZSTD_createDCtx();
    s->plain_size = (size_t)s->frame_decoded;
    s->plain = tnf_alloc(&d->alloc, s->plain_size);
    return s->ctx && s->plain ? TNF_OK : tnf_no_memory("zstd", e);
}

static void decode_close(tnf_decoder *d)
{
    struct decode *s = d->state;
    if (!s)
        return;
    ZSTD_freeDCtx(s->ctx);
    tnf_free(&d->alloc, s->starts, (size_t)(s->frames + 1) * sizeof *s->starts);
    tnf_free(&d->alloc, s->plain, s->plain_size);
    tnf_free(&d->alloc, s->stored, s->stored_size);
    tnf_free(&d->alloc, s, sizeof *s);
}

/* The stored size of a frame is checked against the maximum that zstd could need for it. */
static tnf_status load_frame(tnf_decoder *d, struct decode *s, uint64_t i, tnf_error *e)
{
    if (i == s->index)
        return TNF_OK;
    uint64_t n = s->starts[i + 1] - s->starts[i];
    uint64_t last = d->from.decoded - (s->frames - 1) * s->frame_decoded;
    uint64_t want = i + 1 == s->frames ? last : s->frame_decoded;
    if (n > ZSTD_compressBound((size_t)want) + 1024)
        return bad_table(d, s->starts[i], "a frame larger than any that zstd writes", e);
    if (n > s->stored_size) {
        uint8_t *p = tnf_realloc(&d->alloc, s->stored, s->stored_size, (size_t)n);
        if (!p)
            return tnf_no_memory("zstd", e);
        s->stored = p;
        s->stored_size = (size_t)n;
    }
    s->index = UINT64_MAX;
    TNF_TRY(d->from.read(d->from.ctx, s->starts[i], s->stored, (size_t)n, e));
    size_t got = ZSTD_decompressDCtx(s->ctx, s->plain, (size_t)want, s->stored, (size_t)n);
    if (ZSTD_isError(got))
        return tnf_fail(e, TNF_EFORMAT, s->starts[i], "zstd: %s", ZSTD_getErrorName(got));
    if (got != want)
        return bad_table(d, s->starts[i], "a frame decodes to another size than the table says", e);
    s->plain_n = got;
    s->index = i;
    return TNF_OK;
}

static tnf_status decode_seek(tnf_decoder *d, uint64_t offset, tnf_error *e)
{
    (void)e;
    d->position = offset; /* decode_seekable() finds the frame */
    return TNF_OK;
}

static tnf_status decode_seekable(tnf_decoder *d, void *dst, size_t n, tnf_error *e)
{
    struct decode *s = d->state;
    uint64_t at = d->position;
    uint8_t *to = dst;
    while (n > 0) {
        uint64_t i = s->frame_decoded ? at / s->frame_decoded : s->frames;
        if (i >= s->frames)
            return tnf_fail(e, TNF_ETRUNCATED, d->from.stored, "zstd-seekable: the data end early");
        TNF_TRY(load_frame(d, s, i, e));
        size_t skip = (size_t)(at - i * s->frame_decoded);
        size_t here = s->plain_n - skip < n ? s->plain_n - skip : n;
        if (here == 0)
            return tnf_fail(e, TNF_ETRUNCATED, d->from.stored, "zstd-seekable: the data end early");
        memcpy(to, s->plain + skip, here);
        to += here;
        at += here;
        n -= here;
    }
    return TNF_OK;
}

static tnf_status decode_end(tnf_decoder *d, tnf_error *e)
{
    (void)d, (void)e;
    return TNF_OK; /* the table was checked completely when it was opened */
}

/* --------------------------------------------------------------- encoding */

/* Frames are independent. The caller fills lanes of a ring and writes them in order; workers
 * compress them meanwhile:
 *
 *   lane     5     6     7    8
 *          done  done  taken  being filled      written = 5, taken = 8, filled = 8
 *
 * Lanes are allocated and workers started when they are first needed, so small data needs one lane
 * and no worker. If the lane that is written next was not taken, the caller compresses it. */
#define MOST_WORKERS 8u
#define MOST_LANES   (MOST_WORKERS + 2)
#define HIGH_LEVEL   13 /* from here on a context takes up to 20 MB */
#define HIGH_WORKERS 4u

struct lane {
    uint8_t *plain, *stored;
    size_t n, stored_n;
    bool done; /* compressed; the encoder's lock guards it while a worker has the lane */
    tnf_status status;
    tnf_error error;
};

struct worker {
    pthread_t thread;
    ZSTD_CCtx *ctx;
    struct encode *of;
};

struct encode {
    struct lane lanes[MOST_LANES]; /* lane i is at i % ring */
    struct worker workers[MOST_WORKERS];
    ZSTD_CCtx *ctx; /* of the caller */
    unsigned ring, most, started;
    size_t bound;
    uint64_t written;
    pthread_mutex_t lock;
    pthread_cond_t full; /* wakes workers */
    pthread_cond_t done; /* wakes the caller */
    uint64_t filled, taken;
    bool stop;
    uint8_t *table; /* the entries of the table */
    size_t frames, room;
};

static tnf_status make_context(ZSTD_CCtx **out, int level, tnf_error *e)
{
    *out = ZSTD_createCCtx();
    if (!*out)
        return tnf_no_memory("zstd", e);
    size_t wrong = ZSTD_CCtx_setParameter(*out, ZSTD_c_compressionLevel, level ? level : LEVEL);
    if (ZSTD_isError(wrong))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "zstd level %d: %s", level,
                        ZSTD_getErrorName(wrong));
    (void)ZSTD_CCtx_setParameter(*out, ZSTD_c_checksumFlag, 1);
    (void)ZSTD_CCtx_setParameter(*out, ZSTD_c_contentSizeFlag, 0);
    return TNF_OK;
}

static void compress_lane(const struct encode *s, struct lane *lane, ZSTD_CCtx *ctx)
{
    lane->status = TNF_OK;
    lane->stored_n = ZSTD_compress2(ctx, lane->stored, s->bound, lane->plain, lane->n);
    if (ZSTD_isError(lane->stored_n))
        lane->status = tnf_fail(&lane->error, TNF_ENOMEM, TNF_NO_OFFSET, "zstd: %s",
                                ZSTD_getErrorName(lane->stored_n));
}

static void *run_worker(void *ctx)
{
    struct worker *w = ctx;
    struct encode *s = w->of;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->stop && s->taken == s->filled)
            pthread_cond_wait(&s->full, &s->lock);
        if (s->stop)
            break;
        struct lane *lane = &s->lanes[s->taken++ % s->ring];
        pthread_mutex_unlock(&s->lock);
        compress_lane(s, lane, w->ctx);
        pthread_mutex_lock(&s->lock);
        lane->done = true;
        pthread_cond_signal(&s->done);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* If no further worker can be started, the others and the caller do its work. */
static void start_worker(tnf_encoder *x)
{
    struct encode *s = x->state;
    struct worker *w = &s->workers[s->started];
    w->of = s;
    if (make_context(&w->ctx, x->level, NULL) == TNF_OK &&
        tnf_thread_start(&w->thread, run_worker, w))
        s->started++;
    else
        s->most = s->started;
}

static tnf_status encode_open(tnf_encoder *x, tnf_error *e)
{
    struct encode *s = tnf_alloc0(&x->alloc, sizeof *s);
    x->state = s;
    if (!s)
        return tnf_no_memory("zstd", e);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->full, NULL);
    pthread_cond_init(&s->done, NULL);
    unsigned threads = tnf_pool_threads(0);
    unsigned most = x->level < HIGH_LEVEL ? MOST_WORKERS : HIGH_WORKERS;
    s->most = threads < 2 ? 0 : threads < most ? threads : most;
    s->ring = s->most ? s->most + 2 : 1;
    s->bound = ZSTD_compressBound(CHUNK);
    return make_context(&s->ctx, x->level, e);
}

static void stop_workers(struct encode *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->full);
    pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->started; i++)
        pthread_join(s->workers[i].thread, NULL);
    for (unsigned i = 0; i < MOST_WORKERS; i++)
        ZSTD_freeCCtx(s->workers[i].ctx);
}

static void encode_close(tnf_encoder *x)
{
    struct encode *s = x->state;
    if (!s)
        return;
    stop_workers(s);
    for (unsigned i = 0; i < MOST_LANES; i++) {
        tnf_free(&x->alloc, s->lanes[i].plain, CHUNK);
        tnf_free(&x->alloc, s->lanes[i].stored, s->bound);
    }
    ZSTD_freeCCtx(s->ctx);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->full);
    pthread_cond_destroy(&s->done);
    tnf_free(&x->alloc, s->table, s->room * 8);
    tnf_free(&x->alloc, s, sizeof *s);
}

static tnf_status add_entry(tnf_encoder *x, const struct lane *lane, tnf_error *e)
{
    struct encode *s = x->state;
    if (s->frames >= (UINT32_MAX - FOOTER) / 8)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "too many frames for one table");
    uint8_t *p = tnf_grow(&x->alloc, s->table, s->frames, &s->room, 8, 64);
    if (!p)
        return tnf_no_memory("zstd", e);
    s->table = p;
    tnf_put_le32(s->table + 8 * s->frames, (uint32_t)lane->stored_n);
    tnf_put_le32(s->table + 8 * s->frames + 4, (uint32_t)lane->n);
    s->frames++;
    return TNF_OK;
}

/* Waits until the next lane to be written is compressed, or compresses it. */
static struct lane *finish_lane(struct encode *s)
{
    struct lane *lane = &s->lanes[s->written % s->ring];
    pthread_mutex_lock(&s->lock);
    bool mine = s->taken == s->written;
    s->taken += mine;
    while (!mine && !lane->done)
        pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (mine)
        compress_lane(s, lane, s->ctx);
    lane->done = true; /* no worker looks at it again before it is passed on again */
    return lane;
}

static tnf_status write_lane(tnf_encoder *x, tnf_error *e)
{
    struct encode *s = x->state;
    struct lane *lane = finish_lane(s);
    if (lane->status != TNF_OK && e)
        *e = lane->error;
    TNF_TRY(lane->status);
    TNF_TRY(add_entry(x, lane, e));
    TNF_TRY(x->to.write(x->to.ctx, lane->stored, lane->stored_n, e));
    lane->n = 0;
    lane->done = false;
    s->written++;
    return TNF_OK;
}

/* Passes the lane that was filled to the workers, if `more` data may follow also to a new one. */
static void pass_lane(tnf_encoder *x, bool more)
{
    struct encode *s = x->state;
    pthread_mutex_lock(&s->lock);
    s->filled++;
    pthread_cond_signal(&s->full);
    pthread_mutex_unlock(&s->lock);
    if (more && s->started < s->most && s->filled - s->written > s->started)
        start_worker(x);
}

/* The lane that is being filled; the ring has room for it. */
static tnf_status open_lane(struct lane **out, tnf_encoder *x, tnf_error *e)
{
    struct encode *s = x->state;
    if (s->filled - s->written == s->ring)
        TNF_TRY(write_lane(x, e));
    struct lane *lane = *out = &s->lanes[s->filled % s->ring];
    lane->plain = lane->plain ? lane->plain : tnf_alloc(&x->alloc, CHUNK);
    lane->stored = lane->stored ? lane->stored : tnf_alloc(&x->alloc, s->bound);
    return lane->plain && lane->stored ? TNF_OK : tnf_no_memory("zstd", e);
}

static tnf_status encode_seekable(tnf_encoder *x, const void *bytes, size_t n, tnf_error *e)
{
    for (const uint8_t *p = bytes; n > 0;) {
        struct lane *lane;
        TNF_TRY(open_lane(&lane, x, e));
        size_t here = CHUNK - lane->n < n ? CHUNK - lane->n : n;
        memcpy(lane->plain + lane->n, p, here);
        lane->n += here;
        p += here;
        n -= here;
        if (lane->n == CHUNK)
            pass_lane(x, true);
    }
    return TNF_OK;
}

static tnf_status encode_end(tnf_encoder *x, tnf_error *e)
{
    struct encode *s = x->state;
    uint8_t head[HEADER], foot[FOOTER];
    if (s->filled - s->written < s->ring && s->lanes[s->filled % s->ring].n > 0)
        pass_lane(x, false);
    while (s->written < s->filled)
        TNF_TRY(write_lane(x, e));
    tnf_put_le32(head, HEAD_MAGIC);
    tnf_put_le32(head + 4, (uint32_t)(8 * s->frames + FOOTER));
    tnf_put_le32(foot, (uint32_t)s->frames);
    foot[4] = 0;
    tnf_put_le32(foot + 5, FOOT_MAGIC);
    TNF_TRY(x->to.write(x->to.ctx, head, HEADER, e));
    if (s->frames)
        TNF_TRY(x->to.write(x->to.ctx, s->table, 8 * s->frames, e));
    return x->to.write(x->to.ctx, foot, FOOTER, e);
}

const tnf_codec_ops tnf_codec_zstd_seekable = {
    .id = "zstd-seekable",
    .decode_open = decode_open,
    .decode_seek = decode_seek,
    .decode = decode_seekable,
    .decode_end = decode_end,
    .decode_close = decode_close,
    .encode_open = encode_open,
    .encode = encode_seekable,
    .encode_end = encode_end,
    .encode_close = encode_close,
};
