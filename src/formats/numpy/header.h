/* SPDX-License-Identifier: MIT */
/* The header of an array: the dict of its type, order and shape. */
#ifndef TNF_FORMATS_NUMPY_HEADER_H
#define TNF_FORMATS_NUMPY_HEADER_H

#include "formats/numpy/descr.h"

#define NP_MAGIC      "\x93NUMPY"
#define NP_MAGIC_N    6u
#define NP_MAX_HEADER ((uint64_t)1 << 20)

typedef struct np_array {
    np_type type;
    const char *descr; /* the value of numpy.descr: Python's repr, or plain text without quotes */
    bool fortran;      /* column-major, and the order matters for this shape */
    bool said_fortran; /* fortran_order of the header */
    uint64_t *shape;   /* without the dimensions of the type */
    uint32_t rank;
    uint64_t elements;
    uint64_t shape_at; /* file offset of the shape */
} np_array;

/* Bytes before the header's text. */
static inline unsigned tnf_np_prefix(unsigned major)
{
    return major == 1 ? 10 : 12;
}

/* Are row-major and column-major order the same for this shape? */
bool tnf_np_both_orders(const uint64_t *shape, uint32_t rank);
/* Does the number of bytes, computed without zero dimensions, fit NumPy's signed 64 bits? */
bool tnf_np_countable(const uint64_t *shape, uint32_t rank, uint64_t width);
/* Parses the text of a header of this version. All results are in x->arena. */
tnf_status tnf_np_read_header(np_array *out, const np_context *x, unsigned major,
                              const uint8_t *text, size_t n, tnf_error *e);
/* Reads the type from numpy.descr. */
tnf_status tnf_np_read_descr(np_type *out, const char **canonical, const np_context *x,
                             tnf_str descr, tnf_error *e);
/* Prints the text of numpy.save() for this version, in UTF-8, with its spaces and its line feed. */
tnf_status tnf_np_print_header(tnf_buf *b, unsigned major, const np_array *a, tnf_error *e);
/* The version that numpy.save() chooses. */
unsigned tnf_np_version_for(const np_array *a, const tnf_allocator *alloc);
/* Converts UTF-8 to the bytes of a header of the version; false if this is impossible. */
bool tnf_np_encode(tnf_buf *out, unsigned major, tnf_str text);
/* The inverse. */
void tnf_np_decode(tnf_buf *out, unsigned major, const uint8_t *text, size_t n);

#endif
