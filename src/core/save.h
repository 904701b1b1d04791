/* SPDX-License-Identifier: MIT */
/* What saving passes along: builder → lower → write. */
#ifndef TNF_CORE_SAVE_H
#define TNF_CORE_SAVE_H

#include "core/core.h"

struct tnf_builder {
    tnf_allocator alloc;
    tnf_arena arena;
    tnf_catalog catalog;
};

struct tnf_save {
    tnf_save_options options;
    const tnf_format *format;
    tnf_arena arena;                /* everything of this one saving */
    tnf_catalog lowered;            /* what the format gets; its objects are in the arena */
    tnf_attrs text;                 /* its text map */
    const tnf_option_value *values; /* of the format's options */
    uint64_t done, total;
};

/* lower.c: fits the catalog to the format, telling each item's fate; TNF_ELOSSY if something would
 * be lost that may not. */
tnf_status tnf_lower(struct tnf_save *save, const tnf_catalog *from, tnf_error *e);

/* save.c: n more bytes are done; TNF_ECANCELLED if the caller says stop. */
tnf_status tnf_save_progress(struct tnf_save *save, uint64_t n, tnf_error *e);

#endif
