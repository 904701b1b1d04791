/* SPDX-License-Identifier: MIT */
/* Kernels of the device. Each is a PTX text, which the driver compiles at first use. If that fails,
 * or if there is no kernel, the host computes. */
#include "device/kernel.h"

#include "model/quant.h"

#include <string.h>

#define THREADS   256u
#define MOST_GRID 2112u /* blocks; more give no speedup */

static const tnf_kernel kernels[TNF_KERNELS] = {
    { "tnf_f32", "dense", "f32", 1, 4, true },
    { "tnf_f16", "dense", "f16", 1, 2, true },
    { "tnf_bf16", "dense", "bf16", 1, 2, true },
    { "tnf_e4m3", "dense", "f8_e4m3fn", 1, 1, false },
    { "tnf_e5m2", "dense", "f8_e5m2", 1, 1, true },
    { "tnf_mx_e2m1", "mx/1", "f4_e2m1", 2, 1, false },
    { "tnf_mx_e2m3", "mx/1", "f6_e2m3", 4, 3, false },
    { "tnf_mx_e3m2", "mx/1", "f6_e3m2", 4, 3, false },
    { "tnf_mx_e4m3", "mx/1", "f8_e4m3fn", 1, 1, false },
    { "tnf_mx_e5m2", "mx/1", "f8_e5m2", 1, 1, true },
    { "tnf_mx_i8", "mx/1", "i8", 1, 1, false },
    { "tnf_codes_2", "quant_group/1", NULL, 4, 1, false },
    { "tnf_codes_4", "quant_group/1", NULL, 2, 1, false },
    { "tnf_codes_8", "quant_group/1", NULL, 1, 1, false },
    { "tnf_q4_0", "gguf.q4_0/1", NULL, 32, 18, false },
    { "tnf_q4_1", "gguf.q4_1/1", NULL, 32, 20, false },
    { "tnf_q5_0", "gguf.q5_0/1", NULL, 32, 22, false },
    { "tnf_q5_1", "gguf.q5_1/1", NULL, 32, 24, false },
    { "tnf_q8_0", "gguf.q8_0/1", NULL, 32, 34, false },
    { "tnf_q2_k", "gguf.q2_k/1", NULL, 256, 84, false },
    { "tnf_q3_k", "gguf.q3_k/1", NULL, 256, 110, false },
    { "tnf_q4_k", "gguf.q4_k/1", NULL, 256, 144, false },
    { "tnf_q5_k", "gguf.q5_k/1", NULL, 256, 176, false },
    { "tnf_q6_k", "gguf.q6_k/1", NULL, 256, 210, false },
    { "tnf_iq4_nl", "gguf.iq4_nl/1", NULL, 32, 18, false },
    { "tnf_iq4_xs", "gguf.iq4_xs/1", NULL, 256, 136, false },
    { "tnf_mxfp4", "gguf.mxfp4/1", NULL, 32, 17, false },
    { "tnf_nvfp4", "gguf.nvfp4/1", NULL, 64, 36, false },
    { "tnf_scatter", "", NULL, 1, 1, false },
};
#define SCATTER (TNF_KERNELS - 1)

static const struct {
    const char *name, *text;
} texts[] = {
#include "device/casts_ptx.h"

#include "device/parts_ptx.h"

#include "device/blocks_ptx.h"

#include "device/blocks_k_ptx.h"
};
_Static_assert(sizeof texts / sizeof *texts == TNF_KERNELS, "a text for each kernel");

/* ---------------------------------------------------------------- modules */

static const char *text_of(const char *name)
{
    size_t i = 0;
    while (strcmp(texts[i].name, name) != 0)
        i++;
    return texts[i].text;
}

/* The caller has entered and locked the device. */
static void load_kernel(tnf_device *d, size_t i)
{
    if (d->cuda->module_load(&d->modules[i], text_of(kernels[i].name)) != 0) {
        d->modules[i] = NULL;
        return;
    }
    if (d->cuda->module_function(&d->functions[i], d->modules[i], kernels[i].name) != 0) {
        d->cuda->module_unload(d->modules[i]);
        d->modules[i] = NULL;
    }
}

/* Is this kernel on the device? Tries to load it once. */
static bool is_loaded(tnf_device *d, size_t i)
{
    pthread_mutex_lock(&d->lock);
    if (!d->modules_tried[i] && tnf_device_enter(d, NULL) == TNF_OK) {
        d->modules_tried[i] = true;
        load_kernel(d, i);
        tnf_device_leave(d);
    }
    bool there = d->modules[i] != NULL;
    pthread_mutex_unlock(&d->lock);
    return there;
}

void tnf_kernels_free(tnf_device *d)
{
    for (size_t i = 0; i < TNF_KERNELS; i++)
        if (d->modules[i])
            d->cuda->module_unload(d->modules[i]);
}

