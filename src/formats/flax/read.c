/* SPDX-License-Identifier: MIT */
/* The tree of a file, walked once from front to back. Data are not read, only where they are. */
#include "formats/flax/flax.h"

#include <stdio.h>
#include <string.h>

#define MAX_RANK   255u
#define MAX_CHUNKS ((uint64_t)1 << 24)

/* A map or an array that is not at its end. */
struct frame {
    bool map;
    uint64_t left, done;
    tnf_attrs keys; /* of a map, so that none comes twice */
};

/* Values one after the other, in an arena. */
struct row {
    tnf_value *items;
    size_t n, capacity;
};

struct walk {
    tnf_reader *r;
    fx_in in;
    struct frame frames[FX_DEPTH];
    tnf_value keys[FX_DEPTH]; /* from the root down to the item */
    unsigned depth;
    tnf_attrs leaves, paths;
    struct row lists, order;
    fx_state *state;
    size_t tensors;
};

/* An array as its ext says. */
struct array {
    const fx_type *type;
    tnf_str name; /* of the type */
    uint64_t *shape;
    uint32_t rank;
    uint64_t at, elements; /* where the ext begins */
    fx_piece data;
};

static tnf_status push_row(struct row *row, tnf_arena *arena, tnf_value v, tnf_error *e)
{
    if (row->n == row->capacity) {
        size_t more = row->capacity ? 2 * row->capacity : 8;
        tnf_value *items = tnf_arena_array(arena, more, sizeof *items);
        if (!items)
            return tnf_arena_fail(arena, "the tree", e);
        if (row->n)
            memcpy(items, row->items, row->n * sizeof *items);
        row->items = items;
        row->capacity = more;
    }
    row->items[row->n++] = v;
    return TNF_OK;
}

static tnf_value row_value(const struct row *row)
{
    return (tnf_value) { .kind = TNF_ARRAY, .n = row->n, .as.items = row->items };
}

/* ------------------------------------------------------------------- paths */

/* Keys that a name split at slashes would not give back. */
static bool needs_path(const struct walk *x)
{
    bool odd = x->depth == 0;
    for (unsigned i = 0; i < x->depth; i++)
        odd = odd || x->keys[i].kind != TNF_STRING ||
              (x->keys[i].n && memchr(x->keys[i].as.s, '/', x->keys[i].n));
    return odd;
}

static tnf_status keep_path(tnf_value *out, const struct walk *x, tnf_error *e)
{
    tnf_value *items = tnf_arena_array(x->r->arena, x->depth + 1, sizeof *items);
    if (!items)
        return tnf_arena_fail(x->r->arena, "a path", e);
    for (unsigned i = 0; i < x->depth; i++) {
        items[i] = x->keys[i];
        if (items[i].kind == TNF_STRING)
            items[i].as.s = tnf_arena_str(x->r->arena, items[i].as.s, items[i].n);
        if (items[i].kind == TNF_STRING && !items[i].as.s)
            return tnf_arena_fail(x->r->arena, "a path", e);
    }
    *out = (tnf_value) { .kind = TNF_ARRAY, .n = x->depth, .as.items = items };
    return TNF_OK;
}

static void put_key(tnf_buf *b, const tnf_value *key, bool escape)
{
    if (key->kind == TNF_UINT)
        tnf_buf_printf(b, "%llu", (unsigned long long)key->as.u);
    else if (key->kind == TNF_INT)
        tnf_buf_printf(b, "%lld", (long long)key->as.i);
    for (size_t i = 0; key->kind == TNF_STRING && i < key->n; i++) {
        if (escape && key->as.s[i] == '/')
            tnf_buf_u8(b, '\\');
        tnf_buf_u8(b, (uint8_t)key->as.s[i]);
    }
}

