/* SPDX-License-Identifier: MIT */
/* Attributes: in messages 0C, or in the heap of message 15h.
 *
 *   0C   1 0 name type space lengths u16, each padded to 8, then name, type, space, data
 *        2 flags (1 type shared, 2 space shared) lengths, no padding
 *        3 the same with a charset after the lengths
 *   15h  0 flags [max order u16] heap u64 B-tree u64 [B-tree by order u64]
 */
#include "formats/hdf5/h5.h"

#include <stdlib.h>
#include <string.h>

typedef struct attribute {
    tnf_str name;
    tnf_value value;
    uint64_t order;
} attribute;

typedef struct attributes {
    attribute *items; /* in h->temp */
    size_t n, capacity;
    h5_fractal heap;
    bool ordered;
} attributes;

/* ------------------------------------------------------------------ values */

static tnf_status vlen_value(tnf_value *out, h5_file *h, const uint8_t *p, tnf_error *e)
{
    tnf_str s = { "", 0 };
    uint32_t n = tnf_le32(p);
    if (n > 0) {
        TNF_TRY(tnf_h5_global(&s, h, tnf_le64(p + 4), tnf_le32(p + 12), e));
        if (n > s.n)
            return tnf_fail(e, TNF_EFORMAT, h->base + tnf_le64(p + 4),
                            "a string of %u bytes has only %zu in its heap", n, s.n);
        h->work += n;
    }
    if (h->work > h->most)
        return tnf_fail(e, TNF_ELIMIT, h->base, "the same strings are referenced too often");
    return tnf_text_value(h->r, out, (tnf_str) { s.p, n }, e);
}

/* A number of the type; floats of less than 32 bits become f32, without loss. */
static tnf_value number_value(const tnf_type *type, const uint8_t *little)
{
    double d = 0;
    if (type->number == TNF_NUMBER_BOOL)
        return tnf_value_bool(little[0] != 0);
    if (type->number != TNF_NUMBER_FLOAT || type->bits >= 32)
        return tnf_value_number(type->storage, little);
    (void)tnf_type_decode(&d, type, little, 0, 1);
    return (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F32, .as.f32 = (float)d };
}

/* No number is wider than 8 bytes, but some compilers warn without this function. */
static void copy_number(uint8_t to[8], const uint8_t *p, size_t n, bool big)
{
    for (size_t i = 0; i < n && i < 8; i++)
        to[i] = p[big ? n - 1 - i : i];
}

static tnf_status array_of(tnf_value **items, tnf_value *out, h5_file *h, uint64_t n, tnf_error *e)
{
    *items = tnf_arena_array(h->r->arena, n ? n : 1, sizeof **items);
    if (!*items)
        return tnf_arena_fail(h->r->arena, "an attribute", e);
    *out = (tnf_value) { .kind = TNF_ARRAY, .n = (size_t)n, .as.items = *items };
    return TNF_OK;
}

/* Attributes have no integers of 16 bytes. */
static bool is_bytes(const h5_type *t)
{
    bool wide = t->form == H5_DENSE && t->type->bits > 64 && t->type->number != TNF_NUMBER_COMPLEX;
    return t->form == H5_UNREAD || t->text || wide;
}

/* The value of one element, without its axes. */
static tnf_status leaf_value(tnf_value *out, h5_file *h, const h5_type *t, const uint8_t *p,
                             tnf_error *e)
{
    uint8_t number[8] = { 0 };
    tnf_value *pair;
    if (t->form == H5_VLEN_TEXT)
        return vlen_value(out, h, p, e);
    if (t->form == H5_FIXED_TEXT)
        return tnf_text_value(h->r, out, (tnf_str) { (const char *)p, tnf_h5_text_length(t, p) },
                              e);
    if (is_bytes(t)) {
        const char *copy = tnf_arena_str(h->r->arena, p, (size_t)t->size);
        if (!copy)
            return tnf_arena_fail(h->r->arena, "an attribute", e);
        *out = tnf_value_str(TNF_BYTES, copy, (size_t)t->size);
        return TNF_OK;
    }
    size_t width = t->type->bits / 8;
    if (t->type->number != TNF_NUMBER_COMPLEX) {
        copy_number(number, p, width, t->big);
        *out = number_value(t->type, number);
        return TNF_OK;
    }
    TNF_TRY(array_of(&pair, out, h, 2, e));
    for (size_t i = 0; i < 2; i++) {
        copy_number(number, p + i * width / 2, width / 2, t->big);
        pair[i] = tnf_value_number(t->type->storage, number);
    }
    return TNF_OK;
}

