/* SPDX-License-Identifier: MIT */
/* The catalog: an array of objects in file order and a table of their names. The array is not in
 * the arena: it moves when it grows, and a hundred thousand moves would leave holes there. */
#include "model/catalog.h"

#include "base/error.h"

#include <string.h>

tnf_str tnf_catalog_name_at(const void *catalog, uint32_t position)
{
    return ((const tnf_catalog *)catalog)->objects[position].name;
}

void tnf_catalog_init(tnf_catalog *c, tnf_arena *arena)
{
    *c = (tnf_catalog) { .arena = arena, .attrs.arena = arena };
    tnf_hash_init(&c->names, &arena->alloc, tnf_catalog_name_at, c);
}

void tnf_catalog_free(tnf_catalog *c)
{
    tnf_hash_free(&c->names);
    tnf_free(&c->arena->alloc, c->objects, c->capacity * sizeof *c->objects);
    tnf_free(&c->arena->alloc, c->extras, c->extras_capacity * sizeof *c->extras);
    c->objects = NULL;
    c->extras = NULL;
    c->n = c->capacity = c->nextras = c->extras_capacity = 0;
}

/* Makes room for one more element of `size` bytes in an array. The array counts against the arena's
 * limit, so that a file cannot make it grow without end. */
static tnf_status make_room(const tnf_catalog *c, void **array, size_t n, size_t *capacity,
                            size_t size, tnf_error *e)
{
    if (n < *capacity)
        return TNF_OK;
    size_t more = *capacity ? *capacity + *capacity / 2 + 1 : 8; /* + 1: half of one is nothing */
    tnf_arena *a = c->arena;
    uint64_t growth = (uint64_t)(more - *capacity) * size;
    a->over_limit = growth > a->limit - a->total || more >= UINT32_MAX;
    void *p = a->over_limit ? NULL : tnf_realloc(&a->alloc, *array, *capacity * size, more * size);
    if (!p)
        return tnf_arena_fail(a, "the list of tensors", e);
    a->total += growth;
    *array = p;
    *capacity = more;
    return TNF_OK;
}

tnf_status tnf_catalog_reserve(tnf_catalog *c, size_t n, tnf_error *e)
{
    tnf_arena *a = c->arena;
    if (n <= c->capacity)
        return TNF_OK;
    uint64_t growth = (uint64_t)(n - c->capacity) * sizeof *c->objects;
    a->over_limit = growth > a->limit - a->total || n >= UINT32_MAX;
    void *p = a->over_limit ? NULL
                            : tnf_realloc(&a->alloc, c->objects, c->capacity * sizeof *c->objects,
                                          n * sizeof *c->objects);
    if (!p)
        return tnf_arena_fail(a, "the list of tensors", e);
    a->total += growth;
    c->objects = p;
    c->capacity = n;
    if (!tnf_hash_reserve(&c->names, n))
        return tnf_no_memory("the table of names", e);
    return TNF_OK;
}

static tnf_status copy_object(tnf_catalog *c, tnf_object *to, const tnf_object *from, tnf_error *e)
{
    *to = *from;
    /* In this order: allocating the largest alignment first leaves the smallest gaps. */
    tnf_part *parts = tnf_arena_array(c->arena, from->nparts, sizeof *parts);
    uint64_t *shape = tnf_arena_array(c->arena, from->rank, sizeof *shape);
    to->name.p = tnf_arena_str(c->arena, from->name.p, from->name.n);
    if (!to->name.p || !shape || !parts)
        return tnf_arena_fail(c->arena, "a tensor's description", e);
    if (from->rank)
        memcpy(shape, from->shape, from->rank * sizeof *shape);
    if (from->nparts)
        memcpy(parts, from->parts, from->nparts * sizeof *parts);
    to->shape = shape;
    to->parts = from->nparts ? parts : NULL; /* without parts there is no address to misread */
    return TNF_OK;
}

tnf_status tnf_catalog_add(tnf_catalog *c, const tnf_object *object, unsigned policy, tnf_error *e)
{
    void *objects = c->objects;
    TNF_TRY(make_room(c, &objects, c->n, &c->capacity, sizeof *c->objects, e));
    c->objects = objects;
    if (policy & TNF_BORROWED)
        c->objects[c->n] = *object;
    else
        TNF_TRY(copy_object(c, &c->objects[c->n], object, e));
    policy &= ~TNF_BORROWED;
    uint32_t previous;
    if (!tnf_hash_add(&c->names, (uint32_t)c->n, policy == TNF_NAMES_LATER_FOUND, &previous))
        return tnf_no_memory("the table of names", e);
    if (previous != TNF_HASH_NONE && policy == TNF_NAMES_ONCE)
        return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "the tensor %s occurs twice",
                        TNF_QUOTED(object->name));
    c->n++;
    return TNF_OK;
}

tnf_status tnf_catalog_add_extra(tnf_catalog *c, const tnf_extra *extra, tnf_error *e)
{
    void *extras = c->extras;
    TNF_TRY(make_room(c, &extras, c->nextras, &c->extras_capacity, sizeof *c->extras, e));
    c->extras = extras;
    tnf_extra copy = *extra;
    copy.key.p = tnf_arena_str(c->arena, extra->key.p, extra->key.n);
    if (!copy.key.p)
        return tnf_arena_fail(c->arena, "an extra's name", e);
    c->extras[c->nextras++] = copy;
    return TNF_OK;
}

const tnf_object *tnf_catalog_find(const tnf_catalog *c, const char *name, size_t n)
{
    uint32_t position = tnf_hash_find(&c->names, name, n);
    return position == TNF_HASH_NONE ? NULL : &c->objects[position];
}

const tnf_value *tnf_catalog_attr(const tnf_catalog *c, const char *key)
{
    const tnf_value all = tnf_attrs_value(&c->attrs);
    return tnf_value_get(&all, key);
}

tnf_status tnf_catalog_reindex(tnf_catalog *c, bool later_found, tnf_error *e)
{
    uint32_t previous;
    tnf_hash_free(&c->names);
    tnf_hash_init(&c->names, &c->arena->alloc, tnf_catalog_name_at, c);
    for (size_t i = 0; i < c->n; i++)
        if (!tnf_hash_add(&c->names, (uint32_t)i, later_found, &previous))
            return tnf_no_memory("the table of names", e);
    return TNF_OK;
}

void tnf_catalog_shrink(tnf_catalog *c)
{
    if (c->n == 0 || c->n == c->capacity)
        return;
    void *p = tnf_realloc(&c->arena->alloc, c->objects, c->capacity * sizeof *c->objects,
                          c->n * sizeof *c->objects);
    if (p) { /* else the array keeps its size, which is harmless */
        c->objects = p;
        c->capacity = c->n;
    }
}

static const tnf_member filler_mark[] = { { { "tenfold.filler", 14 },
                                            { .kind = TNF_BOOL, .as.b = true } } };
const tnf_value tnf_filler = { .kind = TNF_MAP, .n = 1, .as.members = filler_mark };

bool tnf_is_filler(const tnf_object *o)
{
    return o->attrs && o->attrs->n == 1 && tnf_value_equal(o->attrs, &tnf_filler);
}
