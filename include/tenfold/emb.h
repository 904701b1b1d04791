/* SPDX-License-Identifier: MIT */
/**
 * @file emb.h
 * Ask a file of embeddings: the vector of a word, its neighbours, analogies.
 *
 *     tnf_emb *emb;
 *     tnf_emb_open(&emb, file, NULL, &error);
 *     tnf_str berlin = { "Berlin", 6 };
 *     tnf_emb_hit hits[10];
 *     size_t n;
 *     tnf_emb_query query = { .size = sizeof query, .k = 10 };
 *     tnf_emb_similar(emb, &berlin, 1, &query, hits, &n, NULL, &error);
 *
 * Works on any file that has a matrix (dense, or quantized as pq/1) and, for words, a tensor of
 * strings of which string i names row i; rows after those of the words belong to subwords. The
 * strings are read when a view is opened, rows that are asked for are read then; whatever goes over
 * all rows does so in the mapped file, where one that is cut short meanwhile raises SIGBUS, unless
 * it was opened for pread: then all of it is read into memory first. A handle never changes, so any
 * number of threads may ask it; the file must stay open as long.
 */
#ifndef TENFOLD_EMB_H
#define TENFOLD_EMB_H

#include <tenfold/build.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tnf_emb tnf_emb;

/** How the vector of a word that is not in the vocabulary is made of n-grams of its characters. */
typedef enum tnf_subwords {
    TNF_SUBWORDS_NONE,
    TNF_SUBWORDS_BUCKET,   /**< FNV-1a of 64 bits over code points */
    TNF_SUBWORDS_FASTTEXT, /**< FNV-1a of 32 bits over bytes taken as signed */
    TNF_SUBWORDS_EXPLICIT, /**< a list of n-grams */
    TNF_SUBWORDS_FLORET    /**< MurmurHash3, one to four buckets each */
} tnf_subwords;

/** How to open. Begin with TNF_EMB_INIT; NULL means all defaults. */
typedef struct tnf_emb_options {
    size_t size; /**< sizeof(tnf_emb_options) */
    /** Names of tensors. NULL: the one whose attribute "tenfold.role" says so, or "embeddings" or
     *  "points"; "vocab" or "appdata". */
    const char *embeddings, *vocab;
    bool no_index;    /**< words will not be looked up: tnf_emb_find() finds none */
    unsigned threads; /**< for reading the vocabulary; 0: one a core, at most 8 */
    const char
        *kernel; /**< "avx512vbmi", "avx512", "avx2", "neon", "portable"; NULL: the best there is */
    /** Bytes it may take besides the mapping; 0: the limit that the file was opened with, or four
     *  times the file where that is more. */
    uint64_t memory;
    tnf_allocator allocator; /**< zero: malloc */
} tnf_emb_options;

#define TNF_EMB_INIT                                                                               \
    {                                                                                              \
        sizeof(tnf_emb_options), NULL, NULL, false, 0, NULL, 0,                                    \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }

typedef struct tnf_emb_info {
    uint64_t words; /**< rows that a word stands for: the first ones */
    uint64_t rows;  /**< all rows, those of subwords included */
    size_t dims;
    tnf_subwords subwords;
    uint32_t min_n, max_n;     /**< characters of an n-gram, with brackets */
    uint64_t buckets;          /**< rows for subwords */
    bool quantized, has_norms; /**< norms: lengths of the words' vectors before normalising */
    bool has_words;            /**< else rows have numbers only */
    uint64_t duplicates;       /**< words that stand there again: the first row is found */
    uint64_t first_duplicate;  /**< the row of the first such word, if there is one */
    const char *kernel;
    const tnf_object *embeddings, *vocab; /**< the tensors behind it; vocab may be NULL */
    /** A fastText model: the row of a word is not its vector, which is the mean of it and of the
     *  rows of the word's n-grams, and is made when it is asked for. */
    bool apart;
} tnf_emb_info;

