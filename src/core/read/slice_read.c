/* SPDX-License-Identifier: MIT */
/* Reads a slice.
 *
 * The selected elements are runs in the file. The innermost dimensions that are selected completely
 * form one run; the outer dimensions count the runs.
 *
 *   w[0:2, 1:3, :] of [4,4,5]     ░░░░░██████████░░░░░ ░░░░░██████████ …   a run is 2*5 elements
 *
 * Long runs are read directly into the caller's buffer. Short ones that are close together are read
 * as one block with the gaps between them, and picked from memory. So nothing is read twice, in any
 * direction of a step, and large gaps are not read. Column-major tensors are read in their own
 * order, block by block, and the elements are scattered to their places.
 */
#include "base/pool.h"
#include "core/read/place.h"
#include "core/read/stream.h"
#include "kernels/transpose.h"

#include <stdatomic.h>
#include <string.h>

#define MAX_RANK  64u
#define MAX_BITS  128u                 /* of an element */
#define DIRECT    ((uint64_t)64 << 10) /* a run that is read into place; a gap worth skipping */
#define NEAR      ((uint64_t)4 << 10)  /* a gap that is always read */
#define MOST_READ 8u                   /* wider gaps may multiply the bytes read by this */
#define WINDOW    ((uint64_t)1 << 20)  /* the largest block */
#define BLOCK     ((uint64_t)4 << 20)  /* of a column-major tensor: it stays in the cache */
#define FORWARD   ((uint64_t)32 << 20) /* the same for one that can only be read in order */
#define MUCH      ((uint64_t)4 << 30)  /* the largest slice of a part that is too large to decode */
#define LONG_ROW  ((uint64_t)256)      /* preferred length of written rows, in bytes */

/* A selection in the order of storage: the last dimension varies fastest. */
struct selection {
    tnf_stream *from;
    uint32_t rank;
    uint64_t bits; /* per element */
    uint64_t stride[MAX_RANK];
    tnf_slice slice[MAX_RANK];
};

/* How the selection is read: dimensions below `block` one index at a time; `chunk` indices of
 * dimension `block`, with all inner dimensions, as one block. outer == block: each run
 * separately. */
struct plan {
    uint32_t outer, block;
    uint64_t run, chunk;
};

/* The bytes in memory, beginning with byte `at`. */
struct window {
    uint8_t *bytes;
    uint64_t at;
};

/* ------------------------------------------------------------------- bits */

/* Copies nbits from bit `from` of src to bit `to` of dst, least significant first. The bits in dst
 * must be 0. */
void tnf_copy_bits(uint8_t *dst, uint64_t to, const uint8_t *src, uint64_t from, uint64_t nbits)
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

/* ------------------------------------------------------------------- plan */

/* The distance in bytes between two neighbours of a dimension, rounded up; saturates when it is too
 * large to matter. */
static uint64_t neighbour_distance(const struct selection *s, uint32_t d)
{
    int64_t step = s->slice[d].step;
    uint64_t steps = step < 0 ? 0 - (uint64_t)step : (uint64_t)step, bits;
    if (!tnf_ckd_mul(&bits, steps, s->stride[d]) || !tnf_ckd_mul(&bits, bits, s->bits))
        return UINT64_MAX / 16;
    return bits / 8 + 1;
}

static void plan_runs(struct plan *p, const struct selection *s)
{
    p->run = 1;
    p->outer = s->rank;
    while (p->outer > 0) {
        const tnf_slice *x = &s->slice[p->outer - 1];
        if (s->stride[p->outer - 1] != p->run || (x->step != 1 && x->count > 1))
            break;
        p->run *= x->count;
        p->outer--;
    }
}

/* Adds dimensions from the inside out while neighbours are close and everything fits in the
 * window. */
static void plan_block(struct plan *p, const struct selection *s)
{
    uint64_t span = p->run * s->bits / 8 + 2;
    p->block = p->outer;
    p->chunk = 1;
    if (span > DIRECT || (s->bits % 8 == 0 && tnf_part_in_chunks(s->from->part)))
        return;
    while (p->block > 0) {
        uint64_t count = s->slice[p->block - 1].count, gap = neighbour_distance(s, p->block - 1);
        if (count > 1 && (gap > DIRECT || (gap > NEAR && gap / MOST_READ > span)))
            return;
        uint64_t fit = count > 1 ? (WINDOW - span) / gap + 1 : 1;
        p->block--;
        p->chunk = fit < count ? fit : count;
        if (fit < count)
            return;
        span += (count - 1) * gap;
    }
}

