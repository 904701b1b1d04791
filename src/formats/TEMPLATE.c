/* SPDX-License-Identifier: MIT */
/* A whole format, to be copied. The format "template" is invented, but this file is compiled and
 * tested like any other, so its code works. docs/adding-a-format.md walks through it.
 *
 * The comment at the top of a format's file says what the format is, and draws its bytes:
 *
 *   "TNFTEMPL"  u32 version=1  u32 index_len          all numbers little-endian
 *   index       u32 note_len, note (UTF-8)
 *               u32 count, then per tensor
 *                 u32 name_len, name, u32 type, u32 rank, u64 dim[rank],
 *                 u64 offset, u64 length             offsets count from the start of the file
 *   data        each tensor begins on a multiple of 64
 */
#include "format.h"

#include <string.h>

#define MAGIC     "TNFTEMPL"
#define HEAD      16u
#define MAX_INDEX ((uint64_t)64 << 20)

/* Facts about the format are in tables. Here the position of a type is its number in a file. */
static const tnf_dtype types[] = { TNF_F32, TNF_I64, TNF_U8 };
#define NTYPES (sizeof types / sizeof types[0])

/* Returns how likely it is that the file has this format. Only the bytes in *p are used; nothing is
 * read. A format without a magic looks at the structure and returns TNF_PROBE_STRUCTURE or less. */
static int probe_template(const tnf_probe *p)
{
    return p->nhead >= 8 && memcmp(p->head, MAGIC, 8) == 0 ? TNF_PROBE_MAGIC : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- reading */

/* One record. The cursor remembers a failed read: read the fields in the order of the drawing, then
 * check once that all were there. Only a number that is multiplied or that sizes an allocation must
 * be checked first: here the rank. */
static tnf_status index_one(tnf_reader *r, tnf_cur *c, tnf_error *e)
{
    tnf_dense d = { .at = tnf_where(c) };
    d.name.n = tnf_u32(c);
    d.name.p = tnf_bytes(c, d.name.n);
    uint64_t type_at = tnf_where(c);
    uint32_t type = tnf_u32(c);
    d.rank = tnf_u32(c);
    if (c->bad || d.rank > tnf_left(c) / 8)
        return tnf_fail(e, TNF_EFORMAT, d.at, "a tensor runs past the end of the index");
    uint64_t *shape = tnf_arena_array(r->scratch, d.rank, sizeof *shape);
    if (!shape)
        return tnf_arena_fail(r->scratch, "a shape", e);
    for (uint32_t i = 0; i < d.rank; i++)
        shape[i] = tnf_u64(c);
    d.shape = shape;
    d.offset = tnf_u64(c);
    d.length = tnf_u64(c);
    if (c->bad)
        return tnf_fail(e, TNF_EFORMAT, d.at, "a tensor runs past the end of the index");
    if (type >= NTYPES)
        return tnf_fail(e, TNF_EUNSUPPORTED, type_at, "%s has the unknown type %u",
                        TNF_QUOTED(d.name), type);
    d.type = tnf_type_of(types[type]);
    /* This checks length against shape, overflow, limits and duplicate names. Ranges against the
     * file and each other are checked for all tensors together, by the rules in the descriptor. */
    return tnf_add_dense(r, &d, e);
}

/* A fact about the file becomes an attribute. Its key begins with the format's name. */
static tnf_status read_note(tnf_reader *r, tnf_cur *c, tnf_error *e)
{
    uint64_t at = tnf_where(c) + 4;
    tnf_str note = { NULL, tnf_u32(c) };
    note.p = tnf_bytes(c, note.n);
    if (!note.p)
        return tnf_fail(e, TNF_EFORMAT, HEAD, "the note runs past the end of the index");
    size_t wrong;
    if (!tnf_utf8_valid(&wrong, note.p, note.n))
        return tnf_fail(e, TNF_EFORMAT, at + wrong, "the note is not UTF-8");
    if (note.n == 0)
        return TNF_OK;
    const char *copy = tnf_arena_str(r->arena, note.p, note.n);
    if (!copy)
        return tnf_arena_fail(r->arena, "the note", e);
    return tnf_set_attr(r, "template.note", tnf_value_str(TNF_STRING, copy, note.n), e);
}

/* Fills the catalog, and does not touch the bytes of tensors. Memory that must outlive this call
 * comes from r->arena, all other memory from r->scratch; none of it is freed here. */
static tnf_status index_template(tnf_reader *r, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "header", 8, 8, 8, &c, e));
    uint32_t version = tnf_u32(&c), index_len = tnf_u32(&c);
    if (version != 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, 8, "version %u is not supported; only version 1 is",
                        version);
    r->version = "1";
    r->data_start = HEAD + (uint64_t)index_len;
    TNF_TRY(tnf_read_range(r, "index", HEAD, index_len, MAX_INDEX, &c, e));
    TNF_TRY(read_note(r, &c, e));
    /* No memory is reserved by the count. If it is too large, index_one() runs out of bytes. */
    for (uint32_t n = tnf_u32(&c); n > 0; n--)
        TNF_TRY(index_one(r, &c, e));
    if (c.bad)
        return tnf_fail(e, TNF_EFORMAT, tnf_where(&c), "the index ends before the tensor count");
    /* Invalid, but suppose that other readers ignore it: an error, or a warning in lenient mode. */
    if (tnf_left(&c) > 0)
        TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, tnf_where(&c), "%s the last tensor of the index",
                             TNF_BYTES_FOLLOW(tnf_left(&c))));
    return TNF_OK;
}

