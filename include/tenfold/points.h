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
 * The offset of a point identifies it until the file is compacted. Only one thread at a time may
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
    const tnf_type *type;        /**< type of a coordinate; NULL: no vectors (STRING, JSON) */
    const char *resolution;      /**< the format's name of the type; not needed for creating */
    const uint64_t *dims;        /**< the shape of a vector */
    uint32_t rank;               /**< number of dimensions */
    bool scalar;                 /**< for creating with rank 0: one number per point */
    uint8_t pack;                /**< as in the file: 1 is snappy */
    uint8_t paging;              /**< as in the file; its meaning is unknown */
    uint64_t elements;           /**< numbers in a vector; not needed for creating */
    uint64_t vector_bytes;       /**< bytes of a vector; not needed for creating. Vectors of bits:
                                      the first bit of a byte is the lowest one. */
    const tnf_value *attributes; /**< the application's; NULL: none (for creating: an empty map) */
} tnf_space;

/** All 0, with its size. */
#define TNF_SPACE_INIT                                                                             \
    {                                                                                              \
        sizeof(tnf_space), NULL, NULL, NULL, 0, false, 0, 0, 0, 0, NULL                            \
    }

/** A point. A point that the library returns is valid until the next call on the handle. For
 *  appending, begin with TNF_POINT_INIT. */
typedef struct tnf_point {
    uint64_t offset; /**< of its block */
    tnf_str app;     /**< application data, one MessagePack value; empty: none */
    /** For appending, instead of app: a tree, or a document of kind TNF_JSON; NULL: use app. */
    const tnf_value *value;
    /** The coordinates: decoded, little-endian, row by row. The library aligns them for their type;
     *  for appending they need no alignment. */
    const void *vector;
    size_t vector_n;      /**< bytes of the vector */
    uint64_t reserved[2]; /**< 0 */
} tnf_point;

/** All 0. */
#define TNF_POINT_INIT                                                                             \
    {                                                                                              \
        0, { NULL, 0 }, NULL, NULL, 0,                                                             \
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
 *  TNF_OK stops. The only function of the handle that it may call is tnf_points_value(). */
typedef tnf_status (*tnf_point_take_fn)(void *ctx, const tnf_point *point, tnf_error *error);

/** Calls `take` for all points in file order, starting at offset `from` (0: at the first), under
 *  one shared lock. Uses memory for one point only. */
TNF_API TNF_CHECKED tnf_status tnf_points_each(tnf_points *points, uint64_t from,
                                               tnf_point_take_fn take, void *ctx, tnf_error *error);
/** Calls `take` for all points after the point at that offset, in file order: those that were
 *  appended later. Offset 0 means all points. The point at that offset may be deleted.
 *  TNF_ENOTFOUND if no block is at that offset, or if the file was compacted since this handle
 *  returned offsets. After compaction all points have new offsets, so read from 0. Until then this
 *  handle refuses all offsets, even those that tnf_points_append() returns after the compaction: it
 *  cannot tell them from old ones.
 *
 *  If `offset` is the last point that this handle returned, only new blocks are read; for any other
 *  offset, the blocks before it are followed first. */
TNF_API TNF_CHECKED tnf_status tnf_points_after(tnf_points *points, uint64_t offset,
                                                tnf_point_take_fn take, void *ctx,
                                                tnf_error *error);
/** Reads one point. TNF_ENOTFOUND if it is deleted, or if the file was compacted meanwhile. */
TNF_API TNF_CHECKED tnf_status tnf_points_read(tnf_point *out, tnf_points *points, uint64_t offset,
                                               tnf_error *error);
/** Decodes the application data of a point to a tree, valid until the next call of this function;
 *  NULL if there is none. It may be called inside tnf_points_each(). */
TNF_API TNF_CHECKED tnf_status tnf_points_value(const tnf_value **out, tnf_points *points,
                                                const tnf_point *point, tnf_error *error);

/** Makes a point from a line of JSON, {"app":…,"values":[…]}. Every number must fit the type of the
 *  space; "NaN", "Infinity" and "-Infinity" are strings. The point is valid until the next append.
 */
TNF_API TNF_CHECKED tnf_status tnf_points_parse(tnf_point *out, tnf_points *points,
                                                const char *text, size_t n, tnf_error *error);
/** Appends n points: all of them or none. Writes their offsets to `offsets`, which may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_points_append(uint64_t *offsets, tnf_points *points,
                                                 const tnf_point *batch, size_t n,
                                                 tnf_error *error);

/** Appends one point: its application data (NULL: none) and the n bytes of its vector. Writes its
 *  offset to *offset, which may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_points_add(uint64_t *offset, tnf_points *points,
                                              const tnf_value *app, const void *vector, size_t n,
                                              tnf_error *error);

/** Flags of functions that change a file. */
enum {
    TNF_POINTS_SHRED = 1,        /**< delete: also overwrite the bytes */
    TNF_POINTS_DROP_UNKNOWN = 2, /**< compact: remove blocks of unknown types */
    TNF_POINTS_IN_PLACE = 4      /**< set_attributes: a power cut may leave them half written */
};

/** Deletes the points (or unknown blocks) at n offsets: all of them or none. Deleting a deleted
 *  point is allowed. TNF_ENOTFOUND, and nothing is done, if there is no block at an offset. */
TNF_API TNF_CHECKED tnf_status tnf_points_delete(tnf_points *points, const uint64_t *offsets,
                                                 size_t n, unsigned flags, tnf_error *error);

/** Called on the caller's thread for each point, with its old and new offset, when the file has
 * been compacted. */
typedef void (*tnf_points_moved_fn)(void *ctx, uint64_t from, uint64_t to);

/** Frees the space of deleted points: writes a new file, which takes the name of the old one.
 *  `moved` may be NULL; the caller's offsets are then refused, see tnf_points_after(). */
TNF_API TNF_CHECKED tnf_status tnf_points_compact(tnf_points *points, unsigned flags,
                                                  tnf_points_moved_fn moved, void *ctx,
                                                  tnf_error *error);
/** Sets the application's attributes (NULL: none). In most cases this compacts the file. Then older
 *  offsets are refused, see tnf_points_after(). */
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
