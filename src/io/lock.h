/* SPDX-License-Identifier: MIT */
/* Locks on the first four bytes of a file, as VS files want them.
 *
 *   byte   0 1 2 3  …                    2^62
 *          └ the lock ┘                  └ the gate: whoever waits for the lock holds it
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

#endif
