/* SPDX-License-Identifier: MIT */
/* FlatBuffers by looking: tables, vectors and strings, each bound checked where it is followed. The
 * bytes come by a callback, a block at a time, so the large vectors of a model are never read.
 * Nothing is trusted, nothing recursive.
 *
 *   table    i32 how far before it its vtable lies
 *   vtable   u16 its size   u16 size of the table   u16 where each field is in the table; 0:
 * nowhere vector   u32 count, elements         string   a vector of bytes
 *
 * A reference is a u32 that is added to its own position. All is little-endian.
 */
#ifndef TNF_WIRE_FLATBUFFER_H
#define TNF_WIRE_FLATBUFFER_H

#include "base/arena.h"
#include "base/error.h"
#include <tenfold/build.h>
#include <tenfold/types.h>

#define TNF_FLAT_BLOCK 16384u

typedef struct tnf_flat {
    tnf_fetch_fn fetch;
    void *ctx;
    uint64_t n;       /* bytes there are */
    uint64_t limit;   /* bytes that may be read of them in all: TNF_ELIMIT beyond */
    tnf_arena *arena; /* for strings */
    uint8_t *block;   /* TNF_FLAT_BLOCK bytes, the caller's */
    uint64_t block_at;
    size_t block_n;
} tnf_flat;

/* n bytes, which are there. */
tnf_status tnf_flat_read(tnf_flat *in, uint64_t at, void *dst, size_t n, tnf_error *e);

typedef struct tnf_flat_table {
    tnf_flat *in;
    uint64_t at, vtable; /* at 0: there is none, and all its fields are absent */
    uint16_t fields;     /* how many the vtable has */
} tnf_flat_table;

typedef struct tnf_flat_vector {
    tnf_flat *in;
    uint64_t at; /* of its first element */
    uint32_t n;  /* elements, all of which are in the buffer */
    bool absent; /* n is 0, too */
} tnf_flat_vector;

tnf_status tnf_flat_root(tnf_flat_table *out, tnf_flat *in, tnf_error *e);
/* Where a field of `width` bytes lies; 0: it is absent, so it has its default. */
tnf_status tnf_flat_field(uint64_t *at, const tnf_flat_table *t, unsigned field, size_t width,
                          tnf_error *e);
/* Numbers of 1, 4 or 8 bytes; `number` stays as it is if the field is absent. */
tnf_status tnf_flat_number(uint64_t *number, const tnf_flat_table *t, unsigned field, size_t width,
                           tnf_error *e);
tnf_status tnf_flat_vector_of(tnf_flat_vector *out, const tnf_flat_table *t, unsigned field,
                              size_t width, tnf_error *e);
tnf_status tnf_flat_string(tnf_str *out, const tnf_flat_table *t, unsigned field, tnf_error *e);
/* A table that a field, or an element of a vector of references, leads to. */
tnf_status tnf_flat_inner(tnf_flat_table *out, const tnf_flat_table *t, unsigned field,
                          tnf_error *e);
tnf_status tnf_flat_item(tnf_flat_table *out, const tnf_flat_vector *v, uint32_t i, tnf_error *e);

#endif
