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
 * last. A function of the caller gets its `ctx` first. A returned pointer is borrowed from its
 * handle. NULL is never followed: a function with a status returns TNF_EINVAL if a parameter is
 * NULL that must be set, and a function that looks something up in NULL finds nothing (NULL, false,
 * 0). Only results must point to memory. Nothing is global but the URL schemes of tnf_scheme_add().
 * A handle never changes after tnf_open(), so any number of threads may read it; the caller must
 * close it after the last of them.
 *
 * Structs that the caller fills and that may grow begin with `size`. Their TNF_…_INIT macro sets it
 * and gives all other members their defaults. The library refuses a size that is 0 or too small,
 * and a member that is set and that it is too old to know (TNF_EINVAL). Results that the caller
 * allocates begin the same way; the library fills as much as the caller's header knows.
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

/** The memory of a handle: all that it keeps to tell what is in a file. Buffers of reading come
 *  from malloc(), since any number of threads may read at once. */
typedef struct tnf_allocator {
    /** As realloc(), with the old size as well. A new size of 0 frees. */
    void *(*reallocate)(void *ctx, void *p, size_t old_size, size_t new_size);
    void *ctx; /**< passed to reallocate */
} tnf_allocator;

/** Limits for a file. 0 means the default in brackets. */
typedef struct tnf_limits {
    uint64_t header_bytes; /**< index or header [256 MiB] */
    uint64_t memory;       /**< all memory of a handle [4 GiB] */
    uint64_t objects;      /**< tensors [16,777,216] */
    uint32_t rank;         /**< dimensions [64] */
    uint32_t depth;        /**< nesting of attributes [64] */
    uint32_t name_bytes;   /**< length of a name [65,536] */
    /** Bytes of all compressed tensors after decoding; checked before decoding [2 GiB, or 1024
     * times the file if that is more] */
    uint64_t decoded_bytes;
    /** Bytes written when the file is saved as another one; checked before writing, since tensors
     *  may share their bytes [as decoded_bytes] */
    uint64_t output_bytes;
    uint64_t reserved[4]; /**< 0: for limits of later versions */
} tnf_limits;

/** Something unusual but legal in a file. */
typedef struct tnf_warning {
    uint64_t offset;     /**< or TNF_NO_OFFSET */
    const char *message; /**< one sentence */
} tnf_warning;

/** An option of a format (see `tenfold formats NAME`). */
typedef struct tnf_option {
    const char *key;   /**< its name */
    const char *value; /**< its value as text */
} tnf_option;

/** How to use the network: remote.h. */
struct tnf_url_options;

/** How to open. Begin with TNF_OPEN_INIT; NULL means all defaults. */
typedef struct tnf_open_options {
    size_t size;               /**< sizeof(tnf_open_options) */
    const char *format;        /**< use this format; NULL: detect it */
    bool lenient;              /**< warn where the format's real readers are tolerant */
    tnf_access access;         /**< mmap or pread */
    tnf_limits limits;         /**< for hostile files */
    tnf_allocator allocator;   /**< zero: malloc */
    const tnf_option *options; /**< options of the format */
    size_t noptions;           /**< number of options */
    /** Called for each warning at once; tnf_info also keeps the first hundred. */
    void (*warn)(void *ctx, const tnf_warning *warning);
    /** Called with what the reader sees while it parses (`tenfold info --trace`). */
    void (*trace)(void *ctx, uint64_t offset, const char *line);
    void *ctx; /**< passed to both functions */
    /** For damaged files: lenient, and leaves out what is not whole. tnf_salvage() (repair.h)
     *  reports what is missing. */
    bool salvage;
    /** For changing or replacing this file by what is read from it (tnf_save() or
     *  tnf_save_in_place() to the same path). Other writers of the file wait until the handle is
     *  closed; this call waits for them, up to a minute. Only for tnf_open(). */
    bool to_change;
    /** A model in several files opens although some of them are missing, with a warning for each:
     *  to see what there is. tnf_missing_file() tells which tensors are not; reading one of them
     *  fails, and so do hashing, comparing and saving the whole. */
    bool incomplete;
    /** A file that is compressed as a whole by gzip or zstd is decoded once, into a temporary file
     *  without a name, of at most limits.decoded_bytes. Not with `to_change`. */
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
/** Opens a source. The source then belongs to the handle, also if this call fails. */
TNF_API TNF_CHECKED tnf_status tnf_open_source(tnf_file **out, tnf_source *source,
                                               const tnf_open_options *options, tnf_error *error);
/** Closes a file and frees everything that the handle returned. NULL is allowed. */
TNF_API void tnf_close(tnf_file *file);

/* ------------------------------------------------------------------- look */

/** What is known of an open file. */
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
    size_t nwarnings;            /**< number of those */
    size_t shards;               /**< number of files that it names, existing or not; of a set of
                                  * GGUF, whose first file names the others, all of the set */
    uint64_t memory;             /**< the memory limit that it was opened with */
    size_t missing;              /**< number of those that are missing (opened as incomplete) */
    const char *first_missing;   /**< the name of the first of them; NULL: none is missing */
    uint64_t unnamed;            /**< tensors in missing files whose names are not known */
} tnf_info;

