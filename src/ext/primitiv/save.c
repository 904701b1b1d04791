/* SPDX-License-Identifier: MIT */
/* Files from the caller's memory and into it by one call: what bind.c, build.c and configs.c do,
 * with the file opened or made. */
#include "base/arena.h"
#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/sized.h"
#include "ext/primitiv/names.h"

#include <string.h>

tnf_status tnf_primitiv_load(tnf_primitiv_binding *bindings, size_t n, const char *path,
                             const tnf_primitiv_bind_options *options, tnf_error *e)
{
    tnf_file *file;
    TNF_TRY(tnf_open(&file, path, NULL, e));
    tnf_status status = tnf_primitiv_bind(file, bindings, n, options, e);
    tnf_close(file);
    return status;
}

static tnf_status save_as_primitiv(const tnf_builder *b, const char *path,
                                   const tnf_save_options *options, tnf_error *e)
{
    tnf_save_options how;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_save_options, &how, options, e));
    if (!how.format)
        how.format = "primitiv";
    return tnf_save(b, path, &how, e);
}

/* The floats of a binding in little-endian order: themselves, or a copy in the arena. */
static tnf_status little_floats(const float **out, const tnf_primitiv_binding *binding,
                                tnf_arena *arena, tnf_error *e)
{
    tnf_primitiv_shape shape;
    uint64_t count;
    *out = binding->data;
    if (!TNF_BIG_ENDIAN_HOST || !binding->data)
        return TNF_OK;
    TNF_TRY(tnf_prim_shape_checked(&shape, &binding->shape, e));
    count = shape.batch;
    for (uint32_t i = 0; i < shape.n; i++)
        if (!tnf_ckd_mul(&count, count, shape.dims[i]))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a tensor has more than 2^64 bytes");
    uint8_t *bytes = tnf_arena_array(arena, count, sizeof(float));
    if (!bytes)
        return tnf_arena_fail(arena, "a parameter", e);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, binding->data + i, sizeof bits);
        tnf_put_le32(bytes + i * sizeof bits, bits);
    }
    *out = (const float *)(const void *)bytes;
    return TNF_OK;
}

static tnf_status add_binding(tnf_builder *b, const tnf_primitiv_binding *binding, tnf_arena *arena,
                              tnf_error *e)
{
    const float *data;
    TNF_TRY(little_floats(&data, binding, arena, e));
    return tnf_primitiv_add(b, binding->path, binding->n, binding->statistic, &binding->shape, data,
                            e);
}

tnf_status tnf_primitiv_save(const char *path, const tnf_primitiv_binding *bindings, size_t n,
                             const tnf_save_options *options, tnf_error *e)
{
    tnf_builder *b;
    tnf_arena arena;
    const tnf_allocator alloc = tnf_allocator_or_default(NULL);
    TNF_TRY(tnf_need_array(bindings, n, "bindings", e));
    TNF_TRY(tnf_builder_new(&b, NULL, e));
    tnf_arena_init(&arena, &alloc, UINT64_MAX);
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < n && status == TNF_OK; i++)
        status = add_binding(b, &bindings[i], &arena, e);
    if (status == TNF_OK)
        status = save_as_primitiv(b, path, options, e);
    tnf_builder_free(b);
    tnf_arena_free(&arena);
    return status;
}

tnf_status tnf_primitiv_save_optimizer(const char *path, const tnf_primitiv_config *uints,
                                       size_t nuints, const tnf_primitiv_config *floats,
                                       size_t nfloats, const tnf_save_options *options,
                                       tnf_error *e)
{
    tnf_builder *b;
    TNF_TRY(tnf_builder_new(&b, NULL, e));
    tnf_status status = tnf_primitiv_set_optimizer(b, uints, nuints, floats, nfloats, e);
    if (status == TNF_OK)
        status = save_as_primitiv(b, path, options, e);
    tnf_builder_free(b);
    return status;
}
