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
    const char *version; /* the server's name for the version that is read (ETag); NULL: none */
    bool network;        /* on a network file system, where locks may be slow */
    bool remote;         /* each read costs a round trip: read only what is certainly needed */
    bool sparse;         /* a file with fewer blocks than bytes: it has holes */
    const char *map_why; /* why views are impossible; NULL if they may be possible */
};

/* Makes a source over a back-end; alloc may be NULL. On failure ctx stays the caller's. */
tnf_status tnf_source_new(tnf_source **out, const tnf_source_ops *ops, void *ctx, uint64_t size,
                          const tnf_allocator *alloc, tnf_error *e);

/* Like tnf_source_file() and similar functions, with the handle's allocator. */
tnf_status tnf_source_open(tnf_source **out, const char *path, tnf_access access,
                           const tnf_allocator *alloc, tnf_error *e);

/* Opens an unnamed temporary file, for bytes that can be read only once; *out is -1 on failure. The
 * file disappears when it is closed. tnf_spool_source() makes a source of it, which closes it. */
tnf_status tnf_spool_open(int *out, tnf_error *e);
tnf_status tnf_spool_write(int fd, const void *bytes, size_t n, tnf_error *e);
tnf_status tnf_spool_source(tnf_source **out, int spool, tnf_access access,
                            const tnf_allocator *alloc, tnf_error *e);

/* Gets the length of a file again, since others may have appended to the file after it was opened.
 * Only while the file is being opened: before there are readers or views. */
void tnf_source_measure(const tnf_source *s);

/* For the n bytes from `offset` on, which must be in the source: how many of the first ones are in
 * one hole, or outside of holes. A hole reads as zeros. */
uint64_t tnf_source_run(const tnf_source *s, uint64_t offset, uint64_t n, bool *hole);

/* Exactly n bytes, checked against the size: TNF_ETRUNCATED beyond it. */
tnf_status tnf_source_read(const tnf_source *s, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* The same as a callback: ctx is the source. */
tnf_status tnf_source_fetch(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* The same from memory: ctx is a tnf_str. */
tnf_status tnf_memory_fetch(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* Reads several ranges in ascending order; neighbours are merged if the source can. */
tnf_status tnf_source_read_many(const tnf_source *s, const tnf_range *ranges, size_t n,
                                tnf_error *e);
const void *tnf_source_map(const tnf_source *s, uint64_t offset, uint64_t n);
void tnf_source_advise(const tnf_source *s, uint64_t offset, uint64_t n, tnf_advice advice);

#endif
