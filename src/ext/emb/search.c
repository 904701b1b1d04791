/* SPDX-License-Identifier: MIT */
/* Finds the nearest rows exactly, by comparing all of them.
 *
 *   rows   [ chunk ][ chunk ][ chunk ] …      handed out to threads on request
 *           └ blocks that stay in the L1 cache while all queries use them
 *
 * Each thread keeps its best rows for each query; at the end they are merged. A score depends only
 * on its row and query, and the order of hits is total. So the result does not depend on how the
 * work is divided.
 */
#include "ext/emb/search.h"

#include "base/ckd.h"
#include "base/error.h"
#include "base/pool.h"
#include "base/sized.h"

#include <math.h>
#include <string.h>

#define CACHED       ((size_t)24 << 10)  /* bytes of rows in a block */
#define CODE_BLOCK   1024u               /* rows of codes in a block */
#define HANDED       ((uint64_t)2 << 20) /* bytes of rows in a chunk */
#define PASS         252u /* queries in a pass over the rows: tiles of 6, 4, 3, 2 fit */
#define HEAPS        ((uint64_t)256 << 20)
#define WORTH_THREAD ((uint64_t)1 << 18) /* bytes of rows that justify another thread */

tnf_status tnf_query_check(tnf_emb_query *out, const tnf_emb_query *query, tnf_error *e)
{
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_emb_query, out, query, e));
    TNF_TRY(tnf_need_array(out->skip, out->nskip, "skip", e));
    if (out->k == 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "k must be at least 1");
    return tnf_check_choice((unsigned)out->metric, TNF_L2, "metric", e);
}

bool tnf_emb_keeps_lengths(const tnf_emb *emb)
{
    /* The state is a cache, so setting it does not change the view. */
    _Atomic int *state = (_Atomic int *)(uintptr_t)&emb->keeps_lengths;
    int known = atomic_load(state);
    if (known == 0) {
        known = tnf_pq_keeps_lengths(&emb->rows) ? 1 : 2;
        atomic_store(state, known);
    }
    return known == 1;
}

/* ----------------------------------------------------------------------- setting up */

/* Allocates floats with the alignment of the kernels. */
static float *aligned_floats(tnf_arena *arena, uint64_t n)
{
    uint64_t bytes;
    if (!tnf_ckd_mul(&bytes, n, sizeof(float)) || !tnf_ckd_add(&bytes, bytes, 64))
        return NULL;
    uintptr_t p = (uintptr_t)tnf_arena_raw(arena, bytes);
    return p ? (float *)((p + 63) & ~(uintptr_t)63) : NULL;
}

static tnf_search_mode mode_of(const tnf_emb *emb, const tnf_rows *rows, tnf_metric metric)
{
    if (rows->kind == TNF_ROWS_WIDE)
        return TNF_SEARCH_WIDE;
    if (rows->kind == TNF_ROWS_PQ && (metric == TNF_DOT || tnf_emb_keeps_lengths(emb)))
        return TNF_SEARCH_CODES;
    return TNF_SEARCH_FLOATS;
}

static void set_sizes(tnf_search_task *task)
{
    const tnf_rows *rows = task->rows;
    size_t row = task->mode == TNF_SEARCH_CODES  ? rows->m
                 : task->mode == TNF_SEARCH_WIDE ? rows->d * sizeof(double)
                                                 : rows->d * sizeof(float);
    task->block = CODE_BLOCK;
    if (task->mode != TNF_SEARCH_CODES) {
        size_t fit = CACHED / row / 4 * 4;
        task->block = fit < 4 ? 4 : fit > 512 ? 512 : fit;
    }
    uint64_t blocks = HANDED / ((uint64_t)task->block * row) + 1;
    task->chunk = blocks * task->block;
}

/* Prepares query q for the mode and the metric. */
static void prepare_floats(tnf_search_task *task, size_t q)
{
    const tnf_emb *emb = task->emb;
    size_t d = emb->rows.d, pitch = TNF_PADDED(d);
    float *to = task->queries + q * pitch;
    const tnf_asked *a = &task->asked[q];
    memset(to, 0, pitch * sizeof *to);
    for (size_t i = 0; i < d && (a->vector || a->vector64); i++)
        to[i] = a->vector ? a->vector[i] : (float)a->vector64[i];
    if (task->metric == TNF_COSINE)
        tnf_emb_normalise(emb, to);
}

static void prepare_wide(tnf_search_task *task, size_t q)
{
    size_t d = task->rows->d;
    double *to = task->queries64 + q * d;
    const tnf_asked *a = &task->asked[q];
    for (size_t i = 0; i < d; i++)
        to[i] = a->vector64 ? a->vector64[i] : a->vector ? (double)a->vector[i] : 0;
    double length = task->metric == TNF_COSINE ? tnf_length64(to, d) : 0;
    for (size_t i = 0; length != 0 && i < d; i++)
        to[i] /= length;
}

