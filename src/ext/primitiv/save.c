/* SPDX-License-Identifier: MIT */
/* Files from the caller's memory and into it by one call: what bind.c, build.c and configs.c do,
 * with the file opened or made. */
#include "base/error.h"
#include "base/sized.h"

#include <tenfold/primitiv.h>

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

tnf_status tnf_primitiv_save(const char *path, const tnf_primitiv_binding *bindings, size_t n,
                             const tnf_save_options *options, tnf_error *e)
{
    tnf_builder *b;
    TNF_TRY(tnf_need_array(bindings, n, "bindings", e));
    TNF_TRY(tnf_builder_new(&b, NULL, e));
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < n && status == TNF_OK; i++)
        status = tnf_primitiv_add(b, bindings[i].path, bindings[i].n, bindings[i].statistic,
                                  &bindings[i].shape, bindings[i].data, e);
    if (status == TNF_OK)
        status = save_as_primitiv(b, path, options, e);
    tnf_builder_free(b);
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
