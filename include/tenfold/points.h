/* SPDX-License-Identifier: MIT */
/**
 * @file points.h
 * VS files as what they are: points appended, read, deleted, by many processes at once.
 *
 *     tnf_points *points;
 *     tnf_points_options options = TNF_POINTS_INIT;
 *     options.write = true;
 *     tnf_points_open(&points, "space.vsdb", &options, &error);
 *     tnf_point p = { 0 };
 *     p.vector = (float[]){1, 2, 3};
 *     p.vector_n = 12;
 *     tnf_points_append(points, &p, 1, NULL, &error);
 *     tnf_points_close(points);
 *
 * Every call takes the lock that the format demands (shared to read, exclusive to write) and gives
 * it back when it returns. What a call has changed is whole or not there at all, whatever happens
 * to the process or the machine. A file that somebody compacted since is opened anew by itself.
 *
 * A point is known by its offset, until the file is compacted. One thread at a time may use a
 * handle; any number of handles and processes may have the same file open.
 */
#ifndef TENFOLD_POINTS_H
#define TENFOLD_POINTS_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tnf_points tnf_points;

/** What to do while somebody else has the lock. */
typedef enum tnf_points_lock {
    TNF_POINTS_WAIT,    /**< wait for it */
    TNF_POINTS_NO_WAIT, /**< fail at once: TNF_EIO with sys EAGAIN */
    TNF_POINTS_TIMEOUT, /**< wait for timeout_ms, then fail so */
    TNF_POINTS_NO_LOCK  /**< take none: for file systems that have none; the caller sees to it */
} tnf_points_lock;

/** When a change is safe from a power cut. */
typedef enum tnf_points_sync {
    TNF_POINTS_SYNC,   /**< when the call returns: fsync before and after the byte that counts */
    TNF_POINTS_NO_SYNC /**< when the system sees fit, and in no certain order */
} tnf_points_sync;

/** How the vectors of new points are stored. */
typedef enum tnf_points_pack {
    TNF_POINTS_AUTO, /**< as the file says: snappy if its `pack` is 1, else raw */
    TNF_POINTS_RAW,
    TNF_POINTS_GZIP,
    TNF_POINTS_SNAPPY
} tnf_points_pack;

/** How to open. Begin with TNF_POINTS_INIT; NULL means all defaults. */
typedef struct tnf_points_options {
    size_t size; /**< sizeof(tnf_points_options) */
    bool write;
    tnf_points_lock lock;
    uint32_t timeout_ms;
    tnf_points_sync sync;
    tnf_points_pack pack;
    bool pack_app;   /**< compress application data, with snappy */
    bool varint_msb; /**< numbers have their most significant bits first: never guessed */
    tnf_allocator allocator;
    /** Asked now and then by calls that change the file or wait for it; NULL: never. If it returns
     *  false the call ends with TNF_ECANCELLED, and the file is as it was. */
    bool (*go_on)(void *ctx);
    void *go_on_ctx;
} tnf_points_options;

#define TNF_POINTS_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_points_options), false, TNF_POINTS_WAIT, 0, TNF_POINTS_SYNC, TNF_POINTS_AUTO,   \
            false, false, { NULL, NULL }, NULL, NULL                                               \
    }

/** What all points of a file have in common. For creating, begin with TNF_SPACE_INIT. */
typedef struct tnf_space {
    size_t size;            /**< sizeof(tnf_space) */
    const tnf_type *type;   /**< of a coordinate; NULL: one that makes no vectors (STRING, JSON) */
    const char *resolution; /**< its name; not needed for creating */
    const uint64_t *dims;
    uint32_t rank;
    bool scalar;                 /**< for creating: rank 0, one number a point, is what is wanted */
    uint8_t pack, paging;        /**< as in the file: 1 is snappy; no meaning is known */
    uint64_t elements;           /**< of a vector; not needed for creating */
    uint64_t vector_bytes;       /**< likewise; bits are packed into bytes, the first the lowest */
    const tnf_value *attributes; /**< the application's; NULL: none (for creating: an empty map) */
} tnf_space;

#define TNF_SPACE_INIT                                                                             \
    {                                                                                              \
        sizeof(tnf_space), NULL, NULL, NULL, 0, false, 0, 0, 0, 0, NULL                            \
    }

/** A point. What is handed out lives until the next call on the handle. */
typedef struct tnf_point {
    uint64_t offset; /**< of its block */
    tnf_str app;     /**< application data, one MessagePack value; no bytes: none */
    /** For appending, instead of app: a tree, or a document of kind TNF_JSON; NULL: see app. */
    const tnf_value *value;
    /** Decoded, little-endian, row-major. Handed out, it is aligned for its type; for appending it
     *  need not be. */
    const void *vector;
    size_t vector_n;      /**< bytes */
    uint64_t reserved[2]; /**< 0 */
} tnf_point;

/** Opens a file. */
TNF_API TNF_CHECKED tnf_status tnf_points_open(tnf_points **out, const char *path,
                                               const tnf_points_options *options, tnf_error *error);
/** Makes a file and opens it for writing; TNF_EEXISTS if there is something under that name, but
 *  for an empty file. */
TNF_API TNF_CHECKED tnf_status tnf_points_create(tnf_points **out, const char *path,
                                                 const tnf_space *space,
                                                 const tnf_points_options *options,
                                                 tnf_error *error);
/** NULL is allowed. */
TNF_API void tnf_points_close(tnf_points *points);

