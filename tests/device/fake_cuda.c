/* SPDX-License-Identifier: MIT */
/* A simulated CUDA driver, for machines without a GPU. Memory of a device is memory of the host
 * between pages that nobody may touch; small allocations touch each other, and a copy may not go
 * from one into the next. A stream is a thread with a queue; copies wait on purpose and look at
 * their source only when they run, so a slot that is used too early gives wrong bytes. Every rule
 * of the driver that a caller breaks is counted. */
#include "fake_state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* These functions have the driver's names, which no header of ours declares. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define API     __attribute__((visibility("default")))
#define DEVICES 2
#define PAGE    ((size_t)4096)
#define BLOCK   ((size_t)2 << 20)
#define SMALL   ((size_t)1 << 20)

static fake_cuda state = { .memory = (size_t)1 << 30, .fail_call = -1, .fail_copy = -1 };
static struct cu_context_ contexts[DEVICES] = { { .device = 0 }, { .device = 1 } };
static struct range *allocations, *pins;
static struct block *blocks[DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Thread_local cu_context stack[16];
static _Thread_local int depth;

API fake_cuda *fake_cuda_state(void)
{
    return &state;
}

API void fake_cuda_reset(void)
{
    pthread_mutex_lock(&lock);
    state.calls = state.copies = state.violations = 0;
    state.fail_call = state.fail_copy = -1;
    state.delay_us = 0;
    state.no_modules = 0;
    state.memory = (size_t)1 << 30;
    state.first[0] = 0;
    for (int i = 0; i < DEVICES; i++)
        contexts[i].lost = false;
    pthread_mutex_unlock(&lock);
}

/* The lock is held. */
static int note_violation(const char *rule)
{
    if (state.violations++ == 0)
        snprintf(state.first, sizeof state.first, "%s", rule);
    return BAD_VALUE;
}

/* Begins every call that may fail: counts it, and makes it fail if it is the chosen one. The lock
 * is held until leave_call(). */
static int enter_call(bool needs_context)
{
    pthread_mutex_lock(&lock);
    if (state.calls++ == state.fail_call)
        return state.fail_with;
    if (needs_context && depth == 0) {
        note_violation("a call without a context");
        return BAD_CONTEXT;
    }
    return needs_context && stack[depth - 1]->lost ? ILLEGAL_ADDRESS : 0;
}

static cu_result leave_call(int result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

static struct range **find_range(struct range **list, const void *p, size_t n)
{
    for (; *list; list = &(*list)->next)
        if ((*list)->p <= (const uint8_t *)p && (const uint8_t *)p < (*list)->p + (*list)->n &&
            n <= (size_t)((*list)->p + (*list)->n - (const uint8_t *)p))
            return list;
    return NULL;
}

/* ---------------------------------------------------------------- devices */

API cu_result cuInit(unsigned flags)
{
    return (int)flags;
}

API cu_result cuGetErrorString(cu_result result, const char **text)
{
    *text = result == CU_OUT_OF_MEMORY  ? "out of memory"
            : result == ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
            : result == BAD_CONTEXT     ? "invalid device context"
                                        : "some error";
    return 0;
}

API cu_result cuDeviceGetCount(int *count)
{
    *count = DEVICES;
    return leave_call(enter_call(false));
}

API cu_result cuDeviceGet(cu_device *device, int ordinal)
{
    *device = ordinal + 7; /* a device number is not a valid handle */
    return leave_call(enter_call(false));
}

API cu_result cuDeviceGetName(char *name, int size, cu_device device)
{
    snprintf(name, (size_t)size, "Fake GPU %d", device - 7);
    return leave_call(enter_call(false));
}

API cu_result cuDeviceGetUuid(cu_uuid *uuid, cu_device device)
{
    memset(uuid, 0x10 + device - 7, sizeof *uuid);
    return leave_call(enter_call(false));
}

API cu_result cuDeviceGetAttribute(int *value, int attribute, cu_device device)
{
    *value = attribute == CU_ATTRIBUTE_PCI_BUS ? 0xf0 + device : 0;
    return leave_call(enter_call(false));
}

API cu_result cuDevicePrimaryCtxRetain(cu_context *context, cu_device device)
{
    int result = enter_call(false);
    if (result == 0) {
        *context = &contexts[device - 7];
        contexts[device - 7].retained++;
        state.live_contexts++;
    }
    return leave_call(result);
}

API cu_result cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    pthread_mutex_lock(&lock);
    contexts[device - 7].retained--;
    state.live_contexts--;
    return leave_call(0);
}

/* Fails only for a context that no longer exists. Then nothing in that context could be freed, so
 * this call is never chosen to fail by its number. */
API cu_result cuCtxPushCurrent_v2(cu_context context)
{
    int result = 0;
    pthread_mutex_lock(&lock);
    if (depth == 16)
        result = note_violation("contexts are pushed and not popped");
    if (result == 0)
        stack[depth++] = context;
    return leave_call(result);
}

API cu_result cuCtxPopCurrent_v2(cu_context *context)
{
    pthread_mutex_lock(&lock);
    if (depth == 0)
        return leave_call(note_violation("a context is popped that was not pushed"));
    *context = stack[--depth];
    return leave_call(0);
}

/* ----------------------------------------------------------------- memory */

static size_t used_by(int device)
{
    size_t used = 0;
    for (const struct range *r = allocations; r; r = r->next)
        used += r->device == device ? r->n : 0;
    return used;
}

API cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    int result = enter_call(true);
    if (result == 0) {
        *total = state.memory;
        size_t used = used_by(stack[depth - 1]->device);
        *free_bytes = used < state.memory ? state.memory - used : 0;
    }
    return leave_call(result);
}

