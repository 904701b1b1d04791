/* SPDX-License-Identifier: MIT */
/* B-trees of version 2, fractal heaps, the global heap.
 *
 *   BTHD ver type node-size u32 record-size u16 depth u16 split merge root u64 n u16 total u64 sum
 *   BTLF ver type records sum
 *   BTIN ver type records, then n+1 × (child u64, its records, [all below]) sum
 *
 *   FRHP the fractal heap: a table of blocks, `width` in a row. Rows 0 and 1 have blocks of `start`
 *        bytes, every later row of twice as many; above `direct` bytes they are tables (FHIB)
 *   GCOL ver 000 size u64 · objects: index u16 refs u16 0 u32 size u64 data, to multiples of 8
 */
#include "formats/hdf5/h5.h"

#include <string.h>

#define TREE_DEPTH 64u

/* ----------------------------------------------------------------- B-trees */

typedef struct tree {
    uint64_t node;
    unsigned record, type;
    h5_take take;
    void *ctx;
    uint64_t most[TREE_DEPTH], below[TREE_DEPTH]; /* most records of a node, and of its subtree */
    unsigned width0;
} tree;

static unsigned pointer_size(const tree *t, unsigned depth)
{
    return 8 + t->width0 + (depth > 1 ? tnf_h5_bytes_for(t->below[depth - 1]) : 0);
}

static tnf_status walk_node(tree *t, h5_file *h, uint64_t address, uint64_t n, unsigned depth,
                            tnf_error *e)
{
    tnf_cur c;
    if (n > t->most[depth])
        return tnf_fail(e, TNF_EFORMAT, h->base,
                        "a B-tree node says that it has %llu records, but at most %llu fit into it",
                        (unsigned long long)n, (unsigned long long)t->most[depth]);
    unsigned pointer = depth ? pointer_size(t, depth) : 0;
    uint64_t used = 6 + n * t->record + (depth ? (n + 1) * pointer : 0);
    TNF_TRY(tnf_h5_once(h, address, e));
    TNF_TRY(tnf_h5_node(h, address, used + 4, depth ? "BTIN" : "BTLF", &c, e));
    TNF_TRY(tnf_h5_sum(&c, used, "a B-tree node", e));
    (void)tnf_u8(&c);
    if (tnf_u8(&c) != t->type)
        return tnf_h5_bad(&c, "a B-tree node has another kind than its tree", e);
    tnf_cur records = tnf_cur_over(c.p, (size_t)n * t->record, tnf_where(&c));
    (void)tnf_bytes(&c, n * t->record);
    for (uint64_t i = 0; i <= n; i++) {
        if (depth) {
            uint64_t child = tnf_u64(&c), many = tnf_h5_uint(&c, t->width0);
            if (depth > 1)
                (void)tnf_h5_uint(&c, pointer - 8 - t->width0);
            TNF_TRY(walk_node(t, h, child, many, depth - 1, e));
        }
        if (i == n)
            break;
        uint64_t at = tnf_where(&records);
        tnf_cur one = tnf_cur_over(tnf_bytes(&records, t->record), t->record, at);
        TNF_TRY(t->take(t->ctx, h, &one, e));
    }
    return TNF_OK;
}

