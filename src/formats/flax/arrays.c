/* SPDX-License-Identifier: MIT */
/* Arrays of a tree, complete or in pieces, and how their bytes are read. */
#include "formats/flax/walk.h"

#include <stdio.h>
#include <string.h>

#define MAX_RANK   255u
#define MAX_CHUNKS ((uint64_t)1 << 24)

/* ------------------------------------------------------------------ arrays */

static tnf_status read_dims(struct fx_walk *x, struct fx_array *a, tnf_error *e)
{
    fx_head h;
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_ARRAY)
        return tnf_fail(e, TNF_EFORMAT, h.at, "the shape of an array is not a list of numbers");
    if (h.n > MAX_RANK)
        return tnf_fail(e, TNF_ELIMIT, h.at, "an array has %llu dimensions; the limit is %u",
                        (unsigned long long)h.n, MAX_RANK);
    a->rank = (uint32_t)h.n;
    a->shape = tnf_arena_array(x->r->scratch, a->rank + 1, sizeof *a->shape);
    if (!a->shape)
        return tnf_arena_fail(x->r->scratch, "a shape", e);
    for (uint32_t i = 0; i < a->rank; i++) {
        TNF_TRY(tnf_fx_head(&x->in, &h, e));
        if (h.value.kind != TNF_UINT)
            return tnf_fail(e, TNF_EFORMAT, h.at,
                            "a dimension of an array is negative or not a whole number");
        a->shape[i] = h.value.as.u;
    }
    if (!tnf_shape_elements(&a->elements, a->shape, a->rank))
        return tnf_fail(e, TNF_EFORMAT, a->at, "the product of an array's dimensions exceeds 2^64");
    return TNF_OK;
}

static tnf_status read_type(struct fx_walk *x, struct fx_array *a, tnf_error *e)
{
    fx_head h;
    const uint8_t *p;
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_STR)
        return tnf_fail(e, TNF_EFORMAT, h.at, "an array's type is not text");
    TNF_TRY(tnf_fx_bytes(&x->in, h.n, &p, e));
    a->type = tnf_fx_type((tnf_str) { (const char *)p, (size_t)h.n });
    if (!a->type)
        return tnf_fail(e, TNF_EUNSUPPORTED, h.at, "an array has the unknown type %s",
                        TNF_QUOTED(((tnf_str) { (const char *)p, (size_t)h.n })));
    if (a->type->read_only)
        tnf_warn(x->r, h.at, "the type %s is read as bfloat16: old versions of jax wrote it so",
                 a->type->name);
    return TNF_OK;
}

/* Reads the content of an ext 1 or 3, whose head was read. The position moves to its end. */
tnf_status tnf_fx_array(struct fx_walk *x, const fx_head *ext, struct fx_array *a, tnf_error *e)
{
    fx_head h;
    uint64_t end = x->in.pos + ext->n, bytes;
    *a = (struct fx_array) { .at = ext->at };
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_ARRAY || h.n != 3)
        return tnf_fail(e, TNF_EFORMAT, h.at, "an array is not [shape, type, bytes]");
    TNF_TRY(read_dims(x, a, e));
    TNF_TRY(read_type(x, a, e));
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_BIN)
        return tnf_fail(e, TNF_EFORMAT, h.at, "an array's data are not bytes");
    a->data = (fx_piece) { x->in.pos, h.n };
    if (x->in.pos + h.n != end)
        return tnf_fail(e, TNF_EFORMAT, ext->at,
                        "the fields of an array of %llu bytes do not end where the array ends",
                        (unsigned long long)ext->n);
    if (!tnf_ckd_mul(&bytes, a->elements, a->type->width) || bytes != h.n)
        return tnf_fail(e, TNF_EFORMAT, h.at, "%llu elements of %s do not have %llu bytes",
                        (unsigned long long)a->elements, a->type->name, (unsigned long long)h.n);
    x->in.pos = end;
    return TNF_OK;
}

static tnf_status push_data(struct fx_walk *x, uint64_t *key, fx_data d, tnf_error *e)
{
    fx_state *s = x->state;
    fx_data *items = tnf_arena_grow(x->r->arena, s->items, s->n, &s->capacity, sizeof *items, 8);
    if (!items)
        return tnf_arena_fail(x->r->arena, "arrays", e);
    s->items = items;
    *key = s->n;
    s->items[s->n++] = d;
    return TNF_OK;
}

