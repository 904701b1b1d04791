/* SPDX-License-Identifier: MIT */
/* A model whose tensors get their data from other files. */
#ifndef TNF_JOB_INTO_H
#define TNF_JOB_INTO_H

#include "job/report.h"

/* Zero-initialise; it must stay until after saving. */
typedef struct tnf_into_step {
    tnf_file *view;    /* what the files give */
    tnf_builder *made; /* the model with that */
} tnf_into_step;

/* Told of each tensor that is not simply replaced. */
typedef void (*tnf_into_tell)(void *ctx, const tnf_plan_item *item);

/* tnf_merge_options.select: no tensor, only what else a file has. */
bool tnf_take_none(void *ctx, tnf_str name);

/* Puts what was selected into o->into. */
tnf_status tnf_into_make(tnf_into_step *step, const tnf_builder *selected,
                         const tnf_convert_options *o, tnf_into_tell tell, void *ctx, tnf_error *e);
void tnf_into_free(tnf_into_step *step);

#endif
