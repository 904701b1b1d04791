/* SPDX-License-Identifier: MIT */
/* Virtual tensors that move elements: slices, and the other order, which is a slice of everything.
 *
 * A window of the result, elements [first, first + n) row by row, is divided into boxes: the rest
 * of a row, whole rows, whole planes, then the same in reverse. Each box is a slice of the source.
 *
 *   ░░░░░▓▓▓▓      [3,9], elements 5 to 22: the end of row 0, row 1, the beginning of row 2
 *   ▓▓▓▓▓▓▓▓▓
 *   ▓▓▓▓▓░░░░
 */
#include "core/read/virtual.h"

#include <string.h>
#include <unistd.h>

#define MAX_RANK   64u
#define TRANSPOSED ((uint64_t)16 << 20) /* the most bytes that are transposed at a time */
#define IN_CACHE   ((uint64_t)4 << 20)  /* the least, unless the source is read in order */
#define LONG_RUN   ((uint64_t)256)      /* bytes that are read from each column, if possible */
#define FORWARD    ((uint64_t)4 << 20)  /* bytes that are read at a time otherwise */
#define SPOOLED    ((uint64_t)1 << 20)  /* bytes that are kept at a time */

struct slicing {
    tnf_object from;   /* the source, possibly with its dimensions reversed */
    tnf_slice *slices; /* one per dimension of the source */
    uint64_t *inner;   /* elements of the result after each dimension */
    bool backward;     /* its bytes are read from the beginning several times, or backward */
};

/* For a source that can be read only once, of which a slice reads backward: a file with its bytes,
 * and a part that says so. */
struct spooled {
    struct tnf_origin origin;
    tnf_part part;
};

/* The largest box that begins at element `first` of the result and has at most n elements. */
static uint64_t next_box(const struct slicing *s, tnf_slice *box, uint64_t first, uint64_t n)
{
    uint32_t rank = s->from.rank, d = rank;
    uint64_t count = 1;
    while (d > 0 && first % (s->inner[d - 1] * s->slices[d - 1].count) == 0 &&
           s->inner[d - 1] * s->slices[d - 1].count <= n) {
        d--;
        box[d] = s->slices[d];
        count = s->inner[d] * s->slices[d].count;
    }
    for (uint32_t k = 0; k < d; k++) {
        const tnf_slice *whole = &s->slices[k];
        uint64_t at = first / s->inner[k] % whole->count, most = whole->count - at;
        uint64_t take = k + 1 < d ? 1 : n / count < most ? n / count : most;
        box[k] = *whole;
        box[k].start = (int64_t)((uint64_t)whole->start + at * (uint64_t)whole->step);
        box[k].count = take;
        count *= k + 1 < d ? 1 : take;
    }
    return count;
}

/* Reads a box of elements that may begin inside a byte. */
static tnf_status read_bits(struct tnf_cursor *c, const struct slicing *s, const tnf_slice *box,
                            uint64_t n, uint8_t *dst, uint64_t to, tnf_error *e)
{
    uint64_t bits = s->from.parts->type->bits;
    size_t bytes = (size_t)tnf_slice_bytes(&s->from, box);
    uint8_t *room = tnf_alloc(&c->alloc, bytes + 1);
    if (!room)
        return tnf_no_memory("a slice", e);
    tnf_status status = tnf_stream_slice(&c->inputs[0].stream, &s->from, box, room, bytes, e);
    if (status == TNF_OK)
        tnf_copy_bits(dst, to * bits, room, 0, n * bits);
    tnf_free(&c->alloc, room, bytes + 1);
    return status;
}

static tnf_status spool_bytes(struct tnf_cursor *c, const tnf_part *part, int spool, tnf_error *e)
{
    const uint8_t *bytes;
    for (uint64_t at = 0, here; at < part->nbytes; at += here) {
        here = part->nbytes - at < SPOOLED ? part->nbytes - at : SPOOLED;
        TNF_TRY(tnf_input_read(c, &c->inputs[0], part, at, (size_t)here, &bytes, e));
        TNF_TRY(tnf_spool_write(spool, bytes, (size_t)here, e));
    }
    return TNF_OK;
}

