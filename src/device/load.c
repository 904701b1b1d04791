/* SPDX-License-Identifier: MIT */
/* Starts, awaits, cancels and frees loads. loader.c has the code of their threads. */
#include "device/load.h"

#include "device/kernel.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/sized.h"

#include <string.h>

#define LEAST_BLOCK   ((size_t)64 << 10)
#define MOST_BLOCK    ((size_t)64 << 20)
#define SLOTS         2u
#define PLAIN_SLOTS   7u /* slots of short blocks, which are sent together */
/* Threads that saturate the bus from the page cache; threads that saturate a disk. */
#define CACHE_THREADS 15u
#define DISK_THREADS  16u

/* ------------------------------------------------------------------ begin */

static tnf_status check_options(tnf_load_options *how, const tnf_load_options *given, tnf_error *e)
{
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_load_options, how, given, e));
    TNF_TRY(tnf_check_choice(how->read, TNF_DEVICE_READ_EXACT, "read", e));
    TNF_TRY(tnf_check_choice(how->alloc, TNF_DEVICE_EACH, "alloc", e));
    if (how->block &&
        (how->block < LEAST_BLOCK || how->block > MOST_BLOCK || how->block % TNF_PAGE))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the block of a load must be a multiple of 4 KiB, from 64 KiB to 64 MiB, "
                        "not %zu bytes",
                        how->block);
    if (how->slots > TNF_SLOTS_MAX)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a load has at most %u slots, not %u",
                        TNF_SLOTS_MAX, how->slots);
    if (!how->allocate != !how->release)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "a load needs both `allocate` and `release`, or neither");
    return TNF_OK;
}

static unsigned count_threads(const tnf_load *l)
{
    bool cached = true;
    unsigned cores = tnf_pool_threads(0), n = l->how.threads;
    for (size_t i = 0; i < l->plan.nintakes; i++)
        cached = cached && l->plan.intakes[i].cached;
    if (n == 0 && cached) /* leaves a core for the caller's thread */
        n = cores < 2 ? 1 : cores - 1 < CACHE_THREADS ? cores - 1 : CACHE_THREADS;
    else if (n == 0)
        n = DISK_THREADS;
    n = n > TNF_LOADERS_MAX ? TNF_LOADERS_MAX : n;
    return l->plan.ntasks < n ? (unsigned)l->plan.ntasks : n;
}

/* Makes the loaders' streams wait for the current work of the caller's stream. */
static tnf_status note_stream(tnf_target *t, const tnf_load_options *how, tnf_error *e)
{
    const tnf_cuda *cuda = t->device->cuda;
    cu_stream stream;
    if (!cuda || (!how->after && !how->has_after))
        return TNF_OK;
    memcpy(&stream, &how->after, sizeof stream);
    TNF_TRY(tnf_device_enter(t->device, e));
    cu_result r = cuda->event_new(&t->ready, CU_EVENT_DISABLE_TIMING);
    if (r == 0)
        r = cuda->event_record(t->ready, stream);
    tnf_device_leave(t->device);
    return r ? tnf_cuda_fail(cuda, r, "cannot wait for the caller's stream", e) : TNF_OK;
}

static tnf_status start_threads(tnf_load *l, tnf_error *e)
{
    unsigned wanted = count_threads(l);
    size_t undone = 0;
    for (size_t i = 0; i < l->plan.n; i++)
        undone += atomic_load(&l->plan.tensors[i].left) != 0;
    atomic_init(&l->undone, undone);
    TNF_TRY(l->plan.plain ? tnf_ring_begin(l, wanted, e) : tnf_slots_begin(l, wanted, e));
    atomic_init(&l->inside, wanted);
    l->running = wanted;
    while (l->nthreads < wanted && tnf_thread_start(&l->threads[l->nthreads], tnf_loader_run, l))
        l->nthreads++;
    pthread_mutex_lock(&l->lock);
    l->running -= wanted - l->nthreads;
    pthread_mutex_unlock(&l->lock);
    return l->nthreads || wanted == 0
               ? TNF_OK
               : tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "cannot create a thread for a load");
}

