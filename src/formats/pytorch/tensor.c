/* SPDX-License-Identifier: MIT */
/* Makes a tensor from a node of the tree. torch's rebuild functions are read as descriptions.
 *
 *   _rebuild_tensor_v2(("storage", FloatStorage, "0", "cpu", 12), 0, (4, 3), (3, 1), False, {})
 *                       type, key, device, number                    offset, size, stride, …
 */
#include "formats/pytorch/pt.h"

#include <string.h>

typedef struct context {
    pt_file *f;
    pt_tensor *t;
    uint64_t at;
    unsigned depth;
    tnf_error *e;
    const tnf_pickle_node *node; /* the outermost node */
} context;

/* A tensor may be made of others. */
#define MOST_NESTED 8
#define TOO_NESTED  "tensors are nested more than 8 deep in it"

typedef tnf_status (*rebuild_fn)(context *x, const tnf_pickle_node *args);

static tnf_status bad_tensor(const context *x, const char *why)
{
    return tnf_fail(x->e, TNF_EFORMAT, x->at, "a tensor in the pickle is invalid: %s", why);
}

/* The tensor is valid, but of an unknown kind: it is only listed. */
static tnf_status unknown_tensor(const context *x, const char *why)
{
    return tnf_fail(x->e, TNF_EUNSUPPORTED, x->at, "%s", why);
}

static const tnf_pickle_node *tuple_item(const tnf_pickle_node *tuple, size_t i)
{
    bool list = tuple && (tuple->kind == TNF_PICKLE_TUPLE || tuple->kind == TNF_PICKLE_LIST);
    return list && i < tuple->n ? tuple->as.items[i] : NULL;
}

static bool as_uint(const tnf_pickle_node *node, uint64_t *out)
{
    if (!node || node->kind != TNF_PICKLE_INT || node->as.i < 0)
        return false;
    *out = (uint64_t)node->as.i;
    return true;
}

static bool is_true(const tnf_pickle_node *node)
{
    return node && node->kind == TNF_PICKLE_BOOL && node->as.i;
}

/* A tuple of dimensions, or torch.Size of one. */
static tnf_status read_dims(const context *x, const tnf_pickle_node *node, uint64_t *out,
                            uint32_t *rank, const char *what)
{
    node = node ? tnf_pt_unwrap(node) : NULL;
    if (!node || (node->kind != TNF_PICKLE_TUPLE && node->kind != TNF_PICKLE_LIST))
        return bad_tensor(x, what);
    if (node->n > PT_RANK)
        return tnf_fail(x->e, TNF_ELIMIT, x->at,
                        "a tensor has %zu dimensions; torch allows at most 64", node->n);
    for (size_t i = 0; i < node->n; i++)
        if (!as_uint(node->as.items[i], &out[i]))
            return bad_tensor(x, what);
    *rank = (uint32_t)node->n;
    return TNF_OK;
}

/* --------------------------------------------------------------- storages */

bool tnf_pt_is_storage(const tnf_pickle_node *node)
{
    return node->kind == TNF_PICKLE_PERSISTENT &&
           tnf_pickle_is_text(tuple_item(node->as.items[0], 0), "storage");
}

static const pt_type *storage_type(const tnf_pickle_node *node)
{
    return node && node->kind == TNF_PICKLE_GLOBAL ? tnf_pt_type_of_storage(node->as.global->name)
                                                   : NULL;
}

/* Reads the view of an old storage: (key, offset, number of elements), or None. */
static bool read_view(pt_mention *m, const tnf_pickle_node *view)
{
    if (!view || view->kind == TNF_PICKLE_NONE)
        return true;
    return as_uint(tuple_item(view, 1), &m->start) && as_uint(tuple_item(view, 2), &m->numel);
}

