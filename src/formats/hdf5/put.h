/* SPDX-License-Identifier: MIT */
/* What the writer's files share: types, attributes, strings in the global heap. */
#ifndef TNF_FORMATS_H5_PUT_H
#define TNF_FORMATS_H5_PUT_H

#include "formats/hdf5/h5.h"

#define H5_BODY 65000u /* bytes that a message may have */

/* Strings that go to the global heap, collection by collection. */
typedef struct h5_strings {
    tnf_str *items;
    size_t n, capacity;
    tnf_arena *arena;
} h5_strings;

/* Where the next string lies. */
typedef struct h5_spot {
    uint64_t start; /* of its collection */
    uint64_t used;  /* bytes of it so far, the head counted */
    uint32_t index; /* of the last object; 0: none yet */
} h5_spot;

/* The place of a string of n bytes; true: a new collection begins with it, *ended bytes behind the
 * start of the one before (0: there was none). */
bool tnf_h5_next_spot(h5_spot *s, uint64_t n, uint64_t *ended);
/* Bytes of a collection in which `used` are taken. */
uint64_t tnf_h5_collection(uint64_t used);
void tnf_h5_put_reference(tnf_buf *b, uint64_t n, const h5_spot *s);
/* One object, or the head and the end of a collection. */
void tnf_h5_put_string(tnf_buf *b, const char *p, uint64_t n, uint32_t index);
void tnf_h5_put_head(tnf_buf *b, uint64_t size);
void tnf_h5_put_end(tnf_buf *b, uint64_t used);

void tnf_h5_put_u16(tnf_buf *b, unsigned v);
void tnf_h5_put_type(tnf_buf *b, const tnf_type *type);
void tnf_h5_put_text_type(tnf_buf *b);
void tnf_h5_put_opaque(tnf_buf *b, uint64_t n);
void tnf_h5_put_enum(tnf_buf *b, const tnf_type *type, const tnf_value *names);
bool tnf_h5_is_enum(const tnf_type *type, const tnf_value *names);
/* kind: 0 one element, 1 an array, 2 nothing */
void tnf_h5_put_space(tnf_buf *b, unsigned kind, const uint64_t *dims, uint32_t rank);

/* Can the value be an attribute? What is wrong with it, or NULL. */
const char *tnf_h5_attr_why(tnf_str key, const tnf_value *v);
const char *tnf_h5_attrs_why(const tnf_value *map);
/* The body of its message. References are taken from *spot, whose strings follow in h5_strings. */
tnf_status tnf_h5_put_attr(tnf_buf *b, tnf_str key, const tnf_value *v, h5_strings *strings,
                           h5_spot *spot, tnf_error *e);

/* "a/b" before "a-b": by the parts of paths. */
int tnf_h5_compare_paths(tnf_str a, tnf_str b);
int tnf_h5_compare(const tnf_object *a, const tnf_object *b);

#endif
