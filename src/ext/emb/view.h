/* SPDX-License-Identifier: MIT */
/* The definition of tnf_emb. */
#ifndef TNF_EXT_EMB_VIEW_H
#define TNF_EXT_EMB_VIEW_H

#include "base/arena.h"
#include "ext/emb/group.h"
#include "ext/emb/rows.h"
#include "ext/emb/subword.h"
#include "ext/emb/topk.h"
#include "ext/emb/words.h"
#include <tenfold/emb.h>

#include <stdatomic.h>

/* Caches, which are made at first use. */
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
    tnf_file *owned;      /* the file of the caller, if this view closes it; or NULL */
    tnf_group_view group; /* `file`, if it is one group of the caller's file */
    tnf_allocator alloc;
    const tnf_kernels *kernels;
    uint64_t memory; /* bytes that may still be allocated */
    tnf_rows rows;   /* mapped if possible: for passes over all rows */
    tnf_rows copied; /* the same, read row by row: for callers that need only some rows */
    tnf_words words, grams;
    tnf_lent gram_rows; /* u64 each: the row of an n-gram, counted after the words; or NULL */
    uint64_t gram_rows_count;
    tnf_ngram_rule rule;
    bool model;            /* it is a fastText model */
    tnf_pruned pruned;     /* of a fastText model: the remaining buckets */
    tnf_vectors folded;    /* of a fastText model: the vectors of all words; or NULL */
    uint32_t hashes, seed; /* floret */
    const tnf_object *norms_object;
    float *norms; /* of words; or NULL */
    size_t norms_count;
    _Atomic int keeps_lengths; /* the projection does: 0 unknown yet, 1 yes, 2 no */
    tnf_scales scales;         /* 1 / length of each quantized row; or NULL */
    tnf_arena arena;           /* data for builders */
};

/* A list of rows, which is on the stack if it is short. */
typedef struct tnf_row_list {
    uint64_t *rows;
    size_t n, room;
    uint64_t few[160];
} tnf_row_list;

void tnf_row_list_init(tnf_row_list *l);
void tnf_row_list_free(tnf_row_list *l, const tnf_emb *emb);
tnf_status tnf_row_list_add(tnf_row_list *l, const tnf_emb *emb, uint64_t row, tnf_error *e);
/* Appends the rows of the subwords of a word to the list, by the given rule (NULL: that of the
 * file). */
tnf_status tnf_emb_subword_rows(const tnf_emb *emb, const tnf_ngram_rule *rule, tnf_str word,
                                tnf_row_list *out, tnf_error *e);

/* Calls `take` for the n-grams of a word, by the given rule. */
tnf_status tnf_emb_ngrams_by(const tnf_emb *emb, const tnf_ngram_rule *rule, tnf_str word,
                             tnf_emb_take_fn take, void *ctx, tnf_error *e);

/* fasttext.c: is the file an unchanged fastText model? */
bool tnf_emb_is_model(const tnf_file *file);
/* Are the rows vectors? In a fastText model they are not. In a file with finalfusion.vocab they
 * count as vectors, even if the file is also marked as a fastText model. */
bool tnf_emb_has_vectors(const tnf_file *file);
tnf_status tnf_fasttext_open(tnf_emb *emb, tnf_error *e);
void tnf_fasttext_close(tnf_emb *emb);
/* The row of a bucket, or TNF_NO_ROW if it was pruned. */
uint64_t tnf_fasttext_row(const tnf_emb *emb, uint64_t bucket);

/* fold.c: the rule for combining words with their n-grams. */
tnf_ngram_rule tnf_fold_rule(const tnf_emb *emb, tnf_fold fold);
/* The vector of the word of a row: the mean of this row and those of its n-grams. `list` is scratch
 * memory. */
tnf_status tnf_fold_row(const tnf_emb *emb, const tnf_ngram_rule *rule, uint64_t row,
                        tnf_row_list *list, float *dst, tnf_error *e);
/* The same for rows that are read from the file. */
tnf_status tnf_fold_copied(const tnf_emb *emb, uint64_t row, tnf_row_list *list, float *dst,
                           tnf_error *e);
/* Divides a sum of n rows to get their mean, with the rounding of fastText. */
void tnf_fold_mean(float *sum, size_t d, size_t n);
/* The rows that are searched: those of the file, or the vectors of a fastText model, which are
 * computed once and cached. */
tnf_status tnf_emb_vector_rows(const tnf_emb *emb, unsigned threads, const tnf_rows **out,
                               tnf_error *e);

/* Returns NULL if the file has no such attribute. */
static inline const tnf_value *tnf_file_attr(const tnf_file *file, const char *key)
{
    return tnf_value_get(tnf_file_info(file)->attrs, key);
}

/* The number of searched rows: those of words, or all rows if there are no words. */
static inline uint64_t tnf_emb_candidates(const tnf_emb *emb)
{
    bool named = emb->info.has_words || emb->info.composed ||
                 emb->info.subwords == TNF_SUBWORDS_FLORET;
    return named ? emb->info.words : emb->info.rows;
}

/* The first row with the same word as this row. */
uint64_t tnf_emb_first(const tnf_emb *emb, uint64_t row);
/* Fails with TNF_EINVAL if a word is NULL although its length is not 0. */
tnf_status tnf_emb_need_words(const tnf_str *words, size_t n, tnf_error *e);
/* Is words[a] before words[b]? For tnf_ties. */
int tnf_emb_compare(const void *ctx, uint64_t a, uint64_t b);
bool tnf_emb_keeps_lengths(const tnf_emb *emb);
/* Divides a vector by its length, and returns the length; zeros do not change. */
float tnf_emb_normalise(const tnf_emb *emb, float *vector);

/* search.c: a query vector, and rows that are not answers. */
typedef struct tnf_asked {
    const float *vector;    /* dims; NULL: no answers wanted */
    const double *vector64; /* used instead of `vector`, if not NULL */
    uint64_t skip[3];       /* in addition to those of the query; TNF_NO_ROW: none */
} tnf_asked;

/* query: checked by tnf_query_check(). */
tnf_status tnf_search(const tnf_emb *emb, const tnf_asked *asked, size_t n,
                      const tnf_emb_query *query, tnf_emb_hit *hits, size_t *counts, tnf_error *e);
/* Copies the caller's query, whose struct may be of an older version, and checks it. */
tnf_status tnf_query_check(tnf_emb_query *out, const tnf_emb_query *query, tnf_error *e);

#endif
