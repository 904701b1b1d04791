/* SPDX-License-Identifier: MIT */
/**
 * @file emb.h
 * Query embedding files: the vector of a word, its neighbours, analogies.
 *
 *     tnf_emb *emb;
 *     tnf_emb_open(&emb, file, NULL, &error);
 *     tnf_str berlin = { "Berlin", 6 };
 *     tnf_emb_hit hits[10];
 *     size_t n;
 *     tnf_emb_query query = TNF_EMB_QUERY_INIT;
 *     query.k = 10;
 *     tnf_emb_similar(hits, &n, NULL, emb, &berlin, 1, &query, &error);
 *
 * These functions work on any file with a matrix (dense, or quantized as pq/1). For words, the file
 * also needs a tensor of strings: string i names row i. Rows after those of the words belong to
 * subwords.
 *
 * The strings are read when the view is opened; single rows are read when they are needed. A search
 * over all rows uses the mapped file. If the file is truncated meanwhile, that raises SIGBUS. A
 * file opened with TNF_ACCESS_PREAD is read into memory first instead.
 *
 * Any number of threads may use a view at once. The file must stay open until the view is closed.
 */
#ifndef TENFOLD_EMB_H
#define TENFOLD_EMB_H

#include <tenfold/build.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A view of an embedding file. */
typedef struct tnf_emb tnf_emb;

/** How n-grams of characters give a vector to a word that is not in the vocabulary. */
typedef enum tnf_subwords {
    TNF_SUBWORDS_NONE,     /**< unknown words have no vector */
    TNF_SUBWORDS_BUCKET,   /**< FNV-1a of 64 bits over code points */
    TNF_SUBWORDS_FASTTEXT, /**< FNV-1a of 32 bits over signed bytes */
    TNF_SUBWORDS_EXPLICIT, /**< a list of n-grams */
    TNF_SUBWORDS_FLORET    /**< MurmurHash3, one to four buckets each */
} tnf_subwords;

/** How to open. Begin with TNF_EMB_INIT; NULL means all defaults. */
typedef struct tnf_emb_options {
    size_t size; /**< sizeof(tnf_emb_options) */
    /** The name of the matrix. NULL: the tensor with the attribute "tenfold.role", or "embeddings",
     *  or "points". In a file with several groups (finalfusion), "2/embeddings" selects the second
     *  group with its words, norms and subwords, and "1/embeddings" the first one, unless `vocab`
     *  is set. Everything then works as in a file that has just this group. */
    const char *embeddings;
    /** The name of the tensor of words. NULL: by "tenfold.role", or "vocab", or "appdata". */
    const char *vocab;
    bool no_index;    /**< build no index of words: tnf_emb_find() then finds none */
    unsigned threads; /**< for reading the vocabulary; 0: one per core, or TENFOLD_THREADS */
    /** "avx512vbmi", "avx512", "avx2", "neon" or "portable"; NULL: the best for this CPU */
    const char *kernel;
    /** Bytes of memory besides the mapping; 0: the limit of the file, or four times its size if
     * that is more. */
    uint64_t memory;
    tnf_allocator allocator; /**< zero: malloc */
    /** Lengths of the two names, if they contain NULs; 0: a name ends at its first NUL. */
    size_t embeddings_bytes;
    size_t vocab_bytes; /**< the same for `vocab` */
} tnf_emb_options;

/** All defaults. */
#define TNF_EMB_INIT                                                                               \
    {                                                                                              \
        sizeof(tnf_emb_options), NULL, NULL, false, 0, NULL, 0, { NULL, NULL }, 0, 0               \
    }

/** Describes an embedding file. */
typedef struct tnf_emb_info {
    uint64_t words;               /**< rows of words: the first ones */
    uint64_t rows;                /**< all rows, with those of subwords */
    size_t dims;                  /**< numbers per row */
    tnf_subwords subwords;        /**< how unknown words get a vector */
    uint32_t min_n;               /**< characters of the shortest n-gram, with brackets */
    uint32_t max_n;               /**< characters of the longest n-gram, with brackets */
    uint64_t buckets;             /**< rows of subwords */
    bool quantized;               /**< the matrix is quantized */
    bool has_norms;               /**< the file has the lengths of the vectors before normalising */
    bool has_words;               /**< false: rows have numbers only */
    uint64_t duplicates;          /**< number of repeated words; a lookup finds the first row */
    uint64_t first_duplicate;     /**< the row of the first repetition */
    const char *kernel;           /**< the code that is used for this CPU */
    const tnf_object *embeddings; /**< the matrix */
    const tnf_object *vocab;      /**< the words, or NULL */
    /** A fastText model: the vector of a word is the mean of its row and the rows of its n-grams.
     * It is computed when it is needed. */
    bool composed;
} tnf_emb_info;

