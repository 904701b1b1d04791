/* SPDX-License-Identifier: MIT */
/* Paths of primitiv parameters as names of tensors, and back.
 *
 * A parameter's path is an array of names; a tensor has one name. They are the same thing said
 * twice: names are joined with dots, and a dot that is part of a name is written "\.". Backslashes
 * count only before a dot, where each is doubled, so every name is some path and every path some
 * name:
 *
 *   ["encoder","w"]  encoder.w        ["a.b"]    a\.b         ["a\","b"]  a\\.b
 *   [""]             (empty)          ["",""]    .            ["a\b"]     a\b
 */
#ifndef TNF_FORMATS_PRIMITIV_PATH_H
#define TNF_FORMATS_PRIMITIV_PATH_H

#include "base/buf.h"
#include <tenfold/types.h>

/* A name, read as a path: one symbol after the other. */
typedef struct prim_path {
    const char *p, *end;
    size_t slashes; /* backslashes still to come */
    bool dot;       /* then a dot that is data */
} prim_path;

enum { PRIM_END = -2, PRIM_NEXT = -1 }; /* no more; the next element begins; else a byte */

prim_path tnf_prim_path_of(tnf_str name);
int tnf_prim_path_next(prim_path *path);
/* How many elements; at least one. */
uint64_t tnf_prim_path_elements(tnf_str name);
/* The other way: one element more. `last`: none follows, otherwise a dot is put after it. */
typedef void (*prim_put)(void *to, char c);
void tnf_prim_path_escape(tnf_str element, bool last, prim_put put, void *to);
void tnf_prim_path_put(tnf_buf *name, tnf_str element, bool last);
/* By elements, each by its bytes, as primitiv orders the parameters of a model. */
int tnf_prim_path_compare(const tnf_object *a, const tnf_object *b);

#endif
