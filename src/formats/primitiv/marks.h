/* SPDX-License-Identifier: MIT */
/* The attributes of tensors and files that primitiv uses: statistics, batches, configs.
 *
 * A statistic "m" of w is the tensor "w@m", with the attribute primitiv.stat = "m". If that name is
 * taken, it has another name, and primitiv.of = "w".
 */
#ifndef TNF_FORMATS_PRIMITIV_MARKS_H
#define TNF_FORMATS_PRIMITIV_MARKS_H

#include <tenfold/types.h>

#define PRIM_MAX_DIMS 8u
#define PRIM_VALUE    "value" /* the tensor of a Tensor or Parameter file, which has no path */

bool tnf_prim_is_stat(const tnf_object *o);
uint64_t tnf_prim_batch_of(const tnf_object *o); /* above 1 only if the last axis is the batch */
uint32_t tnf_prim_dims_of(const tnf_object *o);
/* The name of the parameter that a statistic belongs to: "w" for "w@m"; p is NULL: none. */
tnf_str tnf_prim_owner_of(const tnf_object *o);

/* Configs: a map, or {"$pairs": [[key, value], …]}. `from` is NULL: neither. */
typedef struct prim_configs {
    const tnf_value *from;
    size_t n;
} prim_configs;

typedef struct prim_config {
    tnf_str key;
    const tnf_value *value;
} prim_config;

prim_configs tnf_prim_configs_of(const tnf_value *map);
bool tnf_prim_config_at(prim_config *out, const prim_configs *all, size_t i);
bool tnf_prim_config_u32(const tnf_value *v, uint32_t *out);
bool tnf_prim_config_f32(const tnf_value *v, float *out, bool *rounded);

/* primitiv.dims and primitiv.batch of a file; false if they are not a valid shape. */
typedef struct prim_dims {
    uint64_t dims[PRIM_MAX_DIMS], batch;
    uint32_t n;
} prim_dims;

bool tnf_prim_shape_of(prim_dims *out, const tnf_value *dims, const tnf_value *batch);

#endif
