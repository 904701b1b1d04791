/* SPDX-License-Identifier: MIT */
/* What one thread of a load does: it takes the next job, reads its bytes into a slot of its own
 * pinned buffer and has them copied to every device while it reads the next one into another slot.
 *
 *   slot 0   read ▓▓▓▓▓ copy ░░           read ▓▓▓▓▓ copy ░░
 *   slot 1             read ▓▓▓▓▓ copy ░░           read ▓▓▓▓▓ …
 *
 * There is no queue between threads and no lock on the way. A slot is read into only after the
 * event behind its last copy. */
#include "device/kernel.h"
#include "device/load.h"

#include <string.h>
#include <time.h>

/* What is on its way from a slot. */
struct flight {
    const tnf_job *job; /* NULL: nothing */
    uint64_t bytes;     /* of a job that is read in order: this much of it */
};

struct loader {
    tnf_load *load;
    tnf_buffer *buffer;
    tnf_queue **queues; /* one of each target */
    size_t nqueues;
    struct flight flights[TNF_SLOTS_MAX];
    unsigned slot;
    uint64_t bytes_read, copies;
    bool placed; /* it has seen that all memory is there */
    tnf_load_clock clock;
    /* of a job that is read in order: where it is, and what is in the slot */
    const tnf_job *scan;
    uint64_t scanned;
    size_t filled;
};

/* -------------------------------------------------------------- arrivals */

static void wake_waiting(tnf_load *l)
{
    pthread_mutex_lock(&l->lock);
    if (l->waiting)
        pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void credit_want(tnf_load *l, size_t want, uint64_t bytes)
{
    if (bytes && atomic_fetch_sub(&l->plan.wants[want].left, bytes) == bytes) {
        atomic_fetch_sub(&l->undone, 1);
        wake_waiting(l);
    }
}

/* Bytes [*low, *high) of piece i that a block holds, counted from the piece's begin. */
static void piece_window(const tnf_plan *p, const tnf_job *job, size_t i, uint64_t *low,
                         uint64_t *high)
{
    const tnf_piece *x = &p->pieces[i];
    uint64_t end = job->at + job->bytes;
    *low = job->at > x->at ? job->at - x->at : 0;
    *high = end < x->at + x->span ? end - x->at : x->span;
}

static void credit_block(tnf_load *l, const tnf_job *job)
{
    for (size_t i = job->first; i < job->first + job->npieces; i++) {
        tnf_stroke strokes[3];
        uint64_t low, high, bytes = 0;
        piece_window(&l->plan, job, i, &low, &high);
        for (unsigned k = tnf_piece_strokes(&l->plan.pieces[i], low, high, strokes); k-- > 0;)
            bytes += strokes[k].width * strokes[k].height;
        credit_want(l, l->plan.pieces[i].want, bytes);
    }
}

static tnf_status tell_progress(tnf_load *l, uint64_t bytes, tnf_error *e)
{
    bool go_on = true;
    if (!l->how.progress)
        return TNF_OK;
    pthread_mutex_lock(&l->lock);
    l->progress += bytes;
    go_on = l->how.progress(l->how.ctx, l->progress, l->plan.source_bytes);
    pthread_mutex_unlock(&l->lock);
    return go_on ? TNF_OK : tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "loading was cancelled");
}

/* The copies of a slot are over. */
static tnf_status arrive(struct loader *o, struct flight f, tnf_error *e)
{
    tnf_load *l = o->load;
    switch (f.job->kind) {
    case TNF_JOB_BLOCK:
        credit_block(l, f.job);
        break;
    case TNF_JOB_GATHER:
        credit_want(l, l->plan.pieces[f.job->first].want, f.bytes);
        break;
    default:
        credit_want(l, f.job->first, f.bytes);
    }
    return tell_progress(l, f.bytes, e);
}

/* Waits until a slot may be read into. */
static tnf_status free_slot(struct loader *o, unsigned slot, tnf_error *e)
{
    struct flight f = o->flights[slot];
    uint64_t from = tnf_load_now();
    if (!f.job)
        return TNF_OK;
    for (size_t t = 0; t < o->nqueues; t++) {
        tnf_device *d = o->load->targets[t].device;
        TNF_TRY(tnf_device_enter(d, e));
        tnf_status status = tnf_queue_await(d, o->queues[t], slot, e);
        tnf_device_leave(d);
        TNF_TRY(status);
    }
    o->flights[slot].job = NULL;
    o->clock.waiting += tnf_load_now() - from;
    return arrive(o, f, e);
}

