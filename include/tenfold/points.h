/* SPDX-License-Identifier: MIT */
/**
 * @file points.h
 * VS files: append, read and delete points, from many processes at once.
 *
 *     tnf_points *points;
 *     tnf_points_options options = TNF_POINTS_INIT;
 *     options.write = true;
 *     tnf_points_open(&points, "space.vsdb", &options, &error);
 *     float up[] = { 0, 0, 1 };
 *     tnf_points_add(NULL, points, NULL, up, sizeof up, &error);
 *     tnf_points_close(points);
 *
 * Every call takes the lock that the format demands (shared for reading, exclusive for writing) and
 * releases it before it returns. The changes of a call are complete or not there at all, even if
 * the process or the machine stops. If another process compacted the file, the handle opens the new
 * file by itself.
 *
 * A point is identified by its tnf_point_id, which any process may keep. A compaction moves points;
 * ids from before it are then refused, never taken for another point. Only one thread at a time may
 * use a handle; any number of handles and processes may have the same file open.
 */
#ifndef TENFOLD_POINTS_H
#define TENFOLD_POINTS_H

#include <tenfold/tenfold.h>
#include <tenfold/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An open VS file. */
typedef struct tnf_points tnf_points;

/** What to do while another process has the lock. */
typedef enum tnf_points_lock {
    TNF_POINTS_WAIT,    /**< wait for it */
    TNF_POINTS_NO_WAIT, /**< fail immediately: TNF_EIO with sys EAGAIN */
    TNF_POINTS_TIMEOUT, /**< wait for timeout_ms, then fail in the same way */
    TNF_POINTS_NO_LOCK  /**< take no lock, for file systems without locks: the caller must ensure
                             that nobody else uses the file */
} tnf_points_lock;

/** When a change is safe from a power cut. */
typedef enum tnf_points_sync {
    TNF_POINTS_SYNC,   /**< when the call returns: fsync before and after the decisive byte */
    TNF_POINTS_NO_SYNC /**< when the system decides, in any order */
} tnf_points_sync;

/** How the vectors of new points are stored. */
typedef enum tnf_points_pack {
    TNF_POINTS_AUTO,  /**< as the file says: snappy if its `pack` is 1, else raw */
    TNF_POINTS_RAW,   /**< not compressed */
    TNF_POINTS_GZIP,  /**< with gzip */
    TNF_POINTS_SNAPPY /**< with snappy */
} tnf_points_pack;

/** Returns false to stop waiting. Called on the caller's thread. */
typedef bool (*tnf_points_go_on_fn)(void *ctx);

/** How to open. Begin with TNF_POINTS_INIT; NULL means all defaults. */
typedef struct tnf_points_options {
    size_t size;             /**< sizeof(tnf_points_options) */
    bool write;              /**< the file will be changed */
    tnf_points_lock lock;    /**< what to do while another process has the lock */
    uint32_t timeout_ms;     /**< for TNF_POINTS_TIMEOUT */
    tnf_points_sync sync;    /**< when a change is safe from a power cut */
    tnf_points_pack pack;    /**< how the vectors of new points are stored */
    bool pack_app;           /**< compress application data, with snappy */
    bool varint_msb;         /**< numbers have their most significant bits first: not detected */
    tnf_allocator allocator; /**< zero: malloc */
    /** Called from time to time by functions that change the file or wait for it; NULL: never. If
     *  it returns false, the call ends with TNF_ECANCELLED and the file is unchanged. */
    tnf_points_go_on_fn go_on;
    void *go_on_ctx; /**< passed to go_on */
} tnf_points_options;

/** All defaults. */
#define TNF_POINTS_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_points_options), false, TNF_POINTS_WAIT, 0, TNF_POINTS_SYNC, TNF_POINTS_AUTO,   \
            false, false, { NULL, NULL }, NULL, NULL                                               \
    }

/** The name of the format of these files (tnf_format_named()). */
#define TNF_POINTS_FORMAT "vs"

