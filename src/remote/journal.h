/* SPDX-License-Identifier: MIT */
/* A download that may be interrupted: the bytes so far, and a journal of what they are.
 *
 *   NAME.part           the file, as long as it will be, with holes
 *   NAME.part.journal   tenfold-fetch 1
 *                       total 1234567
 *                       etag "abc"
 *                       modified Sun, 06 Nov 1994 08:49:37 GMT
 *                       block 7 SHA-256 of bytes 7 * 4 MiB … in hex
 *                       …        in the order in which they came; a line cut short does not count
 *
 * Blocks are hashed again before they are used: what the disk has is what counts.
 */
#ifndef TNF_REMOTE_JOURNAL_H
#define TNF_REMOTE_JOURNAL_H

#include "remote/range.h"
#include <limits.h>

#define TNF_BLOCK 4194304u

typedef struct tnf_journal {
    char part[PATH_MAX], lines[PATH_MAX];
    int fd, log; /* of the two */
    uint64_t blocks, total;
    uint8_t *have; /* a byte a block */
    tnf_allocator alloc;
    pthread_mutex_t lock;
} tnf_journal;

/* Opens or makes both. What is of another version is thrown away. TNF_EIO if another program is at
 * it. */
tnf_status tnf_journal_open(tnf_journal *j, const char *target, const tnf_pin *pin,
                            const tnf_allocator *alloc, tnf_error *e);
/* A block is there: writes it, and that it is. Any thread. */
tnf_status tnf_journal_put(tnf_journal *j, uint64_t block, const uint8_t *bytes, size_t n,
                           tnf_error *e);
size_t tnf_journal_size(const tnf_journal *j, uint64_t block);
/* Leaves both on the disk, or not. */
void tnf_journal_close(tnf_journal *j, bool keep);

#endif
