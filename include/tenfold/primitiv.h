/* SPDX-License-Identifier: MIT */
/**
 * @file primitiv.h
 * Models and optimizers of primitiv: parameters by path, statistics, configs.
 *
 * The path of a parameter is the list of names from the root of the model to the parameter. A name
 * may contain any byte, even a dot. A Tensor or Parameter file has one tensor, whose path is empty.
 * Data are column-major: the first dimension varies fastest, the batch slowest.
 *
 *     tnf_str w[] = { TNF_STR("encoder"), TNF_STR("w") };
 *     tnf_str m1 = TNF_STR("Adam.m1");
 *     tnf_primitiv_shape shape = { (uint32_t[]){ 2, 3 }, 2, 1 };
 *     tnf_primitiv_binding all[] = {
 *         { w, 2, NULL, shape, weights, false },
 *         { w, 2, &m1, shape, moments, false },
 *     };
 *     tnf_primitiv_bind(file, all, 2, NULL, &error);
 *
 * All functions work on any file that has the tensors, even on a converted one.
 */
#ifndef TENFOLD_PRIMITIV_H
#define TENFOLD_PRIMITIV_H

#include <tenfold/build.h>
#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A shape of primitiv. Dimensions of 1 at the end are ignored, as in primitiv. */
typedef struct tnf_primitiv_shape {
    const uint32_t *dims; /**< n dimensions */
    uint32_t n;           /**< number of dimensions */
    uint32_t batch;       /**< 0 and 1 both mean: no batch */
} tnf_primitiv_shape;

/* ------------------------------------------------------------------- names */

/** Makes the name of the tensor with that path: the names with dots between them; a dot inside a
 *  name becomes "\.". An empty path gives "value", the tensor of a Tensor or Parameter file. Works
 *  as snprintf(): writes at most `size` bytes, the last one a NUL, and returns the length of the
 *  whole name. */
TNF_API size_t tnf_primitiv_join(char *out, size_t size, const tnf_str *path, size_t n);
/** Splits the name of a tensor into its path and returns the number of names. The first `room`
 * names go to `path`. Their bytes go to `memory`, which has name.n + 1 bytes. */
TNF_API size_t tnf_primitiv_split(tnf_str *path, size_t room, char *memory, tnf_str name);

/* -------------------------------------------------------------------- read */

/** Finds the parameter with that path, or its statistic with that key (NULL: the parameter itself).
 *  TNF_ENOTFOUND if there is none. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_find(const tnf_object **out, const tnf_file *file,
                                                 const tnf_str *path, size_t n,
                                                 const tnf_str *statistic, tnf_error *error);

/** The place of a parameter, or of one of its statistics, in the caller's memory. */
typedef struct tnf_primitiv_binding {
    const tnf_str *path;      /**< n names */
    size_t n;                 /**< number of names */
    const tnf_str *statistic; /**< its key; NULL: the parameter itself */
    tnf_primitiv_shape shape; /**< the shape that it must have */
    float *data; /**< memory for all of it, column-major, in the byte order of the machine */
    bool loaded; /**< result: false if the file has no such tensor */
} tnf_primitiv_binding;

/** Called on the caller's thread with a tensor that no binding takes. */
typedef void (*tnf_primitiv_extra_fn)(void *ctx, const tnf_object *object);

/** Called on the caller's thread with a binding that the file does not have. */
typedef void (*tnf_primitiv_missing_fn)(void *ctx, const tnf_primitiv_binding *binding);

/** How to load. Begin with TNF_PRIMITIV_BIND_INIT. NULL means primitiv's own rules: bindings
 * without a tensor are allowed, parameters without a binding are not. */
typedef struct tnf_primitiv_bind_options {
    size_t size;      /**< sizeof(tnf_primitiv_bind_options) */
    bool need_all;    /**< a binding without a tensor is an error */
    bool allow_extra; /**< parameters without a binding are allowed */
    /** Called for each binding without a tensor. */
    tnf_primitiv_missing_fn missing;
    /** Called for each parameter or statistic of the file without a binding. */
    tnf_primitiv_extra_fn extra;
    void *ctx;               /**< passed to both functions */
    tnf_allocator allocator; /**< zero: malloc */
} tnf_primitiv_bind_options;

