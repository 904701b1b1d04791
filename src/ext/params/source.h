/* SPDX-License-Identifier: MIT */
/* Shared by the files of params/: a parameter source, and functions that run under its lock. */
#ifndef TNF_EXT_PARAMS_SOURCE_H
#define TNF_EXT_PARAMS_SOURCE_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include <pthread.h>
#include <tenfold/params.h>

/* Something in memory: the bytes of a parameter, or a derived form. */
struct item {
    struct item *older, *newer; /* in the line */
    struct slot *slot;
    uint64_t nbytes, refs;
    bool is_form; /* a struct form, otherwise a struct block */
    bool cached, pinned;
    bool held; /* a block that was read ahead and not loaded yet, so it is kept */
};

struct block {
    struct item item;
    tnf_param param;
    uint8_t *data; /* param.data, to write to */
    size_t size;   /* of the allocation: this struct, then the aligned bytes */
};

struct form {
    struct item item;
    tnf_derived derived;
    struct form *next; /* of the same slot, or among those to be dropped */
    tnf_drop_form_fn drop;
    void *ctx;
    size_t size;     /* of the allocation: this struct, then the kind */
    pthread_t maker; /* the thread that makes it, while others wait */
    bool making, failed;
};

struct slot {
    const tnf_object *object;
    tnf_id id, key; /* `key` is set when the first form is looked up by key */
    uint64_t nbytes;
    struct block *block; /* while it is in memory */
    struct form *forms;  /* in memory, or being made */
    bool loading, prefetched;
    struct slot *next;   /* in the queue for reading ahead */
    bool linked, wanted; /* it is in the queue; and must still be read */
};

struct tnf_params {
    tnf_params_options options;
    tnf_id name_space;
    tnf_resolver_ops resolver; /* version 0: none */
    tnf_allocator alloc;
    struct slot *slots;
    size_t n;
    tnf_hash ids;
    bool has_budget;

    pthread_mutex_t *lock; /* &mutex, so that a const source can be locked */
    pthread_mutex_t mutex; /* guards everything below, and the slots' members from `block` on */
    pthread_cond_t loaded; /* a block was read or a form was made, or that failed */
    struct item *oldest, *newest;
    struct form *dead; /* to be dropped when the lock is released */
    tnf_hash keys;     /* of the slots; filled when it is needed first */
    bool has_keys;
    tnf_params_stats stats;

    struct slot *first, *last; /* the queue for reading ahead */
    pthread_cond_t work;       /* there is a slot to read, or room for it, or the thread must end */
    pthread_t reader;          /* started by the first request */
    bool has_reader, stopping;
};

/* cache.c, with the lock held: notes the use of an item, which is cached if the rules say so. Other
 * items are evicted for it. */
void tnf_params_use(tnf_params *p, struct item *item);
/* Removes a cached item from the cache, and frees it unless it is in use. */
void tnf_params_drop(tnf_params *p, struct item *item);
/* Frees an item that is neither in use, cached nor held. */
void tnf_params_free_unused(tnf_params *p, struct item *item);
/* Would it fit if everything that is not pinned were evicted? */
bool tnf_params_fits(const tnf_params *p, uint64_t nbytes);
/* Releases the lock, and then drops the forms that were freed while it was held. */
void tnf_params_unlock(tnf_params *p);

/* params.c: the slot of a base id or a name, or NULL. */
struct slot *tnf_params_slot(const tnf_params *p, tnf_id id);
struct slot *tnf_params_named(const tnf_params *p, tnf_str name);
tnf_status tnf_params_no_name(tnf_str name, tnf_error *e);
tnf_status tnf_params_no_id(const char *what, tnf_id id, tnf_error *e);
/* Is it the slot that its name finds? */
bool tnf_params_loads(const tnf_params *p, const struct slot *s);
/* Loads a slot for a caller; called without the lock. */
tnf_status tnf_params_load_slot(const tnf_param **out, tnf_params *p, struct slot *s, tnf_error *e);
/* Reads a slot that is neither in memory nor being read. The lock is held before and after, and
 * released while reading. */
tnf_status tnf_params_fetch(struct block **out, tnf_params *p, struct slot *s, tnf_error *e);

/* derive.c: drops the form's data, or gives it back to the resolver, and nothing else. Called
 * without the lock. */
void tnf_params_end_form(const tnf_params *p, struct form *f);

/* ahead.c, with the lock held: the slot is being loaded, so it need not be held or read ahead. */
void tnf_params_was_wanted(tnf_params *p, struct slot *s);
/* Clears the queue, and releases blocks that were read ahead but not loaded. */
void tnf_params_forget_ahead(tnf_params *p);
/* Ends the thread; called without the lock. */
void tnf_params_stop(tnf_params *p);

#endif
