/* SPDX-License-Identifier: MIT */
/* Is a part there, and where are its bytes? For callers that read in blocks of their own, too. */
#ifndef TNF_CORE_READ_PLACE_H
#define TNF_CORE_READ_PLACE_H

#include "io/source.h"

typedef struct tnf_part_location {
    /* Part and source have the same bytes from `offset` on. NULL: the bytes are decoded, computed
     * or compared with a digest, so they must be read by tnf_read_part() or tnf_scan(). */
    const tnf_source *source;
    uint64_t offset;
    const char *label; /* a shard's name, for messages; or NULL */
    bool anywhere;     /* several threads may read any position at the same cost */
} tnf_part_location;

/* Fails if the part cannot be read at all. */
tnf_status tnf_part_locate(tnf_part_location *out, const tnf_part *part, tnf_error *e);

/* Is it known where the bytes of the part are: in memory, in a source, or in a file that is
 * missing?
 */
bool tnf_part_here(const tnf_part *part);
/* TNF_EINVAL for NULL, and for a part that the caller built and that has no type or no bytes. */
tnf_status tnf_need_part(const tnf_part *part, tnf_error *e);

/* TNF_EINVAL for NULL, which the lookup of an unknown name returns, and for a tensor that the
 * caller built and that lacks something; TNF_ENOTFOUND if the file of the tensor is missing. */
tnf_status tnf_object_there(const tnf_object *object, tnf_error *e);

#endif
