/* SPDX-License-Identifier: MIT */
/* Writes a model: the kept one, with the data of its tensors put back.
 *
 *   onnx.model  ░░░░░░░░[dims type name]░░░░░░░[dims type name]░░░░     walked as in reading
 *   written     ░░░░░░░░[dims type name raw_data]░░░░░[…]░░░░░░░░░░     lengths around them are new
 *   or          ░░░░░░░░[dims type name location offset length]░░░░     and a second file:
 *               raw data ░ raw data ░░ raw data                         in the order of the walk
 *
 * Without such a model there is no graph. Then `-o bare=yes` writes a model with only initializers.
 */
#include "formats/onnx/onnx.h"

#include <stdio.h>
#include <string.h>

const tnf_option_info tnf_ox_write_options[] = {
    { "bare", TNF_OPTION_BOOL, NULL, "no",
      "if no graph was kept: write a model with only initializers" },
    { "external", TNF_OPTION_CHOICE, "auto|never|always", "auto",
      "data in a second file: above 1.5 GiB, never, or all data" },
    { "location", TNF_OPTION_TEXT, NULL, "",
      "name of the second file, in the same directory; empty: that of the model and \".data\"" },
    { "align", TNF_OPTION_UINT, NULL, "4096",
      "tensors begin there at a multiple of this many bytes" },
    { 0 },
};

/* The context of the walk over the kept model. */
struct putting {
    tnf_str model;                   /* the kept one */
    struct kept_sparse *kept_fields; /* fields of the current tensor; NULL: not allocated yet */
    const tnf_catalog *catalog;
    tnf_arena *arena;
    tnf_fit *fit;    /* while planning; NULL: while writing */
    tnf_attrs met;   /* names of tensors in the model */
    tnf_attrs names; /* names of all tensors, to their positions */
    ox_outside outside;
};

/* Indexes the names: the catalog to be written cannot be searched by name. */
static tnf_status list_names(struct putting *x, tnf_error *e)
{
    x->met.arena = x->names.arena = x->arena;
    for (size_t i = 0; i < x->catalog->n; i++) {
        tnf_str name = x->catalog->objects[i].name;
        TNF_TRY(tnf_attrs_set(&x->names, name.p, name.n, tnf_value_uint(i), e));
    }
    return TNF_OK;
}

static tnf_status find_object(const tnf_object **out, struct putting *x, tnf_str name, tnf_error *e)
{
    tnf_member *known = NULL;
    TNF_TRY(tnf_attrs_find(&x->names, name.p, name.n, &known, e));
    *out = known ? &x->catalog->objects[known->value.as.u] : NULL;
    return TNF_OK;
}

static const tnf_value *kept_model(const tnf_catalog *c)
{
    const tnf_value *v = tnf_catalog_attr(c, OX_MODEL);
    return v && v->kind == TNF_BYTES && v->n > 0 ? v : NULL;
}

/* -------------------------------------------------------------------- match */

/* The fields of a TensorProto of the kept model. */
struct kept_fields {
    uint64_t type, dims[255];
    uint32_t rank;
    uint64_t place[3]; /* places of raw data, strings, and the name of another file */
};

static tnf_status add_dims(struct kept_fields *s, tnf_protobuf m, tnf_error *e)
{
    while (tnf_protobuf_more(&m)) {
        uint64_t v;
        TNF_TRY(tnf_protobuf_varint(&m, &v, e));
        if (s->rank == 255)
            return tnf_fail(e, TNF_ELIMIT, m.pos, "a tensor has more than 255 dimensions");
        s->dims[s->rank++] = v;
    }
    return TNF_OK;
}

static tnf_status read_kept(struct kept_fields *s, tnf_protobuf m, tnf_error *e)
{
    tnf_protobuf_field f;
    s->rank = 0;
    s->type = 0;
    for (int i = 0; i < 3; i++)
        s->place[i] = m.end;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number == OX_DIMS)
            TNF_TRY(add_dims(s, tnf_protobuf_inside(&m, &f), e));
        else if (f.number == OX_TYPE)
            s->type = f.value;
        static const unsigned behind[] = { OX_RAW, OX_STRINGS, OX_LOCATION };
        for (int i = 0; i < 3; i++)
            if (f.number > behind[i] && s->place[i] == m.end)
                s->place[i] = f.at;
    }
    return TNF_OK;
}

