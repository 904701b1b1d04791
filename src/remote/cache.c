/* SPDX-License-Identifier: MIT */
#include "remote/cache.h"

#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

#define SMALLEST 65536u      /* least bytes of an extent */
#define LARGEST  (32u << 20) /* most bytes of an extent */
#define DIRECT   (1u << 20)  /* reads of at least this size may bypass the cache */
#define PIECE    (8u << 20)  /* most bytes of a request */
#define LEAST    (1u << 20)  /* least bytes of a request that is one of several */
#define SMALL    4096u       /* most bytes of an announced range that is read with others */
#define NEAR     16384u      /* announced ranges with a smaller gap are read together */
#define MOST     16384u      /* most announced ranges at a time */

struct tnf_extent {
    struct tnf_extent *next;
    uint64_t at, used;
    size_t n;
    unsigned readers;
    bool ready;
    uint8_t *bytes;
};

struct tnf_announced {
    uint64_t at, end;
};

static void note_end(tnf_cache *c, uint64_t end, size_t n)
{
    c->latest[c->turn].end = end;
    c->latest[c->turn].n = n;
    c->turn = (c->turn + 1) % TNF_CACHE_LATEST;
}

/* Did a recent read end at this offset? *n is its length. */
static bool find_end(const tnf_cache *c, uint64_t end, size_t *n)
{
    for (unsigned i = 0; i < TNF_CACHE_LATEST; i++) {
        unsigned at = (c->turn + TNF_CACHE_LATEST - 1 - i) % TNF_CACHE_LATEST;
        *n = c->latest[at].n;
        if (c->latest[at].end == end)
            return true;
    }
    *n = 0;
    return false;
}

void tnf_cache_begin(tnf_cache *c, tnf_remote *remote)
{
    *c = (tnf_cache) { .remote = remote };
    note_end(c, remote->nhead, 0);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->loaded, NULL);
}

static void free_extent(const tnf_cache *c, struct tnf_extent *x)
{
    tnf_free(&c->remote->session->alloc, x->bytes, x->n);
    tnf_free(&c->remote->session->alloc, x, sizeof *x);
}

void tnf_cache_end(tnf_cache *c)
{
    for (struct tnf_extent *x = c->first, *next; x; x = next) {
        next = x->next;
        free_extent(c, x);
    }
    tnf_free(&c->remote->session->alloc, c->announced, c->room * sizeof *c->announced);
    pthread_cond_destroy(&c->loaded);
    pthread_mutex_destroy(&c->lock);
}

/* ----------------------------------------------------------- several at once */

struct pieces {
    tnf_remote *remote;
    tnf_budget budget;
    uint64_t offset;
    uint8_t *dst;
    size_t n, piece;
};

static tnf_status get_piece(void *ctx, size_t i, tnf_error *e)
{
    struct pieces *p = ctx;
    size_t at = i * p->piece, left = p->n - at;
    return tnf_remote_get(p->remote, &p->budget, p->offset + at, p->dst + at,
                          left < p->piece ? left : p->piece, e);
}

tnf_status tnf_remote_get_long(tnf_remote *f, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    unsigned most = f->session->how.connections;
    size_t piece = n / most + 1;
    struct pieces p = { .remote = f, .offset = offset, .dst = dst, .n = n };
    piece = piece < LEAST ? LEAST : piece > PIECE ? PIECE : piece;
    p.piece = piece;
    atomic_init(&p.budget.left, TNF_RETRIES);
    size_t count = (n + piece - 1) / piece;
    return tnf_pool_run(count < most ? (unsigned)count : most, count, get_piece, &p, e);
}

/* ------------------------------------------------------------------ extents */

/* Finds the extent that has the byte; *after is the beginning of the next extent. */
static struct tnf_extent *find_extent(const tnf_cache *c, uint64_t offset, uint64_t *after)
{
    *after = c->remote->pin.total;
    for (struct tnf_extent *x = c->first; x; x = x->next) {
        if (offset >= x->at && offset - x->at < x->n)
            return x;
        if (x->at > offset) {
            *after = x->at;
            return NULL;
        }
    }
    return NULL;
}

