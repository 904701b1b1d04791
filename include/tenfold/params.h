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
 * A source also keeps derived forms of parameters (packed weights, other layouts), within the same
 * budget. Each form is made once, however many threads request it:
 *
 *     static const tnf_derive packed = { sizeof packed, "packed", pack, unpack, NULL };
 *     const tnf_derived *form;
 *     tnf_params_derive(&form, params, "blocks.0.attention.w_qkv", &packed, &error);
 *     … use form->data …
 *     tnf_params_release_derived(params, form);
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
/** Checks a parameter's path by gpt.rs' rules: segments of ASCII that are not empty, with a dot
 *  between them. TNF_EINVAL for any other path. (The names in a file may be any.) */
TNF_API TNF_CHECKED tnf_status tnf_param_path_check(const char *path, size_t n, tnf_error *error);
/** Joins segments with dots to the path of a parameter. A segment must be ASCII, not empty, and
 *  without a dot; there must be one at least. *length becomes the length of the path, without the
 *  NUL that is written after it. With room 0 (then `out` may be NULL) nothing is written. If the
 *  room is too small, nothing but a NUL is written: TNF_EINVAL, and *length is set, too. */
TNF_API TNF_CHECKED tnf_status tnf_param_path_join(char *out, size_t room, size_t *length,
                                                   const tnf_str *segments, size_t n,
                                                   tnf_error *error);

/** Makes a namespace id from the two halves of its number. */
TNF_API tnf_id tnf_namespace_id(uint64_t high, uint64_t low);
/** Returns the next namespace of this process: 1, 2, … Safe for threads. */
TNF_API tnf_id tnf_namespace_next(void);
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

/** A derived form of a parameter. It is valid until it is released. */
typedef struct tnf_derived {
    void *data;       /**< what `make` returned */
    size_t nbytes;    /**< the bytes that count in the budget */
    tnf_id base_id;   /**< of the parameter */
    tnf_id key;       /**< of the parameter, in the source's namespace */
    const char *kind; /**< of the form */
} tnf_derived;

/** Makes a form of a parameter, which is loaded during the call. Sets *data, and *nbytes to the
 *  bytes that the form takes in the budget. It may load other parameters of the source and request
 *  other forms of it, but not (even through other forms) the one that it makes. */
typedef tnf_status (*tnf_make_form_fn)(void *ctx, void **data, size_t *nbytes,
                                       const tnf_param *param, tnf_error *error);
/** Frees a form. */
typedef void (*tnf_drop_form_fn)(void *ctx, void *data, size_t nbytes);

/** How to make a form. Begin with TNF_DERIVE_INIT, and set `kind` and `make`. */
typedef struct tnf_derive {
    size_t size;      /**< sizeof(tnf_derive) */
    const char *kind; /**< the name of the form; forms of a parameter differ in it. It is copied */
    tnf_make_form_fn make; /**< called without a lock, by the thread that requests the form first */
    tnf_drop_form_fn
        drop;  /**< called once for each form that was made, by any thread; NULL: nothing */
    void *ctx; /**< for both; valid until the last form is dropped */
} tnf_derive;

/** No kind, no functions. */
#define TNF_DERIVE_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_derive), NULL, NULL, NULL, NULL                                                 \
    }

/** The version of tnf_resolver_ops in this header. */
#define TNF_RESOLVER_OPS_VERSION 1u

/** Your own memo of derived forms, gpt.rs' ParamResolver: forms are found by the key of their
 *  parameter, and their kind. Sources then keep no forms themselves, except those in use; the
 *  resolver decides how long it keeps them, and no budget of a source counts them. Several threads
 *  may call every function at once, and several sources may share a resolver. The functions are
 *  called without a lock, so they may use the source. All three must be set; a source copies them.
 */
typedef struct tnf_resolver_ops {
    unsigned version; /**< TNF_RESOLVER_OPS_VERSION */
    /** Finds the form of form->key and form->kind: sets form->data and form->nbytes, and keeps both
     *  until `release`. Returns false if there is none. A source does not call it for a form that
     *  is in use. */
    bool (*get)(void *ctx, tnf_derived *form);
    /** Takes a form that was just made, keeps it until `release`, and then frees it at any time by
     *  drop(drop_ctx, form->data, form->nbytes), if `drop` is not NULL. If sources with the same
     *  namespace make a form at the same time, there may be one already. If it fails, the source
     *  drops the form, and the request returns the error. */
    tnf_status (*set)(void *ctx, const tnf_derived *form, tnf_drop_form_fn drop, void *drop_ctx,
                      tnf_error *error);
    /** Says that a source no longer uses a form: called once for each successful get or set. */
    void (*release)(void *ctx, const tnf_derived *form);
} tnf_resolver_ops;

/** How to make a source. Begin with TNF_PARAMS_INIT; NULL means all defaults. */
typedef struct tnf_params_options {
    size_t size; /**< sizeof(tnf_params_options) */
    /** The namespace for keys, which is copied and may be zero; NULL: tnf_namespace_next(). */
    const tnf_id *name_space;
    uint64_t budget;       /**< bytes that the cache may hold; 0: not set */
    double budget_percent; /**< a fraction of all parameters' bytes, 0 to 1; 0: not set */
    uint64_t budget_cap;   /**< upper bound of the budget; 0: not set */
    uint64_t small_bytes;  /**< parameters and forms up to this size are never evicted; 0: none */
    /** Load and keep "blocks.0." … "blocks.<n-1>." when the source is made. */
    uint64_t prefetch_layers;
    /** Load and keep all names with this prefix when the source is made. */
    const char *prefetch_prefix;
    tnf_allocator allocator;          /**< called by one thread at a time */
    const tnf_resolver_ops *resolver; /**< keeps the derived forms; NULL: the source does */
    void *resolver_ctx;               /**< for its functions */
    bool budget_zero; /**< the budget is 0: only what has no bytes is kept, whatever is set above */
    uint8_t reserved[7]; /**< 0 */
} tnf_params_options;