static bool same_dims(const struct kept_fields *s, const uint64_t *shape, uint32_t rank)
{
    return s->rank == rank && (rank == 0 || memcmp(s->dims, shape, rank * sizeof *shape) == 0);
}

static const tnf_part *part_of_role(const tnf_object *o, const char *name)
{
    const tnf_part *p = tnf_object_part(o, name);
    return p ? p : &o->parts[0];
}

/* ------------------------------------------------------------------ inserts */

static tnf_status insert_edit(ox_walk *w, uint64_t at, const tnf_object *o, unsigned what,
                              uint64_t n, int64_t *more, tnf_error *e)
{
    ox_edit edit = { .at = at, .object = o, .what = (uint8_t)what };
    if (n == 0)
        return TNF_OK;
    edit.bytes[0] = OX_RAW << 3 | TNF_PROTOBUF_LENGTH;
    edit.n = (uint8_t)(1 + tnf_protobuf_put(edit.bytes + 1, n));
    *more += (int64_t)(edit.n + n);
    return tnf_ox_edit(w, &edit, e);
}

static tnf_status insert_place(ox_walk *w, struct putting *x, uint64_t at, const tnf_object *o,
                               int64_t *more, tnf_error *e)
{
    ox_edit edit = { .at = at, .object = o, .what = OX_PLACE };
    uint8_t bytes[OX_MAX_PLACE];
    TNF_TRY(tnf_ox_go_outside(&edit.outside, &x->outside, o, e));
    *more += (int64_t)tnf_ox_put_place(bytes, &x->outside, edit.outside, o->parts->nbytes);
    return tnf_ox_edit(w, &edit, e);
}

static tnf_status read_all(uint64_t **out, tnf_arena *arena, const tnf_part *part, tnf_error *e)
{
    uint8_t *p = tnf_arena_raw(arena, part->nbytes + 8);
    if (!p)
        return tnf_arena_fail(arena, "a tensor", e);
    TNF_TRY(tnf_read_part(p, (size_t)part->nbytes, part, 0, e));
    *out = (uint64_t *)(void *)p;
    for (uint64_t i = 0; i < part->nbytes / 8; i++)
        (*out)[i] = tnf_le64(p + 8 * i);
    return TNF_OK;
}

/* Each string is a separate field. */
static tnf_status insert_strings(ox_walk *w, uint64_t at, const tnf_object *o, int64_t *more,
                                 tnf_error *e)
{
    ox_edit edit = { .at = at, .object = o, .what = OX_TEXTS };
    const tnf_part *offsets = part_of_role(o, "offsets");
    uint64_t *ends, n = offsets->nbytes / 8;
    uint8_t number[10];
    TNF_TRY(read_all(&ends, w->arena, offsets, e));
    for (uint64_t i = 0; i + 1 < n; i++) {
        if (ends[i + 1] < ends[i])
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "the offsets of the strings of %s are not in ascending order",
                            TNF_QUOTED(o->name));
        uint64_t length = ends[i + 1] - ends[i];
        *more += (int64_t)(1 + tnf_protobuf_put(number, length) + length);
    }
    return n > 1 ? tnf_ox_edit(w, &edit, e) : TNF_OK;
}

/* The reason why a tensor does not fit its place in the model; NULL: it fits. */
static const char *why_mismatch(const ox_site *site, const tnf_object *o,
                                const struct kept_fields *whole, const struct kept_fields *values,
                                const struct kept_fields *indices)
{
    bool strings = strcmp(o->layout->id, "strings/1") == 0;
    bool sparse = strcmp(o->layout->id, "sparse_coo/1") == 0;
    const struct kept_fields *s = site->sparse ? values : whole;
    const char *other = "the kept model has another shape or type for it";
    if (sparse != site->sparse || o->nparts == 0)
        return "the kept model has another layout for it";
    if (s->type != (strings ? 8 : tnf_ox_number(part_of_role(o, sparse ? "values" : "data")->type)))
        return other;
    if (!same_dims(whole, o->shape, o->rank))
        return other;
    if (!sparse)
        return NULL;
    const tnf_part *coords = part_of_role(o, "coords");
    uint64_t n = values->rank ? values->dims[0] : 1;
    bool linear = indices->rank == 1 && indices->dims[0] == n;
    bool pairs = indices->rank == 2 && indices->dims[0] == n && indices->dims[1] == o->rank;
    if (coords->type != tnf_type_of(TNF_U64) || coords->nbytes != n * 8 * o->rank)
        return "the kept model has another number of values for it";
    return linear || pairs ? NULL : other;
}

