/* SPDX-License-Identifier: MIT */
/* Builders: catalogs that the caller puts together. */
#include "base/sized.h"
#include "core/read/place.h"
#include "core/save/save.h"
#include "wire/json.h"
#include "wire/msgpack.h"

#include <string.h>

tnf_status tnf_builder_new(tnf_builder **out, const tnf_allocator *allocator, tnf_error *e)
{
    *out = NULL;
    tnf_allocator a = tnf_allocator_or_default(allocator);
    tnf_builder *b = tnf_alloc0(&a, sizeof *b);
    if (!b)
        return tnf_no_memory("a builder", e);
    b->alloc = a;
    tnf_arena_init(&b->arena, &b->alloc, UINT64_MAX);
    tnf_catalog_init(&b->catalog, &b->arena);
    *out = b;
    return TNF_OK;
}

void tnf_builder_free(tnf_builder *b)
{
    if (!b)
        return;
    tnf_catalog_free(&b->catalog);
    tnf_arena_free(&b->arena);
    tnf_allocator a = b->alloc;
    tnf_free(&a, b, sizeof *b);
}

static tnf_str whole_name(const char *name)
{
    return (tnf_str) { name, name ? strlen(name) : 0 };
}

static tnf_status add_dense(tnf_builder *b, tnf_str name, const tnf_type *type, uint32_t rank,
                            const uint64_t *shape, const tnf_part *from, tnf_error *e)
{
    uint64_t elements, bytes;
    tnf_part part = *from;
    tnf_object o = { .name = name,
                     .shape = shape,
                     .layout = &tnf_layout_dense,
                     .parts = &part,
                     .rank = rank,
                     .nparts = 1 };
    if (!name.p || !type || (rank && !shape))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a tensor needs a name, a type and a shape");
    if (!tnf_shape_elements(&elements, shape, rank) || !tnf_type_bytes(&bytes, type, elements))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s is larger than 2^64 bytes",
                        TNF_QUOTED(o.name));
    if (bytes && !part.memory && !part.origin)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has no data", TNF_QUOTED(o.name));
    part.role = "data";
    part.type = type;
    part.stored = part.nbytes = bytes;
    part.payload = TNF_MEMORY;
    return tnf_catalog_add(&b->catalog, &o, false, e);
}

tnf_status tnf_builder_add(tnf_builder *b, const char *name, const tnf_type *type, uint32_t rank,
                           const uint64_t *shape, const void *data, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    return add_dense(b, whole_name(name), type, rank, shape, &(tnf_part) { .memory = data }, e);
}

tnf_status tnf_builder_add_stream_n(tnf_builder *b, tnf_str name, const tnf_type *type,
                                    uint32_t rank, const uint64_t *shape, tnf_fetch_fn fetch,
                                    void *ctx, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(fetch, "fetch", e));
    struct tnf_origin *origin = tnf_arena_alloc(&b->arena, sizeof *origin);
    if (!origin)
        return tnf_arena_fail(&b->arena, "a stream", e);
    origin->fetch = fetch;
    origin->ctx = ctx;
    return add_dense(b, name, type, rank, shape, &(tnf_part) { .origin = origin }, e);
}

tnf_status tnf_builder_add_stream(tnf_builder *b, const char *name, const tnf_type *type,
                                  uint32_t rank, const uint64_t *shape, tnf_fetch_fn fetch,
                                  void *ctx, tnf_error *e)
{
    return tnf_builder_add_stream_n(b, whole_name(name), type, rank, shape, fetch, ctx, e);
}

static tnf_status add_object(tnf_builder *b, const tnf_object *object, const char *name,
                             unsigned policy, tnf_error *e)
{
    tnf_object copy = *object;
    if (name)
        copy.name = (tnf_str) { name, strlen(name) };
    TNF_TRY(tnf_object_there(&copy, e));
    bool readable = true;
    for (uint16_t i = 0; i < object->nparts; i++) {
        const tnf_part *p = &object->parts[i];
        if (tnf_need_part(p, e) != TNF_OK) {
            tnf_error_prefix(e, TNF_QUOTED(copy.name));
            return TNF_EINVAL;
        }
        readable = readable && !(p->flags & TNF_PART_UNREADABLE);
    }
    if (readable)
        TNF_TRY(tnf_layout_check(&copy, e));
    return tnf_catalog_add(&b->catalog, &copy, policy, e);
}

