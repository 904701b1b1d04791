/* SPDX-License-Identifier: MIT */
/**
 * @file params.h
 * Load parameters on demand, within a budget of memory. Works with any file, by gpt.rs' rules.
 *
 * A parameter has a name and a base id: the first 16 bytes of the name's BLAKE3 hash. A parameter
 * source loads each parameter on first use and keeps as many as its budget allows:
 *
 *     tnf_params *params;
 *     tnf_params_options options = TNF_PARAMS_INIT;
 *     options.budget = (uint64_t)2 << 30;
 *     tnf_params_new(&params, file, &options, &error);
 *     const tnf_param *w;
 *     tnf_params_load(&w, params, "blocks.0.attention.w_qkv", &error);
 *     … use w->data …
 *     tnf_params_release(params, w);
 *     tnf_params_free(params);
 *
 * Any number of threads may use a source at once. tnf_params_free() must be the last call.
 */
#ifndef TENFOLD_PARAMS_H
#define TENFOLD_PARAMS_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An id of 128 bits, little-endian, as in a file. */
typedef struct tnf_id {
    uint8_t bytes[16]; /**< the id */
} tnf_id;

/** Computes the base id of a parameter name. TNF_EINVAL if the name is not ASCII. */
TNF_API TNF_CHECKED tnf_status tnf_param_id(tnf_id *out, const char *name, size_t n,
                                            tnf_error *error);
/** Makes a namespace id from a number. gpt.rs counts loaded models: 1, 2, … */
TNF_API tnf_id tnf_namespace_id(uint64_t number);
/** Returns the stable key of a parameter in a namespace, for use in caches. */
TNF_API tnf_id tnf_param_key(tnf_id name_space, tnf_id base_id);

/** A parameter source: a file with a cache. */
typedef struct tnf_params tnf_params;

/** A loaded parameter. It is valid until it is released. */
typedef struct tnf_param {
    const tnf_object *object; /**< the tensor */
    const void *data;         /**< its bytes: decoded, little-endian, aligned to 64 bytes */
    size_t nbytes;            /**< number of bytes */
    tnf_id base_id;           /**< the hash of the name's bytes, even if they are not ASCII */
    tnf_id key;               /**< the base id in the source's namespace */
} tnf_param;

/** How to make a source. Begin with TNF_PARAMS_INIT; NULL means all defaults. */
typedef struct tnf_params_options {
    size_t size;           /**< sizeof(tnf_params_options) */
    tnf_id name_space;     /**< for keys; zero is a valid namespace */
    uint64_t budget;       /**< bytes that the cache may hold; 0: not set */
    double budget_percent; /**< a fraction of all parameters' bytes, 0 to 1; 0: not set */
    uint64_t budget_cap;   /**< upper bound of the budget; 0: not set */
    uint64_t small_bytes;  /**< parameters up to this size are never evicted; 0: none */
    /** Load and keep "blocks.0." … "blocks.<n-1>." when the source is made. */
    uint32_t prefetch_layers;
    /** Load and keep all names with this prefix when the source is made. */
    const char *prefetch_prefix;
    tnf_allocator allocator; /**< called by one thread at a time */
} tnf_params_options;

/** All defaults. */
#define TNF_PARAMS_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_params_options), { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } }, 0, 0,  \
            0, 0, 0, NULL,                                                                         \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }

/** The statistics of a source. */
typedef struct tnf_params_stats {
    size_t size;           /**< sizeof(tnf_params_stats) */
    uint64_t hits;         /**< loads that read nothing: the parameter was cached or in use */
    uint64_t misses;       /**< loads that read the file */
    uint64_t evictions;    /**< parameters removed from the cache */
    uint64_t loaded_bytes; /**< bytes read in all */
    uint64_t cached_bytes; /**< bytes in the cache now */
    uint64_t pinned_bytes; /**< of those, bytes that are never evicted */
    uint64_t cached;       /**< parameters in the cache now */
    uint64_t in_use;       /**< parameters loaded and not yet released */
    uint64_t budget;       /**< the smallest of the budgets set; UINT64_MAX if none */
    uint64_t ahead;        /**< parameters that were read ahead and not yet loaded */
    uint64_t ahead_bytes;  /**< bytes of these parameters */
} tnf_params_stats;

/** All 0, with its size. */
#define TNF_PARAMS_STATS_INIT                                                                      \
    {                                                                                              \
        sizeof(tnf_params_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                  \
    }

/** Makes a source over an open file, which must stay open until the source is freed. */
TNF_API TNF_CHECKED tnf_status tnf_params_new(tnf_params **out, const tnf_file *file,
                                              const tnf_params_options *options, tnf_error *error);
/** Frees a source and all its parameters. NULL is allowed. */
TNF_API void tnf_params_free(tnf_params *params);

/** Loads a parameter by name, or finds it in the cache. Release it after use. */
TNF_API TNF_CHECKED tnf_status tnf_params_load(const tnf_param **out, tnf_params *params,
                                               const char *name, tnf_error *error);
/** The same with a name of n bytes, which may be any. */
TNF_API TNF_CHECKED tnf_status tnf_params_load_n(const tnf_param **out, tnf_params *params,
                                                 const char *name, size_t n, tnf_error *error);
/** Loads a parameter by base id, or finds it in the cache. Release it after use. */
TNF_API TNF_CHECKED tnf_status tnf_params_load_id(const tnf_param **out, tnf_params *params,
                                                  tnf_id base_id, tnf_error *error);
/** Says that the caller no longer uses the parameter. */
TNF_API void tnf_params_release(tnf_params *params, const tnf_param *param);

/** Loads and pins every parameter whose name begins with `prefix`, as far as the budget allows. */
TNF_API TNF_CHECKED tnf_status tnf_params_prefetch(tnf_params *params, const char *prefix,
                                                   tnf_error *error);
/** Reads n parameters ahead, which the caller will load soon, in that order. `names` NULL: all
 *  tensors that have a single part, in file order. Returns immediately; a thread of the source
 * reads them, one after the other.
 *
 *  Each parameter that was read ahead is kept until it has been loaded once, whatever the cache
 *  does. With a budget, the thread pauses until the next parameter fits, in addition to the pinned
 *  parameters and to the parameters that wait to be loaded. A parameter that does not fit in
 *  addition to the pinned ones alone is not read ahead.
 *
 *  If a parameter is loaded while the thread reads it, the load waits for the thread. If the thread
 *  has not begun to read it, the load reads it. If reading ahead fails, the load tries again and
 *  returns the error. TNF_ENOTFOUND if a name does not exist; then nothing is read ahead.
 *  tnf_params_trim() cancels reading ahead. tnf_params_free() does so, too, after the current
 *  read. */
TNF_API TNF_CHECKED tnf_status tnf_params_ahead(tnf_params *params, const tnf_str *names, size_t n,
                                                tnf_error *error);
/** Drops everything that is not in use, pinned or not, and what was read ahead. */
TNF_API void tnf_params_trim(tnf_params *params);
/** Gets the statistics of a source. */
TNF_API TNF_CHECKED tnf_status tnf_params_statistics(tnf_params_stats *out,
                                                     const tnf_params *params, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
