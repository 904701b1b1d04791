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
 * A builder only describes. It copies names, shapes and attributes, but never the bytes of tensors.
 * Those are read while saving, front to back, so a file may be larger than memory.
 */
#ifndef TENFOLD_BUILD_H
#define TENFOLD_BUILD_H

#include <tenfold/tenfold.h>
#include <tenfold/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A list of tensors and attributes to save. */
typedef struct tnf_builder tnf_builder;

/** Makes an empty builder. `allocator` may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_builder_new(tnf_builder **out, const tnf_allocator *allocator,
                                               tnf_error *error);
/** Frees a builder. NULL is allowed. */
TNF_API void tnf_builder_free(tnf_builder *builder);

/** Adds a dense tensor in C order from the caller's memory, which must stay until after saving. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add(tnf_builder *builder, const char *name,
                                               const tnf_type *type, uint32_t rank,
                                               const uint64_t *shape, const void *data,
                                               tnf_error *error);

/** Adds a dense tensor whose bytes come from a function. While saving, one thread at a time calls
 *  it, with ascending offsets. If the builder is opened by tnf_open_builder(), readers may call it
 *  from several threads at once, at any offset and repeatedly. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add_stream(tnf_builder *builder, const char *name,
                                                      const tnf_type *type, uint32_t rank,
                                                      const uint64_t *shape, tnf_fetch_fn fetch,
                                                      void *ctx, tnf_error *error);
/** The same with a name that may contain any byte. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add_stream_n(tnf_builder *builder, tnf_str name,
                                                        const tnf_type *type, uint32_t rank,
                                                        const uint64_t *shape, tnf_fetch_fn fetch,
                                                        void *ctx, tnf_error *error);

/** Adds a tensor of an open file, or one that was built by hand from parts. `name` is its new name;
 *  NULL keeps the name. Name, shape, the list of parts and attributes are copied; the bytes, roles
 *  and digests of the parts must stay until after saving. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add_object(tnf_builder *builder,
                                                      const tnf_object *object, const char *name,
                                                      tnf_error *error);

/** Adds everything of an open file: tensors, attributes, extras. The file must stay open until
 *  after saving. After a failure the builder may hold some content of the file: free it. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add_file(tnf_builder *builder, const tnf_file *file,
                                                    tnf_error *error);

/** Declares that streams of the builder read from an open file. If the builder is saved to the path
 *  of that file, saving then fails if another program has changed the file meanwhile. Only streams
 *  need this call: for tensors of a file, the builder knows the file. */
TNF_API TNF_CHECKED tnf_status tnf_builder_uses(tnf_builder *builder, const tnf_file *file,
                                                tnf_error *error);

/** Adds an extra of an open file, for formats that can store it. */
TNF_API TNF_CHECKED tnf_status tnf_builder_add_extra(tnf_builder *builder, const tnf_extra *extra,
                                                     tnf_error *error);

/** Sets an attribute, or removes it if `value` is NULL. The attribute belongs to the tensor `name`;
 *  if that is NULL, to the file. An impossible value fails: TNF_EINVAL for a number that does not
 * fit its dtype, a string that is not UTF-8 or a map with a key twice, TNF_EFORMAT for a TNF_JSON
 * that is not JSON, TNF_ELIMIT for more than 64 arrays and maps inside each other. An integer whose
 * dtype is 0 has 64 bits. */
TNF_API TNF_CHECKED tnf_status tnf_builder_set(tnf_builder *builder, const char *name,
                                               const char *key, const tnf_value *value,
                                               tnf_error *error);

/** The same with a name and a key that may contain any byte. `name` NULL means the file. */
TNF_API TNF_CHECKED tnf_status tnf_builder_set_n(tnf_builder *builder, const tnf_str *name,
                                                 tnf_str key, const tnf_value *value,
                                                 tnf_error *error);

/** Makes a value for tnf_builder_set() from JSON text, in the builder's memory. Whole numbers
 * become i64, or u64 if they are larger; other numbers become f64. Text that is not JSON is
 * TNF_EFORMAT or TNF_ETRUNCATED, with the offset in the text. */
