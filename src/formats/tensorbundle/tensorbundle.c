/* SPDX-License-Identifier: MIT */
/* TensorFlow's checkpoints ("V2") and the variables of a SavedModel: PREFIX.index, and the data in
 * PREFIX.data-00000-of-0000N.
 *
 *   key ""       BundleHeaderProto  1 num_shards · 2 endianness · 3 version {2 min_consumer}
 *   key name     BundleEntryProto   1 dtype · 2 shape · 3 shard · 4 offset · 5 size
 *                                   6 crc32c (fixed, masked) · 7 slices
 *   key 00 …     the same, for a slice of a tensor
 *   shape        2 dim {1 size} · 3 unknown_rank
 *   slice        1 extent {1 start, 2 length; no length: the whole axis}
 *   strings      a varint length for each, u32 masked CRC-32C of the lengths, then the bytes
 *
 * table.c reads the keys. Elements with less than 8 bits take a byte each.
 */
#include "formats/tensorbundle/bundle.h"

#include <stdio.h>
#include <string.h>

#define SHARDS "tensorbundle.shards"
#define DTYPE  "tensorbundle.dtype"
#define STRING 7u

/* By type number. */
const char *const tnf_tb_types[] = {
    NULL,   "f32",         "f64", "i32", "u8",  "i16",  "i8",      NULL,        "c64",
    "i64",  "bool",        "i8",  "u8",  "i32", "bf16", "i16",     "u16",       "u16",
    "c128", "f16",         NULL,  NULL,  "u32", "u64",  "f8_e5m2", "f8_e4m3fn", "f8_e4m3fnuz",
    NULL,   "f8_e5m2fnuz", "i4",  "u4",  "i2",  "u2",   "f4_e2m1",
};
#define NTYPES (sizeof tnf_tb_types / sizeof *tnf_tb_types)

/* --------------------------------------------------------------------- probe */

static int probe_tensorbundle(const tnf_probe *p)
{
    static const uint8_t magic[8] = { 0x57, 0xFB, 0x80, 0x8B, 0x24, 0x75, 0x47, 0xDB };
    bool ends = p->ntail >= 48 && memcmp(p->tail + p->ntail - 8, magic, 8) == 0;
    bool begins = p->nhead > 4 && p->head[0] == 0 && p->head[1] == 0 && p->head[2] < 0x80 &&
                  (p->head[3] == 0x08 || p->head[3] == 0x0A);
    if (ends && begins)
        return TNF_PROBE_MAGIC;
    return strcmp(p->ext, "index") == 0 && (begins || ends || p->nhead == 0) ? TNF_PROBE_EXTENSION
                                                                             : TNF_PROBE_NO;
}

/* ------------------------------------------------------------------- entries */

static tnf_status wrong_entry(uint64_t at, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, at, "an entry is invalid");
}

static tnf_status read_dim(tb_entry *x, struct tb_reading *g, tnf_protobuf m, tnf_error *e)
{
    tnf_protobuf_field f;
    uint64_t size = 0, at = m.pos;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number == 1)
            size = f.value;
    }
    if (size > INT64_MAX)
        return tnf_fail(e, TNF_EFORMAT, at, "a dimension is %lld, but must not be negative",
                        (long long)size);
    if (x->rank == TB_MAX_RANK)
        return tnf_fail(e, TNF_ELIMIT, at, "a tensor has more than %u dimensions", TB_MAX_RANK);
    if (x->rank % 8 == 0) {
        uint64_t *shape = tnf_arena_array(g->r->arena, x->rank + 8, sizeof *shape);
        if (!shape)
            return tnf_arena_fail(g->r->arena, "a shape", e);
        if (x->rank)
            memcpy(shape, x->shape, x->rank * sizeof *shape);
        x->shape = shape;
    }
    x->shape[x->rank++] = size;
    return TNF_OK;
}

static tnf_status read_shape(tb_entry *x, struct tb_reading *g, tnf_protobuf m, tnf_error *e)
{
    tnf_protobuf_field f;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number == 2 && f.type == TNF_PROTOBUF_LENGTH)
            TNF_TRY(read_dim(x, g, tnf_protobuf_inside(&m, &f), e));
        else if (f.number == 3 && f.value)
            return tnf_fail(e, TNF_EFORMAT, f.at, "a tensor has an unknown shape");
    }
    return TNF_OK;
}

