/* SPDX-License-Identifier: MIT */
/* The places of tensors, and the bytes between and after them.
 *
 *   header      data start                                           end
 *   ├──────┤00000├── a ──┤00├── b ──┤000├── gap ──┤── c ──┤000┤ trailing ┤
 *
 * llama.cpp requires each tensor directly after the previous one, padded to the alignment, in the
 * order of the entries. The format allows gaps and another order. Attributes gguf_file.* record
 * such deviations. They describe a file and are not content.
 */
#include "formats/gguf/gguf.h"
#include <tenfold/value.h>

#include <stdlib.h>

#define LOOKED  ((uint64_t)16 << 20) /* in files up to this size all padding is checked */
#define TRAILER ((uint64_t)1 << 20)  /* up to this many zeros after the data are not content */
#define PIECE   4096u

static tnf_status set_fact(tnf_reader *r, const char *key, const char *text, tnf_error *e)
{
    return tnf_set_attr(r, key, tnf_value_string(text), e);
}

/* Does [from, to) have bytes other than zero? */
static tnf_status find_nonzero(tnf_reader *r, uint64_t from, uint64_t to, bool *any, tnf_error *e)
{
    uint8_t bytes[PIECE];
    for (; from < to && !*any; from += PIECE) {
        size_t n = to - from < PIECE ? (size_t)(to - from) : PIECE;
        TNF_TRY(tnf_source_read(r->source, from, bytes, n, e));
        for (size_t i = 0; i < n && !*any; i++)
            *any = bytes[i] != 0;
    }
    return TNF_OK;
}

/* ----------------------------------------------------------------- adding */

static tnf_status block_attrs(tnf_reader *r, const tnf_layout *layout, const tnf_value **out,
                              tnf_error *e)
{
    tnf_attrs attrs = { .arena = r->arena };
    tnf_value *map = tnf_arena_alloc(r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(r->arena, "attributes", e);
    /* in the order in which zTensor 2 returns them */
    TNF_TRY(tnf_attrs_push(&attrs, "block_bytes", tnf_value_uint(layout->block_bytes), e));
    TNF_TRY(tnf_attrs_push(&attrs, "elems_per_block", tnf_value_uint(layout->block_elements), e));
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

static tnf_object object_of(const gguf_entry *t)
{
    return (tnf_object) {
        .name = t->name, .shape = t->shape, .rank = t->rank, .nparts = 1, .order = TNF_ORDER_C
    };
}

/* The attributes of blocks are the same in all tensors of a type, so they are made once per
 * type. */
static tnf_status add_blocks(tnf_reader *r, gguf_file *g, const gguf_entry *t, uint64_t offset,
                             const tnf_value **made, tnf_error *e)
{
    tnf_object o = object_of(t);
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .offset = offset,
                      .stored = t->nbytes,
                      .nbytes = t->nbytes,
                      .payload = TNF_AT };
    o.parts = &part;
    o.layout = tnf_gguf_layout(t->type);
    if (!made[t->id])
        TNF_TRY(block_attrs(r, o.layout, &made[t->id], e));
    o.attrs = made[t->id];
    if (g->big && !g->blocks_little && t->type->little_only) {
        part.flags = TNF_PART_BIG_ENDIAN; /* kept as bytes, since they cannot be decoded */
        tnf_warn(r, t->at, "the blocks of %s are big-endian, a form of %s that no program supports",
                 TNF_QUOTED(t->name), t->type->name);
    } else if (g->big && !g->blocks_little && t->type->fields[0].count) {
        part.payload = TNF_OPAQUE;
        if (t->nbytes > 0 && offset + t->nbytes > r->source->size)
            part.flags = TNF_PART_UNREADABLE;
    }
    TNF_TRY(tnf_gguf_check_order(r, g, t, offset, e));
    return tnf_add_object(r, &o, t->at, e);
}

/* In lenient mode the tensor is listed, with all bytes up to the next one. */
static tnf_status add_unknown(tnf_reader *r, const gguf_entry *t, uint64_t offset, tnf_error *e)
{
    tnf_object o = object_of(t);
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .offset = offset,
                      .stored = t->nbytes,
                      .nbytes = t->nbytes,
                      .payload = TNF_AT,
                      .flags = TNF_PART_UNREADABLE };
    o.parts = &part;
    o.layout = tnf_layout_unknown(r->arena, GGUF_UNKNOWN, sizeof GGUF_UNKNOWN - 1);
    if (!o.layout)
        return tnf_arena_fail(r->arena, "a layout", e);
    return tnf_add_object(r, &o, t->at, e);
}

static tnf_status add_dense(tnf_reader *r, const gguf_file *g, const gguf_entry *t, uint64_t offset,
                            tnf_error *e)
{
    tnf_dense d = { .name = t->name,
                    .type = tnf_type_named(t->type->name),
                    .shape = t->shape,
                    .rank = t->rank,
                    .offset = offset,
                    .length = t->nbytes,
                    .at = t->at };
    d.flags = g->big && d.type->bits > 8 ? TNF_PART_BIG_ENDIAN : 0;
    return tnf_add_dense(r, &d, e);
}

