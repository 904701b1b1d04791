/* SPDX-License-Identifier: MIT */
/**
 * @file build.h
 * Put tensors together and save them in any format that can hold them.
 *
 *     tnf_builder *b;
 *     tnf_builder_new(&b, NULL, &error);
 *     tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 2, (uint64_t[]){2, 3}, values, &error);
 *     tnf_save(b, "model.safetensors", NULL, &error);
 *     tnf_builder_free(b);
 *
 * A builder describes; it copies names, shapes and attributes but never tensor bytes. Those are
 * fetched while saving, front to back, so files larger than memory are no trouble.
 */
#ifndef TENFOLD_BUILD_H
#define TENFOLD_BUILD_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tnf_builder tnf_builder;

/** allocator may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_builder_new(tnf_builder **out, const tnf_allocator *allocator,
                                               tnf_error *error);
TNF_API void tnf_builder_free(tnf_builder *builder);

/** A dense tensor in C order from the caller's memory, which must stay until after saving. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add(tnf_builder *builder, const char *name,
                                               const tnf_type *type, uint32_t rank,
                                               const uint64_t *shape, const void *data,
                                               tnf_error *error);

/** Gives n bytes of a tensor from `offset` on; called in ascending order while saving. */
typedef tnf_status (*tnf_fetch_fn)(void *ctx, uint64_t offset, void *dst, size_t n,
                                   tnf_error *error);

/** A dense tensor whose bytes come from a function while saving. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add_stream(tnf_builder *builder, const char *name,
                                                      const tnf_type *type, uint32_t rank,
                                                      const uint64_t *shape, tnf_fetch_fn fetch,
                                                      void *ctx, tnf_error *error);

/** A tensor of an open file, or built by hand from parts, under the same name or another (NULL:
 *  the same). What it points to must stay until after saving. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add_object(tnf_builder *builder,
                                                      const tnf_object *object, const char *name,
                                                      tnf_error *error);

/** All of an open file: tensors, attributes, extras. The file must stay open until after saving. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add_file(tnf_builder *builder, const tnf_file *file,
                                                    tnf_error *error);

/** An extra of an open file, for formats that can put it back. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add_extra(tnf_builder *builder, const tnf_extra *extra,
                                                     tnf_error *error);

/** Sets (value NULL: removes) an attribute of the file, or of the tensor `name` if that is given.
 */
TNF_API TNF_CHECKED tnf_status tnf_builder_set(tnf_builder *builder, const char *name,
                                               const char *key, const tnf_value *value,
                                               tnf_error *error);

/** A value for tnf_builder_set() from JSON text, in the builder's memory: whole numbers that fit
 *  are i64, or u64 beyond that; other numbers are f64. TNF_EFORMAT or TNF_ETRUNCATED, with the
 *  offset in the text, if it is no JSON. */
TNF_API TNF_CHECKED tnf_status tnf_builder_parse(tnf_value *out, tnf_builder *builder,
                                                 const char *json, size_t n, tnf_error *error);

/* ------------------------------------------------------------------- save */

/** What becomes of an item in a target format. */
typedef enum tnf_fate {
    TNF_NATIVE,      /**< kept, in the format's own way */
    TNF_STASHED,     /**< kept in a reserved metadata entry that Tenfold reads back */
    TNF_TRANSFORMED, /**< its values or its name change */
    TNF_DROPPED      /**< lost */
} tnf_fate;

typedef struct tnf_plan_item {
    tnf_fate fate;
    const char *kind; /**< "tensor", "attribute", "extra": what --allow-loss can name */
    tnf_str name;     /**< of the tensor, attribute or extra */
    const char *reason;
    /** TNF_TRANSFORMED, but neither refused nor asked for: the format's own readers want it so, and
     *  what undoes it is kept. Worth telling; tnf_save_options.as_is prevents it. */
    bool unasked;
} tnf_plan_item;

