/* SPDX-License-Identifier: MIT */
/**
 * @file types.h
 * The plain data of Tenfold: status and error, types, values, parts, objects.
 *
 *   file
 *    ├─ attrs     a typed tree (tnf_value)
 *    ├─ objects   named tensors, in file order (tnf_object)
 *    │   └─ parts   the bytes of a tensor; a dense one has a single part "data" (tnf_part)
 *    └─ extras    bytes the reader keeps without understanding them (tnf_extra)
 *
 * Everything here is borrowed from the handle that gave it and lives until that handle is closed.
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
#define TNF_API          __attribute__((visibility("default")))
#define TNF_CHECKED      __attribute__((warn_unused_result))
#define TNF_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TNF_API
#define TNF_CHECKED
#define TNF_PRINTF(f, a)
#endif

/** What every fallible function returns: zero, or the negative reason. */
typedef enum tnf_status {
    TNF_OK = 0,
    TNF_ENOMEM = -1,       /**< the allocator gave nothing */
    TNF_EIO = -2,          /**< the system refused; tnf_error.sys is the errno */
    TNF_ENET = -3,         /**< the network refused; tnf_error.sys is the HTTP status */
    TNF_EFORMAT = -4,      /**< the bytes break the rules of their format */
    TNF_ETRUNCATED = -5,   /**< the bytes end before they should */
    TNF_EUNSUPPORTED = -6, /**< legal, but this build or version cannot */
    TNF_ELIMIT = -7,       /**< beyond a limit (see tnf_limits) */
    TNF_ENOTFOUND = -8,    /**< no such file, tensor, part, format */
    TNF_EEXISTS = -9,      /**< already there: a file not to be replaced, a name given twice */
    TNF_EINVAL = -10,      /**< the caller's arguments make no sense */
    TNF_ELOSSY = -11,      /**< refused: it would lose something */
    TNF_EDIGEST = -12,     /**< the bytes do not match their stored digest */
    TNF_ECANCELLED = -13,  /**< the caller's progress function said stop */
    TNF_EBUG = -14,        /**< a mistake in Tenfold: please report it */
    TNF_ECHANGED = -15, /**< the file was changed or replaced since it was read; nothing is done */
    TNF_EUNSYNCED = -16 /**< done, and everybody sees it, but it may not survive a power cut */
} tnf_status;

#define TNF_NO_OFFSET UINT64_MAX

/** What went wrong. On the caller's stack, may be NULL everywhere; written only on failure. */
typedef struct tnf_error {
    tnf_status status;
    int sys;         /**< errno or HTTP status, 0 if none */
    uint64_t offset; /**< byte in the file, TNF_NO_OFFSET if none */
    const char
        *rule; /**< the rule that is broken, as the format's specification calls it; or NULL */
    char message[240]; /**< one sentence for a person, without the file's name */
    char reserved[64]; /**< for later versions: neither read nor written by this one */
} tnf_error;

/** Fills an error, if there is one, and returns the status: for functions of the caller's that the
 *  library calls. One that fails without filling its error is told as "the caller's function
 *  failed". */
TNF_API tnf_status tnf_error_set(tnf_error *error, tnf_status status, uint64_t offset,
                                 const char *format, ...) TNF_PRINTF(4, 5);

/** "TNF_EFORMAT" and so on; never NULL. */
TNF_API const char *tnf_status_name(tnf_status status);

/** Bytes with a length. Strings handed out by the library also end in a NUL that n does not count;
 *  they may contain NULs of their own. */
typedef struct tnf_str {
    const char *p;
    size_t n;
} tnf_str;

/** A tnf_str of a literal, as an initializer. */
#define TNF_STR(literal)                                                                           \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

/* ------------------------------------------------------------------ types */

/** Storage types: width and number kind, nothing else. Always little-endian when handed out. */
typedef enum tnf_dtype {
    TNF_F64 = 0,
    TNF_F32,
    TNF_F16,
    TNF_BF16,
    TNF_I64,
    TNF_I32,
    TNF_I16,
    TNF_I8,
    TNF_U64,
    TNF_U32,
    TNF_U16,
    TNF_U8,
    TNF_DTYPE_COUNT
} tnf_dtype;

/** How one element of a type is to be understood. */
typedef enum tnf_number {
    TNF_NUMBER_FLOAT,
    TNF_NUMBER_INT,
    TNF_NUMBER_UINT,
    TNF_NUMBER_BOOL,
    TNF_NUMBER_COMPLEX,
    TNF_NUMBER_OPAQUE /**< a type of somebody else's: bytes only */
} tnf_number;

/** An element type: the twelve storage types, and the logical ones built on them (bool, f8_e4m3fn,
 *  f4_e2m1, c64 …). Known types are unique: compare their pointers. */
typedef struct tnf_type {
    const char *id;    /**< "f32", "bool", "f8_e4m3fn" … */
    tnf_dtype storage; /**< what the bytes are made of */
    tnf_number number;
    uint32_t bits; /**< per element: 1 for bit, 4 for f4_e2m1, 128 for c128; 0 if unknown */
} tnf_type;

/** The type of a storage dtype. */
TNF_API const tnf_type *tnf_type_of(tnf_dtype dtype);
/** A known type by its id, or NULL. */
TNF_API const tnf_type *tnf_type_named(const char *id);
/** The i-th known type, NULL past the last. */
TNF_API const tnf_type *tnf_type_at(size_t i);
/** Decodes n elements from first on into doubles (exact except for integers beyond 2^53; a complex
 *  element gives two). False for opaque types. */