tnf_status tnf_pt_mention(pt_mention *out, const tnf_pickle_node *node, tnf_arena *arena,
                          tnf_error *e)
{
    const tnf_pickle_node *id = node->as.items[0];
    const tnf_pickle_node *key = tuple_item(id, 2), *place = tuple_item(id, 3);
    *out = (pt_mention) { .type = storage_type(tuple_item(id, 1)) };
    if (!out->type && tuple_item(id, 1) && tuple_item(id, 1)->kind == TNF_PICKLE_GLOBAL)
        return tnf_fail(e, TNF_EUNSUPPORTED, node->at, "the class of its storage is not known");
    if (!out->type || !key || key->kind != TNF_PICKLE_TEXT || !place ||
        place->kind != TNF_PICKLE_TEXT || !as_uint(tuple_item(id, 4), &out->whole))
        return tnf_fail(e, TNF_EFORMAT, node->at,
                        "a storage in the pickle is described in an unknown way");
    out->key = (tnf_str) { key->as.s, key->n };
    out->numel = out->whole;
    if (!read_view(out, tuple_item(id, 5)))
        return tnf_fail(e, TNF_EFORMAT, node->at, "the view of a storage in the pickle is invalid");
    out->location = tnf_arena_str(arena, place->as.s, place->n);
    return out->location ? TNF_OK : tnf_arena_fail(arena, "a storage", e);
}

/* Finds the storage and checks its size against the mention. */
static tnf_status find_storage(context *x, pt_dense *d, const tnf_pickle_node *node)
{
    pt_mention m;
    uint64_t whole, end;
    if (!node || !tnf_pt_is_storage(node))
        return bad_tensor(x, "it has no storage");
    TNF_TRY(tnf_pt_mention(&m, node, x->f->r->arena, x->e));
    d->type = m.type;
    d->location = m.location;
    if (!tnf_ckd_mul(&whole, m.whole, m.type->width) ||
        !tnf_ckd_mul(&d->start, m.start, m.type->width) ||
        !tnf_ckd_mul(&d->limit, m.numel, m.type->width) || !tnf_ckd_add(&end, d->start, d->limit) ||
        end > whole)
        return bad_tensor(x, "its storage is too large, or its view is out of range");
    if (x->f->blind)
        return TNF_OK;
    d->storage = tnf_pt_find_storage(x->f, m.key);
    if (!d->storage) {
        if (strcmp(m.location, "meta") == 0 || whole == 0)
            return TNF_OK;
        return tnf_fail(x->e, x->f->r->salvage ? TNF_ETRUNCATED : TNF_EFORMAT, x->at,
                        "the storage %s, which a tensor needs, is not in the file",
                        TNF_QUOTED(m.key));
    }
    TNF_TRY(x->f->locate ? x->f->locate(x->f, d->storage, x->e) : TNF_OK);
    if (d->storage->size != whole && !m.type->packed)
        return tnf_fail(
            x->e, TNF_EFORMAT, x->at, "the storage %s has %llu bytes, but the pickle says %llu",
            TNF_QUOTED(m.key), (unsigned long long)d->storage->size, (unsigned long long)whole);
    return TNF_OK;
}

/* ------------------------------------------------------------------ views */

/* Fails unless every element is inside the storage. */
static tnf_status check_view(const context *x, const pt_dense *d)
{
    uint64_t last = d->offset, elements, bytes;
    if (!tnf_shape_elements(&elements, d->shape, d->rank) ||
        !tnf_ckd_mul(&bytes, elements, d->type->width) || bytes > INT64_MAX)
        return bad_tensor(x, "its shape has more elements than can be counted");
    if (elements == 0 || d->type->packed)
        return TNF_OK;
    for (uint32_t i = 0; i < d->rank; i++) {
        uint64_t step;
        if (!tnf_ckd_mul(&step, d->shape[i] - 1, d->stride[i]) || !tnf_ckd_add(&last, last, step))
            return bad_tensor(x, "its strides exceed 2^64");
    }
    if (!tnf_ckd_add(&last, last, 1) || !tnf_ckd_mul(&last, last, d->type->width) ||
        ((d->storage || x->f->blind) && last > d->limit))
        return bad_tensor(x, "it ends beyond its storage");
    return TNF_OK;
}

