/* SPDX-License-Identifier: MIT */
/* ONNX: a protobuf message, ModelProto, without a magic.
 *
 *   ModelProto    1 ir_version · 2 producer_name · 3 producer_version · 4 domain · 5 model_version
 *                 6 doc_string · 7 graph · 8 opset_import {1 domain, 2 version}
 *                 14 metadata_props {1 key, 2 value} · 20 training_info · 25 functions
 *   TensorProto   1 dims · 2 data_type · 8 name · 9 raw_data, or a field of its type: 4 floats
 *                 5 int32s · 6 strings · 7 int64s · 10 doubles · 11 uint64s, or 13 external_data
 *                 {1 key, 2 value} with 14 data_location = 1
 *   SparseTensor  1 values · 2 indices (i64: [nnz] linear, or [nnz, rank]) · 3 dims
 *
 * Tensors are read, and the graph is kept: the attribute `onnx.model` is the complete model without
 * their data. The writer puts the data back.
 */
#include "formats/onnx/onnx.h"

#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------------- probe */

/* Do the bytes begin with ir_version, followed by fields of a model up to its graph? */
static int probe_onnx(const tnf_probe *p)
{
    uint8_t window[256];
    tnf_protobuf_in in;
    tnf_protobuf_field f = { 0 };
    tnf_str head = { (const char *)p->head, p->nhead };
    tnf_protobuf_init(&in, tnf_memory_fetch, &head, head.n, window, sizeof window);
    tnf_protobuf m = { &in, 0, p->size };
    bool named = strcmp(p->ext, "onnx") == 0,
         sane = p->nhead > 2 && p->head[0] == 8 && p->head[1] > 0 && p->head[1] <= 50;
    for (int i = 0; sane && i < 40 && m.pos + 10 < p->nhead; i++) {
        if (tnf_protobuf_next(&m, &f, NULL) != TNF_OK)
            break;
        bool text = f.number == 2 || f.number == 3 || f.number == 4 || f.number == 6 ||
                    f.number == 8 || f.number == 14;
        sane = text ? f.type == 2 : (f.number == 1 || f.number == 5) ? f.type == 0 : f.number == 7;
        if (sane && f.number == 7 && f.type == 2 && f.n > 0)
            return TNF_PROBE_STRUCTURE;
    }
    return named ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- attributes */

static tnf_status text_value(tnf_value *out, tnf_reader *r, const tnf_protobuf *m,
                             const tnf_protobuf_field *f, tnf_error *e)
{
    tnf_str s;
    if (f->type != TNF_PROTOBUF_LENGTH)
        return tnf_fail(e, TNF_EFORMAT, f->at, "a text is invalid");
    TNF_TRY(tnf_protobuf_text(m, f, r->limits.header_bytes, r->arena, &s, e));
    *out = tnf_value_utf8(s);
    return TNF_OK;
}

/* {1 key, 2 value}: both texts, or a text and a number. */
static tnf_status read_pair(tnf_attrs *to, tnf_reader *r, tnf_protobuf m, tnf_error *e)
{
    tnf_protobuf_field f;
    tnf_str key = { "", 0 };
    tnf_value value = tnf_value_string("");
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number == 1 && f.type == TNF_PROTOBUF_LENGTH)
            TNF_TRY(tnf_protobuf_text(&m, &f, OX_MAX_NAME, r->arena, &key, e));
        else if (f.number == 2 && f.type == TNF_PROTOBUF_VARINT)
            value = tnf_value_uint(f.value);
        else if (f.number == 2)
            TNF_TRY(text_value(&value, r, &m, &f, e));
    }
    if (!tnf_utf8_valid(NULL, key.p, key.n))
        return TNF_OK; /* it remains only in onnx.model */
    return tnf_attrs_set(to, key.p, key.n, value, e);
}

static tnf_status read_graph_name(tnf_reader *r, tnf_protobuf m, tnf_error *e)
{
    tnf_protobuf_field f;
    tnf_value v;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number != 2)
            continue;
        TNF_TRY(text_value(&v, r, &m, &f, e));
        TNF_TRY(tnf_set_attr(r, "onnx.graph_name", v, e));
    }
    return TNF_OK;
}

