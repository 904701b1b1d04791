/* SPDX-License-Identifier: MIT */
#include "wire/flatbuffer.h"

#include "base/bytes.h"

#include <string.h>

#define VTABLE_HEAD 4u

static tnf_status fail_outside(const tnf_flat *in, uint64_t at, const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, at < in->n ? at : in->n, "%s is outside of the file", what);
}

tnf_status tnf_flat_read(tnf_flat *in, uint64_t at, void *dst, size_t n, tnf_error *e)
{
    if (at > in->n || n > in->n - at)
        return fail_outside(in, at, "a value", e);
    if (n > in->limit)
        return tnf_fail(e, TNF_ELIMIT, at,
                        "the tables that describe the tensors are larger than the limit");
    in->limit -= n;
    if (n > TNF_FLAT_BLOCK)
        return in->fetch(in->ctx, at, dst, n, e);
    if (at < in->block_at || at + n > in->block_at + in->block_n) {
        uint64_t from = at > TNF_FLAT_BLOCK / 4 ? at - TNF_FLAT_BLOCK / 4
                                                : 0; /* vtables come before */
        from = at + n > from + TNF_FLAT_BLOCK ? at : from;
        size_t have = in->n - from < TNF_FLAT_BLOCK ? (size_t)(in->n - from) : TNF_FLAT_BLOCK;
        in->block_n = 0;
        TNF_TRY(in->fetch(in->ctx, from, in->block, have, e));
        in->block_at = from;
        in->block_n = have;
    }
    memcpy(dst, in->block + (at - in->block_at), n);
    return TNF_OK;
}

static tnf_status number_at(uint64_t *out, tnf_flat *in, uint64_t at, size_t width, tnf_error *e)
{
    uint8_t bytes[8] = { 0 };
    TNF_TRY(tnf_flat_read(in, at, bytes, width, e));
    *out = tnf_le64(bytes);
    return TNF_OK;
}

static tnf_status table_at(tnf_flat_table *out, tnf_flat *in, uint64_t at, tnf_error *e)
{
    uint64_t back, size;
    *out = (tnf_flat_table) { .in = in, .at = at };
    if (at == 0 || at > in->n || in->n - at < 4 || at > INT64_MAX)
        return fail_outside(in, at, "a table", e);
    TNF_TRY(number_at(&back, in, at, 4, e));
    int64_t vtable = (int64_t)at - (int32_t)(uint32_t)back;
    if (vtable < 0 || (uint64_t)vtable > in->n || in->n - (uint64_t)vtable < VTABLE_HEAD)
        return fail_outside(in, at, "the vtable of a table", e);
    out->vtable = (uint64_t)vtable;
    TNF_TRY(number_at(&size, in, out->vtable, 2, e));
    if (size < VTABLE_HEAD || size % 2 || size > in->n - out->vtable)
        return tnf_fail(
            e, TNF_EFORMAT, out->vtable,
            "a vtable has a size of %u, which is odd, below %u, or beyond the end of the file",
            (unsigned)size, (unsigned)VTABLE_HEAD);
    out->fields = (uint16_t)((size - VTABLE_HEAD) / 2);
    return TNF_OK;
}

tnf_status tnf_flat_root(tnf_flat_table *out, tnf_flat *in, tnf_error *e)
{
    uint64_t root;
    if (in->n < 8)
        return tnf_fail(e, TNF_ETRUNCATED, in->n, "the file ends before its root");
    TNF_TRY(number_at(&root, in, 0, 4, e));
    return table_at(out, in, root, e);
}

tnf_status tnf_flat_field(uint64_t *at, const tnf_flat_table *t, unsigned field, size_t width,
                          tnf_error *e)
{
    uint64_t offset;
    *at = 0;
    if (t->at == 0 || field >= t->fields)
        return TNF_OK;
    TNF_TRY(number_at(&offset, t->in, t->vtable + VTABLE_HEAD + 2 * (uint64_t)field, 2, e));
    if (offset == 0)
        return TNF_OK;
    if (offset > t->in->n - t->at || width > t->in->n - t->at - offset)
        return fail_outside(t->in, t->at, "a field of a table", e);
    *at = t->at + offset;
    return TNF_OK;
}

tnf_status tnf_flat_number(uint64_t *number, const tnf_flat_table *t, unsigned field, size_t width,
                           tnf_error *e)
{
    uint64_t at;
    TNF_TRY(tnf_flat_field(&at, t, field, width, e));
    return at ? number_at(number, t->in, at, width, e) : TNF_OK;
}

/* The target of a reference; 0: the field is absent. */
static tnf_status follow_reference(uint64_t *to, const tnf_flat_table *t, unsigned field,
                                   tnf_error *e)
{
    uint64_t at, by = 0;
    TNF_TRY(tnf_flat_field(&at, t, field, 4, e));
    if (at)
        TNF_TRY(number_at(&by, t->in, at, 4, e));
    *to = at ? at + by : 0;
    return TNF_OK;
}

tnf_status tnf_flat_vector_of(tnf_flat_vector *out, const tnf_flat_table *t, unsigned field,
                              size_t width, tnf_error *e)
{
    uint64_t at, n;
    *out = (tnf_flat_vector) { .in = t->in, .absent = true };
    TNF_TRY(follow_reference(&at, t, field, e));
    if (at == 0)
        return TNF_OK;
    if (at > t->in->n || t->in->n - at < 4)
        return fail_outside(t->in, t->at, "a vector", e);
    TNF_TRY(number_at(&n, t->in, at, 4, e));
    out->absent = false;
    out->n = (uint32_t)n;
    out->at = at + 4;
    if (n > (t->in->n - out->at) / width)
        return tnf_fail(e, TNF_EFORMAT, at,
                        "a vector of %u elements ends after the end of the file", out->n);
    return TNF_OK;
}

tnf_status tnf_flat_string(tnf_str *out, const tnf_flat_table *t, unsigned field, tnf_error *e)
{
    tnf_flat_vector v;
    TNF_TRY(tnf_flat_vector_of(&v, t, field, 1, e));
    char *text = tnf_arena_alloc(t->in->arena, (size_t)v.n + 1);
    if (!text)
        return tnf_arena_fail(t->in->arena, "a name", e);
    *out = (tnf_str) { text, v.n };
    return v.n ? tnf_flat_read(t->in, v.at, text, v.n, e) : TNF_OK;
}

tnf_status tnf_flat_inner(tnf_flat_table *out, const tnf_flat_table *t, unsigned field,
                          tnf_error *e)
{
    uint64_t at;
    *out = (tnf_flat_table) { .in = t->in };
    TNF_TRY(follow_reference(&at, t, field, e));
    return at ? table_at(out, t->in, at, e) : TNF_OK;
}

tnf_status tnf_flat_item(tnf_flat_table *out, const tnf_flat_vector *v, uint32_t i, tnf_error *e)
{
    uint64_t at = v->at + 4 * (uint64_t)i, by;
    TNF_TRY(number_at(&by, v->in, at, 4, e));
    return table_at(out, v->in, at + by, e);
}
