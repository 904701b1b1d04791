/* SPDX-License-Identifier: MIT */
/* The functions of format.h for writers: bytes and parts, plain or encoded, with digests; comparing
 * parts without writing them; the order of tensors. */
#include "base/digest.h"
#include "base/pool.h"
#include "core/read/stream.h"
#include "core/save/save.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define DATA_BLOCK    ((size_t)8 << 20) /* between two reports of progress */
#define COMPARE_BLOCK ((size_t)256 << 10)
#define WORTH_THREAD  ((uint64_t)1 << 20) /* below this a thread costs more than it saves */

/* Reports n more bytes as done; TNF_ECANCELLED if the caller stops the save. */
static tnf_status tell_progress(struct tnf_save *s, uint64_t n, tnf_error *e)
{
    s->done += n;
    if (!s->options.progress || s->options.progress(s->options.ctx, s->done, s->total))
        return TNF_OK;
    return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "cancelled by the caller");
}

/* ------------------------------------------------------------ plain bytes */

tnf_status tnf_put(tnf_writer *w, const void *bytes, size_t n, tnf_error *e)
{
    return tnf_sink_write(w->sink, bytes, n, e);
}

tnf_status tnf_put_buf(tnf_writer *w, tnf_buf *b, const char *what, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(b, what, e));
    TNF_TRY(tnf_put(w, b->p, b->n, e));
    b->n = 0;
    return TNF_OK;
}

tnf_status tnf_put_u8(tnf_writer *w, uint8_t v, tnf_error *e)
{
    return tnf_put(w, &v, 1, e);
}

tnf_status tnf_put_u32(tnf_writer *w, uint32_t v, tnf_error *e)
{
    uint8_t bytes[4];
    tnf_put_le32(bytes, v);
    return tnf_put(w, bytes, sizeof bytes, e);
}

tnf_status tnf_put_u64(tnf_writer *w, uint64_t v, tnf_error *e)
{
    uint8_t bytes[8];
    tnf_put_le64(bytes, v);
    return tnf_put(w, bytes, sizeof bytes, e);
}

tnf_status tnf_put_fill(tnf_writer *w, uint8_t byte, uint64_t n, tnf_error *e)
{
    if (byte == 0)
        return tnf_sink_zeros(w->sink, n, e);
    uint8_t bytes[4096];
    memset(bytes, byte, n < sizeof bytes ? (size_t)n : sizeof bytes);
    for (; n > 0; n -= n < sizeof bytes ? n : sizeof bytes)
        TNF_TRY(tnf_put(w, bytes, n < sizeof bytes ? (size_t)n : sizeof bytes, e));
    return TNF_OK;
}

tnf_status tnf_put_align(tnf_writer *w, uint64_t alignment, tnf_error *e)
{
    uint64_t end;
    if (!tnf_ckd_align(&end, w->sink->written, alignment))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the file would exceed 2^64 bytes");
    return tnf_put_fill(w, 0, end - w->sink->written, e);
}

static tnf_status put_block(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    tnf_writer *w = ctx;
    TNF_TRY(tnf_put(w, bytes, n, e));
    return tell_progress(w->save, n, e);
}

/* If the target has room in memory, several threads write a large part there that can be read at
 * any position; `take` gets its blocks in order. False: nothing was done. */
static bool put_in_room(tnf_writer *w, const tnf_part *part, tnf_take_fn take, void *ctx,
                        tnf_status *status, tnf_error *e)
{
    tnf_room room;
    if (!tnf_part_anywhere(part) || part->flags & TNF_PART_UNREADABLE)
        return false;
    *status = tnf_sink_room(&room, w->sink, part->nbytes, e);
    if (*status != TNF_OK || !room.p)
        return *status != TNF_OK;
    bool done = tnf_scan_room(part, &room, take, ctx, status, e);
    bool filled = done && *status == TNF_OK;
    tnf_status end = tnf_room_end(w->sink, &room, filled, *status == TNF_OK ? e : NULL);
    *status = *status == TNF_OK ? end : *status;
    return done || end != TNF_OK;
}

