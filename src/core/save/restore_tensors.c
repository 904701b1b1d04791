/* SPDX-License-Identifier: MIT */
/* The reverse of adapt.c: tensors that were changed to fit a format are restored. The stash says
 * how (plan_objects.c shows an entry).
 *
 *   file      w   v#offsets   v#bytes        note: v = strings/1 of v#offsets, v#bytes
 *   model     w   v
 *
 *   file      v [3,5] of u8                  note: v = strings/1, padded
 *   model     v [3]
 *
 * The file may have been edited since, or the note may be forged. A note that does not fit the
 * tensors of the file, by all rules of its layout, is ignored with a warning.
 */
#include "core/core.h"

#include <string.h>

/* Positions in the catalog; GONE: merged into the tensor at another position. */
struct restoring {
    tnf_file *f;
    tnf_object *restored; /* one per position of the catalog; layout NULL: unchanged */
    bool *gone;
    const tnf_value *tensors; /* the tensors' attributes in the stash, by name */
    tnf_hash by_name;
    bool any;
    bool no_memory;
};

static tnf_str text_of(const tnf_value *map, const char *key)
{
    return tnf_value_chars(tnf_value_get(map, key)); /* a name might not be UTF-8 */
}

static void *room_for(struct restoring *u, size_t n, size_t size)
{
    void *p = tnf_arena_array(&u->f->arena, n, size);
    u->no_memory = u->no_memory || !p;
    return p;
}

static const char *copy_text(struct restoring *u, tnf_str text)
{
    const char *p = tnf_arena_str(&u->f->arena, text.p, text.n);
    u->no_memory = u->no_memory || !p;
    return p;
}

static bool read_shape(tnf_object *o, const tnf_value *shape, struct restoring *u)
{
    uint64_t *dims, elements;
    if (!shape || shape->kind != TNF_ARRAY || shape->n > u->f->options.limits.rank ||
        !(dims = room_for(u, shape->n, sizeof *dims)))
        return false;
    for (size_t d = 0; d < shape->n; d++)
        if (!tnf_value_whole(&dims[d], &shape->as.items[d]))
            return false;
    o->shape = dims;
    o->rank = (uint32_t)shape->n;
    return tnf_shape_elements(&elements, dims, o->rank);
}

/* Makes a type that only the format of the original file knows. */
static const tnf_type *unknown_type(struct restoring *u, tnf_str id, tnf_dtype storage,
                                    const tnf_value *note)
{
    tnf_type *type = room_for(u, 1, sizeof *type);
    const char *text = copy_text(u, id);
    uint64_t bits = 0;
    tnf_str word = text_of(note, "storage"); /* if another type of that width represents it */
    const tnf_type *other = word.p ? tnf_type_find(word.p, word.n) : NULL;
    tnf_value_whole(&bits, tnf_value_get(note, "bits"));
    storage = other ? other->storage : storage;
    if (!type || !text || bits > 1024)
        return NULL;
    *type = (tnf_type) { text, storage, TNF_NUMBER_OPAQUE, (uint32_t)bits };
    return type;
}

/* Signed integers may represent unsigned ones. */
static bool same_storage(tnf_dtype a, tnf_dtype b)
{
    bool integers = a >= TNF_I64 && b >= TNF_I64;
    return a == b || (integers && tnf_dtype_size(a) == tnf_dtype_size(b));
}

/* Makes a part from a tensor of the file, with the role and type that it had. */
static bool read_part(tnf_part *out, const tnf_value *note, const tnf_object *now,
                      struct restoring *u)
{
    tnf_str role = text_of(note, "role"), type = text_of(note, "type");
    if (!role.p || !type.p || now->layout != &tnf_layout_dense || now->nparts != 1)
        return false;
    *out = *now->parts;
    out->role = copy_text(u, role);
    if (strlen(out->type->id) != type.n || memcmp(out->type->id, type.p, type.n) != 0)
        out->type = tnf_type_find(type.p, type.n);
    if (!out->type)
        out->type = unknown_type(u, type, now->parts->type->storage, note);
    return out->role && out->type && same_storage(out->type->storage, now->parts->type->storage);
}

