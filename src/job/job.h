/* SPDX-License-Identifier: MIT */
/* Shared by the files for plans.
 *
 *   plan.c       options ─> inputs, units of work
 *   cut.c        cuts units into items for the parts
 *   plan_text.c  the plan as JSON, and back
 *   inputs.c     opens the inputs and compares them with the plan
 *   layout.c     computes the layout of a conversion's output
 *   window.c     a sink that takes some of its bytes, and hashes them
 *   part.c       runs the items of a part
 *   rows*.c      runs items of the jobs "verify", "stat", "diff" and "similar"
 *   pieces.c     results for some leaves of a tensor, as text
 *   merge.c      merges their results
 *   receipt.c    the receipt of a finished part
 *   finish.c     checks the parts, merges their results, makes the output visible
 *   finish_*.c   its steps: hash computes hashes, verify reads the output again, output reports it,
 *                input compares it with the input
 *   s3_output.c  an s3 object as the output
 *   mark.c       marks a file as the result of a plan
 */
#ifndef TNF_JOB_JOB_H
#define TNF_JOB_JOB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/look/leaves.h"
#include "job/convert_through.h"
#include <tenfold/jobs.h>

#define TNF_ID_BYTES  65u /* a hash as hex, with its NUL */
#define TNF_PARTS_MAX 1000000u
#define TNF_NO_INDEX  SIZE_MAX

typedef enum tnf_job_kind {
    TNF_JOB_HASH,
    TNF_JOB_VERIFY,
    TNF_JOB_CONVERT,
    TNF_JOB_STAT,
    TNF_JOB_DIFF,
    TNF_JOB_SIMILAR,
    TNF_JOB_KINDS
} tnf_job_kind;

extern const char *const tnf_job_names[TNF_JOB_KINDS];

/* One of the files of an input. */
struct job_pin {
    const char *name; /* the name in the input; for the input itself its path */
    uint64_t size;
    bool dated; /* mtime_ns is set */
    uint64_t mtime_ns;
    const char *etag; /* of a remote object; NULL: none */
};

struct job_input {
    struct job_pin own;
    const char *shown; /* its path in messages and results: a URL without secrets */
    struct job_pin *shards;
    size_t nshards;
    char header[TNF_ID_BYTES]; /* the hash of its header */
    tnf_file *file;            /* NULL: not opened yet */
};

/* An output file. */
struct job_out {
    const char *path;
    uint64_t size; /* 0: unknown before it is written */
};

/* A piece of work of one part of the plan. In a conversion, tensors are those of the output. */
struct job_item {
    uint64_t part;
    size_t in, index; /* the tensor; TNF_NO_INDEX: of the output, or a complete file */
    uint32_t k;       /* the part of the tensor; all parts if `whole` */
    bool whole, atom; /* atom: it cannot be cut */
    tnf_str tensor;   /* its name */
    const char *role; /* "": all parts */
    uint64_t offset, bytes;
    uint64_t first, n; /* leaves, or rows */
    size_t out;
    uint64_t at;   /* their offset in the output */
    uint64_t cost; /* bytes to read */
    uint64_t step; /* of a unit: bytes to read for each of n; 0: a leaf */
};

struct tnf_job {
    tnf_arena arena;
    tnf_job_kind kind;
    tnf_job_options o; /* everything it points to is in the arena */
    struct job_input *inputs;
    struct job_item *items; /* by part */
    size_t nitems, room;
    struct job_out *outs; /* by path; without the index of a split */
    size_t nouts;
    const char *index; /* the path of the index that is written last; NULL: none */
    const char *mode, *format;
    char id[TNF_ID_BYTES];
    tnf_buf text;   /* the plan */
    tnf_buf answer; /* the last receipt or result */
    tnf_job_info info;
};

/* The bytes of an output that a part writes. */
struct job_window {
    size_t out;
    uint64_t first, end;
    size_t item, nitems; /* the items in it */
};

/* The content of a receipt. */
struct job_receipt {
    uint64_t part, bytes;
    tnf_str leaves; /* hex: hashes of all leaves, in the order of the items */
    tnf_str frame;  /* hex: for each window, the hash of the bytes around them */
    tnf_str rows;   /* JSON: an array of results */
};

