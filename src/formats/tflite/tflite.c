/* SPDX-License-Identifier: MIT */
/* TFLite and LiteRT: a FlatBuffer `Model`, whose constants are the tensors.
 *
 *   u32 root   "TFL3"
 *   Model     0 version  2 subgraphs  3 description  4 buffers  6 metadata
 *   SubGraph  0 tensors
 *   Tensor    0 shape  1 type  2 buffer  3 name  4 quantization  6 sparsity  8 has_rank
 *   Buffer    0 data   or  1 offset  2 size   (of the file: models of more than 2 GB)
 *
 * A tensor with an empty buffer is computed when the model runs: it is counted but not listed. The
 * reader reads only the fields of the FlatBuffer that lead to tensors. */
#include "format.h"
#include "wire/flatbuffer.h"

#include <stdio.h>
#include <string.h>

#define MAX_MODEL   ((uint64_t)2 << 30)
#define MAX_RANK    64u
#define STRING      5u

#define VERSION     "tflite.version"
#define DESCRIPTION "tflite.description"
#define ACTIVATIONS "tflite.activations"

static const char *const types[] = { "f32", "f16", "i32", "u8",  "i64",  "",    "bool",
                                     "i16", "c64", "i8",  "f64", "c128", "u64", "",
                                     "",    "u32", "u16", "i4",  "bf16", "i2",  "u4" };
#define NTYPES (sizeof types / sizeof *types)

static int probe_tflite(const tnf_probe *p)
{
    if (p->nhead >= 8 && memcmp(p->head + 4, "TFL3", 4) == 0)
        return TNF_PROBE_MAGIC;
    return strcmp(p->ext, "tflite") == 0 ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
}

/* State while the model is read. */
typedef struct reading {
    tnf_reader *r;
    tnf_flat flat;
    tnf_flat_vector buffers;
    uint64_t *firsts; /* per buffer: 1 + the first tensor that uses it */
    uint64_t activations;
    tnf_error *e;
} reading;

/* Bytes of a buffer, in the file. */
typedef struct place {
    uint64_t offset, n;
} place;

static tnf_status find_buffer(place *out, const reading *g, uint64_t number, uint64_t at)
{
    tnf_flat_table b;
    tnf_flat_vector data;
    uint64_t offset = 0, size = 0;
    *out = (place) { 0, 0 };
    if (number >= g->buffers.n)
        return tnf_fail(g->e, TNF_EFORMAT, at, "buffer %llu does not exist; there are %u",
                        (unsigned long long)number, g->buffers.n);
    TNF_TRY(tnf_flat_item(&b, &g->buffers, (uint32_t)number, g->e));
    TNF_TRY(tnf_flat_vector_of(&data, &b, 0, 1, g->e));
    TNF_TRY(tnf_flat_number(&offset, &b, 1, 8, g->e));
    TNF_TRY(tnf_flat_number(&size, &b, 2, 8, g->e));
    if (data.n)
        *out = (place) { data.at, data.n };
    else if (offset > 1)
        *out = (place) { offset, size };
    if (out->offset > g->r->source->size || out->n > g->r->source->size - out->offset)
        return tnf_fail(g->e, TNF_ETRUNCATED, g->r->source->size,
                        "buffer %llu ends at byte %llu, beyond the file (cut short?)",
                        (unsigned long long)number, (unsigned long long)(out->offset + out->n));
    return TNF_OK;
}

/* ------------------------------------------------------------- attributes */

static tnf_status push_floats(tnf_attrs *m, const reading *g, const char *key,
                              const tnf_flat_vector *v)
{
    tnf_value *items = tnf_arena_array(g->r->arena, v->n, sizeof *items);
    uint8_t bytes[8];
    if (!items)
        return tnf_arena_fail(g->r->arena, "attributes", g->e);
    for (uint32_t i = 0; i < v->n; i++) {
        TNF_TRY(tnf_flat_read(v->in, v->at + 4 * (uint64_t)i, bytes, 4, g->e));
        float single;
        uint32_t bits = tnf_le32(bytes);
        memcpy(&single, &bits, sizeof single);
        items[i] = (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = (double)single };
    }
    tnf_value array = { .kind = TNF_ARRAY, .n = v->n, .as.items = items };
    return tnf_attrs_push(m, key, array, g->e);
}

