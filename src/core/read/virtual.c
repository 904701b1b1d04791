/* SPDX-License-Identifier: MIT */
/* Virtual tensors: computed from their sources, and read through cursors. The kinds are in
 * virtual_*.c. */
#include "core/read/virtual.h"

#include "base/ieee.h"
#include "base/sized.h"
#include "core/read/place.h"

#include <string.h>

void *tnf_virtual_plan(struct tnf_virtual *v, uint64_t count, size_t size, tnf_error *e)
{
    void *out = tnf_arena_array(&v->arena, count + (count == 0), size);
    if (!out)
        (void)tnf_arena_fail(&v->arena, "a virtual tensor", e);
    return out;
}

tnf_status tnf_virtual_becomes(struct tnf_virtual *v, const tnf_type *type, const uint64_t *shape,
                               uint32_t rank, tnf_error *e)
{
    uint64_t *copy = tnf_virtual_plan(v, rank, sizeof *copy, e);
    if (!copy)
        return TNF_ENOMEM;
    for (uint32_t d = 0; d < rank; d++)
        copy[d] = shape[d];
    if (!tnf_shape_elements(&v->elements, copy, rank) ||
        !tnf_type_bytes(&v->part.nbytes, type, v->elements))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "%s has too many bytes as %s",
                        TNF_QUOTED(v->object.name), type->id);
    v->object.shape = copy;
    v->object.rank = rank;
    v->object.layout = &tnf_layout_dense;
    v->object.parts = &v->part;
    v->object.nparts = 1;
    v->part.type = type;
    v->part.stored = v->part.nbytes;
    return TNF_OK;
}

tnf_status tnf_virtual_dense(const struct tnf_virtual *v, size_t i, tnf_error *e)
{
    const tnf_object *o = &v->sources[i];
    if (o->layout != &tnf_layout_dense || o->nparts != 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has the layout %s: make a virtual tensor of its values first",
                        TNF_QUOTED(o->name), o->layout->id);
    if (o->parts->type->bits == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has elements of the unknown type %s", TNF_QUOTED(o->name),
                        TNF_QUOTED(((tnf_str) { o->parts->type->id, strlen(o->parts->type->id) })));
    return TNF_OK;
}

/* Nothing is computed: the part is the source's. */
void tnf_virtual_same(struct tnf_virtual *v)
{
    v->part = *v->sources[0].parts;
    v->part.role = "data";
    v->part.digest = NULL;
    v->make = NULL;
}

static tnf_status make_swapped(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                               tnf_error *e)
{
    const tnf_part *from = c->v->sources[0].parts;
    size_t width = from->type->bits / 8;
    TNF_TRY(tnf_input_read_to(c, &c->inputs[0], from, first * width, dst, n * width, e));
    tnf_reverse(dst, n * width, tnf_part_swap(from));
    return TNF_OK;
}

/* Complex numbers are swapped half by half, as in files of the other byte order. */
static tnf_status swap_bytes(struct tnf_virtual *v, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    TNF_TRY(tnf_virtual_becomes(v, o->parts->type, o->shape, o->rank, e));
    v->make = make_swapped;
    if (tnf_part_swap(o->parts) < 2) {
        tnf_virtual_same(v);
    } else if (o->parts->payload <= TNF_ENCODED) {
        tnf_virtual_same(v);
        v->part.flags ^= TNF_PART_BIG_ENDIAN;
    }
    return TNF_OK;
}

static tnf_status make_kind(struct tnf_virtual *v, const tnf_virtual_how *how, tnf_error *e)
{
    switch (how->kind) {
    case TNF_VIRTUAL_VALUES:
        return tnf_virtual_values(v, e);
    case TNF_VIRTUAL_CAST:
        return tnf_virtual_cast(v, how->type, e);
    case TNF_VIRTUAL_SLICE:
        return tnf_virtual_slice(v, how->slices, e);
    case TNF_VIRTUAL_ORDER:
        return tnf_virtual_order(v, how->order, e);
    case TNF_VIRTUAL_SWAP:
        return swap_bytes(v, e);
    case TNF_VIRTUAL_JOIN:
        return tnf_virtual_join(v, how->axis, e);
    case TNF_VIRTUAL_GRID:
        return tnf_virtual_grid(v, how, e);
    case TNF_VIRTUAL_SCALED:
        return tnf_virtual_scaled(v, how->block, e);
    case TNF_VIRTUAL_BLOCKS:
        return tnf_virtual_encode(v, how->layout, e);
    }
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "there is no such kind of virtual tensor");
}