static tnf_status prepare_coarse(tnf_search_task *task, tnf_arena *arena, tnf_error *e)
{
    const tnf_rows *rows = task->rows;
    size_t table = rows->m * TNF_CODES;
    task->coarse = tnf_arena_array(arena, task->n, sizeof *task->coarse);
    uint8_t *bytes = tnf_arena_raw(arena, (uint64_t)task->n * table);
    if (!task->coarse || !bytes)
        return tnf_arena_fail(arena, "tables of a query", e);
    for (size_t q = 0; q < task->n; q++)
        tnf_coarse_make(&task->coarse[q], rows, task->tables + q * table, bytes + q * table);
    return TNF_OK;
}

static tnf_status prepare_codes(tnf_search_task *task, tnf_arena *arena, tnf_error *e)
{
    const tnf_rows *rows = task->rows;
    size_t pitch = TNF_PADDED(rows->d), table = rows->m * TNF_CODES;
    float *rotated = aligned_floats(arena, pitch);
    task->tables = aligned_floats(arena, (uint64_t)task->n * table);
    task->squares = aligned_floats(arena, table);
    task->lengths = aligned_floats(arena, task->n);
    if (!rotated || !task->tables || !task->squares || !task->lengths)
        return tnf_arena_fail(arena, "tables of a query", e);
    tnf_pq_tables(rows, NULL, task->squares);
    for (size_t q = 0; q < task->n; q++) {
        const float *query = task->queries + q * pitch;
        task->emb->kernels->squares(query, 1, rows->d, &task->lengths[q]);
        tnf_pq_rotate_query(rows, query, rotated);
        tnf_pq_tables(rows, rotated, task->tables + q * table);
    }
    if (task->metric == TNF_COSINE)
        task->scales = tnf_code_scales(task);
    return task->emb->kernels->byte_sums && rows->m <= TNF_CODES ? prepare_coarse(task, arena, e)
                                                                 : TNF_OK;
}

static tnf_status prepare_task(tnf_search_task *task, tnf_arena *arena, tnf_error *e)
{
    size_t d = task->rows->d;
    if (task->mode == TNF_SEARCH_WIDE) {
        task->queries64 = tnf_arena_array(arena, task->n, d * sizeof(double));
        if (!task->queries64)
            return tnf_arena_fail(arena, "queries", e);
        for (size_t q = 0; q < task->n; q++)
            prepare_wide(task, q);
        return TNF_OK;
    }
    task->queries = aligned_floats(arena, (uint64_t)task->n * TNF_PADDED(d));
    if (!task->queries)
        return tnf_arena_fail(arena, "queries", e);
    for (size_t q = 0; q < task->n; q++)
        prepare_floats(task, q);
    return task->mode == TNF_SEARCH_CODES ? prepare_codes(task, arena, e) : TNF_OK;
}

static tnf_status prepare_worker(const tnf_search_task *task, tnf_worker *w, size_t k,
                                 tnf_arena *arena, tnf_error *e)
{
    const tnf_rows *rows = task->rows;
    bool wide = task->mode == TNF_SEARCH_WIDE;
    bool rotates = task->mode == TNF_SEARCH_FLOATS && rows->kind == TNF_ROWS_PQ;
    bool room = task->mode == TNF_SEARCH_FLOATS && rows->kind != TNF_ROWS_F32;
    w->tops = tnf_arena_array(arena, task->n, sizeof *w->tops);
    w->scores = wide ? NULL : aligned_floats(arena, (uint64_t)task->n * task->block);
    w->scale = aligned_floats(arena, task->block);
    w->squares = aligned_floats(arena, task->block);
    w->room = room ? aligned_floats(arena, (uint64_t)task->block * rows->d) : NULL;
    w->spare = rotates ? aligned_floats(arena, TNF_PADDED(rows->d)) : NULL;
    w->wide = wide ? tnf_arena_raw(arena, (uint64_t)task->block * rows->d * sizeof(double)) : NULL;
    w->sums = task->coarse ? tnf_arena_array(arena, task->block, sizeof *w->sums) : NULL;
    if (!w->tops || (task->coarse && !w->sums) || (!wide && !w->scores) || !w->scale ||
        !w->squares || (room && !w->room) || (rotates && !w->spare) || (wide && !w->wide))
        return tnf_arena_fail(arena, "scores", e);
    for (size_t q = 0; q < task->n; q++) {
        w->tops[q] = (tnf_top) { tnf_arena_raw(arena, (uint64_t)k * sizeof(tnf_scored)), 0, k };
        if (!w->tops[q].items)
            return tnf_arena_fail(arena, "hits", e);
    }
    return TNF_OK;
}

/* -------------------------------------------------------------------------- running */