struct kept_sparse {
    struct kept_fields whole, values, indices;
    tnf_protobuf_field fields[2];
};

static tnf_status read_sparse(struct kept_sparse *s, tnf_protobuf m, tnf_error *e)
{
    tnf_protobuf_field f;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number == 3)
            TNF_TRY(add_dims(&s->whole, tnf_protobuf_inside(&m, &f), e));
        if (f.number > 2 || f.type != TNF_PROTOBUF_LENGTH)
            continue;
        s->fields[f.number - 1] = f;
        TNF_TRY(
            read_kept(f.number == 1 ? &s->values : &s->indices, tnf_protobuf_inside(&m, &f), e));
    }
    return TNF_OK;
}

static tnf_status put_sparse(ox_walk *w, const tnf_object *o, const struct kept_sparse *s,
                             int64_t *more, tnf_error *e)
{
    int64_t values = 0, indices = 0;
    const tnf_part *part = part_of_role(o, "values");
    bool linear = s->indices.rank == 1;
    uint64_t n = part_of_role(o, "coords")->nbytes / (linear ? o->rank : 1);
    TNF_TRY(insert_edit(w, s->values.place[0], o, OX_VALUES, part->nbytes, &values, e));
    TNF_TRY(tnf_ox_relength(w, &s->fields[0], &values, e));
    TNF_TRY(insert_edit(w, s->indices.place[0], o, linear ? OX_LINEAR : OX_COORDS, n, &indices, e));
    TNF_TRY(tnf_ox_relength(w, &s->fields[1], &indices, e));
    *more += values + indices;
    return TNF_OK;
}

static tnf_status take_site(void *ctx, ox_walk *w, const ox_site *site, int64_t *more, tnf_error *e)
{
    struct putting *x = ctx;
    const tnf_object *o;
    if (!x->kept_fields) /* large, so all tensors share one */
        x->kept_fields = tnf_arena_alloc(x->arena, sizeof *x->kept_fields);
    struct kept_sparse *s = x->kept_fields;
    if (!s)
        return tnf_arena_fail(x->arena, "the model", e);
    TNF_TRY(find_object(&o, x, site->name, e));
    TNF_TRY(site->sparse ? read_sparse(s, site->message, e)
                         : read_kept(&s->whole, site->message, e));
    if (x->fit) {
        if (!o || x->fit->objects[o - x->catalog->objects].fate == TNF_DROPPED)
            return TNF_OK;
        const char *why = why_mismatch(site, o, &s->whole, &s->values, &s->indices);
        if (why)
            x->fit->objects[o - x->catalog->objects] = (tnf_verdict) { TNF_DROPPED, why };
        return tnf_attrs_set(&x->met, o->name.p, o->name.n, (tnf_value) { .kind = TNF_NULL }, e);
    }
    if (!o)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the kept model needs the tensor %s, which is missing",
                        TNF_QUOTED(site->name));
    if (site->sparse)
        return put_sparse(w, o, s, more, e);
    if (s->whole.type == 8)
        return insert_strings(w, s->whole.place[1], o, more, e);
    if (tnf_ox_is_outside(&x->outside, o))
        return insert_place(w, x, s->whole.place[2], o, more, e);
    return insert_edit(w, s->whole.place[0], o, OX_DATA, o->parts->nbytes, more, e);
}

static tnf_status walk_model(ox_walk *w, struct putting *x, const tnf_value *model, tnf_error *e)
{
    tnf_protobuf_in *in;
    x->model = (tnf_str) { model->as.s, model->n };
    memset(w, 0, sizeof *w);
    TNF_TRY(tnf_protobuf_over(&in, tnf_memory_fetch, &x->model, model->n, x->arena, e));
    *w = (ox_walk) { .in = in, .arena = x->arena, .tensor = take_site, .ctx = x };
    tnf_buf_init(&w->edits, &x->arena->alloc, UINT32_MAX);
    TNF_TRY(list_names(x, e));
    return tnf_ox_walk(w, e);
}

/* --------------------------------------------------------------------- plan */

static bool fits_bare(const tnf_object *o)
{
    bool fits = o->name.n > 0 && o->name.n <= OX_MAX_NAME;
    for (uint32_t i = 0; i < o->rank; i++)
        fits = fits && o->shape[i] <= INT64_MAX;
    return fits;
}

