/* SPDX-License-Identifier: MIT */
/* What is behind a tnf_emb. */
#ifndef TNF_EXT_EMB_VIEW_H
#define TNF_EXT_EMB_VIEW_H

#include "base/arena.h"
#include "ext/emb/rows.h"
#include "ext/emb/subword.h"
#include "ext/emb/topk.h"
#include "ext/emb/words.h"
#include <tenfold/emb.h>

#include <stdatomic.h>

/* Made by the first who needs it. */
typedef _Atomic(float *) tnf_scales;
typedef _Atomic(tnf_rows *) tnf_vectors;

/* Pairs of a bucket and its row, by bucket. */
typedef struct tnf_pruned {
    bool there;
    uint32_t (*pairs)[2];
    size_t n;
} tnf_pruned;

struct tnf_emb {
    tnf_emb_info info;
    const tnf_file *file;
    tnf_file *owned; /* the same, if this view closes it; or NULL */
    tnf_allocator alloc;
    const tnf_kernels *kernels;
    uint64_t memory; /* that may still be taken */
    tnf_rows rows;   /* mapped where that is possible: for going over all of them */
    tnf_rows copied; /* the same, read row by row: for callers that need only some rows */
    tnf_words words, grams;
    tnf_lent gram_rows; /* u64 each: the row of an n-gram, counted from the last word's; or NULL */
    uint64_t gram_rows_count;
    tnf_ngram_rule rule;
    bool model;            /* it is a fastText model */
    tnf_pruned pruned;     /* of a fastText model: the buckets that are left */
    tnf_vectors folded;    /* of a fastText model: the vectors of all words; or NULL */
    uint32_t hashes, seed; /* floret */
    const tnf_object *norms_object;
    float *norms; /* of words; or NULL */
    size_t norms_count;
    _Atomic int keeps_lengths; /* of a projection: 0 not asked yet, 1 yes, 2 no */
    tnf_scales scales;         /* one over the length of each quantized row; or NULL */
    tnf_arena arena;           /* what builders were given */
};

/* A number of rows, on the stack as long as they are few. */
typedef struct tnf_row_list {
    uint64_t *rows;
    size_t n, room;
    uint64_t few[160];
} tnf_row_list;

void tnf_row_list_init(tnf_row_list *l);
void tnf_row_list_free(tnf_row_list *l, const tnf_emb *emb);
tnf_status tnf_row_list_add(tnf_row_list *l, const tnf_emb *emb, uint64_t row, tnf_error *e);
/* The rows of the subwords of a word, after those that are in the list; by a rule of its own (NULL:
 * that of the file). */
tnf_status tnf_emb_subword_rows(const tnf_emb *emb, const tnf_ngram_rule *rule, tnf_str word,
                                tnf_row_list *out, tnf_error *e);

/* Its n-grams by a rule. */
tnf_status tnf_emb_ngrams_by(const tnf_emb *emb, const tnf_ngram_rule *rule, tnf_str word,
                             tnf_emb_take_fn take, void *ctx, tnf_error *e);

/* fasttext.c: is it a fastText model, as it was trained? */
bool tnf_fasttext_model(const tnf_file *file);
tnf_status tnf_fasttext_open(tnf_emb *emb, tnf_error *e);
void tnf_fasttext_close(tnf_emb *emb);
/* The row of a bucket, or TNF_NO_ROW if it was pruned. */
uint64_t tnf_fasttext_row(const tnf_emb *emb, uint64_t bucket);

/* fold.c: the rule by which n-grams are put together with words. */
tnf_ngram_rule tnf_fold_rule(const tnf_emb *emb, tnf_fold fold);
/* The vector of the word of a row: the mean of it and those of its n-grams; the list
 * is spare. */
tnf_status tnf_fold_row(const tnf_emb *emb, const tnf_ngram_rule *rule, uint64_t row,
                        tnf_row_list *list, float *dst, tnf_error *e);
/* The same of rows that are read. */
tnf_status tnf_fold_copied(const tnf_emb *emb, uint64_t row, tnf_row_list *list, float *dst,
                           tnf_error *e);
/* A sum of n rows becomes their mean, rounded as fastText does. */
void tnf_fold_mean(float *sum, size_t d, size_t n);
/* What is searched: the rows as they are, or the vectors of a fastText model, which are made once
 * and kept. */
tnf_status tnf_emb_vector_rows(const tnf_emb *emb, unsigned threads, const tnf_rows **out,
                               tnf_error *e);

/* NULL: the file has no such attribute. */
static inline const tnf_value *tnf_file_attr(const tnf_file *file, const char *key)
{
    return tnf_value_get(tnf_file_info(file)->attrs, key);
}

/* The rows that are searched: those of words, or all where none has a word. */
static inline uint64_t tnf_emb_candidates(const tnf_emb *emb)
{
    bool named = emb->info.has_words || emb->info.composed ||
                 emb->info.subwords == TNF_SUBWORDS_FLORET;
    return named ? emb->info.words : emb->info.rows;
}

/* The first row of the word that this row has. */
uint64_t tnf_emb_first(const tnf_emb *emb, uint64_t row);
/* words[a] before words[b]? For tnf_ties. */
int tnf_emb_compare(const void *ctx, uint64_t a, uint64_t b);
bool tnf_emb_keeps_lengths(const tnf_emb *emb);
/* Divides by the length and returns it; what is all 0 stays so. */
float tnf_emb_normalise(const tnf_emb *emb, float *vector);

/* search.c: a vector asked about, and what may not be an answer to it. */
typedef struct tnf_asked {
    const float *vector;    /* dims; or NULL: no answers wanted */
    const double *vector64; /* the same, instead */
    uint64_t skip[3];       /* besides those of the query; TNF_NO_ROW: nothing */
} tnf_asked;

/* query: checked by tnf_query_check(). */
tnf_status tnf_search(const tnf_emb *emb, const tnf_asked *asked, size_t n,
                      const tnf_emb_query *query, tnf_emb_hit *hits, size_t *counts, tnf_error *e);
/* A copy of the caller's, which may be of an older version. */
tnf_status tnf_query_check(tnf_emb_query *out, const tnf_emb_query *query, tnf_error *e);

#endif
