/* SPDX-License-Identifier: MIT */
/* A dataset becomes a tensor: numbers dense, text as strings/1. Other types are listed by name. */
#include "formats/hdf5/h5.h"

#include <stdio.h>
#include <string.h>

#define BOMB_BYTES ((uint64_t)4 << 30) /* a dataset that declares more than this, and */
#define BOMB_TIMES 1000u               /* more than this times its stored size, is not read */
#define TEXT_TIMES 1024u

typedef struct dataset {
    h5_type type;
    h5_space space;
    h5_data *data;
    tnf_attrs own; /* attributes in the file */
    const char *why;
    tnf_str name;
    uint64_t at;
} dataset;

/* ------------------------------------------------------------------- attrs */

/* Recognises Keras' bfloat16: two bytes, and an attribute that says so. */
static void recognise_bfloat16(dataset *x)
{
    tnf_value own = tnf_attrs_value(&x->own);
    bool told = tnf_value_is(tnf_value_get(&own, "dtype"), "bfloat16");
    if (!told || !x->type.opaque || x->type.size != 2 || x->type.naxes != 1)
        return;
    x->type.type = tnf_type_of(TNF_BF16);
    x->type.naxes = 0;
    x->type.text = NULL;
}

static tnf_status make_attrs(const tnf_value **out, h5_file *h, const dataset *x, tnf_error *e)
{
    tnf_attrs all = { .arena = h->r->arena };
    const h5_type *t = &x->type;
    *out = NULL;
    if (x->own.n)
        TNF_TRY(tnf_attrs_push(&all, H5_ATTRS, tnf_attrs_value(&x->own), e));
    if (t->form == H5_FIXED_TEXT)
        TNF_TRY(tnf_attrs_push(&all, H5_WIDTH, tnf_value_uint(t->size), e));
    if (t->text)
        TNF_TRY(tnf_attrs_push(&all, H5_TYPE, tnf_value_string(t->text), e));
    if (t->values)
        TNF_TRY(tnf_attrs_push(&all, H5_ENUM, *t->values, e));
    if (all.n == 0)
        return TNF_OK;
    tnf_value *map = tnf_arena_alloc(h->r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(h->r->arena, "attributes", e);
    *map = tnf_attrs_value(&all);
    *out = map;
    return TNF_OK;
}

/* -------------------------------------------------------------------- text */

typedef struct texts {
    uint64_t *ends;
    char *bytes;
    uint64_t n;
} texts;

/* Loads all strings into memory: their lengths are needed in any case. */
static tnf_status gather_text(texts *out, h5_file *h, const dataset *x, const uint8_t *raw,
                              tnf_error *e)
{
    const h5_type *t = &x->type;
    uint64_t n = x->space.elements, total = 0;
    out->ends = tnf_arena_array(h->r->arena, n + 1, sizeof *out->ends);
    if (!out->ends)
        return tnf_arena_fail(h->r->arena, "strings", e);
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *p = raw + i * t->size;
        total += t->form == H5_VLEN_TEXT ? tnf_le32(p) : tnf_h5_text_length(t, p);
        out->ends[i + 1] = total;
    }
    h->work += total;
    if (h->work > h->most)
        return tnf_fail(e, TNF_ELIMIT, x->at, "the same strings are referenced too often");
    out->bytes = tnf_arena_raw(h->r->arena, total + 1);
    if (!out->bytes)
        return tnf_arena_fail(h->r->arena, "strings", e);
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *p = raw + i * t->size;
        size_t length = (size_t)(out->ends[i + 1] - out->ends[i]);
        tnf_str s = { (const char *)p, length };
        if (length && t->form == H5_VLEN_TEXT) {
            TNF_TRY(tnf_h5_global(&s, h, tnf_le64(p + 4), tnf_le32(p + 12), e));
            if (s.n < length)
                return tnf_fail(e, TNF_EFORMAT, x->at,
                                "a string of %zu bytes has only %zu in its heap", length, s.n);
        }
        if (length)
            memcpy(out->bytes + out->ends[i], s.p, length);
    }
    for (uint64_t i = 0; i <= n; i++) { /* the caller expects little-endian */
        uint64_t end = out->ends[i];
        tnf_put_le64(&out->ends[i], end);
    }
    out->n = total;
    return TNF_OK;
}

