/* SPDX-License-Identifier: MIT */
/**
 * @file shards.h
 * Many files as one, and one as many.
 *
 *     tnf_builder_merge(b, files, names, n, NULL, &error);
 *     tnf_save(b, "all.safetensors", NULL, &error);
 *
 *     tnf_split_options how = { .size = sizeof how, .format = "safetensors", .max_bytes =
 * 5000000000 }; tnf_split(b, "model/", &how, &error);
 *
 *   model/model-00001-of-00002.safetensors
 *   model/model-00002-of-00002.safetensors
 *   model/model.safetensors.index.json       tnf_open() of this, or of model/, is the whole
 */
#ifndef TENFOLD_SHARDS_H
#define TENFOLD_SHARDS_H

#include <tenfold/build.h>
#include <tenfold/diff.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ merge */

/** What to do if two files have the same name for different things. */
typedef enum tnf_clash {
    TNF_CLASH_REFUSE, /**< TNF_EEXISTS, naming both files */
    TNF_CLASH_SAME,   /**< tensors: one of them, if they are the same; else refuse */
    TNF_CLASH_FIRST,  /**< the first one is taken */
    TNF_CLASH_LAST,   /**< the last one is taken, in the place of the first */
    TNF_CLASH_RENAME  /**< tensors: the second becomes NAME.2, the third NAME.3 */
} tnf_clash;

/** How to merge. Begin with TNF_MERGE_INIT; NULL means all defaults. */
typedef struct tnf_merge_options {
    size_t size;       /**< sizeof(tnf_merge_options) */
    tnf_clash tensors; /**< of the same name */
    tnf_clash attrs;   /**< attributes and extras with other values: REFUSE, FIRST or LAST */
    bool (*select)(void *ctx, tnf_str name); /**< which tensors, by their new names; NULL: all */
    tnf_rename_fn rename;                    /**< new names; NULL: as they are */
    void *ctx;
} tnf_merge_options;

#define TNF_MERGE_INIT                                                                             \
    {                                                                                              \
        sizeof(tnf_merge_options), TNF_CLASH_REFUSE, TNF_CLASH_REFUSE, NULL, NULL, NULL            \
    }

/** Adds all of several open files, which must stay open until after saving: tensors, attributes
 *  (those that agree once; text maps entry by entry), extras. `names` are what messages call them;
 *  NULL: by their number. */
TNF_API TNF_CHECKED tnf_status tnf_builder_merge(tnf_builder *builder, const tnf_file *const *files,
                                                 const char *const *names, size_t n,
                                                 const tnf_merge_options *options,
                                                 tnf_error *error);

/** Is the file at this path one of those that the handle reads from (itself or a shard of it),
 * under whatever name? False also if there is no such file. */
TNF_API bool tnf_file_reads(const tnf_file *file, const char *path);

/* ------------------------------------------------------------------ split */

/** A file that is to be written. */
typedef struct tnf_split_file {
    const char *name; /**< without the directory */
    size_t tensors;
    uint64_t bytes; /**< of its tensors */
    bool index;     /**< it stands for all others */
} tnf_split_file;

/** What a file is that is left behind under a temporary name. */
typedef enum tnf_stray {
    TNF_STRAY_JUNK,     /**< of no use, but it could not be removed */
    TNF_STRAY_NOT_BACK, /**< what was there before, under `belongs`; it could not be put back */
    TNF_STRAY_KEPT      /**< likewise; kept since what replaces it may not survive a power cut */
} tnf_stray;

/** How to split. Begin with TNF_SPLIT_INIT. */
typedef struct tnf_split_options {
    size_t size;        /**< sizeof(tnf_split_options) */
    const char *format; /**< its name; required */
    uint64_t
        max_bytes;    /**< of the tensors in one file; a larger tensor has one to itself. 0: any */
    const char *stem; /**< how names begin; NULL: "model" */
    /** As for tnf_save(); its format is ignored. `replace` concerns each file by itself;
     * `plan` is told of the whole. NULL: defaults. */
    const tnf_save_options *save;
    /** Told all files, the index last, before the first byte is written. */
    void (*file)(void *ctx, const tnf_split_file *file);
    void *ctx;
    /** Told of each file that is left under a temporary name. NULL: nobody is. */
    void (*stray)(void *ctx, tnf_stray what, const char *path, const char *belongs);
} tnf_split_options;

#define TNF_SPLIT_INIT                                                                             \
    {                                                                                              \
        sizeof(tnf_split_options), NULL, 0, NULL, NULL, NULL, NULL, NULL                           \
    }

/** Saves to several files in a directory (which is made if it is not there), with an index where
 * the format has one: safetensors (as Hugging Face writes it) and zTensor 2. Tensors stay in their
 *  order, those that share their bytes in one file. If all fit into one file, there is no index.
 *  None of them may be one that the builder reads from (tnf_file_reads() tells).
 *  The files appear when all of them are complete, the index last. After a failure none is left;
 *  if the system stops in between, there is no index. */
TNF_API TNF_CHECKED tnf_status tnf_split(const tnf_builder *builder, const char *directory,
                                         const tnf_split_options *options, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