static tnf_status add_all(tnf_reader *r, gguf_file *g, tnf_error *e)
{
    const tnf_value *made[64] = { NULL }; /* by the id of the type */
    TNF_TRY(tnf_catalog_reserve(r->catalog, g->n, e));
    for (size_t i = 0; i < g->n; i++) {
        const gguf_entry *t = &g->entries[i];
        uint64_t offset = r->data_start + t->offset;
        TNF_TRY(!t->type         ? add_unknown(r, t, offset, e)
                : t->type->dense ? add_dense(r, g, t, offset, e)
                                 : add_blocks(r, g, t, offset, made, e));
    }
    return TNF_OK;
}

/* ----------------------------------------------------------------- places */

static int by_offset(const void *a, const void *b)
{
    const gguf_entry *x = *(const gguf_entry *const *)a, *y = *(const gguf_entry *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if ((x->nbytes == 0) != (y->nbytes == 0)) /* empty tensors first: they take no space */
        return x->nbytes == 0 ? -1 : 1;
    return x < y ? -1 : x > y;
}

static tnf_status sort_places(tnf_reader *r, const gguf_file *g, const gguf_entry ***out,
                              tnf_error *e)
{
    const gguf_entry **order = tnf_arena_array(r->scratch, g->n + 1, sizeof *order);
    bool sorted = true;
    if (!order)
        return tnf_arena_fail(r->scratch, "checking", e);
    for (size_t i = 0; i < g->n; i++) {
        order[i] = &g->entries[i];
        sorted = sorted && (i == 0 || by_offset(&order[i - 1], &order[i]) <= 0);
    }
    if (!sorted)
        qsort(order, g->n, sizeof *order, by_offset);
    *out = order;
    return TNF_OK;
}

/* Offsets must be multiples of the alignment and must not overflow. */
static tnf_status check_offset(tnf_reader *r, const gguf_file *g, const gguf_entry *t, tnf_error *e)
{
    uint64_t begin, end;
    if (!tnf_ckd_add(&begin, r->data_start, t->offset) || !tnf_ckd_add(&end, begin, t->nbytes) ||
        end > GGUF_MOST)
        return tnf_fail(e, TNF_EFORMAT, t->at, "the end of %s is beyond 2^63", TNF_QUOTED(t->name));
    if (t->offset % g->alignment != 0)
        TNF_TRY(tnf_stricter(
            r, e, TNF_EFORMAT, t->at,
            "%s begins at byte %llu of the data, which is not a multiple of the alignment, %u",
            TNF_QUOTED(t->name), (unsigned long long)t->offset, g->alignment));
    return TNF_OK;
}

/* Tensors of an unknown type extend up to the next tensor, or to the end. */
static void measure_unknown(tnf_reader *r, const gguf_entry **order, size_t n)
{
    uint64_t size = r->source->size, next = size, here = size;
    for (size_t i = n; i-- > 0;) {
        gguf_entry *t = (gguf_entry *)(uintptr_t)order[i];
        uint64_t begin = r->data_start + t->offset;
        if (begin != here) { /* tensors with the same offset extend equally far */
            next = here < size ? here : size;
            here = begin;
        }
        if (!t->type)
            t->nbytes = next > begin ? next - begin : 0;
    }
}

/* The core checks the places of plain bytes. Blocks that must be swapped are opaque to it, so this
 * function checks them. */
static tnf_status check_swapped(tnf_reader *r, const gguf_file *g, const gguf_entry **order,
                                tnf_error *e)
{
    const gguf_entry *last = NULL;
    if (!g->big || g->blocks_little)
        return TNF_OK;
    for (size_t i = 0; i < g->n; i++) {
        const gguf_entry *t = order[i];
        uint64_t end = r->data_start + t->offset + t->nbytes;
        bool in_blocks = t->type && !t->type->dense;
        if (in_blocks && end > r->source->size)
            TNF_TRY(tnf_stricter(r, e, TNF_ETRUNCATED, r->source->size,
                                 "the file has %llu bytes, its index needs %llu: %s "
                                 "missing (cut short?)",
                                 (unsigned long long)r->source->size, (unsigned long long)end,
                                 TNF_BYTES_ARE(end - r->source->size)));
        if (t->nbytes == 0)
            continue;
        if (last && t->offset < last->offset + last->nbytes &&
            (in_blocks || !last->type || !last->type->dense))
            return tnf_fail(e, TNF_EFORMAT, r->data_start + t->offset,
                            "%s and %s share bytes from %llu on", TNF_QUOTED(last->name),
                            TNF_QUOTED(t->name), (unsigned long long)(r->data_start + t->offset));
        if (!last || t->offset + t->nbytes > last->offset + last->nbytes)
            last = t;
    }
    return TNF_OK;
}

/* Warns if a tensor is not directly after the previous one, and keeps the offsets. */
static tnf_status record_offsets(tnf_reader *r, gguf_file *g, tnf_error *e)
{
    uint64_t next = 0;
    size_t odd = g->n;
    for (size_t i = 0; i < g->n && odd == g->n; i++) {
        if (g->entries[i].offset != next ||
            !tnf_ckd_align(&next, next + g->entries[i].nbytes, g->alignment))
            odd = i;
    }
    g->in_order = odd == g->n;
    if (g->in_order)
        return TNF_OK;
    tnf_warn(r, g->entries[odd].at,
             "%s is not directly after the previous tensor: llama.cpp will not load this",
             TNF_QUOTED(g->entries[odd].name));
    tnf_value *items = tnf_arena_array(r->arena, g->n, sizeof *items);
    if (!items)
        return tnf_arena_fail(r->arena, "offsets", e);
    for (size_t i = 0; i < g->n; i++)
        items[i] = tnf_value_uint(g->entries[i].offset);
    return tnf_set_attr(r, "gguf_file.offsets", tnf_value_array(items, g->n), e);
}

/* ---------------------------------------------------- between and after them */

static tnf_status check_padding(tnf_reader *r, const gguf_file *g, const gguf_entry **order,
                                tnf_error *e)
{
    uint64_t size = r->source->size, end = r->data_start;
    bool any = false;
    TNF_TRY(find_nonzero(r, g->header_end, end < size ? end : size, &any, e));
    for (size_t i = 0; i < g->n && !any && size <= LOOKED; i++) {
        uint64_t begin = r->data_start + order[i]->offset;
        if (begin > end && begin <= size)
            TNF_TRY(find_nonzero(r, end, begin, &any, e));
        end = begin + order[i]->nbytes > end ? begin + order[i]->nbytes : end;
    }
    uint64_t last;
    if (!any && size <= LOOKED && end < size && tnf_ckd_align(&last, end, g->alignment))
        TNF_TRY(find_nonzero(r, end, last < size ? last : size, &any, e));
    if (!any)
        return TNF_OK;
    tnf_warn(r, TNF_NO_OFFSET, "padding or a gap contains bytes other than 0");
    return set_fact(r, "gguf_file.padding", "not zero", e);
}

static tnf_status check_end(tnf_reader *r, gguf_file *g, tnf_error *e)
{
    uint64_t size = r->source->size, end = r->data_start, padded;
    for (size_t i = 0; i < g->n; i++) {
        uint64_t last = r->data_start + g->entries[i].offset + g->entries[i].nbytes;
        end = last > end ? last : end;
    }
    g->cut = end > size && g->n > 0;
    if (!tnf_ckd_align(&padded, end, g->alignment) || end > size) {
        g->unpadded = g->n == 0;
        if (!g->unpadded)
            return TNF_OK; /* truncated; the core will report it */
        padded = end;
    }
    if (size < padded) {
        g->unpadded = true;
        tnf_warn(r, size, "the file ends without its last padding");
        return set_fact(r, "gguf_file.end", "unpadded", e);
    }
    if (size == padded)
        return TNF_OK;
    bool any = size - padded > TRAILER;
    if (!any)
        TNF_TRY(find_nonzero(r, padded, size, &any, e));
    tnf_warn(r, padded, "%s the data", TNF_BYTES_FOLLOW(size - padded));
    return any ? tnf_add_extra(r, GGUF_TRAILING, padded, size - padded, e) : TNF_OK;
}

/* Keeps what decode_gguf() needs: tensors with blocks, by offset. */
static tnf_status keep_blocks(tnf_reader *r, gguf_file *g, const gguf_entry **order, tnf_error *e)
{
    if (!g->big || g->blocks_little)
        return TNF_OK;
    gguf_entry *kept = tnf_arena_array(r->arena, g->n + 1, sizeof *kept);
    g->by_place = tnf_arena_array(r->arena, g->n + 1, sizeof *g->by_place);
    if (!kept || !g->by_place)
        return tnf_arena_fail(r->arena, "the list of tensors", e);
    for (size_t i = 0; i < g->n; i++) {
        kept[i] = (gguf_entry) { .type = order[i]->type,
                                 .offset = r->data_start + order[i]->offset,
                                 .nbytes = order[i]->nbytes };
        if (kept[i].nbytes && kept[i].type && !kept[i].type->dense)
            g->by_place[g->nblocks++] = &kept[i];
    }
    return TNF_OK;
}

tnf_status tnf_gguf_places(tnf_reader *r, gguf_file *g, tnf_error *e)
{
    const gguf_entry **order = NULL;
    if (!tnf_ckd_align(&r->data_start, g->header_end, g->alignment))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the data would begin beyond 2^64");
    g->data_start = r->data_start;
    for (size_t i = 0; i < g->n; i++)
        TNF_TRY(check_offset(r, g, &g->entries[i], e));
    TNF_TRY(sort_places(r, g, &order, e));
    if (r->lenient)
        measure_unknown(r, order, g->n);
    TNF_TRY(check_swapped(r, g, order, e));
    TNF_TRY(add_all(r, g, e));
    TNF_TRY(record_offsets(r, g, e));
    TNF_TRY(check_padding(r, g, order, e));
    TNF_TRY(keep_blocks(r, g, order, e));
    return check_end(r, g, e);
}
