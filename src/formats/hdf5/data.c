/* SPDX-License-Identifier: MIT */
/* Bytes of a dataset in chunks, or of a dataset that was never written.
 *
 *   requested   ░░░░██████████████░░░      a run of elements, row by row
 *   box         the chunks that it can touch: axes before the first one on which its ends differ
 *               are fixed, those after it are complete
 *
 * A large range: each chunk is decoded once, by several threads, and its rows are copied out. Small
 * ranges: decoded chunks are cached for the next call, up to a limit.
 */
#include "base/alloc.h"
#include "base/pool.h"
#include "base/rising.h"
#include "formats/hdf5/h5.h"

#include <stdatomic.h>
#include <string.h>

#define KEPT_BYTES  ((uint64_t)128 << 20)
#define WORK_BYTES  ((uint64_t)256 << 20) /* for decoding, in all threads together */
#define AT_ONCE     ((uint64_t)2 << 20)   /* from this size on several threads are used */
#define KEPT_CHUNKS 4096u
#define MORE        (4u * H5_FILTERS) /* room for checksums after a chunk */
#define SHRINKS     40000u            /* no filter compresses more than this; zstd comes closest */

typedef struct kept_chunk {
    uint64_t number, used;
    uint8_t *bytes;
    size_t size;
} kept_chunk;

/* The cache of a reader between two calls. */
typedef struct kept {
    kept_chunk *chunks;
    size_t n;
    uint64_t clock, each;
    uint8_t *stored, *work; /* for decoding */
    size_t stored_n, work_n;
} kept;

_Static_assert(sizeof(kept) <= H5_KEEPS, "the cache is larger than its room");

typedef struct box {
    uint64_t from[H5_RANK], to[H5_RANK]; /* elements */
    uint64_t first[H5_RANK], n[H5_RANK]; /* chunks */
    uint64_t chunks;
} box;

/* A requested range of bytes. */
typedef struct want {
    const tnf_reader *r;
    const h5_data *d;
    uint64_t from, to;
    uint8_t *dst;
    box b;
    atomic_uint_fast64_t next;
} want;

/* ------------------------------------------------------------------- boxes */

static void find_box(box *b, const h5_data *d, uint64_t first, uint64_t last)
{
    bool same = true;
    uint64_t at[H5_RANK], end[H5_RANK];
    for (uint32_t i = d->rank; i-- > 0;) {
        at[i] = first % d->shape[i];
        end[i] = last % d->shape[i];
        first /= d->shape[i];
        last /= d->shape[i];
    }
    b->chunks = 1;
    for (uint32_t i = 0; i < d->rank; i++) {
        b->from[i] = same ? at[i] : 0;
        b->to[i] = same ? end[i] + 1 : d->shape[i];
        same = same && at[i] == end[i];
        b->first[i] = b->from[i] / d->chunk[i];
        b->n[i] = (b->to[i] - 1) / d->chunk[i] + 1 - b->first[i];
        b->chunks *= b->n[i];
    }
}

/* The i-th chunk of a box: its place in the grid, and its number. */
static uint64_t place_of(uint64_t *place, const h5_data *d, const box *b, uint64_t i)
{
    uint64_t number = 0;
    for (uint32_t k = d->rank; k-- > 0;) {
        place[k] = b->first[k] + i % b->n[k];
        i /= b->n[k];
    }
    for (uint32_t k = 0; k < d->rank; k++)
        number = number * d->grid[k] + place[k];
    return number;
}

static const h5_chunk *find_chunk(const h5_data *d, uint64_t number)
{
    if (d->nchunks == 0)
        return NULL;
    const h5_chunk *c = d->chunks +
                        tnf_rising_find(&d->chunks->number, sizeof *d->chunks, d->nchunks, number);
    return c->number == number ? c : NULL;
}

/* ----------------------------------------------------------------- one chunk */

