/* SPDX-License-Identifier: MIT */
/* Scans a part while the next bytes are decoded or computed.
 *
 *   other threads  make 0 │ make 1 │ make 2 │ …      into a ring of blocks
 *   this thread           │ take 0 │ take 1 │ …      in order
 *
 * Neither side waits while there is a block for it. A part that can be read at any position is made
 * by several threads, each with its own stream; any other part by one thread. The error is the
 * first one in the order of the part, as with a single thread. If the target has room for the whole
 * part, the blocks are made there, and nothing remains to be written (io/room.c).
 *
 * If a virtual tensor is made in larger units (of 4 to 16 MiB, if it is transposed), a block is a
 * unit. With smaller blocks each thread would make every unit again, for its own blocks of it.
 */
#include "base/pool.h"
#include "core/read/virtual.h"
#include "io/sink.h"

#include <pthread.h>

#define MOST_THREADS 16u
#define MOST_BLOCKS  (MOST_THREADS + 2)
#define LARGEST      ((uint64_t)16 << 20) /* block */
#define MOST_BYTES   ((size_t)24 << 20)   /* of all blocks, unless two are larger */
#define WORTH_THREAD ((uint64_t)4 << 20)  /* below this a thread costs more than it saves */

struct block_slot {
    bool made;
    tnf_status status;
    tnf_error error;
};

struct ahead {
    const tnf_part *part;
    size_t size; /* bytes of a block */
    uint8_t *blocks;
    const tnf_room *room;  /* blocks are made there instead; or NULL */
    uint64_t ring, all;    /* number of blocks in the ring, and in the part */
    pthread_mutex_t lock;  /* guards the members below */
    pthread_cond_t freed;  /* wakes one of the makers */
    pthread_cond_t filled; /* wakes the taker */
    uint64_t next, taken;  /* the next block to be made; number of blocks taken */
    bool stop;             /* no more blocks are needed */
    struct block_slot slots[MOST_BLOCKS];
};

/* Block i, and its length. */
static uint8_t *block_of(const struct ahead *a, uint64_t i, size_t *n)
{
    uint64_t left = a->part->nbytes - i * a->size;
    *n = left < a->size ? (size_t)left : a->size;
    return a->room ? a->room->p + i * a->size : a->blocks + i % a->ring * a->size;
}

/* Gets the next block to make, once there is room for it; false: there is none. */
static bool next_block(struct ahead *a, uint64_t *i)
{
    pthread_mutex_lock(&a->lock);
    while (!a->stop && a->next < a->all && a->next - a->taken == a->ring)
        pthread_cond_wait(&a->freed, &a->lock);
    bool more = !a->stop && a->next < a->all;
    *i = a->next;
    a->next += more;
    pthread_mutex_unlock(&a->lock);
    return more;
}

/* The caller holds the lock. */
static void stop_makers(struct ahead *a)
{
    a->stop = true;
    pthread_cond_broadcast(&a->freed);
}

static void *make_all(void *ctx)
{
    struct ahead *a = ctx;
    tnf_stream stream;
    tnf_error error = { .offset = TNF_NO_OFFSET };
    tnf_expect_part(a->part);
    tnf_status status = tnf_stream_open(&stream, a->part, &error);
    for (uint64_t i; next_block(a, &i);) {
        size_t n;
        uint8_t *block = block_of(a, i, &n);
        if (status == TNF_OK && a->room)
            status = tnf_room_ready(a->room, i * a->size, n, &error);
        if (status == TNF_OK)
            status = tnf_stream_read(&stream, i * a->size, block, n, &error);
        if (status == TNF_OK && i + 1 == a->all)
            status = tnf_stream_end(&stream, &error);
        pthread_mutex_lock(&a->lock);
        a->slots[i % a->ring] = (struct block_slot) { true, status, error };
        if (status != TNF_OK)
            stop_makers(a);
        pthread_cond_signal(&a->filled);
        pthread_mutex_unlock(&a->lock);
    }
    tnf_stream_close(&stream);
    return NULL;
}

/* Waits for block i, and returns the error if it could not be made. */
static tnf_status await_block(struct ahead *a, uint64_t i, tnf_error *e)
{
    struct block_slot *slot = &a->slots[i % a->ring];
    pthread_mutex_lock(&a->lock);
    while (!slot->made)
        pthread_cond_wait(&a->filled, &a->lock);
    slot->made = false;
    tnf_status status = slot->status;
    if (status != TNF_OK && e)
        *e = slot->error;
    pthread_mutex_unlock(&a->lock);
    return status;
}

