/* SPDX-License-Identifier: MIT */
/**
 * @file device.h
 * Load tensors of any file into the memory of a GPU; examples/load_gpu.c shows the whole API.
 *
 * The driver (libcuda.so.1, or the library that TENFOLD_CUDA names) is loaded when the first GPU is
 * opened. A program that opens no GPU needs nothing of CUDA to build or to run. The device "host"
 * is ordinary memory: the same calls work without a GPU. All functions are thread-safe, but no
 * thread may free what another one still uses.
 */
#ifndef TENFOLD_DEVICE_H
#define TENFOLD_DEVICE_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One GPU, or the memory of the host. It keeps a few pinned buffers for the next load. */
typedef struct tnf_device tnf_device;
/** How to open a device. Begin with TNF_DEVICE_INIT; NULL means all defaults. */
typedef struct tnf_device_options {
    size_t size;  /**< sizeof(tnf_device_options) */
    bool no_numa; /**< threads and buffers may be anywhere, not only near the device */
} tnf_device_options;

/** All defaults. */
#define TNF_DEVICE_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_device_options), false                                                          \
    }

/** Opens "cuda:0" (the numbers are the driver's, after CUDA_VISIBLE_DEVICES), "cuda" (the first),
 *  "cuda:GPU-…" (by its UUID) or "host". Uses the primary context of the GPU, as other libraries
 *  do. TNF_EUNSUPPORTED if there is no driver or GPU, TNF_ENOTFOUND if there is no such GPU. */
TNF_API TNF_CHECKED tnf_status tnf_device_open(tnf_device **out, const char *name,
                                               const tnf_device_options *options, tnf_error *error);
/** Closes a device. The caller must first free its loads and drop its memory. NULL is allowed. */
TNF_API void tnf_device_close(tnf_device *device);
/** Frees the pinned buffers that no load uses. The next load makes new ones. */
TNF_API void tnf_device_trim(tnf_device *device);

/** Describes a device. Begin with TNF_DEVICE_INFO_INIT. */
typedef struct tnf_device_info {
    size_t size;           /**< sizeof(tnf_device_info) */
    char name[96];         /**< "NVIDIA H200", or "host" */
    char uuid[48];         /**< "GPU-…", or "" */
    int ordinal;           /**< the driver's number; -1 for the host */
    int numa_node;         /**< the NUMA node of the device; -1: unknown, or there is only one */
    uint64_t memory_total; /**< bytes */
    uint64_t memory_free;  /**< bytes, now */
    uint64_t pinned;       /**< bytes of pinned buffers that the device keeps */
} tnf_device_info;

/** All 0, with its size. */
#define TNF_DEVICE_INFO_INIT                                                                       \
    {                                                                                              \
        sizeof(tnf_device_info), "", "", 0, 0, 0, 0, 0                                             \
    }

/** Gets the description of a device. */
TNF_API TNF_CHECKED tnf_status tnf_device_look(tnf_device_info *out, tnf_device *device,
                                               tnf_error *error);
/** Copies n bytes from the device's memory to the host's. Wait for the loads into it first:
 *  tnf_load_wait(). */
TNF_API TNF_CHECKED tnf_status tnf_device_read(void *dst, tnf_device *device, const void *src,
                                               size_t n, tnf_error *error);

/** One tensor to load, or a piece of it. Begin with TNF_DEVICE_REQUEST_INIT, or with zeros. */
typedef struct tnf_device_request {
    const tnf_object *object; /**< the tensor; a virtual one is computed on the host */
    const tnf_part *part;     /**< the part; NULL: its only part */
    const tnf_slice *slices;  /**< one for each dimension of a dense tensor; NULL: all of it */
    /** NULL: as stored. Else f32, f16 or bf16: cast or dequantized, on the device if it has a
     *  kernel for it, else on the host; both give the same bits. */
    const tnf_type *as;
    /** With `as`: scales of the blocks (TNF_VIRTUAL_SCALED in virtual.h); NULL: none. */
    const tnf_object *scales;
    void *dst;        /**< memory of the device for the result; NULL: the library allocates it */
    size_t dst_bytes; /**< bytes of dst */
    uint64_t reserved[3]; /**< 0 */
} tnf_device_request;