/** All defaults. */
#define TNF_PARAMS_INIT                                                                            \
    {                                                                                              \
        sizeof(tnf_params_options), NULL, 0, 0, 0, 0, 0, NULL, { NULL, NULL }, NULL, NULL, false,  \
        {                                                                                          \
            0, 0, 0, 0, 0, 0, 0                                                                    \
        }                                                                                          \
    }

/** Sets the options as the config of a gpt.rs checkpoint requests by its
 *  `runtime.weight_streaming`; the others do not change. The config is the attribute `gptrs.config`
 *  of a file of any format. Begin the options with TNF_PARAMS_INIT.
 *
 *      enabled                          false: each parameter is read once and kept (budget
 *                                       UINT64_MAX), and nothing else may be set
 *      device_budget_bytes              budget
 *      device_weights_percent           budget_percent, rounded to f32 as in gpt.rs
 *      cache_budget_cap_bytes           budget_cap
 *      small_param_persist_threshold    small_bytes
 *      prefetch_layers                  prefetch_layers
 *
 *  A 0 in one of the three budgets sets budget_zero. A file without such settings gets those of
 *  `enabled` false, gpt.rs' default. TNF_EFORMAT for a value that gpt.rs refuses and for a key
 *  that occurs twice, TNF_EUNSUPPORTED for a setting with an unknown name; the message names it,
 * and the options do not change. */
TNF_API TNF_CHECKED tnf_status tnf_params_options_from_config(tnf_params_options *options,
                                                              const tnf_file *file,
                                                              tnf_error *error);

/** The statistics of a source. */
typedef struct tnf_params_stats {
    size_t size;             /**< sizeof(tnf_params_stats) */
    uint64_t hits;           /**< loads that read nothing: the parameter was cached or in use */
    uint64_t misses;         /**< loads that read the file */
    uint64_t evictions;      /**< parameters and forms removed from the cache */
    uint64_t loaded_bytes;   /**< bytes read in all */
    uint64_t cached_bytes;   /**< bytes in the cache now */
    uint64_t pinned_bytes;   /**< of those, bytes that are never evicted */
    uint64_t cached;         /**< parameters in the cache now */
    uint64_t in_use;         /**< parameters loaded and not yet released */
    uint64_t budget;         /**< the smallest of the budgets set; UINT64_MAX if none */
    uint64_t ahead;          /**< parameters that were read ahead and not yet loaded */
    uint64_t ahead_bytes;    /**< bytes of these parameters */
    uint64_t derived;        /**< derived forms in the cache now */
    uint64_t derived_bytes;  /**< of cached_bytes, the bytes of these forms */
    uint64_t derived_in_use; /**< forms requested and not yet released */
    uint64_t derived_hits;   /**< requests that made nothing: the form was in memory */
    uint64_t made;           /**< forms made */
} tnf_params_stats;

/** All 0, with its size. */
#define TNF_PARAMS_STATS_INIT                                                                      \
    {                                                                                              \
        sizeof(tnf_params_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                   \
    }

/** Makes a source over an open file, which must stay open until the source is freed. */
TNF_API TNF_CHECKED tnf_status tnf_params_new(tnf_params **out, const tnf_file *file,
                                              const tnf_params_options *options, tnf_error *error);
/** Frees a source and all its parameters and forms. NULL is allowed. */
TNF_API void tnf_params_free(tnf_params *params);
/** Returns the namespace of a source's keys. */
TNF_API tnf_id tnf_params_namespace(const tnf_params *params);

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

/** Makes a form of a parameter, or finds it in the memo. Release it after use.
 *
 *  If several threads request the same form, one of them makes it, and the others wait. If that
 *  fails, the thread that made it gets the error, and the next one tries again.
 *
 *  A form is kept by the rules for parameters: within the budget that both share, the least
 *  recently used of both is evicted first. A form is pinned if its size is up to small_bytes, or
 *  if its parameter was prefetched. An evicted form lives until it is released. Without a budget,
 *  only pinned forms are kept after that. */
TNF_API TNF_CHECKED tnf_status tnf_params_derive(const tnf_derived **out, tnf_params *params,
                                                 const char *name, const tnf_derive *how,
                                                 tnf_error *error);
/** The same with a name of n bytes, which may be any. */
TNF_API TNF_CHECKED tnf_status tnf_params_derive_n(const tnf_derived **out, tnf_params *params,
                                                   const char *name, size_t n,
                                                   const tnf_derive *how, tnf_error *error);
/** The same by base id. */
TNF_API TNF_CHECKED tnf_status tnf_params_derive_id(const tnf_derived **out, tnf_params *params,
                                                    tnf_id base_id, const tnf_derive *how,
                                                    tnf_error *error);
/** Finds a form by the key of its parameter (tnf_param.key), without making it: it waits for a
 *  thread that makes it. TNF_ENOTFOUND if there is none. Release it after use. */
TNF_API TNF_CHECKED tnf_status tnf_params_find_derived(const tnf_derived **out, tnf_params *params,
                                                       tnf_id key, const char *kind,
                                                       tnf_error *error);
/** Says that the caller no longer uses the form. */
TNF_API void tnf_params_release_derived(tnf_params *params, const tnf_derived *form);

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
/** Drops everything that is not in use, parameters and forms, pinned or not, and what was read
 *  ahead. */
TNF_API void tnf_params_trim(tnf_params *params);
/** Gets the statistics of a source. */
TNF_API TNF_CHECKED tnf_status tnf_params_statistics(tnf_params_stats *out,
                                                     const tnf_params *params, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
