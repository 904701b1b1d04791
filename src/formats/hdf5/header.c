/* SPDX-License-Identifier: MIT */
/* Object headers: lists of messages, in one block or several.
 *
 *   version 1   01 0 nmsgs u16 refs u32 size u32, 4 unused · messages
 *               message: type u16 size u16 flags u8, 3 unused, body; all at multiples of 8
 *   version 2   OHDR 02 flags [times 16] [2 × u16] size of 1, 2, 4 or 8 bytes · messages · lookup3
 *               message: type u8 size u16 flags u8 [order u16] body
 *   message 10h address u64 length u64: more of them; in version 2 as OCHK messages lookup3
 */
#include "formats/hdf5/h5.h"

#include <string.h>

#define FAIL_UNKNOWN   0x88u /* flags of messages that a reader must support */
#define SHARED         2u
#define CREATION_ORDER 4u

typedef struct block {
    uint64_t address, n;
} block;

/* Blocks of a header, read or still to be read. */
typedef struct blocks {
    block *items;
    size_t n, capacity, done;
    unsigned version;
    uint64_t left; /* version 1: messages */
} blocks;

static tnf_status add_block(blocks *b, h5_file *h, uint64_t address, uint64_t n, tnf_error *e)
{
    h->work += b->n; /* the cost of the search below */
    for (size_t i = 0; i < b->n; i++)
        if (b->items[i].address == address)
            return tnf_fail(e, TNF_EFORMAT, h->base + address,
                            "an object header continues in itself");
    if (b->n == H5_BLOCKS)
        return tnf_fail(e, TNF_ELIMIT, h->base + address,
                        "an object header has more than %u blocks", H5_BLOCKS);
    block *items = tnf_arena_grow(&h->temp, b->items, b->n, &b->capacity, sizeof *items, 4);
    if (!items)
        return tnf_arena_fail(&h->temp, "an object header", e);
    b->items = items;
    b->items[b->n++] = (block) { address, n };
    return TNF_OK;
}

static bool is_known(uint16_t type)
{
    return type <= 0x17;
}

static tnf_status add_message(h5_header *x, blocks *b, h5_file *h, h5_message m, tnf_error *e)
{
    if (x->n == H5_MESSAGES)
        return tnf_fail(e, TNF_ELIMIT, m.body.base, "an object header has more than %u messages",
                        H5_MESSAGES);
    if (m.type == H5_CONTINUED) {
        uint64_t address = tnf_u64(&m.body), n = tnf_u64(&m.body);
        return m.body.bad ? tnf_h5_bad(&m.body, "a continuation is truncated", e)
                          : add_block(b, h, address, n, e);
    }
    if (m.type == 0)
        return TNF_OK;
    if (!is_known(m.type) && m.flags & FAIL_UNKNOWN)
        return tnf_fail(e, TNF_EUNSUPPORTED, m.body.base,
                        "an object requires support for messages of the kind %u", m.type);
    h5_message *items = tnf_arena_grow(&h->temp, x->items, x->n, &x->capacity, sizeof *items, 8);
    if (!items)
        return tnf_arena_fail(&h->temp, "an object header", e);
    x->items = items;
    x->items[x->n++] = m;
    return TNF_OK;
}

static tnf_status read_messages(h5_header *x, blocks *b, h5_file *h, tnf_cur *c, tnf_error *e)
{
    size_t head = b->version == 1 ? 8 : x->ordered ? 6 : 4;
    while (tnf_left(c) >= head && (b->version == 2 || b->left > 0)) {
        h5_message m = { 0 };
        m.type = b->version == 1 ? tnf_u16(c) : tnf_u8(c);
        size_t n = tnf_u16(c);
        m.flags = tnf_u8(c);
        if (b->version == 1)
            (void)tnf_bytes(c, 3);
        else if (x->ordered)
            m.order = tnf_u16(c);
        uint64_t at = tnf_where(c);
        const void *body = tnf_bytes(c, n);
        if (!body)
            return tnf_fail(e, TNF_EFORMAT, at, "a message of %zu bytes runs past its block", n);
        m.body = tnf_cur_over(body, n, at);
        b->left--;
        TNF_TRY(add_message(x, b, h, m, e));
    }
    return TNF_OK;
}

