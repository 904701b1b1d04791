/* SPDX-License-Identifier: MIT */
/* Loads of files that are in memory. The bytes that several threads have read are sent to the
 * devices together, since long copies use the bus better than short ones.
 *
 *   group 0   │task 0│task 1│ … │task 23│   each read by the thread that took it; the thread that
 *   group 1   │task 24│ …                   finishes last sends the group
 *   group 0   │task 48│ …                   the next round, after the event of the last one
 *
 * Tasks are taken in order, so the threads that fill a group wait only for earlier groups. Tasks
 * are adjacent in their group, so neighbours in a tensor need only one copy.
 *
 * Bytes for kernels are copied to staging memory of the device with the same layout. Kernels have
 * their own stream: while they compute one group, the next group is copied.
 *
 *   copies    │group 0│group 1│group 2│ …
 *   kernels           │group 0│group 1│ …
 */
#include "device/loader.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <time.h>

/* Copies of 12 MiB reach 0.99 of the throughput of the longest ones, copies of 4 MiB 0.97. */
#define GROUP      ((size_t)12 << 20)
#define TASKS_MAX  24u
#define PARTS      8u /* least groups of a load, so that reads and copies overlap */
#define GROUPS_MAX TNF_EVENTS_MAX
#define GROUP_ROWS 16384u /* small tensors of a group that a kernel distributes */
#define NAP        20000  /* nanoseconds; copying a group takes ten times as long */

typedef struct group {
    uint8_t *memory;
    atomic_size_t round; /* counts the uses of its memory */
    atomic_uint unread;  /* tasks of this round that are not read yet */
    atomic_bool sent;    /* its copies are running, and no thread waits for them yet */
} group;

struct tnf_ring {
    unsigned n;
    unsigned tasks; /* per group */
    size_t size;    /* bytes of the tasks of a group */
    size_t stride;  /* from group to group, including their tables */
    tnf_queue *copies[TNF_TARGETS_MAX];
    size_t ncopies;
    tnf_queue *kernels[TNF_TARGETS_MAX]; /* for targets without kernels: that of the copies */
    size_t nkernels;
    group groups[GROUPS_MAX];
};

/* The number of tasks of group g; groups are numbered across all rounds. */
static unsigned count_tasks(const tnf_load *l, size_t g)
{
    size_t first = g * l->ring->tasks;
    size_t left = first < l->plan.njobs ? l->plan.njobs - first : 0;
    return left < l->ring->tasks ? (unsigned)left : l->ring->tasks;
}

/* -------------------------------------------------------- begin and end */

static unsigned choose_tasks(const tnf_load_plan *p)
{
    size_t n = GROUP / p->block;
    n = n < TASKS_MAX ? n : TASKS_MAX;
    n = n < p->njobs / PARTS ? n : p->njobs / PARTS;
    return n ? (unsigned)n : 1;
}

static tnf_status place_groups(tnf_load *l, unsigned n, unsigned threads, tnf_error *e)
{
    tnf_ring *r = l->ring;
    r->size = l->plan.block * r->tasks;
    r->stride = r->size + (l->plan.small ? l->ntargets * TNF_TABLE(GROUP_ROWS) : 0);
    TNF_TRY(tnf_buffer_ready(l, r->stride, n, threads, e));
    for (; r->n < n; r->n++) {
        group *g = &r->groups[r->n];
        g->memory = l->buffer->memory + r->n * r->stride;
        atomic_init(&g->unread, count_tasks(l, r->n));
    }
    return TNF_OK;
}

/* Takes the queues of target t, with n events each. */
static tnf_status take_queues(tnf_load *l, size_t t, unsigned n, tnf_error *e)
{
    tnf_ring *r = l->ring;
    tnf_device *d = l->targets[t].device;
    TNF_TRY(tnf_queue_take(&r->copies[t], d, n, false, e));
    r->ncopies++;
    if (!l->targets[t].scatter && !l->plan.computes)
        r->kernels[t] = r->copies[t];
    else
        TNF_TRY(tnf_queue_take(&r->kernels[t], d, n, true, e));
    r->nkernels++;
    return tnf_target_stage(l, t, r->kernels[t], n * r->stride, e);
}

tnf_status tnf_ring_begin(tnf_load *l, unsigned threads, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_ring *r = l->ring = tnf_alloc0(&a, sizeof *r);
    if (!r)
        return tnf_no_memory("a load", e);
    r->tasks = choose_tasks(&l->plan);
    unsigned n = threads * l->how.slots / r->tasks;
    n = n < 2 ? 2 : n > GROUPS_MAX ? GROUPS_MAX : n;
    TNF_TRY(place_groups(l, n, threads, e));
    for (size_t t = 0; t < l->ntargets; t++)
        TNF_TRY(take_queues(l, t, n, e));
    return tnf_queues_follow(l, r->copies, e);
}

