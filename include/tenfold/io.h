/* SPDX-License-Identifier: MIT */
/**
 * @file io.h
 * Where bytes come from and where they go. You need this header only for storage of your own.
 *
 * A source is read at any position and has no state, so threads share it freely. A sink only
 * appends bytes: they appear under their name when the sink is committed, or never.
 */
#ifndef TENFOLD_IO_H
#define TENFOLD_IO_H

#include <tenfold/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One piece to read: n bytes at `offset` into dst. */
typedef struct tnf_range {
    uint64_t offset; /**< position in the source */
    size_t n;        /**< number of bytes */
    void *dst;       /**< memory for the bytes */
} tnf_range;

/** A hint about a range of a source. */
typedef enum tnf_advice {
    TNF_WILL_NEED, /**< it will be read soon */
    TNF_WONT_NEED  /**< it will not be read again soon */
} tnf_advice;

/** The version of tnf_source_ops in this header. */
#define TNF_SOURCE_OPS_VERSION 1u

/** Your own source. Several threads may call every function at once. Members that are not optional
 *  must be set. The library copies the struct. */
typedef struct tnf_source_ops {
    unsigned version; /**< TNF_SOURCE_OPS_VERSION */
    /** Reads exactly n bytes at offset, or fails. */
    tnf_status (*read_at)(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error);
    /** Optional: returns memory that holds [offset, offset+n) until close, or NULL. */
    const void *(*map)(void *ctx, uint64_t offset, uint64_t n);
    /** Optional: reads several ranges at once, sorted by offset. */
    tnf_status (*read_many)(void *ctx, const tnf_range *ranges, size_t n, tnf_error *error);
    /** Optional: takes a hint. */
    void (*advise)(void *ctx, uint64_t offset, uint64_t n, tnf_advice advice);
    /** Optional: called once, when the source is closed. */
    void (*close)(void *ctx);
} tnf_source_ops;

/** A source: bytes that can be read at any position. */
typedef struct tnf_source tnf_source;

/** How a file is read. Bytes that are copied always go through pread(), so a truncated file gives
 *  an error and not a signal. */
typedef enum tnf_access {
    TNF_ACCESS_AUTO, /**< views by mmap on local file systems, no views elsewhere */
    TNF_ACCESS_MMAP, /**< views by mmap */
    TNF_ACCESS_PREAD /**< no views */
} tnf_access;

/** Opens a regular file as a source. */
TNF_API TNF_CHECKED tnf_status tnf_source_file(tnf_source **out, const char *path,
                                               tnf_access access, tnf_error *error);
/** Makes a source from an open descriptor, which the caller closes. A pipe is first copied to an
 *  unnamed temporary file. */
TNF_API TNF_CHECKED tnf_status tnf_source_fd(tnf_source **out, int fd, tnf_access access,
                                             tnf_error *error);
/** Makes a source from memory, which must stay until the source is closed. */
TNF_API TNF_CHECKED tnf_status tnf_source_memory(tnf_source **out, const void *bytes, size_t n,
                                                 tnf_error *error);
/** Makes a source of `size` bytes from your own functions. On failure ops->close is not called. */
TNF_API TNF_CHECKED tnf_status tnf_source_custom(tnf_source **out, const tnf_source_ops *ops,
                                                 void *ctx, uint64_t size, tnf_error *error);
/** Opens the object of a URL as a source, which the library then owns. Any thread may call it. */
typedef tnf_status (*tnf_scheme_open_fn)(void *ctx, tnf_source **out, const char *url,
                                         tnf_error *error);

/** A scheme of your own. Begin with TNF_SCHEME_INIT. */
typedef struct tnf_scheme {
    size_t size; /**< sizeof(tnf_scheme) */
    /** "mem" for mem://…: lower-case letters, digits, '+', '-' and '.'. The library copies it. */
    const char *name;
    tnf_scheme_open_fn open; /**< opens an object */
    void *ctx;               /**< passed to it; must stay as long as the process */
} tnf_scheme;

