/* SPDX-License-Identifier: MIT */
/* Rotations that make rows easier to quantize.
 *
 * gaussian_opq uses the axes of the rows' covariance, sorted into pieces so that the products of
 * their variances are nearly equal. This is optimal if rows are normally distributed. opq begins
 * with that rotation, and then alternates: it trains centroids for the current rotation, and finds
 * the rotation that moves the rows nearest to their centroids. (T. Ge, K. He, Q. Ke, J. Sun:
 * Optimized Product Quantization for Approximate Nearest Neighbor Search, 2013.)
 */
#include "ext/emb/pq_train.h"

#include "base/ckd.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

#define SMALLEST 1e-12 /* relative to the largest eigenvalue; less is rounding */

tnf_status tnf_opq_room(tnf_trainer *t, tnf_error *e)
{
    size_t d = t->feed.d;
    uint64_t square, all;
    if (!tnf_ckd_mul(&square, d, d) || !tnf_ckd_mul(&square, square, sizeof(double)))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "rows of %zu numbers cannot be rotated", d);
    t->matrix_groups = tnf_row_feed_groups(&t->feed, square);
    if (!tnf_ckd_mul(&all, t->matrix_groups, d))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "rows of %zu numbers cannot be rotated", d);
    t->matrices = tnf_arena_array(t->arena, all, d * sizeof(double));
    t->rotation = tnf_arena_array(t->arena, d, d * sizeof(double));
    t->numbers = tnf_arena_array(t->arena, d, sizeof(double));
    t->projection = tnf_arena_array(t->arena, d, t->feed.pitch * sizeof(float));
    if (!t->matrices || !t->rotation || !t->numbers || !t->projection)
        return tnf_arena_fail(t->arena, "a rotation", e);
    return TNF_OK;
}

/* ------------------------------------------------------------------ sums of products */

/* Adds X^T Y of a block: X is its columns, Y is [n][pitch]. */
static void add_products(const tnf_trainer *t, const tnf_row_block *b, const float *y,
                         double *matrix)
{
    size_t d = t->feed.d, pitch = t->feed.pitch;
    for (size_t first = 0; first < d; first += b->stride) {
        tnf_product p = { .x = b->columns + first * b->stride,
                          .y = y,
                          .out = b->spare,
                          .rows = d - first < b->stride ? d - first : b->stride,
                          .depth = b->n,
                          .cols = pitch,
                          .x_pitch = b->stride,
                          .y_pitch = pitch,
                          .out_pitch = pitch };
        t->feed.kernels->product(&p);
        for (size_t i = 0; i < p.rows; i++)
            for (size_t k = 0; k < d; k++)
                matrix[(first + i) * d + k] += p.out[i * pitch + k];
    }
}

/* Adds the sums of all groups to the first. */
static void join_matrices(tnf_trainer *t, size_t n)
{
    size_t square = t->feed.d * t->feed.d;
    for (size_t g = 1; g < t->matrix_groups; g++)
        for (size_t i = 0; i < n; i++)
            t->matrices[i] += t->matrices[g * square + i];
}

static void forget_matrices(tnf_trainer *t)
{
    memset(t->matrices, 0, t->matrix_groups * t->feed.d * t->feed.d * sizeof *t->matrices);
}

/* ------------------------------------------------------------------------ covariance */

static tnf_status add_columns(void *ctx, size_t group, tnf_row_block *b, tnf_error *e)
{
    tnf_trainer *t = ctx;
    size_t d = t->feed.d;
    double *sums = t->matrices + group * d * d;
    (void)e;
    for (size_t i = 0; i < d; i++)
        for (size_t r = 0; r < b->n; r++)
            sums[i] += b->columns[i * b->stride + r];
    return TNF_OK;
}

static tnf_status add_covariance(void *ctx, size_t group, tnf_row_block *b, tnf_error *e)
{
    tnf_trainer *t = ctx;
    (void)e;
    add_products(t, b, b->rows, t->matrices + group * t->feed.d * t->feed.d);
    return TNF_OK;
}

tnf_status tnf_opq_covariance(tnf_trainer *t, tnf_error *e)
{
    size_t d = t->feed.d;
    double n = (double)t->feed.rows->n;
    t->feed.projection = NULL;
    forget_matrices(t);
    TNF_TRY(tnf_row_feed_run(&t->feed, t->matrix_groups, add_columns, t, e));
    join_matrices(t, d);
    for (size_t i = 0; i < d; i++)
        t->numbers[i] = t->matrices[i] / n;
    forget_matrices(t);
    t->feed.mean = t->numbers;
    tnf_status status = tnf_row_feed_run(&t->feed, t->matrix_groups, add_covariance, t, e);
    t->feed.mean = NULL;
    join_matrices(t, d * d);
    for (size_t i = 0; i < d * d; i++)
        t->matrices[i] /= n - 1;
    return status;
}