static uint8_t *slot_memory(const struct loader *o)
{
    return o->buffer->memory + o->slot * o->buffer->slot;
}

/* ----------------------------------------------------------------- copies */

/* Copies onto one device; those that touch each other on both sides wait to become one. */
struct copier {
    struct loader *o;
    tnf_device *device;
    tnf_queue *queue;
    const uint8_t *src;
    uint8_t *dst;
    uint64_t n;
    uintptr_t block; /* of dst */
};

static tnf_status flush_copies(struct copier *c, tnf_error *e)
{
    uint64_t n = c->n;
    c->n = 0;
    if (n == 0)
        return TNF_OK;
    c->o->copies++;
    return tnf_copy_to(c->device, c->queue, c->dst, c->src, (size_t)n, e);
}

static tnf_status add_copy(struct copier *c, uintptr_t block, uint8_t *dst, const uint8_t *src,
                           const tnf_stroke *s, tnf_error *e)
{
    if (s->height > 1) {
        TNF_TRY(flush_copies(c, e));
        c->o->copies++;
        return tnf_copy_rows(c->device, c->queue, dst, src, (size_t)s->width, (size_t)s->height,
                             (size_t)s->pitch, e);
    }
    if (c->n && c->src + c->n == src && c->dst + c->n == dst && block && block == c->block) {
        c->n += s->width;
        return TNF_OK;
    }
    TNF_TRY(flush_copies(c, e));
    c->src = src;
    c->dst = dst;
    c->n = s->width;
    c->block = block;
    return TNF_OK;
}

/* A block that kernels read goes to the device's staging memory as a whole. */
static tnf_status stage_block(struct copier *c, const tnf_job *job, const uint8_t *bytes,
                              cu_ptr *staged, tnf_error *e)
{
    tnf_load *l = c->o->load;
    bool needed = false;
    for (size_t i = job->first; i < job->first + job->npieces && !needed; i++)
        needed = l->plan.wants[l->plan.pieces[i].want].kernel != NULL;
    *staged = 0;
    if (!needed)
        return TNF_OK;
    size_t share = c->o->buffer->slot;
    TNF_TRY(tnf_queue_stage(c->device, c->queue, share * l->how.slots, e));
    *staged = c->queue->staging + share * c->o->slot;
    c->o->copies++;
    return tnf_copy_to(c->device, c->queue, (void *)(uintptr_t)*staged, bytes, (size_t)job->bytes,
                       e);
}

/* Piece i of a block, whose bytes are in `bytes` and perhaps at `staged` of the device. */
static tnf_status copy_piece(struct copier *c, const tnf_target *t, const tnf_job *job, size_t i,
                             const uint8_t *bytes, cu_ptr staged, tnf_error *e)
{
    const tnf_plan *p = &c->o->load->plan;
    const tnf_piece *x = &p->pieces[i];
    const tnf_want *w = &p->wants[x->want];
    tnf_stroke strokes[3];
    uint64_t low, high;
    piece_window(p, job, i, &low, &high);
    uint64_t from = x->at + low - job->at;
    uint8_t *dst = t->at[x->want];
    if (w->kernel)
        return tnf_kernel_run(w, c->device, c->queue, dst, staged + from, x->to + low, high - low,
                              e);
    unsigned n = tnf_piece_strokes(x, low, high, strokes);
    for (unsigned k = 0; k < n; k++)
        TNF_TRY(add_copy(c, t->block[x->want], dst + strokes[k].to, bytes + from + strokes[k].from,
                         &strokes[k], e));
    return TNF_OK;
}

/* The table of a block's tensors, at the end of its slot: the number of its rows, 0 if they are too
 * many or if there is more to do than to copy them. */
static size_t fill_table(const struct copier *c, const tnf_target *t, const tnf_job *job,
                         uint64_t *table, uint64_t *chunks)
{
    const tnf_plan *p = &c->o->load->plan;
    size_t n = 0;
    *chunks = 0;
    if (job->npieces < 8 || job->npieces > TNF_TABLE_ROWS)
        return 0;
    for (size_t i = job->first; i < job->first + job->npieces; i++) {
        const tnf_piece *x = &p->pieces[i];
        uint64_t low, high;
        if (x->run != x->span || p->wants[x->want].kernel)
            return 0;
        piece_window(p, job, i, &low, &high);
        table[4 * n] = *chunks;
        table[4 * n + 1] = x->at + low - job->at;
        table[4 * n + 2] = (uint64_t)(uintptr_t)t->at[x->want] + x->to + low;
        table[4 * n + 3] = high - low;
        *chunks += (high - low + 15) / 16;
        n++;
    }
    return *chunks ? n : 0;
}

