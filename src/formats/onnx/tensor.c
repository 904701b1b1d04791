/* SPDX-License-Identifier: MIT */
/* A TensorProto: its shape and type, and the place of its data: raw, in a field of its type, or in
 * another file. */
#include "base/str.h"
#include "formats/onnx/onnx.h"

#include <stdio.h>
#include <string.h>

#define MAX_RANK 255u
#define RUN      1024u /* varints per run, whose start is recorded */

/* By number. bits: how many bits of a value in the typed field are used. */
static const ox_type types[] = {
    { NULL, 0, 0, 0 },
    { "f32", OX_FLOATS, 32, 1 },
    { "u8", OX_INT32S, 8, 1 },
    { "i8", OX_INT32S, 8, 1 },
    { "u16", OX_INT32S, 16, 1 },
    { "i16", OX_INT32S, 16, 1 },
    { "i32", OX_INT32S, 32, 1 },
    { "i64", OX_INT64S, 64, 1 },
    { NULL, OX_STRINGS, 0, 1 },
    { "bool", OX_INT32S, 8, 1 },
    { "f16", OX_INT32S, 16, 1 },
    { "f64", OX_DOUBLES, 64, 1 },
    { "u32", OX_UINT64S, 32, 1 },
    { "u64", OX_UINT64S, 64, 1 },
    { "c64", OX_FLOATS, 32, 2 },
    { "c128", OX_DOUBLES, 64, 2 },
    { "bf16", OX_INT32S, 16, 1 },
    { "f8_e4m3fn", OX_INT32S, 8, 1 },
    { "f8_e4m3fnuz", OX_INT32S, 8, 1 },
    { "f8_e5m2", OX_INT32S, 8, 1 },
    { "f8_e5m2fnuz", OX_INT32S, 8, 1 },
    { "u4", OX_INT32S, 8, 0 },
    { "i4", OX_INT32S, 8, 0 },
    { "f4_e2m1", OX_INT32S, 8, 0 },
    { "f8_e8m0", OX_INT32S, 8, 1 },
    { "u2", OX_INT32S, 8, 0 },
    { "i2", OX_INT32S, 8, 0 },
    { "f6_e2m3", OX_INT32S, 6, 1 },
    { "f6_e3m2", OX_INT32S, 6, 1 },
};
#define NTYPES (sizeof types / sizeof *types)

const ox_type *tnf_ox_type(uint64_t number)
{
    return number > 0 && number < NTYPES ? &types[number] : NULL;
}

uint64_t tnf_ox_number(const tnf_type *type)
{
    for (size_t i = 1; i < NTYPES; i++)
        if (types[i].type && strcmp(types[i].type, type->id) == 0)
            return i;
    return 0;
}

/* ------------------------------------------------------------------- values */

/* Does a value of the typed field fit the type? The value is the bits of the element, or for signed
 * types the number. */
static bool fits_type(const ox_tensor *t, uint64_t v)
{
    const char *type = t->known->type;
    int32_t i = (int32_t)(uint32_t)v;
    unsigned bits = t->known->bits;
    if (t->known->field == OX_INT32S && bits < 32) {
        int32_t top = (int32_t)1 << bits;
        if (type[0] == 'i' && t->known->per)
            return i >= -top / 2 && i < top / 2;
        return i >= 0 && i < (strcmp(type, "bool") == 0 ? 2 : top);
    }
    return strcmp(type, "u32") != 0 || v <= UINT32_MAX;
}

static tnf_status add_run(ox_tensor *t, ox_run run, tnf_error *e)
{
    tnf_buf_put(&t->runs, &run, sizeof run);
    return tnf_buf_status(&t->runs, "the values", e);
}

static bool is_varints(unsigned field)
{
    return field == OX_INT32S || field == OX_INT64S || field == OX_UINT64S;
}

