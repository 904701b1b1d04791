/* SPDX-License-Identifier: MIT */
/* Variables in several slices. The entry of the complete variable has no data. Each slice has its
 * own entry, whose key consists of the name and the place:
 *
 *   00 · name, 00 as 00 ff and ff as ff 00 · 00 01 · rank · for each axis: start, length (-1: all)
 *
 * Numbers have n bytes and begin with n one bits and a zero; negative ones are complemented.
 */
#include "formats/tensorbundle/bundle.h"

#include <string.h>

static void put_signed(tnf_buf *b, int64_t x)
{
    uint64_t v = x < 0 ? ~(uint64_t)x : (uint64_t)x;
    unsigned n = 1;
    while (n < 9 && v >> (7 * n - 1))
        n++;
    uint8_t bytes[10] = { 0 };
    for (unsigned i = 0; i < n; i++)
        bytes[n - 1 - i] = i < 8 ? (uint8_t)(v >> 8 * i) : 0;
    for (unsigned i = 0; i < n; i++) /* n leading ones, possibly in several bytes */
        bytes[i / 8] |= (uint8_t)(0x80u >> i % 8);
    for (unsigned i = 0; i < n; i++)
        tnf_buf_u8(b, x < 0 ? (uint8_t)~bytes[i] : bytes[i]);
}

static void put_name(tnf_buf *b, tnf_str name, uint32_t rank)
{
    tnf_buf_u8(b, 0);
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = (uint8_t)name.p[i];
        tnf_buf_u8(b, c);
        if (c == 0 || c == 0xFF)
            tnf_buf_u8(b, (uint8_t)~c);
    }
    tnf_buf_u8(b, 0);
    tnf_buf_u8(b, 1);
    tnf_buf_u8(b, rank ? 1 : 0);
    if (rank)
        tnf_buf_u8(b, (uint8_t)rank);
}

/* Reads the extents of a slice and makes its key. */
static tnf_status read_slice(tb_slice *s, tnf_buf *key, struct tb_reading *g, const tb_entry *x,
                             tnf_str name, tnf_protobuf m, tnf_error *e)
{
    uint64_t *start = tnf_arena_array(g->r->arena, x->rank + 1, sizeof *start);
    uint64_t *length = tnf_arena_array(g->r->arena, x->rank + 1, sizeof *length);
    tnf_protobuf_field f;
    uint32_t axis = 0;
    if (!start || !length)
        return tnf_arena_fail(g->r->arena, "a slice", e);
    key->n = 0;
    put_name(key, name, x->rank);
    while (tnf_protobuf_more(&m)) {
        uint64_t from = 0, n = 0;
        bool whole = true;
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number != 1 || f.type != TNF_PROTOBUF_LENGTH)
            continue;
        for (tnf_protobuf in = tnf_protobuf_inside(&m, &f); tnf_protobuf_more(&in);) {
            TNF_TRY(tnf_protobuf_next(&in, &f, e));
            from = f.number == 1 ? f.value : from;
            n = f.number == 2 ? f.value : n;
            whole = whole && f.number != 2;
        }
        if (axis == x->rank || from > x->shape[axis] ||
            (!whole && (n > x->shape[axis] - from || n == 0)) || (whole && from > 0))
            return tnf_fail(e, TNF_EFORMAT, m.pos, "a slice is outside its tensor");
        start[axis] = from;
        length[axis] = whole ? x->shape[axis] : n;
        put_signed(key, (int64_t)from);
        put_signed(key, whole ? -1 : (int64_t)n);
        axis++;
    }
    if (axis != x->rank)
        return tnf_fail(e, TNF_EFORMAT, m.pos, "a slice has other dimensions than its tensor");
    s->start = start;
    s->length = length;
    return tnf_buf_status(key, "a key", e);
}

static bool slices_overlap(const tb_slice *a, const tb_slice *b, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++)
        if (a->start[i] + a->length[i] <= b->start[i] || b->start[i] + b->length[i] <= a->start[i])
            return false;
    return true;
}

