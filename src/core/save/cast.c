/* SPDX-License-Identifier: MIT */
/* Casts floats to another type while they are saved: virtual tensors replace those that change.
 * Quantized tensors become the floats that they represent. */
#include "core/read/virtual.h"
#include "core/save/save.h"
#include "kernels/blocks.h"

#include <stdio.h>
#include <string.h>

struct made_tensor {
    tnf_virtual *values, *cast; /* values: NULL for a dense tensor */
    struct made_tensor *next;
};

static tnf_status make_tensor(tnf_virtual **out, struct tnf_save *save, const tnf_object *object,
                              const tnf_virtual_how *how, tnf_error *e)
{
    struct made_tensor *made = tnf_arena_alloc(&save->arena, sizeof *made);
    if (!made)
        return tnf_arena_fail(&save->arena, "another type", e);
    made->next = save->made;
    save->made = made;
    if (object->layout != &tnf_layout_dense && how->kind != TNF_VIRTUAL_ORDER) {
        tnf_virtual_how values = TNF_VIRTUAL_HOW_INIT;
        TNF_TRY(tnf_virtual_new(&made->values, &object, 1, &values, e));
        object = tnf_virtual_object(made->values);
    }
    TNF_TRY(tnf_virtual_new(&made->cast, &object, 1, how, e));
    *out = made->cast;
    return TNF_OK;
}

/* Only matrices of whole blocks become blocks. Vectors are small and more important, so they stay
 * unchanged, as in the programs that make such files. */
static bool fits_blocks(const tnf_object *o, const tnf_layout *layout)
{
    bool floats = o->layout != &tnf_layout_dense ||
                  (o->nparts == 1 && tnf_can_cast_to(o->parts->type));
    return floats && o->layout != layout && o->rank > 1 && o->order == TNF_ORDER_C &&
           o->shape[o->rank - 1] % layout->block_elements == 0;
}

/* Integers stay unchanged: only floats, and tensors that represent floats, are cast. */
static bool takes_part(const tnf_object *o, const tnf_virtual_how *how)
{
    if (o->nparts == 0 || tnf_missing_file(o))
        return false;
    for (uint16_t i = 0; i < o->nparts; i++)
        if (o->parts[i].flags & TNF_PART_UNREADABLE)
            return false;
    if (!tnf_layout_has_values(o->layout))
        return false;
    if (how->layout)
        return fits_blocks(o, how->layout);
    return o->layout != &tnf_layout_dense ||
           (o->nparts == 1 && o->parts->type != how->type && tnf_can_cast_to(o->parts->type));
}

static tnf_status add_cast(struct tnf_save *save, const tnf_catalog *from, const tnf_object *object,
                           const tnf_virtual_how *how, tnf_error *e)
{
    tnf_object o = *object;
    bool found = tnf_catalog_find(from, o.name.p, o.name.n) == object;
    unsigned policy = found ? TNF_NAMES_LATER_FOUND : TNF_NAMES_FIRST_FOUND;
    tnf_virtual *v;
    if (!takes_part(&o, how))
        return tnf_catalog_add(&save->cast, &o, policy | TNF_BORROWED, e);
    TNF_TRY(make_tensor(&v, save, object, how, e));
    o = *tnf_virtual_object(v);
    return tnf_catalog_add(&save->cast, &o, policy, e);
}

/* Parses the id of a float type, or of a block type that can be encoded. */
static tnf_status parse_target(tnf_virtual_how *how, const char *id, tnf_error *e)
{
    how->kind = TNF_VIRTUAL_CAST;
    how->type = tnf_type_spelled(id);
    if (how->type && tnf_can_cast_to(how->type))
        return TNF_OK;
    how->kind = TNF_VIRTUAL_BLOCKS;
    for (size_t i = 0; (how->layout = tnf_layout_block_at(i)); i++)
        if (strcmp(how->layout->block, id) == 0)
            break;
    const tnf_block_type *type = tnf_block_type_named(id, strlen(id));
    if (how->layout && type && type->encode)
        return TNF_OK;
    return tnf_fail(
        e, TNF_EINVAL, TNF_NO_OFFSET,
        how->layout ? "Tenfold can decode and copy blocks of '%s', but not make them: choose one "
                      "of q8_0 q5_1 q5_0 q4_1 q4_0, or a type of floats"
                    : "floats cannot be cast to '%s', only to f64 f32 f16 bf16 "
                      "f8_e4m3fn f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz, or to blocks (q8_0 "
                      "q4_0 …)",
        id);
}

