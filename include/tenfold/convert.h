/* SPDX-License-Identifier: MIT */
/**
 * @file convert.h
 * Convert open files to a new file: select, rename, change embeddings, cast and save by one call.
 *
 *     tnf_report *report;
 *     tnf_convert_options how = TNF_CONVERT_INIT;
 *     const char *wanted[] = { "encoder.*" };
 *     how.select = wanted;
 *     how.nselect = 1;
 *     if (tnf_convert_path(&report, "model.gguf", NULL, "encoder.zt", &how, &error) != TNF_OK)
 *         fprintf(stderr, "%s\n", error.message);
 *     tnf_report_free(report);
 *
 *   files ─> select ─> exclude ─> rename ─> embeddings ─> cast ─> plan ─> file, files or sink
 *
 * Every command of `tenfold` that writes tensors is one call of tnf_convert(). The same input and
 * the same options give the same file and the same losses in C, in a binding and in the command.
 */
#ifndef TENFOLD_CONVERT_H
#define TENFOLD_CONVERT_H

#include <tenfold/emb.h>
#include <tenfold/shards.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where the result goes. */
typedef enum tnf_convert_mode {
    TNF_CONVERT_NEW,    /**< a new file: tnf_save() */
    TNF_CONVERT_APPEND, /**< into an existing file: tnf_append() */
    TNF_CONVERT_SPLIT   /**< several files in a directory: tnf_split() */
} tnf_convert_mode;

/** What to do with the embeddings. */
typedef enum tnf_emb_step {
    TNF_EMB_KEEP,        /**< only what fold, normalize and unnormalize say */
    TNF_EMB_SELECT,      /**< some words: tnf_emb_select() */
    TNF_EMB_EXPLICIT,    /**< n-grams as a list: tnf_emb_explicit() */
    TNF_EMB_RECONSTRUCT, /**< quantized rows dense: tnf_emb_reconstruct() */
    TNF_EMB_QUANTIZE     /**< dense rows quantized: tnf_emb_quantize() */
} tnf_emb_step;

/** The values that tnf_convert_options.fold may have. */
#define TNF_FOLD_RULES "auto|none|fasttext|finalfusion"

/** How to convert. Begin with TNF_CONVERT_INIT; NULL means all defaults. */
typedef struct tnf_convert_options {
    size_t size;           /**< sizeof(tnf_convert_options) */
    tnf_convert_mode mode; /**< where the result goes */
    /** Format, its options, casts, losses, dry run, progress: as for tnf_save(). NULL: defaults. */
    const tnf_save_options *save;
    const tnf_split_options *split; /**< TNF_CONVERT_SPLIT; its `save` is ignored. NULL: defaults */
    tnf_sink *sink;                 /**< TNF_CONVERT_NEW without a path; save->format is required */
    const char *const *names;       /**< names of the files in messages; NULL: their numbers */

    /* Tensors. */
    const char *const
        *select;    /**< patterns of tnf_glob_match(): only tensors that match one; none: all */
    size_t nselect; /**< number of patterns */
    const char *const *exclude; /**< patterns: tensors that match one are left out */
    size_t nexclude;            /**< number of patterns */
    tnf_rename_fn rename;       /**< new names for the selected tensors; NULL: no change */
    void *rename_ctx;           /**< passed to rename */
    tnf_clash tensors;          /**< for tensors of the same name in two files */
    tnf_clash attrs;            /**< for attributes and extras with different values in two files */
    bool tensors_only;          /**< leave attributes and extras behind */
    bool keep_files; /**< refuse to overwrite the input; several inputs are never overwritten */

    /* Embeddings. */
    tnf_emb_step step; /**< what to do with the embeddings */
    /** How rows of a fastText model become vectors of words, or the other way round: one of
     *  TNF_FOLD_RULES, as tnf_fold says. NULL or "auto": as the target format stores them, if it is
     *  a format of embeddings (tnf_format_info.folds, unfolds). */
    const char *fold;
    bool normalize;             /**< divide word vectors by their lengths, which become norms */
    bool unnormalize;           /**< multiply word vectors by their norms, and remove the norms */
    const tnf_str *words;       /**< TNF_EMB_SELECT */
    size_t nwords;              /**< number of words */
    bool skip_unknown;          /**< words without a vector are skipped and counted */
    const tnf_emb_options *emb; /**< which tensors, threads. NULL: defaults */
    const tnf_quantize_options *quantize; /**< TNF_EMB_QUANTIZE. NULL: defaults */

    /** Attributes to set last; they replace those of the files. */
    const tnf_member *set;
    size_t nset;    /**< number of attributes */
    bool all_items; /**< the report lists native items, too */
    bool keep_rest; /**< with `into`: tensors that no file has keep their data, and are reported */

    /** A model whose weights are replaced; NULL: none. Its tensors get the data of the tensors of
     *  the same name in the files, after renaming. The model keeps its own attributes, extras and
     *  graph; those of the files are ignored. Shapes must be equal, and types, too, unless
     *  save->dtype requests one. The report has an item for each tensor that differs, that the
     *  model does not have, or that no file has; the result is then TNF_ELOSSY. Only tensors of the
     *  files may be dropped, by save->allow_loss. */
    const tnf_file *into;
    /** The suffix of the names of scales, such as "_scale_inv": a tensor of floats NAME is
     *  multiplied by NAME_scale_inv (TNF_VIRTUAL_SCALED), and the scales are left out. Names are
     *  compared after renaming. TNF_ENOTFOUND if no tensor has scales. NULL: scales are ordinary
     *  tensors. */
    const char *scales;
} tnf_convert_options;

