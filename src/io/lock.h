/* SPDX-License-Identifier: MIT */
/* Locks on the first four bytes of a file, as VS files want them, and two for all files.
 *
 *   byte   0 1 2 3  …                    2^62    2^62 + 1
 *          └ the lock ┘                  │       └ a change in place is under way
 *                                        └ the gate: whoever waits for the lock holds it
 *
 * The gate is ours alone: a writer that waits behind readers keeps further readers out, so that it
 * is not starved. Programs that know only the four bytes are kept out, and kept waiting, all the
 * same.
 *
 * Linux has locks that belong to the open file (OFD): two handles of one process exclude each
 * other, and closing one does not drop the other's. Elsewhere the classic ones do, which do
 * neither.
 */
#ifndef TNF_IO_LOCK_H
#define TNF_IO_LOCK_H

#include "base/error.h"

#define TNF_LOCK_FOREVER UINT32_MAX

/* Waits up to that many milliseconds, 0 not at all. TNF_EIO with sys EAGAIN if somebody else has
 * it, TNF_EUNSUPPORTED where the file system has no locks. An exclusive lock wants a descriptor
 * that is open for writing, a shared one for reading. */
tnf_status tnf_lock_take(int fd, bool exclusive, uint32_t milliseconds, tnf_error *e);
/* The same; go_on is asked while it waits, and false makes it TNF_ECANCELLED. */
tnf_status tnf_lock_ask(int fd, bool exclusive, uint32_t milliseconds, bool (*go_on)(void *ctx),
                        void *ctx, tnf_error *e);
void tnf_lock_drop(int fd);

/* The whole file, exclusive, by flock(): what io/claim.h is made of. It goes with the descriptor.
 */
tnf_status tnf_lock_whole(int fd, uint32_t milliseconds, bool (*go_on)(void *ctx), void *ctx,
                          tnf_error *e);

/* Exclusive while the bytes of a file are neither the old nor the new ones, which wants a
 * descriptor that is open for writing; shared while an index is read. Nothing is locked, and that
 * is no failure, where there are no locks. */
tnf_status tnf_lock_change(int fd, bool exclusive, uint32_t milliseconds, tnf_error *e);
void tnf_unlock_change(int fd);

#endif
