/* SPDX-License-Identifier: MIT */
/* Arrays and scalars of NumPy inside a pickle.
 *
 *   _reconstruct(ndarray, (0,), b"b") with the state (1, shape, dtype, is_fortran, bytes)
 *   _frombuffer(bytes, dtype, shape, order)
 *   scalar(dtype, bytes)
 *   dtype: numpy.dtype("f8", False, True) with the state (3, "<", …)
 */
#include "formats/pytorch/pt.h"

#include <stdio.h>
#include <string.h>

static bool is_numpy(const tnf_pickle_node *node, const char *part, const char *name)
{
    char module[64];
    snprintf(module, sizeof module, "numpy.core.%s", part);
    if (tnf_pickle_is_call(node, module, name))
        return true;
    snprintf(module, sizeof module, "numpy._core.%s", part);
    return tnf_pickle_is_call(node, module, name);
}

static const tnf_pickle_node *tuple_item(const tnf_pickle_node *tuple, size_t i)
{
    return tuple && tuple->kind == TNF_PICKLE_TUPLE && i < tuple->n ? tuple->as.items[i] : NULL;
}

/* Reads a dtype of plain numbers. */
static const tnf_type *read_dtype(const tnf_pickle_node *node, bool *big)
{
    static const char *const ids[][2] = {
        { "b1", "bool" }, { "i1", "i8" },  { "i2", "i16" }, { "i4", "i32" },   { "i8", "i64" },
        { "u1", "u8" },   { "u2", "u16" }, { "u4", "u32" }, { "u8", "u64" },   { "f2", "f16" },
        { "f4", "f32" },  { "f8", "f64" }, { "c8", "c64" }, { "c16", "c128" },
    };
    const tnf_pickle_node *text = node && tnf_pickle_is_call(node, "numpy", "dtype")
                                      ? tnf_pickle_arg(node, 0)
                                      : NULL;
    const tnf_pickle_node *order = text ? tuple_item(node->as.call->state, 1) : NULL;
    *big = tnf_pickle_is_text(order, ">");
    for (size_t i = 0; text && i < sizeof ids / sizeof *ids; i++)
        if (tnf_pickle_is_text(text, ids[i][0]))
            return tnf_type_named(ids[i][1]);
    return NULL;
}

/* The pieces of an array, from either of the two spellings. */
typedef struct pieces {
    const tnf_pickle_node *shape, *dtype, *bytes;
    bool fortran;
} pieces;

static bool split_array(pieces *p, const tnf_pickle_node *node)
{
    *p = (pieces) { 0 };
    if (is_numpy(node, "multiarray", "_reconstruct")) {
        const tnf_pickle_node *state = node->as.call->state, *f = tuple_item(state, 3);
        p->shape = tuple_item(state, 1);
        p->dtype = tuple_item(state, 2);
        p->bytes = tuple_item(state, 4);
        p->fortran = f && f->kind == TNF_PICKLE_BOOL && f->as.i;
    } else if (is_numpy(node, "numeric", "_frombuffer")) {
        p->bytes = tnf_pickle_arg(node, 0);
        p->dtype = tnf_pickle_arg(node, 1);
        p->shape = tnf_pickle_arg(node, 2);
        p->fortran = tnf_pickle_is_text(tnf_pickle_arg(node, 3), "F");
    }
    return p->shape && p->dtype && p->bytes;
}

/* bytearray(b"…") has the bytes of its argument. */
static const tnf_pickle_node *inner_bytes(const tnf_pickle_node *node)
{
    const tnf_pickle_node *arg = tnf_pickle_is_call(node, "builtins", "bytearray")
                                     ? tnf_pickle_arg(node, 0)
                                     : NULL;
    return arg && !tnf_pickle_arg(node, 1) ? arg : node;
}

static bool holds_bytes(const tnf_pickle_node *node)
{
    node = inner_bytes(node);
    return node->kind == TNF_PICKLE_BYTES || node->kind == TNF_PICKLE_BYTEARRAY ||
           (node->kind == TNF_PICKLE_TEXT && node->python2) ||
           tnf_pickle_is_call(node, "_codecs", "encode") ||
           (tnf_pickle_is_call(node, "builtins", "bytes") && !tnf_pickle_arg(node, 0));
}

bool tnf_pt_is_array(const tnf_pickle_node *node)
{
    pieces p;
    bool big;
    return node->kind == TNF_PICKLE_CALL && split_array(&p, node) && holds_bytes(p.bytes) &&
           p.shape->kind == TNF_PICKLE_TUPLE && read_dtype(p.dtype, &big);
}

bool tnf_pt_is_scalar(const tnf_pickle_node *node)
{
    bool big;
    return is_numpy(node, "multiarray", "scalar") && read_dtype(tnf_pickle_arg(node, 0), &big) &&
           tnf_pickle_arg(node, 1) && holds_bytes(tnf_pickle_arg(node, 1));
}

/* Converts text whose characters are bytes. */
static tnf_status from_latin1(tnf_str *out, const tnf_pickle_node *text, tnf_arena *arena,
                              tnf_error *e)
{
    char *bytes = tnf_arena_raw(arena, text->n + 1);
    size_t n = 0;
    if (!bytes)
        return tnf_arena_fail(arena, "bytes", e);
    for (size_t i = 0; i < text->n;) {
        uint32_t c = (uint8_t)text->as.s[i];
        size_t took = c < 0x80 ? 1 : tnf_utf8_next(&c, text->as.s + i, text->n - i);
        if (!took || c > 0xff)
            return tnf_fail(e, TNF_EFORMAT, text->at,
                            "bytes in the pickle have a character above 255");
        bytes[n++] = (char)c;
        i += took;
    }
    *out = (tnf_str) { bytes, n };
    return TNF_OK;
}

