/* SPDX-License-Identifier: MIT */
/* Makes the call that rebuilds a tensor, as torch.save() writes it.
 *
 *   dense                _rebuild_tensor_v2(storage, 0, size, stride, False, OrderedDict())
 *   types without class  _rebuild_tensor_v3(…, torch.float8_e5m2)
 *   quantized            _rebuild_qtensor(storage, 0, size, stride, (scheme, scale, zero), …)
 *   sparse               _rebuild_sparse_tensor(_get_layout("torch.sparse_csr"),
 *                                               (indptr, indices, values, torch.Size(size)))
 *
 * A layout of several parts gives the shape of its tensor, but not the shapes of its parts. They
 * must follow from sizes and attributes; otherwise the tensor is written as its parts.
 */
#include "formats/pytorch/write.h"

#include <stdio.h>
#include <string.h>

/* The layouts for which torch has a call, and their parts in torch's order. */
typedef struct layout {
    const char *id, *torch; /* torch: name of sparse layouts */
    const char *roles[PT_PARTS];
} layout;

static const layout layouts[] = {
    { "sparse_coo/1", "torch.sparse_coo", { "coords", "values" } },
    { "torch.sparse_coo/1", "torch.sparse_coo", { "coords", "values" } },
    { "sparse_csr/1", "torch.sparse_csr", { "indptr", "indices", "values" } },
    { "torch.sparse_csr/1", "torch.sparse_csr", { "indptr", "indices", "values" } },
    { "torch.sparse_csc/1", "torch.sparse_csc", { "indptr", "indices", "values" } },
    { "torch.sparse_bsr/1", "torch.sparse_bsr", { "indptr", "indices", "values" } },
    { "torch.sparse_bsc/1", "torch.sparse_bsc", { "indptr", "indices", "values" } },
    { "torch.per_channel/1", NULL, { "data", "scales", "zero_points" } },
    { "torch.nested/1", NULL, { "values", "sizes", "strides", "offsets" } },
};

static const layout *layout_of(const tnf_object *t)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (strcmp(t->layout->id, layouts[i].id) == 0)
            return &layouts[i];
    return NULL;
}

/* ------------------------------------------------------------- attributes */

static bool attr_true(const tnf_object *t, const char *key)
{
    const tnf_value *v = tnf_value_get(t->attrs, key);
    return v && v->kind == TNF_BOOL && v->as.b;
}

static const char *attr_text(const tnf_object *t, const char *key)
{
    const tnf_value *v = tnf_value_get(t->attrs, key);
    return v && v->kind == TNF_STRING ? v->as.s : "";
}

bool tnf_pt_attr_int(const tnf_object *t, const char *key, int64_t *out)
{
    const tnf_value *v = tnf_value_get(t->attrs, key);
    if (!v || (v->kind != TNF_INT && (v->kind != TNF_UINT || v->as.u > INT64_MAX)))
        return false;
    *out = v->kind == TNF_INT ? v->as.i : (int64_t)v->as.u;
    return true;
}

/* ----------------------------------------------------------------- shapes */

static const pt_type *type_named(const char *name)
{
    return tnf_pt_type_named((tnf_str) { name, strlen(name) });
}

/* Indices are signed in torch. The bytes are the same. */
static const pt_type *signed_type(const tnf_type *type)
{
    return type == tnf_type_of(TNF_U64)   ? type_named("int64")
           : type == tnf_type_of(TNF_U32) ? type_named("int32")
                                          : tnf_pt_type_for(type);
}

static const pt_type *quantized_type(const tnf_type *type)
{
    return type == tnf_type_of(TNF_I8)    ? type_named("qint8")
           : type == tnf_type_of(TNF_U8)  ? type_named("quint8")
           : type == tnf_type_of(TNF_I32) ? type_named("qint32")
                                          : NULL;
}

static void set_rank_1(pt_view *v, uint64_t n)
{
    v->rank = 1;
    v->shape[0] = n;
}

static bool shape_channels(pt_view *v, const uint64_t *counts, const tnf_object *t)
{
    uint64_t elements;
    int64_t axis;
    const char *scheme = attr_text(t, "pytorch.qscheme");
    v[0].type = quantized_type(tnf_object_part(t, "data")->type);
    if ((strcmp(scheme, "per_channel_affine") != 0 &&
         strcmp(scheme, "per_channel_affine_float_qparams") != 0) ||
        !tnf_pt_attr_int(t, "pytorch.axis", &axis) || !v[0].type || t->rank > PT_RANK ||
        !tnf_shape_elements(&elements, t->shape, t->rank) || elements != counts[0])
        return false;
    v[0].rank = t->rank;
    memcpy(v[0].shape, t->shape, t->rank * sizeof *t->shape);
    set_rank_1(&v[1], counts[1]);
    set_rank_1(&v[2], counts[2]);
    return true;
}