/** How to save. Begin with TNF_SAVE_INIT; NULL means all defaults. */
typedef struct tnf_save_options {
    size_t size;        /**< sizeof(tnf_save_options) */
    const char *format; /**< name; NULL takes it from the path's extension */
    const tnf_option *options;
    size_t noptions;
    bool replace;     /**< an existing file may be replaced */
    bool no_sync;     /**< skip fsync */
    bool allow_loss;  /**< drop what the format cannot hold instead of refusing */
    bool dry_run;     /**< plan only, write nothing */
    const char *loss; /**< with allow_loss: kinds that may go, separated by commas; NULL: all */
    /** Told the fate of each item before the first byte is written. */
    void (*plan)(void *ctx, const tnf_plan_item *item);
    tnf_progress_fn progress;
    void *ctx;
    /** Save dense tensors of floats as this type (f64 f32 f16 bf16 f8_…): each value becomes the
     *  nearest, of two equally near the even one. NULL: as they are. */
    const char *dtype;
    /** "C" (row by row) or "F" (column by column) for dense tensors, where the format has both;
     *  TNF_EUNSUPPORTED where it has only the other. NULL: as they are. */
    const char *order;
    /** The open file that this is a changed copy of, if it is one: saved in the same format, it has
     *  the same form where no option asks for another (order of the tensors, alignment, encodings,
     *  digests), and encoded parts are copied as they are. NULL: there is none. */
    const tnf_file *like;
    /** Keep values that the format's own readers want in another form. Without it, vectors of words
     *  (a matrix of f32 `embeddings` with its `vocab`, and no `norms`) that did not come from such
     * a file are divided by their lengths for finalfusion, whose tools take rows to be of length 1;
     *  the lengths become `norms`. The plan tells it as TNF_TRANSFORMED and unasked. */
    bool as_is;
} tnf_save_options;

#define TNF_SAVE_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_save_options), NULL, NULL, 0, false, false, false, false, NULL, NULL, NULL,     \
            NULL, NULL, NULL, NULL, false                                                          \
    }

/** Saves to a file: complete under its name, or not at all. TNF_ELOSSY if the format cannot hold
 *  everything and losses are not allowed. */
TNF_API TNF_CHECKED tnf_status tnf_save(const tnf_builder *builder, const char *path,
                                        const tnf_save_options *options, tnf_error *error);
/** Saves to a sink (options->format is required), commits it, and leaves it to the caller. */
TNF_API TNF_CHECKED tnf_status tnf_save_sink(const tnf_builder *builder, tnf_sink *sink,
                                             const tnf_save_options *options, tnf_error *error);

/** Adds what the builder holds to a file that is there, in place, in its own format
 *  (TNF_CAN_APPEND). Not a byte of the file is changed or moved: new ones are written behind them,
 *  and removed again if anything fails. If the system stops in between, the file ends in the middle
 *  of the new ones; opening it leniently gives the model as it was, and so does another append.
 *  Tensors with names that are taken, and attributes that have another value there, are refused
 *  (TNF_EEXISTS). Part bytes that the file has already are not written again. options->replace is
 *  ignored. */
TNF_API TNF_CHECKED tnf_status tnf_append(const tnf_builder *builder, const char *path,
                                          const tnf_save_options *options, tnf_error *error);

/** Saves into the very file that options->like is and `path` names: only bytes that differ are
 *  written, no tensor is moved, nor read where that can be helped. For changed attributes in
 *  formats with TNF_CAN_EDIT. TNF_EUNSUPPORTED, with a reason and before a byte is written, if
 *  anything would have to move, or there is no room: then tnf_save() writes the file anew. All
 *  other names of the file (hard links) show the change, and so do programs that have it open.
 *
 *  Changes within a sector of 512 bytes are one write. For others the bytes that are there are put
 *  beside the file first, in ".NAME.tenfold-undo", which goes when all is on the disk. If the
 *  system stops in between, opening the file fails and tells so; tnf_undo() (repair.h) puts them
 *  back, and so does the next call of this. options->replace and no_sync are ignored. */
TNF_API TNF_CHECKED tnf_status tnf_save_in_place(const tnf_builder *builder, const char *path,
                                                 const tnf_save_options *options, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
