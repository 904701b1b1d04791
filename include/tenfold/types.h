/* SPDX-License-Identifier: MIT */
/**
 * @file types.h
 * The plain data of Tenfold: status and error, element types, values, parts, tensors.
 *
 *     file
 *      ├─ attrs     a typed tree (tnf_value)
 *      ├─ objects   named tensors, in file order (tnf_object)
 *      │   └─ parts   the bytes of a tensor; a dense tensor has one part, "data" (tnf_part)
 *      └─ extras    bytes that the reader keeps without understanding them (tnf_extra)
 *
 * Every pointer in these structs is borrowed. It is valid until the handle that returned it is
 * closed.
 */
#ifndef TENFOLD_TYPES_H
#define TENFOLD_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
/** Marks a symbol that the shared library exports. */
#define TNF_API          __attribute__((visibility("default")))
/** The compiler warns if the result is not used. */
#define TNF_CHECKED      __attribute__((warn_unused_result))
/** The compiler checks the arguments as those of printf(). */
#define TNF_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TNF_API          /**< nothing for this compiler */
#define TNF_CHECKED      /**< nothing for this compiler */
#define TNF_PRINTF(f, a) /**< nothing for this compiler */
#endif

/** The result of every function that can fail: 0, or a negative reason. */
typedef enum tnf_status {
    TNF_OK = 0,            /**< success */
    TNF_ENOMEM = -1,       /**< the allocator returned NULL */
    TNF_EIO = -2,          /**< the system refused; tnf_error.sys is the errno */
    TNF_ENET = -3,         /**< the network refused; tnf_error.sys is the HTTP status */
    TNF_EFORMAT = -4,      /**< the bytes break the rules of their format */
    TNF_ETRUNCATED = -5,   /**< the bytes end too early */
    TNF_EUNSUPPORTED = -6, /**< legal, but this build or version cannot do it */
    TNF_ELIMIT = -7,       /**< beyond a limit (see tnf_limits) */
    TNF_ENOTFOUND = -8,    /**< no such file, tensor, part or format */
    TNF_EEXISTS = -9,      /**< already there: a file that must not be replaced, a duplicate name */
    TNF_EINVAL = -10,      /**< invalid arguments */
    TNF_ELOSSY = -11,      /**< refused, because something would be lost */
    TNF_EDIGEST = -12,     /**< the bytes do not match their stored digest */
    TNF_ECANCELLED = -13,  /**< the caller's progress function returned false */
    TNF_EBUG = -14,        /**< a mistake in Tenfold: please report it */
    TNF_ECHANGED = -15, /**< the file was changed or replaced since it was read; nothing is done */
    TNF_EUNSYNCED = -16 /**< done and visible, but a power cut may still undo it */
} tnf_status;

/** An offset that is not known or does not apply. */
#define TNF_NO_OFFSET UINT64_MAX

/** Describes a failure. It is usually on the caller's stack. The library writes it only on failure;
 *  only tnf_points_salvage() also describes the damage that it found when it succeeds. Every
 *  function that takes a tnf_error also accepts NULL. */
typedef struct tnf_error {
    tnf_status status; /**< the same as the function returned */
    int sys;           /**< errno or HTTP status, 0 if none */
    uint64_t offset;   /**< byte in the file, TNF_NO_OFFSET if none */
    /** The broken rule, as the format's specification calls it, or NULL. A literal: always
     *  valid. */
    const char *rule;
    char message[240]; /**< one sentence for a person, without the file's name */
    char reserved[64]; /**< for later versions; not used by this one */
} tnf_error;

/** Fills an error (which may be NULL) and returns the status. Callbacks use it to report a failure.
 *  If a callback fails without filling its error, the message is "the caller's function failed". */
TNF_API tnf_status tnf_error_set(tnf_error *error, tnf_status status, uint64_t offset,
                                 const char *format, ...) TNF_PRINTF(4, 5);

/** Returns the name of a status: "TNF_EFORMAT" and so on; never NULL. */
TNF_API const char *tnf_status_name(tnf_status status);

/** Bytes with a length. A string that the library returns also ends in a NUL that n does not count,
 *  unless its function says otherwise. It may contain other NULs. */
typedef struct tnf_str {
    const char *p; /**< the first byte */
    size_t n;      /**< number of bytes */
} tnf_str;