tnf_status tnf_tb_entry(tb_entry *x, struct tb_reading *g, uint64_t at, uint64_t n, tnf_error *e)
{
    tnf_protobuf m = { g->in, at, at + n };
    tnf_protobuf_field f;
    *x = (tb_entry) { .at = at, .slices = m };
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        bool message = f.type == TNF_PROTOBUF_LENGTH;
        if ((f.number == 2 || f.number == 7) != message && f.number <= 7)
            return wrong_entry(f.at, e);
        switch (f.number) {
        case 1:
            x->type = f.value;
            break;
        case 2:
            TNF_TRY(read_shape(x, g, tnf_protobuf_inside(&m, &f), e));
            break;
        case 3:
            x->shard = f.value;
            break;
        case 4:
            x->offset = f.value;
            break;
        case 5:
            x->size = f.value;
            break;
        case 6:
            x->crc = tnf_tb_unmask((uint32_t)f.value);
            x->has_crc = true;
            break;
        case 7:
            x->nslices++;
            break;
        default:
            break;
        }
    }
    if (x->shard >= g->nshards)
        return tnf_fail(
            e, TNF_EFORMAT, at,
            "a tensor is in shard number %llu (from 0), but the number of shards is %llu",
            (unsigned long long)x->shard, (unsigned long long)g->nshards);
    if (x->offset > INT64_MAX || x->size > INT64_MAX)
        return tnf_fail(e, TNF_EFORMAT, at, "the end of a tensor is beyond 2^63");
    return TNF_OK;
}

/* ---------------------------------------------------------------------- data */

/* Finds the data file of a shard and opens it on first use. */
static tnf_status find_shard(tb_place **out, struct tb_reading *g, const tb_entry *x, tnf_error *e)
{
    tb_place *p = &g->shards[x->shard];
    tnf_reader *r = g->r;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    *out = p;
    if (p->asked)
        return TNF_OK;
    p->asked = true;
    const char *stem = r->stem ? r->stem : "";
    size_t n = strlen(stem) + 40;
    char *name = tnf_arena_raw(r->arena, n);
    if (!name)
        return tnf_arena_fail(r->arena, "a file's name", e);
    int length = snprintf(name, n, "%s.data-%05llu-of-%05llu", stem, (unsigned long long)x->shard,
                          (unsigned long long)g->nshards);
    tnf_str file = { name, (size_t)length };
    tnf_status status = tnf_open_data(r, &p->origin, &p->size, file, &why);
    if (status == TNF_ENOTFOUND) {
        TNF_TRY(tnf_miss(r, &p->missing, file, x->at, e));
        return tnf_missing_origin(r, &p->origin, p->missing, e);
    }
    if (status == TNF_OK)
        return TNF_OK;
    if (status == TNF_ENOMEM || status == TNF_ELIMIT) {
        if (e)
            *e = why;
        return status;
    }
    p->why = tnf_arena_str(r->arena, why.message, strlen(why.message));
    tnf_warn(r, x->at, "%s", why.message);
    return p->why ? tnf_unreadable_origin(r, &p->origin, p->why, e)
                  : tnf_arena_fail(r->arena, "a reason", e);
}

static tnf_status make_digest(const tnf_digest **out, tnf_reader *r, uint32_t crc, tnf_error *e)
{
    tnf_digest *d = tnf_arena_alloc(r->arena, sizeof *d);
    uint8_t *bytes = tnf_arena_raw(r->arena, 4);
    if (!d || !bytes)
        return tnf_arena_fail(r->arena, "a checksum", e);
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(crc >> (24 - 8 * i));
    *d = (tnf_digest) { .algorithm = "crc32c", .bytes = bytes, .n = 4, .of_stored = true };
    *out = d;
    return TNF_OK;
}

