/* SPDX-License-Identifier: MIT */
/* What the files about plans share.
 *
 *   plan.c       what is asked for ─> inputs, units of work
 *   cut.c        … cut into items for the parts
 *   plan_text.c  the plan as JSON, and back
 *   inputs.c     opens the inputs and holds them against the plan
 *   layout.c     where the bytes of a conversion will lie
 *   window.c     a sink that takes some of those bytes, and hashes them
 *   part.c       does the items of a part
 *   rows*.c      … of verify, stat, diff and similar; pieces.c: of some leaves of a tensor
 *   merge.c      puts their results together
 *   receipt.c    what a part leaves behind
 *   finish.c     checks, merges, makes visible; finish_hash.c: … hashes;
 *   finish_output.c  what is told of a file; finish_input.c: … compared with the input
 *   object.c     an object of s3 as the output
 *   mark.c       how a result tells whose it is
 */
#ifndef TNF_JOB_JOB_H
#define TNF_JOB_JOB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/look/leaves.h"
#include "job/through.h"
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
    const char *name; /* as the input calls it; the input itself: its path */
    uint64_t size;
    bool dated; /* it has a time of change */
    uint64_t mtime_ns;
    const char *etag; /* of an object of another machine; NULL: none */
};

struct job_input {
    struct job_pin own;
    const char *shown; /* its path in messages and results: a URL without what may be a secret */
    struct job_pin *shards;
    size_t nshards;
    char header[TNF_ID_BYTES]; /* the hash of all that its header says */
    tnf_file *file;            /* NULL: not opened yet */
};

/* A file that is written. */
struct job_out {
    const char *path;
    uint64_t size; /* 0 if it is not known before it is written */
};

/* A piece of work of one part of the plan. Of a conversion, tensors are those of the output. */
struct job_item {
    uint64_t part;
    size_t in, index; /* the tensor; TNF_NO_INDEX: of the output, or a whole file */
    uint32_t k;       /* which part of the tensor; all of them if `whole` */
    bool whole, atom; /* atom: it cannot be cut */
    tnf_str tensor;   /* its name */
    const char *role; /* "": all parts */
    uint64_t offset, bytes;
    uint64_t first, n; /* leaves, or rows */
    size_t out;
    uint64_t at;   /* where they lie in the output */
    uint64_t cost; /* bytes to be read */
    uint64_t step; /* of a unit: bytes to be read for each of n; 0: a leaf */
};

struct tnf_job {
    tnf_arena arena;
    tnf_job_kind kind;
    tnf_job_options o; /* all it points to is in the arena */
    struct job_input *inputs;
    struct job_item *items; /* by part */
    size_t nitems, room;
    struct job_out *outs; /* by path; those of a split, without the index */
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
    size_t item, nitems; /* that lie in it */
};

/* What is in a receipt. */
struct job_receipt {
    uint64_t part, bytes;
    tnf_str leaves; /* hex: of all leaves, in the order of the items */
    tnf_str frame;  /* hex: of what lies around them, for each window */
    tnf_str rows;   /* JSON: an array of results */
};

/* ------------------------------------------------------------------- plans */

/* plan.c */
tnf_status tnf_job_new(tnf_job **out, tnf_error *e);
/* After all is known: the text, the id, what it is in numbers. */
tnf_status tnf_job_ready(tnf_job *job, tnf_error *e);
/* One more unit of work, not cut yet, or item. */
tnf_status tnf_job_unit(tnf_job *job, const struct job_item *unit, tnf_error *e);

/* cut.c: cuts the units into items for the parts. */
tnf_status tnf_job_cut(tnf_job *job, tnf_error *e);
/* Are there tensors that several parts look at, whose rows are put together by finish? */
bool tnf_job_is_cut(const tnf_job *job);
/* The items of a part: the first, and behind the last. */
void tnf_job_items(const tnf_job *job, uint64_t part, size_t *first, size_t *end);
tnf_status tnf_job_copy(const char **out, tnf_job *job, const char *text, size_t n, tnf_error *e);

/* plan_text.c: without id, paths and times if `bare`. */
void tnf_job_put(tnf_buf *b, const tnf_job *job, bool bare);

/* layout.c: where the bytes of the output lie; the units of a conversion. */
tnf_status tnf_job_lay_out(tnf_job *job, tnf_error *e);
/* The windows of a part, in the arena. */
tnf_status tnf_job_windows(struct job_window **out, size_t *n, const tnf_job *job, uint64_t part,
                           tnf_arena *arena, tnf_error *e);
/* What converts to the output `number`, by the options of the plan. */
tnf_status tnf_job_convert(tnf_job *job, const tnf_through *through, const tnf_job_how *how,
                           tnf_report **report, tnf_error *e);

/* inputs.c: what each is called where others may read it. */
tnf_status tnf_job_name(tnf_job *job, tnf_error *e);
/* Opens those that are not open, and holds them against the plan (`pinned`), or notes
 * what they are. */
tnf_status tnf_job_open(tnf_job *job, bool pinned, const tnf_job_how *how, tnf_error *e);
void tnf_job_close(tnf_job *job);

/* ------------------------------------------------------------------- parts */

