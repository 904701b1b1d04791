/* SPDX-License-Identifier: MIT */
/* The table of layouts, the check of roles, and the two plain layouts.
 *
 *   dense        data     elements one after the other, rows or columns first
 *   strings/1    offsets  u64, one more than there are strings: 0 … length of bytes
 *                bytes    u8, the strings without anything between them
 *
 *   offsets  0  3  3  8          three strings: "one", "", "three"
 *   bytes    o n e t h r e e
 *
 * layout_sparse.c, layout_quant.c and layout_blocks.c have the others.
 */
#include "model/layout_rules.h"

#include "model/dtype.h"

#include <inttypes.h>
#include <string.h>

static const tnf_layout *const known[] = {
    &tnf_layout_dense,       &tnf_layout_strings, &tnf_layout_sparse_csr, &tnf_layout_sparse_coo,
    &tnf_layout_quant_group, &tnf_layout_mx,      &tnf_layout_pq,
};

enum { KNOWN = sizeof known / sizeof known[0] };

const tnf_layout *tnf_layout_at(size_t i)
{
    return i < KNOWN ? known[i] : tnf_layout_block_at(i - KNOWN);
}

const tnf_layout *tnf_layout_named(const char *id, size_t n)
{
    const tnf_layout *layout;
    for (size_t i = 0; (layout = tnf_layout_at(i)) != NULL; i++)
        if (strlen(layout->id) == n && memcmp(layout->id, id, n) == 0)
            return layout;
    return NULL;
}

const tnf_layout tnf_layout_missing = { .id = "missing" };

const tnf_layout *tnf_layout_unknown(tnf_arena *arena, const char *id, size_t n)
{
    tnf_layout *layout = tnf_arena_alloc(arena, sizeof *layout);
    const char *copy = layout ? tnf_arena_str(arena, id, n) : NULL;
    if (!copy)
        return NULL;
    *layout = (tnf_layout) { .id = copy };
    return layout;
}

const tnf_layout *tnf_layout_by_id(const char *id)
{
    return id ? tnf_layout_named(id, strlen(id)) : NULL;
}

const char *tnf_layout_id(const tnf_layout *layout)
{
    return layout ? layout->id : NULL;
}

const char *tnf_layout_name(const tnf_layout *layout)
{
    return layout && layout->name ? layout->name : tnf_layout_id(layout);
}

bool tnf_layout_blocks(uint32_t *elements, uint32_t *bytes, const tnf_layout *layout)
{
    if (!layout || layout->block_bytes == 0)
        return false;
    *elements = layout->block_elements;
    *bytes = layout->block_bytes;
    return true;
}

bool tnf_object_complete(const tnf_object *object)
{
    if (!object || !object->layout || (object->rank && !object->shape) ||
        (object->nparts && !object->parts))
        return false;
    for (uint16_t i = 0; i < object->nparts; i++)
        if (!object->parts[i].role || !object->parts[i].type)
            return false;
    return true;
}

const tnf_part *tnf_object_part(const tnf_object *object, const char *role)
{
    for (uint16_t i = 0; object && object->parts && role && i < object->nparts; i++)
        if (object->parts[i].role && strcmp(object->parts[i].role, role) == 0)
            return &object->parts[i];
    return NULL;
}

bool tnf_shape_elements(uint64_t *out, const uint64_t *shape, uint32_t rank)
{
    uint64_t product = 1;
    bool fits = true;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0) {
            *out = 0;
            return true;
        }
        if (shape[i] > UINT64_MAX / product)
            fits = false; /* a later zero still makes it fit */
        else
            product *= shape[i];
    }
    if (fits)
        *out = product;
    return fits;
}

/* ------------------------------------------------------------------ roles */

static unsigned count_role(const tnf_object *object, const char *role)
{
    unsigned count = 0;
    for (uint16_t i = 0; i < object->nparts; i++)
        count += strcmp(object->parts[i].role, role) == 0;
    return count;
}

static bool has_role(const tnf_layout *layout, const char *role)
{
    for (const tnf_layout_part *p = layout->parts; p->role; p++)
        if (strcmp(p->role, role) == 0)
            return true;
    return false;
}