static tnf_status search_block(void *ctx, size_t i, tnf_error *e)
{
    tnf_search_task *task = ctx;
    (void)e;
    for (;;) {
        uint64_t first = atomic_fetch_add(&task->next, task->chunk);
        if (first >= task->candidates)
            return TNF_OK;
        uint64_t end = task->candidates - first < task->chunk ? task->candidates
                                                              : first + task->chunk;
        for (; first < end; first += task->block) {
            size_t count = end - first < task->block ? (size_t)(end - first) : task->block;
            tnf_score_block(task, &task->workers[i], first, count);
        }
    }
}

static double shown_score(tnf_metric metric, double score)
{
    double cosine = score > 1 ? 1 : score < -1 ? -1 : score;
    switch (metric) {
    case TNF_COSINE:
        return cosine;
    case TNF_ANGULAR:
        return 1 - acos(cosine) / 3.14159265358979323846;
    case TNF_L2:
        return sqrt(-score);
    default:
        return score;
    }
}

static void hand_out(const tnf_search_task *task, unsigned workers, tnf_emb_hit *hits,
                     size_t *counts)
{
    for (size_t q = 0; q < task->n; q++) {
        tnf_top *best = &task->workers[0].tops[q];
        for (unsigned i = 1; i < workers; i++)
            tnf_top_merge(best, &task->ties, &task->workers[i].tops[q]);
        tnf_top_sort(best, &task->ties);
        counts[q] = best->n;
        for (size_t i = 0; i < best->n; i++)
            hits[q * task->query->k + i] = (tnf_emb_hit) {
                best->items[i].row, tnf_emb_word(task->emb, best->items[i].row),
                shown_score(task->query->metric, best->items[i].score)
            };
    }
}

static unsigned count_workers(const tnf_search_task *task)
{
    uint64_t bytes, chunks = (task->candidates + task->chunk - 1) / task->chunk;
    unsigned threads = tnf_pool_threads(task->query->threads);
    if (!tnf_ckd_mul(&bytes, task->candidates * 4, task->rows->d) ||
        !tnf_ckd_mul(&bytes, bytes, task->n))
        bytes = UINT64_MAX;
    if (bytes < WORTH_THREAD)
        return 1;
    return chunks < threads ? (chunks ? (unsigned)chunks : 1) : threads;
}

static tnf_status run_pass(tnf_search_task *task, size_t k, tnf_arena *arena, tnf_emb_hit *hits,
                           size_t *counts, tnf_error *e)
{
    unsigned workers = count_workers(task);
    TNF_TRY(prepare_task(task, arena, e));
    task->workers = tnf_arena_array(arena, workers, sizeof *task->workers);
    if (!task->workers)
        return tnf_arena_fail(arena, "threads", e);
    for (unsigned i = 0; i < workers; i++)
        TNF_TRY(prepare_worker(task, &task->workers[i], k, arena, e));
    atomic_store(&task->next, task->query->from);
    TNF_TRY(tnf_pool_run(workers, workers, search_block, task, e));
    hand_out(task, workers, hits, counts);
    return TNF_OK;
}

/* The number of queries per pass, which limits the memory of their heaps. */
static size_t pass_size(const tnf_emb_query *query, size_t k)
{
    uint64_t each = (uint64_t)k * sizeof(tnf_scored) * tnf_pool_threads(query->threads);
    uint64_t fit = HEAPS / (each ? each : 1);
    return fit < 1 ? 1 : fit > PASS ? PASS : (size_t)fit;
}

tnf_status tnf_search(const tnf_emb *emb, const tnf_asked *asked, size_t n,
                      const tnf_emb_query *query, tnf_emb_hit *hits, size_t *counts, tnf_error *e)
{
    uint64_t candidates = tnf_emb_candidates(emb);
    if (query->among && query->among < candidates)
        candidates = query->among;
    size_t k = query->k < candidates ? query->k : (size_t)candidates, step = pass_size(query, k);
    tnf_metric metric = query->metric == TNF_ANGULAR ? TNF_COSINE : query->metric;
    const tnf_rows *rows;
    TNF_TRY(tnf_emb_vector_rows(emb, query->threads, &rows, e));
    for (size_t from = 0; from < n; from += step) {
        tnf_search_task task = { .emb = emb,
                                 .rows = rows,
                                 .query = query,
                                 .metric = metric,
                                 .mode = mode_of(emb, rows, metric),
                                 .ties = { tnf_emb_compare, emb },
                                 .asked = asked + from,
                                 .n = n - from < step ? n - from : step,
                                 .candidates = k ? candidates : 0 };
        tnf_arena arena;
        set_sizes(&task);
        tnf_arena_init(&arena, &emb->alloc, emb->memory);
        tnf_status status = run_pass(&task, k, &arena, hits + from * query->k, counts + from, e);
        tnf_arena_free(&arena);
        TNF_TRY(status);
    }
    return TNF_OK;
}
