/* SPDX-License-Identifier: MIT */
/* Plain loads: what several threads have read goes to the devices together, for the bus is faster
 * with long copies than with short ones.
 *
 *   group 0   │ job 0 │ job 1 │ job 2 │ job 3 │   each read by the thread that took it; the one
 *   group 1   │ job 4 │ job 5 │ …                 that ends last sends the group
 *   group 0   │ job 8 │ …                         the next round, when the event behind it is over
 *
 * Jobs are taken in order, so every group is filled by threads that wait for earlier groups alone.
 * The memory of all groups is two buffers, each pinned by one call when its first group is sent:
 * all threads have read into it by then, which has brought its pages, and few long calls are
 * quickest. */
#include "device/loader.h"

#include "base/alloc.h"

#include <time.h>

/* Of 4 MiB each: copies of 12 MiB reach 0.99 of what the longest ones do, those of 4 MiB 0.96. */
#define JOBS_OF_GROUP 3u
#define GROUPS_MAX    TNF_EVENTS_MAX

#define BUFFERS       2u
#define PATIENCE      1000u

typedef struct group {
    tnf_buffer *buffer;
    uint8_t *memory;
    atomic_size_t round; /* of this use of its memory */
    atomic_uint unread;  /* jobs of this round */
    atomic_bool sent;    /* its copies are on their way, and no thread waits for them yet */
} group;

struct tnf_ring {
    tnf_buffer *buffers[BUFFERS];
    pthread_mutex_t pinning;
    unsigned n;
    tnf_queue *queues[TNF_TARGETS_MAX];
    size_t nqueues;
    group groups[GROUPS_MAX];
};

/* How many jobs group g has, which is counted through all rounds. */
static unsigned count_jobs(const tnf_load *l, size_t g)
{
    size_t first = g * JOBS_OF_GROUP;
    size_t left = first < l->plan.njobs ? l->plan.njobs - first : 0;
    return left < JOBS_OF_GROUP ? (unsigned)left : JOBS_OF_GROUP;
}

/* -------------------------------------------------------- begin and end */

/* Files that are read past the cache need room at both ends of each block, what is read in order
 * has no length ahead, and kernels have streams and staging memory for each thread. */
static bool is_plain(const tnf_load *l)
{
    for (size_t i = 0; i < l->plan.nintakes; i++)
        if (l->plan.intakes[i].direct >= 0 || !l->plan.intakes[i].cached)
            return false;
    for (size_t i = 0; i < l->plan.njobs; i++)
        if (l->plan.jobs[i].kind == TNF_JOB_SCAN || l->plan.jobs[i].kind == TNF_JOB_GATHER)
            return false;
    return !l->apart && l->plan.njobs > JOBS_OF_GROUP;
}

/* Half of the groups in each buffer. */
static tnf_status place_groups(tnf_load *l, unsigned n, tnf_error *e)
{
    tnf_ring *r = l->ring;
    size_t size = l->plan.block * JOBS_OF_GROUP;
    unsigned each = (n + BUFFERS - 1) / BUFFERS;
    for (unsigned i = 0; i < BUFFERS; i++) {
        TNF_TRY(tnf_buffer_take(&r->buffers[i], l->targets[0].device, size * each, 1, e));
        atomic_fetch_add(&l->pinned, r->buffers[i]->size);
    }
    for (; r->n < n; r->n++) {
        group *g = &r->groups[r->n];
        g->buffer = r->buffers[r->n / each];
        g->memory = g->buffer->memory + r->n % each * size;
        atomic_init(&g->unread, count_jobs(l, r->n));
    }
    return TNF_OK;
}

tnf_status tnf_ring_begin(tnf_load *l, unsigned threads, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    unsigned n = threads * l->how.slots / JOBS_OF_GROUP;
    if (!is_plain(l))
        return TNF_OK;
    n = n < 2 ? 2 : n > GROUPS_MAX ? GROUPS_MAX : n;
    tnf_ring *r = l->ring = tnf_alloc0(&a, sizeof *r);
    if (!r)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for a load");
    pthread_mutex_init(&r->pinning, NULL);
    TNF_TRY(place_groups(l, n, e));
    for (; r->nqueues < l->ntargets; r->nqueues++)
        TNF_TRY(tnf_queue_take(&r->queues[r->nqueues], l->targets[r->nqueues].device, n, false, e));
    return TNF_OK;
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
    for (unsigned i = 0; r && i < BUFFERS; i++) {
        if (r->buffers[i])
            tnf_buffer_give(l->targets[0].device, r->buffers[i]);
        r->buffers[i] = NULL;
    }
}

void tnf_ring_free(tnf_load *l)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (!l->ring)
        return;
    tnf_ring_end(l);
    pthread_mutex_destroy(&l->ring->pinning);
    tnf_free(&a, l->ring, sizeof *l->ring);
}

/* ---------------------------------------------------------------- groups */

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
        const tnf_job *job = &l->plan.jobs[all * JOBS_OF_GROUP + k];
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

static tnf_status pin_group(tnf_ring *r, tnf_device *d, const group *g, tnf_error *e)
{
    pthread_mutex_lock(&r->pinning);
    tnf_status status = tnf_buffer_pin(d, g->buffer, e);
    pthread_mutex_unlock(&r->pinning);
    return status;
}

/* All jobs of a group onto one device. */
static tnf_status copy_group(tnf_loader *o, size_t t, group *g, size_t first, tnf_error *e)
{
    const tnf_load *l = o->load;
    const tnf_ring *r = l->ring;
    unsigned index = (unsigned)(g - r->groups);
    tnf_copier c = { .o = o, .device = l->targets[t].device, .queue = r->queues[t] };
    if (t == 0) /* it is for all devices */
        TNF_TRY(pin_group(o->load->ring, c.device, g, e));
    for (unsigned k = 0; k < count_jobs(l, first / JOBS_OF_GROUP); k++)
        TNF_TRY(tnf_copy_job(&c, &l->targets[t], &l->plan.jobs[first + k],
                             g->memory + k * l->plan.block, e));
    TNF_TRY(tnf_copies_flush(&c, e));
    return tnf_queue_mark(c.device, c.queue, index, e);
}

static tnf_status send_group(tnf_loader *o, group *g, size_t first, tnf_error *e)
{
    const tnf_load *l = o->load;
    uint64_t from = tnf_load_now();
    for (unsigned k = 0; k < count_jobs(l, first / JOBS_OF_GROUP) && !o->placed; k++)
        TNF_TRY(tnf_job_await(o, &l->plan.jobs[first + k], e));
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
    size_t all = i / JOBS_OF_GROUP, place = i % JOBS_OF_GROUP;
    group *g = &r->groups[all % r->n];
    const uint8_t *bytes;
    TNF_TRY(await_round(o, g, all / r->n, e));
    TNF_TRY(tnf_job_read(o, &l->plan.jobs[i], g->memory + place * l->plan.block, &bytes, e));
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
