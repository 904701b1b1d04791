/* SPDX-License-Identifier: MIT */
/* Kernels of the device, which convert numbers of one type to another. */
#ifndef TNF_DEVICE_KERNEL_H
#define TNF_DEVICE_KERNEL_H

#include "device/plan.h"

typedef struct tnf_kernel {
    const char *name;         /* in one of *.cl */
    const char *layout;       /* of the input tensors */
    const char *type;         /* of their elements; NULL: the layout determines it */
    uint16_t elements, bytes; /* of a unit, the smallest range that it can convert */
    bool has_infinity;        /* the type has infinities */
} tnf_kernel;

/* Is there a kernel for the request? If so, prepares the tensor for it. `device` may be NULL. */
bool tnf_kernel_find(tnf_load_tensor *w, tnf_device *device, const tnf_device_request *r);

/* scales.c: copies the scales that the tensor's kernel needs to the device, if there are any.
 * Returns false if the host must compute; the tensor still owns w->scales. */
bool tnf_scales_take(tnf_load_tensor *w, tnf_device *device, const tnf_device_request *r);

/* Converts n bytes of a tensor on the queue. They are at `src` of the device, and are the bytes
 * from `at` on of the tensor, a multiple of its unit. `dst` is the beginning of the tensor's
 * result. The caller has entered the device. */
tnf_status tnf_kernel_run(const tnf_load_tensor *w, tnf_device *d, tnf_queue *q, void *dst,
                          cu_ptr src, uint64_t at, uint64_t n, tnf_error *e);

/* Does this device have the kernel below? The host does not. */
bool tnf_kernel_ready(tnf_device *d);
/* Copies the n tensors of a block at src to their places. casts.cl describes the table. */
tnf_status tnf_kernel_scatter(tnf_device *d, tnf_queue *q, cu_ptr src, cu_ptr table, uint64_t n,
                              uint64_t chunks, tnf_error *e);

#endif