TNF_API TNF_CHECKED tnf_status tnf_builder_parse(tnf_value *out, tnf_builder *builder,
                                                 const char *json, size_t n, tnf_error *error);

/** Makes a value for tnf_builder_set() from MessagePack, in the builder's memory. Numbers keep the
 *  width that they are written with. Something that a tnf_value cannot express becomes a map with
 *  one key: {"$ext": [type, bytes]}; {"$str": bytes} for a string that is not UTF-8; {"$pairs":
 *  [[key, value], …]} for a map with duplicate keys or keys that are not text. */
TNF_API TNF_CHECKED tnf_status tnf_builder_unpack(tnf_value *out, tnf_builder *builder,
                                                  const void *msgpack, size_t n, tnf_error *error);

/** Opens the content of a builder as a file, before anything is saved: to list, read, compare or
 *  hash it, or to query its embeddings. The builder and its sources must outlive the handle. The
 *  handle does not see what is added to the builder later. Only the options `limits` and
 *  `allocator` are used; NULL means all defaults. */
TNF_API TNF_CHECKED tnf_status tnf_open_builder(tnf_file **out, const tnf_builder *builder,
                                                const tnf_open_options *options, tnf_error *error);

/* ------------------------------------------------------------------- save */

/** What happens to an item in the target format. */
typedef enum tnf_fate {
    TNF_NATIVE,      /**< kept, in the format's own way */
    TNF_STASHED,     /**< kept in a reserved metadata entry that Tenfold reads back */
    TNF_TRANSFORMED, /**< its values or its name change */
    TNF_DROPPED      /**< lost */
} tnf_fate;

/** One line of the plan of a save. */
typedef struct tnf_plan_item {
    tnf_fate fate;      /**< what happens to it */
    const char *kind;   /**< "tensor", "attribute", "extra": the words of --allow-loss */
    tnf_str name;       /**< of the tensor, attribute or extra */
    const char *reason; /**< why it is not TNF_NATIVE */
    /** The caller did not request this change (TNF_TRANSFORMED), but saving does not refuse it: the
     *  format's own readers need this form, and the file keeps the data that undoes the change.
     *  Show it to the user. tnf_save_options.as_is prevents it. */
    bool unasked;
    /** Reported after the tensor was written, in addition to the tensor's item in the plan, since
     *  only the values could show it: numbers too large for the scales of the requested blocks. */
    bool late;
    /** In addition to the tensor's item: the tensor is written (the fate is TNF_NATIVE), but the
     *  user should know the reason, such as that the format's own program does not load its type.
     *  Reported once for all such tensors, with the first of them. */
    bool note;
} tnf_plan_item;

/** Called with an item of a plan on the caller's thread. The item is valid during the call. */
typedef void (*tnf_plan_fn)(void *ctx, const tnf_plan_item *item);

/** How to save. Begin with TNF_SAVE_INIT; NULL means all defaults. */
typedef struct tnf_save_options {
    size_t size;               /**< sizeof(tnf_save_options) */
    const char *format;        /**< its name; NULL: see tnf_format_for_builder() */
    const tnf_option *options; /**< options of the format */
    size_t noptions;           /**< number of options */
    bool replace;              /**< an existing file may be replaced */
    bool no_sync;              /**< skip fsync */
    bool allow_loss;           /**< drop what the format cannot hold, instead of refusing */
    bool dry_run;              /**< plan only, write nothing */
    const char *loss; /**< with allow_loss: kinds that may be lost, "tensor,extra"; NULL: all */
    /** Called for each item before the first byte is written; for items that are `late`, at the
     *  end. */
    tnf_plan_fn plan;
    tnf_progress_fn progress; /**< called while writing; NULL: never */
    void *ctx;                /**< passed to both functions */
    /** Saves dense tensors of floats as this type (f64 f32 f16 bf16 f8_…). Each value becomes the
     *  nearest one; of two equally near ones, the even one. NULL: no change. */
    const char *dtype;
    /** "C" (row by row) or "F" (column by column) for dense tensors. TNF_EUNSUPPORTED if the format
     *  has only the other one. NULL: no change. */
    const char *order;
    /** The builder holds a changed copy of this open file; NULL: of no file. If the format is the
     *  same, the new file keeps the form of the old one, unless an option requests another form:
     *  order of the tensors, alignment, encodings, digests. Encoded parts are copied without
     *  decoding. */
    const tnf_file *like;
    /** Keeps values that the format's own readers need in another form. Without it, word vectors (a
     *  matrix of f32 `embeddings` with its `vocab`, and no `norms`) that come from another format
     *  are divided by their lengths for finalfusion, whose tools expect rows of length 1. The
     *  lengths become `norms`. The plan says so: TNF_TRANSFORMED and unasked. */
    bool as_is;
    /** For tnf_save_in_place(): if there is no room, the file system may shift everything after
     *  the header (ext4 and XFS can), which is immediate and copies nothing. Programs that have the
     *  file open or mapped, including this one, then find other bytes at the old positions. So do
     *  not read from options->like after the call; only close it. */
    bool shift;
    /** If the path is a URL: how to use the network (remote.h); NULL: all defaults. */
    const struct tnf_url_options *remote;
} tnf_save_options;

