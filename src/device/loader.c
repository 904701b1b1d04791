/* SPDX-License-Identifier: MIT */
/* The code of one thread of a load without a ring. It takes the next task and reads its bytes into
 * one of its pinned slots. While these are copied to every device, it reads the next task into
 * another slot.
 *
 *   slot 0   read ▓▓▓▓▓ copy ░░           read ▓▓▓▓▓ copy ░░
 *   slot 1             read ▓▓▓▓▓ copy ░░           read ▓▓▓▓▓ …
 *
 * There is no queue between threads, and reading takes no lock. A slot is reused only after the
 * event of its last copy. */
#include "device/loader.h"

#include "base/clock.h"
#include <string.h>

/* Waits until a slot is free. */
static tnf_status free_slot(tnf_loader *o, unsigned slot, tnf_error *e)
{
    tnf_flight f = o->flights[slot];
    uint64_t from = tnf_now();
    if (!f.task)
        return TNF_OK;
    for (size_t t = 0; t < o->load->ntargets; t++) {
        tnf_device *d = o->load->targets[t].device;
        TNF_TRY(tnf_device_enter(d, e));
        tnf_status status = tnf_queue_await(d, o->queues[t], slot, e);
        tnf_device_leave(d);
        TNF_TRY(status);
    }
    o->flights[slot].task = NULL;
    o->clock.waiting += tnf_now() - from;
    return tnf_load_task_arrived(o, f.task, f.bytes, e);
}

uint8_t *tnf_slot_memory(const tnf_loader *o)
{
    const tnf_buffer *b = o->load->buffer;
    return b->memory + (o->number * o->load->how.slots + o->slot) * b->slot;
}

/* The area of the current slot, for target t. */
static tnf_area slot_area(const tnf_loader *o, size_t t)
{
    const tnf_load *l = o->load;
    size_t table = l->plan.block + 2 * TNF_PAGE + t * TNF_TABLE(TNF_SLOT_ROWS);
    return tnf_area_at(l, o->queues[t], tnf_slot_memory(o), o->slot * l->buffer->slot, table,
                       TNF_SLOT_ROWS);
}

/* Sends the bytes of the current slot, and advances to the next one. */
static tnf_status send_slot(tnf_loader *o, const tnf_load_task *task, const uint8_t *bytes,
                            uint64_t n, tnf_error *e)
{
    uint64_t from = tnf_now();
    if (!o->clock.first_read)
        o->clock.first_read = from;
    for (size_t t = 0; t < o->load->ntargets; t++) {
        tnf_copier c = { .o = o,
                         .target = &o->load->targets[t],
                         .copies = o->queues[t],
                         .kernels = o->queues[t],
                         .event = o->slot,
                         .area = slot_area(o, t) };
        TNF_TRY(task->kind == TNF_READ_SCAN ? tnf_copy_scanned(&c, task, bytes, n, e)
                                            : tnf_copy_tasks(&c, task, 1, bytes, e));
    }
    o->flights[o->slot] = (tnf_flight) { task, n };
    o->clock.last_sent = tnf_now();
    o->clock.sending += o->clock.last_sent - from;
    if (!o->clock.first_sent)
        o->clock.first_sent = from;
    o->slot = (o->slot + 1) % o->load->how.slots;
    return TNF_OK;
}

/* ------------------------------------------------------------------- tasks */

static tnf_status send_scanned(tnf_loader *o, tnf_error *e)
{
    uint64_t n = o->filled;
    if (n == 0)
        return TNF_OK;
    TNF_TRY(send_slot(o, o->scan, tnf_slot_memory(o), n, e));
    o->scanned += n;
    o->filled = 0;
    return free_slot(o, o->slot, e);
}

static tnf_status take_scanned(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    tnf_loader *o = ctx;
    const uint8_t *p = bytes;
    if (atomic_load(&o->load->stop))
        return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "loading was cancelled");
    for (size_t some; n > 0; p += some, n -= some) {
        size_t room = o->load->plan.block - o->filled;
        some = n < room ? n : room;
        memcpy(tnf_slot_memory(o) + o->filled, p, some);
        o->filled += some;
        if (o->filled == o->load->plan.block)
            TNF_TRY(send_scanned(o, e));
    }
    return TNF_OK;
}

