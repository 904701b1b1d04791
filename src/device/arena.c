/* SPDX-License-Identifier: MIT */
/* Allocates device memory for all tensors of a load.
 *
 *   slab   │a·····│b···│c·│d········│…      tensors at multiples of 256, in file order
 *
 * If the sizes of tensors are multiples of 256, tensors that are adjacent in the file are adjacent
 * here, too. Then one copy serves many tensors. */
#include "device/load.h"

#include "base/alloc.h"
#include "base/ckd.h"

#define ALIGN ((uint64_t)256)
#define SLAB  ((uint64_t)2 << 30) /* large, since each driver call takes a quarter of a ms */

/* The size of the slab that begins with order[i]; *end is the first tensor after it. */
static uint64_t measure_slab(const tnf_load_plan *p, size_t i, uint64_t most, size_t *end)
{
    uint64_t size = 0;
    for (; i < p->n; i++) {
        const tnf_load_tensor *w = &p->tensors[p->order[i]];
        uint64_t next = (size + ALIGN - 1) / ALIGN * ALIGN + w->bytes;
        if (w->dst || w->bytes == 0)
            continue;
        if (size && next > most)
            break;
        size = next;
    }
    *end = i;
    return size;
}

tnf_status tnf_target_check(tnf_target *t, const tnf_load_plan *p, const tnf_load_options *how,
                            tnf_error *e)
{
    tnf_device *d = t->device;
    uint64_t need = 0, there;
    if (how->allocate) /* the caller's allocator may reuse memory that the driver counts as used */
        return TNF_OK;
    for (size_t i = 0; i < p->n; i++)
        if (!p->tensors[i].dst &&
            (p->tensors[i].bytes > UINT64_MAX - 4 * ALIGN ||
             !tnf_ckd_add(&need, need, (p->tensors[i].bytes + ALIGN - 1) / ALIGN * ALIGN)))
            need = UINT64_MAX;
    TNF_TRY(tnf_memory_free_bytes(&there, d, e));
    if (need > there)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET,
                        "the tensors need %llu bytes of GPU memory, but only %llu are free",
                        (unsigned long long)need, (unsigned long long)there);
    return TNF_OK;
}

static tnf_status take_slab(tnf_target *t, uint64_t size, const tnf_load_options *how, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t n;
    void *p = tnf_grow(&a, t->owned, t->nowned, &t->room, sizeof *t->owned, 16);
    if (!p)
        return tnf_no_memory("a load", e);
    t->owned = p;
    if (!tnf_to_size(&n, size))
        return tnf_no_memory("a load", e);
    TNF_TRY(tnf_memory_new(&t->owned[t->nowned], t->device, n, how, e));
    t->nowned++;
    return TNF_OK;
}

/* Assigns the tensors order[i] up to order[end] to the newest slab. */
static void place_tensors(tnf_target *t, const tnf_load_plan *p, size_t i, size_t end)
{
    uint64_t at = 0;
    for (; i < end; i++) {
        const tnf_load_tensor *w = &p->tensors[p->order[i]];
        if (w->dst || w->bytes == 0)
            continue;
        tnf_device_memory *m = t->owned[t->nowned - 1];
        at = (at + ALIGN - 1) / ALIGN * ALIGN;
        t->at[p->order[i]] = (uint8_t *)m->p + at;
        t->memory[p->order[i]] = m;
        t->block[p->order[i]] = (uintptr_t)m->p;
        at += w->bytes;
    }
}

/* Finds the allocations of the caller's memory. A copy must not cross into another allocation, even
 * if both are adjacent. Memory that the driver does not know gets a copy of its own. */
static tnf_status find_blocks(tnf_target *t, const tnf_load_plan *p, tnf_error *e)
{
    const tnf_cuda *cuda = t->device->cuda;
    cu_ptr base = 0;
    size_t n = 0;
    if (!cuda)
        return TNF_OK;
    TNF_TRY(tnf_device_enter(t->device, e));
    for (size_t i = 0; i < p->n; i++) {
        size_t tensor = p->order[i];
        cu_ptr at = (cu_ptr)(uintptr_t)p->tensors[tensor].dst;
        if (!at)
            continue;
        if ((at < base || at - base >= n) && cuda->memory_range(&base, &n, at) != 0)
            n = 0;
        t->block[tensor] = n ? (uintptr_t)base : 0;
    }
    tnf_device_leave(t->device);
    return TNF_OK;
}

/* Allocates the arrays with the address of each tensor. Loaders read `at` under the lock. */
static tnf_status make_places(tnf_load *l, tnf_target *t, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    const tnf_load_plan *p = &l->plan;
    void **at = tnf_alloc0(&a, p->n * sizeof *at);
    t->memory = tnf_alloc0(&a, p->n * sizeof *t->memory);
    t->block = tnf_alloc0(&a, p->n * sizeof *t->block);
    tnf_status status = at && t->memory && t->block ? find_blocks(t, p, e)
                                                    : tnf_no_memory("a load", e);
    for (size_t i = 0; status == TNF_OK && i < p->n; i++)
        at[i] = p->tensors[i].dst;
    pthread_mutex_lock(&l->lock);
    t->at = at;
    pthread_mutex_unlock(&l->lock);
    return status;
}

tnf_status tnf_target_fill(tnf_load *l, tnf_target *t, tnf_error *e)
{
    const tnf_load_plan *p = &l->plan;
    uint64_t most = l->how.alloc == TNF_DEVICE_EACH ? 1 : SLAB;
    TNF_TRY(make_places(l, t, e));
    for (size_t i = 0, end; i < p->n; i = end) {
        uint64_t size = measure_slab(p, i, most, &end);
        if (size == 0)
            break;
        TNF_TRY(take_slab(t, size, &l->how, e));
        pthread_mutex_lock(&l->lock);
        place_tensors(t, p, i, end);
        pthread_mutex_unlock(&l->lock);
    }
    return TNF_OK;
}

void tnf_target_free(tnf_target *t, const tnf_load_plan *p)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    for (size_t i = 0; i < t->nowned; i++)
        tnf_memory_drop(t->owned[i]);
    if (t->ready && tnf_device_enter(t->device, NULL) == TNF_OK) {
        t->device->cuda->event_free(t->ready);
        tnf_device_leave(t->device);
    }
    tnf_free(&a, t->owned, t->room * sizeof *t->owned);
    tnf_free(&a, t->at, p->n * sizeof *t->at);
    tnf_free(&a, t->memory, p->n * sizeof *t->memory);
    tnf_free(&a, t->block, p->n * sizeof *t->block);
}