/** A view of an open file. Touches the vocabulary once, and nothing of the matrix. */
TNF_API TNF_CHECKED tnf_status tnf_emb_open(tnf_emb **out, const tnf_file *file,
                                            const tnf_emb_options *options, tnf_error *error);
/** NULL is allowed. */
TNF_API void tnf_emb_close(tnf_emb *emb);
TNF_API const tnf_emb_info *tnf_emb_describe(const tnf_emb *emb);

/* ------------------------------------------------------------------ words */

#define TNF_NO_ROW UINT64_MAX

/** The row of a word in the vocabulary, or TNF_NO_ROW. */
TNF_API uint64_t tnf_emb_find(const tnf_emb *emb, tnf_str word);
/** The word of a row, with NULL for p if it has none. It does not end in a NUL. */
TNF_API tnf_str tnf_emb_word(const tnf_emb *emb, uint64_t row);

/** An n-gram of a word, in brackets: its bytes, and its row (TNF_NO_ROW for one that is not in an
 *  explicit list). Whatever is returned but TNF_OK stops. */
typedef tnf_status (*tnf_emb_take_fn)(void *ctx, tnf_str ngram, uint64_t row, tnf_error *error);
/** The n-grams of a word, known or not, in the order in which finalfusion takes them: from each
 *  character on the longest first. Floret gives the whole word first, and each as often as it has
 *  rows. */
TNF_API TNF_CHECKED tnf_status tnf_emb_ngrams(const tnf_emb *emb, tnf_str word,
                                              tnf_emb_take_fn take, void *ctx, tnf_error *error);

/* ---------------------------------------------------------------- vectors */

/** What became of a word. */
typedef struct tnf_emb_found {
    uint64_t row; /**< of a word in the vocabulary; else TNF_NO_ROW */
    bool known;   /**< in the vocabulary */
    bool found;   /**< known, or made of subwords; else the vector is all 0 */
    float norm;   /**< known: as stored, 1 if the file has none; else the length of the sum (of a
                       fastText model 1) */
} tnf_emb_found;

/** One row as it stands; of a quantized matrix, reconstructed. dst holds dims floats. */
TNF_API TNF_CHECKED tnf_status tnf_emb_row(const tnf_emb *emb, uint64_t row, float *dst,
                                           tnf_error *error);
/** The vectors of n words, one after the other in dst: the row of a word in the vocabulary as it
 *  stands, else the sum of its subwords' rows, normalised. Of a fastText model (info.apart) as
 *  fastText has them: the mean of the word's row, if it is in the vocabulary, and those of its
 *  n-grams, not normalised. found (n of them) may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_emb_vectors(const tnf_emb *emb, const tnf_str *words, size_t n,
                                               float *dst, tnf_emb_found *found, tnf_error *error);

/* ---------------------------------------------------------------- queries */

typedef enum tnf_metric {
    TNF_COSINE,  /**< rows and query normalised; 0 for a row that is all 0 */
    TNF_ANGULAR, /**< 1 - acos(cosine) / pi */
    TNF_DOT,     /**< as they stand */
    TNF_L2       /**< the Euclidean distance: the smallest first */
} tnf_metric;

/** What is asked. Begin with TNF_EMB_QUERY_INIT; k must be given. */
typedef struct tnf_emb_query {
    size_t size; /**< sizeof(tnf_emb_query) */
    tnf_metric metric;
    size_t k;             /**< answers wanted for each query */
    unsigned threads;     /**< 0: one a core, at most 8 */
    const uint64_t *skip; /**< rows that are no answer */
    size_t nskip;
    bool keep_asked; /**< similar, analogy: the words asked about may be answers too */
    bool keep[3];    /**< analogy: that one of the three may be */
    bool raw;        /**< analogy: the three vectors as they stand, not divided by their lengths */
} tnf_emb_query;

#define TNF_EMB_QUERY_INIT                                                                         \
    {                                                                                              \
        sizeof(tnf_emb_query), TNF_COSINE, 0, 0, NULL, 0, false, { false, false, false }, false    \
    }

