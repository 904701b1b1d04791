/* SPDX-License-Identifier: MIT */
/* Chunks by number: the fixed and the extensible array.
 *
 *   FAHD 00 client element page-bits n u64 block u64 sum
 *   FADB 00 client head u64 · elements sum; or, if there are more than 2^page-bits:
 *        a bit per page (highest first; 0: never written) sum, pages of elements, each with a sum
 *   EAHD 00 client element max-bits index dmin smin page-bits, 6 × u64, index block u64 sum
 *   EAIB 00 client head u64 · elements, data blocks u64, super blocks u64 sum
 *   EASB 00 client head u64 offset · [bitmaps] data blocks u64 sum
 *   EADB 00 client head u64 offset · elements sum, or in pages
 *   element      address u64; with filters: address, size, mask u32
 */
#include "formats/hdf5/h5.h"

#define HEAD      14u
#define MAX_SUPER 128u

typedef struct array {
    h5_data *d;
    h5_file *h;
    unsigned client, element, page_bits, offset; /* offset: bytes of an element's number */
    uint32_t front;
    uint64_t n;
} array;

static tnf_status add_element(const array *a, tnf_cur *c, uint64_t number, tnf_error *e)
{
    h5_chunk chunk = { .at = tnf_u64(c), .stored = a->d->chunk_bytes };
    if (a->client == 1) {
        chunk.stored = tnf_h5_uint(c, a->element - 12);
        chunk.mask = tnf_u32(c);
    }
    if (c->bad)
        return tnf_h5_bad(c, "an array of chunks is truncated", e);
    if (chunk.at == H5_NOWHERE || number >= a->n)
        return TNF_OK;
    return tnf_h5_add_numbered(a->d, a->h, number, a->front, chunk, e);
}

static tnf_status check_head(array *a, tnf_cur *c, uint64_t at, tnf_error *e)
{
    unsigned version = tnf_u8(c);
    a->client = tnf_u8(c);
    a->element = tnf_u8(c);
    bool fits = a->client == 0 ? a->element == 8 : a->element > 12 && a->element <= 20;
    if (version != 0 || a->client > 1 || !fits)
        return tnf_fail(e, TNF_EFORMAT, a->h->base + at,
                        "an array of chunks has elements of %u bytes", a->element);
    return TNF_OK;
}

/* Reads n elements at an address, with their checksum. */
static tnf_status read_page(const array *a, uint64_t at, uint64_t n, uint64_t number, tnf_error *e)
{
    tnf_cur c;
    uint64_t bytes;
    if (!tnf_ckd_mul(&bytes, n, a->element) || !tnf_ckd_add(&bytes, bytes, 4))
        return tnf_fail(e, TNF_EFORMAT, a->h->base + at, "a page of chunks is too large");
    TNF_TRY(tnf_h5_get(a->h, at, bytes, "a page of chunks", &c, e));
    TNF_TRY(tnf_h5_sum(&c, bytes - 4, "a page of chunks", e));
    for (uint64_t i = 0; i < n; i++)
        TNF_TRY(add_element(a, &c, number + i, e));
    return TNF_OK;
}

static bool has_page(const uint8_t *bitmap, uint64_t i)
{
    return bitmap[i / 8] >> (7 - i % 8) & 1u;
}

/* Reads the pages after the head of a block. Pages that were never written still take space. */
static tnf_status read_pages(const array *a, uint64_t at, uint64_t n, uint64_t number,
                             const uint8_t *bitmap, tnf_error *e)
{
    uint64_t page = (uint64_t)1 << a->page_bits, step = page * a->element + 4;
    for (uint64_t i = 0; i * page < n; i++) {
        uint64_t many = n - i * page < page ? n - i * page : page, place, skip;
        if (!has_page(bitmap, i))
            continue;
        if (!tnf_ckd_mul(&skip, i, step) || !tnf_ckd_add(&place, at, skip))
            return tnf_fail(e, TNF_EFORMAT, a->h->base + at,
                            "an array has too many pages of chunks");
        TNF_TRY(read_page(a, place, many, number + i * page, e));
    }
    return TNF_OK;
}

