/* SPDX-License-Identifier: MIT */
/* Plain loads: what several threads have read goes to the devices together, for the bus is faster
 * with long copies than with short ones.
 *
 *   group 0   │job 0│job 1│ … │job 23│   each read by the thread that took it; the one that ends
 *   group 1   │job 24│ …                 last sends the group
 *   group 0   │job 48│ …                 the next round, when the event behind it is over
 *
 * Jobs are taken in order, so every group is filled by threads that wait for earlier groups alone.
 * They stand without gaps in their group, so that neighbours in a tensor are one copy. */
#include "device/loader.h"

#include "base/alloc.h"

#include <time.h>

/* Copies of 12 MiB reach 0.99 of what the longest ones do, those of 4 MiB 0.97. */
#define GROUP      ((size_t)12 << 20)
#define JOBS_MAX   24u
#define PARTS      8u /* at least, of a load: its reads and its copies overlap */
#define GROUPS_MAX TNF_EVENTS_MAX

#define PATIENCE   1000u

typedef struct group {
    uint8_t *memory;
    atomic_size_t round; /* of this use of its memory */
    atomic_uint unread;  /* jobs of this round */
    atomic_bool sent;    /* its copies are on their way, and no thread waits for them yet */
} group;

struct tnf_ring {
    unsigned n;
    unsigned jobs; /* of a group */
    tnf_queue *queues[TNF_TARGETS_MAX];
    size_t nqueues;
    group groups[GROUPS_MAX];
};

/* How many jobs group g has, which is counted through all rounds. */
static unsigned count_jobs(const tnf_load *l, size_t g)
{
    size_t first = g * l->ring->jobs;
    size_t left = first < l->plan.njobs ? l->plan.njobs - first : 0;
    return left < l->ring->jobs ? (unsigned)left : l->ring->jobs;
}

/* -------------------------------------------------------- begin and end */

static unsigned choose_jobs(const tnf_plan *p)
{
    size_t n = GROUP / p->block;
    n = n < JOBS_MAX ? n : JOBS_MAX;
    n = n < p->njobs / PARTS ? n : p->njobs / PARTS;
    return n ? (unsigned)n : 1;
}

static tnf_status place_groups(tnf_load *l, unsigned n, unsigned threads, tnf_error *e)
{
    tnf_ring *r = l->ring;
    size_t size = l->plan.block * r->jobs;
    TNF_TRY(tnf_buffer_ready(l, size * n, 1, threads, e));
    for (; r->n < n; r->n++) {
        group *g = &r->groups[r->n];
        g->memory = l->buffer->memory + r->n * size;
        atomic_init(&g->unread, count_jobs(l, r->n));
    }
    return TNF_OK;
}

tnf_status tnf_ring_begin(tnf_load *l, unsigned threads, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_ring *r = l->ring = tnf_alloc0(&a, sizeof *r);
    if (!r)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for a load");
    r->jobs = choose_jobs(&l->plan);
    unsigned n = threads * l->how.slots / r->jobs;
    n = n < 2 ? 2 : n > GROUPS_MAX ? GROUPS_MAX : n;
    TNF_TRY(place_groups(l, n, threads, e));
    for (; r->nqueues < l->ntargets; r->nqueues++)
        TNF_TRY(tnf_queue_take(&r->queues[r->nqueues], l->targets[r->nqueues].device, n, false, e));
    return tnf_queues_follow(l, r->queues, e);
}

void tnf_ring_end(tnf_load *l)
{
    tnf_ring *r = l->ring;
    for (; r && r->nqueues > 0; r->nqueues--) {
        tnf_device *d = l->targets[r->nqueues - 1].device;
        if (tnf_device_enter(d, NULL) == TNF_OK) {
            (void)tnf_queue_drain(d, r->queues[r->nqueues - 1], NULL); /* nothing may be left */
            tnf_device_leave(d);
        }
        tnf_queue_give(d, r->queues[r->nqueues - 1]);
    }
}

void tnf_ring_free(tnf_load *l)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (!l->ring)
        return;
    tnf_ring_end(l);
    tnf_free(&a, l->ring, sizeof *l->ring);
    l->ring = NULL;
}

/* ---------------------------------------------------------------- groups */

/* Where job `place` of a group, whose first is `first`, stands in the group's memory. */
static size_t find_place(const tnf_plan *p, size_t first, size_t place)
{
    size_t at = 0;
    for (size_t k = 0; k < place; k++)
        at += (size_t)p->jobs[first + k].bytes;
    return at;
}

