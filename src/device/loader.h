/* SPDX-License-Identifier: MIT */
/* Functions for the threads of a load: reading a task, sending its bytes, counting their arrival.
 */
#ifndef TNF_DEVICE_LOADER_H
#define TNF_DEVICE_LOADER_H

#include "device/load.h"

/* The bytes of a slot that are being copied. */
typedef struct tnf_flight {
    const tnf_load_task *task; /* NULL: nothing */
    uint64_t bytes;            /* if a task is read in order: this much of it */
} tnf_flight;

/* One thread. */
typedef struct tnf_loader {
    tnf_load *load;
    unsigned number;
    tnf_queue **queues; /* one per target; NULL: it shares a ring */
    tnf_flight flights[TNF_SLOTS_MAX];
    unsigned slot;
    uint64_t bytes_read, copies;
    const tnf_intake *own_of; /* the intake of its own descriptor; NULL: none */
    int own_fd;
    tnf_load_clock clock;
    /* for a task that is read in order: its position, and the bytes in the slot */
    const tnf_load_task *scan;
    uint64_t scanned;
    size_t filled;
} tnf_loader;

/* loader.c: the memory of the current slot; not for a ring. */
uint8_t *tnf_slot_memory(const tnf_loader *o);

/* tasks.c: reads the bytes of a task that is not read in order into a slot; *out is their address.
 */
tnf_status tnf_load_task_read(tnf_loader *o, const tnf_load_task *task, uint8_t *slot,
                              const uint8_t **out, tnf_error *e);
/* Counts `bytes` bytes of a task that are on every device. */
tnf_status tnf_load_task_arrived(tnf_loader *o, const tnf_load_task *task, uint64_t bytes,
                                 tnf_error *e);

/* The memory from which bytes are sent, and its copy on the device for kernels. */
typedef struct tnf_area {
    const uint8_t *memory; /* pinned: a slot, or a group of the ring */
    cu_ptr staged;         /* the copy on the device; 0: no kernel reads it */
    uint64_t *table;       /* pinned: of small tensors, for the kernel that distributes them */
    cu_ptr staged_table;
    size_t most_rows; /* of the table */
} tnf_area;

/* copies.c: the area at `memory`. Its copy is `at` bytes after the beginning of the queue's staging
 * memory. Its table, if small tensors need one, is `table` bytes after its own beginning. */
tnf_area tnf_area_at(const tnf_load *l, const tnf_queue *q, uint8_t *memory, size_t at,
                     size_t table, size_t most_rows);

/* Copies onto one device. */
typedef struct tnf_copier {
    tnf_loader *o;
    const tnf_target *target;
    tnf_queue *copies, *kernels; /* if equal, kernels run among the copies */
    unsigned event;              /* of both queues: recorded after all work */
    tnf_area area;
    /* a copy that waits for an adjacent one */
    const uint8_t *src;
    uint8_t *dst;
    uint64_t n;
    uintptr_t block; /* of dst */
    /* a kernel call that waits for an adjacent one */
    size_t tensor;
    cu_ptr from;
    uint64_t at, computed;
    /* the table so far */
    size_t rows;
    uint64_t chunks;
} tnf_copier;
/* Copies n tasks with adjacent bytes; then records the event of `kernels`. */
tnf_status tnf_copy_tasks(tnf_copier *c, const tnf_load_task *tasks, size_t n, const uint8_t *bytes,
                          tnf_error *e);
/* Copies n bytes of a task that is read in order; then records the event of `copies`. */
tnf_status tnf_copy_scanned(tnf_copier *c, const tnf_load_task *task, const uint8_t *bytes,
                            uint64_t n, tnf_error *e);
/* The bytes [*low, *high) of piece i that are in a block, relative to the piece. */
void tnf_load_piece_window(const tnf_load_plan *p, const tnf_load_task *task, size_t i,
                           uint64_t *low, uint64_t *high);

/* ring.c: runs task i as soon as its place in the ring is free; waits until everything sent has
 * arrived. */
tnf_status tnf_ring_run(tnf_loader *o, size_t i, tnf_error *e);
tnf_status tnf_ring_arrive(tnf_loader *o, tnf_error *e);

#endif