/** NULL if the file has none yet, and so no points. Until the next call on the handle. */
TNF_API const tnf_space *tnf_points_space(const tnf_points *points);

/** Is told each point; whatever it returns but TNF_OK stops. It may not use the handle. */
typedef tnf_status (*tnf_point_take_fn)(void *ctx, const tnf_point *point, tnf_error *error);

/** All points in the order of the file, from that offset on (0: from the first), under one shared
 *  lock. Takes the memory of one point. */
TNF_API TNF_CHECKED tnf_status tnf_points_each(tnf_points *points, uint64_t from,
                                               tnf_point_take_fn take, void *ctx, tnf_error *error);
/** The points behind the one at that offset, in the order of the file: what was appended since it
 *  was the last (0: all of them). It may be deleted meanwhile. TNF_ENOTFOUND if there is no block
 * at that offset, or if the file was compacted since this handle told of offsets: then all points
 *  have new ones, to be read from 0 on. To go on from the last point that this handle has told of
 *  reads only what is new; from any other, the blocks before it are followed first. */
TNF_API TNF_CHECKED tnf_status tnf_points_after(tnf_points *points, uint64_t offset,
                                                tnf_point_take_fn take, void *ctx,
                                                tnf_error *error);
/** One point. TNF_ENOTFOUND if it is deleted, or if the file was compacted since it was listed. */
TNF_API TNF_CHECKED tnf_status tnf_points_read(tnf_point *out, tnf_points *points, uint64_t offset,
                                               tnf_error *error);
/** Its application data as a tree, as tnf_file_info() shows such; NULL if it has none. May be used
 *  while tnf_points_each() runs. Until the next call of it. */
TNF_API TNF_CHECKED tnf_status tnf_points_value(const tnf_value **out, tnf_points *points,
                                                const tnf_point *point, tnf_error *error);

/** A point from a line of JSON, {"app":…,"values":[…]}: every number must be one of the space's
 *  type ("NaN", "Infinity" and "-Infinity" are strings). It lives until the next append. */
TNF_API TNF_CHECKED tnf_status tnf_points_parse(tnf_point *out, tnf_points *points,
                                                const char *text, size_t n, tnf_error *error);
/** Appends n points: all of them or none. Their offsets go to `offsets`, which may be NULL. */
TNF_API TNF_CHECKED tnf_status tnf_points_append(tnf_points *points, const tnf_point *batch,
                                                 size_t n, uint64_t *offsets, tnf_error *error);

enum {
    TNF_POINTS_SHRED = 1,        /**< of delete: also overwrite what was there */
    TNF_POINTS_DROP_UNKNOWN = 2, /**< of compact: leave out blocks of unknown types */
    TNF_POINTS_IN_PLACE = 4      /**< of set_attributes: may a power cut find them half written? */
};

/** Deletes the points (or unknown blocks) at those offsets: all of them or none. A deleted one may
 *  be deleted again. TNF_ENOTFOUND, and nothing is done, if one of them is no block. */
TNF_API TNF_CHECKED tnf_status tnf_points_delete(tnf_points *points, const uint64_t *offsets,
                                                 size_t n, unsigned flags, tnf_error *error);

/** Told where each point went, when all is done. */
typedef void (*tnf_points_moved_fn)(void *ctx, uint64_t from, uint64_t to);

/** Gives the room of deleted points back: a new file takes the old one's name. */
TNF_API TNF_CHECKED tnf_status tnf_points_compact(tnf_points *points, unsigned flags,
                                                  tnf_points_moved_fn moved, void *ctx,
                                                  tnf_error *error);
/** Sets the application's attributes (NULL: none). Mostly that is a compaction. */
TNF_API TNF_CHECKED tnf_status tnf_points_set_attributes(tnf_points *points,
                                                         const tnf_value *attributes,
                                                         unsigned flags, tnf_error *error);

/** What a file is made of. Begin with TNF_POINTS_REPORT_INIT. */
typedef struct tnf_points_report {
    size_t size; /**< sizeof(tnf_points_report) */
    uint64_t file_bytes, points;
    uint64_t blanks, blank_bytes; /**< deleted blocks: what compacting gives back */
    uint64_t unknown, unknown_bytes;
    uint64_t trailing;   /**< bytes behind the terminal */
    bool terminal;       /**< false: the file just ends */
    uint64_t stopped_at; /**< where the last block that could be followed ends */
    uint64_t problems;
} tnf_points_report;

#define TNF_POINTS_REPORT_INIT                                                                     \
    {                                                                                              \
        sizeof(tnf_points_report), 0, 0, 0, 0, 0, 0, 0, false, 0, 0                                \
    }

typedef void (*tnf_points_problem_fn)(void *ctx, const tnf_error *problem);

/** Follows every block and decodes every point. TNF_OK also if problems were found; those are
 *  counted and told (problem may be NULL). */
TNF_API TNF_CHECKED tnf_status tnf_points_verify(tnf_points_report *out, tnf_points *points,
                                                 tnf_points_problem_fn problem, void *ctx,
                                                 tnf_error *error);
/** All points before the first damage of a file that may be damaged. TNF_OK if `take` was; then
 *  out->problems says whether there is damage, out->stopped_at where, and *error (if so) what. */
TNF_API TNF_CHECKED tnf_status tnf_points_salvage(tnf_points_report *out, const char *path,
                                                  const tnf_points_options *options,
                                                  tnf_point_take_fn take, void *ctx,
                                                  tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