/* window.c: a sink for a window of an output, which is open as fd; -1 and a window of nothing: only
 * to learn where things lie. */
struct window_sink {
    const tnf_job *job;
    struct job_window window;
    int fd;
    struct job_sending *sending; /* instead of fd; NULL: none */
    uint64_t pos;
    size_t item;
    tnf_digester leaf, frame;
    bool in_leaf, in_frame;
    uint8_t *leaves; /* room for those of the window's items */
    uint8_t frame_hash[TNF_HASH_BYTES];
    /* To learn: told of each part. */
    tnf_status (*place)(void *ctx, tnf_str tensor, const tnf_part *part, uint64_t at, bool cuts,
                        tnf_error *e);
    void *ctx;
    uint64_t framed; /* bytes that are of no tensor */
    bool unlaid;     /* where things lie depends on what is in them */
    tnf_window wants;
};
tnf_status tnf_window_open(tnf_sink **out, struct window_sink *w, tnf_error *e);
/* Closes it; the hash of the frame is ready then. */
tnf_status tnf_window_close(tnf_sink *sink, struct window_sink *w, tnf_status status, tnf_error *e);
/* The hash of n bytes at `at` of a file: of a leaf, or of a frame that goes on. */
tnf_status tnf_window_hash(tnf_digester *d, int fd, uint64_t at, uint64_t n, uint8_t *block,
                           tnf_error *e);
#define TNF_WINDOW_BLOCK ((size_t)1 << 20)
#define TNF_LEAF_TITLE   "tenfold leaf 2\n"
#define TNF_FRAME_TITLE  "tenfold frame 1\n"

/* part.c: where an output lies until finish: for the caller to free with tnf_free_path(). */
tnf_status tnf_job_temp(char **out, const tnf_job *job, size_t number, tnf_error *e);
/* What receipts lie beside; NULL: the caller keeps them. */
const char *tnf_job_base(const tnf_job *job, const tnf_job_how *how);
/* base.tenfold-ID.parts and what follows. */
tnf_status tnf_job_path(char **out, const tnf_job *job, const char *base, const char *end,
                        tnf_error *e);
void tnf_free_path(char *path);

/* object.c: is the output an object of s3? Then its receipts lie beside the plan. */
bool tnf_job_far(const tnf_job *job);
/* Are the parts of the plan such that they can be parts of an upload? */
tnf_status tnf_object_check(const tnf_job *job, tnf_error *e);
/* A part's share of the upload. What it takes goes to the object in pieces, flush sends the last;
 * rows become what the receipt says of them. To be ended in any case, if *out is not NULL. */
struct job_sending;
tnf_status tnf_sending_begin(struct job_sending **out, const tnf_job *job, uint64_t part,
                             const char *base, tnf_buf *rows, tnf_error *e);
tnf_status tnf_sending_take(void *ctx, const void *bytes, size_t n, tnf_error *e);
tnf_status tnf_sending_flush(struct job_sending *s, tnf_error *e);
void tnf_sending_end(struct job_sending *s);

/* mark.c: notes that a file is the result of this plan, where the file system can. */
void tnf_job_mark(const tnf_job *job, const char *path);
/* Are all outputs there, marked as this plan's, and unchanged since? */
bool tnf_job_marked(const tnf_job *job);

/* receipt.c */
void tnf_receipt_put(tnf_buf *out, const tnf_job *job, const struct job_receipt *r);
/* Takes it apart, in place; TNF_EFORMAT if it is not whole, TNF_ECHANGED if it is another plan's.
 */
tnf_status tnf_receipt_parse(struct job_receipt *out, tnf_job *job, const char *text, size_t n,
                             tnf_arena *arena, tnf_error *e);
/* The text of a receipt, in job->answer; TNF_ENOTFOUND if there is none. */
tnf_status tnf_receipt_read(tnf_job *job, const char *base, uint64_t part, tnf_error *e);
/* Leaves job->answer as the receipt of a part. If there is one already, it must say the same. */
tnf_status tnf_receipt_leave(tnf_job *job, const char *base, uint64_t part, tnf_error *e);
/* A whole file, up to `max` bytes, into a buffer. */
tnf_status tnf_read_text(tnf_buf *out, const char *path, uint64_t max, tnf_error *e);
/* Flags are those of a sink. It appears whole, or not at all. */
tnf_status tnf_write_text(const char *path, const void *p, size_t n, unsigned flags, tnf_error *e);

/* An empty text of at most so many bytes. */
static inline void tnf_text_begin(tnf_buf *b, uint64_t max)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_buf_init(b, &a, max);
}

static inline void tnf_scratch_begin(tnf_arena *arena)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(arena, &a, UINT64_MAX);
}

bool tnf_take_hex(uint8_t *out, tnf_str hex);

/* rows.c: the results of a part's items, as a JSON array. */
tnf_status tnf_job_rows(tnf_buf *out, tnf_job *job, uint64_t part, const tnf_job_how *how,
                        tnf_error *e);
/* All of them together: the members of the result behind the job and the id. */
tnf_status tnf_job_merge(tnf_buf *out, tnf_job *job, const struct job_receipt *receipts,
                         tnf_arena *arena, tnf_error *e);

#endif
