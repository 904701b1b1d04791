/* SPDX-License-Identifier: MIT */
/* What the sources of the CBOR codec share; everybody else includes wire/cbor.h.
 *
 *   an item:   ┌ 3 bits ─┬─ 5 bits ─┐
 *              │  major  │   info   │ argument: 0, 1, 2, 4 or 8 bytes, big-endian │ content …
 *              └─────────┴──────────┘
 *     major    0 uint  1 negative  2 bytes  3 text  4 array  5 map  6 tag  7 float, true, null …
 *     info     0–23 the argument itself, 24–27 in the next bytes, 28–30 reserved, 31 length left
 *              open: chunks, items or pairs follow until a byte 0xff
 */
#ifndef TNF_WIRE_CBOR_HEAD_H
#define TNF_WIRE_CBOR_HEAD_H

#include "wire/cbor.h"

enum {
    CBOR_UINT,
    CBOR_NEGATIVE,
    CBOR_BYTES,
    CBOR_TEXT,
    CBOR_ARRAY,
    CBOR_MAP,
    CBOR_TAG,
    CBOR_SIMPLE
};

#define CBOR_OPEN_INFO 31u
#define CBOR_BREAK     0xffu
#define CBOR_UNDEFINED 0xf7u
#define CBOR_NAN       0x7e00u /* the canonical one, a half */

typedef struct tnf_cbor_head {
    const uint8_t *at;
    uint64_t argument; /* TNF_CBOR_OPEN for a length left open */
    uint8_t major, info;
} tnf_cbor_head;

/* The head of the next item, past its tags. */
bool tnf_cbor_next_head(tnf_cbor *r, tnf_cbor_head *h);
/* The head of an item of that kind, or an error. */
bool tnf_cbor_take(tnf_cbor *r, tnf_cbor_kind kind, tnf_cbor_head *h);
/* Past an item that is no container, whose head was read. */
bool tnf_cbor_skip_content(tnf_cbor *r, const tnf_cbor_head *h);

uint64_t tnf_cbor_position(const tnf_cbor *r, const uint8_t *p);
size_t tnf_cbor_left(const tnf_cbor *r);
/* The bytes end too soon: "the CBOR ends <where>". */
#define tnf_cbor_cut_short(r, where)                                                               \
    tnf_cbor_fail(r, TNF_CBOR_SYNTAX, TNF_ETRUNCATED, tnf_cbor_position(r, (r)->end),              \
                  "the CBOR ends %s", where)
/* An item claims more than there is. */
#define tnf_cbor_too_long(r, h, units)                                                             \
    tnf_cbor_fail(r, TNF_CBOR_SYNTAX, TNF_ETRUNCATED, tnf_cbor_position(r, (h)->at),               \
                  "the CBOR claims %llu %s (bytes left: %zu)", (unsigned long long)(h)->argument,  \
                  units, tnf_cbor_left(r))

/* The bits of a half (5, 10) or single (8, 23) as those of the double of the same value. */
uint64_t tnf_cbor_widen(uint64_t bits, unsigned exponent_bits, unsigned fraction_bits);
/* The width in bytes (2, 4 or 8) of the shortest float with the value and the bits of a double, and
 * that float's bits. */
unsigned tnf_cbor_shortest_float(uint64_t bits, uint64_t *shortest);
static inline bool tnf_cbor_is_nan(uint64_t bits)
{
    return (bits & ~((uint64_t)1 << 63)) > (uint64_t)0x7ff << 52;
}

#endif