/* The part to read instead of `part`, which is read on the first call. */
static tnf_status spool_part(const tnf_part **out, struct tnf_cursor *c, const tnf_part *part,
                             tnf_error *e)
{
    struct spooled *kept = tnf_cursor_own(c, sizeof *kept, e);
    int spool;
    if (!kept)
        return TNF_ENOMEM;
    *out = &kept->part;
    if (c->spool)
        return TNF_OK;
    TNF_TRY(tnf_spool_open(&spool, e));
    tnf_status status = spool_bytes(c, part, spool, e);
    if (status == TNF_OK)
        status = tnf_cursor_end(c, e);
    if (status != TNF_OK) {
        close(spool);
        return status;
    }
    TNF_TRY(tnf_spool_source(&c->spool, spool, TNF_ACCESS_PREAD, &c->alloc, e));
    kept->origin.source = c->spool;
    kept->part = (tnf_part) { .role = part->role,
                              .type = part->type,
                              .origin = &kept->origin,
                              .stored = part->nbytes,
                              .nbytes = part->nbytes,
                              .payload = TNF_AT };
    return TNF_OK;
}

static tnf_status make_slice(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                             tnf_error *e)
{
    const struct slicing *s = c->v->plan;
    const tnf_part *from = s->from.parts;
    uint64_t bits = from->type->bits;
    tnf_slice box[MAX_RANK + 1];
    memset(box, 0, sizeof box[0]);
    if (s->backward && c->v->once)
        TNF_TRY(spool_part(&from, c, s->from.parts, e));
    TNF_TRY(tnf_input_read_to(c, &c->inputs[0], from, 0, NULL, 0, e)); /* opens it */
    if (bits % 8)
        memset(dst, 0, (size_t)((n * bits + 7) / 8));
    for (uint64_t done = 0; done < n;) {
        uint64_t count = next_box(s, box, first + done, n - done);
        if (bits % 8)
            TNF_TRY(read_bits(c, s, box, count, dst, done, e));
        else
            TNF_TRY(tnf_stream_slice(&c->inputs[0].stream, &s->from, box, dst + done * (bits / 8),
                                     (size_t)(count * (bits / 8)), e));
        done += count;
    }
    return TNF_OK;
}

/* Is the selection one contiguous range that begins at byte `*offset`, so that nothing has to be
 * moved? */
static bool is_contiguous(const struct slicing *s, uint64_t *offset)
{
    const tnf_object *o = &s->from;
    uint64_t stride = 1, at = 0, width = o->parts->type->bits / 8;
    bool partial = false; /* an inner dimension is not selected completely */
    if (o->parts->payload != TNF_AT || o->parts->flags & TNF_PART_UNREADABLE ||
        o->parts->type->bits % 8 || (o->order == TNF_ORDER_F && o->rank > 1))
        return false;
    for (uint32_t d = o->rank; d-- > 0;) {
        const tnf_slice *x = &s->slices[d];
        if (x->count > 1 && (partial || x->step != 1))
            return false;
        partial = partial || x->count < o->shape[d];
        at += (uint64_t)x->start * stride;
        stride *= o->shape[d];
    }
    *offset = at * width;
    return true;
}

static tnf_status plan_slices(struct tnf_virtual *v, const tnf_object *from, tnf_error *e)
{
    struct slicing *s = tnf_virtual_plan(v, 1, sizeof *s, e);
    if (!s)
        return TNF_ENOMEM;
    if (from->rank > MAX_RANK)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s has more than %u dimensions",
                        TNF_QUOTED(from->name), MAX_RANK);
    s->from = *from;
    s->slices = tnf_virtual_plan(v, from->rank, sizeof *s->slices, e);
    s->inner = tnf_virtual_plan(v, from->rank, sizeof *s->inner, e);
    if (!s->slices || !s->inner)
        return TNF_ENOMEM;
    v->plan = s;
    return TNF_OK;
}

/* The bytes to transpose at a time. A source that is read in order is read once for each time, so
 * they are as many as possible. */
