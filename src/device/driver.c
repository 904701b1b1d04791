/* SPDX-License-Identifier: MIT */
#include "device/driver.h"

#include "base/symbol.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static tnf_cuda loaded;
static char refusal[200]; /* "" if the driver is loaded */

static bool find_symbol(void *library, const char *name, void *function)
{
    bool found = tnf_find_symbol(library, name, function);
    if (!found)
        snprintf(refusal, sizeof refusal, "the CUDA library has no function %s", name);
    return found;
}

static bool find_devices(void *l)
{
    return find_symbol(l, "cuInit", &loaded.init) &&
           find_symbol(l, "cuGetErrorString", &loaded.error_string) &&
           find_symbol(l, "cuDeviceGetCount", &loaded.device_count) &&
           find_symbol(l, "cuDeviceGet", &loaded.device_get) &&
           find_symbol(l, "cuDeviceGetName", &loaded.device_name) &&
           find_symbol(l, "cuDeviceGetUuid", &loaded.device_uuid) &&
           find_symbol(l, "cuDeviceGetAttribute", &loaded.device_attribute) &&
           find_symbol(l, "cuDevicePrimaryCtxRetain", &loaded.context_retain) &&
           find_symbol(l, "cuDevicePrimaryCtxRelease_v2", &loaded.context_release) &&
           find_symbol(l, "cuCtxPushCurrent_v2", &loaded.context_push) &&
           find_symbol(l, "cuCtxPopCurrent_v2", &loaded.context_pop);
}

static bool find_memory(void *l)
{
    return find_symbol(l, "cuMemGetInfo_v2", &loaded.memory_info) &&
           find_symbol(l, "cuMemAlloc_v2", &loaded.memory_alloc) &&
           find_symbol(l, "cuMemFree_v2", &loaded.memory_free) &&
           find_symbol(l, "cuMemGetAddressRange_v2", &loaded.memory_range) &&
           find_symbol(l, "cuMemHostRegister_v2", &loaded.host_register) &&
           find_symbol(l, "cuMemHostUnregister", &loaded.host_unregister) &&
           find_symbol(l, "cuMemcpyHtoDAsync_v2", &loaded.copy_to) &&
           find_symbol(l, "cuMemcpy2DAsync_v2", &loaded.copy_2d) &&
           find_symbol(l, "cuMemcpyHtoD_v2", &loaded.copy_now) &&
           find_symbol(l, "cuMemcpyDtoH_v2", &loaded.copy_back);
}

static bool find_streams(void *l)
{
    return find_symbol(l, "cuStreamCreate", &loaded.stream_new) &&
           find_symbol(l, "cuStreamDestroy_v2", &loaded.stream_free) &&
           find_symbol(l, "cuStreamSynchronize", &loaded.stream_sync) &&
           find_symbol(l, "cuStreamWaitEvent", &loaded.stream_wait) &&
           find_symbol(l, "cuEventCreate", &loaded.event_new) &&
           find_symbol(l, "cuEventDestroy_v2", &loaded.event_free) &&
           find_symbol(l, "cuEventRecord", &loaded.event_record) &&
           find_symbol(l, "cuEventSynchronize", &loaded.event_sync) &&
           find_symbol(l, "cuModuleLoadData", &loaded.module_load) &&
           find_symbol(l, "cuModuleUnload", &loaded.module_unload) &&
           find_symbol(l, "cuModuleGetFunction", &loaded.module_function) &&
           find_symbol(l, "cuLaunchKernel", &loaded.launch);
}

/* The driver is never unloaded, since other libraries may use it by then. */
static void load_once(void)
{
    const char *name = getenv("TENFOLD_CUDA");
    if (!name || !*name)
        name = "libcuda.so.1";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        snprintf(refusal, sizeof refusal, "%s", why ? why : name);
        return;
    }
    if (!find_devices(library) || !find_memory(library) || !find_streams(library))
        return;
    cu_result result = loaded.init(0);
    const char *text = NULL;
    if (result != 0 && (loaded.error_string(result, &text) != 0 || !text))
        text = "initialisation failed";
    if (result != 0)
        snprintf(refusal, sizeof refusal, "%s", text);
}

tnf_status tnf_cuda_load(const tnf_cuda **out, tnf_error *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
    *out = &loaded;
    if (refusal[0] == 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "there is no usable CUDA driver: %s",
                    refusal);
}

/* After these errors, every call of the process on this GPU fails. */
static bool is_lasting(cu_result r)
{
    return r == 214 || r == 700 || r == 702 || (r >= 714 && r <= 719);
}

tnf_status tnf_cuda_fail(const tnf_cuda *cuda, cu_result result, const char *doing, tnf_error *e)
{
    const char *text = NULL;
    if (cuda->error_string(result, &text) != 0 || !text)
        text = "unknown error";
    return tnf_fail(e, result == CU_OUT_OF_MEMORY ? TNF_ENOMEM : TNF_EIO, TNF_NO_OFFSET,
                    "%s: %s (CUDA error %d)%s", doing, text, result,
                    is_lasting(result) ? "; this process can no longer use the GPU" : "");
}
