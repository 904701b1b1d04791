/* SPDX-License-Identifier: MIT */
/* Shared by the files of the writer: types, attributes, strings in the global heap. */
#ifndef TNF_FORMATS_H5_PUT_H
#define TNF_FORMATS_H5_PUT_H

#include "formats/hdf5/h5.h"

#define H5_BODY 65000u /* most bytes of a message */

/* Strings for the global heap, by collection. */
typedef struct h5_strings {
    tnf_str *items;
    size_t n, capacity;
    tnf_arena *arena;
} h5_strings;

/* The place of the next string. */
typedef struct h5_spot {
    uint64_t start; /* of its collection */
    uint64_t used;  /* its bytes so far, with the head */
    uint32_t index; /* number of the last object; 0: none yet */
} h5_spot;

/* Places a string of n bytes. True: a new collection begins with it; *ended is the used size of the
 * previous one (0: there was none). */
bool tnf_h5_next_spot(h5_spot *s, uint64_t n, uint64_t *ended);
/* The size of a collection of which `used` bytes are taken. */
uint64_t tnf_h5_collection(uint64_t used);
void tnf_h5_put_reference(tnf_buf *b, uint64_t n, const h5_spot *s);
/* Writes one object, or the head or the end of a collection. */
void tnf_h5_put_string(tnf_buf *b, const char *p, uint64_t n, uint32_t index);
void tnf_h5_put_head(tnf_buf *b, uint64_t size);
void tnf_h5_put_end(tnf_buf *b, uint64_t used);

void tnf_h5_put_u16(tnf_buf *b, unsigned v);
void tnf_h5_put_type(tnf_buf *b, const tnf_type *type);
void tnf_h5_put_text_type(tnf_buf *b);
void tnf_h5_put_opaque(tnf_buf *b, uint64_t n);
void tnf_h5_put_enum(tnf_buf *b, const tnf_type *type, const tnf_value *names);
bool tnf_h5_is_enum(const tnf_type *type, const tnf_value *names);
/* kind: 0 one element, 1 an array, 2 null */
void tnf_h5_put_space(tnf_buf *b, unsigned kind, const uint64_t *dims, uint32_t rank);

/* NULL if the value can be an attribute, else the reason why not. */
const char *tnf_h5_attr_why(tnf_str key, const tnf_value *v);
const char *tnf_h5_attrs_why(const tnf_value *map);
/* Writes the body of the attribute's message. References begin at *spot; their strings are added to
 * `strings`. */
tnf_status tnf_h5_put_attr(tnf_buf *b, tnf_str key, const tnf_value *v, h5_strings *strings,
                           h5_spot *spot, tnf_error *e);

/* Compares paths component by component: "a/b" before "a-b". */
int tnf_h5_compare_paths(tnf_str a, tnf_str b);
int tnf_h5_compare(const tnf_object *a, const tnf_object *b);

#endif
