/* SPDX-License-Identifier: MIT */
/* Shared by finish*.c. */
#ifndef TNF_JOB_FINISHING_H
#define TNF_JOB_FINISHING_H

#include "job/job.h"

struct finishing {
    tnf_job *job;
    tnf_job_how how;
    const char *base;
    tnf_arena arena;
    struct job_receipt *receipts; /* of all parts */
    char **now;                   /* the current path of each output */
    bool placed;                  /* an output already has its final name */
    uint64_t sent;                /* bytes of an object */
    tnf_progress progress;
    pthread_mutex_t lock; /* guards `progress` */
};

/* finish_hash.c: the hashes of all inputs. */
tnf_status tnf_finish_hash(struct finishing *f, tnf_buf *b, tnf_error *e);
void tnf_finish_put_hash(tnf_buf *b, const uint8_t hash[TNF_HASH_BYTES]);

/* finish_output.c: reports the output. */
tnf_status tnf_finish_output(struct finishing *f, tnf_buf *b, tnf_error *e);

/* All leaves, in the order of the items; before[i] is the number of leaves before item i. */
tnf_status tnf_finish_leaves(struct finishing *f, uint8_t **out, uint64_t **before, tnf_error *e);

/* finish_input.c: compares the input with the output, if requested. */
tnf_status tnf_finish_input(struct finishing *f, tnf_error *e);

/* s3_output.c: completes the upload, and reports it; aborts the upload, if it is known. */
tnf_status tnf_s3_finish(struct finishing *f, tnf_buf *b, tnf_error *e);
void tnf_s3_abort(struct finishing *f);

/* finish_verify.c: finds the current paths of the outputs. */
tnf_status tnf_finish_find(struct finishing *f, tnf_error *e);
/* Checks the bytes of one part; for tnf_pool_run(). */
tnf_status tnf_finish_check(void *ctx, size_t part, tnf_error *e);

#endif
