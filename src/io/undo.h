/* SPDX-License-Identifier: MIT */
/* Changes bytes in the middle of a file, all of them or none. Also examines the file if the system
 * stopped in between. */
#ifndef TNF_IO_UNDO_H
#define TNF_IO_UNDO_H

#include "base/alloc.h"
#include "base/buf.h"
#include <limits.h>
#include <sys/types.h>
#include <tenfold/io.h>

/* New bytes for a position; bytes after the end make the file longer. */
typedef struct tnf_patch {
    uint64_t at;
    size_t n;
    const uint8_t *bytes;
} tnf_patch;

/* A change of an open file. The patches are in ascending order and do not touch; every byte after
 * the old end is in a patch. */
typedef struct tnf_change_file {
    int fd; /* for reading and writing */
    const char *path;
    uint64_t old_size, new_size;
    const tnf_patch *patches;
    size_t n;
    bool one_name; /* no other hard link, so every user of the file finds its undo file */
    tnf_allocator alloc;
} tnf_change_file;

/* A change inside one sector of the disk is a single write, which happens completely or not at all.
 * For a larger change, an undo file is first created next to the file; it is removed when the new
 * bytes are on the disk. Readers wait meanwhile. After a failure the file is unchanged, or the
 * message says where its old bytes are. TNF_EUNSUPPORTED: the change needs an undo file that not
 * every reader would find or accept. */
tnf_status tnf_change_apply(const tnf_change_file *c, tnf_error *e);

/* The state of a file, according to the undo file next to it. */
typedef enum tnf_undo_state {
    TNF_UNDO_NONE,   /* no undo file, or a file of its name that does not count */
    TNF_UNDO_WHOLE,  /* the change was not begun, or is complete: the undo file is useless */
    TNF_UNDO_MIXED,  /* some bytes are old and some are new */
    TNF_UNDO_FOREIGN /* it belongs to another file, or this one was changed since */
} tnf_undo_state;

/* fd is the file at `path`, open for reading. */
tnf_status tnf_undo_look(tnf_undo_state *out, const char *path, int fd, tnf_error *e);
/* Puts the old bytes back if the file is mixed (*undone), and removes the undo file unless it is
 * foreign. fd is open for reading and writing, and claimed (io/claim.h). */
tnf_status tnf_undo_run(bool *undone, const char *path, int fd, tnf_error *e);
/* Removes the undo file of a file of that owner, after the file was replaced completely. */
void tnf_undo_discard(const char *path, uid_t owner);

/* For other ways to change a file (shift.h): makes the path of its undo file; writes an undo file
 * there and syncs it to the disk, with the permissions of `file`. */
tnf_status tnf_undo_path(char out[PATH_MAX], const char *path, tnf_error *e);
tnf_status tnf_undo_keep(const tnf_buf *bytes, int file, const char *undo, tnf_error *e);
/* Appends the digest of all bytes so far. */
tnf_status tnf_undo_seal(tnf_buf *bytes, tnf_error *e);
/* Removes the undo file if the change succeeded (`status`). After a failure, even of the removal,
 * the caller restores the old bytes and calls tnf_undo_end(); if that fails, too,
 * tnf_undo_needed(), whose message ends with `kept` and the name of the undo file. */
tnf_status tnf_undo_drop(const char *undo, tnf_status status, tnf_error *e);
tnf_status tnf_undo_needed(const char *undo, tnf_status status, const char *kept, tnf_error *e);
tnf_status tnf_undo_end(const char *undo, tnf_status status, tnf_error *e);

#endif
