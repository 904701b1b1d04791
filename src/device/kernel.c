/* SPDX-License-Identifier: MIT */
#include "device/kernel.h"

bool tnf_kernel_want(tnf_want *w, tnf_device *device, const tnf_device_request *r)
{
    (void)w;
    (void)device;
    (void)r;
    return false;
}

tnf_status tnf_kernel_run(const tnf_want *w, tnf_device *d, tnf_queue *q, void *dst, cu_ptr src,
                          uint64_t at, uint64_t n, tnf_error *e)
{
    (void)w;
    (void)d;
    (void)q;
    (void)dst;
    (void)src;
    (void)at;
    (void)n;
    return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "there is no kernel");
}