static tnf_status check_roles(const tnf_object *object, tnf_error *e)
{
    const tnf_layout *layout = object->layout;
    for (uint16_t i = 0; i < object->nparts; i++) {
        const char *role = object->parts[i].role;
        if (!has_role(layout, role))
            return tnf_layout_fail(object, e, "a %s tensor has no part %s", layout->id,
                                   TNF_QUOTED(((tnf_str) { role, strlen(role) })));
    }
    for (const tnf_layout_part *p = layout->parts; p->role; p++) {
        unsigned count = count_role(object, p->role);
        if (count > 1)
            return tnf_layout_fail(object, e, "the part '%s' occurs %u times", p->role, count);
        if (count == 0 && !p->optional)
            return tnf_layout_fail(object, e, "a %s tensor needs a part '%s'", layout->id, p->role);
    }
    return TNF_OK;
}

tnf_status tnf_layout_check(const tnf_object *object, tnf_error *e)
{
    const tnf_layout *layout = object->layout;
    if (!layout)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has no layout", TNF_QUOTED(object->name));
    for (uint16_t i = 0; i < object->nparts; i++)
        if (!object->parts[i].role || !object->parts[i].type)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has a part without role or type",
                            TNF_QUOTED(object->name));
    if (!layout->parts)
        return TNF_OK;
    TNF_TRY(check_roles(object, e));
    if (object->order != TNF_ORDER_C && layout != &tnf_layout_dense)
        return tnf_layout_fail(object, e, "a %s tensor cannot be stored column by column (order F)",
                               layout->id);
    return layout->check ? layout->check(object, e) : TNF_OK;
}

/* ------------------------------------------------------------------ dense */

static tnf_status check_dense(const tnf_object *object, tnf_error *e)
{
    uint64_t elements;
    TNF_TRY(tnf_layout_elements(&elements, object, e));
    return tnf_part_must_hold(object, tnf_object_part(object, "data"), elements, e);
}

tnf_status tnf_layout_check_numbers(const tnf_object *object, tnf_part_reader read, tnf_error *e)
{
    uint64_t elements;
    TNF_TRY(tnf_layout_check(object, e));
    TNF_TRY(tnf_layout_elements(&elements, object, e));
    return tnf_part_check_elements(object, tnf_object_part(object, "data"), elements, read, e);
}

const tnf_layout tnf_layout_dense = {
    .id = "dense",
    .parts = (const tnf_layout_part[]) { { .role = "data" }, { NULL, false } },
    .check = check_dense,
    .check_data = tnf_layout_check_numbers,
};

/* ---------------------------------------------------------------- strings */

static tnf_status check_strings(const tnf_object *object, tnf_error *e)
{
    const tnf_part *offsets = tnf_object_part(object, "offsets");
    const tnf_part *bytes = tnf_object_part(object, "bytes");
    uint64_t strings;
    TNF_TRY(tnf_layout_elements(&strings, object, e));
    TNF_TRY(tnf_part_must_be(object, offsets, tnf_type_of(TNF_U64), e));
    TNF_TRY(tnf_part_must_be(object, bytes, tnf_type_of(TNF_U8), e));
    if (strings == UINT64_MAX)
        return tnf_layout_fail(object, e, "there are too many strings");
    return tnf_part_must_hold(object, offsets, strings + 1, e);
}

static tnf_status check_strings_data(const tnf_object *object, tnf_part_reader read, tnf_error *e)
{
    TNF_TRY(tnf_layout_check(object, e));
    const tnf_part *offsets = tnf_object_part(object, "offsets");
    uint64_t total = tnf_object_part(object, "bytes")->nbytes;
    uint64_t count = offsets->nbytes / sizeof(uint64_t), offset = 0, before = 0;
    tnf_part_ints ints;
    tnf_part_ints_begin(&ints, offsets, read);
    for (uint64_t i = 0; i < count; i++, before = offset) {
        TNF_TRY(tnf_part_ints_next(&ints, &offset, e));
        if (i == 0 && offset != 0)
            return tnf_layout_fail_at(object, offsets, ints.last_at, e,
                                      "the first string begins at %" PRIu64 ", not 0", offset);
        if (offset < before)
            return tnf_layout_fail_at(object, offsets, ints.last_at, e,
                                      "offset %" PRIu64 " is %" PRIu64 ", below the %" PRIu64
                                      " before it",
                                      i, offset, before);
    }
    if (offset != total)
        return tnf_layout_fail_at(object, offsets, ints.last_at, e,
                                  "the strings end at %" PRIu64 ", but there are %" PRIu64 " bytes",
                                  offset, total);
    return TNF_OK;
}

const tnf_layout tnf_layout_strings = {
    .id = "strings/1",
    .parts = (const tnf_layout_part[]) { { .role = "offsets" },
                                         { .role = "bytes" },
                                         { NULL, false } },
    .check = check_strings,
    .check_data = check_strings_data,
};
