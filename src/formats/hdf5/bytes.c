/* SPDX-License-Identifier: MIT */
/* Reads bytes of the file by address, through a few windows, with bounds and a budget. All metadata
 * together may cost only a multiple of the file's size, however often they refer to each other. */
#include "formats/hdf5/h5.h"

#include <string.h>

static tnf_status fill_window(h5_file *h, uint64_t at, uint8_t *dst, size_t n, tnf_error *e)
{
    h5_window *w = &h->windows[0];
    for (int i = 0; i < H5_WINDOWS; i++) {
        h5_window *x = &h->windows[i];
        if (x->n && at >= x->at && at - x->at <= x->n && n <= x->n - (at - x->at)) {
            x->used = ++h->clock;
            memcpy(dst, x->bytes + (at - x->at), n);
            return TNF_OK;
        }
        w = x->used < w->used ? x : w;
    }
    if (n > H5_WINDOW / 2)
        return tnf_source_read(h->r->source, at, dst, n, e);
    if (!w->bytes && !(w->bytes = tnf_arena_raw(h->r->scratch, H5_WINDOW)))
        return tnf_arena_fail(h->r->scratch, "reading", e);
    w->n = 0;
    size_t many = h->end - at < H5_WINDOW ? (size_t)(h->end - at) : H5_WINDOW;
    TNF_TRY(tnf_source_read(h->r->source, at, w->bytes, many, e));
    w->at = at;
    w->n = many;
    w->used = ++h->clock;
    memcpy(dst, w->bytes, n);
    return TNF_OK;
}

tnf_status tnf_h5_get(h5_file *h, uint64_t address, uint64_t n, const char *what, tnf_cur *out,
                      tnf_error *e)
{
    uint64_t size = h->end - h->base;
    if (address > size || n > size - address)
        return tnf_fail(e, TNF_EFORMAT, h->base,
                        "%s at address %llu, of %llu bytes, is outside the file", what,
                        (unsigned long long)address, (unsigned long long)n);
    if (n > h->r->limits.header_bytes)
        return tnf_fail(e, TNF_ELIMIT, h->base + address,
                        "%s has %llu bytes; at most %llu are allowed: raise the limit "
                        "'header_bytes' if you trust the file",
                        what, (unsigned long long)n, (unsigned long long)h->r->limits.header_bytes);
    h->work += n + 8;
    if (h->work > h->most)
        return tnf_fail(e, TNF_ELIMIT, h->base + address,
                        "the same metadata are referenced too often");
    uint8_t *bytes = tnf_arena_raw(&h->temp, n + 1);
    if (!bytes)
        return tnf_arena_fail(&h->temp, what, e);
    TNF_TRY(fill_window(h, h->base + address, bytes, (size_t)n, e));
    *out = tnf_cur_over(bytes, (size_t)n, h->base + address);
    return TNF_OK;
}

tnf_status tnf_h5_node(h5_file *h, uint64_t address, uint64_t n, const char *signature,
                       tnf_cur *out, tnf_error *e)
{
    TNF_TRY(tnf_h5_get(h, address, n, signature, out, e));
    const void *four = tnf_bytes(out, 4);
    if (!four || memcmp(four, signature, 4) != 0)
        return tnf_fail(e, TNF_EFORMAT, h->base + address,
                        "the signature %s is expected here, but is missing", signature);
    return TNF_OK;
}

tnf_status tnf_h5_tree_node(h5_file *h, uint64_t address, unsigned kind, unsigned *level,
                            uint64_t *n, const char *of, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_h5_once(h, address, e));
    TNF_TRY(tnf_h5_node(h, address, 24, "TREE", &c, e));
    unsigned found = tnf_u8(&c), own = tnf_u8(&c);
    *n = tnf_u16(&c);
    if (found != kind || own > 63 || (*level != UINT_MAX && own != *level))
        return tnf_fail(e, TNF_EFORMAT, h->base + address,
                        "a node of %s has the kind %u and the level %u", of, found, own);
    *level = own;
    return TNF_OK;
}

tnf_status tnf_h5_once(h5_file *h, uint64_t address, tnf_error *e)
{
    uint32_t previous;
    uint64_t *nodes = tnf_arena_grow(h->r->scratch, h->nodes, h->nnodes, &h->nodes_capacity,
                                     sizeof *nodes, 64);
    if (!nodes)
        return tnf_arena_fail(h->r->scratch, "the structure of the file", e);
    h->nodes = nodes;
    h->nodes[h->nnodes] = address;
    if (!tnf_hash_add(&h->once, (uint32_t)h->nnodes, false, &previous))
        return tnf_no_memory("the structure", e);
    if (previous != TNF_HASH_NONE)
        return tnf_fail(e, TNF_EFORMAT, h->base + address,
                        "a node occurs twice: the file contains a reference loop");
    h->nnodes++;
    return TNF_OK;
}

uint64_t tnf_h5_uint(tnf_cur *c, unsigned n)
{
    uint64_t v = 0;
    const uint8_t *p = tnf_bytes(c, n);
    for (unsigned i = n; p && i-- > 0;)
        v = i < 8 ? v << 8 | p[i] : v;
    return v;
}

unsigned tnf_h5_bytes_for(uint64_t v)
{
    unsigned n = 1;
    while (v >>= 8)
        n++;
    return n;
}

unsigned tnf_h5_log(uint64_t v)
{
    unsigned n = 0;
    while (v >>= 1)
        n++;
    return n;
}

tnf_status tnf_h5_bad(const tnf_cur *c, const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, c->base + (uint64_t)(c->p - c->start), "%s", what);
}

/* ---------------------------------------------------------------- checksum */

static uint32_t turn_left(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

static void mix_rounds(uint32_t v[3])
{
    static const uint8_t by[6] = { 4, 6, 8, 16, 19, 4 };
    for (unsigned i = 0; i < 6; i++) {
        uint32_t *a = &v[i % 3], *b = &v[(i + 1) % 3], *c = &v[(i + 2) % 3];
        *a -= *c;
        *a ^= turn_left(*c, by[i]);
        *c += *b;
    }
}

static void mix_last(uint32_t v[3])
{
    static const uint8_t by[7] = { 14, 11, 25, 16, 4, 14, 24 };
    for (unsigned i = 0; i < 7; i++) {
        uint32_t *to = &v[(i + 2) % 3], from = v[(i + 1) % 3];
        *to = (*to ^ from) - turn_left(from, by[i]);
    }
}

/* Jenkins' lookup3, hashlittle() with 0. */
uint32_t tnf_h5_lookup3(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint32_t start = 0xDEADBEEFu + (uint32_t)n, v[3] = { start, start, start };
    for (; n > 12; p += 12, n -= 12) {
        for (int i = 0; i < 3; i++)
            v[i] += tnf_le32(p + 4 * i);
        mix_rounds(v);
    }
    if (n == 0)
        return v[2];
    for (size_t i = 0; i < n; i++)
        v[i / 4] += (uint32_t)p[i] << 8 * (i % 4);
    mix_last(v);
    return v[2];
}

tnf_status tnf_h5_sum(const tnf_cur *c, uint64_t n, const char *what, tnf_error *e)
{
    size_t all = (size_t)(c->end - c->start);
    if (n > all || all - n < 4)
        return tnf_fail(e, TNF_EFORMAT, c->base, "%s has no room for its checksum", what);
    if (tnf_h5_lookup3(c->start, (size_t)n) == tnf_le32(c->start + n))
        return TNF_OK;
    return tnf_fail(e, TNF_EDIGEST, c->base, "%s does not match its checksum", what);
}
