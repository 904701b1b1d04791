/* SPDX-License-Identifier: MIT */
/* Training of a product quantizer: k-means on every piece of the rows. */
#ifndef TNF_EXT_EMB_PQ_TRAIN_H
#define TNF_EXT_EMB_PQ_TRAIN_H

#include "base/arena.h"
#include "ext/emb/feed.h"

typedef struct tnf_trainer {
    tnf_row_feed feed;
    tnf_arena *arena; /* memory of the training */
    const tnf_allocator *alloc;
    size_t m, k;             /* pieces of a row; centroids for each */
    size_t width, padded;    /* components of a piece; as in tnf_book */
    size_t rounds, attempts; /* the best attempt is kept */
    uint64_t seed;
    float *centroids;           /* [m][padded][width] */
    float *half, *transposed;   /* [m][padded]; [m][width][padded] */
    float *best;                /* [m][padded][width]: the best attempt so far */
    double *best_loss;          /* [m] */
    size_t groups;              /* each has its own sums, all 0 between rounds: */
    double *sums;               /* [groups][m][k][width] */
    uint64_t *counts;           /* [groups][m][k] */
    double *losses;             /* [groups][m] */
    float *projection;          /* [d][pitch]; or NULL */
    size_t matrix_groups;       /* opq: */
    double *matrices;           /* [matrix_groups][d][d] */
    double *rotation, *numbers; /* [d][d]; [d] */
} tnf_trainer;

/* Allocates the arrays, after the numbers are set. */
tnf_status tnf_trainer_room(tnf_trainer *t, tnf_error *e);
tnf_book tnf_trainer_book(const tnf_trainer *t, size_t piece);
/* Finds the nearest centroids of a piece for the rows of a block, in b->codes. */
void tnf_trainer_encode(const tnf_trainer *t, size_t piece, tnf_row_block *b);

/* Sets the centroids to random rows. */
void tnf_kmeans_start(tnf_trainer *t, size_t attempt);
/* Must be called after centroids have changed. */
void tnf_kmeans_prepare(tnf_trainer *t, size_t piece);
/* Moves every centroid to the mean of the rows to which it is the nearest. A centroid without such
 * rows does not move. */
tnf_status tnf_kmeans_round(tnf_trainer *t, tnf_error *e);
/* Runs the complete training, and keeps the best of all attempts. */
tnf_status tnf_pq_train(tnf_trainer *t, tnf_error *e);

/* ---------------------------------------------------------------- opq.c */

/* Loads LAPACK; fails with TNF_EUNSUPPORTED if there is none. */
tnf_status tnf_opq_ready(tnf_error *e);
tnf_status tnf_opq_room(tnf_trainer *t, tnf_error *e);
/* Computes a projection onto the axes of the rows' covariance, so that all pieces have nearly the
 * same information. */
tnf_status tnf_opq_gaussian(tnf_trainer *t, tnf_error *e);
/* Begins with the same projection, then trains centroids and projection alternately. */
tnf_status tnf_opq_train(tnf_trainer *t, tnf_error *e);
/* Assigns eigenvectors to pieces: order[piece * width + i] is one of d. Eigenvalues are taken in
 * descending order, each for the piece with the smallest product that is not full. */
tnf_status tnf_opq_share(const double *values, size_t d, size_t pieces, size_t *order,
                         tnf_arena *arena, tnf_error *e);
/* Computes the covariance of all rows, divided by n - 1, as the first of t->matrices. */
tnf_status tnf_opq_covariance(tnf_trainer *t, tnf_error *e);

/* opq_lapack.c, for [d][d] matrices. Replaces a symmetric matrix by its eigenvectors as rows, the
 * smallest eigenvalue first. The largest component of each is positive. */
tnf_status tnf_eigen(double *matrix, size_t d, double *values, const tnf_allocator *alloc,
                     tnf_error *e);
/* The rotation that is nearest to a matrix: U V^T of its singular value decomposition. The matrix
 * is overwritten. */
tnf_status tnf_nearest_rotation(double *matrix, size_t d, double *out, const tnf_allocator *alloc,
                                tnf_error *e);

#endif