static void unlink_extent(tnf_cache *c, const struct tnf_extent *x)
{
    struct tnf_extent **p = &c->first;
    while (*p != x)
        p = &(*p)->next;
    *p = x->next;
    c->bytes -= x->n;
}

/* Frees the least recently used extents until the rest fits, except those that are in use. */
static void evict_old(tnf_cache *c)
{
    while (c->bytes > c->remote->session->how.cache_bytes) {
        struct tnf_extent *oldest = NULL;
        for (struct tnf_extent *x = c->first; x; x = x->next)
            if (x->ready && x->readers == 0 && (!oldest || x->used < oldest->used))
                oldest = x;
        if (!oldest)
            return;
        unlink_extent(c, oldest);
        free_extent(c, oldest);
    }
}

/* The rest of an announced long range from this offset on; 0 if the offset is in none. */
static uint64_t stream_left(const tnf_cache *c, uint64_t offset)
{
    for (unsigned i = 0; i < TNF_CACHE_LATEST; i++)
        if (offset >= c->streams[i].at && offset < c->streams[i].end)
            return c->streams[i].end - offset;
    return 0;
}

/* How many bytes to request at once. */
static size_t choose_length(const tnf_cache *c, uint64_t offset, size_t n, uint64_t after)
{
    uint64_t half = c->remote->session->how.cache_bytes / 2;
    size_t most = half < LARGEST ? (size_t)half : LARGEST, before = 0;
    size_t want = find_end(c, offset, &before) && before < most / 4 ? 4 * before
                  : before                                          ? most
                                                                    : 0;
    uint64_t known = stream_left(c, offset);
    want = known > most ? most : known > want ? (size_t)known : want;
    want = want > n ? want : n < most ? n : most;
    want = want < SMALLEST ? SMALLEST : want;
    return after - offset < want ? (size_t)(after - offset) : want;
}

/* A read near the end loads the complete end, since an index at the end is read backwards. */
static uint64_t choose_start(const tnf_cache *c, uint64_t offset)
{
    uint64_t total = c->remote->pin.total, start = c->remote->nhead;
    if (total - offset > SMALLEST)
        return offset;
    if (total > SMALLEST && total - SMALLEST > start)
        start = total - SMALLEST;
    for (const struct tnf_extent *x = c->first; x && x->at < offset; x = x->next)
        start = x->at + x->n > start ? x->at + x->n : start;
    return start < offset ? start : offset;
}

/* Adds an extent, which the caller loads. Returns NULL if there is no memory. */
static struct tnf_extent *add_extent(tnf_cache *c, uint64_t offset, size_t n)
{
    const tnf_allocator *a = &c->remote->session->alloc;
    struct tnf_extent *x = tnf_alloc0(a, sizeof *x), **p = &c->first;
    uint8_t *bytes = x ? tnf_alloc(a, n) : NULL;
    if (!bytes) {
        tnf_free(a, x, sizeof *x);
        return NULL;
    }
    *x = (struct tnf_extent) { .at = offset, .n = n, .bytes = bytes, .readers = 1 };
    while (*p && (*p)->at < offset)
        p = &(*p)->next;
    x->next = *p;
    *p = x;
    c->bytes += n;
    return x;
}

/* Called and left with the lock held. */
static tnf_status load_extent(tnf_cache *c, struct tnf_extent *x, tnf_error *e)
{
    pthread_mutex_unlock(&c->lock);
    tnf_status status = tnf_remote_get_long(c->remote, x->at, x->bytes, x->n, e);
    pthread_mutex_lock(&c->lock);
    x->ready = status == TNF_OK;
    if (status != TNF_OK) { /* threads that wait for the extent try again themselves */
        unlink_extent(c, x);
        free_extent(c, x);
    }
    pthread_cond_broadcast(&c->loaded);
    return status;
}

/* Copies bytes of an extent, as far as it has them, and returns their number. Called and left with
 * the lock held. */