static tnf_status read_view_args(context *x, pt_dense *d, const tnf_pickle_node *args)
{
    uint32_t rank;
    tnf_status found = find_storage(x, d, tuple_item(args, 0));
    if (found != TNF_OK && found != TNF_EUNSUPPORTED)
        return found;
    if (!as_uint(tuple_item(args, 1), &d->offset))
        return bad_tensor(x, "its offset is not a number");
    TNF_TRY(read_dims(x, tuple_item(args, 2), d->shape, &d->rank,
                      "its size is not a tuple of numbers"));
    TNF_TRY(read_dims(x, tuple_item(args, 3), d->stride, &rank,
                      "its strides are not a tuple of numbers from 0 up"));
    if (rank != d->rank)
        return bad_tensor(x, "the number of its strides is not the number of its dimensions");
    return found;
}

static void begin_dense(const context *x)
{
    pt_tensor *t = x->t;
    t->layout = "dense";
    t->roles[0] = "data";
    t->nparts = 1;
    t->parts[0].at = x->at;
    t->parts[0].node = (tnf_pickle_node *)(uintptr_t)x->node; /* the writer may change it */
}

static void read_bits(pt_dense *d, const tnf_pickle_node *metadata)
{
    d->conj = is_true(tnf_pickle_get(metadata, "conj"));
    d->neg = is_true(tnf_pickle_get(metadata, "neg"));
}

static void mark_meta(pt_tensor *t)
{
    const pt_dense *d = &t->parts[0];
    if (!d->storage && d->location && strcmp(d->location, "meta") == 0)
        t->kind = "meta";
}

/* _rebuild_tensor, _rebuild_tensor_v2 */
static tnf_status rebuild_v2(context *x, const tnf_pickle_node *args)
{
    pt_dense *d = &x->t->parts[0];
    begin_dense(x);
    TNF_TRY(read_view_args(x, d, args));
    x->t->requires_grad = is_true(tuple_item(args, 4));
    if (tuple_item(args, 6))
        read_bits(d, tuple_item(args, 6));
    mark_meta(x->t);
    return check_view(x, d);
}

static const pt_type *dtype_of(const tnf_pickle_node *node)
{
    if (!node || node->kind != TNF_PICKLE_GLOBAL)
        return NULL;
    const tnf_pickle_global *g = node->as.global;
    return tnf_str_is(g->module, "torch") ? tnf_pt_type_named(g->name) : NULL;
}

/* The type is an argument; the storage has untyped bytes. */
static tnf_status rebuild_v3(context *x, const tnf_pickle_node *args)
{
    pt_dense *d = &x->t->parts[0];
    begin_dense(x);
    TNF_TRY(read_view_args(x, d, args));
    x->t->requires_grad = is_true(tuple_item(args, 4));
    d->type = dtype_of(tuple_item(args, 6));
    if (!d->type)
        return unknown_tensor(x, "its type is not known");
    if (tuple_item(args, 7))
        read_bits(d, tuple_item(args, 7));
    mark_meta(x->t);
    return check_view(x, d);
}

/* ---------------------------------------------------------------- wrappers */

static tnf_status resolve_node(context *x, const tnf_pickle_node *node);

static tnf_status rebuild_parameter(context *x, const tnf_pickle_node *args)
{
    const tnf_pickle_node *data = tuple_item(args, 0);
    if (!data)
        return bad_tensor(x, "a parameter has no data");
    TNF_TRY(resolve_node(x, data));
    x->t->parameter = true;
    x->t->requires_grad = !tuple_item(args, 1) || is_true(tuple_item(args, 1));
    x->t->state = tuple_item(args, 3);
    return TNF_OK;
}