/** All defaults: a new file with everything. */
#define TNF_CONVERT_INIT                                                                           \
    {                                                                                              \
        sizeof(tnf_convert_options), TNF_CONVERT_NEW, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0,    \
            NULL, NULL, TNF_CLASH_REFUSE, TNF_CLASH_REFUSE, false, false, TNF_EMB_KEEP, NULL,      \
            false, false, NULL, 0, false, NULL, NULL, NULL, 0, false, false, NULL, NULL            \
    }

/** The steps of a conversion, in their order. */
typedef enum tnf_convert_step {
    TNF_STEP_SELECT,     /**< files are combined: a failure is a fault of the files */
    TNF_STEP_TARGET,     /**< the format is found */
    TNF_STEP_EMBEDDINGS, /**< embeddings are searched: a failure is a fault of the files */
    TNF_STEP_VECTORS,    /**< vectors are changed: a failure is a fault of the files */
    TNF_STEP_SAVE        /**< planned and written */
} tnf_convert_step;

/** What was done, or would be: the plan and a few numbers. The report owns all that it points
 *  to. */
typedef struct tnf_report {
    tnf_convert_step step; /**< the last step begun; after a failure, the one that failed */
    const char *format;    /**< the format that is written; NULL: not known before the failure */
    size_t counts[4];      /**< items by tnf_fate, native ones too */
    size_t nitems;         /**< items except native ones, or all items: tnf_report_item() */
    size_t tensors;        /**< number of selected tensors */
    size_t renamed;        /**< number of tensors that got another name */
    size_t unknown_words;  /**< number of words left out by skip_unknown */
    const tnf_quantized *quantized; /**< never NULL; all 0 except after TNF_EMB_QUANTIZE */
} tnf_report;

/** Converts n open files to `path` (a directory for TNF_CONVERT_SPLIT; NULL with a sink). The
 *  caller keeps ownership of the files. The plan is made once, passed to save->plan and kept in the
 *  report. If it loses anything that save->allow_loss does not allow, the call returns TNF_ELOSSY
 *  before it writes a byte.
 *
 *  *report is set even after a failure: it has the plan made so far. Free it. It is NULL if memory
 *  is short or the arguments are invalid. TNF_ENOTFOUND if patterns are given and no tensor matches
 *  them, or if a word has no vector; TNF_EINVAL if one of several input files would be
 *  overwritten. */
TNF_API TNF_CHECKED tnf_status tnf_convert(tnf_report **report, const tnf_file *const *files,
                                           size_t n, const char *path,
                                           const tnf_convert_options *options, tnf_error *error);
/** Opens one file, converts it and closes it. `how` may be NULL. If the file does not open, *report
 * is NULL. */
TNF_API TNF_CHECKED tnf_status tnf_convert_path(tnf_report **report, const char *from,
                                                const tnf_open_options *how, const char *path,
                                                const tnf_convert_options *options,
                                                tnf_error *error);
/** Returns the i-th item of a report, in the order of the plan; NULL past the last one. */
TNF_API const tnf_plan_item *tnf_report_item(const tnf_report *report, size_t i);
/** Frees a report. NULL is allowed. */
TNF_API void tnf_report_free(tnf_report *report);

#ifdef __cplusplus
}
#endif
#endif