static size_t copy_extent(tnf_cache *c, struct tnf_extent *x, uint64_t offset, uint8_t *dst,
                          size_t n)
{
    size_t skip = (size_t)(offset - x->at), have = x->n - skip;
    n = n < have ? n : have;
    x->used = ++c->clock;
    pthread_mutex_unlock(&c->lock);
    memcpy(dst, x->bytes + skip, n);
    pthread_mutex_lock(&c->lock);
    return n;
}

/* --------------------------------------------------------------- announced */

void tnf_cache_announce(tnf_cache *c, uint64_t offset, uint64_t n)
{
    const tnf_allocator *a = &c->remote->session->alloc;
    size_t one = sizeof *c->announced;
    if (n == 0 || offset + n <= c->remote->nhead)
        return;
    pthread_mutex_lock(&c->lock);
    if (n > SMALL) {
        c->streams[c->stream].at = offset;
        c->streams[c->stream].end = offset + n;
        c->stream = (c->stream + 1) % TNF_CACHE_LATEST;
        pthread_mutex_unlock(&c->lock);
        return;
    }
    if (c->nannounced == c->room && c->room < MOST) {
        struct tnf_announced *more = tnf_grow(a, c->announced, c->nannounced, &c->room, one, 64);
        c->announced = more ? more : c->announced;
    }
    if (c->nannounced < c->room)
        c->announced[c->nannounced++] = (struct tnf_announced) { offset, offset + n };
    pthread_mutex_unlock(&c->lock);
}

static int compare_announced(const void *a, const void *b)
{
    const struct tnf_announced *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Sorts announced ranges and joins neighbours. Returns the new number of ranges. */
static size_t join_announced(struct tnf_announced *all, size_t n)
{
    size_t count = 0;
    qsort(all, n, sizeof *all, compare_announced);
    for (size_t i = 0; i < n; i++) {
        struct tnf_announced *last = count ? &all[count - 1] : NULL;
        if (last && all[i].at <= last->end + NEAR && all[i].end <= last->at + LEAST)
            last->end = all[i].end > last->end ? all[i].end : last->end;
        else if (!last || all[i].at >= last->end)
            all[count++] = all[i];
    }
    return count;
}

struct batch {
    tnf_remote *remote;
    tnf_budget budget;
    struct tnf_extent **extents;
};

/* Errors are ignored: a later read of these bytes reports them. */
static tnf_status load_announced(void *ctx, size_t i, tnf_error *e)
{
    struct batch *b = ctx;
    struct tnf_extent *x = b->extents[i];
    if (tnf_remote_get(b->remote, &b->budget, x->at, x->bytes, x->n, e) != TNF_OK)
        b->extents[i] = NULL;
    return TNF_OK;
}

static struct tnf_extent *extent_for(tnf_cache *c, const struct tnf_announced *a)
{
    uint64_t after;
    if (find_extent(c, a->at, &after) || after < a->end || a->end > c->remote->pin.total)
        return NULL; /* a part of the range is there, or is being loaded */
    return add_extent(c, a->at, (size_t)(a->end - a->at));
}

/* Reads all announced ranges. Called and left with the lock held. */
static void read_announced(tnf_cache *c, struct tnf_extent **all, struct tnf_extent **now)
{
    size_t n = 0, joined = join_announced(c->announced, c->nannounced);
    struct batch b = { .remote = c->remote, .extents = now };
    unsigned most = c->remote->session->how.connections;
    for (size_t i = 0; i < joined; i++) {
        struct tnf_extent *x = extent_for(c, &c->announced[i]);
        if (x)
            all[n++] = x;
    }
    c->nannounced = 0;
    memcpy(now, all, n * sizeof *all);
    atomic_init(&b.budget.left, TNF_RETRIES);
    pthread_mutex_unlock(&c->lock);
    (void)tnf_pool_run(n < most ? (unsigned)n : most, n, load_announced, &b, NULL);
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < n; i++) {
        all[i]->readers--;
        all[i]->ready = now[i] != NULL;
        all[i]->used = ++c->clock;
        if (now[i])
            continue;
        unlink_extent(c, all[i]);
        free_extent(c, all[i]);
    }
    pthread_cond_broadcast(&c->loaded);
}