/* Makes nested arrays for the remaining axes. */
static tnf_status nested_value(tnf_value *out, h5_file *h, const h5_type *t, const uint64_t *dims,
                               uint32_t rank, const uint8_t **p, tnf_error *e)
{
    tnf_value *items;
    if (rank == 0) {
        uint64_t width = t->size;
        for (uint32_t i = 0; !is_bytes(t) && i < t->naxes; i++)
            width /= t->axes[i];
        TNF_TRY(leaf_value(out, h, t, *p, e));
        *p += width;
        return TNF_OK;
    }
    TNF_TRY(array_of(&items, out, h, dims[0], e));
    for (uint64_t i = 0; i < dims[0]; i++)
        TNF_TRY(nested_value(&items[i], h, t, dims + 1, rank - 1, p, e));
    if (dims[0] == 0 && t->form == H5_DENSE && t->type->bits >= 8)
        out->dtype = (uint8_t)t->type->storage;
    return TNF_OK;
}

static tnf_status read_value(tnf_value *out, h5_file *h, const h5_type *t, const h5_space *s,
                             tnf_cur *c, tnf_error *e)
{
    uint64_t dims[2 * H5_RANK], bytes;
    uint32_t rank = s->rank;
    *out = (tnf_value) { .kind = TNF_NULL };
    if (s->null)
        return TNF_OK;
    memcpy(dims, s->shape, sizeof s->shape);
    if (!is_bytes(t))
        for (uint32_t i = 0; i < t->naxes; i++)
            dims[rank++] = t->axes[i];
    if (!tnf_ckd_mul(&bytes, s->elements, t->size) || bytes > tnf_left(c))
        return tnf_h5_bad(c, "the value of an attribute runs past its message", e);
    for (uint32_t i = 0; i < s->rank; i++) /* a zero dimension must not hide many empty arrays */
        if (s->elements == 0 && s->shape[i] > 4096)
            return tnf_h5_bad(c, "an attribute without elements has a large shape", e);
    if (rank > h->r->limits.depth)
        return tnf_h5_bad(c, "an attribute has too many dimensions", e);
    if (s->elements == 0) {
        tnf_value *none;
        TNF_TRY(array_of(&none, out, h, 0, e));
        if (t->form == H5_DENSE && t->type->bits >= 8 && !is_bytes(t))
            out->dtype = (uint8_t)t->type->storage;
        return TNF_OK;
    }
    const uint8_t *p = c->p;
    return nested_value(out, h, t, dims, rank, &p, e);
}

/* -------------------------------------------------------------- attributes */

static tnf_cur cut_piece(tnf_cur *c, uint64_t n, bool padded)
{
    uint64_t at = tnf_where(c);
    const void *p = tnf_bytes(c, padded ? (n + 7) / 8 * 8 : n);
    tnf_cur piece = tnf_cur_over(p ? p : "", p ? (size_t)n : 0, at);
    piece.bad = !p;
    return piece;
}