tnf_status tnf_h5_records(h5_file *h, uint64_t address, unsigned type, h5_take take, void *ctx,
                          tnf_error *e)
{
    tnf_cur c;
    tree t = { .take = take, .ctx = ctx };
    TNF_TRY(tnf_h5_node(h, address, 38, "BTHD", &c, e));
    TNF_TRY(tnf_h5_sum(&c, 34, "a B-tree", e));
    unsigned version = tnf_u8(&c);
    t.type = tnf_u8(&c);
    t.node = tnf_u32(&c);
    t.record = tnf_u16(&c);
    unsigned depth = tnf_u16(&c);
    (void)tnf_u16(&c);
    uint64_t root = tnf_u64(&c), n = tnf_u16(&c);
    if (version != 0 || (type != t.type && type != UINT32_MAX) || depth >= TREE_DEPTH ||
        t.record == 0 || t.node < 10 + (uint64_t)t.record)
        return tnf_fail(e, TNF_EFORMAT, h->base + address,
                        "a B-tree has the version %u, the kind %u, the depth %u", version, t.type,
                        depth);
    if (root == H5_NOWHERE)
        return TNF_OK;
    t.most[0] = t.below[0] = (t.node - 10) / t.record;
    t.width0 = tnf_h5_bytes_for(t.most[0]);
    for (unsigned d = 1; d <= depth; d++) {
        unsigned pointer = pointer_size(&t, d);
        uint64_t sum;
        if (t.node < 10 + (uint64_t)pointer)
            return tnf_h5_bad(&c, "the nodes of a B-tree are too small", e);
        t.most[d] = (t.node - 10 - pointer) / (t.record + pointer);
        if (!tnf_ckd_mul(&sum, t.most[d] + 1, t.below[d - 1]) ||
            !tnf_ckd_add(&t.below[d], sum, t.most[d]))
            t.below[d] = UINT64_MAX;
    }
    return walk_node(&t, h, root, n, depth, e);
}

/* ------------------------------------------------------------ fractal heap */

tnf_status tnf_h5_fractal(h5_fractal *f, h5_file *h, uint64_t address, tnf_error *e)
{
    tnf_cur c;
    *f = (h5_fractal) { .at = address, .block = H5_NOWHERE };
    TNF_TRY(tnf_h5_node(h, address, 146, "FRHP", &c, e));
    unsigned version = tnf_u8(&c);
    f->id_length = tnf_u16(&c);
    unsigned filters = tnf_u16(&c);
    (void)tnf_u8(&c);
    f->max_managed = tnf_u32(&c);
    (void)tnf_u64(&c);
    f->huge = tnf_u64(&c);
    (void)tnf_bytes(&c, 80);
    f->width = tnf_u16(&c);
    f->start = tnf_u64(&c);
    f->direct = tnf_u64(&c);
    f->bits = tnf_u16(&c);
    (void)tnf_u16(&c);
    f->root = tnf_u64(&c);
    f->rows = tnf_u16(&c);
    if (filters)
        return tnf_fail(e, TNF_EUNSUPPORTED, h->base + address,
                        "a heap is filtered, which is not supported");
    TNF_TRY(tnf_h5_sum(&c, 142, "a heap", e));
    bool powers = f->width && f->start && (f->width & (f->width - 1)) == 0 &&
                  (f->start & (f->start - 1)) == 0;
    if (version != 0 || !powers || f->bits == 0 || f->bits > 64 || f->rows > 64 ||
        f->id_length < 2 || f->start > (uint64_t)1 << 40 || f->direct > (uint64_t)1 << 40)
        return tnf_fail(e, TNF_EFORMAT, h->base + address, "a heap has no valid header");
    return TNF_OK;
}

static uint64_t row_size(const h5_fractal *f, unsigned row)
{
    unsigned twice = row < 2 ? 0 : row - 1;
    return twice < 24 ? f->start << twice : UINT64_MAX;
}

