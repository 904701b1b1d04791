/* SPDX-License-Identifier: MIT */
/**
 * @file diff.h
 * What is different between two files, whatever their formats.
 *
 *     tnf_diff_options how = { .size = sizeof how, .difference = print };
 *     tnf_diff_result found = TNF_DIFF_RESULT_INIT;
 *     if (tnf_diff(&found, a, b, &how, &error) == TNF_OK && found.same)
 *         puts("the same");
 *
 * Names, layouts, types, shapes, parts, values, attributes and extras are compared; not how they
 * are stored: formats, encodings, digests, the order of tensors, and rows before columns are no
 * difference. Without a tolerance, two files are the same exactly if their content hashes are.
 */
#ifndef TENFOLD_DIFF_H
#define TENFOLD_DIFF_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tnf_difference_kind {
    TNF_DIFF_ONLY_A,    /**< a tensor that only the first file has */
    TNF_DIFF_ONLY_B,    /**< or the second */
    TNF_DIFF_LAYOUT,    /**< dense and sparse, …: values are not compared */
    TNF_DIFF_SHAPE,     /**< likewise */
    TNF_DIFF_DTYPE,     /**< of the part `key`; values are compared if types are to be ignored */
    TNF_DIFF_PARTS,     /**< the part `key` is only in one of them, or has another size */
    TNF_DIFF_ORDER,     /**< rows first and columns first: told, but no difference */
    TNF_DIFF_VALUES,    /**< of the part `key` */
    TNF_DIFF_ATTRIBUTE, /**< `key` is its dotted path; of the tensor, or of the file */
    TNF_DIFF_EXTRA      /**< `key` is only in one of them, or has other bytes */
} tnf_difference_kind;

/** How far the values of two tensors, or of two parts, are apart. Sums are over the pairs in which
 *  both are finite. The elements of types that are no numbers are bytes. */
typedef struct tnf_value_difference {
    uint64_t elements;
    uint64_t different;   /**< that are not the same, or not close enough */
    uint64_t nonfinite;   /**< of those: NaN or infinite on one side or on both */
    uint64_t first;       /**< the number of the first, counted row by row */
    uint8_t a[16], b[16]; /**< the elements there, little-endian, from the lowest bit on */
    bool numbers;         /**< false: bytes were compared, and what follows is 0 */
    double max_abs;       /**< the largest |a - b| */
    double max_rel;       /**< the largest |a - b| / |b|, where b is not 0 */
    double mean_abs;      /**< the mean |a - b| */
    double nmse;          /**< sum of |a - b|^2 over sum of |a|^2 */
    double cosine;        /**< of the angle between both; NaN if one is all zeros */
} tnf_value_difference;

typedef struct tnf_difference {
    tnf_difference_kind kind;
    const tnf_object *a, *b;            /**< the tensors; NULL where there is none */
    tnf_str key;                        /**< as the kind says */
    const tnf_value *a_value, *b_value; /**< of an attribute; NULL where there is none */
    const tnf_part *a_part, *b_part;    /**< of an extra or a part; likewise */
    const tnf_value_difference *values; /**< of TNF_DIFF_VALUES */
} tnf_difference;

/** What is not compared. */
enum {
    TNF_DIFF_IGNORE_VALUES = 1, /**< no data is read */
    TNF_DIFF_IGNORE_ATTRS = 2,
    TNF_DIFF_IGNORE_EXTRAS = 4,
    TNF_DIFF_IGNORE_DTYPE = 8, /**< of dense tensors: other types are compared as numbers */
    TNF_DIFF_IGNORE_KIND = 16  /**< layout, shape, type, parts and with them values */
};

/** The name that another file has for a tensor; what *out points to must stay until the call that
 *  asked for it returns. */
typedef tnf_status (*tnf_rename_fn)(void *ctx, tnf_str *out, tnf_str name, tnf_error *error);

/** How to compare. Begin with TNF_DIFF_INIT; NULL means all defaults. */
typedef struct tnf_diff_options {
    size_t size;     /**< sizeof(tnf_diff_options) */
    unsigned ignore; /**< TNF_DIFF_IGNORE_… */
    /** Compare numbers and not bits: -0 is 0, a NaN is a NaN, and two are the same if
     *  |a - b| <= atol + rtol * |b|. */
    bool numeric;
    double rtol, atol;
    bool nan_differs;   /**< a NaN is never the same as anything */
    bool trust_digests; /**< parts with equal digests (of 64 bits and more) are not read */
    bool brief;         /**< stop at the first difference */
    /** Which tensors take part, by the second file's names; NULL: all. */
    bool (*select)(void *ctx, tnf_str name);
    /** What the second file calls a tensor of the first; NULL: the same. */
    tnf_rename_fn rename;
    /** Told each difference: of tensors in the order of the first file, then of those only the
     *  second has, of attributes, of extras; on the caller's thread. */
    void (*difference)(void *ctx, const tnf_difference *difference);
    tnf_progress_fn progress;
    void *ctx;
    unsigned threads; /**< 0: one a core, at most 8 */
} tnf_diff_options;

#define TNF_DIFF_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_diff_options), 0, false, 0, 0, false, false, false, NULL, NULL, NULL, NULL,     \
            NULL, 0                                                                                \
    }

/** Begin with TNF_DIFF_RESULT_INIT. */
typedef struct tnf_diff_result {
    size_t size; /**< sizeof(tnf_diff_result) */
    bool same;
    uint64_t tensors;        /**< that both have */
    uint64_t close;          /**< of those: not equal, but close enough */
    uint64_t different;      /**< of those: with a difference of any kind */
    uint64_t only_a, only_b; /**< tensors that only one has */
    uint64_t attributes;     /**< of the files that differ */
    uint64_t extras;         /**< that differ */
    const tnf_file *failed;  /**< after a failure: the file that could not be read, if it was one */
} tnf_diff_result;

#define TNF_DIFF_RESULT_INIT                                                                       \
    {                                                                                              \
        sizeof(tnf_diff_result), false, 0, 0, 0, 0, 0, 0, 0, NULL                                  \
    }

/** Compares two files. TNF_OK also when they differ. Bytes are compared in blocks by several
 *  threads; only tensors that differ are decoded. */
TNF_API TNF_CHECKED tnf_status tnf_diff(tnf_diff_result *out, const tnf_file *a, const tnf_file *b,
                                        const tnf_diff_options *options, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