tnf_status tnf_ox_fits(tnf_fit *fit, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    const tnf_value *model = kept_model(c);
    struct putting x = { .catalog = c, .arena = fit->scratch, .fit = fit };
    ox_walk w;
    if (model) {
        tnf_status status = walk_model(&w, &x, model, e);
        tnf_buf_free(&w.edits);
        TNF_TRY(status);
    }
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        tnf_member *met = NULL;
        if (fit->objects[i].fate == TNF_DROPPED || tnf_is_filler(o))
            continue;
        if (model)
            TNF_TRY(tnf_attrs_find(&x.met, o->name.p, o->name.n, &met, e));
        if (model && !met)
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED, "the model (onnx.model) has no such "
                                                           "tensor" };
        else if (!model && !fits_bare(o))
            fit->objects[i] = (tnf_verdict) {
                TNF_DROPPED, "an initializer needs a name, and dimensions below 2^63"
            };
        else if (!model && strcmp(o->layout->id, "sparse_coo/1") == 0)
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED,
                                              "a model without a graph (bare=yes) cannot hold "
                                              "sparse tensors" };
        else if (!model && !fit->options[OX_WRITE_BARE].u)
            fit->objects[i] = (tnf_verdict) {
                TNF_TRANSFORMED,
                "the file would have no graph, and no program can use a model without one; "
                "-o bare=yes writes only initializers"
            };
    }
    return TNF_OK;
}

/* --------------------------------------------------------------------- data */

static tnf_status put_strings(tnf_writer *w, const tnf_object *o, tnf_error *e)
{
    uint64_t *ends, n = part_of_role(o, "offsets")->nbytes / 8;
    const tnf_part *bytes = part_of_role(o, "bytes");
    uint8_t head[16];
    char *text = tnf_arena_raw(w->scratch, bytes->nbytes + 1);
    if (!text)
        return tnf_arena_fail(w->scratch, "strings", e);
    TNF_TRY(read_all(&ends, w->scratch, part_of_role(o, "offsets"), e));
    TNF_TRY(tnf_read_part(text, (size_t)bytes->nbytes, bytes, 0, e));
    for (uint64_t i = 0; i + 1 < n; i++) {
        if (ends[i + 1] < ends[i] || ends[i + 1] > bytes->nbytes)
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "the offsets of the strings of %s are not in ascending order",
                            TNF_QUOTED(o->name));
        head[0] = OX_STRINGS << 3 | TNF_PROTOBUF_LENGTH;
        size_t length = 1 + tnf_protobuf_put(head + 1, ends[i + 1] - ends[i]);
        TNF_TRY(tnf_put(w, head, length, e));
        TNF_TRY(tnf_put(w, text + ends[i], (size_t)(ends[i + 1] - ends[i]), e));
    }
    return TNF_OK;
}

/* Converts coordinates, grouped by axis, to indices: linear, or grouped by value. */
static tnf_status put_indices(tnf_writer *w, const tnf_object *o, bool linear, tnf_error *e)
{
    const tnf_part *part = part_of_role(o, "coords");
    uint64_t *coords, n = part->nbytes / 8 / o->rank;
    TNF_TRY(read_all(&coords, w->scratch, part, e));
    for (uint64_t k = 0; k < n; k++) {
        uint64_t index = 0;
        for (uint32_t d = 0; d < o->rank; d++) {
            index = index * o->shape[d] + coords[d * n + k];
            if (!linear)
                TNF_TRY(tnf_put_u64(w, coords[d * n + k], e));
        }
        if (linear)
            TNF_TRY(tnf_put_u64(w, index, e));
    }
    return TNF_OK;
}

static tnf_status put_edit(tnf_writer *w, const struct putting *x, const ox_edit *edit,
                           tnf_error *e)
{
    const tnf_object *o = edit->object;
    uint8_t bytes[OX_MAX_PLACE];
    TNF_TRY(tnf_put(w, edit->bytes, edit->n, e));
    if (!o)
        return TNF_OK;
    switch (edit->what) {
    case OX_TEXTS:
        return put_strings(w, o, e);
    case OX_VALUES:
        return tnf_put_data(w, part_of_role(o, "values"), e);
    case OX_LINEAR:
    case OX_COORDS:
        return put_indices(w, o, edit->what == OX_LINEAR, e);
    case OX_PLACE:
        return tnf_put(w, bytes,
                       tnf_ox_put_place(bytes, &x->outside, edit->outside, o->parts->nbytes), e);
    default:
        return tnf_put_data(w, &o->parts[0], e);
    }
}

