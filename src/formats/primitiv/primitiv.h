/* SPDX-License-Identifier: MIT */
/* What the files of the primitiv format share.
 *
 * A parameter's path is an array of names; a tensor has one name. They are the same thing said
 * twice: names are joined with dots, and a dot that is part of a name is written "\.". Backslashes
 * count only before a dot, where each is doubled, so every name is some path and every path some
 * name:
 *
 *   ["encoder","w"]  encoder.w        ["a.b"]    a\.b         ["a\","b"]  a\\.b
 *   [""]             (empty)          ["",""]    .            ["a\b"]     a\b
 *
 * A statistic "m" of w is the tensor "w@m", with the attribute primitiv.stat = "m".
 */
#ifndef TNF_PRIMITIV_H
#define TNF_PRIMITIV_H

#include "format.h"

/* data_type of the header, divided by 0x100. */
typedef enum prim_type {
    PRIM_SHAPE,
    PRIM_TENSOR,
    PRIM_PARAMETER,
    PRIM_MODEL,
    PRIM_OPTIMIZER,
    PRIM_TYPES
} prim_type;

extern const char *const prim_type_names[PRIM_TYPES];

#define PRIM_MAX_DIMS 8u
#define PRIM_VALUE    "value" /* the tensor of a Tensor or Parameter file, which has no path */
#define PRIM_TRAILING "primitiv.trailing"

/* A name, read as a path: one symbol after the other. */
typedef struct prim_path {
    const char *p, *end;
    size_t slashes; /* backslashes still to come */
    bool dot;       /* then a dot that is data */
} prim_path;

enum { PRIM_END = -2, PRIM_NEXT = -1 }; /* no more; the next element begins; else a byte */

prim_path prim_path_of(tnf_str name);
int prim_path_next(prim_path *path);
/* How many elements; at least one. */
uint64_t prim_path_elements(tnf_str name);
/* The other way: one element more. `last`: none follows, otherwise a dot is put after it. */
void prim_path_put(tnf_buf *name, tnf_str element, bool last);
/* By elements, each by its bytes, as primitiv orders the parameters of a model. */
int prim_path_compare(const tnf_object *a, const tnf_object *b);

tnf_status prim_index(tnf_reader *r, tnf_error *e);
tnf_status prim_write(tnf_writer *w, tnf_error *e);
tnf_fate prim_takes(const tnf_object *o, const char **reason);

/* In the order of the write options. */
enum { PRIM_OPTION_TYPE, PRIM_OPTION_ORDER, PRIM_OPTION_SORT };
enum { PRIM_ORDER_PATH, PRIM_ORDER_FILE };
#define PRIM_TYPE_AUTO 0u /* of PRIM_OPTION_TYPE; then 1 + prim_type */

#endif
