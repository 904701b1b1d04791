/* SPDX-License-Identifier: MIT */
/* A reader of FlatBuffers: tables, vectors and strings; every reference is checked when it is
 * followed. A callback reads the bytes block by block, so the large vectors of a model are never
 * read. No number of the file is trusted, and there is no recursion.
 *
 *   table    i32 distance to its vtable, which is before it
 *   vtable   u16 its size   u16 size of the table   u16 position of each field in it; 0: absent
 *   vector   u32 count, elements         string   a vector of bytes
 *
 * A reference is a u32 that is added to its own position. All is little-endian.
 */
#ifndef TNF_WIRE_FLATBUFFER_H
#define TNF_WIRE_FLATBUFFER_H

#include "base/arena.h"
#include "base/error.h"
#include <tenfold/types.h>

#define TNF_FLAT_BLOCK 16384u

typedef struct tnf_flat {
    tnf_fetch_fn fetch;
    void *ctx;
    uint64_t n;       /* bytes of the file */
    uint64_t limit;   /* total bytes that may be read: TNF_ELIMIT beyond */
    tnf_arena *arena; /* for strings */
    uint8_t *block;   /* TNF_FLAT_BLOCK bytes, the caller's */
    uint64_t block_at;
    size_t block_n;
} tnf_flat;

/* Reads n bytes, which must be in the file. */
tnf_status tnf_flat_read(tnf_flat *in, uint64_t at, void *dst, size_t n, tnf_error *e);

typedef struct tnf_flat_table {
    tnf_flat *in;
    uint64_t at, vtable; /* at 0: there is no table, and all its fields are absent */
    uint16_t fields;     /* number of fields in the vtable */
} tnf_flat_table;

typedef struct tnf_flat_vector {
    tnf_flat *in;
    uint64_t at; /* of its first element */
    uint32_t n;  /* number of elements, all of which are in the file */
    bool absent; /* then n is 0 */
} tnf_flat_vector;

tnf_status tnf_flat_root(tnf_flat_table *out, tnf_flat *in, tnf_error *e);
/* The position of a field of `width` bytes; 0: it is absent, so it has its default. */
tnf_status tnf_flat_field(uint64_t *at, const tnf_flat_table *t, unsigned field, size_t width,
                          tnf_error *e);
/* Reads a number of 1, 4 or 8 bytes; `number` is unchanged if the field is absent. */
tnf_status tnf_flat_number(uint64_t *number, const tnf_flat_table *t, unsigned field, size_t width,
                           tnf_error *e);
tnf_status tnf_flat_vector_of(tnf_flat_vector *out, const tnf_flat_table *t, unsigned field,
                              size_t width, tnf_error *e);
tnf_status tnf_flat_string(tnf_str *out, const tnf_flat_table *t, unsigned field, tnf_error *e);
/* The table that a field, or an element of a vector of references, refers to. */
tnf_status tnf_flat_inner(tnf_flat_table *out, const tnf_flat_table *t, unsigned field,
                          tnf_error *e);
tnf_status tnf_flat_item(tnf_flat_table *out, const tnf_flat_vector *v, uint32_t i, tnf_error *e);

#endif
