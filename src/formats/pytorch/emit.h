/* SPDX-License-Identifier: MIT */
/* Writes a tree of nodes as a pickle of protocol 2, with the same bytes as CPython's pickler. Nodes
 * are compared by identity, so shared nodes remain shared. */
#ifndef TNF_FORMATS_PYTORCH_EMIT_H
#define TNF_FORMATS_PYTORCH_EMIT_H

#include "formats/pytorch/pt.h"

/* A storage of the tree to be written; numbered in the order of first use. */
typedef struct pt_emitted {
    tnf_str key;               /* must be first, for tnf_named: the key in the nodes */
    tnf_pickle_node *node;     /* its number as text */
    const tnf_part *part;      /* for the writer: its bytes */
    const pt_dense *reordered; /* and their order, if not row-major */
} pt_emitted;

typedef struct pt_emitter {
    tnf_buf *b;
    tnf_arena *arena;
    tnf_named storages; /* pt_emitted */
    uint32_t memo;
    uint32_t first; /* entries up to this one belong to another pickle of the same nodes */
    unsigned depth;
    bool other;  /* some nodes were replaced by what protocol 2 offers */
    bool plain;  /* every tensor is written with a separate storage, row by row */
    bool strict; /* dangerous nodes are refused; otherwise None replaces them */
    tnf_pickle_node *latin1, *encode;
    tnf_error *e;
} pt_emitter;

void tnf_pt_emit_init(pt_emitter *m, tnf_buf *b, tnf_arena *arena, tnf_error *e);
void tnf_pt_emit_free(pt_emitter *m);
tnf_status tnf_pt_emit(pt_emitter *m, tnf_pickle_node *root);

/* Make new nodes. NULL: out of memory, or an argument is NULL. */
tnf_pickle_node *tnf_pt_new_int(tnf_arena *a, uint64_t i);
tnf_pickle_node *tnf_pt_new_text(tnf_arena *a, const char *p, size_t n);
tnf_pickle_node *tnf_pt_new_list(tnf_arena *a, tnf_pickle_kind kind, tnf_pickle_node *const *items,
                                 size_t n);
tnf_pickle_node *tnf_pt_new_global(tnf_arena *a, const char *module, const char *name);
tnf_pickle_node *tnf_pt_new_call(tnf_arena *a, tnf_pickle_node *callee, tnf_pickle_node *args);
tnf_pickle_node *tnf_pt_new_plain(tnf_arena *a, tnf_pickle_kind kind, int64_t i);

#endif