/* ------------------------------------------------------------------- plans */

/* plan.c */
tnf_status tnf_job_new(tnf_job **out, tnf_error *e);
/* Completes a job: makes its text, its id and its description. */
tnf_status tnf_job_ready(tnf_job *job, tnf_error *e);
/* Adds a unit of work that is not cut yet, or an item. */
tnf_status tnf_job_unit(tnf_job *job, const struct job_item *unit, tnf_error *e);

/* cut.c: cuts the units into items for the parts. */
tnf_status tnf_job_cut(tnf_job *job, tnf_error *e);
/* Do several parts work on the same tensor, so that finish must join their rows? */
bool tnf_job_is_cut(const tnf_job *job);
/* The items of a part: from `first` up to `end`. */
void tnf_job_items(const tnf_job *job, uint64_t part, size_t *first, size_t *end);
tnf_status tnf_job_copy(const char **out, tnf_job *job, const char *text, size_t n, tnf_error *e);

/* plan_text.c: writes the plan as JSON; without id, paths and times if `bare`. */
void tnf_job_put(tnf_buf *b, const tnf_job *job, bool bare);

/* layout.c: computes the layout of the output, and makes the units of a conversion. */
tnf_status tnf_job_lay_out(tnf_job *job, tnf_error *e);
/* The windows of a part, in the arena. */
tnf_status tnf_job_windows(struct job_window **out, size_t *n, const tnf_job *job, uint64_t part,
                           tnf_arena *arena, tnf_error *e);
/* Runs the conversion of the plan for one output. */
tnf_status tnf_job_convert(tnf_job *job, const tnf_through *through, const tnf_job_how *how,
                           tnf_report **report, tnf_error *e);

/* inputs.c: makes the names of inputs that may be shown. */
tnf_status tnf_job_name(tnf_job *job, tnf_error *e);
/* Opens the inputs that are not open. With `pinned`, compares them with the plan; otherwise notes
 * their identity in the plan. */
tnf_status tnf_job_open(tnf_job *job, bool pinned, const tnf_job_how *how, tnf_error *e);
void tnf_job_close(tnf_job *job);

/* ------------------------------------------------------------------- parts */

/* window.c: a sink for a window of an output, which is open as fd. With fd -1 and an empty window
 * it only learns the layout. */
struct window_sink {
    const tnf_job *job;
    struct job_window window;
    int fd;
    struct job_sending *sending; /* used instead of fd; NULL: none */
    uint64_t pos;
    size_t item;
    tnf_digester leaf, frame;
    bool in_leaf, in_frame;
    uint8_t *leaves; /* gets the hashes of the leaves of the window's items */
    uint8_t frame_hash[TNF_HASH_BYTES];
    /* To learn the layout: gets the place of each part. */
    tnf_status (*place)(void *ctx, tnf_str tensor, const tnf_part *part, uint64_t at, bool cuts,
                        tnf_error *e);
    void *ctx;
    uint64_t framed; /* bytes that belong to no tensor */
    bool unlaid;     /* the layout depends on the content */
    tnf_window wants;
};
tnf_status tnf_window_open(tnf_sink **out, struct window_sink *w, tnf_error *e);
/* Closes the sink, and completes the hash of the frame. */
tnf_status tnf_window_close(tnf_sink *sink, struct window_sink *w, tnf_status status, tnf_error *e);
/* Hashes n bytes at `at` of a file: a leaf, or a part of a frame. */
tnf_status tnf_window_hash(tnf_digester *d, int fd, uint64_t at, uint64_t n, uint8_t *block,
                           tnf_error *e);
#define TNF_WINDOW_BLOCK ((size_t)1 << 20)
#define TNF_LEAF_TITLE   "tenfold leaf 2\n"
#define TNF_FRAME_TITLE  "tenfold frame 1\n"

