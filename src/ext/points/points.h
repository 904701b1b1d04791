/* SPDX-License-Identifier: MIT */
/* Shared by the files of points/: the handle, entering and leaving a call, and operations on files.
 *
 *   enter   lock ─ is the path still this file? (else open it again) ─ size, header, meta block
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

/* An observer of operations on files, called before each one. Tests use it to interrupt writes. */
typedef enum tnf_disk_act { TNF_DISK_WRITE, TNF_DISK_SYNC, TNF_DISK_TRUNCATE } tnf_disk_act;
typedef void (*tnf_disk_log)(void *ctx, tnf_disk_act act, uint64_t offset, const void *bytes,
                             size_t n);

struct tnf_points {
    tnf_allocator alloc;
    tnf_points_options options;
    char *path; /* with symbolic links resolved */
    size_t path_size;
    int fd;
    dev_t dev;
    ino_t ino;
    bool busy;  /* within a call */
    bool used;  /* the caller has, or had, offsets of points */
    bool moved; /* those offsets are of a file that was replaced */

    tnf_arena arena; /* memory of the meta block */
    bool known;      /* the meta block has been read */
    bool has_meta;
    tnf_vs_meta meta;
    uint64_t meta_at;
    const uint8_t *meta_bytes; /* the complete block */
    size_t meta_n;
    tnf_space space;
    tnf_value attributes;

    uint64_t tail;      /* a known boundary of blocks at or near the end */
    uint64_t last;      /* the block before it; 0: unknown */
    tnf_point_id seen;  /* the last point of a walk to the end; offset 0: none */
    uint64_t seen_end;  /* the end of that walk */
    tnf_vs_chain chain; /* its window is kept between calls */
    unsigned steps;     /* of tnf_points_next() */
    tnf_buf spare[2];   /* a decompressed or aligned vector, and application data */
    tnf_arena tree;     /* memory of the last tnf_points_value() */
    tnf_arena words;    /* memory of the last tnf_points_values() */
    tnf_arena batch;    /* memory of tnf_points_parse(), until the next append */

    tnf_disk_log log;
    void *log_ctx;
};

/* open.c: makes a handle without a file. */
tnf_status tnf_points_make(tnf_points **out, const char *path, const tnf_points_options *options,
                           tnf_error *e);
/* Fails with TNF_EINVAL if other flags than `known` are set. */
tnf_status tnf_points_check_flags(unsigned flags, unsigned known, tnf_error *e);
/* Locks the file that has the name now, after opening it if necessary. *size is its size. */
tnf_status tnf_points_lock_current(tnf_points *p, bool exclusive, uint64_t *size, tnf_error *e);
tnf_status tnf_points_enter(tnf_points *p, bool exclusive, tnf_error *e);
void tnf_points_leave(tnf_points *p);
/* Drops the meta block, so that it is read again. */
void tnf_points_forget(tnf_points *p);
tnf_status tnf_points_load_meta(tnf_points *p, tnf_error *e);
/* Fails if a complete block is larger than readers of points accept. */
#define TNF_POINTS_META_MOST ((uint64_t)256 << 20)
tnf_status tnf_points_check_meta(const tnf_buf *block, tnf_error *e);
/* Restarts the chain at an offset, and discards its window. */
void tnf_points_rewind(tnf_points *p, uint64_t from);
/* Fails with TNF_ECANCELLED if the caller wants to stop. */
tnf_status tnf_points_go_on(const tnf_points *p, tnf_error *e);
/* The next block of the chain, for long walks: also checks for cancellation. */
tnf_status tnf_points_next(tnf_points *p, tnf_error *e);
/* Walks to the end, p->tail, and writes '$' there if it was only implied. */
tnf_status tnf_points_find_tail(tnf_points *p, tnf_error *e);
/* Fails with TNF_ENOTFOUND if offsets have changed since they were returned. */
tnf_status tnf_points_check_moved(const tnf_points *p, tnf_error *e);