/** primitiv's own rules. */
#define TNF_PRIMITIV_BIND_INIT                                                                     \
    {                                                                                              \
        sizeof(tnf_primitiv_bind_options), false, false, NULL, NULL, NULL,                         \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }

/** Loads parameters and statistics into the caller's memory: all of them or, on any error, none.
 *  Names, types and shapes are checked first (TNF_ENOTFOUND, TNF_EINVAL). Then everything is read
 *  into temporary memory, as large as the data, and copied to its place at the end. Statistics
 *  without a binding are not an error. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_bind(const tnf_file *file,
                                                 tnf_primitiv_binding *bindings, size_t n,
                                                 const tnf_primitiv_bind_options *options,
                                                 tnf_error *error);

/** Opens a file, loads from it and closes it. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_load(tnf_primitiv_binding *bindings, size_t n,
                                                 const char *path,
                                                 const tnf_primitiv_bind_options *options,
                                                 tnf_error *error);

/** A setting of an optimizer. */
typedef struct tnf_primitiv_config {
    tnf_str key; /**< "Adam.alpha" */
    uint32_t u;  /**< the value of an integer config */
    float f;     /**< the value of a float config */
} tnf_primitiv_config;

/** Opens a file and gets configs of its optimizer: the member u of each of `uints` and the member f
 *  of each of `floats`, by their keys. TNF_ENOTFOUND if the file lacks one of them; then none
 *  changes. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_load_optimizer(tnf_primitiv_config *uints,
                                                           size_t nuints,
                                                           tnf_primitiv_config *floats,
                                                           size_t nfloats, const char *path,
                                                           tnf_error *error);
/** Gets an integer config of an optimizer by its key: "Optimizer.epoch". Returns false if there is
 *  none. */
TNF_API bool tnf_primitiv_uint(uint32_t *out, const tnf_file *file, const char *key);
/** Gets a float config of an optimizer by its key: "Adam.alpha". Returns false if there is none. */
TNF_API bool tnf_primitiv_float(float *out, const tnf_file *file, const char *key);
/** Gets the class of the optimizer, "Adam", from the beginning of its keys, since no file names it.
 *  The result has out->n bytes and no NUL after them. Returns false if the keys name no class, or
 *  several. */
TNF_API bool tnf_primitiv_optimizer(tnf_str *out, const tnf_file *file);

/* ------------------------------------------------------------------- write */

/** Adds a parameter, or one of its statistics (which may have a batch), to a file that will be
 * saved as "primitiv". Data are column-major, 32-bit and little-endian, and must stay until after
 * saving. With an empty path the file becomes a Parameter file instead of a Model (or a Tensor
 * file, if saved with the option type=tensor). */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_add(tnf_builder *builder, const tnf_str *path, size_t n,
                                                const tnf_str *statistic,
                                                const tnf_primitiv_shape *shape, const float *data,
                                                tnf_error *error);
/** Makes the file of the builder a Shape file. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_set_shape(tnf_builder *builder,
                                                      const tnf_primitiv_shape *shape,
                                                      tnf_error *error);

/** Makes the file of the builder an Optimizer file with these configs, in this order. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_set_optimizer(tnf_builder *builder,
                                                          const tnf_primitiv_config *uints,
                                                          size_t nuints,
                                                          const tnf_primitiv_config *floats,
                                                          size_t nfloats, tnf_error *error);

/** Saves a model of n parameters and statistics, which tnf_primitiv_load() can read. Without a
 *  format in the options (NULL: all defaults) the result is a file of primitiv. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_save(const char *path,
                                                 const tnf_primitiv_binding *bindings, size_t n,
                                                 const tnf_save_options *options, tnf_error *error);
/** Saves an optimizer with these configs, in this order. */
TNF_API TNF_CHECKED tnf_status
tnf_primitiv_save_optimizer(const char *path, const tnf_primitiv_config *uints, size_t nuints,
                            const tnf_primitiv_config *floats, size_t nfloats,
                            const tnf_save_options *options, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