/* A block of many small tensors as one copy. *done: it is on its way. */
static tnf_status scatter_block(struct copier *c, const tnf_target *t, const tnf_job *job,
                                const uint8_t *bytes, bool *done, tnf_error *e)
{
    size_t share = c->o->buffer->slot, last = share - TNF_TABLE;
    uint8_t *table = slot_memory(c->o) + last;
    uint64_t chunks;
    size_t n = fill_table(c, t, job, (uint64_t *)(void *)table, &chunks);
    *done = false;
    if (n == 0 || tnf_queue_stage(c->device, c->queue, share * c->o->load->how.slots, NULL))
        return TNF_OK;
    cu_ptr staged = c->queue->staging + share * c->o->slot;
    c->o->copies += 2;
    TNF_TRY(
        tnf_copy_to(c->device, c->queue, (void *)(uintptr_t)staged, bytes, (size_t)job->bytes, e));
    TNF_TRY(tnf_copy_to(c->device, c->queue, (void *)(uintptr_t)(staged + last), table,
                        n * 4 * sizeof(uint64_t), e));
    *done = true;
    return tnf_kernel_scatter(c->device, c->queue, staged, staged + last, n, chunks, e);
}

static tnf_status copy_job(struct copier *c, const tnf_target *t, const tnf_job *job,
                           const uint8_t *bytes, const struct flight *f, tnf_error *e)
{
    const tnf_plan *p = &c->o->load->plan;
    tnf_stroke all = { 0, 0, f->bytes, 1, f->bytes };
    cu_ptr staged;
    bool done = false;
    if (job->kind == TNF_JOB_BLOCK && t->scatter)
        TNF_TRY(scatter_block(c, t, job, bytes, &done, e));
    if (done)
        return TNF_OK;
    if (job->kind == TNF_JOB_BLOCK) {
        TNF_TRY(stage_block(c, job, bytes, &staged, e));
        for (size_t i = job->first; i < job->first + job->npieces; i++)
            TNF_TRY(copy_piece(c, t, job, i, bytes, staged, e));
        return flush_copies(c, e);
    }
    uint8_t *dst;
    if (job->kind == TNF_JOB_GATHER)
        dst = (uint8_t *)t->at[p->pieces[job->first].want] + p->pieces[job->first].to +
              job->at * p->pieces[job->first].run;
    else
        dst = (uint8_t *)t->at[job->first] + job->at +
              (job->kind == TNF_JOB_SCAN ? c->o->scanned : 0);
    TNF_TRY(add_copy(c, 0, dst, bytes, &all, e));
    return flush_copies(c, e);
}

/* Is the memory of a job's tensors there? The load is locked. */
static bool job_placed(const tnf_load *l, const tnf_job *job)
{
    void *const *at = l->targets[0].at;
    if (l->placed || !l->early || !at)
        return l->placed;
    if (job->kind == TNF_JOB_PART || job->kind == TNF_JOB_SCAN)
        return at[job->first] != NULL;
    for (size_t i = job->first; i < job->first + job->npieces; i++)
        if (!at[l->plan.pieces[i].want])
            return false;
    return true;
}

/* The caller's thread allocates while the first blocks are read. */
static tnf_status await_memory(struct loader *o, const tnf_job *job, tnf_error *e)
{
    tnf_load *l = o->load;
    bool there;
    pthread_mutex_lock(&l->lock);
    while (!(there = job_placed(l, job)) && l->status == TNF_OK)
        pthread_cond_wait(&l->changed, &l->lock);
    o->placed = l->placed;
    pthread_mutex_unlock(&l->lock);
    return there ? TNF_OK : tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "loading was cancelled");
}

static tnf_status wait_ready(struct loader *o, const tnf_job *job, tnf_error *e)
{
    TNF_TRY(await_memory(o, job, e));
    for (size_t t = 0; t < o->nqueues; t++) {
        const tnf_target *target = &o->load->targets[t];
        tnf_device *d = target->device;
        if (!target->ready)
            continue;
        TNF_TRY(tnf_device_enter(d, e));
        cu_result r = d->cuda->stream_wait(o->queues[t]->stream, target->ready, 0);
        tnf_device_leave(d);
        if (r)
            return tnf_cuda_fail(d->cuda, r, "cannot wait for the caller's stream", e);
    }
    return TNF_OK;
}