static tnf_status read_more(h5_header *x, blocks *b, h5_file *h, tnf_error *e)
{
    tnf_cur c;
    while (b->done < b->n) {
        block k = b->items[b->done++];
        if (b->version == 1) {
            TNF_TRY(tnf_h5_get(h, k.address, k.n, "a continuation", &c, e));
        } else {
            TNF_TRY(tnf_h5_node(h, k.address, k.n, "OCHK", &c, e));
            if (k.n < 8)
                return tnf_h5_bad(&c, "a continuation is too short", e);
            TNF_TRY(tnf_h5_sum(&c, k.n - 4, "an object header", e));
            c.end -= 4;
        }
        TNF_TRY(read_messages(x, b, h, &c, e));
    }
    return TNF_OK;
}

static tnf_status read_new(h5_header *x, blocks *b, h5_file *h, uint64_t address, tnf_error *e)
{
    tnf_cur c;
    uint64_t room = h->end - h->base - address;
    TNF_TRY(tnf_h5_get(h, address, room < 34 ? room : 34, "an object header", &c, e));
    (void)tnf_bytes(&c, 4);
    unsigned version = tnf_u8(&c), flags = tnf_u8(&c);
    if (version != 2)
        return tnf_fail(e, TNF_EUNSUPPORTED, h->base + address,
                        "an object header has the unsupported version %u", version);
    (void)tnf_bytes(&c, (flags & 0x20u ? 16 : 0) + (flags & 0x10u ? 4 : 0));
    uint64_t n = tnf_h5_uint(&c, 1u << (flags & 3u)), head = (uint64_t)(c.p - c.start);
    if (c.bad || n > room || head + 4 > room - n)
        return tnf_fail(e, TNF_EFORMAT, h->base + address, "an object header runs past the file");
    x->ordered = flags & CREATION_ORDER;
    TNF_TRY(tnf_h5_get(h, address, head + n + 4, "an object header", &c, e));
    TNF_TRY(tnf_h5_sum(&c, head + n, "an object header", e));
    c.p += head;
    c.end -= 4;
    b->version = 2;
    return read_messages(x, b, h, &c, e);
}

static tnf_status read_old(h5_header *x, blocks *b, h5_file *h, uint64_t address, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_h5_get(h, address, 16, "an object header", &c, e));
    unsigned version = tnf_u8(&c);
    (void)tnf_u8(&c);
    b->version = 1;
    b->left = tnf_u16(&c);
    (void)tnf_u32(&c);
    uint64_t n = tnf_u32(&c);
    if (version != 1)
        return tnf_fail(e, TNF_EFORMAT, h->base + address,
                        "an object header is expected here, but is missing");
    TNF_TRY(tnf_h5_get(h, address + 16, n, "an object header", &c, e));
    return read_messages(x, b, h, &c, e);
}

tnf_status tnf_h5_header(h5_header *out, h5_file *h, uint64_t address, tnf_error *e)
{
    tnf_cur c;
    blocks b = { 0 };
    *out = (h5_header) { .at = h->base + address };
    TNF_TRY(tnf_h5_get(h, address, 4, "an object header", &c, e));
    bool new = memcmp(c.start, "OHDR", 4) == 0;
    TNF_TRY(new ? read_new(out, &b, h, address, e) : read_old(out, &b, h, address, e));
    return read_more(out, &b, h, e);
}

const h5_message *tnf_h5_find(const h5_header *x, uint16_t type)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->items[i].type == type)
            return &x->items[i];
    return NULL;
}

/* ------------------------------------------------------------------ shared */

tnf_status tnf_h5_shared(tnf_cur *out, h5_file *h, tnf_cur *c, uint16_t type, tnf_error *e)
{
    h5_header other;
    unsigned version = tnf_u8(c), kind = tnf_u8(c);
    if (version == 1)
        (void)tnf_bytes(c, 6);
    if (version == 3 && kind == 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, c->base,
                        "a message is in a heap of shared messages, which is not supported");
    uint64_t address = tnf_u64(c);
    if (c->bad || version < 1 || version > 3)
        return tnf_h5_bad(c, "a shared message is invalid", e);
    TNF_TRY(tnf_h5_header(&other, h, address, e));
    const h5_message *m = tnf_h5_find(&other, type);
    if (!m || m->flags & SHARED)
        return tnf_fail(e, TNF_EFORMAT, h->base + address, "a shared message is missing");
    *out = m->body;
    return TNF_OK;
}

tnf_status tnf_h5_body(tnf_cur *out, h5_file *h, const h5_message *m, tnf_error *e)
{
    tnf_cur c = m->body;
    *out = c;
    return m->flags & SHARED ? tnf_h5_shared(out, h, &c, m->type, e) : TNF_OK;
}