static uint8_t *map_guarded(size_t n)
{
    size_t room = (n + PAGE - 1) / PAGE * PAGE;
    uint8_t *p = mmap(NULL, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + PAGE, room, PROT_READ | PROT_WRITE) != 0)
        abort();
    memset(p + PAGE, 0x5a, room);
    return p + PAGE;
}

static void unmap_guarded(uint8_t *p, size_t n)
{
    munmap(p - PAGE, (n + PAGE - 1) / PAGE * PAGE + 2 * PAGE);
}

static void drop_block(struct block *b)
{
    if (b->live > 0)
        return;
    unmap_guarded(b->p, BLOCK);
    free(b);
}

/* `n` bytes of the block that is being filled on the device. */
static uint8_t *cut_block(struct range *r, size_t n, int device)
{
    struct block *b = blocks[device];
    if (!b || b->used + n > BLOCK) {
        if (b && b->live-- > 0)
            drop_block(b);
        b = blocks[device] = calloc(1, sizeof *b);
        if (!b)
            abort();
        b->p = map_guarded(BLOCK);
        b->live = 1; /* it is being filled */
    }
    uint8_t *p = b->p + b->used;
    b->used += (n + 511) / 512 * 512;
    b->live++;
    r->block = b;
    return p;
}

API cu_result cuMemGetAddressRange_v2(cu_ptr *base, size_t *n, cu_ptr at)
{
    int result = enter_call(true);
    struct range **r = find_range(&allocations, (void *)(uintptr_t)at, 0);
    if (result == 0 && !r)
        result = NOT_FOUND;
    if (result == 0) {
        *base = (cu_ptr)(uintptr_t)(*r)->p;
        *n = (*r)->n;
    }
    return leave_call(result);
}

API cu_result cuMemAlloc_v2(cu_ptr *out, size_t n)
{
    int result = enter_call(true);
    if (result)
        return leave_call(result);
    int device = stack[depth - 1]->device;
    if (n == 0)
        return leave_call(note_violation("an allocation of no bytes"));
    if (used_by(device) + n > state.memory)
        return leave_call(CU_OUT_OF_MEMORY);
    struct range *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    *r = (struct range) { .next = allocations, .n = n, .device = device };
    r->p = n <= SMALL ? cut_block(r, n, device) : map_guarded(n);
    allocations = r;
    state.live_memory++;
    state.used += n;
    *out = (cu_ptr)(uintptr_t)r->p;
    return leave_call(0);
}

API cu_result cuMemFree_v2(cu_ptr at)
{
    pthread_mutex_lock(&lock);
    struct range **r = find_range(&allocations, (void *)(uintptr_t)at, 0);
    if (!r || (*r)->p != (uint8_t *)(uintptr_t)at || depth == 0 ||
        (*r)->device != stack[depth - 1]->device)
        return leave_call(note_violation("what is freed is no allocation of this device"));
    struct range *gone = *r;
    *r = gone->next;
    if (gone->block && gone->block->live-- > 0)
        drop_block(gone->block);
    if (!gone->block)
        unmap_guarded(gone->p, gone->n);
    state.used -= gone->n;
    free(gone);
    state.live_memory--;
    return leave_call(0);
}