tnf_status tnf_h5_fixed_array(h5_data *d, h5_file *h, uint64_t address, tnf_error *e)
{
    tnf_cur c;
    array a = { .d = d, .h = h };
    TNF_TRY(tnf_h5_once(h, address, e));
    TNF_TRY(tnf_h5_node(h, address, 28, "FAHD", &c, e));
    TNF_TRY(tnf_h5_sum(&c, 24, "an array of chunks", e));
    TNF_TRY(check_head(&a, &c, address, e));
    a.page_bits = tnf_u8(&c);
    a.n = tnf_u64(&c);
    uint64_t block = tnf_u64(&c);
    if (block == H5_NOWHERE)
        return TNF_OK;
    uint64_t room = h->end - h->base;
    if (a.page_bits > 40 || a.n > room)
        return tnf_fail(e, TNF_EFORMAT, h->base + address, "an array of %llu chunks is too large",
                        (unsigned long long)a.n);
    TNF_TRY(tnf_h5_once(h, block, e));
    if (a.n <= (uint64_t)1 << a.page_bits) {
        TNF_TRY(tnf_h5_node(h, block, HEAD + a.n * a.element + 4, "FADB", &c, e));
        TNF_TRY(tnf_h5_sum(&c, HEAD + a.n * a.element, "an array of chunks", e));
        (void)tnf_bytes(&c, HEAD - 4);
        for (uint64_t i = 0; i < a.n; i++)
            TNF_TRY(add_element(&a, &c, i, e));
        return TNF_OK;
    }
    uint64_t pages = (a.n + ((uint64_t)1 << a.page_bits) - 1) >> a.page_bits;
    uint64_t head = HEAD + (pages + 7) / 8;
    TNF_TRY(tnf_h5_node(h, block, head + 4, "FADB", &c, e));
    TNF_TRY(tnf_h5_sum(&c, head, "an array of chunks", e));
    return read_pages(&a, block + head + 4, a.n, 0, c.start + HEAD, e);
}

/* -------------------------------------------------------------- extensible */

typedef struct extensible {
    array a;
    unsigned max_bits, dmin, smin;
    uint64_t index;
} extensible;

/* A data block; bitmap: of its pages; NULL: no pages. */
static tnf_status read_block(const array *a, uint64_t address, uint64_t n, uint64_t number,
                             const uint8_t *bitmap, tnf_error *e)
{
    tnf_cur c;
    uint64_t head = HEAD + a->offset;
    if (address == H5_NOWHERE || number >= a->n)
        return TNF_OK;
    TNF_TRY(tnf_h5_once(a->h, address, e));
    if (bitmap) {
        TNF_TRY(tnf_h5_node(a->h, address, head + 4, "EADB", &c, e));
        TNF_TRY(tnf_h5_sum(&c, head, "an array of chunks", e));
        return read_pages(a, address + head + 4, n, number, bitmap, e);
    }
    if (n > (a->h->end - a->h->base) / a->element)
        return tnf_fail(e, TNF_EFORMAT, a->h->base + address, "a block of chunks is too large");
    TNF_TRY(tnf_h5_node(a->h, address, head + n * a->element + 4, "EADB", &c, e));
    TNF_TRY(tnf_h5_sum(&c, head + n * a->element, "an array of chunks", e));
    (void)tnf_bytes(&c, head - 4);
    for (uint64_t i = 0; i < n; i++)
        TNF_TRY(add_element(a, &c, number + i, e));
    return TNF_OK;
}

