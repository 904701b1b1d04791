/* SPDX-License-Identifier: MIT */
/**
 * @file params.h
 * Parameters on demand: the identity and streaming rules of gpt.rs, for any file.
 *
 * A parameter is known by its name, or by the first 16 bytes of the name's BLAKE3 hash (its base
 * id). A parameter source loads each on first use and keeps what its byte budget allows:
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
 * All functions on a source may be called from any number of threads; only tnf_params_free() must
 * be the last.
 */
#ifndef TENFOLD_PARAMS_H
#define TENFOLD_PARAMS_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** 128 bits as they stand in a file: little-endian. */
typedef struct tnf_id {
    uint8_t bytes[16];
} tnf_id;

/** The base id of a parameter name. TNF_EINVAL if the name is not ASCII. */
TNF_API TNF_CHECKED tnf_status tnf_param_id(tnf_id *out, const char *name, size_t n,
                                            tnf_error *error);
/** A namespace id from a number, as gpt.rs counts them (1, 2, … one a loaded model). */
TNF_API tnf_id tnf_namespace_id(uint64_t number);
/** The stable key of a parameter within a namespace: what caches are keyed by. */
TNF_API tnf_id tnf_param_key(tnf_id name_space, tnf_id base_id);

typedef struct tnf_params tnf_params;

/** A loaded parameter; data stays valid until it is released. */
typedef struct tnf_param {
    const tnf_object *object;
    const void *data; /**< object's bytes, decoded, little-endian, 64-byte aligned */
    size_t nbytes;
    tnf_id base_id; /**< the hash of the name's bytes, also where they are not ASCII */
    tnf_id key;
} tnf_param;

/** Begin with TNF_PARAMS_INIT; NULL means all defaults. */
typedef struct tnf_params_options {
    size_t size;                 /**< sizeof(tnf_params_options) */
    tnf_id name_space;           /**< for keys; zero is a namespace like any other */
    uint64_t budget;             /**< bytes the cache may hold; 0: no budget set */
    double budget_percent;       /**< of all parameters' bytes, 0 to 1; 0: not set */
    uint64_t budget_cap;         /**< upper bound of the budget; 0: not set */
    uint64_t small_bytes;        /**< parameters up to this size are kept for good; 0: none */
    uint32_t prefetch_layers;    /**< load and keep "blocks.0." … "blocks.<n-1>." at once */
    const char *prefetch_prefix; /**< load and keep every name that begins so, at once */
    tnf_allocator allocator;     /**< called by one thread at a time */
} tnf_params_options;

#define TNF_PARAMS_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_params_options), { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } }, 0, 0,  \
            0, 0, 0, NULL,                                                                         \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }

/** Begin with TNF_PARAMS_STATS_INIT. */
typedef struct tnf_params_stats {
    size_t size;   /**< sizeof(tnf_params_stats) */
    uint64_t hits; /**< loads that read nothing: of parameters cached or still in use */
    uint64_t misses, evictions, loaded_bytes;
    uint64_t cached_bytes, pinned_bytes, cached;
    uint64_t in_use;             /**< parameters loaded and not yet released */
    uint64_t budget;             /**< the smallest of those set; UINT64_MAX if none */
    uint64_t ahead, ahead_bytes; /**< read ahead, and not loaded since */
} tnf_params_stats;

#define TNF_PARAMS_STATS_INIT                                                                      \
    {                                                                                              \
        sizeof(tnf_params_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                  \
    }

/** The file must stay open while the source lives. */
TNF_API TNF_CHECKED tnf_status tnf_params_new(tnf_params **out, const tnf_file *file,
                                              const tnf_params_options *options, tnf_error *error);
TNF_API void tnf_params_free(tnf_params *params);

/** Loads, or finds in the cache, a parameter by name or base id. Release it after use. */
TNF_API TNF_CHECKED tnf_status tnf_params_load(const tnf_param **out, tnf_params *params,
                                               const char *name, tnf_error *error);
TNF_API TNF_CHECKED tnf_status tnf_params_load_id(const tnf_param **out, tnf_params *params,
                                                  tnf_id base_id, tnf_error *error);
TNF_API void tnf_params_release(tnf_params *params, const tnf_param *param);

/** Loads and pins every parameter whose name begins with prefix, as far as the budget allows. */
TNF_API TNF_CHECKED tnf_status tnf_params_prefetch(tnf_params *params, const char *prefix,
                                                   tnf_error *error);
/** n parameters that will be loaded soon, in that order: returns at once, while a thread of the
 *  source's own reads them, one after the other. Each is kept until it is loaded (once), whatever
 *  else is; with a budget, reading goes on as long as those that wait to be loaded fit into it
 * beside what is pinned, and one that is larger is not read ahead. A load of what is being read
 * waits for it, one of what is not begun reads it. What fails is tried again by the load, and told
 * there. TNF_ENOTFOUND, and nothing is asked for, if there is no such parameter. tnf_params_trim()
 * calls it off, and so does tnf_params_free(), which waits for the one read at hand. */
TNF_API TNF_CHECKED tnf_status tnf_params_ahead(tnf_params *params, const char *const *names,
                                                size_t n, tnf_error *error);
/** Drops everything that is not in use, pinned or not, and what was read ahead. */
TNF_API void tnf_params_trim(tnf_params *params);
TNF_API TNF_CHECKED tnf_status tnf_params_statistics(tnf_params_stats *out,
                                                     const tnf_params *params, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