/** The properties that all points of a file share. For creating, begin with TNF_SPACE_INIT. */
typedef struct tnf_space {
    size_t size;                 /**< sizeof(tnf_space) */
    const tnf_type *type;        /**< type of a coordinate; NULL: it is not a number */
    const char *resolution;      /**< the format's name of the type. For creating without a type:
                                      "string" (text) or "json" (any value) */
    const uint64_t *dims;        /**< the shape of a vector */
    uint32_t rank;               /**< number of dimensions */
    bool scalar;                 /**< for creating with rank 0: one number per point */
    uint8_t pack;                /**< as in the file: 1 is snappy */
    uint8_t paging;              /**< as in the file; its meaning is unknown */
    uint64_t elements;           /**< coordinates of a vector; not needed for creating */
    uint64_t vector_bytes;       /**< bytes of a vector, 0 if vectors differ in size; not needed for
                                      creating. Vectors of bits: the first bit of a byte is the
                                      lowest one. */
    const tnf_value *attributes; /**< the application's; NULL: none (for creating: an empty map) */
} tnf_space;

/** All 0, with its size. */
#define TNF_SPACE_INIT                                                                             \
    {                                                                                              \
        sizeof(tnf_space), NULL, NULL, NULL, 0, false, 0, 0, 0, 0, NULL                            \
    }

/** Identifies a point: its place and its bytes. Appending, and deleting other points, keep ids
 *  valid; so does compaction, for points that it does not move. An id is stale if the point was
 *  deleted or moved. A function that takes a stale id returns TNF_ENOTFOUND; it takes another point
 *  for this one only if that begins at the same offset and has the same hash: an equal point, or
 *  one in 2^32. */
typedef struct tnf_point_id {
    uint64_t offset; /**< of its block; 0: no point */
    uint32_t hash;   /**< the CRC-32 (as in gzip) of its complete block as stored */
} tnf_point_id;

/** Room for the text of an id, with the NUL. */
#define TNF_POINT_ID_TEXT 32
/** Writes an id as text: the offset, a colon, and the hash in 8 hexadecimal digits. Returns the
 *  length. */
TNF_API size_t tnf_point_id_text(char out[TNF_POINT_ID_TEXT], tnf_point_id id);
/** Parses such a text, completely: else TNF_EINVAL. */
TNF_API TNF_CHECKED tnf_status tnf_point_id_parse(tnf_point_id *out, const char *text, size_t n,
                                                  tnf_error *error);

/** A point. A point that the library returns is valid until the next call on the handle. For
 *  appending, begin with TNF_POINT_INIT; the id is then ignored. */
typedef struct tnf_point {
    tnf_point_id id; /**< identifies the point */
    tnf_str app;     /**< application data, one MessagePack value; empty: none */
    /** For appending, instead of app: a tree, or a document of kind TNF_JSON; NULL: use app. */
    const tnf_value *value;
    /** The coordinates: decoded, little-endian, row by row. The library aligns them for their type;
     *  for appending they need no alignment. If the coordinates are not numbers, see
     *  tnf_points_values(). */
    const void *vector;
    size_t vector_n; /**< bytes of the vector */
    /** For appending, instead of vector, if the coordinates are strings or JSON: an array of them
     *  (items of kind TNF_JSON are documents); NULL: use vector. */
    const tnf_value *values;
    uint64_t reserved[2]; /**< 0 */
} tnf_point;

/** All 0. */
#define TNF_POINT_INIT                                                                             \
    {                                                                                              \
        { 0, 0 }, { NULL, 0 }, NULL, NULL, 0, NULL,                                                \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }

/** Opens a file. */
TNF_API TNF_CHECKED tnf_status tnf_points_open(tnf_points **out, const char *path,
                                               const tnf_points_options *options, tnf_error *error);
