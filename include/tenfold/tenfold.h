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
 *     if (w && tnf_read(values, sizeof values, w, &error) == TNF_OK)
 *         use(values);
 *     tnf_close(file);
 *
 * Conventions: results come first among the parameters (a buffer, then its length), the error comes
 * last. A callback of the caller gets its `ctx` first. A returned pointer is borrowed from its
 * handle. NULL is safe: a function that returns a status returns TNF_EINVAL for a parameter that
 * must not be NULL; a function that looks something up in NULL returns NULL, false or 0. Only
 * results must point to memory. If a function that returns a pointer through a result (a handle, a
 * tensor, a view) fails, it sets that pointer to NULL. The only global state that a program can see
 * are the URL schemes of tnf_scheme_add() and the counter of tnf_namespace_next(). A handle never
 * changes after tnf_open(), so any number of threads may read it; the caller must close it after
 * the last of them.
 *
 * Structs that the caller fills and that may grow begin with `size`. Their TNF_…_INIT macro sets it
 * and gives all other members their defaults. The library returns TNF_EINVAL for a size that is 0
 * or too small. The same applies if the caller sets a member that is newer than the library.
 * Results that the caller allocates begin with `size`, too; the library fills only the members that
 * the caller's header has.
 */
#ifndef TENFOLD_TENFOLD_H
#define TENFOLD_TENFOLD_H

#include <tenfold/io.h>
#include <tenfold/types.h>
#include <tenfold/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returns the version of the running library, "0.1.0"; TNF_VERSION_STRING is that of the header.
 */
TNF_API const char *tnf_version(void);

/* ------------------------------------------------------------------- open */

/** An open file, or an open model of several files. */
typedef struct tnf_file tnf_file;

/** Limits for a file. 0 means the default in brackets. */
typedef struct tnf_limits {
    uint64_t header_bytes; /**< index or header [256 MiB] */
    uint64_t memory;       /**< all memory of a handle [4 GiB] */
    uint64_t objects;      /**< tensors [16,777,216] */
    uint32_t rank;         /**< dimensions [64] */
    uint32_t depth;        /**< nesting of attributes [64] */
    uint32_t name_bytes;   /**< length of a name [65,536] */
    /** Bytes of all compressed tensors after decoding; checked before decoding [2 GiB, or 1024
     *  times the size of the file if that is larger] */
    uint64_t decoded_bytes;
    /** Bytes written when the file is saved as another one; checked before writing. Tensors
     *  may share their bytes, so this can be more than the file has [as decoded_bytes] */
    uint64_t output_bytes;
    uint64_t reserved[4]; /**< 0: for limits of later versions */
} tnf_limits;

/** Something unusual but legal in a file. */
typedef struct tnf_warning {
    uint64_t offset;     /**< byte in the file, or TNF_NO_OFFSET */
    const char *message; /**< one sentence */
} tnf_warning;

/** An option of a format (see `tenfold formats NAME`). */
typedef struct tnf_option {
    const char *key;   /**< its name */
    const char *value; /**< its value as text */
} tnf_option;

/** How to use the network: remote.h. */
struct tnf_url_options;

/** Called with a line of a trace, which is valid during the call. */
typedef void (*tnf_trace_fn)(void *ctx, uint64_t offset, const char *line);

/** Called with a warning, which is valid during the call. */
typedef void (*tnf_warn_fn)(void *ctx, const tnf_warning *warning);

