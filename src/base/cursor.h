/* SPDX-License-Identifier: MIT */
/* A bounded reader with a sticky error. After the first read that does not fit, all later reads
 * give zero (or NULL) and `bad` stays set. So parsing code reads like the format and checks once
 * per record.
 *
 *   start ──────── p ──────────── end        where() = base + (p - start)
 */
#ifndef TNF_BASE_CURSOR_H
#define TNF_BASE_CURSOR_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tnf_cur {
    const uint8_t *start, *p, *end;
    uint64_t base; /* position of start in the file */
    bool bad;
} tnf_cur;

static inline tnf_cur tnf_cur_over(const void *p, size_t n, uint64_t base)
{
    return (tnf_cur) { .start = p, .p = p, .end = (const uint8_t *)p + n, .base = base };
}

static inline size_t tnf_left(const tnf_cur *c)
{
    return (size_t)(c->end - c->p);
}

/* File position of the next byte. */
static inline uint64_t tnf_where(const tnf_cur *c)
{
    return c->base + (uint64_t)(c->p - c->start);
}

/* n bytes, or NULL and bad. */
static inline const void *tnf_bytes(tnf_cur *c, uint64_t n)
{
    if (c->bad || n > tnf_left(c)) {
        c->bad = true;
        return NULL;
    }
    const void *p = c->p;
    c->p += n;
    return p;
}

static inline uint8_t tnf_u8(tnf_cur *c)
{
    const uint8_t *p = tnf_bytes(c, 1);
    return p ? *p : 0;
}

static inline uint16_t tnf_u16(tnf_cur *c)
{
    const void *p = tnf_bytes(c, 2);
    return p ? tnf_le16(p) : 0;
}

static inline uint32_t tnf_u32(tnf_cur *c)
{
    const void *p = tnf_bytes(c, 4);
    return p ? tnf_le32(p) : 0;
}

static inline uint64_t tnf_u64(tnf_cur *c)
{
    const void *p = tnf_bytes(c, 8);
    return p ? tnf_le64(p) : 0;
}

/* Seven bits per byte, the lowest first; the last byte is below 0x80. Bad after ten bytes. */
static inline uint64_t tnf_varint(tnf_cur *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = tnf_u8(c);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
    c->bad = true;
    return 0;
}

#endif