static tnf_status read_number(tnf_reader *r, const tnf_protobuf_field *f, tnf_error *e)
{
    char text[24];
    if (f->type != TNF_PROTOBUF_VARINT)
        return tnf_fail(e, TNF_EFORMAT, f->at, "a version is not a number");
    if (f->number == 5)
        return tnf_set_attr(r, "onnx.model_version", tnf_value_uint(f->value), e);
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)f->value);
    r->version = tnf_arena_str(r->arena, text, (size_t)n);
    return r->version ? tnf_set_attr(r, "onnx.ir_version", tnf_value_uint(f->value), e)
                      : tnf_arena_fail(r->arena, "the version", e);
}

/* Reads the model's fields other than the graph, and checks that it is a model. */
static tnf_status read_model(tnf_reader *r, tnf_protobuf_in *in, tnf_error *e)
{
    static const char *const texts[] = {
        NULL,          NULL, "onnx.producer_name", "onnx.producer_version",
        "onnx.domain", NULL, "onnx.doc_string"
    };
    tnf_protobuf m = tnf_protobuf_all(in);
    tnf_protobuf_field f;
    tnf_attrs opset = { .arena = r->arena }, metadata = { .arena = r->arena };
    bool graph = false, version = false;
    tnf_value v;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        bool message = f.type == TNF_PROTOBUF_LENGTH;
        version = version || f.number == 1;
        if (f.number == 1 || f.number == 5) {
            TNF_TRY(read_number(r, &f, e));
        } else if (f.number < 7 && texts[f.number]) {
            TNF_TRY(text_value(&v, r, &m, &f, e));
            TNF_TRY(tnf_set_attr(r, texts[f.number], v, e));
        } else if (f.number == 7 && (graph || !message)) {
            return tnf_fail(e, TNF_EFORMAT, f.at, "a model has two graphs, or none");
        } else if (f.number == 7) {
            graph = true;
            TNF_TRY(read_graph_name(r, tnf_protobuf_inside(&m, &f), e));
        } else if ((f.number == 8 || f.number == 14) && message) {
            TNF_TRY(
                read_pair(f.number == 8 ? &opset : &metadata, r, tnf_protobuf_inside(&m, &f), e));
        }
    }
    if (!graph || !version)
        return tnf_fail(e, TNF_EFORMAT, 0, "there is no %s: this is not an ONNX model",
                        graph ? "ir_version" : "graph");
    if (opset.n)
        TNF_TRY(tnf_set_attr(r, "onnx.opset", tnf_attrs_value(&opset), e));
    return metadata.n ? tnf_set_attr(r, "onnx.metadata", tnf_attrs_value(&metadata), e) : TNF_OK;
}

/* ------------------------------------------------------------------- tensors */

static bool is_data(const tnf_protobuf_field *f)
{
    return (f->number >= OX_FLOATS && f->number <= OX_UINT64S && f->number != OX_NAME &&
            !(f->type == TNF_PROTOBUF_LENGTH && f->n == 0 && f->number != OX_STRINGS)) ||
           f->number == OX_EXTERNAL || f->number == OX_LOCATION;
}

/* Cuts the data of a TensorProto out of the kept model. */
static tnf_status cut_data(ox_walk *w, tnf_protobuf m, int64_t *more, tnf_error *e)
{
    tnf_protobuf_field f;
    ox_edit edit = { .at = m.pos };
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (is_data(&f)) {
            if (edit.cut == 0)
                edit.at = f.at;
            edit.cut = m.pos - edit.at;
            *more -= (int64_t)(m.pos - f.at);
        } else if (edit.cut) {
            TNF_TRY(tnf_ox_edit(w, &edit, e));
            edit.cut = 0;
        }
    }
    return edit.cut ? tnf_ox_edit(w, &edit, e) : TNF_OK;
}