/* If the offset is in an announced range, reads all announced ranges and returns true. Called and
 * left with the lock held. */
static bool take_announced(tnf_cache *c, uint64_t offset)
{
    bool one = false;
    for (size_t i = 0; i < c->nannounced && !one; i++)
        one = offset >= c->announced[i].at && offset < c->announced[i].end;
    if (!one)
        return false;
    const tnf_allocator *a = &c->remote->session->alloc;
    size_t size = 2 * c->nannounced * sizeof(struct tnf_extent *);
    struct tnf_extent **room = tnf_alloc(a, size);
    if (!room)
        c->nannounced = 0;
    else
        read_announced(c, room, room + c->nannounced);
    tnf_free(a, room, size);
    return true;
}

/* Reads some of the bytes, at least one. Called and left with the lock held. */
static tnf_status read_some(tnf_cache *c, uint64_t offset, uint8_t *dst, size_t n, size_t *got,
                            tnf_error *e)
{
    uint64_t after;
    struct tnf_extent *x;
    for (;;) {
        x = find_extent(c, offset, &after);
        if (x && !x->ready)
            pthread_cond_wait(&c->loaded, &c->lock);
        else if (x || !take_announced(c, offset))
            break;
    }
    if (x) {
        x->readers++;
    } else {
        uint64_t start = choose_start(c, offset);
        size_t length = choose_length(c, offset, n, after);
        x = add_extent(c, start, length + (size_t)(offset - start));
        if (!x)
            return tnf_no_memory("reading ahead", e);
        note_end(c, x->at + x->n, x->n);
        TNF_TRY(load_extent(c, x, e));
    }
    *got = copy_extent(c, x, offset, dst, n);
    x->readers--;
    evict_old(c);
    return TNF_OK;
}

static size_t copy_head(const tnf_cache *c, uint64_t offset, uint8_t *dst, size_t n)
{
    const tnf_remote *f = c->remote;
    if (offset >= f->nhead)
        return 0;
    size_t have = f->nhead - (size_t)offset;
    n = n < have ? n : have;
    memcpy(dst, f->head + offset, n);
    return n;
}

bool tnf_cache_peek(tnf_cache *c, uint64_t offset, void *dst, size_t n)
{
    uint64_t after;
    if (copy_head(c, offset, dst, n) == n)
        return true;
    pthread_mutex_lock(&c->lock);
    struct tnf_extent *x = find_extent(c, offset, &after);
    bool all = x && x->ready && n <= x->n - (size_t)(offset - x->at);
    if (all) {
        x->readers++;
        (void)copy_extent(c, x, offset, dst, n);
        x->readers--;
    }
    pthread_mutex_unlock(&c->lock);
    return all;
}

/* Does the read bypass the cache? A long read does, unless it continues an earlier one. */
static bool goes_direct(tnf_cache *c, uint64_t offset, size_t n)
{
    uint64_t after;
    size_t before;
    bool direct = n >= PIECE ||
                  (n >= DIRECT && !find_extent(c, offset, &after) && !find_end(c, offset, &before));
    if (direct)
        note_end(c, offset + n, n);
    return direct;
}

tnf_status tnf_cache_read(tnf_cache *c, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    uint8_t *to = dst;
    size_t got = copy_head(c, offset, to, n);
    tnf_status status = TNF_OK;
    pthread_mutex_lock(&c->lock);
    bool direct = goes_direct(c, offset + got, n - got);
    while (!direct && got < n && status == TNF_OK) {
        size_t more = 0;
        status = read_some(c, offset + got, to + got, n - got, &more, e);
        got += more;
    }
    pthread_mutex_unlock(&c->lock);
    return direct ? tnf_remote_get_long(c->remote, offset + got, to + got, n - got, e) : status;
}