API cu_result cuMemHostRegister_v2(void *p, size_t n, unsigned flags)
{
    int result = enter_call(true);
    if (result)
        return leave_call(result);
    if (flags != CU_REGISTER_PORTABLE)
        return leave_call(note_violation("memory is pinned for one context only"));
    struct range *r = malloc(sizeof *r);
    if (!r)
        abort();
    *r = (struct range) { .next = pins, .p = p, .n = n };
    pins = r;
    state.live_pins++;
    return leave_call(0);
}

API cu_result cuMemHostUnregister(void *p)
{
    pthread_mutex_lock(&lock);
    struct range **r = find_range(&pins, p, 0);
    if (!r || (*r)->p != p)
        return leave_call(note_violation("what is unpinned was not pinned"));
    struct range *gone = *r;
    *r = gone->next;
    free(gone);
    state.live_pins--;
    return leave_call(0);
}

/* ---------------------------------------------------------------- streams */

static void run_copy(const cu_copy_2d *c)
{
    for (size_t i = 0; i < c->height; i++)
        memcpy((uint8_t *)(uintptr_t)c->dst_device + i * c->dst_pitch,
               (const uint8_t *)c->src_host + i * c->src_pitch, c->width);
}

/* Called without the lock, which is only taken to change the state. */
static void run_op(struct cu_stream_ *s, struct op *op)
{
    if (op->kind == OP_COPY || op->kind == OP_LAUNCH) {
        pthread_mutex_lock(&lock);
        unsigned most = state.delay_us;
        bool fails = op->kind == OP_COPY && state.copies++ == state.fail_copy;
        if (fails)
            s->context->lost = true;
        bool lost = s->context->lost;
        pthread_mutex_unlock(&lock);
        if (most)
            usleep((unsigned)rand_r(&s->seed) % most);
        if (!lost && op->kind == OP_COPY)
            run_copy(&op->copy);
        else if (!lost)
            op->kernel(op->arguments);
        return;
    }
    pthread_mutex_lock(&lock);
    if (op->kind == OP_RECORD && op->event->reached < op->mark)
        op->event->reached = op->mark;
    while (op->kind == OP_WAIT && op->event->reached < op->mark)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void *run_stream(void *arg)
{
    struct cu_stream_ *s = arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!s->first && !s->ending)
            pthread_cond_wait(&changed, &lock);
        struct op *op = s->first;
        if (!op)
            break;
        s->first = op->next;
        if (!s->first)
            s->last = &s->first;
        pthread_mutex_unlock(&lock);
        run_op(s, op);
        pthread_mutex_lock(&lock);
        free(op);
        s->pending--;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The lock is held. */
static int push_op(struct cu_stream_ *s, struct op what)
{
    struct op *op = malloc(sizeof *op);
    if (!op)
        abort();
    *op = what;
    op->next = NULL;
    *s->last = op;
    s->last = &op->next;
    s->pending++;
    pthread_cond_broadcast(&changed);
    return 0;
}

static int check_stream(const struct cu_stream_ *s)
{
    if (s->context == stack[depth - 1])
        return 0;
    note_violation("a stream of another context");
    return BAD_CONTEXT;
}

API cu_result cuStreamCreate(cu_stream *out, unsigned flags)
{
    int result = enter_call(true);
    if (result)
        return leave_call(result);
    if (flags != CU_STREAM_NON_BLOCKING)
        note_violation("a stream that waits for the default stream");
    struct cu_stream_ *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->context = stack[depth - 1];
    s->last = &s->first;
    s->seed = (unsigned)state.calls;
    if (pthread_create(&s->thread, NULL, run_stream, s) != 0)
        abort();
    state.live_streams++;
    *out = s;
    return leave_call(0);
}

API cu_result cuStreamDestroy_v2(cu_stream s)
{
    pthread_mutex_lock(&lock);
    if (s->pending)
        note_violation("a stream is destroyed that has work");
    s->ending = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_lock(&lock);
    free(s);
    state.live_streams--;
    return leave_call(0);
}

API cu_result cuStreamSynchronize(cu_stream s)
{
    int result = enter_call(true);
    while (s->pending)
        pthread_cond_wait(&changed, &lock);
    return leave_call(result ? result : s->context->lost ? ILLEGAL_ADDRESS : 0);
}

API cu_result cuStreamWaitEvent(cu_stream s, cu_event event, unsigned flags)
{
    int result = enter_call(true);
    if (result == 0)
        result = check_stream(s);
    if (result == 0 && flags)
        result = note_violation("flags of waiting");
    if (result == 0)
        push_op(s, (struct op) { .kind = OP_WAIT, .event = event, .mark = event->recorded });
    return leave_call(result);
}

API cu_result cuEventCreate(cu_event *out, unsigned flags)
{
    int result = enter_call(true);
    if (result)
        return leave_call(result);
    if (flags != CU_EVENT_DISABLE_TIMING)
        note_violation("an event that takes the time");
    cu_event event = calloc(1, sizeof *event);
    if (!event)
        abort();
    event->context = stack[depth - 1];
    state.live_events++;
    *out = event;
    return leave_call(0);
}

API cu_result cuEventDestroy_v2(cu_event event)
{
    pthread_mutex_lock(&lock);
    if (event->reached < event->recorded)
        note_violation("an event is destroyed that is still to come");
    free(event);
    state.live_events--;
    return leave_call(0);
}

API cu_result cuEventRecord(cu_event event, cu_stream s)
{
    int result = enter_call(true);
    if (result)
        return leave_call(result);
    event->recorded++;
    if (!s) {
        event->reached = event->recorded;
        return leave_call(0);
    }
    result = check_stream(s);
    if (result == 0)
        push_op(s, (struct op) { .kind = OP_RECORD, .event = event, .mark = event->recorded });
    return leave_call(result);
}

API cu_result cuEventSynchronize(cu_event event)
{
    int result = enter_call(true);
    while (event->reached < event->recorded)
        pthread_cond_wait(&changed, &lock);
    return leave_call(result ? result : event->context->lost ? ILLEGAL_ADDRESS : 0);
}

/* ----------------------------------------------------------------- copies */

static int check_copy(const cu_copy_2d *c, const struct cu_stream_ *s)
{
    size_t span = (c->height - 1) * c->dst_pitch + c->width;
    size_t from = (c->height - 1) * c->src_pitch + c->width;
    struct range **to = find_range(&allocations, (void *)(uintptr_t)c->dst_device, span);
    if (c->width == 0 || c->height == 0 || c->width > c->src_pitch || c->width > c->dst_pitch)
        return note_violation("a copy of no bytes, or of rows that overlap");
    if (!to)
        return note_violation("a copy goes beyond an allocation");
    if ((*to)->device != stack[depth - 1]->device)
        return note_violation("a copy goes to another device");
    if (!find_range(&pins, c->src_host, from))
        return note_violation("a copy comes from memory that is not pinned");
    return check_stream(s);
}

static cu_result copy_late(const cu_copy_2d *copy, struct cu_stream_ *s)
{
    int result = enter_call(true);
    if (result == 0)
        result = check_copy(copy, s);
    if (result == 0)
        push_op(s, (struct op) { .kind = OP_COPY, .copy = *copy });
    return leave_call(result);
}

API cu_result cuMemcpyHtoDAsync_v2(cu_ptr dst, const void *src, size_t n, cu_stream stream)
{
    cu_copy_2d copy = {
        .src_host = src, .src_pitch = n, .dst_device = dst, .dst_pitch = n, .width = n, .height = 1
    };
    return copy_late(&copy, stream);
}

API cu_result cuMemcpy2DAsync_v2(const cu_copy_2d *copy, cu_stream stream)
{
    if (copy->src_kind != CU_KIND_HOST || copy->dst_kind != CU_KIND_DEVICE || copy->src_x ||
        copy->src_y || copy->dst_x || copy->dst_y)
        return BAD_VALUE;
    return copy_late(copy, stream);
}

API cu_result cuMemcpyHtoD_v2(cu_ptr dst, const void *src, size_t n)
{
    int result = enter_call(true);
    if (result == 0 && !find_range(&allocations, (void *)(uintptr_t)dst, n))
        result = note_violation("a copy goes beyond an allocation");
    if (result == 0)
        memcpy((void *)(uintptr_t)dst, src, n);
    return leave_call(result);
}

API cu_result cuMemcpyDtoH_v2(void *dst, cu_ptr src, size_t n)
{
    int result = enter_call(true);
    if (result == 0 && !find_range(&allocations, (void *)(uintptr_t)src, n))
        result = note_violation("a copy from beyond an allocation");
    if (result == 0)
        memcpy(dst, (void *)(uintptr_t)src, n);
    return leave_call(result);
}

#include "fake_modules.h"