/* Counts the varints of a packed field and records the start of every run. */
static tnf_status count_varints(ox_tensor *t, tnf_protobuf m, tnf_error *e)
{
    while (tnf_protobuf_more(&m)) {
        ox_run run = { m.pos, 0, t->nvalues, 0 };
        for (; run.count < RUN && tnf_protobuf_more(&m); run.count++) {
            uint64_t v, at = m.pos;
            TNF_TRY(tnf_protobuf_varint(&m, &v, e));
            if (t->known && t->known->field == t->typed && !fits_type(t, v))
                return tnf_fail(e, TNF_EFORMAT, at, "the value %lld is out of range of the type %s",
                                (long long)v, t->known->type);
        }
        run.n = m.pos - run.at;
        t->nvalues += run.count;
        TNF_TRY(add_run(t, run, e));
    }
    return TNF_OK;
}

static tnf_status take_typed(ox_tensor *t, const tnf_protobuf *m, const tnf_protobuf_field *f,
                             tnf_error *e)
{
    uint64_t width = f->number == OX_FLOATS ? 4 : 8;
    unsigned fixed = f->number == OX_FLOATS ? TNF_PROTOBUF_FIXED32 : TNF_PROTOBUF_FIXED64;
    if (f->type == TNF_PROTOBUF_LENGTH && f->n == 0 && f->number != OX_STRINGS)
        return TNF_OK;
    if (t->typed && t->typed != f->number)
        return tnf_fail(e, TNF_EFORMAT, f->at, "a tensor has two kinds of data");
    t->typed = (uint8_t)f->number;
    ox_run run = { f->offset, f->n, t->nvalues, 1 };
    if (f->number == OX_STRINGS) {
        if (f->type != TNF_PROTOBUF_LENGTH)
            return tnf_fail(e, TNF_EFORMAT, f->at, "a string is invalid");
    } else if (is_varints(f->number)) {
        if (f->type != TNF_PROTOBUF_LENGTH && f->type != TNF_PROTOBUF_VARINT)
            return tnf_fail(e, TNF_EFORMAT, f->at, "numbers are invalid");
        return count_varints(t, tnf_protobuf_inside(m, f), e); /* one, or packed ones */
    } else if (f->type == TNF_PROTOBUF_LENGTH && f->n % width == 0) {
        run.count = f->n / width;
    } else if (f->type != fixed) {
        return tnf_fail(e, TNF_EFORMAT, f->at, "numbers are invalid or truncated");
    }
    t->nvalues += run.count;
    return add_run(t, run, e);
}

/* ------------------------------------------------------------------- fields */

tnf_status tnf_ox_dims(ox_tensor *t, tnf_reader *r, tnf_protobuf m, tnf_error *e)
{
    while (tnf_protobuf_more(&m)) {
        uint64_t at = m.pos, v;
        TNF_TRY(tnf_protobuf_varint(&m, &v, e));
        if (v > INT64_MAX)
            return tnf_fail(e, TNF_EFORMAT, at, "a dimension is %lld, but must not be negative",
                            (long long)v);
        if (t->rank == MAX_RANK)
            return tnf_fail(e, TNF_ELIMIT, at, "a tensor has more than %u dimensions", MAX_RANK);
        if (t->rank % 8 == 0) {
            uint64_t *shape = tnf_arena_array(r->scratch, t->rank + 8, sizeof *shape);
            if (!shape)
                return tnf_arena_fail(r->scratch, "a shape", e);
            if (t->rank)
                memcpy(shape, t->shape, t->rank * sizeof *shape);
            t->shape = shape;
        }
        t->shape[t->rank++] = v;
    }
    return TNF_OK;
}

