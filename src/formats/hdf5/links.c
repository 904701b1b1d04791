/* SPDX-License-Identifier: MIT */
/* The links of a group.
 *
 *   old        message 11h: B-tree u64, local heap u64
 *              TREE 00 level n u16 left u64 right u64, key child key child … key
 *              SNOD 01 0 n u16, each: name u64, header u64, cache u32 (2: soft), 0 u32, scratch 16
 *              HEAP 00 000 size u64 free u64 address u64; names are NUL-terminated
 *   compact    messages 06: 01 flags [kind] [order u64] [charset] length name, then
 *              hard: address u64 · soft: u16 path · external: u16 flags file NUL path NUL
 *   dense      message 02: heap and B-tree with the same messages
 */
#include "formats/hdf5/h5.h"

#include <stdlib.h>
#include <string.h>

#define LINK_KIND    8u
#define LINK_ORDER   4u
#define LINK_CHARSET 0x10u
#define EXTERNAL     64u

static tnf_status keep_text(tnf_str *out, h5_file *h, const void *p, size_t n, tnf_error *e)
{
    const char *copy = tnf_arena_str(h->r->scratch, p ? p : "", n);
    if (!copy)
        return tnf_arena_fail(h->r->scratch, "a link", e);
    *out = (tnf_str) { copy, n };
    return TNF_OK;
}

static tnf_status add_link(h5_links *l, h5_file *h, h5_link link, tnf_error *e)
{
    h5_link *items = tnf_arena_grow(h->r->scratch, l->items, l->n, &l->capacity, sizeof *items, 8);
    if (!items)
        return tnf_arena_fail(h->r->scratch, "links", e);
    l->items = items;
    l->items[l->n++] = link;
    return TNF_OK;
}

/* --------------------------------------------------------------------- new */

/* File and path of an external link: both NUL-terminated. */
static tnf_status read_external(h5_link *x, h5_file *h, const char *p, size_t n, tnf_error *e)
{
    const char *end = n > 1 ? memchr(p + 1, 0, n - 1) : NULL;
    size_t file = end ? (size_t)(end - p - 1) : n > 1 ? n - 1 : 0;
    const char *path = end ? end + 1 : p + n;
    size_t left = (size_t)(p + n - path);
    const char *stop = left ? memchr(path, 0, left) : NULL;
    TNF_TRY(keep_text(&x->file, h, p + 1, file, e));
    return keep_text(&x->target, h, path, stop ? (size_t)(stop - path) : left, e);
}

static tnf_status read_link(h5_links *l, h5_file *h, tnf_cur c, tnf_error *e)
{
    h5_link x = { .kind = H5_HARD };
    unsigned version = tnf_u8(&c), flags = tnf_u8(&c);
    unsigned kind = flags & LINK_KIND ? tnf_u8(&c) : 0;
    x.order = flags & LINK_ORDER ? tnf_u64(&c) : 0;
    if (flags & LINK_CHARSET)
        (void)tnf_u8(&c);
    uint64_t n = tnf_h5_uint(&c, 1u << (flags & 3u));
    const void *name = tnf_bytes(&c, n);
    if (c.bad || version != 1)
        return tnf_h5_bad(&c, "a link is invalid", e);
    if (n > h->r->limits.name_bytes)
        return tnf_fail(e, TNF_ELIMIT, tnf_where(&c),
                        "a name has %llu bytes; at most %u are allowed", (unsigned long long)n,
                        h->r->limits.name_bytes);
    TNF_TRY(keep_text(&x.name, h, name, (size_t)n, e));
    if (kind == 0) {
        x.address = tnf_u64(&c);
    } else {
        size_t more = tnf_u16(&c);
        const char *p = tnf_bytes(&c, more);
        x.kind = kind == 1 ? H5_SOFT : kind == EXTERNAL ? H5_ELSEWHERE : H5_OTHER_LINK;
        if (!c.bad)
            TNF_TRY(kind == EXTERNAL ? read_external(&x, h, p, more, e)
                                     : keep_text(&x.target, h, p, more, e));
    }
    if (c.bad)
        return tnf_h5_bad(&c, "a link is truncated", e);
    return add_link(l, h, x, e);
}

typedef struct dense {
    h5_links *links;
    h5_fractal heap;
} dense;

static tnf_status take_link(void *ctx, h5_file *h, tnf_cur *record, tnf_error *e)
{
    dense *d = ctx;
    tnf_cur c;
    (void)tnf_bytes(record, 4); /* the hash of the name */
    TNF_TRY(tnf_h5_object(&c, h, &d->heap, *record, e));
    return read_link(d->links, h, c, e);
}

static tnf_status read_info(h5_links *l, h5_file *h, tnf_cur c, tnf_error *e)
{
    dense d = { .links = l };
    unsigned version = tnf_u8(&c), flags = tnf_u8(&c);
    if (flags & 1u)
        (void)tnf_u64(&c);
    uint64_t heap = tnf_u64(&c), tree = tnf_u64(&c);
    if (c.bad || version != 0)
        return tnf_h5_bad(&c, "the description of a group's links is invalid", e);
    l->ordered = flags & 2u;
    if (heap == H5_NOWHERE || tree == H5_NOWHERE)
        return TNF_OK;
    TNF_TRY(tnf_h5_fractal(&d.heap, h, heap, e));
    return tnf_h5_records(h, tree, 5, take_link, &d, e);
}