/* _rebuild_device_tensor_from_…: the first argument is the tensor. */
static tnf_status rebuild_first(context *x, const tnf_pickle_node *args)
{
    const tnf_pickle_node *data = tuple_item(args, 0);
    if (!data)
        return bad_tensor(x, "a tensor of a device has no data");
    TNF_TRY(resolve_node(x, data));
    x->t->requires_grad = is_true(tuple_item(args, 3));
    return TNF_OK;
}

static rebuild_fn rebuilder_of(const tnf_pickle_node *global);

/* (function, type, arguments, state) */
static tnf_status rebuild_from_type(context *x, const tnf_pickle_node *args)
{
    const tnf_pickle_node *function = tuple_item(args, 0), *inner = tuple_item(args, 2);
    rebuild_fn rebuild = function ? rebuilder_of(function) : NULL;
    if (!rebuild || !inner || ++x->depth > 8)
        return unknown_tensor(x, "it is rebuilt by a function that is not known");
    TNF_TRY(rebuild(x, inner));
    x->t->state = tuple_item(args, 3);
    return TNF_OK;
}

/* Begins a meta tensor, which has no storage. */
static tnf_status begin_meta(context *x, const tnf_pickle_node *dtype, const tnf_pickle_node *size)
{
    pt_dense *d = &x->t->parts[0];
    begin_dense(x);
    x->t->kind = "meta";
    d->limit = UINT64_MAX;
    d->type = dtype_of(dtype);
    return d->type ? read_dims(x, size, d->shape, &d->rank, "its size is not a tuple of numbers")
                   : unknown_tensor(x, "its type is not known");
}

/* dtype, size, stride, requires_grad */
static tnf_status rebuild_meta(context *x, const tnf_pickle_node *args)
{
    pt_dense *d = &x->t->parts[0];
    uint32_t rank;
    TNF_TRY(begin_meta(x, tuple_item(args, 0), tuple_item(args, 1)));
    TNF_TRY(read_dims(x, tuple_item(args, 2), d->stride, &rank,
                      "its strides are not a tuple of numbers"));
    if (rank != d->rank)
        return bad_tensor(x, "the number of its strides is not the number of its dimensions");
    x->t->requires_grad = is_true(tuple_item(args, 3));
    return check_view(x, d);
}

/* cls, dtype, size, stride, offset, layout, device, requires_grad */
static tnf_status rebuild_wrapper(context *x, const tnf_pickle_node *args)
{
    pt_dense *d = &x->t->parts[0];
    TNF_TRY(begin_meta(x, tuple_item(args, 1), tuple_item(args, 2)));
    x->t->requires_grad = is_true(tuple_item(args, 7));
    memset(d->stride, 0, sizeof d->stride);
    return check_view(x, d);
}

/* ------------------------------------------------------- nested tensors */

/* Adds a nested tensor as a part. */
static tnf_status add_part(context *x, const char *role, const tnf_pickle_node *node)
{
    if (!node || x->depth >= PT_INNER)
        return bad_tensor(x, "a part of it is missing");
    pt_tensor *t = x->t, *inner = tnf_pt_spare(x->f, x->depth + 1);
    if (!inner)
        return tnf_arena_fail(x->f->r->scratch, "a tensor", x->e);
    *inner = (pt_tensor) { 0 };
    context y = { x->f, inner, x->at, x->depth + 1, x->e, node };
    TNF_TRY(resolve_node(&y, node));
    if (inner->nparts != 1 || strcmp(inner->layout, "dense") != 0 || inner->kind)
        return bad_tensor(x, "a part of it is not a plain tensor");
    t->roles[t->nparts] = role;
    t->parts[t->nparts++] = inner->parts[0];
    return TNF_OK;
}