/* Places the plain bytes of an entry. */
static tnf_status place_entry(tnf_part *part, struct tb_reading *g, const tb_entry *x, tnf_error *e)
{
    tb_place *p;
    *part = (tnf_part) { .role = "data", .type = tnf_type_of(TNF_U8), .payload = TNF_AT };
    part->stored = part->nbytes = x->size;
    if (x->size == 0)
        return TNF_OK;
    TNF_TRY(find_shard(&p, g, x, e));
    part->origin = p->origin;
    part->offset = x->offset;
    if (p->missing || p->why) {
        part->payload = TNF_OPAQUE;
        part->flags |= TNF_PART_UNREADABLE;
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------- tensors */

tnf_status tnf_tb_attrs(const tnf_value **out, tnf_reader *r, uint64_t type, tnf_error *e)
{
    tnf_attrs attrs = { .arena = r->arena };
    *out = NULL;
    if (type < 11 || type > 16 || type == 14)
        return TNF_OK;
    tnf_value *map = tnf_arena_alloc(r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(r->arena, "attributes", e);
    TNF_TRY(tnf_attrs_push(&attrs, DTYPE, tnf_value_uint(type), e));
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

/* Lists a tensor of an unsupported type under TensorFlow's name of the type. */
static tnf_status list_only(tnf_part *part, tnf_reader *r, uint64_t type, tnf_error *e)
{
    char why[96];
    tnf_type *own = tnf_arena_alloc(r->arena, sizeof *own);
    if (!own)
        return tnf_arena_fail(r->arena, "a type", e);
    const char *name = type == 20 ? "resource" : type == 21 ? "variant" : "float8_e4m3b11fnuz";
    *own = (tnf_type) { name, TNF_U8, TNF_NUMBER_OPAQUE, type == 27 ? 8 : 0 };
    snprintf(why, sizeof why, "elements of the type %s are not supported", name);
    part->type = own;
    part->flags |= TNF_PART_UNREADABLE;
    part->payload = TNF_OPAQUE;
    return tnf_unreadable_origin(r, &part->origin, why, e);
}

tnf_status tnf_tb_wrong_size(const tb_entry *x, uint64_t elements, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, x->at, "%llu elements of the type %llu do not have %llu bytes",
                    (unsigned long long)elements, (unsigned long long)x->type,
                    (unsigned long long)x->size);
}

/* A dense tensor, or a slice of one: makes its part, which may have to be packed. */
tnf_status tnf_tb_part(tnf_part *part, struct tb_reading *g, tnf_str name, const tb_entry *x,
                       tnf_error *e)
{
    tnf_reader *r = g->r;
    const tnf_type *type = tnf_type_named(tnf_tb_types[x->type]);
    uint64_t elements, bytes, width = type->bits < 8 ? 1 : type->bits / 8;
    if (!tnf_shape_elements(&elements, x->shape, x->rank) || !tnf_ckd_mul(&bytes, elements, width))
        return tnf_fail(e, TNF_EFORMAT, x->at, "the product of the dimensions exceeds 2^64");
    if (bytes != x->size)
        return tnf_tb_wrong_size(x, elements, e);
    TNF_TRY(place_entry(part, g, x, e));
    if (type->bits >= 8) {
        part->type = type;
        part->flags |= g->big && width > 1 ? TNF_PART_BIG_ENDIAN : 0;
        return x->has_crc && part->payload == TNF_AT ? make_digest(&part->digest, r, x->crc, e)
                                                     : TNF_OK;
    }
    tb_data d = { .form = TB_PACKED, .part = *part, .elements = elements };
    d.bits = (uint8_t)type->bits;
    bool there = part->payload == TNF_AT;
    if (there && x->has_crc && x->size)
        TNF_TRY(tnf_tb_check(r, (tb_check) { name, *part, x->crc, 0 }, e));
    if (!tnf_type_bytes(&part->nbytes, type, elements))
        return tnf_tb_wrong_size(x, elements, e);
    part->type = type;
    part->payload = TNF_OPAQUE;
    part->origin = there ? NULL : part->origin;
    if (!part->origin) /* needs an origin of this file for decoding */
        part->flags &= (uint8_t)~TNF_PART_UNREADABLE;
    return tnf_tb_push(r, d, &part->offset, e);
}

/* Computes the ends of strings from the lengths before them. */
static tnf_status read_ends(uint64_t *ends, uint64_t n, const tnf_part *part, uint64_t *at,
                            tnf_error *e)
{
    uint8_t block[4096];
    size_t have = 0, used = 0;
    uint64_t from = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t v = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (used == have) {
                from += have;
                have = part->nbytes - from < sizeof block ? (size_t)(part->nbytes - from)
                                                          : sizeof block;
                used = 0;
                if (have == 0 || shift > 63)
                    return tnf_fail(e, TNF_EFORMAT, part->offset + from,
                                    "the lengths of strings end too early");
                TNF_TRY(tnf_read_part(block, have, part, from, e));
            }
            if (shift > 63)
                return tnf_fail(e, TNF_EFORMAT, part->offset + from, "a length is invalid");
            v |= (uint64_t)(block[used] & 0x7F) << shift;
            if (block[used++] < 0x80)
                break;
        }
        if (!tnf_ckd_add(&ends[i + 1], ends[i], v) || ends[i + 1] > part->nbytes)
            return tnf_fail(e, TNF_EFORMAT, part->offset + from, "strings exceed their tensor");
    }
    *at = from + used;
    return TNF_OK;
}

/* Strings in a truncated data file: their lengths are unknown. They are listed, but reading either
 * part fails. */
static tnf_status add_cut(struct tb_reading *g, const tnf_object *o, const tnf_part *whole,
                          const tb_entry *x, uint64_t n, tnf_error *e)
{
    uint64_t size = g->shards[x->shard].size;
    tb_data d = { .form = TB_CUT };
    tnf_part parts[2] = { { .role = "offsets", .type = tnf_type_of(TNF_U64) }, *whole };
    d.part.offset = size;
    d.part.nbytes = whole->offset + whole->nbytes - size;
    parts[0].payload = TNF_OPAQUE;
    parts[0].stored = parts[0].nbytes = 8 * (n + 1);
    TNF_TRY(tnf_tb_push(g->r, d, &parts[0].offset, e));
    parts[1].role = "bytes";
    return tnf_add_parts(g->r, o, o->layout, parts, 2, x->at, e);
}

static tnf_status add_strings(struct tb_reading *g, tnf_str name, const tb_entry *x, tnf_error *e)
{
    tnf_reader *r = g->r;
    tnf_part whole, parts[2];
    uint64_t n, at = 0;
    tnf_object o = { .name = name,
                     .shape = x->shape,
                     .layout = tnf_layout_named("strings/1", 9),
                     .parts = parts,
                     .rank = x->rank,
                     .nparts = 2 };
    TNF_TRY(place_entry(&whole, g, x, e));
    if (g->shards[x->shard].missing)
        return tnf_add_missing(r, name, g->shards[x->shard].missing, x->at, e);
    if (!tnf_shape_elements(&n, x->shape, x->rank) || n > x->size)
        return tnf_tb_wrong_size(x, n, e);
    if (whole.payload == TNF_AT && x->size && x->offset + x->size > g->shards[x->shard].size)
        return add_cut(g, &o, &whole, x, n, e);
    uint64_t *ends = tnf_arena_array(r->arena, n + 1, sizeof *ends);
    if (!ends)
        return tnf_arena_fail(r->arena, "strings", e);
    if (whole.payload == TNF_AT && x->size)
        TNF_TRY(read_ends(ends, n, &whole, &at, e));
    if (whole.payload == TNF_AT && x->size && x->size - at != ends[n] + 4)
        return tnf_tb_wrong_size(x, n, e);
    tb_data d = { .form = TB_ENDS, .ends = ends };
    parts[0] = (tnf_part) { .role = "offsets",
                            .type = tnf_type_of(TNF_U64),
                            .payload = TNF_OPAQUE };
    parts[0].stored = parts[0].nbytes = 8 * (n + 1);
    TNF_TRY(tnf_tb_push(r, d, &parts[0].offset, e));
    parts[1] = whole;
    parts[1].role = "bytes";
    parts[1].offset += at + 4;
    parts[1].stored = parts[1].nbytes = ends[n];
    if (whole.payload == TNF_AT && x->has_crc && x->size)
        TNF_TRY(tnf_tb_check(r, (tb_check) { name, whole, x->crc, n }, e));
    return tnf_add_object(r, &o, x->at, e);
}

/* --------------------------------------------------------------------- index */

static tnf_status add_tensor(struct tb_reading *g, tnf_str name, const tb_entry *x, tnf_error *e)
{
    tnf_part part;
    tnf_object o = { .name = name,
                     .shape = x->shape,
                     .layout = &tnf_layout_dense,
                     .parts = &part,
                     .rank = x->rank,
                     .nparts = 1 };
    bool listed = x->type == 20 || x->type == 21 || x->type == 27;
    if (x->type == 0 || x->type >= NTYPES)
        return tnf_fail(e, TNF_EUNSUPPORTED, x->at, "%s has the unknown type %llu",
                        TNF_QUOTED(name), (unsigned long long)x->type);
    if (x->nslices)
        return tnf_tb_sliced(g, name, x, e);
    if (x->type == STRING)
        return add_strings(g, name, x, e);
    if (listed) {
        TNF_TRY(place_entry(&part, g, x, e));
        TNF_TRY(list_only(&part, g->r, x->type, e));
    } else {
        TNF_TRY(tnf_tb_part(&part, g, name, x, e));
    }
    TNF_TRY(tnf_tb_attrs(&o.attrs, g->r, x->type, e));
    return tnf_add_object(g->r, &o, x->at, e);
}

static tnf_status read_header(struct tb_reading *g, uint64_t at, uint64_t n, tnf_error *e)
{
    tnf_protobuf m = { g->in, at, at + n };
    tnf_protobuf_field f, v;
    uint64_t endian = 0;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number == 1 && f.type == TNF_PROTOBUF_LENGTH)
            return tnf_fail(e, TNF_EUNSUPPORTED, at,
                            "this is a TensorFlow V1 checkpoint, which is not supported");
        if (f.number == 1)
            g->nshards = f.value;
        else if (f.number == 2)
            endian = f.value;
        for (tnf_protobuf in = tnf_protobuf_inside(&m, &f);
             f.number == 3 && f.type == TNF_PROTOBUF_LENGTH && tnf_protobuf_more(&in);) {
            TNF_TRY(tnf_protobuf_next(&in, &v, e));
            if (v.number == 2 && v.value > 1)
                return tnf_fail(
                    e, TNF_EUNSUPPORTED, v.at,
                    "the file requires a reader of version %llu; only version 1 is supported",
                    (unsigned long long)v.value);
        }
    }
    if (g->nshards == 0 || g->nshards > TB_MAX_SHARDS || endian > 1)
        return tnf_fail(e, TNF_EFORMAT, at,
                        "the header is invalid: it says %llu shards and byte order %llu",
                        (unsigned long long)g->nshards, (unsigned long long)endian);
    g->header = true;
    g->big = endian == 1;
    g->shards = tnf_arena_array(g->r->scratch, g->nshards, sizeof *g->shards);
    if (!g->shards)
        return tnf_arena_fail(g->r->scratch, "shards", e);
    return tnf_set_attr(g->r, SHARDS, tnf_value_uint(g->nshards), e);
}