/* part.c: the path of an output until finish; the caller frees it with tnf_free_path(). */
tnf_status tnf_job_temp(char **out, const tnf_job *job, size_t number, tnf_error *e);
/* The path next to which receipts are stored; NULL: the caller keeps them. */
const char *tnf_job_base(const tnf_job *job, const tnf_job_how *how);
/* Makes the path BASE.tenfold-ID followed by `end`. */
tnf_status tnf_job_path(char **out, const tnf_job *job, const char *base, const char *end,
                        tnf_error *e);
void tnf_free_path(char *path);

/* s3_output.c: is the output an s3 object? Then receipts are stored next to the plan. */
bool tnf_job_is_remote(const tnf_job *job);
/* Checks that the parts of the plan can be parts of an upload. */
tnf_status tnf_s3_check(const tnf_job *job, tnf_error *e);
/* The upload of one part. It sends bytes to the object in pieces, and flush sends the last one. The
 * pieces are listed in `rows`, for the receipt. If *out is not NULL, the caller ends it even after
 * an error. */
struct job_sending;
tnf_status tnf_sending_begin(struct job_sending **out, const tnf_job *job, uint64_t part,
                             const char *base, tnf_buf *rows, tnf_error *e);
tnf_status tnf_sending_take(void *ctx, const void *bytes, size_t n, tnf_error *e);
tnf_status tnf_sending_flush(struct job_sending *s, tnf_error *e);
void tnf_sending_end(struct job_sending *s);

/* mark.c: marks a file as the result of this plan, if the file system can. */
void tnf_job_mark(const tnf_job *job, const char *path);
/* Do all outputs exist, with the mark of this plan, and unchanged since? */
bool tnf_job_marked(const tnf_job *job);

/* The message if the caller gave no `base`. */
#define TNF_NEEDS_BASE                                                                             \
    "an s3 output needs `base`, a path for the receipts that all parts can access"

/* receipt.c */
void tnf_receipt_put(tnf_buf *out, const tnf_job *job, const struct job_receipt *r);
/* Parses a receipt, in place. Fails with TNF_EFORMAT if it is damaged, with TNF_ECHANGED if it
 * belongs to another plan. */
tnf_status tnf_receipt_parse(struct job_receipt *out, tnf_job *job, const char *text, size_t n,
                             tnf_arena *arena, tnf_error *e);
/* Reads a receipt into job->answer; fails with TNF_ENOTFOUND if there is none. */
tnf_status tnf_receipt_read(tnf_job *job, const char *base, uint64_t part, tnf_error *e);
/* Stores job->answer as the receipt of a part. An existing receipt must be the same. */
tnf_status tnf_receipt_leave(tnf_job *job, const char *base, uint64_t part, tnf_error *e);
/* Reads a complete file, of up to `max` bytes, into a buffer. */
tnf_status tnf_read_text(tnf_buf *out, const char *path, uint64_t max, tnf_error *e);
/* Writes a file, which appears only when it is complete. The flags are those of a sink. */
tnf_status tnf_write_text(const char *path, const void *p, size_t n, unsigned flags, tnf_error *e);
/* The status of writing a file that is needed only until finish. TNF_EUNSYNCED is not passed on: a
 * power cut may only cost the work again, and the plan is not done yet. */
tnf_status tnf_until_finish(tnf_status status, const tnf_error *why, tnf_error *e);

/* Initialises an empty text of at most `max` bytes. */
static inline void tnf_text_begin(tnf_buf *b, uint64_t max)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_buf_init(b, &a, max);
}

/* Puts a NUL after a text, as callers get it. It is not counted. */
static inline void tnf_text_end(tnf_buf *b)
{
    tnf_buf_u8(b, 0);
    b->n -= b->status == TNF_OK;
}

static inline void tnf_scratch_begin(tnf_arena *arena)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(arena, &a, UINT64_MAX);
}

/* rows.c: writes the results of a part's items as a JSON array. */
tnf_status tnf_job_rows(tnf_buf *out, tnf_job *job, uint64_t part, const tnf_job_how *how,
                        tnf_error *e);
/* Merges the results of all parts: the members of the result after the job and the id. */
tnf_status tnf_job_merge(tnf_buf *out, tnf_job *job, const struct job_receipt *receipts,
                         tnf_arena *arena, tnf_error *e);

#endif