/** How to open. Begin with TNF_OPEN_INIT; NULL means all defaults. */
typedef struct tnf_open_options {
    size_t size;               /**< sizeof(tnf_open_options) */
    const char *format;        /**< use this format; NULL: detect it */
    bool lenient;              /**< tolerate what the format's own readers tolerate, and warn */
    tnf_access access;         /**< mmap or pread */
    tnf_limits limits;         /**< for hostile files */
    tnf_allocator allocator;   /**< zero: malloc */
    const tnf_option *options; /**< options of the format */
    size_t noptions;           /**< number of options */
    /** Called immediately for each warning; tnf_info also keeps the first hundred. */
    tnf_warn_fn warn;
    /** Called with a line for each step while the reader parses (`tenfold info --trace`). */
    tnf_trace_fn trace;
    void *ctx; /**< passed to both functions */
    /** For damaged files: lenient, and incomplete content is skipped. tnf_salvage() (repair.h)
     *  reports what is missing. */
    bool salvage;
    /** Set this to change or replace this file with data that is read from it (tnf_save() or
     *  tnf_save_in_place() to the same path). Other writers of the file wait until the handle is
     *  closed; this call waits for them, up to a minute. Only for tnf_open(). */
    bool to_change;
    /** A model of several files opens even if some of the files are missing; each missing file
     *  gives a warning. tnf_missing_file() says which tensors are missing. Reading such a tensor
     *  fails, and so do hashing, comparing and saving the whole model. */
    bool incomplete;
    /** A file that is compressed as a whole by gzip or zstd is decoded once, into an unnamed
     *  temporary file of at most limits.decoded_bytes. Not allowed with `to_change`. */
    bool unpack;
    /** For URLs; NULL: all defaults. */
    const struct tnf_url_options *remote;
} tnf_open_options;

/** All defaults. */
#define TNF_OPEN_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_open_options), NULL, false, TNF_ACCESS_AUTO,                                    \
            { 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0, 0 } }, { NULL, NULL }, NULL, 0, NULL, NULL, NULL, \
            false, false, false, false, NULL                                                       \
    }

/** Opens a file, or a model of several files by its index or its directory. Reads the index only.
 * The path may be a URL (remote.h). */
TNF_API TNF_CHECKED tnf_status tnf_open(tnf_file **out, const char *path,
                                        const tnf_open_options *options, tnf_error *error);
/** Opens a source. This call takes ownership of the source, even if it fails. */
TNF_API TNF_CHECKED tnf_status tnf_open_source(tnf_file **out, tnf_source *source,
                                               const tnf_open_options *options, tnf_error *error);
/** Closes a file and frees everything that the handle returned. NULL is allowed. */
TNF_API void tnf_close(tnf_file *file);

/* ------------------------------------------------------------------- look */

/** Describes an open file. */
typedef struct tnf_info {
    const char *format;          /**< "safetensors" */
    const char *version;         /**< the format's version in the file, "" if it has none */
    uint64_t size;               /**< bytes of the file, or of all its shards */
    uint64_t payload;            /**< decoded bytes of all parts */
    size_t objects;              /**< number of tensors */
    const tnf_value *attrs;      /**< a map, never NULL */
    const tnf_extra *extras;     /**< bytes that the reader does not understand */
    size_t nextras;              /**< number of extras */
    const tnf_warning *warnings; /**< the first hundred */
    size_t nwarnings;            /**< number of warnings */
    size_t shards;               /**< number of files that this file names, existing or not; for a
                                  * GGUF set, whose first file names the others, all files of the
                                  * set */
    uint64_t memory;             /**< the memory limit of the handle */
    size_t missing;              /**< number of missing shards (opened as incomplete) */
    const char *first_missing;   /**< the name of the first missing shard; NULL: none is missing */
    uint64_t unnamed;            /**< number of tensors in missing shards whose names are unknown */
} tnf_info;

/** Returns the description of an open file. */
TNF_API const tnf_info *tnf_file_info(const tnf_file *file);
/** Returns the i-th tensor in file order, or NULL past the last one. */
TNF_API const tnf_object *tnf_at(const tnf_file *file, size_t i);
/** Returns a tensor by name, or NULL. */
TNF_API const tnf_object *tnf_find(const tnf_file *file, const char *name);
/** Returns a tensor by a name of n bytes, or NULL. A name may contain any byte. */
TNF_API const tnf_object *tnf_find_n(const tnf_file *file, const char *name, size_t n);
/** Returns the name of the missing file that holds the tensor or one of its parts; NULL: no such
 *  file is missing. If the index contains only the name of a missing tensor, the tensor has no
 *  parts, and its layout is "missing". */