static void free_block(struct ahead *a, bool stop)
{
    pthread_mutex_lock(&a->lock);
    a->taken++;
    pthread_cond_signal(&a->freed); /* one block is free, so waking one thread is enough */
    if (stop)
        stop_makers(a);
    pthread_mutex_unlock(&a->lock);
}

/* All blocks before a failed one are made, since they are begun in order. */
static tnf_status take_all(struct ahead *a, tnf_take_fn take, void *ctx, tnf_error *e)
{
    tnf_status status = TNF_OK;
    for (uint64_t i = 0; i < a->all && status == TNF_OK; i++) {
        size_t n;
        const uint8_t *block = block_of(a, i, &n);
        status = await_block(a, i, e);
        if (status == TNF_OK)
            TNF_CALL(status, e, take, ctx, block, n);
        if (a->room)
            tnf_room_leave(a->room, i * a->size, n);
        free_block(a, status != TNF_OK);
    }
    return status;
}

/* False if no thread could be started or memory is short: then nothing was done. */
static bool scan_concurrently(struct ahead *a, unsigned threads, tnf_take_fn take, void *ctx,
                              tnf_status *status, tnf_error *e)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    pthread_t made_by[MOST_THREADS];
    unsigned started = 0;
    size_t size = (size_t)a->ring * a->size;
    a->blocks = a->room ? NULL : tnf_alloc(&alloc, size);
    while ((a->room || a->blocks) && started < threads &&
           tnf_thread_start(&made_by[started], make_all, a))
        started++;
    if (started)
        *status = take_all(a, take, ctx, e);
    for (unsigned i = 0; i < started; i++)
        pthread_join(made_by[i], NULL);
    tnf_free(&alloc, a->blocks, size);
    return started > 0;
}

static size_t block_size(const tnf_part *part)
{
    const struct tnf_virtual *made = part->origin ? part->origin->made : NULL;
    uint64_t unit = 0;
    if (made)
        (void)tnf_type_bytes(&unit, part->type, made->unit);
    return unit > TNF_SCAN_BLOCK && unit <= LARGEST ? (size_t)unit : TNF_SCAN_BLOCK;
}

/* One thread takes; several threads make parts that are computed, or that are made in place. For
 * other parts, fewer threads read faster. */
static unsigned count_makers(const struct ahead *a)
{
    const tnf_part *part = a->part;
    unsigned most = tnf_pool_threads(0);
    most = most < MOST_THREADS ? most : MOST_THREADS;
    unsigned fit = (unsigned)(MOST_BYTES / a->size); /* one of them is being taken */
    most = fit < 2 ? 1 : most < fit ? most : fit - 1;
    bool computed = part->origin && part->origin->made;
    if (!tnf_part_anywhere(part) || (!computed && !a->room))
        return 1;
    return a->all < most ? (unsigned)a->all : most;
}

bool tnf_scan_room(const tnf_part *part, const tnf_room *room, tnf_take_fn take, void *ctx,
                   tnf_status *status, tnf_error *e)
{
    struct ahead a = { .part = part,
                       .room = room,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .freed = PTHREAD_COND_INITIALIZER,
                       .filled = PTHREAD_COND_INITIALIZER };
    a.size = block_size(part);
    a.all = part->nbytes / a.size + (part->nbytes % a.size != 0);
    unsigned threads = count_makers(&a);
    a.ring = threads + (a.size > TNF_SCAN_BLOCK ? 1 : 2);
    a.ring = a.ring < a.all ? a.ring : a.all;
    bool done = scan_concurrently(&a, threads, take, ctx, status, e);
    pthread_cond_destroy(&a.filled);
    pthread_cond_destroy(&a.freed);
    pthread_mutex_destroy(&a.lock);
    return done;
}

/* Is there work to do meanwhile? A part whose digest is compared is read in order by one thread. */
static bool worth_ahead(const tnf_part *part)
{
    if (part->flags & TNF_PART_UNREADABLE || part->nbytes < WORTH_THREAD)
        return false;
    bool stored = part->payload == TNF_AT && !tnf_checks_reads(part) && !tnf_part_in_memory(part);
    return part->payload == TNF_OPAQUE || stored;
}

tnf_status tnf_scan_ahead(const tnf_part *part, tnf_take_fn take, void *ctx, tnf_error *e)
{
    if (!worth_ahead(part) || tnf_pool_threads(0) < 2)
        return tnf_scan(part, take, ctx, e);
    tnf_status status = TNF_OK;
    return tnf_scan_room(part, NULL, take, ctx, &status, e) ? status : tnf_scan(part, take, ctx, e);
}
