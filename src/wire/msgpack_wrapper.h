/* SPDX-License-Identifier: MIT */
/* Shared by the sources of the MessagePack codec; all other code includes wire/msgpack.h. */
#ifndef TNF_WIRE_MSGPACK_WRAPPER_H
#define TNF_WIRE_MSGPACK_WRAPPER_H

#include "wire/msgpack.h"
#include "wire/tree.h"

/* The bytes before the content of an item. */
typedef struct tnf_msgpack_head {
    const uint8_t *at;
    uint64_t argument; /* the value, its bits, or the length */
    uint8_t kind;      /* a tnf_msgpack_kind */
    uint8_t dtype;     /* of numbers */
} tnf_msgpack_head;

bool tnf_msgpack_next_head(tnf_msgpack *r, tnf_msgpack_head *h);

/* The content of {"$ext": …}, {"$str": …}, {"$pairs": …} if v is that and well-formed, else
 * NULL. */
const tnf_value *tnf_msgpack_ext_of(const tnf_value *v);
const tnf_value *tnf_msgpack_str_of(const tnf_value *v);
const tnf_value *tnf_msgpack_pairs_of(const tnf_value *v);
/* Would put_value() write this map as something other than a map? */
bool tnf_msgpack_is_wrapper(const tnf_value *v);

#endif
