/* SPDX-License-Identifier: MIT */
/* What finish*.c and again.c share. */
#ifndef TNF_JOB_FINISHING_H
#define TNF_JOB_FINISHING_H

#include "job/job.h"

struct finishing {
    tnf_job *job;
    tnf_job_how how;
    const char *base;
    tnf_arena arena;
    struct job_receipt *receipts; /* of all parts */
    char **now;                   /* where each output lies */
    bool placed;                  /* one of them under its name already */
    uint64_t sent;                /* bytes of an object */
    tnf_progress progress;
    pthread_mutex_t lock; /* guards progress */
};

/* finish_hash.c: the hashes of all inputs. */
tnf_status tnf_finish_hash(struct finishing *f, tnf_buf *b, tnf_error *e);
void tnf_finish_put_hash(tnf_buf *b, const uint8_t hash[TNF_HASH_BYTES]);

/* finish_output.c: what is told of the output; */
tnf_status tnf_finish_output(struct finishing *f, tnf_buf *b, tnf_error *e);

/* All leaves, in the order of the items; before[i]: of the items before the i-th. */
tnf_status tnf_finish_leaves(struct finishing *f, uint8_t **out, uint64_t **before, tnf_error *e);

/* finish_input.c: the input against what was written, if that is asked for. */
tnf_status tnf_finish_input(struct finishing *f, tnf_error *e);

/* object.c: completes the upload, and tells of it; gives it up, as far as it is known. */
tnf_status tnf_object_finish(struct finishing *f, tnf_buf *b, tnf_error *e);
void tnf_object_abort(struct finishing *f);

/* again.c: where the outputs lie now; */
tnf_status tnf_finish_find(struct finishing *f, tnf_error *e);
/* one part's bytes, read again; for tnf_pool_run(). */
tnf_status tnf_finish_check(void *ctx, size_t part, tnf_error *e);

#endif
