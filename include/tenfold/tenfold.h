/* SPDX-License-Identifier: MIT */
/**
 * @file tenfold.h
 * Read tensor, checkpoint and embedding files of any format.
 *
 *     tnf_error error;
 *     tnf_file *file;
 *     if (tnf_open(&file, "model.safetensors", NULL, &error) != TNF_OK)
 *         return fprintf(stderr, "%s\n", error.message), 1;
 *     const tnf_object *w = tnf_find(file, "w");
 *     float values[6];
 *     if (w && tnf_read(w, values, sizeof values, &error) == TNF_OK)
 *         use(values);
 *     tnf_close(file);
 *
 * Conventions: results come first among the parameters, the error last. A returned pointer is
 * borrowed from its handle. There is nothing global. A handle never changes after tnf_open(), so
 * any number of threads may read it; closing is the caller's to order.
 *
 * Structs that a caller fills and that may grow begin with `size`. Their TNF_…_INIT sets it, and
 * all else to its default; a size of 0, and a member that is set and that the library is too old to
 * know, are refused (TNF_EINVAL). Results that a caller makes room for begin the same way: as much
 * of them is filled as the caller's header knew.
 */
#ifndef TENFOLD_TENFOLD_H
#define TENFOLD_TENFOLD_H

#include <tenfold/io.h>
#include <tenfold/types.h>
#include <tenfold/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that runs, "0.1.0"; TNF_VERSION_STRING is that of the header. */
TNF_API const char *tnf_version(void);

/* ------------------------------------------------------------------- open */

typedef struct tnf_file tnf_file;

/** Memory for a handle. `reallocate` is realloc() that is told the old size; size 0 frees. */
typedef struct tnf_allocator {
    void *(*reallocate)(void *ctx, void *p, size_t old_size, size_t new_size);
    void *ctx;
} tnf_allocator;

/** What a file may ask for. A zero means the default in brackets. */
typedef struct tnf_limits {
    uint64_t header_bytes; /**< index or header [256 MiB] */
    uint64_t memory;       /**< all that a handle keeps [4 GiB] */
    uint64_t objects;      /**< tensors [16,777,216] */
    uint32_t rank;         /**< dimensions [64] */
    uint32_t depth;        /**< nesting of attributes [64] */
    uint32_t name_bytes;   /**< length of a name [65,536] */
    /** What compressed tensors may become when they are all decoded, and what may be written of a
     *  file when it is saved as another (tensors may share their bytes): checked beforehand
     *  [2 GiB, or 1024 times the file where that is more] */
    uint64_t decoded_bytes, output_bytes;
    uint64_t reserved[4]; /**< 0: for limits of later versions */
} tnf_limits;

/** Something odd but legal that a reader saw. */
typedef struct tnf_warning {
    uint64_t offset; /**< or TNF_NO_OFFSET */
    const char *message;
} tnf_warning;

/** A format's own option, as "key" and "value" (see `tenfold formats NAME`). */
typedef struct tnf_option {
    const char *key, *value;
} tnf_option;

/** How to open. Begin with TNF_OPEN_INIT; NULL means all defaults. */
typedef struct tnf_open_options {
    size_t size;             /**< sizeof(tnf_open_options), for later versions */
    const char *format;      /**< skip detection and take this format; NULL detects */
    bool lenient;            /**< warn where the format's real readers look the other way */
    tnf_access access;       /**< mmap or pread */
    tnf_limits limits;       /**< caps */
    tnf_allocator allocator; /**< zero: malloc */
    const tnf_option *options;
    size_t noptions;
    /** Told each warning as it comes; tnf_info keeps the first hundred anyway. */
    void (*warn)(void *ctx, const tnf_warning *warning);
    /** Told what the reader sees as it parses (`tenfold info --trace`). */
    void (*trace)(void *ctx, uint64_t offset, const char *line);
    void *ctx;
    /** For files that are damaged: lenient, and what is not whole is left out. What that is,
     *  tnf_salvage() tells (repair.h). */
    bool salvage;
    /** To change or replace this very file by what is read from it (tnf_save(), tnf_save_in_place()
     *  to the same path): keeps all others that would change or replace it waiting until the handle
     *  is closed, and waits up to a minute for those that do so now. Only for tnf_open(). */
    bool to_change;
} tnf_open_options;

#define TNF_OPEN_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_open_options), NULL, false, TNF_ACCESS_AUTO,                                    \
            { 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0, 0 } }, { NULL, NULL }, NULL, 0, NULL, NULL, NULL, \
            false, false                                                                           \
    }