TNF_API const char *tnf_missing_file(const tnf_object *object);
/** Returns the reason why a listed tensor cannot be read, as a sentence fragment; "" if only the
 *  warnings of the file give the reason. NULL: the tensor can be read. */
TNF_API const char *tnf_why_unreadable(const tnf_object *object);
/** Returns the number of elements of a tensor; 0 if `object` is NULL or the number is unknown,
 *  UINT64_MAX if it is too large. */
TNF_API uint64_t tnf_elements(const tnf_object *object);

/* ------------------------------------------------------------------- read */

/* The result of tnf_find() or tnf_object_part() needs no check before these functions: NULL is
 * TNF_EINVAL, with a message that says so. */

/** Reads all bytes of a tensor with one part: decoded, little-endian, in the order in which they
 *  are stored. n must be the exact number of bytes. */
TNF_API TNF_CHECKED tnf_status tnf_read(void *dst, size_t n, const tnf_object *object,
                                        tnf_error *error);
/** Reads n decoded bytes of a part, starting at byte `offset` of it. */
TNF_API TNF_CHECKED tnf_status tnf_read_part(void *dst, size_t n, const tnf_part *part,
                                             uint64_t offset, tnf_error *error);

/** Called with the decoded bytes of a part, block by block, on the caller's thread. Any result but
 *  TNF_OK stops. */
typedef tnf_status (*tnf_take_fn)(void *ctx, const void *bytes, size_t n, tnf_error *error);
/** Passes all decoded bytes of a part to a function, block by block. Use it to read an encoded part
 *  piece by piece, since each tnf_read_part() of such a part may decode it from the start. */
TNF_API TNF_CHECKED tnf_status tnf_scan(const tnf_part *part, tnf_take_fn take, void *ctx,
                                        tnf_error *error);

/** One dimension of a selection, as numpy's start:stop:step. */
typedef struct tnf_slice {
    int64_t start;  /**< the first index */
    int64_t step;   /**< distance to the next one, may be negative */
    uint64_t count; /**< how many elements it selects */
    bool drop;      /**< a plain index: the result does not have this dimension */
} tnf_slice;

/** Parses "0:4,:,-1" or "...,0" into `rank` slices of a shape. As in numpy, an index out of range
 * is an error and a range is clipped. */
TNF_API TNF_CHECKED tnf_status tnf_slice_parse(tnf_slice *out, const char *text,
                                               const uint64_t *shape, uint32_t rank,
                                               tnf_error *error);
/** Returns the number of bytes that tnf_read_slice() writes; UINT64_MAX if `object` is NULL or the
 *  number is too large. Elements smaller than a byte are packed without gaps. */
TNF_API uint64_t tnf_slice_bytes(const tnf_object *object, const tnf_slice *slices);
/** Reads the selected elements of a dense tensor (one slice per dimension), always in C order.
 *  Reads no more of the file than needed. */
TNF_API TNF_CHECKED tnf_status tnf_read_slice(void *dst, size_t n, const tnf_object *object,
                                              const tnf_slice *slices, tnf_error *error);

/** Borrows the bytes of a part without copying them. If that is impossible (encoded, big-endian,
 *  not aligned for its type, no mmap), returns TNF_EUNSUPPORTED and the message says why: then read
 *  the part. If the file is truncated later, touching the view raises SIGBUS, as with any mmap;
 *  reading gives an error instead. */
TNF_API TNF_CHECKED tnf_status tnf_map(const void **out, const tnf_part *part, tnf_error *error);

/** Strings borrowed without copying them, in one of two forms:
 *
 *     plain        prefix 0: string i is base[offsets[i]] up to base[offsets[i + 1]]
 *     interleaved  prefix 4: each entry of base is a u32 length (little-endian), that many bytes,
 *                  and `suffix` other bytes; entry k * every begins at marks[k]
 *
 *  The library has checked that everything is inside base. Valid until the file is closed.
 *  Begin with TNF_STRINGS_INIT. */