static tnf_status run_scan(tnf_loader *o, const tnf_load_task *task, tnf_error *e)
{
    o->scan = task;
    o->scanned = 0;
    o->filled = 0;
    TNF_TRY(tnf_scan(o->load->plan.tensors[task->first].part, take_scanned, o, e));
    TNF_TRY(send_scanned(o, e));
    o->bytes_read += task->bytes;
    return o->scanned == task->bytes
               ? TNF_OK
               : tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "a tensor was read with too few bytes");
}

static tnf_status run_task(tnf_loader *o, size_t i, tnf_error *e)
{
    const tnf_load_task *task = &o->load->plan.tasks[i];
    const uint8_t *bytes;
    if (o->load->ring)
        return tnf_ring_run(o, i, e);
    TNF_TRY(free_slot(o, o->slot, e));
    if (task->kind == TNF_READ_SCAN)
        return run_scan(o, task, e);
    TNF_TRY(tnf_load_task_read(o, task, tnf_slot_memory(o), &bytes, e));
    return send_slot(o, task, bytes, task->bytes, e);
}

/* ------------------------------------------------------------- the thread */

/* Waits until everything sent has arrived. After an error, also waits until no copy is running. */
static tnf_status end_loader(tnf_loader *o, tnf_status status, tnf_error *e)
{
    tnf_load *l = o->load;
    if (l->ring && status == TNF_OK)
        status = tnf_ring_arrive(o, e);
    for (unsigned i = 0; i < l->how.slots && status == TNF_OK; i++)
        status = free_slot(o, (o->slot + i) % l->how.slots, e);
    for (size_t t = 0; t < l->ntargets && o->queues; t++) {
        tnf_device *d = l->targets[t].device;
        tnf_error ignored;
        tnf_error *told = status == TNF_OK ? e : &ignored;
        tnf_status drained = tnf_device_enter(d, told);
        if (drained == TNF_OK) {
            drained = tnf_queue_drain(d, o->queues[t], told);
            tnf_device_leave(d);
        }
        status = status == TNF_OK ? drained : status;
    }
    tnf_intake_give(o->own_fd);
    return status;
}

void tnf_load_fail(tnf_load *l, tnf_status status, const tnf_error *error)
{
    pthread_mutex_lock(&l->lock);
    if (l->status == TNF_OK) {
        l->status = status;
        l->error = *error;
    }
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->stop, true);
}

static void keep_first(uint64_t *all, uint64_t one)
{
    if (one && (*all == 0 || one < *all))
        *all = one;
}

static void keep_last(uint64_t *all, uint64_t one)
{
    if (one > *all)
        *all = one;
}

/* Adds the times of one thread, which began at `begun`. */
static void note_times(tnf_load_clock *all, const tnf_load_clock *one, uint64_t begun)
{
    uint64_t now = tnf_now();
    keep_first(&all->first_read, one->first_read);
    keep_first(&all->first_sent, one->first_sent);
    keep_last(&all->last_sent, one->last_sent);
    keep_last(&all->ended, now);
    all->sending += one->sending;
    all->waiting += one->waiting;
    all->reading += now - begun - one->sending - one->waiting;
}

void *tnf_loader_run(void *load)
{
    tnf_load *l = load;
    tnf_loader o = { .load = l, .number = atomic_fetch_add(&l->begun, 1), .own_fd = -1 };
    tnf_error error = { .offset = TNF_NO_OFFSET };
    o.queues = l->queues ? l->queues + o.number * l->ntargets : NULL;
    if (l->targets[0].device->has_cpus)
        tnf_numa_bind(&l->targets[0].device->cpus);
    uint64_t from = tnf_now();
    tnf_status status = TNF_OK;
    while (status == TNF_OK && !atomic_load_explicit(&l->stop, memory_order_relaxed)) {
        size_t i = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
        if (i >= l->plan.njobs)
            break;
        status = run_task(&o, i, &error);
    }
    status = end_loader(&o, status, &error);
    if (status != TNF_OK)
        tnf_load_fail(l, status, &error);
    if (atomic_fetch_sub(&l->inside, 1) == 1) {
        tnf_ring_end(l);
        tnf_slots_end(l);
    }
    atomic_fetch_add(&l->bytes_read, o.bytes_read);
    atomic_fetch_add(&l->copies, o.copies);
    pthread_mutex_lock(&l->lock);
    note_times(&l->clock, &o.clock, from);
    l->running--;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}
