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
    const char *descr; /* as Python's repr, or as plain text without quotes: for numpy.descr */
    bool fortran;      /* columns first, and that makes a difference */
    bool said_fortran; /* as the header says */
    uint64_t *shape;   /* without the dimensions of the type */
    uint32_t rank;
    uint64_t elements;
    uint64_t shape_at; /* where it stands */
} np_array;

/* Bytes before the header's text. */
static inline unsigned tnf_np_prefix(unsigned major)
{
    return major == 1 ? 10 : 12;
}

/* Do rows and columns first mean the same for it? */
bool tnf_np_both_orders(const uint64_t *shape, uint32_t rank);
/* Can NumPy count its bytes? As a signed number of 64 bits, zeros among the dimensions left out. */
bool tnf_np_countable(const uint64_t *shape, uint32_t rank, uint64_t width);
/* The text of a header of that version. Everything is in x->arena. */
tnf_status tnf_np_read_header(np_array *out, const np_context *x, unsigned major,
                              const uint8_t *text, size_t n, tnf_error *e);
/* The type by what numpy.descr says. */
tnf_status tnf_np_read_descr(np_type *out, const char **canonical, const np_context *x,
                             tnf_str descr, tnf_error *e);
/* The text as numpy.save() has it for this version, in UTF-8, with its blanks and its line feed. */
tnf_status tnf_np_print_header(tnf_buf *b, unsigned major, const np_array *a, tnf_error *e);
/* The version that numpy.save() chooses. */
unsigned tnf_np_version_for(const np_array *a, const tnf_allocator *alloc);
/* UTF-8 to the bytes that a header of the version has; false if it cannot hold them. */
bool tnf_np_encode(tnf_buf *out, unsigned major, tnf_str text);
/* The other way. */
void tnf_np_decode(tnf_buf *out, unsigned major, const uint8_t *text, size_t n);

#endif
