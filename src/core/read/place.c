/* SPDX-License-Identifier: MIT */
#include "core/read/place.h"

#include "base/sized.h"
#include "core/read/stream.h"

bool tnf_part_here(const tnf_part *part)
{
    const struct tnf_origin *origin = part->origin;
    switch (part->payload) {
    case TNF_MEMORY:
        return part->nbytes == 0 || part->memory || (origin && origin->fetch);
    case TNF_AT:
    case TNF_ENCODED:
        return origin && (origin->source || origin->missing);
    case TNF_OPAQUE:
        return origin &&
               (origin->made || origin->missing || origin->unreadable ||
                (origin->format && origin->format->decode) || part->flags & TNF_PART_UNREADABLE);
    default:
        return false;
    }
}

tnf_status tnf_need_part(const tnf_part *part, tnf_error *e)
{
    if (!part)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "there is no such part");
    TNF_TRY(tnf_check_flags(part->flags & ~TNF_PART_PAIRS,
                            TNF_PART_BIG_ENDIAN | TNF_PART_UNREADABLE, "flags", e));
    return part->type && tnf_part_here(part)
               ? TNF_OK
               : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the part has no type or no data");
}

tnf_status tnf_object_there(const tnf_object *object, tnf_error *e)
{
    if (!object)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "there is no such tensor");
    const char *file = tnf_missing_file(object);
    if (file)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "%s is in the file %s, which is missing",
                        TNF_QUOTED(object->name), TNF_VISIBLE(file));
    TNF_TRY(tnf_check_choice(object->order, TNF_ORDER_F, "order", e));
    return tnf_object_complete(object)
               ? TNF_OK
               : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                          "%s lacks its layout, its shape or its parts", TNF_QUOTED(object->name));
}

tnf_status tnf_part_locate(tnf_part_location *out, const tnf_part *part, tnf_error *e)
{
    *out = (tnf_part_location) { .source = NULL };
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
