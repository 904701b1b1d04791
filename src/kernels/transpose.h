/* SPDX-License-Identifier: MIT */
#ifndef TNF_KERNELS_TRANSPOSE_H
#define TNF_KERNELS_TRANSPOSE_H

#include <stdbool.h>
#include <stddef.h>

/* dst[c * dst_stride + r] = src[r * src_stride + c] for a matrix of rows x cols elements of `width`
 * bytes; strides count elements. Returns false, and does nothing, unless width is 1, 2, 4, 8 or
 * 16. */
bool tnf_transpose(void *dst, size_t dst_stride, const void *src, size_t src_stride, size_t rows,
                   size_t cols, size_t width);

#endif