static tnf_status block_placed(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    (void)bytes;
    return tell_progress(((tnf_writer *)ctx)->save, n, e);
}

/* A part with holes is copied, so that it keeps them. */
static bool has_holes(const tnf_part *part)
{
    return part->payload == TNF_AT && part->origin->source->sparse;
}

/* Writes bytes that need no change; those of a file do not pass through this process. */
static tnf_status put_as_is(tnf_writer *w, const tnf_part *part, tnf_error *e)
{
    tnf_status status;
    if (!has_holes(part) && put_in_room(w, part, block_placed, w, &status, e))
        return status;
    const uint8_t *memory = part->payload == TNF_MEMORY ? part->memory : NULL;
    for (uint64_t at = 0; at < part->nbytes; at += DATA_BLOCK) {
        size_t n = part->nbytes - at < DATA_BLOCK ? (size_t)(part->nbytes - at) : DATA_BLOCK;
        TNF_TRY(memory ? tnf_put(w, memory + at, n, e)
                       : tnf_sink_copy(w->sink, part->origin->source, part->offset + at, n, e));
        TNF_TRY(tell_progress(w->save, n, e));
    }
    return TNF_OK;
}

/* Work on the bytes of a part in another thread, while this one writes them. */
struct concurrent_scan {
    tnf_digester digester; /* algorithm NULL: the bytes are only read, which may check them */
    atomic_bool stop;
    const tnf_part *part;
    tnf_status status;
    tnf_error error;
};

static tnf_status take_concurrent(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct concurrent_scan *b = ctx;
    (void)e;
    if (b->digester.algorithm)
        tnf_digest_update(&b->digester, bytes, n);
    return atomic_load(&b->stop) ? TNF_ECANCELLED : TNF_OK;
}

static void *scan_concurrently(void *ctx)
{
    struct concurrent_scan *b = ctx;
    b->status = tnf_scan(b->part, take_concurrent, b, &b->error);
    return NULL;
}

/* False if no thread could be started: then nothing was done. */
static bool put_and_scan(tnf_writer *w, struct concurrent_scan *b, tnf_status *status, tnf_error *e)
{
    pthread_t thread;
    if (!tnf_thread_start(&thread, scan_concurrently, b))
        return false;
    *status = put_as_is(w, b->part, e);
    atomic_store(&b->stop, *status != TNF_OK);
    pthread_join(thread, NULL);
    if (*status == TNF_OK && b->status != TNF_OK) {
        *status = b->status;
        if (e)
            *e = b->error;
    }
    return true;
}

/* --------------------------------------------- sinks that need only some bytes */

/* Announces the place of the bytes of a part to a sink that needs only some bytes. */
static tnf_status tell_place(tnf_writer *w, const tnf_part *part, bool cuts, bool plain,
                             tnf_error *e)
{
    const tnf_object *o;
    TNF_TRY(tnf_part_owner(&o, w, part, e));
    TNF_TRY(tnf_sink_flush(w->sink, e));
    return w->sink->window->place(w->sink->ctx, o ? o->name : (tnf_str) { NULL, 0 }, part, cuts,
                                  plain && o, e);
}

static void pass_bytes(tnf_writer *w, uint64_t n)
{
    w->sink->written += n;
    w->sink->window->pass(w->sink->ctx, n);
}