/* Kernels wait for copies, so copies are drained first. */
void tnf_ring_end(tnf_load *l)
{
    tnf_ring *r = l->ring;
    for (; r && r->ncopies > 0; r->ncopies--) {
        size_t t = r->ncopies - 1;
        tnf_device *d = l->targets[t].device;
        bool own_kernels = t < r->nkernels && r->kernels[t] != r->copies[t];
        tnf_queue_end(d, r->copies[t]);
        if (own_kernels)
            tnf_queue_end(d, r->kernels[t]);
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

/* The offset of task `place` in the memory of a group, whose first task is `first`. */
static size_t find_place(const tnf_load_plan *p, size_t first, size_t place)
{
    size_t at = 0;
    for (size_t k = 0; k < place; k++)
        at += (size_t)p->tasks[first + k].bytes;
    return at;
}

/* Waits until the tasks of a sent group are on the devices. Then its memory is free for the next
 * round. */
static tnf_status end_group(tnf_loader *o, group *g, tnf_error *e)
{
    tnf_load *l = o->load;
    tnf_ring *r = l->ring;
    size_t index = (size_t)(g - r->groups), all = atomic_load(&g->round) * r->n + index;
    for (size_t t = 0; t < r->nkernels; t++) {
        tnf_device *d = l->targets[t].device;
        TNF_TRY(tnf_device_enter(d, e));
        tnf_status status = tnf_queue_await(d, r->kernels[t], (unsigned)index, e);
        tnf_device_leave(d);
        TNF_TRY(status);
    }
    for (unsigned k = 0; k < count_tasks(l, all); k++) {
        const tnf_load_task *task = &l->plan.tasks[all * r->tasks + k];
        TNF_TRY(tnf_load_task_arrived(o, task, task->bytes, e));
    }
    atomic_store(&g->unread, count_tasks(l, all + r->n));
    atomic_fetch_add(&g->round, 1);
    return TNF_OK;
}

/* Waits until the group's memory is free for a round. One of the waiting threads waits for the
 * device. The others sleep, since polling would slow down the threads that read. */
static tnf_status await_round(tnf_loader *o, group *g, size_t round, tnf_error *e)
{
    tnf_load *l = o->load;
    uint64_t from = tnf_now();
    while (atomic_load(&g->round) < round) {
        if (atomic_load(&l->stop))
            return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "loading was cancelled");
        if (atomic_exchange(&g->sent, false))
            TNF_TRY(end_group(o, g, e));
        else
            nanosleep(&(struct timespec) { .tv_nsec = NAP }, NULL);
    }
    o->clock.waiting += tnf_now() - from;
    return TNF_OK;
}

/* The area of a group, for target t. */
static tnf_area group_area(const tnf_load *l, const group *g, size_t t)
{
    const tnf_ring *r = l->ring;
    return tnf_area_at(l, r->kernels[t], g->memory, (size_t)(g - r->groups) * r->stride,
                       r->size + t * TNF_TABLE(GROUP_ROWS), GROUP_ROWS);
}

static tnf_status send_group(tnf_loader *o, group *g, size_t first, tnf_error *e)
{
    const tnf_load *l = o->load;
    const tnf_ring *r = l->ring;
    uint64_t from = tnf_now();
    for (size_t t = 0; t < r->nkernels; t++) {
        tnf_copier c = { .o = o,
                         .target = &l->targets[t],
                         .copies = r->copies[t],
                         .kernels = r->kernels[t],
                         .event = (unsigned)(g - r->groups),
                         .area = group_area(l, g, t) };
        TNF_TRY(tnf_copy_tasks(&c, &l->plan.tasks[first], count_tasks(l, first / r->tasks),
                               g->memory, e));
    }
    atomic_store(&g->sent, true);
    if (!o->clock.first_sent)
        o->clock.first_sent = from;
    o->clock.last_sent = tnf_now();
    o->clock.sending += o->clock.last_sent - from;
    return TNF_OK;
}

tnf_status tnf_ring_run(tnf_loader *o, size_t i, tnf_error *e)
{
    tnf_load *l = o->load;
    tnf_ring *r = l->ring;
    size_t all = i / r->tasks, place = i % r->tasks;
    group *g = &r->groups[all % r->n];
    const uint8_t *bytes;
    TNF_TRY(await_round(o, g, all / r->n, e));
    uint8_t *room = g->memory + find_place(&l->plan, i - place, place);
    TNF_TRY(tnf_load_task_read(o, &l->plan.tasks[i], room, &bytes, e));
    if (!o->clock.first_read)
        o->clock.first_read = tnf_now();
    bool last = atomic_fetch_sub(&g->unread, 1) == 1;
    return last ? send_group(o, g, i - place, e) : TNF_OK;
}

/* If another thread sends a group later, that thread waits for it. */
tnf_status tnf_ring_arrive(tnf_loader *o, tnf_error *e)
{
    tnf_ring *r = o->load->ring;
    for (unsigned i = 0; i < r->n; i++)
        if (atomic_exchange(&r->groups[i].sent, false))
            TNF_TRY(end_group(o, &r->groups[i], e));
    return TNF_OK;
}