/* Reads one of the pairs that locate external data. */
static tnf_status take_external(ox_tensor *t, tnf_reader *r, tnf_protobuf m, tnf_error *e)
{
    tnf_protobuf_field f;
    tnf_str key = { "", 0 }, value = { "", 0 };
    uint64_t at = m.pos;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if ((f.number == 1 || f.number == 2) && f.type == TNF_PROTOBUF_LENGTH)
            TNF_TRY(tnf_protobuf_text(&m, &f, OX_MAX_NAME, r->scratch,
                                      f.number == 1 ? &key : &value, e));
    }
    if (tnf_str_is(key, "location")) {
        t->location = value;
        t->located = true;
    } else if (tnf_str_is(key, "offset")) {
        t->offset = value;
    } else if (tnf_str_is(key, "length")) {
        t->length = value;
    } else if (tnf_str_is(key, "checksum")) {
        t->checksum = value;
    } else if (!tnf_str_is(key, "basepath")) {
        tnf_warn(r, at, "the unknown key %s of external data is ignored", TNF_QUOTED(key));
    }
    return TNF_OK;
}

static tnf_status check_once(bool *seen, const tnf_protobuf_field *f, const char *what,
                             tnf_error *e)
{
    if (*seen)
        return tnf_fail(e, TNF_EFORMAT, f->at, "a tensor has its %s twice", what);
    *seen = true;
    return TNF_OK;
}

struct seen {
    bool type, name, raw, location;
};

static tnf_status take_field(ox_tensor *t, tnf_reader *r, const tnf_protobuf *m,
                             const tnf_protobuf_field *f, struct seen *seen, tnf_error *e)
{
    bool text = f->type == TNF_PROTOBUF_LENGTH;
    switch (f->number) {
    case OX_DIMS:
        return text || f->type == TNF_PROTOBUF_VARINT
                   ? tnf_ox_dims(t, r, tnf_protobuf_inside(m, f), e)
                   : tnf_fail(e, TNF_EFORMAT, f->at, "a dimension is invalid");
    case OX_TYPE:
        t->type = f->value;
        return check_once(&seen->type, f, "type", e);
    case OX_SEGMENT:
        return tnf_fail(e, TNF_EUNSUPPORTED, f->at,
                        "a tensor is only a segment, which is not supported");
    case OX_FLOATS:
    case OX_INT32S:
    case OX_STRINGS:
    case OX_INT64S:
    case OX_DOUBLES:
    case OX_UINT64S:
        return take_typed(t, m, f, e);
    case OX_NAME:
        TNF_TRY(check_once(&seen->name, f, "name", e));
        return text ? tnf_protobuf_text(m, f, OX_MAX_NAME, r->scratch, &t->name, e) : TNF_OK;
    case OX_RAW:
        TNF_TRY(check_once(&seen->raw, f, "raw data", e));
        if (text && f->n > 0)
            t->raw = *f;
        return TNF_OK;
    case OX_EXTERNAL:
        return text ? take_external(t, r, tnf_protobuf_inside(m, f), e) : TNF_OK;
    case OX_LOCATION:
        t->external = f->value;
        return check_once(&seen->location, f, "location", e);
    default:
        return TNF_OK;
    }
}

static tnf_status check_counts(const ox_tensor *t, tnf_error *e)
{
    uint64_t values = t->elements, bytes = 0;
    const tnf_type *type = t->known->type ? tnf_type_named(t->known->type) : NULL;
    if (type && !tnf_type_bytes(&bytes, type, t->elements))
        return tnf_fail(e, TNF_EFORMAT, t->at, "a tensor exceeds 2^64 bytes");
    values = t->known->per ? values * t->known->per : bytes;
    if (t->external == 1)
        return t->raw.number || t->typed
                   ? tnf_fail(e, TNF_EFORMAT, t->at,
                              "a tensor has data both in the model and in another file")
                   : TNF_OK;
    if (t->raw.number && t->typed)
        return tnf_fail(e, TNF_EFORMAT, t->raw.at, "a tensor has both raw and typed data");
    if (t->raw.number && !type)
        return tnf_fail(e, TNF_EFORMAT, t->raw.at, "strings cannot be raw");
    if (t->raw.number)
        return t->raw.n == bytes ? TNF_OK
                                 : tnf_fail(e, TNF_EFORMAT, t->raw.at,
                                            "%llu elements of %s do not have %llu bytes",
                                            (unsigned long long)t->elements, type->id,
                                            (unsigned long long)t->raw.n);
    if (t->typed && t->typed != t->known->field)
        return tnf_fail(
            e, TNF_EFORMAT, t->at,
            "the data of a tensor of the type %s are in field %u, which is for other types",
            type ? type->id : "string", t->typed);
    if (t->nvalues != values)
        return tnf_fail(e, TNF_EFORMAT, t->at, "%llu values are expected, but there are %llu",
                        (unsigned long long)values, (unsigned long long)t->nvalues);
    return TNF_OK;
}

