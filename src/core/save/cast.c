/* SPDX-License-Identifier: MIT */
/* Floats of one type as floats of another, on request and while they are saved. Each value goes
 * through a double, which holds all of them exactly, so it is rounded once: narrow.h. */
#include "base/pool.h"
#include "core/read/stream.h"
#include "core/save/save.h"
#include "kernels/narrow.h"

#include <string.h>

#define WINDOW ((size_t)64 << 10) /* elements that are read at once */
#define PIECE  ((size_t)8 << 10)  /* that a thread casts at a time */

struct cast {
    struct tnf_origin origin;
    const tnf_part *from;
    const tnf_type *type;
    tnf_stream stream;
    bool open;
    tnf_allocator alloc;
    uint8_t *in, *out; /* a window of elements before and after; NULL: not yet */
    size_t n;          /* elements in it */
    struct cast *next;
};

/* Does the type take part? Complex, packed and integer types do not. */
static bool takes_part(const tnf_type *type)
{
    return type == tnf_type_of(TNF_F64) || tnf_narrow_of(type->id);
}

static void encode(uint8_t *out, const tnf_type *type, const double *x, size_t n)
{
    const tnf_narrow *to = tnf_narrow_of(type->id);
    if (!to) { /* f64 */
        for (size_t i = 0; i < n; i++) {
            uint64_t bits;
            memcpy(&bits, &x[i], sizeof bits);
            tnf_put_le64(out + 8 * i, bits);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = tnf_narrow_bits(to, x[i]);
        for (size_t k = 0; k < to->bytes; k++)
            out[i * to->bytes + k] = (uint8_t)(bits >> 8 * k);
    }
}

static tnf_status cast_piece(void *ctx, size_t i, tnf_error *e)
{
    struct cast *c = ctx;
    double x[PIECE];
    size_t first = i * PIECE, n = c->n - first < PIECE ? c->n - first : PIECE;
    (void)e;
    tnf_type_decode(c->from->type, c->in, first, n, x);
    encode(c->out + first * (c->type->bits / 8), c->type, x, n);
    return TNF_OK;
}

/* n elements from `first` on, into c->out. */
static tnf_status cast_window(struct cast *c, uint64_t first, size_t n, tnf_error *e)
{
    size_t width = c->from->type->bits / 8;
    TNF_TRY(tnf_stream_read(&c->stream, first * width, c->in, n * width, e));
    c->n = n;
    return tnf_pool_run(tnf_pool_threads(0), (n + PIECE - 1) / PIECE, cast_piece, c, e);
}

static tnf_status begin_cast(struct cast *c, tnf_error *e)
{
    if (!c->open)
        TNF_TRY(tnf_stream_open(&c->stream, c->from, e));
    c->open = true;
    c->in = c->in ? c->in : tnf_alloc(&c->alloc, WINDOW * 8);
    c->out = c->out ? c->out : tnf_alloc(&c->alloc, WINDOW * 8);
    return c->in && c->out ? TNF_OK
                           : tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for casting");
}

static void end_cast(struct cast *c)
{
    if (c->open)
        tnf_stream_close(&c->stream);
    c->open = false;
    tnf_free(&c->alloc, c->in, WINDOW * 8);
    tnf_free(&c->alloc, c->out, WINDOW * 8);
    c->in = c->out = NULL;
}

static tnf_status fetch_cast(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct cast *c = ctx;
    uint8_t *to = dst;
    size_t width = c->type->bits / 8;
    uint64_t all = c->from->nbytes / (c->from->type->bits / 8);
    TNF_TRY(begin_cast(c, e));
    while (n > 0) {
        uint64_t first = offset / width, left = all - first;
        size_t skip = (size_t)(offset % width), count = (n + skip + width - 1) / width;
        count = count < WINDOW ? count : WINDOW;
        count = count < left ? count : (size_t)left;
        TNF_TRY(cast_window(c, first, count, e));
        size_t here = count * width - skip < n ? count * width - skip : n;
        memcpy(to, c->out + skip, here);
        to += here;
        offset += here;
        n -= here;
    }
    if (offset == all * width)
        end_cast(c);
    return TNF_OK;
}

static tnf_status cast_part(tnf_part *out, const tnf_part *part, const tnf_type *type,
                            struct tnf_save *save, tnf_error *e)
{
    tnf_arena *a = &save->arena;
    struct cast *c = tnf_arena_alloc(a, sizeof *c);
    uint64_t bytes;
    if (!c)
        return tnf_arena_fail(a, "another type", e);
    if (!tnf_type_bytes(&bytes, type, part->nbytes / (part->type->bits / 8)))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a tensor is too large for %s", type->id);
    *c = (struct cast) { .from = part, .type = type, .alloc = a->alloc, .next = save->casts };
    c->origin.fetch = fetch_cast;
    c->origin.ctx = c;
    save->casts = c;
    *out = (tnf_part) { .role = part->role,
                        .type = type,
                        .origin = &c->origin,
                        .stored = bytes,
                        .nbytes = bytes,
                        .payload = TNF_MEMORY };
    return TNF_OK;
}

static tnf_status add_cast(struct tnf_save *save, const tnf_catalog *from, const tnf_object *object,
                           const tnf_type *type, tnf_error *e)
{
    tnf_object o = *object;
    tnf_part part;
    bool found = tnf_catalog_find(from, o.name.p, o.name.n) == object;
    unsigned again = found ? TNF_NAMES_LATER_FOUND : TNF_NAMES_FIRST_FOUND;
    if (o.layout != &tnf_layout_dense || o.nparts != 1 || o.parts->type == type ||
        !takes_part(o.parts->type) || o.parts->flags & TNF_PART_UNREADABLE)
        return tnf_catalog_add(&save->cast, &o, again | TNF_BORROWED, e);
    TNF_TRY(cast_part(&part, o.parts, type, save, e));
    o.parts = &part;
    return tnf_catalog_add(&save->cast, &o, again, e);
}

tnf_status tnf_cast_tensors(struct tnf_save *save, const tnf_catalog *from, const tnf_catalog **out,
                            tnf_error *e)
{
    const char *id = save->options.dtype;
    const tnf_type *type = id ? tnf_type_spelled(id) : NULL;
    *out = from;
    if (!id)
        return TNF_OK;
    if (!type || !takes_part(type))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "floats cannot be cast to '%s', only to f64 f32 f16 bf16 f8_e4m3fn f8_e5m2 "
                        "f8_e4m3fnuz f8_e5m2fnuz",
                        id);
    tnf_catalog_init(&save->cast, &save->arena);
    for (size_t i = 0; i < from->n; i++)
        TNF_TRY(add_cast(save, from, &from->objects[i], type, e));
    save->cast.attrs = from->attrs;
    *out = &save->cast;
    return TNF_OK;
}

bool tnf_is_cast(const tnf_object *object)
{
    return object->nparts == 1 && object->parts->payload == TNF_MEMORY && object->parts->origin &&
           object->parts->origin->fetch == fetch_cast;
}

void tnf_cast_end(struct tnf_save *save)
{
    for (struct cast *c = save->casts; c; c = c->next)
        end_cast(c);
    if (save->cast.arena)
        tnf_catalog_free(&save->cast);
}
