/* SPDX-License-Identifier: MIT */
/* Training of a product quantizer: k-means on every piece of the rows. */
#ifndef TNF_EXT_EMB_PQ_TRAIN_H
#define TNF_EXT_EMB_PQ_TRAIN_H

#include "base/arena.h"
#include "ext/emb/feed.h"

typedef struct tnf_trainer {
    tnf_feed feed;
    tnf_arena *arena; /* for what training needs */
    const tnf_allocator *alloc;
    size_t m, k;             /* pieces of a row; centroids for each */
    size_t width, padded;    /* components of a piece; as in tnf_book */
    size_t rounds, attempts; /* attempts: the best of so many */
    uint64_t seed;
    float *centroids;           /* [m][padded][width] */
    float *half, *turned;       /* [m][padded]; [m][width][padded] */
    float *best;                /* [m][padded][width]: of the attempts so far */
    double *best_loss;          /* [m] */
    size_t groups;              /* each with sums of its own, all 0 between rounds: */
    double *sums;               /* [groups][m][k][width] */
    uint64_t *counts;           /* [groups][m][k] */
    double *losses;             /* [groups][m] */
    float *projection;          /* [d][pitch]; or NULL */
    size_t matrix_groups;       /* opq: */
    double *matrices;           /* [matrix_groups][d][d] */
    double *rotation, *numbers; /* [d][d]; [d] */
} tnf_trainer;

/* Numbers are set; makes room for the rest. */
tnf_status tnf_trainer_room(tnf_trainer *t, tnf_error *e);
tnf_book tnf_trainer_book(const tnf_trainer *t, size_t piece);
/* The nearest centroids of a piece for the rows of a block: in b->codes. */
void tnf_trainer_encode(const tnf_trainer *t, size_t piece, tnf_block *b);

/* Random rows as centroids. */
void tnf_kmeans_start(tnf_trainer *t, size_t attempt);
/* What changed centroids must be followed by. */
void tnf_kmeans_prepare(tnf_trainer *t, size_t piece);
/* Every centroid becomes the mean of the rows that it is the nearest to. One that is the nearest to
 * none stays where it is. */
tnf_status tnf_kmeans_round(tnf_trainer *t, tnf_error *e);
/* All of it: the best of some attempts. */
tnf_status tnf_pq_train(tnf_trainer *t, tnf_error *e);

/* ---------------------------------------------------------------- opq.c */

/* Loads LAPACK; TNF_EUNSUPPORTED if there is none. */
tnf_status tnf_opq_ready(tnf_error *e);
tnf_status tnf_opq_room(tnf_trainer *t, tnf_error *e);
/* A projection onto the axes of the rows' covariance, such that no piece has much more to tell than
 * another. */
tnf_status tnf_opq_gaussian(tnf_trainer *t, tnf_error *e);
/* The same to begin with, and then centroids and projection in turns. */
tnf_status tnf_opq_train(tnf_trainer *t, tnf_error *e);
/* Which eigenvectors go to which piece: order[piece * width + i] is one of d. Largest eigenvalue
 * first, each into the piece that is not full and has the smallest product so far. */
tnf_status tnf_opq_share(const double *values, size_t d, size_t pieces, size_t *order,
                         tnf_arena *arena, tnf_error *e);
/* The covariance of all rows, divided by n - 1: the first of t->matrices. */
tnf_status tnf_opq_covariance(tnf_trainer *t, tnf_error *e);

/* opq_lapack.c, of [d][d] matrices. Eigenvectors of a symmetric one, as rows in its place, the
 * smallest eigenvalue first; the largest component of each is positive. */
tnf_status tnf_eigen(double *matrix, size_t d, double *values, const tnf_allocator *alloc,
                     tnf_error *e);
/* The rotation that is nearest to a matrix: U V^T of its singular value decomposition. The matrix
 * is overwritten. */
tnf_status tnf_nearest_rotation(double *matrix, size_t d, double *out, const tnf_allocator *alloc,
                                tnf_error *e);

#endif
