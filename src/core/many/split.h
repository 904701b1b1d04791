/* SPDX-License-Identifier: MIT */
/* What split.c and split_plan.c share. */
#ifndef TNF_CORE_MANY_SPLIT_H
#define TNF_CORE_MANY_SPLIT_H

#include "core/save/plan.h"
#include <tenfold/shards.h>

#include <stdio.h>

#define MOST_OPEN 256u /* files that are written but not in place: each has a descriptor */

struct split_shard {
    const char *name, *path;
    tnf_str label;
    size_t first, tensors; /* in `order` */
    uint64_t bytes;
    tnf_sink *sink; /* written, not in place */
    bool placed;
    char *aside; /* where the file that was there is; NULL: there was none */
};

struct splitting {
    const tnf_builder *b;
    tnf_split_options options;
    tnf_save_options save;
    const tnf_format *format;
    const tnf_format
        *own_index;          /* the format that writes an index of such files; NULL: none does */
    const tnf_format *index; /* the same, if there is to be one */
    const char *directory, *stem;
    tnf_arena arena;
    uint32_t *shard_of; /* of each tensor */
    uint32_t *order;    /* all tensors, those of the first shard first */
    struct split_shard *shards;
    size_t n;
    struct split_shard root; /* the index */
    const char *final;       /* the directory that is asked for, while it has another name */
    int held;      /* the directory, locked: no other split puts its files between ours; or -1 */
    bool cleared;  /* what has the names of new files was put aside */
    bool unsynced; /* all is in place, but may not be on the disk */
    tnf_error why; /* what failed then */
    uint64_t done, total;
};

/* split_plan.c: which tensor goes where; */
tnf_status tnf_split_assign(struct splitting *s, tnf_error *e);
/* the names of all files, in s->directory. */
tnf_status tnf_split_name(struct splitting *s, tnf_error *e);

#endif
