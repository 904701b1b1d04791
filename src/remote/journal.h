/* SPDX-License-Identifier: MIT */
/* A download that may be interrupted: the bytes so far, and a journal of their hashes.
 *
 *   NAME.part           the file with its final size, and holes for missing blocks
 *   NAME.part.journal   tenfold-fetch 1
 *                       total 1234567
 *                       etag "abc"
 *                       modified Sun, 06 Nov 1994 08:49:37 GMT
 *                       block 7 SHA-256 of bytes 7 * 4 MiB … in hex
 *                       …        in order of arrival; an incomplete line is ignored
 *
 * Blocks are hashed again before they are used, since only the bytes on the disk count.
 */
#ifndef TNF_REMOTE_JOURNAL_H
#define TNF_REMOTE_JOURNAL_H

#include "remote/range.h"
#include <limits.h>

#define TNF_BLOCK 4194304u

typedef struct tnf_journal {
    char part[PATH_MAX], lines[PATH_MAX];
    int fd, log; /* descriptors of the two files */
    uint64_t blocks, total;
    uint8_t *have; /* one byte per block */
    tnf_allocator alloc;
    pthread_mutex_t lock;
} tnf_journal;

/* Opens or creates both files. Blocks of another version are discarded. Fails with TNF_EIO if
 * another program fetches the file. */
tnf_status tnf_journal_open(tnf_journal *j, const char *target, const tnf_pin *pin,
                            const tnf_allocator *alloc, tnf_error *e);
/* Writes a block, and its line in the journal. Thread-safe. */
tnf_status tnf_journal_put(tnf_journal *j, uint64_t block, const uint8_t *bytes, size_t n,
                           tnf_error *e);
size_t tnf_journal_size(const tnf_journal *j, uint64_t block);
/* Closes both files, and removes them unless `keep`. */
void tnf_journal_close(tnf_journal *j, bool keep);

#endif