/* The jobs of a group that was sent are on the devices: its memory is free for the next round. */
static tnf_status end_group(tnf_loader *o, group *g, tnf_error *e)
{
    tnf_load *l = o->load;
    tnf_ring *r = l->ring;
    size_t index = (size_t)(g - r->groups), all = atomic_load(&g->round) * r->n + index;
    for (size_t t = 0; t < r->nqueues; t++) {
        tnf_device *d = l->targets[t].device;
        TNF_TRY(tnf_device_enter(d, e));
        tnf_status status = tnf_queue_await(d, r->queues[t], (unsigned)index, e);
        tnf_device_leave(d);
        TNF_TRY(status);
    }
    for (unsigned k = 0; k < count_jobs(l, all); k++) {
        const tnf_job *job = &l->plan.jobs[all * r->jobs + k];
        TNF_TRY(tnf_job_arrived(o, job, job->bytes, e));
    }
    atomic_store(&g->unread, count_jobs(l, all + r->n));
    atomic_fetch_add(&g->round, 1);
    return TNF_OK;
}

/* Waits until the group's memory is free for a round. Of those who wait, one asks the device. It is
 * a matter of microseconds, so nobody sleeps at first. */
static tnf_status await_round(tnf_loader *o, group *g, size_t round, tnf_error *e)
{
    tnf_load *l = o->load;
    uint64_t from = tnf_load_now();
    for (unsigned tries = 0; atomic_load(&g->round) < round; tries++) {
        if (atomic_load(&l->stop))
            return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "loading was cancelled");
        if (atomic_exchange(&g->sent, false))
            TNF_TRY(end_group(o, g, e));
        else if (tries < PATIENCE)
            sched_yield();
        else
            nanosleep(&(struct timespec) { .tv_nsec = 50000 }, NULL);
    }
    o->clock.waiting += tnf_load_now() - from;
    return TNF_OK;
}

/* All jobs of a group onto one device. */
static tnf_status copy_group(tnf_loader *o, size_t t, group *g, size_t first, tnf_error *e)
{
    const tnf_load *l = o->load;
    const tnf_ring *r = l->ring;
    unsigned index = (unsigned)(g - r->groups);
    tnf_copier c = { .o = o, .device = l->targets[t].device, .queue = r->queues[t] };
    const uint8_t *bytes = g->memory;
    for (unsigned k = 0; k < count_jobs(l, first / r->jobs); k++) {
        const tnf_job *job = &l->plan.jobs[first + k];
        TNF_TRY(tnf_copy_job(&c, &l->targets[t], job, bytes, e));
        bytes += job->bytes;
    }
    TNF_TRY(tnf_copies_flush(&c, e));
    return tnf_queue_mark(c.device, c.queue, index, e);
}

static tnf_status send_group(tnf_loader *o, group *g, size_t first, tnf_error *e)
{
    tnf_load *l = o->load;
    uint64_t from = tnf_load_now();
    for (size_t t = 0; t < l->ring->nqueues; t++) {
        tnf_device *d = l->targets[t].device;
        TNF_TRY(tnf_device_enter(d, e));
        tnf_status status = copy_group(o, t, g, first, e);
        tnf_device_leave(d);
        TNF_TRY(status);
    }
    atomic_store(&g->sent, true);
    if (!o->clock.first_sent)
        o->clock.first_sent = from;
    o->clock.last_sent = tnf_load_now();
    o->clock.sending += o->clock.last_sent - from;
    return TNF_OK;
}

tnf_status tnf_ring_run(tnf_loader *o, size_t i, tnf_error *e)
{
    tnf_load *l = o->load;
    tnf_ring *r = l->ring;
    size_t all = i / r->jobs, place = i % r->jobs;
    group *g = &r->groups[all % r->n];
    const uint8_t *bytes;
    TNF_TRY(await_round(o, g, all / r->n, e));
    uint8_t *room = g->memory + find_place(&l->plan, i - place, place);
    TNF_TRY(tnf_job_read(o, &l->plan.jobs[i], room, &bytes, e));
    if (!o->clock.first_read)
        o->clock.first_read = tnf_load_now();
    bool last = atomic_fetch_sub(&g->unread, 1) == 1;
    return last ? send_group(o, g, i - place, e) : TNF_OK;
}

/* A group that another thread sends later is that thread's to wait for. */
tnf_status tnf_ring_arrive(tnf_loader *o, tnf_error *e)
{
    tnf_ring *r = o->load->ring;
    for (unsigned i = 0; i < r->n; i++)
        if (atomic_exchange(&r->groups[i].sent, false))
            TNF_TRY(end_group(o, &r->groups[i], e));
    return TNF_OK;
}
