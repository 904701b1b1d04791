/* SPDX-License-Identifier: MIT */
/**
 * @file repair.h
 * Save the intact content of a damaged file.
 *
 *     tnf_open_options how = TNF_OPEN_INIT;
 *     how.salvage = true;
 *     tnf_open(&file, "torn.safetensors", &how, &error);
 *     tnf_builder_new(&builder, NULL, &error);
 *     tnf_salvage_result result = TNF_SALVAGE_RESULT_INIT;
 *     tnf_salvage(&result, builder, file, NULL, &error);
 *     tnf_save(builder, "whole.safetensors", NULL, &error);
 *
 * A tensor is saved only if all its bytes are there, match their digests and follow the rules of
 * their layout. No data is guessed or filled in.
 */
#ifndef TENFOLD_REPAIR_H
#define TENFOLD_REPAIR_H

#include <tenfold/build.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Something that cannot be saved. */
typedef struct tnf_loss {
    const char *kind;   /**< "tensor", "extra", or "part": a region of the file with tensors
                             whose names are lost */
    tnf_str name;       /**< name of the tensor or extra; else empty */
    uint64_t offset;    /**< byte in the file, or TNF_NO_OFFSET */
    const char *reason; /**< why it is lost */
} tnf_loss;

/** Called with a loss on the caller's thread. It is valid during the call. */
typedef void (*tnf_lost_fn)(void *ctx, const tnf_loss *loss);

/** How to salvage. Begin with TNF_SALVAGE_INIT; NULL means all defaults. */
typedef struct tnf_salvage_options {
    size_t size; /**< sizeof(tnf_salvage_options) */
    /** Called for each loss, on the caller's thread. */
    tnf_lost_fn lost;
    tnf_progress_fn progress; /**< called while reading; NULL: never */
    void *ctx;                /**< passed to both functions */
    unsigned threads;         /**< 0: one per core, or TENFOLD_THREADS */
} tnf_salvage_options;

/** All defaults. */
#define TNF_SALVAGE_INIT                                                                           \
    {                                                                                              \
        sizeof(tnf_salvage_options), NULL, NULL, NULL, 0                                           \
    }

/** The result in numbers. Begin with TNF_SALVAGE_RESULT_INIT. */
typedef struct tnf_salvage_result {
    size_t size;    /**< sizeof(tnf_salvage_result) */
    uint64_t saved; /**< intact tensors */
    uint64_t lost;  /**< losses of any kind */
} tnf_salvage_result;

/** All 0, with its size. */
#define TNF_SALVAGE_RESULT_INIT                                                                    \
    {                                                                                              \
        sizeof(tnf_salvage_result), 0, 0                                                           \
    }

/** Adds all intact content of a file that was opened for salvage: tensors, attributes, extras.
 *  Reads every tensor. The file must stay open until after saving. */
TNF_API TNF_CHECKED tnf_status tnf_salvage(tnf_salvage_result *out, tnf_builder *builder,
                                           const tnf_file *file, const tnf_salvage_options *options,
                                           tnf_error *error);

/** Undoes an interrupted tnf_save_in_place() of that file: puts the old bytes back. *undone (may be
 *  NULL) says whether there was anything to undo. */
TNF_API TNF_CHECKED tnf_status tnf_undo(bool *undone, const char *path, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