typedef struct tnf_strings {
    size_t size;             /**< sizeof(tnf_strings) */
    const uint8_t *base;     /**< the bytes */
    uint64_t count;          /**< number of strings */
    uint64_t bytes;          /**< of base, with prefixes and suffixes */
    uint32_t prefix;         /**< 4 if interleaved, else 0 */
    uint32_t suffix;         /**< bytes after each string if interleaved, else 0 */
    const uint64_t *marks;   /**< interleaved: where every `every`-th entry begins; else NULL */
    uint32_t every;          /**< entries per mark */
    const uint64_t *offsets; /**< plain: count + 1 of them, little-endian; else NULL */
} tnf_strings;

/** All 0, with its size. */
#define TNF_STRINGS_INIT                                                                           \
    {                                                                                              \
        sizeof(tnf_strings), NULL, 0, 0, 0, 0, NULL, 0, NULL                                       \
    }

/** Borrows the strings of a strings/1 tensor. If that is impossible, returns TNF_EUNSUPPORTED and
 *  the message says why: then read its parts `offsets` and `bytes`. */
TNF_API TNF_CHECKED tnf_status tnf_strings_map(tnf_strings *out, const tnf_object *object,
                                               tnf_error *error);

/** Returns true if the attributes of a tensor say that its elements are texts or times; its type
 *  only says how those are stored. *axes becomes the number of trailing dimensions that form one
 * such element: 1 for texts (the dimension of their characters), 0 for times. */
TNF_API bool tnf_has_element_text(uint32_t *axes, const tnf_object *object);
/** Writes one such element as readable text. A text is converted to UTF-8; a text of bytes is
 *  copied unchanged. Padding is removed. A time becomes ISO 8601, or "NaT". `bytes` are the n
 *  bytes of the element, as tnf_read_slice() returns them. Returns the length without the NUL, as
 *  snprintf() does, even if there is less room; SIZE_MAX if the tensor has no such elements. */
TNF_API size_t tnf_element_text(char *out, size_t room, const tnf_object *object, const void *bytes,
                                size_t n);

/** A complete part to read with tnf_read_many(). */
typedef struct tnf_request {
    const tnf_part *part; /**< what to read */
    void *dst;            /**< memory for part->nbytes bytes */
} tnf_request;

/** Called with the number of bytes done and the total, by one thread at a time. Return false to
 *  stop (TNF_ECANCELLED). */
typedef bool (*tnf_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/** How to read. Begin with TNF_READ_INIT; NULL means all defaults. */
typedef struct tnf_read_options {
    size_t size;              /**< sizeof(tnf_read_options) */
    unsigned threads;         /**< 0: one per core, or TENFOLD_THREADS */
    tnf_progress_fn progress; /**< called while reading; NULL: never */
    void *ctx;                /**< passed to progress */
} tnf_read_options;

/** All defaults. */
#define TNF_READ_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_read_options), 0, NULL, NULL                                                    \
    }

/** Reads many parts at once. The reads are sorted by position, neighbours are joined into large
 *  blocks, and the blocks are read in parallel. After a failure the content of the buffers is
 *  undefined. */
TNF_API TNF_CHECKED tnf_status tnf_read_many(const tnf_request *requests, size_t n,
                                             const tnf_read_options *options, tnf_error *error);

/** Asks the system to read a part ahead. A hint; it cannot fail. */
TNF_API void tnf_prefetch(const tnf_part *part);
/** Asks the system to drop a part from its cache. A hint; it cannot fail. */
TNF_API void tnf_evict(const tnf_part *part);

/* ----------------------------------------------------------------- verify */

/** A problem that tnf_verify() found. */
typedef struct tnf_problem {
    tnf_status code;          /**< what kind of problem */
    uint64_t offset;          /**< byte in the file, or TNF_NO_OFFSET */
    const tnf_object *object; /**< the tensor with the problem, or NULL */
    const char *message;      /**< one sentence */
    const char *rule;         /**< as in tnf_error, or NULL */
    tnf_str tensor;           /**< the tensor's name, even if the tensor is missing; or empty */
} tnf_problem;

