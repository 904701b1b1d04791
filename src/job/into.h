/* SPDX-License-Identifier: MIT */
/* Writes a model whose tensors get their data from other files. */
#ifndef TNF_JOB_INTO_H
#define TNF_JOB_INTO_H

#include "job/report.h"

/* The caller zero-initialises it and keeps it until after saving. */
typedef struct tnf_into_step {
    tnf_file *view;    /* the selected tensors of the files */
    tnf_builder *made; /* the model with their data */
} tnf_into_step;

/* Gets each tensor that is not simply replaced. */
typedef void (*tnf_into_tell)(void *ctx, const tnf_plan_item *item);

/* A function for tnf_merge_options.select: takes no tensors, only the rest of a file. */
bool tnf_take_none(void *ctx, tnf_str name);

/* Puts the data of the selected tensors into the model o->into. */
tnf_status tnf_into_make(tnf_into_step *step, const tnf_builder *selected,
                         const tnf_convert_options *o, tnf_into_tell tell, void *ctx, tnf_error *e);
void tnf_into_free(tnf_into_step *step);

#endif