/** Returns what is known of a file. */
TNF_API const tnf_info *tnf_file_info(const tnf_file *file);
/** Returns the i-th tensor in file order, or NULL past the last one. */
TNF_API const tnf_object *tnf_at(const tnf_file *file, size_t i);
/** Returns a tensor by name, or NULL. */
TNF_API const tnf_object *tnf_find(const tnf_file *file, const char *name);
/** Returns a tensor by a name of n bytes, or NULL. A name may contain any byte. */
TNF_API const tnf_object *tnf_find_n(const tnf_file *file, const char *name, size_t n);
/** Returns the name of the missing file that holds the tensor, or a part of it; NULL: none is
 * missing. The index may contain only the name of such a tensor: then it has no parts, and the
 * layout "missing". */
TNF_API const char *tnf_missing_file(const tnf_object *object);
/** Returns why a tensor is listed but cannot be read, as a piece of a sentence ("" if only the
 *  warnings of the file tell); NULL: it can be read. */
TNF_API const char *tnf_why_unreadable(const tnf_object *object);
/** Returns the number of elements of a tensor; 0 for NULL, and if it is not known. */
TNF_API uint64_t tnf_elements(const tnf_object *object);

/* ------------------------------------------------------------------- read */

/* The result of tnf_find() or tnf_object_part() needs no check before these functions: NULL is
 * TNF_EINVAL, with a message that says so. */

/** Reads all bytes of a tensor with one part: decoded, little-endian, in the order in which they
 * are stored. n must be their number. */
TNF_API TNF_CHECKED tnf_status tnf_read(void *dst, size_t n, const tnf_object *object,
                                        tnf_error *error);
/** Reads n decoded bytes of a part, starting at byte `offset` of it. */
TNF_API TNF_CHECKED tnf_status tnf_read_part(void *dst, size_t n, const tnf_part *part,
                                             uint64_t offset, tnf_error *error);

/** Called with the decoded bytes of a part, block by block. Any result but TNF_OK stops. */
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
/** Returns the number of bytes that tnf_read_slice() writes. Elements smaller than a byte are
 * packed without gaps. */
TNF_API uint64_t tnf_slice_bytes(const tnf_object *object, const tnf_slice *slices);
/** Reads the selected elements of a dense tensor (one slice per dimension), always in C order.
 *  Reads no more of the file than needed. */
TNF_API TNF_CHECKED tnf_status tnf_read_slice(void *dst, size_t n, const tnf_object *object,
                                              const tnf_slice *slices, tnf_error *error);

/** Borrows the bytes of a part without copying them. If that is impossible (encoded, big-endian,
 * not aligned for its type, no mmap), returns TNF_EUNSUPPORTED and the message says why: then read
 * it. If the file is cut short later, touching the view raises SIGBUS, as with any mmap; reading
 * gives an error instead. */
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
    const uint64_t *offsets; /**< plain: count + 1 of them; else NULL */
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

/** Do the elements of a tensor stand for texts or times, as its attributes say? Then *axes is how
 *  many of the last dimensions make one of them: 1 for texts, whose characters they are, 0 for
 *  times. The type of the tensor says only what they are made of. */