static tnf_status make_attrs(const tnf_value **out, const struct fx_walk *x, bool scalar,
                             bool chunked, tnf_error *e)
{
    tnf_attrs attrs = { .arena = x->r->arena };
    tnf_value path;
    *out = NULL;
    if (tnf_fx_needs_path(x)) {
        TNF_TRY(tnf_fx_keep_path(&path, x, e));
        TNF_TRY(tnf_attrs_push(&attrs, FX_PATH, path, e));
    }
    if (scalar)
        TNF_TRY(tnf_attrs_push(&attrs, FX_KIND, tnf_value_string(FX_SCALAR), e));
    if (chunked)
        TNF_TRY(tnf_attrs_push(&attrs, FX_CHUNKS, tnf_value_bool(true), e));
    if (attrs.n == 0)
        return TNF_OK;
    tnf_value *map = tnf_arena_alloc(x->r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(x->r->arena, "attributes", e);
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

/* A type that Tenfold does not support: the tensor is listed under the file's name of the type. */
static tnf_status list_only(struct fx_walk *x, tnf_part *part, const fx_type *type, tnf_error *e)
{
    char why[96];
    tnf_type *own = tnf_arena_alloc(x->r->arena, sizeof *own);
    if (!own)
        return tnf_arena_fail(x->r->arena, "a type", e);
    *own = (tnf_type) { type->name, TNF_U8, TNF_NUMBER_OPAQUE, 8u * type->width };
    snprintf(why, sizeof why, "elements of the type %s are not supported", type->name);
    part->type = own;
    part->flags = TNF_PART_UNREADABLE;
    return tnf_unreadable_origin(x->r, &part->origin, why, e);
}

static tnf_status fill_part(struct fx_walk *x, tnf_part *part, const struct fx_array *a, fx_data d,
                            tnf_error *e)
{
    *part = (tnf_part) { .role = "data", .offset = a->data.at, .payload = TNF_AT };
    part->stored = part->nbytes = a->elements * a->type->width;
    if (!a->type->type)
        return list_only(x, part, a->type, e);
    part->type = tnf_type_named(a->type->type);
    if (part->type->bits < 8) {
        d.bits = (uint8_t)part->type->bits;
        d.elements = a->elements;
        if (!tnf_type_bytes(&part->nbytes, part->type, a->elements))
            return tnf_fail(e, TNF_EFORMAT, a->at, "an array exceeds 2^64 bytes");
    }
    if (d.bits == 0 && d.n == 1)
        return TNF_OK;
    part->payload = TNF_OPAQUE;
    fx_piece *kept = tnf_arena_array(x->r->arena, d.n, sizeof *kept);
    if (!kept)
        return tnf_arena_fail(x->r->arena, "an array", e);
    memcpy(kept, d.pieces, d.n * sizeof *kept);
    d.pieces = kept;
    return push_data(x, &part->offset, d, e);
}

tnf_status tnf_fx_add(struct fx_walk *x, const struct fx_array *a, fx_data d, bool scalar,
                      bool chunked, tnf_error *e)
{
    tnf_part part;
    tnf_object o = {
        .shape = a->shape, .layout = &tnf_layout_dense, .parts = &part, .rank = a->rank, .nparts = 1
    };
    TNF_TRY(fill_part(x, &part, a, d, e));
    TNF_TRY(make_attrs(&o.attrs, x, scalar, chunked, e));
    TNF_TRY(tnf_fx_join(&o.name, x, false, e));
    if (tnf_catalog_find(x->r->catalog, o.name.p, o.name.n)) {
        tnf_warn(x->r, a->at, "two arrays have the name %s, which is their keys joined by slashes",
                 TNF_QUOTED(o.name));
        TNF_TRY(tnf_fx_join(&o.name, x, true, e));
    }
    x->tensors++;
    return tnf_add_object(x->r, &o, a->at, e);
}

/* ---------------------------------------------------------- chunked arrays */

/* "0", "1" … without leading zeros. */
static bool is_number(tnf_str s, uint64_t *out)
{
    return tnf_str_uint(out, s) && (s.n == 1 || s.p[0] != '0');
}

static tnf_status read_key(struct fx_walk *x, tnf_str *out, uint64_t *at, tnf_error *e)
{
    fx_head h;
    const uint8_t *p = NULL;
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    *at = h.at;
    *out = (tnf_str) { NULL, 0 };
    if (h.kind != TNF_MSGPACK_STR)
        return TNF_OK;
    TNF_TRY(tnf_fx_bytes(&x->in, h.n, &p, e));
    *out = (tnf_str) { (const char *)p, (size_t)h.n };
    return TNF_OK;
}

/* The number of an entry. Each of 0 to n - 1 must occur once. */
static tnf_status read_number(struct fx_walk *x, uint64_t n, uint64_t *out, tnf_error *e)
{
    tnf_str key;
    uint64_t at;
    TNF_TRY(read_key(x, &key, &at, e));
    if (!key.p || !is_number(key, out) || *out >= n)
        return tnf_fail(e, TNF_EFORMAT, at, "the pieces of an array are not numbered 0, 1, 2 …");
    return TNF_OK;
}

static tnf_status read_whole_shape(struct fx_walk *x, struct fx_array *a, tnf_error *e)
{
    fx_head h;
    uint64_t i, seen[MAX_RANK + 1] = { 0 };
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_MAP || h.n > MAX_RANK)
        return tnf_fail(e, TNF_EFORMAT, h.at, "the shape of an array in pieces is not a map");
    a->rank = (uint32_t)h.n;
    a->shape = tnf_arena_array(x->r->scratch, a->rank + 1, sizeof *a->shape);
    if (!a->shape)
        return tnf_arena_fail(x->r->scratch, "a shape", e);
    for (uint32_t k = 0; k < a->rank; k++) {
        TNF_TRY(read_number(x, a->rank, &i, e));
        TNF_TRY(tnf_fx_head(&x->in, &h, e));
        if (h.value.kind != TNF_UINT || seen[i]++)
            return tnf_fail(e, TNF_EFORMAT, h.at, "a dimension is not a number, or occurs twice");
        a->shape[i] = h.value.as.u;
    }
    if (!tnf_shape_elements(&a->elements, a->shape, a->rank))
        return tnf_fail(e, TNF_EFORMAT, a->at, "the product of an array's dimensions exceeds 2^64");
    return TNF_OK;
}

static tnf_status read_pieces(struct fx_walk *x, struct fx_array *a, fx_data *d, tnf_error *e)
{
    fx_head h;
    uint64_t i;
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_MAP || h.n > MAX_CHUNKS)
        return tnf_fail(e, TNF_EFORMAT, h.at, "the pieces of an array are not a map");
    d->n = (size_t)h.n;
    fx_piece *pieces = tnf_arena_array(x->r->scratch, h.n + 1, sizeof *pieces);
    if (!pieces)
        return tnf_arena_fail(x->r->scratch, "an array", e);
    d->pieces = pieces;
    for (size_t k = 0; k < d->n; k++) {
        struct fx_array one;
        TNF_TRY(read_number(x, d->n, &i, e));
        TNF_TRY(tnf_fx_head(&x->in, &h, e));
        if (h.kind != TNF_MSGPACK_EXT || h.ext != FX_NDARRAY || pieces[i].at)
            return tnf_fail(e, TNF_EFORMAT, h.at,
                            "piece %llu of an array is missing or occurs twice",
                            (unsigned long long)i);
        TNF_TRY(tnf_fx_array(x, &h, &one, e));
        if (one.rank != 1 || (a->type && a->type != one.type))
            return tnf_fail(e, TNF_EFORMAT, h.at,
                            "the pieces of an array have different types, or are not vectors");
        a->type = one.type;
        pieces[i] = one.data;
    }
    return TNF_OK;
}

