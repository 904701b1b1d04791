/* SPDX-License-Identifier: MIT */
/* NumPy's type descriptors ("<f4", "|S5", [('x', '<f4'), …]) and what they are here. */
#ifndef TNF_FORMATS_NUMPY_DESCR_H
#define TNF_FORMATS_NUMPY_DESCR_H

#include "formats/numpy/literal.h"

#define NP_AXES 64u

typedef struct np_type {
    const tnf_type *type; /* of the bytes, as they are given out */
    uint64_t width;       /* bytes of an element of the array */
    /* Dimensions behind those of the array: the bytes of a text, the elements of a subarray. */
    uint64_t axes[NP_AXES];
    uint32_t naxes;
    bool big;            /* stored big-endian, given out little-endian */
    bool object;         /* elements are Python objects: a pickle */
    bool worth;          /* the type here does not say it all: it goes into numpy.descr */
    char text[48];       /* as NumPy spells it; "": a list or a tuple, which is printed as it is */
    const np_node *list; /* or as this, for a structure in short */
} np_type;

/* What descriptors that do not say what they are stand for; all NULL: nothing. */
typedef struct np_context {
    tnf_reader *r; /* NULL: nobody to warn; strict */
    tnf_arena *arena;
    const tnf_type *v1, *v2; /* elements of V1 and |V2 */
    uint64_t base;           /* where the array begins in the file, for messages */
} np_context;

tnf_status tnf_np_resolve(np_type *out, const np_context *x, const np_node *descr, tnf_error *e);
/* The descriptor that NumPy has for a type of ours, or NULL; ml_dtypes: that this package has. */
const char *tnf_np_descr_of(const tnf_type *type, bool ml_dtypes);

#endif
