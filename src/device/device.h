/* SPDX-License-Identifier: MIT */
/* A device: its memory, and the buffers and queues that loads borrow from it.
 *
 *   buffer   pinned memory, cut into slots                       read into, copied from
 *   queue    a stream, and an event for each slot                what copies go through
 *
 * The host is a device without a driver: its memory is malloc's, and a copy is over when it
 * returns. */
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
#define TNF_PAGE        ((size_t)4096) /* what reads past the cache are rounded to */
#define TNF_KERNELS     29u
#define TNF_HUGE        ((size_t)2 << 20)

typedef struct tnf_buffer {
    struct tnf_buffer *next;
    uint8_t *memory;
    size_t size; /* of the memory */
    size_t slot; /* bytes of a slot */
    bool pinned;
} tnf_buffer;

typedef struct tnf_queue {
    struct tnf_queue *next;
    cu_stream stream; /* that it uses now: its own, or one of the device's */
    cu_stream own;    /* NULL: not made yet */
    cu_event events[TNF_EVENTS_MAX];
    unsigned nevents;
    cu_ptr staging; /* of the device, for blocks that a kernel reads; 0: none yet */
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
    pthread_mutex_t lock; /* guards what follows */
    tnf_buffer *buffers;  /* that nobody uses */
    tnf_queue *queues;
    unsigned nstreams; /* that queues share; 0: each has its own */
    unsigned turn;     /* of the stream that the next queue gets */
    cu_stream streams[TNF_STREAMS_MAX];
    uint64_t pinned;                /* bytes of all buffers, used or not */
    cu_module modules[TNF_KERNELS]; /* of a kernel each; NULL: not loaded, or it could not be */
    bool modules_tried[TNF_KERNELS];
    cu_function functions[TNF_KERNELS];
};

/* Around calls of the driver: its context is this thread's in between. */
tnf_status tnf_device_enter(tnf_device *d, tnf_error *e);
void tnf_device_leave(tnf_device *d);

/* pool.c. Borrowed and given back; what is broken is freed instead. */
tnf_status tnf_buffer_take(tnf_buffer **out, tnf_device *d, size_t slot, unsigned slots,
                           tnf_error *e);
void tnf_buffer_give(tnf_device *d, tnf_buffer *b);
/* Pins a buffer, unless it is pinned. The device is entered. It is quick if the buffer was written
 * to before, by as many threads as there are: then its pages are there. */
tnf_status tnf_buffer_pin(tnf_device *d, tnf_buffer *b, tnf_error *e);
tnf_status tnf_queue_take(tnf_queue **out, tnf_device *d, unsigned slots, bool own, tnf_error *e);
void tnf_queue_give(tnf_device *d, tnf_queue *q);
void tnf_streams_free(tnf_device *d); /* the device is entered */
/* kernel.c; the device is entered. */
void tnf_kernels_free(tnf_device *d);
/* Memory of the device for blocks that a kernel reads, at least so much. The device is entered. */
tnf_status tnf_queue_stage(tnf_device *d, tnf_queue *q, size_t n, tnf_error *e);

/* Memory that is counted. */
struct tnf_device_memory {
    atomic_size_t users;
    tnf_device *device;
    void *p;
    size_t n;
    void (*release)(void *ctx, tnf_device *device, void *p, size_t n); /* the caller's; or NULL */
    void *ctx;
};
tnf_status tnf_memory_new(tnf_device_memory **out, tnf_device *d, size_t n,
                          const tnf_load_options *how, tnf_error *e);
/* Free bytes of the device now; UINT64_MAX if nobody can tell. */
tnf_status tnf_memory_free_bytes(uint64_t *out, tnf_device *d, tnf_error *e);

/* Copies on a queue; the device is entered. Nothing may touch src before the queue's event. */
tnf_status tnf_copy_to(tnf_device *d, tnf_queue *q, void *dst, const void *src, size_t n,
                       tnf_error *e);
/* `height` rows of `width` bytes, `pitch` apart in src, without gaps in dst. */
tnf_status tnf_copy_rows(tnf_device *d, tnf_queue *q, void *dst, const void *src, size_t width,
                         size_t height, size_t pitch, tnf_error *e);
/* Notes in slot i's event that all before it is to be over; waits for that. */
tnf_status tnf_queue_mark(tnf_device *d, tnf_queue *q, unsigned i, tnf_error *e);
tnf_status tnf_queue_await(tnf_device *d, tnf_queue *q, unsigned i, tnf_error *e);
/* What comes on a queue next waits for event i of another. */
tnf_status tnf_queue_follow(tnf_device *d, tnf_queue *q, tnf_queue *other, unsigned i,
                            tnf_error *e);
/* Waits for everything, whatever happened. */
tnf_status tnf_queue_drain(tnf_device *d, tnf_queue *q, tnf_error *e);

/* numa.c: the node of a PCI device, -1 if it is not known; the CPUs of a node. `root` is "/sys". */
int tnf_numa_node(const char *root, unsigned domain, unsigned bus, unsigned slot);
bool tnf_numa_cpus(cpu_set_t *out, const char *root, int node);
/* This thread runs on those of them that it may run on; if there are none, anywhere. */
void tnf_numa_bind(const cpu_set_t *cpus);

#endif
