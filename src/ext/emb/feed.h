/* SPDX-License-Identifier: MIT */
/* All rows of a matrix, again and again, as training wants them: of length 1, turned, in columns.
 *
 *   rows    [ group 0       ][ group 1       ] …     handed out to threads as they come for more
 *            └ blocks that stay in the second cache
 *
 * What is added up is added up for each group in the order of its rows, and then group by group.
 * How many groups there are depends on the matrix alone: so do the sums, to the bit.
 */
#ifndef TNF_EXT_EMB_FEED_H
#define TNF_EXT_EMB_FEED_H

#include "base/arena.h"
#include "ext/emb/rows.h"
#include "kernels/kmeans.h"
#include <tenfold/tenfold.h>

#include <pthread.h>
#include <stdatomic.h>

struct tnf_feed_room; /* a block, and what it takes to fill it */

typedef struct tnf_feed {
    const tnf_rows *rows;
    const tnf_kmeans_kernels *kernels;
    const float *norms;      /* of all rows, which are divided by them; or NULL: as they are */
    const double *mean;      /* taken off each row; or NULL */
    const float *projection; /* [d][pitch]: rows are multiplied by it; or NULL */
    size_t d, pitch, block;  /* block: rows, a multiple of TNF_TILE */
    unsigned threads;
    struct tnf_feed_room *rooms; /* one a thread */
    tnf_progress_fn progress;    /* called on the thread of the caller; or NULL */
    void *ctx;
    pthread_t caller;
    uint64_t total; /* rows that all passes together go over */
    _Atomic uint64_t done;
} tnf_feed;

/* Rows first … first + n - 1. */
typedef struct tnf_block {
    uint64_t first;
    size_t n, stride; /* stride: of columns */
    float *rows;      /* [n][pitch] */
    float *turned;    /* [n][pitch]: times the projection. Without one, there for any use */
    float *columns;   /* [d][stride]: of the turned rows; 0 from n on */
    float *spare;     /* [stride][pitch], for any use */
    uint8_t *codes;   /* stride of them, for any use */
    double *numbers;  /* 4 times stride, likewise */
} tnf_block;

tnf_status tnf_feed_init(tnf_feed *f, const tnf_rows *rows, const tnf_kmeans_kernels *kernels,
                         unsigned threads, tnf_arena *arena, tnf_error *e);

/* Into how many groups the rows are cut if each needs so many bytes for its sums. */
size_t tnf_feed_groups(const tnf_feed *f, uint64_t bytes);

/* Hands all rows to `take`, a block at a time; blocks of one group in order and one at a time. */
typedef tnf_status tnf_take_rows(void *ctx, size_t group, tnf_block *b, tnf_error *e);
tnf_status tnf_feed_run(tnf_feed *f, size_t groups, tnf_take_rows *take, void *ctx, tnf_error *e);
/* The columns of the rows as they were before they were turned. */
void tnf_feed_columns(const tnf_feed *f, tnf_block *b);

/* A piece of some rows, turned: [count][width]. */
typedef struct tnf_piece {
    size_t first, width; /* components */
} tnf_piece;
void tnf_feed_some(tnf_feed *f, const uint64_t *which, size_t count, tnf_piece piece, float *out);

#endif
