/* SPDX-License-Identifier: MIT */
/* Shared by convert.c and convert_attrs.c, and used by job/vectors.c. */
#ifndef TNF_EXT_EMB_CONVERT_H
#define TNF_EXT_EMB_CONVERT_H

#include "ext/emb/view.h"

/* Can the vectors become a fastText model? If not, they do not change; the format reports why. */
bool tnf_becomes_model(const tnf_emb *emb, const tnf_emb_change *how);
/* Is a tensor left out because it is no longer needed? */
bool tnf_emb_convert_drops(const tnf_emb *emb, const tnf_emb_change *how, const tnf_object *o);
/* The vectors of the words of a fastText model, and the rows of some of its buckets. */
tnf_status tnf_emb_convert_picked(tnf_builder *builder, tnf_emb *emb, const uint64_t *used,
                                  uint64_t rows, tnf_error *e);
/* Sets the attributes of the file so that they describe the new vectors. */
tnf_status tnf_emb_convert_attrs(tnf_builder *builder, const tnf_emb *emb,
                                 const tnf_emb_change *how, tnf_error *e);
/* For the report: what changes, and why. NULL: nothing. */
const char *tnf_emb_convert_reason(const tnf_emb_info *info, const tnf_emb_change *how);

#endif