/** Opens a file, or a directory or index file that stands for one model in several files. Reads the
 *  index only. */
TNF_API TNF_CHECKED tnf_status tnf_open(tnf_file **out, const char *path,
                                        const tnf_open_options *options, tnf_error *error);
/** The same over a source, which then belongs to the handle (also when this fails). */
TNF_API TNF_CHECKED tnf_status tnf_open_source(tnf_file **out, tnf_source *source,
                                               const tnf_open_options *options, tnf_error *error);
/** Releases everything of the handle. NULL is allowed. */
TNF_API void tnf_close(tnf_file *file);

/* ------------------------------------------------------------------- look */

typedef struct tnf_info {
    const char *format;  /**< "safetensors" */
    const char *version; /**< the format's version in the file, "" if it has none */
    uint64_t size;       /**< bytes of the file, or of all its shards */
    uint64_t payload;    /**< decoded bytes of all parts */
    size_t objects;
    const tnf_value *attrs; /**< a map, never NULL */
    const tnf_extra *extras;
    size_t nextras;
    const tnf_warning *warnings;
    size_t nwarnings;
    size_t shards; /**< other files that it is said to be made of, whether they are there or not */
    uint64_t memory; /**< the limit that it was opened with */
} tnf_info;

/** What the file says of itself. */
TNF_API const tnf_info *tnf_file_info(const tnf_file *file);
/** The i-th tensor in file order, NULL past the last. */
TNF_API const tnf_object *tnf_at(const tnf_file *file, size_t i);
/** A tensor by name, or NULL. */
TNF_API const tnf_object *tnf_find(const tnf_file *file, const char *name);
/** The same for a name with a length (names may hold any byte). */
TNF_API const tnf_object *tnf_find_n(const tnf_file *file, const char *name, size_t n);
/** The total of elements of a tensor; 0 for NULL. */
TNF_API uint64_t tnf_elements(const tnf_object *object);

/* ------------------------------------------------------------------- read */

/** All of these take what tnf_find() and tnf_object_part() returned as it is: NULL is
 *  TNF_EINVAL, with a sentence that says so. */

/** The whole of a single-part tensor, decoded and little-endian, in the order it is stored in. n
 *  must be its size in bytes. */
TNF_API TNF_CHECKED tnf_status tnf_read(const tnf_object *object, void *dst, size_t n,
                                        tnf_error *error);
/** n decoded bytes of a part, from its byte `offset` on. */
TNF_API TNF_CHECKED tnf_status tnf_read_part(const tnf_part *part, uint64_t offset, void *dst,
                                             size_t n, tnf_error *error);

/** Is given the decoded bytes of a part in order; whatever it returns but TNF_OK stops. */
typedef tnf_status (*tnf_take_fn)(void *ctx, const void *bytes, size_t n, tnf_error *error);
/** All decoded bytes of a part, in order, a block at a time: what reading an encoded part piece by
 *  piece should be done with, since each tnf_read_part() of it may decode from the start. */
TNF_API TNF_CHECKED tnf_status tnf_scan(const tnf_part *part, tnf_take_fn take, void *ctx,
                                        tnf_error *error);

/** One dimension of a selection, as numpy's start:stop:step. */
typedef struct tnf_slice {
    int64_t start, step;
    uint64_t count; /**< how many elements it takes */
    bool drop;      /**< a plain index: the dimension disappears from the result */
} tnf_slice;

/** Parses "0:4,:,-1" or "...,0" against a shape into `rank` slices. An index out of range is an
 *  error, a range is clipped, as numpy does. */
TNF_API TNF_CHECKED tnf_status tnf_slice_parse(tnf_slice *out, const char *text,
                                               const uint64_t *shape, uint32_t rank,
                                               tnf_error *error);
/** Bytes that tnf_read_slice() writes: elements of sub-byte types are packed without gaps. */
TNF_API uint64_t tnf_slice_bytes(const tnf_object *object, const tnf_slice *slices);
/** The selected elements of a dense tensor (one slice a dimension) in C order, whatever the order
 *  in the file; reads no more of it than needed. */
TNF_API TNF_CHECKED tnf_status tnf_read_slice(const tnf_object *object, const tnf_slice *slices,
                                              void *dst, size_t n, tnf_error *error);

/** Borrows the bytes of a part without copying. TNF_EUNSUPPORTED says plainly why that is
 *  impossible (encoded, big-endian, unaligned for its type, no mmap here): then read it. Touching
 *  the view after somebody cut the file short raises SIGBUS, as with any mmap; reading does not. */