/** Counts of the values of one tensor. Both halves of a complex number count. Minimum, maximum,
 * mean and deviation are of the finite values; they are 0 if there are none. */
typedef struct tnf_value_counts {
    uint64_t elements;    /**< number of elements */
    uint64_t nan;         /**< not a number */
    uint64_t inf;         /**< infinite */
    uint64_t zero;        /**< 0 or -0 */
    double min;           /**< the smallest */
    double max;           /**< the largest */
    uint64_t subnormal;   /**< not 0, but smaller than the smallest normal number of the type */
    double mean;          /**< the mean */
    double deviation;     /**< standard deviation of the whole (divided by n); 0 if not requested */
    uint64_t min_integer; /**< for integers: the exact minimum; an int64_t if the type is signed */
    uint64_t max_integer; /**< for integers: the exact maximum; an int64_t if the type is signed */
} tnf_value_counts;

/** Called with a keyword and a value on the caller's thread. Both are valid during the call. */
typedef void (*tnf_note_fn)(void *ctx, const char *key, const tnf_value *value);

/** Called with the counts of a tensor on the caller's thread. They are valid during the call. */
typedef void (*tnf_values_fn)(void *ctx, const tnf_object *object, const tnf_value_counts *counts);

/** Called with a problem on the caller's thread. The problem is valid during the call. */
typedef void (*tnf_problem_fn)(void *ctx, const tnf_problem *problem);

/** How to verify. Begin with TNF_VERIFY_INIT; NULL means all defaults. */
typedef struct tnf_verify_options {
    size_t size; /**< sizeof(tnf_verify_options) */
    /** Called for each problem. */
    tnf_problem_fn problem;
    /** Called for each tensor of numbers. If it is set, every number is read and decoded. */
    tnf_values_fn values;
    tnf_progress_fn progress; /**< called while reading; NULL: never */
    void *ctx;                /**< passed to all functions */
    /** Also checks that the file has the format's canonical form. TNF_EUNSUPPORTED if the format
     * has none. */
    bool canonical;
    unsigned threads; /**< 0: one per core, or TENFOLD_THREADS */
    /** Called for each finding that is unusual, but not a problem. */
    tnf_warn_fn warn;
    /** Also checks whether this program ("llama.cpp") would load the file; each reason why it would
     *  not is a problem. TNF_EINVAL if Tenfold has no rules for that program and the format. NULL:
     *  no such check. With a program, tnf_verify_path() and tnf_verify_source() open the file
     *  leniently, since programs load files that their format forbids. */
    const char *program;
    /** Called with each other finding of the format, such as the functions that the pickles in a
     *  file would call: a keyword and a value. The value is valid during the call. */
    tnf_note_fn note;
} tnf_verify_options;

/** All defaults. */
#define TNF_VERIFY_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_verify_options), NULL, NULL, NULL, NULL, false, 0, NULL, NULL, NULL             \
    }

/** The result of a verification, in numbers. Begin with TNF_VERIFY_RESULT_INIT. */
typedef struct tnf_verify_result {
    size_t size;         /**< sizeof(tnf_verify_result) */
    uint64_t checked;    /**< parts that were checked */
    uint64_t undigested; /**< of those, parts without a digest that can be checked */
    uint64_t problems;   /**< problems found */
    tnf_status opening;  /**< TNF_OK, or why the file did not open: see tnf_verify_path() */
} tnf_verify_result;

/** All 0, with its size. */
#define TNF_VERIFY_RESULT_INIT                                                                     \
    {                                                                                              \
        sizeof(tnf_verify_result), 0, 0, 0, TNF_OK                                                 \
    }

/** Checks what opening does not check: digests, and rules about the data. Returns TNF_OK even if
 *  there are problems; they are counted and reported in file order, on the caller's thread. If the
 *  file was opened for salvage, the faults that opening tolerated come first. */
TNF_API TNF_CHECKED tnf_status tnf_verify(tnf_verify_result *out, const tnf_file *file,
                                          const tnf_verify_options *options, tnf_error *error);

