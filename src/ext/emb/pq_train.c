/* SPDX-License-Identifier: MIT */
/* k-means on every piece of the rows, all pieces in one pass over the matrix.
 *
 *   row      │ piece 0 │ piece 1 │ … │ piece m-1 │
 *   nearest       17        203             4          of k centroids; each piece has its own
 *   sums     [0][17] += piece 0, [1][203] += piece 1 …   and after all rows: means
 *
 * The rules are those of reductive, which finalfusion uses: training starts with distinct random
 * rows, runs exactly the requested number of rounds, and keeps for each piece the attempt with the
 * smallest squared error. One rule differs: a centroid that is the nearest to no row does not move.
 * In reductive it becomes zero.
 */
#include "ext/emb/pq_train.h"

#include "base/ckd.h"
#include "base/error.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

/* --------------------------------------------------------------------------- room */

tnf_status tnf_trainer_room(tnf_trainer *t, tnf_error *e)
{
    uint64_t all = (uint64_t)t->m * t->k;
    t->width = t->feed.d / t->m;
    t->padded = (t->k + TNF_GROUP - 1) / TNF_GROUP * TNF_GROUP;
    uint64_t padded = (uint64_t)t->m * t->padded;
    t->groups = tnf_row_feed_groups(&t->feed,
                                    all * (t->width * sizeof *t->sums + sizeof *t->counts));
    t->centroids = tnf_arena_array(t->arena, padded, t->width * sizeof(float));
    t->half = tnf_arena_array(t->arena, padded, sizeof(float));
    t->transposed = tnf_arena_array(t->arena, padded, t->width * sizeof(float));
    t->best = tnf_arena_array(t->arena, padded, t->width * sizeof(float));
    t->best_loss = tnf_arena_array(t->arena, t->m, sizeof(double));
    t->sums = tnf_arena_array(t->arena, t->groups * all, t->width * sizeof(double));
    t->counts = tnf_arena_array(t->arena, t->groups * all, sizeof(uint64_t));
    t->losses = tnf_arena_array(t->arena, (uint64_t)t->groups * t->m, sizeof(double));
    if (!t->centroids || !t->half || !t->transposed || !t->best || !t->best_loss || !t->sums ||
        !t->counts || !t->losses)
        return tnf_arena_fail(t->arena, "centroids", e);
    return TNF_OK;
}

tnf_book tnf_trainer_book(const tnf_trainer *t, size_t piece)
{
    return (tnf_book) { .width = t->width,
                        .k = t->k,
                        .padded = t->padded,
                        .centroids = t->centroids + piece * t->padded * t->width,
                        .half = t->half + piece * t->padded,
                        .transposed = t->transposed + piece * t->padded * t->width };
}

void tnf_trainer_encode(const tnf_trainer *t, size_t piece, tnf_row_block *b)
{
    tnf_book book = tnf_trainer_book(t, piece);
    const float *columns = b->columns + piece * t->width * b->stride;
    for (size_t r = 0; r < b->n; r += TNF_TILE)
        t->feed.kernels->nearest(&book, columns + r, b->stride, b->codes + r);
}

/* -------------------------------------------------------------------------- start */

