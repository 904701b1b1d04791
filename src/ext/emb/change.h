/* SPDX-License-Identifier: MIT */
/* Helpers for deriving one embedding file from another. */
#ifndef TNF_EXT_EMB_CHANGE_H
#define TNF_EXT_EMB_CHANGE_H

#include "base/hash.h"
#include "ext/emb/view.h"

/* Adds a tensor of n strings: n + 1 little-endian offsets into `bytes`. */
tnf_status tnf_emb_add_strings(tnf_builder *builder, const char *name, const uint64_t *offsets,
                               uint64_t n, const void *bytes, tnf_error *e);
/* Sets an attribute of the file. */
tnf_status tnf_emb_set_text(tnf_builder *builder, const char *key, const char *text, tnf_error *e);
/* Copies the attribute that says that vectors have no norms on purpose, if the file has it. */
tnf_status tnf_emb_keep_bare(tnf_builder *builder, const tnf_emb *emb, tnf_error *e);
/* Adds everything of a view's file except the matrix: other tensors, attributes. */
tnf_status tnf_emb_add_others(tnf_builder *builder, const tnf_emb *emb, tnf_error *e);

#endif
