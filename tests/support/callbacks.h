/* SPDX-License-Identifier: MIT */
/* Callbacks that accept everything. */
#ifndef TNF_SUPPORT_CALLBACKS_H
#define TNF_SUPPORT_CALLBACKS_H

#include <tenfold/points.h>

static inline tnf_status take_point(void *ctx, const tnf_point *point, tnf_error *e)
{
    (void)ctx, (void)point, (void)e;
    return TNF_OK;
}

#endif
