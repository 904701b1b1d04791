/* SPDX-License-Identifier: MIT */
/* Finds neighbours of vectors and of words, and solves analogies. */
#include "base/ckd.h"
#include "base/error.h"
#include "base/ieee.h"
#include "ext/emb/view.h"

#include <string.h>

#define NO_SKIP                                                                                    \
    {                                                                                              \
        TNF_NO_ROW, TNF_NO_ROW, TNF_NO_ROW                                                         \
    }

/* The memory for n queries. */
typedef struct queries {
    tnf_emb_query query;
    tnf_arena arena;
    tnf_asked *asked;
    float *vectors;
    tnf_emb_found *found;
    uint32_t mode; /* of the caller's thread */
} queries;

static void end_queries(queries *x)
{
    tnf_arena_free(&x->arena);
    tnf_leave_ieee(x->mode);
}

/* Allocates memory for looking up `words` words, for n queries. Until end_queries() the thread
 * computes by IEEE 754. */
static tnf_status begin_queries(queries *x, const tnf_emb *emb, const tnf_emb_query *query,
                                size_t n, uint64_t words, tnf_error *e)
{
    *x = (queries) { 0 };
    TNF_TRY(tnf_query_check(&x->query, query, e));
    tnf_arena_init(&x->arena, &emb->alloc, emb->memory);
    x->asked = tnf_arena_array(&x->arena, (uint64_t)n + 1, sizeof *x->asked);
    x->vectors = tnf_arena_array(&x->arena, words + 1, emb->info.dims * sizeof(float));
    x->found = tnf_arena_array(&x->arena, words + 1, sizeof *x->found);
    x->mode = tnf_enter_ieee();
    if (x->asked && x->vectors && x->found)
        return TNF_OK;
    tnf_status status = tnf_arena_fail(&x->arena, "queries", e);
    end_queries(x);
    return status;
}

static tnf_status find_nearest(const tnf_emb *emb, const float *vectors, const double *vectors64,
                               size_t n, const tnf_emb_query *query, tnf_emb_hit *hits,
                               size_t *counts, tnf_error *e)
{
    queries x;
    size_t d = emb->info.dims;
    TNF_TRY(begin_queries(&x, emb, query, n, 0, e));
    for (size_t i = 0; i < n; i++)
        x.asked[i] = (tnf_asked) { vectors ? vectors + i * d : NULL,
                                   vectors64 ? vectors64 + i * d : NULL, NO_SKIP };
    tnf_status status = tnf_search(emb, x.asked, n, &x.query, hits, counts, e);
    end_queries(&x);
    return status;
}

tnf_status tnf_emb_nearest(tnf_emb_hit *hits, size_t *counts, const tnf_emb *emb,
                           const float *vectors, size_t n, const tnf_emb_query *query, tnf_error *e)
{
    TNF_TRY(tnf_need(emb, "emb", e));
    TNF_TRY(tnf_need(vectors, "vectors", e));
    return find_nearest(emb, vectors, NULL, n, query, hits, counts, e);
}

tnf_status tnf_emb_nearest_f64(tnf_emb_hit *hits, size_t *counts, const tnf_emb *emb,
                               const double *vectors, size_t n, const tnf_emb_query *query,
                               tnf_error *e)
{
    TNF_TRY(tnf_need(emb, "emb", e));
    TNF_TRY(tnf_need(vectors, "vectors", e));
    return find_nearest(emb, NULL, vectors, n, query, hits, counts, e);
}

/* For a wide matrix, the query is the exact row, not its rounded floats. */
static tnf_status ask_wide(const tnf_emb *emb, queries *x, size_t i, tnf_error *e)
{
    if (emb->rows.kind != TNF_ROWS_WIDE || !x->found[i].known)
        return TNF_OK;
    double *wide = tnf_arena_array(&x->arena, 1, emb->info.dims * sizeof(double));
    if (!wide)
        return tnf_arena_fail(&x->arena, "a row", e);
    TNF_TRY(tnf_rows_get_wide(&emb->copied, x->found[i].row, wide, e));
    x->asked[i].vector64 = wide;
    return TNF_OK;
}