/** Opens a view of an open file. Reads the vocabulary once, but not the matrix. */
TNF_API TNF_CHECKED tnf_status tnf_emb_open(tnf_emb **out, const tnf_file *file,
                                            const tnf_emb_options *options, tnf_error *error);
/** Opens a file and a view of it, which owns the file: tnf_emb_close() closes both. `how` and
 *  `options` may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_emb_open_path(tnf_emb **out, const char *path,
                                                 const tnf_open_options *how,
                                                 const tnf_emb_options *options, tnf_error *error);
/** Closes a view. NULL is allowed. */
TNF_API void tnf_emb_close(tnf_emb *emb);
/** Returns the description of the file. */
TNF_API const tnf_emb_info *tnf_emb_describe(const tnf_emb *emb);

/* ------------------------------------------------------------------ words */

/** No row. */
#define TNF_NO_ROW UINT64_MAX

/** Returns the row of a word in the vocabulary, or TNF_NO_ROW. */
TNF_API uint64_t tnf_emb_find(const tnf_emb *emb, tnf_str word);
/** Returns the word of a row; p is NULL if it has none. The word does not end in a NUL. */
TNF_API tnf_str tnf_emb_word(const tnf_emb *emb, uint64_t row);

/** Called with an n-gram of a word, in brackets, and its row (TNF_NO_ROW if an explicit list does
 *  not have it), on the caller's thread. The n-gram does not end in a NUL. Any result but TNF_OK
 *  stops. */
typedef tnf_status (*tnf_emb_take_fn)(void *ctx, tnf_str ngram, uint64_t row, tnf_error *error);
/** Calls `take` for the n-grams of any word, in finalfusion's order: those that begin at the first
 *  character, then those at the next, each time the longest first. Floret gives the whole word
 *  first, and each n-gram once for each of its rows. */
TNF_API TNF_CHECKED tnf_status tnf_emb_ngrams(const tnf_emb *emb, tnf_str word,
                                              tnf_emb_take_fn take, void *ctx, tnf_error *error);

/* ---------------------------------------------------------------- vectors */

/** How a word was found. */
typedef struct tnf_emb_found {
    uint64_t row; /**< row of a word in the vocabulary; else TNF_NO_ROW */
    bool known;   /**< in the vocabulary */
    bool found;   /**< known, or made of subwords; else the vector is all 0 */
    float norm; /**< known: as stored, or 1 if the file has none; else the length of the sum (1 for
                     a fastText model) */
} tnf_emb_found;

/** Reads one row without any change; a quantized row is reconstructed. dst holds dims floats. */
TNF_API TNF_CHECKED tnf_status tnf_emb_row(float *dst, const tnf_emb *emb, uint64_t row,
                                           tnf_error *error);
/** Reads the vectors of n words into dst, one after the other. A word in the vocabulary gives its
 *  row; any other word gives the normalised sum of its subwords' rows. In a fastText model
 *  (info.composed) the vector is the mean of the word's row, if it has one, and the rows of its
 *  n-grams, not normalised: the same as fastText's. `found` (n of them) may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_emb_vectors(float *dst, tnf_emb_found *found, const tnf_emb *emb,
                                               const tnf_str *words, size_t n, tnf_error *error);

/* ---------------------------------------------------------------- queries */

/** How rows are scored. */
typedef enum tnf_metric {
    TNF_COSINE,  /**< of the normalised row and query; 0 for a row that is all 0 */
    TNF_ANGULAR, /**< 1 - acos(cosine) / pi */
    TNF_DOT,     /**< the dot product, without normalising */
    TNF_L2       /**< the Euclidean distance: the smallest is the best */
} tnf_metric;

