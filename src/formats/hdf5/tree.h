/* SPDX-License-Identifier: MIT */
/* The groups and datasets of a file to be written. */
#ifndef TNF_FORMATS_H5_TREE_H
#define TNF_FORMATS_H5_TREE_H

#include "formats/hdf5/put.h"

#define H5_NONE SIZE_MAX

typedef enum h5_kind { H5_GROUP, H5_TENSOR, H5_LINKED, H5_EMPTY } h5_kind;

/* An entry with a path: a tensor, or an item of hdf5.groups, hdf5.links, hdf5.null. */
typedef struct h5_entry {
    tnf_str path;
    h5_kind kind;
    size_t owner; /* position of the tensor, or of the attribute with the item */
    const tnf_object *object;
    const tnf_value *value;
} h5_entry;

typedef struct h5_node {
    h5_entry entry;
    tnf_str name;             /* the last part of the path */
    size_t first, last, next; /* first and last child of a group; next sibling */
    size_t same;              /* the node that shares its dataset; H5_NONE: none */
    uint64_t at, data;        /* addresses of header and data */
    const uint64_t *ends;     /* ends of strings */
} h5_node;

typedef struct h5_tree {
    h5_node *nodes; /* by path; the first is the root */
    size_t n, capacity;
} h5_tree;

/* Collects all entries, sorted by path. Tensors for which skip() returns true are left out; skip
 * may be NULL. */
tnf_status tnf_h5_entries(h5_entry **out, size_t *n, const tnf_catalog *c, tnf_arena *arena,
                          bool (*skip)(const void *ctx, size_t i), const void *ctx, tnf_error *e);
tnf_status tnf_h5_tree(h5_tree *out, const tnf_catalog *c, tnf_arena *arena, tnf_error *e);
bool tnf_h5_is_below(tnf_str path, tnf_str folder);

#endif