typedef struct tnf_emb_hit {
    uint64_t row;
    tnf_str word; /**< as tnf_emb_word() */
    double score; /**< by the query's metric */
} tnf_emb_hit;

/** What follows goes over all words. Of a fastText model (info.apart) the first such question
 *  makes the vectors of all of them, on several threads, and keeps them: words x dims floats. */

/** The k best rows of words for each of n vectors (n x dims): k hits for each, the best first, and
 *  how many there are in counts. Equal scores are ordered by word, then row; NaN comes last. Exact,
 *  and the same for any number of threads and of queries in a call. */
TNF_API TNF_CHECKED tnf_status tnf_emb_nearest(const tnf_emb *emb, const float *vectors, size_t n,
                                               const tnf_emb_query *query, tnf_emb_hit *hits,
                                               size_t *counts, tnf_error *error);
/** The same in double precision, which matters for matrices of f64 and of large integers. */
TNF_API TNF_CHECKED tnf_status tnf_emb_nearest_f64(const tnf_emb *emb, const double *vectors,
                                                   size_t n, const tnf_emb_query *query,
                                                   tnf_emb_hit *hits, size_t *counts,
                                                   tnf_error *error);
/** The neighbours of n words, the word itself left out. A word without a vector has none; found
 *  (n of them) tells, and may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_emb_similar(const tnf_emb *emb, const tnf_str *words, size_t n,
                                               const tnf_emb_query *query, tnf_emb_hit *hits,
                                               size_t *counts, tnf_emb_found *found,
                                               tnf_error *error);
/** words[0] is to words[1] as words[2] is to what? n times three words; found has 3 n. The vector
 *  asked for is b - a + c of vectors of length 1 (or with `raw` as they stand), normalised. */
TNF_API TNF_CHECKED tnf_status tnf_emb_analogy(const tnf_emb *emb, const tnf_str *words, size_t n,
                                               const tnf_emb_query *query, tnf_emb_hit *hits,
                                               size_t *counts, tnf_emb_found *found,
                                               tnf_error *error);

/* ----------------------------------------------------------------- change */

/** What follows adds tensors and attributes to a builder; they live as long as emb does. */

/** By whose rules the n-grams of a word are taken together with it. They differ in the word "</s>",
 *  which has no n-grams with fastText, in n-grams of one character, which fastText does not take
 *  from the edge, and where words are no UTF-8. */
typedef enum tnf_fold {
    TNF_FOLD_NONE,
    TNF_FOLD_FASTTEXT,   /**< vectors are those of fastText itself */
    TNF_FOLD_FINALFUSION /**< as finalfusion's tools import and export fastText models */
} tnf_fold;

/** How vectors change on the way to another file. Begin with TNF_EMB_CHANGE_INIT. */
typedef struct tnf_emb_change {
    size_t size; /**< sizeof(tnf_emb_change) */
    /** A fastText model (info.apart): rows of words become their vectors, rows of buckets stay.
     *  What only training needs (counts, output) comes along: where the target has no place for it,
     *  saving refuses. With TNF_FOLD_NONE rows stay as they are, and the file says so. */
    tnf_fold fold;
    /** For a fastText model to be: norms are multiplied in, n-grams are taken out of the rows of
     *  words again. Words that nobody counted are counted once, since gensim leaves out others. */
    tnf_fold unfold;
    bool normalize;   /**< rows of words are divided by their lengths, which become norms */
    bool unnormalize; /**< rows of words are multiplied by their norms, which go */
    unsigned threads; /**< 0: one a core, at most 8 */
} tnf_emb_change;

#define TNF_EMB_CHANGE_INIT                                                                        \
    {                                                                                              \
        sizeof(tnf_emb_change), TNF_FOLD_NONE, TNF_FOLD_NONE, false, false, 0                      \
    }