/** Makes a file and opens it for writing. TNF_EEXISTS if there is a file that is not empty.
 *  TNF_EUNSYNCED: the file exists and *out is set, but a power cut may lose the file. */
TNF_API TNF_CHECKED tnf_status tnf_points_create(tnf_points **out, const char *path,
                                                 const tnf_space *space,
                                                 const tnf_points_options *options,
                                                 tnf_error *error);
/** Closes a file. NULL is allowed. */
TNF_API void tnf_points_close(tnf_points *points);

/** Returns the space of a file, valid until the next call on the handle. NULL if the file has no
 *  space yet, and therefore no points. */
TNF_API const tnf_space *tnf_points_space(const tnf_points *points);

/** Called for each point on the caller's thread. The point is valid during the call. Any result but
 *  TNF_OK stops, and is returned. The only functions of the handle that it may call are
 *  tnf_points_value() and tnf_points_values(). */
typedef tnf_status (*tnf_point_take_fn)(void *ctx, const tnf_point *point, tnf_error *error);

/** Calls `take` for all points in file order, under one shared lock. Uses memory for one point
 *  only. */
TNF_API TNF_CHECKED tnf_status tnf_points_each(tnf_points *points, tnf_point_take_fn take,
                                               void *ctx, tnf_error *error);
/** Calls `take` for all points after a point, in file order: the next page of a listing, or those
 *  that were appended since. Reads only what follows. An id with the offset 0 means all points. The
 *  point may be deleted, unless it was shredded. TNF_ENOTFOUND if the id is stale in another way:
 *  then the file was compacted, so read from the beginning. */
TNF_API TNF_CHECKED tnf_status tnf_points_after(tnf_points *points, tnf_point_id id,
                                                tnf_point_take_fn take, void *ctx,
                                                tnf_error *error);
/** Reads one point. TNF_ENOTFOUND if the id is stale. */
TNF_API TNF_CHECKED tnf_status tnf_points_read(tnf_point *out, tnf_points *points, tnf_point_id id,
                                               tnf_error *error);
/** Decodes the application data of a point to a tree, valid until the next call of this function;
 *  NULL if there is none. It may be called inside tnf_points_each(). */
TNF_API TNF_CHECKED tnf_status tnf_points_value(const tnf_value **out, tnf_points *points,
                                                const tnf_point *point, tnf_error *error);
/** Decodes the coordinates of a point that are not numbers (resolution "string" or "json") to an
 *  array, valid until the next call of this function; NULL if they are numbers or of another type.
 *  TNF_EFORMAT if the bytes are not such coordinates. It may be called inside tnf_points_each(). */
TNF_API TNF_CHECKED tnf_status tnf_points_values(const tnf_value **out, tnf_points *points,
                                                 const tnf_point *point, tnf_error *error);

/** Makes a point from a line of JSON, {"app":…,"values":[…]}. Every number must fit the type of the
 *  space; "NaN", "Infinity" and "-Infinity" are strings. In a space of strings every value is a
 *  string, in a space of JSON anything. The point is valid until the next append. */
TNF_API TNF_CHECKED tnf_status tnf_points_parse(tnf_point *out, tnf_points *points,
                                                const char *text, size_t n, tnf_error *error);
/** Appends n points: all of them or none. Writes their ids to `ids`, which may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_points_append(tnf_point_id *ids, tnf_points *points,
                                                 const tnf_point *batch, size_t n,
                                                 tnf_error *error);

/** Appends one point: its application data (NULL: none) and the n bytes of its vector. Writes its
 *  id to *id, which may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_points_add(tnf_point_id *id, tnf_points *points,
                                              const tnf_value *app, const void *vector, size_t n,
                                              tnf_error *error);

/** Flags of functions that change a file. */
enum {
    TNF_POINTS_SHRED = 1,        /**< delete: also overwrite the bytes */
    TNF_POINTS_DROP_UNKNOWN = 2, /**< compact: remove blocks of unknown types */
    TNF_POINTS_IN_PLACE = 4,     /**< set_attributes: a power cut may leave them half written */
    TNF_POINTS_UNCHECKED = 8     /**< delete: do not compare the hashes of ids */
};