TNF_API TNF_CHECKED tnf_status tnf_map(const void **out, const tnf_part *part, tnf_error *error);

/** Strings lent without copying, in one of two forms:
 *
 *     plain        prefix 0: string i is base[offsets[i]] up to base[offsets[i + 1]]
 *     interleaved  prefix 4: in base each entry is a u32 length (little-endian), that many bytes,
 *                  and `suffix` bytes of something else; entry k * every begins at marks[k]
 *
 *  All of it was checked to lie inside base. It lives as long as the handle. Begin with
 *  TNF_STRINGS_INIT. */
typedef struct tnf_strings {
    size_t size; /**< sizeof(tnf_strings) */
    const uint8_t *base;
    uint64_t count;          /**< of strings */
    uint64_t bytes;          /**< of base: prefixes and suffixes are counted */
    uint32_t prefix, suffix; /**< 4 and its suffix if interleaved, else 0 and 0 */
    const uint64_t *marks;   /**< interleaved: one for every `every` strings begun; else NULL */
    uint32_t every;
    const uint64_t *offsets; /**< plain: count + 1 of them; else NULL */
} tnf_strings;

#define TNF_STRINGS_INIT                                                                           \
    {                                                                                              \
        sizeof(tnf_strings), NULL, 0, 0, 0, 0, NULL, 0, NULL                                       \
    }

/** Borrows the strings of a strings/1 tensor. TNF_EUNSUPPORTED says plainly why that is impossible:
 *  then read its parts `offsets` and `bytes`. */
TNF_API TNF_CHECKED tnf_status tnf_strings_map(tnf_strings *out, const tnf_object *object,
                                               tnf_error *error);

/** A whole part wanted by tnf_read_many(): dst holds part->nbytes. */
typedef struct tnf_request {
    const tnf_part *part;
    void *dst;
} tnf_request;

/** Bytes done of all; return false to stop (TNF_ECANCELLED). Called from one thread at a time. */
typedef bool (*tnf_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/** Begin with TNF_READ_INIT; NULL means all defaults. */
typedef struct tnf_read_options {
    size_t size;      /**< sizeof(tnf_read_options) */
    unsigned threads; /**< 0: one a core, at most 8 */
    tnf_progress_fn progress;
    void *ctx;
} tnf_read_options;

#define TNF_READ_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_read_options), 0, NULL, NULL                                                    \
    }

/** Many parts at once: sorted by position, neighbours merged, read in large blocks in parallel.
 *  After a failure the buffers' content is undefined. */
TNF_API TNF_CHECKED tnf_status tnf_read_many(const tnf_request *requests, size_t n,
                                             const tnf_read_options *options, tnf_error *error);

/** Asks the system to read a part ahead, or to forget it. Hints; they cannot fail. */
TNF_API void tnf_prefetch(const tnf_part *part);
TNF_API void tnf_evict(const tnf_part *part);

/* ----------------------------------------------------------------- verify */

/** Something that does not verify. */
typedef struct tnf_problem {
    tnf_status code;
    uint64_t offset;
    const tnf_object *object; /**< or NULL */
    const char *message;
    const char *rule; /**< as in tnf_error, or NULL */
    tnf_str tensor;   /**< the name of the one it concerns, whether it is there or not; or empty */
} tnf_problem;

/** Counts of the values of one tensor. For complex types each half counts. */
typedef struct tnf_value_counts {
    uint64_t elements, nan, inf, zero;
    double min, max;    /**< of the finite values, as are the two below; 0 if there are none */
    uint64_t subnormal; /**< not 0, but smaller than the smallest normal number of the type */
    double mean;
    double deviation; /**< standard, of the whole: divided by n. 0 if it was not asked for */
    /** The range of integers, exactly: an int64_t if the type is signed. */
    uint64_t min_integer, max_integer;
} tnf_value_counts;

/** Begin with TNF_VERIFY_INIT; NULL means all defaults. */
typedef struct tnf_verify_options {
    size_t size; /**< sizeof(tnf_verify_options) */
    void (*problem)(void *ctx, const tnf_problem *problem);
    /** Wanting this makes verify read and decode every number. */
    void (*values)(void *ctx, const tnf_object *object, const tnf_value_counts *counts);
    tnf_progress_fn progress;
    void *ctx;
    /** Is the file in the format's canonical form, too? TNF_EUNSUPPORTED if there is none. */
    bool canonical;
    unsigned threads; /**< 0: one a core, at most 8 */
    /** Told what is odd, but no problem. */
    void (*warn)(void *ctx, const tnf_warning *warning);
} tnf_verify_options;

