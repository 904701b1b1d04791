/* SPDX-License-Identifier: MIT */
/* Bytes of a far object that are kept for a while.
 *
 *   0          64 KiB                                                        size
 *   ├── head ───┤      ├─ extent ─┤        ├──── extent ────┤
 *   always kept        read once, kept while there is room, the oldest goes first
 *
 * A small read that misses brings an extent of 64 KiB; if it goes on where another one ended, of
 * four times that one's length, up to half of the cache, by several connections. Several threads
 * may take turns at one stream, or read one each. Large reads that follow none go straight to the
 * caller's memory.
 *
 * Small ranges that are announced (headers of an archive's members) are read together, in parallel,
 * as soon as one of them is wanted. Of a long one as much is asked for as there is room.
 */
#ifndef TNF_REMOTE_CACHE_H
#define TNF_REMOTE_CACHE_H

#include "remote/range.h"

struct tnf_extent;
#define TNF_CACHE_LATEST 16u /* streams that are read at the same time, by as many threads */

typedef struct tnf_cache {
    tnf_far *far;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t loaded;
    struct tnf_extent *first; /* by position */
    uint64_t bytes, clock;
    struct {
        uint64_t end;
        size_t n;
    } latest[TNF_CACHE_LATEST]; /* what was asked for: where it ended, and how much it was */
    unsigned turn;              /* the next of those to be forgotten */
    struct tnf_announced *announced;
    size_t nannounced, room;
    struct {
        uint64_t at, end;
    } streams[TNF_CACHE_LATEST]; /* long ranges that are read to their end */
    unsigned stream;             /* the next of those to be forgotten */
} tnf_cache;

void tnf_cache_begin(tnf_cache *c, tnf_far *far);
void tnf_cache_end(tnf_cache *c);

/* n bytes, all of them inside the object. Any number of threads. */
tnf_status tnf_cache_read(tnf_cache *c, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* A range that will be wanted: a small one comes with others, a long one needs no finding out how
 * much of it to ask for. One too many is forgotten. */
void tnf_cache_announce(tnf_cache *c, uint64_t offset, uint64_t n);
/* Bytes that are there already: true if all were. */
bool tnf_cache_peek(tnf_cache *c, uint64_t offset, void *dst, size_t n);
/* A long range in pieces, by several connections. */
tnf_status tnf_far_get_long(tnf_far *f, uint64_t offset, void *dst, size_t n, tnf_error *e);

#endif