tnf_status tnf_pt_bytes(tnf_str *out, const tnf_pickle_node *node, tnf_arena *arena, tnf_error *e)
{
    *out = (tnf_str) { NULL, 0 };
    node = inner_bytes(node);
    if (node->kind == TNF_PICKLE_BYTES || node->kind == TNF_PICKLE_BYTEARRAY ||
        (node->kind == TNF_PICKLE_TEXT && node->python2))
        *out = (tnf_str) { node->as.s, node->n };
    else if (tnf_pickle_is_call(node, "builtins", "bytes") && !tnf_pickle_arg(node, 0))
        *out = (tnf_str) { "", 0 };
    else if (tnf_pickle_is_call(node, "_codecs", "encode")) {
        const tnf_pickle_node *text = tnf_pickle_arg(node, 0);
        if (text && text->kind == TNF_PICKLE_TEXT)
            return from_latin1(out, text, arena, e);
    }
    return TNF_OK;
}

/* Makes a separate storage in memory from the bytes. */
static tnf_status make_storage(pt_storage **out, pt_file *f, const tnf_pickle_node *node,
                               tnf_error *e)
{
    tnf_arena *a = f->r->arena;
    tnf_str bytes;
    pt_storage *s = tnf_arena_alloc(a, sizeof *s);
    node = inner_bytes(node);
    TNF_TRY(tnf_pt_bytes(&bytes, node, a, e));
    const char *copy = s && bytes.p ? bytes.p : NULL;
    if (copy && node->kind != TNF_PICKLE_CALL) /* in the pickle, whose memory is released */
        copy = tnf_arena_str(a, bytes.p, bytes.n);
    if (!copy)
        return tnf_arena_fail(a, "an array", e);
    s->memory = (const uint8_t *)copy;
    s->size = bytes.n;
    s->located = true;
    *out = s;
    return TNF_OK;
}

tnf_status tnf_pt_array(pt_tensor *out, pt_file *f, const tnf_pickle_node *node, tnf_error *e)
{
    pieces p;
    bool big;
    pt_dense *d = &out->parts[0];
    uint64_t bytes = 1;
    bool whole = split_array(&p, node);
    const tnf_type *type = read_dtype(p.dtype, &big);
    if (!whole)
        return tnf_fail(e, TNF_EFORMAT, node->at, "an array in the pickle is incomplete");
    if (p.shape->n > PT_RANK)
        return tnf_fail(e, TNF_ELIMIT, node->at, "an array has %zu dimensions; the limit is %u",
                        p.shape->n, PT_RANK);
    TNF_TRY(make_storage(&d->storage, f, p.bytes, e));
    d->type = tnf_pt_type_for(type);
    d->storage->big = big;
    d->limit = d->storage->size;
    d->rank = (uint32_t)p.shape->n;
    d->at = node->at;
    d->location = "cpu";
    for (uint32_t i = 0; i < d->rank; i++) {
        const tnf_pickle_node *n = p.shape->as.items[i];
        if (n->kind != TNF_PICKLE_INT || n->as.i < 0 ||
            !tnf_ckd_mul(&bytes, bytes, (uint64_t)n->as.i))
            return tnf_fail(e, TNF_EFORMAT, node->at,
                            "the shape of an array in the pickle is invalid");
        d->shape[i] = (uint64_t)n->as.i;
    }
    if (!tnf_ckd_mul(&bytes, bytes, d->type->width) || bytes != d->limit)
        return tnf_fail(
            e, TNF_EFORMAT, node->at,
            "an array in the pickle has %llu bytes, but its shape requires another number",
            (unsigned long long)d->limit);
    uint64_t step = 1;
    for (uint32_t i = 0; i < d->rank; i++) {
        uint32_t at = p.fortran ? i : d->rank - 1 - i;
        d->stride[at] = step;
        step *= d->shape[at] ? d->shape[at] : 1;
    }
    out->layout = "dense";
    out->roles[0] = "data";
    out->nparts = 1;
    out->kind = "numpy";
    return TNF_OK;
}

bool tnf_pt_scalar(tnf_value *out, const tnf_pickle_node *node)
{
    bool big;
    char room[8] = { 0 };
    tnf_arena none;
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    const tnf_type *type = read_dtype(tnf_pickle_arg(node, 0), &big);
    tnf_str bytes;
    tnf_arena_init(&none, &alloc, 1 << 16);
    bool ok = tnf_pt_bytes(&bytes, tnf_pickle_arg(node, 1), &none, NULL) == TNF_OK && bytes.p &&
              bytes.n == type->bits / 8 && type->number != TNF_NUMBER_COMPLEX && bytes.n <= 8;
    if (ok) {
        for (size_t i = 0; i < bytes.n; i++)
            room[i] = bytes.p[big ? bytes.n - 1 - i : i];
        if (type->number == TNF_NUMBER_BOOL)
            *out = tnf_value_bool(room[0] != 0);
        else
            *out = tnf_value_number(type->storage, room);
    }
    tnf_arena_free(&none);
    return ok;
}