/* Extends the bounds by the lowest and the highest element of `n` indices from `first` on of
 * dimension d. */
static void extend_bounds(const struct selection *s, uint32_t d, uint64_t first, uint64_t n,
                          uint64_t *low, uint64_t *high)
{
    uint64_t a = (uint64_t)s->slice[d].start + first * (uint64_t)s->slice[d].step;
    uint64_t b = a +
                 (n - 1) * (uint64_t)s->slice[d].step; /* wrapping is right for negative steps */
    *low += (a < b ? a : b) * s->stride[d];
    *high += (a < b ? b : a) * s->stride[d];
}

/* ---------------------------------------------------------------- reading */

static tnf_status fetch_bits(const struct selection *s, struct window *w, uint64_t from_bit,
                             uint64_t until_bit, tnf_error *e)
{
    w->at = from_bit / 8;
    return tnf_stream_read(s->from, w->at, w->bytes, (size_t)((until_bit + 7) / 8 - w->at), e);
}

/* Reads one run that is not in memory: directly into place, or through the window if bits shift. */
static tnf_status read_run(const struct selection *s, struct window *w, uint64_t element,
                           uint64_t count, uint8_t *dst, uint64_t to, tnf_error *e)
{
    if (s->bits % 8 == 0)
        return tnf_stream_read(s->from, element * (s->bits / 8), dst + to / 8,
                               (size_t)(count * (s->bits / 8)), e);
    for (uint64_t chunk = DIRECT * 8; count > 0;) { /* elements of less than a byte */
        uint64_t take = count < chunk ? count : chunk;
        uint64_t from = element * s->bits, until = (element + take) * s->bits;
        TNF_TRY(fetch_bits(s, w, from, until, e));
        tnf_copy_bits(dst, to, w->bytes, from % 8, until - from);
        element += take;
        to += take * s->bits;
        count -= take;
    }
    return TNF_OK;
}

/* Steps dimensions [from, to) like an odometer; false after the last index. */
static bool next_index(const struct selection *s, uint64_t *index, const uint64_t *counts,
                       uint32_t from, uint32_t to, uint64_t *element)
{
    for (uint32_t d = to; d-- > from;) {
        uint64_t by = (uint64_t)s->slice[d].step *
                      s->stride[d]; /* wrapping is right for negative steps */
        if (++index[d] < counts[d]) {
            *element += by;
            return true;
        }
        *element -= by * (counts[d] - 1);
        index[d] = 0;
    }
    return false;
}

/* Reads a block: `n` indices from `first` on of the block's dimension. `base` is the first element
 * of the dimensions below it. */
static tnf_status read_block(const struct selection *s, const struct plan *p, struct window *w,
                             uint64_t base, uint64_t first, uint64_t n, uint8_t *dst, uint64_t *to,
                             tnf_error *e)
{
    uint64_t low = base, high = base, element = base, counts[MAX_RANK], index[MAX_RANK] = { 0 };
    extend_bounds(s, p->block, first, n, &low, &high);
    element += ((uint64_t)s->slice[p->block].start + first * (uint64_t)s->slice[p->block].step) *
               s->stride[p->block];
    for (uint32_t d = p->block + 1; d < s->rank; d++) {
        extend_bounds(s, d, 0, s->slice[d].count, &low, &high);
        element += (uint64_t)s->slice[d].start * s->stride[d];
        counts[d] = s->slice[d].count;
    }
    counts[p->block] = n;
    TNF_TRY(fetch_bits(s, w, low * s->bits, (high + 1) * s->bits, e));
    do {
        tnf_copy_bits(dst, *to, w->bytes, element * s->bits - w->at * 8, p->run * s->bits);
        *to += p->run * s->bits;
    } while (next_index(s, index, counts, p->block, p->outer, &element));
    return TNF_OK;
}

