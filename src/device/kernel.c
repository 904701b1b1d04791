/* SPDX-License-Identifier: MIT */
/* Kernels of the device. They are one text, which the driver compiles for its GPU when they are
 * first needed, and keeps. Where it cannot, or where there is no kernel, the host computes. */
#include "device/kernel.h"

#include "base/alloc.h"
#include "device/kernels_ptx.h"

#include <math.h>
#include <string.h>

#define THREADS   256u
#define MOST_GRID 2112u /* blocks: more of them gain nothing */

struct tnf_kernel {
    const char *name; /* in kernels.cl */
    const char *of;   /* the type of its elements, or its layout */
    bool blocks;      /* it is a layout */
    bool has_infinity;
};

static const struct tnf_kernel kernels[TNF_KERNELS] = {
    { "tnf_f32", "f32", false, true },          { "tnf_f16", "f16", false, true },
    { "tnf_bf16", "bf16", false, true },        { "tnf_e4m3", "f8_e4m3fn", false, false },
    { "tnf_e5m2", "f8_e5m2", false, true },     { "tnf_q8_0", "gguf.q8_0/1", true, false },
    { "tnf_q4_0", "gguf.q4_0/1", true, false }, { "tnf_q4_k", "gguf.q4_k/1", true, false },
    { "tnf_q6_k", "gguf.q6_k/1", true, false }, { "tnf_scatter", "", true, false },
};
#define SCATTER (TNF_KERNELS - 1)

/* ----------------------------------------------------------------- module */

/* The device is entered, and locked. */
static cu_result load_module(tnf_device *d)
{
    cu_result r = d->cuda->module_load(&d->module, tnf_kernels_ptx);
    if (r) {
        d->module = NULL;
        return r;
    }
    for (size_t i = 0; r == 0 && i < TNF_KERNELS; i++)
        r = d->cuda->module_function(&d->functions[i], d->module, kernels[i].name);
    if (r) {
        d->cuda->module_unload(d->module);
        d->module = NULL;
    }
    return r;
}

/* Are there kernels on this device? Asked once. */
static bool has_module(tnf_device *d)
{
    pthread_mutex_lock(&d->lock);
    if (!d->module_tried && tnf_device_enter(d, NULL) == TNF_OK) {
        d->module_tried = true;
        load_module(d);
        tnf_device_leave(d);
    }
    bool there = d->module != NULL;
    pthread_mutex_unlock(&d->lock);
    return there;
}

/* ------------------------------------------------------------------- want */

static const struct tnf_kernel *find_kernel(const tnf_object *o, const tnf_part *part)
{
    bool dense = o->layout == tnf_layout_by_id("dense");
    const char *of = dense ? part->type->id : tnf_layout_id(o->layout);
    for (size_t i = 0; i < TNF_KERNELS; i++)
        if (kernels[i].blocks == !dense && strcmp(kernels[i].of, of) == 0)
            return &kernels[i];
    return NULL;
}

/* As kernels.cl counts them; 3: none of them. */
static uint64_t number_of(const tnf_type *as)
{
    static const tnf_dtype targets[] = { TNF_F32, TNF_F16, TNF_BF16 };
    uint64_t i = 0;
    while (i < 3 && as != tnf_type_of(targets[i]))
        i++;
    return i;
}

/* How many elements of a dimension share a scale, as virtual tensors have it; 0: they do not fit.
 */
static uint64_t block_of(uint64_t length, uint64_t count)
{
    if (count == 1)
        return length;
    if (count && length / 128 + (length % 128 != 0) == count)
        return 128;
    return count && length % count == 0 ? length / count : 0;
}

/* Scales as f32; false if one of them makes numbers that machines write in different ways. */
static bool read_scales(float *out, const tnf_object *scales, size_t n, bool has_infinity)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t bytes = (size_t)scales->parts->nbytes;
    uint8_t *stored = tnf_alloc(&a, bytes);
    double *x = tnf_alloc(&a, n * sizeof *x);
    bool fine = stored && x && tnf_read(scales, stored, bytes, NULL) == TNF_OK &&
                tnf_type_decode(scales->parts->type, stored, 0, n, x);
    for (size_t i = 0; fine && i < n; i++) {
        out[i] = (float)x[i];
        fine = isfinite(out[i]) && (out[i] != 0 || !has_infinity);
    }
    tnf_free(&a, stored, bytes);
    tnf_free(&a, x, n * sizeof *x);
    return fine;
}

static bool upload_scales(tnf_want *w, tnf_device *d, const tnf_object *scales, size_t n)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_load_options how = TNF_LOAD_INIT;
    float *host = tnf_alloc(&a, n * sizeof *host);
    bool fine = host && read_scales(host, scales, n, w->kernel->has_infinity) &&
                tnf_memory_new(&w->scales, d, n * sizeof *host, &how, NULL) == TNF_OK &&
                tnf_device_enter(d, NULL) == TNF_OK;
    if (fine) {
        fine = d->cuda->copy_now((cu_ptr)(uintptr_t)w->scales->p, host, n * sizeof *host) == 0;
        tnf_device_leave(d);
    }
    tnf_free(&a, host, n * sizeof *host);
    return fine;
}

