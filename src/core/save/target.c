/* SPDX-License-Identifier: MIT */
/* Finds the format that would be written, before anything is written. */
#include "core/save/save.h"

tnf_status tnf_format_for_builder(tnf_format_info *out, const tnf_builder *builder,
                                  const char *path, const tnf_save_options *options,
                                  tnf_error *error)
{
    TNF_TRY(tnf_need(builder, "builder", error));
    tnf_save_options how;
    const tnf_format *format;
    TNF_TRY(tnf_save_take(&how, options, error));
    TNF_TRY(tnf_save_format(&format, builder, path, &how, error));
    return tnf_format_describe(out, format, error);
}
