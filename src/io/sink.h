/* SPDX-License-Identifier: MIT */
#ifndef TNF_IO_SINK_H
#define TNF_IO_SINK_H

#include "base/alloc.h"
#include "io/fs.h"
#include "io/source.h"
#include <sys/types.h>
#include <tenfold/io.h>

struct tnf_claim; /* io/claim.h */

enum { TNF_HOLES_NEVER = 0, TNF_HOLES_ALWAYS = 1 };

/* A flag of tnf_sink_open() beside the public ones: the name is not the user's own, so what has it
 * must be a regular file, and no link is followed. */
#define TNF_SINK_NO_LINK 0x40000000u

/* Of a sink that wants some of its bytes only: who has others need not read them. */
typedef struct tnf_window {
    uint64_t first, end; /* the wanted ones; all others are dropped where they come */
    /* Is told of each part of a tensor before its bytes, which come next. `cuts`: any of them can
     * be had without the others; `plain`: they are the part's own, as they are. */
    tnf_status (*place)(void *ctx, tnf_str tensor, const struct tnf_part *part, bool cuts,
                        bool plain, tnf_error *e);
    /* n bytes go by that are not wanted, and that nobody has seen. */
    void (*pass)(void *ctx, uint64_t n);
} tnf_window;

struct tnf_sink {
    tnf_sink_ops ops;
    void *ctx;
    tnf_allocator alloc;
    uint64_t written; /* bytes taken so far, buffered ones included */
    int fd;           /* for copying inside the kernel; -1 if there is none */
    uint8_t *buffer;  /* small writes gather here */
    size_t buffered;
    bool done; /* committed */
    /* A fresh file of ours: zeros become a hole if there are more than so many for each byte since
     * the last one; TNF_HOLES_NEVER, TNF_HOLES_ALWAYS. */
    unsigned hole_worth;
    uint64_t hole_end; /* of the last one */
    bool hole;         /* there are some */
    bool in_memory;    /* a fresh file of ours on a file system that is memory */
    /* Takes bytes of a source that it need not see; NULL: it wants to see all. */
    tnf_status (*skip)(void *ctx, const tnf_source *from, uint64_t offset, uint64_t n, bool *taken,
                       tnf_error *e);
    const tnf_window *window;   /* NULL: it wants all of them */
    void (*release)(void *ctx); /* ours, after commit or abort; NULL for a user's sink */
    /* Changes bytes that were written, all of them; NULL: what is written is gone. */
    tnf_status (*patch)(void *ctx, uint64_t at, const void *bytes, size_t n, tnf_error *e);
};

/* A sink over a back-end; alloc may be NULL. On failure ctx stays the caller's. Where fd is set
 * afterwards, write(NULL, n) tells the back-end that n bytes were put there behind its back. */
tnf_status tnf_sink_new(tnf_sink **out, const tnf_sink_ops *ops, void *ctx,
                        const tnf_allocator *alloc, tnf_error *e);
tnf_status tnf_sink_open(tnf_sink **out, const char *path, unsigned flags,
                         const tnf_allocator *alloc, tnf_error *e);
/* The target is a file that the caller has claimed, and keeps claimed until the sink is closed. */
void tnf_sink_claimed(tnf_sink *s, const struct tnf_claim *claim);
/* Of a sink of tnf_sink_open() for a file that is there: it gets this name, which nothing has and
 * which lies in the same folder, and what is there stays. The caller keeps the text. */
void tnf_sink_named(tnf_sink *s, const char *path);
/* A file of `size` bytes that grows at its end. Commit puts the last bytes there when all others
 * are on the disk; abort gives the file its size back. It is claimed (NULL: by the sink itself).
 * TNF_ECHANGED if it has another size. */
tnf_status tnf_sink_append(tnf_sink **out, const char *path, const struct tnf_claim *claim,
                           uint64_t size, unsigned flags, const tnf_allocator *alloc, tnf_error *e);
/* Of such a file, before anything is written: its last bytes, at most 64, which hold good wherever
 * they stand behind `from`. The file ends with them until commit, so that it is whole at every
 * moment. What follows `from` is of no use, and is written over. */
tnf_status tnf_sink_keep_end(tnf_sink *s, const void *end, size_t n, uint64_t from, tnf_error *e);
/* Changes bytes that were written before, of a sink that has `patch`. */
tnf_status tnf_sink_patch(tnf_sink *s, uint64_t at, const void *bytes, size_t n, tnf_error *e);
/* n zeros; many of them become a hole where the target is a file of ours. */
tnf_status tnf_sink_zeros(tnf_sink *s, uint64_t n, tnf_error *e);
/* n bytes of a source, in the kernel where both ends are files. */
tnf_status tnf_sink_copy(tnf_sink *s, const tnf_source *from, uint64_t offset, uint64_t n,
                         tnf_error *e);
/* What was gathered is written. */
tnf_status tnf_sink_flush(tnf_sink *s, tnf_error *e);
/* Tells the back-end that n bytes were put into its file behind its back. */
tnf_status tnf_sink_grew(tnf_sink *s, uint64_t n, tnf_error *e);

/* room.c: the next n bytes of the file, in memory, for several threads to fill. */
typedef struct tnf_room {
    uint8_t *p;
    uint64_t n, at; /* where it begins in the file */
    size_t skip;    /* bytes of its first page before it */
    int fd;
} tnf_room;

/* Its p is NULL if this target has none, or if it would not pay: then the bytes are written as
 * usual. */
tnf_status tnf_sink_room(tnf_room *out, tnf_sink *s, uint64_t n, tnf_error *e);
/* From any thread: bytes [from, from + n) may be touched. Without it they must not be. */
tnf_status tnf_room_ready(const tnf_room *r, uint64_t from, size_t n, tnf_error *e);
/* From any thread: they are filled and will not be looked at again. */
void tnf_room_leave(const tnf_room *r, uint64_t from, size_t n);
/* Nobody uses it any more. If it is filled, the sink goes on behind it, else where it began. */
tnf_status tnf_room_end(tnf_sink *s, tnf_room *r, bool filled, tnf_error *e);

/* A file in the target's directory that has no name yet; `access` is O_WRONLY or O_RDWR. -1 where
 * the system has none, or one could never get a name. */
int tnf_open_nameless(const char *target, int access, mode_t mode);
/* Gives it one; false, with errno, if that is taken or cannot be. */
bool tnf_name_nameless(int fd, const char *name);
/* "TARGET.tmp-XXXXXXXX", another one for each attempt. As long as snprintf() says. */
#define TNF_TEMP_MORE 14u /* than the target's length, with the NUL */
int tnf_temp_name(char *out, size_t room, const char *target, unsigned attempt);

#endif