static tnf_status find_similar(const tnf_emb *emb, queries *x, const tnf_str *words, size_t n,
                               tnf_emb_hit *hits, size_t *counts, tnf_error *e)
{
    TNF_TRY(tnf_emb_vectors(x->vectors, x->found, emb, words, n, e));
    for (size_t i = 0; i < n; i++) {
        x->asked[i] = (tnf_asked) { NULL, NULL, NO_SKIP };
        if (!x->found[i].found)
            continue;
        x->asked[i].vector = x->vectors + i * emb->info.dims;
        if (!x->query.keep_asked)
            x->asked[i].skip[0] = x->found[i].row;
        TNF_TRY(ask_wide(emb, x, i, e));
    }
    return tnf_search(emb, x->asked, n, &x->query, hits, counts, e);
}

tnf_status tnf_emb_similar(tnf_emb_hit *hits, size_t *counts, tnf_emb_found *found,
                           const tnf_emb *emb, const tnf_str *words, size_t n,
                           const tnf_emb_query *query, tnf_error *e)
{
    TNF_TRY(tnf_need(emb, "emb", e));
    TNF_TRY(tnf_need_array(words, n, "words", e));
    queries x;
    TNF_TRY(begin_queries(&x, emb, query, n, n, e));
    tnf_status status = find_similar(emb, &x, words, n, hits, counts, e);
    if (found)
        memcpy(found, x.found, n * sizeof *found);
    end_queries(&x);
    return status;
}

/* Replaces a by b - a + c. */
static void combine_three(const tnf_emb *emb, bool raw, float *three)
{
    size_t d = emb->info.dims;
    for (size_t i = 0; !raw && i < 3; i++) /* like gensim, fastText and finalfusion */
        tnf_emb_normalise(emb, three + i * d);
    for (size_t i = 0; i < d; i++)
        three[i] = three[d + i] - three[i] + three[2 * d + i];
    tnf_emb_normalise(emb, three);
}

static tnf_status find_analogy(const tnf_emb *emb, queries *x, const tnf_str *words, size_t n,
                               tnf_emb_hit *hits, size_t *counts, tnf_error *e)
{
    TNF_TRY(tnf_emb_vectors(x->vectors, x->found, emb, words, 3 * n, e));
    for (size_t i = 0; i < n; i++) {
        const tnf_emb_found *f = &x->found[3 * i];
        x->asked[i] = (tnf_asked) { NULL, NULL, NO_SKIP };
        if (!f[0].found || !f[1].found || !f[2].found)
            continue;
        float *three = x->vectors + 3 * i * emb->info.dims;
        combine_three(emb, x->query.raw, three);
        x->asked[i].vector = three;
        for (size_t w = 0; w < 3; w++)
            if (!x->query.keep_asked && !x->query.keep[w])
                x->asked[i].skip[w] = f[w].row;
    }
    return tnf_search(emb, x->asked, n, &x->query, hits, counts, e);
}

tnf_status tnf_emb_analogy(tnf_emb_hit *hits, size_t *counts, tnf_emb_found *found,
                           const tnf_emb *emb, const tnf_str *words, size_t n,
                           const tnf_emb_query *query, tnf_error *e)
{
    TNF_TRY(tnf_need(emb, "emb", e));
    TNF_TRY(tnf_need_array(words, n, "words", e));
    queries x;
    uint64_t all;
    if (!tnf_ckd_mul(&all, n, 3))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%zu analogies have more than 2^64 words", n);
    TNF_TRY(begin_queries(&x, emb, query, n, all, e));
    tnf_status status = find_analogy(emb, &x, words, n, hits, counts, e);
    if (found)
        memcpy(found, x.found, (size_t)all * sizeof *found);
    end_queries(&x);
    return status;
}
