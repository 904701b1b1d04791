/* SPDX-License-Identifier: MIT */
/**
 * @file diff.h
 * Compare two files of any formats.
 *
 *     tnf_diff_options how = TNF_DIFF_INIT;
 *     how.difference = print;
 *     tnf_diff_result found = TNF_DIFF_RESULT_INIT;
 *     if (tnf_diff(&found, a, b, &how, &error) == TNF_OK && found.same)
 *         puts("the same");
 *
 * Names, layouts, types, shapes, parts, values, attributes and extras are compared. The way in
 * which they are stored is not: formats, encodings, digests, the order of tensors and the order of
 * elements make no difference. Without a tolerance, two files are the same exactly if their content
 * hashes are the same.
 */
#ifndef TENFOLD_DIFF_H
#define TENFOLD_DIFF_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The kind of a difference. */
typedef enum tnf_difference_kind {
    TNF_DIFF_ONLY_A,    /**< only the first file has the tensor */
    TNF_DIFF_ONLY_B,    /**< only the second file has the tensor */
    TNF_DIFF_LAYOUT,    /**< the layout, such as dense or sparse; values are not compared */
    TNF_DIFF_SHAPE,     /**< the shape; values are not compared */
    TNF_DIFF_DTYPE,     /**< the type of part `key`; values are compared if types are ignored */
    TNF_DIFF_PARTS,     /**< only one of them has the part `key`, or its size differs */
    TNF_DIFF_ORDER,     /**< the order of elements; it is reported, but not counted */
    TNF_DIFF_VALUES,    /**< the values of part `key` */
    TNF_DIFF_ATTRIBUTE, /**< an attribute of the tensor, or of the file if no tensor is given; `key`
                         *   is its path with dots */
    TNF_DIFF_EXTRA      /**< only one of them has the extra `key`, or its bytes differ */
} tnf_difference_kind;

/** How much the values of two tensors or parts differ. Sums are over the pairs in which both values
 *  are finite. Types that are not numbers are compared as bytes. */
typedef struct tnf_value_difference {
    uint64_t elements;  /**< number of elements compared */
    uint64_t different; /**< not equal, or not close enough */
    uint64_t nonfinite; /**< of those: NaN or infinite on one side or on both */
    uint64_t first;     /**< the position of the first different one, counted row by row */
    uint8_t a[16];      /**< the element there in the first file, little-endian, lowest bit first */
    uint8_t b[16];      /**< the element there in the second file */
    bool numbers;       /**< false: bytes were compared, and the members below are 0 */
    double max_abs;     /**< the largest |a - b| */
    double max_rel;     /**< the largest |a - b| / |b|, where b is not 0 */
    double mean_abs;    /**< the mean |a - b| */
    double nmse;        /**< sum of |a - b|^2 over sum of |a|^2 */
    double cosine;      /**< cosine of the angle between both; NaN if one is all zeros */
} tnf_value_difference;

/** One difference. Members that do not apply are NULL. */
typedef struct tnf_difference {
    tnf_difference_kind kind;           /**< what is different */
    const tnf_object *a;                /**< the tensor in the first file */
    const tnf_object *b;                /**< the tensor in the second file */
    tnf_str key;                        /**< its meaning depends on `kind` */
    const tnf_value *a_value;           /**< the attribute in the first file */
    const tnf_value *b_value;           /**< the attribute in the second file */
    const tnf_part *a_part;             /**< the extra or part in the first file */
    const tnf_part *b_part;             /**< the extra or part in the second file */
    const tnf_value_difference *values; /**< for TNF_DIFF_VALUES */
} tnf_difference;

/** Things that a comparison ignores. */
enum {
    TNF_DIFF_IGNORE_VALUES = 1, /**< values: no data is read */
    TNF_DIFF_IGNORE_ATTRS = 2,  /**< attributes */
    TNF_DIFF_IGNORE_EXTRAS = 4, /**< extras */
    TNF_DIFF_IGNORE_DTYPE = 8,  /**< types of dense tensors: their numbers are compared */
    TNF_DIFF_IGNORE_KIND = 16   /**< layout, shape, type, parts, and therefore values, too */
};

/** Returns the new name of a tensor in *out. It must stay valid until the library function that
 *  called this one returns. Called on the caller's thread. */
typedef tnf_status (*tnf_rename_fn)(void *ctx, tnf_str *out, tnf_str name, tnf_error *error);

/** Called with a difference on the caller's thread. It is valid during the call. */
typedef void (*tnf_difference_fn)(void *ctx, const tnf_difference *difference);

/** Returns true if the tensor of that name is wanted. Called on the caller's thread. */
typedef bool (*tnf_select_fn)(void *ctx, tnf_str name);

/** How to compare. Begin with TNF_DIFF_INIT; NULL means all defaults. */
typedef struct tnf_diff_options {
    size_t size;     /**< sizeof(tnf_diff_options) */
    unsigned ignore; /**< TNF_DIFF_IGNORE_… */
    /** Compares numbers and not bits: -0 equals 0, NaN equals NaN, and two numbers are equal if
     *  |a - b| <= atol + rtol * |b|. */
    bool numeric;
    double rtol;        /**< relative tolerance */
    double atol;        /**< absolute tolerance */
    bool nan_differs;   /**< a NaN is never equal to anything */
    bool trust_digests; /**< parts with equal digests (64 bits or more) are not read */
    bool brief;         /**< stop at the first difference */
    /** Returns true for tensors to compare, by the second file's names; NULL: all. */
    tnf_select_fn select;
    /** Returns the second file's name for a tensor of the first; NULL: the same name. */
    tnf_rename_fn rename;
    /** Called for each difference, on the caller's thread: first tensors in the order of the first
     *  file, then tensors that only the second file has, then attributes, then extras. */
    tnf_difference_fn difference;
    tnf_progress_fn progress; /**< called while comparing; NULL: never */
    void *ctx;                /**< passed to all functions */
    unsigned threads;         /**< 0: one per core, or TENFOLD_THREADS */
} tnf_diff_options;

/** All defaults. */
#define TNF_DIFF_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_diff_options), 0, false, 0, 0, false, false, false, NULL, NULL, NULL, NULL,     \
            NULL, 0                                                                                \
    }

/** The result of a comparison, in numbers. Begin with TNF_DIFF_RESULT_INIT. */
typedef struct tnf_diff_result {
    size_t size;            /**< sizeof(tnf_diff_result) */
    bool same;              /**< nothing is different */
    uint64_t tensors;       /**< tensors that both files have */
    uint64_t close;         /**< of those: not equal, but close enough */
    uint64_t different;     /**< of those: with a difference of any kind */
    uint64_t only_a;        /**< tensors that only the first file has */
    uint64_t only_b;        /**< tensors that only the second file has */
    uint64_t attributes;    /**< attributes of the file that differ */
    uint64_t extras;        /**< extras that differ */
    const tnf_file *failed; /**< after a failure: the file that could not be read, or NULL */
} tnf_diff_result;

/** All 0, with its size. */
#define TNF_DIFF_RESULT_INIT                                                                       \
    {                                                                                              \
        sizeof(tnf_diff_result), false, 0, 0, 0, 0, 0, 0, 0, NULL                                  \
    }

/** Compares two files. Returns TNF_OK even if they differ. Several threads compare the bytes in
 *  blocks; only tensors that differ are decoded. */
TNF_API TNF_CHECKED tnf_status tnf_diff(tnf_diff_result *out, const tnf_file *a, const tnf_file *b,
                                        const tnf_diff_options *options, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