/* ----------------------------------------------------------------------- eigenvalues */

/* Sorts positions by value, the largest first; fast if the values are ascending. */
static void sort_down(const double *values, size_t d, size_t *places)
{
    for (size_t n = 0; n < d; n++) {
        size_t value = d - 1 - n, at = n;
        for (; at > 0 && values[places[at - 1]] < values[value]; at--)
            places[at] = places[at - 1];
        places[at] = value;
    }
}

/* The first piece with the smallest product that is not full. */
static size_t smallest_piece(const double *products, const size_t *filled, size_t pieces,
                             size_t width)
{
    size_t found = pieces;
    for (size_t i = 0; i < pieces; i++)
        if (filled[i] < width && (found == pieces || products[i] < products[found]))
            found = i;
    return found;
}

/* Products are computed as logarithms of values relative to the smallest one, so adding a value
 * never makes a product smaller. */
tnf_status tnf_opq_share(const double *values, size_t d, size_t pieces, size_t *order,
                         tnf_arena *arena, tnf_error *e)
{
    size_t width = d / pieces;
    size_t *places = tnf_arena_array(arena, d, sizeof *places);
    size_t *filled = tnf_arena_array(arena, pieces, sizeof *filled);
    double *products = tnf_arena_array(arena, pieces, sizeof *products);
    if (!places || !filled || !products)
        return tnf_arena_fail(arena, "eigenvalues", e);
    sort_down(values, d, places);
    double most = values[places[0]] > 0 ? values[places[0]] : 1;
    double least = values[places[d - 1]];
    least = least < most * SMALLEST ? most * SMALLEST : least;
    for (size_t i = 0; i < d; i++) {
        double value = values[places[i]] < least ? least : values[places[i]];
        size_t piece = smallest_piece(products, filled, pieces, width);
        order[piece * width + filled[piece]++] = places[i];
        products[piece] += log(value / least);
    }
    return TNF_OK;
}

tnf_status tnf_opq_gaussian(tnf_trainer *t, tnf_error *e)
{
    size_t d = t->feed.d, *order = tnf_arena_array(t->arena, d, sizeof *order);
    if (!order)
        return tnf_arena_fail(t->arena, "eigenvalues", e);
    TNF_TRY(tnf_opq_covariance(t, e));
    TNF_TRY(tnf_eigen(t->matrices, d, t->numbers, t->alloc, e));
    TNF_TRY(tnf_opq_share(t->numbers, d, t->m, order, t->arena, e));
    for (size_t k = 0; k < d; k++)
        for (size_t a = 0; a < d; a++)
            t->projection[a * t->feed.pitch + k] = (float)t->matrices[order[k] * d + a];
    t->feed.projection = t->projection;
    return TNF_OK;
}

/* ------------------------------------------------------------------------------- opq */

static tnf_status add_correlation(void *ctx, size_t group, tnf_row_block *b, tnf_error *e)
{
    tnf_trainer *t = ctx;
    size_t d = t->feed.d, pitch = t->feed.pitch, width = t->width;
    (void)e;
    for (size_t piece = 0; piece < t->m; piece++) {
        tnf_trainer_encode(t, piece, b);
        for (size_t r = 0; r < b->n; r++)
            memcpy(b->rotated + r * pitch + piece * width,
                   t->centroids + (piece * t->padded + b->codes[r]) * width, width * sizeof(float));
    }
    tnf_row_feed_columns(&t->feed, b);
    add_products(t, b, b->rotated, t->matrices + group * d * d);
    return TNF_OK;
}

/* Finds the rotation that moves rows nearest to their reconstructions. */
static tnf_status improve_rotation(tnf_trainer *t, tnf_error *e)
{
    size_t d = t->feed.d;
    forget_matrices(t);
    TNF_TRY(tnf_row_feed_run(&t->feed, t->matrix_groups, add_correlation, t, e));
    join_matrices(t, d * d);
    TNF_TRY(tnf_nearest_rotation(t->matrices, d, t->rotation, t->alloc, e));
    for (size_t a = 0; a < d; a++)
        for (size_t k = 0; k < d; k++)
            t->projection[a * t->feed.pitch + k] = (float)t->rotation[a * d + k];
    return TNF_OK;
}

tnf_status tnf_opq_train(tnf_trainer *t, tnf_error *e)
{
    TNF_TRY(tnf_opq_gaussian(t, e));
    tnf_kmeans_start(t, 0);
    for (size_t round = 0; round < t->rounds; round++) {
        TNF_TRY(tnf_kmeans_round(t, e));
        TNF_TRY(improve_rotation(t, e));
    }
    return TNF_OK;
}