static bool read_parts(tnf_object *o, const tnf_value *parts, struct restoring *u,
                       uint32_t *positions)
{
    const tnf_catalog *c = &u->f->catalog;
    tnf_part *p = room_for(u, parts->n, sizeof *p);
    if (!p)
        return false;
    for (size_t i = 0; i < parts->n; i++) {
        tnf_str as = text_of(&parts->as.items[i], "as");
        positions[i] = as.p ? tnf_hash_find(&c->names, as.p, as.n) : TNF_HASH_NONE;
        if (positions[i] == TNF_HASH_NONE || u->gone[positions[i]] ||
            u->restored[positions[i]].layout ||
            !read_part(&p[i], &parts->as.items[i], &c->objects[positions[i]], u))
            return false;
        for (size_t k = 0; k < i; k++)
            if (positions[k] == positions[i])
                return false;
    }
    o->parts = p;
    o->nparts = (uint16_t)parts->n;
    return true;
}

/* Only a tensor with the same shape, under another name or type, can be column-major. */
static bool read_order(tnf_object *o, const tnf_catalog *c, const uint32_t *positions, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const tnf_object *now = &c->objects[positions[i]];
        if (now->order == TNF_ORDER_C || now->rank <= 1)
            continue;
        if (n > 1 || o->layout != &tnf_layout_dense || !tnf_same_shape(o, now))
            return false;
        o->order = now->order;
    }
    return true;
}

/* Checks that no other tensor has its name. */
static bool name_free(const tnf_catalog *c, tnf_str name, const uint32_t *positions, size_t n)
{
    uint32_t at = tnf_hash_find(&c->names, name.p, name.n);
    bool own = at == TNF_HASH_NONE;
    for (size_t i = 0; i < n; i++)
        own = own || positions[i] == at;
    return own;
}

/* The attributes of a tensor, which its layout may need. */
static const tnf_value *attrs_of(struct restoring *u, tnf_str name, const tnf_object *now)
{
    uint32_t at = now ? TNF_HASH_NONE : tnf_hash_find(&u->by_name, name.p, name.n);
    return now ? now->attrs : at == TNF_HASH_NONE ? NULL : &u->tensors->as.members[at].value;
}

static bool is_padded(const tnf_object *o, const tnf_value *parts)
{
    tnf_str role = parts->n == 1 ? text_of(parts->as.items, "role") : (tnf_str) { NULL, 0 };
    return tnf_str_is(role, TNF_ROLE_PADDED) && strcmp(o->layout->id, "strings/1") == 0;
}

/* Restores strings that were padded to one length, which gave the tensor one more dimension. */
static bool read_padded(struct restoring *u, tnf_object *o, const tnf_value *note, tnf_error *why)
{
    const tnf_catalog *c = &u->f->catalog;
    tnf_str as = text_of(note, "as");
    uint32_t at = as.p ? tnf_hash_find(&c->names, as.p, as.n) : TNF_HASH_NONE;
    tnf_part *parts = room_for(u, 2, sizeof *parts);
    if (at == TNF_HASH_NONE || u->gone[at] || u->restored[at].layout || !parts ||
        !name_free(c, o->name, &at, 1))
        return false;
    const tnf_object *now = &c->objects[at];
    if (now->rank != o->rank + 1 || now->layout != &tnf_layout_dense || now->nparts != 1 ||
        (o->rank && memcmp(o->shape, now->shape, o->rank * sizeof *o->shape) != 0) ||
        now->order != TNF_ORDER_C || now->parts->type != tnf_type_of(TNF_U8))
        return false;
    o->parts = parts;
    o->nparts = 2;
    o->attrs = attrs_of(u, o->name, NULL);
    tnf_status status = tnf_unpad_strings(parts, u->f, now, why);
    u->no_memory = u->no_memory || status == TNF_ENOMEM;
    if (status != TNF_OK || tnf_layout_check(o, why) != TNF_OK)
        return false;
    u->restored[at] = *o;
    u->any = true;
    return true;
}

#define MOST_PARTS 16u

