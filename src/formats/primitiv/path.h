/* SPDX-License-Identifier: MIT */
/* Paths of primitiv parameters as names of tensors, and back.
 *
 * A parameter's path is an array of names; a tensor has a single name. Both are equivalent: names
 * are joined with dots, and a dot inside a name is written "\.". Backslashes are special only
 * before a dot, where each is doubled. So every name is a path, and every path is a name:
 *
 *   ["encoder","w"]  encoder.w        ["a.b"]    a\.b         ["a\","b"]  a\\.b
 *   [""]             (empty)          ["",""]    .            ["a\b"]     a\b
 */
#ifndef TNF_FORMATS_PRIMITIV_PATH_H
#define TNF_FORMATS_PRIMITIV_PATH_H

#include "base/buf.h"
#include <tenfold/types.h>

/* Reads a name as a path, symbol by symbol. */
typedef struct prim_path {
    const char *p, *end;
    size_t slashes; /* backslashes still to return */
    bool dot;       /* a dot that is data follows them */
} prim_path;

enum { PRIM_END = -2, PRIM_NEXT = -1 }; /* end; begin of the next element; other values are bytes */

prim_path tnf_prim_path_of(tnf_str name);
int tnf_prim_path_next(prim_path *path);
/* The number of elements, at least one. */
uint64_t tnf_prim_path_elements(tnf_str name);
/* The inverse: appends one element. A dot follows it unless it is the `last`. */
typedef void (*prim_put)(void *to, char c);
void tnf_prim_path_escape(tnf_str element, bool last, prim_put put, void *to);
void tnf_prim_path_put(tnf_buf *name, tnf_str element, bool last);
/* Compares paths by element and byte, in the order of parameters in primitiv's models. */
int tnf_prim_path_compare(const tnf_object *a, const tnf_object *b);

#endif