static tnf_status push_zeros(tnf_attrs *m, const reading *g, const tnf_flat_vector *v)
{
    tnf_value *items = tnf_arena_array(g->r->arena, v->n, sizeof *items);
    uint8_t bytes[8];
    if (!items)
        return tnf_arena_fail(g->r->arena, "attributes", g->e);
    for (uint32_t i = 0; i < v->n; i++) {
        TNF_TRY(tnf_flat_read(v->in, v->at + 8 * (uint64_t)i, bytes, 8, g->e));
        items[i] = tnf_value_number(TNF_I64, bytes);
    }
    tnf_value array = { .kind = TNF_ARRAY, .n = v->n, .as.items = items };
    return tnf_attrs_push(m, "tflite.zero_point", array, g->e);
}

static tnf_status read_quantization(tnf_attrs *m, const reading *g, const tnf_flat_table *tensor)
{
    tnf_flat_table q;
    tnf_flat_vector least, most, scale, zero;
    uint64_t axis = 0;
    TNF_TRY(tnf_flat_inner(&q, tensor, 4, g->e));
    TNF_TRY(tnf_flat_vector_of(&least, &q, 0, 4, g->e));
    TNF_TRY(tnf_flat_vector_of(&most, &q, 1, 4, g->e));
    TNF_TRY(tnf_flat_vector_of(&scale, &q, 2, 4, g->e));
    TNF_TRY(tnf_flat_vector_of(&zero, &q, 3, 8, g->e));
    TNF_TRY(tnf_flat_number(&axis, &q, 6, 4, g->e));
    if (least.n)
        TNF_TRY(push_floats(m, g, "tflite.min", &least));
    if (most.n)
        TNF_TRY(push_floats(m, g, "tflite.max", &most));
    if (scale.n == 0)
        return TNF_OK;
    TNF_TRY(push_floats(m, g, "tflite.scale", &scale));
    if (zero.n)
        TNF_TRY(push_zeros(m, g, &zero));
    tnf_value number = { .kind = TNF_INT, .dtype = TNF_I32, .as.i = (int32_t)(uint32_t)axis };
    return tnf_attrs_push(m, "tflite.axis", number, g->e);
}

/* ---------------------------------------------------------------- tensors */

static tnf_status read_shape(tnf_object *o, const reading *g, const tnf_flat_table *t,
                             uint64_t *shape)
{
    tnf_flat_vector v;
    TNF_TRY(tnf_flat_vector_of(&v, t, 0, 4, g->e));
    if (v.n > MAX_RANK)
        return tnf_fail(g->e, TNF_ELIMIT, t->at, "a tensor has %u dimensions; the limit is %u", v.n,
                        MAX_RANK);
    for (uint32_t i = 0; i < v.n; i++) {
        uint8_t bytes[4];
        TNF_TRY(tnf_flat_read(v.in, v.at + 4 * (uint64_t)i, bytes, 4, g->e));
        int32_t dim = (int32_t)tnf_le32(bytes);
        if (dim < 0)
            return tnf_fail(g->e, TNF_EFORMAT, v.at + 4 * (uint64_t)i,
                            "a dimension of a constant is %d; it must not be negative", dim);
        shape[i] = (uint64_t)dim;
    }
    o->shape = shape;
    o->rank = v.n;
    return TNF_OK;
}

/* Makes the name of a tensor. If it is empty or taken, the positions of graph and tensor are
 * appended. */
