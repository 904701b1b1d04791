/* SPDX-License-Identifier: MIT */
/* Groups of a file with several matrices, each seen as an ordinary file. */
#ifndef TNF_EXT_EMB_GROUP_H
#define TNF_EXT_EMB_GROUP_H

#include <tenfold/build.h>

/* A file with the tensors of one group, under the names of an ordinary file. */
typedef struct tnf_group_view {
    tnf_file *file; /* NULL: it is not needed */
    tnf_builder *builder;
} tnf_group_view;

/* Opens the group of the matrix `name`, which is "2/embeddings" in the second group. The first
 * group of several is "1/embeddings", although its tensors have no number. `out->file` is NULL if
 * the name is not of this form, or the file has no such group. `file` must stay open. */
tnf_status tnf_group_open(tnf_group_view *out, const tnf_file *file, tnf_str name,
                          const tnf_open_options *how, tnf_error *e);
void tnf_group_close(tnf_group_view *view);

#endif
