/* SPDX-License-Identifier: MIT */
/* Strings lent without copying: directly from the parts of a strings/1 tensor, or in the form of
 * the format.
 *
 *   plain        offsets  0  3  8        base  o n e t h r e e
 *   interleaved  base     03 00 00 00 o n e 05 00 00 00 t h r e e
 */
#include "base/sized.h"
#include "core/core.h"
#include "core/read/place.h"

#include <string.h>

/* The offsets of a file must be checked like its lengths. */
static tnf_status check_offsets(const tnf_object *object, const tnf_strings *s, tnf_error *e)
{
    uint64_t before = 0;
    bool fits = tnf_le64(s->offsets) == 0;
    for (uint64_t i = 0; fits && i <= s->count; i++) {
        uint64_t offset = tnf_le64(&s->offsets[i]);
        fits = offset >= before;
        before = offset;
    }
    if (fits && before == s->bytes)
        return TNF_OK;
    return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                    "the offsets of %s do not ascend from 0 to %llu, the number of bytes",
                    TNF_QUOTED(object->name), (unsigned long long)s->bytes);
}

static tnf_status lend_strings(tnf_strings *out, const tnf_object *object, tnf_error *e)
{
    const void *numbers = NULL, *base = NULL;
    TNF_TRY(tnf_object_there(object, e));
    if (strcmp(object->layout->id, "strings/1") != 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s is %s, not strings/1",
                        TNF_QUOTED(object->name), object->layout->id);
    TNF_TRY(tnf_layout_check(object, e)); /* the caller may have built it */
    const tnf_part *offsets = tnf_object_part(object, "offsets");
    const tnf_part *bytes = tnf_object_part(object, "bytes");
    const tnf_format *format = bytes->origin ? bytes->origin->format : NULL;
    if (bytes->payload == TNF_OPAQUE && format && format->strings)
        return format->strings(bytes->origin->reader, bytes->offset, out, e);
    TNF_TRY(tnf_map(&numbers, offsets, e));
    TNF_TRY(tnf_map(&base, bytes, e));
    *out = (tnf_strings) { .size = sizeof *out,
                           .base = base,
                           .count = offsets->nbytes / sizeof(uint64_t) - 1,
                           .bytes = bytes->nbytes,
                           .offsets = numbers };
    return check_offsets(object, out, e);
}

tnf_status tnf_strings_map(tnf_strings *out, const tnf_object *object, tnf_error *e)
{
    tnf_strings s = TNF_STRINGS_INIT;
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_strings), e));
    TNF_TRY(lend_strings(&s, object, e));
    tnf_result_fill(out, &s, sizeof s);
    return TNF_OK;
}

/* Attributes stay with a tensor in other formats, so it need not come from a file of that
 * family. */
static size_t ask_formats(const tnf_object *o, uint32_t *axes, const void *bytes, size_t n,
                          char *out, size_t room)
{
    const tnf_format *f;
    for (size_t i = 0; o && o->attrs && (f = tnf_registry_at(i)); i++) {
        size_t length = f->element_text ? f->element_text(o, axes, bytes, n, out, room) : SIZE_MAX;
        if (length != SIZE_MAX)
            return length;
    }
    return SIZE_MAX;
}

bool tnf_has_element_text(uint32_t *axes, const tnf_object *object)
{
    uint32_t found = 0;
    bool has = ask_formats(object, &found, NULL, 0, NULL, 0) != SIZE_MAX;
    *axes = found;
    return has;
}

size_t tnf_element_text(char *out, size_t room, const tnf_object *object, const void *bytes,
                        size_t n)
{
    uint32_t axes;
    return bytes ? ask_formats(object, &axes, bytes, n, out, room) : SIZE_MAX;
}