static tnf_status put_model(tnf_writer *w, const struct putting *x, const ox_walk *walk,
                            const tnf_value *model, tnf_error *e)
{
    const ox_edit *edits = (const ox_edit *)(const void *)walk->edits.p;
    size_t n = walk->edits.n / sizeof *edits, at = 0;
    for (size_t i = 0; i <= n; i++) {
        size_t end = i < n ? (size_t)edits[i].at : model->n;
        TNF_TRY(tnf_put(w, model->as.s + at, end - at, e));
        if (i < n)
            TNF_TRY(put_edit(w, x, &edits[i], e));
        at = i < n ? end + (size_t)edits[i].cut : end;
    }
    return w->sink->written > OX_MAX_FILE ? tnf_ox_too_large(e) : TNF_OK;
}

/* --------------------------------------------------------------------- bare */

static void put_field(tnf_buf *b, unsigned number, uint64_t n)
{
    uint8_t varint[10];
    tnf_buf_put(b, varint, tnf_protobuf_put(varint, number << 3 | TNF_PROTOBUF_LENGTH));
    tnf_buf_put(b, varint, tnf_protobuf_put(varint, n));
}

static void put_number(tnf_buf *b, unsigned number, uint64_t v)
{
    uint8_t varint[10];
    tnf_buf_put(b, varint, tnf_protobuf_put(varint, number << 3));
    tnf_buf_put(b, varint, tnf_protobuf_put(varint, v));
}

tnf_status tnf_ox_bare(tnf_buf *b, const tnf_catalog *c, const tnf_allocator *alloc, tnf_error *e)
{
    tnf_buf graph, tensor;
    tnf_buf_init(&graph, alloc, UINT32_MAX);
    tnf_buf_init(&tensor, alloc, UINT32_MAX);
    put_field(&graph, 2, 7);
    tnf_buf_puts(&graph, "tenfold");
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        bool strings = strcmp(o->layout->id, "strings/1") == 0;
        tensor.n = 0;
        for (uint32_t d = 0; d < o->rank; d++)
            put_number(&tensor, OX_DIMS, o->shape[d]);
        put_number(&tensor, OX_TYPE, strings ? 8 : tnf_ox_number(o->parts->type));
        put_field(&tensor, OX_NAME, o->name.n);
        tnf_buf_put(&tensor, o->name.p, o->name.n);
        put_field(&graph, 5, tensor.n);
        tnf_buf_put(&graph, tensor.p, tensor.n);
    }
    put_number(b, 1, 10);
    put_field(b, 7, graph.n);
    tnf_buf_put(b, graph.p, graph.n);
    put_field(b, 8, 2);
    put_number(b, 2, 21);
    tnf_status status = tnf_buf_status(&tensor, "the model", e);
    if (status == TNF_OK)
        status = tnf_buf_status(&graph, "the model", e);
    tnf_buf_free(&tensor);
    tnf_buf_free(&graph);
    return status == TNF_OK ? tnf_buf_status(b, "the model", e) : status;
}

tnf_status tnf_ox_write(tnf_writer *w, tnf_error *e)
{
    const tnf_value *model = kept_model(w->catalog);
    struct putting x = { .catalog = w->catalog, .arena = w->scratch };
    tnf_value made;
    tnf_buf bare;
    ox_walk walk;
    tnf_status status = TNF_OK;
    tnf_buf_init(&bare, &w->scratch->alloc, UINT32_MAX);
    if (!model) {
        status = tnf_ox_bare(&bare, w->catalog, &w->scratch->alloc, e);
        made = tnf_value_str(TNF_BYTES, (const char *)bare.p, bare.n);
        model = &made;
    }
    tnf_buf_init(&x.outside.objects, &w->scratch->alloc, UINT32_MAX);
    if (status == TNF_OK)
        status = tnf_ox_choose_place(&x.outside, w, model, e);
    if (status == TNF_OK) {
        status = walk_model(&walk, &x, model, e);
        if (status == TNF_OK)
            status = tnf_ox_put_outside(w, &x.outside, e);
        if (status == TNF_OK)
            status = put_model(w, &x, &walk, model, e);
        tnf_buf_free(&walk.edits);
    }
    tnf_buf_free(&x.outside.objects);
    tnf_buf_free(&bare);
    return status;
}
