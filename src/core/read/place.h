/* SPDX-License-Identifier: MIT */
/* The place of the bytes of a part, for callers that read in blocks of their own. */
#ifndef TNF_CORE_READ_PLACE_H
#define TNF_CORE_READ_PLACE_H

#include "io/source.h"

typedef struct tnf_place {
    /* Part and source have the same bytes from `offset` on. NULL: the bytes are decoded, computed
     * or compared with a digest, so they must be read by tnf_read_part() or tnf_scan(). */
    const tnf_source *source;
    uint64_t offset;
    const char *label; /* a shard's name, for messages; or NULL */
    bool anywhere;     /* several threads may read any position at the same cost */
} tnf_place;

/* Fails if the part cannot be read at all. */
tnf_status tnf_part_place(tnf_place *out, const tnf_part *part, tnf_error *e);

#endif
