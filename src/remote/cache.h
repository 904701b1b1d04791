/* SPDX-License-Identifier: MIT */
/* A cache for the bytes of a remote object.
 *
 *   0          64 KiB                                                        size
 *   ├── head ───┤      ├─ extent ─┤        ├──── extent ────┤
 *   always kept        read once, kept while there is room, the oldest goes first
 *
 * A small read that misses loads an extent of 64 KiB. If it continues where an earlier extent
 * ended, the new extent is four times as long, up to half of the cache, and is loaded by several
 * connections. Several threads may share one stream, or read one each. A large read that does not
 * continue an extent goes directly to the caller's memory.
 *
 * Small announced ranges (headers of an archive's members) are read together, in parallel, as soon
 * as one of them is read. Extents in a long announced range are as long as the cache allows.
 */
#ifndef TNF_REMOTE_CACHE_H
#define TNF_REMOTE_CACHE_H

#include "remote/range.h"

struct tnf_extent;
#define TNF_CACHE_LATEST 16u /* streams that are read at the same time, by as many threads */

typedef struct tnf_cache {
    tnf_remote *remote;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t loaded;
    struct tnf_extent *first; /* by position */
    uint64_t bytes, clock;
    struct {
        uint64_t end;
        size_t n;
    } latest[TNF_CACHE_LATEST]; /* the end and length of the latest reads */
    unsigned turn;              /* the next of these to be replaced */
    struct tnf_announced *announced;
    size_t nannounced, room;
    struct {
        uint64_t at, end;
    } streams[TNF_CACHE_LATEST]; /* announced long ranges */
    unsigned stream;             /* the next of these to be replaced */
} tnf_cache;

void tnf_cache_begin(tnf_cache *c, tnf_remote *remote);
void tnf_cache_end(tnf_cache *c);

/* Reads n bytes, all of them inside the object. Thread-safe. */
tnf_status tnf_cache_read(tnf_cache *c, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* Announces a range that will be read. A small one is read together with others; for a long one the
 * length of requests is known at once. If there are too many, old ones are dropped. */
void tnf_cache_announce(tnf_cache *c, uint64_t offset, uint64_t n);
/* Copies cached bytes; returns true if all n bytes were cached. */
bool tnf_cache_peek(tnf_cache *c, uint64_t offset, void *dst, size_t n);
/* Reads a long range in pieces, by several connections. */
tnf_status tnf_remote_get_long(tnf_remote *f, uint64_t offset, void *dst, size_t n, tnf_error *e);

#endif