/* The JSON documents of a value, which tnf_value_check() has checked. */
static tnf_status check_documents(const tnf_value *v, tnf_builder *b, tnf_error *e)
{
    for (size_t i = 0; v->kind == TNF_ARRAY && i < v->n; i++)
        TNF_TRY(check_documents(&v->as.items[i], b, e));
    for (size_t i = 0; v->kind == TNF_MAP && i < v->n; i++)
        TNF_TRY(check_documents(&v->as.members[i].value, b, e));
    if (v->kind != TNF_JSON)
        return TNF_OK;
    tnf_json j;
    tnf_json_init(&j, v->as.s, v->n, 0, &b->arena, TNF_DEFAULT_DEPTH, e);
    return tnf_json_skip(&j, NULL) ? tnf_json_end(&j) : j.status;
}

/* A copy in the builder's memory of a value that the caller may have made. */
static tnf_status copy_checked(tnf_value *out, const tnf_value *v, tnf_builder *b, unsigned depth,
                               tnf_error *e)
{
    TNF_TRY(tnf_value_check(v, depth, e));
    TNF_TRY(check_documents(v, b, e));
    return tnf_value_copy(out, v, &b->arena, depth, e);
}

/* The caller may have built the object. */
static tnf_status check_reserved(const tnf_object *o, tnf_error *e)
{
    TNF_TRY(tnf_check_reserved(&o->reserved, sizeof o->reserved, e));
    for (uint16_t i = 0; i < o->nparts; i++)
        TNF_TRY(tnf_check_reserved(o->parts[i].reserved, sizeof o->parts[i].reserved, e));
    return TNF_OK;
}

static tnf_status copy_attrs(const tnf_value **out, const tnf_value *given, tnf_builder *b,
                             tnf_error *e)
{
    if (given->kind != TNF_MAP)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the attributes of a tensor are not a map");
    tnf_value *attrs = tnf_arena_alloc(&b->arena, sizeof *attrs);
    if (!attrs)
        return tnf_arena_fail(&b->arena, "attributes", e);
    *out = attrs;
    return copy_checked(attrs, given, b, TNF_DEFAULT_DEPTH + 1, e); /* the map is no attribute */
}

tnf_status tnf_builder_add_object(tnf_builder *b, const tnf_object *object, const char *name,
                                  tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(object, "object", e));
    tnf_object copy = *object;
    TNF_TRY(tnf_need_str(object->name, "name", e));
    TNF_TRY(tnf_need_array(object->parts, object->nparts, "parts", e));
    TNF_TRY(check_reserved(object, e));
    if (object->attrs)
        TNF_TRY(copy_attrs(&copy.attrs, object->attrs, b, e));
    return add_object(b, &copy, name, TNF_NAMES_ONCE, e);
}

/* A file with duplicate names keeps them, and a lookup finds the same one as in the file. Names
 * that come from elsewhere in this builder are taken. */
static unsigned names_of(const tnf_builder *b, size_t others, const tnf_file *file,
                         const tnf_object *o)
{
    const tnf_object *known = tnf_catalog_find(&b->catalog, o->name.p, o->name.n);
    if (!known || known < b->catalog.objects + others)
        return TNF_NAMES_ONCE;
    return o > tnf_find_n(file, o->name.p, o->name.n) ? TNF_NAMES_FIRST_FOUND
                                                      : TNF_NAMES_LATER_FOUND;
}

tnf_status tnf_builder_add_extra(tnf_builder *b, const tnf_extra *extra, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(extra, "extra", e));
    TNF_TRY(tnf_need_str(extra->key, "key", e));
    TNF_TRY(tnf_check_reserved(extra->bytes.reserved, sizeof extra->bytes.reserved, e));
    if (!tnf_part_here(&extra->bytes))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the extra %s has no data",
                        TNF_QUOTED(extra->key));
    return tnf_catalog_add_extra(&b->catalog, extra, e);
}

tnf_status tnf_builder_uses(tnf_builder *b, const tnf_file *file, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(file, "file", e));
    struct added_file *added = tnf_arena_alloc(&b->arena, sizeof *added);
    if (!added)
        return tnf_arena_fail(&b->arena, "a file", e);
    *added = (struct added_file) { b->files, file };
    b->files = added;
    return TNF_OK;
}