/* All allocations by the driver come before the threads start. Driver calls wait for each other,
 * and take several times as long while threads read. */
static tnf_status begin_load(tnf_load *l, tnf_device *const *devices,
                             const tnf_device_request *requests, size_t n, tnf_error *e)
{
    if (l->ntargets > 1)
        for (size_t i = 0; i < n; i++)
            if (requests[i].dst)
                return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                                "the caller's memory is on one device, but the load has %zu",
                                l->ntargets);
    l->clock.begun = tnf_now();
    TNF_TRY(tnf_load_plan_make(&l->plan, l->ntargets == 1 ? devices[0] : NULL, requests, n, &l->how,
                               e));
    for (size_t t = 0; t < l->ntargets; t++)
        TNF_TRY(tnf_target_check(&l->targets[t], &l->plan, &l->how, e));
    l->clock.planned = tnf_now();
    if (l->how.slots == 0)
        l->how.slots = l->plan.plain && l->how.block == 0 ? PLAIN_SLOTS : SLOTS;
    for (size_t t = 0; t < l->ntargets; t++) {
        TNF_TRY(tnf_target_fill(l, &l->targets[t], e));
        TNF_TRY(note_stream(&l->targets[t], &l->how, e));
    }
    for (size_t t = 0; t < l->ntargets && l->plan.small; t++)
        l->targets[t].scatter = tnf_kernel_ready(l->targets[t].device);
    l->clock.placed = tnf_now();
    return start_threads(l, e);
}

tnf_status tnf_device_start_many(tnf_load **out, tnf_device *const *devices, size_t ndevices,
                                 const tnf_device_request *requests, size_t n,
                                 const tnf_load_options *options, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_load_options how;
    *out = NULL;
    TNF_TRY(tnf_need_array(devices, ndevices, "devices", e));
    TNF_TRY(tnf_need_array(requests, n, "requests", e));
    TNF_TRY(check_options(&how, options, e));
    if (ndevices == 0 || ndevices > TNF_TARGETS_MAX)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a load needs 1 to %u devices",
                        TNF_TARGETS_MAX);
    for (size_t t = 0; t < ndevices; t++)
        TNF_TRY(tnf_need(devices[t], "devices", e));
    tnf_load *l = tnf_alloc0(&a, sizeof *l);
    tnf_target *targets = tnf_alloc0(&a, ndevices * sizeof *targets);
    if (!l || !targets) {
        tnf_free(&a, l, sizeof *l);
        tnf_free(&a, targets, ndevices * sizeof *targets);
        return tnf_no_memory("a load", e);
    }
    l->how = how;
    l->targets = targets;
    l->ntargets = ndevices;
    for (size_t t = 0; t < ndevices; t++)
        targets[t].device = devices[t];
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    tnf_status status = begin_load(l, devices, requests, n, e);
    if (status == TNF_OK)
        *out = l;
    else
        tnf_load_free(l);
    return status;
}

tnf_status tnf_device_start(tnf_load **out, tnf_device *device, const tnf_device_request *requests,
                            size_t n, const tnf_load_options *options, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(device, "device", e));
    return tnf_device_start_many(out, &device, 1, requests, n, options, e);
}

tnf_status tnf_device_load(tnf_load **out, tnf_device *device, const tnf_device_request *requests,
                           size_t n, const tnf_load_options *options, tnf_error *e)
{
    TNF_TRY(tnf_device_start(out, device, requests, n, options, e));
    tnf_status status = tnf_load_wait(*out, TNF_LOAD_ALL, e);
    if (status != TNF_OK) {
        tnf_load_free(*out);
        *out = NULL;
    }
    return status;
}

/* ------------------------------------------------------------------- wait */