/* Writes bytes [from, to) of a part that can be read at any position. */
static tnf_status put_some(tnf_writer *w, const tnf_part *part, uint64_t from, uint64_t to,
                           tnf_error *e)
{
    tnf_stream stream;
    uint8_t *block = tnf_alloc(&w->scratch->alloc, TNF_SCAN_BLOCK);
    if (!block)
        return tnf_no_memory("reading", e);
    tnf_status status = tnf_stream_open(&stream, part, e);
    for (size_t n; from < to && status == TNF_OK; from += n) {
        n = to - from < TNF_SCAN_BLOCK ? (size_t)(to - from) : TNF_SCAN_BLOCK;
        status = tnf_stream_read(&stream, from, block, n, e);
        if (status == TNF_OK)
            status = put_block(w, block, n, e);
    }
    tnf_stream_close(&stream);
    tnf_free(&w->scratch->alloc, block, TNF_SCAN_BLOCK);
    return status == TNF_OK ? tnf_sink_flush(w->sink, e) : status;
}

static tnf_status put_wanted(tnf_writer *w, const tnf_part *part, tnf_error *e)
{
    const tnf_window *v = w->sink->window;
    bool virtual = part->payload == TNF_OPAQUE && tnf_part_anywhere(part);
    bool cuts = virtual || (tnf_part_cuts(part) && !tnf_checks_reads(part));
    TNF_TRY(tell_place(w, part, cuts, true, e));
    uint64_t at = w->sink->written, n = part->nbytes;
    uint64_t from = v->first <= at ? 0 : v->first - at < n ? v->first - at : n;
    uint64_t to = v->end <= at ? 0 : v->end - at < n ? v->end - at : n;
    if (from >= to) {
        pass_bytes(w, n);
        return TNF_OK;
    }
    if (!cuts)
        return tnf_scan_ahead(part, put_block, w, e);
    pass_bytes(w, from);
    TNF_TRY(put_some(w, part, from, to, e));
    pass_bytes(w, n - to);
    return TNF_OK;
}

/* Are the stored bytes those to write? */
static bool is_plain(const tnf_part *part)
{
    return part->payload == TNF_AT && !(part->flags & ~TNF_PART_PAIRS);
}

tnf_status tnf_put_data(tnf_writer *w, const tnf_part *part, tnf_error *e)
{
    if (w->sink->window && part->nbytes > 0)
        return put_wanted(w, part, e);
    bool memory = part->payload == TNF_MEMORY && part->memory;
    bool plain = is_plain(part), check = tnf_checks_reads(part);
    struct concurrent_scan b = { .part = part };
    tnf_status status;
    if (part->nbytes == 0)
        return TNF_OK;
    if (memory || (plain && !check))
        return put_as_is(w, part, e);
    if (plain && part->nbytes >= WORTH_THREAD && tnf_pool_threads(0) > 1 &&
        put_and_scan(w, &b, &status, e))
        return status;
    if (part->payload == TNF_OPAQUE && put_in_room(w, part, block_placed, w, &status, e))
        return status;
    return tnf_scan_ahead(part, put_block, w, e); /* decodes, swaps, checks or fetches the bytes */
}

/* ------------------------------------------------ encoded and digested parts */

/* decoded bytes ──[digest]──> [swap] ──> [encoder] ──[digest]──> sink */
struct put {
    tnf_writer *w;
    const tnf_part *part;
    const tnf_put_how *how;
    tnf_encoder *encoder; /* NULL: raw */
    tnf_digester digester;
    bool placed;      /* raw bytes that are already in the file */
    uint8_t *swapped; /* a block for swapped bytes */
    size_t swapped_size;
};

static tnf_status put_stored(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct put *p = ctx;
    if (p->how->digest && p->how->of_stored)
        tnf_digest_update(&p->digester, bytes, n);
    return p->placed ? TNF_OK : tnf_put(p->w, bytes, n, e);
}

static tnf_status swap_bytes(struct put *p, const void *bytes, size_t n, tnf_error *e)
{
    if (n > p->swapped_size) {
        uint8_t *more = tnf_realloc(&p->w->scratch->alloc, p->swapped, p->swapped_size, n);
        if (!more)
            return tnf_no_memory("writing", e);
        p->swapped = more;
        p->swapped_size = n;
    }
    memcpy(p->swapped, bytes, n);
    tnf_reverse(p->swapped, n, tnf_part_swap(p->part));
    return TNF_OK;
}

