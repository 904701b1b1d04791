/* SPDX-License-Identifier: MIT */
/* Copies from pinned memory to the tensors on a device. Bytes without a kernel go directly to their
 * places. Bytes for kernels go to staging memory of the device, from which the kernels read when
 * all have arrived:
 *
 *   pinned    │ a │ b b b │ k k k │ s s s │      a, b: unchanged; k: computed; s: small tensors
 *   device      a   b b b   k k k   s s s
 *               │     │     └─kernel─> k     └─kernel and its table─> s, s, s
 */
#include "device/kernel.h"
#include "device/loader.h"

#define LEAST_ROWS 8u /* fewer tensors of a block are copied without a kernel */

/* The bytes [*low, *high) of piece i that are in a block, relative to the piece. */
void tnf_load_piece_window(const tnf_load_plan *p, const tnf_load_task *task, size_t i,
                           uint64_t *low, uint64_t *high)
{
    const tnf_load_piece *x = &p->pieces[i];
    uint64_t end = task->at + task->bytes;
    *low = task->at > x->at ? task->at - x->at : 0;
    *high = end < x->at + x->span ? end - x->at : x->span;
}

/* ----------------------------------------------------------------- copies */

static tnf_status flush_copies(tnf_copier *c, tnf_error *e)
{
    uint64_t n = c->n;
    c->n = 0;
    if (n == 0)
        return TNF_OK;
    c->o->copies++;
    return tnf_copy_to(c->target->device, c->copies, c->dst, c->src, (size_t)n, e);
}