/* Finds a slice by its key and checks its type and size. */
static tnf_status find_slice(tb_slice *s, struct tb_reading *g, const tb_entry *x, tnf_str name,
                             const tnf_buf *key, uint64_t *sum, tnf_error *e)
{
    tnf_member *known = NULL;
    tb_entry own;
    uint64_t n = 0;
    TNF_TRY(tnf_attrs_find(&g->slices, (const char *)key->p, key->n, &known, e));
    if (!known)
        return tnf_fail(e, TNF_EFORMAT, x->at, "a slice of %s is missing", TNF_QUOTED(name));
    TNF_TRY(tnf_tb_entry(&own, g, known->value.as.u, known->value.n, e));
    bool same = own.type == x->type && own.rank == x->rank && own.nslices == 0 &&
                (x->rank == 0 || memcmp(own.shape, s->length, x->rank * sizeof *own.shape) == 0);
    if (!same || !tnf_shape_elements(&n, own.shape, own.rank) || !tnf_ckd_add(sum, *sum, n))
        return tnf_fail(e, TNF_EFORMAT, own.at, "a slice of %s does not match its tensor",
                        TNF_QUOTED(name));
    TNF_TRY(tnf_tb_part(&s->part, g, name, &own, e));
    s->part.digest = NULL;
    if (s->part.payload == TNF_AT && own.has_crc && own.size)
        TNF_TRY(tnf_tb_check(g->r, (tb_check) { name, s->part, own.crc, 0 }, e));
    return TNF_OK;
}

static tnf_status read_slices(tb_slice *slices, struct tb_reading *g, const tb_entry *x,
                              tnf_str name, tnf_buf *key, tnf_error *e)
{
    tnf_protobuf m = x->slices;
    tnf_protobuf_field f;
    uint64_t sum = 0, elements;
    uint32_t k = 0;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number != 7)
            continue;
        TNF_TRY(read_slice(&slices[k], key, g, x, name, tnf_protobuf_inside(&m, &f), e));
        TNF_TRY(find_slice(&slices[k], g, x, name, key, &sum, e));
        for (uint32_t i = 0; i < k; i++)
            if (slices_overlap(&slices[i], &slices[k], x->rank))
                return tnf_fail(e, TNF_EFORMAT, x->at, "slices of %s overlap", TNF_QUOTED(name));
        k++;
    }
    if (!tnf_shape_elements(&elements, x->shape, x->rank) || elements != sum)
        return tnf_fail(e, TNF_EFORMAT, x->at, "the slices of %s do not fill it", TNF_QUOTED(name));
    return TNF_OK;
}

tnf_status tnf_tb_sliced(struct tb_reading *g, tnf_str name, const tb_entry *x, tnf_error *e)
{
    tnf_reader *r = g->r;
    const tnf_type *type = tnf_tb_types[x->type] ? tnf_type_named(tnf_tb_types[x->type]) : NULL;
    tb_slice *slices = tnf_arena_array(r->arena, x->nslices, sizeof *slices);
    tb_data d = { .form = TB_SLICES, .slices = slices, .nslices = x->nslices, .rank = x->rank };
    tnf_part part = { .role = "data", .type = type, .payload = TNF_OPAQUE };
    tnf_object o = { .name = name,
                     .shape = x->shape,
                     .layout = &tnf_layout_dense,
                     .parts = &part,
                     .rank = x->rank,
                     .nparts = 1 };
    tnf_buf key;
    uint64_t elements;
    if (!slices)
        return tnf_arena_fail(r->arena, "slices", e);
    if (!type || type->bits < 8 || x->nslices > TB_MAX_SLICES)
        return tnf_fail(e, TNF_EUNSUPPORTED, x->at,
                        "%s is in %u slices of the type %llu, which is not supported",
                        TNF_QUOTED(name), x->nslices, (unsigned long long)x->type);
    tnf_buf_init(&key, &r->scratch->alloc, (uint64_t)1 << 20);
    tnf_status status = read_slices(slices, g, x, name, &key, e);
    tnf_buf_free(&key);
    TNF_TRY(status);
    d.shape = x->shape;
    d.width = type->bits / 8;
    if (!tnf_shape_elements(&elements, x->shape, x->rank) ||
        !tnf_type_bytes(&part.nbytes, type, elements))
        return tnf_tb_wrong_size(x, 0, e);
    part.stored = part.nbytes;
    for (uint32_t i = 0; i < x->nslices; i++)
        if (slices[i].part.flags & TNF_PART_UNREADABLE) {
            part.flags = TNF_PART_UNREADABLE;
            part.origin = slices[i].part.origin;
        }
    TNF_TRY(tnf_tb_push(r, d, &part.offset, e));
    TNF_TRY(tnf_tb_attrs(&o.attrs, r, x->type, e));
    return tnf_add_object(r, &o, x->at, e);
}