/** All NULL and 0; the caller must set the object. */
#define TNF_DEVICE_REQUEST_INIT                                                                    \
    {                                                                                              \
        NULL, NULL, NULL, NULL, NULL, NULL, 0,                                                     \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }

/** How a file is read. */
typedef enum tnf_device_read_mode {
    TNF_DEVICE_READ_AUTO,   /**< bypasses the page cache if most of the file is not in it */
    TNF_DEVICE_READ_CACHED, /**< through the cache */
    TNF_DEVICE_READ_DIRECT, /**< bypasses the cache (O_DIRECT), if the file system can do it */
    /** Through the cache. From a local file only the wanted bytes are read: slices of columns are
     *  read run by run, even if the runs are short. For many processes that share one disk. */
    TNF_DEVICE_READ_EXACT
} tnf_device_read_mode;

/** How memory is allocated if a request has none. */
typedef enum tnf_device_alloc {
    TNF_DEVICE_ARENA, /**< slabs for many tensors, each tensor at a multiple of 256 bytes */
    TNF_DEVICE_EACH   /**< an allocation for each tensor */
} tnf_device_alloc;

/** Frees memory of the caller's allocator. Called on the thread that ends the last use of the
 *  memory by tnf_load_free() or tnf_memory_drop(). */
typedef void (*tnf_device_release_fn)(void *ctx, tnf_device *device, void *p, size_t n);

/** Returns at least n bytes of device memory at a multiple of 256, or NULL. Called by the thread
 * that starts the load. */
typedef void *(*tnf_device_allocate_fn)(void *ctx, tnf_device *device, size_t n);

/** How to load. Begin with TNF_LOAD_INIT; NULL means all defaults. */
typedef struct tnf_load_options {
    size_t size;               /**< sizeof(tnf_load_options) */
    unsigned threads;          /**< 0: up to 15 for files in the cache, up to 16 for others */
    unsigned slots;            /**< buffers per thread, at most 8; 0: 2, or 7 if blocks are short */
    size_t block;              /**< bytes of a buffer, a multiple of 4 KiB from 64 KiB to 64 MiB;
                                    0: 512 KiB if blocks are sent together, else 3 MiB */
    tnf_device_read_mode read; /**< how files are read */
    tnf_device_alloc alloc;    /**< how memory is allocated */
    tnf_device_allocate_fn allocate; /**< the caller's allocator; NULL: the library's */
    tnf_device_release_fn release;   /**< set if `allocate` is set; the last drop may call it */
    /** Called while loading, also after tnf_device_start() has returned; NULL: never. */
    tnf_progress_fn progress;
    void *ctx;   /**< passed to all three; it must stay until the last of them is called */
    void *after; /**< a CUstream: writes wait for the work that it has so far; NULL: no waiting */
    bool has_after; /**< `after` is a stream, even if it is NULL (the default stream) */
} tnf_load_options;

/** All defaults. */
#define TNF_LOAD_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_load_options), 0, 0, 0, TNF_DEVICE_READ_AUTO, TNF_DEVICE_ARENA, NULL, NULL,     \
            NULL, NULL, NULL, false                                                                \
    }

/** A load: in progress, complete or failed. It owns the memory that the library allocated for
 *  it. */
typedef struct tnf_load tnf_load;
/** Begins to load n tensors; the files must stay open until the load is complete. The requests and
 *  their slices are copied. Before it reads the first byte, the call fails with TNF_ENOMEM if the
 *  device has too little memory, with TNF_EINVAL if a `dst` is too small. */
TNF_API TNF_CHECKED tnf_status tnf_device_start(tnf_load **out, tnf_device *device,
                                                const tnf_device_request *requests, size_t n,
                                                const tnf_load_options *options, tnf_error *error);
/** Like tnf_device_start(), but for several devices: each file is read once, each device gets all
 *  tensors. With more than one device no request may have a `dst`, and none is cast on a device. */