static tnf_status add_chunked(struct fx_walk *x, struct fx_array *a, const fx_data *d, tnf_error *e)
{
    uint64_t sum = 0, bytes;
    if (!a->type)
        return tnf_fail(e, TNF_EFORMAT, a->at, "an array in pieces has no pieces");
    for (size_t i = 0; i < d->n; i++)
        sum += d->pieces[i].n; /* no overflow: each is in the file */
    if (!tnf_ckd_mul(&bytes, a->elements, a->type->width) || bytes != sum)
        return tnf_fail(e, TNF_EFORMAT, a->at, "%llu elements of %s do not have %llu bytes",
                        (unsigned long long)a->elements, a->type->name, (unsigned long long)sum);
    a->data = d->pieces[0];
    return tnf_fx_add(x, a, *d, false, true, e);
}

/* Index of the key among the three, or -1. */
static int chunk_key(tnf_str key)
{
    static const char *const names[] = { FX_MARK, "shape", "chunks" };
    for (int i = 0; key.p && i < 3; i++)
        if (tnf_str_is(key, names[i]))
            return i;
    return -1;
}

/* Skips an item with everything in it. */
static tnf_status skip_item(struct fx_walk *x, tnf_error *e)
{
    fx_head h;
    for (uint64_t items = 1; items > 0; items--) {
        TNF_TRY(tnf_fx_head(&x->in, &h, e));
        if (h.kind == TNF_MSGPACK_MAP)
            items += 2 * h.n; /* no overflow: each item takes a byte of the file */
        else if (h.kind == TNF_MSGPACK_ARRAY)
            items += h.n;
        else
            x->in.pos += h.n;
    }
    return TNF_OK;
}