static tnf_status add_attribute(attributes *a, h5_file *h, tnf_cur c, uint64_t order, tnf_error *e)
{
    attribute x = { .order = order };
    h5_type t;
    h5_space s;
    unsigned version = tnf_u8(&c), flags = tnf_u8(&c);
    uint64_t nname = tnf_u16(&c), ntype = tnf_u16(&c), nspace = tnf_u16(&c);
    if (version == 3)
        (void)tnf_u8(&c);
    if (c.bad || version < 1 || version > 3)
        return tnf_h5_bad(&c, "an attribute is invalid", e);
    bool padded = version == 1;
    tnf_cur name = cut_piece(&c, nname, padded), type = cut_piece(&c, ntype, padded);
    tnf_cur space = cut_piece(&c, nspace, padded);
    if (c.bad)
        return tnf_h5_bad(&c, "an attribute is truncated", e);
    const uint8_t *end = nname ? memchr(name.p, 0, (size_t)nname) : NULL;
    x.name = (tnf_str) { (const char *)name.p, end ? (size_t)(end - name.p) : (size_t)nname };
    if (version > 1 && flags & 1u)
        TNF_TRY(tnf_h5_shared(&type, h, &type, H5_DATATYPE, e));
    if (version > 1 && flags & 2u)
        TNF_TRY(tnf_h5_shared(&space, h, &space, H5_DATASPACE, e));
    TNF_TRY(tnf_h5_type(&t, h, &type, e));
    TNF_TRY(tnf_h5_space(&s, &space, e));
    TNF_TRY(read_value(&x.value, h, &t, &s, &c, e));
    attribute *items = tnf_arena_grow(&h->temp, a->items, a->n, &a->capacity, sizeof *items, 8);
    if (!items)
        return tnf_arena_fail(&h->temp, "attributes", e);
    a->items = items;
    a->items[a->n++] = x;
    return TNF_OK;
}

static tnf_status take_attribute(void *ctx, h5_file *h, tnf_cur *record, tnf_error *e)
{
    attributes *a = ctx;
    tnf_cur c, id = *record;
    if (!tnf_bytes(record, 9))
        return tnf_h5_bad(record, "a record of attributes is truncated", e);
    bool shared = record->p[-1] & 2u;
    uint64_t order = tnf_u32(record);
    if (shared)
        return tnf_fail(e, TNF_EUNSUPPORTED, tnf_where(record),
                        "an attribute is in a heap of shared messages, which is not supported");
    TNF_TRY(tnf_h5_object(&c, h, &a->heap, id, e));
    return add_attribute(a, h, c, order, e);
}

static tnf_status read_info(attributes *a, h5_file *h, tnf_cur c, tnf_error *e)
{
    unsigned version = tnf_u8(&c), flags = tnf_u8(&c);
    if (flags & 1u)
        (void)tnf_u16(&c);
    uint64_t heap = tnf_u64(&c), tree = tnf_u64(&c);
    if (c.bad || version != 0)
        return tnf_h5_bad(&c, "the description of attributes is invalid", e);
    a->ordered = flags & 1u;
    if (heap == H5_NOWHERE || tree == H5_NOWHERE)
        return TNF_OK;
    TNF_TRY(tnf_h5_fractal(&a->heap, h, heap, e));
    return tnf_h5_records(h, tree, 8, take_attribute, a, e);
}

static int by_name(const void *a, const void *b)
{
    return tnf_str_compare(((const attribute *)a)->name, ((const attribute *)b)->name);
}

static int by_order(const void *a, const void *b)
{
    uint64_t x = ((const attribute *)a)->order, y = ((const attribute *)b)->order;
    return x != y ? (x < y ? -1 : 1) : by_name(a, b);
}

tnf_status tnf_h5_attrs(tnf_attrs *out, h5_file *h, const h5_header *x, tnf_error *e)
{
    attributes a = { 0 };
    *out = (tnf_attrs) { .arena = h->r->arena };
    for (size_t i = 0; i < x->n; i++) {
        const h5_message *m = &x->items[i];
        tnf_cur body = m->body;
        if (m->type == H5_ATTR_INFO)
            TNF_TRY(read_info(&a, h, m->body, e));
        if (m->type != H5_ATTRIBUTE)
            continue;
        TNF_TRY(tnf_h5_body(&body, h, m, e));
        TNF_TRY(add_attribute(&a, h, body, m->order, e));
    }
    if (a.n > 1)
        qsort(a.items, a.n, sizeof *a.items, a.ordered && x->ordered ? by_order : by_name);
    for (size_t i = 0; i < a.n; i++)
        TNF_TRY(tnf_attrs_set(out, a.items[i].name.p, a.items[i].name.n, a.items[i].value, e));
    return TNF_OK;
}
