/* SPDX-License-Identifier: MIT */
/**
 * @file io.h
 * Where bytes come from and go to. Only those who bring their own storage need this header.
 *
 * A source is read at positions and has no state, so threads share it freely. A sink only appends:
 * what was written appears under its name when it is committed, or never.
 */
#ifndef TENFOLD_IO_H
#define TENFOLD_IO_H

#include <tenfold/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One wanted piece: n bytes at offset into dst. */
typedef struct tnf_range {
    uint64_t offset;
    size_t n;
    void *dst;
} tnf_range;

typedef enum tnf_advice { TNF_WILL_NEED, TNF_WONT_NEED } tnf_advice;

#define TNF_SOURCE_OPS_VERSION 1u

/** A user's back-end. Every function may be called from several threads at once. */
typedef struct tnf_source_ops {
    unsigned version; /**< TNF_SOURCE_OPS_VERSION */
    /** Reads exactly n bytes at offset, or fails. */
    tnf_status (*read_at)(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error);
    /** Optional: memory that holds [offset, offset+n) until close, or NULL. */
    const void *(*map)(void *ctx, uint64_t offset, uint64_t n);
    /** Optional: several ranges at once, sorted by offset. */
    tnf_status (*read_many)(void *ctx, const tnf_range *ranges, size_t n, tnf_error *error);
    /** Optional: a hint. */
    void (*advise)(void *ctx, uint64_t offset, uint64_t n, tnf_advice advice);
    /** Optional: called once, when the source is closed. */
    void (*close)(void *ctx);
} tnf_source_ops;

typedef struct tnf_source tnf_source;

/** How a file is reached. AUTO is mmap for views on local file systems, pread elsewhere; bytes that
 *  are copied out always go through pread, so a file cut short gives an error and no signal. */
typedef enum tnf_access { TNF_ACCESS_AUTO, TNF_ACCESS_MMAP, TNF_ACCESS_PREAD } tnf_access;

/** A regular file. */
TNF_API TNF_CHECKED tnf_status tnf_source_file(tnf_source **out, const char *path,
                                               tnf_access access, tnf_error *error);
/** An open descriptor, which stays the caller's. A pipe is first copied to a nameless file. */
TNF_API TNF_CHECKED tnf_status tnf_source_fd(tnf_source **out, int fd, tnf_access access,
                                             tnf_error *error);
/** The caller's bytes, which must outlive the source. */
TNF_API TNF_CHECKED tnf_status tnf_source_memory(tnf_source **out, const void *bytes, size_t n,
                                                 tnf_error *error);
/** A user's back-end of `size` bytes. On failure ctx stays the caller's. */
TNF_API TNF_CHECKED tnf_status tnf_source_custom(tnf_source **out, const tnf_source_ops *ops,
                                                 void *ctx, uint64_t size, tnf_error *error);
/** For a source that was not handed to tnf_open_source(). NULL is allowed. */
TNF_API void tnf_source_close(tnf_source *source);

#define TNF_SINK_OPS_VERSION 1u

/** A user's target. Called from one thread. After commit or abort nothing more is called. */
typedef struct tnf_sink_ops {
    unsigned version; /**< TNF_SINK_OPS_VERSION */
    tnf_status (*write)(void *ctx, const void *bytes, size_t n, tnf_error *error);
    /** Makes what was written durable and visible. TNF_EUNSYNCED if it is visible and cannot be
     *  taken back, but not known to be durable; anything else aborts. Optional. */
    tnf_status (*commit)(void *ctx, tnf_error *error);
    /** Forgets what was written. Optional. */
    void (*abort)(void *ctx);
} tnf_sink_ops;

typedef struct tnf_sink tnf_sink;

enum {
    TNF_SINK_REPLACE = 1, /**< an existing file may be replaced */
    TNF_SINK_NO_SYNC = 2  /**< skip fsync: faster, and a power cut may lose the file */
};

/** A file that appears under `path` at commit: temporary file beside it, fsync, rename. What it
 *  replaces is claimed for the rename, as by all that change or replace files (docs/metadata.md),
 *  and hands down its permissions and, where the system allows it, its owner and group. */
TNF_API TNF_CHECKED tnf_status tnf_sink_file(tnf_sink **out, const char *path, unsigned flags,
                                             tnf_error *error);
/** An open descriptor (pipe, socket, file), which stays the caller's. */
TNF_API TNF_CHECKED tnf_status tnf_sink_fd(tnf_sink **out, int fd, tnf_error *error);
/** Memory. tnf_sink_bytes() tells what is in it; abort or close frees it. */
TNF_API TNF_CHECKED tnf_status tnf_sink_memory(tnf_sink **out, tnf_error *error);
/** What a memory sink holds; valid until the next write or close. */
TNF_API tnf_str tnf_sink_bytes(const tnf_sink *sink);
/** A user's target. */
TNF_API TNF_CHECKED tnf_status tnf_sink_custom(tnf_sink **out, const tnf_sink_ops *ops, void *ctx,
                                               tnf_error *error);
/** n more bytes. */
TNF_API TNF_CHECKED tnf_status tnf_sink_write(tnf_sink *sink, const void *bytes, size_t n,
                                              tnf_error *error);
/** Puts what was written in place; once. TNF_EUNSYNCED: it is, but may not survive a power cut. */
TNF_API TNF_CHECKED tnf_status tnf_sink_commit(tnf_sink *sink, tnf_error *error);
/** Releases a sink; one that was not committed is aborted. NULL is allowed. */
TNF_API void tnf_sink_close(tnf_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
