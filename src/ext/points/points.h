/* SPDX-License-Identifier: MIT */
/* What the files of points/ share: the handle, the way in and out of a call, and the disk.
 *
 *   enter   lock ─ is the path still this file? (else open it anew) ─ size, header, meta block
 *   …       one operation
 *   leave   unlock
 */
#ifndef TNF_EXT_POINTS_POINTS_H
#define TNF_EXT_POINTS_POINTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "formats/vs/note.h"
#include <limits.h>
#include <sys/types.h>
#include <tenfold/points.h>

/* What is done to a file, told before it is done: how tests cut a write short. */
typedef enum tnf_disk_act { TNF_DISK_WRITE, TNF_DISK_SYNC, TNF_DISK_TRUNCATE } tnf_disk_act;
typedef void (*tnf_disk_log)(void *ctx, tnf_disk_act act, uint64_t offset, const void *bytes,
                             size_t n);

struct tnf_points {
    tnf_allocator alloc;
    tnf_points_options options;
    char *path; /* through symbolic links */
    size_t path_size;
    int fd;
    dev_t dev;
    ino_t ino;
    bool busy;  /* within a call */
    bool moved; /* another file has the name since offsets were handed out */

    tnf_arena arena; /* of the meta block, as it was last read */
    bool known;      /* it was */
    bool has_meta;
    tnf_vs_meta meta;
    uint64_t meta_at;
    const uint8_t *meta_bytes; /* the whole block */
    size_t meta_n;
    tnf_space space;
    tnf_value attributes;

    uint64_t tail;      /* where a block begins or the file ends, near its end */
    uint64_t last;      /* the block before it; 0: not known */
    uint64_t seen;      /* the last point that a walk to the end gave; 0: none */
    uint64_t seen_end;  /* where that walk ended */
    tnf_vs_chain chain; /* its window is kept from call to call */
    unsigned steps;     /* of tnf_points_next() */
    tnf_buf spare[2];   /* a vector that was decompressed or not aligned, and application data */
    tnf_arena tree;     /* of the last tnf_points_value() */
    tnf_arena batch;    /* of tnf_points_parse(), until the next append */

    tnf_disk_log log;
    void *log_ctx;
};

/* open.c: a handle without a file; */
tnf_status tnf_points_make(tnf_points **out, const char *path, const tnf_points_options *options,
                           tnf_error *e);
/* and the way in and out. */
/* Locks the file that has the name now, opening it if need be. *size is its size. */
tnf_status tnf_points_lock_current(tnf_points *p, bool exclusive, uint64_t *size, tnf_error *e);
tnf_status tnf_points_enter(tnf_points *p, bool exclusive, tnf_error *e);
void tnf_points_leave(tnf_points *p);
/* Forgets the meta block: it is read again. */
void tnf_points_forget(tnf_points *p);
tnf_status tnf_points_load_meta(tnf_points *p, tnf_error *e);
/* The chain from that offset on; nothing of the window is believed any more. */
void tnf_points_rewind(tnf_points *p, uint64_t from);
/* TNF_ECANCELLED if the caller wants no more. */
tnf_status tnf_points_go_on(const tnf_points *p, tnf_error *e);
/* The next block of the chain, for long walks: asks whether to go on. */
tnf_status tnf_points_next(tnf_points *p, tnf_error *e);
/* Walks to the end, p->tail, where '$' stands from then on if it was only implied. */
tnf_status tnf_points_find_tail(tnf_points *p, tnf_error *e);
/* Have offsets changed since they were handed out? */
tnf_status tnf_points_check_moved(const tnf_points *p, tnf_error *e);

/* disk.c */
tnf_status tnf_disk_write(tnf_points *p, int fd, uint64_t offset, const void *bytes, size_t n,
                          tnf_error *e);
tnf_status tnf_disk_sync(tnf_points *p, int fd, tnf_error *e); /* if that is the policy */
tnf_status tnf_disk_cut(tnf_points *p, int fd, uint64_t size, tnf_error *e);
tnf_status tnf_disk_read(int fd, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* The same for what everybody sees already, and a second try would do twice: TNF_EUNSYNCED. */
tnf_status tnf_disk_sync_done(tnf_points *p, int fd, tnf_error *e);
/* The directory of a file that has its name; likewise. */
tnf_status tnf_disk_sync_placed(const tnf_points *p, const char *path, tnf_error *e);

/* delete.c: what the note of a deletion says becomes so, and the note goes away. */
tnf_status tnf_points_finish(tnf_points *p, tnf_error *e);

/* fresh.c: a file that gets its name when it is whole. */
typedef struct tnf_fresh {
    int fd;              /* -1: none */
    char temp[PATH_MAX]; /* its name until then; "": it has none */
    const char *path;
} tnf_fresh;

/* Beside the path, which must outlive it; `mode` as in open(). */
tnf_status tnf_fresh_open(tnf_fresh *f, const char *path, mode_t mode, tnf_error *e);
/* Takes the name of what is there, or, not to `replace` it, fails with TNF_EEXISTS. */
tnf_status tnf_fresh_place(tnf_fresh *f, bool replace, tnf_error *e);
/* Closes it; nothing is left if it was not placed. */
void tnf_fresh_drop(tnf_fresh *f);

/* scan.c: the block the chain looks at, decoded, the vector aligned for its type. The point lives
 * until the chain moves. */
tnf_status tnf_points_decode(tnf_points *p, tnf_point *out, tnf_error *e);

/* text.c: a tree, or a document of kind TNF_JSON, as MessagePack, appended to b. */
tnf_status tnf_points_pack_value(tnf_points *p, tnf_buf *b, const tnf_value *v, tnf_error *e);

#endif
