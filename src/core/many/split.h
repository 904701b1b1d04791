/* SPDX-License-Identifier: MIT */
/* Shared by split.c and split_plan.c. */
#ifndef TNF_CORE_MANY_SPLIT_H
#define TNF_CORE_MANY_SPLIT_H

#include "core/save/plan.h"
#include <tenfold/shards.h>

#include <stdio.h>

#define MOST_OPEN 256u /* files that are written but not in place: each uses a descriptor */

struct split_shard {
    const char *name, *path;
    tnf_str label;
    size_t first, tensors; /* in `order` */
    uint64_t bytes;
    tnf_sink *sink; /* written, but not in place */
    bool placed;
    char *aside; /* the new name of the old file; NULL: there was none */
};

struct splitting {
    const tnf_builder *b;
    tnf_split_options options;
    tnf_save_options save;
    const tnf_format *format;
    const tnf_format *own_index; /* the format that writes an index of such files; NULL: none */
    const tnf_format *index;     /* the same if an index will be written, else NULL */
    const char *directory, *stem;
    tnf_arena arena;
    uint32_t *shard_of; /* the shard of each tensor */
    uint32_t *order;    /* all tensors, those of the first shard first */
    struct split_shard *shards;
    size_t n;
    struct split_shard root; /* the index */
    const char *final;       /* the requested directory, while it has another name */
    int held;                /* the directory, locked against other splits; or -1 */
    bool cleared;            /* files with the names of new ones were renamed */
    bool unsynced;           /* everything is in place, but might not be on the disk */
    tnf_error why;           /* the failure of that sync */
    uint64_t done, total;
};

/* split_plan.c: assigns tensors to files. */
tnf_status tnf_split_assign(struct splitting *s, tnf_error *e);
/* Makes the names of all files, in s->directory. */
tnf_status tnf_split_name(struct splitting *s, tnf_error *e);

#endif