/* A matrix or vector of floats and its scales. */
static bool take_scales(tnf_want *w, tnf_device *d, const tnf_object *o, const tnf_object *s)
{
    bool fits = !w->kernel->blocks && s->layout == tnf_layout_by_id("dense") && s->nparts == 1 &&
                s->parts->type->number == TNF_NUMBER_FLOAT && o->rank >= 1 && o->rank <= 2 &&
                s->rank <= o->rank && (s->order == TNF_ORDER_C || s->rank < 2);
    if (!fits || tnf_elements(o) == 0)
        return false;
    bool one = tnf_elements(s) == 1;
    uint64_t rows = o->rank > 1 ? o->shape[0] : 1, cols = o->shape[o->rank - 1];
    uint64_t down = one || o->rank < 2 || s->rank < 1 ? 1 : s->shape[0];
    uint64_t across = one || s->rank < o->rank ? 1 : s->shape[o->rank - 1];
    uint64_t block_rows = block_of(rows, down), block_cols = block_of(cols, across);
    if (block_rows == 0 || block_cols == 0 || block_rows > UINT32_MAX || block_cols > UINT32_MAX ||
        down * across != tnf_elements(s))
        return false;
    w->cols = cols;
    w->rows_cols = block_rows << 32 | block_cols;
    w->across = across;
    return upload_scales(w, d, s, (size_t)(down * across));
}

bool tnf_kernel_want(tnf_want *w, tnf_device *d, const tnf_device_request *r)
{
    const tnf_object *o = r->object;
    uint32_t elements = 1, bytes;
    uint64_t to = number_of(r->as);
    if (!d || !d->cuda || !w->place.source || w->count != 1 || to > 2 ||
        (o->order == TNF_ORDER_F && o->rank > 1))
        return false;
    const struct tnf_kernel *k = find_kernel(o, w->part);
    if (!k || !has_module(d) || (uintptr_t)r->dst % (r->as->bits / 8))
        return false;
    if (!k->blocks)
        bytes = w->part->type->bits / 8;
    else if (!tnf_layout_blocks(o->layout, &elements, &bytes))
        return false;
    if (w->run % bytes || (k->blocks && w->run / bytes * elements != tnf_elements(o)))
        return false;
    w->kernel = k;
    if (r->scales && !take_scales(w, d, o, r->scales)) {
        tnf_memory_drop(w->scales);
        w->scales = NULL;
        w->kernel = NULL;
        return false;
    }
    w->to = to;
    w->unit = bytes;
    w->unit_out = elements * (r->as->bits / 8);
    w->bytes = w->run / bytes * w->unit_out;
    w->how = TNF_LOAD_DEVICE;
    return true;
}

/* -------------------------------------------------------------------- run */

bool tnf_kernel_ready(tnf_device *d)
{
    return d->cuda && has_module(d);
}

tnf_status tnf_kernel_scatter(tnf_device *d, tnf_queue *q, cu_ptr src, cu_ptr table, uint64_t n,
                              uint64_t chunks, tnf_error *e)
{
    uint64_t from = src, rows = table, zero = 0, grid = (chunks + THREADS - 1) / THREADS;
    void *arguments[] = { &from, &rows, &n, &chunks, &zero, &zero, &zero, &zero, &zero };
    cu_result r = d->cuda->launch(d->functions[SCATTER],
                                  (unsigned)(grid < MOST_GRID ? grid : MOST_GRID), 1, 1, THREADS, 1,
                                  1, 0, q->stream, arguments, NULL);
    return r ? tnf_cuda_fail(d->cuda, r, "cannot run a kernel of the GPU", e) : TNF_OK;
}

tnf_status tnf_kernel_run(const tnf_want *w, tnf_device *d, tnf_queue *q, void *dst, cu_ptr src,
                          uint64_t at, uint64_t n, tnf_error *e)
{
    uint64_t units = n / w->unit, first = (w->first + at) / w->unit, to = w->to;
    uint64_t out = (uint64_t)(uintptr_t)dst + at / w->unit * w->unit_out, from = src;
    uint64_t scales = w->scales ? (uint64_t)(uintptr_t)w->scales->p : 0;
    uint64_t cols = w->cols, rows_cols = w->rows_cols, across = w->across;
    void *arguments[] = { &from, &out, &units, &to, &first, &scales, &cols, &rows_cols, &across };
    uint64_t elements = units * w->unit_out / (w->to ? 2 : 4);
    uint64_t grid = (elements + THREADS - 1) / THREADS;
    if (units == 0)
        return TNF_OK;
    cu_result r = d->cuda->launch(d->functions[w->kernel - kernels],
                                  (unsigned)(grid < MOST_GRID ? grid : MOST_GRID), 1, 1, THREADS, 1,
                                  1, 0, q->stream, arguments, NULL);
    return r ? tnf_cuda_fail(d->cuda, r, "cannot run a kernel of the GPU", e) : TNF_OK;
}
