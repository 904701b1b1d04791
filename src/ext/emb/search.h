/* SPDX-License-Identifier: MIT */
/* The state of a search: search.c divides the work, score.c computes scores. */
#ifndef TNF_EXT_EMB_SEARCH_H
#define TNF_EXT_EMB_SEARCH_H

#include "ext/emb/view.h"

/* How rows are scored. */
typedef enum tnf_search_mode {
    TNF_SEARCH_FLOATS, /* kernels on blocks of floats */
    TNF_SEARCH_WIDE,   /* in double precision */
    TNF_SEARCH_CODES   /* tables for codes */
} tnf_search_mode;

/* The memory of one thread. */
typedef struct tnf_worker {
    tnf_top *tops;  /* one per query */
    float *scores;  /* queries x block */
    float *scale;   /* block: factors for the scores of each row */
    float *squares; /* block */
    float *room;    /* block x d, if the file's rows are not floats */
    float *spare;   /* a padded row, if rows must be rotated */
    double *wide;   /* block x d */
    uint16_t *sums; /* block: of coarse tables */
} tnf_worker;

/* The coarse tables of a query: the dot product of a row is at most base + step x (the sum of the
 * row's bytes). */
typedef struct tnf_coarse {
    const uint8_t *bytes; /* m x 256 */
    float base, step;
    bool usable;
} tnf_coarse;

typedef struct tnf_search_task {
    const tnf_emb *emb;
    const tnf_rows *rows; /* the searched rows */
    const tnf_emb_query *query;
    tnf_metric metric; /* cosine also for angular */
    tnf_search_mode mode;
    tnf_ties ties;
    const tnf_asked *asked;
    size_t n;            /* queries of this pass */
    float *queries;      /* n padded rows: normalised for cosine, rotated for codes */
    double *queries64;   /* n x d, for wide rows; normalised for cosine */
    float *lengths;      /* n: squared lengths of the queries, for distances of codes */
    float *tables;       /* n x m x 256 */
    float *squares;      /* m x 256 */
    const float *scales; /* of all rows, for cosines of codes; or NULL */
    tnf_coarse *coarse;  /* n; or NULL */
    uint64_t candidates; /* rows */
    size_t block;        /* rows scored at once */
    uint64_t chunk;      /* rows handed out at once */
    _Atomic uint64_t next;
    tnf_worker *workers;
} tnf_search_task;

/* Scores `count` rows from `first` on, at most a block, for all queries. */
void tnf_score_block(const tnf_search_task *task, tnf_worker *w, uint64_t first, size_t count);
/* score_codes.c */
void tnf_score_codes(const tnf_search_task *task, tnf_worker *w, uint64_t first, size_t count);
const float *tnf_code_scales(const tnf_search_task *task);
void tnf_coarse_make(tnf_coarse *out, const tnf_rows *rows, const float *tables, uint8_t *bytes);
/* Keeps a row if it is good enough and may be an answer. tnf_offer_block() does so for a block:
 * w->scores has its scores before they are multiplied by their scale. */
void tnf_offer(const tnf_search_task *task, tnf_worker *w, size_t q, double score, uint64_t row);
void tnf_offer_block(const tnf_search_task *task, tnf_worker *w, size_t q, const float *scale,
                     uint64_t first, size_t count);
/* The length of a row in double precision. */
double tnf_length64(const double *vector, size_t d);

#endif