static tnf_status read_planned(const struct selection *s, const struct plan *p, struct window *w,
                               uint8_t *dst, tnf_error *e)
{
    uint64_t index[MAX_RANK] = { 0 }, counts[MAX_RANK], element = 0, to = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        counts[d] = s->slice[d].count;
        if (d < p->block || p->block == p->outer)
            element += (uint64_t)s->slice[d].start * s->stride[d];
    }
    do {
        if (p->block == p->outer) {
            TNF_TRY(read_run(s, w, element, p->run, dst, to, e));
            to += p->run * s->bits;
            continue;
        }
        for (uint64_t first = 0; first < counts[p->block]; first += p->chunk) {
            uint64_t left = counts[p->block] - first;
            TNF_TRY(read_block(s, p, w, element, first, left < p->chunk ? left : p->chunk, dst, &to,
                               e));
        }
    } while (next_index(s, index, counts, 0, p->block, &element));
    return TNF_OK;
}

/* Reads all selected elements, in the order of storage, packed into dst. */
static tnf_status read_selection(const struct selection *s, uint8_t *dst, tnf_error *e)
{
    struct plan p;
    plan_runs(&p, s);
    plan_block(&p, s);
    struct window w = { 0 };
    tnf_allocator a = tnf_allocator_or_default(NULL);
    bool through = p.block < p.outer || s->bits % 8 != 0;
    if (through && !(w.bytes = tnf_alloc(&a, WINDOW + 64)))
        return tnf_no_memory("reading a slice", e);
    tnf_status status = read_planned(s, &p, &w, dst, e);
    tnf_free(&a, w.bytes, WINDOW + 64);
    return status;
}

/* -------------------------------------------------------------- transpose */

/* A block of a column-major tensor in memory: indices [first, first + rows) of its first dimension
 * in the order of storage, [left, left + cols) of its last, and all indices of the dimensions
 * between. Each element goes to its place in dst, where the first dimension varies fastest. */
struct block {
    const uint8_t *src;
    uint8_t *dst;
    uint32_t rank;
    uint64_t bits, first, rows, left, cols;
    const uint64_t *counts; /* of the whole selection */
    uint64_t between;       /* product of the dimensions between */
};

static void scatter_elements(const struct block *b, const uint64_t *stride, uint64_t from,
                             uint64_t to)
{
    uint64_t last = b->rank - 1, rest = b->between * b->cols;
    for (uint64_t r = 0; r < b->rows; r++)
        for (uint64_t c = 0; c < b->cols; c++)
            tnf_copy_bits(b->dst, (to + r + c * stride[last]) * b->bits, b->src,
                          (from + r * rest + c) * b->bits, b->bits);
}

/* Steps the dimensions between the first and the last; false after the last index. */
static bool next_between(const struct block *b, const uint64_t *stride, uint64_t *index,
                         uint64_t *to)
{
    for (uint32_t d = b->rank - 1; d-- > 1;) {
        *to += stride[d];
        if (++index[d] < b->counts[d])
            return true;
        *to -= stride[d] * index[d];
        index[d] = 0;
    }
    return false;
}

/* For each index of the dimensions between, transposes the matrix of the first and the last
 * dimension. */
static void scatter_block(const struct block *b)
{
    uint64_t stride[MAX_RANK] = { 0 }, index[MAX_RANK] = { 0 }, n = 1, from = 0;
    for (uint32_t d = 0; d < b->rank; d++) {
        stride[d] = n;
        n *= b->counts[d];
    }
    uint64_t last = b->rank - 1, width = b->bits / 8, to = b->first + b->left * stride[last];
    size_t rest = (size_t)(b->between * b->cols);
    do {
        if (b->bits % 8 ||
            !tnf_transpose(b->dst + to * width, (size_t)stride[last], b->src + from * width, rest,
                           (size_t)b->rows, (size_t)b->cols, (size_t)width))
            scatter_elements(b, stride, from, to);
        from += b->cols;
    } while (next_between(b, stride, index, &to));
}

/* Chooses the size of a block: enough of the first dimension to write long rows, and then as much
 * of the last as fits. If only reading forward is cheap, all of the last dimension; then returns
 * false. */