bool tnf_load_done(const tnf_load *l, size_t i)
{
    if (!l)
        return false;
    if (i == TNF_LOAD_ALL)
        return atomic_load(&l->undone) == 0;
    return i < l->plan.n && atomic_load(&l->plan.tensors[i].left) == 0;
}

tnf_status tnf_load_wait(tnf_load *l, size_t i, tnf_error *e)
{
    TNF_TRY(tnf_need(l, "load", e));
    if (i != TNF_LOAD_ALL && i >= l->plan.n)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the load has no tensor %zu", i);
    if (i != TNF_LOAD_ALL && tnf_load_done(l, i))
        return TNF_OK;
    pthread_mutex_lock(&l->lock);
    l->waiting++;
    while (l->running > 0 && (i == TNF_LOAD_ALL || !tnf_load_done(l, i)))
        pthread_cond_wait(&l->changed, &l->lock);
    l->waiting--;
    tnf_status status = tnf_load_done(l, i) ? TNF_OK : l->status;
    if (status != TNF_OK && e)
        *e = l->error;
    pthread_mutex_unlock(&l->lock);
    return status;
}

void tnf_load_cancel(tnf_load *l)
{
    tnf_error error = { .offset = TNF_NO_OFFSET };
    if (!l || tnf_load_done(l, TNF_LOAD_ALL))
        return;
    tnf_fail(&error, TNF_ECANCELLED, TNF_NO_OFFSET, "loading was cancelled");
    tnf_load_fail(l, TNF_ECANCELLED, &error);
}

void tnf_load_free(tnf_load *l)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (!l)
        return;
    tnf_load_cancel(l);
    for (unsigned i = 0; i < l->nthreads; i++)
        pthread_join(l->threads[i], NULL);
    tnf_ring_free(l);
    tnf_slots_end(l);
    for (size_t t = 0; t < l->ntargets; t++)
        tnf_target_free(&l->targets[t], &l->plan);
    tnf_load_plan_free(&l->plan);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    tnf_free(&a, l->targets, l->ntargets * sizeof *l->targets);
    tnf_free(&a, l, sizeof *l);
}

/* ---------------------------------------------------------------- results */

void *tnf_load_on(const tnf_load *l, size_t d, size_t i)
{
    return l && d < l->ntargets && i < l->plan.n ? l->targets[d].at[i] : NULL;
}

void *tnf_load_at(const tnf_load *l, size_t i)
{
    return tnf_load_on(l, 0, i);
}

uint64_t tnf_load_bytes(tnf_load_made *made, const tnf_load *l, size_t i)
{
    if (!l || i >= l->plan.n)
        return 0;
    if (made)
        *made = l->plan.tensors[i].how;
    return l->plan.tensors[i].bytes;
}

tnf_status tnf_load_tell(tnf_load_report *out, const tnf_load *l, tnf_error *e)
{
    TNF_TRY(tnf_need(l, "load", e));
    tnf_load_report own = { .bytes = l->plan.device_bytes,
                            .bytes_read = atomic_load(&l->bytes_read),
                            .copies = atomic_load(&l->copies),
                            .pinned = atomic_load(&l->pinned),
                            .threads = l->nthreads };
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_load_report), e));
    for (size_t i = 0; i < l->plan.nintakes; i++)
        own.direct += l->plan.intakes[i].direct >= 0;
    for (size_t i = 0; i < l->plan.n; i++)
        own.transformed += l->plan.tensors[i].how != TNF_LOAD_STORED;
    tnf_result_fill(out, &own, sizeof own);
    return TNF_OK;
}

tnf_device_memory *tnf_load_keep(tnf_load *l, size_t d, size_t i)
{
    tnf_device_memory *m = l && d < l->ntargets && i < l->plan.n ? l->targets[d].memory[i] : NULL;
    if (m)
        atomic_fetch_add(&m->users, 1);
    return m;
}
