/* SPDX-License-Identifier: MIT */
#ifndef TNF_FORMATS_PYTORCH_WRITE_H
#define TNF_FORMATS_PYTORCH_WRITE_H

#include "formats/pytorch/emit.h"
#include "wire/zip.h"

enum { PT_WRITE_ROOT, PT_WRITE_ALIGN, PT_WRITE_CRC, PT_WRITE_CLASS };

#define PT_PLACED 0xfffffffeu /* a node's number: its view has a storage of its own by now */

/* A tensor of torch that is all of a storage of its own. */
typedef struct pt_view {
    const pt_type *type;
    uint32_t rank;
    bool columns; /* first */
    uint64_t shape[PT_RANK + 1];
} pt_view;

/* What is written. */
typedef struct pt_out {
    tnf_writer *w;
    tnf_arena *a;
    pt_emitter m;
    tnf_buf pickle, bytes;
    tnf_named parts_by_key; /* pt_emitted: the bytes of storages, by the keys of nodes */
    tnf_zip_put *members;
    size_t n, capacity;
    tnf_str root;
    uint32_t align;
    uint64_t hash; /* of the CRCs, for the id */
    bool crc;
    bool by_tree; /* in the order of a tree, not by name */
    bool turned;  /* a tensor keeps strides that are not those of rows first */
    /* nodes that all tensors share, as torch.save() has them */
    tnf_pickle_node *storage, *cpu, *no, *rebuild2, *rebuild3, *ordered, *empty;
    tnf_pickle_node *classes[64]; /* by position in the table of types */
    pt_view view;                 /* of place_view() */
    tnf_error *e;
} pt_out;

/* nodes.c */
tnf_status tnf_pt_begin_nodes(pt_out *o);
/* The call that rebuilds a tensor, each part in a storage of its own; NULL: no memory. */
tnf_pickle_node *tnf_pt_object_node(pt_out *o, const tnf_object *t);
/* (storage, offset, size, stride) of a part; those that are NULL: no memory. */
void tnf_pt_view_items(pt_out *o, const tnf_object *t, const tnf_part *part, const pt_view *v,
                       tnf_pickle_node *items[4]);
/* A dense tensor as torch has it. */
bool tnf_pt_view_of(pt_view *v, const tnf_object *t);
bool tnf_pt_is_quantized(const tnf_object *t);
/* Does a layout that torch has not say enough of this tensor? */
bool tnf_pt_in_parts(const tnf_object *t);

/* A whole number among the attributes of a tensor. */
bool tnf_pt_attr_int(const tnf_object *t, const char *key, int64_t *out);

/* sparse.c: shapes of the parts of a sparse tensor, of which `counts` numbers are there, in the
 * order that torch has; false: they do not follow from them. `kind`: "csr", "csc", "bsr", "bsc". */
bool tnf_pt_shape_coo(pt_view *v, const uint64_t *counts, const tnf_object *t);
bool tnf_pt_shape_compressed(pt_view *v, const uint64_t *counts, const tnf_object *t,
                             const char *kind);

/* pytorch.tree or pytorch.views, if its tensors are those of the catalog; else *why not. Without
 * one, n is 0. */
tnf_status tnf_pt_open_tree(tnf_pickle *p, pt_named **list, size_t *n, const tnf_catalog *c,
                            const char *key, tnf_arena *a, const char **why, tnf_error *e);

/* views.c */
/* Is it the tensor that the node describes? */
bool tnf_pt_is_same(const pt_tensor *t, const tnf_object *o);
/* The tuple (storage, offset, size, stride, …) within what wraps it; NULL: not found. */
tnf_pickle_node *tnf_pt_view_args(tnf_pickle_node *node);
/* The node of the storage that it is a view of; NULL: not found. */
tnf_pickle_node *tnf_pt_storage_of(tnf_pickle_node *node);
/* All of its storage, rows first? */
bool tnf_pt_is_base(const pt_tensor *t);
/* By where its bytes come from, and by the bytes themselves: is it the base through strides? */
bool tnf_pt_is_view_of(const tnf_part *part, const tnf_part *base);
tnf_status tnf_pt_compare_views(bool *same, const tnf_part *part, const tnf_part *base,
                                const pt_dense *d, tnf_error *e);
/* All of its storage, each element once, but not rows first: channels_last and its like. */
bool tnf_pt_is_turned(const pt_dense *d);
/* The bytes of a part, rows first, in the order that the strides have. */
tnf_status tnf_pt_turn(uint8_t *out, const tnf_part *part, const pt_dense *d, tnf_error *e);

#endif
