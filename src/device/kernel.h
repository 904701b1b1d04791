/* SPDX-License-Identifier: MIT */
/* Kernels of the device: numbers of one kind as another's. */
#ifndef TNF_DEVICE_KERNEL_H
#define TNF_DEVICE_KERNEL_H

#include "device/plan.h"

typedef struct tnf_kernel {
    const char *name;         /* in one of *.cl */
    const char *layout;       /* of the tensors that it takes */
    const char *type;         /* of their elements; NULL: the layout says all */
    uint16_t elements, bytes; /* of a unit: what it can begin and end with */
    bool has_infinity;        /* among the elements */
} tnf_kernel;

/* Is there a kernel for what is asked? Then the want is made for it. device may be NULL. */
bool tnf_kernel_want(tnf_want *w, tnf_device *device, const tnf_device_request *r);

/* scales.c: what the want's kernel needs besides the elements goes onto the device, if there is
 * any. false: the host is to compute; what w->scales has is still the want's. */
bool tnf_scales_take(tnf_want *w, tnf_device *device, const tnf_device_request *r);

/* Computes on the queue what n bytes of a want give that lie at `src` of the device: they are those
 * from byte `at` of the want on, a multiple of its unit. `dst` is where its result begins. The
 * device is entered. */
tnf_status tnf_kernel_run(const tnf_want *w, tnf_device *d, tnf_queue *q, void *dst, cu_ptr src,
                          uint64_t at, uint64_t n, tnf_error *e);

/* Is the kernel below on this device? Not on the host. */
bool tnf_kernel_ready(tnf_device *d);
/* Puts the n tensors of a block at src in their places: casts.cl has the table's rows. */
tnf_status tnf_kernel_scatter(tnf_device *d, tnf_queue *q, cu_ptr src, cu_ptr table, uint64_t n,
                              uint64_t chunks, tnf_error *e);

#endif