tnf_status tnf_ox_read(ox_tensor *t, tnf_reader *r, const tnf_protobuf *message, tnf_error *e)
{
    tnf_protobuf m = *message;
    tnf_protobuf_field f;
    struct seen seen = { false, false, false, false };
    *t = (ox_tensor) { .at = m.pos };
    tnf_buf_init(&t->runs, &r->scratch->alloc, r->limits.memory);
    for (tnf_protobuf look = m; tnf_protobuf_more(&look);) {
        TNF_TRY(tnf_protobuf_next(&look, &f, e)); /* the type may follow the data */
        if (f.number == OX_TYPE && f.type == TNF_PROTOBUF_VARINT)
            t->known = tnf_ox_type(f.value);
    }
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        TNF_TRY(take_field(t, r, &m, &f, &seen, e));
    }
    if (!t->known)
        return tnf_fail(e, TNF_EUNSUPPORTED, t->at, "a tensor has the unknown type %llu",
                        (unsigned long long)t->type);
    if (!tnf_shape_elements(&t->elements, t->shape, t->rank))
        return tnf_fail(e, TNF_EFORMAT, t->at, "the product of the dimensions exceeds 2^64");
    return check_counts(t, e);
}

/* ------------------------------------------------------------ external data */

static tnf_status set_unreadable(tnf_part *part, tnf_reader *r, uint64_t at, const char *why,
                                 tnf_error *e)
{
    part->payload = TNF_OPAQUE;
    part->flags |= TNF_PART_UNREADABLE;
    tnf_warn(r, at, "%s", why);
    return tnf_unreadable_origin(r, &part->origin, why, e);
}

/* Warns of hard links. A file with another name may be changed by others, or be secret, so onnx
 * refuses it. But stores that deduplicate files make hard links, too. */
static tnf_status warn_links(tnf_reader *r, const ox_tensor *t, const struct tnf_origin *origin,
                             tnf_error *e)
{
    ox_state *s = r->state;
    tnf_member *known;
    s->linked.arena = r->arena;
    TNF_TRY(tnf_attrs_find(&s->linked, t->location.p, t->location.n, &known, e));
    if (known)
        return TNF_OK;
    if (tnf_data_has_links(origin))
        tnf_warn(r, t->at, "the data file %s has other names (hard links), which onnx refuses",
                 TNF_QUOTED(t->location));
    return tnf_attrs_set(&s->linked, t->location.p, t->location.n, tnf_value_uint(1), e);
}

/* If the place is invalid, only this tensor is unreadable; others can be read. */
static tnf_status place_external(tnf_part *part, const ox_tensor *t, tnf_reader *r, tnf_error *e)
{
    static const char memory[] = "*/_ORT_MEM_ADDR_/*";
    const struct missing_file *missing;
    uint64_t size = 0, offset = 0, length = part->nbytes, end;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    if (!t->located || t->location.n == 0)
        return set_unreadable(part, r, t->at, "its data are in another file, but no file is named",
                              e);
    if (tnf_str_is(t->location, memory))
        return set_unreadable(part, r, t->at, "its data are in the memory of a program", e);
    if ((t->offset.n && !tnf_str_uint(&offset, t->offset)) ||
        (t->length.n && !tnf_str_uint(&length, t->length)))
        return set_unreadable(part, r, t->at, "the place of its data is not a number", e);
    tnf_status status = tnf_open_data(r, &part->origin, &size, t->location, &why);
    if (status == TNF_ENOTFOUND) {
        TNF_TRY(tnf_miss(r, &missing, t->location, t->at, e));
        TNF_TRY(tnf_missing_origin(r, &part->origin, missing, e));
        part->payload = TNF_OPAQUE;
        part->flags |= TNF_PART_UNREADABLE;
        return TNF_OK;
    }
    if (status == TNF_ENOMEM || status == TNF_ELIMIT) {
        if (e)
            *e = why;
        return status;
    }
    if (status != TNF_OK)
        return set_unreadable(part, r, t->at, why.message, e);
    TNF_TRY(warn_links(r, t, part->origin, e));
    if (length != part->nbytes)
        return set_unreadable(part, r, t->at, "the length of its data does not match its shape", e);
    if (!tnf_ckd_add(&end, offset, length) || end > size)
        return set_unreadable(part, r, t->at, "its data are beyond the end of their file", e);
    part->offset = offset;
    return tnf_ox_keep_sum(r, t, part->origin, size, e);
}