static tnf_status kind_attrs(const tnf_value **out, tnf_reader *r, const char *kind, tnf_error *e)
{
    tnf_attrs attrs = { .arena = r->arena };
    tnf_value *map = tnf_arena_alloc(r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(r->arena, "attributes", e);
    TNF_TRY(tnf_attrs_push(&attrs, OX_KIND, tnf_value_string(kind), e));
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

static tnf_status add_dense(tnf_reader *r, const ox_site *site, const ox_tensor *t, tnf_error *e)
{
    tnf_part parts[2];
    tnf_object o = { .name = site->name,
                     .shape = t->shape,
                     .layout = &tnf_layout_dense,
                     .parts = parts,
                     .rank = t->rank,
                     .nparts = 1 };
    TNF_TRY(kind_attrs(&o.attrs, r, site->kind, e));
    if (t->known->type)
        TNF_TRY(tnf_ox_place(&parts[0], t, r, e));
    else if (t->external == 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, site->at, "strings are in another file");
    else {
        o.layout = tnf_layout_named("strings/1", 9);
        o.nparts = 2;
        TNF_TRY(tnf_ox_strings(parts, t, r, e));
    }
    return tnf_add_object(r, &o, site->at, e);
}

/* Reads the numbers of an i64 tensor into the arena. */
static tnf_status read_indices(int64_t **out, tnf_reader *r, const ox_tensor *t, tnf_error *e)
{
    tnf_part part;
    TNF_TRY(tnf_ox_place(&part, t, r, e));
    if (part.origin)
        return tnf_fail(e, TNF_EUNSUPPORTED, t->at,
                        "indices of a sparse tensor are in another file");
    uint8_t *p = tnf_arena_raw(r->arena, part.nbytes + 8);
    if (!p)
        return tnf_arena_fail(r->arena, "indices", e);
    TNF_TRY(part.payload == TNF_AT
                ? tnf_source_read(r->source, part.offset, p, (size_t)part.nbytes, e)
                : tnf_ox_decode(r, part.offset, 0, p, (size_t)part.nbytes, e));
    int64_t *numbers = (int64_t *)(void *)p;
    for (uint64_t i = 0; i < part.nbytes / 8; i++)
        numbers[i] = (int64_t)tnf_le64(p + 8 * i);
    *out = numbers;
    return TNF_OK;
}

static tnf_status check_indices(const ox_data *d, const ox_tensor *whole, uint64_t at, tnf_error *e)
{
    uint64_t n = d->linear ? d->count : d->count * d->rank;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t most = d->linear ? whole->elements : d->shape[i % d->rank];
        if (d->indices[i] < 0 || (uint64_t)d->indices[i] >= most)
            return tnf_fail(e, TNF_EFORMAT, at, "the index %lld is outside its sparse tensor",
                            (long long)d->indices[i]);
    }
    return TNF_OK;
}

static tnf_status add_sparse(tnf_reader *r, const ox_site *site, ox_tensor *values,
                             ox_tensor *indices, ox_tensor *whole, tnf_error *e)
{
    tnf_part parts[2];
    int64_t *numbers;
    ox_data d = { .form = OX_INDICES, .rank = whole->rank, .count = values->elements };
    tnf_object o = { .name = site->name,
                     .shape = whole->shape,
                     .layout = tnf_layout_named("sparse_coo/1", 12),
                     .parts = parts,
                     .rank = whole->rank,
                     .nparts = 2 };
    uint64_t n = values->elements;
    d.linear = indices->rank == 1;
    bool pairs = indices->rank == 2 && indices->shape[0] == n && indices->shape[1] == whole->rank;
    bool fits = indices->type == 7 && (d.linear ? indices->elements == n : pairs);
    if (!fits || whole->rank == 0 || values->rank > 1 || !values->known->type)
        return tnf_fail(e, TNF_EFORMAT, site->at,
                        "the shapes of the parts of a sparse tensor do not match");
    TNF_TRY(read_indices(&numbers, r, indices, e));
    uint64_t *shape = tnf_arena_array(r->arena, whole->rank, sizeof *shape);
    if (!shape)
        return tnf_arena_fail(r->arena, "a shape", e);
    memcpy(shape, whole->shape, whole->rank * sizeof *shape);
    d.shape = shape;
    d.indices = numbers;
    TNF_TRY(check_indices(&d, whole, site->at, e));
    TNF_TRY(tnf_ox_place(&parts[0], values, r, e));
    parts[0].role = "values";
    parts[1] = (tnf_part) { .role = "coords", .type = tnf_type_of(TNF_U64), .payload = TNF_OPAQUE };
    if (!tnf_ckd_mul(&parts[1].nbytes, n * 8, whole->rank))
        return tnf_fail(e, TNF_EFORMAT, site->at, "a sparse tensor exceeds 2^64 bytes");
    parts[1].stored = parts[1].nbytes;
    TNF_TRY(tnf_ox_push(r, d, &parts[1].offset, e));
    TNF_TRY(kind_attrs(&o.attrs, r, site->kind, e));
    return tnf_add_object(r, &o, site->at, e);
}

static tnf_status take_sparse(tnf_reader *r, ox_walk *w, const ox_site *site, int64_t *more,
                              tnf_error *e)
{
    ox_tensor parts[2], whole = { .at = site->at };
    tnf_protobuf m = site->message;
    tnf_protobuf_field f;
    bool seen[2] = { false, false };
    tnf_status status = TNF_OK;
    memset(parts, 0, sizeof parts);
    while (status == TNF_OK && tnf_protobuf_more(&m)) {
        int64_t grown = 0;
        status = tnf_protobuf_next(&m, &f, e);
        unsigned which = status == TNF_OK ? f.number - 1 : 9;
        if (status == TNF_OK && which < 2 && f.type == TNF_PROTOBUF_LENGTH) {
            tnf_protobuf inner = tnf_protobuf_inside(&m, &f);
            if (seen[which])
                status = tnf_fail(e, TNF_EFORMAT, f.at, "a sparse tensor has a part twice");
            seen[which] = true;
            if (status == TNF_OK)
                status = tnf_ox_read(&parts[which], r, &inner, e);
            if (status == TNF_OK)
                status = cut_data(w, inner, &grown, e);
            if (status == TNF_OK)
                status = tnf_ox_relength(w, &f, &grown, e);
            *more += grown;
        } else if (status == TNF_OK && f.number == 3) {
            status = tnf_ox_dims(&whole, r, tnf_protobuf_inside(&m, &f), e);
        }
    }
    if (status == TNF_OK && !tnf_shape_elements(&whole.elements, whole.shape, whole.rank))
        status = tnf_fail(e, TNF_EFORMAT, site->at, "the product of the dimensions exceeds 2^64");
    if (status == TNF_OK && !(seen[0] && seen[1]))
        status = tnf_fail(e, TNF_EFORMAT, site->at, "a sparse tensor has no values or no indices");
    if (status == TNF_OK)
        status = add_sparse(r, site, &parts[0], &parts[1], &whole, e);
    for (int i = 0; i < 2; i++)
        if (seen[i])
            tnf_buf_free(&parts[i].runs);
    return status;
}

static tnf_status take_tensor(void *ctx, ox_walk *w, const ox_site *site, int64_t *more,
                              tnf_error *e)
{
    tnf_reader *r = ctx;
    ox_tensor t;
    if (site->sparse)
        return take_sparse(r, w, site, more, e);
    tnf_status status = tnf_ox_read(&t, r, &site->message, e);
    if (status == TNF_OK)
        status = add_dense(r, site, &t, e);
    tnf_buf_free(&t.runs);
    return status == TNF_OK ? cut_data(w, site->message, more, e) : status;
}

/* Does the model have only initializers, exactly as Tenfold writes them? */
static tnf_status is_bare(bool *out, const tnf_reader *r, const uint8_t *p, size_t n, tnf_error *e)
{
    tnf_buf b;
    tnf_buf_init(&b, &r->scratch->alloc, UINT32_MAX);
    for (size_t i = 0; i < r->catalog->n; i++)
        if (r->catalog->objects[i].nparts == 0 || n > OX_MAX_KEPT)
            return TNF_OK;
    tnf_status status = tnf_ox_bare(&b, r->catalog, &r->scratch->alloc, e);
    *out = status == TNF_OK && b.n == n && memcmp(b.p, p, n) == 0;
    tnf_buf_free(&b);
    return status;
}

/* Keeps the model without the data of its tensors. */
static tnf_status keep_model(tnf_reader *r, const ox_walk *w, tnf_error *e)
{
    const ox_edit *edits = (const ox_edit *)(const void *)w->edits.p;
    size_t n = w->edits.n / sizeof *edits;
    uint64_t size = r->source->size, at = 0, put = 0;
    for (size_t i = 0; i < n; i++) {
        size -= edits[i].cut;
        put += edits[i].n;
    }
    if (size > r->limits.header_bytes)
        return tnf_fail(e, TNF_ELIMIT, 0,
                        "the graph has %llu bytes; at most %llu are allowed: raise the limit "
                        "'header_bytes' if you trust the file",
                        (unsigned long long)size, (unsigned long long)r->limits.header_bytes);
    size += put;
    if (size > OX_MAX_KEPT) {
        tnf_warn(r, 0, "the graph has %llu bytes and is not kept", (unsigned long long)size);
        return TNF_OK;
    }
    uint8_t *p = tnf_arena_raw(r->arena, size + 1), *to = p;
    if (!p)
        return tnf_arena_fail(r->arena, "the model", e);
    for (size_t i = 0; i <= n; i++) {
        uint64_t end = i < n ? edits[i].at : r->source->size;
        TNF_TRY(tnf_source_read(r->source, at, to, (size_t)(end - at), e));
        to += end - at;
        if (i == n)
            break;
        memcpy(to, edits[i].bytes, edits[i].n);
        to += edits[i].n;
        at = end + edits[i].cut;
    }
    *to = 0;
    bool bare = false;
    TNF_TRY(is_bare(&bare, r, p, (size_t)size, e));
    if (bare)
        return TNF_OK;
    return tnf_set_attr(r, OX_MODEL, tnf_value_str(TNF_BYTES, (const char *)p, (size_t)size), e);
}

static tnf_status index_onnx(tnf_reader *r, tnf_error *e)
{
    tnf_protobuf_in *in;
    r->state = tnf_arena_alloc(r->arena, sizeof(ox_state));
    if (!r->state)
        return tnf_arena_fail(r->arena, "the model", e);
    TNF_TRY(tnf_protobuf_over(&in, tnf_source_fetch, (void *)(uintptr_t)r->source, r->source->size,
                              r->scratch, e));
    if (r->source->size == 0)
        return tnf_fail(e, TNF_ETRUNCATED, 0, "the file is empty");
    TNF_TRY(read_model(r, in, e));
    ox_walk w = { .in = in, .arena = r->scratch, .r = r, .tensor = take_tensor, .ctx = r };
    tnf_buf_init(&w.edits, &r->scratch->alloc, r->limits.memory);
    tnf_status status = tnf_ox_walk(&w, e);
    if (status == TNF_OK)
        status = keep_model(r, &w, e);
    tnf_buf_free(&w.edits);
    return status;
}

const tnf_format tnf_format_onnx = {
    .name = "onnx",
    .title = "ONNX",
    .extensions = "onnx",
    .family = "onnx",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { .types = "f32 u8 i8 u16 i16 i32 i64 bool f16 f64 u32 u64 c64 c128 bf16 f8_e4m3fn "
                      "f8_e4m3fnuz f8_e5m2 f8_e5m2fnuz u4 i4 f4_e2m1 f8_e8m0 u2 i2 f6_e2m3 f6_e3m2",
             .layouts = "dense strings/1 sparse_coo/1",
             .zero_rank = true,
             .utf8_names = true,
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = OX_MODEL,
             .derived = "onnx.ir_version onnx.opset onnx.producer_name onnx.producer_version "
                        "onnx.domain onnx.model_version onnx.doc_string onnx.graph_name "
                        "onnx.metadata " OX_KIND,
             .fits = tnf_ox_fits },
    .write_options = tnf_ox_write_options,
    .probe = probe_onnx,
    .index = index_onnx,
    .decode = tnf_ox_decode,
    .verify = tnf_ox_verify,
    .write = TNF_WRITES(tnf_ox_write),
};