static void fill_bytes(const h5_data *d, uint64_t offset, uint8_t *dst, size_t n)
{
    if (!d->fill) {
        memset(dst, 0, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        dst[i] = d->fill[(offset + i) % d->width];
}

/* Does the chunk extend beyond the shape? */
static bool at_edge(const h5_data *d, const uint64_t *place)
{
    for (uint32_t i = 0; i < d->rank; i++)
        if (d->shape[i] / d->chunk[i] <= place[i])
            return true;
    return false;
}

static bool make_room(uint8_t **p, size_t *have, uint64_t n)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (*have >= n)
        return true;
    tnf_free(&a, *p, *have);
    *p = tnf_alloc(&a, (size_t)n);
    *have = *p ? (size_t)n : 0;
    return *p != NULL;
}

/* Decodes a chunk into k->work. */
static tnf_status load_chunk(const tnf_reader *r, const h5_data *d, const h5_chunk *c,
                             const uint64_t *place, kept *k, tnf_error *e)
{
    uint64_t all = d->chunk_bytes + MORE, room = c && c->stored > all ? c->stored : all;
    if (c && c->stored < d->chunk_bytes / SHRINKS)
        return tnf_fail(e, TNF_EFORMAT, c->at, "a chunk of %llu bytes cannot decode to %llu",
                        (unsigned long long)c->stored, (unsigned long long)d->chunk_bytes);
    if (!make_room(&k->work, &k->work_n, all) ||
        (c && d->nfilters && !make_room(&k->stored, &k->stored_n, room)))
        return tnf_no_memory("a chunk", e);
    if (!c) {
        fill_bytes(d, 0, k->work, (size_t)d->chunk_bytes);
        return TNF_OK;
    }
    if (d->nfilters == 0) {
        if (c->stored < d->chunk_bytes)
            return tnf_fail(e, TNF_EFORMAT, c->at, "a chunk has %llu bytes instead of %llu",
                            (unsigned long long)c->stored, (unsigned long long)d->chunk_bytes);
        TNF_TRY(tnf_source_read(r->source, c->at, k->work, (size_t)d->chunk_bytes, e));
    } else {
        bool plain = d->whole_edges && at_edge(d, place);
        TNF_TRY(tnf_source_read(r->source, c->at, k->stored, (size_t)c->stored, e));
        TNF_TRY(tnf_h5_unfilter(d, c, plain, k->stored, k->work, e));
    }
    if (d->swap)
        tnf_reverse(k->work, d->chunk_bytes, d->swap);
    return TNF_OK;
}

/* Copies the requested elements of a chunk to their places, in runs that are contiguous in both. */
static void scatter_chunk(const want *w, const uint64_t *place, const uint8_t *bytes)
{
    const h5_data *d = w->d;
    uint64_t low[H5_RANK], high[H5_RANK], at[H5_RANK];
    if (d->rank == 0 || d->rank > H5_RANK) /* chunked datasets have dimensions */
        return;
    uint32_t last = d->rank - 1;
    for (uint32_t i = 0; i < d->rank; i++) {
        uint64_t start = place[i] * d->chunk[i], end = start + d->chunk[i];
        low[i] = start > w->b.from[i] ? start : w->b.from[i];
        high[i] = end < w->b.to[i] ? end : w->b.to[i];
        at[i] = low[i];
    }
    while (true) {
        uint64_t in = 0, out = 0;
        for (uint32_t i = 0; i < d->rank; i++) {
            in = in * d->chunk[i] + (at[i] - place[i] * d->chunk[i]);
            out = out * d->shape[i] + at[i];
        }
        uint64_t from = out * d->width, to = from + (high[last] - low[last]) * d->width;
        uint64_t begin = from > w->from ? from : w->from, end = to < w->to ? to : w->to;
        if (begin < end)
            memcpy(w->dst + (begin - w->from), bytes + in * d->width + (begin - from),
                   (size_t)(end - begin));
        uint32_t i = last;
        while (i-- > 0) {
            if (++at[i] < high[i])
                break;
            at[i] = low[i];
        }
        if (i == UINT32_MAX)
            return;
    }
}

/* ------------------------------------------------------------ large ranges */

static tnf_status take_chunks(void *ctx, size_t thread, tnf_error *e)
{
    want *w = ctx;
    kept own = { 0 };
    tnf_status status = TNF_OK;
    (void)thread;
    for (uint64_t i; status == TNF_OK && (i = atomic_fetch_add(&w->next, 1)) < w->b.chunks;) {
        uint64_t place[H5_RANK];
        uint64_t number = place_of(place, w->d, &w->b, i);
        status = load_chunk(w->r, w->d, find_chunk(w->d, number), place, &own, e);
        if (status == TNF_OK)
            scatter_chunk(w, place, own.work);
    }
    tnf_h5_forget(&own);
    return status;
}

static tnf_status read_at_once(want *w, tnf_error *e)
{
    uint64_t most = WORK_BYTES / (w->d->chunk_bytes + 1);
    unsigned threads = tnf_pool_threads(0);
    threads = w->to - w->from < AT_ONCE ? 1 : threads;
    threads = most < threads ? (unsigned)most : threads;
    threads = w->b.chunks < threads ? (unsigned)w->b.chunks : threads;
    threads += threads == 0;
    return tnf_pool_run(threads, threads, take_chunks, w, e);
}

/* ----------------------------------------------------------- small ranges */

static const uint8_t *find_kept(kept *k, uint64_t number)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->chunks[i].number == number) {
            k->chunks[i].used = ++k->clock;
            return k->chunks[i].bytes;
        }
    return NULL;
}