static bool plan_transposed(struct block *b, const tnf_part *part)
{
    bool anywhere = tnf_part_anywhere(part);
    uint64_t most = (anywhere ? BLOCK : FORWARD) * 8 / b->bits, last = b->rank - 1;
    uint64_t least = anywhere ? LONG_ROW * 8 / b->bits : 1;
    least = least < b->counts[0] ? least : b->counts[0];
    b->cols = anywhere ? most / least / b->between : b->counts[last];
    b->cols = b->cols == 0 ? 1 : b->cols > b->counts[last] ? b->counts[last] : b->cols;
    b->rows = most / b->cols / b->between;
    b->rows = b->rows == 0 ? 1 : b->rows > b->counts[0] ? b->counts[0] : b->rows;
    return anywhere;
}

/* Narrows a dimension to a range of its slice. Returns the length of the range. */
static uint64_t narrow_slice(tnf_slice *now, const tnf_slice *whole, uint64_t from, uint64_t n)
{
    now->start = (int64_t)((uint64_t)whole->start + from * (uint64_t)whole->step);
    now->count = whole->count - from < n ? whole->count - from : n;
    return now->count;
}

/* The state of reading a column-major tensor: threads take block after block. */
struct transposing {
    const struct selection *s;
    struct block plan; /* with the rows and columns of a full block */
    size_t size;       /* bytes of a block */
    uint64_t across, all;
    atomic_uint_fast64_t next;
};

static tnf_status transpose_block(const struct transposing *t, uint64_t i, uint8_t *memory,
                                  tnf_error *e)
{
    struct selection s = *t->s;
    struct block b = t->plan;
    uint32_t last = s.rank - 1;
    b.src = memory;
    b.left = i % t->across * t->plan.cols;
    b.first = i / t->across * t->plan.rows;
    b.cols = narrow_slice(&s.slice[last], &t->s->slice[last], b.left, t->plan.cols);
    b.rows = narrow_slice(&s.slice[0], &t->s->slice[0], b.first, t->plan.rows);
    if (s.bits % 8)
        memset(memory, 0, t->size);
    TNF_TRY(read_selection(&s, memory, e));
    scatter_block(&b);
    return TNF_OK;
}

static tnf_status transpose_blocks(void *ctx, size_t thread, tnf_error *e)
{
    struct transposing *t = ctx;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    uint8_t *memory = tnf_alloc(&a, t->size);
    tnf_status status = memory ? TNF_OK : tnf_no_memory("transposing", e);
    (void)thread;
    for (uint64_t i; status == TNF_OK && (i = atomic_fetch_add(&t->next, 1)) < t->all;)
        status = transpose_block(t, i, memory, e);
    tnf_free(&a, memory, t->size);
    return status;
}

static tnf_status read_transposed(const struct selection *s, uint8_t *dst, tnf_error *e)
{
    uint64_t counts[MAX_RANK] = { 0 }, last = s->rank - 1;
    struct transposing t = { .s = s };
    if (s->rank < 2) /* nothing to transpose; callers do not get here */
        return read_selection(s, dst, e);
    struct block *b = &t.plan;
    *b = (struct block) { .dst = dst, .rank = s->rank, .bits = s->bits, .counts = counts };
    b->between = 1;
    for (uint32_t d = 0; d < s->rank; d++)
        counts[d] = s->slice[d].count;
    for (uint32_t d = 1; d < last; d++)
        b->between *= counts[d];
    bool anywhere = plan_transposed(b, s->from->part);
    t.size = (size_t)((b->rows * b->between * b->cols * s->bits + 7) / 8);
    t.across = (counts[last] + b->cols - 1) / b->cols;
    t.all = t.across * ((counts[0] + b->rows - 1) / b->rows);
    bool shared = anywhere && !s->from->cursor && s->bits % 8 == 0; /* a cursor is for one thread */
    unsigned threads = shared ? tnf_pool_threads(0) : 1;
    threads = t.all < threads ? (unsigned)t.all : threads;
    if (threads > 1) /* they share the stream, whose digest is for one thread */
        tnf_stream_uncheck(s->from);
    return tnf_pool_run(threads, threads, transpose_blocks, &t, e);
}

/* ----------------------------------------------------------------- public */

tnf_status tnf_slice_check(const tnf_slice *x, uint64_t dim, tnf_error *e)
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

/* The number of dimensions that are longer than 1: at most 63, since their product is below 2^64.
 * If the rank is higher, only these count. */