/* Finds the direct block that holds an offset, descending through the tables. */
static tnf_status find_block(h5_file *h, h5_fractal *f, uint64_t offset, tnf_error *e)
{
    unsigned rows = f->rows, bytes = (f->bits + 7) / 8;
    uint64_t address = f->root, from = 0;
    f->block = H5_NOWHERE;
    if (rows == 0) {
        f->block = address;
        f->block_offset = 0;
        f->block_size = f->start;
        return TNF_OK;
    }
    for (unsigned depth = 0; depth < 64; depth++) {
        tnf_cur c;
        uint64_t at = from, size = 0;
        unsigned row = 0;
        for (; row < rows; row++) {
            size = row_size(f, row);
            if (size == UINT64_MAX || offset - at < size * f->width)
                break;
            at += size * f->width;
        }
        if (row == rows || size == UINT64_MAX)
            break;
        uint64_t column = (offset - at) / size, head = 13 + bytes;
        TNF_TRY(tnf_h5_node(h, address, 4, "FHIB", &c, e));
        TNF_TRY(tnf_h5_get(h, address + head + 8 * ((uint64_t)row * f->width + column), 8, "FHIB",
                           &c, e));
        address = tnf_u64(&c);
        from = at + column * size;
        if (size <= f->direct) {
            f->block = address;
            f->block_offset = from;
            f->block_size = size;
            return TNF_OK;
        }
        rows = tnf_h5_log(size) - tnf_h5_log(f->start * f->width) + 1;
        if (rows > 64)
            break;
    }
    return tnf_fail(e, TNF_EFORMAT, h->base + f->at, "a heap has no offset %llu",
                    (unsigned long long)offset);
}

typedef struct huge {
    uint64_t key, address, n;
    bool found;
} huge;

static tnf_status take_huge(void *ctx, h5_file *h, tnf_cur *record, tnf_error *e)
{
    huge *x = ctx;
    uint64_t address = tnf_u64(record), n = tnf_u64(record), key = tnf_u64(record);
    (void)h;
    if (record->bad)
        return tnf_h5_bad(record, "a record of a heap is truncated", e);
    if (key == x->key) {
        x->address = address;
        x->n = n;
        x->found = true;
    }
    return TNF_OK;
}

static tnf_status find_huge(tnf_cur *out, h5_file *h, h5_fractal *f, tnf_cur id, tnf_error *e)
{
    huge x = { 0 };
    if (f->id_length >= 17) {
        x.address = tnf_u64(&id);
        x.n = tnf_u64(&id);
    } else {
        unsigned n = f->id_length - 1 < 8 ? (unsigned)f->id_length - 1 : 8;
        size_t nodes = h->nnodes;
        x.key = tnf_h5_uint(&id, n);
        tnf_hash once = h->once; /* each search has its own visited nodes */
        tnf_hash_init(&h->once, &once.alloc, once.key, once.ctx);
        tnf_status status = tnf_h5_records(h, f->huge, 1, take_huge, &x, e);
        tnf_hash_free(&h->once);
        h->once = once;
        h->nnodes = nodes;
        TNF_TRY(status);
        if (!x.found)
            return tnf_h5_bad(&id, "an object is not in its heap", e);
    }
    return tnf_h5_get(h, x.address, x.n, "an object of a heap", out, e);
}

tnf_status tnf_h5_object(tnf_cur *out, h5_file *h, h5_fractal *f, tnf_cur id, tnf_error *e)
{
    unsigned head = tnf_u8(&id), kind = head >> 4 & 3u;
    if (head >> 6)
        return tnf_h5_bad(&id, "an id of a heap has an unknown version", e);
    if (kind == 1)
        return find_huge(out, h, f, id, e);
    if (kind == 2) {
        uint64_t at = tnf_where(&id), n = (head & 15u) + 1;
        const void *p = tnf_bytes(&id, n);
        *out = tnf_cur_over(p ? p : "", p ? (size_t)n : 0, at);
        return p ? TNF_OK : tnf_h5_bad(&id, "a tiny object is truncated", e);
    }
    unsigned bytes = (f->bits + 7) / 8;
    uint64_t offset = tnf_h5_uint(&id, bytes);
    unsigned width = f->id_length > 1 + bytes ? (unsigned)(f->id_length - 1 - bytes) : 0;
    uint64_t n = tnf_h5_uint(&id, width < 8 ? width : 8);
    if (id.bad || kind == 3)
        return tnf_h5_bad(&id, "an id of a heap is invalid", e);
    if (f->block == H5_NOWHERE || offset < f->block_offset ||
        offset - f->block_offset >= f->block_size) {
        tnf_cur c;
        TNF_TRY(find_block(h, f, offset, e));
        TNF_TRY(tnf_h5_node(h, f->block, 4, "FHDB", &c, e));
    }
    if (offset - f->block_offset > f->block_size || n > f->block_size - (offset - f->block_offset))
        return tnf_h5_bad(&id, "an object runs past its block of the heap", e);
    return tnf_h5_get(h, f->block + (offset - f->block_offset), n, "an object of a heap", out, e);
}