/* Sends what is in the slot on its way, and goes to the next slot. */
static tnf_status send_slot(struct loader *o, const tnf_job *job, const uint8_t *bytes, uint64_t n,
                            tnf_error *e)
{
    struct flight f = { job, n };
    tnf_status status = TNF_OK;
    uint64_t from = tnf_load_now();
    if (!o->clock.first_read)
        o->clock.first_read = from;
    if (!o->placed)
        TNF_TRY(wait_ready(o, job, e));
    for (size_t t = 0; t < o->nqueues && status == TNF_OK; t++) {
        const tnf_target *target = &o->load->targets[t];
        struct copier c = { .o = o, .device = target->device, .queue = o->queues[t] };
        TNF_TRY(tnf_device_enter(c.device, e));
        status = copy_job(&c, target, job, bytes, &f, e);
        if (status == TNF_OK)
            status = tnf_queue_mark(c.device, c.queue, o->slot, e);
        tnf_device_leave(c.device);
    }
    TNF_TRY(status);
    o->flights[o->slot] = f;
    o->clock.last_sent = tnf_load_now();
    o->clock.sending += o->clock.last_sent - from;
    if (!o->clock.first_sent)
        o->clock.first_sent = from;
    o->slot = (o->slot + 1) % o->load->how.slots;
    return TNF_OK;
}

/* ------------------------------------------------------------------- jobs */

static tnf_status run_block(struct loader *o, const tnf_job *job, tnf_error *e)
{
    const tnf_plan *p = &o->load->plan;
    const tnf_intake *in = &p->intakes[p->wants[p->pieces[job->first].want].intake];
    const uint8_t *bytes;
    TNF_TRY(tnf_intake_read(in, job->at, (size_t)job->bytes, slot_memory(o), &bytes, e));
    o->bytes_read += job->bytes;
    return send_slot(o, job, bytes, job->bytes, e);
}

/* The runs stand without gaps in the slot: to the device they are one copy. */
static tnf_status run_gather(struct loader *o, const tnf_job *job, tnf_error *e)
{
    const tnf_plan *p = &o->load->plan;
    const tnf_piece *x = &p->pieces[job->first];
    const tnf_intake *in = &p->intakes[p->wants[x->want].intake];
    uint8_t *slot = slot_memory(o);
    for (uint64_t i = 0; i < job->bytes / x->run; i++) {
        uint64_t at = x->at + (job->at + i) * x->stride;
        tnf_status status = tnf_source_read(in->source, at, slot + i * x->run, (size_t)x->run, e);
        if (status != TNF_OK && in->label)
            tnf_error_prefix(e, in->label);
        TNF_TRY(status);
    }
    o->bytes_read += job->bytes;
    return send_slot(o, job, slot, job->bytes, e);
}

static tnf_status run_part(struct loader *o, const tnf_job *job, tnf_error *e)
{
    uint8_t *slot = slot_memory(o);
    const tnf_part *part = o->load->plan.wants[job->first].part;
    TNF_TRY(tnf_read_part(part, job->at, slot, (size_t)job->bytes, e));
    o->bytes_read += job->bytes;
    return send_slot(o, job, slot, job->bytes, e);
}

static tnf_status send_scanned(struct loader *o, tnf_error *e)
{
    uint64_t n = o->filled;
    if (n == 0)
        return TNF_OK;
    TNF_TRY(send_slot(o, o->scan, slot_memory(o), n, e));
    o->scanned += n;
    o->filled = 0;
    return free_slot(o, o->slot, e);
}

static tnf_status take_scanned(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct loader *o = ctx;
    const uint8_t *p = bytes;
    if (atomic_load(&o->load->stop))
        return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "loading was cancelled");
    for (size_t some; n > 0; p += some, n -= some) {
        size_t room = o->load->plan.block - o->filled;
        some = n < room ? n : room;
        memcpy(slot_memory(o) + o->filled, p, some);
        o->filled += some;
        if (o->filled == o->load->plan.block)
            TNF_TRY(send_scanned(o, e));
    }
    return TNF_OK;
}