TNF_API bool tnf_type_decode(const tnf_type *type, const void *packed, size_t first, size_t n,
                             double *out);

/* ----------------------------------------------------------------- values */

typedef enum tnf_kind {
    TNF_NULL,
    TNF_BOOL,
    TNF_INT,    /**< as.i; the exact width is in dtype */
    TNF_UINT,   /**< as.u; likewise */
    TNF_FLOAT,  /**< as.f32 if dtype is TNF_F32 (its bits are kept), else as.f64 */
    TNF_STRING, /**< UTF-8: as.s, n bytes */
    TNF_BYTES,  /**< anything: as.s, n bytes */
    TNF_JSON,   /**< a valid JSON document, kept byte for byte: as.s, n bytes */
    TNF_ARRAY,  /**< as.items, n of them */
    TNF_MAP     /**< as.members, n of them, in file order */
} tnf_kind;

/** A node of an attribute tree. */
typedef struct tnf_value {
    uint8_t kind;  /**< a tnf_kind */
    uint8_t dtype; /**< a tnf_dtype, for numbers */
    size_t n;
    union {
        bool b;
        int64_t i;
        uint64_t u;
        float f32;
        double f64;
        const char *s;
        const struct tnf_value *items;
        const struct tnf_member *members;
    } as;
} tnf_value;

typedef struct tnf_member {
    tnf_str key;
    tnf_value value;
} tnf_member;

/** The value of a key in a map, or NULL (also when map is NULL or no map). */
TNF_API const tnf_value *tnf_value_get(const tnf_value *map, const char *key);

/** Values for building; strings are borrowed until the call they are passed to returns. */
TNF_API tnf_value tnf_value_string(const char *s);
TNF_API tnf_value tnf_value_uint(uint64_t u);
TNF_API tnf_value tnf_value_bool(bool b);

/* ---------------------------------------------------------------- objects */

/** How the bytes of a part can be reached. */
typedef enum tnf_payload {
    TNF_AT,      /**< at [offset, offset+stored) of its file, as they are */
    TNF_ENCODED, /**< there, compressed by `codec` */
    TNF_OPAQUE,  /**< only the format can produce them */
    TNF_MEMORY   /**< in the caller's memory, or from the caller's function */
} tnf_payload;

/** A checksum as the file states it. */
typedef struct tnf_digest {
    const char *algorithm; /**< "crc32c", "sha256", "xxh3-64" …; NULL if it cannot be checked */
    const uint8_t *bytes;
    size_t n;
    tnf_str text;   /**< as it stands in the file: "crc32c:0x42709AEA"; or NULL and 0 */
    bool of_stored; /**< of the stored bytes, not of the decoded ones */
} tnf_digest;

/** "raw", "zstd" …: how a part with payload TNF_ENCODED is encoded. */
TNF_API const char *tnf_codec_name(uint8_t codec);

enum {
    TNF_PART_BIG_ENDIAN = 1, /**< stored big-endian (handed out little-endian) */
    TNF_PART_UNREADABLE = 2  /**< listed only: its type or encoding is not known here */
};

/** A run of elements. */
typedef struct tnf_part {
    const char *role; /**< "data" for dense tensors; else as the layout says */
    const tnf_type *type;
    const struct tnf_origin *origin; /**< who reads it (opaque) */
    uint64_t offset;                 /**< where the stored bytes begin in their file */
    uint64_t stored;                 /**< bytes in the file */
    uint64_t nbytes;                 /**< bytes when decoded */
    const void *memory;              /**< TNF_MEMORY: the bytes, or NULL for a function */
    const tnf_digest *digest;        /**< or NULL */
    uint8_t payload;                 /**< a tnf_payload */
    uint8_t codec;                   /**< for TNF_ENCODED */
    uint8_t flags;                   /**< TNF_PART_… */
    uint8_t reserved[5];             /**< 0 */
} tnf_part;

/** A layout: which parts make up a tensor and what their sizes must be. */
typedef struct tnf_layout tnf_layout;
/** "dense", "strings/1", "sparse_csr/1" … */
TNF_API const char *tnf_layout_id(const tnf_layout *layout);
/** A known layout by its id, or NULL: for objects that are built by hand. */
TNF_API const tnf_layout *tnf_layout_by_id(const char *id);

typedef enum tnf_order { TNF_ORDER_C = 0, TNF_ORDER_F = 1 } tnf_order;

/** A named tensor. */
typedef struct tnf_object {
    tnf_str name;
    const uint64_t *shape; /**< the logical shape, whatever the order */
    const tnf_layout *layout;
    const tnf_part *parts;  /**< NULL when there is none, as for a layout nobody knows */
    const tnf_value *attrs; /**< a map, or NULL */
    uint32_t rank;
    uint16_t nparts;
    uint8_t order;    /**< a tnf_order: how the elements lie in the file */
    uint8_t reserved; /**< 0 */
} tnf_object;

/** The part of that role ("data" …), or NULL. */
TNF_API const tnf_part *tnf_object_part(const tnf_object *object, const char *role);

/** Bytes kept without being understood: an unknown chunk, trailing bytes. */
typedef struct tnf_extra {
    tnf_str key; /**< namespaced: "safetensors.trailing" */
    tnf_part bytes;
} tnf_extra;

/** Is this code point one that people cannot see, or that changes what they see of others:
 * controls, directions of writing, characters without width, tags? Names come from files: whoever
 * shows one writes such characters as escapes. The library's messages and the command do. */
TNF_API bool tnf_must_escape(uint32_t code_point);

#ifdef __cplusplus
}
#endif
#endif
