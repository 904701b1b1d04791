/* SPDX-License-Identifier: MIT */
/**
 * @file repair.h
 * What can be saved of a damaged file.
 *
 *     tnf_open_options how = { .size = sizeof how, .salvage = true };
 *     tnf_open(&file, "torn.safetensors", &how, &error);
 *     tnf_builder_new(&builder, NULL, &error);
 *     tnf_salvage_result result = TNF_SALVAGE_RESULT_INIT;
 *     tnf_salvage(&result, builder, file, NULL, &error);
 *     tnf_save(builder, "whole.safetensors", NULL, &error);
 *
 * Saved is only what the file holds whole: tensors all of whose bytes are there, match their
 * digests and keep the rules of their layout. Nothing is guessed or filled in.
 */
#ifndef TENFOLD_REPAIR_H
#define TENFOLD_REPAIR_H

#include <tenfold/build.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Something that cannot be saved. */
typedef struct tnf_loss {
    const char
        *kind;       /**< "tensor", "extra", or "part": of the file, with tensors nobody can name */
    tnf_str name;    /**< of a tensor or an extra; else empty */
    uint64_t offset; /**< or TNF_NO_OFFSET */
    const char *reason;
} tnf_loss;

/** Begin with TNF_SALVAGE_INIT; NULL means all defaults. */
typedef struct tnf_salvage_options {
    size_t size; /**< sizeof(tnf_salvage_options) */
    /** Told of each, on the caller's thread. */
    void (*lost)(void *ctx, const tnf_loss *loss);
    tnf_progress_fn progress;
    void *ctx;
    unsigned threads; /**< 0: one a core, at most 8 */
} tnf_salvage_options;

#define TNF_SALVAGE_INIT                                                                           \
    {                                                                                              \
        sizeof(tnf_salvage_options), NULL, NULL, NULL, 0                                           \
    }

/** Begin with TNF_SALVAGE_RESULT_INIT. */
typedef struct tnf_salvage_result {
    size_t size;    /**< sizeof(tnf_salvage_result) */
    uint64_t saved; /**< tensors */
    uint64_t lost;  /**< things */
} tnf_salvage_result;

#define TNF_SALVAGE_RESULT_INIT                                                                    \
    {                                                                                              \
        sizeof(tnf_salvage_result), 0, 0                                                           \
    }

/** Adds all that is whole in a file opened for salvage: tensors, attributes, extras. The file must
 *  stay open until after saving. Reads every tensor. */
TNF_API TNF_CHECKED tnf_status tnf_salvage(tnf_salvage_result *out, tnf_builder *builder,
                                           const tnf_file *file, const tnf_salvage_options *options,
                                           tnf_error *error);

/** Puts back what was there before a tnf_save_in_place() of that file that was interrupted. *undone
 *  (may be NULL) tells whether there was anything to do. */
TNF_API TNF_CHECKED tnf_status tnf_undo(bool *undone, const char *path, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