static tnf_status take_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct put *p = ctx;
    if (p->how->digest && !p->how->of_stored)
        tnf_digest_update(&p->digester, bytes, n);
    if (p->how->big_endian) {
        TNF_TRY(swap_bytes(p, bytes, n, e));
        bytes = p->swapped;
    }
    TNF_TRY(p->encoder ? tnf_encoder_write(p->encoder, bytes, n, e) : put_stored(p, bytes, n, e));
    return tell_progress(p->w->save, n, e);
}

static tnf_status put_all(struct put *p, tnf_error *e)
{
    tnf_encode_to to = { put_stored, p };
    if (p->how->digest && !tnf_digest_begin(&p->digester, p->how->digest))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "unknown digest %s", p->how->digest);
    if (p->how->codec != TNF_CODEC_RAW)
        TNF_TRY(tnf_encoder_open(&p->encoder, p->how->codec, p->how->level, &to,
                                 &p->w->scratch->alloc, e));
    tnf_status status;
    p->placed = !p->encoder && !p->how->big_endian && p->part->payload == TNF_OPAQUE;
    if (p->placed && put_in_room(p->w, p->part, take_bytes, p, &status, e))
        return status;
    p->placed = false;
    TNF_TRY(tnf_scan_ahead(p->part, take_bytes, p, e));
    return p->encoder ? tnf_encoder_end(p->encoder, e) : TNF_OK;
}

static bool may_digest_concurrently(const tnf_part *part, const tnf_put_how *how)
{
    return how->codec == TNF_CODEC_RAW && !how->big_endian && how->digest &&
           ((part->payload == TNF_MEMORY && part->memory) || is_plain(part)) &&
           part->nbytes >= WORTH_THREAD && tnf_pool_threads(0) > 1;
}

/* Bytes in memory or in a file that need no change are digested in another thread. False if no
 * thread could be started: then nothing was done. */
static bool put_concurrently(tnf_writer *w, const tnf_part *part, const tnf_put_how *how,
                             tnf_put_done *done, tnf_status *status, tnf_error *e)
{
    struct concurrent_scan b = { .part = part };
    if (!tnf_digest_begin(&b.digester, how->digest))
        return false;
    bool started = put_and_scan(w, &b, status, e);
    done->digest_n = started ? tnf_digest_size(how->digest) : 0;
    tnf_digest_end(&b.digester, started ? done->digest : NULL);
    return started;
}

static tnf_status put_digested(tnf_writer *w, const tnf_part *part, const tnf_put_how *how,
                               tnf_put_done *done, tnf_error *e)
{
    tnf_status status;
    if (may_digest_concurrently(part, how) && put_concurrently(w, part, how, done, &status, e))
        return status;
    struct put p = { .w = w, .part = part, .how = how };
    status = put_all(&p, e);
    if (p.digester.algorithm) {
        done->digest_n = tnf_digest_size(how->digest);
        tnf_digest_end(&p.digester, status == TNF_OK ? done->digest : NULL);
    }
    tnf_encoder_close(p.encoder);
    tnf_free(&w->scratch->alloc, p.swapped, p.swapped_size);
    return status;
}

/* Is the requested digest the one that reading would compare, of the same bytes? */
static bool same_digest(const tnf_part *part, const tnf_put_how *how)
{
    bool swaps = how->big_endian || part->flags & TNF_PART_BIG_ENDIAN;
    bool of_written = how->codec == TNF_CODEC_RAW || !how->of_stored;
    return how->digest && of_written && !swaps && tnf_checks_reads(part) &&
           strcmp(how->digest, part->digest->algorithm) == 0;
}

/* Computes the digest once, and compares it here instead of while reading. */
static tnf_status put_checked(tnf_writer *w, const tnf_part *part, const tnf_put_how *how,
                              tnf_put_done *done, tnf_error *e)
{
    tnf_part unchecked = *part;
    unchecked.digest = NULL;
    TNF_TRY(put_digested(w, &unchecked, how, done, e));
    if (memcmp(done->digest, part->digest->bytes, done->digest_n) == 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EDIGEST, part->offset, "the bytes do not match their %s", how->digest);
}

