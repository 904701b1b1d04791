/* SPDX-License-Identifier: MIT */
/* Shared by the files of the comparison:
 *
 *   diff.c         matching tensors, their descriptions; everything in order
 *   diff_values.c  the bytes of pairs of parts, on several threads
 *   diff_numbers.c the distance between numbers
 *   diff_attrs.c   attribute trees
 */
#ifndef TNF_CORE_LOOK_DIFF_H
#define TNF_CORE_LOOK_DIFF_H

#include "core/core.h"
#include "core/look/diff_partial.h"
#include "core/look/progress.h"
#include "core/read/stream.h"
#include <tenfold/diff.h>
#include <tenfold/virtual.h>

#include <pthread.h>
#include <stdatomic.h>

/* OTHER_BITS: not equal, but close enough. */
enum verdict { SAME, OTHER_BITS, DIFFERENT };

/* Two parts to be compared. */
struct comparison {
    const tnf_object *a_of, *b_of;
    const tnf_part *a, *b;
    bool transposed;        /* one is column-major */
    bool direct;            /* both can be read at any position, by many threads */
    bool numbers;           /* their elements are numbers of known width */
    bool exact;             /* two elements are equal only if their bits are */
    bool preset;            /* they must be compared as numbers */
    atomic_bool unlike;     /* `preset`, or their bytes differ */
    uint64_t first, n;      /* leaves; n == 0: all of them */
    tnf_diff_sums *tallies; /* of each leaf */
    enum verdict verdict;
    tnf_value_difference found;
};

/* The numbers that a quantized tensor represents. */
struct made_values {
    tnf_virtual *values;
    struct made_values *next;
};

struct diff {
    const tnf_file *a, *b;
    tnf_diff_options options;
    tnf_diff_result *result;
    tnf_arena *arena;
    struct comparison *comparisons;
    size_t n;
    struct made_values *made;
    const tnf_diff_part *some; /* NULL: everything is compared here */
    tnf_progress progress;
    atomic_bool stop;     /* a difference was found, and one is enough */
    pthread_mutex_t lock; /* guards progress and result->failed */
};

/* diff_values.c: the verdicts on all comparisons. */
tnf_status tnf_diff_values(struct diff *d, tnf_error *e);

/* diff_numbers.c: adds n elements of both, packed from their first bit on. The first is element
 * `first` of its tensor. At most TNF_DIFF_MOST at a time. */
#define TNF_DIFF_MOST 1024u
void tnf_diff_add(tnf_diff_sums *t, const struct diff *d, const struct comparison *c,
                  uint64_t first, const uint8_t *a, const uint8_t *b, size_t n);
/* The same for elements with equal bits, which is faster; false: they must be examined. */
bool tnf_diff_add_same(tnf_diff_sums *t, const struct diff *d, const struct comparison *c,
                       const uint8_t *a, size_t n);
/* The same for bytes that are not numbers. */
void tnf_diff_add_bytes(tnf_diff_sums *t, uint64_t first, const uint8_t *a, const uint8_t *b,
                        size_t n);
/* Adds `more`, the sums of later elements. */
void tnf_diff_add_sums(tnf_diff_sums *t, const tnf_diff_sums *more);
void tnf_diff_end(tnf_value_difference *out, const tnf_diff_sums *t, const struct comparison *c);

/* diff_attrs.c: reports the differences of two maps of attributes; either may be NULL. */
tnf_status tnf_diff_attrs(struct diff *d, const tnf_object *a_of, const tnf_object *b_of,
                          const tnf_value *a, const tnf_value *b, uint64_t *found, tnf_error *e);

/* diff.c */
void tnf_diff_tell(struct diff *d, const tnf_difference *difference);
/* *out becomes true if two tensors are equal in everything but their names. */
tnf_status tnf_same_tensor(bool *out, const tnf_object *a, const tnf_object *b,
                           const tnf_allocator *alloc, tnf_error *e);

/* Changes a name as the caller's function says; NULL: the name stays. */
static inline tnf_status tnf_name_renamed(tnf_str *name, tnf_rename_fn rename, void *ctx,
                                          tnf_error *e)
{
    tnf_status status = TNF_OK;
    if (rename)
        TNF_CALL(status, e, rename, ctx, name, *name);
    return status == TNF_OK ? tnf_need_str(*name, "rename", e) : status;
}

#endif