/** A query. Begin with TNF_EMB_QUERY_INIT; k must be set. */
typedef struct tnf_emb_query {
    size_t size;          /**< sizeof(tnf_emb_query) */
    tnf_metric metric;    /**< how rows are scored */
    size_t k;             /**< how many answers for each query */
    unsigned threads;     /**< 0: one per core, or TENFOLD_THREADS */
    const uint64_t *skip; /**< rows that are not answers */
    size_t nskip;         /**< number of rows to skip */
    bool keep_asked;      /**< similar, analogy: the words of the query may be answers */
    bool keep[3];         /**< analogy: word i of the three words may be an answer */
    bool raw;             /**< analogy: do not divide the three vectors by their lengths */
    /** Only the first `among` words may be answers; files usually begin with the most frequent
     *  words. 0: all words. */
    uint64_t among;
    /** Words before this row are not answers. With `from` and `among` a search can be divided into
     *  ranges of rows: the best answers of all ranges together are those of one search. */
    uint64_t from;
} tnf_emb_query;

/** Cosine; the caller must set k. */
#define TNF_EMB_QUERY_INIT                                                                         \
    {                                                                                              \
        sizeof(tnf_emb_query), TNF_COSINE, 0, 0, NULL, 0, false, { false, false, false }, false,   \
            0, 0                                                                                   \
    }

/** An answer. */
typedef struct tnf_emb_hit {
    uint64_t row; /**< its row */
    tnf_str word; /**< as tnf_emb_word() */
    double score; /**< by the query's metric */
} tnf_emb_hit;

/* The functions below search all words. For a fastText model (info.composed) the first search
 * computes the vectors of all words, on several threads, and keeps them: words x dims floats. */

/** Finds the k best words for each of n vectors (n x dims floats). `hits` gets k hits for each
 *  vector, the best first; `counts` gets how many of them are valid. Equal scores are ordered by
 *  word, then row; NaN comes last. The search is exact, and gives the same result for any number of
 *  threads and of queries in a call. */
TNF_API TNF_CHECKED tnf_status tnf_emb_nearest(tnf_emb_hit *hits, size_t *counts,
                                               const tnf_emb *emb, const float *vectors, size_t n,
                                               const tnf_emb_query *query, tnf_error *error);
/** As tnf_emb_nearest() in double precision, for matrices of f64 and of large integers. */
TNF_API TNF_CHECKED tnf_status tnf_emb_nearest_f64(tnf_emb_hit *hits, size_t *counts,
                                                   const tnf_emb *emb, const double *vectors,
                                                   size_t n, const tnf_emb_query *query,
                                                   tnf_error *error);
/** Finds the neighbours of n words, without the words themselves. A word without a vector has no
 *  neighbours; `found` (n of them, may be NULL) says so. */
TNF_API TNF_CHECKED tnf_status tnf_emb_similar(tnf_emb_hit *hits, size_t *counts,
                                               tnf_emb_found *found, const tnf_emb *emb,
                                               const tnf_str *words, size_t n,
                                               const tnf_emb_query *query, tnf_error *error);
/** Solves n analogies of three words each: a is to b as c is to what? The query vector is b - a + c
 *  of vectors of length 1 (with `raw`: as stored), normalised. `found` (3 n of them) may be NULL.
 */
TNF_API TNF_CHECKED tnf_status tnf_emb_analogy(tnf_emb_hit *hits, size_t *counts,
                                               tnf_emb_found *found, const tnf_emb *emb,
                                               const tnf_str *words, size_t n,
                                               const tnf_emb_query *query, tnf_error *error);

/* ----------------------------------------------------------------- change */

/* The functions below add tensors and attributes to a builder. Both are valid until emb is closed.
 */

/** How vectors change when they are saved to another file. Begin with TNF_EMB_CHANGE_INIT. */
typedef struct tnf_emb_change {
    size_t size; /**< sizeof(tnf_emb_change) */
    /** How a fastText model changes (info.composed): the rows of words become their vectors, the
     * rows of buckets do not change. `counts` and `output`, which only training needs, are kept; if
     *  the target format cannot hold them, saving refuses. TNF_FOLD_NONE keeps the rows, and the
     * new file says so. */
    tnf_fold fold;
    /** How vectors become a fastText model: rows are multiplied by their norms, and the n-grams are
     * removed from the rows of words. Words without a count get the count 1, since gensim ignores
     * count 0. */
    tnf_fold unfold;
    bool normalize;   /**< divide the rows of words by their lengths, which become norms */
    bool unnormalize; /**< multiply the rows of words by their norms, which are removed */
    unsigned threads; /**< 0: one per core, or TENFOLD_THREADS */
} tnf_emb_change;

/** No change. */
#define TNF_EMB_CHANGE_INIT                                                                        \
    {                                                                                              \
        sizeof(tnf_emb_change), TNF_FOLD_NONE, TNF_FOLD_NONE, false, false, 0                      \
    }

