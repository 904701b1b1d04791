/* SPDX-License-Identifier: MIT */
/**
 * @file shards.h
 * Merge several files into one, and split one into several.
 *
 *     tnf_builder_merge(b, files, names, n, NULL, &error);
 *     tnf_save(b, "all.safetensors", NULL, &error);
 *
 *     tnf_split_options how = TNF_SPLIT_INIT;
 *     how.format = "safetensors";
 *     how.max_bytes = 5000000000;
 *     tnf_split(b, "model/", &how, &error);
 *
 * writes these files; tnf_open() opens the whole model by its index or by its directory:
 *
 *     model/model-00001-of-00002.safetensors
 *     model/model-00002-of-00002.safetensors
 *     model/model.safetensors.index.json
 */
#ifndef TENFOLD_SHARDS_H
#define TENFOLD_SHARDS_H

#include <tenfold/build.h>
#include <tenfold/diff.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ merge */

/** What to do if two files use the same name for different things. */
typedef enum tnf_clash {
    TNF_CLASH_REFUSE, /**< TNF_EEXISTS, with the names of both files */
    TNF_CLASH_SAME,   /**< tensors: keep one if they are equal, else refuse */
    TNF_CLASH_FIRST,  /**< keep the first one */
    TNF_CLASH_LAST,   /**< keep the last one, in the place of the first */
    TNF_CLASH_RENAME  /**< tensors: the second becomes NAME.2, the third NAME.3 */
} tnf_clash;

/** How to merge. Begin with TNF_MERGE_INIT; NULL means all defaults. */
typedef struct tnf_merge_options {
    size_t size;       /**< sizeof(tnf_merge_options) */
    tnf_clash tensors; /**< for tensors with the same name */
    tnf_clash attrs; /**< for attributes and extras with different values: REFUSE, FIRST or LAST */
    tnf_select_fn select; /**< which tensors, by their names in the files; NULL: all */
    tnf_rename_fn rename; /**< new names; NULL: no change */
    void *ctx;            /**< passed to both functions */
    bool tensors_only;    /**< leave attributes and extras out */
} tnf_merge_options;

/** All defaults: refuse. */
#define TNF_MERGE_INIT                                                                             \
    {                                                                                              \
        sizeof(tnf_merge_options), TNF_CLASH_REFUSE, TNF_CLASH_REFUSE, NULL, NULL, NULL, false     \
    }

/** Adds everything of several open files: tensors, attributes, extras. Equal attributes are added
 *  once; maps of texts are merged member by member. The files must stay open until after saving.
 *  After a failure the builder may hold the content of some files: free it.
 *  `names` are the files' names for messages; NULL: messages number them. */
TNF_API TNF_CHECKED tnf_status tnf_builder_merge(tnf_builder *builder, const tnf_file *const *files,
                                                 const char *const *names, size_t n,
                                                 const tnf_merge_options *options,
                                                 tnf_error *error);

/** Returns true if the handle reads from the file at this path, or if that file is one of its
 *  shards, under any name. It also returns false if there is no such file. */
TNF_API bool tnf_file_reads(const tnf_file *file, const char *path);

/* ------------------------------------------------------------------ split */

/** A file that will be written. */
typedef struct tnf_split_file {
    const char *name; /**< without the directory */
    size_t tensors;   /**< number of tensors */
    uint64_t bytes;   /**< bytes of its tensors */
    bool index;       /**< it is the index of all the others */
} tnf_split_file;

/** Why a file with a temporary name was left behind. */
typedef enum tnf_stray {
    TNF_STRAY_JUNK,     /**< useless, but it could not be removed */
    TNF_STRAY_NOT_BACK, /**< the old content of `belongs`, which could not be restored */
    TNF_STRAY_KEPT      /**< the old content of `belongs`, kept because a power cut may still lose
                             the new one */
} tnf_stray;

/** Called with a stray file on the caller's thread. The texts are valid during the call. */
typedef void (*tnf_stray_fn)(void *ctx, tnf_stray what, const char *path, const char *belongs);

/** Called with a file of the plan on the caller's thread. It is valid during the call. */
typedef void (*tnf_split_file_fn)(void *ctx, const tnf_split_file *file);

/** How to split. Begin with TNF_SPLIT_INIT. */
typedef struct tnf_split_options {
    size_t size;        /**< sizeof(tnf_split_options) */
    const char *format; /**< its name; required */
    /** Bytes of the tensors in one file; a larger tensor gets a file of its own. 0: no limit. */
    uint64_t max_bytes;
    const char *stem; /**< the beginning of the files' names; NULL: "model" */
    /** As for tnf_save(); its format is ignored. `replace` applies to each file, `plan` to the
     *  whole. NULL: defaults. */
    const tnf_save_options *save;
    /** Called for all files, the index last, before the first byte is written. */
    tnf_split_file_fn file;
    void *ctx; /**< passed to both functions */
    /** Called for each file that is left behind under a temporary name; NULL: never. */
    tnf_stray_fn stray;
} tnf_split_options;

/** All defaults; the caller must set the format. */
#define TNF_SPLIT_INIT                                                                             \
    {                                                                                              \
        sizeof(tnf_split_options), NULL, 0, NULL, NULL, NULL, NULL, NULL                           \
    }

/** Saves to several files in a directory, which is made if needed. safetensors (as Hugging Face
 *  writes it) and zTensor 2 get an index. Tensors keep their order; tensors that share bytes stay
 *  in one file. If everything fits into one file, there is no index. The builder must not read from
 *  a file that would be replaced (see tnf_file_reads()).
 *
 *  The files appear when all of them are complete, the index last. After a failure none is left. If
 *  the system stops in between, there is no index. */
TNF_API TNF_CHECKED tnf_status tnf_split(const tnf_builder *builder, const char *directory,
                                         const tnf_split_options *options, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