tnf_status tnf_cast_tensors(struct tnf_save *save, const tnf_catalog *from, const tnf_catalog **out,
                            tnf_error *e)
{
    const char *id = save->options.dtype;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    *out = from;
    if (!id)
        return TNF_OK;
    TNF_TRY(parse_target(&how, id, e));
    tnf_catalog_init(&save->cast, &save->arena);
    for (size_t i = 0; i < from->n; i++)
        TNF_TRY(add_cast(save, from, &from->objects[i], &how, e));
    save->cast.attrs = from->attrs;
    *out = &save->cast;
    return TNF_OK;
}

tnf_status tnf_reorder(tnf_part *out, const tnf_object *object, struct tnf_save *save, tnf_error *e)
{
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    tnf_virtual *v;
    how.kind = TNF_VIRTUAL_ORDER;
    how.order = object->order == TNF_ORDER_F ? TNF_ORDER_C : TNF_ORDER_F;
    TNF_TRY(make_tensor(&v, save, object, &how, e));
    *out = *tnf_virtual_object(v)->parts;
    out->role = object->parts->role;
    return TNF_OK;
}

/* The stored tensor that a virtual tensor was first made of. */
static const tnf_object *stored_object(const tnf_virtual *v)
{
    const tnf_object *o = v->sources;
    while (o->nparts == 1 && o->parts->origin && o->parts->origin->made)
        o = o->parts->origin->made->sources;
    return o;
}

static bool has_scales(const tnf_object *o)
{
    for (; o->nparts == 1 && o->parts->origin && o->parts->origin->made;
         o = o->parts->origin->made->sources)
        if (o->parts->origin->made->scaled)
            return true;
    return false;
}

const char *tnf_cast_reason(const tnf_object *object)
{
    const struct tnf_origin *origin = object->nparts == 1 ? object->parts->origin : NULL;
    if (!origin || !origin->made)
        return NULL;
    if (has_scales(object))
        return "multiplied by its scales, as requested";
    const tnf_object *was = stored_object(origin->made);
    bool quantized = was->layout != &tnf_layout_dense;
    if (!quantized && object->layout == was->layout && object->parts->type == was->parts->type)
        return NULL;
    return quantized ? "its values are converted to the requested type"
                     : "rounded to the requested type";
}

const char *tnf_uncast_reason(const struct tnf_save *save, const tnf_object *o)
{
    const char *id = save->options.dtype;
    const tnf_layout *layout = NULL;
    if (!id || o->layout != &tnf_layout_dense || o->nparts != 1 || !tnf_can_cast_to(o->parts->type))
        return "";
    for (size_t i = 0; (layout = tnf_layout_block_at(i)); i++)
        if (strcmp(layout->block, id) == 0)
            break;
    if (!layout || fits_blocks(o, layout))
        return "";
    return o->rank <= 1 ? "stays as it is: only matrices become blocks"
                        : "stays as it is: its rows do not consist of whole blocks";
}

/* Reports blocks whose scale is too large for f16, which is only known after encoding. */
static void tell_overflow(const struct tnf_save *save, tnf_virtual *v)
{
    char reason[200];
    uint64_t at = v ? atomic_load(&v->overflow) : 0;
    if (at == 0 || !save->options.plan)
        return;
    snprintf(reason, sizeof reason,
             "numbers near element %llu are too large for a block of %s: the scale of the block is "
             "infinite now, so they are read as infinity or NaN",
             (unsigned long long)(at - 1), v->object.layout->block);
    save->options.plan(save->options.ctx, &(tnf_plan_item) { .fate = TNF_TRANSFORMED,
                                                             .kind = "tensor",
                                                             .name = v->object.name,
                                                             .reason = reason,
                                                             .late = true });
}

void tnf_cast_end(struct tnf_save *save)
{
    for (const struct made_tensor *m = save->made; m; m = m->next)
        tell_overflow(save, m->cast);
    for (struct made_tensor *m = save->made; m; m = m->next) {
        tnf_virtual_free(m->cast);
        tnf_virtual_free(m->values);
    }
    save->made = NULL;
    if (save->cast.arena)
        tnf_catalog_free(&save->cast);
}
