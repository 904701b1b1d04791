/* SPDX-License-Identifier: MIT */
/* Combines words with their n-grams: the vector is the mean of their rows. For searching, all
 * vectors are computed by several threads. */
#include "base/ckd.h"
#include "base/error.h"
#include "base/pool.h"
#include "ext/emb/view.h"

#include <string.h>

#define TASK 512u /* words */

tnf_ngram_rule tnf_fold_rule(const tnf_emb *emb, tnf_fold fold)
{
    tnf_ngram_rule rule = {
        .min_n = emb->info.min_n, .max_n = emb->info.max_n, .begin = { "<", 1 }, .end = { ">", 1 }
    };
    if (fold == TNF_FOLD_FASTTEXT) {
        rule.fasttext = true;
        rule.never = (tnf_str) { "</s>", 4 };
    }
    return rule;
}

void tnf_fold_mean(float *sum, size_t d, size_t n)
{
    float scale = (float)(1.0 / (double)n);
    for (size_t i = 0; i < d; i++)
        sum[i] *= scale;
}

static tnf_status fold_row(const tnf_emb *emb, const tnf_rows *rows, const tnf_ngram_rule *rule,
                           uint64_t row, tnf_row_list *list, float *dst, tnf_error *e)
{
    list->n = 0;
    TNF_TRY(tnf_row_list_add(list, emb, row, e));
    TNF_TRY(tnf_emb_subword_rows(emb, rule, tnf_emb_word(emb, row), list, e));
    TNF_TRY(tnf_rows_sum(rows, list->rows, list->n, dst, e));
    tnf_fold_mean(dst, emb->info.dims, list->n);
    return TNF_OK;
}

tnf_status tnf_fold_row(const tnf_emb *emb, const tnf_ngram_rule *rule, uint64_t row,
                        tnf_row_list *list, float *dst, tnf_error *e)
{
    return fold_row(emb, &emb->rows, rule, row, list, dst, e);
}

tnf_status tnf_fold_copied(const tnf_emb *emb, uint64_t row, tnf_row_list *list, float *dst,
                           tnf_error *e)
{
    return fold_row(emb, &emb->copied, &emb->rule, row, list, dst, e);
}

/* ------------------------------------------------------------------- all of them */

struct folding {
    const tnf_emb *emb;
    float *out;
};

static tnf_status fold_task(void *ctx, size_t task, tnf_error *e)
{
    const struct folding *f = ctx;
    uint64_t from = (uint64_t)task * TASK, words = f->emb->info.words;
    uint64_t to = words - from < TASK ? words : from + TASK;
    tnf_row_list list;
    tnf_status status = TNF_OK;
    tnf_row_list_init(&list);
    for (uint64_t i = from; status == TNF_OK && i < to; i++)
        status = tnf_fold_row(f->emb, &f->emb->rule, i, &list,
                              f->out + (size_t)i * f->emb->info.dims, e);
    tnf_row_list_free(&list, f->emb);
    return status;
}

static tnf_status fold_all(const tnf_emb *emb, unsigned threads, tnf_rows *out, tnf_error *e)
{
    uint64_t words = emb->info.words, bytes;
    *out = (tnf_rows) { .kind = TNF_ROWS_F32,
                        .type = tnf_type_of(TNF_F32),
                        .kernels = emb->kernels,
                        .alloc = emb->alloc,
                        .n = words,
                        .d = emb->info.dims };
    if (!tnf_ckd_mul(&bytes, words, emb->info.dims * sizeof(float)) || bytes > emb->memory)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the vectors of %llu words must be computed in memory, but the limit is "
                        "%llu bytes: raise the limit 'memory' if you trust the file",
                        (unsigned long long)words, (unsigned long long)emb->memory);
    out->data.size = (size_t)bytes + 1;
    out->data.p = out->data.owned = tnf_alloc(&emb->alloc, out->data.size);
    if (!out->data.owned)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for the vectors of %llu words",
                        (unsigned long long)words);
    struct folding f = { emb, out->data.owned };
    return tnf_pool_run(tnf_pool_threads(threads), (size_t)((words + TASK - 1) / TASK), fold_task,
                        &f, e);
}

tnf_status tnf_emb_vector_rows(const tnf_emb *emb, unsigned threads, const tnf_rows **out,
                               tnf_error *e)
{
    tnf_vectors *cache = (tnf_vectors *)(uintptr_t)&emb->folded; /* only a cache */
    tnf_rows *known = atomic_load(cache);
    *out = emb->info.composed ? known : &emb->rows;
    if (*out)
        return TNF_OK;
    tnf_rows *made = tnf_alloc(&emb->alloc, sizeof *made);
    if (!made)
        return tnf_no_memory("vectors", e);
    tnf_status status = fold_all(emb, threads, made, e);
    if (status == TNF_OK && atomic_compare_exchange_strong(cache, &known, made)) {
        *out = made;
        return TNF_OK;
    }
    tnf_rows_free(made); /* another thread was faster, or computing failed */
    tnf_free(&emb->alloc, made, sizeof *made);
    *out = known;
    return status;
}
