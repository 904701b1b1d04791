/* SPDX-License-Identifier: MIT */
/* Shared by leaves.c and leaf_read.c: the state of tensors while they are hashed. */
#ifndef TNF_CORE_LOOK_HASHING_H
#define TNF_CORE_LOOK_HASHING_H

#include "core/look/leaves.h"
#include "core/look/progress.h"

#include <pthread.h>

#define TNF_PART_TASKS 1024u /* at most, since opening an encoded part may take long */

/* A leaf that a stream passes to a helper. */
struct held {
    struct held *next;
    size_t item;
    uint64_t leaf;
    size_t n;
    uint8_t bytes[TNF_LEAF_BYTES];
};

/* A tensor. */
struct item {
    size_t object; /* position in the catalog */
    uint64_t first_task;
    uint8_t *leaves; /* hashes of its leaves; NULL before the first, and after the report */
    uint64_t left;   /* tasks and held leaves that are not done */
    uint64_t base;   /* the number of the first leaf in `leaves` */
};

struct hashing {
    const tnf_file *file;
    const tnf_hash_options *options;
    uint8_t (*out)[TNF_HASH_BYTES];
    struct item *items;
    size_t n;
    uint64_t tasks; /* without those of helpers */
    tnf_allocator alloc;
    pthread_mutex_t lock; /* guards all below, items[].leaves and .left */
    pthread_cond_t moved; /* a leaf is held, or a stream is done */
    tnf_progress progress;
    uint64_t streams;                   /* not done */
    struct held *first, **last, *spare; /* waiting leaves; buffers for reuse */
    size_t nheld, helpers;
};

/* leaves.c: call this when a task, or a held leaf, of a tensor is done. */
tnf_status tnf_content_done(struct hashing *h, size_t item, tnf_error *e);

/* leaf_read.c: hashes part k of a tensor from front to end, alone or with helpers. */
tnf_status tnf_content_stream(struct hashing *h, size_t item, uint16_t k, bool alone, tnf_error *e);
/* Hashes the task-th run of leaves of part k. */
tnf_status tnf_content_run(struct hashing *h, size_t item, uint16_t k, uint64_t task, tnf_error *e);
/* Hashes the leaves of part k from `first` up to `end`. */
tnf_status tnf_content_leaves(struct hashing *h, size_t item, uint16_t k, uint64_t first,
                              uint64_t end, tnf_error *e);
/* Helps the streams: hashes their leaves until no stream is left. */
tnf_status tnf_content_help(struct hashing *h, tnf_error *e);
void tnf_content_stream_done(struct hashing *h);

static inline const tnf_object *tnf_hashed_object(const struct hashing *h, size_t item)
{
    return &h->file->catalog.objects[h->items[item].object];
}

/* The number of leaves of one task. */
static inline uint64_t tnf_run_length(const tnf_part *part)
{
    return tnf_count_leaves(part) / TNF_PART_TASKS + 1;
}

/* Does the stored order of elements differ from the hashed order? */
static inline bool tnf_is_by_columns(const tnf_object *o)
{
    return o->layout == &tnf_layout_dense && o->nparts == 1 && o->order != TNF_ORDER_C &&
           o->rank > 1 && o->parts->nbytes > 0;
}

#endif
