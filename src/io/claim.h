/* SPDX-License-Identifier: MIT */
/* The claim on a file: the right to change or replace it. Only one program has it at a time.
 *
 *   program                      takes
 *   changes in place, appends    the claim, from before the file is read until it is done
 *   replaces a file it has read  the claim, from before the file is read until the rename; or from
 *                                the start of saving, and then only if the file is unchanged
 *   replaces another file        the claim, during the rename
 *   tnf_points_*                 VS's lock, exclusive
 *   reads an index               no claim; during the read, a shared lock. A change in place takes
 *                                it exclusively while some bytes are old and some are new
 *
 * A claim is flock() on the whole file and a shared VS lock on its first four bytes. When both
 * locks are held, the path may already name another file that replaced this one. Then that file is
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

/* Called while waiting; false stops with TNF_ECANCELLED. NULL: never called. */
typedef struct tnf_waiting {
    bool (*go_on)(void *ctx);
    void *ctx;
} tnf_waiting;

/* Claims the file at that path. Nothing is claimed, and the call succeeds, if there is no such
 * file, if it is not a regular file or cannot be read, or if its file system has no locks. TNF_EIO
 * with sys EAGAIN if another program holds the claim for longer than a minute. */
tnf_status tnf_claim_take(tnf_claim *c, const char *path, const tnf_waiting *waiting, tnf_error *e);
/* Does the path still name the claimed file? */
bool tnf_claim_holds(const tnf_claim *c, const char *path);
/* Does the path still name it, and is it unchanged, even by programs that do not use claims? */
bool tnf_claim_unchanged(const tnf_claim *c, const char *path);
void tnf_claim_drop(tnf_claim *c);

#endif