/* Moves k->work into the cache. The memory of the oldest chunk becomes the next k->work. */
static tnf_status keep_chunk(const h5_data *d, kept *k, uint64_t number, const uint8_t **out,
                             tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    uint64_t most = KEPT_BYTES / (d->chunk_bytes + MORE);
    most = most < 1 ? 1 : most > KEPT_CHUNKS ? KEPT_CHUNKS : most;
    most = most > d->nchunks + 1 ? d->nchunks + 1 : most;
    if (!k->chunks) {
        k->chunks = tnf_alloc0(&a, (size_t)most * sizeof *k->chunks);
        k->each = most;
        if (!k->chunks)
            return tnf_no_memory("chunks", e);
    }
    kept_chunk *to = &k->chunks[0];
    if (k->n < most)
        to = &k->chunks[k->n++];
    else
        for (size_t i = 1; i < k->n; i++)
            to = k->chunks[i].used < to->used ? &k->chunks[i] : to;
    kept_chunk old = *to;
    *to = (kept_chunk) { number, ++k->clock, k->work, k->work_n };
    k->work = old.bytes;
    k->work_n = old.size;
    *out = to->bytes;
    return TNF_OK;
}

static tnf_status read_on(want *w, kept *k, tnf_error *e)
{
    for (uint64_t i = 0; i < w->b.chunks; i++) {
        uint64_t place[H5_RANK], number = place_of(place, w->d, &w->b, i);
        const uint8_t *bytes = find_kept(k, number);
        if (!bytes) {
            TNF_TRY(load_chunk(w->r, w->d, find_chunk(w->d, number), place, k, e));
            TNF_TRY(keep_chunk(w->d, k, number, &bytes, e));
        }
        scatter_chunk(w, place, bytes);
    }
    return TNF_OK;
}

void tnf_h5_forget(void *p)
{
    kept *k = p;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    for (size_t i = 0; i < k->n; i++)
        tnf_free(&a, k->chunks[i].bytes, k->chunks[i].size);
    if (k->chunks)
        tnf_free(&a, k->chunks, (size_t)k->each * sizeof *k->chunks);
    tnf_free(&a, k->stored, k->stored_n);
    tnf_free(&a, k->work, k->work_n);
    *k = (kept) { 0 };
}

/* --------------------------------------------------------------------- all */

static tnf_status read_data(const tnf_reader *r, const h5_data *d, kept *k, uint64_t offset,
                            void *dst, size_t n, tnf_error *e)
{
    if (n == 0)
        return TNF_OK;
    if (d->form == H5_FILLED) {
        fill_bytes(d, offset, dst, n);
        return TNF_OK;
    }
    if (d->form == H5_PLACED) {
        TNF_TRY(tnf_source_read(r->source, d->at + offset, dst, n, e));
        if (d->swap && offset % d->swap == 0)
            tnf_reverse(dst, n, d->swap);
        return TNF_OK;
    }
    want w = { .r = r, .d = d, .from = offset, .to = offset + n, .dst = dst };
    find_box(&w.b, d, offset / d->width, (offset + n - 1) / d->width);
    uint64_t touched;
    bool much = !tnf_ckd_mul(&touched, w.b.chunks, d->chunk_bytes) || touched / 2 <= n;
    return !k || (much && w.b.chunks > 2) ? read_at_once(&w, e) : read_on(&w, k, e);
}

tnf_status tnf_h5_raw(const tnf_reader *r, const h5_data *d, uint64_t offset, void *dst, size_t n,
                      tnf_error *e)
{
    return read_data(r, d, NULL, offset, dst, n, e);
}

tnf_status tnf_h5_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    return tnf_h5_decode_on(r, NULL, key, offset, dst, n, e);
}

tnf_status tnf_h5_decode_on(tnf_reader *r, void *k, uint64_t key, uint64_t offset, void *dst,
                            size_t n, tnf_error *e)
{
    const h5_state *s = r->state;
    return read_data(r, s->items[key], k, offset, dst, n, e);
}
