/* SPDX-License-Identifier: MIT */
/* Scores of quantized rows, from tables.
 *
 *   score of a row = scale of the row x sum over its codes of  table[piece][code]
 *
 * A scan spends its time looking up floats. If the machine can look up bytes much faster, a coarse
 * table is made, too: an entry is its distance from the least entry of its piece, in steps, rounded
 * down. The sum of these entries bounds the score from above. Only rows that could be good enough
 * are looked up exactly, so the result is the same.
 */
#include "base/error.h"
#include "base/pool.h"
#include "ext/emb/search.h"

#include <math.h>
#include <string.h>

#define TASK 65536u /* rows whose scales are computed at once */

/* ------------------------------------------------------------------------- scales */

/* The norm of a row matters for its dot product. For the cosine only its sign matters. */
static float sign_of(float norm)
{
    return norm > 0 ? 1 : norm < 0 ? -1.0F : norm == 0 ? 0 : norm;
}

static void scale_cosines(const tnf_rows *rows, uint64_t first, size_t count, const float *squares,
                          float *out)
{
    const float *norms = rows->norms.p;
    for (size_t r = 0; r < count; r++)
        out[r] = squares[r] == 0 ? 0 : sign_of(norms ? norms[first + r] : 1) / sqrtf(squares[r]);
}

struct scaling {
    const tnf_rows *rows;
    const float *squares; /* tables */
    float *out;
};

static tnf_status scale_task(void *ctx, size_t task, tnf_error *e)
{
    const struct scaling *s = ctx;
    uint64_t first = (uint64_t)task * TASK;
    size_t n = s->rows->n - first < TASK ? (size_t)(s->rows->n - first) : TASK;
    const uint8_t *codes = (const uint8_t *)s->rows->codes.p + first * s->rows->m;
    (void)e;
    s->rows->kernels->code_sums(codes, n, s->rows->m, s->squares, s->out + first);
    scale_cosines(s->rows, first, n, s->out + first, s->out + first);
    return TNF_OK;
}

/* 1 / length of each row, cached in the view. The first search computes it. Without memory for the
 * cache, it is computed block by block. */
const float *tnf_code_scales(const tnf_search_task *task)
{
    const tnf_emb *emb = task->emb;
    tnf_scales *cache = (tnf_scales *)(uintptr_t)&emb->scales; /* only a cache */
    float *known = atomic_load(cache);
    uint64_t size = emb->rows.n * sizeof(float);
    if (known || size > emb->memory)
        return known;
    struct scaling s = { &emb->rows, task->squares, tnf_alloc(&emb->alloc, (size_t)size + 1) };
    if (!s.out)
        return NULL;
    size_t tasks = (size_t)((emb->rows.n + TASK - 1) / TASK);
    if (tnf_pool_run(task->query->threads, tasks, scale_task, &s, NULL) == TNF_OK &&
        atomic_compare_exchange_strong(cache, &known, s.out))
        return s.out;
    tnf_free(&emb->alloc, s.out, (size_t)size + 1);
    return known;
}

/* ------------------------------------------------------------------- coarse tables */

/* The smallest and largest number that a piece can add. */
static void find_range(const float *table, size_t k, float *low, float *high)
{
    *low = *high = table[0];
    for (size_t c = 1; c < k; c++) {
        *low = table[c] < *low ? table[c] : *low;
        *high = table[c] > *high ? table[c] : *high;
    }
}

/* Makes a coarse table. The bound allows for rounding of the sums and of the steps. */
void tnf_coarse_make(tnf_coarse *out, const tnf_rows *rows, const float *tables, uint8_t *bytes)
{
    float low, high, range = 0, most = 0, base = 0;
    for (size_t m = 0; m < rows->m; m++) {
        find_range(tables + m * TNF_CODES, rows->k, &low, &high);
        range = high - low > range ? high - low : range;
        most += fabsf(low) > fabsf(high) ? fabsf(low) : fabsf(high);
        base += low;
    }
    float step = range / 255;
    *out = (tnf_coarse) { .bytes = bytes, .step = step };
    out->usable = isfinite(most) && isfinite(base) && isfinite(step) && step > 0;
    out->base = base + 1.0002F * (float)rows->m * step + 4e-6F * most;
    for (size_t m = 0; out->usable && m < rows->m; m++) {
        find_range(tables + m * TNF_CODES, rows->k, &low, &high);
        for (size_t c = 0; c < TNF_CODES; c++) {
            float steps = c < rows->k ? (tables[m * TNF_CODES + c] - low) / step : 0;
            bytes[m * TNF_CODES + c] = steps >= 255 ? 255 : steps > 0 ? (uint8_t)steps : 0;
        }
    }
}

