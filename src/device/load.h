/* SPDX-License-Identifier: MIT */
/* A load under way: what its files share. */
#ifndef TNF_DEVICE_LOAD_H
#define TNF_DEVICE_LOAD_H

#include "device/plan.h"

#define TNF_LOADERS_MAX 64u
#define TNF_TARGETS_MAX 64u

/* A device that is loaded onto. */
typedef struct tnf_target {
    tnf_device *device;
    void **at;                  /* of each want */
    tnf_device_memory **memory; /* of each want: which it lies in; NULL: the caller's */
    uintptr_t *block;           /* of each want: the allocation that it lies in; 0: unknown */
    tnf_device_memory **owned;  /* each once */
    size_t nowned, room;
    bool scatter;   /* blocks of many small tensors go there as one, and a kernel parts them */
    cu_event ready; /* the caller's stream has come so far; NULL: there is none */
} tnf_target;

/* When things happened, in nanoseconds of the monotonic clock, and for how long. */
typedef struct tnf_load_clock {
    uint64_t begun, planned, placed, pinned; /* by the caller's thread */
    uint64_t first_read, first_sent, last_sent, ended;
    uint64_t pinning, reading, sending, waiting; /* sums; of all threads but for pinning */
} tnf_load_clock;
uint64_t tnf_load_now(void);

typedef struct tnf_ring tnf_ring;

struct tnf_load {
    tnf_plan plan;
    tnf_load_options how;
    tnf_target *targets;
    size_t ntargets;
    tnf_ring *ring;     /* of a plain load; NULL: each thread has slots of its own */
    tnf_buffer *buffer; /* what all threads read into; NULL: none */
    tnf_queue **queues; /* of each thread, one of each target; NULL: the ring has them */
    size_t nqueues, room_queues;
    atomic_uint begun;  /* loaders */
    atomic_size_t next; /* job */
    atomic_uint inside; /* loaders that may still use the ring */
    atomic_bool stop;
    atomic_size_t undone; /* wants that are not complete */
    atomic_uint_fast64_t bytes_read, copies, pinned;
    pthread_t threads[TNF_LOADERS_MAX];
    unsigned nthreads;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    unsigned waiting; /* threads that wait for a change */
    unsigned running; /* loaders */
    tnf_status status;
    tnf_error error;
    uint64_t progress;
    tnf_load_clock clock;
};

/* arena.c: is there enough memory of the device? Then memory for all wants on a target. */
tnf_status tnf_target_check(tnf_target *t, const tnf_plan *p, const tnf_load_options *how,
                            tnf_error *e);
tnf_status tnf_target_fill(tnf_load *l, tnf_target *t, tnf_error *e);
void tnf_target_free(tnf_target *t, const tnf_plan *p);

/* buffers.c: memory to read into, pinned, and the queues of each thread. */
tnf_status tnf_buffer_ready(tnf_load *l, size_t slot, unsigned slots, unsigned threads,
                            tnf_error *e);
/* Memory of target t for what kernels read, if any do. */
tnf_status tnf_target_stage(tnf_load *l, size_t t, tnf_queue *q, size_t n, tnf_error *e);
tnf_status tnf_slots_begin(tnf_load *l, unsigned threads, tnf_error *e);
void tnf_slots_end(tnf_load *l); /* gives buffer and queues back */
/* Gives a queue back, with nothing on its way. */
void tnf_queue_end(tnf_device *d, tnf_queue *q);
/* The queues, one of each target, wait until the caller's stream has come so far. */
tnf_status tnf_queues_follow(tnf_load *l, tnf_queue *const *queues, tnf_error *e);

/* ring.c: what the threads of a plain load share. Its end waits for all copies, and gives streams
 * back to the device. */
tnf_status tnf_ring_begin(tnf_load *l, unsigned threads, tnf_error *e);
void tnf_ring_end(tnf_load *l);
void tnf_ring_free(tnf_load *l);

/* loader.c: what a thread does until no job is left; `load` is a tnf_load. */
void *tnf_loader_run(void *load);
/* Ends the load, unless it has failed already. */
void tnf_load_fail(tnf_load *l, tnf_status status, const tnf_error *error);

#endif
