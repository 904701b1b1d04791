/* SPDX-License-Identifier: MIT */
/* Shared by the files of the fastText format.
 *
 *   fasttext.c    the descriptor; header, arguments, order of a file
 *   dictionary.c  words, labels and their counts
 *   matrix.c      dense and quantized matrices
 *   fit.c         decides what the format can hold of a catalog
 *   write.c       the writer
 */
#ifndef TNF_FASTTEXT_H
#define TNF_FASTTEXT_H

#include "format.h"

#define FT_MAGIC       793712314u
#define FT_VERSION     12u /* 11 has the same bytes */
#define FT_HEAD        64u /* magic, version, arguments */
#define FT_DICTIONARY  28u /* before the entries */
#define FT_ENTRY       10u /* least size of an entry: empty word, NUL, count, type */
#define FT_CENTROIDS   256u
#define FT_QUANT_HEAD  21u /* norms?, rows, columns, number of codes */
#define FT_PQ_HEAD     16u

#define FT_VOCAB       "vocab"
#define FT_COUNTS      "counts"
#define FT_LABELS      "labels"
#define FT_LABEL_COUNT "labels.counts"
#define FT_PRUNEIDX    "pruneidx"
#define FT_EMBEDDINGS  "embeddings"
#define FT_OUTPUT      "output"
/* Suffixes of objects that accompany a matrix: */
#define FT_NORM_CODES  ".norm_codes"
#define FT_NORM_BOOK   ".norm_codebook"
#define FT_QUANTIZED   ".quantized"

#define FT_ATTR(name)  "fasttext." name
#define FT_TRAILING    FT_ATTR("trailing")

/* The arguments, in the order of the file. */
enum {
    FT_DIM,
    FT_WS,
    FT_EPOCH,
    FT_MIN_COUNT,
    FT_NEG,
    FT_WORD_NGRAMS,
    FT_LOSS,
    FT_MODEL,
    FT_BUCKET,
    FT_MINN,
    FT_MAXN,
    FT_LR_UPDATE_RATE,
    FT_ARGS
};

extern const char *const tnf_ft_arg_keys[FT_ARGS];
/* Written if the catalog has no such attribute; the reader sets no attribute for such a value. */
extern const int32_t tnf_ft_arg_defaults[FT_ARGS];
extern const char *const tnf_ft_losses[5], *const tnf_ft_models[4]; /* NULL at 0 */

/* ---------------------------------------------------------------- reading */

/* A quantized matrix, by its place in the file. */
typedef struct ft_quant {
    bool norms;
    uint64_t rows, columns, pieces; /* pieces: codes per row */
    bool even;                      /* all pieces have the same length */
    uint64_t codes, centroids;      /* where they begin, relative from the start of the matrix */
    uint64_t norm_codes, norm_book;
    uint64_t bytes; /* of the whole matrix */
} ft_quant;

/* Reads bytes of a matrix; offset is relative to its start. */
typedef tnf_status (*ft_get)(const void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* Reads and checks the sizes in the matrix's headers. `at` is its position, for messages. */
tnf_status tnf_ft_quant_parse(ft_quant *q, ft_get get, const void *ctx, uint64_t at, tnf_error *e);

/* For decode(): norms of quantized rows, by codes and a table of 256. */
typedef struct ft_norms {
    uint64_t codes, book; /* in the file */
} ft_norms;

typedef struct ft_reading {
    tnf_reader *r;
    uint64_t at; /* position of the next field */
    int32_t args[FT_ARGS];
    uint64_t words, labels;
    uint64_t pruned; /* buckets that pruning kept */
    bool is_pruned, quantized;
    uint64_t input_bytes; /* of a dense input matrix */
    ft_norms *norms;      /* array of 2: the state that decode() needs */
} ft_reading;

/* Positions in the read options. */
enum { FT_OPTION_LOSSY };

tnf_status tnf_ft_read_dictionary(ft_reading *f, tnf_error *e);
/* name: FT_EMBEDDINGS or FT_OUTPUT. */
tnf_status tnf_ft_read_dense(ft_reading *f, const char *name, tnf_error *e);
tnf_status tnf_ft_read_quantized(ft_reading *f, const char *name, tnf_error *e);
tnf_status tnf_ft_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);

/* ---------------------------------------------------------------- writing */

/* A matrix and the objects that accompany it. */
typedef struct ft_matrix {
    const tnf_object *object;                 /* dense or pq/1; NULL: none */
    const tnf_object *norm_codes, *norm_book; /* of a quantized matrix with norms */
    const tnf_object *opaque;                 /* set instead: the matrix as opaque bytes */
    uint64_t rows, columns;
} ft_matrix;

/* How a catalog is written. fit.c and write.c share it. */
typedef struct ft_plan {
    const tnf_object *vocab, *counts, *labels, *label_counts, *pruneidx;
    ft_matrix input, output;
    int32_t args[FT_ARGS];
    int64_t tokens;
    double t;
    uint32_t version;
    bool ends_early; /* no output matrix, not even an empty one */
} ft_plan;

tnf_status tnf_ft_plan_make(ft_plan *plan, const tnf_catalog *c, const tnf_verdict *objects,
                            tnf_error *e);
tnf_status tnf_ft_fits(tnf_fit *fit, tnf_error *e);
tnf_status tnf_ft_write(tnf_writer *w, tnf_error *e);

static inline bool ft_is_quantized(const ft_matrix *m)
{
    return m->opaque || (m->object && m->object->layout != &tnf_layout_dense);
}

#endif
