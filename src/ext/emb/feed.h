/* SPDX-License-Identifier: MIT */
/* Passes all rows of a matrix to training, many times: normalised, rotated, in columns.
 *
 *   rows    [ group 0       ][ group 1       ] …     handed out to threads on request
 *            └ blocks that stay in the L2 cache
 *
 * Sums are made for each group in the order of its rows, and then group by group. The number of
 * groups depends only on the matrix, so the sums are the same to the bit.
 */
#ifndef TNF_EXT_EMB_FEED_H
#define TNF_EXT_EMB_FEED_H

#include "base/arena.h"
#include "ext/emb/rows.h"
#include "kernels/kmeans.h"
#include <tenfold/tenfold.h>

#include <pthread.h>
#include <stdatomic.h>

struct tnf_row_feed_room; /* a block, and memory to fill it */

typedef struct tnf_row_feed {
    const tnf_rows *rows;
    const tnf_kmeans_kernels *kernels;
    const float *norms;      /* rows are divided by their norms; NULL: unchanged */
    const double *mean;      /* subtracted from each row; or NULL */
    const float *projection; /* [d][pitch]: rows are multiplied by it; or NULL */
    size_t d, pitch, block;  /* block: rows, a multiple of TNF_TILE */
    unsigned threads;
    struct tnf_row_feed_room *rooms; /* one per thread */
    tnf_progress_fn progress;        /* called on the caller's thread; or NULL */
    void *ctx;
    pthread_t caller;
    uint64_t total; /* rows of all passes together */
    _Atomic uint64_t done;
} tnf_row_feed;

/* The rows first … first + n - 1. */
typedef struct tnf_row_block {
    uint64_t first;
    size_t n, stride; /* stride: of columns */
    float *rows;      /* [n][pitch] */
    float *rotated;   /* [n][pitch]: times the projection; without one, for any use */
    float *columns;   /* [d][stride]: of the rotated rows; 0 from n on */
    float *spare;     /* [stride][pitch], for any use */
    uint8_t *codes;   /* [stride], for any use */
    double *numbers;  /* [4 * stride], for any use */
} tnf_row_block;

tnf_status tnf_row_feed_init(tnf_row_feed *f, const tnf_rows *rows,
                             const tnf_kmeans_kernels *kernels, unsigned threads, tnf_arena *arena,
                             tnf_error *e);

/* The number of groups if each one needs `bytes` bytes for its sums. */
size_t tnf_row_feed_groups(const tnf_row_feed *f, uint64_t bytes);

/* Passes all rows to `take` in blocks. The blocks of a group come in order, one at a time. */
typedef tnf_status tnf_take_rows(void *ctx, size_t group, tnf_row_block *b, tnf_error *e);
tnf_status tnf_row_feed_run(tnf_row_feed *f, size_t groups, tnf_take_rows *take, void *ctx,
                            tnf_error *e);
/* Sets the columns to those of the rows before the rotation. */
void tnf_row_feed_columns(const tnf_row_feed *f, tnf_row_block *b);

/* A range of components. tnf_row_feed_some() writes it for some rotated rows: [count][width]. */
typedef struct tnf_row_piece {
    size_t first, width; /* components */
} tnf_row_piece;
void tnf_row_feed_some(tnf_row_feed *f, const uint64_t *which, size_t count, tnf_row_piece piece,
                       float *out);

#endif