static tnf_status run_scan(struct loader *o, const tnf_job *job, tnf_error *e)
{
    o->scan = job;
    o->scanned = 0;
    o->filled = 0;
    TNF_TRY(tnf_scan(o->load->plan.wants[job->first].part, take_scanned, o, e));
    TNF_TRY(send_scanned(o, e));
    o->bytes_read += job->bytes;
    return o->scanned == job->bytes
               ? TNF_OK
               : tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "a tensor came with fewer bytes than it has");
}

static tnf_status run_job(struct loader *o, const tnf_job *job, tnf_error *e)
{
    TNF_TRY(free_slot(o, o->slot, e));
    switch (job->kind) {
    case TNF_JOB_BLOCK:
        return run_block(o, job, e);
    case TNF_JOB_GATHER:
        return run_gather(o, job, e);
    case TNF_JOB_PART:
        return run_part(o, job, e);
    default:
        return run_scan(o, job, e);
    }
}

/* ------------------------------------------------------------- the thread */

static tnf_status begin_loader(struct loader *o, tnf_error *e)
{
    tnf_load *l = o->load;
    TNF_TRY(tnf_buffer_take(&o->buffer, l->targets[0].device, l->plan.block, l->how.slots, e));
    atomic_fetch_add(&l->pinned, o->buffer->size);
    for (; o->nqueues < l->ntargets; o->nqueues++)
        TNF_TRY(tnf_queue_take(&o->queues[o->nqueues], l->targets[o->nqueues].device, l->how.slots,
                               l->apart, e));
    return TNF_OK;
}

/* All that is on its way arrives, or the load has failed; then nothing is on its way either. */
static tnf_status end_loader(struct loader *o, tnf_status status, tnf_error *e)
{
    for (unsigned i = 0; i < o->load->how.slots && status == TNF_OK; i++)
        status = free_slot(o, (o->slot + i) % o->load->how.slots, e);
    for (size_t t = 0; t < o->nqueues; t++) {
        tnf_device *d = o->load->targets[t].device;
        tnf_error ignored;
        tnf_error *told = status == TNF_OK ? e : &ignored;
        tnf_status drained = tnf_device_enter(d, told);
        if (drained == TNF_OK) {
            drained = tnf_queue_drain(d, o->queues[t], told);
            tnf_device_leave(d);
        }
        status = status == TNF_OK ? drained : status;
        tnf_queue_give(d, o->queues[t]);
    }
    if (o->buffer)
        tnf_buffer_give(o->load->targets[0].device, o->buffer);
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

uint64_t tnf_load_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
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

/* What one thread adds, which began and had its memory pinned at these times. */
static void note_times(tnf_load_clock *all, const tnf_load_clock *one, uint64_t begun,
                       uint64_t pinned)
{
    uint64_t now = tnf_load_now();
    keep_first(&all->first_pinned, pinned);
    keep_last(&all->last_pinned, pinned);
    keep_first(&all->first_read, one->first_read);
    keep_first(&all->first_sent, one->first_sent);
    keep_last(&all->last_sent, one->last_sent);
    keep_last(&all->ended, now);
    all->pinning += pinned - begun;
    all->sending += one->sending;
    all->waiting += one->waiting;
    all->reading += now - pinned - one->sending - one->waiting;
}

void *tnf_loader_run(void *load)
{
    tnf_load *l = load;
    tnf_queue *queues[TNF_TARGETS_MAX] = { NULL };
    struct loader o = { .load = l, .queues = queues };
    tnf_error error = { .offset = TNF_NO_OFFSET };
    if (l->targets[0].device->has_cpus)
        tnf_numa_bind(&l->targets[0].device->cpus);
    uint64_t from = tnf_load_now();
    tnf_status status = begin_loader(&o, &error);
    uint64_t pinned = tnf_load_now();
    while (status == TNF_OK && !atomic_load_explicit(&l->stop, memory_order_relaxed)) {
        size_t i = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
        if (i >= l->plan.njobs)
            break;
        status = run_job(&o, &l->plan.jobs[i], &error);
    }
    status = end_loader(&o, status, &error);
    if (status != TNF_OK)
        tnf_load_fail(l, status, &error);
    atomic_fetch_add(&l->bytes_read, o.bytes_read);
    atomic_fetch_add(&l->copies, o.copies);
    pthread_mutex_lock(&l->lock);
    note_times(&l->clock, &o.clock, from, pinned);
    l->running--;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}