/* ------------------------------------------------------------- global heap */

static tnf_status scan_collection(h5_heap *x, tnf_error *e, uint64_t base)
{
    size_t capacity = 0, n = 0;
    uint32_t *places = NULL;
    for (size_t at = 16; x->n - at >= 16;) {
        unsigned index = tnf_le16(x->bytes + at);
        uint64_t size = tnf_le64(x->bytes + at + 8), up;
        if (index == 0)
            break;
        if (!tnf_ckd_align(&up, size, 8) || up > x->n - at - 16)
            return tnf_fail(e, TNF_EFORMAT, base + at, "an object runs past its collection");
        places = tnf_arena_grow(&x->arena, places, n, &capacity, sizeof *places, 32);
        if (!places)
            return tnf_arena_fail(&x->arena, "a heap", e);
        places[n++] = (uint32_t)at;
        at += 16 + (size_t)up;
    }
    x->places = places;
    x->nplaces = (uint32_t)n;
    return TNF_OK;
}

static tnf_status load_collection(h5_heap **out, h5_file *h, uint64_t address, tnf_error *e)
{
    tnf_cur c;
    for (int i = 0; i < H5_HEAPS; i++)
        if (h->heaps[i].bytes && h->heaps[i].address == address) {
            *out = &h->heaps[i];
            return TNF_OK;
        }
    h5_heap *x = &h->heaps[h->heap_clock++ % H5_HEAPS];
    x->bytes = NULL;
    tnf_arena_reset(&x->arena);
    TNF_TRY(tnf_h5_node(h, address, 16, "GCOL", &c, e));
    (void)tnf_u32(&c);
    uint64_t n = tnf_u64(&c);
    tnf_arena keep = h->temp; /* the bytes belong to the collection */
    h->temp = x->arena;
    tnf_status status = tnf_h5_get(h, address, n, "GCOL", &c, e);
    x->arena = h->temp;
    h->temp = keep;
    TNF_TRY(status);
    if (n < 16 || n > UINT32_MAX)
        return tnf_fail(e, TNF_EFORMAT, h->base + address, "a collection has %llu bytes",
                        (unsigned long long)n);
    x->address = address;
    x->n = (size_t)n;
    x->bytes = c.start;
    status = scan_collection(x, e, h->base + address);
    if (status != TNF_OK)
        x->bytes = NULL;
    *out = x;
    return status;
}

tnf_status tnf_h5_global(tnf_str *out, h5_file *h, uint64_t collection, uint32_t index,
                         tnf_error *e)
{
    h5_heap *x = NULL;
    TNF_TRY(load_collection(&x, h, collection, e));
    uint32_t at = index ? index - 1 : 0, tried = 0;
    at = at < x->nplaces ? at : 0;
    while (tried < x->nplaces && tnf_le16(x->bytes + x->places[at]) != index) {
        at = at + 1 < x->nplaces ? at + 1 : 0;
        tried++;
    }
    h->work += tried;
    if (tried == x->nplaces || h->work > h->most)
        return tnf_fail(e, TNF_EFORMAT, h->base + collection, "a collection has no object %u",
                        index);
    const uint8_t *p = x->bytes + x->places[at];
    *out = (tnf_str) { (const char *)p + 16, (size_t)tnf_le64(p + 8) };
    return TNF_OK;
}