/* (scheme, scale, zero_point) or (scheme, scales, zero_points, axis) */
static tnf_status read_quantizer(context *x, const tnf_pickle_node *q)
{
    pt_tensor *t = x->t;
    const tnf_pickle_node *scheme = tuple_item(q, 0), *scale = tuple_item(q, 1),
                          *zero = tuple_item(q, 2);
    if (!scheme || scheme->kind != TNF_PICKLE_GLOBAL || !scale || !zero)
        return unknown_tensor(x, "its quantizer is not known");
    tnf_str name = scheme->as.global->name;
    t->qscheme = tnf_arena_str(x->f->r->arena, name.p, name.n);
    if (!t->qscheme)
        return tnf_arena_fail(x->f->r->arena, "a tensor", x->e);
    if (strcmp(t->qscheme, "per_tensor_affine") == 0) {
        if (scale->kind != TNF_PICKLE_FLOAT || zero->kind != TNF_PICKLE_INT)
            return unknown_tensor(x, "its quantizer is not known");
        t->scale = scale->as.f;
        t->zero_point = zero->as.i;
        return TNF_OK;
    }
    const tnf_pickle_node *axis = tuple_item(q, 3);
    if (strncmp(t->qscheme, "per_channel_affine", 18) != 0 || !axis || axis->kind != TNF_PICKLE_INT)
        return unknown_tensor(x, "its quantizer is not known");
    t->axis = axis->as.i;
    t->layout = "torch.per_channel/1";
    TNF_TRY(add_part(x, "scales", scale));
    return add_part(x, "zero_points", zero);
}

static tnf_status rebuild_quantized(context *x, const tnf_pickle_node *args)
{
    pt_dense *d = &x->t->parts[0];
    begin_dense(x);
    TNF_TRY(read_view_args(x, d, args));
    TNF_TRY(check_view(x, d));
    x->t->requires_grad = is_true(tuple_item(args, 5));
    return read_quantizer(x, tuple_item(args, 4));
}

static tnf_status read_whole_shape(context *x, const tnf_pickle_node *size)
{
    uint64_t *shape = tnf_arena_array(x->f->r->scratch, PT_RANK, sizeof *shape);
    if (!shape)
        return tnf_arena_fail(x->f->r->scratch, "a tensor", x->e);
    x->t->shape = shape;
    return read_dims(x, size, shape, &x->t->rank, "its size is not a tuple of numbers");
}

/* Is the tensor without duplicate cells, and is each cell a single number? */
static bool is_plain_coo(const pt_tensor *t)
{
    return t->coalesced && t->parts[0].rank == 1 && t->parts[1].rank == 2 &&
           t->parts[1].shape[0] == t->rank && t->rank > 0;
}

/* (indices, values, size [, is_coalesced]) */
static tnf_status rebuild_coo(context *x, const tnf_pickle_node *data)
{
    pt_tensor *t = x->t;
    TNF_TRY(add_part(x, "values", tuple_item(data, 1)));
    TNF_TRY(add_part(x, "coords", tuple_item(data, 0)));
    TNF_TRY(read_whole_shape(x, tuple_item(data, 2)));
    t->coalesced = is_true(tuple_item(data, 3));
    t->says_coalesced = tuple_item(data, 3) != NULL;
    t->layout = is_plain_coo(t) ? "sparse_coo/1" : "torch.sparse_coo/1";
    return TNF_OK;
}

/* (crow, col, values, size) */
static tnf_status rebuild_compressed(context *x, const tnf_pickle_node *data, const char *layout)
{
    pt_tensor *t = x->t;
    TNF_TRY(add_part(x, "values", tuple_item(data, 2)));
    TNF_TRY(add_part(x, "indices", tuple_item(data, 1)));
    TNF_TRY(add_part(x, "indptr", tuple_item(data, 0)));
    TNF_TRY(read_whole_shape(x, tuple_item(data, 3)));
    bool plain = strcmp(layout, "torch.sparse_csr/1") == 0 && t->rank == 2 &&
                 t->parts[0].rank == 1 && t->parts[1].rank == 1 && t->parts[2].rank == 1 &&
                 t->parts[2].shape[0] == t->shape[0] + 1;
    t->layout = plain ? "sparse_csr/1" : layout;
    return TNF_OK;
}