static tnf_status take_key(void *ctx, tnf_str key, uint64_t at, uint64_t n, tnf_error *e)
{
    struct tb_reading *g = ctx;
    tb_entry x;
    if (!g->header)
        return key.n == 0 ? read_header(g, at, n, e)
                          : tnf_fail(e, TNF_EFORMAT, at, "the header is missing");
    if (key.p[0] == 0) {
        tnf_value place = { .kind = TNF_UINT, .dtype = TNF_U64, .n = (size_t)n, .as.u = at };
        return tnf_attrs_set(&g->slices, key.p, key.n, place, e);
    }
    TNF_TRY(tnf_tb_entry(&x, g, at, n, e));
    return add_tensor(g, key, &x, e);
}

static tnf_status index_tensorbundle(tnf_reader *r, tnf_error *e)
{
    struct tb_reading g = { .r = r };
    tb_table table = { .r = r, .take = take_key, .ctx = &g };
    r->state = tnf_arena_alloc(r->arena, sizeof(tb_state));
    if (!r->state)
        return tnf_arena_fail(r->arena, "the index", e);
    g.slices.arena = r->scratch;
    TNF_TRY(tnf_protobuf_over(&g.in, tnf_source_fetch, (void *)(uintptr_t)r->source,
                              r->source->size, r->scratch, e));
    TNF_TRY(tnf_tb_table(&table, e));
    return g.header ? TNF_OK : tnf_fail(e, TNF_EFORMAT, 0, "the header is missing");
}

const tnf_format tnf_format_tensorbundle = {
    .name = "tensorbundle",
    .title = "TensorFlow checkpoint (.index, .data-*), SavedModel",
    .extensions = "index",
    .family = "tensorbundle",
    .caps = TNF_CAN_READ,
    .can = { .derived = SHARDS },
    .inside = "variables/variables.index",
    .suffix = ".index",
    .data_suffix = ".data-#####-of-#####",
    .choice = "checkpoint",
    .chosen = tnf_tb_chosen,
    .probe = probe_tensorbundle,
    .index = index_tensorbundle,
    .decode = tnf_tb_decode,
    .verify = tnf_tb_verify,
};
