/* SPDX-License-Identifier: MIT */
/* The pool of a device, which keeps pinned buffers, and streams with their events, for the next
 * load. Pinning takes milliseconds, so it is done once. */
#include "device/device.h"

#include "base/alloc.h"

#include <string.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------- buffers */

static void free_buffer(tnf_device *d, tnf_buffer *b)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (d->cuda && b->pinned && tnf_device_enter(d, NULL) == TNF_OK) {
        d->cuda->host_unregister(b->memory);
        tnf_device_leave(d);
    }
    munmap(b->memory, b->size);
    pthread_mutex_lock(&d->lock);
    d->pinned -= b->pinned ? b->size : 0;
    pthread_mutex_unlock(&d->lock);
    tnf_free(&a, b, sizeof *b);
}

/* Maps memory that is aligned to a huge page, so that only few pages have to be pinned. */
static uint8_t *map_aligned(size_t size)
{
    uint8_t *p = mmap(NULL, size + TNF_HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    size_t front = (TNF_HUGE - (uintptr_t)p % TNF_HUGE) % TNF_HUGE;
    if (front)
        munmap(p, front);
    if (TNF_HUGE - front)
        munmap(p + front + size, TNF_HUGE - front);
    madvise(p + front, size, MADV_HUGEPAGE);
    return p + front;
}

tnf_status tnf_buffer_pin(tnf_device *d, tnf_buffer *b, tnf_error *e)
{
    if (b->pinned)
        return TNF_OK;
    cu_result r = d->cuda ? d->cuda->host_register(b->memory, b->size, CU_REGISTER_PORTABLE) : 0;
    if (r)
        return tnf_cuda_fail(d->cuda, r, "cannot pin memory", e);
    b->pinned = true;
    pthread_mutex_lock(&d->lock);
    d->pinned += b->size;
    pthread_mutex_unlock(&d->lock);
    return TNF_OK;
}

static tnf_status make_buffer(tnf_buffer **out, size_t slot, unsigned slots, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t size = (slot * slots + TNF_HUGE - 1) / TNF_HUGE * TNF_HUGE;
    tnf_buffer *b = tnf_alloc0(&a, sizeof *b);
    if (b)
        b->memory = map_aligned(size);
    if (!b || !b->memory) {
        tnf_free(&a, b, sizeof *b);
        return tnf_no_memory("a load", e);
    }
    b->size = size;
    b->slot = slot;
    *out = b;
    return TNF_OK;
}

tnf_status tnf_buffer_take(tnf_buffer **out, tnf_device *d, size_t slot, unsigned slots,
                           tnf_error *e)
{
    pthread_mutex_lock(&d->lock);
    tnf_buffer *b = d->buffers;
    if (b)
        d->buffers = b->next;
    pthread_mutex_unlock(&d->lock);
    if (b && slots <= b->size / slot) { /* its memory can be cut into other slots */
        b->slot = slot;
        *out = b;
        return TNF_OK;
    }
    if (b)
        free_buffer(d, b);
    return make_buffer(out, slot, slots, e);
}

void tnf_buffer_give(tnf_device *d, tnf_buffer *b)
{
    pthread_mutex_lock(&d->lock);
    b->next = d->buffers;
    d->buffers = b;
    pthread_mutex_unlock(&d->lock);
}

/* ----------------------------------------------------------------- queues */

static void free_queue(tnf_device *d, tnf_queue *q)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (d->cuda && tnf_device_enter(d, NULL) == TNF_OK) {
        for (unsigned i = 0; i < q->nevents; i++)
            d->cuda->event_free(q->events[i]);
        if (q->own)
            d->cuda->stream_free(q->own);
        if (q->staging)
            d->cuda->memory_free(q->staging);
        tnf_device_leave(d);
    }
    tnf_free(&a, q, sizeof *q);
}

/* Takes one of the few streams that all queues share, which use the bus best; or the queue's own
 * stream, so that kernels run in parallel to the copies of others. */
static cu_result take_stream(tnf_device *d, tnf_queue *q, bool own)
{
    cu_result r = 0;
    if (own || d->nstreams == 0) {
        if (!q->own)
            r = d->cuda->stream_new(&q->own, CU_STREAM_NON_BLOCKING);
        q->stream = q->own;
        return r;
    }
    pthread_mutex_lock(&d->lock);
    cu_stream *s = &d->streams[d->turn++ % d->nstreams];
    if (!*s)
        r = d->cuda->stream_new(s, CU_STREAM_NON_BLOCKING);
    q->stream = *s;
    pthread_mutex_unlock(&d->lock);
    return r;
}

static tnf_status fill_queue(tnf_device *d, tnf_queue *q, unsigned slots, bool own, tnf_error *e)
{
    if (!d->cuda)
        return TNF_OK;
    TNF_TRY(tnf_device_enter(d, e));
    cu_result r = take_stream(d, q, own);
    for (; r == 0 && q->nevents < slots; q->nevents += r == 0)
        r = d->cuda->event_new(&q->events[q->nevents], CU_EVENT_DISABLE_TIMING);
    tnf_device_leave(d);
    return r ? tnf_cuda_fail(d->cuda, r, "cannot create a GPU stream", e) : TNF_OK;
}