/* The keys joined by slashes, in the arena. */
static tnf_status join_keys(tnf_str *out, const struct walk *x, bool escape, tnf_error *e)
{
    tnf_buf b;
    tnf_buf_init(&b, &x->r->arena->alloc, x->r->limits.header_bytes);
    for (unsigned i = 0; i < x->depth; i++) {
        if (i)
            tnf_buf_u8(&b, '/');
        put_key(&b, &x->keys[i], escape);
    }
    if (x->depth == 0)
        tnf_buf_puts(&b, FX_LONE);
    tnf_status status = tnf_buf_status(&b, "a name", e);
    if (status == TNF_OK) {
        *out = (tnf_str) { tnf_arena_str(x->r->arena, b.p ? (const char *)b.p : "", b.n), b.n };
        status = out->p ? TNF_OK : tnf_arena_fail(x->r->arena, "a name", e);
    }
    tnf_buf_free(&b);
    return status;
}

/* ------------------------------------------------------------------ arrays */

static tnf_status read_dims(struct walk *x, struct array *a, tnf_error *e)
{
    fx_head h;
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_ARRAY)
        return tnf_fail(e, TNF_EFORMAT, h.at, "an array's shape is none");
    if (h.n > MAX_RANK)
        return tnf_fail(e, TNF_ELIMIT, h.at, "an array has %llu dimensions",
                        (unsigned long long)h.n);
    a->rank = (uint32_t)h.n;
    a->shape = tnf_arena_array(x->r->scratch, a->rank + 1, sizeof *a->shape);
    if (!a->shape)
        return tnf_arena_fail(x->r->scratch, "a shape", e);
    for (uint32_t i = 0; i < a->rank; i++) {
        TNF_TRY(tnf_fx_head(&x->in, &h, e));
        if (h.value.kind != TNF_UINT)
            return tnf_fail(e, TNF_EFORMAT, h.at, "a dimension is no number, or below 0");
        a->shape[i] = h.value.as.u;
    }
    if (!tnf_shape_elements(&a->elements, a->shape, a->rank))
        return tnf_fail(e, TNF_EFORMAT, a->at, "the product of an array's dimensions exceeds 2^64");
    return TNF_OK;
}

static tnf_status read_type(struct walk *x, struct array *a, tnf_error *e)
{
    fx_head h;
    const uint8_t *p;
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_STR)
        return tnf_fail(e, TNF_EFORMAT, h.at, "an array's type is no text");
    TNF_TRY(tnf_fx_bytes(&x->in, h.n, &p, e));
    a->type = tnf_fx_type((tnf_str) { (const char *)p, (size_t)h.n });
    if (!a->type)
        return tnf_fail(e, TNF_EUNSUPPORTED, h.at, "an array has the unknown type %s",
                        TNF_QUOTED(((tnf_str) { (const char *)p, (size_t)h.n })));
    if (a->type->odd)
        tnf_warn(x->r, h.at, "the type %s is taken for bfloat16, as old versions of jax wrote it",
                 a->type->name);
    return TNF_OK;
}

/* The content of an ext 1 or 3, whose head is read; the position moves behind it. */
static tnf_status read_array(struct walk *x, const fx_head *ext, struct array *a, tnf_error *e)
{
    fx_head h;
    uint64_t end = x->in.pos + ext->n, bytes;
    *a = (struct array) { .at = ext->at };
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_ARRAY || h.n != 3)
        return tnf_fail(e, TNF_EFORMAT, h.at, "an array is not [shape, type, bytes]");
    TNF_TRY(read_dims(x, a, e));
    TNF_TRY(read_type(x, a, e));
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_BIN)
        return tnf_fail(e, TNF_EFORMAT, h.at, "an array's data are no bytes");
    a->data = (fx_piece) { x->in.pos, h.n };
    if (x->in.pos + h.n != end)
        return tnf_fail(e, TNF_EFORMAT, ext->at,
                        "an array of %llu bytes has parts that end elsewhere",
                        (unsigned long long)ext->n);
    if (!tnf_ckd_mul(&bytes, a->elements, a->type->width) || bytes != h.n)
        return tnf_fail(e, TNF_EFORMAT, h.at, "%llu elements of %s are not %llu bytes",
                        (unsigned long long)a->elements, a->type->name, (unsigned long long)h.n);
    x->in.pos = end;
    return TNF_OK;
}