/** Adds everything of the file; its vectors are changed while they are saved. */
TNF_API TNF_CHECKED tnf_status tnf_emb_convert(tnf_builder *builder, tnf_emb *emb,
                                               const tnf_emb_change *change, tnf_error *error);

/** Adds everything of a file; its quantized matrix becomes a dense one. If words have no norms,
 *  their rows are normalised and get norms, as in finalfusion, unless `as_is`. */
TNF_API TNF_CHECKED tnf_status tnf_emb_reconstruct(tnf_builder *builder, tnf_emb *emb, bool as_is,
                                                   tnf_error *error);
/** Adds the file with an explicit list of the n-grams of all words, instead of buckets. Only the
 *  rows that these n-grams use are kept. For bucket and fastText vocabularies. */
TNF_API TNF_CHECKED tnf_status tnf_emb_explicit(tnf_builder *builder, tnf_emb *emb,
                                                tnf_error *error);
/** Adds n words with their vectors, in this order, dense and without subwords. If the file has
 *  norms, they are added; a word made of subwords gets the norm of their sum. A word without a
 *  vector is TNF_ENOTFOUND. */
TNF_API TNF_CHECKED tnf_status tnf_emb_select(tnf_builder *builder, tnf_emb *emb,
                                              const tnf_str *words, size_t n, tnf_error *error);

/* --------------------------------------------------------------- quantize */

/** The method of quantization. */
typedef enum tnf_quantizer {
    TNF_PQ,          /**< each row is cut into pieces, each piece is one of 2^bits centroids */
    TNF_OPQ,         /**< the same after a rotation that is trained together with the centroids */
    TNF_GAUSSIAN_OPQ /**< the same after a rotation computed from the covariance of the rows */
} tnf_quantizer;

/** The result of quantizing. */
typedef struct tnf_quantized {
    size_t size;            /**< sizeof(tnf_quantized) */
    uint64_t rows;          /**< number of rows of the matrix */
    size_t dims;            /**< numbers per row */
    unsigned bits;          /**< bits of a code */
    unsigned subquantizers; /**< pieces of a row */
    /** The mean cosine of the angle between a row and its reconstruction, without rows of zeros. */
    double cosine;
    double euclidean; /**< the mean distance between a row and its reconstruction */
} tnf_quantized;

/** All 0, with its size. */
#define TNF_QUANTIZED_INIT                                                                         \
    {                                                                                              \
        sizeof(tnf_quantized), 0, 0, 0, 0, 0, 0                                                    \
    }

/** How to quantize. Begin with TNF_QUANTIZE_INIT; NULL means all defaults, in brackets. */
typedef struct tnf_quantize_options {
    size_t size;            /**< sizeof(tnf_quantize_options) */
    tnf_quantizer method;   /**< [TNF_PQ] */
    unsigned bits;          /**< of a code, 1 to 8 [8, or fewer if there are few rows] */
    unsigned subquantizers; /**< pieces, a divisor of the dimensions [half of them] */
    unsigned iterations;    /**< rounds of training [100] */
    unsigned attempts;      /**< trainings; the best one is kept; OPQ trains only once [1] */
    uint64_t seed;          /**< for choosing the rows that training begins with [0] */
    unsigned
        threads; /**< the result is the same for any number [one per core, or TENFOLD_THREADS] */
    bool as_is;  /**< do not divide rows by their lengths first, and store no norms */
    tnf_progress_fn progress; /**< called with bytes of rows, on the caller's thread; NULL: never */
    void *ctx;                /**< passed to progress */
} tnf_quantize_options;

/** All defaults. */
#define TNF_QUANTIZE_INIT                                                                          \
    {                                                                                              \
        sizeof(tnf_quantize_options), TNF_PQ, 0, 0, 0, 0, 0, 0, false, NULL, NULL                  \
    }

/** Adds everything of the file, with a quantized matrix (a tensor of the layout pq/1). `out` may be
 *  NULL. TNF_EINVAL if the matrix does not allow these settings or has numbers that are not finite;
 *  TNF_EUNSUPPORTED for OPQ without LAPACK. */
TNF_API TNF_CHECKED tnf_status tnf_emb_quantize(tnf_quantized *out, tnf_builder *builder,
                                                tnf_emb *emb, const tnf_quantize_options *options,
                                                tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
