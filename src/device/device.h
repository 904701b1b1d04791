/* SPDX-License-Identifier: MIT */
/* A device: its memory, and the buffers and queues that loads borrow from it.
 *
 *   buffer   pinned memory, cut into slots              files are read into it, copies read from it
 *   queue    a stream, and an event for each slot       copies are sent through it
 *
 * The host is a device without a driver: its memory is from malloc(), and its copies are
 * synchronous. */
#ifndef TNF_DEVICE_DEVICE_H
#define TNF_DEVICE_DEVICE_H

#include "device/driver.h"
#include <tenfold/device.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define TNF_SLOTS_MAX   8u
#define TNF_EVENTS_MAX  32u
#define TNF_STREAMS_MAX 16u
#define TNF_PAGE        ((size_t)4096) /* direct reads are rounded to it */
#define TNF_KERNELS     29u
#define TNF_HUGE        ((size_t)2 << 20)

typedef struct tnf_buffer {
    struct tnf_buffer *next;
    uint8_t *memory;
    size_t size; /* of the memory */
    size_t slot; /* size of a slot */
    bool pinned;
} tnf_buffer;

typedef struct tnf_queue {
    struct tnf_queue *next;
    cu_stream stream; /* the current stream: its own, or one of the device */
    cu_stream own;    /* NULL: not created yet */
    cu_event events[TNF_EVENTS_MAX];
    unsigned nevents;
    cu_ptr staging; /* device memory for blocks that a kernel reads; 0: none yet */
    size_t staging_size;
} tnf_queue;

struct tnf_device {
    const tnf_cuda *cuda; /* NULL: the host */
    cu_device id;
    cu_context context;
    int ordinal, numa_node;
    char name[96], uuid[48];
    cpu_set_t cpus; /* near the device */
    bool has_cpus;
    pthread_mutex_t lock; /* guards everything below */
    tnf_buffer *buffers;  /* idle */
    tnf_queue *queues;
    unsigned nstreams; /* shared by queues; 0: each queue has its own */
    unsigned turn;     /* the stream that the next queue gets */
    cu_stream streams[TNF_STREAMS_MAX];
    uint64_t pinned;                /* bytes of all buffers, idle or not */
    cu_module modules[TNF_KERNELS]; /* one per kernel; NULL: not loaded, or loading failed */
    bool modules_tried[TNF_KERNELS];
    cu_function functions[TNF_KERNELS];
};

/* Enter and leave the device's context in this thread. All driver calls are between these two. */
tnf_status tnf_device_enter(tnf_device *d, tnf_error *e);
void tnf_device_leave(tnf_device *d);

/* pool.c: buffers and queues are taken and given back. */
tnf_status tnf_buffer_take(tnf_buffer **out, tnf_device *d, size_t slot, unsigned slots,
                           tnf_error *e);
void tnf_buffer_give(tnf_device *d, tnf_buffer *b);
/* Pins a buffer, unless it is pinned. The caller has entered the device. Pinning is fast if several
 * threads have written to the buffer before, since then its pages exist. */
tnf_status tnf_buffer_pin(tnf_device *d, tnf_buffer *b, tnf_error *e);
tnf_status tnf_queue_take(tnf_queue **out, tnf_device *d, unsigned slots, bool own, tnf_error *e);
void tnf_queue_give(tnf_device *d, tnf_queue *q);
void tnf_streams_free(tnf_device *d); /* the caller has entered the device */
/* kernel.c; the caller has entered the device. */
void tnf_kernels_free(tnf_device *d);
/* Allocates at least n bytes of staging memory. The caller has entered the device. */
tnf_status tnf_queue_stage(tnf_device *d, tnf_queue *q, size_t n, tnf_error *e);

/* Reference-counted memory. */
struct tnf_device_memory {
    atomic_size_t users;
    tnf_device *device;
    void *p;
    size_t n;
    void (*release)(void *ctx, tnf_device *device, void *p, size_t n); /* of the caller, or NULL */
    void *ctx;
};
tnf_status tnf_memory_new(tnf_device_memory **out, tnf_device *d, size_t n,
                          const tnf_load_options *how, tnf_error *e);
/* The free bytes of the device now; UINT64_MAX if unknown. */
tnf_status tnf_memory_free_bytes(uint64_t *out, tnf_device *d, tnf_error *e);

/* Copies on a queue; the caller has entered the device. src must not change before the queue's
 * event. */
tnf_status tnf_copy_to(tnf_device *d, tnf_queue *q, void *dst, const void *src, size_t n,
                       tnf_error *e);
/* Copies `height` rows of `width` bytes, which are `pitch` apart in src and adjacent in dst. */
tnf_status tnf_copy_rows(tnf_device *d, tnf_queue *q, void *dst, const void *src, size_t width,
                         size_t height, size_t pitch, tnf_error *e);
/* Records the event of slot i after all earlier work of the queue; waits for that event. */
tnf_status tnf_queue_mark(tnf_device *d, tnf_queue *q, unsigned i, tnf_error *e);
tnf_status tnf_queue_await(tnf_device *d, tnf_queue *q, unsigned i, tnf_error *e);
/* Makes all later work of a queue wait for event i of another queue. */
tnf_status tnf_queue_follow(tnf_device *d, tnf_queue *q, tnf_queue *other, unsigned i,
                            tnf_error *e);
/* Waits for all work, even after an error. */
tnf_status tnf_queue_drain(tnf_device *d, tnf_queue *q, tnf_error *e);

/* numa.c: the node of a PCI device, -1 if unknown; the CPUs of a node. `root` is "/sys". */
int tnf_numa_node(const char *root, unsigned domain, unsigned bus, unsigned slot);
bool tnf_numa_cpus(cpu_set_t *out, const char *root, int node);
/* Binds this thread to those of the CPUs that it may use; does nothing if there are none. */
void tnf_numa_bind(const cpu_set_t *cpus);

#endif