/* SplitMix64. */
static uint64_t draw_number(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A random number below n, all equally likely. */
static uint64_t draw_below(uint64_t *state, uint64_t n)
{
    uint64_t over = (UINT64_MAX - n + 1) % n, x; /* 2^64 mod n */
    do
        x = draw_number(state);
    while (x < over);
    return x % n;
}

static bool is_among(const uint64_t *some, size_t n, uint64_t one)
{
    for (size_t i = 0; i < n; i++)
        if (some[i] == one)
            return true;
    return false;
}

void tnf_kmeans_prepare(tnf_trainer *t, size_t piece)
{
    size_t at = piece * t->padded;
    for (size_t c = 0; c < t->padded; c++) {
        const float *centroid = t->centroids + (at + c) * t->width;
        double square = 0;
        for (size_t i = 0; i < t->width; i++) {
            square += (double)centroid[i] * centroid[i];
            t->transposed[at * t->width + i * t->padded + c] = centroid[i];
        }
        t->half[at + c] = c < t->k ? (float)(square / 2) : INFINITY;
    }
}

/* Each piece gets its own random rows, so a poor choice of rows affects only one piece. */
void tnf_kmeans_start(tnf_trainer *t, size_t attempt)
{
    uint64_t state = t->seed, which[256];
    for (size_t i = 0; i <= attempt; i++)
        state = draw_number(&state);
    for (size_t m = 0; m < t->m; m++) {
        tnf_row_piece piece = { m * t->width, t->width };
        for (size_t c = 0; c < t->k; c++)
            do
                which[c] = draw_below(&state, t->feed.rows->n);
            while (is_among(which, c, which[c]));
        tnf_row_feed_some(&t->feed, which, t->k, piece, t->centroids + m * t->padded * t->width);
        tnf_kmeans_prepare(t, m);
    }
}

/* -------------------------------------------------------------------------- round */

/* For common widths, callers pass a constant, so the compiler can optimise for it. */
static inline __attribute__((always_inline)) void add_pieces(const tnf_row_block *b,
                                                             const float *columns, size_t width,
                                                             double *sums, uint64_t *counts)
{
    for (size_t r = 0; r < b->n; r++) {
        double *sum = sums + b->codes[r] * width;
        counts[b->codes[r]]++;
        for (size_t i = 0; i < width; i++)
            sum[i] += columns[i * b->stride + r];
    }
}

static void add_rows(const tnf_trainer *t, size_t piece, const tnf_row_block *b, double *sums,
                     uint64_t *counts)
{
    const float *columns = b->columns + piece * t->width * b->stride;
    if (t->width == 2)
        add_pieces(b, columns, 2, sums, counts);
    else if (t->width == 3)
        add_pieces(b, columns, 3, sums, counts);
    else if (t->width == 4)
        add_pieces(b, columns, 4, sums, counts);
    else
        add_pieces(b, columns, t->width, sums, counts);
}

static tnf_status add_block(void *ctx, size_t group, tnf_row_block *b, tnf_error *e)
{
    tnf_trainer *t = ctx;
    (void)e;
    for (size_t piece = 0; piece < t->m; piece++) {
        size_t at = (group * t->m + piece) * t->k;
        tnf_trainer_encode(t, piece, b);
        add_rows(t, piece, b, t->sums + at * t->width, t->counts + at);
    }
    return TNF_OK;
}

/* Adds the sums of all groups to those of the first group, and sets the others to 0. */
static void join_groups(tnf_trainer *t, size_t piece)
{
    size_t n = t->k * t->width, next = t->m * t->k;
    for (size_t g = 1; g < t->groups; g++) {
        double *sums = t->sums + piece * n, *more = sums + g * next * t->width;
        uint64_t *counts = t->counts + piece * t->k, *others = counts + g * next;
        for (size_t i = 0; i < n; i++)
            sums[i] += more[i];
        for (size_t c = 0; c < t->k; c++)
            counts[c] += others[c];
        memset(more, 0, n * sizeof *more);
        memset(others, 0, t->k * sizeof *others);
    }
}

static tnf_status move_centroids(void *ctx, size_t piece, tnf_error *e)
{
    tnf_trainer *t = ctx;
    double *sums = t->sums + piece * t->k * t->width;
    uint64_t *counts = t->counts + piece * t->k;
    (void)e;
    join_groups(t, piece);
    for (size_t c = 0; c < t->k; c++) {
        float *centroid = t->centroids + (piece * t->padded + c) * t->width;
        for (size_t i = 0; counts[c] > 0 && i < t->width; i++)
            centroid[i] = (float)(sums[c * t->width + i] / (double)counts[c]);
    }
    memset(sums, 0, t->k * t->width * sizeof *sums);
    memset(counts, 0, t->k * sizeof *counts);
    tnf_kmeans_prepare(t, piece);
    return TNF_OK;
}

tnf_status tnf_kmeans_round(tnf_trainer *t, tnf_error *e)
{
    TNF_TRY(tnf_row_feed_run(&t->feed, t->groups, add_block, t, e));
    return tnf_pool_run(t->feed.threads, t->m, move_centroids, t, e);
}

/* ----------------------------------------------------------------------- attempts */

static tnf_status add_losses(void *ctx, size_t group, tnf_row_block *b, tnf_error *e)
{
    tnf_trainer *t = ctx;
    (void)e;
    for (size_t piece = 0; piece < t->m; piece++) {
        const float *columns = b->columns + piece * t->width * b->stride;
        double loss = 0;
        tnf_trainer_encode(t, piece, b);
        for (size_t r = 0; r < b->n; r++) {
            const float *c = t->centroids + (piece * t->padded + b->codes[r]) * t->width;
            for (size_t i = 0; i < t->width; i++) {
                double off = (double)columns[i * b->stride + r] - c[i];
                loss += off * off;
            }
        }
        t->losses[group * t->m + piece] += loss;
    }
    return TNF_OK;
}

/* Keeps the pieces that are better than in earlier attempts. */
static tnf_status keep_best(tnf_trainer *t, bool first, tnf_error *e)
{
    size_t n = t->padded * t->width;
    TNF_TRY(tnf_row_feed_run(&t->feed, t->groups, add_losses, t, e));
    for (size_t piece = 0; piece < t->m; piece++) {
        double loss = 0;
        for (size_t g = 0; g < t->groups; g++) {
            loss += t->losses[g * t->m + piece];
            t->losses[g * t->m + piece] = 0;
        }
        if (!first && !(loss < t->best_loss[piece]))
            continue;
        t->best_loss[piece] = loss;
        memcpy(t->best + piece * n, t->centroids + piece * n, n * sizeof *t->best);
    }
    return TNF_OK;
}

tnf_status tnf_pq_train(tnf_trainer *t, tnf_error *e)
{
    for (size_t attempt = 0; attempt < t->attempts; attempt++) {
        tnf_kmeans_start(t, attempt);
        for (size_t round = 0; round < t->rounds; round++)
            TNF_TRY(tnf_kmeans_round(t, e));
        if (t->attempts > 1)
            TNF_TRY(keep_best(t, attempt == 0, e));
    }
    if (t->attempts == 1)
        return TNF_OK;
    memcpy(t->centroids, t->best, t->m * t->padded * t->width * sizeof *t->best);
    for (size_t piece = 0; piece < t->m; piece++)
        tnf_kmeans_prepare(t, piece);
    return TNF_OK;
}
