/* SPDX-License-Identifier: MIT */
/* Scales for kernels, which are copied to the device before any elements:
 *
 *   dense            the request's scales, as f32
 *   mx/1             the part "scales": exponents of blocks, one byte each, as stored
 *   quant_group/1    pairs of f32, the scale and the zero of each group
 *
 * If the result could be a NaN whose bits depend on the machine, the host computes: for the product
 * of two NaNs, or infinity times 0. */
#include "base/alloc.h"
#include "device/kernel.h"
#include "model/quant.h"

#include <math.h>
#include <string.h>

#define PIECE 256u /* numbers at a time */

/* Reads a part into memory, which the caller frees; NULL if it cannot be read. */
static uint8_t *read_part(const tnf_part *part)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t n = (size_t)part->nbytes;
    uint8_t *bytes = tnf_alloc(&a, n);
    if (bytes && tnf_read_part(bytes, n, part, 0, NULL) == TNF_OK)
        return bytes;
    tnf_free(&a, bytes, n);
    return NULL;
}

static void free_part(uint8_t *bytes, const tnf_part *part)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_free(&a, bytes, (size_t)part->nbytes);
}

static bool upload_numbers(tnf_load_tensor *w, tnf_device *d, const void *host, size_t n)
{
    tnf_load_options how = TNF_LOAD_INIT;
    if (tnf_memory_new(&w->scales, d, n, &how, NULL) != TNF_OK ||
        tnf_device_enter(d, NULL) != TNF_OK)
        return false;
    cu_result r = d->cuda->copy_now((cu_ptr)(uintptr_t)w->scales->p, host, n);
    tnf_device_leave(d);
    return r == 0;
}

/* Decodes numbers of a part as f32, `step` apart. Returns false if one of them is not finite, or is
 * 0 although !may_be_0. */
static bool decode_numbers(float *out, size_t step, const tnf_part *part, size_t n, bool may_be_0)
{
    uint8_t *bytes = read_part(part);
    bool fine = bytes != NULL;
    for (size_t at = 0; fine && at < n; at += PIECE) {
        double x[PIECE];
        size_t here = n - at < PIECE ? n - at : PIECE;
        fine = tnf_type_decode(x, part->type, bytes, at, here);
        for (size_t i = 0; fine && i < here; i++) {
            float y = (float)x[i];
            out[(at + i) * step] = y;
            fine = isfinite(y) && (y != 0 || may_be_0);
        }
    }
    free_part(bytes, part);
    return fine;
}

/* Sets how place_of() of casts.cl finds the scale of an element. Returns false if the numbers are
 * too large. */
static bool place_scales(tnf_load_tensor *w, uint64_t cols, uint64_t block_rows,
                         uint64_t block_cols, uint64_t across)
{
    w->cols = cols;
    w->rows_cols = block_rows << 32 | block_cols;
    w->across = across;
    return block_rows <= UINT32_MAX && block_cols <= UINT32_MAX;
}

/* The number of elements per index of an axis. */
static uint64_t elements_behind(const tnf_object *o, uint64_t axis)
{
    uint64_t n = 1;
    for (uint64_t d = axis + 1; d < o->rank; d++)
        n *= o->shape[d];
    return n;
}

/* ------------------------------------------------------------------ dense */

/* How many elements of a dimension share a scale, by the rules of virtual tensors; 0: the numbers
 * do not fit. */
static uint64_t block_of(uint64_t length, uint64_t count)
{
    if (count == 1)
        return length;
    if (count && length / 128 + (length % 128 != 0) == count)
        return 128;
    return count && length % count == 0 ? length / count : 0;
}

static bool take_floats(tnf_load_tensor *w, tnf_device *d, const tnf_object *scales, size_t n)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    float *host = tnf_alloc(&a, n * sizeof *host);
    bool fine = host && decode_numbers(host, 1, scales->parts, n, !w->kernel->has_infinity) &&
                upload_numbers(w, d, host, n * sizeof *host);
    tnf_free(&a, host, n * sizeof *host);
    return fine;
}