TNF_API bool tnf_has_element_text(uint32_t *axes, const tnf_object *object);
/** One of them as text for people: texts in UTF-8 or, if they are bytes, as they are, without what
 *  pads them; times by ISO 8601, or "NaT". `bytes` are its n bytes as tnf_read_slice() gives them.
 *  Gives the length without the NUL, as snprintf() does, also if there is less room; SIZE_MAX if
 *  the tensor has no such elements. */
TNF_API size_t tnf_element_text(char *out, size_t room, const tnf_object *object, const void *bytes,
                                size_t n);

/** A whole part to read with tnf_read_many(). */
typedef struct tnf_request {
    const tnf_part *part; /**< what to read */
    void *dst;            /**< memory for part->nbytes bytes */
} tnf_request;

/** Called with the bytes done and the bytes in all, by one thread at a time. Return false to stop
 *  (TNF_ECANCELLED). */
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

/** Reads many parts at once: sorted by position, neighbours joined, in large blocks and in
 * parallel. After a failure the content of the buffers is undefined. */
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
    const tnf_object *object; /**< or NULL */
    const char *message;      /**< one sentence */
    const char *rule;         /**< as in tnf_error, or NULL */
    tnf_str tensor;           /**< the tensor's name, also if the tensor is missing; or empty */
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
    double deviation;     /**< standard deviation of the whole (divided by n); 0 if not asked for */
    uint64_t min_integer; /**< for integers: the exact minimum; an int64_t if the type is signed */
    uint64_t max_integer; /**< for integers: the exact maximum; an int64_t if the type is signed */
} tnf_value_counts;

/** How to verify. Begin with TNF_VERIFY_INIT; NULL means all defaults. */
typedef struct tnf_verify_options {
    size_t size; /**< sizeof(tnf_verify_options) */
    /** Called for each problem. */
    void (*problem)(void *ctx, const tnf_problem *problem);
    /** Called for each tensor of numbers. If it is set, every number is read and decoded. */
    void (*values)(void *ctx, const tnf_object *object, const tnf_value_counts *counts);
    tnf_progress_fn progress; /**< called while reading; NULL: never */
    void *ctx;                /**< passed to all functions */
    /** Also checks that the file has the format's canonical form. TNF_EUNSUPPORTED if the format
     * has none. */
    bool canonical;
    unsigned threads; /**< 0: one per core, or TENFOLD_THREADS */
    /** Called for what is unusual, but not a problem. */
    void (*warn)(void *ctx, const tnf_warning *warning);
    /** Would this program load it ("llama.cpp")? Every reason why not is a problem.
     * TNF_EINVAL if nothing is known of that program and the format. NULL: not asked.
     * tnf_verify_path() and tnf_verify_source() then open the file leniently: programs load what
     * a format forbids. */
    const char *program;
    /** Called for what else the format has to tell, such as what the pickles in a file would call:
     *  a word and a value. The value is valid during the call. */
    void (*note)(void *ctx, const char *key, const tnf_value *value);
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
    tnf_status opening;  /**< TNF_OK, or why the file does not open: tnf_verify_path() */
} tnf_verify_result;

/** All 0, with its size. */
#define TNF_VERIFY_RESULT_INIT                                                                     \
    {                                                                                              \
        sizeof(tnf_verify_result), 0, 0, 0, TNF_OK                                                 \
    }

/** Checks what opening does not check: digests, and rules about the data. Returns TNF_OK also if
 *  there are problems; those are counted and reported in file order, on the caller's thread. If the
 *  file was opened for salvage, the faults that opening tolerated come first. */
TNF_API TNF_CHECKED tnf_status tnf_verify(tnf_verify_result *out, const tnf_file *file,
                                          const tnf_verify_options *options, tnf_error *error);

/** Opens a file and verifies it. That it does not open, for a reason that lies in it, is a problem
 *  as well: it is told, and `opening` of the result says so. Of a model in several files, whose
 *  opening ends with the first fault, all faults are told in its place: it is opened once more, for
 *  salvage, and what is there is verified. TNF_OK also then; what is not the file's fault (it is
 *  not there, there is no memory) fails. *file (may be NULL) becomes the handle to look at and to
 *  close, or NULL if there is none. */
