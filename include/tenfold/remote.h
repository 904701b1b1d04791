/* SPDX-License-Identifier: MIT */
/**
 * @file remote.h
 * Files on other machines: http, https, s3, gs, az and hf (docs/remote.md).
 *
 *     tnf_open(&file, "https://example.org/model.safetensors", NULL, &error)
 *
 * reads the header by one or two requests; tensors are read when they are needed. Tensors of two
 * versions of an object are never mixed: if it changes, reading fails with TNF_ECHANGED. The
 * network is used through libcurl, which is loaded at the first URL.
 */
#ifndef TENFOLD_REMOTE_H
#define TENFOLD_REMOTE_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to use the network. Begin with TNF_URL_INIT; NULL means all defaults. */
typedef struct tnf_url_options {
    size_t size;                /**< sizeof(tnf_url_options) */
    const char *const *headers; /**< lines "Name: value", sent to the URL's own host only */
    size_t nheaders;            /**< number of headers */
    const char *token;          /**< sent as "Authorization: Bearer" to the URL's own host */
    const char *region;         /**< the region of s3; NULL: from the environment */
    const char *endpoint;       /**< s3 endpoint instead of Amazon's; NULL: from the environment */
    bool anonymous;             /**< do not look for credentials, and send none */
    bool private_hosts;         /**< a redirect from a public host may lead to a private address */
    bool stream;                /**< download whole files if the server does not support ranges */
    unsigned connections;       /**< at the same time; 0: 16 */
    uint64_t cache_bytes;       /**< memory of the cache of each file; 0: 64 MiB */
    unsigned attempts;          /**< for each request; 0: 6 */
    unsigned delay_ms;          /**< the first pause between two attempts; 0: 200 */
    /** Called while bytes arrive, by one thread at a time, with the number of bytes so far and 0.
     *  Return false to stop (TNF_ECANCELLED). progress, trace and warn are called until the file is
     *  closed, under a lock: they must not use that file. */
    tnf_progress_fn progress;
    /** Called with a line for each request, by one thread at a time. */
    tnf_trace_fn trace;
    /** Called with each unusual finding about a server, by one thread at a time. */
    tnf_warn_fn warn;
    void *ctx;  /**< passed to all three */
    bool netrc; /**< http: use names and passwords of ~/.netrc, or of the file that NETRC names */
} tnf_url_options;

/** All defaults. */
#define TNF_URL_INIT                                                                               \
    {                                                                                              \
        sizeof(tnf_url_options), NULL, 0, NULL, NULL, NULL, false, false, false, 0, 0, 0, 0, NULL, \
            NULL, NULL, NULL, false                                                                \
    }

/** Returns true for a URL that tnf_open() reads over the network. */
TNF_API bool tnf_is_url(const char *path);

/** Writes a URL of any scheme as it may be shown: without a name and password before the host, and
 *  without query and fragment, which may be a signature. The rest does not change, and neither does
 *  a path, which has no "scheme://". Works as snprintf(): writes at most n bytes, the last one a
 *  NUL, and returns the length of the whole text, which is never longer than the URL. NULL gives an
 *  empty text. */
TNF_API size_t tnf_show_url(char *out, size_t n, const char *url);

/** Opens a URL as a source. A source is this one object; to open the shards that an index names,
 *  use tnf_open(). */
TNF_API TNF_CHECKED tnf_status tnf_source_url(tnf_source **out, const char *url,
                                              const tnf_url_options *options, tnf_error *error);

/** The network traffic of a file so far. Begin with TNF_TRAFFIC_INIT. */
typedef struct tnf_traffic {
    size_t size;       /**< sizeof(tnf_traffic) */
    uint64_t requests; /**< requests that were sent, including repeated ones */
    uint64_t bytes;    /**< bytes that were received, without headers */
    uint64_t retries;  /**< requests that were repeated */
} tnf_traffic;

/** All 0, with its size. */
#define TNF_TRAFFIC_INIT                                                                           \
    {                                                                                              \
        sizeof(tnf_traffic), 0, 0, 0                                                               \
    }

/** Gets the traffic of an open file and its shards so far; false: it is not read over the
 *  network, or out->size is invalid. */
TNF_API bool tnf_file_traffic(tnf_traffic *out, const tnf_file *file);

/** Called on the caller's thread with a file that is complete. */
typedef void (*tnf_fetched_fn)(void *ctx, const char *name, uint64_t bytes, bool fetched);

/** How to fetch. Begin with TNF_FETCH_INIT; NULL means all defaults. */
typedef struct tnf_fetch_options {
    size_t size;                   /**< sizeof(tnf_fetch_options) */
    const tnf_url_options *remote; /**< NULL: all defaults; its progress is not used */
    bool replace;                  /**< existing files may be replaced */
    tnf_progress_fn progress;      /**< called with the bytes of the current file, done and total */
    /** Called for each file when it is complete: its name below the directory, its size, and
     *  whether it was fetched now (or was there already, unchanged). */
    tnf_fetched_fn file;
    void *ctx; /**< passed to both functions */
    /** Options as for opening a file: anonymous, connections, endpoint, netrc, private and
     *  region. */
    const tnf_option *options;
    size_t noptions; /**< number of options */
} tnf_fetch_options;

/** All defaults. */
#define TNF_FETCH_INIT                                                                             \
    {                                                                                              \
        sizeof(tnf_fetch_options), NULL, false, NULL, NULL, NULL, NULL, 0                          \
    }

/** Downloads a file, all files of a remote directory (s3, gs, az, hf), or an index and the shards
 *  that it names, into a directory. Each file appears under its name when it is complete and
 *  verified. Data that was fetched before an interruption is checked and used: until the file is
 *  complete, a file NAME.part and a journal stay next to it. */
TNF_API TNF_CHECKED tnf_status tnf_fetch(const char *url, const char *directory,
                                         const tnf_fetch_options *options, tnf_error *error);

/** Makes an object that appears under an s3:// URL at commit, complete or not at all (a multipart
 *  upload). Without TNF_SINK_REPLACE an existing object is not replaced. */
TNF_API TNF_CHECKED tnf_status tnf_sink_url(tnf_sink **out, const char *url, unsigned flags,
                                            const tnf_url_options *options, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
