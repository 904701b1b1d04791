/* SPDX-License-Identifier: MIT */
#ifndef TNF_IO_SOURCE_H
#define TNF_IO_SOURCE_H

#include "base/alloc.h"
#include "io/fs.h"
#include <tenfold/io.h>

struct tnf_source {
    tnf_source_ops ops;
    void *ctx;
    uint64_t size;
    tnf_allocator alloc;
    int fd;              /* for copying inside the kernel; -1 if there is none */
    tnf_stamp stamp;     /* of a file, when it was opened */
    const char *version; /* what a server calls the version that is read (ETag); NULL: nothing */
    bool network;        /* it is on a file system of another machine, where locks may be slow */
    bool far;            /* each read costs a round trip: nothing is read that may not be needed */
    bool sparse;         /* a file of fewer blocks than bytes: it has holes */
    const char *map_why; /* why views are impossible; NULL if they may be */
};

/* A source over a back-end; alloc may be NULL. On failure ctx stays the caller's. */
tnf_status tnf_source_new(tnf_source **out, const tnf_source_ops *ops, void *ctx, uint64_t size,
                          const tnf_allocator *alloc, tnf_error *e);

/* As tnf_source_file() and friends, with the handle's allocator. */
tnf_status tnf_source_open(tnf_source **out, const char *path, tnf_access access,
                           const tnf_allocator *alloc, tnf_error *e);

/* A temporary file without a name, for bytes that can be read only once. -1: *e says why. It goes
 * when it is closed; tnf_spool_source() makes a source of it, which closes it. */
int tnf_spool_open(tnf_error *e);
tnf_status tnf_spool_write(int fd, const void *bytes, size_t n, tnf_error *e);
tnf_status tnf_spool_source(tnf_source **out, int spool, tnf_access access,
                            const tnf_allocator *alloc, tnf_error *e);

/* Looks again how long a file is that others may have appended to since it was opened. Only for the
 * one that is opening it: before there are readers or views. */
void tnf_source_measure(const tnf_source *s);

/* Of the n bytes from `offset` on, which are in the source: how many come first that lie in one
 * hole, or in none. A hole reads as zeros. */
uint64_t tnf_source_run(const tnf_source *s, uint64_t offset, uint64_t n, bool *hole);

/* Exactly n bytes, checked against the size: TNF_ETRUNCATED beyond it. */
tnf_status tnf_source_read(const tnf_source *s, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* The same for those who take a callback: ctx is the source. */
tnf_status tnf_source_fetch(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* Several ranges in ascending order; neighbours are merged where the source can. */
tnf_status tnf_source_read_many(const tnf_source *s, const tnf_range *ranges, size_t n,
                                tnf_error *e);
const void *tnf_source_map(const tnf_source *s, uint64_t offset, uint64_t n);
void tnf_source_advise(const tnf_source *s, uint64_t offset, uint64_t n, tnf_advice advice);

#endif
