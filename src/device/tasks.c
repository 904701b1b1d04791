/* SPDX-License-Identifier: MIT */
/* The tasks of a load: they are read into a slot, and counted when they are on the devices. */
#include "device/loader.h"

#include <unistd.h>

/* ---------------------------------------------------------------- reading */

/* With many short reads, each thread uses its own descriptor: threads that share one would contend
 * for its reference count in the kernel. */
static int own_descriptor(tnf_loader *o, const tnf_intake *in)
{
    if (o->own_of != in) {
        tnf_intake_give(o->own_fd);
        o->own_fd = tnf_intake_again(in);
        o->own_of = in;
    }
    return o->own_fd;
}

/* Reads runs without gaps into the slot, so that the device needs only one copy. */
static tnf_status read_runs(tnf_loader *o, const tnf_load_task *task, uint8_t *slot, tnf_error *e)
{
    const tnf_load_plan *p = &o->load->plan;
    const tnf_load_piece *x = &p->pieces[task->first];
    const tnf_intake *in = &p->intakes[p->tensors[x->tensor].intake];
    int fd = own_descriptor(o, in);
    for (uint64_t i = 0; i < task->bytes / x->run; i++) {
        uint64_t at = x->at + (task->at + i) * x->stride;
        uint8_t *dst = slot + i * x->run;
        if (fd >= 0 && pread(fd, dst, (size_t)x->run, (off_t)at) == (ssize_t)x->run)
            continue; /* otherwise the source reads the run, or reports the error */
        tnf_status status = tnf_source_read(in->source, at, dst, (size_t)x->run, e);
        if (status != TNF_OK && in->label)
            tnf_error_prefix(e, in->label);
        TNF_TRY(status);
    }
    return TNF_OK;
}

tnf_status tnf_load_task_read(tnf_loader *o, const tnf_load_task *task, uint8_t *slot,
                              const uint8_t **out, tnf_error *e)
{
    const tnf_load_plan *p = &o->load->plan;
    size_t n = (size_t)task->bytes;
    *out = slot;
    if (task->kind == TNF_READ_BLOCK)
        TNF_TRY(tnf_intake_read(&p->intakes[p->tensors[p->pieces[task->first].tensor].intake],
                                task->at, n, slot, out, e));
    else if (task->kind == TNF_READ_GATHER)
        TNF_TRY(read_runs(o, task, slot, e));
    else
        TNF_TRY(tnf_read_part(slot, n, p->tensors[task->first].part, task->at, e));
    o->bytes_read += task->bytes;
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

static void credit_tensor(tnf_load *l, size_t tensor, uint64_t bytes)
{
    if (bytes && atomic_fetch_sub(&l->plan.tensors[tensor].left, bytes) == bytes) {
        atomic_fetch_sub(&l->undone, 1);
        wake_waiting(l);
    }
}

static void credit_block(tnf_load *l, const tnf_load_task *task)
{
    for (size_t i = task->first; i < task->first + task->npieces; i++) {
        tnf_rectangle rectangles[3];
        uint64_t low, high, bytes = 0;
        tnf_load_piece_window(&l->plan, task, i, &low, &high);
        for (unsigned k = tnf_load_piece_rectangles(&l->plan.pieces[i], low, high, rectangles);
             k-- > 0;)
            bytes += rectangles[k].width * rectangles[k].height;
        credit_tensor(l, l->plan.pieces[i].tensor, bytes);
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

tnf_status tnf_load_task_arrived(tnf_loader *o, const tnf_load_task *task, uint64_t bytes,
                                 tnf_error *e)
{
    tnf_load *l = o->load;
    switch (task->kind) {
    case TNF_READ_BLOCK:
        credit_block(l, task);
        break;
    case TNF_READ_GATHER:
        credit_tensor(l, l->plan.pieces[task->first].tensor, bytes);
        break;
    default:
        credit_tensor(l, task->first, bytes);
    }
    return tell_progress(l, bytes, e);
}