/** A tnf_str of a literal, as an initializer. */
#define TNF_STR(literal)                                                                           \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

/* ------------------------------------------------------------------ types */

/** Storage types: a width and a kind of number. The library always returns them little-endian. */
typedef enum tnf_dtype {
    TNF_F64 = 0,    /**< 64-bit float */
    TNF_F32,        /**< 32-bit float */
    TNF_F16,        /**< 16-bit float, IEEE 754 */
    TNF_BF16,       /**< 16-bit float, the upper half of f32 */
    TNF_I64,        /**< signed, 64 bits */
    TNF_I32,        /**< signed, 32 bits */
    TNF_I16,        /**< signed, 16 bits */
    TNF_I8,         /**< signed, 8 bits */
    TNF_U64,        /**< unsigned, 64 bits */
    TNF_U32,        /**< unsigned, 32 bits */
    TNF_U16,        /**< unsigned, 16 bits */
    TNF_U8,         /**< unsigned, 8 bits */
    TNF_DTYPE_COUNT /**< the number of storage types */
} tnf_dtype;

/** How to interpret one element of a type. */
typedef enum tnf_number {
    TNF_NUMBER_FLOAT,   /**< a real number */
    TNF_NUMBER_INT,     /**< a signed integer */
    TNF_NUMBER_UINT,    /**< an unsigned integer */
    TNF_NUMBER_BOOL,    /**< 0 or 1 */
    TNF_NUMBER_COMPLEX, /**< a real and an imaginary part */
    TNF_NUMBER_OPAQUE   /**< a type that Tenfold does not interpret: bytes only */
} tnf_number;

/** An element type: one of the twelve storage types, or a logical type built on one of them (bool,
 *  f8_e4m3fn, f4_e2m1, i128, c64 …). There is one tnf_type for each known type: compare pointers.
 */
typedef struct tnf_type {
    const char *id;    /**< "f32", "bool", "f8_e4m3fn" … */
    tnf_dtype storage; /**< the storage type of its bytes */
    tnf_number number; /**< how to interpret an element */
    uint32_t bits;     /**< per element: 1 for bit, 4 for f4_e2m1, 128 for i128; 0 if unknown */
} tnf_type;

/** Returns the type of a storage dtype. */
TNF_API const tnf_type *tnf_type_of(tnf_dtype dtype);
/** Returns a known type by its id, or NULL. */
TNF_API const tnf_type *tnf_type_named(const char *id);
/** Returns a known type by any name that people use: its id, or as NumPy, PyTorch or safetensors
 * call it (bfloat16, half, torch.float32, F8_E4M3), in any case. NULL if there is none. */
TNF_API const tnf_type *tnf_type_spelled(const char *name);
/** Returns the i-th known type, or NULL past the last one. */
TNF_API const tnf_type *tnf_type_at(size_t i);
/** Decodes n elements, starting with element `first`, into doubles. This is exact except for
 *  integers beyond 2^53, which give the nearest double. A complex element gives two doubles.
 * Returns false for opaque types. */
TNF_API bool tnf_type_decode(double *out, const tnf_type *type, const void *packed, size_t first,
                             size_t n);
/** Bytes for the text of any integer, with its NUL. */
#define TNF_INTEGER_TEXT 41
/** Writes element i as decimal digits, exactly, for every type of integers and for bool. Returns
 *  the length without the NUL, as snprintf() does, even if there is less room; 0 and an empty text
 *  if the elements are no integers. */
TNF_API size_t tnf_type_integer(char *out, size_t room, const tnf_type *type, const void *packed,
                                size_t i);

/* ----------------------------------------------------------------- values */

/** The kind of a value, and which member of `as` holds it. */
typedef enum tnf_kind {
    TNF_NULL,   /**< no value */
    TNF_BOOL,   /**< as.b */
    TNF_INT,    /**< as.i; dtype is the exact width */
    TNF_UINT,   /**< as.u; dtype is the exact width */
    TNF_FLOAT,  /**< as.f32 if dtype is TNF_F32 (its bits are kept), else as.f64 */
    TNF_STRING, /**< UTF-8: as.s, n bytes */
    TNF_BYTES,  /**< any bytes: as.s, n bytes */
    TNF_JSON,   /**< a valid JSON document, kept byte for byte: as.s, n bytes */
    TNF_ARRAY,  /**< as.items, n of them */
    TNF_MAP     /**< as.members, n of them, in file order */
} tnf_kind;