/** Deletes n points: all of them or none. TNF_ENOTFOUND, and nothing is done, if an id is stale;
 *  error->offset is that of the first such id in the file. With TNF_POINTS_UNCHECKED deletes
 *  whatever block is at the offsets (also of an unknown type); then deleting a deleted point is
 *  allowed, and all offsets are refused if the file was compacted since this handle returned
 *  points. */
TNF_API TNF_CHECKED tnf_status tnf_points_delete(tnf_points *points, const tnf_point_id *ids,
                                                 size_t n, unsigned flags, tnf_error *error);
/** Deletes all points whose application data equals a value, as JSON compares: members in any
 *  order, 1 equals 1.0. NULL: those without application data, or with the value null. Writes their
 *  number to *deleted, which may be NULL. TNF_ENOTFOUND if there are none. */
TNF_API TNF_CHECKED tnf_status tnf_points_delete_app(uint64_t *deleted, tnf_points *points,
                                                     const tnf_value *app, unsigned flags,
                                                     tnf_error *error);

/** Called on the caller's thread for each point, with its old and new offset, when the file has
 * been compacted. */
typedef void (*tnf_points_moved_fn)(void *ctx, uint64_t from, uint64_t to);

/** Frees the space of deleted points: writes a new file, which takes the name of the old one.
 *  `moved` may be NULL. The hash of an id does not change: only its offset. */
TNF_API TNF_CHECKED tnf_status tnf_points_compact(tnf_points *points, unsigned flags,
                                                  tnf_points_moved_fn moved, void *ctx,
                                                  tnf_error *error);
/** Sets the application's attributes (NULL: none). In most cases this compacts the file, so that
 *  older ids are stale. */
TNF_API TNF_CHECKED tnf_status tnf_points_set_attributes(tnf_points *points,
                                                         const tnf_value *attributes,
                                                         unsigned flags, tnf_error *error);

/** The content of a file, in numbers. */
typedef struct tnf_points_report {
    size_t size;            /**< sizeof(tnf_points_report) */
    uint64_t file_bytes;    /**< bytes of the file */
    uint64_t points;        /**< points that are not deleted */
    uint64_t blanks;        /**< deleted blocks */
    uint64_t blank_bytes;   /**< bytes that compacting frees */
    uint64_t unknown;       /**< blocks of unknown types */
    uint64_t unknown_bytes; /**< bytes of these blocks */
    uint64_t trailing;      /**< bytes after the terminal */
    bool terminal;          /**< false: the file ends without a terminal */
    uint64_t stopped_at;    /**< the end of the last block that could be followed */
    uint64_t problems;      /**< problems found */
} tnf_points_report;

/** All 0, with its size. */
#define TNF_POINTS_REPORT_INIT                                                                     \
    {                                                                                              \
        sizeof(tnf_points_report), 0, 0, 0, 0, 0, 0, 0, false, 0, 0                                \
    }

/** Called with a problem on the caller's thread. It is valid during the call. */
typedef void (*tnf_points_problem_fn)(void *ctx, const tnf_error *problem);

/** Follows every block and decodes every point. Returns TNF_OK even if there are problems; they
 * are counted and reported to `problem`, which may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_points_verify(tnf_points_report *out, tnf_points *points,
                                                 tnf_points_problem_fn problem, void *ctx,
                                                 tnf_error *error);
/** Calls `take` for all points before the first damage of a file. Returns TNF_OK if `take` did.
 * Then out->problems says whether there is damage and out->stopped_at where; *error describes it.
 */
TNF_API TNF_CHECKED tnf_status tnf_points_salvage(tnf_points_report *out, const char *path,
                                                  const tnf_points_options *options,
                                                  tnf_point_take_fn take, void *ctx,
                                                  tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
