/* SPDX-License-Identifier: MIT */
/* What convert.c and convert_attrs.c share. */
#ifndef TNF_EXT_EMB_CONVERT_H
#define TNF_EXT_EMB_CONVERT_H

#include "ext/emb/view.h"

/* Can what is there become a fastText model? Else it stays as it is, and the format says why. */
bool tnf_becomes_model(const tnf_emb *emb, const tnf_emb_change *how);
/* Does a tensor stay behind because nothing needs it any more? */
bool tnf_convert_leaves(const tnf_emb *emb, const tnf_emb_change *how, const tnf_object *o);
/* The vectors of the words of a fastText model, and the rows of some of its buckets. */
tnf_status tnf_convert_picked(tnf_builder *builder, tnf_emb *emb, const uint64_t *used,
                              uint64_t rows, tnf_error *e);
/* The attributes of the file, as they are true of the vectors that were made. */
tnf_status tnf_convert_attrs(tnf_builder *builder, const tnf_emb *emb, const tnf_emb_change *how,
                             tnf_error *e);

#endif