/* ---------------------------------------------------------------- writing */

enum { WRITE_ALIGN }; /* positions in write_options */

static tnf_str note_of(const tnf_writer *w)
{
    const tnf_value attrs = tnf_attrs_value(&w->catalog->attrs);
    const tnf_value *note = tnf_value_get(&attrs, "template.note");
    return note && note->kind == TNF_STRING ? (tnf_str) { note->as.s, note->n }
                                            : (tnf_str) { "", 0 };
}

/* Where the next tensor begins. Empty tensors are not aligned, so no offset is beyond the file. */
static tnf_status place_tensor(uint64_t *out, const tnf_writer *w, uint64_t at, const tnf_object *o,
                               tnf_error *e)
{
    uint64_t end;
    *out = at;
    if (o->parts[0].nbytes > 0 && (!tnf_ckd_align(out, at, w->options[WRITE_ALIGN].u) ||
                                   !tnf_ckd_add(&end, *out, o->parts[0].nbytes)))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the file would exceed 2^64 bytes");
    return TNF_OK;
}

static uint32_t type_number(const tnf_type *type)
{
    uint32_t i = 0;
    while (i + 1 < NTYPES && types[i] != type->storage)
        i++;
    return i; /* the core passes only the types that .can lists */
}

static tnf_status put_one(tnf_writer *w, const tnf_object *o, uint64_t at, tnf_error *e)
{
    TNF_TRY(tnf_put_u32(w, (uint32_t)o->name.n, e));
    TNF_TRY(tnf_put(w, o->name.p, o->name.n, e));
    TNF_TRY(tnf_put_u32(w, type_number(o->parts[0].type), e));
    TNF_TRY(tnf_put_u32(w, o->rank, e));
    for (uint32_t i = 0; i < o->rank; i++)
        TNF_TRY(tnf_put_u64(w, o->shape[i], e));
    TNF_TRY(tnf_put_u64(w, at, e));
    return tnf_put_u64(w, o->parts[0].nbytes, e);
}

/* Writes front to back and cannot seek, so a first pass computes the length of the index. The
 * catalog holds only what .can declares; a catalog without a note gets an empty one. */
static tnf_status write_template(tnf_writer *w, tnf_error *e)
{
    const tnf_catalog *k = w->catalog;
    const tnf_str note = note_of(w);
    uint64_t align = w->options[WRITE_ALIGN].u, index_len = 4 + note.n + 4;
    if (align == 0 || (align & (align - 1)) != 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "align must be a power of two");
    for (size_t i = 0; i < k->n && index_len <= MAX_INDEX; i++)
        index_len += 28 + k->objects[i].name.n + 8 * (uint64_t)k->objects[i].rank;
    if (index_len > MAX_INDEX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the index would exceed 64 MiB");

    TNF_TRY(tnf_put(w, MAGIC, 8, e));
    TNF_TRY(tnf_put_u32(w, 1, e));
    TNF_TRY(tnf_put_u32(w, (uint32_t)index_len, e));
    TNF_TRY(tnf_put_u32(w, (uint32_t)note.n, e));
    TNF_TRY(tnf_put(w, note.p, note.n, e));
    TNF_TRY(tnf_put_u32(w, (uint32_t)k->n, e));
    uint64_t at = HEAD + index_len;
    for (size_t i = 0; i < k->n; i++) {
        TNF_TRY(place_tensor(&at, w, at, &k->objects[i], e));
        TNF_TRY(put_one(w, &k->objects[i], at, e));
        at += k->objects[i].parts[0].nbytes;
    }
    for (size_t i = 0; i < k->n; i++) {
        TNF_TRY(place_tensor(&at, w, w->sink->written, &k->objects[i], e));
        TNF_TRY(tnf_put_fill(w, 0, at - w->sink->written, e));
        TNF_TRY(tnf_put_data(w, &k->objects[i].parts[0], e));
    }
    return TNF_OK;
}

static const tnf_option_info write_options[] = {
    { "align", TNF_OPTION_UINT, NULL, "64", "begin every tensor on a multiple of this" },
    { 0 },
};

/* The only symbol that is not static. `.can` says what the format can hold, so that the core can
 * refuse, or find another way, before write() is called. */
const tnf_format tnf_format_template = {
    .name = "template",
    .title = "Template (an example)",
    .extensions = "tmpl",
    .family = "template",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .rules = TNF_RULE_DATA_START | TNF_RULE_NO_OVERLAP,
    .can = { .types = "f32 i64 u8",
             .layouts = "dense",
             .zero_rank = true,
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = "template.note" },
    .write_options = write_options,
    .probe = probe_template,
    .index = index_template,
    .write = TNF_WRITES(write_template),
};