/* A super block: `blocks` data blocks of n elements each. */
static tnf_status read_super(const array *a, uint64_t address, uint64_t blocks, uint64_t n,
                             uint64_t number, tnf_error *e)
{
    tnf_cur c;
    uint64_t page = (uint64_t)1 << a->page_bits;
    uint64_t bitmap = n > page ? ((n >> a->page_bits) + 7) / 8 : 0;
    uint64_t head = HEAD + a->offset, room = a->h->end - a->h->base;
    if (blocks > room / 8 || bitmap > room / blocks)
        return tnf_fail(e, TNF_EFORMAT, a->h->base + address, "a block of chunks is too large");
    uint64_t all = head + blocks * (bitmap + 8);
    TNF_TRY(tnf_h5_once(a->h, address, e));
    TNF_TRY(tnf_h5_node(a->h, address, all + 4, "EASB", &c, e));
    TNF_TRY(tnf_h5_sum(&c, all, "an array of chunks", e));
    const uint8_t *bits = c.start + head;
    (void)tnf_bytes(&c, head - 4 + blocks * bitmap);
    for (uint64_t i = 0; i < blocks; i++)
        TNF_TRY(
            read_block(a, tnf_u64(&c), n, number + i * n, bitmap ? bits + i * bitmap : NULL, e));
    return TNF_OK;
}

static tnf_status read_index(const extensible *x, uint64_t address, tnf_error *e)
{
    tnf_cur c;
    const array *a = &x->a;
    unsigned direct = 2 * tnf_h5_log(x->smin);
    uint64_t addresses = 2 * ((uint64_t)x->smin - 1), number = x->index;
    unsigned supers = 1 + x->max_bits - tnf_h5_log(x->dmin);
    uint64_t rest = supers - direct;
    uint64_t all = HEAD + x->index * a->element + 8 * (addresses + rest);
    TNF_TRY(tnf_h5_once(a->h, address, e));
    TNF_TRY(tnf_h5_node(a->h, address, all + 4, "EAIB", &c, e));
    TNF_TRY(tnf_h5_sum(&c, all, "an array of chunks", e));
    (void)tnf_bytes(&c, HEAD - 4);
    for (uint64_t i = 0; i < x->index; i++)
        TNF_TRY(add_element(a, &c, i, e));
    for (unsigned u = 0; u < supers && number < a->n; u++) {
        uint64_t blocks = (uint64_t)1 << u / 2, n = (uint64_t)x->dmin << (u + 1) / 2;
        if (u < direct) {
            for (uint64_t i = 0; i < blocks; i++)
                TNF_TRY(read_block(a, tnf_u64(&c), n, number + i * n, NULL, e));
        } else {
            uint64_t super = tnf_u64(&c);
            if (super != H5_NOWHERE)
                TNF_TRY(read_super(a, super, blocks, n, number, e));
        }
        number += blocks * n;
    }
    return c.bad ? tnf_h5_bad(&c, "an array of chunks is truncated", e) : TNF_OK;
}

tnf_status tnf_h5_extensible_array(h5_data *d, h5_file *h, uint64_t address, uint32_t unlimited,
                                   tnf_error *e)
{
    tnf_cur c;
    extensible x = { .a = { .d = d, .h = h, .front = unlimited } };
    TNF_TRY(tnf_h5_once(h, address, e));
    TNF_TRY(tnf_h5_node(h, address, 72, "EAHD", &c, e));
    TNF_TRY(tnf_h5_sum(&c, 68, "an array of chunks", e));
    TNF_TRY(check_head(&x.a, &c, address, e));
    x.max_bits = tnf_u8(&c);
    x.index = tnf_u8(&c);
    x.dmin = tnf_u8(&c);
    x.smin = tnf_u8(&c);
    x.a.page_bits = tnf_u8(&c);
    (void)tnf_bytes(&c, 32);
    x.a.n = tnf_u64(&c);
    (void)tnf_u64(&c);
    uint64_t block = tnf_u64(&c);
    x.a.offset = (x.max_bits + 7) / 8;
    bool powers = x.dmin && x.smin && (x.dmin & (x.dmin - 1)) == 0 && (x.smin & (x.smin - 1)) == 0;
    if (!powers || x.max_bits > 40 || x.max_bits < tnf_h5_log(x.dmin) + 2 * tnf_h5_log(x.smin) ||
        x.a.page_bits > 32 || x.smin < 2)
        return tnf_fail(e, TNF_EFORMAT, h->base + address,
                        "the head of an array of chunks is invalid");
    return block == H5_NOWHERE ? TNF_OK : read_index(&x, block, e);
}
