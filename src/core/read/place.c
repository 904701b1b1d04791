/* SPDX-License-Identifier: MIT */
#include "core/read/place.h"

#include "core/read/stream.h"

tnf_status tnf_part_place(tnf_place *out, const tnf_part *part, tnf_error *e)
{
    *out = (tnf_place) { .source = NULL };
    TNF_TRY(tnf_read_part(NULL, 0, part, 0, e)); /* reads nothing, but makes all checks */
    out->label = part->origin ? part->origin->label : NULL;
    out->anywhere = tnf_part_anywhere(part);
    if (tnf_checks_reads(part)) {
        out->anywhere = false; /* only reading in order compares its digest */
    } else if (part->payload == TNF_AT && part->origin && !(part->flags & TNF_PART_BIG_ENDIAN)) {
        out->source = part->origin->source;
        out->offset = part->offset;
    }
    return TNF_OK;
}