static tnf_status push_data(struct walk *x, uint64_t *key, fx_data d, tnf_error *e)
{
    fx_state *s = x->state;
    if (s->n == s->capacity) {
        size_t more = s->capacity ? 2 * s->capacity : 8;
        fx_data *items = tnf_arena_array(x->r->arena, more, sizeof *items);
        if (!items)
            return tnf_arena_fail(x->r->arena, "arrays", e);
        if (s->n)
            memcpy(items, s->items, s->n * sizeof *items);
        s->items = items;
        s->capacity = more;
    }
    *key = s->n;
    s->items[s->n++] = d;
    return TNF_OK;
}

static tnf_status make_attrs(const tnf_value **out, const struct walk *x, bool scalar, bool chunked,
                             tnf_error *e)
{
    tnf_attrs attrs = { .arena = x->r->arena };
    tnf_value path;
    *out = NULL;
    if (needs_path(x)) {
        TNF_TRY(keep_path(&path, x, e));
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

/* A type that has no name here: bytes that are listed under the name of the file. */
static tnf_status list_only(struct walk *x, tnf_part *part, const fx_type *type, tnf_error *e)
{
    char why[96];
    tnf_type *own = tnf_arena_alloc(x->r->arena, sizeof *own);
    if (!own)
        return tnf_arena_fail(x->r->arena, "a type", e);
    *own = (tnf_type) { type->name, TNF_U8, TNF_NUMBER_OPAQUE, 8u * type->width };
    snprintf(why, sizeof why, "elements of the type %s are not known", type->name);
    part->type = own;
    part->flags = TNF_PART_UNREADABLE;
    return tnf_unreadable_origin(x->r, &part->origin, why, e);
}

static tnf_status fill_part(struct walk *x, tnf_part *part, const struct array *a, fx_data d,
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

static tnf_status add_array(struct walk *x, const struct array *a, fx_data d, bool scalar,
                            bool chunked, tnf_error *e)
{
    tnf_part part;
    tnf_object o = {
        .shape = a->shape, .layout = &tnf_layout_dense, .parts = &part, .rank = a->rank, .nparts = 1
    };
    TNF_TRY(fill_part(x, &part, a, d, e));
    TNF_TRY(make_attrs(&o.attrs, x, scalar, chunked, e));
    TNF_TRY(join_keys(&o.name, x, false, e));
    if (tnf_catalog_find(x->r->catalog, o.name.p, o.name.n)) {
        tnf_warn(x->r, a->at, "two arrays are called %s if their keys are joined",
                 TNF_QUOTED(o.name));
        TNF_TRY(join_keys(&o.name, x, true, e));
    }
    x->tensors++;
    return tnf_add_object(x->r, &o, a->at, e);
}

/* ---------------------------------------------------------- chunked arrays */

/* "0", "1" … without zeros in front. */
static bool is_number(tnf_str s, uint64_t *out)
{
    *out = 0;
    if (s.n == 0 || s.n > 9 || (s.n > 1 && s.p[0] == '0'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        *out = 10 * *out + (uint64_t)(s.p[i] - '0');
    }
    return true;
}

static tnf_status read_key(struct walk *x, tnf_str *out, uint64_t *at, tnf_error *e)
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

/* The number of an entry: each from 0 to n - 1 once. */
static tnf_status read_number(struct walk *x, uint64_t n, uint64_t *out, tnf_error *e)
{
    tnf_str key;
    uint64_t at;
    TNF_TRY(read_key(x, &key, &at, e));
    if (!key.p || !is_number(key, out) || *out >= n)
        return tnf_fail(e, TNF_EFORMAT, at, "the pieces of an array are not numbered from 0 on");
    return TNF_OK;
}

static tnf_status read_whole_shape(struct walk *x, struct array *a, tnf_error *e)
{
    fx_head h;
    uint64_t i, seen[MAX_RANK + 1] = { 0 };
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_MAP || h.n > MAX_RANK)
        return tnf_fail(e, TNF_EFORMAT, h.at, "the shape of an array in pieces is none");
    a->rank = (uint32_t)h.n;
    a->shape = tnf_arena_array(x->r->scratch, a->rank + 1, sizeof *a->shape);
    if (!a->shape)
        return tnf_arena_fail(x->r->scratch, "a shape", e);
    for (uint32_t k = 0; k < a->rank; k++) {
        TNF_TRY(read_number(x, a->rank, &i, e));
        TNF_TRY(tnf_fx_head(&x->in, &h, e));
        if (h.value.kind != TNF_UINT || seen[i]++)
            return tnf_fail(e, TNF_EFORMAT, h.at, "a dimension is no number, or comes twice");
        a->shape[i] = h.value.as.u;
    }
    if (!tnf_shape_elements(&a->elements, a->shape, a->rank))
        return tnf_fail(e, TNF_EFORMAT, a->at, "the product of an array's dimensions exceeds 2^64");
    return TNF_OK;
}

static tnf_status read_pieces(struct walk *x, struct array *a, fx_data *d, tnf_error *e)
{
    fx_head h;
    uint64_t i;
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    if (h.kind != TNF_MSGPACK_MAP || h.n > MAX_CHUNKS)
        return tnf_fail(e, TNF_EFORMAT, h.at, "the pieces of an array are none");
    d->n = (size_t)h.n;
    fx_piece *pieces = tnf_arena_array(x->r->scratch, h.n + 1, sizeof *pieces);
    if (!pieces)
        return tnf_arena_fail(x->r->scratch, "an array", e);
    d->pieces = pieces;
    for (size_t k = 0; k < d->n; k++) {
        struct array one;
        TNF_TRY(read_number(x, d->n, &i, e));
        TNF_TRY(tnf_fx_head(&x->in, &h, e));
        if (h.kind != TNF_MSGPACK_EXT || h.ext != FX_NDARRAY || pieces[i].at)
            return tnf_fail(e, TNF_EFORMAT, h.at, "piece %llu of an array is none, or comes twice",
                            (unsigned long long)i);
        TNF_TRY(read_array(x, &h, &one, e));
        if (one.rank != 1 || (a->type && a->type != one.type))
            return tnf_fail(e, TNF_EFORMAT, h.at, "the pieces of an array are not of one kind");
        a->type = one.type;
        pieces[i] = one.data;
    }
    return TNF_OK;
}

static tnf_status add_chunked(struct walk *x, struct array *a, const fx_data *d, tnf_error *e)
{
    uint64_t sum = 0, bytes;
    if (!a->type)
        return tnf_fail(e, TNF_EFORMAT, a->at, "an array in pieces has none");
    for (size_t i = 0; i < d->n; i++)
        sum += d->pieces[i].n; /* each lies in the file for itself */
    if (!tnf_ckd_mul(&bytes, a->elements, a->type->width) || bytes != sum)
        return tnf_fail(e, TNF_EFORMAT, a->at, "%llu elements of %s are not %llu bytes",
                        (unsigned long long)a->elements, a->type->name, (unsigned long long)sum);
    a->data = d->pieces[0];
    return add_array(x, a, *d, false, true, e);
}

/* Which of the three keys is it? */
static int chunk_key(tnf_str key)
{
    static const char *const names[] = { FX_MARK, "shape", "chunks" };
    for (int i = 0; key.p && i < 3; i++)
        if (key.n == strlen(names[i]) && memcmp(key.p, names[i], key.n) == 0)
            return i;
    return -1;
}

/* Past an item and all in it. */
static tnf_status skip_item(struct walk *x, tnf_error *e)
{
    fx_head h;
    for (uint64_t items = 1; items > 0; items--) {
        TNF_TRY(tnf_fx_head(&x->in, &h, e));
        if (h.kind == TNF_MSGPACK_MAP)
            items += 2 * h.n; /* no more than there are bytes, so it cannot wrap */
        else if (h.kind == TNF_MSGPACK_ARRAY)
            items += h.n;
        else
            x->in.pos += h.n;
    }
    return TNF_OK;
}

/* Has it just these three keys, and is the mark true? What is not is data. The position stays. */
static tnf_status is_chunked(struct walk *x, const fx_head *map, bool *out, tnf_error *e)
{
    uint64_t was = x->in.pos, at;
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
    return TNF_OK;
}

/* A map of the three keys, in any order. */
static tnf_status read_chunked(struct walk *x, const fx_head *map, tnf_error *e)
{
    struct array a = { .at = map->at };
    fx_data d = { NULL, 0, 0, 0 };
    bool seen[3] = { false, false, false };
    for (int i = 0; i < 3; i++) {
        tnf_str key;
        uint64_t at;
        fx_head h;
        TNF_TRY(read_key(x, &key, &at, e));
        int which = chunk_key(key);
        if (which < 0 || seen[which])
            return tnf_fail(e, TNF_EFORMAT, at, "an array in pieces has a key that is none of it");
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

/* ------------------------------------------------------------------ leaves */

static tnf_status add_leaf(struct walk *x, uint64_t at, tnf_value value, tnf_error *e)
{
    tnf_str name;
    tnf_member *known = NULL;
    tnf_value path;
    TNF_TRY(join_keys(&name, x, false, e));
    TNF_TRY(tnf_attrs_find(&x->leaves, name.p, name.n, &known, e));
    if (known) {
        tnf_warn(x->r, at, "two values are called %s if their keys are joined", TNF_QUOTED(name));
        TNF_TRY(join_keys(&name, x, true, e));
        TNF_TRY(tnf_attrs_find(&x->leaves, name.p, name.n, &known, e));
    }
    if (known)
        return tnf_fail(e, TNF_EFORMAT, at, "the value %s comes twice", TNF_QUOTED(name));
    TNF_TRY(tnf_attrs_set(&x->leaves, name.p, name.n, value, e));
    if (needs_path(x)) {
        TNF_TRY(keep_path(&path, x, e));
        TNF_TRY(tnf_attrs_set(&x->paths, name.p, name.n, path, e));
    }
    return push_row(&x->order, x->r->arena, tnf_value_uint(x->tensors), e);
}

/* {name: value} as a value. */
static tnf_status wrap(tnf_value *out, struct walk *x, const char *name, tnf_value value,
                       tnf_error *e)
{
    tnf_attrs one = { .arena = x->r->arena };
    TNF_TRY(tnf_attrs_push(&one, name, value, e));
    *out = tnf_attrs_value(&one);
    return TNF_OK;
}

/* Text, bytes, and what is no array among the exts. */
static tnf_status read_content(struct walk *x, const fx_head *h, tnf_value *out, tnf_error *e)
{
    const uint8_t *p;
    TNF_TRY(tnf_fx_bytes(&x->in, h->n, &p, e));
    const char *copy = tnf_arena_str(x->r->arena, p, (size_t)h->n);
    if (!copy)
        return tnf_arena_fail(x->r->arena, "a value", e);
    if (h->kind == TNF_MSGPACK_STR && tnf_utf8_valid(copy, (size_t)h->n, NULL)) {
        *out = tnf_value_str(TNF_STRING, copy, (size_t)h->n);
        return TNF_OK;
    }
    tnf_value bytes = tnf_value_str(TNF_BYTES, copy, (size_t)h->n);
    if (h->kind == TNF_MSGPACK_STR)
        return wrap(out, x, "$str", bytes, e);
    if (h->kind == TNF_MSGPACK_BIN) {
        *out = bytes;
        return TNF_OK;
    }
    if (h->ext == FX_COMPLEX && h->n == 19 && p[0] == 0x92 && p[1] == 0xCB && p[10] == 0xCB) {
        fx_head re, im;
        struct row two = { NULL, 0, 0 };
        tnf_fx_parse((const uint8_t *)copy + 1, &re);
        tnf_fx_parse((const uint8_t *)copy + 10, &im);
        TNF_TRY(push_row(&two, x->r->arena, re.value, e));
        TNF_TRY(push_row(&two, x->r->arena, im.value, e));
        return wrap(out, x, "$complex", row_value(&two), e);
    }
    TNF_TRY(tnf_stricter(x->r, e, TNF_EUNSUPPORTED, h->at,
                         "a value is an ext of the unknown kind %d", h->ext));
    struct row two = { NULL, 0, 0 };
    tnf_value code = h->ext < 0 ? (tnf_value) { .kind = TNF_INT, .dtype = TNF_I64, .as.i = h->ext }
                                : tnf_value_uint((uint64_t)h->ext);
    TNF_TRY(push_row(&two, x->r->arena, code, e));
    TNF_TRY(push_row(&two, x->r->arena, bytes, e));
    return wrap(out, x, "$ext", row_value(&two), e);
}

/* -------------------------------------------------------------------- walk */

static tnf_status enter(struct walk *x, const fx_head *h, tnf_error *e)
{
    bool map = h->kind == TNF_MSGPACK_MAP, chunked = false;
    tnf_value path, empty = { .kind = (uint8_t)(map ? TNF_MAP : TNF_ARRAY) };
    if (map)
        TNF_TRY(is_chunked(x, h, &chunked, e));
    if (chunked)
        return read_chunked(x, h, e);
    if (h->n == 0)
        return x->depth == 0 && map ? TNF_OK : add_leaf(x, h->at, empty, e);
    if (!map) {
        TNF_TRY(keep_path(&path, x, e));
        TNF_TRY(push_row(&x->lists, x->r->arena, path, e));
    }
    if (x->depth == FX_DEPTH)
        return tnf_fail(e, TNF_ELIMIT, h->at, "the tree is more than %u levels deep", FX_DEPTH);
    x->frames[x->depth++] = (struct frame) { .map = map,
                                             .left = h->n,
                                             .keys = { .arena = x->r->scratch } };
    return TNF_OK;
}

static tnf_status take_item(struct walk *x, tnf_error *e)
{
    fx_head h;
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    bool container = h.kind == TNF_MSGPACK_MAP || h.kind == TNF_MSGPACK_ARRAY;
    bool array = h.kind == TNF_MSGPACK_EXT && (h.ext == FX_NDARRAY || h.ext == FX_NPSCALAR);
    if (x->depth == 0 && h.kind != TNF_MSGPACK_MAP && !array)
        return tnf_fail(e, TNF_EFORMAT, h.at, "the file is neither a tree nor an array");
    if (container)
        return enter(x, &h, e);
    if (array) {
        struct array a;
        TNF_TRY(read_array(x, &h, &a, e));
        if (h.ext == FX_NPSCALAR && a.rank > 0)
            return tnf_fail(e, TNF_EFORMAT, h.at, "a scalar has %u dimensions", a.rank);
        return add_array(x, &a, (fx_data) { &a.data, 1, 0, 0 }, h.ext == FX_NPSCALAR, false, e);
    }
    tnf_value value = h.value;
    if (h.kind == TNF_MSGPACK_STR || h.kind == TNF_MSGPACK_BIN || h.kind == TNF_MSGPACK_EXT)
        TNF_TRY(read_content(x, &h, &value, e));
    return add_leaf(x, h.at, value, e);
}

/* The key of the next item of the innermost map, or its number in an array. */
static tnf_status take_key(struct walk *x, struct frame *f, tnf_error *e)
{
    tnf_value *key = &x->keys[x->depth - 1];
    tnf_member *known = NULL;
    fx_head h;
    const uint8_t *p;
    char text[24];
    if (!f->map) {
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long)f->done);
        const char *copy = tnf_arena_str(x->r->scratch, text, (size_t)n);
        *key = tnf_value_str(TNF_STRING, copy, (size_t)n);
        return copy ? TNF_OK : tnf_arena_fail(x->r->scratch, "a key", e);
    }
    TNF_TRY(tnf_fx_head(&x->in, &h, e));
    *key = h.value;
    if (h.kind == TNF_MSGPACK_STR) {
        size_t wrong;
        TNF_TRY(tnf_fx_bytes(&x->in, h.n, &p, e));
        if (!tnf_utf8_valid((const char *)p, (size_t)h.n, &wrong))
            return tnf_fail(e, TNF_EFORMAT, x->in.pos - h.n + wrong, "a key is not UTF-8");
        const char *copy = tnf_arena_str(x->r->scratch, p, (size_t)h.n);
        if (!copy)
            return tnf_arena_fail(x->r->scratch, "a key", e);
        *key = tnf_value_str(TNF_STRING, copy, (size_t)h.n);
    } else if (h.kind != TNF_MSGPACK_UINT && h.kind != TNF_MSGPACK_INT) {
        return tnf_fail(e, TNF_EFORMAT, h.at, "a key is neither text nor a number");
    }
    tnf_buf b;
    tnf_buf_init(&b, &x->r->scratch->alloc, x->r->limits.header_bytes);
    put_key(&b, key, false);
    tnf_status status = tnf_buf_status(&b, "a key", e);
    const char *name = b.p ? (const char *)b.p : "";
    if (status == TNF_OK)
        status = tnf_attrs_find(&f->keys, name, b.n, &known, e);
    if (status == TNF_OK && known)
        status = tnf_fail(e, TNF_EFORMAT, h.at, "the key %s comes twice in one map",
                          TNF_QUOTED(((tnf_str) { name, b.n })));
    if (status == TNF_OK)
        status = tnf_attrs_set(&f->keys, name, b.n, (tnf_value) { .kind = TNF_NULL }, e);
    tnf_buf_free(&b);
    return status;
}

static tnf_status walk_tree(struct walk *x, tnf_error *e)
{
    TNF_TRY(take_item(x, e));
    while (x->depth > 0) {
        struct frame *f = &x->frames[x->depth - 1];
        if (f->left == 0) {
            x->depth--;
            continue;
        }
        TNF_TRY(take_key(x, f, e));
        f->left--;
        f->done++;
        TNF_TRY(take_item(x, e));
    }
    if (x->in.pos < x->in.size)
        return tnf_stricter(x->r, e, TNF_EFORMAT, x->in.pos, "%llu bytes follow the tree",
                            (unsigned long long)(x->in.size - x->in.pos));
    return TNF_OK;
}

/* Are there tensors behind a leaf? Then it must be told where it stood. */
static bool is_mixed(const struct walk *x)
{
    return x->order.n > 0 && x->order.items[0].as.u < x->tensors;
}

tnf_status tnf_fx_index(tnf_reader *r, tnf_error *e)
{
    struct walk *x = tnf_arena_alloc(r->scratch, sizeof *x);
    fx_state *state = tnf_arena_alloc(r->arena, sizeof *state);
    if (!x || !state)
        return tnf_arena_fail(r->arena, "the tree", e);
    x->r = r;
    x->leaves.arena = x->paths.arena = r->arena;
    r->state = x->state = state;
    r->ordered = true;
    TNF_TRY(tnf_fx_in(&x->in, r, e));
    TNF_TRY(walk_tree(x, e));
    if (x->leaves.n)
        TNF_TRY(tnf_set_attr(r, FX_LEAVES, tnf_attrs_value(&x->leaves), e));
    if (x->paths.n)
        TNF_TRY(tnf_set_attr(r, FX_PATHS, tnf_attrs_value(&x->paths), e));
    if (x->lists.n)
        TNF_TRY(tnf_set_attr(r, FX_LISTS, row_value(&x->lists), e));
    return is_mixed(x) ? tnf_set_attr(r, FX_ORDER, row_value(&x->order), e) : TNF_OK;
}

/* -------------------------------------------------------------------- data */

/* Bytes as they are in the pieces. */
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
    uint8_t *out = dst, block[4096];
    if (d->bits == 0)
        return read_plain(r, d, offset, dst, n, e);
    /* Elements from the one that the first bit is of; each takes a byte in the file. */
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
