/* SPDX-License-Identifier: MIT */
/* Shared by the files of primitiv/: see <tenfold/primitiv.h>. */
#ifndef TNF_EXT_PRIMITIV_NAMES_H
#define TNF_EXT_PRIMITIV_NAMES_H

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "formats/primitiv/marks.h"
#include "formats/primitiv/path.h"
#include <tenfold/primitiv.h>

/* Appends the name of a parameter, or "NAME@KEY" of its statistic. */
void tnf_prim_name_put(tnf_buf *name, const tnf_str *path, size_t n, const tnf_str *statistic);
/* Fails with TNF_EINVAL if a name of the path, or the statistic, is NULL but not empty. */
tnf_status tnf_prim_need_path(const tnf_str *path, size_t n, const tnf_str *statistic,
                              tnf_error *e);
/* Is it a Tensor or Parameter file, whose only tensor has no path? */
bool tnf_prim_is_nameless(const tnf_file *file);
/* Removes dimensions of 1 at the end of a shape; fails with TNF_EINVAL if the shape is invalid. */
tnf_status tnf_prim_shape_checked(tnf_primitiv_shape *out, const tnf_primitiv_shape *shape,
                                  tnf_error *e);
/* A borrowed text value, or bytes if the text is not UTF-8. */
tnf_value tnf_prim_text(tnf_str text);

static inline bool prim_same(tnf_str a, tnf_str b)
{
    return tnf_str_compare(a, b) == 0;
}

#endif