/* Joins copies that are adjacent in both memories. A joined copy waits until it is flushed. */
static tnf_status add_copy(tnf_copier *c, uintptr_t block, uint8_t *dst, const uint8_t *src,
                           const tnf_rectangle *s, tnf_error *e)
{
    if (s->height > 1) {
        TNF_TRY(flush_copies(c, e));
        c->o->copies++;
        return tnf_copy_rows(c->target->device, c->copies, dst, src, (size_t)s->width,
                             (size_t)s->height, (size_t)s->pitch, e);
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

/* Copies piece i of a block whose bytes are at `bytes`. */
static tnf_status copy_piece(tnf_copier *c, const tnf_load_task *task, size_t i,
                             const uint8_t *bytes, tnf_error *e)
{
    const tnf_load_plan *p = &c->o->load->plan;
    const tnf_load_piece *x = &p->pieces[i];
    tnf_rectangle rectangles[3];
    uint64_t low, high;
    tnf_load_piece_window(p, task, i, &low, &high);
    const uint8_t *from = bytes + (x->at + low - task->at);
    uint8_t *dst = c->target->at[x->tensor];
    unsigned n = tnf_load_piece_rectangles(x, low, high, rectangles);
    for (unsigned k = 0; k < n; k++)
        TNF_TRY(add_copy(c, c->target->block[x->tensor], dst + rectangles[k].to,
                         from + rectangles[k].from, &rectangles[k], e));
    return TNF_OK;
}

/* ------------------------------------------------------------------ staged */

tnf_area tnf_area_at(const tnf_load *l, const tnf_queue *q, uint8_t *memory, size_t at,
                     size_t table, size_t most_rows)
{
    tnf_area area = { .memory = memory };
    if (q->staging)
        area.staged = q->staging + at;
    if (q->staging && l->plan.small) {
        area.table = (uint64_t *)(void *)(memory + table);
        area.staged_table = area.staged + table;
        area.most_rows = most_rows;
    }
    return area;
}

/* The address of bytes of the area in staging memory, for kernels. */
static cu_ptr staged_at(const tnf_copier *c, const uint8_t *bytes)
{
    return c->area.staged + (cu_ptr)(bytes - c->area.memory);
}

static tnf_status stage_task(tnf_copier *c, const tnf_load_task *task, const uint8_t *bytes,
                             tnf_error *e)
{
    tnf_rectangle all = { 0, 0, task->bytes, 1, task->bytes };
    return add_copy(c, (uintptr_t)c->area.staged, (uint8_t *)(uintptr_t)staged_at(c, bytes), bytes,
                    &all, e);
}

static bool has_kernel(const tnf_load_plan *p, const tnf_load_task *task)
{
    for (size_t i = task->first; i < task->first + task->npieces; i++)
        if (p->tensors[p->pieces[i].tensor].kernel)
            return true;
    return false;
}

/* Does the block have many tensors, and does the table have room for them? */
static bool fits_table(const tnf_copier *c, const tnf_load_task *task)
{
    const tnf_load_plan *p = &c->o->load->plan;
    if (!c->target->scatter || task->npieces < LEAST_ROWS ||
        task->npieces > c->area.most_rows - c->rows)
        return false;
    for (size_t i = task->first; i < task->first + task->npieces; i++)
        if (p->pieces[i].run != p->pieces[i].span)
            return false;
    return true;
}

/* Adds the tensors of a block to the table. */
static void add_rows(tnf_copier *c, const tnf_load_task *task, const uint8_t *bytes)
{
    const tnf_load_plan *p = &c->o->load->plan;
    uint64_t at = (uint64_t)(bytes - c->area.memory);
    for (size_t i = task->first; i < task->first + task->npieces; i++) {
        const tnf_load_piece *x = &p->pieces[i];
        uint64_t low, high, *row = c->area.table + 4 * c->rows++;
        tnf_load_piece_window(p, task, i, &low, &high);
        row[0] = c->chunks;
        row[1] = at + x->at + low - task->at;
        row[2] = (uint64_t)(uintptr_t)c->target->at[x->tensor] + x->to + low;
        row[3] = high - low;
        c->chunks += (high - low + 15) / 16;
    }
}

/* A block that kernels read goes to staging memory as a whole. Its pieces without a kernel are
 * copied directly to their places. */
static tnf_status copy_block(tnf_copier *c, const tnf_load_task *task, const uint8_t *bytes,
                             tnf_error *e)
{
    const tnf_load_plan *p = &c->o->load->plan;
    bool kernels = has_kernel(p, task), scatter = !kernels && fits_table(c, task);
    if (kernels || scatter)
        TNF_TRY(stage_task(c, task, bytes, e));
    if (scatter) {
        add_rows(c, task, bytes);
        return TNF_OK;
    }
    for (size_t i = task->first; i < task->first + task->npieces; i++)
        if (!p->tensors[p->pieces[i].tensor].kernel)
            TNF_TRY(copy_piece(c, task, i, bytes, e));
    return TNF_OK;
}

static tnf_status copy_task(tnf_copier *c, const tnf_load_task *task, const uint8_t *bytes,
                            tnf_error *e)
{
    const tnf_target *t = c->target;
    tnf_rectangle all = { 0, 0, task->bytes, 1, task->bytes };
    if (task->kind == TNF_READ_BLOCK)
        return copy_block(c, task, bytes, e);
    if (task->kind == TNF_READ_PART)
        return add_copy(c, 0, (uint8_t *)t->at[task->first] + task->at, bytes, &all, e);
    const tnf_load_piece *x = &c->o->load->plan.pieces[task->first];
    return add_copy(c, t->block[x->tensor], (uint8_t *)t->at[x->tensor] + x->to + task->at * x->run,
                    bytes, &all, e);
}

/* ----------------------------------------------------------------- kernels */

static tnf_status flush_kernel(tnf_copier *c, tnf_error *e)
{
    const tnf_load_plan *p = &c->o->load->plan;
    uint64_t n = c->computed;
    c->computed = 0;
    return n ? tnf_kernel_run(&p->tensors[c->tensor], c->target->device, c->kernels,
                              c->target->at[c->tensor], c->from, c->at, n, e)
             : TNF_OK;
}

/* Joins adjacent pieces of a tensor into one call. */
static tnf_status add_kernel(tnf_copier *c, const tnf_load_task *task, size_t i,
                             const uint8_t *bytes, tnf_error *e)
{
    const tnf_load_plan *p = &c->o->load->plan;
    const tnf_load_piece *x = &p->pieces[i];
    uint64_t low, high;
    tnf_load_piece_window(p, task, i, &low, &high);
    cu_ptr from = staged_at(c, bytes) + (x->at + low - task->at);
    if (c->computed && c->tensor == x->tensor && c->from + c->computed == from &&
        c->at + c->computed == x->to + low) {
        c->computed += high - low;
        return TNF_OK;
    }
    TNF_TRY(flush_kernel(c, e));
    c->tensor = x->tensor;
    c->from = from;
    c->at = x->to + low;
    c->computed = high - low;
    return TNF_OK;
}

static tnf_status run_kernels(tnf_copier *c, const tnf_load_task *tasks, size_t n,
                              const uint8_t *bytes, tnf_error *e)
{
    const tnf_load_plan *p = &c->o->load->plan;
    if (c->rows)
        TNF_TRY(tnf_kernel_scatter(c->target->device, c->kernels, c->area.staged,
                                   c->area.staged_table, c->rows, c->chunks, e));
    for (size_t k = 0; k < n && p->computes; bytes += tasks[k++].bytes)
        for (size_t i = tasks[k].first;
             tasks[k].kind == TNF_READ_BLOCK && i < tasks[k].first + tasks[k].npieces; i++)
            if (p->tensors[p->pieces[i].tensor].kernel)
                TNF_TRY(add_kernel(c, &tasks[k], i, bytes, e));
    return flush_kernel(c, e);
}

/* -------------------------------------------------------------------- tasks */

static tnf_status copy_tasks(tnf_copier *c, const tnf_load_task *tasks, size_t n,
                             const uint8_t *bytes, tnf_error *e)
{
    tnf_device *d = c->target->device;
    const uint8_t *p = bytes;
    for (size_t k = 0; k < n; p += tasks[k++].bytes)
        TNF_TRY(copy_task(c, &tasks[k], p, e));
    TNF_TRY(flush_copies(c, e));
    if (c->rows) {
        c->o->copies++;
        TNF_TRY(tnf_copy_to(d, c->copies, (void *)(uintptr_t)c->area.staged_table, c->area.table,
                            c->rows * 4 * sizeof(uint64_t), e));
    }
    if (c->kernels != c->copies) {
        TNF_TRY(tnf_queue_mark(d, c->copies, c->event, e));
        TNF_TRY(tnf_queue_follow(d, c->kernels, c->copies, c->event, e));
    }
    TNF_TRY(run_kernels(c, tasks, n, bytes, e));
    return tnf_queue_mark(d, c->kernels, c->event, e);
}

tnf_status tnf_copy_tasks(tnf_copier *c, const tnf_load_task *tasks, size_t n, const uint8_t *bytes,
                          tnf_error *e)
{
    TNF_TRY(tnf_device_enter(c->target->device, e));
    tnf_status status = copy_tasks(c, tasks, n, bytes, e);
    tnf_device_leave(c->target->device);
    return status;
}

tnf_status tnf_copy_scanned(tnf_copier *c, const tnf_load_task *task, const uint8_t *bytes,
                            uint64_t n, tnf_error *e)
{
    tnf_device *d = c->target->device;
    uint8_t *dst = (uint8_t *)c->target->at[task->first] + task->at + c->o->scanned;
    TNF_TRY(tnf_device_enter(d, e));
    c->o->copies++;
    tnf_status status = tnf_copy_to(d, c->copies, dst, bytes, (size_t)n, e);
    if (status == TNF_OK)
        status = tnf_queue_mark(d, c->copies, c->event, e);
    tnf_device_leave(d);
    return status;
}
