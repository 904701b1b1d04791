/* SPDX-License-Identifier: MIT */
/* Virtual tensors: made of their sources, read through cursors. The kinds are in virtual_*.c. */
#include "core/read/virtual.h"

#include "base/sized.h"

#include <string.h>

/* ----------------------------------------------------------------- inputs */

static tnf_status no_memory(tnf_error *e)
{
    return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for a virtual tensor");
}

static void close_input(tnf_input *in)
{
    if (in->part)
        tnf_stream_close(&in->stream);
    in->part = NULL;
}

static tnf_status open_input(tnf_input *in, const tnf_part *part, tnf_error *e)
{
    if (in->part == part)
        return TNF_OK;
    close_input(in);
    tnf_status status = tnf_stream_open(&in->stream, part, e);
    if (status != TNF_OK) {
        tnf_stream_close(&in->stream);
        return status;
    }
    in->part = part;
    in->reached = 0;
    return TNF_OK;
}

tnf_status tnf_input_read_to(struct tnf_cursor *c, tnf_input *in, const tnf_part *part,
                             uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)c;
    TNF_TRY(open_input(in, part, e));
    TNF_TRY(tnf_stream_read(&in->stream, offset, dst, n, e));
    in->reached = offset + n;
    return TNF_OK;
}

tnf_status tnf_input_read(struct tnf_cursor *c, tnf_input *in, const tnf_part *part,
                          uint64_t offset, size_t n, const uint8_t **out, tnf_error *e)
{
    if (n > in->size || !in->room) {
        tnf_free(&c->alloc, in->room, in->size);
        in->size = n + (n == 0);
        in->room = tnf_alloc(&c->alloc, in->size);
        if (!in->room) {
            in->size = 0;
            return no_memory(e);
        }
    }
    *out = in->room;
    return tnf_input_read_to(c, in, part, offset, in->room, n, e);
}

/* Eight elements of any type begin with a byte. */
tnf_status tnf_input_elements(struct tnf_cursor *c, tnf_input *in, const tnf_part *part,
                              uint64_t first, size_t n, const uint8_t **out, size_t *skip,
                              tnf_error *e)
{
    uint64_t bits = part->type->bits, end = first + n, begin = bits % 8 ? first - first % 8 : first;
    uint64_t from = begin / 8 * bits + begin % 8 * bits / 8;
    uint64_t to = end / 8 * bits + (end % 8 * bits + 7) / 8;
    *skip = (size_t)(first - begin);
    return tnf_input_read(c, in, part, from, (size_t)(to - from), out, e);
}

void *tnf_cursor_own(struct tnf_cursor *c, size_t size, tnf_error *e)
{
    if (!c->own && (c->own = tnf_alloc0(&c->alloc, size)))
        c->own_size = size;
    if (!c->own)
        (void)no_memory(e);
    return c->own;
}

/* ---------------------------------------------------------------- cursors */

tnf_status tnf_cursor_open(struct tnf_cursor **out, const tnf_part *part, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    struct tnf_cursor *c = tnf_alloc0(&a, sizeof *c);
    if (!c)
        return no_memory(e);
    c->v = part->origin->made;
    c->alloc = a;
    *out = c;
    return TNF_OK;
}

void tnf_cursor_close(struct tnf_cursor *c)
{
    if (!c)
        return;
    tnf_allocator a = c->alloc;
    for (size_t i = 0; i < TNF_INPUTS; i++) {
        close_input(&c->inputs[i]);
        tnf_free(&a, c->inputs[i].room, c->inputs[i].size);
    }
    size_t unit = c->block ? (size_t)(c->v->unit * c->v->part.type->bits / 8) : 0;
    tnf_free(&a, c->block, unit);
    tnf_free(&a, c->own, c->own_size);
    tnf_free(&a, c, sizeof *c);
}

/* A source that was read to its end may hold no more than that. */
tnf_status tnf_cursor_end(struct tnf_cursor *c, tnf_error *e)
{
    for (size_t i = 0; i < TNF_INPUTS; i++) {
        tnf_input *in = &c->inputs[i];
        if (in->part && in->reached == in->part->nbytes)
            TNF_TRY(tnf_stream_end(&in->stream, e));
    }
    return TNF_OK;
}

/* How many of the elements from `first` on belong to its unit. */
static uint64_t unit_length(const struct tnf_virtual *v, uint64_t first)
{
    return v->elements - first < v->unit ? v->elements - first : v->unit;
}

/* Bytes of n elements; n is a unit or all up to the last of the tensor. */
static size_t bytes_of(const struct tnf_virtual *v, uint64_t n)
{
    uint64_t bytes = 0;
    (void)tnf_type_bytes(&bytes, v->part.type, n);
    return (size_t)bytes;
}

static tnf_status make_block(struct tnf_cursor *c, uint64_t first, tnf_error *e)
{
    const struct tnf_virtual *v = c->v;
    uint64_t n = unit_length(v, first);
    if (c->block_n > 0 && c->block_at == first)
        return TNF_OK;
    if (!c->block && !(c->block = tnf_alloc(&c->alloc, bytes_of(v, v->unit))))
        return no_memory(e);
    c->block_n = 0; /* until it is there */
    TNF_TRY(v->make(c, first, (size_t)n, c->block, e));
    c->block_at = first;
    c->block_n = bytes_of(v, n);
    return TNF_OK;
}