/** A node of an attribute tree. */
typedef struct tnf_value {
    uint8_t kind;  /**< a tnf_kind */
    uint8_t dtype; /**< a tnf_dtype, for numbers; of an array: see tnf_value_items() */
    size_t n;      /**< bytes of a text, items of an array, members of a map */
    union {
        bool b;                           /**< TNF_BOOL */
        int64_t i;                        /**< TNF_INT */
        uint64_t u;                       /**< TNF_UINT */
        float f32;                        /**< TNF_FLOAT with dtype TNF_F32 */
        double f64;                       /**< TNF_FLOAT with any other dtype */
        const char *s;                    /**< TNF_STRING, TNF_BYTES, TNF_JSON */
        const struct tnf_value *items;    /**< TNF_ARRAY */
        const struct tnf_member *members; /**< TNF_MAP */
    } as;                                 /**< the value itself; `kind` says which member */
} tnf_value;

/** A member of a map: a key and its value. */
typedef struct tnf_member {
    tnf_str key;     /**< its name */
    tnf_value value; /**< its value */
} tnf_member;

/** Returns the value of a key in a map, or NULL. `map` may be NULL or a value that is not a map. */
TNF_API const tnf_value *tnf_value_get(const tnf_value *map, const char *key);
/** The same by a key of n bytes, which may contain any byte. */
TNF_API const tnf_value *tnf_value_get_n(const tnf_value *map, const char *key, size_t n);

/** Makes a string value. The text is borrowed until the call that the value is passed to returns.
 */
TNF_API tnf_value tnf_value_string(const char *s);
/** Makes an unsigned integer of 64 bits. */
TNF_API tnf_value tnf_value_uint(uint64_t u);
/** Makes a bool. */
TNF_API tnf_value tnf_value_bool(bool b);

/* ---------------------------------------------------------------- objects */

/** Where the bytes of a part are. */
typedef enum tnf_payload {
    TNF_AT,      /**< at [offset, offset+stored) of the file, not encoded */
    TNF_ENCODED, /**< at the same place, compressed by `codec` */
    TNF_OPAQUE,  /**< only the format can produce them */
    TNF_MEMORY   /**< in the caller's memory, or from the caller's function */
} tnf_payload;

/** A checksum that the file contains. */
typedef struct tnf_digest {
    const char *algorithm; /**< "crc32c", "sha256", "xxh3-64" …; NULL if it cannot be checked */
    const uint8_t *bytes;  /**< the checksum */
    size_t n;              /**< its length in bytes */
    tnf_str text;          /**< as written in the file: "crc32c:0x42709AEA"; or NULL and 0 */
    bool of_stored;        /**< true: digest of the stored bytes; false: of the decoded bytes */
} tnf_digest;

/** Returns how a part with payload TNF_ENCODED is encoded: "raw", "zstd" … */
TNF_API const char *tnf_codec_name(uint8_t codec);

/** Flags of a part. */
enum {
    TNF_PART_BIG_ENDIAN = 1, /**< stored big-endian (and returned little-endian) */
    TNF_PART_UNREADABLE = 2  /**< listed only: its type or encoding is not known to this build */
};

/** A run of elements: one array of a tensor. */
typedef struct tnf_part {
    const char *role;                /**< "data" for dense tensors; else as the layout says */
    const tnf_type *type;            /**< type of its elements */
    const struct tnf_origin *origin; /**< what reads it: a file or a function (opaque) */
    uint64_t offset;                 /**< where its stored bytes begin in their file */
    uint64_t stored;                 /**< bytes in the file */
    uint64_t nbytes;                 /**< bytes after decoding */
    const void *memory;              /**< TNF_MEMORY: the bytes; NULL if a function gives them */
    const tnf_digest *digest;        /**< its digest; NULL if the file has none */
    uint8_t payload;                 /**< a tnf_payload */
    uint8_t codec;                   /**< for TNF_ENCODED */
    uint8_t flags;                   /**< TNF_PART_… */
    uint8_t reserved[5];             /**< 0 */
} tnf_part;

