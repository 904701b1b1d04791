/* SPDX-License-Identifier: MIT */
/* Shared by the files of params/: a parameter source, and functions that run under its lock. */
#ifndef TNF_EXT_PARAMS_SOURCE_H
#define TNF_EXT_PARAMS_SOURCE_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include <pthread.h>
#include <tenfold/params.h>

struct block {
    tnf_param param;
    struct block *older, *newer; /* in the line */
    struct slot *slot;
    uint8_t *data; /* param.data, to write to */
    size_t size;   /* of the allocation: this struct, then the aligned bytes */
    uint64_t refs;
    bool cached, pinned;
    bool held; /* read ahead and not loaded yet, so it is kept */
};

struct slot {
    const tnf_object *object;
    tnf_id id;
    uint64_t nbytes;
    struct block *block; /* while it is in memory */
    bool loading, prefetched;
    struct slot *next;   /* in the queue for reading ahead */
    bool linked, wanted; /* it is in the queue; and must still be read */
};

struct tnf_params {
    tnf_params_options options;
    tnf_allocator alloc;
    struct slot *slots;
    size_t n;
    tnf_hash ids;
    bool has_budget;

    pthread_mutex_t *lock; /* &mutex, so that a const source can be locked */
    pthread_mutex_t mutex; /* guards everything below, and the slots' members from `block` on */
    pthread_cond_t loaded;
    struct block *oldest, *newest;
    tnf_params_stats stats;

    struct slot *first, *last; /* the queue for reading ahead */
    pthread_cond_t work;       /* there is a slot to read, or room for it, or the thread must end */
    pthread_t reader;          /* started by the first request */
    bool has_reader, stopping;
};

/* params.c: the slot of a name, or NULL. */
struct slot *tnf_params_named(const tnf_params *p, tnf_str name);
/* Is it the slot that its name finds? */
bool tnf_params_loads(const tnf_params *p, const struct slot *s);
/* Reads a slot that is neither in memory nor being read. The lock is held before and after, and
 * released while reading. */
tnf_status tnf_params_fetch(struct block **out, tnf_params *p, struct slot *s, tnf_error *e);
/* Frees a block that is neither in use, cached nor held. */
void tnf_params_free_unused(tnf_params *p, struct block *b);

/* ahead.c, with the lock held: the slot is being loaded, so it need not be held or read ahead. */
void tnf_params_was_wanted(tnf_params *p, struct slot *s);
/* Clears the queue, and releases blocks that were read ahead but not loaded. */
void tnf_params_forget_ahead(tnf_params *p);
/* Ends the thread; called without the lock. */
void tnf_params_stop(tnf_params *p);

#endif
