/* SPDX-License-Identifier: MIT */
/* The state of a running load, shared by its source files. */
#ifndef TNF_DEVICE_LOAD_H
#define TNF_DEVICE_LOAD_H

#include "device/plan.h"

#define TNF_LOADERS_MAX 64u
#define TNF_TARGETS_MAX 64u

/* A target device of a load. */
typedef struct tnf_target {
    tnf_device *device;
    void **at;                  /* the address of each tensor */
    tnf_device_memory **memory; /* the memory of each tensor; NULL: the caller's */
    uintptr_t *block;           /* the allocation of each tensor; 0: unknown */
    tnf_device_memory **owned;  /* each memory once */
    size_t nowned, room;
    bool scatter;   /* a kernel distributes blocks of many small tensors */
    cu_event ready; /* on the caller's stream, to wait for; NULL: none */
} tnf_target;

/* Times and durations, in nanoseconds of the monotonic clock. */
typedef struct tnf_load_clock {
    uint64_t begun, planned, placed, pinned; /* steps of the caller's thread */
    uint64_t first_read, first_sent, last_sent, ended;
    uint64_t pinning, reading, sending, waiting; /* sums over all threads, except for pinning */
} tnf_load_clock;

typedef struct tnf_ring tnf_ring;

struct tnf_load {
    tnf_load_plan plan;
    tnf_load_options how;
    tnf_target *targets;
    size_t ntargets;
    tnf_ring *ring;     /* for a plain load; NULL: each thread has its own slots */
    tnf_buffer *buffer; /* all threads read into it; NULL: none */
    tnf_queue **queues; /* for each thread, one per target; NULL: the ring has them */
    size_t nqueues, room_queues;
    atomic_uint begun;  /* loaders that have begun */
    atomic_size_t next; /* the next task */
    atomic_uint inside; /* loaders that may still use the ring */
    atomic_bool stop;
    atomic_size_t undone; /* tensors that are not complete */
    atomic_uint_fast64_t bytes_read, copies, pinned;
    pthread_t threads[TNF_LOADERS_MAX];
    unsigned nthreads;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    unsigned waiting; /* threads that wait for a change */
    unsigned running; /* loaders that are running */
    tnf_status status;
    tnf_error error;
    uint64_t progress;
    tnf_load_clock clock;
};

/* arena.c: checks that the device has enough memory; allocates memory for all tensors on a target.
 */
tnf_status tnf_target_check(tnf_target *t, const tnf_load_plan *p, const tnf_load_options *how,
                            tnf_error *e);
tnf_status tnf_target_fill(tnf_load *l, tnf_target *t, tnf_error *e);
void tnf_target_free(tnf_target *t, const tnf_load_plan *p);

/* buffers.c: pinned memory to read into, and the queues of each thread. */
tnf_status tnf_buffer_ready(tnf_load *l, size_t slot, unsigned slots, unsigned threads,
                            tnf_error *e);
/* Allocates staging memory of target t, if kernels need it. */
tnf_status tnf_target_stage(tnf_load *l, size_t t, tnf_queue *q, size_t n, tnf_error *e);
tnf_status tnf_slots_begin(tnf_load *l, unsigned threads, tnf_error *e);
void tnf_slots_end(tnf_load *l); /* gives buffer and queues back */
/* Gives a queue back, after all its work is done. */
void tnf_queue_end(tnf_device *d, tnf_queue *q);
/* Makes the queues, one per target, wait for the `ready` event of the caller's stream. */
tnf_status tnf_queues_follow(tnf_load *l, tnf_queue *const *queues, tnf_error *e);

/* ring.c: the ring that the threads of a plain load share. tnf_ring_end() waits for all copies, and
 * gives streams back to the device. */
tnf_status tnf_ring_begin(tnf_load *l, unsigned threads, tnf_error *e);
void tnf_ring_end(tnf_load *l);
void tnf_ring_free(tnf_load *l);

/* loader.c: runs tasks in a thread until none is left; `load` is a tnf_load. */
void *tnf_loader_run(void *load);
/* Ends the load with an error, unless it has failed already. */
void tnf_load_fail(tnf_load *l, tnf_status status, const tnf_error *error);

#endif