/* disk.c */
tnf_status tnf_disk_write(tnf_points *p, int fd, uint64_t offset, const void *bytes, size_t n,
                          tnf_error *e);
tnf_status tnf_disk_sync(tnf_points *p, int fd, tnf_error *e); /* unless options disable it */
tnf_status tnf_disk_cut(tnf_points *p, int fd, uint64_t size, tnf_error *e);
tnf_status tnf_disk_read(int fd, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* The same for a change that is already visible and must not be repeated: TNF_EUNSYNCED. */
tnf_status tnf_disk_sync_done(tnf_points *p, int fd, tnf_error *e);
/* The same for the directory of a file that has its name. */
tnf_status tnf_disk_sync_placed(const tnf_points *p, const char *path, tnf_error *e);

/* delete.c: applies the note of a deletion, and removes the note. */
tnf_status tnf_points_finish(tnf_points *p, tnf_error *e);
/* Deletes the blocks at n > 0 offsets, which ascend and are known to be of points. */
tnf_status tnf_points_delete_sorted(tnf_points *p, const uint64_t *sorted, size_t n, bool shred,
                                    tnf_error *e);

/* id.c: the hash of a complete block. */
uint32_t tnf_points_hash(const uint8_t *block, size_t n);
/* Moves the chain to the block of an id, without following the blocks before it. TNF_ENOTFOUND if
 * the id is stale, but not if its point was deleted and its bytes are still there. */
tnf_status tnf_points_seek(tnf_points *p, tnf_point_id id, bool *deleted, tnf_error *e);
/* The same for the current block of the chain, which may be any; and without deleted points. */
tnf_status tnf_points_match(tnf_points *p, tnf_point_id id, bool *deleted, tnf_error *e);
tnf_status tnf_points_match_live(tnf_points *p, tnf_point_id id, tnf_error *e);

/* fresh.c: a file that gets its name when it is complete. */
typedef struct tnf_fresh {
    int fd;              /* -1: none */
    char temp[PATH_MAX]; /* its temporary name; "": none */
    const char *path;
} tnf_fresh;

/* Opens a file in the directory of the path, which must outlive it; `mode` as in open(). */
tnf_status tnf_fresh_open(tnf_fresh *f, const char *path, mode_t mode, tnf_error *e);
/* Gives the file its name. Without `replace` fails with TNF_EEXISTS if the name exists. */
tnf_status tnf_fresh_place(tnf_fresh *f, bool replace, tnf_error *e);
/* Closes the file, and removes it unless it was placed. */
void tnf_fresh_drop(tnf_fresh *f);

/* scan.c: decodes the current block of the chain, with an aligned vector. The point is valid until
 * the chain moves. */
tnf_status tnf_points_decode(tnf_points *p, tnf_point *out, tnf_error *e);

/* text.c: appends a tree, or a document of kind TNF_JSON, to b as MessagePack. */
tnf_status tnf_points_pack_value(tnf_points *p, tnf_buf *b, const tnf_value *v, tnf_error *e);
/* Empties an arena for trees. */
void tnf_points_clear(tnf_points *p, tnf_arena *arena);

/* values.c: are the coordinates strings, or JSON? */
bool tnf_points_worded(const tnf_vs_meta *m);
/* Appends one coordinate of such a space to b: a string, or any value. */
tnf_status tnf_points_put_word(tnf_points *p, tnf_buf *b, const tnf_value *v, tnf_error *e);
/* Appends the coordinates, an array of the space's size. */
tnf_status tnf_points_put_words(tnf_points *p, tnf_buf *b, const tnf_value *values, tnf_error *e);
/* Fails unless the bytes are the coordinates of a point. */
tnf_status tnf_points_check_words(const tnf_points *p, const void *bytes, size_t n, uint64_t at,
                                  tnf_error *e);
/* The decoded size of a stored vector. */
tnf_status tnf_points_words_size(const tnf_points *p, const tnf_vs_point *v, const void *stored,
                                 uint64_t *out, tnf_error *e);

#endif