/** Opens a file and verifies it. If a fault of the file prevents opening, the call returns TNF_OK:
 *  the fault is reported as a problem, and `opening` in the result is its status. If the file
 *  cannot be opened for another reason (it does not exist, memory is short), the call fails.
 *
 *  Opening a model of several files stops at the first fault. This function then opens the model
 *  again, for salvage, and verifies the files that exist: it reports all their faults, not only
 *  the first one.
 *
 *  *file (`file` may be NULL) becomes the open handle, or NULL if there is none. The caller closes
 *  it. */
TNF_API TNF_CHECKED tnf_status tnf_verify_path(tnf_verify_result *out, tnf_file **file,
                                               const char *path, const tnf_open_options *how,
                                               const tnf_verify_options *options, tnf_error *error);
/** Like tnf_verify_path(), but reads from a source, and never opens it again. The call takes
 *  ownership of the source, even if it fails; a returned handle then owns it. */
TNF_API TNF_CHECKED tnf_status tnf_verify_source(tnf_verify_result *out, tnf_file **file,
                                                 tnf_source *source, const tnf_open_options *how,
                                                 const tnf_verify_options *options,
                                                 tnf_error *error);

/* ------------------------------------------------------------------- hash */

/** The version of the content hash. */
#define TNF_HASH_VERSION 2
/** Bytes of a leaf; the last leaf of a part may be shorter. */
#define TNF_LEAF_BYTES   4194304u

/** The hash of one block of a part. The bytes of the part are decoded, little-endian, row by row
 *  for a dense tensor, and cut at every TNF_LEAF_BYTES. A part without bytes has no leaf. */
typedef struct tnf_leaf {
    const tnf_object *object; /**< the tensor */
    const tnf_part *part;     /**< its part */
    uint64_t offset;          /**< of the first byte, in the hashed bytes */
    uint64_t nbytes;          /**< bytes of this leaf */
    const uint8_t *hash;      /**< 32 bytes, valid during the call */
} tnf_leaf;

/** Called with a leaf on the caller's thread. It is valid during the call. */
typedef void (*tnf_leaf_fn)(void *ctx, const tnf_leaf *leaf);

/** Called with the hash of a tensor on the caller's thread. It is valid during the call. */
typedef void (*tnf_hash_fn)(void *ctx, const tnf_object *object, const uint8_t hash[32]);

/** How to hash. Begin with TNF_HASH_INIT; NULL means all defaults. */
typedef struct tnf_hash_options {
    size_t size; /**< sizeof(tnf_hash_options) */
    /** Called with the hash of each tensor, in file order and on the caller's thread. The hash
     *  covers type, shape, layout and values, but not the name. */
    tnf_hash_fn tensor;
    tnf_progress_fn progress; /**< called while reading; NULL: never */
    void *ctx;                /**< passed to all functions */
    unsigned threads;         /**< 0: one per core, or TENFOLD_THREADS */
    /** Called with each leaf of a tensor, sorted by the role of its part and by offset, before the
     *  tensor's hash. Leaves show later which 4 MiB have changed. The library keeps them in memory
     *  until it has hashed the tensor: 8 KB per GB. */
    tnf_leaf_fn leaf;
} tnf_hash_options;

/** All defaults. */
#define TNF_HASH_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_hash_options), NULL, NULL, NULL, 0, NULL                                        \
    }

/** Computes the SHA-256 of the content of a file: names, types, shapes, values, attributes, extras.
 *  The same content has the same hash in any format, order and compression, for any number of
 *  threads, and whichever formats the library was built with (docs/content-hash.md). Several
 *  threads share the work, even for a single tensor. */
TNF_API TNF_CHECKED tnf_status tnf_content_hash(uint8_t out[32], const tnf_file *file,
                                                const tnf_hash_options *options, tnf_error *error);

/* ---------------------------------------------------------------- formats */

