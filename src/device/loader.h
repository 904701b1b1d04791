/* SPDX-License-Identifier: MIT */
/* What the threads of a load share: reading a job, sending its bytes, noting that they arrived. */
#ifndef TNF_DEVICE_LOADER_H
#define TNF_DEVICE_LOADER_H

#include "device/load.h"

/* What is on its way from a slot. */
typedef struct tnf_flight {
    const tnf_job *job; /* NULL: nothing */
    uint64_t bytes;     /* of a job that is read in order: this much of it */
} tnf_flight;

/* One thread. */
typedef struct tnf_loader {
    tnf_load *load;
    unsigned number;
    tnf_queue **queues; /* one of each target; NULL: it shares a ring */
    tnf_flight flights[TNF_SLOTS_MAX];
    unsigned slot;
    uint64_t bytes_read, copies;
    const tnf_intake *own_of; /* that it has a descriptor of its own of; NULL: none */
    int own_fd;
    tnf_load_clock clock;
    /* of a job that is read in order: where it is, and what is in the slot */
    const tnf_job *scan;
    uint64_t scanned;
    size_t filled;
} tnf_loader;

/* loader.c: the memory of the slot that is its turn, unless it shares a ring. */
uint8_t *tnf_slot_memory(const tnf_loader *o);

/* jobs.c: the bytes of a job that is not read in order, into a slot; *out says where there. */
tnf_status tnf_job_read(tnf_loader *o, const tnf_job *job, uint8_t *slot, const uint8_t **out,
                        tnf_error *e);
/* `bytes` bytes of a job are on every device. */
tnf_status tnf_job_arrived(tnf_loader *o, const tnf_job *job, uint64_t bytes, tnf_error *e);

/* What bytes are sent from, and where kernels of a device find them. */
typedef struct tnf_area {
    const uint8_t *memory; /* pinned: a slot, or a group of the ring */
    cu_ptr staged;         /* the same on the device; 0: no kernel reads it */
    uint64_t *table;       /* pinned: of small tensors, for the kernel that parts them */
    cu_ptr staged_table;
    size_t most_rows; /* of the table */
} tnf_area;

/* copies.c: the area at `memory`, which stands `at` bytes behind the first one of the queue's
 * staging memory; its table, if small tensors want one, `table` bytes behind its own begin. */
tnf_area tnf_area_at(const tnf_load *l, const tnf_queue *q, uint8_t *memory, size_t at,
                     size_t table, size_t most_rows);

/* Copies onto one device. */
typedef struct tnf_copier {
    tnf_loader *o;
    const tnf_target *target;
    tnf_queue *copies, *kernels; /* the same: kernels run among the copies */
    unsigned event;              /* of both queues: it comes when all is done */
    tnf_area area;
    /* a copy that waits for what follows it */
    const uint8_t *src;
    uint8_t *dst;
    uint64_t n;
    uintptr_t block; /* of dst */
    /* a call of a kernel that waits likewise */
    size_t want;
    cu_ptr from;
    uint64_t at, computed;
    /* the table so far */
    size_t rows;
    uint64_t chunks;
} tnf_copier;
/* n jobs whose bytes stand one after the other; the event of `kernels` comes behind them. */
tnf_status tnf_copy_jobs(tnf_copier *c, const tnf_job *jobs, size_t n, const uint8_t *bytes,
                         tnf_error *e);
/* n bytes of a job that is read in order; the event of `copies` comes behind them. */
tnf_status tnf_copy_scanned(tnf_copier *c, const tnf_job *job, const uint8_t *bytes, uint64_t n,
                            tnf_error *e);
/* Bytes [*low, *high) of piece i that a block holds, counted from the piece's begin. */
void tnf_piece_window(const tnf_plan *p, const tnf_job *job, size_t i, uint64_t *low,
                      uint64_t *high);

/* ring.c: job i, when its place in the ring is free; and all that was sent has arrived. */
tnf_status tnf_ring_run(tnf_loader *o, size_t i, tnf_error *e);
tnf_status tnf_ring_arrive(tnf_loader *o, tnf_error *e);

#endif
