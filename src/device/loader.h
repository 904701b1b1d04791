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

/* copies.c: copies onto one device, which is entered. Those that touch each other on both sides
 * wait to become one, until they are flushed. */
typedef struct tnf_copier {
    tnf_loader *o;
    tnf_device *device;
    tnf_queue *queue;
    const uint8_t *src;
    uint8_t *dst;
    uint64_t n;
    uintptr_t block; /* of dst */
} tnf_copier;
/* What a slot of the thread's own buffer holds; flushed. */
tnf_status tnf_copy_slot(tnf_copier *c, const tnf_target *t, const uint8_t *bytes,
                         const tnf_flight *f, tnf_error *e);
/* A job that no kernel takes part in. */
tnf_status tnf_copy_job(tnf_copier *c, const tnf_target *t, const tnf_job *job,
                        const uint8_t *bytes, tnf_error *e);
tnf_status tnf_copies_flush(tnf_copier *c, tnf_error *e);
/* Bytes [*low, *high) of piece i that a block holds, counted from the piece's begin. */
void tnf_piece_window(const tnf_plan *p, const tnf_job *job, size_t i, uint64_t *low,
                      uint64_t *high);

/* ring.c: job i, when its place in the ring is free; and all that was sent has arrived. */
tnf_status tnf_ring_run(tnf_loader *o, size_t i, tnf_error *e);
tnf_status tnf_ring_arrive(tnf_loader *o, tnf_error *e);

#endif