/** A layout says which parts a tensor has and which sizes they must have. */
typedef struct tnf_layout tnf_layout;
/** Returns the id of a layout: "dense", "strings/1", "sparse_csr/1" … */
TNF_API const char *tnf_layout_id(const tnf_layout *layout);
/** Returns the common name of a layout: "Q4_K" for gguf.q4_k/1, else its id. */
TNF_API const char *tnf_layout_name(const tnf_layout *layout);
/** Returns true if a layout consists of blocks, and gets the elements and the bytes of a block. */
TNF_API bool tnf_layout_blocks(uint32_t *elements, uint32_t *bytes, const tnf_layout *layout);
/** Returns a known layout by its id, or NULL. For tensors that are built by hand. */
TNF_API const tnf_layout *tnf_layout_by_id(const char *id);

/** The order of elements. */
typedef enum tnf_order {
    TNF_ORDER_C = 0, /**< row by row: the last dimension varies fastest */
    TNF_ORDER_F = 1  /**< column by column: the first dimension varies fastest */
} tnf_order;

/** A named tensor. */
typedef struct tnf_object {
    tnf_str name;             /**< its name, unique in the file */
    const uint64_t *shape;    /**< the logical shape, in any order of elements */
    const tnf_layout *layout; /**< dense, sparse, strings … */
    const tnf_part *parts;    /**< NULL if there are none, as for an unknown layout */
    const tnf_value *attrs;   /**< a map, or NULL */
    uint32_t rank;            /**< number of dimensions */
    uint16_t nparts;          /**< number of parts */
    uint8_t order;            /**< a tnf_order: the order of the elements in the file */
    uint8_t reserved;         /**< 0 */
} tnf_object;

/** Returns the part with that role ("data" …), or NULL. */
TNF_API const tnf_part *tnf_object_part(const tnf_object *object, const char *role);

/** Bytes that the reader keeps without understanding them: an unknown chunk, trailing bytes. */
typedef struct tnf_extra {
    tnf_str key;    /**< with the format's name in front: "safetensors.trailing" */
    tnf_part bytes; /**< the bytes */
} tnf_extra;

/* -------------------------------------------------------------- functions */

/** Like realloc(), but also gets the old size. A new size of 0 frees. */
typedef void *(*tnf_reallocate_fn)(void *ctx, void *p, size_t old_size, size_t new_size);

/** Allocates the memory of a handle: everything that the handle keeps to describe the file, and
 * the lists that verifying, hashing, comparing and searching make for the length of a call. What
 * threads need while they read and compute (buffers, digests, hashes of leaves) comes from
 * malloc(). If several threads use the handle at once, they call its allocator at once, so it must
 * be safe for threads then. */
typedef struct tnf_allocator {
    /** Like realloc(), but also gets the old size. A new size of 0 frees. */
    tnf_reallocate_fn reallocate;
    void *ctx; /**< passed to reallocate */
} tnf_allocator;

/** Writes n bytes, starting at `offset`, to dst. */
typedef tnf_status (*tnf_fetch_fn)(void *ctx, uint64_t offset, void *dst, size_t n,
                                   tnf_error *error);

/* ------------------------------------------------------------------- texts */

/** Returns true if people cannot see this code point, or if it changes how other characters look:
 *  controls, directions of writing, characters without width, tags. Names come from files, so a
 *  program should print such characters as escapes. The library's messages and the command do. */
TNF_API bool tnf_must_escape(uint32_t code_point);

/** Decodes the first character of n bytes. Returns the number of bytes that it takes; 0 if n is 0,
 *  or if the bytes are not valid UTF-8 (surrogates and overlong forms are not). */
TNF_API size_t tnf_utf8_next(uint32_t *code_point, const char *p, size_t n);
/** Returns true if n bytes are well-formed UTF-8. If not, *bad_at (which may be NULL) becomes the
 *  offset of the first wrong byte. */
TNF_API bool tnf_utf8_valid(size_t *bad_at, const char *p, size_t n);

/** Returns true if a name matches a pattern. `*` matches any run of characters (dots and slashes,
 *  too), `?` any one character, `[a-z]` one of these characters, `[!a-z]` any other character. A
 *  backslash makes the next character literal. The time is at most proportional to the length of
 *  the pattern times the length of the name. */
TNF_API bool tnf_glob_match(const char *pattern, tnf_str name);

#ifdef __cplusplus
}
#endif
#endif
