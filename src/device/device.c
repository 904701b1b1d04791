/* SPDX-License-Identifier: MIT */
/* Opens devices, describes them, and allocates their memory. */
#include "device/device.h"

#include "base/alloc.h"
#include "base/sized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

tnf_status tnf_device_enter(tnf_device *d, tnf_error *e)
{
    cu_result r = d->cuda ? d->cuda->context_push(d->context) : 0;
    return r ? tnf_cuda_fail(d->cuda, r, "cannot use the GPU", e) : TNF_OK;
}

void tnf_device_leave(tnf_device *d)
{
    cu_context was;
    if (d->cuda)
        d->cuda->context_pop(&was);
}

/* ------------------------------------------------------------------- open */

/* Prints a UUID in the form of nvidia-smi. */
static void print_uuid(char out[48], const cu_uuid *u)
{
    size_t at = (size_t)snprintf(out, 48, "GPU-");
    for (size_t i = 0; i < 16; i++)
        at += (size_t)snprintf(out + at, 48 - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u->bytes[i]);
}

static tnf_status learn_device(tnf_device *d, int ordinal, tnf_error *e)
{
    const tnf_cuda *cuda = d->cuda;
    cu_uuid uuid;
    int domain = 0, bus = 0, slot = 0;
    cu_result r = cuda->device_get(&d->id, ordinal);
    if (r == 0)
        r = cuda->device_name(d->name, (int)sizeof d->name, d->id);
    if (r == 0)
        r = cuda->device_uuid(&uuid, d->id);
    if (r)
        return tnf_cuda_fail(cuda, r, "cannot query the GPU", e);
    d->name[sizeof d->name - 1] = 0;
    print_uuid(d->uuid, &uuid);
    d->ordinal = ordinal;
    if (cuda->device_attribute(&domain, CU_ATTRIBUTE_PCI_DOMAIN, d->id) == 0 &&
        cuda->device_attribute(&bus, CU_ATTRIBUTE_PCI_BUS, d->id) == 0 &&
        cuda->device_attribute(&slot, CU_ATTRIBUTE_PCI_DEVICE, d->id) == 0)
        d->numa_node = tnf_numa_node("/sys", (unsigned)domain, (unsigned)bus, (unsigned)slot);
    return TNF_OK;
}

/* Finds a device by number or UUID; `which` is the text after "cuda". */
static tnf_status find_device(tnf_device *d, const char *which, tnf_error *e)
{
    int count = 0;
    cu_result r = d->cuda->device_count(&count);
    if (r)
        return tnf_cuda_fail(d->cuda, r, "cannot count the GPUs", e);
    if (count == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "there is no GPU");
    if (*which == 0)
        return learn_device(d, 0, e);
    char *end = NULL;
    long ordinal = which[1] >= '0' && which[1] <= '9' ? strtol(which + 1, &end, 10) : -1;
    if (ordinal >= 0 && *end == 0) {
        if (ordinal < count)
            return learn_device(d, (int)ordinal, e);
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no cuda:%ld: %d GPU%s", ordinal,
                        count, count == 1 ? " is available" : "s are available");
    }
    for (int i = 0; i < count; i++) {
        TNF_TRY(learn_device(d, i, e));
        if (strcmp(d->uuid, which + 1) == 0)
            return TNF_OK;
    }
    return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no GPU %.60s", which + 1);
}

static tnf_status open_cuda(tnf_device *d, const char *which, tnf_error *e)
{
    TNF_TRY(tnf_cuda_load(&d->cuda, e));
    TNF_TRY(find_device(d, which, e));
    cu_result r = d->cuda->context_retain(&d->context, d->id);
    return r ? tnf_cuda_fail(d->cuda, r, "cannot use the GPU", e) : TNF_OK;
}

tnf_status tnf_device_open(tnf_device **out, const char *name, const tnf_device_options *options,
                           tnf_error *e)
{
    tnf_device_options how;
    *out = NULL;
    TNF_TRY(tnf_need(name, "name", e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_device_options, &how, options, e));
    bool host = strcmp(name, "host") == 0;
    if (!host && (strncmp(name, "cuda", 4) != 0 || (name[4] && name[4] != ':')))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "unknown device '%.60s'; use \"cuda:0\", \"cuda:GPU-…\" or \"host\"", name);
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_device *d = tnf_alloc0(&a, sizeof *d);
    if (!d)
        return tnf_no_memory("a device", e);
    d->ordinal = d->numa_node = -1;
    d->nstreams = 1;
    snprintf(d->name, sizeof d->name, "host");
    tnf_status status = host ? TNF_OK : open_cuda(d, name + 4, e);
    if (status != TNF_OK) {
        tnf_free(&a, d, sizeof *d);
        return status;
    }
    d->has_cpus = !how.no_numa && d->numa_node >= 0 &&
                  tnf_numa_cpus(&d->cpus, "/sys", d->numa_node);
    pthread_mutex_init(&d->lock, NULL);
    *out = d;
    return TNF_OK;
}