/* Does the map have exactly these three keys, and is the mark true? Any other map is data. The
 * position does not change. */
tnf_status tnf_fx_is_chunked(struct fx_walk *x, const fx_head *map, bool *out, tnf_error *e)
{
    uint64_t was = x->in.pos, taken = x->in.taken, at;
    bool seen[3] = { false, false, false }, marked = false;
    tnf_str key;
    *out = false;
    for (int i = 0; map->n == 3 && i < 3; i++) {
        fx_head h = { .kind = TNF_MSGPACK_END };
        TNF_TRY(read_key(x, &key, &at, e));
        int which = chunk_key(key);
        if (which < 0 || seen[which])
            break;
        seen[which] = true;
        if (which == 0)
            TNF_TRY(tnf_fx_head(&x->in, &h, e));
        marked = marked || (h.value.kind == TNF_BOOL && h.value.as.b);
        if (which == 0 && !marked)
            break;
        if (which != 0)
            TNF_TRY(skip_item(x, e));
        *out = seen[0] && seen[1] && seen[2] && marked;
    }
    x->in.pos = was;
    x->in.taken = taken;
    return TNF_OK;
}

/* Reads a map of the three keys, in any order. */
tnf_status tnf_fx_chunked(struct fx_walk *x, const fx_head *map, tnf_error *e)
{
    struct fx_array a = { .at = map->at };
    fx_data d = { NULL, 0, 0, 0 };
    bool seen[3] = { false, false, false };
    for (int i = 0; i < 3; i++) {
        tnf_str key;
        uint64_t at;
        fx_head h;
        TNF_TRY(read_key(x, &key, &at, e));
        int which = chunk_key(key);
        if (which < 0 || seen[which])
            return tnf_fail(e, TNF_EFORMAT, at, "an array in pieces has an unexpected key");
        seen[which] = true;
        if (which == 0)
            TNF_TRY(tnf_fx_head(&x->in, &h, e));
        else if (which == 1)
            TNF_TRY(read_whole_shape(x, &a, e));
        else
            TNF_TRY(read_pieces(x, &a, &d, e));
    }
    return add_chunked(x, &a, &d, e);
}

/* -------------------------------------------------------------------- data */

/* Copies bytes of the pieces unchanged. */
static tnf_status read_plain(const tnf_reader *r, const fx_data *d, uint64_t offset, uint8_t *dst,
                             size_t n, tnf_error *e)
{
    for (size_t i = 0; i < d->n && n > 0; i++) {
        const fx_piece *p = &d->pieces[i];
        if (offset >= p->n) {
            offset -= p->n;
            continue;
        }
        size_t some = p->n - offset < n ? (size_t)(p->n - offset) : n;
        TNF_TRY(tnf_source_read(r->source, p->at + offset, dst, some, e));
        dst += some;
        n -= some;
        offset = 0;
    }
    return TNF_OK;
}

tnf_status tnf_fx_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    const fx_state *s = r->state;
    const fx_data *d = &s->items[key];
    uint8_t *out = dst, block[4096] = { 0 };
    if (d->bits == 0)
        return read_plain(r, d, offset, dst, n, e);
    /* Packs elements, beginning with the one of the first bit. Each has a byte in the file. */
    memset(out, 0, n);
    uint64_t bit = 8 * offset, element = bit / d->bits, end = 8 * (offset + n);
    while (element < d->elements && element * d->bits < end) {
        uint64_t left = d->elements - element;
        size_t many = left < sizeof block ? (size_t)left : sizeof block;
        TNF_TRY(read_plain(r, d, element, block, many, e));
        for (size_t i = 0; i < many && element * d->bits < end; i++, element++)
            for (unsigned k = 0; k < d->bits; k++) {
                uint64_t at = element * d->bits + k;
                if (at >= bit && at < end && block[i] >> k & 1)
                    out[(at - bit) / 8] |= (uint8_t)(1u << (at - bit) % 8);
            }
    }
    return TNF_OK;
}