TNF_API TNF_CHECKED tnf_status tnf_verify_path(tnf_verify_result *out, tnf_file **file,
                                               const char *path, const tnf_open_options *how,
                                               const tnf_verify_options *options, tnf_error *error);
/** The same over a source, which then belongs to the handle (also when this fails); it is not
 *  opened again. */
TNF_API TNF_CHECKED tnf_status tnf_verify_source(tnf_verify_result *out, tnf_file **file,
                                                 tnf_source *source, const tnf_open_options *how,
                                                 const tnf_verify_options *options,
                                                 tnf_error *error);

/* ------------------------------------------------------------------- hash */

/** The version of the content hash. */
#define TNF_HASH_VERSION 2
/** Bytes of a leaf; the last leaf of a part may be shorter. */
#define TNF_LEAF_BYTES   4194304u

/** The hash of some of the bytes of a part: decoded, little-endian, of a dense tensor row by row,
 *  cut at every TNF_LEAF_BYTES. Of a part without bytes there is none. */
typedef struct tnf_leaf {
    const tnf_object *object; /**< the tensor */
    const tnf_part *part;     /**< its part */
    uint64_t offset;          /**< of the first byte, in the bytes that are hashed */
    uint64_t nbytes;          /**< bytes of this leaf */
    const uint8_t *hash;      /**< 32 bytes, valid during the call */
} tnf_leaf;

/** How to hash. Begin with TNF_HASH_INIT; NULL means all defaults. */
typedef struct tnf_hash_options {
    size_t size; /**< sizeof(tnf_hash_options) */
    /** Called with the hash of each tensor, in file order and on the caller's thread. It is a hash
     *  of type, shape, layout and values, but not of the name. */
    void (*tensor)(void *ctx, const tnf_object *object, const uint8_t hash[32]);
    tnf_progress_fn progress; /**< called while reading; NULL: never */
    void *ctx;                /**< passed to all functions */
    unsigned threads;         /**< 0: one per core, or TENFOLD_THREADS */
    /** Called with each leaf of a tensor, by role of its part and by offset, before the tensor's
     *  hash: to find later which 4 MiB have changed. They are kept until then, 8 KB per GB. */
    void (*leaf)(void *ctx, const tnf_leaf *leaf);
} tnf_hash_options;

/** All defaults. */
#define TNF_HASH_INIT                                                                              \
    {                                                                                              \
        sizeof(tnf_hash_options), NULL, NULL, NULL, 0, NULL                                        \
    }

/** Computes the SHA-256 of the content of a file: names, types, shapes, values, attributes, extras.
 *  The same content has the same hash in any format, order and compression, for any number of
 *  threads, and whichever formats the library was built with (docs/content-hash.md). All threads
 *  work on one tensor, too. */
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

/** Whose rules say how the vector of a word includes its n-grams. fastText and finalfusion differ
 * in the word "</s>", which has no n-grams in fastText; in n-grams of one character, which fastText
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
    /** Rows of words in its files are vectors. The row of a word of a fastText model is combined
     * with the rows of its n-grams by this rule. TNF_FOLD_NONE: the format stores any rows. */
    tnf_fold folds;
    /** Rows of words in its files are only the words' own part, as fastText trains them. The rows
     * of n-grams are taken out of vectors by this rule. TNF_FOLD_NONE: they are not. */
    tnf_fold unfolds;
    const char *document; /**< the attribute that is one text of metadata; NULL: none */
    /** What its reader puts before every key of a file, as for gguf "gguf."; NULL: nothing. */
    const char *prefix;
    /** Programs that read it ask for exact types of numbers: new ones are best u32, i32 or f32. */
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

/** Gets the i-th format; false past the last one. */
TNF_API bool tnf_format_at(tnf_format_info *out, size_t i);
/** Gets a format by its name. The name of a family means its newest member that can be written. */
TNF_API bool tnf_format_named(tnf_format_info *out, const char *name);
/** Gets the format that tnf_save() uses for this path if the options name none: by the extension.
 *  TNF_EINVAL if no format has that extension, or several of different families. */
TNF_API tnf_status tnf_format_for_path(tnf_format_info *out, const char *path, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