/** All of the file, with its vectors changed while they are saved. */
TNF_API TNF_CHECKED tnf_status tnf_emb_convert(tnf_builder *builder, tnf_emb *emb,
                                               const tnf_emb_change *change, tnf_error *error);

/** The dense matrix of a quantized one. Words, norms and all attributes come along; words without
 *  norms are normalised and get them, as finalfusion does, unless `as_is`. */
TNF_API TNF_CHECKED tnf_status tnf_emb_reconstruct(tnf_builder *builder, tnf_emb *emb, bool as_is,
                                                   tnf_error *error);
/** The n-grams of all words of a bucket or fastText vocabulary as an explicit list, with only the
 *  rows that they use. */
TNF_API TNF_CHECKED tnf_status tnf_emb_explicit(tnf_builder *builder, tnf_emb *emb,
                                                tnf_error *error);
/** Some words with their vectors, in the order given, dense and without subwords, and with norms if
 *  the file has them; words that are made of subwords then get the norm of their sum. A word
 * without a vector is TNF_ENOTFOUND. */
TNF_API TNF_CHECKED tnf_status tnf_emb_select(tnf_builder *builder, tnf_emb *emb,
                                              const tnf_str *words, size_t n, tnf_error *error);

/* --------------------------------------------------------------- quantize */

typedef enum tnf_quantizer {
    TNF_PQ,          /**< each row cut into pieces, each piece one of 2^bits centroids */
    TNF_OPQ,         /**< the same after a rotation that is trained along with the centroids */
    TNF_GAUSSIAN_OPQ /**< the same after a rotation that follows from the rows' covariance */
} tnf_quantizer;

/** What came of quantizing. Begin with TNF_QUANTIZED_INIT. */
typedef struct tnf_quantized {
    size_t size;                  /**< sizeof(tnf_quantized) */
    unsigned bits, subquantizers; /**< as they were taken */
    /** On average over the rows: the cosine of the angle between a row and its reconstruction (rows
     *  that are all 0 left out), and the distance between them. */
    double cosine, euclidean;
} tnf_quantized;

#define TNF_QUANTIZED_INIT                                                                         \
    {                                                                                              \
        sizeof(tnf_quantized), 0, 0, 0, 0                                                          \
    }

/** How to quantize. Begin with TNF_QUANTIZE_INIT; NULL means all defaults, in brackets. */
typedef struct tnf_quantize_options {
    size_t size; /**< sizeof(tnf_quantize_options) */
    tnf_quantizer method;
    unsigned bits;          /**< of a code, 1 to 8 [8, or what the rows suffice for] */
    unsigned subquantizers; /**< pieces, a divisor of the dimensions [half of them] */
    unsigned iterations;    /**< rounds of training [100] */
    unsigned attempts;      /**< the best of so many; opq makes one [1] */
    uint64_t seed;          /**< of the choice of rows that training begins with [0] */
    unsigned threads;       /**< the result is the same for any number [one a core, at most 8] */
    bool as_is; /**< do not divide rows by their lengths first, and store no row norms */
    /** Bytes of rows that were gone over, of all; called on the caller's thread. */
    tnf_progress_fn progress;
    void *ctx;
} tnf_quantize_options;

#define TNF_QUANTIZE_INIT                                                                          \
    {                                                                                              \
        sizeof(tnf_quantize_options), TNF_PQ, 0, 0, 0, 0, 0, 0, false, NULL, NULL                  \
    }

/** The matrix quantized, as a tensor of the layout pq/1; words, norms and all attributes come
 *  along. out may be NULL. TNF_EINVAL for settings that the matrix does not allow and for rows
 *  with numbers that are not finite; TNF_EUNSUPPORTED for OPQ where the library was built without
 *  LAPACK. */
TNF_API TNF_CHECKED tnf_status tnf_emb_quantize(tnf_builder *builder, tnf_emb *emb,
                                                const tnf_quantize_options *options,
                                                tnf_quantized *out, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
