/* SPDX-License-Identifier: MIT */
/* What a conversion does to embeddings. */
#ifndef TNF_JOB_VECTORS_H
#define TNF_JOB_VECTORS_H

#include "job/report.h"

/* What is made of a builder's embeddings. Zero-initialise; it must stay until after saving. */
typedef struct tnf_vectors_step {
    tnf_file *view;    /* what was selected, as a file */
    tnf_emb *emb;      /* over it */
    tnf_builder *made; /* NULL: nothing is to be made, and what was selected is saved */
    /* A change to tell of: of this tensor, for this reason; NULL: none. */
    tnf_str changed;
    const char *why;
    bool unasked; /* the target wants it so */
} tnf_vectors_step;

/* Are the options sound, and no two of them against each other? */
tnf_status tnf_vectors_check(const tnf_convert_options *o, tnf_error *e);
/* Makes what options and target ask for. `files`, n of them, are what the builder reads. */
tnf_status tnf_vectors_make(tnf_vectors_step *step, const tnf_builder *selected,
                            const tnf_file *const *files, size_t n, const tnf_convert_options *o,
                            const tnf_format_info *target, struct tnf_report_room *report,
                            tnf_error *e);
void tnf_vectors_free(tnf_vectors_step *step);

#endif