/* Checks the number of sources for the kind; 0: any number. */
static tnf_status check_count(const tnf_virtual_how *how, size_t n, tnf_error *e)
{
    bool many = how->kind == TNF_VIRTUAL_JOIN || how->kind == TNF_VIRTUAL_GRID;
    size_t wanted = how->kind == TNF_VIRTUAL_SCALED ? 2 : 1;
    if (n == 0 || (!many && n != wanted))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%zu sources were given, but this kind takes %s", n,
                        many          ? "at least one"
                        : wanted == 2 ? "two"
                                      : "one");
    return TNF_OK;
}

static tnf_status take_sources(struct tnf_virtual *v, const tnf_object *const *sources, size_t n,
                               const char *name, tnf_error *e)
{
    tnf_object *copy = tnf_virtual_plan(v, n, sizeof *copy, e);
    if (!copy)
        return TNF_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        TNF_TRY(tnf_object_there(sources[i], e));
        copy[i] = *sources[i];
        for (uint16_t k = 0; k < copy[i].nparts; k++) {
            v->sequential = v->sequential || !tnf_part_anywhere(&copy[i].parts[k]);
            v->once = v->once || tnf_part_once(&copy[i].parts[k]);
        }
    }
    v->sources = copy;
    v->n = n;
    v->object = copy[0];
    v->part = (tnf_part) { .role = "data", .payload = TNF_OPAQUE, .origin = &v->origin };
    v->origin.made = v;
    v->unit = 1;
    v->window = (uint64_t)64 << 10;
    if (name) {
        v->object.name.n = strlen(name);
        v->object.name.p = tnf_arena_str(&v->arena, name, v->object.name.n);
    }
    return v->object.name.p ? TNF_OK : tnf_arena_fail(&v->arena, "a name", e);
}

/* Drops attributes that describe the old layout, since they do not describe the values. */
static tnf_status leave_attrs(struct tnf_virtual *v, tnf_error *e)
{
    const char *list = v->sources[0].layout->attrs;
    const tnf_value *attrs = v->object.attrs;
    if (!list || !attrs || attrs->kind != TNF_MAP)
        return TNF_OK;
    tnf_value *map = tnf_virtual_plan(v, 1, sizeof *map, e);
    tnf_member *kept = tnf_virtual_plan(v, attrs->n, sizeof *kept, e);
    if (!map || !kept)
        return TNF_ENOMEM;
    *map = (tnf_value) { .kind = TNF_MAP, .as.members = kept };
    for (size_t i = 0; i < attrs->n; i++) {
        const tnf_member *m = &attrs->as.members[i];
        if (!tnf_str_listed(m->key, list))
            kept[map->n++] = *m;
    }
    v->object.attrs = map->n ? map : NULL;
    return TNF_OK;
}

static tnf_status build_virtual(struct tnf_virtual *v, const tnf_object *const *sources, size_t n,
                                const tnf_virtual_how *how, tnf_error *e)
{
    TNF_TRY(take_sources(v, sources, n, how->name, e));
    TNF_TRY(make_kind(v, how, e));
    v->object.parts = &v->part;
    v->object.nparts = 1;
    if (v->part.type->bits % 8) /* units must be whole bytes */
        v->unit = (v->unit + 7) / 8 * 8;
    v->window = v->window / v->unit * v->unit;
    v->window = v->window ? v->window : v->unit;
    return leave_attrs(v, e);
}

tnf_status tnf_virtual_new(tnf_virtual **out, const tnf_object *const *sources, size_t n,
                           const tnf_virtual_how *how, tnf_error *e)
{
    tnf_virtual_how own;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    *out = NULL;
    TNF_TRY(tnf_need_array(sources, n, "sources", e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_need(sources[i], "sources[i]", e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_virtual_how, &own, how, e));
    TNF_TRY(tnf_check_choice(own.order, TNF_ORDER_F, "order", e));
    TNF_TRY(check_count(&own, n, e));
    struct tnf_virtual *v = tnf_alloc0(&a, sizeof *v);
    if (!v)
        return tnf_no_memory("a virtual tensor", e);
    v->alloc = a;
    tnf_arena_init(&v->arena, &a, UINT64_MAX);
    const uint32_t mode = tnf_enter_ieee(); /* scales are converted */
    tnf_status status = build_virtual(v, sources, n, &own, e);
    tnf_leave_ieee(mode);
    if (status != TNF_OK) {
        tnf_virtual_free(v);
        return status;
    }
    *out = v;
    return TNF_OK;
}

const tnf_object *tnf_virtual_object(const tnf_virtual *v)
{
    return v ? &v->object : NULL;
}

bool tnf_virtual_sequential(const tnf_virtual *v)
{
    return v && v->sequential;
}

void tnf_virtual_free(tnf_virtual *v)
{
    if (!v)
        return;
    tnf_allocator a = v->alloc;
    tnf_virtual_free(v->inner);
    tnf_arena_free(&v->arena);
    tnf_free(&a, v, sizeof *v);
}