/* How many elements of whole units, from `first` on, fit n bytes; 0: not one unit. */
static uint64_t whole_units(const struct tnf_virtual *v, uint64_t first, size_t n)
{
    uint64_t left = v->elements - first;
    uint64_t fit = n / bytes_of(v, v->unit) * v->unit;
    if (n == bytes_of(v, left))
        fit = left;
    fit = fit < left ? fit : left / v->unit * v->unit;
    return fit < v->window ? fit : v->window;
}

tnf_status tnf_cursor_read(struct tnf_cursor *c, uint64_t offset, uint8_t *dst, size_t n,
                           tnf_error *e)
{
    const struct tnf_virtual *v = c->v;
    size_t unit = bytes_of(v, v->unit);
    while (n > 0) {
        uint64_t first = offset / unit * v->unit;
        size_t skip = (size_t)(offset % unit), here;
        uint64_t whole = skip == 0 ? whole_units(v, first, n) : 0;
        if (whole > 0) {
            here = bytes_of(v, whole);
            TNF_TRY(v->make(c, first, (size_t)whole, dst, e));
        } else {
            TNF_TRY(make_block(c, first, e));
            here = c->block_n - skip < n ? c->block_n - skip : n;
            memcpy(dst, c->block + skip, here);
        }
        dst += here;
        offset += here;
        n -= here;
    }
    return TNF_OK;
}

/* ----------------------------------------------------------------- making */

bool tnf_part_anywhere(const tnf_part *part)
{
    if (part->origin && part->origin->made)
        return !part->origin->made->sequential;
    return part->payload == TNF_AT || (part->payload == TNF_MEMORY && part->memory);
}

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
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "%s is too large as %s",
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
                        "%s has the layout %s: take its values first", TNF_QUOTED(o->name),
                        o->layout->id);
    if (o->parts->type->bits == 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has elements of the unknown type %s", TNF_QUOTED(o->name),
                        TNF_QUOTED(((tnf_str) { o->parts->type->id, strlen(o->parts->type->id) })));
    return TNF_OK;
}

/* The source as it is. */
static void same_part(struct tnf_virtual *v)
{
    const char *role = v->part.role;
    v->part = *v->sources[0].parts;
    v->part.role = role;
    v->part.digest = NULL;
    v->elements = tnf_elements(&v->object);
    v->make = NULL;
}

static tnf_status make_swapped(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                               tnf_error *e)
{
    const tnf_part *from = c->v->sources[0].parts;
    size_t width = from->type->bits / 8, element = tnf_dtype_size(from->type->storage);
    TNF_TRY(tnf_input_read_to(c, &c->inputs[0], from, first * width, dst, n * width, e));
    tnf_reverse_elements(dst, n * width, element);
    return TNF_OK;
}

/* Complex numbers are swapped half by half, as files of the other order have them. */
static tnf_status swap_bytes(struct tnf_virtual *v, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    TNF_TRY(tnf_virtual_becomes(v, o->parts->type, o->shape, o->rank, e));
    v->make = make_swapped;
    if (tnf_dtype_size(o->parts->type->storage) < 2) {
        same_part(v);
    } else if (o->parts->payload <= TNF_ENCODED) {
        same_part(v);
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

/* How many sources the kind takes; 0: any number. */
static tnf_status check_count(const tnf_virtual_how *how, size_t n, tnf_error *e)
{
    bool many = how->kind == TNF_VIRTUAL_JOIN || how->kind == TNF_VIRTUAL_GRID;
    size_t wanted = how->kind == TNF_VIRTUAL_SCALED ? 2 : 1;
    if (n == 0 || (!many && n != wanted))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%zu sources, where this kind takes %s", n,
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
        for (uint16_t k = 0; k < copy[i].nparts; k++)
            v->sequential = v->sequential || !tnf_part_anywhere(&copy[i].parts[k]);
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

/* Attributes that told how to read the old layout say nothing of the values. */
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
        char key[32] = "";
        const tnf_member *m = &attrs->as.members[i];
        if (m->key.n < sizeof key)
            memcpy(key, m->key.p, m->key.n);
        if (!*key || !tnf_list_has(list, key))
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
    if (v->part.type->bits % 8) /* units are whole bytes */
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
    TNF_TRY(tnf_options_copy(&own, sizeof own, how, e));
    TNF_TRY(check_count(&own, n, e));
    struct tnf_virtual *v = tnf_alloc0(&a, sizeof *v);
    if (!v)
        return no_memory(e);
    v->alloc = a;
    tnf_arena_init(&v->arena, &a, UINT64_MAX);
    tnf_status status = build_virtual(v, sources, n, &own, e);
    if (status != TNF_OK) {
        tnf_virtual_free(v);
        return status;
    }
    *out = v;
    return TNF_OK;
}

const tnf_object *tnf_virtual_object(const tnf_virtual *v)
{
    return &v->object;
}

bool tnf_virtual_sequential(const tnf_virtual *v)
{
    return v->sequential;
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
