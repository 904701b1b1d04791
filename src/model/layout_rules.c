/* SPDX-License-Identifier: MIT */
/* Helpers for the layouts' rules. */
#include "model/layout_rules.h"

#include "base/bytes.h"
#include "model/dtype.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void tnf_layout_say(const tnf_object *object, const tnf_part *part, uint64_t at, tnf_error *e,
                    const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    uint64_t offset = part && part->payload == TNF_AT ? part->offset + at : TNF_NO_OFFSET;
    (void)tnf_fail(e, TNF_EFORMAT, offset, "%s: %s", TNF_QUOTED(object->name), text);
}

tnf_status tnf_layout_elements(uint64_t *out, const tnf_object *object, tnf_error *e)
{
    if (!tnf_shape_elements(out, object->shape, object->rank))
        return tnf_layout_fail(object, e, "the shape has more than 2^64 elements");
    return TNF_OK;
}

tnf_status tnf_part_must_be(const tnf_object *object, const tnf_part *part, const tnf_type *type,
                            tnf_error *e)
{
    if (part->type != type)
        return tnf_layout_fail(object, e, "the part '%s' is %s, but must be %s", part->role,
                               TNF_TYPE_TEXT(part->type), type->id);
    return TNF_OK;
}

tnf_status tnf_part_must_hold(const tnf_object *object, const tnf_part *part, uint64_t count,
                              tnf_error *e)
{
    uint64_t bytes;
    if (part->type->bits == 0)
        return TNF_OK;
    if (!tnf_type_bytes(&bytes, part->type, count))
        return tnf_layout_fail(object, e,
                               "%" PRIu64 " elements of %s in the part '%s' are beyond 2^64 bytes",
                               count, TNF_TYPE_TEXT(part->type), part->role);
    if (bytes != part->nbytes)
        return tnf_layout_fail(object, e,
                               "the part '%s' has %" PRIu64 " bytes, but %" PRIu64
                               " elements of %s take %" PRIu64,
                               part->role, part->nbytes, count, TNF_TYPE_TEXT(part->type), bytes);
    return TNF_OK;
}

static tnf_status check_bools(const tnf_object *object, const tnf_part *part, tnf_part_reader read,
                              tnf_error *e)
{
    uint8_t block[16384];
    for (uint64_t at = 0; at < part->nbytes;) {
        uint64_t left = part->nbytes - at;
        size_t n = left < sizeof block ? (size_t)left : sizeof block;
        TNF_TRY(read(block, n, part, at, e));
        uint8_t all = 0;
        for (size_t i = 0; i < n; i++) /* no early exit, so that it can be vectorised */
            all |= block[i];
        for (size_t i = 0; all > 1 && i < n; i++)
            if (block[i] > 1)
                return tnf_layout_fail_at(object, part, at + i, e,
                                          "element %" PRIu64 " of '%s' is %u, which is not a bool",
                                          at + i, part->role, block[i]);
        at += n;
    }
    return TNF_OK;
}

/* Checks the bits of the last byte that belong to no element. */
static tnf_status check_spare_bits(const tnf_object *object, const tnf_part *part, uint64_t count,
                                   tnf_part_reader read, tnf_error *e)
{
    unsigned used = (unsigned)(count % 8 * part->type->bits % 8);
    uint8_t last;
    if (used == 0)
        return TNF_OK;
    TNF_TRY(read(&last, 1, part, part->nbytes - 1, e));
    if (last >> used != 0)
        return tnf_layout_fail_at(object, part, part->nbytes - 1, e,
                                  "bits are set after the last element of '%s'", part->role);
    return TNF_OK;
}

tnf_status tnf_part_check_elements(const tnf_object *object, const tnf_part *part, uint64_t count,
                                   tnf_part_reader read, tnf_error *e)
{
    if (part->type->number == TNF_NUMBER_BOOL)
        return check_bools(object, part, read, e);
    if (part->type->bits < 8 && part->type->bits > 1)
        return check_spare_bits(object, part, count, read, e);
    return TNF_OK;
}

void tnf_part_ints_begin(tnf_part_ints *s, const tnf_part *part, tnf_part_reader read)
{
    s->part = part;
    s->read = read;
    s->width = tnf_dtype_size(part->type->storage);
    s->at = s->last_at = 0;
    s->left = s->n = 0;
}

tnf_status tnf_part_ints_next(tnf_part_ints *s, uint64_t *out, tnf_error *e)
{
    if (s->left == 0) {
        uint64_t rest = s->part->nbytes - s->at;
        s->n = s->left = rest < sizeof s->block ? (size_t)rest : sizeof s->block;
        TNF_TRY(s->read(s->block, s->n, s->part, s->at, e));
        s->at += s->n;
    }
    const uint8_t *p = s->block + (s->n - s->left);
    s->last_at = s->at - s->left;
    s->left -= s->width;
    *out = s->width == 4 ? tnf_le32(p) : tnf_le64(p);
    return TNF_OK;
}
