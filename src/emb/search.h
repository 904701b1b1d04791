/* SPDX-License-Identifier: MIT */
/* A search under way: search.c divides the work, score.c does it. */
#ifndef TNF_EMB_SEARCH_H
#define TNF_EMB_SEARCH_H

#include "emb/view.h"

/* How rows are scored. */
typedef enum tnf_search_mode {
    TNF_SEARCH_FLOATS, /* by the kernels, on blocks of floats */
    TNF_SEARCH_WIDE,   /* in double precision */
    TNF_SEARCH_CODES   /* by tables, on codes */
} tnf_search_mode;

/* What one thread needs for itself. */
typedef struct tnf_worker {
    tnf_top *tops;  /* one a query */
    float *scores;  /* queries x block */
    float *scale;   /* block: what scores of a row are multiplied by */
    float *squares; /* block */
    float *room;    /* block x d, where rows are no floats in the file */
    float *spare;   /* a padded row, where rows have to be turned */
    double *wide;   /* block x d */
} tnf_worker;

typedef struct tnf_search_job {
    const tnf_emb *emb;
    const tnf_emb_query *query;
    tnf_metric metric; /* cosine stands for angular */
    tnf_search_mode mode;
    tnf_ties ties;
    const tnf_asked *asked;
    size_t n;            /* queries of this pass */
    float *queries;      /* n padded rows: normalised for cosine, turned for codes */
    double *queries64;   /* n x d, for wide ones; normalised for cosine */
    float *lengths;      /* n: squared lengths of the queries, for distances of codes */
    float *tables;       /* n x m x 256 */
    float *squares;      /* m x 256 */
    uint64_t candidates; /* rows */
    size_t block;        /* rows scored at once */
    uint64_t chunk;      /* rows handed out at once */
    _Atomic uint64_t next;
    tnf_worker *workers;
} tnf_search_job;

/* Scores the rows from `first` on, `count` of them, at most a block, for all queries. */
void tnf_score_block(const tnf_search_job *job, tnf_worker *w, uint64_t first, size_t count);
/* The length of a row in double precision. */
double tnf_length64(const double *vector, size_t d);

#endif