static uint32_t long_dimensions(const tnf_object *o)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < o->rank; d++)
        n += o->shape[d] > 1;
    return n;
}

/* Fills in the selection, in storage order. */
static tnf_status select_from(struct selection *s, const tnf_object *o, const tnf_slice *slices,
                              tnf_error *e)
{
    if (o->layout != &tnf_layout_dense || o->nparts != 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has the layout %s: only dense tensors have slices", TNF_QUOTED(o->name),
                        o->layout->id);
    s->rank = o->rank <= MAX_RANK ? o->rank : long_dimensions(o);
    s->bits = o->parts->type->bits;
    if (s->rank > MAX_RANK || s->bits == 0 || s->bits > MAX_BITS)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s cannot be sliced",
                        TNF_QUOTED(o->name));
    uint64_t stride = 1;
    for (uint32_t i = s->rank, left = o->rank; left-- > 0;) {
        uint32_t d = o->order == TNF_ORDER_F ? o->rank - 1 - left : left;
        TNF_TRY(tnf_slice_check(&slices[d], o->shape[d], e));
        if (o->rank > MAX_RANK && o->shape[d] == 1)
            continue;
        s->slice[--i] = slices[d];
        s->stride[i] = stride;
        stride *= o->shape[d]; /* opening the file checked the product for overflow */
    }
    return TNF_OK;
}

static bool goes_forward(const tnf_object *object, const tnf_slice *slices)
{
    for (uint32_t d = 0; d < object->rank; d++)
        if (slices[d].step < 0)
            return false;
    return true;
}

tnf_status tnf_stream_slice(tnf_stream *from, const tnf_object *object, const tnf_slice *slices,
                            void *dst, size_t n, tnf_error *e)
{
    struct selection s;
    if (n == 0)
        return TNF_OK;
    TNF_TRY(select_from(&s, object, slices, e));
    const tnf_part *part = object->parts;
    if (part->payload == TNF_OPAQUE && !from->cursor && part->origin->format->slice &&
        s.bits % 8 == 0 && (object->order == TNF_ORDER_C || object->rank < 2))
        return part->origin->format->slice(part->origin->reader, part->offset, slices, dst, n, e);
    if (s.bits % 8)
        memset(dst, 0, n);
    s.from = from;
    TNF_TRY(object->order == TNF_ORDER_F && object->rank > 1 ? read_transposed(&s, dst, e)
                                                             : read_selection(&s, dst, e));
    if (n == object->parts->nbytes && goes_forward(object, slices))
        return tnf_stream_end(from, e); /* the whole part was read, so it must end here */
    return TNF_OK;
}

bool tnf_slice_of_much(tnf_part *out, const tnf_part *part, uint64_t n)
{
    if (!(part->flags & TNF_PART_UNREADABLE) || !part->origin || !part->origin->slices ||
        n > MUCH || n == part->nbytes)
        return false;
    *out = *part;
    out->flags &= (uint8_t)~TNF_PART_UNREADABLE;
    out->origin = &part->origin->reader->file->origin;
    return true;
}

tnf_status tnf_read_slice(void *dst, size_t n, const tnf_object *object, const tnf_slice *slices,
                          tnf_error *e)
{
    tnf_object some;
    tnf_part part;
    TNF_TRY(tnf_object_there(object, e));
    TNF_TRY(tnf_need_array(slices, object->rank, "slices", e));
    uint64_t bytes = tnf_slice_bytes(object, slices);
    if (bytes != n)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the slice has %llu bytes, but the buffer has %zu",
                        (unsigned long long)bytes, n);
    if (n == 0)
        return TNF_OK;
    TNF_TRY(tnf_need(dst, "dst", e));
    if (tnf_slice_of_much(&part, object->parts, n)) {
        some = *object;
        some.parts = &part;
        object = &some;
    }
    tnf_stream from;
    tnf_status status = tnf_stream_open(&from, object->parts, e);
    if (status == TNF_OK && n == object->parts->nbytes && goes_forward(object, slices))
        status = tnf_stream_check(&from, e);
    if (status == TNF_OK)
        status = tnf_stream_slice(&from, object, slices, dst, n, e);
    tnf_stream_close(&from);
    return status;
}