TNF_API TNF_CHECKED tnf_status tnf_device_start_many(tnf_load **out, tnf_device *const *devices,
                                                     size_t ndevices,
                                                     const tnf_device_request *requests, size_t n,
                                                     const tnf_load_options *options,
                                                     tnf_error *error);
/** Calls tnf_device_start(), then tnf_load_wait() for all tensors. On failure *out is NULL. */
TNF_API TNF_CHECKED tnf_status tnf_device_load(tnf_load **out, tnf_device *device,
                                               const tnf_device_request *requests, size_t n,
                                               const tnf_load_options *options, tnf_error *error);

/** For tnf_load_wait(): all tensors. */
#define TNF_LOAD_ALL SIZE_MAX

/** Waits until tensor i, or all, may be used by any stream. Returns the load's failure, if any; no
 *  copy is in progress then. */
TNF_API TNF_CHECKED tnf_status tnf_load_wait(tnf_load *load, size_t i, tnf_error *error);
/** Returns true if tensor i (or TNF_LOAD_ALL: all) is complete. Never waits. */
TNF_API bool tnf_load_done(const tnf_load *load, size_t i);
/** Stops a load: waiting for it gives TNF_ECANCELLED, unless it was complete before. */
TNF_API void tnf_load_cancel(tnf_load *load);
/** Returns the address of tensor i on the first device (when it is complete); NULL past the
 *  last. */
TNF_API void *tnf_load_at(const tnf_load *load, size_t i);
/** The same for device d, in the order in which the devices were given. */
TNF_API void *tnf_load_on(const tnf_load *load, size_t d, size_t i);

/** Where the numbers of a loaded tensor were computed. */
typedef enum tnf_load_made {
    TNF_LOAD_STORED, /**< not computed: they are as stored */
    TNF_LOAD_DEVICE, /**< on the device */
    TNF_LOAD_HOST    /**< on the host */
} tnf_load_made;

/** Returns the number of bytes of tensor i on a device; *made (may be NULL) says where they were
 *  computed. */
TNF_API uint64_t tnf_load_bytes(tnf_load_made *made, const tnf_load *load, size_t i);

/** Statistics of a load. Begin with TNF_LOAD_REPORT_INIT. */
typedef struct tnf_load_report {
    size_t size;          /**< sizeof(tnf_load_report) */
    uint64_t bytes;       /**< bytes on each device */
    uint64_t bytes_read;  /**< bytes read from files */
    uint64_t copies;      /**< copies requested from the driver */
    uint64_t pinned;      /**< bytes of pinned buffers in use */
    unsigned threads;     /**< threads that worked */
    unsigned direct;      /**< files that were read without the cache */
    uint64_t transformed; /**< tensors that are not as stored */
} tnf_load_report;

/** All 0, with its size. */
#define TNF_LOAD_REPORT_INIT                                                                       \
    {                                                                                              \
        sizeof(tnf_load_report), 0, 0, 0, 0, 0, 0, 0                                               \
    }

/** Gets the statistics of a complete load. */
TNF_API TNF_CHECKED tnf_status tnf_load_tell(tnf_load_report *out, const tnf_load *load,
                                             tnf_error *error);
/** Frees a load, and stops it first if it is in progress. Its memory is freed, too, except what
 *  tnf_load_keep() keeps. NULL is allowed. */
TNF_API void tnf_load_free(tnf_load *load);

/** Memory of a device that the library allocated: a slab, or that of one tensor. It has a reference
 *  count. */
typedef struct tnf_device_memory tnf_device_memory;
/** Keeps the memory of tensor i on device d after the load is freed, until tnf_memory_drop(). The
 *  device must stay open. Returns NULL if the memory is the caller's. */
TNF_API tnf_device_memory *tnf_load_keep(tnf_load *load, size_t d, size_t i);
/** Ends one tnf_load_keep(); the last one frees the memory. NULL is allowed. */
TNF_API void tnf_memory_drop(tnf_device_memory *memory);

#ifdef __cplusplus
}
#endif
#endif
