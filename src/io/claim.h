/* SPDX-License-Identifier: MIT */
/* The claim on a file: the right to change or replace it, which only one program has at a time.
 *
 *   who                          takes
 *   changes in place, appends    the claim, before the file is read, until it is done
 *   replaces what it read        the claim, before the file is read, until the rename; or from the
 *                                saving on, and then only if the file is still the one it read
 *   replaces something else      the claim, for the rename
 *   tnf_points_*                 VS's lock, exclusive
 *   reads an index               nothing but, for that long, the lock that a change in place has
 *                                while the file is neither the old nor the new one
 *
 * A claim is flock() on the whole file and, shared, VS's lock on its first four bytes. When both
 * are there the path may name another file already, which somebody has put there: then that one is
 * claimed instead.
 */
#ifndef TNF_IO_CLAIM_H
#define TNF_IO_CLAIM_H

#include "io/fs.h"

typedef struct tnf_claim {
    int fd;        /* -1: nothing is claimed */
    bool writable; /* fd is open for writing as well */
    tnf_stamp stamp;
} tnf_claim;

/* Called while waiting; false gives up with TNF_ECANCELLED. NULL: never called. */
typedef struct tnf_waiting {
    bool (*go_on)(void *ctx);
    void *ctx;
} tnf_waiting;

/* Claims the file at that path. If there is no such file, it is not a regular file, it cannot be
 * read, or its file system has no locks, nothing is claimed, and that is not a failure. TNF_EIO
 * with sys EAGAIN if another program holds the claim for longer than a minute. */
tnf_status tnf_claim_take(tnf_claim *c, const char *path, const tnf_waiting *waiting, tnf_error *e);
/* Does the path still name the claimed file? */
bool tnf_claim_holds(const tnf_claim *c, const char *path);
/* Does the path still name it, and is it unchanged, also by programs that do not use claims? */
bool tnf_claim_unchanged(const tnf_claim *c, const char *path);
void tnf_claim_drop(tnf_claim *c);

#endif
