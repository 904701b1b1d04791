/* SPDX-License-Identifier: MIT */
/* The request's scales as f32, in the memory of the device before any element comes. Where a number
 * would come of them that machines write in different ways, the host computes: a NaN, or infinity
 * times 0. */
#include "base/alloc.h"
#include "device/kernel.h"

#include <math.h>

#define PIECE 256u /* numbers at a time */

/* A part's bytes in memory, to be freed; NULL if it cannot be read. */
static uint8_t *read_part(const tnf_part *part)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t n = (size_t)part->nbytes;
    uint8_t *bytes = tnf_alloc(&a, n);
    if (bytes && tnf_read_part(part, 0, bytes, n, NULL) == TNF_OK)
        return bytes;
    tnf_free(&a, bytes, n);
    return NULL;
}

static void free_part(uint8_t *bytes, const tnf_part *part)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_free(&a, bytes, (size_t)part->nbytes);
}

static bool upload(tnf_want *w, tnf_device *d, const void *host, size_t n)
{
    tnf_load_options how = TNF_LOAD_INIT;
    if (tnf_memory_new(&w->scales, d, n, &how, NULL) != TNF_OK ||
        tnf_device_enter(d, NULL) != TNF_OK)
        return false;
    cu_result r = d->cuda->copy_now((cu_ptr)(uintptr_t)w->scales->p, host, n);
    tnf_device_leave(d);
    return r == 0;
}

/* Numbers of a part as f32; false if one of them is not finite, or 0 where it must
 * not be. */
static bool decode(float *out, const tnf_part *part, size_t n, bool may_be_0)
{
    uint8_t *bytes = read_part(part);
    bool fine = bytes != NULL;
    for (size_t at = 0; fine && at < n; at += PIECE) {
        double x[PIECE];
        size_t here = n - at < PIECE ? n - at : PIECE;
        fine = tnf_type_decode(part->type, bytes, at, here, x);
        for (size_t i = 0; fine && i < here; i++) {
            float y = (float)x[i];
            out[at + i] = y;
            fine = isfinite(y) && (y != 0 || may_be_0);
        }
    }
    free_part(bytes, part);
    return fine;
}

/* Where element i finds its scale: place_of() of casts.cl. false: the numbers are too large. */
static bool place(tnf_want *w, uint64_t cols, uint64_t block_rows, uint64_t block_cols,
                  uint64_t across)
{
    w->cols = cols;
    w->rows_cols = block_rows << 32 | block_cols;
    w->across = across;
    return block_rows <= UINT32_MAX && block_cols <= UINT32_MAX;
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

static bool take_floats(tnf_want *w, tnf_device *d, const tnf_object *scales, size_t n)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    float *host = tnf_alloc(&a, n * sizeof *host);
    bool fine = host && decode(host, scales->parts, n, !w->kernel->has_infinity) &&
                upload(w, d, host, n * sizeof *host);
    tnf_free(&a, host, n * sizeof *host);
    return fine;
}

/* A matrix or vector of floats and its scales. */
static bool take_scales(tnf_want *w, tnf_device *d, const tnf_object *o, const tnf_object *s)
{
    bool fits = s->layout == tnf_layout_by_id("dense") && s->nparts == 1 &&
                s->parts->type->number == TNF_NUMBER_FLOAT && o->rank >= 1 && o->rank <= 2 &&
                s->rank <= o->rank && (s->order == TNF_ORDER_C || s->rank < 2);
    if (!fits || tnf_elements(o) == 0)
        return false;
    bool one = tnf_elements(s) == 1;
    uint64_t rows = o->rank > 1 ? o->shape[0] : 1, cols = o->shape[o->rank - 1];
    uint64_t down = one || o->rank < 2 || s->rank < 1 ? 1 : s->shape[0];
    uint64_t across = one || s->rank < o->rank ? 1 : s->shape[o->rank - 1];
    uint64_t block_rows = block_of(rows, down), block_cols = block_of(cols, across);
    return block_rows && block_cols && down * across == tnf_elements(s) &&
           place(w, cols, block_rows, block_cols, across) &&
           take_floats(w, d, s, (size_t)(down * across));
}

bool tnf_scales_take(tnf_want *w, tnf_device *d, const tnf_device_request *r)
{
    const tnf_object *o = r->object;
    return !r->scales ||
           (o->layout == tnf_layout_by_id("dense") && take_scales(w, d, o, r->scales));
}
