/* SPDX-License-Identifier: MIT */
#ifndef TNF_IO_SINK_H
#define TNF_IO_SINK_H

#include "base/alloc.h"
#include "io/fs.h"
#include "io/source.h"
#include "io/temp.h"
#include <sys/types.h>
#include <tenfold/io.h>

struct tnf_claim; /* io/claim.h */

enum { TNF_HOLES_NEVER = 0, TNF_HOLES_ALWAYS = 1 };

/* A flag of tnf_sink_open() in addition to the public ones: the name does not come from the user.
 * So an existing file of that name must be a regular file, and links are not followed. */
#define TNF_SINK_NO_LINK 0x40000000u

/* For a sink that needs only some of its bytes: the caller need not read the others. */
typedef struct tnf_window {
    uint64_t first, end; /* the wanted bytes; all others are dropped when they arrive */
    /* Called before the bytes of each part of a tensor, which come next. `cuts`: each of these
     * bytes can be produced without the others. `plain`: they are the part's own bytes,
     * unchanged. */
    tnf_status (*place)(void *ctx, tnf_str tensor, const struct tnf_part *part, bool cuts,
                        bool plain, tnf_error *e);
    /* Skips n bytes that are not wanted and were not read. */
    void (*pass)(void *ctx, uint64_t n);
} tnf_window;

struct tnf_sink {
    tnf_sink_ops ops;
    void *ctx;
    tnf_allocator alloc;
    uint64_t written; /* bytes taken so far, buffered ones included */
    int fd;           /* for copying inside the kernel; -1 if there is none */
    uint8_t *buffer;  /* gathers small writes */
    size_t buffered;
    bool done;   /* committed */
    bool failed; /* a write failed, so bytes are missing */
    /* For a new file of the library: a run of zeros becomes a hole if it has more than `hole_worth`
     * zeros for each byte since the last hole; or TNF_HOLES_NEVER, TNF_HOLES_ALWAYS. */
    unsigned hole_worth;
    uint64_t hole_end; /* of the last hole */
    bool hole;         /* there are holes */
    bool in_memory;    /* a new file of the library, on a file system in memory */
    /* Takes bytes of a source without reading them; NULL: all bytes must be written. */
    tnf_status (*skip)(void *ctx, const tnf_source *from, uint64_t offset, uint64_t n, bool *taken,
                       tnf_error *e);
    const tnf_window *window; /* NULL: all bytes are wanted */
    void (*release)(
        void *ctx); /* the library's, called after commit or abort; NULL for a user's sink */
    /* Changes bytes that were written, all of them; NULL: written bytes cannot be changed. */
    tnf_status (*patch)(void *ctx, uint64_t at, const void *bytes, size_t n, tnf_error *e);
};

/* Makes a sink over a back-end; alloc may be NULL. On failure ctx stays the caller's. If fd is set
 * afterwards, write(NULL, n) reports to the back-end that n bytes were written to fd directly. */
tnf_status tnf_sink_new(tnf_sink **out, const tnf_sink_ops *ops, void *ctx,
                        const tnf_allocator *alloc, tnf_error *e);
tnf_status tnf_sink_open(tnf_sink **out, const char *path, unsigned flags,
                         const tnf_allocator *alloc, tnf_error *e);
/* The caller has claimed the target, and keeps the claim until the sink is closed. */
void tnf_sink_claimed(tnf_sink *s, const struct tnf_claim *claim);
/* For a sink of tnf_sink_open() over an existing file: the new file gets this unused name in the
 * same directory, and the existing file stays. The text must outlive the sink. */
void tnf_sink_named(tnf_sink *s, const char *path);
/* A file of `size` bytes that grows at its end. Commit writes the last bytes when all others are on
 * the disk; abort restores the old size. `claim` is the claim on the file (NULL: the sink takes its
 * own). TNF_ECHANGED if the file has another size. */
tnf_status tnf_sink_append(tnf_sink **out, const char *path, const struct tnf_claim *claim,
                           uint64_t size, unsigned flags, const tnf_allocator *alloc, tnf_error *e);
/* For such a file, before anything is written: `end` are its last bytes, at most 64, which are
 * valid at any position after `from`. The file ends with them until commit, so that it is intact
 * at every moment. The bytes behind `from` are useless and are overwritten. */
tnf_status tnf_sink_keep_end(tnf_sink *s, const void *end, size_t n, uint64_t from, tnf_error *e);
/* Changes bytes that were written before; the sink must have `patch`. */
tnf_status tnf_sink_patch(tnf_sink *s, uint64_t at, const void *bytes, size_t n, tnf_error *e);
/* Writes n zeros; many of them become a hole in a file of the library. */
tnf_status tnf_sink_zeros(tnf_sink *s, uint64_t n, tnf_error *e);
/* Copies n bytes of a source, inside the kernel if both ends are files. */
tnf_status tnf_sink_copy(tnf_sink *s, const tnf_source *from, uint64_t offset, uint64_t n,
                         tnf_error *e);
/* Writes the gathered bytes. */
tnf_status tnf_sink_flush(tnf_sink *s, tnf_error *e);
/* Reports to the back-end that n bytes were written to its file directly. */
tnf_status tnf_sink_grew(tnf_sink *s, uint64_t n, tnf_error *e);

/* room.c: memory of the next n bytes of the file, for several threads to fill. */
typedef struct tnf_room {
    uint8_t *p;
    uint64_t n, at; /* length, and position in the file */
    size_t skip;    /* bytes of its first page before it */
    int fd;
} tnf_room;

/* p becomes NULL if this target cannot do it, or if it would not be faster: then the bytes are
 * written as usual. */
tnf_status tnf_sink_room(tnf_room *out, tnf_sink *s, uint64_t n, tnf_error *e);
/* From any thread: makes bytes [from, from + n) accessible. They must not be touched before. */
tnf_status tnf_room_ready(const tnf_room *r, uint64_t from, size_t n, tnf_error *e);
/* From any thread: these bytes are filled and will not be touched again. */
void tnf_room_leave(const tnf_room *r, uint64_t from, size_t n);
/* Ends the use by all threads. If the room is filled, the sink continues behind it, else at its
 * beginning. */
tnf_status tnf_room_end(tnf_sink *s, tnf_room *r, bool filled, tnf_error *e);

#endif