static bool shape_nested(pt_view *v, const uint64_t *counts)
{
    uint64_t n = counts[3];
    if (!n || counts[1] % n || counts[2] != counts[1])
        return false;
    set_rank_1(&v[0], counts[0]);
    set_rank_1(&v[3], n);
    v[1].rank = v[2].rank = 2;
    v[1].shape[0] = v[2].shape[0] = n;
    v[1].shape[1] = v[2].shape[1] = counts[1] / n;
    return true;
}

/* Finds the shapes of the parts as tensors of torch, in the order of the layout. */
static bool find_shapes(pt_view *v, const layout *l, const tnf_object *t)
{
    uint64_t counts[PT_PARTS] = { 0 };
    memset(v, 0, PT_PARTS * sizeof *v);
    for (size_t i = 0; i < PT_PARTS && l->roles[i]; i++) {
        const tnf_part *part = tnf_object_part(t, l->roles[i]);
        bool index = strcmp(l->id, "torch.per_channel/1") != 0 &&
                     strcmp(l->roles[i], "values") != 0;
        v[i].type = !part ? NULL : index ? signed_type(part->type) : tnf_pt_type_for(part->type);
        if (!v[i].type || v[i].type->doubled || part->nbytes % v[i].type->width)
            return false;
        counts[i] = part->nbytes / v[i].type->width;
    }
    if (t->rank > PT_RANK || !v[0].type)
        return false;
    if (l->torch && strcmp(l->torch, "torch.sparse_coo") == 0)
        return tnf_pt_shape_coo(v, counts, t);
    if (l->torch)
        return tnf_pt_shape_compressed(v, counts, t, l->torch + strlen("torch.sparse_"));
    return strcmp(l->id, "torch.nested/1") == 0 ? shape_nested(v, counts)
                                                : shape_channels(v, counts, t);
}

bool tnf_pt_in_parts(const tnf_object *t)
{
    pt_view views[PT_PARTS];
    const layout *l = layout_of(t);
    return l && !find_shapes(views, l, t);
}

/* ------------------------------------------------------------------ views */

static tnf_pickle_node *dims_node(pt_out *o, const uint64_t *dims, uint32_t rank)
{
    tnf_pickle_node *items[PT_RANK + 1];
    for (uint32_t i = 0; i < rank; i++)
        items[i] = tnf_pt_new_int(o->a, dims[i]);
    return tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, items, rank);
}

static tnf_pickle_node *class_node(pt_out *o, const pt_type *type)
{
    for (size_t i = 0; i < sizeof o->classes / sizeof *o->classes; i++) {
        const char *name = type->storage ? type->storage : "UntypedStorage";
        if (!o->classes[i])
            o->classes[i] = tnf_pt_new_global(o->a, type->storage ? "torch" : "torch.storage",
                                              name);
        if (!o->classes[i])
            return NULL;
        if (tnf_str_is(o->classes[i]->as.global->name, name))
            return o->classes[i];
    }
    return NULL;
}

/* Makes a separate storage for the bytes of a part. */
static tnf_pickle_node *storage_node(pt_out *o, const tnf_object *t, const tnf_part *part,
                                     const pt_type *type)
{
    char key[48];
    uint32_t known;
    int n = snprintf(key, sizeof key, part == t->parts ? "=%zu" : "=%zu.%zu",
                     (size_t)(t - o->w->catalog->objects), (size_t)(part - t->parts));
    const char *copy = tnf_arena_str(o->a, key, (size_t)n);
    pt_emitted row = { .key = { copy, (size_t)n }, .part = part };
    uint64_t numel = part->nbytes / (type->storage ? type->width : 1);
    tnf_pickle_node *text = copy ? tnf_pt_new_text(o->a, copy, (size_t)n) : NULL;
    tnf_pickle_node *id = tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE,
                                          (tnf_pickle_node *[]) { o->storage, class_node(o, type),
                                                                  text, o->cpu,
                                                                  tnf_pt_new_int(o->a, numel) },
                                          5);
    if (!id || tnf_named_add(&o->parts_by_key, &row, &known, o->e) != TNF_OK)
        return NULL;
    return tnf_pt_new_list(o->a, TNF_PICKLE_PERSISTENT, &id, 1);
}

