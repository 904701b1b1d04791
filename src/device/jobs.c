/* SPDX-License-Identifier: MIT */
/* The jobs of a load: read into a slot, given memory on the devices, and counted when they are
 * there. */
#include "device/loader.h"

/* ---------------------------------------------------------------- reading */

/* The runs stand without gaps in the slot: to the device they are one copy. */
static tnf_status read_runs(const tnf_plan *p, const tnf_job *job, uint8_t *slot, tnf_error *e)
{
    const tnf_piece *x = &p->pieces[job->first];
    const tnf_intake *in = &p->intakes[p->wants[x->want].intake];
    for (uint64_t i = 0; i < job->bytes / x->run; i++) {
        uint64_t at = x->at + (job->at + i) * x->stride;
        tnf_status status = tnf_source_read(in->source, at, slot + i * x->run, (size_t)x->run, e);
        if (status != TNF_OK && in->label)
            tnf_error_prefix(e, in->label);
        TNF_TRY(status);
    }
    return TNF_OK;
}

tnf_status tnf_job_read(tnf_loader *o, const tnf_job *job, uint8_t *slot, const uint8_t **out,
                        tnf_error *e)
{
    const tnf_plan *p = &o->load->plan;
    size_t n = (size_t)job->bytes;
    *out = slot;
    if (job->kind == TNF_JOB_BLOCK)
        TNF_TRY(tnf_intake_read(&p->intakes[p->wants[p->pieces[job->first].want].intake], job->at,
                                n, slot, out, e));
    else if (job->kind == TNF_JOB_GATHER)
        TNF_TRY(read_runs(p, job, slot, e));
    else
        TNF_TRY(tnf_read_part(p->wants[job->first].part, job->at, slot, n, e));
    o->bytes_read += job->bytes;
    return TNF_OK;
}

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

static void credit_block(tnf_load *l, const tnf_job *job)
{
    for (size_t i = job->first; i < job->first + job->npieces; i++) {
        tnf_stroke strokes[3];
        uint64_t low, high, bytes = 0;
        tnf_piece_window(&l->plan, job, i, &low, &high);
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

tnf_status tnf_job_arrived(tnf_loader *o, const tnf_job *job, uint64_t bytes, tnf_error *e)
{
    tnf_load *l = o->load;
    switch (job->kind) {
    case TNF_JOB_BLOCK:
        credit_block(l, job);
        break;
    case TNF_JOB_GATHER:
        credit_want(l, l->plan.pieces[job->first].want, bytes);
        break;
    default:
        credit_want(l, job->first, bytes);
    }
    return tell_progress(l, bytes, e);
}

/* ----------------------------------------------------------------- memory */

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
static tnf_status await_memory(tnf_loader *o, const tnf_job *job, tnf_error *e)
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

tnf_status tnf_job_await(tnf_loader *o, const tnf_job *job, tnf_error *e)
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
