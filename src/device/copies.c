/* SPDX-License-Identifier: MIT */
/* From a slot to the tensors on a device. */
#include "device/kernel.h"
#include "device/loader.h"

/* Bytes [*low, *high) of piece i that a block holds, counted from the piece's begin. */
void tnf_piece_window(const tnf_plan *p, const tnf_job *job, size_t i, uint64_t *low,
                      uint64_t *high)
{
    const tnf_piece *x = &p->pieces[i];
    uint64_t end = job->at + job->bytes;
    *low = job->at > x->at ? job->at - x->at : 0;
    *high = end < x->at + x->span ? end - x->at : x->span;
}

tnf_status tnf_copies_flush(tnf_copier *c, tnf_error *e)
{
    uint64_t n = c->n;
    c->n = 0;
    if (n == 0)
        return TNF_OK;
    c->o->copies++;
    return tnf_copy_to(c->device, c->queue, c->dst, c->src, (size_t)n, e);
}

static tnf_status add_copy(tnf_copier *c, uintptr_t block, uint8_t *dst, const uint8_t *src,
                           const tnf_stroke *s, tnf_error *e)
{
    if (s->height > 1) {
        TNF_TRY(tnf_copies_flush(c, e));
        c->o->copies++;
        return tnf_copy_rows(c->device, c->queue, dst, src, (size_t)s->width, (size_t)s->height,
                             (size_t)s->pitch, e);
    }
    if (c->n && c->src + c->n == src && c->dst + c->n == dst && block && block == c->block) {
        c->n += s->width;
        return TNF_OK;
    }
    TNF_TRY(tnf_copies_flush(c, e));
    c->src = src;
    c->dst = dst;
    c->n = s->width;
    c->block = block;
    return TNF_OK;
}

/* A block that kernels read goes to the device's staging memory as a whole. */
static tnf_status stage_block(tnf_copier *c, const tnf_job *job, const uint8_t *bytes,
                              cu_ptr *staged, tnf_error *e)
{
    tnf_load *l = c->o->load;
    bool needed = false;
    for (size_t i = job->first; i < job->first + job->npieces && !needed; i++)
        needed = l->plan.wants[l->plan.pieces[i].want].kernel != NULL;
    *staged = 0;
    if (!needed)
        return TNF_OK;
    size_t share = l->buffer->slot;
    TNF_TRY(tnf_queue_stage(c->device, c->queue, share * l->how.slots, e));
    *staged = c->queue->staging + share * c->o->slot;
    c->o->copies++;
    return tnf_copy_to(c->device, c->queue, (void *)(uintptr_t)*staged, bytes, (size_t)job->bytes,
                       e);
}

/* Piece i of a block, whose bytes are in `bytes` and perhaps at `staged` of the device. */
static tnf_status copy_piece(tnf_copier *c, const tnf_target *t, const tnf_job *job, size_t i,
                             const uint8_t *bytes, cu_ptr staged, tnf_error *e)
{
    const tnf_plan *p = &c->o->load->plan;
    const tnf_piece *x = &p->pieces[i];
    const tnf_want *w = &p->wants[x->want];
    tnf_stroke strokes[3];
    uint64_t low, high;
    tnf_piece_window(p, job, i, &low, &high);
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
static size_t fill_table(const tnf_copier *c, const tnf_target *t, const tnf_job *job,
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
        tnf_piece_window(p, job, i, &low, &high);
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
static tnf_status scatter_block(tnf_copier *c, const tnf_target *t, const tnf_job *job,
                                const uint8_t *bytes, bool *done, tnf_error *e)
{
    size_t share = c->o->load->buffer->slot, last = share - TNF_TABLE;
    uint8_t *table = tnf_slot_memory(c->o) + last;
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

tnf_status tnf_copy_job(tnf_copier *c, const tnf_target *t, const tnf_job *job,
                        const uint8_t *bytes, tnf_error *e)
{
    const tnf_plan *p = &c->o->load->plan;
    tnf_stroke all = { 0, 0, job->bytes, 1, job->bytes };
    if (job->kind == TNF_JOB_BLOCK) {
        for (size_t i = job->first; i < job->first + job->npieces; i++)
            TNF_TRY(copy_piece(c, t, job, i, bytes, 0, e));
        return TNF_OK;
    }
    const tnf_piece *x = &p->pieces[job->first];
    bool runs = job->kind == TNF_JOB_GATHER;
    uint8_t *dst = runs ? (uint8_t *)t->at[x->want] + x->to + job->at * x->run
                        : (uint8_t *)t->at[job->first] + job->at;
    return add_copy(c, runs ? t->block[x->want] : 0, dst, bytes, &all, e);
}

/* A block with pieces for kernels. */
static tnf_status copy_staged(tnf_copier *c, const tnf_target *t, const tnf_job *job,
                              const uint8_t *bytes, tnf_error *e)
{
    cu_ptr staged;
    TNF_TRY(stage_block(c, job, bytes, &staged, e));
    for (size_t i = job->first; i < job->first + job->npieces; i++)
        TNF_TRY(copy_piece(c, t, job, i, bytes, staged, e));
    return TNF_OK;
}

tnf_status tnf_copy_slot(tnf_copier *c, const tnf_target *t, const uint8_t *bytes,
                         const tnf_flight *f, tnf_error *e)
{
    const tnf_job *job = f->job;
    bool done = false;
    if (job->kind == TNF_JOB_SCAN) {
        tnf_stroke some = { 0, 0, f->bytes, 1, f->bytes };
        uint8_t *dst = (uint8_t *)t->at[job->first] + job->at + c->o->scanned;
        TNF_TRY(add_copy(c, 0, dst, bytes, &some, e));
        return tnf_copies_flush(c, e);
    }
    if (job->kind == TNF_JOB_BLOCK && t->scatter)
        TNF_TRY(scatter_block(c, t, job, bytes, &done, e));
    if (!done)
        TNF_TRY(job->kind == TNF_JOB_BLOCK ? copy_staged(c, t, job, bytes, e)
                                           : tnf_copy_job(c, t, job, bytes, e));
    return tnf_copies_flush(c, e);
}
