/* SPDX-License-Identifier: MIT */
/* Virtual tensors of blocks: decoding blocks to floats, and encoding floats to blocks.
 *
 *   data    [block][block] … of a row, [block] …      block_bytes each
 *   values  32 or 256 floats for each, in order
 */
#include "core/read/virtual.h"
#include "kernels/blocks.h"

#include <string.h>

#define PIECE 4096u /* floats at a time; a multiple of every block */

static const tnf_block_type *type_of(const tnf_layout *layout)
{
    return layout->block ? tnf_block_type_named(layout->block, strlen(layout->block)) : NULL;
}

/* --------------------------------------------------------------- to floats */

static tnf_status make_floats(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                              tnf_error *e)
{
    const tnf_block_type *type = c->v->plan;
    const tnf_part *from = c->v->sources[0].parts;
    size_t blocks = n / type->elements, most = PIECE / type->elements;
    const uint8_t *bytes;
    float x[PIECE];
    bool direct = !TNF_BIG_ENDIAN_HOST && (uintptr_t)dst % sizeof(float) == 0;
    TNF_TRY(tnf_input_read(c, &c->inputs[0], from, first / type->elements * type->bytes,
                           blocks * type->bytes, &bytes, e));
    for (size_t at = 0, here; at < blocks; at += here) {
        here = blocks - at < most ? blocks - at : most;
        size_t floats = here * type->elements;
        uint8_t *to = dst + at * type->elements * sizeof(float);
        type->decode(direct ? (float *)(void *)to : x, bytes + at * type->bytes, here);
        if (direct)
            continue;
        memcpy(to, x, floats * sizeof *x);
        tnf_swap_le(to, floats, sizeof *x);
    }
    return TNF_OK;
}

tnf_status tnf_virtual_decode(struct tnf_virtual *v, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    const tnf_block_type *type = type_of(o->layout);
    TNF_TRY(tnf_layout_check(o, e));
    if (!type)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has the layout %s, whose blocks are unknown", TNF_QUOTED(o->name),
                        o->layout->id);
    if (o->parts->flags & TNF_PART_BIG_ENDIAN)
        return tnf_fail(e, TNF_EUNSUPPORTED, o->parts->offset,
                        "%s: there is no common big-endian form of blocks of %s",
                        TNF_QUOTED(o->name), type->name);
    tnf_block_type *plan = tnf_virtual_plan(v, 1, sizeof *plan, e);
    if (!plan)
        return TNF_ENOMEM;
    *plan = *type;
    v->plan = plan;
    v->make = make_floats;
    v->unit = type->elements;
    return TNF_OK;
}

/* --------------------------------------------------------------- to blocks */

/* The result cannot be refused any more, and equals that of the layout's own programs, so the
 * overflow is only reported at the end. */
static void note_overflow(const struct tnf_virtual *v, const float *x, const uint8_t *made,
                          uint64_t block, size_t n)
{
    const tnf_block_type *type = v->plan;
    size_t good = tnf_block_finite(type, x, made, n);
    /* This number is the only member that changes while the tensor is read. */
    struct tnf_virtual *noted = (struct tnf_virtual *)(uintptr_t)v;
    if (good < n)
        atomic_store(&noted->overflow, (block + good) * type->elements + 1);
}

/* Elements are bytes here, and a unit is a block. */
static tnf_status make_blocks(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                              tnf_error *e)
{
    const struct tnf_virtual *v = c->v;
    const tnf_block_type *type = v->plan;
    const tnf_part *from = &v->inner->part;
    size_t blocks = n / type->bytes, most = PIECE / type->elements;
    uint64_t block = first / type->bytes;
    float x[PIECE];
    for (size_t at = 0, here; at < blocks; at += here) {
        here = blocks - at < most ? blocks - at : most;
        size_t floats = here * type->elements;
        TNF_TRY(tnf_input_read_to(c, &c->inputs[0], from, (block + at) * type->elements * sizeof *x,
                                  x, floats * sizeof *x, e));
        tnf_swap_le(x, floats, sizeof *x);
        size_t good = tnf_block_encodable(type, x, here);
        if (good < here)
            return tnf_fail(e, TNF_ELOSSY, TNF_NO_OFFSET,
                            "%s: near element %llu there is a NaN, an infinity or too wide a range "
                            "for a block of %s",
                            TNF_QUOTED(v->object.name),
                            (unsigned long long)((block + at + good) * type->elements), type->name);
        type->encode(dst + at * type->bytes, x, here);
        note_overflow(v, x, dst + at * type->bytes, block + at, here);
    }
    return TNF_OK;
}

tnf_status tnf_virtual_encode(struct tnf_virtual *v, const tnf_layout *layout, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    const tnf_block_type *type = layout ? type_of(layout) : NULL;
    tnf_virtual_how floats = TNF_VIRTUAL_HOW_INIT;
    uint64_t bytes;
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    if (!type || !type->encode)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "encoding to blocks of %s is not supported",
                        layout ? layout->id : "that layout");
    if (o->rank == 0 || o->shape[o->rank - 1] % type->elements != 0 || o->order != TNF_ORDER_C)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the rows of %s do not consist of whole blocks of %u elements",
                        TNF_QUOTED(o->name), type->elements);
    floats.kind = TNF_VIRTUAL_CAST;
    floats.type = tnf_type_of(TNF_F32);
    TNF_TRY(tnf_virtual_new(&v->inner, &o, 1, &floats, e));
    TNF_TRY(tnf_virtual_becomes(v, tnf_type_of(TNF_F32), o->shape, o->rank, e));
    bytes = v->elements / type->elements * type->bytes; /* fewer bytes than the floats */
    tnf_block_type *plan = tnf_virtual_plan(v, 1, sizeof *plan, e);
    if (!plan)
        return TNF_ENOMEM;
    *plan = *type;
    v->plan = plan;
    v->object.layout = layout;
    v->part.type = tnf_type_of(TNF_U8);
    v->part.nbytes = v->part.stored = v->elements = bytes;
    v->make = make_blocks;
    v->unit = type->bytes;
    return TNF_OK;
}
