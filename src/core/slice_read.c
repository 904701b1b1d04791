/* SPDX-License-Identifier: MIT */
/* Fetching a slice.
 *
 * The selected elements lie in the file as runs: the innermost dimensions that are taken whole make
 * one run, the outer dimensions count over the runs.
 *
 *   w[0:2, 1:3, :] of [4,4,5]     ░░░░░█████ █████░░░░░ …      run = 2*5 elements, 2 of them
 *
 * Long runs go straight to the caller; short ones come through a window that reads ahead no further
 * than the last selected byte. Column-major tensors are read in their own order, a block of the
 * first dimension at a time, and transposed in memory.
 */
#include "core/core.h"

#include <string.h>

#define MAX_RANK 64u
#define MAX_BITS 128u                 /* of an element */
#define DIRECT   ((uint64_t)64 << 10) /* bytes of a run that are read straight into place */
#define WINDOW   ((size_t)1 << 20)
#define BLOCK    ((uint64_t)32 << 20) /* of a column-major tensor */

/* A selection in the order of storage: the last dimension varies fastest. */
struct selection {
    const tnf_part *part;
    uint32_t rank;
    uint64_t bits; /* per element */
    uint64_t stride[MAX_RANK];
    tnf_slice slice[MAX_RANK];
};

struct window {
    uint8_t *bytes;
    uint64_t at, n;
    uint64_t low, high; /* the selection's own bytes */
    bool ahead, backwards;
};

/* ------------------------------------------------------------------- bits */

/* Copies nbits from bit `from` of src to bit `to` of dst, least significant first. dst holds zeros
 * there. */
static void copy_bits(uint8_t *dst, uint64_t to, const uint8_t *src, uint64_t from, uint64_t nbits)
{
    if (to % 8 == 0 && from % 8 == 0) {
        memcpy(dst + to / 8, src + from / 8, (size_t)(nbits / 8));
        to += nbits / 8 * 8;
        from += nbits / 8 * 8;
        nbits %= 8;
    }
    for (; nbits > 0; nbits--, to++, from++)
        dst[to / 8] |= (uint8_t)((src[from / 8] >> from % 8 & 1u) << to % 8);
}

/* ------------------------------------------------------------------- runs */

static tnf_status refill(struct window *w, const tnf_part *part, uint64_t at, uint64_t n,
                         tnf_error *e)
{
    uint64_t begin = at, end = at + n;
    if (w->ahead && !w->backwards)
        end = w->high - at < WINDOW ? w->high : at + WINDOW;
    else if (w->ahead)
        begin = end - w->low < WINDOW ? w->low : end - WINDOW;
    TNF_TRY(tnf_read_part(part, begin, w->bytes, (size_t)(end - begin), e));
    w->at = begin;
    w->n = end - begin;
    return TNF_OK;
}

/* One run of elements: to bit `to` of dst. */
static tnf_status read_run(const struct selection *s, struct window *w, uint64_t element,
                           uint64_t count, uint8_t *dst, uint64_t to, tnf_error *e)
{
    if (s->bits % 8 == 0 && count * (s->bits / 8) >= DIRECT)
        return tnf_read_part(s->part, element * (s->bits / 8), dst + to / 8,
                             (size_t)(count * (s->bits / 8)), e);
    uint64_t chunk = DIRECT / 2 * 8 / s->bits / 8 * 8; /* elements: whole bytes, at most half */
    while (count > 0) {
        uint64_t take = count < chunk ? count : chunk;
        uint64_t from = element * s->bits, until = (element + take) * s->bits;
        uint64_t at = from / 8, n = (until + 7) / 8 - at;
        if (at < w->at || at + n > w->at + w->n)
            TNF_TRY(refill(w, s->part, at, n, e));
        copy_bits(dst, to, w->bytes + (at - w->at), from % 8, until - from);
        element += take;
        to += take * s->bits;
        count -= take;
    }
    return TNF_OK;
}

/* How many of the last dimensions make one run, and its length. */
static uint32_t inner_dimensions(const struct selection *s, uint64_t *run)
{
    uint32_t d = s->rank;
    *run = 1;
    while (d > 0) {
        const tnf_slice *x = &s->slice[d - 1];
        if (s->stride[d - 1] != *run || (x->step != 1 && x->count > 1))
            break;
        *run *= x->count;
        d--;
    }
    return d;
}

static uint64_t first_element(const struct selection *s)
{
    uint64_t element = 0;
    for (uint32_t d = 0; d < s->rank; d++)
        element += (uint64_t)s->slice[d].start * s->stride[d];
    return element;
}

static void plan_window(struct window *w, const struct selection *s, uint32_t outer)
{
    uint64_t low = 0, high = 0; /* elements */
    for (uint32_t d = 0; d < s->rank; d++) {
        uint64_t a = (uint64_t)s->slice[d].start;
        uint64_t b = a + (s->slice[d].count - 1) * (uint64_t)s->slice[d].step;
        low += (a < b ? a : b) * s->stride[d];
        high += (a < b ? b : a) * s->stride[d];
    }
    w->low = low * s->bits / 8;
    w->high = ((high + 1) * s->bits + 7) / 8;
    if (outer > 0) {
        int64_t step = s->slice[outer - 1].step;
        uint64_t stride = (uint64_t)(step < 0 ? -step : step) * s->stride[outer - 1];
        w->backwards = step < 0;
        w->ahead = stride <= DIRECT * 8 / s->bits;
    }
}

/* Steps the outer dimensions like an odometer; false when it has been through. */
static bool next_run(const struct selection *s, uint64_t *index, uint32_t outer, uint64_t *element)
{
    for (uint32_t d = outer; d-- > 0;) {
        uint64_t by = (uint64_t)s->slice[d].step * s->stride[d]; /* wraps well when negative */
        if (++index[d] < s->slice[d].count) {
            *element += by;
            return true;
        }
        *element -= by * (s->slice[d].count - 1);
        index[d] = 0;
    }
    return false;
}