/** What a format can do. */
enum {
    TNF_CAN_READ = 1,   /**< its files can be opened */
    TNF_CAN_WRITE = 2,  /**< its files can be saved */
    TNF_CAN_APPEND = 4, /**< tnf_append() */
    TNF_CAN_EDIT = 8    /**< tnf_save_in_place() */
};

/** The kind of a format's option. */
typedef enum tnf_option_kind {
    TNF_OPTION_BOOL,   /**< yes or no */
    TNF_OPTION_UINT,   /**< a whole number, with K, M, G for powers of 1024 */
    TNF_OPTION_CHOICE, /**< one of `choices` */
    TNF_OPTION_TEXT    /**< any text */
} tnf_option_kind;

/** An option of a format. */
typedef struct tnf_option_info {
    const char *name;     /**< its key */
    tnf_option_kind kind; /**< which values it takes */
    const char *choices;  /**< "a|b|c" for TNF_OPTION_CHOICE, else NULL */
    const char *fallback; /**< its default */
    const char *help;     /**< one line */
} tnf_option_info;

/** The rules by which the vector of a word includes its n-grams. fastText and finalfusion differ in
 *  the word "</s>", which has no n-grams in fastText; in n-grams of one character, which fastText
 *  does not take from the edge of a word; and in words that are not UTF-8. */
typedef enum tnf_fold {
    TNF_FOLD_NONE,       /**< no change */
    TNF_FOLD_FASTTEXT,   /**< as fastText itself */
    TNF_FOLD_FINALFUSION /**< as finalfusion's tools import and export fastText models */
} tnf_fold;

/** What a format is and what it can hold. Lists have spaces between their ids; NULL means any. */
typedef struct tnf_format_info {
    size_t size;                          /**< sizeof(tnf_format_info) */
    const char *name;                     /**< "safetensors" */
    const char *title;                    /**< one line */
    const char *extensions;               /**< of its files */
    const char *family;                   /**< the name that it shares with its other versions */
    unsigned caps;                        /**< TNF_CAN_… */
    const char *types;                    /**< ids of element types */
    const char *layouts;                  /**< ids of layouts */
    const char *metadata;                 /**< "none", "text" or "typed" */
    const tnf_option_info *read_options;  /**< ends with a NULL name; or NULL */
    const tnf_option_info *write_options; /**< ends with a NULL name; or NULL */
    /** The format stores the rows of words as complete vectors. When a fastText model is saved, the
     *  row of a word is combined with the rows of its n-grams by this rule. TNF_FOLD_NONE: the
     *  format stores any rows. */
    tnf_fold folds;
    /** The format stores only the words' own part in their rows, as fastText trains them. When
     *  vectors are saved, the rows of n-grams are removed from them by this rule. TNF_FOLD_NONE:
     *  they are not removed. */
    tnf_fold unfolds;
    const char *document; /**< the attribute that holds all metadata as one text; NULL: none */
    /** The prefix that its reader puts before every key of a file: "gguf." for gguf; NULL: none. */
    const char *prefix;
    /** Programs that read the format expect exact types of numbers: prefer u32, i32 or f32 for new
     *  attributes. */
    bool narrow;
    uint8_t reserved[7]; /**< 0: for a later version */
} tnf_format_info;

/** All 0, with its size. */
#define TNF_FORMAT_INFO_INIT                                                                       \
    {                                                                                              \
        sizeof(tnf_format_info), NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL,          \
            TNF_FOLD_NONE, TNF_FOLD_NONE, NULL, NULL, false,                                       \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/** Gets the i-th format; false past the last one, or if out->size is invalid. */
TNF_API bool tnf_format_at(tnf_format_info *out, size_t i);
/** Gets a format by its name; false if there is none, or if out->size is invalid. The name of a
 *  family selects its newest version that can be written. */
TNF_API bool tnf_format_named(tnf_format_info *out, const char *name);
/** Gets the format that tnf_save() uses for this path if the options name none: by the extension.
 *  TNF_EINVAL if no format has that extension, or several of different families. */
TNF_API TNF_CHECKED tnf_status tnf_format_for_path(tnf_format_info *out, const char *path,
                                                   tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