static uint64_t transposed_bytes(const struct tnf_virtual *v)
{
    const struct slicing *s = v->plan;
    uint64_t all = s->slices[0].count, row = all ? v->part.nbytes / all : 0;
    uint64_t bytes = LONG_RUN * 8 / s->from.parts->type->bits;
    if (!tnf_part_anywhere(s->from.parts) || row > TRANSPOSED / bytes)
        return TRANSPOSED;
    bytes *= row;
    return bytes < IN_CACHE ? IN_CACHE : bytes;
}

static void plan_window(struct tnf_virtual *v, bool transposes)
{
    struct slicing *s = v->plan;
    uint64_t inner = 1, bits = s->from.parts->type->bits;
    for (uint32_t d = s->from.rank; d-- > 0;) {
        s->inner[d] = inner;
        inner *= s->slices[d].count;
    }
    v->make = make_slice;
    v->window = (transposes ? transposed_bytes(v) : FORWARD) * 8 / bits;
    if (!transposes)
        return;
    if (s->inner[0] > 0 && v->window > s->inner[0]) /* a part of a row is read slowly */
        v->window -= v->window % s->inner[0];
    /* The elements of each piece are scattered over the source. */
    v->unit = v->window < v->elements ? v->window : v->elements ? v->elements : 1;
    s->backward = v->unit < v->elements;
}

tnf_status tnf_virtual_slice(struct tnf_virtual *v, const tnf_slice *slices, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    uint64_t shape[MAX_RANK + 1], offset;
    uint32_t rank = 0;
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    TNF_TRY(plan_slices(v, o, e));
    struct slicing *s = v->plan;
    if (!slices && o->rank > 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the slices are missing: give one for each dimension");
    for (uint32_t d = 0; d < o->rank; d++) {
        if (slices[d].count > 0)
            TNF_TRY(tnf_slice_check(&slices[d], o->shape[d], e));
        s->slices[d] = slices[d];
        if (!slices[d].drop)
            shape[rank++] = slices[d].count;
    }
    TNF_TRY(tnf_virtual_becomes(v, o->parts->type, shape, rank, e));
    v->object.order = TNF_ORDER_C;
    tnf_part *some = tnf_virtual_plan(v, 1, sizeof *some, e);
    if (!some)
        return TNF_ENOMEM;
    if (tnf_slice_of_much(some, o->parts, v->part.nbytes))
        s->from.parts = some;
    plan_window(v, o->order == TNF_ORDER_F && o->rank > 1);
    for (uint32_t d = 0; d < o->rank; d++)
        s->backward = s->backward || (slices[d].step < 0 && slices[d].count > 1);
    if (v->elements > 0 && is_contiguous(s, &offset)) {
        uint64_t bytes = v->part.nbytes;
        tnf_virtual_same(v);
        v->part.offset += offset;
        v->part.stored = v->part.nbytes = bytes;
    }
    return TNF_OK;
}

/* Row by row instead of column by column is a slice of everything. In the other direction, the same
 * bytes are those of a column-major tensor with its dimensions reversed. */
tnf_status tnf_virtual_order(struct tnf_virtual *v, tnf_order order, tnf_error *e)
{
    tnf_object o = v->sources[0];
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    TNF_TRY(tnf_virtual_becomes(v, o.parts->type, o.shape, o.rank, e));
    bool same = o.rank < 2 || o.order == order || v->elements == 0;
    v->object.order = order;
    if (same) {
        tnf_virtual_same(v);
        return TNF_OK;
    }
    uint64_t *shape = tnf_virtual_plan(v, o.rank, sizeof *shape, e);
    if (!shape)
        return TNF_ENOMEM;
    for (uint32_t d = 0; d < o.rank; d++)
        shape[d] = o.shape[o.order == TNF_ORDER_F ? d : o.rank - 1 - d];
    o.shape = shape;
    o.order = TNF_ORDER_F;
    TNF_TRY(plan_slices(v, &o, e));
    struct slicing *s = v->plan;
    for (uint32_t d = 0; d < o.rank; d++)
        s->slices[d] = (tnf_slice) { 0, 1, shape[d], false };
    plan_window(v, true);
    return TNF_OK;
}