/* All selected elements, in the order of storage, packed into dst. */
static tnf_status read_selection(const struct selection *s, uint8_t *dst, tnf_error *e)
{
    uint64_t run, index[MAX_RANK] = { 0 };
    uint32_t outer = inner_dimensions(s, &run);
    struct window w = { 0 };
    plan_window(&w, s, outer);
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t size = WINDOW + 64;
    if (!(w.bytes = tnf_alloc(&a, size)))
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for reading a slice");
    uint64_t element = first_element(s), to = 0;
    tnf_status status;
    do {
        status = read_run(s, &w, element, run, dst, to, e);
        to += run * s->bits;
    } while (status == TNF_OK && next_run(s, index, outer, &element));
    tnf_free(&a, w.bytes, size);
    return status;
}

/* -------------------------------------------------------------- transpose */

/* src holds counts[rank] elements with the first dimension fastest; dst gets the last fastest. */
static void transpose(const struct selection *s, const uint64_t *counts, const uint8_t *src,
                      uint8_t *dst, uint64_t to)
{
    uint64_t stride[MAX_RANK], index[MAX_RANK] = { 0 }, from = 0, n = 1;
    uint64_t bytes = s->bits % 8 == 0 ? s->bits / 8 : 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        stride[d] = n;
        n *= counts[d];
    }
    for (; n > 0; n--, to += s->bits) {
        if (bytes)
            memcpy(dst + to / 8, src + from * bytes, (size_t)bytes);
        else
            copy_bits(dst, to, src, from * s->bits, s->bits);
        for (uint32_t d = s->rank; d-- > 0;) {
            from += stride[d];
            if (++index[d] < counts[d])
                break;
            from -= stride[d] * counts[d];
            index[d] = 0;
        }
    }
}

/* s->slice is in storage order, that is reversed: the tensor's first dimension is its last. */
static tnf_status read_transposed(struct selection *s, uint8_t *dst, tnf_error *e)
{
    uint64_t counts[MAX_RANK], rest = 1;
    tnf_slice *first = &s->slice[s->rank - 1], whole = *first;
    for (uint32_t d = 0; d < s->rank; d++)
        counts[d] = s->slice[s->rank - 1 - d].count;
    for (uint32_t d = 1; d < s->rank; d++)
        rest *= counts[d];
    uint64_t rows = BLOCK * 8 / s->bits / rest;
    rows = rows == 0 ? 1 : rows > whole.count ? whole.count : rows;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t size = (size_t)((rows * rest * s->bits + 7) / 8);
    uint8_t *block = tnf_alloc(&a, size);
    if (!block)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for transposing");
    tnf_status status = TNF_OK;
    for (uint64_t row = 0; row < whole.count && status == TNF_OK; row += rows) {
        first->start = whole.start + (int64_t)row * whole.step;
        first->count = counts[0] = whole.count - row < rows ? whole.count - row : rows;
        memset(block, 0, size);
        status = read_selection(s, block, e);
        if (status == TNF_OK)
            transpose(s, counts, block, dst, row * rest * s->bits);
    }
    tnf_free(&a, block, size);
    return status;
}

/* ----------------------------------------------------------------- public */

static tnf_status check_slice(const tnf_slice *x, uint64_t dim, tnf_error *e)
{
    uint64_t start = (uint64_t)x->start, last = x->count - 1;
    bool ok = x->start >= 0 && start < dim;
    if (ok && x->step > 0)
        ok = last <= (dim - 1 - start) / (uint64_t)x->step;
    else if (ok && x->step < 0)
        ok = last <= start / (0 - (uint64_t)x->step);
    else
        ok = ok && last == 0;
    return ok ? TNF_OK
              : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a slice reaches beyond its dimension");
}

/* Fills the selection, in storage order. */
static tnf_status select_from(struct selection *s, const tnf_object *o, const tnf_slice *slices,
                              tnf_error *e)
{
    if (o->layout != &tnf_layout_dense || o->nparts != 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has the layout %s: only dense tensors have slices", TNF_QUOTED(o->name),
                        o->layout->id);
    if (o->rank > MAX_RANK || o->parts->type->bits == 0 || o->parts->type->bits > MAX_BITS)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s cannot be sliced",
                        TNF_QUOTED(o->name));
    s->part = o->parts;
    s->rank = o->rank;
    s->bits = o->parts->type->bits;
    uint64_t stride = 1;
    for (uint32_t i = o->rank; i-- > 0;) {
        uint32_t d = o->order == TNF_ORDER_F ? o->rank - 1 - i : i;
        TNF_TRY(check_slice(&slices[d], o->shape[d], e));
        s->slice[i] = slices[d];
        s->stride[i] = stride;
        stride *= o->shape[d]; /* the whole product was checked when the file was opened */
    }
    return TNF_OK;
}

tnf_status tnf_read_slice(const tnf_object *object, const tnf_slice *slices, void *dst, size_t n,
                          tnf_error *e)
{
    uint64_t bytes = tnf_slice_bytes(object, slices);
    if (bytes != n)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the slice has %llu bytes, the buffer %zu",
                        (unsigned long long)bytes, n);
    if (n == 0)
        return TNF_OK;
    struct selection s;
    TNF_TRY(select_from(&s, object, slices, e));
    if (s.bits % 8)
        memset(dst, 0, n);
    return object->order == TNF_ORDER_F && object->rank > 1 ? read_transposed(&s, dst, e)
                                                            : read_selection(&s, dst, e);
}