static tnf_status make_name(tnf_str *out, const reading *g, tnf_str name, uint32_t graph,
                            uint32_t i)
{
    size_t room = name.n + 32;
    bool taken = name.n == 0 || tnf_catalog_find(g->r->catalog, name.p, name.n);
    char *text = tnf_arena_raw(g->r->arena, room);
    if (!text)
        return tnf_arena_fail(g->r->arena, "a name", g->e);
    memcpy(text, name.p, name.n);
    *out = (tnf_str) { text, name.n };
    if (taken)
        out->n += (size_t)snprintf(text + name.n, 32, "#%u.%u", graph, i);
    return TNF_OK;
}

static tnf_status list_only(tnf_part *part, const reading *g, uint64_t type)
{
    char name[24], why[80];
    tnf_type *own = tnf_arena_alloc(g->r->arena, sizeof *own);
    snprintf(name, sizeof name, "tflite.%llu", (unsigned long long)type);
    const char *kept = own ? tnf_arena_str(g->r->arena, name, strlen(name)) : NULL;
    if (!kept)
        return tnf_arena_fail(g->r->arena, "a type", g->e);
    *own = (tnf_type) { kept, TNF_U8, TNF_NUMBER_OPAQUE, 0 };
    snprintf(why, sizeof why, "elements of the type %llu are not supported",
             (unsigned long long)type);
    part->type = own;
    part->flags |= TNF_PART_UNREADABLE;
    part->payload = TNF_OPAQUE;
    return tnf_unreadable_origin(g->r, &part->origin, why, g->e);
}

/* i32 count, i32 start of each and end of the last, relative to the buffer; bytes. */
static tnf_status add_strings(const reading *g, tnf_object *o, const place *at)
{
    tnf_reader *r = g->r;
    tnf_cur c;
    tnf_part parts[2];
    TNF_TRY(tnf_read_range(r, "strings", at->offset, at->n, at->n, &c, g->e));
    const uint8_t *start = c.p;
    uint64_t n = tnf_u32(&c), elements;
    if (c.bad || n > tnf_left(&c) / 4 || tnf_left(&c) / 4 - n < 1)
        return tnf_fail(g->e, TNF_EFORMAT, at->offset, "a tensor of %llu strings ends too early",
                        (unsigned long long)n);
    if (!tnf_shape_elements(&elements, o->shape, o->rank) || elements != n)
        return tnf_fail(g->e, TNF_EFORMAT, at->offset, "the shape does not have %llu strings",
                        (unsigned long long)n);
    uint64_t *ends = tnf_arena_array(r->arena, n + 1, sizeof *ends), first = 0;
    if (!ends)
        return tnf_arena_fail(r->arena, "strings", g->e);
    for (uint64_t i = 0; i <= n; i++) {
        uint64_t end = tnf_u32(&c);
        first = i == 0 ? end : first;
        if (end > at->n || end < first || (i > 0 && end - first < ends[i - 1]))
            return tnf_fail(g->e, TNF_EFORMAT, at->offset + 4 + 4 * i,
                            "a string ends before its beginning");
        ends[i] = end - first;
    }
    char *text = tnf_arena_str(r->arena, start + first, (size_t)ends[n]);
    if (!text)
        return tnf_arena_fail(r->arena, "strings", g->e);
    uint64_t total = ends[n];
    tnf_swap_le(ends, n + 1, sizeof *ends);
    parts[0] = (tnf_part) { .role = "offsets", .type = tnf_type_of(TNF_U64), .memory = ends };
    parts[1] = (tnf_part) { .role = "bytes", .type = tnf_type_of(TNF_U8), .memory = text };
    parts[0].stored = parts[0].nbytes = 8 * (n + 1);
    parts[1].stored = parts[1].nbytes = total;
    parts[0].payload = parts[1].payload = TNF_MEMORY;
    return tnf_add_parts(r, o, tnf_layout_named("strings/1", 9), parts, 2, at->offset, g->e);
}

