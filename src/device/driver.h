/* SPDX-License-Identifier: MIT */
/* Declares the few functions of the CUDA driver that are used, so the build needs no toolkit. The
 * driver's exported names are stable. If a function was changed, all drivers of the last ten years
 * have the name with _v2. */
#ifndef TNF_DEVICE_DRIVER_H
#define TNF_DEVICE_DRIVER_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef int cu_result; /* 0: success */
typedef int cu_device;
typedef unsigned long long cu_ptr; /* an address of the device */
typedef struct cu_context_ *cu_context;
typedef struct cu_stream_ *cu_stream;
typedef struct cu_event_ *cu_event;
typedef struct cu_module_ *cu_module;
typedef struct cu_function_ *cu_function;

typedef struct cu_uuid {
    unsigned char bytes[16];
} cu_uuid;

/* A copy of a rectangle: Height rows of WidthInBytes. */
typedef struct cu_copy_2d {
    size_t src_x, src_y;
    unsigned src_kind;
    const void *src_host;
    cu_ptr src_device;
    void *src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    unsigned dst_kind;
    void *dst_host;
    cu_ptr dst_device;
    void *dst_array;
    size_t dst_pitch;
    size_t width, height;
} cu_copy_2d;

enum {
    CU_KIND_HOST = 1,
    CU_KIND_DEVICE = 2,
    CU_OUT_OF_MEMORY = 2,
    CU_REGISTER_PORTABLE = 1,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_ATTRIBUTE_PCI_BUS = 33,
    CU_ATTRIBUTE_PCI_DEVICE = 34,
    CU_ATTRIBUTE_PCI_DOMAIN = 50
};

typedef struct tnf_cuda {
    cu_result (*init)(unsigned flags);
    cu_result (*error_string)(cu_result result, const char **text);
    cu_result (*device_count)(int *count);
    cu_result (*device_get)(cu_device *device, int ordinal);
    cu_result (*device_name)(char *name, int size, cu_device device);
    cu_result (*device_uuid)(cu_uuid *uuid, cu_device device);
    cu_result (*device_attribute)(int *value, int attribute, cu_device device);
    cu_result (*context_retain)(cu_context *context, cu_device device);
    cu_result (*context_release)(cu_device device);
    cu_result (*context_push)(cu_context context);
    cu_result (*context_pop)(cu_context *context);
    cu_result (*memory_info)(size_t *free, size_t *total);
    cu_result (*memory_alloc)(cu_ptr *p, size_t n);
    cu_result (*memory_free)(cu_ptr p);
    cu_result (*memory_range)(cu_ptr *base, size_t *n, cu_ptr p);
    cu_result (*host_register)(void *p, size_t n, unsigned flags);
    cu_result (*host_unregister)(void *p);
    cu_result (*copy_to)(cu_ptr dst, const void *src, size_t n, cu_stream stream);
    cu_result (*copy_2d)(const cu_copy_2d *copy, cu_stream stream);
    cu_result (*copy_now)(cu_ptr dst, const void *src, size_t n);
    cu_result (*copy_back)(void *dst, cu_ptr src, size_t n);
    cu_result (*stream_new)(cu_stream *stream, unsigned flags);
    cu_result (*stream_free)(cu_stream stream);
    cu_result (*stream_sync)(cu_stream stream);
    cu_result (*stream_wait)(cu_stream stream, cu_event event, unsigned flags);
    cu_result (*event_new)(cu_event *event, unsigned flags);
    cu_result (*event_free)(cu_event event);
    cu_result (*event_record)(cu_event event, cu_stream stream);
    cu_result (*event_sync)(cu_event event);
    cu_result (*module_load)(cu_module *module, const void *text);
    cu_result (*module_unload)(cu_module module);
    cu_result (*module_function)(cu_function *function, cu_module module, const char *name);
    cu_result (*launch)(cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        cu_stream stream, void **arguments, void **extra);
} tnf_cuda;

/* Loads and initialises the driver once. Fails with TNF_EUNSUPPORTED, and the reason, if there is
 * none. */
tnf_status tnf_cuda_load(const tnf_cuda **out, tnf_error *e);

/* Converts a failed call to a status and a message: "cannot …: the driver's words". */
tnf_status tnf_cuda_fail(const tnf_cuda *cuda, cu_result result, const char *doing, tnf_error *e);

#endif
