/* SPDX-License-Identifier: MIT */
/* What is to be read and copied, cut into jobs for the threads.
 *
 *   wants    a  b  c  d …                    the requests, as bytes of files
 *   pieces   c  a  b  d1 d2 …                by file and place; bytes that are wanted twice last
 *   jobs     [c a] [a b d1] [d2] …           a block of a file each, gaps that are small included
 *
 *   a column slice:   ░░░░████░░░░████░░░░████      a want of `count` runs, `stride` bytes apart
 */
#ifndef TNF_DEVICE_PLAN_H
#define TNF_DEVICE_PLAN_H

#include "core/read/place.h"
#include "device/device.h"
#include <tenfold/virtual.h>

#include <stdatomic.h>

/* The bytes of a table of small tensors, for the kernel that puts them in their places. */
#define TNF_TABLE(rows) ((rows)*4 * sizeof(uint64_t))
#define TNF_SLOT_ROWS   256u /* of the table of a slot */

struct tnf_kernel;

typedef struct tnf_want {
    const tnf_part *part;
    tnf_place place;                 /* without a source: the part is read by the library */
    uint64_t first;                  /* byte of the part that it begins with */
    uint64_t run, stride, count;     /* of bytes of the part; run * count are wanted */
    uint64_t bytes;                  /* on the device */
    tnf_virtual *made[3];            /* of this plan, if the host computes it */
    const struct tnf_kernel *kernel; /* that the device computes it by; or NULL */
    uint32_t unit, unit_out;         /* bytes that the kernel takes at a time, and gives */
    uint64_t to;                     /* what the kernel makes: numbers.cl has the numbers */
    tnf_device_memory *scales;       /* on the device; or NULL */
    uint64_t cols, rows_cols, across;
    size_t intake; /* of the plan's; meaningless without a source */
    tnf_load_made how;
    void *dst;                 /* the caller's, or NULL */
    atomic_uint_fast64_t left; /* bytes of the file that have not arrived */
} tnf_want;

/* A source that is read. */
typedef struct tnf_intake {
    const tnf_source *source;
    const char *label;
    uint64_t low, high; /* all that is wanted lies between */
    int direct;         /* a descriptor that reads past the cache; -1: none */
    bool cached;        /* it is in memory, as far as was looked */
} tnf_intake;

typedef struct tnf_piece {
    size_t want;
    uint64_t at, span;    /* of the source */
    uint64_t run, stride; /* run == span: no gaps */
    uint64_t to;          /* byte of the want's result */
    bool gather;          /* its runs are read one by one */
} tnf_piece;

typedef enum tnf_job_kind {
    TNF_JOB_BLOCK,  /* bytes [at, at + bytes) of the source, for npieces pieces */
    TNF_JOB_GATHER, /* `bytes` bytes of runs of one piece, from run `at` on */
    TNF_JOB_PART,   /* bytes [at, at + bytes) of a want, read by the library */
    TNF_JOB_SCAN    /* all of a want, read in order */
} tnf_job_kind;

typedef struct tnf_job {
    tnf_job_kind kind;
    size_t first, npieces; /* pieces; of PART and SCAN: the want */
    uint64_t at, bytes;
} tnf_job;

typedef struct tnf_plan {
    tnf_want *wants;
    size_t n;
    size_t *order; /* of the wants: by file and place */
    tnf_intake *intakes;
    size_t nintakes, room_intakes;
    tnf_piece *pieces;
    size_t npieces, room_pieces;
    tnf_job *jobs;
    size_t njobs, room_jobs;
    uint64_t source_bytes; /* that are wanted */
    uint64_t device_bytes;
    size_t block;
    bool exact;    /* nothing is read that is not wanted */
    bool small;    /* a block has many tensors: a kernel puts them in their places */
    bool computes; /* with kernels of the device */
    bool plain;    /* bytes of files in memory: ring.c serves it */
} tnf_plan;

/* device: for its kernels; NULL: all is computed on the host. To be freed also after a failure. */
tnf_status tnf_plan_make(tnf_plan *p, tnf_device *device, const tnf_device_request *requests,
                         size_t n, const tnf_load_options *how, tnf_error *e);
void tnf_plan_free(tnf_plan *p);

/* want.c: what a request asks for. */
tnf_status tnf_want_make(tnf_want *w, tnf_device *device, const tnf_device_request *request,
                         tnf_error *e);

/* intake.c: looks how it is best read. */
void tnf_intake_open(tnf_intake *in, tnf_device_read_mode mode);
void tnf_intake_close(tnf_intake *in);
/* Another descriptor of the same file, which tnf_intake_give() closes; -1: there is none. */
int tnf_intake_again(const tnf_intake *in);
void tnf_intake_give(int fd);
/* Bytes [at, at + n) somewhere in a slot that has a page of room on each side; *out says where. */
tnf_status tnf_intake_read(const tnf_intake *in, uint64_t at, size_t n, uint8_t *slot,
                           const uint8_t **out, tnf_error *e);

/* A rectangle of bytes: from byte `from` of the window to byte `to` of the result. */
typedef struct tnf_stroke {
    uint64_t from, to;
    uint64_t width, height, pitch;
} tnf_stroke;

/* Bytes [low, high) of a piece's span as at most three rectangles; `from` counts from low. */
unsigned tnf_piece_strokes(const tnf_piece *p, uint64_t low, uint64_t high, tnf_stroke out[3]);

#endif
