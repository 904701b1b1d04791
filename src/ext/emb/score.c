/* SPDX-License-Identifier: MIT */
/* Scores of a block of rows; larger is better for all metrics.
 *
 *   cosine     q . row / |row|        the query is already normalised
 *   dot        q . row
 *   distance   -|q - row|^2
 */
#include "base/error.h"
#include "ext/emb/search.h"

#include <math.h>
#include <string.h>

/* Squares of floats outside of this range underflow or overflow. */
#define SMALL 1e-30F
#define LARGE 1e30F

double tnf_length64(const double *vector, size_t d)
{
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += vector[i] * vector[i];
    return sqrt(sum);
}

/* ----------------------------------------------------------------------- offers */

/* Is this row excluded from the answers? */
static bool is_skipped(const tnf_search_task *task, size_t q, uint64_t row)
{
    const tnf_asked *a = &task->asked[q];
    uint64_t first = tnf_emb_first(task->emb, row);
    for (size_t i = 0; i < 3; i++)
        if (a->skip[i] == first || a->skip[i] == row)
            return true;
    for (size_t i = 0; i < task->query->nskip; i++)
        if (task->query->skip[i] == row)
            return true;
    return false;
}

void tnf_offer(const tnf_search_task *task, tnf_worker *w, size_t q, double score, uint64_t row)
{
    tnf_top *top = &w->tops[q];
    if (!tnf_top_below(top, score) && !is_skipped(task, q, row))
        tnf_top_add(top, &task->ties, (tnf_scored) { score, row });
}

/* Most blocks have no score that is good enough; this first pass without branches detects them. */
static bool any_reaches(float *scores, const float *scale, size_t count, float worst)
{
    int below = 0;
    for (size_t r = 0; r < count; r++) {
        scores[r] *= scale[r];
        below += scores[r] < worst;
    }
    return (size_t)below < count;
}

void tnf_offer_block(const tnf_search_task *task, tnf_worker *w, size_t q, const float *scale,
                     uint64_t first, size_t count)
{
    const tnf_top *top = &w->tops[q];
    float *scores = w->scores + q * task->block;
    float worst = top->n == top->k ? (float)top->items[0].score : -INFINITY;
    if (!task->asked[q].vector && !task->asked[q].vector64)
        return;
    if (any_reaches(scores, scale, count, worst))
        for (size_t r = 0; r < count; r++)
            tnf_offer(task, w, q, scores[r], first + r);
}

/* ----------------------------------------------------------------------- floats */

/* Rows as floats. Quantized rows are reconstructed, if the projection makes that necessary. */
static const float *block_of(const tnf_search_task *task, tnf_worker *w, uint64_t first,
                             size_t count)
{
    const tnf_rows *rows = task->rows;
    size_t d = rows->d;
    if (rows->kind != TNF_ROWS_PQ)
        return tnf_rows_block(rows, first, count, w->room);
    for (size_t r = 0; r < count; r++) {
        float *row = w->room + r * d;
        memset(w->spare, 0, TNF_PADDED(d) * sizeof *w->spare);
        if (tnf_pq_add(rows, first + r, w->spare, NULL) == TNF_OK)
            tnf_pq_rotate(rows, w->spare, row);
        else
            for (size_t i = 0; i < d; i++) /* a code without a centroid */
                row[i] = NAN;
    }
    return w->room;
}

static double careful_cosine(const float *row, const float *query, size_t d)
{
    double dot = 0, square = 0;
    for (size_t i = 0; i < d; i++) {
        dot += (double)row[i] * query[i];
        square += (double)row[i] * row[i];
    }
    return square == 0 ? 0 : dot / sqrt(square);
}

/* Sets the scale of each row to 1 / length. Rows whose squares are out of range are scored one by
 * one. */
static void scale_by_length(const tnf_search_task *task, tnf_worker *w, const float *rows,
                            size_t count)
{
    size_t d = task->rows->d;
    for (size_t r = 0; r < count; r++) {
        float square = w->squares[r];
        w->scale[r] = 1 / sqrtf(square);
        if (isnan(square) || (square > SMALL && square < LARGE))
            continue;
        w->scale[r] = 1;
        for (size_t q = 0; q < task->n; q++)
            w->scores[q * task->block + r] = (float)careful_cosine(
                rows + r * d, task->queries + q * TNF_PADDED(d), d);
    }
}

static void set_scale(tnf_worker *w, size_t count, float scale)
{
    for (size_t r = 0; r < count; r++)
        w->scale[r] = scale;
}

static void score_floats(const tnf_search_task *task, tnf_worker *w, uint64_t first, size_t count)
{
    const tnf_kernels *k = task->emb->kernels;
    size_t d = task->rows->d;
    const float *rows = block_of(task, w, first, count);
    if (task->metric == TNF_L2) {
        k->distance(rows, count, d, task->queries, task->n, w->scores, task->block);
        set_scale(w, count, -1);
        return;
    }
    if (task->metric == TNF_DOT) {
        k->dot(rows, count, d, task->queries, task->n, w->scores, task->block);
        set_scale(w, count, 1);
        return;
    }
    if (task->n == 1) {
        k->dot_squares(rows, count, d, task->queries, w->scores, w->squares);
    } else {
        k->squares(rows, count, d, w->squares);
        k->dot(rows, count, d, task->queries, task->n, w->scores, task->block);
    }
    scale_by_length(task, w, rows, count);
}

/* -------------------------------------------------------------------------- wide */

static double score_wide(const double *row, const double *query, size_t d, tnf_metric metric)
{
    double sum = 0, square = 0;
    if (metric == TNF_L2) {
        for (size_t i = 0; i < d; i++)
            sum += (row[i] - query[i]) * (row[i] - query[i]);
        return -sum;
    }
    for (size_t i = 0; i < d; i++) {
        sum += row[i] * query[i];
        square += row[i] * row[i];
    }
    return metric == TNF_DOT ? sum : square == 0 ? 0 : sum / sqrt(square);
}

static void offer_wide(const tnf_search_task *task, tnf_worker *w, uint64_t first, size_t count)
{
    size_t d = task->rows->d;
    tnf_rows_wide(task->rows, first, count, w->wide);
    for (size_t r = 0; r < count; r++)
        for (size_t q = 0; q < task->n; q++)
            if (task->asked[q].vector || task->asked[q].vector64)
                tnf_offer(task, w, q,
                          score_wide(w->wide + r * d, task->queries64 + q * d, d, task->metric),
                          first + r);
}

void tnf_score_block(const tnf_search_task *task, tnf_worker *w, uint64_t first, size_t count)
{
    if (task->mode == TNF_SEARCH_WIDE) {
        offer_wide(task, w, first, count);
    } else if (task->mode == TNF_SEARCH_CODES) {
        tnf_score_codes(task, w, first, count);
    } else {
        score_floats(task, w, first, count);
        for (size_t q = 0; q < task->n; q++)
            tnf_offer_block(task, w, q, w->scale, first, count);
    }
}
