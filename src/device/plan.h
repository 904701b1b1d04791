/* SPDX-License-Identifier: MIT */
/* The plan of a load: reads and copies, cut into tasks for the threads.
 *
 *   tensors  a  b  c  d …                    the requests, as bytes of files
 *   pieces   c  a  b  d1 d2 …                by file and place; bytes requested twice are last
 *   tasks     [c a] [a b d1] [d2] …           blocks of a file, including small gaps
 *
 *   a column slice:   ░░░░████░░░░████░░░░████      a tensor of `count` runs, `stride` bytes apart
 */
#ifndef TNF_DEVICE_PLAN_H
#define TNF_DEVICE_PLAN_H

#include "core/read/place.h"
#include "device/device.h"
#include <tenfold/virtual.h>

#include <stdatomic.h>

/* The size of a table of small tensors, for the kernel that distributes them. */
#define TNF_TABLE(rows) ((rows)*4 * sizeof(uint64_t))
#define TNF_SLOT_ROWS   256u /* rows of the table of a slot */

struct tnf_kernel;

/* A tensor to load, or a slice of one. */
typedef struct tnf_load_tensor {
    const tnf_part *part;
    tnf_part_location place;         /* without a source: the library reads the part */
    uint64_t first;                  /* its first byte within the part */
    uint64_t run, stride, count;     /* of bytes of the part; run * count are requested */
    uint64_t bytes;                  /* on the device */
    tnf_virtual *made[3];            /* owned by the plan, if the host computes it */
    const struct tnf_kernel *kernel; /* the device computes with it; or NULL */
    uint32_t unit, unit_out;         /* bytes of input and output of a unit of the kernel */
    uint64_t to;                     /* the output type, as numbered in numbers.cl */
    tnf_device_memory *scales;       /* on the device; or NULL */
    uint64_t cols, rows_cols, across;
    size_t intake; /* its index in the plan; unused without a source */
    tnf_load_made how;
    void *dst;                 /* the caller's memory, or NULL */
    atomic_uint_fast64_t left; /* bytes of the file that have not arrived */
} tnf_load_tensor;

/* A source to read. */
typedef struct tnf_intake {
    const tnf_source *source;
    const char *label;
    uint64_t low, high; /* the range of all requested bytes */
    int direct;         /* a descriptor for direct reads; -1: none */
    bool cached;        /* it is in memory, judging by samples */
} tnf_intake;

typedef struct tnf_load_piece {
    size_t tensor;
    uint64_t at, span;    /* in the source */
    uint64_t run, stride; /* run == span: no gaps */
    uint64_t to;          /* offset in the tensor's result */
    bool gather;          /* its runs are read one by one */
} tnf_load_piece;

typedef enum tnf_load_task_kind {
    TNF_READ_BLOCK,  /* bytes [at, at + bytes) of the source, for npieces pieces */
    TNF_READ_GATHER, /* `bytes` bytes of runs of one piece, from run `at` on */
    TNF_READ_PART,   /* bytes [at, at + bytes) of a tensor, read by the library */
    TNF_READ_SCAN    /* a complete tensor, read in order */
} tnf_load_task_kind;

typedef struct tnf_load_task {
    tnf_load_task_kind kind;
    size_t first, npieces; /* pieces; for PART and SCAN: the tensor */
    uint64_t at, bytes;
} tnf_load_task;

typedef struct tnf_load_plan {
    tnf_load_tensor *tensors;
    size_t n;
    size_t *order; /* the tensors by file and place */
    tnf_intake *intakes;
    size_t nintakes, room_intakes;
    tnf_load_piece *pieces;
    size_t npieces, room_pieces;
    tnf_load_task *tasks;
    size_t njobs, room_tasks;
    uint64_t source_bytes; /* requested bytes of the sources */
    uint64_t device_bytes;
    size_t block;
    bool exact;    /* only requested bytes are read */
    bool small;    /* blocks have many tensors, which a kernel distributes */
    bool computes; /* kernels of the device compute */
    bool plain;    /* all files are in memory, so ring.c serves the load */
} tnf_load_plan;

/* `device` provides kernels; NULL: the host computes everything. The caller frees the plan even
 * after an error. */
tnf_status tnf_load_plan_make(tnf_load_plan *p, tnf_device *device,
                              const tnf_device_request *requests, size_t n,
                              const tnf_load_options *how, tnf_error *e);
void tnf_load_plan_free(tnf_load_plan *p);

/* tensor.c: prepares the tensor of a request. */
tnf_status tnf_load_tensor_make(tnf_load_tensor *w, tnf_device *device,
                                const tnf_device_request *request, tnf_error *e);

/* intake.c: chooses how to read the source. */
void tnf_intake_open(tnf_intake *in, tnf_device_read_mode mode);
void tnf_intake_close(tnf_intake *in);
/* Opens another descriptor of the same file, which tnf_intake_give() closes; -1 if impossible. */
int tnf_intake_again(const tnf_intake *in);
void tnf_intake_give(int fd);
/* Reads the bytes [at, at + n) into a slot with a spare page at each end; *out is their address. */
tnf_status tnf_intake_read(const tnf_intake *in, uint64_t at, size_t n, uint8_t *slot,
                           const uint8_t **out, tnf_error *e);

/* A rectangle of bytes, from offset `from` of the window to offset `to` of the result. */
typedef struct tnf_rectangle {
    uint64_t from, to;
    uint64_t width, height, pitch;
} tnf_rectangle;

/* Splits the bytes [low, high) of a piece's span into at most three rectangles; `from` is relative
 * to low. */
unsigned tnf_load_piece_rectangles(const tnf_load_piece *p, uint64_t low, uint64_t high,
                                   tnf_rectangle out[3]);

#endif