/* (layout, data); the layout is torch.sparse_coo or _get_layout("torch.sparse_coo") */
static tnf_status rebuild_sparse(context *x, const tnf_pickle_node *args)
{
    static const char *const names[][2] = {
        { "torch.sparse_csr", "torch.sparse_csr/1" },
        { "torch.sparse_csc", "torch.sparse_csc/1" },
        { "torch.sparse_bsr", "torch.sparse_bsr/1" },
        { "torch.sparse_bsc", "torch.sparse_bsc/1" },
    };
    const tnf_pickle_node *layout = tuple_item(args, 0), *data = tuple_item(args, 1);
    if (layout && tnf_pickle_is_call(layout, "torch.serialization", "_get_layout"))
        layout = tnf_pickle_arg(layout, 0);
    if (!layout || !data)
        return bad_tensor(x, "a sparse tensor has no layout");
    if (tnf_pickle_is_text(layout, "torch.sparse_coo") ||
        tnf_pickle_is_global(layout, "torch", "sparse_coo"))
        return rebuild_coo(x, data);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tnf_pickle_is_text(layout, names[i][0]) ||
            tnf_pickle_is_global(layout, "torch", names[i][0] + sizeof "torch." - 1))
            return rebuild_compressed(x, data, names[i][1]);
    return unknown_tensor(x, "its sparse layout is not known");
}

/* buffer, sizes, strides, offsets */
static tnf_status rebuild_nested(context *x, const tnf_pickle_node *args)
{
    TNF_TRY(add_part(x, "values", tuple_item(args, 0)));
    TNF_TRY(add_part(x, "sizes", tuple_item(args, 1)));
    TNF_TRY(add_part(x, "strides", tuple_item(args, 2)));
    TNF_TRY(add_part(x, "offsets", tuple_item(args, 3)));
    x->t->layout = "torch.nested/1";
    x->t->shape = x->t->parts[0].shape;
    x->t->rank = x->t->parts[0].rank;
    return TNF_OK;
}

/* ------------------------------------------------------------------ table */

static const struct rebuilder {
    const char *module, *name;
    rebuild_fn run;
} rebuilders[] = {
    { "torch._utils", "_rebuild_tensor_v2", rebuild_v2 },
    { "torch._utils", "_rebuild_tensor", rebuild_v2 },
    { "torch._utils", "_rebuild_tensor_v3", rebuild_v3 },
    { "torch._utils", "_rebuild_parameter", rebuild_parameter },
    { "torch._utils", "_rebuild_parameter_with_state", rebuild_parameter },
    { "torch._tensor", "_rebuild_from_type_v2", rebuild_from_type },
    { "torch._tensor", "_rebuild_from_type", rebuild_from_type },
    { "torch.tensor", "_rebuild_from_type", rebuild_from_type },
    { "torch._utils", "_rebuild_qtensor", rebuild_quantized },
    { "torch._utils", "_rebuild_sparse_tensor", rebuild_sparse },
    { "torch._utils", "_rebuild_sparse_csr_tensor", rebuild_sparse },
    { "torch._utils", "_rebuild_nested_tensor", rebuild_nested },
    { "torch._utils", "_rebuild_meta_tensor_no_storage", rebuild_meta },
    { "torch._utils", "_rebuild_wrapper_subclass", rebuild_wrapper },
    { "torch._utils", "_rebuild_device_tensor_from_cpu_tensor", rebuild_first },
    { "torch._utils", "_rebuild_device_tensor_from_numpy", rebuild_first },
    { "torch._utils", "_rebuild_xla_tensor", rebuild_first },
};

static rebuild_fn rebuilder_of(const tnf_pickle_node *global)
{
    for (size_t i = 0; i < sizeof rebuilders / sizeof *rebuilders; i++)
        if (tnf_pickle_is_global(global, rebuilders[i].module, rebuilders[i].name))
            return rebuilders[i].run;
    return NULL;
}

