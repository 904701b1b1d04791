/* SPDX-License-Identifier: MIT */
/* Shared by the sources of the CBOR codec; all other code includes wire/cbor.h.
 *
 *   an item:   ┌ 3 bits ─┬─ 5 bits ─┐
 *              │  major  │   info   │ argument: 0, 1, 2, 4 or 8 bytes, big-endian │ content …
 *              └─────────┴──────────┘
 *     major    0 uint  1 negative  2 bytes  3 text  4 array  5 map  6 tag  7 float, true, null …
 *     info     0–23 the argument itself, 24–27 in the next bytes, 28–30 reserved, 31 indefinite
 *              length: chunks, items or pairs follow until a byte 0xff
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
    uint64_t argument; /* TNF_CBOR_OPEN for an indefinite length */
    uint8_t major, info;
} tnf_cbor_head;

/* Reads the head of the next item, after its tags. */
bool tnf_cbor_next_head(tnf_cbor *r, tnf_cbor_head *h);
/* Reads the head of an item of that kind, or fails. */
bool tnf_cbor_take(tnf_cbor *r, tnf_cbor_kind kind, tnf_cbor_head *h);
/* Skips an item that is not a container, after its head was read. */
bool tnf_cbor_skip_content(tnf_cbor *r, const tnf_cbor_head *h);

uint64_t tnf_cbor_position(const tnf_cbor *r, const uint8_t *p);
size_t tnf_cbor_left(const tnf_cbor *r);
/* The bytes end early: "the CBOR ends <where>". */
#define tnf_cbor_cut_short(r, where)                                                               \
    tnf_cbor_fail(r, TNF_CBOR_SYNTAX, TNF_ETRUNCATED, tnf_cbor_position(r, (r)->end),              \
                  "the CBOR ends %s", where)
/* An item claims more bytes than remain. */
#define tnf_cbor_too_long(r, h, units)                                                             \
    tnf_cbor_fail(r, TNF_CBOR_SYNTAX, TNF_ETRUNCATED, tnf_cbor_position(r, (h)->at),               \
                  "the CBOR claims %llu %s (bytes left: %zu)", (unsigned long long)(h)->argument,  \
                  units, tnf_cbor_left(r))

/* Converts the bits of a half (5, 10) or single (8, 23) to those of the double of the same
 * value. */
uint64_t tnf_cbor_widen(uint64_t bits, unsigned exponent_bits, unsigned fraction_bits);
/* The width in bytes (2, 4 or 8) of the shortest float with the same value and bits as a double,
 * and the bits of that float. */
unsigned tnf_cbor_shortest_float(uint64_t bits, uint64_t *shortest);
static inline bool tnf_cbor_is_nan(uint64_t bits)
{
    return (bits & ~((uint64_t)1 << 63)) > (uint64_t)0x7ff << 52;
}

#endif