void tnf_pt_view_items(pt_out *o, const tnf_object *t, const tnf_part *part, const pt_view *v,
                       tnf_pickle_node *items[4])
{
    uint64_t stride[PT_RANK + 1], step = 1;
    for (uint32_t k = 0; k < v->rank; k++) {
        uint32_t i = v->columns ? k : v->rank - 1 - k;
        stride[i] = step;
        step *= v->shape[i] ? v->shape[i] : 1;
    }
    items[0] = storage_node(o, t, part, v->type);
    items[1] = tnf_pt_new_int(o->a, 0);
    items[2] = dims_node(o, v->shape, v->rank);
    items[3] = dims_node(o, stride, v->rank);
}

bool tnf_pt_view_of(pt_view *v, const tnf_object *t)
{
    *v = (pt_view) { .type = tnf_pt_type_for(t->parts[0].type),
                     .rank = t->rank,
                     .columns = t->order == TNF_ORDER_F };
    if (!v->type || t->rank > PT_RANK)
        return false;
    memcpy(v->shape, t->shape, t->rank * sizeof *v->shape);
    if (v->type->doubled && v->rank)
        v->shape[v->rank - 1] /= 2;
    return true;
}

/* ------------------------------------------------------------------ calls */

static tnf_pickle_node *hooks_node(pt_out *o)
{
    return tnf_pt_new_call(o->a, o->ordered, o->empty);
}

static tnf_pickle_node *bool_node(pt_out *o, bool yes)
{
    return yes ? tnf_pt_new_plain(o->a, TNF_PICKLE_BOOL, 1) : o->no;
}

static tnf_pickle_node *utils_node(pt_out *o, const char *name)
{
    return tnf_pt_new_global(o->a, "torch._utils", name);
}

/* _rebuild_tensor_v2(…), or v3 for types without a class. */
static tnf_pickle_node *tensor_node(pt_out *o, const tnf_object *t, const tnf_part *part,
                                    const pt_view *v, bool grad)
{
    bool v3 = !v->type->storage;
    tnf_pickle_node *items[7] = { NULL };
    tnf_pt_view_items(o, t, part, v, items);
    items[4] = bool_node(o, grad);
    items[5] = hooks_node(o);
    if (v3)
        items[6] = tnf_pt_new_global(o->a, "torch", v->type->name);
    tnf_pickle_node *args = tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, items, v3 ? 7 : 6);
    return tnf_pt_new_call(o->a, v3 ? o->rebuild3 : o->rebuild2, args);
}

static tnf_pickle_node *quantized_node(pt_out *o, const tnf_object *t, const tnf_part *part,
                                       const pt_view *v, tnf_pickle_node *scheme)
{
    tnf_pickle_node *items[7] = { NULL };
    tnf_pt_view_items(o, t, part, v, items);
    items[4] = scheme;
    items[5] = bool_node(o, attr_true(t, "pytorch.requires_grad"));
    items[6] = hooks_node(o);
    return tnf_pt_new_call(o->a, utils_node(o, "_rebuild_qtensor"),
                           tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, items, 7));
}

/* Do the attributes of an integer tensor say that it is quantized with one scale? */
bool tnf_pt_is_quantized(const tnf_object *t)
{
    int64_t zero;
    const tnf_value *scale = tnf_value_get(t->attrs, "pytorch.scale");
    return strcmp(attr_text(t, "pytorch.qscheme"), "per_tensor_affine") == 0 && scale &&
           scale->kind == TNF_FLOAT && tnf_pt_attr_int(t, "pytorch.zero_point", &zero) &&
           quantized_type(t->parts[0].type) != NULL;
}

static tnf_pickle_node *dense_node(pt_out *o, const tnf_object *t, bool grad)
{
    pt_view v;
    int64_t zero = 0;
    if (!tnf_pt_view_of(&v, t))
        return NULL;
    if (!tnf_pt_is_quantized(t))
        return tensor_node(o, t, &t->parts[0], &v, grad);
    (void)tnf_pt_attr_int(t, "pytorch.zero_point", &zero);
    tnf_pickle_node *scale = tnf_pt_new_plain(o->a, TNF_PICKLE_FLOAT, 0);
    if (!scale)
        return NULL;
    scale->as.f = tnf_value_get(t->attrs, "pytorch.scale")->as.f64;
    v.type = quantized_type(t->parts[0].type);
    tnf_pickle_node *scheme[] = { tnf_pt_new_global(o->a, "torch", "per_tensor_affine"), scale,
                                  tnf_pt_new_plain(o->a, TNF_PICKLE_INT, zero) };
    return quantized_node(o, t, &t->parts[0], &v,
                          tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, scheme, 3));
}