tnf_status tnf_put_part(tnf_writer *w, const tnf_part *part, const tnf_put_how *how,
                        tnf_put_done *done, tnf_error *e)
{
    *done = (tnf_put_done) { .offset = w->sink->written };
    tnf_status status;
    if (w->sink->window && (how->codec != TNF_CODEC_RAW || how->big_endian || how->digest))
        TNF_TRY(tell_place(w, part, false, false, e));
    if (how->codec == TNF_CODEC_RAW && !how->big_endian && !how->digest) {
        status = tnf_put_data(w, part, e);
    } else {
        status = same_digest(part, how) ? put_checked(w, part, how, done, e)
                                        : put_digested(w, part, how, done, e);
    }
    done->stored = w->sink->written - done->offset;
    return status;
}

/* The state while another function writes the bytes of a part. */
struct through {
    struct put put;
    tnf_put_how how;
    tnf_take_fn take;
    void *ctx;
};

static tnf_status pass_on(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct through *t = ctx;
    tnf_status status;
    if (t->how.big_endian) {
        TNF_TRY(swap_bytes(&t->put, bytes, n, e));
        bytes = t->put.swapped;
    }
    TNF_CALL(status, e, t->take, t->ctx, bytes, n);
    return status == TNF_OK ? tell_progress(t->put.w->save, n, e) : status;
}

tnf_status tnf_put_through(tnf_writer *w, const tnf_part *part, bool big_endian, tnf_take_fn take,
                           void *ctx, tnf_error *e)
{
    struct through t = { .put = { .w = w, .part = part }, .take = take, .ctx = ctx };
    if (w->sink && w->sink->window)
        TNF_TRY(tell_place(w, part, false, false, e));
    t.how.big_endian = big_endian;
    tnf_status status = tnf_scan_ahead(part, pass_on, &t, e);
    tnf_free(&w->scratch->alloc, t.put.swapped, t.put.swapped_size);
    return status;
}

/* ------------------------------------------------------ digests and comparing */

static tnf_status take_digest(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    (void)e;
    tnf_digest_update(ctx, bytes, n);
    return TNF_OK;
}

tnf_status tnf_part_digest(const tnf_part *part, const char *algorithm, uint8_t out[32],
                           tnf_error *e)
{
    tnf_digester d;
    if (!tnf_digest_begin(&d, algorithm))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "unknown digest %s", algorithm);
    tnf_status status = tnf_scan(part, take_digest, &d, e);
    tnf_digest_end(&d, status == TNF_OK ? out : NULL);
    return status;
}

struct compare {
    tnf_stream other;
    uint64_t at;
    uint8_t *block;
    bool equal;
};

static tnf_status take_compare(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct compare *c = ctx;
    for (size_t done = 0; done < n && c->equal;) {
        size_t here = n - done < COMPARE_BLOCK ? n - done : COMPARE_BLOCK;
        TNF_TRY(tnf_stream_read(&c->other, c->at, c->block, here, e));
        c->equal = memcmp((const uint8_t *)bytes + done, c->block, here) == 0;
        done += here;
        c->at += here;
    }
    /* The result is known; the rest of the scan is cancelled. */
    return c->equal ? TNF_OK : TNF_ECANCELLED;
}

tnf_status tnf_parts_equal(bool *out, const tnf_part *a, const tnf_part *b, tnf_error *e)
{
    *out = a->nbytes == b->nbytes;
    if (!*out || a->nbytes == 0)
        return TNF_OK;
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    struct compare c = { .equal = true, .block = tnf_alloc(&alloc, COMPARE_BLOCK) };
    tnf_status status = c.block ? tnf_stream_open(&c.other, b, e)
                                : tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory");
    if (status == TNF_OK)
        status = tnf_scan(a, take_compare, &c, e);
    if (c.block)
        tnf_stream_close(&c.other);
    tnf_free(&alloc, c.block, COMPARE_BLOCK);
    *out = c.equal;
    return c.equal ? status : TNF_OK;
}

