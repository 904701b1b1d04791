/* SPDX-License-Identifier: MIT */
/* Locks on the first four bytes of a file, as VS files require them, and two locks for all files.
 *
 *   byte   0 1 2 3  …                    2^62    2^62 + 1
 *          └ the lock ┘                  │       └ a change in place is in progress
 *                                        └ the gate: held by a program that waits for the lock
 *
 * Only Tenfold uses the gate: a writer that waits for readers keeps new readers out, so that it
 * does not starve. Programs that use only the four bytes still exclude others and wait for them.
 *
 * Linux has locks that belong to the open file (OFD): two handles of one process exclude each
 * other, and closing one does not release the lock of the other. Other systems use the classic
 * locks, which do neither.
 */
#ifndef TNF_IO_LOCK_H
#define TNF_IO_LOCK_H

#include "base/error.h"

#define TNF_LOCK_FOREVER UINT32_MAX

/* Waits up to that many milliseconds; 0 does not wait. TNF_EIO with sys EAGAIN if another program
 * has the lock, TNF_EUNSUPPORTED if the file system has no locks. An exclusive lock needs a
 * descriptor that is open for writing, a shared one needs one that is open for reading. */
tnf_status tnf_lock_take(int fd, bool exclusive, uint32_t milliseconds, tnf_error *e);
/* The same; go_on is called while it waits, and if it returns false, the result is
 * TNF_ECANCELLED. */
tnf_status tnf_lock_ask(int fd, bool exclusive, uint32_t milliseconds, bool (*go_on)(void *ctx),
                        void *ctx, tnf_error *e);
/* Takes the shared lock without the gate, if no program has the exclusive one: for the holder of
 * another shared lock on the file, for whose end a writer in the gate may be waiting. */
bool tnf_lock_beside(int fd);
void tnf_lock_drop(int fd);

/* An exclusive lock on the whole file by flock(), which io/claim.h uses. It ends with the
 * descriptor. */
tnf_status tnf_lock_whole(int fd, uint32_t milliseconds, bool (*go_on)(void *ctx), void *ctx,
                          tnf_error *e);

/* Exclusive while the bytes of a file are neither the old nor the new ones; this needs a descriptor
 * that is open for writing. Shared while an index is read. If there are no locks, nothing is
 * locked, and the call succeeds. */
tnf_status tnf_lock_change(int fd, bool exclusive, uint32_t milliseconds, tnf_error *e);
void tnf_unlock_change(int fd);

#endif