tnf_status tnf_queue_take(tnf_queue **out, tnf_device *d, unsigned slots, bool own, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    pthread_mutex_lock(&d->lock);
    tnf_queue *q = d->queues;
    if (q)
        d->queues = q->next;
    pthread_mutex_unlock(&d->lock);
    if (!q)
        q = tnf_alloc0(&a, sizeof *q);
    if (!q)
        return tnf_no_memory("a load", e);
    tnf_status status = fill_queue(d, q, slots, own, e);
    if (status != TNF_OK) {
        free_queue(d, q);
        return status;
    }
    *out = q;
    return TNF_OK;
}

void tnf_queue_give(tnf_device *d, tnf_queue *q)
{
    pthread_mutex_lock(&d->lock);
    q->next = d->queues;
    d->queues = q;
    pthread_mutex_unlock(&d->lock);
}

tnf_status tnf_queue_stage(tnf_device *d, tnf_queue *q, size_t n, tnf_error *e)
{
    if (q->staging_size >= n || !d->cuda)
        return TNF_OK;
    if (q->staging)
        d->cuda->memory_free(q->staging);
    q->staging = 0;
    q->staging_size = 0;
    cu_result r = d->cuda->memory_alloc(&q->staging, n);
    if (r)
        return tnf_cuda_fail(d->cuda, r, "cannot allocate GPU memory", e);
    q->staging_size = n;
    return TNF_OK;
}

void tnf_device_trim(tnf_device *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    tnf_buffer *b = d->buffers;
    tnf_queue *q = d->queues;
    d->buffers = NULL;
    d->queues = NULL;
    pthread_mutex_unlock(&d->lock);
    for (tnf_buffer *next; b; b = next) {
        next = b->next;
        free_buffer(d, b);
    }
    for (tnf_queue *next; q; q = next) {
        next = q->next;
        free_queue(d, q);
    }
}

void tnf_streams_free(tnf_device *d)
{
    for (unsigned i = 0; i < TNF_STREAMS_MAX; i++)
        if (d->streams[i])
            d->cuda->stream_free(d->streams[i]);
}

/* ----------------------------------------------------------------- copies */

tnf_status tnf_copy_to(tnf_device *d, tnf_queue *q, void *dst, const void *src, size_t n,
                       tnf_error *e)
{
    if (!d->cuda) {
        memcpy(dst, src, n);
        return TNF_OK;
    }
    cu_result r = d->cuda->copy_to((cu_ptr)(uintptr_t)dst, src, n, q->stream);
    return r ? tnf_cuda_fail(d->cuda, r, "cannot copy to the GPU", e) : TNF_OK;
}

tnf_status tnf_copy_rows(tnf_device *d, tnf_queue *q, void *dst, const void *src, size_t width,
                         size_t height, size_t pitch, tnf_error *e)
{
    if (!d->cuda) {
        for (size_t i = 0; i < height; i++)
            memcpy((uint8_t *)dst + i * width, (const uint8_t *)src + i * pitch, width);
        return TNF_OK;
    }
    cu_copy_2d copy = { .src_kind = CU_KIND_HOST,
                        .src_host = src,
                        .src_pitch = pitch,
                        .dst_kind = CU_KIND_DEVICE,
                        .dst_device = (cu_ptr)(uintptr_t)dst,
                        .dst_pitch = width,
                        .width = width,
                        .height = height };
    cu_result r = d->cuda->copy_2d(&copy, q->stream);
    return r ? tnf_cuda_fail(d->cuda, r, "cannot copy to the GPU", e) : TNF_OK;
}

tnf_status tnf_queue_mark(tnf_device *d, tnf_queue *q, unsigned i, tnf_error *e)
{
    cu_result r = d->cuda ? d->cuda->event_record(q->events[i], q->stream) : 0;
    return r ? tnf_cuda_fail(d->cuda, r, "cannot copy to the GPU", e) : TNF_OK;
}

tnf_status tnf_queue_await(tnf_device *d, tnf_queue *q, unsigned i, tnf_error *e)
{
    cu_result r = d->cuda ? d->cuda->event_sync(q->events[i]) : 0;
    return r ? tnf_cuda_fail(d->cuda, r, "a copy to the GPU failed", e) : TNF_OK;
}

tnf_status tnf_queue_follow(tnf_device *d, tnf_queue *q, tnf_queue *other, unsigned i, tnf_error *e)
{
    cu_result r = d->cuda ? d->cuda->stream_wait(q->stream, other->events[i], 0) : 0;
    return r ? tnf_cuda_fail(d->cuda, r, "cannot copy to the GPU", e) : TNF_OK;
}

tnf_status tnf_queue_drain(tnf_device *d, tnf_queue *q, tnf_error *e)
{
    cu_result r = d->cuda ? d->cuda->stream_sync(q->stream) : 0;
    return r ? tnf_cuda_fail(d->cuda, r, "a copy to the GPU failed", e) : TNF_OK;
}
