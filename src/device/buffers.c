/* SPDX-License-Identifier: MIT */
/* The memory into which the threads of a load read, and the queues that copy it. Without a ring:
 *
 *   │ thread 0: slot 0 │ slot 1 │ thread 1: slot 0 │ slot 1 │ …
 *
 *   slot   │ page │ block … │ page │ table of small tensors for each target │
 *
 * All of it is pinned by one call, before the threads begin, since pinning takes four times as long
 * while threads read. Pinning is fast if the pages exist, so several threads touch them first. */
#include "device/load.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/pool.h"

static tnf_status touch_page(void *ctx, size_t i, tnf_error *e)
{
    const tnf_load *l = ctx;
    (void)e;
    for (size_t at = i * TNF_HUGE; at < (i + 1) * TNF_HUGE; at += TNF_PAGE)
        l->buffer->memory[at] = 0;
    return TNF_OK;
}

/* Touches all pages, on CPUs near the device. New threads inherit the CPUs of this thread, which
 * are restored at the end. */
static tnf_status touch_pages(tnf_load *l, unsigned threads, tnf_error *e)
{
    const tnf_device *d = l->targets[0].device;
    cpu_set_t before;
    bool bound = d->has_cpus && sched_getaffinity(0, sizeof before, &before) == 0;
    if (bound)
        tnf_numa_bind(&d->cpus);
    tnf_status status = tnf_pool_run(threads, l->buffer->size / TNF_HUGE, touch_page, l, e);
    if (bound)
        (void)sched_setaffinity(0, sizeof before, &before);
    return status;
}

tnf_status tnf_buffer_ready(tnf_load *l, size_t slot, unsigned slots, unsigned threads,
                            tnf_error *e)
{
    tnf_device *d = l->targets[0].device;
    TNF_TRY(tnf_buffer_take(&l->buffer, d, slot, slots, e));
    atomic_fetch_add(&l->pinned, l->buffer->size);
    if (l->buffer->pinned)
        return TNF_OK;
    uint64_t from = tnf_now();
    TNF_TRY(touch_pages(l, threads, e));
    TNF_TRY(tnf_device_enter(d, e));
    tnf_status status = tnf_buffer_pin(d, l->buffer, e);
    tnf_device_leave(d);
    l->clock.pinned = tnf_now();
    l->clock.pinning = l->clock.pinned - from;
    return status;
}

tnf_status tnf_queues_follow(tnf_load *l, tnf_queue *const *queues, tnf_error *e)
{
    for (size_t t = 0; t < l->ntargets; t++) {
        const tnf_target *target = &l->targets[t];
        tnf_device *d = target->device;
        if (!target->ready)
            continue;
        TNF_TRY(tnf_device_enter(d, e));
        cu_result r = d->cuda->stream_wait(queues[t]->stream, target->ready, 0);
        tnf_device_leave(d);
        if (r)
            return tnf_cuda_fail(d->cuda, r, "cannot wait for the caller's stream", e);
    }
    return TNF_OK;
}

/* Without this memory small tensors are copied one by one. Kernels that compute require it. */
tnf_status tnf_target_stage(tnf_load *l, size_t t, tnf_queue *q, size_t n, tnf_error *e)
{
    tnf_target *target = &l->targets[t];
    if (!target->scatter && !l->plan.computes)
        return TNF_OK;
    TNF_TRY(tnf_device_enter(target->device, e));
    tnf_status status = tnf_queue_stage(target->device, q, n, e);
    tnf_device_leave(target->device);
    if (status == TNF_OK || l->plan.computes)
        return status;
    target->scatter = false;
    return TNF_OK;
}

tnf_status tnf_slots_begin(tnf_load *l, unsigned threads, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (threads == 0)
        return TNF_OK;
    size_t tables = l->plan.small ? l->ntargets * TNF_TABLE(TNF_SLOT_ROWS) : 0;
    TNF_TRY(tnf_buffer_ready(l, l->plan.block + 2 * TNF_PAGE + tables, threads * l->how.slots,
                             threads, e));
    l->queues = tnf_alloc0(&a, threads * l->ntargets * sizeof *l->queues);
    if (!l->queues)
        return tnf_no_memory("a load", e);
    l->room_queues = threads * l->ntargets;
    for (; l->nqueues < l->room_queues; l->nqueues++) {
        tnf_device *d = l->targets[l->nqueues % l->ntargets].device;
        TNF_TRY(tnf_queue_take(&l->queues[l->nqueues], d, l->how.slots,
                               l->plan.small || l->plan.computes, e));
    }
    for (size_t i = 0; i < l->nqueues; i++)
        TNF_TRY(
            tnf_target_stage(l, i % l->ntargets, l->queues[i], l->buffer->slot * l->how.slots, e));
    for (size_t i = 0; i < threads; i++)
        TNF_TRY(tnf_queues_follow(l, l->queues + i * l->ntargets, e));
    return TNF_OK;
}

void tnf_queue_end(tnf_device *d, tnf_queue *q)
{
    if (tnf_device_enter(d, NULL) == TNF_OK) {
        (void)tnf_queue_drain(d, q, NULL);
        tnf_device_leave(d);
    }
    tnf_queue_give(d, q);
}

void tnf_slots_end(tnf_load *l)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    for (; l->nqueues > 0; l->nqueues--)
        tnf_queue_end(l->targets[(l->nqueues - 1) % l->ntargets].device, l->queues[l->nqueues - 1]);
    tnf_free(&a, l->queues, l->room_queues * sizeof *l->queues);
    l->queues = NULL;
    l->room_queues = 0;
    if (l->buffer)
        tnf_buffer_give(l->targets[0].device, l->buffer);
    l->buffer = NULL;
}
