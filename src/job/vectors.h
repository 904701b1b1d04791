/* SPDX-License-Identifier: MIT */
/* Changes of embeddings in a conversion. */
#ifndef TNF_JOB_VECTORS_H
#define TNF_JOB_VECTORS_H

#include "ext/emb/group.h"
#include "job/report.h"

/* The changed embeddings of a builder. The caller zero-initialises it and keeps it until after
 * saving. */
typedef struct tnf_vectors_step {
    tnf_file *view;       /* the selected tensors, as a file */
    tnf_group_view group; /* of the group of `view` that the options name */
    const tnf_file *from; /* `view`, or that group */
    tnf_emb *emb;         /* opened on `from` */
    tnf_builder *made;    /* NULL: nothing changes, so the selection is saved */
    /* A change to report: of this tensor, for this reason; NULL: none. */
    tnf_str changed;
    const char *why;
    bool unasked; /* the target requires the change */
} tnf_vectors_step;

/* Checks that the options are valid, and do not contradict each other. */
tnf_status tnf_vectors_check(const tnf_convert_options *o, tnf_error *e);
/* Makes the changes that the options request, or the target requires. The builder reads `files`. */
tnf_status tnf_vectors_make(tnf_vectors_step *step, const tnf_builder *selected,
                            const tnf_file *const *files, size_t n, const tnf_convert_options *o,
                            const tnf_format_info *target, struct tnf_report_room *report,
                            tnf_error *e);
void tnf_vectors_free(tnf_vectors_step *step);

#endif
