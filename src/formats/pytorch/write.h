/* SPDX-License-Identifier: MIT */
#ifndef TNF_FORMATS_PYTORCH_WRITE_H
#define TNF_FORMATS_PYTORCH_WRITE_H

#include "formats/pytorch/pt.h"

enum { PT_WRITE_ROOT, PT_WRITE_ALIGN, PT_WRITE_CRC, PT_WRITE_CLASS };

#define PT_PLACED 0xfffffffeu /* a node's number: its view has a storage of its own by now */

/* pytorch.tree or pytorch.views, if its tensors are those of the catalog; else *why not. Without
 * one, n is 0. */
tnf_status tnf_pt_open_tree(tnf_pickle *p, pt_named **list, size_t *n, const tnf_catalog *c,
                            const char *key, tnf_arena *a, const char **why, tnf_error *e);

/* views.c */
/* What a tree says of a tensor, without the bytes. */
tnf_status tnf_pt_resolve_blind(pt_tensor *out_t, tnf_pickle_node *node, tnf_arena *a,
                                tnf_error *e);
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

#endif