tnf_status tnf_builder_add_file(tnf_builder *b, const tnf_file *file, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(file, "file", e));
    const tnf_info *info = tnf_file_info(file);
    size_t others = b->catalog.n;
    TNF_TRY(tnf_builder_uses(b, file, e));
    for (size_t i = 0; i < info->objects; i++) {
        const tnf_object *o = tnf_at(file, i);
        TNF_TRY(add_object(b, o, NULL, names_of(b, others, file, o) | TNF_BORROWED, e));
    }
    for (size_t i = 0; i < info->attrs->n; i++) {
        const tnf_member *m = &info->attrs->as.members[i];
        TNF_TRY(tnf_attrs_set(&b->catalog.attrs, m->key.p, m->key.n, m->value, e));
    }
    for (size_t i = 0; i < info->nextras; i++)
        TNF_TRY(tnf_builder_add_extra(b, &info->extras[i], e));
    return TNF_OK;
}

/* Attributes of objects are shared with the file they come from: changed in a copy. */
static tnf_status set_object_attr(tnf_builder *b, tnf_object *o, tnf_str key,
                                  const tnf_value *value, tnf_error *e)
{
    tnf_attrs attrs = { .arena = &b->arena };
    for (size_t i = 0; o->attrs && i < o->attrs->n; i++)
        TNF_TRY(tnf_attrs_set(&attrs, o->attrs->as.members[i].key.p, o->attrs->as.members[i].key.n,
                              o->attrs->as.members[i].value, e));
    if (value)
        TNF_TRY(tnf_attrs_set(&attrs, key.p, key.n, *value, e));
    else
        tnf_attrs_remove(&attrs, key);
    tnf_value *map = tnf_arena_alloc(&b->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(&b->arena, "an attribute", e);
    *map = tnf_attrs_value(&attrs);
    o->attrs = map;
    return TNF_OK;
}

tnf_status tnf_builder_set_n(tnf_builder *b, const tnf_str *name, tnf_str key,
                             const tnf_value *value, tnf_error *e)
{
    tnf_value copy;
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need_array(key.p, key.n, "key", e));
    if (value)
        TNF_TRY(copy_checked(&copy, value, b, TNF_DEFAULT_DEPTH, e));
    if (name) {
        TNF_TRY(tnf_need_array(name->p, name->n, "name", e));
        const tnf_object *o = tnf_catalog_find(&b->catalog, name->p, name->n);
        if (!o)
            return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no tensor %s",
                            TNF_QUOTED(*name));
        return set_object_attr(b, &b->catalog.objects[o - b->catalog.objects], key,
                               value ? &copy : NULL, e);
    }
    if (value)
        return tnf_attrs_set(&b->catalog.attrs, key.p, key.n, copy, e);
    tnf_attrs_remove(&b->catalog.attrs, key);
    return TNF_OK;
}

tnf_status tnf_builder_set(tnf_builder *b, const char *name, const char *key,
                           const tnf_value *value, tnf_error *e)
{
    TNF_TRY(tnf_need(key, "key", e));
    const tnf_str whole = whole_name(name);
    return tnf_builder_set_n(b, name ? &whole : NULL, (tnf_str) { key, strlen(key) }, value, e);
}

tnf_status tnf_builder_parse(tnf_value *out, tnf_builder *b, const char *json, size_t n,
                             tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need_array(json, n, "json", e));
    tnf_json j;
    const char *text = tnf_arena_str(&b->arena, json, n); /* strings of the value stay in it */
    if (!text)
        return tnf_arena_fail(&b->arena, "a value", e);
    tnf_json_init(&j, text, n, 0, &b->arena, TNF_DEFAULT_DEPTH, e);
    return tnf_json_value(&j, out) ? tnf_json_end(&j) : j.status;
}

tnf_status tnf_builder_unpack(tnf_value *out, tnf_builder *b, const void *msgpack, size_t n,
                              tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need_array(msgpack, n, "msgpack", e));
    tnf_msgpack r;
    const char *bytes = tnf_arena_str(&b->arena, msgpack, n); /* strings of the value stay in it */
    if (!bytes)
        return tnf_arena_fail(&b->arena, "a value", e);
    tnf_msgpack_init(&r, bytes, n, 0, &b->arena, TNF_DEFAULT_DEPTH, e);
    return tnf_msgpack_value(&r, out) ? tnf_msgpack_end(&r) : r.status;
}