/* --------------------------------------------------------------------- old */

typedef struct names {
    uint64_t at, size;
} names;

static tnf_status heap_text(tnf_str *out, h5_file *h, const names *heap, uint64_t offset,
                            tnf_error *e)
{
    uint64_t some = 64;
    while (true) {
        tnf_cur c;
        if (offset >= heap->size)
            return tnf_fail(e, TNF_EFORMAT, h->base + heap->at, "a name is outside its heap");
        some = some < heap->size - offset ? some : heap->size - offset;
        TNF_TRY(tnf_h5_get(h, heap->at + offset, some, "a name", &c, e));
        const uint8_t *end = memchr(c.start, 0, (size_t)some);
        if (end)
            return keep_text(out, h, c.start, (size_t)(end - c.start), e);
        if (some == heap->size - offset || some > h->r->limits.name_bytes)
            return tnf_fail(e, TNF_EFORMAT, h->base + heap->at + offset,
                            "a name is not NUL-terminated");
        some *= 4;
    }
}

static tnf_status read_symbols(h5_links *l, h5_file *h, const names *heap, uint64_t address,
                               tnf_error *e)
{
    tnf_cur c, head;
    TNF_TRY(tnf_h5_once(h, address, e));
    TNF_TRY(tnf_h5_node(h, address, 8, "SNOD", &head, e));
    (void)tnf_u16(&head);
    uint64_t n = tnf_u16(&head);
    TNF_TRY(tnf_h5_get(h, address + 8, n * 40, "SNOD", &c, e));
    for (uint64_t i = 0; i < n; i++) {
        h5_link x = { .kind = H5_HARD };
        uint64_t name = tnf_u64(&c);
        x.address = tnf_u64(&c);
        unsigned cache = tnf_u32(&c);
        (void)tnf_u32(&c);
        uint32_t target = tnf_u32(&c);
        (void)tnf_bytes(&c, 12);
        TNF_TRY(heap_text(&x.name, h, heap, name, e));
        if (cache == 2) {
            x.kind = H5_SOFT;
            TNF_TRY(heap_text(&x.target, h, heap, target, e));
        }
        TNF_TRY(add_link(l, h, x, e));
    }
    return TNF_OK;
}

static tnf_status walk_tree(h5_links *l, h5_file *h, const names *heap, uint64_t address,
                            unsigned level, tnf_error *e)
{
    tnf_cur c;
    uint64_t n;
    TNF_TRY(tnf_h5_tree_node(h, address, 0, &level, &n, "a group's B-tree", e));
    TNF_TRY(tnf_h5_get(h, address + 24, n * 16 + 8, "TREE", &c, e));
    for (uint64_t i = 0; i < n; i++) {
        (void)tnf_u64(&c);
        uint64_t child = tnf_u64(&c);
        TNF_TRY(level ? walk_tree(l, h, heap, child, level - 1, e)
                      : read_symbols(l, h, heap, child, e));
    }
    return TNF_OK;
}

static tnf_status read_table(h5_links *l, h5_file *h, tnf_cur c, tnf_error *e)
{
    tnf_cur head;
    uint64_t tree = tnf_u64(&c), heap = tnf_u64(&c);
    if (c.bad)
        return tnf_h5_bad(&c, "a symbol table is truncated", e);
    TNF_TRY(tnf_h5_node(h, heap, 32, "HEAP", &head, e));
    (void)tnf_u32(&head);
    names n = { .size = tnf_u64(&head) };
    (void)tnf_u64(&head);
    n.at = tnf_u64(&head);
    return walk_tree(l, h, &n, tree, UINT_MAX, e);
}

/* --------------------------------------------------------------------- all */

static int by_name(const void *a, const void *b)
{
    return tnf_str_compare(((const h5_link *)a)->name, ((const h5_link *)b)->name);
}

static int by_order(const void *a, const void *b)
{
    uint64_t x = ((const h5_link *)a)->order, y = ((const h5_link *)b)->order;
    return x != y ? (x < y ? -1 : 1) : by_name(a, b);
}

tnf_status tnf_h5_links(h5_links *out, h5_file *h, const h5_header *x, tnf_error *e)
{
    *out = (h5_links) { 0 };
    for (size_t i = 0; i < x->n; i++) {
        const h5_message *m = &x->items[i];
        if (m->type == H5_LINK)
            TNF_TRY(read_link(out, h, m->body, e));
        else if (m->type == H5_LINK_INFO)
            TNF_TRY(read_info(out, h, m->body, e));
        else if (m->type == H5_SYMBOLS)
            TNF_TRY(read_table(out, h, m->body, e));
    }
    if (out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, out->ordered ? by_order : by_name);
    for (size_t i = 1; i < out->n && !out->ordered; i++)
        if (by_name(&out->items[i - 1], &out->items[i]) == 0)
            return tnf_fail(e, TNF_EFORMAT, x->at, "a group has two links with the name %s",
                            TNF_QUOTED(out->items[i].name));
    return TNF_OK;
}