static tnf_pickle_node *sparse_node(pt_out *o, const tnf_object *t, const layout *l,
                                    tnf_pickle_node *const *parts, size_t n)
{
    tnf_pickle_node *items[PT_PARTS + 2];
    bool says = tnf_value_get(t->attrs, "pytorch.coalesced") != NULL; /* old files do not say it */
    tnf_pickle_node *text = tnf_pt_new_text(o->a, l->torch, strlen(l->torch));
    tnf_pickle_node *name = tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, &text, 1);
    tnf_pickle_node *size = dims_node(o, t->shape, t->rank);
    size = tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, &size, 1);
    memcpy(items, parts, n * sizeof *items);
    items[n++] = tnf_pt_new_call(o->a, tnf_pt_new_global(o->a, "torch", "Size"), size);
    if (says && strcmp(l->torch, "torch.sparse_coo") == 0)
        items[n++] = bool_node(o, attr_true(t, "pytorch.coalesced"));
    tnf_pickle_node *both[] = {
        tnf_pt_new_call(o->a, tnf_pt_new_global(o->a, "torch.serialization", "_get_layout"), name),
        tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, items, n)
    };
    return tnf_pt_new_call(o->a, utils_node(o, "_rebuild_sparse_tensor"),
                           tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, both, 2));
}

static tnf_pickle_node *channels_node(pt_out *o, const tnf_object *t, const pt_view *v,
                                      tnf_pickle_node *const *parts)
{
    int64_t axis = 0;
    (void)tnf_pt_attr_int(t, "pytorch.axis", &axis);
    tnf_pickle_node *scheme[] = { tnf_pt_new_global(o->a, "torch", attr_text(t, "pytorch.qscheme")),
                                  parts[1], parts[2],
                                  tnf_pt_new_plain(o->a, TNF_PICKLE_INT, axis) };
    return quantized_node(o, t, tnf_object_part(t, "data"), v,
                          tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, scheme, 4));
}

static tnf_pickle_node *layout_node(pt_out *o, const tnf_object *t, const layout *l)
{
    pt_view *v = tnf_arena_array(o->a, PT_PARTS, sizeof *v);
    tnf_pickle_node *parts[PT_PARTS] = { NULL };
    size_t n = 0;
    if (!v || !find_shapes(v, l, t))
        return NULL;
    bool channels = strcmp(l->id, "torch.per_channel/1") == 0;
    for (; n < PT_PARTS && l->roles[n]; n++)
        if (n || !channels)
            parts[n] = tensor_node(o, t, tnf_object_part(t, l->roles[n]), &v[n], false);
    if (channels)
        return channels_node(o, t, v, parts);
    if (l->torch)
        return sparse_node(o, t, l, parts, n);
    return tnf_pt_new_call(o->a, utils_node(o, "_rebuild_nested_tensor"),
                           tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, parts, n));
}

tnf_pickle_node *tnf_pt_object_node(pt_out *o, const tnf_object *t)
{
    bool parameter = attr_true(t, "pytorch.parameter");
    bool grad = attr_true(t, "pytorch.requires_grad");
    const layout *l = layout_of(t);
    tnf_pickle_node *call = l ? layout_node(o, t, l) : dense_node(o, t, grad && !parameter);
    if (!parameter || !call)
        return call;
    tnf_pickle_node *args = tnf_pt_new_list(
        o->a, TNF_PICKLE_TUPLE, (tnf_pickle_node *[]) { call, bool_node(o, grad), hooks_node(o) },
        3);
    return tnf_pt_new_call(o->a, utils_node(o, "_rebuild_parameter"), args);
}

tnf_status tnf_pt_begin_nodes(pt_out *o)
{
    o->storage = tnf_pt_new_text(o->a, "storage", 7);
    o->cpu = tnf_pt_new_text(o->a, "cpu", 3);
    o->no = tnf_pt_new_plain(o->a, TNF_PICKLE_BOOL, 0);
    o->rebuild2 = utils_node(o, "_rebuild_tensor_v2");
    o->rebuild3 = utils_node(o, "_rebuild_tensor_v3");
    o->ordered = tnf_pt_new_global(o->a, "collections", "OrderedDict");
    o->empty = tnf_pt_new_list(o->a, TNF_PICKLE_TUPLE, NULL, 0);
    return o->storage && o->cpu && o->no && o->rebuild2 && o->rebuild3 && o->ordered && o->empty
               ? TNF_OK
               : tnf_arena_fail(o->a, "a pickle", o->e);
}
