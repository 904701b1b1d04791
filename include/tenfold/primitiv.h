/* SPDX-License-Identifier: MIT */
/**
 * @file primitiv.h
 * Models and optimizers the way primitiv sees them: by path, by statistic, by config.
 *
 * A parameter is known by its path, the names from the root of the model to its own. A dot inside a
 * name is data; names may hold any byte. A Tensor or Parameter file has one tensor without a path:
 * its path has no names at all. Data are column-major: the first dimension varies fastest, the
 * batch slowest.
 *
 *     tnf_str w[] = { TNF_STR("encoder"), TNF_STR("w") }, m1 = TNF_STR("Adam.m1");
 *     tnf_primitiv_shape shape = { (uint32_t[]){ 2, 3 }, 2, 1 };
 *     tnf_primitiv_binding all[] = { { w, 2, NULL, shape, weights }, { w, 2, &m1, shape, moments }
 * }; tnf_primitiv_bind(file, all, 2, NULL, &error);
 *
 * Everything here works on any file that has the tensors, also on one that was converted.
 */
#ifndef TENFOLD_PRIMITIV_H
#define TENFOLD_PRIMITIV_H

#include <tenfold/build.h>
#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Dimensions, and the batch: 0 and 1 both mean that there is none. Dimensions of 1 at the end mean
 *  nothing, as in primitiv. */
typedef struct tnf_primitiv_shape {
    const uint32_t *dims;
    uint32_t n;
    uint32_t batch;
} tnf_primitiv_shape;

/* ------------------------------------------------------------------- names */

/** The name of the tensor with that path: names joined with dots, a dot inside a name escaped as
 *  "\.". Writes as snprintf() does: at most `size` bytes with a NUL at the end; returns the length
 *  of the whole. No names give "value", the tensor of a Tensor or Parameter file. */
TNF_API size_t tnf_primitiv_join(char *out, size_t size, const tnf_str *path, size_t n);
/** The other way: how many names a tensor's name is made of. Of those the first `room` go to
 *  `path`, in `memory` of name.n + 1 bytes. */
TNF_API size_t tnf_primitiv_split(tnf_str *path, size_t room, char *memory, tnf_str name);

/* -------------------------------------------------------------------- read */

/** The parameter with that path, or its statistic under that key (NULL: the parameter itself).
 *  TNF_ENOTFOUND if there is none. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_find(const tnf_object **out, const tnf_file *file,
                                                 const tnf_str *path, size_t n,
                                                 const tnf_str *statistic, tnf_error *error);

/** Where a parameter or one of its statistics is to go. */
typedef struct tnf_primitiv_binding {
    const tnf_str *path;
    size_t n;
    const tnf_str *statistic; /**< its key; NULL: the parameter itself */
    tnf_primitiv_shape shape; /**< what it must have */
    float *data;              /**< room for all of it, column-major */
    bool loaded;              /**< for the function to set: false if the file has no such tensor */
} tnf_primitiv_binding;

/** How to load. Begin with TNF_PRIMITIV_BIND_INIT; NULL means primitiv's own rules: the file may
 *  have less than what is wanted, but no parameter that is not. */
typedef struct tnf_primitiv_bind_options {
    size_t size;      /**< sizeof(tnf_primitiv_bind_options) */
    bool need_all;    /**< it is an error if something wanted is not in the file */
    bool allow_extra; /**< the file may have parameters that are not wanted */
    /** Told each binding that the file has nothing for, and each parameter and statistic of the
     *  file that no binding wants. */
    void (*missing)(void *ctx, const tnf_primitiv_binding *binding);
    void (*extra)(void *ctx, const tnf_object *object);
    void *ctx;
    tnf_allocator allocator;
} tnf_primitiv_bind_options;

#define TNF_PRIMITIV_BIND_INIT                                                                     \
    {                                                                                              \
        sizeof(tnf_primitiv_bind_options), false, false, NULL, NULL, NULL,                         \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }

/** Loads parameters and statistics into the caller's memory: all of them or, on any error, none.
 *  Names, types and shapes are checked first (TNF_ENOTFOUND, TNF_EINVAL), then everything is read
 *  to memory of its own, as much again as what is loaded, and only then copied to its place. Extra
 *  statistics are no error. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_bind(const tnf_file *file,
                                                 tnf_primitiv_binding *bindings, size_t n,
                                                 const tnf_primitiv_bind_options *options,
                                                 tnf_error *error);

/** A config of an optimizer by its key, "Optimizer.epoch" or "Adam.alpha"; false if it is not
 *  there. */
TNF_API bool tnf_primitiv_uint(uint32_t *out, const tnf_file *file, const char *key);
TNF_API bool tnf_primitiv_float(float *out, const tnf_file *file, const char *key);
/** The optimizer's class, which no file names, from what its keys begin with: "Adam" (out->n bytes,
 *  no NUL behind them). False if they do not tell, or tell of several. */
TNF_API bool tnf_primitiv_optimizer(tnf_str *out, const tnf_file *file);

/* ------------------------------------------------------------------- write */

/** Adds a parameter to what will be saved as "primitiv", or one of its statistics, which may have a
 *  batch. Data are column-major, 32-bit and little-endian, and must stay until after saving. With
 *  no names in the path it makes a Parameter file instead of a Model (a Tensor file if saved with
 *  the option type=tensor). */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_add(tnf_builder *builder, const tnf_str *path, size_t n,
                                                const tnf_str *statistic,
                                                const tnf_primitiv_shape *shape, const float *data,
                                                tnf_error *error);
/** Makes it a Shape file. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_set_shape(tnf_builder *builder,
                                                      const tnf_primitiv_shape *shape,
                                                      tnf_error *error);

typedef struct tnf_primitiv_config {
    const char *key;
    uint32_t u; /**< of an integer config */
    float f;    /**< of a float config */
} tnf_primitiv_config;

/** Makes it an Optimizer file with these configs, in this order. */
TNF_API TNF_CHECKED tnf_status tnf_primitiv_set_optimizer(tnf_builder *builder,
                                                          const tnf_primitiv_config *uints,
                                                          size_t nuints,
                                                          const tnf_primitiv_config *floats,
                                                          size_t nfloats, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