/* Takes the scales of a matrix or vector of floats. */
static bool take_scales(tnf_load_tensor *w, tnf_device *d, const tnf_object *o, const tnf_object *s)
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
           place_scales(w, cols, block_rows, block_cols, across) &&
           take_floats(w, d, s, (size_t)(down * across));
}

/* --------------------------------------------------------------------- mx */

static bool take_exponents(tnf_load_tensor *w, tnf_device *d, const tnf_object *o)
{
    const tnf_part *part = tnf_object_part(o, "scales");
    tnf_mx m;
    if (tnf_mx_of(&m, o, NULL) != TNF_OK || part->nbytes == 0)
        return false;
    uint64_t inner = elements_behind(o, m.axis);
    bool has_nan = w->part->type->number == TNF_NUMBER_FLOAT && w->part->type->bits == 8;
    uint8_t *bytes = read_part(part);
    bool fine = bytes && place_scales(w, inner, m.block_size, 1, inner) &&
                !(has_nan && memchr(bytes, 0xff, (size_t)part->nbytes)) &&
                upload_numbers(w, d, bytes, (size_t)part->nbytes);
    free_part(bytes, part);
    return fine;
}

/* ------------------------------------------------------------ quant_group */

/* Writes the zeros of n groups, to every second number. */
static bool fill_zeros(float *out, const tnf_object *o, const tnf_quant *q, size_t n)
{
    const tnf_part *zeros = tnf_object_part(o, "zeros");
    if (q->zero_form == TNF_ZERO_TENSOR && q->zero_packing == TNF_ZEROS_PLAIN)
        return decode_numbers(out, 2, zeros, n, true);
    uint8_t *bytes = q->zero_form == TNF_ZERO_TENSOR ? read_part(zeros) : NULL;
    if (q->zero_form == TNF_ZERO_TENSOR && !bytes)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t bit = (uint64_t)i * q->bits;
        unsigned code = bytes ? (unsigned)bytes[bit / 8] >> bit % 8 & ((1u << q->bits) - 1) : 0;
        out[2 * i] = bytes ? (float)code : (float)q->zero;
    }
    if (bytes)
        free_part(bytes, zeros);
    return true;
}

/* For the kernels, one scale per index of the axis is a group only if the axis is the first. */
static bool place_groups(tnf_load_tensor *w, const tnf_object *o, const tnf_quant *q)
{
    uint64_t inner = elements_behind(o, q->axis);
    if (q->scale_a_row)
        return q->axis == 0 && place_scales(w, inner, 1, inner, 1);
    return place_scales(w, inner, q->group_size ? q->group_size : 1, 1, inner);
}

static bool take_groups(tnf_load_tensor *w, tnf_device *d, const tnf_object *o)
{
    const tnf_part *scales = tnf_object_part(o, "scales");
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_quant q;
    if (tnf_quant_of(&q, o, NULL) != TNF_OK || !place_groups(w, o, &q))
        return false;
    uint64_t n = q.scale_a_row ? o->shape[q.axis]
                               : tnf_elements(o) / (q.group_size ? q.group_size : 1);
    size_t size = 2 * sizeof(float) * (size_t)n;
    if (n == 0 || n > w->run / (2 * sizeof(float))) /* the scales are larger than the codes */
        return false;
    float *pairs = tnf_alloc(&a, size);
    bool fine = pairs && decode_numbers(pairs, 2, scales, (size_t)n, true) &&
                fill_zeros(pairs + 1, o, &q, (size_t)n) && upload_numbers(w, d, pairs, size);
    tnf_free(&a, pairs, size);
    return fine;
}

/* ----------------------------------------------------------------- tensor */

bool tnf_scales_take(tnf_load_tensor *w, tnf_device *d, const tnf_device_request *r)
{
    const tnf_object *o = r->object;
    if (o->layout == tnf_layout_by_id("dense"))
        return !r->scales || take_scales(w, d, o, r->scales);
    if (o->nparts == 1 || r->scales)
        return !r->scales;
    if (tnf_elements(o) > UINT32_MAX)
        return false;
    return o->layout == tnf_layout_by_id("mx/1") ? take_exponents(w, d, o) : take_groups(w, d, o);
}
