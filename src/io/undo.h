/* SPDX-License-Identifier: MIT */
/* Changing bytes in the middle of a file: all of them, or none; and what is found if the system
 * stopped in between. */
#ifndef TNF_IO_UNDO_H
#define TNF_IO_UNDO_H

#include "base/alloc.h"
#include "base/buf.h"
#include <limits.h>
#include <sys/types.h>
#include <tenfold/io.h>

/* New bytes for a place; some behind the end make the file longer. */
typedef struct tnf_patch {
    uint64_t at;
    size_t n;
    const uint8_t *bytes;
} tnf_patch;

/* What is to become of an open file. The patches ascend and do not touch; every byte behind the old
 * end is in one. */
typedef struct tnf_change_file {
    int fd; /* for reading and writing */
    const char *path;
    uint64_t old_size, new_size;
    const tnf_patch *patches;
    size_t n;
    bool one_name; /* no other hard link: an undo file beside it is found by all */
    tnf_allocator alloc;
} tnf_change_file;

/* A change inside one sector of the disk is a single write, which happens completely or not at
 * all. For others an undo file is first put beside the file, and removed when they are on the
 * disk. Readers wait meanwhile. After a failure the file is unchanged, or the message says where
 * its old bytes are. TNF_EUNSUPPORTED: this needs an undo file that not every reader would find
 * or accept. */
tnf_status tnf_change_apply(const tnf_change_file *c, tnf_error *e);

/* Of a file, by the undo file beside it. */
typedef enum tnf_undo_state {
    TNF_UNDO_NONE,   /* there is none, or what has its name does not count */
    TNF_UNDO_WHOLE,  /* the change was not begun, or is done: the undo file is of no use */
    TNF_UNDO_MIXED,  /* some bytes are old and some new */
    TNF_UNDO_FOREIGN /* it is of another file, or this one was changed since */
} tnf_undo_state;

/* fd is the file at `path`, open for reading. */
tnf_status tnf_undo_look(tnf_undo_state *out, const char *path, int fd, tnf_error *e);
/* Puts the old bytes back if the file is mixed (*undone), and removes the undo file unless it is
 * foreign. fd is open for reading and writing, and claimed (io/claim.h). */
tnf_status tnf_undo_run(bool *undone, const char *path, int fd, tnf_error *e);
/* Removes the undo file of a file of that owner which was replaced as a whole. */
void tnf_undo_discard(const char *path, uid_t owner);

/* For other ways to change a file (shift.h): where its undo file is to be, and putting one there,
 * onto the disk, as `file` has its rights. */
tnf_status tnf_undo_path(char out[PATH_MAX], const char *path, tnf_error *e);
tnf_status tnf_undo_keep(const tnf_buf *bytes, int file, const char *undo, tnf_error *e);
/* When the change is done, or undone. False if the file could not be removed. */
bool tnf_undo_remove(const char *undo);
/* It is left behind, which does no harm, but somebody should know. */
void tnf_undo_name_left(tnf_error *e, const char *name);

#endif