/* -------------------------------------------------------------------- place */

static tnf_status keep_runs(ox_data *d, const ox_tensor *t, tnf_reader *r, tnf_error *e)
{
    d->n = t->runs.n / sizeof(ox_run);
    ox_run *runs = tnf_arena_array(r->arena, d->n + 1, sizeof *runs);
    if (!runs)
        return tnf_arena_fail(r->arena, "values", e);
    if (d->n)
        memcpy(runs, t->runs.p, t->runs.n);
    d->runs = runs;
    return TNF_OK;
}

tnf_status tnf_ox_place(tnf_part *part, const ox_tensor *t, tnf_reader *r, tnf_error *e)
{
    ox_data d = { .form = OX_RUNS };
    *part = (tnf_part) { .role = "data", .type = tnf_type_named(t->known->type) };
    if (!tnf_type_bytes(&part->nbytes, part->type, t->elements))
        return tnf_fail(e, TNF_EFORMAT, t->at, "a tensor exceeds 2^64 bytes");
    part->stored = part->nbytes;
    part->payload = TNF_AT;
    part->offset = t->raw.offset;
    if (t->external == 1)
        return place_external(part, t, r, e);
    if (!t->typed || t->raw.number)
        return TNF_OK;
    const ox_run *first = (const ox_run *)(const void *)t->runs.p;
    if (!is_varints(t->typed) && t->runs.n == sizeof *first) {
        part->offset = first->at;
        return TNF_OK;
    }
    TNF_TRY(keep_runs(&d, t, r, e));
    d.form = is_varints(t->typed) ? OX_VARINTS : OX_RUNS;
    d.bits = t->known->bits;
    part->payload = TNF_OPAQUE;
    return tnf_ox_push(r, d, &part->offset, e);
}

tnf_status tnf_ox_strings(tnf_part parts[2], const ox_tensor *t, tnf_reader *r, tnf_error *e)
{
    ox_data d = { .form = OX_OFFSETS };
    TNF_TRY(keep_runs(&d, t, r, e));
    uint64_t *ends = tnf_arena_array(r->arena, d.n + 1, sizeof *ends);
    if (!ends)
        return tnf_arena_fail(r->arena, "strings", e);
    for (size_t i = 0; i < d.n; i++)
        ends[i + 1] = ends[i] + d.runs[i].n; /* no overflow: each is in the file */
    d.ends = ends;
    parts[0] = (tnf_part) { .role = "offsets",
                            .type = tnf_type_of(TNF_U64),
                            .payload = TNF_OPAQUE };
    parts[0].stored = parts[0].nbytes = 8 * (d.n + 1);
    TNF_TRY(tnf_ox_push(r, d, &parts[0].offset, e));
    d.form = OX_BYTES;
    parts[1] = (tnf_part) { .role = "bytes", .type = tnf_type_of(TNF_U8), .payload = TNF_OPAQUE };
    parts[1].stored = parts[1].nbytes = ends[d.n];
    return tnf_ox_push(r, d, &parts[1].offset, e);
}