static tnf_status add_dense(const reading *g, const tnf_object *o, uint64_t type, bool sparse,
                            const place *at)
{
    tnf_part part = { .role = "data", .offset = at->offset, .payload = TNF_AT };
    uint64_t elements, bytes;
    part.stored = part.nbytes = at->n;
    const tnf_layout *layout = &tnf_layout_dense;
    if (sparse) {
        layout = tnf_layout_unknown(g->r->arena, "tflite.sparse", 13);
        if (!layout)
            return tnf_arena_fail(g->r->arena, "a layout", g->e);
    }
    if (type >= NTYPES || !types[type][0]) {
        TNF_TRY(list_only(&part, g, type));
        return tnf_add_parts(g->r, o, layout, &part, 1, at->offset, g->e);
    }
    part.type = tnf_type_named(types[type]);
    if (sparse)
        part.type = tnf_type_of(TNF_U8);
    else if (!tnf_shape_elements(&elements, o->shape, o->rank) ||
             !tnf_type_bytes(&bytes, part.type, elements) || bytes != at->n)
        return tnf_fail(g->e, TNF_EFORMAT, at->offset,
                        "%s has %llu bytes, which does not match its shape and type",
                        TNF_QUOTED(o->name), (unsigned long long)at->n);
    return tnf_add_parts(g->r, o, layout, &part, 1, at->offset, g->e);
}