/** All defaults. */
#define TNF_SAVE_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_save_options), NULL, NULL, 0, false, false, false, false, NULL, NULL, NULL,     \
            NULL, NULL, NULL, NULL, false, false, NULL                                             \
    }

/** Gets the format that tnf_save() writes for this builder and path: options->format, or the format
 *  of the extension. If several formats share the extension, the result is the only one that can
 *  hold the whole content; TNF_EINVAL, with the names of the formats, if none or several can. */
TNF_API TNF_CHECKED tnf_status tnf_format_for_builder(tnf_format_info *out,
                                                      const tnf_builder *builder, const char *path,
                                                      const tnf_save_options *options,
                                                      tnf_error *error);

/** Saves to a file, which appears under its name only when it is complete. Returns TNF_ELOSSY if
 *  the format cannot hold everything and losses are not allowed. */
TNF_API TNF_CHECKED tnf_status tnf_save(const tnf_builder *builder, const char *path,
                                        const tnf_save_options *options, tnf_error *error);
/** Saves to a sink and commits it. The caller closes the sink. options->format is required. A dry
 *  run needs no sink. */
TNF_API TNF_CHECKED tnf_status tnf_save_sink(const tnf_builder *builder, tnf_sink *sink,
                                             const tnf_save_options *options, tnf_error *error);

/** Adds the content of the builder to an existing file, in place and in its own format, which must
 *  have TNF_CAN_APPEND. No byte of the file is changed or moved. New bytes are written after them,
 *  and removed again if anything fails.
 *
 *  If the system stops in between, the file ends inside the new bytes. If it is opened leniently,
 *  it shows the model as it was; the next append overwrites the incomplete bytes.
 *
 *  A tensor whose name is taken, or an attribute that has another value in the file, is refused
 *  (TNF_EEXISTS). Parts whose bytes the file already has are not written again. options->replace is
 *  ignored. */
TNF_API TNF_CHECKED tnf_status tnf_append(const tnf_builder *builder, const char *path,
                                          const tnf_save_options *options, tnf_error *error);

/** Saves changed attributes into the file itself, in formats with TNF_CAN_EDIT. options->like is
 *  the open file and `path` is its path. Only bytes that differ are written; no tensor is moved.
 *
 *  Returns TNF_EUNSUPPORTED with a reason, before a byte is written, if something must move or
 *  there is no room. Then tnf_save() writes the whole file again. Hard links of the file and
 *  programs that have it open see the change.
 *
 *  A change inside one sector of 512 bytes is a single write. For a larger change, the old bytes
 *  are first saved next to the file as ".NAME.tenfold-undo", which is removed when everything is on
 *  the disk. If the system stops in between, opening the file fails and says so. tnf_undo()
 *  (repair.h) puts the old bytes back; the next call of this function does so, too.
 *  options->replace and no_sync are ignored. */
TNF_API TNF_CHECKED tnf_status tnf_save_in_place(const tnf_builder *builder, const char *path,
                                                 const tnf_save_options *options, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