bool tnf_pt_is_rebuilt(const tnf_pickle_node *global)
{
    return rebuilder_of(global) != NULL;
}

/* Parameter, Variable and Tensor of torch up to 0.3: an object with a state. */
static bool is_old_tensor(const tnf_pickle_node *node)
{
    const tnf_pickle_call *call = node->as.call;
    return (tnf_pickle_is_call(node, "torch.nn.parameter", "Parameter") ||
            tnf_pickle_is_call(node, "torch.autograd.variable", "Variable") ||
            tnf_pickle_is_call(node, "torch", "Tensor")) &&
           ((call->state && call->state->kind == TNF_PICKLE_TUPLE && call->state->n >= 1) ||
            (call->args->kind == TNF_PICKLE_TUPLE && call->args->n >= 1 &&
             tnf_pt_is_tensor(call->args->as.items[0])));
}

static tnf_status resolve_old(context *x, const tnf_pickle_node *node)
{
    const tnf_pickle_call *call = node->as.call;
    bool parameter = tnf_pickle_is_global(call->callee, "torch.nn.parameter", "Parameter");
    const tnf_pickle_node *state = call->state ? call->state : call->args;
    if (++x->depth > MOST_NESTED)
        return bad_tensor(x, TOO_NESTED);
    if (state->as.items[0] && tnf_pt_is_storage(state->as.items[0]))
        TNF_TRY(rebuild_v2(x, state));
    else
        TNF_TRY(rebuild_first(x, state));
    x->t->parameter = parameter;
    x->t->requires_grad = parameter;
    return TNF_OK;
}

bool tnf_pt_is_tensor(const tnf_pickle_node *node)
{
    if (node->kind == TNF_PICKLE_PERSISTENT)
        return tnf_pt_is_storage(node);
    if (node->kind != TNF_PICKLE_CALL)
        return false;
    return rebuilder_of(node->as.call->callee) || is_old_tensor(node) || tnf_pt_is_array(node);
}

/* A separate storage becomes a tensor of one dimension. */
static tnf_status resolve_storage(context *x, const tnf_pickle_node *node)
{
    pt_dense *d = &x->t->parts[0];
    begin_dense(x);
    x->t->kind = "storage";
    TNF_TRY(find_storage(x, d, node));
    d->rank = 1;
    d->shape[0] = d->limit / d->type->width;
    d->stride[0] = 1;
    return check_view(x, d);
}

static tnf_status resolve_node(context *x, const tnf_pickle_node *node)
{
    x->at = x->f->base + node->at;
    if (node->kind == TNF_PICKLE_PERSISTENT)
        return resolve_storage(x, node);
    if (node->kind != TNF_PICKLE_CALL)
        return bad_tensor(x, "there is no tensor in its place");
    if (++x->depth > MOST_NESTED)
        return bad_tensor(x, TOO_NESTED);
    rebuild_fn rebuild = rebuilder_of(node->as.call->callee);
    if (rebuild)
        return rebuild(x, node->as.call->args);
    if (tnf_pt_is_array(node))
        return tnf_pt_array(x->t, x->f, node, x->e);
    return is_old_tensor(node) ? resolve_old(x, node)
                               : bad_tensor(x, "there is no tensor in its place");
}

pt_tensor *tnf_pt_spare(pt_file *f, uint32_t depth)
{
    if (!f->spare[depth])
        f->spare[depth] = tnf_arena_alloc(f->r->scratch, sizeof *f->spare[depth]);
    return f->spare[depth];
}

tnf_status tnf_pt_resolve(pt_tensor *out, pt_file *f, const tnf_pickle_node *node, tnf_error *e)
{
    context x = { f, out, f->base + node->at, 0, e, node };
    *out = (pt_tensor) { 0 };
    TNF_TRY(resolve_node(&x, node));
    if (!out->shape) {
        out->shape = out->parts[0].shape;
        out->rank = out->parts[0].rank;
    }
    return TNF_OK;
}