/* Counts the rows that could reach the worst kept score. The sums stay in place. */
static size_t count_possible(const tnf_coarse *c, const uint16_t *sums, const float *scale,
                             size_t count, float worst)
{
    unsigned possible = 0;
    for (size_t r = 0; r < count; r++) {
        float most = (c->base + c->step * (float)sums[r]) * scale[r];
        possible += !(most < worst) | !(scale[r] >= 0);
    }
    return possible;
}

static void offer_possible(const tnf_search_task *task, tnf_worker *w, size_t q, const float *scale,
                           uint64_t first, size_t count, float worst)
{
    const tnf_rows *rows = task->rows;
    const tnf_coarse *c = &task->coarse[q];
    const uint8_t *codes = (const uint8_t *)rows->codes.p + (size_t)first * rows->m;
    const float *table = task->tables + q * rows->m * TNF_CODES;
    for (size_t r = 0; r < count; r++) {
        float most = (c->base + c->step * (float)w->sums[r]) * scale[r], sum;
        if (most < worst && scale[r] >= 0)
            continue;
        task->emb->kernels->code_sums(codes + r * rows->m, 1, rows->m, table, &sum);
        tnf_offer(task, w, q, sum * scale[r], first + r);
    }
}

/* If there is a coarse table and a score to compare with, filters rows with the table. */
static bool try_coarse(const tnf_search_task *task, tnf_worker *w, size_t q, const float *scale,
                       uint64_t first, size_t count)
{
    const tnf_rows *rows = task->rows;
    const tnf_top *top = &w->tops[q];
    if (!task->coarse || !task->coarse[q].usable || top->n < top->k || isnan(top->items[0].score))
        return false;
    float worst = (float)top->items[0].score;
    worst -= 1e-6F * fabsf(worst);
    task->emb->kernels->byte_sums((const uint8_t *)rows->codes.p + (size_t)first * rows->m, count,
                                  rows->m, task->coarse[q].bytes, w->sums);
    if (count_possible(&task->coarse[q], w->sums, scale, count, worst) > 0)
        offer_possible(task, w, q, scale, first, count, worst);
    return true;
}

/* --------------------------------------------------------------------------- scores */

/* |q - s c|^2 = |q|^2 - 2 s q.c + s^2 |c|^2; rounding may make it slightly negative. */
static void distances_of(const tnf_search_task *task, const tnf_worker *w, size_t q, uint64_t first,
                         size_t count)
{
    const float *norms = task->rows->norms.p;
    for (size_t r = 0; r < count; r++) {
        double s = norms ? norms[first + r] : 1, dot = w->scores[q * task->block + r];
        double square = task->lengths[q] - 2 * s * dot + s * s * (double)w->squares[r];
        w->scores[q * task->block + r] = (float)(square < 0 ? 0 : square);
    }
}

/* The factors for the sums of a block. */
static const float *scale_of(const tnf_search_task *task, tnf_worker *w, uint64_t first,
                             size_t count)
{
    const tnf_rows *rows = task->rows;
    const uint8_t *codes = (const uint8_t *)rows->codes.p + (size_t)first * rows->m;
    if (task->metric == TNF_DOT && rows->norms.p)
        return (const float *)rows->norms.p + first;
    if (task->metric == TNF_COSINE && task->scales)
        return task->scales + first;
    if (task->metric != TNF_DOT)
        rows->kernels->code_sums(codes, count, rows->m, task->squares, w->squares);
    if (task->metric == TNF_COSINE)
        scale_cosines(rows, first, count, w->squares, w->scale);
    for (size_t r = 0; task->metric != TNF_COSINE && r < count; r++)
        w->scale[r] = task->metric == TNF_L2 ? -1 : 1;
    return w->scale;
}

void tnf_score_codes(const tnf_search_task *task, tnf_worker *w, uint64_t first, size_t count)
{
    const tnf_rows *rows = task->rows;
    const uint8_t *codes = (const uint8_t *)rows->codes.p + (size_t)first * rows->m;
    const float *scale = scale_of(task, w, first, count);
    for (size_t q = 0; q < task->n; q++) {
        if (task->metric != TNF_L2 && try_coarse(task, w, q, scale, first, count))
            continue;
        rows->kernels->code_sums(codes, count, rows->m, task->tables + q * rows->m * TNF_CODES,
                                 w->scores + q * task->block);
        if (task->metric == TNF_L2)
            distances_of(task, w, q, first, count);
        tnf_offer_block(task, w, q, scale, first, count);
    }
}