static tnf_status read_text(texts *out, h5_file *h, dataset *x, tnf_error *e)
{
    uint64_t bytes = x->data->nbytes, size = h->end - h->base;
    if (bytes > h->r->limits.header_bytes || bytes / TEXT_TIMES > size) {
        x->why = "there are more strings than fit into the limit of memory";
        return TNF_OK;
    }
    h->work += bytes;
    uint8_t *raw = tnf_arena_raw(&h->temp, bytes + 1);
    if (!raw || h->work > h->most)
        return raw ? tnf_fail(e, TNF_ELIMIT, x->at, "the same strings are referenced too often")
                   : tnf_arena_fail(&h->temp, "strings", e);
    TNF_TRY(tnf_h5_raw(h->r, x->data, 0, raw, (size_t)bytes, e));
    return gather_text(out, h, x, raw, e);
}

static tnf_status set_unreadable(tnf_part *part, h5_file *h, const char *why, tnf_error *e)
{
    part->payload = TNF_OPAQUE;
    part->flags = TNF_PART_UNREADABLE;
    return tnf_unreadable_origin(h->r, &part->origin, why, e);
}

static tnf_status add_text(h5_file *h, dataset *x, const tnf_object *o, tnf_error *e)
{
    texts t = { 0 };
    tnf_part parts[2] = {
        { .role = "offsets", .type = tnf_type_of(TNF_U64), .payload = TNF_MEMORY },
        { .role = "bytes", .type = tnf_type_of(TNF_U8), .payload = TNF_MEMORY },
    };
    if (!x->why)
        TNF_TRY(read_text(&t, h, x, e));
    parts[0].stored = parts[0].nbytes = 8 * (x->space.elements + 1);
    parts[1].stored = parts[1].nbytes = t.n;
    parts[0].memory = t.ends;
    parts[1].memory = t.bytes;
    for (int i = 0; x->why && i < 2; i++)
        TNF_TRY(set_unreadable(&parts[i], h, x->why, e));
    return tnf_add_parts(h->r, o, tnf_layout_named("strings/1", 9), parts, 2, x->at, e);
}

/* ------------------------------------------------------------------ numbers */

static tnf_status push_data(uint64_t *key, h5_file *h, h5_data *d, tnf_error *e)
{
    h5_state *s = h->r->state;
    h5_data **items = tnf_arena_grow(h->r->arena, s->items, s->n, &s->capacity, sizeof *items, 8);
    if (!items)
        return tnf_arena_fail(h->r->arena, "tensors", e);
    s->items = items;
    *key = s->n;
    s->items[s->n++] = d;
    return TNF_OK;
}

/* Lists a dataset of an unsupported type under HDF5's name of the type. */
static tnf_status list_only(tnf_part *part, h5_file *h, const dataset *x, tnf_error *e)
{
    char why[96];
    tnf_type *own = tnf_arena_alloc(h->r->arena, sizeof *own);
    if (!own)
        return tnf_arena_fail(h->r->arena, "a type", e);
    *own = (tnf_type) { x->type.name, TNF_U8, TNF_NUMBER_OPAQUE, (uint32_t)x->type.size * 8 };
    snprintf(why, sizeof why, "elements of the type %s are not supported", x->type.name);
    part->type = own;
    return set_unreadable(part, h, why, e);
}

/* Returns the reason if a dataset declares much data and stores almost none: it is probably a bomb,
 * since weights do not compress that well. */
static const char *is_bomb(const h5_file *h, const h5_data *d)
{
    uint64_t allowed = h->r->limits.decoded_bytes;
    if (d->form == H5_PLACED || d->nbytes <= BOMB_BYTES || d->nbytes / BOMB_TIMES <= d->stored)
        return NULL;
    return allowed && d->nbytes <= allowed
               ? NULL
               : "it declares more than 4 GiB, 1000 times what is stored: read slices, or raise "
                 "the limit 'decoded_bytes' if you trust the file";
}

