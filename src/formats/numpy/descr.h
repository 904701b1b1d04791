/* SPDX-License-Identifier: MIT */
/* NumPy's type descriptors ("<f4", "|S5", [('x', '<f4'), …]) and their types in Tenfold. */
#ifndef TNF_FORMATS_NUMPY_DESCR_H
#define TNF_FORMATS_NUMPY_DESCR_H

#include "formats/numpy/literal.h"

#define NP_AXES 64u

typedef struct np_type {
    const tnf_type *type; /* type of the bytes that are returned */
    uint64_t width;       /* bytes of an element of the array */
    /* Dimensions after those of the array: the bytes of a text, the elements of a subarray. */
    uint64_t axes[NP_AXES];
    uint32_t naxes;
    bool big;            /* stored big-endian, returned little-endian */
    bool object;         /* elements are Python objects: a pickle */
    bool keep_descr;     /* the descriptor says more than the type, so it is kept in numpy.descr */
    char text[48];       /* NumPy's spelling; "": a list or a tuple, printed from its nodes */
    const np_node *list; /* for a short structure: printed from this list instead */
} np_type;

/* The types of ambiguous descriptors. All NULL: bytes. */
typedef struct np_context {
    tnf_reader *r; /* NULL: strict, no warnings */
    tnf_arena *arena;
    const tnf_type *v1, *v2; /* elements of V1 and |V2 */
    uint64_t base;           /* file offset of the array, for messages */
} np_context;

tnf_status tnf_np_resolve(np_type *out, const np_context *x, const np_node *descr, tnf_error *e);
/* NumPy's descriptor for a type, or NULL; ml_dtypes: the descriptor of this package. */
const char *tnf_np_descr_of(const tnf_type *type, bool ml_dtypes);

#endif