static tnf_status make_attrs(tnf_object *o, reading *g, const tnf_flat_table *t, uint64_t buffer)
{
    tnf_attrs m = { .arena = g->r->arena };
    tnf_value *map = tnf_arena_alloc(g->r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(g->r->arena, "attributes", g->e);
    TNF_TRY(read_quantization(&m, g, t));
    if (g->firsts[buffer]) {
        tnf_str first = g->r->catalog->objects[g->firsts[buffer] - 1].name;
        TNF_TRY(
            tnf_attrs_push(&m, "tflite.alias", tnf_value_str(TNF_STRING, first.p, first.n), g->e));
    } else {
        g->firsts[buffer] = g->r->catalog->n + 1;
    }
    *map = tnf_attrs_value(&m);
    o->attrs = m.n ? map : NULL;
    return TNF_OK;
}

static tnf_status add_tensor(reading *g, const tnf_flat_table *t, uint32_t graph, uint32_t i)
{
    uint64_t type = 0, buffer = 0, shape[MAX_RANK];
    tnf_object o = { 0 };
    tnf_flat_table sparsity;
    tnf_str name;
    place at;
    TNF_TRY(tnf_flat_number(&buffer, t, 2, 4, g->e));
    TNF_TRY(find_buffer(&at, g, buffer, t->at));
    if (at.n == 0) {
        g->activations++;
        return TNF_OK;
    }
    TNF_TRY(tnf_flat_number(&type, t, 1, 1, g->e));
    TNF_TRY(tnf_flat_inner(&sparsity, t, 6, g->e));
    TNF_TRY(read_shape(&o, g, t, shape));
    TNF_TRY(tnf_flat_string(&name, t, 3, g->e));
    TNF_TRY(make_name(&o.name, g, name, graph, i));
    TNF_TRY(make_attrs(&o, g, t, buffer));
    return type == STRING ? add_strings(g, &o, &at) : add_dense(g, &o, type, sparsity.at != 0, &at);
}

/* ------------------------------------------------------------------ model */

static tnf_status add_graphs(reading *g, const tnf_flat_table *model)
{
    tnf_flat_vector graphs, tensors;
    tnf_flat_table graph, tensor;
    TNF_TRY(tnf_flat_vector_of(&graphs, model, 2, 4, g->e));
    for (uint32_t k = 0; k < graphs.n; k++) {
        TNF_TRY(tnf_flat_item(&graph, &graphs, k, g->e));
        TNF_TRY(tnf_flat_vector_of(&tensors, &graph, 0, 4, g->e));
        for (uint32_t i = 0; i < tensors.n; i++) {
            TNF_TRY(tnf_flat_item(&tensor, &tensors, i, g->e));
            TNF_TRY(add_tensor(g, &tensor, k, i));
        }
    }
    return TNF_OK;
}

static tnf_status add_metadata(const reading *g, const tnf_flat_table *model)
{
    tnf_flat_vector all;
    tnf_flat_table item;
    char key[160];
    TNF_TRY(tnf_flat_vector_of(&all, model, 6, 4, g->e));
    for (uint32_t i = 0; i < all.n; i++) {
        uint64_t buffer = 0;
        tnf_str name;
        place at;
        TNF_TRY(tnf_flat_item(&item, &all, i, g->e));
        TNF_TRY(tnf_flat_string(&name, &item, 0, g->e));
        TNF_TRY(tnf_flat_number(&buffer, &item, 1, 4, g->e));
        TNF_TRY(find_buffer(&at, g, buffer, item.at));
        if (at.n == 0 || name.n > 100 || !tnf_utf8_valid(NULL, name.p, name.n) ||
            memchr(name.p, 0, name.n))
            continue;
        snprintf(key, sizeof key, "tflite.metadata.%.*s", (int)name.n, name.p);
        TNF_TRY(tnf_add_extra(g->r, key, at.offset, at.n, g->e));
    }
    return TNF_OK;
}

static tnf_status set_attrs(const reading *g, uint64_t version, tnf_str description)
{
    TNF_TRY(tnf_set_attr(g->r, VERSION, tnf_value_uint(version), g->e));
    if (description.n) {
        tnf_value text;
        TNF_TRY(tnf_text_value(g->r, &text, description, g->e));
        TNF_TRY(tnf_set_attr(g->r, DESCRIPTION, text, g->e));
    }
    return g->activations ? tnf_set_attr(g->r, ACTIVATIONS, tnf_value_uint(g->activations), g->e)
                          : TNF_OK;
}

static tnf_status index_tflite(tnf_reader *r, tnf_error *e)
{
    reading g = { .r = r, .e = e };
    uint64_t size = r->source->size < MAX_MODEL ? r->source->size : MAX_MODEL, version = 0;
    tnf_flat_table model;
    tnf_str description;
    uint8_t mark[4];
    if (size < 8)
        return tnf_fail(e, TNF_ETRUNCATED, size, "the file has %llu bytes, too few for a model",
                        (unsigned long long)size);
    g.flat = (tnf_flat) {
        .fetch = tnf_source_fetch, .ctx = (void *)(uintptr_t)r->source, .n = size, .arena = r->arena
    };
    g.flat.limit = r->limits.header_bytes;
    g.flat.block = tnf_arena_raw(r->scratch, TNF_FLAT_BLOCK);
    if (!g.flat.block)
        return tnf_arena_fail(r->scratch, "the model", e);
    TNF_TRY(tnf_flat_read(&g.flat, 4, mark, sizeof mark, e));
    if (memcmp(mark, "TFL3", 4) != 0)
        return tnf_fail(e, TNF_EFORMAT, 4, "this is not a TFLite model: TFL3 is missing");
    TNF_TRY(tnf_flat_root(&model, &g.flat, e));
    TNF_TRY(tnf_flat_number(&version, &model, 0, 4, e));
    TNF_TRY(tnf_flat_string(&description, &model, 3, e));
    TNF_TRY(tnf_flat_vector_of(&g.buffers, &model, 4, 4, e));
    g.firsts = tnf_arena_array(r->scratch, (uint64_t)g.buffers.n + 1, sizeof *g.firsts);
    if (!g.firsts)
        return tnf_arena_fail(r->scratch, "buffers", e);
    char text[16];
    snprintf(text, sizeof text, "%u", (unsigned)version);
    r->version = tnf_arena_str(r->arena, text, strlen(text));
    TNF_TRY(add_graphs(&g, &model));
    TNF_TRY(add_metadata(&g, &model));
    return set_attrs(&g, version, description);
}

const tnf_format tnf_format_tflite = {
    .name = "tflite",
    .title = "TFLite, LiteRT (.tflite)",
    .extensions = "tflite",
    .family = "tflite",
    .caps = TNF_CAN_READ,
    .can = { .derived = VERSION " " ACTIVATIONS },
    .probe = probe_tflite,
    .index = index_tflite,
};
