/* SPDX-License-Identifier: MIT */
#ifndef TNF_FORMATS_PYTORCH_WRITE_H
#define TNF_FORMATS_PYTORCH_WRITE_H

#include "formats/pytorch/emit.h"
#include "wire/zip.h"

enum { PT_WRITE_ROOT, PT_WRITE_ALIGN, PT_WRITE_CRC, PT_WRITE_CLASS };

#define PT_PLACED 0xfffffffeu /* a node's number: its view already has a separate storage */

/* A tensor of torch that covers a separate storage. */
typedef struct pt_view {
    const pt_type *type;
    uint32_t rank;
    bool columns; /* column-major */
    uint64_t shape[PT_RANK + 1];
} pt_view;

/* The state of the writer. */
typedef struct pt_out {
    tnf_writer *w;
    tnf_arena *a;
    pt_emitter m;
    tnf_buf pickle, bytes;
    tnf_named parts_by_key; /* pt_emitted: the bytes of storages, by their keys in the nodes */
    tnf_zip_put *members;
    size_t n, capacity;
    tnf_str root;
    uint32_t align;
    uint64_t hash; /* over the CRCs, for the id */
    bool crc;
    bool by_tree;   /* tensors in the order of a tree, not by name */
    bool reordered; /* a tensor keeps strides other than row-major */
    /* nodes that all tensors share, as in torch.save() */
    tnf_pickle_node *storage, *cpu, *no, *rebuild2, *rebuild3, *ordered, *empty;
    tnf_pickle_node *classes[64]; /* by position in the table of types */
    pt_view view;                 /* memory of place_view() */
    tnf_error *e;
} pt_out;

/* nodes.c */
tnf_status tnf_pt_begin_nodes(pt_out *o);
/* Makes the call that rebuilds a tensor, each part in a separate storage; NULL: out of memory. */
tnf_pickle_node *tnf_pt_object_node(pt_out *o, const tnf_object *t);
/* Makes (storage, offset, size, stride) of a part; a NULL item: out of memory. */
void tnf_pt_view_items(pt_out *o, const tnf_object *t, const tnf_part *part, const pt_view *v,
                       tnf_pickle_node *items[4]);
/* The form of a dense tensor in torch. */
bool tnf_pt_view_of(pt_view *v, const tnf_object *t);
bool tnf_pt_is_quantized(const tnf_object *t);
/* Returns true if torch supports the layout of this tensor, but not with these parts: then each
 * part must be written as a tensor. */
bool tnf_pt_in_parts(const tnf_object *t);

/* Reads an integer attribute of a tensor. */
bool tnf_pt_attr_int(const tnf_object *t, const char *key, int64_t *out);

/* sparse.c: finds the shapes of the parts of a sparse tensor, in torch's order, from their numbers
 * of elements, `counts`; false: the shapes do not follow. `kind`: "csr", "csc", "bsr", "bsc". */
bool tnf_pt_shape_coo(pt_view *v, const uint64_t *counts, const tnf_object *t);
bool tnf_pt_shape_compressed(pt_view *v, const uint64_t *counts, const tnf_object *t,
                             const char *kind);

/* Opens pytorch.tree or pytorch.views if its tensors are those of the catalog; else *why is the
 * reason. Without such an attribute n is 0. */
tnf_status tnf_pt_open_tree(tnf_pickle *p, pt_named **list, size_t *n, const tnf_catalog *c,
                            const char *key, tnf_arena *a, const char **why, tnf_error *e);

/* views.c */
/* Is it the tensor that the node describes? */
bool tnf_pt_is_same(const pt_tensor *t, const tnf_object *o);
/* The tuple (storage, offset, size, stride, …) inside its wrappers; NULL: not found. */
tnf_pickle_node *tnf_pt_view_args(tnf_pickle_node *node);
/* The node of the storage of a view; NULL: not found. */
tnf_pickle_node *tnf_pt_storage_of(tnf_pickle_node *node);
/* Does the tensor cover its storage, in row-major order? */
bool tnf_pt_is_base(const pt_tensor *t);
/* Is it a view of the base? Compared by the places of the bytes, or by the bytes themselves. */
bool tnf_pt_is_view_of(const tnf_part *part, const tnf_part *base);
tnf_status tnf_pt_compare_views(bool *same, const tnf_part *part, const tnf_part *base,
                                const pt_dense *d, tnf_error *e);
/* Does it cover its storage, each element once, but not in row-major order (channels_last …)? */
bool tnf_pt_is_reordered(const pt_dense *d);
/* Converts the bytes of a part from row-major order to that of the strides. */
tnf_status tnf_pt_reorder(uint8_t *out, const tnf_part *part, const pt_dense *d, tnf_error *e);

#endif