/* --------------------------------- the form of the original file, and the order */

bool tnf_follows(const tnf_writer *w, size_t option)
{
    return w->like && w->options[option].s == w->like->file->format->write_options[option].fallback;
}

bool tnf_has_places(const tnf_writer *w)
{
    for (size_t i = 0; w->like && i < w->catalog->n; i++)
        for (uint16_t k = 0; k < w->catalog->objects[i].nparts; k++) {
            const tnf_part *p = &w->catalog->objects[i].parts[k];
            if (p->payload > TNF_ENCODED || !p->origin || p->origin->source != w->like->source)
                return false;
        }
    return w->like != NULL;
}

tnf_status tnf_need_places(const tnf_writer *w, tnf_error *e)
{
    return tnf_has_places(w) ? TNF_OK
                             : tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                                        "its tensors would have to be rewritten");
}

uint64_t tnf_alignment(const tnf_writer *w, uint64_t most)
{
    uint64_t bits = most;
    for (size_t i = 0; i < w->catalog->n; i++)
        for (uint16_t k = 0; k < w->catalog->objects[i].nparts; k++)
            bits |= w->catalog->objects[i].parts[k].offset;
    return bits & (~bits + 1); /* the lowest bit that is set in any position */
}

int tnf_compare_places(const tnf_object *a, const tnf_object *b)
{
    uint64_t x = a->nparts ? a->parts->offset : 0, y = b->nparts ? b->parts->offset : 0;
    if (x == y) { /* an empty part takes no space */
        x = a->nparts && a->parts->stored > 0;
        y = b->nparts && b->parts->stored > 0;
    }
    return x < y ? -1 : x > y;
}

tnf_status tnf_put_same(tnf_writer *w, uint64_t upto, tnf_error *e)
{
    uint64_t at = w->sink->written - w->shift; /* position in the old file */
    if (upto < at)
        return tnf_no_room(at - upto, "the bytes before the tensors", e);
    return tnf_sink_copy(w->sink, w->like->source, at, upto - at, e);
}

tnf_status tnf_no_room(uint64_t missing, const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "there is no room for %s: %s missing", what,
                    TNF_BYTES_ARE(missing));
}

int tnf_compare_names(const tnf_object *a, const tnf_object *b)
{
    return tnf_str_compare(a->name, b->name);
}

/* Merge sort: stable, n log n at worst, and its comparison function needs no context. */
static void merge_sort(uint32_t *a, uint32_t *spare, size_t n, const tnf_object *objects,
                       int (*compare)(const tnf_object *a, const tnf_object *b))
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = lo + width < n ? lo + width : n;
            size_t hi = lo + 2 * width < n ? lo + 2 * width : n;
            for (size_t i = lo, j = mid, k = lo; k < hi; k++) {
                bool left = j >= hi || (i < mid && compare(&objects[a[i]], &objects[a[j]]) <= 0);
                spare[k] = left ? a[i++] : a[j++];
            }
        }
        memcpy(a, spare, n * sizeof *a);
    }
}

tnf_status tnf_sorted(tnf_writer *w, const uint32_t **out,
                      int (*compare)(const tnf_object *a, const tnf_object *b), tnf_error *e)
{
    size_t n = w->catalog->n;
    uint32_t *order = tnf_arena_array(w->scratch, n, sizeof *order);
    uint32_t *spare = tnf_arena_array(w->scratch, n, sizeof *spare);
    if (!order || !spare)
        return tnf_arena_fail(w->scratch, "sorting", e);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    merge_sort(order, spare, n, w->catalog->objects, compare ? compare : tnf_compare_names);
    *out = order;
    return TNF_OK;
}