static bool read_note(struct restoring *u, const tnf_value *note, tnf_error *why)
{
    tnf_file *f = u->f;
    tnf_object o = { 0 };
    uint32_t positions[MOST_PARTS];
    const tnf_value *parts = tnf_value_get(note, "parts");
    tnf_str layout = text_of(note, "layout"), name = text_of(note, "name");
    if (!layout.p || !name.p || !parts || parts->kind != TNF_ARRAY || parts->n == 0 ||
        parts->n > MOST_PARTS || name.n > f->options.limits.name_bytes)
        return false;
    o.layout = tnf_layout_named(layout.p, layout.n);
    if (!o.layout && !(o.layout = tnf_layout_unknown(&f->arena, layout.p, layout.n))) {
        u->no_memory = true;
        return false;
    }
    o.name = (tnf_str) { copy_text(u, name), name.n };
    if (!o.name.p || !read_shape(&o, tnf_value_get(note, "shape"), u))
        return false;
    if (is_padded(&o, parts))
        return read_padded(u, &o, parts->as.items, why);
    if (!read_parts(&o, parts, u, positions) || !read_order(&o, &f->catalog, positions, parts->n))
        return false;
    o.attrs = attrs_of(u, name, parts->n == 1 ? &f->catalog.objects[positions[0]] : NULL);
    if (!name_free(&f->catalog, o.name, positions, parts->n) || tnf_layout_check(&o, why) != TNF_OK)
        return false;
    for (size_t i = 0; i < parts->n; i++)
        f->pieces[f->npieces++] = (struct raised_piece) { f->catalog.objects[positions[i]].name,
                                                          o.name };
    u->restored[positions[0]] = o;
    for (size_t i = 1; i < parts->n; i++)
        u->gone[positions[i]] = true;
    u->any = true;
    return true;
}

static tnf_str piece_name(const void *ctx, uint32_t position)
{
    return ((const tnf_file *)ctx)->pieces[position].raw;
}

static tnf_status index_pieces(tnf_file *f, tnf_error *e)
{
    uint32_t previous;
    tnf_hash_init(&f->piece_names, &f->alloc, piece_name, f);
    for (size_t i = 0; i < f->npieces; i++)
        if (!tnf_hash_add(&f->piece_names, (uint32_t)i, false, &previous))
            return tnf_no_memory("the stash", e);
    return TNF_OK;
}

/* Builds the catalog with each restored tensor at the place of its first part. */
static tnf_status rebuild_catalog(struct restoring *u, tnf_error *e)
{
    tnf_catalog *c = &u->f->catalog;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!u->gone[i])
            c->objects[n++] = u->restored[i].layout ? u->restored[i] : c->objects[i];
    c->n = n;
    TNF_TRY(index_pieces(u->f, e));
    return tnf_catalog_reindex(c, !(u->f->format->rules & TNF_RULE_NAMES_MAY_REPEAT), e);
}

static tnf_status read_notes(struct restoring *u, const tnf_value *notes, tnf_error *e)
{
    for (size_t i = 0; i < notes->n; i++) {
        tnf_error why = { .message = "the file was changed since it was written" };
        if (read_note(u, &notes->as.items[i], &why))
            continue;
        if (u->no_memory)
            return tnf_arena_fail(&u->f->arena, "the stash", e);
        tnf_str name = text_of(&notes->as.items[i], "name");
        tnf_warn(&u->f->reader, TNF_NO_OFFSET,
                 "the note in " TNF_STASH_KEY " about %s is ignored: %s",
                 name.p ? TNF_QUOTED(name) : "a tensor", why.message);
    }
    return u->any ? rebuild_catalog(u, e) : TNF_OK;
}

tnf_status tnf_restore_tensors(tnf_file *f, const tnf_value *stash, tnf_error *e)
{
    const tnf_value *notes = tnf_value_get(stash, "objects");
    if (!notes || notes->kind != TNF_ARRAY || notes->n == 0)
        return TNF_OK;
    tnf_arena scratch;
    tnf_arena_init(&scratch, &f->alloc, UINT64_MAX);
    struct restoring u = { .f = f, .tensors = tnf_value_get(stash, "tensors") };
    u.restored = tnf_arena_array(&scratch, f->catalog.n, sizeof *u.restored);
    u.gone = tnf_arena_array(&scratch, f->catalog.n, sizeof *u.gone);
    f->pieces = tnf_arena_array(&f->arena, f->catalog.n, sizeof *f->pieces);
    tnf_status status = tnf_index_members(&u.by_name, f, u.tensors, e);
    if (status == TNF_OK && !f->pieces)
        status = tnf_arena_fail(&f->arena, "the stash", e);
    if (status == TNF_OK && (!u.restored || !u.gone))
        status = tnf_arena_fail(&scratch, "the stash", e);
    if (status == TNF_OK)
        status = read_notes(&u, notes, e);
    tnf_hash_free(&u.by_name);
    tnf_arena_free(&scratch);
    return status;
}