/** All NULL, with its size. */
#define TNF_SCHEME_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_scheme), NULL, NULL, NULL                                                       \
    }

/** Registers a scheme for the whole process. From then on tnf_open() accepts its URLs, and also
 *  opens the files that an index at such a URL names. A scheme cannot be removed. TNF_EEXISTS if
 *  the name is taken. Schemes are only for reading; directories are not listed. */
TNF_API TNF_CHECKED tnf_status tnf_scheme_add(const tnf_scheme *scheme, tnf_error *error);

/** Closes a source that was not passed to tnf_open_source(). NULL is allowed. */
TNF_API void tnf_source_close(tnf_source *source);

/** The version of tnf_sink_ops in this header. */
#define TNF_SINK_OPS_VERSION 1u

/** Your own sink. One thread at a time calls it, not always the same one. Nothing is called after
 *  commit or abort. Members that are not optional must be set. The library copies the struct. */
typedef struct tnf_sink_ops {
    unsigned version; /**< TNF_SINK_OPS_VERSION */
    /** Appends n bytes. */
    tnf_status (*write)(void *ctx, const void *bytes, size_t n, tnf_error *error);
    /** Optional: makes the written bytes durable and visible. Return TNF_EUNSYNCED if they are
     *  visible and stay so, but a power cut may undo it. Any other failure aborts. */
    tnf_status (*commit)(void *ctx, tnf_error *error);
    /** Optional: discards the written bytes. */
    void (*abort)(void *ctx);
} tnf_sink_ops;

/** A sink: a place that bytes are appended to. */
typedef struct tnf_sink tnf_sink;

/** Flags of tnf_sink_file(). */
enum {
    TNF_SINK_REPLACE = 1, /**< an existing file may be replaced */
    TNF_SINK_NO_SYNC = 2  /**< skip fsync: faster, but a power cut may lose the file */
};

/** Makes a file that appears under `path` at commit. The bytes go to a temporary file next to it,
 *  which is synced and then renamed. If it replaces a file, that file is locked against other
 *  writers during the rename (docs/metadata.md), and the new file gets its permissions and, if the
 *  system allows it, its owner and group. */
TNF_API TNF_CHECKED tnf_status tnf_sink_file(tnf_sink **out, const char *path, unsigned flags,
                                             tnf_error *error);
/** Makes a sink from an open descriptor (pipe, socket, file), which the caller closes. */
TNF_API TNF_CHECKED tnf_status tnf_sink_fd(tnf_sink **out, int fd, tnf_error *error);
/** Makes a sink in memory. tnf_sink_bytes() returns what it holds; tnf_sink_close() frees it. */
TNF_API TNF_CHECKED tnf_status tnf_sink_memory(tnf_sink **out, tnf_error *error);
/** Returns the bytes of a memory sink after tnf_sink_commit(); before that, the last 64 KiB may be
 *  missing. They are valid until the sink is closed, and do not end in a NUL. NULL and 0 for any
 *  other sink. */
TNF_API tnf_str tnf_sink_bytes(const tnf_sink *sink);
/** Makes a sink from your own functions. On failure ops->abort is not called. */
TNF_API TNF_CHECKED tnf_status tnf_sink_custom(tnf_sink **out, const tnf_sink_ops *ops, void *ctx,
                                               tnf_error *error);
/** Appends n bytes. After a failure, the sink takes no more bytes and cannot be committed. */
TNF_API TNF_CHECKED tnf_status tnf_sink_write(tnf_sink *sink, const void *bytes, size_t n,
                                              tnf_error *error);
/** Makes the written bytes visible; call it once. TNF_EUNSYNCED: they are visible, but a power cut
 *  may still lose them. */
TNF_API TNF_CHECKED tnf_status tnf_sink_commit(tnf_sink *sink, tnf_error *error);
/** Frees a sink. If it was not committed, it is aborted. NULL is allowed. */
TNF_API void tnf_sink_close(tnf_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