void tnf_device_close(tnf_device *d)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (!d)
        return;
    tnf_device_trim(d);
    if (d->cuda) {
        if (tnf_device_enter(d, NULL) == TNF_OK) {
            tnf_kernels_free(d);
            tnf_streams_free(d);
            tnf_device_leave(d);
        }
        d->cuda->context_release(d->id);
    }
    pthread_mutex_destroy(&d->lock);
    tnf_free(&a, d, sizeof *d);
}

/* ------------------------------------------------------------------- look */

static tnf_status ask_memory(uint64_t *free_bytes, uint64_t *total, tnf_device *d, tnf_error *e)
{
    size_t left = 0, all = 0;
    if (!d->cuda) {
        long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        *total = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
        *free_bytes = UINT64_MAX; /* the system does not say how much it would give */
        return TNF_OK;
    }
    TNF_TRY(tnf_device_enter(d, e));
    cu_result r = d->cuda->memory_info(&left, &all);
    tnf_device_leave(d);
    *free_bytes = left;
    *total = all;
    return r ? tnf_cuda_fail(d->cuda, r, "cannot query the GPU's memory", e) : TNF_OK;
}

tnf_status tnf_memory_free_bytes(uint64_t *out, tnf_device *d, tnf_error *e)
{
    uint64_t total;
    return ask_memory(out, &total, d, e);
}

tnf_status tnf_device_look(tnf_device_info *out, tnf_device *d, tnf_error *e)
{
    TNF_TRY(tnf_need(d, "device", e));
    tnf_device_info own = { .ordinal = d->ordinal, .numa_node = d->numa_node };
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_device_info), e));
    TNF_TRY(ask_memory(&own.memory_free, &own.memory_total, d, e));
    if (!d->cuda)
        own.memory_free = own.memory_total;
    memcpy(own.name, d->name, sizeof own.name);
    memcpy(own.uuid, d->uuid, sizeof own.uuid);
    pthread_mutex_lock(&d->lock);
    own.pinned = d->pinned;
    pthread_mutex_unlock(&d->lock);
    tnf_result_fill(out, &own, sizeof own);
    return TNF_OK;
}

tnf_status tnf_device_read(void *dst, tnf_device *d, const void *src, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_need(d, "device", e));
    TNF_TRY(tnf_need_array(src, n, "src", e));
    if (!d->cuda) {
        memcpy(dst, src, n);
        return TNF_OK;
    }
    TNF_TRY(tnf_device_enter(d, e));
    cu_result r = n ? d->cuda->copy_back(dst, (cu_ptr)(uintptr_t)src, n) : 0;
    tnf_device_leave(d);
    return r ? tnf_cuda_fail(d->cuda, r, "cannot copy from the GPU", e) : TNF_OK;
}

/* ----------------------------------------------------------------- memory */

static tnf_status take_memory(void **out, tnf_device *d, size_t n, tnf_error *e)
{
    cu_ptr p = 0;
    if (!d->cuda) {
        if (posix_memalign(out, 256, n) != 0)
            return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu bytes", n);
        return TNF_OK;
    }
    TNF_TRY(tnf_device_enter(d, e));
    cu_result r = d->cuda->memory_alloc(&p, n);
    tnf_device_leave(d);
    *out = (void *)(uintptr_t)p;
    return r ? tnf_cuda_fail(d->cuda, r, "cannot allocate GPU memory", e) : TNF_OK;
}

static void give_memory(tnf_device *d, void *p)
{
    if (!d->cuda) {
        free(p);
    } else if (tnf_device_enter(d, NULL) == TNF_OK) {
        d->cuda->memory_free((cu_ptr)(uintptr_t)p);
        tnf_device_leave(d);
    }
}

tnf_status tnf_memory_new(tnf_device_memory **out, tnf_device *d, size_t n,
                          const tnf_load_options *how, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_device_memory *m = tnf_alloc0(&a, sizeof *m);
    *out = NULL;
    if (!m)
        return tnf_no_memory("a load", e);
    tnf_status status = TNF_OK;
    if (how->allocate) {
        m->p = how->allocate(how->ctx, d, n);
        m->release = how->release;
        m->ctx = how->ctx;
        if (!m->p)
            status = tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET,
                              "the caller's allocator returned no memory for %zu bytes", n);
    } else {
        status = take_memory(&m->p, d, n, e);
    }
    if (status != TNF_OK) {
        tnf_free(&a, m, sizeof *m);
        return status;
    }
    m->device = d;
    m->n = n;
    atomic_init(&m->users, 1);
    *out = m;
    return TNF_OK;
}

void tnf_memory_drop(tnf_device_memory *m)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (!m || atomic_fetch_sub(&m->users, 1) != 1)
        return;
    if (m->release)
        m->release(m->ctx, m->device, m->p, m->n);
    else
        give_memory(m->device, m->p);
    tnf_free(&a, m, sizeof *m);
}