static tnf_status add_numbers(h5_file *h, dataset *x, const tnf_object *o, tnf_error *e)
{
    const h5_data *d = x->data;
    const h5_type *t = &x->type;
    tnf_part part = { .role = "data", .type = t->type, .payload = TNF_OPAQUE };
    const char *bomb = is_bomb(h, d);
    part.nbytes = part.stored = d->nbytes;
    if (t->form == H5_UNREAD) {
        TNF_TRY(list_only(&part, h, x, e));
    } else if (x->why) {
        TNF_TRY(set_unreadable(&part, h, x->why, e));
    } else if (bomb) {
        part.flags = TNF_PART_UNREADABLE;
        TNF_TRY(tnf_slices_origin(h->r, &part.origin, bomb, e));
        TNF_TRY(push_data(&part.offset, h, x->data, e));
    } else if (d->nbytes == 0) {
        part.payload = TNF_MEMORY;
        part.memory = "";
    } else if (d->form == H5_PLACED) {
        part.payload = TNF_AT;
        part.offset = d->at;
        part.flags = t->big && tnf_type_swap(t->type) > 1 ? TNF_PART_BIG_ENDIAN : 0;
    } else {
        part.stored = d->stored;
        TNF_TRY(push_data(&part.offset, h, x->data, e));
    }
    return tnf_add_parts(h->r, o, &tnf_layout_dense, &part, 1, x->at, e);
}

/* --------------------------------------------------------------------- all */

static tnf_status read_head(dataset *x, h5_file *h, const h5_header *header, tnf_error *e)
{
    tnf_cur c;
    const h5_message *type = tnf_h5_find(header, H5_DATATYPE);
    const h5_message *space = tnf_h5_find(header, H5_DATASPACE);
    if (!type || !space)
        return tnf_fail(e, TNF_EFORMAT, header->at, "a dataset has no type or no shape");
    TNF_TRY(tnf_h5_body(&c, h, type, e));
    TNF_TRY(tnf_h5_type(&x->type, h, &c, e));
    TNF_TRY(tnf_h5_body(&c, h, space, e));
    TNF_TRY(tnf_h5_space(&x->space, &c, e));
    TNF_TRY(tnf_h5_attrs(&x->own, h, header, e));
    recognise_bfloat16(x);
    return TNF_OK;
}

static const char *type_name(const h5_type *t)
{
    return t->form == H5_DENSE    ? t->text ? t->text : t->type->id
           : t->form == H5_UNREAD ? t->name
                                  : "string";
}

/* A null dataspace becomes an attribute. */
static tnf_status add_null(h5_file *h, const dataset *x, tnf_error *e)
{
    const char *name = type_name(&x->type);
    return tnf_attrs_set(&h->nulls, x->name.p, x->name.n, tnf_value_string(name), e);
}

tnf_status tnf_h5_dataset(h5_file *h, const h5_header *header, tnf_str name, bool *own,
                          tnf_error *e)
{
    uint64_t shape[2 * H5_RANK];
    dataset x = { .name = name, .at = header->at };
    *own = true;
    TNF_TRY(read_head(&x, h, header, e));
    if (x.space.null)
        return add_null(h, &x, e);
    h5_data *d = tnf_arena_alloc(h->r->arena, sizeof *d);
    uint64_t *kept = tnf_arena_array(h->r->arena, x.space.rank + 1, sizeof *kept);
    if (!d || !kept)
        return tnf_arena_fail(h->r->arena, "a dataset", e);
    memcpy(kept, x.space.shape, x.space.rank * sizeof *kept);
    d->rank = x.space.rank;
    d->shape = kept;
    d->width = x.type.size;
    if (x.type.form == H5_DENSE && x.type.big && tnf_type_swap(x.type.type) > 1)
        d->swap = (uint32_t)tnf_type_swap(x.type.type);
    if (!tnf_ckd_mul(&d->nbytes, x.space.elements, d->width))
        return tnf_fail(e, TNF_EFORMAT, x.at, "%s has more than 2^64 bytes", TNF_QUOTED(name));
    *own = false;
    x.data = d;
    TNF_TRY(tnf_h5_layout(d, h, header, &x.space, &x.why, e));
    tnf_object o = { .name = name, .shape = shape, .rank = x.space.rank };
    memcpy(shape, x.space.shape, sizeof x.space.shape);
    for (uint32_t i = 0; x.type.form == H5_DENSE && i < x.type.naxes; i++)
        shape[o.rank++] = x.type.axes[i];
    TNF_TRY(make_attrs(&o.attrs, h, &x, e));
    bool text = x.type.form == H5_FIXED_TEXT || x.type.form == H5_VLEN_TEXT;
    return text ? add_text(h, &x, &o, e) : add_numbers(h, &x, &o, e);
}
