/* SPDX-License-Identifier: MIT */
/* For processing some of the tensors of a file, while other workers process the rest. */
#ifndef TNF_CORE_LOOK_PARTIAL_H
#define TNF_CORE_LOOK_PARTIAL_H

#include <tenfold/tenfold.h>

typedef struct tnf_some {
    bool (*wanted)(void *ctx, const tnf_object *object);
    void *ctx;
    bool whole; /* also check the file as a whole */
} tnf_some;

/* verify.c: equals tnf_verify() if `some` is NULL. */
tnf_status tnf_verify_some(tnf_verify_result *out, const tnf_file *file,
                           const tnf_verify_options *options, const tnf_some *some, tnf_error *e);

#endif
