/* SPDX-License-Identifier: MIT */
/* Builds models, parameters and shapes, so that saving them gives the same bytes as primitiv. */
#include "ext/primitiv/names.h"

#include "base/ckd.h"

static tnf_value u32_value(uint32_t v)
{
    return (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U32, .as.u = v };
}

/* A tensor with all data for a builder. */
struct tensor {
    tnf_object object;
    tnf_part part;
    tnf_value attrs;
    tnf_member members[2];
    uint64_t shape[PRIM_MAX_DIMS + 1];
};

static void add_mark(struct tensor *t, tnf_str key, tnf_value value)
{
    t->members[t->attrs.n++] = (tnf_member) { key, value };
    t->attrs.kind = TNF_MAP;
    t->attrs.as.members = t->members;
    t->object.attrs = &t->attrs;
}

static tnf_status describe_tensor(struct tensor *t, const tnf_primitiv_shape *asked,
                                  const float *data, tnf_error *e)
{
    tnf_primitiv_shape shape;
    TNF_TRY(tnf_prim_shape_checked(&shape, asked, e));
    uint32_t rank = shape.n;
    uint64_t bytes = sizeof(float);
    for (uint32_t i = 0; i < rank; i++)
        t->shape[i] = shape.dims[i];
    if (shape.batch > 1) {
        t->shape[rank++] = shape.batch;
        add_mark(t, (tnf_str)TNF_STR("primitiv.batch"), u32_value(shape.batch));
    }
    for (uint32_t i = 0; i < rank; i++)
        if (!tnf_ckd_mul(&bytes, bytes, t->shape[i]))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a tensor has more than 2^64 bytes");
    t->part = (tnf_part) { .role = "data", .type = tnf_type_of(TNF_F32), .payload = TNF_MEMORY };
    t->part.memory = data;
    t->part.stored = t->part.nbytes = bytes;
    t->object.shape = t->shape;
    t->object.rank = rank;
    t->object.layout = tnf_layout_by_id("dense");
    t->object.parts = &t->part;
    t->object.nparts = 1;
    t->object.order = rank > 1 ? TNF_ORDER_F : TNF_ORDER_C;
    return TNF_OK;
}

static tnf_status add_named(tnf_builder *b, struct tensor *t, const tnf_str *path, size_t n,
                            const tnf_str *statistic, tnf_error *e)
{
    const tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_buf name;
    tnf_buf_init(&name, &alloc, SIZE_MAX);
    tnf_prim_name_put(&name, path, n, statistic);
    tnf_status status = tnf_buf_status(&name, "the name", e);
    t->object.name = (tnf_str) { name.n ? (const char *)name.p : "", name.n };
    if (statistic)
        add_mark(t, (tnf_str)TNF_STR("primitiv.stat"), tnf_prim_text(*statistic));
    if (status == TNF_OK)
        status = tnf_builder_add_object(b, &t->object, NULL, e);
    tnf_buf_free(&name);
    return status;
}

tnf_status tnf_primitiv_add(tnf_builder *b, const tnf_str *path, size_t n, const tnf_str *statistic,
                            const tnf_primitiv_shape *shape, const float *data, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_prim_need_path(path, n, statistic, e));
    TNF_TRY(tnf_need(shape, "shape", e));
    TNF_TRY(tnf_need(data, "data", e));
    const tnf_value type = tnf_value_string("parameter");
    struct tensor t = { .attrs.n = 0 };
    TNF_TRY(describe_tensor(&t, shape, data, e));
    TNF_TRY(add_named(b, &t, path, n, statistic, e));
    return n == 0 ? tnf_builder_set(b, NULL, "primitiv.type", &type, e) : TNF_OK;
}

tnf_status tnf_primitiv_set_shape(tnf_builder *b, const tnf_primitiv_shape *asked, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(asked, "shape", e));
    const tnf_value type = tnf_value_string("shape");
    tnf_primitiv_shape shape;
    tnf_value dims[PRIM_MAX_DIMS], all = { .kind = TNF_ARRAY, .as.items = dims };
    TNF_TRY(tnf_prim_shape_checked(&shape, asked, e));
    for (all.n = 0; all.n < shape.n; all.n++)
        dims[all.n] = u32_value(shape.dims[all.n]);
    const tnf_value batch = u32_value(shape.batch);
    TNF_TRY(tnf_builder_set(b, NULL, "primitiv.dims", &all, e));
    TNF_TRY(tnf_builder_set(b, NULL, "primitiv.batch", &batch, e));
    return tnf_builder_set(b, NULL, "primitiv.type", &type, e);
}
