/* SPDX-License-Identifier: MIT */
/* Looking at a part while what follows is decoded.
 *
 *   its thread   decode 0 │ decode 1 │ decode 2 │ …      into a ring of blocks
 *   this one              │ take 0   │ take 1   │ …      in order
 *
 * Neither waits while there is a block for it. What fails first, in the order of the part, is the
 * error, as if there were one thread.
 */
#include "base/pool.h"
#include "core/read/stream.h"

#include <pthread.h>

#define BLOCKS       3u
#define WORTH_THREAD ((uint64_t)4 << 20) /* below this a thread costs more than it brings */

struct ahead {
    tnf_stream stream;
    uint8_t *blocks;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t moved;
    uint64_t made, taken; /* blocks */
    bool stop;            /* no more are wanted */
    tnf_status status;    /* of the block behind those that were made */
    tnf_error error;
};

static uint64_t count(const tnf_part *part)
{
    return part->nbytes / TNF_SCAN_BLOCK + (part->nbytes % TNF_SCAN_BLOCK != 0);
}

/* Block i, and how long it is. */
static uint8_t *block_of(const struct ahead *a, uint64_t i, size_t *n)
{
    uint64_t left = a->stream.part->nbytes - i * TNF_SCAN_BLOCK;
    *n = left < TNF_SCAN_BLOCK ? (size_t)left : TNF_SCAN_BLOCK;
    return a->blocks + i % BLOCKS * TNF_SCAN_BLOCK;
}

/* May block i be made? Waits until one is free. */
static bool may_make(struct ahead *a, uint64_t i)
{
    pthread_mutex_lock(&a->lock);
    while (!a->stop && i - a->taken == BLOCKS)
        pthread_cond_wait(&a->moved, &a->lock);
    bool may = !a->stop;
    pthread_mutex_unlock(&a->lock);
    return may;
}

static void *make_all(void *ctx)
{
    struct ahead *a = ctx;
    tnf_status status = TNF_OK;
    for (uint64_t i = 0; i < count(a->stream.part) && status == TNF_OK && may_make(a, i); i++) {
        size_t n;
        uint8_t *block = block_of(a, i, &n);
        tnf_error error = { .offset = TNF_NO_OFFSET };
        status = tnf_stream_read(&a->stream, i * TNF_SCAN_BLOCK, block, n, &error);
        pthread_mutex_lock(&a->lock);
        a->status = status;
        a->error = error;
        a->made += status == TNF_OK;
        pthread_cond_signal(&a->moved);
        pthread_mutex_unlock(&a->lock);
    }
    return NULL;
}

/* Waits for block i, or what kept it from being made. */
static tnf_status await(struct ahead *a, uint64_t i, tnf_error *e)
{
    pthread_mutex_lock(&a->lock);
    while (a->made == i && a->status == TNF_OK)
        pthread_cond_wait(&a->moved, &a->lock);
    tnf_status status = a->made == i ? a->status : TNF_OK;
    if (status != TNF_OK && e)
        *e = a->error;
    pthread_mutex_unlock(&a->lock);
    return status;
}

static void wake_other(struct ahead *a, bool stop)
{
    pthread_mutex_lock(&a->lock);
    a->taken++;
    a->stop = stop;
    pthread_cond_signal(&a->moved);
    pthread_mutex_unlock(&a->lock);
}

static tnf_status take_all(struct ahead *a, tnf_take_fn take, void *ctx, tnf_error *e)
{
    tnf_status status = TNF_OK;
    for (uint64_t i = 0; i < count(a->stream.part) && status == TNF_OK; i++) {
        size_t n;
        const uint8_t *block = block_of(a, i, &n);
        status = await(a, i, e);
        if (status == TNF_OK)
            TNF_CALL(status, e, take, ctx, block, n);
        wake_other(a, status != TNF_OK);
    }
    return status;
}

/* False if no thread could be started or memory is short: then nothing was done. */
static bool scan_beside(struct ahead *a, tnf_take_fn take, void *ctx, tnf_status *status,
                        tnf_error *e)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    pthread_t thread;
    a->blocks = tnf_alloc(&alloc, BLOCKS * TNF_SCAN_BLOCK);
    bool started = a->blocks && pthread_create(&thread, NULL, make_all, a) == 0;
    if (started) {
        *status = take_all(a, take, ctx, e);
        pthread_join(thread, NULL);
    }
    tnf_free(&alloc, a->blocks, BLOCKS * TNF_SCAN_BLOCK);
    return started;
}

tnf_status tnf_scan_ahead(const tnf_part *part, tnf_take_fn take, void *ctx, tnf_error *e)
{
    if (part->payload != TNF_OPAQUE || part->nbytes < WORTH_THREAD || tnf_pool_threads(0) < 2)
        return tnf_scan(part, take, ctx, e);
    struct ahead a = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };
    tnf_status status = tnf_stream_open(&a.stream, part, e);
    if (status == TNF_OK && !scan_beside(&a, take, ctx, &status, e))
        status = tnf_scan(part, take, ctx, e);
    tnf_stream_close(&a.stream);
    pthread_cond_destroy(&a.moved);
    pthread_mutex_destroy(&a.lock);
    return status;
}