/* ----------------------------------------------------------------- tensor */

/* If the first codes are in the lowest bits, the packing is the same in words of any size. */
static bool takes_codes(const tnf_kernel *k, const tnf_object *o)
{
    tnf_quant q;
    return tnf_quant_of(&q, o, NULL) == TNF_OK && q.bits * k->elements == 8 &&
           (!q.msb_first || q.per_word == 1);
}

static const tnf_kernel *find_kernel(const tnf_object *o, const tnf_part *part)
{
    for (size_t i = 0; i < SCATTER; i++) {
        const tnf_kernel *k = &kernels[i];
        if (strcmp(k->layout, tnf_layout_id(o->layout)) != 0 ||
            (k->type && strcmp(k->type, part->type->id) != 0))
            continue;
        if (o->layout != tnf_layout_by_id("quant_group/1") || takes_codes(k, o))
            return k;
    }
    return NULL;
}

/* The number of a type in numbers.cl; 3: none. */
static uint64_t number_of(const tnf_type *as)
{
    static const tnf_dtype targets[] = { TNF_F32, TNF_F16, TNF_BF16 };
    uint64_t i = 0;
    while (i < 3 && as != tnf_type_of(targets[i]))
        i++;
    return i;
}

/* Are complete units wanted? Layouts other than dense also need all elements. */
static bool takes_run(const tnf_kernel *k, const tnf_load_tensor *w, const tnf_object *o)
{
    return w->run % k->bytes == 0 && (o->layout == tnf_layout_by_id("dense") ||
                                      w->run / k->bytes * k->elements == tnf_elements(o));
}

bool tnf_kernel_find(tnf_load_tensor *w, tnf_device *d, const tnf_device_request *r)
{
    const tnf_object *o = r->object;
    uint64_t to = number_of(r->as);
    if (!d || !d->cuda || !w->place.source || w->count != 1 || to > 2 ||
        (o->order == TNF_ORDER_F && o->rank > 1))
        return false;
    const tnf_kernel *k = find_kernel(o, w->part);
    if (!k || (uintptr_t)r->dst % (r->as->bits / 8) || !takes_run(k, w, o) ||
        !is_loaded(d, (size_t)(k - kernels)))
        return false;
    w->kernel = k;
    if (!tnf_scales_take(w, d, r)) {
        tnf_memory_drop(w->scales);
        w->scales = NULL;
        w->kernel = NULL;
        return false;
    }
    w->to = to;
    w->unit = k->bytes;
    w->unit_out = k->elements * (r->as->bits / 8);
    w->bytes = w->run / k->bytes * w->unit_out;
    w->how = TNF_LOAD_DEVICE;
    return true;
}

/* -------------------------------------------------------------------- run */

bool tnf_kernel_ready(tnf_device *d)
{
    return d->cuda && is_loaded(d, SCATTER);
}

static tnf_status launch_kernel(tnf_device *d, size_t kernel, uint64_t threads, tnf_queue *q,
                                void **arguments, tnf_error *e)
{
    uint64_t grid = (threads + THREADS - 1) / THREADS;
    cu_result r = d->cuda->launch(d->functions[kernel],
                                  (unsigned)(grid < MOST_GRID ? grid : MOST_GRID), 1, 1, THREADS, 1,
                                  1, 0, q->stream, arguments, NULL);
    return r ? tnf_cuda_fail(d->cuda, r, "cannot run a GPU kernel", e) : TNF_OK;
}

tnf_status tnf_kernel_scatter(tnf_device *d, tnf_queue *q, cu_ptr src, cu_ptr table, uint64_t n,
                              uint64_t chunks, tnf_error *e)
{
    uint64_t from = src, rows = table, zero = 0;
    void *arguments[] = { &from, &rows, &n, &chunks, &zero, &zero, &zero, &zero, &zero };
    return launch_kernel(d, SCATTER, chunks, q, arguments, e);
}

tnf_status tnf_kernel_run(const tnf_load_tensor *w, tnf_device *d, tnf_queue *q, void *dst,
                          cu_ptr src, uint64_t at, uint64_t n, tnf_error *e)
{
    uint64_t units = n / w->unit, first = (w->first + at) / w->unit, to = w->to;
    uint64_t out = (uint64_t)(uintptr_t)dst + at / w->unit * w->unit_out, from = src;
    uint64_t scales = w->scales ? (uint64_t)(uintptr_t)w->scales->p : 0;
    uint64_t cols = w->cols, rows_cols = w->rows_cols, across = w->across;
    void *arguments[] = { &from, &out, &units, &to, &first, &scales, &cols, &rows_cols, &across };
    uint64_t elements = units * w->unit_out / (w->to ? 2 : 4);
    return units == 0 ? TNF_OK
                      : launch_kernel(d, (size_t)(w->kernel - kernels), elements, q, arguments, e);
}
