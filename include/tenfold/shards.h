/* SPDX-License-Identifier: MIT */
/**
 * @file shards.h
 * Many files as one.
 *
 *     tnf_builder_merge(b, files, names, n, NULL, &error);
 *     tnf_save(b, "all.safetensors", NULL, &error);
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

/** How to merge. Zero-initialise; NULL means all defaults. */
typedef struct tnf_merge_options {
    size_t size;       /**< sizeof(tnf_merge_options) */
    tnf_clash tensors; /**< of the same name */
    tnf_clash attrs;   /**< attributes and extras with other values: REFUSE, FIRST or LAST */
    bool (*select)(void *ctx, tnf_str name); /**< which tensors, by their new names; NULL: all */
    tnf_rename rename;                       /**< new names; NULL: as they are */
    void *ctx;
} tnf_merge_options;

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

#ifdef __cplusplus
}
#endif
#endif