#define TNF_VERIFY_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_verify_options), NULL, NULL, NULL, NULL, false, 0, NULL                         \
    }

/** Begin with TNF_VERIFY_RESULT_INIT. */
typedef struct tnf_verify_result {
    size_t size;         /**< sizeof(tnf_verify_result) */
    uint64_t checked;    /**< parts looked at */
    uint64_t undigested; /**< of those, parts without a digest that can be checked */
    uint64_t problems;
} tnf_verify_result;

#define TNF_VERIFY_RESULT_INIT                                                                     \
    {                                                                                              \
        sizeof(tnf_verify_result), 0, 0, 0                                                         \
    }

/** Checks what opening does not: digests, and rules on the data itself. TNF_OK also when problems
 *  were found; those are counted and told, in the order of the file and on the caller's thread. Of
 *  a file that was opened for salvage, what opening gave way to comes first. */
TNF_API TNF_CHECKED tnf_status tnf_verify(tnf_verify_result *out, const tnf_file *file,
                                          const tnf_verify_options *options, tnf_error *error);

/* ------------------------------------------------------------------- hash */

/** Begin with TNF_HASH_INIT; NULL means all defaults. */
typedef struct tnf_hash_options {
    size_t size; /**< sizeof(tnf_hash_options) */
    /** Told the hash of each tensor (of its type, shape, layout and values, not of its name), in
     *  the order of the file and on the caller's thread. */
    void (*tensor)(void *ctx, const tnf_object *object, const uint8_t hash[32]);
    tnf_progress_fn progress;
    void *ctx;
    unsigned threads; /**< 0: one a core, at most 8 */
} tnf_hash_options;

#define TNF_HASH_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_hash_options), NULL, NULL, NULL, 0                                              \
    }

/** The SHA-256 of what is in a file: names, types, shapes, values, attributes, extras. It is the
 *  same for the same content in any format, order and compression (docs/content-hash.md). */
TNF_API TNF_CHECKED tnf_status tnf_content_hash(uint8_t out[32], const tnf_file *file,
                                                const tnf_hash_options *options, tnf_error *error);

/* ---------------------------------------------------------------- formats */

enum {
    TNF_CAN_READ = 1,
    TNF_CAN_WRITE = 2,
    TNF_CAN_APPEND = 4, /**< tnf_append() adds tensors; points of a VS file: points.h */
    TNF_CAN_EDIT = 8    /**< tnf_save_in_place() */
};

typedef enum tnf_option_kind {
    TNF_OPTION_BOOL,   /**< yes or no */
    TNF_OPTION_UINT,   /**< a whole number, with K, M, G for powers of 1024 */
    TNF_OPTION_CHOICE, /**< one of `choices` */
    TNF_OPTION_TEXT    /**< anything */
} tnf_option_kind;

/** An option of a format. */
typedef struct tnf_option_info {
    const char *name;
    tnf_option_kind kind;
    const char *choices; /**< "a|b|c" for TNF_OPTION_CHOICE, else NULL */
    const char *fallback;
    const char *help;
} tnf_option_info;

/** What a format is and can hold. Lists of ids are separated by spaces; NULL means any. Begin with
 *  TNF_FORMAT_INFO_INIT. */
typedef struct tnf_format_info {
    size_t size; /**< sizeof(tnf_format_info) */
    const char *name, *title, *extensions, *family;
    unsigned caps;
    const char *types, *layouts;
    const char *metadata;                /**< "none", "text" or "typed" */
    const tnf_option_info *read_options; /**< ends with a NULL name; or NULL */
    const tnf_option_info *write_options;
} tnf_format_info;

#define TNF_FORMAT_INFO_INIT                                                                       \
    {                                                                                              \
        sizeof(tnf_format_info), NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL           \
    }

/** The i-th format, or false past the last (and, as the next, for an out->size that is none). */
TNF_API bool tnf_format_at(tnf_format_info *out, size_t i);
/** A format by its name; a family's name means its newest writable member. */
TNF_API bool tnf_format_named(tnf_format_info *out, const char *name);
/** The format that tnf_save() writes under this name if it is told none: by the extension.
 * TNF_EINVAL if there is none such, or several of different families. */
TNF_API tnf_status tnf_format_for_path(tnf_format_info *out, const char *path, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
